package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/intendant/intendant/model"
)

func (s *State) markReady(a int32) {
	if !s.agents[a].ready {
		s.agents[a].ready = true
		s.ready = append(s.ready, a)
	}
}

// pump gives work to the agents that may take some.
func (s *State) pump() {
	for k := range len(s.ready) {
		a := s.ready[k]
		s.agents[a].ready = false
		s.serve(a)
	}
	s.ready = s.ready[:0]
}

func (s *State) serve(a int32) {
	g := &s.agents[a]
	if s.halt || g.paused {
		s.setAgentTimer(a)
		return
	}
	if !g.up {
		s.await(a)
		return
	}
	for g.inFlight < s.cfg.TasksPerAgent {
		e, p, ok := s.pick(a)
		if !ok {
			break
		}
		g.queues[p].pop()
		g.queues[p].live--
		s.depth[p]--
		if e.ref < 0 {
			s.startExtra(^e.ref, p)
		} else {
			s.start(e.ref)
		}
	}
}

// stands tells whether an entry of a queue is still what its request says.
func (s *State) stands(e entry, p Priority) bool {
	if e.ref < 0 {
		x := &s.extras[^e.ref]
		return x.queued && x.seq == e.seq
	}
	r := &s.res[e.ref]
	return r.phase == queued && r.ask.seq == e.seq && r.ask.prio == p
}

// pick finds the request that an agent serves next: that of the highest priority, or the oldest one when that has been
// passed over too often.
func (s *State) pick(a int32) (entry, Priority, bool) {
	g := &s.agents[a]
	for {
		best, oldest := -1, -1
		for p := range g.queues {
			q := &g.queues[p]
			for len(q.heap) > 0 && !s.stands(q.heap[0], Priority(p)) {
				q.pop()
			}
			if len(q.heap) == 0 {
				continue
			}
			if best < 0 {
				best = p
			}
			if oldest < 0 || q.heap[0].seq < g.queues[oldest].heap[0].seq {
				oldest = p
			}
		}
		if best < 0 {
			return entry{}, 0, false
		}
		p := best
		if oldest != best && g.passed >= s.cfg.FairShare {
			p = oldest
		}
		e := g.queues[p].heap[0]
		if s.mustPark(e) {
			g.queues[p].pop()
			g.parked = append(g.parked, parked{entry: e, prio: Priority(p)})
			continue
		}
		if p == oldest {
			g.passed = 0
		} else {
			g.passed++
		}
		return e, Priority(p), true
	}
}

// mustPark tells whether the resource of a request has a task of another kind in flight.
func (s *State) mustPark(e entry) bool {
	if e.ref >= 0 {
		return s.res[e.ref].extraBusy
	}
	r := &s.res[s.extras[^e.ref].res]
	return r.extraBusy || r.task >= 0
}

func (s *State) unpark(a int32) {
	g := &s.agents[a]
	for _, p := range g.parked {
		if s.stands(p.entry, p.prio) {
			g.queues[p.prio].push(p.entry)
		}
	}
	g.parked = g.parked[:0]
}

func (s *State) hasWork(a int32) bool {
	g := &s.agents[a]
	for p := range g.queues {
		if g.queues[p].live > 0 {
			return true
		}
	}
	return false
}

// newTask takes a slot for a task in flight.
func (s *State) newTask(t task) int32 {
	var i int32
	if n := len(s.freeTasks); n > 0 {
		i = s.freeTasks[n-1]
		s.freeTasks = s.freeTasks[:n-1]
	} else {
		i = int32(len(s.tasks))
		s.tasks = append(s.tasks, task{})
	}
	t.used = true
	s.tasks[i] = t
	if t.id != (model.TaskID{}) {
		s.taskByID[t.id] = i
	}
	if t.counted {
		s.agents[t.agent].inFlight++
	}
	s.running++
	return i
}

// endTask frees the slot of a task and the place that it took at its agent.
func (s *State) endTask(ti int32) task {
	t := s.tasks[ti]
	s.taskTimers.set(ti, never)
	delete(s.taskByID, t.id)
	s.tasks[ti] = task{}
	s.freeTasks = append(s.freeTasks, ti)
	if t.counted {
		s.agents[t.agent].inFlight--
	}
	s.running--
	s.unpark(t.agent)
	s.markReady(t.agent)
	return t
}

// start hands the run of a resource to its agent.
func (s *State) start(i int32) {
	r := &s.res[i]
	deadline := s.now.Add(max(s.cfg.TaskDeadline, timeoutMargin(r.timeout)))
	t := task{
		id: s.newTaskID(), res: i, extra: -1, agent: r.agent, life: r.life, hash: r.intent.AttributeHash, version: s.version,
		ask: r.ask, started: s.now, counted: true, event: r.event,
	}
	if t.ask.trace == "" {
		t.ask.trace = s.trace
	}
	var requires map[model.ResourceID]model.Status
	reload := false
	if len(r.requires) > 0 {
		requires = make(map[model.ResourceID]model.Status, len(r.requires))
		for _, q := range r.requires {
			x := &s.res[q]
			requires[x.state.Resource] = x.state.Status()
			reload = reload || r.receiveEvent && x.sendEvent && x.state.LastProducedEvents.After(r.state.LastSuccess)
		}
	}
	ti := s.newTask(t)
	s.taskTimers.set(ti, deadline.Add(s.cfg.DeadlineGrace).UnixNano())
	r.phase = running
	r.task = ti
	r.event = false
	r.state.Deploying = true
	s.touch(i)
	s.refresh(i)
	s.out.started = append(s.out.started, model.Action{
		ID: t.id, Environment: s.env, Version: s.version, Resource: r.state.Resource, Kind: model.ActionDeploy, Reason: t.ask.reason,
		StartedAt: s.now, Trace: t.ask.trace,
		Log: []model.LogLine{{
			Level: model.LevelInfo, Time: s.now,
			Message: "Resource deploy started on agent " + string(s.agents[r.agent].name) + ", setting status to deploying: " + t.ask.reason,
		}},
	})
	s.out.start = append(s.out.start, model.Task{
		ID: t.id, Environment: s.env, Agent: s.agents[r.agent].name, Kind: t.ask.kind, Intent: r.intent, Version: s.version,
		Reason: t.ask.reason, Trace: t.ask.trace, Deadline: deadline, Requires: requires, Reload: reload,
	})
}

// timeoutMargin is the deadline that a resource's own timeout asks for.
func timeoutMargin(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return 0
	}
	return timeout + time.Minute
}

// taskFinished takes a result, of a task in flight or of any other.
func (s *State) taskFinished(res model.Result) {
	ti, ok := s.taskByID[res.Task]
	if !ok {
		s.late(res)
		return
	}
	if s.tasks[ti].extra >= 0 {
		s.finishExtra(ti, res)
		return
	}
	s.finish(ti, res)
}

func (s *State) finish(ti int32, res model.Result) {
	t := s.endTask(ti)
	i := t.res
	r := &s.res[i]
	res.Resource, res.Environment, res.Kind = r.state.Resource, s.env, t.ask.kind
	if !t.recovery {
		// What was run is what was sent, whatever the agent says.
		res.Version, res.AttributeHash, res.Trace = t.version, t.hash, t.ask.trace
	}
	s.out.finished = append(s.out.finished, res)
	if !s.ended(i) {
		return
	}
	switch {
	case t.life != r.life:
		// The run was for an earlier resource of this id: only the action log tells of it.
	case res.Outcome == model.OutcomeCancelled:
		r.event = r.event || t.event
		switch {
		case r.hasAgain:
		case s.halt:
			// It was withdrawn because of the halt, and waits in the queue for its end.
			s.runAgain(i, t.ask)
		default:
			r.retryAt = s.now.Add(s.cfg.RetryBase).UnixNano()
			r.timerPrio = t.ask.prio
		}
	default:
		s.verified(i)
		s.apply(i, run{res: res, started: t.started, ended: s.now, ask: t.ask})
		if !r.hasAgain && r.state.Compliance == model.HasUpdate {
			s.runAgain(i, s.newVersion())
		}
	}
	s.afterRun(i)
}

// ended takes a run's task from its resource. It tells whether the resource is still managed; else it is let go.
func (s *State) ended(i int32) bool {
	r := &s.res[i]
	r.task = -1
	r.state.Deploying = false
	s.touch(i)
	if !r.managed {
		s.gone = append(s.gone, i)
		s.release(i)
	}
	return r.managed
}

// afterRun lets a resource whose run has ended go idle, or into its next run.
func (s *State) afterRun(i int32) {
	r := &s.res[i]
	if r.hasAgain {
		q := r.again
		r.again, r.hasAgain = ask{}, false
		s.schedule(i, q)
	} else {
		s.release(i)
	}
	s.refresh(i)
	s.arm(i)
}

// run is a result as it is folded into a resource's state.
type run struct {
	res     model.Result
	started time.Time
	ended   time.Time
	ask     ask
}

// apply folds the outcome of a run into the state of its resource (server reference, sections 8.2, 8.3 and 8.6). The result of a
// run of an older intent never makes the resource compliant: compliance follows from the hash.
func (s *State) apply(i int32, u run) {
	r := &s.res[i]
	st := &r.state
	fresh := u.res.AttributeHash == r.intent.AttributeHash
	ranBefore, wasCompliant, hadUpdate := st.LastRun != model.RunNew, st.LastOutcome == model.OutcomeDeployed, st.Compliance == model.HasUpdate
	compliant := u.res.Outcome == model.OutcomeDeployed

	st.LastOutcome, st.LastRunAt = u.res.Outcome, u.ended
	st.DeployedHash, st.DeployedVersion = u.res.AttributeHash, u.res.Version
	switch u.res.Outcome {
	case model.OutcomeDeployed:
		st.LastRun, st.LastSuccess, st.Failures = model.RunSuccessful, u.started, 0
	case model.OutcomeNonCompliant:
		st.LastRun, st.Failures = model.RunSuccessful, 0
	case model.OutcomeSkipped, model.OutcomeSkippedForDependency:
		st.LastRun = model.RunSkipped
	default:
		st.LastRun = model.RunFailed
		st.Failures++
	}
	r.person = fresh && u.res.Retry == model.RetryPerson && !compliant
	if r.person && !r.listed {
		r.listed = true
		s.persons = append(s.persons, i)
	}
	r.quiet = r.person || fresh && u.res.Outcome == model.OutcomeNonCompliant
	r.retryAt = 0
	s.comply(i)
	if !r.impeded {
		st.Blocked = model.NotBlocked
		if fresh && u.res.Outcome == model.OutcomeSkippedForDependency && s.badRequirement(i) {
			st.Blocked = model.TemporarilyBlocked
		}
	}
	if compliant && ranBefore && !wasCompliant {
		s.recover(i, u.ask)
	}
	if fresh && r.sendEvent {
		changed := u.res.Change != "" && u.res.Change != model.ChangeNone
		if changed {
			st.LastProducedEvents = u.ended
		}
		// A run that verified what was known tells nobody: else one repair would run all that depends on the resource, and so on.
		if changed || hadUpdate || wasCompliant != compliant {
			s.emit(i, u.ask)
		}
	}
	s.refresh(i)
	s.touch(i)
}

// recover unblocks what was skipped because of a resource that is compliant again.
func (s *State) recover(i int32, by ask) {
	q := ask{prio: by.prio, kind: model.TaskDeploy, trace: by.trace, reason: "its requirement " + string(s.res[i].state.Resource) + " has recovered"}
	for _, d := range s.res[i].provides {
		x := &s.res[d]
		if x.state.Blocked != model.TemporarilyBlocked {
			continue
		}
		x.state.Blocked = model.NotBlocked
		s.touch(d)
		s.refresh(d)
		s.request(d, q, false)
	}
}

// emit sends an event to what requires a resource and listens.
func (s *State) emit(i int32, by ask) {
	q := ask{prio: by.prio, kind: model.TaskDeploy, trace: by.trace, reason: "an event of its requirement " + string(s.res[i].state.Resource)}
	for _, d := range s.res[i].provides {
		x := &s.res[d]
		if !x.receiveEvent || x.state.Blocked != model.NotBlocked {
			continue
		}
		x.event = true
		s.refresh(d)
		s.request(d, q, true)
	}
}

// late takes a result that no task in flight is waiting for: of a task that was counted as lost, of a predecessor, or of an
// agent that repaired on its own. It is stored in any case, and believed if it is newer than what is known.
func (s *State) late(res model.Result) {
	if res.Kind == model.TaskDryRun {
		s.out.finished = append(s.out.finished, res)
		if res.DryRun != (model.DryRunID{}) && res.Outcome != model.OutcomeCancelled {
			s.saveDry(res.DryRun, dryRunResult(res))
		}
		return
	}
	s.out.finished = append(s.out.finished, res)
	i, ok := s.byID[res.Resource]
	if !ok || !s.res[i].managed || res.Kind == model.TaskFacts || res.AttributeHash == "" || res.Outcome == model.OutcomeCancelled {
		return
	}
	r := &s.res[i]
	if r.task >= 0 {
		if t := s.tasks[r.task]; t.recovery && t.id == (model.TaskID{}) {
			// The run that a predecessor had begun; its id was not known.
			s.out.finished = s.out.finished[:len(s.out.finished)-1]
			s.finish(r.task, res)
		}
		return
	}
	if !res.FinishedAt.After(r.state.LastRunAt) {
		return
	}
	ended := res.FinishedAt
	if ended.After(s.now) {
		ended = s.now
	}
	started := res.StartedAt
	if started.After(ended) {
		started = ended
	}
	s.apply(i, run{res: res, started: started, ended: ended, ask: ask{prio: IntervalDeploy, kind: res.Kind, trace: res.Trace}})
	if r.phase == idle {
		s.arm(i)
	}
}

// lose counts a task as lost: its agent does not answer for it. Nothing is known of what it did, so it is run again: the
// first time at once, later with a growing delay.
func (s *State) lose(ti int32) {
	t := s.endTask(ti)
	if t.id != (model.TaskID{}) {
		s.out.abandoned = append(s.out.abandoned, t.id)
		if !t.lost {
			s.out.cancel = append(s.out.cancel, t.id)
		}
	}
	if t.extra >= 0 {
		s.loseExtra(t)
		return
	}
	i := t.res
	r := &s.res[i]
	if !s.ended(i) {
		return
	}
	r.event = r.event || t.event
	if t.life == r.life && !r.hasAgain {
		if !t.recovery {
			r.state.Failures++
		}
		if r.state.Failures <= 1 || t.recovery {
			q := t.ask
			q.reason = "agent " + string(s.agents[r.agent].name) + " did not report the run before"
			s.runAgain(i, q)
		} else {
			r.retryAt = s.now.Add(s.backoff(r.state.Failures)).UnixNano()
			r.timerPrio = t.ask.prio
		}
	}
	s.afterRun(i)
}

// dispatchFailed takes back a task that has not reached its agent. It keeps its place in the order.
func (s *State) dispatchFailed(id model.TaskID) {
	ti, ok := s.taskByID[id]
	if !ok {
		return
	}
	t := s.endTask(ti)
	s.out.abandoned = append(s.out.abandoned, t.id)
	s.agentDown(AgentDown{Agent: s.agents[t.agent].name})
	if t.extra >= 0 {
		s.requeueExtra(t.extra)
		return
	}
	i := t.res
	r := &s.res[i]
	if !s.ended(i) {
		return
	}
	r.event = r.event || t.event
	if t.life == r.life && !r.impeded && (!r.hasAgain || t.ask.prio <= r.again.prio) {
		r.again, r.hasAgain = t.ask, true
	}
	s.afterRun(i)
}

func (s *State) agentUp(name model.AgentName) {
	a := s.agentSlot(name)
	g := &s.agents[a]
	g.up = true
	g.ensureAt, g.dryAt = never, never
	s.setAgentTimer(a)
	s.markReady(a)
}

func (s *State) agentDown(e AgentDown) {
	a := s.agentSlot(e.Agent)
	g := &s.agents[a]
	g.up = false
	expires := s.now.Add(s.cfg.AgentLostGrace).UnixNano()
	for _, id := range e.Lost {
		ti, ok := s.taskByID[id]
		if !ok || s.tasks[ti].agent != a {
			continue
		}
		t := &s.tasks[ti]
		t.lost = true
		if t.counted {
			t.counted = false
			g.inFlight--
		}
		if expires < s.taskTimers.at(ti) {
			s.taskTimers.set(ti, expires)
		}
	}
	s.markReady(a)
}

// await asks for an agent that has work and is down, now and then.
func (s *State) await(a int32) {
	g := &s.agents[a]
	if !s.hasWork(a) {
		g.ensureAt = never
	} else if now := s.now.UnixNano(); g.ensureAt == never || g.ensureAt <= now {
		s.out.ensure = append(s.out.ensure, g.name)
		g.ensureAt = s.now.Add(s.cfg.EnsureInterval).UnixNano()
	}
	if g.queues[DryRun].live == 0 {
		g.dryAt = never
	} else if g.dryAt == never {
		g.dryAt = s.now.Add(s.cfg.DryRunGrace).UnixNano()
	}
	s.setAgentTimer(a)
}

func (s *State) setAgentTimer(a int32) {
	g := &s.agents[a]
	if g.up || g.paused || s.halt {
		g.ensureAt, g.dryAt = never, never
	}
	s.agentTimers.set(a, min(g.ensureAt, g.dryAt))
}

// paused sets or clears the pause of agents. Work that an unpaused agent was given before goes on.
func (s *State) pause(names []model.AgentName, paused bool) {
	for _, name := range names {
		a := s.agentSlot(name)
		s.agents[a].paused = paused
		if paused {
			s.giveUpDryRuns(a)
		}
		s.markReady(a)
	}
}

// halted stops what has not begun.
func (s *State) halted() {
	if s.halt {
		return
	}
	s.halt = true
	for ti := range s.tasks {
		if t := &s.tasks[ti]; t.used && !t.lost {
			s.out.cancel = append(s.out.cancel, t.id)
		}
	}
	for a := range s.agents {
		s.setAgentTimer(int32(a))
	}
}

func (s *State) resumed() {
	if !s.halt {
		return
	}
	s.halt = false
	for a := range s.agents {
		s.markReady(int32(a))
	}
	s.requestDirty(ask{prio: IntervalDeploy, kind: model.TaskDeploy, reason: "the environment was resumed"})
}

// started recovers what a predecessor left behind. Runs that were in progress may still be: their results are waited for,
// as if their agents had just been lost.
func (s *State) started() {
	expires := s.now.Add(s.cfg.AgentLostGrace).UnixNano()
	resume := func(id model.TaskID, i int32) {
		r := &s.res[i]
		q := ask{prio: IntervalDeploy, kind: model.TaskDeploy, reason: "the scheduler was started", seq: s.nextSeq()}
		ti := s.newTask(task{id: id, res: i, extra: -1, agent: r.agent, life: r.life, ask: q, started: s.now, lost: true, recovery: true})
		s.taskTimers.set(ti, expires)
		r.phase, r.task = running, ti
		r.state.Deploying = true
	}
	for _, a := range slices.Backward(s.recovered) {
		// Of several open runs of one resource, the newest is the one that may still be going on.

		i, ok := s.byID[a.Resource]
		if a.Kind != model.ActionDeploy || !ok || !s.res[i].managed || s.res[i].task >= 0 {
			s.out.abandoned = append(s.out.abandoned, a.ID)
			continue
		}
		resume(a.ID, i)
		s.tasks[s.res[i].task].started = a.StartedAt
	}
	s.recovered = nil
	for i := range s.res {
		r := &s.res[i]
		if r.managed && r.state.Deploying && r.task < 0 {
			resume(model.TaskID{}, int32(i))
		}
		s.arm(int32(i))
	}
	q := ask{prio: IntervalDeploy, kind: model.TaskDeploy, reason: "the scheduler was started"}
	if s.absorbed {
		q = s.newVersion()
		s.out.processed = s.version
		s.absorbed = false
	}
	s.requestDirty(q)
}

// backoff is the delay before the next try after a number of failures in a row.
func (s *State) backoff(failures int) time.Duration {
	limit := 10 * time.Minute
	switch {
	case s.deployEvery > 0:
		limit = s.deployEvery
	case s.repairEvery > 0:
		limit = s.repairEvery
	}
	d := s.cfg.RetryBase
	for ; failures > 1 && d < limit; failures-- {
		d *= 2
	}
	return min(d, limit)
}

// arm sets the timer of a resource (server reference, section 8.8): the repair interval after a compliant run or one that
// waits for a dependency, else the retry's delay or the repair interval, whichever is shorter.
func (s *State) arm(i int32) {
	at, prio := s.due(i)
	if at != never {
		s.res[i].timerPrio = prio
	}
	s.resTimers.set(i, at)
}

func (s *State) due(i int32) (int64, Priority) {
	r := &s.res[i]
	st := &r.state
	if !r.managed || r.impeded || r.phase != idle {
		return never, 0
	}
	if r.retryAt != 0 {
		return r.retryAt, r.timerPrio
	}
	if st.LastRunAt.IsZero() {
		return never, 0
	}
	repair := s.repairEvery
	if st.Compliance == model.Compliant || st.Blocked == model.TemporarilyBlocked || r.person {
		if repair == 0 {
			return never, 0
		}
		return st.LastRunAt.Add(repair).UnixNano(), IntervalRepair
	}
	deploy := s.deployEvery
	if deploy > 0 && st.Failures > 0 {
		deploy = s.backoff(st.Failures)
	}
	switch {
	case deploy > 0 && (repair == 0 || deploy <= repair):
		return st.LastRunAt.Add(deploy).UnixNano(), IntervalDeploy
	case repair > 0:
		return st.LastRunAt.Add(repair).UnixNano(), IntervalRepair
	}
	return never, 0
}

func (s *State) settings(set model.Settings) {
	s.deployEvery, s.repairEvery = interval(set.DeployInterval), interval(set.RepairInterval)
	for i := range s.res {
		s.arm(int32(i))
	}
}

// timersFired does what is due, up to a limit; the next SetTimer is then in the past and the rest follows.
func (s *State) timersFired() {
	now := s.now.UnixNano()
	left := s.cfg.TimersPerStep
	for ; left > 0 && s.taskTimers.next() <= now; left-- {
		ti := s.taskTimers.heap[0].slot
		s.lose(ti)
	}
	for ; left > 0 && s.agentTimers.next() <= now; left-- {
		a := s.agentTimers.heap[0].slot
		if s.agents[a].dryAt <= now {
			s.giveUpDryRuns(a)
			s.agents[a].dryAt = never
		}
		s.agentTimers.set(a, never)
		s.markReady(a)
	}
	for ; left > 0 && s.resTimers.next() <= now; left-- {
		i := s.resTimers.heap[0].slot
		s.resTimers.set(i, never)
		r := &s.res[i]
		q := ask{prio: r.timerPrio, kind: r.timerPrio.kind()}
		switch {
		case r.retryAt != 0:
			q.reason = "the run before was not finished"
		case q.prio == IntervalRepair:
			q.reason = fmt.Sprintf("the last run was more than %s ago", s.repairEvery)
		default:
			q.reason = fmt.Sprintf("the last run did not succeed; retry %d", max(r.state.Failures, 1))
		}
		s.request(i, q, false)
	}
}
