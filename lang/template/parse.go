package template

import (
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// maxDepth bounds the nesting of statements and expressions in a template.
const maxDepth = 200

type parser struct {
	tokens []token
	i      int
	depth  int
	source string
	blocks map[string]*blockStmt
	// open are the tags of the blocks around the current place, for messages.
	open []string
	// soft is set where a filter that does not exist is no fault until it is used.
	soft bool
	// calls are the filters and tests that must exist.
	calls []filterUse
	// uses collects the names that are read, for each macro around the current place.
	uses []map[string]bool
}

// filterUse is a use of a filter or a test.
type filterUse struct {
	name string
	test bool
	line int
}

// note remembers the use of a filter or a test.
func (p *parser) note(name string, test bool, line int) {
	if !p.soft {
		p.calls = append(p.calls, filterUse{name, test, line})
	}
}

// within reads a part with soft set to a value.
func (p *parser) within(soft bool, read func()) {
	outer := p.soft
	p.soft = soft
	read()
	p.soft = outer
}

// parse reads a template. Errors are [*Error] without the name of the template.
func parse(source string) (t *parsed, err error) {
	defer caught(&err)
	p := &parser{tokens: lex(source), source: normalized(source), blocks: map[string]*blockStmt{}}
	body := p.body(nil)
	return &parsed{source: p.source, body: body, blocks: p.blocks, calls: p.calls}, nil
}

func (p *parser) cur() token { return p.tokens[p.i] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

func (p *parser) isOp(op string) bool { t := p.cur(); return t.kind == tokOperator && t.text == op }
func (p *parser) isName(name string) bool {
	t := p.cur()
	return t.kind == tokName && t.text == name
}

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.i++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.i++
		return true
	}
	return false
}

func (p *parser) unexpected(want string) {
	t := p.cur()
	if t.kind == tokEOF {
		p.endOfTemplate(t, want)
	}
	syntaxError(t.line, "expected token '%s', got '%s'", want, t)
}

// endOfTemplate reports that a tag or a block is not closed.
func (p *parser) endOfTemplate(t token, want string) {
	if len(p.open) > 0 {
		syntaxError(t.line, "Unexpected end of template. Jinja was looking for the following tags: %s. The innermost block that needs to be closed is '%s'.",
			want, p.open[len(p.open)-1])
	}
	syntaxError(t.line, "unexpected end of template, expected '%s'.", want)
}

func (p *parser) expectOp(op string) token {
	if !p.isOp(op) {
		p.unexpected(op)
	}
	return p.next()
}

func (p *parser) expectName(name string) {
	if !p.skipName(name) {
		p.unexpected(name)
	}
}

func (p *parser) identifier() string {
	if p.cur().kind != tokName {
		p.unexpected("name")
	}
	return p.next().text
}

func (p *parser) expectKind(k tokenKind, want string) {
	if p.cur().kind != k {
		p.unexpected(want)
	}
	p.next()
}

// from is the place that starts with t and ends where the parser is.
func (p *parser) from(t token) place {
	end := t.end
	if p.i > 0 {
		end = max(end, p.tokens[p.i-1].end)
	}
	return place{line: t.line, start: t.start, end: end}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		syntaxError(p.cur().line, "the template is nested too deeply")
	}
}

func (p *parser) leave() { p.depth-- }

// body reads statements up to a tag whose name is in ends, without reading that name. Without ends it reads to the end of the
// template.
func (p *parser) body(ends []string) []stmt {
	p.enter()
	defer p.leave()
	var out []stmt
	for {
		t := p.next()
		switch t.kind {
		case tokEOF:
			if ends != nil {
				p.endOfTemplate(t, "'"+strings.Join(ends, "' or '")+"'")
			}
			return out
		case tokData:
			out = append(out, &textStmt{place: p.from(t), text: t.text})
		case tokVariableBegin:
			e := p.tuple(tupleOptions{})
			out = append(out, &outputStmt{place: e.at(), value: e})
			p.expectKind(tokVariableEnd, "end of print statement")
		default: // tokBlockBegin
			if p.cur().kind == tokName && slices.Contains(ends, p.cur().text) {
				return out
			}
			out = append(out, p.statement()...)
			p.expectKind(tokBlockEnd, "end of statement block")
		}
	}
}

// block reads the rest of a tag and the statements up to one of ends, and gives the name of the end.
func (p *parser) block(ends ...string) (body []stmt, end string) {
	p.skipOp(":")
	p.expectKind(tokBlockEnd, "end of statement block")
	body = p.body(ends)
	return body, p.next().text
}

func (p *parser) statement() []stmt {
	t := p.cur()
	if t.kind != tokName {
		if t.kind == tokEOF {
			p.endOfTemplate(t, "tag name")
		}
		syntaxError(t.line, "tag name expected")
	}
	p.next()
	p.open = append(p.open, t.text)
	defer func() { p.open = p.open[:len(p.open)-1] }()
	switch t.text {
	case "for":
		return []stmt{p.forLoop(t)}
	case "if":
		return []stmt{p.condition(t)}
	case "set":
		return []stmt{p.set(t)}
	case "with":
		return []stmt{p.with(t)}
	case "macro":
		return []stmt{p.macro(t)}
	case "call":
		return []stmt{p.callBlock(t)}
	case "filter":
		f := p.filters(nil, t)
		body, _ := p.block("endfilter")
		return []stmt{&filterStmt{place: p.from(t), filter: f, body: body}}
	case "include":
		return []stmt{p.include(t)}
	case "import":
		template := p.expression()
		p.expectName("as")
		target := p.target(false)
		name, ok := target.(*nameExpr)
		if !ok {
			syntaxError(t.line, "expected a name after as")
		}
		return []stmt{&importStmt{place: p.from(t), template: template, target: name.name, withContext: p.context(false)}}
	case "from":
		return []stmt{p.fromImport(t)}
	case "extends":
		return []stmt{&extendsStmt{template: p.expression(), place: p.from(t)}}
	case "block":
		return []stmt{p.namedBlock(t)}
	case "autoescape":
		v := p.expression()
		body, _ := p.block("endautoescape")
		return []stmt{&autoescapeStmt{place: p.from(t), value: v, body: body}}
	case "print":
		var out []stmt
		for p.cur().kind != tokBlockEnd {
			if out != nil {
				p.expectOp(",")
			}
			e := p.expression()
			out = append(out, &outputStmt{place: e.at(), value: e})
		}
		return out
	}
	p.open = p.open[:len(p.open)-1]
	if len(p.open) > 0 {
		inner := p.open[len(p.open)-1]
		p.open = append(p.open, "")
		syntaxError(t.line, "Encountered unknown tag '%s'. The innermost block that needs to be closed is '%s'.", t.text, inner)
	}
	p.open = append(p.open, "")
	syntaxError(t.line, "Encountered unknown tag '%s'.", t.text)
	return nil
}

func (p *parser) forLoop(t token) stmt {
	s := &forStmt{}
	s.target = p.targets("in")
	p.expectName("in")
	s.iter = p.tuple(tupleOptions{noCond: true, end: "recursive"})
	collect := map[string]bool{}
	p.uses = append(p.uses, collect)
	if p.skipName("if") {
		s.filter = p.expression()
	}
	s.recursive = p.skipName("recursive")
	var end string
	p.within(false, func() { s.body, end = p.block("endfor", "else") })
	p.uses = p.uses[:len(p.uses)-1]
	p.spread(collect)
	if end == "else" {
		p.within(false, func() { s.otherwise, _ = p.block("endfor") })
	}
	s.usesLoop = collect["loop"]
	s.place = p.from(t)
	return s
}

// spread passes the names that an inner part reads on to the part around it.
func (p *parser) spread(names map[string]bool) {
	if len(p.uses) == 0 {
		return
	}
	for n := range names {
		p.uses[len(p.uses)-1][n] = true
	}
}

func (p *parser) condition(t token) (s stmt) {
	p.within(true, func() { s = p.ifParts(t) })
	return s
}

func (p *parser) ifParts(t token) stmt {
	s := &ifStmt{cond: p.tuple(tupleOptions{noCond: true})}
	body, end := p.block("elif", "else", "endif")
	s.body = body
	switch end {
	case "elif":
		p.enter()
		s.otherwise = []stmt{p.condition(p.tokens[p.i-1])}
		p.leave()
	case "else":
		s.otherwise, _ = p.block("endif")
	}
	s.place = p.from(t)
	return s
}

func (p *parser) set(t token) stmt {
	target := p.targets("")
	if p.skipOp("=") {
		v := p.tuple(tupleOptions{})
		return &setStmt{place: p.from(t), target: target, value: v}
	}
	var f expr
	if p.isOp("|") {
		f = p.filters(nil, t)
	}
	body, _ := p.block("endset")
	return &setBlockStmt{place: p.from(t), target: target, filter: f, body: body}
}

func (p *parser) with(t token) stmt {
	s := &withStmt{}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			p.expectOp(",")
		}
		s.targets = append(s.targets, p.target(false))
		p.expectOp("=")
		s.values = append(s.values, p.expression())
	}
	s.body, _ = p.block("endwith")
	s.place = p.from(t)
	return s
}

func (p *parser) signature(m *macroStmt) {
	p.expectOp("(")
	for !p.isOp(")") {
		if len(m.params) > 0 {
			p.expectOp(",")
		}
		name, ok := p.target(false).(*nameExpr)
		if !ok {
			syntaxError(p.cur().line, "expected the name of a parameter")
		}
		m.params = append(m.params, name.name)
		if p.skipOp("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			syntaxError(p.cur().line, "non-default argument follows default argument")
		}
	}
	p.expectOp(")")
	if i := slices.Index(m.params, "caller"); i >= 0 && i < len(m.params)-len(m.defaults) {
		assertionError(p.cur().line, "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.")
	}
}

// macroBody reads the statements of a macro and notes the names that they read.
func (p *parser) macroBody(m *macroStmt, end string) {
	m.uses = map[string]bool{}
	p.uses = append(p.uses, m.uses)
	p.within(false, func() { m.body, _ = p.block(end) })
	p.uses = p.uses[:len(p.uses)-1]
	p.spread(m.uses)
}

func (p *parser) macro(t token) stmt {
	m := &macroStmt{}
	name, ok := p.target(false).(*nameExpr)
	if !ok {
		syntaxError(t.line, "expected the name of the macro")
	}
	m.name = name.name
	p.signature(m)
	p.macroBody(m, "endmacro")
	m.place = p.from(t)
	return m
}

func (p *parser) callBlock(t token) stmt {
	m := &macroStmt{name: "caller"}
	if p.isOp("(") {
		p.signature(m)
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		syntaxError(t.line, "expected call")
	}
	p.macroBody(m, "endcall")
	m.place = p.from(t)
	return &callStmt{place: m.place, call: call, macro: m}
}

// context reads "with context" or "without context".
func (p *parser) context(def bool) bool {
	if (p.isName("with") || p.isName("without")) && p.i+1 < len(p.tokens) && p.tokens[p.i+1].kind == tokName && p.tokens[p.i+1].text == "context" {
		with := p.next().text == "with"
		p.next()
		return with
	}
	return def
}

func (p *parser) include(t token) stmt {
	s := &includeStmt{template: p.expression()}
	if p.isName("ignore") && p.tokens[p.i+1].kind == tokName && p.tokens[p.i+1].text == "missing" {
		p.next()
		p.next()
		s.ignoreMissing = true
	}
	s.withContext = p.context(true)
	s.place = p.from(t)
	return s
}

func (p *parser) fromImport(t token) stmt {
	s := &fromStmt{template: p.expression()}
	p.expectName("import")
	for {
		if len(s.names) > 0 {
			if !p.skipOp(",") {
				break
			}
		}
		if p.cur().kind != tokName {
			p.unexpected("name")
		}
		if with := p.i; p.isName("with") || p.isName("without") {
			if s.withContext = p.context(false); p.i > with {
				s.place = p.from(t)
				return s
			}
		}
		name := p.identifier()
		if strings.HasPrefix(name, "_") {
			assertionError(t.line, "names starting with an underline can not be imported")
		}
		alias := name
		if p.skipName("as") {
			alias = p.identifier()
		}
		s.names = append(s.names, name)
		s.aliases = append(s.aliases, alias)
		if !p.isOp(",") {
			break
		}
	}
	s.withContext = p.context(false)
	s.place = p.from(t)
	return s
}

func (p *parser) namedBlock(t token) stmt {
	b := &blockStmt{name: p.identifier()}
	b.scoped = p.skipName("scoped")
	b.required = p.skipName("required")
	if p.isOp("-") {
		syntaxError(t.line, "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore instead.")
	}
	p.within(false, func() { b.body, _ = p.block("endblock") })
	p.skipName(b.name)
	if b.required {
		for _, s := range b.body {
			if text, ok := s.(*textStmt); !ok || strings.TrimSpace(text.text) != "" {
				syntaxError(t.line, "Required blocks can only contain comments or whitespace")
			}
		}
	}
	b.place = p.from(t)
	if _, ok := p.blocks[b.name]; ok {
		assertionError(t.line, "block '%s' defined twice", b.name)
	}
	p.blocks[b.name] = b
	return b
}

// target reads a name that is assigned to, or namespace.attribute.
func (p *parser) target(namespaces bool) expr {
	t := p.cur()
	name := p.identifier()
	switch name {
	case "true", "false", "none", "True", "False", "None":
		syntaxError(t.line, "can't assign to 'const'")
	}
	if namespaces && p.skipOp(".") {
		attr := p.identifier()
		for _, u := range p.uses {
			u[name] = true
		}
		return &attrExpr{place: p.from(t), node: &nameExpr{place: p.from(t), name: name}, name: attr}
	}
	return &nameExpr{place: p.from(t), name: name}
}

// targets reads what a loop or an assignment sets: a name, or several in a tuple. end is the word that may follow a comma.
func (p *parser) targets(end string) expr {
	t := p.cur()
	var items []expr
	tuple := false
	for {
		if p.isOp("(") {
			p.enter()
			p.next()
			inner := p.targets(")")
			p.expectOp(")")
			p.leave()
			items = append(items, inner)
		} else {
			items = append(items, p.target(end == ""))
		}
		if !p.skipOp(",") {
			break
		}
		tuple = true
	}
	switch {
	case len(items) == 0:
		p.unexpected("name")
	case !tuple:
		return items[0]
	}
	return &listExpr{place: p.from(t), items: items, tuple: true}
}

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
	name := p.identifier()
	for p.skipOp(".") {
		name += "." + p.identifier()
	}
	return name
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
