package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

var update = flag.Bool("update", false, "rewrite the committed API document and golden answers")

func TestEveryRouteNamesItsPermission(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake())
	label := regexp.MustCompile(`^[a-z-]+(\.[a-z-]+)*$`)
	names := map[string]string{}
	for _, e := range s.table {
		call := e.method + " " + e.path
		if e.public != (e.permission == "") {
			t.Errorf("%s: public = %v with permission %q", call, e.public, e.permission)
		}
		if !e.public && !label.MatchString(e.permission) {
			t.Errorf("%s: the permission %q is not a label", call, e.permission)
		}
		if len(e.clients) == 0 {
			t.Errorf("%s: no client types", call)
		}
		version := e.path[:len("/api/v1")]
		if was, twice := names[version+e.name]; twice {
			t.Errorf("%s: the name %s is also that of %s", call, e.name, was)
		}
		names[version+e.name] = call
		if e.scoped && e.environmentArg != "" {
			t.Errorf("%s: the environment is in the header and in an argument", call)
		}
		for _, v := range variables(e.path) {
			if !slices.ContainsFunc(e.args, func(a argument) bool { return a.name == v && a.inPath }) {
				t.Errorf("%s: the variable %s is no argument", call, v)
			}
		}
		if version == "/api/v3" && e.doc == "" {
			t.Errorf("%s: no documentation", call)
		}
		reads := e.method == http.MethodGet || e.method == http.MethodHead
		if reads && !e.changes && strings.HasSuffix(e.permission, ".write") {
			t.Errorf("%s: a read with the permission %s", call, e.permission)
		}
	}
}

func TestOpenAPIDocumentIsCommitted(t *testing.T) {
	t.Parallel()
	const file = "../api/openapi.json"
	got, err := newTestServer(t, newFake()).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the routing table says; run the test with -update (-committed +generated):\n%.2000s", file, diff)
	}
	var references func(v any)
	var doc map[string]any
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	components := doc["components"].(map[string]any)
	references = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				parts := strings.Split(strings.TrimPrefix(ref, "#/components/"), "/")
				if components[parts[0]].(map[string]any)[parts[1]] == nil {
					t.Errorf("the reference %s leads nowhere", ref)
				}
			}
			for _, x := range v {
				references(x)
			}
		case []any:
			for _, x := range v {
				references(x)
			}
		}
	}
	references(doc)
}

func TestNewRefusesUnsafeConfigurations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no store":          {Config{}, "store"},
		"open to the world": {Config{Store: newFake(), Addresses: []string{"0.0.0.0:8888"}}, "authentication"},
		"a host name":       {Config{Store: newFake(), Addresses: []string{"127.0.0.1:1", "example.com:8888"}}, "authentication"},
		"all addresses":     {Config{Store: newFake(), Addresses: []string{":8888"}}, "authentication"},
		"no port":           {Config{Store: newFake(), Addresses: []string{"localhost"}}, "host:port"},
		"half of TLS":       {Config{Store: newFake(), TLSCertFile: "x"}, "key file"},
		"a strange origin":  {Config{Store: newFake(), AllowOrigin: "::"}, "origin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New error = %v, want one about %q", err, c.want)
			}
		})
	}
	for name, c := range map[string]Config{
		"loopback":       {Store: newFake(), Addresses: []string{"127.0.0.1:8888", "[::1]:8888", "localhost:0"}},
		"insecure":       {Store: newFake(), Addresses: []string{":8888"}, AllowInsecure: true},
		"authentication": {Store: newFake(), Addresses: []string{":8888"}, Authenticator: BearerTokens{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := New(c); err != nil {
				t.Errorf("New error = %v, want none", err)
			}
		})
	}
}

func TestListHasEnvelopeMetadataAndLinks(t *testing.T) {
	t.Parallel()
	f := newFake()
	w := do(t, newTestServer(t, f), "GET", "/api/v2/desiredstate?limit=2&filter.status=active&filter.status=retired&filter.version=gt:1&filter.date=le:2026-02-03&end=9", "")
	status(t, w, 200)
	want := `{
		"data": [
			{"version": 7, "date": null, "total": 2, "labels": [{"name": "api", "message": "a <b>"}], "status": "active", "released": false},
			{"version": 6, "date": "2026-01-02T03:04:05.000006+00:00", "total": 0, "labels": [], "status": "retired", "released": false}
		],
		"links": {
			"self": "/api/v2/desiredstate?end=9&FILTERS",
			"next": "/api/v2/desiredstate?end=6&FILTERS",
			"prev": "/api/v2/desiredstate?FILTERS&start=7",
			"first": "/api/v2/desiredstate?FILTERS"
		},
		"metadata": {"total": 10, "before": 3, "after": 5, "page_size": 2}
	}`
	want = strings.ReplaceAll(want, "FILTERS", "filter.date=le%3A2026-02-03&filter.status=active&filter.status=retired&filter.version=gt%3A1&limit=2&sort=version.desc")
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(want), &a), json.Unmarshal(w.Body.Bytes(), &b)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the answer differs (-want +got):\n%s", diff)
	}
	one := 1
	if diff := cmp.Diff(model.Page{Sort: "version", Descending: true, Limit: 2, Upper: &model.Bound{Value: "9"}}, f.page); diff != "" {
		t.Errorf("the page differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(model.IntRange{Above: &one}, f.filter.Number); diff != "" {
		t.Errorf("the filter differs (-want +got):\n%s", diff)
	}
	if w.Header().Get("X-Inmanta-tid") != testEnvironment.String() {
		t.Errorf("the environment is not echoed: %v", w.Header())
	}
}

func TestRequestsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, target, body string
		headers                    []string
		status                     int
		message                    string
	}{
		{"unknown path", "GET", "/api/v2/nothing", "", nil, 404, "does not exist"},
		{"wrong method", "DELETE", "/api/v2/desiredstate", "", nil, 405, "DELETE"},
		{"trailing slash", "GET", "/api/v2/desiredstate/", "", nil, 404, "does not exist"},
		{"no environment", "GET", "/api/v2/desiredstate", "", []string{"X-Inmanta-tid: "}, 400, "Field 'tid' is required."},
		{"unknown environment", "GET", "/api/v2/desiredstate", "", []string{"X-Inmanta-tid: 99999999-2222-3333-4444-555555555555"}, 404, "Request or referenced resource does not exist: The given environment id does not exist!"},
		{"environment is no uuid", "GET", "/api/v2/desiredstate", "", []string{"X-Inmanta-tid: prod"}, 400, "not a uuid"},
		{"two environments", "GET", "/api/v2/desiredstate?tid=99999999-2222-3333-4444-555555555555", "", nil, 400, "differ"},
		{"unknown argument", "GET", "/api/v2/desiredstate?colour=red", "", nil, 400, "Invalid request: request contains fields {'colour'} that are not declared in method and no kwargs argument is provided."},
		{"missing argument", "POST", "/api/v2/environment_settings/auto_deploy", "{}", nil, 400, "Invalid request: Field 'value' is required."},
		{"broken body", "POST", "/api/v2/environment_settings/auto_deploy", "{", nil, 400, "The request body couldn't be decoded as a JSON"},
		{"body is a list", "POST", "/api/v2/environment_settings/auto_deploy", "[]", nil, 400, "The request body couldn't be decoded as a JSON"},
		{"unknown setting", "POST", "/api/v2/environment_settings/nothing", `{"value": 1}`, nil, 404, "there is no such setting"},
		{"bad setting", "POST", "/api/v2/environment_settings/auto_deploy", `{"value": 7}`, nil, 400, "auto_deploy"},
		{"limit too large", "GET", "/api/v2/desiredstate?limit=1001", "", nil, 400, "1000"},
		{"limit negative", "GET", "/api/v2/desiredstate?limit=-1", "", nil, 400, "negative"},
		{"limit no number", "GET", "/api/v2/desiredstate?limit=many", "", nil, 400, "whole number"},
		{"limit twice", "GET", "/api/v2/desiredstate?limit=1&limit=2", "", nil, 400, "exactly one"},
		{"unknown sort", "GET", "/api/v2/desiredstate?sort=colour.asc", "", nil, 400, "version"},
		{"sort without direction", "GET", "/api/v2/desiredstate?sort=version", "", nil, 400, "asc or"},
		{"both bounds", "GET", "/api/v2/desiredstate?start=1&end=2", "", nil, 400, "only one"},
		{"bound of the wrong type", "GET", "/api/v2/desiredstate?start=x", "", nil, 400, "whole number"},
		{"unknown filter", "GET", "/api/v2/desiredstate?filter.colour=red", "", nil, 400, "colour"},
		{"filter value", "GET", "/api/v2/desiredstate?filter.status=blue", "", nil, 400, "blue"},
		{"filter operator", "GET", "/api/v2/desiredstate?filter.version=eq:1", "", nil, 400, "lt:"},
		{"filter bool twice", "GET", "/api/v2/desiredstate?filter.released=true&filter.released=false", "", nil, 400, "one value"},
		{"broken query", "GET", "/api/v2/desiredstate?limit=%zz", "", nil, 400, "query string"},
		{"version is no number", "GET", "/api/v2/desiredstate/x", "", nil, 400, "whole number"},
		{"resource id", "GET", "/api/v2/resource/nonsense", "", nil, 400, "ns::Type"},
		{"unknown encoding", "POST", "/api/v2/environment_settings/auto_deploy", "x", []string{"Content-Encoding: br"}, 400, "Content-Encoding"},
		{"broken gzip", "POST", "/api/v2/environment_settings/auto_deploy", "not gzip", []string{"Content-Encoding: gzip"}, 400, "gzip"},
		{"diff out of order", "GET", "/api/v2/desiredstate/diff/5/5", "", nil, 400, "in order"},
		{"notification without flags", "PATCH", "/api/v2/notification/99999999-2222-3333-4444-555555555555", "{}", nil, 400, "read"},
		{"token without authentication", "POST", "/api/v2/environment_auth", `{"client_types": ["api"]}`, nil, 400, "disabled"},
		{"scheduler agent", "POST", "/api/v2/agent/$__scheduler/pause", "", nil, 400, "halt"},
		{"unknown action", "POST", "/api/v2/agents/dance", "", nil, 400, "dance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := do(t, newTestServer(t, newFake()), c.method, c.target, c.body, c.headers...)
			status(t, w, c.status)
			got := decodeJSON(t, w)
			if text, _ := got["message"].(string); !strings.Contains(text, c.message) {
				t.Errorf("message = %q, want %q in it", text, c.message)
			}
			if got["code"] != api.CodeOf(c.status) {
				t.Errorf("code = %v, want %s", got["code"], api.CodeOf(c.status))
			}
			if got["trace_id"] != w.Header().Get("X-Trace-Id") {
				t.Errorf("trace_id = %v, want that of the header", got["trace_id"])
			}
			if c.status == 405 && !strings.Contains(w.Header().Get("Allow"), "GET") {
				t.Errorf("Allow = %q, want GET in it", w.Header().Get("Allow"))
			}
		})
	}
}

func TestErrorsOfTheStoreHaveTheirStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		prefix string
	}{
		{fmt.Errorf("version 3: %w", model.ErrNotFound), 404, "Request or referenced resource does not exist: version 3"},
		{fmt.Errorf("x: %w", model.ErrConflict), 409, "Request conflicts with the current state of the resource: x"},
		{fmt.Errorf("x: %w", model.ErrInvalid), 400, "Invalid request: x"},
		{fmt.Errorf("x: %w", model.ErrForbidden), 403, "Access denied: x"},
		{fmt.Errorf("x: %w", model.ErrUnavailable), 503, "x"},
		{context.DeadlineExceeded, 503, "the request took too long"},
		{fmt.Errorf("reading: %w", context.Canceled), 503, "the request was given up"},
		{errors.New("password of the database is hunter2"), 500, "An unexpected error occurred in the server while processing the request: "},
	} {
		f := newFake()
		f.err = c.err
		w := do(t, newTestServer(t, f), "GET", "/api/v2/desiredstate", "")
		status(t, w, c.status)
		if text := decodeJSON(t, w)["message"].(string); !strings.HasPrefix(text, c.prefix) || strings.Contains(text, "hunter2") {
			t.Errorf("message for %v = %q, want %q", c.err, text, c.prefix)
		}
	}
}

func TestArgumentsAreMerged(t *testing.T) {
	t.Parallel()
	set := func(target, body string, headers ...string) string {
		t.Helper()
		f := newFake()
		w := do(t, newTestServer(t, f), "POST", target, body, headers...)
		status(t, w, 200)
		if w.Body.Len() != 0 {
			t.Errorf("the body is %q, want none", w.Body)
		}
		for name, value := range f.environment.Settings {
			return name + "=" + string(value)
		}
		return ""
	}
	if got := set("/api/v2/environment_settings/auto_deploy?value=no", ""); got != "auto_deploy=false" {
		t.Errorf("an argument in the query: %s", got)
	}
	if got := set("/api/v2/environment_settings/auto_deploy?value=off", `{"value": true, "id": "auto_full_compile"}`); got != "auto_deploy=false" {
		t.Errorf("query over body, path over body: %s", got)
	}
	if got := set("/api/v2/environment_settings/auto_deploy?id=server_compile", `{"value": true}`); got != "server_compile=true" {
		t.Errorf("query over path: %s", got)
	}
	if got := set("/api/v2/environment_settings/auto_deploy", `{"value": true, "tid": "`+testEnvironment.String()+`"}`, "X-Inmanta-tid: "); got != "auto_deploy=true" {
		t.Errorf("the environment as an argument: %s", got)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"value": "1"}`))
	_ = z.Close()
	if got := set("/api/v2/environment_settings/auto_deploy", packed.String(), "Content-Encoding: gzip"); got != "auto_deploy=true" {
		t.Errorf("a packed body: %s", got)
	}
}

func TestBodiesAreLimitedPackedAndUnpacked(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake(), func(c *Config) { c.MaxBody = 1000 })
	long := `{"value": "` + strings.Repeat("x", 2000) + `"}`
	status(t, do(t, s, "POST", "/api/v2/environment_settings/auto_deploy", long), 413)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(long))
	_ = z.Close()
	if packed.Len() > 1000 {
		t.Fatal("the packed body is not small")
	}
	status(t, do(t, s, "POST", "/api/v2/environment_settings/auto_deploy", packed.String(), "Content-Encoding: gzip"), 413)
}

func TestResourceIDsAreOnePathSegment(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake())
	for _, id := range []string{"fs::File[web,path=/etc/a b+c%2F]", "std::X[a,k=v]", "fs::File[internal,path=/ü,v=1]"} {
		w := do(t, s, "GET", "/api/v2/resource/"+url.PathEscape(id), "")
		status(t, w, 200)
		data := decodeJSON(t, w)["data"].(map[string]any)
		if got := data["resource_id"]; got != strings.TrimSuffix(id, ",v=1") && got != id {
			t.Errorf("resource_id = %v, want %s", got, id)
		}
		if !strings.Contains(w.Body.String(), "12345678901234567890") {
			t.Errorf("a large number lost its text: %s", w.Body)
		}
	}
	status(t, do(t, s, "GET", "/api/v2/resource/fs::File%5Bweb,path=%2Fetc%2Fhosts%5D", ""), 200)
}

func TestAnswersArePackedOnRequest(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake())
	w := do(t, s, "GET", "/api/v2/docs?format=openapi", "", "Accept-Encoding: br, gzip;q=0.5")
	status(t, w, 200)
	if w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("headers = %v, want gzip", w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Data struct{ OpenAPI string } }
	if err := json.NewDecoder(z).Decode(&doc); err != nil || doc.Data.OpenAPI != "3.1.0" {
		t.Errorf("the document = %+v, %v", doc, err)
	}
	if w := do(t, s, "GET", "/api/v2/docs", "", "Accept-Encoding: gzip;q=0"); w.Header().Get("Content-Encoding") != "" || !strings.Contains(w.Body.String(), "<h1>") {
		t.Errorf("the page = %v %.100s", w.Header(), w.Body)
	}
}

func TestSecurity(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake(), func(c *Config) {
		c.AllowedHosts = []string{"intendant.example.com"}
		c.AllowOrigin = "https://console.example.com"
		c.Webhooks = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		c.Agents = c.Webhooks
	})
	target := "/api/v2/environment_settings/auto_deploy?value=1"
	for _, c := range []struct {
		name, method, target string
		headers              []string
		status               int
	}{
		{"plain client", "POST", target, nil, 200},
		{"same origin", "POST", target, []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"other site", "POST", target, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"other origin", "POST", target, []string{"Origin: https://evil.example.com"}, 403},
		{"allowed origin", "POST", target, []string{"Sec-Fetch-Site: cross-site", "Origin: https://console.example.com"}, 200},
		{"a read from another site", "GET", "/api/v2/desiredstate", []string{"Sec-Fetch-Site: cross-site"}, 200},
		{"a read that changes", "GET", "/api/v1/notify/" + testEnvironment.String(), []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"rebound name", "GET", "/api/v2/desiredstate", []string{"Host: evil.example.com:8888"}, 403},
		{"a webhook through a tunnel", "POST", "/hooks/demo", []string{"Host: abc.tunnel.example.com"}, 204},
		{"an agent through a proxy", "GET", "/api/v3/agent/session", []string{"Host: abc.tunnel.example.com"}, 204},
		{"allowed name", "GET", "/api/v2/desiredstate", []string{"Host: Intendant.example.com"}, 200},
		{"an address", "GET", "/api/v2/desiredstate", []string{"Host: 192.0.2.1:8888"}, 200},
		{"an IPv6 address", "GET", "/api/v2/desiredstate", []string{"Host: [::1]:8888"}, 200},
		{"options", "OPTIONS", "/api/v2/nowhere", nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := do(t, s, c.method, c.target, "", c.headers...)
			status(t, w, c.status)
			if kind := w.Header().Get("Content-Type"); kind != "" && kind != "application/json" && kind != "text/plain; charset=utf-8" {
				t.Errorf("Content-Type = %q, which existing clients do not take for JSON", kind)
			}
			for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "X-Trace-Id"} {
				if w.Header().Get(name) == "" {
					t.Errorf("the header %s is missing", name)
				}
			}
			if c.status == 200 && w.Header().Get("Access-Control-Allow-Origin") != "https://console.example.com" {
				t.Errorf("Access-Control-Allow-Origin = %q", w.Header().Get("Access-Control-Allow-Origin"))
			}
		})
	}
}

func TestTraceIsContinued(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake())
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	w := do(t, s, "GET", "/healthz", "", "Traceparent: 00-"+id+"-00f067aa0ba902b7-01")
	if got := w.Header().Get("X-Trace-Id"); got != id {
		t.Errorf("X-Trace-Id = %s, want %s", got, id)
	}
	for _, broken := range []string{"", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "00-xyz-1-1", "ff-" + id + "-1-1", "00-" + strings.ToUpper(id) + "-1-1"} {
		w := do(t, s, "GET", "/healthz", "", "Traceparent: "+broken)
		if got := w.Header().Get("X-Trace-Id"); len(got) != 32 || got == id {
			t.Errorf("X-Trace-Id for %q = %q, want a new one", broken, got)
		}
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	other := model.EnvironmentID{UUID: testEnvironment.UUID}
	other.UUID[0]++
	tokens := BearerTokens{"ops": "correct horse", "nobody": ""}
	s := newTestServer(t, newFake(), func(c *Config) { c.Authenticator = tokens })
	status(t, do(t, s, "GET", "/api/v2/desiredstate", ""), 401)
	status(t, do(t, s, "GET", "/api/v2/desiredstate", "", "Authorization: Basic abc"), 401)
	status(t, do(t, s, "GET", "/api/v2/desiredstate", "", "Authorization: Bearer wrong"), 403)
	status(t, do(t, s, "GET", "/api/v2/desiredstate", "", "Authorization: Bearer correct horse", "Host: any.example.com"), 200)
	status(t, do(t, s, "GET", "/api/v2/health", ""), 200)
	status(t, do(t, s, "GET", "/healthz", ""), 200)

	id := Identity{Environment: &testEnvironment, ClientTypes: []string{"agent"}}
	for _, c := range []struct {
		name   string
		access Access
		want   error
	}{
		{"own", Access{ClientTypes: []string{"api", "agent"}, Environment: &testEnvironment}, nil},
		{"another environment", Access{ClientTypes: []string{"agent"}, Environment: &other}, model.ErrForbidden},
		{"no environment", Access{ClientTypes: []string{"agent"}}, model.ErrForbidden},
		{"files are everybody's", Access{ClientTypes: []string{"agent"}, Permission: "file.read"}, nil},
		{"another type", Access{ClientTypes: []string{"api"}, Environment: &testEnvironment}, model.ErrForbidden},
	} {
		if err := id.covers(c.access); !errors.Is(err, c.want) {
			t.Errorf("%s: covers = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestHealthReadinessAndMetrics(t *testing.T) {
	t.Parallel()
	f := newFake()
	registry := prometheus.NewRegistry()
	broken := errors.New("no lease")
	s := newTestServer(t, f, func(c *Config) {
		c.Registerer, c.Gatherer = registry, registry
		c.Ready = []Check{{Name: "scheduler", Run: func(context.Context) error { return broken }}}
	})
	status(t, do(t, s, "GET", "/healthz", ""), 200)
	w := do(t, s, "GET", "/readyz", "")
	status(t, w, 503)
	if diff := cmp.Diff(map[string]any{"database": "ok", "scheduler": "no lease"}, decodeJSON(t, w)); diff != "" {
		t.Errorf("readyz differs (-want +got):\n%s", diff)
	}
	status(t, do(t, s, "GET", "/api/v2/health", ""), 500)
	if got := decodeJSON(t, do(t, s, "GET", "/api/v1/serverstatus", ""))["data"].(map[string]any)["status"]; got != "Error" {
		t.Errorf("status = %v, want Error", got)
	}
	broken = nil
	status(t, do(t, s, "GET", "/readyz", ""), 200)
	status(t, do(t, s, "GET", "/api/v2/health", ""), 200)
	w = do(t, s, "GET", "/metrics", "")
	status(t, w, 200)
	if !strings.Contains(w.Body.String(), `intendant_http_requests_total{endpoint="readyz",method="GET",status="503"} 1`) {
		t.Errorf("the metrics lack the request to readyz:\n%s", w.Body)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake(), func(c *Config) {
		c.Console = fstest.MapFS{
			"index.html":       {Data: []byte("<html>console</html>")},
			"assets/app-1a.js": {Data: []byte("let x")},
		}
	})
	for _, c := range []struct {
		target, body, kind, cache string
		status                    int
	}{
		{"/console", "console", "text/html; charset=utf-8", "no-cache", 200},
		{"/console/", "console", "text/html; charset=utf-8", "no-cache", 200},
		{"/console/environments/1?x=y", "console", "text/html; charset=utf-8", "no-cache", 200},
		{"/console/resources/fs::File[a,path=%2Fetc%2Fx.conf]", "console", "text/html; charset=utf-8", "no-cache", 200},
		{"/console/../../etc/passwd", "", "", "", 404},
		{"/console/assets/app-1a.js", "let x", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", 200},
		{"/console/assets/gone.js", "", "", "", 404},
		{"/console/assets", "console", "text/html; charset=utf-8", "no-cache", 200},
	} {
		w := do(t, s, "GET", c.target, "")
		if w.Code != c.status {
			t.Errorf("GET %s = %d, want %d", c.target, w.Code, c.status)
		}
		if c.status == 200 && (!strings.Contains(w.Body.String(), c.body) || w.Header().Get("Content-Type") != c.kind || w.Header().Get("Cache-Control") != c.cache) {
			t.Errorf("GET %s = %v %q", c.target, w.Header(), w.Body)
		}
	}
	for _, target := range []string{"/", "/dashboard", "/dashboard/x/y"} {
		if w := do(t, s, "GET", target, ""); w.Code != 302 || w.Header().Get("Location") != "/console" {
			t.Errorf("GET %s = %d %v", target, w.Code, w.Header())
		}
	}
	status(t, do(t, newTestServer(t, newFake()), "GET", "/console", ""), 404)
}

func TestPanicsAreAnswered(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, newFake(), func(c *Config) {
		c.Webhooks = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
		c.Agents = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, string(TraceOf(r))) })
	})
	w := do(t, s, "POST", "/hooks/demo", "{}")
	status(t, w, 500)
	if strings.Contains(w.Body.String(), "boom") {
		t.Errorf("the answer gives the cause away: %s", w.Body)
	}
	w = do(t, s, "GET", "/api/v3/agent/session", "")
	if w.Code != 200 || w.Body.String() != w.Header().Get("X-Trace-Id") {
		t.Errorf("the agent's handler = %d %s", w.Code, w.Body)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("POST", "/api/v2/environment_settings/auto_deploy", "value=1&filter.x=2", `{"value": {"a": [1]}}`)
	f.Add("GET", "/api/v2/desiredstate", "filter.version=lt:3&limit=0&sort=version.asc", "")
	f.Add("GET", "/api/v2/resource/fs::File[a,path=%2Fb]", "", "")
	f.Add("PUT", "/api/v1/version", "", `{"version": 1, "resources": [{"id": "a::B[c,d=e],v=1", "requires": [1]}]}`)
	s, err := New(Config{Store: newFake()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		for i := range s.table {
			e := &s.table[i]
			if e.method != method && method != "" {
				continue
			}
			inPath := map[string]string{}
			for _, name := range variables(e.path) {
				inPath[name] = path
			}
			collected, err := collect(e, []byte(body), inPath, values)
			if err != nil {
				continue
			}
			c := &call{endpoint: e}
			if _, err := s.subject(c, &http.Request{Header: http.Header{}}, collected); err != nil {
				continue
			}
			_ = e.check(collected)
		}
		if strings.HasPrefix(body, "{") {
			var a uploadArgs
			if json.Unmarshal([]byte(body), &a) == nil {
				_, _ = stateOf(a)
			}
		}
	})
}
