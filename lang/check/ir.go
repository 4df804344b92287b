package check

import (
	"github.com/intendant/intendant/lang/pyre"
	"github.com/intendant/intendant/lang/value"
)

// Expr is a bound expression. It is sealed.
type Expr interface {
	// Where is the place of the expression.
	Where() *Loc
}

// Stmt is a bound statement. It is sealed: *Assign, *SetAttr, *For, *If, *ExprStmt, *Annotate.
type Stmt interface {
	// Where is the place of the statement.
	Where() *Loc
}

type node struct{ At Loc }

// Where is the place of the node.
func (n *node) Where() *Loc { return &n.At }

// Literal is a constant.
type Literal struct {
	node
	Val value.Value
}

// RefKind says where a variable lives.
type RefKind uint8

// The places of variables: a block around the statement; the instance, or else the file, decided by the instance's type; a
// file; nowhere.
const (
	LocalRef RefKind = iota
	InstRef
	FileRef
	SelfRef
	MissingRef
)

// Ref refers to a variable.
type Ref struct {
	node
	Kind RefKind
	Name string
	// Hops and Index lead to a variable of a block: the number of scopes outwards and the place in that scope. For FileRef
	// and InstRef, NS and Index are the variable of the file; Index is -1 when the file has none.
	Hops, Index int
	NS          *Namespace
	// Missing is the text of the fault for MissingRef.
	Missing string
	Slot    int
	// Scope is where the name was looked for, for MissingRef and InstRef.
	Scope *Scope
	// Cache remembers where the last instance's entity holds the name; for the evaluator.
	Cache SlotCache
}

// SlotCache remembers the slot of a name for the entity seen last. The evaluator writes it, so a program must not be run twice
// at the same time.
type SlotCache struct {
	Entity *Entity
	Slot   int
}

// AttrRef refers to an attribute of the instance that another reference gives.
type AttrRef struct {
	node
	X      Expr // *Ref or *AttrRef
	Name   string
	Slot   int
	Layout int // frame of the unit that waits for X
	Cache  SlotCache
	Text   string
}

// List makes a list.
type List struct {
	node
	Items []Expr
	// Spans are the stretches of the frame that the items use: when the elements are consumed one by one each item is a
	// unit of its own.
	Spans [][2]int
	Slot  int
}

// Dict makes a dictionary.
type Dict struct {
	node
	Keys []string
	Vals []Expr
}

// Op is an operator on two values.
type Op uint8

// The operators.
const (
	Eq Op = iota
	Ne
	Lt
	Le
	Gt
	Ge
	Add
	Sub
	Mul
	Div
	Mod
	Pow
	In
)

var opNames = [...]string{"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "**", "in"}

// String is the operator as written.
func (o Op) String() string { return opNames[o] }

// Binary applies an operator.
type Binary struct {
	node
	Op   Op
	X, Y Expr
}

// Not negates.
type Not struct {
	node
	X Expr
}

// Match tests a string against a regular expression, at its start.
type Match struct {
	node
	X       Expr
	Pattern string
	Regexp  *pyre.Regexp
}

// Lazy is and, or: the right side runs only when it decides.
type Lazy struct {
	node
	Or                      bool
	X, Y                    Expr
	Slot                    int
	LeftLayout, RightLayout int
}

// IsDefined asks for a value. X is nil for a variable.
type IsDefined struct {
	node
	Var    *Ref
	X      Expr
	Name   string
	Slot   int
	Layout int
	Cache  SlotCache
}

// Cond chooses a value.
type Cond struct {
	node
	If, Then, Else                   Expr
	Slot                             int
	IfLayout, ThenLayout, ElseLayout int
}

// Comp is a comprehension over one iterable.
type Comp struct {
	node
	Var                string
	Value, Iter, Guard Expr
	// Guarded is the value under the guard; nil without a guard.
	Guarded                *Cond
	Slot                   int
	IterLayout, ElemLayout int
}

// Filtered is the value of an element that a guard rejected; never seen by a model.
type Filtered struct{ node }

// Named is a named argument.
type Named struct {
	Name string
	At   Loc
	X    Expr
	// Attr is the place of the attribute in the entity's slots, for constructors.
	Attr int
	// Layout is the frame of the unit that assigns the argument, for constructors.
	Layout int
	// Constant says that X is a *Literal.
	Constant bool
}

// Unpack is **expression.
type Unpack struct {
	node
	X Expr
}

// Call calls a plugin or casts to a primitive type.
type Call struct {
	node
	Name   string
	Plugin *Plugin
	Cast   Prim // when Plugin is nil
	Args   []Expr
	Kwargs []Named
	Unpack []*Unpack
	Slot   int
	Layout int
	// Scope resolves names as the statement of the call would.
	Scope *Scope
}

// Construct makes an instance or finds it in an index.
type Construct struct {
	node
	Type *Entity
	Name string
	// Direct are the arguments that are known before the instance is, Indirect those assigned to it afterwards, defaults
	// included.
	Direct, Indirect []Named
	Explicit         map[string]bool
	Unpack           []*Unpack
	// Required are index attributes that ** or the left-hand side must supply.
	Required []string
	// LHS is the left-hand instance of the assignment whose value this is; nil when it is not needed.
	LHS     Expr
	LHSAttr string
	// NeedsSelf says that constructors among the arguments refer to this instance as their left-hand side.
	NeedsSelf bool
}

// Argument is the place of the value of an argument; nil when it is not given in the constructor.
func (c *Construct) Argument(name string) *Loc {
	for _, args := range [][]Named{c.Direct, c.Indirect} {
		for i := range args {
			if args[i].Name == name && args[i].At.File != nil {
				return args[i].X.Where()
			}
		}
	}
	return nil
}

// Lookup finds an instance in an index.
type Lookup struct {
	node
	Type   *Entity // nil for the short form
	Root   Expr    // the short form's instance
	Rel    string  // the short form's relation
	Keys   []Named
	Unpack []*Unpack
	Slot   int
	Layout int
}

// MapLookup reads an entry of a dictionary.
type MapLookup struct {
	node
	X, Key Expr
}

// Format is a string with references, substituted textually.
type Format struct {
	node
	Text    string
	Sources []string
	Refs    []Expr
	// Cuts are the text between the references and the references in it, and Tail is what comes after the last one, when the
	// order of substitution makes no difference as long as the values have no braces. Cuts is nil when it may.
	Cuts []Cut
	Tail string
}

// Cut is a piece of text and the number of the reference behind it.
type Cut struct {
	Before string
	Ref    int
}

// FFormat is a format string.
type FFormat struct {
	node
	Parts []FPart
}

// FPart is a piece of a format string.
type FPart struct {
	Text       string
	Ref        Expr
	Positional bool
	Conversion byte
	Spec       []FPart
}

// Block is a sequence of statements with the variables that it declares.
type Block struct {
	// Names are the variables, one per place; a for loop's variable comes last.
	Names []string
	Stmts []Stmt
	NS    *Namespace
	// Bare says that the block declares no variables and needs no scope.
	Bare bool
}

// Assign gives a variable its value.
type Assign struct {
	node
	Target *Ref
	Value  Expr
	Layout int
}

// SetAttr gives an attribute its value.
type SetAttr struct {
	node
	X         Expr // the instance: *Ref or *AttrRef
	Layout    int
	Name      string
	Append    bool
	Value     Expr
	ValLayout int
	Cache     SlotCache
	// TargetAt is the place of what is assigned to.
	TargetAt   Loc
	TargetText string
}

// For runs a block for every element.
type For struct {
	node
	Iter     Expr
	Layout   int
	Var      int // place of the loop variable in the body
	Body     *Block
	Promises []Promise
}

// If runs one of two blocks.
type If struct {
	node
	Cond       Expr
	Layout     int
	Then, Else *Block
	Promises   []Promise
}

// ExprStmt evaluates an expression for its effect.
type ExprStmt struct {
	node
	X      Expr
	Layout int
}

// Annotate evaluates the annotations of a relation.
type Annotate struct {
	node
	Annotations []*Annotation
}

// Promise says that a block below a statement may assign an attribute. The statement announces this while it waits.
type Promise struct {
	X      Expr // the instance, bound where the statement stands
	Layout int
	Name   string
	At     *Loc
}

// Program is a checked project.
type Program struct {
	Root *Namespace
	// Files are the namespaces with a file, in load order.
	Files []*Namespace
	// Entities are in order of definition.
	Entities    []*Entity
	Base        *Entity // std::Entity
	Annotations int     // number of annotations
	// Policy lists the attributes of the precedence policy in their order.
	Policy []*Attribute
	// Symbols are all types and plugins by full name.
	Symbols map[string]Symbol

	// bodies are the top-level blocks by the number of the namespace, implementations those of implementations by theirs. They
	// are apart from what is declared, so that programs that declare the same may share it.
	bodies, implementations []*Block
	memo                    *memo // nil after a check with faults
}

// Body is the top-level block of a namespace, nil for one without a file.
func (p *Program) Body(ns *Namespace) *Block {
	if ns.ID < 0 || ns.ID >= len(p.bodies) {
		return nil
	}
	return p.bodies[ns.ID]
}

// Statements is the block of an implementation; nil when the check did not get that far.
func (p *Program) Statements(i *Implementation) *Block {
	if i.ID >= len(p.implementations) {
		return nil
	}
	return p.implementations[i.ID]
}
