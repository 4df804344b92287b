package eval

import (
	"cmp"
	"slices"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/slab"
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

// unit is a piece of a statement that runs when all its frame has a value. What is read each time that one runs comes first: by
// then it has been out of the processor's caches for a while.
type unit struct {
	op op
	// propagate says that a path through an unset relation is no fault.
	propagate bool
	// promised says that the target keeps account of this unit's promise.
	promised bool
	// count is how many requirements are missing, plus one until the unit is complete.
	count int32
	// base is the first slot of the frame.
	base int32
	// slot is where the result goes in the frame of to, for units that compute a part of another.
	slot int32
	// notifyAt is the slot whose value the collector has to be told once it is there; -1 for none.
	notifyAt int32

	frame []entry
	// x is the expression that the unit computes, or the statement that it runs.
	x check.Expr
	// single is the frame of most units.
	single [1]entry
	sc     *scope
	to     *unit // of a finished unit, the next finished one
	// target is the variable that gets the result.
	target *variable
	// by is the statement that reports faults.
	by *check.Loc
	// started numbers the units in the order in which they started; 0 for one that has not, or has finished.
	started int64
	// coll takes the result of x, value by value.
	coll collector
	aux  any
}

func (u *unit) entry(slot int) *entry { return &u.frame[slot-int(u.base)] }

func (u *unit) val(slot int) value.Value { return u.frame[slot-int(u.base)].val }

// unit makes a unit, out of a finished one when there is one.
func (m *machine) unit(o op, size int, sc *scope) *unit {
	u := m.free
	if u == nil {
		if len(m.slab) == 0 {
			m.slab = slab.Make[unit](min(unitBlock<<min(len(m.blocks), 16), maxUnitBlock))
			m.blocks = append(m.blocks, m.slab)
		}
		u, m.slab = &m.slab[0], m.slab[1:]
	} else {
		m.free = u.to
		u.to = nil
	}
	u.op, u.count, u.sc, u.notifyAt = o, 1, sc, -1
	switch {
	case size <= cap(u.frame):
		u.frame = u.frame[:size]
	case size == 1:
		u.frame = u.single[:]
	default:
		u.frame = make([]entry, size, size+1)
	}
	return u
}

// The least and the most units that are allocated at once.
const (
	unitBlock    = 64
	maxUnitBlock = 4096
)

// start makes a unit wait for what its frame lists, and run when there is nothing to wait for.
func (m *machine) start(u *unit) {
	if u.target != nil {
		u.promised = m.promise(u.target)
	}
	m.started++
	m.units++
	u.started = m.started
	m.roll.add(u)
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
		m.schedule(runUnit, 0, u, nil, nil)
	}
}

// recycle makes a finished unit available again. Nobody refers to it any more: all that was to deliver to it has done so.
func (m *machine) recycle(u *unit) {
	m.units--
	m.roll.finished++
	frame := u.frame
	clear(frame)
	*u = unit{frame: frame[:0], to: m.free}
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

// roll lists the units that have not finished, in the order in which they started. It is needed only when nothing moves any more,
// and kept from the first time on.
type roll struct {
	made     bool
	entries  []started
	finished int // since the entries were last cleared of finished units
}

// started is a unit and the number that it has as long as it has not finished.
type started struct {
	u  *unit
	no int64
}

func (r *roll) add(u *unit) {
	if r.made {
		r.entries = append(r.entries, started{u, u.started})
	}
}

// unfinished goes through the units that have started and not finished, in the order in which they started.
func (m *machine) unfinished(yield func(*unit) bool) {
	r := &m.roll
	switch {
	case !r.made:
		r.made = true
		for _, block := range m.blocks {
			for i := range block {
				if block[i].started > 0 {
					r.entries = append(r.entries, started{&block[i], block[i].started})
				}
			}
		}
		slices.SortFunc(r.entries, func(a, b started) int { return cmp.Compare(a.no, b.no) })
		r.finished = 0
	case r.finished > len(r.entries)/2:
		r.entries = slices.DeleteFunc(r.entries, func(s started) bool { return s.u.started != s.no })
		r.finished = 0
	}
	for _, s := range r.entries {
		if s.u.started == s.no && !yield(s.u) {
			return
		}
	}
}
