DROP TABLE delivery;
DROP TABLE environment;
DROP TABLE repository;
DROP TABLE project;
