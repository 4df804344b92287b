package agents_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/agents"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

func TestAgentAddsContents(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	a := s.StartAgent(t, sdk.NewRegistry(), []model.AgentName{"host"})
	content := []byte("made by a handler")
	hash := s.AddFile(content) // its name; the content comes again, which changes nothing
	if err := a.Process.Upload(t.Context(), hash, content); err != nil {
		t.Fatal(err)
	}
	if err := a.Process.Upload(t.Context(), hash, []byte("something else")); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a content under a wrong name: %v, want it to be refused", err)
	}
	if stored, err := s.File(t.Context(), hash); err != nil || string(stored) != string(content) {
		t.Errorf("the server has %q, %v", stored, err)
	}
}

func TestAgentCallsTheAPI(t *testing.T) {
	t.Parallel()
	type call struct{ Method, Path, Token, Environment, Extra, Body string }
	var calls []call
	status := http.StatusOK
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, call{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-Inmanta-Tid"), r.Header.Get("X-Extra"), string(body)})
		w.WriteHeader(status)
		_, _ = w.Write([]byte("answer"))
	}))
	t.Cleanup(web.Close)
	s := sdktest.NewServer(t)
	a, err := agents.New(agents.Config{
		URL: web.URL, Environment: s.Environment, Token: "secret", Names: []model.AgentName{"host"}, StateDir: t.TempDir(), Registry: sdk.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Authorization": {"Bearer forged"}, "X-Inmanta-Tid": {"another"}, "X-Extra": {"1"}}
	var want []call
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		body := []byte(nil)
		if method != http.MethodGet {
			body = []byte("body")
		}
		code, answer, err := a.Call(t.Context(), method, "/api/v1/x?y=1", header, body)
		if err != nil || code != 200 || string(answer) != "answer" {
			t.Errorf("%s = %d, %q, %v", method, code, answer, err)
		}
		// The credentials are the agent's own, whatever the caller says.
		want = append(want, call{method, "/api/v1/x?y=1", "Bearer secret", s.Environment.String(), "1", string(body)})
	}
	if d := cmp.Diff(want, calls); d != "" {
		t.Error(d)
	}
	// What changes something is not tried again by itself.
	calls, status = nil, http.StatusServiceUnavailable
	if code, _, err := a.Call(t.Context(), http.MethodPost, "/api/v1/x", nil, []byte("{}")); err != nil || code != http.StatusServiceUnavailable || len(calls) != 1 {
		t.Errorf("a refused call = %d, %v after %d tries", code, err, len(calls))
	}
	web.Close()
	if _, _, err := a.Call(t.Context(), http.MethodPost, "/api/v1/x", nil, nil); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("without a server: %v", err)
	}
}
