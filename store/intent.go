package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// intentRow is what the queries for intents return; their generated types are equal.
type intentRow = sqlgen.IntentsOfVersionRow

func intentOf(r intentRow) model.Intent {
	return model.Intent{
		Resource: model.ResourceID(r.ResourceID), Attributes: r.Attributes, AttributeHash: r.AttributeHash,
		Requires: strs[model.ResourceID](r.Requires), Set: r.SetName, Undefined: r.Undefined, Blocked: r.Blocked, SinceVersion: int(r.FromVersion),
	}
}

func intentsOf[Row any](rows []Row, row func(Row) intentRow) []model.Intent {
	out := make([]model.Intent, len(rows))
	for i, r := range rows {
		out[i] = intentOf(row(r))
	}
	return out
}

// versionMustExist fails with model.ErrNotFound when a version is not there.
func (tx *Tx) versionMustExist(ctx context.Context, env model.EnvironmentID, number int) error {
	if _, err := tx.GetVersion(ctx, env.UUID, int32Of(number)); err != nil {
		return notFound(err, "version %d of environment %s", number, env)
	}
	return nil
}

func (tx *Tx) intents(ctx context.Context, env model.EnvironmentID, number int) ([]model.Intent, error) {
	rows, err := tx.IntentsOfVersion(ctx, env.UUID, int32Of(number))
	if err != nil {
		return nil, err
	}
	return intentsOf(rows, func(r sqlgen.IntentsOfVersionRow) intentRow { return r }), nil
}

// IntentsOf reads the intents of a stored version, released or not, by resource id, or fails with [model.ErrNotFound].
func (s *Store) IntentsOf(ctx context.Context, env model.EnvironmentID, version int) (intents []model.Intent, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		if err := tx.versionMustExist(ctx, env, version); err != nil {
			return err
		}
		intents, err = tx.intents(ctx, env, version)
		return err
	})
	return intents, err
}

// ChangesSince reads the newest released version and what differs from version from: intents added or changed, by resource id,
// and ids removed. version equals from when there is nothing new. It costs what changed in between, unless version from has
// been deleted: then everything counts as changed.
func (s *Store) ChangesSince(ctx context.Context, env model.EnvironmentID, from int) (version int, changed []model.Intent, removed []model.ResourceID, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		changed, removed = nil, nil
		newest, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil {
			return err
		}
		version = max(int(newest), from)
		if version == from {
			return nil
		}
		if _, err := tx.GetVersion(ctx, env.UUID, int32Of(from)); from > 0 && errors.Is(err, pgx.ErrNoRows) {
			changed, removed, err = tx.everything(ctx, env, newest)
			return err
		} else if err != nil && from > 0 {
			return err
		}
		begun, err := tx.IntervalsBegun(ctx, env.UUID, int32Of(from), newest)
		if err != nil {
			return err
		}
		ended, err := tx.IntervalIdsEnded(ctx, env.UUID, int32Of(from), newest)
		if err != nil {
			return err
		}
		was := make(map[string]sqlgen.IntervalIdsEndedRow, len(ended))
		for _, r := range ended {
			was[r.ResourceID] = r
		}
		for _, r := range begun {
			old, ok := was[r.ResourceID]
			delete(was, r.ResourceID)
			if ok && string(old.Body) == string(r.Body) && old.Blocked == r.Blocked {
				continue
			}
			changed = append(changed, intentOf(begunRow(r)))
		}
		for _, r := range ended {
			if _, gone := was[r.ResourceID]; gone {
				removed = append(removed, model.ResourceID(r.ResourceID))
			}
		}
		return nil
	})
	return version, changed, removed, err
}

// everything returns all intents of a version, and the resources that have a state but are not in it.
func (tx *Tx) everything(ctx context.Context, env model.EnvironmentID, number int32) ([]model.Intent, []model.ResourceID, error) {
	intents, err := tx.intents(ctx, env, int(number))
	if err != nil {
		return nil, nil, err
	}
	gone, err := tx.StatesOutsideVersion(ctx, env.UUID, number)
	return intents, strs[model.ResourceID](gone), err
}

func begunRow(r sqlgen.IntervalsBegunRow) intentRow {
	return intentRow{
		ResourceID: r.ResourceID, FromVersion: r.FromVersion, AttributeHash: r.AttributeHash, Blocked: r.Blocked, Attributes: r.Attributes,
		Requires: r.Requires, SetName: r.SetName, Undefined: r.Undefined,
	}
}

func endedRow(r sqlgen.IntervalsEndedRow) intentRow {
	return begunRow(sqlgen.IntervalsBegunRow(r))
}

// DiffVersions lists what differs between two versions, in whichever order, by resource id; unmodified resources are left
// out. It costs what changed between them. [model.ErrNotFound]: one of them is not there.
func (s *Store) DiffVersions(ctx context.Context, env model.EnvironmentID, from, to int) (diffs []model.ResourceDiff, err error) {
	low, high := min(from, to), max(from, to)
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		diffs = []model.ResourceDiff{}
		for _, n := range []int{from, to} {
			if err := tx.versionMustExist(ctx, env, n); err != nil {
				return err
			}
		}
		ended, err := tx.IntervalsEnded(ctx, env.UUID, int32Of(low), int32Of(high))
		if err != nil {
			return err
		}
		begun, err := tx.IntervalsBegun(ctx, env.UUID, int32Of(low), int32Of(high))
		if err != nil {
			return err
		}
		diffs = mergeDiffs(ended, begun)
		return nil
	})
	if from > to {
		for i, d := range diffs {
			d.From, d.To = d.To, d.From
			switch d.Status {
			case model.DiffAdded:
				d.Status = model.DiffDeleted
			case model.DiffDeleted:
				d.Status = model.DiffAdded
			default: // the same both ways
			}
			diffs[i] = d
		}
	}
	return diffs, err
}

// mergeDiffs joins what ended with what began; both are sorted by resource.
func mergeDiffs(ended []sqlgen.IntervalsEndedRow, begun []sqlgen.IntervalsBegunRow) []model.ResourceDiff {
	out := []model.ResourceDiff{}
	for len(ended) > 0 || len(begun) > 0 {
		switch {
		case len(begun) == 0 || (len(ended) > 0 && ended[0].ResourceID < begun[0].ResourceID):
			old := intentOf(endedRow(ended[0]))
			out = append(out, model.ResourceDiff{Resource: old.Resource, Status: model.DiffDeleted, From: &old})
			ended = ended[1:]
		case len(ended) == 0 || begun[0].ResourceID < ended[0].ResourceID:
			now := intentOf(begunRow(begun[0]))
			out = append(out, model.ResourceDiff{Resource: now.Resource, Status: model.DiffAdded, To: &now})
			begun = begun[1:]
		default:
			// A resource that only became blocked, or no longer is, asks for the same.
			if string(ended[0].Body) != string(begun[0].Body) {
				old, now := intentOf(endedRow(ended[0])), intentOf(begunRow(begun[0]))
				out = append(out, model.ResourceDiff{Resource: now.Resource, Status: model.DiffModified, From: &old, To: &now})
			}
			ended, begun = ended[1:], begun[1:]
		}
	}
	return out
}

// AgentIntents returns the newest released version and its intents of some agents, for the agents to keep. Both are empty
// when nothing has been released.
func (s *Store) AgentIntents(ctx context.Context, env model.EnvironmentID, agents []model.AgentName) (version int, intents []model.Intent, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		newest, err := tx.LatestReleased(ctx, env.UUID)
		if err != nil || newest == 0 {
			return err
		}
		version = int(newest)
		rows, err := tx.IntentsOfAgents(ctx, env.UUID, strs[string](agents), newest)
		if err != nil {
			return err
		}
		intents = intentsOf(rows, func(r sqlgen.IntentsOfAgentsRow) intentRow { return intentRow(r) })
		return nil
	})
	return version, intents, err
}

// VersionResource returns one resource of a version or [model.ErrNotFound].
func (s *Store) VersionResource(ctx context.Context, env model.EnvironmentID, number int, id model.ResourceID) (intent model.Intent, err error) {
	err = s.inSnapshot(ctx, func(tx *Tx) error {
		if err := tx.versionMustExist(ctx, env, number); err != nil {
			return err
		}
		r, err := tx.IntentOfVersion(ctx, env.UUID, string(id), int32Of(number))
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("resource %s in version %d: %w", id, number, model.ErrNotFound)
		}
		if err != nil {
			return err
		}
		intent = intentOf(intentRow(r))
		return nil
	})
	return intent, err
}

// VersionUnknowns lists the unknown inputs of a version by resource and name.
func (s *Store) VersionUnknowns(ctx context.Context, env model.EnvironmentID, number int) ([]model.UnknownParameter, error) {
	rows, err := s.read().VersionUnknowns(ctx, env.UUID, int32Of(number))
	if err != nil {
		return nil, classify(err)
	}
	return unknownsOf(rows), nil
}

func unknownsOf(rows []sqlgen.VersionUnknownsRow) []model.UnknownParameter {
	out := make([]model.UnknownParameter, len(rows))
	for i, r := range rows {
		out[i] = model.UnknownParameter{Name: r.Name, Resource: r.ResourceID, Source: r.Source}
	}
	return out
}

// AgentsOfVersion lists the names of the agents that the resources of a version belong to, sorted.
func (s *Store) AgentsOfVersion(ctx context.Context, env model.EnvironmentID, version int) ([]model.AgentName, error) {
	names, err := s.read().AgentsOfVersion(ctx, env.UUID, int32Of(version))
	return strs[model.AgentName](names), classify(err)
}
