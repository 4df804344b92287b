package lsp

import (
	"context"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
	"github.com/intendant/intendant/lazyregexp"
)

// The hints of diagnostics that an edit can follow.
var (
	didYouMean = lazyregexp.New("(?i)^did you mean `?([\\w:.-]+)`?\\?$")
	addImport  = lazyregexp.New("^add `import ([\\w:]+)` to the file$")
	writeThis  = lazyregexp.New("^write ([a-z]+)$")
	renameThis = lazyregexp.New(`please rename ([\w-]+)`)
)

// codeActions offers edits that follow the hints of diagnostics.
func codeActions(_ context.Context, r *request) (any, error) {
	var p codeActionParams
	if err := r.bind(&p); err != nil {
		return nil, err
	}
	out := []codeAction{}
	if r.doc == nil || len(p.Context.Only) > 0 && !slices.ContainsFunc(p.Context.Only, func(k string) bool { return k == "quickfix" || k == "" }) {
		return out, nil
	}
	f, _ := r.doc.tree()
	c := r.source()
	for _, d := range p.Context.Diagnostics {
		hint := ""
		if d.Data != nil {
			hint = d.Data.Hint
		} else if i := strings.LastIndexByte(d.Message, '\n'); i >= 0 {
			hint = d.Message[i+1:] // an editor that does not keep data
		}
		fix := func(title string, edits ...textEdit) {
			out = append(out, codeAction{
				Title: title, Kind: "quickfix", Diagnostics: []diagnostic{d}, IsPreferred: true,
				Edit: &workspaceEdit{map[string][]textEdit{r.doc.uri: edits}},
			})
		}
		at := syntax.Span{Start: r.enc.place(f, d.Range.Start), End: r.enc.place(f, d.Range.End)}
		if m := didYouMean().FindStringSubmatch(hint); m != nil {
			if span, ok := wrongName(f, at, m[1]); ok {
				fix("Replace with "+m[1], textEdit{r.enc.span(f, span), m[1]})
			}
		}
		if m := addImport().FindStringSubmatch(hint); m != nil && c != nil {
			fix("Import "+m[1], r.importEdit(c.file, m[1]))
		}
		if m := writeThis().FindStringSubmatch(hint); m != nil && at.End > at.Start {
			fix("Replace with "+m[1], textEdit{lspRange{d.Range.Start, d.Range.End}, m[1]})
		}
		if m := renameThis().FindStringSubmatch(d.Message); m != nil && string(f.Src[at.Start.Offset():at.End.Offset()]) == m[1] {
			name := strings.ReplaceAll(m[1], "-", "_")
			fix("Replace with "+name, textEdit{lspRange{d.Range.Start, d.Range.End}, name})
		}
		if c != nil {
			name, spaces := missingType(c, d)
			for _, ns := range spaces {
				if span, ok := exactName(f, at, name); ok {
					fix("Import "+ns+" and use "+ns+"::"+name, r.importEdit(c.file, ns), textEdit{r.enc.span(f, span), ns + "::" + name})
				}
			}
		}
	}
	return out, nil
}

// wrongName finds the name at the place of a fault that is like the one that was probably meant: a range may be that of a whole
// statement.
func wrongName(f *syntax.File, at syntax.Span, right string) (syntax.Span, bool) {
	_, base := cutName(right)
	best, found := syntax.Span{}, false
	for _, l := range syntax.Lex(f.Src) {
		if l.Span.End > at.End {
			break
		}
		if l.Span.Start < at.Start || l.Kind != syntax.NameLexeme && l.Kind != syntax.KeywordLexeme {
			continue
		}
		text := string(f.Src[l.Span.Start.Offset():l.Span.End.Offset()])
		if similar(text, base) {
			best, found = l.Span, true
			break
		}
	}
	if !found || base == right {
		return best, found
	}
	// The whole qualified name goes.
	start := best.Start.Offset()
	for start > 0 && (strings.IndexByte("_:", f.Src[start-1]) >= 0 || f.Src[start-1]|0x20 >= 'a' && f.Src[start-1]|0x20 <= 'z') {
		start--
	}
	return syntax.Span{Start: max(syntax.Pos(start+1), at.Start), End: best.End}, true
}

// similar reports whether two different names have most of their letters in common.
func similar(a, b string) bool {
	if a == b || a == "" || b == "" {
		return false
	}
	common := 0
	rest := strings.ToLower(b)
	for _, c := range strings.ToLower(a) {
		if i := strings.IndexRune(rest, c); i >= 0 {
			common++
			rest = rest[:i] + rest[i+1:]
		}
	}
	return 2*common >= max(len(a), len(b))
}

var notFound = lazyregexp.New(`^could not find type (\w+) in namespace`)

// missingType gives the name of the type which a diagnostic misses, and the namespaces that define one.
func missingType(c *cursor, d diagnostic) (name string, namespaces []string) {
	m := notFound().FindStringSubmatch(d.Message)
	if m == nil {
		return "", nil
	}
	visible := map[*xref.File]bool{}
	for _, f := range c.file.Visible() {
		visible[f] = true
	}
	for _, ns := range c.index.Namespaces() {
		f := c.index.Space(ns)
		if visible[f] {
			continue
		}
		if slices.ContainsFunc(f.Types(), func(s *xref.Symbol) bool { return s.Name == m[1] }) {
			namespaces = append(namespaces, ns)
		}
	}
	return m[1], namespaces
}

// exactName finds a name in a stretch of text.
func exactName(f *syntax.File, at syntax.Span, name string) (syntax.Span, bool) {
	for _, l := range syntax.Lex(f.Src) {
		if l.Kind == syntax.NameLexeme && l.Span.Start >= at.Start && l.Span.End <= at.End &&
			string(f.Src[l.Span.Start.Offset():l.Span.End.Offset()]) == name {
			return l.Span, true
		}
	}
	return syntax.Span{}, false
}
