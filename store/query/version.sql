-- name: GetVersion :one
SELECT * FROM version WHERE environment = @environment AND number = @number;

-- name: VersionNeighbours :one
SELECT coalesce((SELECT max(v.number) FROM version v WHERE v.environment = @environment AND v.number < @number), 0)::integer AS previous,
       coalesce((SELECT min(v.number) FROM version v WHERE v.environment = @environment AND v.number > @number), 0)::integer AS next,
       EXISTS (SELECT 1 FROM version v WHERE v.environment = @environment AND v.number = @number) AS taken,
       EXISTS (SELECT 1 FROM deleted_version d WHERE d.environment = @environment AND d.number = @number) AS deleted;

-- name: LatestReleased :one
SELECT coalesce(max(number), 0)::integer FROM version WHERE environment = @environment AND released_at IS NOT NULL;

-- name: LatestVersion :one
SELECT coalesce(max(number), 0)::integer FROM version WHERE environment = @environment;

-- name: InsertVersion :exec
INSERT INTO version (environment, number, created_at, resources, added, changed, removed, digest, metadata, job, revision_repository,
    revision_ref, revision_commit, revision_author, revision_message, revision_committed_at, trace, resource_sets, undeployable, blocked)
VALUES (@environment, @number, @created_at, @resources, @added, @changed, @removed, @digest, @metadata, sqlc.narg('job'), @revision_repository,
    @revision_ref, @revision_commit, @revision_author, @revision_message, sqlc.narg('revision_committed_at'), @trace, @resource_sets,
    @undeployable, @blocked);

-- The resources of a version with what identifies their content, to find what a new version changes.
-- name: VersionFingerprints :many
SELECT resource_id, body, blocked FROM resource_interval
WHERE environment = @environment AND until_version > @number::integer AND from_version <= @number::integer
ORDER BY resource_id;

-- requires travel joined by the unit separator: arrays of arrays of different lengths do not exist in SQL.
-- name: InsertBodies :exec
INSERT INTO resource_body (environment, hash, attributes, requires, set_name, undefined)
SELECT @environment::uuid, u.hash, u.attributes, string_to_array(u.requires, E'\x1f'), u.set_name, u.undefined
FROM (SELECT unnest(@hashes::bytea[]) AS hash, unnest(@attributes::text[])::json AS attributes, unnest(@requires::text[]) AS requires,
             unnest(@sets::text[]) AS set_name, unnest(@undefined::boolean[]) AS undefined) u
ON CONFLICT (environment, hash) DO NOTHING;

-- A version put below an existing one leaves what the later ones have as it was: intervals that go on beyond it are split.
-- These are the parts beyond.
-- name: IntervalsBeyond :many
SELECT resource_id, until_version, type, agent, value, attribute_hash, body, blocked FROM resource_interval
WHERE environment = @environment AND resource_id = ANY(@ids::text[]) AND from_version + 0 < @number::integer
  AND until_version + 0 > @next::integer
ORDER BY resource_id;

-- "+ 0" keeps the planner from walking the index of ends, where every row of the version is.
-- name: CloseIntervals :exec
UPDATE resource_interval i SET until_version = @number::integer
WHERE i.environment = @environment AND i.resource_id = ANY(@ids::text[]) AND i.from_version + 0 < @number::integer
  AND i.until_version + 0 > @number::integer;

-- name: InsertIntervals :exec
INSERT INTO resource_interval (environment, resource_id, from_version, until_version, type, agent, value, attribute_hash, body, blocked)
SELECT @environment::uuid, unnest(@ids::text[]), @number::integer, unnest(@untils::integer[]), unnest(@types::text[]), unnest(@agents::text[]),
       unnest(@values::text[]), unnest(@attribute_hashes::text[]), unnest(@bodies::bytea[]), unnest(@blocked::boolean[]);

-- name: EnsureAgents :execrows
INSERT INTO agent (environment, name) SELECT @environment::uuid, unnest(@names::text[]) ON CONFLICT DO NOTHING;

-- name: InsertUnknowns :exec
INSERT INTO unknown (environment, version, resource_id, name, source)
SELECT @environment::uuid, @version::integer, unnest(@resources::text[]), unnest(@names::text[]), unnest(@sources::text[])
ON CONFLICT DO NOTHING;

-- name: InsertFiles :exec
INSERT INTO file (hash, content) SELECT unnest(@hashes::text[]), unnest(@contents::bytea[]) ON CONFLICT DO NOTHING;

-- name: InsertFile :exec
INSERT INTO file (hash, content) VALUES (@hash, @content) ON CONFLICT DO NOTHING;

-- name: GetFile :one
SELECT content FROM file WHERE hash = @hash;

-- name: StoredFiles :many
SELECT hash FROM file WHERE hash = ANY(@hashes::text[]);

-- name: InsertStoreAction :exec
INSERT INTO action (id, environment, version, resource_id, kind, reason, started_at, finished_at, outcome, change, changes, trace, code, log)
VALUES (@id, @environment, @version, '', 'store', @reason, @at, @at, '', 'nochange', '{}', @trace, '', @log);

-- Notes when the newest released version was reached for the first time: nothing managed is in another status. Later repairs do not move it.
-- name: MarkConverged :exec
UPDATE version v
SET converged_at = @at::timestamptz
WHERE v.environment = @environment AND v.converged_at IS NULL AND v.number = (
    SELECT max(n.number) FROM version n WHERE n.environment = @environment AND n.released_at IS NOT NULL) AND NOT EXISTS (
    SELECT 1 FROM resource_state s
    WHERE s.environment = v.environment
      AND s.status IN ('available', 'deploying', 'failed', 'skipped', 'unavailable', 'undefined', 'skipped_for_undefined', 'non_compliant'));

-- name: MarkReleased :exec
UPDATE version SET released_at = @at::timestamptz WHERE environment = @environment AND number = @number;

-- Brings the states of what differs between the version released before and this one in line with the new intents.
-- name: ReleaseStates :exec
INSERT INTO resource_state (environment, resource_id, type, agent, value, compliance, last_run, blocked, deploying, intent_hash, deployed_hash,
    deployed_version, last_outcome, orphaned_after, failures)
SELECT i.environment, i.resource_id, i.type, i.agent, i.value, CASE WHEN b.undefined THEN 'undefined' ELSE 'has_update' END, 'new',
    CASE WHEN b.undefined OR i.blocked THEN 'blocked' ELSE 'not_blocked' END, false, i.attribute_hash, '', 0, '', 0, 0
FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
WHERE i.environment = @environment AND i.from_version > @before::integer AND i.from_version <= @number::integer AND i.until_version > @number::integer
ORDER BY i.resource_id
ON CONFLICT (environment, resource_id) DO UPDATE
SET orphaned_after = 0, intent_hash = excluded.intent_hash,
    compliance = CASE
        WHEN excluded.compliance = 'undefined' THEN 'undefined'
        WHEN resource_state.deployed_hash <> excluded.intent_hash THEN 'has_update'
        WHEN resource_state.compliance = 'undefined' THEN 'has_update'
        ELSE resource_state.compliance
    END,
    blocked = CASE
        WHEN excluded.blocked = 'blocked' THEN 'blocked'
        WHEN resource_state.blocked = 'blocked' THEN 'not_blocked'
        ELSE resource_state.blocked
    END;

-- name: ReleaseOrphans :exec
UPDATE resource_state s SET orphaned_after = @before::integer
FROM (SELECT i.resource_id FROM resource_interval i
      WHERE i.environment = @environment AND i.until_version > @before::integer AND i.until_version <= @number::integer
        AND i.from_version <= @before::integer
        AND NOT EXISTS (SELECT 1 FROM resource_interval n WHERE n.environment = i.environment AND n.resource_id = i.resource_id
                        AND n.from_version <= @number::integer AND n.until_version > @number::integer)
      ORDER BY i.resource_id) gone
WHERE s.environment = @environment AND s.resource_id = gone.resource_id AND s.orphaned_after = 0;

-- All intents of a version.
-- name: IntentsOfVersion :many
SELECT i.resource_id, i.from_version, i.attribute_hash, i.blocked, b.attributes, b.requires, b.set_name, b.undefined
FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
WHERE i.environment = @environment AND i.until_version > @number::integer AND i.from_version <= @number::integer
ORDER BY i.resource_id;

-- name: IntentsOfAgents :many
SELECT i.resource_id, i.from_version, i.attribute_hash, i.blocked, b.attributes, b.requires, b.set_name, b.undefined
FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
WHERE i.environment = @environment AND i.agent = ANY(@agents::text[]) AND i.until_version > @number::integer AND i.from_version <= @number::integer
ORDER BY i.resource_id;

-- name: IntentOfVersion :one
SELECT i.resource_id, i.from_version, i.attribute_hash, i.blocked, b.attributes, b.requires, b.set_name, b.undefined
FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
WHERE i.environment = @environment AND i.resource_id = @resource_id AND i.until_version > @number::integer AND i.from_version <= @number::integer;

-- The rows of the higher version that began after the lower one.
-- name: IntervalsBegun :many
SELECT i.resource_id, i.from_version, i.attribute_hash, i.blocked, i.body, b.attributes, b.requires, b.set_name, b.undefined
FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
WHERE i.environment = @environment AND i.from_version > @low::integer AND i.from_version <= @high::integer AND i.until_version > @high::integer
ORDER BY i.resource_id;

-- The rows of the lower version that ended before or with the higher one.
-- name: IntervalsEnded :many
SELECT i.resource_id, i.from_version, i.attribute_hash, i.blocked, i.body, b.attributes, b.requires, b.set_name, b.undefined
FROM resource_interval i JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
WHERE i.environment = @environment AND i.until_version > @low::integer AND i.until_version <= @high::integer AND i.from_version <= @low::integer
ORDER BY i.resource_id;

-- The same without the bodies.
-- name: IntervalIdsEnded :many
SELECT i.resource_id, i.body, i.blocked
FROM resource_interval i
WHERE i.environment = @environment AND i.until_version > @low::integer AND i.until_version <= @high::integer AND i.from_version <= @low::integer
ORDER BY i.resource_id;

-- name: AgentsOfVersion :many
SELECT DISTINCT agent FROM resource_interval
WHERE environment = @environment AND until_version > @number::integer AND from_version <= @number::integer
ORDER BY agent;

-- name: VersionUnknowns :many
SELECT resource_id, name, source FROM unknown WHERE environment = @environment AND version = @version ORDER BY resource_id, name;

-- Intervals that only the deleted version had: they began after the version before it and end before the one after it.
-- name: DropIntervalsOf :many
DELETE FROM resource_interval
WHERE environment = @environment AND from_version > @previous::integer AND from_version <= @number::integer AND until_version <= @until::integer
RETURNING body;

-- What began between the version before the deleted one and the one after it begins with the latter: no interval begins or ends
-- where there is no version.
-- name: BeginIntervalsLater :exec
UPDATE resource_interval SET from_version = @until::integer
WHERE environment = @environment AND from_version > @previous::integer AND from_version <= @number::integer;

-- What the deleted version ended goes on to the one after it, or until further notice.
-- name: EndIntervalsLater :exec
UPDATE resource_interval SET until_version = @until::integer
WHERE environment = @environment AND until_version > @previous::integer AND until_version <= @number::integer;

-- name: RememberDeletedVersion :exec
INSERT INTO deleted_version (environment, number) VALUES (@environment, @number) ON CONFLICT DO NOTHING;

-- name: RememberDeletedVersions :exec
INSERT INTO deleted_version (environment, number) SELECT v.environment, v.number FROM version v WHERE v.environment = @environment
ON CONFLICT DO NOTHING;

-- name: DropUnusedBodies :exec
DELETE FROM resource_body b
WHERE b.environment = @environment AND b.hash = ANY(@hashes::bytea[])
  AND NOT EXISTS (SELECT 1 FROM resource_interval i WHERE i.environment = b.environment AND i.body = b.hash);

-- name: DeleteVersion :exec
DELETE FROM version WHERE environment = @environment AND number = @number;

-- name: DeleteActionsOfVersion :exec
DELETE FROM action WHERE environment = @environment AND version = @version;

-- States of orphans that no version has any more.
-- name: DropForgottenStates :execrows
DELETE FROM resource_state s
WHERE s.environment = @environment AND s.orphaned_after <> 0
  AND NOT EXISTS (SELECT 1 FROM resource_interval i WHERE i.environment = s.environment AND i.resource_id = s.resource_id);

-- name: VersionNumbers :many
SELECT number FROM version WHERE environment = @environment ORDER BY number DESC;

-- name: DropUnusedAgents :execrows
DELETE FROM agent a
WHERE a.environment = @environment AND NOT a.up AND NOT a.paused
  AND NOT EXISTS (SELECT 1 FROM resource_interval i WHERE i.environment = a.environment AND i.agent = a.name)
  AND NOT EXISTS (SELECT 1 FROM resource_state s WHERE s.environment = a.environment AND s.agent = a.name);

-- name: StatesOutsideVersion :many
SELECT s.resource_id FROM resource_state s
WHERE s.environment = @environment AND NOT EXISTS (
    SELECT 1 FROM resource_interval i
    WHERE i.environment = s.environment AND i.resource_id = s.resource_id AND i.from_version <= @number::integer AND i.until_version > @number::integer)
ORDER BY s.resource_id;
