package main

import (
	"fmt"
	"slices"
	"strings"
)

// scope is where an expression stands: which names it can use.
type scope struct {
	g      *generator
	in     *file
	self   *entity // inside an implementation
	loop   *entity // the loop variable "each" is an instance of it
	locals []*variable
	plain  bool // only what is known at construction
	outer  bool // instances of the file can be used
	before int  // only those planned before this one; 0 for all
}

// constant is a literal that can be a default.
func (g *generator) constant(t typ) string {
	if t.nullable && g.chance(2) {
		return "null"
	}
	if t.list {
		if g.chance(3) {
			return "[]"
		}
		one := t
		one.list, one.nullable = false, false
		return "[" + g.constant(one) + ", " + g.constant(one) + "]"
	}
	if t.def != nil {
		return t.def.values[g.r.IntN(len(t.def.values))]
	}
	switch t.base {
	case "int":
		return pick(g, "0", "1", "-3", "42", "007", "65536", "12345678901234567890", "true", "-1")
	case "float":
		return pick(g, "0.0", "1.5", "-2.25", ".5", "100.0", "0.1", "123456789.125", "1.0")
	case "number":
		return pick(g, "1", "2.5", "-7", "3.0", "0")
	case "bool":
		return pick(g, "true", "false")
	case "dict":
		return pick(g, "{}", `{"a": 1}`, `{"a": "x", "b": [1, 2]}`, `{'k': {"n": null}, r"z\d": true}`, `{"a": 2.0}`)
	case "list":
		return pick(g, "[]", `["a", "b"]`, "[1, 2, 3]", `[1, "x", 2.5, true, null]`)
	}
	return pick(g, `"`+words[g.r.IntN(len(words))]+`"`, `'single'`, `""`, `"tab\tand \"quote\""`, `r"raw\n{{x}}"`, "\"\"\"multi\n  line\"\"\"",
		`"a b c"`, `"50%"`, `"\x41\u0042\N{BULLET}"`, `"{ }"`, `"it's"`)
}

// expr makes an expression of a type.
func (s *scope) expr(t typ, depth int) string {
	g := s.g
	if t.nullable && g.chance(3) {
		return "null"
	}
	if g.chance(150) && !s.plain && t.def == nil && !t.list && depth > 1 {
		return `std::get_env("MODELGEN_NOT_SET_ANYWHERE")`
	}
	if t.def != nil && !t.list {
		if depth > 0 && g.chance(4) {
			return fmt.Sprintf("(%s ? %s : %s)", s.expr(typ{base: "bool"}, depth-1), g.constant(typ{def: t.def}), g.constant(typ{def: t.def}))
		}
		return g.constant(typ{def: t.def})
	}
	if v := s.name(t); v != "" && g.chance(3) {
		return v
	}
	if t.list {
		return s.list(typ{base: t.base, def: t.def}, depth)
	}
	if depth <= 0 {
		return g.constant(typ{base: t.base})
	}
	if g.chance(10) {
		return fmt.Sprintf("(%s ? %s : %s)", s.expr(typ{base: "bool"}, depth-1), s.expr(t, depth-1), s.expr(t, depth-1))
	}
	switch t.base {
	case "int":
		return s.integer(depth)
	case "float":
		return s.float(depth)
	case "number":
		return pick(g, s.integer, s.float)(depth)
	case "bool":
		return s.boolean(depth)
	case "dict":
		return s.dict(depth)
	case "list":
		return s.list(typ{base: pick(g, "int", "string", "bool", "float")}, depth)
	}
	return s.text(depth)
}

// name is something visible with a type, empty when there is nothing.
func (s *scope) name(t typ) string {
	g := s.g
	var all []string
	for _, v := range append(s.locals, g.vars...) {
		if v.typ == t && (v.in == nil || g.reaches(s.in, v.in)) {
			if v.in == nil {
				all = append(all, v.name)
			} else {
				all = append(all, g.qualified(s.in, v.in, v.name))
			}
		}
	}
	attrs := func(e *entity, prefix string) {
		for _, a := range e.uniqueAttrs() {
			if a.typ == t && (!a.byImpl || e != s.self) {
				all = append(all, prefix+a.name)
			}
		}
	}
	if s.self != nil {
		attrs(s.self, "self.")
		attrs(s.self, "")
	}
	if s.loop != nil {
		attrs(s.loop, "each.")
	}
	if s.outer {
		for _, i := range g.insts {
			if i.in == s.in && (s.before == 0 || i.key < s.before) {
				attrs(i.kind, i.name+".")
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[g.r.IntN(len(all))]
}

func (s *scope) integer(depth int) string {
	g := s.g
	i := func() string { return s.expr(typ{base: "int"}, depth-1) }
	switch g.r.IntN(14) {
	case 0, 1:
		return fmt.Sprintf(pick(g, "%s + %s", "(%s - %s)", "%s * %s", "%s - %s"), i(), i())
	case 2:
		return fmt.Sprintf("%s %% %s", i(), pick(g, "3", "7", "-4", "10"))
	case 3:
		return fmt.Sprintf("(%s) ** %s", i(), pick(g, "2", "3", "0"))
	case 4:
		return fmt.Sprintf("std::count(%s)", s.list(typ{base: "string"}, depth-1))
	case 5:
		return fmt.Sprintf(pick(g, "std::len(%s)", "std::length(string(%s))"), s.list(typ{base: "int"}, depth-1))
	case 6:
		return fmt.Sprintf("std::length(%s)", s.expr(typ{base: "string"}, depth-1))
	case 7:
		return fmt.Sprintf("int(%s)", pick(g, `"12"`, `" -7 "`, s.expr(typ{base: "bool"}, depth-1), s.expr(typ{base: "float"}, depth-1), `"0012"`, `"1_000"`))
	case 8:
		if s.outer {
			if r, ok := s.relation(false); ok {
				return fmt.Sprintf("std::count(%s)", r)
			}
		}
		return i()
	case 9:
		return fmt.Sprintf("std::at(%s, 0)", "["+i()+", "+i()+"]")
	case 10:
		return fmt.Sprintf("std::inlineif(%s, %s, %s)", s.expr(typ{base: "bool"}, depth-1), i(), i())
	}
	return g.constant(typ{base: "int"})
}

func (s *scope) float(depth int) string {
	g := s.g
	f := func() string { return s.expr(typ{base: "float"}, depth-1) }
	switch g.r.IntN(7) {
	case 0:
		return fmt.Sprintf("%s / %s", s.expr(typ{base: "int"}, depth-1), pick(g, "2", "3", "-8", "0.5"))
	case 1, 2:
		return fmt.Sprintf(pick(g, "%s + %s", "%s * %s", "(%s - %s)"), f(), f())
	case 3:
		return fmt.Sprintf("float(%s)", pick(g, `"1e3"`, `" 2.5"`, s.expr(typ{base: "int"}, 0), s.expr(typ{base: "bool"}, depth-1), `"1e22"`, `"-0.0"`))
	case 4:
		return fmt.Sprintf("%s %% %s", f(), pick(g, "2.5", "3", "-0.75"))
	}
	return g.constant(typ{base: "float"})
}

func (s *scope) boolean(depth int) string {
	g := s.g
	b := func() string { return s.expr(typ{base: "bool"}, depth-1) }
	num := func() string { return s.expr(typ{base: pick(g, "int", "float")}, depth-1) }
	switch g.r.IntN(13) {
	case 0, 1:
		return fmt.Sprintf("%s %s %s", num(), pick(g, "<", "<=", ">", ">=", "==", "!="), num())
	case 2:
		return fmt.Sprintf("(%s %s %s)", b(), pick(g, "and", "or"), b())
	case 3:
		return "not (" + b() + ")"
	case 4:
		return fmt.Sprintf("%s %s %s", s.expr(typ{base: "int"}, 0), pick(g, "in", "not in"), s.list(typ{base: "int"}, depth-1))
	case 5:
		return fmt.Sprintf("%s in %s", pick(g, `"a"`, `'k'`, `"zz"`), s.dictAtom(depth-1))
	case 6:
		return fmt.Sprintf("%s %s %s", s.expr(typ{base: "string"}, depth-1), pick(g, "==", "!="), s.expr(typ{base: "string"}, depth-1))
	case 7:
		return fmt.Sprintf("(%s == %s)", s.list(typ{base: "int"}, depth-1), s.list(typ{base: "int"}, depth-1))
	case 8:
		return fmt.Sprintf("bool(%s)", s.expr(typ{base: pick(g, "string", "int", "float")}, depth-1))
	case 9:
		if v := s.name(typ{base: pick(g, "string", "int", "dict", "list"), nullable: g.chance(2)}); v != "" && !strings.Contains(v, "::") {
			return "(" + v + " is defined)"
		}
	case 10:
		if s.outer {
			if r, ok := s.relation(true); ok {
				return "(" + r + " is defined)"
			}
		}
	case 11:
		return fmt.Sprintf("std::unique(%s)", s.list(typ{base: "int"}, depth-1))
	}
	return g.constant(typ{base: "bool"})
}

// relation is a path to a relation of an instance; single relations only when wanted.
func (s *scope) relation(single bool) (string, bool) {
	var all []string
	for _, i := range s.g.insts {
		if i.in != s.in || s.before > 0 && i.key >= s.before {
			continue
		}
		for _, r := range i.kind.allEnds() {
			if single || !r.single() {
				all = append(all, i.name+"."+r.name)
			}
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return all[s.g.r.IntN(len(all))], true
}

func (s *scope) dictAtom(depth int) string {
	if v := s.name(typ{base: "dict"}); v != "" && s.g.chance(2) {
		return v
	}
	return s.dict(depth)
}

func (s *scope) dict(depth int) string {
	g := s.g
	if depth <= 0 || g.chance(3) {
		return g.constant(typ{base: "dict"})
	}
	var parts []string
	for _, k := range []string{`"a"`, `'k'`, `r"z"`, `"long key"`}[:g.r.IntN(4)] {
		parts = append(parts, k+": "+s.expr(typ{base: pick(g, "int", "string", "bool", "float", "dict", "list")}, depth-1))
	}
	if len(parts) > 0 && g.chance(4) {
		parts[len(parts)-1] += ","
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (s *scope) list(of typ, depth int) string {
	g := s.g
	e := func() string { return s.expr(of, depth-1) }
	if v := s.name(typ{base: of.base, def: of.def, list: true}); v != "" && g.chance(3) {
		return v
	}
	switch n := g.r.IntN(9); {
	case depth <= 0 || n < 3:
		parts := make([]string, g.r.IntN(4))
		for i := range parts {
			parts[i] = s.expr(of, 0)
		}
		if len(parts) > 0 && g.chance(6) {
			return "[" + strings.Join(parts, ", ") + ",]"
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case n < 5 && of.def == nil:
		x := g.name()
		inner := *s
		inner.locals = append(slices.Clip(inner.locals), &variable{name: x, typ: of})
		out := fmt.Sprintf("[%s for %s in %s", inner.expr(of, depth-1), x, s.list(of, depth-1))
		if g.chance(3) {
			y := g.name()
			out += fmt.Sprintf(" for %s in %s", y, inner.list(of, 0))
		}
		if g.chance(2) {
			out += " if " + inner.expr(typ{base: "bool"}, depth-1)
		}
		return out + "]"
	case n < 6 && of.base == "int" && of.def == nil:
		return fmt.Sprintf(pick(g, "std::sequence(%s)", "std::sequence(%s, 5)", "std::sequence(%s, start=2)", "std::sequence(i=%s)"), pick(g, "0", "1", "3", "5"))
	case n < 7 && of.base == "string" && of.def == nil:
		return fmt.Sprintf(`std::split(%s, %s)`, s.expr(typ{base: "string"}, depth-1), pick(g, `","`, `" "`, `"a"`))
	}
	return "[" + e() + ", [" + e() + "]]"
}

func (s *scope) text(depth int) string {
	g := s.g
	t := func() string { return s.expr(typ{base: "string"}, depth-1) }
	switch g.r.IntN(13) {
	case 0, 1:
		return t() + " + " + t()
	case 2, 3, 4:
		return s.interpolated()
	case 5, 6, 7:
		return s.formatted()
	case 8:
		return fmt.Sprintf("std::%s(%s)", pick(g, "upper", "lower", "capitalize"), t())
	case 9:
		return fmt.Sprintf(`std::replace(%s, "a", %s)`, t(), t())
	case 10:
		return fmt.Sprintf("string(%s)", s.expr(typ{base: pick(g, "int", "float", "bool", "string", "dict", "list"), nullable: g.chance(4)}, depth-1))
	case 11:
		return fmt.Sprintf(pick(g, "std::limit(%s, 3)", `std::format("{}-{}", %s, 1)`, `std::format("{a:>8}", a=%s)`, "std::json_dumps(%s)"), t())
	}
	return g.constant(typ{base: "string"})
}

// path is a name that can stand in a text, with its type; the constant when there is none.
func (s *scope) path() (string, typ, bool) {
	g := s.g
	for range 4 {
		t := typ{base: pick(g, "int", "float", "string", "bool", "dict", "list", "string", "number"), nullable: g.chance(8), list: g.chance(8)}
		if v := s.name(t); v != "" && !strings.Contains(v, "::") && !strings.Contains(v, "(") {
			return v, t, true
		}
	}
	return "", typ{}, false
}

func (s *scope) interpolated() string {
	g := s.g
	var b strings.Builder
	for range 1 + g.r.IntN(2) {
		b.WriteString(pick(g, "", "x ", "a=", "{", "{{ not this }} ", `\t`, "50% "))
		if v, _, ok := s.path(); ok {
			b.WriteString(pick(g, "{{"+v+"}}", "{{ "+v+" }}", "{{"+v+" }}"))
		}
	}
	if g.chance(5) {
		return `"""` + b.String() + "\n  second\"\"\""
	}
	return `"` + b.String() + `"`
}

func (s *scope) formatted() string {
	g := s.g
	var b strings.Builder
	for range 1 + g.r.IntN(2) {
		b.WriteString(pick(g, "", "x ", "a=", `\t`, "50% "))
		v, t, ok := s.path()
		if !ok {
			continue
		}
		spec := ""
		if !t.nullable && !t.list {
			switch t.base {
			case "int":
				spec = pick(g, "", "", ":05d", ":>8", ":x", ":,", ":+", ":b", ":#o", ":e", ":.2f", ":%", ":_", ":<6", ":^9", ":*^9d", "!r", "!s:>4", ": d", ":=+8", ":c", ":g")
			case "float", "number":
				spec = pick(g, "", "", ":.2f", ":10.3e", ":g", ":,.2f", ":+.1f", ":%", ":08.2f", "!r", "!s", ":>9", ":.3", ":_.4f", ":G", ":n", ":-^12")
			case "string":
				spec = pick(g, "", "", ":>10", ":.3", ":*^12", "!r", "!a", ":s", ":<5.2", "!s:_>9")
			case "bool":
				spec = pick(g, "", "", ":d", "!r", ":>6", "!s:>6", ":05")
			}
		} else if g.chance(3) {
			spec = pick(g, "!r", "!s", "!a", "!s:>20")
		}
		b.WriteString("{" + v + spec + "}")
	}
	quote := pick(g, `"`, "'")
	return "f" + quote + b.String() + quote
}
