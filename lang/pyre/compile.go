package pyre

import "unicode"

type opcode uint8

const (
	iMatch opcode = iota
	iChar
	iAny // without newline
	iAnyNL
	iSet
	iSplit // try x, then y
	iJump
	iSave
	iBegin
	iBeginLine
	iEnd
	iEndLine
	iTextEnd
	iWord
	iNotWord
	iBackref
	iLook
	iAtomic
	iCond
	iLoopInit
	iLoop
	iSpan // a repeat of one character
)

// inst is an instruction of the machine.
type inst struct {
	op       opcode
	kind     repeatKind
	negate   bool
	behind   int // characters to step back, of iLook; -1 for look-ahead
	x, y     int
	min, max int
	char     rune
	flags    Flags
	set      *charSet
	sub      []inst
}

// charSet is a set prepared for matching: a table for ASCII, and the rest item by item.
type charSet struct {
	ascii [2]uint64
	src   *set
	flags Flags
}

func newCharSet(s *set, flags Flags) *charSet {
	c := &charSet{src: s, flags: flags}
	for r := range rune(128) {
		if c.slow(r) {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return c
}

func (c *charSet) has(r rune) bool {
	if r < 128 && r >= 0 {
		return c.ascii[r>>6]>>(r&63)&1 == 1
	}
	return c.slow(r)
}

func (c *charSet) slow(r rune) bool {
	return c.in(r) != c.src.negate
}

func (c *charSet) in(r rune) bool {
	if c.one(r) {
		return true
	}
	if c.flags&IgnoreCase == 0 {
		return false
	}
	if c.flags&ASCII != 0 {
		other := asciiSwap(r)
		return other != r && c.one(other)
	}
	for f := nextCase(r); f != r; f = nextCase(f) {
		if c.one(f) {
			return true
		}
	}
	return false
}

func (c *charSet) one(r rune) bool {
	for _, item := range c.src.items {
		if item.class == 0 {
			if r >= item.lo && r <= item.hi {
				return true
			}
			continue
		}
		if inClass(r, item.class, c.flags&ASCII != 0) {
			return true
		}
	}
	return false
}

func inClass(r rune, class byte, ascii bool) bool {
	if class >= 'A' && class <= 'Z' {
		return !inClass(r, class-'A'+'a', ascii)
	}
	switch class {
	case 'd':
		if ascii || r < 128 {
			return r >= '0' && r <= '9'
		}
		return unicode.Is(unicode.Nd, r)
	case 's':
		switch {
		case r == ' ' || r >= '\t' && r <= '\r':
			return true
		case ascii:
			return false
		case r >= 0x1c && r <= 0x1f:
			return true
		}
		return r >= 128 && unicode.IsSpace(r)
	}
	switch {
	case r < 128:
		return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	case ascii:
		return false
	}
	return unicode.IsLetter(r) || unicode.Is(unicode.N, r)
}

func asciiSwap(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}

// nextCase goes round the characters that are the same without regard to case. Python counts all four kinds of i as one.
func nextCase(r rune) rune {
	switch r {
	case 'i':
		return 'I'
	case 'I':
		return '\u0130'
	case '\u0130':
		return '\u0131'
	case '\u0131':
		return 'i'
	}
	return unicode.SimpleFold(r)
}

// sameFolded compares two characters without regard to case.
func sameFolded(a, b rune, flags Flags) bool {
	if a == b {
		return true
	}
	if flags&ASCII != 0 {
		return asciiSwap(a) == b
	}
	for f := nextCase(a); f != a; f = nextCase(f) {
		if f == b {
			return true
		}
	}
	return false
}

// compiler makes a program of a tree.
type compiler struct {
	prog []inst
	// registers counts the loop registers used so far, two per loop.
	registers *int
	size      *int
	tooLarge  bool
}

// maxProgram bounds the instructions of a pattern.
const maxProgram = 200000

func (c *compiler) emit(i inst) int {
	c.prog = append(c.prog, i)
	if *c.size++; *c.size > maxProgram {
		c.tooLarge = true
	}
	return len(c.prog) - 1
}

// sub compiles n into a program of its own, which ends with iMatch.
func (c *compiler) sub(n *node) []inst {
	inner := &compiler{registers: c.registers, size: c.size}
	inner.node(n)
	inner.emit(inst{op: iMatch})
	c.tooLarge = c.tooLarge || inner.tooLarge
	return inner.prog
}

// single gives the instruction for a node that matches exactly one character.
func single(n *node) (inst, bool) {
	switch n.op {
	case opChar:
		return inst{op: iChar, char: n.char, flags: n.flags}, true
	case opAny:
		if n.flags&DotAll != 0 {
			return inst{op: iAnyNL}, true
		}
		return inst{op: iAny}, true
	case opSet:
		return inst{op: iSet, set: newCharSet(n.set, n.flags)}, true
	}
	return inst{}, false
}

func (c *compiler) node(n *node) {
	if c.tooLarge {
		return
	}
	switch n.op {
	case opEmpty:
	case opChar, opAny, opSet:
		i, _ := single(n)
		c.emit(i)
	case opCat:
		for _, k := range n.kids {
			c.node(k)
		}
	case opAlt:
		var ends []int
		for i, k := range n.kids {
			if i == len(n.kids)-1 {
				c.node(k)
				break
			}
			split := c.emit(inst{op: iSplit})
			c.prog[split].x = len(c.prog)
			c.node(k)
			ends = append(ends, c.emit(inst{op: iJump}))
			c.prog[split].y = len(c.prog)
		}
		for _, e := range ends {
			c.prog[e].x = len(c.prog)
		}
	case opRepeat:
		c.repeat(n)
	case opGroup:
		c.emit(inst{op: iSave, x: 2 * n.group})
		c.node(n.kids[0])
		c.emit(inst{op: iSave, x: 2*n.group + 1})
	case opLook:
		behind := -1
		if n.behind {
			behind, _ = width(n.kids[0])
		}
		c.emit(inst{op: iLook, negate: n.negate, behind: behind, sub: c.sub(n.kids[0])})
	case opAtomic:
		c.emit(inst{op: iAtomic, sub: c.sub(n.kids[0])})
	case opBackref:
		c.emit(inst{op: iBackref, x: 2 * n.group, flags: n.flags})
	case opCond:
		cond := c.emit(inst{op: iCond, min: 2 * n.group})
		c.prog[cond].x = len(c.prog)
		c.node(n.kids[0])
		jump := c.emit(inst{op: iJump})
		c.prog[cond].y = len(c.prog)
		c.node(n.kids[1])
		c.prog[jump].x = len(c.prog)
	case opBegin:
		if n.flags&MultiLine != 0 {
			c.emit(inst{op: iBeginLine})
		} else {
			c.emit(inst{op: iBegin})
		}
	case opTextBegin:
		c.emit(inst{op: iBegin})
	case opEnd:
		if n.flags&MultiLine != 0 {
			c.emit(inst{op: iEndLine})
		} else {
			c.emit(inst{op: iEnd})
		}
	case opTextEnd:
		c.emit(inst{op: iTextEnd})
	case opWord:
		c.emit(inst{op: iWord, flags: n.flags})
	case opNotWord:
		c.emit(inst{op: iNotWord, flags: n.flags})
	}
}

func (c *compiler) repeat(n *node) {
	if n.kind == possessive {
		plain := *n
		plain.kind = greedy
		c.emit(inst{op: iAtomic, sub: c.sub(&plain)})
		return
	}
	if one, ok := single(n.kids[0]); ok {
		c.emit(inst{op: iSpan, kind: n.kind, min: n.min, max: n.max, sub: []inst{one}})
		return
	}
	if n.min == 0 && n.max == 1 {
		split := c.emit(inst{op: iSplit})
		body := len(c.prog)
		c.node(n.kids[0])
		if n.kind == lazy {
			c.prog[split].x, c.prog[split].y = len(c.prog), body
		} else {
			c.prog[split].x, c.prog[split].y = body, len(c.prog)
		}
		return
	}
	register := *c.registers
	*c.registers += 2
	c.emit(inst{op: iLoopInit, x: register})
	loop := c.emit(inst{op: iLoop, x: register, min: n.min, max: n.max, kind: n.kind})
	c.node(n.kids[0])
	c.emit(inst{op: iJump, x: loop})
	c.prog[loop].y = len(c.prog)
}
