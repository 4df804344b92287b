package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// DeploySummary counts the resources of the newest released version by status.
func (s *Store) DeploySummary(ctx context.Context, env model.EnvironmentID) (model.DeploySummary, error) {
	return deploySummary(ctx, s.read(), env)
}

func deploySummary(ctx context.Context, q *sqlgen.Queries, env model.EnvironmentID) (model.DeploySummary, error) {
	rows, err := q.CountStatuses(ctx, env.UUID)
	if err != nil {
		return model.DeploySummary{}, classify(err)
	}
	out := model.DeploySummary{ByStatus: map[model.Status]int{}}
	for _, r := range rows {
		out.ByStatus[model.Status(r.Status)] = int(r.Resources)
		out.Total += int(r.Resources)
	}
	return out, nil
}

// Resource returns one resource, orphans included, or [model.ErrNotFound].
func (s *Store) Resource(ctx context.Context, env model.EnvironmentID, id model.ResourceID) (out model.ResourceDetails, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		out = model.ResourceDetails{}
		state, err := tx.GetState(ctx, env.UUID, string(id))
		if err != nil {
			return notFound(err, "resource %s in environment %s", id, env)
		}
		released, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		version := released
		if state.OrphanedAfter != 0 {
			version = state.OrphanedAfter
		}
		intent, err := tx.IntentOfVersion(ctx, env.UUID, string(id), version)
		if err != nil {
			return notFound(err, "resource %s in version %d of environment %s", id, version, env)
		}
		out.ResourceRow = resourceRow(sqlgen.ListStatesRow(state), intent.Requires, released)
		out.Attributes = intent.Attributes
		if out.FirstGenerated, err = tx.FirstGenerated(ctx, env.UUID, string(id)); err != nil && !isNoRows(err) {
			return err
		}
		out.FirstGenerated = out.FirstGenerated.UTC()
		if out.RequiresStatus, err = tx.statuses(ctx, env, intent.Requires); err != nil {
			return err
		}
		dependants, err := tx.Dependants(ctx, env.UUID, string(id), version)
		if err != nil {
			return err
		}
		out.ProvidesStatus, err = tx.statuses(ctx, env, dependants)
		return err
	})
	return out, err
}

func (tx *Tx) statuses(ctx context.Context, env model.EnvironmentID, ids []string) (map[model.ResourceID]model.Status, error) {
	out := map[model.ResourceID]model.Status{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := tx.StatusesOf(ctx, env.UUID, ids)
	for _, r := range rows {
		out[model.ResourceID(r.ResourceID)] = model.Status(r.Status)
	}
	return out, err
}

// ResourceHistory lists the distinct intents a resource had in released versions, one per run of equal hashes. Sort: date; id
// column attribute_hash.
func (s *Store) ResourceHistory(ctx context.Context, env model.EnvironmentID, id model.ResourceID, p model.Page) (model.List[model.HistoryEntry], error) {
	if p.Sort != "" && p.Sort != "date" {
		return model.List[model.HistoryEntry]{}, fmt.Errorf("the history of a resource can not be sorted by %q: %w", p.Sort, model.ErrInvalid)
	}
	rows, err := s.read().ReleasedIntervals(ctx, env.UUID, string(id))
	if err != nil {
		return model.List[model.HistoryEntry]{}, classify(err)
	}
	entries := make([]model.HistoryEntry, 0, len(rows))
	for _, r := range rows {
		if n := len(entries); n > 0 && entries[n-1].AttributeHash == r.AttributeHash {
			continue
		}
		entries = append(entries, model.HistoryEntry{
			Resource: id, Version: int(r.Number), Date: r.CreatedAt.UTC(), Attributes: r.Attributes, AttributeHash: r.AttributeHash,
			Requires: strs[model.ResourceID](r.Requires),
		})
	}
	return pageOf(entries, func(e model.HistoryEntry) (time.Time, string) { return e.Date, e.AttributeHash }, p)
}

// actionQuery reads actions; the conditions are added. See list.go for why it is put together while running.
const actionQuery = `SELECT a.id, a.environment, a.version, a.resource_id, a.kind, a.reason, a.started_at, a.finished_at, a.outcome, a.change, a.changes,
	a.trace, a.code, a.log FROM any_action a WHERE `

// logLines is the log of an action a, by line.
const logLines = `(SELECT t::json AS line, n FROM unnest(string_to_array(a.log, E'\n')) WITH ORDINALITY AS x (t, n)) l`

func actionFilter(env model.EnvironmentID, f model.ActionFilter) *filter {
	w := &filter{}
	w.and("a.environment = ?", env.UUID)
	if f.Resource != "" {
		onResource(w, f.Resource)
	}
	if f.Version != 0 {
		w.and("a.version = ?::integer", f.Version)
	}
	if f.Type != "" {
		w.and("split_part(a.resource_id, '[', 1) = ?", f.Type)
	}
	if f.Agent != "" {
		w.and("split_part(split_part(a.resource_id, '[', 2), ',', 1) = ?", string(f.Agent))
	}
	if f.Attribute != "" {
		w.and(`EXISTS (SELECT 1 FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
			WHERE i.environment = a.environment AND i.resource_id = a.resource_id AND i.from_version <= a.version AND i.until_version > a.version
				AND starts_with(b.attributes ->> ?::text, ?::text))`, f.Attribute, f.AttributeValue)
	}
	if f.Level != "" {
		w.and("EXISTS (SELECT 1 FROM "+logLines+" WHERE l.line ->> 'level' = ?)", string(f.Level))
	}
	if f.Kind != "" {
		w.and("a.kind = ?", string(f.Kind))
	}
	if len(f.ExcludeChanges) > 0 {
		w.and("a.change <> ALL(?::text[])", strs[string](f.ExcludeChanges))
	}
	if f.Trace != "" {
		w.and("a.trace = ?", string(f.Trace))
	}
	for _, b := range []struct {
		op string
		at time.Time
	}{{">", f.After}, {"<", f.Before}} {
		switch {
		case b.at.IsZero():
		case f.ID.UUID != uuid.Nil:
			w.and("(a.started_at, a.id) "+b.op+" (?::timestamptz, ?::uuid)", b.at, f.ID.UUID)
		default:
			w.and("a.started_at "+b.op+" ?::timestamptz", b.at)
		}
	}
	return w
}

// Actions lists actions with their messages and changes, newest start first, then by id descending.
func (s *Store) Actions(ctx context.Context, env model.EnvironmentID, f model.ActionFilter) ([]model.Action, error) {
	w := actionFilter(env, f)
	query := actionQuery + w.String() + " ORDER BY a.started_at DESC, a.id DESC"
	if f.Limit > 0 {
		query += " LIMIT " + w.arg(f.Limit)
	}
	out := []model.Action{}
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		rows, err := tx.Tx.Query(ctx, query, w.args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scanAction)
		return err
	})
	return out, err
}

func scanAction(row pgx.CollectableRow) (model.Action, error) {
	var (
		a        model.Action
		id, env  uuid.UUID
		finished *time.Time
		changes  []byte
		log      string
	)
	if err := row.Scan(&id, &env, &a.Version, &a.Resource, &a.Kind, &a.Reason, &a.StartedAt, &finished, &a.Outcome, &a.Change, &changes, &a.Trace,
		&a.Code, &log); err != nil {
		return model.Action{}, err
	}
	a.ID, a.Environment = model.TaskID{UUID: id}, model.EnvironmentID{UUID: env}
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC(), timeOf(finished)
	var err error
	if a.Log, err = decodeLog(log, "action "+id.String()); err != nil {
		return model.Action{}, err
	}
	return a, decode(changes, &a.Changes, "the changes of action "+id.String())
}

// Trace lists everything that carries a trace id, oldest first; empty when nothing does.
func (s *Store) Trace(ctx context.Context, trace model.TraceID) ([]model.TraceStep, error) {
	out := []model.TraceStep{}
	if trace == "" {
		return out, nil
	}
	rows, err := s.read().TraceSteps(ctx, text(string(trace)))
	if err != nil {
		return nil, classify(err)
	}
	for _, r := range rows {
		out = append(out, model.TraceStep{
			Kind: r.Kind, Environment: model.EnvironmentID{UUID: uuidOf(r.Environment)}, ID: r.ID, Resource: model.ResourceID(r.Resource),
			Text: r.Description, Status: r.Status, At: r.At.UTC(), EndedAt: timeOf(r.EndedAt),
		})
	}
	return out, nil
}

// Journeys lists the compile requests of an environment with what became of them, newest request first; merged jobs are left
// out. before, when not zero, keeps older requests only. limit 0 means all.
func (s *Store) Journeys(ctx context.Context, env model.EnvironmentID, before time.Time, limit int) ([]model.Journey, error) {
	if limit == 0 {
		limit = untilFurther
	}
	out := []model.Journey{}
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		rows, err := tx.ListJourneys(ctx, env.UUID, timeOrNil(before), int32Of(limit))
		if err != nil {
			return err
		}
		newest, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		processed, err := tx.GetProcessed(ctx, env.UUID)
		if err != nil {
			return err
		}
		summary, err := deploySummary(ctx, tx.Queries, env)
		if err != nil {
			return err
		}
		out = make([]model.Journey, len(rows))
		for i, r := range rows {
			out[i] = journeyOf(env, r, newest, processed, summary)
		}
		return nil
	})
	return out, err
}

func journeyOf(env model.EnvironmentID, r sqlgen.ListJourneysRow, newest, processed int32, summary model.DeploySummary) model.Journey {
	j := model.Journey{
		Environment: env,
		Revision: model.Revision{
			Repository: model.RepositoryName(r.RevisionRepository), Ref: r.RevisionRef, Commit: r.RevisionCommit, Author: r.RevisionAuthor,
			Message: r.RevisionMessage, CommittedAt: timeOf(r.RevisionCommittedAt),
		},
		Trace: model.TraceID(r.Trace), Reason: r.Reason, ReceivedAt: r.ReceivedAt.UTC(), RequestedAt: r.RequestedAt.UTC(),
		Job: model.JobID{UUID: r.ID}, Compile: model.CompileStatus(r.Status), StartedAt: timeOf(r.StartedAt), FinishedAt: timeOf(r.FinishedAt),
		Version: int(r.Version), StoredAt: timeOf(r.StoredAt), ReleasedAt: timeOf(r.ReleasedAt), FirstDeployAt: r.FirstAt.UTC(),
		LastDeployAt: r.LastAt.UTC(), ConvergedAt: timeOf(r.ConvergedAt), Error: r.Error,
	}
	switch j.Compile {
	case model.CompileQueued:
		j.Phase = model.JourneyPushed
	case model.CompileRunning:
		j.Phase = model.JourneyCompiling
	case model.CompileFailed, model.CompileCancelled:
		j.Phase = model.JourneyFailed
	case model.CompileSucceeded, model.CompileMerged:
		followVersion(&j, r.Version, newest, processed, summary)
	}
	return j
}

// followVersion fills in what became of the version that a compile made.
func followVersion(j *model.Journey, version, newest, processed int32, summary model.DeploySummary) {
	switch {
	case version == 0:
		// A compile that was only to check has arrived.
		j.Phase, j.ConvergedAt = model.JourneyConverged, j.FinishedAt
		return
	case version > newest:
		j.Phase = model.JourneyCandidate
		return
	case version < newest:
		j.Phase = model.JourneySuperseded
		if !j.ConvergedAt.IsZero() {
			j.Phase = model.JourneyConverged
		}
		return
	}
	for status, n := range summary.ByStatus {
		switch status {
		case model.StatusDeployed:
			j.Deployed += n
		case model.StatusFailed, model.StatusSkipped, model.StatusUnavailable, model.StatusNonCompliant:
			j.Failed += n
		case model.StatusUndefined, model.StatusSkippedForUndefined:
			j.Blocked += n
		case model.StatusAvailable, model.StatusDeploying, model.StatusOrphaned:
			j.Waiting += n
		}
	}
	if processed < newest {
		// What failed did so before this version, with which the scheduler is about to try it again.
		j.Waiting, j.Failed = j.Waiting+j.Failed, 0
	}
	j.Total = summary.Total
	j.Phase = model.JourneyDeploying
	if j.Waiting+j.Failed == 0 {
		j.Phase = model.JourneyConverged
		if j.ConvergedAt.IsZero() {
			j.ConvergedAt = j.LastDeployAt
		}
		if j.ConvergedAt.IsZero() {
			j.ConvergedAt = j.ReleasedAt // nothing had to be done
		}
	}
}

// DatabaseStatus tells how the database is, or fails with [model.ErrUnavailable] when it does not answer.
func (s *Store) DatabaseStatus(ctx context.Context) (model.DatabaseStatus, error) {
	cfg, stat := s.pool.Config(), s.pool.Stat()
	out := model.DatabaseStatus{
		Database: cfg.ConnConfig.Database, Host: cfg.ConnConfig.Host, MaxPool: int(stat.MaxConns()), OpenPool: int(stat.TotalConns()),
		FreePool: int(stat.IdleConns()),
	}
	if err := s.pool.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&out.Version); err != nil {
		return out, fmt.Errorf("asking the database for its version: %w: %w", err, model.ErrUnavailable)
	}
	out.Connected = true
	return out, nil
}
