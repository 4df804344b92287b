package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/intendant/intendant/confine"
	"github.com/intendant/intendant/sdk/pipe"
)

// protocolVersion is the version of the frames; both sides must have the same.
const protocolVersion = 1

// Defaults of [Config].
const (
	DefaultMaxFrame     = 256 << 20
	DefaultStartTimeout = 30 * time.Second
)

// Handler answers a call from Python. args is the JSON of the arguments; the result is written as JSON. An error reaches Python
// as an exception: an [*Error] with its own class, any other with the class RuntimeError.
type Handler func(ctx context.Context, args json.RawMessage) (any, error)

// Config says what to run.
type Config struct {
	// Interpreter is the path of the Python interpreter, see [Find].
	Interpreter string
	// Runtime is the directory of the unpacked packages, see [Unpack].
	Runtime string
	// Module is the module of the host side to run, such as intendant_host.compile; its function main is called.
	Module string
	// Dir is the working directory.
	Dir string
	// Env is the whole environment, as NAME=value. Variables such as PYTHONPATH have no effect: the interpreter is isolated.
	Env []string
	// Stdout and Stderr take the lines that the process writes, without the line break, each from one goroutine. nil discards.
	Stdout, Stderr func(line string)
	// Handlers answer the calls of the process, by method.
	Handlers map[string]Handler
	// Event takes the events of the process other than hello, on the goroutine that reads frames; nil ignores them.
	Event func(name string, args json.RawMessage)
	// MaxFrame bounds a frame in bytes. Defaults to [DefaultMaxFrame].
	MaxFrame int
	// StartTimeout bounds the time until the process greets. Defaults to [DefaultStartTimeout].
	StartTimeout time.Duration
	// ShareGroup leaves the process in the process group of its parent, for a parent whose whole group is ended from outside.
	// Otherwise the process leads a group, which ends with it.
	ShareGroup bool
	// Memory bounds what the process and its descendants hold together, in bytes: when they pass it all of them are killed, and
	// calls end with an [*ExitError] that says so. 0 is no limit.
	Memory int64
}

// Error is an exception that was raised in Python.
type Error struct {
	// Class is the name of the exception's class.
	Class   string `json:"class"`
	Message string `json:"message"`
	// Traceback is Python's, with line breaks; empty when there is none.
	Traceback string `json:"traceback,omitempty"`
	// Data is what else the host side says about the exception; its form depends on the method.
	Data json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Class + ": " + e.Message }

// ExitError says that the process has ended although it was still needed.
type ExitError struct {
	// State is how it ended, such as "exit status 1"; empty when it still runs but does not answer any more.
	State string
	// Stderr are the last lines that it wrote to its standard error.
	Stderr string
	// Err is why the connection broke; nil when it was closed in order.
	Err error
	// Memory is the limit that was passed when the process was killed for that, in bytes; else 0.
	Memory int64
}

func (e *ExitError) Error() string {
	if e.Memory > 0 {
		return fmt.Sprintf("the Python process and those that it started used more memory than the limit of %s and were killed", confine.Size(e.Memory))
	}
	text := "the Python process ended"
	if e.State != "" {
		text += " (" + e.State + ")"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

func (e *ExitError) Unwrap() error { return e.Err }

// ErrClosed says that a process was used after [Process.Close].
var ErrClosed = errors.New("the Python process is closed")

// Process is a running Python process. Its methods may be called from several goroutines.
type Process struct {
	cfg Config
	cmd *exec.Cmd
	in  *os.File // to the process
	out *os.File // from the process
	// stream is frames over both.
	stream *pipe.Stream
	hello  struct {
		Protocol int    `json:"protocol"`
		Python   string `json:"python"`
		Prefix   string `json:"prefix"`
	}
	tail tail

	mu       sync.Mutex // guards the fields below
	next     uint64
	calls    map[uint64]*call
	handlers map[string]Handler
	closed   bool
	err      error // why the connection is over; set before done is closed

	done   chan struct{} // closed when no more frames come
	exited chan struct{} // closed when the process is gone and its output is read
	state  *os.ProcessState
	memory confine.Watch
	serves sync.WaitGroup  // handlers of calls that belong to no call of ours
	ctx    context.Context //nolint:containedctx // the life of the process: what such handlers get
	cancel context.CancelFunc
}

// call is a call that waits for its answer. Frames that belong to it queue up until its goroutine takes them.
type call struct {
	mu     sync.Mutex // guards queue
	queue  []pipe.Frame
	signal chan struct{} // capacity 1: there is something in the queue
}

func (c *call) put(f pipe.Frame) {
	c.mu.Lock()
	c.queue = append(c.queue, f)
	c.mu.Unlock()
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

func (c *call) take() (pipe.Frame, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return pipe.Frame{}, false
	}
	f := c.queue[0]
	c.queue = c.queue[1:]
	return f, true
}

// newProcess is a process that does not run yet, with the defaults of the configuration filled in.
func newProcess(cfg Config) *Process {
	if cfg.MaxFrame <= 0 {
		cfg.MaxFrame = DefaultMaxFrame
	}
	if cfg.StartTimeout <= 0 {
		cfg.StartTimeout = DefaultStartTimeout
	}
	p := &Process{
		cfg: cfg, calls: map[uint64]*call{}, handlers: map[string]Handler{}, done: make(chan struct{}), exited: make(chan struct{}),
	}
	maps.Copy(p.handlers, cfg.Handlers)
	return p
}

// Start runs a process and returns when it has greeted. The process lives until [Process.Close], until ctx is done, or until
// this program dies.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	p := newProcess(cfg)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting Python: %w", err)
	}
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("starting Python (%s): %w", cfg.Interpreter, err)
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	context.AfterFunc(p.ctx, p.kill)
	if err := p.greet(); err != nil {
		p.Close()
		return nil, fmt.Errorf("starting Python (%s): %w", cfg.Interpreter, err)
	}
	return p, nil
}

// Attach speaks to a Python process that somebody else has started and whose host side serves over two descriptors: in goes to
// it, out comes from it. [Process.Close] closes them and leaves the process alone. Of the configuration only what concerns frames
// has a meaning.
func Attach(ctx context.Context, in, out *os.File, cfg Config) (*Process, error) {
	p := newProcess(cfg)
	p.in, p.out = in, out
	close(p.exited) // it is not ours to wait for
	p.ctx, p.cancel = context.WithCancel(ctx)
	context.AfterFunc(p.ctx, p.kill)
	if err := p.greet(); err != nil {
		p.Close()
		return nil, fmt.Errorf("attaching to Python: %w", err)
	}
	return p, nil
}

func (p *Process) start() error {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("making a pipe: %w", err), theirIn.Close(), in.Close())
	}
	p.in, p.out = in, out
	stdout, stderr := &lines{emit: p.cfg.Stdout}, &lines{emit: p.errLine}
	// The context ends the process through kill, which takes its children along; exec would end the leader alone.
	p.cmd = exec.Command(p.cfg.Interpreter, "-I", "-X", "utf8", filepath.Join(p.cfg.Runtime, "intendant_host", "boot.py"), p.cfg.Module) //nolint:noctx // it outlives the call that starts it
	p.cmd.Dir, p.cmd.Env = p.cfg.Dir, p.cfg.Env
	if p.cmd.Env == nil {
		p.cmd.Env = []string{}
	}
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !p.cfg.ShareGroup, Pdeathsig: syscall.SIGKILL}
	// Children that left the group may keep the standard streams open.
	p.cmd.WaitDelay = time.Second

	started := make(chan error, 1)
	ended := make(chan struct{}) // closed when the process has ended and is not waited for yet
	var watching sync.WaitGroup
	if p.cfg.Memory > 0 {
		p.memory.Limit = p.cfg.Memory
		watching.Add(1)
	}
	go func() {
		// The death signal comes when the thread that started the child ends: it is kept until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// While the leader is not waited for, the group's number is still its own: what it left behind ends with it.
		confine.WaitExit(p.cmd.Process.Pid)
		close(ended)
		watching.Wait()
		if !p.cfg.ShareGroup {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		}
		_ = p.cmd.Wait() // the state says how it ended
		stdout.flush()
		stderr.flush()
		p.state = p.cmd.ProcessState
		close(p.exited)
	}()
	if err = <-started; err == nil && p.cfg.Memory > 0 {
		go func() {
			defer watching.Done()
			p.watch(ended)
		}()
		err = confine.Set(p.cmd.Process.Pid, confine.Limits{Memory: p.cfg.Memory})
	}
	err = errors.Join(err, theirIn.Close(), theirOut.Close())
	if err != nil {
		p.kill()
		return errors.Join(err, in.Close(), out.Close())
	}
	return nil
}

// The memory of a process is looked at so often while it has something to do, and idleLooks times less often while not.
const (
	lookInterval = 50 * time.Millisecond
	idleLooks    = 40
)

// watch kills the process, and what it started, when they use too much memory. It returns when the process has ended.
func (p *Process) watch(ended <-chan struct{}) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		busy := len(p.calls) > 0
		p.mu.Unlock()
		if (busy || n%idleLooks == 0) && p.memory.Look(p.cmd.Process.Pid) {
			confine.Kill(p.cmd.Process.Pid)
		}
	}
}

// greet exchanges the first frames and starts reading.
func (p *Process) greet() error {
	_ = p.out.SetReadDeadline(time.Now().Add(p.cfg.StartTimeout))
	p.stream = pipe.NewStream(p.out, p.in, p.cfg.MaxFrame)
	greeting, _ := json.Marshal(map[string]any{"protocol": protocolVersion, "max_frame": p.cfg.MaxFrame}) //nolint:errchkjson // two numbers
	unheard := p.stream.Write(pipe.Frame{Event: "hello", Args: greeting})
	f, err := p.stream.Read() // who does not listen may have said something
	if unheard != nil && errors.Is(err, io.EOF) {
		err = unheard
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		close(p.done)
		return fmt.Errorf("it did not greet within %s", p.cfg.StartTimeout)
	case err != nil:
		close(p.done)
		return p.ended(err)
	}
	if err := json.Unmarshal(f.Args, &p.hello); err != nil || f.Event != "hello" || p.hello.Protocol != protocolVersion {
		close(p.done)
		return fmt.Errorf("it speaks protocol %d instead of %d", p.hello.Protocol, protocolVersion)
	}
	_ = p.out.SetReadDeadline(time.Time{})
	go p.readAll()
	return nil
}

// ended is the error of a connection that broke, with how the process ended when that is known within a moment.
func (p *Process) ended(err error) error {
	e := &ExitError{}
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
		e.Err = err
	}
	t := time.NewTimer(2 * time.Second)
	defer t.Stop()
	select {
	case <-p.exited:
		if p.state != nil {
			e.State = p.state.String()
		}
	case <-t.C:
	}
	e.Stderr = p.tail.text()
	if p.memory.Over() {
		e.Memory = p.memory.Limit
	}
	return e
}

// Version is the version of the interpreter, such as 3.12.4.
func (p *Process) Version() string { return p.hello.Python }

// Prefix is the directory of the interpreter's environment.
func (p *Process) Prefix() string { return p.hello.Prefix }

// PID is the number of the process; 0 when it is not our child.
func (p *Process) PID() int {
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Handle sets the handler of a method.
func (p *Process) Handle(method string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers[method] = h
}

// Call calls a method of the process. args is written as JSON, a
// json.RawMessage as it is; the result is decoded into result unless that is nil; a
// *json.RawMessage takes the text itself. Calls that Python makes meanwhile on behalf of this one are handled by this goroutine, with
// ctx. Errors: an [*Error] for an exception, an [*ExitError] when the process is gone, that of ctx when that is done first: the
// process then may still work on the call.
func (p *Process) Call(ctx context.Context, method string, args, result any) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("calling %s: %w", method, err)
	}
	text, ok := args.(json.RawMessage)
	if !ok {
		var err error
		if text, err = json.Marshal(args); err != nil {
			return fmt.Errorf("calling %s: %w", method, err)
		}
	}
	if len(text) > p.cfg.MaxFrame-1<<10 {
		return fmt.Errorf("calling %s: the arguments have %d bytes, more than the limit of %d", method, len(text), p.cfg.MaxFrame)
	}
	c := &call{signal: make(chan struct{}, 1)}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fmt.Errorf("calling %s: %w", method, ErrClosed)
	}
	p.next++
	id := p.next
	p.calls[id] = c
	p.mu.Unlock()
	defer p.forget(id, c)
	if err := p.stream.Write(pipe.Frame{ID: id, Call: method, Args: text}); err != nil {
		return fmt.Errorf("calling %s: %w", method, p.ended(err))
	}
	for {
		f, ok := c.take()
		if !ok {
			select {
			case <-c.signal:
				continue
			default:
			}
			select {
			case <-c.signal:
			case <-ctx.Done():
				return fmt.Errorf("calling %s: %w", method, context.Cause(ctx))
			case <-p.done:
				if f, ok = c.take(); !ok { // it may have come last
					return fmt.Errorf("calling %s: %w", method, p.failure())
				}
			}
			if !ok {
				continue
			}
		}
		switch {
		case f.Call != "":
			p.serve(ctx, f)
		case f.Error != nil:
			e := &Error{}
			if err := json.Unmarshal(f.Error, e); err != nil {
				return fmt.Errorf("calling %s: the exception can not be read: %w", method, err)
			}
			return e
		case result == nil:
			return nil
		default:
			if raw, ok := result.(*json.RawMessage); ok {
				*raw = f.Result
				return nil
			}
			if err := json.Unmarshal(f.Result, result); err != nil {
				return fmt.Errorf("calling %s: the result can not be read: %w", method, err)
			}
			return nil
		}
	}
}

// Emit tells the process something; there is no answer.
func (p *Process) Emit(event string, args any) error {
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("telling %s: %w", event, err)
	}
	if err := p.stream.Write(pipe.Frame{Event: event, Args: text}); err != nil {
		return fmt.Errorf("telling %s: %w", event, p.ended(err))
	}
	return nil
}

// forget ends a call: what Python asks on its behalf from now on is refused.
func (p *Process) forget(id uint64, c *call) {
	p.mu.Lock()
	delete(p.calls, id)
	p.mu.Unlock()
	for {
		f, ok := c.take()
		if !ok {
			return
		}
		p.refuse(f)
	}
}

// refuse answers a call for which nobody waits any more.
func (p *Process) refuse(f pipe.Frame) {
	if f.Call != "" {
		p.answer(f.ID, nil, &Error{Class: "ClosedError", Message: "nobody waits for this any more"})
	}
}

func (p *Process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// readAll takes frames to those that wait for them until the connection is over.
func (p *Process) readAll() {
	var err error
	for err == nil {
		var f pipe.Frame
		if f, err = p.stream.Read(); err == nil {
			p.deliver(f)
		}
	}
	p.kill() // who does not speak the protocol, or has closed its end, is of no use
	ended := p.ended(err)
	p.mu.Lock()
	p.err = ended
	if p.closed {
		p.err = ErrClosed
	}
	p.mu.Unlock()
	close(p.done)
}

func (p *Process) deliver(f pipe.Frame) {
	switch {
	case f.Event != "":
		if p.cfg.Event != nil {
			p.cfg.Event(f.Event, f.Args)
		}
	case f.Call != "" && f.In == 0:
		p.serves.Go(func() { p.serve(p.ctx, f) })
	default:
		id := f.ID
		if f.Call != "" {
			id = f.In
		}
		p.mu.Lock()
		c := p.calls[id]
		if c != nil {
			c.put(f) // under the lock, so that forget sees it
		}
		p.mu.Unlock()
		if c == nil {
			// Writing waits for a process that reads; frames must not wait for that.
			p.serves.Go(func() { p.refuse(f) })
		}
	}
}

// serve answers a call.
func (p *Process) serve(ctx context.Context, f pipe.Frame) {
	p.mu.Lock()
	h := p.handlers[f.Call]
	p.mu.Unlock()
	if h == nil {
		p.answer(f.ID, nil, &Error{Class: "LookupError", Message: "there is no method " + f.Call})
		return
	}
	v, err := h(ctx, f.Args)
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Class: "RuntimeError", Message: err.Error()}
		}
		p.answer(f.ID, nil, e)
		return
	}
	raw, ok := v.(json.RawMessage)
	if !ok {
		if raw, err = json.Marshal(v); err != nil {
			p.answer(f.ID, nil, &Error{Class: "TypeError", Message: err.Error()})
			return
		}
	}
	if len(raw) > p.cfg.MaxFrame-1<<10 {
		p.answer(f.ID, nil, &Error{Class: "FrameTooLargeError", Message: fmt.Sprintf("the answer has %d bytes, more than the limit of %d", len(raw), p.cfg.MaxFrame)})
		return
	}
	p.answer(f.ID, raw, nil)
}

// answer writes the answer to a call. When that fails the connection is over, which whoever reads finds out.
func (p *Process) answer(id uint64, result json.RawMessage, e *Error) {
	f := pipe.Frame{ID: id, Result: result}
	switch {
	case e != nil:
		text, err := json.Marshal(e)
		if err != nil { // its data is no JSON
			text, _ = json.Marshal(&Error{Class: e.Class, Message: e.Message, Traceback: e.Traceback}) //nolint:errchkjson // strings
		}
		f.Result, f.Error = nil, text
	case result == nil:
		f.Result = json.RawMessage("null")
	}
	_ = p.stream.Write(f)
}

// kill ends the process, and its process group when it leads one.
func (p *Process) kill() {
	if p.cmd == nil {
		// Closing twice does no harm.
		_, _ = p.in.Close(), p.out.Close()
		return
	}
	if p.cmd.Process == nil {
		return
	}
	select {
	case <-p.exited:
		return // the number may belong to somebody else by now
	default:
	}
	if !p.cfg.ShareGroup {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		return
	}
	_ = p.cmd.Process.Kill()
}

// Close ends the process and returns when it is gone and no handler runs on behalf of it. Calls that wait end with an error.
// Close may be called more than once.
func (p *Process) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.kill()
	<-p.exited
	_ = p.in.Close()
	_ = p.out.Close()
	<-p.done
	p.serves.Wait()
}

// Wait returns when the process is gone, with how it ended: nil for exit status 0.
func (p *Process) Wait() error {
	<-p.exited
	if p.state == nil || p.state.Success() {
		return nil
	}
	return &ExitError{State: p.state.String(), Stderr: p.tail.text()}
}

// errLine takes a line of standard error.
func (p *Process) errLine(line string) {
	p.tail.add(line)
	if p.cfg.Stderr != nil {
		p.cfg.Stderr(line)
	}
}

// tailLines is how many lines of standard error an [ExitError] quotes.
const tailLines = 8

// tail keeps the last lines of a text.
type tail struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(line) > 500 {
		line = line[:500]
	}
	if t.lines = append(t.lines, line); len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
