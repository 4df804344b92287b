package sdktest

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// Fixture is a handler with a piece of reality to work on.
type Fixture struct {
	// Registry has the handler.
	Registry *sdk.Registry
	// Resource is the resource's id.
	Resource model.ResourceID
	// Create and Update are the attributes of two different desired states. At first neither holds.
	Create, Update map[string]any
	// State describes reality in any text that changes when reality does.
	State func() string
	// Created is what a first run with Create reports: created, or updated for a type whose things are always there.
	// Defaults to created.
	Created model.Change
	// Purgeable says that the resource can be made absent by the attribute purged.
	Purgeable bool
	// Reloads counts reloads, for a handler that can reload.
	Reloads func() int
	// Code is the manifest of the code that tasks name, for handlers that are shipped.
	Code string
	// Started, when set, is called with the agent before its first task.
	Started func(t testing.TB, a *Agent)
}

// Conformance checks that a handler keeps the promises of package sdk: that a dry run, a report-only resource and one whose
// requirements are not deployed change nothing, that every run is idempotent, that what differs is said with its present
// and its desired value, that purging and reloading do what they say. setup makes a fresh fixture for each test.
func Conformance(t *testing.T, setup func(t testing.TB, s *Server) Fixture) {
	t.Helper()
	for name, test := range map[string]func(b *bench, t *testing.T){
		"dry run of a creation":          (*bench).dryRunCreate,
		"create and do nothing more":     (*bench).create,
		"dry run of an update":           (*bench).dryRunUpdate,
		"update and do nothing more":     (*bench).update,
		"report only":                    (*bench).reportOnly,
		"requirement that is not there":  (*bench).requirement,
		"purge and do nothing more":      (*bench).purge,
		"reload when a requirement says": (*bench).reload,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewServer(t)
			b := &bench{s: s, f: setup(t, s)}
			name := b.f.Resource.Parts().Agent
			a := s.StartAgent(t, b.f.Registry, []model.AgentName{name})
			if b.f.Started != nil {
				b.f.Started(t, a)
			}
			s.AwaitUp(t, name, 1)
			test(b, t)
		})
	}
}

// bench is the state of one test of the suite.
type bench struct {
	s *Server
	f Fixture
}

func (b *bench) created() model.Change {
	if b.f.Created != "" {
		return b.f.Created
	}
	return model.ChangeCreated
}

// run runs one task.
func (b *bench) run(t *testing.T, kind model.TaskKind, attributes map[string]any, change func(*model.Task)) model.Result {
	t.Helper()
	task := b.s.NewTask(kind, NewIntent(t, b.f.Resource, attributes))
	task.Code = b.f.Code
	if change != nil {
		change(&task)
	}
	return b.s.Run(t, task)
}

// deploy runs a deploy that must succeed with a given change.
func (b *bench) deploy(t *testing.T, attributes map[string]any, want model.Change) {
	t.Helper()
	r := b.run(t, model.TaskDeploy, attributes, nil)
	if r.Outcome != model.OutcomeDeployed || r.Change != want {
		t.Fatalf("deploy is %s with change %s, want deployed with %s; log %v", r.Outcome, r.Change, want, r.Log)
	}
	if (len(r.Changes) > 0) != (want != model.ChangeNone) {
		t.Errorf("deploy with change %s reports the difference %v", r.Change, r.Changes)
	}
	checkDiff(t, r.Changes)
}

// unchanged runs f and checks that reality is what it was.
func (b *bench) unchanged(t *testing.T, f func()) {
	t.Helper()
	before := b.f.State()
	f()
	if after := b.f.State(); after != before {
		t.Errorf("reality has changed from %q to %q", before, after)
	}
}

// changed runs f and checks that reality is not what it was.
func (b *bench) changed(t *testing.T, f func()) {
	t.Helper()
	before := b.f.State()
	f()
	if after := b.f.State(); after == before {
		t.Errorf("reality has not changed: %q", before)
	}
}

// checkDiff checks that each difference has both values, and that they differ.
func checkDiff(t *testing.T, d model.Diff) {
	t.Helper()
	for name, ch := range d {
		if !json.Valid(ch.Current) || !json.Valid(ch.Desired) {
			t.Errorf("attribute %s: %q and %q are not both JSON", name, ch.Current, ch.Desired)
		}
		if string(ch.Current) == string(ch.Desired) {
			t.Errorf("attribute %s: current and desired are both %s", name, ch.Current)
		}
	}
}

func (b *bench) dry(t *testing.T, attributes map[string]any) {
	t.Helper()
	b.unchanged(t, func() {
		r := b.run(t, model.TaskDryRun, attributes, nil)
		if r.Outcome != model.OutcomeDryRun || r.Change != model.ChangeNone {
			t.Errorf("dry run is %s with change %s, want dry and nochange; log %v", r.Outcome, r.Change, r.Log)
		}
		if len(r.Changes) == 0 {
			t.Errorf("dry run shows no difference")
		}
		checkDiff(t, r.Changes)
	})
}

func with(attributes map[string]any, name string, value any) map[string]any {
	m := maps.Clone(attributes)
	m[name] = value
	return m
}

func (b *bench) dryRunCreate(t *testing.T) { b.dry(t, b.f.Create) }

func (b *bench) create(t *testing.T) {
	b.changed(t, func() { b.deploy(t, b.f.Create, b.created()) })
	b.unchanged(t, func() { b.deploy(t, b.f.Create, model.ChangeNone) })
}

func (b *bench) dryRunUpdate(t *testing.T) {
	b.deploy(t, b.f.Create, b.created())
	b.dry(t, b.f.Update)
}

func (b *bench) update(t *testing.T) {
	b.deploy(t, b.f.Create, b.created())
	b.changed(t, func() { b.deploy(t, b.f.Update, model.ChangeUpdated) })
	b.unchanged(t, func() { b.deploy(t, b.f.Update, model.ChangeNone) })
}

func (b *bench) reportOnly(t *testing.T) {
	attributes := with(b.f.Create, "report_only", true)
	b.unchanged(t, func() {
		r := b.run(t, model.TaskDeploy, attributes, nil)
		if r.Outcome != model.OutcomeNonCompliant || len(r.Changes) == 0 {
			t.Errorf("report is %s with difference %v, want non_compliant with one", r.Outcome, r.Changes)
		}
		checkDiff(t, r.Changes)
	})
	b.deploy(t, b.f.Create, b.created())
	b.unchanged(t, func() { b.deploy(t, attributes, model.ChangeNone) })
}

func (b *bench) requirement(t *testing.T) {
	b.unchanged(t, func() {
		r := b.run(t, model.TaskDeploy, b.f.Create, func(task *model.Task) {
			task.Requires = map[model.ResourceID]model.Status{
				"test::Requirement[other,name=bad]":  model.StatusFailed,
				"test::Requirement[other,name=good]": model.StatusDeployed,
			}
		})
		if r.Outcome != model.OutcomeSkippedForDependency {
			t.Errorf("outcome is %s, want skipped_for_dependency", r.Outcome)
		}
	})
	r := b.run(t, model.TaskDeploy, b.f.Create, func(task *model.Task) {
		task.Requires = map[model.ResourceID]model.Status{"test::Requirement[other,name=good]": model.StatusDeployed}
	})
	if r.Outcome != model.OutcomeDeployed {
		t.Errorf("outcome is %s, want deployed; log %v", r.Outcome, r.Log)
	}
}

func (b *bench) purge(t *testing.T) {
	if !b.f.Purgeable {
		t.Skip("the resource can not be purged")
	}
	purged := with(b.f.Create, "purged", true)
	b.unchanged(t, func() { b.deploy(t, purged, model.ChangeNone) })
	absent := b.f.State()
	b.deploy(t, b.f.Create, b.created())
	b.dry(t, purged)
	b.deploy(t, purged, model.ChangePurged)
	if after := b.f.State(); after != absent {
		t.Errorf("after purging reality is %q, want %q", after, absent)
	}
	b.unchanged(t, func() { b.deploy(t, purged, model.ChangeNone) })
}

func (b *bench) reload(t *testing.T) {
	if b.f.Reloads == nil {
		t.Skip("the handler does not reload")
	}
	b.deploy(t, b.f.Create, b.created())
	before := b.f.Reloads()
	ask := func(task *model.Task) { task.Reload = true }
	b.run(t, model.TaskDryRun, b.f.Create, ask)
	if after := b.f.Reloads(); after != before {
		t.Errorf("a dry run reloaded")
	}
	if r := b.run(t, model.TaskDeploy, b.f.Create, ask); r.Outcome != model.OutcomeDeployed {
		t.Errorf("outcome is %s, want deployed; log %v", r.Outcome, r.Log)
	}
	if after := b.f.Reloads(); after != before+1 {
		t.Errorf("reloaded %d times, want once", after-before)
	}
}
