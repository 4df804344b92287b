package syntax

import (
	"math"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

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
	if p.accept(tAs) {
		s.Alias = p.ident()
		defer p.checkHyphen(s.Alias)
	}
	if strings.Contains(s.Name.Text, "-") {
		p.report("CompilerException", s.Name.Span(), "%s is not a valid module name: hyphens are not allowed, please use underscores instead.", s.Name.Text)
	}
	return s
}

// checkHyphen complains about hyphens in the name of a definition. It is called when the definition has been read, also when that
// failed: what is wrong with a name comes behind what is wrong with the rest, as the reference has it.
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

// doc reads a docstring.
func (p *parser) doc() *Literal {
	p.mark(markDoc)
	l := p.literal(p.tok, MultiLiteral)
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
	p.begins()
	p.next()
	lower := p.tok.kind == tID
	if lower {
		s.Name = p.ident()
	} else {
		s.Name = p.nameOf(p.tok)
		p.expect(tCID)
	}
	if p.accept(tExtends) {
		p.head(func() {
			s.Parents = p.parents()
		})
	}
	if p.tok.kind != tColon {
		p.wanted = tColon
		p.unexpected()
	}
	// What is wrong with the name comes behind what is wrong with the rest, as the reference has it.
	checkName := func() {
		if lower {
			p.report("ParserException", s.Name.Span(), "Syntax error: Invalid identifier: Entity names must start with a capital").
				Hint = "write entity " + capital(s.Name.Text) + ":"
		}
		p.checkHyphen(s.Name)
	}
	p.mark(markOpen)
	p.next()
	p.mark(markLine)
	s.Doc = p.optionalDoc()
	for p.tok.kind != tEnd {
		if p.abandoned() {
			checkName()
			s.EndPos = p.leaveOpen()
			return s
		}
		p.mark(markLine)
		p.part(func() { s.Attrs = append(s.Attrs, p.attribute()) })
	}
	p.mark(markLine | markClose)
	s.EndPos = Pos(p.tok.end + 1)
	p.ends()
	checkName()
	p.next()
	return s
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (p *parser) attribute() *Attribute {
	a := p.nodes.attribute.New()
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
	case tCID:
		p.unexpectedHint("the type of an attribute can not be an entity; define a relation instead")
	default:
		p.unexpected()
	}
	if p.accept(tQuestion) {
		a.Type.Optional = true
	}
	a.Type.EndPos = p.prevEnd()
	switch {
	case p.tok.kind == tID:
		a.Name = p.ident()
		defer p.checkHyphen(a.Name)
	case p.tok.kind == tCID && !isDict:
		a.Name = p.nameOf(p.tok)
		p.next()
		switch p.tok.kind {
		case tID, tDict, tEnd, tAssign:
		default:
			p.unexpected()
		}
		p.report("ParserException", a.Name.Span(), "Syntax error: Invalid identifier: attribute names must start with a lower case character").
			Hint = "an attribute can not have an entity as its type; define a relation for that"
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
		l := p.nodes.list.New()
		l.Pos = p.pos()
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
	p.begins()
	p.next()
	s.Name = p.ident()
	defer p.checkHyphen(s.Name)
	p.head(func() {
		p.expect(tFor)
		s.For = p.classRef()
	})
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
	for {
		switch p.tok.kind {
		case tEnd, tElif, tElse:
			if p.stray() {
				p.next()
				continue
			}
		default:
			if !p.abandoned() {
				p.mark(markLine)
				p.part(func() {
					s := p.stmt(false)
					p.stmts = append(p.stmts, s)
				})
				continue
			}
		}
		break
	}
	p.mark(markLine | markClose)
	p.leave()
	return take(&p.stmts, base)
}

// end reads the keyword end and returns the place behind it.
func (p *parser) end() Pos {
	if p.abandoned() {
		return p.leaveOpen()
	}
	if p.tok.kind != tEnd {
		p.unexpected()
	}
	p.ends()
	p.next()
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
		if l, ok := s.When.(*Literal); s.Parents.Valid() && (!ok || l.Kind != BoolLiteral || l.Value != value.Bool(true)) {
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
	s.Name = p.ident()
	defer p.checkHyphen(s.Name)
	p.expect(tAs)
	s.Base = p.nsRef()
	if p.tok.kind == tRegex {
		s.Constraint = p.regex()
	} else {
		p.expect(tMatching)
		s.Constraint = p.expr()
		if !mentions(s.Constraint, "self") && !mentions(s.Constraint, s.Name.Text) {
			p.report("TypingException", s.Name.Span(), "typedef expressions should reference the self variable")
		}
	}
	s.Doc = p.optionalDoc()
	s.EndPos = p.prevEnd()
	return s
}

// mentions reports whether an expression needs the variable of that name for its value. Whether something is defined and the
// conditions of a comprehension do not count, nor does the variable of a comprehension itself: the language has it so.
func mentions(x Expr, name string) bool {
	found := false
	Walk(x, func(n Node) bool {
		switch n := n.(type) {
		case *VarRef:
			found = found || n.Name.Text == name
		case *Regex: // matches the value
			found = found || name == "self"
		case *IsDefined:
			return false
		case *ListComp:
			own := slices.ContainsFunc(n.Fors, func(f CompFor) bool { return f.Var.Text == name })
			found = found || !own && mentions(n.Value, name)
			for _, f := range n.Fors {
				found = found || mentions(f.Iter, name)
			}
			return false
		}
		return !found
	})
	return found
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
		return p.ifStmt()
	case tID, tCID:
		q, class := p.path(true)
		if class {
			if top && p.tok.kind == tDot {
				return p.relation(q)
			}
			return p.exprStmt(p.tail(p.classExpr(q), 0))
		}
		if p.tok.kind == tLparen {
			return p.exprStmt(p.tail(p.call(q), 0))
		}
		ref := p.attrs(p.varRef(q))
		if p.tok.kind == tAssign || p.tok.kind == tPlusEq {
			return p.assign(ref)
		}
		return p.exprStmt(p.tail(p.postfix(ref), 0))
	}
	return p.exprStmt(p.expr())
}

func (p *parser) assign(ref Ref) Stmt {
	s := p.nodes.assign.New()
	s.Target, s.Op, s.Append = ref, p.pos(), p.tok.kind == tPlusEq
	p.next()
	s.Value = p.expr()
	if v, ok := ref.(*VarRef); ok && followsStmt(p.tok.kind) {
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
	p.begins()
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

func (p *parser) ifStmt() Stmt {
	first := &If{Pos: p.pos()}
	p.begins()
	branches := []*If{first}
	s := first
	for {
		p.next()
		p.condition = true
		s.Cond = p.expr()
		p.mark(markOpen)
		s.Colon = p.expect(tColon)
		p.condition = false
		s.Then = p.block()
		if p.tok.kind != tElif || p.abandoned() {
			break
		}
		p.link()
		next := &If{Pos: p.pos(), Elif: true}
		s.Else = []Stmt{next}
		branches = append(branches, next)
		s = next
	}
	if p.tok.kind == tElse && !p.abandoned() {
		p.next()
		p.mark(markOpen)
		p.expect(tColon)
		s.Else = p.block()
		if p.tok.kind != tEnd && !p.abandoned() {
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
	s := &Relation{Left: RelationEnd{Entity: left}, Dot: p.pos()}
	p.next()
	s.Left.Name = p.ident()
	defer func() {
		p.checkHyphen(s.Left.Name)
		p.checkHyphen(s.Right.Name)
	}()
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
		s.Right.Name = p.ident()
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

// bound reads a bound of a multiplicity. Larger ones than any machine could hold are as good as the largest, and negative ones,
// which the language has, as good as none at all.
func (p *parser) bound() int {
	text := p.textOf(p.tok)
	n := 0
	for _, c := range strings.TrimPrefix(text, "-") {
		n = min(n*10+int(c-'0'), math.MaxInt32)
	}
	if text[0] == '-' {
		n = 0
	}
	p.next()
	return n
}
