package syntax_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang/syntax"
)

// seeds adds the programs in testdata to a fuzz target.
func seeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.cf")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for chunk := range strings.SplitSeq(string(src), "---\n") {
			f.Add(chunk)
		}
	}
	for _, s := range []string{"\"\"\"\"\"\"", "f\"{a!r:{b[}]}}\"", "x = \"\\N{", "typedef a as b matching /[/", "\r\r\n\x00", "A.b [:999999999999999999999] -- c::D"} {
		f.Add(s)
	}
}

// FuzzParse holds that the parser takes any text, that places lie within it and that the walker knows every node.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		parses(t, src, syntax.Options{})
		parses(t, src, syntax.Options{Resume: true})
	})
}

func parses(t *testing.T, src string, opts syntax.Options) {
	t.Helper()
	file, ds := syntax.Parse("main.cf", []byte(src), opts)
	for _, d := range ds {
		if d.Message == "" || d.Code == "" || d.Range.File != "main.cf" || d.Range.Start.Line < 1 || d.Range.Start.Column < 1 {
			t.Errorf("incomplete diagnostic %+v", d)
		}
	}
	size := syntax.Pos(len(file.Src) + 1)
	syntax.WalkStmts(file.Stmts, func(n syntax.Node) bool {
		s, p := n.Span(), n.Place()
		if !s.Start.Valid() || s.End < s.Start || s.End > size || !p.Start.Valid() || p.End < p.Start || p.End > size {
			t.Errorf("%T is at %v, %v of %d bytes", n, s, p, size)
		}
		file.Location(p)
		return true
	})
}

// FuzzQuery holds that no text makes the parser of queries break, and that its faults are within the text.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{`Host[name="a"].files`, `[x.y for x in a.b[c=1].d if x is defined]`, `m::f(1, k=2)`, `a.b = 3`, `{"k": [1, `, "\"\"\"x", `a[1].b["c"].d is defined ? 1 : 2`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, file, ds := syntax.ParseQuery("expression", []byte(text))
		if (x == nil) != ds.HasErrors() {
			t.Errorf("the expression is %v, the faults are %s", x, ds)
		}
		for _, d := range ds {
			if d.Range.Start.Line > strings.Count(string(file.Src), "\n")+1 {
				t.Errorf("%s is behind the text", d)
			}
		}
	})
}
