package lsp

import (
	"context"
	"slices"
	"sort"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
)

// tokenTypes and tokenModifiers are the legend of semantic tokens: numbers stand for places in them.
var (
	tokenTypes = []string{
		"namespace", "type", "class", "property", "function", "method", "variable", "parameter", "keyword", "comment", "string",
		"number", "regexp", "operator",
	}
	tokenModifiers = []string{"declaration", "deprecated", "modification"}
)

var symbolTokens = map[xref.Kind]string{
	xref.Namespace: "namespace", xref.Alias: "namespace", xref.Entity: "class", xref.Attribute: "property", xref.Relation: "property",
	xref.Typedef: "type", xref.Primitive: "type", xref.Implementation: "method", xref.PluginFunc: "function", xref.Variable: "variable",
	xref.LoopVariable: "variable", xref.Self: "keyword",
}

var lexemeTokens = map[syntax.LexemeKind]string{
	syntax.KeywordLexeme: "keyword", syntax.CommentLexeme: "comment", syntax.StringLexeme: "string", syntax.NumberLexeme: "number",
	syntax.RegexLexeme: "regexp",
}

type semanticToken struct {
	span      syntax.Span
	kind      int
	modifiers int
}

// semanticTokens says what each token of a document is.
func semanticTokens(_ context.Context, r *request) (any, error) {
	if r.doc == nil {
		return nil, nil
	}
	f, _ := r.doc.tree()
	var uses []xref.Use
	if c := r.source(); c != nil {
		f = c.file.Tree
		uses = c.index.Uses(c.file)
	}
	kind := func(name string) int { return slices.Index(tokenTypes, name) }
	var toks []semanticToken
	for _, u := range uses {
		if u.Hidden || u.Span.End <= u.Span.Start {
			continue
		}
		t := semanticToken{span: u.Span, kind: kind(symbolTokens[u.Symbol.Kind])}
		switch u.Role {
		case xref.Declaration:
			t.modifiers = 1
		case xref.Write:
			t.modifiers = 4
		case xref.Read:
		}
		if u.Symbol.Kind == xref.PluginFunc && u.Symbol.Plugin.Deprecated != "" {
			t.modifiers |= 2
		}
		if t.kind >= 0 {
			toks = append(toks, t)
		}
	}
	sort.SliceStable(toks, func(i, j int) bool { return toks[i].span.Start < toks[j].span.Start })
	toks = withLexemes(f, toks, kind)
	return map[string]any{"data": r.encode(f, toks)}, nil
}

// withLexemes fills what is between the names: keywords, numbers, comments, and strings around the names in them.
func withLexemes(f *syntax.File, names []semanticToken, kind func(string) int) []semanticToken {
	var out []semanticToken
	i := 0
	for _, l := range syntax.Lex(f.Src) {
		from := l.Span.Start
		k := kind(lexemeTokens[l.Kind])
		for ; i < len(names) && names[i].span.Start < l.Span.End; i++ {
			n := names[i]
			if n.span.Start < from {
				continue // within one that is there already
			}
			if k >= 0 && n.span.Start > from {
				out = append(out, semanticToken{syntax.Span{Start: from, End: n.span.Start}, k, 0})
			}
			out = append(out, n)
			from = n.span.End
		}
		if k >= 0 && from < l.Span.End {
			out = append(out, semanticToken{syntax.Span{Start: from, End: l.Span.End}, k, 0})
		}
	}
	return out
}

// encode writes tokens as the protocol wants them, each relative to the one before. Tokens of several lines are divided.
func (r *request) encode(f *syntax.File, toks []semanticToken) []int {
	data := make([]int, 0, 5*len(toks))
	prev := position{}
	for _, t := range toks {
		for line := f.Line(t.span.Start); ; line++ {
			start, end := max(t.span.Start, f.LineStart(line)), min(t.span.End, f.LineStart(line+1))
			last := end == t.span.End
			if end > start && f.Src[end.Offset()-1] == '\n' {
				end--
			}
			if end > start {
				p := r.enc.position(f, start)
				length := r.enc.count(f.Src[start.Offset():end.Offset()])
				column := p.Character
				if p.Line == prev.Line {
					column -= prev.Character
				}
				data = append(data, p.Line-prev.Line, column, length, t.kind, t.modifiers)
				prev = p
			}
			if last {
				break
			}
		}
	}
	return data
}
