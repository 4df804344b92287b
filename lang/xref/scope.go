package xref

import (
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
)

type scopeKind uint8

const (
	scopeBlock scopeKind = iota
	scopeElement
	scopeImplementation
	scopeFile
	scopeTypedef
)

// Scope is a stretch of a file with the names that statements and expressions in it see.
type Scope struct {
	parent *Scope
	kind   scopeKind
	file   *File
	span   syntax.Span
	vars   map[string]*Symbol
	self   *Symbol // of an implementation or a typedef

	typedef *Symbol // whose constraint this is
}

// resolve finds the variable or the attribute of self that a name without a namespace stands for.
func (sc *Scope) resolve(name string) *Symbol {
	for s := sc; s != nil; s = s.parent {
		if v := s.vars[name]; v != nil {
			return v
		}
		switch s.kind {
		case scopeTypedef:
			switch {
			case name == "self":
				return s.self
			case s.typedef != nil && name == s.typedef.Name:
				return s.typedef // the value has the name of the type as well
			}
			return nil
		case scopeImplementation:
			if name == "self" {
				return s.self
			}
			return sc.member(s, name)
		default:
		}
	}
	return nil
}

// instance is the entity of the implementation around the scope, when that is where a name is looked for: no block within has it.
func (sc *Scope) instance(name string) *Symbol {
	for s := sc; s != nil; s = s.parent {
		if s.vars[name] != nil {
			return nil
		}
		if s.kind == scopeImplementation {
			return s.self.typ.Symbol
		}
	}
	return nil
}

// member finds an attribute of the instance that an implementation runs for, or a variable of the file.
func (sc *Scope) member(s *Scope, name string) *Symbol {
	e := s.self.typ.Symbol
	if e != nil {
		if a := e.Attr(name); a != nil {
			return a
		}
	}
	if v := s.file.scope.vars[name]; v != nil {
		return v
	}
	// The instance may be of an entity below the one that the implementation is for.
	var found *Symbol
	if e != nil {
		e.descendants(func(d *Symbol) {
			if found == nil {
				found = d.own[name]
			}
		})
	}
	return found
}

// Names are the variables and attributes that need no prefix in the scope, the innermost first; of those of one name the first counts.
func (sc *Scope) Names() []*Symbol {
	var out []*Symbol
	seen := map[string]bool{}
	add := func(s *Symbol) {
		if !seen[s.Name] {
			seen[s.Name] = true
			out = append(out, s)
		}
	}
	sorted := func(vars map[string]*Symbol) {
		names := make([]*Symbol, 0, len(vars))
		for _, v := range vars {
			names = append(names, v)
		}
		slices.SortFunc(names, func(a, b *Symbol) int { return strings.Compare(a.Name, b.Name) })
		for _, v := range names {
			add(v)
		}
	}
	for s := sc; s != nil; s = s.parent {
		sorted(s.vars)
		if s.kind == scopeTypedef || s.kind == scopeImplementation {
			add(s.self)
		}
		if s.kind == scopeTypedef {
			break
		}
		if s.kind == scopeImplementation {
			if e := s.self.typ.Symbol; e != nil {
				for _, a := range e.Attrs() {
					add(a)
				}
			}
			sorted(s.file.scope.vars)
		}
	}
	return out
}

// Resolve finds the variable or attribute that a name in the scope stands for: name or ns::name; nil when there is none.
func (sc *Scope) Resolve(name string) *Symbol {
	space, base := cut(name)
	if space == "" {
		return sc.resolve(name)
	}
	ns := namespaceOf(sc.file.visible[space])
	if ns == nil || ns.File == nil {
		return nil
	}
	return ns.File.scope.vars[base]
}

// Path is the type of what a reference stands for: name.attr.attr or ns::name.attr.
func (x *Index) Path(sc *Scope, path string) Type {
	x.mu.Lock()
	defer x.mu.Unlock()
	name, rest, more := strings.Cut(path, ".")
	s := sc.Resolve(strings.TrimSpace(name))
	if s == nil {
		return Type{}
	}
	t := x.typeOf(s)
	for more {
		name, rest, more = strings.Cut(rest, ".")
		e := t.Entity()
		if e == nil {
			return Type{}
		}
		a := e.Attr(strings.TrimSpace(name))
		if a == nil {
			return Type{}
		}
		t = x.typeOf(a)
	}
	return t
}
