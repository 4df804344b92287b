package compilehost

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/python"
)

// resourceType is a class of resources, and the Python module that defines it.
func (h *Host) resourceType(parts []json.RawMessage) (lang.ResourceType, string, error) {
	var r lang.ResourceType
	var where string
	if len(parts) != 5 {
		return r, "", errForm
	}
	err := errors.Join(json.Unmarshal(parts[0], &r.Entity), json.Unmarshal(parts[1], &r.Agent), json.Unmarshal(parts[2], &r.ID),
		json.Unmarshal(parts[3], &r.Fields), json.Unmarshal(parts[4], &where))
	if err != nil {
		return r, "", fmt.Errorf("loading a class of resources: %w", err)
	}
	name := r.Entity
	r.Make = func(c value.ModelContext, all []value.Instance) ([]lang.Made, error) {
		return h.makeResources(c, name, all)
	}
	r.Identify = func(c value.ModelContext, i value.Instance) (string, bool, error) { return h.identify(c, name, i) }
	return r, where, nil
}

// makeResources makes the resources of a type of several instances.
func (h *Host) makeResources(c value.ModelContext, name string, all []value.Instance) ([]lang.Made, error) {
	leave := h.enter(c)
	defer leave()
	e := newEncoder(h.t, c)
	e.ahead += len(all) // every one of them is read
	b := appendString([]byte(`{"n":`), name)
	b = append(b, `,"i":[`...)
	for k, i := range all {
		if k > 0 {
			b = append(b, ',')
		}
		b = e.value(b, i)
	}
	b = e.rest(append(b, ']'))
	var got []madeResource
	if err := h.process.Call(h.ctx, "export", json.RawMessage(b), &got); err != nil {
		return nil, err
	}
	h.flush()
	out := make([]lang.Made, len(got))
	for k := range got {
		out[k] = h.made(&got[k])
	}
	return out, nil
}

// madeResource is what Python says about the resource of an instance, or one that no instance stands for.
type madeResource struct {
	// State is made, fault, unknown or ignored.
	State   string        `json:"s"`
	ID      string        `json:"id"`
	Unknown []string      `json:"u"`
	Fields  string        `json:"j"`
	Fault   *python.Error `json:"e"`
}

func (h *Host) made(g *madeResource) lang.Made {
	switch {
	case g.Fault != nil:
		return lang.Made{Fault: h.exportFault(g.Fault)}
	case g.State == "made":
		return lang.Made{ID: g.ID, Attributes: []byte(g.Fields), Unknown: len(g.Unknown) > 0}
	}
	return lang.Made{}
}

// exportFault is why no resource can be made of an instance.
func (h *Host) exportFault(e *python.Error) *diag.Diagnostic {
	f := faultData(e)
	d := diag.Errorf(e.Class, diag.Range{}, "%s", e.Message)
	if f.Kind == "other" {
		d = diag.Errorf("ExternalException", diag.Range{}, "%s: %s%s", e.Class, e.Message, h.trace(e))
	}
	if len(f.At) == 2 {
		var file string
		var line int
		if json.Unmarshal(f.At[0], &file) == nil && json.Unmarshal(f.At[1], &line) == nil {
			d = d.WithRelated(h.place(file, line), "raised here")
		}
	}
	return &d
}

// identify gives the id of the resource that is made of an instance.
func (h *Host) identify(c value.ModelContext, name string, i value.Instance) (string, bool, error) {
	// The innermost call knows what can be waited for.
	if n := len(h.calls); n > 0 {
		c = h.calls[n-1]
	}
	leave := h.enter(c)
	defer leave()
	e := newEncoder(h.t, c)
	b := appendString([]byte(`{"n":`), name)
	b = e.value(append(b, `,"i":`...), i)
	b = e.rest(b)
	var id *string
	if err := h.process.Call(h.ctx, "to_id", json.RawMessage(b), &id); err != nil {
		return "", false, h.fault(err, c)
	}
	if id == nil {
		return "", false, nil
	}
	return *id, true, nil
}
