// Package template is a Jinja2 engine over the values of the modelling language. It gives the same bytes as Python's Jinja2
// (version 3.1, without extensions), which testdata holds it to.
//
// A template is read by lex.go and parse.go into the tree of tree.go and then walked by render.go (statements) and eval.go
// (expressions). Its objects are those of Python: object.go says how they look, compare and are counted through, operate.go has
// the operators, attribute.go and methods.go what can be asked of them, filters*.go and tests.go the filters and tests.
//
// Values of the model keep their own types, because they behave differently: they can not be changed, an attribute that has no
// value yet stops the rendering with [value.UnsetError], an unknown one with [value.UnknownError].
package template
