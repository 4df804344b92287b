package modules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/model"
)

// demand is a wish for a module, and whose it is.
type demand struct {
	module.Requirement
	by string
	// project says that it is the project's own: see the package's comment.
	project bool
	// weak bounds the versions of a module that others want, and wants it not by itself. What a module.yml requires is such: the
	// imports say what is needed (language reference, sections 15.1 and 15.4).
	weak bool
}

func (d demand) String() string {
	return fmt.Sprintf("%s asks for %s", d.by, strings.TrimSpace(d.Name+" "+d.Constraint.String()))
}

// candidate is a version of a module that may be chosen.
type candidate struct {
	version module.Version
	// repo, ref and commit say where a module from git is.
	repo        model.Repository
	ref, commit string
	// source is one of the sources of [module.LockedModule] for one that is not from git; path is a checkout's.
	source, path string
	// digest is set for one that is locked: the tree must have it.
	digest string
	// pre says that the constraint need not name a pre-release for this one to pass.
	pre bool
	// any says that constraints do not hold it off: a checkout is what its author wants.
	any bool
}

// choice is a candidate that was chosen, with what it says about itself.
type choice struct {
	candidate
	module.Description
	digest string
}

// catalogue knows what there is.
type catalogue interface {
	// candidates lists the versions of a module, the preferred first. It fails with [model.ErrNotFound] when there is no such
	// module, which names where it was looked for.
	candidates(ctx context.Context, name string, demands []demand) ([]candidate, error)
	// describe fetches a candidate and reads what it says about itself. It is asked again and again for the same.
	describe(ctx context.Context, name string, c candidate) (choice, error)
}

// A ConflictError says that no version of a module fits all who ask for it. It matches [model.ErrInvalid].
type ConflictError struct {
	Module string
	// Demands say who asks for what. Versions are those that exist, the highest first.
	Demands  []string
	Versions []string
	// Hint says what to do, if there is something to say.
	Hint string
}

// Error lists the demands and the versions.
func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no version of module %s fits:\n", e.Module)
	for _, d := range e.Demands {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	switch n := len(e.Versions); {
	case n == 0:
		b.WriteString("there is no version at all")
	case n > 10:
		fmt.Fprintf(&b, "there are %s and %d older ones", strings.Join(e.Versions[:10], ", "), n-10)
	default:
		fmt.Fprintf(&b, "there are %s", strings.Join(e.Versions, ", "))
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Is reports that the error is one of [model.ErrInvalid].
func (e *ConflictError) Is(target error) bool { return target == model.ErrInvalid }

// maxTries bounds the candidates that are looked at for one project.
const maxTries = 2000

// solver finds a choice for every module that is asked for, directly or by another choice, so that all constraints hold. It
// prefers what the catalogue lists first, in the order in which modules are asked for, and goes back when that does not work out.
type solver struct {
	catalogue catalogue
	markers   func() module.MarkerEnv
	// first is the first conflict, which is the one that people want to know: it is about the newest versions.
	first error
	tries int
}

func solve(ctx context.Context, cat catalogue, markers func() module.MarkerEnv, roots []demand) (map[string]choice, error) {
	s := &solver{catalogue: cat, markers: markers}
	chosen, err := s.solve(ctx, roots, map[string]choice{})
	if errors.Is(err, errNoWay) {
		return nil, s.first
	}
	return chosen, err
}

// errNoWay says that what was chosen so far leads nowhere. The reason is in solver.first.
var errNoWay = errors.New("no way")

func (s *solver) solve(ctx context.Context, demands []demand, chosen map[string]choice) (map[string]choice, error) {
	name := ""
	for _, d := range demands {
		if _, ok := chosen[d.Name]; !ok && !d.weak {
			name = d.Name
			break
		}
	}
	if name == "" {
		return chosen, nil
	}
	var mine []demand
	for _, d := range demands {
		if d.Name == name {
			mine = append(mine, d)
		}
	}
	all, err := s.catalogue.candidates(ctx, name, mine)
	if errors.Is(err, model.ErrNotFound) {
		return nil, s.fail(err) // an older version of who asks for it may not need it
	}
	if err != nil {
		return nil, err
	}
	fitting := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return !fits(c, mine) })
	if len(fitting) == 0 {
		return nil, s.fail(conflict(name, mine, all))
	}
	for _, c := range fitting {
		next, err := s.try(ctx, name, c, demands, chosen)
		if !errors.Is(err, errNoWay) {
			return next, err
		}
	}
	return nil, errNoWay
}

// try chooses a candidate and goes on.
func (s *solver) try(ctx context.Context, name string, c candidate, demands []demand, chosen map[string]choice) (map[string]choice, error) {
	if s.tries++; s.tries > maxTries {
		return nil, errors.Join(fmt.Errorf("looked at %d versions of modules without an end: bound the versions in project.yml more tightly: %w", maxTries, model.ErrInvalid), s.first)
	}
	what, err := s.catalogue.describe(ctx, name, c)
	if err != nil {
		return nil, err
	}
	if !what.any && (what.version.Text() == "" || !fits(what.candidate, only(demands, name))) { // one whose version shows only now
		return nil, s.fail(conflict(name, only(demands, name), []candidate{what.candidate}))
	}
	next := maps.Clone(chosen)
	next[name] = what
	wishes := slices.Clone(demands)
	for _, r := range what.Modules {
		if r.Name == name || r.Conditional() && !r.Applies(s.markers()) {
			continue
		}
		d := demand{Requirement: r, by: name + " " + spell(what.version), weak: what.Layout != module.LayoutV2}
		wishes = append(wishes, d)
		if x, ok := next[r.Name]; ok && !fits(x.candidate, only(wishes, r.Name)) {
			all, err := s.catalogue.candidates(ctx, r.Name, only(wishes, r.Name))
			if err != nil { // it was chosen before, so what is known of it will do
				all = []candidate{x.candidate}
			}
			return nil, s.fail(conflict(r.Name, only(wishes, r.Name), all))
		}
	}
	return s.solve(ctx, wishes, next)
}

func (s *solver) fail(err error) error {
	if s.first == nil {
		s.first = err
	}
	return errNoWay
}

func only(demands []demand, name string) []demand {
	var out []demand
	for _, d := range demands {
		if d.Name == name {
			out = append(out, d)
		}
	}
	return out
}

// fits reports whether a candidate meets all demands. A pre-release passes when one of them names a pre-release.
func fits(c candidate, demands []demand) bool {
	if c.any || c.version.Text() == "" { // its version is not known yet
		return true
	}
	pre := c.pre
	for _, d := range demands {
		pre = pre || d.AllowsPrereleases()
	}
	for _, d := range demands {
		if !d.Match(c.version, pre) {
			return false
		}
	}
	return !c.version.Prerelease() || pre
}

// conflict explains why no candidate fits.
func conflict(name string, demands []demand, all []candidate) error {
	e := &ConflictError{Module: name}
	for _, d := range demands {
		if s := d.String(); !slices.Contains(e.Demands, s) {
			e.Demands = append(e.Demands, s)
		}
	}
	pre := false // a pre-release would do
	for _, c := range all {
		if c.version.Text() == "" {
			continue
		}
		e.Versions = append(e.Versions, spell(c.version))
		if c.version.Prerelease() && !c.pre {
			c.pre = true
			pre = pre || fits(c, demands)
		}
	}
	slices.Sort(e.Versions)
	e.Versions = slices.Compact(e.Versions)
	slices.SortFunc(e.Versions, func(a, b string) int {
		v, _ := module.ParseVersion(a)
		w, _ := module.ParseVersion(b)
		return w.Compare(v)
	})
	if len(e.Versions) == 0 {
		e.Hint = "its repository has no tag that is a version, such as 1.2.0: tag one, or take the newest commit with install_mode: master"
	}
	if pre {
		e.Hint = "pre-releases count only with install_mode: prerelease, or when a constraint names one"
	}
	return e
}
