// Package module finds and reads the source of a project: its project.yml, its main file and every module that the imports
// lead to.
//
// # Vocabulary
//
// A project is a tree with a project.yml and a main file, whose namespace is [Main]. A module is a tree of its own with a
// directory model; the import of a::b::c stands for the files of the namespaces a, a::b and a::b::c, all of them in the
// module a:
//
//	a        model/_init.cf
//	a::b     model/b/_init.cf if the directory model/b exists, else model/b.cf
//
// Modules are looked for in this order: installed ones (layout V2: a Python package below inmanta_plugins in one of
// [Options].Sites), those on the project's module path (layout V1: a directory with a module.yml), those that were fetched for it
// ([Options].Fetched), and those that come with the program ([Options].Builtin).
//
// # Versions
//
// A [Requirement] names a module or Python package and bounds its versions, as PEP 508 and PEP 440 say. A [Lock] says what a
// project's requirements came to. Choosing and fetching are not done here: see the package modules.
//
// # Order
//
// The order of the files is that in which the language runs them: the main file, then module by module. Modules are ordered
// by when an import first led to them, where the import found last is followed first; every file but those of std itself
// imports std before anything else.
//
// The package reads only through the file systems it is given: it never reaches out of them, whatever a project says.
package module
