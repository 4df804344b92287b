package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pytest finds an interpreter that has pytest.
var pytest = sync.OnceValue(func() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import pytest, jinja2").Run() == nil {
			return name
		}
	}
	return ""
})

// authored runs a command of the program in a directory, with a home of its own.
func authored(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// tested runs the tests of a module.
func tested(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	if pytest() == "" {
		t.Skip("no interpreter with pytest and jinja2; install python3-pytest and python3-jinja2")
	}
	return authored(t, dir, append([]string{"module", "test", "--python", pytest(), "--", "-p", "no:cacheprovider"}, args...)...)
}

func TestNewModule(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{}, {"--v1"}} {
		t.Run(strings.Join(append([]string{"create"}, flags...), " "), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, status := authored(t, dir, append([]string{"module", "create", "shelf"}, flags...)...)
			if status != 0 || !strings.Contains(out, "cd shelf && intendant module test") {
				t.Fatalf("module create exits with %d and says %q", status, out)
			}
			dir = filepath.Join(dir, "shelf")
			if out, status := tested(t, dir); status != 0 || !strings.Contains(out, "5 passed") {
				t.Errorf("module test exits with %d and says\n%s", status, out)
			}
			broken := "def test_broken(project):\n    project.compile('import shelf\\nx = shelf::Shelf()')\n"
			if err := os.WriteFile(filepath.Join(dir, "tests", "test_broken.py"), []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			out, status = tested(t, dir, "-k", "broken", "--venv", "x", "--use-module-in-place", "--no_load_plugins", "--no_load-plugins")
			if status != 1 || !strings.Contains(out, "1 failed") || !strings.Contains(out, "directory") || strings.Contains(out, "pytest_inmanta/plugin.py") {
				t.Errorf("module test of a broken test exits with %d and says\n%s", status, out)
			}
		})
	}
}

// TestProjectFixture runs the tests of a module that use everything of the fixture project.
func TestProjectFixture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/author")); err != nil {
		t.Fatal(err)
	}
	if out, status := tested(t, filepath.Join(dir, "trial"), "-q"); status != 0 {
		t.Errorf("module test exits with %d and says\n%s", status, out)
	}
}

// TestImportsOfTests fetches a module that the one under test imports and does not require, and what that one imports.
func TestImportsOfTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"net/module.yml":            "name: net\nversion: 1.0\nlicense: x\n",
		"net/model/_init.cf":        "import base\ntypedef port as int matching self > 0\n",
		"base/module.yml":           "name: base\nversion: 1.0\nlicense: x\n",
		"base/model/_init.cf":       "",
		"base/plugins/__init__.py":  "from inmanta.plugins import plugin\n@plugin\ndef origin() -> \"string\":\n    return \"fetched\"\n",
		"dns/module.yml":            "name: dns\nversion: 1.0\nlicense: x\n",
		"dns/model/_init.cf":        "import net\nimport base\n",
		"extra/module.yml":          "name: extra\nversion: 1.0\nlicense: x\n",
		"extra/model/_init.cf":      "",
		"dns/tests/test_more.py":    "import os\ndef test_more(project):\n    project.compile(\"\"\"\n        import extra as e\n        import dns\n    \"\"\")\n    project.compile('import short')\n",
		"short/module.yml":          "name: short\nversion: 1.0\nlicense: x\n",
		"short/model/_init.cf":      "",
		"dns/tests/test_dns.py":     "def test_origin(project):\n    project.compile('import dns\\nimport base\\nstd::print(base::origin())')\n    assert project.get_stdout() == 'fetched\\n'\n",
		"dns/docs/tests/test_no.py": "def test_example_that_is_none():\n    raise AssertionError\n",
	} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"net", "base", "extra", "short"} {
		for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "one"}} {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir = filepath.Join(dir, name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
	}
	if pytest() == "" {
		t.Skip("no interpreter with pytest and jinja2; install python3-pytest and python3-jinja2")
	}
	under := filepath.Join(dir, "dns")
	run := func(args ...string) (string, int) {
		args = append([]string{"module", "test", "--python", pytest()}, args...)
		return authored(t, under, append(args, "--", "-p", "no:cacheprovider", "-q")...)
	}
	repos := "--module-repo=" + dir + "/{}"
	if out, status := run(repos, "--install-mode", "master"); status != 0 || !strings.Contains(out, "2 passed") || strings.Contains(out, "module os") {
		t.Errorf("module test exits with %d and says\n%s", status, out)
	}
	if out, status := run(); status == 0 || !strings.Contains(out, "Failed to load module") {
		t.Errorf("without repositories module test exits with %d and says\n%s", status, out)
	}
	if out, status := run("--module-repo="+dir+"/nowhere/{}", "--install-mode", "master"); status == 0 || !strings.Contains(out, "Failed to load module") {
		t.Errorf("with repositories that lack it module test exits with %d and says\n%s", status, out)
	}
	if out, status := run(repos, "--install-mode", "newest"); status != 2 || !strings.Contains(out, "release, prerelease, master") {
		t.Errorf("with a wrong mode module test exits with %d and says\n%s", status, out)
	}
}

func TestAuthorErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"create", "taken"}, 2, "exists already"},
		{[]string{"create", "../x"}, 2, "../x"},
		{[]string{"create", "no such"}, 2, "no such"},
		{[]string{"test"}, 2, "not the directory of a module"},
		{[]string{"test", "missing"}, 2, "opening the module"},
		{[]string{"test", "a", "b"}, 2, "at most one directory"},
	} {
		out, status := authored(t, dir, append([]string{"module"}, tt.args...)...)
		if status != tt.status || !strings.Contains(out, tt.want) {
			t.Errorf("module %s exits with %d and says %q, want %d and %q", strings.Join(tt.args, " "), status, out, tt.status, tt.want)
		}
	}
}
