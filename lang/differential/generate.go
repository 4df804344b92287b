package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
)

// generate makes a project that is meant to be valid: entities with inheritance, attributes, relations and indexes over the main
// file and up to three modules, instances of them, and statements about all that. Equal sources of random numbers give equal
// projects. Some are invalid all the same, where two random choices do not go together.
func generate(r *rand.Rand) project {
	p := compose(r)
	if r.IntN(3) == 0 {
		p = spread(r, p)
	}
	return p
}

// compose makes the project for [generate], each statement on a line.
func compose(r *rand.Rand) project {
	g := &generator{r: r, names: map[string]bool{}, extra: project{}}
	g.modules()
	switch g.r.IntN(6) { //nolint:mnd // a sixth, a third and the rest
	case 0:
		g.engine()
		return g.project()
	case 1, 2: //nolint:mnd // see above
		combinations[g.r.IntN(len(combinations))](g)
		return g.project()
	}
	g.typedefs()
	g.entities()
	g.relations()
	g.indexes()
	g.implementations()
	g.constants()
	g.instances()
	g.links()
	for range 1 + r.IntN(8) {
		g.statement(g.main, 2)
	}
	for range r.IntN(4) {
		scenarios[r.IntN(len(scenarios))](g)
	}
	for range r.IntN(3) {
		g.print(g.main)
	}
	return g.project()
}

// generator is a project in the making.
type generator struct {
	r     *rand.Rand
	names map[string]bool // in use, in any file
	main  *file
	files []*file
	defs  []*typedef
	kinds []*entity
	rels  []*end
	vars  []*variable
	insts []*instance
	made  int      // instances made inline
	rules []string // of the relation precedence policy
	extra project  // files that are no models
}

// file is a file of the project with its statements.
type file struct {
	namespace string
	path      string
	imports   map[string]string // namespace to the name it is visible by
	stmts     []string
}

type typedef struct {
	name   string
	in     *file
	base   string
	text   string
	values []string // literals that fit
}

type entity struct {
	name    string
	in      *file
	parents []*entity
	attrs   []*attribute
	ends    []*end
	keys    [][]string // attributes of indexes
	level   int
	using   bool // its implementations set attributes
}

type attribute struct {
	name    string
	typ     typ
	preset  bool // has a default
	byImpl  bool // set by an implementation of the entity
	indexed bool
}

// end is one end of a relation.
type end struct {
	owner, target *entity
	name          string
	low, high     int // high 0: no bound
	inverse       *end
}

type variable struct {
	name string
	in   *file
	typ  typ
}

type instance struct {
	name string
	in   *file
	kind *entity
	key  int
	used map[*end]int // how many values its relations have
}

// typ is a type of values: a base type, perhaps a list of it, perhaps nullable, perhaps by the name of a typedef.
type typ struct {
	base     string // int, float, string, bool, number, dict, list
	list     bool
	nullable bool
	def      *typedef
}

func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

func pick[T any](g *generator, of ...T) T { return of[g.r.IntN(len(of))] }

var words = strings.Fields(`amber birch cedar delta echo fjord grove heron ivory jasper kettle lagoon maple nectar onyx pebble quartz
	raven slate timber umber valve walnut yarrow zephyr anchor basil copper dune ember flint harbor island juniper ledger`)

// name makes a new name of small letters.
func (g *generator) name() string {
	for {
		s := words[g.r.IntN(len(words))]
		if g.chance(2) {
			s += pick(g, "_", "") + fmt.Sprint(g.r.IntN(90))
		}
		if !g.names[s] {
			g.names[s] = true
			return s
		}
	}
}

// title makes a new name of an entity.
func (g *generator) title() string {
	s := g.name()
	return strings.ToUpper(s[:1]) + s[1:]
}

func (g *generator) modules() {
	g.main = &file{namespace: "__config__", path: "main.cf", imports: map[string]string{}}
	g.files = []*file{g.main}
	if g.chance(2) {
		return
	}
	m := g.name()
	g.files = append(g.files, &file{namespace: m, path: "libs/" + m + "/model/_init.cf", imports: map[string]string{}})
	if g.chance(2) {
		sub := g.name()
		path := pick(g, "libs/"+m+"/model/"+sub+".cf", "libs/"+m+"/model/"+sub+"/_init.cf")
		g.files = append(g.files, &file{namespace: m + "::" + sub, path: path, imports: map[string]string{}})
	}
	if g.chance(3) {
		o := g.name()
		g.files = append(g.files, &file{namespace: o, path: "libs/" + o + "/model/_init.cf", imports: map[string]string{}})
	}
}

// qualified is how a file writes a name of another one. It adds the import that this needs.
func (g *generator) qualified(in, from *file, name string) string {
	switch {
	case in == from:
		if in != g.main && g.chance(8) {
			return in.namespace + "::" + name
		}
		return name
	case strings.HasPrefix(in.namespace, from.namespace+"::") && name[0] >= 'A' && name[0] <= 'Z':
		return name // types of the namespaces around are visible
	}
	as, ok := in.imports[from.namespace]
	if !ok {
		as = from.namespace
		if g.chance(4) {
			as = g.name()
		}
		in.imports[from.namespace] = as
	}
	return as + "::" + name
}

// anyFile is where a declaration goes: mostly the main file.
func (g *generator) anyFile() *file {
	if g.chance(2) {
		return g.main
	}
	return g.files[g.r.IntN(len(g.files))]
}

// reaches reports whether one file may refer to another: the main file to all, modules to those after them.
func (g *generator) reaches(from, to *file) bool {
	if to == g.main {
		return from == g.main
	}
	return true
}

func (f *file) addf(format string, args ...any) {
	f.stmts = append(f.stmts, fmt.Sprintf(format, args...))
}

// project writes all files. The order of statements says nothing, so that it may be any.
func (g *generator) project() project {
	p := maps.Clone(g.extra)
	p["project.yml"] = "name: case\nmodulepath: libs\nversion: 1.0\n"
	if len(g.rules) > 0 {
		p["project.yml"] += "relation_precedence_policy:\n  - \"" + strings.Join(g.rules, "\"\n  - \"") + "\"\n"
	}
	for _, f := range g.files {
		var b strings.Builder
		if g.chance(3) {
			g.r.Shuffle(len(f.stmts), func(i, j int) { f.stmts[i], f.stmts[j] = f.stmts[j], f.stmts[i] })
		}
		imports := f.importLines()
		if len(f.imports) > 0 && g.chance(5) {
			f.stmts = append(f.stmts, imports)
		} else {
			b.WriteString(imports)
		}
		for _, s := range f.stmts {
			b.WriteString(s)
			if !strings.HasSuffix(s, "\n") {
				b.WriteByte('\n')
			}
			if g.chance(12) {
				b.WriteString("# " + words[g.r.IntN(len(words))] + "\n")
			}
		}
		p[f.path] = b.String()
	}
	for _, f := range g.files[1:] {
		top, _, _ := strings.Cut(f.namespace, "::")
		p["libs/"+top+"/module.yml"] = "name: " + top + "\nversion: 1.0.0\nlicense: Apache 2.0\n"
		if _, ok := g.main.imports[f.namespace]; !ok {
			p["main.cf"] = "import " + f.namespace + "\n" + p["main.cf"]
		}
	}
	return p
}
