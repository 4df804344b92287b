package lsp

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
)

// TestRun holds when a model is run to find its faults.
func TestRun(t *testing.T) {
	t.Parallel()
	const twice = "entity A:\n    int n\nend\nimplement A using std::none\na = A(n=1)\na.n = 2\n"
	const endless = "entity A:\nend\nimplementation a for A:\n    A()\nend\nimplement A using a\nA()\n"
	python := fstest.MapFS{
		"libs/m/module.yml":          {Data: []byte("name: m\nversion: 1.0\nlicense: none\n")},
		"libs/m/model/_init.cf":      {Data: []byte("")},
		"libs/m/plugins/__init__.py": {Data: []byte("@plugin\ndef f() -> int: ...\n")},
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name, text string
		more       fstest.MapFS
		ctx        context.Context
		want       string // part of the fault; empty when there is none
	}{
		{"a fault", twice, nil, t.Context(), "value set twice"},
		{"none", strings.ReplaceAll(twice, "a.n = 2", ""), nil, t.Context(), ""},
		{"plugins in Python", "import m\n" + twice, python, t.Context(), ""},
		{"a change meanwhile", twice, nil, cancelled, ""},
		{"too many steps to know", endless, nil, t.Context(), ""},
		{"other faults", "import m\n" + twice, nil, t.Context(), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{"project.yml": {Data: []byte("name: p\nmodulepath: libs\n")}, "main.cf": {Data: []byte(tc.text)}}
			maps.Copy(tree, tc.more)
			p := &project{kind: wholeProject, root: "/p", tree: tree, session: lang.NewSession()}
			state, _, err := p.check(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			ds := p.run(tc.ctx, state, nil, lang.Inputs{})
			if tc.want == "" && len(ds) > 0 || tc.want != "" && (len(ds) != 1 || !strings.Contains(ds[0].Message, tc.want)) {
				t.Errorf("faults %v, want %q", ds, tc.want)
			}
		})
	}
}

// TestWith holds that a fault is told once.
func TestWith(t *testing.T) {
	t.Parallel()
	fault := func(line int, message string) diag.Diagnostic {
		return diag.Errorf("X", diag.Range{File: "main.cf", Start: diag.Position{Line: line, Column: 1}}, "%s", message)
	}
	out := with(diag.List{fault(1, "early"), fault(2, "early")}, diag.List{fault(2, "late"), fault(3, "late")})
	var got []string
	for _, d := range out {
		got = append(got, d.Message+d.Range.String())
	}
	if text := strings.Join(got, " "); text != "latemain.cf:2:1 latemain.cf:3:1 earlymain.cf:1:1" {
		t.Error(text)
	}
}
