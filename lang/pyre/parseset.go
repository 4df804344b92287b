package pyre

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape reads what follows a backslash outside a set.
func (p *parser) escape(here int) *node {
	if !p.more() {
		p.fail(here, "bad escape (end of pattern)")
	}
	c := p.text[p.i]
	p.i++
	switch c {
	case 'A':
		return &node{op: opTextBegin}
	case 'Z':
		return &node{op: opTextEnd}
	case 'b':
		return &node{op: opWord, flags: p.flags}
	case 'B':
		return &node{op: opNotWord, flags: p.flags}
	case 'd', 'D', 'w', 'W', 's', 'S':
		return &node{op: opSet, flags: p.flags, set: &set{items: []setItem{{class: byte(c)}}}}
	case '0':
		n := rune(0)
		for k := 0; k < 2 && p.more() && isOctal(p.text[p.i]); k++ {
			n = n*8 + p.text[p.i] - '0'
			p.i++
		}
		return p.literal(n)
	}
	if c >= '1' && c <= '9' {
		n := int(c - '0')
		if p.more() && p.text[p.i] >= '0' && p.text[p.i] <= '9' {
			if isOctal(c) && isOctal(p.text[p.i]) && p.i+1 < len(p.text) && isOctal(p.text[p.i+1]) {
				octal := (c-'0')*64 + (p.text[p.i]-'0')*8 + p.text[p.i+1] - '0'
				p.i += 2
				if octal > 0o377 {
					p.fail(here, `octal escape value %s outside of range 0-0o377`, string(p.text[here:p.i]))
				}
				return p.literal(octal)
			}
			n = n*10 + int(p.text[p.i]-'0')
			p.i++
		}
		if n > p.groups {
			p.fail(here+1, "invalid group reference %d", n)
		}
		return p.backref(n, here)
	}
	return p.literal(p.charEscape(c, here))
}

func isOctal(r rune) bool { return r >= '0' && r <= '7' }

// charEscape reads an escape that stands for one character; c has been read.
func (p *parser) charEscape(c rune, here int) rune {
	switch c {
	case 'a':
		return '\a'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	case 'x', 'u', 'U':
		size := map[rune]int{'x': 2, 'u': 4, 'U': 8}[c]
		from := p.i
		for p.more() && p.i-from < size && strings.ContainsRune("0123456789abcdefABCDEF", p.text[p.i]) {
			p.i++
		}
		if p.i-from != size {
			p.fail(here, "incomplete escape %s", string(p.text[here:p.i]))
		}
		n, _ := strconv.ParseUint(string(p.text[from:p.i]), 16, 32)
		if n > unicode.MaxRune {
			p.fail(here, "bad escape %s", string(p.text[here:p.i]))
		}
		return rune(n)
	case 'N':
		return p.namedChar(here)
	}
	if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
		p.fail(here, `bad escape \%c`, c)
	}
	return c
}

func (p *parser) namedChar(here int) rune {
	if !p.accept('{') {
		p.fail(p.i, "missing {")
	}
	from := p.i
	for p.more() && p.text[p.i] != '}' {
		p.i++
	}
	name := string(p.text[from:p.i])
	if !p.more() {
		if name == "" {
			p.fail(p.i, "missing character name")
		}
		p.fail(from, "missing }, unterminated name")
	}
	p.i++
	if name == "" {
		p.fail(from, "missing character name")
	}
	r, ok := runeByName(name)
	if !ok {
		p.fail(here, `undefined character name %s`, quote(name))
	}
	return r
}

// set reads a character set; the opening bracket has been read.
func (p *parser) set(here int) *node {
	s := &set{negate: p.accept('^')}
	n := &node{op: opSet, set: s, flags: p.flags}
	for first := true; ; first = false {
		if !p.more() {
			p.fail(here, "unterminated character set")
		}
		at := p.i
		c := p.text[p.i]
		p.i++
		if c == ']' && !first {
			break
		}
		lo := setItem{lo: c, hi: c}
		if c == '\\' {
			lo = p.setEscape(at)
		}
		if p.peek() != '-' {
			s.items = append(s.items, lo)
			continue
		}
		p.i++
		if !p.more() {
			p.fail(here, "unterminated character set")
		}
		high := p.i
		c = p.text[p.i]
		p.i++
		if c == ']' {
			s.items = append(s.items, lo, setItem{lo: '-', hi: '-'})
			break
		}
		hi := setItem{lo: c, hi: c}
		if c == '\\' {
			hi = p.setEscape(high)
		}
		if lo.class != 0 || hi.class != 0 || hi.lo < lo.lo {
			p.fail(at, "bad character range %s", string(p.text[at:p.i]))
		}
		s.items = append(s.items, setItem{lo: lo.lo, hi: hi.lo})
	}
	return n
}

func (p *parser) setEscape(at int) setItem {
	if !p.more() {
		p.fail(at, "bad escape (end of pattern)")
	}
	c := p.text[p.i]
	p.i++
	switch c {
	case 'd', 'D', 'w', 'W', 's', 'S':
		return setItem{class: byte(c)}
	case 'b':
		return setItem{lo: '\b', hi: '\b'}
	}
	if isOctal(c) {
		n := c - '0'
		for k := 0; k < 2 && p.more() && isOctal(p.text[p.i]); k++ {
			n = n*8 + p.text[p.i] - '0'
			p.i++
		}
		if n > 0o377 {
			p.fail(at, `octal escape value %s outside of range 0-0o377`, string(p.text[at:p.i]))
		}
		return setItem{lo: n, hi: n}
	}
	r := p.charEscape(c, at)
	return setItem{lo: r, hi: r}
}
