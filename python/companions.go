package python

import (
	"slices"
	"strings"
)

// Companions are the requirements, in the form of PEP 508, that come along with the package inmanta-core of the reference and that
// public modules import without naming them. Our own package inmanta needs none of them; where there is a package index they are
// installed with the modules that require inmanta-core.
func Companions() []string {
	return []string{
		"cryptography>=36", "email-validator>=1,<3", "jinja2~=3.0", "more-itertools>=8", "packaging>=21.3", "pydantic~=2.5,!=2.9.2",
		"docstring-parser>=0.10", "python-dateutil~=2.0", "pyyaml~=6.0", "requests", "toml~=0.10", "typing_inspect~=0.9",
	}
}

// importNames are the names under which companions are imported, where these differ from those of the packages.
var importNames = map[string]string{"dateutil": "python-dateutil", "yaml": "pyyaml"}

// Companion returns the requirement of [Companions] that provides a top-level Python module, such as pyyaml~=6.0 for yaml.
func Companion(name string) (requirement string, ok bool) {
	pkg, other := importNames[name]
	if !other {
		pkg = strings.ReplaceAll(name, "_", "-")
	}
	all := Companions()
	i := slices.IndexFunc(all, func(r string) bool { return PackageName(r) == pkg })
	if i < 0 {
		return "", false
	}
	return all[i], true
}

// PackageName is the normalized name of the package that a requirement of PEP 508 begins with.
func PackageName(requirement string) string {
	name := strings.TrimSpace(requirement)
	if i := strings.IndexAny(name, " <>=!~;[(@"); i >= 0 {
		name = name[:i]
	}
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
}
