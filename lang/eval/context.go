package eval

import (
	"io"

	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/value"
)

var _ value.Context = (*callContext)(nil)

// Stdout takes what the plugin prints.
func (c *callContext) Stdout() io.Writer { return c.m.host.Stdout() }

// Namespace is the namespace in which the call is written.
func (c *callContext) Namespace() string {
	if ns := c.e.Scope.Namespace(); ns != nil {
		return ns.Full
	}
	return ""
}

// Location is the place of the call as file:line.
func (c *callContext) Location() string { return c.e.Where().FileLine() }

// ReadFile reads a file of a module.
func (c *callContext) ReadFile(dir, path string) ([]byte, error) {
	return c.m.host.ReadFile(c.Namespace(), dir, path)
}

// ListFiles lists the names of the files directly in a module's directory, sorted.
func (c *callContext) ListFiles(dir, path string) ([]string, error) {
	return c.m.host.ListFiles(c.Namespace(), dir, path)
}

// Lookup resolves a variable as the statement of the call would.
func (c *callContext) Lookup(name string) (value.Value, bool, error) {
	r := c.e.Scope.Resolve(name)
	if r.Kind == check.MissingRef {
		return nil, false, nil
	}
	v, val, f := c.m.lookup(&r, c.sc)
	if f != nil {
		return nil, false, nil //nolint:nilerr // the variable does not exist, which is what false says
	}
	if val != nil {
		return val, true, nil
	}
	if !v.done {
		owner := v.owner
		if owner == nil {
			return nil, true, &value.UnsetError{Instance: noInstance{}, Attribute: name, Waiter: v}
		}
		return nil, true, &value.UnsetError{Instance: owner, Attribute: name, Waiter: v}
	}
	val, f = v.get()
	if f != nil {
		return nil, true, &value.OptionalError{Instance: v.owner, Attribute: name}
	}
	return val, true, nil
}

// noInstance stands for the owner of a variable that belongs to no instance.
type noInstance struct {
	value.IsInstance
}

func (noInstance) TypeName() string                            { return "variable" }
func (noInstance) IsA(string) bool                             { return false }
func (noInstance) Attribute(string) (value.Value, bool, error) { return nil, false, nil }
func (noInstance) AttributeNames() []string                    { return nil }
func (noInstance) Serial() int                                 { return 0 }
func (noInstance) Places() []string                            { return nil }

// Plugin finds a plugin by qualified name.
func (c *callContext) Plugin(name string) (*value.Plugin, bool) { return c.m.host.Plugin(name) }

// Validate checks v against an entity or a typedef, given by its full name: as in the reference, the imports of the call's file
// do not count.
func (c *callContext) Validate(typeName string, v value.Value) (bool, error) {
	t, ok := c.m.prog.Symbols[typeName].(check.Type)
	if !ok {
		return false, nil
	}
	if f := c.m.validate(t, v); f != nil {
		return true, &faultError{f}
	}
	return true, nil
}

// Resource gives the id of the resource that the exporter would make of an instance.
func (c *callContext) Resource(i value.Instance) (string, bool, error) { return c.m.host.Resource(i) }

// Input reads an input of the compile.
func (c *callContext) Input(kind value.InputKind, name string) (string, bool) {
	return c.m.host.Input(kind, name)
}

// Await records that the compile needs an input that is not there yet.
func (c *callContext) Await(kind value.InputKind, name, resource string) *value.Unknown {
	return c.m.host.Await(kind, name, resource)
}

// AddFile puts content into the file storage of the exported version.
func (c *callContext) AddFile(content []byte) string { return c.m.host.AddFile(content) }

// Random returns n bytes that depend only on the compile's seed and on purpose.
func (c *callContext) Random(purpose string, n int) []byte { return c.m.host.Random(purpose, n) }

// Validator checks constants against types before a program runs, for [check.Input].
type Validator struct{ m *machine }

// NewValidator returns a validator whose constraints call plugins in the given host.
func NewValidator(h Host) *Validator {
	p := &check.Program{Symbols: map[string]check.Symbol{}}
	return &Validator{newMachine(p, Config{Host: h})}
}

// Validate checks a value against a type.
func (v *Validator) Validate(t check.Type, x value.Value) *check.Fault { return v.m.validate(t, x) }
