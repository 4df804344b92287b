// Package syntax turns the text of models into trees: scanner, parser, tree, walker and formatter.
//
// [Parse] reads one file. It never fails as a Go function does: it returns the tree of what it could make out and a
// [diag.List] of what was wrong. The grammar is in grammar.txt, the language in the language specification.
//
// Trees are not changed once parsed; later phases keep what they find out in tables of their own, keyed by node.
package syntax
