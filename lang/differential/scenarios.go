package main

import (
	"fmt"
	"strings"
)

// scenarios are parts of a model that are about the order of evaluation: relations that are read while they grow, conditions on
// relations that others add to, lookups that wait.
var scenarios = []func(*generator){
	(*generator).growing, (*generator).growing, (*generator).tree, (*generator).lookups, (*generator).optionals, (*generator).blocks,
	(*generator).refined, (*generator).resources, (*generator).unknowns, (*generator).hints, (*generator).selfs,
	(*generator).engine,
}

// growing makes instances with several relations between the same entities and rules that copy from one to the other.
func (g *generator) growing() {
	a, b := g.title(), g.title()
	rels := []string{g.name(), g.name(), g.name()}
	m := g.main
	m.addf("entity %s:\n    int n\nend\nimplement %s using std::none", a, a)
	m.addf("entity %s:\n    int n\nend\nimplement %s using std::none", b, b)
	for i, r := range rels {
		if g.chance(2) {
			m.addf("%s.%s %s -- %s", a, r, pick(g, "[0:]", "[0:]", "[0:4]", "[1:]"), b)
		} else {
			m.addf("%s.%s [0:] -- %s.%s_%d [0:]", a, r, b, r, i)
		}
	}
	if g.chance(3) {
		g.rules = append(g.rules, fmt.Sprintf("__config__::%s.%s before __config__::%s.%s", a, rels[0], a, rels[1]))
	}
	var as, bs []string
	for i := range 1 + g.r.IntN(3) {
		x := g.name()
		m.addf("%s = %s(n=%d)", x, a, i)
		as = append(as, x)
	}
	for i := range 1 + g.r.IntN(4) {
		x := g.name()
		m.addf("%s = %s(n=%d)", x, b, i)
		bs = append(bs, x)
	}
	path := func() string { return pick(g, as...) + "." + pick(g, rels...) }
	for range 2 + g.r.IntN(4) {
		m.addf("%s += %s", path(), pick(g, pick(g, bs...), "["+strings.Join(bs, ", ")+"]", fmt.Sprintf("%s(n=%d)", b, g.r.IntN(9))))
	}
	for range 1 + g.r.IntN(4) {
		x := g.name()
		from, to := path(), path()
		switch g.r.IntN(9) {
		case 0:
			m.addf("%s += %s", to, from)
		case 1:
			m.addf("for %s in %s:\n    %s += %s\nend", x, from, to, x)
		case 2:
			m.addf("%s += [%s for %s in %s if %s.n > %d]", to, x, x, from, x, g.r.IntN(4))
		case 3:
			m.addf("if std::count(%s) %s %d:\n    %s += %s\nend", from, pick(g, ">", "==", "<"), g.r.IntN(3), to, pick(g, bs...))
		case 4:
			m.addf("if %s is defined:\n    %s += %s\nelse:\n    %s += %s\nend", from, to, pick(g, bs...), path(), pick(g, bs...))
		case 5:
			m.addf("for %s in %s:\n    if %s.n > %d:\n        %s += %s(n=%s.n - 1)\n    else:\n        %s += %s\n    end\nend", x, from, x,
				g.r.IntN(3), to, b, x, path(), x)
		case 6:
			m.addf("%s = %s\nfor %s_i in %s:\n    %s += %s_i\nend", x, from, x, x, to, x)
		case 7:
			m.addf("%s += %s ? %s : %s", to, "std::count("+from+") > 1", pick(g, bs...), pick(g, bs...))
		default:
			m.addf("if %s in %s:\n    %s += %s\nend", pick(g, bs...), from, to, pick(g, bs...))
		}
	}
	for range 1 + g.r.IntN(3) {
		x := g.name()
		m.addf(pick(g, "std::print([%[1]s.n for %[1]s in %[2]s])", "for %[1]s in %[2]s:\n    std::print(%[1]s.n)\nend", "std::print(std::count(%[2]s))"), x, path())
	}
}

// tree makes a tree by an implementation that makes children.
func (g *generator) tree() {
	t, m := g.title(), g.main
	impl, up := g.name(), g.name()
	m.addf("entity %s:\n    int depth\n    string path\nend\n%s.children [0:] -- %s.%s [0:1]", t, t, t, up)
	key := g.chance(2)
	if key {
		m.addf("index %s(path)", t)
	}
	child := t + `(depth=self.depth - 1, path="{{path}}/{{i}}")`
	m.addf("implementation %s for %s:\n    for i in std::sequence(%d):\n        %s\n    end\nend", impl, t, 1+g.r.IntN(2),
		pick(g, "self.children += "+child, strings.TrimSuffix(child, ")")+", "+up+"=self)"))
	m.addf("implement %s using %s when depth > %d", t, impl, g.r.IntN(2))
	m.addf("implement %s using std::none when not (depth > %d)", t, g.r.IntN(2))
	root := g.name()
	m.addf("%s = %s(depth=%d, path=\"\")", root, t, g.r.IntN(3))
	m.addf("std::print(std::count(%s.children))", root)
	if key {
		x := g.name()
		m.addf("%s = %s[path=%q]\nstd::print(%s.depth)", x, t, pick(g, "", "", "/0", "/1"), x)
	}
	m.addf("for c in %s.children:\n    std::print(\"{{c.path}} {{c.%s.depth}}\")\nend", root, up)
}

// lookups are about indexes with relations, keys from the left-hand side and short lookups.
func (g *generator) lookups() {
	h, s, m := g.title(), g.title(), g.main
	r, inv := g.name(), g.name()
	m.addf("entity %s:\n    string name\nend\nindex %s(name)\nimplement %s using std::none", h, h, h)
	m.addf("entity %s:\n    string key\n    int n = %d\nend\nimplement %s using std::none", s, g.r.IntN(3), s)
	m.addf("%s.%s [0:] -- %s.%s [1]\nindex %s(%s)", h, r, s, inv, s, pick(g, inv+", key", "key, "+inv))
	x, y := g.name(), g.name()
	m.addf("%s = %s(name=\"%s\")", x, h, x)
	m.addf("%s = %s(name=\"%s\")", y, h, pick(g, x, y, y))
	m.addf("%s.%s += %s(key=\"p\")", x, r, s)
	for _, k := range []string{"p", "q", "p"}[:g.r.IntN(4)] {
		m.addf(pick(g, "%[1]s.%[2]s += %[3]s(key=%[4]q)", "%[3]s(%[5]s=%[1]s, key=%[4]q)", "%[1]s.%[2]s = [%[3]s(key=%[4]q)]",
			"%[1]s.%[2]s += %[3]s(key=%[4]q, n=1)"), pick(g, x, y), r, s, k, inv)
	}
	v := g.name()
	m.addf(pick(g, "%[1]s = %[2]s.%[3]s[key=%[4]q]", "%[1]s = %[5]s[key=%[4]q, %[6]s=%[2]s]"), v, x, r, "p", s, inv)
	m.addf("std::print(%s.n)", v)
	if g.chance(3) {
		z := g.name()
		m.addf("%s = %s(name=\"%s\", %s=[%s(key=\"in\")])\nstd::print(std::count(%s.%s))", z, h, z, r, s, z, r)
	}
}

// optionals reads optional relations and values, guarded and not.
func (g *generator) optionals() {
	a, m := g.title(), g.main
	next, prev := g.name(), g.name()
	m.addf("entity %s:\n    string name\n    string? label = null\n    int[]? nums\nend\nimplement %s using std::none", a, a)
	if g.chance(2) {
		m.addf("%s.%s [0:1] -- %s.%s [0:1]", a, next, a, prev)
	} else {
		m.addf("%s.%s [0:1] -- %s\n%s.%s [0:] -- %s", a, next, a, a, prev, a)
	}
	var all []string
	for i := range 2 + g.r.IntN(3) {
		x := g.name()
		m.addf("%s = %s(name=%q, nums=%s)", x, a, fmt.Sprint("n", i), pick(g, "null", "[]", "[1, 2]"))
		all = append(all, x)
	}
	for i := range len(all) - 1 {
		if !g.chance(4) {
			m.addf("%s.%s = %s", all[i], next, pick(g, all[i+1], all[i+1], "null"))
		}
	}
	for _, x := range all[:1+g.r.IntN(len(all))] {
		switch g.r.IntN(6) {
		case 0:
			m.addf("std::print(%s.%s is defined ? %s.%s.name : \"none\")", x, next, x, next)
		case 1:
			m.addf("if %s.%s is defined and %s.%s.%s is defined:\n    std::print(%s.%s.%s.name)\nelse:\n    std::print(\"short\")\nend", x, next, x, next, next, x, next, next)
		case 2:
			m.addf("std::print([%s.label is defined, %s.nums is defined, %s.%s is defined])", x, x, x, prev)
		case 3:
			m.addf("std::print(%s.%s.name)", x, next)
		case 4:
			m.addf("if %s.%s is defined:\n    std::print(\"yes\")\nelse:\n    %s.%s = %s\nend", x, next, x, pick(g, next, prev), pick(g, all...))
		default:
			m.addf("%s.label = %s", x, pick(g, "null", `"x"`, x+".name", `"{{`+x+`.name}}"`))
		}
	}
}

// blocks nests blocks with variables that shadow others.
func (g *generator) blocks() {
	m := g.main
	v := g.name()
	m.addf("%s = %d", v, g.r.IntN(5))
	s := &scope{g: g, in: m, outer: true, locals: []*variable{{name: v, typ: typ{base: "int"}}}}
	m.addf("for i in [1, 2, 3]:\n    %s = i * %d\n    for j in [%s, i]:\n        if j > %d:\n            %s = \"in\"\n            std::print(\"{{i}} {{j}} {{%s}}\")\n        elif %s:\n            std::print(%s)\n        end\n    end\nend",
		v, g.r.IntN(4), v, g.r.IntN(4), v, v, s.expr(typ{base: "bool"}, 1), v)
	m.addf("std::print(%s)", v)
}

// refined is about which implementations are selected.
func (g *generator) refined() {
	p, c, m := g.title(), g.title(), g.main
	one, two, three := g.name(), g.name(), g.name()
	m.addf("entity %s:\n    int n\n    string kind = %q\nend", p, pick(g, "x", "y"))
	m.addf("entity %s extends %s:\n%send", c, p, pick(g, "", "    string kind = \"c\"\n", "    string kind\n"))
	m.addf("%s.parts [0:] -- %s.whole [0:1]", p, p)
	m.addf("implementation %s for %s:\n    std::print(\"%s {{n}} {{kind}}\")\nend", one, p, one)
	m.addf("implementation %s for %s:\n    kind = \"local\"\n    std::print(\"%s {{kind}} {{self.kind}}\")\nend", two, p, two)
	m.addf("implementation %s for %s:\n    self.parts += %s(n=self.n + 1)\nend", three, c, p)
	m.addf("implement %s using %s", p, pick(g, one, one+", "+two, "std::none"))
	m.addf("implement %s using %s when %s", p, two, pick(g, "n > 1", "self.n > 1", "kind == \"x\"", "std::count(parts) > 0", "whole is defined"))
	m.addf("implement %s using %s", c, pick(g, "parents", "parents, "+three, three, one+", parents"))
	if g.chance(2) {
		m.addf("implement %s using %s when %s", c, pick(g, three, one, two), pick(g, "n == 2", "kind is defined", "not (n == 2)", "parts is defined"))
	}
	for range 1 + g.r.IntN(3) {
		m.addf("%s(n=%d%s)", pick(g, p, c, c), g.r.IntN(4), pick(g, "", "", `, kind="x"`, `, kind="z"`))
	}
}

// resources exports null resources with requires between them.
func (g *generator) resources() {
	m := g.main
	m.imports["std::testing"] = "std::testing"
	var all []string
	for i := range 1 + g.r.IntN(4) {
		x := g.name()
		extra := pick(g, "", "", ", agentname=\"other\"", ", value=\"{{ "+x+".name }}!\"", ", value=std::get_env(\"MODELGEN_NOT_SET_ANYWHERE\")", ", purged=true", ", int_value=7")
		m.addf("%s = std::testing::NullResource(name=\"r%d\"%s)", x, i, extra)
		for _, o := range all {
			if g.chance(2) {
				m.addf(pick(g, "%[1]s.requires += %[2]s", "%[2]s.provides += %[1]s", "%[1]s.requires = [%[2]s]"), x, o)
			}
		}
		all = append(all, x)
	}
	if g.chance(3) {
		m.addf("std::ResourceSet(name=\"set\", resources=[%s])", strings.Join(all, ", "))
	}
}

// unknowns lets an unknown value flow.
func (g *generator) unknowns() {
	m, u, a := g.main, g.name(), g.title()
	m.addf("%s = std::get_env(\"MODELGEN_NOT_SET_ANYWHERE\")", u)
	m.addf("entity %s:\n    string s\n    int[] l = []\n    dict d = {}\nend\nimplement %s using std::none", a, a)
	for range 2 + g.r.IntN(5) {
		x := g.name()
		m.addf("%s = %s", x, strings.ReplaceAll(pick(g, "U + 1", "not U", "[U, 1]", "{\"a\": U}", "\"{{U}}\"", "f\"{U:>3}\"", "U ? 1 : 2", "true ? U : 1",
			"1 in [U, 1]", "2 in [U, 1]", "U in [1]", "[x for x in U]", "[x for x in [1, U] if x == 1]", "false and U", "true and U", "true or U",
			"U and true", "int(U)", "string(U)", "std::upper(U)", "std::count([U])", "U == U", "U == 1", "std::is_unknown(U)", "A(s=U)", "A(s=\"x\", l=[U])",
			"A(s=\"x\", d={\"k\": U})", "std::count(U)", "U is defined", "std::replace(\"abc\", \"a\", U)", "std::inlineif(true, 1, U)", "U in {\"a\": 1}"), "U", u))
		if strings.Contains(m.stmts[len(m.stmts)-1], "A(") {
			m.stmts[len(m.stmts)-1] = strings.ReplaceAll(m.stmts[len(m.stmts)-1], "A(", a+"(")
			continue
		}
		if g.chance(2) {
			m.addf("if std::is_unknown(%s):\n    std::print(\"%s\")\nend", x, x)
		}
		if g.chance(3) {
			m.addf("%s(s=%s)", a, x)
		}
	}
	m.addf("if %s:\n    std::print(1)\nelse:\n    std::print(2)\nend\nfor e in [1, %s, 3]:\n    std::print(e)\nend", u, u)
}

// hints constructs types that are known by the relation alone.
func (g *generator) hints() {
	m := g.main
	mod := g.name()
	f := &file{namespace: mod, path: "libs/" + mod + "/model/_init.cf", imports: map[string]string{}}
	g.files = append(g.files, f)
	a, b, c := g.title(), g.title(), g.title()
	f.addf("entity %s:\n    string v = \"a\"\nend\nimplement %s using std::none", a, a)
	f.addf("entity %s:\n    int n\nend\nimplement %s using std::none", b, b)
	f.addf("entity %s extends %s:\nend\nimplement %s using std::none", c, b, c)
	f.addf("%s.items [0:] -- %s\n%s.one [0:1] -- %s.back [0:]", a, b, a, b)
	if g.chance(3) {
		m.addf("entity %s extends %s:\nend\nimplement %s using parents", pick(g, b, c), g.qualified(m, f, b), pick(g, b, c))
	}
	x := g.name()
	m.addf("%s = %s(items=%s, one=%s)", x, g.qualified(m, f, a),
		pick(g, "["+b+"(n=1), "+c+"(n=2)]", "["+b+"(n=i) for i in [1, 2]]", "true ? "+b+"(n=3) : "+c+"(n=4)", c+"(n=5)"),
		pick(g, b+"(n=6)", "null", "false ? "+b+"(n=7) : "+c+"(n=8)"))
	if g.chance(4) {
		m.addf("%s.items += %s(n=9)", x, pick(g, b, g.qualified(m, f, b)))
	}
	m.addf("std::print([i.n for i in %s.items])", x)
}

// selfs is about relations of an entity to itself that are their own inverse.
func (g *generator) selfs() {
	a, m, r := g.title(), g.main, g.name()
	m.addf("entity %s:\n    string id\nend\nimplement %s using std::none\n%s.%s %s -- %s.%s %s", a, a, a, r, "[0:]", a, r, pick(g, "[0:]", "[0:]", "[0:2]"))
	var all []string
	for range 2 + g.r.IntN(3) {
		x := g.name()
		m.addf("%s = %s(id=%q)", x, a, x)
		all = append(all, x)
	}
	for range 1 + g.r.IntN(4) {
		m.addf("%s.%s += %s", pick(g, all...), r, pick(g, pick(g, all...), "["+strings.Join(all, ", ")+"]", pick(g, all...)+"."+r))
	}
	for _, x := range all {
		m.addf("std::print(std::count(%s.%s))", x, r)
	}
}
