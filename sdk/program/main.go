package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/pipe"
)

// Info says what a program is called.
type Info struct {
	// Name is shown in the agent's log. Required.
	Name string
	// Version is the program's own.
	Version string
}

// Main serves the handlers of a registry to the agent that started the program, until the agent wants no more; then it ends the
// program. Started by hand it says what the program is for and exits with status 2.
func Main(info Info, registry *sdk.Registry) {
	if os.Getenv(Variable) != "1" {
		fmt.Fprintf(os.Stderr, "%s has handlers for %s.\nIt is started by an agent: name it in the agent's setting handler-programs, section [agent].\n",
			info.Name, strings.Join(registry.Types(), ", "))
		os.Exit(2)
	}
	err := Serve(context.Background(), info, registry, os.NewFile(FromAgent, "from-agent"), os.NewFile(ToAgent, "to-agent"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", info.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve serves the handlers of a registry over two streams until the first ends. It waits for the tasks that run then; their
// contexts are over.
func Serve(ctx context.Context, info Info, registry *sdk.Registry, r io.Reader, w io.Writer) error {
	s := &server{registry: registry, running: map[uint64]context.CancelFunc{}}
	s.conn = pipe.New(r, w, pipe.Config{Handlers: map[string]pipe.Handler{CallExecute: s.execute}, Event: s.event})
	hello := Hello{Protocol: Protocol, Name: info.Name, Version: info.Version, Types: registry.Types()}
	if err := s.conn.Emit(EventHello, hello); err != nil {
		return fmt.Errorf("greeting the agent: %w", err)
	}
	return s.conn.Run(ctx)
}

// server is the program's side of the connection.
type server struct {
	registry *sdk.Registry
	conn     *pipe.Conn

	mu      sync.Mutex // guards running
	running map[uint64]context.CancelFunc
}

func (s *server) event(name string, args json.RawMessage) {
	var c Cancel
	if name != EventCancel || json.Unmarshal(args, &c) != nil {
		return // a newer agent's: what it means is not for us
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[c.ID]; cancel != nil {
		cancel()
	}
}

func (s *server) execute(ctx context.Context, args json.RawMessage) (any, error) {
	var t Task
	if err := json.Unmarshal(args, &t); err != nil {
		return nil, fmt.Errorf("reading a task: %w", err)
	}
	task := model.Task{
		Kind: t.Kind, Version: t.Version, Reason: t.Reason, Requires: t.Requires, Reload: t.Reload,
		Intent: model.Intent{Resource: t.Resource, Attributes: t.Attributes},
	}
	resource, err := sdk.NewResource(task.Intent, t.Version)
	if err != nil {
		return Report{Change: model.ChangeNone, Failure: failureOf(err)}, nil
	}
	task.Agent = resource.Parts.Agent
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.Timeout > 0 {
		task.Deadline = time.Now().Add(time.Duration(t.Timeout) * time.Millisecond)
		ctx, cancel = context.WithDeadline(ctx, task.Deadline)
		defer cancel()
	}
	s.mu.Lock()
	s.running[t.ID] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, t.ID)
	}()
	c := sdk.NewContext(ctx, sdk.ContextConfig{
		Task: task, Files: files{s: s, task: t.ID}, ReportOnly: t.ReportOnly,
		Live: func(l model.LogLine) {
			// When the agent is gone its context ends the run; a line more or less is no matter.
			_ = s.conn.Emit(EventLog, Line{ID: t.ID, Level: l.Level, Message: l.Message, Kwargs: l.Kwargs})
		},
	})
	failure := s.registry.Run(c, resource)
	now := time.Now()
	res := c.Result(nil, now, now)
	if _, ok := errors.AsType[*sdk.Instruction](failure); failure != nil && !ok && errors.Is(c.Err(), context.DeadlineExceeded) {
		failure = &sdk.Instruction{
			Outcome: model.OutcomeFailed, Code: sdk.CodeDeadline, Retry: model.RetryLater,
			Err: fmt.Errorf("the run was ended at its deadline: %w", failure),
		}
	}
	report := Report{Change: res.Change, Changes: res.Changes, Failure: failureOf(failure)}
	if c.Outcome() != "" {
		report.Outcome = c.Outcome()
	}
	for _, f := range res.Facts {
		report.Facts = append(report.Facts, Fact(f))
	}
	return report, nil
}

// files asks the agent for contents.
type files struct {
	s    *server
	task uint64
}

// Open implements [sdk.Files].
func (f files) Open(ctx context.Context, hash string) (io.ReadCloser, int64, error) {
	var file File
	if err := f.s.conn.Call(ctx, CallFile, FileRequest{ID: f.task, Hash: hash}, &file); err != nil {
		if e, ok := errors.AsType[*pipe.Error](err); ok && e.Class == ClassNotFound {
			return nil, 0, fmt.Errorf("%s: %w", e.Message, model.ErrNotFound)
		}
		return nil, 0, fmt.Errorf("opening content %s: %w", hash, err)
	}
	h, err := os.Open(file.Path)
	if err != nil {
		return nil, 0, fmt.Errorf("opening content %s: %w", hash, err)
	}
	if err := os.Remove(file.Path); err != nil { // what is open stays readable
		return nil, 0, fmt.Errorf("opening content %s: %w", hash, errors.Join(err, h.Close()))
	}
	return h, file.Size, nil
}

// ClassNotFound is the class of an answer to [CallFile] when the server has no such content.
const ClassNotFound = "not-found"
