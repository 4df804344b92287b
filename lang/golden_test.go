package lang_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestDiagnosticTexts shows the diagnostics of small projects as their users see them. An archive in testdata/diagnostics holds
// a project; its file "want" is the text. Without a project.yml one stands for it that has a name and the modulepath libs.
func TestDiagnosticTexts(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("no test data")
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			p := project()
			want, at := "", -1
			for i, f := range ar.Files {
				if f.Name == "want" {
					want, at = string(f.Data), i
					continue
				}
				p[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			got := render(t, p)
			if *update {
				if at < 0 {
					at = len(ar.Files)
					ar.Files = append(ar.Files, txtar.File{Name: "want"})
				}
				ar.Files[at].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the text differs (-want +got):\n%s", d)
			}
		})
	}
}

// render compiles a project and returns its diagnostics as text.
func render(t *testing.T, p fstest.MapFS) string {
	t.Helper()
	res, ds := compile(t, p, lang.Options{MaxSteps: 100_000})
	return printed(t, res, ds)
}

func printed(t *testing.T, res *lang.Result, ds diag.List) string {
	t.Helper()
	var b bytes.Buffer
	if err := (diag.Printer{Source: res.Source}).Print(&b, ds); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares a text with the file that holds it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, d)
	}
}
