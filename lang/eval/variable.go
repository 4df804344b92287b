package eval

import (
	"fmt"
	"slices"
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

// variable holds what a name or an attribute stands for. There are some ten of them for each instance, most of which nothing
// much happens to: each fills one line of the processor's cache, and what few need is kept apart.
type variable struct {
	kind varKind
	// done is true once there is a value, for relations once they are frozen.
	done  bool
	state waitState
	// parkedAt is the place among the variables that nobody waited for.
	parkedAt int32

	attr    *check.Attribute // nil for variables of blocks
	owner   *Instance
	val     value.Value // of other kinds than manyVar
	at      *check.Loc
	waiters *waiters // nil while there are none
	rel     *relationState
}

// waitState says where a relation is while it is not frozen.
type waitState uint8

const (
	queued  waitState = 1 << iota // in the wait queue, or has been there
	parked                        // among those that nobody waited for
	stirred                       // among those that may have got somebody who waits since they were parked
)

// is reports whether the variable is in a state.
func (v *variable) is(s waitState) bool { return v.state&s != 0 }

// waiters are the units that wait for a variable, in the order in which they came.
type waiters struct {
	first *unit
	more  []*unit
}

func (w *waiters) count() int {
	if w == nil {
		return 0
	}
	return 1 + len(w.more)
}

// all goes through the units.
func (w *waiters) all(yield func(*unit) bool) {
	if w == nil || !yield(w.first) {
		return
	}
	for _, u := range w.more {
		if !yield(u) {
			return
		}
	}
}

// relationState is what only relations have that something happens to.
type relationState struct {
	// outstanding counts promises not yet kept.
	outstanding int32
	// gradual counts waiters that freezing would not help.
	gradual int32
	// The rest is for lists.
	list      value.List
	present   map[*Instance]struct{} // the instances of the list; nil while it is short
	listeners []collector
}

// noRelation is the state of a relation that nothing has happened to. It is never changed.
var noRelation = &relationState{}

// relation is the state of a relation, to be looked at.
func (v *variable) relation() *relationState {
	if v.rel == nil {
		return noRelation
	}
	return v.rel
}

// change is the state of a relation, to be changed.
func (m *machine) change(v *variable) *relationState {
	if v.rel == nil {
		v.rel = m.slabs.relations.New()
	}
	return v.rel
}

// items are the elements of a list so far.
func (v *variable) items() []value.Value { return v.relation().list.Items }

// presentFrom is the length from which a list keeps a set of its elements.
const presentFrom = 8

func (s *relationState) has(v value.Value) bool {
	if i, ok := v.(*Instance); ok && s.present != nil {
		_, ok := s.present[i]
		return ok
	}
	return slices.Contains(s.list.Items, v)
}

func (m *machine) addTo(s *relationState, v value.Value) {
	if s.list.Items == nil {
		s.list.Items = m.slabs.values.Take(2)[:0]
	}
	s.list.Items = append(s.list.Items, v)
	news := s.list.Items[len(s.list.Items)-1:]
	switch {
	case s.present != nil:
	case len(s.list.Items) < presentFrom:
		return
	default:
		s.present = make(map[*Instance]struct{}, 2*presentFrom)
		news = s.list.Items
	}
	for _, x := range news {
		if i, ok := x.(*Instance); ok {
			s.present[i] = struct{}{}
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
	if slices.Contains(e.to, v) {
		return true
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
		return v.relation().outstanding == 0
	case manyVar:
		return v.relation().outstanding == 0 && len(v.items()) >= v.attr.Low
	default:
		return v.done
	}
}

// progress counts the waiters that freezing the variable would let run.
func (v *variable) progress() int {
	n := v.waiters.count()
	if v.kind == manyVar {
		n -= int(v.relation().gradual)
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
		return &v.relation().list, nil
	case maybeVar:
		if v.val == nil {
			f := check.New("OptionalValueException", nil, "Optional variable accessed that has no value (attribute `%s` of `%s`)",
				v.attr, value.Str(v.owner)).Note(&v.attr.At, "the relation is optional")
			f.Hint = "ask first whether `" + v.attr.Name + "` is defined"
			f.Shown = v.owner.place()
			return nil, f
		}
	default:
	}
	return v.val, nil
}

func (m *machine) wait(v *variable, u *unit) {
	if v.done {
		m.ready(u)
		return
	}
	if w := v.waiters; w != nil {
		w.more = append(w.more, u)
	} else {
		v.waiters = m.newWaiters(u)
	}
	if v.is(parked) && !v.is(stirred) {
		v.state |= stirred
		m.stirred = append(m.stirred, v)
	}
}

func (m *machine) wake(v *variable) {
	w := v.waiters
	if w == nil {
		return
	}
	v.waiters = nil
	m.ready(w.first)
	for _, u := range w.more {
		m.ready(u)
	}
	clear(w.more)
	w.first, w.more = nil, w.more[:0]
	m.waiters = append(m.waiters, w)
}

// newWaiters is a list of one unit, made of one that is no longer used if there is any.
func (m *machine) newWaiters(u *unit) *waiters {
	var w *waiters
	if n := len(m.waiters); n > 0 {
		w, m.waiters = m.waiters[n-1], m.waiters[:n-1]
	} else {
		w = m.slabs.waiters.New()
	}
	w.first = u
	return w
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
	for i := 0; i < len(v.items()); i++ { //nolint:intrange // receiving a value may add others
		if _, f := c.receive(m, v.items()[i], at); f != nil {
			return true, f
		}
	}
	if v.done {
		return true, nil
	}
	s := m.change(v)
	if c.enlist(v) {
		s.gradual++
		return true, nil
	}
	s.listeners = append(s.listeners, c)
	if c.pure() {
		s.gradual++
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
	default: // one value, below
	}
	if v.done {
		if value.Equal(v.val, x) {
			return nil
		}
		return doubleSet(v, x, at)
	}
	if v.attr != nil {
		if _, unknown := x.(*value.Unknown); !unknown {
			if f := m.suits(v.attr, x); f != nil {
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
	return m.setEnd(v, other, at)
}

// setEnd sets the other end of a relation at an instance.
func (m *machine) setEnd(v *variable, other *Instance, at *check.Loc) *check.Fault {
	end := v.attr.End
	f := m.setAttribute(other, end, v.owner, at, false)
	if f != nil && end != v.attr {
		f.Note(&end.At, "to set %s is to set %s, the other end of the relation", v.attr, end)
	}
	return f
}

// setAttribute sets an attribute of an instance, and says so in the fault when that fails.
func (m *machine) setAttribute(i *Instance, a *check.Attribute, x value.Value, at *check.Loc, recur bool) *check.Fault {
	slot, ok := cached(&a.Cache, i.typ, a.Name)
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
		if f := m.suits(v.attr, x); f != nil {
			return f
		}
	}
	if other, ok := x.(*Instance); ok && v.attr.End != nil && recur {
		if f := m.setEnd(v, other, at); f != nil {
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
	if _, null := x.(value.Null); null {
		if items := v.items(); len(items) > 0 {
			texts := make([]string, len(items))
			for i, e := range items {
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
		if v.relation().contains(x) {
			return nil
		}
		if len(v.items()) == v.attr.High {
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
	if f := m.suits(v.attr, x); f != nil {
		return f
	}
	if v.relation().has(x) {
		m.offer(v)
		return nil
	}
	s := m.change(v)
	m.addTo(s, x)
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

// contains reports whether a value, or every element of a list, is in the list already.
func (s *relationState) contains(x value.Value) bool {
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
	s := m.change(v)
	var gone int
	for i, c := range s.listeners {
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
func (m *machine) promise(v *variable) bool {
	if !v.delayed() || v.done {
		return false
	}
	m.change(v).outstanding++
	return true
}

// keep notes that a promise is kept.
func (m *machine) keep(v *variable, tracked bool) {
	if !v.delayed() || v.done {
		return
	}
	if tracked {
		m.change(v).outstanding--
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
	if v.is(queued) {
		return
	}
	v.state |= queued
	m.waitq.push(v)
}

// freeze closes a relation.
func (m *machine) freeze(v *variable) {
	if v.done {
		return
	}
	if v.is(parked) {
		m.unpark(v)
	}
	v.state |= queued
	v.done = true
	if s := v.rel; s != nil {
		s.outstanding, s.listeners = 0, nil
	}
	m.wake(v)
}
