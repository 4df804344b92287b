package check

import (
	"strings"
)

type scopeKind uint8

const (
	scopeBlock scopeKind = iota
	scopeElement
	scopeImplementation
	scopeFile
	scopeTypedef
)

// Scope is the static counterpart of a scope at run time: the names that a statement sees.
type Scope struct {
	parent *Scope
	kind   scopeKind
	ns     *Namespace
	names  map[string]int
	bare   bool // has no counterpart at run time
}

// Resolve finds out what a name stands for. It fills Kind, Hops, Index, NS and Missing of the result.
func (s *Scope) Resolve(name string) Ref {
	r := Ref{Name: name, Index: -1}
	if i := strings.LastIndex(name, "::"); i >= 0 {
		ns := s.namespace()
		target, f := ns.see(name[:i])
		if f != nil {
			r.Kind, r.Missing = MissingRef, f.Msg
			return r
		}
		return target.variable(r, name[i+2:])
	}
	hops := 0
	for sc := s; sc != nil; sc = sc.parent {
		switch sc.kind {
		case scopeFile:
			return sc.ns.variable(r, name)
		case scopeTypedef:
			r.Kind, r.Missing = MissingRef, "Could not resolve the value "+name+" in this static context"
			return r
		}
		if !sc.bare {
			if i, ok := sc.names[name]; ok {
				r.Kind, r.Hops, r.Index = LocalRef, hops, i
				return r
			}
			hops++
		}
		if sc.kind == scopeImplementation {
			if name == "self" {
				r.Kind = SelfRef
				return r
			}
			r = sc.ns.variable(r, name)
			r.Kind, r.NS = InstRef, sc.ns
			return r
		}
	}
	r.Kind, r.Missing = MissingRef, "variable "+name+" not found"
	return r
}

func (s *Scope) namespace() *Namespace {
	for ; s != nil; s = s.parent {
		if s.ns != nil {
			return s.ns
		}
	}
	return nil
}

// Namespace is the namespace in which the code of the scope is written.
func (s *Scope) Namespace() *Namespace { return s.namespace() }

func (ns *Namespace) variable(r Ref, name string) Ref {
	i, ok := ns.vars[name]
	if !ok || ns.ID < 0 {
		r.Kind, r.Index, r.Missing = MissingRef, -1, "variable "+name+" not found"
		return r
	}
	r.Kind, r.NS, r.Index = FileRef, ns, i
	return r
}
