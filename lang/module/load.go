package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang/syntax"
)

// Options change what [Load] reads and how. The zero value loads a project without built-in modules, which fails for want
// of std.
type Options struct {
	// Main is the path of the main file in the project; empty for main.cf.
	Main string
	// Builtin are the modules that come with the program, by name: trees with a directory model. A module of the same name
	// that the project brings along goes before them.
	Builtin map[string]fs.FS
	// Sites are where modules in the layout V2 are looked for, in order.
	Sites []Site
	// Fetched are modules in the layout V1 that lie outside of the project. One on the module path goes before them.
	Fetched []Place
	// Syntax is handed to the parser.
	Syntax syntax.Options
	// Cache keeps parsed files from one load to the next; nil for none.
	Cache Cache
	// Budget bounds the source text that is read, in bytes over all files; 0 for no bound but that on each file.
	Budget int64
	// Parallel is how many files are parsed at the same time; 0 for as many as there are processors.
	Parallel int
}

// maxSource bounds source files, in bytes. The parser has a limit of its own.
const maxSource = 128 << 20

// maxFiles bounds the files of a program.
const maxFiles = 100_000

// Load reads a project and all modules that it imports. It reads from one goroutine at a time.
//
// The program is never nil: it holds what could be read. The first error in the list is the one that the reference
// implementation reports. A Go error is returned only when ctx is done.
func Load(ctx context.Context, project fs.FS, opts Options) (*Program, diag.List, error) {
	if opts.Main == "" {
		opts.Main = "main.cf"
	}
	opts.Main = path.Clean(opts.Main)
	l := &loader{
		project: project,
		opts:    opts,
		prog:    &Program{spaces: map[string]*File{}},
		found:   map[string]found{},
		units:   map[string]*unit{},
	}
	l.manifest, l.diags = ReadManifest(project)
	l.prog.Manifest = l.manifest
	if l.manifest == nil {
		return l.prog, l.diags, nil
	}
	if err := l.discover(ctx); err != nil {
		return nil, nil, err
	}
	l.arrange()
	l.diags = append(l.diags, l.late...)
	return l.prog, l.diags, nil
}

// Missing loads a project as [Load] does and returns the names of the modules that its imports lead to and that are not there,
// sorted. Modules that are named are read as though the main file imported them. The diagnostics are those about project.yml alone: what is wrong with the models is up to the compiler.
// It fails when the models are larger than the budget, and when ctx is done.
func Missing(ctx context.Context, project fs.FS, opts Options, named ...string) ([]string, diag.List, error) {
	if opts.Main == "" {
		opts.Main = "main.cf"
	}
	l := &loader{project: project, opts: opts, prog: &Program{}, found: map[string]found{}, units: map[string]*unit{}}
	l.manifest, l.diags = ReadManifest(project)
	if l.manifest == nil {
		return nil, l.diags, nil
	}
	if err := l.discover(ctx, named...); err != nil {
		return nil, nil, err
	}
	if l.over {
		return nil, nil, fmt.Errorf("%w: the models have more than %d bytes together", errTooLarge, opts.Budget)
	}
	var names []string
	for name, f := range l.found {
		if f.missing {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, l.diags, nil
}

// loader is the state of one load.
type loader struct {
	project  fs.FS
	opts     Options
	manifest *Manifest
	prog     *Program
	found    map[string]found
	units    map[string]*unit // by namespace
	diags    diag.List
	late     diag.List // warnings, which go behind everything else
	// read is how much source text was read; over says that it was more than the budget.
	read int64
	over bool
}

// unit is a namespace that is or may become part of the program.
type unit struct {
	namespace string
	module    *Module
	name      string // of the file, in diagnostics
	src       []byte
	tree      *syntax.File
	diags     diag.List
	fault     *cause // why there is no source
	file      *File
	by        *importer // who brought it into the program; nil for the main file
}

// discover reads and parses everything that imports lead to, in waves: all files that the last wave imports make up the next.
func (l *loader) discover(ctx context.Context, named ...string) error {
	self := &Module{Name: Main, Layout: LayoutProject, Root: l.project, Dir: "."}
	main := &unit{namespace: Main, module: self, name: l.opts.Main}
	l.units[Main] = main
	src, err := l.source(l.project, l.opts.Main)
	if err != nil {
		main.fault = &cause{messages: []string{"Could not open the main file " + l.opts.Main + " of the project"}}
		if !isNotExist(err) {
			main.fault.hint = err.Error()
		}
		return nil
	}
	main.src = src
	first := []*unit{main}
	for _, name := range named {
		if l.units[name] == nil {
			u := l.open(name)
			l.units[name] = u
			if u.fault == nil {
				first = append(first, u)
			}
		}
	}
	for wave := first; len(wave) > 0; {
		if err := l.parse(ctx, wave); err != nil {
			return err
		}
		var next []*unit
		for _, u := range wave {
			for _, imp := range l.imports(u) {
				for ns := range prefixes(imp.namespace) {
					if l.units[ns] == nil && len(l.units) < maxFiles {
						v := l.open(ns)
						l.units[ns] = v
						if v.fault == nil {
							next = append(next, v)
						}
					}
				}
			}
		}
		wave = next
	}
	return nil
}

// source reads a source file within the budget.
func (l *loader) source(fsys fs.FS, name string) ([]byte, error) {
	limit := int64(maxSource)
	if l.opts.Budget > 0 {
		limit = max(min(limit, l.opts.Budget-l.read), 0)
	}
	src, err := readLimited(fsys, name, limit)
	l.read += int64(len(src))
	l.over = l.over || l.opts.Budget > 0 && errors.Is(err, errTooLarge)
	return src, err
}

// open reads the source of a namespace.
func (l *loader) open(namespace string) *unit {
	u := &unit{namespace: namespace}
	top, _, _ := strings.Cut(namespace, "::")
	f := l.find(top)
	if f.fault != nil {
		u.fault = f.fault
		return u
	}
	u.module = f.module
	name := source(f.module, namespace)
	u.name = f.module.display(name)
	src, err := l.source(f.module.Root, name)
	if err != nil {
		u.fault = &cause{messages: []string{"could not locate module with name: " + namespace, "there is no file " + u.name}}
		if !isNotExist(err) {
			u.fault.messages[1] = err.Error()
		}
		u.fault.hint = l.subHint(f.module, namespace, u.name)
		return u
	}
	u.src = src
	return u
}

// subHint says what to do about a missing namespace of a module that is there.
func (l *loader) subHint(m *Module, namespace, file string) string {
	parent := path.Dir(source(m, namespace))
	if strings.HasSuffix(source(m, namespace), "/_init.cf") && strings.Contains(namespace, "::") {
		parent = path.Dir(parent)
	}
	var names []string
	entries, _ := fs.ReadDir(m.Root, parent)
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".cf")
		if name != "_init" && (e.IsDir() || name != e.Name()) {
			names = append(names, name)
		}
	}
	i := strings.LastIndex(namespace, "::")
	if s := diag.Closest(namespace[i+1:], names); i >= 0 && s != "" {
		return "did you mean " + namespace[:i+2] + s + "?"
	}
	return "create the file " + file
}

// parse parses units, several at a time.
func (l *loader) parse(ctx context.Context, wave []*unit) error {
	if len(wave) == 1 { // as in most small projects, which other threads would not make faster
		if err := ctx.Err(); err != nil {
			return err
		}
		l.parseOne(wave[0])
		return nil
	}
	parallel := l.opts.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, u := range wave {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.parseOne(u)
			return nil
		})
	}
	return g.Wait()
}

func (l *loader) parseOne(u *unit) {
	defer func() { u.src = nil }()
	if l.opts.Cache == nil {
		u.tree, u.diags = syntax.Parse(u.name, u.src, l.opts.Syntax)
		return
	}
	key := cacheKey(u.name, u.src)
	if e, ok := l.opts.Cache.Get(key); ok {
		u.tree, u.diags = e.Tree, e.Diags
		return
	}
	u.tree, u.diags = syntax.Parse(u.name, u.src, l.opts.Syntax)
	l.opts.Cache.Put(key, CacheEntry{Tree: u.tree, Diags: u.diags})
}

// imported is a namespace that a file imports.
type imported struct {
	namespace string
	stmt      *syntax.Import // nil for the automatic import of std
}

// imports lists what a file imports, the automatic import of std first.
func (l *loader) imports(u *unit) []imported {
	var out []imported
	if u.module.Name != Std {
		out = append(out, imported{namespace: Std})
	}
	for _, s := range u.tree.Stmts {
		if i, ok := s.(*syntax.Import); ok && !strings.Contains(i.Name.Text, "-") {
			out = append(out, imported{namespace: i.Name.Text, stmt: i})
		}
	}
	return out
}

// prefixes gives a, a::b and a::b::c for a::b::c.
func prefixes(namespace string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for off := 0; ; {
			i := strings.Index(namespace[off:], "::")
			if i < 0 {
				yield(namespace)
				return
			}
			if !yield(namespace[:off+i]) {
				return
			}
			off += i + 2
		}
	}
}
