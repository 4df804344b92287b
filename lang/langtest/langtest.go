// Package langtest generates models for the tests and benchmarks of the language: as large as they are wanted, the same bytes
// each time. All but the last kind use nothing of the module std but the type std::Entity, and no plugin, so that any compiler of
// the language runs them and is measured by its own work.
package langtest

import (
	"fmt"
	"strings"
	"testing/fstest"
)

// Shape is a kind of model.
type Shape struct {
	// Name is a word for tables.
	Name string
	// About says what the model has much of.
	About string
	main  func(b *source, n int)
}

// Shapes are all kinds of models, the mixed one first.
func Shapes() []Shape {
	return []Shape{
		{"mixed", "a bit of everything, in the proportions of a model of machines with services and files", mixed},
		{"instances", "constructors with literals and defaults, one after the other", instances},
		{"relations", "relations in both directions, set from either end", relations},
		{"indexes", "lookups in indexes, of instances that are made later too", indexes},
		{"implementations", "implementations that make instances with implementations", implementations},
		{"comprehensions", "comprehensions with conditions over relations that are still growing", comprehensions},
		{"strings", "long strings with references and formats", longStrings},
		{"inheritance", "entities forty generations deep", inheritance},
		{"resources", "the mixed model with resources of the module std, and its plugins", resources},
	}
}

// Project is a project of about n instances.
func (s Shape) Project(n int) fstest.MapFS {
	b := &source{}
	s.main(b, n)
	return project(b.String(), nil)
}

// project is a project with a main file and modules of one file each.
func project(main string, modules map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"project.yml": {Data: []byte("name: generated\nmodulepath: libs\ndownloadpath: libs\n")},
		"main.cf":     {Data: []byte(main)},
	}
	for name, text := range modules {
		files["libs/"+name+"/module.yml"] = &fstest.MapFile{Data: []byte("name: " + name + "\nversion: 1.0.0\nlicense: none\n")}
		files["libs/"+name+"/model/_init.cf"] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// source is the text of a model.
type source struct{ strings.Builder }

// addf appends a line.
func (b *source) addf(format string, args ...any) {
	_, _ = fmt.Fprintf(b, format, args...)
	b.WriteByte('\n')
}

// noImplementation lets entities do without an implementation of their own.
const noImplementation = `
implementation nothing for std::Entity:
end
`

// loop runs body, whose variable is i, n times: two loops over lists, since a range would take a plugin.
func (b *source) loop(n int, body string) {
	side := 1
	for side*side < n {
		side++
	}
	b.addf("for high in [%s]:\n    for low in [%s]:\n        i = high * %d + low\n        if i < %d:", list(side), list(side), side, n)
	for line := range strings.Lines(strings.Trim(body, "\n")) {
		b.WriteString("            " + line)
	}
	b.addf("\n        end\n    end\nend")
}

func instances(b *source, n int) {
	b.addf(`entity Item:
    string name
    int size
    bool enabled = true
    string owner = "root"
    string[] tags = ["a", "b"]
    dict labels = {}
end
implement Item using nothing` + noImplementation)
	for i := range n {
		b.addf(`Item(name="item %d", size=%d, labels={"number": %d, "kind": "generated"})`, i, i%1000, i)
	}
}

func relations(b *source, n int) {
	b.addf(`entity Node:
    string name
end
entity Port:
    int number
end
Node.ports [0:] -- Port.node [1]
Node.next [0:1] -- Node.previous [0:1]
Node.group [0:1] -- Group.members [0:]
entity Group:
end
implement Node using nothing
implement Port using nothing
implement Group using nothing` + noImplementation)
	nodes := max(1, n/3)
	for i := range nodes {
		if i%50 == 0 {
			b.addf("g%d = Group()", i/50)
		}
		b.addf("n%d = Node(name=\"n%d\")\nn%d.ports += Port(number=1)\nPort(number=2, node=n%d)\ng%d.members += n%d", i, i, i, i, i/50, i)
		if i > 0 {
			b.addf("n%d.next = n%d", i-1, i)
		}
	}
}

func indexes(b *source, n int) {
	b.addf(`entity Host:
    string name
    int rack
end
index Host(name)
index Host(rack, name)
entity Address:
    string text
end
Host.addresses [0:] -- Address.host [1]
index Address(host, text)
Host.backup [0:1] -- Host.backs [0:]
implement Host using nothing
implement Address using nothing` + noImplementation)
	hosts := max(2, n/2)
	for i := range hosts {
		b.addf(`h%d = Host(name="host-%d", rack=%d)
Address(host=Host[name="host-%d"], text="10.0.%d.%d")
h%d.backup = Host[rack=%d, name="host-%d"]
a%d = h%d.addresses[text="10.0.%d.%d"]`, i, i, i/40, (i+1)%hosts, ((i+1)%hosts)/250, ((i+1)%hosts)%250, i, ((i+7)%hosts)/40, (i+7)%hosts, i, i, i/250, i%250)
	}
}

func implementations(b *source, n int) {
	const levels = 4
	for l := range levels {
		b.addf("entity Level%d:\n    string path\n    bool deep = true\nend", l)
	}
	for l := range levels - 1 {
		b.addf(`Level%[1]d.parts [0:] -- Level%[2]d.whole [1]
implementation grow%[1]d for Level%[1]d:
    self.parts += Level%[2]d(path=f"{path}/%[2]d")
    if self.deep:
        self.parts += Level%[2]d(path=f"{self.path}/deep", deep=false)
    end
end
implement Level%[1]d using grow%[1]d when deep
implement Level%[1]d using nothing when not deep`, l, l+1)
	}
	b.addf("implement Level%d using nothing"+noImplementation, levels-1)
	// One root makes two of the next level, of which one goes on.
	b.loop(max(1, n/(2*levels-1)), `Level0(path="{{i}}")`)
}

func comprehensions(b *source, n int) {
	b.addf(`entity Pool:
    string name
end
entity Member:
    int number
    string label
end
entity View:
    int[] numbers
    string[] labels
end
Pool.members [0:] -- Member.pool [1]
View.even [0:] -- Member
implement Pool using nothing
implement Member using nothing
implement View using nothing` + noImplementation)
	const members = 18
	for i := range max(1, n/(members+2)) {
		b.addf(`p%[1]d = Pool(name="p%[1]d")
p%[1]d.members = [Member(number=k, label="{{k}} of %[1]d") for k in [%[2]s]]
v%[1]d = View(
    numbers=[m.number for m in p%[1]d.members if m.number > 3 if m.number < 12],
    labels=[f"{m.label!r:>16}" for m in p%[1]d.members],
    even=[m for m in p%[1]d.members if m.number %% 2 == 0],
)`, i, list(members))
	}
}

// list is 0, 1, … n-1.
func list(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprint(i)
	}
	return strings.Join(items, ", ")
}

func longStrings(b *source, n int) {
	b.addf(`entity File:
    string name
    int mode
    string head
    string body
    string tail
end
implement File using text
implementation text for File:
    self.body = """# {{self.name}}
%s
owner of {{name}} is {{ name }} with mode {{self.mode}}
"""
    self.tail = f"{self.name:>40}|{mode:08x}|{self.name!r}|{name:^{mode}}|"
end
`, strings.Repeat("option = value of some length that says nothing = {{self.mode}}\n", 12))
	for i := range n {
		b.addf(`File(name="file-%d", mode=%d, head="%s %d")`, i, i%64, strings.Repeat("long text without end, ", 12), i)
	}
}

func inheritance(b *source, n int) {
	const generations = 40
	b.addf("entity E0:\n    string name\n    int v0 = 0\nend\nE0.friend [0:1] -- E0.friends [0:]\nindex E0(name)\nimplement E0 using nothing" + noImplementation)
	for g := 1; g < generations; g++ {
		b.addf("entity E%[1]d extends E%[2]d:\n    int v%[3]d = %[1]d\nend\nimplement E%[1]d using parents", g, g-1, g%8)
	}
	for i := range n {
		b.addf(`E%d(name="e%d", v0=%d)`, i*7%generations, i, i)
	}
	b.addf("first = E0[name=\"e0\"]\nfirst.friends += E0[name=\"e%d\"]", n-1)
}

const mixedDefinitions = `
typedef port as int matching self > 0 and self < 65536
typedef mode as string matching /^[0-7]{3,4}$/
entity Named:
    string name
end
entity Site extends Named:
    string domain = "example.org"
end
index Site(name)
entity Machine extends Named:
    int number
    bool enabled = true
    string[] tags = []
    dict labels = {}
end
index Machine(name)
entity Service extends Named:
    port port
    string url
end
index Service(machine, name)
entity File:
    string path
    string content
    mode mode = "644"
end
index File(machine, path)
Site.machines [0:] -- Machine.site [1]
Machine.peer [0:1] -- Machine.peers [0:]
Machine.services [0:] -- Service.machine [1]
Machine.files [0:] -- File.machine [1]
implement Site using nothing
implement Service using nothing
implement File using nothing
implement Machine using configured when enabled
implement Machine using joined when peer is defined
implement Machine using nothing when not enabled
implementation configured for Machine:
    self.services += Service(name="ssh", port=22, url="ssh://{{self.name}}.{{self.site.domain}}:22")
    if self.number > 0:
        File(machine=self, path="/etc/motd", content=f"{self.name} of {self.site.name}, number {self.number:04d}\n")
    else:
        File(machine=self, path="/etc/motd", content="the first one", mode="0600")
    end
end
implementation joined for Machine:
    mine = File[machine=self, path="/etc/motd"]
    mine.requires += File[machine=self.peer, path="/etc/motd"]
    names = [s.name for s in self.services if s.port != 22]
end
` + noImplementation

// resources is the mixed model in which files are resources, and implementations that do nothing and loops come from std.
func resources(b *source, n int) {
	m := &source{}
	mixed(m, n)
	b.WriteString("import std::testing\n")
	b.WriteString(strings.NewReplacer(
		noImplementation, "",
		"using nothing", "using std::none",
		"entity File:\n", "entity File extends std::testing::NullResource:\n",
		"File(machine=self, ", `File(machine=self, name="{{self.name}}", agentname=self.site.name, `,
	).Replace(m.String()))
	b.addf("for i in std::sequence(%d):\n    std::testing::NullResource(name=\"extra {{i}}\", agentname=\"extra\")\nend", n/100)
}

// mixed writes half of the machines out and makes the others in a loop. Each comes with two services and a file.
func mixed(b *source, n int) {
	b.WriteString(mixedDefinitions)
	machines := max(2, n/4)
	sites := max(1, machines/100)
	for i := range sites {
		b.addf(`s%d = Site(name="site-%d")`, i, i)
	}
	written := machines / 2
	for i := range written {
		peer := ""
		if i%10 != 9 {
			peer = fmt.Sprintf(`, peer=Machine[name="machine-%d"]`, i+1)
		}
		b.addf(`m%[1]d = Machine(name="machine-%[1]d", number=%[1]d, site=s%[2]d, tags=["static", "t%[3]d"], labels={"rack": "r%[3]d"}%[4]s)
Service(machine=m%[1]d, name="web", port=%[5]d, url="http://{{m%[1]d.name}}:%[5]d/")`, i, i%sites, i%40, peer, 1024+i%60000)
	}
	b.loop(machines-written, fmt.Sprintf(`number = i + %d
m = Machine(name=f"machine-{number}", number=number, site=Site[name="site-0"], tags=["loop", "t{{i}}"],
    peer=i %% 10 == 0 ? null : Machine[name="machine-0"])
Service(machine=m, name="web", port=1024 + i %% 60000, url="http://{{m.name}}/{{i}}")`, written))
}
