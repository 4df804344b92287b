package sdktest

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// Timeout bounds every wait of the package.
const Timeout = time.Minute

// Server is a hub on a loopback port with a store in memory. It implements [hub.Registry] and [hub.Sink].
type Server struct {
	// Hub is the hub under test, URL its address, Environment the one environment, Token the agents' token.
	Hub         *hub.Hub
	URL         string
	Environment model.EnvironmentID
	Token       model.Secret

	stop func()

	// mu guards all below; changed is closed and replaced with every change.
	mu       sync.Mutex
	changed  chan struct{}
	results  map[model.TaskID]model.Result
	reports  int
	up       map[model.AgentName]int
	down     map[model.AgentName]int
	live     map[model.AgentName]bool
	lost     []model.TaskID
	files    map[string][]byte
	intents  []model.Intent
	version  int
	paused   map[model.AgentName]bool
	sessions map[string]model.AgentSession
	statuses map[model.AgentName]model.AgentStatus
	tokens   map[string]bool // true: one-time
	fail     func(model.Result) error
	deleted  bool
	hints    chan model.Hint
	code     map[model.AgentName]string
}

// NewServer starts a server that ends with the test. configure may change the hub's configuration.
func NewServer(t testing.TB, configure ...func(*hub.Config)) *Server {
	t.Helper()
	s := &Server{
		Environment: model.EnvironmentID{UUID: uuid.New()}, Token: "sdktest-token", changed: make(chan struct{}),
		results: map[model.TaskID]model.Result{}, up: map[model.AgentName]int{}, down: map[model.AgentName]int{},
		live: map[model.AgentName]bool{}, files: map[string][]byte{}, paused: map[model.AgentName]bool{},
		sessions: map[string]model.AgentSession{}, statuses: map[model.AgentName]model.AgentStatus{}, tokens: map[string]bool{},
		hints: make(chan model.Hint, 16),
	}
	s.Start(t, "", configure...)
	t.Cleanup(s.Stop)
	return s
}

// Start starts the hub, again after a Stop, at a given address ("host:port") or, when that is empty, at any.
func (s *Server) Start(t testing.TB, address string, configure ...func(*hub.Config)) {
	t.Helper()
	cfg := hub.Config{
		Registry: s, Sink: s, Server: "sdktest", ResumeWindow: time.Second, DesiredDelay: time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range configure {
		f(&cfg)
	}
	h, err := hub.New(cfg)
	if err != nil {
		t.Fatalf("making a hub: %v", err)
	}
	web := httptest.NewUnstartedServer(h.Handler())
	if address != "" {
		_ = web.Listener.Close()
		web.Listener = listen(t, address)
	}
	web.Start()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	var once sync.Once
	select {
	case <-h.Ready():
	case err := <-ended:
		t.Fatalf("Hub.Run() = %v", err)
	}
	s.Hub, s.URL = h, web.URL
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Hub.Run() = %v, want nil", err)
			}
			web.CloseClientConnections()
			web.Close()
		})
	}
}

// Stop ends the hub and its connections. What was stored stays.
func (s *Server) Stop() { s.stop() }

// notify wakes those who wait. The lock must be held.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await waits until cond, called with what is stored, is true.
func (s *Server) Await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(Timeout)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		ok, changed := cond(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

// AwaitUp waits until an agent has got its n-th primary session, counted from 1.
func (s *Server) AwaitUp(t testing.TB, name model.AgentName, n int) {
	t.Helper()
	s.Await(t, fmt.Sprintf("agent %s up for the %d. time", name, n), func() bool { return s.up[name] >= n && s.live[name] })
}

// AwaitDown waits until an agent has lost its primary session for the n-th time, and returns all tasks lost so far.
func (s *Server) AwaitDown(t testing.TB, name model.AgentName, n int) []model.TaskID {
	t.Helper()
	var lost []model.TaskID
	s.Await(t, fmt.Sprintf("agent %s down for the %d. time", name, n), func() bool {
		lost = slices.Clone(s.lost)
		return s.down[name] >= n
	})
	return lost
}

// Elections returns how often an agent has got and lost a primary session.
func (s *Server) Elections(name model.AgentName) (up, down int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up[name], s.down[name]
}

// Dispatch hands tasks to the hub.
func (s *Server) Dispatch(t testing.TB, tasks ...model.Task) {
	t.Helper()
	for _, task := range tasks {
		if err := s.Hub.Dispatch(t.Context(), task); err != nil {
			t.Fatalf("Dispatch(%s) = %v", task.Intent.Resource, err)
		}
	}
}

// AwaitResult waits for the result of a task.
func (s *Server) AwaitResult(t testing.TB, id model.TaskID) model.Result {
	t.Helper()
	var r model.Result
	s.Await(t, "the result of task "+id.String(), func() bool {
		var ok bool
		r, ok = s.results[id]
		return ok
	})
	return r
}

// AwaitResults waits until n different results are stored, and returns all there are.
func (s *Server) AwaitResults(t testing.TB, n int) []model.Result {
	t.Helper()
	var all []model.Result
	s.Await(t, fmt.Sprintf("%d results", n), func() bool {
		if len(s.results) < n {
			return false
		}
		all = make([]model.Result, 0, len(s.results))
		for _, r := range s.results {
			all = append(all, r)
		}
		return true
	})
	return all
}

// Run dispatches a task and waits for its result.
func (s *Server) Run(t testing.TB, task model.Task) model.Result {
	t.Helper()
	s.Dispatch(t, task)
	return s.AwaitResult(t, task.ID)
}

// Reports returns how often a result was handed to the sink, repetitions included.
func (s *Server) Reports() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reports
}

// FailReports has the sink answer with what f returns; nil takes results again.
func (s *Server) FailReports(f func(model.Result) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// AddFile stores a content and returns its hash.
func (s *Server) AddFile(content []byte) string {
	sum := sha1.Sum(content)
	hash := hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[hash] = content
	return hash
}

// SetCode says which code manifest each agent needs, in every version.
func (s *Server) SetCode(code map[model.AgentName]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

// AddOneTimeToken makes a token that works once.
func (s *Server) AddOneTimeToken(token model.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token.Reveal()] = true
}

// Tokens returns the tokens that were issued.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tokens := make([]string, 0, len(s.tokens))
	for token := range s.tokens {
		tokens = append(tokens, token)
	}
	return tokens
}

// Release sets the released desired state and tells the hub.
func (s *Server) Release(version int, intents ...model.Intent) {
	s.mu.Lock()
	s.version, s.intents = version, intents
	s.mu.Unlock()
	s.hints <- model.Hint{Topic: model.TopicVersionReleased, Environment: s.Environment}
}

// Pause pauses an agent, or lets it go on, and tells the hub.
func (s *Server) Pause(name model.AgentName, paused bool) {
	s.mu.Lock()
	s.paused[name] = paused
	s.mu.Unlock()
	s.hints <- model.Hint{Topic: model.TopicAgentChanged, Environment: s.Environment}
}

// DeleteEnvironment forgets the environment and tells the hub.
func (s *Server) DeleteEnvironment() {
	s.mu.Lock()
	s.deleted = true
	s.mu.Unlock()
	s.hints <- model.Hint{Topic: model.TopicEnvironment, Environment: s.Environment}
}

// Status returns the state of an agent as it was stored last.
func (s *Server) Status(name model.AgentName) model.AgentStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[name]
}

// StatusLocked returns the same; for conditions of Await.
func (s *Server) StatusLocked(name model.AgentName) model.AgentStatus { return s.statuses[name] }

// SessionLocked returns a session as it was stored last; for conditions of Await.
func (s *Server) SessionLocked(id string) model.AgentSession { return s.sessions[id] }

// Report implements [hub.Sink].
func (s *Server) Report(_ context.Context, r model.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	s.reports++
	if s.fail != nil {
		if err := s.fail(r); err != nil {
			return err
		}
	}
	if _, ok := s.results[r.Task]; !ok {
		s.results[r.Task] = r
	}
	return nil
}

// AgentUp implements [hub.Sink].
func (s *Server) AgentUp(_ model.EnvironmentID, name model.AgentName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up[name]++
	s.live[name] = true
	s.notify()
}

// AgentDown implements [hub.Sink].
func (s *Server) AgentDown(_ model.EnvironmentID, name model.AgentName, lost []model.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down[name]++
	s.live[name] = false
	s.lost = append(s.lost, lost...)
	s.notify()
}

// AuthenticateAgent implements [hub.Registry].
func (s *Server) AuthenticateAgent(_ context.Context, env model.EnvironmentID, token model.Secret) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	oneTime, issued := s.tokens[token.Reveal()]
	if oneTime {
		delete(s.tokens, token.Reveal())
	}
	if s.deleted || env != s.Environment || !issued && token.Reveal() != s.Token.Reveal() {
		return fmt.Errorf("agent token: %w", model.ErrForbidden)
	}
	return nil
}

// SaveSession implements [hub.Registry].
func (s *Server) SaveSession(_ context.Context, session model.AgentSession) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[session.ID] = session
	s.notify()
	return nil
}

// SaveAgents implements [hub.Registry].
func (s *Server) SaveAgents(_ context.Context, statuses []model.AgentStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range statuses {
		s.statuses[st.Name] = st
	}
	s.notify()
	return nil
}

// ExpireSessions implements [hub.Registry].
func (s *Server) ExpireSessions(context.Context, string) error { return nil }

// AgentSessions implements [hub.SessionLister].
func (s *Server) AgentSessions(_ context.Context, _ model.EnvironmentID, expired bool, limit int) ([]model.AgentSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sessions []model.AgentSession
	for _, session := range s.sessions {
		if (expired || session.LostAt.IsZero()) && len(sessions) < limit {
			sessions = append(sessions, session)
		}
	}
	return sessions, nil
}

// File implements [hub.Registry].
func (s *Server) File(_ context.Context, hash string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.files[hash]
	if !ok {
		return nil, fmt.Errorf("content %s: %w", hash, model.ErrNotFound)
	}
	return content, nil
}

// SaveFile implements [hub.FileKeeper].
func (s *Server) SaveFile(_ context.Context, f model.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.Hash] = f.Content
	return nil
}

// AgentCode implements [hub.CodeRegistry].
func (s *Server) AgentCode(context.Context, model.EnvironmentID, int) (map[model.AgentName]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.code), nil
}

// AgentIntents implements [hub.Registry].
func (s *Server) AgentIntents(_ context.Context, _ model.EnvironmentID, names []model.AgentName) (int, []model.Intent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, slices.DeleteFunc(slices.Clone(s.intents), func(i model.Intent) bool {
		return !slices.Contains(names, i.Resource.Parts().Agent)
	}), nil
}

// PausedAgents implements [hub.Registry].
func (s *Server) PausedAgents(context.Context, model.EnvironmentID) (map[model.AgentName]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted {
		return nil, fmt.Errorf("the environment is deleted: %w", model.ErrNotFound)
	}
	paused := map[model.AgentName]bool{}
	maps.Copy(paused, s.paused)
	return paused, nil
}

// IssueAgentToken implements [hub.Registry].
func (s *Server) IssueAgentToken(_ context.Context, _ model.EnvironmentID, _ string, oneTime bool) (model.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := uuid.NewString()
	s.tokens[token] = oneTime
	return model.Secret(token), nil
}

// Subscribe implements [hub.Registry].
func (s *Server) Subscribe(ctx context.Context, _ ...model.Topic) <-chan model.Hint {
	out := make(chan model.Hint)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case hint := <-s.hints:
				select {
				case out <- hint:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// Agent is an agent process of a test.
type Agent struct {
	// Dir is its state directory.
	Dir string
	// Process is the agent itself.
	Process *agents.Agent
	stop    func()
}

// Stop ends the agent cleanly.
func (a *Agent) Stop() { a.stop() }

// StartAgent starts an agent that ends with the test. configure may change its configuration.
func (s *Server) StartAgent(t testing.TB, registry *sdk.Registry, names []model.AgentName, configure ...func(*agents.Config)) *Agent {
	t.Helper()
	cfg := agents.Config{
		URL: s.URL, Environment: s.Environment, Token: s.Token, Names: names, Registry: registry, MinBackoff: 10 * time.Millisecond,
		MaxBackoff: 50 * time.Millisecond, StopTimeout: 5 * time.Second, Hostname: "localhost",
	}
	for _, f := range configure {
		f(&cfg)
	}
	if cfg.StateDir == "" {
		cfg.StateDir = t.TempDir()
	}
	a, err := agents.New(cfg)
	if err != nil {
		t.Fatalf("making an agent: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	var once sync.Once
	agent := &Agent{Dir: cfg.StateDir, Process: a}
	agent.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, model.ErrForbidden) {
				t.Errorf("Agent.Run() = %v, want nil", err)
			}
		})
	}
	t.Cleanup(agent.stop)
	return agent
}

// NewIntent makes an intent of any attributes that encode to a JSON object.
func NewIntent(t testing.TB, id model.ResourceID, attributes any, requires ...model.ResourceID) model.Intent {
	t.Helper()
	raw, err := json.Marshal(attributes)
	if err != nil {
		t.Fatalf("encoding the attributes of %s: %v", id, err)
	}
	i, err := model.NewIntent(id, raw, requires, "", false)
	if err != nil {
		t.Fatalf("making the intent of %s: %v", id, err)
	}
	return i
}

// NewTask makes a task of an intent, with a deadline.
func (s *Server) NewTask(kind model.TaskKind, i model.Intent) model.Task {
	return model.Task{
		ID: model.TaskID{UUID: uuid.New()}, Environment: s.Environment, Agent: i.Resource.Parts().Agent, Kind: kind, Intent: i,
		Version: 1, Reason: "sdktest", Trace: model.NewTraceID(), Deadline: time.Now().Add(Timeout),
	}
}

var (
	_ hub.Registry      = (*Server)(nil)
	_ hub.SessionLister = (*Server)(nil)
	_ hub.CodeRegistry  = (*Server)(nil)
	_ hub.FileKeeper    = (*Server)(nil)
	_ hub.Sink          = (*Server)(nil)
)
