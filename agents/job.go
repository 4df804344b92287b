package agents

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// stuckGrace is how long a handler may take to return after its deadline before the agent reports without it.
const stuckGrace = 10 * time.Second

// expireInterval is how often the agent looks for waiting tasks that it can not do in time.
const expireInterval = time.Second

// codeFenced is the code of tasks that were refused because they carry an old epoch.
const codeFenced = "fenced"

// job is a task in the agent.
type job struct {
	task  model.Task
	epoch wire.Epoch
	owner *agentName
	// allowed is the time that the task was given.
	allowed time.Duration
	// offline is true for a repair without the server; done, which has a capacity of 1, then takes the result.
	offline bool
	done    chan model.Result
	begun   bool
	cancel  context.CancelFunc
}

// accept takes tasks from the server.
func (a *Agent) accept(tasks []wire.Task) {
	now := a.cfg.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range tasks {
		w := &tasks[i]
		if a.work[w.ID] != nil || a.spool.has(w.ID) {
			continue
		}
		j := &job{task: w.Model(a.cfg.Environment, now), epoch: w.Epoch, allowed: time.Duration(w.Timeout) * time.Millisecond}
		n := a.agents[w.Agent]
		if n == nil || !n.offered || !n.primary || w.Epoch < n.epoch || a.stopping {
			a.log.Warn("task refused", "task", w.ID, "agent", w.Agent, "epoch", w.Epoch)
			a.finish(j, a.unstarted(j, model.OutcomeCancelled, codeFenced, "The agent is not the primary under the task's epoch."))
			continue
		}
		j.owner = n
		a.enqueue(j)
	}
	a.pump()
}

func (a *Agent) enqueue(j *job) {
	n := j.owner
	a.work[j.task.ID] = j
	n.waiting = append(n.waiting, j)
	if !n.inTurn {
		n.inTurn = true
		a.turn = append(a.turn, n)
	}
}

// cancelTasks withdraws tasks that have not begun.
func (a *Agent) cancelTasks(ids []model.TaskID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if j := a.work[id]; j != nil && !j.begun {
			a.withdraw(j)
			a.finish(j, a.unstarted(j, model.OutcomeCancelled, sdk.CodeCancelled, "The task was withdrawn before it began."))
		}
	}
}

// withdraw takes a waiting task out of the tables.
func (a *Agent) withdraw(j *job) {
	delete(a.work, j.task.ID)
	j.owner.waiting = slices.DeleteFunc(j.owner.waiting, func(o *job) bool { return o == j })
}

// voidWaiting forgets waiting tasks: those of the server, or those of repairs without it.
func (a *Agent) voidWaiting(offline bool, of func(*agentName) bool) {
	for _, n := range a.agents {
		if !of(n) {
			continue
		}
		n.waiting = slices.DeleteFunc(n.waiting, func(j *job) bool {
			if j.offline != offline {
				return false
			}
			delete(a.work, j.task.ID)
			if j.done != nil {
				close(j.done)
			}
			return true
		})
	}
}

// unstarted makes the result of a task whose handler was never called.
func (a *Agent) unstarted(j *job, o model.Outcome, code, message string) model.Result {
	now := a.cfg.Now()
	t := &j.task
	level := model.LevelInfo
	if o == model.OutcomeFailed {
		level = model.LevelError
	}
	return model.Result{
		Task: t.ID, Environment: t.Environment, Resource: t.Intent.Resource, Version: t.Version, Kind: t.Kind,
		AttributeHash: t.Intent.AttributeHash, Outcome: o, Change: model.ChangeNone, StartedAt: now, FinishedAt: now, Trace: t.Trace,
		DryRun: t.DryRun, Code: code, Log: []model.LogLine{{Level: level, Message: message, Time: now}},
	}
}

// finish puts a result into the spool, from where it is sent. The lock must be held.
func (a *Agent) finish(j *job, r model.Result) {
	w := wire.FromResult(r, j.task.Agent, j.epoch)
	w.Offline = j.offline
	a.spool.append(w)
	if j.done != nil {
		j.done <- r
	}
	if a.link != nil {
		a.link.signal()
	}
}

// pump starts tasks while there is room. The lock must be held.
func (a *Agent) pump() {
	if a.stopping {
		return
	}
	for idle := 0; a.active < a.cfg.Parallel && len(a.turn) > 0 && idle < len(a.turn); {
		n := a.turn[0]
		a.turn = a.turn[1:]
		if len(n.waiting) == 0 {
			n.inTurn = false
			continue
		}
		if j := a.choose(n); j != nil {
			a.start(j)
			idle = 0
		} else {
			idle++
		}
		if len(n.waiting) > 0 {
			a.turn = append(a.turn, n)
		} else {
			n.inTurn = false
		}
	}
}

// choose takes the first waiting task of a name that may begin now, or returns nil.
func (a *Agent) choose(n *agentName) *job {
	if n.running >= a.cfg.PerAgent {
		return nil
	}
	connected := a.link != nil
	now := a.cfg.Now()
	for len(n.waiting) > 0 && connected && n.waiting[0].tooLate(now) {
		a.giveBack(n.waiting[0])
	}
	for i, j := range n.waiting {
		if a.busy[j.task.Intent.Resource] || j.offline == connected {
			continue
		}
		if i == 0 {
			n.waiting[0] = nil
			n.waiting = n.waiting[1:]
		} else {
			n.waiting = slices.Delete(n.waiting, i, i+1)
		}
		return j
	}
	return nil
}

func (a *Agent) start(j *job) {
	j.begun = true
	j.owner.running++
	a.active++
	a.busy[j.task.Intent.Resource] = true
	var ctx context.Context
	if j.task.Deadline.IsZero() {
		ctx, j.cancel = context.WithCancel(a.jobsCtx)
	} else {
		ctx, j.cancel = context.WithDeadline(a.jobsCtx, j.task.Deadline)
	}
	l := a.link
	a.jobs.Go(func() { a.run(ctx, j, l) })
}

// run runs one task through its handler.
func (a *Agent) run(ctx context.Context, j *job, l *link) {
	defer j.cancel()
	started := a.cfg.Now()
	cfg := sdk.ContextConfig{Task: j.task, Files: a.files, Now: a.cfg.Now}
	if l != nil && l.streamLogs {
		cfg.Live = func(line model.LogLine) { l.logLine(j.task, line) }
	}
	var reported atomic.Bool
	// A handler that does not return is reported without it. Its resource stays busy until it does: it may still be at work.
	returned := make(chan struct{})
	abandon := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(stuckGrace):
		case <-returned:
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if reported.CompareAndSwap(false, true) {
			a.log.Error("handler does not obey its deadline", "task", j.task.ID, "resource", j.task.Intent.Resource)
			r := a.unstarted(j, model.OutcomeFailed, sdk.CodeDeadline, "The handler did not return at its deadline and is left behind.")
			r.StartedAt = started
			a.release(j)
			a.finish(j, r)
			a.pump()
		}
	})
	result := execute(ctx, cfg, a.cfg.Registry, started)
	close(returned)
	abandon()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, j.task.Intent.Resource)
	if reported.CompareAndSwap(false, true) {
		a.release(j)
		a.finish(j, result)
	}
	a.pump()
	a.notify()
}

// release gives a task's place to the next.
func (a *Agent) release(j *job) {
	delete(a.work, j.task.ID)
	j.owner.running--
	a.active--
}

// execute finds the executor, calls it and makes the result. A panic is a failure of this task alone.
func execute(ctx context.Context, cfg sdk.ContextConfig, registry *sdk.Registry, started time.Time) model.Result {
	resource, err := sdk.NewResource(cfg.Task.Intent, cfg.Task.Version)
	cfg.ReportOnly = err == nil && resource.ReportOnly()
	c := sdk.NewContext(ctx, cfg)
	if err == nil {
		err = registry.Run(c, resource)
	}
	return c.Result(err, started, cfg.Now())
}

// expire gives waiting tasks back for which it has become too late.
func (a *Agent) expire(ctx context.Context) {
	tick := time.NewTicker(expireInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.mu.Lock()
		now := a.cfg.Now()
		for _, n := range a.agents {
			if a.link == nil {
				break // what waits is void when the session is not resumed, and late soon enough when it is
			}
			for _, j := range slices.Clone(n.waiting) {
				if j.tooLate(now) {
					a.giveBack(j)
				}
			}
		}
		a.surrender(now)
		a.mu.Unlock()
	}
}

// giveBack returns a waiting task that can not be done in time: whoever sent it may send it again.
func (a *Agent) giveBack(j *job) {
	a.withdraw(j)
	r := a.unstarted(j, model.OutcomeCancelled, sdk.CodeDeadline, "The agent was busy until there was too little time left for the task.")
	r.Retry = model.RetryLater
	a.finish(j, r)
}

// tooLate tells whether more than half of a task's time has passed. It is not begun then: it would be cut off in its midst.
func (j *job) tooLate(now time.Time) bool {
	return !j.offline && !j.task.Deadline.IsZero() && now.After(j.task.Deadline.Add(-j.allowed/2))
}

// surrender cancels running tasks of names that another process may have taken over, since the server can not be reached.
func (a *Agent) surrender(now time.Time) {
	if a.link != nil || a.window == 0 || now.Sub(a.away) < a.window {
		return
	}
	for _, j := range a.work {
		if j.begun && !j.offline && j.owner.standbys > 0 {
			j.cancel()
		}
	}
}
