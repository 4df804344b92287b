package template

import (
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

type tupleOptions struct {
	noCond bool
	end    string
	parens bool
}

// tuple reads an expression, or several with commas between them.
func (p *parser) tuple(o tupleOptions) expr {
	p.enter()
	defer p.leave()
	t := p.cur()
	var items []expr
	tuple := false
	for {
		if c := p.cur(); c.kind == tokVariableEnd || c.kind == tokBlockEnd || p.isOp(")") || o.end != "" && p.isName(o.end) {
			break
		}
		if o.noCond {
			items = append(items, p.or())
		} else {
			items = append(items, p.expression())
		}
		if !p.skipOp(",") {
			break
		}
		tuple = true
	}
	if !tuple {
		if len(items) == 1 {
			return items[0]
		}
		if !o.parens {
			syntaxError(t.line, "Expected an expression, got '%s'", p.cur())
		}
	}
	return &listExpr{place: p.from(t), items: items, tuple: true}
}

func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	t := p.cur()
	first := len(p.calls)
	e := p.or()
	for p.skipName("if") {
		p.calls = p.calls[:first] // what stands before the condition is soft as well
		c := &condExpr{yes: e}
		p.within(true, func() {
			c.cond = p.or()
			if p.skipName("else") {
				c.no = p.expression()
			}
		})
		c.place = p.from(t)
		e = c
	}
	return e
}

// binary reads a chain of left-associative operators.
func (p *parser) binary(operand func() expr, accept func() (string, bool)) expr {
	t := p.cur()
	left := operand()
	for n := 0; ; n++ {
		op, ok := accept()
		if !ok {
			return left
		}
		if n > 10*maxDepth {
			syntaxError(t.line, "the expression is too long")
		}
		right := operand()
		left = &binaryExpr{op: op, left: left, right: right, place: p.from(t)}
	}
}

func (p *parser) ops(ops ...string) func() (string, bool) {
	return func() (string, bool) {
		for _, op := range ops {
			if p.skipOp(op) {
				return op, true
			}
		}
		return "", false
	}
}

func (p *parser) or() expr {
	return p.binary(p.and, func() (string, bool) { return "or", p.skipName("or") })
}

func (p *parser) and() expr {
	return p.binary(p.not, func() (string, bool) { return "and", p.skipName("and") })
}

func (p *parser) not() expr {
	t := p.cur()
	if p.skipName("not") {
		p.enter()
		defer p.leave()
		return &unaryExpr{op: "not", node: p.not(), place: p.from(t)}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	t := p.cur()
	c := &compareExpr{first: p.sum()}
	for {
		op, ok := p.ops("==", "!=", "<=", ">=", "<", ">")()
		switch {
		case ok:
		case p.skipName("in"):
			op = "in"
		case p.isName("not") && p.tokens[p.i+1].kind == tokName && p.tokens[p.i+1].text == "in":
			p.i += 2
			op = "not in"
		default:
			if len(c.ops) == 0 {
				return c.first
			}
			c.place = p.from(t)
			return c
		}
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
}

func (p *parser) sum() expr { return p.binary(p.concat, p.ops("+", "-")) }

func (p *parser) concat() expr {
	t := p.cur()
	items := []expr{p.product()}
	for p.skipOp("~") {
		items = append(items, p.product())
	}
	if len(items) == 1 {
		return items[0]
	}
	return &concatExpr{items: items, place: p.from(t)}
}

func (p *parser) product() expr { return p.binary(p.power, p.ops("*", "//", "/", "%")) }

func (p *parser) power() expr {
	return p.binary(func() expr { return p.unary(true) }, p.ops("**"))
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	t := p.cur()
	var e expr
	if op, ok := p.ops("-", "+")(); ok {
		e = &unaryExpr{op: op, node: p.unary(false), place: p.from(t)}
	} else {
		e = p.primary()
	}
	e = p.postfix(e, t)
	if filters {
		e = p.filters(e, t)
	}
	return e
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return &constExpr{place: p.from(t), value: value.Bool(true)}
		case "false", "False":
			return &constExpr{place: p.from(t), value: value.Bool(false)}
		case "none", "None":
			return &constExpr{place: p.from(t), value: value.Null{}}
		}
		if len(p.uses) > 0 {
			p.uses[len(p.uses)-1][t.text] = true
		}
		return &nameExpr{place: p.from(t), name: t.text}
	case tokString:
		s := t.value.(value.String)
		for p.cur().kind == tokString {
			s += p.next().value.(value.String)
		}
		return &constExpr{place: p.from(t), value: s}
	case tokInteger, tokFloat:
		return &constExpr{place: p.from(t), value: t.value}
	case tokOperator:
		switch t.text {
		case "(":
			e := p.tuple(tupleOptions{parens: true})
			p.expectOp(")")
			return e
		case "[":
			l := &listExpr{}
			for !p.isOp("]") {
				if len(l.items) > 0 {
					p.expectOp(",")
					if p.isOp("]") {
						break
					}
				}
				l.items = append(l.items, p.expression())
			}
			p.expectOp("]")
			l.place = p.from(t)
			return l
		case "{":
			d := &dictExpr{}
			for !p.isOp("}") {
				if len(d.keys) > 0 {
					p.expectOp(",")
					if p.isOp("}") {
						break
					}
				}
				d.keys = append(d.keys, p.expression())
				p.expectOp(":")
				d.values = append(d.values, p.expression())
			}
			p.expectOp("}")
			d.place = p.from(t)
			return d
		}
	case tokEOF:
		p.endOfTemplate(t, "an expression")
	}
	syntaxError(t.line, "unexpected '%s'", t)
	return nil
}

func (p *parser) postfix(e expr, t token) expr {
	for {
		switch {
		case p.isOp(".") || p.isOp("["):
			e = p.subscript(e, t)
		case p.isOp("("):
			args := p.arguments()
			e = &callExpr{node: e, args: args, place: p.from(t)}
		default:
			return e
		}
	}
}

func (p *parser) subscript(e expr, t token) expr {
	if p.skipOp(".") {
		a := p.next()
		switch a.kind {
		case tokName:
			return &attrExpr{node: e, name: a.text, place: p.from(t)}
		case tokInteger:
			return &itemExpr{node: e, index: &constExpr{place: p.from(a), value: a.value}, place: p.from(t)}
		}
		syntaxError(a.line, "expected name or number")
	}
	p.expectOp("[")
	var items []expr
	for !p.isOp("]") {
		if len(items) > 0 {
			p.expectOp(",")
		}
		items = append(items, p.subscribed())
	}
	p.expectOp("]")
	if len(items) == 1 {
		return &itemExpr{node: e, index: items[0], place: p.from(t)}
	}
	return &itemExpr{node: e, index: &listExpr{items: items, tuple: true, place: p.from(t)}, place: p.from(t)}
}

func (p *parser) subscribed() expr {
	t := p.cur()
	s := &sliceExpr{}
	if !p.isOp(":") {
		e := p.expression()
		if !p.isOp(":") {
			return e
		}
		s.start = e
	}
	p.expectOp(":")
	ends := func() bool { return p.isOp("]") || p.isOp(",") || p.isOp(":") }
	if !ends() {
		s.stop = p.expression()
	}
	if p.skipOp(":") && !ends() {
		s.step = p.expression()
	}
	s.place = p.from(t)
	return s
}

func (p *parser) arguments() arguments {
	t := p.expectOp("(")
	var a arguments
	invalid := func(bad bool) {
		if bad {
			syntaxError(t.line, "invalid syntax for function call expression")
		}
	}
	for n := 0; !p.isOp(")"); n++ {
		if n > 0 {
			p.expectOp(",")
			if p.isOp(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			invalid(a.star != nil || a.starStar != nil)
			a.star = p.expression()
		case p.skipOp("**"):
			invalid(a.starStar != nil)
			a.starStar = p.expression()
		case p.cur().kind == tokName && p.tokens[p.i+1].kind == tokOperator && p.tokens[p.i+1].text == "=":
			invalid(a.starStar != nil)
			a.names = append(a.names, p.next().text)
			p.next()
			a.named = append(a.named, p.expression())
		default:
			invalid(a.star != nil || a.starStar != nil || len(a.names) > 0)
			a.positional = append(a.positional, p.expression())
		}
	}
	p.expectOp(")")
	return a
}

// dotted reads a name that may have dots in it.
func (p *parser) dotted() string {
	var name strings.Builder
	name.WriteString(p.identifier())
	for p.skipOp(".") {
		name.WriteString("." + p.identifier())
	}
	return name.String()
}

// filters reads filters and tests after an expression. Without an expression it reads the filters of a block.
func (p *parser) filters(e expr, t token) expr {
	for n := 0; ; n++ {
		if n > 10*maxDepth {
			syntaxError(t.line, "the expression is too long")
		}
		switch {
		case p.isOp("|") || e == nil:
			p.skipOp("|")
			f := &filterExpr{node: e, name: p.dotted()}
			p.note(f.name, false, t.line)
			if p.isOp("(") {
				f.args = p.arguments()
			}
			f.place = p.from(t)
			e = f
		case p.isName("is"):
			p.next()
			e = p.test(e, t)
		case p.isOp("("):
			args := p.arguments()
			e = &callExpr{node: e, args: args, place: p.from(t)}
		default:
			return e
		}
	}
}

func (p *parser) test(e expr, t token) expr {
	negated := p.skipName("not")
	x := &testExpr{node: e, name: p.dotted()}
	p.note(x.name, true, t.line)
	c := p.cur()
	switch {
	case p.isOp("("):
		x.args = p.arguments()
	case c.kind == tokString || c.kind == tokInteger || c.kind == tokFloat || p.isOp("[") || p.isOp("{") ||
		c.kind == tokName && !slices.Contains([]string{"else", "or", "and"}, c.text):
		if p.isName("is") {
			syntaxError(c.line, "You cannot chain multiple tests with is")
		}
		a := p.postfix(p.primary(), c)
		x.args.positional = []expr{a}
	}
	x.place = p.from(t)
	if negated {
		return &unaryExpr{op: "not", node: x, place: x.place}
	}
	return x
}
