package lang

import (
	"encoding/json"
	"strconv"

	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/value"
)

// ExportedInstance is an instance as the result of a compile lists it.
type ExportedInstance struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	File       string          `json:"file"`
	Line       int             `json:"line"`
	Attributes json.RawMessage `json:"attributes"`
}

// ExportInstances lists the instances of a model in creation order, with the values of their attributes and relations: a
// reference to an instance is {"instance": id}, an unknown value {"unknown": true}, an unset optional relation null.
func ExportInstances(m *eval.Model) []ExportedInstance {
	out := make([]ExportedInstance, 0, len(m.Instances))
	for _, i := range m.Instances {
		out = append(out, ExportInstance(i))
	}
	return out
}

// ExportInstance is one instance as [ExportInstances] lists it.
func ExportInstance(i *eval.Instance) ExportedInstance {
	at := i.At()
	e := ExportedInstance{ID: instanceID(i), Type: i.TypeName(), Line: at.Line()}
	if at.File != nil {
		e.File = at.File.Name
	}
	b := []byte{'{'}
	for n, name := range i.AttributeNames() {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		v, _, err := i.Attribute(name)
		if err != nil {
			v = value.Null{} // an optional relation without a value
		}
		b = appendValue(b, v)
	}
	b = append(b, '}')
	e.Attributes = b
	return e
}

// ExportValue is a value in the form that [ExportInstances] has for the values of attributes; an instance, or a list of them, is
// listed with its own attributes.
func ExportValue(v value.Value) json.RawMessage {
	switch x := v.(type) {
	case *eval.Instance:
		return instanceJSON(x)
	case *value.List:
		out := []byte{'['}
		for n, e := range x.Items {
			if n > 0 {
				out = append(out, ',')
			}
			if i, ok := e.(*eval.Instance); ok {
				out = append(out, instanceJSON(i)...)
				continue
			}
			out = appendValue(out, e)
		}
		return append(out, ']')
	}
	return appendValue(nil, v)
}

func instanceJSON(i *eval.Instance) []byte {
	out, err := json.Marshal(ExportInstance(i))
	if err != nil {
		panic(err) // texts and raw JSON of our own
	}
	return out
}

func instanceID(i value.Instance) string { return i.TypeName() + "#" + strconv.Itoa(i.Serial()) }

func appendString(b []byte, s string) []byte {
	b, err := value.AppendJSON(b, value.String(s), value.JSONStyle{})
	if err != nil {
		panic(err) // strings can always be written
	}
	return b
}

func appendValue(b []byte, v value.Value) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case value.Instance:
		b = append(b, `{"instance":`...)
		b = appendString(b, instanceID(x))
		return append(b, '}')
	case *value.Unknown:
		return append(b, `{"unknown":true}`...)
	case *value.Reference:
		b = append(b, `{"reference":`...)
		b = appendString(b, value.Repr(x))
		return append(b, '}')
	case *value.List:
		b = append(b, '[')
		for i, e := range x.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case *value.Dict:
		b = append(b, '{')
		for i := range x.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			k, e := x.At(i)
			b = appendString(b, k)
			b = append(b, ':')
			b = appendValue(b, e)
		}
		return append(b, '}')
	}
	out, err := value.AppendJSON(b, v, value.JSONStyle{})
	if err != nil { // not a number that JSON knows
		return appendString(b, value.Repr(v))
	}
	return out
}
