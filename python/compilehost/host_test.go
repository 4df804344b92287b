package compilehost_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/python"
	"github.com/intendant/intendant/python/compilehost"
)

// outcome is what came of a compile.
type outcome struct {
	*lang.Result
	diags  diag.List
	stdout string
	stderr string
	err    error
}

// unpacked is where the packages are unpacked for all tests, so that Python keeps what it made of the sources.
var unpacked = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "compilehost-test-") })

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := unpacked(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// compile compiles a project given as files: those of a txtar archive. Without a project.yml there is one with libs as the path
// of modules, and each module without a module.yml gets one.
func compile(t testing.TB, archive string, change func(*compilehost.Config, *lang.Options)) *outcome {
	t.Helper()
	return compileIn(t, t.TempDir(), archive, change)
}

func compileIn(t testing.TB, dir, archive string, change func(*compilehost.Config, *lang.Options)) *outcome {
	t.Helper()
	return compileContext(t, t.Context(), dir, archive, change)
}

func compileContext(t testing.TB, ctx context.Context, dir, archive string, change func(*compilehost.Config, *lang.Options)) *outcome {
	t.Helper()
	if _, err := python.Find(""); err != nil {
		t.Skip(err)
	}
	files := map[string]string{"project.yml": "name: test\nmodulepath: libs\n"}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		files[f.Name] = string(f.Data)
		if parts := strings.Split(f.Name, "/"); len(parts) > 2 && parts[0] == "libs" {
			meta := "libs/" + parts[1] + "/module.yml"
			if files[meta] == "" {
				files[meta] = "name: " + parts[1] + "\nversion: 1.0\nlicense: Apache-2.0\n"
			}
			init := "libs/" + parts[1] + "/model/_init.cf"
			if _, ok := files[init]; !ok {
				files[init] = ""
			}
		}
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := unpacked()
	if err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	var mu sync.Mutex
	var stderr []string
	cfg := compilehost.Config{
		// Another Python than the usual one can be tried with the variable.
		Interpreter: os.Getenv("INTENDANT_TEST_PYTHON"), ProjectDir: dir, Cache: cache, Stdout: &stdout, Env: []string{"PATH=" + os.Getenv("PATH")},
		Stderr: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			stderr = append(stderr, line)
		},
	}
	opts := lang.Options{Stdout: &stdout}
	if change != nil {
		change(&cfg, &opts)
	}
	h := compilehost.New(cfg)
	opts.Plugins = h
	o := &outcome{}
	o.Result, o.diags, o.err = lang.Compile(ctx, lang.Project{FS: os.DirFS(dir)}, opts)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	o.stdout, o.stderr = stdout.String(), strings.Join(stderr, "\n")
	return o
}

// succeed fails the test when a compile has faults.
func (o *outcome) succeed(t testing.TB) *outcome {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.diags.HasErrors() {
		t.Fatalf("%s\nstderr: %s", o.diags, o.stderr)
	}
	return o
}

// printed compares what a model printed. In which order statements run is up to the compiler.
func (o *outcome) printed(t testing.TB, want string) {
	t.Helper()
	o.succeed(t)
	sorted := func(text string) string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	if sorted(o.stdout) != sorted(want) {
		t.Errorf("the model printed\n%s\nwant\n%s\nstderr: %s", o.stdout, want, o.stderr)
	}
}

// fails wants a fault with a code and a text.
func (o *outcome) fails(t testing.TB, code, text string) diag.Diagnostic {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	for _, d := range o.diags.Errors() {
		if (code == "" || d.Code == code) && strings.Contains(d.Message, text) {
			return d
		}
	}
	t.Fatalf("no fault %s with %q in:\n%s\nstderr: %s", code, text, o.diags, o.stderr)
	return diag.Diagnostic{}
}

const values = `
-- main.cf --
import m
import m::renamed
std::print(m::upper("abc"))
std::print(m::add(1, 2))
std::print(m::add(1, b=40))
std::print(m::add(123456789012345678901234567890, 1))
std::print(m::double(1.5))
std::print(m::nothing())
std::print(m::maybe(null))
std::print(m::maybe("x"))
std::print(m::total([1, 2, 3]))
std::print(m::keys({"b": 1, "a": [true, null, 1.5]}))
std::print(m::back({"b": 1, "a": [true, null, {"c": []}]}))
std::print(m::many(1, 2, 3, x="y", z=4))
std::print(m::renamed::thing("a"))
x = m::E(name="n1", size=3)
y = m::E(name="n2", size=4, next=x)
std::print(m::describe(y))
z = m::same(y)
std::print(z.name)
std::print(m::ordered(1))
std::print(m::native(7, "s", [1.0], {"k": 2}))
std::print(m::either("s"))
std::print(m::either(4))
std::print(m::named(y))
-- libs/m/model/_init.cf --
entity E:
    string name
    int size = 1
    string? note = null
end
E.next [0:1] -- E.previous [0:]
implement E using std::none
-- libs/m/model/renamed.cf --
-- libs/m/plugins/renamed.py --
from inmanta.plugins import plugin
@plugin("thing")
def other(x: "string") -> "string":
    return x + "!"
-- libs/m/plugins/__init__.py --
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Optional, Union
from inmanta.plugins import Context, ModelType, plugin
from inmanta.execute.proxy import DynamicProxy, SequenceProxy, DictProxy

@plugin
def upper(s: "string") -> "string":
    return s.upper()

@plugin()
def add(a: "int", b: "int" = 5) -> "int":
    return a + b

@plugin
def double(f: "float") -> "float":
    return f * 2

@plugin
def nothing() -> None:
    return None

@plugin
def maybe(s: "string?") -> "string?":
    assert s is None or s == "x"
    return s

@plugin
def total(items: "int[]") -> "int":
    assert isinstance(items, SequenceProxy) and not isinstance(items, list)
    return sum(items)

@plugin
def keys(d: "dict") -> "list":
    assert isinstance(d, DictProxy) and isinstance(d, Mapping) and not isinstance(d, dict)
    assert isinstance(d["a"], SequenceProxy) and d["a"][1] is None
    return sorted(d)

@plugin
def back(d: "dict") -> "dict":
    return d

@plugin
def many(ctx: Context, *args: "int", **kwargs: "any") -> "string":
    return f"{args} {sorted(kwargs.items())} {ctx.owner.location.lnr}"

@plugin
def describe(e: "m::E") -> "string":
    assert isinstance(e, DynamicProxy)
    assert not hasattr(e, "nope") and getattr(e, "nope", 1) == 1
    assert e.next != e and e.next.previous[0] == e
    assert e.note is None
    assert str(e._type()) == "m::E" and e._type().get_all_parent_names() == ["std::Entity"]
    try:
        e.name = "x"
    except Exception as x:
        assert str(x) == "Readonly object"
    return f"{e.name} {e.size} {e.next.name} {len(e.next.previous)}"

@plugin
def same(e: "m::E") -> "m::E":
    return e

@plugin
def ordered(a: int, b: int = 2, /, c: int = 3, *rest: int) -> str:
    return f"{a}{b}{c}{len(rest)}"

@plugin
def native(a: int, b: str, c: list[float], d: dict[str, int]) -> str:
    return f"{a} {b} {list(c)} {dict(d)}"

@plugin
def either(a: Union[int, str]) -> Optional[str]:
    return type(a).__name__

@plugin
def named(a: Annotated[Any, ModelType["m::E"]]) -> str:
    return a.name
`

func TestValues(t *testing.T) {
	t.Parallel()
	compile(t, values, nil).printed(t, `ABC
3
41
123456789012345678901234567891
3.0
None
None
x
6
@['a', 'b']
@{'b': 1, 'a': [True, null, {'c': []}]}
(1, 2, 3) [('x', 'y'), ('z', 4)] 14
a!
1230
7 s [1.0] {'k': 2}
str
int
n2
n2
n2 4 n1 1`)
}
