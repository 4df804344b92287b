package check

import (
	"strings"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// shadows warns about variables of blocks that have the name of a variable around them.
func (c *checker) shadows() {
	c.memo.shadows = make([]diag.List, len(c.prog.Files))
	for i, ns := range c.prog.Files {
		c.memo.shadows[i] = c.warned(func() { c.shadowsIn(ns, c.files[ns].Stmts, nil, nil) })
	}
}

type declaration struct {
	name   string
	places []*Loc
	outer  *declaration
}

func (c *checker) shadowsIn(ns *Namespace, body []syntax.Stmt, loop *syntax.For, outer *declaration) {
	byName := map[string]*declaration{}
	var names []string
	declare := func(name string, at *Loc) {
		if d, ok := byName[name]; ok {
			d.places = append(d.places, at)
			return
		}
		byName[name] = &declaration{name: name, places: []*Loc{at}}
		names = append(names, name)
	}
	for _, st := range body {
		if a, ok := st.(*syntax.Assign); ok {
			if v, ok := a.Target.(*syntax.VarRef); ok {
				declare(v.Name.Text, c.at(ns, a.Place()))
			}
		}
	}
	if loop != nil {
		declare(loop.Var.Text, c.at(ns, loop.Place()))
	}
	scope := outer
	for _, name := range names {
		d := byName[name]
		for o := outer; o != nil; o = o.outer {
			if o.name == name {
				c.warn("VariableShadowWarning", d.places[0], "Variable `%s` shadowed: originally declared at %s, shadowed at %s",
					name, placeList(o.places), placeList(d.places))
				break
			}
		}
		d.outer = scope
		scope = d
	}
	for _, st := range body {
		switch s := st.(type) {
		case *syntax.For:
			c.shadowsIn(ns, s.Body, s, scope)
		case *syntax.If:
			c.shadowsIn(ns, s.Then, nil, scope)
			c.shadowsIn(ns, s.Else, nil, scope)
		case *syntax.Implementation:
			c.shadowsIn(ns, s.Body, nil, scope)
		}
	}
}

func placeList(ls []*Loc) string {
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = l.String()
	}
	return strings.Join(out, ",")
}
