package lsp

import (
	"context"
	"fmt"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/lang/xref"
)

// hoverAt says what a name stands for.
func hoverAt(_ context.Context, r *request) (any, error) {
	c, err := r.cursor()
	if err != nil || c == nil || c.use == nil {
		return nil, err
	}
	at := r.enc.span(c.file.Tree, c.use.Span)
	return &hover{Contents: markup{"markdown", describe(c.index, c.use.Symbol)}, Range: &at}, nil
}

// describe is a symbol in Markdown: its declaration, and what the source says about it.
func describe(x *xref.Index, s *xref.Symbol) string {
	text := "```inmanta\n" + declaration(x, s) + "\n```"
	if doc := s.Doc(); doc != "" {
		text += "\n\n" + doc
	}
	if s.Kind == xref.PluginFunc && s.Plugin.Deprecated != "" {
		text += "\n\n**Deprecated**: use " + s.Plugin.Deprecated + "."
	}
	if s.Kind == xref.Attribute || s.Kind == xref.Relation {
		text += "\n\nof `" + s.Owner.FullName() + "`"
	}
	return text
}

// declaration is the declaration of a symbol, shortened.
func declaration(x *xref.Index, s *xref.Symbol) string {
	switch s.Kind {
	case xref.Namespace:
		return "module " + s.Name
	case xref.Alias:
		if s.Owner == nil {
			return "import … as " + s.Name
		}
		return "import " + s.Owner.Name + " as " + s.Name
	case xref.Entity:
		return entityText(x, s)
	case xref.Attribute:
		return attributeText(x, s)
	case xref.Relation:
		text := x.Type(s).Symbol
		other := "?"
		if text != nil {
			other = text.FullName()
		}
		line := s.Owner.FullName() + "." + s.Name + " " + s.Multiplicity() + " -- " + other
		if i := s.Inverse(); i != nil {
			line += "." + i.Name + " " + i.Multiplicity()
		}
		return line
	case xref.Typedef:
		if n, ok := s.Node().(*syntax.Typedef); ok {
			return "typedef " + s.FullName() + " as " + n.Base.Text + constraintText(s, n)
		}
	case xref.Implementation:
		if n, ok := s.Node().(*syntax.Implementation); ok {
			return "implementation " + s.FullName() + " for " + n.For.Text
		}
	case xref.PluginFunc:
		return pluginText(s.Plugin)
	case xref.Primitive:
		return "type " + s.Name
	default:
	}
	return s.Name + ": " + x.Type(s).String()
}

func constraintText(s *xref.Symbol, n *syntax.Typedef) string {
	if n.Constraint == nil {
		return ""
	}
	at := n.Constraint.Span()
	text := " " + oneLine(string(s.File.Tree.Src[at.Start.Offset():at.End.Offset()]))
	return " matching" + text
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// maxShown bounds the attributes that the description of an entity lists.
const maxShown = 20

func entityText(x *xref.Index, s *xref.Symbol) string {
	line := "entity " + s.FullName()
	var parents []string
	for _, p := range s.Parents() {
		parents = append(parents, p.FullName())
	}
	if len(parents) > 0 && (len(parents) > 1 || parents[0] != "std::Entity") {
		line += " extends " + strings.Join(parents, ", ")
	}
	var b strings.Builder
	b.WriteString(line)
	attrs := s.Attrs()
	if len(attrs) > 0 {
		b.WriteString(":")
	}
	for i, a := range attrs {
		if i == maxShown {
			fmt.Fprintf(&b, "\n    # and %d more", len(attrs)-i)
			break
		}
		if a.File == nil {
			continue
		}
		if a.Kind == xref.Relation {
			fmt.Fprintf(&b, "\n    %s %s: %s", a.Name, a.Multiplicity(), x.Type(a))
			continue
		}
		b.WriteString("\n    " + attributeText(x, a))
	}
	return b.String()
}

func attributeText(x *xref.Index, s *xref.Symbol) string {
	n, ok := s.Node().(*syntax.Attribute)
	if !ok {
		return s.Name + ": " + x.Type(s).String()
	}
	text := n.Type.Text() + " " + s.Name
	if n.Default != nil {
		at := n.Default.Span()
		text += " = " + oneLine(string(s.File.Tree.Src[at.Start.Offset():at.End.Offset()]))
	}
	return text
}

// pluginText is the signature of a plugin.
func pluginText(p *xref.Plugin) string {
	text, _ := pluginSignature(p)
	return text
}

// pluginSignature is the signature of a plugin with the places of its parameters in it.
func pluginSignature(p *xref.Plugin) (text string, params [][2]int) {
	var b strings.Builder
	b.WriteString(p.Name + "(")
	star := false
	for i, prm := range p.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		if prm.Kind == value.KeywordOnly && !star {
			star = true
			b.WriteString("*, ")
		}
		start := b.Len()
		switch prm.Kind {
		case value.VarPositional:
			star = true
			b.WriteString("*")
		case value.VarKeyword:
			b.WriteString("**")
		case value.PositionalOrKeyword, value.KeywordOnly:
		}
		b.WriteString(prm.Name)
		if prm.Type != "" {
			b.WriteString(": " + prm.Type)
		}
		if prm.Default != nil {
			b.WriteString(" = " + value.Repr(prm.Default))
		}
		params = append(params, [2]int{start, b.Len()})
	}
	b.WriteString(")")
	if p.Returns != "" {
		b.WriteString(" -> " + p.Returns)
	}
	return b.String(), params
}
