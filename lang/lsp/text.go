package lsp

import (
	"bytes"
	"fmt"
	"path"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// encoding is the unit in which the editor counts the characters of a line.
type encoding string

// The encodings of positions.
const (
	utf8Units  encoding = "utf-8"
	utf16Units encoding = "utf-16"
	utf32Units encoding = "utf-32"
)

// count is the length of a piece of a line in units.
func (e encoding) count(text []byte) int {
	switch e {
	case utf8Units:
		return len(text)
	case utf32Units:
		return utf8.RuneCount(text)
	default:
	}
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		n += max(utf16.RuneLen(r), 1)
		text = text[size:]
	}
	return n
}

// offset is the number of bytes that the first units of a line take; that of the whole line when it is shorter. A position
// within a character is that of its start.
func (e encoding) offset(line []byte, units int) int {
	off := 0
	for off < len(line) {
		r, size := utf8.DecodeRune(line[off:])
		switch e {
		case utf8Units:
			units -= size
		case utf32Units:
			units--
		default:
			units -= max(utf16.RuneLen(r), 1)
		}
		if units < 0 {
			break
		}
		off += size
	}
	return off
}

// document is one version of a file that the editor has open.
type document struct {
	uri     string
	path    string // on this machine; empty when the URI is of another kind
	version int
	text    []byte // as the editor has it

	name  string // of the file in trees and diagnostics
	once  sync.Once
	file  *syntax.File
	diags diag.List
}

// model reports whether the document is the source of a model; others belong to a project as well.
func (d *document) model() bool { return path.Ext(d.path) == ".cf" || d.path == "" }

// tree is the parsed text.
func (d *document) tree() (*syntax.File, diag.List) {
	d.once.Do(func() {
		d.file, d.diags = syntax.Parse(d.name, d.text, syntax.Options{Resume: true, MaxErrors: maxSyntaxErrors})
	})
	return d.file, d.diags
}

// maxSyntaxErrors bounds the syntax errors that are shown of one file.
const maxSyntaxErrors = 100

// lineEnds gives the offset behind the line at off, and the offset of its ending: \n, \r\n or \r.
func lineEnds(text []byte, off int) (end, next int) {
	i := bytes.IndexAny(text[off:], "\r\n")
	if i < 0 {
		return len(text), len(text)
	}
	end = off + i
	if text[end] == '\r' && end+1 < len(text) && text[end+1] == '\n' {
		return end, end + 2
	}
	return end, end + 1
}

// textOffset is the offset of a position in a text with any line endings. Positions behind the text are its end.
func (e encoding) textOffset(text []byte, p position) int {
	off := 0
	for range p.Line {
		end, next := lineEnds(text, off)
		if next == end {
			return len(text)
		}
		off = next
	}
	end, _ := lineEnds(text, off)
	return off + e.offset(text[off:end], p.Character)
}

// edit applies the changes of the editor, one after the other, and gives the next version of the document.
func (d *document) edit(version int, changes []contentChange, e encoding, limit int64) (*document, error) {
	text := d.text
	for _, c := range changes {
		if c.Range == nil {
			text = []byte(c.Text)
			continue
		}
		if c.Range.Start.Line < 0 || c.Range.Start.Character < 0 || c.Range.End.Line < 0 || c.Range.End.Character < 0 {
			return nil, fmt.Errorf("changing %s: a position is negative", d.uri)
		}
		start, end := e.textOffset(text, c.Range.Start), e.textOffset(text, c.Range.End)
		if end < start {
			return nil, fmt.Errorf("changing %s: the range ends before it starts", d.uri)
		}
		next := make([]byte, 0, len(text)-(end-start)+len(c.Text))
		next = append(append(append(next, text[:start]...), c.Text...), text[end:]...)
		text = next
		if int64(len(text)) > limit {
			return nil, fmt.Errorf("changing %s: it has more than %d bytes", d.uri, limit)
		}
	}
	return &document{uri: d.uri, path: d.path, version: version, text: text, name: d.name}, nil
}

// place is a position of the editor as a place in a tree.
func (e encoding) place(f *syntax.File, p position) syntax.Pos {
	start := f.LineStart(p.Line + 1)
	off := start.Offset()
	end := off
	if i := bytes.IndexByte(f.Src[off:], '\n'); i >= 0 {
		end += i
	} else {
		end = len(f.Src)
	}
	return start + syntax.Pos(e.offset(f.Src[off:end], max(p.Character, 0)))
}

// position is a place in a tree as the editor counts.
func (e encoding) position(f *syntax.File, p syntax.Pos) position {
	off := min(max(p.Offset(), 0), len(f.Src))
	start := bytes.LastIndexByte(f.Src[:off], '\n') + 1
	return position{Line: f.Line(syntax.Pos(off+1)) - 1, Character: e.count(f.Src[start:off])}
}

func (e encoding) span(f *syntax.File, s syntax.Span) lspRange {
	return lspRange{e.position(f, s.Start), e.position(f, s.End)}
}

// diagPosition is a position of a diagnostic, whose column counts characters, in a text. otherwise is the character when the
// whole line is meant.
func (e encoding) diagPosition(text []byte, p diag.Position, otherwise func(line []byte) int) position {
	line := max(p.Line-1, 0)
	off := 0
	for n := range line {
		end, next := lineEnds(text, off)
		if next == end {
			return position{Line: n, Character: e.count(text[off:end])}
		}
		off = next
	}
	end, _ := lineEnds(text, off)
	content := text[off:end]
	if p.Column == 0 {
		return position{line, otherwise(content)}
	}
	bytes := utf32Units.offset(content, p.Column-1)
	return position{line, e.count(content[:bytes])}
}

// diagRange is the range of a diagnostic in a text. An empty one is made to reach over a character, so that it can be seen.
func (e encoding) diagRange(text []byte, r diag.Range) lspRange {
	indent := func(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) }
	whole := func(line []byte) int { return e.count(line) }
	out := lspRange{Start: e.diagPosition(text, r.Start, indent)}
	if r.End.Line == 0 {
		r.End = diag.Position{Line: r.Start.Line}
	}
	out.End = e.diagPosition(text, r.End, whole)
	if out.End.Line < out.Start.Line || out.End.Line == out.Start.Line && out.End.Character <= out.Start.Character {
		out.End = out.Start
		if out.Start.Character > 0 {
			out.Start.Character--
		} else {
			out.End.Character++
		}
	}
	return out
}
