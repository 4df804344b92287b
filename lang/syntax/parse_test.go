package syntax_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

var expectation = regexp.MustCompile(`### (?:(eof) |@(\d+) )?(\w+): (.*?)(?: ###|$)`)

// expectations lists what the comments of a chunk expect, as line:column code message.
func expectations(lines []string) []string {
	var want []string
	for i, line := range lines {
		for at := 0; ; {
			m := expectation.FindStringSubmatchIndex(line[at:])
			if m == nil {
				break
			}
			part := func(n int) string {
				if m[2*n] < 0 {
					return ""
				}
				return line[at+m[2*n] : at+m[2*n+1]]
			}
			place, text := strconv.Itoa(i+1), strings.TrimSpace(part(4))
			if part(1) != "" {
				place = "eof"
			}
			want = append(want, place+":"+part(2)+" "+part(3)+" "+text)
			at += m[9]
		}
	}
	return want
}

// TestChunks parses the programs in testdata; see the README there.
func TestChunks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.cf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line := 1
			for chunk := range strings.SplitSeq(string(src), "---\n") {
				checkChunk(t, file, line, chunk)
				line += strings.Count(chunk, "\n") + 1
			}
		})
	}
}

func checkChunk(t *testing.T, file string, first int, chunk string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(chunk, "\n"), "\n")
	want := expectations(lines)
	_, ds := syntax.Parse("main.cf", []byte(chunk), syntax.Options{})
	for i, d := range ds {
		if strings.HasPrefix(d.Message, "Syntax error at token ") {
			d.Range.Start = d.Range.End // the reference gives the place behind the token
		}
		where := fmt.Sprintf("%s:%d", file, first+d.Range.Start.Line-1)
		if i >= len(want) {
			t.Errorf("%s: unexpected %s", where, d)
			continue
		}
		place, rest, _ := strings.Cut(want[i], " ")
		code, text, _ := strings.Cut(rest, " ")
		line, col, _ := strings.Cut(place, ":")
		gotLine := strconv.Itoa(d.Range.Start.Line)
		if d.Range.Start.Line > len(lines) {
			gotLine = "eof"
		}
		if gotLine != line || col != "" && col != strconv.Itoa(d.Range.Start.Column) || d.Code != code || !strings.Contains(d.Message, text) {
			t.Errorf("%s: got %s\nwant %s", where, d, want[i])
		}
	}
	for _, w := range want[min(len(ds), len(want)):] {
		t.Errorf("%s:%d: nothing reported, want %s", file, first, w)
	}
}

// text writes an expression with parentheses around everything.
func text(n syntax.Node) string {
	args := func(args []syntax.Arg) string {
		var out []string
		for _, a := range args {
			switch {
			case a.Unpack.Valid():
				out = append(out, "**"+text(a.Value))
			case a.Name.Valid():
				out = append(out, a.Name.Text+"="+text(a.Value))
			default:
				out = append(out, text(a.Value))
			}
		}
		return strings.Join(out, ", ")
	}
	list := func(exprs []syntax.Expr) string {
		var out []string
		for _, e := range exprs {
			out = append(out, text(e))
		}
		return strings.Join(out, ", ")
	}
	switch n := n.(type) {
	case *syntax.Literal:
		return value.Repr(n.Value)
	case *syntax.Regex:
		return "/" + n.Pattern + "/"
	case *syntax.Interpolation:
		var out []string
		for _, h := range n.Holes {
			out = append(out, h.Source+"->"+text(h.Ref))
		}
		return fmt.Sprintf("interpolate(%q, %s)", n.Text, strings.Join(out, ", "))
	case *syntax.FString:
		return "format(" + parts(n.Parts) + ")"
	case *syntax.VarRef:
		return n.Name.Text
	case *syntax.AttrRef:
		return "(" + text(n.X) + "." + n.Name.Text + ")"
	case *syntax.List:
		return "[" + list(n.Items) + "]"
	case *syntax.ListComp:
		parts := []string{text(n.Value)}
		for _, f := range n.Fors {
			parts = append(parts, "for "+f.Var.Text+" in "+text(f.Iter))
		}
		for _, c := range n.Conds {
			parts = append(parts, "if "+text(c))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case *syntax.Dict:
		var out []string
		for _, e := range n.Entries {
			out = append(out, text(e.Key)+": "+text(e.Value))
		}
		return "{" + strings.Join(out, ", ") + "}"
	case *syntax.Call:
		return n.Func.Text + "(" + args(n.Args) + ")"
	case *syntax.Construct:
		return n.Type.Text + "(" + args(n.Args) + ")"
	case *syntax.IndexLookup:
		return n.Type.Text + "[" + args(n.Args) + "]"
	case *syntax.ShortLookup:
		return text(n.X) + "[" + args(n.Args) + "]"
	case *syntax.MapLookup:
		return text(n.X) + "[" + text(n.Key) + "]"
	case *syntax.Not:
		return "(not " + text(n.X) + ")"
	case *syntax.Binary:
		return "(" + text(n.X) + " " + n.Op.String() + " " + text(n.Y) + ")"
	case *syntax.Cond:
		return "(" + text(n.If) + " ? " + text(n.Then) + " : " + text(n.Else) + ")"
	case *syntax.IsDefined:
		return "(" + text(n.X) + " is defined)"
	case *syntax.ExprStmt:
		return text(n.X)
	case *syntax.Assign:
		if n.Append {
			return text(n.Target) + " += " + text(n.Value)
		}
		return text(n.Target) + " = " + text(n.Value)
	}
	return fmt.Sprintf("%T", n)
}

func parts(ps []syntax.FormatPart) string {
	var out []string
	for _, p := range ps {
		switch {
		case !p.IsField():
			out = append(out, strconv.Quote(p.Text))
			continue
		case p.Positional:
			out = append(out, "positional")
		default:
			out = append(out, text(p.Ref))
		}
		if p.Conversion != 0 {
			out[len(out)-1] += "!" + string(p.Conversion)
		}
		if p.Spec != nil {
			out[len(out)-1] += ":<" + parts(p.Spec) + ">"
		}
	}
	return strings.Join(out, " ")
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, want string }{
		{"a or b and c", "(a or (b and c))"},
		{"a and b or c", "((a and b) or c)"},
		{"a == b and c != d", "((a == b) and (c != d))"},
		{"1 < 2 < 3", "((1 < 2) < 3)"},
		{"1 + 2 * 3 - 4", "((1 + (2 * 3)) - 4)"},
		{"1 * 2 % 3 / 4", "(((1 * 2) % 3) / 4)"},
		{"2 ** 3 ** 2", "((2 ** 3) ** 2)"},
		{"-2 ** 2", "(-2 ** 2)"},
		{"2 * 3 ** 2", "(2 * (3 ** 2))"},
		{"not 1 == 2", "((not 1) == 2)"},
		{"not (1 == 2)", "(not (1 == 2))"},
		{"not a and not b", "((not a) and (not b))"},
		{"1 + 1 in [2]", "(1 + (1 in [2]))"},
		{"(1 + 1) in [2]", "((1 + 1) in [2])"},
		{"not 1 in y", "(not (1 in y))"},
		{"1 not in y and z", "((1 not in y) and z)"},
		{"2 ** 1 not in y", "(2 ** (1 not in y))"},
		{"a in b in c", "((a in b) in c)"},
		{"a in b not in c", "((a in b) not in c)"},
		{"a not in b not in c", "((a not in b) not in c)"},
		{"a in not b in c", "(a in (not (b in c)))"},
		{"a ? b : c ? d : e", "(a ? b : (c ? d : e))"},
		{"a ? b ? c : d : e", "(a ? (b ? c : d) : e)"},
		{"a or b ? c or d : e or f", "((a or b) ? (c or d) : (e or f))"},
		{"a == b is defined", "(a == (b is defined))"},
		{"not a.b is defined", "(not ((a.b) is defined))"},
		{`a.b["k"]["l"] is defined`, "((a.b)['k']['l'] is defined)"},
		{"a::b::c.d.e", "((a::b::c.d).e)"},
		{"a :: b . c", "(a::b.c)"},
		{"f(a, b=c, **d, e == f, g::h, i.j, K())", "f(a, b=c, **d, (e == f), g::h, (i.j), K())"},
		{"a::f()", "a::f()"},
		{"a :: B ( )", "a::B()"},
		{"A[b=1, **c]", "A[b=1, **c]"},
		{"a.b[c=1, d=2]", "(a.b)[c=1, d=2]"},
		{"a.b[c == 1]", "(a.b)[(c == 1)]"},
		{"a.b[c.d]", "(a.b)[(c.d)]"},
		{"a[b][c]", "a[b][c]"},
		{"[a + 1 for a in b if a > 1 if c]", "[(a + 1) for a in b if (a > 1) if c]"},
		{`{"a": 1, r"\b": [2]}`, `{'a': 1, '\\b': [2]}`},
		{"007", "7"},
		{"-12345678901234567890", "-12345678901234567890"},
		{"-.5", "-0.5"},
		{"null", "null"},
		{"[true, false]", "[True, False]"},
		{`"\x41\101é\n"`, `'AAé\n'`},
		{`r"\x41\""`, `'\\x41\\"'`},
		{`'it"s'`, `'it"s'`},
		{"\"\"\"a\n\"b\" \\\nc\"\"\"", `'a\n"b" c'`},
		{`""""q""""`, `'"q"'`},
		{`"""""five"""""`, `'""five""'`},
		{`"a {{ b.c }} {{d}}{{d}}"`, `interpolate("a {{ b.c }} {{d}}{{d}}", {{ b.c }}->(b.c), {{d}}->d, {{d}}->d)`},
		{`"{{{a}}}"`, `interpolate("{{{a}}}", {{a}}->a)`},
		{`"{{ a b }} {{}} {a} {{a::b}}"`, `'{{ a b }} {{}} {a} {{a::b}}'`},
		{`"\x7b{a-1}}"`, `interpolate("{{a-1}}", {{a-1}}->a-1)`},
		{`r"{{a}}"`, `'{{a}}'`},
		{`f"a{{b}}"`, `'a{b}'`},
		{`f""`, `''`},
		{`f"{a}-{ b.c !r:>{w}.2f}"`, `format(a "-" (b.c)!r:<">" w ".2f">)`},
		{`f"a{{x}}b{w}{}"`, `format("a{x}b" w positional)`},
		{`f"{a[b:c]}"`, `format(a[b:c])`},
		{`f"{1}"`, `format(1)`},
	}
	for _, test := range tests {
		f, ds := syntax.Parse("main.cf", []byte("x = "+test.src), syntax.Options{})
		if len(ds) > 0 {
			t.Errorf("Parse(%s) = %s", test.src, ds)
			continue
		}
		if got, want := text(f.Stmts[0]), "x = "+test.want; got != want || len(f.Stmts) != 1 {
			t.Errorf("Parse(%s) = %s (of %d statements), want %s", test.src, got, len(f.Stmts), want)
		}
	}
}

func TestStatements(t *testing.T) {
	t.Parallel()
	tests := []struct {
		src  string
		want []string
	}{
		{"x = a -1", []string{"x = a", "-1"}},
		{"x = 5-3", []string{"x = 5", "-3"}},
		{"x = 'it''s'", []string{"x = 'it'", "'s'"}},
		{"x = y\n(1 + 2)", []string{"x = y((1 + 2))"}},
		{"x = y\n[1]", []string{"x = y[1]"}},
		{`x = {"a": 1}["a"]`, []string{"x = {'a': 1}", "['a']"}},
		{`x = f"""a"""`, []string{"x = ''", "'a'", "''"}},
		{"x = 1.5.5", []string{"x = 1.5", "0.5"}},
		{"a.b += c a::d = e", []string{"(a.b) += c", "a::d = e"}},
		{"x = 1\r\ny = \"\"\"a\r\nb\"\"\"\rz = 2", []string{"x = 1", `y = 'a\nb'`, "z = 2"}},
		{"", nil},
	}
	for _, test := range tests {
		f, ds := syntax.Parse("main.cf", []byte(test.src), syntax.Options{})
		if len(ds) > 0 {
			t.Errorf("Parse(%q) = %s", test.src, ds)
		}
		var got []string
		for _, s := range f.Stmts {
			got = append(got, text(s))
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", test.src, d)
		}
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	f, ds := syntax.Parse("main.cf", []byte(`"""File"""
import a::b as c
entity E extends F, a::G:
    """Entity"""
    a::t[]? x = [1]
    dict? y = null
    int z = undef
end
implementation i for a::G: """Impl"""
    x = 1
    y = 2
end
implement a::G using i, parents, a::j """Implement"""
implement G using i when x
A.b [1:2] ann, Ann() B.c [:3] """Relation"""
A.d [4:] -> a::B
typedef t as a::u matching /x/ """Typedef"""
index a::A(b, c)
if a: b elif c: d else: e f end
for v in w: x end
`), syntax.Options{})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	doc := func(l *syntax.Literal) string { return string(l.Value.(value.String)) }
	equal := func(name string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	equal("file", doc(f.Doc), "File")
	imp := f.Stmts[0].(*syntax.Import)
	equal("import", []string{imp.Name.Text, imp.Name.Space, imp.Name.Base, imp.Alias.Text}, []string{"a::b", "a", "b", "c"})
	e := f.Stmts[1].(*syntax.Entity)
	equal("entity", []string{e.Name.Text, e.Parents[0].Text, e.Parents[1].Text, doc(e.Doc)}, []string{"E", "F", "a::G", "Entity"})
	equal("types", []string{e.Attrs[0].Type.Text(), e.Attrs[1].Type.Text(), e.Attrs[2].Type.Text()}, []string{"a::t[]?", "dict?", "int"})
	equal("defaults", []string{text(e.Attrs[0].Default), text(e.Attrs[1].Default)}, []string{"[1]", "null"})
	equal("undef", e.Attrs[2].Undef && e.Attrs[2].Default == nil, true)
	impl := f.Stmts[2].(*syntax.Implementation)
	equal("implementation", []string{impl.Name.Text, impl.For.Text, doc(impl.Doc), text(impl.Body[0]), text(impl.Body[1])},
		[]string{"i", "a::G", "Impl", "x = 1", "y = 2"})
	m := f.Stmts[3].(*syntax.Implement)
	equal("implement", []string{m.Entity.Text, m.Using[0].Text, m.Using[1].Text, doc(m.Doc)}, []string{"a::G", "i", "a::j", "Implement"})
	equal("parents", f.Position(m.Parents).Column, 25)
	when := f.Stmts[4].(*syntax.Implement)
	equal("when", text(when.When), "x")
	equal("no parents", when.Parents, syntax.NoPos)
	r := f.Stmts[5].(*syntax.Relation)
	equal("relation", []string{r.Left.Entity.Text, r.Left.Name.Text, r.Right.Entity.Text, r.Right.Name.Text, doc(r.Doc), text(r.Annotations[0]), text(r.Annotations[1])},
		[]string{"A", "b", "B", "c", "Relation", "ann", "Ann()"})
	equal("bounds", []int{r.Left.Low, r.Left.High, r.Right.Low, r.Right.High}, []int{1, 2, 0, 3})
	one := f.Stmts[6].(*syntax.Relation)
	equal("one way", []any{one.Left.Low, one.Left.High, one.Right.Name.Valid(), one.Op.Valid()}, []any{4, syntax.Unbounded, false, true})
	td := f.Stmts[7].(*syntax.Typedef)
	equal("typedef", []string{td.Name.Text, td.Base.Text, text(td.Constraint), doc(td.Doc)}, []string{"t", "a::u", "/x/", "Typedef"})
	ix := f.Stmts[8].(*syntax.Index)
	equal("index", []string{ix.Entity.Text, ix.Attrs[0].Text, ix.Attrs[1].Text}, []string{"a::A", "b", "c"})
	cond := f.Stmts[9].(*syntax.If)
	elif := cond.Else[0].(*syntax.If)
	equal("if", []any{cond.Elif, elif.Elif, len(elif.Else), text(elif.Then[0]), cond.EndPos == elif.EndPos}, []any{false, true, 2, "d", true})
	loop := f.Stmts[10].(*syntax.For)
	equal("for", []string{loop.Var.Text, text(loop.Iter), text(loop.Body[0])}, []string{"v", "w", "x"})
}

// TestPlaces holds the places that messages name (language specification, appendix C).
func TestPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, want string }{
		{"x\n=\n1", "main.cf:2"},
		{"a.b\n+=\n1", "main.cf:2"},
		{" f(\n1)", "main.cf:1:2"},
		{"A\n(\n)", "main.cf:2"},
		{"A\n[\n]", "main.cf:2"},
		{"a.b\n[\nc=1]", "main.cf:2"},
		{"a\n[\n1]", "main.cf:1"},
		{"a\n.\nb[1]", "main.cf:2"},
		{" abc", "main.cf:1:2"},
		{" a::\nb", "main.cf:1:2"},
		{"a\n.b\n.\nc", "main.cf:3"},
		{"1\n+\n2", "main.cf:2"},
		{"1\nnot\nin x", "main.cf:2"},
		{"\nnot\nx", "main.cf:2"},
		{"a\n.b\nis\ndefined", "main.cf:2"},
		{" [\n]", "main.cf:1"},
		{" [x for x\nin y]", "main.cf:1"},
		{" {\n}", "main.cf:1"},
		{"a\n?\nb : c", "main.cf:1:1"},
		{" 5", "main.cf:1"},
		{" \"a\"", "main.cf:1"},
		{" r\"a\"", "main.cf:1:2"},
		{" f\"{a}\"", "main.cf:1:2"},
		{" \"{{a}}\"", "main.cf:1"},
		{" 1 \"\"\"{{a}}\"\"\"", "main.cf:1"},
		{"\"\"\"doc\"\"\" \"\"\"{{a}}\"\"\"", "main.cf:1:11"},
		{"1 \"\"\"\n\"\"\"", "main.cf:1"},
		{"é = 1", ""},
		{"for x\nin y: end", "main.cf:1"},
		{"if\nx: end", "main.cf:1"},
		{"import\na", "main.cf:1"},
		{"entity\n A: end", "main.cf:2:2"},
		{"implementation\n i for A: end", "main.cf:2:2"},
		{"implement\n A using b", "main.cf:2:2"},
		{"typedef\n t as x matching self", "main.cf:2:2"},
		{"A.b [1]\n--\nB", "main.cf:1"},
		{"A\n.\nb [1]\n--\nB", "main.cf:2"},
		{"A\n.\nb [1]\nc B", "main.cf:2"},
		{"A.b [1]\nc B", "main.cf:1"},
		{"index\nA(b)", "main.cf:1"},
	}
	for _, test := range tests {
		f, ds := syntax.Parse("main.cf", []byte(test.src), syntax.Options{})
		if test.want == "" {
			if !ds.HasErrors() {
				t.Errorf("Parse(%q) = nothing wrong", test.src)
			}
			continue
		}
		if len(ds) > 0 {
			t.Errorf("Parse(%q) = %s", test.src, ds)
			continue
		}
		if got := f.Location(f.Stmts[0].Place()); got != test.want {
			t.Errorf("Location(%q) = %s, want %s", test.src, got, test.want)
		}
	}
	f, _ := syntax.Parse("main.cf", []byte("if a: b\nelif c\n: d end"), syntax.Options{})
	if got := f.Location(f.Stmts[0].(*syntax.If).Else[0].Place()); got != "main.cf:3" {
		t.Errorf("Location of elif = %s, want main.cf:3", got)
	}
}

// TestReferencePlaces holds the places of references in strings.
func TestReferencePlaces(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, want string }{
		{`é = 1`, ""},
		{`x = "é {{ a.bc }} {{a.bc}}"`, "1:11-12 a|1:11-15 a.bc|1:21-22 a|1:21-25 a.bc"},
		{"x = \"\"\"\n  {{ a }}\"\"\"", "2:6-7 a"},
		{`x = "\n\t{{a}}"`, "1:12-13 a"},
		{`x = f"{a} { b.c :{d}}"`, "1:8-9 a|1:13-14 b|1:13-16 b.c|1:19-20 d"},
		{`x = "\x7b{a}}"`, "1:5-6 a"},
	}
	for _, test := range tests {
		f, ds := syntax.Parse("main.cf", []byte(test.src), syntax.Options{})
		if test.want == "" {
			continue
		}
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		var got []string
		syntax.Walk(f.Stmts[0].(*syntax.Assign).Value, func(n syntax.Node) bool {
			if r, ok := n.(syntax.Ref); ok {
				rg := f.Range(r.Span())
				start := fmt.Sprintf("%d:%d", rg.Start.Line, rg.Start.Column)
				s := fmt.Sprintf("%s-%d %s", start, rg.End.Column, r.Text())
				if _, leaf := n.(*syntax.VarRef); leaf && len(got) > 0 && strings.HasPrefix(got[len(got)-1], start) {
					got = append(got[:len(got)-1], s, got[len(got)-1])
				} else {
					got = append(got, s)
				}
			}
			return true
		})
		if g := strings.Join(got, "|"); g != test.want {
			t.Errorf("%s: %s, want %s", test.src, g, test.want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"parentheses", "x = " + strings.Repeat("(", 100_000), "more than 1000 levels of nesting"},
		{"lists", "x = " + strings.Repeat("[", 100_000), "more than 1000 levels of nesting"},
		{"dictionaries", "x = " + strings.Repeat(`{"a":`, 100_000), "more than 1000 levels of nesting"},
		{"negations", "x = " + strings.Repeat("not ", 100_000), "more than 1000 levels of nesting"},
		{"conditionals", "x = " + strings.Repeat("a ? b : ", 100_000), "more than 1000 levels of nesting"},
		{"blocks", strings.Repeat("if a: ", 100_000), "more than 1000 levels of nesting"},
		{"branches", "if a: " + strings.Repeat("elif a: ", 100_000) + "end", "more than 20000 operators"},
		{"operators", "x = 1" + strings.Repeat(" + 1", 100_000), "more than 20000 operators"},
		{"attributes", "x = a" + strings.Repeat(".b", 100_000), "more than 20000 operators"},
		{"keys", "x = a" + strings.Repeat("[1]", 100_000), "more than 20000 operators"},
		{"path in a string", `x = "{{a` + strings.Repeat(".b", 100_000) + `}}"`, "more than 20000 operators"},
		{"digits", "x = " + strings.Repeat("1", 5000), "more than 4300 digits"},
		{"bytes", strings.Repeat(" ", 65<<20), "more than 67108864 are not supported"},
		{"encoding", "x = \"\xff\"", "not valid UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, ds := syntax.Parse("main.cf", []byte(test.src), syntax.Options{})
			if len(ds) == 0 || !strings.Contains(ds[0].Message, test.want) || ds[0].Code != "ParserException" {
				t.Errorf("Parse = %.200s, want %q", ds, test.want)
			}
		})
	}
	f, ds := syntax.Parse("main.cf", []byte("x = 1"+strings.Repeat(" + 1", 10_000)+"\ny = "+strings.Repeat("[", 900)+strings.Repeat("]", 900)), syntax.Options{})
	if len(ds) > 0 {
		t.Fatalf("Parse = %s, want nothing wrong below the limits", ds)
	}
	n := 0
	syntax.WalkStmts(f.Stmts, func(syntax.Node) bool { n++; return true })
	if want := 2 + 2 + 20_001 + 900; n != want {
		t.Errorf("Walk visited %d nodes, want %d", n, want)
	}
	for name, src := range map[string]string{
		"names":      strings.Repeat("a-b = 1\n", 100),
		"entities":   strings.Repeat("entity a: end\n", 100),
		"statements": strings.Repeat("import )\n", 100),
		"attributes": "entity A:\n" + strings.Repeat("int a-b\n", 100) + "end",
	} {
		if _, ds := syntax.Parse("main.cf", []byte(src), syntax.Options{MaxErrors: 7}); len(ds) != 7 {
			t.Errorf("%s: %d errors reported, want 7", name, len(ds))
		}
	}
	if _, ds := syntax.Parse("main.cf", []byte(strings.Repeat(`"\."`+"\n", 1000)), syntax.Options{}); len(ds) != 100 {
		t.Errorf("%d warnings reported, want 100", len(ds))
	}
}

// A text of several lines in plain quotes is one fault, and two of one line are two.
func TestOpenStrings(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"x = \"abc\ndef\"\ny = 1\n":    1,
		"A(b=\"abc\ndef\")\ny = 1\n":   1,
		"x = \"abc\ny = \"def\n":       2,
		"x = \"abc\ny = 1\nz = 'def\n": 2,
		"x = 1\x00\ny = 1\n":           1,
	} {
		if _, ds := syntax.Parse("main.cf", []byte(src), syntax.Options{}); len(ds) != want {
			t.Errorf("Parse(%q) has %d faults, want %d:\n%s", src, len(ds), want, ds)
		}
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, hint, related string }{
		{"x = \"a", "a string must end on the line", ""},
		{"x = 1;", "statements need nothing between them", ""},
		{"if a = b: end", "compare with ==", ""},
		{"x = !a", "negate with not", ""},
		{"x = a && b", "write and", ""},
		{"x = a | b", "write or", ""},
		{"end", "there is no block to end here", ""},
		{"entity A:\n    B b\nend", "define a relation instead", ""},
		{"entity A:\n    string B\nend", "define a relation for that", ""},
		{"entity abc: end", "write entity Abc:", ""},
		{"entiy A:\nend", "did you mean entity?", ""},
		{"a B:\nend", "", ""},
		{"x = 1\nimplemntation i for A:\nend", "did you mean implementation?", ""},
		{"x\nentity A:\nstring )", "", ""},
		{"\uFEFFx = 1", "without a byte order mark", ""},
		{"x = \u201Ca\u201D", "straight quotes", ""},
		{"été = 1", "names consist of", ""},
		{"entity A:\n    string b\nentity B:\nend", "close the block with end", "main.cf:1:1: this block has not been closed"},
		{"if a:\n    for b in c:\n    end\n    x = 1", "close the block with end", "main.cf:1:1: this block has not been closed"},
		{"if a:\n    import b\nend", "import can not stand inside of a block", ""},
		{"entity A:\n    string index\nend", "index is a keyword: choose another name", ""},
		{"if a:\nelse if b:\nend", "write elif", ""},
		{"x = 1\nelseif b:\nend", "write elif", ""},
		{"class Foo:\nend", "write entity Name:", ""},
		{"def f(x):\nend", "functions are plugins", ""},
		{"while a:\nend", "there are only loops over lists", ""},
		{"entity A:\n    bool b = True\nend", "write true", ""},
		{"A(b=False)", "write false", ""},
		{"x = [None]", "write null", ""},
		{"// a comment", "comments begin with #", ""},
		{"A.b -- B.a [1]", "needs a multiplicity", ""},
		{"x = {a: 1}", `write "a"`, ""},
		{"x = 'it's'", "a quote within a text", ""},
		{"x = \"\"\"a\nb", "three quotes does not end", ""},
		{"import \"a\"", "without quotes", ""},
		{"import a, b", "for each module", ""},
		{"import a.b", "separated by ::", ""},
		{"entity A:\n    name: string\nend", "the type comes first: string name", ""},
		{"x := 1", "assign with =", ""},
		{"b = a.\nc = 3", "a name is missing behind the dot", ""},
		{"entity A extends b:\nend", "begins with a capital: B", ""},
		{"entity A extends m::b:\nend", "begins with a capital: B", ""},
		{"implement a using b", "begins with a capital: A", ""},
		{"z = 1 if true else 2", "condition ? value : other", ""},
		{"x = {# " + strings.Repeat("long ", 100) + "\n= 1}", "", ""},
		{"x = f(1))", "no opening bracket", ""},
		{"Host = 3", "begins with a small letter", ""},
		{
			"implementation x for A:\n    if a:\n        for b in c:\n            d = 1\n    end\nend\nentity B:\nend", "close the block with end",
			"main.cf:3:9: this block has not been closed: the next end stands further to the left",
		},
		{"x = y<-1", "write a space", ""},
		{"True\n---", "", ""},
		{"for i [1]:\nend", "is in missing behind i?", ""},
		{"implement A std::none", "is using missing behind A?", ""},
		{"implement A when b using c", "the condition comes last", ""},
		{"implementation i:\nend", "the name of an entity missing behind i?", ""},
		{"typedef t as int\nx = 1", "a typedef needs a condition", ""},
		{"x\u00a0= 1", "U+00A0", ""},
		{"x += 1", "only relations can be added to", ""},
		{"implement A using parents when a", "implement A using parents", ""},
		{"x = {'a': 1, 'a': 2}", "", "main.cf:1:6: the key is given here already"},
	}
	for _, test := range tests {
		_, ds := syntax.Parse("main.cf", []byte(test.src), syntax.Options{})
		if len(ds) == 0 || !strings.Contains(ds[0].Hint, test.hint) || test.hint == "" && ds[0].Hint != "" {
			t.Errorf("Parse(%q) = %s with %+v, want the hint %q", test.src, ds, ds, test.hint)
			continue
		}
		var related strings.Builder
		for _, r := range ds[0].Related {
			related.WriteString(r.Range.String() + ": " + r.Message)
		}
		if related.String() != test.related {
			t.Errorf("Parse(%q) relates to %q, want %q", test.src, related.String(), test.related)
		}
	}
}
