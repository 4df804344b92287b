package syntax

import "github.com/intendant/intendant/slab"

// slabs are the stocks of the nodes that make up most of a tree. All nodes of a file live and die together.
type slabs struct {
	literal   slab.Of[Literal]
	varRef    slab.Of[VarRef]
	attrRef   slab.Of[AttrRef]
	assign    slab.Of[Assign]
	exprStmt  slab.Of[ExprStmt]
	call      slab.Of[Call]
	construct slab.Of[Construct]
	list      slab.Of[List]
	dict      slab.Of[Dict]
	interp    slab.Of[Interpolation]
	binary    slab.Of[Binary]
	attribute slab.Of[Attribute]
}

func (p *parser) literal(t token, k LiteralKind) *Literal {
	l := p.nodes.literal.New()
	l.Pos, l.EndPos, l.Kind = Pos(t.start+1), Pos(t.end+1), k
	return l
}

func (p *parser) varRef(q QName) *VarRef {
	r := p.nodes.varRef.New()
	r.Name = q
	return r
}

func (p *parser) attrRef(x Ref, dot Pos, name Name) *AttrRef {
	r := p.nodes.attrRef.New()
	r.X, r.Dot, r.Name = x, dot, name
	return r
}

func (p *parser) exprStmt(x Expr) *ExprStmt {
	s := p.nodes.exprStmt.New()
	s.X = x
	return s
}
