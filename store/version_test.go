package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

// connect opens a connection of its own, to look at tables.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// summary renders intents as "path=content" with "!" for undefined and "#" for blocked, for comparison.
func summary(intents []model.Intent) []string {
	out := []string{}
	for _, in := range intents {
		s := in.Resource.Parts().Value[1:] + string(in.Attributes)
		if in.Undefined {
			s += "!"
		}
		if in.Blocked {
			s += "#"
		}
		out = append(out, s)
	}
	return out
}

func TestStoreVersionKeepsIntervals(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	ctx := t.Context()

	storetest.Version(t, s, env, true, storetest.Intents(t, "a=1", "b=1 > a", "c=1")...)
	storetest.Version(t, s, env, false, storetest.Intents(t, "a=1", "b=2 > a", "d=1")...)
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=1", "b=1 > a", "d=1")...)

	want := map[int][]string{
		1: {`a{"content":"1"}`, `b{"content":"1"}`, `c{"content":"1"}`},
		2: {`a{"content":"1"}`, `b{"content":"2"}`, `d{"content":"1"}`},
		3: {`a{"content":"1"}`, `b{"content":"1"}`, `d{"content":"1"}`},
	}
	for n, w := range want {
		got, err := s.IntentsOf(ctx, env, n)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(w, summary(got)); d != "" {
			t.Errorf("IntentsOf(%d): %s", n, d)
		}
	}
	version, changed, removed, err := s.ChangesSince(ctx, env, 1)
	if err != nil {
		t.Fatal(err)
	}
	if version != 3 || !cmp.Equal(summary(changed), []string{`d{"content":"1"}`}) || !cmp.Equal(removed, []model.ResourceID{storetest.ID("web", "/c")}) {
		t.Errorf("ChangesSince(1) = %d, %v, %v", version, summary(changed), removed)
	}
	if _, err := s.IntentsOf(ctx, env, 9); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("IntentsOf(9) = %v, want not found", err)
	}
}

// released and stored states of an environment, kept naively.
type history struct {
	versions map[int]map[model.ResourceID]string
	released []int
}

func (h *history) newest() int {
	return slices.Max(append([]int{0}, h.released...))
}

// naive renders the intents of a version as the store's are by render.
func render(intents []model.Intent) map[model.ResourceID]string {
	out := map[model.ResourceID]string{}
	for _, in := range intents {
		out[in.Resource] = fmt.Sprintf("%s %v %t %t", in.Attributes, in.Requires, in.Undefined, in.Blocked)
	}
	return out
}

// Random versions, put in and out of order by two servers, released, deleted: every version always reads as it was stored,
// and every difference is that of the versions.
func TestVersionsProperty(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	rapid.Check(t, func(r *rapid.T) {
		s := servers[0]
		env := storetest.Environment(t, s).ID
		h := &history{versions: map[int]map[model.ResourceID]string{}}
		var reserved []int
		drawState := func() []model.Intent {
			var lines []string
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				if rapid.Bool().Draw(r, name) {
					lines = append(lines, name+"="+rapid.SampledFrom([]string{"1", "2", "?"}).Draw(r, "content"))
				}
			}
			// Requirements point at earlier ones.
			for i := 1; i < len(lines); i++ {
				if rapid.Bool().Draw(r, "requires") {
					lines[i] += " > " + lines[rapid.IntRange(0, i-1).Draw(r, "to")][:1]
				}
			}
			return storetest.Intents(t, lines...)
		}
		blockedOf := func(intents []model.Intent) []model.Intent {
			byID := map[model.ResourceID]*model.Intent{}
			for i := range intents {
				in := &intents[i]
				byID[in.Resource] = in
				for _, q := range in.Requires {
					in.Blocked = !in.Undefined && (in.Blocked || byID[q].Undefined || byID[q].Blocked)
				}
			}
			return intents
		}
		put := func(number int) {
			s := servers[rapid.IntRange(0, 1).Draw(r, "server")]
			state := storetest.State(env, drawState()...)
			state.Number = number
			n, err := s.StoreVersion(t.Context(), state, false, storetest.Now())
			if err != nil {
				r.Fatalf("StoreVersion(%d): %v", number, err)
			}
			h.versions[n] = render(blockedOf(slices.Clone(state.Intents)))
		}
		r.Repeat(map[string]func(*rapid.T){
			"put next": func(*rapid.T) { put(0) },
			"reserve": func(*rapid.T) {
				n, err := s.ReserveVersion(t.Context(), env)
				if err != nil {
					r.Fatal(err)
				}
				reserved = append(reserved, n)
			},
			"put reserved": func(*rapid.T) {
				if len(reserved) == 0 {
					r.Skip()
				}
				i := rapid.IntRange(0, len(reserved)-1).Draw(r, "which")
				put(reserved[i])
				reserved = slices.Delete(reserved, i, i+1)
			},
			"release": func(*rapid.T) {
				if len(h.versions) == 0 {
					r.Skip()
				}
				n := rapid.SampledFrom(slices.Sorted(maps.Keys(h.versions))).Draw(r, "version")
				err := s.ReleaseVersion(t.Context(), env, n, storetest.Now())
				if n > h.newest() {
					if err != nil {
						r.Fatalf("ReleaseVersion(%d): %v", n, err)
					}
					h.released = append(h.released, n)
				} else if !errors.Is(err, model.ErrConflict) {
					r.Fatalf("ReleaseVersion(%d) = %v, want a conflict", n, err)
				}
			},
			"delete": func(*rapid.T) {
				if len(h.versions) == 0 {
					r.Skip()
				}
				n := rapid.SampledFrom(slices.Sorted(maps.Keys(h.versions))).Draw(r, "version")
				err := s.DeleteVersion(t.Context(), env, n)
				if n == h.newest() {
					if !errors.Is(err, model.ErrInvalid) {
						r.Fatalf("DeleteVersion(%d) = %v, want invalid", n, err)
					}
					return
				}
				if err != nil {
					r.Fatalf("DeleteVersion(%d): %v", n, err)
				}
				delete(h.versions, n)
				h.released = slices.DeleteFunc(h.released, func(m int) bool { return m == n })
			},
			"": func(*rapid.T) { h.check(t, r, s, env) },
		})
	})
}

// check compares everything that can be read of versions.
func (h *history) check(t *testing.T, r *rapid.T, s *store.Store, env model.EnvironmentID) {
	numbers := slices.Sorted(maps.Keys(h.versions))
	for range min(4, len(numbers)) {
		n := rapid.SampledFrom(numbers).Draw(r, "read")
		got, err := s.IntentsOf(t.Context(), env, n)
		if err != nil {
			r.Fatal(err)
		}
		if d := cmp.Diff(h.versions[n], render(got)); d != "" {
			r.Fatalf("IntentsOf(%d): %s", n, d)
		}
	}
	if len(numbers) > 0 {
		a, b := rapid.SampledFrom(numbers).Draw(r, "from"), rapid.SampledFrom(numbers).Draw(r, "to")
		diffs, err := s.DiffVersions(t.Context(), env, a, b)
		if err != nil {
			r.Fatal(err)
		}
		got := map[model.ResourceID]model.DiffStatus{}
		for _, d := range diffs {
			got[d.Resource] = d.Status
		}
		if d := cmp.Diff(differences(h.versions[a], h.versions[b]), got); d != "" {
			r.Fatalf("DiffVersions(%d, %d): %s", a, b, d)
		}
	}
	newest := h.newest()
	if newest == 0 {
		return
	}
	from := rapid.SampledFrom(append([]int{0}, h.released...)).Draw(r, "since")
	version, changed, removed, err := s.ChangesSince(t.Context(), env, from)
	if err != nil || version != newest {
		r.Fatalf("ChangesSince(%d) = %d, %v, want %d", from, version, err, newest)
	}
	now := maps.Clone(h.versions[from])
	if now == nil {
		now = map[model.ResourceID]string{}
	}
	for _, id := range removed {
		delete(now, id)
	}
	maps.Copy(now, render(changed))
	if d := cmp.Diff(h.versions[newest], now); d != "" {
		r.Fatalf("ChangesSince(%d) applied: %s", from, d)
	}
	// What people see as current is the newest released version.
	l, err := s.Resources(t.Context(), env, model.ResourceFilter{ExcludeStatuses: []model.Status{model.StatusOrphaned}}, model.Page{})
	if err != nil {
		r.Fatal(err)
	}
	for _, row := range l.Items {
		if _, ok := h.versions[newest][row.State.Resource]; !ok {
			r.Fatalf("%s is shown as %s, and is not in version %d", row.State.Resource, row.State.Status(), newest)
		}
	}
	if len(l.Items) != len(h.versions[newest]) {
		r.Fatalf("%d resources are shown, version %d has %d", len(l.Items), newest, len(h.versions[newest]))
	}
}

// differences are computed from attributes, requirements and definedness; being blocked is none.
func differences(a, b map[model.ResourceID]string) map[model.ResourceID]model.DiffStatus {
	unblocked := func(s string) string { return s[:strings.LastIndex(s, " ")] }
	out := map[model.ResourceID]model.DiffStatus{}
	for id, v := range a {
		switch w, ok := b[id]; {
		case !ok:
			out[id] = model.DiffDeleted
		case unblocked(v) != unblocked(w):
			out[id] = model.DiffModified
		}
	}
	for id := range b {
		if _, ok := a[id]; !ok {
			out[id] = model.DiffAdded
		}
	}
	return out
}

func TestOvertakenUploadIsKept(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	slow, err := s.ReserveVersion(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	newer := storetest.Version(t, s, env, true, storetest.Intents(t, "a=2")...)
	state := storetest.State(env, storetest.Intents(t, "a=1")...)
	state.Number = slow
	if n, err := s.StoreVersion(t.Context(), state, true, storetest.Now()); err != nil || n != slow {
		t.Fatalf("StoreVersion = %d, %v, want %d", n, err, slow)
	}
	if n, err := s.ReleasedVersion(t.Context(), env); err != nil || n != newer {
		t.Errorf("released is %d, %v, want %d still", n, err, newer)
	}
	if v, err := s.Version(t.Context(), env, slow); err != nil || v.Released {
		t.Errorf("the overtaken version = %+v, %v, want it stored and not released", v, err)
	}
}

func TestFilesOfAVersion(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	state := storetest.State(env, storetest.Intents(t, "a")...)
	state.Files = []model.File{{Hash: "0a4d55a8d778e5022fab701977c5d840bbc486d0"}}
	if _, err := s.StoreVersion(t.Context(), state, false, storetest.Now()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a file that is neither stored nor given: %v, want invalid", err)
	}
	given := state
	given.Files = []model.File{{Hash: state.Files[0].Hash, Content: []byte("Hello World")}}
	for _, st := range []model.DesiredState{given, state} {
		if _, err := s.StoreVersion(t.Context(), st, false, storetest.Now()); err != nil {
			t.Errorf("StoreVersion: %v", err)
		}
	}
}

// A number names one content for ever, also when that is gone: what a server remembers by number must stay right.
func TestDeletedNumbersAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	for range 3 {
		storetest.Version(t, s, env, false, storetest.Intents(t, "a")...)
	}
	put := func(number int) error {
		state := storetest.State(env, storetest.Intents(t, "b")...)
		state.Number = number
		_, err := s.StoreVersion(t.Context(), state, false, storetest.Now())
		return err
	}
	if err := s.DeleteVersion(t.Context(), env, 2); err != nil {
		t.Fatal(err)
	}
	if err := put(2); !errors.Is(err, model.ErrConflict) {
		t.Errorf("version 2 after its deletion: %v, want a conflict", err)
	}
	if err := s.ClearEnvironment(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if err := put(3); !errors.Is(err, model.ErrConflict) {
		t.Errorf("version 3 after the environment was cleared: %v, want a conflict", err)
	}
	if err := s.DeleteVersion(t.Context(), env, 2); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("deleted twice: %v, want not found", err)
	}
}

func TestStoreVersionRefuses(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	a := storetest.Intents(t, "a")
	storetest.Version(t, s, env, false, a...)
	bad := func(id model.ResourceID) []model.Intent {
		in := a[0]
		in.Resource = id
		return []model.Intent{in}
	}
	tests := []struct {
		name    string
		number  int
		env     model.EnvironmentID
		intents []model.Intent
		want    error
	}{
		{"a number that was never reserved", 7, env, a, model.ErrInvalid},
		{"a negative number", -1, env, a, model.ErrInvalid},
		{"a number in use", 1, env, a, model.ErrConflict},
		{"a resource twice", 0, env, storetest.Intents(t, "a", "b", "a=2"), model.ErrInvalid},
		{"a requirement that is missing", 0, env, storetest.Intents(t, "a > b"), model.ErrInvalid},
		{"a requirement that is removed, of an unchanged resource", 0, env, storetest.Intents(t, "c > a"), model.ErrInvalid},
		{"a malformed id", 0, env, bad("nonsense"), model.ErrInvalid},
		{"an id with a control character", 0, env, bad("fs::File[web,path=\x1f]"), model.ErrInvalid},
		{"an unknown environment", 0, model.EnvironmentID{UUID: uuid.New()}, a, model.ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := storetest.State(tt.env, tt.intents...)
			state.Number = tt.number
			if _, err := s.StoreVersion(t.Context(), state, true, storetest.Now()); !errors.Is(err, tt.want) {
				t.Errorf("StoreVersion = %v, want %v", err, tt.want)
			}
		})
	}
	e, err := s.Environment(t.Context(), env)
	if err != nil || e.LastVersion != 1 {
		t.Errorf("the counter is %d, %v, want 1: refused versions take no number", e.LastVersion, err)
	}
}

func TestReleaseBringsStatesInLine(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	statuses := func() map[string]model.Status {
		t.Helper()
		l, err := s.Resources(t.Context(), env, model.ResourceFilter{}, model.Page{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]model.Status{}
		for _, r := range l.Items {
			out[r.State.Resource.Parts().Value[1:]] = r.State.Status()
		}
		return out
	}
	intents := storetest.Intents(t, "a=1", "b=1 > a", "c=1")
	storetest.Version(t, s, env, true, intents...)
	lease := storetest.Lease(t, s, env)
	if err := s.SaveProgress(t.Context(), lease, progress(env, intents)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]model.Status{"a": "deployed", "b": "deployed", "c": "deployed"}, statuses()); d != "" {
		t.Error(d)
	}
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=?", "b=1 > a", "d=1")...)
	if d := cmp.Diff(map[string]model.Status{"a": "undefined", "b": "skipped_for_undefined", "c": "orphaned", "d": "available"}, statuses()); d != "" {
		t.Error(d)
	}
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=2", "b=1 > a", "c=1")...)
	if d := cmp.Diff(map[string]model.Status{"a": "available", "b": "deployed", "c": "deployed", "d": "orphaned"}, statuses()); d != "" {
		t.Error(d)
	}
	v, err := s.Version(t.Context(), env, 2)
	if err != nil || !cmp.Equal(v.Undeployable, []model.ResourceID{storetest.ID("web", "/a")}) || !cmp.Equal(v.Blocked, []model.ResourceID{storetest.ID("web", "/b")}) {
		t.Errorf("version 2 = %+v, %v", v, err)
	}
	if v.Added != 1 || v.Changed != 2 || v.Removed != 1 {
		t.Errorf("version 2 adds %d, changes %d, removes %d, want 1, 2 (a and the blocked b), 1", v.Added, v.Changed, v.Removed)
	}
}

func TestAutoDeployOff(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s, storetest.Setting("auto_deploy", "false")).ID
	id := request(t, s, env, now)
	mustClaim(t, s, "w", now)
	state := storetest.State(env, storetest.Intents(t, "a")...)
	if n := finish(t, s, "w", id, &state, now); n != 1 {
		t.Fatalf("version %d, want 1", n)
	}
	if n, err := s.ReleasedVersion(t.Context(), env); err != nil || n != 0 {
		t.Errorf("released %d, %v, want none", n, err)
	}
	if ids, err := s.SchedulableEnvironments(t.Context()); err != nil || !cmp.Equal(ids, []model.EnvironmentID{env}) {
		t.Errorf("before a release schedulable %v, %v, want the environment", ids, err)
	}
	if err := s.ReleaseVersion(t.Context(), env, 1, now); err != nil {
		t.Fatal(err)
	}
	if err := s.ReleaseVersion(t.Context(), env, 1, now); !errors.Is(err, model.ErrConflict) {
		t.Errorf("released twice: %v, want a conflict", err)
	}
	if err := s.ReleaseVersion(t.Context(), env, 5, now); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("released an unknown one: %v, want not found", err)
	}
	if ids, err := s.SchedulableEnvironments(t.Context()); err != nil || !cmp.Equal(ids, []model.EnvironmentID{env}) {
		t.Errorf("schedulable %v, %v, want the environment", ids, err)
	}
}

// A version writes what it changes, not what it has.
func TestStoreVersionWritesOnlyChanges(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	env := storetest.Environment(t, s).ID
	const n = 500
	storetest.Version(t, s, env, true, storetest.Many(t, n, nil)...)
	conn := connect(t, url)
	rows := func() (count int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM resource_interval) + (SELECT count(*) FROM resource_body)").Scan(&count); err != nil {
			t.Fatal(err)
		}
		return count
	}
	before := rows()
	some := func(i int) bool { return i%100 == 0 }
	// A server that has just started compares with the database, and finds the same.
	cold := storetest.Open(t, url)
	storetest.Version(t, cold, env, true, storetest.Many(t, n, some)...)
	if got := rows() - before; got != 2*5 {
		t.Errorf("5 changes write %d rows, want 10: an interval and a body each", got)
	}
	before = rows()
	storetest.Version(t, s, env, true, storetest.Many(t, n, nil)...)
	if got := rows() - before; got != 5 {
		t.Errorf("5 changes back write %d rows, want 5: the bodies are there", got)
	}
	before = rows()
	storetest.Version(t, s, env, true, storetest.Many(t, n, nil)...)
	if got := rows() - before; got != 0 {
		t.Errorf("an equal version writes %d rows, want none", got)
	}
	purged, err := s.PurgeVersions(t.Context(), env, 1)
	if err != nil || purged != 3 {
		t.Fatalf("PurgeVersions = %d, %v, want 3", purged, err)
	}
	if got := rows(); got != 2*n {
		t.Errorf("%d rows are left, want %d: what only old versions had is gone", got, 2*n)
	}
	got, err := s.IntentsOf(t.Context(), env, 4)
	if err != nil || len(got) != n {
		t.Errorf("version 4 has %d resources, %v, want %d", len(got), err, n)
	}
}
