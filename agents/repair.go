package agents

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"

	"github.com/intendant/intendant/model"
)

// repairCheck is how often the agent looks whether a repair without the server is due.
const repairCheck = time.Second

// repair brings agents back to their last known desired state while the server is away, until ctx ends.
func (a *Agent) repair(ctx context.Context) {
	tick := time.NewTicker(repairCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, n := range a.dueRepairs() {
			if !a.repairAgent(ctx, n) {
				break
			}
		}
	}
}

// dueRepairs lists the agents whose repair is due.
func (a *Agent) dueRepairs() []*agentName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var due []*agentName
	now := a.cfg.Now()
	for _, n := range a.agents {
		if !a.mayRepair(n) {
			continue
		}
		next, err := nextRepair(n.desired.Repair, a.lastContact(n))
		if err != nil {
			a.log.Warn("the repair interval can not be used", "agent", n.name, "error", err)
			n.desired.Repair = "0"
			continue
		}
		if !next.IsZero() && !now.Before(next) {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(x, y *agentName) int {
		if x.name < y.name {
			return -1
		}
		return 1
	})
	return due
}

// mayRepair tells whether the agent may act for a name by itself. The lock must be held.
func (a *Agent) mayRepair(n *agentName) bool {
	return a.link == nil && !a.stopping && n.offered && n.primary && n.standbys == 0 && !n.paused && n.desired != nil
}

// lastContact is when a name was last looked after: by the server while there was a session, by the agent's own repair, or,
// in a process that has never reached the server, when the desired state came.
func (a *Agent) lastContact(n *agentName) time.Time {
	last := n.repairedAt
	if n.desired.ReceivedAt.After(last) {
		last = n.desired.ReceivedAt
	}
	if a.session != "" && a.away.After(last) {
		last = a.away
	}
	return last
}

// nextRepair returns when a repair is due after one at last: after a number of seconds, or by a cron expression. The zero
// time means never.
func nextRepair(interval string, last time.Time) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(interval, 64); err == nil {
		if seconds <= 0 {
			return time.Time{}, nil
		}
		return last.Add(time.Duration(seconds * float64(time.Second))), nil
	}
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	s, err := parser.Parse(interval)
	if err != nil {
		return time.Time{}, fmt.Errorf("repair interval %q: %w: %w", interval, model.ErrInvalid, err)
	}
	return s.Next(last.UTC()), nil
}

// repairAgent runs one repair of an agent, in the order of its dependencies. It tells whether it came to the end.
func (a *Agent) repairAgent(ctx context.Context, n *agentName) bool {
	a.mu.Lock()
	if !a.mayRepair(n) {
		a.mu.Unlock()
		return false
	}
	d := n.desired
	a.mu.Unlock()
	a.log.InfoContext(ctx, "repairing without the server", "agent", n.name, "version", d.Version, "resources", len(d.Intents))
	intents := make([]model.Intent, len(d.Intents))
	for i := range d.Intents {
		intents[i] = d.Intents[i].Model()
	}
	trace := model.NewTraceID()
	statuses := map[model.ResourceID]model.Status{}
	for _, i := range order(intents) {
		if i.Undefined || i.Blocked {
			continue
		}
		t := model.Task{
			ID: model.TaskID{UUID: uuid.New()}, Environment: a.cfg.Environment, Agent: n.name, Kind: model.TaskRepair, Intent: i,
			Version: d.Version, Reason: "repair by the agent while it could not reach the server", Trace: trace,
			Deadline: a.cfg.Now().Add(a.cfg.RepairTimeout), Requires: map[model.ResourceID]model.Status{}, Code: d.Code,
		}
		for _, r := range i.Requires {
			// What other agents have is not known here; it was deployed when the server last said so.
			if status, known := statuses[r]; known {
				t.Requires[r] = status
			}
		}
		result, ok := a.runOffline(ctx, n, t)
		if !ok {
			return false
		}
		statuses[i.Resource] = statusOf(result.Outcome)
	}
	a.mu.Lock()
	n.repairedAt = a.cfg.Now()
	a.dirty()
	a.mu.Unlock()
	return true
}

// runOffline runs one task of a repair and waits for its end. ok is false when the repair must stop.
func (a *Agent) runOffline(ctx context.Context, n *agentName, t model.Task) (_ model.Result, ok bool) {
	j := &job{task: t, owner: n, offline: true, done: make(chan model.Result, 1)}
	a.mu.Lock()
	if !a.mayRepair(n) {
		a.mu.Unlock()
		return model.Result{}, false
	}
	j.epoch = n.epoch
	a.enqueue(j)
	a.pump()
	a.mu.Unlock()
	select {
	case r, ok := <-j.done:
		return r, ok
	case <-ctx.Done():
		return model.Result{}, false
	}
}

func statusOf(o model.Outcome) model.Status {
	switch o {
	case model.OutcomeDeployed:
		return model.StatusDeployed
	case model.OutcomeSkipped, model.OutcomeSkippedForDependency:
		return model.StatusSkipped
	case model.OutcomeUnavailable:
		return model.StatusUnavailable
	case model.OutcomeNonCompliant:
		return model.StatusNonCompliant
	case model.OutcomeFailed, model.OutcomeDryRun, model.OutcomeCancelled:
	}
	return model.StatusFailed
}

// order sorts intents so that each comes after those it requires; a cycle, which the server does not let through, is broken
// anywhere.
func order(intents []model.Intent) []model.Intent {
	index := make(map[model.ResourceID]int, len(intents))
	for i := range intents {
		index[intents[i].Resource] = i
	}
	out := make([]model.Intent, 0, len(intents))
	seen := make([]bool, len(intents))
	type frame struct{ intent, next int }
	for root := range intents {
		if seen[root] {
			continue
		}
		seen[root] = true
		stack := []frame{{intent: root}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(intents[top.intent].Requires) {
				out = append(out, intents[top.intent])
				stack = stack[:len(stack)-1]
				continue
			}
			need, known := index[intents[top.intent].Requires[top.next]]
			top.next++
			if known && !seen[need] {
				seen[need] = true
				stack = append(stack, frame{intent: need})
			}
		}
	}
	return out
}
