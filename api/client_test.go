package api_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/api"
)

func client(t *testing.T, h http.HandlerFunc, changes ...func(*api.ClientConfig)) *api.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	config := api.ClientConfig{BaseURL: s.URL + "/", Environment: "e1", Token: "secret", Trace: strings.Repeat("ab", 16), Poll: 20 * time.Millisecond}
	for _, change := range changes {
		change(&config)
	}
	c, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewClientRefusesAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"localhost:8888", "ftp://x", "http://", "::"} {
		if _, err := api.NewClient(api.ClientConfig{BaseURL: address}); err == nil {
			t.Errorf("NewClient(%q) fails not", address)
		}
	}
}

func TestRequestsCarryWhoAndWhat(t *testing.T) {
	t.Parallel()
	var got http.Header
	var path string
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		got, path = r.Header, r.URL.EscapedPath()
		_, _ = io.WriteString(w, `{"data": {}}`)
	})
	if _, err := c.Resource(t.Context(), "fs::File[a,path=/x y]"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"X-Inmanta-Tid": "e1", "Authorization": "Bearer secret", "User-Agent": "intendant"} {
		if got.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, got.Get(name), want)
		}
	}
	if !strings.HasPrefix(got.Get("Traceparent"), "00-"+strings.Repeat("ab", 16)+"-") {
		t.Errorf("Traceparent = %q", got.Get("Traceparent"))
	}
	if want := "/api/v3/resource/fs::File%5Ba%2Cpath=%2Fx%20y%5D"; path != want {
		t.Errorf("path = %s, want %s", path, want)
	}
}

func TestLargeBodiesArePacked(t *testing.T) {
	t.Parallel()
	var value string
	c := client(t, func(_ http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Errorf("Content-Encoding %q: %v", r.Header.Get("Content-Encoding"), err)
			return
		}
		var body struct{ Value string }
		if err := json.NewDecoder(z).Decode(&body); err != nil {
			t.Error(err)
		}
		value = body.Value
	})
	want := strings.Repeat("x", 5000)
	if err := c.SetSetting(t.Context(), "a", want); err != nil || value != want {
		t.Errorf("SetSetting = %v, the server has read %d bytes", err, len(value))
	}
}

func TestOnlyHarmlessRequestsAreRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		call  func(context.Context, *api.Client) error
		times int32
	}{
		{"a read", func(ctx context.Context, c *api.Client) error { _, err := c.Projects(ctx); return err }, 3},
		{"a write with a key", func(ctx context.Context, c *api.Client) error {
			_, _, err := c.RequestDeploy(ctx, api.Deploy{})
			return err
		}, 3},
		{"a write without one", func(ctx context.Context, c *api.Client) error { return c.Halt(ctx) }, 1},
		{"a deletion", func(ctx context.Context, c *api.Client) error { return c.DeleteVersion(ctx, 1) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var times atomic.Int32
			keys := map[string]bool{}
			cl := client(t, func(w http.ResponseWriter, r *http.Request) {
				keys[r.Header.Get("Idempotency-Key")] = true
				if times.Add(1) < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				_, _ = io.WriteString(w, `{"data": null}`)
			})
			err := c.call(t.Context(), cl)
			if times.Load() != c.times || (err == nil) != (c.times == 3) {
				t.Errorf("%d requests, %v; want %d", times.Load(), err, c.times)
			}
			if len(keys) != 1 {
				t.Errorf("the idempotency keys are %v, want one", keys)
			}
		})
	}
}

func TestUnreachableServersAreNamed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	s.Close()
	c, err := api.NewClient(api.ClientConfig{BaseURL: s.URL, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Halt(t.Context()); err == nil || !strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), "halt") {
		t.Errorf("Halt = %v, want an error that names the server alone", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if err := c.Halt(ctx); !errors.Is(err, cause) {
		t.Errorf("Halt = %v, want the cause", err)
	}
}

func TestErrorsAreDecoded(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) error {
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}, func(c *api.ClientConfig) { c.MaxRetries = -1 })
		return c.Halt(t.Context())
	}
	want := &api.Error{
		Message: "Invalid request: no", Code: "invalid", TraceID: "t", Status: 400,
		Details: map[string]any{"validation_errors": []any{map[string]any{"loc": []any{"x"}}}},
	}
	var got *api.Error
	err := answer(400, `{"message": "Invalid request: no", "code": "invalid", "trace_id": "t", "error_details": {"validation_errors": [{"loc": ["x"]}]}}`)
	if !errors.As(err, &got) {
		t.Fatalf("Halt = %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the error differs (-want +got):\n%s", diff)
	}
	if err := answer(404, "<html>"); !api.IsNotFound(err) || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("a page instead of JSON = %v", err)
	}
	if err := answer(409, `{"message": "x"}`); !api.IsConflict(err) || !errors.Is(err, &api.Error{Status: 409, Code: "conflict"}) {
		t.Errorf("a conflict = %v", err)
	}
	if err := answer(302, ""); err == nil {
		t.Error("a redirection is followed or taken for a success")
	}
	if err := answer(200, `[`); err == nil {
		t.Error("broken JSON is taken")
	}
}

func TestEventsSurviveBrokenStreams(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	ids := make(chan string, 10)
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("Last-Event-ID")
		n := opened.Add(1)
		if n == 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "retry: 1\n: hello\n\nid: b-%d\ndata: {\"kind\":\"version\",\ndata: \"id\":\"%d\"}\n\n: \n\n", n, n)
	})
	var got []api.Event
	err := c.Events(t.Context(), func(e api.Event) bool {
		got = append(got, e)
		return len(got) < 3
	})
	if err != nil {
		t.Fatalf("Events = %v", err)
	}
	want := []api.Event{{Kind: "resync"}, {Kind: "version", ID: "1"}, {Kind: "version", ID: "3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
	for _, want := range []string{"", "b-1", "b-1"} {
		if got := <-ids; got != want {
			t.Errorf("Last-Event-ID = %q, want %q", got, want)
		}
	}
}

func TestEventsEndWhenRefused(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	var refused *api.Error
	if err := c.Events(t.Context(), func(api.Event) bool { return true }); !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("Events = %v, want the refusal", err)
	}
}

func TestAwaitLooksAlsoWithoutEvents(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	n := 0
	got, err := api.Await(t.Context(), c, nil, func(context.Context) (int, bool, error) { n++; return n, n == 3, nil })
	if got != 3 || err != nil {
		t.Errorf("Await = %d, %v", got, err)
	}
	broken := errors.New("broken")
	if _, err := api.Await(t.Context(), c, nil, func(context.Context) (int, bool, error) { return 0, false, broken }); !errors.Is(err, broken) {
		t.Errorf("Await = %v, want the error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := api.Await(ctx, c, nil, func(context.Context) (int, bool, error) { cancel(); return 0, false, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %v, want that it was cancelled", err)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 5, 4, 10, 11, 12, 345678000, time.UTC)
	for _, text := range []string{
		"2026-05-04T10:11:12.345678+00:00", "2026-05-04T10:11:12.345678Z", "2026-05-04T10:11:12.345678", "2026-05-04 10:11:12.345678",
		"2026-05-04T12:11:12.345678+02:00", "2026-05-04T12:11:12.345678 02:00", "2026-05-04T12:11:12.345678+0200", " 2026-05-04 12:11:12.345678+02:00",
	} {
		if got, err := api.ParseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("ParseTime(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"2026-05-04", "2026-05-04T00:00", "2026-05-04 00:00"} {
		if got, err := api.ParseTime(text); err != nil || !got.Equal(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("ParseTime(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-13-04", "12:00"} {
		if _, err := api.ParseTime(text); err == nil {
			t.Errorf("ParseTime(%q) fails not", text)
		}
	}
	type holder struct {
		A api.Time  `json:"a"`
		B *api.Time `json:"b"`
	}
	text, err := json.Marshal(holder{A: api.NewTime(want.In(time.FixedZone("x", 3600))), B: api.OptionalTime(time.Time{})})
	if err != nil || string(text) != `{"a":"2026-05-04T10:11:12.345678+00:00","b":null}` {
		t.Errorf("Marshal = %s, %v", text, err)
	}
	var back holder
	if err := json.Unmarshal([]byte(`{"a":null,"b":"2026-05-04T10:11:12.345678+00:00"}`), &back); err != nil || !back.A.IsZero() || !back.B.Equal(want) {
		t.Errorf("Unmarshal = %+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"a":"soon"}`), &back); err == nil {
		t.Error("Unmarshal takes a time that is none")
	}
}

func FuzzParseTime(f *testing.F) {
	f.Add("2026-05-04T12:11:12.345678 02:00")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := api.ParseTime(text)
		if err != nil || parsed.Year() < 1 || parsed.Year() > 9999 {
			return
		}
		again, err := api.ParseTime(api.NewTime(parsed).String())
		if err != nil && !parsed.IsZero() || !parsed.IsZero() && !again.Equal(parsed.Truncate(time.Microsecond)) {
			t.Errorf("%q = %v, which does not come back: %v, %v", text, parsed, again, err)
		}
	})
}
