package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/sqlgen"
)

// requiresSeparator joins requirements on their way into the database; ids must not contain it.
const requiresSeparator = "\x1f"

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
