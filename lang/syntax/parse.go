package syntax

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/intendant/intendant/diag"
)

// The limits of a source file. Models stay far below; they keep hostile input from exhausting memory or the stack.
const (
	maxSize    = 64 << 20 // bytes of a file
	maxNesting = 1000     // blocks, parentheses, brackets within one another
	maxChain   = 20000    // operators, postfixes and branches in one statement
	maxDigits  = 4300     // digits of an integer
	maxErrors  = 20       // syntax errors reported for one file unless the options say otherwise
)

// Options change how [Parse] works. The zero value is fit for use.
type Options struct {
	// MaxErrors is how many syntax errors are reported for the file before the parser gives up; 0 for 20.
	MaxErrors int
}

// Parse reads a source file. The name is its path relative to the project, used in diagnostics.
//
// The file is never nil; after errors it holds the statements that could be made out. The first error in the list is the one
// that the reference implementation reports; later ones are found by taking up reading at the next definition.
func Parse(name string, src []byte, opts Options) (*File, diag.List) {
	p := newParser(name, src)
	p.maxErrors = cmp.Or(opts.MaxErrors, maxErrors)
	p.parseFile()
	return p.file, p.diags
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
	text := string(p.file.Src)
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
	begin     int // the offset of the current top-level statement
	nesting   int
	chain     int // operators in the current top-level statement

	marks map[int]mark // what the formatter wants to know, by offset of the token; nil otherwise

	// Stacks on which lists are gathered.
	args    []Arg
	items   []Expr
	entries []DictEntry
	stmts   []Stmt
}

// stop is what the parser panics with to leave a statement that it cannot make sense of.
type stop struct{}

// next consumes the token at hand. It stops the statement when the following character starts no token.
func (p *parser) next() {
	p.prev = p.tok
	p.tok = p.scan.next()
	if p.tok.kind == tIllegal {
		p.illegal()
	}
}

func (p *parser) illegal() {
	r, n := utf8.DecodeRuneInString(p.src[p.tok.start:])
	d := p.report("ParserException", Span{Pos(p.tok.start + 1), Pos(p.tok.start + n + 1)}, "Syntax error: Illegal character '%c'", r)
	if r == '"' || r == '\'' {
		d.Hint = "a string must end on the line on which it starts; only strings in three double quotes may have several lines"
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

// report records an error. The diagnostic may be changed until the next one is recorded.
func (p *parser) report(code string, at Span, format string, args ...any) *diag.Diagnostic {
	p.errors++
	p.diags.Errorf(code, p.file.Range(at), format, args...)
	return &p.diags[len(p.diags)-1]
}

func (p *parser) warn(at Span, format string, args ...any) {
	p.diags.Warnf("ParserWarning", p.file.Range(at), format, args...)
}

// fail records an error and stops the statement.
func (p *parser) fail(code string, at Span, format string, args ...any) {
	p.report(code, at, format, args...)
	panic(stop{})
}

// unexpected complains about the token at hand and stops the statement.
func (p *parser) unexpected() {
	switch {
	case p.tok.kind == tEOF:
		// The language names the second column of the line behind the last.
		line := len(p.file.lines) + 1
		if len(p.src) == 0 {
			line = 1
		}
		at := diag.Position{Line: line, Column: 2, Offset: len(p.src)}
		p.errors++
		p.diags.Errorf("ParserException", diag.Range{File: p.file.Name, Start: at, End: at}, "Syntax error: Unexpected end of file")
		panic(stop{})
	case p.tok.kind.keyword():
		p.misused(p.tok)
	case p.prev.kind.keyword() && !complete(p.prev.kind, p.tok.kind):
		p.misused(p.prev)
	}
	// The place is behind the token, as the reference has it.
	p.fail("ParserException", Span{Pos(p.tok.end + 1), Pos(p.tok.end + 1)}, "Syntax error at token %s", p.show(p.tok))
}

func (p *parser) misused(t token) {
	p.fail("ParserException", p.spanOf(t), "Syntax error: invalid identifier, %s is a reserved keyword", p.textOf(t))
}

// complete reports whether a keyword in front of an unexpected token ends an operand that another token might follow
// somewhere in the language: then the keyword is not what is wrong.
func complete(k, next kind) bool {
	switch k {
	case tTrue, tFalse, tNull, tDefined:
		return next != tDot && next != tSep && next != tAssign && next != tPlusEq && next != tRel
	default:
		return false
	}
}

// expect consumes a token of the kind and returns its place.
func (p *parser) expect(k kind) Pos {
	if p.tok.kind != k {
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
		p.file.Stmts = append(p.file.Stmts, p.topStmt())
	}
}

// resync skips to a keyword that can only start a definition and stands first on its line. It reports whether there is one.
func (p *parser) resync() bool {
	p.nesting, p.prev = 0, token{}
	p.args, p.items, p.entries, p.stmts = p.args[:0], p.items[:0], p.entries[:0], p.stmts[:0]
	for {
		switch p.tok.kind {
		case tEOF:
			return false
		case tEntity, tImplement, tImplementation, tTypedef, tImport, tIndex:
			if p.tok.start > p.begin && p.firstOnLine(p.tok.start) {
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

// topStmt reads a statement at the top level of the file.
func (p *parser) topStmt() Stmt {
	switch p.tok.kind {
	case tImport:
		return p.importStmt()
	case tEntity:
		return p.entity()
	case tImplementation:
		return p.implementation()
	case tImplement:
		return p.implement()
	case tTypedef:
		return p.typedef()
	case tIndex:
		return p.index()
	}
	return p.stmt(true)
}

func (p *parser) importStmt() Stmt {
	s := &Import{Pos: p.pos()}
	p.next()
	s.Name = p.nsRef()
	if strings.Contains(s.Name.Text, "-") {
		p.report("CompilerException", s.Name.Span(), "%s is not a valid module name: hyphens are not allowed, please use underscores instead.", s.Name.Text)
	}
	if p.accept(tAs) {
		s.Alias = p.declared(tID)
	}
	return s
}

// declared reads the identifier of a definition, in which hyphens are not allowed.
func (p *parser) declared(k kind) Name {
	if p.tok.kind != k {
		p.unexpected()
	}
	n := p.nameOf(p.tok)
	p.checkHyphen(n)
	p.next()
	return n
}

func (p *parser) checkHyphen(n Name) {
	if strings.Contains(n.Text, "-") {
		p.report("HyphenException", n.Span(), "The use of '-' in identifiers is not allowed. please rename %s.", n.Text)
	}
}

func (p *parser) nameOf(t token) Name { return Name{Text: p.textOf(t), Pos: Pos(t.start + 1)} }

func (p *parser) ident() Name {
	if p.tok.kind != tID {
		p.unexpected()
	}
	n := p.nameOf(p.tok)
	p.next()
	return n
}

// path reads name, ns::name or ns::Name. class reports whether the last identifier starts with a capital, which is a
// fault unless classOK.
func (p *parser) path(classOK bool) (q QName, class bool) {
	first := p.tok
	if first.kind != tID && (first.kind != tCID || !classOK) {
		p.unexpected()
	}
	p.next()
	last, tight := first, true
	space := ""
	for last.kind == tID && p.tok.kind == tSep {
		tight = tight && p.tok.start == last.end
		p.link()
		sep := p.tok
		p.next()
		if p.tok.kind != tID && (p.tok.kind != tCID || !classOK) {
			p.unexpected()
		}
		tight = tight && p.tok.start == sep.end
		if tight {
			space = p.src[first.start:sep.start]
		} else {
			if space != "" {
				space += "::"
			}
			space += p.textOf(last)
		}
		last = p.tok
		p.next()
	}
	q = QName{Space: space, Base: p.textOf(last), Pos: Pos(first.start + 1), BasePos: Pos(last.start + 1)}
	if tight {
		q.Text = p.src[first.start:last.end]
	} else {
		q.Text = space + "::" + q.Base
	}
	return q, last.kind == tCID
}

// nsRef reads name or ns::name.
func (p *parser) nsRef() QName {
	q, _ := p.path(false)
	return q
}

// classRef reads Name or ns::Name. A namespace separated with dots is a fault of its own.
func (p *parser) classRef() QName {
	q, class := p.path(true)
	if class {
		return q
	}
	if p.tok.kind == tDot {
		var ref Ref = &VarRef{Name: q}
		p.attrs(ref)
	}
	p.unexpected()
	return q
}

// attrs reads the attributes behind a reference: .name.name. A name with a capital is a fault: a namespace separated with
// a dot.
func (p *parser) attrs(ref Ref) Ref {
	for p.tok.kind == tDot {
		dot := p.pos()
		p.link()
		p.next()
		switch p.tok.kind {
		case tID:
			ref = &AttrRef{X: ref, Dot: dot, Name: p.nameOf(p.tok)}
			p.next()
		case tCID:
			p.badNamespace(ref.Text()+"."+p.textOf(p.tok), Span{ref.Span().Start, p.spanOf(p.tok).End})
			panic(stop{})
		default:
			p.unexpected()
		}
	}
	return ref
}

func (p *parser) badNamespace(text string, at Span) {
	right := strings.ReplaceAll(text, ".", "::")
	p.report("InvalidNamespaceAccess", at, "Syntax error: invalid namespace access `%s`. Namespaces should be accessed with '::' "+
		"rather than '.'. The '.' separator is reserved for attribute and relation access. Did you mean: `%s`", text, right)
}

// doc reads a docstring.
func (p *parser) doc() *Literal {
	p.mark(markDoc)
	l := &Literal{Pos: p.pos(), EndPos: Pos(p.tok.end + 1), Kind: MultiLiteral}
	l.Value = stringValue(p.unescape(p.tok))
	p.next()
	return l
}

func (p *parser) optionalDoc() *Literal {
	if p.tok.kind != tMLS {
		return nil
	}
	return p.doc()
}

func (p *parser) entity() Stmt {
	s := &Entity{Pos: p.pos()}
	p.next()
	lower := p.tok.kind == tID
	if lower {
		s.Name = p.ident()
	} else {
		s.Name = p.declared(tCID)
	}
	if p.accept(tExtends) {
		s.Parents = append(s.Parents, p.classRef())
		for p.accept(tComma) {
			s.Parents = append(s.Parents, p.classRef())
		}
	}
	if p.tok.kind != tColon {
		p.unexpected()
	}
	if lower {
		p.report("ParserException", s.Name.Span(), "Syntax error: Invalid identifier: Entity names must start with a capital").
			Hint = "write entity " + capital(s.Name.Text) + ":"
	}
	p.mark(markOpen)
	p.next()
	p.mark(markLine)
	s.Doc = p.optionalDoc()
	for p.tok.kind != tEnd {
		p.mark(markLine)
		s.Attrs = append(s.Attrs, p.attribute())
	}
	p.mark(markLine | markClose)
	s.EndPos = Pos(p.tok.end + 1)
	p.next()
	return s
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (p *parser) attribute() *Attribute {
	a := &Attribute{}
	isDict := p.tok.kind == tDict
	switch p.tok.kind {
	case tDict:
		a.Type.Name = QName{Base: "dict", Text: "dict", Pos: p.pos(), BasePos: p.pos()}
		p.next()
	case tID:
		a.Type.Name = p.nsRef()
		if p.accept(tLbrack) {
			p.expect(tRbrack)
			a.Type.List = true
		}
	default:
		p.unexpected()
	}
	if p.accept(tQuestion) {
		a.Type.Optional = true
	}
	a.Type.EndPos = p.prevEnd()
	switch {
	case p.tok.kind == tID:
		a.Name = p.declared(tID)
	case p.tok.kind == tCID && !isDict:
		p.report("ParserException", p.spanOf(p.tok), "Syntax error: Invalid identifier: attribute names must start with a lower case character").
			Hint = "an attribute can not have an entity as its type; define a relation for that"
		a.Name = p.nameOf(p.tok)
		p.next()
	default:
		p.unexpected()
	}
	if p.accept(tAssign) {
		p.attributeDefault(a, isDict)
	}
	a.EndPos = p.prevEnd()
	return a
}

func (p *parser) attributeDefault(a *Attribute, isDict bool) {
	switch {
	case isDict && p.tok.kind == tLbrace:
		a.Default = p.dict()
	case isDict && p.tok.kind == tNull:
		if !a.Type.Optional {
			p.report("ParserException", a.Name.Span(), "Syntax error: null can not be assigned to dict, did you mean \"dict? %s = null\"", a.Name.Text)
		}
		a.Default = p.constant()
	case isDict:
		p.unexpected()
	case p.tok.kind == tUndef:
		a.Undef = true
		p.next()
	case p.tok.kind == tLbrack:
		l := &List{Pos: p.pos()}
		p.next()
		for p.tok.kind != tRbrack {
			l.Items = append(l.Items, p.mustConstant())
			if !p.accept(tComma) {
				break
			}
		}
		l.EndPos = Pos(p.tok.end + 1)
		p.expect(tRbrack)
		a.Default = l
	default:
		a.Default = p.mustConstant()
	}
}

func (p *parser) mustConstant() Expr {
	e := p.constant()
	if e == nil {
		p.unexpected()
	}
	return e
}

func (p *parser) implementation() Stmt {
	s := &Implementation{Pos: p.pos()}
	p.next()
	s.Name = p.declared(tID)
	p.expect(tFor)
	s.For = p.classRef()
	p.mark(markOpen)
	p.expect(tColon)
	p.mark(markLine)
	s.Doc = p.optionalDoc()
	s.Body = p.block()
	s.EndPos = p.end()
	return s
}

// block reads statements up to end, elif or else.
func (p *parser) block() []Stmt {
	p.enter()
	base := len(p.stmts)
	for p.tok.kind != tEnd && p.tok.kind != tElif && p.tok.kind != tElse {
		p.mark(markLine)
		s := p.stmt(false)
		p.stmts = append(p.stmts, s)
	}
	p.mark(markLine | markClose)
	p.leave()
	return take(&p.stmts, base)
}

// end reads the keyword end and returns the place behind it.
func (p *parser) end() Pos {
	p.expect(tEnd)
	return p.prevEnd()
}

func (p *parser) implement() Stmt {
	s := &Implement{Pos: p.pos()}
	p.next()
	s.Entity = p.classRef()
	p.expect(tUsing)
	for {
		if p.tok.kind == tParents {
			s.Parents = p.pos()
			p.next()
		} else {
			s.Using = append(s.Using, p.nsRef())
		}
		if !p.accept(tComma) {
			break
		}
	}
	if p.accept(tWhen) {
		s.When = p.expr()
		if s.Parents.Valid() {
			p.report("RuntimeException", s.Entity.Span(), "Conditional implementation with parents not allowed").
				Hint = "select the implementations of the parents in a statement of their own: implement " + s.Entity.Text + " using parents"
		}
	}
	s.Doc = p.optionalDoc()
	s.EndPos = p.prevEnd()
	return s
}

func (p *parser) typedef() Stmt {
	s := &Typedef{Pos: p.pos()}
	p.next()
	if p.tok.kind == tCID {
		p.defaultConstructor()
	}
	s.Name = p.declared(tID)
	p.expect(tAs)
	s.Base = p.nsRef()
	if p.tok.kind == tRegex {
		s.Constraint = p.regex()
	} else {
		p.expect(tMatching)
		s.Constraint = p.expr()
	}
	s.Doc = p.optionalDoc()
	s.EndPos = p.prevEnd()
	return s
}

// defaultConstructor reads typedef Name as Entity(...), which the language no longer has.
func (p *parser) defaultConstructor() {
	n := p.nameOf(p.tok)
	p.next()
	p.expect(tAs)
	q := p.classRef()
	if p.tok.kind != tLparen {
		p.unexpected()
	}
	p.construct(q)
	p.fail("ParserException", n.Span(), "Syntax error: The use of default constructors is no longer supported")
}

func (p *parser) index() Stmt {
	s := &Index{Pos: p.pos()}
	p.next()
	s.Entity = p.classRef()
	p.expect(tLparen)
	s.Attrs = append(s.Attrs, p.ident())
	for p.accept(tComma) {
		s.Attrs = append(s.Attrs, p.ident())
	}
	p.expect(tRparen)
	s.EndPos = p.prevEnd()
	return s
}

// stmt reads a statement that may stand in a block, or, at the top level, also a relation.
func (p *parser) stmt(top bool) Stmt {
	switch p.tok.kind {
	case tFor:
		return p.forStmt()
	case tIf:
		return p.ifStmt(false)
	case tID, tCID:
		q, class := p.path(true)
		if class {
			if top && p.tok.kind == tDot {
				return p.relation(q)
			}
			return &ExprStmt{X: p.tail(p.classExpr(q), 0)}
		}
		if p.tok.kind == tLparen {
			return &ExprStmt{X: p.tail(p.call(q), 0)}
		}
		ref := p.attrs(&VarRef{Name: q})
		if p.tok.kind == tAssign || p.tok.kind == tPlusEq {
			return p.assign(ref)
		}
		return &ExprStmt{X: p.tail(p.postfix(ref), 0)}
	}
	return &ExprStmt{X: p.expr()}
}

func (p *parser) assign(ref Ref) Stmt {
	s := &Assign{Target: ref, Op: p.pos(), Append: p.tok.kind == tPlusEq}
	p.next()
	s.Value = p.expr()
	if v, ok := ref.(*VarRef); ok {
		if s.Append {
			p.report("ParserException", v.Name.Span(), "Syntax error: Can not perform += on variable %s", v.Name.Text).
				Hint = "only relations can be added to, such as " + v.Name.Text + ".relation += value"
		}
		if strings.Contains(v.Name.Text, "-") {
			p.report("HyphenException", v.Name.Span(), "The use of '-' in identifiers is not allowed. please rename %s.", v.Name.Text)
		}
	}
	return s
}

func (p *parser) forStmt() Stmt {
	s := &For{Pos: p.pos()}
	p.next()
	s.Var = p.ident()
	p.expect(tIn)
	s.Iter = p.expr()
	p.mark(markOpen)
	p.expect(tColon)
	s.Body = p.block()
	s.EndPos = p.end()
	return s
}

func (p *parser) ifStmt(elif bool) Stmt {
	first := &If{Pos: p.pos(), Elif: elif}
	branches := []*If{first}
	s := first
	for {
		p.next()
		s.Cond = p.expr()
		p.mark(markOpen)
		s.Colon = p.expect(tColon)
		s.Then = p.block()
		if p.tok.kind != tElif {
			break
		}
		p.link()
		next := &If{Pos: p.pos(), Elif: true}
		s.Else = []Stmt{next}
		branches = append(branches, next)
		s = next
	}
	if p.accept(tElse) {
		p.mark(markOpen)
		p.expect(tColon)
		s.Else = p.block()
		if p.tok.kind != tEnd {
			p.unexpected()
		}
	}
	end := p.end()
	for _, b := range branches {
		b.EndPos = end
	}
	return first
}

// relation reads a relation whose left entity has been read.
func (p *parser) relation(left QName) Stmt {
	s := &Relation{Left: RelationEnd{Entity: left}}
	p.next()
	s.Left.Name = p.declared(tID)
	p.multiplicity(&s.Left)
	if p.tok.kind == tRel {
		s.Op = p.pos()
		p.next()
	} else {
		s.Annotations = append(s.Annotations, p.expr())
		for p.accept(tComma) {
			s.Annotations = append(s.Annotations, p.expr())
		}
	}
	s.Right.Entity = p.classRef()
	if p.accept(tDot) {
		s.Right.Name = p.declared(tID)
		p.multiplicity(&s.Right)
	}
	s.Doc = p.optionalDoc()
	s.EndPos = p.prevEnd()
	return s
}

// multiplicity reads [n], [n:], [:m] or [n:m].
func (p *parser) multiplicity(e *RelationEnd) {
	p.mark(markApart)
	p.expect(tLbrack)
	switch p.tok.kind {
	case tInt:
		e.Low = p.bound()
		e.High = e.Low
		if p.tok.kind == tColon {
			p.mark(markTight)
			p.next()
			e.High = Unbounded
			if p.tok.kind == tInt {
				e.High = p.bound()
			}
		}
	default:
		p.mark(markTight)
		p.expect(tColon)
		if p.tok.kind != tInt {
			p.unexpected()
		}
		e.High = p.bound()
	}
	p.expect(tRbrack)
}

// bound reads a bound of a multiplicity. Larger ones than any machine could hold are as good as the largest.
func (p *parser) bound() int {
	n := 0
	for _, c := range p.textOf(p.tok) {
		if c == '-' {
			p.fail("ParserException", p.spanOf(p.tok), "Syntax error: a multiplicity can not be negative")
		}
		n = min(n*10+int(c-'0'), math.MaxInt32)
	}
	p.next()
	return n
}
