package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler"
	"github.com/intendant/intendant/scheduler/engine"
)

func TestDeploysAVersionAndItsChanges(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		a := newAgents("x", "y")
		s, stop := serve(t, m, a, nil)
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

func TestGroupCommit(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		var xs []model.Intent
		for i := range 400 {
			xs = append(xs, intent(t, "x", fmt.Sprint(i), `{}`))
		}
		env := m.add(1, xs...)
		m.slow = 5 * time.Millisecond
		a := newAgents("x")
		_, stop := serve(t, m, a, func(c *scheduler.Config) { c.Engine.TasksPerAgent = 100 })
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
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents()
		s, stop := serve(t, m, a, nil)
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

func TestHaltPauseSettingsAndDeletion(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		s, stop := serve(t, m, a, nil)
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
		m.envs[env].released, m.envs[env].versions = 0, nil
		m.hint(model.Hint{Topic: model.TopicEnvironment, Environment: env})
		m.mu.Unlock()
		within(time.Second)
		if got := s.Stats().Environments; got != 0 {
			t.Errorf("%d environments are owned, want none: it was cleared", got)
		}
		a.set(func() {
			if a.stopped != 2 {
				t.Errorf("the agents were stopped %d times, want once for the halt and once for the end", a.stopped)
			}
		})
		stop()
		a.wg.Wait()
	})
}

func TestDryRunCommand(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		_, stop := serve(t, m, a, nil)
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

func TestCommandsBeforeTheFirstRelease(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1)
		a := newAgents()
		_, stop := serve(t, m, a, nil)
		defer stop()
		within(time.Second)
		m.change(env, model.TopicCommand, func(e *environment) {
			e.versions[1] = []model.Intent{intent(t, "x", "a", `{}`)}
			dry := model.Command{Kind: model.CommandDryRun, Version: 1, CreatedAt: time.Now()}
			dry.ID.UUID[0], dry.DryRun.UUID[0] = 1, 1
			facts := model.Command{Kind: model.CommandFacts, Version: 1, Resources: []model.ResourceID{resource("x", "a"), resource("x", "gone")}, CreatedAt: time.Now()}
			facts.ID.UUID[0] = 2
			e.commands = append(e.commands, dry, facts)
		})
		within(time.Second)
		a.set(func() {
			if !slices.Equal(slices.Compact(a.ensured), []model.AgentName{"x"}) {
				t.Errorf("agents %v were to be started, want x", a.ensured)
			}
			a.up["x"] = true
		})
		within(10 * time.Second)
		var kinds []model.TaskKind
		a.set(func() {
			for _, task := range a.tasks {
				kinds = append(kinds, task.Kind)
			}
		})
		if !slices.Equal(kinds, []model.TaskKind{model.TaskDryRun, model.TaskFacts}) {
			t.Errorf("tasks = %v, want a dry run and facts", kinds)
		}
		m.change(env, model.TopicVersionReleased, func(e *environment) {
			if len(e.commands) != 0 || e.dry[resource("x", "a")].Status != model.DiffAdded {
				t.Errorf("commands = %v, dry run = %v", e.commands, e.dry)
			}
			e.released = 1
		})
		within(time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("after the release it is %s, want deployed", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestPoisonIsRefusedAndDoesNotStopTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		a.hold = true
		s, stop := serve(t, m, a, nil)
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
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "large", `{}`), intent(t, "x", "small", `{}`))
		a := newAgents("x")
		a.large = map[model.ResourceID]bool{resource("x", "large"): true}
		_, stop := serve(t, m, a, nil)
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
	bubble(t, func(t *testing.T, m *memory) {
		a := newAgents("x")
		env := m.add(1, intent(t, "x", "a", `{}`))
		s, stop := serve(t, m, a, nil)
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
		stop()
		a.wg.Wait()
	})
}

func TestHaltWithdrawsTasks(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		a := newAgents("x")
		a.hold = true
		env := m.add(1, intent(t, "x", "a", `{}`))
		s, stop := serve(t, m, a, nil)
		defer stop()
		within(time.Second)
		m.change(env, model.TopicEnvironment, func(e *environment) { e.snap.Environment.Halted = true })
		within(time.Second)
		var task model.Task
		a.set(func() {
			if len(a.cancels) != 1 {
				t.Fatalf("cancelled %v, want the task in flight", a.cancels)
			}
			if a.stopped != 0 {
				t.Error("the agents were stopped while a task was in flight")
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
		a.set(func() {
			if a.stopped != 1 {
				t.Errorf("the agents of the halted environment were stopped %d times, want once", a.stopped)
			}
		})
		m.change(env, model.TopicEnvironment, func(e *environment) { e.snap.Environment.Halted = false })
		within(time.Second)
		if got := m.status(env, resource("x", "a")); got != model.StatusDeployed {
			t.Errorf("status = %s, want deployed", got)
		}
		stop()
		a.wg.Wait()
	})
}

func TestReportGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		a := newAgents("x")
		a.hold = true
		env := m.add(1, intent(t, "x", "a", `{}`))
		s, stop := serve(t, m, a, nil)
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
	s.AgentUp(model.EnvironmentID{}, "x")
	s.AgentDown(model.EnvironmentID{}, "x", nil)
}
