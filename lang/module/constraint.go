package module

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/intendant/intendant/lazyregexp"
)

// clause is one comparison of a constraint.
type clause struct {
	op string
	// version is the right side. prefix says that it stood before ".*".
	version Version
	prefix  bool
	// exact is the right side of ===, which is compared as text.
	exact string
}

// Constraint is a set of version clauses of PEP 440, all of which have to hold: ">=1.2, <2". The zero value lets every version
// pass but pre-releases.
type Constraint struct {
	clauses []clause
	text    string
}

var clauseForm = lazyregexp.New(`^\s*(~=|===|==|!=|<=|>=|<|>)\s*(\S+)\s*$`)

// ParseConstraint reads clauses that are separated by commas. The empty text is a constraint without clauses.
func ParseConstraint(text string) (Constraint, error) {
	c := Constraint{text: strings.TrimSpace(text)}
	if c.text == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue // PEP 508 lets a comma stand at the end
		}
		m := clauseForm().FindStringSubmatch(part)
		if m == nil {
			return c, fmt.Errorf("%.80q is no version constraint: write an operator (==, ~=, >=, <=, >, <, !=) and a version", strings.TrimSpace(part))
		}
		cl := clause{op: m[1]}
		if cl.op == "===" {
			cl.exact = strings.ToLower(m[2])
			c.clauses = append(c.clauses, cl)
			continue
		}
		version := m[2]
		if cut, ok := strings.CutSuffix(version, ".*"); ok {
			if cl.op != "==" && cl.op != "!=" {
				return c, fmt.Errorf("%q: .* goes with == and != only", strings.TrimSpace(part))
			}
			cl.prefix, version = true, cut
		}
		v, err := ParseVersion(version)
		if err != nil {
			return c, err
		}
		switch {
		case cl.prefix && (v.Prerelease() || v.post != nil || len(v.local) > 0):
			return c, fmt.Errorf("%q: .* can follow the numbers of a release only", strings.TrimSpace(part))
		case cl.op == "~=" && len(v.release) < 2:
			return c, fmt.Errorf("%q: ~= needs a version of at least two numbers", strings.TrimSpace(part))
		case len(v.local) > 0 && cl.op != "==" && cl.op != "!=":
			return c, fmt.Errorf("%q: a local version goes with == and != only", strings.TrimSpace(part))
		}
		cl.version = v
		c.clauses = append(c.clauses, cl)
	}
	return c, nil
}

// String is the constraint as it was written.
func (c Constraint) String() string { return c.text }

// Empty reports whether the constraint has no clauses.
func (c Constraint) Empty() bool { return len(c.clauses) == 0 }

// AllowsPrereleases reports whether the constraint names a pre-release, which lets pre-releases pass.
func (c Constraint) AllowsPrereleases() bool {
	return slices.ContainsFunc(c.clauses, func(cl clause) bool {
		if cl.op == "===" {
			v, err := ParseVersion(cl.exact)
			return err == nil && v.Prerelease()
		}
		return cl.op != "!=" && cl.version.Prerelease()
	})
}

// Match reports whether a version meets all clauses. A pre-release does not, unless pre is set or the constraint names one.
func (c Constraint) Match(v Version, pre bool) bool {
	if v.Prerelease() && !pre && !c.AllowsPrereleases() {
		return false
	}
	for _, cl := range c.clauses {
		if !cl.match(v) {
			return false
		}
	}
	return true
}

func (cl clause) match(v Version) bool {
	w := cl.version
	switch cl.op {
	case "===":
		return strings.ToLower(v.text) == cl.exact
	case "==":
		return cl.equal(v)
	case "!=":
		return !cl.equal(v)
	case "<=":
		return v.comparePublic(w) <= 0
	case ">=":
		return v.comparePublic(w) >= 0
	case "<":
		// A pre-release of what is excluded is not below it.
		return v.Compare(w) < 0 && (w.Prerelease() || !v.Prerelease() || !sameRelease(v, w))
	case ">":
		// Neither a later post-release of it nor a local version of it is above it.
		return v.Compare(w) > 0 && (w.post != nil || v.post == nil || !sameRelease(v, w)) && (len(v.local) == 0 || !sameRelease(v, w))
	case "~=":
		series := clause{op: "==", version: Version{epoch: w.epoch, release: w.release[:len(w.release)-1]}, prefix: true}
		return v.comparePublic(w) >= 0 && series.equal(v)
	}
	return false
}

func (cl clause) equal(v Version) bool {
	w := cl.version
	if !cl.prefix {
		return v.comparePublic(w) == 0 && (len(w.local) == 0 || compareLocal(v.local, w.local) == 0)
	}
	// The numbers are compared one by one; missing ones are zeros, so that 1 begins with 1.0.
	if v.epoch != w.epoch {
		return false
	}
	for i, n := range w.release {
		if i < len(v.release) && v.release[i] != n || i >= len(v.release) && n != 0 {
			return false
		}
	}
	return true
}

// sameRelease reports whether versions differ only in what surrounds their release.
func sameRelease(v, w Version) bool {
	return v.epoch == w.epoch && slices.Equal(trimZeros(v.release), trimZeros(w.release))
}

// Requirement is what somebody needs, in the form of PEP 508: a name, versions, and when it applies.
type Requirement struct {
	// Name is as written. Extras are the optional parts asked for.
	Name   string
	Extras []string
	Constraint
	// URL is set when a direct reference says where the package is.
	URL string
	// marker says when the requirement applies; nil for always.
	marker marker
	// Text is the requirement as written.
	Text string
}

var requirementForm = lazyregexp.New(`^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[A-Za-z_][A-Za-z0-9_]*)\s*(?:\[([^\]]*)\])?\s*(.*?)\s*$`)

// ParseRequirement reads a requirement. A comment may follow it.
func ParseRequirement(text string) (Requirement, error) {
	plain, _, _ := strings.Cut(" "+text, " #")
	fail := func(err error) (Requirement, error) {
		return Requirement{}, fmt.Errorf("requirement %.200q: %w", strings.TrimSpace(text), err)
	}
	m := requirementForm().FindStringSubmatch(plain)
	if m == nil {
		return fail(errors.New("a name must come first"))
	}
	r := Requirement{Name: m[1], Text: strings.TrimSpace(plain)}
	for e := range strings.SplitSeq(m[2], ",") {
		if e = strings.TrimSpace(e); e != "" {
			r.Extras = append(r.Extras, e)
		}
	}
	rest := m[3]
	if at, ok := strings.CutPrefix(rest, "@"); ok {
		// Within a URL a semicolon separates nothing unless a space stands before it.
		u, cond, found := strings.Cut(strings.TrimSpace(at), " ;")
		r.URL, rest = strings.TrimSpace(u), ""
		if found {
			rest = ";" + cond
		}
		if r.URL == "" {
			return fail(errors.New("an address must follow @"))
		}
	}
	versions, cond, found := strings.Cut(rest, ";")
	if found {
		k, err := parseMarker(cond)
		if err != nil {
			return fail(err)
		}
		r.marker = k
	}
	versions = strings.TrimSpace(versions)
	if strings.HasPrefix(versions, "(") && strings.HasSuffix(versions, ")") {
		versions = versions[1 : len(versions)-1]
	}
	c, err := ParseConstraint(versions)
	if err != nil {
		return fail(err)
	}
	r.Constraint = c
	return r, nil
}

// Prefix is what the names of packages begin with that are modules.
const Prefix = "inmanta-module-"

// separators are runs of what names are written with alternatively.
var separators = lazyregexp.New(`[-_.]+`)

// PackageName is the name in the form in which names of packages are compared.
func (r Requirement) PackageName() string { return normalise(r.Name) }

func normalise(name string) string { return strings.ToLower(separators().ReplaceAllString(name, "-")) }

// NameOf is the module that a package of this name holds; empty when it is none.
func NameOf(name string) string {
	name, ok := strings.CutPrefix(normalise(name), Prefix)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(name, "-", "_")
}

// PackageOf is the package that holds a module.
func PackageOf(module string) string { return Prefix + strings.ReplaceAll(module, "_", "-") }
