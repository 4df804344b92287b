package hub

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/model"
)

// metrics are the hub's numbers for operators. What can be counted when it is asked for is; it implements
// [prometheus.Collector].
type metrics struct {
	hub *Hub

	sessions, agents, inFlight, waiting, unstored *prometheus.Desc
	stored, refused                               *prometheus.CounterVec
}

func newMetrics(h *Hub) *metrics {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("intendant_agent_"+name, help, nil, nil)
	}
	return &metrics{
		hub:      h,
		sessions: describe("sessions", "Sessions of agent processes."),
		agents:   describe("agents_up", "Agents that have a primary session."),
		inFlight: describe("tasks_in_flight", "Tasks that agents have and have not reported."),
		waiting:  describe("tasks_waiting", "Tasks that wait at the server for room at their agent."),
		unstored: describe("results_unstored", "Results that have arrived and are not stored yet."),
		stored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_agent_results_total", Help: "Results that were stored, by outcome.",
		}, []string{"outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intendant_agent_results_refused_total", Help: "Results that agents had no right to report, by reason.",
		}, []string{"code"}),
	}
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.sessions, m.agents, m.inFlight, m.waiting, m.unstored} {
		ch <- d
	}
	m.stored.Describe(ch)
	m.refused.Describe(ch)
}

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	var agents, inFlight, waiting, unstored int
	m.hub.mu.Lock()
	sessions := len(m.hub.sessions)
	for _, e := range m.hub.envs {
		for _, a := range e.agents {
			if a.primary != nil {
				agents++
			}
		}
	}
	for _, s := range m.hub.sessions {
		inFlight += s.onAgent
		waiting += len(s.inflight) - s.onAgent
		unstored += len(s.queued)
	}
	m.hub.mu.Unlock()
	for d, n := range map[*prometheus.Desc]int{
		m.sessions: sessions, m.agents: agents, m.inFlight: inFlight, m.waiting: waiting, m.unstored: unstored,
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	m.stored.Collect(ch)
	m.refused.Collect(ch)
}

// knownOutcome bounds the label: what an agent sends is not to be trusted with it.
func knownOutcome(o model.Outcome) string {
	switch o {
	case model.OutcomeDeployed, model.OutcomeFailed, model.OutcomeSkipped, model.OutcomeSkippedForDependency,
		model.OutcomeUnavailable, model.OutcomeNonCompliant, model.OutcomeDryRun, model.OutcomeCancelled:
		return string(o)
	}
	return otherOutcome
}

// otherOutcome stands for every outcome that is not known.
const otherOutcome = "other"

var _ prometheus.Collector = (*metrics)(nil)
