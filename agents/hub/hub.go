package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

// Defaults of [Config].
const (
	DefaultResumeWindow    = 15 * time.Second
	DefaultRefreshInterval = 30 * time.Second
	DefaultDesiredDelay    = 5 * time.Second
	DefaultReporters       = 256
	DefaultRepairInterval  = "86400"
)

// maxTaskBytes is the size of an intent above which a task is refused: it would not fit in a frame.
const maxTaskBytes = wire.MaxFrame / 2

// Config configures a [Hub].
type Config struct {
	// Registry is what the hub keeps. Required.
	Registry Registry
	// Sink takes results. It may be set later, but before Run, by SetSink.
	Sink Sink
	// Autostart runs processes of the server's own. With nil, EnsureAgents starts nothing.
	Autostart *Autostart
	// RepairInterval returns an environment's repair interval as its setting has it: seconds or a cron expression. Agents
	// repair by it while the server is away. Defaults to once a day.
	RepairInterval func(ctx context.Context, env model.EnvironmentID) (string, error)
	// Live, when set, is handed the log lines of running tasks. It must not block.
	Live func(env model.EnvironmentID, task model.TaskID, resource model.ResourceID, lines []model.LogLine)
	// Elsewhere, when set, tells that another server owns an environment: agents are then asked to look for that one. It must
	// not block.
	Elsewhere func(env model.EnvironmentID) bool
	// Server names this server in sessions and to agents. Defaults to the host name.
	Server string
	// ResumeWindow is how long a session outlives its connection. Defaults to 15 seconds.
	ResumeWindow time.Duration
	// RefreshInterval is how often paused agents are read again when no hint came; desired states, which are large, are
	// read again after twenty times as long. Defaults to 30 seconds.
	RefreshInterval time.Duration
	// DesiredDelay is the pause before changed desired states are sent to agents, which gathers changes. Defaults to 5 seconds.
	DesiredDelay time.Duration
	// Reporters is the number of results of one session that are being stored at once. Defaults to 256.
	Reporters int
	// Registerer takes the hub's metrics. Defaults to none.
	Registerer prometheus.Registerer
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger takes the hub's log. Defaults to none.
	Logger *slog.Logger
}

// Hub keeps sessions of agents and hands tasks to them. It implements the scheduler's Dispatcher.
type Hub struct {
	cfg     Config
	log     *slog.Logger
	events  *queue[func()]
	saves   *saver
	metrics *metrics
	// ready is closed when Run takes sessions, stop when it ends: connections close.
	ready, stop chan struct{}
	// conns waits for connections, lanes for results that are being stored, children for processes.
	conns, lanes, children sync.WaitGroup
	// laneCtx is the context under which results are stored; it ends some time after Run's does.
	laneCtx context.Context //nolint:containedctx // set once by Run, for workers that it did not start itself
	// desired is signalled when an environment's agents are to be sent their desired state.
	desired chan struct{}

	// mu guards all below, and every field of sessions, environments and agents.
	addressing sync.Mutex // held while addresses of agents are read
	mu         sync.Mutex
	sink       Sink
	running    bool
	stopped    bool
	envs       map[model.EnvironmentID]*environment
	sessions   map[string]*session
	epoch      wire.Epoch
}

// environment is what the hub knows of one environment.
type environment struct {
	id       model.EnvironmentID
	agents   map[model.AgentName]*agent
	sessions []*session // in order of connection
	tasks    map[model.TaskID]*session
	// paused is the last answer of the registry; pausedKnown is false before the first.
	paused      map[model.AgentName]bool
	pausedKnown bool
	// stale are the agents whose desired states are to be compared and sent again, staleAll says that all are.
	stale    map[model.AgentName]bool
	staleAll bool
	// hosted are the names that the server's own process is to offer.
	hosted map[model.AgentName]bool
	// external are names that other processes have offered: the server's own never takes them.
	external map[model.AgentName]bool
	// remembered says that external has the names of earlier sessions too.
	remembered bool
	child      *child
	// addresses are the machines that agents of the server's own process work on, other than the server's.
	addresses map[model.AgentName]string
}

// agent is one agent name of an environment.
type agent struct {
	name    model.AgentName
	primary *session
	epoch   wire.Epoch
	// tenant is the process that is or was the last primary, and floor the epoch at which it took over from another one: a
	// result of an older epoch comes from a process that has been replaced.
	tenant string
	floor  wire.Epoch
	since  time.Time
}

// New makes a hub. It fails with [model.ErrInvalid] when a required field is missing.
func New(cfg Config) (*Hub, error) {
	if cfg.Registry == nil {
		return nil, fmt.Errorf("hub: a registry is required: %w", model.ErrInvalid)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ResumeWindow <= 0 {
		cfg.ResumeWindow = DefaultResumeWindow
	}
	if cfg.RefreshInterval <= 0 {
		cfg.RefreshInterval = DefaultRefreshInterval
	}
	if cfg.DesiredDelay <= 0 {
		cfg.DesiredDelay = DefaultDesiredDelay
	}
	if cfg.Reporters <= 0 {
		cfg.Reporters = DefaultReporters
	}
	if cfg.Server == "" {
		if name, err := os.Hostname(); err == nil {
			cfg.Server = name
		}
	}
	if cfg.Autostart != nil {
		if err := cfg.Autostart.validate(); err != nil {
			return nil, err
		}
	}
	h := &Hub{
		cfg: cfg, log: cfg.Logger, events: newQueue[func()](), ready: make(chan struct{}), stop: make(chan struct{}), desired: make(chan struct{}, 1),
		sink: cfg.Sink, envs: map[model.EnvironmentID]*environment{}, sessions: map[string]*session{},
	}
	h.saves = newSaver(cfg.Registry, cfg.Logger)
	h.metrics = newMetrics(h)
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(h.metrics); err != nil {
			return nil, fmt.Errorf("registering the hub's metrics: %w", err)
		}
	}
	return h, nil
}

// SetSink sets who takes results. It must be called before Run, unless the configuration had one.
func (h *Hub) SetSink(s Sink) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sink = s
}

// Ready returns a channel that is closed once Run takes sessions.
func (h *Hub) Ready() <-chan struct{} { return h.ready }

// Run works until ctx ends: it takes sessions, keeps the server's own agent processes running, and tells the sink what
// happens. It then closes all sessions, stops the processes, and returns when all that has ended.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	if h.running || h.sink == nil {
		h.mu.Unlock()
		return fmt.Errorf("running the hub: it runs already, or has no sink: %w", model.ErrInvalid)
	}
	h.mu.Unlock()
	if err := h.cfg.Registry.ExpireSessions(ctx, h.cfg.Server); err != nil {
		return fmt.Errorf("expiring sessions of server %s: %w", h.cfg.Server, err)
	}
	var wg sync.WaitGroup
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	wg.Go(func() { h.events.drain(inner, func(f func()) { f() }) })
	wg.Go(func() { h.saves.run(inner) })
	wg.Go(func() { h.sendDesired(ctx) })
	hints := h.cfg.Registry.Subscribe(ctx, model.TopicVersionReleased, model.TopicAgentChanged, model.TopicEnvironment)
	wg.Go(func() { h.listen(ctx, hints) })
	lanes, cancelLanes := context.WithCancel(inner)
	defer cancelLanes()
	h.mu.Lock()
	h.running, h.laneCtx = true, lanes
	for _, e := range h.envs {
		if e.child != nil {
			e.child.start(&h.children)
		}
	}
	h.mu.Unlock()
	close(h.ready)

	<-ctx.Done()
	h.shutDown(inner, cancelLanes)
	cancel()
	wg.Wait()
	return nil
}

// stopReporting is how long results that have arrived may still be stored when the hub stops.
const stopReporting = 5 * time.Second

// shutDown ends everything in order: intake, child processes, connections, results under way, what the store must know.
func (h *Hub) shutDown(ctx context.Context, cancelLanes context.CancelFunc) {
	h.mu.Lock()
	h.stopped = true
	var children []*child
	for _, e := range h.envs {
		if e.child != nil {
			children = append(children, e.child)
		}
	}
	h.mu.Unlock()
	for _, c := range children {
		c.stop()
	}
	h.children.Wait() // they hand over their results and say bye
	close(h.stop)
	h.conns.Wait()
	giveUp := time.AfterFunc(stopReporting, cancelLanes)
	h.lanes.Wait()
	giveUp.Stop()
	h.mu.Lock()
	now := h.cfg.Now()
	for _, s := range h.sessions {
		s.stopTimer()
		h.saves.session(s.record(now))
	}
	for _, e := range h.envs {
		for _, a := range e.agents {
			if a.primary != nil { // others may be up at another server
				h.saves.agent(e.status(a, false))
			}
		}
	}
	h.mu.Unlock()
	flush, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	h.saves.flush(flush)
}

// listen turns hints, and the passing of time, into fresh knowledge.
func (h *Hub) listen(ctx context.Context, hints <-chan model.Hint) {
	tick := time.NewTicker(h.cfg.RefreshInterval)
	defer tick.Stop()
	for ticks := 1; ; {
		select {
		case <-ctx.Done():
			return
		case hint, ok := <-hints:
			if !ok {
				hints = nil
				continue
			}
			if hint.Topic == model.TopicVersionReleased || hint.Topic == model.TopicEnvironment {
				h.markStale(hint.Environment)
			}
			if hint.Topic != model.TopicVersionReleased {
				h.refreshPaused(ctx, hint.Environment)
			}
			if hint.Topic == model.TopicEnvironment {
				h.RefreshAddresses(ctx, hint.Environment)
			}
		case <-tick.C:
			ticks++
			for _, env := range h.connected() {
				if h.elsewhere(env) {
					h.dismiss(env)
					continue
				}
				if ticks%ticksPerState == 0 {
					h.markStale(env)
				}
				h.refreshPaused(ctx, env)
				h.RefreshAddresses(ctx, env)
			}
		}
	}
}

// ticksPerState is how many refreshes pass between two readings of the desired states.
const ticksPerState = 20

func (h *Hub) elsewhere(env model.EnvironmentID) bool {
	return h.cfg.Elsewhere != nil && h.cfg.Elsewhere(env)
}

// dismiss asks the agents of an environment that another server owns to go there.
func (h *Hub) dismiss(env model.EnvironmentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.envs[env].sessions {
		if s.link != nil {
			s.link.end(wire.CodeUnavailable, "another server owns the environment")
		}
	}
}

// abandon ends everything of an environment that has been deleted. It does not wait for the end.
func (h *Hub) abandon(env model.EnvironmentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.envs[env]
	if e.child != nil {
		e.child.stop()
		e.child = nil
		clear(e.hosted)
	}
	for _, s := range e.sessions {
		if s.link != nil {
			s.link.end(wire.CodeForbidden, "the environment has been deleted")
		}
	}
}

// connected lists the environments that have sessions.
func (h *Hub) connected() []model.EnvironmentID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []model.EnvironmentID
	for id, e := range h.envs {
		if len(e.sessions) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func (h *Hub) refreshPaused(ctx context.Context, env model.EnvironmentID) {
	h.mu.Lock()
	e := h.envs[env]
	h.mu.Unlock()
	if e == nil {
		return
	}
	paused, err := h.cfg.Registry.PausedAgents(ctx, env)
	if errors.Is(err, model.ErrNotFound) {
		h.abandon(env)
		return
	}
	if err != nil {
		if ctx.Err() == nil {
			h.log.WarnContext(ctx, "reading paused agents", "environment", env, "error", err)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.pausedKnown && maps.Equal(e.paused, paused) {
		return
	}
	e.paused, e.pausedKnown = paused, true
	for _, s := range e.sessions {
		s.pausedDirty = true
		s.signal()
	}
}

// Dispatch hands a task to the primary session of its agent. It fails with [model.ErrUnavailable] when there is none, and
// with [model.ErrInvalid] when the task is too large for the wire. Dispatching a task again that is in flight does nothing.
func (h *Hub) Dispatch(_ context.Context, task model.Task) error {
	if len(task.Intent.Attributes) > maxTaskBytes {
		return fmt.Errorf("dispatching %s: its attributes are %d bytes, at most %d: %w",
			task.Intent.Resource, len(task.Intent.Attributes), maxTaskBytes, model.ErrInvalid)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.envs[task.Environment]
	if e == nil || h.stopped {
		return fmt.Errorf("dispatching %s: no agent process is connected: %w", task.Intent.Resource, model.ErrUnavailable)
	}
	a := e.agents[task.Agent]
	if a == nil || a.primary == nil {
		return fmt.Errorf("dispatching %s: agent %s is not connected: %w", task.Intent.Resource, task.Agent, model.ErrUnavailable)
	}
	if e.tasks[task.ID] != nil {
		return nil
	}
	f := &flight{task: task, epoch: a.epoch}
	e.tasks[task.ID] = a.primary
	a.primary.inflight[task.ID] = f
	a.primary.outbox = append(a.primary.outbox, f)
	a.primary.signal()
	return nil
}

// Cancel withdraws tasks that have not begun; each is reported as cancelled. Tasks that are not in flight are ignored.
func (h *Hub) Cancel(_ context.Context, env model.EnvironmentID, tasks []model.TaskID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.envs[env]
	if e == nil {
		return nil
	}
	now := h.cfg.Now()
	for _, id := range tasks {
		s := e.tasks[id]
		if s == nil {
			continue
		}
		f := s.inflight[id]
		if f.sent {
			f.cancelling = true
			s.cancels = append(s.cancels, id)
			s.signal()
			continue
		}
		f.withdrawn = true
		h.enqueue(s, delivery{result: cancelled(f.task, now), local: true})
	}
	return nil
}

func cancelled(t model.Task, now time.Time) model.Result {
	return model.Result{
		Task: t.ID, Environment: t.Environment, Resource: t.Intent.Resource, Version: t.Version, Kind: t.Kind,
		AttributeHash: t.Intent.AttributeHash, Outcome: model.OutcomeCancelled, Change: model.ChangeNone, StartedAt: now,
		FinishedAt: now, Trace: t.Trace, DryRun: t.DryRun, Code: "cancelled",
	}
}

// Agents lists the agents of an environment that have a primary session now, in alphabetical order.
func (h *Hub) Agents(env model.EnvironmentID) []model.AgentName {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.envs[env]
	if e == nil {
		return nil
	}
	var up []model.AgentName
	for name, a := range e.agents {
		if a.primary != nil {
			up = append(up, name)
		}
	}
	slices.Sort(up)
	return up
}

// environment returns the record of an environment, made if need be. The lock must be held.
func (h *Hub) environment(id model.EnvironmentID) *environment {
	e := h.envs[id]
	if e == nil {
		e = &environment{
			id: id, agents: map[model.AgentName]*agent{}, tasks: map[model.TaskID]*session{}, hosted: map[model.AgentName]bool{},
			external: map[model.AgentName]bool{}, stale: map[model.AgentName]bool{},
		}
		h.envs[id] = e
	}
	return e
}

func (e *environment) agent(name model.AgentName) *agent {
	a := e.agents[name]
	if a == nil {
		a = &agent{name: name}
		e.agents[name] = a
	}
	return a
}

// status makes what is stored of an agent whose primary is up, or has just gone down.
func (e *environment) status(a *agent, up bool) model.AgentStatus {
	st := model.AgentStatus{Environment: e.id, Name: a.name, Paused: e.paused[a.name], Since: a.since}
	if a.primary != nil {
		st.Up, st.Process, st.Hostname, st.SessionID = up, a.primary.process, a.primary.hostname, a.primary.id
	}
	return st
}

// nextEpoch returns an epoch above all that this hub, and any that ran before it, has given out. The lock must be held.
func (h *Hub) nextEpoch() wire.Epoch {
	h.epoch = max(h.epoch+1, wire.Epoch(max(0, h.cfg.Now().UnixMilli())))
	return h.epoch
}

// sawEpoch takes note of an epoch that an agent has seen. One that lies far in the future is not believed.
func (h *Hub) sawEpoch(e wire.Epoch) {
	if e > h.epoch && e < wire.Epoch(h.cfg.Now().Add(24*time.Hour).UnixMilli()) {
		h.epoch = e
	}
}

// permanent tells whether a result that was not stored will never be.
func permanent(err error) bool {
	return errors.Is(err, model.ErrInvalid) || errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrForbidden)
}
