package executor_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
)

// Handlers run on every Python that is supported and at hand.
func TestPythons(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range []string{"python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"} {
		out, err := exec.CommandContext(t.Context(), name, "-c", "import sys; print(sys.executable)").Output()
		if err != nil {
			continue
		}
		found++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, func(c *executor.Config) { c.Python = strings.TrimSpace(string(out)) })
			b.code = codeOf(t, b.Server, nil, source("m", `
import concurrent.futures, multiprocessing

def double(n):
    return 2 * n
`+handlerOf("m", `
    @cache
    def version(self):
        return "%d.%d" % sys.version_info[:2]

    def late(self, of):
        return of

    if sys.version_info >= (3, 14):  # annotations are evaluated when they are asked for
        @cache
        def late(self, of: NotDefined) -> AlsoNotDefined:
            return of

    def read_resource(self, ctx, resource):
        # Children find this module, whose code is no file on any path.
        with multiprocessing.Pool(2) as pool:
            assert pool.map(double, [1, 2]) == [2, 4]
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            assert pool.submit(double, 3).result() == 6
        child = multiprocessing.Process(target=double, args=(4,))
        child.start()
        child.join()
        assert child.exitcode == 0 and self.late(5) == 5
        ctx.set_fact("python", self.version())
        if resource.value == "fail":
            raise ValueError("as it should")
        resource.value = "old"

    def update_resource(self, ctx, changes, resource):
        ctx.set_updated()
`)))
			r := b.deploy(t, "m::Thing", "a", map[string]any{"value": "new"})
			want(t, r, model.OutcomeDeployed)
			if v := fact(t, r, "python"); "python"+v != name {
				t.Errorf("the handler ran with Python %s, want %s", v, name)
			}
			want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": "fail"}), model.OutcomeFailed, "as it should")
		})
	}
	if found == 0 {
		t.Fatal("the test needs Python 3.9 or later")
	}
}

// What one task through a worker costs, over the wire.
func BenchmarkTask(b *testing.B) {
	k := start(b)
	k.code = codeOf(b, k.Server, nil, source("m", handlerOf("m", "    def read_resource(self, ctx, resource):\n        resource.value = None\n")))
	want(b, k.deploy(b, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed)
	for b.Loop() {
		k.deploy(b, "m::Thing", "a", map[string]any{"value": 1})
	}
}
