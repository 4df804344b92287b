DROP TABLE compile_stage;
DROP TABLE compile;
