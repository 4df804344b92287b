package hub

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/intendant/intendant/model"
)

// Defaults of [Autostart].
const (
	DefaultMinBackoff  = 100 * time.Millisecond
	DefaultMaxBackoff  = 30 * time.Second
	DefaultStopTimeout = 15 * time.Second
)

// CredentialsFD is the descriptor on which a process that the hub starts reads its [Credentials], as one JSON object.
const CredentialsFD = 3

// Credentials are what the hub hands to a process that it starts. They go through a pipe: neither arguments nor the
// process's environment, which others may read, hold them.
type Credentials struct {
	// Token authenticates the process.
	Token string `json:"token"`
	// Key proves that the process was started by this server.
	Key string `json:"key"`
	// Certificate is the server's own, in PEM form: the process trusts it whatever names it has. Empty without TLS.
	Certificate string `json:"certificate,omitempty"`
}

// Autostart configures the processes that the server runs itself, one per environment:
//
//	Executable Args… --autostarted --environment ID --server URL --state-dir DIR --credentials-fd 3
type Autostart struct {
	// Executable is the program. Defaults to the running one.
	Executable string
	// Args come first. Defaults to "agent".
	Args []string
	// Env is the environment of the processes. Defaults to the server's own without the variables that configure it.
	Env []string
	// URL is where the processes find the server. Required.
	URL string
	// CertificateFile is the file with the server's certificate, in PEM form, when the URL is an https one. The processes
	// accept that certificate and no other, whatever names it has: the URL may be a loopback address. It is read whenever a
	// process is started.
	CertificateFile string
	// StateDir holds one directory per environment. Required.
	StateDir string
	// Names chooses, of agents that are needed and not up, those that the server's process is to host. Names that another
	// process has offered are never among them. Defaults to all.
	Names func(ctx context.Context, env model.EnvironmentID, names []model.AgentName) ([]model.AgentName, error)
	// Addresses returns the machines that agents of the process work on, for those that work on another one than the server's.
	// It is asked again when something about the environment has changed. Defaults to none.
	Addresses func(ctx context.Context, env model.EnvironmentID) (map[model.AgentName]string, error)
	// MinBackoff is the pause before a process that ended is started again, which doubles up to MaxBackoff for one that
	// keeps ending. Defaults to 100 milliseconds and 30 seconds.
	MinBackoff, MaxBackoff time.Duration
	// StopTimeout is how long a process may take to stop before it is killed. Defaults to 15 seconds.
	StopTimeout time.Duration
}

func (a *Autostart) validate() error {
	if a.URL == "" || a.StateDir == "" {
		return fmt.Errorf("hub: autostart needs the server's URL and a state directory: %w", model.ErrInvalid)
	}
	return nil
}

// EnsureAgents has the environment's own process offer these agents, as far as they are to be autostarted and are not up.
// It returns at once; the sink is told when they are up.
func (h *Hub) EnsureAgents(ctx context.Context, env model.EnvironmentID, names []model.AgentName) error {
	if h.cfg.Autostart == nil {
		return nil
	}
	if err := h.remember(ctx, env); err != nil {
		return err
	}
	h.mu.Lock()
	e := h.environment(env)
	var missing []model.AgentName
	for _, n := range names {
		a := e.agents[n]
		if (a == nil || a.primary == nil) && !e.external[n] && !e.hosted[n] {
			missing = append(missing, n)
		}
	}
	h.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	if choose := h.cfg.Autostart.Names; choose != nil {
		chosen, err := choose(ctx, env, missing)
		if err != nil {
			return fmt.Errorf("choosing the agents to start: %w", err)
		}
		missing = chosen
	}
	if len(missing) == 0 {
		return nil
	}
	c, err := h.childOf(ctx, env)
	if err != nil {
		return err
	}
	// Without their addresses agents would work on the wrong machine.
	if err := h.readAddresses(ctx, env); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return fmt.Errorf("starting agents: the server is stopping: %w", model.ErrUnavailable)
	}
	for _, n := range missing {
		if !e.external[n] {
			e.hosted[n] = true
		}
	}
	if e.child == nil {
		e.child = c
		if h.running { // otherwise Run starts it
			c.start(&h.children)
		}
	}
	e.sendHost()
	return nil
}

// RefreshAddresses reads again which machines agents of the environment's own process work on, and tells the process. It knows
// them when it gets a task that is dispatched after the call. What can not be read stays as it was.
func (h *Hub) RefreshAddresses(ctx context.Context, env model.EnvironmentID) {
	h.mu.Lock()
	e := h.envs[env]
	owned := e != nil && e.child != nil
	h.mu.Unlock()
	if !owned {
		return
	}
	if err := h.readAddresses(ctx, env); err != nil && ctx.Err() == nil {
		h.log.WarnContext(ctx, "the addresses of agents could not be read", "environment", env, "error", err)
	}
}

func (h *Hub) readAddresses(ctx context.Context, env model.EnvironmentID) error {
	if h.cfg.Autostart == nil || h.cfg.Autostart.Addresses == nil {
		return nil
	}
	h.addressing.Lock() // so that an older answer does not come after a newer one
	defer h.addressing.Unlock()
	addresses, err := h.cfg.Autostart.Addresses(ctx, env)
	if err != nil {
		return fmt.Errorf("reading the addresses of agents: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.environment(env)
	if !maps.Equal(e.addresses, addresses) {
		e.addresses = addresses
		e.sendHost()
	}
	return nil
}

// rememberedSessions is the number of an environment's newest sessions that are searched for names of other processes.
const rememberedSessions = 1000

// remember learns, once, which names other processes have offered before this server started.
func (h *Hub) remember(ctx context.Context, env model.EnvironmentID) error {
	lister, ok := h.cfg.Registry.(SessionLister)
	h.mu.Lock()
	done := h.environment(env).remembered
	h.mu.Unlock()
	if !ok || done {
		return nil
	}
	sessions, err := lister.AgentSessions(ctx, env, true, rememberedSessions)
	if err != nil {
		return fmt.Errorf("reading earlier sessions of agents: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.environment(env)
	e.remembered = true
	for _, s := range sessions {
		if s.Autostarted {
			continue
		}
		for _, name := range s.Agents {
			e.external[name] = true
		}
	}
	return nil
}

// StopAgents stops the environment's own process and waits until it has ended: for a halted or deleted environment.
func (h *Hub) StopAgents(ctx context.Context, env model.EnvironmentID) error {
	h.mu.Lock()
	e := h.envs[env]
	var c *child
	if e != nil {
		if e.child != nil && e.child.started {
			c = e.child
		}
		e.child = nil
		clear(e.hosted)
	}
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	c.stop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping the agents of environment %s: %w", env, ctx.Err())
	}
}

// ownChild tells whether a key is that of the environment's process. The lock must be held.
func (h *Hub) ownChild(e *environment, key string) bool {
	return e.child != nil && subtle.ConstantTimeCompare([]byte(e.child.credentials.Key), []byte(key)) == 1
}

// childOf returns the environment's process, or makes one that is not started yet.
func (h *Hub) childOf(ctx context.Context, env model.EnvironmentID) (*child, error) {
	h.mu.Lock()
	c := h.environment(env).child
	h.mu.Unlock()
	if c != nil {
		return c, nil
	}
	token, err := h.cfg.Registry.IssueAgentToken(ctx, env, "agent process of server "+h.cfg.Server, false)
	if err != nil {
		return nil, fmt.Errorf("issuing a token for the environment's own agent process: %w", err)
	}
	return newChild(*h.cfg.Autostart, env, Credentials{Token: token.Reveal(), Key: rand.Text()}, h.log)
}

// child supervises the process of one environment.
type child struct {
	cfg         Autostart
	env         model.EnvironmentID
	credentials Credentials
	log         *slog.Logger
	stopping    chan struct{}
	once        sync.Once
	done        chan struct{}
	// started is guarded by Hub.mu.
	started bool
}

func newChild(cfg Autostart, env model.EnvironmentID, credentials Credentials, log *slog.Logger) (*child, error) {
	if cfg.Executable == "" {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program to start an agent with: %w", err)
		}
		cfg.Executable = path
	}
	if cfg.Args == nil {
		cfg.Args = []string{"agent"}
	}
	if cfg.Env == nil {
		cfg.Env = ChildEnvironment(os.Environ())
	}
	if cfg.MinBackoff <= 0 {
		cfg.MinBackoff = DefaultMinBackoff
	}
	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = DefaultMaxBackoff
	}
	if cfg.StopTimeout <= 0 {
		cfg.StopTimeout = DefaultStopTimeout
	}
	return &child{
		cfg: cfg, env: env, credentials: credentials, log: log.With("environment", env), stopping: make(chan struct{}),
		done: make(chan struct{}),
	}, nil
}

// ChildEnvironment leaves out the variables that configure the server, since some hold secrets.
func ChildEnvironment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "INTENDANT_") || strings.HasPrefix(v, "INMANTA_") || strings.HasPrefix(v, "PG")
	})
}

// start begins to supervise. The hub's lock must be held.
func (c *child) start(wg *sync.WaitGroup) {
	c.started = true
	wg.Go(func() {
		defer close(c.done)
		c.supervise()
	})
}

func (c *child) stop() { c.once.Do(func() { close(c.stopping) }) }

// supervise keeps a process running until stop.
func (c *child) supervise() {
	// The kernel ends the process when the thread that started it ends: this one lives as long as the process does.
	runtime.LockOSThread()
	backoff := c.cfg.MinBackoff
	for {
		began := time.Now()
		err := c.runOnce()
		select {
		case <-c.stopping:
			return
		default:
		}
		if time.Since(began) > time.Minute {
			backoff = c.cfg.MinBackoff
		}
		c.log.Warn("agent process ended, it will be started again", "error", err, "after", backoff)
		select {
		case <-c.stopping:
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, c.cfg.MaxBackoff)
	}
}

// runOnce runs the agent once.
func (c *child) runOnce() error {
	dir := filepath.Join(c.cfg.StateDir, c.env.String())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the agent's state directory: %w", err)
	}
	credentials := c.credentials
	if c.cfg.CertificateFile != "" {
		pem, err := os.ReadFile(c.cfg.CertificateFile)
		if err != nil {
			return fmt.Errorf("reading the server's certificate for the agent: %w", err)
		}
		credentials.Certificate = string(pem)
	}
	return c.runProcess(dir, credentials)
}

// runProcess starts the process and waits for its end.
func (c *child) runProcess(dir string, secrets Credentials) error {
	args := append(slices.Clone(c.cfg.Args), "--autostarted", "--environment", c.env.String(), "--server", c.cfg.URL,
		"--state-dir", dir, "--credentials-fd", fmt.Sprint(CredentialsFD))
	cmd := exec.Command(c.cfg.Executable, args...) //nolint:noctx // our own program, stopped by signals
	cmd.Env = c.cfg.Env
	cmd.Dir = dir
	// A group of its own: an interrupt at the terminal is for the server, which stops it. The kernel does when the server dies.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	credentials, give, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe for the agent's credentials: %w", err)
	}
	cmd.ExtraFiles = []*os.File{credentials}
	output, input, err := os.Pipe()
	if err != nil {
		_, _ = credentials.Close(), give.Close()
		return fmt.Errorf("making a pipe for the agent's output: %w", err)
	}
	cmd.Stdout, cmd.Stderr = input, input
	if err := cmd.Start(); err != nil {
		_, _, _, _ = credentials.Close(), give.Close(), output.Close(), input.Close()
		return fmt.Errorf("starting %s: %w", c.cfg.Executable, err)
	}
	_, _ = credentials.Close(), input.Close()
	var wg sync.WaitGroup
	wg.Go(func() { c.relay(output) })
	wg.Go(func() {
		defer func() { _ = give.Close() }()
		_ = give.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_ = json.NewEncoder(give).Encode(secrets)
	})
	c.log.Info("agent process started", "pid", cmd.Process.Pid)
	ended := make(chan struct{})
	wg.Go(func() { c.terminate(cmd.Process, ended) })
	err = cmd.Wait()
	close(ended)
	// Whatever the process left behind in its group must not hold the pipe or go on working.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = output.SetReadDeadline(time.Now().Add(time.Second))
	wg.Wait()
	_ = output.Close()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return err
}

// terminate stops the process when the supervisor stops: first politely.
func (c *child) terminate(p *os.Process, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-c.stopping:
	}
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(c.cfg.StopTimeout):
		c.log.Warn("agent process does not stop and is killed", "pid", p.Pid)
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}

// maxLogLine is the size of a line of output beyond which it is cut into several.
const maxLogLine = 64 << 10

// relay hands the process's output, lines of slog's JSON or anything else, to the log.
func (c *child) relay(r io.Reader) {
	in := bufio.NewReaderSize(r, maxLogLine)
	for {
		line, _, err := in.ReadLine()
		if len(line) > 0 {
			c.relayLine(line)
		}
		if err != nil {
			return
		}
	}
}

func (c *child) relayLine(line []byte) {
	var fields map[string]any
	message := "agent process output"
	if json.Unmarshal(line, &fields) != nil || fields["msg"] == nil {
		c.log.Info(message, "line", string(line))
		return
	}
	level := slog.LevelInfo
	if text, ok := fields["level"].(string); ok {
		_ = level.UnmarshalText([]byte(text))
	}
	attrs := make([]slog.Attr, 0, len(fields))
	for k, v := range fields {
		if k != "time" && k != "level" && k != "msg" && k != "environment" {
			attrs = append(attrs, slog.Any(k, v))
		}
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	c.log.LogAttrs(context.Background(), level, message, slog.Any("message", fields["msg"]), slog.Attr{Key: "agent", Value: slog.GroupValue(attrs...)})
}
