package lang

import (
	"errors"
	"io"
	"strings"

	"github.com/intendant/intendant/lang/eval"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/lang/value"
)

// builtinResources are the resource types of the embedded modules.
func builtinResources() []ResourceType {
	defs := std.Resources()
	out := make([]ResourceType, len(defs))
	for i, d := range defs {
		out[i] = ResourceType{Entity: d.Entity, ID: d.IDAttribute, Agent: d.AgentPath, Fields: d.Fields, Ignore: d.Ignored}
		if len(d.Computed) > 0 {
			out[i].Computed = make(map[string]func(value.Context, value.Instance) (value.Value, error), len(d.Computed))
			for name, f := range d.Computed {
				out[i].Computed[name] = f
			}
		}
	}
	return out
}

// exportContext is what the functions of [ResourceType.Computed] get to see: there is no call, so only the variables
// of files are there.
type exportContext struct {
	h    *host
	inst value.Instance
}

var _ value.ModelContext = exportContext{}

func (c exportContext) Stdout() io.Writer { return c.h.Stdout() }
func (c exportContext) Namespace() string { return module.Main }

// Lookup finds the variables of files: of the main file by their names, of others by qualified ones.
func (c exportContext) Lookup(name string) (value.Value, bool, error) {
	m := c.h.c.res.Model
	if m == nil {
		return nil, false, nil
	}
	space, last := module.Main, name
	if i := strings.LastIndex(name, "::"); i >= 0 {
		space, last = name[:i], name[i+2:]
	}
	v := m.Variable(space, last)
	return v, v != nil, nil
}

func (c exportContext) Location() string {
	if c.inst != nil {
		if places := c.inst.Places(); len(places) > 0 {
			return places[0]
		}
	}
	return ""
}

func (c exportContext) ReadFile(dir, path string) ([]byte, error) {
	return c.h.ReadFile(c.Namespace(), dir, path)
}

func (c exportContext) ListFiles(dir, path string) ([]string, error) {
	return c.h.ListFiles(c.Namespace(), dir, path)
}

func (c exportContext) Plugin(name string) (*value.Plugin, bool)        { return c.h.Plugin(name) }
func (c exportContext) Validate(string, value.Value) (bool, error)      { return false, nil }
func (c exportContext) Resource(i value.Instance) (string, bool, error) { return c.h.Resource(i) }

func (c exportContext) Input(kind value.InputKind, name string) (string, bool) {
	return c.h.Input(kind, name)
}

func (c exportContext) Await(kind value.InputKind, name, resource string) *value.Unknown {
	return c.h.Await(kind, name, resource)
}

func (c exportContext) AddFile(content []byte) string { return c.h.AddFile(content) }

func (c exportContext) Random(purpose string, n int) []byte { return c.h.Random(purpose, n) }

func (c exportContext) Type(name string) (value.TypeInfo, bool) {
	if c.h.c.res.Model == nil { // a plugin asks for the id of a resource while the model is being evaluated
		return eval.TypeNamed(c.h.c.bound, name)
	}
	return c.h.c.res.Model.Type(name)
}
func (c exportContext) TypeNames() []string   { return eval.TypeNames(c.h.c.bound) }
func (c exportContext) PluginNames() []string { return eval.PluginNames(c.h.c.bound) }

func (c exportContext) Instances(entity string) []value.Instance {
	if c.h.c.res.Model == nil {
		return nil
	}
	return c.h.c.res.Model.InstancesOf(entity)
}

// errOver says that something was asked for that only a running model can give.
var errOver = errors.New("the model does not run any more: this is possible in plugins only")

func (c exportContext) Construct(string, *value.Dict) (value.Instance, error) { return nil, errOver }

// Invoke calls a plugin with as many arguments as it has parameters: what the values of fields are made of does not need more.
func (c exportContext) Invoke(name string, args []value.Value, kwargs *value.Dict) (value.Value, error) {
	p, ok := c.h.Plugin(name)
	if !ok || kwargs != nil && kwargs.Len() > 0 || len(args) > len(p.Params) {
		return nil, errOver
	}
	bound := make([]value.Value, len(p.Params))
	copy(bound, args)
	for i := len(args); i < len(p.Params); i++ {
		if p.Params[i].Default == nil {
			return nil, errOver
		}
		bound[i] = p.Params[i].Default
	}
	return p.Call(c, bound)
}
