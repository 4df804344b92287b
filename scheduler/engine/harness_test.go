package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler/engine"
)

// epoch is when every test begins.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a state under test with the shell's memory: what was stored, what is in flight, the timer.
type bench struct {
	t       testing.TB
	s       *engine.State
	now     time.Time
	timer   time.Time
	states  map[model.ResourceID]model.ResourceState
	flight  []model.Task
	saves   []engine.SaveState
	dry     map[model.ResourceID]model.DryRunResult
	done    []model.CommandID
	cancels []model.TaskID
	ensured []model.AgentName
	said    []engine.Announcement
	version int
}

func id(agent, name string) model.ResourceID {
	return model.ResourceID("test::Resource[" + agent + ",name=" + name + "]")
}

// in makes an intent of resource "agent/name" with a value, and requirements given likewise.
func in(t testing.TB, name, attributes string, requires ...string) model.Intent {
	t.Helper()
	ids := make([]model.ResourceID, len(requires))
	for i, r := range requires {
		ids[i] = rid(r)
	}
	x, err := model.NewIntent(rid(name), []byte(attributes), ids, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func undefined(x model.Intent) model.Intent {
	x.Undefined = true
	return x
}

func rid(name string) model.ResourceID {
	a, n, _ := strings.Cut(name, "/")
	return id(a, n)
}

func settings(deploy, repair string) model.Settings {
	return model.Settings{DeployInterval: deploy, RepairInterval: repair}
}

func newBench(t testing.TB, cfg engine.Config, snap model.Snapshot) *bench {
	t.Helper()
	if snap.Settings.DeployInterval == "" {
		snap.Settings = settings("600", "86400")
	}
	b := &bench{t: t, s: engine.New(cfg, snap), now: epoch, states: map[model.ResourceID]model.ResourceState{}, dry: map[model.ResourceID]model.DryRunResult{}, version: snap.Version}
	for _, st := range snap.States {
		b.states[st.Resource] = st
	}
	b.step(engine.Started{})
	return b
}

func (b *bench) step(e engine.Event) []engine.Effect {
	b.t.Helper()
	effects := b.s.Step(b.now, e)
	for _, f := range effects {
		switch f := f.(type) {
		case engine.SaveState:
			b.saves = append(b.saves, f)
			for _, st := range f.States {
				b.states[st.Resource] = st
			}
		case engine.SaveDryRun:
			for _, r := range f.Results {
				b.dry[r.Resource] = r
			}
		case engine.StartTask:
			b.flight = append(b.flight, f.Task)
		case engine.SetTimer:
			b.timer = f.At
		case engine.DoneCommand:
			b.done = append(b.done, f.Command)
		case engine.CancelTask:
			b.cancels = append(b.cancels, f.Tasks...)
		case engine.EnsureAgent:
			b.ensured = append(b.ensured, f.Agents...)
		case engine.Announce:
			b.said = append(b.said, f.Kind)
		}
	}
	return effects
}

func (b *bench) up(names ...string) {
	b.t.Helper()
	for _, n := range names {
		b.step(engine.AgentUp{Agent: model.AgentName(n)})
	}
}

func (b *bench) release(changed []model.Intent, removed ...string) {
	b.t.Helper()
	b.version++
	ids := make([]model.ResourceID, len(removed))
	for i, r := range removed {
		ids[i] = rid(r)
	}
	b.step(engine.VersionReleased{Version: b.version, Changed: changed, Removed: ids})
}

// inFlight names the resources that run, in the order in which they were started.
func (b *bench) inFlight() string {
	var s []string
	for _, t := range b.flight {
		p := t.Intent.Resource.Parts()
		s = append(s, string(p.Agent)+"/"+p.Value)
	}
	return strings.Join(s, " ")
}

func (b *bench) wantFlight(want string) {
	b.t.Helper()
	if got := b.inFlight(); got != want {
		b.t.Fatalf("in flight: got %q, want %q", got, want)
	}
}

// take removes a task in flight.
func (b *bench) take(name string) model.Task {
	b.t.Helper()
	k := slices.IndexFunc(b.flight, func(t model.Task) bool { return t.Intent.Resource == rid(name) })
	if k < 0 {
		b.t.Fatalf("%s is not in flight, only %q", name, b.inFlight())
	}
	task := b.flight[k]
	b.flight = slices.Delete(b.flight, k, k+1)
	return task
}

func (b *bench) result(task model.Task, outcome model.Outcome, change model.Change) model.Result {
	return model.Result{
		Task: task.ID, Environment: task.Environment, Resource: task.Intent.Resource, Version: task.Version, Kind: task.Kind,
		AttributeHash: task.Intent.AttributeHash, Outcome: outcome, Change: change, StartedAt: b.now, FinishedAt: b.now, DryRun: task.DryRun,
	}
}

// finish ends the run of a resource and returns its task. Time goes on by a second.
func (b *bench) finish(name string, outcome model.Outcome, change model.Change) model.Task {
	b.t.Helper()
	task := b.take(name)
	b.now = b.now.Add(time.Second)
	b.step(engine.TaskFinished{Result: b.result(task, outcome, change)})
	return task
}

func (b *bench) ok(name string) model.Task {
	b.t.Helper()
	return b.finish(name, model.OutcomeDeployed, model.ChangeUpdated)
}

// drain lets everything in flight, and what follows, end well; it returns the order.
func (b *bench) drain() string {
	b.t.Helper()
	var order []string
	for n := 0; len(b.flight) > 0; n++ {
		if n > 100_000 {
			b.t.Fatal("work does not end")
		}
		p := b.flight[0].Intent.Resource.Parts()
		name := string(p.Agent) + "/" + p.Value
		order = append(order, name)
		if b.flight[0].Kind == model.TaskDryRun {
			b.finish(name, model.OutcomeDryRun, model.ChangeNone)
		} else {
			b.finish(name, model.OutcomeDeployed, model.ChangeNone)
		}
	}
	return strings.Join(order, " ")
}

// later moves time to the timer and fires it.
func (b *bench) later() {
	b.t.Helper()
	if b.timer.IsZero() {
		b.t.Fatal("no timer is set")
	}
	if b.timer.After(b.now) {
		b.now = b.timer
	}
	b.step(engine.TimerFired{})
}

func (b *bench) wantStatus(name string, want model.Status) {
	b.t.Helper()
	if got := b.states[rid(name)].Status(); got != want {
		b.t.Fatalf("status of %s: got %s, want %s (%+v)", name, got, want, b.states[rid(name)])
	}
}

func (b *bench) command(kind model.CommandKind, change func(*model.Command)) model.Command {
	b.t.Helper()
	c := model.Command{Kind: kind, CreatedAt: b.now}
	c.ID.UUID[0] = byte(len(b.saves))
	c.ID.UUID[1] = byte(len(b.saves) >> 8)
	c.DryRun.UUID = c.ID.UUID
	if change != nil {
		change(&c)
	}
	b.step(engine.CommandReceived{Command: c})
	return c
}

func (b *bench) has(c model.Command) bool { return slices.Contains(b.done, c.ID) }

func chain(t testing.TB, agent string, n int) []model.Intent {
	t.Helper()
	var xs []model.Intent
	for i := range n {
		var req []string
		if i > 0 {
			req = []string{fmt.Sprintf("%s/%d", agent, i-1)}
		}
		xs = append(xs, in(t, fmt.Sprintf("%s/%d", agent, i), `{"v":1}`, req...))
	}
	return xs
}
