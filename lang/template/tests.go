package template

import (
	"math/big"
	"unicode"

	"github.com/intendant/intendant/lang/value"
)

// testFunc is a built-in test.
type testFunc struct {
	args int
	call func(r *renderer, v any, a []any) bool
}

// builtinTests are the tests of Jinja2.
func builtinTests() map[string]testFunc {
	plain := func(f func(v any) bool) testFunc {
		return testFunc{call: func(_ *renderer, v any, _ []any) bool { return f(v) }}
	}
	operator := func(op string) testFunc {
		return testFunc{args: 1, call: func(_ *renderer, v any, a []any) bool { return compare(op, v, a[0]) }}
	}
	remainder := func(v any, by int64, want bool) bool {
		return equal(operate("%", v, value.Int(by)), value.Int(0)) == want
	}
	eq, ne, gt, ge, lt, le := operator("=="), operator("!="), operator(">"), operator(">="), operator("<"), operator("<=")
	return map[string]testFunc{
		"odd":  plain(func(v any) bool { return equal(operate("%", v, value.Int(2)), value.Int(1)) }),
		"even": plain(func(v any) bool { return remainder(v, 2, true) }),
		"divisibleby": {args: 1, call: func(_ *renderer, v any, a []any) bool {
			return equal(operate("%", v, a[0]), value.Int(0))
		}},
		"defined":   plain(func(v any) bool { _, missing := v.(*undefined); return !missing }),
		"undefined": plain(func(v any) bool { _, missing := v.(*undefined); return missing }),
		"filter": {call: func(r *renderer, v any, _ []any) bool {
			name, _ := asString(v)
			return r.hasFilter(name)
		}},
		"test": {call: func(r *renderer, v any, _ []any) bool {
			name, _ := asString(v)
			_, ok := r.engine.tests[name]
			return ok
		}},
		"none":    plain(func(v any) bool { _, none := v.(value.Null); return none }),
		"boolean": plain(func(v any) bool { _, ok := v.(value.Bool); return ok }),
		"false":   plain(func(v any) bool { return v == value.Bool(false) }),
		"true":    plain(func(v any) bool { return v == value.Bool(true) }),
		"integer": plain(func(v any) bool {
			switch v.(type) {
			case value.Int, *value.BigInt:
				return true
			}
			return false
		}),
		"float":   plain(func(v any) bool { _, ok := v.(value.Float); return ok }),
		"number":  plain(func(v any) bool { _, ok := number(v); return ok }),
		"string":  plain(func(v any) bool { _, ok := asString(v); return ok }),
		"lower":   plain(func(v any) bool { return isCased(text(v), unicode.IsLower) }),
		"upper":   plain(func(v any) bool { return isCased(text(v), unicode.IsUpper) }),
		"mapping": plain(func(v any) bool { _, own := v.(*dict); return own }), // views of the model's dictionaries are none
		"sequence": plain(func(v any) bool {
			switch x := v.(type) {
			case *view, *iterator, *loop:
				return false
			case *undefined:
				return !x.strict
			}
			_, ok := length(v)
			return ok
		}),
		"iterable": plain(func(v any) bool { _, ok := each(v); return ok }),
		"callable": plain(callable),
		"sameas":   {args: 1, call: func(_ *renderer, v any, a []any) bool { return sameObject(v, a[0]) }},
		"escaped":  plain(func(v any) bool { _, ok := v.(markup); return ok }),
		"in":       {args: 1, call: func(_ *renderer, v any, a []any) bool { return contains(a[0], v) }},
		"==":       eq, "eq": eq, "equalto": eq,
		"!=": ne, "ne": ne,
		">": gt, "gt": gt, "greaterthan": gt,
		">=": ge, "ge": ge,
		"<": lt, "lt": lt, "lessthan": lt,
		"<=": le, "le": le,
	}
}

// sameObject is Python's a is b; equal small constants are the same object.
func sameObject(a, b any) bool {
	switch x := a.(type) {
	case value.Int, value.Bool, value.Null, value.String, value.Float, markup:
		return a == b
	case *value.BigInt:
		y, ok := b.(*value.BigInt)
		return ok && (x == y || new(big.Int).Sub(x.V, y.V).Sign() == 0)
	}
	return a == b
}

// hasFilter reports whether there is a filter of that name.
func (r *renderer) hasFilter(name string) bool {
	_, ok := r.engine.filters[name]
	if !ok && r.plugin != nil {
		_, ok = r.plugin(pluginName(name))
	}
	return ok
}

// demand checks that the filters and tests of a template exist.
func (r *renderer) demand(t *parsed) {
	for _, c := range t.calls {
		kind, ok := "filter", r.hasFilter(c.name)
		if c.test {
			kind = "test"
			_, ok = r.engine.tests[c.name]
		}
		if !ok {
			throw(&Error{Template: t.name, Line: c.line, Class: "TemplateAssertionError", Message: "No " + kind + " named " + value.StringRepr(c.name) + "."})
		}
	}
}

// test applies a test to v.
func (r *renderer) test(_ *scope, name string, v any, args callArgs) bool {
	t, ok := r.engine.tests[name]
	if !ok {
		fail("TemplateRuntimeError", "No test named %s found.", value.StringRepr(name))
	}
	params := []string{"other"}[:t.args]
	return t.call(r, v, bind(name, t.args, params, args))
}
