package executor_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
)

const (
	indexUser     = "robot"
	indexPassword = "open-sesame-42"
)

// privateIndex is a package index with one package that asks for a password. It looks for the password where others could read it.
type privateIndex struct {
	*httptest.Server

	mu     sync.Mutex
	served int
	hosts  map[string]bool
	leaks  []string
}

func newPrivateIndex(t testing.TB) *privateIndex {
	t.Helper()
	wheels := t.TempDir()
	wheel(t, wheels, "gadget", "1.0", "VERSION = 'private'\n")
	wheel(t, wheels, "toml", "0.10.9", "VERSION = 'companion'\n")
	x := &privateIndex{hosts: map[string]bool{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.look(r)
		if u, p, _ := r.BasicAuth(); u != indexUser || p != indexPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="index"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if pkg, ok := strings.CutPrefix(r.URL.Path, "/simple/"); ok {
			w.Header().Set("Content-Type", "text/html")
			found, _ := filepath.Glob(filepath.Join(wheels, strings.TrimSuffix(pkg, "/")+"-*.whl"))
			for _, f := range found {
				_, _ = fmt.Fprintf(w, `<a href="/files/%[1]s">%[1]s</a>`, filepath.Base(f))
			}
			return
		}
		x.mu.Lock()
		x.served++
		x.mu.Unlock()
		http.StripPrefix("/files/", http.FileServer(http.Dir(wheels))).ServeHTTP(w, r)
	}))
	t.Cleanup(x.Close)
	return x
}

// look searches the command lines of all processes: one of them is the installer that waits for this answer.
func (x *privateIndex) look(r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hosts[r.Host] = true
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range found {
		if raw, err := os.ReadFile(name); err == nil && strings.Contains(string(raw), indexPassword) {
			x.leaks = append(x.leaks, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
}

// at is an address of the index; with a password if login is true.
func (x *privateIndex) at(base string, login bool) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err)
	}
	u.Path = "/simple/"
	if login {
		u.User = url.UserPassword(indexUser, indexPassword)
	}
	return u.String()
}

// lockedLog is a log that several goroutines write.
type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// alone is a module that requires nothing besides.
func alone(requirement string) module {
	m := needing("m", requirement)
	m.requirements = []string{requirement}
	return m
}

// Packages come from an index that wants a password, wherever index and password are configured; and the password is seen nowhere.
func TestPrivateIndex(t *testing.T) {
	t.Parallel()
	const elsewhere = "http://127.0.0.9:9" // reached through a proxy alone; pip trusts no other host without TLS
	path := []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	for name, tc := range map[string]struct {
		configure func(t *testing.T, x *privateIndex, c *executor.Config)
		pip       func(x *privateIndex) *model.PipConfig
		host      string
	}{
		"of the project": {
			pip: func(x *privateIndex) *model.PipConfig { return &model.PipConfig{IndexURL: x.at(x.URL, true)} },
		},
		"a further one of the project": {
			pip: func(x *privateIndex) *model.PipConfig {
				return &model.PipConfig{ExtraIndexURL: []string{x.at(x.URL, true)}}
			},
		},
		"of the agent": {
			configure: func(_ *testing.T, x *privateIndex, c *executor.Config) { c.Pip.IndexURL = x.at(x.URL, true) },
		},
		"of the project, with the agent's password": {
			configure: func(_ *testing.T, x *privateIndex, c *executor.Config) { c.Pip.IndexURL = x.at(x.URL, true) },
			pip:       func(x *privateIndex) *model.PipConfig { return &model.PipConfig{IndexURL: x.at(x.URL, false)} },
		},
		"of the machine's pip.conf": {
			configure: func(t *testing.T, x *privateIndex, c *executor.Config) {
				home := t.TempDir()
				writeFile(t, filepath.Join(home, ".config", "pip", "pip.conf"), "[global]\nindex-url = "+x.at(x.URL, true)+"\n")
				c.BuildEnv = slices.Concat(path, []string{"HOME=" + home})
			},
			pip: func(*privateIndex) *model.PipConfig { return &model.PipConfig{UseSystemConfig: true} },
		},
		"of the machine's variables and netrc": {
			configure: func(t *testing.T, x *privateIndex, c *executor.Config) {
				home := t.TempDir()
				host, _ := url.Parse(x.URL)
				writeFile(t, filepath.Join(home, ".netrc"), "machine "+host.Hostname()+"\nlogin "+indexUser+"\npassword "+indexPassword+"\n")
				c.BuildEnv = slices.Concat(path, []string{"HOME=" + home, "PIP_INDEX_URL=" + x.at(x.URL, false), "UV_DEFAULT_INDEX=" + x.at(x.URL, false)})
				c.Pip.UseSystemConfig = true
			},
		},
		"through a proxy": {
			configure: func(t *testing.T, x *privateIndex, c *executor.Config) {
				c.BuildEnv = slices.Concat(path, []string{"HOME=" + t.TempDir(), "http_proxy=" + x.URL, "HTTP_PROXY=" + x.URL})
			},
			pip:  func(x *privateIndex) *model.PipConfig { return &model.PipConfig{IndexURL: x.at(elsewhere, true)} },
			host: "127.0.0.9:9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, log := newPrivateIndex(t), &lockedLog{}
			b := start(t, func(c *executor.Config) {
				c.BuildEnv = slices.Concat(path, []string{"HOME=" + t.TempDir()})
				c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				if tc.configure != nil {
					tc.configure(t, x, c)
				}
			})
			var pip *model.PipConfig
			if tc.pip != nil {
				pip = tc.pip(x)
			}
			good := codeOf(t, b.Server, pip, alone("gadget"))
			b.code = good
			r := b.deploy(t, "m::Thing", "a", map[string]any{"value": 1})
			if v := fact(t, r, "gadget"); v != "private" {
				t.Errorf("the package is %s", v)
			}
			said := logOf(r)
			b.code = codeOf(t, b.Server, pip, alone("there-is-no-such-gadget"))
			r = b.deploy(t, "m::Thing", "a", map[string]any{"value": 1})
			want(t, r, model.OutcomeUnavailable, "there-is-no-such-gadget", "can not be installed")
			said += logOf(r) + log.String()
			if strings.Contains(said, indexPassword) {
				t.Errorf("the logs show the password:\n%s", said)
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.served == 0 || tc.host != "" && !x.hosts[tc.host] {
				t.Errorf("the index served %d files, to requests for %v", x.served, x.hosts)
			}
			if len(x.leaks) > 0 {
				t.Errorf("command lines show the password: %q", x.leaks)
			}
		})
	}
}

// What code imports of the packages that come with inmanta-core elsewhere is installed although the module does not ask for it; what
// it asks for itself counts.
func TestImportedCompanions(t *testing.T) {
	t.Parallel()
	x := newPrivateIndex(t)
	b := start(t)
	b.code = codeOf(t, b.Server, &model.PipConfig{IndexURL: x.at(x.URL, true)}, source("m", "\nfrom toml import VERSION\n"+handlerOf("m", `
    def read_resource(self, ctx, resource):
        ctx.set_fact("toml", VERSION)
        resource.value = None
`)))
	if v := fact(t, b.deploy(t, "m::Thing", "a", map[string]any{"value": 1}), "toml"); v != "companion" {
		t.Errorf("the package is %s", v)
	}
}

// A wrong password, and one in a requirement, are not shown either.
func TestPasswordsInErrors(t *testing.T) {
	t.Parallel()
	x, log := newPrivateIndex(t), &lockedLog{}
	b := start(t, func(c *executor.Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	wrong := strings.Replace(x.at(x.URL, true), indexPassword, "wrong-horse-7", 1)
	for requirement, index := range map[string]string{
		"gadget": wrong,
		"gadget @ " + strings.Replace(wrong, "/simple/", "/files/gadget-1.0-py3-none-any.whl", 1): x.at(x.URL, false),
	} {
		b.code = codeOf(t, b.Server, &model.PipConfig{IndexURL: index}, alone(requirement))
		r := b.deploy(t, "m::Thing", "a", map[string]any{"value": 1})
		want(t, r, model.OutcomeUnavailable, "can not be installed", "gadget")
		if said := logOf(r) + log.String(); strings.Contains(said, "wrong-horse") {
			t.Errorf("%s: the logs show the password:\n%s", requirement, said)
		}
	}
}

func writeFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
