package agents

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

func sha(content string) string {
	sum := sha1.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

// storage is a file storage that answers with a function and counts requests.
func storage(t *testing.T, most int64, answer func(w http.ResponseWriter, hash string)) (*fileCache, *atomic.Int32) {
	t.Helper()
	var requests atomic.Int32
	env := model.EnvironmentID{UUID: uuid.New()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer token" || r.Header.Get(wire.EnvironmentHeader) != env.String() {
			t.Errorf("headers are %v", r.Header)
		}
		answer(w, strings.TrimPrefix(r.URL.Path, wire.FilePath))
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	c := newFileCache(Config{URL: server.URL, Environment: env, Token: "token", Transport: transport, CacheBytes: most}, t.TempDir())
	c.client.RetryWaitMin, c.client.RetryWaitMax = time.Millisecond, time.Millisecond
	return c, &requests
}

func readAll(t *testing.T, c *fileCache, hash string) (string, error) {
	t.Helper()
	f, size, err := c.Open(t.Context(), hash)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(f)
	if err != nil || int64(len(content)) != size {
		t.Errorf("read %d bytes of %d, %v", len(content), size, err)
	}
	return string(content), nil
}

func TestFileCache(t *testing.T) {
	t.Parallel()
	contents := map[string]string{sha("hello"): "hello"}
	c, requests := storage(t, 1<<20, func(w http.ResponseWriter, hash string) {
		if content, ok := contents[hash]; ok {
			_, _ = io.WriteString(w, content)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if got, err := readAll(t, c, sha("hello")); got != "hello" || err != nil {
				t.Errorf("Open() = %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
	// A content that was damaged on disk is fetched again.
	if err := os.WriteFile(c.path(sha("hello")), []byte("HELLO"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t, c, sha("hello")); got != "hello" || err != nil || requests.Load() != 2 {
		t.Errorf("Open() of a damaged content = %q, %v after %d requests", got, err, requests.Load())
	}
	if _, err := readAll(t, c, sha("unknown")); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("Open() of an unknown content = %v, want ErrNotFound", err)
	}
	for _, bad := range []string{"", "../../../../etc/passwd", strings.ToUpper(sha("hello")), sha("hello") + "0"} {
		if _, err := readAll(t, c, bad); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("Open(%q) = %v, want ErrInvalid", bad, err)
		}
	}
}

func TestFileCacheVerifies(t *testing.T) {
	t.Parallel()
	c, _ := storage(t, 1<<20, func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, "something else") })
	if _, err := readAll(t, c, sha("hello")); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("Open() of a false content = %v, want ErrInvalid", err)
	}
	left, err := filepath.Glob(filepath.Join(c.dir, "*", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("the false content is kept: %v, %v", left, err)
	}
}

func TestFileCacheTriesAgain(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	c, requests := storage(t, 1<<20, func(w http.ResponseWriter, _ string) {
		if failures.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "hello")
	})
	if got, err := readAll(t, c, sha("hello")); got != "hello" || err != nil || requests.Load() != 3 {
		t.Errorf("Open() = %q, %v after %d requests", got, err, requests.Load())
	}
	failures.Store(-100)
	if _, err := readAll(t, c, sha("other")); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("Open() while the server fails = %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Open(ctx, sha("other")); err == nil {
		t.Errorf("Open() with an ended context succeeded")
	}
}

func TestFileCacheRefused(t *testing.T) {
	t.Parallel()
	c, requests := storage(t, 1<<20, func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusForbidden) })
	if _, err := readAll(t, c, sha("hello")); !errors.Is(err, model.ErrForbidden) || requests.Load() != 1 {
		t.Errorf("Open() = %v after %d requests, want ErrForbidden after one", err, requests.Load())
	}
}

func TestFileCacheIsBounded(t *testing.T) {
	t.Parallel()
	contents := map[string]string{}
	for _, s := range []string{"a", "b", "c", "d"} {
		content := strings.Repeat(s, 100)
		contents[sha(content)] = content
	}
	c, _ := storage(t, 250, func(w http.ResponseWriter, hash string) { _, _ = io.WriteString(w, contents[hash]) })
	old := time.Now().Add(-time.Hour)
	for i, s := range []string{"a", "b"} {
		hash := sha(strings.Repeat(s, 100))
		if _, err := readAll(t, c, hash); err != nil {
			t.Fatal(err)
		}
		used := old.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(c.path(hash), used, used); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readAll(t, c, sha(strings.Repeat("a", 100))); err != nil { // used again: now b is the oldest
		t.Fatal(err)
	}
	if _, err := readAll(t, c, sha(strings.Repeat("c", 100))); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]bool{"a": true, "b": false, "c": true} {
		_, err := os.Stat(c.path(sha(strings.Repeat(s, 100))))
		if kept := err == nil; kept != want {
			t.Errorf("content %s kept: %v, want %v", s, kept, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := Config{
		URL: "https://server:8888/", Environment: model.EnvironmentID{UUID: uuid.New()}, Token: "t", Names: []model.AgentName{"a"},
		StateDir: t.TempDir(), Registry: sdk.NewRegistry(),
	}
	a, err := New(good)
	if err != nil || a.cfg.URL != "https://server:8888" || a.cfg.PerAgent != 1 || a.cfg.Parallel < 8 {
		t.Fatalf("New() = %+v, %v", a, err)
	}
	for name, spoil := range map[string]func(*Config){
		"url":         func(c *Config) { c.URL = "ftp://server" },
		"no host":     func(c *Config) { c.URL = "http://" },
		"environment": func(c *Config) { c.Environment = model.EnvironmentID{} },
		"token":       func(c *Config) { c.Token = "" },
		"names":       func(c *Config) { c.Names = nil },
		"directory":   func(c *Config) { c.StateDir = "" },
		"registry":    func(c *Config) { c.Registry = nil },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("New() without a good %s = %v, want ErrInvalid", name, err)
		}
	}
}

func TestStateDirectoryFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		URL: "http://127.0.0.1:1", Environment: model.EnvironmentID{UUID: uuid.New()}, Token: "t", Names: []model.AgentName{"a"},
		StateDir: filepath.Join(file, "sub"), Registry: sdk.NewRegistry(),
	}
	run := func() error {
		t.Helper()
		a, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return a.Run(t.Context())
	}
	if err := run(); err == nil {
		t.Errorf("Run() in a directory that can not be made = nil")
	}
	cfg.StateDir = dir
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "agents.json") {
		t.Errorf("Run() with a damaged state = %v, want an error that names the file", err)
	}
}
