package syntax

import (
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// The binding powers of operators. All binary operators group to the left; the conditional groups to the right.
const (
	precCond = 1 + iota
	precOr
	precAnd
	precCompare
	precAdd
	precMul
	precPow
	precNot // the prefix, and the infix not in
	precIn
	precAtom
)

type binary struct {
	op   BinaryOp
	prec int
}

// binaries are the operators by the kind of their first token; prec 0 means that the token is none.
var binaries = [tWhen + 1]binary{
	tOr:      {OpOr, precOr},
	tAnd:     {OpAnd, precAnd},
	tEq:      {OpEq, precCompare},
	tNe:      {OpNe, precCompare},
	tLt:      {OpLt, precCompare},
	tLe:      {OpLe, precCompare},
	tGt:      {OpGt, precCompare},
	tGe:      {OpGe, precCompare},
	tPlus:    {OpAdd, precAdd},
	tMinus:   {OpSub, precAdd},
	tStar:    {OpMul, precMul},
	tSlash:   {OpDiv, precMul},
	tPercent: {OpMod, precMul},
	tPow:     {OpPow, precPow},
	tNot:     {OpNotIn, precNot},
	tIn:      {OpIn, precIn},
}

// expr reads an expression.
func (p *parser) expr() Expr { return p.operand(precCond) }

// operand reads an expression whose operators bind at least as tightly as prec.
func (p *parser) operand(prec int) Expr {
	p.enter()
	e := p.tail(p.unary(), prec)
	p.leave()
	return e
}

// tail reads the operators behind an operand, as long as they bind at least as tightly as prec.
func (p *parser) tail(x Expr, prec int) Expr {
	for {
		if p.tok.kind == tQuestion && prec <= precCond {
			p.link()
			c := &Cond{If: x, Question: p.pos()}
			p.mark(markApart)
			p.next()
			c.Then = p.operand(precCond)
			p.mark(markApart)
			p.expect(tColon)
			c.Else = p.operand(precCond)
			x = c
			continue
		}
		b := binaries[p.tok.kind]
		if b.prec == 0 || b.prec < prec {
			return x
		}
		p.link()
		e := p.nodes.binary.New()
		e.X, e.Op, e.OpPos = x, b.op, p.pos()
		p.next()
		right := b.prec + 1
		if b.op == OpNotIn {
			p.expect(tIn)
			right = precAtom
		}
		e.Y = p.operand(right)
		x = e
	}
}

// unary reads an operand without the operators behind it.
func (p *parser) unary() Expr {
	if !p.query {
		return p.primary()
	}
	x := p.primary()
	for p.tok.kind == tDot {
		p.link()
		m := &Member{X: x, Dot: p.pos()}
		p.next()
		m.Name = p.ident()
		x = m
	}
	if _, ok := x.(*Member); ok && p.tok.kind == tIs {
		return p.isDefined(x)
	}
	return x
}

// primary reads an operand as models write it.
func (p *parser) primary() Expr {
	switch p.tok.kind {
	case tNot:
		e := &Not{Pos: p.pos()}
		p.next()
		e.X = p.operand(precIn)
		if p.tok.kind == tNot {
			// The prefix does not associate with the infix: not a not in b means nothing.
			p.unexpected()
		}
		return e
	case tID, tCID:
		q, class := p.path(true)
		if class {
			return p.classExpr(q)
		}
		return p.refExpr(q)
	case tLparen:
		p.next()
		e := p.expr()
		p.expect(tRparen)
		return e
	case tLbrack:
		return p.list()
	case tLbrace:
		return p.dict()
	}
	if e := p.constant(); e != nil {
		return e
	}
	p.unexpected()
	return nil
}

// refExpr reads what may follow a name: arguments, attributes, keys, is defined.
func (p *parser) refExpr(q QName) Expr {
	if p.tok.kind == tLparen {
		return p.call(q)
	}
	return p.postfix(p.attrs(p.varRef(q)))
}

// postfix reads what may follow a reference: keys, or is defined.
func (p *parser) postfix(ref Ref) Expr {
	attr, isAttr := ref.(*AttrRef)
	switch p.tok.kind {
	case tLparen:
		if isAttr {
			p.arguments()
			if !followsExpr(p.tok.kind) {
				p.unexpected()
			}
			p.badNamespace(ref.Text(), ref.Span())
		}
	case tLbrack:
		return p.lookup(ref, attr)
	case tIs:
		if v, ok := ref.(*VarRef); ok && v.Name.Space != "" {
			p.unexpected()
		}
		return p.isDefined(ref)
	}
	return ref
}

func (p *parser) isDefined(x Expr) Expr {
	e := &IsDefined{X: x, Is: p.pos()}
	p.next()
	p.expect(tDefined)
	e.EndPos = p.prevEnd()
	return e
}

// lookup reads [key] behind a reference, and more of them; or [name = value] behind an attribute.
func (p *parser) lookup(x Expr, attr *AttrRef) Expr {
	for p.tok.kind == tLbrack {
		p.link()
		open := p.pos()
		p.next()
		if attr != nil && (p.tok.kind == tPow || p.tok.kind == tRbrack) {
			return p.shortLookup(attr, open)
		}
		m := &MapLookup{X: x, Lbrack: open}
		if p.tok.kind == tID {
			q, class := p.path(true)
			if attr != nil && !class && q.Space == "" && p.tok.kind == tAssign {
				return p.shortLookupFrom(attr, open, Name{q.Text, q.Pos})
			}
			m.Key = p.continued(q, class)
		} else {
			m.Key = p.expr()
		}
		p.expect(tRbrack)
		m.EndPos = p.prevEnd()
		x, attr = m, nil
	}
	if p.tok.kind == tIs {
		return p.isDefined(x)
	}
	return x
}

// continued reads the rest of an expression that starts with a name.
func (p *parser) continued(q QName, class bool) Expr {
	p.enter()
	var x Expr
	if class {
		x = p.classExpr(q)
	} else {
		x = p.refExpr(q)
	}
	x = p.tail(x, precCond)
	p.leave()
	return x
}

func (p *parser) shortLookup(attr *AttrRef, open Pos) Expr {
	e := &ShortLookup{X: attr, Lbrack: open}
	e.Args = p.keywords(nil, tRbrack)
	e.EndPos = p.prevEnd()
	return e
}

// shortLookupFrom reads a short lookup whose first name has been read.
func (p *parser) shortLookupFrom(attr *AttrRef, open Pos, first Name) Expr {
	e := &ShortLookup{X: attr, Lbrack: open}
	p.next()
	args := []Arg{{Name: first, Value: p.expr()}}
	if p.accept(tComma) {
		e.Args = p.keywords(args, tRbrack)
	} else {
		p.expect(tRbrack)
		e.Args = args
	}
	e.EndPos = p.prevEnd()
	return e
}

// classExpr reads what must follow the name of an entity in an expression: arguments, or an index.
func (p *parser) classExpr(q QName) Expr {
	switch p.tok.kind {
	case tLparen:
		return p.construct(q)
	case tLbrack:
		e := &IndexLookup{Type: q, Lbrack: p.pos()}
		p.next()
		e.Args = p.keywords(nil, tRbrack)
		e.EndPos = p.prevEnd()
		return e
	}
	p.unexpected()
	return nil
}

func (p *parser) construct(q QName) Expr {
	e := p.nodes.construct.New()
	e.Type, e.Lparen = q, p.pos()
	p.next()
	e.Args = p.keywords(nil, tRparen)
	e.EndPos = p.prevEnd()
	if a := repeated(e.Args); a != nil {
		p.report("RuntimeException", p.sameLine(e.Place(), a.Name), "The attribute %s in the constructor call of %s is already set.", a.Name.Text, q.Text)
	}
	return e
}

// sameLine is the place of a name if that is on the line on which the language reports a fault, else the place that it prescribes.
func (p *parser) sameLine(at Place, n Name) Span {
	if p.file.Line(n.Pos) == p.file.Line(at.Start) {
		return n.Span()
	}
	return at.Span
}

// repeated is the first argument whose name an earlier one has; nil when there is none.
func repeated(args []Arg) *Arg {
	for i := range args {
		for j := range args[:i] {
			if args[i].Name.Valid() && args[i].Name.Text == args[j].Name.Text {
				return &args[i]
			}
		}
	}
	return nil
}

// keywords reads name = value and **value up to the closing token, and that. Arguments that have been read already go first.
func (p *parser) keywords(args []Arg, closing kind) []Arg {
	base := len(p.args)
	p.args = append(p.args, args...)
	for p.tok.kind != closing {
		var a Arg
		if p.tok.kind == tPow {
			a.Unpack = p.pos()
			p.next()
		} else {
			a.Name = p.ident()
			p.expect(tAssign)
		}
		a.Value = p.expr()
		p.args = append(p.args, a)
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(closing)
	return take(&p.args, base)
}

// take removes the items from base on from a stack and returns them in a slice of their own; nil when there are none. Lists
// whose length is not known beforehand are gathered on a stack, so that they take up no more than they need.
func take[T any](stack *[]T, base int) []T {
	items := (*stack)[base:]
	if len(items) == 0 {
		return nil
	}
	out := make([]T, len(items))
	copy(out, items)
	clear(items)
	*stack = (*stack)[:base]
	return out
}

func (p *parser) call(q QName) Expr {
	e := p.nodes.call.New()
	e.Func, e.Lparen = q, p.pos()
	e.Args = p.arguments()
	e.EndPos = p.prevEnd()
	if a := repeated(e.Args); a != nil {
		p.report("RuntimeException", p.sameLine(e.Place(), a.Name), "Keyword argument %s repeated in function call %s()", a.Name.Text, q.Text)
	}
	return e
}

// arguments reads the parentheses of a call and what is between them.
func (p *parser) arguments() []Arg {
	p.next()
	base := len(p.args)
	for p.tok.kind != tRparen {
		a := p.argument()
		p.args = append(p.args, a)
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(tRparen)
	return take(&p.args, base)
}

func (p *parser) argument() Arg {
	switch p.tok.kind {
	case tPow:
		a := Arg{Unpack: p.pos()}
		p.next()
		a.Value = p.expr()
		return a
	case tID:
		q, class := p.path(true)
		if !class && q.Space == "" && p.tok.kind == tAssign {
			p.next()
			return Arg{Name: Name{q.Text, q.Pos}, Value: p.expr()}
		}
		return Arg{Value: p.continued(q, class)}
	}
	return Arg{Value: p.expr()}
}

// list reads a list or a list comprehension.
func (p *parser) list() Expr {
	open := p.pos()
	p.next()
	base := len(p.items)
	for p.tok.kind != tRbrack {
		x := p.expr()
		if len(p.items) == base && p.tok.kind == tFor {
			return p.comprehension(open, x)
		}
		p.items = append(p.items, x)
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(tRbrack)
	e := p.nodes.list.New()
	e.Pos, e.EndPos, e.Items = open, p.prevEnd(), take(&p.items, base)
	return e
}

func (p *parser) comprehension(open Pos, x Expr) Expr {
	e := &ListComp{Pos: open, Value: x}
	for p.tok.kind == tFor {
		p.link()
		f := CompFor{Pos: p.pos()}
		p.next()
		f.Var = p.ident()
		p.expect(tIn)
		f.Iter = p.expr()
		e.Fors = append(e.Fors, f)
	}
	for p.accept(tIf) {
		e.Conds = append(e.Conds, p.expr())
	}
	p.expect(tRbrack)
	e.EndPos = p.prevEnd()
	return e
}

func (p *parser) dict() Expr {
	e := p.nodes.dict.New()
	e.Pos = p.pos()
	p.next()
	base := len(p.entries)
	for p.tok.kind != tRbrace {
		key := p.key()
		p.expect(tColon)
		x := p.expr()
		p.entries = append(p.entries, DictEntry{key, x})
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(tRbrace)
	e.Entries = take(&p.entries, base)
	e.EndPos = p.prevEnd()
	p.checkKeys(e.Entries)
	return e
}

// key reads the key of a dictionary entry.
func (p *parser) key() *Literal {
	if p.tok.kind != tString && p.tok.kind != tRString {
		p.unexpected()
	}
	l := p.literal(p.tok, RawLiteral)
	if p.tok.kind == tString {
		l.Kind = StringLiteral
		text := p.unescape(p.tok)
		if hole, _ := findHole(text, 0); hole >= 0 {
			p.report("ParserException", p.spanOf(p.tok), "Syntax error: String interpolation is not supported in dictionary keys. "+
				"Use raw string to use a key containing double curly brackets")
		}
		l.Value = stringValue(text)
	} else {
		l.Value = stringValue(p.rawText(p.tok))
	}
	p.next()
	return l
}

// manyKeys is the size from which a map finds doubled keys faster than comparing each with each.
const manyKeys = 12

// checkKeys complains about keys that occur twice, at the later one.
func (p *parser) checkKeys(entries []DictEntry) {
	if len(entries) < manyKeys {
		for j := range entries {
			for i := range entries[:j] {
				if entries[i].Key.Value == entries[j].Key.Value {
					p.duplicate(entries[i].Key, entries[j])
					break
				}
			}
		}
		return
	}
	first := make(map[value.Value]*Literal, len(entries))
	for i := range entries {
		key := entries[i].Key
		if old, ok := first[key.Value]; ok {
			p.duplicate(old, entries[i])
			continue
		}
		first[key.Value] = key
	}
}

// duplicate complains about a doubled key. The reference has the fault at the value: where that stands on another line, so do we.
func (p *parser) duplicate(first *Literal, later DictEntry) {
	at := later.Key.Span()
	if place := later.Value.Place().Span; p.file.Range(place).Start.Line != p.file.Range(at).Start.Line {
		at = place
	}
	d := p.report("DuplicateException", at, "duplicate key in dict %s", value.Str(later.Key.Value))
	*d = d.WithRelated(p.file.Range(first.Span()), "the key is given here already")
}

// constant reads a literal, a string with references in it or a regular expression; nil when the token starts none.
func (p *parser) constant() Expr {
	t := p.tok
	var v value.Value
	var k LiteralKind
	switch t.kind {
	case tString, tMLS:
		return p.stringExpr()
	case tFString:
		return p.formatString()
	case tRegex:
		return p.regex()
	case tNull:
		v = value.Null{}
	case tTrue, tFalse:
		k, v = BoolLiteral, value.Bool(t.kind == tTrue)
	case tInt:
		k, v = NumberLiteral, p.integer(t)
	case tFloat:
		k, v = NumberLiteral, float(p.textOf(t))
	case tRString:
		k, v = RawLiteral, stringValue(p.rawText(t))
	default:
		return nil
	}
	l := p.literal(t, k)
	l.Value = v
	p.next()
	return l
}

// show is a token as messages name it: a constant by its value, everything else as written.
func (p *parser) show(t token) string {
	switch t.kind {
	case tInt:
		return value.Str(integerValue(p.textOf(t)))
	case tFloat:
		return value.Str(float(p.textOf(t)))
	case tRString:
		return p.rawText(t)
	case tString, tMLS, tFString:
		text, _, _ := value.Unescape(p.body(t))
		return text
	case tRegex:
		text := p.textOf(t)
		return text[strings.IndexByte(text, '/'):]
	default:
		return p.textOf(t)
	}
}
