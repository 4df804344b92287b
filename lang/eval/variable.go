package eval

import (
	"fmt"
	"strings"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

type varKind uint8

const (
	plainVar  varKind = iota
	elemVar           // a comprehension's element: known from the start, reports to collectors
	singleVar         // relation [1]
	maybeVar          // relation [0:1]
	manyVar           // any other relation
)

// variable holds what a name or an attribute stands for.
type variable struct {
	kind varKind
	// done is true once there is a value, for relations once they are frozen.
	done   bool
	queued bool
	// parked is true while the variable sits among those that nobody waited for.
	parked bool
	// potential is set when a parked variable may have got somebody who waits for it.
	potential bool
	// parkedAt is its place among those.
	parkedAt int32

	// outstanding counts promises not yet kept.
	outstanding int32

	attr    *check.Attribute // nil for variables of blocks
	owner   *Instance
	val     value.Value
	at      *check.Loc
	waiters []*unit
	many    *manyState
}

// manyState is what only lists have.
type manyState struct {
	list      value.List
	present   map[value.Value]struct{} // nil while the list is short
	listeners []collector
	// gradual counts waiters that freezing would not help.
	gradual int
}

// presentFrom is the length from which a list keeps a set of its elements.
const presentFrom = 8

func (s *manyState) has(v value.Value) bool {
	if s.present != nil {
		_, ok := s.present[v]
		return ok
	}
	for _, x := range s.list.Items {
		if x == v {
			return true
		}
	}
	return false
}

func (s *manyState) add(v value.Value) {
	s.list.Items = append(s.list.Items, v)
	switch {
	case s.present != nil:
		s.present[v] = struct{}{}
	case len(s.list.Items) >= presentFrom:
		s.present = make(map[value.Value]struct{}, 2*presentFrom)
		for _, x := range s.list.Items {
			s.present[x] = struct{}{}
		}
	}
}

// collector takes values one by one.
type collector interface {
	// receive takes a value. finished says that the collector wants no more.
	receive(m *machine, v value.Value, at *check.Loc) (finished bool, f *check.Fault)
	// pure reports whether all the collector's progress comes from values, none from the end of them.
	pure() bool
	// enlist reports whether the collector was already listening to v, and notes that it is.
	enlist(v *variable) bool
}

// enlisted remembers the variables that a collector listens to.
type enlisted struct{ to []*variable }

func (e *enlisted) enlist(v *variable) bool {
	for _, x := range e.to {
		if x == v {
			return true
		}
	}
	e.to = append(e.to, v)
	return false
}

func flatten(m *machine, c collector, v value.Value, at *check.Loc) *check.Fault {
	l, ok := v.(*value.List)
	if !ok {
		_, f := c.receive(m, v, at)
		return f
	}
	for _, x := range l.Items {
		finished, f := c.receive(m, x, at)
		if f != nil {
			return f
		}
		if finished {
			break
		}
	}
	return nil
}

// name is the attribute that the variable holds.
func (v *variable) name() string {
	if v.attr == nil {
		return "self"
	}
	return v.attr.Name
}

func (v *variable) delayed() bool { return v.kind >= maybeVar }

// canGet reports whether the variable could be complete.
func (v *variable) canGet() bool {
	switch v.kind {
	case maybeVar:
		return v.outstanding == 0
	case manyVar:
		return v.outstanding == 0 && len(v.many.list.Items) >= v.attr.Low
	}
	return v.done
}

// progress counts the waiters that freezing the variable would let run.
func (v *variable) progress() int {
	n := len(v.waiters)
	if v.kind == manyVar {
		n -= v.many.gradual
	}
	if v.attr.Precedes {
		n++
	}
	return n
}

// get returns the value of a variable that is done.
func (v *variable) get() (value.Value, *check.Fault) {
	switch v.kind {
	case manyVar:
		return &v.many.list, nil
	case maybeVar:
		if v.val == nil {
			f := check.New("OptionalValueException", nil, "Optional variable accessed that has no value (attribute `%s` of `%s`)",
				v.attr, value.Str(v.owner)).Note(&v.attr.At, "the relation is optional")
			f.Hint = "ask first whether `" + v.attr.Name + "` is defined"
			return nil, f
		}
	}
	return v.val, nil
}

func (m *machine) wait(v *variable, u *unit) {
	if v.done {
		m.ready(u)
		return
	}
	v.waiters = append(v.waiters, u)
	if v.parked && !v.potential {
		v.potential = true
		m.stirred = append(m.stirred, v)
	}
}

func (m *machine) wake(v *variable) {
	ws := v.waiters
	v.waiters = nil
	for _, u := range ws {
		m.ready(u)
	}
}

// listen registers a collector. It returns false when the variable can not report to one.
func (m *machine) listen(v *variable, c collector, at *check.Loc) (bool, *check.Fault) {
	switch v.kind {
	case elemVar:
		_, f := c.receive(m, v.val, at)
		return true, f
	case manyVar:
	default:
		return false, nil
	}
	for i, n := 0, len(v.many.list.Items); i < n; i++ {
		if _, f := c.receive(m, v.many.list.Items[i], at); f != nil {
			return true, f
		}
		n = len(v.many.list.Items)
	}
	if v.done {
		return true, nil
	}
	if c.enlist(v) {
		v.many.gradual++
		return true, nil
	}
	v.many.listeners = append(v.many.listeners, c)
	if c.pure() {
		v.many.gradual++
	}
	return true, nil
}

// set gives a variable a value. recur says that the other end of a relation is to be set too.
func (m *machine) set(v *variable, x value.Value, at *check.Loc, recur bool) *check.Fault {
	switch v.kind {
	case manyVar:
		return m.setMany(v, x, at, recur)
	case maybeVar:
		return m.setMaybe(v, x, at, recur)
	}
	if v.done {
		if value.Equal(v.val, x) {
			return nil
		}
		return doubleSet(v, x, at)
	}
	if v.attr != nil {
		if _, unknown := x.(*value.Unknown); !unknown {
			if f := m.validateAttr(v.attr, x); f != nil {
				return f
			}
		}
	}
	v.val, v.at, v.done = x, at, true
	if v.kind == singleVar && recur && v.attr.End != nil {
		if f := m.setInverse(v, x, at); f != nil {
			return f
		}
	}
	m.wake(v)
	return nil
}

func doubleSet(v *variable, x value.Value, at *check.Loc) *check.Fault {
	f := check.New("DoubleSetException", nil, "value set twice:\n\told value: %s\n\t\tset at %s\n\tnew value: %s\n\t\tset at %s\n",
		value.Str(v.val), v.at, value.Str(x), at)
	f.Other, f.OtherMsg = v.at, "first set here"
	f.Hint = "a variable has one value; write the second one to another variable, or remove one of the two"
	return f
}

// setInverse sets the other end of a relation.
func (m *machine) setInverse(v *variable, x value.Value, at *check.Loc) *check.Fault {
	other, ok := x.(*Instance)
	if !ok {
		return check.New("RuntimeException", nil, "relation attribute `%s` of `%s` can not be set to %s, because the relation has an inverse",
			v.attr.Name, value.Str(v.owner), value.Str(x))
	}
	return m.setAttribute(other, v.attr.End, v.owner, at, false)
}

// setAttribute sets an attribute of an instance, and says so in the fault when that fails.
func (m *machine) setAttribute(i *Instance, a *check.Attribute, x value.Value, at *check.Loc, recur bool) *check.Fault {
	slot, ok := i.typ.Slot(a.Name)
	if !ok {
		return check.New("NotFoundException", nil, "cannot set attribute with name %s on type %s", a.Name, i.typ)
	}
	f := m.set(i.variable(slot), x, at, recur)
	if f == nil {
		return nil
	}
	return attributeFault(i.place(), i, a.Name, f)
}

func attributeFault(at *check.Loc, i *Instance, name string, cause *check.Fault) *check.Fault {
	return check.Wrap("AttributeException", at, cause, "Could not set attribute `%s` on instance `%s`", name, value.Str(i))
}

func (m *machine) setMaybe(v *variable, x value.Value, at *check.Loc, recur bool) *check.Fault {
	_, null := x.(value.Null)
	if v.done {
		switch {
		case v.val == nil && null:
			return nil
		case v.val == nil:
			return late(v, at)
		case !value.Equal(v.val, x):
			return doubleSet(v, x, at)
		}
	}
	_, unknown := x.(*value.Unknown)
	if !null && !unknown {
		if f := m.validateAttr(v.attr, x); f != nil {
			return f
		}
	}
	if other, ok := x.(*Instance); ok && v.attr.End != nil && recur {
		if f := m.setAttribute(other, v.attr.End, v.owner, at, false); f != nil {
			return f
		}
	}
	if null {
		v.val = nil
	} else {
		v.val = x
	}
	v.at = at
	m.freeze(v)
	return nil
}

func late(v *variable, at *check.Loc) *check.Fault {
	f := check.Located("ModifiedAfterFreezeException", at, "List modified after freeze")
	if v.at != nil {
		f.Note(v.at, "this needed the complete value of %s, which was therefore closed", v.attr)
	}
	f.Hint = fmt.Sprintf("what is added to %s must not depend on its complete value", v.attr)
	return f
}

func (m *machine) setMany(v *variable, x value.Value, at *check.Loc, recur bool) *check.Fault {
	s := v.many
	if _, null := x.(value.Null); null {
		if len(s.list.Items) > 0 {
			texts := make([]string, len(s.list.Items))
			for i, e := range s.list.Items {
				texts[i] = value.Str(e)
			}
			return check.Located("RuntimeException", at,
				"Trying to set relation attribute `%s` of instance `%s` to null but it has values `%s` assigned already",
				v.attr.Name, value.Str(v.owner), strings.Join(texts, ", "))
		}
		v.at = at
		m.freeze(v)
		return nil
	}
	list, isList := x.(*value.List)
	if v.done {
		if m.present(s, x) {
			return nil
		}
		if len(s.list.Items) == v.attr.High {
			return check.Located("RuntimeException", at, "Exceeded relation arity on attribute '%s' of instance '%s'", v.attr.Name, value.Str(v.owner)).
				Note(&v.attr.At, "%s has at most %d here", v.attr, v.attr.High)
		}
		return late(v, at)
	}
	if isList {
		if len(list.Items) == 0 {
			m.offer(v)
		}
		for _, e := range list.Items {
			if f := m.setMany(v, e, at, recur); f != nil {
				return f
			}
		}
		return nil
	}
	if f := m.validateAttr(v.attr, x); f != nil {
		return f
	}
	if s.has(x) {
		m.offer(v)
		return nil
	}
	s.add(x)
	if f := m.notify(v, x, at); f != nil {
		return f
	}
	if v.attr.End != nil && recur {
		if f := m.setInverse(v, x, at); f != nil {
			return f
		}
	}
	if v.attr.High >= 0 {
		if len(s.list.Items) > v.attr.High {
			return check.New("RuntimeException", nil, "List over full: max nr of items is %d, content is %s", v.attr.High, value.Str(&s.list)).
				Note(&v.attr.At, "%s has at most %d here", v.attr, v.attr.High)
		}
		if len(s.list.Items) == v.attr.High {
			m.freeze(v)
		}
	}
	m.offer(v)
	return nil
}

// present reports whether a value, or every element of a list, is in the list already.
func (m *machine) present(s *manyState, x value.Value) bool {
	l, ok := x.(*value.List)
	if !ok {
		return s.has(x)
	}
	for _, e := range l.Items {
		if !s.has(e) {
			return false
		}
	}
	return true
}

func (m *machine) notify(v *variable, x value.Value, at *check.Loc) *check.Fault {
	s := v.many
	ls := s.listeners
	var gone int
	for i, c := range ls {
		if c == nil {
			continue
		}
		finished, f := c.receive(m, x, at)
		if f != nil {
			return f
		}
		if finished {
			if !c.pure() {
				s.gradual++
			}
			s.listeners[i] = nil
			gone++
		}
	}
	if gone > 0 {
		kept := make([]collector, 0, len(s.listeners)-gone)
		for _, c := range s.listeners {
			if c != nil {
				kept = append(kept, c)
			}
		}
		s.listeners = kept
	}
	return nil
}

// promise notes that a value will be set. It returns false when the variable keeps no account of promises.
func (v *variable) promise() bool {
	if !v.delayed() || v.done {
		return false
	}
	v.outstanding++
	return true
}

// keep notes that a promise is kept.
func (m *machine) keep(v *variable, tracked bool) {
	if !v.delayed() || v.done {
		return
	}
	if tracked {
		v.outstanding--
	}
	if v.canGet() {
		m.enqueue(v)
	}
}

// offer puts the variable into the wait queue when it could be complete.
func (m *machine) offer(v *variable) {
	if !v.done && v.canGet() {
		m.enqueue(v)
	}
}

func (m *machine) enqueue(v *variable) {
	if v.queued {
		return
	}
	v.queued = true
	m.waitq.push(v)
}

// freeze closes a relation.
func (m *machine) freeze(v *variable) {
	if v.done {
		return
	}
	if v.parked {
		m.unpark(v)
	}
	v.queued, v.done = true, true
	v.outstanding = 0
	if v.many != nil {
		v.many.listeners = nil
	}
	m.wake(v)
}
