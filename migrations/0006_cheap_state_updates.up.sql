-- A deploy changes the state of a resource twice, and its status each time. With an index on the status each of these updates
-- writes into all indexes of the table; without one PostgreSQL keeps the new row next to the old one and writes into none.
-- Lists by status read the environment's states and sort them.
DROP INDEX resource_state_status;
ALTER TABLE resource_state SET (fillfactor = 70);
