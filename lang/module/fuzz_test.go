package module_test

import (
	"testing"

	"github.com/intendant/intendant/lang/module"
)

// FuzzParseRequirement holds that no text makes the parsers panic, and that versions keep their place when written in normal form.
func FuzzParseRequirement(f *testing.F) {
	for _, s := range []string{
		"std>=8,<9", "x[a,b] (~=1.0) ; python_version < '3.9' and extra == 'x'", "x @ https://h/p ; os_name in 'posix'", "1!2.0rc1.post2.dev3+a.1", "x;((((",
	} {
		f.Add(s, "1.0")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		r, err := module.ParseRequirement(text)
		v, verr := module.ParseVersion(version)
		if verr == nil {
			w, err := module.ParseVersion(v.String())
			if err != nil || w.Compare(v) != 0 || w.String() != v.String() {
				t.Errorf("the normal form %s of %q is %s, %v", v, version, w, err)
			}
		}
		if err == nil {
			_ = r.Applies(module.PythonEnv("3.12.1", "x86_64"), "x")
			if verr == nil {
				_ = r.Match(v, true)
			}
		}
	})
}

// FuzzParseLock holds that a lock which is read can be written and read again.
func FuzzParseLock(f *testing.F) {
	f.Add([]byte("version: 1\nasked: sha256:" + digits + "\nmodules:\n  - {name: x, version: '1', layout: v1, source: editable, path: libs/x}\n"))
	f.Add([]byte("version: 1\nasked: sha256:" + digits + "\npython: {version: '3', platform: p, requirements: [], packages: [{name: x, version: '1'}]}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		l, err := module.ParseLock(src)
		if err != nil {
			return
		}
		text, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := module.ParseLock(text); err != nil {
			t.Errorf("what was written can not be read: %v\n%s", err, text)
		}
	})
}

const digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
