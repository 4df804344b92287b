package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// Defaults of [Config].
const (
	DefaultPerAgent     = 1
	DefaultMinBackoff   = 200 * time.Millisecond
	DefaultMaxBackoff   = 30 * time.Second
	DefaultStopTimeout  = 10 * time.Second
	DefaultSyncInterval = 100 * time.Millisecond
	DefaultCacheBytes   = 1 << 30
	DefaultRepairTask   = 15 * time.Minute
)

// Config configures an [Agent].
type Config struct {
	// URL is the server's address: http or https, host and port. Required.
	URL string
	// Environment is whose tasks the agent runs. Required.
	Environment model.EnvironmentID
	// Token authenticates the process. Required.
	Token model.Secret
	// Key is the secret of a process that the server has started itself. It makes the agent an autostarted one: the server
	// decides which names it offers, and the agent ends when the server does not know it any more.
	Key model.Secret
	// Names are the agents that the process offers. Required unless there is a Key.
	Names []model.AgentName
	// StateDir is the agent's own directory. Required.
	StateDir string
	// Registry says who handles which type. Required.
	Registry *sdk.Registry
	// Parallel is the number of tasks that run at once in the process. Defaults to four per processor, at least 8.
	Parallel int
	// PerAgent is the number of tasks of one agent name that run at once. Defaults to 1: handlers may count on being alone
	// on their machine.
	PerAgent int
	// Transport carries all requests, for TLS settings and proxies. Defaults to [http.DefaultTransport].
	Transport http.RoundTripper
	// MinBackoff and MaxBackoff bound the pause before the agent connects again, which has jitter. Default to 200
	// milliseconds and 30 seconds.
	MinBackoff, MaxBackoff time.Duration
	// StopTimeout is how long running tasks may go on when the agent stops. Defaults to 10 seconds.
	StopTimeout time.Duration
	// SyncInterval is how often the spool is flushed to the disk itself. Results survive the end of the process at once, and
	// that of the machine after this interval. Defaults to 100 milliseconds.
	SyncInterval time.Duration
	// CacheBytes bounds the contents kept on disk. Defaults to 1 GiB.
	CacheBytes int64
	// RepairTimeout is the deadline of a task of a repair without the server. Defaults to 15 minutes.
	RepairTimeout time.Duration
	// Hostname and Build are told to the server. Hostname defaults to the machine's.
	Hostname, Build string
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger takes the agent's log. Defaults to none.
	Logger *slog.Logger
}

// Agent is one agent process.
type Agent struct {
	cfg   Config
	log   *slog.Logger
	files *fileCache
	spool *spool
	state *stateDir

	// save is signalled when agents.json or a desired state is to be written; it has a capacity of 1.
	save chan struct{}
	// changed is signalled, by closing and replacing it, when something that waiters look at has changed. Guarded by mu.
	changed chan struct{}

	// jobsCtx is the context of running tasks. It is set once by Run.
	jobsCtx context.Context //nolint:containedctx // the tasks outlive the calls that start them
	jobs    sync.WaitGroup

	// mu guards all below, and all fields of agent names and jobs.
	mu       sync.Mutex
	running  bool
	stopping bool
	link     *link
	// away is when the last session ended, or when the process began.
	away time.Time
	// session and resume name the session to go on with, window how long that is possible.
	session, resume string
	window          time.Duration
	agents          map[model.AgentName]*agentName
	work            map[model.TaskID]*job
	busy            map[model.ResourceID]bool
	// turn lists agent names that have waiting tasks, in the order in which they are served.
	turn   []*agentName
	active int
	// addresses are the machines of agents that work on another one than this.
	addresses map[model.AgentName]string
}

// agentName is what the process knows of one agent that it offers.
type agentName struct {
	name     model.AgentName
	epoch    wire.Epoch
	primary  bool
	standbys int
	paused   bool
	// offered is false for a name that the server has taken away; running tasks of it may go on.
	offered bool
	waiting []*job
	running int
	inTurn  bool
	desired *desiredState
	// partial is a desired state of which not all frames have come.
	partial    *desiredState
	unsaved    bool
	repairedAt time.Time
}

// New makes an agent. It fails with [model.ErrInvalid] when the configuration is incomplete.
func New(cfg Config) (*Agent, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("agent: the server's URL %q is not http(s)://host:port: %w", cfg.URL, model.ErrInvalid)
	}
	switch {
	case cfg.Environment.UUID == uuid.Nil:
		return nil, fmt.Errorf("agent: an environment is required: %w", model.ErrInvalid)
	case cfg.Token == "":
		return nil, fmt.Errorf("agent: a token is required: %w", model.ErrInvalid)
	case len(cfg.Names) == 0 && cfg.Key == "":
		return nil, fmt.Errorf("agent: at least one agent name is required: %w", model.ErrInvalid)
	case cfg.StateDir == "" || cfg.Registry == nil:
		return nil, fmt.Errorf("agent: a state directory and a registry of handlers are required: %w", model.ErrInvalid)
	}
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Hostname == "" {
		cfg.Hostname, _ = os.Hostname()
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = max(8, 4*runtime.NumCPU())
	}
	if cfg.PerAgent <= 0 {
		cfg.PerAgent = DefaultPerAgent
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	cfg.MinBackoff = orDefault(cfg.MinBackoff, DefaultMinBackoff)
	cfg.MaxBackoff = max(cfg.MinBackoff, orDefault(cfg.MaxBackoff, DefaultMaxBackoff))
	cfg.StopTimeout = orDefault(cfg.StopTimeout, DefaultStopTimeout)
	cfg.SyncInterval = orDefault(cfg.SyncInterval, DefaultSyncInterval)
	cfg.RepairTimeout = orDefault(cfg.RepairTimeout, DefaultRepairTask)
	if cfg.CacheBytes <= 0 {
		cfg.CacheBytes = DefaultCacheBytes
	}
	a := &Agent{
		cfg: cfg, log: cfg.Logger.With("environment", cfg.Environment), save: make(chan struct{}, 1), changed: make(chan struct{}),
		agents: map[model.AgentName]*agentName{}, work: map[model.TaskID]*job{}, busy: map[model.ResourceID]bool{},
	}
	a.files = newFileCache(cfg, filepath.Join(cfg.StateDir, "files"))
	return a, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// Run works until ctx ends. It waits first for the lock on the state directory: no two processes use one at the same time.
// It returns an error when the state directory is unusable, or when an autostarted agent is refused by the server.
func (a *Agent) Run(ctx context.Context) error {
	state, err := openState(ctx, a.cfg.StateDir, a.log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer state.close()
	a.state = state
	if a.spool, err = openSpool(filepath.Join(a.cfg.StateDir, "spool"), a.log); err != nil {
		return err
	}
	defer a.spool.close()
	if err := a.load(); err != nil {
		return err
	}

	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	jobsCtx, cancelJobs := context.WithCancel(inner)
	defer cancelJobs()
	a.mu.Lock()
	if a.running {
		a.mu.Unlock()
		return fmt.Errorf("running the agent: it runs already: %w", model.ErrInvalid)
	}
	a.running, a.jobsCtx, a.away = true, jobsCtx, a.cfg.Now()
	a.mu.Unlock()

	var wg sync.WaitGroup
	ended := make(chan error, 1)
	wg.Go(func() { ended <- a.connect(inner) })
	wg.Go(func() { a.spool.syncEvery(inner, a.cfg.SyncInterval) })
	wg.Go(func() { a.saveState(inner) })
	wg.Go(func() { a.repair(inner) })
	wg.Go(func() { a.expire(inner) })

	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	a.stop(inner, cancelJobs)
	cancel()
	wg.Wait()
	a.abandonJobs(ctx)
	a.saveNow()
	return err
}

// abandonJobs waits for handlers that were told to end. One that does not must not keep the process.
func (a *Agent) abandonJobs(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		a.jobs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
		a.log.ErrorContext(ctx, "handlers did not return and are left behind")
	}
}

// stop ends the work in order: nothing new begins, what runs may finish or is cancelled, results are handed over, bye.
func (a *Agent) stop(ctx context.Context, cancelJobs context.CancelFunc) {
	a.mu.Lock()
	a.stopping = true
	a.notify()
	a.mu.Unlock()
	if !a.await(ctx, a.cfg.StopTimeout, func() bool { return a.active == 0 }) {
		a.log.WarnContext(ctx, "tasks still run and are cancelled")
		cancelJobs()
		a.await(ctx, stuckGrace, func() bool { return a.active == 0 })
	}
	a.await(ctx, flushTimeout, func() bool { return a.link == nil || a.spool.len() == 0 })
	a.mu.Lock()
	l := a.link
	a.mu.Unlock()
	if l != nil {
		l.leave("the agent stops")
		a.await(ctx, flushTimeout, func() bool { return a.link != l })
	}
}

// flushTimeout is how long a stopping agent tries to hand over its results. What is left stays in the spool.
const flushTimeout = 3 * time.Second

// notify wakes those who wait for a change. The lock must be held.
func (a *Agent) notify() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until cond, which is called with the lock held, is true, and tells whether that was within the timeout.
func (a *Agent) await(ctx context.Context, timeout time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		a.mu.Lock()
		ok, changed := cond(), a.changed
		a.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-deadline.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// load fills the tables from the state directory and the configuration.
func (a *Agent) load() error {
	kept, err := a.state.loadAgents()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.cfg.Names {
		a.name(name).offered = true
	}
	for name, k := range kept {
		if a.cfg.Key == "" && !slices.Contains(a.cfg.Names, name) {
			continue
		}
		n := a.name(name)
		n.epoch, n.primary, n.standbys, n.paused, n.repairedAt = k.Epoch, k.Primary, k.Standbys, k.Paused, k.RepairedAt
		d, err := a.state.loadDesired(name)
		switch {
		case err == nil:
			n.desired = d
		case !errors.Is(err, model.ErrNotFound):
			a.log.Warn("the kept desired state can not be used", "agent", name, "error", err)
		}
	}
	return nil
}

// name returns the record of an agent name, made if need be. The lock must be held.
func (a *Agent) name(name model.AgentName) *agentName {
	n := a.agents[name]
	if n == nil {
		n = &agentName{name: name}
		a.agents[name] = n
	}
	return n
}

// offered lists the names that the process offers. The lock must be held.
func (a *Agent) offered() []model.AgentName {
	names := make([]model.AgentName, 0, len(a.agents))
	for name, n := range a.agents {
		if n.offered {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
