package template

import (
	"errors"
	"slices"

	"github.com/intendant/intendant/lang/value"
)

// getAttribute is node.name: an attribute, else an item, else undefined.
func (r *renderer) getAttribute(v any, name string) any {
	if a, ok := r.attribute(v, name); ok {
		return a
	}
	if isDict(v) {
		if item, ok := lookupKey(v, value.String(name)); ok {
			return item
		}
	}
	if _, ok := v.(value.Instance); ok && r.lenient {
		return &undefined{obj: v, name: value.String(name), hint: "variable " + name + " not set on " + text(v)}
	}
	return r.undefined(v, value.String(name))
}

// getItem is node[index]: an item, else an attribute, else undefined.
func (r *renderer) getItem(v, index any) any {
	if s, ok := index.(*slice); ok {
		return sliceOf(v, s)
	}
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
	if isDict(v) {
		if !hashable(index) {
			return r.undefined(v, index)
		}
		if item, ok := lookupKey(v, index); ok {
			return item
		}
	} else if n, ok := bigOf(index); ok && n.IsInt64() {
		if item, ok := itemAt(v, int(n.Int64())); ok {
			return item
		}
		return r.undefined(v, index)
	}
	if name, ok := asString(index); ok {
		if a, ok := r.attribute(v, name); ok {
			return a
		}
		if i, ok := v.(value.Instance); ok && r.lenient {
			return &undefined{obj: v, name: index, hint: "variable " + name + " not set on " + text(i)}
		}
	}
	return r.undefined(v, index)
}

// hashable reports whether v can be a key.
func hashable(v any) bool {
	switch x := v.(type) {
	case *list, *dict, *value.List, *value.Dict:
		return false
	case *tuple:
		return !slices.ContainsFunc(x.items, func(item any) bool { return !hashable(item) })
	}
	return true
}

// undefined makes the object for something that is not there.
func (r *renderer) undefined(obj, name any) any {
	return &undefined{obj: obj, name: name, strict: r.strict}
}

// itemAt gives an item of a sequence; negative indexes count from the end.
func itemAt(v any, i int) (any, bool) {
	var items []any
	switch x := v.(type) {
	case value.String, markup:
		s, _ := asString(x)
		runes := []rune(s)
		if i < 0 {
			i += len(runes)
		}
		if i < 0 || i >= len(runes) {
			return nil, false
		}
		if _, safe := v.(markup); safe {
			return markup(runes[i]), true
		}
		return value.String(runes[i]), true
	case *value.List:
		if i < 0 {
			i += len(x.Items)
		}
		if i < 0 || i >= len(x.Items) {
			return nil, false
		}
		return known(x.Items[i]), true
	case *rangeObject:
		n := x.length()
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, false
		}
		return value.Int(x.start + i*x.step), true
	case *list, *tuple, *group:
		items, _, _ = sequence(x)
	default:
		return nil, false
	}
	if i < 0 {
		i += len(items)
	}
	if i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// slice is start:stop:step.
type slice struct{ start, stop, step any }

// bounds gives the indexes that a slice of a sequence of n items has.
func (s *slice) bounds(n int) []int {
	step := 1
	if _, none := s.step.(value.Null); !none {
		if step = integer(s.step); step == 0 {
			valueError("slice step cannot be zero")
		}
	}
	clamp := func(v any, missing int) int {
		if _, none := v.(value.Null); none {
			return missing
		}
		var i int
		if b, ok := v.(*value.BigInt); ok {
			i = b.V.Sign() * (n + 1)
		} else {
			i = integer(v)
		}
		if i < 0 {
			i += n
		}
		if step > 0 {
			return min(max(i, 0), n)
		}
		return min(max(i, -1), n-1)
	}
	var out []int
	if step > 0 {
		for i, stop := clamp(s.start, 0), clamp(s.stop, n); i < stop; {
			out = append(out, i)
			if step > n {
				break
			}
			i += step
		}
		return out
	}
	for i, stop := clamp(s.start, n-1), clamp(s.stop, -1); i > stop; {
		out = append(out, i)
		if -step > n {
			break
		}
		i += step
	}
	return out
}

// slice gives the part of a range, which is a range again.
func (r *rangeObject) slice(s *slice) any {
	n := r.length()
	step := intArg(s.step, 1)
	if step == 0 {
		valueError("slice step cannot be zero")
	}
	clamp := func(v any, missing, low, high int) int {
		if isNone(v) {
			return missing
		}
		i := integer(v)
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	var start, stop int
	if step > 0 {
		start, stop = clamp(s.start, 0, 0, n), clamp(s.stop, n, 0, n)
	} else {
		start, stop = clamp(s.start, n-1, -1, n-1), clamp(s.stop, -1, -1, n-1)
	}
	return &rangeObject{start: r.start + start*r.step, stop: r.start + stop*r.step, step: r.step * step}
}

func sliceOf(v any, s *slice) any {
	if str, ok := asString(v); ok {
		runes := []rune(str)
		var out []rune
		for _, i := range s.bounds(len(runes)) {
			out = append(out, runes[i])
		}
		if _, safe := v.(markup); safe {
			return markup(out)
		}
		return value.String(out)
	}
	switch x := v.(type) {
	case *undefined:
		x.fail()
	case *rangeObject:
		return x.slice(s)
	}
	items, kind, ok := sequence(v)
	if !ok {
		typeError("'%s' object is not subscriptable", typeName(v))
	}
	var out []any
	for _, i := range s.bounds(len(items)) {
		out = append(out, items[i])
	}
	if kind == "tuple" {
		return &tuple{out}
	}
	return &list{out}
}

// attribute finds an attribute or method that Python would find with getattr.
func (r *renderer) attribute(v any, name string) (any, bool) {
	switch x := v.(type) {
	case *undefined:
		if len(name) > 1 && name[:2] == "__" {
			return nil, false
		}
		x.fail()
	case value.Instance:
		return r.instanceAttribute(x, name)
	case attributes:
		return x.attribute(name)
	}
	if s, ok := asString(v); ok {
		_, safe := v.(markup)
		return textMethod(s, safe, name)
	}
	switch x := v.(type) {
	case *list:
		return listMethod(x, name)
	case *tuple:
		return sequenceMethod(x.items, name)
	case *value.List:
		items, _, _ := sequence(x)
		return sequenceMethod(items, name)
	case *dict, *value.Dict:
		return r.dictMethod(x, name)
	case value.Int, value.Float, value.Bool, *value.BigInt:
		return numberMethod(x.(value.Value), name)
	}
	return nil, false
}

// instanceAttribute reads an attribute of the model.
func (r *renderer) instanceAttribute(i value.Instance, name string) (any, bool) {
	v, ok, err := i.Attribute(name)
	if _, optional := errors.AsType[*value.OptionalError](err); optional && r.lenient {
		return nil, false
	}
	check(err)
	if !ok {
		return nil, false
	}
	return known(v), true
}
