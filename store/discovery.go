package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// SaveDiscovered inserts or replaces discovered resources; of two of one id the later counts. [model.ErrNotFound]: no such
// environment; [model.ErrInvalid]: a malformed id.
func (s *Store) SaveDiscovered(ctx context.Context, env model.EnvironmentID, found []model.DiscoveredResource, now time.Time) error {
	p := sqlgen.SaveDiscoveredParams{Environment: env.UUID, Now: now}
	at := map[model.ResourceID]int{}
	for _, d := range found {
		typ, agent, value, ok := splitID(d.Resource)
		if !ok {
			return fmt.Errorf("resource id %q is not of the form ns::Type[agent,attribute=value]: %w", d.Resource, model.ErrInvalid)
		}
		if i, twice := at[d.Resource]; twice {
			p.Attributes[i], p.Discoveries[i] = text(string(d.Values)), string(d.Discovery)
			continue
		}
		at[d.Resource] = len(p.Ids)
		p.Ids = append(p.Ids, text(string(d.Resource)))
		p.Types = append(p.Types, text(typ))
		p.Agents = append(p.Agents, text(agent))
		p.Values = append(p.Values, text(value))
		p.Attributes = append(p.Attributes, text(string(d.Values)))
		p.Discoveries = append(p.Discoveries, text(string(d.Discovery)))
	}
	if len(p.Ids) == 0 {
		return nil
	}
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.GetEnvironment(ctx, env.UUID); err != nil {
			return notFound(err, "environment %s", env)
		}
		if err := tx.Queries.SaveDiscovered(ctx, p); err != nil {
			return fmt.Errorf("storing discovered resources: %w", classify(err))
		}
		return nil
	})
}

func discoveredOf(d sqlgen.DiscoveredResource, managed bool) model.DiscoveredResource {
	return model.DiscoveredResource{
		Resource: model.ResourceID(d.ResourceID), Values: d.Attributes, Discovery: model.ResourceID(d.DiscoveryResourceID),
		At: d.DiscoveredAt.UTC(), Managed: managed,
	}
}

// Discovered returns one discovered resource or [model.ErrNotFound].
func (s *Store) Discovered(ctx context.Context, env model.EnvironmentID, id model.ResourceID) (out model.DiscoveredResource, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		version, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		row, err := tx.GetDiscovered(ctx, version, env.UUID, text(string(id)))
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("discovered resource %s: %w", id, model.ErrNotFound)
		}
		out = discoveredOf(row.DiscoveredResource, row.Managed)
		return err
	})
	return out, err
}

// DiscoveredResources lists discovered resources. Sort: discovered_resource_id, which is also the id column, resource_type,
// agent, resource_id_value.
func (s *Store) DiscoveredResources(ctx context.Context, env model.EnvironmentID, f model.DiscoveryFilter, p model.Page) (model.List[model.DiscoveredResource], error) {
	return list(ctx, s, p, func(tx *Tx) (*listing[model.DiscoveredResource], *filter, error) {
		version, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return nil, nil, err
		}
		w := &filter{}
		w.and("d.environment = ?", env.UUID)
		w.contains("d.type", f.Types)
		w.contains("d.agent", f.Agents)
		w.contains("d.value", f.Values)
		if f.Managed != nil {
			w.and(`EXISTS (SELECT 1 FROM resource_interval i WHERE i.environment = d.environment AND i.resource_id = d.resource_id
				AND i.from_version <= ?::integer AND i.until_version > ?::integer) = ?`, version, version, *f.Managed)
		}
		id := column{"d.resource_id", kindText}
		managed := "0"
		if version > 0 {
			managed = fmt.Sprint(version)
		}
		return &listing[model.DiscoveredResource]{
			name: "discovered resources", from: "discovered_resource d", id: id, byDefault: "discovered_resource_id",
			columns: `p.environment, p.resource_id, p.attributes, p.discovery_resource_id, p.discovered_at, EXISTS (SELECT 1 FROM resource_interval i
				WHERE i.environment = p.environment AND i.resource_id = p.resource_id AND i.from_version <= ` + managed + ` AND i.until_version > ` + managed + `)`,
			sorts: map[string]column{
				"discovered_resource_id": id, "resource_type": {"d.type", kindText}, "agent": {"d.agent", kindText},
				"resource_id_value": {"d.value", kindText},
			},
			scan: func(row pgx.CollectableRow) (model.DiscoveredResource, error) {
				var (
					d       sqlgen.DiscoveredResource
					env     uuid.UUID
					managed bool
				)
				err := row.Scan(&env, &d.ResourceID, &d.Attributes, &d.DiscoveryResourceID, &d.DiscoveredAt, &managed)
				return discoveredOf(d, managed), err
			},
		}, w, nil
	})
}

// DeleteDiscovered removes discovered resources and returns how many there were; unknown ids are passed over.
func (s *Store) DeleteDiscovered(ctx context.Context, env model.EnvironmentID, ids []model.ResourceID) (n int, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		deleted, err := tx.Queries.DeleteDiscovered(ctx, env.UUID, strs[string](ids))
		n = int(deleted)
		return err
	})
	return n, err
}
