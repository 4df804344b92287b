package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// Bounds of an explanation, so that it can be read.
const (
	maxDepth   = 6 // statements from a value back to its causes
	maxSetters = 3 // statements that might set one value
	maxWaiting = 2 // values that wait for one that is missing
)

// inquiry finds out why values are missing once nothing runs any more.
type inquiry struct {
	m *machine
	// setters are the units that would set a variable, parts those that compute a part of another unit.
	setters map[*variable][]*unit
	parts   map[*unit][]*unit
	lookups map[*unit][]pendingKey
	// targets are the assignments of attributes whose instance is awaited.
	targets []*unit
	seen    map[*variable]bool
}

// pendingKey is a lookup without a match and the key that it has.
type pendingKey struct {
	e    *check.Lookup
	text string
}

func (m *machine) inquire() *inquiry {
	q := &inquiry{
		m: m, setters: map[*variable][]*unit{}, parts: map[*unit][]*unit{}, lookups: map[*unit][]pendingKey{},
	}
	for u := range m.unfinished {
		if u.target != nil {
			q.setters[u.target] = append(q.setters[u.target], u)
		}
		if u.op == opTarget {
			q.targets = append(q.targets, u)
		}
		if p := u.parent(); p != nil {
			q.parts[p] = append(q.parts[p], u)
		}
	}
	for i := range m.indexes {
		for _, w := range m.indexes[i].order {
			for _, l := range w.lookups {
				q.lookups[l.to] = append(q.lookups[l.to], pendingKey{l.e, w.text()})
			}
		}
	}
	return q
}

// blockers are the variables and lookups that a unit waits for, itself or through its parts.
func (q *inquiry) blockers(u *unit) (vars []*variable, keys []pendingKey) {
	seen := map[*unit]bool{}
	var visit func(u *unit)
	visit = func(u *unit) {
		if seen[u] {
			return
		}
		seen[u] = true
		add := func(v *variable) {
			if v != nil && !v.done && !slices.Contains(vars, v) {
				vars = append(vars, v)
			}
		}
		for i := range u.frame {
			if u.frame[i].val == nil {
				add(u.frame[i].from)
			}
		}
		if st, ok := u.aux.(*callState); ok {
			for _, v := range st.more {
				add(v)
			}
		}
		keys = append(keys, q.lookups[u]...)
		for _, p := range q.parts[u] {
			visit(p)
		}
	}
	visit(u)
	return vars, keys
}

// assignedNames adds the names of the attributes that statements of a block set.
func assignedNames(b *check.Block, names map[string]bool) {
	if b == nil {
		return
	}
	for _, st := range b.Stmts {
		switch s := st.(type) {
		case *check.SetAttr:
			names[s.Name] = true
		case *check.If:
			assignedNames(s.Then, names)
			assignedNames(s.Else, names)
		case *check.For:
			assignedNames(s.Body, names)
		}
	}
}

// consequences are those of the variables that have no value because of another one, or of a lookup that found nothing: told
// holds them, waiting lists them by the variable that is the cause.
func (q *inquiry) consequences(vs []*variable) (told map[*variable]bool, waiting map[*variable][]*variable) {
	// behind lists the variables that wait for one.
	behind := map[*variable][]*variable{}
	told, waiting = map[*variable]bool{}, map[*variable][]*variable{}
	cause := map[*variable]*variable{}
	var queue []*variable
	seen := make(map[*variable]bool, len(vs))
	for _, v := range vs {
		seen[v] = true
		if len(q.setters[v]) == 0 {
			cause[v] = v
			queue = append(queue, v)
		}
	}
	for todo := slices.Clone(vs); len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, u := range q.setters[v] {
			vars, keys := q.blockers(u)
			if _, known := cause[v]; len(keys) > 0 && !known {
				cause[v], told[v] = nil, true
				queue = append(queue, v)
			}
			for _, w := range vars {
				behind[w] = append(behind[w], v)
				if !seen[w] {
					seen[w] = true
					todo = append(todo, w)
				}
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, w := range behind[v] {
			if _, known := cause[w]; known {
				continue
			}
			cause[w], told[w] = cause[v], true
			queue = append(queue, w)
			if r := cause[v]; r != nil && w.attr != nil {
				waiting[r] = append(waiting[r], w)
			}
		}
	}
	return told, waiting
}

// describe names a variable for notes.
func describe(v *variable) string {
	if v.attr == nil {
		return "variable"
	}
	kind := "attribute"
	if v.attr.Relation {
		kind = "relation"
	}
	return fmt.Sprintf("%s `%s` of %s", kind, v.attr.Name, value.Str(v.owner))
}

// explain adds to a fault why a variable has no value.
func (q *inquiry) explain(f *check.Fault, v *variable, depth int) {
	if q.seen[v] || depth > maxDepth {
		return
	}
	q.seen[v] = true
	us := q.setters[v]
	for _, u := range us[:min(len(us), maxSetters)] {
		q.waits(f, u, depth, "its value would come from here")
	}
	if len(us) > 0 || v.attr == nil {
		return
	}
	if !q.candidates(f, v, depth) && f.Hint == "" {
		f.Hint = unsetHint(v)
	}
}

func unsetHint(v *variable) string {
	if n := len(v.items()); v.kind == manyVar && n > 0 {
		return fmt.Sprintf("add %d more, or lower the multiplicity of %s", v.attr.Low-n, v.attr)
	}
	switch {
	case v.attr.Relation && v.attr.End != nil:
		return fmt.Sprintf("nothing in the model sets it: set %s in the constructor, or %s at the other end", v.attr.Name, v.attr.End)
	case v.attr.Relation:
		return fmt.Sprintf("nothing in the model sets it: set %s in the constructor or in an implementation", v.attr.Name)
	}
	hint := fmt.Sprintf("nothing in the model sets it: set %s in the constructor or in an implementation, or give it a default", v.attr.Name)
	if v.attr.Optional {
		hint += ", such as null" // may be null does not mean that it is, when nobody says so
	}
	return hint
}

// waits notes a unit that can not run and what it waits for, and goes on to explain that.
func (q *inquiry) waits(f *check.Fault, u *unit, depth int, what string) {
	vars, keys := q.blockers(u)
	at := u.expression()
	switch {
	case len(vars) > 0 && q.seen[vars[0]]:
		f.Note(at, "%s, but it waits for the %s: they wait for each other", what, describe(vars[0]))
	case len(vars) > 0:
		f.Note(at, "%s, but it waits for the %s", what, describe(vars[0]))
	case len(keys) > 0:
		f.Note(keys[0].e.Where(), "%s, but no instance with %s is made", what, keys[0].text)
	default:
		f.Note(at, "%s", what)
	}
	for _, w := range vars[:min(len(vars), maxWaiting)] {
		q.explain(f, w, depth+1)
	}
}

// candidates notes the statements that might have set an attribute and why they did not. It reports whether there are any.
func (q *inquiry) candidates(f *check.Fault, v *variable, depth int) bool {
	i, found := v.owner, false
	for _, im := range i.typ.Subs {
		for _, impl := range im.Using {
			for _, way := range assignments(q.m.prog.Statements(impl), v.attr.Name, toSelf) {
				found = true
				if !slices.Contains(i.implementations(), impl) {
					q.unselected(f, i, im, impl, way, depth)
				} else {
					q.unreached(f, i, way, depth)
				}
			}
		}
	}
	for _, u := range q.targets {
		if s, ok := u.x.(*check.SetAttr); ok && s.Name == v.attr.Name {
			found = true
			q.waits(f, u, depth, "this may be meant for it")
		}
	}
	if found || q.elsewhere(f, v) {
		return true
	}
	for _, impl := range i.implementations() {
		if st := assigned(q.m.prog.Statements(impl), v.attr.Name); st != nil {
			f.Note(st.Where(), "this sets a variable of the implementation %s, not the attribute", impl.FullName())
			f.Hint = "to set the attribute, write self." + v.attr.Name + " = ..."
			return true
		}
	}
	for _, impl := range q.unused(i) {
		for _, way := range assignments(q.m.prog.Statements(impl), v.attr.Name, toSelf) {
			f.Note(way[len(way)-1].Where(), "the implementation %s would set it, but no implement statement selects it for %s", impl.FullName(), i.typ)
			if f.Hint == "" {
				f.Hint = "add `implement " + i.typ.Name + " using " + impl.Name + "`"
				if impl.Entity != i.typ {
					f.Hint += ", or `using parents`"
				}
			}
			found = true
		}
	}
	return found
}

// assigned is the statement of a block, or of one inside it, that gives a variable of the name its value; nil when there is none.
func assigned(b *check.Block, name string) check.Stmt {
	if b == nil {
		return nil
	}
	for _, st := range b.Stmts {
		var inside check.Stmt
		switch s := st.(type) {
		case *check.Assign:
			if s.Target.Name == name {
				return s
			}
		case *check.If:
			if inside = assigned(s.Then, name); inside == nil {
				inside = assigned(s.Else, name)
			}
		case *check.For:
			inside = assigned(s.Body, name)
		}
		if inside != nil {
			return inside
		}
	}
	return nil
}

// unused are the implementations that are written for the entity of an instance or its ancestors but not selected for it.
func (q *inquiry) unused(i *Instance) []*check.Implementation {
	var out []*check.Implementation
	for _, s := range q.m.prog.Symbols {
		impl, ok := s.(*check.Implementation)
		if !ok || impl.Entity == nil || !i.typ.IsA(impl.Entity) {
			continue
		}
		if !slices.ContainsFunc(i.typ.Subs, func(im *check.Implement) bool { return slices.Contains(im.Using, impl) }) {
			out = append(out, impl)
		}
	}
	slices.SortFunc(out, func(a, b *check.Implementation) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// unselected notes an assignment in an implementation that did not run.
func (q *inquiry) unselected(f *check.Fault, i *Instance, im *check.Implement, impl *check.Implementation, way []check.Stmt, depth int) {
	f.Note(way[len(way)-1].Where(), "the implementation %s would set it, but it was not selected", impl.FullName())
	if im.When == nil {
		return
	}
	for u := range q.m.unfinished {
		if u.op == opImplement && u.aux == any(im) && u.sc.inst == i {
			q.waits(f, u, depth, "this condition decides")
			return
		}
	}
	f.Note(im.When.Where(), "this condition does not hold")
}

// unreached notes an assignment in an implementation that ran, but not as far as there.
func (q *inquiry) unreached(f *check.Fault, i *Instance, way []check.Stmt, depth int) {
	last := way[len(way)-1]
	f.Note(last.Where(), "this would set it")
	for n, st := range way[:len(way)-1] {
		for u := range q.m.unfinished {
			if u.op == opStmt && u.x == check.Expr(st) && u.sc != nil && u.sc.inst == i {
				q.waits(f, u, depth, "it is reached from here")
				return
			}
		}
		only := len(way) == 2
		switch s := st.(type) {
		case *check.For:
			if only {
				f.Note(s.Where(), "but there is nothing to loop over")
			} else {
				f.Note(s.Where(), "it is reached for each element of this")
			}
		case *check.If:
			holds := path(s.Then, way[n+1].Where()) == nil
			switch {
			case only && holds:
				f.Note(s.Cond.Where(), "but this condition holds")
			case only:
				f.Note(s.Cond.Where(), "but this condition does not hold")
			case holds:
				f.Note(s.Cond.Where(), "it is reached only when this does not hold")
			default:
				f.Note(s.Cond.Where(), "it is reached only when this holds")
			}
		}
	}
}

// toSelf reports whether a statement sets an attribute of self.
func toSelf(s *check.SetAttr) bool {
	r, ok := s.X.(*check.Ref)
	return ok && r.Kind == check.SelfRef
}

// assignments are the ways to the statements of a block that set an attribute of the name, of an instance that of accepts.
func assignments(b *check.Block, name string, of func(*check.SetAttr) bool) [][]check.Stmt {
	if b == nil {
		return nil
	}
	var out [][]check.Stmt
	inside := func(st check.Stmt, b *check.Block) {
		for _, way := range assignments(b, name, of) {
			out = append(out, append([]check.Stmt{st}, way...))
		}
	}
	for _, st := range b.Stmts {
		switch s := st.(type) {
		case *check.SetAttr:
			if s.Name == name && of(s) {
				out = append(out, []check.Stmt{s})
			}
		case *check.If:
			inside(s, s.Then)
			inside(s, s.Else)
		case *check.For:
			inside(s, s.Body)
		}
	}
	return out
}

// stuck is the fault of a program in which statements wait for each other.
func (m *machine) stuck() *check.Fault {
	var first *unit
	for u := range m.unfinished {
		if first == nil {
			first = u
		}
		switch u.op {
		case opAssign, opStmt, opAttr, opItem, opElement, opLazyRight, opImplement, opAnnotation:
			first = u
		default:
			continue
		}
		break
	}
	f := check.New("RuntimeException", first.expression(), "not all statements executed: %s", m.remaining())
	q := m.inquire()
	if !q.circle(f, first) {
		f.Hint = "these statements wait for a value that nobody sets"
		return f
	}
	f.Hint = "give one of these a value that does not depend on the others"
	return f
}

// circle notes the statements that wait for each other, from the one that a unit belongs to. It reports whether they do.
func (q *inquiry) circle(f *check.Fault, u *unit) bool {
	var way []*unit
	for range maxSetters * maxDepth {
		vars, _ := q.blockers(u)
		var next *unit
		for _, v := range vars {
			if us := q.setters[v]; len(us) > 0 {
				next = us[0]
				break
			}
		}
		if next == nil {
			return false
		}
		if n := slices.Index(way, next); n >= 0 {
			way = way[n:]
			for k, x := range way {
				f.Note(x.expression(), "this waits for %s", []string{"the next", "the first"}[boolInt(k+1 == len(way))])
			}
			return true
		}
		way = append(way, next)
		u = next
	}
	return false
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
