package modules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
)

// world is a catalogue in memory: the requirements of each version of each module.
type world map[string]map[string][]string

func (w world) candidates(_ context.Context, name string, _ []demand) ([]candidate, error) {
	if w[name] == nil {
		return nil, fmt.Errorf("module %s was not found: %w", name, model.ErrNotFound)
	}
	out := []candidate{}
	for v := range w[name] {
		version, err := module.ParseVersion(v)
		if err != nil {
			return nil, err
		}
		out = append(out, candidate{version: version})
	}
	slices.SortFunc(out, func(a, b candidate) int { return b.version.Compare(a.version) })
	return out, nil
}

func (w world) describe(_ context.Context, name string, c candidate) (choice, error) {
	d := module.Description{Layout: module.LayoutV2}
	for _, text := range w[name][c.version.Text()] {
		r, err := module.ParseRequirement(text)
		if err != nil {
			return choice{}, err
		}
		d.Modules = append(d.Modules, r)
	}
	return choice{candidate: c, Description: d}, nil
}

func roots(t interface{ Fatal(args ...any) }, texts ...string) []demand {
	var out []demand
	for _, text := range texts {
		r, err := module.ParseRequirement(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, demand{Requirement: r, by: "the project", project: true})
	}
	return out
}

func python() module.MarkerEnv { return module.PythonEnv("3.12.1", "x86_64") }

func show(chosen map[string]choice) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(chosen)) {
		out = append(out, n+" "+chosen[n].version.Text())
	}
	return strings.Join(out, ", ")
}

func TestSolve(t *testing.T) {
	t.Parallel()
	w := world{
		"web":  {"1.0": {"dns>=1"}, "2.0": {"dns>=2", "log"}, "3.0rc1": {"dns>=3"}},
		"dns":  {"1.0": nil, "1.5": nil, "2.0": {"web"}, "2.1.dev3": nil},
		"log":  {"1.0": {"dns<2"}, "0.9": {"dns<3; python_version>='3.9'", "nowhere; python_version<'3.9'"}},
		"old":  {"1.0": {"dns<1"}},
		"lost": {"2.0": {"nowhere"}, "1.0": nil},
		"pre":  {"1.0a1": nil},
	}
	for _, tc := range []struct {
		asks []string
		want string
	}{
		{nil, ""},
		{[]string{"dns"}, "dns 2.0, log 0.9, web 2.0"},
		{[]string{"dns<2"}, "dns 1.5"},
		{[]string{"web"}, "dns 2.0, log 0.9, web 2.0"}, // log goes back a version
		{[]string{"web", "dns~=1.0"}, "dns 1.5, web 1.0"},
		{[]string{"dns==2.1.dev3"}, "dns 2.1.dev3"},
		{[]string{"lost"}, "lost 1.0"}, // the newest can not be had
		{[]string{"lost>1"}, "error: module nowhere was not found"},
		{[]string{"old", "dns"}, "error: no version of module dns fits:\n  the project asks for dns\n  old 1.0 asks for dns <1\nthere are 2.1.dev3, 2.0, 1.5, 1.0"},
		{[]string{"dns<2", "log", "log>0.9", "dns>=2"}, "error: no version of module dns fits:\n  the project asks for dns <2\n  the project asks for dns >=2\nthere are 2.1.dev3, 2.0, 1.5, 1.0"},
		{[]string{"dns", "web==1.0", "dns>=2", "old"}, "error: no version of module dns fits:\n  the project asks for dns\n  the project asks for dns >=2\n  web 1.0 asks for dns >=1\n  old 1.0 asks for dns <1\nthere are 2.1.dev3, 2.0, 1.5, 1.0"},
		{[]string{"dns>9"}, "error: no version of module dns fits:\n  the project asks for dns >9"},
		{[]string{"pre"}, "error: no version of module pre fits:\n  the project asks for pre\nthere are 1.0a1; pre-releases"},
		{[]string{"web>=3"}, "error: no version of module web fits"},
	} {
		chosen, err := solve(t.Context(), w, python, roots(t, tc.asks...))
		got := show(chosen)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tc.want && (err == nil || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("solve(%q) = %s, want %s", tc.asks, got, tc.want)
		}
	}
	var conflict *ConflictError
	if _, err := solve(t.Context(), w, python, roots(t, "dns>9")); !errors.As(err, &conflict) || !errors.Is(err, model.ErrInvalid) || conflict.Module != "dns" {
		t.Errorf("the error of a conflict = %#v", err)
	}
}

// TestSolveWeak holds that what a module.yml requires bounds versions and fetches nothing.
func TestSolveWeak(t *testing.T) {
	t.Parallel()
	w := weakWorld{world{"web": {"1.0": {"dns<2", "never>1"}}, "dns": {"1.0": nil, "2.0": nil}}}
	for ask, want := range map[string]string{"web": "web 1.0", "web dns": "dns 1.0, web 1.0", "dns web": "dns 1.0, web 1.0"} {
		chosen, err := solve(t.Context(), w, python, roots(t, strings.Fields(ask)...))
		if err != nil || show(chosen) != want {
			t.Errorf("solve(%s) = %s, %v; want %s", ask, show(chosen), err, want)
		}
	}
}

type weakWorld struct{ world }

func (w weakWorld) describe(ctx context.Context, name string, c candidate) (choice, error) {
	x, err := w.world.describe(ctx, name, c)
	x.Layout = module.LayoutV1
	return x, err
}

// TestSolveEndless holds that a search without an end is cut off.
func TestSolveEndless(t *testing.T) {
	t.Parallel()
	w := world{"end": {"1": nil}}
	var asks []string
	for m := range 8 {
		name := fmt.Sprintf("m%d", m)
		asks = append(asks, name)
		w[name] = map[string][]string{}
		for v := range 8 {
			w[name][fmt.Sprint(v)] = nil
		}
	}
	asks = append(asks, "trap")
	w["trap"] = map[string][]string{"1": {"end>1"}}
	if _, err := solve(t.Context(), w, python, roots(t, asks...)); err == nil || !strings.Contains(err.Error(), "without an end") || !strings.Contains(err.Error(), "trap 1 asks for end >1") {
		t.Errorf("solve = %v, want it to give up and say where the trouble is", err)
	}
}

// TestSolveProperties compares with trying all combinations.
func TestSolveProperties(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	versions := []string{"1.0", "1.1", "2.0", "2.1rc1"}
	ops := []string{"", ">=1.1", "<2", "==1.*", "~=1.0", "!=1.1", ">=2", "==2.1rc1", "<=1.0"}
	rapid.Check(t, func(t *rapid.T) {
		// Whether a pre-release may be chosen can depend on who is asked later, which the search does not foresee, as pip's does
		// not: with pre-releases a solution must be right, and need not be found.
		versions, ops := versions, ops
		complete := rapid.Bool().Draw(t, "without pre-releases")
		if complete {
			versions = versions[:3]
			ops = slices.DeleteFunc(slices.Clone(ops), func(s string) bool { return strings.Contains(s, "rc") })
		}
		w := world{}
		requirement := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom(names).Draw(t, "of") + rapid.SampledFrom(ops).Draw(t, "op")
		})
		for _, n := range names {
			w[n] = map[string][]string{}
			for _, v := range versions[:rapid.IntRange(1, len(versions)).Draw(t, "versions")] {
				w[n][v] = rapid.SliceOfN(requirement, 0, 2).Draw(t, "requires "+n+" "+v)
			}
		}
		asks := rapid.SliceOfN(requirement, 1, 3).Draw(t, "asks")
		chosen, err := solve(t.Context(), w, python, roots(t, asks...))
		if err == nil {
			if why := violated(w, asks, versionsOf(chosen)); why != "" {
				t.Fatalf("solve(%q) = %s, which violates %s", asks, show(chosen), why)
			}
			return
		}
		if !errors.Is(err, model.ErrInvalid) {
			t.Fatalf("solve(%q): %v", asks, err)
		}
		if !complete {
			return
		}
		if all := anyWay(w, asks, names, versions, map[string]string{}); all != nil {
			t.Fatalf("solve(%q) = %v, though %v fits", asks, err, all)
		}
	})
}

func versionsOf(chosen map[string]choice) map[string]string {
	out := map[string]string{}
	for n, c := range chosen {
		out[n] = c.version.Text()
	}
	return out
}

// violated names a requirement that a set of versions does not meet: those of the asks and of all that is in the set.
func violated(w world, asks []string, set map[string]string) string {
	all := slices.Clone(asks)
	for n, v := range set {
		for _, r := range w[n][v] {
			if q, _ := module.ParseRequirement(r); q.Name != n { // nobody is bound by what it says of itself
				all = append(all, r)
			}
		}
	}
	pre := map[string]bool{}
	for _, text := range all {
		if r, _ := module.ParseRequirement(text); r.AllowsPrereleases() {
			pre[r.Name] = true
		}
	}
	for _, text := range all {
		r, _ := module.ParseRequirement(text)
		v, err := module.ParseVersion(set[r.Name])
		if err != nil || !r.Match(v, pre[r.Name]) {
			return text
		}
	}
	return ""
}

// anyWay tries all combinations.
func anyWay(w world, asks, names, versions []string, set map[string]string) map[string]string {
	if len(names) == 0 {
		if violated(w, asks, set) == "" {
			return set
		}
		return nil
	}
	for _, v := range append([]string{""}, versions...) {
		next := maps.Clone(set)
		if v != "" {
			if _, ok := w[names[0]][v]; !ok {
				continue
			}
			next[names[0]] = v
		}
		if found := anyWay(w, asks, names[1:], versions, next); found != nil {
			return found
		}
	}
	return nil
}
