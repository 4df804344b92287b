package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
	"github.com/intendant/intendant/sdk"
)

// eater is code that takes memory without end.
const eater = `
EAT = "import os; open(os.environ['TMPDIR'] + '/eaters', 'a').write(str(os.getpid()) + ' '); held = [bytes([n % 255 + 1]) * (8 << 20) for n in range(100000)]"
`

// faulty is a module whose handler does what its resource's value says.
const faulty = `
    def read_resource(self, ctx, resource):
        what = resource.value
        if what == "exit":
            os._exit(3)
        if what == "segfault":
            import ctypes
            print("about to fail", file=sys.stderr, flush=True)
            ctypes.string_at(0)
        if what == "SystemExit":
            raise SystemExit(4)
        if what == "hang":
            while True:
                time.sleep(0.01)
        if what == "hang for ever":
            while True:
                try:
                    while True:
                        time.sleep(0.01)
                except BaseException:
                    pass
        if what == "print":
            print("printed by print")
            os.write(1, b"written to descriptor 1\n")
            os.system("echo printed by a child; printf 'and an error' >&2")
        if what == "streams closed":
            os.close(1); os.close(2)
            self.file = open(os.environ["TMPDIR"] + "/a-file", "wb", buffering=0)
            assert self.file.fileno() == 1
            os.write(1, b"its own")
        if what == "flood":
            for i in range(20000):
                ctx.info("line %(i)d " + "x" * 200, i=i)
        if what == "unserializable":
            ctx.add_change("value", desired=object(), current={1, 2})
            ctx.info("an object: %(o)s", o=object())
        if what == "cycle":
            loop = []
            loop.append(loop)
            ctx.add_change("value", desired=loop, current=float("nan"))
        if what == "recursion":
            return self.read_resource(ctx, resource)
        if what == "memory at once":
            bytearray(4 << 30)
        if what == "memory":
            exec(EAT, {})
        if what == "memory of a child":
            import subprocess
            subprocess.run([sys.executable, "-c", EAT])
        if what == "memory of a grandchild":
            import subprocess
            child = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
            subprocess.run([sys.executable, "-c", child, EAT], start_new_session=True)
        if what == "fork":
            if os.fork() == 0:
                raise RuntimeError("in the child")
            os.wait()
        if what == "surrogate":
            ctx.info("half a character: \ud800")
        if what == "thread":
            import threading
            threading.Thread(target=lambda: time.sleep(3600)).start()
        if what == "close":
            os.close(3); os.close(4)

    def update_resource(self, ctx, changes, resource):
        pass
`

func TestTroubleHurtsItsResourceAlone(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	b := start(t, func(c *executor.Config) {
		c.Grace, c.MemoryLimit, c.Env = time.Second, 256<<20, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp}
	})
	b.code = codeOf(t, b.Server, nil, source("m", eater+handlerOf("m", faulty)))
	want(t, b.deploy(t, "m::Thing", "before", map[string]any{"value": "nothing"}), model.OutcomeDeployed)
	for _, tc := range []struct {
		value   string
		outcome model.Outcome
		code    string
		texts   []string
		most    time.Duration
	}{
		{"exit", model.OutcomeFailed, executor.CodeDied, []string{"ended while it ran", "exit status 3"}, 0},
		{"segfault", model.OutcomeFailed, executor.CodeDied, []string{"ended while it ran", "segmentation fault", "about to fail"}, 0},
		{"SystemExit", model.OutcomeFailed, sdk.CodeHandlerError, []string{"SystemExit"}, 0},
		{"print", model.OutcomeDeployed, "", []string{"printed by print", "written to descriptor 1", "printed by a child", "stderr: and an error"}, 0},
		{"streams closed", model.OutcomeDeployed, "", nil, 0},
		{"flood", model.OutcomeDeployed, "", []string{"line 1 ", "left out"}, 0},
		{"unserializable", model.OutcomeDeployed, "", []string{"an object: <object object"}, 0},
		{"cycle", model.OutcomeDeployed, "", nil, 0},
		{"recursion", model.OutcomeFailed, sdk.CodeHandlerError, []string{"RecursionError"}, 0},
		{"memory at once", model.OutcomeFailed, executor.CodeMemory, []string{"MemoryError", "its process may use 256 MiB", "executor-memory-limit"}, 0},
		{"memory", model.OutcomeFailed, executor.CodeMemory, []string{"more memory than the limit of 256 MiB", "executor-memory-limit"}, 0},
		{"memory of a child", model.OutcomeFailed, executor.CodeMemory, []string{"more memory than the limit of 256 MiB"}, 0},
		{"memory of a grandchild", model.OutcomeFailed, executor.CodeMemory, []string{"more memory than the limit of 256 MiB"}, 0},
		{"fork", model.OutcomeDeployed, "", nil, 0},
		{"surrogate", model.OutcomeDeployed, "", []string{"half a character"}, 0},
		{"thread", model.OutcomeDeployed, "", nil, 0},
		{"hang", model.OutcomeFailed, sdk.CodeDeadline, []string{"at its deadline: the handler was interrupted. If it needs more time, raise task-timeout"}, 2 * time.Second},
		{"hang for ever", model.OutcomeFailed, sdk.CodeDeadline, []string{"its process was killed"}, 2 * time.Second},
		{"close", model.OutcomeFailed, executor.CodeDied, []string{"ended while it ran"}, 0},
	} {
		task := b.task(t, model.TaskDeploy, "m::Thing", strings.ReplaceAll(tc.value, " ", "-"), map[string]any{"value": tc.value})
		if tc.most > 0 {
			task.Deadline = time.Now().Add(tc.most)
		}
		begun := time.Now()
		r := b.Run(t, task)
		t.Run(tc.value, func(t *testing.T) { //nolint:paralleltest // they share an agent, one after the other
			want(t, r, tc.outcome, tc.texts...)
			if r.Code != tc.code {
				t.Errorf("the code is %q, want %q", r.Code, tc.code)
			}
			if took := time.Since(begun); took > short {
				t.Errorf("it took %s", took)
			}
			if n := len(r.Log); n > sdk.MaxLogLines+2 {
				t.Errorf("%d lines of log", n)
			}
		})
		// Whatever it did, the next task of the agent is as good as ever.
		want(t, b.deploy(t, "m::Thing", "after", map[string]any{"value": "nothing"}), model.OutcomeDeployed)
		if tc.code == sdk.CodeHandlerError && strings.Count(logOf(r), "An error occurred during deployment") != 1 {
			t.Errorf("%s: the log tells the error more than once:\n%s", tc.value, logOf(r))
		}
	}
	eaters, err := os.ReadFile(filepath.Join(temp, "eaters"))
	if err != nil || len(strings.Fields(string(eaters))) != 3 {
		t.Fatalf("processes that took memory: %q, %v; want 3", eaters, err)
	}
	if text, err := os.ReadFile(filepath.Join(temp, "a-file")); err != nil || string(text) != "its own" {
		t.Errorf("a file that got the number of a standard stream has %q, %v", text, err)
	}
	for pid := range strings.FieldsSeq(string(eaters)) {
		await(t, "process "+pid+" ended", func() bool { return !running(pid) })
	}
}

// Without a limit a handler gets what it asks for.
func TestNoMemoryLimit(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *executor.Config) { c.MemoryLimit = -1 })
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", `
    def read_resource(self, ctx, resource):
        import resource as limits
        ctx.set_fact("limit", str(limits.getrlimit(limits.RLIMIT_DATA)[0] == limits.RLIM_INFINITY))
        bytearray(4 << 30)  # it is not written to
        resource.value = None
`)))
	r := b.deploy(t, "m::Thing", "a", map[string]any{"value": "x"})
	want(t, r, model.OutcomeDeployed)
	if fact(t, r, "limit") != "True" {
		t.Error("there is a limit")
	}
}

// Code that takes too much when it is imported makes its resources unavailable, and says why.
func TestMemoryOfAnImport(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *executor.Config) {
		c.MemoryLimit, c.Env = 256<<20, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	})
	b.code = codeOf(t, b.Server, nil, source("m", eater+"exec(EAT, {})"))
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": "x"}), model.OutcomeUnavailable,
		"importing the code of modules m took more memory than the limit of 256 MiB", "executor-memory-limit")
}

func TestCodeThatCanNotBeImported(t *testing.T) {
	t.Parallel()
	good := source("good", handlerOf("good", "    pass"))
	for name, tc := range map[string]struct {
		text  string
		texts []string
	}{
		"a syntax error":                {"\ndef broken(:\n", []string{"SyntaxError", "(inmanta_plugins/m/__init__.py, line ", "it was read by Python 3."}},
		"an import that is not there":   {"\nimport there_is_no_such_module\n", []string{"there_is_no_such_module", "(inmanta_plugins/m/__init__.py, line ", "must be among the module's requirements"}},
		"an import that fails here":     {"\nif 'intendant_host.executor' in sys.modules:\n    raise OSError('only at the agent')\n", []string{"only at the agent"}},
		"an end of the process":         {"\nraise SystemExit(1)\n", []string{"SystemExit"}},
		"a module that does not import": {"\nfrom inmanta_plugins.other import nothing\n", []string{"inmanta_plugins.other", "the model has to import the module other"}},
		"a failure after the handler":   {handlerOf("m", "    pass") + "\nimport there_is_no_such_module\n", []string{"is not complete", "there_is_no_such_module"}},
		"no handler":                    {"", []string{"No resource handler registered"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.code = codeOf(t, b.Server, nil, good, source("m", tc.text))
			want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeUnavailable, tc.texts...)
			r := b.Run(t, b.task(t, model.TaskDryRun, "m::Thing", "a", map[string]any{"value": 1}))
			want(t, r, model.OutcomeUnavailable)
			// Another module of the same agent works.
			want(t, b.deploy(t, "good::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed)
		})
	}
}

func TestResourceThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", "    pass")))
	r := b.deploy(t, "m::Thing", "a", nil) // without the field value
	want(t, r, model.OutcomeUnavailable, "Unable to deserialize", "value")
	// A type that no code has.
	r = b.deploy(t, "m::Other", "a", nil)
	want(t, r, model.OutcomeUnavailable, "m::Other")
	// No code at all.
	b.code = ""
	want(t, b.deploy(t, "m::Thing", "a", nil), model.OutcomeUnavailable, "no handler for m::Thing")
	// Code that the server does not have.
	b.code = strings.Repeat("0", 40)
	want(t, b.deploy(t, "m::Thing", "a", nil), model.OutcomeUnavailable, "the server does not have it")
	// A manifest that is something else.
	b.code = b.AddFile([]byte("not JSON"))
	want(t, b.deploy(t, "m::Thing", "a", nil), model.OutcomeUnavailable, "reading a manifest")
	b.code = b.AddFile([]byte(`{"modules":[{"module":"../../etc","digest":"","files":[],"requirements":[],"types":["m::Thing"]}]}`))
	want(t, b.deploy(t, "m::Thing", "a", nil), model.OutcomeUnavailable, "one Python identifier")
}
