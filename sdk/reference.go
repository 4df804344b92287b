package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/intendant/intendant/model"
)

// Resolver finds the value of a reference when a resource is deployed. args are its arguments by name, with references
// among them resolved. The value encodes to JSON; it is kept out of logs and diffs.
type Resolver func(c *Context, args map[string]json.RawMessage) (any, error)

// ReferenceExecutor is implemented by an [Executor] that resolves the references of its resources itself.
type ReferenceExecutor interface {
	Executor
	ResolvesReferences()
}

// maxReferenceDepth bounds references to references.
const maxReferenceDepth = 100

// hidden stands in diffs for what came of a reference.
const hidden = "(hidden)"

// reference is a reference, or a mutator, as the exporter writes it.
type reference struct {
	ID   string     `json:"id"`
	Type string     `json:"type"`
	Args []argument `json:"args"`
}

// argument is one argument: a literal or JSON value, or the id of a reference or of a resource.
type argument struct {
	Type  string          `json:"type"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	ID    string          `json:"id"`
}

// ReferenceArgument is an argument of a reference, with references in it resolved.
type ReferenceArgument struct {
	// Type is literal, json, python_type or resource, as the exporter wrote it, or literal for the value of a reference.
	Type  string          `json:"type"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// ReferenceLookup resolves a reference of a type that the registry itself does not know. It returns [model.ErrNotFound] when it
// does not know the type either.
type ReferenceLookup func(c *Context, referenceType string, args []ReferenceArgument) (any, error)

// ResolveFallback adds a lookup for types of references without a [Resolver].
func (r *Registry) ResolveFallback(l ReferenceLookup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resolve = append(r.resolve, l)
}

// Resolve registers how references of a type, such as std::Environment, are resolved. It fails with [model.ErrConflict]
// when the type is known.
func (r *Registry) Resolve(referenceType string, f Resolver) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.resolvers[referenceType]; ok {
		return fmt.Errorf("registering references of type %s: the type is known: %w", referenceType, model.ErrConflict)
	}
	r.resolvers[referenceType] = f
	return nil
}

// WithReferences returns the resource with the values of its references in their places. A resource without references is
// returned as it is. It fails with an [Instruction] of outcome unavailable when the agent does not know a type of reference.
func (r *Registry) WithReferences(c *Context, res *Resource) (*Resource, error) {
	if len(res.Attributes["mutators"]) == 0 {
		return res, nil
	}
	var fields struct {
		References []reference `json:"references"`
		Mutators   []reference `json:"mutators"`
	}
	if err := res.Decode(&fields); err != nil {
		return nil, err
	}
	if len(fields.Mutators) == 0 {
		return res, nil
	}
	v := resolution{registry: r, c: c, byID: map[string]*reference{}, values: map[string]json.RawMessage{}}
	for i := range fields.References {
		v.byID[fields.References[i].ID] = &fields.References[i]
	}
	out := &Resource{ID: res.ID, Parts: res.Parts, Version: res.Version, Attributes: map[string]json.RawMessage{}, resolved: map[string]bool{}}
	maps.Copy(out.Attributes, res.Attributes)
	for _, m := range fields.Mutators {
		if err := v.apply(out, m); err != nil {
			return nil, err
		}
	}
	delete(out.Attributes, "references")
	delete(out.Attributes, "mutators")
	raw, err := json.Marshal(out.Attributes)
	if err != nil {
		return nil, fmt.Errorf("attributes of %s: %w", res.ID, err)
	}
	out.raw = raw
	return out, nil
}

// Resolved tells whether an attribute, or a part of it, came of a reference.
func (r *Resource) Resolved(name string) bool { return r.resolved[name] }

// resolution resolves the references of one resource.
type resolution struct {
	registry *Registry
	c        *Context
	byID     map[string]*reference
	values   map[string]json.RawMessage
}

// apply carries out a mutator.
func (v *resolution) apply(res *Resource, m reference) error {
	if m.Type != "core::Replace" {
		return &Instruction{
			Outcome: model.OutcomeUnavailable, Code: CodeNoHandler, Retry: model.RetryPerson,
			Err: fmt.Errorf("this agent does not know the mutator %s", m.Type),
		}
	}
	var value json.RawMessage
	var destination string
	for _, a := range m.Args {
		switch a.Name {
		case "value":
			x, err := v.argument(a, 0)
			if err != nil {
				return err
			}
			value = x
		case "destination":
			if err := json.Unmarshal(a.Value, &destination); err != nil {
				return fmt.Errorf("destination of a reference: %w: %w", model.ErrInvalid, err)
			}
		}
	}
	steps, err := parsePath(destination)
	if err != nil {
		return err
	}
	name := steps[0].key
	raw, err := replaceAt(res.Attributes[name], steps[1:], value)
	if err != nil {
		return fmt.Errorf("destination %q of a reference: %w", destination, err)
	}
	res.Attributes[name] = raw
	res.resolved[name] = true
	v.c.hide(name, value)
	return nil
}

// value resolves a reference, once.
func (v *resolution) value(id string, depth int) (json.RawMessage, error) {
	if raw, ok := v.values[id]; ok {
		return raw, nil
	}
	ref := v.byID[id]
	if ref == nil {
		return nil, fmt.Errorf("reference %s is not part of the resource: %w", id, model.ErrInvalid)
	}
	if depth > maxReferenceDepth {
		return nil, fmt.Errorf("reference %s refers to itself: %w", id, model.ErrInvalid)
	}
	args := make(map[string]json.RawMessage, len(ref.Args))
	for _, a := range ref.Args {
		raw, err := v.argument(a, depth+1)
		if err != nil {
			return nil, err
		}
		args[a.Name] = raw
	}
	value, err := v.resolve(ref, args)
	if _, ok := errors.AsType[*Instruction](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("resolving a reference of type %s: %w", ref.Type, err)
	}
	raw, err := encode(value)
	if err != nil {
		return nil, fmt.Errorf("resolving a reference of type %s: %w", ref.Type, err)
	}
	v.values[id] = raw
	return raw, nil
}

// resolve asks whoever knows the type of a reference for its value.
func (v *resolution) resolve(ref *reference, args map[string]json.RawMessage) (any, error) {
	v.registry.mu.RLock()
	resolve, fallback := v.registry.resolvers[ref.Type], v.registry.resolve
	v.registry.mu.RUnlock()
	if resolve != nil {
		return resolve(v.c, args)
	}
	list := make([]ReferenceArgument, 0, len(ref.Args))
	for _, a := range ref.Args {
		kind := a.Type
		if kind == "reference" {
			kind = "literal"
		}
		list = append(list, ReferenceArgument{Type: kind, Name: a.Name, Value: args[a.Name]})
	}
	for _, l := range fallback {
		value, err := l(v.c, ref.Type, list)
		if !isNotFound(err) {
			return value, err
		}
	}
	return nil, &Instruction{
		Outcome: model.OutcomeUnavailable, Code: CodeNoHandler, Retry: model.RetryPerson,
		Err: fmt.Errorf("this agent can not resolve references of type %s", ref.Type),
	}
}

func (v *resolution) argument(a argument, depth int) (json.RawMessage, error) {
	switch a.Type {
	case "literal", "json", "python_type":
		return a.Value, nil
	case "resource":
		return json.Marshal(a.ID)
	case "reference":
		return v.value(a.ID, depth)
	}
	return nil, fmt.Errorf("argument %s of a reference is of type %q, which this agent does not know: %w", a.Name, a.Type, model.ErrInvalid)
}

// step is one step of a destination: a key of an object, or an index of a list.
type step struct {
	key   string
	index int
	list  bool
}

// parsePath reads a destination such as environment.'HOME' or names[2].
func parsePath(path string) ([]step, error) {
	bad := fmt.Errorf("destination %q of a reference: %w", path, model.ErrInvalid)
	rest := strings.TrimPrefix(path, "$.")
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return nil, bad
	}
	steps := []step{{key: rest[:end]}}
	for rest = rest[end:]; rest != ""; {
		switch {
		case rest[0] == '[':
			inside, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(inside)
			if !ok || err != nil || n < 0 {
				return nil, bad
			}
			steps = append(steps, step{index: n, list: true})
			rest = after
		case strings.HasPrefix(rest, ".'"):
			key, after, ok := quotedKey(rest[2:])
			if !ok {
				return nil, bad
			}
			steps = append(steps, step{key: key})
			rest = after
		default:
			return nil, bad
		}
	}
	return steps, nil
}

// quotedKey reads a key up to its closing quote; a quote in it is escaped by a backslash.
func quotedKey(s string) (key, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '\'':
			i++
			b.WriteByte('\'')
		case s[i] == '\'':
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// replaceAt returns raw with a value at a place in it. The place must exist.
func replaceAt(raw json.RawMessage, steps []step, value json.RawMessage) (json.RawMessage, error) {
	if len(steps) == 0 {
		return value, nil
	}
	if steps[0].list {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil || steps[0].index >= len(list) {
			return nil, errors.Join(fmt.Errorf("there is no item %d: %w", steps[0].index, model.ErrInvalid), err)
		}
		item, err := replaceAt(list[steps[0].index], steps[1:], value)
		if err != nil {
			return nil, err
		}
		list[steps[0].index] = item
		return json.Marshal(list)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("there is no object with a key %q: %w: %w", steps[0].key, model.ErrInvalid, err)
	}
	field, err := replaceAt(object[steps[0].key], steps[1:], value)
	if err != nil {
		return nil, err
	}
	object[steps[0].key] = field
	return json.Marshal(object)
}
