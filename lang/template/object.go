package template

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// The objects of a template are: value.Null, value.Bool, value.Int, *value.BigInt, value.Float, value.String, the model's
// *value.List, *value.Dict, value.Instance and *value.Reference, and the types of this file.
type (
	// list is a list that the template made; it can be changed.
	list struct{ items []any }
	// tuple is a sequence that can not be changed.
	tuple struct{ items []any }
	// dict is a dictionary that the template made. Its keys may be anything that can be hashed.
	dict struct {
		keys, vals []any
		index      map[string]int
	}
	// markup is text that needs no escaping.
	markup string
	// undefined stands for what is not there.
	undefined struct {
		hint   string
		obj    any // nil for a variable
		name   any
		strict bool
	}
	// function is something that can be called.
	function struct {
		name string
		// class is what the object prints as, if it is a class in Python.
		class string
		call  func(args callArgs) any
	}
	// iterator gives items once.
	iterator struct {
		// shown is what the iterator looks like when printed.
		shown string
		next  func() (any, bool)
	}
	// view is what keys, values and items of a dictionary give.
	view struct {
		name  string
		items []any
	}
	// rangeObject is what range gives.
	rangeObject struct{ start, stop, step int }
	// attributes is an object with named attributes only.
	attributes interface {
		attribute(name string) (any, bool)
	}
	// namespace is what namespace gives; set can change its attributes.
	namespace struct{ vars *dict }
	// shownAs is an object with a look of its own.
	shownAs interface{ text() string }
)

// callArgs are the arguments of a call.
type callArgs struct {
	positional []any
	names      []string
	named      []any
}

// keyword takes a named argument out.
func (a *callArgs) keyword(name string) (any, bool) {
	for i, n := range a.names {
		if n == name {
			v := a.named[i]
			a.names = slices.Delete(slices.Clone(a.names), i, i+1)
			a.named = slices.Delete(slices.Clone(a.named), i, i+1)
			return v, true
		}
	}
	return nil, false
}

func newDict() *dict { return &dict{index: map[string]int{}} }

func (d *dict) get(k any) (any, bool) {
	i, ok := d.index[hashKey(k)]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

func (d *dict) set(k, v any) {
	h := hashKey(k)
	if i, ok := d.index[h]; ok {
		d.vals[i] = v
		return
	}
	d.index[h] = len(d.keys)
	d.keys = append(d.keys, k)
	d.vals = append(d.vals, v)
}

func (d *dict) remove(k any) {
	i, ok := d.index[hashKey(k)]
	if !ok {
		return
	}
	d.keys = slices.Delete(d.keys, i, i+1)
	d.vals = slices.Delete(d.vals, i, i+1)
	clear(d.index)
	for j, key := range d.keys {
		d.index[hashKey(key)] = j
	}
}

// hashKey gives equal texts for equal keys. It fails for what Python can not hash.
func hashKey(k any) string {
	switch x := k.(type) {
	case value.String:
		return "s" + string(x)
	case markup:
		return "s" + string(x)
	case value.Null:
		return "n"
	case value.Bool:
		if x {
			return "i1"
		}
		return "i0"
	case value.Int:
		return "i" + strconv.FormatInt(int64(x), 10)
	case *value.BigInt:
		return "i" + x.V.String()
	case value.Float:
		f := float64(x)
		if math.Trunc(f) == f && !math.IsInf(f, 0) {
			whole, _ := big.NewFloat(f).Int(nil)
			return "i" + whole.String()
		}
		return "f" + value.FloatRepr(f)
	case *tuple:
		var b strings.Builder
		b.WriteByte('t')
		for _, item := range x.items {
			h := hashKey(item)
			b.WriteString(strconv.Itoa(len(h)))
			b.WriteByte(':')
			b.WriteString(h)
		}
		return b.String()
	case value.Instance:
		return "o" + strconv.Itoa(x.Serial())
	case *undefined:
		if x.strict {
			x.fail()
		}
		return "u"
	}
	if _, bad := k.(*list); bad || isDict(k) || isModelList(k) {
		typeError("unhashable type: '%s'", typeName(k))
	}
	typeError("unhashable type: '%s'", typeName(k))
	return ""
}

func isDict(v any) bool {
	switch v.(type) {
	case *dict, *value.Dict:
		return true
	}
	return false
}

func isModelList(v any) bool {
	_, ok := v.(*value.List)
	return ok
}

// fail reports the use of an undefined object.
func (u *undefined) fail() {
	undefinedError("%s", u.message())
}

func (u *undefined) message() string {
	if u.hint != "" {
		return u.hint
	}
	if u.obj == nil {
		return value.StringRepr(nameText(u.name)) + " is undefined"
	}
	if s, ok := asString(u.name); ok {
		return value.StringRepr(objectType(u.obj)) + " has no attribute " + value.StringRepr(s)
	}
	return objectType(u.obj) + " has no element " + repr(u.name)
}

func nameText(v any) string {
	s, _ := asString(v)
	return s
}

// objectType is how messages call the type of an object.
func objectType(v any) string {
	switch x := v.(type) {
	case value.Null:
		return "None"
	case *namespace:
		return "jinja2.utils.Namespace object"
	case *macro:
		return "jinja2.runtime.Macro object"
	case *loop:
		return "jinja2.runtime.LoopContext object"
	case *module:
		return "jinja2.environment.TemplateModule object"
	case *selfObject:
		return "jinja2.runtime.TemplateReference object"
	case markup:
		return "markupsafe.Markup object"
	case value.Instance:
		return x.TypeName() + " object"
	}
	return typeName(v) + " object"
}

// typeName is the name of the object's class in Python.
func typeName(v any) string {
	switch x := v.(type) {
	case value.Null:
		return "NoneType"
	case *list:
		return "list"
	case *tuple:
		return "tuple"
	case *dict:
		return "dict"
	case markup:
		return "Markup"
	case *undefined:
		if x.strict {
			return "StrictUndefined"
		}
		return "Undefined"
	case *function:
		return "function"
	case *iterator:
		return "generator"
	case *view:
		return x.name
	case *rangeObject:
		return "range"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	case *joiner:
		return "Joiner"
	case *module:
		return "TemplateModule"
	case *group:
		return "_GroupTuple"
	case value.Value:
		return value.TypeName(x)
	}
	return "object"
}

// asString gives the text of a string object.
func asString(v any) (string, bool) {
	switch x := v.(type) {
	case value.String:
		return string(x), true
	case markup:
		return string(x), true
	}
	return "", false
}

// text is Python's str(v).
func text(v any) string {
	switch x := v.(type) {
	case value.String:
		return string(x)
	case markup:
		return string(x)
	case *undefined:
		if x.strict {
			x.fail()
		}
		return ""
	}
	return repr(v)
}

// maxText bounds the texts that a template may make at once.
const maxText = 64 << 20

// repr is Python's repr(v).
func repr(v any) string { return string(appendRepr(nil, v, 0)) }

func appendRepr(b []byte, v any, depth int) []byte {
	if depth > maxDepth {
		fail("RecursionError", "maximum recursion depth exceeded while getting the repr of an object")
	}
	if len(b) > maxText {
		fail("MemoryError", "the text is too long")
	}
	switch x := v.(type) {
	case value.Null:
		return append(b, "None"...)
	case *list:
		return appendItems(b, "[", "]", x.items, depth)
	case *tuple:
		return appendTuple(b, x.items, depth)
	case *group:
		return appendTuple(b, []any{x.grouper, x.list}, depth)
	case *view:
		b = append(b, x.name...)
		return append(appendItems(append(b, '('), "[", "]", x.items, depth), ')')
	case *dict:
		b = append(b, '{')
		for i, k := range x.keys {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendRepr(b, k, depth+1)
			b = append(b, ": "...)
			b = appendRepr(b, x.vals[i], depth+1)
		}
		return append(b, '}')
	case *rangeObject:
		b = append(b, "range("+strconv.Itoa(x.start)+", "+strconv.Itoa(x.stop)...)
		if x.step != 1 {
			b = append(b, ", "+strconv.Itoa(x.step)...)
		}
		return append(b, ')')
	case markup:
		return append(append(append(b, "Markup("...), value.StringRepr(string(x))...), ')')
	case *undefined:
		return append(b, "Undefined"...)
	case *function:
		if x.class != "" {
			return append(append(append(b, "<class '"...), x.class...), "'>"...)
		}
		return append(append(append(b, "<function "...), x.name...), '>')
	case *iterator:
		return append(append(append(b, '<'), x.shown...), '>')
	case shownAs:
		return append(b, x.text()...)
	case value.String:
		return append(b, value.StringRepr(string(x))...)
	case *value.List, *value.Dict, value.Instance:
		return append(append(b, '@'), value.Repr(x.(value.Value))...)
	case value.Value:
		return append(b, value.Repr(x)...)
	}
	return append(b, "<object>"...)
}

func appendItems(b []byte, open, shut string, items []any, depth int) []byte {
	b = append(b, open...)
	for i, item := range items {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendRepr(b, item, depth+1)
	}
	return append(b, shut...)
}

func appendTuple(b []byte, items []any, depth int) []byte {
	if len(items) == 1 {
		return append(appendRepr(append(b, '('), items[0], depth+1), ",)"...)
	}
	return appendItems(b, "(", ")", items, depth)
}

// truth is Python's bool(v).
func truth(v any) bool {
	switch x := v.(type) {
	case *undefined:
		if x.strict {
			x.fail()
		}
		return false
	case markup:
		return x != ""
	case *list:
		return len(x.items) > 0
	case *tuple:
		return len(x.items) > 0
	case *dict:
		return len(x.keys) > 0
	case *view:
		return len(x.items) > 0
	case *rangeObject:
		return x.length() > 0
	case value.Value:
		return value.Truth(x)
	}
	return true
}

func (r *rangeObject) length() int {
	switch {
	case r.step > 0 && r.start < r.stop:
		return (r.stop-r.start-1)/r.step + 1
	case r.step < 0 && r.start > r.stop:
		return (r.start-r.stop-1)/-r.step + 1
	}
	return 0
}

// length is Python's len(v); ok is false when v has none.
func length(v any) (n int, ok bool) {
	if s, isText := asString(v); isText {
		return len([]rune(s)), true
	}
	switch x := v.(type) {
	case *list:
		return len(x.items), true
	case *tuple:
		return len(x.items), true
	case *group:
		return 2, true
	case *dict:
		return len(x.keys), true
	case *view:
		return len(x.items), true
	case *rangeObject:
		return x.length(), true
	case *value.List:
		return len(x.Items), true
	case *value.Dict:
		return x.Len(), true
	case *loop:
		return x.length(), true
	case *undefined:
		if x.strict {
			x.fail()
		}
		return 0, true
	}
	return 0, false
}

// known stops the rendering at an unknown value or a reference, and gives any other value as it is.
func known(v value.Value) any {
	switch x := v.(type) {
	case *value.Unknown:
		throw(&value.UnknownError{Value: x})
	case *value.Reference:
		throw(&value.ReferenceError{Reference: x})
	}
	return v
}

// each gives an iterator over v; ok is false when v can not be iterated.
func each(v any) (next func() (any, bool), ok bool) {
	over := func(n int, at func(int) any) (func() (any, bool), bool) {
		i := 0
		return func() (any, bool) {
			if i >= n {
				return nil, false
			}
			i++
			return at(i - 1), true
		}, true
	}
	if s, isText := asString(v); isText {
		runes := []rune(s)
		return over(len(runes), func(i int) any { return value.String(runes[i]) })
	}
	switch x := v.(type) {
	case *list:
		i := 0
		return func() (any, bool) { // the list may grow meanwhile
			if i >= len(x.items) {
				return nil, false
			}
			i++
			return x.items[i-1], true
		}, true
	case *tuple:
		return over(len(x.items), func(i int) any { return x.items[i] })
	case *group:
		return over(2, func(i int) any { return []any{x.grouper, x.list}[i] })
	case *view:
		return over(len(x.items), func(i int) any { return x.items[i] })
	case *dict:
		keys := slices.Clone(x.keys)
		return over(len(keys), func(i int) any { return keys[i] })
	case *rangeObject:
		return over(x.length(), func(i int) any { return value.Int(x.start + i*x.step) })
	case *value.List:
		return over(len(x.Items), func(i int) any { return known(x.Items[i]) })
	case *value.Dict:
		return over(x.Len(), func(i int) any { return value.String(x.Keys()[i]) })
	case *iterator:
		return x.next, true
	case *loop:
		return x.iterate(), true
	case *undefined:
		if x.strict {
			x.fail()
		}
		return over(0, nil)
	}
	return nil, false
}

// maxItems bounds the sequences that a template may make at once.
const maxItems = 5_000_000

// itemsOf gives all items of v.
func itemsOf(v any) []any {
	next, ok := each(v)
	if !ok {
		typeError("'%s' object is not iterable", typeName(v))
	}
	var out []any
	for {
		item, ok := next()
		if !ok {
			return out
		}
		if out = append(out, item); len(out) > maxItems {
			fail("MemoryError", "the sequence is too long")
		}
	}
}

// number gives v if it is a number.
func number(v any) (value.Value, bool) {
	switch x := v.(type) {
	case value.Int, value.Float, value.Bool, *value.BigInt:
		return x.(value.Value), true
	}
	return nil, false
}

// sequence gives the items of lists and tuples, for comparisons between the same kind.
func sequence(v any) (items []any, kind string, ok bool) {
	switch x := v.(type) {
	case *list:
		return x.items, "list", true
	case *tuple:
		return x.items, "tuple", true
	case *group:
		return []any{x.grouper, x.list}, "tuple", true
	case *value.List:
		items = make([]any, len(x.Items))
		for i, item := range x.Items {
			items[i] = known(item)
		}
		return items, "list", true
	}
	return nil, "", false
}

// entries gives the keys and values of a dictionary.
func entries(v any) (keys, vals []any, ok bool) {
	switch x := v.(type) {
	case *dict:
		return x.keys, x.vals, true
	case *value.Dict:
		for i := range x.Len() {
			k, val := x.At(i)
			keys = append(keys, value.String(k))
			vals = append(vals, known(val))
		}
		return keys, vals, true
	}
	return nil, nil, false
}

// tooDeep stops at structures that are nested too deeply, such as a list that contains itself.
func tooDeep(depth int) {
	if depth > maxDepth {
		fail("RecursionError", "maximum recursion depth exceeded in comparison")
	}
}

// equal is Python's a == b.
func equal(a, b any) bool { return equalAt(a, b, 0) }

func equalAt(a, b any, depth int) bool {
	tooDeep(depth)
	inner := func(x, y any) bool { return equalAt(x, y, depth+1) }
	if u, ok := a.(*undefined); ok {
		if u.strict {
			u.fail()
		}
		_, same := b.(*undefined)
		return same
	}
	if u, ok := b.(*undefined); ok {
		if u.strict {
			u.fail()
		}
		return false
	}
	if x, ok := asString(a); ok {
		y, ok := asString(b)
		return ok && x == y
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && value.Equal(x, y)
	}
	if x, kind, ok := sequence(a); ok {
		y, other, ok := sequence(b)
		return ok && kind == other && slices.EqualFunc(x, y, inner)
	}
	if keys, vals, ok := entries(a); ok {
		_, others, ok := entries(b)
		if !ok || len(keys) != len(others) {
			return false
		}
		for i, k := range keys {
			v, ok := lookupKey(b, k)
			if !ok || !inner(vals[i], v) {
				return false
			}
		}
		return true
	}
	if x, ok := a.(*rangeObject); ok {
		y, ok := b.(*rangeObject)
		return ok && slices.EqualFunc(itemsOf(x), itemsOf(y), inner)
	}
	if x, ok := a.(value.Value); ok {
		y, ok := b.(value.Value)
		return ok && value.Equal(x, y)
	}
	return a == b
}

// lookupKey finds a key of a dictionary.
func lookupKey(d, k any) (any, bool) {
	switch x := d.(type) {
	case *dict:
		return x.get(k)
	case *value.Dict:
		s, ok := asString(k)
		if !ok {
			return nil, false
		}
		v, ok := x.Get(s)
		if !ok {
			return nil, false
		}
		return known(v), true
	}
	return nil, false
}

// less is Python's a < b, for the operator op of the message.
func less(a, b any, op string) bool { return lessAt(a, b, op, 0) }

func lessAt(a, b any, op string, depth int) bool {
	tooDeep(depth)
	for _, v := range []any{a, b} {
		if u, ok := v.(*undefined); ok {
			u.fail()
		}
	}
	if x, ok := asString(a); ok {
		if y, ok := asString(b); ok {
			return x < y
		}
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			r, _ := value.Compare("<", x, y)
			return r
		}
	}
	if x, kind, ok := sequence(a); ok {
		if y, other, ok := sequence(b); ok && kind == other {
			for i := range min(len(x), len(y)) {
				if !equalAt(x[i], y[i], depth) {
					return lessAt(x[i], y[i], op, depth+1)
				}
			}
			return len(x) < len(y)
		}
	}
	typeError("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return false
}

// sortBy sorts items stably by keys.
func sortBy(items, keys []any, reverse bool) []any {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		if reverse {
			return less(keys[order[j]], keys[order[i]], "<")
		}
		return less(keys[order[i]], keys[order[j]], "<")
	})
	out := make([]any, len(items))
	for i, o := range order {
		out[i] = items[o]
	}
	return out
}

// contains is Python's item in container.
func contains(container, item any) bool {
	if s, ok := asString(container); ok {
		sub, ok := asString(item)
		if !ok {
			typeError("'in <string>' requires string as left operand, not %s", typeName(item))
		}
		return strings.Contains(s, sub)
	}
	if isDict(container) {
		_, ok := lookupKey(container, item)
		if _, model := container.(*value.Dict); model {
			return ok
		}
		return ok
	}
	next, ok := each(container)
	if !ok {
		typeError("argument of type '%s' is not iterable", typeName(container))
	}
	for {
		v, ok := next()
		if !ok {
			return false
		}
		if equal(v, item) {
			return true
		}
	}
}

// integer reads an int for an argument.
func integer(v any) int {
	switch x := v.(type) {
	case value.Int:
		return int(x)
	case value.Bool:
		if x {
			return 1
		}
		return 0
	case *value.BigInt:
		fail("OverflowError", "Python int too large to convert to C ssize_t")
	case *undefined:
		x.fail()
	}
	typeError("'%s' object cannot be interpreted as an integer", typeName(v))
	return 0
}
