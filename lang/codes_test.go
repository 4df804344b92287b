package lang_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
)

// causeTexts are of faults that are seen only as the cause of others, which have the code.
var causeTexts = map[string]string{
	"InvalidModuleException":       "Metadata file libs/m/module.yml does not exist",
	"ModifiedAfterFreezeException": "List modified after freeze",
}

// TestExplanations compiles each wrong example, expects its code and the text in testdata/explained, and compiles the example
// without the fault.
func TestExplanations(t *testing.T) {
	t.Parallel()
	for _, e := range lang.Explanations() {
		t.Run(e.Code, func(t *testing.T) {
			t.Parallel()
			if e.Meaning == "" || e.Mend == "" || e.Example == "" || e.Fixed == "" {
				t.Fatal("the explanation is not complete")
			}
			files := map[string]string{"project.yml": "name: test\nmodulepath: libs\n"}
			overlay(files, e.Example)
			res, ds := compileExample(t, files)
			for _, d := range ds {
				if text := causeTexts[e.Code]; d.Code != e.Code && (text == "" || !strings.Contains(d.Message, text) && !mentions(d, text)) {
					t.Errorf("the example has another fault, too: %s", d)
				}
			}
			if len(ds) == 0 {
				t.Error("the example does not have the fault")
			}
			golden(t, filepath.Join("testdata", "explained", e.Code+".txt"), printed(t, res, ds))
			overlay(files, e.Fixed)
			if _, ds := compileExample(t, files); len(ds) > 0 {
				t.Errorf("the mended example has faults:\n%s", ds)
			}
		})
	}
}

func mentions(d diag.Diagnostic, text string) bool {
	return slices.ContainsFunc(d.Related, func(r diag.Related) bool { return strings.Contains(r.Message, text) })
}

// overlay puts the files of an example over others.
func overlay(files map[string]string, text string) {
	ar := txtar.Parse([]byte(text))
	if len(ar.Comment) > 0 {
		files["main.cf"] = string(ar.Comment)
	}
	for _, f := range ar.Files {
		if name, ok := strings.CutSuffix(f.Name, " (missing)"); ok {
			delete(files, name)
			continue
		}
		files[f.Name] = string(f.Data)
	}
}

// failing finds Python code that imports what is not there.
var failing = regexp.MustCompile(`^import (no_\w+)`)

// signatures finds plugins with one parameter in Python, and the one value that some accept.
var signatures = regexp.MustCompile(`(?m)^@plugin\ndef (\w+)\((\w+): "([^"]*)"\) -> "([^"]*)":` +
	`(?:\n    if \w+ != "(\w+)":\n        raise PluginException\("([^"]*)"\)\n    return (\d+))?`)

func compileExample(t *testing.T, files map[string]string) (*lang.Result, diag.List) {
	t.Helper()
	p, site := fstest.MapFS{}, fstest.MapFS{}
	var ext extension
	for name, text := range files {
		if inner, ok := strings.CutPrefix(name, "site-packages/"); ok {
			site[inner] = &fstest.MapFile{Data: []byte(text)}
			continue
		}
		p[name] = &fstest.MapFile{Data: []byte(text)}
		if m := failing.FindStringSubmatch(text); m != nil { // as the host of Python code says it
			ext.faults.Errorf("PluginModuleLoadException", diag.Range{File: name, Start: diag.Position{Line: 1}},
				"Unable to load all plug-ins for module m:\nModuleNotFoundError while loading plugin module inmanta_plugins.m: No module named '%s'", m[1])
		}
		if strings.Contains(text, "@dataclass") {
			ext.ext.Declared = pairing(text)
		}
		for _, m := range signatures.FindAllStringSubmatch(text, -1) {
			module := strings.Split(name, "/")[1]
			ext.ext.Plugins = append(ext.ext.Plugins, &value.Plugin{
				Name: module + "::" + m[1], Params: []value.Param{{Name: m[2], Type: m[3]}}, Returns: m[4],
				Call: func(_ value.Context, args []value.Value) (value.Value, error) {
					n, ok := value.ParseInt(m[7], 10)
					if !ok || args[0] != value.String(m[5]) {
						return nil, &value.PluginError{Message: m[6]}
					}
					return n, nil
				},
			})
		}
	}
	opts := lang.Options{Plugins: ext}
	if len(site) > 0 {
		opts.Sites = []module.Site{{Name: "site-packages", FS: site}}
	}
	return compile(t, p, opts)
}

// pairing compares dataclasses with Python code, as the host of that does.
func pairing(code string) func(context.Context, []lang.Dataclass) diag.List {
	return func(_ context.Context, entities []lang.Dataclass) diag.List {
		var ds diag.List
		for _, e := range entities {
			for _, a := range e.Attributes {
				if !a.Relation && !strings.Contains(code, "\n    "+a.Name+": ") {
					ds.Errorf("DataClassMismatchException", e.At, "The dataclass %s does not match the corresponding Python dataclass:\n"+
						"  - the attribute %s has no counterpart in Python: there is no field of that name", e.Name, a.Name)
				}
			}
			if e.Index != nil {
				d := diag.Errorf("DataClassException", e.At, "The dataclass %s has an index. A dataclass can not have indexes", e.Name)
				d.Related = append(d.Related, diag.Related{Range: *e.Index, Message: "defined here"})
				ds.Add(d)
			}
		}
		return ds
	}
}

// TestExplanationsComplete looks for codes that the compiler's sources and the expected faults of its tests name.
func TestExplanationsComplete(t *testing.T) {
	t.Parallel()
	var known []string
	for _, e := range lang.Explanations() {
		known = append(known, e.Code)
	}
	if !slices.IsSorted(known) || len(slices.Compact(slices.Clone(known))) != len(known) {
		t.Error("the explanations are not in order")
	}
	emitted := map[string]*regexp.Regexp{
		"*.go":        regexp.MustCompile(`(?:New|Located|Wrap|[eE]rrorf|[wW]arnf?|fail|report)\((?:p, )?"([A-Z]\w+)"`),
		"check/*.go":  nil,
		"eval/*.go":   nil,
		"module/*.go": nil,
		"syntax/*.go": nil,

		"../python/compilehost/*.go": nil,

		"testdata/*.txt":   regexp.MustCompile(`#[!*?] ([A-Z]\w+)`),
		"*/testdata/*.txt": nil,
		"*/spec/*.txt":     nil,
	}
	for pattern, code := range emitted {
		if code == nil {
			code = emitted["*.go"]
			if strings.HasSuffix(pattern, ".txt") {
				code = emitted["testdata/*.txt"]
			}
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range code.FindAllStringSubmatch(string(text), -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: %s is not explained", name, m[1])
				}
			}
		}
	}
}
