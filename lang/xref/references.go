package xref

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// Location is a use in a file.
type Location struct {
	File *File
	Use  Use
}

// Family are the symbols that have one name between them: for an attribute or a relation those of the entities above and below
// that an instance may share, for all others the symbol alone.
func (x *Index) Family(s *Symbol) []*Symbol {
	if s.Kind != Attribute && s.Kind != Relation {
		return []*Symbol{s}
	}
	return x.families(s.Name)[s]
}

// families are the families of the attributes of a name.
func (x *Index) families(name string) map[*Symbol][]*Symbol {
	out := map[*Symbol][]*Symbol{}
	join := func(a, b *Symbol) {
		if out[a] == nil {
			out[a] = []*Symbol{a}
		}
		if out[b] == nil {
			out[b] = []*Symbol{b}
		}
		if slices.Contains(out[a], b) {
			return
		}
		all := append(slices.Clone(out[a]), out[b]...)
		for _, m := range all {
			out[m] = all
		}
	}
	x.entities(func(e *Symbol) {
		var first *Symbol
		e.ancestry(func(p *Symbol) bool {
			for _, a := range p.order {
				if a.Name != name {
					continue
				}
				if first == nil {
					first = a
				}
				join(first, a)
			}
			return true
		})
	})
	return out
}

// entities visits all entities.
func (x *Index) entities(visit func(*Symbol)) {
	visit(x.base)
	for _, f := range x.files {
		for _, s := range f.symbols {
			if s.Kind == Entity {
				visit(s)
			}
		}
	}
}

// References are the uses of a symbol and of its family in all files, in the order of the files.
func (x *Index) References(ctx context.Context, s *Symbol) ([]Location, error) {
	family := map[*Symbol]bool{}
	for _, m := range x.Family(s) {
		family[m] = true
	}
	_, name := cut(s.Name)
	var out []Location
	for _, f := range x.files {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("looking for references: %w", err)
		}
		if !bytes.Contains(f.Tree.Src, []byte(name)) {
			continue
		}
		for _, u := range x.Uses(f) {
			if family[u.Symbol] || u.Also != nil && family[u.Also] {
				out = append(out, Location{f, u})
			}
		}
	}
	return out, nil
}
