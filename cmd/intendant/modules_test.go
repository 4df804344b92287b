package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/api"
)

// TestServerModules pushes a project whose modules are in git: the server fetches them as the lock says, refuses a lock that is out
// of date or that names what is no longer there, and chooses by itself for a project without a lock.
func TestServerModules(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.watch()
	repos := filepath.Join(s.dir, "modules")
	write := func(dir string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	web := filepath.Join(repos, "web")
	release := func(version, value string) {
		t.Helper()
		write(web, map[string]string{
			"module.yml":     "name: web\nversion: " + version + "\nlicense: MIT\n",
			"model/_init.cf": "import std::testing\nstd::testing::NullResource(name=\"web\", value=\"" + value + "\")\n",
		})
		s.git(web, "add", "-A")
		s.git(web, "commit", "--quiet", "-m", version)
		s.git(web, "tag", version)
	}
	s.git(s.dir, "init", "--quiet", "--initial-branch=main", web)
	release("1.0", "one")
	work := filepath.Join(s.dir, "work")
	push := func(message string) {
		t.Helper()
		s.git(work, "add", "-A")
		s.git(work, "commit", "--quiet", "-m", message)
		s.git(work, "push", "origin", "HEAD:main")
	}
	ended := func(message string) func(api.Journey) bool {
		return func(j api.Journey) bool {
			return j.Revision != nil && strings.HasPrefix(j.Revision.Message, message) && (j.Phase == "converged" || j.Phase == "failed")
		}
	}
	report := func() string {
		t.Helper()
		all, err := s.api.Compiles(t.Context(), api.ListOptions{Limit: 1})
		if err != nil || len(all) == 0 {
			t.Fatalf("reports: %v, %v", all, err)
		}
		return s.intendant("report", "show", "-e", "prod", all[0].ID)
	}

	write(work, map[string]string{"project.yml": "name: infra\nrepo: " + repos + "/{}\n", "main.cf": "import web\n"})
	push("chosen by the server")
	if j := s.await("the first version", ended("chosen")); j.Phase != "converged" || j.Total != 1 {
		t.Fatalf("journey = %+v\n%s", j, report())
	}
	if text := report(); !strings.Contains(text, "modules") {
		t.Errorf("the report has no stage modules:\n%s", text)
	}

	// Compiling again keeps the choice; an update makes it anew.
	value := func() string {
		t.Helper()
		return s.intendant("resource", "show", "-e", "prod", "std::testing::NullResource[internal,name=web]")
	}
	release("1.1", "newer")
	recompile := func(flags ...string) {
		t.Helper()
		before := report()
		s.intendant(append([]string{"environment", "recompile", "prod"}, flags...)...)
		s.await("the compile that was asked for", func(j api.Journey) bool { return (j.Phase == "converged" || j.Phase == "failed") && report() != before })
	}
	if recompile(); !strings.Contains(value(), "one") {
		t.Errorf("compiling again chose another version:\n%s", report())
	}
	if recompile("--update"); !strings.Contains(value(), "newer") {
		t.Errorf("an update kept the old version:\n%s", report())
	}

	// The user locks, and the server goes by the lock though there is something newer.
	if out, err := s.try("module", "install", "-p", work); err != nil {
		t.Fatalf("module install: %v\n%s", err, out)
	}
	release("2.0", "two")
	push("locked")
	if j := s.await("the locked version", ended("locked")); j.Phase != "converged" {
		t.Fatalf("journey = %+v\n%s", j, report())
	}
	if out := value(); !strings.Contains(out, "newer") {
		t.Errorf("the resource is not that of web 1.1:\n%s", out)
	}

	write(work, map[string]string{"project.yml": "name: infra\nrepo: " + repos + "/{}\nrequires: [web>=2]\n"})
	push("outdated")
	if j := s.await("the refusal of an old lock", ended("outdated")); j.Phase != "failed" || !strings.Contains(j.Error, "intendant.lock is out of date") {
		t.Errorf("journey = %+v, want it to fail for the lock", j)
	}
	if out, err := s.try("module", "install", "-p", work); err != nil {
		t.Fatalf("module install: %v\n%s", err, out)
	}
	push("updated")
	if j := s.await("the new version", ended("updated")); j.Phase != "converged" {
		t.Fatalf("journey = %+v\n%s", j, report())
	}
	lock, err := os.ReadFile(filepath.Join(work, "intendant.lock"))
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(s.git(web, "rev-parse", "HEAD"))
	altered := strings.ReplaceAll(string(lock), commit, strings.Repeat("0", 39)+"1")
	write(work, map[string]string{"intendant.lock": strings.Replace(altered, digestOf(t, altered), strings.Repeat("a", 64), 1)})
	push("lost")
	if j := s.await("the refusal of a lost commit", ended("lost")); j.Phase != "failed" || !strings.Contains(j.Error, "does not have it there any more") {
		t.Errorf("journey = %+v, want it to fail for the commit", j)
	}
}

// digestOf finds the digest of the first module of a lock.
func digestOf(t *testing.T, lock string) string {
	t.Helper()
	_, rest, ok := strings.Cut(lock, "digest: sha256:")
	if !ok || len(rest) < 64 {
		t.Fatalf("the lock has no digest:\n%s", lock)
	}
	return rest[:64]
}
