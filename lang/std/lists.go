package std

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// maxSequence bounds the lists that std::sequence makes.
const maxSequence = 10_000_000

func listPlugins() []*value.Plugin {
	return []*value.Plugin{
		deprecated(plugin("select", "list", selectAttribute, arg("objects", "list"), arg("attr", "string")), "using a list comprehension"),
		plugin("item", "list", item, arg("objects", "list"), arg("index", "int")),
		plugin("key_sort", "list", keySort, arg("items", "list"), arg("key", "any")),
		plugin("sequence", "list", sequence, arg("i", "int"), opt("start", "int", value.Int(0))),
		plugin("at", anyOrReference, at, arg("objects", "("+anyOrReference+")[]"), arg("index", "int")),
		plugin("attr", anyOrReference, func(_ value.Context, a []value.Value) (value.Value, error) {
			return attribute(a[0], text(a[1]))
		}, arg("obj", "any"), arg("attr", "string")),
		plugin("count", "int", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.Int(len(items(a[0]))), nil
		}, arg("item_list", "("+anyOrReference+")[]")),
		plugin("len", "int", func(_ value.Context, a []value.Value) (value.Value, error) {
			for _, v := range items(a[0]) {
				if u, ok := v.(*value.Unknown); ok {
					return nil, &value.UnknownError{Value: u}
				}
			}
			return value.Int(len(items(a[0]))), nil
		}, arg("item_list", "("+anyOrReference+")[]")),
		plugin("unique", "bool", unique, arg("item_list", "list")),
		plugin("flatten", "list", flatten, arg("item_list", "list")),
		deprecated(plugin("filter", "list", filter, arg("values", "list"), arg("not_item", "std::Entity")), "using a list comprehension"),
		deprecated(plugin("dict_get", "string", dictGet, arg("dct", "dict"), arg("key", "string")), "using the `<dict>[<key>]` construct"),
		plugin("dict_keys", "string[]", func(_ value.Context, a []value.Value) (value.Value, error) {
			return keysOf(a[0]), nil
		}, arg("dct", "dict")),
		deprecated(plugin("contains", "bool", func(_ value.Context, a []value.Value) (value.Value, error) {
			v, ok := dictOf(a[0]).Get(text(a[1]))
			if !ok {
				return value.Bool(false), nil
			}
			if _, err := known(v); err != nil {
				return nil, err
			}
			return value.Bool(true), nil
		}, arg("dct", "dict"), arg("key", "string")), "the `<key> in <dict>` construct"),
		plugin("inlineif", "any", func(_ value.Context, a []value.Value) (value.Value, error) {
			if value.Truth(a[0]) {
				return a[1], nil
			}
			return a[2], nil
		}, arg("conditional", "bool"), arg("a", "any"), arg("b", "any")),
		deprecated(plugin("invert", "bool", func(_ value.Context, a []value.Value) (value.Value, error) {
			return value.Bool(!value.Truth(a[0])), nil
		}, arg("value", "bool")), "the `not` unary operator"),
	}
}

func selectAttribute(_ value.Context, a []value.Value) (value.Value, error) {
	list := &value.List{}
	for _, o := range items(a[0]) {
		o, err := known(o)
		if err != nil {
			return nil, err
		}
		v, err := attribute(o, text(a[1]))
		if err != nil {
			return nil, err
		}
		if v, err = known(v); err != nil {
			return nil, err
		}
		list.Items = append(list.Items, v)
	}
	return list, nil
}

func item(_ value.Context, a []value.Value) (value.Value, error) {
	list := &value.List{}
	for _, o := range items(a[0]) {
		o, err := known(o)
		if err != nil {
			return nil, err
		}
		v, err := at(nil, []value.Value{o, a[1]})
		if err != nil {
			return nil, err
		}
		if v, err = known(v); err != nil {
			return nil, err
		}
		list.Items = append(list.Items, v)
	}
	return list, nil
}

func at(_ value.Context, a []value.Value) (value.Value, error) {
	index, err := integer(a[1])
	if err != nil {
		return nil, err
	}
	switch x := a[0].(type) {
	case *value.List:
		if index, err = position(index, len(x.Items)); err != nil {
			return nil, err
		}
		if u, ok := x.Items[index].(*value.Unknown); ok {
			return nil, &value.UnknownError{Value: u}
		}
		return x.Items[index], nil
	case value.String:
		runes := []rune(x)
		if index, err = position(index, len(runes)); err != nil {
			return nil, errors.New("string index out of range")
		}
		return value.String(runes[index]), nil
	}
	return nil, fmt.Errorf("'%s' object is not subscriptable", value.TypeName(a[0]))
}

func keySort(_ value.Context, a []value.Value) (value.Value, error) {
	objects, err := knownItems(a[0])
	if err != nil {
		return nil, err
	}
	var paths []string
	switch key := a[1].(type) {
	case value.String:
		paths = []string{string(key)}
	case *value.List:
		for _, k := range key.Items {
			paths = append(paths, text(k))
		}
	default:
		return nil, errors.New("attribute name must be a string")
	}
	type row struct {
		object value.Value
		keys   []value.Value
	}
	rows := make([]row, 0, len(objects))
	for _, o := range objects {
		r := row{object: o}
		for _, path := range paths {
			v := o
			for name := range strings.SplitSeq(path, ".") {
				if v, err = attribute(v, name); err != nil {
					return nil, err
				}
				if v, err = known(v); err != nil {
					return nil, err
				}
			}
			r.keys = append(r.keys, v)
		}
		rows = append(rows, r)
	}
	var fault error
	slices.SortStableFunc(rows, func(x, y row) int {
		for i := range x.keys {
			if value.Equal(x.keys[i], y.keys[i]) {
				continue
			}
			less, err := lessThan(x.keys[i], y.keys[i])
			if err != nil {
				fault = err
				return 0
			}
			if less {
				return -1
			}
			return 1
		}
		return 0
	})
	if fault != nil {
		return nil, fault
	}
	list := &value.List{Items: make([]value.Value, 0, len(rows))}
	for _, r := range rows {
		list.Items = append(list.Items, r.object)
	}
	return list, nil
}

// lessThan is Python's a < b of numbers, texts and lists.
func lessThan(a, b value.Value) (bool, error) {
	switch x := a.(type) {
	case value.String:
		if y, ok := b.(value.String); ok {
			return x < y, nil
		}
	case *value.List:
		y, ok := b.(*value.List)
		if !ok {
			break
		}
		for i := range min(len(x.Items), len(y.Items)) {
			if !value.Equal(x.Items[i], y.Items[i]) {
				return lessThan(x.Items[i], y.Items[i])
			}
		}
		return len(x.Items) < len(y.Items), nil
	}
	less, err := value.Compare("<", a, b)
	if err != nil {
		return false, fmt.Errorf("'<' not supported between instances of '%s' and '%s'", value.TypeName(a), value.TypeName(b))
	}
	return less, nil
}

func sequence(_ value.Context, a []value.Value) (value.Value, error) {
	n, err := integer(a[0])
	if err != nil {
		return nil, err
	}
	start, err := integer(a[1])
	if err != nil {
		return nil, err
	}
	if n > maxSequence {
		return nil, tooLarge("a sequence of %d numbers is too long: at most %d are possible", n, maxSequence)
	}
	list := &value.List{Items: make([]value.Value, 0, max(n, 0))}
	for i := range n {
		list.Items = append(list.Items, value.Int(start+i))
	}
	return list, nil
}

func unique(_ value.Context, a []value.Value) (value.Value, error) {
	seen := make(map[string]bool, len(items(a[0])))
	for _, o := range items(a[0]) {
		o, err := known(o)
		if err != nil {
			return nil, err
		}
		switch o.(type) {
		case *value.List, *value.Dict:
			return nil, fmt.Errorf("unhashable type: '%s'", value.TypeName(o))
		}
		key := identity(o)
		if seen[key] {
			return value.Bool(false), nil
		}
		seen[key] = true
	}
	return value.Bool(true), nil
}

// identity gives equal texts for equal values; 1, 1.0 and true are equal.
func identity(v value.Value) string {
	switch v.(type) {
	case value.Bool, value.Float:
		if n, err := value.Cast("int", v); err == nil && value.Equal(n, v) {
			return value.Repr(n)
		}
	}
	return value.Repr(v)
}

func flatten(_ value.Context, a []value.Value) (value.Value, error) {
	list := &value.List{}
	for _, o := range items(a[0]) {
		o, err := known(o)
		if err != nil {
			return nil, err
		}
		switch x := o.(type) {
		case *value.List:
			inner, err := knownItems(x)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, inner...)
		case *value.Dict:
			list.Items = append(list.Items, keysOf(x).Items...)
		case value.String:
			for _, r := range string(x) {
				list.Items = append(list.Items, value.String(r))
			}
		default:
			return nil, fmt.Errorf("'%s' object is not iterable", value.TypeName(o))
		}
	}
	return list, nil
}

func filter(_ value.Context, a []value.Value) (value.Value, error) {
	objects, err := knownItems(a[0])
	if err != nil {
		return nil, err
	}
	list := &value.List{}
	for _, o := range objects {
		if !value.Equal(o, a[1]) {
			list.Items = append(list.Items, o)
		}
	}
	return list, nil
}

func dictGet(_ value.Context, a []value.Value) (value.Value, error) {
	v, ok := dictOf(a[0]).Get(text(a[1]))
	if !ok {
		return nil, errors.New(value.StringRepr(text(a[1])))
	}
	return known(v)
}

// dictOf reads an argument that the declared type made a dict.
func dictOf(v value.Value) *value.Dict {
	if d, ok := v.(*value.Dict); ok {
		return d
	}
	return &value.Dict{}
}

func keysOf(v value.Value) *value.List {
	list := &value.List{}
	if d, ok := v.(*value.Dict); ok {
		for _, k := range d.Keys() {
			list.Items = append(list.Items, value.String(k))
		}
	}
	return list
}
