package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/exectest"
)

// testLimit is the time for one model in tests; no model comes near it.
const testLimit = time.Minute

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// TestGenerated compiles generated models twice: the outcome is the same, it is a proper one, and a good part is accepted, so that
// models get past the first phases.
func TestGenerated(t *testing.T) {
	t.Parallel()
	const models = 60
	accepted := 0
	for seed := range uint64(models) {
		p := generate(source(seed))
		if again := generate(source(seed)); !cmp.Equal(p, again) {
			t.Fatalf("seed %d gives two models:\n%s", seed, cmp.Diff(p, again))
		}
		a := ours(t.Context(), p, testLimit)
		b := ours(t.Context(), p, testLimit)
		if d := compare(a, b); d != nil {
			t.Errorf("seed %d: two compiles differ: %s %s", seed, d.point, d.text)
		}
		switch a.outcome {
		case "ok":
			accepted++
		case "error":
		default:
			t.Errorf("seed %d: %s\n%s", seed, a.said(), p)
		}
	}
	if accepted < models/4 {
		t.Errorf("%d of %d generated models are accepted", accepted, models)
	}
}

// TestMutated breaks generated models: they are refused or accepted, and never bring the compiler down.
func TestMutated(t *testing.T) {
	t.Parallel()
	changed := 0
	for seed := range uint64(60) {
		r := source(seed)
		p := generate(r)
		for range 3 {
			q := mutate(r, p)
			if !cmp.Equal(p, q) {
				changed++
			}
			if a := ours(t.Context(), q, testLimit); a.outcome != "ok" && a.outcome != "error" {
				t.Errorf("seed %d: %s\n%s", seed, a.said(), q)
			}
		}
	}
	if changed < 150 {
		t.Errorf("%d of 180 mutations change the model", changed)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	ok := func(change func(*answer)) answer {
		a := answer{
			outcome: "ok", printed: []string{"a", "b"},
			nodes: map[string]*node{
				"1": {kind: "A", own: true, slots: map[string]any{"n": number("1"), "bs": []any{ref("2"), ref("3")}, "requires": []any{}}},
				"2": {kind: "B", slots: map[string]any{"l": []any{"x", true, nil}, "d": pairs{"k": number("2.0")}}},
				"3": {kind: "B", slots: map[string]any{"l": unknown{}}},
			},
			resources: map[string]string{"r": resourceText(map[string]any{"id": "r,v=1", "references": []any{}, "x": "<<undefined>>"}, nil)},
		}
		change(&a)
		return a
	}
	refused := func(code, file string, line int) answer {
		return answer{outcome: "error", errors: []fault{{codes: []string{code}, message: "m", places: []place{{file, line}}}}}
	}
	same := func(*answer) {}
	for _, c := range []struct {
		name       string
		our, their answer
		want       point
	}{
		{"the same", ok(same), ok(same), ""},
		{"other names and order", ok(func(a *answer) {
			a.nodes["9"] = a.nodes["2"]
			delete(a.nodes, "2")
			a.nodes["1"].slots["bs"] = []any{ref("3"), ref("9")}
		}), ok(same), ""},
		{"what nobody refers to", ok(func(a *answer) { a.nodes["4"] = &node{kind: "std::C"} }), ok(same), ""},
		{"no value and an empty list of requires", ok(func(a *answer) { delete(a.nodes["1"].slots, "requires") }), ok(same), ""},
		{"a value", ok(func(a *answer) { a.nodes["1"].slots["n"] = number("2") }), ok(same), pointInstances},
		{"an integer for a float", ok(func(a *answer) { a.nodes["2"].slots["d"] = pairs{"k": number("2")} }), ok(same), pointInstances},
		{"the order of a list of values", ok(func(a *answer) { a.nodes["2"].slots["l"] = []any{true, "x", nil} }), ok(same), pointInstances},
		{"a missing instance", ok(func(a *answer) { a.nodes["1"].slots["bs"] = []any{ref("2")} }), ok(same), pointInstances},
		{"an own instance more", ok(func(a *answer) { a.nodes["4"] = &node{kind: "C", own: true} }), ok(same), pointInstances},
		{"output", ok(func(a *answer) { a.printed = []string{"a", "c"} }), ok(same), pointPrinted},
		{"the order of output", ok(func(a *answer) { a.printed = []string{"b", "a"} }), ok(same), pointOrder},
		{"a resource", ok(func(a *answer) { a.resources["r"] = "other" }), ok(same), pointResources},
		{"an undefined value", ok(func(a *answer) {
			a.resources["r"] = resourceText(map[string]any{"x": map[string]any{"unknown": true}}, nil)
		}), ok(same), ""},
		{"a faulty export of both", refused("X", "f", 1), ok(func(a *answer) { a.exportError = "e" }), ""},
		{"a faulty export of one", ok(same), ok(func(a *answer) { a.exportError = "e" }), pointResources},
		{"accepted", ok(same), refused("X", "f", 1), pointAccept},
		{"refused", refused("X", "f", 1), ok(same), pointAccept},
		{"the same fault", refused("X", "f", 1), refused("X", "f", 1), ""},
		{"inside the standard module", refused("X", "{std}/a.cf", 1), refused("X", "{std}/model/a.cf", 7), ""},
		{"another line", refused("X", "f", 2), refused("X", "f", 1), pointLine},
		{"another file", refused("X", "g", 1), refused("X", "f", 1), pointLine},
		{"another class", refused("Y", "f", 1), refused("X", "f", 1), pointCode},
		{"another fault first", answer{
			outcome: "error", errors: append(refused("Z", "f", 9).errors, refused("X", "f", 1).errors...),
		}, refused("X", "f", 1), pointFirst},
		{"a crash", answer{outcome: "broken"}, refused("X", "f", 1), pointBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got point
			if d := compare(c.our, c.their); d != nil {
				got = d.point
			}
			if got != c.want {
				t.Errorf("compare = %q, want %q", got, c.want)
			}
		})
	}
}

func TestMinimise(t *testing.T) {
	t.Parallel()
	p := project{"main.cf": strings.Repeat("x = 1\n", 40) + "y = f(a, b)\n" + strings.Repeat("z = 2\n", 40), "m.cf": "q = 1\n", "project.yml": "name: x\n"}
	calls := 0
	small := minimise(p, 2000, func(q project) bool {
		calls++
		return strings.Contains(q["main.cf"], "f(a")
	})
	if want := (project{"main.cf": " f(a", "project.yml": "name: x\n"}); !cmp.Equal(small, want) {
		t.Errorf("minimise = %v, want %v", small, want)
	}
	if calls > 300 {
		t.Errorf("minimise asked %d times", calls)
	}
}

// echo is a reference for tests: it answers each request with the same line.
func echo(t *testing.T, line string) string {
	t.Helper()
	return exectest.Script(t, t.TempDir(), "python",
		"#!/bin/sh\necho '{\"ready\": true}'\nwhile read -r request; do\n  printf '%s\\n' '"+line+"'\ndone\n")
}

func testConfig(t *testing.T, python string) config {
	t.Helper()
	return config{python: python, out: filepath.Join(t.TempDir(), "out"), seed: 1, count: 4, mutations: 1, limit: testLimit, budget: 10}
}

func TestRunReportsDifferences(t *testing.T) {
	t.Parallel()
	cases := filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(cases, []byte(`{"files": {"main.cf": "x = 1\n", "project.yml": "name: x\n"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t, echo(t, `{"outcome": "error", "error": {"class": "inmanta.ast.NotFoundException", "message": "no",`+
		` "location": {"file": "main.cf", "line": 77}}}`))
	c.cases = cases
	var out strings.Builder
	differs, err := c.run(t.Context(), &out)
	if err != nil || !differs {
		t.Fatalf("run = %v, %v\n%s", differs, err, &out)
	}
	for _, want := range []string{"4 models, 0 accepted", "0 agree", "4 differ otherwise", "NotFoundException no", "-- main.cf --"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	files, err := filepath.Glob(filepath.Join(c.out, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Errorf("nothing is written down: %v", err)
	}
}

func TestRunKnowsChosenDifferences(t *testing.T) {
	t.Parallel()
	c := testConfig(t, echo(t, `{"outcome": "timeout"}`))
	var out strings.Builder
	differs, err := c.run(t.Context(), &out)
	if err != nil || differs || !strings.Contains(out.String(), "8 differ by a known reason") {
		t.Errorf("run = %v, %v\n%s", differs, err, &out)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mute := exectest.Script(t, t.TempDir(), "mute", "#!/bin/sh\nexit 1\n")
	brief := exectest.Script(t, t.TempDir(), "brief", "#!/bin/sh\necho '{\"ready\": true}'\nread -r request\n")
	endless := exectest.Script(t, t.TempDir(), "endless",
		"#!/bin/sh\necho '{\"ready\": true}'\nread -r request\nhead -c 80000000 /dev/zero | tr '\\0' x\n")
	for _, c := range []struct{ name, python, cases, want string }{
		{"an answer that is too long", endless, "", "token too long"},
		{"no Python", "", "", "set REFERENCE_PYTHON"},
		{"no such Python", filepath.Join(t.TempDir(), "none"), "", "starting the reference"},
		{"a Python without the reference", mute, "", "must be able to import inmanta"},
		{"a reference that ends", brief, "", "it ended"},
		{"no cases", mute, filepath.Join(t.TempDir(), "none"), "reading cases"},
		{"a case without a model", mute, bad, "case 1 has no model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := testConfig(t, c.python)
			config.cases = c.cases
			if _, err := config.run(t.Context(), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run = %v, want %s", err, c.want)
			}
		})
	}
}

// TestRecorded reads an answer in the form of a recorded case.
func TestRecorded(t *testing.T) {
	t.Parallel()
	a := decode[recorded]([]byte(`{"outcome": "ok", "stdout": "1\n2\n", "model": {"instances": [
		{"id": "a", "type": "__config__::A", "locs": ["{std}/x.cf:1", "main.cf:3"], "attrs": {"f": {"$float": "1.0"}, "d": {"$dict": [["k", 1]]},
		 "u": {"$unknown": true}, "r": {"$ref": "b"}, "l": [1, null]}, "rels": {"b": "b", "bs": ["b"]}},
		{"id": "b", "type": "m::B", "locs": ["{std}/x.cf:1"], "attrs": {}, "rels": {}}]},
		"export": {"outcome": "ok", "resources": [{"id": "m::B[x,n=1],v=0", "requires": ["m::C[x,n=1],v=0"], "n": "1"}]}}`)).answer()
	want := answer{
		outcome: "ok", printed: []string{"1", "2"},
		nodes: map[string]*node{
			"a": {kind: "A", own: true, slots: map[string]any{
				"f": number("1.0"), "d": pairs{"k": number("1")}, "u": unknown{}, "r": ref("b"), "l": []any{number("1"), nil}, "b": ref("b"),
				"bs": []any{ref("b")},
			}},
			"b": {kind: "m::B", slots: map[string]any{}},
		},
		resources: map[string]string{"m::B[x,n=1]": `{"n":"1"} requires [m::C[x,n=1]]`},
	}
	if d := cmp.Diff(want, a, cmp.AllowUnexported(answer{}, node{})); d != "" {
		t.Error(d)
	}
	f := (&recordedError{
		Class: "inmanta.ast.MultiException", Causes: []*recordedError{
			{Class: "inmanta.ast.UnsetException", Trace: "A (instantiated at main.cf:3) is not complete: attribute b (m.cf:4:5)"},
		},
	}).fault()
	if got := fmt.Sprint(f.codes, f.places); got != "[MultiException UnsetException] [main.cf:3 m.cf:4]" {
		t.Errorf("the fault of an aggregate is %s", got)
	}
}
