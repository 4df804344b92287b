package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// importLines are the imports of a file, sorted.
func (f *file) importLines() string {
	var b strings.Builder
	for _, ns := range slices.Sorted(maps.Keys(f.imports)) {
		fmt.Fprintf(&b, "import %s", ns)
		if as := f.imports[ns]; as != ns {
			fmt.Fprintf(&b, " as %s", as)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (g *generator) typedefs() {
	for range g.r.IntN(4) {
		d := pick(g,
			typedef{base: "int", text: "self > 0", values: []string{"1", "7", "1200", "true"}},
			typedef{base: "int", text: "self >= -10 and self < 1000", values: []string{"0", "-10", "999"}},
			typedef{base: "int", text: "self in [1, 2, 3]", values: []string{"1", "2", "3"}},
			typedef{base: "int", text: "not (self == 5) and (self % 2 == 1 or self > 100)", values: []string{"1", "3", "200"}},
			typedef{base: "float", text: "self < 2.5", values: []string{"0.5", "-3.25", "2.0"}},
			typedef{base: "string", text: "/[a-z]+/", values: []string{`"abc"`, `'z9'`, `"maple tree"`}},
			typedef{base: "string", text: `/^[a-f0-9]{4}$/`, values: []string{`"00ff"`, `"beef"`}},
			typedef{base: "string", text: `/(?i)(a|b)\d*(?!x)/`, values: []string{`"a1"`, `"B22"`}},
			typedef{base: "string", text: `self == "on" or self == "off"`, values: []string{`"on"`, `"off"`}},
			typedef{base: "string", text: `std::length(self) > 2`, values: []string{`"abc"`, `"harbor"`}},
			typedef{base: "string", text: `self in ["red", "green"] ? true : false`, values: []string{`"red"`, `"green"`}},
			typedef{base: "list", text: `std::count(self) < 4`, values: []string{`[]`, `[1, "a"]`, `["x", "y", "z"]`}},
			typedef{base: "bool", text: "self", values: []string{"true"}},
			typedef{base: "number", text: "self * 2 < 9", values: []string{"1", "2.5", "-4"}},
		)
		d.name, d.in = g.name(), g.anyFile()
		base := d.base
		if len(g.defs) > 0 && g.chance(4) { // a typedef of a typedef with the same values
			o := g.defs[g.r.IntN(len(g.defs))]
			if g.reaches(d.in, o.in) && o.base != "bool" {
				d.base, d.values, d.text = o.base, o.values, "self != "+pick(g, "12345", `"nothing"`)
				base = g.qualified(d.in, o.in, o.name)
			}
		}
		d.in.addf("typedef %s as %s matching %s", d.name, base, d.text)
		g.defs = append(g.defs, &d)
	}
}

// typ chooses a type for an attribute of an entity in a file.
func (g *generator) typ(in *file) typ {
	t := typ{base: pick(g, "int", "int", "float", "string", "string", "string", "bool", "bool", "number", "dict", "list")}
	if len(g.defs) > 0 && g.chance(4) {
		d := g.defs[g.r.IntN(len(g.defs))]
		if g.reaches(in, d.in) {
			t = typ{base: d.base, def: d}
		}
	}
	if t.base != "dict" && t.base != "list" {
		t.list = g.chance(6)
	}
	t.nullable = g.chance(6)
	return t
}

func (g *generator) typeText(t typ, in *file) string {
	s := t.base
	if t.def != nil {
		s = g.qualified(in, t.def.in, t.def.name)
	}
	if t.list {
		s += "[]"
	}
	if t.nullable {
		s += "?"
	}
	return s
}

func (g *generator) entities() {
	for n := range 2 + g.r.IntN(5) {
		e := &entity{name: g.title(), in: g.anyFile(), level: n}
		for _, p := range g.kinds {
			if g.reaches(e.in, p.in) && g.chance(4) && len(e.parents) < 2 {
				e.parents = append(e.parents, p)
			}
		}
		for range g.r.IntN(5) {
			a := &attribute{name: g.name(), typ: g.typ(e.in), preset: g.chance(3)}
			a.byImpl = !a.preset && g.chance(5)
			e.attrs = append(e.attrs, a)
		}
		if g.chance(2) {
			e.attrs = append(e.attrs, &attribute{name: pick(g, "name", "id", "key"), typ: typ{base: "string"}, indexed: true})
			if len(e.allAttrs()) != len(e.uniqueAttrs()) {
				e.attrs = e.attrs[:len(e.attrs)-1]
			}
		}
		g.kinds = append(g.kinds, e)
		g.declare(e)
	}
}

// allAttrs are the attributes of an entity and its ancestors; uniqueAttrs has each name once, that of the leftmost.
func (e *entity) allAttrs() []*attribute {
	out := slices.Clone(e.attrs)
	for _, p := range e.lineage()[1:] {
		out = append(out, p.attrs...)
	}
	return out
}

func (e *entity) uniqueAttrs() []*attribute {
	var out []*attribute
	seen := map[string]bool{}
	for _, a := range e.allAttrs() {
		if !seen[a.name] {
			seen[a.name] = true
			out = append(out, a)
		}
	}
	return out
}

// lineage is the entity and all its ancestors, each once.
func (e *entity) lineage() []*entity {
	out := []*entity{e}
	for _, p := range e.parents {
		for _, a := range p.lineage() {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

func (e *entity) is(other *entity) bool { return slices.Contains(e.lineage(), other) }

func (g *generator) declare(e *entity) {
	var b strings.Builder
	b.WriteString("entity " + e.name)
	for i, p := range e.parents {
		b.WriteString(map[bool]string{true: " extends ", false: ", "}[i == 0] + g.qualified(e.in, p.in, p.name))
	}
	b.WriteString(":\n")
	if g.chance(6) {
		b.WriteString("    \"\"\"\n    Something. :attr x: y\n    \"\"\"\n")
	}
	for _, a := range e.attrs {
		fmt.Fprintf(&b, "    %s %s", g.typeText(a.typ, e.in), a.name)
		if a.preset {
			b.WriteString(" = " + g.constant(a.typ))
		}
		b.WriteByte('\n')
	}
	for _, p := range e.parents { // declared again: the default of the parent is lost, or another takes its place
		for _, a := range p.attrs {
			if a.preset && g.chance(8) && !slices.ContainsFunc(e.attrs, func(o *attribute) bool { return o.name == a.name }) {
				again := &attribute{name: a.name, typ: a.typ, preset: g.chance(2)}
				fmt.Fprintf(&b, "    %s %s", g.typeText(a.typ, e.in), a.name)
				if again.preset {
					b.WriteString(" = " + g.constant(a.typ))
				} else if g.chance(2) && a.typ.base != "dict" {
					b.WriteString(" = undef")
				}
				e.attrs = append(e.attrs, again)
				b.WriteByte('\n')
			}
		}
	}
	b.WriteString("end\n")
	e.in.addf("%s", b.String())
}

func (g *generator) relations() {
	for range 1 + g.r.IntN(6) {
		a, b := g.kinds[g.r.IntN(len(g.kinds))], g.kinds[g.r.IntN(len(g.kinds))]
		in := a.in
		if !g.reaches(in, b.in) {
			in = g.main
		}
		l := &end{owner: a, target: b, name: g.name()}
		l.low, l.high = g.bounds()
		a.ends = append(a.ends, l)
		g.rels = append(g.rels, l)
		s := fmt.Sprintf("%s.%s %s ", g.qualified(in, a.in, a.name), l.name, l.multiplicity(g))
		link := pick(g, "--", "--", "--", "->", "<-")
		if g.chance(8) {
			link = pick(g, `"note"`, "1, [2]", "note_value")
			if link == "note_value" {
				in.addf("note_value = 3")
			}
		}
		if g.chance(3) {
			in.addf("%s%s %s", s, link, g.qualified(in, b.in, b.name))
			continue
		}
		if a == b && g.chance(3) && l.low == 0 {
			l.inverse = l
			in.addf("%s%s %s.%s %s", s, link, g.qualified(in, b.in, b.name), l.name, l.multiplicity(g))
			continue
		}
		r := &end{owner: b, target: a, name: g.name(), inverse: l}
		l.inverse = r
		r.low, r.high = 0, pick(g, 0, 0, 0, 1, 3)
		if g.chance(5) && l.low == 0 {
			r.low, r.high = g.bounds()
		}
		b.ends = append(b.ends, r)
		g.rels = append(g.rels, r)
		in.addf("%s%s %s.%s %s", s, link, g.qualified(in, b.in, b.name), r.name, r.multiplicity(g))
	}
	if len(g.rels) > 1 && g.chance(6) {
		i := g.r.IntN(len(g.rels) - 1)
		full := func(e *end) string {
			ns := e.owner.in.namespace
			return ns + "::" + e.owner.name + "." + e.name
		}
		g.rules = append(g.rules, full(g.rels[i])+" before "+full(g.rels[i+1]))
	}
}

func (g *generator) bounds() (int, int) {
	b := pick(g, [2]int{0, 0}, [2]int{0, 0}, [2]int{0, 0}, [2]int{0, 1}, [2]int{0, 1}, [2]int{1, 1}, [2]int{1, 0}, [2]int{0, 3}, [2]int{2, 2}, [2]int{1, 3})
	return b[0], b[1]
}

func (e *end) multiplicity(g *generator) string {
	switch {
	case e.low == e.high && e.low > 0:
		return fmt.Sprintf(pick(g, "[%d]", "[%d]", "[%[1]d:%[1]d]"), e.low)
	case e.high == 0:
		return fmt.Sprintf("[%d:]", e.low)
	case e.low == 0:
		return fmt.Sprintf(pick(g, "[0:%d]", "[:%d]"), e.high)
	}
	return fmt.Sprintf("[%d:%d]", e.low, e.high)
}

func (e *end) single() bool { return e.high == 1 }

// allEnds are the relations of an entity and its ancestors.
func (e *entity) allEnds() []*end {
	var out []*end
	for _, a := range e.lineage() {
		out = append(out, a.ends...)
	}
	return out
}

func (g *generator) indexes() {
	for _, e := range g.kinds {
		for _, a := range e.attrs {
			if !a.indexed {
				continue
			}
			key := []string{a.name}
			if g.chance(4) {
				for _, r := range e.ends {
					if r.low == 1 && r.high == 1 {
						key = append(key, r.name)
						break
					}
				}
			}
			if g.chance(5) {
				for _, o := range e.attrs {
					if !o.typ.list && !o.byImpl && o.typ.base != "list" && o.typ.base != "dict" && o != a {
						key = append(key, o.name)
						break
					}
				}
			}
			g.r.Shuffle(len(key), func(i, j int) { key[i], key[j] = key[j], key[i] })
			e.keys = append(e.keys, key)
			e.in.addf("index %s(%s)", e.name, strings.Join(key, ", "))
			break
		}
	}
}

// implementations gives each entity what selects at least one implementation for its instances, and sets what is to be set by one.
func (g *generator) implementations() {
	for _, e := range g.kinds {
		in := e.in
		inherits := slices.ContainsFunc(e.lineage()[1:], func(p *entity) bool { return p.using })
		var set []*attribute
		for _, a := range e.attrs {
			if a.byImpl {
				set = append(set, a)
			}
		}
		if inherits || len(e.parents) > 0 && g.chance(3) {
			in.addf("implement %s using parents", e.name)
			e.using = true
			if !inherits {
				in.addf("implement %s using std::none", e.name)
			}
		}
		switch {
		case len(set) > 0 || g.chance(3):
			g.implementation(e, set)
			e.using = true
		case !inherits:
			in.addf("implement %s using std::none", e.name)
		}
	}
}

func (g *generator) implementation(e *entity, set []*attribute) {
	name := g.name()
	in := e.in
	body := func(tag string) string {
		var b strings.Builder
		s := &scope{g: g, in: in, self: e}
		for _, a := range set {
			fmt.Fprintf(&b, "    self.%s = %s\n", a.name, s.expr(a.typ, 2))
		}
		if g.chance(2) {
			local := g.name()
			fmt.Fprintf(&b, "    %s = %s\n", local, s.expr(typ{base: "string"}, 2))
			fmt.Fprintf(&b, "    std::print(f\"%s %s {%s}\")\n", e.name, tag, local)
		}
		for _, r := range e.ends {
			if r.single() || !g.chance(3) {
				continue
			}
			fmt.Fprintf(&b, "    for each in self.%s:\n        std::print(%s)\n    end\n", r.name,
				(&scope{g: g, in: in, self: e, loop: r.target}).expr(typ{base: "string"}, 1))
		}
		for range g.r.IntN(2) {
			b.WriteString(s.block("    ", 1))
		}
		return b.String()
	}
	if !g.chance(3) {
		in.addf("implementation %s for %s:\n%send\n", name, e.name, body("all"))
		in.addf("implement %s using %s", e.name, name)
		return
	}
	cond := (&scope{g: g, in: in, self: e, plain: true}).expr(typ{base: "bool"}, 2)
	other := g.name()
	in.addf("implementation %s for %s:\n%send\n", name, e.name, body("yes"))
	in.addf("implementation %s for %s:\n%send\n", other, e.name, body("no"))
	in.addf("implement %s using %s when %s", e.name, name, cond)
	in.addf("implement %s using %s when not (%s)", e.name, other, cond)
}
