package template

import (
	"cmp"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// renderer renders one template and those that it uses.
type renderer struct {
	// load finds and reads a template; err is nil and t too when there is none.
	load func(name string) (t *parsed, err error)
	// missing says why there is none, when load knows.
	missing string
	// plugin finds a plugin by its qualified name; nil when there are none.
	plugin func(name string) (*function, bool)
	// random gives bytes for the filter random.
	random func(n int) []byte
	// strict makes every use of an undefined variable a fault.
	strict bool
	// lenient makes attributes that an instance does not have undefined in the way that may be printed, tested and so on. The
	// reference does so with variables that it finds in the model itself, not with those that it is given.
	lenient bool
	// escapes makes templates escape what they print from the start.
	escapes bool
	globals map[string]any
	engine  *Engine
	// named are the variables that the bodies of frames read, by their first statement.
	named map[*stmt][]string

	out      *strings.Builder
	written  int
	steps    int
	maxSteps int
	depth    int
	current  interface{ at() place }
	running  *parsed
}

// maxOutput bounds the bytes that a rendering may write.
const maxOutput = 64 << 20

func (r *renderer) write(s *scope, text string) {
	if s.muted && s.ctx.extended != nil {
		return
	}
	if r.written += len(text); r.written > maxOutput {
		fail("LimitExceeded", "the output of the template is too long")
	}
	r.out.WriteString(text)
}

// capture gives what f writes.
func (r *renderer) capture(f func()) string {
	outer := r.out
	r.out = &strings.Builder{}
	f()
	text := r.out.String()
	r.out = outer
	return text
}

// run renders a whole template into the current output.
func (r *renderer) run(ctx *context) {
	r.enter()
	defer func() { r.depth-- }()
	outer := r.running
	t := ctx.template
	for {
		r.running = t
		r.addBlocks(ctx, t)
		ctx.extended = nil
		s := &scope{ctx: ctx, top: true, muted: true, escapes: r.escapes}
		s.put("self", &selfObject{r: r, scope: s})
		r.frame(s, t.body)
		if ctx.extended == nil {
			break
		}
		t = ctx.extended
		r.step(textPlace)
	}
	r.running = outer
}

// textPlace stands for a place that is not known.
var textPlace = &textStmt{}

// addBlocks appends the blocks of a template to those of the templates that extend it.
func (r *renderer) addBlocks(ctx *context, t *parsed) {
	if ctx.blocks == nil {
		ctx.blocks = map[string][]block{}
	}
	for name, b := range t.blocks {
		ctx.blocks[name] = append(ctx.blocks[name], block{b, t})
	}
}

func (r *renderer) body(s *scope, body []stmt) {
	for _, st := range body {
		r.statement(s, st)
	}
}

func (r *renderer) statement(s *scope, st stmt) {
	r.step(st)
	r.enter()
	defer func() { r.depth-- }()
	switch x := st.(type) {
	case *textStmt:
		r.write(s, x.text)
	case *outputStmt:
		if s.muted && s.ctx.extended != nil {
			return
		}
		v := r.eval(s, x.value)
		r.current = x
		if s.escapes {
			r.write(s, string(escape(v)))
		} else {
			r.write(s, text(v))
		}
	case *ifStmt:
		if r.truth(s, x.cond) {
			r.body(s, x.body)
		} else {
			r.body(s, x.otherwise)
		}
	case *forStmt:
		r.forLoop(s, x)
	case *setStmt:
		v := r.eval(s, x.value)
		r.current = x
		r.assign(s, x.target, v)
	case *setBlockStmt:
		r.setBlock(s, x)
	case *withStmt:
		inner := s.inner()
		vals := make([]any, len(x.values))
		for i, e := range x.values {
			vals[i] = r.eval(s, e)
		}
		for i, t := range x.targets {
			r.assign(inner, t, vals[i])
		}
		r.frame(inner, x.body)
	case *macroStmt:
		s.set(x.name, &macro{stmt: x, scope: s, template: r.running})
	case *callStmt:
		r.callBlock(s, x)
	case *filterStmt:
		inner := s.inner()
		out := r.capture(func() { r.frame(inner, x.body) })
		r.current = x
		r.write(s, text(r.applyFilters(s, x.filter, r.markupIf(s, out))))
	case *includeStmt:
		r.include(s, x)
	case *importStmt:
		m := r.module(s, x.template, x.withContext)
		s.set(x.target, m)
		s.hide(x.target)
	case *fromStmt:
		r.fromImport(s, x)
	case *extendsStmt:
		if s.ctx.extended != nil {
			fail("TemplateRuntimeError", "extended multiple times")
		}
		v := r.eval(s, x.template)
		r.current = x
		switch v.(type) {
		case *list, *tuple, *value.List:
			typeError("unhashable type: 'list'")
		}
		s.ctx.extended = r.find(v)
	case *blockStmt:
		if !s.muted || s.ctx.extended == nil {
			r.block(s, x)
		}
	case *autoescapeStmt:
		inner := s.inner()
		inner.escapes = r.truth(s, x.value)
		r.frame(inner, x.body)
	}
}

// markupIf marks text that is already escaped.
func (r *renderer) markupIf(s *scope, text string) any {
	if s.escapes {
		return markup(text)
	}
	return value.String(text)
}

// assign sets a variable, several from a sequence, or an attribute of a namespace.
func (r *renderer) assign(s *scope, target expr, v any) {
	switch x := target.(type) {
	case *nameExpr:
		s.set(x.name, v)
	case *attrExpr:
		ns, ok := r.eval(s, x.node).(*namespace)
		r.current = x
		if !ok {
			fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
		ns.vars.set(value.String(x.name), v)
	case *listExpr:
		items := itemsOf(v)
		switch {
		case len(items) < len(x.items):
			valueError("not enough values to unpack (expected %d, got %d)", len(x.items), len(items))
		case len(items) > len(x.items):
			valueError("too many values to unpack (expected %d)", len(x.items))
		}
		for i, t := range x.items {
			r.assign(s, t, items[i])
		}
	}
}

func (r *renderer) setBlock(s *scope, x *setBlockStmt) {
	inner := s.inner()
	inner.muted = false
	out := r.capture(func() { r.frame(inner, x.body) })
	r.current = x
	v := r.markupIf(s, out)
	if x.filter != nil {
		v = r.applyFilters(s, x.filter, v)
	}
	r.assign(s, x.target, v)
}

// applyFilters applies the filters of a block, which are nested, to v.
func (r *renderer) applyFilters(s *scope, e expr, v any) any {
	switch x := e.(type) {
	case *filterExpr:
		if x.node != nil {
			v = r.applyFilters(s, x.node, v)
		}
		return r.filter(s, x, v)
	case *callExpr:
		f := r.applyFilters(s, x.node, v)
		return r.invoke(f, r.arguments(s, x.args))
	case *testExpr:
		v = r.applyFilters(s, x.node, v)
		return value.Bool(r.test(s, x.name, v, r.arguments(s, x.args)))
	}
	return v
}

// find loads the template that v names: a name, or a list of names of which the first that exists counts.
func (r *renderer) find(v any) *parsed {
	var names []string
	if s, ok := asString(v); ok {
		names = []string{s}
	} else {
		switch x := v.(type) {
		case *undefined:
			x.fail()
		case *list, *tuple, *value.List:
			for _, item := range itemsOf(x) {
				if u, undef := item.(*undefined); undef {
					u.fail()
				}
				names = append(names, stringArg(item))
			}
			if len(names) == 0 {
				fail("TemplatesNotFound", "Tried to select from an empty list of templates.")
			}
		default:
			typeError("no loader for this environment specified")
		}
	}
	for _, name := range names {
		t, err := r.load(name)
		check(err)
		if t != nil {
			r.demand(t)
			return t
		}
	}
	if len(names) > 1 {
		fail("TemplatesNotFound", "none of the templates given were found: %s", strings.Join(names, ", "))
	}
	fail("TemplateNotFound", "%s", cmp.Or(r.missing, names[0]))
	return nil
}

// used is the context of a template that is included or imported from s.
func (s *scope) used(t *parsed, withContext bool) *context {
	ctx := &context{template: t}
	if withContext {
		ctx.up = s
	}
	return ctx
}

func (r *renderer) include(s *scope, x *includeStmt) {
	v := r.eval(s, x.template)
	r.current = x
	var t *parsed
	if x.ignoreMissing {
		func() {
			defer func() {
				if rec := recover(); rec != nil {
					th, ok := rec.(thrown)
					e, isOwn := th.err.(*Error) //nolint:errorlint // a fault of the search itself
					if !ok || !isOwn || e.Class != "TemplateNotFound" && e.Class != "TemplatesNotFound" {
						panic(rec)
					}
				}
			}()
			t = r.find(v)
		}()
		if t == nil {
			return
		}
	} else {
		t = r.find(v)
	}
	out := r.capture(func() { r.run(s.used(t, x.withContext)) })
	r.written -= len(out)
	r.write(s, out)
}

// module loads a template for its macros and variables.
func (r *renderer) module(s *scope, e expr, withContext bool) *module {
	v := r.eval(s, e)
	r.current = e
	t := r.find(v)
	m := &module{ctx: s.used(t, withContext)}
	m.body = r.capture(func() { r.run(m.ctx) })
	return m
}

func (r *renderer) fromImport(s *scope, x *fromStmt) {
	m := r.module(s, x.template, x.withContext)
	r.current = x
	for i, name := range x.names {
		v, ok := m.attribute(name)
		if !ok {
			v = &undefined{strict: r.strict, name: value.String(name), hint: "the template " + value.StringRepr(m.ctx.template.name) +
				" (imported on line " + repr(value.Int(x.line)) + " in " + value.StringRepr(r.running.name) + ") does not export the requested name " + value.StringRepr(name)}
		}
		s.set(x.aliases[i], v)
		s.hide(x.aliases[i])
	}
}

// block renders a block as the most derived template has it.
func (r *renderer) block(s *scope, x *blockStmt) {
	stack := s.ctx.blocks[x.name]
	if len(stack) == 0 {
		return
	}
	if x.required && len(stack) <= 1 {
		fail("TemplateRuntimeError", "Required block %s not found", value.StringRepr(x.name))
	}
	var around *scope
	if x.scoped {
		around = s
	}
	r.renderBlock(s, stack, 0, around)
}

// renderBlock renders the block at depth of a stack. around is the scope that a scoped block sees.
func (r *renderer) renderBlock(s *scope, stack []block, depth int, around *scope) {
	r.enter()
	defer func() { r.depth-- }()
	b := stack[depth]
	inner := &scope{ctx: s.ctx, escapes: s.escapes, parent: around}
	inner.put("super", r.super(s, stack, depth, around))
	inner.put("self", &selfObject{r: r, scope: s})
	outer, extended := r.running, s.ctx.extended
	r.running, s.ctx.extended = b.template, nil
	r.frame(inner, b.stmt.body)
	r.running, s.ctx.extended = outer, extended
}

// super is the block of the template that the one at depth extends.
func (r *renderer) super(s *scope, stack []block, depth int, around *scope) any {
	if depth+1 >= len(stack) {
		return &undefined{strict: r.strict, name: value.String("super"), hint: "there is no parent block called " + value.StringRepr(stack[depth].stmt.name) + "."}
	}
	return &blockReference{
		call: func() any {
			return r.markupIf(s, r.capture(func() { r.renderBlock(s, stack, depth+1, around) }))
		},
		below: func() any { return r.super(s, stack, depth+1, around) },
	}
}

// blockReference is super; its attribute super is the block below.
type blockReference struct {
	call  func() any
	below func() any
}

func (b *blockReference) attribute(name string) (any, bool) {
	if name == "super" {
		return b.below(), true
	}
	return nil, false
}

// selfObject is self: its attributes are the blocks of the template.
type selfObject struct {
	r     *renderer
	scope *scope
}

func (o *selfObject) attribute(name string) (any, bool) {
	stack, ok := o.scope.ctx.blocks[name]
	if !ok {
		return nil, false
	}
	return &function{name: name, call: func(callArgs) any {
		return o.r.markupIf(o.scope, o.r.capture(func() { o.r.renderBlock(o.scope, stack, 0, nil) }))
	}}, true
}

func (o *selfObject) text() string {
	return "<TemplateReference " + value.StringRepr(o.scope.ctx.template.name) + ">"
}
