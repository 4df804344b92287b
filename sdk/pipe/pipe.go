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
	"bufio"
	"context"
	"encoding/binary"
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

// frame is a message of either side.
type frame struct {
	ID     uint64          `json:"id,omitempty"`
	Call   string          `json:"call,omitempty"`
	Event  string          `json:"event,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Conn is a connection. Its methods may be called from several goroutines.
type Conn struct {
	config Config
	r      *bufio.Reader

	writing sync.Mutex // guards w
	w       io.Writer

	mu    sync.Mutex // guards the fields below
	next  uint64
	calls map[uint64]chan frame // capacity 1
	err   error                 // why the connection is over; set before done is closed

	done chan struct{} // closed when no more frames come
}

// New makes a connection of two streams. Nothing is read before [Conn.Run].
func New(r io.Reader, w io.Writer, c Config) *Conn {
	c.Handlers = maps.Clone(c.Handlers)
	return &Conn{config: c, r: bufio.NewReaderSize(r, 1<<16), w: w, calls: map[uint64]chan frame{}, done: make(chan struct{})}
}

// Run reads until the stream ends and then waits for the calls that are being served. It returns nil when the other side
// closed in order, between frames. The caller closes the streams to end it early.
func (c *Conn) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var serves sync.WaitGroup
	var err error
	for {
		var f frame
		if f, err = c.read(); err != nil {
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
	answer := make(chan frame, 1)
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
	if err := c.write(frame{ID: id, Call: method, Args: text}); err != nil {
		return fmt.Errorf("calling %s: %w", method, err)
	}
	var f frame
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
		return f.Error
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
	return c.write(frame{Event: event, Args: text})
}

// serve answers a call. When the answer can not be written the connection is over, which [Conn.Run] finds out.
func (c *Conn) serve(ctx context.Context, f frame) {
	answer := frame{ID: f.ID}
	h := c.config.Handlers[f.Call]
	if h == nil {
		answer.Error = &Error{Class: "unknown-method", Message: "there is no method " + f.Call}
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
		answer.Result, answer.Error = nil, e
	}
	_ = c.write(answer)
}

func (c *Conn) write(f frame) error {
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding a frame: %w", err)
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("a frame of %d bytes is larger than the limit of %d", len(body), MaxFrame)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	head := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	if _, err := c.w.Write(append(head, body...)); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return nil
}

func (c *Conn) read() (frame, error) {
	var head [4]byte
	var f frame
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return f, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxFrame {
		return f, fmt.Errorf("a frame of %d bytes is announced; the limit is %d", n, MaxFrame)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.r, body); err != nil {
		return f, fmt.Errorf("a frame is cut short: %w", noEOF(err))
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("a frame can not be read: %w", err)
	}
	return f, nil
}

// noEOF keeps an end in the midst of a frame from counting as an end in order.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
