package xref

import "strings"

// Type is the type of a value as far as it is known. The zero Type is unknown.
type Type struct {
	// Symbol is the entity, typedef or primitive.
	Symbol *Symbol
	// List says that the value is a list of such, Optional that it may be null.
	List, Optional bool
}

// Entity is the entity of an instance; nil when the value is none, or a list.
func (t Type) Entity() *Symbol {
	if t.Symbol == nil || t.Symbol.Kind != Entity || t.List {
		return nil
	}
	return t.Symbol
}

// Known reports whether anything is known.
func (t Type) Known() bool { return t.Symbol != nil }

// String is the type as written in a model; any when it is unknown.
func (t Type) String() string {
	if t.Symbol == nil {
		return "any"
	}
	s := t.Symbol.Name
	if t.Symbol.Kind == Entity || t.Symbol.Kind == Typedef {
		s = t.Symbol.FullName()
	}
	if t.List {
		s += "[]"
	}
	if t.Optional {
		s += "?"
	}
	return s
}

// element is the type of the elements of a list.
func (t Type) element() Type {
	if !t.List {
		return Type{}
	}
	return Type{Symbol: t.Symbol}
}

// primitives are the built-in types.
var primitives = func() map[string]*Symbol {
	m := map[string]*Symbol{}
	for _, name := range []string{"string", "int", "float", "number", "bool", "list", "dict"} {
		m[name] = &Symbol{Kind: Primitive, Name: name}
	}
	return m
}()

// Primitives are the names of the built-in types.
func Primitives() []string {
	return []string{"bool", "dict", "float", "int", "list", "number", "string"}
}

func primitive(name string) Type { return Type{Symbol: primitives[name]} }

// Type is the type of the values of a symbol: of an attribute, of a variable, what a plugin returns. That of an entity and of a
// typedef is itself.
func (x *Index) Type(s *Symbol) Type {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.typeOf(s)
}

// maxDepth bounds how far types are followed from one variable to the next.
const maxDepth = 500

func (x *Index) typeOf(s *Symbol) Type {
	if s.state != 0 || x.depth > maxDepth {
		return s.typ
	}
	s.state = 1
	x.depth++
	t := x.findType(s)
	x.depth--
	s.typ, s.state = t, 2
	return t
}

func (x *Index) findType(s *Symbol) Type {
	switch s.Kind {
	case Entity, Typedef, Primitive:
		return Type{Symbol: s}
	case PluginFunc:
		if s.Plugin.Returns == "" {
			return Type{}
		}
		return x.signatureType(s.Plugin.Returns, s.space)
	case Variable, LoopVariable:
		for _, v := range s.values {
			t := x.expr(&walk{index: x, file: v.scope.file}, v.expr, v.scope, nil)
			if s.elem {
				t = t.element()
			}
			if t.Known() {
				return t
			}
		}
	default:
	}
	return s.typ
}

// signatureType resolves a type in the notation of a plugin's signature.
func (x *Index) signatureType(text string, f *File) Type {
	text = strings.TrimSpace(text)
	for alt := range strings.SplitSeq(text, "|") {
		if alt = strings.TrimSpace(alt); alt != "null" && alt != "None" {
			text = alt
			break
		}
	}
	t := Type{}
	if inner, ok := strings.CutSuffix(text, "?"); ok {
		text, t.Optional = inner, true
	}
	if inner, ok := strings.CutSuffix(text, "[]"); ok {
		text, t.List = inner, true
	}
	if p, ok := primitives[text]; ok {
		t.Symbol = p
		return t
	}
	if f == nil {
		return Type{}
	}
	s := f.lookup(text)
	if s == nil || s.Kind != Entity && s.Kind != Typedef {
		return Type{}
	}
	t.Symbol = s
	return t
}
