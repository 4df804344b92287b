package gitsync

import "github.com/prometheus/client_golang/prometheus"

// metrics are what the package counts. Labels have few values: no repository's name is one.
type metrics struct {
	syncs         *prometheus.CounterVec
	syncSeconds   *prometheus.HistogramVec
	reclones      prometheus.Counter
	unpackSeconds prometheus.Histogram
	treeBytes     prometheus.Gauge
	watched       prometheus.Gauge
	hooks         *prometheus.CounterVec
	hookSeconds   prometheus.Histogram
	queued        *prometheus.CounterVec
	pushToQueued  prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	quick := []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300}
	m := &metrics{
		syncs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_git_syncs_total", Help: "Conversations with git remotes, by result: unchanged, fetched, failed.",
		}, []string{"result"}),
		syncSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "intendant_git_sync_seconds", Help: "Duration of conversations with git remotes.", Buckets: quick,
		}, []string{"result"}),
		reclones: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "intendant_git_reclones_total", Help: "Mirrors that were damaged and cloned again.",
		}),
		unpackSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "intendant_git_unpack_seconds", Help: "Duration of unpacking a commit.", Buckets: quick,
		}),
		treeBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "intendant_git_tree_bytes", Help: "Size of all unpacked commits.",
		}),
		watched: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "intendant_git_watched_repositories", Help: "Repositories that are polled or hear webhooks.",
		}),
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_webhook_deliveries_total",
			Help: "Webhook requests, by result: accepted, ignored, repeated, refused, limited, too_large, malformed, failed.",
		}, []string{"result"}),
		hookSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "intendant_webhook_seconds", Help: "Time to answer a webhook request.", Buckets: quick,
		}),
		queued: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_git_revisions_total", Help: "New revisions that queued a compile, by cause: webhook, poll, request.",
		}, []string{"cause"}),
		pushToQueued: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "intendant_webhook_to_queued_seconds", Help: "Time from receiving a webhook to its compiles being queued.", Buckets: quick,
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.syncs, m.syncSeconds, m.reclones, m.unpackSeconds, m.treeBytes, m.watched, m.hooks, m.hookSeconds, m.queued, m.pushToQueued,
	} {
		if err := r.Register(c); err != nil {
			return nil, err //nolint:wrapcheck // New says what it was doing
		}
	}
	return m, nil
}
