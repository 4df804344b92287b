package check_test

import (
	"strings"
	"testing"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// sources parses files given as namespace and text in turn; std is added.
func sources(t *testing.T, files ...string) []check.Source {
	t.Helper()
	files = append(files, "std", "implementation none for Entity:\nend\n")
	var out []check.Source
	for i := 0; i+1 < len(files); i += 2 {
		f, ds := syntax.Parse(files[i]+".cf", []byte(files[i+1]), syntax.Options{})
		if ds.HasErrors() {
			t.Fatalf("%s:\n%s", files[i], ds)
		}
		out = append(out, check.Source{Namespace: files[i], File: f})
	}
	return out
}

func run(t *testing.T, in check.Input) (*check.Program, []*check.Fault) {
	t.Helper()
	if in.Validate == nil {
		in.Validate = func(check.Type, value.Value) *check.Fault { return nil }
	}
	p, fs, _ := check.Check(in)
	return p, fs
}

func TestFaultsOfDefinitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, class, message string
		line                       int
	}{
		{"duplicate entity", "entity A:\nend\nentity A:\nend\n", "DuplicateException", "Entity __config__::A is already defined", 3},
		{"duplicate implementation", "implementation i for std::Entity:\nend\nimplementation i for std::Entity:\nend\n", "DuplicateException", "is already defined", 3},
		{"unknown parent", "entity A extends B:\nend\n", "TypeNotFoundException", "could not find type B in namespace __config__", 1},
		{"cycle", "entity A extends B:\nend\nentity B extends A:\nend\n", "CycleException", "Entity can not be its own parent", 3},
		{"parent twice", "entity P:\nend\nentity A extends P, P:\nend\n", "TypingException", "same parent defined twice", 3},
		{"unknown attribute type", "entity A:\n    nope x\nend\n", "TypeNotFoundException", "could not find type nope", 2},
		{"attribute twice", "entity A:\n    int x\n    int x\nend\n", "DuplicateException", "attribute 'x' already exists on entity 'A'", 2},
		{"incompatible override", "entity P:\n    int x\nend\nentity A extends P:\n    string x\nend\n", "DuplicateException", "Incompatible attributes", 5},
		{"relation to nothing", "entity A:\nend\nA.x [0:] -- Nope\n", "TypeNotFoundException", "could not find type Nope", 3},
		{"relation twice", "entity A:\nend\nA.x [0:] -- A\nA.x [1] -- A\n", "DuplicateException", "already exists", 3},
		{"relation inherited", "entity P:\n    int x\nend\nentity A extends P:\nend\nA.x [0:] -- A\n", "DuplicateException", "Attribute name x is already defined in P", 6},
		{"implementation of another", "entity A:\nend\nentity B:\nend\nimplementation i for B:\nend\nimplement A using i\n", "TypingException", "Type mismatch: cannot use i", 7},
		{"implement with a typedef", "entity A:\nend\ntypedef t as int matching self > 1\nimplement A using t\n", "TypingException", "is not an implementation", 4},
		{"index on nothing", "entity A:\nend\nindex A(x)\n", "NotFoundException", "Attribute 'x' referenced in index", 3},
		{"unknown argument", "entity A:\nend\nimplement A using std::none\nA(x=1)\n", "TypingException", "no attribute x on type __config__::A", 4},
		{"index attribute missing", "entity A:\n    int x\nend\nindex A(x)\nimplement A using std::none\nA()\n", "IndexAttributeMissingInConstructorException", "Missing attribute 'x'", 6},
		{"not imported", "x = m::v\n", "NotFoundException", "Namespace m not found", 1},
		{"type not imported", "x = m::A()\n", "MissingImportException", "Try importing the module with `import m`", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, fs := run(t, check.Input{Sources: sources(t, "__config__", c.text)})
			if len(fs) == 0 {
				t.Fatal("accepted")
			}
			f := fs[0]
			if f.Class != c.class || !strings.Contains(f.Msg, c.message) || f.At == nil || f.At.Line() != c.line {
				t.Errorf("got %s %v", f.Class, f)
			}
		})
	}
}

func TestAllFaultsOfAPhaseAreReported(t *testing.T) {
	t.Parallel()
	_, fs := run(t, check.Input{Sources: sources(t, "__config__", "x = Nope()\ny = 1\nz = nope()\nif true:\n    a = b::c\nend\n")})
	if len(fs) != 3 {
		t.Errorf("got %v", fs)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	const text = `
entity P:
    string a
    string b = "p"
end
entity Q:
    string b = "q"
    string c
end
entity A extends P, Q:
    string d
end
`
	p, fs := run(t, check.Input{Sources: sources(t, "__config__", text)})
	if len(fs) > 0 {
		t.Fatal(fs)
	}
	e, ok := p.Symbols["__config__::A"].(*check.Entity)
	if !ok {
		t.Fatal("no entity")
	}
	var names []string
	for _, a := range e.All {
		names = append(names, a.Entity.Name+"."+a.Name)
	}
	// From the right-most parent to the left-most, whose attributes win, then the entity's own.
	if got := strings.Join(names, " "); got != "Entity.requires Entity.provides P.b Q.c P.a A.d" {
		t.Errorf("slots %s", got)
	}
	if len(e.Defaults) != 1 || e.Defaults[0].X.Val != value.String("p") {
		t.Errorf("defaults %v", e.Defaults)
	}
	if !e.IsA(p.Base) {
		t.Error("not an std::Entity")
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	p, fs := run(t, check.Input{Sources: sources(t, "__config__", "typedef t as int matching self > 1\n")})
	if len(fs) > 0 {
		t.Fatal(fs)
	}
	ns := p.Root.Find("__config__")
	for text, want := range map[string]string{
		"": "any", "any": "any", "int[]?": "int[]?", "string | int": "Union[string,int]", "string | null": "string?", "t": "__config__::t",
		"dict[string, int[]]": "dict[string, int[]]", "Reference[string] | string": "Reference[string] | string", "std::Entity": "std::Entity",
		"(string | int)[]": "Union[string,int][]", "int | Reference[int] | null": "Reference[int] | int?",
	} {
		got, f := ns.SignatureType(text)
		if f != nil || got.String() != want {
			t.Errorf("%q: %v, %v", text, got, f)
		}
	}
	for _, text := range []string{"nope", "nope[]", "x::y", "int | nope", "std::none"} {
		if got, f := ns.SignatureType(text); f == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestPlaceOfFault holds the rules by which a fault gets its place.
func TestPlaceOfFault(t *testing.T) {
	t.Parallel()
	f, _ := syntax.Parse("x.cf", []byte("a\nb\nc\nd\n"), syntax.Options{})
	at := func(n int) *check.Loc {
		return &check.Loc{File: f, Place: syntax.Place{Span: syntax.Span{Start: syntax.Pos(2*n - 1), End: syntax.Pos(2 * n)}, LineOnly: true}}
	}
	if got := check.New("X", nil, "m").By(at(2), false).At.Line(); got != 2 {
		t.Errorf("a fault that nobody reported: line %d", got)
	}
	if got := check.New("X", at(1), "m").By(at(2), false).At.Line(); got != 1 {
		t.Errorf("a reported fault keeps its place: line %d", got)
	}
	if got := check.New("X", at(1), "m").By(at(2), true).At.Line(); got != 2 {
		t.Errorf("unless the statement is replaced: line %d", got)
	}
	if got := check.Located("X", at(1), "m").By(at(2), true).At.Line(); got != 1 {
		t.Errorf("or the place was set apart from a statement: line %d", got)
	}
	cause := check.New("X", nil, "m")
	w := check.Wrap("Y", at(3), cause, "n")
	w.By(at(4), false)
	if w.At.Line() != 3 || cause.At.Line() != 4 || w.Imp != cause.Imp+1 || w.Root() != cause {
		t.Errorf("wrapped: %v, cause %v", w, cause)
	}
	d := w.Diagnostic()
	if d.Message != "n\ncaused by: m" || len(d.Related) != 1 || d.Related[0].Range.Start.Line != 4 {
		t.Errorf("diagnostic %+v", d)
	}
}
