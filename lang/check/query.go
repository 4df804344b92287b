package check

import (
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// Query is an expression that is bound apart from a program, to be evaluated in one that has run.
type Query struct {
	X Expr
	// Layout is the size of the frame that X needs.
	Layout int
}

// BindQuery binds an expression as the file of a namespace would write it: with its variables and imports. The file holds the
// text of the expression. Constructors are refused, for a query changes nothing, and so are the plugins that are not allowed.
// The program must have been checked without faults; it is not changed.
func (p *Program) BindQuery(ns *Namespace, x syntax.Expr, file *syntax.File, allowed func(*Plugin) bool) (*Query, []*Fault, diag.List) {
	c := &checker{prog: p, files: map[*Namespace]*syntax.File{ns: file}}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch e := n.(type) {
		case *syntax.Construct:
			f := New("CompilerException", c.at(ns, syntax.Place{Span: e.Span()}), "a query can not make an instance of %s", e.Type.Text)
			f.Hint = "look one up by the attributes of an index: " + e.Type.Text + "[name=\"...\"]"
			c.fail(f)
		case *syntax.Call:
			if _, sym, _ := ns.LookupType(e.Func.Text, nil); sym != nil {
				if pl, ok := sym.(*Plugin); ok && !allowed(pl) {
					c.fail(New("CompilerException", c.at(ns, e.Func.Place()), "a query can not call %s: only the plugins of the built-in modules", pl.Name))
				}
			}
		}
		return true
	})
	if len(c.faults) > 0 {
		return nil, c.faults, nil
	}
	l := &layout{}
	b := c.binder(ns)
	e, f := b.expr(x, &Scope{kind: scopeFile, ns: ns}, l)
	if c.fail(f) {
		return nil, append(c.faults, b.more...), c.warnings
	}
	return &Query{X: e, Layout: l.n}, nil, c.warnings
}
