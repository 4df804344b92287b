package compilerd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/model"
)

// run is the work on one job. It is used by one goroutine.
type run struct {
	s      *Service
	job    model.CompileJob
	worker string
	log    *slog.Logger
	report model.CompileReport
	// unsaved are stages that ended before anybody could have seen them.
	unsaved []model.CompileStage
}

// safely runs the job and turns whatever goes wrong into a report.
func (r *run) safely(ctx context.Context) (outcome model.CompileOutcome) {
	r.report.Job = r.job
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(ctx, "compile: internal fault", slog.Any("fault", p), slog.String("stack", string(debug.Stack())))
			outcome = r.end(ctx, nil, fmt.Errorf("internal fault: %v", p))
		}
	}()
	state, err := r.stages(ctx)
	return r.end(ctx, state, err)
}

// errModel says that the model has faults: the diagnostics tell them.
var errModel = errors.New("the model has faults")

func (r *run) end(ctx context.Context, state *model.DesiredState, err error) model.CompileOutcome {
	r.report.FinishedAt = time.Now()
	r.report.Job = r.job
	switch {
	case err == nil:
		r.report.Status = model.CompileSucceeded
		return model.CompileOutcome{Report: r.report, State: state}
	case errors.Is(context.Cause(ctx), errCancelled):
		r.report.Status, r.report.Error = model.CompileCancelled, errCancelled.Error()
	case errors.Is(err, errModel):
		r.report.Status, r.report.Error = model.CompileFailed, firstFault(r.report.Diagnostics)
	default:
		r.report.Status, r.report.Error = model.CompileFailed, oneLine(err.Error())
	}
	return model.CompileOutcome{Report: r.report}
}

// firstFault is the first error with its place, for lists and notifications.
func firstFault(ds []diag.Diagnostic) string {
	for _, d := range ds {
		if d.Severity != diag.Error {
			continue
		}
		if d.Range.File == "" {
			return oneLine(d.Message)
		}
		return oneLine(fmt.Sprintf("%s:%d: %s", d.Range.File, d.Range.Start.Line, d.Message))
	}
	return oneLine(errModel.Error())
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	const most = 4000
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// stages goes from the request to the desired state, which is nil when nothing is to be exported.
func (r *run) stages(ctx context.Context) (*model.DesiredState, error) {
	env, err := r.s.queue.Environment(ctx, r.job.Environment)
	if err != nil {
		return nil, fmt.Errorf("reading environment %s: %w", r.job.Environment, err)
	}
	if r.job.Revision.Commit == "" {
		if err := r.stage(ctx, "fetch", "fetch "+branchName(env), func(ctx context.Context, st *stage) error { return r.fetch(ctx, st, env) }); err != nil {
			return nil, err
		}
	}
	var dir string
	release := func() {}
	defer func() { release() }()
	err = r.stage(ctx, "checkout", "checkout "+r.job.Revision.Commit, func(ctx context.Context, st *stage) error {
		return r.retry(ctx, st, func() error {
			d, free, err := r.s.config.Sources.Checkout(ctx, env, r.job.Revision)
			if err != nil {
				return fmt.Errorf("checking out: %w", err)
			}
			dir, release = d, free
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	inputs, err := r.s.queue.CompileInputs(ctx, env.ID)
	if err != nil {
		return nil, fmt.Errorf("reading facts, parameters and settings: %w", err)
	}
	w, err := r.s.workspace()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := w.remove(); err != nil {
			r.log.WarnContext(ctx, "a workspace was left behind", slog.String("error", err.Error()))
		}
	}()
	inputsDigest, err := writeInputs(w.path("inputs.json"), env, inputs)
	if err != nil {
		return nil, err
	}
	prepared, err := r.modules(ctx, w, env, dir)
	defer prepared.Release()
	if err != nil {
		return nil, err
	}
	var res *result
	err = r.stage(ctx, "compile", "intendant compile", func(ctx context.Context, st *stage) error {
		res, err = r.compile(ctx, st, w, dir)
		return err
	})
	if res != nil {
		r.report.Diagnostics = res.diagnostics
		r.report.Excerpts = excerpts(dir, res.diagnostics)
	}
	if err != nil {
		return nil, err
	}
	digest := model.StateDigest(res.intents)
	r.report.Digest = compileDigest(r.job.Revision.Commit, env.RepoPath, inputsDigest, string(prepared.Lock), digest)
	if !r.job.Export {
		return nil, nil //nolint:nilnil // a compile that only checks makes no state
	}
	var state *model.DesiredState
	err = r.stage(ctx, "export", "store the version", func(_ context.Context, st *stage) error {
		files, err := readFiles(w.path("files"), r.s.config.Limits)
		if err != nil {
			return err
		}
		meta := maps.Clone(r.job.Metadata)
		if meta == nil {
			meta = map[string]json.RawMessage{}
		}
		if len(res.stats) > 0 {
			meta["stats"] = res.stats
		}
		if len(prepared.Lock) > 0 {
			meta["modules"] = prepared.Lock
		}
		state = &model.DesiredState{
			Environment: env.ID, Intents: res.intents, Unknowns: res.unknowns, Files: files, ResourceSets: res.sets, Code: res.code, Pip: res.pip,
			Digest: digest, Metadata: meta, Job: r.job.ID, Revision: r.job.Revision, Trace: r.job.Trace,
		}
		st.printf("%d resources, %d unknowns, %d files\n", len(res.intents), len(res.unknowns), len(files))
		return nil
	})
	return state, err
}

// modules brings what the project needs from elsewhere and tells the compiler where it is. Its stages are there only if there is
// something to do or to say.
func (r *run) modules(ctx context.Context, w *workspace, env model.Environment, dir string) (Prepared, error) {
	p := Prepared{Release: func() {}}
	if r.s.config.Modules == nil {
		return p, nil
	}
	began := len(r.report.Stages)
	p, err := r.s.config.Modules.Prepare(ctx, env, dir, r.job.Update, func(name, command string, work func(ctx context.Context, out io.Writer) error) error {
		return r.stage(ctx, name, command, func(ctx context.Context, st *stage) error {
			return r.retry(ctx, st, func() error { return work(ctx, st.out) })
		})
	})
	if p.Release == nil {
		p.Release = func() {}
	}
	if err == nil && len(p.Lock) > 0 && !json.Valid(p.Lock) {
		err = fmt.Errorf("the lock of the modules is no JSON: %w", model.ErrInvalid)
	}
	if err == nil {
		err = writePlacement(w.path("modules.json"), p.Placement)
	}
	shown := len(r.report.Stages) > began && r.lastFailed()
	if err != nil && shown || err == nil && len(p.Notes) == 0 {
		return p, err
	}
	// What people have to know and no stage has said.
	return p, r.stage(ctx, "modules", "prepare modules", func(_ context.Context, st *stage) error {
		for _, n := range p.Notes {
			st.errorf("%s\n", n)
		}
		return err
	})
}

// writePlacement writes what the compiler reads.
func writePlacement(name string, placement []byte) error {
	if len(placement) == 0 {
		placement = []byte("{}")
	}
	if err := os.WriteFile(name, placement, 0o600); err != nil {
		return fmt.Errorf("writing where modules are: %w", err)
	}
	return nil
}

// lastFailed reports whether the last stage failed.
func (r *run) lastFailed() bool {
	n := len(r.report.Stages)
	return n > 0 && r.report.Stages[n-1].ExitCode != nil && *r.report.Stages[n-1].ExitCode != 0
}

func branchName(e model.Environment) string {
	if e.RepoBranch == "" {
		return "the default branch"
	}
	return e.RepoBranch
}

// compileDigest covers all that a compile was made of and what came out of it.
func compileDigest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (r *run) fetch(ctx context.Context, st *stage, env model.Environment) error {
	return r.retry(ctx, st, func() error {
		rev, err := r.s.config.Sources.Resolve(ctx, env)
		if err != nil {
			return fmt.Errorf("fetching: %w", err)
		}
		if err := r.s.queue.SetCompileRevision(ctx, r.job.ID, r.worker, rev); err != nil {
			return fmt.Errorf("recording the commit: %w", err)
		}
		r.job.Revision = rev
		st.printf("%s is at %s\n", rev.Ref, rev.Commit)
		return nil
	})
}

// retry tries again while a repository can not be reached.
func (r *run) retry(ctx context.Context, st *stage, f func() error) error {
	pause := time.Second
	for n := 1; ; n++ {
		err := f()
		if err == nil || n >= r.s.config.FetchAttempts || !errors.Is(err, model.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		st.errorf("%s; trying again\n", oneLine(err.Error()))
		if !sleep(ctx, pause) {
			return err
		}
		pause *= 3
	}
}

// stage is a stage that runs. Its output may grow from several goroutines.
type stage struct {
	out, err *capture
}

func (s *stage) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }
func (s *stage) errorf(format string, args ...any) { fmt.Fprintf(s.err, format, args...) }

// streamInterval is how often a stage's output is stored while it grows. A stage that ends within firstSave is stored with
// the next one or with the report: most compiles are too short for anybody to watch, and each save is a transaction.
const (
	streamInterval = 500 * time.Millisecond
	firstSave      = 100 * time.Millisecond
)

// stage runs one stage: it is stored soon after it started, while its output grows, and when it ends.
func (r *run) stage(ctx context.Context, name, command string, f func(ctx context.Context, st *stage) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	begin := time.Now()
	row := model.CompileStage{Ordinal: len(r.report.Stages), Name: name, Command: command, StartedAt: begin}
	st := &stage{out: newCapture(r.s.config.Limits.Output), err: newCapture(r.s.config.Limits.Output)}

	growing, done := context.WithCancel(ctx)
	var wg sync.WaitGroup
	shown := false
	wg.Go(func() { shown = r.show(growing, row, st) })
	err := f(ctx, st)
	done()
	wg.Wait()

	code := 0
	if err != nil {
		code = 1
		if x, ok := errors.AsType[*exitError](err); ok {
			code = x.code
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if !errors.Is(err, errModel) {
			st.errorf("%s\n", oneLine(err.Error()))
		}
	}
	row.FinishedAt, row.ExitCode = time.Now(), &code
	row.Stdout, row.Stderr = st.out.String(), st.err.String()
	r.report.Stages = append(r.report.Stages, row)
	if shown {
		r.save(ctx, row)
	} else {
		r.unsaved = append(r.unsaved, row)
	}
	r.s.metrics.stageSeconds.WithLabelValues(name).Observe(row.FinishedAt.Sub(begin).Seconds())
	return err
}

// show stores a running stage and what came before it, and then its output as it grows, until ctx ends. It reports whether
// it stored anything.
func (r *run) show(ctx context.Context, row model.CompileStage, st *stage) bool {
	if !sleep(ctx, firstSave) {
		return false
	}
	for _, old := range r.unsaved {
		r.save(ctx, old)
	}
	r.unsaved = nil
	seen := int64(-1)
	for {
		if n := st.out.written() + st.err.written(); n != seen {
			seen = n
			row.Stdout, row.Stderr = st.out.String(), st.err.String()
			r.save(ctx, row)
		}
		if !sleep(ctx, streamInterval) {
			return true
		}
	}
}

// save stores a stage. A failure costs no more than a line that people do not see: the report has all stages once more.
func (r *run) save(ctx context.Context, row model.CompileStage) {
	if ctx.Err() != nil {
		return
	}
	if err := r.s.queue.SaveCompileStage(ctx, r.job.ID, r.worker, row); err != nil && ctx.Err() == nil {
		r.log.DebugContext(ctx, "a stage was not stored", slog.String("stage", row.Name), slog.String("error", err.Error()))
	}
}

// compilerInputs is the form of the file that --inputs reads.
type compilerInputs struct {
	Environment struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"environment"`
	Facts      map[string]string `json:"facts"`
	Parameters map[string]string `json:"parameters"`
	Settings   map[string]string `json:"settings"`
	Seed       string            `json:"seed"`
}

// writeInputs writes the inputs and returns their digest.
func writeInputs(name string, env model.Environment, in model.CompileInputs) (string, error) {
	out := compilerInputs{Facts: in.Facts, Parameters: in.Parameters, Settings: in.Settings, Seed: in.Seed}
	out.Environment.ID, out.Environment.Name = env.ID.String(), env.Name
	for _, m := range []*map[string]string{&out.Facts, &out.Parameters, &out.Settings} {
		if *m == nil {
			*m = map[string]string{}
		}
	}
	raw, err := json.Marshal(out) // maps are written in the order of their keys
	if err != nil {
		return "", fmt.Errorf("writing the inputs: %w", err)
	}
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		return "", fmt.Errorf("writing the inputs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
