package compilerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
)

// Timetable is where a [Timer] reads which environments want compiles at set times, and asks for them. The store implements it.
type Timetable interface {
	// Environments lists the environments of a project, of all projects when it is nil.
	Environments(ctx context.Context, project *model.ProjectID) ([]model.Environment, error)
	// RequestCompile queues a job; one of the same id that is there already is left as it is.
	RequestCompile(ctx context.Context, job model.CompileJob) error
	// Subscribe delivers hints of the given topics until ctx ends; the channel is then closed.
	Subscribe(ctx context.Context, topics ...model.Topic) <-chan model.Hint
}

// TimerConfig is what a [Timer] is made of.
type TimerConfig struct {
	Timetable Timetable
	// Cron reads a cron expression and returns what tells its next moment after another; the zero time stands for never.
	Cron func(expression string) (next func(after time.Time) time.Time, err error)
	// Refresh is how often the settings are read though no hint came. Default 1 min.
	Refresh time.Duration
	// Logger receives operators' events; nothing by default.
	Logger *slog.Logger
}

// Timer asks for a full, exporting compile of each environment at the moments of its setting auto_full_compile
// (server reference, section 7.6). Every server may run one: a moment's job has an id of its own, so that it is queued once.
// Moments that pass while no server runs are left out, and so are those of an environment that has no repository, is halted,
// or must not be compiled by the server.
type Timer struct {
	config TimerConfig
	log    *slog.Logger
}

// NewTimer makes a timer. It does no I/O.
func NewTimer(c TimerConfig) (*Timer, error) {
	if c.Timetable == nil || c.Cron == nil {
		return nil, fmt.Errorf("compilerd: a timer needs Timetable and Cron: %w", model.ErrInvalid)
	}
	if c.Refresh <= 0 {
		c.Refresh = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Timer{config: c, log: c.Logger}, nil
}

// appointment is an environment's next compile.
type appointment struct {
	expression string
	next       func(time.Time) time.Time
	// due is the moment, wake when to ask: the same but after a failure.
	due, wake time.Time
}

// Run works until ctx ends; then it returns nil. A database that does not answer is asked again later.
func (t *Timer) Run(ctx context.Context) error {
	hints := t.config.Timetable.Subscribe(ctx, model.TopicEnvironment)
	refresh := time.NewTicker(t.config.Refresh)
	defer refresh.Stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	book := map[model.EnvironmentID]*appointment{}
	t.read(ctx, book)
	for {
		t.keep(ctx, book)
		wait := t.config.Refresh
		for _, a := range book {
			wait = min(wait, max(time.Until(a.wake), 0))
		}
		alarm.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-hints:
			if !ok {
				hints = nil // the ticker goes on
			}
			drain(hints)
			t.read(ctx, book)
		case <-refresh.C:
			t.read(ctx, book)
		case <-alarm.C:
		}
	}
}

// drain takes the hints that have come meanwhile: one reading answers them all.
func drain(hints <-chan model.Hint) {
	for {
		select {
		case _, ok := <-hints:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// read brings the book up to date with the settings. An appointment whose expression is the same keeps its moment.
func (t *Timer) read(ctx context.Context, book map[model.EnvironmentID]*appointment) {
	all, err := t.config.Timetable.Environments(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			t.log.Warn("reading when to compile; it is tried again", "error", err)
		}
		return
	}
	now := time.Now()
	seen := map[model.EnvironmentID]bool{}
	for _, e := range all {
		settings := model.ParseSettings(e.Settings)
		expression := settings.AutoFullCompile
		if expression == "" || e.RepoURL == "" || e.Halted || !settings.ServerCompile {
			continue
		}
		if a := book[e.ID]; a != nil && a.expression == expression {
			seen[e.ID] = true
			continue
		}
		next, err := t.config.Cron(expression)
		if err != nil {
			t.log.Warn("the setting auto_full_compile can not be read", "environment", e.ID, "error", err)
			continue
		}
		if due := next(now); !due.IsZero() {
			book[e.ID], seen[e.ID] = &appointment{expression: expression, next: next, due: due, wake: due}, true
		}
	}
	for id := range book {
		if !seen[id] {
			delete(book, id)
		}
	}
}

// keep asks for the compiles that are due. One that can not be asked for stays due.
func (t *Timer) keep(ctx context.Context, book map[model.EnvironmentID]*appointment) {
	now := time.Now()
	for id, a := range book {
		if a.wake.After(now) {
			continue
		}
		err := t.config.Timetable.RequestCompile(ctx, model.CompileJob{
			ID:          momentID(id, a.due),
			Environment: id,
			Reason:      "scheduled by auto_full_compile (" + a.expression + ")",
			Export:      true,
			Metadata:    map[string]json.RawMessage{"type": json.RawMessage(`"schedule"`)},
		})
		switch {
		case err == nil:
		case errors.Is(err, model.ErrNotFound):
			delete(book, id)
			continue
		case ctx.Err() != nil:
			return
		default:
			t.log.Warn("asking for a scheduled compile; it is tried again", "environment", id, "error", err)
			a.wake = now.Add(retryPause)
			continue
		}
		a.due = a.next(now)
		if a.wake = a.due; a.due.IsZero() {
			delete(book, id)
		}
	}
}

// retryPause is how long a request that failed waits.
const retryPause = 10 * time.Second

// momentID is the id of the job of one environment and moment, the same on every server.
func momentID(env model.EnvironmentID, due time.Time) model.JobID {
	return model.JobID{UUID: uuid.NewSHA1(env.UUID, []byte("auto_full_compile "+due.UTC().Format(time.RFC3339)))}
}
