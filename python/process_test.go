package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/intendant/intendant/python"
)

// nested is a host of strictly nested calls, threaded one that serves each call on a thread of its own.
const (
	nested = `
import os, subprocess, sys, threading
from intendant_host import wire

def main():
    p = wire.Peer()
    p.handshake()
    p.handle("echo", lambda a: a)
    p.handle("ask", lambda a: p.call("double", a))
    def fail(a): raise ValueError("no " + a)
    p.handle("fail", fail)
    def leave(a): raise SystemExit(7)
    p.handle("leave", leave)
    p.handle("die", lambda a: os._exit(9))
    def recurse(a): return recurse(a)
    p.handle("recurse", recurse)
    def noise(a):
        print("to stdout"); os.write(1, b"to fd 1\n"); print("to stderr", file=sys.stderr)
        subprocess.run(["echo", "from a child"], check=True)
    p.handle("noise", noise)
    def fork(a):
        if os.fork() == 0:
            try:
                p.call("double", 1)
            except Exception as e:
                os.write(2, type(e).__name__.encode() + b" in the child\n")
            return 1
        return os.wait()[1]
    p.handle("fork", fork)
    p.handle("bytes", lambda n: "x" * n)
    p.handle("unwritable", lambda a: object())
    def again(n): return p.call("again", n)
    p.handle("again", again)
    def thread(n):
        out = []
        t = threading.Thread(target=lambda: out.append(p.call("double", n)))
        t.start(); t.join()
        return out[0]
    p.handle("thread", thread)
    late, over = [], threading.Event()
    def after(n):
        def run():
            try:
                over.wait()
                p.call("double", n)
            except wire.ClosedError as e:
                late.append(str(e))
        late.append(threading.Thread(target=run))
        late[0].start()
    p.handle("after", after)
    def joined(a):
        late[0].join()
        return late[1]
    p.handle("joined", joined)
    p.on("over", lambda a: (over.set(), late[0].join()))
    p.handle("surrogate", lambda a: "a\udc80b")
    p.handle("hang", lambda a: threading.Event().wait())
    p.serve()
`
	threaded = `
import threading
from intendant_host import wire

def main():
    p = wire.Peer()
    p.handshake()
    p.handle("ask", lambda a: p.call("double", a))
    gate = threading.Barrier(8)
    p.handle("meet", lambda a: (gate.wait(), p.call("double", a))[1])
    def tell(a):
        p.emit("told", a)
    p.handle("tell", tell)
    p.serve_threaded(lambda method, args, run: threading.Thread(target=run).start())
`
)

// start runs a host.
func start(t *testing.T, source string, change func(*python.Config)) (*python.Process, error) {
	t.Helper()
	interpreter, err := python.Find(os.Getenv("INTENDANT_TEST_PYTHON"))
	if err != nil {
		t.Skip(err)
	}
	dir, err := python.Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "testhost.py"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := python.Config{
		Interpreter: interpreter, Runtime: dir, Module: "testhost", Env: []string{"PATH=" + os.Getenv("PATH")},
		Handlers: map[string]python.Handler{"double": func(_ context.Context, args json.RawMessage) (any, error) {
			var n int
			if err := json.Unmarshal(args, &n); err != nil {
				return nil, err
			}
			if n < 0 {
				return nil, &python.Error{Class: "Negative", Message: "too little", Data: json.RawMessage(`[1]`)}
			}
			return 2 * n, nil
		}},
	}
	if change != nil {
		change(&cfg)
	}
	p, err := python.Start(t.Context(), cfg)
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func mustStart(t *testing.T, source string, change func(*python.Config)) *python.Process {
	t.Helper()
	p, err := start(t, source, change)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCall(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, nil)
	type object map[string]any
	for _, c := range []struct {
		method     string
		args, want any
	}{
		{"echo", object{"a": []any{1.5, "é\u2028", nil, true}}, object{"a": []any{1.5, "é\u2028", nil, true}}},
		{"echo", nil, nil},
		{"ask", 21, 42.0},
		{"thread", 4, 8.0},
		{"surrogate", nil, "a?b"},
	} {
		var got any
		if err := p.Call(t.Context(), c.method, c.args, &got); err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(c.want)
		if string(g) != string(w) {
			t.Errorf("%s(%v) = %s, want %s", c.method, c.args, g, w)
		}
	}
	if !strings.HasPrefix(p.Version(), "3.") {
		t.Errorf("version %q", p.Version())
	}
}

// Go calls Python, which calls Go, which calls Python, and so on.
func TestNestedCalls(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, nil)
	p.Handle("again", func(ctx context.Context, args json.RawMessage) (any, error) {
		var n, below int
		if err := json.Unmarshal(args, &n); err != nil {
			return nil, err
		}
		if n == 0 {
			return 0, nil
		}
		err := p.Call(ctx, "again", n-1, &below)
		return below + 1, err
	})
	var depth int
	if err := p.Call(t.Context(), "again", 20, &depth); err != nil || depth != 20 {
		t.Errorf("depth %d, %v", depth, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, nil)
	for _, c := range []struct{ method, args, class, message string }{
		{"fail", "luck", "ValueError", "no luck"},
		{"leave", "", "SystemExit", "7"},
		{"recurse", "", "RecursionError", "maximum recursion depth exceeded"},
		{"nothing", "", "LookupError", "there is no method nothing"},
		{"unwritable", "", "TypeError", "not JSON serializable"},
	} {
		err := p.Call(t.Context(), c.method, c.args, nil)
		e, ok := errors.AsType[*python.Error](err)
		if !ok || e.Class != c.class || !strings.Contains(e.Message, c.message) || !strings.Contains(e.Traceback, c.class) {
			t.Errorf("%s: %v (%+v)", c.method, err, e)
		}
	}
	// The process is still of use, and errors of ours keep their class on the way through Python.
	e, ok := errors.AsType[*python.Error](p.Call(t.Context(), "ask", -1, nil))
	if !ok || e.Class != "RemoteError" || e.Message != "too little" {
		t.Errorf("%+v", e)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	note := func(from string) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, from+line)
		}
	}
	p := mustStart(t, nested, func(c *python.Config) { c.Stdout, c.Stderr = note("1 "), note("2 ") })
	for _, m := range []string{"noise", "fork"} {
		if err := p.Call(t.Context(), m, nil, nil); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
	p.Close()
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"1 to stdout", "1 to fd 1", "1 from a child", "2 to stderr", "2 ClosedError in the child"} {
		if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}

func TestFrameLimit(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, func(c *python.Config) { c.MaxFrame = 1 << 20 })
	var text string
	if err := p.Call(t.Context(), "bytes", 1<<19, &text); err != nil || len(text) != 1<<19 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	e, ok := errors.AsType[*python.Error](p.Call(t.Context(), "bytes", 1<<20, &text))
	if !ok || e.Class != "FrameTooLargeError" {
		t.Errorf("%+v", e)
	}
	if err := p.Call(t.Context(), "echo", strings.Repeat("x", 1<<20), nil); err == nil || !strings.Contains(err.Error(), "more than the limit") {
		t.Error(err)
	}
	if err := p.Call(t.Context(), "echo", 1, nil); err != nil {
		t.Errorf("after large messages: %v", err)
	}
}

func TestDeath(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, nil)
	err := p.Call(t.Context(), "die", nil, nil)
	if e, ok := errors.AsType[*python.ExitError](err); !ok || e.State != "exit status 9" {
		t.Errorf("%v", err)
	}
	if err := p.Call(t.Context(), "echo", nil, nil); err == nil {
		t.Error("a dead process answers")
	}
}

// A thread that an author left running can not speak to us when nobody waits for it.
func TestLateThread(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, nil)
	var got string
	err := errors.Join(p.Call(t.Context(), "after", 1, nil), p.Emit("over", nil), p.Call(t.Context(), "joined", nil, &got))
	if err != nil || !strings.Contains(got, "not after it returned") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	p := mustStart(t, nested, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Call(ctx, "hang", nil, nil) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.Close()
	if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
	if err := p.Call(t.Context(), "echo", nil, nil); !errors.Is(err, python.ErrClosed) {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		change func(*python.Config)
		want   string
	}{
		"syntax error":   {"def main(:", nil, "SyntaxError"},
		"raises":         {"def main(): raise SystemExit('not today')", nil, "not today"},
		"silent":         {"import time\ndef main():\n    time.sleep(600)", func(c *python.Config) { c.StartTimeout = time.Second }, "did not greet within 1s"},
		"no interpreter": {nested, func(c *python.Config) { c.Interpreter = "/nonexistent/python" }, "no such file"},
		"other protocol": {"from intendant_host import wire\nwire.PROTOCOL = 99\ndef main():\n    p = wire.Peer()\n    p.handshake()", nil, "protocol 99"},
		"garbage":        {"import os\ndef main():\n    os.write(4, b'GET / HTTP/1.1')", nil, "frame of 1195725856 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := start(t, c.source, c.change)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Calls from several goroutines run on several threads, and what they ask for reaches the right one.
func TestThreads(t *testing.T) {
	t.Parallel()
	events := make(chan string, 1)
	p := mustStart(t, threaded, func(c *python.Config) {
		c.Event = func(name string, args json.RawMessage) { events <- name + string(args) }
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var got int
			if err := p.Call(t.Context(), "meet", i, &got); err != nil || got != 2*i {
				t.Errorf("meet(%d) = %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	if err := p.Call(t.Context(), "tell", "x", nil); err != nil {
		t.Fatal(err)
	}
	if got := <-events; got != `told"x"` {
		t.Error(got)
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var wg sync.WaitGroup
	dirs := make([]string, 4)
	for i := range dirs {
		wg.Go(func() {
			var err error
			if dirs[i], err = python.Unpack(root); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, d := range dirs {
		if d != dirs[0] {
			t.Errorf("unpacked to %s and %s", dirs[0], d)
		}
	}
	// The mark of a package with types is what type checkers of authors look for.
	if _, err := os.Stat(filepath.Join(dirs[0], "inmanta", "py.typed")); err != nil {
		t.Error(err)
	}
	// Damage is repaired: another content, a missing file, a file too many, a link.
	file := filepath.Join(dirs[0], "intendant_host", "wire.py")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"changed": func() error { return os.WriteFile(file, []byte("print('mine')"), 0o600) },
		"missing": func() error { return os.Remove(file) },
		"extra":   func() error { return os.WriteFile(filepath.Join(dirs[0], "json.py"), nil, 0o600) },
		"link":    func() error { return errors.Join(os.Remove(file), os.Symlink("/etc/hostname", file)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := python.Unpack(root); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != string(good) {
			t.Errorf("%s: not repaired: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dirs[0], "json.py")); err == nil {
			t.Errorf("%s: a foreign file stays", name)
		}
	}
	left, err := filepath.Glob(filepath.Join(root, ".unpack-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	_, err := python.Find("/nonexistent/python3")
	if e, ok := errors.AsType[*python.NotFoundError](err); !ok || !strings.Contains(err.Error(), "compiler.python") {
		t.Errorf("%v (%v)", err, e)
	}
}

func BenchmarkCall(b *testing.B) {
	interpreter, err := python.Find(os.Getenv("INTENDANT_TEST_PYTHON"))
	if err != nil {
		b.Skip(err)
	}
	dir, err := python.Unpack(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "testhost.py"), []byte(nested), 0o600); err != nil {
		b.Fatal(err)
	}
	p, err := python.Start(b.Context(), python.Config{Interpreter: interpreter, Runtime: dir, Module: "testhost"})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.ReportAllocs()
	args := json.RawMessage(fmt.Sprintf(`{"p":1,"a":[%q]}`, "text"))
	for b.Loop() {
		if err := p.Call(b.Context(), "echo", args, nil); err != nil {
			b.Fatal(err)
		}
	}
}
