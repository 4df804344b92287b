-- name: InsertProject :exec
INSERT INTO project (id, name) VALUES (@id, @name);

-- name: RenameProject :execrows
UPDATE project SET name = @name WHERE id = @id;

-- name: DeleteProject :execrows
DELETE FROM project WHERE id = @id;

-- name: GetProject :one
SELECT id, name FROM project WHERE id = @id;

-- name: ListProjects :many
SELECT id, name FROM project ORDER BY name, id;

-- name: InsertEnvironment :exec
INSERT INTO environment (id, project, name, description, icon, repo_url, repo_branch, repo_path, repository, settings, halted)
VALUES (@id, @project, @name, @description, @icon, @repo_url, @repo_branch, @repo_path, sqlc.narg('repository'), @settings, @halted);

-- name: GetEnvironment :one
SELECT * FROM environment WHERE id = @id;

-- name: EnvironmentExists :one
SELECT EXISTS (SELECT 1 FROM environment WHERE id = @id);

-- The lock of an environment: everything that changes its versions, revision or settings takes it first. NO KEY, so that
-- inserts into other tables, whose foreign keys take KEY SHARE, go on.
-- name: LockEnvironment :one
SELECT * FROM environment WHERE id = @id FOR NO KEY UPDATE;

-- name: ListEnvironments :many
SELECT e.* FROM environment e JOIN project p ON p.id = e.project
WHERE sqlc.narg('project')::uuid IS NULL OR e.project = sqlc.narg('project')::uuid
ORDER BY p.name, e.name, e.id;

-- name: UpdateEnvironment :exec
UPDATE environment
SET project = @project, name = @name, description = @description, icon = @icon, repo_url = @repo_url, repo_branch = @repo_branch,
    repo_path = @repo_path, repository = sqlc.narg('repository'),
    revision_ref = @revision_ref, revision_commit = @revision_commit, revision_author = @revision_author,
    revision_message = @revision_message, revision_committed_at = sqlc.narg('revision_committed_at')
WHERE id = @id;

-- name: SetEnvironmentRevision :exec
UPDATE environment
SET revision_ref = @revision_ref, revision_commit = @revision_commit, revision_author = @revision_author,
    revision_message = @revision_message, revision_committed_at = sqlc.narg('revision_committed_at')
WHERE id = @id;

-- name: SetEnvironmentHalted :exec
UPDATE environment SET halted = @halted WHERE id = @id;

-- name: SetEnvironmentSetting :exec
UPDATE environment SET settings = jsonb_set(settings, ARRAY[@name::text], @value::jsonb) WHERE id = @id;

-- name: UnsetEnvironmentSetting :exec
UPDATE environment SET settings = settings - @name::text WHERE id = @id;

-- name: DeleteEnvironment :execrows
DELETE FROM environment WHERE id = @id;

-- name: WatchingEnvironments :many
SELECT * FROM environment WHERE repository = @repository AND NOT halted ORDER BY name, id;

-- name: NextVersionNumber :one
UPDATE environment SET last_version = last_version + 1 WHERE id = @id RETURNING last_version;

-- name: ForgetRevision :exec
UPDATE environment
SET revision_ref = '', revision_commit = '', revision_author = '', revision_message = '', revision_committed_at = NULL,
    last_compile_at = NULL
WHERE id = @id;

-- name: RepositoryOfURL :one
SELECT name FROM repository WHERE url = @url;

-- name: InsertRepository :exec
INSERT INTO repository (name, url, provider, webhook_secrets, username, password, ssh_key, ssh_key_passphrase, known_hosts, poll)
VALUES (@name, @url, @provider, @webhook_secrets, @username, @password, @ssh_key, @ssh_key_passphrase, @known_hosts, @poll);

-- Makes the record of a URL unless the name or the URL is taken.
-- name: InsertRepositoryForURL :execrows
INSERT INTO repository (name, url, provider, webhook_secrets, username, password, ssh_key, ssh_key_passphrase, known_hosts, poll)
VALUES (@name, @url, '', '{}', '', '', '', '', '', @poll)
ON CONFLICT DO NOTHING;

-- name: GetRepository :one
SELECT * FROM repository WHERE name = @name;

-- name: LockRepository :one
SELECT * FROM repository WHERE name = @name FOR NO KEY UPDATE;

-- name: ListRepositories :many
SELECT * FROM repository ORDER BY name;

-- name: UpdateRepository :exec
UPDATE repository
SET url = @url, provider = @provider, webhook_secrets = @webhook_secrets, username = @username, password = @password,
    ssh_key = @ssh_key, ssh_key_passphrase = @ssh_key_passphrase, known_hosts = @known_hosts, poll = @poll
WHERE name = @name;

-- name: SetRepositoryURLOfEnvironments :many
UPDATE environment
SET repo_url = @url, revision_ref = '', revision_commit = '', revision_author = '', revision_message = '', revision_committed_at = NULL
WHERE repository = @repository AND repo_url <> @url
RETURNING id;

-- name: DeleteRepository :execrows
DELETE FROM repository WHERE name = @name;

-- name: RecordSync :execrows
UPDATE repository
SET last_synced_at = CASE WHEN @message::text = '' THEN @at::timestamptz ELSE last_synced_at END, last_error = @message::text,
    sync_requested_at = CASE WHEN sync_requested_at <= @at::timestamptz THEN NULL ELSE sync_requested_at END
WHERE name = @name;

-- name: RequestSync :execrows
UPDATE repository SET sync_requested_at = @at::timestamptz WHERE name = @name;

-- name: InsertDelivery :execrows
INSERT INTO delivery (repository, key, provider, event, ref, before, after, trace, received_at, status, detail, finished_at, headers, body)
VALUES (@repository, @key, @provider, @event, @ref, @before, @after, @trace, @received_at, @status, @detail, sqlc.narg('finished_at'), @headers, @body)
ON CONFLICT (repository, key) DO NOTHING;

-- name: FinishDelivery :execrows
UPDATE delivery SET status = @status, detail = @detail, finished_at = sqlc.narg('finished_at') WHERE repository = @repository AND key = @key;

-- name: UnfinishedDeliveries :many
SELECT * FROM delivery WHERE status = 'received' ORDER BY received_at, repository, key LIMIT @max_rows;

-- name: GetDelivery :one
SELECT * FROM delivery WHERE repository = @repository AND key = @key;

-- name: ReplayDelivery :execrows
UPDATE delivery SET status = 'received', detail = @detail, finished_at = NULL
WHERE repository = @repository AND key = @key AND status <> 'received';

-- name: ClearVersions :exec
DELETE FROM version WHERE environment = @environment;

-- name: ClearIntervals :exec
DELETE FROM resource_interval WHERE environment = @environment;

-- name: ClearBodies :exec
DELETE FROM resource_body WHERE environment = @environment;

-- name: ClearStates :exec
DELETE FROM resource_state WHERE environment = @environment;

-- name: ClearActions :exec
DELETE FROM action WHERE environment = @environment;

-- name: ClearRunningActions :exec
DELETE FROM running_action WHERE environment = @environment;

-- name: ClearCommands :exec
DELETE FROM command WHERE environment = @environment;

-- name: ClearDryRuns :exec
DELETE FROM dryrun WHERE environment = @environment;

-- name: ClearCompiles :exec
DELETE FROM compile WHERE environment = @environment;

-- name: ClearAgents :exec
DELETE FROM agent WHERE environment = @environment;

-- name: ClearSessions :exec
DELETE FROM agent_session WHERE environment = @environment;

-- name: ClearParameters :exec
DELETE FROM parameter WHERE environment = @environment;

-- name: ClearNotifications :exec
DELETE FROM notification WHERE environment = @environment;

-- Whoever owned the environment's scheduler is fenced off: what it still holds in memory must not come back.
-- name: BreakLease :exec
UPDATE lease SET owner = '', expires_at = NULL, token = token + 1, processed = 0 WHERE environment = @environment;
