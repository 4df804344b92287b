package syntax

// Span and Place of every node, one pair per type: what they mean is said at [Node]; only what is particular is said here.

func (s *Import) Span() Span {
	if s.Alias.Valid() {
		return Span{s.Pos, s.Alias.Span().End}
	}
	return Span{s.Pos, s.Name.Span().End}
}
func (s *Import) Place() Place { return linePlace(s.Pos, s.Span().End) }

func (s *Entity) Span() Span   { return Span{s.Pos, s.EndPos} }
func (s *Entity) Place() Place { return s.Name.Place() }

func (a *Attribute) Span() Span   { return Span{a.Type.Name.Pos, a.EndPos} }
func (a *Attribute) Place() Place { return a.Name.Place() }

func (s *Implementation) Span() Span   { return Span{s.Pos, s.EndPos} }
func (s *Implementation) Place() Place { return s.Name.Place() }

func (s *Implement) Span() Span   { return Span{s.Pos, s.EndPos} }
func (s *Implement) Place() Place { return s.Entity.Place() }

func (s *Relation) Span() Span { return Span{s.Left.Entity.Pos, s.EndPos} }

// Place is the line of the left end's dot.
func (s *Relation) Place() Place { return linePlace(s.Dot, s.Left.Name.Span().End) }

func (s *Typedef) Span() Span   { return Span{s.Pos, s.EndPos} }
func (s *Typedef) Place() Place { return s.Name.Place() }

func (s *Index) Span() Span   { return Span{s.Pos, s.EndPos} }
func (s *Index) Place() Place { return linePlace(s.Pos, s.EndPos) }

func (s *Assign) Span() Span { return Span{s.Target.Span().Start, s.Value.Span().End} }

// Place is the line of the operator.
func (s *Assign) Place() Place {
	if s.Append {
		return linePlace(s.Op, s.Op+2)
	}
	return linePlace(s.Op, s.Op+1)
}

func (s *For) Span() Span   { return Span{s.Pos, s.EndPos} }
func (s *For) Place() Place { return linePlace(s.Pos, s.Pos+Pos(len("for"))) }

func (s *If) Span() Span { return Span{s.Pos, s.EndPos} }

// Place is the line of the keyword if; for an elif the line of its colon.
func (s *If) Place() Place {
	if s.Elif {
		return linePlace(s.Colon, s.Colon+1)
	}
	return linePlace(s.Pos, s.Pos+Pos(len("if")))
}

func (s *ExprStmt) Span() Span   { return s.X.Span() }
func (s *ExprStmt) Place() Place { return s.X.Place() }

func (e *Literal) Span() Span { return Span{e.Pos, e.EndPos} }

// Place is the range of raw, multi-line and format strings and the line of all others.
func (e *Literal) Place() Place {
	switch e.Kind {
	case RawLiteral, MultiLiteral, FormatLiteral:
		return spanPlace(e.Pos, e.EndPos)
	default:
		return linePlace(e.Pos, e.EndPos)
	}
}

func (e *Regex) Span() Span   { return Span{e.Pos, e.EndPos} }
func (e *Regex) Place() Place { return linePlace(e.Pos, e.EndPos) }

func (e *Interpolation) Span() Span { return Span{e.Pos, e.EndPos} }

// Place is the range of multi-line strings and the line of all others.
func (e *Interpolation) Place() Place { return Place{Span: Span{e.Pos, e.EndPos}, LineOnly: !e.Multi} }

func (e *FString) Span() Span   { return Span{e.Pos, e.EndPos} }
func (e *FString) Place() Place { return spanPlace(e.Pos, e.EndPos) }

func (e *VarRef) Span() Span   { return e.Name.Span() }
func (e *VarRef) Place() Place { return e.Name.Place() }

func (e *AttrRef) Span() Span { return Span{e.X.Span().Start, e.Name.Span().End} }

// Place is the line of the dot.
func (e *AttrRef) Place() Place { return linePlace(e.Dot, e.Dot+1) }

func (e *List) Span() Span   { return Span{e.Pos, e.EndPos} }
func (e *List) Place() Place { return linePlace(e.Pos, e.EndPos) }

func (e *ListComp) Span() Span   { return Span{e.Pos, e.EndPos} }
func (e *ListComp) Place() Place { return linePlace(e.Pos, e.EndPos) }

func (e *Dict) Span() Span   { return Span{e.Pos, e.EndPos} }
func (e *Dict) Place() Place { return linePlace(e.Pos, e.EndPos) }

func (e *Call) Span() Span   { return Span{e.Func.Pos, e.EndPos} }
func (e *Call) Place() Place { return e.Func.Place() }

func (e *Construct) Span() Span { return Span{e.Type.Pos, e.EndPos} }

// Place is the line of the opening parenthesis.
func (e *Construct) Place() Place { return linePlace(e.Lparen, e.EndPos) }

func (e *MapLookup) Span() Span { return Span{e.X.Span().Start, e.EndPos} }

// Place is the line on which the dictionary starts.
func (e *MapLookup) Place() Place { return linePlace(e.X.Place().Start, e.EndPos) }

func (e *IndexLookup) Span() Span { return Span{e.Type.Pos, e.EndPos} }

// Place is the line of the opening bracket.
func (e *IndexLookup) Place() Place { return linePlace(e.Lbrack, e.EndPos) }

func (e *ShortLookup) Span() Span { return Span{e.X.Span().Start, e.EndPos} }

// Place is the line of the opening bracket.
func (e *ShortLookup) Place() Place { return linePlace(e.Lbrack, e.EndPos) }

func (e *Not) Span() Span   { return Span{e.Pos, e.X.Span().End} }
func (e *Not) Place() Place { return linePlace(e.Pos, e.Pos+Pos(len("not"))) }

func (e *Binary) Span() Span { return Span{e.X.Span().Start, e.Y.Span().End} }

// Place is the line of the operator.
func (e *Binary) Place() Place { return linePlace(e.OpPos, e.OpPos+Pos(len(e.Op.String()))) }

func (e *Cond) Span() Span { return Span{e.If.Span().Start, e.Else.Span().End} }

// Place is that of the condition.
func (e *Cond) Place() Place { return e.If.Place() }

func (e *IsDefined) Span() Span { return Span{e.X.Span().Start, e.EndPos} }

// Place is the line of the last dot of the reference, or of the name when there is none.
func (e *IsDefined) Place() Place { return linePlace(e.X.Place().Start, e.EndPos) }

func (e *Member) Span() Span { return Span{e.X.Span().Start, e.Name.Span().End} }

// Place is the line of the dot.
func (e *Member) Place() Place { return linePlace(e.Dot, e.Dot+1) }
