package compilehost_test

import "testing"

// Objects that the language knows nothing of pass through a model unchanged, where the type any lets them.
func TestObjects(t *testing.T) {
	t.Parallel()
	compile(t, project(`
d = m::make("date")
std::print(m::show(d))
std::print(d)
w = m::wrap(d)
std::print("{{d}} in {{w}}")
std::print(d == m::make("date"))
std::print(d == m::make("uuid"))
std::print(m::make("object") == m::make("object"))
std::print(m::show(w["in"]))
std::print(m::show(m::make("tuple")))
std::print(m::size(m::make("bytes")))
std::print(m::size(m::make("range")))
std::print(m::first(m::make("generator")))
std::print(m::call(m::make("function")))
std::print(m::show(m::make("class")))
std::print(m::attribute(d))
`, "", `
import datetime, uuid
from typing import Any
from inmanta.plugins import plugin

MADE = {
    "date": lambda: datetime.date(2020, 1, 2),
    "uuid": lambda: uuid.UUID(int=1),
    "object": object,
    "tuple": lambda: (1, 2),
    "bytes": lambda: b"abc",
    "range": lambda: range(4),
    "generator": lambda: (i for i in range(5, 7)),
    "function": lambda: (lambda: "called"),
    "class": lambda: int,
}

@plugin
def make(kind: "string") -> "any":
    return MADE[kind]()

@plugin
def wrap(x: Any) -> dict[str, Any]:
    return {"in": x}

@plugin
def show(x: Any) -> str:
    return repr(x)

@plugin
def size(x: Any) -> int:
    assert hasattr(x, "_get_instance")
    return len(x)

@plugin
def first(x: Any) -> int:
    return next(x._get_instance())

@plugin
def call(x: Any) -> str:
    return x()

@plugin
def attribute(x: Any) -> bool:
    return hasattr(x, "year") or x._get_instance().year == 2020
`), nil).printed(t, `@datetime.date(2020, 1, 2)
@datetime.date(2020, 1, 2)
2020-01-02 in {'in': datetime.date(2020, 1, 2)}
True
False
False
@datetime.date(2020, 1, 2)
(1, 2)
3
4
5
called
@<class 'int'>
True`)
}

// A null inside a list is the language's own, with its text; what plugins read of it is None.
func TestNulls(t *testing.T) {
	t.Parallel()
	compile(t, project(`
std::print(m::show([null, {"a": null}]))
std::print(m::same([null, {"a": null}]) == [null, {"a": null}])
`, "", `
from inmanta.execute.util import NoneValue
from inmanta.plugins import plugin

@plugin
def show(x: "list") -> "string":
    assert x[0] is None and x[1]["a"] is None and list(x)[0] is None
    assert isinstance(x._get_instance()[0], NoneValue)
    return repr(x)

@plugin
def same(x: "list") -> "list":
    return x
`), nil).printed(t, "@[null, {'a': null}]\nTrue")
}

// Modules may look at the implementations that an entity has.
func TestImplements(t *testing.T) {
	t.Parallel()
	compile(t, project("m::F(name=\"x\")\nstd::print(m::show())", `
entity E:
    string name
end
entity F extends E:
end
implementation base for E:
end
implementation special for F:
end
implement E using base
implement F using special when name == "x"
implement F using parents
`, `
from inmanta.plugins import Context, plugin

@plugin
def show(ctx: Context) -> "string":
    return " ".join(
        f"{[x.get_full_name() for x in i.implementations]}:{i.conditional}:{i.location.lnr}"
        for i in ctx.get_type("m::F").get_implements()
    )
`), nil).printed(t, "['m::special']:True:12 []:False:13 ['m::base']:False:11")
}

// Classes that derive from those of plain values give plain values; a text keeps what its class says besides.
func TestDerived(t *testing.T) {
	t.Parallel()
	compile(t, project(`
std::print(m::color() == "red")
n = m::number()
std::print("{{n}}")
std::print(m::same(m::marker()))
std::print(m::held(m::E(content=m::marker())))
`, `
typedef word as string matching /^[a-z]+$/
entity E:
    string content
end
implement E using std::none
`, `
import enum
from inmanta.plugins import plugin

class Color(str, enum.Enum):
    RED = "red"

class Number(enum.IntEnum):
    ONE = 1

class Marker(str):
    def __new__(cls, name):
        made = str.__new__(cls, "file://" + name)
        made.filename = name
        return made

@plugin
def color() -> "m::word":
    return Color.RED

@plugin
def number() -> int:
    return Number.ONE

@plugin
def marker() -> "string":
    return Marker("x")

@plugin
def same(s: "string") -> "string":
    return s.filename

@plugin
def held(e: "m::E") -> "string":
    return e.content.filename
`), nil).printed(t, "True\n1\nx\nx")
}
