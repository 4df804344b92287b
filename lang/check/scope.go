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
			r.Kind, r.Missing, r.Scope = MissingRef, f.Msg, s
			return r
		}
		return s.variable(target, r, name[i+2:])
	}
	hops := 0
	for sc := s; sc != nil; sc = sc.parent {
		switch sc.kind {
		case scopeFile:
			return s.variable(sc.ns, r, name)
		case scopeTypedef:
			r.Kind, r.Missing = MissingRef, "Could not resolve the value "+name+" in this static context"
			return r
		default: // names of their own, below
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
			r = s.variable(sc.ns, r, name)
			r.Kind, r.NS, r.Scope = InstRef, sc.ns, s
			return r
		}
	}
	r.Kind, r.Missing, r.Scope = MissingRef, "variable "+name+" not found", s
	return r
}

// Hint asks whether another variable was meant by a name that stands for nothing; empty when no name is close.
func (s *Scope) Hint(name string) string {
	space, base := splitName(name)
	var names []string
	add := func(ns *Namespace) {
		for n := range ns.vars {
			names = append(names, n)
		}
	}
	if space != "" {
		target, f := s.namespace().see(space)
		if f != nil {
			return f.Hint
		}
		add(target)
		return DidYouMean(space+"::", base, names)
	}
	for sc := s; sc != nil; sc = sc.parent {
		for n := range sc.names {
			names = append(names, n)
		}
		if sc.kind == scopeFile || sc.kind == scopeImplementation {
			add(sc.ns)
			break
		}
	}
	if name == "self" {
		return "self is known in implementations only"
	}
	return DidYouMean("", base, names)
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

// variable is the reference to a variable of a file.
func (s *Scope) variable(ns *Namespace, r Ref, name string) Ref {
	i, ok := ns.vars[name]
	if !ok || ns.ID < 0 {
		r.Kind, r.Index, r.Missing, r.Scope = MissingRef, -1, "variable "+name+" not found", s
		return r
	}
	r.Kind, r.NS, r.Index = FileRef, ns, i
	return r
}
