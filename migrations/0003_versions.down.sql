DROP TABLE file;
DROP TABLE unknown;
DROP TABLE resource_interval;
DROP TABLE resource_body;
DROP TABLE deleted_version;
DROP TABLE version;
