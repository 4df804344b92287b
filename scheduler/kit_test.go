package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler"
	"github.com/intendant/intendant/scheduler/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agents is a dispatcher whose agents answer by themselves, in their own time.
type agents struct {
	mu      sync.Mutex
	sink    *scheduler.Scheduler
	up      map[model.AgentName]bool
	tasks   []model.Task
	hold    bool // tasks are kept instead of run
	held    []model.Task
	takes   time.Duration
	outcome map[model.ResourceID]model.Outcome
	ensured []model.AgentName
	stopped int // how often the environment's process was stopped
	cancels []model.TaskID
	large   map[model.ResourceID]bool // resources that do not fit on the wire
	wg      sync.WaitGroup
}

func newAgents(names ...model.AgentName) *agents {
	a := &agents{up: map[model.AgentName]bool{}, takes: 10 * time.Millisecond, outcome: map[model.ResourceID]model.Outcome{}}
	for _, n := range names {
		a.up[n] = true
	}
	return a
}

func (a *agents) Dispatch(ctx context.Context, task model.Task) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.up[task.Agent] {
		return model.ErrUnavailable
	}
	if a.large[task.Intent.Resource] {
		return model.ErrInvalid
	}
	a.tasks = append(a.tasks, task)
	if a.hold {
		a.held = append(a.held, task)
		return nil
	}
	r := a.result(task)
	a.wg.Go(func() { a.report(context.WithoutCancel(ctx), r) })
	return nil
}

func (a *agents) result(task model.Task) model.Result {
	outcome := a.outcome[task.Intent.Resource]
	if outcome == "" {
		outcome = model.OutcomeDeployed
	}
	return model.Result{
		Task: task.ID, Environment: task.Environment, Resource: task.Intent.Resource, Version: task.Version, Kind: task.Kind,
		AttributeHash: task.Intent.AttributeHash, Outcome: outcome, Change: model.ChangeCreated, StartedAt: time.Now(), DryRun: task.DryRun,
	}
}

// report sends a result until it is taken, as an agent's spool does, a few times.
func (a *agents) report(ctx context.Context, r model.Result) {
	time.Sleep(a.takes)
	r.FinishedAt = time.Now()
	for range 20 {
		a.mu.Lock()
		sink := a.sink
		a.mu.Unlock()
		if err := sink.Report(ctx, r); err == nil || errors.Is(err, model.ErrInvalid) {
			return
		}
		time.Sleep(time.Second)
	}
}

// let runs the tasks that were held.
func (a *agents) let(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, task := range a.held {
		r := a.result(task)
		a.wg.Go(func() { a.report(ctx, r) })
	}
	a.held, a.hold = nil, false
}

func (a *agents) Cancel(_ context.Context, _ model.EnvironmentID, tasks []model.TaskID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancels = append(a.cancels, tasks...)
	return nil
}

func (a *agents) Agents(model.EnvironmentID) []model.AgentName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []model.AgentName
	for n, up := range a.up {
		if up {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func (a *agents) EnsureAgents(_ context.Context, _ model.EnvironmentID, names []model.AgentName) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ensured = append(a.ensured, names...)
	return nil
}

func (a *agents) StopAgents(context.Context, model.EnvironmentID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped++
	return nil
}

func (a *agents) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *agents) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.tasks)
}

func resource(agent, name string) model.ResourceID {
	return model.ResourceID("test::Resource[" + agent + ",name=" + name + "]")
}

func intent(t *testing.T, agent, name, attributes string, requires ...model.ResourceID) model.Intent {
	t.Helper()
	x, err := model.NewIntent(resource(agent, name), []byte(attributes), requires, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// serve runs a scheduler within a bubble and returns how to stop it.
func serve(t *testing.T, store scheduler.Store, a *agents, change func(*scheduler.Config)) (*scheduler.Scheduler, func()) {
	t.Helper()
	cfg := scheduler.Config{Store: store, Dispatcher: a, Owner: "one", Engine: engine.Config{TasksPerAgent: 4}, Registerer: prometheus.NewRegistry()}
	if change != nil {
		change(&cfg)
	}
	s, err := scheduler.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a.set(func() { a.sink = s })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	}
	return s, stop
}

// within lets fake time go on and work settle.
func within(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs a test in fake time.
func bubble(t *testing.T, f func(t *testing.T, m *memory)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newMemory()) })
}
