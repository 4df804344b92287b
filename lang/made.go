package lang

import (
	"fmt"
	"slices"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/model"
)

// madeAtOnce is how many instances go into one call of [ResourceType.Make].
const madeAtOnce = 500

// made makes the resources of a type that makes them itself.
func (x *exporter) made(r *ResourceType, e *check.Entity, m *eval.Model) error {
	for part := range slices.Chunk(slices.Collect(instancesOf(m, e)), madeAtOnce) {
		instances := make([]value.Instance, len(part))
		for k, i := range part {
			instances[k] = i
		}
		out, err := r.Make(exportContext{h: x.c.host}, instances)
		if err != nil {
			return fmt.Errorf("making resources of %s: %w", r.Entity, err)
		}
		if len(out) != len(part) {
			return fmt.Errorf("making resources of %s: there are %d for %d instances", r.Entity, len(out), len(part))
		}
		for k, i := range part {
			x.madeOne(r, i, &out[k])
		}
	}
	return nil
}

func (x *exporter) madeOne(r *ResourceType, i *eval.Instance, made *Made) {
	switch {
	case made.Fault != nil:
		d := *made.Fault
		d.Range = i.At().Range()
		x.c.diags.Add(d)
		return
	case made.ID == "":
		x.ignored[i] = true
		return
	}
	id := model.ResourceID(made.ID)
	if x.taken(id, i) {
		return
	}
	attrs, err := model.Canonical(made.Attributes)
	if err != nil {
		x.fail("TypeError", i, "resource %s of type %s can not be exported: %s", id, r.Entity, err)
		return
	}
	x.add(&exported{id: id, inst: i, attrs: attrs, unknown: made.Unknown})
}

// taken reports an id that another instance has already.
func (x *exporter) taken(id model.ResourceID, i *eval.Instance) bool {
	old := x.byID[id]
	if old == nil {
		return false
	}
	d := diag.Errorf("CompilerException", i.At().Range(), "Resource %s exists more than once in the configuration model", id)
	if old.inst != nil {
		d = d.WithRelated(old.inst.At().Range(), "the other one is made here")
	}
	x.c.diags.Add(d)
	return true
}

// adjust lets the extension change what resources require.
func (x *exporter) adjust() error {
	if x.c.ext.Adjust == nil || x.c.diags.HasErrors() {
		return nil
	}
	made := make([]AdjustedResource, len(x.all))
	for k, r := range x.all {
		made[k] = AdjustedResource{ID: r.id, Instance: r.inst, Requires: r.requires, Attributes: r.attrs}
	}
	changed, ds, err := x.c.ext.Adjust(exportContext{h: x.c.host}, made)
	if err != nil {
		return fmt.Errorf("adjusting requirements: %w", err)
	}
	x.c.diags.Add(ds...)
	for i := range changed.Added {
		x.added(&changed.Added[i])
	}
	for _, r := range x.all {
		requires, ok := changed.Requires[r.id]
		switch {
		case ok:
			r.requires = slices.Compact(slices.Sorted(slices.Values(requires)))
		case r.inst != nil:
			continue
		}
		for _, id := range r.requires {
			if x.byID[id] == nil {
				x.c.diags.Errorf("CompilerException", r.at(), "resource %s requires %s, which is not part of the model", r.id, id)
			}
		}
	}
	return nil
}

// added takes a resource that no instance stands for.
func (x *exporter) added(a *AddedResource) {
	id := model.ResourceID(a.ID)
	if a.Fault != nil {
		x.c.diags.Add(*a.Fault)
		return
	}
	if old := x.byID[id]; old != nil {
		x.c.diags.Errorf("CompilerException", old.at(), "Resource %s exists more than once in the configuration model", id)
		return
	}
	attrs, err := model.Canonical(a.Attributes)
	if err != nil {
		x.c.diags.Errorf("TypeError", diag.Range{}, "resource %s can not be exported: %s", id, err)
		return
	}
	r := &exported{id: id, attrs: attrs, unknown: a.Unknown, requires: slices.Compact(slices.Sorted(slices.Values(a.Requires)))}
	x.byID[id] = r
	x.all = append(x.all, r)
}
