package engine

import (
	"fmt"
	"slices"

	"github.com/intendant/intendant/model"
)

// Idle tells whether nothing is asked of a resource.
func (s *State) Idle(id model.ResourceID) bool {
	i, ok := s.byID[id]
	return !ok || s.res[i].phase == idle
}

// Check recomputes everything that the state keeps twice.
func (s *State) Check() error {
	var depth [Priorities]int
	waits, runs, managed, dirty := 0, 0, 0, 0
	for k := range s.res {
		i := int32(k)
		r := &s.res[i]
		if r.state.Resource == "" {
			continue
		}
		name := r.state.Resource
		if s.byID[name] != i {
			return fmt.Errorf("%s is not found by its id", name)
		}
		if r.managed {
			managed++
		}
		wait, blockers := int32(0), int32(0)
		for _, q := range r.requires {
			if s.res[q].phase != idle {
				wait++
			}
			if s.res[q].impeded {
				blockers++
			}
			if count(s.res[q].provides, i) != 1 {
				return fmt.Errorf("%s requires %s, which does not know once", name, s.res[q].state.Resource)
			}
		}
		for _, d := range r.provides {
			if count(s.res[d].requires, i) != 1 {
				return fmt.Errorf("%s provides for %s, which does not know once", name, s.res[d].state.Resource)
			}
		}
		impeded := r.managed && (r.intent.Undefined || blockers > 0)
		switch {
		case blockers != r.blockers:
			return fmt.Errorf("%s has %d blockers, counted as %d", name, blockers, r.blockers)
		case impeded != r.impeded:
			return fmt.Errorf("%s is impeded: %v, kept as %v", name, impeded, r.impeded)
		case r.managed && impeded != (r.state.Blocked == model.IsBlocked):
			return fmt.Errorf("%s is impeded: %v, and %s", name, impeded, r.state.Blocked)
		case (r.phase == waiting || r.phase == queued) && wait != r.wait:
			return fmt.Errorf("%s waits for %d, counted as %d", name, wait, r.wait)
		case r.phase == waiting && wait == 0, r.phase == queued && wait > 0:
			return fmt.Errorf("%s is in phase %d and waits for %d", name, r.phase, wait)
		case r.phase != idle && r.phase != running && (impeded || !r.managed):
			return fmt.Errorf("%s is asked for although it is blocked or gone", name)
		case (r.phase == running) != (r.task >= 0), r.managed && r.state.Deploying != (r.task >= 0):
			return fmt.Errorf("%s is in phase %d, deploying %v, with task %d", name, r.phase, r.state.Deploying, r.task)
		case r.phase != idle && s.resTimers.at(i) != never:
			return fmt.Errorf("%s has a timer while it is asked for", name)
		case r.phase == idle && r.hasAgain:
			return fmt.Errorf("%s is to run again but does not run", name)
		}
		d := r.managed && r.state.Blocked == model.NotBlocked &&
			(r.state.Compliance == model.HasUpdate || r.state.Compliance == model.NonCompliant && !r.quiet || r.event)
		if d != (r.dirtyAt != 0) {
			return fmt.Errorf("%s is dirty: %v, kept as %v", name, d, r.dirtyAt != 0)
		}
		if d {
			dirty++
		}
		// What has an update is on its way, or a timer will see to it.
		if r.managed && !r.impeded && r.state.Compliance == model.HasUpdate && r.state.Blocked == model.NotBlocked && r.phase == idle && s.resTimers.at(i) == never {
			return fmt.Errorf("%s has an update that nothing will deploy: %+v", name, r.state)
		}
		if at, _ := s.due(i); at != s.resTimers.at(i) {
			return fmt.Errorf("%s has its timer at %d, want %d", name, s.resTimers.at(i), at)
		}
		switch r.phase {
		case waiting:
			waits++
		case queued:
			depth[r.ask.prio]++
			if !s.listed(r.agent, r.ask.prio, entry{seq: r.ask.seq, ref: i}) {
				return fmt.Errorf("%s is queued but not in the queue", name)
			}
		case idle, running:
		}
	}
	for k := range s.extras {
		x := &s.extras[k]
		if x.used && x.queued {
			depth[x.priority()]++
		}
	}
	inFlight := make([]int, len(s.agents))
	for k := range s.tasks {
		if t := &s.tasks[k]; t.used {
			runs++
			if t.counted {
				inFlight[t.agent]++
			}
			if s.taskTimers.at(int32(k)) == never {
				return fmt.Errorf("task %s has no deadline", t.id)
			}
		}
	}
	for a := range s.agents {
		if g := &s.agents[a]; g.inFlight != inFlight[a] || g.inFlight > s.cfg.TasksPerAgent {
			return fmt.Errorf("agent %s has %d tasks, counted as %d", g.name, inFlight[a], g.inFlight)
		}
	}
	if depth != s.depth || waits != s.waiting || runs != s.running || managed != s.managed || dirty != len(s.dirty) {
		return fmt.Errorf("counted %v %d %d %d %d, kept %v %d %d %d %d", depth, waits, runs, managed, dirty, s.depth, s.waiting, s.running, s.managed, len(s.dirty))
	}
	return nil
}

func (s *State) listed(a int32, p Priority, e entry) bool {
	if slices.Contains(s.agents[a].queues[p].heap, e) {
		return true
	}
	for _, x := range s.agents[a].parked {
		if x.entry == e {
			return true
		}
	}
	return false
}

func count(xs []int32, x int32) int {
	n := 0
	for _, y := range xs {
		if y == x {
			n++
		}
	}
	return n
}
