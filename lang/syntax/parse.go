package syntax

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/intendant/intendant/diag"
)

// The limits of a source file. Models stay far below; they keep hostile input from exhausting memory or the stack.
const (
	maxSize    = 64 << 20 // bytes of a file
	maxNesting = 1000     // blocks, parentheses, brackets within one another
	maxChain   = 20000    // operators, postfixes and branches in one statement
	maxDigits  = 4300     // digits of an integer
	maxErrors  = 20       // syntax errors reported for one file unless the options say otherwise

	maxWarnings = 100 // reported for one file
)

// Options change how [Parse] works. The zero value is fit for use.
type Options struct {
	// MaxErrors is how many syntax errors are reported for the file before the parser gives up; 0 for 20.
	MaxErrors int
	// Resume makes the parser take up reading at the next statement after a fault, within blocks as well, rather than at the
	// next definition: more of the tree of a text that somebody is writing survives that way. It is for editors; the list of
	// errors is as good but not the same.
	Resume bool
}

// Parse reads a source file. The name is its path relative to the project, used in diagnostics. The tree keeps src, which must
// not be changed any more.
//
// The file is never nil; after errors it holds the statements that could be made out. The first error in the list is the one
// that the reference implementation reports; later ones are found by taking up reading at the next definition
// or at a statement that starts its line.
func Parse(name string, src []byte, opts Options) (*File, diag.List) {
	p := newParser(name, src)
	p.maxErrors = cmp.Or(opts.MaxErrors, maxErrors)
	p.resume = opts.Resume
	p.parseFile()
	return p.file, p.diags
}

// ParseQuery reads one expression, in which an attribute may follow any operand: Host[name="a"].files. The file holds the text
// and has no statements; the expression is nil when there are errors.
func ParseQuery(name string, src []byte) (Expr, *File, diag.List) {
	p := newParser(name, src)
	p.maxErrors, p.query = 1, true
	var x Expr
	if !p.diags.HasErrors() {
		p.attempt(func() {
			p.next()
			e := p.expr()
			switch p.tok.kind {
			case tEOF:
			case tAssign, tPlusEq:
				p.fail("ParserException", p.spanOf(p.tok), "Syntax error: a query is an expression, it can not assign")
			default:
				p.unexpected()
			}
			x = e
		})
	}
	for i := range p.diags { // what is missing at the end is missing behind the text
		if r := &p.diags[i].Range; r.Start.Offset >= len(p.src) {
			*r = p.file.Range(Span{Pos(len(p.src) + 1), Pos(len(p.src) + 1)})
		}
	}
	return x, p.file, p.diags
}

// newParser returns a parser of a source file. It has reported an error already when the file can not be read at all.
func newParser(name string, src []byte) *parser {
	p := &parser{file: &File{Name: name, lines: []uint32{0}}, maxErrors: maxErrors}
	if len(src) > maxSize {
		p.diags.Errorf("ParserException", diag.Range{File: name, Start: diag.Position{Line: 1}, End: diag.Position{Line: 1}},
			"Syntax error: the file has %d bytes; more than %d are not supported", len(src), maxSize)
		return p
	}
	p.file.Src = newlines(src)
	p.file.lines = lineStarts(p.file.Src)
	text := unsafe.String(unsafe.SliceData(p.file.Src), len(p.file.Src)) //nolint:gosec // nothing writes to it any more
	if i := invalidUTF8(text); i >= 0 {
		p.report("ParserException", Span{Pos(i + 1), Pos(i + 2)}, "Syntax error: the file is not valid UTF-8").
			Hint = "save the file in the encoding UTF-8"
		return p
	}
	p.src = text
	p.scan.src = text
	return p
}

// newlines makes \n of every line ending.
func newlines(src []byte) []byte {
	if bytes.IndexByte(src, '\r') >= 0 {
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
		src = bytes.ReplaceAll(src, []byte("\r"), []byte("\n"))
	}
	return src
}

func lineStarts(src []byte) []uint32 {
	lines := make([]uint32, 1, 1+bytes.Count(src, []byte("\n")))
	for off := 0; ; {
		i := bytes.IndexByte(src[off:], '\n')
		if i < 0 {
			return lines
		}
		off += i + 1
		lines = append(lines, uint32(off))
	}
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// parser reads one file by recursive descent, with one token of lookahead as the reference's parser has: what it complains
// about first depends on that.
type parser struct {
	file  *File
	src   string
	scan  scanner
	tok   token // the token at hand
	prev  token // the last one consumed
	diags diag.List

	errors    int // reported
	maxErrors int
	resume    bool // see [Options.Resume]
	query     bool // see [ParseQuery]
	wanted    kind // the token that the error at hand is for want of; tEOF for none
	warnings  int
	begin     int // the offset of the current top-level statement
	nesting   int
	chain     int // operators in the current top-level statement

	blocks    []Span // the keywords of the blocks that are open
	condition bool   // a condition is being read
	openQuote rune   // begins a string that does not end on its line
	suspect   Span   // the keyword of a block that seems to have no end of its own

	nodes slabs
	marks map[int]mark // what the formatter wants to know, by offset of the token; nil otherwise

	// Stacks on which lists are gathered.
	args    []Arg
	items   []Expr
	entries []DictEntry
	stmts   []Stmt
}

// stop is what the parser panics with to leave a statement that it cannot make sense of.
type stop struct{}

// next consumes the token at hand. It stops the statement when the following character starts no token; with
// [Options.Resume] only when such a token would have to be consumed, so that the statement in front of it is kept.
func (p *parser) next() {
	p.prev = p.tok
	p.tok = p.scan.next()
	if p.tok.kind == tIllegal && !p.resume {
		p.illegal()
	}
}

func (p *parser) illegal() {
	r, n := utf8.DecodeRuneInString(p.src[p.tok.start:])
	if p.restOfText(r) {
		p.openQuote = 0
		panic(stop{})
	}
	d := p.report("ParserException", Span{Pos(p.tok.start + 1), Pos(p.tok.start + n + 1)}, "Syntax error: Illegal character '%c'", r)
	switch r {
	case '"', '\'':
		d.Hint, p.openQuote = p.illegalQuote(r), r
	case ';':
		d.Hint = "statements need nothing between them"
	case '!':
		d.Hint = "negate with not"
	case '&':
		d.Hint = "write and"
	case '|':
		d.Hint = "write or"
	case '\uFEFF':
		d.Hint = "save the file without a byte order mark"
	case '\u201C', '\u201D', '\u201E', '\u2018', '\u2019':
		d.Hint = "write straight quotes"
	default:
		if unicode.IsLetter(r) {
			d.Hint = "names consist of the letters a to z and A to Z, digits, _ and -"
		} else {
			d.Hint = illegalSpace(r)
		}
	}
	panic(stop{})
}

// mark notes what the token at hand is to the formatter.
func (p *parser) mark(m mark) {
	if p.marks != nil {
		p.marks[p.tok.start] |= m
	}
}

// pos is the start of the token at hand.
func (p *parser) pos() Pos { return Pos(p.tok.start + 1) }

// prevEnd is the end of the last token consumed.
func (p *parser) prevEnd() Pos { return Pos(p.prev.end + 1) }

func (p *parser) spanOf(t token) Span { return Span{Pos(t.start + 1), Pos(t.end + 1)} }

func (p *parser) textOf(t token) string { return p.src[t.start:t.end] }

// report records an error. The diagnostic may be changed until the next one is recorded. It stops the statement when there
// have been more than enough.
func (p *parser) report(code string, at Span, format string, args ...any) *diag.Diagnostic {
	p.errors++
	if p.errors > p.maxErrors {
		panic(stop{})
	}
	p.diags.Errorf(code, p.file.Range(at), format, args...)
	return &p.diags[len(p.diags)-1]
}

// warn records a warning, unless there have been more than enough.
func (p *parser) warn(at Span, format string, args ...any) {
	p.warnings++
	if p.warnings > maxWarnings {
		return
	}
	p.diags.Warnf("ParserWarning", p.file.Range(at), format, args...)
}

// fail records an error and stops the statement.
func (p *parser) fail(code string, at Span, format string, args ...any) {
	p.report(code, at, format, args...)
	panic(stop{})
}

// starters are the keywords that start statements.
var starters = []string{"entity", "for", "if", "implement", "implementation", "import", "index", "typedef"}

// unexpected complains about the token at hand and stops the statement.
func (p *parser) unexpected() {
	hint := ""
	if p.tok.kind == tAssign && p.condition {
		hint = "compare with =="
	}
	p.unexpectedHint(hint)
}

// misspelt says which keyword may have been meant at the start of the line; it is empty when there is none. A misspelt keyword
// reads as a variable that is a statement of its own.
func (p *parser) misspelt() string {
	name, next := "", p.begin
	for _, before := range slices.Backward(p.file.Stmts) {
		s, ok := before.(*ExprStmt)
		if !ok {
			break
		}
		v, ok := s.X.(*VarRef)
		if !ok || strings.Contains(p.src[v.Name.Pos.Offset():next], "\n") {
			break
		}
		name, next = v.Name.Text, v.Name.Pos.Offset()
	}
	if s := diag.Closest(name, starters); name != "" && s != "" {
		return "did you mean " + s + "?"
	}
	return ""
}

// unexpectedHint is unexpected with a hint that goes with complaints about the token itself.
func (p *parser) unexpectedHint(hint string) {
	switch {
	case p.tok.kind == tIllegal:
		p.illegal()
	case p.tok.kind == tEOF:
		p.unexpectedEnd()
	case p.tok.kind.keyword():
		p.misused(p.tok)
	case p.prev.kind.keyword() && !complete(p.prev.kind, p.tok.kind):
		p.misused(p.prev)
	}
	at := p.spanOf(p.tok)
	if p.file.Line(at.Start) != p.file.Line(at.End) {
		at.Start = at.End // the line is that behind the token, as the reference has it
	}
	p.report("ParserException", at, "Syntax error at token %s", p.show(p.tok)).Hint = cmp.Or(p.advice(), p.misspelt(), hint, p.missing())
	panic(stop{})
}

// unexpectedEnd complains about the end of the file. The language names the second column of the line behind the last.
func (p *parser) unexpectedEnd() {
	at := diag.Position{Line: len(p.file.lines) + 1, Column: 2, Offset: len(p.src)}
	p.errors++
	d := diag.Errorf("ParserException", diag.Range{File: p.file.Name, Start: at, End: at}, "Syntax error: Unexpected end of file")
	d = p.unclosed(d)
	d.Hint = cmp.Or(p.incomplete(), p.missing(), d.Hint)
	p.diags.Add(d)
	panic(stop{})
}

// missing says which token the parser was looking for, when that is likely to have been forgotten.
func (p *parser) missing() string {
	behind := ""
	if p.prev.end > p.prev.start {
		behind = " behind " + p.show(p.prev)
	}
	switch p.wanted {
	case tColon:
		return "is a colon missing" + behind + "?"
	case tRparen:
		return "is a comma or a closing parenthesis missing" + behind + "?"
	case tRbrack:
		return "is a comma or a closing bracket missing" + behind + "?"
	case tRbrace:
		return "is a comma or a closing brace missing" + behind + "?"
	case tIn:
		if p.prev.kind == tID {
			return "is in missing" + behind + "?"
		}
	case tUsing:
		return "is using missing" + behind + "?"
	case tMatching:
		return "a typedef needs a condition: matching self ..."
	case tFor:
		return "are for and the name of an entity missing" + behind + "?"
	}
	return ""
}

// misused complains about a keyword in the wrong place.
func (p *parser) misused(t token) {
	d := diag.Errorf("ParserException", p.file.Range(p.spanOf(t)), "Syntax error: invalid identifier, %s is a reserved keyword", p.textOf(t))
	switch t.kind {
	case tEntity, tImplementation, tImplement, tTypedef, tIndex, tImport:
		if d.Hint = p.misplaced(t); d.Hint == "" {
			d = p.unclosed(d)
		}
	case tEnd:
		if len(p.blocks) == 0 {
			d.Hint = "there is no block to end here"
		}
	}
	d.Hint = cmp.Or(p.advice(), p.misspelt(), p.missing(), d.Hint)
	p.errors++
	p.diags.Add(d)
	panic(stop{})
}

// unclosed adds to a fault which block has not been closed.
func (p *parser) unclosed(d diag.Diagnostic) diag.Diagnostic {
	if len(p.blocks) == 0 {
		return d
	}
	open := p.blocks[len(p.blocks)-1]
	if p.suspect.Start > open.Start {
		d = d.WithRelated(p.file.Range(p.suspect), "this block has not been closed: the next end stands further to the left")
	} else {
		d = d.WithRelated(p.file.Range(open), "this block has not been closed")
	}
	if d.Hint == "" {
		d.Hint = "close the block with end"
	}
	return d
}

// begins notes that a block starts with the token at hand; ends that it is closed.
func (p *parser) begins() { p.blocks = append(p.blocks, p.spanOf(p.tok)) }

func (p *parser) ends() {
	b := p.blocks[len(p.blocks)-1]
	// An end that stands further to the left than what it closes was meant for a block around it.
	if p.tok.kind == tEnd && p.firstOnLine(p.tok.start) && p.column(p.tok.start) < p.opening() && !p.suspect.Start.Valid() {
		p.suspect = b
	}
	p.blocks = p.blocks[:len(p.blocks)-1]
}

// complete reports whether a keyword in front of an unexpected token ends an operand that another token might follow
// somewhere in the language: then the keyword is not what is wrong.
func complete(k, next kind) bool {
	switch k {
	case tTrue, tFalse, tNull, tDefined:
		return followsExpr(next)
	default:
		return false
	}
}

// expect consumes a token of the kind and returns its place.
func (p *parser) expect(k kind) Pos {
	if p.tok.kind != k {
		p.wanted = k
		p.unexpected()
	}
	at := p.pos()
	p.next()
	return at
}

// accept consumes the token at hand if it is of the kind.
func (p *parser) accept(k kind) bool {
	if p.tok.kind != k {
		return false
	}
	p.next()
	return true
}

// enter counts a level of nesting; leave must follow.
func (p *parser) enter() {
	p.nesting++
	if p.nesting > maxNesting {
		p.fail("ParserException", p.spanOf(p.tok), "Syntax error: more than %d levels of nesting", maxNesting)
	}
}

func (p *parser) leave() { p.nesting-- }

// link counts an operator, a postfix or a branch of the current statement.
func (p *parser) link() {
	p.chain++
	if p.chain > maxChain {
		p.fail("ParserException", p.spanOf(p.tok), "Syntax error: more than %d operators in one statement", maxChain)
	}
}

// parseFile reads the statements of the file. After a statement that makes no sense it goes on at the next definition.
func (p *parser) parseFile() {
	if p.diags.HasErrors() {
		return
	}
	for step := p.start; !p.attempt(step) && p.errors < p.maxErrors && p.resync(); {
		step = p.statements
	}
	p.file.Comments = p.scan.comments
}

// attempt runs f and reports whether it came to its end.
func (p *parser) attempt(f func()) (done bool) {
	p.wanted = tEOF
	defer func() {
		if !done {
			if r := recover(); r != (stop{}) {
				panic(r)
			}
		}
	}()
	f()
	return true
}

// start reads the docstring of the file and its statements.
func (p *parser) start() {
	p.next()
	if p.tok.kind == tMLS {
		p.file.Doc = p.doc()
	}
	p.statements()
}

func (p *parser) statements() {
	for p.tok.kind != tEOF {
		if p.tok.kind == tEnd && p.errors > 0 {
			// The end of a definition that was left at a fault.
			p.next()
			continue
		}
		p.chain, p.begin = 0, p.tok.start
		p.mark(markLine)
		p.part(func() { p.file.Stmts = append(p.file.Stmts, p.topStmt()) })
	}
}

// resync skips to a keyword that can only start a definition and stands first on its line, or to another statement at the very
// start of a later line than that of the fault. It reports whether there is one.
func (p *parser) resync() bool {
	line := p.file.Line(p.pos())
	p.nesting, p.prev, p.condition = 0, token{}, false
	p.blocks, p.suspect = p.blocks[:0], Span{}
	p.args, p.items, p.entries, p.stmts = p.args[:0], p.items[:0], p.entries[:0], p.stmts[:0]
	for {
		switch p.tok.kind {
		case tEOF:
			return false
		case tEntity, tImplement, tImplementation, tTypedef, tImport, tIndex:
			if p.tok.start > p.begin && p.firstOnLine(p.tok.start) {
				return true
			}
		case tID, tCID, tFor, tIf:
			if off := p.tok.start; off > p.begin && off > 0 && p.src[off-1] == '\n' && p.file.Line(p.pos()) > line {
				return true
			}
		}
		p.tok = p.scan.next()
	}
}

func (p *parser) firstOnLine(off int) bool {
	line := p.src[strings.LastIndexByte(p.src[:off], '\n')+1 : off]
	return strings.Trim(line, " \t") == ""
}
