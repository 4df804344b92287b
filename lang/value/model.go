package value

// ModelContext is a [Context] that also lends what is known of the types of the model. Plugins that are not part of the compiler
// get one: their authors may look into types and instances.
type ModelContext interface {
	Context
	// Type describes an entity or a typedef by its qualified name; ok is false when there is none.
	Type(name string) (t TypeInfo, ok bool)
	// TypeNames lists the qualified names of entities and typedefs, sorted.
	TypeNames() []string
	// PluginNames lists the qualified names of plugins, sorted.
	PluginNames() []string
	// Instances lists the instances of an entity and of those that descend from it, in creation order. While the model runs there
	// may be more to come.
	Instances(entity string) []Instance
	// Construct makes an instance with these attributes, as a constructor at the place of the call would. It fails when the
	// attributes do not fit, or when the model does not run any more.
	Construct(entity string, attrs *Dict) (Instance, error)
	// Invoke calls a plugin with arguments that are matched and checked as those of a call in a model. Its errors are those of
	// [Plugin].Call, and that of a call that is wrong.
	Invoke(plugin string, args []Value, kwargs *Dict) (Value, error)
}

// TypeInfo describes an entity or a typedef.
type TypeInfo struct {
	Name string
	// Entity is false for a typedef, which has a Base only: the type that it narrows.
	Entity bool
	Base   string
	// Dataclass says that instances stand for objects of a Python dataclass.
	Dataclass bool
	// Parents and Children are the direct ones, Ancestors all, near ones first.
	Parents, Children, Ancestors []string
	// Attributes are those of the entity and its ancestors, in the order of the slots.
	Attributes []AttributeInfo
	// Indexes are the sorted names of the attributes of each index, of the entity and its ancestors.
	Indexes [][]string
	// Implements are the selections of implementations that apply to its instances: its own, then those that it inherits.
	Implements []ImplementInfo
	// Doc is the docstring of an entity.
	Doc string
	// File and Line are where it is declared.
	File string
	Line int
}

// ImplementInfo describes an implement statement.
type ImplementInfo struct {
	// Implementations are the qualified names of what it selects.
	Implementations []string
	// Conditional says that it selects them for some instances only.
	Conditional bool
	// File and Line are where it stands.
	File string
	Line int
}

// AnnotationInfo is an annotation of a relation: its value, or what is to be waited for.
type AnnotationInfo struct {
	Value Value
	Unset *UnsetError
}

// AttributeInfo describes an attribute or a relation of an entity.
type AttributeInfo struct {
	Name string
	// Owner is the entity that declares it.
	Owner string
	// Type is the declared type of an attribute, the target entity of a relation.
	Type     string
	Relation bool
	// Low and High bound the number of instances in a relation; High is -1 without an upper bound.
	Low, High int
	// EndEntity and EndName are the other end of a relation; empty when that has no name.
	EndEntity, EndName string
	// Doc is the docstring of a relation.
	Doc string
	// Annotations are those of a relation; Right says that the attribute stands on the right of the statement.
	Annotations []AnnotationInfo
	Right       bool
}
