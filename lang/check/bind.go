package check

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/intendant/intendant/lang/pyre"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/slab"
)

// layout hands out the slots of a unit's frame.
type layout struct{ n int }

func (l *layout) slot() int {
	l.n++
	return l.n - 1
}

// lhs is the left-hand side of the assignment whose value an expression is.
type lhs struct {
	ref  syntax.Ref // nil when self names the instance
	self string
	attr string
	hint Type // the type of a constructor's argument; nil for assignments
}

// binder binds the statements of one file.
type binder struct {
	c  *checker
	ns *Namespace

	// more are faults besides the one that is returned.
	more []*Fault

	// selves numbers the constructors that others refer to as their left-hand side.
	selves int
	// bound is a stack of arguments of constructors that are being bound.
	bound []Named
}

// stock is what bound statements are mostly made of.
type stock struct {
	literals   slab.Of[Literal]
	refs       slab.Of[Ref]
	attrRefs   slab.Of[AttrRef]
	constructs slab.Of[Construct]
	named      slab.Of[Named]
	assigns    slab.Of[Assign]
	setAttrs   slab.Of[SetAttr]
	exprStmts  slab.Of[ExprStmt]
	formats    slab.Of[Format]
}

// put is a value in a place of a stock.
func put[T any](s *slab.Of[T], v T) *T {
	p := s.New()
	*p = v
	return p
}

func (c *checker) binder(ns *Namespace) *binder { return &binder{c: c, ns: ns} }

func (b *binder) node(p syntax.Place) node { return node{b.c.loc(b.ns, p)} }

// placed is a node of the syntax tree.
type placed interface {
	Place() syntax.Place
	Span() syntax.Span
}

// whole is the place of a node, stretched over all of it. The language names the line of an operator or a bracket as the place
// of many expressions; what comes before that line is left out, so that the place stays on it.
func (b *binder) whole(x placed) syntax.Place {
	p, s := x.Place(), x.Span()
	if s.Start < p.Start && p.LineOnly {
		if src := b.c.files[b.ns].Src; bytes.IndexByte(src[s.Start.Offset():p.Start.Offset()], '\n') < 0 { // on one line
			p.Start = s.Start
		}
	}
	if p.LineOnly || p.Start == s.Start {
		p.End = max(p.End, s.End)
	}
	return p
}

func (b *binder) nodeOf(x placed) node { return node{b.c.loc(b.ns, b.whole(x))} }

// upTo is a node from a place to the end of an expression.
func (b *binder) upTo(p syntax.Place, x syntax.Expr) node {
	p.End = max(p.End, x.Span().End)
	return b.node(p)
}

func (b *binder) at(p syntax.Place) *Loc { return b.c.at(b.ns, p) }

// block binds the statements of a block, which are kept in reverse, and declares its variables in scope.
func (b *binder) block(body []syntax.Stmt, scope *Scope, keepScope bool) (*Block, *Fault) {
	blk, _, f := b.blockWith(body, scope, "", keepScope)
	return blk, f
}

func (b *binder) blockWith(body []syntax.Stmt, scope *Scope, loopVar string, keepScope bool) (*Block, []*syntax.Assign, *Fault) {
	if scope.names == nil {
		scope.names = map[string]int{}
	}
	blk := &Block{NS: b.ns}
	declare := func(name string) {
		if _, ok := scope.names[name]; !ok {
			scope.names[name] = len(blk.Names)
			blk.Names = append(blk.Names, name)
		}
	}
	for _, s := range slices.Backward(body) {
		if a, ok := s.(*syntax.Assign); ok {
			if v, ok := a.Target.(*syntax.VarRef); ok {
				declare(v.Name.Text)
			}
		}
	}
	if loopVar != "" {
		declare(loopVar)
	}
	if len(blk.Names) == 0 {
		blk.Bare = true
		scope.bare = !keepScope
	}
	var promised []*syntax.Assign
	var first *Fault
	for _, written := range slices.Backward(body) {
		s, below, f := b.stmtBelow(written, scope)
		if f != nil {
			if first == nil {
				first = f
			} else {
				b.more = append(b.more, f)
			}
			continue
		}
		if s != nil {
			blk.Stmts = append(blk.Stmts, s)
		}
		for _, p := range below {
			if _, own := scope.names[rootName(p.Target)]; !own {
				promised = append(promised, p)
			}
		}
	}
	if first != nil {
		return nil, nil, first
	}
	return blk, promised, nil
}

// rootName is the variable at the start of a reference.
func rootName(r syntax.Ref) string {
	for {
		switch x := r.(type) {
		case *syntax.AttrRef:
			r = x.X
		case *syntax.VarRef:
			return x.Name.Text
		}
	}
}

func (b *binder) stmt(st syntax.Stmt, scope *Scope) (Stmt, *Fault) {
	s, _, f := b.stmtBelow(st, scope)
	return s, f
}

// stmtBelow binds a statement. It also returns the assignments of attributes in and below it, which the statements around it
// promise.
func (b *binder) stmtBelow(st syntax.Stmt, scope *Scope) (Stmt, []*syntax.Assign, *Fault) {
	switch s := st.(type) {
	case *syntax.Assign:
		return b.assign(s, scope)
	case *syntax.For:
		return b.loop(s, scope)
	case *syntax.If:
		return b.branch(s, scope)
	case *syntax.ExprStmt:
		l := &layout{}
		x, f := b.expr(s.X, scope, l)
		if f != nil {
			return nil, nil, f
		}
		return put(&b.c.stock.exprStmts, ExprStmt{node: node{*x.Where()}, X: x, Layout: l.n}), nil, nil
	}
	return nil, nil, nil
}

func (b *binder) assign(s *syntax.Assign, scope *Scope) (Stmt, []*syntax.Assign, *Fault) {
	l := &layout{}
	switch t := s.Target.(type) {
	case *syntax.VarRef:
		v, f := b.expr(s.Value, scope, l)
		if f != nil {
			return nil, nil, f
		}
		target := scope.Resolve(t.Name.Text)
		target.At = b.c.loc(b.ns, t.Place())
		return put(&b.c.stock.assigns, Assign{node: b.nodeOf(s), Target: put(&b.c.stock.refs, target), Value: v, Layout: l.n}), nil, nil
	case *syntax.AttrRef:
		v, f := b.exprLHS(s.Value, scope, l, &lhs{ref: t.X, attr: t.Name.Text})
		if f != nil {
			return nil, nil, f
		}
		xl := &layout{}
		x := b.ref(t.X, scope, xl)
		return put(&b.c.stock.setAttrs, SetAttr{
			node: b.nodeOf(s), X: x, Layout: xl.n, Name: t.Name.Text, Append: s.Append, Value: v, ValLayout: l.n,
			TargetText: t.X.Text(), TargetAt: b.c.loc(b.ns, b.whole(t)),
		}), []*syntax.Assign{s}, nil
	}
	return nil, nil, nil
}

func (b *binder) loop(s *syntax.For, scope *Scope) (Stmt, []*syntax.Assign, *Fault) {
	l := &layout{}
	iter, f := b.expr(s.Iter, scope, l)
	if f != nil {
		return nil, nil, f
	}
	inner := &Scope{parent: scope, kind: scopeBlock, ns: b.ns}
	body, promised, f := b.blockWith(s.Body, inner, s.Var.Text, false)
	if f != nil {
		return nil, nil, f
	}
	return &For{
		node: b.upTo(s.Place(), s.Iter), Iter: iter, Layout: l.n, Var: inner.names[s.Var.Text], Body: body,
		Promises: b.promises(promised, scope),
	}, promised, nil
}

func (b *binder) branch(s *syntax.If, scope *Scope) (Stmt, []*syntax.Assign, *Fault) {
	l := &layout{}
	cond, f := b.expr(s.Cond, scope, l)
	if f != nil {
		return nil, nil, f
	}
	then, promised, f := b.blockWith(s.Then, &Scope{parent: scope, kind: scopeBlock, ns: b.ns}, "", false)
	els, more, g := b.blockWith(s.Else, &Scope{parent: scope, kind: scopeBlock, ns: b.ns}, "", false)
	if f != nil && g != nil {
		b.more = append(b.more, g)
	}
	if f = cmp.Or(f, g); f != nil {
		return nil, nil, f
	}
	promised = append(promised, more...)
	return &If{
		node: b.upTo(s.Place(), s.Cond), Cond: cond, Layout: l.n, Then: then, Else: els, Promises: b.promises(promised, scope),
	}, promised, nil
}

func (b *binder) promises(as []*syntax.Assign, scope *Scope) []Promise {
	out := make([]Promise, 0, len(as))
	for _, a := range as {
		t, ok := a.Target.(*syntax.AttrRef)
		if !ok {
			continue
		}
		l := &layout{}
		x := b.ref(t.X, scope, l)
		out = append(out, Promise{X: x, Layout: l.n, Name: t.Name.Text, At: b.at(a.Place())})
	}
	return out
}

// ref binds a reference without checking that its namespace is imported.
func (b *binder) ref(r syntax.Ref, scope *Scope, l *layout) Expr {
	switch x := r.(type) {
	case *syntax.VarRef:
		ref := scope.Resolve(x.Name.Text)
		ref.At = b.c.loc(b.ns, x.Place())
		ref.Slot = l.slot()
		return put(&b.c.stock.refs, ref)
	case *syntax.AttrRef:
		inner := &layout{}
		e := put(&b.c.stock.attrRefs, AttrRef{node: b.nodeOf(x), X: b.ref(x.X, scope, inner), Name: x.Name.Text, Text: x.X.Text()})
		e.Layout = inner.n
		e.Slot = l.slot()
		return e
	}
	return nil
}

// checkedRef binds a reference whose namespace must be imported.
func (b *binder) checkedRef(r syntax.Ref, scope *Scope, l *layout) (Expr, *Fault) {
	if root := rootName(r); strings.Contains(root, "::") {
		space, _ := splitName(root)
		if _, f := b.ns.see(space); f != nil {
			return nil, f.By(b.at(r.Place()), true)
		}
	}
	return b.ref(r, scope, l), nil
}

func (b *binder) expr(x syntax.Expr, scope *Scope, l *layout) (Expr, *Fault) {
	return b.exprLHS(x, scope, l, nil)
}

func (b *binder) exprLHS(x syntax.Expr, scope *Scope, l *layout, left *lhs) (Expr, *Fault) {
	switch e := x.(type) {
	case *syntax.Literal:
		return put(&b.c.stock.literals, Literal{node: b.nodeOf(e), Val: e.Value}), nil
	case *syntax.VarRef:
		return b.checkedRef(e, scope, l)
	case *syntax.AttrRef:
		return b.checkedRef(e, scope, l)
	case *syntax.Regex:
		self := scope.Resolve("self")
		self.Slot = l.slot()
		self.At = b.c.loc(b.ns, e.Place())
		re, err := pyre.Compile(e.Pattern)
		if err != nil {
			return nil, New("ParserException", b.at(e.Place()), "Syntax error: Regex error in /%s/: '%s'", e.Pattern, err)
		}
		return &Match{node: b.nodeOf(e), X: &self, Pattern: e.Pattern, Regexp: re}, nil
	case *syntax.Interpolation:
		return b.interpolation(e, scope, l)
	case *syntax.FString:
		parts, f := b.formatParts(e.Parts, scope, l)
		if f != nil {
			return nil, f
		}
		return &FFormat{node: b.nodeOf(e), Parts: parts}, nil
	case *syntax.List:
		return b.list(e, scope, l, left)
	case *syntax.Dict:
		return b.dict(e, scope, l)
	case *syntax.ListComp:
		return b.compLoop(e, 0, scope, l, left)
	case *syntax.Call:
		return b.call(e, scope, l)
	case *syntax.Construct:
		return b.construct(e, scope, l, left)
	case *syntax.MapLookup:
		m, f := b.expr(e.X, scope, l)
		if f != nil {
			return nil, f
		}
		k, f := b.expr(e.Key, scope, l)
		if f != nil {
			return nil, f
		}
		return &MapLookup{node: b.nodeOf(e), X: m, Key: k}, nil
	case *syntax.IndexLookup:
		return b.lookup(e, scope, l)
	case *syntax.ShortLookup:
		return b.shortLookup(e, scope, l)
	case *syntax.Not:
		y, f := b.expr(e.X, scope, l)
		if f != nil {
			return nil, f
		}
		return &Not{node: b.nodeOf(e), X: y}, nil
	case *syntax.Binary:
		return b.binary(e, scope, l)
	case *syntax.Cond:
		return b.conditional(e, scope, l, left)
	case *syntax.IsDefined:
		return b.isDefined(e, scope, l)
	case *syntax.Member:
		inner := &layout{}
		owner, f := b.expr(e.X, scope, inner)
		if f != nil {
			return nil, f
		}
		return &AttrRef{
			node: b.nodeOf(e), X: owner, Name: e.Name.Text, Text: string(b.c.files[b.ns].Src[e.X.Span().Start.Offset():e.X.Span().End.Offset()]), Layout: inner.n, Slot: l.slot(),
		}, nil
	}
	return nil, New("CompilerException", b.at(x.Place()), "unexpected expression")
}

func (b *binder) interpolation(e *syntax.Interpolation, scope *Scope, l *layout) (Expr, *Fault) {
	out := put(&b.c.stock.formats, Format{node: b.nodeOf(e), Text: e.Text})
	if !e.Multi {
		out.At.Place.LineOnly = true
	}
	out.Sources, out.Refs = make([]string, 0, len(e.Holes)), make([]Expr, 0, len(e.Holes))
	for _, h := range e.Holes {
		r, f := b.checkedRef(h.Ref, scope, l)
		if f != nil {
			return nil, f
		}
		out.Sources = append(out.Sources, h.Source)
		out.Refs = append(out.Refs, r)
	}
	out.cut()
	return out, nil
}

// cut finds the references in the text. It fails, and leaves Cuts nil, when there are braces that belong to none: together with a
// value they could look like another reference.
func (x *Format) cut() {
	cuts := make([]Cut, 0, len(x.Sources))
	rest := x.Text
	for {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			x.Cuts, x.Tail = cuts, rest
			return
		}
		ref := slices.IndexFunc(x.Sources, func(s string) bool { return strings.HasPrefix(rest[at:], s) })
		if ref < 0 {
			return
		}
		cuts = append(cuts, Cut{rest[:at], ref})
		rest = rest[at+len(x.Sources[ref]):]
	}
}

func (b *binder) formatParts(parts []syntax.FormatPart, scope *Scope, l *layout) ([]FPart, *Fault) {
	out := make([]FPart, 0, len(parts))
	for _, p := range parts {
		o := FPart{Text: p.Text, Positional: p.Positional, Conversion: byte(p.Conversion)}
		var f *Fault
		if p.Ref != nil {
			if o.Ref, f = b.checkedRef(p.Ref, scope, l); f != nil {
				return nil, f
			}
		}
		if o.Spec, f = b.formatParts(p.Spec, scope, l); f != nil {
			return nil, f
		}
		out = append(out, o)
	}
	return out, nil
}

func (b *binder) list(e *syntax.List, scope *Scope, l *layout, left *lhs) (Expr, *Fault) {
	if v, ok := constant(e); ok {
		return put(&b.c.stock.literals, Literal{node: b.nodeOf(e), Val: v}), nil
	}
	out := &List{node: b.nodeOf(e), Slot: l.slot()}
	for _, it := range e.Items {
		from := l.n
		x, f := b.exprLHS(it, scope, l, left)
		if f != nil {
			return nil, f
		}
		out.Items = append(out.Items, x)
		out.Spans = append(out.Spans, [2]int{from, l.n})
	}
	return out, nil
}

func (b *binder) dict(e *syntax.Dict, scope *Scope, l *layout) (Expr, *Fault) {
	seen := make(map[string]*syntax.DictEntry, len(e.Entries))
	for i := range e.Entries {
		en := &e.Entries[i]
		k := keyText(en.Key)
		if old, ok := seen[k]; ok {
			f := New("DuplicateException", b.at(en.Value.Place()), "duplicate key in dict %s", k)
			f.Other, f.OtherMsg = b.at(old.Value.Place()), "first given here"
			return nil, f
		}
		seen[k] = en
	}
	if v, ok := constant(e); ok {
		return put(&b.c.stock.literals, Literal{node: b.nodeOf(e), Val: v}), nil
	}
	out := &Dict{node: b.nodeOf(e)}
	for _, en := range e.Entries {
		x, f := b.expr(en.Value, scope, l)
		if f != nil {
			return nil, f
		}
		out.Keys = append(out.Keys, keyText(en.Key))
		out.Vals = append(out.Vals, x)
	}
	return out, nil
}

// compLoop binds the i-th loop of a comprehension, counted from the outermost, and what is inside it.
func (b *binder) compLoop(e *syntax.ListComp, i int, scope *Scope, l *layout, left *lhs) (Expr, *Fault) {
	loop := e.Fors[i]
	out := &Comp{node: b.nodeOf(e), Var: loop.Var.Text}
	elem := &Scope{parent: scope, kind: scopeElement, ns: b.ns, names: map[string]int{loop.Var.Text: 0}}
	inner := &layout{}
	var f *Fault
	if i+1 < len(e.Fors) {
		out.Value, f = b.compLoop(e, i+1, elem, inner, left)
	} else {
		out.Value, f = b.exprLHS(e.Value, elem, inner, left)
	}
	if f != nil {
		return nil, f
	}
	iter := &layout{}
	if out.Iter, f = b.expr(loop.Iter, scope, iter); f != nil {
		return nil, f
	}
	out.IterLayout, out.ElemLayout = iter.n, inner.n
	if i+1 == len(e.Fors) && len(e.Conds) > 0 {
		guard := &layout{}
		if out.Guard, f = b.guards(e.Conds, elem, guard); f != nil {
			return nil, f
		}
		out.Guarded = &Cond{
			node: out.node, If: out.Guard, Then: out.Value, Else: &Filtered{out.node}, Slot: 0,
			IfLayout: guard.n, ThenLayout: inner.n,
		}
		out.ElemLayout = 1
	}
	out.Slot = l.slot()
	return out, nil
}

// guards joins the conditions of a comprehension by and, from the right.
func (b *binder) guards(conds []syntax.Expr, scope *Scope, l *layout) (Expr, *Fault) {
	if len(conds) == 1 {
		return b.expr(conds[0], scope, l)
	}
	place := conds[0].Place()
	place.LineOnly = true
	return b.lazy(false, b.node(place), l,
		func(l *layout) (Expr, *Fault) { return b.expr(conds[0], scope, l) },
		func(l *layout) (Expr, *Fault) { return b.guards(conds[1:], scope, l) })
}

func (b *binder) lazy(or bool, n node, l *layout, x, y func(*layout) (Expr, *Fault)) (*Lazy, *Fault) {
	left, right := &layout{}, &layout{}
	out := &Lazy{node: n, Or: or}
	var f *Fault
	if out.X, f = x(left); f != nil {
		return nil, f
	}
	if out.Y, f = y(right); f != nil {
		return nil, f
	}
	out.LeftLayout, out.RightLayout, out.Slot = left.n, right.n, l.slot()
	return out, nil
}

var binaryOps = map[syntax.BinaryOp]Op{
	syntax.OpEq: Eq, syntax.OpNe: Ne, syntax.OpLt: Lt, syntax.OpLe: Le, syntax.OpGt: Gt, syntax.OpGe: Ge, syntax.OpAdd: Add,
	syntax.OpSub: Sub, syntax.OpMul: Mul, syntax.OpDiv: Div, syntax.OpMod: Mod, syntax.OpPow: Pow, syntax.OpIn: In, syntax.OpNotIn: In,
}

func (b *binder) binary(e *syntax.Binary, scope *Scope, l *layout) (Expr, *Fault) {
	n := b.nodeOf(e)
	if e.Op == syntax.OpOr || e.Op == syntax.OpAnd {
		return nonNil(b.lazy(e.Op == syntax.OpOr, n, l,
			func(l *layout) (Expr, *Fault) { return b.expr(e.X, scope, l) },
			func(l *layout) (Expr, *Fault) { return b.expr(e.Y, scope, l) }))
	}
	x, f := b.expr(e.X, scope, l)
	if f != nil {
		return nil, f
	}
	y, f := b.expr(e.Y, scope, l)
	if f != nil {
		return nil, f
	}
	var out Expr = &Binary{node: n, Op: binaryOps[e.Op], X: x, Y: y}
	if e.Op == syntax.OpNotIn {
		out = &Not{node: n, X: out}
	}
	return out, nil
}

func nonNil(e *Lazy, f *Fault) (Expr, *Fault) {
	if f != nil {
		return nil, f
	}
	return e, nil
}

func (b *binder) conditional(e *syntax.Cond, scope *Scope, l *layout, left *lhs) (Expr, *Fault) {
	out := &Cond{}
	il, tl, el := &layout{}, &layout{}, &layout{}
	var f *Fault
	if out.If, f = b.expr(e.If, scope, il); f != nil {
		return nil, f
	}
	if out.Then, f = b.exprLHS(e.Then, scope, tl, left); f != nil {
		return nil, f
	}
	if out.Else, f = b.exprLHS(e.Else, scope, el, left); f != nil {
		return nil, f
	}
	out.At = *out.If.Where()
	out.IfLayout, out.ThenLayout, out.ElseLayout = il.n, tl.n, el.n
	out.Slot = l.slot()
	return out, nil
}

func (b *binder) isDefined(e *syntax.IsDefined, scope *Scope, l *layout) (Expr, *Fault) {
	switch x := e.X.(type) {
	case *syntax.VarRef:
		out := &IsDefined{node: b.nodeOf(e), Name: x.Name.Text}
		r := scope.Resolve(x.Name.Text)
		r.At = out.At
		out.Var = &r
		out.Slot = l.slot()
		return out, nil
	case *syntax.AttrRef:
		out := &IsDefined{node: b.nodeOf(e), Name: x.Name.Text}
		inner := &layout{}
		var f *Fault
		if out.X, f = b.checkedRef(x.X, scope, inner); f != nil {
			return nil, f
		}
		out.Layout, out.Slot = inner.n, l.slot()
		return out, nil
	case *syntax.Member:
		out := &IsDefined{node: b.nodeOf(e), Name: x.Name.Text}
		inner := &layout{}
		var f *Fault
		if out.X, f = b.expr(x.X, scope, inner); f != nil {
			return nil, f
		}
		out.Layout, out.Slot = inner.n, l.slot()
		return out, nil
	case *syntax.MapLookup:
		return b.entryDefined(e, x, scope, l)
	}
	return nil, New("CompilerException", b.at(e.Place()), "unexpected expression")
}

// entryDefined is d[k] is defined: k in d and d[k] != null and d[k] != [].
func (b *binder) entryDefined(e *syntax.IsDefined, m *syntax.MapLookup, scope *Scope, l *layout) (Expr, *Fault) {
	n := node{*b.c.line(b.ns, e.Is)}
	differs := func(v value.Value) func(*layout) (Expr, *Fault) {
		return func(l *layout) (Expr, *Fault) {
			x, f := b.expr(m, scope, l)
			if f != nil {
				return nil, f
			}
			return &Binary{node: n, Op: Ne, X: x, Y: &Literal{node: n, Val: v}}, nil
		}
	}
	has := func(l *layout) (Expr, *Fault) {
		k, f := b.expr(m.Key, scope, l)
		if f != nil {
			return nil, f
		}
		d, f := b.expr(m.X, scope, l)
		if f != nil {
			return nil, f
		}
		return &Binary{node: n, Op: In, X: k, Y: d}, nil
	}
	return nonNil(b.lazy(false, n, l, func(l *layout) (Expr, *Fault) {
		return nonNil(b.lazy(false, n, l, has, differs(value.Null{})))
	}, differs(&value.List{})))
}

func (b *binder) args(args []syntax.Arg, scope *Scope, l *layout) (pos []Expr, named []Named, unpack []*Unpack, f *Fault) {
	for _, a := range args {
		if a.Name.Valid() || a.Unpack.Valid() {
			continue
		}
		x, f := b.expr(a.Value, scope, l)
		if f != nil {
			return nil, nil, nil, f
		}
		pos = append(pos, x)
	}
	for _, a := range args {
		if !a.Name.Valid() {
			continue
		}
		x, f := b.expr(a.Value, scope, l)
		if f != nil {
			return nil, nil, nil, f
		}
		named = append(named, Named{Name: a.Name.Text, At: b.c.loc(b.ns, a.Name.Place()), X: x})
	}
	unpack, f = b.unpacked(args, scope, l)
	return pos, named, unpack, f
}

func (b *binder) unpacked(args []syntax.Arg, scope *Scope, l *layout) ([]*Unpack, *Fault) {
	var out []*Unpack
	for _, a := range args {
		if !a.Unpack.Valid() {
			continue
		}
		x, f := b.expr(a.Value, scope, l)
		if f != nil {
			return nil, f
		}
		out = append(out, &Unpack{node: node{*b.c.line(b.ns, a.Unpack)}, X: x})
	}
	return out, nil
}

func (b *binder) call(e *syntax.Call, scope *Scope, l *layout) (Expr, *Fault) {
	out := &Call{node: b.nodeOf(e), Name: e.Func.Text, Scope: scope}
	at := &out.At
	inner := &layout{}
	var f *Fault
	if out.Args, out.Kwargs, out.Unpack, f = b.args(e.Args, scope, inner); f != nil {
		return nil, f
	}
	t, sym, f := b.ns.LookupType(e.Func.Text, nil)
	if f != nil {
		f.At = b.at(e.Func.Place())
		return nil, f
	}
	switch s := sym.(type) {
	case *Plugin:
		out.Plugin = s
		if s.Deprecated != "" {
			instead := ""
			if s.Deprecated != value.NoReplacement {
				instead = " It should be replaced by '" + s.Deprecated + "'."
			}
			b.c.warn("PluginDeprecationWarning", at, "Plugin '%s' is deprecated.%s", s.Name, instead)
		}
	default:
		p, ok := t.(Prim)
		if !ok || p > Bool {
			return nil, New("RuntimeException", at, "Can not call '%s', can only call plugin or primitive type cast", e.Func.Text)
		}
		b.c.deprecated(p, at)
		out.Cast = p
	}
	out.Layout, out.Slot = inner.n, l.slot()
	return out, nil
}

func (b *binder) lookup(e *syntax.IndexLookup, scope *Scope, l *layout) (Expr, *Fault) {
	out := &Lookup{node: b.nodeOf(e)}
	inner := &layout{}
	var f *Fault
	if _, out.Keys, out.Unpack, f = b.args(e.Args, scope, inner); f != nil {
		return nil, f
	}
	t, _, f := b.ns.LookupType(e.Type.Text, nil)
	if f != nil {
		f.At = b.at(e.Type.Place())
		return nil, f
	}
	ent, ok := t.(*Entity)
	if !ok {
		return nil, New("TypingException", b.at(e.Place()), "%s is not an entity", e.Type.Text)
	}
	out.Type, out.Layout, out.Slot = ent, inner.n, l.slot()
	return out, nil
}

func (b *binder) shortLookup(e *syntax.ShortLookup, scope *Scope, l *layout) (Expr, *Fault) {
	out := &Lookup{node: b.nodeOf(e), Rel: e.X.Name.Text}
	inner := &layout{}
	var f *Fault
	if _, out.Keys, _, f = b.args(e.Args, scope, inner); f != nil {
		return nil, f
	}
	if out.Root, f = b.checkedRef(e.X.X, scope, inner); f != nil {
		return nil, f
	}
	if out.Unpack, f = b.unpacked(e.Args, scope, inner); f != nil {
		return nil, f
	}
	out.Layout, out.Slot = inner.n, l.slot()
	return out, nil
}

func (b *binder) newSelf() string {
	b.selves++
	return "\x00self" + strconv.Itoa(b.selves)
}
