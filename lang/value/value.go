// Package value holds the values of the modelling language at run time, with Python's semantics of equality, ordering,
// arithmetic, textual representation and formatting, since models rely on them (language specification, section 5 and
// appendix E).
//
// A [Value] is one of: [Null], [Bool], [Int], [*BigInt], [Float], [String], [*List], [*Dict], [Instance], [*Unknown],
// [*Reference], [*Opaque]. Lists are flat; dictionaries keep insertion order. All values but instances are immutable once published.
package value

import "math/big"

// Value is any value of the language. It is sealed: only this package's types and types that embed [IsInstance] have it.
type Value interface {
	isValue()
}

// Null is the value null.
type Null struct{}

// Bool is true or false. As in Python it is also the number 1 or 0.
type Bool bool

// Int is an integer that fits 64 bits; larger ones are [*BigInt]. Arithmetic normalises: a value that fits is always an Int.
type Int int64

// BigInt is an integer that does not fit an [Int].
type BigInt struct{ V *big.Int }

// Float is an IEEE 754 double.
type Float float64

// String is a text. A model's text is Unicode; the bytes are UTF-8.
type String string

// List is an ordered sequence. It is immutable once it has been published to another statement.
type List struct{ Items []Value }

// Unknown stands for a value that is not known yet, such as a fact that no agent has reported. Each one has its own identity.
type Unknown struct {
	// Source is what the value is awaited from, such as a parameter's name; empty when nobody said.
	Source string
}

// Reference stands for a value that is resolved only when a resource is deployed.
type Reference struct {
	// Type is the registered name of the reference class, such as std::Environment.
	Type string
	// Args are its arguments by name.
	Args *Dict
	// Model is the name of the language type the reference resolves to, such as string.
	Model string
}

// Opaque is an object of another language that a plugin made. A model can pass it on, compare it with itself and show it, and
// nothing more; only the type any takes it. Each one has its own identity.
type Opaque struct {
	// Class is the name of its class in that language.
	Class string
	// Text is what its language shows it as, Notation the same inside a list or a dictionary.
	Text, Notation string
}

// Instance is an entity instance. The evaluator implements it; plugins, templates and the exporter read it.
type Instance interface {
	Value
	// TypeName is the qualified name of the instance's entity, such as std::File.
	TypeName() string
	// IsA reports whether the instance's entity is, or descends from, the entity of that qualified name.
	IsA(qualified string) bool
	// Attribute returns the value of an attribute or relation. ok is false when the entity has no such attribute.
	// It returns [*UnsetError] when the attribute has no value yet (the evaluator retries a plugin that passes this on),
	// [*OptionalError] when an optional relation was closed without a value.
	Attribute(name string) (v Value, ok bool, err error)
	// AttributeNames lists attributes and relations, in the order of the slots.
	AttributeNames() []string
	// Serial numbers instances in creation order, from 1.
	Serial() int
	// Places lists every place that constructed this instance, as file:line.
	Places() []string
}

// IsInstance is embedded by implementations of [Instance].
type IsInstance struct{}

func (Null) isValue()       {}
func (Bool) isValue()       {}
func (Int) isValue()        {}
func (*BigInt) isValue()    {}
func (Float) isValue()      {}
func (String) isValue()     {}
func (*List) isValue()      {}
func (*Dict) isValue()      {}
func (*Unknown) isValue()   {}
func (*Reference) isValue() {}
func (*Opaque) isValue()    {}
func (IsInstance) isValue() {}

// UnsetError says that an attribute of an instance was read before it had a value. A plugin that meets it must return it
// (wrapped or not) so that the evaluator can call the plugin again once Waiter has a value.
type UnsetError struct {
	Instance  Instance
	Attribute string
	// Waiter is the evaluator's variable; opaque to everybody else.
	Waiter any
	// More are further attributes without a value: the plugin needs them all.
	More []*UnsetError
}

func (e *UnsetError) Error() string {
	return "attribute " + e.Attribute + " of " + e.Instance.TypeName() + " has no value yet"
}

// OptionalError says that an optional relation was read that was closed without a value.
type OptionalError struct {
	Instance  Instance
	Attribute string
}

func (e *OptionalError) Error() string {
	return "Optional variable accessed that has no value (attribute `" + e.Instance.TypeName() + "." + e.Attribute + "`)"
}

// UnknownError says that a plugin needed an unknown value; the call's result is Unknown.
type UnknownError struct{ Value *Unknown }

func (e *UnknownError) Error() string { return "the value is unknown" }
