-- name: InsertCodePlan :exec
INSERT INTO code_plan (environment, hash, body) VALUES (@environment, @hash, @body) ON CONFLICT (environment, hash) DO NOTHING;

-- name: InsertVersionCode :exec
INSERT INTO version_code (environment, version, plan) VALUES (@environment, @version, @plan);

-- name: CodePlanOfVersion :one
SELECT p.body FROM version_code v JOIN code_plan p ON p.environment = v.environment AND p.hash = v.plan
WHERE v.environment = @environment AND v.version = @version;

-- name: DropUnusedCodePlans :exec
DELETE FROM code_plan p WHERE p.environment = @environment
  AND NOT EXISTS (SELECT 1 FROM version_code v WHERE v.environment = p.environment AND v.plan = p.hash);

-- name: SaveCodeUpload :exec
INSERT INTO code_upload (environment, version, modules, uploaded_at) VALUES (@environment, @version, @modules, @now)
ON CONFLICT (environment, version) DO UPDATE SET modules = excluded.modules, uploaded_at = excluded.uploaded_at;

-- name: CodeUpload :one
SELECT modules FROM code_upload WHERE environment = @environment AND version = @version;

-- name: DropCodeUpload :exec
DELETE FROM code_upload WHERE environment = @environment AND version = @version;

-- name: PurgeCodeUploads :exec
DELETE FROM code_upload WHERE environment = @environment AND uploaded_at < @before;

-- Of two rows of one resource in a batch the caller has kept the last: a statement can not update a row twice.
-- name: SaveDiscovered :exec
INSERT INTO discovered_resource (environment, resource_id, type, agent, value, attributes, discovery_resource_id, discovered_at)
SELECT @environment::uuid, u.id, u.type, u.agent, u.value, u.attributes, u.discovery, @now::timestamptz
FROM (SELECT unnest(@ids::text[]) AS id, unnest(@types::text[]) AS type, unnest(@agents::text[]) AS agent, unnest(@values::text[]) AS value,
             unnest(@attributes::text[])::json AS attributes, unnest(@discoveries::text[]) AS discovery) u
ON CONFLICT (environment, resource_id) DO UPDATE
SET attributes = excluded.attributes, discovery_resource_id = excluded.discovery_resource_id, discovered_at = excluded.discovered_at;

-- managed: the newest released version has the resource.
-- name: GetDiscovered :one
SELECT sqlc.embed(d), EXISTS (
    SELECT 1 FROM resource_interval i
    WHERE i.environment = d.environment AND i.resource_id = d.resource_id AND i.from_version <= @version::integer AND i.until_version > @version::integer
) AS managed
FROM discovered_resource d WHERE d.environment = @environment AND d.resource_id = @resource_id;

-- name: DeleteDiscovered :execrows
DELETE FROM discovered_resource WHERE environment = @environment AND resource_id = ANY(@ids::text[]);

-- Expiring facts that are due to be read again, with what unknown inputs are waited for; the resources are of the version.
-- name: FactsToRenew :many
SELECT DISTINCT i.resource_id FROM resource_interval i
WHERE i.environment = @environment AND i.from_version <= @version::integer AND i.until_version > @version::integer
  AND i.resource_id IN (
    SELECT p.resource_id FROM parameter p WHERE p.environment = @environment AND p.resource_id <> '' AND p.expires AND p.updated_at < @before::timestamptz
    UNION
    SELECT u.resource_id FROM unknown u WHERE u.environment = @environment AND u.version = @version::integer AND u.resource_id <> '' AND NOT u.resolved)
ORDER BY i.resource_id LIMIT @most::integer;

-- The newest released version if that has a resource, else the newest of those stored since.
-- name: FactVersion :one
SELECT v.number, (v.released_at IS NOT NULL)::boolean AS released
FROM version v JOIN resource_interval i ON i.environment = v.environment AND i.from_version <= v.number AND i.until_version > v.number
WHERE v.environment = @environment AND i.resource_id = @resource_id
  AND v.number >= coalesce((SELECT max(r.number) FROM version r WHERE r.environment = @environment AND r.released_at IS NOT NULL), 0)
ORDER BY released DESC, v.number DESC LIMIT 1;

-- Resources of a version whose facts the model waits for.
-- name: AwaitedResources :many
SELECT DISTINCT u.resource_id FROM unknown u
JOIN resource_interval i ON i.environment = u.environment AND i.resource_id = u.resource_id AND i.from_version <= u.version AND i.until_version > u.version
WHERE u.environment = @environment AND u.version = @version AND u.resource_id <> '' AND NOT u.resolved
ORDER BY u.resource_id LIMIT @most::integer;
