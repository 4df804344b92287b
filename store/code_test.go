package store_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

// source is a content with its hash.
func source(text string) model.File {
	sum := sha1.Sum([]byte(text))
	return model.File{Hash: hex.EncodeToString(sum[:]), Content: []byte(text)}
}

// shipping makes a desired state whose resources have code.
func shipping(t *testing.T, env model.EnvironmentID, text string, intents ...model.Intent) model.DesiredState {
	t.Helper()
	f := source(text)
	s := storetest.State(env, intents...)
	s.Code = []model.ModuleCode{model.ModuleCode{
		Module: "fs", Files: []model.CodeFile{{Name: "inmanta_plugins.fs", Hash: f.Hash}}, Types: []string{"fs::File"},
	}.Canonical()}
	s.Files = []model.File{f}
	return s
}

func plans(t *testing.T, url string) int {
	t.Helper()
	n := 0
	if err := connect(t, url).QueryRow(t.Context(), "SELECT count(*) FROM code_plan").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCodeIsKeptOncePerContent(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	ctx := t.Context()
	env := storetest.Environment(t, s).ID
	intents := storetest.Intents(t, "a=1", "db/b=1")
	put := func(state model.DesiredState) int {
		t.Helper()
		n, err := s.StoreVersion(ctx, state, true, storetest.Now())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := put(shipping(t, env, "one = 1\n", intents...))
	second := put(shipping(t, env, "one = 1\n", storetest.Intents(t, "a=2", "db/b=1")...))
	if n := plans(t, url); n != 1 {
		t.Errorf("two versions with the same code have %d plans, want 1", n)
	}
	third := put(shipping(t, env, "one = 2\n", intents...))
	fourth := put(storetest.State(env, intents...))
	agents := map[int]map[model.AgentName]string{}
	for _, n := range []int{first, second, third, fourth} {
		var err error
		if agents[n], err = s.AgentCode(ctx, env, n); err != nil {
			t.Fatal(err)
		}
	}
	if len(agents[first]) != 2 || agents[first]["web"] != agents[first]["db"] || !cmp.Equal(agents[first], agents[second]) {
		t.Errorf("the code of agents is %v, then %v: want one manifest for both agents, and the same again", agents[first], agents[second])
	}
	if agents[third]["web"] == agents[first]["web"] || len(agents[fourth]) != 0 {
		t.Errorf("changed code has the manifest %v after %v, no code has %v", agents[third], agents[first], agents[fourth])
	}
	raw, err := s.File(ctx, agents[third]["web"])
	if err != nil {
		t.Fatal(err)
	}
	var m model.CodeManifest
	if err := json.Unmarshal(raw, &m); err != nil || len(m.Modules) != 1 || m.Modules[0].Files[0].Hash != source("one = 2\n").Hash {
		t.Errorf("the manifest is %s (%v)", raw, err)
	}
	// With the versions that need it, and not before, a plan goes.
	for _, n := range []int{first, second} {
		if got := plans(t, url); got != 2 {
			t.Errorf("before version %d goes there are %d plans, want 2", n, got)
		}
		if err := s.DeleteVersion(ctx, env, n); err != nil {
			t.Fatal(err)
		}
	}
	if got := plans(t, url); got != 1 {
		t.Errorf("%d plans are kept, want 1", got)
	}
	if err := s.DeleteEnvironment(ctx, env); err != nil {
		t.Fatal(err)
	}
}

func TestCodeRefused(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	for name, change := range map[string]func(*model.DesiredState){
		"a source that is nowhere": func(d *model.DesiredState) { d.Files = nil },
		"a module twice":           func(d *model.DesiredState) { d.Code = append(d.Code, d.Code[0]) },
		"a wrong digest":           func(d *model.DesiredState) { d.Code[0].Digest = "x" },
	} {
		state := shipping(t, env, "text of "+name, storetest.Intents(t, "a=1")...)
		change(&state)
		if _, err := s.StoreVersion(t.Context(), state, false, storetest.Now()); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v, want it to be refused as invalid", name, err)
		}
	}
}

func TestDiscovered(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := t.Context()
	env := storetest.Environment(t, s).ID
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=1")...)
	finder := model.ResourceID("net::Scan[web,name=all]")
	found := func(name, values string) model.DiscoveredResource {
		return model.DiscoveredResource{Resource: storetest.ID("web", "/"+name), Values: json.RawMessage(values), Discovery: finder}
	}
	batch := []model.DiscoveredResource{found("a", `{"n":1}`), found("b", `{"n":1}`), found("b", `{"n":2}`)}
	if err := s.SaveDiscovered(ctx, env, batch, storetest.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveDiscovered(ctx, env, []model.DiscoveredResource{found("a", `{"n":3}`)}, storetest.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	all := func(f model.DiscoveryFilter) []string {
		t.Helper()
		l, err := s.DiscoveredResources(ctx, env, f, model.Page{Sort: "discovered_resource_id"})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, d := range l.Items {
			managed := ""
			if d.Managed {
				managed = " managed"
			}
			out = append(out, d.Resource.Parts().Value+" "+string(d.Values)+managed)
		}
		return out
	}
	if d := cmp.Diff([]string{`/a {"n":3} managed`, `/b {"n":2}`}, all(model.DiscoveryFilter{})); d != "" {
		t.Error(d)
	}
	yes := true
	if d := cmp.Diff([]string{`/a {"n":3} managed`}, all(model.DiscoveryFilter{Managed: &yes, Types: []string{"FILE"}})); d != "" {
		t.Error(d)
	}
	one, err := s.Discovered(ctx, env, storetest.ID("web", "/a"))
	if err != nil || !one.Managed || one.Discovery != finder || !one.At.Equal(storetest.Now().Add(time.Hour)) {
		t.Errorf("Discovered = %+v, %v", one, err)
	}
	if n, err := s.DeleteDiscovered(ctx, env, []model.ResourceID{storetest.ID("web", "/a"), storetest.ID("web", "/none")}); n != 1 || err != nil {
		t.Errorf("DeleteDiscovered = %d, %v", n, err)
	}
	if _, err := s.Discovered(ctx, env, storetest.ID("web", "/a")); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("a deleted one is still there: %v", err)
	}
	nowhere := model.EnvironmentID{UUID: uuid.New()}
	if err := s.SaveDiscovered(ctx, nowhere, batch, storetest.Now()); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("discovered in no environment: %v", err)
	}
	bad := []model.DiscoveredResource{{Resource: "nonsense", Values: json.RawMessage("{}"), Discovery: finder}}
	if err := s.SaveDiscovered(ctx, env, bad, storetest.Now()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a malformed id: %v", err)
	}
}

func TestFactsAreRenewed(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := t.Context()
	env := storetest.Environment(t, s).ID
	state := storetest.State(env, storetest.Intents(t, "a=1", "b=1", "c=1", "d=1")...)
	state.Unknowns = []model.UnknownParameter{{Name: "ip", Resource: string(storetest.ID("web", "/d")), Source: "fact"}}
	if _, err := s.StoreVersion(ctx, state, true, storetest.Now()); err != nil {
		t.Fatal(err)
	}
	fact := func(name string, age time.Duration, expires bool) model.Parameter {
		return model.Parameter{
			Name: "ip", Value: "10.0.0.1", Source: model.SourceFact, Resource: storetest.ID("web", "/"+name), Expires: expires,
			Updated: storetest.Now().Add(-age),
		}
	}
	facts := []model.Parameter{fact("a", time.Hour, true), fact("b", time.Minute, true), fact("c", time.Hour, false), fact("gone", time.Hour, true)}
	if _, _, err := s.SetParameters(ctx, env, facts, false, model.CompileJob{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what another server finds at the same time is the same command
		if n, err := s.RenewFacts(ctx, storetest.Now(), 20*time.Minute); n != 1 || err != nil {
			t.Fatalf("RenewFacts = %d, %v; want one command", n, err)
		}
	}
	pending, err := s.PendingCommands(ctx, env)
	if err != nil {
		t.Fatal(err)
	}
	var asked []model.Command
	for _, c := range pending {
		if c.Kind == model.CommandFacts {
			asked = append(asked, c)
		}
	}
	// They were made at the same moment; which comes first is up to their ids.
	slices.SortFunc(asked, func(a, b model.Command) int { return len(a.Resources) - len(b.Resources) })
	if len(asked) != 2 || !cmp.Equal(asked[0].Resources, []model.ResourceID{storetest.ID("web", "/d")}) ||
		!cmp.Equal(asked[1].Resources, []model.ResourceID{storetest.ID("web", "/a"), storetest.ID("web", "/d")}) {
		t.Errorf("the commands are %+v, want one for what the release waits for, and one for what is due", asked)
	}
}
