package pyre

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/intendant/intendant/lang/value"
)

func quote(s string) string { return value.StringRepr(s) }

func runeByName(name string) (rune, bool) { return value.RuneByName(name) }

// translator writes a tree in the syntax of Go's regexp package. ok turns false when that can not express it.
type translator struct {
	b  strings.Builder
	ok bool
	// groups counts the groups written, own the group of the result that each of the pattern's groups became.
	groups  int
	own     []int
	dollars []int
	// full is set for the variant that must match to the end of the text.
	full bool
}

// maxRepeat is the largest count that Go's regexp package accepts.
const maxRepeat = 1000

// translate gives the pattern in Go's syntax. dollars are the groups that stand for $ and may have swallowed a final newline.
func translate(root *node, groups int, full bool) (text string, own, dollars []int, ok bool) {
	t := &translator{ok: true, own: make([]int, groups+1), full: full}
	t.b.WriteString("(?:")
	t.node(root, true)
	t.b.WriteString(")")
	if full {
		t.b.WriteString(`\z`)
	}
	return t.b.String(), t.own, t.dollars, t.ok
}

func (t *translator) fail() { t.ok = false }

// node writes n. tail says that nothing of the pattern comes after n.
func (t *translator) node(n *node, tail bool) {
	if !t.ok {
		return
	}
	switch n.op {
	case opEmpty:
	case opChar:
		if n.flags&IgnoreCase != 0 && nextCase(n.char) != unicode.SimpleFold(n.char) {
			t.set(&node{flags: n.flags, set: &set{items: []setItem{{lo: n.char, hi: n.char}}}})
			break
		}
		t.fold(n, func() { t.b.WriteString(regexp.QuoteMeta(string(n.char))) })
		if n.char >= 0xd800 && n.char < 0xe000 {
			t.fail()
		}
	case opAny:
		if n.flags&DotAll != 0 {
			t.b.WriteString(`(?s:.)`)
		} else {
			t.b.WriteString(`[^\n]`)
		}
	case opSet:
		t.fold(n, func() { t.set(n) })
	case opCat:
		t.b.WriteString("(?:")
		for i, k := range n.kids {
			t.node(k, tail && i == len(n.kids)-1)
		}
		t.b.WriteString(")")
	case opAlt:
		t.b.WriteString("(?:")
		for i, k := range n.kids {
			if i > 0 {
				t.b.WriteByte('|')
			}
			t.node(k, tail)
		}
		t.b.WriteString(")")
	case opRepeat:
		t.repeat(n)
	case opGroup:
		t.groups++
		t.own[n.group] = t.groups
		t.b.WriteString("(")
		t.node(n.kids[0], tail)
		t.b.WriteString(")")
	case opBegin:
		if n.flags&MultiLine != 0 {
			t.b.WriteString(`(?m:^)`)
		} else {
			t.b.WriteString(`\A`)
		}
	case opTextBegin:
		t.b.WriteString(`\A`)
	case opTextEnd:
		t.b.WriteString(`\z`)
	case opEnd:
		switch {
		case n.flags&MultiLine != 0:
			t.b.WriteString(`(?m:$)`)
		case !tail:
			t.fail()
		case t.full:
			t.b.WriteString(`\z`)
		default:
			t.groups++
			t.dollars = append(t.dollars, t.groups)
			t.b.WriteString(`(\n?)\z`)
		}
	default:
		t.fail()
	}
}

// fold wraps what write writes in case folding if n asks for it.
func (t *translator) fold(n *node, write func()) {
	if n.flags&IgnoreCase == 0 {
		write()
		return
	}
	if n.flags&ASCII != 0 {
		t.fail()
		return
	}
	t.b.WriteString("(?i:")
	write()
	t.b.WriteString(")")
}

func (t *translator) repeat(n *node) {
	lo, _ := width(n.kids[0])
	switch {
	case n.kind == possessive, lo == 0 && n.max > 1, n.min > maxRepeat, n.max != unlimited && n.max > maxRepeat:
		t.fail()
		return
	}
	t.b.WriteString("(?:")
	t.node(n.kids[0], false)
	t.b.WriteString(")")
	switch {
	case n.min == 0 && n.max == unlimited:
		t.b.WriteByte('*')
	case n.min == 1 && n.max == unlimited:
		t.b.WriteByte('+')
	case n.min == 0 && n.max == 1:
		t.b.WriteByte('?')
	case n.max == unlimited:
		fmt.Fprintf(&t.b, "{%d,}", n.min)
	default:
		fmt.Fprintf(&t.b, "{%d,%d}", n.min, n.max)
	}
	if n.kind == lazy {
		t.b.WriteByte('?')
	}
}

// The classes of text patterns, as they stand inside brackets in Go's syntax.
const (
	digitClass = `\p{Nd}`
	wordClass  = `\p{L}\p{N}_`
	spaceClass = `\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

	asciiDigitClass = `0-9`
	asciiWordClass  = `0-9A-Za-z_`
	asciiSpaceClass = `\t-\r\x20`
)

func (t *translator) set(n *node) {
	s := n.set
	negate := s.negate
	items := s.items
	if len(items) == 1 && (items[0].class == 'D' || items[0].class == 'W' || items[0].class == 'S') {
		negate = !negate
		items = []setItem{{class: items[0].class - 'A' + 'a'}}
	}
	t.b.WriteByte('[')
	if negate {
		t.b.WriteByte('^')
	}
	ascii := n.flags&ASCII != 0
	for _, item := range items {
		switch {
		case item.class == 'd' && ascii:
			t.b.WriteString(asciiDigitClass)
		case item.class == 'w' && ascii:
			t.b.WriteString(asciiWordClass)
		case item.class == 's' && ascii:
			t.b.WriteString(asciiSpaceClass)
		case item.class == 'd':
			t.b.WriteString(digitClass)
		case item.class == 'w':
			t.b.WriteString(wordClass)
		case item.class == 's':
			t.b.WriteString(spaceClass)
		case item.class != 0:
			t.fail()
		default:
			fmt.Fprintf(&t.b, `\x{%x}-\x{%x}`, item.lo, item.hi)
		}
	}
	if n.flags&IgnoreCase != 0 && (&charSet{src: &set{items: items}, flags: n.flags}).in('i') {
		t.b.WriteString(`iI\x{130}\x{131}`)
	}
	t.b.WriteByte(']')
}

// tooBig reports whether Go can not compile a translated pattern, or only to an unreasonable program.
func tooBig(text string) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return true
	}
	prog, err := syntax.Compile(parsed.Simplify())
	return err != nil || len(prog.Inst) > 20000
}
