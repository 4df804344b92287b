-- name: UseAgentToken :one
UPDATE agent_token SET used_at = @now::timestamptz
WHERE digest = @digest AND environment = @environment AND revoked_at IS NULL AND (NOT one_time OR used_at IS NULL)
RETURNING id;

-- name: InsertAgentToken :exec
INSERT INTO agent_token (id, environment, digest, description, one_time, created_at, created_by)
VALUES (@id, @environment, @digest, @description, @one_time, @created_at, @created_by);

-- name: ListAgentTokens :many
SELECT * FROM agent_token WHERE environment = @environment ORDER BY created_at DESC, id DESC;

-- name: RevokeAgentToken :execrows
UPDATE agent_token SET revoked_at = coalesce(revoked_at, @now::timestamptz) WHERE environment = @environment AND id = @id;

-- name: SaveSession :exec
INSERT INTO agent_session (id, environment, server, hostname, process, agents, version, autostarted, connected_at, lost_at)
VALUES (@id, @environment, @server, @hostname, @process, @agents, @version, @autostarted, @connected_at, sqlc.narg('lost_at'))
ON CONFLICT (id) DO UPDATE
SET server = excluded.server, hostname = excluded.hostname, process = excluded.process, agents = excluded.agents, version = excluded.version,
    autostarted = excluded.autostarted, lost_at = excluded.lost_at;

-- paused is the administrator's, not the hub's. An agent that goes down does so only for the session that it is up with: the
-- news of a lost session may come after those of its successor, from another server.
-- name: SaveAgents :exec
INSERT INTO agent AS a (environment, name, up, process, hostname, session, since)
SELECT unnest(@environments::uuid[]), unnest(@names::text[]), unnest(@ups::boolean[]), unnest(@processes::text[]), unnest(@hostnames::text[]),
    unnest(@sessions::text[]), nullif(unnest(@sinces::timestamptz[]), @no_time::timestamptz)
ON CONFLICT (environment, name) DO UPDATE
SET up = excluded.up, process = excluded.process, hostname = excluded.hostname, session = excluded.session, since = excluded.since
WHERE excluded.up OR NOT a.up OR excluded.session = '' OR excluded.session = a.session;

-- name: ExpireSessions :many
UPDATE agent_session SET lost_at = @now::timestamptz WHERE server = @server AND lost_at IS NULL RETURNING id, environment;

-- name: ExpireAgentsOf :exec
UPDATE agent SET up = false, since = @now::timestamptz WHERE session = ANY(@sessions::text[]) AND up;

-- name: GetSession :one
SELECT * FROM agent_session WHERE id = @id;

-- name: ListSessions :many
SELECT * FROM agent_session
WHERE (sqlc.narg('environment')::uuid IS NULL OR environment = sqlc.narg('environment')::uuid) AND (@expired::boolean OR lost_at IS NULL)
ORDER BY connected_at DESC, id DESC LIMIT @max_rows;

-- name: SetAgentsPaused :execrows
UPDATE agent SET paused = @paused WHERE environment = @environment AND (cardinality(@names::text[]) = 0 OR name = ANY(@names::text[])) AND paused <> @paused;

-- name: SetUnpauseOnResume :exec
UPDATE agent SET unpause_on_resume = @unpause::boolean WHERE environment = @environment AND (cardinality(@names::text[]) = 0 OR name = ANY(@names::text[]));

-- name: PauseForHalt :exec
UPDATE agent SET unpause_on_resume = coalesce(unpause_on_resume, NOT paused), paused = true WHERE environment = @environment;

-- name: UnpauseForResume :exec
UPDATE agent SET paused = paused AND NOT coalesce(unpause_on_resume, false), unpause_on_resume = NULL WHERE environment = @environment;
