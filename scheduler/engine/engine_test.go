package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler/engine"
)

func TestRequirementsComeFirstAcrossAgents(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x", "y")
	b.release([]model.Intent{in(t, "x/a", `{}`, "y/b"), in(t, "y/b", `{}`, "x/c"), in(t, "x/c", `{}`), in(t, "x/d", `{}`)})
	b.wantFlight("x/c")
	b.ok("x/c")
	b.wantFlight("x/d y/b")
	b.ok("y/b")
	task := b.ok("x/d")
	if task.Kind != model.TaskDeploy || task.Version != 1 || !strings.Contains(task.Reason, "version 1") {
		t.Errorf("task = %+v, want a deploy of version 1 that says so", task)
	}
	b.wantFlight("x/a")
	task = b.ok("x/a")
	if want := map[model.ResourceID]model.Status{rid("y/b"): model.StatusDeployed}; !cmp.Equal(task.Requires, want) {
		t.Errorf("requires = %v, want %v", task.Requires, want)
	}
	b.wantStatus("x/a", model.StatusDeployed)
	if want := []engine.Announcement{engine.Busy, engine.Settled}; !cmp.Equal(b.said, want) {
		t.Errorf("announced %v, want %v", b.said, want)
	}
}

func TestSaveComesBeforeStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	effects := b.step(engine.VersionReleased{Version: 1, Changed: []model.Intent{in(t, "x/a", `{}`)}})
	saved := false
	for _, f := range effects {
		switch f := f.(type) {
		case engine.SaveState:
			saved = len(f.Started) == 1 && len(f.States) == 1 && f.States[0].Deploying && f.Processed == 1
		case engine.StartTask:
			if !saved {
				t.Error("the task starts before its action is saved")
			}
		}
	}
	if !saved {
		t.Errorf("effects = %+v, want the state, the action and the version saved", effects)
	}
}

func TestOnlyChangesAreDeployed(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 10}, model.Snapshot{})
	b.up("x")
	b.release(chain(t, "x", 4))
	b.drain()
	b.release([]model.Intent{in(t, "x/2", `{"v":2}`, "x/1")}, "x/3")
	b.wantFlight("x/2")
	b.wantStatus("x/3", model.StatusOrphaned)
	if got := b.states[rid("x/3")].OrphanedAfter; got != 1 {
		t.Errorf("orphaned after = %d, want 1", got)
	}
	b.ok("x/2")
	b.wantFlight("")
	// A change of requirements alone is not an update.
	b.release([]model.Intent{in(t, "x/2", `{"v":2}`, "x/0")})
	b.wantFlight("")
	// What has come back is new.
	b.release([]model.Intent{in(t, "x/3", `{"v":1}`, "x/2")})
	b.wantFlight("x/3")
}

func TestOneTaskPerResourceAndParallelism(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 3} {
		b := newBench(t, engine.Config{TasksPerAgent: limit}, model.Snapshot{})
		b.up("x")
		var xs []model.Intent
		for _, n := range []string{"x/a", "x/b", "x/c", "x/d"} {
			xs = append(xs, in(t, n, `{}`))
		}
		b.release(xs)
		if got := len(b.flight); got != limit {
			t.Errorf("with %d tasks per agent, %d are in flight", limit, got)
		}
	}
}

func TestUndefinedBlocksTransitively(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 9}, model.Snapshot{})
	b.up("x")
	xs := chain(t, "x", 4)
	xs[1] = undefined(xs[1])
	b.release(xs)
	b.wantFlight("x/0")
	b.ok("x/0")
	b.wantFlight("")
	b.wantStatus("x/1", model.StatusUndefined)
	b.wantStatus("x/2", model.StatusSkippedForUndefined)
	b.wantStatus("x/3", model.StatusSkippedForUndefined)
	if e := b.s.Explain(rid("x/3")); len(e.Reasons) != 1 || e.Reasons[0].Code != engine.ReasonBlocked || e.Reasons[0].Resource != rid("x/1") {
		t.Errorf("Explain = %+v, want it blocked by x/1", e)
	}
	// A repair does not run blocked resources, and is complete without them.
	c := b.command(model.CommandRepair, nil)
	b.now = b.now.Add(time.Second)
	b.ok("x/0")
	if !b.has(c) {
		t.Error("the repair is not done")
	}
	b.release([]model.Intent{in(t, "x/1", `{"v":2}`, "x/0")})
	b.wantFlight("x/1")
	if got := b.drain(); got != "x/1 x/2 x/3" {
		t.Errorf("after the value is known: %s", got)
	}
	b.wantStatus("x/3", model.StatusDeployed)
	// Dropping the link to something undefined unblocks too.
	b.release([]model.Intent{undefined(in(t, "x/1", `{"v":2}`, "x/0"))})
	b.wantStatus("x/3", model.StatusSkippedForUndefined)
	b.release([]model.Intent{in(t, "x/2", `{"v":1}`)})
	b.wantStatus("x/3", model.StatusDeployed)
	b.wantFlight("")
}

func TestSkippedForDependencyRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 9}, model.Snapshot{})
	b.up("x")
	b.release(chain(t, "x", 2))
	b.finish("x/0", model.OutcomeFailed, model.ChangeNone)
	task := b.finish("x/1", model.OutcomeSkippedForDependency, model.ChangeNone)
	if got := task.Requires[rid("x/0")]; got != model.StatusFailed {
		t.Errorf("status of the requirement = %s, want failed", got)
	}
	if got := b.states[rid("x/1")].Blocked; got != model.TemporarilyBlocked {
		t.Fatalf("blocked = %s, want temporarily", got)
	}
	if e := b.s.Explain(rid("x/1")); len(e.Reasons) == 0 || e.Reasons[0].Code != engine.ReasonDependency || e.Reasons[0].Resource != rid("x/0") {
		t.Errorf("Explain = %+v, want it to name x/0", e)
	}
	// A user's deploy tries the failed one, not the one that is blocked.
	b.command(model.CommandDeploy, nil)
	b.wantFlight("x/0")
	b.finish("x/0", model.OutcomeFailed, model.ChangeNone)
	b.wantFlight("")
	// The retry's delay grows: the second failure waits twice the base.
	if want := b.now.Add(2 * engine.DefaultRetryBase); !b.timer.Equal(want) {
		t.Errorf("timer = %s, want %s", b.timer, want)
	}
	b.later()
	b.wantFlight("x/0")
	b.ok("x/0")
	b.wantFlight("x/1")
	b.ok("x/1")
	b.wantStatus("x/1", model.StatusDeployed)
	// A repair runs what is temporarily blocked.
	b.release([]model.Intent{in(t, "x/0", `{"v":9}`)})
	b.finish("x/0", model.OutcomeFailed, model.ChangeNone)
	b.command(model.CommandRepair, nil)
	if got := b.drain(); got != "x/0 x/1" {
		t.Errorf("repair ran %q", got)
	}
}

func TestBackoffIsCappedByTheInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{Settings: settings("60", "86400")})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{}`)})
	var delays []time.Duration
	for range 6 {
		b.finish("x/a", model.OutcomeFailed, model.ChangeNone)
		delays = append(delays, b.timer.Sub(b.now))
		b.later()
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute, time.Minute}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	if got := b.states[rid("x/a")].Failures; got != 6 {
		t.Errorf("failures = %d, want 6", got)
	}
	b.ok("x/a")
	if got := b.timer.Sub(b.now); got != 24*time.Hour {
		t.Errorf("after success the timer is in %s, want a day", got)
	}
	b.later()
	if task := b.ok("x/a"); task.Kind != model.TaskRepair {
		t.Errorf("the timer runs a %s, want a repair", task.Kind)
	}
}

func TestTimersOffAndCron(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, deploy, repair string
		outcome              model.Outcome
		want                 time.Duration
	}{
		{"both off", "0", "0", model.OutcomeFailed, 0},
		{"deploy off, failed", "0", "100", model.OutcomeFailed, 100 * time.Second},
		{"repair off, compliant", "60", "0", model.OutcomeDeployed, 0},
		{"repair cron, compliant", "60", "0 3 * * *", model.OutcomeDeployed, 0},
		{"deploy cron, failed", "*/5 * * * *", "100", model.OutcomeFailed, 100 * time.Second},
		{"skipped waits for the deploy interval", "60", "100", model.OutcomeSkipped, time.Minute},
		{"repair shorter than deploy", "600", "5", model.OutcomeSkipped, 5 * time.Second},
		{"report only", "600", "0", model.OutcomeNonCompliant, 600 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, engine.Config{}, model.Snapshot{Settings: settings(tt.deploy, tt.repair)})
			b.up("x")
			b.release([]model.Intent{in(t, "x/a", `{}`)})
			b.finish("x/a", tt.outcome, model.ChangeNone)
			switch {
			case tt.want == 0 && !b.timer.IsZero():
				t.Errorf("timer in %s, want none", b.timer.Sub(b.now))
			case tt.want != 0 && b.timer.Sub(b.now) != tt.want:
				t.Errorf("timer in %s, want %s", b.timer.Sub(b.now), tt.want)
			}
		})
	}
}

func TestGlobalTriggers(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 9}, model.Snapshot{Settings: settings("*/5 * * * *", "0 3 * * *")})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{}`), in(t, "x/b", `{}`)})
	b.ok("x/a")
	b.finish("x/b", model.OutcomeFailed, model.ChangeNone)
	b.step(engine.GlobalDeploy{})
	b.wantFlight("x/b")
	b.ok("x/b")
	// What was run since the moment of the repair is not run for it again.
	b.step(engine.GlobalRepair{Since: b.now})
	b.wantFlight("x/a")
}

func TestSettingsRebuildTimers(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{}`)})
	b.ok("x/a")
	b.step(engine.SettingsChanged{Settings: settings("60", "120")})
	if got := b.timer.Sub(b.now); got != 2*time.Minute {
		t.Errorf("timer in %s, want two minutes", got)
	}
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	var xs []model.Intent
	for _, n := range []string{"x/busy", "x/a", "x/b", "x/c", "x/d", "x/e"} {
		xs = append(xs, in(t, n, `{}`))
	}
	b.release(xs)
	b.drain()
	b.now = b.now.Add(time.Hour)
	only := func(n string) func(*model.Command) {
		return func(c *model.Command) { c.Resources = []model.ResourceID{rid(n)} }
	}
	b.command(model.CommandRepair, only("x/busy"))
	b.step(engine.GlobalRepair{Since: b.now})          // 6: all
	b.command(model.CommandFacts, only("x/e"))         // 5
	b.command(model.CommandRepair, only("x/c"))        // 2
	b.release([]model.Intent{in(t, "x/b", `{"v":2}`)}) // 1
	c := model.Command{Kind: model.CommandDryRun, Version: 2}
	c.DryRun.UUID[0], c.ID.UUID[0] = 7, 7
	b.step(engine.DryRunVersion{Command: c, Intents: []model.Intent{in(t, "x/d", `{"v":3}`)}}) // 3
	if got, want := b.s.Stats().Queued, [engine.Priorities]int{0, 1, 1, 1, 0, 1, 3}; got != want {
		t.Errorf("queued = %v, want %v", got, want)
	}
	var kinds []string
	for len(b.flight) > 0 {
		task := b.flight[0]
		kinds = append(kinds, string(task.Kind)+" "+task.Intent.Resource.Parts().Value)
		b.finish("x/"+task.Intent.Resource.Parts().Value, model.OutcomeDeployed, model.ChangeNone)
	}
	want := []string{"repair busy", "deploy b", "repair c", "dryrun d", "getfact e", "repair a", "repair d", "repair e"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got, want := b.dry[rid("x/d")].Status, model.DiffUnmodified; got != want {
		t.Errorf("dry run found %q, want %q", got, want)
	}
}

// Before anything is released, agents are asked for what a stored version has, and started for it.
func TestBeforeTheFirstRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	stored := []model.Intent{in(t, "x/a", `{"v":1}`), in(t, "x/unknown", `{}`), in(t, "x/after", `{}`, "x/unknown")}
	stored[1].Undefined, stored[2].Blocked = true, true
	dry := model.Command{Kind: model.CommandDryRun, Version: 4}
	dry.DryRun.UUID[0], dry.ID.UUID[0] = 7, 7
	b.step(engine.DryRunVersion{Command: dry, Intents: stored})
	facts := model.Command{Kind: model.CommandFacts, Version: 4, Resources: []model.ResourceID{rid("x/a"), rid("x/unknown"), rid("x/after"), rid("x/gone")}}
	facts.ID.UUID[0] = 8
	b.step(engine.FactsRequested{Command: facts, Intents: stored})
	if got := b.s.AgentsWaitedFor(); !slices.Equal(got, []model.AgentName{"x"}) {
		t.Errorf("agents %v are waited for, want x", got)
	}
	b.up("x")
	var got []string
	for len(b.flight) > 0 {
		task := b.flight[0]
		got = append(got, fmt.Sprint(task.Kind, " ", task.Intent.Resource.Parts().Value, " ", task.Version, " ", string(task.Intent.Attributes)))
		b.finish("x/"+task.Intent.Resource.Parts().Value, model.OutcomeDeployed, model.ChangeNone)
	}
	if diff := cmp.Diff([]string{`dryrun a 4 {"v":1}`, `getfact a 4 {"v":1}`}, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	want := map[model.ResourceID]model.DiffStatus{rid("x/a"): model.DiffUnmodified, rid("x/unknown"): model.DiffUndefined, rid("x/after"): model.DiffSkippedForUndefined}
	for id, status := range want {
		if b.dry[id].Status != status {
			t.Errorf("the dry run found %q for %s, want %q", b.dry[id].Status, id, status)
		}
	}
	if n := b.s.Stats().Resources; n != 0 {
		t.Errorf("%d resources are managed, want none", n)
	}
}

func TestWaitedForInheritsPriority(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	xs := chain(t, "x", 2)
	for _, n := range []string{"x/p", "x/q", "x/r"} {
		xs = append(xs, in(t, n, `{}`))
	}
	b.release(xs)
	b.drain()
	b.now = b.now.Add(time.Hour)
	b.command(model.CommandRepair, func(c *model.Command) { c.Resources = []model.ResourceID{rid("x/p")} })
	b.command(model.CommandRepair, nil)
	// The deploy of x/1 waits for the repair of x/0, which therefore goes before the others.
	b.release([]model.Intent{in(t, "x/1", `{"v":2}`, "x/0")})
	if got, want := b.drain(), "x/p x/0 x/1 x/q x/r"; got != want {
		t.Errorf("order = %s, want %s", got, want)
	}
}

func TestEventsAndReload(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 9}, model.Snapshot{})
	b.up("x")
	conf := func(v string) model.Intent { return in(t, "x/conf", `{"send_event":true,"v":`+v+`}`) }
	b.release([]model.Intent{
		conf("1"), in(t, "x/service", `{}`, "x/conf"), in(t, "x/deaf", `{"receive_events":false}`, "x/conf"),
	})
	b.ok("x/conf")
	b.ok("x/service")
	b.ok("x/deaf")
	b.wantFlight("")
	// A changed requirement runs its dependants, who learn that they must reload.
	b.now = b.now.Add(time.Minute)
	b.release([]model.Intent{conf("2")})
	b.wantFlight("x/conf")
	b.ok("x/conf")
	b.wantFlight("x/service")
	if task := b.ok("x/service"); !task.Reload || !strings.Contains(task.Reason, "event") {
		t.Errorf("task = %+v, want a reload because of an event", task)
	}
	b.wantStatus("x/service", model.StatusDeployed)
	// A verification that changes nothing tells nobody.
	b.now = b.now.Add(time.Minute)
	b.command(model.CommandRepair, func(c *model.Command) { c.Resources = []model.ResourceID{rid("x/conf")} })
	b.finish("x/conf", model.OutcomeDeployed, model.ChangeNone)
	b.wantFlight("")
	// An event that finds its receiver running runs it once more.
	b.command(model.CommandRepair, func(c *model.Command) { c.Resources = []model.ResourceID{rid("x/service")} })
	b.release([]model.Intent{conf("3")})
	b.wantFlight("x/service x/conf")
	b.ok("x/conf")
	b.wantFlight("x/service")
	b.ok("x/service")
	b.wantFlight("x/service")
	if task := b.ok("x/service"); !task.Reload {
		t.Error("the second run is not told to reload")
	}
	b.wantFlight("")
}

func TestStaleResultIsNotCompliance(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{"v":1}`)})
	b.release([]model.Intent{in(t, "x/a", `{"v":2}`)})
	b.wantFlight("x/a")
	task := b.ok("x/a")
	st := b.states[rid("x/a")]
	if st.Compliance != model.HasUpdate || st.DeployedHash != task.Intent.AttributeHash {
		t.Errorf("state = %+v, want an update of what was deployed", st)
	}
	b.wantFlight("x/a")
	if task := b.ok("x/a"); task.Version != 2 {
		t.Errorf("the second run is of version %d", task.Version)
	}
	b.wantStatus("x/a", model.StatusDeployed)

	// Deleted, or deleted and made again, while it runs: only the log tells.
	b.release([]model.Intent{in(t, "x/a", `{"v":3}`)})
	b.release(nil, "x/a")
	b.release([]model.Intent{in(t, "x/a", `{"v":3}`)})
	b.wantFlight("x/a")
	b.ok("x/a")
	if st := b.states[rid("x/a")]; st.DeployedHash != "" || st.LastRun != model.RunNew {
		t.Errorf("state = %+v, want a resource that never ran", st)
	}
	b.wantFlight("x/a")
	b.release(nil, "x/a")
	b.ok("x/a")
	b.wantFlight("")
	b.wantStatus("x/a", model.StatusOrphaned)
	if got := b.s.Stats(); got.Resources != 0 || got.Running != 0 {
		t.Errorf("stats = %+v, want nothing", got)
	}
}

func TestDeployPreemptsRepairWhichGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	var xs []model.Intent
	for _, n := range []string{"x/a", "x/b", "x/c", "x/d"} {
		xs = append(xs, in(t, n, `{}`))
	}
	b.release(xs)
	b.drain()
	b.now = b.now.Add(time.Minute)
	c := b.command(model.CommandRepair, nil)
	b.ok("x/a")
	b.release([]model.Intent{in(t, "x/d", `{"v":2}`)})
	// d is next, counts as verified, and the repair goes on with c alone.
	if got, want := b.drain(), "x/b x/d x/c"; got != want {
		t.Errorf("order = %s, want %s", got, want)
	}
	if !b.has(c) {
		t.Error("the repair is not done")
	}
}

func TestRepairIsFinishedUnderAStreamOfDeploys(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{FairShare: 4}, model.Snapshot{})
	b.up("x")
	xs := chain(t, "x", 20)
	for _, n := range []string{"x/p", "x/q"} {
		xs = append(xs, in(t, n, `{"v":0}`))
	}
	b.release(xs)
	b.drain()
	b.now = b.now.Add(time.Minute)
	c := b.command(model.CommandRepair, nil)
	runs := 0
	for v := 1; !b.has(c); v++ {
		if v > 1000 {
			t.Fatalf("the repair is not done after %d runs under a stream of versions", runs)
		}
		// A new version arrives before each run ends: the agent never runs out of deploys.
		b.release([]model.Intent{in(t, []string{"x/p", "x/q"}[v%2], `{"v":`+strings.Repeat("1", v%50+1)+`}`)})
		p := b.flight[0].Intent.Resource.Parts()
		b.finish("x/"+p.Value, model.OutcomeDeployed, model.ChangeNone)
		runs++
	}
}

func TestRepairIsResumedAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	xs := []model.Intent{in(t, "x/a", `{}`), in(t, "x/b", `{}`), in(t, "x/c", `{}`)}
	b.release(xs)
	b.drain()
	b.now = b.now.Add(time.Minute)
	c := b.command(model.CommandRepair, nil)
	b.ok("x/a")

	snap := model.Snapshot{Version: 1, Processed: 1, Intents: xs, Settings: settings("600", "86400")}
	for _, st := range b.states {
		snap.States = append(snap.States, st)
	}
	snap.Running = []model.Action{b.saves[len(b.saves)-1].Started[0]}
	running := b.flight[0]
	n := newBench(t, engine.Config{Seed: 1}, snap)
	n.now = b.now
	n.up("x")
	n.step(engine.CommandReceived{Command: c})
	n.step(engine.CommandReceived{Command: c})
	// b may still be running at its agent; c has not begun.
	n.wantFlight("x/c")
	n.now = n.now.Add(time.Second)
	n.step(engine.TaskFinished{Result: n.result(running, model.OutcomeDeployed, model.ChangeNone)})
	n.ok("x/c")
	n.wantFlight("")
	if !n.has(c) {
		t.Error("the repair is not done")
	}
}

func TestRestartWaitsForOpenRunsThenRetries(t *testing.T) {
	t.Parallel()
	xs := []model.Intent{in(t, "x/a", `{}`), in(t, "x/b", `{}`)}
	snap := model.Snapshot{
		Version: 1, Processed: 1, Intents: xs,
		States: []model.ResourceState{
			{Resource: rid("x/a"), Compliance: model.HasUpdate, LastRun: model.RunNew, Blocked: model.NotBlocked, Deploying: true, IntentHash: xs[0].AttributeHash},
			{Resource: rid("x/b"), Compliance: model.HasUpdate, LastRun: model.RunNew, Blocked: model.NotBlocked, Deploying: true, IntentHash: xs[1].AttributeHash},
			{Resource: rid("x/gone"), Compliance: model.Compliant, LastRun: model.RunSuccessful, Blocked: model.NotBlocked},
		},
		Running: []model.Action{{Resource: rid("x/a"), Kind: model.ActionDeploy}, {Resource: rid("x/gone"), Kind: model.ActionDeploy}},
	}
	snap.Running[0].ID.UUID[0], snap.Running[1].ID.UUID[0] = 1, 2
	b := newBench(t, engine.Config{TasksPerAgent: 5}, snap)
	b.up("x")
	b.wantFlight("")
	b.wantStatus("x/gone", model.StatusOrphaned)
	if got := b.saves[0].Abandoned; len(got) != 1 || got[0] != snap.Running[1].ID {
		t.Errorf("abandoned = %v, want the run of the orphan", got)
	}
	b.later()
	if got, want := b.now.Sub(epoch), engine.DefaultAgentLostGrace; got != want {
		t.Errorf("waited %s, want %s", got, want)
	}
	if got := len(b.flight); got != 2 {
		t.Fatalf("in flight: %s, want both", b.inFlight())
	}
	b.drain()
	b.wantStatus("x/b", model.StatusDeployed)
}

func TestAgentLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.release([]model.Intent{in(t, "x/a", `{}`), in(t, "x/b", `{}`)})
	b.wantFlight("")
	if diff := cmp.Diff([]model.AgentName{"x"}, b.ensured); diff != "" {
		t.Errorf("ensured (-want +got):\n%s", diff)
	}
	if e := b.s.Explain(rid("x/a")); len(e.Reasons) != 1 || e.Reasons[0].Code != engine.ReasonAgentDown || e.Reasons[0].Agent != "x" {
		t.Errorf("Explain = %+v, want the agent down", e)
	}
	b.later()
	if len(b.ensured) != 2 {
		t.Errorf("ensured %v, want it asked for again", b.ensured)
	}
	b.up("x")
	first := b.flight[0]
	b.step(engine.AgentDown{Agent: "x", Lost: []model.TaskID{first.ID}})
	b.up("x")
	// Another resource may run meanwhile, not the same one.
	b.wantFlight("x/a x/b")
	b.take("x/b")
	if e := b.s.Explain(rid("x/a")); e.Reasons[0].Code != engine.ReasonAgentLost {
		t.Errorf("Explain = %+v, want the agent lost", e)
	}
	b.flight = nil
	before := b.now
	b.later()
	if got := b.now.Sub(before); got != engine.DefaultAgentLostGrace {
		t.Errorf("the task counted as lost after %s, want %s", got, engine.DefaultAgentLostGrace)
	}
	if got := b.saves[len(b.saves)-1].Abandoned; len(got) != 1 || got[0] != first.ID {
		t.Errorf("abandoned = %v, want the lost task", got)
	}
	// The late result of the lost task is believed, since nothing newer is known.
	b.now = b.now.Add(time.Second)
	b.step(engine.TaskFinished{Result: b.result(first, model.OutcomeDeployed, model.ChangeCreated)})
	if st := b.states[rid("x/a")]; st.Compliance != model.Compliant {
		t.Errorf("state = %+v, want compliant", st)
	}
	// The same result again is no news.
	saves := len(b.saves)
	b.step(engine.TaskFinished{Result: b.result(first, model.OutcomeDeployed, model.ChangeCreated)})
	if got := b.saves[saves:]; len(got) != 1 || len(got[0].States) != 0 {
		t.Errorf("the repeated result saved %+v, want only the action", got)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TaskDeadline: time.Minute}, model.Snapshot{})
	b.up("x", "y")
	b.release([]model.Intent{in(t, "x/a", `{}`), in(t, "y/slow", `{"timeout":300}`)})
	if got := b.flight[0].Deadline.Sub(b.now); got != time.Minute {
		t.Errorf("deadline in %s, want a minute", got)
	}
	if got := b.flight[1].Deadline.Sub(b.now); got != 6*time.Minute {
		t.Errorf("deadline in %s, want the resource's five minutes and one", got)
	}
	first := b.take("x/a")
	b.later()
	if diff := cmp.Diff([]model.TaskID{first.ID}, b.cancels); diff != "" {
		t.Errorf("cancelled (-want +got):\n%s", diff)
	}
	b.wantFlight("y/slow x/a")
	// The second loss is not retried at once.
	b.take("x/a")
	b.later()
	b.wantFlight("y/slow")
	b.later()
	b.wantFlight("y/slow x/a")
}

func TestDispatchFailedKeepsThePlace(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{}`), in(t, "x/b", `{}`)})
	task := b.take("x/a")
	b.step(engine.DispatchFailed{Task: task.ID})
	b.step(engine.DispatchFailed{Task: task.ID})
	b.wantFlight("")
	b.wantStatus("x/a", model.StatusAvailable)
	b.up("x")
	b.wantFlight("x/a")
}

func TestPauseAndHalt(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{Paused: map[model.AgentName]bool{"y": true}})
	b.up("x", "y")
	b.release([]model.Intent{in(t, "x/a", `{}`), in(t, "x/b", `{}`, "y/c"), in(t, "y/c", `{}`)})
	b.ok("x/a")
	b.wantFlight("")
	e := b.s.Explain(rid("x/b"))
	if len(e.Reasons) != 2 || e.Reasons[0].Code != engine.ReasonWaiting || e.Reasons[1].Code != engine.ReasonAgentPaused {
		t.Errorf("Explain = %+v, want it to wait for c whose agent is paused", e)
	}
	b.step(engine.AgentResumed{Agents: []model.AgentName{"y"}})
	b.wantFlight("y/c")
	b.step(engine.Halted{})
	b.step(engine.Halted{})
	if len(b.cancels) != 1 {
		t.Errorf("cancelled %v, want the one in flight", b.cancels)
	}
	b.finish("y/c", model.OutcomeCancelled, model.ChangeNone)
	b.wantFlight("")
	b.release([]model.Intent{in(t, "x/a", `{"v":2}`)})
	b.wantFlight("")
	if e := b.s.Explain(rid("x/a")); e.Reasons[0].Code != engine.ReasonHalted {
		t.Errorf("Explain = %+v, want halted", e)
	}
	b.step(engine.Resumed{})
	b.wantFlight("y/c x/a")
	b.drain()
	b.wantStatus("x/b", model.StatusDeployed)
}

func TestCancelledIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{}, model.Snapshot{})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{}`)})
	b.finish("x/a", model.OutcomeCancelled, model.ChangeNone)
	b.wantFlight("")
	b.wantStatus("x/a", model.StatusAvailable)
	b.later()
	b.wantFlight("x/a")
}

func TestReportOnlyAndPersonAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 3}, model.Snapshot{})
	b.up("x")
	b.release([]model.Intent{in(t, "x/report", `{"report_only":true}`), in(t, "x/broken", `{}`)})
	b.finish("x/report", model.OutcomeNonCompliant, model.ChangeNone)
	task := b.take("x/broken")
	r := b.result(task, model.OutcomeFailed, model.ChangeNone)
	r.Retry = model.RetryPerson
	b.step(engine.TaskFinished{Result: r})
	b.wantStatus("x/report", model.StatusNonCompliant)
	if e := b.s.Explain(rid("x/broken")); e.Reasons[0].Code != engine.ReasonPerson {
		t.Errorf("Explain = %+v, want a person", e)
	}
	b.wantFlight("")
	b.command(model.CommandDeploy, nil)
	b.wantFlight("x/broken")
	task = b.take("x/broken")
	r = b.result(task, model.OutcomeFailed, model.ChangeNone)
	r.Retry = model.RetryPerson
	b.step(engine.TaskFinished{Result: r})
	b.wantFlight("")
	// A new version is something that a person did, also where the attributes are the same.
	b.release([]model.Intent{in(t, "x/other", `{}`)})
	b.wantFlight("x/other x/broken")
	b.ok("x/other")
	b.ok("x/broken")
	b.wantStatus("x/broken", model.StatusDeployed)
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, engine.Config{TasksPerAgent: 9}, model.Snapshot{Paused: map[model.AgentName]bool{"paused": true}})
	b.up("x")
	b.release([]model.Intent{in(t, "x/a", `{}`)})
	b.wantFlight("x/a")
	c := model.Command{Kind: model.CommandDryRun, Version: 7}
	c.ID.UUID[0], c.DryRun.UUID[0] = 1, 2
	version := []model.Intent{
		in(t, "x/a", `{"v":9}`), in(t, "x/new", `{}`), undefined(in(t, "x/u", `{}`)), in(t, "x/needs", `{}`, "x/u"),
		in(t, "paused/p", `{}`), in(t, "down/d", `{}`), in(t, "x/fails", `{}`), in(t, "x/odd", `{}`),
	}
	b.step(engine.DryRunVersion{Command: c, Intents: version})
	b.step(engine.DryRunVersion{Command: c, Intents: version})
	// x/a is being deployed: its dry run waits for the end of that.
	b.wantFlight("x/a x/new x/fails x/odd")
	task := b.take("x/new")
	if task.Version != 7 || task.DryRun != c.DryRun || task.Kind != model.TaskDryRun {
		t.Errorf("task = %+v, want a dry run of version 7", task)
	}
	r := b.result(task, model.OutcomeDryRun, model.ChangeCreated)
	b.step(engine.TaskFinished{Result: r})
	r = b.result(b.take("x/fails"), model.OutcomeFailed, "")
	r.Log = []model.LogLine{{Message: "no luck"}}
	b.step(engine.TaskFinished{Result: r})
	b.finish("x/odd", model.OutcomeUnavailable, "")
	b.ok("x/a")
	b.wantFlight("x/a")
	r = b.result(b.take("x/a"), model.OutcomeDryRun, "")
	r.Changes = model.Diff{"v": {Current: []byte("1"), Desired: []byte("9")}}
	b.step(engine.TaskFinished{Result: r})
	b.wantStatus("x/a", model.StatusDeployed)
	if b.has(c) {
		t.Error("the dry run is done before the agent that is down was given up")
	}
	for end := b.now.Add(engine.DefaultDryRunGrace); !b.has(c) && b.now.Before(end); {
		b.later()
	}
	if !b.has(c) {
		t.Error("the dry run is not done")
	}
	got := map[model.ResourceID]model.DiffStatus{}
	for id, r := range b.dry {
		got[id] = r.Status
	}
	want := map[model.ResourceID]model.DiffStatus{
		rid("x/a"): model.DiffModified, rid("x/new"): model.DiffAdded, rid("x/u"): model.DiffUndefined, rid("x/needs"): model.DiffSkippedForUndefined,
		rid("paused/p"): model.DiffAgentDown, rid("down/d"): model.DiffAgentDown, rid("x/fails"): model.DiffModified, rid("x/odd"): model.DiffResourceNotSupported,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if got := string(b.dry[rid("x/fails")].Changes["handler"].Desired); got != `"no luck"` {
		t.Errorf("the failure says %s", got)
	}
}

func TestResetProgressOnStart(t *testing.T) {
	t.Parallel()
	a := in(t, "x/a", `{}`)
	st := model.ResourceState{
		Resource: a.Resource, Compliance: model.Compliant, LastRun: model.RunSuccessful, LastOutcome: model.OutcomeDeployed, Blocked: model.NotBlocked,
		IntentHash: a.AttributeHash, DeployedHash: a.AttributeHash, LastRunAt: epoch, LastSuccess: epoch,
	}
	for _, reset := range []bool{false, true} {
		set := settings("600", "86400")
		set.ResetDeployProgressOnStart = reset
		b := newBench(t, engine.Config{}, model.Snapshot{Version: 1, Processed: 1, Intents: []model.Intent{a}, States: []model.ResourceState{st}, Settings: set})
		b.up("x")
		if got := len(b.flight) == 1; got != reset {
			t.Errorf("reset %v: deployed again = %v", reset, got)
		}
	}
}

func TestOutstandingEventAfterARestart(t *testing.T) {
	t.Parallel()
	conf, service := in(t, "x/conf", `{"send_event":true}`), in(t, "x/service", `{}`, "x/conf")
	state := func(x model.Intent, at time.Time) model.ResourceState {
		return model.ResourceState{
			Resource: x.Resource, Compliance: model.Compliant, LastRun: model.RunSuccessful, LastOutcome: model.OutcomeDeployed, Blocked: model.NotBlocked,
			IntentHash: x.AttributeHash, DeployedHash: x.AttributeHash, LastRunAt: at, LastSuccess: at,
		}
	}
	first := state(conf, epoch)
	first.LastProducedEvents = epoch
	b := newBench(t, engine.Config{}, model.Snapshot{
		Version: 1, Processed: 1, Intents: []model.Intent{conf, service},
		States: []model.ResourceState{first, state(service, epoch.Add(-time.Hour))},
	})
	b.up("x")
	b.wantFlight("x/service")
	if task := b.ok("x/service"); !task.Reload {
		t.Error("the service is not told to reload")
	}
	b.wantFlight("")
}
