package std

import (
	"errors"

	"github.com/intendant/intendant/lang/value"
)

// anyOrReference is the type of what plugins hand on without a look into it.
const anyOrReference = "any | Reference[any]"

func referencePlugins() []*value.Plugin {
	return []*value.Plugin{
		plugin("create_environment_reference", "Reference[string]", func(_ value.Context, a []value.Value) (value.Value, error) {
			return reference("std::Environment", "string", "name", a[0]), nil
		}, arg("name", "string | Reference[string]")),
		plugin("create_int_reference", "Reference[int]", func(_ value.Context, a []value.Value) (value.Value, error) {
			return reference("std::IntReference", "int", "value", a[0]), nil
		}, arg("value", anyOrReference)),
		plugin("create_fact_reference", "Reference[string]", factReference, arg("resource", "std::Resource"), arg("fact_name", "string")),
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
		env = "None" // as the public module has it; nothing can be deployed from there
	}
	return reference("std::FactReference", "string", "environment", value.String(env), "resource_id", value.String(id), "fact_name", a[1],
		"mocked_facts", value.Null{}), nil
}
