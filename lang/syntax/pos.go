package syntax

import (
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/intendant/intendant/diag"
)

// Pos is a place in the source of one [File]: the byte offset plus one. The zero Pos is no place. Lines and columns are
// found through the file ([File.Line], [File.Position]), which keeps the tree small.
type Pos uint32

// NoPos is the zero Pos: no place at all.
const NoPos Pos = 0

// Valid reports whether p is a place.
func (p Pos) Valid() bool { return p != NoPos }

// Offset is the byte offset of p in the source, -1 for [NoPos].
func (p Pos) Offset() int { return int(p) - 1 }

// Span is the half-open stretch of text [Start, End) of one file.
type Span struct{ Start, End Pos }

// Place is where the language says that a construct is: what error messages name as its location.
type Place struct {
	// Span is the tightest stretch of text for the construct. Its start is on the line that the language prescribes.
	Span
	// LineOnly says that messages name the file and line only; otherwise they name the column as well.
	LineOnly bool
}

func linePlace(start, end Pos) Place { return Place{Span: Span{start, end}, LineOnly: true} }

func spanPlace(start, end Pos) Place { return Place{Span: Span{start, end}} }

// Line is the line of p, counting from 1; 0 for [NoPos].
func (f *File) Line(p Pos) int {
	if p == NoPos {
		return 0
	}
	off := uint32(p) - 1
	return sort.Search(len(f.lines), func(i int) bool { return f.lines[i] > off })
}

// LineStart is the place at which a line starts, counting from 1. Behind the last line it is the end of the text.
func (f *File) LineStart(line int) Pos {
	switch {
	case line < 1:
		return 1
	case line > len(f.lines):
		return Pos(len(f.Src) + 1)
	default:
		return Pos(f.lines[line-1] + 1)
	}
}

// Position is p as line, column (in code points, from 1) and offset; the zero Position for [NoPos].
func (f *File) Position(p Pos) diag.Position {
	line := f.Line(p)
	if line == 0 {
		return diag.Position{}
	}
	off := min(p.Offset(), len(f.Src))
	start := int(f.lines[line-1])
	return diag.Position{Line: line, Column: 1 + utf8.RuneCount(f.Src[min(start, off):off]) + (p.Offset() - off), Offset: off}
}

// Range is the exact stretch of text of s.
func (f *File) Range(s Span) diag.Range {
	return diag.Range{File: f.Name, Start: f.Position(s.Start), End: f.Position(s.End)}
}

// Location is p as messages of the language write it: file:line, or file:line:column where the column is known.
func (f *File) Location(p Place) string {
	pos := f.Position(p.Start)
	text := f.Name + ":" + strconv.Itoa(pos.Line)
	if p.LineOnly {
		return text
	}
	return text + ":" + strconv.Itoa(pos.Column)
}
