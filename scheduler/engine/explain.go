package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/intendant/intendant/model"
)

// The codes of reasons in a [model.Explanation]; they do not change.
const (
	ReasonUnknown        = "unknown"
	ReasonUndefined      = "undefined"
	ReasonBlocked        = "blocked"
	ReasonHalted         = "halted"
	ReasonAgentPaused    = "agent-paused"
	ReasonAgentDown      = "agent-down"
	ReasonAgentBusy      = "agent-busy"
	ReasonWaiting        = "waiting-for-requirement"
	ReasonQueued         = "queued"
	ReasonRunning        = "running"
	ReasonRunsAgain      = "runs-again"
	ReasonAgentLost      = "agent-lost"
	ReasonDependency     = "requirement-failed"
	ReasonFailed         = "failed"
	ReasonSkipped        = "skipped"
	ReasonNonCompliant   = "non-compliant"
	ReasonBackoff        = "backoff"
	ReasonPerson         = "person"
	ReasonRepairDue      = "repair-due"
	ReasonNothingPlanned = "nothing-planned"
)

// maxNamed bounds the resources that one explanation names of a kind.
const maxNamed = 10

// Explain says why a resource is where it is: what it waits for and what happens next.
func (s *State) Explain(id model.ResourceID) model.Explanation {
	x := model.Explanation{Resource: id}
	i, ok := s.byID[id]
	if !ok || !s.res[i].managed {
		x.Summary = fmt.Sprintf("Version %d, the newest released one, does not have this resource; nothing is done about it.", s.version)
		x.Reasons = []model.ExplainReason{{Code: ReasonUnknown, Text: x.Summary, Resource: id}}
		return x
	}
	r := &s.res[i]
	switch {
	case r.impeded:
		s.explainBlocked(i, &x)
	case r.phase == waiting:
		s.explainWaiting(i, &x)
	case r.phase == queued:
		s.explainQueued(i, &x)
	case r.phase == running:
		s.explainRunning(i, &x)
	default:
		s.explainIdle(i, &x)
	}
	return x
}

func (s *State) explainBlocked(i int32, x *model.Explanation) {
	if s.res[i].intent.Undefined {
		x.Summary = "An attribute of the resource is not known yet, so it can not be deployed. A compile that knows it ends this."
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonUndefined, Text: x.Summary, Resource: x.Resource})
	}
	var causes []string
	seen := map[int32]bool{i: true}
	for stack := []int32{i}; len(stack) > 0 && len(causes) < maxNamed; {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, q := range s.res[k].requires {
			if seen[q] || !s.res[q].impeded {
				continue
			}
			seen[q] = true
			stack = append(stack, q)
			if s.res[q].intent.Undefined {
				id := s.res[q].state.Resource
				causes = append(causes, string(id))
				x.Reasons = append(x.Reasons, model.ExplainReason{
					Code: ReasonBlocked, Resource: id, Text: fmt.Sprintf("It requires %s, which has an attribute that is not known yet.", id),
				})
			}
		}
	}
	if x.Summary == "" {
		x.Summary = "Blocked: it requires what can not be deployed yet: " + strings.Join(causes, ", ") + "."
	}
}

func (s *State) explainWaiting(i int32, x *model.Explanation) {
	r := &s.res[i]
	n := 0
	first := ""
	for _, q := range r.requires {
		p := &s.res[q]
		if p.phase == idle {
			continue
		}
		n++
		if n > maxNamed {
			continue
		}
		text := fmt.Sprintf("It waits for its requirement %s, which is %s on agent %s.", p.state.Resource, phaseName(p.phase), s.agents[p.agent].name)
		if first == "" {
			first = string(p.state.Resource)
		}
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonWaiting, Text: text, Resource: p.state.Resource, Agent: s.agents[p.agent].name})
	}
	x.Summary = fmt.Sprintf("To be run because %s; waits for %d of its requirements, first %s.", r.ask.reason, n, first)
	// What holds the requirements up holds this up: say so where it is not simply work in progress.
	s.explainHeld(i, x)
}

// explainHeld names, for a waiting resource, agents down or paused that requirements, however far, wait for.
func (s *State) explainHeld(i int32, x *model.Explanation) {
	seen := map[int32]bool{i: true}
	told := map[int32]bool{}
	for stack := []int32{i}; len(stack) > 0; {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, q := range s.res[k].requires {
			p := &s.res[q]
			if seen[q] || p.phase == idle {
				continue
			}
			seen[q] = true
			stack = append(stack, q)
			if p.phase == queued && !told[p.agent] {
				told[p.agent] = true
				s.explainAgent(p.agent, x)
			}
		}
	}
}

func phaseName(p phase) string {
	switch p {
	case waiting:
		return "waiting for its own requirements"
	case queued:
		return "queued"
	case running:
		return "running"
	case idle:
	}
	return "idle"
}

// explainAgent says why an agent takes no work, if it does not, and tells whether it did.
func (s *State) explainAgent(a int32, x *model.Explanation) bool {
	g := &s.agents[a]
	var code, text string
	switch {
	case s.halt:
		code, text = ReasonHalted, "The environment is halted; resume it to go on."
	case g.paused:
		code, text = ReasonAgentPaused, fmt.Sprintf("Agent %s is paused; unpause it to go on.", g.name)
	case !g.up:
		code, text = ReasonAgentDown, fmt.Sprintf("Agent %s is not connected.", g.name)
	default:
		return false
	}
	x.Reasons = append(x.Reasons, model.ExplainReason{Code: code, Text: text, Agent: g.name})
	return true
}

func (s *State) explainQueued(i int32, x *model.Explanation) {
	r := &s.res[i]
	g := &s.agents[r.agent]
	if s.explainAgent(r.agent, x) {
		x.Summary = fmt.Sprintf("To be run because %s. %s", r.ask.reason, x.Reasons[len(x.Reasons)-1].Text)
		return
	}
	ahead := s.ahead(i)
	x.Summary = fmt.Sprintf("Queued at agent %s with priority %s because %s; %d requests are before it and %d tasks run.",
		g.name, r.ask.prio, r.ask.reason, len(ahead), g.inFlight)
	x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonQueued, Text: x.Summary, Agent: g.name})
	for ti := range s.tasks {
		if t := &s.tasks[ti]; t.used && t.agent == r.agent && len(x.Reasons) <= maxNamed {
			id := s.res[t.res].state.Resource
			x.Reasons = append(x.Reasons, model.ExplainReason{
				Code: ReasonAgentBusy, Resource: id, Agent: g.name, Text: fmt.Sprintf("Agent %s is running %s.", g.name, id),
			})
		}
	}
}

// ahead lists the requests that are before a queued one, in no order.
func (s *State) ahead(i int32) []entry {
	r := &s.res[i]
	var before []entry
	for p := Priority(0); p <= r.ask.prio; p++ {
		seen := map[uint64]bool{}
		for _, e := range s.agents[r.agent].queues[p].heap {
			if s.stands(e, p) && (p < r.ask.prio || e.seq < r.ask.seq) && !seen[e.seq] {
				seen[e.seq] = true
				before = append(before, e)
			}
		}
	}
	return before
}

func (s *State) explainRunning(i int32, x *model.Explanation) {
	r := &s.res[i]
	t := &s.tasks[r.task]
	g := &s.agents[r.agent]
	until := unixTime(s.taskTimers.at(r.task))
	if t.lost {
		x.Summary = fmt.Sprintf("Agent %s was lost while it ran this; if it does not report until %s, it is run again.", g.name, until.Format(time.RFC3339))
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonAgentLost, Text: x.Summary, Agent: g.name, Until: until})
	} else {
		x.Summary = fmt.Sprintf("Running on agent %s since %s because %s.", g.name, t.started.UTC().Format(time.RFC3339), t.ask.reason)
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonRunning, Text: x.Summary, Agent: g.name, Until: until})
	}
	if r.hasAgain {
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonRunsAgain, Text: "It is run once more afterwards because " + r.again.reason + "."})
	}
}

func (s *State) explainIdle(i int32, x *model.Explanation) {
	r := &s.res[i]
	st := &r.state
	add := func(code, text string) { x.Reasons = append(x.Reasons, model.ExplainReason{Code: code, Text: text}) }
	switch {
	case st.Blocked == model.TemporarilyBlocked:
		x.Summary = "It was skipped because of its requirements and waits until one of them recovers."
		for _, q := range r.requires {
			if p := &s.res[q].state; p.LastRun != model.RunNew && p.LastOutcome != model.OutcomeDeployed && len(x.Reasons) < maxNamed {
				x.Reasons = append(x.Reasons, model.ExplainReason{
					Code: ReasonDependency, Resource: p.Resource, Agent: s.agents[s.res[q].agent].name,
					Text: fmt.Sprintf("Its requirement %s is %s.", p.Resource, p.Status()),
				})
			}
		}
	case st.Compliance == model.Compliant:
		x.Summary = "It is as the model wants it."
	case r.person:
		x.Summary = "Its last run failed in a way that trying again does not mend: somebody must act, then ask for a deploy or push."
		add(ReasonPerson, x.Summary)
	case st.LastOutcome == model.OutcomeNonCompliant:
		x.Summary = "It differs from the model and is only reported on."
		add(ReasonNonCompliant, x.Summary)
	case st.LastRun == model.RunSkipped:
		x.Summary = "Its last run was skipped."
		add(ReasonSkipped, x.Summary)
	case st.LastRun == model.RunFailed:
		x.Summary = fmt.Sprintf("Its last run failed (%d in a row).", max(st.Failures, 1))
		add(ReasonFailed, x.Summary)
	default:
		x.Summary = "It has an update that was not deployed yet."
		add(ReasonBackoff, x.Summary)
	}
	at := s.resTimers.at(i)
	switch {
	case at == never:
		add(ReasonNothingPlanned, "No timer is set for it: a new version, a request or a cron expression runs it next.")
	case r.timerPrio == IntervalRepair:
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonRepairDue, Text: "It is checked again by the repair interval.", Until: unixTime(at)})
	default:
		x.Reasons = append(x.Reasons, model.ExplainReason{Code: ReasonBackoff, Text: "It is tried again after a delay.", Until: unixTime(at)})
	}
}

func unixTime(ns int64) time.Time {
	if ns == never {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
