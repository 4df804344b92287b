package syntax

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/intendant/intendant/lang/pyre"
	"github.com/intendant/intendant/lang/value"
)

// empty is the value of every empty string: strings are common, and most of these are empty.
var empty value.Value = value.String("")

func stringValue(s string) value.Value {
	if s == "" {
		return empty
	}
	return value.String(s)
}

// integer is the value of an integer token.
func (p *parser) integer(t token) value.Value {
	text := p.textOf(t)
	if len(text) > maxDigits {
		p.report("ParserException", p.spanOf(t), "Syntax error: an integer can not have more than %d digits", maxDigits)
		return value.Int(0)
	}
	return integerValue(text)
}

func integerValue(text string) value.Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value.Int(n)
	}
	if len(text) > maxDigits {
		text = text[:maxDigits]
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return value.Int(0)
	}
	return value.NewInt(n)
}

// float is the value of a float token. One too large for a double is an infinity, as in Python.
func float(text string) value.Value {
	f, _ := strconv.ParseFloat(text, 64)
	return value.Float(f)
}

// body is the text of a string token without prefix and quotes.
func (p *parser) body(t token) string {
	text := p.textOf(t)
	switch t.kind {
	case tMLS:
		return text[3 : len(text)-3]
	case tFString, tRString:
		return text[2 : len(text)-1]
	default:
		return text[1 : len(text)-1]
	}
}

// bodyStart is the offset of the body of a string token.
func bodyStart(t token) int {
	switch t.kind {
	case tMLS:
		return t.start + 3
	case tFString, tRString:
		return t.start + 2
	default:
		return t.start + 1
	}
}

// rawText is the value of a raw string: its body as written.
func (p *parser) rawText(t token) string { return p.body(t) }

// unescape is the body of a string token with its escapes decoded.
func (p *parser) unescape(t token) string {
	body := p.body(t)
	if strings.IndexByte(body, '\\') < 0 {
		return body
	}
	text, invalid, err := value.Unescape(body)
	if e, ok := errors.AsType[*value.EscapeError](err); ok {
		start := Pos(bodyStart(t) + e.Start + 1)
		p.report("ParserException", Span{start, start + Pos(e.End-e.Start)}, "Syntax error: %s", e.Reason).
			Hint = "write two backslashes for one in the text, or use a raw string: r\"...\""
		return body
	}
	if invalid {
		what := "string"
		switch t.kind {
		case tMLS:
			what = "multi-line string"
		case tFString:
			what = "f-string"
		}
		p.warn(p.spanOf(t), "Invalid escape sequence in %s.", what)
	}
	return text
}

// stringExpr reads a string that may hold references.
func (p *parser) stringExpr() Expr {
	t := p.tok
	text := p.unescape(t)
	var e Expr
	if hole, _ := findHole(text, 0); hole < 0 {
		l := p.literal(t, StringLiteral)
		l.Value = stringValue(text)
		if t.kind == tMLS {
			l.Kind = MultiLiteral
		}
		e = l
	} else {
		i := p.nodes.interp.New()
		i.Pos, i.EndPos, i.Multi, i.Text, i.Holes = Pos(t.start+1), Pos(t.end+1), t.kind == tMLS, text, p.holes(t, text)
		e = i
	}
	p.next()
	return e
}

// findHole finds the first {{ path }} at or behind off. It returns -1 when there is none.
func findHole(text string, off int) (start, end int) {
	for {
		i := strings.Index(text[off:], "{{")
		if i < 0 {
			return -1, -1
		}
		start = off + i
		j := skipSpace(text, start+2)
		word := j
		for j < len(text) && (class[text[j]]&cIdent != 0 || text[j] == '.') {
			j++
		}
		if j > word {
			j = skipSpace(text, j)
			if strings.HasPrefix(text[j:], "}}") {
				return start, j + 2
			}
		}
		off = start + 1
	}
}

// skipSpace is the offset of the first character at or behind off that is not white space.
func skipSpace(text string, off int) int {
	for off < len(text) {
		if c := text[off]; c < utf8.RuneSelf {
			if class[c]&cSpace == 0 && (c < 0x1c || c > 0x1f) {
				break
			}
			off++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[off:])
		if !value.IsSpace(r) {
			break
		}
		off += n
	}
	return off
}

// holes lists the references in the decoded text of a string token.
func (p *parser) holes(t token, text string) []Hole {
	var holes []Hole
	cursor := bodyStart(t)
	for off := 0; ; {
		start, end := findHole(text, off)
		if start < 0 {
			return holes
		}
		source := text[start:end]
		// The place is that of the same text in the source, behind the last one; text behind an escape may not be found.
		at := -1
		if i := strings.Index(p.src[cursor:t.end], source); i >= 0 {
			at = cursor + i
			cursor = at + len(source)
		} else {
			cursor = t.end
		}
		word := strings.TrimFunc(source[2:len(source)-2], value.IsSpace)
		if at >= 0 {
			at += strings.Index(source, word)
		}
		p.link()
		holes = append(holes, Hole{Source: source, Ref: p.refOf(word, at, t)})
		off = end
	}
}

// refOf is the reference that a path in a string stands for. at is its offset in the source; -1 when it is not known, which
// makes it that of the string.
func (p *parser) refOf(path string, at int, t token) Ref {
	place := func(i int) Pos {
		if at < 0 {
			return Pos(t.start + 1)
		}
		return Pos(at + i + 1)
	}
	// White space around a part, which only f-strings can have, means nothing.
	trim := func(part string) (name string, skipped int) {
		name = strings.TrimFunc(part, value.IsSpace)
		return name, strings.Index(part, name)
	}
	part, rest, more := strings.Cut(path, ".")
	name, skipped := trim(part)
	var ref Ref = p.varRef(QName{Base: name, Text: name, Pos: place(skipped), BasePos: place(skipped)})
	for off := len(part); more; {
		dot := place(off)
		part, rest, more = strings.Cut(rest, ".")
		name, skipped = trim(part)
		p.link()
		ref = p.attrRef(ref, dot, Name{Text: name, Pos: place(off + 1 + skipped)})
		off += 1 + len(part)
	}
	return ref
}

// regex reads matching /pattern/.
func (p *parser) regex() Expr {
	t := p.tok
	start := regexStart(p.src, t.start+len("matching"))
	e := &Regex{Pos: Pos(start + 1), EndPos: Pos(t.end + 1), Pattern: p.src[start+1 : t.end-1]}
	if _, err := pyre.Compile(e.Pattern); err != nil {
		p.report("ParserException", e.Span(), "Syntax error: Regex error in /%s/: '%s'", e.Pattern, err)
	}
	p.next()
	return e
}

// formatString reads f"...".
func (p *parser) formatString() Expr {
	t := p.tok
	text := p.unescape(t)
	at, end := Pos(t.start+1), Pos(t.end+1)
	r := formatReader{p: p, tok: t, cursor: bodyStart(t)}
	parts, fault := r.parts(text, 0)
	if fault != "" {
		p.report("ParserException", p.spanOf(t), "Syntax error: Invalid f-string: %s", fault)
		parts = nil
	}
	var e Expr
	if fields(parts) {
		e = &FString{Pos: at, EndPos: end, Text: text, Parts: parts}
	} else {
		l := p.literal(t, FormatLiteral)
		l.Value = empty
		if len(parts) > 0 {
			l.Value = stringValue(parts[0].Text)
		}
		e = l
	}
	p.next()
	return e
}

func fields(parts []FormatPart) bool {
	for _, p := range parts {
		if p.IsField() {
			return true
		}
	}
	return false
}
