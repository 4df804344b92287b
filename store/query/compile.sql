-- name: InsertCompile :execrows
INSERT INTO compile (id, environment, status, merge_key, follows_branch, revision_repository, revision_ref, revision_commit, revision_author,
    revision_message, revision_committed_at, reason, actor, trace, export, update_modules, remote_id, metadata, environment_variables,
    exporter_plugin, requested_at)
VALUES (@id, @environment, 'queued', @merge_key, @follows_branch, @revision_repository, @revision_ref, @revision_commit, @revision_author,
    @revision_message, sqlc.narg('revision_committed_at'), @reason, @actor, @trace, @export, @update_modules, @remote_id, @metadata,
    @environment_variables, @exporter_plugin, @requested_at)
ON CONFLICT (id) DO NOTHING;

-- A waiting job that follows the branch takes the newest revision; the time of its first request stays.
-- name: QueueFollowingCompile :one
INSERT INTO compile (id, environment, status, merge_key, follows_branch, revision_repository, revision_ref, revision_commit, revision_author,
    revision_message, revision_committed_at, reason, actor, trace, export, update_modules, remote_id, metadata, environment_variables,
    exporter_plugin, requested_at)
VALUES (@id, @environment, 'queued', @merge_key, true, @revision_repository, @revision_ref, @revision_commit, @revision_author,
    @revision_message, sqlc.narg('revision_committed_at'), @reason, @actor, @trace, @export, @update_modules, @remote_id, @metadata,
    @environment_variables, @exporter_plugin, @requested_at)
ON CONFLICT (environment, merge_key) WHERE status = 'queued' AND follows_branch DO UPDATE
SET revision_repository = excluded.revision_repository, revision_ref = excluded.revision_ref, revision_commit = excluded.revision_commit,
    revision_author = excluded.revision_author, revision_message = excluded.revision_message,
    revision_committed_at = excluded.revision_committed_at, reason = excluded.reason, trace = excluded.trace
RETURNING id;

-- Jobs that are not tried again: their worker vanished too often, or after somebody asked to cancel them.
-- name: AbandonedCompiles :many
SELECT c.* FROM compile c JOIN environment e ON e.id = c.environment
WHERE c.status = 'running' AND c.lease_until <= @now::timestamptz AND (c.attempt >= @max_attempts::integer OR c.cancel_requested)
ORDER BY c.id
FOR NO KEY UPDATE OF c, e SKIP LOCKED;

-- The next job: one whose worker vanished, else the oldest that waits in an environment with no running job, not halted, with
-- its backoff passed. Locking the environment too keeps two workers from two jobs of one environment; SKIP LOCKED sends the
-- second worker on to other environments instead of waiting.
-- name: NextCompile :one
SELECT c.* FROM compile c JOIN environment e ON e.id = c.environment
WHERE NOT e.halted AND (
    (c.status = 'running' AND c.lease_until <= @now::timestamptz)
    OR (c.status = 'queued'
        AND NOT EXISTS (SELECT 1 FROM compile r WHERE r.environment = c.environment AND r.status = 'running')
        AND @now::timestamptz >= CASE
            WHEN e.last_compile_at IS NULL THEN '-infinity'::timestamptz
            WHEN e.last_compile_at >= c.requested_at THEN c.requested_at
            ELSE e.last_compile_at
        END + make_interval(secs => CASE WHEN jsonb_typeof(e.settings -> 'recompile_backoff') = 'number'
            THEN (e.settings ->> 'recompile_backoff')::double precision ELSE 0.1 END)))
ORDER BY c.status = 'queued', c.requested_at, c.id
LIMIT 1
FOR NO KEY UPDATE OF c, e SKIP LOCKED;

-- Equal waiting jobs, oldest first; locked, so that none is cancelled or given a revision meanwhile.
-- name: EqualQueuedCompiles :many
SELECT * FROM compile
WHERE environment = @environment AND merge_key = @merge_key AND status = 'queued' AND id <> @id
ORDER BY requested_at, id
FOR NO KEY UPDATE;

-- name: MergeCompiles :exec
UPDATE compile SET status = 'merged', substitute = @substitute::uuid, started_at = @now::timestamptz, follows_branch = false
WHERE id = ANY(@ids::uuid[]);

-- name: StartCompile :one
UPDATE compile
SET status = 'running', worker = @worker, attempt = attempt + 1, started_at = @now::timestamptz, lease_until = @lease_until::timestamptz,
    follows_branch = false,
    update_modules = @update_modules, revision_repository = @revision_repository, revision_ref = @revision_ref,
    revision_commit = @revision_commit, revision_author = @revision_author, revision_message = @revision_message,
    revision_committed_at = sqlc.narg('revision_committed_at')
WHERE id = @id
RETURNING *;

-- name: DeleteCompileStages :exec
DELETE FROM compile_stage WHERE compile = @compile;

-- name: ExtendCompile :one
UPDATE compile SET lease_until = @lease_until::timestamptz
WHERE id = @id AND worker = @worker AND status = 'running'
RETURNING cancel_requested;

-- name: SetCompileRevision :execrows
UPDATE compile
SET revision_repository = @revision_repository, revision_ref = @revision_ref, revision_commit = @revision_commit,
    revision_author = @revision_author, revision_message = @revision_message, revision_committed_at = sqlc.narg('revision_committed_at')
WHERE id = @id AND worker = @worker AND status = 'running';

-- name: SaveCompileStage :execrows
INSERT INTO compile_stage (compile, ordinal, name, command, started_at, finished_at, stdout, stderr, exit_code)
SELECT c.id, @ordinal, @name, @command, sqlc.narg('started_at'), sqlc.narg('finished_at'), @stdout, @stderr, sqlc.narg('exit_code')
FROM compile c WHERE c.id = @compile AND c.worker = @worker AND c.status = 'running'
ON CONFLICT (compile, ordinal) DO UPDATE
SET name = excluded.name, command = excluded.command, started_at = excluded.started_at, finished_at = excluded.finished_at,
    stdout = excluded.stdout, stderr = excluded.stderr, exit_code = excluded.exit_code;

-- name: LockCompile :one
SELECT * FROM compile WHERE id = @id FOR NO KEY UPDATE;

-- name: FinishCompile :exec
UPDATE compile
SET status = @status, finished_at = @finished_at, lease_until = NULL, diagnostics = @diagnostics, excerpts = @excerpts, version = @version,
    digest = @digest, error = @error, peak_memory = @peak_memory, cpu_time = @cpu_time
WHERE id = @id;

-- name: FinishMergedCompiles :exec
UPDATE compile SET finished_at = @finished_at, version = @version WHERE substitute = @substitute::uuid AND status = 'merged';

-- name: EnvironmentOfCompile :one
SELECT environment FROM compile WHERE id = @id;

-- name: SetLastCompile :exec
UPDATE environment SET last_compile_at = @at::timestamptz WHERE id = @id;

-- name: CancelQueuedCompile :execrows
UPDATE compile SET status = 'cancelled', finished_at = @now::timestamptz, error = 'cancelled before it began' WHERE id = @id AND status = 'queued';

-- name: RequestCompileCancel :execrows
UPDATE compile SET cancel_requested = true WHERE id = @id AND status = 'running';

-- name: PurgeCompileReports :execrows
DELETE FROM compile c USING environment e
WHERE e.id = c.environment AND NOT e.halted AND c.finished_at < @before::timestamptz;

-- name: GetCompile :one
SELECT * FROM compile WHERE id = @id;

-- name: GetCompileStages :many
SELECT * FROM compile_stage WHERE compile = @compile ORDER BY ordinal;

-- name: OpenCompiles :many
SELECT * FROM compile WHERE environment = @environment AND status IN ('queued', 'running')
ORDER BY status = 'queued', requested_at, id;

-- name: CompilingEnvironments :many
SELECT environment FROM compile WHERE status = 'running' ORDER BY environment;

-- name: InsertNotification :exec
INSERT INTO notification (id, environment, created_at, title, message, severity, uri, job)
VALUES (@id, @environment, @created_at, @title, @message, @severity, @uri, sqlc.narg('job'));

-- name: CompileParameters :many
SELECT resource_id, name, value FROM parameter WHERE environment = @environment ORDER BY resource_id, name;
