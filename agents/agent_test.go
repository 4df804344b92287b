package agents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

func TestMain(m *testing.M) {
	if runHelper() {
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// executor makes an executor of a function.
type executor func(c *sdk.Context, r *sdk.Resource) error

func (f executor) Execute(c *sdk.Context, r *sdk.Resource) error { return f(c, r) }

// registryOf makes a registry with one type, test::Thing.
func registryOf(t testing.TB, f executor) *sdk.Registry {
	t.Helper()
	r := sdk.NewRegistry()
	if err := r.Execute("test::Thing", f); err != nil {
		t.Fatalf("Execute() = %v", err)
	}
	return r
}

func noop(*sdk.Context, *sdk.Resource) error { return nil }

func thing(agent, name string) model.ResourceID {
	return model.ResourceIDParts{Type: "test::Thing", Agent: model.AgentName(agent), Attribute: "name", Value: name}.ID()
}

var one = []model.AgentName{"one"}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	requirement := thing("one", "requirement")
	tests := map[string]struct {
		run     executor
		kind    model.TaskKind
		change  func(*model.Task)
		outcome model.Outcome
		code    string
		log     string
	}{
		"deployed": {run: noop, outcome: model.OutcomeDeployed},
		"dry run":  {run: noop, kind: model.TaskDryRun, outcome: model.OutcomeDryRun},
		"failed": {
			run:     func(*sdk.Context, *sdk.Resource) error { return errors.New("it broke") },
			outcome: model.OutcomeFailed, code: sdk.CodeHandlerError, log: "it broke",
		},
		"skipped": {
			run:     func(*sdk.Context, *sdk.Resource) error { return sdk.Skip("not now") },
			outcome: model.OutcomeSkipped, code: sdk.CodeSkipped, log: "not now",
		},
		"panic": {
			run:     func(*sdk.Context, *sdk.Resource) error { panic("oh no") },
			outcome: model.OutcomeFailed, code: sdk.CodePanic, log: "oh no",
		},
		"deadline": {
			run: func(c *sdk.Context, _ *sdk.Resource) error {
				<-c.Done()
				return c.Err()
			},
			change:  func(task *model.Task) { task.Deadline = time.Now().Add(50 * time.Millisecond) },
			outcome: model.OutcomeFailed, code: sdk.CodeDeadline, log: "deadline",
		},
		"no handler": {
			run: noop,
			change: func(task *model.Task) {
				task.Intent.Resource = "test::Other[one,name=x]"
			},
			outcome: model.OutcomeUnavailable, code: sdk.CodeNoHandler, log: "test::Other",
		},
		"bad attributes": {
			run:     noop,
			change:  func(task *model.Task) { task.Intent.Attributes = []byte(`[]`) },
			outcome: model.OutcomeFailed, code: sdk.CodeInvalid, log: "attributes",
		},
		"requirement of an executor is its own business": {
			run: noop,
			change: func(task *model.Task) {
				task.Requires = map[model.ResourceID]model.Status{requirement: model.StatusFailed}
			},
			outcome: model.OutcomeDeployed,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sdktest.NewServer(t)
			s.StartAgent(t, registryOf(t, test.run), one)
			s.AwaitUp(t, "one", 1)
			kind := test.kind
			if kind == "" {
				kind = model.TaskDeploy
			}
			task := s.NewTask(kind, sdktest.NewIntent(t, thing("one", "a"), map[string]any{"name": "a"}))
			if test.change != nil {
				test.change(&task)
			}
			r := s.Run(t, task)
			if r.Outcome != test.outcome || r.Code != test.code {
				t.Errorf("result is %s (%s), want %s (%s); log %v", r.Outcome, r.Code, test.outcome, test.code, r.Log)
			}
			if test.log != "" && !strings.Contains(fmt.Sprint(r.Log), test.log) {
				t.Errorf("log is %v, want %q in it", r.Log, test.log)
			}
			if r.Version != task.Version || r.Trace != task.Trace || r.AttributeHash != task.Intent.AttributeHash {
				t.Errorf("result is of version %d, trace %s, want those of the task", r.Version, r.Trace)
			}
			if r.FinishedAt.Before(r.StartedAt) || r.StartedAt.IsZero() {
				t.Errorf("times are %v to %v", r.StartedAt, r.FinishedAt)
			}
		})
	}
}

func TestOneTaskOfAnAgentAtATime(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	s := sdktest.NewServer(t)
	s.StartAgent(t, registryOf(t, func(*sdk.Context, *sdk.Resource) error {
		most.Store(max(most.Load(), now.Add(1)))
		now.Add(-1)
		return nil
	}), one)
	s.AwaitUp(t, "one", 1)
	for i := range 200 {
		s.Dispatch(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", fmt.Sprint(i)), map[string]any{})))
	}
	s.AwaitResults(t, 200)
	if most.Load() != 1 {
		t.Errorf("%d tasks ran at once, want 1", most.Load())
	}
}

func TestDispatchWithoutAnAgent(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	if err := s.Hub.Dispatch(t.Context(), task); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("Dispatch() = %v, want ErrUnavailable", err)
	}
	if got := s.Hub.Agents(s.Environment); len(got) != 0 {
		t.Errorf("Agents() = %v, want none", got)
	}
	s.StartAgent(t, registryOf(t, noop), []model.AgentName{"two", "one"})
	s.AwaitUp(t, "one", 1)
	s.AwaitUp(t, "two", 1)
	if diff := cmp.Diff([]model.AgentName{"one", "two"}, s.Hub.Agents(s.Environment)); diff != "" {
		t.Errorf("Agents() differs:\n%s", diff)
	}
}

func TestTasksThatWaitTooLongAreGivenBack(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	s := sdktest.NewServer(t)
	s.StartAgent(t, registryOf(t, func(c *sdk.Context, _ *sdk.Resource) error {
		begun <- struct{}{}
		select {
		case <-goOn:
		case <-c.Done():
		}
		return nil
	}), one)
	s.AwaitUp(t, "one", 1)
	first := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	second := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "b"), map[string]any{}))
	second.Deadline = time.Now().Add(200 * time.Millisecond)
	s.Dispatch(t, first, second)
	<-begun
	if r := s.AwaitResult(t, second.ID); r.Outcome != model.OutcomeCancelled || r.Code != sdk.CodeDeadline || r.Retry != model.RetryLater {
		t.Errorf("the task that waited is %s (%s, %s), want cancelled (deadline, retry)", r.Outcome, r.Code, r.Retry)
	}
	close(goOn)
	if r := s.AwaitResult(t, first.ID); r.Outcome != model.OutcomeDeployed {
		t.Errorf("the task that ran is %s, want deployed", r.Outcome)
	}
	if len(begun) != 0 {
		t.Errorf("the task that was given back ran")
	}
}

func TestCancelWithdrawsWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	s := sdktest.NewServer(t)
	s.StartAgent(t, registryOf(t, func(c *sdk.Context, _ *sdk.Resource) error {
		begun <- struct{}{}
		select {
		case <-goOn:
		case <-c.Done():
		}
		return nil
	}), one)
	s.AwaitUp(t, "one", 1)
	first := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	second := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "b"), map[string]any{}))
	s.Dispatch(t, first, second)
	<-begun
	if err := s.Hub.Cancel(t.Context(), s.Environment, []model.TaskID{first.ID, second.ID}); err != nil {
		t.Fatalf("Cancel() = %v", err)
	}
	if r := s.AwaitResult(t, second.ID); r.Outcome != model.OutcomeCancelled {
		t.Errorf("second task is %s, want cancelled", r.Outcome)
	}
	close(goOn)
	if r := s.AwaitResult(t, first.ID); r.Outcome != model.OutcomeDeployed {
		t.Errorf("first task is %s, want deployed: it had begun", r.Outcome)
	}
}

func BenchmarkThroughput(b *testing.B) {
	s := sdktest.NewServer(b)
	s.StartAgent(b, registryOf(b, noop), one)
	s.AwaitUp(b, "one", 1)
	tasks := make([]model.Task, b.N)
	for i := range tasks {
		tasks[i] = s.NewTask(model.TaskDeploy, sdktest.NewIntent(b, thing("one", fmt.Sprint(i)), map[string]any{
			"name": fmt.Sprint(i), "path": "/etc/some/file", "mode": 644, "owner": "root", "group": "root",
		}))
		tasks[i].Deadline = time.Now().Add(time.Hour)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range tasks {
		if err := s.Hub.Dispatch(context.Background(), tasks[i]); err != nil {
			b.Fatal(err)
		}
	}
	s.AwaitResults(b, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "resources/s")
}

// BenchmarkRoundTrip measures one task at a time: from its dispatch to its stored result.
func BenchmarkRoundTrip(b *testing.B) {
	s := sdktest.NewServer(b)
	s.StartAgent(b, registryOf(b, noop), one)
	s.AwaitUp(b, "one", 1)
	intent := sdktest.NewIntent(b, thing("one", "a"), map[string]any{"name": "a"})
	b.ReportAllocs()
	for b.Loop() {
		s.Run(b, s.NewTask(model.TaskDeploy, intent))
	}
}
