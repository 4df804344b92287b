package agents_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

// gate is an executor that waits to be let through.
type gate struct {
	begun, goOn chan struct{}
	runs        atomic.Int32
}

func newGate() *gate { return &gate{begun: make(chan struct{}, 100), goOn: make(chan struct{})} }

func (g *gate) execute(c *sdk.Context, _ *sdk.Resource) error {
	g.runs.Add(1)
	g.begun <- struct{}{}
	select {
	case <-g.goOn:
		return nil
	case <-c.Done():
		return c.Err()
	}
}

func through(p *proxy) func(*agents.Config) {
	return func(cfg *agents.Config) { cfg.URL = p.url() }
}

func in(dir string) func(*agents.Config) {
	return func(cfg *agents.Config) { cfg.StateDir = dir }
}

func longWindow(cfg *hub.Config)  { cfg.ResumeWindow = time.Minute }
func shortWindow(cfg *hub.Config) { cfg.ResumeWindow = 20 * time.Millisecond }

func TestResumeLosesNothing(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t, longWindow)
	p := newProxy(t, s.URL)
	g := newGate()
	s.StartAgent(t, registryOf(t, g.execute), one, through(p))
	s.AwaitUp(t, "one", 1)
	var tasks []model.Task
	for i := range 5 {
		tasks = append(tasks, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", fmt.Sprint(i)), map[string]any{})))
	}
	s.Dispatch(t, tasks...)
	<-g.begun
	p.block()
	// The session is suspended, not lost: tasks are still taken.
	late := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "late"), map[string]any{}))
	s.Dispatch(t, late)
	close(g.goOn)
	p.unblock()
	for _, task := range append(tasks, late) {
		if r := s.AwaitResult(t, task.ID); r.Outcome != model.OutcomeDeployed {
			t.Errorf("%s is %s, want deployed", task.Intent.Resource, r.Outcome)
		}
	}
	if got := g.runs.Load(); got != 6 {
		t.Errorf("handlers ran %d times, want 6", got)
	}
	if up, down := s.Elections("one"); up != 1 || down != 0 {
		t.Errorf("the agent came up %d times and went down %d times, want once and never", up, down)
	}
}

func TestSessionLost(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t, shortWindow)
	p := newProxy(t, s.URL)
	g := newGate()
	s.StartAgent(t, registryOf(t, g.execute), one, through(p))
	s.AwaitUp(t, "one", 1)
	running := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	waiting := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "b"), map[string]any{}))
	s.Dispatch(t, running, waiting)
	<-g.begun
	p.block()
	lost := s.AwaitDown(t, "one", 1)
	if !slices.Contains(lost, running.ID) || !slices.Contains(lost, waiting.ID) || len(lost) != 2 {
		t.Errorf("lost = %v, want both tasks", lost)
	}
	if err := s.Hub.Dispatch(t.Context(), waiting); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("Dispatch() = %v, want ErrUnavailable", err)
	}
	close(g.goOn)
	p.unblock()
	s.AwaitUp(t, "one", 2)
	// What ran is reported all the same; what waited is void until it is dispatched again.
	if r := s.AwaitResult(t, running.ID); r.Outcome != model.OutcomeDeployed {
		t.Errorf("running task is %s, want deployed", r.Outcome)
	}
	if r := s.Run(t, waiting); r.Outcome != model.OutcomeDeployed {
		t.Errorf("waiting task is %s, want deployed", r.Outcome)
	}
	if got := g.runs.Load(); got != 2 {
		t.Errorf("handlers ran %d times, want 2", got)
	}
}

func TestResultsSurviveTheAgent(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	dir := t.TempDir()
	var runs atomic.Int32
	registry := registryOf(t, func(*sdk.Context, *sdk.Resource) error {
		runs.Add(1)
		return nil
	})
	a := s.StartAgent(t, registry, one, in(dir))
	s.AwaitUp(t, "one", 1)
	var refusing atomic.Bool
	refusing.Store(true)
	s.FailReports(func(model.Result) error {
		if refusing.Load() {
			return fmt.Errorf("no owner: %w", model.ErrUnavailable)
		}
		return nil
	})
	task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	s.Dispatch(t, task)
	s.Await(t, "a report", func() bool { return runs.Load() == 1 })
	a.Stop()
	refusing.Store(false)
	s.StartAgent(t, registry, one, in(dir))
	if r := s.AwaitResult(t, task.ID); r.Outcome != model.OutcomeDeployed {
		t.Errorf("result is %s, want deployed", r.Outcome)
	}
	if runs.Load() != 1 {
		t.Errorf("the handler ran %d times, want once", runs.Load())
	}
}

func TestResultsSurviveKill(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	dir := t.TempDir()
	reported := make(chan struct{}, 1000)
	s.FailReports(func(model.Result) error {
		reported <- struct{}{}
		return fmt.Errorf("the database is away: %w", model.ErrUnavailable)
	})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+strings.Join([]string{s.URL, s.Environment.String(), s.Token.Reveal(), dir}, " "))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	s.AwaitUp(t, "one", 1)
	task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	s.Dispatch(t, task)
	<-reported
	kill()
	s.FailReports(nil)
	g := newGate() // a handler that would never end: the task must not run again
	s.StartAgent(t, registryOf(t, g.execute), one, in(dir))
	if r := s.AwaitResult(t, task.ID); r.Outcome != model.OutcomeDeployed {
		t.Errorf("result is %s, want deployed", r.Outcome)
	}
	if g.runs.Load() != 0 {
		t.Errorf("the task ran again")
	}
}

func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	var first, second atomic.Int32
	count := func(n *atomic.Int32) executor {
		return func(*sdk.Context, *sdk.Resource) error {
			n.Add(1)
			return nil
		}
	}
	a := s.StartAgent(t, registryOf(t, count(&first)), one)
	s.AwaitUp(t, "one", 1)
	s.StartAgent(t, registryOf(t, count(&second)), []model.AgentName{"one", "two"})
	s.AwaitUp(t, "two", 1)
	run := func() {
		t.Helper()
		s.Run(t, s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{})))
	}
	run()
	a.Stop()
	s.AwaitUp(t, "one", 2)
	run()
	if first.Load() != 1 || second.Load() != 1 {
		t.Errorf("the processes ran %d and %d tasks, want one each", first.Load(), second.Load())
	}
}

func TestReplacedAgentIsRefused(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t, shortWindow)
	p := newProxy(t, s.URL)
	g := newGate()
	dir := t.TempDir()
	s.StartAgent(t, registryOf(t, g.execute), one, through(p), in(dir))
	s.AwaitUp(t, "one", 1)
	standby := s.StartAgent(t, registryOf(t, noop), []model.AgentName{"one", "two"})
	s.AwaitUp(t, "two", 1)
	task := s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, thing("one", "a"), map[string]any{}))
	s.Dispatch(t, task)
	<-g.begun
	p.block()
	s.AwaitDown(t, "one", 1)
	s.AwaitUp(t, "one", 2)
	close(g.goOn)
	p.unblock()
	again := s.NewTask(model.TaskDeploy, task.Intent)
	if r := s.Run(t, again); r.Outcome != model.OutcomeDeployed {
		t.Errorf("the standby's result is %s, want deployed", r.Outcome)
	}
	// The replaced process forgets its result once the server has refused it: then it is primary again and works.
	standby.Stop()
	s.AwaitUp(t, "one", 3)
	if r := s.Run(t, s.NewTask(model.TaskDeploy, task.Intent)); r.Outcome != model.OutcomeDeployed {
		t.Errorf("result is %s, want deployed", r.Outcome)
	}
	for _, r := range s.AwaitResults(t, 2) {
		if r.Task == task.ID {
			t.Errorf("the result of the replaced process was stored: %+v", r)
		}
	}
}

func TestRepairWithoutTheServer(t *testing.T) {
	t.Parallel()
	configure := func(cfg *hub.Config) {
		cfg.RepairInterval = everySecond
	}
	s := sdktest.NewServer(t, configure)
	address := strings.TrimPrefix(s.URL, "http://")
	var mu sync.Mutex
	changed := make(chan struct{}, 1)
	runs := map[model.ResourceID][]model.TaskKind{}
	var sequence []model.ResourceID
	registry := registryOf(t, func(c *sdk.Context, r *sdk.Resource) error {
		mu.Lock()
		defer mu.Unlock()
		runs[r.ID] = append(runs[r.ID], c.Task().Kind)
		sequence = append(sequence, r.ID)
		select {
		case changed <- struct{}{}:
		default:
		}
		return nil
	})
	a, b, paused := thing("one", "a"), thing("one", "b"), thing("paused", "c")
	s.Pause("paused", true)
	agent := s.StartAgent(t, registry, []model.AgentName{"one", "paused"})
	s.AwaitUp(t, "one", 1)
	s.AwaitUp(t, "paused", 1)
	undefined := sdktest.NewIntent(t, thing("one", "u"), map[string]any{})
	undefined.Undefined = true
	s.Release(7, sdktest.NewIntent(t, a, map[string]any{}, b), sdktest.NewIntent(t, b, map[string]any{}),
		sdktest.NewIntent(t, paused, map[string]any{}), undefined)
	for _, name := range []string{"one", "paused"} {
		awaitFile(t, agent.Dir, "desired/@"+name+".json")
	}
	s.Stop()
	for {
		mu.Lock()
		enough := len(runs[a]) >= 2
		mu.Unlock()
		if enough {
			break
		}
		select {
		case <-changed:
		case <-time.After(sdktest.Timeout):
			t.Fatal("the agent does not repair")
		}
	}
	s.Start(t, address, configure)
	s.AwaitUp(t, "one", 2)
	results := s.AwaitResults(t, 2)
	for _, r := range results {
		if r.Kind != model.TaskRepair || r.Version != 7 || r.Outcome != model.OutcomeDeployed {
			t.Errorf("result of %s: %s of version %d is %s, want a repair of version 7", r.Resource, r.Kind, r.Version, r.Outcome)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(runs[paused]) != 0 || len(runs[undefined.Resource]) != 0 {
		t.Errorf("paused or undefined resources were repaired: %v", runs)
	}
	if sequence[0] != b || sequence[1] != a {
		t.Errorf("order was %v, want the requirement first", sequence[:2])
	}
}

func TestAgentsLookForTheOwner(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Bool
	s := sdktest.NewServer(t, func(cfg *hub.Config) {
		cfg.Elsewhere = func(model.EnvironmentID) bool { return elsewhere.Load() }
		cfg.RefreshInterval = 10 * time.Millisecond
		cfg.ResumeWindow = 20 * time.Millisecond
	})
	s.StartAgent(t, registryOf(t, noop), one)
	s.AwaitUp(t, "one", 1)
	elsewhere.Store(true)
	s.AwaitDown(t, "one", 1)
	elsewhere.Store(false)
	s.AwaitUp(t, "one", 2)
}

// TestOldEpochsAreRefused plays a server that was replaced and wakes up again.
func TestOldEpochsAreRefused(t *testing.T) {
	t.Parallel()
	env := model.EnvironmentID{UUID: uuid.New()}
	type exchange struct {
		code string
		task model.TaskID
	}
	answers := make(chan exchange, 10)
	tasks := map[wire.Epoch]model.TaskID{}
	for _, e := range []wire.Epoch{5, 7} {
		tasks[e] = model.TaskID{UUID: uuid.New()}
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		say := func(b wire.Body) {
			raw, err := wire.Encode(1, b)
			if err != nil {
				t.Errorf("Encode() = %v", err)
			}
			_ = conn.Write(r.Context(), websocket.MessageText, raw)
		}
		say(&wire.Welcome{Protocol: 1, Session: "s", Resume: "r"})
		say(&wire.Primary{Agents: []wire.PrimaryAgent{{Agent: "one", Epoch: 7, Primary: true}}})
		say(&wire.Primary{Agents: []wire.PrimaryAgent{{Agent: "one", Epoch: 5, Primary: true}}}) // old news
		for epoch, id := range tasks {
			say(&wire.Assign{Tasks: []wire.Task{{
				ID: id, Agent: "one", Epoch: epoch, Kind: model.TaskDeploy,
				Intent: wire.Intent{Resource: thing("one", id.String()), Attributes: []byte("{}")},
			}}})
		}
		for {
			_, raw, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			f, err := wire.Decode(raw)
			if err != nil {
				t.Errorf("Decode() = %v", err)
				return
			}
			if b, ok := f.Body.(*wire.Report); ok {
				for _, result := range b.Results {
					answers <- exchange{result.Code, result.Task}
					say(&wire.Ack{Stored: []model.TaskID{result.Task}})
				}
			}
		}
	}))
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	a, err := agents.New(agents.Config{
		URL: web.URL, Environment: env, Token: "t", Names: one, StateDir: t.TempDir(), Registry: registryOf(t, noop), Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	for range 2 {
		answer := <-answers
		want := ""
		if answer.task == tasks[5] {
			want = "fenced"
		}
		if answer.code != want {
			t.Errorf("code is %q, want %q", answer.code, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
}
