DROP VIEW any_action;
ALTER TABLE action ALTER COLUMN finished_at DROP NOT NULL;

INSERT INTO action (id, environment, version, resource_id, kind, reason, started_at, outcome, change, changes, trace, code, log)
SELECT id, environment, version, resource_id, kind, reason, started_at, '', '', '{}', trace, '', log FROM running_action;

CREATE INDEX action_running ON action (environment, started_at, id) WHERE finished_at IS NULL;

CREATE TABLE action_log (
    action    uuid NOT NULL REFERENCES action (id) ON DELETE CASCADE,
    seq       bigint GENERATED ALWAYS AS IDENTITY,
    level     text NOT NULL,
    message   text NOT NULL,
    kwargs    json NOT NULL,
    logged_at timestamptz NOT NULL,
    PRIMARY KEY (action, seq)
);

INSERT INTO action_log (action, level, message, kwargs, logged_at)
SELECT a.id, l.line ->> 'level', l.line ->> 'message', coalesce(l.line ->> 'kwargs', '{}')::json, (l.line ->> 'time')::timestamptz
FROM action a, LATERAL (SELECT t::json AS line, n FROM unnest(string_to_array(a.log, E'\n')) WITH ORDINALITY AS x (t, n)) l
ORDER BY a.started_at, a.id, l.n;

ALTER TABLE action DROP COLUMN log;
DROP TABLE running_action;
