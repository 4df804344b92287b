DROP TABLE dryrun_resource;
DROP TABLE dryrun;
DROP TABLE command;
DROP TABLE action_log;
DROP TABLE action;
DROP TABLE resource_state;
DROP TABLE lease;
