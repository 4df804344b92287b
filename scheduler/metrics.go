package scheduler

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/scheduler/engine"
)

// metrics are the scheduler's own. Gauges are read from the loops when they are asked for.
type metrics struct {
	steps  prometheus.Histogram
	saves  *prometheus.HistogramVec
	leases *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, s *Scheduler) (*metrics, error) {
	m := &metrics{
		steps: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "intendant_scheduler_step_seconds", Help: "Time that the engine took for one event.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}),
		saves: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "intendant_scheduler_save_seconds", Help: "Time that storing the progress of one turn took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 3, 9),
		}, []string{"result"}),
		leases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_scheduler_lease_changes_total", Help: "Environments that this server took over, gave up or lost.",
		}, []string{"change"}),
	}
	if r == nil {
		return m, nil
	}
	err := errors.Join(r.Register(m.steps), r.Register(m.saves), r.Register(m.leases), r.Register(&collector{s: s}))
	if err != nil {
		return nil, fmt.Errorf("registering the scheduler's metrics: %w", err)
	}
	return m, nil
}

var (
	queueDesc = prometheus.NewDesc("intendant_scheduler_queue_depth", "Requests that are ready for an agent.", []string{"priority"}, nil)
	waitDesc  = prometheus.NewDesc("intendant_scheduler_waiting", "Requests that wait for requirements.", nil, nil)
	runDesc   = prometheus.NewDesc("intendant_scheduler_tasks_in_flight", "Tasks that agents have.", nil, nil)
	envDesc   = prometheus.NewDesc("intendant_scheduler_environments", "Environments that this server owns.", nil, nil)
	resDesc   = prometheus.NewDesc("intendant_scheduler_resources", "Resources of the environments that this server owns.", nil, nil)
)

// collector reads the gauges of all loops.
type collector struct{ s *Scheduler }

// Describe sends the descriptions of the gauges.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueDesc, waitDesc, runDesc, envDesc, resDesc} {
		ch <- d
	}
}

// Collect sends the gauges.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	stats := c.s.Stats()
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for p := range engine.Priorities {
		name := engine.Priority(p).String()
		gauge(queueDesc, stats.Queued[name], name)
	}
	gauge(waitDesc, stats.Waiting)
	gauge(runDesc, stats.Running)
	gauge(envDesc, stats.Environments)
	gauge(resDesc, stats.Resources)
}
