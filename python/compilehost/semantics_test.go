package compilehost_test

import (
	"strings"
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/python/compilehost"
)

// project puts a main file, a model and Python code together.
func project(main, cf, py string) string {
	return "-- main.cf --\nimport m\n" + main + "\n-- libs/m/model/_init.cf --\n" + cf + "\n-- libs/m/plugins/__init__.py --\n" + py + "\n"
}

// A plugin that reads what is not there yet runs again once it is, however often.
func TestUnset(t *testing.T) {
	t.Parallel()
	compile(t, project(`
a = m::Node(name="a")
a.next = b
b = m::Node(name=m::name_of(c))
b.next = c
c = m::Node(name=m::slow("c"))
implementation late for m::Node:
    self.extra = m::slow(self.name + "!")
end
implement m::Node using late
std::print(m::chain(a))
std::print(m::swallow(a))
std::print(m::multi(a))
`, `
entity Node:
    string name
    string extra
end
Node.next [0:1] -- Node.prev [0:]
`, `
from inmanta.ast import MultiUnsetException, OptionalValueException, UnsetException
from inmanta.plugins import plugin

@plugin
def slow(s: "string") -> "string":
    return s

@plugin
def name_of(n: "m::Node") -> "string":
    return n.name + "0"

@plugin
def chain(n: "m::Node") -> "string":
    out = []
    while True:
        out.append(n.extra)
        try:
            n = n.next
        except OptionalValueException:
            return " ".join(out)

@plugin
def swallow(n: "m::Node") -> "bool":
    try:
        n.extra
    except UnsetException:
        raise
    except Exception:
        return False
    return True

@plugin
def multi(n: "m::Node") -> "string":
    missing = []
    for x in (n, n.next):
        try:
            x.extra
        except UnsetException as e:
            missing.append(e.get_result_variable())
    if missing:
        raise MultiUnsetException("several", missing)
    return n.extra + n.next.extra
`), nil).printed(t, "a! c0! c!\nTrue\na!c0!")
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`
u = m::unknown()
std::print(m::is_unknown(m::same(u)))
std::print(m::is_unknown(m::first([1, u])))
std::print(m::is_unknown(m::second([1, u])))
std::print(m::skip([1, u, 2]))
std::print(m::raw(u))
n = m::E(x=u)
std::print(m::is_unknown(m::attr(n)))
`, `
entity E:
    string x
end
implement E using std::none
`, `
from inmanta.execute.proxy import UnknownException
from inmanta.execute.util import Unknown
from inmanta.plugins import plugin

calls = []

@plugin
def unknown() -> "string":
    return Unknown(source="a parameter")

@plugin
def same(x: "any") -> "any":
    calls.append(x)
    return x

@plugin(allow_unknown=True)
def is_unknown(x: "any") -> "bool":
    return isinstance(x, Unknown) and not calls

@plugin(allow_unknown=True)
def raw(x: "any") -> "string":
    assert list(x) == []
    return str(x.source)

@plugin
def first(x: "list") -> "any":
    return x[0]

@plugin
def second(x: "list") -> "any":
    return x[1]

@plugin
def skip(x: "list") -> "list":
    out, it = [], iter(x)
    while True:
        try:
            out.append(next(it))
        except UnknownException:
            continue
        except StopIteration:
            return out

@plugin
def attr(e: "m::E") -> "string":
    return e.x + "!"
`), nil)
	o.printed(t, "True\nFalse\nTrue\n@[1, 2]\na parameter\nTrue")
}

func TestPluginFaults(t *testing.T) {
	t.Parallel()
	const py = `
import sys
from inmanta.ast import RuntimeException
from inmanta.plugins import Context, PluginException, deprecated, plugin

class Mine(PluginException):
    pass

@plugin
def explicit() -> "string":
    raise Mine("this is wrong")

@plugin
def other(n: "int") -> "string":
    return helper(n)

def helper(n):
    return str(1 // n)

@plugin
def compiler() -> "string":
    raise RuntimeException(None, "the model is wrong")

@plugin
def optional(e: "m::E") -> "string":
    return e.other.name

@plugin
def wrong_return() -> "int":
    return "text"

@plugin
def leave() -> "string":
    sys.exit(4)

@plugin
def recurse(n: "int") -> "int":
    return recurse(n + 1)

@plugin
def generator() -> "list":
    return (i for i in range(3))

@plugin
def tuple_() -> "list":
    return (1, 2)

@plugin
def no_value() -> "string":
    return object()

@plugin
def keys() -> "dict":
    return {1: 2}

@plugin(commands=["no-such-command-anywhere"])
def needs() -> "string":
    return ""

@plugin
def two(a: "int", b: "string", *, c: "bool" = True) -> "string":
    return "x"

@plugin(emits_statements=True)
def forgot(ctx: Context) -> "any":
    pass

@plugin(emits_statements=True)
def twice(ctx: Context) -> "any":
    ctx.result.set_value("a", ctx.owner.location)
    ctx.result.set_value("a", ctx.owner.location)
    ctx.result.set_value("b", ctx.owner.location)

@plugin
def sets_and_returns(ctx: Context) -> "any":
    ctx.result.set_value("a", ctx.owner.location)
    return "b"
`
	for _, c := range []struct{ main, code, text string }{
		{"m::explicit()", "ExplicitPluginException", "PluginException in plugin m::explicit\nthis is wrong"},
		{"m::other(0)", "ExternalException", "Exception in plugin m::other\ncaused by: ZeroDivisionError: "},
		{"m::compiler()", "WrappingRuntimeException", "Exception in plugin m::compiler\ncaused by: the model is wrong"},
		{"m::optional(m::E(name=\"x\"))", "WrappingRuntimeException", "Optional variable accessed that has no value (attribute `m::E.other` of `m::E (instantiated at main.cf:2"},
		{"m::wrong_return()", "PluginTypeException", "Return value text of plugin m::wrong_return has incompatible type. Expected type: int"},
		{"m::two(\"a\", \"b\")", "PluginTypeException", "Value 'a' for argument a of plugin m::two has incompatible type. Expected type: int"},
		{"m::two(1)", "RuntimeException", "two() missing 1 required positional argument: 'b'"},
		{"m::two(1, \"b\", true)", "RuntimeException", "two() takes 2 positional arguments but 3 were given"},
		{"m::two(1, \"b\", d=true)", "RuntimeException", "two() got an unexpected keyword argument: 'd'"},
		{"m::leave()", "ExternalException", "caused by: SystemExit: 4"},
		{"m::recurse(1)", "ExternalException", "caused by: RecursionError: maximum recursion depth exceeded"},
		{"m::generator()", "PluginTypeException", "of plugin m::generator has incompatible type. Expected type: list"},
		{"m::tuple_()", "PluginTypeException", "Return value (1, 2) of plugin m::tuple_ has incompatible type. Expected type: list"},
		{"m::no_value()", "PluginTypeException", "of plugin m::no_value has incompatible type. Expected type: string"},
		{"m::keys()", "WrappingRuntimeException", "dict keys should be strings, got 1"},
		{"m::needs()", "ExternalException", "needs requires no-such-command-anywhere to be available in $PATH"},
		{"m::twice()", "WrappingRuntimeException", "value set twice:\n\told value: a\n\tnew value: b"},
		{"m::sets_and_returns()", "WrappingRuntimeException", "value set twice:\n\told value: a\n\tnew value: b"},
		{"m::forgot()", "WrappingRuntimeException", "did not set context.result"},
	} {
		t.Run(strings.TrimSuffix(c.main, "()"), func(t *testing.T) {
			t.Parallel()
			o := compile(t, project("x = "+c.main, "entity E:\n    string name\nend\nE.other [0:1] -- E\nimplement E using std::none", py), nil)
			d := o.fails(t, c.code, c.text)
			if d.Range.File != "main.cf" || d.Range.Start.Line != 2 {
				t.Errorf("reported at %s", d.Range)
			}
			if c.code == "ExternalException" && !strings.Contains(d.Message, `File "libs/m/plugins/__init__.py", line`) && !strings.HasPrefix(c.main, "m::needs") {
				t.Errorf("no traceback of the author's file in:\n%s", d.Message)
			}
			if strings.Contains(d.Message, "intendant_host") {
				t.Errorf("our own code in the traceback:\n%s", d.Message)
			}
		})
	}
}

func TestLoadFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		py, code, text string
		line           int
	}{
		"syntax error":   {"x = 1\ndef f(:\n    pass", "PluginModuleLoadException", "SyntaxError", 2},
		"missing import": {"import os\nimport no_such_package", "PluginModuleLoadException", "ModuleNotFoundError while loading plugin module inmanta_plugins.m: No module named 'no_such_package'", 2},
		"raises":         {"def f():\n    raise ValueError('not today')\nf()", "PluginModuleLoadException", "ValueError while loading plugin module inmanta_plugins.m: not today", 2},
		"exits":          {"import sys\nsys.exit(1)", "PluginModuleLoadException", "SystemExit while loading plugin module inmanta_plugins.m: 1", 2},
		"no annotation":  {"from inmanta.plugins import plugin\n@plugin\ndef f(x):\n    pass", "RuntimeException", "All arguments of plugin 'm::f' should be annotated: 'x' has no annotation", 3},
		"bad annotation": {
			"from inmanta.plugins import plugin\n@plugin\ndef f(x: set[int]):\n    pass", "TypingException", "invalid type set[int], set is not supported", 3,
		},
		"unknown type": {"from inmanta.plugins import plugin\n@plugin\ndef f(x: 'm::Nope'):\n    pass", "TypeNotFoundException", "could not find type m::Nope in namespace m", 3},
		"no type": {
			"from inmanta.plugins import plugin\n@plugin\ndef f(x: 'int | string'):\n    pass", "TypeNotFoundException", "could not find type int | string in namespace m", 3,
		},
		"deprecated": {"from inmanta.plugins import deprecated\n@deprecated\ndef f(x: int):\n    pass", "PluginModuleLoadException", "should be used in combination with the '@plugin'", 0},
		"reserved field": {
			"from inmanta.resources import Resource, resource\n@resource('m::E', agent='a', id_attribute='b')\nclass E(Resource):\n    fields = ('requires',)",
			"", "requires is a reserved keyword", 0,
		},
		"reads the model": {"from inmanta_plugins import std\nstd.upper('x')", "PluginModuleLoadException", "the model can", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := compile(t, project("", "", c.py), nil).fails(t, c.code, c.text)
			if c.line > 0 && (d.Range.File != "libs/m/plugins/__init__.py" || d.Range.Start.Line != c.line) {
				t.Errorf("reported at %s", d.Range)
			}
		})
	}
}

func TestDeprecatedAndWarnings(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`std::print(m::old())`, ``, `
import decimal
from inmanta.plugins import deprecated, plugin

@deprecated(replaced_by="m::new")
@plugin
def old() -> "string":
    return "old"

@plugin
def odd(p: decimal.Decimal) -> "any":
    return None
`), nil).succeed(t)
	for _, want := range []string{"Plugin 'm::old' is deprecated. It should be replaced by 'm::new'.", "Encountered Python type 'decimal.Decimal' in a plugin's signature"} {
		if !strings.Contains(o.diags.Warnings().String(), want) {
			t.Errorf("no warning %q in %s", want, o.diags)
		}
	}
}

func TestDataclasses(t *testing.T) {
	t.Parallel()
	compile(t, project(`
p = m::Point(x=1, y=2)
std::print(m::norm(p))
q = m::move(p, 3)
std::print(q.x)
l = m::both(p, q)
std::print(m::sum_all([p, q]))
std::print(std::count(l))
std::print(m::as_proxy(p))
std::print(m::maybe(null))
std::print(m::maybe(p))
`, `
entity Point extends std::Dataclass:
    int x
    int y
end
implement Point using std::none
`, `
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Optional
from inmanta.execute.proxy import DynamicProxy
from inmanta.plugins import ModelType, plugin

@dataclass(frozen=True)
class Point:
    x: int
    y: int

@plugin
def norm(p: Point) -> int:
    assert type(p) is Point
    return p.x * p.x + p.y * p.y

@plugin
def move(p: "m::Point", by: int) -> Point:
    assert type(p) is Point
    return Point(p.x + by, p.y + by)

@plugin
def both(p: Point, q: Point) -> list[Point]:
    return [Point(0, 0), p]

@plugin
def sum_all(ps: Sequence[Point]) -> int:
    assert isinstance(ps, list) and all(type(p) is Point for p in ps)
    return sum(p.x for p in ps)

@plugin
def as_proxy(p: Annotated[DynamicProxy, ModelType["m::Point"]]) -> str:
    assert isinstance(p, DynamicProxy)
    return f"{p.x}"

@plugin
def maybe(p: Optional[Point]) -> bool:
    return p is not None
`), nil).printed(t, "5\n4\n5\n2\n1\nFalse\nTrue")
}

func TestReferences(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`
r = m::secret("db")
d = m::creds("db")
a = m::Thing(name="a", password=r, options={"k": [1, r]})
m::Thing(name="b", password=d.password)
std::print(m::declared(r))
std::print(m::inside(a))
`, `
import std
entity Thing extends std::Resource:
    string name
    string password
    dict options = {}
end
implement Thing using std::none
entity Creds extends std::Dataclass:
    string user
    string password
end
implement Creds using std::none
`, `
from dataclasses import dataclass
from typing import Union
from inmanta.ast import UnsetException
from inmanta.plugins import allow_reference_values, plugin
from inmanta.references import Reference, reference
from inmanta.resources import Resource, resource

@reference("m::Secret")
class Secret(Reference[str]):
    def __init__(self, name: Union[str, Reference[str]]):
        super().__init__()
        self.name = name

    def resolve(self, logger):
        raise AssertionError("never while compiling")

@dataclass(frozen=True)
class Creds:
    user: Union[str, Reference[str]]
    password: Union[str, Reference[str]]

@reference("m::CredsRef")
class CredsRef(Reference[Creds]):
    def __init__(self, name: str):
        super().__init__()
        self.name = name

@plugin
def secret(name: "string") -> Reference[str]:
    return Secret(Secret(name))

@plugin
def creds(name: "string") -> "m::Creds":
    return CredsRef(name)

@plugin
def declared(x: Reference[str]) -> bool:
    return isinstance(x, Secret) and isinstance(x.name, Secret) and x.name.name == "db"

@plugin
def inside(t: "m::Thing") -> bool:
    try:
        t.password
    except UnsetException:
        raise
    except Exception as e:
        assert type(e).__name__ == "UnexpectedReference" and "allow_reference_values" in str(e), e
    else:
        return False
    return isinstance(allow_reference_values(t).password, Secret)

@resource("m::Thing", agent="name", id_attribute="name")
class Thing(Resource):
    fields = ("name", "password", "options")
`), nil)
	o.printed(t, "True\nTrue")
	if len(o.State.Intents) != 2 {
		t.Fatalf("%d resources", len(o.State.Intents))
	}
	a, b := string(o.State.Intents[0].Attributes), string(o.State.Intents[1].Attributes)
	for text, want := range map[string][]string{
		a: {`"password":null`, `"options":{"k":[1,null]}`, `"type":"m::Secret"`, `"value":"password"`, `"value":"options.'k'[1]"`, `"type":"core::Replace"`},
		b: {`"password":null`, `"type":"core::AttributeReference"`, `"type":"m::CredsRef"`, `"name":"attribute_name"`},
	} {
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %s in %s", w, text)
			}
		}
	}
	if got := strings.Join(o.State.Code[0].Types, " "); got != "m::CredsRef m::Secret m::Thing" {
		t.Errorf("types %s", got)
	}
	compile(t, project("m::plain(m::secret())", "", `
from inmanta.plugins import plugin
from inmanta.references import Reference, reference

@reference("m::Secret")
class Secret(Reference[str]):
    pass

@plugin
def secret() -> Reference[str]:
    return Secret()

@plugin
def plain(x: str) -> str:
    return x
`), nil).fails(t, "PluginTypeException", "is a reference. To allow references, use `| Reference[...]`")
}

func TestContext(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`
local = "from the file"
std::print(m::all("x"))
x = m::E(name="e1")
m::F(name="f1")
implementation inner for m::E:
    std::print(m::scoped())
end
implement m::E using inner
std::print(m::emits())
std::print(m::filters(["b", "a"]))
std::print(m::later())
late = std::key_sort([m::E(name="e3"), m::E(name="e2")], "name")
`, `
typedef port as int matching self > 0 and self < 65536
entity E:
    string name
end
entity F extends E:
    """a comment"""
    port? number = null
end
F.es [0:] "note", 4 E.fs [0:2]
implement F using parents
`, `
import os
from inmanta.ast import NotFoundException, TypeNotFoundException, UnsetException
from inmanta.ast.attribute import RelationAttribute
from inmanta.ast.entity import Entity
from inmanta.config import Config
from inmanta.module import Project
from inmanta.plugins import Context, plugin

@plugin
def all(arg: "string", ctx: Context) -> "string":
    assert arg == "x"
    assert ctx.plugin.namespace.get_full_name() == "m" and ctx.plugin.get_full_name() == "m::all"
    assert ctx.owner.namespace.get_full_name() == "__config__" and ctx.owner.location.file.endswith("main.cf")
    assert ctx.get_environment_id() == "2f1b5a0e-5b0a-4f5e-9d1e-6b2f6e6b2f6e"
    data = ctx.get_data_dir()
    assert os.path.isdir(data) and data.endswith("data/m"), data
    e = ctx.get_type("m::F")
    assert isinstance(e, Entity) and e.get_full_name() == "m::F" and [str(p) for p in e.parent_entities] == ["m::E"]
    assert set(e.get_all_attributes()) >= {"name", "number", "es"}, e.get_all_attributes()
    number = e.get_attribute("number")
    assert number.is_optional() and str(number.type) == "m::port?", number.type
    es = e.get_attribute("es")
    assert isinstance(es, RelationAttribute) and es.is_multi() and es.low == 0 and es.high is None
    assert es.end.name == "fs" and es.end.high == 2 and es.end.low == 0
    assert [a.get_value() for a in es.source_annotations] == ["note", 4] and es.target_annotations == []
    assert [a.get_value() for a in es.end.target_annotations] == ["note", 4]
    port = ctx.get_type("m::port")
    assert port.validate(80)
    try:
        port.validate(0)
    except Exception as x:
        assert "Invalid value 0" in str(x), x
    else:
        raise AssertionError()
    try:
        ctx.get_type("m::Nope")
    except TypeNotFoundException:
        pass
    else:
        raise AssertionError()
    assert ctx.resolver.lookup("local").get_value() == "from the file"
    try:
        ctx.get_resolver().lookup("nowhere")
    except NotFoundException:
        pass
    else:
        raise AssertionError()
    types = ctx.get_queue_scheduler().get_types()
    assert "m::E" in types and types["m::E"].get_full_name() == "m::E" and "m::port" in types
    assert "m::all" in ctx.compiler.get_plugins() and "std::upper" in ctx.get_compiler().get_plugins()
    p = Project.get()
    assert set(p.modules) == {"m"} and p.modules["m"].path == os.path.join(p.project_path, "libs", "m"), p.modules
    Config.set("m", "some-name", "1")
    assert Config.get("m", "some_name") == "1" and Config.get("m", "other", "d") == "d"
    return "fine"

@plugin
def scoped(ctx: Context) -> "string":
    return ctx.resolver.lookup("self").get_value().get_attribute("name").get_value()

@plugin(emits_statements=True)
def emits(ctx: Context) -> "string":
    ctx.result.set_value("emitted", ctx.owner.location)

@plugin
def filters(ctx: Context, items: "list") -> "string":
    plugins = ctx.compiler.get_plugins()
    return plugins["std::upper"](plugins["m::join"](items))

@plugin
def join(items: "list") -> "string":
    return ",".join(items)

@plugin
def later(ctx: Context) -> "int":
    ctx.resolver.lookup("late").get_value()
    return len(ctx.get_type("m::E").get_all_instances())
`), func(c *compilehost.Config, _ *lang.Options) { c.Environment = "2f1b5a0e-5b0a-4f5e-9d1e-6b2f6e6b2f6e" })
	o.succeed(t)
	for _, want := range []string{"fine", "e1", "f1", "emitted", "B,A", "4"} {
		if !strings.Contains("\n"+o.stdout, "\n"+want+"\n") {
			t.Errorf("no line %q in\n%s", want, o.stdout)
		}
	}
}

// Modules that import functions of std get those of the compiler.
func TestBuiltInStd(t *testing.T) {
	t.Parallel()
	compile(t, project(`import std::testing
std::print(m::use("ab"))
std::print(m::fact(std::testing::NullResource(name="n", agentname="a")))
std::print(m::content())
`, `import std
import std::testing`, `
from inmanta_plugins import std
from inmanta_plugins.std import get_file_content, upper
from inmanta.plugins import Context, plugin
from inmanta.resources import to_id

@plugin
def use(s: "string") -> "string":
    assert std.count([1, 2]) == 2
    try:
        std.item(["a"], 7)
    except Exception:
        pass
    return upper(s) + std.replace(s, "a", "c")

@plugin
def fact(r: "std::testing::NullResource") -> "string":
    return to_id(r)

@plugin
def content(ctx: Context) -> "string":
    return get_file_content(ctx, "files", "m/x.txt")
`)+"-- libs/m/files/x.txt --\nhello\n", nil).printed(t, "ABcb\nstd::testing::NullResource[a,name=n]\nhello\n")
}

func TestFinalizers(t *testing.T) {
	t.Parallel()
	const py = `
from inmanta.compiler import finalizer
from inmanta.export import unknown_parameters

@finalizer
def end():
    print("the end")
    unknown_parameters.append({"resource": "m::E[a,n=b]", "parameter": "p", "source": "fact"})

@finalizer
def fail():
    raise ValueError("too late")
`
	o := compile(t, project("", "", py), nil)
	o.fails(t, "ExternalException", "Exception in a finalizer\ncaused by: ValueError: too late")
	if o.stdout != "the end\n" {
		t.Errorf("printed %q", o.stdout)
	}
	o = compile(t, project("", "", strings.Replace(py, "raise ValueError", "str", 1)), nil).succeed(t)
	if len(o.State.Unknowns) != 1 || o.State.Unknowns[0].Name != "p" {
		t.Errorf("unknowns %v", o.State.Unknowns)
	}
	// They run when the model has faults, too.
	o = compile(t, project("x = 1\nx = 2", "", py), nil)
	if o.stdout != "the end\n" {
		t.Errorf("printed %q", o.stdout)
	}
}

// What modules ask the API for are inputs of the compile.
func TestFacts(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`
import std::testing
n = std::testing::NullResource(name="n", agentname="a")
std::print(m::fact(n, "known"))
std::print(m::is_unknown(m::fact(n, "missing")))
std::print(m::environment())
`, "import std::testing", `
from inmanta.config import Config
from inmanta.execute.util import Unknown
from inmanta.export import unknown_parameters
from inmanta.plugins import Context, plugin
from inmanta.resources import to_id

@plugin
def fact(ctx: Context, r: "any", name: "string") -> "any":
    rid = to_id(r)
    env = Config.get("config", "environment")
    client = ctx.get_client()
    assert ctx.run_sync(lambda: client.list_params(tid=env)).result["parameters"] == []
    result = ctx.run_sync(lambda: client.get_param(tid=env, id=name, resource_id=rid))
    if result.code == 200:
        return result.result["parameter"]["value"]
    unknown_parameters.append({"resource": rid, "parameter": name, "source": "fact"})
    return Unknown(source=r)

@plugin(allow_unknown=True)
def is_unknown(x: "any") -> "bool":
    return isinstance(x, Unknown)

@plugin
def environment(ctx: Context) -> "string":
    return ctx.get_sync_client().environment_get(id=Config.get("config", "environment")).result["data"]["name"]
`), func(c *compilehost.Config, o *lang.Options) {
		c.Environment = "2f1b5a0e-5b0a-4f5e-9d1e-6b2f6e6b2f6e"
		o.Inputs.Environment.Name = "dev"
		o.Inputs.Facts = map[string]string{"std::testing::NullResource[a,name=n]/known": "42"}
	})
	o.printed(t, "42\nTrue\ndev")
	if u := o.State.Unknowns; len(u) != 1 || u[0].Name != "missing" || u[0].Resource != "std::testing::NullResource[a,name=n]" || u[0].Source != "fact" {
		t.Errorf("unknowns %v", u)
	}
	used := 0
	for _, in := range o.Inputs {
		if in.Kind == "fact" {
			used++
		}
	}
	if used != 2 {
		t.Errorf("inputs %v", o.Inputs)
	}
}

func TestExportFunctions(t *testing.T) {
	t.Parallel()
	p := project(`m::E(name="b")
m::E(name="a")`, "entity E:\n    string name\nend\nimplement E using std::none", `
from inmanta.export import Exporter, export

@export("names", "m::E", "m::None")
def names(exporter, types):
    assert isinstance(exporter, Exporter) and types["m::None"] == []
    print(sorted(e.name for e in types["m::E"]))

@export("plain")
def plain(exporter):
    raise ValueError("no")
`)
	with := func(names ...string) func(*compilehost.Config, *lang.Options) {
		return func(c *compilehost.Config, _ *lang.Options) { c.Exports = names }
	}
	compile(t, p, with("names")).printed(t, "['a', 'b']")
	compile(t, p, with("plain")).fails(t, "ExternalException", "Exception in the export function plain\ncaused by: ValueError: no")
	compile(t, p, with("other")).fails(t, "ExternalException", "Export function other does not exist.")
}
