package engine

import (
	"github.com/intendant/intendant/model"
)

// request asks for a resource to be run. force makes a running resource run once more; without it, that happens only when
// its intent has changed since the run began. Blocked resources are passed over.
func (s *State) request(i int32, q ask, force bool) {
	r := &s.res[i]
	if !r.managed || r.impeded {
		return
	}
	switch r.phase {
	case idle:
		q.seq = s.nextSeq()
		s.schedule(i, q)
	case waiting, queued:
		if q.prio < r.ask.prio {
			// A request of a higher priority counts as new.
			if r.phase == queued {
				s.unqueue(i)
			}
			q.seq = s.nextSeq()
			r.ask = q
			if r.phase == queued {
				s.enqueue(i)
			}
			s.raiseRequirements(i)
		}
	case running:
		t := &s.tasks[r.task]
		if force || t.life != r.life || !t.recovery && t.hash != r.intent.AttributeHash {
			s.runAgain(i, q)
		} else if q.prio < t.ask.prio {
			t.ask.prio = q.prio
		}
	}
}

// runAgain notes that a running resource must be run once more.
func (s *State) runAgain(i int32, q ask) {
	r := &s.res[i]
	if r.impeded || !r.managed {
		return
	}
	if !r.hasAgain || q.prio < r.again.prio {
		q.seq = s.nextSeq()
		r.again, r.hasAgain = q, true
	}
}

// schedule takes a resource that is idle, or whose run has just ended, into the cycle. What depends on it and has not begun
// waits for it again.
func (s *State) schedule(i int32, q ask) {
	r := &s.res[i]
	r.retryAt = 0
	s.resTimers.set(i, never)
	wasIdle := r.phase == idle
	r.phase = waiting
	s.waiting++
	s.stack = s.stack[:0]
	for _, d := range r.provides {
		x := &s.res[d]
		switch {
		case x.phase == queued:
			s.pushBack(d)
			x.wait++
			s.stack = append(s.stack, d)
			q.prio = min(q.prio, x.ask.prio)
		case x.phase == waiting:
			if wasIdle {
				x.wait++
			}
			q.prio = min(q.prio, x.ask.prio)
		case x.phase == running && wasIdle:
			s.runAgain(d, ask{
				prio: s.tasks[x.task].ask.prio, kind: s.tasks[x.task].ask.kind, trace: q.trace,
				reason: "its requirement " + string(r.state.Resource) + " was to be deployed while it ran",
			})
		}
	}
	r.ask = q
	r.wait = 0
	for _, x := range r.requires {
		if s.res[x].phase != idle {
			r.wait++
		}
	}
	// What was pushed back is next as soon as this is done; raise uses the stack, so it is emptied first.
	pushed := s.stack
	s.stack = nil
	for _, d := range pushed {
		s.raise(d, q.prio)
	}
	s.stack = pushed[:0]
	if r.wait == 0 {
		s.waiting--
		s.enqueue(i)
		return
	}
	s.raiseRequirements(i)
}

// raise gives a waiting or queued request at least a priority, without making it a new one, and what it waits for likewise.
func (s *State) raise(i int32, p Priority) {
	s.stack = append(s.stack, i)
	s.raiseStack(p)
}

// raiseRequirements lets what a request waits for inherit its priority.
func (s *State) raiseRequirements(i int32) {
	r := &s.res[i]
	if r.wait == 0 {
		return
	}
	s.stack = append(s.stack, r.requires...)
	s.raiseStack(r.ask.prio)
}

func (s *State) raiseStack(p Priority) {
	for len(s.stack) > 0 {
		i := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		r := &s.res[i]
		switch r.phase {
		case queued:
			if r.ask.prio > p {
				s.unqueue(i)
				r.ask.prio = p
				s.enqueue(i)
			}
		case waiting:
			if r.ask.prio > p {
				r.ask.prio = p
				s.stack = append(s.stack, r.requires...)
			}
		case running:
			if r.hasAgain && r.again.prio > p {
				r.again.prio = p
			}
		case idle:
		}
	}
}

// enqueue puts a request that waits for nothing in its agent's queue.
func (s *State) enqueue(i int32) {
	r := &s.res[i]
	r.phase = queued
	s.push(r.agent, r.ask.prio, entry{seq: r.ask.seq, ref: i})
}

func (s *State) push(a int32, p Priority, e entry) {
	q := &s.agents[a].queues[p]
	q.live++
	q.push(e)
	q.compact(func(e entry) bool { return s.stands(e, p) })
	s.depth[p]++
	s.markReady(a)
}

// unqueue takes a request off its queue's count; its entry stays and no longer stands.
func (s *State) unqueue(i int32) {
	r := &s.res[i]
	s.agents[r.agent].queues[r.ask.prio].live--
	s.depth[r.ask.prio]--
}

// pushBack makes a queued request wait.
func (s *State) pushBack(i int32) {
	s.unqueue(i)
	s.res[i].phase = waiting
	s.waiting++
}

// unwait releases one link of a waiting request.
func (s *State) unwait(i int32) {
	r := &s.res[i]
	r.wait--
	if r.wait == 0 {
		s.waiting--
		s.enqueue(i)
	}
}

// release makes a resource idle and wakes what waited for it.
func (s *State) release(i int32) {
	r := &s.res[i]
	r.phase = idle
	for _, d := range r.provides {
		if s.res[d].phase == waiting {
			s.unwait(d)
		}
	}
}

// drop ends a request that has not begun.
func (s *State) drop(i int32) {
	switch s.res[i].phase {
	case queued:
		s.unqueue(i)
	case waiting:
		s.waiting--
	case idle, running:
		return
	}
	s.release(i)
}

// verified tells the users' repairs that wait for a resource that they need not wait any longer.
func (s *State) verified(i int32) {
	r := &s.res[i]
	for _, k := range r.repairs {
		s.repairs[k].left--
		if s.repairs[k].left == 0 {
			s.commandDone(s.repairs[k].command)
		}
	}
	r.repairs = nil
}

func (s *State) commandDone(id model.CommandID) {
	delete(s.commands, id)
	s.out.done = append(s.out.done, id)
}

// command carries out a user's deploy or repair.
func (s *State) command(c model.Command) {
	if _, known := s.commands[c.ID]; known {
		return
	}
	switch c.Kind {
	case model.CommandDeploy:
		q := ask{prio: UserDeploy, kind: model.TaskDeploy, trace: c.Trace, reason: reasonOf(c, "a user requested a deploy")}
		s.inScope(c, func(i int32) {
			if r := &s.res[i]; r.dirtyAt != 0 || r.person && r.state.Blocked == model.NotBlocked && r.state.Compliance == model.NonCompliant {
				s.request(i, q, false)
			}
		})
		s.out.done = append(s.out.done, c.ID)
	case model.CommandRepair:
		s.repair(c)
	case model.CommandRefresh:
		// The shell reads again what this is about, and tells by events of their own.
		s.out.done = append(s.out.done, c.ID)
	case model.CommandFacts:
		s.facts(c, nil)
	case model.CommandDryRun:
		// It comes as a DryRunVersion, with the version's intents.
	}
}

func reasonOf(c model.Command, fallback string) string {
	if c.Reason != "" {
		return c.Reason
	}
	return fallback
}

// repair queues everything in a repair's scope that was not run since it was asked for. The command stays until all of it
// has been run, so that a repair is resumed by whoever takes over the environment.
func (s *State) repair(c model.Command) {
	q := ask{prio: UserRepair, kind: model.TaskRepair, trace: c.Trace, reason: reasonOf(c, "a user requested a repair")}
	k := int32(len(s.repairs))
	for j := range s.repairs {
		if s.repairs[j].left == 0 {
			k = int32(j)
			break
		}
	}
	if int(k) == len(s.repairs) {
		s.repairs = append(s.repairs, repair{})
	}
	left := 0
	s.inScope(c, func(i int32) {
		r := &s.res[i]
		if r.impeded || r.state.LastRunAt.After(c.CreatedAt) {
			return
		}
		left++
		r.repairs = append(r.repairs, k)
		s.request(i, q, false)
	})
	s.repairs[k] = repair{command: c.ID, left: left}
	if left == 0 {
		s.out.done = append(s.out.done, c.ID)
		return
	}
	s.commands[c.ID] = struct{}{}
}

// inScope calls f for each managed resource that a command's filters let through.
func (s *State) inScope(c model.Command, f func(int32)) {
	agents := make([]bool, len(s.agents))
	for _, name := range c.Agents {
		if a, ok := s.agentByID[name]; ok {
			agents[a] = true
		}
	}
	visit := func(i int32) {
		if s.res[i].managed && (len(c.Agents) == 0 || agents[s.res[i].agent]) {
			f(i)
		}
	}
	if len(c.Resources) > 0 {
		for _, id := range c.Resources {
			if i, ok := s.byID[id]; ok {
				visit(i)
			}
		}
		return
	}
	for i := range s.res {
		visit(int32(i))
	}
}

// requestDirty asks for everything that is dirty.
func (s *State) requestDirty(q ask) {
	// A request never changes what is dirty.
	for _, i := range s.dirty {
		s.request(i, q, false)
	}
}

// globalRepair asks for everything that was last run before a time.
func (s *State) globalRepair(e GlobalRepair) {
	q := ask{prio: IntervalRepair, kind: model.TaskRepair, reason: "a global repair was triggered by cron"}
	for i := range s.res {
		if r := &s.res[i]; r.managed && r.state.LastRunAt.Before(e.Since) {
			s.request(int32(i), q, false)
		}
	}
}
