package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// compileList lists reports without what is large in them.
func compileList() *listing[model.CompileReport] {
	return &listing[model.CompileReport]{
		name: "compile reports", from: "compile c",
		columns: `p.id, p.environment, p.status, p.revision_repository, p.revision_ref, p.revision_commit, p.revision_author, p.revision_message,
			p.revision_committed_at, p.reason, p.actor, p.trace, p.export, p.update_modules, p.remote_id, p.metadata, p.environment_variables,
			p.exporter_plugin, p.requested_at, p.started_at, p.finished_at, p.attempt, p.substitute, p.version, p.digest, p.error, p.peak_memory, p.cpu_time`,
		scan: func(row pgx.CollectableRow) (model.CompileReport, error) {
			var c sqlgen.Compile
			if err := row.Scan(&c.ID, &c.Environment, &c.Status, &c.RevisionRepository, &c.RevisionRef, &c.RevisionCommit, &c.RevisionAuthor,
				&c.RevisionMessage, &c.RevisionCommittedAt, &c.Reason, &c.Actor, &c.Trace, &c.Export, &c.UpdateModules, &c.RemoteID, &c.Metadata,
				&c.EnvironmentVariables, &c.ExporterPlugin, &c.RequestedAt, &c.StartedAt, &c.FinishedAt, &c.Attempt, &c.Substitute, &c.Version,
				&c.Digest, &c.Error, &c.PeakMemory, &c.CpuTime); err != nil {
				return model.CompileReport{}, err
			}
			return reportOf(c)
		},
		id: column{"c.id", kindUUID},
		sorts: map[string]column{
			"requested": {"c.requested_at", kindTime},
			"started":   {"coalesce(c.started_at, '-infinity')", kindTime},
		},
		byDefault: "requested",
	}
}

// CompileReports lists reports without stages, diagnostics and excerpts. Sort: requested, started; id column id.
func (s *Store) CompileReports(ctx context.Context, env model.EnvironmentID, f model.CompileFilter, p model.Page) (model.List[model.CompileReport], error) {
	return list(ctx, s, p, func(*Tx) (*listing[model.CompileReport], *filter, error) {
		w := &filter{}
		w.and("c.environment = ?", env.UUID)
		w.within("c.requested_at", f.Requested)
		w.within("c.started_at", f.StartedAt)
		if f.Success != nil {
			// A merged job succeeded if the one that did its work has.
			w.and(`c.finished_at IS NOT NULL AND ((CASE c.status WHEN 'merged' THEN (SELECT h.status FROM compile h WHERE h.id = c.substitute)
				ELSE c.status END) = 'succeeded') = ?`, *f.Success)
		}
		w.is("(c.started_at IS NOT NULL)", f.Started)
		w.is("(c.finished_at IS NOT NULL)", f.Completed)
		return compileList(), w, nil
	})
}

// versionColumns are those of scanVersion.
const versionColumns = `p.environment, p.number, p.created_at, p.released_at, p.resources, p.added, p.changed, p.removed, p.digest, p.metadata, p.job,
	p.revision_repository, p.revision_ref, p.revision_commit, p.revision_author, p.revision_message, p.revision_committed_at, p.trace`

func versionOf(v sqlgen.Version, processed int32) (model.VersionRow, error) {
	out := model.VersionRow{
		Version: model.Version{
			Environment: model.EnvironmentID{UUID: v.Environment}, Number: int(v.Number), Date: v.CreatedAt.UTC(), Released: v.ReleasedAt != nil,
			ReleasedAt: timeOf(v.ReleasedAt), Resources: int(v.Resources), Added: int(v.Added), Changed: int(v.Changed), Removed: int(v.Removed),
			Digest: v.Digest, Job: model.JobID{UUID: uuidOf(v.Job)}, Trace: model.TraceID(v.Trace),
			Revision: model.Revision{
				Repository: model.RepositoryName(v.RevisionRepository), Ref: v.RevisionRef, Commit: v.RevisionCommit, Author: v.RevisionAuthor,
				Message: v.RevisionMessage, CommittedAt: timeOf(v.RevisionCommittedAt),
			},
		},
		Status: model.VersionSkippedCandidate,
	}
	if len(v.Undeployable) > 0 {
		out.Undeployable = strs[model.ResourceID](v.Undeployable)
	}
	if len(v.Blocked) > 0 {
		out.Blocked = strs[model.ResourceID](v.Blocked)
	}
	switch {
	case v.Number == processed:
		out.Status = model.VersionActive
	case v.Number > processed:
		out.Status = model.VersionCandidate
	case out.Released:
		out.Status = model.VersionRetired
	}
	return out, decode(v.Metadata, &out.Metadata, "the metadata of a version")
}

// Versions lists versions with their standing, without their lists of resources. Sort: version.
func (s *Store) Versions(ctx context.Context, env model.EnvironmentID, f model.VersionFilter, p model.Page) (model.List[model.VersionRow], error) {
	return list(ctx, s, p, func(tx *Tx) (*listing[model.VersionRow], *filter, error) {
		processed, err := tx.GetProcessed(ctx, env.UUID)
		if err != nil {
			return nil, nil, err
		}
		w := &filter{}
		w.and("v.environment = ?", env.UUID)
		w.between("v.number", f.Number)
		w.within("v.created_at", f.Date)
		w.is("(v.released_at IS NOT NULL)", f.Released)
		if len(f.Statuses) > 0 {
			w.and(`CASE WHEN v.number = ?::integer THEN 'active' WHEN v.number > ?::integer THEN 'candidate'
				WHEN v.released_at IS NOT NULL THEN 'retired' ELSE 'skipped_candidate' END = ANY(?::text[])`, processed, processed, strs[string](f.Statuses))
		}
		number := column{"v.number", kindInt}
		return &listing[model.VersionRow]{
			name: "versions", from: "version v", columns: versionColumns, id: number,
			sorts: map[string]column{"version": number}, byDefault: "version",
			scan: func(row pgx.CollectableRow) (model.VersionRow, error) {
				var v sqlgen.Version
				if err := row.Scan(&v.Environment, &v.Number, &v.CreatedAt, &v.ReleasedAt, &v.Resources, &v.Added, &v.Changed, &v.Removed, &v.Digest,
					&v.Metadata, &v.Job, &v.RevisionRepository, &v.RevisionRef, &v.RevisionCommit, &v.RevisionAuthor, &v.RevisionMessage,
					&v.RevisionCommittedAt, &v.Trace); err != nil {
					return model.VersionRow{}, err
				}
				return versionOf(v, processed)
			},
		}, w, nil
	})
}

// Version returns one version with its lists of undeployable and blocked resources, or [model.ErrNotFound].
func (s *Store) Version(ctx context.Context, env model.EnvironmentID, number int) (out model.VersionRow, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		v, err := tx.GetVersion(ctx, env.UUID, int32Of(number))
		if err != nil {
			return notFound(err, "version %d of environment %s", number, env)
		}
		processed, err := tx.GetProcessed(ctx, env.UUID)
		if err != nil {
			return err
		}
		out, err = versionOf(v, processed)
		return err
	})
	return out, err
}

// VersionResources lists the intents of a version; statuses of the filter are ignored. [model.ErrNotFound]: no such version.
// Sort: resource_type, agent, resource_id_value, resource_id; id column resource_id.
func (s *Store) VersionResources(ctx context.Context, env model.EnvironmentID, number int, f model.ResourceFilter, p model.Page) (model.List[model.Intent], error) {
	return list(ctx, s, p, func(tx *Tx) (*listing[model.Intent], *filter, error) {
		if err := tx.versionMustExist(ctx, env, number); err != nil {
			return nil, nil, err
		}
		w := &filter{}
		w.and("i.environment = ? AND i.until_version > ?::integer AND i.from_version <= ?::integer", env.UUID, number, number)
		w.contains("i.type", f.Types)
		w.contains("i.agent", f.Agents)
		w.contains("i.value", f.Values)
		return &listing[model.Intent]{
			name: "resources of a version", from: "resource_interval i",
			joins:   "JOIN resource_body b ON b.environment = p.environment AND b.hash = p.body",
			columns: "p.resource_id, p.from_version, p.attribute_hash, p.blocked, b.attributes, b.requires, b.set_name, b.undefined",
			id:      column{"i.resource_id", kindText},
			sorts: map[string]column{
				"resource_type": {"i.type", kindText}, "agent": {"i.agent", kindText}, "resource_id_value": {"i.value", kindText},
				"resource_id": {"i.resource_id", kindText},
			},
			byDefault: "resource_id",
			scan: func(row pgx.CollectableRow) (model.Intent, error) {
				var r intentRow
				err := row.Scan(&r.ResourceID, &r.FromVersion, &r.AttributeHash, &r.Blocked, &r.Attributes, &r.Requires, &r.SetName, &r.Undefined)
				return intentOf(r), err
			},
		}, w, nil
	})
}

// resourceList lists states with what their resources require in the version released last, or for orphans in their last one.
func resourceList(released int32) *listing[model.ResourceRow] {
	return &listing[model.ResourceRow]{
		name: "resources", from: "resource_state s",
		joins: `LEFT JOIN LATERAL (
				SELECT b.requires FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
				WHERE i.environment = p.environment AND i.resource_id = p.resource_id
					AND i.from_version <= CASE p.orphaned_after WHEN 0 THEN 2147483646 ELSE p.orphaned_after END
				ORDER BY i.from_version DESC LIMIT 1) r ON true`,
		columns: `p.resource_id, p.compliance, p.last_run, p.blocked, p.deploying, p.intent_hash, p.deployed_hash, p.deployed_version, p.last_outcome,
			p.last_run_at, p.last_success, p.last_produced_events, p.orphaned_after, p.failures, r.requires`,
		id: column{"s.resource_id", kindText},
		sorts: map[string]column{
			"resource_type": {"s.type", kindText}, "agent": {"s.agent", kindText}, "resource_id_value": {"s.value", kindText},
			"resource_id": {"s.resource_id", kindText}, "status": {"s.status", kindText},
		},
		byDefault: "resource_id",
		scan: func(row pgx.CollectableRow) (model.ResourceRow, error) {
			var (
				r        sqlgen.ListStatesRow
				requires []string
			)
			err := row.Scan(&r.ResourceID, &r.Compliance, &r.LastRun, &r.Blocked, &r.Deploying, &r.IntentHash, &r.DeployedHash, &r.DeployedVersion,
				&r.LastOutcome, &r.LastRunAt, &r.LastSuccess, &r.LastProducedEvents, &r.OrphanedAfter, &r.Failures, &requires)
			return resourceRow(r, requires, released), err
		},
	}
}

func resourceRow(r sqlgen.ListStatesRow, requires []string, released int32) model.ResourceRow {
	out := model.ResourceRow{Version: int(released), Requires: strs[model.ResourceID](requires), State: stateOf(r)}
	if r.OrphanedAfter != 0 {
		out.Version = int(r.OrphanedAfter)
	}
	return out
}

// Resources lists the resources of the newest released version, and orphans, with their states. Sort: resource_type, agent,
// resource_id_value, resource_id, status; id column resource_id.
func (s *Store) Resources(ctx context.Context, env model.EnvironmentID, f model.ResourceFilter, p model.Page) (model.List[model.ResourceRow], error) {
	return list(ctx, s, p, func(tx *Tx) (*listing[model.ResourceRow], *filter, error) {
		released, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return nil, nil, err
		}
		w := &filter{}
		w.and("s.environment = ?", env.UUID)
		w.contains("s.type", f.Types)
		w.contains("s.agent", f.Agents)
		w.contains("s.value", f.Values)
		oneOf(w, "s.status", f.Statuses)
		if len(f.ExcludeStatuses) > 0 {
			w.and("s.status <> ALL(?::text[])", strs[string](f.ExcludeStatuses))
		}
		return resourceList(released), w, nil
	})
}

// Agents lists agents. Sort: name, process_name, status (paused, up or down), paused; id column name.
func (s *Store) Agents(ctx context.Context, env model.EnvironmentID, f model.AgentFilter, p model.Page) (model.List[model.AgentStatus], error) {
	const status = "CASE WHEN a.paused THEN 'paused' WHEN a.up THEN 'up' ELSE 'down' END"
	return list(ctx, s, p, func(*Tx) (*listing[model.AgentStatus], *filter, error) {
		w := &filter{}
		w.and("a.environment = ?", env.UUID)
		w.contains("a.name", f.Names)
		w.contains("a.process", f.Processes)
		oneOf(w, status, f.Statuses)
		return &listing[model.AgentStatus]{
			name: "agents", from: "agent a",
			columns: "p.name, p.paused, p.unpause_on_resume, p.up, p.process, p.hostname, p.session, p.since",
			id:      column{"a.name", kindText},
			sorts: map[string]column{
				"name": {"a.name", kindText}, "process_name": {"a.process", kindText}, "paused": {"a.paused", kindBool}, "status": {status, kindText},
			},
			byDefault: "name",
			scan: func(row pgx.CollectableRow) (model.AgentStatus, error) {
				a := model.AgentStatus{Environment: env}
				var since *time.Time
				err := row.Scan(&a.Name, &a.Paused, &a.UnpauseOnResume, &a.Up, &a.Process, &a.Hostname, &a.SessionID, &since)
				a.Since = timeOf(since)
				return a, err
			},
		}, w, nil
	})
}

// parameterList lists parameters or facts.
func parameterList(sorts map[string]column) *listing[model.Parameter] {
	return &listing[model.Parameter]{
		name: "parameters", from: "parameter r",
		columns: "p.id, p.environment, p.name, p.resource_id, p.value, p.source, p.updated_at, p.metadata, p.expires",
		id:      column{"r.id", kindUUID}, sorts: sorts, byDefault: "name",
		scan: func(row pgx.CollectableRow) (model.Parameter, error) {
			var r sqlgen.Parameter
			if err := row.Scan(&r.ID, &r.Environment, &r.Name, &r.ResourceID, &r.Value, &r.Source, &r.UpdatedAt, &r.Metadata, &r.Expires); err != nil {
				return model.Parameter{}, err
			}
			return parameterOf(r)
		},
	}
}

func parameterFilter(env model.EnvironmentID, facts bool, f model.ParameterFilter) (*filter, error) {
	w := &filter{}
	w.and("r.environment = ? AND (r.resource_id <> '') = ?", env.UUID, facts)
	w.contains("r.name", f.Names)
	w.contains("r.source", f.Sources)
	w.contains("r.resource_id", f.Resources)
	w.within("r.updated_at", f.Updated)
	w.is("r.expires", f.Expires)
	if len(f.Metadata) > 0 {
		metadata, err := encode(f.Metadata, "{}")
		if err != nil {
			return nil, err
		}
		w.and("r.metadata @> ?::jsonb", metadata)
	}
	return w, nil
}

// Parameters lists parameters without a resource. Sort: name, source, updated; id column id.
func (s *Store) Parameters(ctx context.Context, env model.EnvironmentID, f model.ParameterFilter, p model.Page) (model.List[model.Parameter], error) {
	return list(ctx, s, p, func(*Tx) (*listing[model.Parameter], *filter, error) {
		w, err := parameterFilter(env, false, f)
		return parameterList(map[string]column{
			"name": {"r.name", kindText}, "source": {"r.source", kindText}, "updated": {"r.updated_at", kindTime},
		}), w, err
	})
}

// Facts lists parameters with a resource. Sort: name, resource_id; id column id.
func (s *Store) Facts(ctx context.Context, env model.EnvironmentID, f model.ParameterFilter, p model.Page) (model.List[model.Parameter], error) {
	return list(ctx, s, p, func(*Tx) (*listing[model.Parameter], *filter, error) {
		w, err := parameterFilter(env, true, f)
		return parameterList(map[string]column{"name": {"r.name", kindText}, "resource_id": {"r.resource_id", kindText}}), w, err
	})
}

func notificationOf(n sqlgen.Notification) model.Notification {
	return model.Notification{
		ID: model.NotificationID{UUID: n.ID}, Environment: model.EnvironmentID{UUID: n.Environment}, CreatedAt: n.CreatedAt.UTC(), Title: n.Title,
		Message: n.Message, Severity: model.Severity(n.Severity), URI: n.Uri, Job: model.JobID{UUID: uuidOf(n.Job)}, Read: n.Read, Cleared: n.Cleared,
	}
}

// Notifications lists notifications. Sort: created; id column id.
func (s *Store) Notifications(ctx context.Context, env model.EnvironmentID, f model.NotificationFilter, p model.Page) (model.List[model.Notification], error) {
	return list(ctx, s, p, func(*Tx) (*listing[model.Notification], *filter, error) {
		w := &filter{}
		w.and("n.environment = ?", env.UUID)
		w.contains("n.title", f.Titles)
		w.contains("n.message", f.Messages)
		w.is("n.read", f.Read)
		w.is("n.cleared", f.Cleared)
		oneOf(w, "n.severity", f.Severities)
		return &listing[model.Notification]{
			name: "notifications", from: "notification n",
			columns: "p.id, p.environment, p.created_at, p.title, p.message, p.severity, p.uri, p.job, p.read, p.cleared",
			id:      column{"n.id", kindUUID}, sorts: map[string]column{"created": {"n.created_at", kindTime}}, byDefault: "created",
			scan: func(row pgx.CollectableRow) (model.Notification, error) {
				var n sqlgen.Notification
				err := row.Scan(&n.ID, &n.Environment, &n.CreatedAt, &n.Title, &n.Message, &n.Severity, &n.Uri, &n.Job, &n.Read, &n.Cleared)
				return notificationOf(n), err
			},
		}, w, nil
	})
}

// Deliveries lists deliveries without bodies. Sort: received; id column key.
func (s *Store) Deliveries(ctx context.Context, f model.DeliveryFilter, p model.Page) (model.List[model.Delivery], error) {
	return list(ctx, s, p, func(*Tx) (*listing[model.Delivery], *filter, error) {
		w := &filter{}
		if f.Repository != "" {
			w.and("d.repository = ?", string(f.Repository))
		}
		oneOf(w, "d.status", f.Statuses)
		return &listing[model.Delivery]{
			name: "deliveries", from: "delivery d",
			columns: `p.repository, p.key, p.provider, p.event, p.ref, p.before, p.after, p.trace, p.received_at, p.status, p.detail, p.finished_at, p.headers`,
			id:      column{"d.key", kindText}, sorts: map[string]column{"received": {"d.received_at", kindTime}}, byDefault: "received",
			scan: func(row pgx.CollectableRow) (model.Delivery, error) {
				var d sqlgen.Delivery
				if err := row.Scan(&d.Repository, &d.Key, &d.Provider, &d.Event, &d.Ref, &d.Before, &d.After, &d.Trace, &d.ReceivedAt, &d.Status,
					&d.Detail, &d.FinishedAt, &d.Headers); err != nil {
					return model.Delivery{}, err
				}
				return deliveryOf(d)
			},
		}, w, nil
	})
}

// levels are the levels of log lines, least first.
var levels = []model.LogLevel{
	model.LevelTrace, model.LevelDebug, model.LevelInfo, model.LevelWarning, model.LevelError, model.LevelCritical,
}

// ResourceLogs lists the log lines of all actions on a resource, storing it included. Sort: timestamp, ties in the order of
// writing.
func (s *Store) ResourceLogs(ctx context.Context, env model.EnvironmentID, id model.ResourceID, f model.LogFilter, p model.Page) (model.List[model.LogRow], error) {
	return list(ctx, s, p, func(*Tx) (*listing[model.LogRow], *filter, error) {
		w := &filter{}
		w.and("a.environment = ?", env.UUID)
		onResource(w, id)
		if f.MinLevel != "" {
			least := 0
			for i, l := range levels {
				if l == f.MinLevel {
					least = i
				}
			}
			oneOf(w, "l.line ->> 'level'", levels[least:])
		}
		w.contains("l.line ->> 'message'", f.Messages)
		oneOf(w, "a.kind", f.Actions)
		w.within("(l.line ->> 'time')::timestamptz", f.Time)
		return &listing[model.LogRow]{
			name:    "log lines",
			from:    "any_action a CROSS JOIN LATERAL " + logLines,
			columns: "p.line, p.id, p.kind, p.version, p.trace",
			// Actions of a resource follow each other.
			id:    column{"to_char(a.started_at AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') || a.id || to_char(l.n, 'FM00000000')", kindText},
			sorts: map[string]column{"timestamp": {"(l.line ->> 'time')::timestamptz", kindTime}}, byDefault: "timestamp",
			scan: func(row pgx.CollectableRow) (model.LogRow, error) {
				var (
					l      model.LogRow
					line   string
					action uuid.UUID
				)
				if err := row.Scan(&line, &action, &l.Kind, &l.Version, &l.Trace); err != nil {
					return l, err
				}
				lines, err := decodeLog(line, "action "+action.String())
				if err == nil {
					l.LogLine, l.Action = lines[0], model.TaskID{UUID: action}
				}
				return l, err
			},
		}, w, nil
	})
}

// onResource keeps actions on a resource; the storing of a version that has the resource is one.
func onResource(w *filter, id model.ResourceID) {
	w.and(`(a.resource_id = ? OR (a.resource_id = '' AND EXISTS (SELECT 1 FROM resource_interval i
		WHERE i.environment = a.environment AND i.resource_id = ? AND i.from_version <= a.version AND i.until_version > a.version)))`, string(id), string(id))
}
