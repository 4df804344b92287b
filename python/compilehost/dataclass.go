package compilehost

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
)

// pairing is what Python says about a dataclass of the model: whether it has a class of that name, and what does not match.
type pairing struct {
	Paired bool `json:"paired"`
	// At is the place of the class, as [file, line].
	At     []json.RawMessage `json:"at"`
	Faults []string          `json:"faults"`
}

// declared pairs dataclasses of the model with classes of Python. A dataclass without such a class is an entity as any other.
func (h *Host) declared(ctx context.Context, entities []lang.Dataclass) diag.List {
	var got []pairing
	var ds diag.List
	if err := h.process.Call(ctx, "pair", h.pairRequest(entities), &got); err != nil || len(got) != len(entities) {
		if ctx.Err() == nil {
			ds.Errorf("ExternalException", diag.Range{}, "The dataclasses of the modules can not be paired with those of the model: %v", err)
		}
		return ds
	}
	h.flush()
	for i := range got {
		if got[i].Paired || len(got[i].Faults) > 0 {
			h.mismatch(&ds, &entities[i], &got[i])
		}
	}
	return ds
}

// pairRequest has the entities with their attributes, and makes them known to Python.
func (h *Host) pairRequest(entities []lang.Dataclass) json.RawMessage {
	e := newEncoder(h.t, nil)
	b := []byte(`{"d":[`)
	for i, d := range entities {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(append(b, '['), d.Name), ",["...)
		first := true
		for _, a := range d.Attributes {
			if a.Relation {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendStrings(b, []string{a.Name, a.Type})
		}
		b = append(b, "]]"...)
		e.declare(d.TypeInfo)
	}
	return e.rest(append(b, ']'))
}

// mismatch reports what keeps an entity and a class from being the same.
func (h *Host) mismatch(ds *diag.List, e *lang.Dataclass, p *pairing) {
	class := h.at(p.At)
	faults := slices.Clone(p.Faults)
	for _, a := range e.Attributes {
		if at, ok := e.Relations[a.Name]; ok {
			faults = append(faults, fmt.Sprintf("a relation called %s is defined at %s:%d. A dataclass can not have relations", a.Name, at.File, at.Start.Line))
		}
	}
	switch {
	case len(faults) > 0:
		d := diag.Errorf("DataClassMismatchException", e.At, "The dataclass %s does not match the corresponding Python dataclass:\n  - %s",
			e.Name, strings.Join(faults, "\n  - "))
		if class.File != "" {
			d.Related = append(d.Related, diag.Related{Range: class, Message: "the Python dataclass"})
		}
		ds.Add(d.WithHint("give the entity and the frozen dataclass the same attributes, of the same primitive types"))
	case e.Implement != nil:
		d := diag.Errorf("DataClassException", e.At, "The dataclass %s has an implementation other than std::none. A dataclass can only have std::none", e.Name)
		d.Related = append(d.Related, diag.Related{Range: *e.Implement, Message: "selected here"})
		ds.Add(d)
	case e.Index != nil:
		d := diag.Errorf("DataClassException", e.At, "The dataclass %s has an index. A dataclass can not have indexes", e.Name)
		d.Related = append(d.Related, diag.Related{Range: *e.Index, Message: "defined here"})
		ds.Add(d)
	}
}
