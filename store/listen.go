package store

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
)

// channel is the name of the notification channel that carries hints.
const channel = "intendant_hint"

const (
	// maxPending bounds the hints that wait for one subscriber; beyond it they are merged into coarser ones.
	maxPending = 1024
	// pingInterval is how often a silent listening connection is tested: a half-open one never fails by itself.
	pingInterval = 30 * time.Second
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
)

// encodeHint renders a hint as payload: topic, environment and id, separated by spaces.
func encodeHint(h model.Hint) string {
	const maxID = 4000 // a payload holds less than 8000 bytes
	env := "-"
	if h.Environment.UUID != uuid.Nil {
		env = h.Environment.String()
	}
	id := text(h.ID)
	if len(id) > maxID {
		id = ""
	}
	return string(h.Topic) + " " + env + " " + id
}

// decodeHint reads what encodeHint wrote; ok is false for anything else.
func decodeHint(payload string) (h model.Hint, ok bool) {
	topic, rest, ok := strings.Cut(payload, " ")
	if !ok {
		return model.Hint{}, false
	}
	env, id, ok := strings.Cut(rest, " ")
	if !ok {
		return model.Hint{}, false
	}
	h = model.Hint{Topic: model.Topic(topic), ID: id}
	if env != "-" {
		u, err := uuid.Parse(env)
		if err != nil {
			return model.Hint{}, false
		}
		h.Environment = model.EnvironmentID{UUID: u}
	}
	return h, true
}

// hub listens on one connection and hands hints to the subscribers.
type hub struct {
	cancel context.CancelFunc
	ended  <-chan struct{} // closed when the hub ends
	cfg    *pgx.ConnConfig
	log    *slog.Logger
	ready  chan struct{} // closed when the first connection listens
	wait   sync.WaitGroup

	mu        sync.Mutex
	closed    bool                     // guarded by mu
	heard     bool                     // guarded by mu: ready is closed
	listening bool                     // guarded by mu: the channel is being listened on now
	subs      map[*subscriber]struct{} // guarded by mu
}

// subscriber is one call of Subscribe.
type subscriber struct {
	topics []model.Topic
	// wake has room for one: a sign that pending is not empty.
	wake chan struct{}

	mu      sync.Mutex
	pending []model.Hint            // guarded by mu, in the order of arrival
	queued  map[model.Hint]struct{} // guarded by mu: what pending has
}

func newHub(log *slog.Logger, cfg *pgx.ConnConfig) *hub {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hub{cancel: cancel, ended: ctx.Done(), cfg: cfg, log: log, ready: make(chan struct{}), subs: map[*subscriber]struct{}{}}
	h.wait.Go(func() { h.run(ctx) })
	return h
}

// close ends the listener and all subscriptions and waits for their goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.wait.Wait()
}

// Subscribe delivers hints of the given topics until ctx ends or the store is closed; the channel is then closed. Equal hints
// that wait are merged, and when very many wait, those of a topic are merged into one without id or without environment,
// which means "anything of this topic". So does one per topic after the connection was lost, since what was said meanwhile
// is not known. The channel has no buffer: a slow subscriber hears less, and nobody waits for it.
func (s *Store) Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint {
	out := make(chan model.Hint)
	h := s.hub
	sub := &subscriber{topics: slices.Clone(topics), wake: make(chan struct{}, 1), queued: map[model.Hint]struct{}{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(out)
		return out
	}
	h.subs[sub] = struct{}{}
	if !h.listening {
		// What is said before the connection is (again) up is not heard.
		sub.addAll()
	}
	h.wait.Go(func() { h.deliver(ctx, sub, out) })
	return out
}

func (h *hub) deliver(ctx context.Context, sub *subscriber, out chan<- model.Hint) {
	defer close(out)
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, sub)
	}()
	for {
		hint, ok := sub.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-h.ended:
				return
			case <-sub.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-h.ended:
			return
		case out <- hint:
		}
	}
}

// next takes the oldest hint that waits.
func (s *subscriber) next() (model.Hint, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return model.Hint{}, false
	}
	hint := s.pending[0]
	s.pending = s.pending[1:]
	delete(s.queued, hint)
	return hint, true
}

func (s *subscriber) wants(t model.Topic) bool { return slices.Contains(s.topics, t) }

// addAll says "anything may have changed" for each topic.
func (s *subscriber) addAll() {
	for _, t := range s.topics {
		s.add(model.Hint{Topic: t})
	}
}

// add queues a hint unless it, or one that covers it, waits already.
func (s *subscriber) add(hint model.Hint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxPending {
		hint.ID = ""
	}
	if len(s.pending) >= 2*maxPending {
		hint.Environment = model.EnvironmentID{}
	}
	for _, cover := range []model.Hint{hint, {Topic: hint.Topic, Environment: hint.Environment}, {Topic: hint.Topic}} {
		if _, ok := s.queued[cover]; ok {
			return
		}
	}
	s.queued[hint] = struct{}{}
	s.pending = append(s.pending, hint)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run keeps a listening connection until ctx ends.
func (h *hub) run(ctx context.Context) {
	backoff := firstBackoff
	for {
		began := time.Now()
		err := h.listen(ctx)
		h.setListening(false)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxBackoff {
			backoff = firstBackoff
		}
		h.log.Warn("listening for changes in the database was interrupted; trying again", "error", err, "after", backoff)
		t := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// listen serves one connection; it returns when that breaks.
func (h *hub) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, h.cfg.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	h.setListening(true)
	for {
		wait, cancel := context.WithTimeout(ctx, pingInterval)
		n, err := conn.WaitForNotification(wait)
		expired := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			if hint, ok := decodeHint(n.Payload); ok {
				h.publish(hint)
			}
		case expired && !conn.IsClosed():
			if err := ping(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, pingInterval/3)
	defer cancel()
	return conn.Ping(ctx)
}

func (h *hub) publish(hint model.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for sub := range h.subs {
		if sub.wants(hint.Topic) {
			sub.add(hint)
		}
	}
}

// setListening notes whether hints are heard; when they are again, every subscriber is told that it may have missed some.
func (h *hub) setListening(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on == h.listening {
		return
	}
	h.listening = on
	if !on {
		return
	}
	if !h.heard {
		h.heard = true
		close(h.ready)
	}
	for sub := range h.subs {
		sub.addAll()
	}
}
