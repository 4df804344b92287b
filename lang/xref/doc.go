// Package xref is the cross-reference of a project: which name in which file stands for what.
//
// Unlike the checker it takes any project, however broken: it works on the trees that the parser could make out, knows the
// types of what it can follow, and leaves out the rest. Editors ask it about names while their files do not even parse.
//
// # Vocabulary
//
//   - A [Symbol] is something that has a name: an entity, an attribute, a variable.
//   - A [Use] is a place that names a symbol, its declaration included.
//   - An [Index] is built over the files of a project at one moment, and never changes. It finds the declarations at once and the
//     uses of a file when they are asked for.
//
// The rules by which names are resolved are those of the checker (language specification, sections 3 and 4).
package xref
