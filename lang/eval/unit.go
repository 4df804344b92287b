package eval

import (
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

type op uint8

const (
	opAssign     op = iota // a value to a variable
	opStmt                 // if, for, an expression
	opTarget               // an attribute assignment whose instance is awaited
	opAttr                 // an attribute assignment
	opItem                 // an item of a list whose elements are consumed one by one
	opCall                 // a call
	opLookup               // a lookup in an index
	opLazyLeft             // the left side of and, or
	opLazyRight            // the right side
	opRead                 // an attribute whose instance is awaited
	opDefined              // is defined, the same
	opPromise              // a promise, the same
	opDefinedEnd           // is defined, when all values are there
	opChoose               // a conditional expression's condition
	opChosen               // its chosen branch
	opIterable             // a comprehension's iterable
	opElement              // a comprehension's element
	opComplete             // a comprehension's elements together
	opImplement            // the condition of an implement statement
	opAnnotation           // the annotation of a relation
)

// entry is a place in a unit's frame: a variable to wait for, or a value that another unit delivers.
type entry struct {
	from *variable
	val  value.Value
}

// unit is a piece of a statement that runs when all its frame has a value.
type unit struct {
	op op
	// count is how many requirements are missing, plus one until the unit is complete.
	count int32
	// base is the first slot of the frame.
	base int32
	// slot is where the result goes in the frame of to, for units that compute a part of another.
	slot int32
	// notifyAt is the slot whose value the collector has to be told once it is there; -1 for none.
	notifyAt int32
	// propagate says that a path through an unset relation is no fault.
	propagate bool
	// promised says that the target keeps account of this unit's promise.
	promised bool

	frame []entry
	sc    *scope
	// x is the expression that the unit computes, or the statement that it runs.
	x  check.Expr
	to *unit
	// target is the variable that gets the result.
	target *variable
	// coll takes the result of x, value by value.
	coll collector
	// by is the statement that reports faults.
	by  *check.Loc
	aux any

	prev, next *unit // all unfinished units, in order of creation
}

func (u *unit) entry(slot int) *entry { return &u.frame[slot-int(u.base)] }

func (u *unit) val(slot int) value.Value { return u.frame[slot-int(u.base)].val }

// unit makes a unit, out of a finished one when there is one.
func (m *machine) unit(o op, size int, sc *scope) *unit {
	u := m.free
	if u == nil {
		if len(m.slab) == 0 {
			m.slab = make([]unit, unitSlab)
		}
		u, m.slab = &m.slab[0], m.slab[1:]
	} else {
		m.free = u.next
		u.next = nil
	}
	u.op, u.count, u.sc, u.notifyAt = o, 1, sc, -1
	if size <= cap(u.frame) {
		u.frame = u.frame[:size]
	} else {
		u.frame = make([]entry, size, size+1)
	}
	return u
}

// unitSlab is how many units are allocated at once.
const unitSlab = 256

// start makes a unit wait for what its frame lists, and run when there is nothing to wait for.
func (m *machine) start(u *unit) {
	if u.target != nil {
		u.promised = u.target.promise()
	}
	u.prev = m.lastUnit
	if m.lastUnit != nil {
		m.lastUnit.next = u
	} else {
		m.firstUnit = u
	}
	m.lastUnit = u
	for i := range u.frame {
		if v := u.frame[i].from; v != nil && u.frame[i].val == nil {
			u.count++
			m.wait(v, u)
		}
	}
	m.ready(u)
}

func (m *machine) ready(u *unit) {
	u.count--
	if u.count == 0 {
		m.runq.push(task{u: u})
	}
}

// finish takes a unit off the list of unfinished ones.
func (m *machine) finish(u *unit) {
	if u.prev != nil {
		u.prev.next = u.next
	} else {
		m.firstUnit = u.next
	}
	if u.next != nil {
		u.next.prev = u.prev
	} else {
		m.lastUnit = u.prev
	}
}

// recycle makes a finished unit available again. Nobody refers to it any more: all that was to deliver to it has done so.
func (m *machine) recycle(u *unit) {
	frame := u.frame
	clear(frame)
	*u = unit{frame: frame[:0], next: m.free}
	m.free = u
}

// expect announces that a value will be delivered to the slot of a unit that has not started.
func (u *unit) expect() { u.count++ }

// deliver puts a value into the frame of a unit. A second value for the same place counts for nothing.
func (m *machine) deliver(u *unit, slot int32, v value.Value) {
	e := u.entry(int(slot))
	if e.val != nil {
		return
	}
	e.val = v
	m.ready(u)
}

// connect makes the slot of a unit wait for a variable that has become known.
func (m *machine) connect(u *unit, slot int32, v *variable, at *check.Loc) *check.Fault {
	e := u.entry(int(slot))
	if u.coll != nil && u.notifyAt == slot {
		listening, f := m.listen(v, u.coll, at)
		if f != nil {
			return f
		}
		if listening {
			u.coll, u.notifyAt = nil, -1
		}
	}
	e.from = v
	m.wait(v, u)
	return nil
}

// values fetches the values of all that the unit waited for.
func (m *machine) values(u *unit) *check.Fault {
	for i := range u.frame {
		e := &u.frame[i]
		if e.from == nil || e.val != nil {
			continue
		}
		v, f := e.from.get()
		if f != nil {
			return f
		}
		e.val = v
		if u.coll != nil && int(u.notifyAt)-int(u.base) == i {
			c := u.coll
			u.coll, u.notifyAt = nil, -1
			if f := flatten(m, c, v, u.x.Where()); f != nil {
				return f
			}
		}
	}
	return nil
}
