// Package pipe is how the agent and a handler program speak to each other: calls in both directions over two streams of bytes.
//
// A frame is a length of four bytes, most significant first, and that many bytes of JSON. There are four kinds:
//
//	{"id": 7, "call": "execute", "args": {…}}     a call; ids are per sender and grow from 1
//	{"id": 7, "result": …}                        its answer
//	{"id": 7, "error": {"class": …, "message": …}}
//	{"event": "log", "args": {…}}                 something that wants no answer
//
// Calls are served side by side, events one after the other, and an answer is taken after all events that came before it.
package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
)

// MaxFrame is the size of the largest frame in bytes.
const MaxFrame = 64 << 20

// ErrClosed says that the other side is gone.
var ErrClosed = errors.New("the other side of the pipe is gone")

// Error is a call's failure as the other side tells it.
type Error struct {
	// Class is a stable word for programs, empty when there is none.
	Class   string `json:"class,omitempty"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Handler answers a call. args is JSON; the result is encoded to JSON. ctx ends with the connection.
type Handler func(ctx context.Context, args json.RawMessage) (any, error)

// Config says what a connection does with what comes.
type Config struct {
	// Handlers answer calls, by method; each runs in a goroutine of its own.
	Handlers map[string]Handler
	// Event takes events, in the order in which they came. It must not block for long: nothing else is read meanwhile.
	Event func(name string, args json.RawMessage)
}

// Conn is a connection. Its methods may be called from several goroutines.
type Conn struct {
	config Config
	stream *Stream

	mu    sync.Mutex // guards the fields below
	next  uint64
	calls map[uint64]chan Frame // capacity 1
	err   error                 // why the connection is over; set before done is closed

	done chan struct{} // closed when no more frames come
}

// New makes a connection of two streams. Nothing is read before [Conn.Run].
func New(r io.Reader, w io.Writer, c Config) *Conn {
	c.Handlers = maps.Clone(c.Handlers)
	return &Conn{config: c, stream: NewStream(r, w, MaxFrame), calls: map[uint64]chan Frame{}, done: make(chan struct{})}
}

// Run reads until the stream ends and then waits for the calls that are being served. It returns nil when the other side
// closed in order, between frames. The caller closes the streams to end it early.
func (c *Conn) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var serves sync.WaitGroup
	var err error
	for {
		var f Frame
		if f, err = c.stream.Read(); err != nil {
			break
		}
		switch {
		case f.Event != "":
			if c.config.Event != nil {
				c.config.Event(f.Event, f.Args)
			}
		case f.Call != "":
			serves.Go(func() { c.serve(ctx, f) })
		default:
			c.mu.Lock()
			waiter := c.calls[f.ID]
			delete(c.calls, f.ID)
			c.mu.Unlock()
			if waiter != nil {
				waiter <- f
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	c.mu.Lock()
	c.err = ErrClosed
	if err != nil {
		c.err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	c.mu.Unlock()
	close(c.done)
	cancel()
	serves.Wait()
	return err
}

// Call calls a method of the other side and decodes the answer into result, unless that is nil. Errors: an [*Error] when the
// method fails, [ErrClosed] when the other side is gone, that of ctx when it is done first.
func (c *Conn) Call(ctx context.Context, method string, args, result any) error {
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("calling %s: %w", method, err)
	}
	answer := make(chan Frame, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.calls[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, id)
	}()
	if err := c.write(Frame{ID: id, Call: method, Args: text}); err != nil {
		return fmt.Errorf("calling %s: %w", method, err)
	}
	var f Frame
	select {
	case f = <-answer:
	case <-ctx.Done():
		return fmt.Errorf("calling %s: %w", method, context.Cause(ctx))
	case <-c.done:
		select {
		case f = <-answer: // it came last
		default:
			c.mu.Lock()
			defer c.mu.Unlock()
			return fmt.Errorf("calling %s: %w", method, c.err)
		}
	}
	if f.Error != nil {
		var e Error
		if err := json.Unmarshal(f.Error, &e); err != nil {
			return fmt.Errorf("calling %s: the error can not be read: %w", method, err)
		}
		return &e
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(f.Result, result); err != nil {
		return fmt.Errorf("calling %s: the answer can not be read: %w", method, err)
	}
	return nil
}

// Emit tells the other side something.
func (c *Conn) Emit(event string, args any) error {
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("telling %s: %w", event, err)
	}
	return c.write(Frame{Event: event, Args: text})
}

// serve answers a call. When the answer can not be written the connection is over, which [Conn.Run] finds out.
func (c *Conn) serve(ctx context.Context, f Frame) {
	answer := Frame{ID: f.ID}
	h := c.config.Handlers[f.Call]
	if h == nil {
		answer.fail(&Error{Class: "unknown-method", Message: "there is no method " + f.Call})
		_ = c.write(answer)
		return
	}
	v, err := h(ctx, f.Args)
	if err == nil {
		answer.Result, err = json.Marshal(v)
	}
	if err == nil && len(answer.Result) > MaxFrame-1<<10 {
		err = fmt.Errorf("the answer has %d bytes, more than the limit of %d", len(answer.Result), MaxFrame)
	}
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Message: err.Error()}
		}
		answer.fail(e)
	}
	_ = c.write(answer)
}

// fail makes an answer that of a call that has failed.
func (f *Frame) fail(e *Error) {
	f.Result = nil
	f.Error, _ = json.Marshal(e) //nolint:errchkjson // strings
}

func (c *Conn) write(f Frame) error {
	err := c.stream.Write(f)
	if _, large := errors.AsType[*TooLargeError](err); err == nil || large {
		return err
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}
