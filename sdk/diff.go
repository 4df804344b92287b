package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/intendant/intendant/model"
)

// Compare makes the diff between the present values and the intent. Only attributes that are in both take part; values are
// equal when their canonical JSON is.
func Compare(r *Resource, current map[string]any) (model.Diff, error) {
	diff := model.Diff{}
	for name, value := range current {
		desired, ok := r.Attributes[name]
		if !ok {
			continue
		}
		present, err := encode(value)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		want, err := model.Canonical(desired)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		if !bytes.Equal(present, want) {
			diff[name] = model.AttributeChange{Current: present, Desired: want}
		}
	}
	return diff, nil
}

// Changed makes an attribute's change from any two values that encode to JSON; one that does not is shown as text.
func Changed(current, desired any) model.AttributeChange { return change(current, desired) }

func change(current, desired any) model.AttributeChange {
	return model.AttributeChange{Current: encodeOrText(current), Desired: encodeOrText(desired)}
}

func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return model.Canonical(raw)
}

func encodeOrText(v any) json.RawMessage {
	raw, err := encode(v)
	if err != nil {
		raw, _ = json.Marshal(fmt.Sprint(v)) //nolint:errchkjson // a text
	}
	return raw
}

// fields encodes a struct and returns the canonical JSON of its fields.
func fields(v any) (map[string]json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errNotObject
	}
	return m, nil
}
