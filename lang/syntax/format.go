package syntax

import (
	"errors"
	"strings"

	"github.com/intendant/intendant/diag"
)

// mark is what a token is to the formatter.
type mark uint8

const (
	markLine  mark = 1 << iota // starts a line: a statement, an attribute, a docstring at the start of a block, end
	markOpen                   // the colon that opens a block
	markClose                  // ends a block
	markApart                  // has a space before and, if it is no bracket, behind it: the signs of a conditional, the bracket of a multiplicity
	markTight                  // has no space around it: the colon of a multiplicity
	markDoc                    // a docstring
)

// FormatError says that a text can not be formatted because it is not in the language.
type FormatError struct {
	// Diags are the faults of the text.
	Diags diag.List
}

func (e *FormatError) Error() string { return "formatting: " + e.Diags.Errors()[0].String() }

var errFormat = errors.New("formatting: the result would mean something else")

// Format gives a source file its usual layout: one statement to a line, four spaces to a level, one space around operators.
// Line breaks within a statement stay where they are, as do comments; of several empty lines in a row one stays. What was
// formatted once is not changed again. The error is a [*FormatError] when the text has syntax errors.
func Format(src []byte) ([]byte, error) {
	p := newParser("source", src)
	p.marks = map[int]mark{}
	p.parseFile()
	if p.diags.HasErrors() {
		return nil, &FormatError{p.diags}
	}
	f := &formatter{src: p.src, marks: p.marks}
	f.run()
	out := f.out.String()
	if !sameTokens(p.src, out) {
		return nil, errFormat
	}
	return []byte(out), nil
}

// sameTokens reports whether two texts have the same tokens and comments, up to the space within regular expressions and at
// the end of comments.
func sameTokens(a, b string) bool {
	s, t := scanner{src: a}, scanner{src: b}
	for {
		x, y := s.next(), t.next()
		if x.kind != y.kind || normal(a[x.start:x.end], x.kind) != normal(b[y.start:y.end], y.kind) {
			return false
		}
		if x.kind == tEOF {
			break
		}
	}
	if len(s.comments) != len(t.comments) {
		return false
	}
	for i, c := range s.comments {
		if trimComment(c.Text) != t.comments[i].Text {
			return false
		}
	}
	return true
}

// normal is the text of a token as the formatter writes it.
func normal(text string, k kind) string {
	if k != tRegex {
		return text
	}
	return "matching " + text[strings.IndexByte(text, '/'):]
}

func trimComment(text string) string { return strings.TrimRight(text, " \t\f\v") }

// formatter writes the tokens of a text anew.
type formatter struct {
	src   string
	marks map[int]mark
	out   strings.Builder

	prev  token // the last token written
	depth int   // of blocks
	open  []int // the level of the line of each open bracket
	level int   // of the current line

	fresh  bool // the text so far ends a line
	opened bool // nothing has been written in the current block
	prefix bool // the last token is a ** that unpacks
	end    int  // the offset in src behind what was written last
}

func (f *formatter) run() {
	s := scanner{src: f.src}
	f.fresh, f.opened = true, true
	for {
		t := s.next()
		for _, c := range s.comments {
			f.comment(c, t)
		}
		s.comments = s.comments[:0]
		if t.kind == tEOF {
			break
		}
		f.token(t, s)
	}
	if !f.fresh {
		f.newline()
	}
}

func (f *formatter) newline() {
	f.out.WriteByte('\n')
	f.fresh = true
}

// breaks counts the line ends in the source between what was written last and off.
func (f *formatter) breaks(off int) int { return strings.Count(f.src[f.end:off], "\n") }

// blank writes an empty line if the source has one in front of off.
func (f *formatter) blank(off int) {
	if f.breaks(off) > 1 && !f.opened {
		f.newline()
	}
}

func (f *formatter) indent(levels int) {
	for range levels {
		f.out.WriteString("    ")
	}
	f.fresh, f.level = false, levels
}

// comment writes a comment in front of the token t.
func (f *formatter) comment(c Comment, t token) {
	off := c.Pos.Offset()
	switch {
	case f.out.Len() > 0 && f.breaks(off) == 0:
		if !f.fresh {
			f.out.WriteString("  ")
		}
	default:
		if !f.fresh {
			f.newline()
		}
		f.blank(off)
		if f.within(t) {
			f.indent(f.inner(0))
		} else {
			f.indent(f.depth)
		}
	}
	f.out.WriteString(trimComment(c.Text))
	f.newline()
	f.opened = false
	f.end = off + len(c.Text)
}

// within reports whether the token goes on with a statement.
func (f *formatter) within(t token) bool {
	return t.kind != tEOF && f.marks[t.start]&markLine == 0 && f.prev.end > 0 && f.marks[f.prev.start]&markOpen == 0
}

// inner is the level of a line within a statement whose first tokens close the given number of brackets: that of the line
// with the bracket when it starts with a closing one, else one more.
func (f *formatter) inner(closing int) int {
	switch n := len(f.open); {
	case closing > 0:
		return f.open[n-closing]
	case n > 0:
		return f.open[n-1] + 1
	default:
		return f.depth + 1
	}
}

// token writes a token. s stands behind it.
func (f *formatter) token(t token, s scanner) {
	m := f.marks[t.start]
	if m&markClose != 0 {
		f.depth--
	}
	switch {
	case m&markLine != 0 || f.prev.end == 0:
		if !f.fresh {
			f.newline()
		}
		if m&markClose == 0 {
			f.blank(t.start)
		}
		f.indent(f.depth)
	case f.fresh || f.breaks(t.start) > 0:
		if !f.fresh {
			f.newline()
		}
		if m&markDoc != 0 {
			f.indent(f.depth)
		} else {
			f.indent(f.inner(closers(t, s)))
		}
	case f.spaced(t):
		f.out.WriteByte(' ')
	}
	text := normal(f.src[t.start:t.end], t.kind)
	f.out.WriteString(text)
	f.fresh = false
	switch t.kind {
	case tLparen, tLbrack, tLbrace:
		f.open = append(f.open, f.level)
	case tRparen, tRbrack, tRbrace:
		f.open = f.open[:len(f.open)-1]
	}
	f.opened = m&markOpen != 0
	if f.opened {
		f.depth++
	}
	f.prefix = t.kind == tPow && (f.prev.kind == tLparen || f.prev.kind == tLbrack || f.prev.kind == tComma)
	f.prev, f.end = t, t.end
}

// closers counts the closing brackets that start the line of t.
func closers(t token, s scanner) int {
	n := 0
	for t.kind == tRparen || t.kind == tRbrack || t.kind == tRbrace {
		n++
		from := t.end
		t = s.next()
		if strings.Contains(s.src[from:t.start], "\n") {
			break
		}
	}
	return n
}

// spaced reports whether there is a space between the last token and t, on the same line.
func (f *formatter) spaced(t token) bool {
	m, before := f.marks[t.start], f.marks[f.prev.start]
	if m&markTight != 0 || before&markTight != 0 {
		return false
	}
	if m&markApart != 0 {
		return true
	}
	switch f.prev.kind {
	case tLparen, tLbrack, tLbrace, tDot, tSep:
		return false
	case tPow:
		if f.prefix {
			return false
		}
	case tAssign:
		return len(f.open) == 0
	}
	switch t.kind {
	case tComma, tDot, tSep, tRparen, tRbrack, tRbrace, tColon:
		return false
	case tQuestion:
		// Only that of a type comes here: the one of a conditional is marked.
		return false
	case tAssign:
		return len(f.open) == 0
	case tLparen:
		return f.prev.kind != tID && f.prev.kind != tCID
	case tLbrack:
		return f.prev.kind != tID && f.prev.kind != tCID && f.prev.kind != tRbrack
	}
	return true
}
