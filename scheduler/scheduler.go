package scheduler

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler/engine"
)

// Config is what a Scheduler is made of.
type Config struct {
	// Dispatcher hands tasks to agents. Required.
	Dispatcher Dispatcher
	// Engine tunes the decisions; its Seed is ignored, every environment gets a random one.
	Engine engine.Config
	// LeaseTTL is how long an environment stays with a server that gives no sign of life. Leases are renewed three times in
	// that time. Defaults to DefaultLeaseTTL.
	LeaseTTL time.Duration
	// Loads is the number of environments that are loaded at once. Defaults to DefaultLoads.
	Loads int
	// Logger takes the log. Defaults to none.
	Logger *slog.Logger
	// MaxEnvironments is the number of environments that this server owns at most; 0 means no limit.
	MaxEnvironments int
	// Owner names this server in leases. Two processes that may live at once must have different names; a server that comes
	// back under its old name has its environments back at once. Required.
	Owner string
	// PollInterval is how often the store is asked for what hints should have told. Defaults to DefaultPollInterval.
	PollInterval time.Duration
	// Registerer takes the metrics; nil means none.
	Registerer prometheus.Registerer
	// Store keeps everything. Required.
	Store Store
	// StoreTimeout bounds each call of the store. Defaults to DefaultStoreTimeout.
	StoreTimeout time.Duration
}

// The defaults of Config.
const (
	DefaultLeaseTTL     = 15 * time.Second
	DefaultLoads        = 4
	DefaultPollInterval = 10 * time.Second
	DefaultStoreTimeout = 30 * time.Second
)

// Scheduler owns environments and runs their deployment. It is a hub.Sink.
type Scheduler struct {
	cfg     Config
	log     *slog.Logger
	alarms  *alarms
	metrics *metrics
	loads   chan struct{} // one place for each environment that may be loaded at once
	wake    chan struct{} // capacity 1: look for environments now
	work    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	loops map[model.EnvironmentID]*loop
	// resting holds environments whose loop failed, until when they are left alone: what failed may fail again at once.
	resting map[model.EnvironmentID]time.Time
	// foreign are the environments that another server is to schedule, as of the last look.
	foreign map[model.EnvironmentID]struct{}
}

// New checks the configuration. It does no I/O.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Store == nil || cfg.Dispatcher == nil || cfg.Owner == "" {
		return nil, fmt.Errorf("a scheduler needs a store, a dispatcher and the name of its owner: %w", model.ErrInvalid)
	}
	if cfg.LeaseTTL < 0 || cfg.PollInterval < 0 || cfg.StoreTimeout < 0 || cfg.Loads < 0 || cfg.MaxEnvironments < 0 {
		return nil, fmt.Errorf("the scheduler's intervals and limits must not be negative: %w", model.ErrInvalid)
	}
	if cfg.LeaseTTL == 0 {
		cfg.LeaseTTL = DefaultLeaseTTL
	}
	if cfg.PollInterval == 0 {
		cfg.PollInterval = DefaultPollInterval
	}
	if cfg.StoreTimeout == 0 {
		cfg.StoreTimeout = DefaultStoreTimeout
	}
	if cfg.Loads == 0 {
		cfg.Loads = DefaultLoads
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{
		cfg: cfg, log: cfg.Logger, alarms: newAlarms(), loads: make(chan struct{}, cfg.Loads), wake: make(chan struct{}, 1),
		loops: map[model.EnvironmentID]*loop{}, resting: map[model.EnvironmentID]time.Time{},
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Registerer, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Run schedules until ctx ends, then gives all environments up and returns nil. It is called once.
func (s *Scheduler) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(ctx)
	defer s.work.Wait()
	defer stop()
	s.work.Go(func() { s.alarms.run(inner) })
	hints := s.cfg.Store.Subscribe(inner, model.TopicVersionReleased, model.TopicCommand, model.TopicEnvironment, model.TopicAgentChanged)
	poll := time.NewTicker(s.cfg.PollInterval)
	defer poll.Stop()
	renew := time.NewTicker(s.cfg.LeaseTTL / 3)
	defer renew.Stop()
	s.discover(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case h, ok := <-hints:
			if !ok {
				hints = nil
				continue
			}
			if s.hear(h, hints) {
				s.discover(ctx)
			}
		case <-s.wake:
			s.discover(ctx)
		case <-poll.C:
			s.discover(ctx)
			s.poll(ctx)
		case <-renew.C:
			s.renew(ctx)
		}
	}
}

// hear passes a hint, and those behind it, to the loops they are for. It tells whether the environments that are to be
// scheduled may have changed.
func (s *Scheduler) hear(h model.Hint, more <-chan model.Hint) bool {
	strange := false
	for {
		l := s.loop(h.Environment)
		if h.Topic == model.TopicEnvironment || l == nil && (h.Topic == model.TopicVersionReleased || h.Topic == model.TopicCommand) {
			strange = true
		}
		if l != nil {
			switch h.Topic {
			case model.TopicVersionReleased:
				l.look(lookVersion)
			case model.TopicCommand:
				l.look(lookCommands)
			default:
				l.look(lookControls)
			}
		}
		select {
		case next, ok := <-more:
			if !ok {
				return strange
			}
			h = next
		default:
			return strange
		}
	}
}

func (s *Scheduler) loop(env model.EnvironmentID) *loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loops[env]
}

// isFree tells whether this server may try to take over an environment.
func (s *Scheduler) isFree(env model.EnvironmentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, ok := s.resting[env]; ok {
		if time.Now().Before(until) {
			return false
		}
		delete(s.resting, env)
	}
	return s.loops[env] == nil
}

// owned lists the loops in the order of their environments' ids.
func (s *Scheduler) owned() []*loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*loop, 0, len(s.loops))
	for _, l := range s.loops {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *loop) int { return slices.Compare(a.env.UUID[:], b.env.UUID[:]) })
	return all
}

func (s *Scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// discover takes the environments that nobody owns, and looks after those that are no longer to be scheduled.
func (s *Scheduler) discover(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	envs, err := s.cfg.Store.SchedulableEnvironments(call)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the environments could not be listed", "error", err)
		}
		return
	}
	schedulable := make(map[model.EnvironmentID]bool, len(envs))
	var free []model.EnvironmentID
	for _, e := range envs {
		schedulable[e] = true
		if s.isFree(e) {
			free = append(free, e)
		}
	}
	all := s.owned()
	for _, l := range all {
		if schedulable[l.env] == l.halted.Load() {
			l.look(lookControls)
		}
	}
	foreign := make(map[model.EnvironmentID]struct{}, len(free))
	for _, e := range free {
		foreign[e] = struct{}{}
	}
	if n := s.cfg.MaxEnvironments; n > 0 {
		free = free[:max(0, min(len(free), n-len(all)))]
	}
	var leases []model.Lease
	if len(free) > 0 {
		if leases, err = s.acquire(call, free); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("environments could not be taken over", "error", err)
			}
			return
		}
	}
	for _, lease := range leases {
		delete(foreign, lease.Environment)
		s.adopt(ctx, lease)
	}
	s.mu.Lock()
	s.foreign = foreign
	s.mu.Unlock()
}

// Elsewhere tells whether another server is to schedule an environment, as far as is known: its agents should look for that one. It
// does not block.
func (s *Scheduler) Elsewhere(env model.EnvironmentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.foreign[env]
	return ok
}

func (s *Scheduler) acquire(ctx context.Context, envs []model.EnvironmentID) ([]model.Lease, error) {
	return s.cfg.Store.AcquireLeases(ctx, envs, s.cfg.Owner, time.Now().UTC(), s.cfg.LeaseTTL)
}

// adopt starts the loop of an environment.
func (s *Scheduler) adopt(ctx context.Context, lease model.Lease) {
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		s.log.Error("no random numbers are to be had", "error", err)
		return
	}
	inner, cancel := context.WithCancel(ctx)
	l := newLoop(s, lease, binary.BigEndian.Uint64(seed[:]), cancel)
	s.mu.Lock()
	s.loops[l.env] = l
	s.mu.Unlock()
	s.metrics.leases.WithLabelValues("acquired").Inc()
	s.work.Go(func() {
		failed := l.run(inner)
		s.mu.Lock()
		delete(s.loops, l.env)
		if failed {
			s.resting[l.env] = time.Now().Add(s.cfg.PollInterval)
		}
		s.mu.Unlock()
		if ctx.Err() == nil {
			s.wakeUp()
		}
	})
}

// renew prolongs all leases and drops the loops that have lost theirs.
func (s *Scheduler) renew(ctx context.Context) {
	all := s.owned()
	if len(all) == 0 {
		return
	}
	envs := make([]model.EnvironmentID, len(all))
	for i, l := range all {
		envs[i] = l.env
	}
	call, cancel := context.WithTimeout(ctx, s.cfg.LeaseTTL/3)
	defer cancel()
	leases, err := s.acquire(call, envs)
	if err != nil && ctx.Err() == nil {
		// The leases run on until they end; each loop then stops by itself.
		s.log.Warn("leases could not be renewed", "error", err)
	}
	held := make(map[model.EnvironmentID]model.Lease, len(leases))
	for _, lease := range leases {
		held[lease.Environment] = lease
	}
	for _, l := range all {
		lease, ok := held[l.env]
		switch {
		case ok && lease.Token == l.lease.Load().Token:
			l.prolong(lease)
		case ok || err == nil:
			// Another owner has it, or had it in between.
			l.drop(errLeaseLost)
		}
	}
}

// poll asks the store for what hints may have failed to tell.
func (s *Scheduler) poll(ctx context.Context) {
	all := s.owned()
	if len(all) == 0 {
		return
	}
	envs := make([]model.EnvironmentID, len(all))
	for i, l := range all {
		envs[i] = l.env
	}
	call, cancel := context.WithTimeout(ctx, s.cfg.StoreTimeout)
	defer cancel()
	news, err := s.cfg.Store.SchedulerNews(call, envs)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the environments could not be polled", "error", err)
		}
		return
	}
	for _, n := range news {
		if l := s.loop(n.Environment); l != nil && l.isNews(n) {
			l.look(lookVersion | lookCommands | lookControls)
		}
	}
}

// Report hands over the end of a task and returns once it is stored. It may be called again with the same result.
// model.ErrUnavailable: this server does not own the environment.
func (s *Scheduler) Report(ctx context.Context, r model.Result) error {
	l := s.loop(r.Environment)
	if l == nil {
		return notOwned(r.Environment)
	}
	done := make(chan error, 1)
	if !l.send(input{event: engine.TaskFinished{Result: r}, done: done}) {
		return notOwned(r.Environment)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("storing the result of task %s: %w", r.Task, ctx.Err())
	}
}

func notOwned(env model.EnvironmentID) error {
	return fmt.Errorf("environment %s is not scheduled by this server: %w", env, model.ErrUnavailable)
}

// AgentUp tells that an agent has got its primary session.
func (s *Scheduler) AgentUp(env model.EnvironmentID, agent model.AgentName) {
	if l := s.loop(env); l != nil {
		l.send(input{event: engine.AgentUp{Agent: agent}})
	}
}

// AgentDown tells that an agent has lost its primary session, and with it tasks.
func (s *Scheduler) AgentDown(env model.EnvironmentID, agent model.AgentName, lost []model.TaskID) {
	if l := s.loop(env); l != nil {
		l.send(input{event: engine.AgentDown{Agent: agent, Lost: lost}})
	}
}

// Explain says why a resource is where it is. model.ErrNotFound: the newest released version does not have it;
// model.ErrUnavailable: this server does not own the environment.
func (s *Scheduler) Explain(ctx context.Context, env model.EnvironmentID, resource model.ResourceID) (model.Explanation, error) {
	l := s.loop(env)
	if l == nil {
		return model.Explanation{}, notOwned(env)
	}
	var x model.Explanation
	done := make(chan error, 1)
	managed := false
	if !l.send(input{query: func(st *engine.State) { managed, x = st.Manages(resource), st.Explain(resource) }, done: done}) {
		return model.Explanation{}, notOwned(env)
	}
	select {
	case err := <-done:
		if err != nil {
			return model.Explanation{}, err
		}
		if !managed {
			return model.Explanation{}, fmt.Errorf("resource %s is not in the newest released version: %w", resource, model.ErrNotFound)
		}
		return x, nil
	case <-ctx.Done():
		return model.Explanation{}, fmt.Errorf("explaining %s: %w", resource, ctx.Err())
	}
}

// Stats counts what this server's loops are doing.
func (s *Scheduler) Stats() model.SchedulerStats {
	sum := model.SchedulerStats{Queued: make(map[string]int, engine.Priorities)}
	for _, l := range s.owned() {
		sum.Environments++
		st := l.stats.Load()
		if st == nil {
			continue
		}
		for p, n := range st.Queued {
			sum.Queued[engine.Priority(p).String()] += n
		}
		sum.Waiting += st.Waiting
		sum.Running += st.Running
		sum.Resources += st.Resources
	}
	return sum
}
