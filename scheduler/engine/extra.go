package engine

import (
	"encoding/json"
	"slices"

	"github.com/intendant/intendant/model"
)

// extra is a task besides a resource's own runs: one resource of a dry run, or a refresh of facts. It needs no order.
type extra struct {
	used bool
	res  int32
	dry  *dryRun
	// intent is what the handler is given, as a version has it; nil means the resource's own, of the version absorbed last.
	intent  *model.Intent
	version int
	seq     uint64
	queued  bool
	tries   int
}

// dryRun is a dry run in progress.
type dryRun struct {
	command model.Command
	left    int
}

// maxDryTries is how often a resource of a dry run is handed to an agent that then disappears.
const maxDryTries = 2

// dryRunVersion begins a dry run, or passes over one that is in progress. The command stays until all is done.
func (s *State) dryRunVersion(e DryRunVersion) {
	if _, known := s.dryRuns[e.Command.DryRun]; known {
		return
	}
	d := &dryRun{command: e.Command, left: len(e.Intents)}
	s.dryRuns[e.Command.DryRun] = d
	s.commands[e.Command.ID] = struct{}{}
	blocked := blockedIn(e.Intents)
	var at []model.DryRunResult
	for k := range e.Intents {
		in := &e.Intents[k]
		a := s.agentSlot(agentOf(in.Resource))
		status := model.DiffStatus("")
		switch {
		case in.Undefined:
			status = model.DiffUndefined
		case blocked[k]:
			status = model.DiffSkippedForUndefined
		case s.agents[a].paused:
			status = model.DiffAgentDown
		}
		if status != "" {
			at = append(at, model.DryRunResult{DryRun: e.Command.DryRun, Resource: in.Resource, Status: status})
			d.left--
			continue
		}
		i := s.slot(in.Resource)
		s.res[i].extras++
		s.enqueueExtra(s.newExtra(extra{res: i, dry: d, intent: in, version: e.Command.Version}), DryRun)
	}
	if len(at) > 0 {
		s.out.dry = append(s.out.dry, SaveDryRun{DryRun: e.Command.DryRun, Results: at})
	}
	s.dryRunDone(d)
}

// blockedIn tells which intents of a version require an undefined one, directly or not.
func blockedIn(intents []model.Intent) []bool {
	index := make(map[model.ResourceID]int, len(intents))
	for k := range intents {
		index[intents[k].Resource] = k
	}
	provides := make([][]int, len(intents))
	var stack []int
	for k := range intents {
		for _, q := range intents[k].Requires {
			if j, ok := index[q]; ok {
				provides[j] = append(provides[j], k)
			}
		}
		if intents[k].Undefined {
			stack = append(stack, k)
		}
	}
	blocked := make([]bool, len(intents))
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, d := range provides[k] {
			if !blocked[d] {
				blocked[d] = true
				stack = append(stack, d)
			}
		}
	}
	return blocked
}

// facts carries out a request for the facts of resources. Those that are not managed are asked as the command's version has them.
func (s *State) facts(c model.Command, intents []model.Intent) {
	add := func(i int32, x extra) {
		x.res = i
		s.res[i].extras++
		s.enqueueExtra(s.newExtra(x), FactRefresh)
	}
	for _, id := range c.Resources {
		if i, ok := s.byID[id]; ok && s.res[i].managed {
			if !s.res[i].impeded {
				add(i, extra{})
			}
			continue
		}
		k := slices.IndexFunc(intents, func(in model.Intent) bool { return in.Resource == id })
		if k >= 0 && !intents[k].Undefined && !intents[k].Blocked {
			add(s.slot(id), extra{intent: &intents[k], version: c.Version})
		}
	}
	s.out.done = append(s.out.done, c.ID)
}

func (s *State) newExtra(x extra) int32 {
	x.used = true
	if n := len(s.freeExtra); n > 0 {
		k := s.freeExtra[n-1]
		s.freeExtra = s.freeExtra[:n-1]
		s.extras[k] = x
		return k
	}
	s.extras = append(s.extras, x)
	return int32(len(s.extras)) - 1
}

func (s *State) enqueueExtra(k int32, p Priority) {
	x := &s.extras[k]
	if x.seq == 0 {
		x.seq = s.nextSeq()
	}
	x.queued = true
	s.push(s.res[x.res].agent, p, entry{seq: x.seq, ref: ^k})
}

// requeueExtra puts an extra whose task did not reach the agent back in its place.
func (s *State) requeueExtra(k int32) {
	x := &s.extras[k]
	s.res[x.res].extraBusy = false
	s.enqueueExtra(k, x.priority())
}

func (x *extra) priority() Priority {
	if x.dry != nil {
		return DryRun
	}
	return FactRefresh
}

// endExtra frees the slot of an extra.
func (s *State) endExtra(k int32) {
	i := s.extras[k].res
	s.extras[k] = extra{}
	s.freeExtra = append(s.freeExtra, k)
	r := &s.res[i]
	r.extras--
	if !r.managed {
		s.gone = append(s.gone, i)
	}
}

func (s *State) startExtra(k int32, p Priority) {
	x := &s.extras[k]
	x.queued = false
	r := &s.res[x.res]
	intent, version := x.intent, x.version
	if intent == nil {
		if !r.managed {
			s.endExtra(k)
			return
		}
		intent, version = &r.intent, s.version
	}
	x.tries++
	r.extraBusy = true
	t := model.Task{
		ID: s.newTaskID(), Environment: s.env, Agent: s.agents[r.agent].name, Kind: p.kind(), Intent: *intent, Version: version,
		Reason: "facts were asked for", Deadline: s.now.Add(max(s.cfg.TaskDeadline, timeoutMargin(r.timeout))), Trace: s.trace,
	}
	kind := model.ActionGetFact
	if x.dry != nil {
		c := x.dry.command
		kind = model.ActionDryRun
		t.DryRun, t.Trace = c.DryRun, c.Trace
		t.Reason = reasonOf(c, "a user requested a dry run")
	}
	ti := s.newTask(task{
		id: t.ID, res: x.res, extra: k, agent: r.agent, hash: t.Intent.AttributeHash, version: t.Version, started: s.now, counted: true,
		ask: ask{prio: p, kind: t.Kind, reason: t.Reason, trace: t.Trace},
	})
	s.taskTimers.set(ti, t.Deadline.Add(s.cfg.DeadlineGrace).UnixNano())
	s.out.started = append(s.out.started, model.Action{
		ID: t.ID, Environment: s.env, Version: t.Version, Resource: t.Intent.Resource, Kind: kind, Reason: t.Reason, StartedAt: s.now, Trace: t.Trace,
	})
	s.out.start = append(s.out.start, t)
}

// finishExtra takes the result of an extra's task.
func (s *State) finishExtra(ti int32, res model.Result) {
	t := s.endTask(ti)
	x := s.extras[t.extra]
	r := &s.res[x.res]
	r.extraBusy = false
	res.Environment, res.Kind, res.Version, res.AttributeHash, res.Trace = s.env, t.ask.kind, t.version, t.hash, t.ask.trace
	res.Resource = r.state.Resource
	if x.dry != nil {
		res.DryRun = x.dry.command.DryRun
	}
	s.out.finished = append(s.out.finished, res)
	if res.Outcome == model.OutcomeCancelled {
		s.retryExtra(t.extra)
		return
	}
	if x.dry != nil {
		s.dryRunFound(t.extra, dryRunResult(res))
		return
	}
	s.endExtra(t.extra)
}

func (s *State) loseExtra(t task) {
	s.res[t.res].extraBusy = false
	s.retryExtra(t.extra)
}

// retryExtra hands an extra out once more, or gives up.
func (s *State) retryExtra(k int32) {
	x := &s.extras[k]
	switch {
	case x.tries < maxDryTries:
		s.enqueueExtra(k, x.priority())
	case x.dry != nil:
		s.dryRunFound(k, s.agentLost(k))
	default:
		s.endExtra(k)
	}
}

func (s *State) agentLost(k int32) model.DryRunResult {
	x := &s.extras[k]
	return model.DryRunResult{
		DryRun: x.dry.command.DryRun, Resource: s.res[x.res].state.Resource, Status: model.DiffAgentDown,
		Message: "agent " + string(s.agents[s.res[x.res].agent].name) + " is down or paused",
	}
}

// dryRunFound stores what was found for one resource of a dry run.
func (s *State) dryRunFound(k int32, found model.DryRunResult) {
	d := s.extras[k].dry
	s.saveDry(d.command.DryRun, found)
	s.endExtra(k)
	d.left--
	s.dryRunDone(d)
}

func (s *State) dryRunDone(d *dryRun) {
	if d.left == 0 {
		delete(s.dryRuns, d.command.DryRun)
		s.commandDone(d.command.ID)
	}
}

func (s *State) saveDry(id model.DryRunID, found model.DryRunResult) {
	if n := len(s.out.dry); n > 0 && s.out.dry[n-1].DryRun == id {
		s.out.dry[n-1].Results = append(s.out.dry[n-1].Results, found)
		return
	}
	s.out.dry = append(s.out.dry, SaveDryRun{DryRun: id, Results: []model.DryRunResult{found}})
}

// giveUpDryRuns marks what dry runs still want of an agent as not to be had.
func (s *State) giveUpDryRuns(a int32) {
	g := &s.agents[a]
	entries := make([]entry, 0, len(g.queues[DryRun].heap)+len(g.parked))
	entries = append(entries, g.queues[DryRun].heap...)
	for _, p := range g.parked {
		entries = append(entries, p.entry)
	}
	for _, e := range entries {
		if e.ref >= 0 || !s.stands(e, DryRun) || s.extras[^e.ref].dry == nil {
			continue
		}
		s.extras[^e.ref].queued = false
		g.queues[DryRun].live--
		s.depth[DryRun]--
		s.dryRunFound(^e.ref, s.agentLost(^e.ref))
	}
}

// dryRunResult reads a handler's result as a dry run's (server reference, section 8.10).
func dryRunResult(res model.Result) model.DryRunResult {
	d := model.DryRunResult{DryRun: res.DryRun, Resource: res.Resource, Changes: res.Changes, Status: model.DiffUnmodified}
	if n := len(res.Log); n > 0 {
		d.Message = res.Log[n-1].Message
	}
	switch {
	case res.Outcome == model.OutcomeUnavailable:
		d.Status = model.DiffResourceNotSupported
	case res.Outcome == model.OutcomeFailed:
		d.Status = model.DiffModified
		text, err := json.Marshal(d.Message)
		if err != nil {
			text = []byte(`""`)
		}
		d.Changes = model.Diff{"handler": {Current: json.RawMessage(`"FAILED"`), Desired: text}}
	case res.Change == model.ChangeCreated:
		d.Status = model.DiffAdded
	case res.Change == model.ChangePurged:
		d.Status = model.DiffDeleted
	case len(res.Changes) > 0:
		d.Status = model.DiffModified
	}
	return d
}
