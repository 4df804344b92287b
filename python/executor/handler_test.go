package executor_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

func TestContext(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", `
    def pre(self, ctx, resource):
        ctx.set("begun", 1)

    def read_resource(self, ctx, resource):
        what = desired = resource.value
        assert ctx.get("begun") == 1 and ctx.contains("begun") and not ctx.contains("other")
        assert str(resource.id) == "m::Thing[host,name=%s],v=1" % resource.name, str(resource.id)
        ctx.debug("a %(kind)s line", kind="debug")
        ctx.warning("a value that JSON does not have: %(v)s", v={1})
        ctx.critical("100%")
        ctx.info("%(id)s is %(state)s with %(pair)s", id=resource.id, state=const.Change.created, pair=(1, 2))
        ctx.set_fact("size", 12, expires=False)
        if what == "absent":
            raise ResourcePurged()
        if what == "skip":
            raise SkipResource("not now")
        if what == "wait":
            raise handler.SkipResourceForDependencies("others first")
        if what == "fail":
            raise ValueError("broken %s here" % "%")
        if what == "twice":
            ctx.set_created()
            ctx.set_updated()
        if what == "positional":
            ctx.info("%s", 1)
        if what == "status":
            ctx.set_status(const.ResourceState.deploying)
        resource.value = "old"

    def create_resource(self, ctx, resource):
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        assert changes == {"value": {"current": "old", "desired": resource.value}}, changes
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        ctx.set_purged()

    def post(self, ctx, resource):
        ctx.info("after all")
        if resource.value == "post":
            raise KeyError("in post")

    def facts(self, ctx, resource):
        ctx.set_fact("late", "1")
        return {"color": "blue"}

    def close(self):
        self.closed = True
`)))
	run := func(kind model.TaskKind, value string, more map[string]any) model.Result {
		t.Helper()
		all := map[string]any{"value": value}
		maps.Copy(all, more)
		return b.Run(t, b.task(t, kind, "m::Thing", "x", all))
	}
	r := run(model.TaskDeploy, "new", nil)
	want(t, r, model.OutcomeDeployed, "DEBUG a debug line", `WARNING a value that JSON does not have: {1}`, "CRITICAL 100%", "m::Thing[host,name=x],v=1 is created with [1, 2]", "after all", "Start run because")
	if r.Change != model.ChangeUpdated || string(r.Changes["value"].Current) != `"old"` || string(r.Changes["value"].Desired) != `"new"` || len(r.Changes) != 1 {
		t.Errorf("the change is %s with %v", r.Change, r.Changes)
	}
	if len(r.Facts) != 1 || r.Facts[0] != (model.Fact{Name: "size", Value: "12"}) {
		t.Errorf("the facts are %v", r.Facts)
	}
	r = run(model.TaskDeploy, "absent", nil)
	want(t, r, model.OutcomeDeployed)
	if r.Change != model.ChangeCreated || string(r.Changes["purged"].Current) != "true" || string(r.Changes["purged"].Desired) != "false" {
		t.Errorf("the change is %s with %v, want created", r.Change, r.Changes)
	}
	r = run(model.TaskRepair, "old", map[string]any{"purged": true})
	want(t, r, model.OutcomeDeployed)
	if r.Change != model.ChangePurged {
		t.Errorf("the change is %s, want purged", r.Change)
	}
	want(t, run(model.TaskDeploy, "skip", nil), model.OutcomeSkipped, "was skipped: not now", "after all")
	want(t, run(model.TaskDeploy, "wait", nil), model.OutcomeSkippedForDependency, "others first")
	want(t, run(model.TaskDeploy, "fail", nil), model.OutcomeFailed, "ValueError('broken % here')", "Traceback", "after all")
	want(t, run(model.TaskDeploy, "twice", nil), model.OutcomeFailed, "Unable to set updated operation, created already set.")
	want(t, run(model.TaskDeploy, "positional", nil), model.OutcomeFailed, "Args not supported")
	want(t, run(model.TaskDeploy, "post", nil), model.OutcomeDeployed, "in post")
	r = run(model.TaskFacts, "x", nil)
	want(t, r, model.OutcomeDeployed)
	slices.SortFunc(r.Facts, func(a, b model.Fact) int { return strings.Compare(a.Name, b.Name) })
	if len(r.Facts) != 2 || r.Facts[0] != (model.Fact{Name: "color", Value: "blue", Expires: true}) || r.Facts[1].Name != "late" {
		t.Errorf("the facts are %v", r.Facts)
	}
	want(t, run(model.TaskDryRun, "new", nil), model.OutcomeDryRun)
	r = run(model.TaskDeploy, "new", map[string]any{"report_only": true})
	want(t, r, model.OutcomeNonCompliant)
	if r.Change != model.ChangeNone || len(r.Changes) != 1 {
		t.Errorf("a report has change %s with %v", r.Change, r.Changes)
	}
}

// What a handler logs reaches the server while it runs, before its end.
func TestLogIsStreamed(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	lines := make(chan string, 100)
	b := &bench{Server: sdktest.NewServer(t, func(c *hub.Config) {
		c.Live = func(_ model.EnvironmentID, _ model.TaskID, _ model.ResourceID, log []model.LogLine) {
			for _, l := range log {
				lines <- l.Message
			}
		}
	}), dir: t.TempDir()}
	registry := sdk.NewRegistry()
	b.agent = b.StartAgent(t, registry, []model.AgentName{agentName})
	manage(t, b.Server, b.agent, registry, b.dir)
	b.AwaitUp(t, agentName, 1)
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", `
    def read_resource(self, ctx, resource):
        ctx.info("at work")
        while not os.path.exists(resource.value):
            time.sleep(0.01)
        resource.value = "other"
`)))
	task := b.task(t, model.TaskDeploy, "m::Thing", "a", map[string]any{"value": gate})
	b.Dispatch(t, task)
	timeout := time.After(short)
	for seen := ""; seen != "at work"; {
		select {
		case seen = <-lines:
		case <-timeout:
			t.Fatal("no line came while the handler ran")
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, b.AwaitResult(t, task.ID), model.OutcomeDeployed, "at work")
}

func TestFilesOfTheServer(t *testing.T) {
	t.Parallel()
	b := start(t)
	content := strings.Repeat("large\n", 1<<20)
	hash := b.AddFile([]byte(content))
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", `
    def read_resource(self, ctx, resource):
        import hashlib
        data = self.get_file(resource.value)
        assert data is not None and len(data) == 6 << 20
        assert self.get_file("0" * 40) is None and self.get_file("nonsense") is None
        assert self.stat_file(resource.value) and not self.stat_file("0" * 40)
        mine = b"written by a handler\x00\xff"
        name = hashlib.sha1(mine).hexdigest()
        self.upload_file(name, mine)
        assert self.get_file(name) == mine
        try:
            self.upload_file("0" * 40, mine)
        except ValueError as e:
            ctx.info("refused: %(e)s", e=str(e))
        ctx.set_fact("uploaded", name)
        assert os.listdir(".") == [], os.listdir(".")
`)))
	r := b.deploy(t, "m::Thing", "a", map[string]any{"value": hash})
	want(t, r, model.OutcomeDeployed, "refused: the content's SHA-1 is")
	sum := sha1.Sum([]byte("written by a handler\x00\xff"))
	if stored, err := b.File(t.Context(), hex.EncodeToString(sum[:])); err != nil || string(stored) != "written by a handler\x00\xff" {
		t.Errorf("the server has %q, %v", stored, err)
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, source("m", handlerOf("m", `
    calls = []

    @cache
    def plain(self, a, b):
        self.calls.append(("plain", a, b))
        return a + b

    @cache(ignore=["ctx"])
    def ignoring(self, ctx, a):
        self.calls.append(("ignoring", a))
        return a

    @cache(timeout=0.000001, call_on_delete=lambda v: calls_of("deleted " + str(v)))
    def short(self, a):
        self.calls.append(("short", a))
        return a

    @cache(cache_none=False)
    def nothing(self):
        self.calls.append("nothing")

    @cache(cacheNone=True, for_version=True)
    def none(self, version):
        self.calls.append(("none", version))

    @cache
    def per(self, resource):
        self.calls.append(("per", resource.name))
        return resource.name

    def read_resource(self, ctx, resource):
        for _ in range(2):
            assert self.plain(1, b=2) == 3 and self.plain(a=1, b=2) == 3
            assert self.ignoring(object(), 5) == 5
            self.short(1); self.nothing(); self.none(version=3)
            assert self.per(resource) == resource.name
        ctx.info("calls: %(calls)s", calls=repr(self.calls))
        resource.value = None

    def update_resource(self, ctx, changes, resource):
        pass
`)+`
def calls_of(text):
    ThingHandler.calls.append(text)
`))
	first := b.deploy(t, "m::Thing", "a", map[string]any{"value": 1})
	want(t, first, model.OutcomeDeployed, "[('plain', 1, 2), ('ignoring', 5), ('short', 1), 'nothing', ('none', 3), ('per', 'a'), 'nothing']")
	second := b.deploy(t, "m::Thing", "b", map[string]any{"value": 1})
	want(t, second, model.OutcomeDeployed, "('per', 'a'), 'nothing', 'deleted 1', ('short', 1), 'nothing', ('per', 'b'), 'nothing']")
}

// Handlers of older modules use self._io, choose by available, and are registered under several names.
func TestOlderModules(t *testing.T) {
	t.Parallel()
	b := start(t)
	dir := t.TempDir()
	b.code = codeOf(t, b.Server, nil, source("m", `
@provider("m::Thing", name="first")
class First(ResourceHandler):
    def __init__(self, agent, io=None):
        super().__init__(agent, io)

    def available(self, resource):
        return resource.name == "first"

    def check_resource(self, ctx, resource):
        current = resource.clone()
        path = resource.value + "/file"
        io = self._io
        assert not io.is_remote()
        current.purged = not io.file_exists(path)
        return current

    def list_changes(self, ctx, resource):
        return self._diff(self.check_resource(ctx, resource), resource)

    def do_changes(self, ctx, resource, changes):
        io, path = self._io, resource.value + "/file"
        io.put(path, b"text")
        io.chmod(path, "640")
        assert io.read(path) == "text" and io.read_binary(path) == b"text"
        assert io.file_stat(path)["permissions"] == 640, io.file_stat(path)
        assert io.hash_file(path) == "372ea08cab33e71c02c651dbc83a474d32c676ea"
        io.symlink(path, path + "-link")
        assert io.is_symlink(path + "-link") and io.readlink(path + "-link") == path
        io.remove(path + "-link")
        io.mkdir(resource.value + "/dir")
        assert io.run("pwd", [], cwd=resource.value + "/dir")[0].endswith("/dir")
        io.rmdir(resource.value + "/dir")
        out, err, code = io.run("sh", ["-c", "echo out; echo $X >&2; exit 7"], env={"X": "err"})
        assert (out, err, code) == ("out", "err", 7), (out, err, code)
        try:
            io.run("sleep", ["100"], timeout=0.1)
            raise AssertionError("no timeout")
        except AssertionError:
            raise
        except Exception:
            pass
        try:
            io.read(path + "-none")
        except FileNotFoundError:
            ctx.set_created()

@provider("m::Thing", name="second")
class Second(First):
    def available(self, resource):
        return resource.name.startswith("second")

@provider("m::Thing", name="third")
class Third(First):
    def available(self, resource):
        return resource.name == "second-two"
`))
	r := b.deploy(t, "m::Thing", "first", map[string]any{"value": dir})
	want(t, r, model.OutcomeDeployed)
	if r.Change != model.ChangeCreated {
		t.Errorf("the change is %s; log:\n%s", r.Change, logOf(r))
	}
	want(t, b.deploy(t, "m::Thing", "second-two", map[string]any{"value": dir}), model.OutcomeUnavailable, "More than one handler selected")
	want(t, b.deploy(t, "m::Thing", "other", map[string]any{"value": dir}), model.OutcomeUnavailable, "No handler is available")
}

// Discoveries, and whatever else handlers call, reach the server's API with the agent's credentials.
func TestCallsOfTheAPI(t *testing.T) {
	t.Parallel()
	type seen struct {
		method, path, token, environment, body string
	}
	var mu sync.Mutex
	var calls []seen
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, seen{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-Inmanta-Tid"), string(body)})
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/parameter/"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"message":"ask again"}`))
		case strings.Contains(r.URL.Path, "discovered"):
			_, _ = w.Write([]byte(`{}`))
		default:
			_, _ = w.Write([]byte(`{"data":{"name":"prod"}}`))
		}
	}))
	t.Cleanup(api.Close)
	b := start(t, func(c *executor.Config) {
		c.Call = func(ctx context.Context, r executor.Request) (executor.Response, error) {
			req, err := http.NewRequestWithContext(ctx, r.Method, api.URL+r.Path, strings.NewReader(string(r.Body)))
			if err != nil {
				return executor.Response{}, err
			}
			req.Header = r.Header
			req.Header.Set("Authorization", "Bearer of the agent")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return executor.Response{}, err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return executor.Response{Status: resp.StatusCode, Body: body}, err
		}
	})
	b.code = codeOf(t, b.Server, nil, module{name: "m", types: []string{"m::Scan"}, files: map[string]string{"": `
from inmanta.agent.handler import DiscoveryHandler, provider
from inmanta.resources import DiscoveryResource, resource
from inmanta.data.model import BaseModel
from inmanta.protocol import SyncClient
from inmanta.protocol.endpoints import Client

@resource("m::Scan", agent="agent", id_attribute="name")
class Scan(DiscoveryResource):
    fields = ("name",)

class Found(BaseModel):
    size: int

@provider("m::Scan", name="any")
class ScanHandler(DiscoveryHandler[Scan, Found]):
    def discover_resources(self, ctx, discovery_resource):
        env = self._agent.environment
        answer = self.run_sync(lambda: self.get_client().get_param(tid=env, id="n/m", resource_id="x"))
        assert answer.code == 503 and answer.result["message"] == "ask again", (answer.code, answer.result)
        changed = SyncClient("agent").resource_did_dependency_change(env, discovery_resource.id.resource_version_str())
        assert changed.result == {"data": True}, changed.result
        answer = SyncClient("agent").environment_get(env)
        assert answer.result["data"]["name"] == "prod"
        try:
            Client("agent").no_such_method
        except AttributeError as e:
            ctx.info("%(e)s", e=str(e))
        return {"m::Disk[host,name=sda]": Found(size=3)}
`}})
	task := b.NewTask(model.TaskDeploy, sdktest.NewIntent(t, "m::Scan[host,name=all]", map[string]any{"name": "all", "send_event": true}))
	task.Code, task.Reload = b.code, true
	want(t, b.Run(t, task), model.OutcomeDeployed, "the API has no method no_such_method")
	mu.Lock()
	defer mu.Unlock()
	if len(calls) != 3 {
		t.Fatalf("the API was called %d times: %+v", len(calls), calls)
	}
	if calls[0].path != "/api/v1/parameter/n%2Fm?resource_id=x" || calls[0].environment != b.Environment.String() || calls[0].token != "Bearer of the agent" {
		t.Errorf("the first call is %+v", calls[0])
	}
	var batch struct {
		Resources []struct {
			ID        string         `json:"discovered_resource_id"`
			Values    map[string]any `json:"values"`
			Discovery string         `json:"discovery_resource_id"`
		} `json:"discovered_resources"`
	}
	if err := json.Unmarshal([]byte(calls[2].body), &batch); err != nil || len(batch.Resources) != 1 ||
		batch.Resources[0].ID != "m::Disk[host,name=sda]" || batch.Resources[0].Values["size"] != 3.0 || batch.Resources[0].Discovery != "m::Scan[host,name=all]" {
		t.Errorf("the discovery sent %s (%v)", calls[2].body, err)
	}
}
