package eval

import (
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// definedCollector answers is defined as soon as a first value arrives.
type definedCollector struct {
	enlisted
	e        *check.IsDefined
	to       *unit
	slot     int32
	answered bool
}

// answer hands the answer to whoever asked, once.
func (c *definedCollector) answer(m *machine, v value.Value) {
	if !c.answered {
		c.answered = true
		m.deliver(c.to, c.slot, v)
	}
}

func (c *definedCollector) pure() bool { return false }

func (c *definedCollector) receive(m *machine, v value.Value, _ *check.Loc) (bool, *check.Fault) {
	if _, unknown := v.(*value.Unknown); unknown {
		return false, nil
	}
	c.answer(m, value.Bool(true))
	return true, nil
}

// watchDefined answers is defined for a variable, now or when it can be answered.
func (m *machine) watchDefined(c *definedCollector, v *variable) *check.Fault {
	if v.done {
		c.answer(m, definedness(v))
		return nil
	}
	if _, f := m.listen(v, c, c.e.Where()); f != nil {
		return f
	}
	u := m.unit(opDefinedEnd, 1, nil)
	u.frame[0].from = v
	u.aux = c
	m.start(u)
	return nil
}

// definedness is whether a variable that is done has a value.
func definedness(v *variable) value.Value {
	if v.kind == maybeVar && v.val == nil {
		return value.Bool(false)
	}
	x, _ := v.get()
	switch y := x.(type) {
	case *value.Unknown:
		return &value.Unknown{Source: y.Source}
	case value.Null:
		return value.Bool(false)
	case *value.List:
		if len(y.Items) == 0 {
			return value.Bool(false)
		}
		for _, e := range y.Items {
			if _, unknown := e.(*value.Unknown); !unknown {
				return value.Bool(true)
			}
		}
		return &value.Unknown{}
	}
	return value.Bool(true)
}

// forCollector runs the body of a loop for every value.
type forCollector struct {
	enlisted
	st *check.For
	sc *scope
}

func (c *forCollector) pure() bool { return true }

func (c *forCollector) receive(m *machine, v value.Value, _ *check.Loc) (bool, *check.Fault) {
	if _, unknown := v.(*value.Unknown); unknown {
		return false, nil
	}
	sc := m.innerScope(c.sc, c.st.Body)
	if f := m.set(&sc.vars[c.st.Var], v, c.st.Where(), true); f != nil {
		return false, f
	}
	return false, m.emitBlock(c.st.Body, sc)
}

// attrCollector adds every value to a relation, in the name of the assignment at by.
type attrCollector struct {
	enlisted
	by     *check.Loc
	inst   *Instance
	name   string
	target *variable
}

func (c *attrCollector) pure() bool { return true }

func (c *attrCollector) receive(m *machine, v value.Value, at *check.Loc) (bool, *check.Fault) {
	f := m.set(c.target, v, at, true)
	if f == nil {
		return false, nil
	}
	f.By(c.by, false).On(at)
	if f.Class == "AttributeException" {
		return false, f
	}
	return false, attributeFault(c.by, c.inst, c.name, f)
}

// compCollector runs the value of a comprehension for every element of its iterable and gathers the results.
type compCollector struct {
	enlisted
	e    *check.Comp
	sc   *scope
	next collector
	to   *unit
	slot int32

	results []value.Value
	missing int
	known   bool
	whole   *unit // waits for all results
}

func (c *compCollector) pure() bool { return true }

// element is the place of an element's result among the results of a comprehension.
type element struct {
	c *compCollector
	i int
}

func (c *compCollector) receive(m *machine, v value.Value, at *check.Loc) (bool, *check.Fault) {
	sc := m.scope(c.sc, 1)
	sc.vars[0] = variable{kind: elemVar, done: true, val: v, at: at}
	i := len(c.results)
	c.results = append(c.results, nil)
	c.missing++
	x := c.e.Value
	guarded := c.e.Guarded
	if _, unknown := v.(*value.Unknown); unknown {
		lit := &check.Literal{Val: v}
		lit.At = c.e.At
		x = lit
		if guarded != nil {
			g := *guarded
			g.Then, g.ThenLayout = lit, 0
			guarded = &g
		}
	} else {
		c.known = true
	}
	if guarded != nil {
		x = guarded
	}
	u := m.unit(opElement, c.e.ElemLayout, sc)
	u.x, u.by, u.aux = x, x.Where(), element{c, i}
	var f *check.Fault
	if c.next == nil {
		f = m.prepare(x, sc, u)
	} else {
		f = m.prepareGradual(x, sc, u, c.next)
	}
	if f != nil {
		return false, f
	}
	m.start(u)
	return false, nil
}

// complete notes that all elements have been received, or hands them over now.
func (c *compCollector) complete(m *machine, all value.Value) *check.Fault {
	if len(c.results) == 0 {
		items := []value.Value{all}
		if l, ok := all.(*value.List); ok {
			items = l.Items
		}
		for _, v := range items {
			if _, f := c.receive(m, v, c.e.Where()); f != nil {
				return f
			}
		}
	}
	c.whole = m.unit(opComplete, 0, c.sc)
	c.whole.x, c.whole.aux = c.e, c
	c.whole.count += int32(c.missing)
	m.start(c.whole)
	return nil
}

// put notes the result of an element.
func (c *compCollector) put(m *machine, i int, v value.Value) {
	c.results[i] = v
	c.missing--
	if c.whole != nil {
		m.ready(c.whole)
	}
}

// filtered is the result of an element that a guard rejected.
type filtered struct{ value.Null }

// gather joins the results of all elements into one list.
func (c *compCollector) gather() (*value.List, *check.Fault) {
	out := make([]value.Value, 0, len(c.results))
	for _, v := range c.results {
		switch x := v.(type) {
		case filtered:
		case *value.List:
			if len(out)+len(x.Items) > maxItems {
				return nil, tooMany(c.e.Where())
			}
			out = append(out, x.Items...)
		default:
			out = append(out, v)
		}
	}
	return &value.List{Items: out}, nil
}
