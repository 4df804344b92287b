-- Compile jobs: the queue and the archive of reports are one table.

CREATE TABLE compile (
    id                    uuid PRIMARY KEY,
    environment           uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    status                text NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'merged')),
    -- Jobs of an environment with equal keys ask for the same work and may be merged.
    merge_key             bytea NOT NULL,
    -- The job was made by a push or a poll: while it waits, a newer revision takes the place of its own.
    follows_branch        boolean NOT NULL,
    revision_repository   text NOT NULL,
    revision_ref          text NOT NULL,
    revision_commit       text NOT NULL,
    revision_author       text NOT NULL,
    revision_message      text NOT NULL,
    revision_committed_at timestamptz,
    reason                text NOT NULL,
    actor                 text NOT NULL,
    trace                 text COLLATE "C" NOT NULL,
    export                boolean NOT NULL,
    update_modules        boolean NOT NULL,
    remote_id             text NOT NULL,
    metadata              json NOT NULL,
    environment_variables json NOT NULL,
    exporter_plugin       text NOT NULL,
    requested_at          timestamptz NOT NULL,
    started_at            timestamptz,
    finished_at           timestamptz,
    attempt               integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    worker                text NOT NULL DEFAULT '',
    lease_until           timestamptz,
    cancel_requested      boolean NOT NULL DEFAULT false,
    substitute            uuid REFERENCES compile (id) ON DELETE CASCADE,
    diagnostics           json NOT NULL DEFAULT '[]',
    excerpts              json NOT NULL DEFAULT '{}',
    version               integer NOT NULL DEFAULT 0 CHECK (version >= 0),
    digest                text NOT NULL DEFAULT '',
    error                 text NOT NULL DEFAULT '',
    peak_memory           bigint NOT NULL DEFAULT 0,
    cpu_time              bigint NOT NULL DEFAULT 0, -- nanoseconds
    CHECK ((status = 'merged') = (substitute IS NOT NULL)),
    CHECK ((status = 'running') = (lease_until IS NOT NULL)),
    CHECK (status <> 'running' OR (started_at IS NOT NULL AND worker <> '')),
    CHECK (status NOT IN ('succeeded', 'failed', 'cancelled') OR finished_at IS NOT NULL),
    CHECK (status NOT IN ('queued', 'running') OR finished_at IS NULL)
);

-- One running compile per environment, whatever the workers do.
CREATE UNIQUE INDEX compile_one_running ON compile (environment) WHERE status = 'running';
-- At most one waiting job follows the branch: a burst of pushes is one compile.
CREATE UNIQUE INDEX compile_one_following ON compile (environment, merge_key) WHERE status = 'queued' AND follows_branch;
CREATE INDEX compile_queue ON compile (requested_at, id) WHERE status = 'queued';
CREATE INDEX compile_open ON compile (environment, requested_at) WHERE status IN ('queued', 'running');
CREATE INDEX compile_lease ON compile (lease_until) WHERE status = 'running';
CREATE INDEX compile_requested ON compile (environment, requested_at, id);
CREATE INDEX compile_finished ON compile (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX compile_substitute ON compile (substitute) WHERE substitute IS NOT NULL;
CREATE INDEX compile_version ON compile (environment, version) WHERE version > 0;
CREATE INDEX compile_trace ON compile (trace) WHERE trace <> '';

CREATE TABLE compile_stage (
    compile     uuid NOT NULL REFERENCES compile (id) ON DELETE CASCADE,
    ordinal     integer NOT NULL CHECK (ordinal >= 0),
    name        text NOT NULL,
    command     text NOT NULL,
    started_at  timestamptz,
    finished_at timestamptz,
    stdout      text NOT NULL,
    stderr      text NOT NULL,
    exit_code   integer,
    PRIMARY KEY (compile, ordinal)
);
