package check

import (
	"bytes"
	"maps"
	"slices"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// memo is what a check without faults leaves to the next one.
type memo struct {
	sources  []Source
	plugins  []*value.Plugin
	policy   []Rule
	files    map[*Namespace]*syntax.File
	implDefs []*implDef

	// The warnings, in the order in which they are reported: about what is declared, and about each implementation, each
	// top-level block, and the variables of each file.
	declared                         diag.List
	implementations, bodies, shadows []diag.List
}

func (m *memo) warnings() diag.List {
	all := slices.Clone(m.declared)
	for _, part := range [][]diag.List{m.implementations, m.bodies, m.shadows} {
		for _, ds := range part {
			all = append(all, ds...)
		}
	}
	return all
}

// warned takes the warnings of work out of the others.
func (c *checker) warned(work func()) diag.List {
	before := len(c.warnings)
	work()
	ds := slices.Clone(c.warnings[before:])
	c.warnings = c.warnings[:before]
	return ds
}

// remember leaves what is known to the next check.
func (c *checker) remember() {
	c.memo.sources, c.memo.plugins, c.memo.policy = c.in.Sources, c.in.Plugins, c.in.Policy
	c.memo.files, c.memo.implDefs, c.memo.declared = c.files, c.implDefs, c.warnings
	c.prog.memo = c.memo
}

// again checks a project that differs from the previous one only in statements: each file declares the same things at the same
// places, and has the same variables. Then all that the previous program declares is that of the new one too, and so are the
// blocks of the files that did not change; only those of the others are bound. The previous program stays as it is.
//
// It reports false when more has changed, or when there is a fault: a whole check then finds all of them in their order.
func again(in Input) (*Program, bool) {
	if in.Previous == nil || in.Previous.memo == nil {
		return nil, false
	}
	old := in.Previous.memo
	if len(in.Sources) != len(old.sources) || !slices.Equal(in.Plugins, old.plugins) || !slices.Equal(in.Policy, old.policy) {
		return nil, false
	}
	var changed []int
	for i, s := range in.Sources {
		before := old.sources[i]
		switch {
		case s.Namespace != before.Namespace || s.File.Name != before.File.Name:
			return nil, false
		case s.File == before.File:
		case !declareSame(before.File, s.File):
			return nil, false
		default:
			changed = append(changed, i)
		}
	}
	c := carryOn(in)
	for _, i := range changed {
		if !c.replace(i, in.Sources[i].File) {
			return nil, false
		}
	}
	c.remember()
	c.memo.declared = old.declared
	return c.prog, true
}

// carryOn is a checker for a program that is the previous one so far.
func carryOn(in Input) *checker {
	prev := *in.Previous
	prev.Files = slices.Clone(prev.Files)
	prev.bodies, prev.implementations = slices.Clone(prev.bodies), slices.Clone(prev.implementations)
	m := *in.Previous.memo
	m.implementations, m.bodies, m.shadows = slices.Clone(m.implementations), slices.Clone(m.bodies), slices.Clone(m.shadows)
	return &checker{in: in, prog: &prev, memo: &m, files: maps.Clone(m.files), implDefs: slices.Clone(m.implDefs)}
}

// replace binds the statements of a file that has changed.
func (c *checker) replace(i int, file *syntax.File) bool {
	ns := c.prog.Files[i]
	delete(c.files, ns)
	if vars := variablesOf(file); !maps.Equal(vars, ns.vars) {
		if ns = c.renew(i, vars); ns == nil {
			return false
		}
	}
	c.files[ns] = file
	stmts := implementationsOf(file)
	for k, d := range c.implDefs {
		if d.ns != ns {
			continue
		}
		d = &implDef{ns: ns, stmt: stmts[0], impl: d.impl}
		stmts = stmts[1:]
		c.implDefs[k] = d
		c.memo.implementations[d.impl.ID] = c.warned(func() { c.normalizeImplementation(d) })
	}
	c.memo.bodies[i] = c.warned(func() { c.normalizeBlock(ns) })
	c.memo.shadows[i] = c.warned(func() { c.shadowsIn(ns, file.Stmts, nil, nil) })
	return len(c.faults) == 0
}

// renew gives the main file a namespace with other variables, which no other file sees. It returns nil for other files, and when
// something that is declared refers to the namespace.
func (c *checker) renew(i int, vars map[string]int) *Namespace {
	old := c.prog.Files[i]
	if i > 0 || len(old.children) > 0 || slices.ContainsFunc(c.in.Sources[i].File.Stmts, func(s syntax.Stmt) bool {
		_, imports := s.(*syntax.Import)
		return declares(s) && !imports
	}) {
		return nil
	}
	ns := *old
	ns.vars = vars
	ns.visible = maps.Clone(old.visible)
	for name, v := range ns.visible {
		if v.ns == old {
			ns.visible[name] = &visible{ns: &ns, imported: v.imported}
		}
	}
	root := *c.prog.Root
	root.children = maps.Clone(root.children)
	root.children[ns.Name] = &ns
	c.prog.Root, c.prog.Files[i] = &root, &ns
	return &ns
}

// declares reports whether a statement at the top level declares something.
func declares(s syntax.Stmt) bool {
	switch s.(type) {
	case *syntax.Import, *syntax.Entity, *syntax.Typedef, *syntax.Implementation, *syntax.Relation, *syntax.Index, *syntax.Implement:
		return true
	}
	return false
}

// declareSame reports whether two versions of a file declare the same, at the same places. The statements of implementations may
// differ.
func declareSame(a, b *syntax.File) bool {
	rest := b.Stmts
	for _, x := range a.Stmts {
		if !declares(x) {
			continue
		}
		k := slices.IndexFunc(rest, declares)
		if k < 0 || !sameDeclaration(a, x, b, rest[k]) {
			return false
		}
		rest = rest[k+1:]
	}
	return !slices.ContainsFunc(rest, declares)
}

func sameDeclaration(a *syntax.File, x syntax.Stmt, b *syntax.File, y syntax.Stmt) bool {
	span, other := declared(x), declared(y)
	if span != other || a.Position(span.Start) != b.Position(other.Start) {
		return false
	}
	if r, ok := x.(*syntax.Relation); ok && len(r.Annotations) > 0 {
		return false // their values are part of what is declared, but bound with the statements
	}
	return bytes.Equal(text(a, span), text(b, other))
}

// declared is the part of a statement that declares something: all of it, or the head of an implementation.
func declared(s syntax.Stmt) syntax.Span {
	if impl, ok := s.(*syntax.Implementation); ok {
		return syntax.Span{Start: impl.Pos, End: impl.For.Span().End}
	}
	return s.Span()
}

func text(f *syntax.File, s syntax.Span) []byte { return f.Src[s.Start.Offset():s.End.Offset()] }

func implementationsOf(f *syntax.File) []*syntax.Implementation {
	var out []*syntax.Implementation
	for _, s := range f.Stmts {
		if impl, ok := s.(*syntax.Implementation); ok {
			out = append(out, impl)
		}
	}
	return out
}

// variablesOf numbers the variables of a file in the order in which it first assigns them.
func variablesOf(f *syntax.File) map[string]int {
	vars := map[string]int{}
	for _, st := range f.Stmts {
		if a, ok := st.(*syntax.Assign); ok {
			if v, ok := a.Target.(*syntax.VarRef); ok {
				if _, seen := vars[v.Name.Text]; !seen {
					vars[v.Name.Text] = len(vars)
				}
			}
		}
	}
	return vars
}
