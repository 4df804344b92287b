package lsp

import (
	"bytes"
	"sort"
	"strings"

	"github.com/intendant/intendant/lang/syntax"
)

// written is what stands in front of the cursor, in tokens: sources that are being written seldom parse.
type written struct {
	src  []byte
	toks []syntax.Lexeme // in front of the cursor, without comments and without the name at the cursor
	from syntax.Pos      // where the name at the cursor starts; the cursor itself when there is none
	at   syntax.Pos
	// text says that the cursor is in a comment or a string; hole is the reference in a string that is being written there,
	// such as a.b in "{{ a.b".
	text, hole bool
	path       string
}

// before reads what stands in front of a place.
func before(f *syntax.File, at syntax.Pos) *written {
	w := &written{src: f.Src, at: at, from: at}
	all := syntax.Lex(f.Src)
	n := sort.Search(len(all), func(i int) bool { return all[i].Span.Start >= at })
	for i, t := range all[:n] {
		last := i == n-1
		switch {
		case t.Kind == syntax.CommentLexeme:
			w.text = w.text || last && t.Span.End >= at
			continue
		case last && t.Span.End > at && t.Kind == syntax.StringLexeme:
			w.inString(t.Span.Start)
			return w
		case last && t.Span.End >= at && (t.Kind == syntax.NameLexeme || t.Kind == syntax.KeywordLexeme):
			w.from = t.Span.Start
			continue
		case t.Kind == syntax.OtherLexeme && w.quote(t.Span.Start) && f.Line(t.Span.Start) == f.Line(at):
			w.inString(t.Span.Start)
			return w
		}
		w.toks = append(w.toks, t)
	}
	return w
}

func (w *written) quote(at syntax.Pos) bool {
	c := w.src[at.Offset()]
	return c == '"' || c == '\''
}

// inString looks for a reference in the string that starts at a place.
func (w *written) inString(start syntax.Pos) {
	w.text = true
	body := w.src[start.Offset():w.at.Offset()]
	open := bytes.LastIndex(body, []byte("{{"))
	skip := 2
	if open < 0 && body[0] == 'f' || start.Offset() > 0 && w.src[start.Offset()-1] == 'f' {
		open, skip = bytes.LastIndexByte(body, '{'), 1
	}
	if open < 0 || bytes.IndexByte(body[open:], '}') >= 0 {
		return
	}
	path := strings.TrimLeft(string(body[open+skip:]), " ")
	if strings.ContainsAny(path, " \t\n\"'") {
		return
	}
	w.hole, w.path = true, path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		path = path[i+1:]
	}
	w.from = w.at - syntax.Pos(len(path))
}

// tok is the text of the i-th token from the cursor backwards, counting from 0; empty when there are not so many.
func (w *written) tok(i int) string {
	if i >= len(w.toks) {
		return ""
	}
	return w.textOf(w.toks[len(w.toks)-1-i])
}

func (w *written) textOf(t syntax.Lexeme) string {
	return string(w.src[t.Span.Start.Offset():t.Span.End.Offset()])
}

// partial is the name that is being written.
func (w *written) partial() string {
	return string(w.src[w.from.Offset():w.at.Offset()])
}

// name is the reference that ends i tokens in front of the cursor: names with :: and . between them.
func (w *written) name(i int) string {
	text := ""
	for i < len(w.toks) && w.toks[len(w.toks)-1-i].Kind == syntax.NameLexeme {
		text = w.tok(i) + text
		sep := w.tok(i + 1)
		if sep != "." && sep != "::" {
			break
		}
		text = sep + text
		i += 2
	}
	return text
}

// bracket is the innermost bracket that is open at the cursor.
type bracket struct {
	open   string // ( [ or {
	callee string // the name in front of it
	// args are the names of arguments in it, index the number of commas in front of the cursor.
	args  map[string]bool
	index int
	// named is the argument in which the cursor is; first says that the cursor is where an argument starts.
	named string
	first bool
}

// bracket finds the innermost bracket that is open at the cursor; nil when there is none. It does not look beyond the
// statement: a keyword that starts one ends the search.
func (w *written) bracket() *bracket {
	b := &bracket{args: map[string]bool{}}
	depth := 0
	for i := range len(w.toks) {
		t := w.tok(i)
		switch t {
		case ")", "]", "}":
			depth++
		case "(", "[", "{":
			if depth > 0 {
				depth--
				continue
			}
			b.open = t
			b.callee = w.name(i + 1)
			b.first = i == 0 || w.tok(0) == ","
			return b
		case ",":
			if depth == 0 {
				b.index++
			}
		case "=":
			if depth == 0 && i+1 < len(w.toks) {
				if sep := w.tok(i + 2); sep == "(" || sep == "," || sep == "[" {
					b.args[w.tok(i+1)] = true
					if b.index == 0 {
						b.named = w.tok(i + 1)
					}
				}
			}
		case "entity", "implementation", "implement", "typedef", "import", "end", "using":
			if depth == 0 && w.toks[len(w.toks)-1-i].Kind == syntax.KeywordLexeme {
				return nil
			}
		}
	}
	return nil
}

// keyword is the last keyword on the way back from the cursor that starts a statement, with the number of tokens behind it; empty
// when a new line has started a statement since.
func (w *written) keyword(f *syntax.File) (word string, behind int) {
	for i := range w.toks {
		t := w.toks[len(w.toks)-1-i]
		if t.Kind == syntax.KeywordLexeme {
			switch text := w.textOf(t); text {
			case "import", "entity", "extends", "implementation", "implement", "using", "typedef", "index", "when", "for", "matching", "as":
				if f.Line(t.Span.Start) == f.Line(w.at) || i < 2 && text != "import" {
					return text, i
				}
				return "", 0
			case "end":
				return "", 0
			}
		}
	}
	return "", 0
}
