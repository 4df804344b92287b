package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

const (
	helloTimeout = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 3 * wire.PingInterval
	// stopWriting is how long a connection may take to say that the server stops.
	stopWriting = 2 * time.Second
)

// link is one WebSocket connection of a session.
type link struct {
	conn *websocket.Conn
	// wake has a capacity of 1: the writer looks for everything there is to say each time.
	wake chan struct{}
	// closing tells why the hub ends the connection; it is sent at most once.
	closing chan wire.Error
	once    sync.Once
	nextID  uint64 // used by the writer alone
}

// end asks the writer to close the connection.
func (l *link) end(code wire.Code, message string) {
	l.once.Do(func() { l.closing <- wire.Error{Code: code, Message: message} })
}

// write sends one frame.
func (l *link) write(ctx context.Context, b wire.Body) error {
	l.nextID++
	raw, err := wire.Encode(l.nextID, b)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return l.conn.Write(ctx, websocket.MessageText, raw)
}

// read receives one frame.
func (l *link) read(ctx context.Context, timeout time.Duration) (wire.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kind, raw, err := l.conn.Read(ctx)
	if err != nil {
		return wire.Frame{}, err
	}
	if kind != websocket.MessageText {
		return wire.Frame{}, fmt.Errorf("a binary message: %w", model.ErrInvalid)
	}
	return wire.Decode(raw)
}

// Session returns the handler to mount at [wire.SessionPath]: it upgrades to a WebSocket and serves one agent process.
func (h *Hub) Session() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		env, ok := h.authenticate(w, r)
		if !ok {
			return
		}
		if !h.enter() {
			refuse(w, http.StatusServiceUnavailable, "the server is starting or stopping")
			return
		}
		defer h.conns.Done()
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			h.log.WarnContext(r.Context(), "upgrading an agent's connection", "remote", r.RemoteAddr, "error", err)
			return
		}
		conn.SetReadLimit(wire.MaxFrame)
		h.serve(r.Context(), env, &link{conn: conn, wake: make(chan struct{}, 1), closing: make(chan wire.Error, 1)})
	})
}

// enter counts a connection in, unless the hub is not running.
func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running || h.stopped {
		return false
	}
	h.conns.Add(1)
	return true
}

// serve runs a connection from hello to its end.
func (h *Hub) serve(ctx context.Context, env model.EnvironmentID, l *link) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { _ = l.conn.CloseNow() }()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// Without this the read would outlive the hub.
	wg.Go(func() {
		select {
		case <-h.stop:
			l.end(wire.CodeUnavailable, "the server is stopping")
			select {
			case <-ctx.Done():
			case <-time.After(stopWriting):
				cancel()
			}
		case <-ctx.Done():
		}
	})
	s, err := h.greet(ctx, env, l)
	if err != nil {
		h.farewell(ctx, l, err)
		return
	}
	wg.Go(func() {
		if err := h.write(ctx, s, l); err != nil && ctx.Err() == nil {
			h.log.Debug("writing to an agent", "environment", env, "process", s.process, "error", err)
		}
		_ = l.conn.CloseNow() // ends the reader
	})
	bye, err := h.read(ctx, s, l)
	h.detach(s, l, bye)
	if err != nil && errors.Is(err, model.ErrInvalid) {
		h.log.Warn("agent broke the protocol", "environment", env, "process", s.process, "hostname", s.hostname, "error", err)
		_ = l.conn.Close(websocket.StatusPolicyViolation, "protocol error")
		return
	}
	if bye {
		_ = l.conn.Close(websocket.StatusNormalClosure, "")
	}
}

func (h *Hub) greet(ctx context.Context, env model.EnvironmentID, l *link) (*session, error) {
	f, err := l.read(ctx, helloTimeout)
	if err != nil {
		return nil, err
	}
	hello, ok := f.Body.(*wire.Hello)
	if !ok {
		return nil, fmt.Errorf("the first frame is %q, not hello: %w", f.Kind, model.ErrInvalid)
	}
	if hello.Protocol < wire.MinVersion {
		return nil, fmt.Errorf("the agent speaks protocol %d, this server needs %d or later; upgrade the agent: %w",
			hello.Protocol, wire.MinVersion, model.ErrInvalid)
	}
	if h.elsewhere(env) {
		return nil, fmt.Errorf("another server owns the environment; connect again to find it: %w", model.ErrUnavailable)
	}
	paused, err := h.cfg.Registry.PausedAgents(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("reading paused agents: %w", err)
	}
	s, welcome, err := h.attach(env, hello, l)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	s.env.paused, s.env.pausedKnown = paused, true
	h.mu.Unlock()
	// The writer has not begun: this goroutine owns the connection's write side.
	if err := l.write(ctx, welcome); err != nil {
		h.detach(s, l, false)
		return nil, err
	}
	return s, nil
}

// farewell tells an agent why it is not served.
func (h *Hub) farewell(ctx context.Context, l *link, err error) {
	h.log.WarnContext(ctx, "agent session refused", "error", err)
	_ = l.write(ctx, &wire.Error{Code: wire.CodeOf(err), Message: err.Error()})
	_ = l.conn.Close(websocket.StatusPolicyViolation, "session refused")
}

func (h *Hub) read(ctx context.Context, s *session, l *link) (bye bool, err error) {
	for {
		f, err := l.read(ctx, idleTimeout)
		if err != nil {
			return false, err
		}
		if bye, err := h.receive(s, l, f); bye || err != nil {
			return bye, err
		}
	}
}

// write says what there is to say until the connection ends.
func (h *Hub) write(ctx context.Context, s *session, l *link) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case why := <-l.closing:
			_ = l.write(ctx, &why)
			return l.conn.Close(websocket.StatusGoingAway, "")
		case <-l.wake:
		}
		for {
			bodies := h.collect(s, l)
			if len(bodies) == 0 {
				break
			}
			for _, b := range bodies {
				if err := l.write(ctx, b); err != nil {
					return fmt.Errorf("sending %s: %w", b.Kind(), err)
				}
			}
		}
	}
}

// collect takes the next frames to send. What it takes counts as sent: if the connection breaks, the resume finds out.
func (h *Hub) collect(s *session, l *link) []wire.Body {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.link != l {
		return nil
	}
	var out []wire.Body
	if len(s.control) > 0 {
		out = append(out, s.control[0])
		s.control = s.control[1:]
	}
	if len(s.ack.Stored)+len(s.ack.Refused)+len(s.ack.Later) > 0 {
		ack := s.ack
		s.ack = wire.Ack{}
		out = append(out, &ack)
	}
	if len(s.primaries) > 0 {
		out = append(out, s.env.standing(s))
		clear(s.primaries)
	}
	if s.pausedDirty && s.env.pausedKnown {
		s.pausedDirty = false
		out = append(out, s.env.pausedOf(s))
	}
	if assign := h.assign(s); len(assign.Tasks) > 0 {
		out = append(out, assign)
	}
	if len(s.cancels) > 0 {
		n := min(len(s.cancels), wire.MaxHeld)
		out = append(out, &wire.Cancel{Tasks: s.cancels[:n:n]})
		s.cancels = s.cancels[n:]
	}
	return out
}

// assign takes the next tasks from the outbox, as many as the agent may hold and a frame may carry.
func (h *Hub) assign(s *session) *wire.Assign {
	out := &wire.Assign{}
	size, taken := 0, 0
	now := h.cfg.Now()
	for _, f := range s.outbox {
		if f.withdrawn {
			taken++
			continue
		}
		if len(out.Tasks) == wire.MaxBatch || s.onAgent >= wire.MaxAssigned || size > wire.SoftFrame {
			break
		}
		taken++
		f.sent = true
		s.onAgent++
		size += len(f.task.Intent.Attributes) + 512
		out.Tasks = append(out.Tasks, wire.FromTask(f.task, f.epoch, now))
	}
	clear(s.outbox[:taken])
	s.outbox = s.outbox[taken:]
	return out
}

// standing tells a session where it stands for the names that were marked.
func (e *environment) standing(s *session) *wire.Primary {
	p := &wire.Primary{}
	for name := range s.primaries {
		a := e.agent(name)
		mine := wire.PrimaryAgent{Agent: name, Primary: a.primary == s}
		if mine.Primary {
			mine.Epoch = a.epoch
		}
		for _, o := range e.sessions {
			if o != s && o.offers(name) {
				mine.Standbys++
			}
		}
		p.Agents = append(p.Agents, mine)
	}
	return p
}

func (e *environment) pausedOf(s *session) *wire.Paused {
	p := &wire.Paused{Agents: []model.AgentName{}}
	for _, name := range s.names {
		if e.paused[name] {
			p.Agents = append(p.Agents, name)
		}
	}
	return p
}

// authenticate checks a request's token and returns its environment, or answers the request.
func (h *Hub) authenticate(w http.ResponseWriter, r *http.Request) (model.EnvironmentID, bool) {
	id, err := uuid.Parse(r.Header.Get(wire.EnvironmentHeader))
	if err != nil {
		refuse(w, http.StatusBadRequest, "the header "+wire.EnvironmentHeader+" must hold the environment's id")
		return model.EnvironmentID{}, false
	}
	env := model.EnvironmentID{UUID: id}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "an agent token is required: Authorization: Bearer …")
		return model.EnvironmentID{}, false
	}
	err = h.cfg.Registry.AuthenticateAgent(r.Context(), env, model.Secret(token))
	switch {
	case err == nil:
		return env, true
	case errors.Is(err, model.ErrForbidden), errors.Is(err, model.ErrNotFound):
		h.log.WarnContext(r.Context(), "agent token refused", "environment", env, "remote", r.RemoteAddr)
		refuse(w, http.StatusForbidden, "the token is not valid for this environment")
	default:
		h.log.ErrorContext(r.Context(), "checking an agent token", "environment", env, "error", err)
		refuse(w, http.StatusServiceUnavailable, "the token can not be checked now")
	}
	return model.EnvironmentID{}, false
}
