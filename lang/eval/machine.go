package eval

import (
	"context"
	"io"
	"slices"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// Host is what the world lends a program: the parts of [value.Context] that do not depend on a call.
type Host interface {
	// Stdout takes what plugins print.
	Stdout() io.Writer
	// ReadFile reads a file of a module; namespace is that of the call.
	ReadFile(namespace, dir, path string) ([]byte, error)
	// ListFiles lists the names of the files directly in a module's directory, sorted.
	ListFiles(namespace, dir, path string) ([]string, error)
	// Plugin finds a plugin by qualified name.
	Plugin(name string) (*value.Plugin, bool)
	// Resource gives the id of the resource that the exporter would make of an instance.
	Resource(i value.Instance) (id string, ok bool, err error)
	// Input reads an input of the compile.
	Input(kind value.InputKind, name string) (string, bool)
	// Await records that the compile needs an input that is not there.
	Await(kind value.InputKind, name, resource string) *value.Unknown
	// AddFile puts content into the file storage of the exported version.
	AddFile(content []byte) string
	// Random returns n bytes that depend only on the compile's seed and on purpose.
	Random(purpose string, n int) []byte
}

// DefaultMaxSteps is the number of units that a program may run unless told otherwise. A model of 100,000 instances takes
// one and a half million.
const DefaultMaxSteps = 10_000_000

// Config says how to run a program.
type Config struct {
	Host Host
	// MaxSteps bounds how many units run; 0 means [DefaultMaxSteps].
	MaxSteps int64
}

// Model is the outcome of a program.
type Model struct {
	// Instances are in creation order.
	Instances []*Instance
	// Steps is how many units ran, Freezes how many relations had to be closed to go on.
	Steps, Freezes int64

	m           *machine
	globals     [][]variable
	prog        *check.Program
	annotations []variable
}

// Variable is the value of a variable of a file, by namespace and name; nil when there is none.
func (m *Model) Variable(namespace, name string) value.Value {
	ns := m.prog.Root.Find(namespace)
	if ns == nil || ns.ID < 0 {
		return nil
	}
	i := slices.Index(m.prog.Body(ns).Names, name)
	if i < 0 || !m.globals[ns.ID][i].done {
		return nil
	}
	v, f := m.globals[ns.ID][i].get()
	if f != nil {
		return nil
	}
	return v
}

// Run runs a program. The faults are those of the model; an error says that the context was done. With faults the model holds
// what there was when they came up.
func Run(ctx context.Context, p *check.Program, cfg Config) (*Model, []*check.Fault, error) {
	m := newMachine(p, cfg)
	fs, err := m.run(ctx)
	return &Model{
		Instances: m.instances, Steps: m.steps, Freezes: m.freezes, globals: m.files, prog: p, annotations: m.annotations, m: m,
	}, fs, err
}

type machine struct {
	// clues are what is known of names that stand for nothing.
	clues map[*check.Ref]clue

	prog     *check.Program
	host     Host
	maxSteps int64
	steps    int64
	freezes  int64

	// failed is the task that came upon a fault last.
	failed task
	runq   fifo[task]
	waitq  *waitQueue
	// idle are the variables that nobody waited for when their turn came.
	idle   []*variable
	parked int
	// stirred are those among idle that may have got somebody since.
	stirred []*variable
	waiters []*waiters // no longer used
	units   int        // how many have not finished
	started int64      // how many ever started
	free    *unit      // finished units, linked by next
	slab    []unit
	blocks  [][]unit
	roll    roll
	slabs   slabs

	files       [][]variable
	annotations []variable
	instances   []*Instance
	blanks      []*blank // by entity; nil as long as it has no instance
	serial      int
	indexes     []entityIndex
	key         []byte
	text        []byte      // of format strings that are being put together
	digits      []byte      // of numbers in a text that is being put together
	args        []attrValue // a stack of arguments that are being put together

	touched int32 // keeps the compiler from leaving out what touch does
	depth   int
	self    *env // of the constraint that was looked at last
	faults  faults
}

func newMachine(p *check.Program, cfg Config) *machine {
	m := &machine{
		prog: p, host: cfg.Host, maxSteps: cfg.MaxSteps, waitq: newWaitQueue(p.Policy), blanks: make([]*blank, len(p.Entities)),
		annotations: make([]variable, p.Annotations), indexes: make([]entityIndex, len(p.Entities)),
		files: make([][]variable, len(p.Files)),
	}
	if m.maxSteps <= 0 {
		m.maxSteps = DefaultMaxSteps
	}
	for i, ns := range p.Files {
		if body := p.Body(ns); body != nil {
			m.files[i] = make([]variable, len(body.Names))
		}
	}
	return m
}

// task is an entry of the run queue: a unit, or one of the steps below, which wait for nothing, so that no unit has to be made
// for them.
type task struct {
	kind taskKind
	// arg is the argument of the constructor x that is assigned, or the implement statement that runs.
	arg  int32
	u    *unit // runs, or gets the attribute that is read
	inst *Instance
	x    check.Expr // the constructor, or the reference that is read
}

type taskKind uint8

const (
	runUnit       taskKind = iota
	runConstant            // assigns a constant to an attribute of a new instance
	runImplements          // runs the implementations of an implement statement without a condition
	runRead                // connects a unit to an attribute of an instance that is known
)

// schedule puts a task at the end of the run queue.
func (m *machine) schedule(kind taskKind, arg int32, u *unit, inst *Instance, x check.Expr) {
	// Written field by field, as it is read: whole entries would be copied several times.
	t := m.runq.place()
	t.kind, t.arg, t.u, t.inst, t.x = kind, arg, u, inst, x
}

func (t *task) where() *check.Loc {
	switch t.kind {
	case runUnit:
		return t.u.where()
	case runImplements:
		return &t.inst.typ.Subs[t.arg].At
	case runConstant, runRead:
	}
	return t.x.Where()
}

// perform does what an entry of the queue says, which may be overwritten meanwhile. With a fault m.failed says what it was.
func (m *machine) perform(next *task) *check.Fault {
	kind, arg, u, inst, x := next.kind, next.arg, next.u, next.inst, next.x
	var f *check.Fault
	switch kind {
	case runUnit:
		f = m.exec(u)
	case runConstant:
		c, _ := x.(*check.Construct)
		f = m.assignConstant(inst, &c.Indirect[arg], c.Where())
	case runRead:
		e, _ := x.(*check.AttrRef)
		v, cause := attributeOf(inst, e.Name, &e.Cache)
		if cause == nil {
			cause = m.connect(u, int32(e.Slot), v, e.Where())
		}
		if cause != nil {
			f = cause.Force(e.Where())
		}
	case runImplements:
		im := inst.typ.Subs[arg]
		if f = m.implement(inst, im); f != nil {
			f = f.By(&im.At, false)
		}
	}
	if f != nil {
		m.failed = task{kind, arg, u, inst, x}
	}
	return f
}

// touchAhead is how many tasks are touched together, a power of two, and longQueue the length of the queue from which it is worth it.
const (
	touchAhead = 8
	longQueue  = 1 << 10
)

// touch looks at what the next tasks are about. By the time that a task runs, what it is about has been out of the processor's caches
// for a while; looked at together, several are fetched in the time of one.
func (m *machine) touch() {
	sum := int32(0)
	tasks := m.runq.ahead(touchAhead)
	for i := range tasks {
		t := &tasks[i]
		if t.u != nil {
			sum += t.u.count + int32(t.u.started)
		}
		if t.inst != nil {
			sum += int32(t.inst.serial)
		}
	}
	for i := range tasks {
		t := &tasks[i]
		switch t.kind {
		case runUnit:
			if v := t.u.target; v != nil {
				sum += int32(v.kind)
			}
			if len(t.u.frame) > 0 {
				if v := t.u.frame[0].from; v != nil {
					sum += int32(v.kind)
				}
			}
		case runConstant:
			if c, ok := t.x.(*check.Construct); ok {
				sum += int32(t.inst.slots[c.Indirect[t.arg].Attr].kind)
			}
		case runRead:
			if e, ok := t.x.(*check.AttrRef); ok && e.Cache.Entity == t.inst.typ && e.Cache.Slot >= 0 {
				sum += int32(t.inst.slots[e.Cache.Slot].kind)
			}
		case runImplements:
		}
	}
	m.touched = sum
}

// checkEvery is how many units run between two looks at the context.
const checkEvery = 1 << 12

func (m *machine) run(ctx context.Context) ([]*check.Fault, error) {
	for _, ns := range m.prog.Files {
		if f := m.emitBlock(m.prog.Body(ns), nil); f != nil {
			m.fail(f, task{})
		}
	}
	limit := m.maxSteps
	for m.runq.len() > 0 || m.waitq.len() > 0 || m.parked > 0 {
		for m.runq.len() > 0 {
			if m.steps++; m.steps&(checkEvery-1) == 0 {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
			}
			if m.steps&(touchAhead-1) == 0 && m.runq.len() > longQueue {
				m.touch()
			}
			next := m.runq.pop()
			if m.steps > limit && len(m.faults.list) > 0 {
				return m.faults.report(), nil
			}
			if m.steps > limit {
				t := *next
				m.fail(check.New("CompilerException", t.where(),
					"Could not complete model, the limit of %d steps is reached: does it keep on making new instances?", m.maxSteps), t)
				return m.faults.report(), nil
			}
			if f := m.perform(next); f != nil {
				m.fail(f, m.failed)
				limit = min(m.maxSteps, m.faults.from+maxAfterFault)
			}
		}
		// Nothing is frozen after a fault: a value that is missing because of it would count as one that never comes.
		if len(m.faults.list) > 0 {
			return append(m.faults.report(), m.inquire().certain()...), nil
		}
		if err := ctx.Err(); err != nil && m.freezes&255 == 0 {
			return nil, err
		}
		if m.freezeNext() || m.freezeStirred() || m.breakCycle() {
			m.freezes++
			continue
		}
		m.freezeIdle()
	}
	return m.finalise(), nil
}

// freezeNext freezes the first candidate of the wait queue that somebody waits for.
func (m *machine) freezeNext() bool {
	for m.waitq.len() > 0 {
		v := m.waitq.pop()
		switch {
		case v.done:
		case v.progress() <= 0:
			m.park(v)
		case v.relation().outstanding > 0:
			v.state &^= queued
		default:
			m.freezeFor(v)
			return true
		}
	}
	return false
}

// freezeFor freezes a variable because of those that wait for it.
func (m *machine) freezeFor(v *variable) {
	if v.kind == manyVar || v.val == nil {
		v.at = v.culprit()
	}
	m.freeze(v)
}

// freezeStirred tries the variables that nobody waited for when their turn came but somebody does now.
func (m *machine) freezeStirred() bool {
	if len(m.stirred) == 0 {
		return false
	}
	moved := m.stirred
	m.stirred = nil
	pick := moved[:0]
	for _, v := range moved {
		v.state &^= stirred
		if v.is(parked) && !v.done && v.progress() > 0 {
			pick = append(pick, v)
		}
	}
	slices.SortFunc(pick, func(a, b *variable) int { return int(a.parkedAt - b.parkedAt) })
	for _, v := range pick {
		m.unpark(v)
		m.waitq.push(v)
	}
	for m.waitq.len() > 0 {
		v := m.waitq.pop()
		if v.relation().outstanding > 0 {
			v.state &^= queued
			continue
		}
		m.freezeFor(v)
		return true
	}
	return false
}

// breakCycle freezes a variable that units wait for although others have promised to add to it, since nothing else moves.
func (m *machine) breakCycle() bool {
	var best *variable
	for u := range m.unfinished {
		for i := range u.frame {
			v := u.frame[i].from
			if v == nil || !v.promised() {
				continue
			}
			if best == nil || m.waitq.before(v, best) {
				best = v
			}
		}
		if extra, ok := u.aux.(*callState); ok {
			for _, v := range extra.more {
				if v.promised() && (best == nil || m.waitq.before(v, best)) {
					best = v
				}
			}
		}
		if best != nil && best.attr.PolicyRank == 0 {
			break
		}
	}
	if best == nil {
		return false
	}
	m.freezeFor(best)
	return true
}

// promised reports whether units wait for a relation that others have promised to add to.
func (v *variable) promised() bool {
	return v.delayed() && !v.done && v.relation().outstanding > 0 && v.progress() > 0
}

// freezeIdle freezes all that nobody waits for, the last first.
func (m *machine) freezeIdle() {
	for len(m.idle) > 0 {
		v := m.idle[len(m.idle)-1]
		m.idle = m.idle[:len(m.idle)-1]
		if v.is(parked) && int(v.parkedAt) == len(m.idle) {
			m.unpark(v)
			m.freeze(v)
		}
	}
}

// park puts a variable among those that nobody waits for. Entries of the list are not taken out when a variable leaves it.
func (m *machine) park(v *variable) {
	v.state |= parked
	v.parkedAt = int32(len(m.idle))
	m.idle = append(m.idle, v)
	m.parked++
}

func (m *machine) unpark(v *variable) {
	v.state &^= parked
	m.parked--
}

// finalise checks that the model is complete (language specification, section 10.8).
func (m *machine) finalise() []*check.Fault {
	var fs []*check.Fault
	for _, e := range m.prog.Entities {
		fs = append(fs, m.unmatched(e)...)
		for _, a := range e.Own {
			for _, an := range a.Annotations {
				v := &m.annotations[an.ID]
				if !v.done {
					f := check.New("UnsetException", nil, "Value not available")
					f.Shown = an.X.Where()
					fs = append(fs, f)
					continue
				}
				if _, unknown := v.val.(*value.Unknown); unknown {
					fs = append(fs, check.New("TypingException", &a.At, "Relation annotation can not be Unknown"))
				}
			}
		}
	}
	var missing []*variable
	var idle gaps
	for _, i := range m.instances {
		if i.ran == nil {
			idle.add(gapKey{at: i.place()}, i, func() *check.Fault { return unselected(i) })
		}
		missing = append(missing, m.complete(i)...)
	}
	fs = append(fs, idle.faults(m)...)
	if len(missing) > 0 {
		fs = append(fs, m.inquire().missing(missing)...)
	}
	if len(fs) > 0 {
		check.SortFaults(fs)
		return fs
	}
	if m.units > 0 {
		return []*check.Fault{m.stuck()}
	}
	return nil
}

// complete closes the relations of an instance that nobody waits for, and lists what has no value.
func (m *machine) complete(i *Instance) []*variable {
	var missing []*variable
	for k := range i.slots {
		v := &i.slots[k]
		switch {
		case v.done:
		case v.canGet():
			m.freeze(v)
		default:
			missing = append(missing, v)
		}
	}
	return missing
}

// unselected is the fault of an instance without an implementation.
func unselected(i *Instance) *check.Fault {
	f := check.New("RuntimeException", i.place(), "Unable to select implementation for entity %s", i.typ.Name)
	f.Hint = "every instance needs an implementation: implement " + i.typ.Name + " using std::none"
	for _, im := range i.typ.Subs {
		if im.When != nil {
			f.Note(im.When.Where(), "this condition does not hold")
			f.Hint = "every instance needs an implementation: add one that is selected without a condition, such as implement " +
				i.typ.Name + " using std::none"
		}
	}
	return f
}

func unset(i *Instance, v *variable) *check.Fault {
	var f *check.Fault
	if v.attr.Relation && v.attr.Multi() {
		n := len(v.items())
		f = check.New("UnsetException", nil, "The object %s is not complete: attribute %s (%s) requires %d values but only %d are set",
			value.Str(i), v.attr.Name, &v.attr.At, v.attr.Low, n)
	} else {
		f = check.New("UnsetException", nil, "The object %s is not complete: attribute %s (%s) is not set", value.Str(i), v.attr.Name, &v.attr.At)
	}
	f.Shown, f.Other, f.OtherMsg = i.place(), &v.attr.At, "the attribute is defined here"
	return f
}
