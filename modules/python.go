package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/venv"
)

// python makes the environment of the packages that the project and the chosen modules need.
func (w *work) python() error {
	spec := venv.Spec{Python: w.i.config.Python, Index: w.ask.index, Provided: maps.Clone(w.i.config.Provided), Requirements: slices.Clone(w.ask.packages)}
	if spec.Provided == nil {
		spec.Provided = map[string]string{}
	}
	spec.ProvidedRequires = w.i.companions(spec.Index)
	roots := w.roots()
	var wishes []string // for the explanation of a conflict
	for _, name := range slices.Sorted(maps.Keys(w.chosen)) {
		c := w.chosen[name]
		switch c.source {
		case module.SourceIndex:
			pkg := module.PackageOf(name)
			extras := slices.Compact(slices.Sorted(slices.Values(w.ask.extras[name])))
			if len(extras) > 0 {
				pkg += "[" + strings.Join(extras, ",") + "]"
			}
			var bounds []string
			for _, d := range w.demandsOn(name, roots) {
				if c := d.Constraint.String(); c != "" && !slices.Contains(bounds, c) {
					bounds = append(bounds, c)
				}
				if s := d.String(); !slices.Contains(wishes, s) {
					wishes = append(wishes, s)
				}
			}
			spec.Requirements = append(spec.Requirements, pkg+strings.Join(bounds, ","))
			continue
		case module.SourceBuiltin:
			continue
		}
		for _, r := range c.Packages {
			if !r.Conditional() || r.Applies(w.shelf.markers()) {
				spec.Requirements = append(spec.Requirements, r.Text)
			}
		}
		// What comes from git or lies in the project is there already for packages that require it.
		if c.version.Text() != "" {
			spec.Provided[module.PackageOf(name)] = c.version.String()
		}
	}
	// Constraints on what only packages require.
	for _, d := range w.ask.demands {
		if _, ok := w.chosen[d.Name]; !ok && !d.Constraint.Empty() {
			spec.Constraints = append(spec.Constraints, module.PackageOf(d.Name)+d.Constraint.String())
		}
	}
	slices.Sort(spec.Requirements)
	spec.Requirements = slices.Compact(spec.Requirements)
	if len(spec.Requirements) == 0 {
		w.env, w.reqs = nil, nil
		return nil
	}
	// An update of some modules leaves the other packages as they are locked.
	free := spec
	if old := w.req.Lock; old != nil && old.Python != nil && (!w.req.Update || len(w.req.Only) > 0) {
		for _, p := range old.Python.Packages {
			if _, ours := spec.Provided[p.Name]; !ours && !w.released(p.Name) && w.allows(p, spec.Requirements, spec.Constraints) {
				spec.Constraints = append(slices.Clone(spec.Constraints), p.Name+"=="+p.Version)
			}
		}
	}
	return w.req.Stage(stagePython, "choose and install packages", func(ctx context.Context, out io.Writer) error {
		fmt.Fprintf(out, "requirements: %s\n", strings.Join(spec.Requirements, ", "))
		chosen, err := w.i.config.Environments.Ensure(ctx, spec, out)
		if errors.Is(err, model.ErrInvalid) && len(spec.Constraints) > len(free.Constraints) {
			fmt.Fprintf(out, "the versions of %s do not go with what is asked for: choosing all packages anew\n", module.LockFile)
			chosen, err = w.i.config.Environments.Ensure(ctx, free, out)
		}
		if err != nil {
			if len(wishes) > 0 {
				return fmt.Errorf("%w\nwho asks for modules of the package index:\n  %s", err, strings.Join(wishes, "\n  "))
			}
			return err
		}
		// The environment of the lock is the one that is used from now on, here and elsewhere.
		lock := &module.Lock{Python: lockPackages(chosen, spec.Requirements)}
		for name, c := range w.chosen {
			if c.source != module.SourceIndex && c.source != module.SourceBuiltin {
				lock.Modules = append(lock.Modules, module.LockedModule{Name: name, Version: spell(c.version)})
			}
		}
		exact, _ := w.i.lockedSpec(lock, w.ask)
		env, err := w.i.config.Environments.Ensure(ctx, exact, out)
		if err != nil {
			return err
		}
		w.env, w.reqs = &env, spec.Requirements
		return nil
	})
}

// released reports whether a package is to be chosen anew.
func (w *work) released(pkg string) bool {
	return slices.ContainsFunc(w.req.Only, func(n string) bool { return venv.Normalise(n) == pkg || module.PackageOf(n) == pkg })
}

// allows reports whether a locked package is still among what is asked for directly.
func (w *work) allows(p module.LockedPackage, lines ...[]string) bool {
	v, err := module.ParseVersion(p.Version)
	if err != nil {
		return false
	}
	for _, text := range slices.Concat(lines...) {
		r, err := module.ParseRequirement(text)
		if err == nil && r.PackageName() == p.Name && !r.Match(v, true) {
			return false
		}
	}
	return true
}

// packageVersion is the version in which a module was installed as a package.
func (w *work) packageVersion(name string) string {
	if w.env != nil {
		for _, p := range w.env.Packages {
			if p.Name == module.PackageOf(name) {
				return p.Version
			}
		}
	}
	return ""
}

// lockPackages writes down what an environment consists of.
func lockPackages(env venv.Env, requirements []string) *module.LockedPython {
	l := &module.LockedPython{Version: env.Version, Platform: env.Platform}
	for _, r := range requirements {
		l.Requirements = append(l.Requirements, venv.Redact(r))
	}
	for _, p := range env.Packages {
		if !p.Provided {
			l.Packages = append(l.Packages, module.LockedPackage{Name: p.Name, Version: p.Version, File: p.File, SHA256: p.SHA256})
		}
	}
	return l
}

// companions are what the provided packages require, when there is an index to have it from: a directory of wheels has what its
// owner put there.
func (i *Installer) companions(index venv.Index) map[string][]string {
	if index.NoIndex || index.URL == "" && !index.UseSystemConfig {
		return nil
	}
	return i.config.ProvidedRequires
}

// lockedSpec is the environment that a lock describes. The note says why digests are not checked.
func (i *Installer) lockedSpec(l *module.Lock, a *ask) (spec venv.Spec, note string) {
	spec = venv.Spec{Python: i.config.Python, Index: a.index, NoDeps: true, Provided: maps.Clone(i.config.Provided)}
	if spec.Provided == nil {
		spec.Provided = map[string]string{}
	}
	spec.ProvidedRequires = i.companions(spec.Index)
	for _, m := range l.Modules {
		if v, err := module.ParseVersion(m.Version); err == nil && m.Source != module.SourceIndex && m.Source != module.SourceBuiltin {
			spec.Provided[module.PackageOf(m.Name)] = v.String()
		}
	}
	py, err := venv.FindPython(i.config.Python)
	same := err == nil && minor(py.Version) == minor(l.Python.Version) && py.Platform == l.Python.Platform
	digests := !slices.ContainsFunc(l.Python.Packages, func(p module.LockedPackage) bool { return p.SHA256 == "" })
	if digests && !same {
		note = fmt.Sprintf("digests of packages are not checked: %s was made with Python %s on %s", module.LockFile, minor(l.Python.Version), l.Python.Platform)
	}
	for _, p := range l.Python.Packages {
		r := p.Name + "==" + p.Version
		if digests && same {
			r += " --hash=sha256:" + p.SHA256
		}
		spec.Requirements = append(spec.Requirements, r)
	}
	return spec, note
}

// minor is a version of Python without its last number.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// checkPackages compares what was installed with the lock, file by file, where digests could not be checked before.
func (w *work) checkPackages(env venv.Env, l *module.Lock) error {
	locked := map[string]module.LockedPackage{}
	for _, p := range l.Python.Packages {
		locked[p.Name] = p
	}
	for _, p := range env.Packages {
		if q, ok := locked[p.Name]; ok && p.File != "" && p.File == q.File && p.SHA256 != q.SHA256 {
			return fmt.Errorf("package %s: the file %s has the digest %s, and %s says %s: do not trust either until you know why: %w",
				p.Name, p.File, p.SHA256, module.LockFile, q.SHA256, model.ErrConflict)
		}
	}
	return nil
}
