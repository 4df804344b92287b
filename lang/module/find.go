package module

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/intendant/intendant/diag"
)

// packages is the directory of a Python environment that holds modules.
const packages = "inmanta_plugins"

// Site is a tree that holds modules in the layout V2: the site-packages directory of a Python environment, or the
// repository of a module.
type Site struct {
	// Name is the path of the tree in diagnostics.
	Name string
	FS   fs.FS
	// Disk is the directory of the tree on this machine, for who runs what is in it; empty when there is none.
	Disk string
	// Shared says that the tree holds what something or other requires, as a site-packages directory does. A module std in it
	// takes the place of the built-in one only if the project itself asks for it: every module draws it in, in a version that
	// may need a later Python.
	Shared bool
}

// Place is a module in the layout V1 that was fetched for the project and lies outside of it.
type Place struct {
	// Name is the module's, Dir the path of its tree in diagnostics.
	Name string
	Dir  string
	FS   fs.FS
	// Disk is the directory of the tree on this machine; empty when there is none.
	Disk string
}

// cause is why a module could not be loaded: the messages from the outermost to the innermost, with the place of the last.
type cause struct {
	messages []string
	at       diag.Range
	hint     string
}

// found is a module that has been looked for.
type found struct {
	module *Module
	fault  *cause // not nil when module is nil
	// missing says that there is nothing of that name, rather than something that can not be used.
	missing bool
}

// find looks for a module by its name.
func (l *loader) find(name string) found {
	if f, ok := l.found[name]; ok {
		return f
	}
	f := l.search(name)
	l.found[name] = f
	return f
}

func (l *loader) search(name string) found {
	if m := l.findInstalled(name); m != nil {
		if dir := l.directory(name); dir != "" && isFile(l.project, path.Join(dir, v1File)) {
			l.late.Warnf("InmantaWarning", diag.Range{File: dir},
				"Module %s is installed as a V2 module and as a V1 module: the V1 module will be ignored.", name)
		}
		return found{module: m}
	}
	if dir := l.directory(name); dir != "" {
		root, err := fs.Sub(l.project, dir)
		if err != nil {
			return found{fault: &cause{messages: []string{err.Error()}}}
		}
		return l.openV1(name, dir, root)
	}
	for _, p := range l.opts.Fetched {
		if p.Name == name {
			f := l.openV1(name, p.Dir, p.FS)
			if f.module != nil {
				f.module.Disk = p.Disk
			}
			return f
		}
	}
	if root, ok := l.opts.Builtin[name]; ok {
		return found{module: &Module{Name: name, Layout: LayoutBuiltin, Root: root, Dir: "{" + name + "}"}}
	}
	c := &cause{
		messages: []string{"Could not find module " + name + ": it is neither installed nor in a directory of the modulepath"},
		hint:     "put the module into a directory of the modulepath",
	}
	if l.manifest != nil && len(l.manifest.ModulePath) > 0 {
		c.hint += " (" + strings.Join(l.manifest.ModulePath, ", ") + ")"
	}
	c.hint += ", or fetch it with intendant module add " + name
	if s := diag.Closest(name, l.moduleNames()); s != "" {
		c.hint = "did you mean " + s + "?"
	}
	return found{fault: c, missing: true}
}

// findInstalled looks for a module in the layout V2.
func (l *loader) findInstalled(name string) *Module {
	for _, site := range l.opts.Sites {
		pkg := path.Join(packages, name)
		if !isDir(site.FS, pkg) || site.Shared && name == Std && l.opts.Builtin[name] != nil && !l.asked(name) {
			continue
		}
		m := &Module{Name: name, Layout: LayoutV2, Root: site.FS, Dir: site.Name, Disk: site.Disk, Plugins: pkg}
		switch {
		case isDir(site.FS, path.Join(pkg, "model")):
			root, err := fs.Sub(site.FS, pkg)
			if err != nil {
				continue
			}
			m.Root, m.Dir, m.Plugins = root, path.Join(site.Name, pkg), "."
			if m.Disk != "" {
				m.Disk = filepath.Join(m.Disk, filepath.FromSlash(pkg))
			}
		case !isDir(site.FS, "model"):
			continue
		}
		m.Metadata = readV2(m.Root)
		return m
	}
	return nil
}

// asked reports whether the project itself names a module, in its project.yml or its requirements.txt.
func (l *loader) asked(name string) bool {
	var wanted []string
	if l.manifest != nil {
		wanted = l.manifest.Requires
	}
	lines, err := ReadRequirements(l.project)
	if err == nil { // otherwise whoever installs them has said what is wrong
		wanted = append(slices.Clip(wanted), lines...)
	}
	return slices.ContainsFunc(wanted, func(text string) bool {
		r, err := ParseRequirement(text)
		return err == nil && (r.Name == name || NameOf(r.Name) == name)
	})
}

// directory is the directory on the module path that is named like a module; empty when there is none.
func (l *loader) directory(name string) string {
	if l.manifest == nil {
		return ""
	}
	for _, p := range l.manifest.ModulePath {
		if dir := path.Join(p, name); isDir(l.project, dir) {
			return dir
		}
	}
	return ""
}

func (l *loader) openV1(name, dir string, root fs.FS) found {
	if !isFile(root, v1File) && (isFile(root, setupFile) || isFile(root, projectFile)) {
		return found{fault: &cause{
			messages: []string{fmt.Sprintf("Module at %s looks like a V2 module, but it is on the module path, which is for V1 modules only", dir)},
			at:       diag.Range{File: dir},
			hint:     "run intendant project install, which takes it as an editable checkout; or give it a module.yml and the directories model and plugins",
		}}
	}
	meta, ds := readV1(root, path.Join(dir, v1File))
	if ds.HasErrors() {
		first := ds.Errors()[0]
		return found{fault: &cause{
			messages: []string{fmt.Sprintf("The module found at %s is not a valid V1 module", dir), first.Message},
			at:       first.Range,
			hint:     "correct " + first.Range.File,
		}}
	}
	if meta.Deprecated {
		l.late.Warnf("ModuleDeprecationWarning", diag.Range{File: path.Join(dir, v1File)}, "Module %s has been deprecated", name)
	}
	return found{module: &Module{Name: name, Layout: LayoutV1, Metadata: meta, Root: root, Dir: dir, Plugins: "plugins"}}
}

// moduleNames are the names of the modules that could be imported.
func (l *loader) moduleNames() []string {
	var names []string
	list := func(fsys fs.FS, dir string) {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	for _, s := range l.opts.Sites {
		list(s.FS, packages)
	}
	for _, p := range l.opts.Fetched {
		names = append(names, p.Name)
	}
	if l.manifest != nil {
		for _, p := range l.manifest.ModulePath {
			list(l.project, p)
		}
	}
	for name := range l.opts.Builtin {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// source is the path of the file that makes up a namespace, within its module.
func source(m *Module, namespace string) string {
	_, sub, nested := strings.Cut(namespace, "::")
	if !nested {
		return "model/_init.cf"
	}
	p := path.Join("model", strings.ReplaceAll(sub, "::", "/"))
	if isDir(m.Root, p) {
		return path.Join(p, "_init.cf")
	}
	return p + ".cf"
}

func isDir(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}

func isFile(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && !info.IsDir()
}
