-- Agents, their sessions and tokens; parameters and facts; notifications.

CREATE TABLE agent_session (
    id           text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    environment  uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    -- The server that holds the connection.
    server       text COLLATE "C" NOT NULL,
    hostname     text NOT NULL,
    process      text NOT NULL,
    agents       text[] NOT NULL,
    version      text NOT NULL,
    autostarted  boolean NOT NULL,
    connected_at timestamptz NOT NULL,
    lost_at      timestamptz
);

CREATE INDEX agent_session_environment ON agent_session (environment, connected_at);
CREATE INDEX agent_session_connected ON agent_session (connected_at, id);
CREATE INDEX agent_session_live ON agent_session (server) WHERE lost_at IS NULL;

CREATE TABLE agent (
    environment       uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    name              text COLLATE "C" NOT NULL CHECK (name <> ''),
    paused            boolean NOT NULL DEFAULT false,
    -- What resume does to the agent, noted when the environment is halted.
    unpause_on_resume boolean,
    up                boolean NOT NULL DEFAULT false,
    process           text COLLATE "C" NOT NULL DEFAULT '',
    hostname          text NOT NULL DEFAULT '',
    session           text COLLATE "C" NOT NULL DEFAULT '',
    since             timestamptz,
    PRIMARY KEY (environment, name)
);

CREATE INDEX agent_of_session ON agent (session) WHERE session <> '';

-- A token is kept as its SHA-256 only.
CREATE TABLE agent_token (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    digest      bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    description text NOT NULL,
    one_time    boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    created_by  text NOT NULL,
    used_at     timestamptz,
    revoked_at  timestamptz
);

CREATE INDEX agent_token_environment ON agent_token (environment, created_at);

-- A parameter of the environment (resource_id empty) or a fact of a resource.
CREATE TABLE parameter (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    name        text COLLATE "C" NOT NULL CHECK (name <> ''),
    resource_id text COLLATE "C" NOT NULL,
    value       text NOT NULL,
    source      text COLLATE "C" NOT NULL,
    updated_at  timestamptz NOT NULL,
    metadata    jsonb NOT NULL,
    expires     boolean NOT NULL,
    UNIQUE (environment, resource_id, name)
);

CREATE INDEX parameter_name ON parameter (environment, name, id);

CREATE TABLE notification (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    created_at  timestamptz NOT NULL,
    title       text NOT NULL,
    message     text NOT NULL,
    severity    text NOT NULL CHECK (severity IN ('message', 'info', 'success', 'warning', 'error')),
    uri         text NOT NULL,
    job         uuid,
    read        boolean NOT NULL DEFAULT false,
    cleared     boolean NOT NULL DEFAULT false
);

CREATE INDEX notification_created ON notification (environment, created_at, id);
