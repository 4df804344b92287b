package eval

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// emitBlock schedules the statements of a block.
func (m *machine) emitBlock(b *check.Block, sc *scope) *check.Fault {
	var first *check.Fault
	for _, st := range b.Stmts {
		f := m.emit(st, sc)
		switch {
		case f == nil:
		case first == nil:
			first = f.By(st.Where(), false)
		case len(m.faults.more) < maxFaults:
			m.faults.more = append(m.faults.more, f.By(st.Where(), false))
		}
	}
	return first
}

// innerScope makes the scope of a block inside sc, which is sc itself when the block declares nothing.
func (m *machine) innerScope(sc *scope, b *check.Block) *scope {
	if b.Bare {
		return sc
	}
	return m.scope(sc, len(b.Names))
}

func (m *machine) emit(st check.Stmt, sc *scope) *check.Fault {
	switch s := st.(type) {
	case *check.Assign:
		v, _, f := m.lookup(s.Target, sc)
		if f != nil {
			return f
		}
		u := m.unit(opAssign, s.Layout, sc)
		u.x, u.by, u.target = s.Value, s.Where(), v
		if f := m.prepare(s.Value, sc, u); f != nil {
			return f
		}
		m.start(u)
	case *check.SetAttr:
		u := m.unit(opTarget, s.Layout, sc)
		u.x = s
		if f := m.prepare(s.X, sc, u); f != nil {
			return f
		}
		m.start(u)
	case *check.ExprStmt:
		u := m.unit(opStmt, s.Layout, sc)
		u.x = s
		if f := m.prepare(s.X, sc, u); f != nil {
			return f
		}
		m.start(u)
	case *check.If:
		u := m.unit(opStmt, s.Layout, sc)
		u.x = s
		ps, f := m.schedulePromises(s.Promises, sc)
		if f != nil {
			return f
		}
		if ps != nil {
			u.aux = ps
		}
		if f := m.prepare(s.Cond, sc, u); f != nil {
			return f
		}
		m.start(u)
	case *check.For:
		u := m.unit(opStmt, s.Layout, sc)
		u.x = s
		ps, f := m.schedulePromises(s.Promises, sc)
		if f != nil {
			return f
		}
		if ps != nil {
			u.aux = ps
		}
		if f := m.prepareGradual(s.Iter, sc, u, &forCollector{st: s, sc: sc}); f != nil {
			return f
		}
		m.start(u)
	case *check.Annotate:
		for _, a := range s.Annotations {
			u := m.unit(opAnnotation, a.Layout, sc)
			u.x, u.by, u.target = a.X, a.X.Where(), &m.annotations[a.ID]
			if f := m.prepare(a.X, sc, u); f != nil {
				return f
			}
			m.start(u)
		}
	}
	return nil
}

// promise announces that a block below a waiting statement may assign an attribute.
type promise struct {
	on      *variable
	tracked bool
	kept    bool
}

// promises are those that one statement holds.
type promises []*promise

func (m *machine) schedulePromises(ps []check.Promise, sc *scope) (promises, *check.Fault) {
	if len(ps) == 0 {
		return nil, nil
	}
	out := make(promises, len(ps))
	for i := range ps {
		p := &promise{}
		out[i] = p
		hook := m.unit(opPromise, ps[i].Layout, sc)
		hook.propagate, hook.by = true, ps[i].At
		hook.aux = &promised{p, &ps[i]}
		if f := m.prepareInstance(ps[i].X, sc, hook, true); f != nil {
			return nil, f
		}
		m.start(hook)
	}
	return out, nil
}

type promised struct {
	p    *promise
	stat *check.Promise
}

func (m *machine) keepPromises(u *unit) {
	ps, ok := u.aux.(promises)
	if !ok {
		return
	}
	for _, p := range ps {
		if p.on != nil && !p.kept {
			m.keep(p.on, p.tracked)
		}
		p.kept = true
	}
}

// exec runs a unit. A fault ends the compile.
func (m *machine) exec(u *unit) *check.Fault {
	f := m.run1(u)
	if f == nil {
		m.recycle(u)
		return nil
	}
	if f.Unset != nil {
		m.retry(u, f)
		return nil
	}
	return f
}

// retry makes a call wait for the attributes that it found without a value.
func (m *machine) retry(u *unit, f *check.Fault) {
	vs, _ := f.Unset.([]*variable)
	st, ok := u.aux.(*callState)
	if !ok {
		st = &callState{}
		u.aux = st
	}
	u.count += int32(len(vs))
	st.more = append(st.more, vs...)
	for _, v := range vs {
		m.wait(v, u)
	}
}

func (m *machine) run1(u *unit) *check.Fault {
	switch u.op {
	case opAssign, opAnnotation:
		v, f := m.result(u)
		if f == nil {
			f = m.set(u.target, v, u.x.Where(), true)
			if f != nil {
				f.On(u.x.Where())
			}
		}
		if f != nil {
			return f.By(u.by, false)
		}
	case opStmt:
		if f := m.runStmt(u); f != nil {
			return f.By(u.x.Where(), false)
		}
	case opTarget:
		s, _ := u.x.(*check.SetAttr)
		if f := m.runTarget(u, s); f != nil {
			return f.By(s.Where(), true)
		}
	case opAttr:
		return m.runAttr(u)
	case opItem:
		return m.runItem(u)
	case opCall:
		return m.runCall(u)
	case opLookup:
		e, _ := u.x.(*check.Lookup)
		if f := m.runLookup(u, e); f != nil {
			return f.By(e.Where(), true)
		}
	case opLazyLeft:
		e, _ := u.x.(*check.Lazy)
		if f := m.runLazy(u, e); f != nil {
			return f.By(e.Where(), true)
		}
	case opLazyRight:
		e, _ := u.aux.(*check.Lazy)
		v, f := m.result(u)
		if f == nil {
			if f = validateBool(v); f != nil {
				f.On(u.x.Where())
			}
		}
		if f != nil {
			return f.By(e.Where(), false)
		}
		m.deliver(u.to, u.slot, v)
	case opRead, opDefined, opPromise:
		return m.runHook(u)
	case opDefinedEnd:
		c, _ := u.aux.(*definedCollector)
		c.answer(m, definedness(u.frame[0].from))
	case opChoose:
		e, _ := u.x.(*check.Cond)
		return m.runChoose(u, e)
	case opChosen:
		at := u.by
		v, f := m.result(u)
		if f != nil {
			return f.Force(at)
		}
		m.deliver(u.to, u.slot, v)
	case opIterable:
		e, _ := u.x.(*check.Comp)
		if f := m.runIterable(u, e); f != nil {
			return f.Force(e.Where())
		}
	case opElement:
		v, f := m.result(u)
		if f != nil {
			return f.By(u.by, false)
		}
		el, _ := u.aux.(element)
		el.c.put(m, el.i, v)
	case opComplete:
		c, _ := u.aux.(*compCollector)
		l, f := c.gather()
		if f != nil {
			return f.By(u.by, false)
		}
		m.deliver(c.to, c.slot, l)
	case opImplement:
		im, _ := u.aux.(*check.Implement)
		if f := m.runImplement(u, im); f != nil {
			return f.By(&im.At, false)
		}
	}
	return nil
}

// result evaluates the expression of a unit and reports its value to the unit's collector.
func (m *machine) result(u *unit) (value.Value, *check.Fault) {
	if f := m.values(u); f != nil {
		return nil, f
	}
	return m.root(u, u.x)
}

func (m *machine) root(u *unit, x check.Expr) (value.Value, *check.Fault) {
	v, f := m.eval(u, x)
	if f != nil {
		return nil, f
	}
	if u.coll != nil && u.notifyAt < 0 {
		if f := flatten(m, u.coll, v, x.Where()); f != nil {
			return nil, f
		}
	}
	return v, nil
}

func (m *machine) runStmt(u *unit) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	switch s := u.x.(type) {
	case *check.ExprStmt:
		_, f := m.eval(u, s.X)
		return f
	case *check.If:
		m.keepPromises(u)
		c, f := m.eval(u, s.Cond)
		if f != nil {
			return f
		}
		if _, unknown := c.(*value.Unknown); unknown {
			return nil
		}
		b, ok := c.(value.Bool)
		if !ok {
			return check.New(notBool(c), s.Where(),
				"Invalid value `%s`: the condition for an if statement can only be a boolean expression", value.Str(c)).
				On(s.Cond.Where())
		}
		blk := s.Else
		if b {
			blk = s.Then
		}
		return m.emitBlock(blk, m.innerScope(u.sc, blk))
	case *check.For:
		m.keepPromises(u)
		v, f := m.root(u, s.Iter)
		if f != nil {
			return f
		}
		switch v.(type) {
		case *value.List, *value.Unknown:
			return nil
		}
		msg := "A for loop can only be applied to lists and relations."
		if name := refText(s.Iter); name != "" {
			msg += " Hint: '" + name + "' resolves to '" + value.Str(v) + "'."
		} else {
			msg += " Hint: '" + value.Str(v) + "' is not a list."
		}
		return check.New("TypingException", s.Where(), "%s", msg).On(s.Iter.Where())
	}
	return nil
}

// refText is a reference as written, empty for other expressions.
func refText(x check.Expr) string {
	switch e := x.(type) {
	case *check.Ref:
		return e.Name
	case *check.AttrRef:
		return e.Text + "." + e.Name
	}
	return ""
}

// runTarget goes on with the assignment of an attribute whose instance is known.
func (m *machine) runTarget(u *unit, s *check.SetAttr) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	v, f := m.eval(u, s.X)
	if f != nil {
		return f
	}
	i, ok := v.(*Instance)
	if !ok {
		return check.New("TypingException", s.Where(), "The object at %s is not an Entity but a %s with value %s",
			s.TargetText, value.TypeName(v), value.Str(v)).On(&s.TargetAt)
	}
	target, f := attributeOf(i, s.Name, &s.Cache)
	if f != nil {
		return f.On(&s.TargetAt)
	}
	if s.Append && target.kind != manyVar {
		f := check.New("TypingException", s.Where(), "Can not use += on relations with multiplicity 1").On(&s.TargetAt)
		if target.attr != nil {
			f.Note(&target.attr.At, "%s is defined here", target.attr)
		}
		return f
	}
	return m.assignAttr(i, s.Name, target, s.Value, s.ValLayout, u.sc, s.Where())
}

func noAttribute(i *Instance, name string) *check.Fault {
	f := check.New("NotFoundException", nil, "could not find attribute with name: %s in type %s", name, i.typ)
	f.Hint = i.typ.AttributeHint(name)
	return f.Note(&i.typ.At, "%s is defined here", i.typ)
}

// assignAttr schedules the assignment of a value to an attribute; relations take the elements of lists as they come.
func (m *machine) assignAttr(i *Instance, name string, target *variable, x check.Expr, layout int, sc *scope, by *check.Loc) *check.Fault {
	h := m.unit(opAttr, layout, sc)
	h.x, h.by, h.target = x, by, target
	var f *check.Fault
	if target.kind == manyVar {
		f = m.prepareGradual(x, sc, h, &attrCollector{by: by, inst: i, name: name, target: target})
	} else {
		f = m.prepare(x, sc, h)
	}
	if f != nil {
		return f
	}
	m.start(h)
	return nil
}

func (m *machine) runAttr(u *unit) *check.Fault {
	v, f := m.result(u)
	if f == nil {
		if f = m.set(u.target, v, u.x.Where(), true); f == nil {
			m.keep(u.target, u.promised)
			return nil
		}
		f.On(u.x.Where())
	}
	if f.Unset != nil {
		return f
	}
	switch f.Class {
	case "AttributeException":
		return f.By(u.by, false)
	case "OptionalValueException":
		f.Force(u.by)
	default:
		f.By(u.by, false)
	}
	return attributeFault(u.by, u.target.owner, u.target.name(), f)
}

func (m *machine) runItem(u *unit) *check.Fault {
	v, f := m.result(u)
	if f != nil {
		return f.By(u.by, false)
	}
	st, _ := u.aux.(*itemsState)
	if l, ok := v.(*value.List); ok {
		st.items = append(st.items, l.Items...)
	} else {
		st.items = append(st.items, v)
	}
	st.missing--
	if st.missing == 0 {
		m.deliver(st.to, st.slot, &value.List{Items: st.items})
	}
	return nil
}

func validateBool(v value.Value) *check.Fault {
	switch v.(type) {
	case value.Bool, *value.Unknown:
		return nil
	}
	return check.New(notBool(v), nil, "Invalid value '%s', expected bool", value.Str(v))
}

// notBool is the class of the fault that a value is no boolean.
func notBool(v value.Value) string {
	if _, ok := v.(*value.Reference); ok {
		return "UnexpectedReference"
	}
	return "RuntimeException"
}

func (m *machine) runLazy(u *unit, e *check.Lazy) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	v, f := m.eval(u, e.X)
	if f != nil {
		return f
	}
	if _, unknown := v.(*value.Unknown); unknown {
		m.deliver(u.to, u.slot, v)
		return nil
	}
	b, ok := v.(value.Bool)
	if !ok {
		return check.New(notBool(v), e.Where(), "Invalid left hand value `%s`: `%s` expects a boolean", value.Str(v), lazyName(e)).
			On(e.X.Where())
	}
	if bool(b) == e.Or {
		m.deliver(u.to, u.slot, b)
		return nil
	}
	r := m.unit(opLazyRight, e.RightLayout, u.sc)
	r.x, r.to, r.slot, r.aux = e.Y, u.to, u.slot, e
	if f := m.prepare(e.Y, u.sc, r); f != nil {
		return f
	}
	m.start(r)
	return nil
}

func lazyName(e *check.Lazy) string {
	if e.Or {
		return "or"
	}
	return "and"
}

// runHook goes on with a unit that waited for an instance, to read an attribute, to ask whether it is defined, or to promise
// a value for it.
func (m *machine) runHook(u *unit) *check.Fault {
	var at *check.Loc
	var x check.Expr
	var name string
	var cache *check.SlotCache
	switch u.op {
	case opRead:
		e, _ := u.x.(*check.AttrRef)
		at, x, name, cache = e.Where(), e.X, e.Name, &e.Cache
	case opDefined:
		e, _ := u.x.(*check.IsDefined)
		at, x, name, cache = e.Where(), e.X, e.Name, &e.Cache
	default:
		p, _ := u.aux.(*promised)
		at, x, name = u.by, p.stat.X, p.stat.Name
	}
	v, f := m.hooked(u, x, name, cache)
	if f != nil {
		return f.Force(at)
	}
	switch u.op {
	case opRead:
		f = m.connect(u.to, u.slot, v, at)
	case opDefined:
		e, _ := u.x.(*check.IsDefined)
		f = m.watchDefined(&definedCollector{to: u.to, slot: u.slot, e: e}, v)
		if f != nil {
			f.Force(at)
		}
		return f
	default:
		p, _ := u.aux.(*promised)
		if !p.p.kept {
			p.p.on, p.p.tracked = v, m.promise(v)
		}
	}
	if f != nil {
		return f.Force(at)
	}
	return nil
}

// hooked finds the attribute that a unit waited for the instance of. Where a path leads through an unset relation and that is
// no fault, the variable is that relation.
func (m *machine) hooked(u *unit, x check.Expr, name string, cache *check.SlotCache) (*variable, *check.Fault) {
	if f := m.values(u); f != nil {
		if u.propagate && f.Class == "OptionalValueException" {
			for i := range u.frame {
				if v := u.frame[i].from; v != nil && v.kind == maybeVar && v.done && v.val == nil {
					return v, nil
				}
			}
		}
		return nil, f
	}
	v, f := m.eval(u, x)
	if f != nil {
		return nil, f
	}
	i, ok := v.(*Instance)
	if !ok {
		if _, list := v.(*value.List); list {
			f := check.New("RuntimeException", nil, "can not get attribute %s, %s is not an entity but a list", name, value.Str(v))
			f.Hint = fmt.Sprintf("for each of the elements: [x.%s for x in %s]", name, cmp.Or(refText(x), "..."))
			return nil, f
		}
		return nil, check.New("RuntimeException", nil, "can not get attribute %s, %s is not an entity but a %s with value '%s'",
			name, refText(x), value.TypeName(v), value.Str(v))
	}
	return attributeOf(i, name, cache)
}

// attributeOf finds an attribute of an instance. cache remembers where the last one of the name was; it may be nil.
func attributeOf(i *Instance, name string, cache *check.SlotCache) (*variable, *check.Fault) {
	var slot int
	var ok bool
	if cache != nil {
		slot, ok = cached(cache, i.typ, name)
	} else {
		slot, ok = i.typ.Slot(name)
	}
	if !ok {
		if name == "self" {
			return &variable{done: true, val: i, at: i.place(), owner: i}, nil
		}
		return nil, noAttribute(i, name)
	}
	return i.variable(slot), nil
}

func (m *machine) runChoose(u *unit, e *check.Cond) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	v, f := m.eval(u, e.If)
	if f != nil {
		return f
	}
	if x, unknown := v.(*value.Unknown); unknown {
		m.deliver(u.to, u.slot, &value.Unknown{Source: x.Source})
		return nil
	}
	b, ok := v.(value.Bool)
	if !ok {
		return check.New("RuntimeException", e.Where(),
			"Invalid value `%s`: the condition for a conditional expression must be a boolean expression", value.Str(v)).
			On(e.If.Where())
	}
	x, layout := e.Else, e.ElseLayout
	if b {
		x, layout = e.Then, e.ThenLayout
	}
	c := m.unit(opChosen, layout, u.sc)
	c.x, c.to, c.slot, c.by = x, u.to, u.slot, e.Where()
	if u.coll == nil {
		f = m.prepare(x, u.sc, c)
	} else {
		f = m.prepareGradual(x, u.sc, c, u.coll)
	}
	if f != nil {
		return f
	}
	m.start(c)
	return nil
}

func (m *machine) runIterable(u *unit, e *check.Comp) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	v, f := m.root(u, e.Iter)
	if f != nil {
		return f
	}
	switch v.(type) {
	case *value.List, *value.Unknown:
	default:
		return check.New("TypingException", e.Where(), "A list comprehension can only be applied to lists and relations, got %s", value.TypeName(v)).
			On(e.Iter.Where())
	}
	c, _ := u.aux.(*compCollector)
	c.sc = u.sc
	return c.complete(m, v)
}

// emitImplements schedules the conditions of the implement statements that apply to an instance.
func (m *machine) emitImplements(i *Instance) *check.Fault {
	for k, im := range i.typ.Subs {
		if im.When == nil {
			m.schedule(runImplements, int32(k), nil, i, nil)
			continue
		}
		u := m.unit(opImplement, im.Layout, &i.root)
		u.x, u.aux = im.When, im
		if f := m.prepare(im.When, &i.root, u); f != nil {
			if f.Class == "NotFoundException" {
				f.By(&im.At, true)
			}
			return f
		}
		m.start(u)
	}
	return nil
}

// runImplement runs the implementations of an implement statement when its condition holds.
func (m *machine) runImplement(u *unit, im *check.Implement) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	v, f := m.eval(u, im.When)
	if f != nil {
		return f
	}
	switch b := v.(type) {
	case *value.Unknown:
		return nil
	case value.Bool:
		if b {
			return m.implement(u.sc.inst, im)
		}
		return nil
	}
	return check.New(notBool(v), nil,
		"Invalid value `%s`: the condition for a conditional implementation can only be a boolean expression", value.Str(v)).
		On(im.When.Where())
}

// implement emits the implementations of an implement statement that have not run for the instance yet.
func (m *machine) implement(i *Instance, im *check.Implement) *check.Fault {
	for _, impl := range im.Using {
		if !i.started(impl) {
			continue
		}
		body := m.prog.Statements(impl)
		if f := m.emitBlock(body, m.innerScope(&i.root, body)); f != nil {
			return f
		}
	}
	return nil
}

// where is the place of the statement that a unit belongs to.
func (u *unit) where() *check.Loc {
	if u.by != nil && u.op != opStmt && u.op != opTarget {
		return u.by
	}
	return u.expression()
}

// expression is the place of what the unit computes.
func (u *unit) expression() *check.Loc {
	if u.x != nil {
		return u.x.Where()
	}
	switch a := u.aux.(type) {
	case *check.Implement:
		return &a.At
	case *promised:
		return a.stat.At
	case *definedCollector:
		return a.e.Where()
	}
	return u.by
}

// maxRemaining bounds how many waiting statements a fault lists.
const maxRemaining = 10

// remaining lists the places of the units that never ran.
func (m *machine) remaining() string {
	var b strings.Builder
	b.WriteByte('[')
	n := 0
	for u := range m.unfinished {
		if n == maxRemaining {
			b.WriteString(", ...")
			break
		}
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(u.where().String())
		n++
	}
	b.WriteByte(']')
	return b.String()
}
