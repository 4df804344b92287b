package sdk

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/intendant/intendant/model"
)

// Lookup finds who executes tasks of a type that the registry itself does not know. It returns [model.ErrNotFound] when
// nobody does, or an error that says why the code for it can not be had. It may be called from several goroutines.
type Lookup func(ctx context.Context, task model.Task) (Executor, error)

// Registry says who handles which type of resource. It may be used from several goroutines.
type Registry struct {
	// mu guards all below.
	mu        sync.RWMutex
	executors map[string]Executor
	preferred []Lookup
	fallback  []Lookup
	resolvers map[string]Resolver
	resolve   []ReferenceLookup
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{executors: map[string]Executor{}, resolvers: map[string]Resolver{}}
}

// Handle registers a handler for a type, such as std::File. It fails with [model.ErrConflict] when the type has one.
func (r *Registry) Handle(resourceType string, h Handler) error {
	return r.Execute(resourceType, HandlerExecutor{Handler: h})
}

// Execute registers an executor for a type. It fails with [model.ErrConflict] when the type has one.
func (r *Registry) Execute(resourceType string, e Executor) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.executors[resourceType]; ok {
		return fmt.Errorf("registering a handler for %s: the type has one: %w", resourceType, model.ErrConflict)
	}
	r.executors[resourceType] = e
	return nil
}

// Fallback adds a lookup for types without a registered handler. Lookups are asked in the order in which they were added.
func (r *Registry) Fallback(l Lookup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fallback = append(r.fallback, l)
}

// Prefer adds a lookup that is asked before the registry's own handlers, for code that replaces them. Lookups are asked in the
// order in which they were added.
func (r *Registry) Prefer(l Lookup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.preferred = append(r.preferred, l)
}

// Types lists the registered types in alphabetical order.
func (r *Registry) Types() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	types := make([]string, 0, len(r.executors))
	for t := range r.executors {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

// Find returns who executes a task. It fails with an [Instruction] of outcome unavailable when nobody does.
func (r *Registry) Find(ctx context.Context, task model.Task) (Executor, error) {
	resourceType := task.Intent.Resource.Parts().Type
	r.mu.RLock()
	e, ok := r.executors[resourceType]
	preferred, fallback := r.preferred, r.fallback
	r.mu.RUnlock()
	found, err := ask(ctx, preferred, task)
	if found != nil || err != nil {
		return found, err
	}
	if ok {
		return e, nil
	}
	found, err = ask(ctx, fallback, task)
	if found != nil || err != nil {
		return found, err
	}
	return nil, &Instruction{
		Outcome: model.OutcomeUnavailable, Code: CodeNoHandler, Retry: model.RetryPerson,
		Err: fmt.Errorf("this agent has no handler for %s", resourceType),
	}
}

// ask asks lookups until one has found somebody or fails. With neither, both results are nil.
func ask(ctx context.Context, lookups []Lookup, task model.Task) (Executor, error) {
	for _, l := range lookups {
		e, err := l(ctx, task)
		switch {
		case err == nil:
			return e, nil
		case isNotFound(err):
			continue
		default:
			return nil, &Instruction{
				Outcome: model.OutcomeUnavailable, Code: CodeNoHandler,
				Err: fmt.Errorf("loading the handler for %s: %w", task.Intent.Resource.Parts().Type, err),
			}
		}
	}
	return nil, nil //nolint:nilnil // nobody is an answer of its own; the caller goes on
}
