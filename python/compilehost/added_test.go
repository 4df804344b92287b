package compilehost_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/python/compilehost"
)

const adding = `
from inmanta.execute.util import Unknown
from inmanta.export import dependency_manager, export
from inmanta.resources import Id, Resource, resource

def more(value, **fields):
    made = R(Id("m::R", "a", "name", value))
    made.populate({"name": value, "size": 1, "send_event": False, "receive_events": True, "references": [], "mutators": [], "report_only": False, **fields})
    return made

@resource("m::R", agent="agent", id_attribute="name")
class R(Resource):
    fields = ("name", "size")

    @staticmethod
    def get_size(exporter, entity):
        if entity.name == "first":
            exporter.add_resource(more("by-mapper"))
        if entity.name == "twice":
            exporter.add_resource(more("by-mapper"))
            exporter.add_resource(more("by-mapper"))
        if entity.name == "before":
            exporter.add_resource(more("after"))
        if entity.name == "lost":
            exporter.add_resource(more("lonely", requires=["m::R[a,name=nowhere]"]))
        if entity.name == "broken":
            exporter.add_resource(more("odd", size=object()))
        return 5

@export("extra", "m::R")
def extra(exporter, types):
    exporter.add_resource(more("by-export", size=Unknown("x"), requires=[f"m::R[a,name={r.name}]" for r in types["m::R"]]))
`

// Resources that Python code adds by itself are part of the version as those of instances are.
func TestAddedResources(t *testing.T) {
	t.Parallel()
	const cf = "entity R extends std::Resource:\n    string agent\n    string name\nend\nimplement R using std::none"
	o := compile(t, project(`m::R(agent="a", name="first")`, cf, adding+`
@dependency_manager
def manage(entities, resources):
    first = next(r for r in resources.values() if r.name == "first")
    made = more("by-manager")
    resources[made.id] = made
    first.requires.add(made)
`), func(c *compilehost.Config, _ *lang.Options) { c.Exports = []string{"extra"} }).succeed(t)
	var got []string
	for _, r := range o.State.Intents {
		got = append(got, fmt.Sprintf("%s %v %v %s", r.Resource, r.Requires, r.Undefined, r.Attributes))
	}
	const common = `"receive_events":true,"report_only":false,"send_event":false,"size":`
	want := strings.Join([]string{
		`m::R[a,name=by-export] [m::R[a,name=first]] true {"name":"by-export",` + common + `"<<undefined>>"}`,
		`m::R[a,name=by-manager] [] false {"name":"by-manager",` + common + `1}`,
		`m::R[a,name=by-mapper] [] false {"name":"by-mapper",` + common + `1}`,
		`m::R[a,name=first] [m::R[a,name=by-manager]] false {"name":"first","receive_events":true,"report_only":false,"send_event":true,"size":5}`,
	}, "\n")
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("resources\n%s\nwant\n%s", text, want)
	}
	// Without managers and export functions as well.
	o = compile(t, project(`m::R(agent="a", name="first")`, cf, adding), nil).succeed(t)
	if n := len(o.State.Intents); n != 2 {
		t.Errorf("%d resources", n)
	}
	for main, text := range map[string]string{
		`m::R(agent="a", name="twice")`:                                         "Resource m::R[a,name=by-mapper] exists more than once in the configuration model",
		`m::R(agent="a", name="lost")`:                                          "resource m::R[a,name=lonely] requires m::R[a,name=nowhere], which is not part of the model",
		`m::R(agent="a", name="broken")`:                                        "is not JSON serializable",
		"m::R(agent=\"a\", name=\"before\")\nm::R(agent=\"a\", name=\"after\")": "Resource m::R[a,name=after] exists more than once in the configuration model",
	} {
		o := compile(t, project(main, cf, adding), nil)
		if !o.diags.HasErrors() || !strings.Contains(o.diags.String(), text) {
			t.Errorf("%s: no fault with %q in\n%s", main, text, o.diags)
		}
	}
}
