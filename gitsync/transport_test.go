package gitsync_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gliderssh "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/intendant/intendant/gitsync"
	"github.com/intendant/intendant/model"
)

// serveHTTP serves origins over smart HTTP with a password, through wrap.
func serveHTTP(t testing.TB, o *origin, user, password string, wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("the test needs git: %v", err)
	}
	var h http.Handler = &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: o.dir, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(o.dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	if user != "" {
		next := h
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you, "+p+"?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// setup makes a recorder with one repository and environment, and a service.
func setup(t *testing.T, repo model.Repository, c gitsync.Config) (*recorder, model.Environment, *gitsync.Service) {
	t.Helper()
	rec := newRecorder()
	repo.Name = "demo"
	rec.addRepo(repo)
	c.Recorder = rec
	return rec, rec.addEnv(repo, "main", ""), newService(t, c)
}

// checkout resolves and checks out, and returns the content of file f.
func checkout(t *testing.T, s *gitsync.Service, env model.Environment, want string) string {
	t.Helper()
	rev, err := s.Resolve(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if rev.Commit != want {
		t.Fatalf("Resolve() = %s, want %s", rev.Commit, want)
	}
	dir, release, err := s.Checkout(t.Context(), env, rev)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	return readFile(t, dir, "f")
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.push("main", files{"f": text("one")}, "c")
	srv := serveHTTP(t, o, "ada", "pa55word", nil)
	url := srv.URL + "/origin.git"
	_, env, s := setup(t, model.Repository{URL: url, Username: "ada", Password: "pa55word"}, gitsync.Config{})
	if got := checkout(t, s, env, first); got != "one" {
		t.Errorf("f = %q", got)
	}
	second := o.push("main", files{"f": text("two")}, "c")
	if got := checkout(t, s, env, second); got != "two" {
		t.Errorf("f = %q", got)
	}

	inURL := strings.Replace(url, "http://", "http://ada:pa55word@", 1)
	_, env, s = setup(t, model.Repository{URL: inURL}, gitsync.Config{})
	if got := checkout(t, s, env, second); got != "two" {
		t.Errorf("f = %q", got)
	}

	for name, repo := range map[string]model.Repository{
		"wrong password":        {URL: url, Username: "ada", Password: "wr0ngpass"},
		"wrong password in URL": {URL: strings.Replace(url, "http://", "http://ada:wr0ngpass@", 1)},
		"no password":           {URL: url},
	} {
		_, env, s := setup(t, repo, gitsync.Config{})
		_, err := s.Resolve(t.Context(), env)
		wantErr(t, err, model.ErrUnavailable, "check the repository's user name, token or key")
		if strings.Contains(err.Error(), "wr0ngpass") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
	_, env, s = setup(t, model.Repository{URL: srv.URL + "/missing.git", Username: "ada", Password: "pa55word"}, gitsync.Config{})
	_, err := s.Resolve(t.Context(), env)
	wantErr(t, err, model.ErrUnavailable, "check the URL")
}

func TestHTTPFaults(t *testing.T) {
	t.Parallel()
	truncate := func(path string, after int64) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, path) {
					next.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, r)
				body := rec.Body.Bytes()
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				_, _ = w.Write(body[:min(int64(len(body)), after)])
			})
		}
	}
	answer := func(status int, body string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})
		}
	}
	for name, tt := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		change func(*gitsync.Config)
		want   string
	}{
		"truncated pack": {wrap: truncate("git-upload-pack", 600), want: "receiving objects"},
		"truncated refs": {wrap: truncate("info/refs", 60), want: "listing refs"},
		"web page":       {wrap: answer(200, "<html>hello</html>"), want: "listing refs"},
		"empty":          {wrap: answer(200, ""), want: ""},
		"busy":           {wrap: answer(503, strings.Repeat("busy ", 10_000)), want: "503"},
		"pack too large": {change: func(c *gitsync.Config) { c.MaxPack = 2000 }, want: "more than the configured limit"},
		"refs too large": {change: func(c *gitsync.Config) { c.MaxAdvertisement = 50 }, want: "more than the configured limit"},
		"slow": {wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "001e# service=git-upload-pack\n")
				w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's is one
				<-r.Context().Done()
			})
		}, change: func(c *gitsync.Config) { c.PeekTimeout = 200 * time.Millisecond }, want: "no answer within 200ms"},
		"stalls while sending": {wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "git-upload-pack") {
					next.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, r)
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				_, _ = w.Write(rec.Body.Bytes()[:600])
				w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's is one
				<-r.Context().Done()
			})
		}, change: func(c *gitsync.Config) { c.FetchTimeout = 300 * time.Millisecond }, want: "not done within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			noise := make([]byte, 8000)
			_, _ = rand.Read(noise)
			commit := o.push("main", files{"f": text(hex.EncodeToString(noise))}, "c")
			var healed atomic.Bool
			srv := serveHTTP(t, o, "", "", func(h http.Handler) http.Handler {
				if tt.wrap == nil {
					return h
				}
				ill := tt.wrap(h)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if healed.Load() {
						h.ServeHTTP(w, r)
					} else {
						ill.ServeHTTP(w, r)
					}
				})
			})
			c := gitsync.Config{Dir: t.TempDir()}
			if tt.change != nil {
				tt.change(&c)
			}
			_, env, s := setup(t, model.Repository{URL: srv.URL + "/origin.git"}, c)
			_, err := s.Resolve(t.Context(), env)
			wantErr(t, err, nil, tt.want)
			if len(err.Error()) > 1200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if left := glob(t, c.Dir, "0/mirrors/demo/*/objects/pack/*"); len(left) != 0 {
				t.Errorf("a failed fetch left %q", left)
			}
			if healed.Store(true); tt.wrap != nil {
				if got := checkout(t, s, env, commit); got != hex.EncodeToString(noise) {
					t.Error("after the fault the content is another")
				}
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	commit := o.push("main", files{"f": text("one")}, "c")
	var leaked atomic.Bool
	target := serveHTTP(t, o, "", "", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				leaked.Store(true)
			}
			h.ServeHTTP(w, r)
		})
	})
	to := func(base string) *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, base+r.URL.RequestURI(), http.StatusFound)
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	_, env, s := setup(t, model.Repository{URL: to(target.URL).URL + "/origin.git", Username: "ada", Password: "pa55word"}, gitsync.Config{})
	if got := checkout(t, s, env, commit); got != "one" {
		t.Errorf("f = %q", got)
	}
	if leaked.Load() {
		t.Error("credentials followed a redirect to another origin")
	}
	for _, bad := range []string{"http://169.254.169.254", "http://[fe80::1%25lo]", "http://0.0.0.0", "http://[::ffff:169.254.169.254]", "file:///etc", "ftp://127.0.0.1"} {
		_, env, s := setup(t, model.Repository{URL: to(bad).URL + "/origin.git"}, gitsync.Config{PeekTimeout: 5 * time.Second})
		_, err := s.Resolve(t.Context(), env)
		wantErr(t, err, nil)
		if strings.Contains(err.Error(), "5s") {
			t.Errorf("redirect to %s: it was dialled: %v", bad, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for url, private := range map[string]bool{
		"http://169.254.169.254/x.git": false, "http://[fe80::1]/x.git": false, "http://0.0.0.0/x.git": false, "http://[::]/x.git": false,
		"ssh://git@169.254.1.1/x.git": false, "http://[64:ff9b::a9fe:a9fe]/x.git": false, "http://[2002:a9fe:a9fe::1]/x.git": false,
		"http://100.100.100.200/x": false, "http://[fd00:ec2::254]/x": false, "http://224.0.0.1/x": false,
		"http://127.0.0.1:1/x": true, "http://localhost:1/x": true, "http://10.0.0.1/x": true, "http://192.168.1.1/x": true, "http://[::1]/x": true,
		"http://[fc00::1]/x": true, "http://100.64.0.1/x": true, "git@127.0.0.1:x": true,
	} {
		repo := model.Repository{URL: url, SSHKey: sshKey(t)}
		_, env, s := setup(t, repo, gitsync.Config{BlockPrivateNetworks: private, PeekTimeout: 5 * time.Second})
		_, err := s.Resolve(t.Context(), env)
		wantErr(t, err, model.ErrForbidden, "refused")
	}
	_, env, s := setup(t, model.Repository{URL: "http://127.0.0.1:1/x"}, gitsync.Config{})
	if _, err := s.Resolve(t.Context(), env); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("Resolve() of an intranet address = %v, want an attempt", err)
	}
	_, env, s = setup(t, model.Repository{URL: "file:///tmp"}, gitsync.Config{})
	_, err := s.Resolve(t.Context(), env)
	wantErr(t, err, model.ErrForbidden, "local repositories are not allowed")
}

var newKey = func(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func pemOf(t *testing.T, k ed25519.PrivateKey, passphrase string) model.Secret {
	t.Helper()
	var b *pem.Block
	var err error
	if passphrase == "" {
		b, err = ssh.MarshalPrivateKey(k, "")
	} else {
		b, err = ssh.MarshalPrivateKeyWithPassphrase(k, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return model.Secret(pem.EncodeToMemory(b))
}

func sshKey(t *testing.T) model.Secret {
	t.Helper()
	return pemOf(t, newKey(t), "")
}

// serveSSH serves git-upload-pack to one key and returns the address and the host's key.
func serveSSH(t *testing.T, user ssh.PublicKey) (address string, host ssh.PublicKey) {
	t.Helper()
	hostKey, err := ssh.NewSignerFromKey(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &gliderssh.Server{
		PublicKeyHandler: func(_ gliderssh.Context, k gliderssh.PublicKey) bool { return gliderssh.KeysEqual(k, user) },
		Handler: func(s gliderssh.Session) {
			args := s.Command()
			if len(args) != 2 || args[0] != "git-upload-pack" {
				fmt.Fprintln(s.Stderr(), "not allowed")
				_ = s.Exit(1)
				return
			}
			cmd := exec.CommandContext(s.Context(), "git", "-c", "safe.directory=*", "upload-pack", args[1])
			cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")
			in, err := cmd.StdinPipe()
			if err != nil {
				_ = s.Exit(1)
				return
			}
			cmd.Stdout, cmd.Stderr = s, s.Stderr()
			if err := cmd.Start(); err != nil {
				_ = s.Exit(1)
				return
			}
			go func() {
				_, _ = io.Copy(in, s)
				_ = in.Close()
			}()
			if err := cmd.Wait(); err != nil {
				_ = s.Exit(128)
				return
			}
			_ = s.Exit(0)
		},
	}
	srv.AddHostKey(hostKey)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return l.Addr().String(), hostKey.PublicKey()
}

func TestSSH(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.push("main", files{"f": text("one")}, "c")
	key := newKey(t)
	pub, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	address, host := serveSSH(t, pub)
	known := knownhosts.Line([]string{address}, host)
	url := "ssh://git@" + address + o.dir
	good := model.Repository{URL: url, SSHKey: pemOf(t, key, ""), KnownHosts: "# a comment\n" + known + "\n"}
	_, env, s := setup(t, good, gitsync.Config{})
	if got := checkout(t, s, env, first); got != "one" {
		t.Errorf("f = %q", got)
	}
	second := o.push("main", files{"f": text("two")}, "c")
	if got := checkout(t, s, env, second); got != "two" {
		t.Errorf("f = %q", got)
	}

	other, err := ssh.NewPublicKey(newKey(t).Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*model.Repository)
		is     error
		want   []string
	}{
		"passphrase": {change: func(r *model.Repository) { r.SSHKey, r.SSHKeyPassphrase = pemOf(t, key, "open sesame"), "open sesame" }},
		"hashed host": {change: func(r *model.Repository) {
			r.KnownHosts = knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(address))}, host)
		}},
		"wrong passphrase":  {func(r *model.Repository) { r.SSHKey, r.SSHKeyPassphrase = pemOf(t, key, "open sesame"), "wr0ngpass" }, model.ErrInvalid, []string{"passphrase"}},
		"no passphrase":     {func(r *model.Repository) { r.SSHKey = pemOf(t, key, "open sesame") }, model.ErrInvalid, []string{"give its passphrase"}},
		"no key":            {func(r *model.Repository) { r.SSHKey = "" }, model.ErrInvalid, []string{"no SSH key"}},
		"garbage key":       {func(r *model.Repository) { r.SSHKey = "garbage" }, model.ErrInvalid, []string{"PEM"}},
		"another key":       {func(r *model.Repository) { r.SSHKey = sshKey(t) }, model.ErrUnavailable, []string{"deploy key", "SHA256:"}},
		"unknown host":      {func(r *model.Repository) { r.KnownHosts = "" }, model.ErrForbidden, []string{"is not known", "add this line", known}},
		"host key changed":  {func(r *model.Repository) { r.KnownHosts = knownhosts.Line([]string{address}, other) }, model.ErrForbidden, []string{"is not the one", known}},
		"revoked host key":  {func(r *model.Repository) { r.KnownHosts = known + "\n@revoked * " + strings.SplitN(known, " ", 2)[1] }, model.ErrForbidden, []string{"revoked"}},
		"bad known_hosts":   {func(r *model.Repository) { r.KnownHosts = "one two\n" }, model.ErrInvalid, []string{"known_hosts"}},
		"missing directory": {func(r *model.Repository) { r.URL = "ssh://git@" + address + "/no/such'; touch x; '" }, model.ErrUnavailable, []string{"no/such"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := good
			tt.change(&repo)
			_, env, s := setup(t, repo, gitsync.Config{})
			_, err := s.Resolve(t.Context(), env)
			if tt.is == nil {
				if err != nil {
					t.Errorf("Resolve() = %v", err)
				}
				return
			}
			wantErr(t, err, tt.is, tt.want...)
			if strings.Contains(err.Error(), "wr0ngpass") || strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestSSHTimeout(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, env, s := setup(t, model.Repository{URL: "ssh://git@" + l.Addr().String() + "/x", SSHKey: sshKey(t)}, gitsync.Config{PeekTimeout: 200 * time.Millisecond})
	_, err = s.Resolve(context.WithoutCancel(t.Context()), env)
	wantErr(t, err, model.ErrUnavailable, "no answer within 200ms")
}
