package executor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
	"github.com/intendant/intendant/sdk"
)

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
            os.system("echo printed by a child")
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
        if what == "memory":
            big = bytearray(600 * 1024 * 1024)
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
	b := start(t, func(c *executor.Config) { c.Grace, c.MemoryLimit = time.Second, 512<<20 })
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", faulty)))
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
		{"print", model.OutcomeDeployed, "", []string{"printed by print", "written to descriptor 1", "printed by a child"}, 0},
		{"flood", model.OutcomeDeployed, "", []string{"line 1 ", "left out"}, 0},
		{"unserializable", model.OutcomeDeployed, "", []string{"an object: <object object"}, 0},
		{"cycle", model.OutcomeDeployed, "", nil, 0},
		{"recursion", model.OutcomeFailed, sdk.CodeHandlerError, []string{"RecursionError"}, 0},
		{"memory", model.OutcomeFailed, sdk.CodeHandlerError, []string{"MemoryError"}, 0},
		{"fork", model.OutcomeDeployed, "", nil, 0},
		{"surrogate", model.OutcomeDeployed, "", []string{"half a character"}, 0},
		{"thread", model.OutcomeDeployed, "", nil, 0},
		{"hang", model.OutcomeFailed, sdk.CodeDeadline, []string{"deadline"}, 2 * time.Second},
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
	}
}

func TestCodeThatCanNotBeImported(t *testing.T) {
	t.Parallel()
	good := source("good", handlerOf("good", "    pass"))
	for name, tc := range map[string]struct {
		text  string
		texts []string
	}{
		"a syntax error":                {"\ndef broken(:\n", []string{"SyntaxError", "line "}},
		"an import that is not there":   {"\nimport there_is_no_such_module\n", []string{"there_is_no_such_module"}},
		"an import that fails here":     {"\nif 'intendant_host.executor' in sys.modules:\n    raise OSError('only at the agent')\n", []string{"only at the agent"}},
		"an end of the process":         {"\nraise SystemExit(1)\n", []string{"SystemExit"}},
		"a module that does not import": {"\nfrom inmanta_plugins.other import nothing\n", []string{"inmanta_plugins.other"}},
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
