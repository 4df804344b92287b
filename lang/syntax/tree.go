package syntax

import "github.com/intendant/intendant/lang/value"

// Node is any node of the tree.
type Node interface {
	// Span is the text of the node from its first token to its last. Parentheses around an expression do not count.
	Span() Span
	// Place is where the language locates the node in messages (language specification, appendix C).
	Place() Place
}

// Stmt is a statement. It is sealed: *Import, *Entity, *Implementation, *Implement, *Relation, *Typedef, *Index (only at
// the top level of a file), *Assign, *For, *If, *ExprStmt (everywhere).
type Stmt interface {
	Node
	stmt()
}

// Expr is an expression. It is sealed: *Literal, *Regex, *Interpolation, *FString, *VarRef, *AttrRef, *List, *ListComp,
// *Dict, *Call, *Construct, *MapLookup, *IndexLookup, *ShortLookup, *Not, *Binary, *Cond, *IsDefined, and *Member, which only
// [ParseQuery] gives.
//
// There is no node for parentheses: they only decide the shape of the tree.
type Expr interface {
	Node
	expr()
}

// Ref is a reference to a variable or to an attribute: *VarRef or *AttrRef.
type Ref interface {
	Expr
	// Text is the reference as written in a model, without white space: ns::name.attr.
	Text() string
	ref()
}

// File is a parsed source file.
//
//	[docstring] {statement}
type File struct {
	// Name is the path relative to the project, with forward slashes.
	Name string
	// Src is the text, with every line ending as \n. Positions are offsets into it.
	Src []byte
	// Doc is the multi-line string at the start of the file, nil when there is none.
	Doc *Literal
	// Stmts are the statements in source order.
	Stmts []Stmt
	// Comments are all comments, in source order.
	Comments []Comment

	lines []uint32 // the offsets at which lines start
}

// Comment is a comment, from its # up to the end of the line.
type Comment struct {
	Pos Pos
	// Text is the comment with its #, without the line ending.
	Text string
}

// Name is an identifier at a place.
type Name struct {
	Text string
	Pos  Pos
}

// Span is the text of the identifier.
func (n Name) Span() Span { return Span{n.Pos, n.Pos + Pos(len(n.Text))} }

// Place is the range of the identifier.
func (n Name) Place() Place { return Place{Span: n.Span()} }

// Valid reports whether there is a name.
func (n Name) Valid() bool { return n.Pos != NoPos }

// QName is a name that a namespace may precede: name, ns::name, a::b::Name.
type QName struct {
	// Space is the namespace before the last ::, such as a::b; empty for an unqualified name.
	Space string
	// Base is the last identifier.
	Base string
	// Text is the whole name without white space.
	Text string
	// Pos is the place of the first identifier, BasePos that of the last.
	Pos, BasePos Pos
}

// Span is the text from the first identifier to the last.
func (q QName) Span() Span { return Span{q.Pos, q.BasePos + Pos(len(q.Base))} }

// Place is the range of the whole name.
func (q QName) Place() Place { return Place{Span: q.Span()} }

// Valid reports whether there is a name.
func (q QName) Valid() bool { return q.Pos != NoPos }

// Import makes a namespace visible in the file.
//
//	import a::b
//	import a::b as x
type Import struct {
	Pos  Pos // of the keyword
	Name QName
	// Alias is the name after as; not valid when there is none.
	Alias Name
}

// Entity defines an entity.
//
//	entity Name extends Parent, ns::Parent:
//	    """docstring"""
//	    type attribute = default
//	end
type Entity struct {
	Pos     Pos // of the keyword
	Name    Name
	Parents []QName
	// Doc is the docstring, nil when there is none.
	Doc    *Literal
	Attrs  []*Attribute
	EndPos Pos // behind the keyword end
}

// Attribute is an attribute of an [Entity].
//
//	ns::type[]? name
//	type name = constant
//	type name = undef
//	dict? name = {"key": constant}
type Attribute struct {
	Type TypeRef
	Name Name
	// Default is nil without a default and with undef. It is a constant by grammar: a *Literal, *Regex, *Interpolation,
	// *FString, a *List of those, or a *Dict (whose values may be any expression).
	Default Expr
	// Undef says that the declaration removes an inherited default: = undef.
	Undef bool
	// EndPos is behind the last token.
	EndPos Pos
}

// TypeRef is the type of an attribute: name, name[], name?, name[]?. A dictionary's name is dict.
type TypeRef struct {
	Name     QName
	List     bool
	Optional bool
	EndPos   Pos // behind the last token
}

// Text is the type as written in a model, without white space.
func (t TypeRef) Text() string {
	s := t.Name.Text
	if t.List {
		s += "[]"
	}
	if t.Optional {
		s += "?"
	}
	return s
}

// Span is the text of the type.
func (t TypeRef) Span() Span { return Span{t.Name.Pos, t.EndPos} }

// Place is the range of the type's name.
func (t TypeRef) Place() Place { return t.Name.Place() }

// Implementation is a block of statements to be run for instances of an entity.
//
//	implementation name for ns::Entity:
//	    """docstring"""
//	    {statement}
//	end
type Implementation struct {
	Pos  Pos // of the keyword
	Name Name
	For  QName
	// Doc is the docstring, nil when there is none.
	Doc *Literal
	// Body is in source order. The language runs blocks from the last statement to the first.
	Body   []Stmt
	EndPos Pos // behind the keyword end
}

// Implement selects implementations for an entity.
//
//	implement ns::Entity using ns::name, parents when condition """docstring"""
type Implement struct {
	Pos    Pos // of the keyword
	Entity QName
	// Using are the implementations in source order, without parents.
	Using []QName
	// Parents is the place of the keyword parents among the implementations; [NoPos] when it is not there.
	Parents Pos
	// When is nil without a condition.
	When   Expr
	Doc    *Literal
	EndPos Pos // behind the last token
}

// Relation defines a relation between two entities, in both directions or in one.
//
//	Left.name [1:] -- Right.name [0:1] """docstring"""
//	Left.name [1:] -- Right
//	Left.name [1:] annotation, annotation Right.name [1]
type Relation struct {
	Left RelationEnd
	// Dot is the place of the dot of the left end.
	Dot Pos
	// Op is the place of --, -> or <-; [NoPos] when annotations stand in its place.
	Op Pos
	// Annotations are evaluated in the file's scope.
	Annotations []Expr
	Right       RelationEnd
	Doc         *Literal
	EndPos      Pos // behind the last token
}

// RelationEnd is one side of a [Relation]: ns::Entity.name [low:high]. The name and multiplicity say what instances of
// this entity hold of the other one.
type RelationEnd struct {
	Entity QName
	// Name is the attribute on Entity; not valid on the right side of a relation in one direction.
	Name Name
	// Low and High bound the number of values. High is [Unbounded] without an upper bound.
	Low, High int
}

// Unbounded is the upper bound of a multiplicity without one.
const Unbounded = -1

// Typedef defines a type as a constraint on another.
//
//	typedef name as ns::base matching expression """docstring"""
//	typedef name as ns::base matching /regular expression/
type Typedef struct {
	Pos  Pos // of the keyword
	Name Name
	Base QName
	// Constraint is a *Regex or any other expression over self.
	Constraint Expr
	Doc        *Literal
	EndPos     Pos // behind the last token
}

// Index declares attributes that identify an instance.
//
//	index ns::Entity(name, name)
type Index struct {
	Pos    Pos // of the keyword
	Entity QName
	Attrs  []Name
	EndPos Pos // behind the closing parenthesis
}

// Assign gives a variable or an attribute a value, or adds to a relation.
//
//	ns::name = expression
//	name.attr = expression
//	name.attr += expression
type Assign struct {
	Target Ref
	Op     Pos // of the operator
	// Append is true for +=; then Target is an *AttrRef.
	Append bool
	Value  Expr
}

// For runs a block for every element.
//
//	for name in expression: {statement} end
type For struct {
	Pos  Pos // of the keyword
	Var  Name
	Iter Expr
	// Body is in source order. The language runs blocks from the last statement to the first.
	Body   []Stmt
	EndPos Pos // behind the keyword end
}

// If runs one of two blocks.
//
//	if condition: {statement} else: {statement} end
//	if condition: {statement} elif condition: {statement} end
type If struct {
	Pos   Pos // of the keyword if or elif
	Cond  Expr
	Colon Pos // behind the condition
	// Then and Else are in source order. The language runs blocks from the last statement to the first.
	Then []Stmt
	// Else is the block after else, or a single *If for elif, or nil.
	Else []Stmt
	// Elif says that this is the branch of an elif, which is the only statement in the Else of another If.
	Elif   bool
	EndPos Pos // behind the keyword end (for Elif: behind that of the outermost If)
}

// ExprStmt evaluates an expression for its effect.
//
//	expression
type ExprStmt struct{ X Expr }

// Literal is a constant: null, true, 5, 2.5, "text", r"text", or a multi-line string. Its value is [value.Null],
// [value.Bool], [value.Int], [*value.BigInt], [value.Float] or [value.String].
type Literal struct {
	Pos, EndPos Pos
	Kind        LiteralKind
	Value       value.Value
}

// LiteralKind is the notation of a [Literal].
type LiteralKind uint8

// The notations of literals.
const (
	NullLiteral   LiteralKind = iota
	BoolLiteral               // true
	NumberLiteral             // 5, -2.5
	StringLiteral             // "text" or 'text', escapes already decoded
	RawLiteral                // r"text", as written
	MultiLiteral              // """text""", escapes already decoded
	FormatLiteral             // f"text" without fields, decoded
)

// Regex is a regular expression. It stands only behind the keyword matching.
//
//	matching /pattern/
type Regex struct {
	Pos, EndPos Pos // of the text between and including the slashes
	// Pattern is the text between the slashes, as written, in the notation of Python's re module.
	Pattern string
}

// Interpolation is a string with references in it.
//
//	"text {{ name.attr }} text"
//	"""text {{ name }}"""
type Interpolation struct {
	Pos, EndPos Pos
	// Multi is true for a multi-line string.
	Multi bool
	// Text is the string with escapes decoded and placeholders in place.
	Text string
	// Holes are the placeholders in the order in which they stand. Substitution is textual: for one after another, every
	// occurrence of Source in the intermediate text is replaced.
	Holes []Hole
}

// Hole is a placeholder of an [Interpolation].
type Hole struct {
	// Source is the exact text with its braces, such as {{ a.b }}.
	Source string
	Ref    Ref
}

// FString is a format string with at least one field, in the syntax of Python's string.Formatter.
//
//	f"text {name.attr!r:>10} text"
type FString struct {
	Pos, EndPos Pos
	// Text is the string with escapes decoded and fields in place.
	Text string
	// Parts are the pieces in order.
	Parts []FormatPart
}

// FormatPart is a piece of an [FString] or of a format specification: literal text, or a field.
type FormatPart struct {
	// Text is literal text; the piece is text when Ref is nil and Positional is false.
	Text string
	// Ref is the value of a field. It is nil for the piece {} (see Positional).
	Ref Ref
	// Positional says that the field has no name, which is an error when the string is evaluated.
	Positional bool
	// Conversion is r, s or a; 0 without one.
	Conversion rune
	// Spec is the format specification, which may hold fields itself; nil without one.
	Spec []FormatPart
}

// IsField reports whether the piece is a field.
func (p FormatPart) IsField() bool { return p.Ref != nil || p.Positional }

// VarRef refers to a variable.
//
//	name
//	ns::name
type VarRef struct{ Name QName }

// AttrRef refers to an attribute of the instance that a reference gives.
//
//	X.name
type AttrRef struct {
	X    Ref
	Dot  Pos
	Name Name
}

// List is a list.
//
//	[expression, expression]
type List struct {
	Pos, EndPos Pos // of the brackets: at [ and behind ]
	Items       []Expr
}

// ListComp makes a list out of others. The leftmost for is the outermost loop; all conditions must hold and are checked in
// the innermost.
//
//	[expression for name in expression for name in expression if condition if condition]
type ListComp struct {
	Pos, EndPos Pos // of the brackets: at [ and behind ]
	Value       Expr
	Fors        []CompFor
	Conds       []Expr
}

// CompFor is one loop of a [ListComp].
//
//	for name in expression
type CompFor struct {
	Pos  Pos // of the keyword
	Var  Name
	Iter Expr
}

// Dict is a dictionary.
//
//	{"key": expression, r'key': expression}
type Dict struct {
	Pos, EndPos Pos // of the braces: at { and behind }
	Entries     []DictEntry
}

// DictEntry is one entry of a [Dict]. Keys are distinct.
type DictEntry struct {
	Key   *Literal
	Value Expr
}

// Arg is an argument of a call, a constructor or a lookup.
//
//	expression
//	name = expression
//	**expression
type Arg struct {
	// Name is the keyword; not valid for the other two forms.
	Name Name
	// Unpack is the place of **; [NoPos] for the other two forms.
	Unpack Pos
	Value  Expr
}

// Call calls a plugin or converts to a primitive type.
//
//	ns::name(expression, name = expression, **expression)
type Call struct {
	Func   QName
	Lparen Pos
	// Args are in source order; positional ones may follow others.
	Args   []Arg
	EndPos Pos // behind the closing parenthesis
}

// Construct makes an instance, or finds it in an index.
//
//	ns::Entity(name = expression, **expression)
type Construct struct {
	Type   QName
	Lparen Pos
	// Args have a name or are unpacked.
	Args   []Arg
	EndPos Pos // behind the closing parenthesis
}

// MapLookup reads an entry of a dictionary.
//
//	X[expression]
type MapLookup struct {
	X      Expr // a Ref or a *MapLookup
	Lbrack Pos
	Key    Expr
	EndPos Pos // behind the closing bracket
}

// IndexLookup finds an instance in an index.
//
//	ns::Entity[name = expression, **expression]
type IndexLookup struct {
	Type   QName
	Lbrack Pos
	// Args have a name or are unpacked.
	Args   []Arg
	EndPos Pos // behind the closing bracket
}

// ShortLookup finds an instance in the index that starts with the inverse of a relation.
//
//	name.relation[name = expression, **expression]
type ShortLookup struct {
	X      *AttrRef
	Lbrack Pos
	// Args have a name or are unpacked.
	Args   []Arg
	EndPos Pos // behind the closing bracket
}

// Not negates a boolean.
//
//	not X
type Not struct {
	Pos Pos // of the keyword
	X   Expr
}

// Binary applies an operator to two values.
//
//	X op Y
type Binary struct {
	X  Expr
	Op BinaryOp
	// OpPos is the place of the operator; of the keyword not for [OpNotIn].
	OpPos Pos
	Y     Expr
}

// BinaryOp is the operator of a [Binary].
type BinaryOp uint8

// The binary operators.
const (
	OpOr    BinaryOp = iota // or
	OpAnd                   // and
	OpEq                    // ==
	OpNe                    // !=
	OpLt                    // <
	OpLe                    // <=
	OpGt                    // >
	OpGe                    // >=
	OpAdd                   // +
	OpSub                   // -
	OpMul                   // *
	OpDiv                   // /
	OpMod                   // %
	OpPow                   // **
	OpIn                    // in
	OpNotIn                 // not in: the negation of in
)

var binaryOps = [...]string{"or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "**", "in", "not in"}

// String is the operator as written in a model.
func (op BinaryOp) String() string { return binaryOps[op] }

// Cond chooses one of two values.
//
//	If ? Then : Else
type Cond struct {
	If       Expr
	Question Pos // of ?
	Then     Expr
	Else     Expr
}

// Member is an attribute of what an expression gives, where that is no reference. Models can not say it; queries can.
//
//	X.name
type Member struct {
	X    Expr
	Dot  Pos
	Name Name
}

// IsDefined asks whether a variable, an attribute or an entry of a dictionary has a value.
//
//	name is defined
//	name.attr is defined
//	name["key"] is defined
type IsDefined struct {
	X      Expr // a Ref or a *MapLookup
	Is     Pos  // of the keyword is
	EndPos Pos  // behind the keyword defined
}

func (*Import) stmt()         {}
func (*Entity) stmt()         {}
func (*Implementation) stmt() {}
func (*Implement) stmt()      {}
func (*Relation) stmt()       {}
func (*Typedef) stmt()        {}
func (*Index) stmt()          {}
func (*Assign) stmt()         {}
func (*For) stmt()            {}
func (*If) stmt()             {}
func (*ExprStmt) stmt()       {}

func (*Literal) expr()       {}
func (*Regex) expr()         {}
func (*Interpolation) expr() {}
func (*FString) expr()       {}
func (*VarRef) expr()        {}
func (*AttrRef) expr()       {}
func (*List) expr()          {}
func (*ListComp) expr()      {}
func (*Dict) expr()          {}
func (*Call) expr()          {}
func (*Construct) expr()     {}
func (*MapLookup) expr()     {}
func (*IndexLookup) expr()   {}
func (*ShortLookup) expr()   {}
func (*Not) expr()           {}
func (*Binary) expr()        {}
func (*Cond) expr()          {}
func (*IsDefined) expr()     {}
func (*Member) expr()        {}

func (*VarRef) ref()  {}
func (*AttrRef) ref() {}

// Text is the reference as written in a model, without white space.
func (e *VarRef) Text() string { return e.Name.Text }

// Text is the reference as written in a model, without white space.
func (e *AttrRef) Text() string { return e.X.Text() + "." + e.Name.Text }
