package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

const (
	// eventsKept is how many events are kept for streams that come back.
	eventsKept = 4096
	// eventsQueued is how many events wait for one slow client before it is told to start anew.
	eventsQueued = 256
	// writeTimeout is how long one write to a stream may take.
	writeTimeout = 20 * time.Second
)

// eventKinds says what a hint about stored data is called on the wire.
var eventKinds = map[model.Topic]string{
	model.TopicCompileQueued:   api.EventCompile,
	model.TopicCompileChanged:  api.EventCompile,
	model.TopicCompileCancel:   api.EventCompile,
	model.TopicVersionStored:   api.EventVersion,
	model.TopicVersionReleased: api.EventVersion,
	model.TopicCommand:         api.EventCommand,
	model.TopicResourceChanged: api.EventResource,
	model.TopicAgentChanged:    api.EventAgent,
	model.TopicEnvironment:     api.EventEnvironment,
	model.TopicRepository:      api.EventRepository,
	model.TopicDelivery:        api.EventDelivery,
	model.TopicDryRun:          api.EventDryRun,
	model.TopicNotification:    api.EventNotification,
	model.TopicParameter:       api.EventParameter,
}

// numbered is an event with its place in the sequence.
type numbered struct {
	number uint64
	event  api.Event
}

// broker hands the store's hints to the open streams. It keeps the newest events, so that a stream that was cut goes on
// where it ended; one that has missed more is told to start anew.
type broker struct {
	store Hints
	max   int
	// boot tells the numbers of this process from those of another.
	boot string
	done chan struct{}
	once sync.Once

	mu      sync.Mutex // guards what follows
	last    uint64
	kept    []numbered
	streams map[*stream]struct{}
}

// stream is one client. Its channel is written by the broker alone and never closed.
type stream struct {
	events chan numbered
	// lost has room for one note that the client missed something.
	lost chan struct{}
	only *model.EnvironmentID
}

func newBroker(store Hints, limit int) *broker {
	return &broker{
		store: store, max: limit, boot: strings.ReplaceAll(uuid.NewString(), "-", "")[:12], done: make(chan struct{}),
		streams: map[*stream]struct{}{},
	}
}

// run publishes hints until ctx ends. A subscription that ends before is renewed, and everybody starts anew.
func (b *broker) run(ctx context.Context) {
	topics := make([]model.Topic, 0, len(eventKinds))
	for t := range eventKinds {
		topics = append(topics, t)
	}
	for ctx.Err() == nil {
		for hint := range b.store.Subscribe(ctx, topics...) {
			e := api.Event{Kind: eventKinds[hint.Topic], ID: hint.ID}
			if e.Kind == "" {
				continue
			}
			if hint.Environment.UUID != uuid.Nil {
				e.Environment = hint.Environment.String()
			}
			b.publish(e)
		}
		if ctx.Err() == nil {
			b.publish(api.Event{Kind: api.EventResync})
			select {
			case <-ctx.Done():
			case <-time.After(time.Second): // the store's own pause before it connects again is not known here
			}
		}
	}
}

// publish gives an event to every stream it concerns, without waiting for any.
func (b *broker) publish(e api.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	n := numbered{b.last, e}
	if len(b.kept) == eventsKept {
		b.kept = append(b.kept[:0], b.kept[eventsKept/2:]...)
	}
	b.kept = append(b.kept, n)
	for s := range b.streams {
		if s.wants(e) {
			s.offer(n)
		}
	}
}

func (s *stream) wants(e api.Event) bool {
	return s.only == nil || e.Environment == "" || e.Environment == s.only.String()
}

func (s *stream) offer(n numbered) {
	select {
	case s.events <- n:
	default:
		select {
		case s.lost <- struct{}{}:
		default: // it is noted already
		}
	}
}

// open adds a stream that goes on after the event with the given id. It fails when there are too many.
func (b *broker) open(only *model.EnvironmentID, after string) (*stream, error) {
	s := &stream{events: make(chan numbered, eventsQueued), lost: make(chan struct{}, 1), only: only}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.streams) >= b.max {
		return nil, fmt.Errorf("%d event streams are open, which is the limit: %w", b.max, model.ErrUnavailable)
	}
	b.streams[s] = struct{}{}
	if after == "" {
		return s, nil
	}
	boot, text, _ := strings.Cut(after, "-")
	number, err := strconv.ParseUint(text, 10, 64)
	first := b.last + 1
	if len(b.kept) > 0 {
		first = b.kept[0].number
	}
	if err != nil || boot != b.boot || number > b.last || number+1 < first {
		s.lost <- struct{}{}
		return s, nil
	}
	for _, n := range b.kept {
		if n.number > number && s.wants(n.event) {
			s.offer(n)
		}
	}
	return s, nil
}

func (b *broker) drop(s *stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.streams, s)
}

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.streams)
}

// newest is the number of the newest event.
func (b *broker) newest() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// close ends all streams.
func (b *broker) close() { b.once.Do(func() { close(b.done) }) }

type eventArgs struct {
	Environment *model.EnvironmentID `arg:"environment" doc:"Only events of this environment, and those of none."`
	After       *string              `arg:"last_event_id" doc:"As the header Last-Event-ID, for clients that can not set it."`
}

// eventStream serves server-sent events.
func (s *Server) eventStream(w http.ResponseWriter, r *http.Request, c *call, a eventArgs) error {
	only := a.Environment
	if only == nil {
		only = c.identity.Environment
	}
	after := r.Header.Get("Last-Event-ID")
	if after == "" && a.After != nil {
		after = *a.After
	}
	st, err := s.events.open(only, after)
	if err != nil {
		return err
	}
	defer s.events.drop(st)

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder in a test has none
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	if !send("retry: 2000\n: intendant " + s.events.boot + "\n\n") {
		return nil
	}
	beat := time.NewTicker(s.config.Heartbeat)
	defer beat.Stop()
	for {
		var ok bool
		select {
		case <-r.Context().Done():
			return nil
		case <-s.events.done:
			return nil
		case <-beat.C:
			ok = send(": \n\n")
		case <-st.lost:
			st.drain()
			ok = send(s.events.frame(numbered{s.events.newest(), api.Event{Kind: api.EventResync}}))
		case n := <-st.events:
			ok = send(s.events.frame(n))
		}
		if !ok {
			return nil
		}
	}
}

// drain forgets what waits: the client reads everything anew.
func (s *stream) drain() {
	for {
		select {
		case <-s.events:
		default:
			return
		}
	}
}

// frame writes an event as the stream has it.
func (b *broker) frame(n numbered) string {
	data, err := marshal(n.event)
	if err != nil { // an event is three texts
		return ": \n\n"
	}
	return "id: " + b.boot + "-" + strconv.FormatUint(n.number, 10) + "\ndata: " + string(data) + "\n\n"
}
