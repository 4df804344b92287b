package lang_test

import (
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
)

// TestExplanations compiles each wrong example and expects its code.
func TestExplanations(t *testing.T) {
	t.Parallel()
	for _, e := range lang.Explanations() {
		t.Run(e.Code, func(t *testing.T) {
			t.Parallel()
			if e.Meaning == "" || e.Mend == "" {
				t.Error("the explanation is not complete")
			}
			if e.Example == "" {
				return
			}
			ar := txtar.Parse([]byte(e.Example))
			p := project("main.cf", string(ar.Comment))
			for _, f := range ar.Files {
				p[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			_, ds := compile(t, p, lang.Options{})
			if !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == e.Code }) {
				t.Errorf("the example does not have the fault, but:\n%s", ds)
			}
			for _, d := range ds {
				if d.Code != e.Code {
					t.Errorf("the example has another fault, too: %s", d)
				}
			}
		})
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
		"*.go":             regexp.MustCompile(`(?:New|Located|Wrap|[eE]rrorf|[wW]arnf?|fail|report)\((?:p, )?"([A-Z]\w+)"`),
		"check/*.go":       nil,
		"eval/*.go":        nil,
		"module/*.go":      nil,
		"syntax/*.go":      nil,
		"testdata/*.txt":   regexp.MustCompile(`#[!*?] ([A-Z]\w+)`),
		"*/testdata/*.txt": nil,
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
