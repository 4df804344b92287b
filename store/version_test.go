package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

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
