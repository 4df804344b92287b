package lsp

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
)

// home finds the project of a file: the nearest directory above with a project.yml, else the outermost module around it. The
// caller holds the mutex.
func (s *Server) home(ctx context.Context, file string) *project {
	var mod *project
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if p := s.projects[dir]; p != nil && p.kind == wholeProject {
			return p
		}
		switch {
		case s.exists(path.Join(dir, module.ManifestFile)):
			return s.start(ctx, &project{kind: wholeProject, root: dir})
		case s.exists(path.Join(dir, "module.yml")) && s.exists(path.Join(dir, "model")):
			mod = &project{kind: moduleV1, root: dir}
		case (s.exists(path.Join(dir, "pyproject.toml")) || s.exists(path.Join(dir, "setup.cfg"))) && s.exists(path.Join(dir, "inmanta_plugins")):
			mod = &project{kind: moduleV2, root: dir}
		}
		if dir == "/" || dir == "." {
			break
		}
	}
	if mod == nil {
		return nil
	}
	return s.start(ctx, mod)
}

func (s *Server) exists(file string) bool {
	_, err := s.cfg.Stat(file)
	return err == nil
}

// start makes a project known and starts to check it in the background; nil when its tree can not be read. The caller holds
// the mutex.
func (s *Server) start(ctx context.Context, p *project) *project {
	if old := s.projects[p.root]; old != nil {
		return old
	}
	tree, err := s.cfg.Open(p.root)
	if err != nil {
		s.log.Warn("a project can not be opened", "directory", p.root, "error", err)
		return nil
	}
	p.tree, p.stale = tree, true
	p.module = moduleName(p)
	p.session = lang.NewSession()
	p.loaded = make(chan struct{})
	p.wake = make(chan struct{}, 1)
	p.published = map[string]bool{}
	s.projects[p.root] = p
	s.work.Go(func() { s.watch(ctx, p) })
	p.wake <- struct{}{}
	return p
}

// moduleName is the name of the module that a project is; empty for a whole project.
func moduleName(p *project) string {
	switch p.kind {
	case moduleV1:
		if src, err := fs.ReadFile(p.tree, "module.yml"); err == nil {
			for line := range strings.Lines(string(src)) {
				if name, ok := strings.CutPrefix(line, "name:"); ok {
					if name = strings.Trim(strings.TrimSpace(name), `"'`); validNamespace(name) {
						return name
					}
				}
			}
		}
		return path.Base(p.root)
	case moduleV2:
		entries, err := fs.ReadDir(p.tree, "inmanta_plugins")
		if err == nil {
			for _, e := range entries {
				if e.IsDir() && validNamespace(e.Name()) && !strings.HasPrefix(e.Name(), "__") {
					return e.Name()
				}
			}
		}
		return path.Base(p.root)
	default:
		return ""
	}
}

// snapshot is the current snapshot of a project. The caller holds the mutex.
func (s *Server) snapshot(p *project) *snapshot {
	if p.snap == nil {
		p.snap = &snapshot{project: p, state: p.state, docs: s.documents(p), enc: s.enc}
	}
	return p.snap
}

// documents are the documents of a project by their names in diagnostics. The caller holds the mutex.
func (s *Server) documents(p *project) map[string]*document {
	docs := map[string]*document{}
	for uri, d := range s.docs {
		if s.homes[uri] == p {
			docs[d.name] = d
		}
	}
	return docs
}

// sorted are the projects by their roots. The caller holds the mutex.
func (s *Server) sorted() []*project {
	roots := slices.Sorted(maps.Keys(s.projects))
	out := make([]*project, len(roots))
	for i, r := range roots {
		out[i] = s.projects[r]
	}
	return out
}

// touch notes that something in a project has changed. The caller holds the mutex.
func (s *Server) touch(p *project) {
	p.snap = nil
	p.generation++
	if p.interrupt != nil {
		p.interrupt()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// refresh looks at all files again, and with modules also for the places of modules.
func (s *Server) refresh(modules bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.projects {
		p.stale = p.stale || modules || p.kind != wholeProject // what a module imports decides where it is looked for
		s.touch(p)
	}
}

func (s *Server) opened(ctx context.Context, p didOpenParams) error {
	d := &document{uri: p.TextDocument.URI, version: p.TextDocument.Version, text: []byte(p.TextDocument.Text)}
	d.name = d.uri
	s.mu.Lock()
	defer s.mu.Unlock()
	if file, ok := pathOf(d.uri); ok {
		d.path = file
	}
	home := s.settle(ctx, d)
	if home != nil {
		s.touch(home)
		return nil
	}
	return s.publishAlone(d)
}

// settle finds the project of a document and makes the document known under its name in there. The caller holds the mutex.
func (s *Server) settle(ctx context.Context, d *document) *project {
	var home *project
	if d.path != "" {
		d.name = d.path
		if name, ok := s.builtin(d.path); ok {
			// A built-in module that has been shown: what is known about it is known in every project.
			d.name = name
		} else if d.model() || slices.Contains([]string{module.ManifestFile, "module.yml", "setup.cfg", "pyproject.toml"}, path.Base(d.path)) || path.Ext(d.path) == ".py" {
			if home = s.home(ctx, d.path); home != nil {
				d.name = home.name(d.path)
			}
		}
	}
	s.docs[d.uri], s.homes[d.uri] = d, home
	return home
}

// resettle finds the projects of all documents anew, after files that make a directory a project came or went.
func (s *Server) resettle(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uri, d := range s.docs {
		old := s.homes[uri]
		next := &document{uri: d.uri, path: d.path, version: d.version, text: d.text, name: d.uri}
		if now := s.settle(ctx, next); now == old {
			s.docs[uri] = d
		}
	}
}

// builtin is the name of the built-in file that is shown under a path. The caller holds the mutex.
func (s *Server) builtin(file string) (name string, ok bool) {
	for name, p := range s.builtins {
		if p == file {
			return name, true
		}
	}
	return "", false
}

func (s *Server) changed(p didChangeParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[p.TextDocument.URI]
	if d == nil {
		return fmt.Errorf("changing %s: it is not open", p.TextDocument.URI)
	}
	next, err := d.edit(p.TextDocument.Version, p.ContentChanges, s.enc, s.cfg.MaxMessage)
	if err != nil {
		return err
	}
	s.docs[d.uri] = next
	if home := s.homes[d.uri]; home != nil {
		s.touch(home)
		return nil
	}
	return s.publishAlone(next)
}

func (s *Server) closed(p documentParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	uri := p.TextDocument.URI
	home := s.homes[uri]
	if _, ok := s.docs[uri]; !ok {
		return fmt.Errorf("closing %s: it is not open", uri)
	}
	delete(s.docs, uri)
	delete(s.homes, uri)
	if home != nil {
		s.touch(home)
		return nil
	}
	return s.conn.notify("textDocument/publishDiagnostics", publishParams{URI: uri, Diagnostics: []diagnostic{}})
}

// openFolders starts with the projects that the folders of the editor are, so that their faults are shown before a file is opened.
func (s *Server) openFolders(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range s.folders {
		if s.exists(path.Join(dir, module.ManifestFile)) {
			s.start(ctx, &project{kind: wholeProject, root: dir})
		}
	}
}

func (s *Server) moved(ctx context.Context, p foldersParams) error {
	s.mu.Lock()
	for _, f := range p.Event.Added {
		if name, ok := pathOf(f.URI); ok {
			s.folders = append(s.folders, name)
		}
	}
	for _, f := range p.Event.Removed {
		if name, ok := pathOf(f.URI); ok {
			s.folders = slices.DeleteFunc(s.folders, func(o string) bool { return o == name })
		}
	}
	s.mu.Unlock()
	s.openFolders(ctx)
	return nil
}

// watch checks a project after each change, until ctx is done.
func (s *Server) watch(ctx context.Context, p *project) {
	first := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		if !first && !s.quiet(ctx, p) {
			return
		}
		lost := s.place(p)
		s.mu.Lock()
		docs, generation := s.documents(p), p.generation
		s.mu.Unlock()
		state, ds, err := s.checked(ctx, p, docs)
		ds = append(lost, ds...)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Error("a project could not be checked", "directory", p.root, "error", err)
		}
		s.mu.Lock()
		if state != nil {
			p.state, p.snap = state, nil
		}
		current := generation == p.generation
		snap := s.snapshot(p)
		s.mu.Unlock()
		if first {
			close(p.loaded)
			first = false
		}
		if state != nil && current {
			s.report(ctx, p, docs, snap, ds)
		}
	}
}

// grace is how long a run may take for its faults to be sent together with the others.
const grace = 300 * time.Millisecond

// report sends the faults of a project: those known at once and, when there are no errors, those of a run, which are late when that
// takes long. A change ends the run.
func (s *Server) report(ctx context.Context, p *project, docs map[string]*document, snap *snapshot, ds diag.List) {
	failed := ds.HasErrors()
	ds = append(ds, undeclared(snap, ds)...)
	send := func(ds diag.List) {
		if err := s.publish(p, docs, snap.state, ds); err != nil {
			s.log.Warn("diagnostics could not be sent", "error", err)
		}
	}
	if failed {
		send(ds)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	p.interrupt = cancel
	if len(p.wake) > 0 {
		cancel() // it has changed since
	}
	s.mu.Unlock()
	ended := make(chan diag.List, 1)
	go func() { ended <- s.ran(ctx, p, docs, snap.state) }()
	var more diag.List
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case more = <-ended:
		send(with(ds, more))
	case <-timer.C:
		send(ds)
		if more = <-ended; len(more) > 0 && ctx.Err() == nil {
			send(with(ds, more))
		}
	}
	s.mu.Lock()
	p.interrupt = nil
	s.mu.Unlock()
}

// ran runs the model of a project. A fault of ours is logged and does not end the server.
func (s *Server) ran(ctx context.Context, p *project, docs map[string]*document, state *checked) (ds diag.List) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a model could not be run", "directory", p.root, "panic", r)
			ds = nil
		}
	}()
	var inputs lang.Inputs
	if s.cfg.Inputs != nil {
		inputs = s.cfg.Inputs()
	}
	return p.run(ctx, state, docs, inputs)
}

// place finds out where the modules of a project are, if that is not known. The faults are those of finding out.
func (s *Server) place(p *project) diag.List {
	s.mu.Lock()
	stale := p.stale
	p.stale = false
	s.mu.Unlock()
	if !stale {
		return p.lost
	}
	var sites []module.Site
	var fetched []module.Place
	var err error
	if s.cfg.Modules != nil {
		sites, fetched, err = s.cfg.Modules(p.root)
	}
	if p.kind != wholeProject {
		beside, fetchable := s.neighbours(p)
		sites, fetched = append(beside, sites...), append(fetchable, fetched...)
	}
	p.lost = nil
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			p.lost.Errorf("ModuleLoadingException", diag.Range{File: module.LockFile, Start: diag.Position{Line: 1}}, "%s", strings.TrimSpace(line))
		}
	}
	places := newPlaces(p.root, sites, fetched)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.places.Store(&places)
	p.snap = nil
	for uri, d := range s.docs {
		if s.homes[uri] == p && p.name(d.path) != d.name {
			s.docs[uri] = &document{uri: d.uri, path: d.path, version: d.version, text: d.text, name: p.name(d.path)}
		}
	}
	return p.lost
}

// checked checks a project. A fault of ours is an error and does not end the server.
func (s *Server) checked(ctx context.Context, p *project, docs map[string]*document) (state *checked, ds diag.List, err error) {
	defer func() {
		if r := recover(); r != nil {
			state, ds, err = nil, nil, fmt.Errorf("checking %s: %v", p.root, r)
		}
	}()
	return p.check(ctx, docs)
}

// quiet waits until a project has not changed for a while. It is false when ctx is done first.
func (s *Server) quiet(ctx context.Context, p *project) bool {
	timer := time.NewTimer(s.cfg.Delay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.wake:
			timer.Reset(s.cfg.Delay)
		case <-timer.C:
			return true
		}
	}
}
