package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/diag"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/server"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

var _ server.Store = (*store.Store)(nil)

// bundle is a server on a database of its own, and a transcript of what was asked and answered.
type bundle struct {
	t      *testing.T
	store  *store.Store
	server *server.Server
	http   *httptest.Server
	env    string
	text   bytes.Buffer
}

func fiveFields(expression string) error {
	if len(strings.Fields(expression)) != 5 {
		return errors.New("a cron expression has five fields")
	}
	return nil
}

// clock is the time of a test's server: a second later whenever it is looked at, so that what is asked later is later.
func clock() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return storetest.Now().Add(time.Hour + time.Duration(looks.Add(1))*time.Second) }
}

func setup(t *testing.T, changes ...func(*server.Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, store: storetest.New(t)}
	c := server.Config{Store: b.store, Now: clock(), ValidateCron: fiveFields, Version: "1.2.3"}
	for _, change := range changes {
		change(&c)
	}
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.server = s
	b.http = httptest.NewServer(s.Handler())
	t.Cleanup(b.http.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.RunEvents(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return b
}

// client is the Go client of the bundle's environment.
func (b *bundle) client() *api.Client {
	b.t.Helper()
	c, err := api.NewClient(api.ClientConfig{BaseURL: b.http.URL, Environment: b.env, Poll: time.Second, MaxRetries: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// raw sends a request and returns the answer's status and body.
func (b *bundle) raw(method, path, body string) (int, []byte) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.http.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if b.env != "" {
		req.Header.Set(api.EnvironmentHeader, b.env)
	}
	req.Header.Set("Traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// call sends a request, writes it and its answer into the transcript and returns the answer's value.
func (b *bundle) call(method, path, body string) any {
	b.t.Helper()
	code, answer := b.raw(method, path, body)
	fmt.Fprintf(&b.text, "> %s %s\n", method, path)
	if body != "" {
		fmt.Fprintf(&b.text, "> %s\n", body)
	}
	fmt.Fprintf(&b.text, "%d\n", code)
	var v any
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &v); err != nil {
			b.t.Fatalf("%s %s: the answer %d %q is not JSON: %v", method, path, code, answer, err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, answer, "", "  "); err != nil {
			b.t.Fatal(err)
		}
		pretty.WriteByte('\n')
		_, _ = pretty.WriteTo(&b.text)
	}
	b.text.WriteByte('\n')
	return v
}

// at follows keys and indexes into a decoded answer.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[p] == nil {
				t.Fatalf("no %q in %v", p, v)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || len(l) <= p {
				t.Fatalf("no item %d in %v", p, v)
			}
			v = l[p]
		}
	}
	return v
}

var (
	uuids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)`)
	databases = regexp.MustCompile(`"(postgresql_version|host|database|token|uptime|max_pool|open_connections|free_pool|free_connections)": ("[^"]*"|[\d.e+-]+)`)
)

// golden compares the transcript with the committed one. Ids are numbered in the order in which they appear; times that are not
// the tests' own are masked.
func (b *bundle) golden(name string) {
	b.t.Helper()
	seen := map[string]string{}
	got := uuids.ReplaceAllStringFunc(b.text.String(), func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("<id %d>", len(seen)+1)
		}
		return seen[id]
	})
	got = moments.ReplaceAllStringFunc(got, func(text string) string {
		if when, err := api.ParseTime(text); err == nil && when.Year() == storetest.Now().Year() && when.YearDay() == storetest.Now().YearDay() {
			return text
		}
		return "<time>"
	})
	got = databases.ReplaceAllString(got, `"$1": "<masked>"`)
	file := filepath.Join("testdata", "golden", name+".txt")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		b.t.Errorf("the answers are not those of %s; see what has changed and run with -update (-want +got):\n%s", file, diff)
	}
}

// inEnvironment gives the bundle an environment.
func (b *bundle) inEnvironment(changes ...func(*model.Environment)) model.Environment {
	b.t.Helper()
	e := storetest.Environment(b.t, b.store, append([]func(*model.Environment){func(e *model.Environment) { e.Name = "prod" }}, changes...)...)
	b.env = e.ID.String()
	return e
}

func TestProjectsAndEnvironments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, _ := at(t, b.call("PUT", "/api/v2/project", `{"name": "shop"}`), "data", "id").(string)
	b.call("PUT", "/api/v1/project", `{"name": "shop"}`)
	b.call("PUT", "/api/v1/project", `{"name": "  "}`)
	b.call("POST", "/api/v1/project/"+project, `{"name": "store"}`)
	b.call("GET", "/api/v2/project/"+uuid.Nil.String(), "")

	env, _ := at(t, b.call("PUT", "/api/v1/environment", `{"project_id": "`+project+`", "name": "prod", "repository": "https://git.example.com/shop/Model.git", "branch": "main"}`), "environment", "id").(string)
	b.call("PUT", "/api/v1/environment", `{"project_id": "`+project+`", "name": "prod"}`)
	b.call("PUT", "/api/v2/environment", `{"project_id": "`+uuid.Nil.String()+`", "name": "prod"}`)
	b.call("PUT", "/api/v2/environment", `{"project_id": "`+project+`", "name": "test", "repository": "https://git.example.com/x"}`)
	b.call("PUT", "/api/v2/environment", `{"project_id": "`+project+`", "name": "test", "icon": "image/gif;base64,AAAA"}`)
	b.call("PUT", "/api/v2/environment", `{"project_id": "`+project+`", "name": "test", "repository": "--upload-pack=x", "branch": "main"}`)
	b.call("PUT", "/api/v2/environment", `{"project_id": "`+project+`", "name": "test", "repository": "https://u:secret@git.example.com/x", "branch": "main"}`)
	b.call("PUT", "/api/v2/environment", `{"project_id": "`+project+`", "name": "test", "repository": "https://git.example.com/x", "branch": "a..b"}`)
	b.call("POST", "/api/v2/environment/"+env, `{"name": "production", "description": "the real one", "branch": "release"}`)
	b.call("GET", "/api/v2/environment", "")
	b.call("GET", "/api/v2/environment/"+env+"?details=true", "")
	b.call("GET", "/api/v1/environment", "")
	b.call("GET", "/api/v1/project", "")
	b.call("GET", "/api/v2/project?environment_details=yes", "")
	b.call("DELETE", "/api/v2/project/"+project, "")

	b.call("POST", "/api/v3/environment", `{"project": "store", "name": "edge", "repository": "shop-model", "repo_path": "sites/edge", "settings": {"auto_deploy": "no"}}`)
	b.call("POST", "/api/v3/environment", `{"project": "another", "name": "edge", "repo_url": "https://git.example.com/shop/Model.git", "repo_path": "../edge"}`)
	b.call("POST", "/api/v3/environment", `{"project": "another", "name": "edge", "settings": {"nothing": 1}}`)
	b.call("POST", "/api/v3/environment", `{"name": "edge"}`)
	b.call("PATCH", "/api/v3/environment/"+env, `{"repo_path": "./sites//main/"}`)
	b.call("GET", "/api/v3/environment?deploy_summary=true", "")

	b.env = env
	b.call("POST", "/api/v2/actions/environment/halt", "")
	b.call("POST", "/api/v2/actions/environment/halt", "")
	b.call("GET", "/api/v1/environment", "")
	b.call("POST", "/api/v2/actions/environment/resume", "")
	b.call("POST", "/api/v1/environment_settings/protected_environment", `{"value": true}`)
	b.call("DELETE", "/api/v2/environment/"+env, "")
	b.call("DELETE", "/api/v1/decommission/"+env, "")
	b.call("DELETE", "/api/v1/environment_settings/protected_environment", "")
	b.call("DELETE", "/api/v2/decommission/"+env, "")
	b.call("DELETE", "/api/v1/environment/"+env, "")
	b.call("GET", "/api/v2/environment/"+env, "")
	b.golden("projects_and_environments")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inEnvironment()
	b.call("GET", "/api/v2/environment_settings", "")
	b.call("POST", "/api/v2/environment_settings/autostart_agent_repair_interval", `{"value": 30}`)
	b.call("POST", "/api/v2/environment_settings/autostart_agent_repair_interval", `{"value": "0 3 * * *"}`)
	b.call("POST", "/api/v2/environment_settings/autostart_agent_repair_interval", `{"value": "now and then"}`)
	b.call("POST", "/api/v1/environment_settings/recompile_backoff", `{"value": {"a": 1}}`)
	value := b.call("GET", "/api/v1/environment_settings/autostart_agent_repair_interval", "")
	if got := at(t, value, "value"); got != "0 3 * * *" {
		t.Errorf("the value = %v", got)
	}
	b.call("GET", "/api/v1/environment_settings/nothing", "")
	value = b.call("GET", "/api/v2/environment_settings/auto_deploy", "")
	if got := at(t, value, "data", "settings", "auto_deploy"); got != true {
		t.Errorf("the default = %v", got)
	}
	b.call("DELETE", "/api/v2/environment_settings/autostart_agent_repair_interval", "")
	list := b.call("GET", "/api/v1/environment_settings", "")
	if got, _ := at(t, list, "settings").(map[string]any); len(got) != 0 {
		t.Errorf("settings = %v, want none", got)
	}
	b.golden("settings")
}

func TestUploadsAndVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment(storetest.Setting("auto_deploy", "false"))
	const hash = "2aae6c35c94fcfb415dbe95f408b9ce91ee846ed" // of "hello world"
	b.call("POST", "/api/v1/file", `{"files": ["`+hash+`"]}`)
	b.call("PUT", "/api/v1/file/"+hash, `{"content": "aGVsbG8gd29ybGQ="}`)
	b.call("PUT", "/api/v1/file/"+hash, `{"content": "aGVsbG8="}`)
	b.call("PUT", "/api/v1/file/"+hash, `{"content": "?"}`)
	b.call("HEAD", "/api/v1/file/"+hash, "")
	b.call("HEAD", "/api/v1/file/"+strings.Repeat("0", 40), "")
	b.call("GET", "/api/v1/file/"+hash, "")
	b.call("GET", "/api/v1/file/..%2f..%2fetc", "")
	b.call("POST", "/api/v1/file", `{"files": ["`+hash+`"]}`)

	b.call("POST", "/api/v2/reserve_version", "")
	version := func(n int, resources, rest string) {
		t.Helper()
		b.call("PUT", "/api/v1/version", fmt.Sprintf(`{"version": %d, "resources": [%s], "module_version_info": {}%s}`, n, strings.ReplaceAll(resources, "V", fmt.Sprint(n)), rest))
	}
	const one = `{"id": "fs::File[web,path=/a],v=V", "path": "/a", "mode": 644, "requires": [], "version": V}`
	const two = `{"id": "fs::File[db,path=/b],v=V", "path": "/b", "mode": 600, "requires": ["fs::File[web,path=/a],v=V"], "big": 12345678901234567890}`
	version(1, one+","+two, `, "version_info": {"export_metadata": {"type": "manual", "message": "first & <best>"}}, "resource_sets": {"fs::File[db,path=/b]": "db"}`)
	version(1, one, "")
	version(9, one, "")
	b.call("POST", "/api/v2/reserve_version", "")
	version(2, one+","+one, "")
	version(2, two, "")
	version(2, `{"id": "fs::File[web,path=/a],v=1"}`, "")
	version(2, `{"id": "nonsense"}`, "")
	version(2, one, `, "resource_sets": {"fs::File[db,path=/b]": "x"}`)
	version(2, strings.Replace(one, "644", "600", 1)+`,{"id": "fs::File[db,path=/c],v=V", "content": "<<undefined>>", "requires": []},{"id": "fs::File[db,path=/d],v=V", "requires": ["fs::File[db,path=/c],v=V"]}`,
		`, "resource_sets": {"fs::File[db,path=/c]": "c", "fs::File[db,path=/d]": "d"}, "resource_state": {"fs::File[db,path=/c]": "undefined"}, "unknowns": [{"resource": "fs::File[db,path=/c]", "parameter": "size", "source": "fact"}]`)
	b.call("GET", "/api/v2/desiredstate", "")
	b.call("GET", "/api/v2/desiredstate?filter.version=ge:2&filter.status=candidate", "")
	list := b.call("GET", "/api/v1/version", "")
	versions, _ := at(t, list, "versions").([]any)
	for i, want := range []bool{false, true} { // in version 2 set d depends on set c
		if got := at(t, versions[i], "is_suitable_for_partial_compiles"); got != want {
			t.Errorf("is_suitable_for_partial_compiles of version %v = %v, want %v", at(t, versions[i], "version"), got, want)
		}
	}
	b.call("GET", "/api/v1/version?start=1&limit=1", "")
	b.call("GET", "/api/v1/version?start=1", "")
	b.call("GET", "/api/v1/version/2?include_logs=true", "")
	b.call("GET", "/api/v1/version/3", "")
	b.call("GET", "/api/v2/desiredstate/1?sort=agent.asc&filter.agent=W", "")
	b.call("GET", "/api/v2/desiredstate/7", "")
	b.call("GET", "/api/v2/desiredstate/1/resource/"+api.Segment("fs::File[db,path=/b]"), "")
	b.call("GET", "/api/v2/desiredstate/diff/1/2", "")
	b.call("GET", "/api/v2/desiredstate/diff/1/5", "")
	b.call("POST", "/api/v1/version/2", `{"push": true, "agent_trigger_method": "push_full_deploy"}`)
	b.call("POST", "/api/v1/version/2", "")
	b.call("POST", "/api/v2/desiredstate/1/promote", "")
	b.call("POST", "/api/v2/desiredstate/5/promote", `{"trigger_method": "no_push"}`)
	b.call("GET", "/api/v3/version/2", "")
	b.call("DELETE", "/api/v1/version/2", "")
	b.call("DELETE", "/api/v1/version/1", "")
	b.call("GET", "/api/v3/version", "")
	b.golden("uploads_and_versions")
	if n, err := b.store.ReleasedVersion(t.Context(), e.ID); err != nil || n != 2 {
		t.Errorf("ReleasedVersion = %d, %v", n, err)
	}
}

// deployed seeds an environment with two versions, of which some resources ran.
func deployed(t *testing.T, b *bundle) model.Environment {
	t.Helper()
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1", "b=1 > a", "old")...)
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=2", "b=1 > a", "db/c=1 > b", "u=?", "v=1 > u")...)
	lease := storetest.Lease(t, b.store, e.ID)
	snapshot, err := b.store.Snapshot(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	hash := map[model.ResourceID]string{}
	for _, i := range snapshot.Intents {
		hash[i.Resource] = i.AttributeHash
	}
	id := storetest.ID("web", "/a")
	result := model.Result{
		Task: model.TaskID{UUID: uuid.MustParse("aaaaaaaa-0000-0000-0000-000000000001")}, Environment: e.ID, Resource: id, Version: 2, Kind: model.TaskDeploy,
		AttributeHash: hash[id], Outcome: model.OutcomeDeployed, Change: model.ChangeUpdated,
		Changes: model.Diff{"content": {Current: json.RawMessage(`"1"`), Desired: json.RawMessage(`"2"`)}},
		Log: []model.LogLine{
			{Level: model.LevelInfo, Message: "updating <the> file", Time: storetest.Now().Add(time.Second), Kwargs: json.RawMessage(`{"mode":644}`)},
			{Level: model.LevelDebug, Message: "done", Time: storetest.Now().Add(2 * time.Second)},
		},
		Facts:     []model.Fact{{Name: "size", Value: "12", Expires: true}},
		StartedAt: storetest.Now(), FinishedAt: storetest.Now().Add(3 * time.Second), Trace: "0123456789abcdef0123456789abcdef",
	}
	failed := result
	failed.Task.UUID[15]++
	failed.Resource, failed.AttributeHash, failed.Outcome, failed.Change, failed.Changes, failed.Facts = storetest.ID("web", "/b"), hash[storetest.ID("web", "/b")], model.OutcomeFailed, model.ChangeNone, nil, nil
	failed.Code = "handler-error"
	failed.Log = []model.LogLine{{Level: model.LevelError, Message: "no space left on device", Time: storetest.Now().Add(2 * time.Second)}}
	failed.StartedAt = failed.StartedAt.Add(time.Second)
	failed.FinishedAt = failed.StartedAt.Add(2 * time.Second)
	var states []model.ResourceState
	for _, s := range snapshot.States {
		switch s.Resource {
		case result.Resource:
			s.Compliance, s.LastRun, s.DeployedHash, s.DeployedVersion, s.LastOutcome = model.Compliant, model.RunSuccessful, result.AttributeHash, 2, model.OutcomeDeployed
			s.LastRunAt, s.LastSuccess = result.FinishedAt, result.StartedAt
			states = append(states, s)
		case failed.Resource:
			s.Compliance, s.LastRun, s.DeployedHash, s.DeployedVersion, s.LastOutcome = model.NonCompliant, model.RunFailed, failed.AttributeHash, 2, model.OutcomeFailed
			s.LastRunAt, s.Failures = failed.FinishedAt, 3
			states = append(states, s)
		}
	}
	if len(states) != 2 {
		t.Fatalf("the snapshot has %d states of the two resources: %+v", len(states), snapshot.States)
	}
	err = b.store.SaveProgress(t.Context(), lease, model.Progress{States: states, Processed: 2, Finished: []model.Result{result, failed}, Now: storetest.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestResources(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deployed(t, b)
	a, failed := api.Segment("fs::File[web,path=/a]"), api.Segment("fs::File[web,path=/b]")
	b.call("GET", "/api/v2/resource?deploy_summary=true&sort=resource_id_value.asc", "")
	b.call("GET", "/api/v2/resource?limit=0&filter.status=!orphaned&filter.status=!undefined&sort=status.asc", "")
	b.call("GET", "/api/v2/resource?filter.status=failed&filter.status=!failed", "")
	b.call("GET", "/api/v2/resource?filter.status=shiny", "")
	b.call("GET", "/api/v2/resource?filter.agent=DB&filter.resource_type=file", "")
	b.call("GET", "/api/v2/resource/"+a, "")
	b.call("GET", "/api/v2/resource/"+api.Segment("fs::File[web,path=/none]"), "")
	b.call("GET", "/api/v3/resource/"+failed, "")
	b.call("GET", "/api/v2/resource/"+a+"/history", "")
	b.call("GET", "/api/v2/resource/"+a+"/logs", "")
	b.call("GET", "/api/v2/resource/"+a+"/logs?filter.minimal_log_level=INFO&filter.message=FILE&sort=timestamp.asc&limit=1&filter.action=deploy", "")
	b.call("GET", "/api/v2/resource/"+a+"/logs?filter.minimal_log_level=loud", "")
	b.call("GET", "/api/v2/resource/"+a+"/facts", "")
	b.call("GET", "/api/v3/resource/"+a+"/actions?limit=5", "")
	b.call("GET", "/api/v2/resource_actions?resource_type=fs::File&agent=web&log_severity=ERROR", "")
	b.call("GET", "/api/v2/resource_actions?attribute=path&attribute_value=/a&limit=1&exclude_changes=nochange", "")
	b.call("GET", "/api/v2/resource_actions?attribute=path", "")
	b.call("GET", "/api/v2/resource_actions?action_id="+uuid.Nil.String(), "")
	b.call("GET", "/api/v1/resource/"+api.Segment("fs::File[web,path=/a],v=2")+"?logs=true&log_action=deploy", "")
	b.call("GET", "/api/v1/resource/"+a, "")
	b.call("GET", "/api/v3/resource/"+failed+"/explain", "")
	b.call("GET", "/api/v3/resource/"+api.Segment("fs::File[web,path=/v]")+"/explain", "")
	b.call("GET", "/api/v3/resource/"+a+"/explain", "")
	b.call("GET", "/api/v3/trace/0123456789abcdef0123456789abcdef", "")
	b.call("GET", "/api/v3/trace/xyz", "")
	b.golden("resources")
}

func TestDeploysAndDryRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	b.call("POST", "/api/v1/deploy", "")
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1", "b=1 > a", "db/c=1")...)
	b.call("POST", "/api/v1/deploy", `{"agent_trigger_method": "push_incremental_deploy", "agents": ["web", "moon"]}`)
	b.call("POST", "/api/v1/deploy", `{"agents": ["moon"]}`)
	b.call("POST", "/api/v1/deploy", `{"agent_trigger_method": "shove"}`)
	b.call("POST", "/api/v3/deploy", `{"resources": ["fs::File[web,path=/a]"], "repair": true, "message": "disk was replaced"}`)
	b.call("POST", "/api/v3/deploy", `{"resources": ["fs::File[web,path=/zzz]"]}`)
	b.call("POST", "/api/v2/deploy_filtered", `{"filter": {"agent": {"eq": ["web"]}, "resourceIdValue": {"notContains": ["b"]}}, "agent_trigger_method": "push_incremental_deploy"}`)
	b.call("POST", "/api/v2/deploy_filtered", `{"filter": {"agent": {"eq": ["moon"]}}}`)
	b.call("POST", "/api/v2/deploy_filtered", `{"filter": {"isOrphan": true}}`)
	b.call("POST", "/api/v2/deploy_filtered", `{"filter": {"modelVersion": 1}}`)
	commands, err := b.store.PendingCommands(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range commands {
		got = append(got, fmt.Sprint(c.Kind, c.Agents, c.Resources, " ", c.Reason))
	}
	slices.Sort(got)
	want := []string{
		"deploy[] [fs::File[web,path=/a]] a user requested a deploy",
		"deploy[web] [] a user requested a deploy",
		"repair[] [fs::File[web,path=/a]] disk was replaced",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the commands differ (-want +got):\n%s", diff)
	}

	dry, _ := at(t, b.call("POST", "/api/v2/dryrun/1", ""), "data").(string)
	b.call("POST", "/api/v2/dryrun/7", "")
	lease := storetest.Lease(t, b.store, e.ID)
	id := model.DryRunID{UUID: uuid.MustParse(dry)}
	change := func(name, from, to string) model.Diff {
		return model.Diff{name: {Current: json.RawMessage(from), Desired: json.RawMessage(to)}}
	}
	err = b.store.SaveDryRunResults(t.Context(), lease, id, []model.DryRunResult{
		{DryRun: id, Resource: storetest.ID("web", "/a"), Status: model.DiffModified, Changes: change("mode", "600", "644")},
		{DryRun: id, Resource: storetest.ID("web", "/b"), Status: model.DiffModified, Changes: change("purged", "true", "false")},
		{DryRun: id, Resource: storetest.ID("db", "/c"), Status: model.DiffAgentDown},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.call("GET", "/api/v2/dryrun/1", "")
	b.call("GET", "/api/v2/dryrun/1/"+dry, "")
	b.call("GET", "/api/v2/dryrun/2/"+dry, "")
	b.call("GET", "/api/v1/dryrun", "")
	b.call("GET", "/api/v1/dryrun/"+dry, "")
	b.call("POST", "/api/v2/actions/environment/halt", "")
	b.call("POST", "/api/v1/dryrun/1", "")
	b.call("POST", "/api/v1/deploy", "")
	b.golden("deploys_and_dryruns")
}

func TestCompiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment(storetest.Watching("https://git.example.com/model", "model"))
	ctx := t.Context()
	now := storetest.Now().Add(2 * time.Hour)
	b.call("HEAD", "/api/v1/notify/"+b.env, "")
	b.call("POST", "/api/v1/notify/"+b.env, `{"update": false, "metadata": {"type": "cli", "message": "from the command line"}}`)
	b.call("GET", "/api/v1/compilequeue", "")
	claim := func() *model.CompileJob {
		t.Helper()
		job, err := b.store.ClaimCompileJob(ctx, "worker", now, time.Hour)
		if err != nil || job == nil {
			t.Fatalf("ClaimCompileJob = %v, %v", job, err)
		}
		return job
	}
	job := claim()
	b.call("HEAD", "/api/v1/notify/"+b.env, "")
	revision := model.Revision{Repository: "model", Ref: "refs/heads/main", Commit: strings.Repeat("ab", 20), Author: "Ada", Message: "more <files>", CommittedAt: storetest.Now()}
	if err := b.store.SetCompileRevision(ctx, job.ID, "worker", revision); err != nil {
		t.Fatal(err)
	}
	code := 1
	report := model.CompileReport{
		Job: *job, Status: model.CompileFailed, FinishedAt: now.Add(time.Second),
		Stages: []model.CompileStage{{Name: "compile", Command: "intendant compile", StartedAt: now, FinishedAt: now.Add(time.Second), Stderr: "boo", ExitCode: &code}},
		Diagnostics: []diag.Diagnostic{{
			Severity: diag.Error, Code: "TypeNotFoundException", Message: "could not find type Fil", Hint: "did you mean File?",
			Range:   diag.Range{File: "main.cf", Start: diag.Position{Line: 3, Column: 5}, End: diag.Position{Line: 3, Column: 8}},
			Related: []diag.Related{{Range: diag.Range{File: "lib.cf", Start: diag.Position{Line: 1, Column: 1}}, Message: "declared here"}},
		}},
		Excerpts: map[int]model.SourceExcerpt{0: {File: "main.cf", FirstLine: 2, Lines: []string{"", "x = Fil()", ""}}},
		Error:    "the model has errors", PeakMemory: 1 << 20, CPUTime: time.Second,
	}
	report.Job.Revision = revision
	if _, err := b.store.FinishCompileJob(ctx, "worker", model.CompileOutcome{Report: report}, now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	id := job.ID.String()
	b.call("GET", "/api/v2/compilereport?filter.success=false&filter.completed=true", "")
	b.call("GET", "/api/v2/compilereport/"+id, "")
	b.call("GET", "/api/v1/compilereport/"+id, "")
	b.call("GET", "/api/v1/compilereport", "")
	b.call("GET", "/api/v2/compiledata/"+id, "")
	b.call("GET", "/api/v3/compile/"+id, "")
	b.call("GET", "/api/v3/compile/"+uuid.Nil.String(), "")
	b.call("POST", "/api/v3/compile/"+id+"/cancel", "")

	second, _ := at(t, b.call("POST", "/api/v3/compile", `{"message": "once more", "commit": "`+strings.Repeat("cd", 20)+`"}`), "data", "id").(string)
	b.call("POST", "/api/v3/compile", `{"commit": "main"}`)
	b.call("POST", "/api/v3/compile", `{"environment_variables": {"A B": "1"}}`)
	b.call("POST", "/api/v3/compile/"+second+"/cancel", "")
	b.call("GET", "/api/v3/journey", "")
	b.call("GET", "/api/v3/journey?limit=0", "")
	b.call("POST", "/api/v1/environment_settings/server_compile", `{"value": false}`)
	b.call("GET", "/api/v1/notify/"+b.env, "")
	b.call("POST", "/api/v3/compile", "{}")
	b.call("GET", "/api/v2/notification", "")
	b.golden("compiles")
	if _, err := b.store.CompileReport(ctx, e.ID, job.ID); err != nil {
		t.Error(err)
	}
}

func TestParametersFactsAndNotifications(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1")...)
	resource := "fs::File[web,path=/a]"
	b.call("PUT", "/api/v2/parameters/size", `{"source": "user", "value": 12, "metadata": {"unit": "GB"}}`)
	b.call("PUT", "/api/v2/parameters/size", `{"source": "USER", "value": "13", "recompile": true}`)
	b.call("PUT", "/api/v2/parameters/size", `{"source": "wind", "value": "13"}`)
	b.call("PUT", "/api/v1/parameter/size", `{"source": "user", "value": "13", "expires": true}`)
	b.call("GET", "/api/v1/compilequeue", "")
	fact, _ := at(t, b.call("PUT", "/api/v2/facts/disk", `{"source": "fact", "value": "sda", "resource_id": "`+resource+`"}`), "data", "id").(string)
	b.call("PUT", "/api/v1/parameters", `{"parameters": [{"id": "ram", "source": "fact", "value": "8", "resource_id": "`+resource+`", "expires": false}, {"id": "cpu", "source": "plugin", "value": true}]}`)
	b.call("PUT", "/api/v1/parameters", `{"parameters": [{"id": "ram", "source": "sun", "value": "8"}]}`)
	b.call("GET", "/api/v2/parameters", "")
	b.call("GET", "/api/v2/parameters?filter.source=plugin&sort=updated.desc", "")
	b.call("GET", "/api/v2/facts?filter.expires=false", "")
	b.call("GET", "/api/v2/resource/"+api.Segment(resource)+"/facts", "")
	b.call("GET", "/api/v2/resource/"+api.Segment(resource)+"/facts/"+fact, "")
	b.call("GET", "/api/v2/resource/"+api.Segment(resource)+"/facts/"+uuid.Nil.String(), "")
	b.call("GET", "/api/v1/parameter/size", "")
	b.call("GET", "/api/v1/parameter/nothing", "")
	b.call("GET", "/api/v1/parameter/nothing?resource_id="+api.Segment(resource), "")
	b.call("GET", "/api/v1/parameter/nothing?resource_id="+api.Segment("fs::File[web,path=/none]"), "")
	b.call("POST", "/api/v1/parameter", `{"query": {}}`)
	b.call("DELETE", "/api/v1/parameter/cpu", "")
	b.call("DELETE", "/api/v1/parameter/cpu", "")
	b.call("GET", "/api/v2/notification/"+uuid.Nil.String(), "")
	b.call("PATCH", "/api/v2/notification/"+uuid.Nil.String(), `{"read": true}`)
	b.golden("parameters_and_facts")
}

func TestAgentsAndTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1", "db/c=1")...)
	session := model.AgentSession{
		ID: "bbbbbbbb-0000-0000-0000-000000000001", Environment: e.ID, Hostname: "node1", Process: "agent", Agents: []model.AgentName{"web"}, Version: "1", ConnectedAt: storetest.Now(),
	}
	if err := b.store.SaveSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	err := b.store.SaveAgents(t.Context(), []model.AgentStatus{
		{Environment: e.ID, Name: "web", Up: true, Process: "agent", Hostname: "node1", SessionID: session.ID, Since: storetest.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.call("GET", "/api/v2/agents", "")
	b.call("GET", "/api/v2/agents?filter.status=up&sort=status.desc", "")
	b.call("GET", "/api/v2/agents?filter.status=asleep", "")
	b.call("GET", "/api/v1/agent", "")
	b.call("GET", "/api/v1/agentproc", "")
	b.call("GET", "/api/v3/agent-process", "")
	b.call("GET", "/api/v2/agents/process/"+session.ID, "")
	b.call("GET", "/api/v2/agents/process/"+uuid.Nil.String(), "")
	b.call("POST", "/api/v2/agent/db/pause", "")
	b.call("POST", "/api/v2/agent/moon/pause", "")
	b.call("GET", "/api/v2/agents?filter.status=paused", "")
	b.call("POST", "/api/v2/agents/unpause", "")
	b.call("POST", "/api/v2/agents/unpause_on_resume", "")
	b.call("POST", "/api/v2/actions/environment/halt", "")
	b.call("POST", "/api/v2/agent/web/pause", "")
	b.call("POST", "/api/v2/agent/web/keep_paused_on_resume", "")
	b.call("GET", "/api/v2/agents", "")
	b.call("POST", "/api/v2/actions/environment/resume", "")
	b.call("POST", "/api/v2/agents/remove_all_agent_venvs", "")

	b.call("POST", "/api/v3/agent-token", `{"description": "node7"}`)
	list := b.call("GET", "/api/v3/agent-token", "")
	token, _ := at(t, list, "data", 0, "id").(string)
	b.call("DELETE", "/api/v3/agent-token/"+token, "")
	b.call("DELETE", "/api/v3/agent-token/"+uuid.Nil.String(), "")
	b.golden("agents_and_tokens")
}

func TestRepositoriesAndDeliveries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const secrets = `"webhook_secrets": ["hunter2-hunter2"], "username": "bot", "password": "hunter2-token", "ssh_key": "hunter2-key", "ssh_key_passphrase": "hunter2-phrase"`
	b.call("POST", "/api/v3/repository", `{"name": "model", "url": "https://git.example.com/model", "provider": "gitea", `+secrets+`}`)
	b.call("POST", "/api/v3/repository", `{"name": "model", "url": "https://git.example.com/other"}`)
	b.call("POST", "/api/v3/repository", `{"name": "Not Good", "url": "https://git.example.com/other"}`)
	b.call("POST", "/api/v3/repository", `{"name": "other", "url": "ext::sh -c x"}`)
	b.call("POST", "/api/v3/repository", `{"name": "other", "url": "https://git.example.com/other", "provider": "sourceforge"}`)
	b.call("POST", "/api/v3/repository", `{"name": "other", "url": "https://git.example.com/other", "webhook_secrets": ["short"]}`)
	b.call("PATCH", "/api/v3/repository/model", `{"poll": "*/5 * * * *", "ssh_key": ""}`)
	b.call("PATCH", "/api/v3/repository/model", `{"poll": "sometimes"}`)
	b.call("PATCH", "/api/v3/repository/nothing", `{"poll": "5"}`)
	b.inEnvironment(storetest.Watching("https://git.example.com/model", "ignored"))
	b.call("GET", "/api/v3/repository", "")
	b.call("POST", "/api/v3/repository/model/sync", "")
	b.call("POST", "/api/v3/repository/nothing/sync", "")
	b.call("DELETE", "/api/v3/repository/model", "")

	for i, key := range []string{"one", "two/three"} {
		_, err := b.store.RecordDelivery(t.Context(), model.Delivery{
			Key: key, Repository: "model", Provider: model.ProviderGitea, Event: "push", Ref: "refs/heads/main", Trace: "0123456789abcdef0123456789abcdef",
			ReceivedAt: storetest.Now().Add(time.Duration(i) * time.Minute), Headers: map[string]string{"X-Gitea-Event": "push"}, Body: []byte(`{"ref": "<main>"}`),
			Status: model.DeliveryReceived,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.store.FinishDelivery(t.Context(), "model", "two/three", model.DeliveryFailed, "the host is down", storetest.Now().Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.call("GET", "/api/v3/delivery?filter.repository=model&limit=1", "")
	b.call("GET", "/api/v3/delivery?filter.status=failed", "")
	b.call("GET", "/api/v3/delivery?filter.status=odd", "")
	b.call("GET", "/api/v3/delivery/model/two%2Fthree", "")
	b.call("GET", "/api/v3/delivery/model/three", "")
	b.call("POST", "/api/v3/delivery/model/two%2Fthree/replay", "")
	b.call("POST", "/api/v3/delivery/model/one/replay", "")
	if _, answers, ok := strings.Cut(b.text.String(), "\n200\n"); !ok || strings.Contains(answers, "hunter2") {
		t.Error("an answer has a secret in it")
	}
	b.golden("repositories_and_deliveries")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *server.Config) {
		c.Features = map[string]map[string]any{"core": {"dryrun": true, "tier": "gold"}}
	})
	b.call("GET", "/api/v1/serverstatus", "")
	b.call("GET", "/readyz", "")
	b.call("GET", "/api/v2/health", "")
	b.call("GET", "/api/v2/feature/bool?slice_name=core&feature_name=dryrun", "")
	b.call("GET", "/api/v2/feature/bool?slice_name=core&feature_name=tier", "")
	b.call("GET", "/api/v2/feature/bool?slice_name=core&feature_name=none", "")
	b.golden("status")
}
