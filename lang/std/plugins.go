package std

import (
	"errors"
	"fmt"

	"github.com/intendant/intendant/lang/value"
)

// Plugins lists the plugins of the embedded modules.
func Plugins() []*value.Plugin {
	var all []*value.Plugin
	for _, group := range [][]*value.Plugin{textPlugins(), listPlugins(), modelPlugins(), filePlugins(), environmentPlugins(), addressPlugins(), referencePlugins()} {
		all = append(all, group...)
	}
	return all
}

// call is the function of a plugin.
type call func(c value.Context, args []value.Value) (value.Value, error)

// plugin makes a plugin of the module std.
func plugin(name, returns string, f call, params ...value.Param) *value.Plugin {
	return &value.Plugin{Name: "std::" + name, Params: params, Returns: returns, Call: f}
}

// deprecated marks a plugin and says what to use instead.
func deprecated(p *value.Plugin, instead string) *value.Plugin {
	p.Deprecated = instead
	return p
}

// arg is a mandatory parameter.
func arg(name, typ string) value.Param { return value.Param{Name: name, Type: typ} }

// opt is a parameter with a default.
func opt(name, typ string, def value.Value) value.Param {
	return value.Param{Name: name, Type: typ, Default: def}
}

// text reads an argument that the declared type made a string.
func text(v value.Value) string {
	s, _ := v.(value.String)
	return string(s)
}

// integer reads an argument that the declared type made an int; booleans are integers too.
func integer(v value.Value) (int, error) {
	switch x := v.(type) {
	case value.Int:
		return int(x), nil
	case value.Bool:
		if x {
			return 1, nil
		}
		return 0, nil
	}
	return 0, errors.New("Python int too large to convert to C ssize_t")
}

// known gives v unless it is unknown or a reference.
func known(v value.Value) (value.Value, error) {
	switch x := v.(type) {
	case *value.Unknown:
		return nil, &value.UnknownError{Value: x}
	case *value.Reference:
		return nil, &value.ReferenceError{Reference: x}
	}
	return v, nil
}

// items reads an argument that the declared type made a list.
func items(v value.Value) []value.Value {
	l, ok := v.(*value.List)
	if !ok {
		return nil
	}
	return l.Items
}

// knownItems are the elements of a list, none of which may be unknown.
func knownItems(v value.Value) ([]value.Value, error) {
	all := items(v)
	for _, x := range all {
		if _, err := known(x); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// position turns an index, which may count from the end, into one from the start.
func position(index, length int) (int, error) {
	if index < 0 {
		index += length
	}
	if index < 0 || index >= length {
		return 0, errors.New("list index out of range")
	}
	return index, nil
}

// attribute reads an attribute of an instance the way a plugin written in Python does.
func attribute(v value.Value, name string) (value.Value, error) {
	i, ok := v.(value.Instance)
	if !ok {
		return nil, fmt.Errorf("'%s' object has no attribute '%s'", value.TypeName(v), name)
	}
	a, ok, err := i.Attribute(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s has no attribute %s", value.Str(v), name)
	}
	return a, nil
}
