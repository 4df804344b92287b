package lang

import (
	"io"

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

// exportContext is what the functions of [ResourceType.Computed] get to see: there is no call, so names of the model do not
// resolve.
type exportContext struct {
	h    *host
	inst value.Instance
}

var _ value.Context = exportContext{}

func (c exportContext) Stdout() io.Writer { return c.h.Stdout() }
func (c exportContext) Namespace() string { return module.Main }

func (c exportContext) Location() string {
	if places := c.inst.Places(); len(places) > 0 {
		return places[0]
	}
	return ""
}

func (c exportContext) ReadFile(dir, path string) ([]byte, error) {
	return c.h.ReadFile(c.Namespace(), dir, path)
}

func (c exportContext) ListFiles(dir, path string) ([]string, error) {
	return c.h.ListFiles(c.Namespace(), dir, path)
}

func (c exportContext) Lookup(string) (value.Value, bool, error)        { return nil, false, nil }
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
