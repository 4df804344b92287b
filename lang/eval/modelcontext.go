package eval

import (
	"maps"
	"slices"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

var _ value.ModelContext = (*callContext)(nil)

// Type describes an entity or a typedef.
func (c *callContext) Type(name string) (value.TypeInfo, bool) {
	return typeInfo(c.m.prog, c.m.annotations, name)
}

// TypeNames lists the qualified names of entities and typedefs, sorted.
func (c *callContext) TypeNames() []string { return TypeNames(c.m.prog) }

// PluginNames lists the qualified names of plugins, sorted.
func (c *callContext) PluginNames() []string { return PluginNames(c.m.prog) }

// Instances lists the instances of an entity and of those that descend from it.
func (c *callContext) Instances(entity string) []value.Instance {
	return instancesOf(c.m.prog, c.m.instances, entity)
}

// Construct makes an instance as a constructor at the place of the call would.
func (c *callContext) Construct(entity string, attrs *value.Dict) (value.Instance, error) {
	e, ok := c.m.prog.Symbols[entity].(*check.Entity)
	if !ok {
		return nil, &faultError{check.New("TypeNotFoundException", nil, "could not find type %s", entity)}
	}
	at := c.e.Where()
	i := c.m.newInstance(e, at)
	if c.sc != nil {
		i.maker = c.sc.inst
	}
	for k := range attrs.Len() {
		name, v := attrs.At(k)
		slot, ok := e.Slot(name)
		if !ok {
			return nil, &faultError{check.New("TypingException", at, "no attribute %s on type %s", name, e)}
		}
		if f := c.m.setDirect(i, attrValue{name, slot, v}, at); f != nil {
			return nil, &faultError{f}
		}
	}
	if f := c.m.register(i); f != nil {
		return nil, &faultError{f}
	}
	if f := c.m.emitImplements(i); f != nil {
		return nil, &faultError{f}
	}
	return i, nil
}

// Invoke calls a plugin as a call in a model does.
func (c *callContext) Invoke(name string, args []value.Value, kwargs *value.Dict) (value.Value, error) {
	p, ok := c.m.prog.Symbols[name].(*check.Plugin)
	if !ok {
		return nil, &faultError{check.New("NotFoundException", nil, "there is no plugin %s", name)}
	}
	var named []kwarg
	if kwargs != nil {
		for i := range kwargs.Len() {
			k, v := kwargs.At(i)
			named = append(named, kwarg{name: k, val: v})
		}
	}
	// Faults of the arguments are at the call that is under way.
	call := *c.e
	call.Plugin, call.Args = p, make([]check.Expr, len(args))
	for i := range call.Args {
		call.Args[i] = c.e
	}
	bound, unknown, f := c.m.bindArgs(&call, args, named)
	switch {
	case f != nil:
		return nil, &faultError{f}
	case unknown && !p.AllowUnknown:
		return &value.Unknown{}, nil
	}
	return safely(p.Plugin, c, bound)
}

// Type describes an entity or a typedef.
func (m *Model) Type(name string) (value.TypeInfo, bool) {
	return typeInfo(m.prog, m.annotations, name)
}

// Declaration describes an entity or a typedef of a program that does not run yet: annotations have no values.
func Declaration(p *check.Program, name string) (value.TypeInfo, bool) { return typeInfo(p, nil, name) }

// TypeNamed describes an entity or a typedef of a program that is still being evaluated; the values of annotations are left out.
func TypeNamed(p *check.Program, name string) (value.TypeInfo, bool) { return typeInfo(p, nil, name) }

// typeInfo describes an entity or a typedef of a program.
func typeInfo(p *check.Program, annotations []variable, name string) (value.TypeInfo, bool) {
	switch s := p.Symbols[name].(type) {
	case *check.Typedef:
		t := value.TypeInfo{Name: name, Base: s.Base.String(), Line: s.At.Line()}
		if s.At.File != nil {
			t.File = s.At.File.Name
		}
		return t, true
	case *check.Entity:
		t := value.TypeInfo{Name: name, Entity: true, Dataclass: s.Dataclass, Doc: s.Doc, Line: s.At.Line()}
		if s.At.File != nil {
			t.File = s.At.File.Name
		}
		for _, e := range s.Parents {
			t.Parents = append(t.Parents, e.FullName())
		}
		for _, e := range s.Children {
			t.Children = append(t.Children, e.FullName())
		}
		for todo := slices.Clone(s.Parents); len(todo) > 0; todo = todo[1:] {
			if full := todo[0].FullName(); !slices.Contains(t.Ancestors, full) {
				t.Ancestors = append(t.Ancestors, full)
				todo = append(todo, todo[0].Parents...)
			}
		}
		for _, im := range s.Subs {
			info := value.ImplementInfo{Conditional: im.When != nil, Line: im.At.Line()}
			if im.At.File != nil {
				info.File = im.At.File.Name
			}
			for _, i := range im.Using {
				info.Implementations = append(info.Implementations, i.FullName())
			}
			t.Implements = append(t.Implements, info)
		}
		for _, a := range s.All {
			t.Attributes = append(t.Attributes, describeAttribute(a, annotations))
		}
		for _, ix := range s.Indexes {
			t.Indexes = append(t.Indexes, slices.Clone(ix.Names))
		}
		return t, true
	}
	return value.TypeInfo{}, false
}

func describeAttribute(a *check.Attribute, annotations []variable) value.AttributeInfo {
	info := value.AttributeInfo{
		Name: a.Name, Owner: a.Entity.FullName(), Type: a.Type.String(), Relation: a.Relation, Low: a.Low, High: a.High, Right: a.Right, Doc: a.Doc,
	}
	for _, an := range a.Annotations {
		if annotations == nil {
			break
		}
		v := &annotations[an.ID]
		x := value.AnnotationInfo{Value: v.val}
		if !v.done {
			x.Unset = &value.UnsetError{Instance: noInstance{}, Attribute: a.Name, Waiter: v}
		}
		info.Annotations = append(info.Annotations, x)
	}
	if a.End != nil {
		info.EndEntity, info.EndName = a.End.Entity.FullName(), a.End.Name
	}
	return info
}

// TypeNames lists the qualified names of the entities and typedefs of a program, sorted.
func TypeNames(p *check.Program) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Symbols)) {
		switch p.Symbols[name].(type) {
		case *check.Entity, *check.Typedef:
			names = append(names, name)
		}
	}
	return names
}

// PluginNames lists the qualified names of the plugins of a program, sorted.
func PluginNames(p *check.Program) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Symbols)) {
		if _, ok := p.Symbols[name].(*check.Plugin); ok {
			names = append(names, name)
		}
	}
	return names
}

// InstancesOf lists the instances of an entity and of those that descend from it, in creation order.
func (m *Model) InstancesOf(entity string) []value.Instance {
	return instancesOf(m.prog, m.Instances, entity)
}

func instancesOf(p *check.Program, all []*Instance, entity string) []value.Instance {
	e, ok := p.Symbols[entity].(*check.Entity)
	if !ok {
		return nil
	}
	var out []value.Instance
	for _, i := range all {
		if i.typ.IsA(e) {
			out = append(out, i)
		}
	}
	return out
}
