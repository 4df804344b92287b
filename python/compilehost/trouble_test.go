package compilehost_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/intendant/intendant/exectest"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/python/compilehost"
)

// What authors' code should not do, and does.
func TestTrouble(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`
std::print(m::noise())
std::print(m::fork())
std::print(std::count(m::nan()))
std::print(std::length(m::large(50000000)))
std::print(m::threads(m::E(name="t")))
m::keep(m::E(name="k"))
`, `
entity E:
    string name
end
implement E using std::none
`, `
import atexit, os, sys, threading
from inmanta.plugins import plugin
from inmanta.compiler import finalizer

@plugin
def noise() -> "string":
    print("printed")
    os.write(1, b"written\n")
    os.system("echo from a child")
    os.close(0)
    for fd in (3, 4):
        assert not os.get_inheritable(fd)
    sys.stdout.close()
    return "noisy"

@plugin
def fork() -> "int":
    pid = os.fork()
    if pid == 0:
        return 1  # goes on in our code, which must notice
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

@plugin
def nan() -> "float[]":
    return [float("nan"), float("inf"), float("-inf")]

@plugin
def large(n: "int") -> "string":
    return "x" * n

@plugin
def threads(e: "m::E") -> "string":
    out = []
    ts = [threading.Thread(target=lambda: out.append(e._type().get_all_instances()[0].get_location().lnr)) for _ in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return str(len(out))

kept = []

@plugin
def keep(e: "m::E") -> "any":
    kept.append(e)
    return None

@finalizer
def end():
    sys.stderr.write("kept " + kept[0].name + "\n")
    def late():
        threading.main_thread().join()
        try:
            kept[0]._get_instance().get_location()
        except Exception as e:
            sys.stderr.write("late " + type(e).__name__ + "\n")
    threading.Thread(target=late).start()
`), nil)
	o.printed(t, "printed\nwritten\nfrom a child\nnoisy\n1\n3\n50000000\n4")
	if !strings.Contains(o.stderr, "kept k") {
		t.Errorf("stderr: %s", o.stderr)
	}
}

// A value that is kept can not be read when no compile waits; what was read stays readable.
func TestDeath(t *testing.T) {
	t.Parallel()
	o := compile(t, project("x = m::die()\ny = m::die()", "", `
import os
from inmanta.plugins import plugin
@plugin
def die() -> "string":
    os._exit(9)
`), nil)
	o.fails(t, "ExternalException", "the Python process ended (exit status 9)")
}

func TestLargeMessage(t *testing.T) {
	t.Parallel()
	o := compile(t, project(`x = m::large()`, "", `
from inmanta.plugins import plugin
@plugin
def large() -> "string":
    return "x" * 2000000
`), func(c *compilehost.Config, _ *lang.Options) { c.MaxMessage = 1 << 20 })
	o.fails(t, "ExternalException", "FrameTooLargeError: a message of 20000")
}

// A compile that is cancelled ends at once, with all that it started.
func TestCancel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pids := make(chan int, 2)
	o := compileContext(t, ctx, dir, project("m::hang()", "", `
import os, subprocess, sys, time
from inmanta.plugins import plugin
@plugin
def hang() -> "any":
    p = subprocess.Popen(["sleep", "600"])
    sys.stderr.write(f"{p.pid}\n{os.getpid()}\n")
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
`), func(c *compilehost.Config, _ *lang.Options) {
		c.Stderr = func(line string) {
			if n, err := strconv.Atoi(line); err == nil {
				if pids <- n; len(pids) == 2 {
					cancel()
				}
			}
		}
	})
	if !errors.Is(o.err, context.Canceled) {
		t.Errorf("%v", o.err)
	}
	for range 2 {
		pid := <-pids
		// The child is no child of ours: it may take a moment to die of the signal, and is there without running until somebody
		// has waited for it.
		deadline := time.Now().Add(10 * time.Second)
		for syscall.Kill(pid, 0) == nil && !zombie(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d still runs", pid)
			}
			runtime.Gosched()
		}
	}
}

func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	off := func(c *compilehost.Config, _ *lang.Options) { c.Disabled = true }
	d := compile(t, project("", "", "import os\n\nfrom inmanta.plugins import plugin\n@plugin(\"x\")\ndef thing() -> 'string':\n    return ''"), off).
		fails(t, "PluginModuleLoadException", "Module m needs the Python plugin m::thing, and running Python is switched off")
	if d.Range.File != "libs/m/plugins/__init__.py" || d.Range.Start.Line != 5 || !strings.Contains(d.Hint, "--no-python") {
		t.Errorf("%+v", d)
	}
	compile(t, project("", "", "x = 1"), off).fails(t, "PluginModuleLoadException", "Module m needs Python code")
	// A project without Python does not care, nor does one whose Python says nothing.
	compile(t, project("", "", "# Copyright\n \t\n\n  # nothing\n"), off).succeed(t)
	compile(t, "-- main.cf --\nimport m\n-- libs/m/model/_init.cf --\n", off).succeed(t)
}

func TestNoInterpreter(t *testing.T) {
	t.Parallel()
	none := func(c *compilehost.Config, _ *lang.Options) { c.Interpreter = "/nonexistent/python3" }
	d := compile(t, project("", "", "x = 1"), none).fails(t, "PluginModuleLoadException", "the Python interpreter /nonexistent/python3 can not be used")
	if !strings.Contains(d.Hint, "compiler.python") {
		t.Errorf("%+v", d)
	}
	compile(t, "-- main.cf --\nx = 1\n", none).succeed(t)
}

// An interpreter that is too old is told from its version, not from what breaks.
func TestOldInterpreter(t *testing.T) {
	t.Parallel()
	fake := exectest.Script(t, t.TempDir(), "python", "#!/bin/sh\necho 'Python 3.6 is too old: modules need Python 3.9 or later' >&2\nexit 3\n")
	compile(t, project("", "", "x = 1"), func(c *compilehost.Config, _ *lang.Options) { c.Interpreter = fake }).
		fails(t, "PluginModuleLoadException", "Python 3.6 is too old")
}
