package eval

import (
	"strings"

	"github.com/intendant/intendant/lang/check"
)

// clue is what is known of a name that stands for nothing: it is asked for again by each turn of a loop.
type clue struct {
	at   *check.Loc // of a variable of an inner block
	hint string
}

// unknown is the fault of a name that stands for nothing where it is read.
func (m *machine) unknown(r *check.Ref, msg string) *check.Fault {
	c, ok := m.clues[r]
	if !ok {
		c = m.clue(r)
		if m.clues == nil {
			m.clues = map[*check.Ref]clue{}
		}
		m.clues[r] = c
	}
	f := check.New("NotFoundException", nil, "%s", msg).On(&r.At)
	f.Hint = c.hint
	if c.at != nil {
		f.Note(c.at, "%s is known only in the block that it is set in", r.Name)
	}
	return f
}

func (m *machine) clue(r *check.Ref) clue {
	c := clue{hint: r.Scope.Hint(r.Name)}
	if strings.Contains(r.Name, "::") {
		return c
	}
	var around *check.Block
	for _, s := range m.prog.Symbols {
		if impl, ok := s.(*check.Implementation); ok && path(m.prog.Statements(impl), &r.At) != nil {
			around = m.prog.Statements(impl)
		}
	}
	if around == nil {
		for _, ns := range m.prog.Files {
			if b := m.prog.Body(ns); path(b, &r.At) != nil {
				around = b
			}
		}
	}
	if c.at = innerName(around, r.Name); c.at != nil {
		c.hint = "use it within that block, or set a variable outside of it"
	}
	return c
}

// innerName is the place of a variable of one of the blocks within a block; nil when there is none of the name.
func innerName(b *check.Block, name string) *check.Loc {
	if b == nil {
		return nil
	}
	for _, st := range b.Stmts {
		switch s := st.(type) {
		case *check.If:
			for _, inner := range []*check.Block{s.Then, s.Else} {
				if set := assigned(inner, name); set != nil {
					return set.Where()
				}
				if at := innerName(inner, name); at != nil {
					return at
				}
			}
		case *check.For:
			if s.Body.Names[s.Var] == name {
				return s.Where()
			}
			if set := assigned(s.Body, name); set != nil {
				return set.Where()
			}
			if at := innerName(s.Body, name); at != nil {
				return at
			}
		}
	}
	return nil
}
