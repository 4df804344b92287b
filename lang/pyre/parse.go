package pyre

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Flags change the meaning of a pattern, as the flags of Python's re.compile do.
type Flags uint8

// The flags; each can also be set inside a pattern by its letter.
const (
	IgnoreCase Flags = 1 << iota // i
	MultiLine                    // m
	DotAll                       // s
	Verbose                      // x
	ASCII                        // a
	unicodeOnly
)

// Error says what is wrong with a pattern.
type Error struct {
	// Message is Python's text, without the place.
	Message string
	// Pos is the place in characters from 0, or -1 when the fault has none.
	Pos int
	// Pattern is the pattern as given.
	Pattern string
}

func (e *Error) Error() string {
	if e.Pos < 0 {
		return e.Message
	}
	text := e.Message + " at position " + strconv.Itoa(e.Pos)
	if strings.Contains(e.Pattern, "\n") {
		line, column := 1, 1
		for i, r := range []rune(e.Pattern) {
			if i == e.Pos {
				break
			}
			column++
			if r == '\n' {
				line, column = line+1, 1
			}
		}
		text += fmt.Sprintf(" (line %d, column %d)", line, column)
	}
	return text
}

type op uint8

const (
	opEmpty op = iota
	opChar
	opAny
	opSet
	opCat
	opAlt
	opRepeat
	opGroup // capturing
	opLook
	opAtomic
	opBackref
	opCond
	opBegin     // ^
	opEnd       // $
	opTextBegin // \A
	opTextEnd   // \Z
	opWord      // \b
	opNotWord   // \B
)

type repeatKind uint8

const (
	greedy repeatKind = iota
	lazy
	possessive
)

// unlimited is the upper bound of a repeat that has none.
const unlimited = math.MaxInt32

// node is a part of a pattern.
type node struct {
	op       op
	flags    Flags
	char     rune
	set      *set
	kids     []*node
	min, max int // the bounds of opRepeat, the widths of opBackref
	kind     repeatKind
	group    int  // of opGroup, opBackref, opCond
	negate   bool // of opLook
	behind   bool // of opLook
}

// set is a character set.
type set struct {
	negate bool
	items  []setItem
}

// setItem is a range, or a class when class is not 0: one of d D w W s S.
type setItem struct {
	lo, hi rune
	class  byte
}

// maxDepth bounds the nesting of groups.
const maxDepth = 250

type parser struct {
	text   []rune
	source string
	i      int
	flags  Flags
	groups int
	names  map[string]int
	open   map[int]bool
	depth  int
	// behind counts the look-behinds around the current place; groups opened there may not be referred to there.
	behind     int
	behindFrom int
	condPos    map[int]int
	// widths are the least and greatest widths of closed groups.
	widths map[int][2]int
}

// fault is thrown by the parser and caught by parse.
type fault struct{ err *Error }

func (p *parser) fail(pos int, format string, args ...any) {
	panic(fault{&Error{Message: fmt.Sprintf(format, args...), Pos: pos, Pattern: p.source}})
}

func parse(pattern string, flags Flags) (root *node, p *parser, err error) {
	p = &parser{text: []rune(pattern), source: pattern, flags: flags, names: map[string]int{}, open: map[int]bool{}, condPos: map[int]int{}, widths: map[int][2]int{}}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			err = f.err
		}
	}()
	root = p.alternatives(true)
	if p.i < len(p.text) {
		p.fail(p.i, "unbalanced parenthesis")
	}
	for group, pos := range p.condPos {
		if group > p.groups {
			p.fail(pos, "invalid group reference %d", group)
		}
	}
	return root, p, nil
}

func (p *parser) more() bool { return p.i < len(p.text) }

func (p *parser) peek() rune {
	if p.i < len(p.text) {
		return p.text[p.i]
	}
	return -1
}

func (p *parser) accept(r rune) bool {
	if p.peek() == r {
		p.i++
		return true
	}
	return false
}

func (p *parser) alternatives(first bool) *node {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.i, "the pattern is nested too deeply")
	}
	defer func() { p.depth-- }()
	start := p.i
	var kids []*node
	for {
		kids = append(kids, p.sequence(first && p.i == start))
		if !p.accept('|') {
			break
		}
	}
	if len(kids) == 1 {
		return kids[0]
	}
	return &node{op: opAlt, kids: kids}
}

func (p *parser) sequence(first bool) *node {
	var kids []*node
	repeatable := false // whether the last kid may be repeated
	for p.more() {
		c := p.text[p.i]
		if c == '|' || c == ')' {
			break
		}
		if p.flags&Verbose != 0 {
			if strings.ContainsRune(" \t\n\r\v\f", c) {
				p.i++
				continue
			}
			if c == '#' {
				for p.more() && p.text[p.i] != '\n' {
					p.i++
				}
				if p.more() {
					p.i++
				}
				continue
			}
		}
		here := p.i
		p.i++
		switch c {
		case '*', '+', '?', '{':
			lo, hi, ok := p.bounds(c, here)
			if !ok {
				kids = append(kids, p.literal('{'))
				repeatable = true
				continue
			}
			if len(kids) == 0 || !repeatable {
				if len(kids) > 0 && kids[len(kids)-1].op == opRepeat {
					p.fail(here, "multiple repeat")
				}
				p.fail(here, "nothing to repeat")
			}
			last := kids[len(kids)-1]
			r := &node{op: opRepeat, kids: []*node{last}, min: lo, max: hi}
			switch {
			case p.accept('?'):
				r.kind = lazy
			case p.accept('+'):
				r.kind = possessive
			}
			kids[len(kids)-1] = r
			repeatable = false
		case '.':
			kids, repeatable = append(kids, &node{op: opAny, flags: p.flags}), true
		case '^':
			kids, repeatable = append(kids, &node{op: opBegin, flags: p.flags}), false
		case '$':
			kids, repeatable = append(kids, &node{op: opEnd, flags: p.flags}), false
		case '[':
			kids, repeatable = append(kids, p.set(here)), true
		case '(':
			n, before := p.group(here, first && len(kids) == 0), len(kids)
			if n != nil {
				kids, repeatable = append(kids, n), true
			} else if before == 0 {
				repeatable = false
			}
		case '\\':
			n := p.escape(here)
			kids, repeatable = append(kids, n), true
			if n.op == opTextBegin || n.op == opWord || n.op == opNotWord || n.op == opTextEnd {
				repeatable = false
			}
		default:
			kids, repeatable = append(kids, p.literal(c)), true
		}
	}
	switch len(kids) {
	case 0:
		return &node{op: opEmpty}
	case 1:
		return kids[0]
	}
	return &node{op: opCat, kids: kids}
}

func (p *parser) literal(c rune) *node { return &node{op: opChar, char: c, flags: p.flags} }

// bounds reads a repeat whose first character c has been read. ok is false for a brace that is only a character.
func (p *parser) bounds(c rune, here int) (lo, hi int, ok bool) {
	switch c {
	case '*':
		return 0, unlimited, true
	case '+':
		return 1, unlimited, true
	case '?':
		return 0, 1, true
	}
	start := p.i
	if p.peek() == '}' {
		return 0, 0, false
	}
	number := func(missing int) int {
		from := p.i
		for p.more() && p.text[p.i] >= '0' && p.text[p.i] <= '9' {
			p.i++
		}
		if from == p.i {
			return missing
		}
		n, err := strconv.Atoi(string(p.text[from:p.i]))
		if err != nil || n >= unlimited {
			p.fail(-1, "the repetition number is too large")
		}
		return n
	}
	lo = number(0)
	hi = lo
	if p.accept(',') {
		hi = number(unlimited)
	} else if p.i == start {
		return 0, 0, false
	}
	if !p.accept('}') {
		p.i = start
		return 0, 0, false
	}
	if hi < lo {
		p.fail(here+1, "min repeat greater than max repeat")
	}
	return lo, hi, true
}

// group reads what follows a parenthesis. It gives nil for a comment and for flags.
func (p *parser) group(here int, first bool) *node {
	capture, name := true, ""
	flags := p.flags
	look, negate, behind, atomic := false, false, false, false
	if p.accept('?') {
		if !p.more() {
			p.fail(p.i, "unexpected end of pattern")
		}
		c := p.text[p.i]
		p.i++
		switch c {
		case 'P':
			switch {
			case p.accept('<'):
				name = p.name('>')
			case p.accept('='):
				return p.namedBackref()
			case !p.more():
				p.fail(p.i, "unexpected end of pattern")
			default:
				p.fail(p.i-2, "unknown extension ?P%c", p.text[p.i])
			}
		case ':':
			capture = false
		case '#':
			for {
				if !p.more() {
					p.fail(here, "missing ), unterminated comment")
				}
				p.i++
				if p.text[p.i-1] == ')' {
					return nil
				}
			}
		case '=', '!':
			look, negate, capture = true, c == '!', false
		case '<':
			if !p.more() {
				p.fail(p.i, "unexpected end of pattern")
			}
			d := p.text[p.i]
			if d != '=' && d != '!' {
				p.fail(p.i-2, "unknown extension ?<%c", d)
			}
			p.i++
			look, behind, negate, capture = true, true, d == '!', false
		case '(':
			return p.conditional(here)
		case '>':
			atomic, capture = true, false
		default:
			if !strings.ContainsRune("aiLmsux-", c) {
				p.fail(p.i-2, "unknown extension ?%c", c)
			}
			p.i--
			scoped, done := p.inlineFlags(here, first)
			if done {
				return nil
			}
			flags, capture = scoped, false
		}
	}
	index := 0
	if capture {
		p.groups++
		index = p.groups
		if index > maxGroups {
			p.fail(here, "too many groups")
		}
		if name != "" {
			if old, ok := p.names[name]; ok {
				p.fail(here+4, "redefinition of group name %s as group %d; was group %d", quote(name), index, old)
			}
			p.names[name] = index
		}
		p.open[index] = true
	}
	outer, outerBehind := p.flags, p.behindFrom
	p.flags = flags
	if behind {
		if p.behind == 0 {
			p.behindFrom = p.groups
		}
		p.behind++
	}
	body := p.alternatives(false)
	if behind {
		if p.behind--; p.behind == 0 {
			p.behindFrom = outerBehind
		}
	}
	p.flags = outer
	if !p.accept(')') {
		p.fail(here, "missing ), unterminated subpattern")
	}
	switch {
	case look:
		n := &node{op: opLook, kids: []*node{body}, negate: negate, behind: behind}
		if behind {
			if lo, hi := width(body); lo != hi {
				p.fail(-1, "look-behind requires fixed-width pattern")
			}
		}
		return n
	case atomic:
		return &node{op: opAtomic, kids: []*node{body}}
	case capture:
		delete(p.open, index)
		lo, hi := width(body)
		p.widths[index] = [2]int{lo, hi}
		return &node{op: opGroup, group: index, kids: []*node{body}}
	}
	if body.op == opRepeat || body.op == opEmpty || body.op == opBegin || body.op == opTextBegin {
		// A group around it, so that it can be repeated.
		return &node{op: opCat, kids: []*node{body}}
	}
	return body
}

// maxGroups bounds the number of groups.
const maxGroups = 1000

func (p *parser) name(end rune) string {
	start := p.i
	for p.more() && p.text[p.i] != end {
		p.i++
	}
	name := string(p.text[start:p.i])
	if !p.more() {
		if name == "" {
			p.fail(p.i, "missing group name")
		}
		p.fail(start, "missing %c, unterminated name", end)
	}
	p.i++
	if name == "" {
		p.fail(start, "missing group name")
	}
	return p.checkName(name, start)
}

func (p *parser) checkName(name string, at int) string {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)) {
			p.fail(at, "bad character in group name %s", quote(name))
		}
	}
	return name
}

func (p *parser) namedBackref() *node {
	start := p.i
	name := p.name(')')
	group, ok := p.names[name]
	if !ok {
		p.fail(start, "unknown group name %s", quote(name))
	}
	return p.backref(group, start)
}

func (p *parser) backref(group, at int) *node {
	if p.open[group] {
		p.fail(at, "cannot refer to an open group")
	}
	if p.behind > 0 && group > p.behindFrom {
		p.fail(p.i, "cannot refer to group defined in the same lookbehind subpattern")
	}
	w := p.widths[group]
	return &node{op: opBackref, group: group, flags: p.flags, min: w[0], max: w[1]}
}

func (p *parser) conditional(here int) *node {
	start := p.i
	for p.more() && p.text[p.i] != ')' {
		p.i++
	}
	name := string(p.text[start:p.i])
	if !p.more() {
		if name == "" {
			p.fail(p.i, "missing group name")
		}
		p.fail(start, "missing ), unterminated name")
	}
	p.i++
	if name == "" {
		p.fail(start, "missing group name")
	}
	group, err := strconv.Atoi(name)
	if err != nil {
		p.checkName(name, start)
		known, ok := p.names[name]
		if !ok {
			p.fail(start, "unknown group name %s", quote(name))
		}
		group = known
	} else {
		if group <= 0 {
			p.fail(start, "bad group number")
		}
		if group >= maxGroups {
			p.fail(start, "invalid group reference %d", group)
		}
		if _, ok := p.condPos[group]; !ok {
			p.condPos[group] = start
		}
	}
	if p.behind > 0 && group > p.behindFrom {
		p.fail(start, "cannot refer to group defined in the same lookbehind subpattern")
	}
	if p.depth++; p.depth > maxDepth {
		p.fail(p.i, "the pattern is nested too deeply")
	}
	yes := p.sequence(false)
	no := &node{op: opEmpty}
	if p.accept('|') {
		no = p.sequence(false)
		if p.peek() == '|' {
			p.fail(p.i, "conditional backref with more than two branches")
		}
	}
	p.depth--
	if !p.accept(')') {
		p.fail(here, "missing ), unterminated subpattern")
	}
	return &node{op: opCond, group: group, kids: []*node{yes, no}}
}

// inlineFlags reads (?flags) or (?flags-flags:. done is true for the first form, which changes the flags of the whole pattern.
func (p *parser) inlineFlags(here int, first bool) (scoped Flags, done bool) {
	var add, remove Flags
	letter := func(c rune) (Flags, bool) {
		switch c {
		case 'i':
			return IgnoreCase, true
		case 'm':
			return MultiLine, true
		case 's':
			return DotAll, true
		case 'x':
			return Verbose, true
		case 'a':
			return ASCII, true
		case 'u':
			return unicodeOnly, true
		}
		return 0, false
	}
	for p.more() && p.text[p.i] != '-' {
		c := p.text[p.i]
		if c == ')' || c == ':' {
			break
		}
		f, ok := letter(c)
		if c == 'L' {
			p.fail(p.i+1, "bad inline flags: cannot use 'L' flag with a str pattern")
		}
		if !ok {
			if unicode.IsLetter(c) {
				p.fail(p.i, "unknown flag")
			}
			p.fail(p.i, "missing -, : or )")
		}
		p.i++
		add |= f
		if add&ASCII != 0 && add&unicodeOnly != 0 {
			p.fail(p.i, "bad inline flags: flags 'a', 'u' and 'L' are incompatible")
		}
	}
	if !p.more() {
		p.fail(p.i, "missing -, : or )")
	}
	if p.accept(')') {
		if !first {
			p.fail(here, "global flags not at the start of the expression")
		}
		p.flags |= add &^ unicodeOnly
		return 0, true
	}
	if p.accept('-') {
		if !p.more() {
			p.fail(p.i, "missing flag")
		}
		if _, ok := letter(p.text[p.i]); !ok && p.text[p.i] != 'L' {
			if unicode.IsLetter(p.text[p.i]) {
				p.fail(p.i, "unknown flag")
			}
			p.fail(p.i, "missing flag")
		}
		for p.more() && p.text[p.i] != ':' {
			c := p.text[p.i]
			f, ok := letter(c)
			switch {
			case ok && f&(ASCII|unicodeOnly) != 0 || c == 'L':
				p.fail(p.i+1, "bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
			case !ok && unicode.IsLetter(c):
				p.fail(p.i, "unknown flag")
			case !ok:
				p.fail(p.i, "missing :")
			}
			p.i++
			remove |= f
		}
		if !p.more() {
			p.fail(p.i, "missing :")
		}
	}
	p.i++ // the colon
	if add&remove != 0 {
		p.fail(p.i-1, "bad inline flags: flag turned on and off")
	}
	scoped = p.flags
	if add&unicodeOnly != 0 {
		scoped &^= ASCII
	}
	return (scoped | add&^unicodeOnly) &^ remove, false
}

// width gives the least and the greatest number of characters that n can match.
func width(n *node) (lo, hi int) {
	switch n.op {
	case opChar, opAny, opSet:
		return 1, 1
	case opCat:
		for _, k := range n.kids {
			a, b := width(k)
			lo, hi = addWidth(lo, a), addWidth(hi, b)
		}
	case opAlt, opCond:
		lo = unlimited
		for _, k := range n.kids {
			a, b := width(k)
			lo, hi = min(lo, a), max(hi, b)
		}
	case opRepeat:
		a, b := width(n.kids[0])
		return mulWidth(a, n.min), mulWidth(b, n.max)
	case opGroup, opAtomic:
		return width(n.kids[0])
	case opBackref:
		return n.min, n.max
	}
	return lo, hi
}

func addWidth(a, b int) int { return min(a+b, unlimited) }

func mulWidth(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	if a >= unlimited/b {
		return unlimited
	}
	return a * b
}
