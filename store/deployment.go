package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// AcquireLeases takes or prolongs the ownership of environments in one statement and returns the leases that the owner holds
// afterwards; environments owned by others, or gone, are left out. The token grows whenever the owner changes.
func (s *Store) AcquireLeases(ctx context.Context, envs []model.EnvironmentID, owner string, now time.Time, ttl time.Duration) ([]model.Lease, error) {
	if owner == "" {
		return nil, fmt.Errorf("leasing environments: the owner has no name: %w", model.ErrInvalid)
	}
	expires := now.Add(ttl)
	var out []model.Lease
	err := s.InTx(ctx, func(tx *Tx) error {
		rows, err := tx.Queries.AcquireLeases(ctx, sqlgen.AcquireLeasesParams{Owner: owner, ExpiresAt: expires, Environments: uuids(envs), Now: now})
		if err != nil {
			return err
		}
		out = make([]model.Lease, len(rows))
		for i, r := range rows {
			out[i] = model.Lease{Environment: model.EnvironmentID{UUID: r.Environment}, Owner: owner, Token: r.Token, ExpiresAt: expires}
		}
		return nil
	})
	return out, err
}

func uuids(envs []model.EnvironmentID) []uuid.UUID {
	out := make([]uuid.UUID, len(envs))
	for i, e := range envs {
		out[i] = e.UUID
	}
	return out
}

// SchedulerNews reads what may have changed in many environments, in one consistent view; those that are gone are left out.
func (s *Store) SchedulerNews(ctx context.Context, envs []model.EnvironmentID) ([]model.SchedulerNews, error) {
	var out []model.SchedulerNews
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		rows, err := tx.EnvironmentNews(ctx, uuids(envs))
		if err != nil {
			return err
		}
		out = make([]model.SchedulerNews, len(rows))
		place := make(map[uuid.UUID]*model.SchedulerNews, len(rows))
		for i, r := range rows {
			settings := map[string]json.RawMessage{}
			if err := decode(r.Settings, &settings, "the settings of environment "+r.ID.String()); err != nil {
				return err
			}
			out[i] = model.SchedulerNews{
				Environment: model.EnvironmentID{UUID: r.ID}, Released: int(r.Released), Halted: r.Halted, Settings: model.ParseSettings(settings),
				Paused: map[model.AgentName]bool{},
			}
			place[r.ID] = &out[i]
		}
		paused, err := tx.PausedAgentsOf(ctx, uuids(envs))
		if err != nil {
			return err
		}
		for _, a := range paused {
			place[a.Environment].Paused[model.AgentName(a.Name)] = true
		}
		commands, err := tx.PendingCommandsOf(ctx, uuids(envs))
		if err != nil {
			return err
		}
		for _, c := range commands {
			news := place[c.Environment]
			news.Commands = append(news.Commands, commandOf(c))
		}
		return nil
	})
	return out, err
}

// ReleaseLease gives an environment up at once. Nothing happens when somebody else has it already.
func (s *Store) ReleaseLease(ctx context.Context, lease model.Lease) error {
	return s.InTx(ctx, func(tx *Tx) error {
		_, err := tx.Queries.ReleaseLease(ctx, lease.Environment.UUID, lease.Token, lease.Owner)
		if err == nil {
			tx.hint(model.TopicEnvironment, lease.Environment, "")
		}
		return err
	})
}

// SchedulableEnvironments lists the environments that have a version, released or not, and are not halted.
func (s *Store) SchedulableEnvironments(ctx context.Context) ([]model.EnvironmentID, error) {
	ids, err := s.read().SchedulableEnvironments(ctx)
	if err != nil {
		return nil, classify(err)
	}
	return environmentIDs(ids), nil
}

// Snapshot reads everything that a scheduler starts from, in one consistent view, or fails with [model.ErrNotFound].
func (s *Store) Snapshot(ctx context.Context, env model.EnvironmentID) (snap model.Snapshot, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		snap = model.Snapshot{}
		row, err := tx.GetEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		if snap.Environment, err = environmentOf(row); err != nil {
			return err
		}
		snap.Settings = model.ParseSettings(snap.Environment.Settings)
		version, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		snap.Version = int(version)
		if version > 0 {
			if snap.Intents, err = tx.intents(ctx, env, snap.Version); err != nil {
				return err
			}
		}
		processed, err := tx.GetProcessed(ctx, env.UUID)
		if err != nil {
			return err
		}
		snap.Processed = int(processed)
		states, err := tx.ListStates(ctx, env.UUID)
		if err != nil {
			return err
		}
		snap.States = make([]model.ResourceState, len(states))
		for i, r := range states {
			snap.States[i] = stateOf(r)
		}
		if snap.Paused, err = pausedAgents(ctx, tx.Queries, row); err != nil {
			return err
		}
		snap.Running, err = tx.running(ctx, env)
		return err
	})
	return snap, err
}

// running reads the actions that were started and have neither a result nor been abandoned, oldest first.
func (tx *Tx) running(ctx context.Context, env model.EnvironmentID) ([]model.Action, error) {
	rows, err := tx.RunningActions(ctx, env.UUID)
	if err != nil {
		return nil, err
	}
	out := make([]model.Action, len(rows))
	for i, r := range rows {
		out[i] = model.Action{
			ID: model.TaskID{UUID: r.ID}, Environment: env, Version: int(r.Version), Resource: model.ResourceID(r.ResourceID),
			Kind: model.ActionKind(r.Kind), Reason: r.Reason, StartedAt: r.StartedAt.UTC(), Trace: model.TraceID(r.Trace),
		}
	}
	return out, nil
}

func stateOf(r sqlgen.ListStatesRow) model.ResourceState {
	return model.ResourceState{
		Resource: model.ResourceID(r.ResourceID), Compliance: model.Compliance(r.Compliance), LastRun: model.LastRun(r.LastRun),
		Blocked: model.Blocked(r.Blocked), Deploying: r.Deploying, IntentHash: r.IntentHash, DeployedHash: r.DeployedHash,
		DeployedVersion: int(r.DeployedVersion), LastOutcome: model.Outcome(r.LastOutcome), LastRunAt: timeOf(r.LastRunAt),
		LastSuccess: timeOf(r.LastSuccess), LastProducedEvents: timeOf(r.LastProducedEvents), OrphanedAfter: int(r.OrphanedAfter),
		Failures: int(r.Failures),
	}
}

// pausedAgents tells which agents are paused. Those of a halted environment all are: halting pauses them, and agents that
// appear while it is halted get their pause here.
func pausedAgents(ctx context.Context, q *sqlgen.Queries, e sqlgen.Environment) (map[model.AgentName]bool, error) {
	names, err := q.PausedAgents(ctx, e.ID, e.Halted)
	if err != nil {
		return nil, err
	}
	out := make(map[model.AgentName]bool, len(names))
	for _, n := range names {
		out[model.AgentName(n)] = true
	}
	return out, nil
}

// PendingCommands lists commands that were not finished, oldest first.
func (s *Store) PendingCommands(ctx context.Context, env model.EnvironmentID) ([]model.Command, error) {
	rows, err := s.read().PendingCommands(ctx, env.UUID)
	if err != nil {
		return nil, classify(err)
	}
	out := make([]model.Command, len(rows))
	for i, r := range rows {
		out[i] = commandOf(r)
	}
	return out, nil
}

func commandOf(r sqlgen.Command) model.Command {
	return model.Command{
		ID: model.CommandID{UUID: r.ID}, Environment: model.EnvironmentID{UUID: r.Environment}, Kind: model.CommandKind(r.Kind),
		Agents: strs[model.AgentName](r.Agents), Resources: strs[model.ResourceID](r.Resources), Version: int(r.Version),
		DryRun: model.DryRunID{UUID: uuidOf(r.Dryrun)}, Reason: r.Reason, Actor: r.Actor, Trace: model.TraceID(r.Trace), CreatedAt: r.CreatedAt.UTC(),
	}
}

// EnqueueCommand stores a command with the id given. A command of that id that is already there is left as it is.
// [model.ErrNotFound]: no such environment.
func (s *Store) EnqueueCommand(ctx context.Context, c model.Command) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := mustExist(ctx, tx.Queries, c.Environment); err != nil {
			return err
		}
		return tx.enqueue(ctx, c)
	})
}

func (tx *Tx) enqueue(ctx context.Context, c model.Command) error {
	n, err := tx.InsertCommand(ctx, sqlgen.InsertCommandParams{
		ID: c.ID.UUID, Environment: c.Environment.UUID, Kind: string(c.Kind), Agents: strs[string](c.Agents), Resources: strs[string](c.Resources),
		Version: int32Of(c.Version), Dryrun: uuidOrNil(c.DryRun.UUID), Reason: text(c.Reason), Actor: text(c.Actor), Trace: text(string(c.Trace)),
		CreatedAt: c.CreatedAt,
	})
	if err == nil && n > 0 {
		tx.hint(model.TopicCommand, c.Environment, c.ID.String())
	}
	return err
}

// SaveDryRunResults stores what a dry run found, under the lease; a resource counts once. [model.ErrFenced]; [model.ErrNotFound].
func (s *Store) SaveDryRunResults(ctx context.Context, lease model.Lease, dryRun model.DryRunID, results []model.DryRunResult) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.pipe(ctx, func(q *pipeline) error { return q.fence(ctx, lease) }); err != nil {
			return err
		}
		if _, err := tx.LockDryRun(ctx, dryRun.UUID, lease.Environment.UUID); err != nil {
			return notFound(err, "dry run %s", dryRun)
		}
		p := sqlgen.InsertDryRunResultsParams{Dryrun: dryRun.UUID}
		for _, r := range results {
			changes, err := encode(r.Changes, "{}")
			if err != nil {
				return err
			}
			p.Resources = append(p.Resources, string(r.Resource))
			p.Statuses = append(p.Statuses, string(r.Status))
			p.Changes = append(p.Changes, string(changes))
			p.Messages = append(p.Messages, text(r.Message))
		}
		n, err := tx.InsertDryRunResults(ctx, p)
		if err != nil {
			return err
		}
		tx.hint(model.TopicDryRun, lease.Environment, dryRun.String())
		return tx.CountDownDryRun(ctx, int32Of(int(n)), dryRun.UUID)
	})
}

// CreateDryRun stores a dry run of a version (command.Version, command.DryRun) and its command in one transaction.
// [model.ErrNotFound]: no such version; [model.ErrConflict]: the environment is halted.
func (s *Store) CreateDryRun(ctx context.Context, command model.Command) (model.DryRun, error) {
	var out model.DryRun
	err := s.InTx(ctx, func(tx *Tx) error {
		e, err := tx.LockEnvironment(ctx, command.Environment.UUID)
		if err != nil {
			return notFound(err, "environment %s", command.Environment)
		}
		v, err := tx.GetVersion(ctx, e.ID, int32Of(command.Version))
		if err != nil {
			return notFound(err, "version %d of environment %s", command.Version, command.Environment)
		}
		if e.Halted {
			return fmt.Errorf("environment %s is halted; resume it first: %w", command.Environment, model.ErrConflict)
		}
		if err := tx.InsertDryRun(ctx, sqlgen.InsertDryRunParams{
			ID: command.DryRun.UUID, Environment: e.ID, Version: v.Number, CreatedAt: command.CreatedAt, Total: v.Resources,
		}); err != nil {
			return conflict(err, "dry run %s exists already", command.DryRun)
		}
		out = model.DryRun{
			ID: command.DryRun, Environment: command.Environment, Version: command.Version, Date: command.CreatedAt.UTC(),
			Total: int(v.Resources), Todo: int(v.Resources),
		}
		tx.hint(model.TopicDryRun, command.Environment, command.DryRun.String())
		return tx.enqueue(ctx, command)
	})
	return out, err
}

func dryRunOf(r sqlgen.Dryrun) model.DryRun {
	return model.DryRun{
		ID: model.DryRunID{UUID: r.ID}, Environment: model.EnvironmentID{UUID: r.Environment}, Version: int(r.Version), Date: r.CreatedAt.UTC(),
		Total: int(r.Total), Todo: int(r.Todo),
	}
}

// DryRuns lists dry runs, newest first; of all versions when version is 0.
func (s *Store) DryRuns(ctx context.Context, env model.EnvironmentID, version int) ([]model.DryRun, error) {
	rows, err := s.read().ListDryRuns(ctx, env.UUID, int32Of(version))
	if err != nil {
		return nil, classify(err)
	}
	out := make([]model.DryRun, len(rows))
	for i, r := range rows {
		out[i] = dryRunOf(r)
	}
	return out, nil
}

// DryRunReport returns a dry run and what it has found so far, by resource id, or [model.ErrNotFound].
func (s *Store) DryRunReport(ctx context.Context, env model.EnvironmentID, id model.DryRunID) (model.DryRun, []model.DryRunResult, error) {
	var (
		run     model.DryRun
		results []model.DryRunResult
	)
	err := s.inSnapshot(ctx, func(tx *Tx) error {
		r, err := tx.GetDryRun(ctx, env.UUID, id.UUID)
		if err != nil {
			return notFound(err, "dry run %s in environment %s", id, env)
		}
		run = dryRunOf(r)
		rows, err := tx.DryRunResults(ctx, id.UUID)
		if err != nil {
			return err
		}
		results = make([]model.DryRunResult, len(rows))
		for i, row := range rows {
			results[i] = model.DryRunResult{DryRun: id, Resource: model.ResourceID(row.ResourceID), Status: model.DiffStatus(row.Status), Message: row.Message}
			if err := decode(row.Changes, &results[i].Changes, "the changes of "+row.ResourceID); err != nil {
				return err
			}
		}
		return nil
	})
	return run, results, err
}
