package python

// Companions are the requirements, in the form of PEP 508, that come along with the package inmanta-core of the reference and that
// public modules import without naming them. Our own package inmanta needs none of them; where there is a package index they are
// installed with the modules that require inmanta-core.
func Companions() []string {
	return []string{
		"cryptography>=36", "email-validator>=1,<3", "jinja2~=3.0", "more-itertools>=8", "packaging>=21.3", "pydantic~=2.5,!=2.9.2",
		"docstring-parser>=0.10", "python-dateutil~=2.0", "pyyaml~=6.0", "requests", "toml~=0.10", "typing_inspect~=0.9",
	}
}
