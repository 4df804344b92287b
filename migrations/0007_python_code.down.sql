DROP TABLE discovered_resource;
DELETE FROM command WHERE kind = 'facts';
ALTER TABLE command DROP CONSTRAINT command_kind_check;
ALTER TABLE command ADD CONSTRAINT command_kind_check CHECK (kind IN ('deploy', 'repair', 'dryrun', 'refresh'));
DROP TABLE version_code;
DROP TABLE code_plan;
