package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// MaxCompileAttempts is how often a compile job is claimed: when its worker died that often, the job fails.
const MaxCompileAttempts = 3

// mergeKey is equal for jobs of one environment that ask for the same work. A commit is part of it unless the job follows
// the branch, or leaves the choice of the commit to the worker.
func mergeKey(job model.CompileJob, follows bool) []byte {
	commit := job.Revision.Commit
	if follows {
		commit = ""
	}
	names := make([]string, 0, len(job.EnvironmentVariables))
	for name := range job.EnvironmentVariables {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	fmt.Fprintf(h, "%t\x00%q\x00%q\x00", job.Export, job.ExporterPlugin, commit)
	for _, name := range names {
		fmt.Fprintf(h, "%q=%q\x00", name, job.EnvironmentVariables[name])
	}
	return h.Sum(nil)
}

// insertParams renders a job as a row of the queue.
func insertParams(job model.CompileJob, follows bool) (sqlgen.InsertCompileParams, error) {
	metadata, err := encode(job.Metadata, "{}")
	if err != nil {
		return sqlgen.InsertCompileParams{}, err
	}
	variables, err := encode(job.EnvironmentVariables, "{}")
	if err != nil {
		return sqlgen.InsertCompileParams{}, err
	}
	r := job.Revision
	return sqlgen.InsertCompileParams{
		ID: job.ID.UUID, Environment: job.Environment.UUID, MergeKey: mergeKey(job, follows), FollowsBranch: follows,
		RevisionRepository: string(r.Repository), RevisionRef: text(r.Ref), RevisionCommit: text(r.Commit), RevisionAuthor: text(r.Author),
		RevisionMessage: text(r.Message), RevisionCommittedAt: timeOrNil(r.CommittedAt), Reason: text(job.Reason), Actor: text(job.Actor),
		Trace: text(string(job.Trace)), Export: job.Export, UpdateModules: job.Update, RemoteID: text(job.RemoteID), Metadata: metadata,
		EnvironmentVariables: variables, ExporterPlugin: text(job.ExporterPlugin), RequestedAt: job.RequestedAt,
	}, nil
}

// queue stores a job as it is.
func (tx *Tx) queue(ctx context.Context, job model.CompileJob) error {
	p, err := insertParams(job, false)
	if err != nil {
		return err
	}
	n, err := tx.InsertCompile(ctx, p)
	if err != nil {
		return err
	}
	if n > 0 {
		tx.hint(model.TopicCompileQueued, job.Environment, job.ID.String())
	}
	return nil
}

// follow queues a job that follows the branch, or gives the one that waits already the newer revision.
func (tx *Tx) follow(ctx context.Context, job model.CompileJob) (model.JobID, error) {
	p, err := insertParams(job, true)
	if err != nil {
		return model.JobID{}, err
	}
	id, err := tx.QueueFollowingCompile(ctx, sqlgen.QueueFollowingCompileParams{
		ID: p.ID, Environment: p.Environment, MergeKey: p.MergeKey, RevisionRepository: p.RevisionRepository, RevisionRef: p.RevisionRef,
		RevisionCommit: p.RevisionCommit, RevisionAuthor: p.RevisionAuthor, RevisionMessage: p.RevisionMessage,
		RevisionCommittedAt: p.RevisionCommittedAt, Reason: p.Reason, Actor: p.Actor, Trace: p.Trace, Export: p.Export,
		UpdateModules: p.UpdateModules, RemoteID: p.RemoteID, Metadata: p.Metadata, EnvironmentVariables: p.EnvironmentVariables,
		ExporterPlugin: p.ExporterPlugin, RequestedAt: p.RequestedAt,
	})
	if err != nil {
		return model.JobID{}, err
	}
	job.ID = model.JobID{UUID: id}
	tx.hint(model.TopicCompileQueued, job.Environment, job.ID.String())
	return job.ID, nil
}

// RequestCompile queues a job with the id given; zero ids and times are filled in. A job of that id that is already there is
// left as it is. [model.ErrNotFound]: no such environment.
func (s *Store) RequestCompile(ctx context.Context, job model.CompileJob) error {
	if job.ID.UUID == uuid.Nil {
		job.ID.UUID = newID()
	}
	if job.RequestedAt.IsZero() {
		job.RequestedAt = s.now()
	}
	return s.InTx(ctx, func(tx *Tx) error {
		if err := mustExist(ctx, tx.Queries, job.Environment); err != nil {
			return err
		}
		return tx.queue(ctx, job)
	})
}

// RecordRevision stores the newest revision of an environment and, in the same transaction, queues an exporting compile of
// it if it differs from the one stored before, or force is set. A job that waits already takes the revision instead.
// Nothing is queued when the environment's setting server_compile is off. [model.ErrNotFound]: no such environment.
func (s *Store) RecordRevision(ctx context.Context, env model.EnvironmentID, rev model.Revision, reason string, trace model.TraceID, force bool) (job model.JobID, queued bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		job, queued = model.JobID{}, false
		row, err := tx.LockEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		e, err := environmentOf(row)
		if err != nil {
			return err
		}
		if !force && e.Revision.Commit == rev.Commit && e.Revision.Ref == rev.Ref {
			return nil
		}
		if err := tx.SetEnvironmentRevision(ctx, sqlgen.SetEnvironmentRevisionParams{
			RevisionRef: text(rev.Ref), RevisionCommit: text(rev.Commit), RevisionAuthor: text(rev.Author), RevisionMessage: text(rev.Message),
			RevisionCommittedAt: timeOrNil(rev.CommittedAt), ID: env.UUID,
		}); err != nil {
			return err
		}
		tx.hint(model.TopicEnvironment, env, "")
		if !model.ParseSettings(e.Settings).ServerCompile {
			return nil
		}
		job, err = tx.follow(ctx, model.CompileJob{
			ID: model.JobID{UUID: newID()}, Environment: env, Revision: rev, Reason: reason, Trace: trace, Export: true, RequestedAt: s.now(),
		})
		queued = err == nil
		return err
	})
	return job, queued, err
}

func jobOf(c sqlgen.Compile) (model.CompileJob, error) {
	job := model.CompileJob{
		ID: model.JobID{UUID: c.ID}, Environment: model.EnvironmentID{UUID: c.Environment},
		Revision: model.Revision{
			Repository: model.RepositoryName(c.RevisionRepository), Ref: c.RevisionRef, Commit: c.RevisionCommit, Author: c.RevisionAuthor,
			Message: c.RevisionMessage, CommittedAt: timeOf(c.RevisionCommittedAt),
		},
		Reason: c.Reason, Actor: c.Actor, Trace: model.TraceID(c.Trace), Export: c.Export, Update: c.UpdateModules, RemoteID: c.RemoteID,
		ExporterPlugin: c.ExporterPlugin, RequestedAt: c.RequestedAt.UTC(), StartedAt: timeOf(c.StartedAt), Attempt: int(c.Attempt),
	}
	if err := decode(c.Metadata, &job.Metadata, "the metadata of compile "+c.ID.String()); err != nil {
		return model.CompileJob{}, err
	}
	if err := decode(c.EnvironmentVariables, &job.EnvironmentVariables, "the variables of compile "+c.ID.String()); err != nil {
		return model.CompileJob{}, err
	}
	return job, nil
}

// ClaimCompileJob takes the job that is to run next: one whose worker died, or else the oldest whose environment has no
// running one and is not halted and whose backoff has passed. Waiting jobs of the environment that ask for the same are merged
// into it; it then compiles the newest revision asked for, and updates modules if any of them asks for it. It is nil when
// there is none. The claim ends at now+lease unless it is extended; a job is claimed at most [MaxCompileAttempts] times.
func (s *Store) ClaimCompileJob(ctx context.Context, worker string, now time.Time, lease time.Duration) (*model.CompileJob, error) {
	if worker == "" {
		return nil, fmt.Errorf("claiming a compile job: the worker has no name: %w", model.ErrInvalid)
	}
	var job *model.CompileJob
	for {
		err := s.InTx(ctx, func(tx *Tx) error {
			job = nil
			if err := tx.giveUpCompiles(ctx, now); err != nil {
				return err
			}
			c, err := tx.NextCompile(ctx, now)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			job, err = tx.startCompile(ctx, c, worker, now, lease)
			return err
		})
		if violates(err, "compile_one_running") {
			// Another worker took a job of the environment between the look and the claim; look again.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("claiming a compile job: %w", err)
		}
		return job, nil
	}
}

// giveUpCompiles ends the jobs that are not to be tried again.
func (tx *Tx) giveUpCompiles(ctx context.Context, now time.Time) error {
	rows, err := tx.AbandonedCompiles(ctx, now, MaxCompileAttempts)
	if err != nil {
		return err
	}
	for _, c := range rows {
		report := model.CompileReport{Status: model.CompileFailed, FinishedAt: now, Error: fmt.Sprintf(
			"given up after %d attempts: the worker died each time (out of memory, or killed); the last stage tells how far it came", c.Attempt)}
		if c.CancelRequested {
			report.Status, report.Error = model.CompileCancelled, "cancelled; the worker died before it could answer"
		}
		if err := tx.endCompile(ctx, c, report); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) startCompile(ctx context.Context, c sqlgen.Compile, worker string, now time.Time, lease time.Duration) (*model.CompileJob, error) {
	if c.Status == string(model.CompileQueued) {
		equal, err := tx.EqualQueuedCompiles(ctx, c.Environment, c.MergeKey, c.ID)
		if err != nil {
			return nil, err
		}
		ids := make([]uuid.UUID, len(equal))
		for i, other := range equal {
			ids[i] = other.ID
			c.UpdateModules = c.UpdateModules || other.UpdateModules
			if c.RevisionCommit == "" {
				continue // already the newest of the branch
			}
			c.RevisionRepository, c.RevisionRef, c.RevisionCommit = other.RevisionRepository, other.RevisionRef, other.RevisionCommit
			c.RevisionAuthor, c.RevisionMessage, c.RevisionCommittedAt = other.RevisionAuthor, other.RevisionMessage, other.RevisionCommittedAt
		}
		if len(ids) > 0 {
			if err := tx.MergeCompiles(ctx, c.ID, now, ids); err != nil {
				return nil, err
			}
		}
	} else if err := tx.DeleteCompileStages(ctx, c.ID); err != nil {
		return nil, err
	}
	started, err := tx.StartCompile(ctx, sqlgen.StartCompileParams{
		Worker: worker, Now: now, LeaseUntil: now.Add(lease), UpdateModules: c.UpdateModules, RevisionRepository: c.RevisionRepository,
		RevisionRef: c.RevisionRef, RevisionCommit: c.RevisionCommit, RevisionAuthor: c.RevisionAuthor, RevisionMessage: c.RevisionMessage,
		RevisionCommittedAt: c.RevisionCommittedAt, ID: c.ID,
	})
	if err != nil {
		return nil, err
	}
	job, err := jobOf(started)
	if err != nil {
		return nil, err
	}
	tx.hint(model.TopicCompileChanged, job.Environment, job.ID.String())
	return &job, nil
}

// ExtendCompileJob prolongs a claim and reports whether somebody asked to cancel the job. It returns [model.ErrFenced] when
// the worker no longer holds it.
func (s *Store) ExtendCompileJob(ctx context.Context, id model.JobID, worker string, now time.Time, lease time.Duration) (cancel bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		cancel, err = tx.ExtendCompile(ctx, now.Add(lease), id.UUID, worker)
		if errors.Is(err, pgx.ErrNoRows) {
			return lostJob(id, worker)
		}
		return err
	})
	return cancel, err
}

func lostJob(id model.JobID, worker string) error {
	return fmt.Errorf("compile %s is not held by worker %s: %w", id, worker, model.ErrFenced)
}

// SetCompileRevision records which commit is being compiled, or fails with [model.ErrFenced].
func (s *Store) SetCompileRevision(ctx context.Context, id model.JobID, worker string, rev model.Revision) error {
	return s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.Queries.SetCompileRevision(ctx, sqlgen.SetCompileRevisionParams{
			RevisionRepository: string(rev.Repository), RevisionRef: text(rev.Ref), RevisionCommit: text(rev.Commit),
			RevisionAuthor: text(rev.Author), RevisionMessage: text(rev.Message), RevisionCommittedAt: timeOrNil(rev.CommittedAt),
			ID: id.UUID, Worker: worker,
		})
		if err == nil && n == 0 {
			return lostJob(id, worker)
		}
		return err
	})
}

// SaveCompileStage inserts or replaces a stage by its ordinal, or fails with [model.ErrFenced].
func (s *Store) SaveCompileStage(ctx context.Context, id model.JobID, worker string, stage model.CompileStage) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.saveStage(ctx, id, worker, stage); err != nil {
			return err
		}
		env, err := tx.EnvironmentOfCompile(ctx, id.UUID)
		if err != nil {
			return err
		}
		tx.hint(model.TopicCompileChanged, model.EnvironmentID{UUID: env}, id.String())
		return nil
	})
}

func (tx *Tx) saveStage(ctx context.Context, id model.JobID, worker string, stage model.CompileStage) error {
	var exit *int32
	if stage.ExitCode != nil {
		code := int32Of(*stage.ExitCode)
		exit = &code
	}
	n, err := tx.Queries.SaveCompileStage(ctx, sqlgen.SaveCompileStageParams{
		Ordinal: int32Of(stage.Ordinal), Name: text(stage.Name), Command: text(stage.Command), StartedAt: timeOrNil(stage.StartedAt),
		FinishedAt: timeOrNil(stage.FinishedAt), Stdout: text(stage.Stdout), Stderr: text(stage.Stderr), ExitCode: exit, Compile: id.UUID, Worker: worker,
	})
	if err == nil && n == 0 {
		return lostJob(id, worker)
	}
	return err
}

// FinishCompileJob ends a job in one transaction: the report, and if there is a state and the job exports, the version with all
// its intents, released when the environment's auto_deploy says so. It returns the version's number, 0 if none. A second
// call by the same worker changes nothing and returns the same number. [model.ErrFenced]: the worker no longer holds the
// job; [model.ErrInvalid]: the state contradicts itself (see [Store.StoreVersion]), the job goes on.
func (s *Store) FinishCompileJob(ctx context.Context, worker string, outcome model.CompileOutcome, now time.Time) (version int, err error) {
	report, id := outcome.Report, outcome.Report.Job.ID
	switch report.Status {
	case model.CompileSucceeded, model.CompileFailed, model.CompileCancelled:
	default:
		return 0, fmt.Errorf("finishing compile %s as %q: %w", id, report.Status, model.ErrInvalid)
	}
	if report.FinishedAt.IsZero() {
		report.FinishedAt = now
	}
	err = s.InTx(ctx, func(tx *Tx) error {
		version = 0
		env, err := tx.EnvironmentOfCompile(ctx, id.UUID)
		if err != nil {
			return notFound(err, "compile %s", id)
		}
		row, err := tx.LockEnvironment(ctx, env)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		c, err := tx.LockCompile(ctx, id.UUID)
		if err != nil {
			return notFound(err, "compile %s", id)
		}
		switch {
		case c.Worker != worker:
			return lostJob(id, worker)
		case c.FinishedAt != nil:
			version = int(c.Version)
			return nil
		case c.Status != string(model.CompileRunning):
			return lostJob(id, worker)
		}
		for _, stage := range report.Stages {
			if err := tx.saveStage(ctx, id, worker, stage); err != nil {
				return err
			}
		}
		if outcome.State != nil && c.Export && report.Status == model.CompileSucceeded {
			if version, err = s.storeCompiled(ctx, tx, row, c, *outcome.State, now); err != nil {
				return err
			}
		}
		report.Version = version
		return tx.endCompile(ctx, c, report)
	})
	if err != nil {
		return 0, fmt.Errorf("finishing compile %s: %w", id, err)
	}
	return version, nil
}

// storeCompiled makes a version of what a job has compiled.
func (s *Store) storeCompiled(ctx context.Context, tx *Tx, row sqlgen.Environment, c sqlgen.Compile, state model.DesiredState, now time.Time) (int, error) {
	e, err := environmentOf(row)
	if err != nil {
		return 0, err
	}
	job, err := jobOf(c)
	if err != nil {
		return 0, err
	}
	state.Environment, state.Job, state.Number = job.Environment, job.ID, 0
	if state.Revision.Commit == "" {
		state.Revision = job.Revision
	}
	if state.Trace == "" {
		state.Trace = job.Trace
	}
	return s.storeVersion(ctx, tx, e, state, model.ParseSettings(e.Settings).AutoDeploy, now)
}

// storedDiagnostic is a diagnostic in its own form, whatever JSON form package diag gives to others.
type storedDiagnostic diag.Diagnostic

// endCompile writes the end of a job, of those merged into it, and tells people about failures of exporting ones.
func (tx *Tx) endCompile(ctx context.Context, c sqlgen.Compile, report model.CompileReport) error {
	diagnostics := make([]storedDiagnostic, len(report.Diagnostics))
	for i, d := range report.Diagnostics {
		diagnostics[i] = storedDiagnostic(d)
	}
	rawDiagnostics, err := encode(diagnostics, "[]")
	if err != nil {
		return err
	}
	excerpts, err := encode(report.Excerpts, "{}")
	if err != nil {
		return err
	}
	if err := tx.FinishCompile(ctx, sqlgen.FinishCompileParams{
		Status: string(report.Status), FinishedAt: &report.FinishedAt, Diagnostics: rawDiagnostics, Excerpts: excerpts,
		Version: int32Of(report.Version), Digest: text(report.Digest), Error: text(report.Error), PeakMemory: report.PeakMemory,
		CpuTime: int64(report.CPUTime), ID: c.ID,
	}); err != nil {
		return err
	}
	if err := tx.FinishMergedCompiles(ctx, &report.FinishedAt, int32Of(report.Version), c.ID); err != nil {
		return err
	}
	if err := tx.SetLastCompile(ctx, report.FinishedAt, c.Environment); err != nil {
		return err
	}
	env := model.EnvironmentID{UUID: c.Environment}
	tx.hint(model.TopicCompileChanged, env, c.ID.String())
	// The next job of the environment may run now.
	tx.hint(model.TopicCompileQueued, env, "")
	if report.Status != model.CompileFailed || !c.Export {
		return nil
	}
	return tx.notify(ctx, model.Notification{
		ID: model.NotificationID{UUID: newID()}, Environment: env, CreatedAt: report.FinishedAt, Title: "Compilation failed",
		Message: "An exporting compile has failed", Severity: model.SeverityError, URI: "/api/v2/compilereport/" + c.ID.String(),
		Job: model.JobID{UUID: c.ID},
	})
}

// notify stores a notification for the users of an environment.
func (tx *Tx) notify(ctx context.Context, n model.Notification) error {
	err := tx.InsertNotification(ctx, sqlgen.InsertNotificationParams{
		ID: n.ID.UUID, Environment: n.Environment.UUID, CreatedAt: n.CreatedAt, Title: text(n.Title), Message: text(n.Message),
		Severity: string(n.Severity), Uri: text(n.URI), Job: uuidOrNil(n.Job.UUID),
	})
	if err == nil {
		tx.hint(model.TopicNotification, n.Environment, n.ID.String())
	}
	return err
}

// CancelCompile ends a queued job at once and asks the worker of a running one to stop. [model.ErrNotFound];
// [model.ErrConflict]: it has already ended, or another job does its work.
func (s *Store) CancelCompile(ctx context.Context, env model.EnvironmentID, id model.JobID, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		c, err := tx.LockCompile(ctx, id.UUID)
		if err == nil && c.Environment != env.UUID {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return notFound(err, "compile %s in environment %s", id, env)
		}
		switch model.CompileStatus(c.Status) {
		case model.CompileQueued:
			_, err = tx.CancelQueuedCompile(ctx, now, id.UUID)
		case model.CompileRunning:
			_, err = tx.RequestCompileCancel(ctx, id.UUID)
			tx.hint(model.TopicCompileCancel, env, id.String())
		default:
			return fmt.Errorf("compile %s is already %s: %w", id, c.Status, model.ErrConflict)
		}
		tx.hint(model.TopicCompileChanged, env, id.String())
		return err
	})
}

// CompileInputs returns what a compile may read: facts by "<resource id>/<name>", parameters by name, settings as text, and
// the seed that makes generated values the same in every compile of the environment.
func (s *Store) CompileInputs(ctx context.Context, env model.EnvironmentID) (model.CompileInputs, error) {
	in := model.CompileInputs{Facts: map[string]string{}, Parameters: map[string]string{}, Settings: map[string]string{}}
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		row, err := tx.GetEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		e, err := environmentOf(row)
		if err != nil {
			return err
		}
		in.Seed = row.Seed.String()
		for name := range e.Settings {
			in.Settings[name] = settingText(e.Settings[name])
		}
		params, err := tx.CompileParameters(ctx, env.UUID)
		if err != nil {
			return err
		}
		for _, p := range params {
			if p.ResourceID == "" {
				in.Parameters[p.Name] = p.Value
			} else {
				in.Facts[p.ResourceID+"/"+p.Name] = p.Value
			}
		}
		return nil
	})
	return in, err
}

// settingText is the text of a setting: that of a string, or the JSON of anything else.
func settingText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// PurgeCompileReports deletes reports of environments that are not halted which ended before a time, and returns how many.
func (s *Store) PurgeCompileReports(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		n, err = tx.Queries.PurgeCompileReports(ctx, before)
		return err
	})
	return n, err
}

func reportOf(c sqlgen.Compile) (model.CompileReport, error) {
	job, err := jobOf(c)
	if err != nil {
		return model.CompileReport{}, err
	}
	return model.CompileReport{
		Job: job, Status: model.CompileStatus(c.Status), SubstituteID: model.JobID{UUID: uuidOf(c.Substitute)}, FinishedAt: timeOf(c.FinishedAt),
		Version: int(c.Version), Digest: c.Digest, Error: c.Error, PeakMemory: c.PeakMemory, CPUTime: time.Duration(c.CpuTime),
	}, nil
}

// CompileReport returns one report with everything, or [model.ErrNotFound]. The environment may be the zero id: any. What a
// merged job did is in the report of its substitute, whose stages and diagnostics it has too.
func (s *Store) CompileReport(ctx context.Context, env model.EnvironmentID, id model.JobID) (model.CompileReport, error) {
	var out model.CompileReport
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		c, err := tx.GetCompile(ctx, id.UUID)
		if err == nil && env.UUID != uuid.Nil && c.Environment != env.UUID {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return notFound(err, "compile %s", id)
		}
		if out, err = reportOf(c); err != nil {
			return err
		}
		work := c
		if c.Substitute != nil {
			if work, err = tx.GetCompile(ctx, *c.Substitute); err != nil {
				return err
			}
			out.Digest, out.Error, out.PeakMemory, out.CPUTime = work.Digest, work.Error, work.PeakMemory, time.Duration(work.CpuTime)
		}
		var diagnostics []storedDiagnostic
		if err := decode(work.Diagnostics, &diagnostics, "the diagnostics of compile "+id.String()); err != nil {
			return err
		}
		for _, d := range diagnostics {
			out.Diagnostics = append(out.Diagnostics, diag.Diagnostic(d))
		}
		if err := decode(work.Excerpts, &out.Excerpts, "the excerpts of compile "+id.String()); err != nil {
			return err
		}
		stages, err := tx.GetCompileStages(ctx, work.ID)
		if err != nil {
			return err
		}
		for _, st := range stages {
			stage := model.CompileStage{
				Ordinal: int(st.Ordinal), Name: st.Name, Command: st.Command, StartedAt: timeOf(st.StartedAt), FinishedAt: timeOf(st.FinishedAt),
				Stdout: st.Stdout, Stderr: st.Stderr,
			}
			if st.ExitCode != nil {
				code := int(*st.ExitCode)
				stage.ExitCode = &code
			}
			out.Stages = append(out.Stages, stage)
		}
		return nil
	})
	return out, err
}

// CompileQueue lists the running and queued jobs of an environment, running first, then by the time of the request.
func (s *Store) CompileQueue(ctx context.Context, env model.EnvironmentID) ([]model.CompileReport, error) {
	rows, err := s.read().OpenCompiles(ctx, env.UUID)
	if err != nil {
		return nil, classify(err)
	}
	out := make([]model.CompileReport, len(rows))
	for i, c := range rows {
		if out[i], err = reportOf(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Compiling lists the environments that have a running job.
func (s *Store) Compiling(ctx context.Context) ([]model.EnvironmentID, error) {
	rows, err := s.read().CompilingEnvironments(ctx)
	if err != nil {
		return nil, classify(err)
	}
	return environmentIDs(rows), nil
}

func environmentIDs(ids []uuid.UUID) []model.EnvironmentID {
	out := make([]model.EnvironmentID, len(ids))
	for i, id := range ids {
		out[i] = model.EnvironmentID{UUID: id}
	}
	return out
}

// factJob is the compile that new facts ask for.
func factJob(env model.EnvironmentID, now time.Time, trace model.TraceID, facts []string) model.CompileJob {
	const shown = 3
	what := strings.Join(facts[:min(len(facts), shown)], ", ")
	if len(facts) > shown {
		what += fmt.Sprintf(" and %d more", len(facts)-shown)
	}
	return model.CompileJob{
		ID: model.JobID{UUID: newID()}, Environment: env, Reason: "facts became known: " + what, Trace: trace, Export: true, RequestedAt: now,
		Metadata: map[string]json.RawMessage{"type": json.RawMessage(`"fact"`)},
	}
}
