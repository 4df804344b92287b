package eval

import (
	"fmt"
	"slices"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

const (
	// maxFaults bounds how many faults a run reports.
	maxFaults = 20
	// maxAfterFault bounds how many steps a run goes on for after its first fault, to find those that do not depend on it.
	maxAfterFault = 100_000
	// maxMakers bounds how many instances are listed that led to the one with a fault.
	maxMakers = 4
)

// faults are what a run has to report. A unit that failed delivers nothing, so that what depends on it never runs and has no
// fault of its own.
type faults struct {
	list []*check.Fault
	// more are those of further statements of a block whose first fault is on its way to the run.
	more []*check.Fault
	// again counts how often a fault came up at its place after the first time.
	again map[faultKey]int
	// refused are the variables whose value a fault is about.
	refused map[*variable]bool
	// from is the step of the first.
	from int64
}

type faultKey struct {
	class     string
	at, value diag.Range
}

func keyOf(f *check.Fault) faultKey {
	at, value := f.Spot()
	key := faultKey{class: f.Class, at: at.Range()}
	if value != nil {
		key.value = value.Range()
	}
	return key
}

// fail records the fault of a task, unless there is one of its class at the same place.
func (m *machine) fail(f *check.Fault, t task) {
	if m.faults.add(f, m.steps) {
		m.context(f, t)
	}
	more := m.faults.more
	m.faults.more = nil
	for _, g := range more {
		if m.faults.add(g, m.steps) {
			m.context(g, t)
		}
	}
}

// add reports whether the fault is a new one.
func (fs *faults) add(f *check.Fault, step int64) bool {
	if len(fs.list) == 0 {
		fs.from = step
		fs.again = map[faultKey]int{}
	}
	key := keyOf(f)
	if slices.ContainsFunc(fs.list, func(g *check.Fault) bool { return keyOf(g) == key }) {
		fs.again[key]++
		return false
	}
	if len(fs.list) == maxFaults {
		return false
	}
	fs.list = append(fs.list, f)
	return true
}

// refuse notes that a variable was given a value and did not take it.
func (fs *faults) refuse(v *variable) {
	if fs.refused == nil {
		fs.refused = map[*variable]bool{}
	}
	fs.refused[v] = true
}

// report lists the faults, the first one first.
func (fs *faults) report() []*check.Fault {
	for _, f := range fs.list {
		switch n := fs.again[keyOf(f)]; n {
		case 0:
		case 1:
			f.Note(nil, "the same fault came up once more here")
		default:
			f.Note(nil, "the same fault came up at least %d more times here", n)
		}
	}
	return fs.list
}

// context adds notes that say in which loop and for which instance a statement failed.
func (m *machine) context(f *check.Fault, t task) {
	sc, at, inst := (*scope)(nil), f.At, t.inst
	if t.u != nil {
		u := t.u.origin()
		sc, at, inst = t.u.sc, u.where(), nil
		if sc != nil {
			inst = sc.inst
		}
	}
	if at == nil {
		return
	}
	if t.kind == runConstant { // which is not part of an implementation of its own instance
		at, inst = t.x.Where(), inst.maker
	}
	m.loops(f, sc, inst, at)
	made(f, at, inst)
}

// made notes for which instance, and in which of its implementations, something at a place is done, and what led to that instance.
func made(f *check.Fault, at *check.Loc, inst *Instance) {
	for n := 0; inst != nil && n < maxMakers; n++ {
		if inst.first == at || slices.ContainsFunc(f.Notes, func(n check.Note) bool { return n.At == inst.first }) {
			break // the rest repeats itself
		}
		if impl := inst.implementation(at); impl != nil {
			f.Note(inst.first, "in the implementation %s of %s, which is made here", impl.Name, inst.typ)
		} else if inst.first != f.At {
			f.Note(inst.first, "for the %s that is made here", inst.typ)
		}
		at, inst = inst.first, inst.maker
	}
}

// maxOrigin bounds how far a unit is followed to the statement that it belongs to.
const maxOrigin = 1000

// origin is the unit of the statement that a unit computes a part of.
func (u *unit) origin() *unit {
	for range maxOrigin {
		p := u.parent()
		if p == nil {
			break
		}
		u = p
	}
	return u
}

// parent is the unit that waits for the result of a unit, nil when none does.
func (u *unit) parent() *unit {
	switch a := u.aux.(type) {
	case element:
		return a.c.to
	case *itemsState:
		return a.to
	case *definedCollector:
		if a.answered {
			return nil
		}
		return a.to
	case *compCollector:
		return a.to
	}
	return u.to
}

// implementation is the one of those that ran for the instance which contains a place.
func (i *Instance) implementation(at *check.Loc) *check.Implementation {
	for _, impl := range i.implementations() {
		if path(i.m.prog.Statements(impl), at) != nil {
			return impl
		}
	}
	return nil
}

func (i *Instance) implementations() []*check.Implementation {
	if i.ran == nil {
		return nil
	}
	return append([]*check.Implementation{i.ran}, i.ranToo...)
}

// path lists the statements around a place, from the outermost to the one itself; nil when the place is not in the block.
func path(b *check.Block, at *check.Loc) []check.Stmt {
	if b == nil {
		return nil
	}
	for _, st := range b.Stmts {
		switch s := st.(type) {
		case *check.If:
			if covers(s.Where(), at) || covers(s.Cond.Where(), at) {
				return []check.Stmt{s}
			}
			for _, blk := range []*check.Block{s.Then, s.Else} {
				if p := path(blk, at); p != nil {
					return append([]check.Stmt{s}, p...)
				}
			}
		case *check.For:
			if covers(s.Where(), at) {
				return []check.Stmt{s}
			}
			if p := path(s.Body, at); p != nil {
				return append([]check.Stmt{s}, p...)
			}
		default:
			if covers(s.Where(), at) {
				return []check.Stmt{s}
			}
		}
	}
	return nil
}

func covers(outer, at *check.Loc) bool {
	return at != nil && outer.SameFile(at) && outer.Place.Start <= at.Place.Start && at.Place.Start < outer.Place.End
}

// loops notes the loops around a place, the innermost first, with the values of their variables.
func (m *machine) loops(f *check.Fault, sc *scope, inst *Instance, at *check.Loc) {
	if sc == nil {
		return
	}
	var chain []*scope // from the outermost
	for s := sc; s != nil; s = s.parent {
		chain = append(chain, s)
	}
	slices.Reverse(chain)
	var way []check.Stmt
	var body *check.Block
	if inst != nil {
		impl := inst.implementation(at)
		if impl == nil {
			return
		}
		body, chain = m.prog.Statements(impl), chain[1:]
		if !body.Bare && len(chain) > 0 {
			chain = chain[1:]
		}
		way = path(body, at)
	} else {
		for _, ns := range m.prog.Files {
			if way = path(m.prog.Body(ns), at); way != nil {
				break
			}
		}
	}
	var notes []check.Note
	for n, st := range way {
		blk := (*check.Block)(nil)
		switch s := st.(type) {
		case *check.For:
			if n+1 == len(way) {
				continue // the loop itself failed
			}
			blk = s.Body
			if len(chain) > 0 && s.Var < len(chain[0].vars) && chain[0].vars[s.Var].done {
				notes = append(notes, check.Note{At: s.Where(), Msg: fmt.Sprintf("in this loop, with %s = %s", blk.Names[s.Var], short(chain[0].vars[s.Var].val))})
			}
		case *check.If:
			blk = s.Then
			if n+1 < len(way) && path(s.Then, way[n+1].Where()) == nil {
				blk = s.Else
			}
		}
		if blk != nil && !blk.Bare && len(chain) > 0 {
			chain = chain[1:]
		}
	}
	slices.Reverse(notes)
	f.Notes = append(f.Notes, notes...)
}

// maxShort is the length at which values in notes are cut, in characters.
const maxShort = 60

// short is a value as notes show it.
func short(v value.Value) string {
	if v == nil {
		return "?"
	}
	text := []rune(value.Repr(v))
	if len(text) > maxShort {
		return string(text[:maxShort]) + "…"
	}
	return string(text)
}

// culprit is the place of what needs the complete value of a relation that is about to be frozen.
func (v *variable) culprit() *check.Loc {
	var first *check.Loc
	for u := range v.waiters.all {
		at := u.expression()
		if first == nil {
			first = at
		}
		switch {
		case u.op == opIterable, u.op == opItem:
		case u.op == opAttr && u.target != nil && u.target.kind == manyVar:
		case u.op == opStmt && loop(u.x):
		default:
			return at
		}
	}
	return first
}

func loop(x check.Expr) bool {
	_, ok := x.(*check.For)
	return ok
}
