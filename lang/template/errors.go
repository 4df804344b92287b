package template

import (
	"fmt"
	"strconv"
)

// Error says what is wrong with a template or its rendering.
type Error struct {
	// Template is the name of the template, Line the line in it, from 1.
	Template string
	Line     int
	// Expression is the expression or statement at fault, as far as it is known.
	Expression string
	// Message says what is wrong, in the words of Jinja2 where it has some.
	Message string
	// Class is the name of the exception in Python, such as UndefinedError or TemplateSyntaxError.
	Class string
	// Err is the cause, if something else than the template is at fault.
	Err error
}

func (e *Error) Error() string {
	text := "template " + e.Template
	if e.Line > 0 {
		text += ", line " + strconv.Itoa(e.Line)
	}
	if e.Expression != "" {
		text += ", in `" + e.Expression + "`"
	}
	return text + ": " + e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// thrown carries an error from where it arises to where the rendering was started.
type thrown struct{ err error }

// fail stops the rendering with a fault of the named class. The place is filled in on the way out.
func fail(class, format string, args ...any) {
	panic(thrown{&Error{Class: class, Message: fmt.Sprintf(format, args...)}})
}

// throw stops the rendering with an error that is not the template's fault.
func throw(err error) { panic(thrown{err}) }

// check stops the rendering if err is set.
func check(err error) {
	if err != nil {
		throw(err)
	}
}

// typeError, valueError and undefinedError are the faults that come up most.
func typeError(format string, args ...any)      { fail("TypeError", format, args...) }
func valueError(format string, args ...any)     { fail("ValueError", format, args...) }
func undefinedError(format string, args ...any) { fail("UndefinedError", format, args...) }
func syntaxError(line int, format string, args ...any) {
	panic(thrown{&Error{Class: "TemplateSyntaxError", Line: line, Message: fmt.Sprintf(format, args...)}})
}

// assertionError is a fault that is found while a template is read although its syntax is right.
func assertionError(line int, format string, args ...any) {
	panic(thrown{&Error{Class: "TemplateAssertionError", Line: line, Message: fmt.Sprintf(format, args...)}})
}

// caught turns a panic of this package into an error; any other panic goes on.
func caught(err *error) {
	if r := recover(); r != nil {
		t, ok := r.(thrown)
		if !ok {
			panic(r)
		}
		*err = t.err
	}
}
