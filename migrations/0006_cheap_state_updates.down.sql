ALTER TABLE resource_state SET (fillfactor = 80);
CREATE INDEX resource_state_status ON resource_state (environment, status, resource_id);
