package sdk

import (
	"fmt"
	"runtime/debug"

	"github.com/intendant/intendant/model"
)

// Run finds the executor of a task, puts the values of references in their places and calls it. A panic is a failure of this
// task alone. What the run reported is in the context; see [Context.Result].
func (r *Registry) Run(c *Context, res *Resource) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Log(model.LevelDebug, string(debug.Stack()), nil)
			err = Coded(CodePanic, fmt.Errorf("the handler panicked: %v", p))
		}
	}()
	e, err := r.Find(c, c.Task())
	if err != nil {
		return err
	}
	return r.execute(c, e, res)
}

// Own calls the executor that is registered for the type of a resource, whatever code the version ships: an executor found by
// [Registry.Prefer] uses it for a type that its code has no handler for after all. [Registry.HasOwn] tells whether there is one.
func (r *Registry) Own(c *Context, res *Resource) error {
	r.mu.RLock()
	e, ok := r.executors[res.Parts.Type]
	r.mu.RUnlock()
	if !ok {
		return Coded(CodeNoHandler, fmt.Errorf("no handler is registered for %s: %w", res.Parts.Type, model.ErrNotFound))
	}
	return r.execute(c, e, res)
}

// HasOwn reports whether an executor is registered for a type.
func (r *Registry) HasOwn(resourceType string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.executors[resourceType]
	return ok
}

func (r *Registry) execute(c *Context, e Executor, res *Resource) (err error) {
	if _, own := e.(ReferenceExecutor); !own {
		if res, err = r.WithReferences(c, res); err != nil {
			return err
		}
	}
	return e.Execute(c, res)
}
