package executor_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/intendant/intendant/model"
)

// fabric is the worked example of the Python surface's specification, section 7.7, with what it leaves to the reader: a session,
// and a trace of the methods that are called.
const fabric = `
from inmanta.agent.handler import CRUDHandler, ResourcePurged, SkipResource, cache, provider
from inmanta.resources import PurgeableResource, resource

@resource("fabric::Vlan", agent="agent", id_attribute="name")
class Vlan(PurgeableResource):
    fields = ("name", "host", "vid", "members")

CALLS, ROWS = [], {1: ["a"], 2: ["old"]}

class Row:
    def __init__(self, vid):
        self.id, self.members = vid, list(ROWS[vid])

class Session:
    def find(self, vid):
        if vid == 8:
            raise SkipResource("not yet")
        if vid == 9:
            raise ValueError("the device is on fire")
        return Row(vid) if vid in ROWS else None
    def add(self, vid, members):
        CALLS.append(("add", vid, members))
    def put(self, row, members):
        CALLS.append(("put", row, members))
    def drop(self, row):
        CALLS.append(("drop", row))
    def close(self):
        pass

def open_session(host):
    CALLS.append("open")
    return Session()

@provider("fabric::Vlan", name="api")
class VlanHandler(CRUDHandler[Vlan]):
    def pre(self, ctx, resource): self.session = self.login(resource.host)
    @cache(ignore=["ctx"], evict_after_last_access=120, call_on_delete=lambda s: s.close())
    def login(self, host): return open_session(host)
    def read_resource(self, ctx, resource):
        row = self.session.find(resource.vid)
        if row is None: raise ResourcePurged()
        ctx.set("row_id", row.id); resource.members = row.members      # mutate the clone
    def create_resource(self, ctx, resource): self.session.add(resource.vid, resource.members); ctx.set_created()
    def update_resource(self, ctx, changes, resource): self.session.put(ctx.get("row_id"), resource.members); ctx.set_updated()
    def delete_resource(self, ctx, resource): self.session.drop(ctx.get("row_id")); ctx.set_purged()

def traced(name, short):
    method = getattr(VlanHandler, name)
    def call(self, ctx, *args):
        CALLS.append(short)
        if short == "post":
            ctx.set_fact("calls", " ".join(map(str, CALLS)))
            CALLS.clear()
        return method(self, ctx, *args)
    setattr(VlanHandler, name, call)

for name in ("pre", "read_resource", "create_resource", "update_resource", "delete_resource", "post"):
    traced(name, name.split("_")[0])
`

func TestWorkedExample(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, module{name: "fabric", types: []string{"fabric::Vlan"}, files: map[string]string{"": fabric}})
	const first = "pre open " // the session is kept for later operations
	for i, tc := range []struct {
		name       string
		kind       model.TaskKind
		attributes map[string]any
		calls      string
		outcome    model.Outcome
		change     model.Change
		changes    []string
	}{
		{"absent, wanted", model.TaskDeploy, map[string]any{"vid": 3}, "read create ('add', 3, ['a']) post", model.OutcomeDeployed, model.ChangeCreated, []string{"purged true→false"}},
		{"present, equal", model.TaskDeploy, map[string]any{"vid": 1}, "read post", model.OutcomeDeployed, model.ChangeNone, nil},
		{"present, differs", model.TaskDeploy, map[string]any{"vid": 2}, "read update ('put', 2, ['a']) post", model.OutcomeDeployed, model.ChangeUpdated, []string{`members ["old"]→["a"]`}},
		{"present, purged wanted", model.TaskDeploy, map[string]any{"vid": 2, "purged": true}, "read delete ('drop', 2) post", model.OutcomeDeployed, model.ChangePurged, []string{`members ["old"]→["a"]`, "purged false→true"}},
		{"absent, purged wanted", model.TaskDeploy, map[string]any{"vid": 3, "purged": true}, "read post", model.OutcomeDeployed, model.ChangeNone, nil},
		{"read raises SkipResource", model.TaskDeploy, map[string]any{"vid": 8}, "read post", model.OutcomeSkipped, model.ChangeNone, nil},
		{"any exception", model.TaskDeploy, map[string]any{"vid": 9}, "read post", model.OutcomeFailed, model.ChangeNone, nil},
		{"dry run, differs", model.TaskDryRun, map[string]any{"vid": 2}, "read post", model.OutcomeDryRun, model.ChangeNone, []string{`members ["old"]→["a"]`}},
		{"report only, differs", model.TaskDeploy, map[string]any{"vid": 2, "report_only": true}, "read post", model.OutcomeNonCompliant, model.ChangeNone, []string{`members ["old"]→["a"]`}},
		{"report only, differs, dry run", model.TaskDryRun, map[string]any{"vid": 2, "report_only": true}, "read post", model.OutcomeNonCompliant, model.ChangeNone, []string{`members ["old"]→["a"]`}},
	} {
		attributes := map[string]any{"host": "h", "members": []string{"a"}}
		maps.Copy(attributes, tc.attributes)
		r := b.Run(t, b.task(t, tc.kind, "fabric::Vlan", "v", attributes))
		want(t, r, tc.outcome)
		calls := "pre " + tc.calls
		if i == 0 {
			calls = first + tc.calls
		}
		if got := fact(t, r, "calls"); got != calls {
			t.Errorf("%s: calls are %q, want %q", tc.name, got, calls)
		}
		if r.Change != tc.change && (r.Change != "" || tc.change != model.ChangeNone) {
			t.Errorf("%s: the change is %q, want %q", tc.name, r.Change, tc.change)
		}
		var changes []string
		for _, name := range slices.Sorted(maps.Keys(r.Changes)) {
			changes = append(changes, name+" "+string(r.Changes[name].Current)+"→"+string(r.Changes[name].Desired))
		}
		if !slices.Equal(changes, tc.changes) {
			t.Errorf("%s: changes are %q, want %q", tc.name, changes, tc.changes)
		}
	}
}

// What handlers that do more than the usual base classes may count on.
func TestOwnExecute(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.code = codeOf(t, b.Server, nil, source("m", `
@provider("m::Thing", name="any")
class ThingHandler(ResourceHandler):
    def execute(self, ctx, resource, dry_run=False):
        what = resource.value
        if what == "skip":
            raise SkipResource("not", "now")
        if what == "wait":
            raise handler.SkipResourceForDependencies("others first")
        if what == "raise":
            raise KeyError("lost")
        if what == "legacy":
            ctx.set_status(const.ResourceState.non_compliant)
        if what == "undeployable":
            ctx.set_status(const.ResourceState.undefined)
            assert ctx.status is const.ResourceState.undefined
        if what == "failed":
            ctx.set_status(const.ResourceState.failed)
        if what == "dry":
            ctx.set_status(const.ResourceState.dry)

    def facts(self, ctx, resource):
        raise KeyError("no facts")

    def can_reload(self):
        return True

    def do_reload(self, ctx, resource):
        ctx.info("reloaded")
        if resource.value == "reload skips":
            raise SkipResource("not loaded")
`))
	for _, tc := range []struct {
		value   string
		kind    model.TaskKind
		more    map[string]any
		outcome model.Outcome
		text    string
		reloads bool
	}{
		{"nothing", model.TaskDeploy, nil, model.OutcomeDeployed, "", true},
		{"nothing", model.TaskDeploy, map[string]any{"report_only": true}, model.OutcomeDeployed, "", true},
		{"nothing", model.TaskDryRun, nil, model.OutcomeDryRun, "", false},
		{"skip", model.TaskDeploy, nil, model.OutcomeSkipped, "m::Thing[host,name=skip] was skipped: not, now", false},
		{"wait", model.TaskDeploy, nil, model.OutcomeSkippedForDependency, "was skipped: others first", false},
		{"reload skips", model.TaskDeploy, nil, model.OutcomeSkipped, "was skipped: not loaded", true},
		{"raise", model.TaskDeploy, nil, model.OutcomeFailed, "An error occurred during deployment of m::Thing[host,name=raise]", false},
		{"raise", model.TaskDryRun, nil, model.OutcomeFailed, "An error occurred during the dry run of m::Thing[host,name=raise]", false},
		{"raise", model.TaskFacts, nil, model.OutcomeFailed, "An error occurred while getting facts about m::Thing[host,name=raise]", false},
		{"legacy", model.TaskDeploy, nil, model.OutcomeNonCompliant, "", true},
		{"undeployable", model.TaskDeploy, nil, model.OutcomeFailed, "Called set_status with status undefined", true},
		{"failed", model.TaskDeploy, nil, model.OutcomeFailed, "", true},
		{"dry", model.TaskDeploy, nil, model.OutcomeFailed, "although this is not a dry run", true},
	} {
		attributes := map[string]any{"value": tc.value}
		maps.Copy(attributes, tc.more)
		task := b.task(t, tc.kind, "m::Thing", strings.ReplaceAll(tc.value, " ", "-"), attributes)
		task.Reload = true
		r := b.Run(t, task)
		want(t, r, tc.outcome, tc.text)
		if reloaded := strings.Contains(logOf(r), "reloaded"); reloaded != tc.reloads {
			t.Errorf("%s, %s: reloaded is %t, want %t", tc.value, tc.kind, reloaded, tc.reloads)
		}
	}
}
