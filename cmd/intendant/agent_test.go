package main

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/config"
	"github.com/intendant/intendant/model"
)

func agentSettings(t *testing.T, flags map[string]string) *config.Config {
	t.Helper()
	c, err := config.Load(options(), config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAgentConfig(t *testing.T) {
	t.Parallel()
	env := uuid.New()
	settings := agentSettings(t, map[string]string{
		"config.environment": env.String(), "config.node-name": "web1", "config.state-dir": "/state",
		"agent_rest_transport.host": "server.example.org", "agent_rest_transport.port": "9999", "agent_rest_transport.ssl": "true",
		"agent.parallelism": "3",
	})
	cfg, err := agentConfig(settings, &agentFlags{})
	if err != nil {
		t.Fatalf("agentConfig() = %v", err)
	}
	got := []any{cfg.URL, cfg.Environment.UUID, cfg.Names, cfg.StateDir, cfg.PerAgent}
	want := []any{"https://server.example.org:9999", env, []model.AgentName{"web1"}, "/state/agent", 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of settings differs:\n%s", diff)
	}
	other := uuid.New()
	cfg, err = agentConfig(settings, &agentFlags{
		names: []string{"a", "b"}, environment: other.String(), server: "http://s:1", stateDir: "/other", parallel: 2,
	})
	if err != nil {
		t.Fatalf("agentConfig() = %v", err)
	}
	got = []any{cfg.URL, cfg.Environment.UUID, cfg.Names, cfg.StateDir, cfg.PerAgent}
	want = []any{"http://s:1", other, []model.AgentName{"a", "b"}, "/other", 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of flags differs:\n%s", diff)
	}
	var status *exitError
	if _, err := agentConfig(settings, &agentFlags{environment: "production"}); !errors.As(err, &status) || status.code != exitUsage {
		t.Errorf("agentConfig() with a bad environment = %v, want a usage error", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".missing"} {
		if _, err := agentTransport(file); err == nil {
			t.Errorf("agentTransport(%s) = nil, want an error", file)
		}
	}
}

func TestPinnedTransport(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	strange := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("another")}))
	get := func(certificate string) error {
		t.Helper()
		transport, err := pinnedTransport(http.DefaultTransport, certificate)
		if err != nil {
			t.Fatal(err)
		}
		// The certificate is made for other names than this one.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := get(own); err != nil {
		t.Errorf("with the server's certificate: %v", err)
	}
	if err := get(strange); err == nil {
		t.Errorf("with another certificate: nil, want an error")
	}
	if err := get(""); err == nil {
		t.Errorf("without a certificate: nil, want an error of the usual verification")
	}
	if _, err := pinnedTransport(nil, "rubbish"); err == nil {
		t.Errorf("pinnedTransport(rubbish) = nil, want an error")
	}
}

func TestReadCredentials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]hub.Credentials{
		`{"token":"t","key":"k"}`: {Token: "t", Key: "k"},
		`{"token":"t"}`:           {},
		``:                        {},
		`rubbish`:                 {},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		// The descriptor is read and closed by the function: r must not close it again.
		fd := dupDescriptor(t, r)
		_ = r.Close()
		got, err := readCredentials(fd)
		if want.Key == "" {
			var status *exitError
			if !errors.As(err, &status) || status.code != exitUsage {
				t.Errorf("readCredentials(%q) = %v, want a usage error", text, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("readCredentials(%q) = %+v, %v", text, got, err)
		}
	}
}

func TestAgentToken(t *testing.T) {
	t.Parallel()
	env := model.EnvironmentID{UUID: uuid.New()}
	enrolments := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		enrolments++
		if r.URL.Path != wire.EnrollPath || r.Header.Get(wire.EnvironmentHeader) != env.String() {
			t.Errorf("request is %s with %v", r.URL, r.Header)
		}
		if r.Header.Get("Authorization") != "Bearer once" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"token": "lasting"})
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	dir := t.TempDir()
	cfg := agents.Config{URL: server.URL, Environment: env, StateDir: filepath.Join(dir, "state"), Hostname: "h", Transport: transport}
	none := agentSettings(t, nil)
	get := func(c *config.Config, enroll, stdin string) (string, error) {
		t.Helper()
		token, err := agentToken(t.Context(), c, cfg, enroll, strings.NewReader(stdin), agentTestLogger())
		return token.Reveal(), err
	}
	if _, err := get(none, "", ""); err == nil || !strings.Contains(err.Error(), "--enroll") {
		t.Errorf("without any token: %v, want an error that says what to do", err)
	}
	if _, err := get(none, "-", "wrong\n"); err == nil || enrolments != 1 {
		t.Errorf("with a wrong one-time token: %v after %d requests, want an error after one", err, enrolments)
	}
	if got, err := get(none, "-", "once\n"); got != "lasting" || err != nil {
		t.Errorf("with a one-time token: %q, %v", got, err)
	}
	if got, err := get(none, filepath.Join(dir, "not-needed"), ""); got != "lasting" || err != nil || enrolments != 2 {
		t.Errorf("when enrolled: %q, %v after %d requests", got, err, enrolments)
	}
	info, err := os.Stat(filepath.Join(cfg.StateDir, "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kept token: %v, %v, want mode 0600", info, err)
	}
	if got, err := get(agentSettings(t, map[string]string{"agent_rest_transport.token": "set"}), "", ""); got != "set" || err != nil {
		t.Errorf("with a setting: %q, %v", got, err)
	}
}

func agentTestLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// dupDescriptor returns another descriptor of a file.
func dupDescriptor(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
