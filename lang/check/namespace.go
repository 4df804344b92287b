package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
)

// Namespace holds the types, the variables and the imports of one file.
type Namespace struct {
	// Name is the last part, Full the whole name.
	Name, Full string
	Parent     *Namespace
	// File is the name of the file; empty for a namespace without one.
	File string
	// ID numbers the namespaces that have a file, from 0 in load order; -1 for others.
	ID int

	children map[string]*Namespace
	types    map[string]Symbol
	// besides are names that the namespace would have if the project used them.
	besides []string
	visible map[string]*visible
	vars    map[string]int
}

type visible struct {
	ns       *Namespace
	imported *Loc // nil for what is visible without an import
}

func newRoot() *Namespace {
	return &Namespace{Name: "__root__", ID: -1, children: map[string]*Namespace{}, types: map[string]Symbol{}}
}

// child returns the namespace of the full name below the root, made if need be.
func (ns *Namespace) child(full string) *Namespace {
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
func (ns *Namespace) Find(full string) *Namespace { return ns.find(full) }

func (ns *Namespace) find(full string) *Namespace {
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
	f.Hint = ns.importHint(prefix, "")
	return nil, f
}

// importHint says what to do about a namespace that the file does not see, behind which name is looked for.
func (ns *Namespace) importHint(prefix, name string) string {
	names := make([]string, 0, len(ns.visible))
	for n := range ns.visible {
		names = append(names, n)
	}
	if name != "" {
		name = "::" + name
	}
	slices.Sort(names)
	for _, n := range names {
		if ns.visible[n].ns.Full == prefix {
			return prefix + " is imported as " + n + " here: write " + n + cmp.Or(name, "::...")
		}
	}
	if best := diag.Closest(prefix, names); best != "" {
		return "did you mean " + best + name + "? Otherwise add `import " + prefix + "` to the file"
	}
	return "add `import " + prefix + "` to the file"
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
			f.Hint = ns.importHint(prefix, base)
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
	f.Hint = ns.typeHint(name)
	return f
}

// foreign are the functions and types of Python that the language has by another name.
var foreign = map[string]string{
	"len":   "std::count counts the elements of a list, std::length the characters of a text",
	"range": "std::sequence gives a list of numbers",
	"str":   "a text is of the type string",
	"list":  "a list of texts is of the type string[], any list of the type list",
}

// typeHint asks whether a type was meant by a name: one that is close to it, or one of that very name elsewhere.
func (ns *Namespace) typeHint(name string) string {
	space, base := splitName(name)
	if space != "" {
		space += "::"
	}
	var candidates []string
	for n := ns; n != nil; n = n.Parent {
		for c := range n.types {
			candidates = append(candidates, c)
		}
		candidates = append(candidates, n.besides...)
		if space != "" {
			break
		}
	}
	if hint := foreign[name]; hint != "" {
		return hint
	}
	if space == "" {
		for c := range primitives {
			candidates = append(candidates, c)
		}
		var elsewhere []string
		for seen, v := range ns.visible {
			if _, ok := v.ns.types[base]; ok || slices.Contains(v.ns.besides, base) {
				elsewhere = append(elsewhere, seen+"::"+base)
			}
		}
		if len(elsewhere) > 0 {
			slices.Sort(elsewhere)
			return "did you mean " + strings.Join(elsewhere[:min(len(elsewhere), maxNear)], " or ") + "?"
		}
	}
	return DidYouMean(space, base, candidates)
}
