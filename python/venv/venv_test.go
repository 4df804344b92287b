package venv_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/venv"
)

// wheel writes a wheel of one Python file into dir and returns its digest.
func wheel(t *testing.T, dir, name, version string, requires ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var record strings.Builder
	info := name + "-" + version + ".dist-info/"
	var meta strings.Builder
	meta.WriteString("Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n")
	for _, r := range requires {
		meta.WriteString("Requires-Dist: " + r + "\n")
	}
	for _, f := range [][2]string{
		{name + ".py", "version = '" + version + "'\n"},
		{info + "METADATA", meta.String()},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	} {
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(f[1]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(f[1]))
	}
	w, err := z.Create(info + "RECORD")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(record.String() + info + "RECORD,,\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}

func newCache(t *testing.T) *venv.Cache {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 on this machine")
	}
	return &venv.Cache{Dir: t.TempDir(), Environ: os.Environ()}
}

func ensure(t *testing.T, c *venv.Cache, s venv.Spec) venv.Env {
	t.Helper()
	var log bytes.Buffer
	env, err := c.Ensure(t.Context(), s, &log)
	if err != nil {
		t.Fatalf("Ensure(%+v) = %v\n%s", s, err, &log)
	}
	return env
}

func evaluate(t *testing.T, env venv.Env, expr string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), env.Python, "-I", "-c", "print("+expr+")").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", expr, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestEnsureInstallsAndIsKept(t *testing.T) {
	t.Parallel()
	c, links := newCache(t), t.TempDir()
	wheel(t, links, "alpha", "1.0")
	sum := wheel(t, links, "alpha", "1.5", "beta>=1")
	wheel(t, links, "alpha", "2.0")
	wheel(t, links, "beta", "1.0")
	wheel(t, links, "beta", "3.0")
	spec := venv.Spec{Requirements: []string{"alpha"}, Constraints: []string{"alpha<2", "beta<3"}, Index: venv.Index{FindLinks: []string{links}}}
	env := ensure(t, c, spec)
	for expr, want := range map[string]string{"__import__('alpha').version": "1.5", "__import__('beta').version": "1.0"} {
		if got := evaluate(t, env, expr); got != want {
			t.Errorf("%s = %s, want %s", expr, got, want)
		}
	}
	want := []venv.Package{{Name: "alpha", Version: "1.5"}, {Name: "beta", Version: "1.0"}}
	got := slices.Clone(env.Packages)
	if len(got) != 2 {
		t.Fatalf("packages = %+v, want alpha and beta", got)
	}
	if p := got[0]; p.SHA256 != "" && (p.SHA256 != sum || p.File != "alpha-1.5-py3-none-any.whl") { // uv does not tell
		t.Errorf("package = %+v, want the file's digest %s", p, sum)
	}
	for i := range got {
		got[i].File, got[i].SHA256 = "", ""
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("packages (-want +got):\n%s", d)
	}
	if len(env.Sites) == 0 {
		t.Error("the environment has no sites")
	}
	for _, s := range env.Sites {
		if _, err := os.Stat(filepath.Join(s, "alpha.py")); err != nil {
			t.Errorf("site %s: %v", s, err)
		}
	}
	// The same again is found without a builder, in another order of the lines too.
	again := spec
	again.Constraints = []string{"beta<3", "alpha<2"}
	mark := filepath.Join(env.Dir, "mark")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, ok := c.Lookup(again); !ok || !cmp.Equal(found, env) {
		t.Errorf("Lookup = %+v, %v; want %+v", found, ok, env)
	}
	if got := ensure(t, c, again); !cmp.Equal(got, env) {
		t.Errorf("a second Ensure = %+v, want %+v", got, env)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("the environment was built again")
	}
	if !strings.HasPrefix(spec.Digest(), filepath.Base(env.Dir)) {
		t.Errorf("directory %s does not follow from the digest %s", env.Dir, spec.Digest())
	}
}

func TestEnsureRefusals(t *testing.T) {
	t.Parallel()
	c, links := newCache(t), t.TempDir()
	wheel(t, links, "alpha", "1.0", "gamma<2")
	wheel(t, links, "beta", "1.0", "gamma>=2")
	wheel(t, links, "gamma", "1.0")
	wheel(t, links, "gamma", "2.0")
	here := venv.Index{FindLinks: []string{links}}
	closed := httptest.NewServer(http.NotFoundHandler())
	gone := closed.URL
	closed.Close()
	cases := map[string]struct {
		spec venv.Spec
		kind error
		says string
	}{
		"no index":          {venv.Spec{Requirements: []string{"alpha"}}, model.ErrInvalid, "pip.index_url"},
		"unknown package":   {venv.Spec{Requirements: []string{"nowhere"}, Index: here}, model.ErrInvalid, "nowhere"},
		"unknown version":   {venv.Spec{Requirements: []string{"alpha>=7"}, Index: here}, model.ErrInvalid, "alpha"},
		"conflict":          {venv.Spec{Requirements: []string{"alpha", "beta"}, Index: here}, model.ErrInvalid, "gamma"},
		"wrong hash":        {venv.Spec{Requirements: []string{"gamma==1.0 --hash=sha256:" + strings.Repeat("0", 64)}, Index: here}, model.ErrInvalid, "0000000000"},
		"no such python":    {venv.Spec{Python: "python-of-nowhere"}, model.ErrInvalid, "there is no Python"},
		"not a python":      {venv.Spec{Python: "/bin/true"}, model.ErrInvalid, "did not answer like a Python"},
		"option":            {venv.Spec{Requirements: []string{"-r /etc/passwd"}, Index: here}, model.ErrInvalid, "option of the installer"},
		"option at the end": {venv.Spec{Requirements: []string{"alpha --config-settings=x=y"}, Index: here}, model.ErrInvalid, "only --hash"},
		"two lines":         {venv.Spec{Requirements: []string{"alpha\n--index-url http://x/"}, Index: here}, model.ErrInvalid, "control characters"},
		"variable":          {venv.Spec{Requirements: []string{"alpha @ https://x/${HOME}"}, Index: here}, model.ErrInvalid, "environment variable"},
		"path":              {venv.Spec{Requirements: []string{"./alpha"}, Index: here}, model.ErrInvalid, "name of a package"},
		"path in disguise":  {venv.Spec{Requirements: []string{"alpha/beta"}, Index: here}, model.ErrInvalid, "no requirement"},
		"continued":         {venv.Spec{Requirements: []string{`alpha \`}, Index: here}, model.ErrInvalid, "backslash"},
		"odd scheme":        {venv.Spec{Requirements: []string{"alpha @ ext::sh -c id"}, Index: here}, model.ErrInvalid, "address that is not allowed"},
		"constraint":        {venv.Spec{Constraints: []string{"--pre"}, Index: here}, model.ErrInvalid, "constraint"},
		"bad index":         {venv.Spec{Index: venv.Index{URL: "ftp://u:sesame@host/"}}, model.ErrInvalid, "https, http or file"},
		"relative links":    {venv.Spec{Index: venv.Index{FindLinks: []string{"wheels"}}}, model.ErrInvalid, "not absolute"},
		"bad provided":      {venv.Spec{Provided: map[string]string{"../x": "1"}}, model.ErrInvalid, "provided"},
		"two accounts":      {venv.Spec{Index: venv.Index{URL: "https://a:sesame@host/", Extra: []string{"https://b:sesame@host/x"}}}, model.ErrInvalid, "different credentials"},
		"unreachable":       {venv.Spec{Requirements: []string{"alpha"}, Index: venv.Index{URL: gone + "/simple"}}, model.ErrUnavailable, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			d := *c
			d.Environ = append(slices.Clone(c.Environ), "PIP_RETRIES=1")
			if name == "unreachable" { // its configuration is used, so that pip does not try for long
				tc.spec.Index.UseSystemConfig = true
				d.Environ = append(d.Environ, "PIP_FIND_LINKS=", "UV_HTTP_TIMEOUT=1", "UV_HTTP_RETRIES=0")
			}
			env, err := d.Ensure(t.Context(), tc.spec, &log)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("Ensure = %+v, %v; want an error of %v that says %q\n%s", env, err, tc.kind, tc.says, &log)
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("the error shows a password: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(dirOf(c, tc.spec), "*"))
			if len(left) > 0 {
				t.Errorf("a failed build left %v", left)
			}
		})
	}
}

func TestEnsureWithCredentials(t *testing.T) {
	t.Parallel()
	c, links := newCache(t), t.TempDir()
	wheel(t, links, "alpha", "1.0")
	const user, password = "robot", "open/sesame#1"
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="index"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/simple/alpha/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<a href="/files/alpha-1.0-py3-none-any.whl">alpha-1.0-py3-none-any.whl</a>`)
			return
		}
		http.StripPrefix("/files/", http.FileServer(http.Dir(links))).ServeHTTP(w, r)
	}))
	t.Cleanup(index.Close)
	at := func(password string) venv.Spec {
		u, err := url.Parse(index.URL + "/simple/")
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(user, password)
		return venv.Spec{Requirements: []string{"alpha"}, Index: venv.Index{URL: u.String()}}
	}
	var log bytes.Buffer
	if _, err := c.Ensure(t.Context(), at("wrong-horse"), &log); err == nil || strings.Contains(err.Error()+log.String(), "wrong-horse") {
		t.Errorf("Ensure with a wrong password = %v, want an error without it\n%s", err, &log)
	}
	log.Reset()
	env, err := c.Ensure(t.Context(), at(password), &log)
	if err != nil {
		t.Fatalf("Ensure = %v\n%s", err, &log)
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("the output shows the password:\n%s", &log)
	}
	raw, err := os.ReadFile(filepath.Join(env.Dir, ".intendant.json"))
	if err != nil || bytes.Contains(raw, []byte("sesame")) {
		t.Errorf("status file: %v; it must not contain the password:\n%s", err, raw)
	}
	if at(password).Digest() != at("another").Digest() {
		t.Error("a new password makes another environment")
	}
}

func TestEnsureBuildsOnce(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	// A killed builder has left something behind.
	left := dirOf(c, venv.Spec{})
	if err := os.MkdirAll(filepath.Join(left, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "bin", "python"), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	built := make([]time.Time, 4)
	for i := range built {
		wg.Go(func() {
			other := &venv.Cache{Dir: c.Dir, Environ: c.Environ}
			env, err := other.Ensure(t.Context(), venv.Spec{}, nil)
			if err != nil {
				t.Errorf("Ensure: %v", err)
				return
			}
			info, err := os.Stat(filepath.Join(env.Dir, "pyvenv.cfg"))
			if err != nil {
				t.Errorf("reading the environment: %v", err)
				return
			}
			built[i] = info.ModTime()
		})
	}
	wg.Wait()
	for _, b := range built {
		if !b.Equal(built[0]) {
			t.Errorf("it was built at %v: want once", built)
		}
	}
}

func TestEnsureCancelled(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	asked := make(chan struct{})
	index := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(index.Close)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("nobody wants it any more")
	go func() {
		<-asked
		cancel(why)
	}()
	spec := venv.Spec{Requirements: []string{"alpha"}, Index: venv.Index{URL: index.URL}}
	if env, err := c.Ensure(ctx, spec, nil); !errors.Is(err, why) {
		t.Fatalf("Ensure = %+v, %v; want %v", env, err, why)
	}
	if _, err := os.Stat(dirOf(c, spec)); err == nil {
		t.Error("a cancelled build left its directory")
	}
}

func TestProvided(t *testing.T) {
	t.Parallel()
	c, links := newCache(t), t.TempDir()
	wheel(t, links, "handler", "1.0", "Inmanta_Core>=15,<21")
	wheel(t, links, "inmanta_core", "20.5", "nowhere-to-be-found") // what must not be taken
	spec := venv.Spec{
		Requirements: []string{"handler"}, Index: venv.Index{FindLinks: []string{links}}, Provided: map[string]string{"inmanta-core": "20.1.0"},
	}
	env := ensure(t, c, spec)
	if got := evaluate(t, env, "__import__('importlib.metadata').metadata.version('inmanta-core')"); got != "20.1.0" {
		t.Errorf("the version of what is provided = %s, want 20.1.0", got)
	}
	if len(env.Packages) != 2 || !env.Packages[1].Provided || env.Packages[1].SHA256 != "" {
		t.Errorf("packages = %+v, want the second to be marked as provided", env.Packages)
	}
	locked := venv.Spec{Index: spec.Index, Provided: spec.Provided, NoDeps: true}
	for _, p := range env.Packages {
		if !p.Provided {
			r := p.Name + "==" + p.Version
			if p.SHA256 != "" {
				r += " --hash=sha256:" + p.SHA256
			}
			locked.Requirements = append(locked.Requirements, r)
		}
	}
	if got := ensure(t, c, locked); !cmp.Equal(got.Packages, env.Packages) {
		t.Errorf("the packages by the versions of the first = %+v, want %+v", got.Packages, env.Packages)
	}
	spec.Provided = map[string]string{"inmanta-core": "30.0"}
	if _, err := c.Ensure(t.Context(), spec, nil); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("Ensure with a provided version that does not fit = %v, want an error", err)
	}
}

// TestOnlyBinary holds that no build script runs when that is not wanted.
func TestOnlyBinary(t *testing.T) {
	t.Parallel()
	c, links := newCache(t), t.TempDir()
	mark := filepath.Join(links, "ran")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{
		"delta-1.0/setup.py": fmt.Sprintf("open(%q, 'w').close()\n", mark),
		"delta-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: delta\nVersion: 1.0\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), os.WriteFile(filepath.Join(links, "delta-1.0.tar.gz"), b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	spec := venv.Spec{Requirements: []string{"delta"}, Index: venv.Index{FindLinks: []string{links}, OnlyBinary: true}}
	if env, err := c.Ensure(t.Context(), spec, nil); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "delta") {
		t.Errorf("Ensure = %+v, %v; want it to be refused", env, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the build script ran")
	}
}

func TestSystemSite(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	const pip = "__import__('importlib.util').util.find_spec('pip') is not None"
	if got := evaluate(t, ensure(t, c, venv.Spec{}), pip); got != "False" {
		t.Errorf("pip can be imported in a plain environment: %s", got)
	}
	py, err := venv.FindPython("")
	if err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, venv.Env{Python: py.Executable}, pip); got != "True" {
		t.Skip("the interpreter has no packages of its own to be seen")
	}
	if got := evaluate(t, ensure(t, c, venv.Spec{SystemSite: true}), pip); got != "True" {
		t.Errorf("the system's packages are not seen: %s", got)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	env := ensure(t, c, venv.Spec{})
	old := time.Now().Add(-48 * time.Hour)
	if _, err := (&venv.Cache{Dir: t.TempDir()}).Ensure(t.Context(), venv.Spec{}, nil); err != nil {
		t.Errorf("Ensure without variables: %v", err)
	}
	age := func() {
		t.Helper()
		if err := os.Chtimes(filepath.Join(env.Dir, ".intendant.json"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	there := func() bool {
		_, err := os.Stat(env.Python)
		return err == nil
	}
	sweep := func() {
		t.Helper()
		if err := c.Sweep(24 * time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if sweep(); !there() {
		t.Fatal("a fresh environment was removed")
	}
	release, err := c.Hold(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	age()
	if sweep(); !there() {
		t.Fatal("an environment was removed while it was held")
	}
	release()
	ensure(t, c, venv.Spec{}) // which is a use
	if sweep(); !there() {
		t.Fatal("an environment was removed right after it was used")
	}
	age()
	if sweep(); there() {
		t.Error("an old environment was not removed")
	}
	if left, _ := os.ReadDir(c.Dir); len(left) > 0 {
		t.Errorf("Sweep left %v", left)
	}
	if _, err := c.Hold(t.Context(), venv.Env{Dir: "/etc"}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("Hold of another directory = %v, want an error", err)
	}
}

// dirOf is where a cache puts an environment.
func dirOf(c *venv.Cache, s venv.Spec) string { return filepath.Join(c.Dir, s.Digest()[:32]) }

// TestEnviron holds that what installs packages sees none of the secrets of the process that starts it.
func TestEnviron(t *testing.T) {
	t.Parallel()
	got := venv.Environ([]string{
		"PATH=/bin", "INTENDANT_DATABASE_URL=postgres://u:p@h/d", "INMANTA_DATABASE_PASSWORD=p", "https_proxy=http://p", "HTTPS_PROXY=http://p",
		"AWS_SECRET_ACCESS_KEY=s", "PIP_INDEX_URL=https://i", "LD_PRELOAD=/x", "PYTHONPATH=/x", "HOMEPAGE=x", "HOME=/h",
	})
	want := []string{"PATH=/bin", "https_proxy=http://p", "HTTPS_PROXY=http://p", "PIP_INDEX_URL=https://i", "HOME=/h"}
	if !slices.Equal(got, want) {
		t.Errorf("Environ = %q, want %q", got, want)
	}
}
