package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

// inSet makes an intent in a set.
func inSet(t *testing.T, set, name, value string, requires ...model.ResourceID) model.Intent {
	t.Helper()
	i, err := model.NewIntent(model.ResourceID("test::R[a,name="+name+"]"), []byte(`{"value":"`+value+`"}`), requires, set, false)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Rules: part-base-1, part-set-3, part-order-1.
func TestStorePartial(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	partial := func(set, value string) model.Partial {
		return model.Partial{DesiredState: model.DesiredState{Environment: env, Intents: []model.Intent{inSet(t, set, "in-"+set, value)}}}
	}
	if _, err := s.StorePartial(t.Context(), partial("a", "1"), true, storetest.Now()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("StorePartial() without a version = %v, want ErrInvalid", err)
	}
	var whole []model.Intent
	for k := range 10 {
		set := fmt.Sprintf("s%d", k)
		whole = append(whole, inSet(t, set, "in-"+set, "0"))
	}
	whole = append(whole, inSet(t, "", "shared", "0"))
	state := model.DesiredState{Environment: env, Intents: whole, Digest: model.StateDigest(whole)}
	if _, err := s.StoreVersion(t.Context(), state, true, storetest.Now()); err != nil {
		t.Fatal(err)
	}
	// All at once: each is put upon what was before, and none is lost.
	var wg sync.WaitGroup
	for k := range 10 {
		wg.Go(func() {
			if _, err := s.StorePartial(t.Context(), partial(fmt.Sprintf("s%d", k), "1"), true, storetest.Now()); err != nil {
				t.Errorf("StorePartial(s%d) = %v", k, err)
			}
		})
	}
	wg.Wait()
	newest, err := s.ReleasedVersion(t.Context(), env)
	if err != nil || newest != 11 {
		t.Fatalf("the newest version is %d (%v), want 11", newest, err)
	}
	got, err := s.IntentsOf(t.Context(), env, newest)
	if err != nil || len(got) != 11 {
		t.Fatalf("version %d has %d resources (%v), want 11", newest, len(got), err)
	}
	for _, i := range got {
		want := `{"value":"1"}`
		if i.Set == "" {
			want = `{"value":"0"}`
		}
		if string(i.Attributes) != want {
			t.Errorf("%s is %s, want %s", i.Resource, i.Attributes, want)
		}
	}
	v, err := s.Version(t.Context(), env, newest)
	if err != nil || string(v.Metadata[model.MetadataPartialBase]) != "10" || v.Changed != 1 {
		t.Errorf("version is %+v (%v), want one change upon version 10", v, err)
	}
	bad := partial("s1", "1")
	bad.RemovedSets = []string{"s1"}
	if _, err := s.StorePartial(t.Context(), bad, true, storetest.Now()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("StorePartial() of a removed set = %v, want ErrInvalid", err)
	}
	if after, err := s.ReleasedVersion(t.Context(), env); err != nil || after != newest {
		t.Errorf("a refused export left version %d (%v)", after, err)
	}
}
