package template

import (
	"maps"
	"slices"
)

// frame runs statements that have a scope of their own. Like the code that Jinja2 makes of a template, it looks up all variables
// that they name before the first one runs, also those in branches that are not taken. An unknown one makes the whole text
// unknown, whatever else is wrong with it.
func (r *renderer) frame(s *scope, body []stmt) {
	if len(body) == 0 {
		return
	}
	names, ok := r.named[&body[0]]
	if !ok {
		var f frameNames
		f.statements(body)
		names = f.names
		if r.named == nil {
			r.named = map[*stmt][]string{}
		}
		r.named[&body[0]] = names
	}
	for _, name := range names {
		if v, ok := r.lookup(s, name); ok {
			if l, ok := v.(*late); ok {
				known(l.v)
			}
		}
	}
	r.body(s, body)
}

// frameNames collects the variables that a frame reads from outside, in the order of their first use.
type frameNames struct {
	names  []string
	stored map[string]bool
}

func (f *frameNames) load(name string) {
	if !f.stored[name] && !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
}

func (f *frameNames) store(name string) {
	if f.stored == nil {
		f.stored = map[string]bool{}
	}
	f.stored[name] = true
}

// target is what an assignment sets.
func (f *frameNames) target(e expr) {
	switch x := e.(type) {
	case *nameExpr:
		f.store(x.name)
	case *attrExpr:
		f.expr(x.node)
	case *listExpr:
		for _, item := range x.items {
			f.target(item)
		}
	}
}

// statements goes through the statements of a frame. Those inside others that have a frame of their own are none of its.
func (f *frameNames) statements(body []stmt) {
	for _, st := range body {
		f.statement(st)
	}
}

func (f *frameNames) statement(st stmt) {
	switch x := st.(type) {
	case *outputStmt:
		f.expr(x.value)
	case *ifStmt:
		f.branches(x)
	case *forStmt:
		f.expr(x.iter)
	case *setStmt:
		f.expr(x.value)
		f.target(x.target)
	case *setBlockStmt:
		f.target(x.target)
	case *withStmt:
		f.exprs(x.values)
	case *macroStmt:
		f.store(x.name)
	case *callStmt:
		f.expr(x.call)
	case *filterStmt:
		f.expr(x.filter)
	case *includeStmt:
		f.expr(x.template)
	case *importStmt:
		f.expr(x.template)
		f.store(x.target)
	case *fromStmt:
		f.expr(x.template)
		for _, alias := range x.aliases {
			f.store(alias)
		}
	case *extendsStmt:
		f.expr(x.template)
	}
}

// branches goes through both sides of a condition. What only one of them sets may come from outside.
func (f *frameNames) branches(x *ifStmt) {
	f.expr(x.cond)
	before := maps.Clone(f.stored)
	f.statements(x.body)
	yes := f.stored
	f.stored = maps.Clone(before)
	f.statements(x.otherwise)
	no := f.stored
	f.stored = before
	for _, name := range slices.Sorted(maps.Keys(yes)) {
		if !no[name] {
			f.load(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(no)) {
		if !yes[name] {
			f.load(name)
		}
	}
	for name := range yes {
		f.store(name)
	}
	for name := range no {
		f.store(name)
	}
}

func (f *frameNames) exprs(list []expr) {
	for _, e := range list {
		f.expr(e)
	}
}

func (f *frameNames) arguments(a arguments) {
	f.exprs(a.positional)
	f.exprs(a.named)
	f.expr(a.star)
	f.expr(a.starStar)
}

func (f *frameNames) expr(e expr) {
	switch x := e.(type) {
	case *nameExpr:
		f.load(x.name)
	case *listExpr:
		f.exprs(x.items)
	case *dictExpr:
		for i := range x.keys {
			f.expr(x.keys[i])
			f.expr(x.values[i])
		}
	case *condExpr:
		f.expr(x.cond)
		f.expr(x.yes)
		f.expr(x.no)
	case *binaryExpr:
		f.expr(x.left)
		f.expr(x.right)
	case *unaryExpr:
		f.expr(x.node)
	case *concatExpr:
		f.exprs(x.items)
	case *compareExpr:
		f.expr(x.first)
		f.exprs(x.rest)
	case *attrExpr:
		f.expr(x.node)
	case *itemExpr:
		f.expr(x.node)
		f.expr(x.index)
	case *sliceExpr:
		f.expr(x.start)
		f.expr(x.stop)
		f.expr(x.step)
	case *callExpr:
		f.expr(x.node)
		f.arguments(x.args)
	case *filterExpr:
		f.expr(x.node)
		f.arguments(x.args)
	case *testExpr:
		f.expr(x.node)
		f.arguments(x.args)
	}
}
