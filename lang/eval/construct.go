package eval

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// attrValue is the value of an attribute that is known when an instance is made.
type attrValue struct {
	name string
	slot int
	val  value.Value
}

// construct makes an instance, or finds it in an index, and schedules the rest of its attributes and its implementations.
func (m *machine) construct(u *unit, e *check.Construct) (value.Value, *check.Fault) {
	late, f := m.lateArgs(u, e)
	if f != nil {
		return nil, f
	}
	from := len(m.args)
	defer m.release(from)
	for i := range e.Direct {
		a := &e.Direct[i]
		v, f := m.eval(u, a.X)
		if f != nil {
			return nil, f
		}
		m.args = append(m.args, attrValue{a.Name, a.Attr, v})
	}
	direct := m.args[from:]
	for _, l := range late {
		if i := slices.IndexFunc(direct, func(d attrValue) bool { return d.name == l.name }); i >= 0 {
			direct[i] = l
			continue
		}
		m.args = append(m.args, l)
		direct = m.args[from:]
	}
	i, f := m.findIndexed(e, direct)
	if f != nil {
		return nil, f
	}
	if i != nil {
		i.others = append(i.others, e.Where())
		for _, d := range direct {
			if f := m.setDirect(i, d, e.Where()); f != nil {
				return nil, f.On(e.Argument(d.name))
			}
		}
	} else {
		i = m.newInstance(e.Type, e.Where())
		if u.sc != nil {
			i.maker = u.sc.inst
		}
		for _, d := range direct {
			if f := m.setDirect(i, d, e.Where()); f != nil {
				return nil, f.On(e.Argument(d.name))
			}
		}
		if f := m.register(i); f != nil {
			return nil, f
		}
	}
	sc := u.sc
	if e.NeedsSelf {
		sc = m.scope(sc, 1)
		sc.vars[0] = variable{done: true, val: i, at: e.Where()}
	}
	var first *check.Fault
	for k := range e.Indirect {
		a := &e.Indirect[k]
		if len(late) > 0 && slices.ContainsFunc(late, func(l attrValue) bool { return l.name == a.Name }) {
			continue
		}
		if target := i.variable(a.Attr); a.Constant && target.kind == plainVar {
			m.schedule(runConstant, int32(k), nil, i, e)
			continue
		}
		if f := m.assignAttr(i, a.Name, i.variable(a.Attr), a.X, a.Layout, sc, e.Where()); f != nil {
			m.faults.refuse(i.variable(a.Attr))
			if r, ok := a.X.(*check.Ref); ok && f.Class == "NotFoundException" && f.Hint == "" && i.typ.All[a.Attr].Type == check.String {
				f.Hint = fmt.Sprintf("if the text is meant, put it in quotes: %s=\"%s\"", a.Name, r.Name)
			}
			if first == nil {
				first = f
			} else {
				m.faults.more = append(m.faults.more, f)
			}
		}
	}
	if first != nil {
		return nil, first
	}
	if f := m.emitImplements(i); f != nil {
		return nil, f
	}
	return i, nil
}

// release forgets the arguments on the stack from a place on. Arguments are evaluated inside each other.
func (m *machine) release(from int) {
	clear(m.args[from:])
	m.args = m.args[:from]
}

// assignConstant gives an attribute of an instance the constant that a constructor or a default has for it.
func (m *machine) assignConstant(i *Instance, a *check.Named, by *check.Loc) *check.Fault {
	lit, _ := a.X.(*check.Literal)
	f := m.set(i.variable(a.Attr), lit.Val, lit.Where(), true)
	if f == nil {
		return nil
	}
	m.faults.refuse(i.variable(a.Attr))
	return attributeFault(by, i, a.Name, f.By(by, false).On(lit.Where()))
}

func (m *machine) setDirect(i *Instance, d attrValue, at *check.Loc) *check.Fault {
	if f := m.set(i.variable(d.slot), d.val, at, true); f != nil {
		return attributeFault(i.place(), i, d.name, f)
	}
	return nil
}

// lateArgs are the attributes that ** supplies, and the inverse of the relation that the instance is assigned to.
func (m *machine) lateArgs(u *unit, e *check.Construct) ([]attrValue, *check.Fault) {
	var out []attrValue
	for _, un := range e.Unpack {
		d, f := m.evalUnpack(u, un)
		if f != nil {
			return nil, f
		}
		for k := range d.Len() {
			name, v := d.At(k)
			if e.Explicit[name] || slices.ContainsFunc(out, func(a attrValue) bool { return a.name == name }) {
				return nil, check.New("RuntimeException", e.Where(), "The attribute %s is set twice in the constructor call of %s.", name, e.Name)
			}
			slot, ok := e.Type.Slot(name)
			if !ok {
				return nil, check.New("TypingException", e.Where(), "no attribute %s on type %s", name, e.Type)
			}
			out = append(out, attrValue{name, slot, v})
		}
	}
	if e.LHS != nil {
		a, f := m.inverseOfLHS(u, e, out)
		if f != nil {
			return nil, f
		}
		if a.name != "" {
			out = slices.Insert(out, 0, a)
		}
	}
	var missing []string
	for _, name := range e.Required {
		if !slices.ContainsFunc(out, func(a attrValue) bool { return a.name == name }) {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, check.MissingIndexAttributes(e.Where(), e.Type, missing)
	}
	return out, nil
}

func (m *machine) evalUnpack(u *unit, un *check.Unpack) (*value.Dict, *check.Fault) {
	v, f := m.eval(u, un.X)
	if f != nil {
		return nil, f
	}
	d, ok := v.(*value.Dict)
	if !ok {
		return nil, check.New("TypingException", un.Where(), "The ** operator can only be applied to dictionaries")
	}
	return d, nil
}

// inverseOfLHS is the attribute of an index that follows from the relation which the instance is assigned to. Its name is
// empty when none does.
func (m *machine) inverseOfLHS(u *unit, e *check.Construct, given []attrValue) (attrValue, *check.Fault) {
	v, f := m.eval(u, e.LHS)
	if f != nil {
		return attrValue{}, f
	}
	owner, ok := v.(*Instance)
	if !ok {
		return attrValue{}, check.New("TypingException", e.Where(), "%s is not an instance", value.Str(v))
	}
	rel := owner.typ.Attr(e.LHSAttr)
	if rel == nil || !rel.Relation {
		return attrValue{}, check.New("RuntimeException", e.Where(),
			"Attempting to assign constructor of type %s to attribute that is not a relation attribute: %s on %s", e.Type, e.LHSAttr, value.Str(owner))
	}
	inv := rel.End
	if inv == nil || !e.Type.IsA(inv.Entity) ||
		slices.ContainsFunc(e.Direct, func(d check.Named) bool { return d.Name == inv.Name }) ||
		slices.ContainsFunc(given, func(a attrValue) bool { return a.name == inv.Name }) {
		return attrValue{}, nil
	}
	for _, ix := range e.Type.Indexes {
		if slices.Contains(ix.Names, inv.Name) {
			slot, _ := e.Type.Slot(inv.Name)
			return attrValue{inv.Name, slot, owner}, nil
		}
	}
	return attrValue{}, nil
}

// findIndexed looks the instance up in all indexes of its type. nil means that there is none yet.
func (m *machine) findIndexed(e *check.Construct, direct []attrValue) (*Instance, *check.Fault) {
	var found *Instance
	var by *check.IndexDef // the index that it was found in
	var collision *check.Fault
	for _, ix := range e.Type.Indexes {
		key := startKey(m.key, ix)
		for _, name := range ix.Names {
			k := slices.IndexFunc(direct, func(d attrValue) bool { return d.name == name })
			v, f := coerceKey(e.Type.All[direct[k].slot], direct[k].val)
			if f != nil {
				return nil, f
			}
			key = appendKey(key, name, v)
		}
		m.key = key
		i := m.indexed(ix, e.Type)
		if i == nil {
			continue
		}
		if i.typ != e.Type {
			f := check.New("DuplicateException", e.Where(), "Type found in index is not an exact match")
			f.Other, f.OtherMsg = i.place(), fmt.Sprintf("this instance of %s has the same %s", i.typ, keyText(i, ix.Names))
			return nil, f.Note(ix.At, "the index is defined here")
		}
		if found != nil && found != i && collision == nil {
			collision = check.New("IndexCollisionException", e.Where(), "Inconsistent indexes detected!\n").
				Note(found.place(), "this instance has the same %s", keyText(found, by.Names)).
				Note(i.place(), "but this one has the same %s", keyText(i, ix.Names))
		}
		if found == nil {
			found, by = i, ix
		}
	}
	if collision != nil {
		return nil, collision
	}
	return found, nil
}

// entityIndex finds the instances of an entity by the attributes of its indexes.
type entityIndex struct {
	// entries are by key. Those of an index are with the entity that it was defined for, for all descendants together.
	entries map[string]*Instance
	// waiting are the lookups of this very entity without a match so far, in order of their keys' first appearance.
	waiting map[string]*waitingKey
	order   []*waitingKey
}

// indexed is the instance of an entity that has the key m.key in an index of the entity, nil when there is none.
func (m *machine) indexed(ix *check.IndexDef, e *check.Entity) *Instance {
	i := m.indexes[ix.Home.ID].entries[string(m.key)]
	if i == nil || !i.typ.IsA(e) {
		return nil
	}
	return i
}

// waitingKey is a key that is looked for.
type waitingKey struct {
	key     []attrValue
	lookups []pendingLookup
}

// text is the key as messages show it.
func (w *waitingKey) text() string {
	parts := make([]string, len(w.key))
	for n, p := range w.key {
		parts[n] = value.IndexKey(p.name, p.val)
	}
	return strings.Join(parts, ", ")
}

// pendingLookup is a lookup without a match so far, and where its result goes.
type pendingLookup struct {
	e    *check.Lookup
	to   *unit
	slot int32
}

func (m *machine) unmatched(e *check.Entity) []*check.Fault {
	var out []*check.Fault
	var known map[string]*Instance
	x := &m.indexes[e.ID]
	for _, w := range x.order {
		for _, l := range w.lookups {
			f := check.New("NotFoundException", l.e.Where(), "No match in index on type %s with key %s", e, w.text())
			if known == nil {
				known = m.keys(e)
			}
			if len(out) < maxFaults {
				suggest(f, e, w.text(), known)
			}
			out = append(out, f)
		}
	}
	return out
}

// maxKeys bounds how many keys a lookup that found nothing is compared with.
const maxKeys = 1000

// keys lists the keys of an entity's instances, with one instance for each.
func (m *machine) keys(e *check.Entity) map[string]*Instance {
	known := map[string]*Instance{}
	for _, i := range m.instances {
		if !i.typ.IsA(e) {
			continue
		}
		for _, ix := range e.Indexes {
			if complete, f := m.instanceKey(i, ix); complete && f == nil && len(known) < maxKeys {
				known[keyText(i, ix.Names)] = i
			}
		}
	}
	return known
}

// suggest adds to the fault of a lookup which of the known keys may have been meant.
func suggest(f *check.Fault, e *check.Entity, key string, known map[string]*Instance) {
	if len(known) == 0 {
		f.Hint = "the model makes no instance of " + e.String()
		return
	}
	near := diag.Closest(key, slices.Collect(maps.Keys(known)))
	if near == "" {
		return
	}
	f.Hint = "did you mean " + near + "?"
	f.Note(known[near].place(), "the one with %s is made here", near)
}

// addToIndexes enters an instance in the indexes that are defined for an entity, and hands it to whoever looked for it as one of
// the entity's.
func (m *machine) addToIndexes(i *Instance, e *check.Entity) *check.Fault {
	x := &m.indexes[e.ID]
	for _, ix := range e.Indexes {
		if ix.Home != e && len(x.waiting) == 0 {
			continue
		}
		complete, f := m.instanceKey(i, ix)
		if f != nil {
			return f
		}
		if !complete {
			continue
		}
		if ix.Home == e {
			if old := x.entries[string(m.key)]; old != nil && old != i {
				f := check.New("DuplicateException", i.place(), "Duplicate key in index. %s", keyText(i, ix.Names))
				f.Other, f.OtherMsg = old.place(), fmt.Sprintf("the %s with this key is made here", old.typ)
				return f.Note(ix.At, "the index of %s is defined here", e)
			}
			if x.entries == nil {
				x.entries = make(map[string]*Instance)
			}
			key := m.slabs.text.Take(len(m.key))
			copy(key, m.key)
			x.entries[view(key)] = i
		}
		if w := x.waiting[string(m.key)]; w != nil {
			delete(x.waiting, string(m.key))
			lookups := w.lookups
			w.lookups = nil
			for _, l := range lookups {
				m.deliver(l.to, l.slot, i)
			}
		}
	}
	return nil
}

// instanceKey makes m.key the key of an instance in an index. It is false when an attribute of the index has no value yet.
func (m *machine) instanceKey(i *Instance, ix *check.IndexDef) (bool, *check.Fault) {
	key := startKey(m.key, ix)
	if ix.Cache.Entity != i.typ {
		slots := make([]int, len(ix.Names))
		for k, name := range ix.Names {
			slots[k], _ = i.typ.Slot(name)
		}
		ix.Cache = check.IndexCache{Entity: i.typ, Slots: slots}
	}
	for k, name := range ix.Names {
		v := i.variable(ix.Cache.Slots[k])
		if !v.done {
			return false, nil
		}
		val, f := v.get()
		if f != nil {
			return false, f
		}
		if r, ok := val.(*value.Reference); ok {
			return false, check.New("TypingException", nil,
				"Invalid value `%s` in index for attribute %s on instance %s: references can not be used in indexes.", value.Str(r), name, value.Str(i))
		}
		key = appendKey(key, name, val)
	}
	m.key = key
	return true, nil
}

func keyText(i *Instance, names []string) string {
	var s strings.Builder
	for n, name := range names {
		if n > 0 {
			s.WriteString(", ")
		}
		slot, _ := i.typ.Slot(name)
		v, _ := i.variable(slot).get()
		s.WriteString(value.IndexKey(name, v))
	}
	return s.String()
}

// startKey begins a key in the space of b, with the attributes that the index is over.
func startKey(b []byte, ix *check.IndexDef) []byte {
	return binary.AppendUvarint(b[:0], uint64(ix.ID))
}

// appendKey appends an attribute's part of a key. Keys are equal exactly when they are of the same attributes and the texts of
// the values in Python are equal.
func appendKey(b []byte, name string, v value.Value) []byte {
	b = append(b, 0)
	switch x := v.(type) {
	case value.String:
		b = binary.AppendUvarint(append(b, 's'), uint64(len(x)))
		return append(b, x...)
	case value.Int:
		return binary.AppendVarint(append(b, 'i'), int64(x))
	case *Instance:
		return binary.AppendUvarint(append(b, '#'), uint64(x.serial))
	case *value.Unknown:
		return fmt.Appendf(append(b, '?'), "%p", x)
	}
	return append(append(b, 'v'), value.IndexKey(name, v)...)
}

// coerceKey turns the value of a float attribute into a float, as lookups do.
func coerceKey(a *check.Attribute, v value.Value) (value.Value, *check.Fault) {
	if r, ok := v.(*value.Reference); ok {
		return nil, check.New("TypingException", nil,
			"Invalid value `%s` in index for attribute %s: references can not be used in indexes.", value.Str(r), a.Name)
	}
	switch a.Type {
	case check.Float:
	default:
		n, ok := a.Type.(*check.Nullable)
		if !ok || n.Elem != check.Float {
			return v, nil
		}
		if _, null := v.(value.Null); null {
			return v, nil
		}
	}
	if _, ok := v.(value.Float); ok {
		return v, nil
	}
	x, err := value.Cast("float", v)
	if err != nil {
		return nil, check.New("RuntimeException", nil, "%s", err.Error())
	}
	return x, nil
}

// runLookup looks an instance up in an index, or waits for it to be made.
func (m *machine) runLookup(u *unit, e *check.Lookup) *check.Fault {
	if f := m.values(u); f != nil {
		return f
	}
	typ := e.Type
	from := len(m.args)
	defer m.release(from)
	if e.Rel != "" {
		t, first, f := m.shortForm(u, e)
		if f != nil {
			return f
		}
		typ, m.args = t, append(m.args, first)
	}
	for i := range e.Keys {
		v, f := m.eval(u, e.Keys[i].X)
		if f != nil {
			return f
		}
		m.args = append(m.args, attrValue{name: e.Keys[i].Name, val: v})
	}
	for _, un := range e.Unpack {
		d, f := m.evalUnpack(u, un)
		if f != nil {
			return f
		}
		for k := range d.Len() {
			name, v := d.At(k)
			m.args = append(m.args, attrValue{name: name, val: v})
		}
	}
	return m.lookupIndex(u, e, typ, m.args[from:])
}

func (m *machine) shortForm(u *unit, e *check.Lookup) (*check.Entity, attrValue, *check.Fault) {
	v, f := m.eval(u, e.Root)
	if f != nil {
		return nil, attrValue{}, f
	}
	i, ok := v.(*Instance)
	if !ok {
		return nil, attrValue{}, check.New("TypingException", e.Where(), "short index lookup is only possible one objects, %s is not an object", value.Str(v))
	}
	rel := i.typ.Attr(e.Rel)
	switch {
	case rel == nil || !rel.Relation:
		return nil, attrValue{}, check.New("TypingException", e.Where(), "short index lookup is only possible on relations, %s is an attribute", e.Rel)
	case rel.End == nil:
		return nil, attrValue{}, check.New("TypingException", e.Where(), "short index lookup is only possible on bi-drectional relations, %s is unidirectional", rel)
	}
	target, _ := rel.Base.(*check.Entity)
	return target, attrValue{name: rel.End.Name, val: i}, nil
}

func (m *machine) lookupIndex(u *unit, e *check.Lookup, typ *check.Entity, params []attrValue) *check.Fault {
	slices.SortStableFunc(params, func(a, b attrValue) int { return cmp.Compare(a.name, b.name) })
	for k := 1; k < len(params); k++ {
		if params[k].name == params[k-1].name {
			return check.New("RuntimeException", e.Where(), "Attribute %s provided twice in index lookup", params[k].name)
		}
	}
	ix := indexOver(typ, params)
	if ix == nil {
		return noIndex(e, typ, params)
	}
	key := startKey(m.key, ix)
	for n := range params {
		p := &params[n]
		v, f := coerceKey(typ.Attr(p.name), p.val)
		if f != nil {
			return f
		}
		p.val = v
		key = appendKey(key, p.name, v)
	}
	m.key = key
	if i := m.indexed(ix, typ); i != nil {
		m.deliver(u.to, u.slot, i)
		return nil
	}
	x := &m.indexes[typ.ID]
	if x.waiting == nil {
		x.waiting = make(map[string]*waitingKey)
	}
	w := x.waiting[string(key)]
	if w == nil {
		w = &waitingKey{key: slices.Clone(params)}
		x.waiting[string(key)] = w
		x.order = append(x.order, w)
	}
	w.lookups = append(w.lookups, pendingLookup{e, u.to, u.slot})
	return nil
}

// noIndex is the fault of a lookup that suits no index of an entity.
func noIndex(e *check.Lookup, typ *check.Entity, params []attrValue) *check.Fault {
	f := check.New("NotFoundException", e.Where(), "No index defined on %s for this lookup: %s", typ, paramText(params))
	for _, p := range params {
		if typ.Attr(p.name) == nil && f.Hint == "" {
			f.Hint = typ.AttributeHint(p.name)
		}
	}
	for _, ix := range typ.Indexes {
		f.Note(ix.At, "this index is by %s", strings.Join(ix.Names, " and "))
	}
	if len(typ.Indexes) == 0 {
		f.Note(&typ.At, "%s has no index", typ)
	}
	return f
}

// indexOver is the index of an entity over exactly the given attributes, which are sorted; nil without one. One that names an
// attribute twice counts too, although it has no entry with a key of that length.
func indexOver(e *check.Entity, params []attrValue) *check.IndexDef {
	var repeated *check.IndexDef
	for _, ix := range e.Indexes {
		k := 0
		for n, name := range ix.Names {
			if n > 0 && name == ix.Names[n-1] {
				continue
			}
			if k == len(params) || params[k].name != name {
				k = -1
				break
			}
			k++
		}
		switch {
		case k != len(params):
		case len(ix.Names) == k:
			return ix
		case repeated == nil:
			repeated = ix
		}
	}
	return repeated
}

func paramText(params []attrValue) string {
	var s strings.Builder
	s.WriteByte('[')
	for n, p := range params {
		if n > 0 {
			s.WriteString(", ")
		}
		s.WriteString("(" + value.StringRepr(p.name) + ", " + value.Repr(p.val) + ")")
	}
	s.WriteByte(']')
	return s.String()
}
