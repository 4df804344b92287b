-- name: GetState :one
SELECT resource_id, compliance, last_run, blocked, deploying, intent_hash, deployed_hash, deployed_version, last_outcome, last_run_at,
    last_success, last_produced_events, orphaned_after, failures
FROM resource_state WHERE environment = @environment AND resource_id = @resource_id;

-- name: CountStatuses :many
SELECT status, count(*) AS resources FROM resource_state
WHERE environment = @environment AND orphaned_after = 0
GROUP BY status;

-- name: StatusesOf :many
SELECT resource_id, status FROM resource_state WHERE environment = @environment AND resource_id = ANY(@ids::text[]);

-- The resources of a version that require one.
-- name: Dependants :many
SELECT i.resource_id
FROM resource_body b JOIN resource_interval i ON i.environment = b.environment AND i.body = b.hash
WHERE b.environment = @environment AND b.requires @> ARRAY[@resource_id::text]
  AND i.from_version <= @number::integer AND i.until_version > @number::integer;

-- name: FirstGenerated :one
SELECT v.created_at FROM version v
WHERE v.environment = @environment AND EXISTS (
    SELECT 1 FROM resource_interval i
    WHERE i.environment = v.environment AND i.resource_id = @resource_id AND i.from_version <= v.number AND i.until_version > v.number)
ORDER BY v.number LIMIT 1;

-- The intervals of a resource with the first released version in each.
-- name: ReleasedIntervals :many
SELECT i.attribute_hash, b.attributes, b.requires, v.number, v.created_at
FROM resource_interval i
JOIN resource_body b ON b.environment = i.environment AND b.hash = i.body
JOIN LATERAL (
    SELECT w.number, w.created_at FROM version w
    WHERE w.environment = i.environment AND w.number >= i.from_version AND w.number < i.until_version AND w.released_at IS NOT NULL
    ORDER BY w.number LIMIT 1) v ON true
WHERE i.environment = @environment AND i.resource_id = @resource_id
ORDER BY i.from_version;

-- Everything that carries a trace id, oldest first.
-- name: TraceSteps :many
SELECT 'delivery'::text AS kind, NULL::uuid AS environment, (d.repository || '/' || d.key)::text AS id, ''::text AS resource,
    (d.event || ' ' || d.ref)::text AS description, d.status::text AS status, d.received_at AS at, d.finished_at AS ended_at, 0 AS rank
FROM delivery d WHERE d.trace = @trace
UNION ALL
SELECT 'compile', c.environment, c.id::text, '', c.reason, c.status, c.requested_at, c.finished_at, 1 FROM compile c WHERE c.trace = @trace
UNION ALL
SELECT 'version', v.environment, v.number::text, '', 'version ' || v.number || ' stored',
    CASE WHEN v.released_at IS NULL THEN 'stored' ELSE 'released' END, v.created_at, v.released_at, 2
FROM version v WHERE v.trace = @trace
UNION ALL
SELECT 'command', m.environment, m.id::text, '', m.reason, CASE WHEN m.done_at IS NULL THEN 'pending' ELSE 'done' END, m.created_at, m.done_at, 3
FROM command m WHERE m.trace = @trace
UNION ALL
SELECT 'action', a.environment, a.id::text, a.resource_id, CASE WHEN a.reason = '' THEN a.kind ELSE a.reason END,
    CASE WHEN a.finished_at IS NULL THEN 'running' WHEN a.outcome = '' THEN a.kind ELSE a.outcome END, a.started_at, a.finished_at, 4
FROM any_action a WHERE a.trace = @trace
ORDER BY at, rank, id;

-- Compile requests with what became of them.
-- name: ListJourneys :many
SELECT c.id, c.status, c.revision_repository, c.revision_ref, c.revision_commit, c.revision_author, c.revision_message, c.revision_committed_at,
    c.reason, c.trace, c.requested_at, c.started_at, c.finished_at, c.version, c.error,
    coalesce((SELECT min(d.received_at) FROM delivery d WHERE d.trace = c.trace AND d.trace <> ''), c.requested_at)::timestamptz AS received_at,
    v.created_at AS stored_at, v.released_at, v.converged_at, coalesce(v.resources, 0)::integer AS resources,
    coalesce(deploys.first_at, '0001-01-01 00:00:00+00')::timestamptz AS first_at, coalesce(deploys.last_at, '0001-01-01 00:00:00+00')::timestamptz AS last_at
FROM compile c
LEFT JOIN version v ON v.environment = c.environment AND v.number = c.version
LEFT JOIN LATERAL (
    SELECT min(a.started_at) AS first_at, max(a.finished_at) AS last_at FROM any_action a
    WHERE c.version > 0 AND a.environment = c.environment AND a.version = c.version AND a.kind = 'deploy') deploys ON true
WHERE c.environment = @environment AND c.status <> 'merged' AND (sqlc.narg('before')::timestamptz IS NULL OR c.requested_at < sqlc.narg('before')::timestamptz)
ORDER BY c.requested_at DESC, c.id DESC
LIMIT @max_rows;
