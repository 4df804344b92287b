package modules_test

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/modules"
)

// wheel puts a module into a directory of packages.
func wheel(t *testing.T, dir, name, version string, requires ...string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "inmanta_module_"+name+"-"+version+"-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	requires = append(requires, "inmanta-core")
	info := "inmanta_module_" + name + "-" + version + ".dist-info/"
	meta := "Metadata-Version: 2.1\nName: inmanta-module-" + name + "\nVersion: " + version + "\nRequires-Dist: " + strings.Join(requires, "\nRequires-Dist: ")
	for _, part := range [][2]string{
		{"inmanta_plugins/" + name + "/__init__.py", ""},
		{"inmanta_plugins/" + name + "/model/_init.cf", ""},
		{info + "METADATA", meta},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", ""},
	} {
		w, err := z.Create(part[0])
		if err == nil {
			_, err = w.Write([]byte(part[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// What is locked gives way to what is asked for later: a module that goes only with an older version of a locked one can be added.
// What excludes each other is told by the names that the project gave.
func TestLockedPackagesGiveWay(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	wheel(t, index, "low", "1.0")
	wheel(t, index, "low", "1.1")
	wheel(t, index, "top", "1.0", "inmanta-module-low<1.1")
	m := newMachine(t, func(c *modules.Config, _ *gitsync.Config) {
		c.Index.FindLinks, c.Provided = []string{index}, map[string]string{"inmanta-core": "20.1.0"}
	})
	ask := func(lines string) modules.Request {
		return project(t, "project.yml", "name: x\n", "main.cf", "", "requirements.txt", lines)
	}
	first := m.install(ask("inmanta-module-low\n"))
	if got := versions(first.Lock); got != "low 1.1" {
		t.Fatalf("chose %s", got)
	}
	both := ask("inmanta-module-low\ninmanta-module-top\n")
	both.Lock = first.Lock
	if got := versions(m.install(both).Lock); got != "low 1.0, top 1.0" {
		t.Errorf("chose %s", got)
	}
	never := ask("inmanta-module-low>=1.1\ninmanta-module-top\n")
	never.Lock = first.Lock
	_, err := m.Install(t.Context(), never)
	if !errors.Is(err, model.ErrInvalid) {
		t.Fatalf("Install = %v", err)
	}
	for _, want := range []string{"inmanta-module-low>=1.1", "inmanta-module-top 1.0 depends on inmanta-module-low<1.1", "who asks for modules of the package index:\n  the project's requirements.txt asks for low >=1.1\n  the project's requirements.txt asks for top"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), os.TempDir()) {
		t.Errorf("the error names a file that is gone:\n%v", err)
	}
}
