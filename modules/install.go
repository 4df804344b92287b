package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/venv"
)

// The names of the stages.
const (
	stageModules = "modules"
	stagePython  = "python environment"
)

// maxRounds bounds how often the imports of what was fetched ask for more.
const maxRounds = 1000

// work is one request in progress.
type work struct {
	i     *Installer
	req   Request
	ask   *ask
	shelf *shelf
	res   *Result
	// imported are demands that imports made; lost are imports that nothing was found for.
	imported []demand
	lost     map[string]error
	chosen   map[string]choice
	env      *venv.Env
	reqs     []string // of the environment
}

// Install makes sure that everything a project needs is on this machine: as its lock says, or chosen anew where that says nothing,
// is out of date, or is to be updated. The result has no lock when the project needs nothing.
//
// It fails with a [ConflictError] when constraints exclude each other, [ErrOutdated] or [ErrNoLock] when it would have to choose
// and may not, [model.ErrConflict] when a source has another content than the lock says, [model.ErrUnavailable] when a source can
// not be reached, and [model.ErrInvalid] for all that the project has to change. Imports that nothing was found for are no
// error but [Result].Lost: the compiler knows their places.
func (i *Installer) Install(ctx context.Context, req Request) (*Result, error) {
	a, warnings, err := i.readAsk(req)
	if err != nil {
		return nil, err
	}
	w := &work{i: i, req: req, ask: a, shelf: i.newShelf(req, a), res: &Result{Warnings: warnings}, lost: map[string]error{}}
	if req.Lock != nil && req.Lock.Asked == a.digest && !req.Update {
		done, err := w.asLocked(ctx)
		if err != nil || done {
			return w.res, err
		}
	}
	needs := req.Lock != nil || len(a.demands)+len(a.packages) > 0 || w.shelf.needy()
	if !needs && (len(a.repos) > 0 || a.hasIndex()) {
		missing, err := w.missing(ctx)
		if err != nil {
			return nil, err
		}
		needs = len(missing) > 0
	}
	switch {
	case !needs:
		return w.res, nil
	case req.Frozen && req.Lock == nil:
		return nil, ErrNoLock
	case req.Frozen:
		return nil, ErrOutdated
	}
	return w.res, w.choose(ctx)
}

// asLocked brings what the lock names. It is not done when the models import more than that.
func (w *work) asLocked(ctx context.Context) (done bool, err error) {
	l := w.req.Lock
	if !w.sameCheckouts() {
		if w.req.Frozen {
			return false, fmt.Errorf("the checkouts in the project are not those of the lock: %w", ErrOutdated)
		}
		return false, nil
	}
	git := slices.ContainsFunc(l.Modules, func(m module.LockedModule) bool { return m.Git() })
	if git {
		err := w.req.Stage(stageModules, "fetch modules as locked", func(ctx context.Context, out io.Writer) error {
			w.shelf.out = out
			for _, m := range l.Modules {
				if _, ok := w.shelf.checkouts[m.Name]; ok || !m.Git() {
					continue
				}
				if err := w.bringLocked(ctx, m); err != nil {
					return err
				}
				fmt.Fprintf(out, "%s %s at %s\n", m.Name, m.Version, m.Commit[:12])
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	if l.Python != nil {
		err := w.req.Stage(stagePython, "install packages as locked", func(ctx context.Context, out io.Writer) error {
			spec, note := w.i.lockedSpec(l, w.ask)
			if note != "" {
				fmt.Fprintln(out, note)
			}
			env, err := w.i.config.Environments.Ensure(ctx, spec, out)
			if err != nil {
				return err
			}
			return w.checkPackages(env, l)
		})
		if err != nil {
			return false, err
		}
	}
	w.res.Lock = l
	p, warnings, err := w.i.place(w.req, w.ask, w.shelf)
	if err != nil {
		return false, err
	}
	w.res.Placement = p
	var missing []string
	if !w.req.TrustLock {
		if missing, err = w.missing(ctx); err != nil {
			return false, err
		}
	}
	if len(missing) == 0 {
		w.res.Warnings = append(w.res.Warnings, warnings...)
		return true, nil
	}
	if w.req.Frozen {
		return false, fmt.Errorf("imported and not locked: %s: %w", strings.Join(missing, ", "), ErrOutdated)
	}
	w.res.Placement = Placement{}
	return false, nil
}

// sameCheckouts reports whether the lock knows the checkouts of the project. One that takes the place of a locked module does no
// harm: it is told.
func (w *work) sameCheckouts() bool {
	for _, m := range w.req.Lock.Modules {
		if m.Source == module.SourceEditable && w.shelf.checkouts[m.Name] != m.Path {
			return false
		}
	}
	for name, d := range w.shelf.described() {
		if _, ok := w.req.Lock.Module(name); !ok && (d.Layout == module.LayoutV2 || len(d.Packages) > 0) {
			return false
		}
	}
	return true
}

// bringLocked makes sure that a module's tree is in the store.
func (w *work) bringLocked(ctx context.Context, m module.LockedModule) error {
	if w.i.store.verify(m.Digest) == nil {
		return nil
	}
	repo, err := w.i.repository(ctx, w.withCredentials(m))
	if err != nil {
		return err
	}
	v, err := module.ParseVersion(m.Version)
	if err != nil {
		return fmt.Errorf("%s: module %s: %w: %w", module.LockFile, m.Name, err, model.ErrInvalid)
	}
	_, err = w.shelf.bring(ctx, m.Name, candidate{version: v, repo: repo, ref: m.Ref, commit: m.Commit, digest: m.Digest})
	return err
}

// withCredentials is the address of a locked module with the credentials that project.yml has for it.
func (w *work) withCredentials(m module.LockedModule) string {
	for _, r := range w.ask.repos {
		if url := expand(r, m.Name); redact(url) == m.Source {
			return url
		}
	}
	return m.Source
}

// choose chooses and fetches, until the imports ask for nothing more.
func (w *work) choose(ctx context.Context) error {
	for range maxRounds {
		err := w.req.Stage(stageModules, "choose and fetch modules", func(ctx context.Context, out io.Writer) error {
			w.shelf.out = out
			return w.fixpoint(ctx)
		})
		if err != nil {
			return err
		}
		if w.req.NoPackages {
			w.finish()
			return nil
		}
		if err := w.python(); err != nil {
			return err
		}
		before := len(w.imported)
		if err := w.imports(ctx); err != nil {
			return err
		}
		if len(w.imported) == before {
			w.finish()
			return nil
		}
	}
	return fmt.Errorf("the imports of modules ask for more modules without an end: %w", model.ErrInvalid)
}

// fixpoint chooses modules until the imports of those from git and of the project are there.
func (w *work) fixpoint(ctx context.Context) error {
	for range maxRounds {
		roots := w.roots()
		chosen, err := solve(ctx, w.shelf, w.shelf.markers, roots)
		if err != nil {
			return err
		}
		w.chosen = chosen
		before := len(w.imported)
		if err := w.imports(ctx); err != nil {
			return err
		}
		if len(w.imported) == before {
			for _, name := range slices.Sorted(maps.Keys(chosen)) {
				if c := chosen[name]; c.source == module.SourceEditable {
					w.checkoutFits(name, c, roots)
				}
			}
			return nil
		}
	}
	return fmt.Errorf("the imports of modules ask for more modules without an end: %w", model.ErrInvalid)
}

// roots are the wishes that are not those of modules.
func (w *work) roots() []demand {
	out := slices.Concat(w.ask.demands, w.imported)
	described := w.shelf.described()
	for _, name := range slices.Sorted(maps.Keys(described)) {
		out = append(out, demand{Requirement: module.Requirement{Name: name, Text: name}, by: "the project's own tree", project: true})
	}
	return out
}

// checkoutFits warns of a checkout that is not what others ask for.
func (w *work) checkoutFits(name string, c choice, roots []demand) {
	c.any, c.pre = false, true
	for _, d := range w.demandsOn(name, roots) {
		if !fits(c.candidate, []demand{d}) {
			w.warnf("checkout %s has version %s, and %s", c.path, c.version.Text(), d)
		}
	}
}

// demandsOn are all wishes for a module.
func (w *work) demandsOn(name string, roots []demand) []demand {
	out := only(roots, name)
	for _, other := range slices.Sorted(maps.Keys(w.chosen)) {
		for _, r := range w.chosen[other].Modules {
			if r.Name == name && other != name && (!r.Conditional() || r.Applies(w.shelf.markers())) {
				out = append(out, demand{Requirement: r, by: strings.TrimSpace(other + " " + spell(w.chosen[other].version))})
			}
		}
	}
	return out
}

func (w *work) warnf(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !slices.Contains(w.res.Warnings, s) {
		w.res.Warnings = append(w.res.Warnings, s)
	}
}

// imports turns imports that lead nowhere into demands.
func (w *work) imports(ctx context.Context) error {
	w.res.Placement = w.placeChosen()
	missing, err := w.missing(ctx)
	if err != nil {
		return err
	}
	for _, name := range missing {
		_, chosen := w.chosen[name]
		if chosen || w.lost[name] != nil || module.CheckModuleName(name) != nil {
			continue
		}
		d := demand{Requirement: module.Requirement{Name: name, Text: name}, by: "an import", project: true}
		if _, err := w.shelf.candidates(ctx, name, []demand{d}); errors.Is(err, model.ErrNotFound) {
			w.lost[name] = err
			w.res.Lost = append(w.res.Lost, strings.TrimSuffix(err.Error(), ": "+model.ErrNotFound.Error()))
			continue
		} else if err != nil {
			return err
		}
		w.imported = append(w.imported, d)
	}
	return nil
}

// missing lists the modules that imports lead to and that are not there.
func (w *work) missing(ctx context.Context) ([]string, error) {
	opened, err := w.res.Placement.Open()
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	names, ds, err := module.Missing(ctx, w.req.Project, module.Options{
		Main: w.req.Main, Builtin: w.i.config.Builtin, Sites: opened.Sites, Fetched: opened.Fetched, Budget: w.i.config.Budget, Cache: &w.shelf.parsed,
	}, w.required()...)
	if err != nil {
		return nil, fmt.Errorf("following imports: %w; a committed %s spares this", err, module.LockFile)
	}
	if ds.HasErrors() {
		return nil, fmt.Errorf("%s: %w", ds.Errors()[0].Message, model.ErrInvalid)
	}
	return names, nil
}

// required are the modules that the project names: what they import is needed even before a model imports them.
func (w *work) required() []string {
	var out []string
	for _, d := range w.ask.demands {
		out = append(out, d.Name)
	}
	return out
}

// placeChosen is where the choices are.
func (w *work) placeChosen() Placement {
	var p Placement
	for _, name := range slices.Sorted(maps.Keys(w.chosen)) {
		c := w.chosen[name]
		switch {
		case c.digest != "":
			p.Modules = append(p.Modules, PlacedModule{Name: name, Version: spell(c.version), Layout: c.Layout, Dir: w.i.store.path(c.digest)})
		case c.source == module.SourceEditable && c.Layout == module.LayoutV2:
			p.Modules = append(p.Modules, PlacedModule{Name: name, Version: spell(c.version), Layout: c.Layout, Dir: filepath.Join(w.req.Dir, filepath.FromSlash(c.path))})
		}
	}
	if w.env != nil {
		p.Python, p.Sites = w.env.Python, w.env.Sites
	}
	return p
}

// spell writes a version in its normal form, empty for none.
func spell(v module.Version) string {
	if v.Text() == "" {
		return ""
	}
	return v.String()
}

// finish makes the lock.
func (w *work) finish() {
	roots := w.roots()
	lock := &module.Lock{Version: 1, Asked: w.ask.digest}
	for name, c := range w.chosen {
		m := module.LockedModule{Name: name, Version: spell(c.version), Layout: c.Layout, Source: c.source, Path: c.path, Ref: c.ref, Commit: c.commit, Digest: c.digest}
		if c.source == "" {
			m.Source = redact(c.repo.URL)
		}
		if c.source == module.SourceIndex {
			m.Version = w.packageVersion(name)
		}
		for _, d := range w.demandsOn(name, roots) {
			text := d.by
			if d.Constraint.String() != "" {
				text += ": " + d.Constraint.String()
			}
			if !slices.Contains(m.RequiredBy, text) {
				m.RequiredBy = append(m.RequiredBy, text)
			}
		}
		lock.Modules = append(lock.Modules, m)
	}
	if w.env != nil {
		lock.Python = lockPackages(*w.env, w.reqs)
		for _, p := range w.env.Packages { // modules that only packages require
			if name := module.NameOf(p.Name); name != "" && !p.Provided {
				if _, ok := w.chosen[name]; !ok {
					lock.Modules = append(lock.Modules, module.LockedModule{
						Name: name, Version: p.Version, Layout: module.LayoutV2, Source: module.SourceIndex, RequiredBy: []string{"another package"},
					})
				}
			}
		}
	}
	slices.SortFunc(lock.Modules, func(a, b module.LockedModule) int { return strings.Compare(a.Name, b.Name) })
	w.res.Lock = lock
	w.res.Placement = w.placeChosen()
}

// described are the checkouts that say what they are, with what they say. The others are left to the compiler, which reports one
// that is imported.
func (s *shelf) described() map[string]module.Description {
	if s.descriptions == nil {
		s.descriptions = map[string]module.Description{}
		for name, at := range s.checkouts {
			root, err := fs.Sub(s.req.Project, at)
			if err != nil {
				continue
			}
			if d, err := module.Describe(root); err == nil && d.Name == name {
				s.descriptions[name] = d
			}
		}
	}
	return s.descriptions
}

// needy reports whether a checkout needs something: to be placed, or packages.
func (s *shelf) needy() bool {
	for _, d := range s.described() {
		if d.Layout == module.LayoutV2 || len(d.Packages) > 0 {
			return true
		}
	}
	return false
}

// checkoutsV2 are the checkouts in the layout V2, which the compiler finds only when they are placed.
func (s *shelf) checkoutsV2() []string {
	var out []string
	for name, d := range s.described() {
		if d.Layout == module.LayoutV2 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
