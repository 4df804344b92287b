package compilehost_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/python/compilehost"

	"github.com/intendant/intendant/lang"
)

// Values and outputs at the edges of what can be said.
func TestEdges(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`
import n
std::print(m::bytes_out())
std::print(m::big(9223372036854775807))
std::print(m::digits())
std::print(m::infinite())
std::print(m::surrogate() == m::surrogate())
std::print(m::length(m::surrogate()))
std::print(m::thread_exit())
std::print(n::cycle())
`, "", `
print("printed while imported")
import os, sys, threading
from inmanta.plugins import plugin
import inmanta_plugins.n as other

own = "m"

@plugin
def bytes_out() -> "string":
    os.write(1, b"not \xff utf-8\n")
    os.write(2, b"neither \xfe is this\n")
    return "written"

@plugin
def big(n: "int") -> "int":
    return (n + 1) ** 3

@plugin
def digits() -> "int":
    return (10 ** 5000) // (10 ** 4999)

@plugin
def infinite() -> "bool":
    return float("inf") > 0

@plugin
def surrogate() -> "string":
    return "a\udcff\ud800b"

@plugin
def length(s: "string") -> "int":
    return len(s)

@plugin
def thread_exit() -> "string":
    t = threading.Thread(target=lambda: sys.exit(3))
    t.start()
    t.join()
    return "still here"
`)+`
-- libs/n/model/_init.cf --
-- libs/n/plugins/__init__.py --
from inmanta.plugins import plugin
import inmanta_plugins.m as other

@plugin
def cycle() -> "string":
    return other.own + other.other.__name__
`, nil)
	o.printed(t, "printed while imported\nnot \uFFFD utf-8\nwritten\n784637716923335095479473677900958302012794430558004314112\n10\nTrue\nTrue\n4\nstill here\nminmanta_plugins.n")
	if !strings.Contains(o.stderr, "neither \uFFFD is this") {
		t.Errorf("stderr: %q", o.stderr)
	}
}

// Exceptions that are trouble themselves are reported as any other.
func TestTroubledExceptions(t *testing.T) {
	t.Parallel()
	const py = `
import os, signal
from inmanta.plugins import plugin

class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")
    __repr__ = __str__

@plugin
def mute() -> "string":
    raise Mute()

@plugin
def mute_value() -> "int":
    class Odd:
        def __repr__(self):
            raise ValueError("no text")
    return Odd()

@plugin
def wordy() -> "string":
    raise ValueError("x" * 50_000_000)

@plugin
def memory() -> "string":
    return "x" * (1 << 60)

@plugin
def surrogate() -> "string":
    raise ValueError("\ud800")

@plugin
def huge() -> "int":
    return 10 ** 5000

@plugin
def keyboard() -> "string":
    raise KeyboardInterrupt()

@plugin
def interrupted() -> "string":
    os.kill(os.getpid(), signal.SIGINT)
    return "x"

@plugin
def ended() -> "string":
    os.kill(os.getpid(), signal.SIGTERM)
    while True:
        pass

@plugin
def segfault() -> "string":
    import ctypes
    return ctypes.string_at(0)

@plugin
def closes() -> "string":
    os.closerange(0, 256)
    return "x"

@plugin
def speaks() -> "string":
    os.write(4, b"not a frame at all, but quite some text")
    return "x"

@plugin
def selfmade() -> "string":
    class group(BaseException):
        pass
    raise group("of my own")

@plugin
def long_value() -> "int":
    return "x" * 50_000_000

@plugin
def circular() -> "list":
    x = []
    x.append(x)
    return x
`
	for call, want := range map[string]string{
		"mute":        "caused by: Mute",
		"mute_value":  "of plugin m::mute_value has incompatible type. Expected type: int",
		"wordy":       "caused by: ValueError: xxx",
		"memory":      "caused by: MemoryError",
		"surrogate":   "caused by: ValueError: ",
		"huge":        "caused by: ",
		"keyboard":    "caused by: KeyboardInterrupt",
		"interrupted": "Exception in plugin m::interrupted",
		"ended":       "the Python process ended",
		"segfault":    "the Python process ended",
		"closes":      "the Python process",
		"speaks":      "the Python process",
		"selfmade":    "of my own",
		"circular":    "caused by: ",
		"long_value":  "of plugin m::long_value has incompatible type. Expected type: int",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			o := compile(t, project("x = m::"+call+"()", "", py), nil)
			if o.err != nil || !strings.Contains(o.diags.String(), want) {
				t.Errorf("%v, no fault with %q in:\n%.2000s", o.err, want, o.diags)
			}
			if n := len(o.diags.String()); n > 1<<20 {
				t.Errorf("the diagnostics have %d bytes", n)
			}
		})
	}
}

// A busy plugin that takes no signals, and threads that go on: the compile ends all the same.
func TestEndless(t *testing.T) {
	t.Parallel()
	const py = `
import signal, sys, threading
from inmanta.plugins import plugin

for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)

def forever():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

@plugin
def start() -> "string":
    threading.Thread(target=forever).start()
    return "started"

@plugin
def busy() -> "string":
    sys.stderr.write("busy\n")
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
`
	compile(t, project("std::print(m::start())", "", py), nil).printed(t, "started")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	o := compileContext(t, ctx, t.TempDir(), project("m::busy()", "", py), func(c *compilehost.Config, _ *lang.Options) {
		c.Stderr = func(line string) {
			if line == "busy" {
				cancel()
			}
		}
	})
	if !errors.Is(o.err, context.Canceled) {
		t.Errorf("%v", o.err)
	}
	if d := time.Since(begin); d > 30*time.Second {
		t.Errorf("it took %s", d)
	}
}
