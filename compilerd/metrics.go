package compilerd

import "github.com/prometheus/client_golang/prometheus"

// metrics are what the package counts.
type metrics struct {
	compiles       *prometheus.CounterVec
	compileSeconds *prometheus.HistogramVec
	stageSeconds   *prometheus.HistogramVec
	queueWait      prometheus.Histogram
	running        prometheus.Gauge
	claimErrors    prometheus.Counter
	peakMemory     prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	seconds := []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600}
	m := &metrics{
		compiles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_compiles_total", Help: "Compile jobs, by how they ended: succeeded, failed, cancelled, fenced, stopped, lost.",
		}, []string{"status"}),
		compileSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "intendant_compile_seconds", Help: "Duration of compile jobs from claim to end.", Buckets: seconds,
		}, []string{"status"}),
		stageSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "intendant_compile_stage_seconds", Help: "Duration of the stages of compile jobs.", Buckets: seconds,
		}, []string{"stage"}),
		queueWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "intendant_compile_queue_wait_seconds", Help: "Time from the request of a compile to its first claim.", Buckets: seconds,
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "intendant_compiles_running", Help: "Compiles that run in this process.",
		}),
		claimErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "intendant_compile_claim_errors_total", Help: "Times that the queue could not be asked for a job.",
		}),
		peakMemory: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "intendant_compile_peak_memory_bytes", Help: "Largest resident size of compiler processes.",
			Buckets: prometheus.ExponentialBuckets(16<<20, 2, 10),
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.compiles, m.compileSeconds, m.stageSeconds, m.queueWait, m.running, m.claimErrors, m.peakMemory} {
		if err := r.Register(c); err != nil {
			return nil, err //nolint:wrapcheck // New says what it was doing
		}
	}
	return m, nil
}
