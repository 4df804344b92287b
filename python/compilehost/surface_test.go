package compilehost_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/python/compilehost"
)

// A surface case is a txtar archive with modules (libs/...) and main files for them. docs/python-api.md says which of its rules a
// case holds. The files of a case:
//
//	main.cf, main/NAME.cf   a main file to compile; without imports of its own it imports m
//	load/NAME.py            Python code to have in place of that of the module m; the project imports m and that is all
//	resources               what compiling main.cf has to export: per line an id, the attributes that count, "requires" and ids
//
// Comments in a main file or in Python code to load say what is expected: "#> TEXT" is a line of output, "#! CODE: TEXT" a fault
// with TEXT in its message, reported in the line of the comment if that has anything else in it, "#? TEXT" a warning. A file that
// expects no fault must compile.
const surfaceCases = "testdata/surface/*.txtar"

var expectation = regexp.MustCompile(`^(.*?)#([>!?]) ?(.*)$`)

// expected is what a file of a case wants of a compile.
type expected struct {
	printed, warnings []string
	faults            []expectedFault
}

type expectedFault struct {
	code, text string
	line       int // 0 when it may be anywhere
}

func expectations(t *testing.T, text string) expected {
	t.Helper()
	var e expected
	for i, line := range strings.Split(text, "\n") {
		m := expectation.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch m[2] {
		case ">":
			e.printed = append(e.printed, m[3])
		case "?":
			e.warnings = append(e.warnings, m[3])
		case "!":
			code, message, ok := strings.Cut(m[3], ": ")
			if !ok {
				t.Fatalf("the line %q expects a fault without a code", line)
			}
			f := expectedFault{code: code, text: message}
			if strings.TrimSpace(m[1]) != "" {
				f.line = i + 1
			}
			e.faults = append(e.faults, f)
		}
	}
	return e
}

func (e expected) check(t *testing.T, o *outcome) {
	t.Helper()
	if len(e.faults) == 0 {
		o.succeed(t)
	}
	for _, f := range e.faults {
		d := o.fails(t, f.code, f.text)
		if f.line != 0 && d.Range.Start.Line != f.line {
			t.Errorf("the fault %q is reported at %s, want line %d", d.Message, d.Range, f.line)
		}
	}
	if len(o.diags.Errors()) > len(e.faults) {
		t.Errorf("there are more faults than %d:\n%s", len(e.faults), o.diags)
	}
	for _, w := range e.warnings {
		if !strings.Contains(o.diags.Warnings().String(), w) {
			t.Errorf("no warning %q in:\n%s", w, o.diags)
		}
	}
	if len(e.faults) == 0 || len(e.printed) > 0 {
		var got []string
		if text := strings.TrimSuffix(o.stdout, "\n"); text != "" {
			got = strings.Split(text, "\n")
		}
		// In which order statements run is up to the compiler.
		slices.Sort(got)
		slices.Sort(e.printed)
		if !slices.Equal(got, e.printed) {
			t.Errorf("printed\n%s\nwant\n%s\nstderr: %s", strings.Join(got, "\n"), strings.Join(e.printed, "\n"), o.stderr)
		}
	}
}

// TestSurface compiles modules of our own that use each item of the Python surface, see docs/python-api.md.
func TestSurface(t *testing.T) {
	t.Parallel()
	if !pythonAtLeast(t, 10) {
		t.Skip("the cases write types as X | None, which takes Python 3.10")
	}
	files, err := filepath.Glob(surfaceCases)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", surfaceCases, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runSurface(t, txtar.Parse(text).Files)
		})
	}
}

func runSurface(t *testing.T, files []txtar.File) {
	t.Helper()
	var common txtar.Archive
	resources := ""
	runs := 0
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Name, "main") || strings.HasPrefix(f.Name, "load/"):
			runs++
		case f.Name == "resources":
			resources = string(f.Data)
		default:
			common.Files = append(common.Files, f)
		}
	}
	if runs == 0 {
		t.Fatal("the case has neither a main file nor code to load")
	}
	inputs := func(c *compilehost.Config, o *lang.Options) {
		c.Environment = "2f1b5a0e-5b0a-4f5e-9d1e-6b2f6e6b2f6e"
		o.Inputs.Environment.Name = "dev"
	}
	for _, f := range files {
		isMain, isLoad := strings.HasPrefix(f.Name, "main"), strings.HasPrefix(f.Name, "load/")
		if !isMain && !isLoad {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			project := txtar.Archive{}
			main := f
			if isLoad {
				main.Data = []byte("import m\n")
				for _, c := range common.Files {
					if c.Name != "libs/m/plugins/__init__.py" {
						project.Files = append(project.Files, c)
					}
				}
				project.Files = append(project.Files, txtar.File{Name: "libs/m/plugins/__init__.py", Data: f.Data})
			} else {
				project.Files = slices.Clone(common.Files)
			}
			main.Name = "main.cf"
			project.Files = append(project.Files, main)
			o := compile(t, string(txtar.Format(&project)), inputs)
			expectations(t, string(f.Data)).check(t, o)
			if f.Name == "main.cf" && resources != "" {
				checkResources(t, o, resources)
			}
		})
	}
}

// checkResources compares what is exported: all resources, of each the attributes that are named.
func checkResources(t *testing.T, o *outcome, want string) {
	t.Helper()
	got := map[string]string{}
	attributes := map[string]map[string]any{}
	for _, in := range o.State.Intents {
		var all map[string]any
		if err := json.Unmarshal(in.Attributes, &all); err != nil {
			t.Fatal(err)
		}
		var requires []string
		for _, r := range in.Requires {
			requires = append(requires, string(r))
		}
		got[string(in.Resource)] = strings.Join(requires, " ")
		attributes[string(in.Resource)] = all
	}
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		id, rest, _ := strings.Cut(line, " {")
		object, requires, _ := strings.Cut("{"+rest, "} requires ")
		if requires != "" {
			object += "}"
		}
		have, ok := got[id]
		if !ok {
			t.Errorf("%s is not exported", id)
			continue
		}
		delete(got, id)
		if have != requires {
			t.Errorf("%s requires %q, want %q", id, have, requires)
		}
		var values map[string]any
		if err := json.Unmarshal([]byte(object), &values); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for name, v := range values {
			if !reflect.DeepEqual(attributes[id][name], v) {
				t.Errorf("%s has %s = %v, want %v", id, name, attributes[id][name], v)
			}
		}
	}
	for id := range got {
		t.Errorf("%s should not be exported", id)
	}
}
