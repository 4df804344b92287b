package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// Source is a parsed file and the namespace that it fills, such as __config__ for the main file.
type Source struct {
	Namespace string
	File      *syntax.File
}

// Rule is a rule of the relation precedence policy: the relation First is closed before the relation Then. Both are written
// as type and relation.
type Rule struct {
	FirstType, First, ThenType, Then string
	// Range is the place of the rule.
	Range diag.Range
}

// Input is what a check works on.
type Input struct {
	// Sources are the files in load order, the main file first. Namespaces are distinct.
	Sources []Source
	// Plugins are the functions that models may call. Those of namespaces that the project does not load are left out.
	Plugins []*value.Plugin
	// Besides are names of types that a namespace would have if the project used them, by namespace: they may have been meant.
	Besides map[string][]string
	// Policy is the relation precedence policy.
	Policy []Rule
	// Validate checks a constant against a type, for default values.
	Validate func(t Type, v value.Value) *Fault
	// Previous is the program of an earlier check. What the files that changed since then leave as it is becomes part of the
	// new program. It may be nil.
	Previous *Program
}

// Check checks a project. It returns the faults found, the first one first, and warnings. With faults the program is not
// to be run.
func Check(in Input) (*Program, []*Fault, diag.List) {
	if prog, ok := again(in); ok {
		return prog, nil, prog.memo.warnings()
	}
	c := &checker{in: in, indexIDs: map[string]int{}, prog: &Program{Root: newRoot(), Symbols: map[string]Symbol{}}, memo: &memo{}}
	c.namespaces()
	// The passes of a phase do not build on each other: a fault of one does not bring about faults of the next.
	for _, phase := range [][]func(){
		{c.register},
		{c.typedefs, c.entities, c.links},
		{c.collect, c.indexes, c.implements},
		{c.normalizeTypes},
		{c.normalizeEntities, c.normalizeImplementations, c.normalizeBlocks},
		{c.policy},
	} {
		for _, pass := range phase {
			pass()
		}
		if len(c.faults) > 0 {
			return c.prog, c.faults, c.warnings
		}
	}
	c.shadows()
	c.remember()
	return c.prog, nil, c.memo.warnings()
}

type checker struct {
	in       Input
	prog     *Program
	memo     *memo // what a later check may use
	faults   []*Fault
	warnings diag.List
	files    map[*Namespace]*syntax.File
	stock    stock

	entityDefs []*entityDef
	typeDefs   []*typedefDef
	implDefs   []*implDef
	linkDefs   []linkDef
	indexDefs  []located[*syntax.Index]
	usingDefs  []located[*syntax.Implement]
	annotates  map[*syntax.Relation]*Annotate
	whens      []whenDef
	indexIDs   map[string]int // by the sorted names
}

type located[S any] struct {
	ns   *Namespace
	stmt S
}

type entityDef struct {
	ns      *Namespace
	stmt    *syntax.Entity
	entity  *Entity
	parents []*Entity
	state   uint8 // 0 not visited, 1 being visited, 2 done
}

type typedefDef struct {
	ns   *Namespace
	stmt *syntax.Typedef
	typ  *Typedef
}

type implDef struct {
	ns   *Namespace
	stmt *syntax.Implementation
	impl *Implementation
}

// linkDef is an implementation or a relation: these are defined in one pass, in source order.
type linkDef struct {
	impl *implDef
	rel  located[*syntax.Relation]
}

// maxFaults bounds how many faults a check reports.
const maxFaults = 20

func (c *checker) fail(f *Fault) bool {
	if f != nil && len(c.faults) < maxFaults {
		c.faults = append(c.faults, f)
	}
	return f != nil
}

func (c *checker) loc(ns *Namespace, p syntax.Place) Loc { return Loc{File: c.files[ns], Place: p} }

func (c *checker) at(ns *Namespace, p syntax.Place) *Loc {
	return &Loc{File: c.files[ns], Place: p}
}

// line is the line of a position.
func (c *checker) line(ns *Namespace, pos syntax.Pos) *Loc {
	return &Loc{File: c.files[ns], Place: syntax.Place{Span: syntax.Span{Start: pos, End: pos + 1}, LineOnly: true}}
}

func (c *checker) warn(code string, at *Loc, format string, args ...any) {
	c.warnings.Warnf(code, at.Range(), format, args...)
}

func (c *checker) namespaces() {
	c.files = make(map[*Namespace]*syntax.File, len(c.in.Sources))
	for _, s := range c.in.Sources {
		ns := c.prog.Root.child(s.Namespace)
		ns.File = s.File.Name
		ns.ID = len(c.prog.Files)
		c.prog.Files = append(c.prog.Files, ns)
		c.files[ns] = s.File
		ns.vars = variablesOf(s.File)
	}
	for name, types := range c.in.Besides {
		c.prog.Root.child(name).besides = types
	}
	std := c.prog.Root.child("std")
	var see func(ns *Namespace)
	see = func(ns *Namespace) {
		for _, name := range sortedKeys(ns.children) {
			child := ns.children[name]
			child.visible["std"] = &visible{ns: std}
			see(child)
		}
	}
	see(c.prog.Root)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (c *checker) register() {
	for _, ns := range c.prog.Files {
		for _, st := range c.files[ns].Stmts {
			c.registerStmt(ns, st)
		}
	}
	for _, p := range c.in.Plugins {
		space, base := splitName(p.Name)
		ns := c.prog.Root.find(space)
		if ns == nil || ns == c.prog.Root {
			continue
		}
		pl := &Plugin{Plugin: p, NS: ns}
		if !c.fail(ns.define(base, pl)) {
			c.prog.Symbols[p.Name] = pl
		}
	}
	c.injectBase()
}

func splitName(name string) (space, base string) {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		return name[:i], name[i+2:]
	}
	return "", name
}

func (c *checker) registerStmt(ns *Namespace, st syntax.Stmt) {
	switch s := st.(type) {
	case *syntax.Import:
		c.registerImport(ns, s)
	case *syntax.Entity:
		e := c.newEntity(ns, s.Name.Text, c.loc(ns, s.Place()))
		e.stmtAt, e.Doc = *c.line(ns, s.Pos), docText(s.Doc)
		c.entityDefs = append(c.entityDefs, &entityDef{ns: ns, stmt: s, entity: e})
		if !c.fail(ns.define(e.Name, e)) {
			c.prog.Symbols[e.full] = e
		}
	case *syntax.Typedef:
		t := &Typedef{Name: s.Name.Text, NS: ns, At: c.loc(ns, s.Place())}
		if _, ok := primitives[t.Name]; ok {
			c.warn("CompilerRuntimeWarning", &t.At, "Trying to override a built-in type: %s", t.Name)
		}
		c.typeDefs = append(c.typeDefs, &typedefDef{ns: ns, stmt: s, typ: t})
		if !c.fail(ns.define(t.Name, t)) {
			c.prog.Symbols[t.FullName()] = t
		}
	case *syntax.Implementation:
		i := &Implementation{Name: s.Name.Text, NS: ns, At: c.loc(ns, s.Place()), ID: len(c.implDefs)}
		d := &implDef{ns: ns, stmt: s, impl: i}
		c.implDefs = append(c.implDefs, d)
		c.linkDefs = append(c.linkDefs, linkDef{impl: d})
		if !c.fail(ns.define(i.Name, i)) {
			c.prog.Symbols[i.FullName()] = i
		}
	case *syntax.Relation:
		c.linkDefs = append(c.linkDefs, linkDef{rel: located[*syntax.Relation]{ns, s}})
	case *syntax.Index:
		c.indexDefs = append(c.indexDefs, located[*syntax.Index]{ns, s})
	case *syntax.Implement:
		c.usingDefs = append(c.usingDefs, located[*syntax.Implement]{ns, s})
	}
}

func (c *checker) registerImport(ns *Namespace, s *syntax.Import) {
	at := c.at(ns, s.Place())
	target := c.prog.Root.find(s.Name.Text)
	if target == nil {
		c.fail(Located("TypeNotFoundException", c.at(ns, s.Name.Place()), "could not find type %s in namespace %s", s.Name.Text, ns.Full))
		return
	}
	name := s.Name.Text
	if s.Alias.Valid() {
		name = s.Alias.Text
	}
	if old, ok := ns.visible[name]; ok && old.imported != nil {
		f := New("DuplicateException", at, "Two import statements have the same name")
		f.Other, f.OtherMsg = old.imported, "first imported here"
		c.fail(f)
		return
	}
	ns.visible[name] = &visible{ns: target, imported: at}
}

// docText is the text of a docstring as it is written; empty when there is none.
func docText(l *syntax.Literal) string {
	if l == nil {
		return ""
	}
	s, _ := l.Value.(value.String)
	return string(s)
}

func (c *checker) newEntity(ns *Namespace, name string, at Loc) *Entity {
	e := &Entity{Name: name, NS: ns, At: at, ID: len(c.prog.Entities), own: map[string]*Attribute{}, full: ns.Full + "::" + name}
	c.prog.Entities = append(c.prog.Entities, e)
	return e
}

// injectBase adds std::Entity and the relation between requires and provides.
func (c *checker) injectBase() {
	for name, types := range c.in.Besides {
		c.prog.Root.child(name).besides = types
	}
	std := c.prog.Root.child("std")
	e := c.newEntity(std, "Entity", Loc{})
	c.prog.Base = e
	if !c.fail(std.define("Entity", e)) {
		c.prog.Symbols[e.full] = e
	}
}

func (c *checker) typedefs() {
	for _, d := range c.typeDefs {
		t, sym, f := d.ns.LookupType(d.stmt.Base.Text, c.at(d.ns, d.stmt.Base.Place()))
		if c.fail(f) {
			continue
		}
		if t == nil && sym != nil {
			t = Any // the name of an implementation or a plugin: any value will do
		}
		c.deprecated(t, c.at(d.ns, d.stmt.Base.Place()))
		d.typ.Base = t
	}
	for _, d := range c.typeDefs {
		for t, n := d.typ, 0; t != nil && !d.typ.Endless; n++ {
			d.typ.Endless = n > len(c.typeDefs)
			t, _ = t.Base.(*Typedef)
		}
	}
	for _, d := range c.typeDefs {
		if d.typ.Endless {
			d.typ.Base = Any // so that nobody who follows the bases goes round in circles
			c.warn("CompilerRuntimeWarning", &d.typ.At, "type %s is defined by itself: no value is of this type", d.typ.FullName())
		}
	}
}

func (c *checker) deprecated(t Type, at *Loc) {
	if t == Number {
		c.warn("TypeDeprecationWarning", at, "Type 'number' is deprecated, use 'float' or 'int' instead")
	}
}

// entities defines entities, parents first. All parents are resolved before anything is defined.
func (c *checker) entities() {
	byEntity := make(map[*Entity]*entityDef, len(c.entityDefs))
	for _, d := range c.entityDefs {
		byEntity[d.entity] = d
	}
	order := make([]*entityDef, 0, len(c.entityDefs))
	for _, d := range c.entityDefs {
		if d.state != 0 {
			continue
		}
		if f := c.visitEntity(d, byEntity, &order); c.fail(f) && f.Class == "CycleException" {
			return
		}
	}
	for _, d := range order {
		c.fail(c.defineEntity(d))
	}
}

func (c *checker) visitEntity(d *entityDef, defs map[*Entity]*entityDef, order *[]*entityDef) *Fault {
	d.state = 1
	var f *Fault
	if d.parents, f = c.parentsOf(d); f != nil {
		d.state = 2
		return f
	}
	for _, p := range d.parents {
		pd := defs[p]
		if pd == nil || pd.state == 2 {
			continue
		}
		if pd.state == 1 {
			f := New("CycleException", &d.entity.stmtAt, "Entity can not be its own parent %s", cyclePath(d, p, defs)).On(&d.entity.At)
			for _, other := range sortedDefs(defs) {
				if other.state == 1 && other != d {
					f.Note(&other.entity.At, "%s is part of the circle", other.entity.full)
				}
			}
			return f
		}
		if f := c.visitEntity(pd, defs, order); f != nil {
			return f
		}
	}
	d.state = 2
	*order = append(*order, d)
	return nil
}

// cyclePath lists the entities of a cycle that ends at last, from first on.
func cyclePath(d *entityDef, last *Entity, defs map[*Entity]*entityDef) string {
	names := []string{d.entity.full}
	for _, other := range sortedDefs(defs) {
		if other.state == 1 && other != d && other.entity != last {
			names = append(names, other.entity.full)
		}
	}
	if last != d.entity {
		names = append(names, last.full)
	}
	return strings.Join(names, ",")
}

func sortedDefs(defs map[*Entity]*entityDef) []*entityDef {
	out := make([]*entityDef, 0, len(defs))
	for _, d := range defs {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *entityDef) int { return b.entity.ID - a.entity.ID })
	return out
}

func (c *checker) parentsOf(d *entityDef) ([]*Entity, *Fault) {
	if len(d.stmt.Parents) == 0 {
		return []*Entity{c.prog.Base}, nil
	}
	var out []*Entity
	for _, p := range d.stmt.Parents {
		t, _, f := d.ns.LookupType(p.Text, c.at(d.ns, p.Place()))
		if f != nil {
			return nil, f.By(&d.entity.stmtAt, true)
		}
		e, ok := t.(*Entity)
		if !ok {
			return nil, New("TypingException", &d.entity.stmtAt,
				"Parents of an entity need to be entities. Default constructors are not supported. %s is not an entity", p.Text).
				On(c.at(d.ns, p.Place()))
		}
		out = append(out, e)
	}
	return out, nil
}

func (c *checker) defineEntity(d *entityDef) *Fault {
	e, parents := d.entity, d.parents
	for _, a := range d.stmt.Attrs {
		at := c.at(d.ns, a.Type.Place())
		base, sym, f := d.ns.LookupType(a.Type.Name.Text, at)
		if f != nil {
			return f.By(&e.stmtAt, true)
		}
		if base == nil && sym != nil {
			base = Any // the name of an implementation or a plugin: any value will do
		}
		if ent, ok := base.(*Entity); ok {
			return New("TypingException", &e.stmtAt, "Attributes can only be a type. Entities need to be defined as relations.").
				On(at).Note(&ent.At, "%s is an entity", ent.full)
		}
		c.deprecated(base, at)
		attr := &Attribute{
			Name: a.Name.Text, Entity: e, At: c.loc(d.ns, a.Place()), Base: base, List: a.Type.List, Optional: a.Type.Optional,
			removesDefault: a.Default == nil, hasDefaultEntry: true,
		}
		attr.Type = base
		if attr.List {
			attr.Type = &ListOf{attr.Type}
		}
		if attr.Optional {
			attr.Type = &Nullable{attr.Type}
		}
		if f := e.add(attr); f != nil {
			return f
		}
	}
	seen := map[string]bool{}
	for _, p := range d.stmt.Parents {
		if seen[p.Text] {
			return New("TypingException", &e.stmtAt, "same parent defined twice").On(c.at(d.ns, p.Place()))
		}
		seen[p.Text] = true
	}
	e.Parents = parents
	e.ancestors = make([]uint64, (len(c.prog.Entities)+63)/64)
	for _, p := range parents {
		p.Children = append(p.Children, e)
		e.ancestors[p.ID>>6] |= 1 << (p.ID & 63)
		for i, w := range p.ancestors {
			e.ancestors[i] |= w
		}
		e.Dataclass = e.Dataclass || p.Dataclass || p.full == "std::Dataclass"
	}
	return e.compatible()
}

// add defines an attribute on the entity.
func (e *Entity) add(a *Attribute) *Fault {
	if old, ok := e.own[a.Name]; ok {
		f := New("DuplicateException", &old.At, "attribute '%s' already exists on entity '%s'", a.Name, e.Name)
		f.Other, f.OtherMsg = &a.At, "defined again here"
		return f
	}
	e.own[a.Name] = a
	e.Own = append(e.Own, a)
	return nil
}

// compatible checks that the attributes of the entity and of all its ancestors agree in their types.
func (e *Entity) compatible() *Fault {
	mine := map[string]*Attribute{}
	for _, a := range e.Own {
		mine[a.Name] = a
	}
	visited := map[*Entity]bool{}
	var visit func(p *Entity) *Fault
	visit = func(p *Entity) *Fault {
		if visited[p] {
			return nil
		}
		visited[p] = true
		for _, other := range p.Own {
			a, ok := mine[other.Name]
			if ok && !sameType(a.Type, other.Type) {
				f := New("DuplicateException", &a.At, "Incompatible attributes")
				f.Other, f.OtherMsg = &other.At, fmt.Sprintf("%s has it as %s", other.Entity.full, other.Type)
				f.Hint = fmt.Sprintf("an attribute has one type: make it %s here, or give it another name", other.Type)
				if a.Entity != e { // both are inherited
					f.Note(&e.At, "%s inherits both", e.full)
				}
				return f
			}
			mine[other.Name] = other
		}
		for _, pp := range p.Parents {
			if f := visit(pp); f != nil {
				return f
			}
		}
		return nil
	}
	for _, p := range e.Parents {
		if f := visit(p); f != nil {
			return f
		}
	}
	return nil
}
