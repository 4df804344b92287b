package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/scheduler"
)

func TestPollFindsWhatHintsDoNotTell(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		m.silent = true
		a := newAgents("x")
		_, stop := serve(t, m, a, nil)
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

func TestStoreFailuresDelayAndLoseNothing(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`, resource("x", "a")))
		a := newAgents("x")
		a.takes = 2 * time.Second
		_, stop := serve(t, m, a, nil)
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
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`, resource("x", "a")))
		a := newAgents("x")
		a.hold = true
		s, stop := serve(t, m, a, nil)
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
	bubble(t, func(t *testing.T, m *memory) {
		m.add(1, intent(t, "x", "a", `{}`))
		a := newAgents("x")
		s, stop := serve(t, m, a, nil)
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
	bubble(t, func(t *testing.T, m *memory) {
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`, resource("x", "a")))
		a := newAgents("x")
		a.hold = true
		_, stop := serve(t, m, a, nil)
		within(time.Second)
		stop()
		_, stop = serve(t, m, a, nil)
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

func TestEnvironmentThatHasGoneBackIsLoadedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		a := newAgents("x")
		env := m.add(1, intent(t, "x", "a", `{}`))
		m.change(env, "", func(e *environment) {
			e.versions[2], e.released = []model.Intent{intent(t, "x", "b", `{}`)}, 2
			// An expression that only a newer server would take is off, and stops nothing.
			e.snap.Settings.RepairInterval = "every full moon"
		})
		_, stop := serve(t, m, a, nil)
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

func TestIdleEnvironmentsCostNothing(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		const n = 200
		for i := range n {
			m.add(byte(i), intent(t, "x", "a", `{}`))
		}
		a := newAgents("x")
		s, stop := serve(t, m, a, nil)
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
	bubble(t, func(t *testing.T, m *memory) {
		for i := range 10 {
			m.add(byte(i), intent(t, "x", "a", `{}`))
		}
		a1, a2 := newAgents("x"), newAgents("x")
		one, stop1 := serve(t, m, a1, func(c *scheduler.Config) { c.MaxEnvironments = 4 })
		defer stop1()
		two, stop2 := serve(t, m, a2, func(c *scheduler.Config) { c.Owner = "two" })
		defer stop2()
		within(time.Minute)
		if got := one.Stats().Environments; got > 4 || got+two.Stats().Environments != 10 {
			t.Errorf("owned %d and %d, want at most 4 and all 10", got, two.Stats().Environments)
		}
		elsewhere := [2]int{}
		for env := range m.envs {
			for i, s := range []*scheduler.Scheduler{one, two} {
				if s.Elsewhere(env) {
					elsewhere[i]++
				}
			}
			if one.Elsewhere(env) == two.Elsewhere(env) {
				t.Errorf("environment %s is elsewhere for both servers or for none", env)
			}
		}
		if elsewhere[0] != 10-one.Stats().Environments {
			t.Errorf("%d environments are elsewhere for the first server, which owns %d of 10", elsewhere[0], one.Stats().Environments)
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
