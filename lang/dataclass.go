package lang

import (
	"slices"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/check"
	"github.com/intendant/intendant/lang/eval"
)

// dataclasses describes the entities of a program that descend from std::Dataclass.
func dataclasses(p *check.Program) []Dataclass {
	var found []*check.Entity
	for _, s := range p.Symbols {
		if e, ok := s.(*check.Entity); ok && e.Dataclass {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *check.Entity) int { return a.ID - b.ID })
	var out []Dataclass
	for _, e := range found {
		info, ok := eval.Declaration(p, e.FullName())
		if !ok {
			continue
		}
		d := Dataclass{TypeInfo: info, At: e.At.Range(), Relations: map[string]diag.Range{}}
		for _, a := range e.All {
			if a.Relation && a.Entity.FullName() != "std::Entity" {
				d.Relations[a.Name] = a.At.Range()
			}
		}
		for _, im := range e.Subs {
			if d.Implement == nil && slices.ContainsFunc(im.Using, func(i *check.Implementation) bool { return i.FullName() != "std::none" }) {
				at := im.At.Range()
				d.Implement = &at
			}
		}
		if len(e.Indexes) > 0 {
			at := e.Indexes[0].At.Range()
			d.Index = &at
		}
		out = append(out, d)
	}
	return out
}
