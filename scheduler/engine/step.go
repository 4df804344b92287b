package engine

import (
	"time"

	"github.com/intendant/intendant/model"
)

// Step folds an event in and returns what is to be done, in order. now must not go back.
func (s *State) Step(now time.Time, e Event) []Effect {
	s.now = now
	switch e := e.(type) {
	case Started:
		s.started()
	case VersionReleased:
		s.absorb(e)
	case TaskFinished:
		s.taskFinished(e.Result)
	case DispatchFailed:
		s.dispatchFailed(e.Task)
	case AgentUp:
		s.agentUp(e.Agent)
	case AgentDown:
		s.agentDown(e)
	case AgentPaused:
		s.pause(e.Agents, true)
	case AgentResumed:
		s.pause(e.Agents, false)
	case CommandReceived:
		s.command(e.Command)
	case DryRunVersion:
		s.dryRunVersion(e)
	case FactsRequested:
		s.facts(e.Command, e.Intents)
	case GlobalDeploy:
		s.requestDirty(ask{prio: IntervalDeploy, kind: model.TaskDeploy, reason: "a global deploy was triggered by cron"})
	case GlobalRepair:
		s.globalRepair(e)
	case SettingsChanged:
		s.settings(e.Settings)
	case TimerFired:
		s.timerSet = never
		s.timersFired()
	case Halted:
		s.halted()
	case Resumed:
		s.resumed()
	}
	s.pump()
	return s.flush()
}

// flush turns what the step has gathered into effects.
func (s *State) flush() []Effect {
	o := s.out
	s.out = output{}
	var effects []Effect
	for _, d := range o.dry {
		effects = append(effects, d)
	}
	if len(s.touched) > 0 || o.processed != 0 || len(o.started)+len(o.finished)+len(o.abandoned) > 0 {
		save := SaveState{Processed: o.processed, Started: o.started, Finished: o.finished, Abandoned: o.abandoned}
		if len(s.touched) > 0 {
			save.States = make([]model.ResourceState, len(s.touched))
			for k, i := range s.touched {
				s.res[i].touched = false
				save.States[k] = s.res[i].state
			}
			s.touched = s.touched[:0]
		}
		effects = append(effects, save)
	}
	s.reap()
	for _, id := range o.done {
		effects = append(effects, DoneCommand{Command: id})
	}
	if len(o.cancel) > 0 {
		effects = append(effects, CancelTask{Tasks: o.cancel})
	}
	for _, t := range o.start {
		effects = append(effects, StartTask{Task: t})
	}
	if len(o.ensure) > 0 {
		effects = append(effects, EnsureAgent{Agents: o.ensure})
	}
	if at := min(s.resTimers.next(), s.taskTimers.next(), s.agentTimers.next()); at != s.timerSet {
		s.timerSet = at
		if at == never {
			effects = append(effects, SetTimer{})
		} else {
			effects = append(effects, SetTimer{At: time.Unix(0, at).UTC()})
		}
	}
	if b := s.running+s.waiting+s.queuedTotal() > 0; b != s.busy {
		s.busy = b
		if b {
			effects = append(effects, Announce{Kind: Busy})
		} else {
			effects = append(effects, Announce{Kind: Settled})
		}
	}
	return effects
}

func (s *State) queuedTotal() int {
	n := 0
	for _, d := range s.depth {
		n += d
	}
	return n
}
