package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/python/venv"
	"github.com/intendant/intendant/sdk"
)

// Defaults of [Config].
const (
	DefaultCap           = 3
	DefaultProcesses     = 64
	DefaultRetention     = time.Minute
	DefaultVenvRetention = time.Hour
	DefaultLoadTimeout   = 2 * time.Minute
	DefaultGrace         = 5 * time.Second
	DefaultRetryBuild    = time.Minute
	DefaultMemoryLimit   = 2 << 30
	// codeRetention is how long code is kept that no task and no desired state names.
	codeRetention = 14 * 24 * time.Hour
)

// maxRemembered is how many manifests and blueprints are kept in memory.
const maxRemembered = 256

// Request is a call of the server's API.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Response is its answer.
type Response struct {
	Status int
	Body   []byte
}

// Config configures a [Manager].
type Config struct {
	// Environment is whose resources the agent handles. Required.
	Environment model.EnvironmentID
	// Dir is the manager's own directory. Required. Whoever may write there decides what code runs.
	Dir string
	// Python is the interpreter, as [python.Find] takes it. Empty means the first one of the PATH.
	Python string
	// Files is the file storage. Required.
	Files sdk.Files
	// Upload adds a content to the file storage. With nil handlers can not.
	Upload func(ctx context.Context, hash string, content []byte) error
	// Call calls the server's API as the agent. With nil handlers can not.
	Call func(ctx context.Context, r Request) (Response, error)
	// Current lists the manifests of the desired states that the agent keeps: what they need is never removed. Nil lists none.
	Current func() []string
	// URI returns the machine that an agent works on: empty for this one, else ssh://user@host:port. Nil is this one.
	URI func(model.AgentName) string
	// SSH says how other machines are reached.
	SSH SSHConfig
	// Pip says where packages come from for versions that do not say it; FindLinks are searched besides whatever a version says.
	// Credentials of Pip's indexes count for a version's index on the same host that has none.
	Pip       model.PipConfig
	FindLinks []string
	// Cap is the number of workers that one agent may have, Processes that of all agents together. Beyond them idle ones are stopped,
	// those first that were idle for longest. Default to 3 and 64.
	Cap, Processes int
	// Retention is how long an idle worker is kept. Defaults to a minute.
	Retention time.Duration
	// VenvRetention is how long a virtual environment is kept that nobody uses. Defaults to an hour.
	VenvRetention time.Duration
	// LoadTimeout bounds importing the code. Defaults to two minutes.
	LoadTimeout time.Duration
	// Grace is how long a handler may take to end after it was interrupted, before its process is killed. Defaults to 5 seconds.
	Grace time.Duration
	// RetryBuild is how long a virtual environment is not tried again that could not be built. Defaults to a minute.
	RetryBuild time.Duration
	// MemoryLimit bounds what a worker's process and all that it started hold together, in bytes: beyond it they are killed, and
	// the task that ran fails. Defaults to 2 GiB; negative is no bound.
	MemoryLimit int64
	// BuildEnv are the variables with which packages are installed, as NAME=value. Nil passes on those of [venv.Environ].
	BuildEnv []string
	// Env is the environment of the workers, as NAME=value. Nil passes on PATH, HOME, LANG, TZ, the proxies and the like.
	Env []string
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger takes the manager's log. Defaults to none.
	Logger *slog.Logger
}

// Manager runs workers. Its methods may be called from several goroutines.
type Manager struct {
	// registry is what the manager is part of, if it is; it is set before the first task.
	registry *sdk.Registry

	cfg   Config
	log   *slog.Logger
	venvs *venv.Cache
	ssh   *sshPool

	// life ends with Run; processes end with it. It exists from the beginning so that tasks may come before Run.
	life context.Context //nolint:containedctx // the life of processes that outlive the tasks which start them
	end  context.CancelFunc

	runtimeOnce sync.Once
	runtime     string
	runtimeErr  error

	// mu guards all below, and the idle times of workers.
	mu      sync.Mutex
	closed  bool
	workers map[workerKey]*worker
	// manifests are by hash, blueprints by manifest and modules, failed builds by specification.
	manifests  map[string]*model.CodeManifest
	blueprints map[string]*blueprint
	failed     map[string]buildFailure
}

type workerKey struct {
	agent     model.AgentName
	blueprint string
	// uri is the machine that the agent works on: what a handler has open to one is no good for another.
	uri string
}

// buildFailure is a virtual environment that could not be built.
type buildFailure struct {
	err error
	at  time.Time
}

// New makes a manager. It fails with [model.ErrInvalid] when the configuration is incomplete.
func New(cfg Config) (*Manager, error) {
	switch {
	case cfg.Environment.UUID == uuid.Nil:
		return nil, fmt.Errorf("executor: an environment is required: %w", model.ErrInvalid)
	case cfg.Dir == "" || cfg.Files == nil:
		return nil, fmt.Errorf("executor: a directory and the file storage are required: %w", model.ErrInvalid)
	}
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("executor: %w", err)
	}
	orDefault := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orDefault(&cfg.Retention, DefaultRetention)
	orDefault(&cfg.VenvRetention, DefaultVenvRetention)
	orDefault(&cfg.LoadTimeout, DefaultLoadTimeout)
	orDefault(&cfg.Grace, DefaultGrace)
	orDefault(&cfg.RetryBuild, DefaultRetryBuild)
	if cfg.MemoryLimit == 0 {
		cfg.MemoryLimit = DefaultMemoryLimit
	}
	if cfg.Cap <= 0 {
		cfg.Cap = DefaultCap
	}
	if cfg.Processes <= 0 {
		cfg.Processes = DefaultProcesses
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.URI == nil {
		cfg.URI = func(model.AgentName) string { return "" }
	}
	if cfg.Env == nil {
		cfg.Env = passedOn(os.Environ())
	}
	if cfg.BuildEnv == nil {
		cfg.BuildEnv = venv.Environ(os.Environ())
	}
	m := &Manager{
		cfg: cfg, log: cfg.Logger, venvs: &venv.Cache{Dir: filepath.Join(cfg.Dir, "venvs"), Environ: cfg.BuildEnv}, ssh: newSSHPool(cfg.SSH),
		workers: map[workerKey]*worker{}, manifests: map[string]*model.CodeManifest{},
		blueprints: map[string]*blueprint{}, failed: map[string]buildFailure{},
	}
	m.life, m.end = context.WithCancel(context.Background())
	return m, nil
}

// Register makes the manager part of a registry: what a version ships code for goes to that code, and so does what the registry
// has no handler for. For a type that the code declares without a handler, the registry's own handler is used.
func (m *Manager) Register(r *sdk.Registry) {
	m.registry = r
	r.Prefer(m.preferred)
	r.Fallback(m.fallback)
	r.ResolveFallback(m.resolve)
}

// Run stops idle workers and removes what nobody uses any more, until ctx ends. It then ends all workers.
func (m *Manager) Run(ctx context.Context) error {
	tick := time.NewTicker(max(m.cfg.Retention/4, 100*time.Millisecond))
	defer tick.Stop()
	var swept time.Time
	for {
		m.stopIdle(m.cfg.Retention)
		if now := m.cfg.Now(); now.Sub(swept) > max(m.cfg.VenvRetention/4, time.Second) {
			swept = now
			m.sweep(ctx)
		}
		select {
		case <-ctx.Done():
			m.Close()
			return nil
		case <-tick.C:
		}
	}
}

// Close ends all workers. Tasks that run fail.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	workers := make([]*worker, 0, len(m.workers))
	for _, w := range m.workers {
		workers = append(workers, w)
	}
	m.mu.Unlock()
	var wait sync.WaitGroup
	for _, w := range workers {
		wait.Go(w.retire)
	}
	wait.Wait()
	m.end()
	m.ssh.close()
}

// errClosed says that the agent stops.
var errClosed = errors.New("the agent stops")

// worker returns the worker of an agent and a blueprint, made if need be, with a claim on it that release gives back: a worker that
// is claimed is not idle.
func (m *Manager) worker(agent model.AgentName, b *blueprint) (*worker, error) {
	key := workerKey{agent, b.digest, m.cfg.URI(agent)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	w := m.workers[key]
	if w == nil {
		w = &worker{m: m, key: key, blueprint: b, turn: make(chan struct{}, 1), log: m.log.With("agent", agent, "blueprint", b.digest[:12])}
		m.workers[key] = w
	}
	w.claims++
	return w, nil
}

func (m *Manager) release(w *worker) {
	m.mu.Lock()
	w.claims--
	w.idleSince = m.cfg.Now()
	m.mu.Unlock()
}

// makeRoom stops idle workers so that another process may start within the bounds.
func (m *Manager) makeRoom(agent model.AgentName) {
	var stop []*worker
	m.mu.Lock()
	for _, within := range []struct {
		most int
		of   func(*worker) bool
	}{
		{m.cfg.Cap, func(w *worker) bool { return w.key.agent == agent }},
		{m.cfg.Processes, func(*worker) bool { return true }},
	} {
		var live []*worker
		for _, w := range m.workers {
			if w.alive.Load() && within.of(w) && !slices.Contains(stop, w) {
				live = append(live, w)
			}
		}
		slices.SortFunc(live, func(a, b *worker) int { return a.idleSince.Compare(b.idleSince) })
		for _, w := range live {
			if len(live) < within.most {
				break
			}
			if w.claims == 0 {
				delete(m.workers, w.key)
				stop = append(stop, w)
				live = live[:len(live)-1] // only its length counts from here on
			}
		}
	}
	m.mu.Unlock()
	for _, w := range stop {
		w.retire()
	}
}

// stopIdle stops workers that were idle for a time.
func (m *Manager) stopIdle(age time.Duration) {
	now := m.cfg.Now()
	var stop []*worker
	m.mu.Lock()
	for key, w := range m.workers {
		if w.claims == 0 && now.Sub(w.idleSince) >= age {
			delete(m.workers, key)
			stop = append(stop, w)
		}
	}
	m.mu.Unlock()
	for _, w := range stop {
		w.log.Debug("an idle executor is stopped")
		w.retire()
	}
}

// Workers counts the processes that run.
func (m *Manager) Workers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, w := range m.workers {
		if w.alive.Load() {
			n++
		}
	}
	return n
}

// unpacked returns the directory of our own Python packages.
func (m *Manager) unpacked() (string, error) {
	m.runtimeOnce.Do(func() { m.runtime, m.runtimeErr = python.Unpack(filepath.Join(m.cfg.Dir, "runtime")) })
	return m.runtime, m.runtimeErr
}

// sweep removes virtual environments and code that nobody uses. What the kept desired states need counts as used: an agent that
// repairs without its server could not get it again.
func (m *Manager) sweep(ctx context.Context) {
	if m.cfg.Current != nil {
		for _, hash := range m.cfg.Current() {
			if manifest, err := m.kept(hash); err == nil {
				m.touch(hash, manifest)
			}
		}
	}
	if err := m.venvs.Sweep(m.cfg.VenvRetention); err != nil {
		m.log.WarnContext(ctx, "removing unused virtual environments", "error", err)
	}
	if err := sweepOld(filepath.Join(m.cfg.Dir, "code"), m.cfg.Now().Add(-codeRetention)); err != nil {
		m.log.WarnContext(ctx, "removing unused code", "error", err)
	}
	if err := sweepOld(filepath.Join(m.cfg.Dir, "manifests"), m.cfg.Now().Add(-codeRetention)); err != nil {
		m.log.WarnContext(ctx, "removing unused manifests", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.manifests) > maxRemembered {
		clear(m.manifests) // they are read again from the disk
	}
	if len(m.blueprints) > maxRemembered {
		clear(m.blueprints)
	}
	for spec, f := range m.failed {
		if m.cfg.Now().Sub(f.at) > m.cfg.RetryBuild {
			delete(m.failed, spec)
		}
	}
}

// StopIdle stops the workers that were idle for the retention now, as Run does now and then.
func (m *Manager) StopIdle() { m.stopIdle(m.cfg.Retention) }
