package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler/engine"
)

// Why a loop stops before the server does.
var (
	errLeaseLost      = errors.New("the lease was lost")
	errNotSchedulable = errors.New("the environment is gone")
	errStale          = errors.New("the environment has gone back to an older version")
)

// The delays of a loop's own tries.
const (
	firstRetry   = 100 * time.Millisecond
	lastRetry    = 5 * time.Second
	agentRecheck = 5 * time.Second
	turnSize     = 2048 // events of one turn at most
)

// looks says what a loop must read from the store.
type looks uint8

const (
	lookVersion looks = 1 << iota
	lookCommands
	lookControls
)

// input is something for a loop's goroutine: an event, or a query of the state. done, when not nil, has room for one answer,
// given once the turn is stored.
type input struct {
	event engine.Event
	query func(*engine.State)
	done  chan error
}

// loop schedules one environment.
type loop struct {
	s    *Scheduler
	env  model.EnvironmentID
	log  *slog.Logger
	seed uint64

	lease  atomic.Pointer[model.Lease]
	stats  atomic.Pointer[engine.Stats]
	halted atomic.Bool
	signal chan struct{} // capacity 1: there is something to take
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	inbox  []input
	wanted looks
	closed bool
	why    error
	news   *model.SchedulerNews // what the last poll said

	timer, deployCron, repairCron, expiry, recheck, retry *alarm

	// Only the loop's goroutine uses what follows.
	state    *engine.State
	settings model.Settings
	deploys  cron.Schedule
	repairs  cron.Schedule
	known    map[model.CommandID]struct{}
	ensuring atomic.Bool
	// dismissed is true once the agents of a halted environment were told to stop.
	dismissed bool
	// code is what agents need of the Python code of versions that had tasks of late.
	code map[int]map[model.AgentName]string
}

// newLoop makes the loop of an environment; cancel ends the context that run is given.
func newLoop(s *Scheduler, lease model.Lease, seed uint64, cancel context.CancelFunc) *loop {
	l := &loop{
		s: s, env: lease.Environment, log: s.log.With("environment", lease.Environment.String()), seed: seed,
		signal: make(chan struct{}, 1), cancel: cancel, known: map[model.CommandID]struct{}{},
	}
	ring := func(e func() engine.Event) *alarm { return newAlarm(func() { l.send(input{event: e()}) }) }
	l.timer = ring(func() engine.Event { return engine.TimerFired{} })
	l.deployCron = ring(func() engine.Event { return cronTick{} })
	l.repairCron = ring(func() engine.Event { return cronTick{repair: true} })
	l.expiry = newAlarm(func() { l.drop(errLeaseLost) })
	l.recheck = ring(func() engine.Event { return recheckAgents{} })
	l.retry = newAlarm(func() { l.look(lookVersion | lookCommands | lookControls) })
	l.prolong(lease)
	return l
}

// The loop's own events; it turns them into those of the engine.
type (
	cronTick struct {
		engine.Event
		repair bool
	}
	recheckAgents struct{ engine.Event }
)

// prolong takes over a renewed lease.
func (l *loop) prolong(lease model.Lease) {
	l.lease.Store(&lease)
	l.s.alarms.set(l.expiry, lease.ExpiresAt)
}

// send puts an input in the inbox. It tells whether the loop still takes any.
func (l *loop) send(in input) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.inbox = append(l.inbox, in)
	l.poke()
	return true
}

// look makes the loop read something from the store.
func (l *loop) look(what looks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted |= what
	l.poke()
}

func (l *loop) poke() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// isNews tells whether a poll says something else than the one before.
func (l *loop) isNews(n model.SchedulerNews) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.news != nil && reflect.DeepEqual(*l.news, n) {
		return false
	}
	l.news = &n
	return true
}

// drop stops the loop at once: nothing more is stored or handed out.
func (l *loop) drop(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = why
		l.cancel()
	}
}

// run schedules until ctx ends or the loop is dropped. It tells whether something went wrong that may go wrong again.
func (l *loop) run(ctx context.Context) (failed bool) {
	err := l.work(ctx)
	stopped := ctx.Err() != nil
	l.cancel()
	for _, a := range []*alarm{l.timer, l.deployCron, l.repairCron, l.expiry, l.recheck, l.retry} {
		l.s.alarms.set(a, time.Time{})
	}
	l.mu.Lock()
	l.closed = true
	rest := l.inbox
	l.inbox = nil
	if l.why != nil {
		err = l.why
	}
	l.mu.Unlock()
	answer(rest, notOwned(l.env))
	l.tasks.Wait()
	if errors.Is(err, errLeaseLost) || errors.Is(err, model.ErrFenced) {
		l.s.metrics.leases.WithLabelValues("lost").Inc()
		l.log.Warn("the environment was taken over by another server, or the lease could not be renewed", "error", err)
		return false
	}
	failed = err != nil && !stopped && !errors.Is(err, errNotSchedulable) && !errors.Is(err, errStale)
	if failed {
		l.log.Error("scheduling stopped; it begins again from the stored state", "error", err)
	}
	if errors.Is(err, errNotSchedulable) {
		// It was cleared or deleted.
		l.stopAgents(context.WithoutCancel(ctx))
	}
	l.s.metrics.leases.WithLabelValues("released").Inc()
	l.release(context.WithoutCancel(ctx))
	return failed
}

func (l *loop) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.StoreTimeout)
	defer cancel()
	if err := l.s.cfg.Store.ReleaseLease(ctx, *l.lease.Load()); err != nil {
		l.log.Warn("the lease could not be given up; it ends by itself", "error", err)
	}
}

// work loads the environment and takes turns until something stops it.
func (l *loop) work(ctx context.Context) error {
	if err := l.load(ctx); err != nil {
		return err
	}
	for {
		if err := l.turn(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.signal:
		}
	}
}

// load reads the snapshot, trying until it succeeds, and makes the first turn's events.
func (l *loop) load(ctx context.Context) error {
	var snap model.Snapshot
	err := l.try(ctx, "the environment could not be loaded", func(ctx context.Context) error {
		select {
		case l.s.loads <- struct{}{}:
			defer func() { <-l.s.loads }()
		case <-ctx.Done():
			return ctx.Err()
		}
		var err error
		snap, err = l.s.cfg.Store.Snapshot(ctx, l.env)
		if errors.Is(err, model.ErrNotFound) {
			return errNotSchedulable
		}
		return err
	})
	if err != nil {
		return err
	}
	cfg := l.s.cfg.Engine
	cfg.Seed = l.seed
	l.state = engine.New(cfg, snap)
	l.halted.Store(snap.Environment.Halted)
	events := []input{{event: engine.Started{}}}
	for _, name := range l.s.cfg.Dispatcher.Agents(l.env) {
		events = append(events, input{event: engine.AgentUp{Agent: name}})
	}
	l.setSettings(snap.Settings)
	if l.repairs != nil {
		// Of the repair that was due last, what was not verified since is still owed.
		if at := previous(l.repairs, time.Now()); !at.IsZero() {
			events = append(events, input{event: engine.GlobalRepair{Since: at}})
		}
	}
	l.mu.Lock()
	l.inbox = append(events, l.inbox...)
	l.wanted |= lookCommands
	l.mu.Unlock()
	l.log.Info("scheduling", "version", snap.Version, "resources", len(snap.Intents), "token", l.lease.Load().Token)
	return nil
}

// turn takes what has come in, steps the engine, stores, hands out and acknowledges, until there is nothing left.
func (l *loop) turn(ctx context.Context) error {
	for {
		l.mu.Lock()
		n := min(len(l.inbox), turnSize)
		batch := l.inbox[:n:n]
		l.inbox = l.inbox[n:]
		if len(l.inbox) == 0 {
			l.inbox = nil
		}
		wanted := l.wanted
		l.wanted = 0
		l.mu.Unlock()
		if n == 0 && wanted == 0 {
			return nil
		}
		if ctx.Err() != nil {
			answer(batch, notOwned(l.env))
			return nil //nolint:nilerr // the batch has its answer; the loop ends
		}
		if wanted != 0 {
			events, err := l.read(ctx, wanted)
			if err != nil {
				answer(batch, notOwned(l.env))
				return err
			}
			batch = append(events, batch...)
		}
		if err := l.fold(ctx, batch); err != nil {
			return err
		}
	}
}

func answer(batch []input, err error) {
	for _, in := range batch {
		if in.done != nil {
			in.done <- err
		}
	}
}

// fold steps the engine for a batch, commits what that gave, and answers.
func (l *loop) fold(ctx context.Context, batch []input) error {
	var p plan
	now := time.Now().UTC()
	for _, in := range batch {
		if in.query != nil {
			in.query(l.state)
			continue
		}
		for _, e := range l.translate(in.event, now) {
			begin := time.Now()
			p.add(l.state.Step(now, e))
			l.s.metrics.steps.Observe(time.Since(begin).Seconds())
		}
	}
	if err := l.commit(ctx, &p, now); err != nil {
		if errors.Is(err, model.ErrInvalid) {
			// Something in it can never be stored. Whoever sent it must not send it for ever.
			answer(batch, err)
		} else {
			answer(batch, notOwned(l.env))
		}
		return err
	}
	l.act(ctx, &p)
	st := l.state.Stats()
	l.stats.Store(&st)
	l.halted.Store(l.state.Halted())
	l.dismiss(ctx, st.Running)
	answer(batch, nil)
	return nil
}

// translate turns the loop's own events into the engine's.
func (l *loop) translate(e engine.Event, now time.Time) []engine.Event {
	switch e := e.(type) {
	case cronTick:
		l.setCron(now)
		if e.repair {
			return []engine.Event{engine.GlobalRepair{Since: now}}
		}
		return []engine.Event{engine.GlobalDeploy{}}
	case recheckAgents:
		up := l.s.cfg.Dispatcher.Agents(l.env)
		var events []engine.Event
		waited := l.state.AgentsWaitedFor()
		for _, name := range waited {
			if slices.Contains(up, name) {
				events = append(events, engine.AgentUp{Agent: name})
			}
		}
		if len(events) < len(waited) {
			l.s.alarms.set(l.recheck, now.Add(agentRecheck))
		}
		return events
	}
	return []engine.Event{e}
}

// plan is what the steps of one turn ask for: everything to be stored, then everything to be done, in order.
type plan struct {
	progress model.Progress
	dry      []engine.SaveDryRun
	acts     []engine.Effect
	states   map[model.ResourceID]int
}

func (p *plan) add(effects []engine.Effect) {
	for _, f := range effects {
		switch f := f.(type) {
		case engine.SaveState:
			p.save(f)
		case engine.SaveDryRun:
			p.dry = append(p.dry, f)
		case engine.DoneCommand:
			p.progress.DoneCommands = append(p.progress.DoneCommands, f.Command)
		default:
			p.acts = append(p.acts, f)
		}
	}
}

// save merges a step's states: of two of one resource the later one counts.
func (p *plan) save(f engine.SaveState) {
	g := &p.progress
	if g.States == nil && p.states == nil {
		g.States = f.States
	} else {
		if p.states == nil {
			p.states = make(map[model.ResourceID]int, len(g.States)+len(f.States))
			for i := range g.States {
				p.states[g.States[i].Resource] = i
			}
		}
		for _, st := range f.States {
			if i, ok := p.states[st.Resource]; ok {
				g.States[i] = st
				continue
			}
			p.states[st.Resource] = len(g.States)
			g.States = append(g.States, st)
		}
	}
	if f.Processed != 0 {
		g.Processed = f.Processed
	}
	g.Started = append(g.Started, f.Started...)
	g.Finished = append(g.Finished, f.Finished...)
	g.Abandoned = append(g.Abandoned, f.Abandoned...)
}

func (p *plan) empty() bool {
	g := &p.progress
	return g.Processed == 0 && len(g.States)+len(g.Started)+len(g.Finished)+len(g.Abandoned)+len(g.DoneCommands) == 0
}

// commit stores a turn, trying until it is stored or the lease is lost.
func (l *loop) commit(ctx context.Context, p *plan, now time.Time) error {
	// Commands are marked as done with the progress, hence what they found is stored before.
	for _, d := range p.dry {
		err := l.save(ctx, func(ctx context.Context) error {
			err := l.s.cfg.Store.SaveDryRunResults(ctx, *l.lease.Load(), d.DryRun, d.Results)
			if errors.Is(err, model.ErrNotFound) {
				// The dry run was deleted with its version.
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("storing results of dry run %s: %w", d.DryRun, err)
		}
	}
	if p.empty() {
		return nil
	}
	p.progress.Now = now
	if err := l.save(ctx, func(ctx context.Context) error { return l.s.cfg.Store.SaveProgress(ctx, *l.lease.Load(), p.progress) }); err != nil {
		return fmt.Errorf("storing progress: %w", err)
	}
	return nil
}

func (l *loop) save(ctx context.Context, f func(context.Context) error) error {
	begin := time.Now()
	err := l.try(ctx, "progress could not be stored", f)
	result := "ok"
	if err != nil {
		result = "failed"
	}
	l.s.metrics.saves.WithLabelValues(result).Observe(time.Since(begin).Seconds())
	return err
}

// try calls f until it succeeds or fails for good, with a growing delay in between.
func (l *loop) try(ctx context.Context, trouble string, f func(context.Context) error) error {
	delay := firstRetry
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		call, cancel := context.WithTimeout(ctx, l.s.cfg.StoreTimeout)
		err := f(call)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, model.ErrFenced), errors.Is(err, model.ErrNotFound), errors.Is(err, model.ErrInvalid), errors.Is(err, errNotSchedulable):
			return err
		}
		l.log.Warn(trouble, "error", err, "retry", delay)
		timer.Reset(delay)
		delay = min(2*delay, lastRetry)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// act does what a turn asks for after it was stored. A task is not handed out once the lease may have ended.
func (l *loop) act(ctx context.Context, p *plan) {
	for _, f := range p.acts {
		if ctx.Err() != nil {
			return
		}
		if !time.Now().Before(l.lease.Load().ExpiresAt) {
			l.drop(errLeaseLost)
			return
		}
		switch f := f.(type) {
		case engine.StartTask:
			l.dispatch(ctx, f.Task)
		case engine.CancelTask:
			if err := l.s.cfg.Dispatcher.Cancel(ctx, l.env, f.Tasks); err != nil {
				l.log.Debug("tasks could not be withdrawn", "error", err)
			}
		case engine.EnsureAgent:
			l.ensure(ctx)
		case engine.SetTimer:
			l.s.alarms.set(l.timer, f.At)
		case engine.Announce:
			l.log.Debug("scheduler", "state", string(f.Kind), "version", l.state.Version())
		}
	}
}

// dispatch hands a task out. A task that can never be handed out fails; one that can not be now waits for its agent.
func (l *loop) dispatch(ctx context.Context, task model.Task) {
	err := l.addCode(ctx, &task)
	if err == nil {
		err = l.s.cfg.Dispatcher.Dispatch(ctx, task)
	}
	switch {
	case err == nil:
	case errors.Is(err, model.ErrInvalid):
		now := time.Now().UTC()
		l.log.Warn("a task can not be handed out", "task", task.ID.String(), "agent", string(task.Agent), "error", err)
		l.send(input{event: engine.TaskFinished{Result: model.Result{
			Task: task.ID, Environment: task.Environment, Resource: task.Intent.Resource, Version: task.Version, Kind: task.Kind,
			AttributeHash: task.Intent.AttributeHash, Outcome: model.OutcomeFailed, Change: model.ChangeNone, StartedAt: now, FinishedAt: now,
			Trace: task.Trace, DryRun: task.DryRun, Code: "undeliverable", Retry: model.RetryPerson,
			Log: []model.LogLine{{Level: model.LevelError, Time: now, Message: "The task can not be handed to its agent: " + err.Error()}},
		}}})
	default:
		l.log.Debug("a task was not handed out", "task", task.ID.String(), "agent", string(task.Agent), "error", err)
		l.send(input{event: engine.DispatchFailed{Task: task.ID}})
		l.s.alarms.set(l.recheck, time.Now().Add(agentRecheck))
	}
}

// maxCodeVersions is how many versions' code is remembered: the present one, and those of dry runs.
const maxCodeVersions = 8

// addCode tells a task which code its agent needs. It fails when that can not be read now.
func (l *loop) addCode(ctx context.Context, task *model.Task) error {
	agents, known := l.code[task.Version]
	if !known {
		var err error
		agents, err = call(ctx, l, func(ctx context.Context) (map[model.AgentName]string, error) {
			return l.s.cfg.Store.AgentCode(ctx, l.env, task.Version)
		})
		if err != nil {
			return fmt.Errorf("reading which code version %d ships: %w: %w", task.Version, model.ErrUnavailable, err)
		}
		if l.code == nil || len(l.code) >= maxCodeVersions {
			l.code = map[int]map[model.AgentName]string{}
		}
		l.code[task.Version] = agents
	}
	task.Code = agents[task.Agent]
	return nil
}

// ensure has the agents started that are waited for. Starting a process takes time that the loop does not have; one request
// runs at once, and the engine asks again for what is still missing.
func (l *loop) ensure(ctx context.Context) {
	l.s.alarms.set(l.recheck, time.Now().Add(agentRecheck))
	if !l.ensuring.CompareAndSwap(false, true) {
		return
	}
	names := l.state.AgentsWaitedFor()
	l.tasks.Go(func() {
		defer l.ensuring.Store(false)
		if err := l.s.cfg.Dispatcher.EnsureAgents(ctx, l.env, names); err != nil && ctx.Err() == nil {
			l.log.Warn("agents could not be started", "agents", names, "error", err)
		}
	})
}

// dismiss stops the agents of a halted environment once nothing that they do is waited for.
func (l *loop) dismiss(ctx context.Context, running int) {
	switch {
	case !l.state.Halted():
		l.dismissed = false
	case !l.dismissed && running == 0:
		l.dismissed = true
		l.tasks.Go(func() { l.stopAgents(ctx) })
	}
}

func (l *loop) stopAgents(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.StoreTimeout)
	defer cancel()
	if err := l.s.cfg.Dispatcher.StopAgents(ctx, l.env); err != nil {
		l.log.Warn("the environment's agents could not be stopped", "error", err)
	}
}

// read asks the store for what may have changed and makes events of it. What can not be read now is read a little later.
func (l *loop) read(ctx context.Context, wanted looks) ([]input, error) {
	var events []input
	later := func(err error) {
		if ctx.Err() == nil {
			l.log.Warn("news could not be read", "error", err)
			l.s.alarms.set(l.retry, time.Now().Add(lastRetry))
		}
	}
	if wanted&lookCommands != 0 {
		commands, err := call(ctx, l, func(ctx context.Context) ([]model.Command, error) { return l.s.cfg.Store.PendingCommands(ctx, l.env) })
		if err != nil {
			later(err)
		}
		l.forget(commands)
		for _, c := range commands {
			if c.Kind == model.CommandRefresh {
				wanted |= lookControls
			}
		}
		made, err := l.commands(ctx, commands)
		if err != nil {
			later(err)
		}
		events = append(events, made...)
	}
	// What follows comes before the commands: a command is about the newest state.
	if wanted&lookVersion != 0 {
		e, err := l.readVersion(ctx)
		switch {
		case errors.Is(err, errStale):
			return nil, err
		case err != nil:
			later(err)
		case e != nil:
			events = slices.Insert(events, 0, input{event: e})
		}
	}
	if wanted&lookControls != 0 {
		made, err := l.readControls(ctx)
		switch {
		case errors.Is(err, errNotSchedulable):
			return nil, err
		case err != nil:
			later(err)
		}
		events = slices.Insert(events, 0, made...)
	}
	return events, nil
}

// call makes one call of the store with its timeout.
func call[T any](ctx context.Context, l *loop, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.StoreTimeout)
	defer cancel()
	return f(ctx)
}

// forget drops the memory of commands that are no longer pending.
func (l *loop) forget(pending []model.Command) {
	if len(l.known) == 0 {
		return
	}
	still := make(map[model.CommandID]struct{}, len(pending))
	for _, c := range pending {
		if _, ok := l.known[c.ID]; ok {
			still[c.ID] = struct{}{}
		}
	}
	l.known = still
}

// commands makes events of the commands that are new.
func (l *loop) commands(ctx context.Context, pending []model.Command) ([]input, error) {
	var events []input
	for _, c := range pending {
		if _, ok := l.known[c.ID]; ok {
			continue
		}
		var e engine.Event = engine.CommandReceived{Command: c}
		switch {
		case c.Kind == model.CommandFacts && c.Version != 0:
			intents, err := l.intents(ctx, c)
			if err != nil {
				return events, err
			}
			e = engine.FactsRequested{Command: c, Intents: intents}
		case c.Kind == model.CommandDryRun:
			intents, err := call(ctx, l, func(ctx context.Context) ([]model.Intent, error) {
				return l.s.cfg.Store.IntentsOf(ctx, l.env, c.Version)
			})
			if err != nil && !errors.Is(err, model.ErrNotFound) {
				return events, fmt.Errorf("reading version %d for a dry run: %w", c.Version, err)
			}
			// A version that is gone has nothing to be run: the dry run is over.
			e = engine.DryRunVersion{Command: c, Intents: intents}
		}
		l.known[c.ID] = struct{}{}
		l.log.Info("command", "kind", string(c.Kind), "actor", c.Actor, "command", c.ID.String(), "trace", string(c.Trace))
		events = append(events, input{event: e})
	}
	return events, nil
}

// intents reads the intents of a command's resources as its version has them; what that does not have is left out.
func (l *loop) intents(ctx context.Context, c model.Command) ([]model.Intent, error) {
	var out []model.Intent
	for _, id := range c.Resources {
		in, err := call(ctx, l, func(ctx context.Context) (model.Intent, error) {
			return l.s.cfg.Store.VersionResource(ctx, l.env, c.Version, id)
		})
		switch {
		case errors.Is(err, model.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("reading %s of version %d for its facts: %w", id, c.Version, err)
		default:
			out = append(out, in)
		}
	}
	return out, nil
}

func (l *loop) readVersion(ctx context.Context) (engine.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, l.s.cfg.StoreTimeout)
	defer cancel()
	from := l.state.Version()
	version, changed, removed, err := l.s.cfg.Store.ChangesSince(ctx, l.env, from)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return nil, fmt.Errorf("%w: %w", errStale, err)
	case err != nil:
		return nil, fmt.Errorf("reading the changes since version %d: %w", from, err)
	case version < from:
		return nil, errStale
	case version == from:
		return nil, nil
	}
	l.log.Info("version released", "version", version, "changed", len(changed), "removed", len(removed))
	return engine.VersionReleased{Version: version, Changed: changed, Removed: removed}, nil
}

// readControls reads what a user can set without a version.
func (l *loop) readControls(ctx context.Context) ([]input, error) {
	news, err := call(ctx, l, func(ctx context.Context) ([]model.SchedulerNews, error) {
		return l.s.cfg.Store.SchedulerNews(ctx, []model.EnvironmentID{l.env})
	})
	if err != nil {
		return nil, fmt.Errorf("reading settings and pauses: %w", err)
	}
	if len(news) == 0 || news[0].Released < l.state.Version() {
		return nil, errNotSchedulable
	}
	n := news[0]
	var events []input
	if n.Settings != l.settings {
		l.setSettings(n.Settings)
		events = append(events, input{event: engine.SettingsChanged{Settings: n.Settings}})
	}
	var resumed, paused []model.AgentName
	for _, name := range l.state.PausedAgents() {
		if !n.Paused[name] {
			resumed = append(resumed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Paused)) {
		if n.Paused[name] && !l.state.Paused(name) {
			paused = append(paused, name)
		}
	}
	if n.Halted && !l.state.Halted() {
		events = append(events, input{event: engine.Halted{}})
	}
	if len(paused) > 0 {
		events = append(events, input{event: engine.AgentPaused{Agents: paused}})
	}
	if len(resumed) > 0 {
		events = append(events, input{event: engine.AgentResumed{Agents: resumed}})
	}
	if !n.Halted && l.state.Halted() {
		events = append(events, input{event: engine.Resumed{}})
	}
	return events, nil
}

// setSettings takes over settings and sets the alarms of cron expressions.
func (l *loop) setSettings(set model.Settings) {
	l.settings = set
	l.deploys, l.repairs = l.cron("deploy", set.DeployInterval), l.cron("repair", set.RepairInterval)
	l.setCron(time.Now())
}

// cron parses an interval setting that is not a number.
func (l *loop) cron(what, setting string) cron.Schedule {
	if isNumber(setting) {
		return nil
	}
	schedule, err := parseCron(setting)
	if err != nil {
		l.log.Error("an interval is neither a number nor a cron expression and is off", "interval", what, "setting", setting, "error", err)
		return nil
	}
	return schedule
}

func isNumber(setting string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(setting), 64)
	return err == nil || strings.TrimSpace(setting) == ""
}

func (l *loop) setCron(now time.Time) {
	next := func(a *alarm, s cron.Schedule) {
		at := time.Time{}
		if s != nil {
			at = s.Next(now.UTC())
		}
		l.s.alarms.set(a, at)
	}
	next(l.deployCron, l.deploys)
	next(l.repairCron, l.repairs)
}
