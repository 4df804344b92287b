package agents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

const (
	dialTimeout  = 15 * time.Second
	writeTimeout = 30 * time.Second
	// stableSession is how long a session must last before the next pause is short again.
	stableSession = 10 * time.Second
	// minLater and maxLater bound how long the agent waits before it sends a result again that the server could not store:
	// the longer the server has stored nothing, the longer.
	minLater = time.Second
	maxLater = 30 * time.Second
	// maxLive is the number of log lines of running tasks that wait to be sent; more are left to the report.
	maxLive = 5000
)

// link is the agent's side of one connection.
type link struct {
	conn       *websocket.Conn
	wake       chan struct{} // capacity 1
	streamLogs bool
	nextID     uint64 // used by the writer alone
	// later is the present pause before results are sent again; used by the reader alone.
	later time.Duration

	// mu guards all below.
	mu      sync.Mutex
	control []wire.Body
	live    []*wire.Log
	lines   int
	bye     string
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) say(b wire.Body) {
	l.mu.Lock()
	l.control = append(l.control, b)
	l.mu.Unlock()
	l.signal()
}

// leave has the writer end the session for good.
func (l *link) leave(reason string) {
	l.mu.Lock()
	l.bye = reason
	l.mu.Unlock()
	l.signal()
}

// logLine queues a line of a running task.
func (l *link) logLine(t model.Task, line model.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines >= maxLive {
		return
	}
	l.lines++
	w := wire.FromLog([]model.LogLine{line})[0]
	if n := len(l.live); n > 0 && l.live[n-1].Task == t.ID && len(l.live[n-1].Lines) < wire.MaxBatch {
		l.live[n-1].Lines = append(l.live[n-1].Lines, w)
	} else {
		l.live = append(l.live, &wire.Log{Task: t.ID, Resource: t.Intent.Resource, Lines: []wire.LogLine{w}})
	}
	l.signal()
}

// connect keeps a session until ctx ends. It returns an error only for an autostarted agent that its server does not know.
func (a *Agent) connect(ctx context.Context) error {
	backoff := a.cfg.MinBackoff
	for {
		began := time.Now()
		err := a.serve(ctx)
		a.mu.Lock()
		stopping := a.stopping
		a.mu.Unlock()
		if ctx.Err() != nil || stopping {
			return nil //nolint:nilerr // a stop on request is no failure
		}
		if errors.Is(err, model.ErrForbidden) && a.cfg.Key != "" {
			return fmt.Errorf("opening a session: %w", err)
		}
		if time.Since(began) > stableSession {
			backoff = a.cfg.MinBackoff
		}
		pause := backoff/2 + rand.N(backoff) //nolint:gosec // jitter
		a.log.WarnContext(ctx, "not connected to the server", "server", a.cfg.URL, "error", err, "retry", pause.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		backoff = min(2*backoff, a.cfg.MaxBackoff)
	}
}

// serve opens a session and works in it until it ends.
func (a *Agent) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.conn.CloseNow() }()
	welcome, err := a.greet(ctx, l)
	if err != nil {
		return err
	}
	a.begin(l, welcome)
	defer a.end(l)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if err := a.write(ctx, l); err != nil && ctx.Err() == nil {
			a.log.DebugContext(ctx, "writing to the server", "error", err)
		}
		_ = l.conn.CloseNow() // ends the reader
	})
	wg.Go(func() { a.ping(ctx, l) })
	for {
		f, err := receive(ctx, l.conn)
		if err != nil {
			return err
		}
		if err := a.handle(ctx, l, f); err != nil {
			return err
		}
	}
}

func (a *Agent) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	url := "ws" + strings.TrimPrefix(a.cfg.URL, "http") + wire.SessionPath
	//nolint:bodyclose // the library closes it, or keeps it as the connection
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: a.cfg.Transport}, HTTPHeader: headers(a.cfg), CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if resp != nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized) {
			return nil, fmt.Errorf("the server refuses the agent's token: %w", model.ErrForbidden)
		}
		return nil, fmt.Errorf("connecting to %s: %w", a.cfg.URL, err)
	}
	conn.SetReadLimit(wire.MaxFrame)
	return &link{conn: conn, wake: make(chan struct{}, 1)}, nil
}

func receive(ctx context.Context, conn *websocket.Conn) (wire.Frame, error) {
	kind, raw, err := conn.Read(ctx)
	if err != nil {
		return wire.Frame{}, fmt.Errorf("the connection ended: %w", err)
	}
	if kind != websocket.MessageText {
		return wire.Frame{}, fmt.Errorf("the server sent a binary message: %w", model.ErrInvalid)
	}
	return wire.Decode(raw)
}

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

// greet says hello and reads the welcome.
func (a *Agent) greet(ctx context.Context, l *link) (*wire.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	a.mu.Lock()
	hello := &wire.Hello{
		Protocol: wire.Version, Build: a.cfg.Build, Hostname: a.cfg.Hostname, Process: a.state.process,
		Autostarted: a.cfg.Key != "", Key: a.cfg.Key.Reveal(), Agents: a.offered(), Session: a.session, Resume: a.resume,
		Desired: map[model.AgentName]string{}, Epochs: map[model.AgentName]wire.Epoch{},
	}
	for id, j := range a.work {
		if !j.offline && len(hello.Held) < wire.MaxHeld {
			hello.Held = append(hello.Held, id)
		}
	}
	for name, n := range a.agents {
		if n.desired != nil {
			hello.Desired[name] = n.desired.Digest
		}
		if n.epoch > 0 {
			hello.Epochs[name] = n.epoch
		}
	}
	a.mu.Unlock()
	hello.Held = append(hello.Held, a.spool.tasks(wire.MaxHeld-len(hello.Held))...)
	if err := l.write(ctx, hello); err != nil {
		return nil, fmt.Errorf("saying hello: %w", err)
	}
	f, err := receive(ctx, l.conn)
	if err != nil {
		return nil, err
	}
	switch b := f.Body.(type) {
	case *wire.Welcome:
		if b.Protocol < wire.MinVersion || b.Protocol > wire.Version {
			return nil, fmt.Errorf("the server speaks protocol %d, this agent %d: %w", b.Protocol, wire.Version, model.ErrInvalid)
		}
		return b, nil
	case *wire.Error:
		return nil, b.Code.Err("the server refuses the session: " + b.Message)
	}
	return nil, fmt.Errorf("the server's first frame is %q, not welcome: %w", f.Kind, model.ErrInvalid)
}

// begin makes a session the present one.
func (a *Agent) begin(l *link, w *wire.Welcome) {
	a.spool.restart()
	a.mu.Lock()
	defer a.mu.Unlock()
	l.streamLogs = w.StreamLogs
	a.session, a.resume, a.window = w.Session, w.Resume, time.Duration(w.ResumeWindow)*time.Millisecond
	everyone := func(*agentName) bool { return true }
	a.voidWaiting(true, everyone)
	if !w.Resumed {
		// The server counts what waited as lost.
		a.voidWaiting(false, everyone)
		for _, n := range a.agents {
			n.primary = false
			n.partial = nil
		}
	}
	a.link = l
	a.log.Info("connected to the server", "server", a.cfg.URL, "session", w.Session, "resumed", w.Resumed)
	a.pump()
	a.notify()
	l.signal()
}

func (a *Agent) end(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link == l {
		a.link = nil
		a.away = a.cfg.Now()
		for _, n := range a.agents {
			n.partial = nil
		}
		a.notify()
	}
}

// ping keeps the connection alive through proxies, and ends it when the server does not answer.
func (a *Agent) ping(ctx context.Context, l *link) {
	tick := time.NewTicker(wire.PingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pong, cancel := context.WithTimeout(ctx, wire.PingInterval)
		err := l.conn.Ping(pong)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				a.log.WarnContext(ctx, "the server does not answer", "error", err)
			}
			_ = l.conn.CloseNow()
			return
		}
		a.mu.Lock()
		beat := &wire.Heartbeat{Running: a.active}
		for _, n := range a.agents {
			beat.Waiting += len(n.waiting)
		}
		a.mu.Unlock()
		beat.Spooled = a.spool.len()
		l.say(beat)
	}
}

// write says what there is to say until the session ends.
func (a *Agent) write(ctx context.Context, l *link) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		for {
			l.mu.Lock()
			out, live, bye := l.control, l.live, l.bye
			l.control, l.live, l.lines = nil, nil, 0
			l.mu.Unlock()
			for _, log := range live {
				out = append(out, log)
			}
			results := a.spool.next()
			if len(results) > 0 {
				out = append(out, &wire.Report{Results: results})
			}
			for _, b := range out {
				if err := l.write(ctx, b); err != nil {
					return fmt.Errorf("sending %s: %w", b.Kind(), err)
				}
			}
			if bye != "" {
				_ = l.write(ctx, &wire.Bye{Reason: bye})
				return l.conn.Close(websocket.StatusNormalClosure, "")
			}
			if len(out) == 0 {
				break
			}
		}
	}
}

// handle acts on one frame of the server. An error ends the session.
func (a *Agent) handle(ctx context.Context, l *link, f wire.Frame) error {
	switch b := f.Body.(type) {
	case *wire.Assign:
		a.accept(b.Tasks)
	case *wire.Cancel:
		a.cancelTasks(b.Tasks)
	case *wire.Ack:
		a.acknowledged(ctx, l, b)
	case *wire.Primary:
		a.elected(b.Agents)
	case *wire.Paused:
		a.setPaused(b.Agents)
	case *wire.Desired:
		a.keepDesired(b)
	case *wire.Host:
		a.host(l, b)
	case *wire.Error:
		return b.Code.Err("the server ended the session: " + b.Message)
	}
	return nil
}

func (a *Agent) acknowledged(ctx context.Context, l *link, b *wire.Ack) {
	a.spool.forget(b.Stored...)
	for _, r := range b.Refused {
		a.log.WarnContext(ctx, "the server refused a result", "task", r.Task, "code", r.Code, "reason", r.Message)
		a.spool.forget(r.Task)
	}
	if len(b.Stored) > 0 || l.later == 0 {
		l.later = minLater
	}
	if len(b.Later) > 0 {
		ids := make([]model.TaskID, len(b.Later))
		for i, r := range b.Later {
			ids[i] = r.Task
		}
		time.AfterFunc(l.later, func() {
			a.spool.again(ids)
			l.signal()
		})
		if len(b.Stored) == 0 {
			l.later = min(2*l.later, maxLater)
		}
	}
	l.signal() // the window has room again
	a.mu.Lock()
	if a.stopping {
		a.notify()
	}
	a.mu.Unlock()
}

// elected takes note of who is primary.
func (a *Agent) elected(agents []wire.PrimaryAgent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lost := map[*agentName]bool{}
	for _, p := range agents {
		n := a.agents[p.Agent]
		if n == nil || p.Primary && p.Epoch < n.epoch {
			continue
		}
		if n.primary && !p.Primary {
			lost[n] = true
		}
		n.primary, n.standbys = p.Primary, p.Standbys
		if p.Primary {
			n.epoch = p.Epoch
		}
	}
	if len(lost) > 0 {
		a.voidWaiting(false, func(n *agentName) bool { return lost[n] })
	}
	a.dirty()
}

func (a *Agent) setPaused(paused []model.AgentName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, n := range a.agents {
		n.paused = slices.Contains(paused, name)
	}
	a.dirty()
}

// keepDesired puts a desired state together and has it saved.
func (a *Agent) keepDesired(b *wire.Desired) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.agents[b.Agent]
	if n == nil {
		return
	}
	if b.First {
		n.partial = &desiredState{Agent: b.Agent, Version: b.Version, Digest: b.Digest, Repair: b.Repair, Code: b.Code, ReceivedAt: a.cfg.Now()}
	}
	if n.partial == nil || n.partial.Digest != b.Digest {
		return
	}
	n.partial.Intents = append(n.partial.Intents, b.Intents...)
	if b.Last {
		n.desired, n.partial, n.unsaved = n.partial, nil, true
		a.dirty()
	}
}

// host changes the names that an autostarted agent offers. A name that is taken away is given up once nothing of it runs.
func (a *Agent) host(l *link, h *wire.Host) {
	if a.cfg.Key == "" {
		return
	}
	names := h.Agents
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addresses = h.Addresses
	for name, n := range a.agents {
		if !slices.Contains(names, name) {
			n.offered = false
		}
	}
	for _, name := range names {
		a.name(name).offered = true
	}
	a.voidWaiting(false, func(n *agentName) bool { return !n.offered })
	a.dirty()
	a.tellNames(l)
}

// tellNames tells the server what the process offers, and names that it must not offer for as long as their tasks run.
func (a *Agent) tellNames(l *link) {
	names := a.offered()
	var leaving []*agentName
	for name, n := range a.agents {
		if !n.offered && n.running > 0 {
			names = append(names, name)
			leaving = append(leaving, n)
		}
	}
	l.say(&wire.Names{Agents: names})
	if len(leaving) == 0 {
		return
	}
	a.jobs.Go(func() {
		for {
			a.mu.Lock()
			done := !slices.ContainsFunc(leaving, func(n *agentName) bool { return !n.offered && n.running > 0 })
			changed, stopping := a.changed, a.stopping || a.link != l
			if done && !stopping {
				l.say(&wire.Names{Agents: a.offered()})
			}
			a.mu.Unlock()
			if done || stopping {
				return
			}
			<-changed
		}
	})
}
