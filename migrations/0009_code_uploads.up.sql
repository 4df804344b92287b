-- Code that clients of older generations send ahead of the version that it is for. Storing the version takes it.
CREATE TABLE code_upload (
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    version     integer NOT NULL CHECK (version > 0),
    modules     json NOT NULL,
    uploaded_at timestamptz NOT NULL,
    PRIMARY KEY (environment, version)
);
