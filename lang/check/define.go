package check

import (
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// links defines implementations and relations, in source order, then the relation between requires and provides.
func (c *checker) links() {
	c.annotates = map[*syntax.Relation]*Annotate{}
	for _, d := range c.linkDefs {
		if d.impl != nil {
			c.fail(c.defineImplementation(d.impl))
			continue
		}
		c.fail(c.defineRelation(d.rel.ns, d.rel.stmt))
	}
	base := c.prog.Base
	requires := &Attribute{Name: "requires", Entity: base, Base: base, Type: base, Relation: true, High: -1}
	provides := &Attribute{Name: "provides", Entity: base, Base: base, Type: base, Relation: true, High: -1}
	requires.End, provides.End = provides, requires
	c.fail(base.add(requires))
	c.fail(base.add(provides))
}

func (c *checker) defineImplementation(d *implDef) *Fault {
	at := c.at(d.ns, d.stmt.For.Place())
	t, _, f := d.ns.LookupType(d.stmt.For.Text, at)
	if f != nil {
		return f.By(&d.impl.At, true)
	}
	e, ok := t.(*Entity)
	if !ok {
		return New("TypingException", &d.impl.At, "Implementation can only be define for an Entity, but %s is a %v", d.stmt.For.Text, t).On(at)
	}
	d.impl.Entity = e
	return nil
}

func (c *checker) relationEntity(ns *Namespace, s *syntax.Relation, q syntax.QName) (*Entity, *Fault) {
	t, _, f := ns.LookupType(q.Text, c.at(ns, q.Place()))
	if f != nil {
		return nil, f
	}
	e, ok := t.(*Entity)
	if !ok {
		return nil, New("TypingException", c.at(ns, s.Place()), "%s is not an entity", q.Text).On(c.at(ns, q.Place()))
	}
	return e, nil
}

func (c *checker) defineRelation(ns *Namespace, s *syntax.Relation) *Fault {
	left, f := c.relationEntity(ns, s, s.Left.Entity)
	if f != nil {
		return f
	}
	right, f := c.relationEntity(ns, s, s.Right.Entity)
	if f != nil {
		return f
	}
	var annotations []*Annotation
	for range s.Annotations {
		annotations = append(annotations, &Annotation{ID: c.prog.Annotations})
		c.prog.Annotations++
	}
	if len(annotations) > 0 {
		c.annotates[s] = &Annotate{node: node{c.loc(ns, s.Place())}, Annotations: annotations}
	}
	end := func(owner, target *Entity, e syntax.RelationEnd) (*Attribute, *Fault) {
		a := &Attribute{
			Name: e.Name.Text, Entity: owner, At: c.loc(ns, e.Name.Place()), Base: target, Type: target, Relation: true,
			Low: e.Low, High: e.High, Annotations: annotations, Doc: docText(s.Doc),
		}
		return a, owner.add(a)
	}
	// The attribute on the right entity is defined first.
	var rightEnd *Attribute
	if s.Right.Name.Valid() {
		if rightEnd, f = end(right, left, s.Right); f != nil {
			return f
		}
		rightEnd.Right = true
	}
	if rightEnd != nil && left == right && s.Left.Name.Text == s.Right.Name.Text {
		rightEnd.End = rightEnd // a relation that is its own inverse
		return nil
	}
	leftEnd, f := end(left, right, s.Left)
	if f != nil {
		return f
	}
	if rightEnd != nil {
		leftEnd.End, rightEnd.End = rightEnd, leftEnd
	}
	return nil
}

func (c *checker) collect() {
	for _, d := range c.entityDefs {
		for i, a := range d.stmt.Attrs {
			attr := d.entity.Own[i]
			if a.Default == nil {
				continue
			}
			if v, ok := constant(a.Default); ok {
				attr.defaultExpr = &Literal{node: node{c.loc(d.ns, a.Default.Place())}, Val: v}
			}
		}
	}
	for _, e := range c.prog.Entities {
		e.collect()
	}
}

func (c *checker) indexes() {
	for _, d := range c.indexDefs {
		c.fail(c.defineIndex(d.ns, d.stmt))
	}
}

func (c *checker) defineIndex(ns *Namespace, s *syntax.Index) *Fault {
	at := c.at(ns, s.Place())
	t, _, f := ns.LookupType(s.Entity.Text, c.at(ns, s.Entity.Place()))
	if f != nil {
		return f
	}
	e, ok := t.(*Entity)
	if !ok {
		return New("TypingException", at, "%s is not an entity", s.Entity.Text).On(c.at(ns, s.Entity.Place()))
	}
	var names []string
	for _, n := range s.Attrs {
		a := e.Attr(n.Text)
		switch {
		case a == nil:
			f := New("NotFoundException", at, "Attribute '%s' referenced in index is not defined in entity %s", n.Text, e).On(c.at(ns, n.Place()))
			f.Hint = e.AttributeHint(n.Text)
			return f.Note(&e.At, "%s is defined here", e)
		case a.Relation && a.Low == 0:
			return New("IndexException", at, "Index can not contain optional relations, Relation ' %s.%s' is optional", n.Text, e).
				On(c.at(ns, n.Place())).Note(&a.At, "the relation is defined here")
		case a.Multi():
			return New("IndexException", at, "Index can not contain list attributes, Attribute ' %s.%s' is a list", n.Text, e).
				On(c.at(ns, n.Place())).Note(&a.At, "the attribute is defined here")
		}
		names = append(names, n.Text)
	}
	e.addIndex(names, &IndexDef{Names: slices.Sorted(slices.Values(names)), At: at, Home: e, ID: c.indexID(names)})
	return nil
}

// indexID is the number of a list of names, whatever their order.
func (c *checker) indexID(names []string) int {
	key := strings.Join(slices.Sorted(slices.Values(names)), " ")
	id, ok := c.indexIDs[key]
	if !ok {
		id = len(c.indexIDs)
		c.indexIDs[key] = id
	}
	return id
}

// maxIndexCopies bounds how often the same index is counted for an entity.
const maxIndexCopies = 8

// addIndex adds an index to the entity and its descendants; names are its attributes as written. An index is known to be there
// already only when its attributes were given in alphabetical order, which shows in how often a missing attribute counts.
func (e *Entity) addIndex(names []string, def *IndexDef) {
	copies := 0
	for _, ix := range e.Indexes {
		if slices.Equal(ix.Names, names) {
			return
		}
		if ix.ID == def.ID {
			copies++
		}
	}
	if copies >= maxIndexCopies {
		return
	}
	e.Indexes = append(e.Indexes, def)
	for _, child := range e.Children {
		child.addIndex(names, def)
	}
}

func (c *checker) implements() {
	for _, d := range c.usingDefs {
		c.fail(c.defineImplement(d.ns, d.stmt))
	}
}

func (c *checker) defineImplement(ns *Namespace, s *syntax.Implement) *Fault {
	stmt := c.line(ns, s.Pos)
	t, _, f := ns.LookupType(s.Entity.Text, c.at(ns, s.Entity.Place()))
	if f != nil {
		return f.By(stmt, true)
	}
	e, ok := t.(*Entity)
	if !ok {
		return New("TypingException", stmt, "Implementation can only be define for an Entity, but %s is a %v", s.Entity.Text, t)
	}
	e.inherits = e.inherits || s.Parents.Valid()
	im := &Implement{At: c.loc(ns, s.Entity.Place())}
	for _, q := range s.Using {
		_, sym, f := ns.LookupType(q.Text, c.at(ns, q.Place()))
		if f != nil {
			return f.By(stmt, true)
		}
		impl, ok := sym.(*Implementation)
		if !ok {
			return New("TypingException", c.at(ns, q.Place()), "%s is not an implementation", q.Text)
		}
		if impl.Entity != nil && !e.IsA(impl.Entity) {
			return New("TypingException", stmt, "Type mismatch: cannot use %s as implementation for  %s because its implementing type is %s",
				impl.Name, e, impl.Entity).On(c.at(ns, q.Place())).Note(&impl.At, "the implementation is defined here")
		}
		im.Using = append(im.Using, impl)
	}
	e.Implements = append(e.Implements, im)
	if s.When != nil {
		c.whens = append(c.whens, whenDef{im, ns, s.When})
	}
	return nil
}

// maxSubs is the number of selections from which repeated ones, which come to nothing, are left out.
const maxSubs = 1000

// subs are the selections that apply to instances of the entity.
func (e *Entity) subs() []*Implement {
	if !e.inherits {
		return e.Implements
	}
	if e.Subs != nil {
		return e.Subs
	}
	out := slices.Clone(e.Implements)
	for _, p := range e.Parents {
		out = append(out, p.subs()...)
	}
	if len(out) > maxSubs {
		seen := make(map[*Implement]bool, len(out))
		out = slices.DeleteFunc(out, func(im *Implement) bool {
			known := seen[im]
			seen[im] = true
			return known
		})
	}
	e.Subs = out
	return out
}

// lineage lists the entity and its ancestors that have an index, each once, in the order in which they learn of a new instance.
func (e *Entity) lineage() []*Entity {
	var out []*Entity
	seen := map[*Entity]bool{}
	var visit func(e *Entity)
	visit = func(e *Entity) {
		if seen[e] {
			return
		}
		seen[e] = true
		if len(e.Indexes) > 0 {
			out = append(out, e)
		}
		for _, p := range e.Parents {
			visit(p)
		}
	}
	visit(e)
	return out
}

// normalizeTypes binds the constraints of typedefs and resolves the signatures of plugins.
func (c *checker) normalizeTypes() {
	for _, d := range c.typeDefs {
		b := c.binder(d.ns)
		x, f := b.expr(d.stmt.Constraint, &Scope{kind: scopeTypedef, ns: d.ns}, &layout{})
		if c.fail(f) {
			continue
		}
		d.typ.Constraint = x
		d.typ.Pretty = pretty(d.stmt.Constraint)
	}
	for _, p := range c.in.Plugins {
		if pl, ok := c.prog.Symbols[p.Name].(*Plugin); ok && pl.Plugin == p {
			c.fail(c.signature(pl))
		}
	}
}

// normalizeEntities checks default values and inherited relations, and binds the conditions of implement statements.
func (c *checker) normalizeEntities() {
	defs := make(map[*Entity]*entityDef, len(c.entityDefs))
	for _, d := range c.entityDefs {
		defs[d.entity] = d
	}
	whens := make(map[*Implement]whenDef, len(c.whens))
	for _, w := range c.whens {
		whens[w.im] = w
	}
	for _, e := range c.prog.Entities {
		if c.fail(c.normalizeEntity(e, defs[e], whens)) {
			continue
		}
		e.Subs = e.subs()
		e.Indexed = e.lineage()
	}
}

func (c *checker) normalizeEntity(e *Entity, d *entityDef, whens map[*Implement]whenDef) *Fault {
	if d != nil {
		var last *Fault
		for i, s := range d.stmt.Attrs {
			if f := c.checkDefault(e.Own[i], s); f != nil {
				c.fail(last)
				last = f
			}
		}
		if last != nil {
			return last
		}
	}
	for _, a := range e.Own {
		if !a.Relation {
			continue
		}
		for _, p := range e.Parents {
			if old := p.Attr(a.Name); old != nil {
				f := New("DuplicateException", &a.At, "Attribute name %s is already defined in %s, unable to define relationship",
					a.Name, old.Entity.Name)
				f.Other, f.OtherMsg = &old.At, "defined here"
				return f
			}
		}
	}
	for _, im := range e.Implements {
		if w, ok := whens[im]; ok && im.When == nil {
			l := &layout{}
			x, f := c.binder(w.ns).expr(w.when, &Scope{kind: scopeImplementation, ns: w.ns}, l)
			if f != nil {
				return f
			}
			im.When, im.Layout = x, l.n
		}
	}
	return nil
}

type whenDef struct {
	im   *Implement
	ns   *Namespace
	when syntax.Expr
}

func (c *checker) checkDefault(a *Attribute, s *syntax.Attribute) *Fault {
	if s.Default == nil {
		return nil
	}
	if a.defaultExpr == nil {
		return New("RuntimeException", &a.At, "%s is not a constant", pretty(s.Default))
	}
	f := c.in.Validate(a.Type, a.defaultExpr.Val)
	if f == nil {
		return nil
	}
	if !f.HasStmt() || f.FromType {
		f.Force(&a.At)
	}
	return f
}

func (c *checker) normalizeImplementations() {
	c.prog.implementations = make([]*Block, len(c.implDefs))
	c.memo.implementations = make([]diag.List, len(c.implDefs))
	for _, d := range c.implDefs {
		c.memo.implementations[d.impl.ID] = c.warned(func() { c.normalizeImplementation(d) })
	}
}

func (c *checker) normalizeImplementation(d *implDef) {
	b := c.binder(d.ns)
	scope := &Scope{kind: scopeImplementation, ns: d.ns, names: map[string]int{}}
	body, f := b.block(d.stmt.Body, scope, true)
	if f != nil {
		c.fail(f.By(&d.impl.At, false))
		for _, f := range b.more {
			c.fail(f.By(&d.impl.At, false))
		}
		return
	}
	c.prog.implementations[d.impl.ID] = body
}

func (c *checker) normalizeBlocks() {
	c.prog.bodies = make([]*Block, len(c.prog.Files))
	c.memo.bodies = make([]diag.List, len(c.prog.Files))
	for i, ns := range c.prog.Files {
		c.memo.bodies[i] = c.warned(func() { c.normalizeBlock(ns) })
	}
}

func (c *checker) normalizeBlock(ns *Namespace) {
	b := c.binder(ns)
	blk := &Block{NS: ns, Names: make([]string, len(ns.vars))}
	for name, i := range ns.vars {
		blk.Names[i] = name
	}
	scope := &Scope{kind: scopeFile, ns: ns}
	for _, st := range c.files[ns].Stmts {
		if rel, ok := st.(*syntax.Relation); ok {
			an := c.annotates[rel]
			if an == nil {
				continue
			}
			for i, x := range rel.Annotations {
				l := &layout{}
				e, f := b.expr(x, scope, l)
				if c.fail(f) {
					continue
				}
				an.Annotations[i].X, an.Annotations[i].Layout = e, l.n
			}
			blk.Stmts = append(blk.Stmts, an)
			continue
		}
		s, f := b.stmt(st, scope)
		c.fail(f)
		for _, f := range b.more {
			c.fail(f)
		}
		b.more = nil
		if f != nil || s == nil {
			continue
		}
		blk.Stmts = append(blk.Stmts, s)
	}
	c.prog.bodies[ns.ID] = blk
}
