package template

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/intendant/intendant/lang/value"
)

// Engine renders templates and remembers those it has read, by their text. It may be used by several goroutines at once.
type Engine struct {
	filters map[string]filter
	tests   map[string]testFunc

	mu     sync.Mutex
	cached map[string]*parsed // by name and source
	bytes  int
}

// maxCached bounds the bytes of templates that an engine remembers.
const maxCached = 32 << 20

// New makes an engine.
func New() *Engine {
	return &Engine{filters: builtinFilters(), tests: builtinTests(), cached: map[string]*parsed{}}
}

// parse reads a template, or gives the one that was read before.
func (e *Engine) parse(name, source string) (*parsed, error) {
	key := name + "\x00" + source
	e.mu.Lock()
	t, ok := e.cached[key]
	e.mu.Unlock()
	if ok {
		return t, nil
	}
	t, err := parse(source)
	if err != nil {
		if own, ok := errors.AsType[*Error](err); ok {
			own.Template = name
		}
		return nil, err
	}
	t.name = name
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bytes += len(key); e.bytes > maxCached {
		clear(e.cached)
		e.bytes = len(key)
	}
	e.cached[key] = t
	return t, nil
}

// Options are the surroundings of a rendering by [Engine.RenderText].
type Options struct {
	// Load gives the text of a template; ok is false when there is none of that name.
	Load func(name string) (source string, ok bool, err error)
	// Variables are what the template starts with, as objects of its own: lists can be changed.
	Variables *value.Dict
	// Strict makes the use of an undefined variable a fault.
	Strict bool
	// MaxSteps bounds the expressions and statements that may be evaluated; zero means [DefaultMaxSteps].
	MaxSteps int
	// AutoEscape escapes what is printed for HTML.
	AutoEscape bool
}

// RenderText renders the template of that name outside a model. Errors are [*Error].
func (e *Engine) RenderText(name string, o Options) (string, error) {
	r := e.renderer()
	r.strict = o.Strict
	if o.MaxSteps > 0 {
		r.maxSteps = o.MaxSteps
	}
	r.load = func(name string) (*parsed, error) {
		source, ok, err := o.Load(name)
		if err != nil || !ok {
			return nil, err
		}
		return e.parse(name, source)
	}
	outer := map[string]any{}
	if o.Variables != nil {
		for i := range o.Variables.Len() {
			k, v := o.Variables.At(i)
			outer[k] = native(v, value.Null{})
		}
	}
	return r.render(name, &context{outer: outer}, o.AutoEscape)
}

// Render renders a template of a module, as the plugin std::template does. path is module/relative, or ./relative for the
// calling module. With variables the template sees only those; otherwise it sees the variables of the place of the call.
//
// A variable that does not exist is a fault as soon as it is used. An attribute that an instance does not have, or an optional
// relation without a value, is merely undefined without variables; with them the first is a fault when it is used, the second at
// once ([*value.OptionalError]). [*value.UnsetError] and [*value.UnknownError] are passed on; other errors are
// [*Error] or come from a plugin.
func (e *Engine) Render(c value.Context, path string, variables *value.Dict) (string, error) {
	r := e.renderer()
	r.strict = true
	r.load = func(name string) (*parsed, error) {
		source, err := c.ReadFile("templates", name)
		if errors.Is(err, fs.ErrNotExist) {
			r.missing = err.Error()
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return e.parse(name, string(source))
	}
	r.plugin = func(name string) (*function, bool) { return pluginCall(c, name) }
	draws := 0
	r.random = func(n int) []byte {
		draws++
		return c.Random("template:"+path+":"+strconv.Itoa(draws), n)
	}
	ctx := &context{}
	if variables != nil {
		ctx.outer = make(map[string]any, variables.Len())
		for i := range variables.Len() {
			k, v := variables.At(i)
			switch v.(type) {
			case *value.Unknown, *value.Reference:
				ctx.outer[k] = &late{v}
			default:
				ctx.outer[k] = v
			}
		}
	} else {
		r.lenient = true
		ctx.host = func(name string) (any, bool) { return lookupModel(c, name) }
	}
	return r.render(path, ctx, false)
}

// late is a variable whose use stops the rendering.
type late struct{ v value.Value }

// lookupModel finds a variable of the model.
func lookupModel(c value.Context, name string) (any, bool) {
	v, ok, err := c.Lookup(name)
	if _, optional := errors.AsType[*value.OptionalError](err); optional {
		return nil, false
	}
	check(err)
	if !ok {
		return nil, false
	}
	return known(v), true
}

// pluginName is the qualified name of a plugin whose filter is called name.
func pluginName(name string) string { return strings.ReplaceAll(name, ".", "::") }

// pluginCall makes a function of a plugin.
func pluginCall(c value.Context, name string) (*function, bool) {
	p, ok := c.Plugin(name)
	if !ok {
		return nil, false
	}
	return &function{name: name, call: func(args callArgs) any {
		given, err := pluginArguments(c, p, args)
		check(err)
		v, err := p.Call(c, given)
		check(err)
		if v == nil {
			return value.Null{}
		}
		return known(v)
	}}, true
}

// pluginArguments puts the arguments of a call in the order of the plugin's parameters.
func pluginArguments(c value.Context, p *value.Plugin, args callArgs) ([]value.Value, error) {
	positional, total := args.positional, len(args.positional)
	var out []value.Value
	for _, param := range p.Params {
		switch param.Kind {
		case value.VarPositional:
			rest := &value.List{}
			for _, a := range positional {
				v, err := toValue(a)
				if err != nil {
					return nil, err
				}
				rest.Items = append(rest.Items, v)
			}
			positional = nil
			out = append(out, rest)
			continue
		case value.VarKeyword:
			rest := value.NewDict(len(args.names))
			for i, n := range args.names {
				v, err := toValue(args.named[i])
				if err != nil {
					return nil, err
				}
				rest.Set(n, v)
			}
			args.names = nil
			out = append(out, rest)
			continue
		default: // one value, below
		}
		var given any
		if named, ok := args.keyword(param.Name); ok {
			given = named
		} else if len(positional) > 0 && param.Kind == value.PositionalOrKeyword {
			given, positional = positional[0], positional[1:]
		}
		switch {
		case given != nil:
			v, err := toValue(given)
			if err != nil {
				return nil, err
			}
			if !accepts(c, param.Type, v) {
				return nil, &Error{Class: "PluginTypeException", Message: fmt.Sprintf("Value %s for argument %s of plugin %s has incompatible type. Expected type: %s",
					value.Repr(v), param.Name, p.Name, param.Type)}
			}
			out = append(out, v)
		case param.Default != nil:
			out = append(out, param.Default)
		default:
			return nil, &Error{Class: "RuntimeException", Message: fmt.Sprintf("%s() missing 1 required positional argument: '%s'", p.Name, param.Name)}
		}
	}
	switch {
	case len(positional) > 0:
		return nil, &Error{Class: "RuntimeException", Message: fmt.Sprintf("%s() takes %d positional arguments but %d were given", p.Name, len(p.Params), total)}
	case len(args.names) > 0:
		return nil, &Error{Class: "RuntimeException", Message: fmt.Sprintf("%s() got an unexpected keyword argument: '%s'", p.Name, args.names[0])}
	}
	return out, nil
}

// accepts reports whether a parameter of type typ takes v.
func accepts(c value.Context, typ string, v value.Value) bool {
	if strings.Contains(typ, "|") && !strings.ContainsAny(typ, "()") {
		for part := range strings.SplitSeq(typ, "|") {
			if accepts(c, strings.TrimSpace(part), v) {
				return true
			}
		}
		return false
	}
	if inner, ok := strings.CutSuffix(typ, "?"); ok {
		_, null := v.(value.Null)
		return null || accepts(c, inner, v)
	}
	if inner, ok := strings.CutSuffix(typ, "[]"); ok {
		l, isList := v.(*value.List)
		return isList && !slices.ContainsFunc(l.Items, func(item value.Value) bool { return !accepts(c, inner, item) })
	}
	if _, unknown := v.(*value.Unknown); unknown {
		return true
	}
	ok := false
	switch typ {
	case "any", "", "expression":
		ok = true
	case "string":
		_, ok = v.(value.String)
	case "bool":
		_, ok = v.(value.Bool)
	case "float":
		_, ok = v.(value.Float)
	case "int", "number":
		switch v.(type) {
		case value.Int, *value.BigInt, value.Bool:
			ok = true
		case value.Float:
			ok = typ == "number"
		}
	case "list":
		_, ok = v.(*value.List)
	case "dict":
		_, ok = v.(*value.Dict)
	case "null":
		_, ok = v.(value.Null)
	default:
		found, err := c.Validate(typ, v)
		ok = !found || err == nil
	}
	return ok
}

// renderer prepares a rendering.
func (e *Engine) renderer() *renderer {
	r := &renderer{engine: e, out: &strings.Builder{}, current: textPlace, maxSteps: DefaultMaxSteps}
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // filler text, the same each time
	r.random = func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(source.Uint32())
		}
		return b
	}
	r.globals = r.newGlobals()
	return r
}

// render renders a template in a context.
func (r *renderer) render(name string, ctx *context, escapes bool) (text string, err error) {
	defer func() {
		if own, ok := errors.AsType[*Error](err); ok {
			r.locate(own, name)
		}
	}()
	defer caught(&err)
	r.escapes = escapes
	ctx.template = r.find(value.String(name))
	r.run(ctx)
	return r.out.String(), nil
}

// maxShown bounds the expression that a message shows.
const maxShown = 120

// locate fills in where a fault arose.
func (r *renderer) locate(e *Error, name string) {
	if e.Template != "" {
		return
	}
	e.Template = name
	if r.running == nil {
		return
	}
	e.Template = r.running.name
	p := r.current.at()
	if e.Line == 0 {
		e.Line = p.line
	}
	if source := r.running.source; e.Expression == "" && p.end > p.start && p.end <= len(source) {
		shown := strings.Join(strings.Fields(source[p.start:p.end]), " ")
		if runes := []rune(shown); len(runes) > maxShown {
			shown = string(runes[:maxShown]) + "…"
		}
		e.Expression = shown
	}
}

// native makes the template's own objects of a value; null is what stands for null in them.
func native(v value.Value, null any) any {
	switch x := v.(type) {
	case value.Null:
		return null
	case *value.List:
		l := &list{items: make([]any, len(x.Items))}
		for i, item := range x.Items {
			l.items[i] = native(item, null)
		}
		return l
	case *value.Dict:
		d := newDict()
		for i := range x.Len() {
			k, item := x.At(i)
			d.set(value.String(k), native(item, null))
		}
		return d
	}
	return v
}

// toValue makes a value of an object.
func toValue(v any) (value.Value, error) { return toValueAt(v, 0) }

func toValueAt(v any, depth int) (value.Value, error) {
	if depth > maxDepth {
		return nil, errors.New("Circular reference detected")
	}
	switch x := v.(type) {
	case *late:
		return x.v, nil
	case markup:
		return value.String(x), nil
	case *undefined:
		return nil, &Error{Class: "UndefinedError", Message: x.message()}
	case *dict:
		d := value.NewDict(len(x.keys))
		for i, k := range x.keys {
			key, ok := asString(k)
			if !ok {
				switch k.(type) {
				case value.Int, value.Float, *value.BigInt:
					key = repr(k)
				case value.Bool:
					key = strings.ToLower(repr(k))
				case value.Null:
					key = "null"
				default:
					return nil, fmt.Errorf("keys must be str, int, float, bool or None, not %s", typeName(k))
				}
			}
			item, err := toValueAt(x.vals[i], depth+1)
			if err != nil {
				return nil, err
			}
			d.Set(key, item)
		}
		return d, nil
	case *list, *tuple, *group:
		items, _, _ := sequence(x)
		l := &value.List{Items: make([]value.Value, 0, len(items))}
		for _, item := range items {
			i, err := toValueAt(item, depth+1)
			if err != nil {
				return nil, err
			}
			l.Items = append(l.Items, i)
		}
		return l, nil
	case *namespace, *macro, *loop, *function, *module, *iterator, *view, *rangeObject:
		return nil, fmt.Errorf("Object of type %s is not JSON serializable", typeName(v))
	case value.Value:
		return x, nil
	}
	return nil, fmt.Errorf("Object of type %s is not JSON serializable", typeName(v))
}
