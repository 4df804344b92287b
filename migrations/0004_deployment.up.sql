-- What became of the desired state.

-- The owner of an environment's scheduler. token grows with each change of owner; a write with an older one is refused.
CREATE TABLE lease (
    environment uuid PRIMARY KEY REFERENCES environment (id) ON DELETE CASCADE,
    owner       text NOT NULL,
    token       bigint NOT NULL CHECK (token >= 0),
    expires_at  timestamptz,
    -- The version that the scheduler has absorbed last.
    processed   integer NOT NULL DEFAULT 0 CHECK (processed >= 0),
    CHECK ((owner = '') = (expires_at IS NULL))
);

CREATE TABLE resource_state (
    environment             uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    resource_id             text COLLATE "C" NOT NULL,
    type                    text COLLATE "C" NOT NULL,
    agent                   text COLLATE "C" NOT NULL,
    value                   text COLLATE "C" NOT NULL,
    compliance              text NOT NULL CHECK (compliance IN ('compliant', 'has_update', 'non_compliant', 'undefined')),
    last_run                text NOT NULL CHECK (last_run IN ('new', 'successful', 'failed', 'skipped')),
    blocked                 text NOT NULL CHECK (blocked IN ('not_blocked', 'blocked', 'temporarily_blocked')),
    deploying               boolean NOT NULL,
    intent_hash             text NOT NULL,
    deployed_hash           text NOT NULL,
    deployed_version        integer NOT NULL,
    last_outcome            text NOT NULL CHECK (last_outcome IN ('', 'deployed', 'failed', 'skipped', 'skipped_for_dependency', 'unavailable', 'non_compliant', 'dry', 'cancelled')),
    last_run_at             timestamptz,
    last_success            timestamptz,
    last_produced_events    timestamptz,
    orphaned_after          integer NOT NULL CHECK (orphaned_after >= 0),
    failures                integer NOT NULL CHECK (failures >= 0),
    -- The word shown to people; the same derivation as model.ResourceState.Status.
    status                  text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN orphaned_after <> 0 THEN 'orphaned'
            WHEN deploying THEN 'deploying'
            WHEN compliance = 'undefined' THEN 'undefined'
            WHEN blocked = 'blocked' THEN 'skipped_for_undefined'
            WHEN deployed_hash = '' OR deployed_hash <> intent_hash THEN 'available'
            WHEN last_outcome IN ('failed', 'cancelled') THEN 'failed'
            WHEN last_outcome IN ('skipped', 'skipped_for_dependency') THEN 'skipped'
            WHEN last_outcome IN ('deployed', 'unavailable', 'non_compliant') THEN last_outcome
            ELSE 'available'
        END
    ) STORED,
    PRIMARY KEY (environment, resource_id)
) WITH (fillfactor = 80);

CREATE INDEX resource_state_type ON resource_state (environment, type, resource_id);
CREATE INDEX resource_state_agent ON resource_state (environment, agent, resource_id);
CREATE INDEX resource_state_value ON resource_state (environment, value, resource_id);
CREATE INDEX resource_state_status ON resource_state (environment, status, resource_id);

-- One run of a handler, or another thing done. resource_id is empty for what concerns a whole version.
CREATE TABLE action (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    version     integer NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('store', 'deploy', 'dryrun', 'getfact', 'other')),
    reason      text NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    outcome     text NOT NULL,
    change      text NOT NULL CHECK (change IN ('', 'nochange', 'created', 'purged', 'updated')),
    changes     json NOT NULL,
    trace       text COLLATE "C" NOT NULL,
    code        text NOT NULL
);

CREATE INDEX action_started ON action (environment, started_at, id);
CREATE INDEX action_resource ON action (environment, resource_id, started_at, id);
CREATE INDEX action_trace ON action (trace) WHERE trace <> '';
CREATE INDEX action_running ON action (environment, started_at, id) WHERE finished_at IS NULL;
CREATE INDEX action_version ON action (environment, version);

CREATE TABLE action_log (
    action    uuid NOT NULL REFERENCES action (id) ON DELETE CASCADE,
    seq       bigint GENERATED ALWAYS AS IDENTITY,
    level     text NOT NULL,
    message   text NOT NULL,
    kwargs    json NOT NULL,
    logged_at timestamptz NOT NULL,
    PRIMARY KEY (action, seq)
);

-- Requests of users to a scheduler; they outlive a crash and reach whichever server owns the environment.
CREATE TABLE command (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    kind        text NOT NULL CHECK (kind IN ('deploy', 'repair', 'dryrun', 'refresh')),
    agents      text[] NOT NULL,
    resources   text[] NOT NULL,
    version     integer NOT NULL,
    dryrun      uuid,
    reason      text NOT NULL,
    actor       text NOT NULL,
    trace       text COLLATE "C" NOT NULL,
    created_at  timestamptz NOT NULL,
    done_at     timestamptz
);

CREATE INDEX command_pending ON command (environment, created_at, id) WHERE done_at IS NULL;
CREATE INDEX command_environment ON command (environment, created_at);
CREATE INDEX command_trace ON command (trace) WHERE trace <> '';

CREATE TABLE dryrun (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL,
    version     integer NOT NULL,
    created_at  timestamptz NOT NULL,
    total       integer NOT NULL CHECK (total >= 0),
    todo        integer NOT NULL CHECK (todo BETWEEN 0 AND total),
    FOREIGN KEY (environment, version) REFERENCES version (environment, number) ON DELETE CASCADE
);

CREATE INDEX dryrun_created ON dryrun (environment, created_at, id);
CREATE INDEX dryrun_version ON dryrun (environment, version);

CREATE TABLE dryrun_resource (
    dryrun      uuid NOT NULL REFERENCES dryrun (id) ON DELETE CASCADE,
    resource_id text COLLATE "C" NOT NULL,
    status      text NOT NULL,
    changes     json NOT NULL,
    message     text NOT NULL,
    PRIMARY KEY (dryrun, resource_id)
);
