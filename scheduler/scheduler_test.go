package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// memory is a store of any number of environments. A test may make it fail.
type memory struct {
	mu       sync.Mutex
	envs     map[model.EnvironmentID]*environment
	subs     []chan model.Hint
	silent   bool // no hints
	fail     error
	saves    int
	snaps    int
	queries  int
	refuse   map[model.TaskID]error
	released []model.EnvironmentID
	slow     time.Duration // what a transaction takes
}

type environment struct {
	snap     model.Snapshot
	versions map[int][]model.Intent
	released int
	states   map[model.ResourceID]model.ResourceState
	lease    model.Lease
	commands []model.Command
	finished map[model.TaskID]model.Result
	open     map[model.TaskID]model.Action
	lost     []model.TaskID
	dry      map[model.ResourceID]model.DryRunResult
}

func newMemory() *memory {
	return &memory{envs: map[model.EnvironmentID]*environment{}, refuse: map[model.TaskID]error{}}
}

func (m *memory) add(n byte, intents ...model.Intent) model.EnvironmentID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var env model.EnvironmentID
	env.UUID[0], env.UUID[15] = 0xee, n
	e := &environment{
		versions: map[int][]model.Intent{}, states: map[model.ResourceID]model.ResourceState{}, finished: map[model.TaskID]model.Result{},
		open: map[model.TaskID]model.Action{}, dry: map[model.ResourceID]model.DryRunResult{},
	}
	e.snap.Environment.ID = env
	e.snap.Settings = model.Settings{DeployInterval: "600", RepairInterval: "86400"}
	e.snap.Paused = map[model.AgentName]bool{}
	m.envs[env] = e
	if len(intents) > 0 {
		e.versions[1], e.released = intents, 1
	}
	return env
}

// change alters an environment and sends a hint.
func (m *memory) change(env model.EnvironmentID, topic model.Topic, f func(*environment)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.envs[env])
	m.hint(model.Hint{Topic: topic, Environment: env})
}

func (m *memory) hint(h model.Hint) {
	if m.silent {
		return
	}
	for _, c := range m.subs {
		c <- h
	}
}

func (m *memory) read(env model.EnvironmentID, f func(*environment)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.envs[env])
}

func (m *memory) status(env model.EnvironmentID, r model.ResourceID) (s model.Status) {
	m.read(env, func(e *environment) { s = e.states[r].Status() })
	return s
}

// begin takes the lock for one call, or returns the failure that a test wants.
func (m *memory) begin() (func(), error) {
	m.mu.Lock()
	m.queries++
	if m.fail != nil {
		defer m.mu.Unlock()
		return nil, m.fail
	}
	return m.mu.Unlock, nil
}

func (m *memory) AcquireLease(_ context.Context, env model.EnvironmentID, owner string, now time.Time, ttl time.Duration) (model.Lease, bool, error) {
	end, err := m.begin()
	if err != nil {
		return model.Lease{}, false, err
	}
	defer end()
	e := m.envs[env]
	if e.lease.Owner != owner {
		if e.lease.Owner != "" && now.Before(e.lease.ExpiresAt) {
			return model.Lease{}, false, nil
		}
		e.lease = model.Lease{Environment: env, Owner: owner, Token: e.lease.Token + 1}
	}
	e.lease.ExpiresAt = now.Add(ttl)
	return e.lease, true, nil
}

func (m *memory) ReleaseLease(_ context.Context, lease model.Lease) error {
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	if e := m.envs[lease.Environment]; e != nil && e.lease.Token == lease.Token {
		e.lease.Owner = ""
		m.released = append(m.released, lease.Environment)
	}
	return nil
}

func (m *memory) SchedulableEnvironments(context.Context) ([]model.EnvironmentID, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	var ids []model.EnvironmentID
	for id, e := range m.envs {
		if e.released > 0 && !e.snap.Environment.Halted {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (m *memory) Snapshot(_ context.Context, env model.EnvironmentID) (model.Snapshot, error) {
	end, err := m.begin()
	if err != nil {
		return model.Snapshot{}, err
	}
	defer end()
	m.snaps++
	e := m.envs[env]
	if e == nil {
		return model.Snapshot{}, model.ErrNotFound
	}
	s := e.snap
	s.Version, s.Intents, s.Paused = e.released, e.versions[e.released], maps.Clone(e.snap.Paused)
	for _, st := range e.states {
		s.States = append(s.States, st)
	}
	for _, a := range e.open {
		s.Running = append(s.Running, a)
	}
	return s, nil
}

func (m *memory) ChangesSince(_ context.Context, env model.EnvironmentID, from int) (int, []model.Intent, []model.ResourceID, error) {
	end, err := m.begin()
	if err != nil {
		return 0, nil, nil, err
	}
	defer end()
	e := m.envs[env]
	old := map[model.ResourceID]model.Intent{}
	for _, x := range e.versions[from] {
		old[x.Resource] = x
	}
	var changed []model.Intent
	for _, x := range e.versions[e.released] {
		if o, ok := old[x.Resource]; !ok || model.BodyHash(o) != model.BodyHash(x) {
			changed = append(changed, x)
		}
		delete(old, x.Resource)
	}
	return e.released, changed, slices.Sorted(maps.Keys(old)), nil
}

func (m *memory) IntentsOf(_ context.Context, env model.EnvironmentID, version int) ([]model.Intent, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	xs, ok := m.envs[env].versions[version]
	if !ok {
		return nil, model.ErrNotFound
	}
	return xs, nil
}

func (m *memory) SaveProgress(_ context.Context, lease model.Lease, p model.Progress) error {
	time.Sleep(m.slow)
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	e := m.envs[lease.Environment]
	if e.lease.Token != lease.Token || e.lease.Owner != lease.Owner {
		return model.ErrFenced
	}
	for _, r := range p.Finished {
		if err := m.refuse[r.Task]; err != nil {
			return err
		}
	}
	m.saves++
	for _, st := range p.States {
		e.states[st.Resource] = st
	}
	if p.Processed != 0 {
		e.snap.Processed = p.Processed
	}
	for _, a := range p.Started {
		e.open[a.ID] = a
	}
	for _, r := range p.Finished {
		e.finished[r.Task] = r
		delete(e.open, r.Task)
	}
	for _, id := range p.Abandoned {
		delete(e.open, id)
		e.lost = append(e.lost, id)
	}
	e.commands = slices.DeleteFunc(e.commands, func(c model.Command) bool { return slices.Contains(p.DoneCommands, c.ID) })
	return nil
}

func (m *memory) PendingCommands(_ context.Context, env model.EnvironmentID) ([]model.Command, error) {
	end, err := m.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	return slices.Clone(m.envs[env].commands), nil
}

func (m *memory) SaveDryRunResults(_ context.Context, lease model.Lease, _ model.DryRunID, results []model.DryRunResult) error {
	end, err := m.begin()
	if err != nil {
		return err
	}
	defer end()
	for _, r := range results {
		m.envs[lease.Environment].dry[r.Resource] = r
	}
	return nil
}

func (m *memory) Subscribe(ctx context.Context, _ ...model.Topic) <-chan model.Hint {
	m.mu.Lock()
	defer m.mu.Unlock()
	// The capacity is for more hints than any test sends at once.
	c := make(chan model.Hint, 1000)
	m.subs = append(m.subs, c)
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.subs = slices.DeleteFunc(m.subs, func(x chan model.Hint) bool { return x == c })
		close(c)
	})
	return c
}

// batched is a memory that serves many environments at once.
type batched struct{ *memory }

func (b batched) AcquireLeases(ctx context.Context, envs []model.EnvironmentID, owner string, now time.Time, ttl time.Duration) ([]model.Lease, error) {
	var held []model.Lease
	for _, e := range envs {
		lease, ok, err := b.AcquireLease(ctx, e, owner, now, ttl)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.queries--
		b.mu.Unlock()
		if ok {
			held = append(held, lease)
		}
	}
	b.mu.Lock()
	b.queries++
	b.mu.Unlock()
	return held, nil
}

func (b batched) SchedulerNews(_ context.Context, envs []model.EnvironmentID) ([]model.SchedulerNews, error) {
	end, err := b.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	var news []model.SchedulerNews
	for _, id := range envs {
		if e := b.envs[id]; e != nil {
			news = append(news, model.SchedulerNews{
				Environment: id, Released: e.released, Halted: e.snap.Environment.Halted, Settings: e.snap.Settings,
				Paused: maps.Clone(e.snap.Paused), Commands: slices.Clone(e.commands),
			})
		}
	}
	return news, nil
}

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

// bubble runs a test in fake time with both kinds of stores.
func bubble(t *testing.T, f func(t *testing.T, m *memory, store scheduler.Store)) {
	t.Helper()
	for _, kind := range []string{"plain", "batch"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				if kind == "batch" {
					f(t, m, batched{m})
				} else {
					f(t, m, m)
				}
			})
		})
	}
}

func TestDeploysAVersionAndItsChanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		a := newAgents("x", "y")
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		env := m.add(1)
		first := []model.Intent{intent(t, "x", "a", `{}`), intent(t, "y", "b", `{}`, resource("x", "a"))}
		m.change(env, model.TopicVersionReleased, func(e *environment) { e.versions[1], e.released = first, 1 })
		within(time.Second)
		for _, r := range []model.ResourceID{resource("x", "a"), resource("y", "b")} {
			if got := m.status(env, r); got != model.StatusDeployed {
				t.Errorf("status of %s = %s, want deployed", r, got)
			}
		}
		m.read(env, func(e *environment) {
			if e.snap.Processed != 1 || len(e.open) != 0 || len(e.finished) != 2 {
				t.Errorf("processed %d, open %v, finished %v", e.snap.Processed, e.open, e.finished)
			}
		})
		m.change(env, model.TopicVersionReleased, func(e *environment) {
			e.versions[2], e.released = []model.Intent{first[0], intent(t, "y", "b", `{"v":2}`, resource("x", "a"))}, 2
		})
		within(time.Second)
		if got := a.count(); got != 3 {
			t.Errorf("%d tasks were handed out, want 3", got)
		}
		if got := s.Stats(); got.Environments != 1 || got.Resources != 2 || got.Running != 0 {
			t.Errorf("stats = %+v", got)
		}
		x, err := s.Explain(t.Context(), env, resource("y", "b"))
		if err != nil || x.Summary == "" {
			t.Errorf("Explain = %+v, %v", x, err)
		}
		if _, err := s.Explain(t.Context(), env, resource("y", "none")); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("Explain of what is not there = %v, want ErrNotFound", err)
		}
		stop()
		m.read(env, func(e *environment) {
			if e.lease.Owner != "" {
				t.Errorf("the lease is still with %q after a clean stop", e.lease.Owner)
			}
		})
		if _, err := s.Explain(t.Context(), env, resource("y", "b")); !errors.Is(err, model.ErrUnavailable) {
			t.Errorf("Explain after the end = %v, want ErrUnavailable", err)
		}
		a.wg.Wait()
	})
}

func TestPollFindsWhatHintsDoNotTell(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		m.silent = true
		a := newAgents("x")
		_, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		env := m.add(1, intent(t, "x", "a", `{}`))
		within(scheduler.DefaultPollInterval + time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		m.change(env, "", func(e *environment) { e.versions[2], e.released = []model.Intent{intent(t, "x", "a", `{"v":2}`)}, 2 })
		within(scheduler.DefaultPollInterval + time.Second)
		c := model.Command{Kind: model.CommandRepair, CreatedAt: time.Now()}
		c.ID.UUID[0] = 1
		m.change(env, "", func(e *environment) { e.commands = append(e.commands, c) })
		within(scheduler.DefaultPollInterval + time.Second)
		m.read(env, func(e *environment) {
			if len(e.commands) != 0 || len(e.finished) != 3 {
				t.Errorf("commands %v, finished %d, want none and 3", e.commands, len(e.finished))
			}
		})
		stop()
		a.wg.Wait()
	})
}

func TestGroupCommit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		var xs []model.Intent
		for i := range 400 {
			xs = append(xs, intent(t, "x", fmt.Sprint(i), `{}`))
		}
		env := m.add(1, xs...)
		m.slow = 5 * time.Millisecond
		a := newAgents("x")
		_, stop := serve(t, store, a, func(c *scheduler.Config) { c.Engine.TasksPerAgent = 100 })
		defer stop()
		within(time.Second)
		m.read(env, func(e *environment) {
			if len(e.finished) != 400 {
				t.Fatalf("%d finished, want 400", len(e.finished))
			}
		})
		// Results that come while a transaction is on its way are stored together.
		if m.saves > 20 {
			t.Errorf("%d transactions for 400 results", m.saves)
		}
		stop()
		a.wg.Wait()
	})
}

func TestAgentIsEnsuredAndLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents()
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		a.set(func() {
			if !slices.Equal(a.ensured, []model.AgentName{"x"}) {
				t.Errorf("ensured %v, want x", a.ensured)
			}
			// It comes up without the hub telling: the loop looks now and then.
			a.up["x"], a.hold = true, true
		})
		within(6 * time.Second)
		if a.count() != 1 {
			t.Fatalf("%d tasks handed out, want 1", a.count())
		}
		var task model.Task
		a.set(func() { task = a.held[0]; a.up["x"] = false })
		s.AgentDown(env, "x", []model.TaskID{task.ID})
		a.set(func() { a.up["x"] = true; a.hold = false })
		s.AgentUp(env, "x")
		within(engine.DefaultAgentLostGrace - time.Second)
		if a.count() != 1 {
			t.Errorf("the lost task was repeated before its agent could report it")
		}
		within(2 * time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed || a.count() != 2 {
			t.Errorf("status = %s after %d tasks, want deployed after 2", got, a.count())
		}
		m.read(env, func(e *environment) {
			if len(e.lost) != 1 || e.lost[0] != task.ID {
				t.Errorf("lost = %v, want the first task", e.lost)
			}
		})
		stop()
		a.wg.Wait()
	})
}

func TestStoreFailuresDelayAndLoseNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`, resource("x", "a")))
		a := newAgents("x")
		a.takes = 2 * time.Second
		_, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		m.mu.Lock()
		m.fail = errors.New("the database is away")
		m.mu.Unlock()
		within(5 * time.Second)
		m.mu.Lock()
		m.fail = nil
		m.mu.Unlock()
		within(20 * time.Second)
		if got := m.status(env, resource("x", "b")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		if a.count() != 2 {
			t.Errorf("%d tasks, want 2: nothing is run twice", a.count())
		}
		stop()
		a.wg.Wait()
	})
}

func TestLostLeaseDropsEverything(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`, resource("x", "a")))
		a := newAgents("x")
		a.hold = true
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		// Another owner takes over behind this one's back.
		m.change(env, "", func(e *environment) {
			e.lease = model.Lease{Environment: env, Owner: "two", Token: e.lease.Token + 1, ExpiresAt: time.Now().Add(time.Hour)}
		})
		var task model.Task
		a.set(func() { task = a.held[0] })
		if err := s.Report(t.Context(), a.result(task)); !errors.Is(err, model.ErrUnavailable) {
			t.Errorf("Report = %v, want ErrUnavailable: it was fenced", err)
		}
		within(time.Minute)
		if s.Stats().Environments != 0 || a.count() != 1 {
			t.Errorf("stats = %+v with %d tasks, want the environment dropped and nothing more handed out", s.Stats(), a.count())
		}
		m.read(env, func(e *environment) {
			if len(e.finished) != 0 || e.lease.Owner != "two" {
				t.Errorf("finished %v, lease %+v", e.finished, e.lease)
			}
			e.lease.ExpiresAt = time.Now()
		})
		a.let(t.Context())
		within(2 * time.Minute)
		if got := m.status(env, resource("x", "b")); got != model.StatusDeployed {
			t.Errorf("status after the other owner died = %s, want deployed", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestUnreachableStoreEndsOwnership(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		m.mu.Lock()
		m.fail = errors.New("the database is away")
		m.mu.Unlock()
		within(scheduler.DefaultLeaseTTL + time.Second)
		if got := s.Stats().Environments; got != 0 {
			t.Errorf("%d environments are owned after their leases have ended", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestRestartWaitsForRunsInProgress(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`, resource("x", "a")))
		a := newAgents("x")
		a.hold = true
		_, stop := serve(t, store, a, nil)
		within(time.Second)
		stop()
		_, stop = serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		a.let(t.Context())
		within(time.Second)
		if got := m.status(env, resource("x", "b")); got != model.StatusDeployed || a.count() != 2 {
			t.Errorf("status = %s after %d tasks, want deployed after 2: the run in progress is waited for", got, a.count())
		}
		stop()
		a.wg.Wait()
	})
}

func TestHaltPauseSettingsAndDeletion(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		release := func(v int) {
			m.change(env, model.TopicVersionReleased, func(e *environment) {
				e.versions[v], e.released = []model.Intent{intent(t, "x", "a", fmt.Sprintf(`{"v":%d}`, v))}, v
			})
			within(time.Second)
		}
		refresh := func(f func(*environment)) {
			m.change(env, model.TopicCommand, func(e *environment) {
				f(e)
				c := model.Command{Kind: model.CommandRefresh, CreatedAt: time.Now()}
				c.ID.UUID[0] = byte(time.Now().UnixNano() / int64(time.Second))
				e.commands = append(e.commands, c)
			})
			within(time.Second)
			m.read(env, func(e *environment) {
				if len(e.commands) != 0 {
					t.Errorf("commands = %v, want the refresh done", e.commands)
				}
			})
		}
		refresh(func(e *environment) { e.snap.Paused["x"] = true })
		release(2)
		if a.count() != 1 {
			t.Error("a paused agent was given work")
		}
		refresh(func(e *environment) { delete(e.snap.Paused, "x") })
		if a.count() != 2 {
			t.Error("an agent that is no longer paused was given no work")
		}
		m.change(env, model.TopicEnvironment, func(e *environment) { e.snap.Environment.Halted = true })
		within(time.Second)
		release(3)
		within(time.Minute)
		if a.count() != 2 {
			t.Error("a halted environment was given work")
		}
		m.change(env, model.TopicEnvironment, func(e *environment) { e.snap.Environment.Halted = false })
		within(time.Second)
		if a.count() != 3 {
			t.Error("a resumed environment was given no work")
		}
		// A repair every 30 seconds, then by cron at each full minute.
		refresh(func(e *environment) { e.snap.Settings.RepairInterval = "30" })
		within(time.Minute)
		if got := a.count(); got != 5 {
			t.Errorf("%d tasks, want two repairs more", got)
		}
		refresh(func(e *environment) { e.snap.Settings.RepairInterval = "* * * * *" })
		n := a.count()
		within(2 * time.Minute)
		if got := a.count(); got != n+2 {
			t.Errorf("%d tasks, want %d: two repairs by cron", got, n+2)
		}
		m.mu.Lock()
		m.envs[env].released = 0
		m.hint(model.Hint{Topic: model.TopicEnvironment, Environment: env})
		m.mu.Unlock()
		within(time.Second)
		if got := s.Stats().Environments; got != 0 {
			t.Errorf("%d environments are owned, want none: it was cleared", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestDryRunCommand(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		_, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		m.change(env, model.TopicCommand, func(e *environment) {
			e.versions[5] = []model.Intent{intent(t, "x", "new", `{}`), intent(t, "gone", "b", `{}`)}
			for i, v := range []int{5, 99} {
				c := model.Command{Kind: model.CommandDryRun, Version: v, CreatedAt: time.Now()}
				c.ID.UUID[0], c.DryRun.UUID[0] = byte(i+1), byte(i+1)
				e.commands = append(e.commands, c)
			}
		})
		within(time.Second)
		m.read(env, func(e *environment) {
			if len(e.commands) != 1 || e.commands[0].Version != 5 {
				t.Errorf("commands = %v, want only the one that waits for an agent", e.commands)
			}
		})
		within(engine.DefaultDryRunGrace)
		m.read(env, func(e *environment) {
			if len(e.commands) != 0 || e.dry[resource("x", "new")].Status != model.DiffAdded || e.dry[resource("gone", "b")].Status != model.DiffAgentDown {
				t.Errorf("commands = %v, dry run = %v", e.commands, e.dry)
			}
		})
		stop()
		a.wg.Wait()
	})
}

func TestPoisonIsRefusedAndDoesNotStopTheRest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		a.hold = true
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		var task model.Task
		a.set(func() { task = a.held[0]; a.held, a.hold = nil, false })
		m.mu.Lock()
		m.refuse[task.ID] = model.ErrInvalid
		m.mu.Unlock()
		if err := s.Report(t.Context(), a.result(task)); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("Report = %v, want ErrInvalid", err)
		}
		within(2 * time.Minute)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed || a.count() != 2 {
			t.Errorf("status = %s after %d tasks, want deployed by a second one", got, a.count())
		}
		stop()
		a.wg.Wait()
	})
}

func TestUndeliverableTaskFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		env := m.add(1, intent(t, "x", "large", `{}`), intent(t, "x", "small", `{}`))
		a := newAgents("x")
		a.large = map[model.ResourceID]bool{resource("x", "large"): true}
		_, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Hour)
		if got := m.status(env, resource("x", "large")); got != model.StatusFailed {
			t.Errorf("status of the large one = %s, want failed", got)
		}
		if got := m.status(env, resource("x", "small")); got != model.StatusDeployed {
			t.Errorf("status of the small one = %s, want deployed", got)
		}
		m.read(env, func(e *environment) {
			if len(e.finished) != 2 {
				t.Errorf("%d results, want one for each: the large one is not tried again", len(e.finished))
			}
		})
		stop()
		a.wg.Wait()
	})
}

func TestUnansweredAgentIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		a := newAgents("x")
		env := m.add(1, intent(t, "x", "a", `{}`))
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		// The session has gone, and the loop has not heard of it.
		a.set(func() { a.up["x"] = false })
		m.change(env, model.TopicVersionReleased, func(e *environment) { e.versions[2], e.released = []model.Intent{intent(t, "x", "a", `{"v":2}`)}, 2 })
		within(time.Second)
		m.read(env, func(e *environment) {
			if len(e.lost) != 1 || len(e.open) != 0 || e.states[resource("x", "a")].Deploying {
				t.Errorf("lost %v, open %v, state %+v: want the task taken back", e.lost, e.open, e.states)
			}
		})
		x, err := s.Explain(t.Context(), env, resource("x", "a"))
		if err != nil || x.Reasons[0].Code != engine.ReasonAgentDown {
			t.Errorf("Explain = %+v, %v, want the agent down", x, err)
		}
		a.set(func() { a.up["x"] = true })
		within(6 * time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		// Facts are asked for without a deploy.
		if err := s.RefreshFacts(env, []model.ResourceID{resource("x", "a")}); err != nil {
			t.Errorf("RefreshFacts = %v", err)
		}
		within(time.Second)
		a.set(func() {
			if last := a.tasks[len(a.tasks)-1]; last.Kind != model.TaskFacts {
				t.Errorf("the last task is a %s, want facts", last.Kind)
			}
		})
		stop()
		a.wg.Wait()
	})
}

func TestHaltWithdrawsTasks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		a := newAgents("x")
		a.hold = true
		env := m.add(1, intent(t, "x", "a", `{}`))
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		m.change(env, model.TopicEnvironment, func(e *environment) { e.snap.Environment.Halted = true })
		within(time.Second)
		var task model.Task
		a.set(func() {
			if len(a.cancels) != 1 {
				t.Fatalf("cancelled %v, want the task in flight", a.cancels)
			}
			task = a.held[0]
			a.hold, a.held = false, nil
		})
		r := a.result(task)
		r.Outcome = model.OutcomeCancelled
		if err := s.Report(t.Context(), r); err != nil {
			t.Errorf("Report = %v", err)
		}
		within(time.Minute)
		if a.count() != 1 {
			t.Error("a halted environment was given work")
		}
		m.change(env, model.TopicEnvironment, func(e *environment) { e.snap.Environment.Halted = false })
		within(time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestEnvironmentThatHasGoneBackIsLoadedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		a := newAgents("x")
		env := m.add(1, intent(t, "x", "a", `{}`))
		m.change(env, "", func(e *environment) {
			e.versions[2], e.released = []model.Intent{intent(t, "x", "b", `{}`)}, 2
			// An expression that only a newer server would take is off, and stops nothing.
			e.snap.Settings.RepairInterval = "every full moon"
		})
		_, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		m.change(env, model.TopicVersionReleased, func(e *environment) {
			e.released = 1
			clear(e.states)
		})
		within(time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestReportGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, m *memory, store scheduler.Store) {
		a := newAgents("x")
		a.hold = true
		env := m.add(1, intent(t, "x", "a", `{}`))
		s, stop := serve(t, store, a, nil)
		defer stop()
		within(time.Second)
		m.mu.Lock()
		m.fail = errors.New("the database is away")
		m.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var task model.Task
		a.set(func() { task = a.held[0] })
		if err := s.Report(ctx, a.result(task)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Report = %v, want DeadlineExceeded", err)
		}
		m.mu.Lock()
		m.fail = nil
		m.mu.Unlock()
		within(10 * time.Second)
		// It was stored all the same, and may be sent again.
		if err := s.Report(t.Context(), a.result(task)); err != nil {
			t.Errorf("Report again = %v", err)
		}
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestIdleEnvironmentsCostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		const n = 200
		for i := range n {
			m.add(byte(i), intent(t, "x", "a", `{}`))
		}
		a := newAgents("x")
		s, stop := serve(t, batched{m}, a, nil)
		defer stop()
		within(time.Minute)
		if got := s.Stats().Environments; got != n {
			t.Fatalf("%d environments are owned, want %d", got, n)
		}
		m.mu.Lock()
		before := m.queries
		m.mu.Unlock()
		within(time.Minute)
		m.mu.Lock()
		after := m.queries
		m.mu.Unlock()
		// Six polls of two queries and twelve renewals.
		if after-before > 30 {
			t.Errorf("%d idle environments cost %d queries a minute", n, after-before)
		}
		stop()
		a.wg.Wait()
	})
}

func TestTwoServersShareEnvironments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		for i := range 10 {
			m.add(byte(i), intent(t, "x", "a", `{}`))
		}
		a1, a2 := newAgents("x"), newAgents("x")
		one, stop1 := serve(t, batched{m}, a1, func(c *scheduler.Config) { c.MaxEnvironments = 4 })
		defer stop1()
		two, stop2 := serve(t, batched{m}, a2, func(c *scheduler.Config) { c.Owner = "two" })
		defer stop2()
		within(time.Minute)
		if got := one.Stats().Environments; got > 4 || got+two.Stats().Environments != 10 {
			t.Errorf("owned %d and %d, want at most 4 and all 10", got, two.Stats().Environments)
		}
		if got := a1.count() + a2.count(); got != 10 {
			t.Errorf("%d tasks, want each resource deployed once", got)
		}
		stop2()
		a2.wg.Wait()
		stop1()
		a1.wg.Wait()
	})
}

func TestNewChecksItsConfig(t *testing.T) {
	t.Parallel()
	good := scheduler.Config{Store: newMemory(), Dispatcher: newAgents(), Owner: "one"}
	tests := []struct {
		name   string
		change func(*scheduler.Config)
	}{
		{"no store", func(c *scheduler.Config) { c.Store = nil }},
		{"no dispatcher", func(c *scheduler.Config) { c.Dispatcher = nil }},
		{"no owner", func(c *scheduler.Config) { c.Owner = "" }},
		{"negative interval", func(c *scheduler.Config) { c.PollInterval = -1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := good
			tt.change(&c)
			if _, err := scheduler.New(c); !errors.Is(err, model.ErrInvalid) {
				t.Errorf("New = %v, want ErrInvalid", err)
			}
		})
	}
	r := prometheus.NewRegistry()
	good.Registerer = r
	s, err := scheduler.New(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gather(); err != nil {
		t.Errorf("Gather = %v", err)
	}
	if _, err := scheduler.New(good); err == nil {
		t.Error("registering the metrics twice is no error")
	}
	if err := s.Report(t.Context(), model.Result{}); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("Report without an environment = %v, want ErrUnavailable", err)
	}
	if err := s.RefreshFacts(model.EnvironmentID{}, nil); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("RefreshFacts without an environment = %v, want ErrUnavailable", err)
	}
	s.AgentUp(model.EnvironmentID{}, "x")
	s.AgentDown(model.EnvironmentID{}, "x", nil)
}
