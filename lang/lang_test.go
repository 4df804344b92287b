package lang_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

func project(files ...string) fstest.MapFS {
	p := fstest.MapFS{"project.yml": {Data: []byte("name: test\nmodulepath: libs\n")}}
	for i := 0; i+1 < len(files); i += 2 {
		p[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return p
}

func compile(t *testing.T, p fs.FS, opts lang.Options) (*lang.Result, diag.List) {
	t.Helper()
	res, ds, err := lang.Compile(context.Background(), lang.Project{FS: p}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res, ds
}

func mustCompile(t *testing.T, p fs.FS, opts lang.Options) *lang.Result {
	t.Helper()
	res, ds := compile(t, p, opts)
	if ds.HasErrors() {
		t.Fatalf("refused:\n%s", ds)
	}
	return res
}

const nullModel = `
import std::testing
a = std::testing::NullResource(name="a", value="x")
b = std::testing::NullResource(name="b", agentname="other", int_value=7)
c = std::testing::NullResource(name="c")
b.requires = a
c.provides = a
std::ResourceSet(name="set", resources=[a, b])
`

func TestExport(t *testing.T) {
	t.Parallel()
	st := mustCompile(t, project("main.cf", nullModel), lang.Options{}).State
	type got struct {
		ID       model.ResourceID
		Requires []model.ResourceID
		Set      string
	}
	var all []got
	for _, in := range st.Intents {
		all = append(all, got{in.Resource, in.Requires, in.Set})
	}
	want := []got{
		{"std::testing::NullResource[internal,name=a]", []model.ResourceID{"std::testing::NullResource[internal,name=c]"}, "set"},
		{"std::testing::NullResource[internal,name=c]", nil, ""},
		{"std::testing::NullResource[other,name=b]", []model.ResourceID{"std::testing::NullResource[internal,name=a]"}, "set"},
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"set"}, st.ResourceSets); d != "" {
		t.Error(d)
	}
	var attrs map[string]any
	if err := json.Unmarshal(st.Intents[2].Attributes, &attrs); err != nil {
		t.Fatal(err)
	}
	if attrs["int_value"] != 7.0 || attrs["agentname"] != "other" || attrs["purged"] != false {
		t.Errorf("attributes of b: %v", attrs)
	}
	c, err := model.Canonical(st.Intents[2].Attributes)
	if err != nil || !bytes.Equal(c, st.Intents[2].Attributes) {
		t.Errorf("attributes are not canonical: %s", st.Intents[2].Attributes)
	}
}

func TestExportIsRepeatable(t *testing.T) {
	t.Parallel()
	first := mustCompile(t, project("main.cf", nullModel), lang.Options{})
	for range 5 {
		again := mustCompile(t, project("main.cf", nullModel), lang.Options{})
		if d := cmp.Diff(first.State, again.State); d != "" {
			t.Fatal(d)
		}
	}
	other := mustCompile(t, project("main.cf", strings.Replace(nullModel, `"x"`, `"y"`, 1)), lang.Options{})
	if first.State.Digest == other.State.Digest || first.State.Digest == "" {
		t.Errorf("digests %q and %q", first.State.Digest, other.State.Digest)
	}
}

func TestExportFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, model, code, text string }{
		{"cycle", `
import std::testing
a = std::testing::NullResource(name="a")
b = std::testing::NullResource(name="b", requires=a, provides=a)
`, "DependencyCycleException", "Cycle in dependencies"},
		{"set", `
import std::testing
a = std::testing::NullResource(name="a")
std::ResourceSet(name="s", resources=a)
std::ResourceSet(name="t", resources=a)
`, "CompilerException", "can not be part of multiple ResourceSets: s and t"},
		{"agent", `
import std::testing
a = std::testing::NullResource(name="a", agentname="x,y")
`, "CompilerException", "must not be empty or have a comma"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, ds := compile(t, project("main.cf", c.model), lang.Options{})
			errs := ds.Errors()
			if len(errs) == 0 || errs[0].Code != c.code || !strings.Contains(errs[0].Message, c.text) {
				t.Errorf("got %s", ds)
			}
		})
	}
}

func TestUnknowns(t *testing.T) {
	t.Parallel()
	const text = `
import std::testing
a = std::testing::NullResource(name="a", value=std::get_env("MISSING"))
b = std::testing::NullResource(name="b", requires=a)
c = std::testing::NullResource(name="c", requires=b)
d = std::testing::NullResource(name=std::get_env("MISSING"))
`
	res := mustCompile(t, project("main.cf", text), lang.Options{})
	var got []string
	for _, in := range res.State.Intents {
		got = append(got, strings.Join([]string{in.Resource.Parts().Value, mark(in.Undefined, "undefined"), mark(in.Blocked, "blocked")}, " "))
	}
	if d := cmp.Diff([]string{"a undefined ", "b  blocked", "c  blocked"}, got); d != "" {
		t.Error(d)
	}
	if !strings.Contains(string(res.State.Intents[0].Attributes), `"value":"<<undefined>>"`) {
		t.Errorf("attributes %s", res.State.Intents[0].Attributes)
	}
	if len(res.Inputs) != 1 || res.Inputs[0].Name != "MISSING" || res.Inputs[0].Found {
		t.Errorf("inputs %v", res.Inputs)
	}
}

func mark(b bool, s string) string {
	if b {
		return s
	}
	return ""
}

func TestInputs(t *testing.T) {
	t.Parallel()
	const text = `
import std::testing
a = std::testing::NullResource(name="a")
std::print(std::getfact(a, "f"))
std::print(std::get_env("V"))
std::print(std::environment())
`
	var out bytes.Buffer
	opts := lang.Options{Stdout: &out}
	opts.Inputs.Facts = map[string]string{"std::testing::NullResource[internal,name=a]/f": "fact"}
	opts.Inputs.Env = func(name string) (string, bool) { return "env " + name, name == "V" }
	opts.Inputs.Environment.ID = "7f3b5f43-2f6f-4a4b-9a1d-000000000001"
	res := mustCompile(t, project("main.cf", text), opts)
	for _, want := range []string{"fact", "env V", opts.Inputs.Environment.ID} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if len(res.Inputs) != 3 {
		t.Errorf("inputs %v", res.Inputs)
	}
}

// extension supplies plugins and resource types to a test.
type extension struct {
	ext    lang.Extension
	faults diag.List
}

func (e extension) Load(context.Context, *module.Program) (lang.Extension, diag.List, error) {
	return e.ext, e.faults, nil
}

func plugin(name string, call func(c value.Context, args []value.Value) (value.Value, error), params ...value.Param) *value.Plugin {
	return &value.Plugin{Name: name, Params: params, Call: call}
}

const emptyModule = "name: m\nversion: 1.0.0\nlicense: none\n"

func TestPluginFaults(t *testing.T) {
	t.Parallel()
	calls := 0
	exts := extension{ext: lang.Extension{Plugins: []*value.Plugin{
		plugin("m::foreseen", func(value.Context, []value.Value) (value.Value, error) {
			return nil, &value.PluginError{Message: "no luck"}
		}),
		plugin("m::unforeseen", func(value.Context, []value.Value) (value.Value, error) { return nil, errors.New("broken") }),
		plugin("m::panics", func(value.Context, []value.Value) (value.Value, error) { panic("out of order") }),
		{
			Name: "m::wrong", Returns: "int",
			Call: func(value.Context, []value.Value) (value.Value, error) { return value.String("x"), nil },
		},
		{
			Name: "m::two", Params: []value.Param{{Name: "a", Type: "int"}, {Name: "b", Type: "string?", Default: value.Null{}}},
			Call: func(value.Context, []value.Value) (value.Value, error) { calls++; return value.Null{}, nil },
		},
	}}}
	for _, c := range []struct{ call, code, text string }{
		{"m::foreseen()", "ExplicitPluginException", "no luck"},
		{"m::unforeseen()", "ExternalException", "broken"},
		{"m::panics()", "ExternalException", "out of order"},
		{"m::wrong()", "PluginTypeException", "Return value x of plugin m::wrong has incompatible type. Expected type: int"},
		{"m::two()", "RuntimeException", "m::two() missing 1 required positional argument: 'a'"},
		{"m::two(1, \"b\", 3)", "RuntimeException", "m::two() takes 2 positional arguments but 3 were given"},
		{"m::two(1, c=2)", "RuntimeException", "m::two() got an unexpected keyword argument: 'c'"},
		{"m::two(1, a=2)", "RuntimeException", "m::two() got multiple values for argument 'a'"},
		{"m::two(\"x\")", "PluginTypeException", "Value 'x' for argument a of plugin m::two has incompatible type. Expected type: int"},
		{"m::two(a=1, a=2)", "RuntimeException", "Keyword argument a repeated"},
	} {
		_, ds := compile(t, project("main.cf", "import m\n"+c.call+"\n", "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", ""),
			lang.Options{Plugins: exts})
		errs := ds.Errors()
		if len(errs) != 1 || errs[0].Code != c.code || !strings.Contains(errs[0].Message, c.text) || errs[0].Range.Start.Line != 2 {
			t.Errorf("%s: %s", c.call, ds)
		}
	}
	if calls != 0 {
		t.Errorf("the plugin was called %d times", calls)
	}
}

// TestPluginIsCalledAgain holds that a plugin which meets an attribute without a value runs again once it has one.
func TestPluginIsCalledAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	exts := extension{ext: lang.Extension{Plugins: []*value.Plugin{
		plugin("m::read", func(_ value.Context, args []value.Value) (value.Value, error) {
			calls++
			i, ok := args[0].(value.Instance)
			if !ok {
				return nil, errors.New("not an instance")
			}
			v, _, err := i.Attribute("n")
			return v, err
		}, value.Param{Name: "i", Type: "any"}),
	}}}
	const text = `
import m
entity A:
    string n
end
implement A using std::none
a = A()
x = m::read(a)
std::print(x)
y = "late"
z = "{{y}}"
a.n = z
`
	var out bytes.Buffer
	mustCompile(t, project("main.cf", text, "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", ""), lang.Options{Plugins: exts, Stdout: &out})
	if out.String() != "late\n" || calls != 2 {
		t.Errorf("printed %q after %d calls", out.String(), calls)
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	args := value.NewDict(1)
	args.Set("name", value.String("HOME"))
	ref := plugin("m::ref", func(value.Context, []value.Value) (value.Value, error) {
		return &value.Reference{Type: "std::Environment", Model: "string", Args: args}, nil
	})
	ref.Returns = "Reference[string]"
	exts := extension{ext: lang.Extension{
		Plugins:   []*value.Plugin{ref},
		Resources: []lang.ResourceType{{Entity: "m::R", ID: "name", Agent: "agent", Fields: []string{"name", "text", "list"}}},
	}}
	const text = `
import m
r = m::R(name="r", agent="a", text=m::ref(), list=["x", m::ref()])
`
	const mod = `
entity R extends std::Resource:
    string name
    string agent
    string text
    string[] list
end
implement R using std::none
`
	res := mustCompile(t, project("main.cf", text, "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", mod), lang.Options{Plugins: exts})
	var attrs struct {
		Text       any
		List       []any
		References []struct{ ID, Type string }
		Mutators   []struct {
			Type string
			Args []map[string]any
		}
	}
	if err := json.Unmarshal(res.State.Intents[0].Attributes, &attrs); err != nil {
		t.Fatal(err)
	}
	if attrs.Text != nil || len(attrs.List) != 2 || attrs.List[1] != nil || len(attrs.References) != 1 || len(attrs.Mutators) != 2 {
		t.Fatalf("attributes %s", res.State.Intents[0].Attributes)
	}
	places := map[any]bool{}
	for _, m := range attrs.Mutators {
		if m.Type != "core::Replace" || m.Args[1]["id"] != attrs.References[0].ID {
			t.Errorf("mutator %v", m)
		}
		places[m.Args[2]["value"]] = true
	}
	if !places["text"] || !places["list[1]"] {
		t.Errorf("places %v", places)
	}
	// A reference of the wrong type is refused.
	_, ds := compile(t, project("main.cf", "import m\nentity E:\n    int n\nend\nimplement E using std::none\nE(n=m::ref())\n",
		"libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", mod), lang.Options{Plugins: exts})
	if errs := ds.Errors(); len(errs) != 1 || errs[0].Code != "AttributeException" {
		t.Errorf("got %s", ds)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	const endless = `
entity A:
end
A.next [0:] -- A
implement A using std::none
a = A()
b = A()
for x in a.next:
    b.next += A()
end
for x in b.next:
    a.next += A()
end
a.next += A()
`
	_, ds := compile(t, project("main.cf", endless), lang.Options{MaxSteps: 10_000})
	if errs := ds.Errors(); len(errs) != 1 || !strings.Contains(errs[0].Message, "limit of 10000 steps") {
		t.Errorf("got %s", ds)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := lang.Compile(ctx, lang.Project{FS: project("main.cf", endless)}, lang.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	const text = `
h = std::Host(name="h", os=std::linux)
std::ConfigFile(host=h, path="/etc/x", content=std::source("/x.conf"))
std::ConfigFile(host=h, path="/etc/y", content=std::source("m/y.conf"))
import m
`
	p := project("main.cf", text, "files/x.conf", "one", "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", "", "libs/m/files/y.conf", "two")
	res := mustCompile(t, p, lang.Options{})
	var got []string
	for _, f := range res.State.Files {
		got = append(got, f.Hash[:8]+" "+string(f.Content))
	}
	if d := cmp.Diff([]string{"ad782ecd two", "fe05bcdc one"}, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"nope/y.conf", "m/../module.yml", "m/missing"} {
		_, ds := compile(t, project("main.cf", "import m\nx = std::source(\""+bad+"\")\n", "libs/m/module.yml", emptyModule, "libs/m/model/_init.cf", ""), lang.Options{})
		if errs := ds.Errors(); len(errs) != 1 || errs[0].Code != "ExternalException" {
			t.Errorf("%s: %s", bad, ds)
		}
	}
}

func TestInstances(t *testing.T) {
	t.Parallel()
	const text = `
entity A:
    string s
    dict d = {"k": [1, 2.5, null]}
end
A.o [0:1] -- A
A.l [0:] -- A
implement A using std::none
a = A(s="x")
b = A(s=std::get_env("MISSING"), l=[a])
`
	res := mustCompile(t, project("main.cf", text), lang.Options{})
	all := lang.ExportInstances(res.Model)
	var own []string
	for _, i := range all {
		if i.File == "main.cf" {
			own = append(own, i.Type+" "+string(i.Attributes))
		}
	}
	if len(own) != 2 {
		t.Fatalf("instances %v", own)
	}
	want := `__config__::A {"requires":[],"provides":[],"s":"x","d":{"k":[1,2.5,null]},"o":null,"l":[]}`
	if own[0] != want {
		t.Errorf("got  %s\nwant %s", own[0], want)
	}
	if !strings.Contains(own[1], `"s":{"unknown":true}`) || !strings.Contains(own[1], `"l":[{"instance":"__config__::A#`) {
		t.Errorf("got %s", own[1])
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, text string }{
		{"Nope.x before __config__::A.y", "no such type was defined"},
		{"__config__::A.nope before __config__::A.y", "doesn't have an attribute nope"},
		{"__config__::A.s before __config__::A.y", "is not a relationship attribute"},
	} {
		p := project("main.cf", "entity A:\n    string s = \"\"\nend\nA.x [0:] -- A\nA.y [0:] -- A\n")
		p["project.yml"] = &fstest.MapFile{Data: []byte("name: test\nrelation_precedence_policy:\n  - \"" + c.rule + "\"\n")}
		_, ds := compile(t, p, lang.Options{})
		if errs := ds.Errors(); len(errs) != 1 || !strings.Contains(errs[0].Message, c.text) {
			t.Errorf("%s: %s", c.rule, ds)
		}
	}
	p := project("main.cf", "entity A:\nend\nA.x [0:] -- A\nA.y [0:] -- A\n")
	p["project.yml"] = &fstest.MapFile{Data: []byte("name: test\nrelation_precedence_policy:\n" +
		"  - \"__config__::A.x before __config__::A.y\"\n  - \"__config__::A.y before __config__::A.x\"\n")}
	_, ds := compile(t, p, lang.Options{})
	if errs := ds.Errors(); len(errs) != 1 || errs[0].Code != "CycleInRelationPrecedencePolicyError" {
		t.Errorf("cycle: %s", ds)
	}
}

// TestClassicNamesInInstalledModules holds that the resources of old models are there when only an installed module uses them.
func TestClassicNamesInInstalledModules(t *testing.T) {
	t.Parallel()
	site := fstest.MapFS{
		"inmanta_plugins/web/setup.cfg":      {Data: []byte("[metadata]\nname = inmanta-module-web\nversion = 1.0.0\nlicense = none\n")},
		"inmanta_plugins/web/model/_init.cf": {Data: []byte("entity Page extends std::ConfigFile:\nend\nimplement Page using parents\n")},
		"inmanta_plugins/web/__init__.py":    {Data: []byte("")},
	}
	const text = `
import web
p = web::Page(host=std::Host(name="h", os=std::linux), path="/etc/x", content="x")
`
	res := mustCompile(t, project("main.cf", text), lang.Options{Sites: []module.Site{{Name: "site", FS: site}}})
	if len(res.State.Intents) != 1 {
		t.Errorf("resources %v", res.State.Intents)
	}
}
