package check

import "slices"

// policy resolves the relation precedence policy and orders its relations.
func (c *checker) policy() {
	var first []*Attribute
	for _, r := range c.in.Policy {
		a, f := c.policyRelation(r.FirstType, r.First)
		if c.fail(f) {
			f.Outside = r.Range
			return
		}
		b, f := c.policyRelation(r.ThenType, r.Then)
		if c.fail(f) {
			f.Outside = r.Range
			return
		}
		if !slices.Contains(a.FreezeBefore, b) {
			a.FreezeBefore = append(a.FreezeBefore, b)
		}
		a.Precedes = true
		if !slices.Contains(first, a) {
			first = append(first, a)
		}
	}
	c.prog.Policy = c.freezeOrder(first)
	for i, a := range c.prog.Policy {
		a.PolicyRank = i + 1
	}
}

func (c *checker) policyRelation(typ, rel string) (*Attribute, *Fault) {
	const class = "InvalidRelationPrecedenceRuleError"
	sym, ok := c.prog.Symbols[typ]
	if _, plugin := sym.(*Plugin); !ok || plugin {
		return nil, New(class, nil, "A relation precedence rule was defined for %s, but no such type was defined", typ)
	}
	e, ok := sym.(*Entity)
	if !ok {
		return nil, New(class, nil, "A relation precedence rule was defined for non-entity type %s", sym.FullName())
	}
	a, ok := e.own[rel]
	if !ok {
		return nil, New(class, nil, "A relation precedence rule was defined for %s.%s, but entity %s doesn't have an attribute %s.", typ, rel, typ, rel)
	}
	if !a.Relation {
		return nil, New(class, nil, "A relation precedence rule was defined for %s.%s, but attribute %s is not a relationship attribute.", typ, rel, rel)
	}
	return a, nil
}

// freezeOrder sorts the relations of the policy so that each comes before those that depend on it.
func (c *checker) freezeOrder(first []*Attribute) []*Attribute {
	var all []*Attribute
	needs := map[*Attribute]int{}
	for _, a := range first {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
		for _, b := range a.FreezeBefore {
			if !slices.Contains(all, b) {
				all = append(all, b)
			}
			needs[b]++
		}
	}
	var out []*Attribute
	for len(out) < len(all) {
		i := slices.IndexFunc(all, func(a *Attribute) bool { return needs[a] == 0 && !slices.Contains(out, a) })
		if i < 0 {
			f := New("CycleInRelationPrecedencePolicyError", nil, "A cycle exists in the relation precedence policy")
			f.Outside = c.in.Policy[len(c.in.Policy)-1].Range
			c.fail(f)
			return nil
		}
		out = append(out, all[i])
		for _, b := range all[i].FreezeBefore {
			needs[b]--
		}
	}
	return out
}
