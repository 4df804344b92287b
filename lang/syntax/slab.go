package syntax

// slab hands out values of one type from blocks, so that a tree of many small nodes takes few allocations. Blocks grow with the
// number of nodes; all nodes of a file live and die together.
type slab[T any] struct {
	free []T
	size int
}

// The sizes of blocks, in nodes.
const (
	minSlab = 4
	maxSlab = 256
)

// new returns a pointer to a zero value.
func (s *slab[T]) new() *T {
	if len(s.free) == 0 {
		s.size = min(max(2*s.size, minSlab), maxSlab)
		s.free = make([]T, s.size)
	}
	v := &s.free[0]
	s.free = s.free[1:]
	return v
}

// slabs are the slabs of the nodes that make up most of a tree.
type slabs struct {
	literal   slab[Literal]
	varRef    slab[VarRef]
	attrRef   slab[AttrRef]
	assign    slab[Assign]
	exprStmt  slab[ExprStmt]
	call      slab[Call]
	construct slab[Construct]
	list      slab[List]
	dict      slab[Dict]
	interp    slab[Interpolation]
	binary    slab[Binary]
	attribute slab[Attribute]
}

func (p *parser) literal(t token, k LiteralKind) *Literal {
	l := p.nodes.literal.new()
	l.Pos, l.EndPos, l.Kind = Pos(t.start+1), Pos(t.end+1), k
	return l
}

func (p *parser) varRef(q QName) *VarRef {
	r := p.nodes.varRef.new()
	r.Name = q
	return r
}

func (p *parser) attrRef(x Ref, dot Pos, name Name) *AttrRef {
	r := p.nodes.attrRef.new()
	r.X, r.Dot, r.Name = x, dot, name
	return r
}

func (p *parser) exprStmt(x Expr) *ExprStmt {
	s := p.nodes.exprStmt.new()
	s.X = x
	return s
}
