package compilerd_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/compilerd"
	"github.com/intendant/intendant/model"
)

// timetable is the memory that a store would be.
type timetable struct {
	hints chan model.Hint

	// mu guards all below.
	mu           sync.Mutex
	environments []model.Environment
	jobs         map[model.JobID]model.CompileJob
	asked        []string // when, in the order of asking
	refuse       error
}

func newTimetable(e ...model.Environment) *timetable {
	return &timetable{hints: make(chan model.Hint, 16), environments: e, jobs: map[model.JobID]model.CompileJob{}}
}

func (t *timetable) Environments(context.Context, *model.ProjectID) ([]model.Environment, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.environments), nil
}

func (t *timetable) RequestCompile(_ context.Context, job model.CompileJob) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refuse != nil {
		return t.refuse
	}
	if _, ok := t.jobs[job.ID]; !ok {
		t.jobs[job.ID] = job
		t.asked = append(t.asked, time.Now().UTC().Format("15:04:05"))
	}
	return nil
}

func (t *timetable) Subscribe(context.Context, ...model.Topic) <-chan model.Hint { return t.hints }

func (t *timetable) set(f func(e *model.Environment)) {
	t.mu.Lock()
	f(&t.environments[0])
	t.mu.Unlock()
	t.hints <- model.Hint{Topic: model.TopicEnvironment}
}

func (t *timetable) times() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.asked)
}

// every is a cron expression's reader for tests: the expression is an interval.
func every(expression string) (func(time.Time) time.Time, error) {
	d, err := time.ParseDuration(expression)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time { return after.Truncate(d).Add(d) }, nil
}

func quoted(s string) json.RawMessage { return json.RawMessage(strconv.Quote(s)) }

func environment(expression string) model.Environment {
	return model.Environment{
		ID: model.EnvironmentID{UUID: uuid.New()}, RepoURL: "https://git.example.com/model", Settings: map[string]json.RawMessage{model.SettingAutoFullCompile: quoted(expression)},
	}
}

// with returns the settings of an environment with another one: those that were handed out stay as they are.
func with(e *model.Environment, name string, value json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(e.Settings)
	out[name] = value
	return out
}

// timers runs n timers on one timetable, in a bubble whose clock starts at midnight, and calls f.
func timers(t *testing.T, n int, table *timetable, f func()) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		table.hints = make(chan model.Hint, 16)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range n {
			timer, err := compilerd.NewTimer(compilerd.TimerConfig{Timetable: table, Cron: every})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				if err := timer.Run(ctx); err != nil {
					t.Errorf("Run() = %v", err)
				}
			})
		}
		f()
		cancel()
		wg.Wait()
	})
}

// pass lets the bubble's clock go on.
func pass(d time.Duration) {
	time.Sleep(d) // fake time: see testing/synctest
	synctest.Wait()
}

func TestTimerAsksOnceAtEachMoment(t *testing.T) {
	t.Parallel()
	table := newTimetable(environment("10m"), environment(""))
	timers(t, 3, table, func() { pass(35 * time.Minute) })
	if d := cmp.Diff([]string{"00:10:00", "00:20:00", "00:30:00"}, table.times()); d != "" {
		t.Errorf("asked at (-want +got):\n%s", d)
	}
	for _, job := range table.jobs {
		if job.Environment != table.environments[0].ID || !job.Export || job.Update || string(job.Metadata["type"]) != `"schedule"` {
			t.Errorf("job is %+v, want an exporting compile of the first environment without update", job)
		}
	}
}

func TestTimerObeysTheSettings(t *testing.T) {
	t.Parallel()
	table := newTimetable(environment("bad"))
	timers(t, 1, table, func() {
		pass(30 * time.Minute)
		table.set(func(e *model.Environment) { e.Settings = with(e, model.SettingAutoFullCompile, quoted("10m")) })
		pass(15 * time.Minute) // 00:40
		table.set(func(e *model.Environment) { e.Halted = true })
		pass(20 * time.Minute)
		table.set(func(e *model.Environment) {
			e.Halted, e.Settings = false, with(e, model.SettingServerCompile, json.RawMessage(`false`))
		})
		pass(20 * time.Minute)
		table.set(func(e *model.Environment) { e.Settings = with(e, model.SettingServerCompile, json.RawMessage(`true`)) })
		pass(10 * time.Minute) // 01:30
		table.set(func(e *model.Environment) { e.Settings = with(e, model.SettingAutoFullCompile, quoted("1h")) })
		pass(time.Hour) // 02:00
	})
	if d := cmp.Diff([]string{"00:40:00", "01:30:00", "02:00:00"}, table.times()); d != "" {
		t.Errorf("asked at (-want +got):\n%s", d)
	}
}

func TestTimerTriesAgain(t *testing.T) {
	t.Parallel()
	table := newTimetable(environment("10m"))
	table.refuse = errors.New("the database does not answer")
	timers(t, 1, table, func() {
		pass(10*time.Minute + 15*time.Second)
		table.mu.Lock()
		table.refuse = nil
		table.mu.Unlock()
		pass(time.Minute)
	})
	if d := cmp.Diff([]string{"00:10:20"}, table.times()); d != "" {
		t.Errorf("asked at (-want +got):\n%s", d)
	}
}

func TestTimerNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := compilerd.NewTimer(compilerd.TimerConfig{}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("NewTimer() = %v, want ErrInvalid", err)
	}
}
