package main

import (
	"fmt"
	"slices"
	"strings"
)

// engine is a part of a model that is only about when relations grow, are read and are closed: random rules over a few entities with
// relations between them, at the top level and in implementations, nested in loops and conditions.
type engine struct {
	g     *generator
	kinds []*engineKind
}

type engineKind struct {
	name string
	rels []*engineRel
	tops []string // variables of the main file
}

type engineRel struct {
	name   string
	target *engineKind
	single bool
}

// path is an expression for an instance.
type path struct {
	text string
	kind *engineKind
}

// engine adds an [engine] to the main file.
func (g *generator) engine() {
	e := &engine{g: g}
	m := g.main
	for range 2 + g.r.IntN(2) {
		k := &engineKind{name: g.title()}
		e.kinds = append(e.kinds, k)
		m.addf("entity %s:\n    string k\n    int n = %d\nend\nindex %s(k)", k.name, g.r.IntN(4), k.name)
	}
	for range 3 + g.r.IntN(5) {
		e.relate()
	}
	if g.chance(5) {
		var lists []string
		for _, k := range e.kinds {
			for _, r := range k.rels {
				lists = append(lists, fmt.Sprintf("__config__::%s.%s", k.name, r.name))
			}
		}
		g.rules = append(g.rules, lists[0]+" before "+lists[len(lists)-1])
	}
	for _, k := range e.kinds {
		for range 1 + g.r.IntN(3) {
			v := g.name()
			k.tops = append(k.tops, v)
			m.addf("%s = %s(k=%q)", v, k.name, v)
		}
	}
	for _, k := range e.kinds {
		if g.chance(2) {
			m.addf("implement %s using std::none", k.name)
			continue
		}
		impl := g.name()
		self := append(e.tops(), path{"self", k})
		m.addf("implementation %s for %s:\n%send", impl, k.name, e.block(self, "    ", 2))
		if g.chance(2) {
			m.addf("implement %s using std::none\nimplement %s using %s when %s", k.name, k.name, impl, e.condition([]path{{"self", k}}))
		} else {
			m.addf("implement %s using %s", k.name, impl)
		}
	}
	for range 3 + g.r.IntN(6) {
		m.addf("%s", strings.TrimRight(dedent(e.block(e.tops(), "    ", 3)), "\n"))
	}
	for _, k := range e.kinds {
		for _, r := range k.rels {
			if !r.single && g.chance(2) {
				m.addf("std::print([x.k for x in %s.%s])", pick(g, k.tops...), r.name)
			}
		}
	}
}

// relate adds a relation between two entities.
func (e *engine) relate() {
	g := e.g
	a, b := pick(g, e.kinds...), pick(g, e.kinds...)
	r := &engineRel{name: g.name(), target: b, single: g.chance(4)}
	a.rels = append(a.rels, r)
	bounds := pick(g, "[0:]", "[0:]", "[0:]", "[0:]", "[0:3]", "[1:]")
	if r.single {
		bounds = "[0:1]"
	}
	if g.chance(2) {
		g.main.addf("%s.%s %s -- %s", a.name, r.name, bounds, b.name)
		return
	}
	s := &engineRel{name: g.name(), target: a, single: g.chance(5)}
	b.rels = append(b.rels, s)
	g.main.addf("%s.%s %s -- %s.%s %s", a.name, r.name, bounds, b.name, s.name, map[bool]string{true: "[0:1]", false: "[0:]"}[s.single])
}

// tops are the instances of the main file.
func (e *engine) tops() []path {
	var out []path
	for _, k := range e.kinds {
		for _, v := range k.tops {
			out = append(out, path{v, k})
		}
	}
	return out
}

// relation is a relation of one of the instances, a list when wanted; ok is false when there is none.
func (e *engine) relation(scope []path, list bool) (text string, target *engineKind, ok bool) {
	for range 8 {
		p := pick(e.g, scope...)
		if e.g.chance(3) {
			p = scope[len(scope)-1]
		}
		if len(p.kind.rels) == 0 {
			continue
		}
		if r := pick(e.g, p.kind.rels...); !r.single || !list {
			return p.text + "." + r.name, r.target, true
		}
	}
	return "", nil, false
}

// instance is an expression for an instance of an entity.
func (e *engine) instance(scope []path, k *engineKind) string {
	g := e.g
	var all []string
	for _, p := range scope {
		if p.kind == k {
			all = append(all, p.text)
		}
	}
	if len(all) == 0 || g.chance(4) {
		return fmt.Sprintf("%s(k=\"new%d\")", k.name, g.r.IntN(4))
	}
	return pick(g, all...)
}

func (e *engine) condition(scope []path) string {
	g := e.g
	rel, k, ok := e.relation(scope, true)
	if !ok {
		return "true"
	}
	switch g.r.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("std::count(%s) %s %d", rel, pick(g, ">", "<", "==", ">="), g.r.IntN(3))
	case 2:
		return rel + " is defined"
	case 3:
		return fmt.Sprintf("%s %s %s", e.known(scope, k), pick(g, "in", "not in"), rel)
	case 4:
		if one, _, ok := e.relation(scope, false); ok {
			return one + " is defined"
		}
	case 5:
		return fmt.Sprintf("(%s and %s)", e.condition(scope), e.condition(scope))
	case 6:
		return fmt.Sprintf("std::count([x for x in %s if x.n > %d]) > 0", rel, g.r.IntN(3))
	}
	return fmt.Sprintf("%s.n > %d", pick(g, scope...).text, g.r.IntN(4))
}

// known is an instance that exists whatever happens.
func (e *engine) known(scope []path, k *engineKind) string {
	for _, p := range scope {
		if p.kind == k {
			return p.text
		}
	}
	return k.name + `[k="new0"]`
}

// block makes a few statements.
func (e *engine) block(scope []path, indent string, depth int) string {
	g := e.g
	var b strings.Builder
	for range 1 + g.r.IntN(2) {
		rel, k, ok := e.relation(scope, true)
		if !ok {
			b.WriteString(indent + "std::print(\"nothing\")\n")
			continue
		}
		v := g.name()
		switch n := g.r.IntN(10); {
		case n < 3 && depth > 0:
			inner := append(slices.Clip(scope), path{v, k})
			fmt.Fprintf(&b, "%sfor %s in %s:\n%s%send\n", indent, v, rel, e.block(inner, indent+"    ", depth-1), indent)
		case n < 5 && depth > 0:
			fmt.Fprintf(&b, "%sif %s:\n%s", indent, e.condition(scope), e.block(scope, indent+"    ", depth-1))
			if g.chance(3) {
				fmt.Fprintf(&b, "%selse:\n%s", indent, e.block(scope, indent+"    ", depth-1))
			}
			b.WriteString(indent + "end\n")
		default:
			b.WriteString(indent + e.grow(scope, rel, k, v) + "\n")
		}
	}
	return b.String()
}

// grow is a statement that adds to a relation, or reads it.
func (e *engine) grow(scope []path, rel string, k *engineKind, v string) string {
	g := e.g
	var from string
	for range 6 {
		if other, of, ok := e.relation(scope, true); ok && of == k {
			from = other
			break
		}
	}
	switch n := g.r.IntN(9); {
	case n < 2 && from != "":
		return fmt.Sprintf("%s += %s", rel, from)
	case n < 3 && from != "":
		return fmt.Sprintf("%s += [%s for %s in %s if %s]", rel, v, v, from, e.condition(append(slices.Clip(scope), path{v, k})))
	case n < 4:
		return fmt.Sprintf("%s += %s ? %s : %s", rel, e.condition(scope), e.instance(scope, k), e.instance(scope, k))
	case n < 5:
		return fmt.Sprintf("std::print(\"%s {{%s.k}}\")", v, pick(g, scope...).text)
	case n < 6:
		if one, of, ok := e.relation(scope, false); ok {
			return fmt.Sprintf("%s = %s", one, e.instance(scope, of))
		}
	}
	return fmt.Sprintf("%s += %s", rel, e.instance(scope, k))
}
