DROP TABLE code_upload;
