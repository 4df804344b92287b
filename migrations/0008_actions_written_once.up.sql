-- A deploy wrote its action twice and each line of its log as a row: an update that changes finished_at writes into every index of
-- the table, and each line cost a row, an index entry and a check of its reference. Actions now enter their table when they have
-- ended, with their log; until then they are in a small table of their own.
CREATE TABLE running_action (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
    version     integer NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('store', 'deploy', 'dryrun', 'getfact', 'other')),
    reason      text NOT NULL,
    started_at  timestamptz NOT NULL,
    trace       text COLLATE "C" NOT NULL,
    log         text NOT NULL
);

-- One JSON object a line: level, time, message, and kwargs as the text of an object.
ALTER TABLE action ADD COLUMN log text NOT NULL DEFAULT '';

UPDATE action a SET log = l.log
FROM (SELECT action, string_agg(json_build_object('level', level, 'time', logged_at, 'message', message, 'kwargs', kwargs::text)::text, E'\n' ORDER BY seq) AS log
    FROM action_log GROUP BY action) l
WHERE l.action = a.id;

INSERT INTO running_action (id, environment, version, resource_id, kind, reason, started_at, trace, log)
SELECT id, environment, version, resource_id, kind, reason, started_at, trace, log FROM action WHERE finished_at IS NULL;

DELETE FROM action WHERE finished_at IS NULL;

DROP TABLE action_log;
DROP INDEX action_running;
ALTER TABLE action ALTER COLUMN log DROP DEFAULT, ALTER COLUMN finished_at SET NOT NULL;

-- All actions, whether they have ended or not.
CREATE VIEW any_action AS
SELECT id, environment, version, resource_id, kind, reason, started_at, finished_at, outcome, change, changes, trace, code, log FROM action
UNION ALL
SELECT id, environment, version, resource_id, kind, reason, started_at, NULL::timestamptz, ''::text, ''::text, '{}'::json, trace, ''::text, log FROM running_action;
