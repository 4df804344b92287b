package syntax_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang/syntax"
)

// outline lists the statements and attributes of a tree, each with its line and indented by its depth.
func outline(f *syntax.File) []string {
	var out []string
	var list func(stmts []syntax.Stmt, depth int)
	add := func(depth int, n syntax.Node, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s%d %s", strings.Repeat(" ", depth), f.Line(n.Span().Start), fmt.Sprintf(format, args...)))
	}
	list = func(stmts []syntax.Stmt, depth int) {
		for _, s := range stmts {
			switch s := s.(type) {
			case *syntax.Entity:
				add(depth, s, "entity %s", s.Name.Text)
				for _, a := range s.Attrs {
					add(depth+1, a, "%s", a.Name.Text)
				}
			case *syntax.Implementation:
				add(depth, s, "implementation %s", s.Name.Text)
				list(s.Body, depth+1)
			case *syntax.For:
				add(depth, s, "for %s", s.Var.Text)
				list(s.Body, depth+1)
			case *syntax.If:
				add(depth, s, "if")
				list(s.Then, depth+1)
				list(s.Else, depth+1)
			case *syntax.Assign:
				add(depth, s, "%s =", s.Target.Text())
			case *syntax.Import:
				add(depth, s, "import %s", s.Name.Text)
			default:
				add(depth, s, "%T", s)
			}
		}
	}
	list(f.Stmts, 0)
	return out
}

// TestResume holds how much of a broken text survives.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, src string
		want      []string
		lines     []int // of the errors
	}{
		{"a statement in the middle", "a = 1\nb = (\nc = 3\n", []string{"1 a =", "3 c ="}, []int{3}},
		{"half an assignment", "a = 1\nb =\nend = 2\nc = 3\n", []string{"1 a =", "4 c ="}, []int{3, 3}},
		{"a string without its end", "a = 1\nb = \"x\nc = 3\n", []string{"1 a =", "3 c ="}, []int{2}},
		{"the statement in front of a bad character", "a = 1\n$\nc = 3\n", []string{"1 a =", "3 c ="}, []int{2}},
		{"an argument", "x = Host(\n    name=,\n    other=5\n)\ny = 1\n", []string{"5 y ="}, []int{2}},
		{
			"a dot in a block", "implementation i for X:\n    a = 1\n    self.\n    for y in z:\n        c = 1\n    end\n    d = 1\nend\ne = 1\n",
			[]string{"1 implementation i", " 2 a =", " 4 for y", "  5 c =", " 7 d =", "9 e ="},
			[]int{4},
		},
		{
			"the head of a nested block", "implementation i for X:\n    for y in :\n        c = 1\n    end\n    d = 1\nend\ne = 1\n",
			[]string{"1 implementation i", " 5 d =", "7 e ="},
			[]int{2},
		},
		{
			"a block without its end", "implementation i for X:\n    a = 1\n\nentity E:\n    int x\nend\n",
			[]string{"1 implementation i", " 2 a =", "4 entity E", " 5 x"},
			[]int{4},
		},
		{
			"a nested block without its end", "implementation i for X:\n    if a:\n        b = 1\n    c = 1\nend\nd = 1\n",
			[]string{"1 implementation i", " 2 if", "  3 b =", "  4 c =", "6 d ="},
			[]int{5},
		},
		{
			"the end of the file in blocks", "implementation i for X:\n    for a in b:\n        c = 1\n",
			[]string{"1 implementation i", " 2 for a", "  3 c ="},
			[]int{5},
		},
		{
			"an attribute", "entity E:\n    string a\n    str\n    dict d = {\n    int b\nend\nx = 1\n",
			[]string{"1 entity E", " 2 a", " 5 b", "7 x ="},
			[]int{4, 5},
		},
		{"an import", "import\nimport b\nx = 1\n", []string{"2 import b", "3 x ="}, []int{2}},
		{
			"the head of an entity", "entity E extends :\n    int x\nend\nimplementation i for :\n    a = 1\nend\n",
			[]string{"1 entity E", " 2 x", "4 implementation i", " 5 a ="},
			[]int{1, 4},
		},
		{"valid", "if a:\n  b = 1\nelif c:\n  d = 1\nelse:\n  e = 1\nend\n", []string{"1 if", " 2 b =", " 3 if", "  4 d =", "  6 e ="}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f, ds := syntax.Parse("main.cf", []byte(tc.src), syntax.Options{Resume: true})
			if d := cmp.Diff(tc.want, outline(f)); d != "" {
				t.Errorf("statements (-want +got):\n%s", d)
			}
			var lines []int
			for _, d := range ds {
				lines = append(lines, d.Range.Start.Line)
			}
			if d := cmp.Diff(tc.lines, lines); d != "" {
				t.Errorf("lines of the errors (-want +got):\n%s%v", d, ds)
			}
		})
	}
}
