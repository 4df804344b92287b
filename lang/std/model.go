package std

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

func modelPlugins() []*value.Plugin {
	getattr := func(name string) *value.Plugin {
		p := plugin(name, anyOrReference, getAttribute, arg("entity", "std::Entity"), arg("attribute_name", "string"),
			opt("default_value", anyOrReference, value.Null{}), opt("no_unknown", "bool", value.Bool(true)))
		p.AllowUnknown = true
		return p
	}
	isUnknown := plugin("is_unknown", "bool", func(_ value.Context, a []value.Value) (value.Value, error) {
		_, ok := a[0].(*value.Unknown)
		return value.Bool(ok), nil
	}, arg("value", anyOrReference))
	isUnknown.AllowUnknown = true
	return []*value.Plugin{
		getattr("getattr"),
		getattr("getattribute"),
		isUnknown,
		plugin("type", "any", typeOf, arg("obj", "any")),
		plugin("isset", "bool", func(_ value.Context, a []value.Value) (value.Value, error) {
			_, null := a[0].(value.Null)
			return value.Bool(!null), nil
		}, arg("value", "any")),
		plugin("is_instance", "bool", isInstance, arg("obj", "any"), arg("cls", "string")),
		plugin("objid", "string", objectID, arg("value", "any")),
		deprecated(plugin("equals", "any", equals, arg("arg1", "any"), arg("arg2", "any"), opt("desc", "string", value.Null{})), "the `==` binary operator"),
		plugin("assert", "any", assert, arg("expression", "bool"), opt("message", "string", value.String(""))),
		plugin("familyof", "bool", familyOf, arg("member", "std::OS"), arg("family", "string")),
		plugin("validate_type", "bool", validateType, arg("fq_type_name", "string"), arg("value", "any"), opt("validation_parameters", "dict", value.Null{})),
	}
}

func getAttribute(_ value.Context, a []value.Value) (value.Value, error) {
	name, ok := a[1].(value.String)
	if !ok {
		return nil, errors.New("attribute name must be string, not 'Unknown'")
	}
	i, ok := a[0].(value.Instance)
	if !ok {
		return a[2], nil
	}
	v, ok, err := i.Attribute(string(name))
	if err != nil {
		return nil, err
	}
	if !ok {
		return a[2], nil
	}
	if _, unknown := v.(*value.Unknown); !unknown {
		return v, nil
	}
	if _, undecided := a[3].(*value.Unknown); undecided || !value.Truth(a[3]) {
		return v, nil
	}
	return a[2], nil
}

// typeNames are the names of the types of the language that values other than instances have.
var typeNames = map[string]string{"str": "string", "NoneValue": "null"}

func typeOf(_ value.Context, a []value.Value) (value.Value, error) {
	if i, ok := a[0].(value.Instance); ok {
		return value.String(i.TypeName()), nil
	}
	name := value.TypeName(a[0])
	if own, ok := typeNames[name]; ok {
		name = own
	}
	return value.String(name), nil
}

func isInstance(c value.Context, a []value.Value) (value.Value, error) {
	name := text(a[1])
	found, err := c.Validate(name, a[0])
	if !found {
		return nil, fmt.Errorf("could not find type %s in namespace %s", name, c.Namespace())
	}
	switch a[0].(type) {
	case value.Instance, *value.List, *value.Dict:
		return value.Bool(err == nil), nil
	}
	return nil, fmt.Errorf("is_instance works on instances, lists and dicts, not on %s", value.Repr(a[0]))
}

// objectID tells instances, lists and dicts apart: instances by their number; lists and dicts, which have no identity in the
// language, by their contents.
func objectID(_ value.Context, a []value.Value) (value.Value, error) {
	switch x := a[0].(type) {
	case value.Instance:
		return value.String(fmt.Sprintf("(%s, '%d', %s)", value.Repr(x), x.Serial(), x.TypeName())), nil
	case *value.List, *value.Dict:
		text := value.Repr(x)
		h := fnv.New64a()
		_, _ = io.WriteString(h, text) // a hash takes everything
		return value.String(fmt.Sprintf("(%s, '%d', %s)", text, h.Sum64(), value.TypeName(x))), nil
	}
	return nil, fmt.Errorf("objid works on instances, lists and dicts, not on %s", value.Repr(a[0]))
}

func equals(_ value.Context, a []value.Value) (value.Value, error) {
	if value.Equal(a[0], a[1]) {
		return value.Null{}, nil
	}
	message := value.PrintForm(a[0]) + " != " + value.PrintForm(a[1])
	if desc, ok := a[2].(value.String); ok {
		message += ": " + string(desc)
	}
	return nil, errors.New(message)
}

func assert(_ value.Context, a []value.Value) (value.Value, error) {
	if value.Truth(a[0]) {
		return value.Null{}, nil
	}
	return nil, errors.New("Assertion error: " + text(a[1]))
}

// familyOf follows the relation family upwards from an operating system. As in the public module, a system at the top, which
// has no family, counts only for itself: linux is not of the family unix.
func familyOf(_ value.Context, a []value.Value) (value.Value, error) {
	want := text(a[1])
	name, err := attribute(a[0], "name")
	if err != nil {
		return nil, err
	}
	if text(name) == want {
		return value.Bool(true), nil
	}
	seen := map[value.Value]bool{}
	for os := a[0]; !seen[os]; {
		seen[os] = true
		family, err := attribute(os, "family")
		if _, unset := errors.AsType[*value.OptionalError](err); unset {
			break
		}
		if err != nil {
			return nil, err
		}
		if family, err = known(family); err != nil {
			return nil, err
		}
		if _, null := family.(value.Null); null {
			break
		}
		if name, err = attribute(os, "name"); err != nil {
			return nil, err
		}
		if text(name) == want {
			return value.Bool(true), nil
		}
		os = family
	}
	return value.Bool(false), nil
}

func validateType(_ value.Context, a []value.Value) (value.Value, error) {
	params, _ := a[2].(*value.Dict)
	ok, err := validate(text(a[0]), a[1], params)
	if errors.Is(err, errUnknownType) {
		// Nothing is of a type outside the libraries that types come from.
		library, _, _ := strings.Cut(text(a[0]), ".")
		if !slices.Contains([]string{"pydantic", "datetime", "ipaddress", "uuid"}, library) || library == text(a[0]) {
			return value.Bool(false), nil
		}
		return nil, fmt.Errorf("validate_type does not know the type %s", text(a[0]))
	}
	return value.Bool(ok), err
}
