package modules_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/module"
	"github.com/intendant/intendant/lang/std"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/modules"
	"github.com/intendant/intendant/python/venv"
)

// forge is a directory of repositories.
type forge struct {
	t   *testing.T
	dir string
}

func newForge(t *testing.T) *forge {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the test needs git")
	}
	return &forge{t, t.TempDir()}
}

func (f *forge) git(name string, args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", append([]string{"-C", filepath.Join(f.dir, name), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes a module of the layout V1 and commits it.
func (f *forge) commit(name, version, imports string, requires ...string) {
	f.t.Helper()
	dir := filepath.Join(f.dir, name)
	if _, err := os.Stat(dir); err != nil {
		f.write(name, "model/_init.cf", "")
		f.git(name, "init", "-q")
	}
	list := ""
	if len(requires) > 0 {
		list = "'" + strings.Join(requires, "', '") + "'"
	}
	f.write(name, "module.yml", "name: "+name+"\nversion: "+version+"\nlicense: MIT\nrequires: ["+list+"]\n")
	f.write(name, "model/_init.cf", imports)
	f.git(name, "add", "-A")
	f.git(name, "commit", "-q", "-m", version)
}

func (f *forge) release(name, version, imports string, requires ...string) {
	f.t.Helper()
	f.commit(name, version, imports, requires...)
	f.git(name, "tag", version)
}

func (f *forge) write(name, file, text string) {
	f.t.Helper()
	file = filepath.Join(f.dir, name, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// machine is where modules are installed: each has a cache of its own.
type machine struct {
	t *testing.T
	*modules.Installer
	dir string
}

func newMachine(t *testing.T, change ...func(*modules.Config, *gitsync.Config)) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	g := gitsync.Config{Dir: filepath.Join(m.dir, "git"), Recorder: struct{ gitsync.Recorder }{}, AllowLocal: true}
	c := modules.Config{Dir: m.dir, Environments: &venv.Cache{Dir: filepath.Join(m.dir, "environments"), Environ: os.Environ()}, Builtin: std.Modules()}
	for _, f := range change {
		f(&c, &g)
	}
	s, err := gitsync.New(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Git = s
	if m.Installer, err = modules.New(c); err != nil {
		t.Fatal(err)
	}
	return m
}

// project lays out a project.
func project(t *testing.T, files ...string) modules.Request {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return modules.Request{Project: os.DirFS(dir), Dir: dir, Stage: func(_, _ string, work func(context.Context, io.Writer) error) error {
		return work(t.Context(), io.Discard)
	}}
}

func (m *machine) install(req modules.Request) *modules.Result {
	m.t.Helper()
	res, err := m.Install(m.t.Context(), req)
	if err != nil {
		m.t.Fatalf("Install: %v", err)
	}
	return res
}

// versions are the modules of a lock.
func versions(l *module.Lock) string {
	var out []string
	if l != nil {
		for _, m := range l.Modules {
			out = append(out, m.Name+" "+m.Version)
		}
	}
	return strings.Join(out, ", ")
}

func TestInstallModes(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("dns", "1.0", "")
	f.release("dns", "1.1", "")
	f.release("dns", "2.0rc1", "")
	f.commit("dns", "2.0.dev7", "")
	f.git("dns", "tag", "not-a-version")
	m := newMachine(t)
	for manifest, want := range map[string]string{
		"requires: [dns]":                                 "dns 1.1",
		"requires: ['dns<1.1']":                           "dns 1.0",
		"requires: ['dns>=2.0rc1']":                       "dns 2.0rc1",
		"requires: [inmanta-module-dns]":                  "dns 1.1",
		"requires: [dns]\ninstall_mode: prerelease":       "dns 2.0rc1",
		"requires: [dns]\ninstall_mode: master":           "dns 2.0.dev7",
		"requires: ['dns<1.1']\ninstall_mode: prerelease": "dns 1.0",
		"description: nothing":                            "",
	} {
		res := m.install(project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\n"+manifest+"\n", "main.cf", ""))
		if got := versions(res.Lock); got != want {
			t.Errorf("%s: chose %s, want %s", strings.ReplaceAll(manifest, "\n", "; "), got, want)
		}
	}
	_, err := m.Install(t.Context(), project(t, "project.yml", "name: x\nrepo: "+f.dir+"\nrequires: ['dns>1.1']\n", "main.cf", ""))
	if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "there are 2.0rc1, 1.1, 1.0; pre-releases count only") {
		t.Errorf("a constraint that only a pre-release meets: %v", err)
	}
	_, err = m.Install(t.Context(), project(t, "project.yml", "name: x\nrepo: "+f.dir+"\nrequires: ['dns>=2']\n", "main.cf", ""))
	if !errors.Is(err, model.ErrInvalid) || !strings.HasSuffix(err.Error(), "there are 2.0rc1, 1.1, 1.0") {
		t.Errorf("a constraint that no pre-release meets either: %v", err)
	}
}

// A repository without a version is told of, and nobody else is asked for the module; its newest commit can be taken.
func TestNoVersions(t *testing.T) {
	t.Parallel()
	f, other := newForge(t), newForge(t)
	f.write("dns", "module.yml", "name: dns\nversion: 1.0.0\nlicense: x\n")
	f.write("dns", "model/_init.cf", "")
	f.git("dns", "init", "-q")
	f.git("dns", "add", "-A")
	f.git("dns", "commit", "-q", "-m", "no tag")
	other.release("dns", "1.0", "")
	m := newMachine(t)
	text := "name: x\nrepo:\n  - " + f.dir + "/{}\n  - " + other.dir + "/{}\nrequires: [dns]\n"
	_, err := m.Install(t.Context(), project(t, "project.yml", text, "main.cf", ""))
	if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "there is no version at all; its repository has no tag that is a version") {
		t.Errorf("Install = %v", err)
	}
	if got := versions(m.install(project(t, "project.yml", text+"install_mode: master\n", "main.cf", "")).Lock); got != "dns 1.0.0" {
		t.Errorf("chose %s", got)
	}
}

func TestImportsAndBuiltins(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("web", "1.0", "import dns\nimport dns::sub\n", "dns<2", "std>=8", "unrelated>=9")
	f.release("dns", "1.0", "import log\n")
	f.release("dns", "2.0", "")
	f.release("log", "1.0", "import web\n")
	f.release("std", "99.0", "")
	m := newMachine(t)
	manifest := "name: x\nrepo: " + f.dir + "/{0}\n"
	res := m.install(project(t, "project.yml", manifest, "main.cf", "import web\nimport nowhere\n"))
	if got, want := versions(res.Lock), "dns 1.0, log 1.0, web 1.0"; got != want {
		t.Errorf("chose %s, want %s: what is imported, within what is required", got, want)
	}
	if len(res.Lost) != 1 || !strings.Contains(res.Lost[0], "module nowhere was not found") {
		t.Errorf("lost = %q, want nowhere", res.Lost)
	}
	// The project itself asks for std: then it gets that of the repository.
	res = m.install(project(t, "project.yml", manifest+"requires: [std]\n", "main.cf", ""))
	if got := versions(res.Lock); got != "std 99.0" {
		t.Errorf("chose %s, want the std of the repository", got)
	}
	// Without a place that has it, the program's own will do, if it fits.
	res = m.install(project(t, "project.yml", "name: x\nrequires: ['std>=8']\n", "main.cf", ""))
	if len(res.Lock.Modules) != 1 || res.Lock.Modules[0].Source != module.SourceBuiltin || !res.Lock.Trivial() {
		t.Errorf("lock = %+v, want the built-in std", res.Lock)
	}
	if _, err := m.Install(t.Context(), project(t, "project.yml", "name: x\nrequires: ['std>=90']\n", "main.cf", "")); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a std that the program has not = %v, want a conflict", err)
	}
}

// TestRepositoriesInOrder holds that the first repository that has a module counts, and that one which does not answer is no reason
// to take another's.
func TestRepositoriesInOrder(t *testing.T) {
	t.Parallel()
	f, g := newForge(t), newForge(t)
	g.release("dns", "1.0", "")
	g.release("web", "1.0", "")
	f.release("web", "0.5", "")
	m := newMachine(t)
	res := m.install(project(t, "project.yml", "name: x\nrepo:\n  - "+f.dir+"/{}\n  - {url: "+g.dir+", type: git}\nrequires: [web, dns]\n", "main.cf", ""))
	if got, want := versions(res.Lock), "dns 1.0, web 0.5"; got != want {
		t.Errorf("chose %s, want %s", got, want)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	url := gone.URL
	res = m.install(project(t, "project.yml", "name: x\nrepo:\n  - "+url+"/{}\n  - "+g.dir+"/{}\nrequires: [web]\n", "main.cf", ""))
	if got := versions(res.Lock); got != "web 1.0" {
		t.Errorf("chose %s, want that of the repository that has it", got)
	}
	gone.Close()
	_, err := m.Install(t.Context(), project(t, "project.yml", "name: x\nrepo:\n  - "+url+"/{}\n  - "+g.dir+"/{}\nrequires: [web]\n", "main.cf", ""))
	if !errors.Is(err, model.ErrUnavailable) || !strings.Contains(err.Error(), "looking for module web") {
		t.Errorf("with a repository that does not answer: %v, want that to be the error", err)
	}
}

func TestHostileModules(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	for name, change := range map[string]func(name string){
		"links": func(name string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(f.dir, name, "files")); err != nil {
				t.Fatal(err)
			}
		},
		"climbs": func(name string) {
			if err := os.Symlink("../../..", filepath.Join(f.dir, name, "model", "up")); err != nil {
				t.Fatal(err)
			}
		},
		"huge":   func(name string) { f.write(name, "files/big", strings.Repeat("x", 200<<10)) },
		"liar":   func(name string) { f.write(name, "module.yml", "name: other\nversion: 1\nlicense: x\n") },
		"broken": func(name string) { f.write(name, "module.yml", "name: [") },
		"nameless": func(name string) {
			f.git(name, "rm", "-q", "--cached", "module.yml")
			_ = os.Remove(filepath.Join(f.dir, name, "module.yml"))
		},
		"options": func(name string) { f.write(name, "requirements.txt", "--index-url http://evil.example.com\n") },
	} {
		f.commit(name, "1.0", "")
		change(name)
		f.git(name, "add", "-A")
		f.git(name, "commit", "-q", "-m", "hostile")
		f.git(name, "tag", "1.0")
	}
	m := newMachine(t, func(_ *modules.Config, g *gitsync.Config) { g.Tree.FileBytes = 100 << 10 })
	for name, says := range map[string]string{
		"links": "absolute", "climbs": "leaves the tree", "huge": "the limit is", "liar": "says that it is module other", "broken": "module.yml",
		"nameless": "neither module.yml", "options": "have no effect here",
	} {
		_, err := m.Install(t.Context(), project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\nrequires: ["+name+"]\n", "main.cf", ""))
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that says %q", name, err, says)
		}
	}
	for _, bad := range []string{"requires: ['../x']", "requires: ['x 1']", "requires: ['-x']"} {
		if _, err := m.Install(t.Context(), project(t, "project.yml", "name: x\n"+bad+"\n", "main.cf", "")); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v, want it to be refused", bad, err)
		}
	}
}

func TestLockIsBinding(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("dns", "1.0", "")
	req := project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\nrequires: [dns]\n", "main.cf", "import dns\n")
	first := newMachine(t)
	res := first.install(req)
	req.Lock = res.Lock
	f.release("dns", "1.5", "")
	if got := versions(first.install(req).Lock); got != "dns 1.0" {
		t.Errorf("with a lock %s was chosen", got)
	}
	second := newMachine(t)
	frozen := req
	frozen.Frozen = true
	if res := second.install(frozen); len(res.Placement.Modules) != 1 || versions(res.Lock) != "dns 1.0" {
		t.Errorf("another machine has %+v", res)
	}
	if p, notes, err := second.Place(req); err != nil || len(notes) > 0 || len(p.Modules) != 1 || p.Modules[0].Version != "1.0" {
		t.Errorf("Place = %+v, %q, %v", p, notes, err)
	}

	// A lock with another digest than the commit has.
	lie := *res.Lock
	lie.Modules = slices.Clone(res.Lock.Modules)
	lie.Modules[0].Digest = "sha256:" + strings.Repeat("a", 64)
	forged := req
	forged.Lock = &lie
	if _, err := second.Install(t.Context(), forged); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "do not trust either") {
		t.Errorf("a forged digest: %v, want a conflict", err)
	}
	// What is asked for has changed.
	more := project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\nrequires: [dns, web]\n", "main.cf", "")
	more.Lock, more.Frozen = res.Lock, true
	if _, err := second.Install(t.Context(), more); !errors.Is(err, modules.ErrOutdated) {
		t.Errorf("an old lock that may not be changed: %v, want %v", err, modules.ErrOutdated)
	}
	more.Lock = nil
	if _, err := second.Install(t.Context(), more); !errors.Is(err, modules.ErrNoLock) {
		t.Errorf("no lock where there must be one: %v, want %v", err, modules.ErrNoLock)
	}
	// A new wish leaves the rest where it is; an update of one module leaves the others.
	f.release("web", "1.0", "")
	more.Lock, more.Frozen = res.Lock, false
	added := second.install(more)
	if got := versions(added.Lock); got != "dns 1.0, web 1.0" {
		t.Errorf("with a new wish %s was chosen, want dns to stay", got)
	}
	f.release("web", "1.1", "")
	more.Lock, more.Update, more.Only = added.Lock, true, []string{"web"}
	if got := versions(second.install(more).Lock); got != "dns 1.0, web 1.1" {
		t.Errorf("after an update of web: %s", got)
	}
	more.Only = nil
	if got := versions(second.install(more).Lock); got != "dns 1.5, web 1.1" {
		t.Errorf("after an update of all: %s", got)
	}

	// The tag leads elsewhere now, and the old commit is gone.
	f.git("dns", "checkout", "-q", "--orphan", "rewritten")
	f.write("dns", "model/_init.cf", "# evil\n")
	f.git("dns", "commit", "-q", "-a", "-m", "rewritten")
	f.git("dns", "tag", "-f", "1.0")
	f.git("dns", "tag", "-d", "1.5")
	f.git("dns", "branch", "-q", "-D", "main")
	third := newMachine(t)
	if _, err := third.Install(t.Context(), req); !errors.Is(err, model.ErrConflict) || !strings.Contains(err.Error(), "intendant module update dns") {
		t.Errorf("a moved tag: %v, want a conflict that says what to do", err)
	}
	if got := versions(second.install(req).Lock); got != "dns 1.0" {
		t.Errorf("who has the tree goes on: %s", got)
	}
}

// TestCredentialsStayOut holds that a password of an address is used, and is neither in the lock nor in errors.
func TestCredentialsStayOut(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("dns", "1.0", "")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("the test needs git")
	}
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + f.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "ada" || p != "pa55word" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	manifest := func(userinfo string) string {
		return "name: x\nrepo: " + strings.Replace(srv.URL, "http://", "http://"+userinfo, 1) + "/{}\nrequires: [dns]\n"
	}
	m := newMachine(t)
	req := project(t, "project.yml", manifest("ada:pa55word@"), "main.cf", "")
	req.Lock = m.install(req).Lock
	text, err := req.Lock.Encode()
	if err != nil || strings.Contains(string(text), "pa55word") || strings.Contains(string(text), "ada") {
		t.Errorf("the lock: %v; it must not have the credentials:\n%s", err, text)
	}
	if got := newMachine(t).install(req); versions(got.Lock) != "dns 1.0" {
		t.Errorf("another machine with the lock has %s", versions(got.Lock))
	}
	_, err = newMachine(t).Install(t.Context(), project(t, "project.yml", manifest("ada:wr0ngpass@"), "main.cf", ""))
	if !errors.Is(err, model.ErrUnavailable) || errors.Is(err, model.ErrNotFound) || strings.Contains(err.Error(), "wr0ngpass") {
		t.Errorf("with a wrong password: %v, want it to be refused, and no password", err)
	}
	_, err = newMachine(t).Install(t.Context(), project(t, "project.yml", manifest(""), "main.cf", ""))
	if !errors.Is(err, model.ErrNotFound) {
		t.Errorf("without credentials: %v, want the module to be missing", err)
	}
	lends := newMachine(t, func(c *modules.Config, _ *gitsync.Config) {
		c.Credentials = func(_ context.Context, r model.Repository) (model.Repository, error) {
			r.Username, r.Password = "ada", "pa55word"
			return r, nil
		}
	})
	if res := lends.install(project(t, "project.yml", manifest(""), "main.cf", "")); versions(res.Lock) != "dns 1.0" {
		t.Errorf("with lent credentials: %s", versions(res.Lock))
	}
}

// TestManyAtOnce installs one project on one machine from many sides.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("web", "1.0", "import dns\n")
	f.release("dns", "1.0", "")
	m := newMachine(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			res, err := m.Install(t.Context(), project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\nrequires: [web]\n", "main.cf", ""))
			if err != nil || versions(res.Lock) != "dns 1.0, web 1.0" {
				t.Errorf("Install = %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	left, _ := filepath.Glob(filepath.Join(m.dir, "trees", ".tmp-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("dns", "1.0", "")
	f.release("web", "1.0", "")
	m := newMachine(t)
	req := project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\nrequires: [dns, web]\n", "main.cf", "")
	res := m.install(req)
	old := time.Now().Add(-48 * time.Hour)
	left := filepath.Join(m.dir, "trees", ".tmp-killed")
	if err := os.MkdirAll(filepath.Join(left, "tree"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{res.Placement.Modules[0].Dir, res.Placement.Modules[1].Dir, left} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	// A use of one of them.
	req.Lock = &module.Lock{Version: 1, Asked: res.Lock.Asked, Modules: res.Lock.Modules[:1]}
	if _, _, err := m.Place(req); err != nil {
		t.Fatal(err)
	}
	if err := m.Sweep(24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	got, err := filepath.Glob(filepath.Join(m.dir, "trees", "*"))
	if err != nil || len(got) != 1 || got[0] != res.Placement.Modules[0].Dir {
		t.Errorf("after a sweep there are %v, want the one in use", got)
	}
	req.Lock = res.Lock
	if again := m.install(req); len(again.Placement.Modules) != 2 {
		t.Errorf("what was swept is not fetched again: %+v", again.Placement)
	}
	if err := newMachine(t).Sweep(0); err != nil {
		t.Errorf("Sweep of nothing: %v", err)
	}
}

// TestImportBudget holds that models which are too large are not read outside of the compiler, and that a lock makes it unnecessary.
func TestImportBudget(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("dns", "1.0", "")
	m := newMachine(t, func(c *modules.Config, _ *gitsync.Config) { c.Budget = 100 << 10 })
	req := project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\nrequires: [dns]\n", "main.cf", strings.Repeat("# much ado\n", 20<<10))
	if _, err := m.Install(t.Context(), req); err == nil || !strings.Contains(err.Error(), "more than 102400 bytes") || !strings.Contains(err.Error(), "intendant.lock spares this") {
		t.Errorf("Install of large models = %v, want an error that says what to do", err)
	}
	req.Lock = newMachine(t).install(req).Lock
	req.Frozen, req.TrustLock = true, true
	if res := m.install(req); versions(res.Lock) != "dns 1.0" {
		t.Errorf("with a lock: %+v", res)
	}
}

// TestV2FromGit fetches a module that is a Python package straight from its repository: it is used without being built, and what it
// requires is needed, imported or not.
func TestV2FromGit(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	f.release("dns", "1.0", "")
	f.release("dns", "2.0", "")
	f.write("my_web", "pyproject.toml", "[project]\nname = \"inmanta-module-my-web\"\nversion = \"1.0\"\ndependencies = [\n  'inmanta-module-dns<2',\n  'inmanta-module-never>1; python_version < \"3\"',\n]\n")
	f.write("my_web", "model/_init.cf", "std::print(\"from git\")\n")
	f.write("my_web", "inmanta_plugins/my_web/__init__.py", "")
	f.git("my_web", "init", "-q")
	f.git("my_web", "add", "-A")
	f.git("my_web", "commit", "-q", "-m", "1.0")
	f.git("my_web", "tag", "v1.0")
	m := newMachine(t)
	req := project(t, "project.yml", "name: x\nrepo: "+f.dir+"/{}\n", "main.cf", "import my_web\n")
	res := m.install(req)
	if got := versions(res.Lock); got != "dns 1.0, my_web 1.0" {
		t.Errorf("chose %s", got)
	}
	opened, err := res.Placement.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var out strings.Builder
	_, ds, err := lang.Compile(t.Context(), lang.Project{FS: req.Project}, lang.Options{Sites: opened.Sites, Fetched: opened.Fetched, Stdout: &out})
	if err != nil || ds.HasErrors() || out.String() != "from git\n" {
		t.Errorf("compiling: %v, %v, printed %q", err, ds, out.String())
	}
	if d := opened.Sites[0].Disk; d == "" || opened.Sites[0].Name != "my_web@1.0" {
		t.Errorf("the site is %+v", opened.Sites[0])
	}
}
