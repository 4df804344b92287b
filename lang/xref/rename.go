package xref

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/intendant/intendant/lang/syntax"
)

// RenameError says why a symbol can not be renamed.
type RenameError struct {
	// Message is for people.
	Message string
}

func (e *RenameError) Error() string { return e.Message }

func refuse(format string, args ...any) error { return &RenameError{fmt.Sprintf(format, args...)} }

// Place is a place as people write it: file:line:column.
func (f *File) Place(at syntax.Pos) string {
	return f.Tree.Location(syntax.Place{Span: syntax.Span{Start: at, End: at}})
}

// CanRename says why a symbol can not be renamed at all; nil when it can. fixed gives the reason why a file must not be
// changed, empty when it may be.
func (x *Index) CanRename(s *Symbol, fixed func(*File) string) error {
	switch s.Kind {
	case Namespace:
		return refuse("%s is a namespace: its name is that of its file or module", s.Name)
	case PluginFunc:
		return refuse("%s is a plugin: rename the function that defines it", s.Plugin.Name)
	case Self, Primitive:
		return refuse("%s is part of the language", s.Name)
	default:
	}
	for _, m := range x.Family(s) {
		if m.File == nil {
			return refuse("%s is part of the language", m.FullName())
		}
		if why := fixed(m.File); why != "" {
			return refuse("%s is declared in %s, %s", m.FullName(), m.File.Tree.Name, why)
		}
		if (s.Kind == Attribute || s.Kind == Relation) && m.Owner.dataclass() {
			return refuse("%s is a field of a dataclass: its name is also that of a field of a Python class", m.FullName())
		}
	}
	return nil
}

// dataclass reports whether an entity stands for a Python class.
func (s *Symbol) dataclass() bool {
	found := false
	s.ancestry(func(e *Symbol) bool {
		found = e.Name == "Dataclass" && e.File != nil && e.File.Namespace == "std"
		return !found
	})
	return found && s.Name != "Dataclass"
}

// Rename lists the stretches of text that hold the name of a symbol, by file, so that putting another name in their place
// changes nothing else: every name of the project stands for the same as before. The error is a [*RenameError] when that is
// impossible.
func (x *Index) Rename(ctx context.Context, s *Symbol, name string, fixed func(*File) string) (map[*File][]syntax.Span, error) {
	if err := x.CanRename(s, fixed); err != nil {
		return nil, err
	}
	if err := validName(s, name); err != nil {
		return nil, err
	}
	if name == s.Name {
		return nil, nil //nolint:nilnil // nothing to change is no error
	}
	if err := x.taken(s, name); err != nil {
		return nil, err
	}
	refs, err := x.References(ctx, s)
	if err != nil {
		return nil, err
	}
	edits := map[*File][]syntax.Span{}
	for _, r := range refs {
		if r.Use.Hidden {
			return nil, refuse("%s is written with escapes in the string at %s", s.Name, r.File.Place(r.Use.Span.Start))
		}
		if also := r.Use.Also; also != nil {
			return nil, refuse("%s at %s may stand for the %s or the %s: it depends on the instance",
				s.Name, r.File.Place(r.Use.Span.Start), describe(r.Use.Symbol), describe(also))
		}
		if why := fixed(r.File); why != "" {
			return nil, refuse("%s is used in %s, %s", s.FullName(), r.File.Tree.Name, why)
		}
		edits[r.File] = append(edits[r.File], r.Use.Span)
	}
	if err := x.unclear(ctx, s, fixed, edits); err != nil {
		return nil, err
	}
	for f, spans := range edits {
		slices.SortFunc(spans, func(a, b syntax.Span) int { return cmp.Compare(a.Start, b.Start) })
		edits[f] = slices.Compact(spans)
	}
	return edits, x.verify(ctx, name, edits)
}

func validName(s *Symbol, name string) error {
	kind := syntax.KindOfName(name)
	switch {
	case kind == syntax.NoName && slices.Contains(syntax.Keywords(), name):
		return refuse("%s is a keyword", name)
	case kind == syntax.NoName:
		return refuse("%q is not a name: names consist of letters, digits and _, and do not start with a digit", name)
	case s.Kind == Entity && kind != syntax.EntityName:
		return refuse("the name of an entity must start with a capital")
	case s.Kind != Entity && kind == syntax.EntityName:
		return refuse("the name of %s %s must not start with a capital", article(s.Kind), s.Kind)
	case name == "self":
		return refuse("self is the instance that an implementation runs for")
	case s.Kind == Typedef && primitives[name] != nil:
		return refuse("%s is a built-in type", name)
	}
	return nil
}

func article(k Kind) string {
	switch k {
	case Attribute, Alias, Implementation, Entity:
		return "an"
	default:
		return "a"
	}
}

// taken says what has the name already where the symbol is declared.
func (x *Index) taken(s *Symbol, name string) error {
	var other *Symbol
	switch s.Kind {
	case Entity, Typedef, Implementation:
		other = x.member(s.File.Namespace, name)
		if s.File.types[name] != nil {
			other = s.File.types[name]
		}
	case Alias:
		other = s.File.visible[name]
	case Attribute, Relation:
		for _, m := range x.Family(s) {
			for _, e := range append([]*Symbol{m.Owner}, below(m.Owner)...) {
				if a := e.Attr(name); a != nil {
					other = a
				}
			}
		}
	case Variable, LoopVariable:
		if s.scope != nil {
			other = s.scope.vars[name]
		}
	default:
	}
	if other == nil {
		return nil
	}
	if other.File == nil {
		return refuse("there is %s %s already", article(other.Kind), other.Kind.String()+" "+other.FullName())
	}
	return refuse("%s is already declared at %s", other.FullName(), other.File.Place(other.Decl.Start))
}

func below(e *Symbol) []*Symbol {
	var out []*Symbol
	e.descendants(func(d *Symbol) { out = append(out, d) })
	return out
}

// unclear deals with attributes of values of unknown type that have the name of the one that is renamed: they are taken for it
// when there is no other.
func (x *Index) unclear(ctx context.Context, s *Symbol, fixed func(*File) string, edits map[*File][]syntax.Span) error {
	if s.Kind != Attribute && s.Kind != Relation {
		return nil
	}
	several := len(x.families(s.Name)) != len(x.Family(s))
	for _, f := range x.files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("renaming: %w", err)
		}
		for _, m := range x.Missing(f) {
			if m.Name != s.Name || m.Of != nil || m.Variable != nil {
				continue
			}
			if several {
				return refuse("whether %s at %s is %s can not be told, since the type of the value is not known",
					m.Name, f.Place(m.Span.Start), s.FullName())
			}
			if why := fixed(f); why != "" {
				return refuse("%s is used in %s, %s", s.FullName(), f.Tree.Name, why)
			}
			edits[f] = append(edits[f], m.Span)
		}
	}
	return nil
}

// Apply gives the text of a file with another text at some stretches, which are sorted.
func Apply(src []byte, spans []syntax.Span, text string) []byte {
	out := make([]byte, 0, len(src)+len(spans)*len(text))
	from := 0
	for _, s := range spans {
		out = append(append(out, src[from:s.Start.Offset()]...), text...)
		from = s.End.Offset()
	}
	return append(out, src[from:]...)
}

// verify holds that after the edits every name stands for what it stood for.
func (x *Index) verify(ctx context.Context, name string, edits map[*File][]syntax.Span) error {
	sources := make([]Source, len(x.files))
	for i, f := range x.files {
		sources[i] = Source{f.Namespace, f.Tree}
		if spans := edits[f]; len(spans) > 0 {
			sources[i].Tree, _ = syntax.Parse(f.Tree.Name, Apply(f.Tree.Src, spans, name), syntax.Options{Resume: true})
		}
	}
	var plugins []Plugin
	for _, space := range x.plugins {
		for _, p := range space {
			plugins = append(plugins, *p.Plugin)
		}
	}
	y := New(sources, plugins)
	moved := func(f *File, at syntax.Pos) syntax.Pos {
		n := syntax.Pos(0)
		spans := edits[f]
		i, _ := slices.BinarySearchFunc(spans, at, func(s syntax.Span, at syntax.Pos) int { return cmp.Compare(s.Start, at) })
		for _, sp := range spans[:i] {
			n += syntax.Pos(len(name)) - (sp.End - sp.Start) // wraps around for shorter names, and back
		}
		return at + n
	}
	for i, f := range x.files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("renaming: %w", err)
		}
		before, after := x.Uses(f), y.Uses(y.files[i])
		for j := range before {
			u := before[j]
			if j >= len(after) || after[j].Span.Start != moved(f, u.Span.Start) {
				return refuse("%s at %s would stand for nothing", u.Symbol.Name, f.Place(u.Span.Start))
			}
			a, b := u.Symbol, after[j].Symbol
			if a.Kind != b.Kind || (a.File == nil) != (b.File == nil) || a.File != nil && (a.File.Tree.Name != b.File.Tree.Name ||
				a.Kind != Namespace && a.Kind != Self && moved(a.File, a.Decl.Start) != b.Decl.Start) {
				return refuse("%s at %s would stand for the %s", u.Symbol.Name, f.Place(u.Span.Start), describe(b))
			}
			if also := after[j].Also; also != nil && u.Also == nil {
				return refuse("%s at %s could stand for the %s as well", u.Symbol.Name, f.Place(u.Span.Start), describe(also))
			}
		}
		if extra := len(after) - len(before); extra > 0 && len(x.Missing(f))-len(y.Missing(y.files[i])) != extra {
			u := after[len(before)]
			return refuse("%s at %s would stand for the %s", u.Symbol.Name, y.files[i].Place(u.Span.Start), describe(u.Symbol))
		}
	}
	return nil
}

func describe(s *Symbol) string {
	if s.File == nil || !s.Decl.Start.Valid() {
		return s.Kind.String() + " " + s.FullName()
	}
	return s.Kind.String() + " declared at " + s.File.Place(s.Decl.Start)
}
