-- Versions of the desired state. A resource is not stored per version but per interval of versions, so that a version costs
-- what it changes: a row is part of version N when from_version <= N < until_version. Both ends are numbers of versions that
-- exist; 2147483647 is "until further notice".

CREATE TABLE version (
    environment           uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    number                integer NOT NULL CHECK (number > 0),
    created_at            timestamptz NOT NULL,
    released_at           timestamptz,
    -- When everything was as the version wants it; noted when the next version takes over.
    converged_at          timestamptz,
    resources             integer NOT NULL CHECK (resources >= 0),
    added                 integer NOT NULL CHECK (added >= 0),
    changed               integer NOT NULL CHECK (changed >= 0),
    removed               integer NOT NULL CHECK (removed >= 0),
    digest                text NOT NULL,
    metadata              json NOT NULL,
    job                   uuid,
    revision_repository   text NOT NULL,
    revision_ref          text NOT NULL,
    revision_commit       text NOT NULL,
    revision_author       text NOT NULL,
    revision_message      text NOT NULL,
    revision_committed_at timestamptz,
    trace                 text COLLATE "C" NOT NULL,
    resource_sets         text[] NOT NULL,
    undeployable          text[] NOT NULL,
    blocked               text[] NOT NULL,
    PRIMARY KEY (environment, number)
);

CREATE INDEX version_released ON version (environment, number) WHERE released_at IS NOT NULL;
CREATE INDEX version_trace ON version (trace) WHERE trace <> '';

-- Numbers of versions that were deleted: a number names one content for ever.
CREATE TABLE deleted_version (
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    number      integer NOT NULL,
    PRIMARY KEY (environment, number)
);

-- What a resource asks for, once per environment and content. attributes is json, not jsonb: its text is hashed and must
-- come back byte for byte.
CREATE TABLE resource_body (
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
    attributes  json NOT NULL,
    requires    text[] NOT NULL,
    set_name    text NOT NULL,
    undefined   boolean NOT NULL,
    PRIMARY KEY (environment, hash)
);

-- The environment is checked by way of the body.
CREATE TABLE resource_interval (
    environment    uuid NOT NULL,
    resource_id    text COLLATE "C" NOT NULL,
    from_version   integer NOT NULL CHECK (from_version > 0),
    until_version  integer NOT NULL,
    type           text COLLATE "C" NOT NULL,
    agent          text COLLATE "C" NOT NULL,
    value          text COLLATE "C" NOT NULL,
    attribute_hash text NOT NULL,
    body           bytea NOT NULL,
    blocked        boolean NOT NULL,
    PRIMARY KEY (environment, resource_id, from_version),
    FOREIGN KEY (environment, body) REFERENCES resource_body (environment, hash),
    CHECK (from_version < until_version)
);

-- A resource is in a version at most once.
CREATE UNIQUE INDEX resource_interval_open ON resource_interval (environment, resource_id) WHERE until_version = 2147483647;
-- The two ends of the intervals: the difference of versions N and M is the rows that begin or end between them.
CREATE INDEX resource_interval_from ON resource_interval (environment, from_version);
CREATE INDEX resource_interval_until ON resource_interval (environment, until_version);
-- What an agent has to do now.
CREATE INDEX resource_interval_agent ON resource_interval (environment, agent) WHERE until_version = 2147483647;
-- Who still needs a body.
CREATE INDEX resource_interval_body ON resource_interval (environment, body);

CREATE TABLE unknown (
    environment uuid NOT NULL,
    version     integer NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    source      text NOT NULL,
    resolved    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (environment, version, resource_id, name),
    FOREIGN KEY (environment, version) REFERENCES version (environment, number) ON DELETE CASCADE
);

CREATE INDEX unknown_open ON unknown (environment, name, resource_id) WHERE NOT resolved;

-- Contents by the SHA-1 of their bytes, for all environments.
CREATE TABLE file (
    hash    text COLLATE "C" PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{40}$'),
    content bytea NOT NULL
);
