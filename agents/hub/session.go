package hub

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
)

// maxQueued is the number of results of a session that may wait to be stored. An agent that keeps to the protocol stays
// far below it.
const maxQueued = 4 * wire.MaxUnacknowledged

// session is one agent process as long as its memory is good. Its fields are guarded by Hub.mu.
type session struct {
	id, resume  string
	env         *environment
	process     string
	hostname    string
	build       string
	autostarted bool
	names       []model.AgentName
	connectedAt time.Time

	// link is the live connection, nil while the session is suspended.
	link    *link
	timer   *time.Timer
	dropped bool

	inflight map[model.TaskID]*flight
	outbox   []*flight
	onAgent  int // flights that were sent

	// What the writer is to say next.
	control     []wire.Body
	cancels     []model.TaskID
	ack         wire.Ack
	primaries   map[model.AgentName]bool
	pausedDirty bool

	// desired holds the digest of what each agent has or is being sent.
	desired map[model.AgentName]string

	// queues holds, by resource, results that wait to be stored or are being stored (the first), ready the resources that
	// no worker has taken yet, queued the tasks of them all.
	queues  map[model.ResourceID][]delivery
	ready   []model.ResourceID
	queued  map[model.TaskID]bool
	workers int
}

// flight is a task that was handed to a session and has not been reported.
type flight struct {
	task      model.Task
	epoch     wire.Epoch
	sent      bool
	withdrawn bool
	// cancelling says that the agent was, or is to be, told to cancel it.
	cancelling bool
}

// delivery is a result on its way to the sink. A local one was made by the hub and needs no acknowledgement.
type delivery struct {
	result model.Result
	local  bool
}

func (s *session) signal() {
	if s.link != nil {
		select {
		case s.link.wake <- struct{}{}:
		default:
		}
	}
}

func (s *session) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

func (s *session) record(lostAt time.Time) model.AgentSession {
	return model.AgentSession{
		ID: s.id, Environment: s.env.id, Hostname: s.hostname, Process: s.process, Agents: slices.Clone(s.names),
		Version: s.build, Autostarted: s.autostarted, ConnectedAt: s.connectedAt, LostAt: lostAt,
	}
}

// attach binds a connection to the session that the hello resumes, or to a new one.
func (h *Hub) attach(env model.EnvironmentID, hello *wire.Hello, l *link) (*session, *wire.Welcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running || h.stopped {
		return nil, nil, fmt.Errorf("opening a session: the server is starting or stopping: %w", model.ErrUnavailable)
	}
	e := h.environment(env)
	if hello.Autostarted && !h.ownChild(e, hello.Key) {
		return nil, nil, fmt.Errorf("opening a session: the process was not started by this server: %w", model.ErrForbidden)
	}
	for _, epoch := range hello.Epochs {
		h.sawEpoch(epoch)
	}
	s := h.sessions[hello.Session]
	resumed := s != nil && s.env == e && s.process == hello.Process &&
		subtle.ConstantTimeCompare([]byte(s.resume), []byte(hello.Resume)) == 1
	if !resumed {
		held := make(map[model.TaskID]bool, len(hello.Held))
		for _, id := range hello.Held {
			held[id] = true
		}
		for _, old := range slices.Clone(e.sessions) {
			if old.process == hello.Process {
				h.drop(old, held)
			}
		}
		s = &session{
			id: uuid.NewString(), resume: rand.Text(), env: e, process: hello.Process, autostarted: hello.Autostarted,
			connectedAt: h.cfg.Now(), inflight: map[model.TaskID]*flight{}, primaries: map[model.AgentName]bool{},
			desired: map[model.AgentName]string{}, queues: map[model.ResourceID][]delivery{}, queued: map[model.TaskID]bool{},
		}
		h.sessions[s.id] = s
		e.sessions = append(e.sessions, s)
	} else {
		h.resume(s, hello)
	}
	s.hostname, s.build = hello.Hostname, hello.Build
	s.stopTimer()
	if s.link != nil {
		s.link.end(wire.CodeReplaced, "the process has connected again")
	}
	s.link = l
	maps.Copy(s.desired, hello.Desired)
	s.pausedDirty = true
	welcome := &wire.Welcome{
		Protocol: min(wire.Version, hello.Protocol), Session: s.id, Resume: s.resume, ResumeWindow: h.cfg.ResumeWindow.Milliseconds(),
		Resumed: resumed, Server: h.cfg.Server, StreamLogs: h.cfg.Live != nil,
	}
	if s.autostarted {
		s.control = append(s.control, e.host())
	}
	h.offer(s, hello.Agents)
	h.saves.session(s.record(time.Time{}))
	s.signal()
	return s, welcome, nil
}

// resume makes a session whole again: tasks that never reached the agent are sent again, and what was lost on the way is
// said again.
func (h *Hub) resume(s *session, hello *wire.Hello) {
	held := make(map[model.TaskID]bool, len(hello.Held))
	for _, id := range hello.Held {
		held[id] = true
	}
	var again []*flight
	for id, f := range s.inflight {
		if !f.sent || s.queued[id] {
			continue
		}
		if !held[id] {
			f.sent = false
			s.onAgent--
			again = append(again, f)
		}
		if f.cancelling {
			s.cancels = append(s.cancels, id)
		}
	}
	s.outbox = append(again, s.outbox...)
	s.control = slices.DeleteFunc(s.control, func(b wire.Body) bool { return b.Kind() == wire.KindDesired })
	clear(s.desired)
	for _, name := range s.names {
		s.primaries[name] = true
		s.env.stale[name] = true
	}
	h.wakeDesired()
}

// offer replaces the names of a session.
func (h *Hub) offer(s *session, names []model.AgentName) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if s.autostarted {
		// The server decides what its own process hosts; a name that it takes away is held until its last task has ended.
		names = slices.DeleteFunc(names, func(n model.AgentName) bool { return !s.env.hosted[n] && !s.offers(n) })
	}
	old := s.names
	s.names = names
	touched := map[model.AgentName]bool{}
	for _, n := range old {
		if _, still := slices.BinarySearch(names, n); !still {
			if a := s.env.agent(n); a.primary == s {
				h.unseat(a, s, nil)
			}
			touched[n] = true
		}
	}
	for _, n := range names {
		if _, had := slices.BinarySearch(old, n); !had {
			touched[n] = true
			if !s.autostarted {
				h.release(s.env, n)
			}
		}
	}
	for n := range touched {
		h.elect(s.env, n)
	}
}

// release takes a name from the server's own process because another process offers it.
func (h *Hub) release(e *environment, name model.AgentName) {
	e.external[name] = true
	if !e.hosted[name] {
		return
	}
	delete(e.hosted, name)
	e.sendHost()
}

// unseat takes a name from its primary. held are tasks that the same process still has and will report.
func (h *Hub) unseat(a *agent, s *session, held map[model.TaskID]bool) {
	var lost []model.TaskID
	for id, f := range s.inflight {
		if f.task.Agent != a.name || s.queued[id] {
			continue
		}
		if !held[id] {
			lost = append(lost, id)
		}
		h.forget(s, id)
	}
	slices.SortFunc(lost, func(x, y model.TaskID) int { return slices.Compare(x.UUID[:], y.UUID[:]) })
	a.since = h.cfg.Now()
	h.saves.agent(s.env.status(a, false))
	a.primary = nil
	env, name, sink := s.env.id, a.name, h.sink
	h.events.push(func() { sink.AgentDown(env, name, lost) })
}

// forget removes a task from the tables.
func (h *Hub) forget(s *session, id model.TaskID) {
	f := s.inflight[id]
	if f == nil {
		return
	}
	if f.sent {
		s.onAgent--
	} else {
		f.withdrawn = true // it may still be in the outbox
	}
	delete(s.inflight, id)
	delete(s.env.tasks, id)
}

// elect gives a name a primary if it has none and somebody connected offers it, and tells all who offer it where they stand.
func (h *Hub) elect(e *environment, name model.AgentName) {
	a := e.agent(name)
	var candidates []*session
	for _, s := range e.sessions {
		if _, ok := slices.BinarySearch(s.names, name); ok {
			candidates = append(candidates, s)
		}
	}
	if a.primary == nil {
		var best *session
		for _, s := range candidates {
			if s.link != nil && (best == nil || best.autostarted && !s.autostarted) {
				best = s
			}
		}
		if best != nil {
			h.seat(e, a, best)
		}
	}
	for _, s := range candidates {
		s.primaries[name] = true
		s.signal()
	}
}

func (h *Hub) seat(e *environment, a *agent, s *session) {
	a.primary, a.since, a.epoch = s, h.cfg.Now(), h.nextEpoch()
	if a.tenant != s.process {
		if a.tenant != "" {
			a.floor = a.epoch
		}
		a.tenant = s.process
	}
	env, name, sink := e.id, a.name, h.sink
	h.events.push(func() { sink.AgentUp(env, name) })
	h.saves.agent(e.status(a, true))
	e.stale[a.name] = true
	h.wakeDesired()
	h.log.Info("agent has a primary", "environment", env, "agent", name, "process", s.process, "hostname", s.hostname, "epoch", a.epoch)
}

// detach is called when a connection has ended. A session that was not left by a bye waits for its process to come back.
func (h *Hub) detach(s *session, l *link, bye bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.link != l {
		return
	}
	s.link = nil
	if s.dropped {
		return
	}
	if bye {
		h.drop(s, nil)
		return
	}
	if h.stopped {
		return
	}
	s.stopTimer()
	s.timer = time.AfterFunc(h.cfg.ResumeWindow, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.link == nil && !s.dropped && !h.stopped {
			h.log.Warn("agent process did not come back", "environment", s.env.id, "process", s.process, "hostname", s.hostname)
			h.drop(s, nil)
		}
	})
}

// drop ends a session: its tasks are lost but for those held, and its names go to whoever stands by.
func (h *Hub) drop(s *session, held map[model.TaskID]bool) {
	s.dropped = true
	s.stopTimer()
	if s.link != nil {
		s.link.end(wire.CodeReplaced, "the session has ended")
		s.link = nil
	}
	delete(h.sessions, s.id)
	s.env.sessions = slices.DeleteFunc(s.env.sessions, func(o *session) bool { return o == s })
	for _, name := range s.names {
		if a := s.env.agent(name); a.primary == s {
			h.unseat(a, s, held)
		}
	}
	for _, name := range s.names {
		h.elect(s.env, name)
	}
	h.saves.session(s.record(h.cfg.Now()))
}

// receive acts on one frame of an agent. An error ends the connection.
func (h *Hub) receive(s *session, l *link, f wire.Frame) (bye bool, err error) {
	switch b := f.Body.(type) {
	case *wire.Report:
		return false, h.reported(s, b)
	case *wire.Names:
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.link == l {
			h.offer(s, b.Agents)
			h.saves.session(s.record(time.Time{}))
		}
	case *wire.Log:
		h.live(s, b)
	case *wire.Bye:
		return true, nil
	case *wire.Error:
		return false, b.Code.Err("the agent ended the session: " + b.Message)
	}
	return false, nil
}

// live passes on log lines of a task that is in flight.
func (h *Hub) live(s *session, b *wire.Log) {
	if h.cfg.Live == nil {
		return
	}
	h.mu.Lock()
	f := s.inflight[b.Task]
	h.mu.Unlock()
	if f != nil && f.task.Intent.Resource == b.Resource {
		h.cfg.Live(s.env.id, b.Task, b.Resource, wire.ModelLog(b.Lines))
	}
}

// reported judges results and queues the good ones for the sink.
func (h *Hub) reported(s *session, b *wire.Report) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range b.Results {
		r := &b.Results[i]
		if s.queued[r.Task] {
			continue
		}
		if len(s.queued) >= maxQueued {
			return fmt.Errorf("%d results of the agent wait to be stored: %w", len(s.queued), model.ErrInvalid)
		}
		if refusal := h.judge(s, r); refusal != nil {
			h.log.Warn("result of an agent refused", "environment", s.env.id, "process", s.process, "task", r.Task,
				"resource", r.Resource, "code", refusal.Code, "reason", refusal.Message)
			h.metrics.refused.WithLabelValues(string(refusal.Code)).Inc()
			s.ack.Refused = append(s.ack.Refused, *refusal)
			s.signal()
			continue
		}
		m := r.Model(s.env.id)
		for i := range m.Log {
			m.Log[i].Level = knownLevel(m.Log[i].Level)
		}
		h.enqueue(s, delivery{result: m})
	}
	return nil
}

// judge tells why a result can not be taken, or returns nil.
func (h *Hub) judge(s *session, r *wire.Result) *wire.Refusal {
	refuse := func(code wire.Code, format string, args ...any) *wire.Refusal {
		return &wire.Refusal{Task: r.Task, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if knownOutcome(r.Outcome) == otherOutcome || !knownChange(r.Change) {
		return refuse(wire.CodeInvalid, "outcome %q with change %q is not known", r.Outcome, r.Change)
	}
	if f := s.inflight[r.Task]; f != nil {
		t := &f.task
		if t.Intent.Resource != r.Resource || t.Version != r.Version || t.Kind != r.Kind || t.Intent.AttributeHash != r.AttributeHash {
			return refuse(wire.CodeInvalid, "the result is not of the task that was assigned")
		}
		if f.epoch != r.Epoch || t.Agent != r.Agent {
			return refuse(wire.CodeFenced, "the task was assigned to agent %s under epoch %d", t.Agent, f.epoch)
		}
		return nil
	}
	if r.Resource.Parts().Agent != r.Agent {
		return refuse(wire.CodeForbidden, "resource %s is not of agent %s", r.Resource, r.Agent)
	}
	if other := s.env.tasks[r.Task]; other != nil {
		return refuse(wire.CodeFenced, "the task is with another process")
	}
	a := s.env.agents[r.Agent]
	if _, offered := slices.BinarySearch(s.names, r.Agent); a == nil || !offered && a.tenant != s.process {
		return refuse(wire.CodeForbidden, "the process does not offer agent %s", r.Agent)
	}
	if a.tenant != s.process || r.Epoch < a.floor {
		return refuse(wire.CodeReplaced, "another process has taken over agent %s under epoch %d", r.Agent, a.epoch)
	}
	if r.Epoch > a.epoch {
		return refuse(wire.CodeInvalid, "epoch %d was never given out; the current one is %d", r.Epoch, a.epoch)
	}
	return nil
}

func knownChange(c model.Change) bool {
	switch c {
	case model.ChangeNone, model.ChangeCreated, model.ChangePurged, model.ChangeUpdated:
		return true
	}
	return false
}

// knownLevel makes an unknown level INFO.
func knownLevel(l model.LogLevel) model.LogLevel {
	switch l {
	case model.LevelCritical, model.LevelError, model.LevelWarning, model.LevelInfo, model.LevelDebug, model.LevelTrace:
		return l
	}
	return model.LevelInfo
}

// enqueue puts a result in line behind others of its resource. The lock must be held.
func (h *Hub) enqueue(s *session, d delivery) {
	id := d.result.Resource
	s.queued[d.result.Task] = true
	s.queues[id] = append(s.queues[id], d)
	if len(s.queues[id]) > 1 {
		return
	}
	s.ready = append(s.ready, id)
	if s.workers < h.cfg.Reporters {
		s.workers++
		h.lanes.Go(func() { h.work(s) })
	}
}

// work stores queued results until there are no more.
func (h *Hub) work(s *session) {
	for {
		h.mu.Lock()
		if len(s.ready) == 0 {
			s.workers--
			h.mu.Unlock()
			return
		}
		id := s.ready[0]
		s.ready = s.ready[1:]
		d := s.queues[id][0]
		sink, ctx := h.sink, h.laneCtx
		h.mu.Unlock()

		err := store(ctx, sink, d.result)

		h.mu.Lock()
		h.stored(s, d, err)
		if rest := s.queues[id][1:]; len(rest) > 0 {
			s.queues[id] = rest
			s.ready = append(s.ready, id)
		} else {
			delete(s.queues, id)
		}
		h.mu.Unlock()
	}
}

// reportTimeout bounds one call of the sink, so that a stuck one does not hold up a resource for ever.
const reportTimeout = time.Minute

func store(ctx context.Context, sink Sink, r model.Result) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	return sink.Report(ctx, r)
}

// stored notes what became of a result. The lock must be held.
func (h *Hub) stored(s *session, d delivery, err error) {
	task := d.result.Task
	delete(s.queued, task)
	if err == nil || permanent(err) || d.local || s.dropped {
		h.forget(s, task)
	}
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, model.ErrUnavailable) {
			level = slog.LevelDebug // the environment has another owner, or none now: the agent will send it again
		}
		h.log.Log(context.Background(), level, "storing a result", "environment", s.env.id, "task", task, "resource", d.result.Resource, "error", err)
	}
	switch {
	case d.local:
		return
	case err == nil:
		h.metrics.stored.WithLabelValues(knownOutcome(d.result.Outcome)).Inc()
		s.ack.Stored = append(s.ack.Stored, task)
	case permanent(err):
		s.ack.Refused = append(s.ack.Refused, wire.Refusal{Task: task, Code: wire.CodeOf(err), Message: err.Error()})
	default:
		s.ack.Later = append(s.ack.Later, wire.Refusal{Task: task, Code: wire.CodeOf(err), Message: err.Error()})
	}
	s.signal()
}

// host makes the frame that tells the server's own process what to offer.
func (e *environment) host() *wire.Host {
	host := &wire.Host{Agents: make([]model.AgentName, 0, len(e.hosted)), Addresses: maps.Clone(e.addresses)}
	for name := range e.hosted {
		host.Agents = append(host.Agents, name)
	}
	slices.Sort(host.Agents)
	return host
}

func (e *environment) sendHost() {
	for _, s := range e.sessions {
		if s.autostarted {
			s.control = append(s.control, e.host())
			s.signal()
		}
	}
}

func (s *session) offers(name model.AgentName) bool {
	_, ok := slices.BinarySearch(s.names, name)
	return ok
}
