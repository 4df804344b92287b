DROP TABLE notification;
DROP TABLE parameter;
DROP TABLE agent_token;
DROP TABLE agent;
DROP TABLE agent_session;
