package compilehost

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python"
)

// adjust runs the dependency managers and the export functions, and takes the resources that Python code added by itself.
func (h *Host) adjust(c value.ModelContext, made []lang.AdjustedResource) (lang.Adjustment, diag.List, error) {
	leave := h.enter(c)
	defer leave()
	var out lang.Adjustment
	var ds diag.List
	var err error
	if h.managers {
		if out.Requires, ds, err = h.runManagers(c, made); err != nil {
			return out, ds, err
		}
	}
	var got []struct {
		madeResource
		Requires []model.ResourceID `json:"r"`
	}
	if err := h.process.Call(h.ctx, "added", nil, &got); err != nil {
		return out, ds, fmt.Errorf("taking the resources that were added: %w", err)
	}
	for i := range got {
		out.Added = append(out.Added, lang.AddedResource{Made: h.made(&got[i].madeResource), Requires: got[i].Requires})
	}
	return out, ds, nil
}

// runManagers runs the dependency managers and the export functions, and gives what resources require where that has changed.
func (h *Host) runManagers(c value.ModelContext, made []lang.AdjustedResource) (map[model.ResourceID][]model.ResourceID, diag.List, error) {
	e := newEncoder(h.t, c)
	b := []byte(`{"r":[`)
	for i, r := range made {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, '['), string(r.ID))
		b = e.value(append(b, ','), r.Instance)
		requires := make([]string, len(r.Requires))
		for k, id := range r.Requires {
			requires[k] = string(id)
		}
		b = appendStrings(append(b, ','), requires)
		b = append(b, ',')
		fields, err := value.ParseJSON(string(r.Attributes))
		if err != nil {
			return nil, nil, fmt.Errorf("reading the fields of %s: %w", r.ID, err)
		}
		b = append(e.value(b, fields), ']')
	}
	b = e.rest(append(b, ']'))
	var got struct {
		Changed map[model.ResourceID][]model.ResourceID `json:"changed"`
		Faults  []python.Error                          `json:"faults"`
	}
	if err := h.process.Call(h.ctx, "managers", json.RawMessage(b), &got); err != nil {
		return nil, nil, fmt.Errorf("running dependency managers: %w", err)
	}
	h.flush()
	var ds diag.List
	for i := range got.Faults {
		f := &got.Faults[i]
		ds.Errorf("ExternalException", h.at(faultData(f).At), "Exception in a dependency manager\ncaused by: %s: %s%s", f.Class, f.Message, h.trace(f))
	}
	for _, name := range h.cfg.Exports {
		err := h.process.Call(h.ctx, "export_function", map[string]string{"n": name}, nil)
		h.flush()
		f, ok := errors.AsType[*python.Error](err)
		switch {
		case ok:
			ds.Errorf("ExternalException", diag.Range{}, "Exception in the export function %s\ncaused by: %s: %s%s", name, f.Class, f.Message, h.trace(f))
		case err != nil:
			return nil, nil, fmt.Errorf("running the export function %s: %w", name, err)
		}
	}
	return got.Changed, ds, nil
}
