-- Takes free or expired leases, or prolongs one's own, in the order of ids. The token grows when the owner changes. Environments that
-- are gone are passed over.
-- name: AcquireLeases :many
INSERT INTO lease AS l (environment, owner, token, expires_at)
SELECT e.id, @owner, 1, @expires_at::timestamptz FROM environment e WHERE e.id = ANY(@environments::uuid[]) ORDER BY e.id
ON CONFLICT (environment) DO UPDATE
SET owner = excluded.owner, expires_at = excluded.expires_at, token = CASE WHEN l.owner = excluded.owner THEN l.token ELSE l.token + 1 END
WHERE l.owner = excluded.owner OR l.expires_at IS NULL OR l.expires_at <= @now::timestamptz
RETURNING environment, token;

-- name: ReleaseLease :execrows
UPDATE lease SET owner = '', expires_at = NULL WHERE environment = @environment AND token = @token AND owner = @owner;

-- A share lock: a new owner waits for the writes of the old one, and afterwards the old one's are refused. Without a row the lease is
-- not the current one.
-- name: HoldLease :exec
SELECT 1 FROM lease WHERE environment = @environment AND token = @token FOR SHARE;

-- name: SetProcessed :exec
UPDATE lease SET processed = @processed WHERE environment = @environment;

-- name: GetProcessed :one
SELECT coalesce((SELECT processed FROM lease WHERE environment = @environment), 0)::integer;

-- name: SchedulableEnvironments :many
SELECT e.id FROM environment e
WHERE NOT e.halted AND EXISTS (SELECT 1 FROM version v WHERE v.environment = e.id)
ORDER BY e.id;

-- name: ListStates :many
SELECT resource_id, compliance, last_run, blocked, deploying, intent_hash, deployed_hash, deployed_version, last_outcome, last_run_at,
    last_success, last_produced_events, orphaned_after, failures
FROM resource_state WHERE environment = @environment ORDER BY resource_id;

-- What is stored already is not written again: of a new version, the release itself has brought the states in line.
-- name: SaveStates :exec
INSERT INTO resource_state AS s (environment, resource_id, type, agent, value, compliance, last_run, blocked, deploying, intent_hash, deployed_hash,
    deployed_version, last_outcome, last_run_at, last_success, last_produced_events, orphaned_after, failures)
SELECT @environment::uuid, u.resource_id, u.type, u.agent, u.value, u.compliance, u.last_run, u.blocked, u.deploying, u.intent_hash, u.deployed_hash,
    u.deployed_version, u.last_outcome, nullif(u.last_run_at, @no_time::timestamptz), nullif(u.last_success, @no_time::timestamptz),
    nullif(u.last_produced_events, @no_time::timestamptz), u.orphaned_after, u.failures
FROM (SELECT unnest(@ids::text[]) AS resource_id, unnest(@types::text[]) AS type, unnest(@agents::text[]) AS agent, unnest(@values::text[]) AS value,
        unnest(@compliances::text[]) AS compliance, unnest(@last_runs::text[]) AS last_run, unnest(@blocked::text[]) AS blocked,
        unnest(@deploying::boolean[]) AS deploying, unnest(@intent_hashes::text[]) AS intent_hash,
        unnest(@deployed_hashes::text[]) AS deployed_hash, unnest(@deployed_versions::integer[]) AS deployed_version,
        unnest(@last_outcomes::text[]) AS last_outcome, unnest(@run_times::timestamptz[]) AS last_run_at,
        unnest(@success_times::timestamptz[]) AS last_success, unnest(@event_times::timestamptz[]) AS last_produced_events,
        unnest(@orphaned_afters::integer[]) AS orphaned_after, unnest(@failure_counts::integer[]) AS failures) u
ON CONFLICT (environment, resource_id) DO UPDATE
SET compliance = excluded.compliance, last_run = excluded.last_run, blocked = excluded.blocked, deploying = excluded.deploying,
    intent_hash = excluded.intent_hash, deployed_hash = excluded.deployed_hash, deployed_version = excluded.deployed_version,
    last_outcome = excluded.last_outcome, last_run_at = excluded.last_run_at, last_success = excluded.last_success,
    last_produced_events = excluded.last_produced_events, orphaned_after = excluded.orphaned_after, failures = excluded.failures
WHERE (s.compliance, s.last_run, s.blocked, s.deploying, s.intent_hash, s.deployed_hash, s.deployed_version, s.last_outcome, s.last_run_at,
        s.last_success, s.last_produced_events, s.orphaned_after, s.failures)
    IS DISTINCT FROM (excluded.compliance, excluded.last_run, excluded.blocked, excluded.deploying, excluded.intent_hash, excluded.deployed_hash,
        excluded.deployed_version, excluded.last_outcome, excluded.last_run_at, excluded.last_success, excluded.last_produced_events,
        excluded.orphaned_after, excluded.failures);

-- name: StartActions :exec
INSERT INTO running_action (id, environment, version, resource_id, kind, reason, started_at, trace, log)
SELECT unnest(@ids::uuid[]), @environment::uuid, unnest(@versions::integer[]), unnest(@resources::text[]), unnest(@kinds::text[]),
    unnest(@reasons::text[]), unnest(@started_at::timestamptz[]), unnest(@traces::text[]), unnest(@logs::text[])
ON CONFLICT (id) DO NOTHING;

-- name: EndActions :many
DELETE FROM running_action WHERE environment = @environment AND id = ANY(@ids::uuid[])
RETURNING id, version, resource_id, kind, reason, started_at, trace, log;

-- Stores the ends of actions. It returns those that had none yet, or only the one that was assumed when their agent was lost: only
-- their logs and facts are to be stored.
-- name: FinishActions :many
INSERT INTO action AS a (id, environment, version, resource_id, kind, reason, started_at, finished_at, outcome, change, changes, trace, code, log)
SELECT unnest(@ids::uuid[]), @environment::uuid, unnest(@versions::integer[]), unnest(@resources::text[]), unnest(@kinds::text[]),
    unnest(@reasons::text[]), unnest(@started_at::timestamptz[]), unnest(@finished_at::timestamptz[]), unnest(@outcomes::text[]),
    unnest(@changes::text[]), unnest(@diffs::text[])::json, unnest(@traces::text[]), unnest(@codes::text[]), unnest(@logs::text[])
ON CONFLICT (id) DO UPDATE
SET finished_at = excluded.finished_at, outcome = excluded.outcome, change = excluded.change, changes = excluded.changes, code = excluded.code,
    log = concat_ws(E'\n', nullif(a.log, ''), nullif(excluded.log, ''))
WHERE a.environment = excluded.environment AND a.code = 'agent-lost'
RETURNING a.id;

-- name: AbandonActions :exec
WITH lost AS (
    DELETE FROM running_action r WHERE r.environment = @environment AND r.id = ANY(@ids::uuid[])
    RETURNING r.id, r.environment, r.version, r.resource_id, r.kind, r.reason, r.started_at, r.trace, r.log
)
INSERT INTO action (id, environment, version, resource_id, kind, reason, started_at, finished_at, outcome, change, changes, trace, code, log)
SELECT l.id, l.environment, l.version, l.resource_id, l.kind, l.reason, l.started_at, @now::timestamptz, 'failed', '', '{}', l.trace, 'agent-lost',
    concat_ws(E'\n', nullif(l.log, ''), @log::text)
FROM lost l
ON CONFLICT (id) DO NOTHING;

-- name: SaveFacts :exec
INSERT INTO parameter (id, environment, name, resource_id, value, source, updated_at, metadata, expires)
SELECT u.id, @environment::uuid, u.name, u.resource_id, u.value, 'fact', @now::timestamptz, '{}', u.expires
FROM (SELECT unnest(@ids::uuid[]) AS id, unnest(@names::text[]) AS name, unnest(@resources::text[]) AS resource_id, unnest(@values::text[]) AS value,
        unnest(@expires::boolean[]) AS expires) u
ON CONFLICT (environment, resource_id, name) DO UPDATE
SET value = excluded.value, updated_at = excluded.updated_at, expires = excluded.expires;

-- Unknown inputs that the facts make known; their compile is to be repeated.
-- name: ResolveUnknowns :execrows
UPDATE unknown n SET resolved = true
FROM (SELECT unnest(@names::text[]) AS name, unnest(@resources::text[]) AS resource_id) u
WHERE n.environment = @environment AND NOT n.resolved AND n.name = u.name AND n.resource_id = u.resource_id;

-- name: DeleteFactsOf :exec
DELETE FROM parameter WHERE environment = @environment AND resource_id = ANY(@resources::text[]);

-- name: FinishCommands :exec
UPDATE command SET done_at = @now::timestamptz WHERE environment = @environment AND id = ANY(@ids::uuid[]) AND done_at IS NULL;

-- name: PendingCommands :many
SELECT * FROM command WHERE environment = @environment AND done_at IS NULL ORDER BY created_at, id;

-- name: PendingCommandsOf :many
SELECT * FROM command WHERE environment = ANY(@environments::uuid[]) AND done_at IS NULL ORDER BY created_at, id;

-- name: EnvironmentNews :many
SELECT e.id, e.halted, e.settings,
    coalesce((SELECT max(v.number) FROM version v WHERE v.environment = e.id AND v.released_at IS NOT NULL), 0)::integer AS released
FROM environment e WHERE e.id = ANY(@environments::uuid[]) ORDER BY e.id;

-- name: PausedAgentsOf :many
SELECT a.environment, a.name FROM agent a JOIN environment e ON e.id = a.environment
WHERE a.environment = ANY(@environments::uuid[]) AND (a.paused OR e.halted);

-- name: RunningActions :many
SELECT id, version, resource_id, kind, reason, started_at, trace FROM running_action
WHERE environment = @environment
ORDER BY started_at, id;

-- name: InsertCommand :execrows
INSERT INTO command (id, environment, kind, agents, resources, version, dryrun, reason, actor, trace, created_at)
VALUES (@id, @environment, @kind, @agents, @resources, @version, sqlc.narg('dryrun'), @reason, @actor, @trace, @created_at)
ON CONFLICT (id) DO NOTHING;

-- name: LockDryRun :one
SELECT * FROM dryrun WHERE id = @id AND environment = @environment FOR NO KEY UPDATE;

-- name: InsertDryRunResults :execrows
INSERT INTO dryrun_resource (dryrun, resource_id, status, changes, message)
SELECT @dryrun::uuid, unnest(@resources::text[]), unnest(@statuses::text[]), unnest(@changes::text[])::json, unnest(@messages::text[])
ON CONFLICT DO NOTHING;

-- name: CountDownDryRun :exec
UPDATE dryrun SET todo = greatest(0, todo - @done::integer) WHERE id = @id;

-- name: InsertDryRun :exec
INSERT INTO dryrun (id, environment, version, created_at, total, todo) VALUES (@id, @environment, @version, @created_at, @total, @total);

-- name: ListDryRuns :many
SELECT * FROM dryrun WHERE environment = @environment AND (@version::integer = 0 OR version = @version::integer) ORDER BY created_at DESC, id DESC;

-- name: GetDryRun :one
SELECT * FROM dryrun WHERE environment = @environment AND id = @id;

-- name: DryRunResults :many
SELECT * FROM dryrun_resource WHERE dryrun = @dryrun ORDER BY resource_id;

-- name: PausedAgents :many
SELECT name FROM agent WHERE environment = @environment AND (paused OR @halted::boolean);

-- name: PurgeActions :execrows
DELETE FROM action WHERE environment = @environment AND started_at < @before::timestamptz;

-- name: PurgeCommands :execrows
DELETE FROM command WHERE environment = @environment AND done_at IS NOT NULL AND created_at < @before::timestamptz;

-- name: PurgeNotifications :execrows
DELETE FROM notification WHERE environment = @environment AND created_at < @before::timestamptz;

-- name: PurgeSessions :execrows
DELETE FROM agent_session WHERE environment = @environment AND lost_at < @before::timestamptz;

-- name: PurgeDeliveries :execrows
DELETE FROM delivery WHERE finished_at IS NOT NULL AND received_at < @before::timestamptz;

-- Which of some facts are stored already, with their values.
-- name: StoredFacts :many
SELECT p.resource_id, p.name, p.value
FROM parameter p JOIN (SELECT unnest(@names::text[]) AS name, unnest(@resources::text[]) AS resource_id) u
  ON p.name = u.name AND p.resource_id = u.resource_id
WHERE p.environment = @environment;
