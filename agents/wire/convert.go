package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
)

// FromIntent makes the wire form of an intent.
func FromIntent(i model.Intent) Intent {
	return Intent{
		Resource: i.Resource, Attributes: i.Attributes, AttributeHash: i.AttributeHash, Requires: i.Requires, Set: i.Set,
		Undefined: i.Undefined, Blocked: i.Blocked,
	}
}

// Model makes the intent of its wire form.
func (i Intent) Model() model.Intent {
	return model.Intent{
		Resource: i.Resource, Attributes: i.Attributes, AttributeHash: i.AttributeHash, Requires: i.Requires, Set: i.Set,
		Undefined: i.Undefined, Blocked: i.Blocked,
	}
}

// FromTask makes the wire form of a task. now turns its deadline into a timeout; one that has passed leaves a millisecond.
func FromTask(t model.Task, epoch Epoch, now time.Time) Task {
	w := Task{
		ID: t.ID, Agent: t.Agent, Epoch: epoch, Kind: t.Kind, Intent: FromIntent(t.Intent), Version: t.Version, Reason: t.Reason,
		Trace: t.Trace, DryRun: dryRun(t.DryRun), Requires: t.Requires, Reload: t.Reload,
		Code: t.Code,
	}
	if w.Intent.Attributes == nil {
		w.Intent.Attributes = json.RawMessage("{}")
	}
	if !t.Deadline.IsZero() {
		w.Timeout = max(1, t.Deadline.Sub(now).Milliseconds())
	}
	return w
}

// Model makes the task of its wire form, with the deadline counted from now.
func (t Task) Model(env model.EnvironmentID, now time.Time) model.Task {
	m := model.Task{
		ID: t.ID, Environment: env, Agent: t.Agent, Kind: t.Kind, Intent: t.Intent.Model(), Version: t.Version, Reason: t.Reason,
		Trace: t.Trace, Requires: t.Requires, Reload: t.Reload, Code: t.Code,
	}
	if t.DryRun != nil {
		m.DryRun = *t.DryRun
	}
	if t.Timeout > 0 {
		m.Deadline = now.Add(time.Duration(t.Timeout) * time.Millisecond)
	}
	return m
}

// FromResult makes the wire form of a result.
func FromResult(r model.Result, agent model.AgentName, epoch Epoch) Result {
	w := Result{
		Task: r.Task, Agent: agent, Epoch: epoch, Resource: r.Resource, Version: r.Version, Kind: r.Kind,
		AttributeHash: r.AttributeHash, Outcome: r.Outcome, Change: r.Change, Changes: r.Changes, StartedAt: r.StartedAt.UTC(),
		FinishedAt: r.FinishedAt.UTC(), Trace: r.Trace, DryRun: dryRun(r.DryRun), Code: r.Code, Retry: r.Retry,
		Log: FromLog(r.Log),
	}
	for _, f := range r.Facts {
		w.Facts = append(w.Facts, Fact(f))
	}
	return w
}

// Model makes the result of its wire form.
func (r Result) Model(env model.EnvironmentID) model.Result {
	m := model.Result{
		Task: r.Task, Environment: env, Resource: r.Resource, Version: r.Version, Kind: r.Kind, AttributeHash: r.AttributeHash,
		Outcome: r.Outcome, Change: r.Change, Changes: r.Changes, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		Trace: r.Trace, Code: r.Code, Retry: r.Retry, Log: ModelLog(r.Log),
	}
	if r.DryRun != nil {
		m.DryRun = *r.DryRun
	}
	for _, f := range r.Facts {
		m.Facts = append(m.Facts, model.Fact(f))
	}
	return m
}

// FromLog makes the wire form of log lines.
func FromLog(lines []model.LogLine) []LogLine {
	if len(lines) == 0 {
		return nil
	}
	w := make([]LogLine, len(lines))
	for i, l := range lines {
		w[i] = LogLine{Level: l.Level, Message: l.Message, Kwargs: l.Kwargs, Time: l.Time.UTC()}
	}
	return w
}

// ModelLog makes log lines of their wire form.
func ModelLog(lines []LogLine) []model.LogLine {
	if len(lines) == 0 {
		return nil
	}
	m := make([]model.LogLine, len(lines))
	for i, l := range lines {
		m[i] = model.LogLine(l)
	}
	return m
}

func dryRun(id model.DryRunID) *model.DryRunID {
	if id.UUID == uuid.Nil {
		return nil
	}
	return &id
}
