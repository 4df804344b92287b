-- Projects, repositories and environments. Text that is sorted or compared for equality only is COLLATE "C": cheap, and the
-- same order on every machine. Times are always written by the caller.

CREATE TABLE project (
    id   uuid PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE CHECK (name <> '')
);

-- Secrets are sealed by the store (AES-256-GCM bound to row and column); an empty value is an absent secret.
CREATE TABLE repository (
    name               text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z0-9._-]+$'),
    url                text COLLATE "C" NOT NULL UNIQUE CHECK (url <> ''),
    provider           text NOT NULL CHECK (provider IN ('', 'github', 'gitlab', 'gitea', 'forgejo', 'bitbucket', 'bitbucket-dc', 'generic')),
    webhook_secrets    bytea[] NOT NULL,
    username           text NOT NULL,
    password           bytea NOT NULL,
    ssh_key            bytea NOT NULL,
    ssh_key_passphrase bytea NOT NULL,
    known_hosts        text NOT NULL,
    poll               text NOT NULL,
    last_synced_at     timestamptz,
    last_error         text NOT NULL DEFAULT '',
    sync_requested_at  timestamptz
);

CREATE TABLE environment (
    id                    uuid PRIMARY KEY,
    project               uuid NOT NULL REFERENCES project (id),
    name                  text COLLATE "C" NOT NULL CHECK (name <> ''),
    description           text NOT NULL,
    icon                  text NOT NULL,
    repo_url              text COLLATE "C" NOT NULL,
    repo_branch           text NOT NULL,
    repo_path             text NOT NULL,
    repository            text COLLATE "C" REFERENCES repository (name) ON UPDATE CASCADE,
    settings              jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(settings) = 'object'),
    -- The version counter: the highest number ever handed out. It never goes down.
    last_version          integer NOT NULL DEFAULT 0 CHECK (last_version >= 0),
    halted                boolean NOT NULL DEFAULT false,
    -- What generated passwords and the like derive from, so that each compile makes the same ones. Not to be shown.
    seed                  uuid NOT NULL DEFAULT gen_random_uuid(),
    -- When the last compile ended; the backoff of the next one counts from it.
    last_compile_at       timestamptz,
    revision_ref          text NOT NULL DEFAULT '',
    revision_commit       text NOT NULL DEFAULT '',
    revision_author       text NOT NULL DEFAULT '',
    revision_message      text NOT NULL DEFAULT '',
    revision_committed_at timestamptz,
    UNIQUE (project, name),
    CHECK ((repo_url = '') = (repository IS NULL))
);

CREATE INDEX environment_repository ON environment (repository) WHERE repository IS NOT NULL;

-- A delivery is stored before the webhook is answered.
CREATE TABLE delivery (
    repository  text COLLATE "C" NOT NULL REFERENCES repository (name) ON DELETE CASCADE ON UPDATE CASCADE,
    key         text COLLATE "C" NOT NULL CHECK (key <> ''),
    provider    text NOT NULL,
    event       text NOT NULL,
    ref         text NOT NULL,
    before      text NOT NULL,
    after       text NOT NULL,
    trace       text COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL,
    status      text NOT NULL CHECK (status IN ('received', 'ignored', 'synced', 'failed')),
    detail      text NOT NULL,
    finished_at timestamptz,
    headers     json NOT NULL,
    body        bytea NOT NULL,
    PRIMARY KEY (repository, key),
    CHECK ((status = 'received') = (finished_at IS NULL))
);

CREATE INDEX delivery_unfinished ON delivery (received_at, repository, key) WHERE status = 'received';
CREATE INDEX delivery_received ON delivery (received_at, key);
CREATE INDEX delivery_repository_received ON delivery (repository, received_at, key);
CREATE INDEX delivery_trace ON delivery (trace) WHERE trace <> '';
