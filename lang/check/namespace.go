package check

import (
	"strings"

	"github.com/intendant/intendant/diag"
)

// Namespace holds the types, the variables and the imports of one file.
type Namespace struct {
	// Name is the last part, Full the whole name.
	Name, Full string
	Parent     *Namespace
	// Body is the top-level block; nil for a namespace without a file.
	Body *Block
	// File is the name of the file; empty for a namespace without one.
	File string
	// ID numbers the namespaces that have a file, from 0 in load order; -1 for others.
	ID int

	children map[string]*Namespace
	types    map[string]Symbol
	visible  map[string]*visible
	vars     map[string]int
}

type visible struct {
	ns       *Namespace
	imported *Loc // nil for what is visible without an import
}

func newRoot() *Namespace {
	return &Namespace{Name: "__root__", ID: -1, children: map[string]*Namespace{}, types: map[string]Symbol{}}
}

// child returns the namespace of the full name below the root, made if need be.
func (root *Namespace) child(full string) *Namespace {
	ns := root
	for part := range strings.SplitSeq(full, "::") {
		c := ns.children[part]
		if c == nil {
			name := part
			if ns.Parent != nil {
				name = ns.Full + "::" + part
			}
			c = &Namespace{
				Name: part, Full: name, Parent: ns, ID: -1,
				children: map[string]*Namespace{}, types: map[string]Symbol{}, visible: map[string]*visible{}, vars: map[string]int{},
			}
			c.visible[c.Full] = &visible{ns: c}
			ns.children[part] = c
		}
		ns = c
	}
	return ns
}

// Find returns the namespace of the full name below the root, nil when there is none.
func (root *Namespace) Find(full string) *Namespace { return root.find(full) }

func (root *Namespace) find(full string) *Namespace {
	ns := root
	for part := range strings.SplitSeq(full, "::") {
		if ns = ns.children[part]; ns == nil {
			return nil
		}
	}
	return ns
}

// define adds a symbol; a fault when the name is taken.
func (ns *Namespace) define(name string, s Symbol) *Fault {
	if old, ok := ns.types[name]; ok {
		f := New("DuplicateException", s.symbolLoc(), "%s", s.doubleDefined())
		f.Other, f.OtherMsg = old.symbolLoc(), "already defined here"
		return f
	}
	ns.types[name] = s
	return nil
}

// see resolves a namespace prefix as the file of ns writes it.
func (ns *Namespace) see(prefix string) (*Namespace, *Fault) {
	if v, ok := ns.visible[prefix]; ok {
		return v.ns, nil
	}
	f := New("NotFoundException", nil, "Namespace %s not found.\nTry importing it with `import %s`", prefix, prefix)
	f.Hint = "add `import " + prefix + "` to the file"
	return nil, f
}

// LookupType resolves the name of a type as the file of ns writes it: a [Prim] or a [Symbol].
func (ns *Namespace) LookupType(name string, at *Loc) (Type, Symbol, *Fault) {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		prefix, base := name[:i], name[i+2:]
		v, ok := ns.visible[prefix]
		if !ok {
			f := Located("MissingImportException", at,
				"could not find type %s in namespace %s.\nTry importing the module with `import %s`", name, ns.Full, prefix)
			if ns.File != "" {
				f.Msg += " in " + ns.File
			}
			f.Hint = "add `import " + prefix + "` to the file"
			return nil, nil, f
		}
		if s, ok := v.ns.types[base]; ok {
			t, _ := s.(Type)
			return t, s, nil
		}
		return nil, nil, notFound(name, v.ns, at)
	}
	if p, ok := primitives[name]; ok {
		return p, nil, nil
	}
	for n := ns; n != nil; n = n.Parent {
		if s, ok := n.types[name]; ok {
			t, _ := s.(Type)
			return t, s, nil
		}
	}
	return nil, nil, notFound(name, ns, at)
}

func notFound(name string, ns *Namespace, at *Loc) *Fault {
	f := Located("TypeNotFoundException", at, "could not find type %s in namespace %s", name, ns.Full)
	if near := ns.nearest(name); near != "" {
		f.Hint = "did you mean " + near + "?"
	}
	return f
}

// nearest is the visible name most like the given one, empty when none is close.
func (ns *Namespace) nearest(name string) string {
	_, base := splitName(name)
	var candidates []string
	for n := ns; n != nil; n = n.Parent {
		for c := range n.types {
			candidates = append(candidates, c)
		}
	}
	return diag.Closest(base, candidates)
}
