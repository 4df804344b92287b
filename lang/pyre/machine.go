package pyre

import (
	"errors"
	"unicode/utf8"
)

// MaxSteps is the number of steps after which matching gives up.
const MaxSteps = 10_000_000

// maxStack bounds the choices that a match may leave open.
const maxStack = 1 << 20

// ErrSteps says that a match took more than [MaxSteps] steps.
var ErrSteps = errors.New("the regular expression needs too many steps on this text")

// machine runs a program by backtracking. Choices and the changes to undo between them are on one stack.
type machine struct {
	text  string
	save  []int // places of the groups, -1 for none
	regs  []int // two per loop: the count, and where the last round began
	stack []choice
	steps int
	depth int
}

type choiceKind uint8

const (
	choiceJump    choiceKind = iota // go on at pc, pos
	choiceSave                      // undo: save[pc] = pos
	choiceReg                       // undo: regs[pc] = pos
	choiceShorter                   // a greedy span may give back: from pos down to low
	choiceLonger                    // a lazy span may take more
	choiceLoop                      // a lazy loop may go round once more
)

type choice struct {
	kind    choiceKind
	pc, pos int
	low     int
}

// maxNested bounds the nesting of look-arounds and atomic groups at run time; the parser bounds it already.
const maxNested = 2 * maxDepth

func (m *machine) setSave(i, v int) {
	m.stack = append(m.stack, choice{kind: choiceSave, pc: i, pos: m.save[i]})
	m.save[i] = v
}

func (m *machine) setReg(i, v int) {
	m.stack = append(m.stack, choice{kind: choiceReg, pc: i, pos: m.regs[i]})
	m.regs[i] = v
}

// rune decodes the character at pos.
func (m *machine) rune(pos int) (rune, int) {
	if c := m.text[pos]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(m.text[pos:])
}

// one matches a single character and gives its length.
func (m *machine) one(i *inst, pos int) (n int, ok bool) {
	if pos >= len(m.text) {
		return 0, false
	}
	r, n := m.rune(pos)
	switch i.op {
	case iChar:
		return n, r == i.char || i.flags&IgnoreCase != 0 && sameFolded(r, i.char, i.flags)
	case iAny:
		return n, r != '\n'
	case iAnyNL:
		return n, true
	}
	return n, i.set.has(r)
}

func (m *machine) isWord(pos int, flags Flags, before bool) bool {
	var r rune
	switch {
	case before && pos > 0:
		r, _ = utf8.DecodeLastRuneInString(m.text[:pos])
	case !before && pos < len(m.text):
		r, _ = m.rune(pos)
	default:
		return false
	}
	return inClass(r, 'w', flags&ASCII != 0)
}

// run executes prog from pos. toEnd accepts only a match that ends with the text. Choices left open on success stay on the
// stack above the height it had.
func (m *machine) run(prog []inst, pos int, toEnd bool) (end int, ok bool, err error) {
	if m.depth++; m.depth > maxNested {
		return 0, false, ErrSteps
	}
	defer func() { m.depth-- }()
	base := len(m.stack)
	pc := 0
	for {
		if m.steps++; m.steps > MaxSteps || len(m.stack) > maxStack {
			return 0, false, ErrSteps
		}
		i := &prog[pc]
		good := true
		switch i.op {
		case iMatch:
			if !toEnd || pos == len(m.text) {
				return pos, true, nil
			}
			good = false
		case iChar, iAny, iAnyNL, iSet:
			var n int
			if n, good = m.one(i, pos); good {
				pos += n
				pc++
			}
		case iSplit:
			m.stack = append(m.stack, choice{kind: choiceJump, pc: i.y, pos: pos})
			pc = i.x
		case iJump:
			pc = i.x
		case iSave:
			m.setSave(i.x, pos)
			pc++
		case iBackref:
			var n int
			if n, good = m.backref(i, pos); good {
				pos += n
				pc++
			}
		case iLook:
			if good, err = m.look(i, pos); err != nil {
				return 0, false, err
			}
			pc++
		case iAtomic:
			height := len(m.stack)
			var e int
			if e, good, err = m.run(i.sub, pos, false); err != nil {
				return 0, false, err
			}
			if good {
				m.forget(height)
				pos = e
				pc++
			}
		case iCond:
			if m.save[i.min] >= 0 && m.save[i.min+1] >= 0 {
				pc = i.x
			} else {
				pc = i.y
			}
		case iLoopInit:
			m.setReg(i.x, 0)
			m.setReg(i.x+1, -1)
			pc++
		case iLoop:
			pc = m.loop(i, pc, pos)
		case iSpan:
			if pos, good = m.span(i, pc, pos); good {
				pc++
			}
		default:
			if good = m.assert(i, pos); good {
				pc++
			}
		}
		if good {
			continue
		}
		if pc, pos, ok = m.backtrack(prog, base); !ok {
			return 0, false, nil
		}
	}
}

func (m *machine) assert(i *inst, pos int) bool {
	switch i.op {
	case iBegin:
		return pos == 0
	case iBeginLine:
		return pos == 0 || m.text[pos-1] == '\n'
	case iEnd:
		return pos == len(m.text) || pos == len(m.text)-1 && m.text[pos] == '\n'
	case iEndLine:
		return pos == len(m.text) || m.text[pos] == '\n'
	case iTextEnd:
		return pos == len(m.text)
	case iWord:
		return len(m.text) > 0 && m.isWord(pos, i.flags, true) != m.isWord(pos, i.flags, false)
	case iNotWord:
		return len(m.text) > 0 && m.isWord(pos, i.flags, true) == m.isWord(pos, i.flags, false)
	}
	return false
}

// loop decides about another round of a loop and gives the next instruction.
func (m *machine) loop(i *inst, pc, pos int) int {
	count := m.regs[i.x]
	switch {
	case count < i.min:
	case count >= i.max || m.regs[i.x+1] == pos:
		return i.y
	case i.kind == lazy:
		m.stack = append(m.stack, choice{kind: choiceLoop, pc: pc, pos: pos})
		return i.y
	default:
		m.stack = append(m.stack, choice{kind: choiceJump, pc: i.y, pos: pos})
	}
	m.setReg(i.x, count+1)
	m.setReg(i.x+1, pos)
	return pc + 1
}

// span repeats a single character and leaves the choice of fewer or more rounds open.
func (m *machine) span(i *inst, pc, pos int) (int, bool) {
	one := &i.sub[0]
	count := 0
	limit := i.max
	if i.kind == lazy {
		limit = i.min
	}
	low := pos
	for count < limit {
		n, ok := m.one(one, pos)
		if !ok {
			break
		}
		pos += n
		m.steps++
		if count++; count == i.min {
			low = pos
		}
	}
	if count < i.min {
		return pos, false
	}
	switch {
	case i.kind == lazy && i.max > i.min:
		m.stack = append(m.stack, choice{kind: choiceLonger, pc: pc, pos: pos, low: count})
	case i.kind == greedy && pos > low:
		m.stack = append(m.stack, choice{kind: choiceShorter, pc: pc, pos: pos, low: low})
	}
	return pos, true
}

// backtrack undoes changes down to the last open choice above base and gives where to go on.
func (m *machine) backtrack(prog []inst, base int) (pc, pos int, ok bool) {
	for len(m.stack) > base {
		top := len(m.stack) - 1
		c := &m.stack[top]
		m.steps++
		switch c.kind {
		case choiceSave:
			m.save[c.pc] = c.pos
		case choiceReg:
			m.regs[c.pc] = c.pos
		case choiceJump:
			pc, pos = c.pc, c.pos
			m.stack = m.stack[:top]
			return pc, pos, true
		case choiceShorter:
			_, n := utf8.DecodeLastRuneInString(m.text[:c.pos])
			c.pos -= n
			pc, pos = c.pc+1, c.pos
			if c.pos <= c.low {
				m.stack = m.stack[:top]
			}
			return pc, pos, true
		case choiceLonger:
			i := &prog[c.pc]
			if n, good := m.one(&i.sub[0], c.pos); good && c.low < i.max {
				c.pos += n
				c.low++
				return c.pc + 1, c.pos, true
			}
		case choiceLoop:
			i := &prog[c.pc]
			pc, pos = c.pc, c.pos
			m.stack = m.stack[:top]
			m.setReg(i.x, m.regs[i.x]+1)
			m.setReg(i.x+1, pos)
			return pc + 1, pos, true
		}
		m.stack = m.stack[:top]
	}
	return 0, 0, false
}

// forget drops the open choices above height but keeps the changes to undo.
func (m *machine) forget(height int) {
	kept := height
	for _, c := range m.stack[height:] {
		if c.kind == choiceSave || c.kind == choiceReg {
			m.stack[kept] = c
			kept++
		}
	}
	m.stack = m.stack[:kept]
}

// undo takes back everything above height.
func (m *machine) undo(height int) {
	for len(m.stack) > height {
		c := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		switch c.kind {
		case choiceSave:
			m.save[c.pc] = c.pos
		case choiceReg:
			m.regs[c.pc] = c.pos
		}
	}
}

func (m *machine) look(i *inst, pos int) (bool, error) {
	start := pos
	for range i.behind {
		if start == 0 {
			return i.negate, nil
		}
		_, n := utf8.DecodeLastRuneInString(m.text[:start])
		start -= n
	}
	height := len(m.stack)
	_, ok, err := m.run(i.sub, start, false)
	if err != nil {
		return false, err
	}
	if i.negate {
		m.undo(height)
		return !ok, nil
	}
	if ok {
		m.forget(height)
	}
	return ok, nil
}

func (m *machine) backref(i *inst, pos int) (int, bool) {
	from, to := m.save[i.x], m.save[i.x+1]
	if from < 0 || to < from {
		return 0, false
	}
	want := m.text[from:to]
	if i.flags&IgnoreCase == 0 {
		if len(m.text)-pos < len(want) || m.text[pos:pos+len(want)] != want {
			return 0, false
		}
		return len(want), true
	}
	at := pos
	for _, r := range want {
		if at >= len(m.text) {
			return 0, false
		}
		got, n := m.rune(at)
		if !sameFolded(got, r, i.flags) {
			return 0, false
		}
		at += n
	}
	return at - pos, true
}
