package module

import (
	"io/fs"
	"path"

	"github.com/intendant/intendant/lang/syntax"
)

// Main is the namespace of a project's main file.
const Main = "__config__"

// Std is the module that every other one imports by itself.
const Std = "std"

// Program is everything that a compile reads.
type Program struct {
	// Manifest is the content of project.yml; nil when that could not be read.
	Manifest *Manifest
	// Modules are the project itself, named [Main], and then the modules in the order in which they were loaded.
	Modules []*Module
	// Files are the source files in the order in which the language runs them: that of Modules.
	Files []*File

	spaces map[string]*File
}

// File is a source file of a program.
type File struct {
	// Namespace is the namespace that the file makes up, such as a::b, or [Main].
	Namespace string
	Module    *Module
	// Tree is the parsed file. Its name is the path that diagnostics show: relative to the project, or {module}/path for
	// a module outside it.
	Tree *syntax.File
	// Imports are the import statements at the top level, in source order, without the automatic import of std.
	Imports []*syntax.Import
}

// Layout is the way in which a module is stored.
type Layout string

// The layouts.
const (
	LayoutProject Layout = "project" // the project itself
	LayoutV1      Layout = "v1"      // a directory with a module.yml
	LayoutV2      Layout = "v2"      // an installed Python package
	LayoutBuiltin Layout = "builtin" // part of the program
)

// Module is the project or a module.
type Module struct {
	Name   string
	Layout Layout
	// Metadata is what the module says about itself; empty for the project and for modules that are built in.
	Metadata Metadata
	// Root is the tree of the module, with model, files and templates in it.
	Root fs.FS
	// Dir is the path of Root in diagnostics: relative to the project, {name} for a module outside it, . for the project.
	Dir string
	// Disk is the directory of Root on this machine, where the options of the load say so; empty otherwise.
	Disk string
	// Plugins is the directory of Python plugins within Root; empty when there can be none.
	Plugins string
	// Files are the source files that were loaded, in order.
	Files []*File
}

// File returns the file that makes up a namespace, nil when it was not loaded.
func (p *Program) File(namespace string) *File { return p.spaces[namespace] }

// Module returns a module by its name, nil when it was not loaded.
func (p *Program) Module(name string) *Module {
	for _, m := range p.Modules {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// display is the path of a file of the module in diagnostics.
func (m *Module) display(file string) string { return path.Join(m.Dir, file) }
