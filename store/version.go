package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// untilFurther is the end of an interval that has none yet.
const untilFurther = 1<<31 - 1

// requiresSeparator joins requirements on their way into the database; ids must not contain it.
const requiresSeparator = "\x1f"

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

// newVersion is a desired state on its way into the store.
type newVersion struct {
	env      model.EnvironmentID
	number   int
	previous int // the version below, 0 for none
	next     int // the version above, 0 for none
	// intents are sorted by resource; blocked says which of them require, transitively, an undefined one.
	// keys and fingerprints are as in contents.
	intents      []model.Intent
	blocked      []bool
	keys         []uint64
	fingerprints []uint64
	// put are indexes of intents that are new or differ from the version below; added says how many of them are new.
	put   []int
	added int
	// removed are the resources that only the version below has.
	removed []model.ResourceID
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

// manyChanges is from how many changes on the planner is told at once that the tables have grown.
const manyChanges = 10_000

// refreshStatistics lets the planner know what a large version has brought. The database would find out by itself some minutes
// later, and until then read large versions row by row.
func (s *Store) refreshStatistics(ctx context.Context) {
	if _, err := s.pool.Exec(ctx, "ANALYZE resource_interval, resource_body, resource_state"); err != nil {
		s.log.Debug("refreshing the statistics after a large version", "error", err)
	}
}

// prepareVersion sorts intents, finds those that are blocked, and takes their fingerprints. It is where storing a large version
// of which little changes spends its time, most of it waiting for memory: each text is looked at once, on all processors.
func prepareVersion(intents []model.Intent) (*newVersion, error) {
	n := len(intents)
	v := &newVersion{intents: intents, blocked: make([]bool, n), keys: make([]uint64, n), fingerprints: make([]uint64, n)}
	var unsorted, undefined atomic.Bool
	inParallel(n, func(from, to int) {
		for i := from; i < to; i++ {
			if i > 0 && intents[i].Resource <= intents[i-1].Resource {
				unsorted.Store(true)
				return
			}
			if intents[i].Undefined {
				undefined.Store(true)
			}
			v.keys[i] = maphash.String(fingerprintSeed, string(intents[i].Resource))
			v.fingerprints[i] = fingerprint(&intents[i])
		}
	})
	if unsorted.Load() {
		sorted := slices.Clone(intents)
		slices.SortFunc(sorted, func(a, b model.Intent) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
		for i := 1; i < n; i++ {
			if sorted[i].Resource == sorted[i-1].Resource {
				return nil, fmt.Errorf("resource %s comes twice: %w", sorted[i].Resource, model.ErrInvalid)
			}
		}
		return prepareVersion(sorted)
	}
	if undefined.Load() {
		v.block()
	}
	return v, nil
}

// inParallel calls work for parts of [0, n), on as many processors as there are when it is worth it.
func inParallel(n int, work func(from, to int)) {
	const least = 4096
	parts := max(1, min(runtime.GOMAXPROCS(0), n/least))
	var wait sync.WaitGroup
	for p := range parts {
		wait.Go(func() { work(n*p/parts, n*(p+1)/parts) })
	}
	wait.Wait()
}

// index returns the place of a resource.
func (v *newVersion) index(id model.ResourceID) (int, bool) {
	return slices.BinarySearchFunc(v.intents, id, func(in model.Intent, id model.ResourceID) int {
		return strings.Compare(string(in.Resource), string(id))
	})
}

// block marks what requires, transitively, an undefined resource.
func (v *newVersion) block() {
	var todo []int
	dependants := make([][]int, len(v.intents))
	for i := range v.intents {
		if v.intents[i].Undefined {
			todo = append(todo, i)
		}
		for _, r := range v.intents[i].Requires {
			if to, ok := v.index(r); ok {
				dependants[to] = append(dependants[to], i)
			}
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, d := range dependants[i] {
			if !v.blocked[d] && !v.intents[d].Undefined {
				v.blocked[d] = true
				v.fingerprints[d] ^= blockedMark
				todo = append(todo, d)
			}
		}
	}
}

// compare finds what changes in the version below, by what is remembered of it or else by the hashes in the database.
func (s *Store) compare(ctx context.Context, tx *Tx, v *newVersion) error {
	if v.next == 0 {
		if old := s.contents.of(v.env, v.previous); old != nil {
			v.merge(old.ids, old.keys, func(was, i int) bool { return old.fingerprints[was] == v.fingerprints[i] })
			return nil
		}
	}
	rows, err := tx.VersionFingerprints(ctx, v.env.UUID, int32Of(v.number))
	if err != nil {
		return err
	}
	ids, keys := make([]model.ResourceID, len(rows)), make([]uint64, len(rows))
	for i, r := range rows {
		ids[i] = model.ResourceID(r.ResourceID)
		keys[i] = maphash.String(fingerprintSeed, r.ResourceID)
	}
	v.merge(ids, keys, func(was, i int) bool {
		return rows[was].Blocked == v.blocked[i] && bodyKey(rows[was].Body) == model.BodyHash(v.intents[i])
	})
	return nil
}

// merge walks along the resources of the version below and of this one, both sorted.
func (v *newVersion) merge(old []model.ResourceID, keys []uint64, same func(was, i int) bool) {
	was := 0
	for i := range v.intents {
		for was < len(old) && keys[was] != v.keys[i] && old[was] < v.intents[i].Resource {
			v.removed = append(v.removed, old[was])
			was++
		}
		if was == len(old) || keys[was] != v.keys[i] {
			v.put = append(v.put, i)
			v.added++
			continue
		}
		if !same(was, i) {
			v.put = append(v.put, i)
		}
		was++
	}
	v.removed = append(v.removed, old[was:]...)
}

// checkRequires fails when something requires what is not part of the version. What did not change had its requirements in
// the version below: it can only miss what was removed.
func (v *newVersion) checkRequires() error {
	missing := map[model.ResourceID]struct{}{}
	for _, i := range v.put {
		for _, r := range v.intents[i].Requires {
			if _, ok := v.index(r); !ok {
				missing[r] = struct{}{}
			}
		}
	}
	if len(v.removed) > 0 {
		removed := make(map[model.ResourceID]struct{}, len(v.removed))
		for _, r := range v.removed {
			removed[r] = struct{}{}
		}
		for i := range v.intents {
			for _, r := range v.intents[i].Requires {
				if _, gone := removed[r]; gone {
					missing[r] = struct{}{}
				}
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := make([]string, 0, len(missing))
	for r := range missing {
		names = append(names, string(r))
	}
	slices.Sort(names)
	return fmt.Errorf("required resources are not part of the version: %s: %w", strings.Join(names, ", "), model.ErrInvalid)
}

// intervalColumns are rows of resource_interval, column by column.
type intervalColumns struct {
	agents, hashes, ids, types, values []string
	blocked                            []bool
	bodies                             [][]byte
	untils                             []int32
}

func (c *intervalColumns) insert(ctx context.Context, tx *Tx, env model.EnvironmentID, from int) error {
	if len(c.ids) == 0 {
		return nil
	}
	return tx.InsertIntervals(ctx, sqlgen.InsertIntervalsParams{
		Environment: env.UUID, Ids: c.ids, Number: int32Of(from), Untils: c.untils, Types: c.types, Agents: c.agents, Values: c.values,
		AttributeHashes: c.hashes, Bodies: c.bodies, Blocked: c.blocked,
	})
}

// writeIntervals writes what changes: new bodies, the ends of old intervals, and new intervals.
func (tx *Tx) writeIntervals(ctx context.Context, v *newVersion) error {
	until := untilFurther
	if v.next != 0 {
		until = v.next
	}
	var rows intervalColumns
	bodies := sqlgen.InsertBodiesParams{Environment: v.env.UUID}
	agents := map[string]struct{}{}
	written := make(map[bodyKey]struct{}, len(v.put))
	for _, i := range v.put {
		in := &v.intents[i]
		typ, agent, value, ok := splitID(in.Resource)
		if !ok || strings.Contains(string(in.Resource), requiresSeparator) || text(string(in.Resource)) != string(in.Resource) {
			return fmt.Errorf("resource id %q is not of the form ns::Type[agent,attribute=value]: %w", in.Resource, model.ErrInvalid)
		}
		body := model.BodyHash(*in)
		rows.ids = append(rows.ids, string(in.Resource))
		rows.types = append(rows.types, typ)
		rows.agents = append(rows.agents, agent)
		rows.values = append(rows.values, value)
		rows.hashes = append(rows.hashes, in.AttributeHash)
		rows.bodies = append(rows.bodies, body[:])
		rows.blocked = append(rows.blocked, v.blocked[i])
		rows.untils = append(rows.untils, int32Of(until))
		agents[agent] = struct{}{}
		if _, twice := written[body]; twice {
			continue
		}
		written[body] = struct{}{}
		bodies.Hashes = append(bodies.Hashes, body[:])
		bodies.Attributes = append(bodies.Attributes, string(in.Attributes))
		bodies.Requires = append(bodies.Requires, strings.Join(strs[string](in.Requires), requiresSeparator))
		bodies.Sets = append(bodies.Sets, text(in.Set))
		bodies.Undefined = append(bodies.Undefined, in.Undefined)
	}
	if len(bodies.Hashes) > 0 {
		if err := tx.InsertBodies(ctx, bodies); err != nil {
			return err
		}
	}
	if old := len(v.put) - v.added + len(v.removed); old > 0 {
		touched := append(slices.Clone(rows.ids), strs[string](v.removed)...)
		beyond, err := tx.intervalsBeyond(ctx, v, touched)
		if err != nil {
			return err
		}
		if err := tx.CloseIntervals(ctx, int32Of(v.number), v.env.UUID, touched); err != nil {
			return err
		}
		if err := beyond.insert(ctx, tx, v.env, v.next); err != nil {
			return err
		}
	}
	if err := rows.insert(ctx, tx, v.env, v.number); err != nil {
		return err
	}
	names := make([]string, 0, len(agents))
	for name := range agents {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil
	}
	made, err := tx.EnsureAgents(ctx, v.env.UUID, names)
	if made > 0 {
		tx.hint(model.TopicAgentChanged, v.env, "")
	}
	return err
}

// intervalsBeyond are the parts of intervals, which are about to be cut at number, that later versions go on to have.
func (tx *Tx) intervalsBeyond(ctx context.Context, v *newVersion, ids []string) (intervalColumns, error) {
	var c intervalColumns
	if v.next == 0 {
		return c, nil
	}
	rows, err := tx.IntervalsBeyond(ctx, sqlgen.IntervalsBeyondParams{Environment: v.env.UUID, Ids: ids, Number: int32Of(v.number), Next: int32Of(v.next)})
	if err != nil {
		return c, err
	}
	for _, r := range rows {
		c.ids = append(c.ids, r.ResourceID)
		c.types = append(c.types, r.Type)
		c.agents = append(c.agents, r.Agent)
		c.values = append(c.values, r.Value)
		c.hashes = append(c.hashes, r.AttributeHash)
		c.bodies = append(c.bodies, r.Body)
		c.blocked = append(c.blocked, r.Blocked)
		c.untils = append(c.untils, r.UntilVersion)
	}
	return c, nil
}

// writeVersion writes the version's own row, its unknowns and files, and the action that says it was stored.
func (tx *Tx) writeVersion(ctx context.Context, v *newVersion, state model.DesiredState, now time.Time) error {
	env, number := v.env, v.number
	undeployable, blocked := []string{}, []string{}
	for i := range v.intents {
		switch {
		case v.intents[i].Undefined:
			undeployable = append(undeployable, string(v.intents[i].Resource))
		case v.blocked[i]:
			blocked = append(blocked, string(v.intents[i].Resource))
		}
	}
	metadata, err := encode(model.MetadataWithCrossSet(state), "{}")
	if err != nil {
		return err
	}
	rev := state.Revision
	if err := tx.InsertVersion(ctx, sqlgen.InsertVersionParams{
		Environment: env.UUID, Number: int32Of(number), CreatedAt: now, Resources: int32Of(len(state.Intents)), Added: int32Of(v.added),
		Changed: int32Of(len(v.put) - v.added), Removed: int32Of(len(v.removed)), Digest: text(state.Digest), Metadata: metadata,
		Job: uuidOrNil(state.Job.UUID), RevisionRepository: string(rev.Repository), RevisionRef: text(rev.Ref), RevisionCommit: text(rev.Commit),
		RevisionAuthor: text(rev.Author), RevisionMessage: text(rev.Message), RevisionCommittedAt: timeOrNil(rev.CommittedAt),
		Trace: text(string(state.Trace)), ResourceSets: strs[string](state.ResourceSets), Undeployable: undeployable,
		Blocked: blocked,
	}); err != nil {
		return err
	}
	if len(state.Unknowns) > 0 {
		p := sqlgen.InsertUnknownsParams{Environment: env.UUID, Version: int32Of(number)}
		for _, u := range state.Unknowns {
			p.Resources = append(p.Resources, text(u.Resource))
			p.Names = append(p.Names, text(u.Name))
			p.Sources = append(p.Sources, text(u.Source))
		}
		if err := tx.InsertUnknowns(ctx, p); err != nil {
			return err
		}
	}
	if err := tx.writeFiles(ctx, state.Files); err != nil {
		return err
	}
	if err := tx.writeCode(ctx, env, number, state); err != nil {
		return err
	}
	message := fmt.Sprintf("Successfully stored version %d", number)
	return tx.InsertStoreAction(ctx, sqlgen.InsertStoreActionParams{
		ID: newID(), Environment: env.UUID, Version: int32Of(number), Reason: message, At: now, Trace: text(string(state.Trace)),
		Log: encodeLog([]model.LogLine{{Level: model.LevelInfo, Time: now, Message: message}}),
	})
}

// writeFiles stores the contents of a state and checks that those it only names are stored already.
func (tx *Tx) writeFiles(ctx context.Context, files []model.File) error {
	const empty = "da39a3ee5e6b4b0d3255bfef95601890afd80709" // the SHA-1 of nothing
	var (
		given, named []string
		contents     [][]byte
	)
	for _, f := range files {
		switch {
		case f.Content != nil:
			given, contents = append(given, f.Hash), append(contents, f.Content)
		case f.Hash == empty:
			given, contents = append(given, f.Hash), append(contents, []byte{})
		default:
			named = append(named, f.Hash)
		}
	}
	if len(given) > 0 {
		if err := tx.InsertFiles(ctx, given, contents); err != nil {
			return err
		}
	}
	missing, err := missingFiles(ctx, tx.Queries, named)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("files are neither stored nor given; upload them first: %s: %w", strings.Join(missing, ", "), model.ErrInvalid)
	}
	return nil
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

// ReleasedVersion returns the newest released version of an environment, 0 when there is none, or [model.ErrNotFound].
func (s *Store) ReleasedVersion(ctx context.Context, env model.EnvironmentID) (int, error) {
	q := s.read()
	if err := mustExist(ctx, q, env); err != nil {
		return 0, err
	}
	n, err := q.LatestReleased(ctx, env.UUID)
	return int(n), classify(err)
}

// AgentsOfVersion lists the names of the agents that the resources of a version belong to, sorted.
func (s *Store) AgentsOfVersion(ctx context.Context, env model.EnvironmentID, version int) ([]model.AgentName, error) {
	names, err := s.read().AgentsOfVersion(ctx, env.UUID, int32Of(version))
	return strs[model.AgentName](names), classify(err)
}

// MissingFiles returns those of the hashes that are not stored, in the order given.
func (s *Store) MissingFiles(ctx context.Context, hashes []string) ([]string, error) {
	return missingFiles(ctx, s.read(), hashes)
}

func missingFiles(ctx context.Context, q *sqlgen.Queries, hashes []string) ([]string, error) {
	missing := []string{}
	if len(hashes) == 0 {
		return missing, nil
	}
	stored, err := q.StoredFiles(ctx, hashes)
	if err != nil {
		return nil, classify(err)
	}
	have := make(map[string]struct{}, len(stored))
	for _, h := range stored {
		have[h] = struct{}{}
	}
	for _, h := range hashes {
		if _, ok := have[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// SaveFile stores a content whose hash was verified; storing it again changes nothing.
func (s *Store) SaveFile(ctx context.Context, f model.File) error {
	content := f.Content
	if content == nil {
		content = []byte{}
	}
	return s.InTx(ctx, func(tx *Tx) error { return tx.InsertFile(ctx, f.Hash, content) })
}

// File returns a content of the file storage by its SHA-1 in hex, or [model.ErrNotFound].
func (s *Store) File(ctx context.Context, hash string) ([]byte, error) {
	content, err := s.read().GetFile(ctx, hash)
	if err != nil {
		return nil, notFound(err, "file %s", hash)
	}
	return content, nil
}
