package xref

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/intendant/intendant/lang/syntax"
)

// Source is a file to index.
type Source struct {
	// Namespace is what the file makes up. Several files may be the main file of a project, and have the same.
	Namespace string
	Tree      *syntax.File
}

// Index is the cross-reference of a project. Its methods may be called from several goroutines.
type Index struct {
	mu      sync.Mutex // guards what is found out later: types and uses
	files   []*File
	byName  map[string]*File
	spaces  map[string]*File
	plugins map[string]map[string]*Symbol // by namespace and name
	base    *Symbol                       // std::Entity
	depth   int                           // of the search for types
}

// File is a file of an index.
type File struct {
	Namespace string
	Tree      *syntax.File

	index   *Index
	symbol  *Symbol // of the namespace
	types   map[string]*Symbol
	symbols []*Symbol // declared at the top level and in entities, in source order
	visible map[string]*Symbol
	scope   *Scope // of the file
	links   []func()
	decls   map[syntax.Pos]*Symbol // symbols by the place of their name

	resolved bool
	uses     []Use
	missing  []Missing
	scopes   []*Scope
}

// New builds the index of a project.
func New(sources []Source, plugins []Plugin) *Index {
	x := &Index{byName: map[string]*File{}, spaces: map[string]*File{}, plugins: map[string]map[string]*Symbol{}}
	for _, s := range sources {
		f := &File{
			Namespace: s.Namespace, Tree: s.Tree, index: x,
			types: map[string]*Symbol{}, visible: map[string]*Symbol{}, decls: map[syntax.Pos]*Symbol{},
		}
		f.symbol = &Symbol{Kind: Namespace, Name: s.Namespace, File: f, Decl: syntax.Span{Start: 1, End: 1}}
		x.files = append(x.files, f)
		x.byName[s.Tree.Name] = f
		if x.spaces[s.Namespace] == nil {
			x.spaces[s.Namespace] = f
		}
	}
	for i := range plugins {
		x.addPlugin(&plugins[i])
	}
	x.addBase()
	for _, f := range x.files {
		f.declare()
	}
	for _, f := range x.files {
		for _, link := range f.links {
			link()
		}
		f.links = nil
		slices.SortStableFunc(f.symbols, func(a, b *Symbol) int { return cmp.Compare(a.Decl.Start, b.Decl.Start) })
	}
	return x
}

func (x *Index) addPlugin(p *Plugin) {
	space, name := cut(p.Name)
	if x.plugins[space] == nil {
		x.plugins[space] = map[string]*Symbol{}
	}
	x.plugins[space][name] = &Symbol{Kind: PluginFunc, Name: name, Plugin: p, space: x.spaces[space]}
}

// addBase adds the entity that all others descend from.
func (x *Index) addBase() {
	x.base = &Symbol{Kind: Entity, Name: "Entity", own: map[string]*Symbol{}}
	requires := &Symbol{Kind: Relation, Name: "requires", Owner: x.base, high: syntax.Unbounded}
	provides := &Symbol{Kind: Relation, Name: "provides", Owner: x.base, high: syntax.Unbounded}
	requires.inverse, provides.inverse = provides, requires
	for _, r := range []*Symbol{requires, provides} {
		r.typ, r.state = Type{Symbol: x.base, List: true}, 2
		x.base.own[r.Name] = r
		x.base.order = append(x.base.order, r)
	}
	if std := x.spaces["std"]; std != nil {
		std.types["Entity"] = x.base
	}
}

// cut divides a qualified name at the last ::.
func cut(name string) (space, base string) {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		return name[:i], name[i+2:]
	}
	return "", name
}

// Files are the files of the index, in the order given.
func (x *Index) Files() []*File { return x.files }

// File is the file of a name; nil when there is none.
func (x *Index) File(name string) *File { return x.byName[name] }

// Space is the file that makes up a namespace; nil when there is none.
func (x *Index) Space(namespace string) *File { return x.spaces[namespace] }

// Namespaces are the namespaces that have a file, sorted.
func (x *Index) Namespaces() []string {
	out := make([]string, 0, len(x.spaces))
	for ns := range x.spaces {
		out = append(out, ns)
	}
	slices.Sort(out)
	return out
}

// Symbols are the entities, attributes, relations, typedefs, implementations and variables of the file that are declared at its
// top level or in an entity, in source order.
func (f *File) Symbols() []*Symbol { return f.symbols }

// Types are the symbols that a namespace gives names to, sorted by name: entities, typedefs, implementations and plugins.
func (f *File) Types() []*Symbol {
	out := make([]*Symbol, 0, len(f.types))
	for _, s := range f.types {
		out = append(out, s)
	}
	for name, p := range f.index.plugins[f.Namespace] {
		if f.types[name] == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Symbol) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Visible are the prefixes that names in the file may have, with the namespaces that they stand for.
func (f *File) Visible() map[string]*File {
	out := make(map[string]*File, len(f.visible))
	for prefix, s := range f.visible {
		if ns := namespaceOf(s); ns != nil && ns.File != nil {
			out[prefix] = ns.File
		}
	}
	return out
}

// Outer are the file itself and the files of the namespaces around its own, whose names need no prefix.
func (f *File) Outer() []*File {
	out := []*File{f}
	for ns := f.Namespace; ; {
		i := strings.LastIndex(ns, "::")
		if i < 0 {
			return out
		}
		ns = ns[:i]
		if o := f.index.spaces[ns]; o != nil {
			out = append(out, o)
		}
	}
}

// Lookup resolves the name of a type, an implementation or a plugin as the file writes it; nil when there is none.
func (f *File) Lookup(name string) *Symbol { return f.lookup(name) }

func (f *File) lookup(name string) *Symbol {
	if space, base := cut(name); space != "" {
		ns := namespaceOf(f.visible[space])
		if ns == nil {
			return nil
		}
		return f.index.member(ns.Name, base)
	}
	if p, ok := primitives[name]; ok {
		return p
	}
	if s := f.types[name]; s != nil {
		return s
	}
	for ns := f.Namespace; ; {
		if s := f.index.member(ns, name); s != nil {
			return s
		}
		i := strings.LastIndex(ns, "::")
		if i < 0 {
			return nil
		}
		ns = ns[:i]
	}
}

// member is what a namespace gives a name to.
func (x *Index) member(namespace, name string) *Symbol {
	if f := x.spaces[namespace]; f != nil {
		if s := f.types[name]; s != nil {
			return s
		}
	}
	return x.plugins[namespace][name]
}

// namespaceOf is the namespace that a symbol of a prefix stands for.
func namespaceOf(s *Symbol) *Symbol {
	if s != nil && s.Kind == Alias {
		return s.Owner
	}
	return s
}

// space is the symbol of a namespace. One without a file has a symbol too, so that names resolve the same way.
func (x *Index) space(namespace string) *Symbol {
	if f := x.spaces[namespace]; f != nil {
		return f.symbol
	}
	return nil
}

// declare adds the declarations of the file. What they refer to is linked later, when those of all files are known.
func (f *File) declare() {
	x := f.index
	f.visible[f.Namespace] = f.symbol
	if std := x.space("std"); std != nil {
		f.visible["std"] = std
	}
	f.scope = &Scope{kind: scopeFile, file: f, vars: map[string]*Symbol{}, span: syntax.Span{Start: 1, End: syntax.Pos(len(f.Tree.Src) + 1)}}
	f.hoist(f.Tree.Stmts, f.scope)
	for _, st := range f.Tree.Stmts {
		switch s := st.(type) {
		case *syntax.Import:
			f.declareImport(s)
		case *syntax.Entity:
			f.declareEntity(s)
		case *syntax.Typedef:
			t := f.add(Typedef, s.Name, s)
			f.links = append(f.links, func() { t.space = f })
		case *syntax.Implementation:
			f.add(Implementation, s.Name, s)
		case *syntax.Relation:
			f.links = append(f.links, func() { f.linkRelation(s) })
		case *syntax.Assign:
			if v, ok := s.Target.(*syntax.VarRef); ok {
				if sym := f.scope.vars[v.Name.Text]; sym != nil && sym.Decl.Start == v.Name.BasePos {
					f.note(sym)
				}
			}
		}
	}
}

// note keeps a symbol that the file declares.
func (f *File) note(s *Symbol) {
	f.symbols = append(f.symbols, s)
	f.decls[s.Decl.Start] = s
}

func (f *File) add(k Kind, n syntax.Name, node syntax.Node) *Symbol {
	s := &Symbol{Kind: k, Name: n.Text, File: f, Decl: n.Span(), Whole: node.Span(), node: node}
	if f.types[n.Text] == nil {
		f.types[n.Text] = s
	}
	f.note(s)
	return s
}

func (f *File) declareImport(s *syntax.Import) {
	ns := f.index.space(s.Name.Text)
	if s.Alias.Valid() {
		alias := &Symbol{Kind: Alias, Name: s.Alias.Text, File: f, Decl: s.Alias.Span(), Whole: s.Span(), Owner: ns, node: s}
		if f.visible[s.Alias.Text] == nil {
			f.visible[s.Alias.Text] = alias
		}
		return
	}
	if ns != nil {
		f.visible[s.Name.Text] = ns
	}
}

func (f *File) declareEntity(s *syntax.Entity) {
	e := f.add(Entity, s.Name, s)
	e.own = make(map[string]*Symbol, len(s.Attrs))
	for _, a := range s.Attrs {
		sym := &Symbol{Kind: Attribute, Name: a.Name.Text, File: f, Decl: a.Name.Span(), Whole: a.Span(), Owner: e, node: a}
		f.note(sym)
		e.order = append(e.order, sym)
		if e.own[a.Name.Text] == nil {
			e.own[a.Name.Text] = sym
		}
	}
	f.links = append(f.links, func() {
		for _, q := range s.Parents {
			if p := f.lookup(q.Text); p != nil && p.Kind == Entity && p != e {
				e.parents = append(e.parents, p)
				p.children = append(p.children, e)
			}
		}
		if len(s.Parents) == 0 && f.index.base != e {
			e.parents = append(e.parents, f.index.base)
			f.index.base.children = append(f.index.base.children, e)
		}
		for i, a := range s.Attrs {
			sym := e.order[i]
			sym.typ, sym.state = Type{Symbol: f.lookup(a.Type.Name.Text), List: a.Type.List, Optional: a.Type.Optional}, 2
			if t := sym.typ.Symbol; t != nil && t.Kind != Typedef && t.Kind != Primitive {
				sym.typ = Type{}
			}
		}
	})
}

func (f *File) linkRelation(s *syntax.Relation) {
	entity := func(q syntax.QName) *Symbol {
		if e := f.lookup(q.Text); e != nil && e.Kind == Entity {
			return e
		}
		return nil
	}
	left, right := entity(s.Left.Entity), entity(s.Right.Entity)
	end := func(owner, target *Symbol, e syntax.RelationEnd) *Symbol {
		if owner == nil || !e.Name.Valid() {
			return nil
		}
		sym := &Symbol{
			Kind: Relation, Name: e.Name.Text, File: f, Decl: e.Name.Span(), Whole: s.Span(), Owner: owner, node: s,
			low: e.Low, high: e.High, state: 2,
		}
		if target != nil {
			sym.typ = Type{Symbol: target, List: e.High != 1, Optional: e.High == 1 && e.Low == 0}
		}
		if owner.own == nil {
			owner.own = map[string]*Symbol{}
		}
		if owner.own[sym.Name] == nil {
			owner.own[sym.Name] = sym
		}
		owner.order = append(owner.order, sym)
		f.note(sym)
		return sym
	}
	a := end(left, right, s.Left)
	b := end(right, left, s.Right)
	if a != nil && b != nil {
		a.inverse, b.inverse = b, a
	}
}

// hoist declares the variables of a block: those that its own statements assign.
func (f *File) hoist(stmts []syntax.Stmt, sc *Scope) {
	for _, st := range stmts {
		a, ok := st.(*syntax.Assign)
		if !ok {
			continue
		}
		v, ok := a.Target.(*syntax.VarRef)
		if !ok || v.Name.Space != "" {
			continue
		}
		sym := sc.vars[v.Name.Text]
		if sym == nil {
			sym = &Symbol{
				Kind: Variable, Name: v.Name.Text, File: f, Decl: v.Name.Span(), Whole: a.Span(), node: a, scope: sc,
			}
			sc.vars[v.Name.Text] = sym
		}
		sym.values = append(sym.values, valueOf{a.Value, sc})
	}
}
