package hub

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/intendant/intendant/model"
)

// queue is an unbounded line of values that keeps their order: those who push hold the hub's lock and must not wait.
type queue[T any] struct {
	wake chan struct{}

	// mu guards items.
	mu    sync.Mutex
	items []T
}

func newQueue[T any]() *queue[T] { return &queue[T]{wake: make(chan struct{}, 1)} }

func (q *queue[T]) push(v T) {
	q.mu.Lock()
	q.items = append(q.items, v)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}

// drain calls f with each value in order until ctx ends.
func (q *queue[T]) drain(ctx context.Context, f func(T)) {
	for {
		for _, v := range q.take() {
			f(v)
		}
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		}
	}
}

// saver writes sessions and agents to the registry in the background; of each only the newest state counts.
type saver struct {
	registry Registry
	log      *slog.Logger
	wake     chan struct{}

	// mu guards all below.
	mu       sync.Mutex
	sessions map[string]model.AgentSession
	order    []string
	agents   map[agentKey]model.AgentStatus
}

type agentKey struct {
	env  model.EnvironmentID
	name model.AgentName
}

func newSaver(r Registry, log *slog.Logger) *saver {
	return &saver{
		registry: r, log: log, wake: make(chan struct{}, 1), sessions: map[string]model.AgentSession{},
		agents: map[agentKey]model.AgentStatus{},
	}
}

func (s *saver) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *saver) session(r model.AgentSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sessions[r.ID]; !ok {
		s.order = append(s.order, r.ID)
	}
	s.sessions[r.ID] = r
	s.signal()
}

func (s *saver) agent(st model.AgentStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[agentKey{st.Environment, st.Name}] = st
	s.signal()
}

// saveRetry is the pause after a write that did not succeed.
const saveRetry = time.Second

func (s *saver) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if s.flush(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(saveRetry):
			s.signal()
		}
	}
}

// flush writes what waits and tells whether all of it was written. Sessions come first: agents refer to them.
func (s *saver) flush(ctx context.Context) bool {
	s.mu.Lock()
	sessions := make([]model.AgentSession, 0, len(s.order))
	for _, id := range s.order {
		sessions = append(sessions, s.sessions[id])
	}
	agents := map[model.EnvironmentID][]model.AgentStatus{}
	for _, st := range s.agents {
		agents[st.Environment] = append(agents[st.Environment], st)
	}
	s.sessions, s.order, s.agents = map[string]model.AgentSession{}, nil, map[agentKey]model.AgentStatus{}
	s.mu.Unlock()
	ok := true
	for _, r := range sessions {
		if err := s.registry.SaveSession(ctx, r); err != nil && s.failed(ctx, "storing an agent session", err) {
			ok = false
			s.restoreSession(r)
		}
	}
	for _, statuses := range agents {
		slices.SortFunc(statuses, func(a, b model.AgentStatus) int { return strings.Compare(string(a.Name), string(b.Name)) })
		if err := s.registry.SaveAgents(ctx, statuses); err != nil && s.failed(ctx, "storing the state of agents", err) {
			ok = false
			s.restoreAgents(statuses)
		}
	}
	return ok
}

// failed tells whether a write is worth another try: not when its environment is gone.
func (s *saver) failed(ctx context.Context, what string, err error) (again bool) {
	if ctx.Err() == nil {
		s.log.WarnContext(ctx, what, "error", err)
	}
	return !permanent(err)
}

// restoreSession and restoreAgents put back what could not be written, unless something newer waits.
func (s *saver) restoreSession(r model.AgentSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, newer := s.sessions[r.ID]; !newer {
		s.sessions[r.ID] = r
		s.order = append(s.order, r.ID)
	}
}

func (s *saver) restoreAgents(agents []model.AgentStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range agents {
		k := agentKey{st.Environment, st.Name}
		if _, newer := s.agents[k]; !newer {
			s.agents[k] = st
		}
	}
}
