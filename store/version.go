package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// untilFurther is the end of an interval that has none yet.
const untilFurther = 1<<31 - 1

// ReserveVersion increments the version counter of an environment and returns it, or fails with [model.ErrNotFound].
func (s *Store) ReserveVersion(ctx context.Context, env model.EnvironmentID) (number int, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		n, err := tx.NextVersionNumber(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		number = int(n)
		return nil
	})
	return number, err
}

// StoreVersion stores an uploaded desired state under its Number (0: the next one) with its files, and releases it if release
// is set and no newer one is released. It returns the number. A file without content must be stored already.
//
// [model.ErrNotFound]: no such environment; [model.ErrConflict]: the number is or was in use; [model.ErrInvalid]: the number
// was never reserved, a requirement is not in the state, a resource comes twice or its id is malformed, or a file is neither
// stored nor given.
func (s *Store) StoreVersion(ctx context.Context, state model.DesiredState, release bool, now time.Time) (number int, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		row, err := tx.LockEnvironment(ctx, state.Environment.UUID)
		if err != nil {
			return notFound(err, "environment %s", state.Environment)
		}
		e, err := environmentOf(row)
		if err != nil {
			return err
		}
		number, err = s.storeVersion(ctx, tx, e, state, release, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("storing a version: %w", err)
	}
	return number, nil
}

// StorePartial merges a partial desired state into the newest version, released or not, stores the result as the next version, and
// releases it if release is set. It returns the number. [model.ErrInvalid]: there is no version, or a rule is broken; see
// [model.MergePartial]. Two partial exports are put one upon the other.
func (s *Store) StorePartial(ctx context.Context, p model.Partial, release bool, now time.Time) (number int, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		env := p.Environment
		row, err := tx.LockEnvironment(ctx, env.UUID)
		if err != nil {
			return notFound(err, "environment %s", env)
		}
		e, err := environmentOf(row)
		if err != nil {
			return err
		}
		base, err := tx.partialBase(ctx, env)
		if err != nil {
			return err
		}
		state, err := model.MergePartial(base, p)
		if err != nil {
			return err
		}
		number, err = s.storeVersion(ctx, tx, e, state, release, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("storing a partial version: %w", err)
	}
	return number, nil
}

// partialBase reads the newest version.
func (tx *Tx) partialBase(ctx context.Context, env model.EnvironmentID) (model.PartialBase, error) {
	var base model.PartialBase
	newest, err := tx.LatestVersion(ctx, env.UUID)
	if err != nil {
		return base, err
	}
	if newest == 0 {
		return base, fmt.Errorf("a partial export needs a version to be merged into; export the whole model first: %w", model.ErrInvalid)
	}
	base.Version = int(newest)
	if base.Intents, err = tx.intents(ctx, env, base.Version); err != nil {
		return base, err
	}
	rows, err := tx.VersionUnknowns(ctx, env.UUID, newest)
	if err != nil {
		return base, err
	}
	base.Unknowns = unknownsOf(rows)
	plan, err := codePlan(ctx, tx.Queries, env, base.Version)
	base.Code, base.Pip = plan.Modules, plan.Pip
	return base, err
}

// storeVersion stores a desired state in an environment whose row is locked.
func (s *Store) storeVersion(ctx context.Context, tx *Tx, e model.Environment, state model.DesiredState, release bool, now time.Time) (int, error) {
	number := state.Number
	if number == 0 {
		n, err := tx.NextVersionNumber(ctx, e.ID.UUID)
		if err != nil {
			return 0, err
		}
		number = int(n)
	} else if number < 0 || number > e.LastVersion {
		return 0, fmt.Errorf("version %d was never reserved (the last reserved one is %d): %w", number, e.LastVersion, model.ErrInvalid)
	}
	near, err := tx.VersionNeighbours(ctx, e.ID.UUID, int32Of(number))
	if err != nil {
		return 0, err
	}
	if near.Taken || near.Deleted {
		return 0, fmt.Errorf("version %d is or was in use: %w", number, model.ErrConflict)
	}
	if state.Number != 0 {
		if err := tx.takeUploadedCode(ctx, e.ID, number, &state); err != nil {
			return 0, err
		}
	}
	v, err := prepareVersion(state.Intents)
	if err != nil {
		return 0, err
	}
	v.env, v.number, v.previous, v.next = e.ID, number, int(near.Previous), int(near.Next)
	if err := s.compare(ctx, tx, v); err != nil {
		return 0, err
	}
	if err := v.checkRequires(); err != nil {
		return 0, err
	}
	if err := tx.writeIntervals(ctx, v); err != nil {
		return 0, err
	}
	if err := tx.writeVersion(ctx, v, state, now); err != nil {
		return 0, err
	}
	if v.next == 0 {
		ids := make([]model.ResourceID, len(v.intents))
		for i := range v.intents {
			ids[i] = v.intents[i].Resource
		}
		tx.onCommit = append(tx.onCommit, func() {
			s.contents.put(e.ID, &contents{version: number, ids: ids, keys: v.keys, fingerprints: v.fingerprints})
		})
	}
	tx.hint(model.TopicVersionStored, e.ID, strconv.Itoa(number))
	if len(v.put) >= manyChanges {
		tx.onCommit = append(tx.onCommit, func() { s.refreshStatistics(ctx) })
	}
	if !release {
		return number, nil
	}
	released, err := tx.LatestReleased(ctx, e.ID.UUID)
	if err != nil {
		return 0, err
	}
	if int(released) > number {
		// The upload was overtaken: it is kept, as a candidate that will never be one.
		return number, nil
	}
	return number, tx.release(ctx, e.ID, number, now)
}

// ReleaseVersion releases a version. [model.ErrNotFound]; [model.ErrConflict]: it is released already, or a newer one is.
func (s *Store) ReleaseVersion(ctx context.Context, env model.EnvironmentID, number int, now time.Time) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.LockEnvironment(ctx, env.UUID); err != nil {
			return notFound(err, "environment %s", env)
		}
		return tx.release(ctx, env, number, now)
	})
}

// release marks a version and brings the states of resources in line; the environment is locked.
func (tx *Tx) release(ctx context.Context, env model.EnvironmentID, number int, now time.Time) error {
	v, err := tx.GetVersion(ctx, env.UUID, int32Of(number))
	if err != nil {
		return notFound(err, "version %d of environment %s", number, env)
	}
	if v.ReleasedAt != nil {
		return fmt.Errorf("version %d is released already: %w", number, model.ErrConflict)
	}
	before, err := tx.LatestReleased(ctx, env.UUID)
	if err != nil {
		return err
	}
	if int(before) > number {
		return fmt.Errorf("version %d can not be released after version %d: %w", number, before, model.ErrConflict)
	}
	if err := tx.MarkConverged(ctx, now, env.UUID); err != nil {
		return err
	}
	if err := tx.MarkReleased(ctx, now, env.UUID, v.Number); err != nil {
		return err
	}
	if err := tx.ReleaseStates(ctx, env.UUID, before, v.Number); err != nil {
		return err
	}
	if before > 0 {
		if err := tx.ReleaseOrphans(ctx, before, env.UUID, v.Number); err != nil {
			return err
		}
	}
	if err := tx.askForFacts(ctx, env, number, now); err != nil {
		return err
	}
	tx.hint(model.TopicVersionReleased, env, strconv.Itoa(number))
	tx.hint(model.TopicResourceChanged, env, "")
	return nil
}

// DeleteVersion removes a version with its dry runs, unknowns and actions. [model.ErrNotFound]; [model.ErrInvalid]: it is the
// newest released one.
func (s *Store) DeleteVersion(ctx context.Context, env model.EnvironmentID, number int) error {
	return s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.LockEnvironment(ctx, env.UUID); err != nil {
			return notFound(err, "environment %s", env)
		}
		released, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		if int(released) == number && number > 0 {
			return fmt.Errorf("version %d is the newest released one: %w", number, model.ErrInvalid)
		}
		processed, err := tx.GetProcessed(ctx, env.UUID)
		if err != nil {
			return err
		}
		if int(processed) == number && number > 0 {
			return fmt.Errorf("version %d is the one that is deployed now; a newer one is about to replace it, try again then: %w", number, model.ErrInvalid)
		}
		s.contents.forgetAfter(tx, env)
		return tx.deleteVersion(ctx, env, number)
	})
}

// deleteVersion removes a version of a locked environment and what only it had.
func (tx *Tx) deleteVersion(ctx context.Context, env model.EnvironmentID, number int) error {
	near, err := tx.VersionNeighbours(ctx, env.UUID, int32Of(number))
	if err != nil {
		return err
	}
	if !near.Taken {
		return fmt.Errorf("version %d of environment %s: %w", number, env, model.ErrNotFound)
	}
	until := near.Next
	if until == 0 {
		until = untilFurther
	}
	bodies, err := tx.DropIntervalsOf(ctx, sqlgen.DropIntervalsOfParams{Environment: env.UUID, Previous: near.Previous, Number: int32Of(number), Until: until})
	if err != nil {
		return err
	}
	if err := tx.BeginIntervalsLater(ctx, sqlgen.BeginIntervalsLaterParams{
		Until: until, Environment: env.UUID, Previous: near.Previous, Number: int32Of(number),
	}); err != nil {
		return err
	}
	if err := tx.EndIntervalsLater(ctx, sqlgen.EndIntervalsLaterParams{
		Until: until, Environment: env.UUID, Previous: near.Previous, Number: int32Of(number),
	}); err != nil {
		return err
	}
	if err := tx.RememberDeletedVersion(ctx, env.UUID, int32Of(number)); err != nil {
		return err
	}
	if len(bodies) > 0 {
		if err := tx.DropUnusedBodies(ctx, env.UUID, bodies); err != nil {
			return err
		}
	}
	if err := tx.DeleteActionsOfVersion(ctx, env.UUID, int32Of(number)); err != nil {
		return err
	}
	if err := tx.Queries.DeleteVersion(ctx, env.UUID, int32Of(number)); err != nil {
		return err
	}
	if err := tx.DropUnusedCodePlans(ctx, env.UUID); err != nil {
		return err
	}
	if _, err := tx.DropForgottenStates(ctx, env.UUID); err != nil {
		return err
	}
	tx.hint(model.TopicVersionStored, env, strconv.Itoa(number))
	return nil
}

// PurgeVersions keeps the newest keep versions of an environment, its newest released one and the one its scheduler absorbed last, deletes the others and the
// agents that nothing refers to any more, and returns how many versions went.
func (s *Store) PurgeVersions(ctx context.Context, env model.EnvironmentID, keep int) (purged int, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		purged = 0
		if _, err := tx.LockEnvironment(ctx, env.UUID); err != nil {
			return notFound(err, "environment %s", env)
		}
		released, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		numbers, err := tx.VersionNumbers(ctx, env.UUID)
		if err != nil {
			return err
		}
		processed, err := tx.GetProcessed(ctx, env.UUID)
		if err != nil {
			return err
		}
		for _, n := range numbers[min(max(keep, 0), len(numbers)):] {
			if n == released || n == processed {
				continue
			}
			if err := tx.deleteVersion(ctx, env, int(n)); err != nil {
				return err
			}
			purged++
		}
		if purged > 0 {
			s.contents.forgetAfter(tx, env)
			_, err = tx.DropUnusedAgents(ctx, env.UUID)
		}
		return err
	})
	return purged, err
}

// ReleasedVersion returns the newest released version of an environment, 0 when there is none, or [model.ErrNotFound].
func (s *Store) ReleasedVersion(ctx context.Context, env model.EnvironmentID) (int, error) {
	q := s.read()
	if err := mustExist(ctx, q, env); err != nil {
		return 0, err
	}
	n, err := q.LatestReleased(ctx, env.UUID)
	return int(n), classify(err)
}
