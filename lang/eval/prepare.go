package eval

import (
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// lookup finds the variable of a reference. For self there is only a value.
func (m *machine) lookup(r *check.Ref, sc *scope) (*variable, value.Value, *check.Fault) {
	switch r.Kind {
	case check.LocalRef:
		for range r.Hops {
			sc = sc.parent
		}
		return &sc.vars[r.Index], nil, nil
	case check.FileRef:
		return &m.files[r.NS.ID][r.Index], nil, nil
	case check.SelfRef:
		return nil, sc.inst, nil
	case check.InstRef:
		i := sc.inst
		if slot, ok := cached(&r.Cache, i.typ, r.Name); ok {
			return i.variable(slot), nil, nil
		}
		if r.Index >= 0 {
			return &m.files[r.NS.ID][r.Index], nil, nil
		}
		f := m.unknown(r, "variable "+r.Name+" not found")
		if f.Hint == "" {
			f.Hint = i.typ.AttributeHint(r.Name)
		}
		return nil, nil, f
	default: // check.MissingRef
		return nil, nil, m.unknown(r, r.Missing)
	}
}

// cached finds the slot of a name for an entity, remembering the last answer.
func cached(c *check.SlotCache, e *check.Entity, name string) (int, bool) {
	if c.Entity != e {
		slot, ok := e.Slot(name)
		if !ok {
			slot = -1
		}
		c.Entity, c.Slot = e, slot
	}
	return c.Slot, c.Slot >= 0
}

// prepare schedules what an expression needs, and puts what it waits for into the frame of u.
func (m *machine) prepare(x check.Expr, sc *scope, u *unit) *check.Fault {
	switch e := x.(type) {
	case *check.Literal, *check.Filtered:
		return nil
	case *check.Ref:
		return m.prepareRef(e, sc, u)
	case *check.AttrRef:
		return m.prepareAttr(e, sc, u, false)
	case *check.Binary:
		if f := m.prepare(e.X, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
		if f := m.prepare(e.Y, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
	case *check.Not:
		if f := m.prepare(e.X, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
	case *check.Match:
		if f := m.prepare(e.X, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
	case *check.MapLookup:
		if f := m.prepare(e.X, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
		if f := m.prepare(e.Key, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
	case *check.List:
		return m.prepareAll(e.Items, e, sc, u)
	case *check.Dict:
		return m.prepareAll(e.Vals, e, sc, u)
	case *check.Format:
		return m.prepareAll(e.Refs, e, sc, u)
	case *check.FFormat:
		if f := m.prepareParts(e.Parts, sc, u); f != nil {
			return f.By(e.Where(), false)
		}
	case *check.Call:
		sub := m.unit(opCall, e.Layout, sc)
		sub.x, sub.to, sub.slot = e, u, int32(e.Slot)
		if f := m.prepareArgs(e.Args, e.Kwargs, e.Unpack, sc, sub); f != nil {
			return f.By(e.Where(), false)
		}
		u.expect()
		m.start(sub)
	case *check.Lookup:
		return m.prepareLookup(e, sc, u)
	case *check.Construct:
		return m.prepareConstruct(e, sc, u)
	case *check.Lazy:
		sub := m.unit(opLazyLeft, e.LeftLayout, sc)
		sub.x, sub.to, sub.slot = e, u, int32(e.Slot)
		if f := m.prepare(e.X, sc, sub); f != nil {
			return f
		}
		u.expect()
		m.start(sub)
	case *check.IsDefined:
		return m.prepareDefined(e, sc, u)
	case *check.Cond:
		return m.prepareCond(e, sc, u, nil)
	case *check.Comp:
		return m.prepareComp(e, sc, u, nil)
	}
	return nil
}

func (m *machine) prepareRef(e *check.Ref, sc *scope, u *unit) *check.Fault {
	v, val, f := m.lookup(e, sc)
	if f != nil {
		return f
	}
	en := u.entry(e.Slot)
	en.from, en.val = v, val
	return nil
}

func (m *machine) prepareAll(xs []check.Expr, parent check.Expr, sc *scope, u *unit) *check.Fault {
	for _, x := range xs {
		if f := m.prepare(x, sc, u); f != nil {
			return f.By(parent.Where(), false)
		}
	}
	return nil
}

func (m *machine) prepareParts(parts []check.FPart, sc *scope, u *unit) *check.Fault {
	for i := range parts {
		if parts[i].Ref != nil {
			if f := m.prepare(parts[i].Ref, sc, u); f != nil {
				return f
			}
		}
		if f := m.prepareParts(parts[i].Spec, sc, u); f != nil {
			return f
		}
	}
	return nil
}

func (m *machine) prepareArgs(args []check.Expr, named []check.Named, unpack []*check.Unpack, sc *scope, u *unit) *check.Fault {
	for _, x := range args {
		if f := m.prepare(x, sc, u); f != nil {
			return f
		}
	}
	for i := range named {
		if f := m.prepare(named[i].X, sc, u); f != nil {
			return f
		}
	}
	for _, x := range unpack {
		if f := m.prepare(x.X, sc, u); f != nil {
			return f
		}
	}
	return nil
}

// prepareAttr schedules the reading of an attribute: a unit waits for the instance, then connects the slot to the attribute.
// When the instance is known already no unit is needed.
func (m *machine) prepareAttr(e *check.AttrRef, sc *scope, u *unit, propagate bool) *check.Fault {
	r, ok := e.X.(*check.Ref)
	if !ok {
		hook := m.readHook(e, sc, u, propagate)
		if f := m.prepareInstance(e.X, sc, hook, propagate); f != nil {
			return f
		}
		u.expect()
		m.start(hook)
		return nil
	}
	v, val, f := m.lookup(r, sc)
	if f != nil {
		return f
	}
	u.expect()
	known := val
	if v != nil && v.done {
		known = v.val
	}
	if i, ok := known.(*Instance); ok {
		m.schedule(runRead, 0, u, i, e)
		return nil
	}
	hook := m.readHook(e, sc, u, propagate)
	en := hook.entry(r.Slot)
	en.from, en.val = v, val
	m.start(hook)
	return nil
}

func (m *machine) readHook(e *check.AttrRef, sc *scope, u *unit, propagate bool) *unit {
	hook := m.unit(opRead, e.Layout, sc)
	hook.x, hook.to, hook.slot, hook.propagate = e, u, int32(e.Slot), propagate
	return hook
}

// prepareInstance prepares a reference that must give an instance.
func (m *machine) prepareInstance(x check.Expr, sc *scope, u *unit, propagate bool) *check.Fault {
	if a, ok := x.(*check.AttrRef); ok {
		return m.prepareAttr(a, sc, u, propagate)
	}
	return m.prepare(x, sc, u)
}

func (m *machine) prepareLookup(e *check.Lookup, sc *scope, u *unit) *check.Fault {
	sub := m.unit(opLookup, e.Layout, sc)
	sub.x, sub.to, sub.slot = e, u, int32(e.Slot)
	for i := range e.Keys {
		if f := m.prepare(e.Keys[i].X, sc, sub); f != nil {
			return f.By(e.Where(), false)
		}
	}
	if e.Root != nil {
		if f := m.prepare(e.Root, sc, sub); f != nil {
			return f.By(e.Where(), false)
		}
	}
	for _, x := range e.Unpack {
		if f := m.prepare(x.X, sc, sub); f != nil {
			return f.By(e.Where(), false)
		}
	}
	u.expect()
	m.start(sub)
	return nil
}

func (m *machine) prepareConstruct(e *check.Construct, sc *scope, u *unit) *check.Fault {
	for i := range e.Direct {
		if f := m.prepare(e.Direct[i].X, sc, u); f != nil {
			return f
		}
	}
	for _, x := range e.Unpack {
		if f := m.prepare(x.X, sc, u); f != nil {
			return f
		}
	}
	if e.LHS != nil {
		return m.prepare(e.LHS, sc, u)
	}
	return nil
}

func (m *machine) prepareDefined(e *check.IsDefined, sc *scope, u *unit) *check.Fault {
	u.expect()
	if e.X == nil {
		v, val, f := m.lookup(e.Var, sc)
		if f != nil {
			return f
		}
		if val != nil {
			m.deliver(u, int32(e.Slot), value.Bool(true))
			return nil
		}
		return m.watchDefined(&definedCollector{to: u, slot: int32(e.Slot), e: e}, v)
	}
	hook := m.unit(opDefined, e.Layout, sc)
	hook.x, hook.to, hook.slot = e, u, int32(e.Slot)
	if f := m.prepare(e.X, sc, hook); f != nil {
		return f
	}
	m.start(hook)
	return nil
}

func (m *machine) prepareCond(e *check.Cond, sc *scope, u *unit, coll collector) *check.Fault {
	sub := m.unit(opChoose, e.IfLayout, sc)
	sub.x, sub.to, sub.slot, sub.coll = e, u, int32(e.Slot), coll
	if f := m.prepare(e.If, sc, sub); f != nil {
		return f
	}
	u.expect()
	m.start(sub)
	return nil
}

func (m *machine) prepareComp(e *check.Comp, sc *scope, u *unit, coll collector) *check.Fault {
	c := &compCollector{e: e, sc: sc, next: coll, to: u, slot: int32(e.Slot)}
	sub := m.unit(opIterable, e.IterLayout, sc)
	sub.x, sub.aux = e, c
	var f *check.Fault
	if coll == nil {
		f = m.prepare(e.Iter, sc, sub)
	} else {
		f = m.prepareGradual(e.Iter, sc, sub, c)
	}
	if f != nil {
		return f
	}
	u.expect()
	m.start(sub)
	return nil
}

// prepareGradual prepares the expression of a unit so that its values go to a collector as they come.
func (m *machine) prepareGradual(x check.Expr, sc *scope, u *unit, c collector) *check.Fault {
	switch e := x.(type) {
	case *check.Ref:
		v, val, f := m.lookup(e, sc)
		if f != nil {
			return f
		}
		en := u.entry(e.Slot)
		en.from, en.val = v, val
		if v != nil {
			listening, f := m.listen(v, c, e.Where())
			if f != nil || listening {
				return f
			}
		}
		u.coll = c
		return nil
	case *check.AttrRef:
		u.coll, u.notifyAt = c, int32(e.Slot)
		return m.prepareAttr(e, sc, u, false)
	case *check.List:
		return m.prepareItems(e, sc, u, c)
	case *check.Cond:
		return m.prepareCond(e, sc, u, c)
	case *check.Comp:
		return m.prepareComp(e, sc, u, c)
	case *check.Filtered:
		return nil
	}
	u.coll = c
	return m.prepare(x, sc, u)
}

// itemsState gathers the values of the items of a list that are consumed one by one.
type itemsState struct {
	items   []value.Value
	missing int
	to      *unit
	slot    int32
}

func (m *machine) prepareItems(e *check.List, sc *scope, u *unit, c collector) *check.Fault {
	st := &itemsState{missing: len(e.Items), to: u, slot: int32(e.Slot)}
	u.expect()
	for i, x := range e.Items {
		span := e.Spans[i]
		sub := m.unit(opItem, span[1]-span[0], sc)
		sub.base = int32(span[0])
		sub.x, sub.by, sub.aux = x, e.Where(), st
		if f := m.prepareGradual(x, sc, sub, c); f != nil {
			return f
		}
		m.start(sub)
	}
	return nil
}
