package main

import (
	"fmt"
	"slices"
	"strings"
)

// constants makes variables with values.
func (g *generator) constants() {
	for range 2 + g.r.IntN(5) {
		in := g.anyFile()
		t := typ{base: pick(g, "int", "float", "string", "string", "bool", "dict", "list")}
		if t.base != "dict" && t.base != "list" {
			t.list = g.chance(5)
		}
		v := &variable{name: g.name(), in: in, typ: t}
		s := &scope{g: g, in: in}
		in.addf("%s = %s", v.name, s.expr(t, 3))
		g.vars = append(g.vars, v)
	}
	if g.chance(6) { // a fact that is not known
		v := &variable{name: g.name(), in: g.main, typ: typ{base: pick(g, "string", "int", "bool", "list")}}
		g.main.addf(`%s = std::get_env("MODELGEN_NOT_SET_ANYWHERE")`, v.name)
		g.vars = append(g.vars, v)
	}
}

// instances makes some instances of each entity, in variables. All are planned before the first is made, so that each may refer to
// any other.
func (g *generator) instances() {
	for _, e := range g.kinds {
		for range g.r.IntN(4) {
			in := g.main
			if e.in != g.main && g.chance(4) {
				in = e.in
			}
			g.insts = append(g.insts, &instance{name: g.name(), in: in, kind: e, key: len(g.insts), used: map[*end]int{}})
		}
	}
	for _, i := range g.insts {
		i.in.addf("%s = %s", i.name, g.construct(i, 0))
	}
	for _, i := range g.insts {
		for _, r := range i.kind.allEnds() {
			if i.used[r] < r.low {
				if v := g.targets(r, i, 0); v != "" {
					i.in.addf("%s.%s %s %s", i.name, r.name, g.assign(r), v)
				}
			}
		}
	}
}

// construct makes a constructor call, and assignments of what it leaves out. Inside other constructors nothing can follow.
func (g *generator) construct(i *instance, depth int) string {
	in := i.in
	s := &scope{g: g, in: in, outer: depth == 0, before: i.key}
	var args, after, spread []string
	for _, a := range i.kind.uniqueAttrs() {
		switch {
		case a.indexed:
			args = append(args, fmt.Sprintf(`%s="%s-%d"`, a.name, words[i.key%len(words)], i.key))
		case a.byImpl, a.preset && g.chance(2):
		case depth == 0 && !a.preset && g.chance(6) && !g.inKey(i.kind, a.name):
			after = append(after, fmt.Sprintf("%s.%s = %s", i.name, a.name, s.expr(a.typ, 2)))
		case g.chance(10) && !g.inKey(i.kind, a.name):
			spread = append(spread, fmt.Sprintf("%q: %s", a.name, s.expr(a.typ, 1)))
		default:
			args = append(args, a.name+"="+s.expr(a.typ, 2))
		}
	}
	for _, r := range i.kind.allEnds() {
		if i.used[r] >= r.low && !g.chance(3) || i.room(r) <= 0 {
			continue
		}
		if v := g.targets(r, i, depth); v != "" {
			if depth == 0 && g.chance(4) && !g.inKey(i.kind, r.name) {
				after = append(after, fmt.Sprintf("%s.%s %s %s", i.name, r.name, g.assign(r), v))
			} else {
				args = append(args, r.name+"="+v)
			}
		}
	}
	if len(spread) > 0 {
		args = append(args, "**{"+strings.Join(spread, ", ")+"}")
	}
	g.r.Shuffle(len(args), func(a, b int) { args[a], args[b] = args[b], args[a] })
	for _, a := range after {
		in.addf("%s", a)
	}
	sep, end := ", ", ""
	if g.chance(4) {
		sep = ",\n    "
	}
	if len(args) > 0 && g.chance(6) {
		end = ","
	}
	return g.qualified(in, i.kind.in, i.kind.name) + "(" + strings.Join(args, sep) + end + ")"
}

func (g *generator) inKey(e *entity, name string) bool {
	return slices.ContainsFunc(e.lineage(), func(a *entity) bool {
		return slices.ContainsFunc(a.keys, func(k []string) bool { return slices.Contains(k, name) })
	})
}

func (g *generator) assign(r *end) string {
	if r.single() {
		return "="
	}
	return pick(g, "=", "+=", "+=")
}

// room is how many more values a relation of an instance takes.
func (i *instance) room(r *end) int {
	if r == nil || r.high == 0 {
		return lots
	}
	return r.high - i.used[r]
}

// lots stands for no bound.
const lots = 1000

// targets is a value for a relation of an instance: planned instances, or new ones inline. It is empty when there is none.
func (g *generator) targets(r *end, of *instance, depth int) string {
	var all []*instance
	for _, i := range g.insts {
		if i.kind.is(r.target) && i.in == of.in && i.room(r.inverse) > 0 && (r.inverse != r || i != of) {
			all = append(all, i)
		}
	}
	n := max(1, r.low-of.used[r])
	if !r.single() && r.low == 0 {
		n = g.r.IntN(4)
	}
	n = min(n, of.room(r))
	g.r.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	var texts []string
	for _, i := range all[:max(0, min(n, len(all)))] {
		texts = append(texts, i.name)
		if r.inverse != nil {
			i.used[r.inverse]++
		}
	}
	for len(texts) < n && depth < 3 && g.reaches(of.in, r.target.in) && (len(texts) < r.low || g.chance(2)) {
		g.made++
		i := &instance{in: of.in, kind: r.target, key: inlineKeys + g.made, used: map[*end]int{}}
		if r.inverse != nil {
			i.used[r.inverse] = 1
		}
		if r.inverse != nil && r.inverse.low > 0 && r.inverse.single() {
			texts = append(texts, g.construct(i, depth+3))
			continue
		}
		texts = append(texts, g.construct(i, depth+1))
	}
	of.used[r] += len(texts)
	switch {
	case len(texts) == 0:
		return ""
	case r.single(), len(texts) == 1 && g.chance(2):
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// inlineKeys is the number behind which instances made inline are numbered.
const inlineKeys = 100

// links adds to relations of instances in the main file.
func (g *generator) links() {
	for range g.r.IntN(6) {
		var from []*instance
		for _, i := range g.insts {
			if i.in == g.main && len(i.kind.allEnds()) > 0 {
				from = append(from, i)
			}
		}
		if len(from) == 0 {
			return
		}
		i := from[g.r.IntN(len(from))]
		ends := i.kind.allEnds()
		r := ends[g.r.IntN(len(ends))]
		if i.room(r) <= 0 && !g.chance(8) {
			continue
		}
		if v := g.targets(r, i, 0); v != "" {
			g.main.addf("%s.%s %s %s", i.name, r.name, g.assign(r), v)
		}
	}
}

// print adds a statement that prints something.
func (g *generator) print(in *file) {
	s := &scope{g: g, in: in, outer: true}
	in.addf("std::print(%s)", s.expr(typ{base: pick(g, "int", "string", "bool", "float", "list", "dict")}, 3))
}

// statement adds a statement to a file.
func (g *generator) statement(in *file, depth int) {
	s := &scope{g: g, in: in, outer: true}
	switch g.r.IntN(6) {
	case 0:
		if r, ok := s.relation(false); ok {
			x := g.name()
			in.addf("for %s in %s:\n    std::print(%q)\n%send\n", x, r, "each "+x, s.block("    ", depth-1))
			return
		}
	case 1:
		if len(g.insts) > 0 {
			i := g.insts[g.r.IntN(len(g.insts))]
			if i.in == in {
				for _, a := range i.kind.uniqueAttrs() {
					if a.indexed && len(i.kind.keys) > 0 && len(i.kind.keys[0]) == 1 {
						v := g.name()
						in.addf("%s = %s[%s=\"%s-%d\"]", v, g.qualified(in, i.kind.in, i.kind.name), a.name, words[i.key%len(words)], i.key)
						in.addf("std::print(%s == %s)", v, i.name)
						return
					}
				}
			}
		}
	case 2:
		g.print(in)
		return
	}
	in.addf("%s", strings.TrimRight(dedent(s.block("    ", depth)), "\n"))
}

func dedent(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n    ", "\n"), "    ")
}

// block makes statements for the inside of a block, each line with an indent.
func (s *scope) block(indent string, depth int) string {
	g := s.g
	inner := *s
	str := func() string { return inner.expr(typ{base: pick(g, "string", "int", "bool", "list")}, 2) }
	switch n := g.r.IntN(6); {
	case n < 2 || depth <= 0:
		return indent + "std::print(" + str() + ")\n"
	case n < 3:
		v := &variable{name: g.name(), typ: typ{base: pick(g, "string", "int", "bool")}}
		out := indent + v.name + " = " + s.expr(v.typ, 2) + "\n"
		inner.locals = append(slices.Clip(inner.locals), v)
		return out + inner.block(indent, depth-1)
	case n < 4:
		out := fmt.Sprintf("%sif %s:\n%s", indent, s.expr(typ{base: "bool"}, 2), inner.block(indent+"    ", depth-1))
		if g.chance(3) {
			out += fmt.Sprintf("%selif %s:\n%s", indent, s.expr(typ{base: "bool"}, 2), inner.block(indent+"    ", depth-1))
		}
		if g.chance(2) {
			out += indent + "else:\n" + inner.block(indent+"    ", depth-1) + inner.block(indent+"    ", depth-1)
		}
		return out + indent + "end\n"
	case n < 5:
		v := &variable{name: g.name(), typ: typ{base: pick(g, "string", "int")}}
		inner.locals = append(slices.Clip(inner.locals), v)
		return fmt.Sprintf("%sfor %s in %s:\n%s%s%send\n", indent, v.name, s.list(v.typ, 1),
			inner.block(indent+"    ", depth-1), inner.block(indent+"    ", depth-1), indent)
	}
	if s.outer {
		if r, ok := s.relation(false); ok {
			return fmt.Sprintf("%sif std::count(%s) %s %d:\n%s%send\n", indent, r, pick(g, ">", "==", "<"), g.r.IntN(3), inner.block(indent+"    ", depth-1), indent)
		}
	}
	return indent + "std::print(" + str() + ")\n"
}
