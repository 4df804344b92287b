package sdk

import (
	"errors"
	"fmt"

	"github.com/intendant/intendant/model"
)

// CRUD is what a handler of things that are created, read, updated and deleted implements; T is a struct with json tags
// named like the attributes. [NewCRUD] makes a [Handler] of it.
type CRUD[T any] interface {
	// Read returns the present state; exists is false when there is none. Attributes that can not be read should be set to
	// the desired value.
	Read(c *Context, desired T) (current T, exists bool, err error)
	// Create makes the thing.
	Create(c *Context, desired T) error
	// Update changes it; diff holds what differs.
	Update(c *Context, current, desired T, diff model.Diff) error
	// Delete removes it.
	Delete(c *Context, current T) error
}

// NewCRUD makes a handler of a [CRUD]. If h also implements Reload(*Context, T) error or Facts(*Context, T) ([]model.Fact,
// error), the handler has these powers too.
func NewCRUD[T any](h CRUD[T]) Handler { return &crudHandler[T]{h: h} }

type crudHandler[T any] struct{ h CRUD[T] }

// crudState is handed from Read to Change.
type crudState[T any] struct{ current, desired T }

func (h *crudHandler[T]) Read(c *Context, r *Resource) (Observed, error) {
	var s crudState[T]
	if err := r.Decode(&s.desired); err != nil {
		return Observed{}, err
	}
	current, exists, err := h.h.Read(c, s.desired)
	if err != nil {
		return Observed{}, err
	}
	s.current = current
	return Observed{Exists: exists, Private: s}, nil
}

func (h *crudHandler[T]) Diff(_ *Context, _ *Resource, o Observed) (model.Diff, error) {
	s, ok := o.Private.(crudState[T])
	if !ok {
		return nil, errors.New("the observed state is of another handler")
	}
	if !o.Exists {
		var none T
		return structDiff(none, s.desired)
	}
	return structDiff(s.current, s.desired)
}

func (h *crudHandler[T]) Change(c *Context, _ *Resource, action model.Change, o Observed, diff model.Diff) error {
	s, ok := o.Private.(crudState[T])
	if !ok {
		return errors.New("the observed state is of another handler")
	}
	switch action {
	case model.ChangeCreated:
		return h.h.Create(c, s.desired)
	case model.ChangePurged:
		return h.h.Delete(c, s.current)
	case model.ChangeUpdated:
		return h.h.Update(c, s.current, s.desired, diff)
	case model.ChangeNone:
	}
	return nil
}

func (h *crudHandler[T]) Reload(c *Context, r *Resource) error {
	reloader, ok := h.h.(interface {
		Reload(c *Context, desired T) error
	})
	if !ok {
		return nil
	}
	var desired T
	if err := r.Decode(&desired); err != nil {
		return err
	}
	return reloader.Reload(c, desired)
}

func (h *crudHandler[T]) Facts(c *Context, r *Resource) ([]model.Fact, error) {
	reader, ok := h.h.(interface {
		Facts(c *Context, desired T) ([]model.Fact, error)
	})
	if !ok {
		return nil, nil
	}
	var desired T
	if err := r.Decode(&desired); err != nil {
		return nil, err
	}
	return reader.Facts(c, desired)
}

// structDiff compares two structs by the JSON of their fields.
func structDiff(current, desired any) (model.Diff, error) {
	from, err := fields(current)
	if err != nil {
		return nil, err
	}
	to, err := fields(desired)
	if err != nil {
		return nil, err
	}
	diff := model.Diff{}
	for name, want := range to {
		if name == "purged" {
			continue
		}
		if have := from[name]; string(have) != string(want) {
			diff[name] = model.AttributeChange{Current: cutValue(have), Desired: want}
		}
	}
	return diff, nil
}

var (
	_ Differ     = (*crudHandler[struct{}])(nil)
	_ Reloader   = (*crudHandler[struct{}])(nil)
	_ FactReader = (*crudHandler[struct{}])(nil)
	_ Executor   = HandlerExecutor{}
)

func isNotFound(err error) bool { return errors.Is(err, model.ErrNotFound) }

var errNotObject = fmt.Errorf("a CRUD handler's type must encode to a JSON object: %w", model.ErrInvalid)
