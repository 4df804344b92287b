package compilehost_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/python/compilehost"
)

// A module in the layout V2 is an installed package; V1 and V2 modules import each other.
func TestInstalledModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site := t.TempDir() // the tree of a fetched module, in which nothing may be left
	for name, text := range map[string]string{
		"inmanta_plugins/two/model/_init.cf":      "entity E:\n    string name\nend\nimplement E using std::none\n",
		"inmanta_plugins/two/model/sub/_init.cf":  "",
		"inmanta_plugins/two/setup.cfg":           "[metadata]\nname = inmanta-module-two\nversion = 2.3\n[options]\ninstall_requires =\n    inmanta-module-std\n    inmanta-core>=8\n    requests~=2.0\n",
		"inmanta_plugins/two/__init__.py":         "from inmanta.plugins import plugin\nfrom inmanta_plugins.one.lib import helper\n@plugin\ndef greet(s: 'string') -> 'string':\n    return helper(s)\n",
		"inmanta_plugins/two/sub/__init__.py":     "from inmanta.plugins import plugin\nfrom inmanta.module import ModuleV2, Project\n@plugin\ndef version() -> 'string':\n    m = Project.get().modules['two']\n    assert isinstance(m, ModuleV2)\n    return m.version\n",
		"inmanta_plugins/two/files/not_a_plug.py": "raise AssertionError('this is no code of the module')\n",
	} {
		file := filepath.Join(site, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := compileIn(t, dir, `
-- main.cf --
import two
import two::sub
import one
std::print(two::greet("x"))
std::print(two::sub::version())
std::print(one::call("y"))
-- libs/one/model/_init.cf --
import two
-- libs/one/requirements.txt --
# a comment
netaddr>=1.0  # why
-r other.txt
-- libs/one/plugins/__init__.py --
from inmanta.plugins import plugin
import inmanta_plugins.two
@plugin
def call(s: "string") -> "string":
    return inmanta_plugins.two.greet(s)
-- libs/one/plugins/lib/__init__.py --
def helper(s):
    return "hello " + s
-- libs/one/plugins/lib/deep.py --
-- libs/one/plugins/not-a-module.py --
raise AssertionError("never imported")
`, func(c *compilehost.Config, o *lang.Options) {
		c.Sites = []string{site}
		o.Sites = []module.Site{{Name: site, FS: os.DirFS(site)}}
		o.Inputs.Seed = "x"
	})
	o.printed(t, "hello x\n2.3\nhello y")
	if _, err := os.Stat(filepath.Join(site, "inmanta_plugins", "two", "__pycache__")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("bytecode in the checkout: %v", err)
	}
}

// The code of all modules is shipped whole, with what it requires.
func TestShipping(t *testing.T) {
	t.Parallel()
	o := compile(t, `
-- main.cf --
import one
one::E(name="n")
-- libs/one/model/_init.cf --
import std
entity E extends std::Resource:
    string name
end
implement E using std::none
-- libs/one/requirements.txt --
# a comment
netaddr>=1.0  # why
-r other.txt
inmanta-module-std
-- libs/one/plugins/__init__.py --
from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import Resource, resource
@resource("one::E", agent="name", id_attribute="name")
class E(Resource):
    fields = ("name",)
-- libs/one/plugins/lib/__init__.py --
from inmanta.references import Mutator, mutator
@mutator("one::Mut")
class Mut(Mutator):
    pass
-- libs/one/plugins/lib/deep.py --
from inmanta.agent.handler import CRUDHandler, provider
@provider("one::Other", name="x")
class H(CRUDHandler):
    pass
`, nil).succeed(t)
	code := o.State.Code[0]
	var names []string
	for _, f := range code.Files {
		names = append(names, f.Name)
	}
	for what, c := range map[string][2]string{
		"files":        {strings.Join(names, " "), "inmanta_plugins.one inmanta_plugins.one.lib inmanta_plugins.one.lib.deep"},
		"types":        {strings.Join(code.Types, " "), "one::E one::Mut one::Other"},
		"requirements": {strings.Join(code.Requirements, " "), "inmanta-module-std netaddr>=1.0"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %q, want %q", what, c[0], c[1])
		}
	}
	if err := code.Validate(); err != nil {
		t.Error(err)
	}
}

// A module that only Python code imports is shipped to whoever needs the others. Nothing is left next to the sources.
func TestShippingBesides(t *testing.T) {
	t.Parallel()
	site, dir := t.TempDir(), t.TempDir()
	pkg := filepath.Join(site, "inmanta_plugins", "helper")
	if err := os.MkdirAll(pkg, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"__init__.py": "def name():\n    return 'n'\n", "more.py": "x = 1\n"} {
		if err := os.WriteFile(filepath.Join(pkg, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := compileIn(t, dir, `
-- main.cf --
import one
one::E(name=one::sub::name())
import one::sub
-- libs/one/model/_init.cf --
entity E extends std::Resource:
    string name
end
implement E using std::none
-- libs/one/model/sub.cf --
-- libs/one/plugins/__init__.py --
from inmanta.resources import Resource, resource
@resource("one::E", agent="name", id_attribute="name")
class E(Resource):
    fields = ("name",)
-- libs/one/plugins/sub.py --
import inmanta_plugins.helper
from inmanta.plugins import plugin
@plugin
def name() -> "string":
    return inmanta_plugins.helper.name()
`, func(c *compilehost.Config, _ *lang.Options) { c.Sites = []string{site} }).succeed(t)
	if len(o.State.Code) != 2 {
		t.Fatalf("%+v", o.State.Code)
	}
	for _, c := range o.State.Code {
		if strings.Join(c.Types, " ") != "one::E" || len(c.Files) != 2 || c.Validate() != nil {
			t.Errorf("%+v", c)
		}
	}
	for _, place := range []string{filepath.Join(dir, "libs", "one", "plugins"), pkg} {
		left, err := filepath.Glob(filepath.Join(place, "__pycache__", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("bytecode next to sources: %v %v", left, err)
		}
	}
}

// A package that a module of the layout V2 brings besides its plugins is shipped with it, if its code imports it: an installed one by
// what its installation lists, a checkout by what lies beside its plugins.
func TestShippingSiblings(t *testing.T) {
	t.Parallel()
	site, checkout := t.TempDir(), t.TempDir()
	for root, files := range map[string]map[string]string{
		site: {
			"inmanta_plugins/one/model/_init.cf":             "entity E extends std::Resource:\n    string name\nend\nimplement E using std::none\n",
			"inmanta_plugins/one/setup.cfg":                  "[metadata]\nname = inmanta-module-one\nversion = 1.0\n",
			"inmanta_plugins/one/__init__.py":                "import inmanta_one.deep\nfrom inmanta.resources import Resource, resource\n@resource('one::E', agent='name', id_attribute='name')\nclass E(Resource):\n    fields = ('name',)\n",
			"inmanta_one/__init__.py":                        "",
			"inmanta_one/deep.py":                            "x = 1\n",
			"inmanta_unused/__init__.py":                     "",
			"other/__init__.py":                              "",
			"inmanta_module_one-1.0.dist-info/METADATA":      "Metadata-Version: 2.1\nName: inmanta-module-one\nVersion: 1.0\n",
			"inmanta_module_one-1.0.dist-info/top_level.txt": "inmanta_one\ninmanta_plugins\ninmanta_unused\n",
		},
		checkout: {
			"model/_init.cf":                  "",
			"setup.cfg":                       "[metadata]\nname = inmanta-module-two\nversion = 2.0\n",
			"inmanta_plugins/two/__init__.py": "import inmanta_two\n",
			"inmanta_two/__init__.py":         "",
			"tests/__init__.py":               "",
		},
	} {
		for name, text := range files {
			at := filepath.Join(root, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := compile(t, "-- main.cf --\nimport one\nimport two\none::E(name='a')\n", func(c *compilehost.Config, o *lang.Options) {
		c.Sites = []string{site, checkout}
		o.Sites = []module.Site{{Name: site, FS: os.DirFS(site), Disk: site}, {Name: checkout, FS: os.DirFS(checkout), Disk: checkout}}
	}).succeed(t)
	got := map[string]string{}
	for _, c := range o.State.Code {
		for _, f := range c.Files {
			got[c.Module] += f.Name + " "
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{"one": "inmanta_one inmanta_one.deep inmanta_plugins.one ", "two": "inmanta_plugins.two inmanta_two "} {
		if got[name] != want {
			t.Errorf("of module %s are shipped %q, want %q", name, got[name], want)
		}
	}
}

// A module std of the project brings its own plugins, and those of the compiler are gone.
func TestOwnStd(t *testing.T) {
	t.Parallel()
	const std = `
-- main.cf --
std::print(std::upper("x"))
-- libs/std/model/_init.cf --
implementation none for std::Entity:
end
-- libs/std/plugins/__init__.py --
from inmanta.plugins import plugin
from inmanta_plugins import std
@plugin
def upper(s: "string") -> "string":
    assert std.upper is upper
    return s + " from the project"
@plugin("print")
def printf(x: "any") -> "any":
    print(x)
`
	compile(t, std, nil).printed(t, "x from the project")
	compile(t, strings.Replace(std, "upper(\"x\")", "lower(\"X\")", 1), nil).fails(t, "TypeNotFoundException", "could not find type std::lower")
}

// BenchmarkCompile is 10,000 calls or resources of other kinds than [BenchmarkPluginCalls]: calls that take an instance with ten
// attributes and return a dict, calls that run again since a value is not there yet, calls each of which depends on the one
// before, resources with mapped fields.
func BenchmarkCompile(b *testing.B) {
	const ten = "a0, a1, a2, a3, a4, a5, a6, a7, a8, a9"
	declare := "    string " + strings.ReplaceAll(ten, ", ", "\n    string ") + "\n"
	set := strings.ReplaceAll(ten, ",", "=\"{{i}}\",") + "=\"{{i}}\""
	const plugin = "from inmanta.plugins import plugin\nfrom inmanta.resources import Resource, resource\n@plugin\n"
	for name, archive := range map[string]string{
		"instances": project("for i in std::sequence(10000):\n    e = m::E("+set+")\n    x = m::f(e)\nend",
			"entity E:\n"+declare+"end\nimplement E using std::none",
			plugin+"def f(e: 'm::E') -> 'dict':\n    return {'n': e.a0 + e.a9, 'l': [e.a1, e.a2], 'd': {'x': e.a4}}\n"),
		"lists": project("l = std::sequence(100)\nfor i in std::sequence(10000):\n    x = m::f(l, i)\nend", "",
			plugin+"def f(x: 'int[]', i: 'int') -> 'int[]':\n    return [j + i for j in x]\n"),
		"again": project("for i in std::sequence(10000):\n    e = m::E(n=i)\n    x = m::f(e)\nend",
			"entity E:\n    int n\n    int v\nend\nimplementation late for E:\n    self.v = m::g(self.n)\nend\nimplement E using late",
			plugin+"def f(e: 'm::E') -> 'int':\n    return e.v\n@plugin\ndef g(x: 'int') -> 'int':\n    return x\n"),
		"chain": project("for i in std::sequence(10000):\n    m::N(n=i)\nend", `entity N:
    int n
    int v
end
N.next [0:1] -- N.prev [0:1]
index N(n)
implementation first for N:
    self.v = 0
end
implementation other for N:
    self.prev = N[n=self.n - 1]
    self.v = m::f(self.prev)
end
implement N using first when n == 0
implement N using other when n > 0`, plugin+"def f(e: 'm::N') -> 'int':\n    return e.v + 1\n"),
		"export": project("for i in std::sequence(10000):\n    m::R(name=\"r{{i}}\", v=i, tags=[\"a\", \"b\"])\nend",
			"entity R extends std::Resource:\n    string name\n    int v\n    string[] tags\nend\nimplement R using std::none",
			plugin+`def unused() -> "string":
    return ""
@resource("m::R", agent="name", id_attribute="name")
class R(Resource):
    fields = ("name", "v", "tags", "extra")
    @staticmethod
    def get_extra(exporter, e):
        return {"label": f"{e.name}-{e.v}", "tags": list(e.tags)}
`),
	} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				o := compileIn(b, dir, archive, nil).succeed(b)
				b.ReportMetric(float64(o.Stats.Eval.Milliseconds()), "ms/eval")
				b.ReportMetric(float64(o.Stats.Export.Milliseconds()), "ms/export")
			}
		})
	}
}

func BenchmarkPluginCalls(b *testing.B) {
	dir := b.TempDir()
	var main strings.Builder
	const calls = 10_000
	main.WriteString("-- main.cf --\nimport m\nall = std::sequence(10000)\nfor i in all:\n    m::E(name=m::name(i, \"host\"))\nend\n")
	main.WriteString("-- libs/m/model/_init.cf --\nentity E:\n    string name\nend\nimplement E using std::none\n")
	main.WriteString("-- libs/m/plugins/__init__.py --\nfrom inmanta.plugins import plugin\n@plugin\ndef name(i: \"int\", p: \"string\") -> \"string\":\n    return f\"{p}{i}\"\n")
	for b.Loop() {
		o := compileIn(b, dir, main.String(), nil).succeed(b)
		if o.Stats.Instances < calls {
			b.Fatal(o.Stats.Instances)
		}
		b.ReportMetric(float64(o.Stats.Eval.Microseconds())/calls, "µs/call")
		b.ReportMetric(float64(o.Stats.Load.Milliseconds()+o.Stats.Check.Milliseconds()), "ms/start")
	}
}
