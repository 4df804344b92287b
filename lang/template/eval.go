package template

import (
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// DefaultMaxSteps bounds the expressions and statements that a rendering may evaluate.
const DefaultMaxSteps = 10_000_000

// scope is a set of variables within another one. The outermost scope of a template is its top.
type scope struct {
	parent *scope
	ctx    *context
	// names and vals are the variables; a scope has few.
	names []string
	vals  []any
	// top marks the scope whose variables the template exports.
	top bool
	// muted marks output that a template with extends drops.
	muted bool
	// escapes is set inside {% autoescape true %}.
	escapes bool
}

// inner is a scope within s.
func (s *scope) inner() *scope {
	return &scope{parent: s, ctx: s.ctx, muted: s.muted, escapes: s.escapes}
}

// get finds a variable of the scope itself.
func (s *scope) get(name string) (any, bool) {
	for i, n := range s.names {
		if n == name {
			return s.vals[i], true
		}
	}
	return nil, false
}

// put sets a variable of the scope without exporting it.
func (s *scope) put(name string, v any) {
	for i, n := range s.names {
		if n == name {
			s.vals[i] = v
			return
		}
	}
	s.names = append(s.names, name)
	s.vals = append(s.vals, v)
}

func (s *scope) set(name string, v any) {
	s.put(name, v)
	if s.top {
		s.ctx.export(name, v)
	}
}

// hide keeps a variable from templates that import this one.
func (s *scope) hide(name string) {
	if s.top {
		if s.ctx.hidden == nil {
			s.ctx.hidden = map[string]bool{}
		}
		s.ctx.hidden[name] = true
	}
}

// context is what the blocks of a template share: exported variables, blocks, and what lies around the template.
type context struct {
	template *parsed
	vars     map[string]any
	// hidden are variables that an importing template does not see, because they are imported themselves.
	hidden map[string]bool
	// up is where an included template looks further.
	up *scope
	// outer are the variables given to the rendering; nil in a template that is used without context.
	outer map[string]any
	// host gives the variables of the model; nil in a template that is used without context.
	host   func(name string) (any, bool)
	blocks map[string][]block
	// extended is the template that this one extends, once that is known.
	extended *parsed
}

// block is a block as one of the templates in a chain of extends has it.
type block struct {
	stmt     *blockStmt
	template *parsed
}

func (c *context) export(name string, v any) {
	if c.vars == nil {
		c.vars = map[string]any{}
	}
	c.vars[name] = v
}

// lookup finds a variable from the innermost scope outwards.
func (r *renderer) lookup(s *scope, name string) (any, bool) {
	for {
		ctx := s.ctx
		for ; s != nil; s = s.parent {
			if v, ok := s.get(name); ok {
				return v, true
			}
		}
		if ctx.host != nil {
			if v, ok := ctx.host(name); ok {
				return v, true
			}
		}
		if v, ok := ctx.vars[name]; ok {
			return v, true
		}
		if ctx.up == nil {
			if v, ok := ctx.outer[name]; ok {
				return v, true
			}
			v, ok := r.globals[name]
			return v, ok
		}
		s = ctx.up
	}
}

// step counts work and remembers the place for messages.
func (r *renderer) step(e interface{ at() place }) {
	r.current = e
	if r.steps++; r.steps > r.maxSteps {
		fail("LimitExceeded", "the template takes too many steps")
	}
}

func (r *renderer) enter() {
	if r.depth++; r.depth > maxNesting {
		fail("RecursionError", "maximum recursion depth exceeded")
	}
}

// maxNesting bounds the nesting of evaluation: expressions, macros, includes, recursive loops.
const maxNesting = 2000

// eval evaluates an expression.
func (r *renderer) eval(s *scope, e expr) any {
	r.step(e)
	switch x := e.(type) {
	case *constExpr:
		return x.value
	case *nameExpr:
		if v, ok := r.lookup(s, x.name); ok {
			if l, ok := v.(*late); ok {
				return known(l.v)
			}
			return v
		}
		return r.undefined(nil, value.String(x.name))
	}
	r.enter()
	defer func() { r.depth-- }()
	switch x := e.(type) {
	case *listExpr:
		items := make([]any, len(x.items))
		for i, item := range x.items {
			items[i] = r.eval(s, item)
		}
		if x.tuple {
			return &tuple{items}
		}
		return &list{items}
	case *dictExpr:
		d := newDict()
		for i, k := range x.keys {
			key := r.eval(s, k)
			v := r.eval(s, x.values[i])
			r.current = x
			d.set(key, v)
		}
		return d
	case *condExpr:
		if r.truth(s, x.cond) {
			return r.eval(s, x.yes)
		}
		if x.no != nil {
			return r.eval(s, x.no)
		}
		// Jinja2 makes this one lenient even where names that do not exist are faults.
		return &undefined{hint: "the inline if-expression on line " + repr(value.Int(x.line)) +
			" evaluated to false and no else section was defined."}
	case *binaryExpr:
		return r.binary(s, x)
	case *unaryExpr:
		if x.op == "not" {
			return value.Bool(!r.truth(s, x.node))
		}
		v := r.eval(s, x.node)
		r.current = x
		return negate(x.op, v)
	case *concatExpr:
		return r.concat(s, x)
	case *compareExpr:
		left := r.eval(s, x.first)
		for i, op := range x.ops {
			right := r.eval(s, x.rest[i])
			r.current = x
			if !compare(op, left, right) {
				return value.Bool(false)
			}
			left = right
		}
		return value.Bool(true)
	case *attrExpr:
		v := r.eval(s, x.node)
		r.current = x
		return r.getAttribute(v, x.name)
	case *itemExpr:
		v := r.eval(s, x.node)
		index := r.eval(s, x.index)
		r.current = x
		return r.getItem(v, index)
	case *sliceExpr:
		part := func(e expr) any {
			if e == nil {
				return value.Null{}
			}
			return r.eval(s, e)
		}
		return &slice{part(x.start), part(x.stop), part(x.step)}
	case *callExpr:
		return r.call(s, x)
	case *filterExpr:
		v := r.eval(s, x.node)
		return r.filter(s, x, v)
	case *testExpr:
		v := r.eval(s, x.node)
		args := r.arguments(s, x.args)
		r.current = x
		return value.Bool(r.test(s, x.name, v, args))
	}
	typeError("an expression of an unknown kind")
	return nil
}

func (r *renderer) truth(s *scope, e expr) bool {
	v := r.eval(s, e)
	r.current = e
	return truth(v)
}

func (r *renderer) binary(s *scope, x *binaryExpr) any {
	left := r.eval(s, x.left)
	switch x.op {
	case "and":
		r.current = x
		if !truth(left) {
			return left
		}
		return r.eval(s, x.right)
	case "or":
		r.current = x
		if truth(left) {
			return left
		}
		return r.eval(s, x.right)
	}
	right := r.eval(s, x.right)
	r.current = x
	return operate(x.op, left, right)
}

func (r *renderer) concat(s *scope, x *concatExpr) any {
	var b strings.Builder
	parts := make([]any, len(x.items))
	safe := false
	for i, item := range x.items {
		v := r.eval(s, item)
		r.current = x
		parts[i] = v
		if _, ok := v.(markup); ok && r.escapes {
			safe = true
		}
	}
	for _, v := range parts {
		if safe {
			b.WriteString(string(escape(v)))
		} else {
			b.WriteString(text(v))
		}
		if b.Len() > maxText {
			fail("MemoryError", "the text is too long")
		}
	}
	if safe {
		return markup(b.String())
	}
	return value.String(b.String())
}

// arguments evaluates the arguments of a call.
func (r *renderer) arguments(s *scope, a arguments) callArgs {
	var out callArgs
	for _, e := range a.positional {
		out.positional = append(out.positional, r.eval(s, e))
	}
	for i, e := range a.named {
		out.names = append(out.names, a.names[i])
		out.named = append(out.named, r.eval(s, e))
	}
	if a.star != nil {
		out.positional = append(out.positional, itemsOf(r.eval(s, a.star))...)
	}
	if a.starStar != nil {
		v := r.eval(s, a.starStar)
		keys, vals, ok := entries(v)
		if !ok {
			if u, undef := v.(*undefined); undef {
				u.fail()
			}
			typeError("argument after ** must be a mapping, not %s", typeName(v))
		}
		for i, k := range keys {
			name, ok := asString(k)
			if !ok {
				typeError("keywords must be strings")
			}
			out.names = append(out.names, name)
			out.named = append(out.named, vals[i])
		}
	}
	for i, n := range out.names {
		for _, m := range out.names[:i] {
			if n == m {
				typeError("got multiple values for keyword argument '%s'", n)
			}
		}
	}
	return out
}

func (r *renderer) call(s *scope, x *callExpr) any {
	f, ok := r.pluginFunction(s, x.node)
	if !ok {
		f = r.eval(s, x.node)
	}
	args := r.arguments(s, x.args)
	r.current = x
	return r.invoke(f, args)
}

// invoke calls an object.
func (r *renderer) invoke(f any, args callArgs) any {
	r.enter()
	defer func() { r.depth-- }()
	switch x := f.(type) {
	case *function:
		return x.call(args)
	case *macro:
		return r.callMacro(x, args)
	case *loop:
		return x.recurse(args)
	case *blockReference:
		return x.call()
	case *joiner:
		return x.next()
	case *undefined:
		x.fail()
	}
	typeError("'%s' object is not callable", typeName(f))
	return nil
}

// callable reports whether invoke would take f.
func callable(f any) bool {
	switch f.(type) {
	case *function, *macro, *loop, *undefined, *joiner, *blockReference:
		return true
	}
	return false
}

// dottedName is a.b.c for an expression of that form.
func dottedName(e expr) (string, bool) {
	switch x := e.(type) {
	case *nameExpr:
		return x.name, true
	case *attrExpr:
		if front, ok := dottedName(x.node); ok {
			return front + "." + x.name, true
		}
	}
	return "", false
}

// pluginFunction finds the plugin that module.name(...) calls when no variable is in the way.
func (r *renderer) pluginFunction(s *scope, e expr) (any, bool) {
	if r.plugin == nil {
		return nil, false
	}
	if _, ok := e.(*attrExpr); !ok {
		return nil, false
	}
	name, ok := dottedName(e)
	if !ok {
		return nil, false
	}
	root, _, _ := strings.Cut(name, ".")
	if _, found := r.lookup(s, root); found {
		return nil, false
	}
	f, ok := r.plugin(strings.ReplaceAll(name, ".", "::"))
	if !ok {
		return nil, false
	}
	return f, true
}

// filter applies a filter to v.
func (r *renderer) filter(s *scope, x *filterExpr, v any) any {
	args := r.arguments(s, x.args)
	r.current = x
	return r.applyFilter(s, x.name, v, args)
}

func (r *renderer) applyFilter(s *scope, name string, v any, args callArgs) any {
	r.enter()
	defer func() { r.depth-- }()
	if f, ok := r.engine.filters[name]; ok {
		var bound []any
		if !f.variadic {
			bound = bind(name, f.least, f.params, args)
		}
		return f.call(&filterCall{r: r, s: s, name: name}, v, bound, args)
	}
	if r.plugin != nil {
		if f, ok := r.plugin(strings.ReplaceAll(name, ".", "::")); ok {
			args.positional = append([]any{v}, args.positional...)
			return f.call(args)
		}
	}
	fail("TemplateRuntimeError", "No filter named %s found.", value.StringRepr(name))
	return nil
}
