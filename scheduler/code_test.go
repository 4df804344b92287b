package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
)

func TestTasksNameTheirCode(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		m.code = map[int]map[model.AgentName]string{1: {"x": "one"}, 2: {"x": "two"}}
		a := newAgents("x", "y")
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`), intent(t, "y", "c", `{}`))
		_, stop := serve(t, m, a, nil)
		defer stop()
		within(time.Second)
		m.change(env, model.TopicVersionReleased, func(e *environment) {
			m.codeless = errors.New("the database is away")
			e.versions[2] = []model.Intent{intent(t, "x", "a", `{"v":2}`), intent(t, "x", "b", `{}`), intent(t, "y", "c", `{}`)}
			e.released = 2
		})
		within(10 * time.Second)
		if n := a.count(); n != 3 {
			t.Errorf("%d tasks are handed out while the code is not known, want the 3 from before", n)
		}
		m.read(env, func(*environment) { m.codeless = nil })
		within(time.Minute)
		got := map[string]string{}
		a.set(func() {
			for _, task := range a.tasks {
				got[task.Intent.Resource.Parts().Value+" "+string(rune('0'+task.Version))] = task.Code
			}
		})
		if d := cmp.Diff(map[string]string{"a 1": "one", "b 1": "one", "c 1": "", "a 2": "two"}, got); d != "" {
			t.Error(d)
		}
		if m.coded[1] != 1 || m.coded[2] < 2 {
			t.Errorf("the code was read %v times, want once for the first version, and until it could be read for the second", m.coded)
		}
		stop()
		a.wg.Wait()
	})
}

func TestFactsCommand(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		a := newAgents("x")
		env := m.add(1, intent(t, "x", "a", `{}`), intent(t, "x", "b", `{}`))
		_, stop := serve(t, m, a, nil)
		defer stop()
		within(time.Second)
		c := model.Command{Kind: model.CommandFacts, Resources: []model.ResourceID{resource("x", "a"), resource("x", "gone")}, CreatedAt: time.Now()}
		c.ID.UUID[0] = 1
		m.change(env, model.TopicCommand, func(e *environment) { e.commands = append(e.commands, c) })
		within(time.Second)
		var asked []model.ResourceID
		a.set(func() {
			for _, task := range a.tasks {
				if task.Kind == model.TaskFacts {
					asked = append(asked, task.Intent.Resource)
				}
			}
		})
		if d := cmp.Diff([]model.ResourceID{resource("x", "a")}, asked); d != "" {
			t.Errorf("asked for facts: %s", d)
		}
		m.read(env, func(e *environment) {
			if len(e.commands) != 0 {
				t.Errorf("the command is still pending: %v", e.commands)
			}
		})
		stop()
		a.wg.Wait()
	})
}
