package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/intendant/intendant/confine"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/sdk"
)

// worker is a process of one agent with one blueprint, or the place where it will be.
type worker struct {
	m         *Manager
	key       workerKey
	blueprint *blueprint
	log       *slog.Logger

	// claims and idleSince are guarded by the manager's mu.
	claims    int
	idleSince time.Time
	alive     atomic.Bool

	// turn is held, by having put something in it, by the one task that may use what follows.
	turn chan struct{}
	// failures are the modules that could not be imported, with the reasons; types are those that have a handler.
	failures map[string]string
	types    []string

	// mu guards all below; dir does not change while the process runs.
	mu      sync.Mutex
	dir     string
	process *python.Process
	hold    func()
	task    model.TaskID
	context *sdk.Context
	// ended gets a value for each of the two streams of the process on which the task's output has ended.
	ended chan struct{}
}

// UnavailableError says that the code for a resource can not be had.
type UnavailableError struct {
	// Retry is true when it may be had later, without anybody doing something about it.
	Retry bool
	Err   error
}

func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// take waits for the worker's turn.
func (w *worker) take(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another task of agent %s to end: %w", w.key.agent, context.Cause(ctx))
	}
}

func (w *worker) give() { <-w.turn }

// ensure starts the process unless it runs. The turn is held.
func (w *worker) ensure(ctx context.Context, say func(string)) (*python.Process, error) {
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	if p != nil && w.alive.Load() {
		return p, nil
	}
	w.discard()
	w.m.makeRoom(w.key.agent)
	// The code may have gone from the disk since the blueprint was made.
	for _, c := range w.blueprint.modules {
		if _, err := w.m.unpack(ctx, c, w.blueprint.sources, map[string]bool{}); err != nil {
			return nil, &UnavailableError{Retry: true, Err: fmt.Errorf("the code of module %s: %w", c.Module, err)}
		}
	}
	interpreter, hold, err := w.m.environment(ctx, w.blueprint, say)
	if err != nil {
		return nil, err
	}
	p, err = w.start(interpreter)
	if err != nil {
		hold()
		return nil, &UnavailableError{Retry: true, Err: err}
	}
	w.mu.Lock()
	w.process, w.hold = p, hold
	w.mu.Unlock()
	w.alive.Store(true)
	go func() { // ends with the process, which ends with the manager
		_ = p.Wait()
		w.mu.Lock()
		if w.process == p {
			w.alive.Store(false)
		}
		w.mu.Unlock()
	}()
	if err := w.load(ctx, p); err != nil {
		w.discard()
		return nil, err
	}
	return p, nil
}

func (w *worker) start(interpreter string) (*python.Process, error) {
	runtime, err := w.m.unpacked()
	if err != nil {
		return nil, err
	}
	work := filepath.Join(w.m.cfg.Dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, fmt.Errorf("making the working directory of an executor: %w", err)
	}
	dir, err := os.MkdirTemp(work, "executor-*")
	if err != nil {
		return nil, fmt.Errorf("making the working directory of an executor: %w", err)
	}
	w.mu.Lock()
	w.dir = dir
	w.mu.Unlock()
	p, err := python.Start(w.m.life, python.Config{
		Interpreter: interpreter, Runtime: runtime, Module: "intendant_host.executor", Dir: dir, Env: w.m.cfg.Env,
		Stdout: func(line string) { w.printed("stdout", line) }, Stderr: func(line string) { w.printed("stderr", line) },
		Handlers: w.handlers(), Event: w.event, Memory: max(w.m.cfg.MemoryLimit, 0),
	})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("starting an executor: %w", err)
	}
	w.log.Debug("an executor has started", "pid", p.PID(), "python", p.Version())
	return p, nil
}

// load has the process import its code.
func (w *worker) load(ctx context.Context, p *python.Process) error {
	ctx, cancel := context.WithTimeout(ctx, w.m.cfg.LoadTimeout)
	defer cancel()
	var answer struct {
		Failures map[string]string `json:"failures"`
		Types    []string          `json:"types"`
	}
	err := p.Call(ctx, "load", map[string]any{
		"agent": w.key.agent, "environment": w.m.cfg.Environment, "uri": w.key.uri, "work_dir": w.dir,
		"sources": w.blueprint.sources, "imports": w.blueprint.imports,
	}, &answer)
	switch {
	case err == nil:
		w.failures, w.types = answer.Failures, answer.Types
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &UnavailableError{Retry: true, Err: fmt.Errorf("importing the code of modules %s did not end within %s", w.moduleNames(), w.m.cfg.LoadTimeout)}
	case ctx.Err() != nil:
		return err //nolint:wrapcheck // the task is cancelled
	}
	if exit, ok := errors.AsType[*python.ExitError](err); ok && exit.Memory > 0 {
		return &UnavailableError{Err: fmt.Errorf("importing the code of modules %s took more memory than the limit of %s: %s",
			w.moduleNames(), confine.Size(exit.Memory), memoryHint)}
	}
	return &UnavailableError{Retry: true, Err: fmt.Errorf("importing the code of modules %s: %w", w.moduleNames(), err)}
}

func (w *worker) moduleNames() string { return strings.Join(moduleNames(w.blueprint.modules), ", ") }

func moduleNames(modules []model.ModuleCode) []string {
	names := make([]string, len(modules))
	for i, c := range modules {
		names[i] = c.Module
	}
	return names
}

// retireTimeout is how long an idle process may take to give up what its handlers have cached.
const retireTimeout = 2 * time.Second

// retire ends the process in order, if it is idle: what its handlers have cached is given up first. One that works is ended at
// once.
func (w *worker) retire() {
	select {
	case w.turn <- struct{}{}:
		defer w.give()
		w.mu.Lock()
		p := w.process
		w.mu.Unlock()
		if p != nil && w.alive.Load() {
			ctx, cancel := context.WithTimeout(context.Background(), retireTimeout)
			if err := p.Call(ctx, "stop", nil, nil); err != nil {
				w.log.Debug("an executor did not stop in order", "error", err)
			}
			cancel()
		}
	default:
	}
	w.discard()
}

// discard ends the process, if there is one. The next task starts another.
func (w *worker) discard() {
	w.mu.Lock()
	p, hold, dir := w.process, w.hold, w.dir
	w.process, w.hold = nil, nil
	w.mu.Unlock()
	w.alive.Store(false)
	if p == nil {
		return
	}
	p.Close()
	hold()
	if err := os.RemoveAll(dir); err != nil {
		w.log.Warn("removing the working directory of an executor", "error", err)
	}
}

// begin makes a task the one that what the process says belongs to.
func (w *worker) begin(c *sdk.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.task, w.context, w.ended = c.Task().ID, c, make(chan struct{}, 2)
}

func (w *worker) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.task, w.context = model.TaskID{}, nil
}

// outputTimeout is how long an operation's output is waited for after its answer: a handler may have closed its streams.
const outputTimeout = 250 * time.Millisecond

// awaitOutput returns when all that the handler of the task printed was taken.
func (w *worker) awaitOutput() {
	w.mu.Lock()
	ended := w.ended
	w.mu.Unlock()
	t := time.NewTimer(outputTimeout)
	defer t.Stop()
	for range cap(ended) {
		select {
		case <-ended:
		case <-t.C:
			return
		}
	}
}

// endMark precedes, in a line of output, the id of the task whose output ends there.
const endMark = "\x00end "

// current returns the context of the task that runs, if it is this one; the zero id is any.
func (w *worker) current(task model.TaskID) *sdk.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.context == nil || task != (model.TaskID{}) && task != w.task {
		return nil
	}
	return w.context
}

// printed takes what handlers print: it belongs to the task that runs.
func (w *worker) printed(stream, line string) {
	line, id, ends := strings.Cut(line, endMark)
	if ends {
		defer w.outputEnded(id)
		if line == "" {
			return
		}
	}
	if c := w.current(model.TaskID{}); c != nil {
		c.Log(model.LevelDebug, stream+": "+line, nil)
		return
	}
	w.log.Debug("an executor printed", "stream", stream, "line", line)
}

func (w *worker) outputEnded(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.context == nil || w.task.String() != task {
		return
	}
	select {
	case w.ended <- struct{}{}:
	default: // a handler printed a mark of its own
	}
}

// event takes what the process says without being asked.
func (w *worker) event(name string, args json.RawMessage) {
	switch name {
	case "log":
		var line struct {
			Task    model.TaskID   `json:"task"`
			Level   model.LogLevel `json:"level"`
			Message string         `json:"message"`
			Kwargs  map[string]any `json:"kwargs"`
		}
		if err := json.Unmarshal(args, &line); err != nil {
			w.log.Warn("an executor sent a line that can not be read", "error", err)
			return
		}
		if c := w.current(line.Task); c != nil {
			c.Log(line.Level, line.Message, line.Kwargs)
		}
	case "module_log":
		var line struct {
			Level   string `json:"level"`
			Logger  string `json:"logger"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(args, &line); err != nil {
			return
		}
		if c := w.current(model.TaskID{}); c != nil {
			c.Log(levelOf(line.Level), line.Logger+": "+line.Message, nil)
			return
		}
		w.log.Debug("a module logged", "level", line.Level, "logger", line.Logger, "message", line.Message)
	}
}

func levelOf(name string) model.LogLevel {
	l := model.LogLevel(name)
	if slices.Contains([]model.LogLevel{model.LevelCritical, model.LevelError, model.LevelWarning, model.LevelInfo, model.LevelDebug}, l) {
		return l
	}
	return model.LevelInfo
}
