package xref

import (
	"slices"
	"strconv"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
)

// Kind is what a [Symbol] is.
type Kind uint8

// The kinds of symbols.
const (
	Namespace Kind = iota
	Alias          // of a namespace, by import … as
	Entity
	Attribute
	Relation // one end of a relation
	Typedef
	Implementation
	PluginFunc
	Variable // of a file or a block
	LoopVariable
	Self
	Primitive
)

var kindNames = [...]string{
	"namespace", "alias", "entity", "attribute", "relation", "typedef", "implementation", "plugin", "variable", "loop variable",
	"instance", "type",
}

// String is the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Symbol is something that has a name.
type Symbol struct {
	Kind Kind
	// Name is the name as declared, without a namespace; that of a namespace is whole.
	Name string
	// File is where the symbol is declared; nil for what is built in and for plugins. A namespace has the file that fills it.
	File *File
	// Decl is the stretch of the name in the declaration, Whole that of the statement around it.
	Decl, Whole syntax.Span
	// Owner is the entity of an attribute or of one end of a relation; the namespace of an alias.
	Owner *Symbol
	// Plugin is set for plugins.
	Plugin *Plugin

	node   syntax.Node // the declaration
	space  *File       // in which names of the declaration are resolved
	scope  *Scope      // of a variable
	values []valueOf   // what is assigned to a variable, or iterated over
	elem   bool        // a loop variable is an element of its value

	parents, children []*Symbol
	own               map[string]*Symbol
	order             []*Symbol // own in the order of declaration
	inverse           *Symbol   // the other end of a relation
	low, high         int       // of a relation
	typ               Type
	state             uint8 // of typ: 0 unknown, 1 being found out, 2 known
}

type valueOf struct {
	expr  syntax.Expr
	scope *Scope
}

// FullName is the name with its namespace or entity.
func (s *Symbol) FullName() string {
	switch s.Kind {
	case Attribute, Relation:
		return s.Owner.FullName() + "." + s.Name
	case Entity, Typedef, Implementation:
		if s.File != nil {
			return s.File.Namespace + "::" + s.Name
		}
		return "std::" + s.Name
	case PluginFunc:
		return s.Plugin.Name
	default:
		return s.Name
	}
}

// Parents are the parents of an entity, Children the entities that name it as one.
func (s *Symbol) Parents() []*Symbol { return s.parents }

// Children are the entities that name this one as a parent.
func (s *Symbol) Children() []*Symbol { return s.children }

// Own are the attributes and relations that an entity declares itself, in source order.
func (s *Symbol) Own() []*Symbol { return s.order }

// Inverse is the other end of a relation, nil when there is none.
func (s *Symbol) Inverse() *Symbol { return s.inverse }

// Attr is the attribute or relation of an entity by its name, inherited ones included; nil when there is none.
func (s *Symbol) Attr(name string) *Symbol {
	var found *Symbol
	s.ancestry(func(e *Symbol) bool {
		found = e.own[name]
		return found == nil
	})
	return found
}

// Attrs are all attributes and relations of an entity, its own first. Of those of one name the first counts.
func (s *Symbol) Attrs() []*Symbol {
	var out []*Symbol
	seen := map[string]bool{}
	s.ancestry(func(e *Symbol) bool {
		for _, a := range e.order {
			if !seen[a.Name] {
				seen[a.Name] = true
				out = append(out, a)
			}
		}
		return true
	})
	return out
}

// IsA reports whether an entity is another one or descends from it.
func (s *Symbol) IsA(o *Symbol) bool {
	found := false
	s.ancestry(func(e *Symbol) bool {
		found = e == o
		return !found
	})
	return found
}

// ancestry visits the entity and its ancestors, each once, until visit returns false: left-most parents first.
func (s *Symbol) ancestry(visit func(*Symbol) bool) {
	seen := map[*Symbol]bool{}
	stack := []*Symbol{s}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[e] {
			continue
		}
		seen[e] = true
		if !visit(e) {
			return
		}
		for _, v := range slices.Backward(e.parents) {
			stack = append(stack, v)
		}
	}
}

// descendants visits the entities below this one.
func (s *Symbol) descendants(visit func(*Symbol)) {
	seen := map[*Symbol]bool{s: true}
	stack := []*Symbol{s}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, c := range e.children {
			if !seen[c] {
				seen[c] = true
				visit(c)
				stack = append(stack, c)
			}
		}
	}
}

// Node is the declaration: an *syntax.Entity, *syntax.Attribute, *syntax.Relation and so on; nil for what is built in.
func (s *Symbol) Node() syntax.Node { return s.node }

// Doc is what the source says about the symbol: its docstring, the text about it in the docstring of its entity, or the
// comment in front of it.
func (s *Symbol) Doc() string {
	switch n := s.node.(type) {
	case *syntax.Entity:
		if n.Doc != nil {
			return docText(n.Doc)
		}
	case *syntax.Implementation:
		if n.Doc != nil {
			return docText(n.Doc)
		}
	case *syntax.Typedef:
		if n.Doc != nil {
			return docText(n.Doc)
		}
	case *syntax.Relation:
		if n.Doc != nil {
			return docText(n.Doc)
		}
		if doc := s.fieldDoc(); doc != "" {
			return doc
		}
	case *syntax.Attribute:
		if doc := s.fieldDoc(); doc != "" {
			return doc
		}
	}
	switch {
	case s.Kind == PluginFunc:
		return s.Plugin.Doc
	case s.Kind == Namespace && s.File != nil && s.File.Tree.Doc != nil:
		return docText(s.File.Tree.Doc)
	case s.File != nil && s.Kind != Namespace && s.Whole.Start.Valid():
		return leadingComment(s.File.Tree, s.Whole.Start)
	}
	return ""
}

// fieldDoc is the text of :attr name: or :rel name: in the docstring of the entity.
func (s *Symbol) fieldDoc() string {
	e, ok := s.Owner.node.(*syntax.Entity)
	if !ok || e.Doc == nil {
		return ""
	}
	var out []string
	within := false
	for line := range strings.SplitSeq(docText(e.Doc), "\n") {
		field, text, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), ":"), ":")
		words := strings.Fields(field)
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), ":") && found && len(words) > 0:
			within = len(words) > 1 && words[len(words)-1] == s.Name
			if within {
				out = append(out, strings.TrimSpace(text))
			}
		case within && strings.TrimSpace(line) == "":
			within = false
		case within:
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "\n")
}

// docText is a docstring without the indentation of its lines.
func docText(l *syntax.Literal) string {
	text, ok := l.Value.(value.String)
	if !ok {
		return ""
	}
	return Dedent(string(text))
}

// Dedent takes away the indentation that all lines but the first share, and the empty lines around the text.
func Dedent(text string) string {
	lines := strings.Split(text, "\n")
	margin := -1
	for _, l := range lines[1:] {
		if strings.TrimSpace(l) != "" {
			if n := len(l) - len(strings.TrimLeft(l, " \t")); margin < 0 || n < margin {
				margin = n
			}
		}
	}
	lines[0] = strings.TrimLeft(lines[0], " \t")
	for i := range lines {
		if i > 0 {
			lines[i] = lines[i][min(max(margin, 0), len(lines[i])):]
		}
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// leadingComment is the text of the comments that stand on lines of their own directly in front of a place.
func leadingComment(f *syntax.File, at syntax.Pos) string {
	line := f.Line(at)
	var out []string
	for _, c := range slices.Backward(f.Comments) {
		if c.Pos > at {
			continue
		}
		start := c.Pos.Offset()
		for start > 0 && f.Src[start-1] != '\n' {
			start--
		}
		if f.Line(c.Pos) != line-1 || strings.TrimSpace(string(f.Src[start:c.Pos.Offset()])) != "" {
			break
		}
		out = append([]string{strings.TrimPrefix(strings.TrimPrefix(c.Text, "#"), " ")}, out...)
		line--
	}
	return strings.Join(out, "\n")
}

// Multiplicity is that of a relation as written: [1], [0:1], [1:].
func (s *Symbol) Multiplicity() string {
	switch {
	case s.high == syntax.Unbounded:
		return "[" + strconv.Itoa(s.low) + ":]"
	case s.low == s.high:
		return "[" + strconv.Itoa(s.low) + "]"
	default:
		return "[" + strconv.Itoa(s.low) + ":" + strconv.Itoa(s.high) + "]"
	}
}

// Mandatory reports whether instances must have a value for an attribute or a relation: it has neither a default nor may it
// be left out.
func (s *Symbol) Mandatory() bool {
	switch n := s.node.(type) {
	case *syntax.Attribute:
		return n.Default == nil
	case *syntax.Relation:
		return s.low > 0
	}
	return false
}

// Plugin is a function that models call.
type Plugin struct {
	*value.Plugin
	// Doc is its documentation.
	Doc string
	// File is the source file in the names of diagnostics, Line and Column the place of its name in it, counting from 1;
	// empty when there is none.
	File         string
	Line, Column int
}
