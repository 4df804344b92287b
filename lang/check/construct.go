package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
)

func (b *binder) construct(e *syntax.Construct, scope *Scope, l *layout, left *lhs) (Expr, *Fault) {
	out := put(&b.c.stock.constructs, Construct{node: b.nodeOf(e), Name: e.Type.Text})
	unpacks := false
	for _, a := range e.Args {
		unpacks = unpacks || a.Unpack.Valid()
	}
	typ, f := b.constructedType(e, out, left)
	if f != nil {
		return nil, f
	}
	out.Type = typ
	typ.summarise()
	for _, ix := range typ.Indexes {
		for _, name := range ix.Names {
			if slot, ok := typ.Slot(name); (!ok || !typ.summary[slot].defaulted) && argument(e.Args, name) < 0 {
				out.Required = append(out.Required, name)
			}
		}
	}
	if unpacks {
		out.Explicit = make(map[string]bool, len(e.Args))
		for _, a := range e.Args {
			if a.Name.Valid() {
				out.Explicit[a.Name.Text] = true
			}
		}
	}
	if len(out.Required) > 0 && !unpacks && (left == nil || len(out.Required) > 1) {
		return nil, MissingIndexAttributes(&out.At, typ, out.Required)
	}
	if f := b.constructArgs(e, out, scope, l); f != nil {
		return nil, f
	}
	if len(out.Required) > 0 && left != nil {
		b.bindLHS(out, scope, l, left)
	}
	return out, nil
}

// argument is the place of the named argument, -1 when there is none.
func argument(args []syntax.Arg, name string) int {
	return slices.IndexFunc(args, func(a syntax.Arg) bool { return a.Name.Text == name && a.Name.Valid() })
}

// slotSummary is what a constructor has to know about an attribute.
type slotSummary struct{ defaulted, indexed bool }

// summarise notes which attributes have a default and which are part of an index.
func (e *Entity) summarise() {
	if e.defaultSlots != nil {
		return
	}
	e.summary = make([]slotSummary, len(e.All))
	e.defaultSlots = make([]int, len(e.Defaults))
	for i, d := range e.Defaults {
		e.defaultSlots[i], _ = e.Slot(d.Attr.Name) // all attributes have one
		e.summary[e.defaultSlots[i]].defaulted = true
	}
	for _, ix := range e.Indexes {
		for _, name := range ix.Names {
			if slot, ok := e.Slot(name); ok {
				e.summary[slot].indexed = true
			}
		}
	}
}

// argumentSlot is the slot of the attribute that the k-th argument of a constructor names.
func (e *Entity) argumentSlot(k int, name string) (int, bool) {
	if k < len(e.given) {
		if slot := e.given[k]; e.All[slot].Name == name {
			return slot, true
		}
	}
	slot, ok := e.Slot(name)
	switch {
	case !ok:
	case k < len(e.given):
		e.given[k] = slot
	case k == len(e.given):
		e.given = append(e.given, slot)
	}
	return slot, ok
}

// bindLHS binds the left-hand instance, which may supply an attribute of an index.
func (b *binder) bindLHS(out *Construct, scope *Scope, l *layout, left *lhs) {
	out.LHSAttr = left.attr
	if left.ref != nil {
		out.LHS = b.ref(left.ref, scope, l)
		return
	}
	r := scope.Resolve(left.self)
	r.At = out.At
	r.Slot = l.slot()
	out.LHS = put(&b.c.stock.refs, r)
}

// MissingIndexAttributes is the fault of a constructor that lacks attributes of an index.
func MissingIndexAttributes(at *Loc, e *Entity, names []string) *Fault {
	var text strings.Builder
	text.WriteString("Invalid Constructor call:")
	for _, name := range names {
		kind := "attribute"
		if a := e.Attr(name); a != nil && a.Relation {
			kind = "relation"
		}
		text.WriteString("\n\t* Missing " + kind + " '" + name + "'. The " + kind + " " + e.full + "." + name + " is part of an index.")
	}
	f := New("IndexAttributeMissingInConstructorException", at, "%s", text.String())
	for _, ix := range e.Indexes {
		if slices.ContainsFunc(ix.Names, func(n string) bool { return slices.Contains(names, n) }) {
			f.Note(ix.At, "the index by %s", strings.Join(ix.Names, " and "))
		}
	}
	return f
}

func (b *binder) constructArgs(e *syntax.Construct, out *Construct, scope *Scope, l *layout) *Fault {
	typ := out.Type
	selfScope, self := scope, ""
	if needsSelf(e.Args, typ) {
		self = b.newSelf()
		selfScope = &Scope{parent: scope, kind: scopeElement, ns: b.ns, names: map[string]int{self: 0}}
		out.NeedsSelf = true
	}
	from := len(b.bound)
	b.bound = append(b.bound, make([]Named, len(e.Args))...)
	defer func() { b.bound = b.bound[:from] }()
	direct := 0
	for k, a := range e.Args {
		if !a.Name.Valid() {
			continue
		}
		var arg Named
		i, ok := typ.argumentSlot(k, a.Name.Text)
		if !ok {
			f := New("TypingException", b.at(a.Name.Place()), "no attribute %s on type %s", a.Name.Text, typ.full)
			f.Hint = typ.AttributeHint(a.Name.Text)
			return f.Note(&typ.At, "%s is defined here", typ.full)
		}
		arg.Name, arg.Attr, arg.At = a.Name.Text, i, b.c.loc(b.ns, a.Name.Place())
		var f *Fault
		if typ.summary[i].indexed {
			direct++
			arg.X, f = b.expr(a.Value, scope, l)
		} else {
			al := layout{}
			arg.X, f = b.exprLHS(a.Value, selfScope, &al, &lhs{self: self, attr: arg.Name, hint: typ.All[i].Base})
			arg.Layout = al.n
		}
		if f != nil {
			return f
		}
		b.bound[from+k] = arg
	}
	bound := b.bound[from:]
	var f *Fault
	if out.Unpack, f = b.unpacked(e.Args, scope, l); f != nil {
		return f
	}
	if direct > 0 {
		out.Direct = b.c.stock.named.Take(direct)[:0]
	}
	indirect := len(e.Args) - direct
	given := func(slot int) int {
		return slices.IndexFunc(bound, func(n Named) bool { return n.Attr == slot && n.X != nil })
	}
	for _, slot := range typ.defaultSlots {
		if given(slot) < 0 {
			indirect++
		}
	}
	out.Indirect = b.c.stock.named.Take(indirect)[:0]
	add := func(arg Named) {
		_, arg.Constant = arg.X.(*Literal)
		if typ.summary[arg.Attr].indexed {
			out.Direct = append(out.Direct, arg)
		} else {
			out.Indirect = append(out.Indirect, arg)
		}
	}
	for i, slot := range typ.defaultSlots {
		if k := given(slot); k >= 0 {
			add(bound[k])
			continue
		}
		add(Named{Name: typ.Defaults[i].Attr.Name, X: typ.Defaults[i].X, Attr: slot})
	}
	for k, a := range e.Args {
		if a.Name.Valid() && !typ.summary[bound[k].Attr].defaulted {
			add(bound[k])
		}
	}
	return nil
}

// AttributeHint asks whether an attribute was meant by a name that is none; empty when no name is close.
func (e *Entity) AttributeHint(name string) string {
	names := make([]string, len(e.All))
	for i, a := range e.All {
		names[i] = a.Name
	}
	return DidYouMean("", name, names)
}

// needsSelf reports whether a constructor stands where its left-hand side is the instance that the arguments are for.
func needsSelf(args []syntax.Arg, typ *Entity) bool {
	for _, a := range args {
		if !a.Name.Valid() || !constructs(a.Value) {
			continue
		}
		if slot, ok := typ.Slot(a.Name.Text); !ok || !typ.summary[slot].indexed {
			return true
		}
	}
	return false
}

func constructs(x syntax.Expr) bool {
	switch e := x.(type) {
	case *syntax.Construct:
		return true
	case *syntax.List:
		return slices.ContainsFunc(e.Items, constructs)
	case *syntax.Cond:
		return constructs(e.Then) || constructs(e.Else)
	case *syntax.ListComp:
		return constructs(e.Value)
	}
	return false
}

// constructedType resolves the entity of a constructor, with the help of the relation that it is an argument for.
func (b *binder) constructedType(e *syntax.Construct, out *Construct, left *lhs) (*Entity, *Fault) {
	t, _, missing := b.ns.LookupType(e.Type.Text, nil)
	if missing != nil {
		missing.At = b.at(e.Type.Place())
	}
	if missing != nil && missing.Class != "TypeNotFoundException" && missing.Class != "MissingImportException" {
		return nil, missing
	}
	local, _ := t.(*Entity)
	if missing == nil && local == nil {
		return nil, New("TypingException", &out.At, "%s is not an entity", e.Type.Text)
	}
	if left == nil || left.hint == nil {
		if missing != nil {
			return nil, missing
		}
		return local, nil
	}
	hint, ok := left.hint.(*Entity)
	if !ok {
		return nil, New("TypingException", &out.At, "Can not assign a value of type %s to a variable of type %s", e.Type.Text, left.hint)
	}
	if local != nil {
		if !local.IsA(hint) {
			return nil, New("TypingException", &out.At, "Can not assign a value of type %s to a variable of type %s", local, hint)
		}
		return local, nil
	}
	if e.Type.Space != "" {
		return nil, missing
	}
	candidates, seen := map[*Entity]bool{}, map[*Entity]bool{}
	var visit func(c *Entity)
	visit = func(c *Entity) {
		if seen[c] {
			return
		}
		seen[c] = true
		if c.Name == e.Type.Text {
			candidates[c] = true
		}
		for _, child := range c.Children {
			visit(child)
		}
	}
	visit(hint)
	found := make([]*Entity, 0, len(candidates))
	for c := range candidates {
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b *Entity) int { return cmp.Compare(a.full, b.full) })
	switch len(found) {
	case 0:
		return nil, missing
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, c := range found {
		names[i] = c.full
	}
	f := Located("AmbiguousTypeException", b.at(e.Type.Place()),
		"Could not determine namespace for type %s. %d possible candidates exists: [%s]. To resolve this, use the fully qualified name instead of the short name.",
		e.Type.Text, len(found), strings.Join(names, ", "))
	for _, c := range found {
		f.Note(&c.At, "%s is defined here", c.full)
	}
	return nil, f
}
