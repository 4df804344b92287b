// Package diag is the vocabulary of faults: positions, ranges and diagnostics, with their text and JSON forms.
//
// A diagnostic is a value, not an error: a phase returns what it could make of its input and a [List] of what was wrong
// with it, so that one run reports many faults. A Go error is kept for our own bugs and for cancelled contexts.
package diag

// Position is a place in a source text. Line and Column count from 1; Column counts Unicode code points. Offset counts
// bytes from 0. The zero Position is unknown; a Position with a Line and no Column covers its whole line.
type Position struct {
	Line   int
	Column int
	Offset int
}

// Range is the half-open stretch of text [Start, End) of one file. File is relative to the project, with forward slashes.
type Range struct {
	File  string
	Start Position
	End   Position
}

// Severity says whether a diagnostic stops the compile.
type Severity string

// The severities. Only [Error] makes a compile fail.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Related is another place that contributed to a fault: the first assignment, a conflicting definition, a cause.
type Related struct {
	Range   Range
	Message string
}

// Diagnostic is one fault, with everything a person needs to mend it.
type Diagnostic struct {
	// Severity is Error, Warning or Info.
	Severity Severity
	// Code is the exception class name of the reference implementation, such as TypeNotFoundException.
	Code string
	// Message is the text for people, in the wording of the reference where models' authors know it.
	Message string
	// Hint says how to mend the fault; empty when there is nothing to add.
	Hint string
	// Range is the tightest stretch of text that is at fault.
	Range Range
	// Related lists other places, in the order in which they should be read.
	Related []Related
}
