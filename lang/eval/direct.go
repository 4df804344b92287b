package eval

import (
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// env are the variables of a typedef's constraint.
type env struct {
	name  string
	val   value.Value
	outer *env
}

func (e *env) get(name string) (value.Value, bool) {
	for ; e != nil; e = e.outer {
		if e.name == name {
			return e.val, true
		}
	}
	return nil, false
}

// maxDirectDepth bounds how deeply constraints may call plugins that check constraints.
const maxDirectDepth = 200

// constraint evaluates the constraint of a typedef for a value.
func (m *machine) constraint(t *check.Typedef, v value.Value) (bool, *check.Fault) {
	if m.depth >= maxDirectDepth {
		return false, check.New("RuntimeException", &t.At, "the constraint of type %s goes round in circles", t)
	}
	m.depth++
	defer func() { m.depth-- }()
	self := m.self
	if m.self = nil; self == nil { // in use by a constraint around this one, or never made
		self = new(env)
	}
	*self = env{name: "self", val: v}
	r, f := m.direct(t.Constraint, self)
	m.self = self
	if f != nil {
		return false, f
	}
	if _, null := r.(value.Null); null {
		return true, nil // null is a result like any other, though a cast makes it false
	}
	return value.Truth(r), nil
}

// direct evaluates an expression without waiting for anything, as constraints are.
func (m *machine) direct(x check.Expr, vars *env) (value.Value, *check.Fault) {
	switch e := x.(type) {
	case *check.Literal:
		return e.Val, nil
	case *check.Ref:
		return directRef(e, e.Name, vars)
	case *check.AttrRef:
		return directRef(e, refText(e), vars)
	case *check.Match:
		v, ok := vars.get("self")
		if !ok {
			return nil, unresolved(e, "self")
		}
		return match(e, v)
	case *check.Binary:
		a, f := m.direct(e.X, vars)
		if f != nil {
			return nil, f
		}
		b, f := m.direct(e.Y, vars)
		if f != nil {
			return nil, f
		}
		return operate(e, a, b)
	case *check.Not:
		a, f := m.direct(e.X, vars)
		if f != nil {
			return nil, f
		}
		return not(e, a)
	case *check.Lazy:
		return m.directLazy(e, vars)
	case *check.Cond:
		c, f := m.direct(e.If, vars)
		if f != nil {
			return nil, f
		}
		if _, unknown := c.(*value.Unknown); unknown {
			return &value.Unknown{}, nil
		}
		b, ok := c.(value.Bool)
		if !ok {
			return nil, check.New("RuntimeException", e.Where(),
				"Invalid value `%s`: the condition for a conditional expression must be a boolean expression", value.Str(c))
		}
		if b {
			return m.direct(e.Then, vars)
		}
		return m.direct(e.Else, vars)
	case *check.List:
		items := make([]value.Value, 0, len(e.Items))
		for _, it := range e.Items {
			v, f := m.direct(it, vars)
			if f != nil {
				return nil, f
			}
			if l, ok := v.(*value.List); ok {
				if len(items)+len(l.Items) > maxItems {
					return nil, tooMany(e.Where())
				}
				items = append(items, l.Items...)
				continue
			}
			items = append(items, v)
		}
		return &value.List{Items: items}, nil
	case *check.Dict:
		d := value.NewDict(len(e.Keys))
		for i, k := range e.Keys {
			v, f := m.direct(e.Vals[i], vars)
			if f != nil {
				return nil, f
			}
			d.Set(k, v)
		}
		return d, nil
	case *check.Comp:
		return m.directComp(e, vars)
	case *check.Call:
		return m.directCall(e, vars)
	}
	return nil, check.New("DirectExecuteException", x.Where(), "The statement can not be executed in this context")
}

func directRef(x check.Expr, name string, vars *env) (value.Value, *check.Fault) {
	if v, ok := vars.get(name); ok {
		return v, nil
	}
	return nil, unresolved(x, name)
}

func unresolved(x check.Expr, name string) *check.Fault {
	return check.New("NotFoundException", x.Where(), "Unable to resolve `%s`: a type constraint can not reference variables.", name)
}

func (m *machine) directLazy(e *check.Lazy, vars *env) (value.Value, *check.Fault) {
	a, f := m.direct(e.X, vars)
	if f != nil {
		return nil, f
	}
	b, ok := a.(value.Bool)
	if !ok {
		return nil, check.New("RuntimeException", e.Where(), "Invalid left hand value `%s`: `%s` expects a boolean", value.Str(a), lazyName(e))
	}
	if bool(b) == e.Or {
		return b, nil
	}
	v, f := m.direct(e.Y, vars)
	if f != nil {
		return nil, f
	}
	if validateBool(v) != nil {
		return nil, check.New("RuntimeException", e.Where(), "Invalid right hand value `%s`: `%s` expects a boolean", value.Str(v), lazyName(e))
	}
	return v, nil
}

func (m *machine) directComp(e *check.Comp, vars *env) (value.Value, *check.Fault) {
	it, f := m.direct(e.Iter, vars)
	if f != nil {
		return nil, f
	}
	if _, unknown := it.(*value.Unknown); unknown {
		return &value.Unknown{}, nil
	}
	l, ok := it.(*value.List)
	if !ok {
		return nil, check.New("TypingException", e.Where(),
			"A list comprehension in a direct execute context can only be applied to lists, got %s", value.TypeName(it))
	}
	out := make([]value.Value, 0, len(l.Items))
	for _, el := range l.Items {
		inner := &env{name: e.Var, val: el, outer: vars}
		if e.Guard != nil {
			g, f := m.direct(e.Guard, inner)
			if f != nil {
				return nil, f
			}
			b, ok := g.(value.Bool)
			if !ok {
				return nil, check.New("TypingException", e.Where(),
					"Invalid value `%s`: the guard condition for a list comprehension must be a boolean expression", value.Str(g))
			}
			if !b {
				continue
			}
		}
		v, f := m.direct(e.Value, inner)
		if f != nil {
			return nil, f
		}
		out = append(out, v)
	}
	return &value.List{Items: out}, nil
}

func (m *machine) directCall(e *check.Call, vars *env) (value.Value, *check.Fault) {
	args := make([]value.Value, 0, len(e.Args))
	for _, a := range e.Args {
		v, f := m.direct(a, vars)
		if f != nil {
			return nil, f
		}
		args = append(args, v)
	}
	kwargs := make([]kwarg, 0, len(e.Kwargs))
	for i := range e.Kwargs {
		v, f := m.direct(e.Kwargs[i].X, vars)
		if f != nil {
			return nil, f
		}
		kwargs = append(kwargs, kwarg{e.Kwargs[i].Name, v, e.Kwargs[i].X.Where()})
	}
	if len(e.Unpack) > 0 {
		return nil, check.New("DirectExecuteException", e.Unpack[0].Where(), "The statement can not be executed in this context")
	}
	if e.Plugin == nil {
		return m.cast(e, args, kwargs)
	}
	bound, unknown, f := m.bindArgs(e, args, kwargs)
	if f != nil {
		return nil, f
	}
	if unknown && !e.Plugin.AllowUnknown {
		return nil, check.New("RuntimeException", e.Where(), "Received unknown value during direct execution")
	}
	return m.invoke(e, bound, nil, "in direct execution for plugin")
}

// match tests a value against the regular expression of a constraint.
func match(e *check.Match, v value.Value) (value.Value, *check.Fault) {
	s, ok := v.(value.String)
	if !ok {
		return nil, check.New("TypingException", e.Where(), "Regex can only be match with strings. %s is of type %s", value.Str(v), value.TypeName(v))
	}
	ok, err := e.Regexp.Matches(string(s))
	if err != nil {
		return nil, check.New("RuntimeException", e.Where(), "matching /%s/: %s", e.Pattern, err)
	}
	return value.Bool(ok), nil
}
