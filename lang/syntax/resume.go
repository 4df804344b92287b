package syntax

import "strings"

// Taking up reading after a fault for [Options.Resume]. It goes by the layout that people give to a source: the statements of a
// block start lines, at the same column, and the keyword end stands under the one that it closes. A source with another
// layout loses more of its tree, never its first error.

// mark of the parser's stacks, to be cut back to when a statement is given up.
type resumption struct {
	begin                                        int // the offset of the statement
	nesting, blocks, args, items, entries, stmts int
}

func (p *parser) resumption() resumption {
	return resumption{p.tok.start, p.nesting, len(p.blocks), len(p.args), len(p.items), len(p.entries), len(p.stmts)}
}

// part reads a part of a block by read. When that meets a fault and the options say so, reading goes on at the next line that
// starts no further to the right than this part did.
func (p *parser) part(read func()) {
	if !p.resume {
		read()
		return
	}
	from := p.resumption()
	if p.attempt(read) {
		return
	}
	if p.errors >= p.maxErrors {
		panic(stop{})
	}
	p.nesting, p.prev, p.condition = from.nesting, token{}, false
	p.blocks, p.args, p.items = p.blocks[:from.blocks], p.args[:from.args], p.items[:from.items]
	p.entries, p.stmts = p.entries[:from.entries], p.stmts[:from.stmts]
	p.skip(from.begin)
}

// skip goes to the first token behind the one at begin that starts a line, no further to the right than that one does, and
// may start a statement or end a block. What was read behind begin is read again, but for tokens that reach over lines.
func (p *parser) skip(begin int) {
	column := p.column(begin)
	n := len(p.scan.comments)
	for n > 0 && p.scan.comments[n-1].Pos.Offset() > begin {
		n--
	}
	p.scan.comments = p.scan.comments[:n]
	p.scan.off = begin
	for p.tok = p.scan.next(); p.tok.kind != tEOF; p.tok = p.scan.next() {
		if p.tok.start == begin || !p.firstOnLine(p.tok.start) {
			continue
		}
		switch p.tok.kind {
		case tEntity, tImplement, tImplementation, tTypedef, tImport, tIndex:
			return
		case tID, tCID, tDict, tFor, tIf, tEnd, tElif, tElse:
			if p.column(p.tok.start) <= column {
				return
			}
		default:
		}
	}
}

// head reads what the head of a definition says behind its name. When that has a fault and the options say so, reading goes on at
// the colon that ends the head, if it is on the same line: the definition is there, even when not all is known about it.
func (p *parser) head(read func()) {
	if !p.resume {
		read()
		return
	}
	if p.attempt(read) {
		return
	}
	for line := p.file.Line(Pos(p.begin + 1)); p.tok.kind != tColon; p.tok = p.scan.next() {
		if p.errors >= p.maxErrors || p.tok.kind == tEOF || p.file.Line(p.pos()) != line {
			panic(stop{})
		}
	}
}

// column is the number of bytes in front of off on its line.
func (p *parser) column(off int) int { return off - 1 - strings.LastIndexByte(p.src[:off], '\n') }

// stray reports whether the keyword at hand, which ends a block or a branch, is that of a block whose start has been given up:
// it stands further to the right than the start of the innermost block.
func (p *parser) stray() bool {
	return p.resume && p.errors > 0 && len(p.blocks) > 0 && p.firstOnLine(p.tok.start) &&
		p.column(p.tok.start) > p.opening()
}

// abandoned reports whether the innermost block is not going to be closed: a definition follows, or the end of a block around
// it, or nothing.
func (p *parser) abandoned() bool {
	if !p.resume {
		return false
	}
	switch p.tok.kind {
	case tEOF:
		return true
	case tEntity, tImplement, tImplementation, tTypedef, tImport, tIndex:
		return p.firstOnLine(p.tok.start)
	case tEnd, tElif, tElse:
		return len(p.blocks) > 1 && p.firstOnLine(p.tok.start) && p.column(p.tok.start) < p.opening()
	default:
		return false
	}
}

// opening is the column of the line on which the innermost block starts.
func (p *parser) opening() int {
	off := p.blocks[len(p.blocks)-1].Start.Offset()
	line := p.src[strings.LastIndexByte(p.src[:off], '\n')+1 : off]
	return len(line) - len(strings.TrimLeft(line, " \t"))
}

// leaveOpen reports that the innermost block is not closed, once at the end of the file, and goes on behind it.
func (p *parser) leaveOpen() Pos {
	if n := len(p.diags); p.tok.kind != tEOF || n == 0 || p.diags[n-1].Range.Start.Offset < len(p.src) {
		p.attempt(p.unexpected)
	}
	p.ends()
	return p.pos()
}
