package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// maxRenew is how many resources are asked for facts at once; the others follow the next time.
const maxRenew = 1000

// RenewFacts queues a command for facts that are older than renew, if they expire, and for unknown inputs that are waited for,
// in every environment that is not halted. It returns the number of commands.
func (s *Store) RenewFacts(ctx context.Context, now time.Time, renew time.Duration) (n int, err error) {
	envs, err := s.SchedulableEnvironments(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, env := range envs {
		version, err := s.ReleasedVersion(ctx, env)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids, err := s.read().FactsToRenew(ctx, sqlgen.FactsToRenewParams{Environment: env.UUID, Version: int32Of(version), Before: now.Add(-renew), Most: maxRenew})
		if err != nil {
			errs = append(errs, classify(err))
			continue
		}
		if len(ids) == 0 {
			continue
		}
		// The id is the same for all servers that find this at about the same time.
		id := uuid.NewSHA1(env.UUID, fmt.Appendf(nil, "facts are renewed %d", now.Unix()/max(1, int64(renew.Seconds()))))
		err = s.EnqueueCommand(ctx, model.Command{
			ID: model.CommandID{UUID: id}, Environment: env, Kind: model.CommandFacts, Resources: strs[model.ResourceID](ids),
			Reason: "facts are read again after a while", Actor: "server", Trace: model.NewTraceID(), CreatedAt: now,
		})
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// FactVersion tells in which version a resource is asked for its facts: 0 for the newest released one, if that has it, else the newest
// of those stored since. [model.ErrNotFound]: none of them has it.
func (s *Store) FactVersion(ctx context.Context, env model.EnvironmentID, resource model.ResourceID) (int, error) {
	v, err := s.read().FactVersion(ctx, env.UUID, string(resource))
	if err != nil {
		return 0, notFound(err, "resource %s in the newest released version of environment %s, or in a newer one", resource, env)
	}
	if v.Released {
		return 0, nil
	}
	return int(v.Number), nil
}

// askForFacts queues a command for the facts that the model of a version, which is being released, waits for: once they are
// there the model is compiled again.
func (tx *Tx) askForFacts(ctx context.Context, env model.EnvironmentID, number int, now time.Time) error {
	ids, err := tx.AwaitedResources(ctx, env.UUID, int32Of(number), maxRenew)
	if err != nil || len(ids) == 0 {
		return err
	}
	return tx.enqueue(ctx, model.Command{
		ID: model.CommandID{UUID: newID()}, Environment: env, Kind: model.CommandFacts, Resources: strs[model.ResourceID](ids),
		Reason: fmt.Sprintf("version %d waits for facts", number), Actor: "server", Trace: model.NewTraceID(), CreatedAt: now,
	})
}
