package compilehost_test

import (
	"strings"
	"testing"

	"github.com/intendant/intendant/model"
)

const resources = `
-- main.cf --
import m
import std
h = m::Host(name="h1")
a = m::Vlan(host=h, ident="a", vid="1", members=["y", "x"], content="some text")
b = m::Vlan(host=h, ident="b", vid="2", requires=a)
m::Vlan(host=h, ident="unmanaged", vid="3", managed=false)
m::Vlan(host=h, ident="c", vid="4", extra=m::unknown("port"))
m::Vlan(host=h, ident=m::unknown("name"), vid="5")
m::Vlan(host=h, ident="hidden", vid="6")
m::Child(host=h, ident="kid", vid="7", requires=b)
m::Legacy(host=h, ident="old")
std::print(m::id_of(a))
-- libs/m/model/_init.cf --
import std
entity Host:
    string name
end
entity Vlan extends std::PurgeableResource, std::ManagedResource:
    string ident
    string vid
    string[] members = []
    string extra = ""
    string content = ""
end
entity Child extends Vlan:
end
Vlan.host [1] -- Host
implement Host using std::none
implement Vlan using std::none
implement Child using parents
entity Legacy extends std::Resource:
    string ident
end
Legacy.host [1] -- Host
implement Legacy using std::none
-- libs/m/plugins/__init__.py --
from inmanta.execute.util import Unknown
from inmanta.export import dependency_manager
from inmanta.plugins import plugin
from inmanta.resources import (
    Id, IgnoreResourceException, ManagedResource, PurgeableResource, Resource, resource, to_id,
)

@plugin
def unknown(source: "string") -> "string":
    return Unknown(source)

@plugin
def id_of(e: "m::Vlan") -> "string":
    return to_id(e)

class Base(Resource):
    fields = ("ident", "vid")

@resource("m::Vlan", agent="host.name", id_attribute="ident")
class Vlan(Base, PurgeableResource, ManagedResource):
    fields = ("members", "extra", "hash", "kind")
    map = {"vid": lambda exporter, e: int(e.vid)}

    @staticmethod
    def get_hash(exporter, e):
        return exporter.upload_file(e.content)

    @classmethod
    def get_members(cls, exporter, e):
        if e.ident == "hidden":
            raise IgnoreResourceException()
        return sorted(e.members)

    @staticmethod
    def get_kind(exporter, e):
        return str(e._type())

@resource("m::Legacy", agent="host.name", id_attribute="ident")
class Legacy(Resource):
    fields = ("ident",)

@dependency_manager
def order(model, resources):
    for r in resources.values():
        assert r.model.host.name == "h1"
        if r.id.entity_type == "m::Legacy":
            r.requires.add(Id("m::Vlan", "h1", "ident", "a"))
            r.requires.add("m::Vlan[h1,ident=b],v=0")
            r.requires |= {x for x in resources.values() if x.id.attribute_value == "c"}
    assert len(model["m::Vlan"].get_all_instances()) == 7
`

func TestResources(t *testing.T) {
	t.Parallel()
	o := compile(t, resources, nil).succeed(t)
	o.printed(t, "m::Vlan[h1,ident=a]")
	got := map[model.ResourceID]model.Intent{}
	for _, in := range o.State.Intents {
		got[in.Resource] = in
	}
	const common = `"purge_on_delete":false,"purged":false,"receive_events":true,"report_only":false,"send_event":true`
	// The hash of the empty text.
	const empty = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
	for id, want := range map[model.ResourceID]struct{ attrs, requires string }{
		"m::Vlan[h1,ident=a]": {
			`{"extra":"","hash":"37aa63c77398d954473262e1a0057c1e632eda77","ident":"a","kind":"m::Vlan","managed":true,"members":["x","y"],` + common + `,"vid":1}`, "",
		},
		"m::Vlan[h1,ident=b]": {`{"extra":"","hash":"` + empty + `","ident":"b","kind":"m::Vlan","managed":true,"members":[],` + common + `,"vid":2}`, "m::Vlan[h1,ident=a]"},
		"m::Vlan[h1,ident=c]": {`{"extra":"<<undefined>>","hash":"` + empty + `","ident":"c","kind":"m::Vlan","managed":true,"members":[],` + common + `,"vid":4}`, ""},
		"m::Vlan[h1,ident=kid]": {
			`{"extra":"","hash":"` + empty + `","ident":"kid","kind":"m::Child","managed":true,"members":[],` + common + `,"vid":7}`, "m::Vlan[h1,ident=b]",
		},
		"m::Legacy[h1,ident=old]": {
			`{"ident":"old","receive_events":true,"report_only":false,"send_event":true}`,
			"m::Vlan[h1,ident=a] m::Vlan[h1,ident=b] m::Vlan[h1,ident=c]",
		},
	} {
		in := got[id]
		var requires []string
		for _, r := range in.Requires {
			requires = append(requires, string(r))
		}
		if string(in.Attributes) != want.attrs || strings.Join(requires, " ") != want.requires {
			t.Errorf("%s:\n%s requires %q, want\n%s requires %q", id, in.Attributes, requires, want.attrs, want.requires)
		}
		delete(got, id)
	}
	for id := range got {
		t.Errorf("%s should not be exported", id)
	}
	for _, in := range o.State.Intents {
		if in.Undefined != (in.Resource == "m::Vlan[h1,ident=c]") || in.Blocked != (in.Resource == "m::Legacy[h1,ident=old]") {
			t.Errorf("%s: undefined %t, blocked %t", in.Resource, in.Undefined, in.Blocked)
		}
	}
	files := map[string]string{}
	for _, f := range o.State.Files {
		files[f.Hash] = string(f.Content)
	}
	if files["37aa63c77398d954473262e1a0057c1e632eda77"] != "some text" {
		t.Errorf("the uploaded file is missing in %v", files)
	}
	if len(o.State.Code) != 1 {
		t.Fatalf("code of %d modules", len(o.State.Code))
	}
	code := o.State.Code[0]
	if err := code.Validate(); err != nil {
		t.Error(err)
	}
	if code.Module != "m" || strings.Join(code.Types, " ") != "m::Legacy m::Vlan" || len(code.Files) != 1 || code.Files[0].Name != "inmanta_plugins.m" {
		t.Errorf("%+v", code)
	}
	if !strings.Contains(files[code.Files[0].Hash], "class Vlan") {
		t.Error("the source is not among the files")
	}
}

// A fact of a resource may be asked for before any plugin has seen its entity, and before the attribute that names it has a value.
func TestFactOfUnseenResource(t *testing.T) {
	t.Parallel()
	o := compile(t, `
-- main.cf --
import m
a = m::Port(agent="h")
std::print(std::is_unknown(a.address))
-- libs/m/model/_init.cf --
entity Port extends std::Resource:
    string agent
    string name
    string address
end
implementation named for Port:
    self.name = "port-{{agent}}"
end
implementation found for Port:
    self.address = std::getfact(self, "address")
end
implement Port using found, named
-- libs/m/plugins/__init__.py --
from inmanta.resources import Resource, resource
@resource("m::Port", agent="agent", id_attribute="name")
class Port(Resource):
    fields = ("name",)
`, nil).succeed(t)
	if !strings.EqualFold(o.stdout, "True\n") {
		t.Errorf("the model prints %q, want that the address is unknown", o.stdout)
	}
}

// A value that a resource can not have is reported with the field that it is in, at the instance.
func TestResourceFaults(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]string{
		"{1}":                {"TypeError", "field extra of resource m::R[a,name=r] can not be exported: {1} is not JSON serializable"},
		"[{'deep': b'x'}]":   {"TypeError", "field extra of resource m::R[a,name=r] can not be exported: b'x' is not JSON serializable"},
		"float('nan')":       {"ValueError", "field extra of resource m::R[a,name=r] can not be exported: Out of range float values are not JSON compliant"},
		"[{1: 2}]":           {"ExternalException", "the keys of a dict in a resource have to be strings, 1 at path extra[0] is none"},
		"entity":             {"ExternalException", "in resource is not JSON serializable at path extra"},
		"entity.nothing":     {"ExternalException", "Failed to get attribute 'extra' for export on 'm::R'"},
		"[entity.name][1]":   {"ExternalException", "IndexError"},
		"resource_of(value)": {"ExternalException", "NameError"},
	} {
		d := compile(t, project(`m::R(name="r")`, "entity R extends std::Resource:\n    string name\n    string agent = \"a\"\nend\nimplement R using std::none", `
from inmanta.resources import Resource, resource

@resource("m::R", agent="agent", id_attribute="name")
class R(Resource):
    fields = ("name", "extra")

    @staticmethod
    def get_extra(exporter, entity):
        return `+value+`
`), nil).fails(t, want[0], want[1])
		if d.Range.File != "main.cf" || d.Range.Start.Line != 2 {
			t.Errorf("%s: reported at %s", value, d.Range)
		}
	}
}
