package lsp

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/lang/syntax"
	"github.com/intendant/intendant/lang/xref"
	"github.com/intendant/intendant/lazyregexp"
)

// projectKind is what makes a directory a project.
type projectKind uint8

const (
	wholeProject projectKind = iota // a project.yml
	moduleV1                        // the checkout of a module: module.yml
	moduleV2                        // the checkout of a module: inmanta_plugins and model
)

// mainFile is the name of a project's main file.
const mainFile = "main.cf"

// v1Mount is where the tree of a module is in the project that it makes.
const v1Mount = "libs"

// project is a tree with documents in it. Its fields are guarded by the server's mutex unless they never change.
type project struct {
	kind   projectKind
	root   string // absolute, with forward slashes
	module string // the name of a module
	tree   fs.FS  // of root
	places atomic.Pointer[[]place]

	session *lang.Session
	// loaded is closed when the project has been checked for the first time.
	loaded chan struct{}
	// state is what the last check found; nil before the first.
	state *checked
	// snap is the current snapshot, nil when documents have changed since the last was taken.
	snap *snapshot
	// interrupt ends the run of the model; nil when none is under way.
	interrupt context.CancelFunc
	// stale says that the places of modules have to be found out anew.
	stale bool
	// generation counts the changes, wake tells the background about them.
	generation int
	wake       chan struct{}
	lost       diag.List       // faults of finding modules; of the background alone
	published  map[string]bool // URIs with diagnostics
	// aside are the files that the main file does not lead to, by name, as they were parsed last; of the background alone.
	aside map[string]*asideFile
}

// asideFile is a parsed file with its text.
type asideFile struct {
	src  []byte
	tree *syntax.File
}

// checked is the outcome of a check. It is not changed.
type checked struct {
	program *module.Program
	bound   bool          // names were looked at: files have no syntax errors
	python  bool          // modules have plugins in Python
	extra   []xref.Source // files that the main file does not lead to
	plugins []xref.Plugin
}

// snapshot is the state of a project at one moment.
type snapshot struct {
	project *project
	state   *checked
	docs    map[string]*document // by name in diagnostics
	enc     encoding

	once  sync.Once
	index *xref.Index
}

// namespace is the namespace that a file makes up by its place; empty for a file of a module that is no part of its model. Files
// of a project outside of its module path are main files.
func (p *project) namespace(name string, manifest *module.Manifest) string {
	if path.Ext(name) != ".cf" {
		return ""
	}
	rel, mod := "", ""
	switch p.kind {
	case moduleV2:
		inner, ok := strings.CutPrefix(name, p.root+"/")
		if !ok {
			return ""
		}
		rel, mod = strings.TrimPrefix(inner, path.Join("inmanta_plugins", p.module)+"/"), p.module
	case moduleV1:
		rel, mod = strings.TrimPrefix(name, path.Join(v1Mount, p.module)+"/"), p.module
	case wholeProject:
		if manifest == nil {
			return module.Main
		}
		for _, dir := range manifest.ModulePath {
			if inner, ok := strings.CutPrefix(name, dir+"/"); ok {
				mod, rel, _ = strings.Cut(inner, "/")
				break
			}
		}
		if mod == "" {
			return module.Main
		}
	}
	sub, ok := strings.CutPrefix(rel, "model/")
	if !ok || mod == "" || path.Ext(sub) != ".cf" {
		return ""
	}
	sub = strings.TrimSuffix(sub, ".cf")
	if sub == "_init" {
		return mod
	}
	return mod + "::" + strings.ReplaceAll(strings.TrimSuffix(sub, "/_init"), "/", "::")
}

// files is the tree of the project, and those of the modules that it uses, with documents over them. docs are by the names of
// files in diagnostics.
func (p *project) files(docs map[string]*document, main []byte) (fs.FS, []module.Site, []module.Place) {
	texts, byPath := map[string][]byte{}, map[string][]byte{}
	for name, d := range docs {
		file := p.path(name)
		byPath[file] = d.text
		if rel, ok := strings.CutPrefix(file, p.root+"/"); ok {
			texts[rel] = d.text
		}
	}
	sites, fetched := p.trees(byPath)
	over := overlay{p.tree, texts}
	manifest := []byte("name: " + p.module + "\nmodulepath: [" + v1Mount + "]\n")
	switch p.kind {
	case moduleV1:
		return newMounted(map[string][]byte{module.ManifestFile: manifest, mainFile: main}, path.Join(v1Mount, p.module), over), sites, fetched
	case moduleV2:
		site := module.Site{Name: p.root, FS: over, Disk: p.root}
		return overlay{emptyFS{}, map[string][]byte{module.ManifestFile: []byte("name: " + p.module + "\nmodulepath: []\n"), mainFile: main}},
			append([]module.Site{site}, sites...), fetched
	default:
	}
	if main != nil {
		texts[mainFile] = main
	}
	return over, sites, fetched
}

// The limits of a project.
const (
	maxProjectFiles = 20_000
	maxSourceFile   = 16 << 20
)

// sources lists the model files of the project by their names in diagnostics.
func (p *project) sources(docs map[string]*document) []string {
	var out []string
	seen := 0
	_ = fs.WalkDir(p.tree, ".", func(name string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can not be read has no names
		case seen > 20*maxProjectFiles || len(out) > maxProjectFiles:
			return fs.SkipAll
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "__pycache__"):
			return fs.SkipDir
		case path.Ext(name) == ".cf" && d.Type().IsRegular():
			out = append(out, p.name(path.Join(p.root, name)))
		}
		return nil
	})
	for name := range docs {
		if path.Ext(name) == ".cf" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// importAll is a main file that imports all namespaces of a module.
func (p *project) importAll(docs map[string]*document) []byte {
	if p.kind == wholeProject {
		return nil
	}
	var b strings.Builder
	seen := map[string]bool{}
	for _, name := range p.sources(docs) {
		if ns := p.namespace(name, nil); ns != "" && !seen[ns] && validNamespace(ns) {
			seen[ns] = true
			b.WriteString("import " + ns + "\n")
		}
		if p.kind == moduleV2 {
			// What a project needs of the module std is decided by the names that its own files mention.
			text := p.read(name)
			if d := docs[name]; d != nil {
				text = d.text
			}
			for _, mention := range standardName().FindAll(text, -1) {
				b.WriteString("# " + string(mention) + "\n")
			}
		}
	}
	return []byte(b.String())
}

var standardName = lazyregexp.New(`\bstd::\w+`)

// read reads a file of the project by its name in diagnostics; nil when it can not be read, or is too large.
func (p *project) read(name string) []byte {
	rel, ok := strings.CutPrefix(p.path(name), p.root+"/")
	if !ok {
		return nil
	}
	info, err := fs.Stat(p.tree, rel)
	if err != nil || info.IsDir() || info.Size() > maxSourceFile {
		return nil
	}
	text, err := fs.ReadFile(p.tree, rel)
	if err != nil {
		return nil
	}
	return text
}

func validNamespace(ns string) bool {
	for part := range strings.SplitSeq(ns, "::") {
		if syntax.KindOfName(part) != syntax.OtherName {
			return false
		}
	}
	return true
}

// check checks the project with the documents as they are. The diagnostics are all that is wrong with it.
func (p *project) check(ctx context.Context, docs map[string]*document) (*checked, diag.List, error) {
	plugins := &signatures{}
	opts := lang.Options{Plugins: plugins, Syntax: syntax.Options{Resume: true, MaxErrors: maxSyntaxErrors}}
	tree, sites, fetched := p.files(docs, p.importAll(docs))
	opts.Sites, opts.Fetched = sites, fetched
	out, ds, err := p.session.Check(ctx, lang.Project{FS: tree, Main: mainFile}, opts)
	if err != nil {
		return nil, nil, fmt.Errorf("checking %s: %w", p.root, err)
	}
	c := &checked{program: out.Modules, bound: out.Program != nil}
	loaded, spaces := map[string]bool{}, map[string]bool{}
	for _, f := range out.Modules.Files {
		loaded[f.Tree.Name], spaces[f.Namespace] = true, true
	}
	if out.Program == nil && len(plugins.found) == 0 {
		// Faults of files kept the check from asking for plugins.
		_, _, _ = plugins.Load(ctx, out.Modules)
	}
	for _, pl := range std.Plugins() {
		c.plugins = append(c.plugins, xref.Plugin{Plugin: pl})
	}
	c.plugins = append(c.plugins, plugins.found...)
	c.python = len(plugins.found) > 0
	for _, name := range p.sources(docs) {
		if loaded[name] {
			continue
		}
		ns := p.namespace(name, out.Modules.Manifest)
		if ns == "" || ns != module.Main && spaces[ns] {
			if d := docs[name]; d != nil && d.model() {
				_, faults := d.tree()
				ds = append(ds, faults...)
			}
			continue
		}
		f, more := p.unreached(ctx, tree, name, ns, docs[name], opts)
		if f != nil {
			c.extra = append(c.extra, xref.Source{Namespace: ns, Tree: f})
			ds = append(ds, more...)
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("checking %s: %w", p.root, err)
		}
	}
	return c, ds, nil
}

// unreached reads a file that the main file does not lead to. When it is open it is checked too, as if it were the main file or
// were imported by it.
func (p *project) unreached(ctx context.Context, tree fs.FS, name, ns string, doc *document, opts lang.Options) (*syntax.File, diag.List) {
	if doc == nil {
		src := p.read(name)
		if src == nil {
			return nil, nil
		}
		if f := p.aside[name]; f != nil && bytes.Equal(f.src, src) {
			return f.tree, nil
		}
		f, _ := syntax.Parse(name, src, syntax.Options{Resume: true})
		if p.aside == nil {
			p.aside = map[string]*asideFile{}
		}
		p.aside[name] = &asideFile{src, f}
		return f, nil
	}
	f, ds := doc.tree()
	if ds.HasErrors() || p.kind != wholeProject {
		return f, ds
	}
	proj := lang.Project{FS: tree, Main: name}
	if ns != module.Main {
		over, _ := tree.(overlay)
		texts := map[string][]byte{mainFile: []byte("import " + ns + "\n")}
		proj = lang.Project{FS: overlay{over, texts}, Main: mainFile}
	}
	_, found, err := p.session.Check(ctx, proj, opts)
	if err != nil {
		return f, ds
	}
	return f, slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Range.File != name })
}

// xref is the index of the snapshot.
func (s *snapshot) xref() *xref.Index {
	s.once.Do(func() {
		var sources []xref.Source
		known := map[string]bool{}
		add := func(src xref.Source) {
			known[src.Tree.Name] = true
			if d := s.docs[src.Tree.Name]; d != nil {
				src.Tree, _ = d.tree()
			}
			sources = append(sources, src)
		}
		var plugins []xref.Plugin
		var manifest *module.Manifest
		if s.state != nil {
			for _, f := range s.state.program.Files {
				if s.synthetic(f.Tree.Name) {
					continue
				}
				add(xref.Source{Namespace: f.Namespace, Tree: f.Tree})
			}
			for _, e := range s.state.extra {
				add(e)
			}
			plugins, manifest = s.state.plugins, s.state.program.Manifest
		}
		names := make([]string, 0, len(s.docs))
		for name := range s.docs {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if ns := s.project.namespace(name, manifest); !known[name] && ns != "" {
				f, _ := s.docs[name].tree()
				add(xref.Source{Namespace: ns, Tree: f})
			}
		}
		s.index = xref.New(sources, plugins)
	})
	return s.index
}

// synthetic reports whether a file is the main file that stands in for the missing one of a module.
func (s *snapshot) synthetic(name string) bool {
	return s.project.kind != wholeProject && name == mainFile
}

// fixed says why a file must not be changed; empty when it may be.
func (s *snapshot) fixed(f *xref.File) string {
	name := f.Tree.Name
	switch {
	case strings.HasPrefix(name, "{"):
		return "which is part of the program"
	case s.project.installed(name):
		return "which belongs to a module outside of the project"
	}
	if p := s.project.path(name); p == "" || !strings.HasPrefix(p, s.project.root+"/") {
		return "which lies outside of the project"
	}
	return ""
}
