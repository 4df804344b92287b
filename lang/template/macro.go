package template

import (
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// macro is a macro with the scope in which it was defined.
type macro struct {
	stmt     *macroStmt
	scope    *scope
	template *parsed
}

func (m *macro) attribute(name string) (any, bool) {
	switch name {
	case "name":
		return value.String(m.stmt.name), true
	case "arguments":
		t := &tuple{}
		for _, p := range m.stmt.params {
			t.items = append(t.items, value.String(p))
		}
		return t, true
	case "catch_kwargs":
		return value.Bool(m.stmt.uses["kwargs"]), true
	case "catch_varargs":
		return value.Bool(m.stmt.uses["varargs"]), true
	case "caller":
		return value.Bool(m.stmt.uses["caller"]), true
	}
	return nil, false
}

func (m *macro) text() string { return "<Macro " + value.StringRepr(m.stmt.name) + ">" }

// callMacro runs a macro and gives its output.
func (r *renderer) callMacro(m *macro, args callArgs) any {
	params := m.stmt.params
	inner := m.scope.inner()
	inner.muted = false
	given := min(len(args.positional), len(params))
	bound := make([]any, len(params))
	copy(bound, args.positional[:given])
	callerIsParam := false
	for i, p := range params {
		if i >= given {
			if v, ok := args.keyword(p); ok {
				bound[i] = v
			}
		}
		callerIsParam = callerIsParam || p == "caller"
	}
	if m.stmt.uses["caller"] && !callerIsParam {
		caller, ok := args.keyword("caller")
		if _, none := caller.(value.Null); !ok || none {
			caller = &undefined{strict: r.strict, hint: "No caller defined", name: value.String("caller")}
		}
		inner.put("caller", caller)
	}
	switch {
	case m.stmt.uses["kwargs"]:
		d := newDict()
		for i, n := range args.names {
			d.set(value.String(n), args.named[i])
		}
		inner.put("kwargs", d)
	case len(args.names) > 0:
		for _, n := range args.names {
			if n == "caller" {
				typeError("macro %s was invoked with two values for the special caller argument. This is most likely a bug.", value.StringRepr(m.stmt.name))
			}
		}
		typeError("macro %s takes no keyword argument %s", value.StringRepr(m.stmt.name), value.StringRepr(args.names[0]))
	}
	switch {
	case m.stmt.uses["varargs"]:
		inner.put("varargs", &tuple{append([]any(nil), args.positional[given:]...)})
	case len(args.positional) > len(params):
		typeError("macro %s takes not more than %d argument(s)", value.StringRepr(m.stmt.name), len(params))
	}
	outer := r.running
	r.running = m.template
	// All parameters are there before the first default is worked out, which therefore never sees a variable of the same name.
	for i, p := range params {
		switch {
		case bound[i] == nil && i >= len(params)-len(m.stmt.defaults):
			inner.put(p, r.undefined(nil, value.String(p)))
		case bound[i] == nil:
			inner.put(p, &undefined{strict: r.strict, hint: "parameter " + value.StringRepr(p) + " was not provided", name: value.String(p)})
		default:
			inner.put(p, bound[i])
		}
	}
	for i, p := range params {
		if d := i - len(params) + len(m.stmt.defaults); bound[i] == nil && d >= 0 {
			inner.put(p, r.eval(inner, m.stmt.defaults[d]))
		}
	}
	out := r.capture(func() { r.frame(inner, m.stmt.body) })
	r.running = outer
	return r.markupIf(m.scope, out)
}

// callBlock calls a macro with the body of {% call %} as its caller.
func (r *renderer) callBlock(s *scope, x *callStmt) {
	f, ok := r.pluginFunction(s, x.call.node)
	var target any
	if ok {
		target = f
	} else {
		target = r.eval(s, x.call.node)
	}
	args := r.arguments(s, x.call.args)
	args.names = append(args.names, "caller")
	args.named = append(args.named, &macro{stmt: x.macro, scope: s, template: r.running})
	r.current = x.call
	v := r.invoke(target, args)
	if s.escapes {
		r.write(s, string(escape(v)))
		return
	}
	r.write(s, text(v))
}

// module is an imported template.
type module struct {
	ctx  *context
	body string
}

func (m *module) attribute(name string) (any, bool) {
	if strings.HasPrefix(name, "_") || m.ctx.hidden[name] {
		return nil, false
	}
	v, ok := m.ctx.vars[name]
	return v, ok
}

func (m *module) text() string { return m.body }

// loop is the variable loop.
type loop struct {
	r     *renderer
	items func() (any, bool)
	// sized is the number of items when the iterable knows it; -1 otherwise.
	sized    int
	index    int // of the current item, from 0
	depth    int
	ahead    []any // items that were looked at before their turn
	done     bool
	previous any
	current  any
	changed  []any
	again    func(iterable any, depth int) any
}

// advance moves to the next item.
func (l *loop) advance() (any, bool) {
	v, ok := l.peek()
	if !ok {
		return nil, false
	}
	l.ahead = l.ahead[1:]
	l.previous, l.current = l.current, v
	l.index++
	return v, true
}

// peek looks at the next item.
func (l *loop) peek() (any, bool) {
	if len(l.ahead) == 0 {
		if l.done {
			return nil, false
		}
		v, ok := l.items()
		if !ok {
			l.done = true
			return nil, false
		}
		l.ahead = append(l.ahead, v)
	}
	return l.ahead[0], true
}

func (l *loop) length() int {
	if l.sized >= 0 {
		return l.sized
	}
	for !l.done {
		v, ok := l.items()
		if !ok {
			l.done = true
			break
		}
		if l.ahead = append(l.ahead, v); len(l.ahead) > maxItems {
			fail("MemoryError", "the sequence is too long")
		}
	}
	l.sized = l.index + 1 + len(l.ahead)
	return l.sized
}

// iterate goes through what is left of the loop.
func (l *loop) iterate() func() (any, bool) {
	return func() (any, bool) {
		v, ok := l.advance()
		if !ok {
			return nil, false
		}
		return &tuple{[]any{v, l}}, true
	}
}

func (l *loop) attribute(name string) (any, bool) {
	switch name {
	case "index":
		return value.Int(l.index + 1), true
	case "index0":
		return value.Int(l.index), true
	case "length":
		return value.Int(l.length()), true
	case "revindex":
		return value.Int(l.length() - l.index), true
	case "revindex0":
		return value.Int(l.length() - l.index - 1), true
	case "first":
		return value.Bool(l.index == 0), true
	case "last":
		_, more := l.peek()
		return value.Bool(!more), true
	case "depth":
		return value.Int(l.depth + 1), true
	case "depth0":
		return value.Int(l.depth), true
	case "previtem":
		if l.index == 0 {
			return &undefined{strict: l.r.strict, hint: "there is no previous item"}, true
		}
		return l.previous, true
	case "nextitem":
		v, ok := l.peek()
		if !ok {
			return &undefined{strict: l.r.strict, hint: "there is no next item"}, true
		}
		return v, true
	case "cycle":
		return &function{name: "cycle", call: func(args callArgs) any {
			if len(args.positional) == 0 {
				typeError("no items for cycling given")
			}
			return args.positional[l.index%len(args.positional)]
		}}, true
	case "changed":
		return &function{name: "changed", call: func(args callArgs) any {
			if l.changed != nil && equal(&tuple{l.changed}, &tuple{args.positional}) {
				return value.Bool(false)
			}
			l.changed = append([]any{}, args.positional...)
			return value.Bool(true)
		}}, true
	}
	return nil, false
}

func (l *loop) text() string {
	return "<LoopContext " + repr(value.Int(l.index+1)) + "/" + repr(value.Int(l.length())) + ">"
}

// recurse is loop(...) in a recursive loop.
func (l *loop) recurse(args callArgs) any {
	if l.again == nil {
		typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	a := bind("loop", 1, []string{"iterable"}, args)
	return l.again(a[0], l.depth+1)
}

func (r *renderer) forLoop(s *scope, x *forStmt) {
	v := r.eval(s, x.iter)
	r.current = x.iter
	if !x.recursive {
		r.iterate(s, x, v, 0)
		return
	}
	inner := s.inner()
	out := r.capture(func() { r.iterate(inner, x, v, 0) })
	r.written -= len(out)
	r.write(s, out)
}

// iterate runs the body of a loop for every item of v.
func (r *renderer) iterate(s *scope, x *forStmt, v any, depth int) {
	next, ok := each(v)
	if !ok {
		typeError("'%s' object is not iterable", typeName(v))
	}
	l := &loop{r: r, items: next, sized: -1, index: -1, depth: depth}
	if x.filter == nil {
		if n, ok := length(v); ok {
			l.sized = n
		}
	} else {
		l.items = func() (any, bool) {
			for {
				item, ok := next()
				if !ok {
					return nil, false
				}
				inner := s.inner()
				r.assign(inner, x.target, item)
				if r.truth(inner, x.filter) {
					return item, true
				}
			}
		}
	}
	if x.recursive {
		running := r.running
		l.again = func(iterable any, depth int) any {
			outer := r.running
			r.running = running
			out := r.capture(func() { r.iterate(s, x, iterable, depth) })
			r.running = outer
			return r.markupIf(s, out)
		}
	}
	empty := true
	for {
		item, ok := l.advance()
		if !ok {
			break
		}
		empty = false
		inner := s.inner()
		if x.usesLoop || x.recursive {
			inner.set("loop", l)
		}
		r.assign(inner, x.target, item)
		r.frame(inner, x.body)
		r.step(x)
	}
	if empty {
		r.frame(s.inner(), x.otherwise)
	}
}
