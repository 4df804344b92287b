package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

// callState is what a call keeps between its attempts.
type callState struct {
	ready  bool
	args   []value.Value
	kwargs []kwarg
	// more are the variables that the plugin turned out to need.
	more []*variable
}

type kwarg struct {
	name string
	val  value.Value
	at   *check.Loc // of the value; nil when ** supplies it
}

// runCall evaluates the arguments of a call once, then calls. A plugin that meets an attribute without a value is called
// again later.
func (m *machine) runCall(u *unit) *check.Fault {
	e, _ := u.x.(*check.Call)
	st, _ := u.aux.(*callState)
	if st == nil {
		st = &callState{}
	}
	if !st.ready {
		if f := m.values(u); f != nil {
			return f
		}
		if f := m.callArgs(u, e, st); f != nil {
			return f.By(e.Where(), false)
		}
		st.ready = true
	}
	v, f := m.call(u, e, st)
	if f != nil {
		if f.Unset != nil {
			u.aux = st
			return f
		}
		return f.By(e.Where(), true)
	}
	m.deliver(u.to, u.slot, v)
	return nil
}

func (m *machine) callArgs(u *unit, e *check.Call, st *callState) *check.Fault {
	st.args = make([]value.Value, len(e.Args))
	for i, x := range e.Args {
		v, f := m.eval(u, x)
		if f != nil {
			return f
		}
		st.args[i] = v
	}
	if n := len(e.Kwargs); n > 0 {
		st.kwargs = make([]kwarg, 0, n)
	}
	for i := range e.Kwargs {
		v, f := m.eval(u, e.Kwargs[i].X)
		if f != nil {
			return f
		}
		st.kwargs = append(st.kwargs, kwarg{e.Kwargs[i].Name, v, e.Kwargs[i].X.Where()})
	}
	for _, un := range e.Unpack {
		d, f := m.evalUnpack(u, un)
		if f != nil {
			return f
		}
		for i := range d.Len() {
			k, v := d.At(i)
			if slices.ContainsFunc(st.kwargs, func(o kwarg) bool { return o.name == k }) {
				return check.New("RuntimeException", e.Where(), "Keyword argument %s repeated in function call", k)
			}
			st.kwargs = append(st.kwargs, kwarg{name: k, val: v})
		}
	}
	return nil
}

func (m *machine) call(u *unit, e *check.Call, st *callState) (value.Value, *check.Fault) {
	if e.Plugin == nil {
		return m.cast(e, st.args, st.kwargs)
	}
	bound, unknown, f := m.bindArgs(e, st.args, st.kwargs)
	if f != nil {
		return nil, f
	}
	if unknown && !e.Plugin.AllowUnknown {
		return &value.Unknown{}, nil
	}
	return m.invoke(e, bound, u.sc, "in plugin")
}

func (m *machine) cast(e *check.Call, args []value.Value, kwargs []kwarg) (value.Value, *check.Fault) {
	if len(kwargs) > 0 {
		return nil, check.New("RuntimeException", e.Where(), "Only positional arguments allowed in type cast")
	}
	if len(args) != 1 {
		texts := make([]string, len(args))
		for i, a := range args {
			texts[i] = value.Repr(a)
		}
		return nil, check.New("RuntimeException", e.Where(), "Illegal arguments %s: type cast expects exactly 1 argument", strings.Join(texts, ","))
	}
	v, err := value.Cast(e.Cast.String(), args[0])
	if err != nil {
		return nil, check.New("RuntimeException", nil, "%s", err.Error())
	}
	return v, nil
}

// bindArgs matches arguments to the parameters of a plugin, as Python does, and checks their types.
func (m *machine) bindArgs(e *check.Call, args []value.Value, kwargs []kwarg) (bound []value.Value, unknown bool, f *check.Fault) {
	p := e.Plugin
	positional, variadic, keywords := 0, -1, -1
	for i := range p.Params {
		switch p.Params[i].Kind {
		case value.PositionalOrKeyword:
			positional++
		case value.VarPositional:
			variadic = i
		case value.VarKeyword:
			keywords = i
		case value.KeywordOnly:
		}
	}
	if variadic < 0 && len(args) > positional {
		return nil, false, check.New("RuntimeException", nil, "%s() takes %d positional arguments but %d were given", p.Name, positional, len(args)).
			On(e.Args[positional].Where())
	}
	if f := missingArgs(p, args, kwargs); f != nil {
		f.Hint = keywordHint(p, kwargs)
		return nil, false, f
	}
	bound = make([]value.Value, len(p.Params))
	take := func(prm *check.Param, v value.Value) *check.Fault {
		if _, un := v.(*value.Unknown); un {
			unknown = true
			return nil
		}
		return m.checkArg(p, prm, v)
	}
	var rest []value.Value
	n := 0
	for i := range p.Params {
		if p.Params[i].Kind != value.PositionalOrKeyword || n >= len(args) {
			continue
		}
		if f := take(&p.Params[i], args[n]); f != nil {
			return nil, false, f.On(e.Args[n].Where())
		}
		bound[i] = args[n]
		n++
	}
	for ; n < len(args); n++ {
		if f := take(&p.Params[variadic], args[n]); f != nil {
			return nil, false, f.On(e.Args[n].Where())
		}
		rest = append(rest, args[n])
	}
	var extra *value.Dict
	for _, kw := range kwargs {
		i := slices.IndexFunc(p.Params, func(q check.Param) bool {
			return q.Name == kw.name && (q.Kind == value.PositionalOrKeyword || q.Kind == value.KeywordOnly)
		})
		at := i
		if i < 0 {
			if keywords < 0 {
				f := check.New("RuntimeException", nil, "%s() got an unexpected keyword argument: '%s'", p.Name, kw.name).On(kw.at)
				f.Hint = keywordHint(p, kwargs)
				return nil, false, f
			}
			at = keywords
		} else if bound[i] != nil {
			return nil, false, check.New("RuntimeException", nil, "%s() got multiple values for argument '%s'", p.Name, kw.name).On(kw.at)
		}
		if f := take(&p.Params[at], kw.val); f != nil {
			return nil, false, f.On(kw.at)
		}
		if i >= 0 {
			bound[i] = kw.val
			continue
		}
		if extra == nil {
			extra = value.NewDict(len(kwargs))
		}
		extra.Set(kw.name, kw.val)
	}
	for i := range p.Params {
		if bound[i] != nil {
			continue
		}
		switch p.Params[i].Kind {
		case value.VarPositional:
			bound[i] = &value.List{Items: rest}
		case value.VarKeyword:
			if extra == nil {
				extra = value.NewDict(0)
			}
			bound[i] = extra
		default:
			bound[i] = p.Params[i].Default
		}
	}
	return bound, unknown, nil
}

// keywordHint asks whether a parameter was meant by the first keyword argument that is none.
func keywordHint(p *check.Plugin, kwargs []kwarg) string {
	var names []string
	for i := range p.Params {
		if prm := &p.Params[i]; prm.Kind == value.PositionalOrKeyword || prm.Kind == value.KeywordOnly {
			names = append(names, prm.Name)
		}
	}
	for _, kw := range kwargs {
		if !slices.Contains(names, kw.name) {
			return check.DidYouMean("", kw.name, names)
		}
	}
	return ""
}

func missingArgs(p *check.Plugin, args []value.Value, kwargs []kwarg) *check.Fault {
	given := func(name string) bool {
		return slices.ContainsFunc(kwargs, func(k kwarg) bool { return k.name == name })
	}
	report := func(kind value.ParamKind, what string) *check.Fault {
		var names []string
		n := 0
		for i := range p.Params {
			prm := &p.Params[i]
			if prm.Kind != kind {
				continue
			}
			n++
			if (kind == value.KeywordOnly || n > len(args)) && prm.Default == nil && !given(prm.Name) {
				names = append(names, "'"+prm.Name+"'")
			}
		}
		switch len(names) {
		case 0:
			return nil
		case 1:
			return check.New("RuntimeException", nil, "%s() missing 1 required %s argument: %s", p.Name, what, names[0])
		}
		text := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
		return check.New("RuntimeException", nil, "%s() missing %d required %s arguments: %s", p.Name, len(names), what, text)
	}
	if f := report(value.PositionalOrKeyword, "positional"); f != nil {
		return f
	}
	return report(value.KeywordOnly, "keyword-only")
}

func (m *machine) checkArg(p *check.Plugin, prm *check.Param, v value.Value) *check.Fault {
	f := m.validate(prm.Typ, v)
	if f == nil {
		return nil
	}
	if f.Class == "UnexpectedReference" {
		return check.Wrap("PluginTypeException", nil, f,
			"Value %s for argument %s of plugin %s %s a reference. To allow references, use `| Reference[...]` in your type annotation.",
			brief(value.Repr(v)), prm.Name, p.Name, holds(v))
	}
	return check.Wrap("PluginTypeException", nil, f, "Value %s for argument %s of plugin %s has incompatible type. Expected type: %s",
		brief(value.Repr(v)), prm.Name, p.Name, prm.Typ)
}

// holds says how a value has to do with a reference: it is one, or contains one.
func holds(v value.Value) string {
	if _, ok := v.(*value.Reference); ok {
		return "is"
	}
	return "contains"
}

// invoke runs a plugin and says in the language's terms what went wrong.
func (m *machine) invoke(e *check.Call, args []value.Value, sc *scope, how string) (value.Value, *check.Fault) {
	p := e.Plugin
	v, err := safely(p.Plugin, &callContext{m: m, e: e, sc: sc}, args)
	if err != nil {
		return m.pluginFault(e, how, err)
	}
	if v == nil {
		v = value.Null{}
	}
	if f := m.validate(p.Returns, v); f != nil {
		if f.Class == "UnexpectedReference" {
			return nil, check.Wrap("PluginTypeException", nil, f,
				"Return value %s of plugin %s %s a reference. To allow references, use `| Reference[...]` in your type annotation.",
				brief(value.Repr(v)), p.Name, holds(v))
		}
		return nil, check.Wrap("PluginTypeException", nil, f, "Return value %s of plugin %s has incompatible type. Expected type: %s",
			brief(value.Str(v)), p.Name, p.Returns)
	}
	return v, nil
}

// panicError is a plugin that broke.
type panicError struct{ what any }

func (e *panicError) Error() string { return fmt.Sprintf("the plugin broke: %v", e.what) }

// safely calls a plugin and turns a panic in it into an error, since plugins are not part of the compiler.
func safely(p *value.Plugin, c value.Context, args []value.Value) (v value.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, &panicError{r}
		}
	}()
	return p.Call(c, args)
}

func (m *machine) pluginFault(e *check.Call, how string, err error) (value.Value, *check.Fault) {
	if ue, ok := errors.AsType[*value.UnsetError](err); ok {
		var missing []*variable
		for _, one := range append([]*value.UnsetError{ue}, ue.More...) {
			if v, ok := one.Waiter.(*variable); ok && !v.done && !slices.Contains(missing, v) {
				missing = append(missing, v)
			}
		}
		if len(missing) > 0 {
			f := check.New("UnsetException", nil, "Value not available")
			f.Unset = missing
			return nil, f
		}
		if _, ok := ue.Waiter.(*variable); ok {
			return nil, check.New("CompilerException", e.Where(), "plugin %s asks again for an attribute that has a value", e.Name)
		}
	}
	if ue, ok := errors.AsType[*value.UnknownError](err); ok {
		if ue.Value == nil {
			return &value.Unknown{}, nil
		}
		return ue.Value, nil
	}
	if oe, ok := errors.AsType[*value.OptionalError](err); ok {
		cause := check.New("OptionalValueException", nil, "%s", oe.Error())
		return nil, check.Wrap("WrappingRuntimeException", e.Where(), cause, "Exception %s %s", how, e.Name)
	}
	if me, ok := errors.AsType[*value.ModelError](err); ok {
		cause := check.New(me.Class, nil, "%s", me.Error())
		return nil, check.Wrap("WrappingRuntimeException", e.Where(), cause, "Exception %s %s", how, e.Name)
	}
	if pe, ok := errors.AsType[*value.PluginError](err); ok {
		if pe.Class == "" {
			return nil, check.New("ExplicitPluginException", e.Where(), "PluginException %s %s\n%s", how, e.Name, pe.Message)
		}
		if pe.Class == "PluginTypeException" { // says itself which plugin
			return nil, check.New(pe.Class, e.Where(), "%s", pe.Message)
		}
		return nil, check.New(pe.Class, e.Where(), "Exception %s %s\n%s", how, e.Name, pe.Message)
	}
	if ce, ok := errors.AsType[*faultError](err); ok {
		return nil, check.Wrap("WrappingRuntimeException", e.Where(), ce.f, "Exception %s %s", how, e.Name)
	}
	return nil, check.New("ExternalException", e.Where(), "Exception %s %s\ncaused by: %s", how, e.Name, err.Error())
}

// faultError carries a fault through a plugin.
type faultError struct{ f *check.Fault }

func (e *faultError) Error() string { return e.f.Msg }

// callContext is what a plugin gets to see of a call.
type callContext struct {
	m  *machine
	e  *check.Call
	sc *scope
}
