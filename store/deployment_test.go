package store_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

func acquire(t *testing.T, s *store.Store, env model.EnvironmentID, owner string, now time.Time) (model.Lease, bool) {
	t.Helper()
	leases, err := s.AcquireLeases(t.Context(), []model.EnvironmentID{env}, owner, now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(leases) == 0 {
		return model.Lease{}, false
	}
	return leases[0], true
}

func TestLease(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	a, ok := acquire(t, s, env, "a", now)
	if !ok || a.Token == 0 || !a.ExpiresAt.Equal(now.Add(time.Minute)) {
		t.Fatalf("the first lease = %+v, %t", a, ok)
	}
	if again, ok := acquire(t, s, env, "a", now.Add(time.Second)); !ok || again.Token != a.Token {
		t.Errorf("prolonged = %+v, %t, want the same token", again, ok)
	}
	if l, ok := acquire(t, s, env, "b", now.Add(59*time.Second)); ok {
		t.Errorf("b gets %+v while a's lease holds", l)
	}
	b, ok := acquire(t, s, env, "b", now.Add(2*time.Minute))
	if !ok || b.Token <= a.Token {
		t.Fatalf("b = %+v, %t, want a greater token than %d", b, ok, a.Token)
	}
	progress := model.Progress{Processed: 3, Now: now}
	if err := s.SaveProgress(t.Context(), a, progress); !errors.Is(err, model.ErrFenced) {
		t.Errorf("a saves: %v, want fenced", err)
	}
	if err := s.SaveDryRunResults(t.Context(), a, model.DryRunID{UUID: uuid.New()}, nil); !errors.Is(err, model.ErrFenced) {
		t.Errorf("a saves a dry run: %v, want fenced", err)
	}
	if err := s.ReleaseLease(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveProgress(t.Context(), b, progress); err != nil {
		t.Errorf("b saves after a released what it no longer had: %v", err)
	}
	if err := s.ReleaseLease(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c, ok := acquire(t, s, env, "c", now.Add(2*time.Minute))
	if !ok || c.Token <= b.Token {
		t.Errorf("c = %+v, %t, want the released lease at once with a greater token", c, ok)
	}
	if err := s.SaveProgress(t.Context(), model.Lease{Environment: model.EnvironmentID{UUID: uuid.New()}, Token: 1}, progress); !errors.Is(err, model.ErrFenced) {
		t.Errorf("no lease at all: %v, want fenced", err)
	}
	if l, ok := acquire(t, s, model.EnvironmentID{UUID: uuid.New()}, "a", now); ok {
		t.Errorf("an unknown environment: %+v, want no lease", l)
	}
}

// Two schedulers fight for an environment: what the one that lost it writes is never stored.
func TestStaleWritesAreNeverStored(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	env := storetest.Environment(t, servers[0]).ID
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		won  int64 // the greatest token whose write was stored
	)
	for i, s := range servers {
		owner := []string{"a", "b"}[i]
		wait.Go(func() {
			now := storetest.Now()
			for n := range 40 {
				now = now.Add(time.Hour) // the other's lease has ended
				leases, err := s.AcquireLeases(t.Context(), []model.EnvironmentID{env}, owner, now, time.Minute)
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				if len(leases) == 0 {
					continue
				}
				lease := leases[0]
				// The lock makes the order of the writes known.
				mu.Lock()
				err = s.SaveProgress(t.Context(), lease, model.Progress{Processed: n + 1, Now: now})
				switch {
				case err == nil && lease.Token < won:
					t.Errorf("token %d was stored after %d", lease.Token, won)
				case err == nil:
					won = lease.Token
				case !errors.Is(err, model.ErrFenced):
					t.Errorf("save: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
}

func TestProgressComesBack(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s, storetest.Setting("autostart_agent_repair_interval", `"60"`)).ID
	intents := storetest.Intents(t, "a=1", "b=1 > a")
	storetest.Version(t, s, env, true, intents...)
	lease, _ := acquire(t, s, env, "x", now)
	states := []model.ResourceState{
		{
			Resource: intents[0].Resource, Compliance: model.NonCompliant, LastRun: model.RunFailed, Blocked: model.TemporarilyBlocked, Deploying: true,
			IntentHash: "i", DeployedHash: "d", DeployedVersion: 1, LastOutcome: model.OutcomeFailed, LastRunAt: now, LastSuccess: now.Add(-time.Hour),
			LastProducedEvents: now.Add(-time.Minute), Failures: 3,
		},
		{Resource: storetest.ID("web", "/gone"), Compliance: model.Compliant, LastRun: model.RunNew, Blocked: model.NotBlocked, OrphanedAfter: 1},
	}
	command := model.Command{ID: model.CommandID{UUID: uuid.New()}, Environment: env, Kind: model.CommandRepair, Agents: []model.AgentName{"web"}, Reason: "r", Actor: "me", CreatedAt: now}
	if err := s.EnqueueCommand(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	if err := s.EnqueueCommand(t.Context(), command); err != nil {
		t.Errorf("the same command again: %v", err)
	}
	pending, err := s.PendingCommands(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]model.Command{command}, pending, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("pending commands: %s", d)
	}
	if err := s.SaveProgress(t.Context(), lease, model.Progress{States: states, Processed: 1, DoneCommands: []model.CommandID{command.ID}, Now: now}); err != nil {
		t.Fatal(err)
	}
	if pending, err = s.PendingCommands(t.Context(), env); err != nil || len(pending) != 0 {
		t.Errorf("pending commands = %v, %v, want none", pending, err)
	}
	snap, err := s.Snapshot(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if snap.Version != 1 || snap.Processed != 1 || snap.Settings.RepairInterval != "60" || snap.Settings.DeployInterval != "600" || len(snap.Intents) != 2 {
		t.Errorf("snapshot = %+v", snap)
	}
	byID := map[model.ResourceID]model.ResourceState{}
	for _, st := range snap.States {
		byID[st.Resource] = st
	}
	for _, want := range states {
		if d := cmp.Diff(want, byID[want.Resource]); d != "" {
			t.Errorf("state of %s: %s", want.Resource, d)
		}
	}
	if _, err := s.Snapshot(t.Context(), model.EnvironmentID{UUID: uuid.New()}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown environment: %v, want not found", err)
	}
}

func TestResultsAreStoredOnce(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	a := storetest.Intents(t, "a=1")
	storetest.Version(t, s, env, true, a...)
	lease, _ := acquire(t, s, env, "x", now)
	id := model.TaskID{UUID: uuid.New()}
	save := func(p model.Progress) {
		t.Helper()
		p.Now = now
		if err := s.SaveProgress(t.Context(), lease, p); err != nil {
			t.Fatal(err)
		}
	}
	started := model.Action{
		ID: id, Environment: env, Version: 1, Resource: a[0].Resource, Kind: model.ActionDeploy, Reason: "why", StartedAt: now, Trace: "t",
		Log: []model.LogLine{{Level: model.LevelInfo, Message: "start", Time: now}},
	}
	actions := func() []model.Action {
		t.Helper()
		got, err := s.Actions(t.Context(), env, model.ActionFilter{Resource: a[0].Resource, Kind: model.ActionDeploy})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	save(model.Progress{Started: []model.Action{started}})
	save(model.Progress{Started: []model.Action{started}})
	if got := actions(); len(got) != 1 || !got[0].FinishedAt.IsZero() || len(got[0].Log) != 1 || got[0].Reason != "why" {
		t.Fatalf("running action = %+v", got)
	}
	save(model.Progress{Abandoned: []model.TaskID{id, {UUID: uuid.New()}}})
	if got := actions(); got[0].Code != "agent-lost" || got[0].Outcome != model.OutcomeFailed || len(got[0].Log) != 2 {
		t.Fatalf("abandoned action = %+v", got)
	}
	result := model.Result{
		Task: id, Environment: env, Resource: a[0].Resource, Version: 1, Kind: model.TaskRepair, Outcome: model.OutcomeDeployed, Change: model.ChangeUpdated,
		Changes: model.Diff{"content": {Current: json.RawMessage(`"\u0000"`), Desired: json.RawMessage(`1.50`)}}, StartedAt: now, FinishedAt: now.Add(time.Second),
		Log: []model.LogLine{{Level: model.LevelDebug, Message: "bad \x00 bytes \xff", Kwargs: json.RawMessage(`{"n":12345678901234567890}`), Time: now}},
	}
	// The report that was thought lost comes after all, and once more.
	save(model.Progress{Finished: []model.Result{result, result}})
	save(model.Progress{Finished: []model.Result{result}})
	got := actions()
	if len(got) != 1 {
		t.Fatalf("%d actions, want one", len(got))
	}
	want := started
	want.FinishedAt, want.Outcome, want.Change, want.Changes = result.FinishedAt, result.Outcome, result.Change, result.Changes
	if d := cmp.Diff(want, got[0], cmpopts.IgnoreFields(model.Action{}, "Log")); d != "" {
		t.Errorf("action: %s", d)
	}
	if n := len(got[0].Log); n != 3 || got[0].Log[2].Message != "bad \uFFFD bytes \uFFFD" || string(got[0].Log[2].Kwargs) != `{"n":12345678901234567890}` {
		t.Errorf("log = %+v, want three lines, storable", got[0].Log)
	}
	// A result whose beginning was never seen is an action too.
	other := result
	other.Task = model.TaskID{UUID: uuid.New()}
	save(model.Progress{Finished: []model.Result{other}})
	if got := actions(); len(got) != 2 {
		t.Errorf("%d actions, want two", len(got))
	}
	logs, err := s.ResourceLogs(t.Context(), env, a[0].Resource, model.LogFilter{MinLevel: model.LevelInfo}, model.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, l := range logs.Items {
		messages = append(messages, l.Message)
	}
	if len(messages) != 3 || messages[0] != "Successfully stored version 1" || messages[1] != "start" {
		t.Errorf("log of the resource from INFO on = %q", messages)
	}
}

func TestActionFilters(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	intents := storetest.Intents(t, "a=hello", "db/b=world")
	storetest.Version(t, s, env, true, intents...)
	lease, _ := acquire(t, s, env, "x", now)
	p := progress(env, intents)
	p.Finished[0].StartedAt, p.Finished[0].Trace = now.Add(time.Second), "tr"
	p.Finished[1].StartedAt, p.Finished[1].Change = now.Add(2*time.Second), model.ChangeNone
	p.Finished[1].Log[0].Level = model.LevelError
	if err := s.SaveProgress(t.Context(), lease, p); err != nil {
		t.Fatal(err)
	}
	a, b := p.Finished[0].Task, p.Finished[1].Task
	tests := []struct {
		name   string
		filter model.ActionFilter
		want   []model.TaskID
	}{
		{"kind", model.ActionFilter{Kind: model.ActionDeploy}, []model.TaskID{b, a}},
		{"type", model.ActionFilter{Type: "fs::File"}, []model.TaskID{b, a}},
		{"agent", model.ActionFilter{Agent: "db"}, []model.TaskID{b}},
		{"attribute", model.ActionFilter{Attribute: "content", AttributeValue: "hell"}, []model.TaskID{a}},
		{"level", model.ActionFilter{Level: model.LevelError}, []model.TaskID{b}},
		{"changes", model.ActionFilter{Kind: model.ActionDeploy, ExcludeChanges: []model.Change{model.ChangeNone}}, []model.TaskID{a}},
		{"trace", model.ActionFilter{Trace: "tr"}, []model.TaskID{a}},
		{"after", model.ActionFilter{After: now.Add(time.Second)}, []model.TaskID{b}},
		{"after the id", model.ActionFilter{Kind: model.ActionDeploy, After: now.Add(time.Second), ID: model.TaskID{}}, []model.TaskID{b}},
		{"before", model.ActionFilter{Kind: model.ActionDeploy, Before: now.Add(2 * time.Second), ID: b}, []model.TaskID{a}},
		{"version", model.ActionFilter{Version: 7}, nil},
		{"limit", model.ActionFilter{Limit: 1}, []model.TaskID{b}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Actions(t.Context(), env, tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []model.TaskID
			for _, a := range got {
				ids = append(ids, a.ID)
			}
			if d := cmp.Diff(tt.want, ids); d != "" {
				t.Error(d)
			}
		})
	}
	steps, err := s.Trace(t.Context(), "tr")
	if err != nil || len(steps) != 1 || steps[0].Kind != "action" || steps[0].ID != a.String() || steps[0].Resource != intents[0].Resource {
		t.Errorf("Trace = %+v, %v", steps, err)
	}
}

func TestFactsResolveUnknowns(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	a := storetest.ID("web", "/a")
	state := storetest.State(env, storetest.Intents(t, "a=1", "b=?")...)
	state.Unknowns = []model.UnknownParameter{{Name: "ip", Resource: string(a), Source: "fact"}}
	if _, err := s.StoreVersion(t.Context(), state, true, now); err != nil {
		t.Fatal(err)
	}
	lease, _ := acquire(t, s, env, "x", now)
	report := func(value string, change model.Change) {
		t.Helper()
		err := s.SaveProgress(t.Context(), lease, model.Progress{Now: now, Finished: []model.Result{{
			Task: model.TaskID{UUID: uuid.New()}, Environment: env, Resource: a, Kind: model.TaskDeploy, Outcome: model.OutcomeDeployed, Change: change,
			StartedAt: now, FinishedAt: now, Facts: []model.Fact{{Name: "ip", Value: value, Expires: true}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	queue := func() int {
		t.Helper()
		q, err := s.CompileQueue(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return len(q)
	}
	report("10.0.0.1", model.ChangeNone)
	if queue() != 1 {
		t.Fatal("the fact that the model waits for queues no compile")
	}
	job := mustClaim(t, s, "w", now.Add(time.Hour))
	if string(job.Metadata["type"]) != `"fact"` || !job.Export {
		t.Errorf("job = %+v", job)
	}
	// The compile asks in vain again: the same value must not make it go on for ever.
	again := state
	if _, err := s.FinishCompileJob(t.Context(), "w", outcome(job.ID, &again), now); err != nil {
		t.Fatal(err)
	}
	report("10.0.0.1", model.ChangeNone)
	if queue() != 0 {
		t.Error("an unchanged fact queues a compile")
	}
	report("10.0.0.2", model.ChangeNone)
	if queue() != 1 {
		t.Error("a changed fact that resolves an unknown queues no compile")
	}
	f, err := s.Parameter(t.Context(), env, "ip", a)
	if err != nil || f.Value != "10.0.0.2" || f.Source != model.SourceFact || !f.Expires {
		t.Errorf("fact = %+v, %v", f, err)
	}
	err = s.SaveProgress(t.Context(), lease, model.Progress{Now: now, Finished: []model.Result{{
		Task: model.TaskID{UUID: uuid.New()}, Resource: a, Kind: model.TaskDeploy, Outcome: model.OutcomeDeployed, Change: model.ChangePurged, StartedAt: now, FinishedAt: now,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Parameter(t.Context(), env, "ip", a); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("fact of a purged resource: %v, want not found", err)
	}
}

func TestParametersRecompile(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	set := func(value string, recompile bool) bool {
		t.Helper()
		job := model.CompileJob{ID: model.JobID{UUID: uuid.New()}, Environment: env, RequestedAt: now, ExporterPlugin: uuid.NewString()}
		_, queued, err := s.SetParameters(t.Context(), env, []model.Parameter{{Name: "p", Value: value, Source: model.SourceUser}}, recompile, job)
		if err != nil {
			t.Fatal(err)
		}
		return queued
	}
	if !set("1", true) || set("1", true) || set("2", false) || !set("3", true) {
		t.Error("a compile is queued for a new or changed value when asked, and only then")
	}
	first, err := s.Parameter(t.Context(), env, "p", "")
	if err != nil {
		t.Fatal(err)
	}
	set("4", false)
	if second, err := s.Parameter(t.Context(), env, "p", ""); err != nil || second.ID != first.ID || second.Value != "4" {
		t.Errorf("Parameter = %+v, %v, want another value under the same id", second, err)
	}
	if err := s.DeleteParameter(t.Context(), env, "p", "", model.CompileJob{}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteParameter(t.Context(), env, "p", "", model.CompileJob{}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("deleted twice: %v, want not found", err)
	}
	if _, _, err := s.SetParameters(t.Context(), model.EnvironmentID{UUID: uuid.New()}, nil, false, model.CompileJob{}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown environment: %v, want not found", err)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	intents := storetest.Intents(t, "a", "b")
	storetest.Version(t, s, env, false, intents...)
	command := model.Command{
		ID: model.CommandID{UUID: uuid.New()}, Environment: env, Kind: model.CommandDryRun, Version: 1, DryRun: model.DryRunID{UUID: uuid.New()}, CreatedAt: now,
	}
	run, err := s.CreateDryRun(t.Context(), command)
	if err != nil || run.Total != 2 || run.Todo != 2 {
		t.Fatalf("CreateDryRun = %+v, %v", run, err)
	}
	if pending, err := s.PendingCommands(t.Context(), env); err != nil || len(pending) != 1 || pending[0].DryRun != run.ID {
		t.Errorf("pending = %v, %v, want the dry run", pending, err)
	}
	lease, _ := acquire(t, s, env, "x", now)
	result := model.DryRunResult{DryRun: run.ID, Resource: intents[0].Resource, Status: model.DiffModified, Changes: model.Diff{"x": {Current: []byte("1"), Desired: []byte("2")}}, Message: "m"}
	for range 2 {
		if err := s.SaveDryRunResults(t.Context(), lease, run.ID, []model.DryRunResult{result}); err != nil {
			t.Fatal(err)
		}
	}
	got, results, err := s.DryRunReport(t.Context(), env, run.ID)
	if err != nil || got.Todo != 1 {
		t.Errorf("DryRunReport = %+v, %v, want one to do: a resource counts once", got, err)
	}
	if d := cmp.Diff([]model.DryRunResult{result}, results); d != "" {
		t.Error(d)
	}
	if runs, err := s.DryRuns(t.Context(), env, 1); err != nil || len(runs) != 1 {
		t.Errorf("DryRuns(1) = %v, %v", runs, err)
	}
	if runs, err := s.DryRuns(t.Context(), env, 2); err != nil || len(runs) != 0 {
		t.Errorf("DryRuns(2) = %v, %v", runs, err)
	}
	command.Version = 9
	if _, err := s.CreateDryRun(t.Context(), command); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("of an unknown version: %v, want not found", err)
	}
	if err := s.SetHalted(t.Context(), env, true, "me", now); err != nil {
		t.Fatal(err)
	}
	command.Version = 1
	if _, err := s.CreateDryRun(t.Context(), command); !errors.Is(err, model.ErrConflict) {
		t.Errorf("while halted: %v, want a conflict", err)
	}
}

// The status that the database derives is the model's.
func TestStatusIsTheModels(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	lease, _ := acquire(t, s, env, "x", now)
	a := storetest.ID("web", "/a")
	rapid.Check(t, func(r *rapid.T) {
		st := model.ResourceState{
			Resource:     a,
			Compliance:   rapid.SampledFrom([]model.Compliance{model.Compliant, model.HasUpdate, model.NonCompliant, model.Undefined}).Draw(r, "compliance"),
			LastRun:      model.RunNew,
			Blocked:      rapid.SampledFrom([]model.Blocked{model.NotBlocked, model.IsBlocked, model.TemporarilyBlocked}).Draw(r, "blocked"),
			Deploying:    rapid.Bool().Draw(r, "deploying"),
			IntentHash:   rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "intent"),
			DeployedHash: rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "deployed"),
			LastOutcome: rapid.SampledFrom([]model.Outcome{
				"", model.OutcomeDeployed, model.OutcomeFailed, model.OutcomeSkipped, model.OutcomeSkippedForDependency, model.OutcomeUnavailable,
				model.OutcomeNonCompliant, model.OutcomeDryRun, model.OutcomeCancelled,
			}).Draw(r, "outcome"),
			OrphanedAfter: rapid.IntRange(0, 1).Draw(r, "orphaned"),
		}
		if err := s.SaveProgress(t.Context(), lease, model.Progress{States: []model.ResourceState{st}, Now: now}); err != nil {
			r.Fatal(err)
		}
		l, err := s.Resources(t.Context(), env, model.ResourceFilter{Statuses: []model.Status{st.Status()}}, model.Page{})
		if err != nil || len(l.Items) != 1 {
			r.Fatalf("%+v is not found by its status %s: %v", st, st.Status(), err)
		}
	})
}

func TestJourney(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s, storetest.Watching("https://git.example.org/a", "a")).ID
	trace := model.NewTraceID()
	if _, err := s.RecordDelivery(t.Context(), model.Delivery{Repository: "a", Key: "k", Trace: trace, Event: "push", Ref: "refs/heads/main", ReceivedAt: now}); err != nil {
		t.Fatal(err)
	}
	id, _, err := s.RecordRevision(t.Context(), env, model.Revision{Repository: "a", Ref: "refs/heads/main", Commit: "c1"}, "push", trace, false)
	if err != nil {
		t.Fatal(err)
	}
	journey := func(want model.JourneyPhase) model.Journey {
		t.Helper()
		js, err := s.Journeys(t.Context(), env, time.Time{}, 10)
		if err != nil || len(js) == 0 {
			t.Fatalf("Journeys = %v, %v", js, err)
		}
		j := js[len(js)-1]
		if j.Phase != want || j.Job != id || !j.ReceivedAt.Equal(now) || j.Revision.Commit != "c1" {
			t.Errorf("journey = %+v, want phase %s", j, want)
		}
		return j
	}
	journey(model.JourneyPushed)
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	mustClaim(t, s, "w", later)
	journey(model.JourneyCompiling)
	intents := storetest.Intents(t, "a=1", "b=1")
	state := storetest.State(env, intents...)
	finish(t, s, "w", id, &state, later)
	if j := journey(model.JourneyDeploying); j.Waiting != 2 || j.Total != 2 || j.Version != 1 {
		t.Errorf("journey = %+v, want two waiting", j)
	}
	lease, _ := acquire(t, s, env, "x", later)
	failed := progress(env, intents[:1])
	failed.States[0].Compliance, failed.States[0].LastRun, failed.States[0].LastOutcome = model.NonCompliant, model.RunFailed, model.OutcomeFailed
	failed.Processed, failed.Finished = 0, nil
	if err := s.SaveProgress(t.Context(), lease, failed); err != nil {
		t.Fatal(err)
	}
	if j := journey(model.JourneyDeploying); j.Waiting != 2 || j.Failed != 0 {
		t.Errorf("journey = %+v, want what failed before to wait for the scheduler", j)
	}
	failed.Processed = 1
	if err := s.SaveProgress(t.Context(), lease, failed); err != nil {
		t.Fatal(err)
	}
	if j := journey(model.JourneyDeploying); j.Waiting != 1 || j.Failed != 1 {
		t.Errorf("journey = %+v, want one that failed", j)
	}
	if err := s.SaveProgress(t.Context(), lease, progress(env, intents)); err != nil {
		t.Fatal(err)
	}
	if j := journey(model.JourneyConverged); j.Deployed != 2 || j.ConvergedAt.IsZero() || j.FirstDeployAt.IsZero() {
		t.Errorf("journey = %+v, want converged", j)
	}
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=2")...)
	if j := journey(model.JourneyConverged); j.ConvergedAt.IsZero() {
		t.Errorf("journey = %+v, want it to have converged before the next version came", j)
	}
	steps, err := s.Trace(t.Context(), trace)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, st := range steps {
		kinds[st.Kind] = true
	}
	for _, k := range []string{"delivery", "compile", "version"} {
		if !kinds[k] {
			t.Errorf("the trace has no %s: %+v", k, steps)
		}
	}
}

func TestManyEnvironmentsAtOnce(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	a := storetest.Environment(t, s, storetest.Setting(model.SettingRepairInterval, `"60"`)).ID
	b, foreign := storetest.Environment(t, s).ID, storetest.Environment(t, s).ID
	gone := model.EnvironmentID{UUID: uuid.New()}
	envs := []model.EnvironmentID{a, b, foreign, gone}
	storetest.Version(t, s, a, true, storetest.Intents(t, "x=1", "db/y=1")...)
	if err := s.SetAgentsPaused(t.Context(), a, []model.AgentName{"db"}, true, "me", now); err != nil {
		t.Fatal(err)
	}
	storetest.Version(t, s, b, true, storetest.Intents(t, "x=1")...)
	if err := s.SetHalted(t.Context(), b, true, "me", now); err != nil {
		t.Fatal(err)
	}
	one, _ := acquire(t, s, a, "me", now)
	if _, ok := acquire(t, s, foreign, "other", now); !ok {
		t.Fatal("no lease")
	}
	leases, err := s.AcquireLeases(t.Context(), envs, "me", now.Add(time.Second), time.Minute)
	if err != nil || len(leases) != 2 {
		t.Fatalf("AcquireLeases = %v, %v, want those of a and b", leases, err)
	}
	for _, l := range leases {
		if l.Environment == a && l.Token != one.Token {
			t.Errorf("the token of a is %d, want %d still", l.Token, one.Token)
		}
		if err := s.SaveProgress(t.Context(), l, model.Progress{Processed: 1, Now: now}); err != nil {
			t.Errorf("SaveProgress: %v", err)
		}
	}
	if _, err := s.AcquireLeases(t.Context(), envs, "", now, time.Minute); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("an owner without a name: %v, want invalid", err)
	}
	news, err := s.SchedulerNews(t.Context(), envs)
	if err != nil || len(news) != 3 {
		t.Fatalf("SchedulerNews = %v, %v, want three", news, err)
	}
	byID := map[model.EnvironmentID]model.SchedulerNews{}
	for _, n := range news {
		byID[n.Environment] = n
	}
	if n := byID[a]; n.Released != 1 || n.Halted || n.Settings.RepairInterval != "60" || !cmp.Equal(n.Paused, map[model.AgentName]bool{"db": true}) || len(n.Commands) != 1 {
		t.Errorf("news of a = %+v", n)
	}
	if n := byID[b]; !n.Halted || !cmp.Equal(n.Paused, map[model.AgentName]bool{"web": true}) {
		t.Errorf("news of b = %+v", n)
	}
	if n := byID[foreign]; n.Released != 0 || len(n.Commands) != 0 {
		t.Errorf("news of the other = %+v", n)
	}
}

func TestSnapshotHasRunningActions(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	intents := storetest.Intents(t, "a=1", "b=1", "c=1")
	storetest.Version(t, s, env, true, intents...)
	lease, _ := acquire(t, s, env, "x", now)
	var started []model.Action
	for i, in := range intents {
		started = append(started, model.Action{
			ID: model.TaskID{UUID: uuid.New()}, Environment: env, Version: 1, Resource: in.Resource, Kind: model.ActionDeploy, Reason: "r",
			StartedAt: now.Add(time.Duration(i) * time.Second), Trace: "t",
		})
	}
	p := model.Progress{
		Started: started, Abandoned: []model.TaskID{started[0].ID}, Now: now,
		Finished: []model.Result{{Task: started[1].ID, Resource: intents[1].Resource, Kind: model.TaskDeploy, StartedAt: now, FinishedAt: now}},
	}
	if err := s.SaveProgress(t.Context(), lease, p); err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(started[2:], snap.Running); d != "" {
		t.Errorf("running: %s", d)
	}
}
