package lang

import (
	"context"
	"fmt"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// QueryFile is the name that diagnostics have for the text of a query.
const QueryFile = "expression"

// Query evaluates an expression in the model, as if the file of a namespace contained it; an empty namespace stands for the
// main file. Other than in models, an attribute may follow any operand: Host[name="a"].files. A query changes nothing: it makes
// no instances and calls only plugins of the built-in modules. The model must have compiled without errors, and its project
// must still be there, for plugins that read files. One query runs at a time.
//
// The value is nil when the diagnostics have errors. The error says that ctx was done.
func (r *Result) Query(ctx context.Context, namespace, text string) (value.Value, diag.List, error) {
	ns, ds := r.namespace(namespace)
	if ns == nil {
		return nil, ds, nil
	}
	x, file, ds := syntax.ParseQuery(QueryFile, []byte(text))
	if ds.HasErrors() {
		return nil, ds, nil
	}
	q, faults, warnings := r.Model.Program().BindQuery(ns, x, file, func(p *check.Plugin) bool { return r.c.host.builtin[p.Plugin] })
	ds.Add(warnings...)
	if q == nil {
		return nil, faultList(ds, faults), nil
	}
	v, faults, err := r.Model.Query(ctx, q)
	if err != nil {
		return nil, nil, fmt.Errorf("evaluating: %w", err)
	}
	return v, faultList(ds, faults), nil
}

func faultList(ds diag.List, fs []*check.Fault) diag.List {
	for _, f := range fs {
		ds.Add(f.Diagnostic())
	}
	return ds
}

// namespace finds a namespace that has a file.
func (r *Result) namespace(name string) (*check.Namespace, diag.List) {
	if name == "" {
		name = module.Main
	}
	prog := r.Model.Program()
	if ns := prog.Root.Find(name); ns != nil && ns.File != "" {
		return ns, nil
	}
	var names []string
	for _, ns := range prog.Files {
		names = append(names, ns.Full)
	}
	d := diag.Errorf("NotFoundException", diag.Range{}, "the model has no namespace %s", name)
	d.Hint = check.DidYouMean("", name, names)
	return nil, diag.List{d}
}

// Instances lists the instances of an entity and of those that descend from it, in the order in which they were made. The name is
// that which the file of a namespace would use, for an empty one the main file; a full name always does.
func (r *Result) Instances(namespace, entity string) ([]*eval.Instance, diag.List) {
	ns, ds := r.namespace(namespace)
	if ns == nil {
		return nil, ds
	}
	e, ok := r.Model.Program().Symbols[entity].(*check.Entity)
	if !ok {
		t, _, f := ns.LookupType(entity, nil)
		if f != nil {
			return nil, faultList(nil, []*check.Fault{f})
		}
		if e, ok = t.(*check.Entity); !ok {
			return nil, diag.List{diag.Errorf("TypingException", diag.Range{}, "%s is not an entity", entity)}
		}
	}
	var out []*eval.Instance
	for _, i := range r.Model.Instances {
		if i.Entity().IsA(e) {
			out = append(out, i)
		}
	}
	return out, nil
}
