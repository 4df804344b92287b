// Package examples_test deploys every project of this directory with the real program and looks at what came of it.
package examples_test

import (
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// program builds the real binary once for all tests.
func program(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "intendant")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/intendant").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// open is a directory that other accounts may pass through, as PostgreSQL's must.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "examples") //nolint:usetesting // what is above t.TempDir is closed to other accounts
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// copyProject copies an example with its placeholders filled in.
func copyProject(t *testing.T, name, to, target string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(name)); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	group, err := user.LookupGroupId(me.Gid)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(to, "main.cf"), "@TARGET@", target)
	if strings.Contains(read(t, filepath.Join(to, "main.cf")), "@OWNER@") {
		edit(t, filepath.Join(to, "main.cf"), "@OWNER@", me.Username, "@GROUP@", group.Name)
	}
}

// edit replaces texts in a file; each must be there.
func edit(t *testing.T, path string, pairs ...string) {
	t.Helper()
	text := read(t, path)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q", path, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// run runs the program and returns what it printed. settings are variables of its environment.
func run(t *testing.T, bin, dir string, settings []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "NO_COLOR=1"}
	cmd.Env = append(cmd.Env, settings...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("intendant %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// python makes the real interpreter the first of the PATH: what is there may be a wrapper that needs the user's own home directory.
func python(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatalf("the test needs Python 3.9 or later: %v", err)
	}
	return "PATH=" + filepath.Dir(string(out)) + string(os.PathListSeparator) + os.Getenv("PATH")
}

// handlerProgram builds the handler program of an example in a directory that the agent trusts.
func handlerProgram(t *testing.T, pkg string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "handlers")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "handler")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return "INTENDANT_AGENT_HANDLER_PROGRAMS=" + dir
}

// want is what an example leaves behind: files with their content, which may hold TARGET, and their modes. A change of main.cf
// may lead to more.
type want struct {
	content map[string]string
	mode    map[string]os.FileMode
	// python says that the example has Python code, handler which program in Go it needs.
	python  bool
	handler string
	// replace is a change of main.cf, after which changed is there.
	replace []string
	changed map[string]string
}

func (w want) settings(t *testing.T) (out []string) {
	t.Helper()
	if w.python {
		out = append(out, python(t))
	}
	if w.handler != "" {
		out = append(out, handlerProgram(t, w.handler))
	}
	return out
}

func (w want) check(t *testing.T, target string) {
	t.Helper()
	for name, content := range w.content {
		if got := read(t, filepath.Join(target, name)); got != strings.ReplaceAll(content, "TARGET", target) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, content)
		}
	}
	for name, mode := range w.mode {
		info, err := os.Stat(filepath.Join(target, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
}

var wants = map[string]want{
	"demo": {
		content: map[string]string{
			"greeting.txt": "Hello from git\n",
			"services.conf": `# Made by Intendant from a list in main.cf; changes by hand do not last.

[api]
listen = 8081
url = http://localhost:8081/

[metrics]
listen = 9100
url = http://localhost:9100/

[web]
listen = 8080
url = http://localhost:8080/
`,
			"count.txt": "3\n",
		},
		mode: map[string]os.FileMode{".": 0o755, "services.conf": 0o644},
	},
	"webserver": {
		content: map[string]string{
			"web1/nginx/site-8080.conf": "# web1\nserver {\n    listen 8080;\n    server_name web1;\n}\n",
			"web3/nginx/site-8080.conf": "# web3\nserver {\n    listen 8080 ssl;\n    server_name web3;\n    include tls-8080.conf;\n}\n",
			"web3/nginx/tls-8080.conf":  "ssl_protocols TLSv1.3;\n",
			"lb/balancer/site.conf": `upstream site {
    server web1:8080 weight=30;
    server web2:8080 weight=10;
    server web3:8080 weight=10;
}
server {
    listen 80;
    location / { proxy_pass http://site; }
}
`,
		},
		mode: map[string]os.FileMode{"web3/nginx/tls-8080.conf": 0o600},
	},
	"users": {
		content: map[string]string{
			"ops/members.txt": `Team ops (3)
ada        Ada Lovelace             admin
alan       Alan Turing              member
grace      Grace Hopper             member
`,
			"ops/ada/.profile":              "# Ada Lovelace\nexport SHELL=/bin/bash\nalias gs='git status'\nalias ll='ls -l'\n",
			"ops/grace/.profile":            "# Grace Hopper\nexport SHELL=/bin/zsh\n",
			"ops/alan/.ssh/authorized_keys": "ssh-ed25519 AAAA-one alan@home\nssh-ed25519 AAAA-two alan@work\n",
			"ops/sudoers-ada":               "ada ALL=(ALL) NOPASSWD: ALL\n",
		},
		mode: map[string]os.FileMode{"ops/ada": 0o700, "ops/ada/.ssh/authorized_keys": 0o600, "ops/sudoers-ada": 0o440},
	},
	"notes": {
		python: true,
		content: map[string]string{
			"shopping-today.txt":  "bread\ncheese\ntwo apples\n",
			"key.txt":             "1234\nof the bicycle\n",
			"copy-of-the-key.txt": "1234",
			"count.txt":           "4",
			"contents.txt": `Copy of the key (copy-of-the-key.txt)
Count (count.txt)
Key (key.txt)
Shopping: today (shopping-today.txt)
`,
		},
		replace: []string{"two apples", "two red apples"},
		changed: map[string]string{"shopping-today.txt": "bread\ncheese\ntwo red apples\n", "count.txt": "5"},
	},
	"shop": {
		python: true, handler: "./shop/handler",
		content: map[string]string{"stock.json": `{
  "bread": {
    "width": 120,
    "goods": [
      "rye",
      "wheat"
    ]
  },
  "dairy": {
    "width": 80,
    "goods": [
      "milk"
    ]
  }
}
`},
		mode:    map[string]os.FileMode{"stock.json": 0o600},
		replace: []string{"closed = false", "closed = true"},
		changed: map[string]string{"stock.json": "{}\n"},
	},
	"inventory": {
		content: map[string]string{
			"inventory/r1.txt": `Rack r1: 4 of 42 units used
 1  node1  (server)
 2  node2  (server)
 3  node3  (server)
40  tor1  (switch)
`,
			"inventory/r2.txt": "Rack r2: 2 of 24 units used\n 5  san  (storage)\n 7  node7  (server)\n",
			"inventory/hosts":  "10.20.0.1 node1\n10.20.0.2 node2\n10.20.0.3 node3\n10.20.0.7 node7\n",
		},
	},
}

// TestExamples deploys each project, looks at what came of it, and asks whether anything is left to do.
func TestExamples(t *testing.T) {
	t.Parallel()
	bin := program(t)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		w, ok := wants[e.Name()]
		if !ok {
			t.Errorf("%s is not asserted: say what it deploys", e.Name())
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			project, target := filepath.Join(dir, "project"), filepath.Join(dir, "target")
			if err := os.Mkdir(target, 0o755); err != nil { // the examples' own mode
				t.Fatal(err)
			}
			copyProject(t, e.Name(), project, target)
			settings := w.settings(t)
			deployed := regexp.MustCompile(`version \d+: (\d+)/(\d+) deployed\n$`)
			deploy := func() {
				t.Helper()
				m := deployed.FindStringSubmatch(run(t, bin, project, settings, "deploy", "."))
				if m == nil || m[1] != m[2] {
					t.Fatalf("the deployment ended with %q", m)
				}
			}
			deploy()
			w.check(t, target)
			nothing := func() {
				t.Helper()
				if out := run(t, bin, project, settings, "deploy", ".", "--dry-run"); !strings.Contains(out, "Nothing would change.") {
					t.Errorf("a dry run after the deployment says\n%s", out)
				}
			}
			nothing()
			if w.replace == nil {
				return
			}
			before := stat(t, target)
			deploy()
			if after := stat(t, target); !maps.Equal(before, after) {
				t.Errorf("a second deployment has touched files: before %v, after %v", before, after)
			}
			edit(t, filepath.Join(project, "main.cf"), w.replace...)
			deploy()
			want{content: w.changed}.check(t, target)
			nothing()
		})
	}
}

// stat returns when each file of a directory was written last.
func stat(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = info.ModTime()
	}
	return out
}
