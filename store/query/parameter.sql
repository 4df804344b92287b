-- name: GetParameter :one
SELECT * FROM parameter WHERE environment = @environment AND resource_id = @resource_id AND name = @name;

-- name: ResourceFacts :many
SELECT * FROM parameter WHERE environment = @environment AND resource_id = @resource_id ORDER BY name;

-- name: DeleteParameter :execrows
DELETE FROM parameter WHERE environment = @environment AND resource_id = @resource_id AND name = @name;

-- name: SaveParameter :one
INSERT INTO parameter (id, environment, name, resource_id, value, source, updated_at, metadata, expires)
VALUES (@id, @environment, @name, @resource_id, @value, @source, @updated_at, @metadata, @expires)
ON CONFLICT (environment, resource_id, name) DO UPDATE
SET value = excluded.value, source = excluded.source, updated_at = excluded.updated_at, metadata = excluded.metadata, expires = excluded.expires
RETURNING *;

-- name: GetNotification :one
SELECT * FROM notification WHERE environment = @environment AND id = @id;

-- name: UpdateNotification :one
UPDATE notification SET read = coalesce(sqlc.narg('read'), read), cleared = coalesce(sqlc.narg('cleared'), cleared)
WHERE environment = @environment AND id = @id RETURNING *;
