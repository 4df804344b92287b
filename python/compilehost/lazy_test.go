package compilehost_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/intendant/intendant/python"
)

// pythonAtLeast tells whether the interpreter of the tests is Python 3.minor or later.
func pythonAtLeast(t *testing.T, minor int) bool {
	t.Helper()
	interpreter, err := python.Find(os.Getenv("INTENDANT_TEST_PYTHON"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), interpreter, "-c", "import sys; print(sys.version_info[1])").Output()
	if err != nil {
		t.Fatal(err)
	}
	found, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return found >= minor
}

// postponed returns what makes the annotations of a file be evaluated late: nothing from Python 3.14 on, where all are (PEP 649).
func postponed(t *testing.T) string {
	t.Helper()
	if pythonAtLeast(t, 14) {
		return ""
	}
	return "from __future__ import annotations\n"
}

// Annotations may name what is defined further down, or for type checkers alone: in plugins, dataclasses and resources.
func TestAnnotationsThatAreEvaluatedLate(t *testing.T) {
	t.Parallel()
	compile(t, project(`
p = m::Point(x=1, y=2)
moved = m::move(p)
std::print(m::norm(p))
std::print(moved.x)
std::print(m::named("a"))
std::print(m::with_context(3))
`, `
entity Point extends std::Dataclass:
    int x
    int y
end
implement Point using std::none
`, postponed(t)+`
import typing
from dataclasses import dataclass
from inmanta.plugins import plugin

if typing.TYPE_CHECKING:
    from inmanta.plugins import Context

@plugin
def norm(p: Point) -> int:
    assert type(p) is Point
    return p.x * p.x + p.y * p.y

@plugin
def named(name: string) -> string:
    return name.upper()

@plugin
def with_context(context: Context, n: int) -> int:
    assert context.get_data_dir()
    return n

@plugin
def move(p: Point) -> Point:
    return Point(p.x + 1, p.y)

@dataclass(frozen=True)
class Point(Base if typing.TYPE_CHECKING else object):
    x: int
    y: int
    kind: typing.ClassVar[Missing] = None
`), nil).printed(t, "5\n2\nA\n3\n")
}
