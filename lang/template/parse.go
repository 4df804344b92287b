package template

import (
	"slices"
	"strings"
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
