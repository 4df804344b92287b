package compilehost_test

import (
	"strings"
	"testing"
)

// A dataclass of the model and its class in Python are compared when the model is read, whether they are used or not.
func TestDataclassMismatch(t *testing.T) {
	t.Parallel()
	const entity = "entity P extends std::Dataclass:\n    int x\n    int y\nend\nimplement P using std::none\n"
	const class = "@dataclass(frozen=True)\nclass P:\n    x: int\n    y: int\n"
	for name, c := range map[string]struct{ cf, py, code, text string }{
		"fields": {
			entity, strings.Replace(class, "y: int", "z: int", 1), "DataClassMismatchException",
			"- the attribute y has no counterpart in Python: there is no field of that name\n  - the field z does not exist in the model",
		},
		"type": {
			entity, strings.Replace(class, "y: int", "y: str", 1), "DataClassMismatchException",
			"- the attribute y is of type int, the field in Python of another: <class 'str'>",
		},
		"type that can not cross": {
			entity, strings.Replace(class, "y: int", "y: set[int]", 1), "DataClassMismatchException", "the attribute y is of type int, the field in Python of another: set[int]",
		},
		"typedef": {
			"typedef port as int matching self > 0\n" + strings.Replace(entity, "int y", "port y", 1), class, "DataClassMismatchException",
			"the attribute y is of type m::port, which is not primitive",
		},
		"not frozen":      {entity, strings.Replace(class, "(frozen=True)", "", 1), "DataClassMismatchException", "is not frozen: decorate it with @dataclass(frozen=True)"},
		"not a dataclass": {entity, "class P:\n    pass\n", "DataClassMismatchException", "the Python object inmanta_plugins.m.P is not a dataclass"},
		"not a class":     {entity, "P = 1\n", "DataClassMismatchException", "the Python object inmanta_plugins.m.P is not a dataclass"},
		"relation": {
			entity + "entity E:\nend\nP.e [0:] -- E\n", class, "DataClassMismatchException",
			"a relation called e is defined at libs/m/model/_init.cf:8. A dataclass can not have relations",
		},
		"implementation": {
			entity + "implementation i for P:\nend\nimplement P using i when x == 1\n", class, "DataClassException",
			"The dataclass m::P has an implementation other than std::none",
		},
		"index": {entity + "index P(x)\n", class, "DataClassException", "The dataclass m::P has an index"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := compile(t, project("", c.cf, "from dataclasses import dataclass\n"+c.py), nil).fails(t, c.code, c.text)
			if d.Range.File != "libs/m/model/_init.cf" || d.Range.Start.Line > 2 {
				t.Errorf("reported at %s", d.Range)
			}
		})
	}
	// An entity without a class of its name is one as any other.
	compile(t, project("std::print(m::f(m::P(x=1, y=2)))", entity, `
from inmanta.plugins import plugin
@plugin
def f(p: "m::P") -> "int":
    return p.x
`), nil).printed(t, "1")
}

// What a dataclass can not hold is a fault of the argument.
func TestDataclassValues(t *testing.T) {
	t.Parallel()
	const cf = "entity P extends std::Dataclass:\n    string x\n    string? y\nend\nimplement P using std::none\n"
	const py = `
from dataclasses import dataclass
from typing import Optional
from inmanta.plugins import plugin
from inmanta.references import Reference, reference

@dataclass(frozen=True)
class P:
    x: str
    y: Optional[str]

@reference("m::R")
class R(Reference[str]):
    def resolve(self, logger):
        return "r"

@plugin
def ref() -> Reference[str]:
    return R()

@plugin
def late(s: "string") -> "string":
    return s

calls = []

@plugin
def f(p: P) -> "string":
    calls.append(p)
    return repr(p) + str(len(calls))

@plugin
def many(ps: list[P]) -> "string":
    return type(ps).__name__

@plugin
def base(p: "std::Entity") -> "string":
    return type(p).__name__

@plugin
def plain() -> "any":
    return Alone(1)

@dataclass(frozen=True)
class Alone:
    a: int
`
	compile(t, project(`
p = m::P(x=m::late(a), y=m::late(b))
a = m::late(b)
b = m::late("q")
std::print(m::f(p))
std::print(m::many([]))
std::print(m::base(p))
plain = m::plain()
std::print("{{plain}}")
`, cf, py), nil).printed(t, "P(x='q', y='q')1\nlist\nDynamicProxy\nAlone(a=1)")
	compile(t, project(`m::f(m::P(x="a", y=m::ref()))`, cf, py), nil).
		fails(t, "PluginTypeException", "for argument p of plugin m::f contains a reference. To allow references")
	compile(t, project(`m::f(m::P(x="a", y=std::get_env("NOT_THERE")))`, cf, py), nil).
		fails(t, "PluginTypeException", "Encountered unknown in field 'y'")
}
