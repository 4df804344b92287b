package python_test

import (
	"testing"

	"github.com/intendant/intendant/python"
)

func TestCompanion(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"yaml": "pyyaml~=6.0", "dateutil": "python-dateutil~=2.0", "email_validator": "email-validator>=1,<3", "jinja2": "jinja2~=3.0", "netaddr": "", "os": "",
	} {
		if got, ok := python.Companion(name); got != want || ok != (want != "") {
			t.Errorf("Companion(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}

func TestPackageName(t *testing.T) {
	t.Parallel()
	for requirement, want := range map[string]string{
		" Foo_Bar.baz >= 1": "foo-bar-baz", "a[b]>1": "a", "a; python_version > '3'": "a", "a@https://example.org/a.whl": "a", "a": "a",
	} {
		if got := python.PackageName(requirement); got != want {
			t.Errorf("PackageName(%q) = %q, want %q", requirement, got, want)
		}
	}
}
