package modules

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
)

// Place says where the compiler finds what a project's lock names, without fetching anything. A project without a lock has
// nothing placed. The content of every module is compared with the lock. It fails with [model.ErrNotFound] when something is not
// on this machine, with [model.ErrConflict] when something was changed.
func (i *Installer) Place(req Request) (Placement, []string, error) {
	if req.Lock == nil {
		return Placement{}, nil, nil
	}
	a, _, err := i.readAsk(req)
	if err != nil {
		return Placement{}, nil, err
	}
	p, warnings, err := i.place(req, a, i.newShelf(req, a))
	if err == nil && req.Lock.Asked != a.digest {
		warnings = append(warnings, ErrOutdated.Error())
	}
	return p, warnings, err
}

func (i *Installer) place(req Request, a *ask, s *shelf) (p Placement, warnings []string, err error) {
	var errs []error
	for _, m := range req.Lock.Modules {
		at, checkout := s.checkouts[m.Name]
		switch {
		case checkout:
			if m.Source != module.SourceEditable {
				warnings = append(warnings, fmt.Sprintf("the checkout %s is used instead of %s %s of %s", at, m.Name, m.Version, module.LockFile))
			}
		case m.Source == module.SourceEditable:
			errs = append(errs, fmt.Errorf("%s names the checkout %s, which is not there: put it back, or run intendant project install: %w", module.LockFile, m.Path, model.ErrNotFound))
		case m.Git():
			if err := i.store.verify(m.Digest); err != nil {
				errs = append(errs, fmt.Errorf("module %s %s of %s: %w; run intendant project install", m.Name, m.Version, module.LockFile, err))
				continue
			}
			p.Modules = append(p.Modules, PlacedModule{Name: m.Name, Version: m.Version, Layout: m.Layout, Dir: i.store.path(m.Digest)})
		}
	}
	for _, name := range s.checkoutsV2() {
		p.Modules = append(p.Modules, PlacedModule{Name: name, Layout: module.LayoutV2, Dir: filepath.Join(req.Dir, filepath.FromSlash(s.checkouts[name]))})
	}
	if req.Lock.Python != nil {
		spec, _ := i.lockedSpec(req.Lock, a)
		env, ok := i.config.Environments.Lookup(spec)
		if !ok {
			errs = append(errs, fmt.Errorf("the environment of Python packages of %s is not on this machine: run intendant project install: %w", module.LockFile, model.ErrNotFound))
		}
		p.Python, p.Sites = env.Python, env.Sites
	}
	return p, warnings, errors.Join(errs...)
}

// Opened is a placement whose trees are open.
type Opened struct {
	// Sites and Fetched are for the options of the compiler.
	Sites   []module.Site
	Fetched []module.Place
	// Python is the interpreter of the project's environment; empty when it needs none.
	Python  string
	closers []io.Closer
}

// Close closes the trees.
func (o *Opened) Close() {
	for _, c := range o.closers {
		_ = c.Close()
	}
}

// Open opens the trees of a placement. No path leads out of them. A module's name in diagnostics is name@version.
func (p Placement) Open() (*Opened, error) {
	o := &Opened{Python: p.Python}
	open := func(dir string) (*os.Root, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			o.Close()
			return nil, fmt.Errorf("opening a module: %w", err)
		}
		o.closers = append(o.closers, root)
		return root, nil
	}
	for _, m := range p.Modules {
		root, err := open(m.Dir)
		if err != nil {
			return nil, err
		}
		name := m.Name
		if m.Version != "" {
			name += "@" + m.Version
		}
		if m.Layout == module.LayoutV2 {
			o.Sites = append(o.Sites, module.Site{Name: name, FS: root.FS(), Disk: m.Dir})
		} else {
			o.Fetched = append(o.Fetched, module.Place{Name: m.Name, Dir: name, FS: root.FS(), Disk: m.Dir})
		}
	}
	for _, dir := range p.Sites {
		root, err := open(dir)
		if err != nil {
			return nil, err
		}
		o.Sites = append(o.Sites, module.Site{Name: "site-packages", FS: root.FS(), Disk: dir, Shared: true})
	}
	return o, nil
}
