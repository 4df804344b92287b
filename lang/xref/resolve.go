package xref

import (
	"cmp"
	"slices"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// Role is what a use does with its symbol.
type Role uint8

// The roles of uses.
const (
	Read Role = iota
	Write
	Declaration
)

// Use is a place that names a symbol.
type Use struct {
	Span   syntax.Span
	Symbol *Symbol
	Role   Role
	// Hidden says that the name does not stand at Span as it is: it is within a string, behind escapes. Span is the string then.
	Hidden bool
	// Also is another symbol that the name stands for when the instance is of an entity below the one that its type says; nil when
	// there is none.
	Also *Symbol
}

// Missing is an attribute or a variable that could not be resolved.
type Missing struct {
	Span syntax.Span
	Name string
	// Of is the entity that has no such attribute; nil when the type of the value is not known.
	Of *Symbol
	// Variable is the scope of a variable that is not declared; nil for attributes.
	Variable *Scope
	// Always says that a statement of the file itself has the name: it is not in a block that may never run.
	Always bool
	// Asked says that the model asks whether the value is there.
	Asked bool
}

// Uses are the uses in a file, in source order.
func (x *Index) Uses(f *File) []Use {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.resolveFile(f)
	return f.uses
}

// Missing are the attributes and variables in a file that could not be resolved.
func (x *Index) Missing(f *File) []Missing {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.resolveFile(f)
	return f.missing
}

// At is the use at a place, or directly in front of it; nil when there is none.
func (x *Index) At(f *File, at syntax.Pos) *Use {
	uses := x.Uses(f)
	i, _ := slices.BinarySearchFunc(uses, at, func(u Use, at syntax.Pos) int { return cmp.Compare(u.Span.Start, at+1) })
	var found *Use
	for i--; i >= 0; i-- {
		u := &uses[i]
		if u.Span.Start <= at && at <= u.Span.End && !u.Hidden && (found == nil || found.Span.End == at && found.Span.Start == at) {
			found = u
		}
		if u.Span.Start+512 < at || found != nil {
			break
		}
	}
	return found
}

// Scope is the innermost scope at a place.
func (x *Index) Scope(f *File, at syntax.Pos) *Scope {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.resolveFile(f)
	best := f.scope
	for _, s := range f.scopes {
		if s.span.Start <= at && at <= s.span.End && s.span.End-s.span.Start <= best.span.End-best.span.Start {
			best = s
		}
	}
	return best
}

// walk resolves the names of a file. Without record it only finds out types.
type walk struct {
	index  *Index
	file   *File
	record bool
}

func (x *Index) resolveFile(f *File) {
	if f.resolved {
		return
	}
	f.resolved = true
	w := &walk{index: x, file: f, record: true}
	for _, s := range f.Tree.Stmts {
		w.top(s)
	}
	slices.SortStableFunc(f.uses, func(a, b Use) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
}

func (w *walk) use(at syntax.Span, s *Symbol, r Role) {
	if !w.record || s == nil {
		return
	}
	u := Use{Span: at, Symbol: s, Role: r}
	if text := w.text(at); text != s.Name && s.Kind != Namespace {
		u.Hidden = true
	}
	w.file.uses = append(w.file.uses, u)
}

func (w *walk) text(at syntax.Span) string {
	src := w.file.Tree.Src
	start, end := at.Start.Offset(), at.End.Offset()
	if start < 0 || end > len(src) || start > end {
		return ""
	}
	return string(src[start:end])
}

func (w *walk) miss(n syntax.Name, of *Symbol) {
	if w.record {
		w.file.missing = append(w.file.missing, Missing{Span: n.Span(), Name: n.Text, Of: of})
	}
}

func (w *walk) scope(s *Scope) *Scope {
	s.file = w.file
	if w.record {
		w.file.scopes = append(w.file.scopes, s)
	}
	return s
}

// prefix notes the namespace in front of a name.
func (w *walk) prefix(q syntax.QName) {
	space, _ := cut(q.Text)
	if space == "" {
		return
	}
	at := syntax.Span{Start: q.Pos, End: q.Pos + syntax.Pos(len(space))}
	if w.text(at) == space {
		w.use(at, w.file.visible[space], Read)
	}
}

// base is the stretch of the last part of a name. In strings the parser does not divide names.
func base(q syntax.QName) syntax.Span {
	_, b := cut(q.Text)
	if len(b) < len(q.Base) {
		return syntax.Span{Start: q.BasePos + syntax.Pos(len(q.Base)-len(b)), End: q.BasePos + syntax.Pos(len(q.Base))}
	}
	return syntax.Span{Start: q.BasePos, End: q.BasePos + syntax.Pos(len(q.Base))}
}

// typeName resolves the name of a type, an implementation or a plugin.
func (w *walk) typeName(q syntax.QName) *Symbol {
	w.prefix(q)
	s := w.file.lookup(q.Text)
	w.use(base(q), s, Read)
	return s
}

func (w *walk) entityName(q syntax.QName) *Symbol {
	if s := w.typeName(q); s != nil && s.Kind == Entity {
		return s
	}
	return nil
}

func (w *walk) declared(n syntax.Name) { w.use(n.Span(), w.file.decls[n.Pos], Declaration) }

// top resolves a statement at the top level of the file.
func (w *walk) top(st syntax.Stmt) {
	switch s := st.(type) {
	case *syntax.Import:
		w.use(s.Name.Span(), w.index.space(s.Name.Text), Read)
		if s.Alias.Valid() {
			if a := w.file.visible[s.Alias.Text]; a != nil && a.Decl == s.Alias.Span() {
				w.use(a.Decl, a, Declaration)
			}
		}
	case *syntax.Entity:
		w.entity(s)
	case *syntax.Implementation:
		w.declared(s.Name)
		self := w.self(w.entityName(s.For))
		sc := w.scope(&Scope{kind: scopeImplementation, vars: map[string]*Symbol{}, self: self, span: s.Span()})
		w.block(s.Body, sc)
	case *syntax.Implement:
		e := w.entityName(s.Entity)
		for _, q := range s.Using {
			w.typeName(q)
		}
		if s.When != nil {
			sc := w.scope(&Scope{kind: scopeImplementation, self: w.self(e), span: s.When.Span()})
			w.index.expr(w, s.When, sc, nil)
		}
	case *syntax.Relation:
		w.relation(s)
	case *syntax.Typedef:
		w.declared(s.Name)
		b := w.typeName(s.Base)
		self := &Symbol{Kind: Self, Name: "self", File: w.file, typ: Type{Symbol: b}, state: 2}
		if s.Constraint != nil {
			sc := w.scope(&Scope{kind: scopeTypedef, self: self, typedef: w.file.decls[s.Name.Pos], span: s.Constraint.Span()})
			w.index.expr(w, s.Constraint, sc, nil)
		}
	case *syntax.Index:
		e := w.entityName(s.Entity)
		for _, n := range s.Attrs {
			w.attr(e, n, Read)
		}
	default:
		w.stmt(st, w.file.scope)
	}
}

func (w *walk) self(e *Symbol) *Symbol {
	return &Symbol{Kind: Self, Name: "self", File: w.file, typ: Type{Symbol: e}, state: 2}
}

func (w *walk) entity(s *syntax.Entity) {
	w.declared(s.Name)
	for _, q := range s.Parents {
		w.typeName(q)
	}
	for _, a := range s.Attrs {
		w.typeName(a.Type.Name)
		w.declared(a.Name)
		if a.Default != nil {
			w.index.expr(w, a.Default, w.file.scope, nil)
		}
	}
}

func (w *walk) relation(s *syntax.Relation) {
	w.typeName(s.Left.Entity)
	w.declared(s.Left.Name)
	for _, a := range s.Annotations {
		w.index.expr(w, a, w.file.scope, nil)
	}
	w.typeName(s.Right.Entity)
	if s.Right.Name.Valid() {
		w.declared(s.Right.Name)
	}
}

// attr notes the use of an attribute of an entity.
func (w *walk) attr(e *Symbol, n syntax.Name, r Role) *Symbol {
	if e == nil {
		w.miss(n, nil)
		return nil
	}
	if n.Text == "self" {
		return w.self(e)
	}
	a := e.Attr(n.Text)
	if a == nil {
		// An instance may be of an entity below the one that its type says.
		e.descendants(func(d *Symbol) {
			if a == nil {
				a = d.own[n.Text]
			}
		})
	}
	if a == nil {
		w.miss(n, e)
		return nil
	}
	w.use(n.Span(), a, r)
	if e.Attr(n.Text) == nil {
		w.also(e, a)
	}
	return a
}

func (w *walk) block(stmts []syntax.Stmt, sc *Scope) {
	w.file.hoist(stmts, sc)
	for _, s := range stmts {
		w.stmt(s, sc)
	}
}

func (w *walk) stmt(st syntax.Stmt, sc *Scope) {
	switch s := st.(type) {
	case *syntax.Assign:
		w.assign(s, sc)
	case *syntax.For:
		t := w.index.expr(w, s.Iter, sc, nil)
		v := &Symbol{Kind: LoopVariable, Name: s.Var.Text, File: w.file, Decl: s.Var.Span(), Whole: s.Span(), typ: t.element(), state: 2}
		inner := w.scope(&Scope{kind: scopeBlock, parent: sc, vars: map[string]*Symbol{s.Var.Text: v}, span: s.Span()})
		w.use(s.Var.Span(), v, Declaration)
		w.block(s.Body, inner)
	case *syntax.If:
		w.index.expr(w, s.Cond, sc, nil)
		start := s.Colon + 1
		middle := s.EndPos
		if len(s.Else) > 0 {
			middle = s.Else[0].Span().Start
		}
		w.block(s.Then, w.scope(&Scope{kind: scopeBlock, parent: sc, vars: map[string]*Symbol{}, span: syntax.Span{Start: start, End: middle}}))
		w.block(s.Else, w.scope(&Scope{kind: scopeBlock, parent: sc, vars: map[string]*Symbol{}, span: syntax.Span{Start: middle, End: s.EndPos}}))
	case *syntax.ExprStmt:
		w.index.expr(w, s.X, sc, nil)
	}
}

func (w *walk) assign(s *syntax.Assign, sc *Scope) {
	switch t := s.Target.(type) {
	case *syntax.VarRef:
		sym := w.variable(t, sc, Write)
		if sym != nil && w.record && sym.Decl == base(t.Name) && len(w.file.uses) > 0 {
			w.file.uses[len(w.file.uses)-1].Role = Declaration
		}
		w.index.expr(w, s.Value, sc, nil)
	case *syntax.AttrRef:
		e := w.index.expr(w, t.X, sc, nil).Entity()
		a := w.attr(e, t.Name, Write)
		w.index.expr(w, s.Value, sc, target(a))
	}
}

// target is the entity that a relation leads to.
func target(a *Symbol) *Symbol {
	if a == nil || a.Kind != Relation {
		return nil
	}
	return a.typ.Symbol
}

func (w *walk) variable(v *syntax.VarRef, sc *Scope, r Role) *Symbol {
	w.prefix(v.Name)
	s := sc.Resolve(v.Name.Text)
	if s == nil && w.record {
		w.file.missing = append(w.file.missing, Missing{Span: base(v.Name), Name: v.Name.Text, Variable: sc, Always: sc.kind == scopeFile})
	}
	w.use(base(v.Name), s, r)
	if s != nil && v.Name.Space == "" && (s.Kind == Attribute || s.Kind == Relation || s.scope == sc.file.scope) {
		if e := sc.instance(v.Name.Text); e != nil && e.Attr(v.Name.Text) == nil {
			w.also(e, s)
		}
	}
	return s
}

// also notes what else the last use may stand for: attributes of the same name of entities below the one known.
func (w *walk) also(e, s *Symbol) {
	if !w.record || len(w.file.uses) == 0 {
		return
	}
	var family []*Symbol
	e.descendants(func(d *Symbol) {
		a := d.own[s.Name]
		if a == nil || a == s {
			return
		}
		if family == nil {
			family = w.index.Family(s)
		}
		if !slices.Contains(family, a) {
			w.file.uses[len(w.file.uses)-1].Also = a
		}
	})
}

// args resolves named arguments, which are attributes of an entity.
func (w *walk) args(args []syntax.Arg, e *Symbol, sc *Scope, r Role) {
	for _, a := range args {
		var hint *Symbol
		if a.Name.Valid() {
			hint = target(w.attr(e, a.Name, r))
		}
		w.index.expr(w, a.Value, sc, hint)
	}
}

// expr resolves the names of an expression and gives its type. hint is the entity that is expected, for constructors.
func (x *Index) expr(w *walk, e syntax.Expr, sc *Scope, hint *Symbol) Type {
	switch e := e.(type) {
	case *syntax.Literal:
		return literalType(e.Value)
	case *syntax.Regex:
		return primitive("bool")
	case *syntax.Interpolation:
		for _, h := range e.Holes {
			x.expr(w, h.Ref, sc, nil)
		}
		return primitive("string")
	case *syntax.FString:
		x.parts(w, e.Parts, sc)
		return primitive("string")
	case *syntax.VarRef:
		if s := w.variable(e, sc, Read); s != nil {
			return x.typeOf(s)
		}
	case *syntax.AttrRef:
		if a := w.attr(x.expr(w, e.X, sc, nil).Entity(), e.Name, Read); a != nil {
			return x.typeOf(a)
		}
	case *syntax.List:
		return x.list(w, e, sc, hint)
	case *syntax.ListComp:
		return x.comprehension(w, e, sc, hint)
	case *syntax.Dict:
		for _, en := range e.Entries {
			x.expr(w, en.Value, sc, nil)
		}
		return primitive("dict")
	case *syntax.Call:
		return x.call(w, e, sc)
	case *syntax.Construct:
		return x.construct(w, e, sc, hint)
	case *syntax.MapLookup:
		x.expr(w, e.X, sc, nil)
		x.expr(w, e.Key, sc, nil)
	case *syntax.IndexLookup:
		s := w.entityName(e.Type)
		w.args(e.Args, s, sc, Read)
		return Type{Symbol: s}
	case *syntax.ShortLookup:
		t := Type{}
		if a := w.attr(x.expr(w, e.X.X, sc, nil).Entity(), e.X.Name, Read); a != nil {
			t.Symbol = target(a)
		}
		w.args(e.Args, t.Symbol, sc, Read)
		return t
	case *syntax.Not:
		x.expr(w, e.X, sc, nil)
		return primitive("bool")
	case *syntax.Binary:
		a := x.expr(w, e.X, sc, nil)
		x.expr(w, e.Y, sc, nil)
		switch e.Op {
		case syntax.OpAdd, syntax.OpSub, syntax.OpMul, syntax.OpDiv, syntax.OpMod, syntax.OpPow:
			return a
		default:
			return primitive("bool")
		}
	case *syntax.Cond:
		x.expr(w, e.If, sc, nil)
		a, b := x.expr(w, e.Then, sc, hint), x.expr(w, e.Else, sc, hint)
		if !a.Known() {
			return b
		}
		return common(a, b)
	case *syntax.IsDefined:
		n := len(w.file.missing)
		x.expr(w, e.X, sc, nil)
		// Asking for what is not there is no fault.
		for i := n; w.record && i < len(w.file.missing); i++ {
			w.file.missing[i].Asked = true
		}
		return primitive("bool")
	}
	return Type{}
}

// common is the type of one of two values: that of the more general entity when one descends from the other.
func common(a, b Type) Type {
	if ea, eb := a.Entity(), b.Entity(); ea != nil && eb != nil && ea.IsA(eb) {
		return b
	}
	return a
}

func literalType(v value.Value) Type {
	switch v.(type) {
	case value.String:
		return primitive("string")
	case value.Bool:
		return primitive("bool")
	case value.Int, *value.BigInt:
		return primitive("int")
	case value.Float:
		return primitive("float")
	}
	return Type{}
}

func (x *Index) parts(w *walk, parts []syntax.FormatPart, sc *Scope) {
	for _, p := range parts {
		if p.Ref != nil {
			x.expr(w, p.Ref, sc, nil)
		}
		x.parts(w, p.Spec, sc)
	}
}

func (x *Index) list(w *walk, e *syntax.List, sc *Scope, hint *Symbol) Type {
	elem := Type{}
	for i, item := range e.Items {
		t := x.expr(w, item, sc, hint)
		if i == 0 || !elem.Known() {
			elem = t
			continue
		}
		if t.Known() {
			elem = common(elem, t)
		}
	}
	elem.List, elem.Optional = true, false
	return elem
}

func (x *Index) comprehension(w *walk, e *syntax.ListComp, sc *Scope, hint *Symbol) Type {
	for _, loop := range e.Fors {
		t := x.expr(w, loop.Iter, sc, nil)
		v := &Symbol{
			Kind: LoopVariable, Name: loop.Var.Text, File: w.file, Decl: loop.Var.Span(), Whole: e.Span(), typ: t.element(), state: 2,
		}
		sc = w.scope(&Scope{kind: scopeElement, parent: sc, vars: map[string]*Symbol{v.Name: v}, span: e.Span()})
		w.use(loop.Var.Span(), v, Declaration)
	}
	for _, c := range e.Conds {
		x.expr(w, c, sc, nil)
	}
	t := x.expr(w, e.Value, sc, hint)
	t.List, t.Optional = true, false
	return t
}

func (x *Index) call(w *walk, e *syntax.Call, sc *Scope) Type {
	s := w.typeName(e.Func)
	for _, a := range e.Args {
		x.expr(w, a.Value, sc, nil)
	}
	if s == nil || s.Kind != PluginFunc && s.Kind != Primitive {
		return Type{}
	}
	return x.typeOf(s)
}

func (x *Index) construct(w *walk, e *syntax.Construct, sc *Scope, hint *Symbol) Type {
	s := w.file.lookup(e.Type.Text)
	if s == nil && hint != nil && e.Type.Space == "" {
		// The entity may be named without its namespace where only its kind is expected.
		found := []*Symbol{hint}
		hint.descendants(func(d *Symbol) { found = append(found, d) })
		found = slices.DeleteFunc(found, func(d *Symbol) bool { return d.Name != e.Type.Text })
		if len(found) == 1 {
			s = found[0]
		}
	}
	w.prefix(e.Type)
	w.use(base(e.Type), s, Read)
	if s != nil && s.Kind != Entity {
		s = nil
	}
	w.args(e.Args, s, sc, Write)
	return Type{Symbol: s}
}
