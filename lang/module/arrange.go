package module

import (
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// arrange puts what was found into the order of the language: imports are followed from the last one found to the first,
// and the files of a module go together, at the place of the module's first.
func (l *loader) arrange() {
	main := l.units[Main]
	l.prog.Modules = append(l.prog.Modules, main.module)
	if main.fault != nil {
		d := diag.Errorf("CompilerException", diag.Range{File: l.opts.Main}, "%s", main.fault.messages[0])
		d.Hint = main.fault.hint
		if d.Hint == "" {
			d.Hint = "create the file, or name another one as the main file"
		}
		l.diags.Add(d)
		return
	}
	type pending struct {
		imported
		from *unit
	}
	var stack []pending
	done := map[string]bool{}
	add := func(u *unit, by *importer) {
		done[u.namespace] = true
		u.by = by
		l.include(u)
		for _, i := range l.imports(u) {
			stack = append(stack, pending{i, u})
		}
	}
	add(main, nil)
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if p.namespace == Main {
			l.missing(p.from, p.imported, &unit{fault: &cause{messages: []string{"the main file is not a module; nothing can import it"}}})
			continue
		}
		if done[p.namespace] {
			continue
		}
		for ns := range prefixes(p.namespace) {
			if done[ns] {
				continue
			}
			u := l.units[ns]
			if u == nil {
				l.diags.Errorf("CompilerException", diag.Range{File: l.opts.Main}, "the project imports more than %d files", maxFiles)
				return
			}
			if u.fault != nil {
				l.missing(p.from, p.imported, u)
				break
			}
			add(u, &importer{p.from, p.stmt})
		}
		done[p.namespace] = true
	}
	for _, m := range l.prog.Modules {
		l.prog.Files = append(l.prog.Files, m.Files...)
	}
}

// include makes a unit part of the program.
func (l *loader) include(u *unit) {
	f := &File{Namespace: u.namespace, Module: u.module, Tree: u.tree}
	for _, s := range u.tree.Stmts {
		if i, ok := s.(*syntax.Import); ok {
			f.Imports = append(f.Imports, i)
		}
	}
	u.file = f
	if len(u.module.Files) == 0 && u.namespace != Main {
		l.prog.Modules = append(l.prog.Modules, u.module)
	}
	u.module.Files = append(u.module.Files, f)
	l.prog.spaces[u.namespace] = f
	for _, d := range u.diags {
		if d.Severity == diag.Error {
			d = u.chain(d)
		}
		l.diags.Add(d)
	}
}

// importer is the statement that brought a unit into the program: the first one that was followed. It is nil for the automatic
// import of std.
type importer struct {
	unit *unit
	stmt *syntax.Import
}

// maxChain bounds how many imports are listed that led to a file.
const maxChain = 8

// chain adds to a diagnostic about a unit the imports that led to it, the closest first.
func (u *unit) chain(d diag.Diagnostic) diag.Diagnostic {
	for range maxChain {
		if u.by == nil || u.by.stmt == nil {
			break
		}
		d = d.WithRelated(u.by.unit.tree.Range(u.by.stmt.Span()), "%s is imported here", u.namespace)
		u = u.by.unit
	}
	return d
}

// missing reports an import of what can not be loaded.
func (l *loader) missing(from *unit, imp imported, u *unit) {
	var at diag.Range
	if imp.stmt != nil {
		at = from.tree.Range(imp.stmt.Span())
	} else {
		at = diag.Range{File: from.name, Start: diag.Position{Line: 1}, End: diag.Position{Line: 1}}
	}
	d := diag.Errorf("ModuleLoadingException", at, "Failed to load module %s", imp.namespace)
	for i, msg := range u.fault.messages {
		r := at
		if i == len(u.fault.messages)-1 && u.fault.at.File != "" {
			r = u.fault.at
		}
		d = d.WithRelated(r, "%s", msg)
	}
	d.Hint = u.fault.hint
	l.diags.Add(from.chain(d))
}
