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
	if _, own := e.(ReferenceExecutor); !own {
		if res, err = r.WithReferences(c, res); err != nil {
			return err
		}
	}
	return e.Execute(c, res)
}
