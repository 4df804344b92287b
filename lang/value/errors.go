package value

// OperandError says that an operator was applied to values of kinds that it does not work on. The evaluator reports it as a
// TypingException with Message as its text.
type OperandError struct{ Message string }

func (e *OperandError) Error() string { return e.Message }

// ArithmeticError says that a calculation has no result although its operands are numbers: division by zero, overflow of a
// float, or an integer past [MaxIntBits].
type ArithmeticError struct {
	// Message is the text for the user.
	Message string
	// Class is the name of Python's exception for the fault: ZeroDivisionError, OverflowError or ValueError.
	Class string
}

func (e *ArithmeticError) Error() string { return e.Message }

// FormatError says that a format specification is malformed or does not suit the value.
type FormatError struct {
	// Message is Python's text.
	Message string
	// Class is the name of Python's exception: ValueError, TypeError or OverflowError.
	Class string
}

func (e *FormatError) Error() string { return e.Message }

// CastError says that a value can not be converted to a primitive type.
type CastError struct {
	// Value is the value that was given, Type the primitive type asked for.
	Value Value
	Type  string
}

func (e *CastError) Error() string { return "Failed to cast '" + Str(e.Value) + "' to " + e.Type }

// ReferenceError says that a reference was used where a value is needed now.
type ReferenceError struct{ Reference *Reference }

func (e *ReferenceError) Error() string {
	return "Unexpected reference to a " + e.Reference.Model + " (" + Repr(e.Reference) +
		"): its value is known only when resources are deployed"
}
