package syntax_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang/syntax"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"white space", " \n\n ", ""},
		{"only comments", "\n\n# a  \n\n\n\n#b", "# a\n\n#b\n"},
		{"statements on one line", "x=1 y=a -1 z=5-3", "x = 1\ny = a\n-1\nz = 5\n-3\n"},
		{"operators", "x=a+1*-2**b<=c  and not(d)or e in[1,2]", "x = a + 1 * -2 ** b <= c and not (d) or e in [1, 2]\n"},
		{"conditional", "x=a?b:c", "x = a ? b : c\n"},
		{"conditional in a dictionary", `x={"a":b?c:d,}`, "x = {\"a\": b ? c : d,}\n"},
		{"calls", "f ( a,b = 1,** c )\nA ( **d )\nA[ b=c ] a . b [ c=d ]\na [ 'b' ] [ 'c' ]", "f(a, b=1, **c)\nA(**d)\nA[b=c]\na.b[c=d]\na['b']['c']\n"},
		{"names", "a :: b . c = d", "a::b.c = d\n"},
		{"a name that looks like a prefix", "x = f 'a' y = r \"b\"", "x = f\n'a'\ny = r\n\"b\"\n"},
		{
			"entity", "entity  A extends B , c::D :\n\n\n\"\"\"Doc\n  more\"\"\"\n string[ ] ? a=[1]\n\n\n dict ? b = null int c = undef\n\nend",
			"entity A extends B, c::D:\n    \"\"\"Doc\n  more\"\"\"\n    string[]? a = [1]\n\n    dict? b = null\n    int c = undef\nend\n",
		},
		{"empty entity", "entity A:end", "entity A:\nend\n"},
		{
			"relation", "A.b[1:]--B.c[:2]\n\"\"\"Doc\"\"\"\nA.b [ 1 ] ann(1),x B", "A.b [1:] -- B.c [:2]\n\"\"\"Doc\"\"\"\nA.b [1] ann(1), x B\n",
		},
		{
			"blocks", "implementation i for A: for x in y: if a: b elif c: d\n\n else: e # f\n # g\n end end end implement A using i,parents\nimplement A using i when a\n==b",
			`implementation i for A:
    for x in y:
        if a:
            b
        elif c:
            d
        else:
            e  # f
            # g
        end
    end
end
implement A using i, parents
implement A using i when a
    == b
`,
		},
		{"typedef and index", "typedef t as a::b matching   /x y/\n\"\"\"D\"\"\" index A ( b ,c )", "typedef t as a::b matching /x y/\n\"\"\"D\"\"\"\nindex A(b, c)\n"},
		{
			"line breaks in brackets", "x = f(a, {\n\"k\":[\n1,\n2],\n}, A(\nb=1\n))\ny = [\n1]",
			"x = f(a, {\n    \"k\": [\n        1,\n        2],\n}, A(\n    b=1\n))\ny = [\n    1]\n",
		},
		{"line breaks elsewhere", "x =\n1 +\n2\ny.z += # c\nA()", "x =\n    1 +\n    2\ny.z +=  # c\n    A()\n"},
		{"comments in brackets", "x = [ # a\n # b\n\n 1, # c\n]# d\n# e\n", "x = [  # a\n    # b\n    1,  # c\n]  # d\n# e\n"},
		{"comments and empty lines", "# a\n\n\n# b\nx = 1\n# c\n\n\n\ny = 2\n\n# d\n\n", "# a\n\n# b\nx = 1\n# c\n\ny = 2\n\n# d\n"},
		{"a docstring of the file", "\n\n\"\"\"Doc\"\"\" import   a as  b", "\"\"\"Doc\"\"\"\nimport a as b\n"},
		{"line ends of another system", "x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"},
		{"a comprehension", "x = [ y for y in z\n if y ]", "x = [y for y in z\n    if y]\n"},
		{"strings stay", "x = \"{{ a }}\" y = f'{ b :>3}' z = r'\\d'", "x = \"{{ a }}\"\ny = f'{ b :>3}'\nz = r'\\d'\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := syntax.Format([]byte(test.src))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, string(got)); d != "" {
				t.Errorf("Format (-want +got):\n%s", d)
			}
			again, err := syntax.Format(got)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(got), string(again)); d != "" {
				t.Errorf("Format again (-once +twice):\n%s", d)
			}
		})
	}
}

func TestFormatFaults(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"x = )", "x = \"\xff\"", "entity a: end", strings.Repeat(" ", 65<<20)} {
		out, err := syntax.Format([]byte(src))
		fault, ok := errors.AsType[*syntax.FormatError](err)
		if !ok || out != nil || !fault.Diags.HasErrors() || !strings.HasPrefix(err.Error(), "formatting: source:1") {
			t.Errorf("Format(%.20q) = %q, %v", src, out, err)
		}
	}
}

// checkFormat holds that what can be parsed can be formatted, keeps its meaning and is not changed again.
func checkFormat(t *testing.T, src string) {
	t.Helper()
	before, ds := syntax.Parse("source", []byte(src), syntax.Options{})
	once, err := syntax.Format([]byte(src))
	if ds.HasErrors() {
		if err == nil {
			t.Errorf("Format(%q) took what Parse refuses: %s", src, ds)
		}
		return
	}
	if err != nil {
		t.Fatalf("Format(%q) = %v", src, err)
	}
	after, ds := syntax.Parse("source", once, syntax.Options{})
	if ds.HasErrors() {
		t.Fatalf("Format(%q) = %q, which does not parse: %s", src, once, ds)
	}
	if len(before.Stmts) != len(after.Stmts) || len(before.Comments) != len(after.Comments) {
		t.Errorf("Format(%q) = %q, with other statements", src, once)
	}
	twice, err := syntax.Format(once)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once, twice) {
		t.Errorf("Format(%q) = %q, and again %q", src, once, twice)
	}
}

func TestFormatPrograms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.cf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for chunk := range strings.SplitSeq(string(src), "---\n") {
			checkFormat(t, chunk)
		}
	}
	checkFormat(t, string(sample(10)))
}

func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(checkFormat)
}
