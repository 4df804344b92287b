package std

import (
	"errors"
	"fmt"

	"github.com/intendant/intendant/lang/value"
)

func referencePlugins() []*value.Plugin {
	return []*value.Plugin{
		plugin("create_environment_reference", "any", func(_ value.Context, a []value.Value) (value.Value, error) {
			if err := textOrReference("name", a[0]); err != nil {
				return nil, err
			}
			return reference("std::Environment", "string", "name", a[0]), nil
		}, arg("name", "any")),
		plugin("create_int_reference", "any", func(_ value.Context, a []value.Value) (value.Value, error) {
			return reference("std::IntReference", "int", "value", a[0]), nil
		}, arg("value", "any")),
		plugin("create_fact_reference", "any", factReference, arg("resource", "std::Resource"), arg("fact_name", "string")),
	}
}

// reference makes a reference with arguments given as names and values in turn.
func reference(class, model string, args ...any) *value.Reference {
	r := &value.Reference{Type: class, Model: model, Args: value.NewDict(len(args) / 2)}
	for i := 0; i+1 < len(args); i += 2 {
		name, _ := args[i].(string)
		v, _ := args[i+1].(value.Value)
		r.Args.Set(name, v)
	}
	return r
}

func textOrReference(name string, v value.Value) error {
	switch x := v.(type) {
	case value.String:
		return nil
	case *value.Reference:
		if x.Model == "string" || x.Model == "" || x.Model == "any" {
			return nil
		}
	}
	return &value.PluginError{Message: fmt.Sprintf("Value %s for argument %s has incompatible type. Expected type: Reference[string] | string", value.Repr(v), name), Class: "PluginTypeException"}
}

func factReference(c value.Context, a []value.Value) (value.Value, error) {
	i, ok := a[0].(value.Instance)
	if !ok {
		return nil, errors.New("Facts can only be retrieved from resources.")
	}
	id, ok, err := c.Resource(i)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("Facts can only be retrieved from resources.")
	}
	env, ok := c.Input(value.InputSetting, "environment-id")
	if !ok {
		return nil, errors.New("The environment of this model should be configured in config>environment")
	}
	return reference("std::FactReference", "string", "environment", value.String(env), "resource_id", value.String(id), "fact_name", a[1],
		"mocked_facts", value.Null{}), nil
}
