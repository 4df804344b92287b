package executor_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

// reporter is a handler that reports the number of its process.
const reporter = `
    def read_resource(self, ctx, resource):
        ctx.set_fact("pid", str(os.getpid()))
        ctx.set_fact("thread", str(__import__("threading").current_thread() is __import__("threading").main_thread()))
        resource.value = None
`

func fact(t testing.TB, r model.Result, name string) string {
	t.Helper()
	for _, f := range r.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("there is no fact %s; the outcome is %s, the log:\n%s", name, r.Outcome, logOf(r))
	return ""
}

func running(pid string) bool {
	_, err := os.Stat("/proc/" + pid)
	return err == nil
}

// await waits until something is so.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(short)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

func TestProcessesAreSharedAndStopped(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	skip := time.Duration(0)
	b := start(t, func(c *executor.Config) {
		c.Retention, c.Cap = time.Hour, 2
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(skip)
		}
	})
	one := codeOf(t, b.Server, nil, source("m", handlerOf("m", reporter)))
	b.code = one
	first := fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "pid")
	again := b.deploy(t, "m::Thing", "b", map[string]any{"value": 1})
	if fact(t, again, "pid") != first || fact(t, again, "thread") != "True" {
		t.Errorf("the second task ran in process %s, main thread %s; want %s, the main one", fact(t, again, "pid"), fact(t, again, "thread"), first)
	}
	// Changed code is another process; equal code under another manifest is the same.
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", reporter+"\n    changed = True\n")))
	second := fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "pid")
	if second == first {
		t.Error("changed code runs in the old process")
	}
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", reporter)), module{name: "unused", files: map[string]string{"": "x = 1\n"}})
	if b.code == one {
		t.Fatal("the manifests are the same")
	}
	if pid := fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "pid"); pid != first {
		t.Errorf("equal code runs in process %s, want %s", pid, first)
	}
	// A third set of code is beyond the cap of two: the one that was idle for longest goes.
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", reporter+"\n    third = True\n")))
	third := fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "pid")
	if !running(first) || running(second) || !running(third) || b.manager.Workers() != 2 {
		t.Errorf("running: first %t, second %t, third %t, %d workers; want the second stopped", running(first), running(second), running(third), b.manager.Workers())
	}
	mu.Lock()
	skip = 2 * time.Hour
	mu.Unlock()
	b.manager.StopIdle()
	if running(first) || running(third) || b.manager.Workers() != 0 {
		t.Errorf("idle processes run on: %t, %t, %d workers", running(first), running(third), b.manager.Workers())
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "work")); err != nil || len(left) != 0 {
		t.Errorf("working directories are left behind: %v, %v", left, err)
	}
}

// A module may import others, whose code is shipped and whose requirements count; and its own parts.
func TestImportsBetweenModules(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil,
		module{name: "m", types: []string{"m::Thing"}, files: map[string]string{
			"": prelude("m") + `
from . import part
from .part import deeper
from inmanta_plugins.base import helper, constants
from inmanta_plugins.base.sub.leaf import LEAF
import inmanta_plugins.base.sub as sub
` + handlerOf("m", `
    def read_resource(self, ctx, resource):
        ctx.info("%(v)s", v=repr([part.PART, deeper.DEEPER, helper.answer(), constants, LEAF, sub.SUB, part.sibling()]))
        resource.value = None
`),
			"part":        "PART = 1\ndef sibling():\n    from .deeper import DEEPER\n    return DEEPER\n",
			"part.deeper": "from .. import Thing\nDEEPER = Thing.__name__\n",
			"leaf/":       "from .. import part\nassert part.PART == 1 and __path__\n",
			"other":       "from .part import PART\nfrom . import part as again\nassert again.PART == PART\n",
		}},
		module{name: "base", files: map[string]string{
			"": "constants = 'c'\n", "helper": "def answer():\n    return 42\n", "sub": "SUB = 's'\n", "sub.leaf": "from . import SUB\nLEAF = 'l' + SUB\n",
		}},
	)
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed, "[1, 'Thing', 42, 'c', 'ls', 's', 'Thing']")
}

// A module may bring packages besides its part of inmanta_plugins, import the Python code of std, and use references of that.
func TestPackagesBesides(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil,
		module{name: "m", types: []string{"m::Thing"}, files: map[string]string{
			"": prelude("m") + `
import m_more.deep
from inmanta_plugins.std import EnvironmentReference
from inmanta.references import reference
` + handlerOf("m", `
    def read_resource(self, ctx, resource):
        ctx.info("%(v)s", v=repr([m_more.ONE, m_more.deep.TWO, reference.get_class("std::Environment") is EnvironmentReference]))
        resource.value = None
`),
			"/m_more/":     "ONE = 1\n",
			"/m_more.deep": "from . import ONE\nTWO = ONE + 1\n",
		}},
	)
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed, "[1, 2, True]")
}

// A module may have a handler for a type that the compiler itself knows, for which there is no class in Python.
func TestHandlerOfBuiltinType(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, module{name: "apt", types: []string{"std::Package"}, files: map[string]string{"": `
from inmanta.agent.handler import CRUDHandler, provider
@provider("std::Package", name="apt")
class Handler(CRUDHandler):
    def read_resource(self, ctx, resource):
        ctx.info("%(v)s", v=repr([type(resource).__name__, resource.name, resource.state, resource.id.attribute]))
`}})
	want(t, b.deploy(t, "std::Package", "bash", map[string]any{"state": "installed"}), model.OutcomeDeployed, "['Package', 'bash', 'installed', 'name']")
	// What no code has a handler for stays without one.
	b.code = codeOf(t, b.Server, nil, module{name: "apt", types: []string{"std::Package", "std::Service"}, files: map[string]string{"": ""}})
	want(t, b.deploy(t, "std::Service", "ssh", map[string]any{"state": "running"}), model.OutcomeUnavailable, "")
}

// References are resolved by the code, their values neither logged nor shown.
func TestReferences(t *testing.T) {
	t.Parallel()
	b := start(t)
	refs := `
from inmanta.references import Reference, reference

@reference("m::Secret")
class Secret(Reference[str]):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def resolve(self, logger):
        if self.name == "none":
            raise handler.SkipResource("the vault is shut")
        return "s3cr3t-of-" + self.name
`
	mod := source("m", refs+handlerOf("m", `
    def read_resource(self, ctx, resource):
        assert resource.value == "s3cr3t-of-db", resource.value
        ctx.info("the secret is %(s)s", s=resource.value)
        resource.value = "old"

    def update_resource(self, ctx, changes, resource):
        ctx.set_updated()
`))
	mod.types = append(mod.types, "m::Secret")
	b.code = codeOf(t, b.Server, nil, mod)
	with := func(kind, name string) map[string]any {
		return map[string]any{
			"value":      nil,
			"references": []any{map[string]any{"id": "11111111-1111-1111-1111-111111111111", "type": kind, "args": []any{map[string]any{"type": "literal", "name": "name", "value": name}}}},
			"mutators": []any{map[string]any{"id": "22222222-2222-2222-2222-222222222222", "type": "core::Replace", "args": []any{
				map[string]any{"type": "resource", "name": "resource", "id": "m::Thing[host,name=a]"},
				map[string]any{"type": "reference", "name": "value", "id": "11111111-1111-1111-1111-111111111111"},
				map[string]any{"type": "literal", "name": "destination", "value": "value"},
			}}},
		}
	}
	r := b.deploy(t, "m::Thing", "a", with("m::Secret", "db"))
	want(t, r, model.OutcomeDeployed, "the secret is (hidden)")
	if text := logOf(r) + string(r.Changes["value"].Desired) + string(r.Changes["value"].Current); strings.Contains(text, "s3cr3t") || len(r.Changes) != 1 {
		t.Errorf("the secret is shown: %s", text)
	}
	want(t, b.deploy(t, "m::Thing", "a", with("m::Secret", "none")), model.OutcomeSkipped, "the vault is shut")
	want(t, b.deploy(t, "m::Thing", "a", with("m::Unknown", "x")), model.OutcomeUnavailable, "m::Unknown")

	// A handler in Go whose attribute refers to a secret that only Python knows.
	registry := sdk.NewRegistry()
	seen := make(chan string, 1)
	if err := registry.Execute("g::Thing", executeFunc(func(_ *sdk.Context, r *sdk.Resource) error {
		seen <- r.String("value")
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	agent := b.StartAgent(t, registry, []model.AgentName{"go"}, func(c *agents.Config) { c.Hostname = "other" })
	manage(t, b.Server, agent, registry, t.TempDir())
	b.AwaitUp(t, "go", 1)
	task := b.NewTask(model.TaskDeploy, sdktest.NewIntent(t, "g::Thing[go,name=a]", with("m::Secret", "db")))
	task.Code = b.code
	want(t, b.Run(t, task), model.OutcomeDeployed)
	if got := <-seen; got != "s3cr3t-of-db" {
		t.Errorf("the Go handler got %q", got)
	}
}

// executeFunc is an executor of one function.
type executeFunc func(*sdk.Context, *sdk.Resource) error

// Execute implements [sdk.Executor].
func (f executeFunc) Execute(c *sdk.Context, r *sdk.Resource) error { return f(c, r) }

// Code that a version ships for a type comes before a handler of the agent's own.
func TestShippedCodeComesFirst(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	registry := sdk.NewRegistry()
	if err := registry.Execute("m::Thing", executeFunc(func(c *sdk.Context, _ *sdk.Resource) error {
		c.Infof("by Go")
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	b := &bench{Server: s, dir: t.TempDir()}
	b.agent = s.StartAgent(t, registry, []model.AgentName{agentName})
	manage(t, s, b.agent, registry, b.dir)
	s.AwaitUp(t, agentName, 1)
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed, "by Go")
	b.code = codeOf(t, s, nil, source("m", handlerOf("m", reporter)))
	fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "pid")
	b.code = codeOf(t, s, nil, source("other", handlerOf("other", reporter)))
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed, "by Go")
	// A class without a handler leaves the type to the agent; a class that can not be imported as a whole does not.
	const declared = `
from inmanta.resources import PurgeableResource, resource

@resource("m::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("name", "value")
`
	b.code = codeOf(t, s, nil, source("m", declared))
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeDeployed, "by Go")
	b.code = codeOf(t, s, nil, source("m", declared+"\nraise ImportError('the rest')\n"))
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeUnavailable, "the rest")
}

// wheel writes a wheel of one module.
func wheel(t testing.TB, dir, name, version, text string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	info := name + "-" + version + ".dist-info/"
	for file, content := range map[string]string{
		name + ".py":      text,
		info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
	} {
		w, err := z.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// needing is a module that reports the version of a package it requires.
func needing(name, requirement string) module {
	m := source(name, "\nimport gadget\n"+handlerOf(name, `
    def read_resource(self, ctx, resource):
        ctx.set_fact("gadget", gadget.VERSION)
        resource.value = None
`))
	m.requirements = []string{requirement, "inmanta-core>=8", "inmanta-module-std"}
	return m
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "gadget", "1.0", "VERSION = 'one'\n")
	wheel(t, wheels, "gadget", "2.0", "VERSION = 'two'\n")
	b := start(t, func(c *executor.Config) { c.FindLinks = []string{wheels} })
	value := map[string]any{"value": 1}

	b.code = codeOf(t, b.Server, nil, needing("old", "gadget<2"))
	if v := fact(t, b.deploy(t, "old::Thing", "a", value), "gadget"); v != "one" {
		t.Errorf("the package is of version %s, want one", v)
	}
	// Two modules of one agent that can not be installed together.
	b.code = codeOf(t, b.Server, nil, needing("old", "gadget==1.0"), needing("new", "gadget==2.0"))
	if v := fact(t, b.deploy(t, "new::Thing", "a", value), "gadget"); v != "two" {
		t.Errorf("the package is of version %s, want two", v)
	}
	if v := fact(t, b.deploy(t, "old::Thing", "a", value), "gadget"); v != "one" {
		t.Errorf("the package is of version %s, want one", v)
	}
	// The project's constraints count.
	b.code = codeOf(t, b.Server, &model.PipConfig{Constraints: []string{"gadget<2"}}, needing("old", "gadget"))
	if v := fact(t, b.deploy(t, "old::Thing", "a", value), "gadget"); v != "one" {
		t.Errorf("the package is of version %s, want one", v)
	}
	// What can not be had.
	b.code = codeOf(t, b.Server, nil, needing("old", "gadget==7"))
	want(t, b.deploy(t, "old::Thing", "a", value), model.OutcomeUnavailable, "gadget==7", "can not be installed")
	b.code = codeOf(t, b.Server, nil, needing("old", "gadget @ ${SECRET}"))
	want(t, b.deploy(t, "old::Thing", "a", value), model.OutcomeUnavailable, "environment variable")
}

// An agent that has run code once repairs by it while the server is away, also after it was started again.
func TestRepairWithoutTheServer(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	dir, state, path := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "text")
	code := codeOf(t, s, nil, module{name: "keep", files: map[string]string{"": fileModule}, types: []string{"keep::Text"}})
	s.SetCode(map[model.AgentName]string{agentName: code})
	intent := sdktest.NewIntent(t, "keep::Text[host,name=a]", map[string]any{
		"name": "a", "path": path, "text": "kept", "purged": false, "purge_on_delete": false, "send_event": true,
	})
	run := func() (*sdktest.Agent, *executor.Manager) {
		registry := sdk.NewRegistry()
		agent := s.StartAgent(t, registry, []model.AgentName{agentName}, func(c *agents.Config) { c.StateDir = state })
		return agent, manage(t, s, agent, registry, dir)
	}
	agent, _ := run()
	s.AwaitUp(t, agentName, 1)
	task := s.NewTask(model.TaskDeploy, intent)
	task.Code = code
	want(t, s.Run(t, task), model.OutcomeDeployed)
	s.Release(1, intent)
	await(t, "the desired state to be kept", func() bool { return len(agent.Process.Code()) == 1 })
	// Changed code alone is news for the agent.
	other := codeOf(t, s, nil, module{name: "keep", files: map[string]string{"": fileModule + "# changed\n"}, types: []string{"keep::Text"}})
	s.SetCode(map[model.AgentName]string{agentName: other})
	s.Release(2, intent)
	await(t, "the changed code to be known", func() bool { return slices.Contains(agent.Process.Code(), other) })
	s.SetCode(map[model.AgentName]string{agentName: code})
	s.Release(3, intent)
	await(t, "the code to be what it was", func() bool { return slices.Contains(agent.Process.Code(), code) })
	agent.Stop()
	// The cache of contents is emptied: what the executor keeps is its own.
	if err := os.RemoveAll(filepath.Join(state, "files")); err != nil {
		t.Fatal(err)
	}
	desired := filepath.Join(state, "desired", "@host.json")
	raw, err := os.ReadFile(desired)
	if err != nil {
		t.Fatal(err)
	}
	// A repair interval of a second, as the server would have sent it.
	raw = bytes.Replace(raw, []byte(`"repair":"86400"`), []byte(`"repair":"1"`), 1)
	if err := os.WriteFile(desired, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	run()
	await(t, "the repair", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && string(text) == "kept"
	})
}

func TestManagerThatIsClosed(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", reporter)))
	pid := fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "pid")
	if _, err := strconv.Atoi(pid); err != nil || !running(pid) {
		t.Fatalf("process %s does not run", pid)
	}
	b.manager.Close()
	if running(pid) {
		t.Error("the process outlives its manager")
	}
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), model.OutcomeFailed, "the agent stops")
}

// What handlers have cached is given up when their process stops.
func TestCacheIsClosedAtTheEnd(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", `
    @cache(call_on_delete=lambda path: open(path, "w").close())
    def session(self, path):
        return path

    def read_resource(self, ctx, resource):
        self.session(resource.value)
        resource.value = None
`)))
	closed := filepath.Join(t.TempDir(), "closed")
	want(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": closed}), model.OutcomeDeployed)
	if _, err := os.Stat(closed); err == nil {
		t.Fatal("the session is closed while the process runs")
	}
	b.manager.Close()
	if _, err := os.Stat(closed); err != nil {
		t.Errorf("the session was not closed: %v", err)
	}
}
