package builtin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

// environmentReference resolves std::Environment: a variable of the agent's environment.
func environmentReference(lookup func(string) (string, bool)) sdk.Resolver {
	return func(_ *sdk.Context, args map[string]json.RawMessage) (any, error) {
		var name string
		if err := json.Unmarshal(args["name"], &name); err != nil {
			return nil, fmt.Errorf("the name of a variable: %w: %w", model.ErrInvalid, err)
		}
		value, ok := lookup(name)
		if !ok {
			return nil, fmt.Errorf("the agent's environment has no variable %s", name)
		}
		return value, nil
	}
}

// intReference resolves std::IntReference: a whole number from a text.
func intReference(_ *sdk.Context, args map[string]json.RawMessage) (any, error) {
	text := string(args["value"])
	var s string
	if json.Unmarshal(args["value"], &s) == nil {
		text = strings.TrimSpace(s)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the value is not a whole number: %w", model.ErrInvalid)
	}
	return n, nil
}

// factReference stands for std::FactReference: facts are kept by the server, which agents do not ask for them.
func factReference(_ *sdk.Context, args map[string]json.RawMessage) (any, error) {
	var facts map[string]map[string]string
	if json.Unmarshal(args["mocked_facts"], &facts) == nil {
		var resource, name string
		_ = json.Unmarshal(args["resource_id"], &resource)
		_ = json.Unmarshal(args["fact_name"], &name)
		if value, ok := facts[resource][name]; ok {
			return value, nil
		}
	}
	return nil, sdk.Unavailable("this agent can not look up facts: use std::getfact, which the compiler answers")
}

// attributeReference resolves core::AttributeReference: a field of what another reference resolves to.
func attributeReference(_ *sdk.Context, args map[string]json.RawMessage) (any, error) {
	var name string
	if err := json.Unmarshal(args["attribute_name"], &name); err != nil {
		return nil, fmt.Errorf("the name of an attribute: %w: %w", model.ErrInvalid, err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args["reference"], &object); err != nil {
		return nil, fmt.Errorf("an attribute of what is no object: %w: %w", model.ErrInvalid, err)
	}
	value, ok := object[name]
	if !ok {
		return nil, fmt.Errorf("there is no attribute %s: %w", name, model.ErrInvalid)
	}
	return value, nil
}
