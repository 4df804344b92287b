package check

import (
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/value"
)

// Type is a type of the language: a [Prim], a *[ListOf], a *[Nullable], a *[Union], a *[Typedef], or an *[Entity]. It is sealed.
type Type interface {
	// String is the type as messages write it.
	String() string
	typ()
}

// Prim is a built-in type.
type Prim uint8

// The built-in types. ListPrim and DictPrim are the language's list and dict, which hold literals only; AnyList and AnyDict
// are the types list and dict in the signatures of plugins.
const (
	String Prim = iota
	Int
	Float
	Number
	Bool
	ListPrim
	DictPrim
	Any
	NullPrim
	AnyList
	AnyDict
)

var primNames = [...]string{"string", "int", "float", "number", "bool", "list", "dict", "any", "null", "list", "dict"}

// primitives are the names that resolve before all others.
var primitives = map[string]Prim{
	"string": String, "int": Int, "float": Float, "number": Number, "bool": Bool, "list": ListPrim, "dict": DictPrim,
}

// String is the name of the type.
func (p Prim) String() string { return primNames[p] }

// ListOf is T[].
type ListOf struct{ Elem Type }

func (t *ListOf) String() string { return wrapped(t.Elem) + "[]" }

// Nullable is T?.
type Nullable struct{ Elem Type }

func (t *Nullable) String() string { return wrapped(t.Elem) + "?" }

func wrapped(t Type) string {
	s := t.String()
	if strings.Contains(s, " ") {
		return "(" + s + ")"
	}
	return s
}

// DictOf is dict[string, T] in the signature of a plugin.
type DictOf struct{ Elem Type }

func (t *DictOf) String() string { return "dict[string, " + t.Elem.String() + "]" }

// RefTo is a reference to a value of a type, in the signature of a plugin.
type RefTo struct{ Elem Type }

func (t *RefTo) String() string { return "Reference[" + t.Elem.String() + "]" }

// Union is a choice of types in the signature of a plugin.
type Union struct{ Alts []Type }

func (t *Union) String() string {
	s := make([]string, len(t.Alts))
	for i, a := range t.Alts {
		s[i] = a.String()
	}
	return "Union[" + strings.Join(s, ",") + "]"
}

// OrReference is T or a reference to a value of a type, in the signature of a plugin.
type OrReference struct {
	Elem Type
	Ref  *RefTo
}

func (t *OrReference) String() string { return t.Ref.String() + " | " + t.Elem.String() }

func (*OrReference) typ() {}
func (Prim) typ()         {}
func (*ListOf) typ()      {}
func (*Nullable) typ()    {}
func (*DictOf) typ()      {}
func (*Union) typ()       {}
func (*RefTo) typ()       {}
func (*Typedef) typ()     {}
func (*Entity) typ()      {}

// sameType reports whether two types are equal (language specification, section 5.2).
func sameType(a, b Type) bool {
	switch x := a.(type) {
	case *ListOf:
		y, ok := b.(*ListOf)
		return ok && sameType(x.Elem, y.Elem)
	case *Nullable:
		y, ok := b.(*Nullable)
		return ok && sameType(x.Elem, y.Elem)
	}
	return a == b
}

// Symbol is what a name of a namespace stands for: a *[Typedef], an *[Entity], an *[Implementation] or a *[Plugin].
type Symbol interface {
	// FullName is the name with its namespace.
	FullName() string
	symbolLoc() *Loc
	doubleDefined() string
}

// Typedef is a type made by narrowing another.
type Typedef struct {
	Name string
	NS   *Namespace
	At   Loc
	Base Type
	// Endless types have no base in the end: they lead to themselves. Nothing is of such a type.
	Endless bool
	// Constraint is over self. It is evaluated directly, without waiting.
	Constraint Expr
	// Pretty is the constraint as messages show it.
	Pretty string
	// Matched is the text that the constraint accepted last if that is all it depends on, a value.String, or nil; for the evaluator.
	Matched value.Value
}

// FullName is the name with its namespace.
func (t *Typedef) FullName() string { return t.NS.Full + "::" + t.Name }
func (t *Typedef) String() string   { return t.FullName() }
func (t *Typedef) symbolLoc() *Loc  { return &t.At }
func (t *Typedef) doubleDefined() string {
	return "TypeConstraint " + t.FullName() + " is already defined"
}

// Attribute is an attribute or one end of a relation.
type Attribute struct {
	Name   string
	Entity *Entity
	At     Loc
	// Doc is the docstring of a relation.
	Doc string
	// Base is the declared type without [] and ?; for a relation the target entity.
	Base Type
	// Type is the declared type. For a relation it is the target entity, whatever the multiplicity.
	Type           Type
	List, Optional bool
	Relation       bool
	Low, High      int // High is -1 without an upper bound
	End            *Attribute
	Annotations    []*Annotation
	Right          bool         // the end that stands on the right of its statement
	FreezeBefore   []*Attribute // attributes that the precedence policy freezes after this one
	Precedes       bool         // FreezeBefore is not empty
	PolicyRank     int          // place in the policy's order, counting from 1; 0 for attributes that it does not name
	// Cache remembers where the last instance's entity holds the attribute; for the evaluator.
	Cache           SlotCache
	defaultExpr     *Literal
	removesDefault  bool
	hasDefaultEntry bool
}

// Multi reports whether the attribute holds a list: T[] or a relation whose upper bound is not 1.
func (a *Attribute) Multi() bool {
	if a.Relation {
		return a.High != 1
	}
	return a.List
}

// Kind is the kind of variable that holds the attribute.
func (a *Attribute) Kind() Kind {
	switch {
	case !a.Relation:
		return Plain
	case a.Low == 1 && a.High == 1:
		return Single
	case a.Low == 0 && a.High == 1:
		return Maybe
	}
	return Many
}

// Kind is a kind of variable (language specification, section 10.1).
type Kind uint8

// The kinds of variables of an instance: an attribute, a relation [1], [0:1] and any other multiplicity.
const (
	Plain Kind = iota
	Single
	Maybe
	Many
)

// String is the relation with its entity.
func (a *Attribute) String() string { return a.Entity.FullName() + "." + a.Name }

// Annotation is an annotation of a relation. Its value is known when the program has run.
type Annotation struct {
	X      Expr
	Layout int
	// ID numbers the annotations of the program.
	ID int
}

// Entity is a class of instances.
type Entity struct {
	Name string
	NS   *Namespace
	At   Loc
	ID   int
	// Doc is the docstring.
	Doc      string
	Parents  []*Entity
	Children []*Entity
	Own      []*Attribute
	// All are the attributes and relations of the entity and its ancestors, in the order of the slots.
	All []*Attribute
	// Defaults are the default values in force, in the order in which the language assigns them.
	Defaults []Default
	// Indexes are the index definitions, attribute names sorted.
	Indexes []*IndexDef
	// Indexed are the entity and its ancestors that have indexes.
	Indexed []*Entity
	// Implements are the selections of the entity itself, Subs those that apply to its instances.
	Implements []*Implement
	Subs       []*Implement
	// Dataclass says that the entity descends from std::Dataclass.
	Dataclass bool

	inherits  bool
	own       map[string]*Attribute
	slots     map[string]int
	ancestors []uint64
	full      string
	stmtAt    Loc
	collected bool
	// summary says by slot which attributes have a default and which are in an index, defaultSlots are the slots of Defaults. Both
	// are nil before they are needed.
	summary      []slotSummary
	defaultSlots []int
	// given are the slots of the arguments of the constructor that was bound last: the next one has often the same.
	given []int
}

// Default is the default value of an attribute.
type Default struct {
	Attr *Attribute
	X    *Literal
}

// IndexDef is an index over attributes, whose names are sorted.
type IndexDef struct {
	Names []string
	At    *Loc
	// Home is the entity that the index was defined for: this entity or an ancestor. No two of its instances have the same key.
	Home *Entity
	// ID numbers the lists of names of the program: indexes over the same attributes have the same.
	ID int
	// Cache remembers where the last instance's entity holds the attributes, in the order of the names; for the evaluator.
	Cache IndexCache
}

// IndexCache remembers the slots of the attributes of an index for the entity seen last, as [SlotCache] does.
type IndexCache struct {
	Entity *Entity
	Slots  []int
}

// FullName is the name with its namespace.
func (e *Entity) FullName() string      { return e.full }
func (e *Entity) String() string        { return e.full }
func (e *Entity) symbolLoc() *Loc       { return &e.At }
func (e *Entity) doubleDefined() string { return "Entity " + e.full + " is already defined" }

// IsA reports whether the entity is o or descends from it.
func (e *Entity) IsA(o *Entity) bool {
	return e == o || o.ID>>6 < len(e.ancestors) && e.ancestors[o.ID>>6]&(1<<(o.ID&63)) != 0
}

// Slot is the place of the attribute in All; ok is false when there is none of the name.
func (e *Entity) Slot(name string) (int, bool) {
	i, ok := e.slots[name]
	return i, ok
}

// Attr is the attribute of the name, nil when there is none.
func (e *Entity) Attr(name string) *Attribute {
	if i, ok := e.slots[name]; ok {
		return e.All[i]
	}
	return nil
}

// collect fills All and the table of slots once the attributes of all ancestors are defined. The left-most parent wins.
func (e *Entity) collect() {
	if e.collected {
		return
	}
	e.collected = true
	e.slots = make(map[string]int)
	put := func(a *Attribute) {
		if i, ok := e.slots[a.Name]; ok {
			e.All[i] = a
			return
		}
		e.slots[a.Name] = len(e.All)
		e.All = append(e.All, a)
	}
	var defaults []Default
	at := make(map[string]int)
	for _, p := range slices.Backward(e.Parents) {
		p.collect()
		for _, a := range p.All {
			put(a)
		}
		for _, d := range p.Defaults {
			if j, ok := at[d.Attr.Name]; ok {
				defaults[j] = d
				continue
			}
			at[d.Attr.Name] = len(defaults)
			defaults = append(defaults, d)
		}
	}
	for _, a := range e.Own {
		put(a)
		if !a.hasDefaultEntry {
			continue
		}
		d := Default{Attr: a, X: a.defaultExpr}
		if j, ok := at[a.Name]; ok {
			defaults[j] = d
			continue
		}
		at[a.Name] = len(defaults)
		defaults = append(defaults, d)
	}
	for _, d := range defaults {
		if d.X != nil {
			e.Defaults = append(e.Defaults, d)
		}
	}
}

// Implementation is a block of statements that runs with an instance as its scope.
type Implementation struct {
	Name   string
	NS     *Namespace
	At     Loc
	Entity *Entity
	ID     int
}

// FullName is the name with its namespace.
func (i *Implementation) FullName() string { return i.NS.Full + "::" + i.Name }
func (i *Implementation) symbolLoc() *Loc  { return &i.At }
func (i *Implementation) doubleDefined() string {
	return "Implementation " + i.FullName() + " is already defined"
}

// Implement selects implementations for instances of an entity, when a condition holds.
type Implement struct {
	At     Loc
	When   Expr // nil without a condition
	Layout int
	Using  []*Implementation
}

// Plugin is a function that models call.
type Plugin struct {
	*value.Plugin
	NS      *Namespace
	Params  []Param
	Returns Type
	At      Loc
}

// Param is a parameter of a plugin with its type resolved.
type Param struct {
	value.Param
	Typ Type
}

// FullName is the name with its namespace.
func (p *Plugin) FullName() string      { return p.Name }
func (p *Plugin) symbolLoc() *Loc       { return &p.At }
func (p *Plugin) doubleDefined() string { return "Type " + p.Name + " is already defined" }
