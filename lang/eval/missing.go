package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// Bounds of what is told about instances that miss the same.
const (
	maxCompared = 500 // missing values whose reasons are compared
	maxTraits   = 3   // attributes that tell one instance from others
	maxOthers   = 3   // instances that are listed by their attributes
)

// gap is what instances of one constructor miss for one reason.
type gap struct {
	fault  *check.Fault
	first  *Instance
	others []*Instance
	// missed is what the first instance misses, behind are the missing values that the explanation leads to, itself included.
	missed *variable
	behind map[*variable]bool
}

type gapKey struct {
	at   *check.Loc
	attr *check.Attribute // nil for the implementation
	why  string
}

// gaps are in the order in which they are found.
type gaps struct {
	list  []*gap
	known map[gapKey]*gap
}

// add puts an instance to those that miss the same, or makes a gap of the fault.
func (g *gaps) add(key gapKey, i *Instance, f func() *check.Fault) {
	if old := g.known[key]; old != nil {
		old.others = append(old.others, i)
		return
	}
	if g.known == nil {
		g.known = map[gapKey]*gap{}
	}
	n := &gap{fault: f(), first: i}
	g.list = append(g.list, n)
	g.known[key] = n
}

// faults are those of all gaps, with a word on the instances that each is about.
func (g *gaps) faults(m *machine) []*check.Fault {
	out := make([]*check.Fault, len(g.list))
	for n, x := range g.list {
		if n <= maxFaults {
			m.identify(x)
		}
		out[n] = x.fault
	}
	return out
}

// missing are the faults of attributes without a value: those that are the cause of the others. Instances of one constructor that
// miss the same for the same reason have one fault together.
func (q *inquiry) missing(vs []*variable) []*check.Fault {
	told, waiting := q.consequences(vs)
	var gs gaps
	last := map[gapKey]gapKey{} // the reason that is known of a constructor and an attribute
	for n, v := range vs {
		if told[v] {
			continue
		}
		key := gapKey{at: v.owner.place(), attr: v.attr}
		place := key
		var f *check.Fault
		if why, known := last[place]; known && n >= maxCompared {
			key = why
		} else if f = unset(v.owner, v); len(gs.list) <= maxFaults { // else enough is explained
			q.why(f, v, waiting[v])
			key.why = reasons(f)
		}
		last[place] = key
		n := len(gs.list)
		gs.add(key, v.owner, func() *check.Fault { return f })
		if len(gs.list) > n && key.why != "" {
			gs.list[n].missed, gs.list[n].behind = v, q.seen
		}
	}
	gs.causes()
	return gs.faults(q.m)
}

// causes leaves out the gaps that are there because of another one, such as a condition that waits for an attribute without a value,
// and all but one of those that wait for each other.
func (g *gaps) causes() {
	var explained []*gap // few, however many there are
	for _, x := range g.list {
		if x.missed != nil {
			explained = append(explained, x)
		}
	}
	follows := map[*gap]*gap{} // the one that each is left out for
	for n, x := range explained {
		for k, y := range explained {
			mutual := y.behind[x.missed]
			if x != y && x.behind[y.missed] && (!mutual || k < n) && follows[x] == nil {
				follows[x] = y
			}
		}
	}
	for _, x := range explained { // explanations are bounded, so that they may lead in a circle unseen: one of those has to stay
		y := follows[x]
		for range explained {
			if y == nil || y == x {
				break
			}
			y = follows[y]
		}
		if y == x {
			delete(follows, x)
		}
	}
	for _, x := range explained {
		if y := follows[x]; y != nil && follows[y] == nil && !y.behind[x.missed] {
			y.fault.Note(nil, "the %s waits for it", describe(x.missed))
		}
	}
	g.list = slices.DeleteFunc(g.list, func(x *gap) bool { return follows[x] != nil })
}

// why explains a missing value, and what waits for it.
func (q *inquiry) why(f *check.Fault, v *variable, waiting []*variable) {
	q.seen = map[*variable]bool{}
	q.explain(f, v, 0)
	for n, w := range waiting {
		if n == maxWaiting {
			f.Note(nil, "and %d more", len(waiting)-n)
			break
		}
		if us := q.setters[w]; len(us) > 0 {
			f.Note(us[0].expression(), "the %s waits for it here", describe(w))
		}
	}
}

// reasons is a text that two faults have in common when they are explained alike.
func reasons(f *check.Fault) string {
	var b strings.Builder
	for _, n := range f.Notes {
		if n.At != nil {
			fmt.Fprintf(&b, "%p", n.At)
		}
		b.WriteString(n.Msg + "\n")
	}
	return b.String() + f.Hint
}

// identify says which of the instances of its constructor a gap is about, and what led to the first.
func (m *machine) identify(g *gap) {
	if len(g.first.others) == 0 {
		made(g.fault, g.first.first, g.first.maker)
	}
	same := 0
	for _, i := range m.instances {
		if i.place() == g.first.place() {
			same++
		}
	}
	if same < 2 {
		return
	}
	text := "several instances are made here"
	if t := traits(g.first); t != "" {
		text = "this is the one with " + t
	}
	switch n := len(g.others); n {
	case 0:
	case 1:
		text += "; one more that is made here misses it too"
	default:
		text += fmt.Sprintf("; %d more that are made here miss it too", n)
	}
	var more []string
	for _, i := range g.others[:min(len(g.others), maxOthers)] {
		if t := traits(i); t != "" {
			more = append(more, t)
		}
	}
	if len(more) > 0 {
		text += ", with " + strings.Join(more, "; ")
		if len(g.others) > maxOthers {
			text += "; …"
		}
	}
	g.fault.Note(nil, "%s", text)
}

// traits are attributes by which people tell an instance: the plain values that it has.
func traits(i *Instance) string {
	var out []string
	for k := range i.slots {
		v := &i.slots[k]
		if v.attr == nil || v.attr.Relation || !v.done {
			continue
		}
		switch v.val.(type) {
		case value.String, value.Int, value.Float:
			out = append(out, v.attr.Name+"="+short(v.val))
		}
		if len(out) == maxTraits {
			break
		}
	}
	return strings.Join(out, ", ")
}

// elsewhere notes the statements that set an attribute of this name of other instances, for which they may have been meant to be
// reached. It reports whether there are any.
func (q *inquiry) elsewhere(f *check.Fault, v *variable) bool {
	if v.kind == manyVar && len(v.items()) > 0 {
		return false // some did
	}
	others := func(s *check.SetAttr) bool { return !toSelf(s) }
	var ways [][]check.Stmt
	for _, ns := range q.m.prog.Files {
		for _, way := range assignments(q.m.prog.Body(ns), v.attr.Name, others) {
			if len(way) > 1 { // else it always runs, for the one that it names
				ways = append(ways, way)
			}
		}
	}
	var impls []*check.Implementation
	for _, s := range q.m.prog.Symbols {
		if impl, ok := s.(*check.Implementation); ok {
			impls = append(impls, impl)
		}
	}
	slices.SortFunc(impls, func(a, b *check.Implementation) int { return cmp.Compare(a.ID, b.ID) })
	for _, impl := range impls {
		ways = append(ways, assignments(q.m.prog.Statements(impl), v.attr.Name, others)...)
	}
	for _, way := range ways[:min(len(ways), maxSetters)] {
		f.Note(way[len(way)-1].Where(), "this sets `%s` of an instance, but was not reached for this one", v.attr.Name)
		for n, st := range way[:len(way)-1] {
			switch s := st.(type) {
			case *check.For:
				f.Note(s.Where(), "it is reached for each element of this")
			case *check.If:
				what := "it is reached only when this holds"
				if path(s.Then, way[n+1].Where()) == nil {
					what = "it is reached only when this does not hold"
				}
				f.Note(s.Cond.Where(), "%s", what)
			}
		}
	}
	return len(ways) > 0
}

// certain are the faults of attributes that have no value whatever the faults of the run keep from running: no statement of the
// model sets an attribute of that name, and their instances can not be constructed once more.
func (q *inquiry) certain() []*check.Fault {
	named := map[string]bool{}
	for _, ns := range q.m.prog.Files {
		assignedNames(q.m.prog.Body(ns), named)
	}
	for _, s := range q.m.prog.Symbols {
		if impl, ok := s.(*check.Implementation); ok {
			assignedNames(q.m.prog.Statements(impl), named)
		}
	}
	var gs gaps
	for _, i := range q.m.instances {
		if len(i.typ.Indexes) > 0 {
			continue
		}
		for k := range i.slots {
			v := &i.slots[k]
			if v.done || v.attr == nil || v.attr.Relation || named[v.attr.Name] || len(q.setters[v]) > 0 || q.m.faults.refused[v] {
				continue
			}
			gs.add(gapKey{at: i.place(), attr: v.attr}, i, func() *check.Fault {
				f := unset(i, v)
				f.Hint = unsetHint(v)
				return f
			})
			if len(gs.list) == maxFaults {
				return gs.faults(q.m)
			}
		}
	}
	return gs.faults(q.m)
}
