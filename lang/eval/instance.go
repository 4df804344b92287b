package eval

import (
	"slices"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/slab"
)

// Instance is an entity instance.
type Instance struct {
	value.IsInstance
	typ    *check.Entity
	m      *machine
	serial int
	slots  []variable
	root   scope // the scope of conditions and of implementations without variables
	// maker is the instance of whose implementation the constructor is part; nil for those of a file.
	maker *Instance
	// first is where the instance was constructed, others where it was again.
	first  *check.Loc
	others []*check.Loc
	// ran is the implementation that ran for the instance first, ranToo those that did later.
	ran    *check.Implementation
	ranToo []*check.Implementation
}

// Entity is the class of the instance.
func (i *Instance) Entity() *check.Entity { return i.typ }

// TypeName is the qualified name of the instance's entity.
func (i *Instance) TypeName() string { return i.typ.FullName() }

// IsA reports whether the instance's entity is, or descends from, the entity of that qualified name.
func (i *Instance) IsA(qualified string) bool {
	if i.typ.FullName() == qualified {
		return true
	}
	e, ok := i.m.prog.Symbols[qualified].(*check.Entity)
	return ok && i.typ.IsA(e)
}

func (i *Instance) variable(slot int) *variable { return &i.slots[slot] }

// place is where the instance was constructed last.
func (i *Instance) place() *check.Loc {
	if n := len(i.others); n > 0 {
		return i.others[n-1]
	}
	return i.first
}

// At is where the instance was constructed first.
func (i *Instance) At() *check.Loc { return i.first }

// Attribute returns the value of an attribute or relation (see [value.Instance]).
func (i *Instance) Attribute(name string) (v value.Value, ok bool, err error) {
	slot, ok := i.typ.Slot(name)
	if !ok {
		if name == "self" {
			return i, true, nil
		}
		return nil, false, nil
	}
	x := i.variable(slot)
	if !x.done {
		return nil, true, &value.UnsetError{Instance: i, Attribute: name, Waiter: x}
	}
	v, f := x.get()
	if f != nil {
		return nil, true, &value.OptionalError{Instance: i, Attribute: name}
	}
	return v, true, nil
}

// AttributeNames lists attributes and relations, in the order of the slots.
func (i *Instance) AttributeNames() []string {
	names := make([]string, len(i.typ.All))
	for k, a := range i.typ.All {
		names[k] = a.Name
	}
	return names
}

// Serial numbers instances in creation order, from 1.
func (i *Instance) Serial() int { return i.serial }

// Places lists every place that constructed this instance.
func (i *Instance) Places() []string {
	out := make([]string, 0, 1+len(i.others))
	out = append(out, i.first.String())
	for _, p := range i.others {
		out = append(out, p.String())
	}
	return out
}

var _ value.Instance = (*Instance)(nil)

// scope holds the variables of a block. All scopes inside an implementation know its instance.
type scope struct {
	parent *scope
	inst   *Instance
	vars   []variable
}

// scope makes a scope with n variables inside another one, which is nil for those that are directly in a file.
func (m *machine) scope(parent *scope, n int) *scope {
	sc := m.slabs.scopes.New()
	sc.parent, sc.vars = parent, m.slabs.variables.Take(n)
	if parent != nil {
		sc.inst = parent.inst
	}
	return sc
}

// blank is what the variables of a new instance of an entity are like.
type blank struct {
	vars []variable
	// open are the slots of the relations that could be complete with nothing in them, in order.
	open []int
	// self are the slots of attributes of the name self, which stand for the instance itself.
	self []int
}

// blank is what new instances of an entity are made after.
func (m *machine) blank(e *check.Entity) *blank {
	if b := m.blanks[e.ID]; b != nil {
		return b
	}
	b := &blank{vars: make([]variable, len(e.All))}
	m.blanks[e.ID] = b
	for k, a := range e.All {
		v := &b.vars[k]
		if a.Name == "self" { // the instance itself goes before an attribute of that name
			v.done = true
			b.self = append(b.self, k)
			continue
		}
		v.attr = a
		switch a.Kind() {
		case check.Single:
			v.kind = singleVar
		case check.Maybe:
			v.kind = maybeVar
		case check.Many:
			v.kind = manyVar
		case check.Plain:
		}
		if v.delayed() && v.canGet() {
			b.open = append(b.open, k)
		}
	}
	return b
}

func (m *machine) newInstance(e *check.Entity, at *check.Loc) *Instance {
	b := m.blank(e)
	i := m.slabs.instances.New()
	i.typ, i.m, i.first, i.slots = e, m, at, m.slabs.variables.Take(len(b.vars))
	i.root.inst = i
	m.serial++
	i.serial = m.serial
	copy(i.slots, b.vars)
	for k := range i.slots {
		i.slots[k].owner = i
	}
	for _, k := range b.self {
		i.slots[k].val, i.slots[k].at = i, at
	}
	for _, k := range b.open {
		m.enqueue(&i.slots[k])
	}
	return i
}

// register makes an instance known to its entity and all ancestors, and to their indexes.
func (m *machine) register(i *Instance) *check.Fault {
	m.instances = append(m.instances, i)
	for _, e := range i.typ.Indexed {
		if f := m.addToIndexes(i, e); f != nil {
			return f
		}
	}
	return nil
}

// started notes that an implementation runs for the instance; false when it did before.
func (i *Instance) started(im *check.Implementation) bool {
	switch {
	case i.ran == nil:
		i.ran = im
		return true
	case i.ran == im || slices.Contains(i.ranToo, im):
		return false
	}
	i.ranToo = append(i.ranToo, im)
	return true
}

// slabs are stocks of what instances are made of. All of it lives until the end of the compile.
type slabs struct {
	instances slab.Of[Instance]
	variables slab.Of[variable]
	relations slab.Of[relationState]
	waiters   slab.Of[waiters]
	scopes    slab.Of[scope]
	values    slab.Of[value.Value]
	text      slab.Of[byte]
}
