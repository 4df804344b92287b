package sdk

import (
	"github.com/intendant/intendant/model"
)

// Handler reads and changes the resources of a type. See the package comment for the order of calls.
type Handler interface {
	// Read finds out the present state of the resource and changes nothing. A resource that is not there is not an error:
	// the zero [Observed] says so.
	Read(c *Context, r *Resource) (Observed, error)
	// Change brings the resource to its desired state. It is called only with a difference: diff is not empty and action
	// is what is to be done about it.
	Change(c *Context, r *Resource, action model.Change, o Observed, diff model.Diff) error
}

// Differ is implemented by a handler that compares in its own way. The keys of the diff are attribute names. An empty diff
// means that there is nothing to do.
type Differ interface {
	Diff(c *Context, r *Resource, o Observed) (model.Diff, error)
}

// Reloader is implemented by a handler that can react to the change of a requirement. Reload is called after a run that
// succeeded, when a requirement that sends events changed, and never in a dry run.
type Reloader interface {
	Reload(c *Context, r *Resource) error
}

// FactReader is implemented by a handler that can read facts of a resource. It is called after a successful run and when
// facts are asked for.
type FactReader interface {
	Facts(c *Context, r *Resource) ([]model.Fact, error)
}

// Executor carries out whole tasks, in an order of its own. It reports through the [Context]: changes, log and facts.
// It must look at [Context.DryRun] and [Context.ReportOnly] itself.
type Executor interface {
	Execute(c *Context, r *Resource) error
}

// Observed is what Read found.
type Observed struct {
	// Exists is false when the resource is not there; Attributes then count for nothing.
	Exists bool
	// Attributes are the present values by attribute name, of any type that encodes to JSON. Attributes of the intent that
	// are not in it take no part in the default comparison.
	Attributes map[string]any
	// Private is for the handler: it is handed on to Diff and Change as it is.
	Private any
}

// HandlerExecutor runs a [Handler] in the standard order.
type HandlerExecutor struct {
	Handler Handler
}

// Execute implements [Executor].
func (e HandlerExecutor) Execute(c *Context, r *Resource) error {
	if c.Task().Kind == model.TaskFacts {
		return e.facts(c, r)
	}
	if err := checkRequirements(c); err != nil {
		return err
	}
	observed, err := e.Handler.Read(c, r)
	if err != nil {
		return err
	}
	diff, action, err := e.compare(c, r, observed)
	if err != nil {
		return err
	}
	c.AddDiff(diff)
	if c.DryRun() {
		return nil
	}
	if c.ReportOnly() {
		if len(diff) > 0 {
			c.SetOutcome(model.OutcomeNonCompliant)
		}
		return nil
	}
	if action != model.ChangeNone {
		if err := e.Handler.Change(c, r, action, observed, diff); err != nil {
			return err
		}
		c.SetChange(action)
	}
	if reloader, ok := e.Handler.(Reloader); ok && c.Task().Reload {
		if err := reloader.Reload(c, r); err != nil {
			return err
		}
	}
	return e.facts(c, r)
}

func (e HandlerExecutor) compare(c *Context, r *Resource, o Observed) (model.Diff, model.Change, error) {
	purged := r.Purged()
	switch {
	case !o.Exists && purged:
		return nil, model.ChangeNone, nil
	case o.Exists && purged:
		return model.Diff{"purged": change(false, true)}, model.ChangePurged, nil
	}
	differ, ok := e.Handler.(Differ)
	if !o.Exists {
		diff := model.Diff{}
		if ok {
			d, err := differ.Diff(c, r, o)
			if err != nil {
				return nil, model.ChangeNone, err
			}
			diff = d
		}
		if diff == nil {
			diff = model.Diff{}
		}
		diff["purged"] = change(true, false)
		return diff, model.ChangeCreated, nil
	}
	var diff model.Diff
	var err error
	if ok {
		diff, err = differ.Diff(c, r, o)
	} else {
		diff, err = Compare(r, o.Attributes)
	}
	if err != nil || len(diff) == 0 {
		return nil, model.ChangeNone, err
	}
	return diff, model.ChangeUpdated, nil
}

func (e HandlerExecutor) facts(c *Context, r *Resource) error {
	reader, ok := e.Handler.(FactReader)
	if !ok || c.DryRun() {
		return nil
	}
	facts, err := reader.Facts(c, r)
	if err != nil {
		return err
	}
	for _, f := range facts {
		c.AddFact(f)
	}
	return nil
}

// checkRequirements skips a deploy whose requirements are not deployed. Neither dry runs nor report-only resources depend
// on others: they only look.
func checkRequirements(c *Context) error {
	t := c.Task()
	if t.Kind == model.TaskDryRun || c.ReportOnly() {
		return nil
	}
	var missing []model.ResourceID
	for id, status := range t.Requires {
		if status != model.StatusDeployed {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return SkipForDependency(missing)
}
