package server

import (
	"fmt"
	"maps"
	"slices"

	"github.com/intendant/intendant/model"
)

// explainFromState says why a resource is not what it should be, as far as stored state tells: for environments whose scheduler
// runs elsewhere or not at all.
func explainFromState(e model.Environment, r model.ResourceDetails, agent *model.AgentStatus) model.Explanation {
	st := r.State
	id := st.Resource
	x := model.Explanation{Resource: id}
	because := func(reason model.ExplainReason) { x.Reasons = append(x.Reasons, reason) }
	switch st.Status() {
	case model.StatusDeployed:
		x.Summary = "The resource is as it should be."
		return x
	case model.StatusDeploying:
		x.Summary = "An agent is working on the resource now."
		return x
	case model.StatusOrphaned:
		x.Summary = fmt.Sprintf("The resource is not managed any more: version %d was the last that had it.", st.OrphanedAfter)
		return x
	case model.StatusUndefined:
		because(model.ExplainReason{Code: "undefined", Text: "an attribute is not known yet; the next compile may know it"})
	case model.StatusSkippedForUndefined:
		for _, required := range slices.Sorted(maps.Keys(r.RequiresStatus)) {
			if s := r.RequiresStatus[required]; s == model.StatusUndefined || s == model.StatusSkippedForUndefined {
				because(model.ExplainReason{Code: "blocked", Text: fmt.Sprintf("it requires %s, which is %s", required, s), Resource: required})
			}
		}
	case model.StatusFailed, model.StatusUnavailable:
		because(model.ExplainReason{Code: "failed", Text: fmt.Sprintf("the last run ended as %s (%d in a row); its log has the cause", st.LastOutcome, st.Failures)})
	case model.StatusNonCompliant:
		because(model.ExplainReason{Code: "report-only", Text: "it differs from the desired state and is only reported on"})
	case model.StatusAvailable, model.StatusSkipped: // what follows says why
	}
	if e.Halted {
		because(model.ExplainReason{Code: "halted", Text: "the environment is halted"})
	}
	name := id.Parts().Agent
	switch {
	case agent == nil:
		because(model.ExplainReason{Code: "agent-unknown", Text: fmt.Sprintf("no agent named %s has ever connected", name), Agent: name})
	case agent.Paused:
		because(model.ExplainReason{Code: "agent-paused", Text: fmt.Sprintf("agent %s is paused", name), Agent: name})
	case !agent.Up:
		because(model.ExplainReason{Code: "agent-down", Text: fmt.Sprintf("agent %s is not connected", name), Agent: name})
	}
	if st.Blocked != model.IsBlocked {
		for _, required := range slices.Sorted(maps.Keys(r.RequiresStatus)) {
			if s := r.RequiresStatus[required]; s != model.StatusDeployed {
				because(model.ExplainReason{
					Code: "waiting-for-requirement", Text: fmt.Sprintf("it requires %s, which is %s", required, s), Resource: required,
				})
			}
		}
	}
	if len(x.Reasons) == 0 {
		x.Summary = "Nothing holds the resource up: it is to be deployed when the scheduler gets to it."
		return x
	}
	x.Summary = fmt.Sprintf("The resource is %s: %s.", st.Status(), x.Reasons[0].Text)
	return x
}
