package module_test

import (
	"os"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang/module"
)

// TestPEP440 compares with a table that testdata/pep440.py made with Python's own implementation.
func TestPEP440(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/pep440.txt")
	if err != nil {
		t.Fatal(err)
	}
	var versions []module.Version
	pythons := []module.MarkerEnv{module.PythonEnv("3.9.18", "x86_64"), module.PythonEnv("3.12.1", "aarch64")}
	extras := []string{"", "test"}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		counts[f[0]]++
		switch f[0] {
		case "V ", "V=":
			v, err := module.ParseVersion(f[1])
			if err != nil || v.String() != f[2] {
				t.Errorf("ParseVersion(%q) = %s, %v; want %s", f[1], v, err, f[2])
			}
			if n := len(versions); n > 0 {
				want := -1
				if f[0] == "V=" {
					want = 0
				}
				if got := versions[n-1].Compare(v); got != want {
					t.Errorf("%s compared to %s = %d, want %d", versions[n-1].Text(), v.Text(), got, want)
				}
				if got := v.Compare(versions[n-1]); got != -want {
					t.Errorf("%s compared to %s = %d, want %d", v.Text(), versions[n-1].Text(), got, -want)
				}
			}
			versions = append(versions, v)
		case "N":
			if v, err := module.ParseVersion(f[1]); err == nil {
				t.Errorf("ParseVersion(%q) = %s, want an error", f[1], v)
			}
		case "X":
			if _, err := module.ParseConstraint(f[1]); err == nil {
				t.Errorf("ParseConstraint(%q) succeeded, want an error", f[1])
			}
		case "C":
			c, err := module.ParseConstraint(f[1])
			if err != nil {
				t.Errorf("ParseConstraint(%q): %v", f[1], err)
				continue
			}
			for i, v := range versions {
				for j, pre := range []bool{false, true} {
					if got, want := c.Match(v, pre), f[2+j][i] == '1'; got != want {
						t.Errorf("%q matches %s (pre-releases %v) = %v, want %v", f[1], v.Text(), pre, got, want)
					}
				}
			}
		case "M":
			r, err := module.ParseRequirement("x;" + f[1])
			if err != nil {
				t.Errorf("marker %q: %v", f[1], err)
				continue
			}
			for i, env := range pythons {
				if got, want := r.Applies(env, extras[i]), f[2][i] == '1'; got != want {
					t.Errorf("marker %q under Python %s = %v, want %v", f[1], env["python_version"], got, want)
				}
			}
		case "Y":
			if _, err := module.ParseRequirement("x;" + f[1]); err == nil {
				t.Errorf("marker %q was accepted", f[1])
			}
		}
	}
	for _, kind := range []string{"V ", "V=", "N", "X", "C", "M", "Y"} {
		if counts[kind] == 0 {
			t.Errorf("the table has no rows of the kind %q", kind)
		}
	}
}

func TestParseRequirement(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"std>=8,<9":                                 "std||>=8,<9|",
		"inmanta-module-std ~= 8.0 # a comment":     "inmanta-module-std||~= 8.0|",
		"pip[a, b] (>=1.0)":                         "pip|a b|>=1.0|",
		"x @ https://h/p.whl#sha256=1 ; extra=='y'": "x|||https://h/p.whl#sha256=1",
		"my_module":                                 "my_module|||",
		"a.b-c == 1.* ; python_version >= '3.9'":    "a.b-c||== 1.*|",
	} {
		r, err := module.ParseRequirement(text)
		if err != nil {
			t.Errorf("ParseRequirement(%q): %v", text, err)
			continue
		}
		if got := strings.Join([]string{r.Name, strings.Join(r.Extras, " "), r.Constraint.String(), r.URL}, "|"); got != want {
			t.Errorf("ParseRequirement(%q) = %s, want %s", text, got, want)
		}
	}
	for text, says := range map[string]string{
		"":                        "a name must come first",
		">=1":                     "a name must come first",
		"x 1.0":                   "write an operator",
		"x>=one":                  "no version",
		"x ~= 1":                  "two numbers",
		"x @":                     "address",
		"x>=99999999999999999999": "too large",
	} {
		if _, err := module.ParseRequirement(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseRequirement(%q) = %v, want an error that says %q", text, err, says)
		}
	}
	if got := module.NameOf("Inmanta_Module.my-dns") + " " + module.PackageOf("my_dns") + " " + module.NameOf("jinja2"); got != "my_dns inmanta-module-my-dns " {
		t.Errorf("names = %q", got)
	}
}
