package programs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/pipe"
	"github.com/intendant/intendant/sdk/program"
)

// codeProgramEnded is the reason code of a run whose program ended before it answered.
const codeProgramEnded = "handler-program-ended"

// handlerProgram is one handler program, running or not.
type handlerProgram struct {
	config Config
	path   string
	log    *slog.Logger
	// types are those of its first greeting.
	types []string

	// starting has one token: who holds it may start the program.
	starting chan struct{}

	mu      sync.Mutex // guards the fields below
	current *process
	closed  bool
	fails   int       // ends in a row without a task done
	rest    time.Time // no start before this
}

func newProgram(c Config, path string) *handlerProgram {
	return &handlerProgram{config: c, path: path, log: c.Logger.With("program", filepath.Base(path)), starting: make(chan struct{}, 1)}
}

// process is one run of a program.
type process struct {
	hello program.Hello
	conn  *pipe.Conn
	cmd   *exec.Cmd
	// done is closed when the process is gone and its streams are read.
	done chan struct{}

	mu    sync.Mutex // guards the fields below
	next  uint64
	tasks map[uint64]*sdk.Context
	state string // how it ended; set before done is closed
}

// running returns the process, started if need be.
func (x *handlerProgram) running(ctx context.Context) (*process, error) {
	select {
	case x.starting <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-x.starting }()
	x.mu.Lock()
	p, closed, rest := x.current, x.closed, x.rest
	x.mu.Unlock()
	if closed {
		return nil, errors.New("the agent is stopping")
	}
	if p != nil {
		select {
		case <-p.done:
		default:
			return p, nil
		}
	}
	timer := time.NewTimer(time.Until(rest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, fmt.Errorf("it has ended too often and rests until %s: %w", rest.Format(time.TimeOnly), context.Cause(ctx))
	}
	p, err := x.start(ctx)
	if err != nil {
		x.ended()
		return nil, err
	}
	x.mu.Lock()
	x.current, closed = p, x.closed
	x.mu.Unlock()
	if closed {
		p.kill()
		<-p.done
		return nil, errors.New("the agent is stopping")
	}
	return p, nil
}

// ended notes that the program ended unasked.
func (x *handlerProgram) ended() {
	x.mu.Lock()
	defer x.mu.Unlock()
	pause := min(x.config.Pause<<min(x.fails, 10), maxPause)
	x.fails++
	x.rest = time.Now().Add(pause)
}

// start runs the program and waits for its greeting.
func (x *handlerProgram) start(ctx context.Context) (*process, error) {
	fromAgent, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	out, toAgent, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), fromAgent.Close(), in.Close())
	}
	output, theirs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), fromAgent.Close(), in.Close(), out.Close(), toAgent.Close())
	}
	p := &process{done: make(chan struct{}), tasks: map[uint64]*sdk.Context{}}
	p.cmd = exec.Command(x.path) //nolint:noctx // it outlives the task that starts it, and is ended with its group
	p.cmd.Dir = x.config.Dir
	p.cmd.Env = append(slices.Clone(x.config.Env), program.Variable+"=1")
	p.cmd.Stdout, p.cmd.Stderr = theirs, theirs
	p.cmd.ExtraFiles = []*os.File{fromAgent, toAgent}
	// A group of its own, and the kernel ends it when the agent dies.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = p.cmd.Start()
	err = errors.Join(err, fromAgent.Close(), toAgent.Close(), theirs.Close())
	if err != nil {
		p.kill()
		return nil, errors.Join(fmt.Errorf("starting it: %w", err), in.Close(), out.Close(), output.Close())
	}
	hello := make(chan program.Hello, 1)
	p.conn = pipe.New(out, in, pipe.Config{
		Handlers: map[string]pipe.Handler{program.CallFile: func(ctx context.Context, args json.RawMessage) (any, error) {
			return x.file(ctx, p, args)
		}},
		Event: func(name string, args json.RawMessage) { p.event(name, args, hello) },
	})
	go x.tend(p, in, out, output)

	timer := time.NewTimer(x.config.StartTimeout)
	defer timer.Stop()
	select {
	case p.hello = <-hello:
	case <-p.done:
		return nil, fmt.Errorf("it ended (%s) before it said what it handles", p.state)
	case <-timer.C:
		err = fmt.Errorf("it did not say within %s what it handles; is it a handler program?", x.config.StartTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && p.hello.Protocol != program.Protocol {
		err = fmt.Errorf("it speaks protocol %d and this agent speaks %d: build it with the same version of the sdk", p.hello.Protocol, program.Protocol)
	}
	if err == nil && x.types != nil && !slices.Equal(x.types, p.hello.Types) {
		err = fmt.Errorf("it handles %s now and handled %s when the agent started: restart the agent", strings.Join(p.hello.Types, ", "), strings.Join(x.types, ", "))
	}
	if err != nil {
		p.kill()
		<-p.done
		return nil, err
	}
	return p, nil
}

// tend reads what comes until the process is gone.
func (x *handlerProgram) tend(p *process, in, out, output *os.File) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.conn.Run(context.Background()); err != nil {
			x.log.Warn("a handler program does not keep to the protocol and is ended", "error", err)
		}
		p.kill() // without its stream it is of no use
	})
	wg.Go(func() { x.relay(output) })
	err := p.cmd.Wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // what it left behind in its group
	_ = in.Close()
	// A grandchild of another group may hold the streams open; nothing of it is wanted.
	_ = out.SetReadDeadline(time.Now().Add(time.Second))
	_ = output.SetReadDeadline(time.Now().Add(time.Second))
	wg.Wait()
	_, _ = out.Close(), output.Close()
	p.mu.Lock()
	p.state = "exit status 0"
	if err != nil {
		p.state = err.Error()
	}
	state := p.state
	p.mu.Unlock()
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if !closed {
		x.log.Warn("a handler program ended", "state", state)
		x.ended()
	}
	close(p.done)
}

// A program may write so many lines at once, and after that so many per second, to the agent's log. What is beyond is counted.
const (
	outputBurst = 1000
	outputRate  = 50
)

// relay hands what the program writes to the log, line by line. All of it is read, so that the program does not wait.
func (x *handlerProgram) relay(r io.Reader) {
	in := bufio.NewReaderSize(r, 16<<10)
	limit := rate.NewLimiter(outputRate, outputBurst)
	left := 0
	tell := func() {
		if left > 0 {
			x.log.Warn("handler program writes too much; lines are left out", "lines", left)
			left = 0
		}
	}
	defer tell()
	for {
		line, _, err := in.ReadLine()
		if len(line) > 0 {
			if limit.Allow() {
				tell()
				x.log.Info("handler program output", "line", strings.ToValidUTF8(string(line), "\uFFFD"))
			} else {
				left++
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *process) event(name string, args json.RawMessage, hello chan<- program.Hello) {
	switch name {
	case program.EventHello:
		var h program.Hello
		if json.Unmarshal(args, &h) == nil {
			select {
			case hello <- h:
			default: // it greets twice
			}
		}
	case program.EventLog:
		var l program.Line
		if json.Unmarshal(args, &l) != nil {
			return
		}
		if c := p.task(l.ID); c != nil {
			var kwargs map[string]any
			if len(l.Kwargs) > 0 && json.Unmarshal(l.Kwargs, &kwargs) != nil {
				kwargs = nil
			}
			c.Log(knownLevel(l.Level), l.Message, kwargs)
		}
	}
}

func knownLevel(l model.LogLevel) model.LogLevel {
	switch l {
	case model.LevelDebug, model.LevelInfo, model.LevelWarning, model.LevelError, model.LevelCritical:
		return l
	default: // a program may not write traces of the agent
		return model.LevelInfo
	}
}

func (p *process) task(id uint64) *sdk.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tasks[id]
}

// file puts a content where the program can read it.
func (x *handlerProgram) file(ctx context.Context, p *process, args json.RawMessage) (any, error) {
	var f program.FileRequest
	if err := json.Unmarshal(args, &f); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	c := p.task(f.ID)
	if c == nil {
		return nil, errors.New("the task is over")
	}
	content, size, err := c.OpenFile(f.Hash)
	if err != nil {
		if errors.Is(err, model.ErrNotFound) {
			return nil, &pipe.Error{Class: program.ClassNotFound, Message: err.Error()}
		}
		return nil, err
	}
	defer func() { _ = content.Close() }()
	out, err := os.CreateTemp(x.config.Dir, "content-")
	if err != nil {
		return nil, fmt.Errorf("keeping a content: %w", err)
	}
	_, err = io.Copy(out, content)
	if err = errors.Join(err, out.Close(), ctx.Err()); err != nil {
		return nil, errors.Join(fmt.Errorf("keeping a content: %w", err), os.Remove(out.Name()))
	}
	return program.File{Path: out.Name(), Size: size}, nil
}

// kill ends the process and its group.
func (p *process) kill() {
	if p.cmd.Process == nil {
		return
	}
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// close ends the program for good.
func (x *handlerProgram) close() {
	x.mu.Lock()
	x.closed = true
	p := x.current
	x.mu.Unlock()
	if p != nil {
		p.kill()
		<-p.done
	}
}
