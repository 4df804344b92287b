-- The Python code that a version ships to agents: modules, where their packages come from, and which agent needs which manifest.
-- Versions with the same plan share it. The sources, and the manifests that agents fetch, are contents in file.
CREATE TABLE code_plan (
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
    body        json NOT NULL,
    PRIMARY KEY (environment, hash)
);

CREATE TABLE version_code (
    environment uuid NOT NULL,
    version     integer NOT NULL,
    plan        bytea NOT NULL,
    PRIMARY KEY (environment, version),
    FOREIGN KEY (environment, version) REFERENCES version (environment, number) ON DELETE CASCADE,
    FOREIGN KEY (environment, plan) REFERENCES code_plan (environment, hash)
);

-- Who still needs a plan.
CREATE INDEX version_code_plan ON version_code (environment, plan);

ALTER TABLE command DROP CONSTRAINT command_kind_check;
ALTER TABLE command ADD CONSTRAINT command_kind_check CHECK (kind IN ('deploy', 'repair', 'dryrun', 'refresh', 'facts'));

-- Resources that handlers found to exist, whether the model has them or not.
CREATE TABLE discovered_resource (
    environment           uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    resource_id           text COLLATE "C" NOT NULL,
    type                  text COLLATE "C" NOT NULL,
    agent                 text COLLATE "C" NOT NULL,
    value                 text COLLATE "C" NOT NULL,
    attributes            json NOT NULL,
    discovery_resource_id text COLLATE "C" NOT NULL,
    discovered_at         timestamptz NOT NULL,
    PRIMARY KEY (environment, resource_id)
);
