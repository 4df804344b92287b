package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/server"
	"github.com/intendant/intendant/store/storetest"
)

// page is what paging tests read of an answer.
type page struct {
	Data     []api.Resource
	Links    api.Links
	Metadata struct{ Total, Before, After int }
}

func TestPagesCoverAListInBothDirections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	var lines []string
	for i := range 23 {
		lines = append(lines, fmt.Sprintf("host%d/f%02d=1", i%3, i))
	}
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, lines...)...)
	get := func(link string) page {
		t.Helper()
		p, err := api.Data[[]api.Resource](t.Context(), b.client(), http.MethodGet, link, nil, nil)
		if err != nil {
			t.Fatalf("GET %s: %v", link, err)
		}
		var out page
		if err := b.client().Do(t.Context(), http.MethodGet, link, nil, nil, &out); err != nil || len(out.Data) != len(p) {
			t.Fatalf("GET %s: %v", link, err)
		}
		return out
	}
	for _, path := range []string{"/api/v2/resource", "/api/v2/desiredstate/1"} {
		for _, sort := range []string{"agent.asc", "agent.desc", "resource_type.desc", "resource_id_value.asc"} {
			t.Run(path+" "+sort, func(t *testing.T) {
				t.Parallel()
				whole := get(path + "?limit=0&sort=" + sort)
				ids := func(rs []api.Resource) []string {
					var out []string
					for _, r := range rs {
						out = append(out, r.ResourceID)
					}
					return out
				}
				want := ids(whole.Data)
				if len(want) != 23 || whole.Links.Next != "" || whole.Links.Prev != "" {
					t.Fatalf("the whole list has %d rows and the links %+v", len(want), whole.Links)
				}
				var forward []string
				p := get(path + "?limit=4&sort=" + sort)
				for {
					if p.Metadata.Total != 23 || p.Metadata.Before != len(forward) || p.Metadata.After != 23-len(forward)-len(p.Data) {
						t.Errorf("after %d rows the metadata = %+v", len(forward), p.Metadata)
					}
					if (p.Links.Prev != "") != (len(forward) > 0) || (p.Links.First != "") != (len(forward) > 0) {
						t.Errorf("after %d rows the links = %+v", len(forward), p.Links)
					}
					forward = append(forward, ids(p.Data)...)
					if p.Links.Next == "" {
						break
					}
					p = get(p.Links.Next)
				}
				if diff := cmp.Diff(want, forward); diff != "" {
					t.Errorf("forward differs (-want +got):\n%s", diff)
				}
				var backward []string
				for {
					backward = append(ids(p.Data), backward...)
					if p.Links.Prev == "" {
						break
					}
					p = get(p.Links.Prev)
				}
				if diff := cmp.Diff(want, backward); diff != "" {
					t.Errorf("backward differs (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestClientFollowsAllPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Many(t, 1203, nil)...)
	all, err := b.client().Resources(t.Context(), api.ListOptions{Sort: "resource_id.asc"})
	if err != nil || len(all) != 1203 {
		t.Fatalf("Resources = %d rows, %v; want 1203", len(all), err)
	}
	if !slices.IsSortedFunc(all, func(a, b api.Resource) int { return strings.Compare(a.ResourceID, b.ResourceID) }) {
		t.Error("the resources are not in order")
	}
	few, err := b.client().Resources(t.Context(), api.ListOptions{Limit: 5, Filter: map[string][]string{"agent": {"HOST3"}}})
	if err != nil || len(few) != 5 {
		t.Errorf("Resources with a limit = %d rows, %v; want 5", len(few), err)
	}
}

// next reads events until one is of the kind.
func next(t *testing.T, events <-chan api.Event, kind string) api.Event {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Kind == kind {
				return e
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no event of kind %s", kind)
		}
	}
}

func listen(t *testing.T, c *api.Client) <-chan api.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan api.Event, 1000) // more than a test makes
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.Events(ctx, func(e api.Event) bool { events <- e; return true }); !errors.Is(err, context.Canceled) {
			t.Errorf("Events = %v, want that it was cancelled", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return events
}

func TestEventsTellWhatHasChanged(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *server.Config) { c.Heartbeat = 20 * time.Millisecond })
	e := b.inEnvironment()
	other := storetest.Environment(t, b.store)
	events := listen(t, b.client())
	next(t, events, api.EventResync)
	// The broker may not be subscribed yet: change something until it is heard.
	heard := func(change func() error, kind string) api.Event {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for time.Now().Before(deadline) {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			select {
			case ev := <-events:
				if ev.Kind == kind {
					return ev
				}
			case <-time.After(100 * time.Millisecond):
			}
		}
		t.Fatalf("no event of kind %s", kind)
		return api.Event{}
	}
	set := func() error { return b.client().SetSetting(t.Context(), "auto_deploy", true) }
	if got := heard(set, api.EventEnvironment); got.Environment != b.env {
		t.Errorf("the event = %+v, want the environment %s", got, b.env)
	}
	if err := b.client().In(other.ID.String()).SetSetting(t.Context(), "auto_deploy", false); err != nil {
		t.Fatal(err)
	}
	number := storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1")...)
	got := next(t, events, api.EventVersion)
	if diff := cmp.Diff(api.Event{Kind: api.EventVersion, Environment: b.env, ID: fmt.Sprint(number)}, got); diff != "" {
		t.Errorf("the event differs (-want +got):\n%s", diff)
	}
	for len(events) > 0 {
		if ev := <-events; ev.Environment == other.ID.String() {
			t.Errorf("an event of another environment: %+v", ev)
		}
	}
}

func TestStreamsGoOnWhereTheyEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inEnvironment()
	open := func(last string) (*http.Response, func(want string) string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.http.URL+"/api/v3/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		var seen bytes.Buffer
		return resp, func(want string) string {
			t.Helper()
			buffer := make([]byte, 4096)
			for !strings.Contains(seen.String(), want) {
				n, err := resp.Body.Read(buffer)
				seen.Write(buffer[:n])
				if err != nil {
					t.Fatalf("the stream ended with %v before %q: %q", err, want, seen.String())
				}
			}
			return seen.String()
		}
	}
	first, read := open("")
	if got := first.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type = %q", got)
	}
	read(": intendant ")
	deadline := time.Now().Add(30 * time.Second)
	id := ""
	// Until the broker is subscribed a change is not heard.
	heard := make(chan string, 1)
	go func() { heard <- read(`"kind":"environment"`) }()
	for id == "" && time.Now().Before(deadline) {
		if err := b.client().SetSetting(t.Context(), "auto_deploy", true); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-heard:
			_, id, _ = strings.Cut(text, "id: ")
			id, _, _ = strings.Cut(id, "\n")
		case <-time.After(100 * time.Millisecond):
		}
	}
	_ = first.Body.Close()
	if err := b.client().Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, read = open(id)
	if text := read(`"kind":"command"`); strings.Contains(text, "resync") {
		t.Errorf("the stream began anew: %q", text)
	}
	_, read = open("another-1")
	read(`"kind":"resync"`)
}

func TestRunServesAndStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	address := make(chan net.Addr, 1)
	s, err := server.New(server.Config{
		Store: b.store, Addresses: []string{"127.0.0.1:0"}, OnListen: func(a net.Addr) { address <- a }, ShutdownTimeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	base := "http://" + (<-address).String()
	c, err := api.NewClient(api.ClientConfig{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Status != "OK" || st.Product != "Intendant" {
		t.Errorf("Status = %+v, %v", st, err)
	}
	resp, err := http.Get(base + "/api/v3/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream ended with %v, want a clean end", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if _, err := http.Get(base + "/healthz"); err == nil {
		t.Error("the server still answers")
	}
}

func TestRunFailsWhenTheAddressIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := server.New(server.Config{Store: setup(t).store, Addresses: []string{"127.0.0.1:0", l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("Run = %v, want an error that names the address", err)
	}
}

type explainer struct{ err error }

func (e explainer) Explain(_ context.Context, _ model.EnvironmentID, id model.ResourceID) (model.Explanation, error) {
	return model.Explanation{Resource: id, Summary: "it is night", Reasons: []model.ExplainReason{{Code: "night", Text: "wait for the day", Until: storetest.Now()}}}, e.err
}

func TestExplainerIsAskedFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		explainer server.Explainer
		resource  string
		want      string
		failure   bool
	}{
		"the scheduler knows":   {explainer{}, "fs::File[web,path=/a]", "it is night", false},
		"it runs elsewhere":     {explainer{model.ErrUnavailable}, "fs::File[web,path=/a]", "The resource is available: agent web is not connected.", false},
		"it is only stored":     {explainer{model.ErrNotFound}, "fs::File[web,path=/a]", "The resource is available: agent web is not connected.", false},
		"nobody knows it":       {explainer{model.ErrNotFound}, "fs::File[web,path=/nowhere]", "", true},
		"there is no scheduler": {nil, "fs::File[web,path=/a]", "The resource is available: agent web is not connected.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(cfg *server.Config) { cfg.Explainer = c.explainer })
			e := b.inEnvironment()
			storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1")...)
			x, err := b.client().Explain(t.Context(), c.resource)
			if (err != nil) != c.failure || x.Summary != c.want {
				t.Errorf("Explain = %q, %v; want %q", x.Summary, err, c.want)
			}
		})
	}
}

func TestIdempotencyKeysMakeRepeatsHarmless(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.inEnvironment()
	storetest.Version(t, b.store, e.ID, true, storetest.Intents(t, "a=1")...)
	send := func(path, key string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.http.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(api.EnvironmentHeader, b.env)
		req.Header.Set("Idempotency-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			t.Fatalf("POST %s = %d %s", path, resp.StatusCode, text)
		}
	}
	for _, key := range []string{"one", "one", "two"} {
		send("/api/v3/compile", key)
		send("/api/v3/deploy", key)
	}
	queue, err := b.client().CompileQueue(t.Context())
	if err != nil || len(queue) != 2 {
		t.Errorf("the queue has %d compiles, %v; want 2", len(queue), err)
	}
	commands, err := b.store.PendingCommands(t.Context(), e.ID)
	if err != nil || len(commands) != 2 {
		t.Errorf("there are %d commands, %v; want 2", len(commands), err)
	}
}

func TestTheClientCalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c := b.client()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := c.CreateProject(ctx, "shop", "")
	ok(err)
	_, err = c.CreateProject(ctx, "shop", "")
	if !api.IsConflict(err) {
		t.Errorf("CreateProject again = %v, want a conflict", err)
	}
	_, err = c.RenameProject(ctx, p.ID, "store")
	ok(err)
	url, path := "https://git.example.com/shop/model", "edge"
	e, err := c.CreateEnvironment(ctx, api.EnvironmentWrite{ProjectID: p.ID, Name: "prod", RepoURL: &url})
	ok(err)
	e, err = c.UpdateEnvironment(ctx, e.ID, api.EnvironmentWrite{RepoPath: &path})
	ok(err)
	if e.RepoPath != "edge" || e.Repository != "shop-model" || e.ProjectName != "store" {
		t.Errorf("the environment = %+v", e)
	}
	b.env = e.ID
	c = b.client()
	all, err := c.Environments(ctx, true)
	ok(err)
	if len(all) != 1 || all[0].DeploySummary == nil {
		t.Errorf("Environments = %+v", all)
	}
	ok(c.SetSetting(ctx, "auto_deploy", "no"))
	v, err := c.Setting(ctx, "auto_deploy")
	ok(err)
	if string(v) != "false" {
		t.Errorf("Setting = %s", v)
	}
	ok(c.DeleteSetting(ctx, "auto_deploy"))
	settings, err := c.Settings(ctx)
	ok(err)
	if len(settings.Settings) != 0 || len(settings.Definition) != len(model.SettingDefinitions()) {
		t.Errorf("Settings = %+v", settings)
	}

	sent, err := c.UploadFiles(ctx, map[string][]byte{"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed": []byte("hello world")})
	ok(err)
	content, err := c.File(ctx, "2aae6c35c94fcfb415dbe95f408b9ce91ee846ed")
	ok(err)
	if sent != 1 || string(content) != "hello world" {
		t.Errorf("sent %d files, read %q", sent, content)
	}
	_, err = c.File(ctx, strings.Repeat("0", 40))
	if !api.IsNotFound(err) {
		t.Errorf("File = %v, want that there is none", err)
	}
	n, err := c.ReserveVersion(ctx)
	ok(err)
	attributes := map[string]string{"id": fmt.Sprintf(`"fs::File[web,path=/a],v=%d"`, n), "content": `"` + strings.Repeat("x", 2000) + `"`, "requires": "[]"}
	resource := map[string]json.RawMessage{}
	for k, v := range attributes {
		resource[k] = json.RawMessage(v)
	}
	ok(c.UploadVersion(ctx, api.UploadedVersion{Version: n, Resources: []map[string]json.RawMessage{resource}}))
	version, err := c.Version(ctx, n)
	ok(err)
	if !version.Released || version.Added != 1 {
		t.Errorf("the version = %+v", version)
	}
	list, err := c.Versions(ctx, api.ListOptions{})
	ok(err)
	if len(list) != 1 {
		t.Errorf("Versions = %+v", list)
	}
	if err := c.ReleaseVersion(ctx, n); !api.IsConflict(err) {
		t.Errorf("ReleaseVersion again = %v, want a conflict", err)
	}
	r, err := c.VersionResource(ctx, n, "fs::File[web,path=/a]")
	ok(err)
	if r.Version != n {
		t.Errorf("VersionResource = %+v", r)
	}
	rs, err := c.VersionResources(ctx, n, api.ListOptions{})
	ok(err)
	summary, err := c.DeploySummary(ctx)
	ok(err)
	if len(rs) != 1 || summary.Total != 1 || summary.Settled() {
		t.Errorf("%d resources, %+v", len(rs), summary)
	}
	view, err := c.Resource(ctx, "fs::File[web,path=/a]")
	ok(err)
	if view.Status != "available" {
		t.Errorf("Resource = %+v", view)
	}
	_, err = c.ResourceHistory(ctx, view.ResourceID, api.ListOptions{})
	ok(err)
	_, err = c.ResourceLogs(ctx, view.ResourceID, api.ListOptions{})
	ok(err)
	_, err = c.ResourceActions(ctx, view.ResourceID, 10)
	ok(err)
	d, warnings, err := c.RequestDeploy(ctx, api.Deploy{Agents: []string{"web", "moon"}})
	ok(err)
	if d.Kind != "deploy" || len(warnings) != 1 {
		t.Errorf("RequestDeploy = %+v, %v", d, warnings)
	}
	dry, err := c.RequestDryRun(ctx, n)
	ok(err)
	runs, err := c.DryRuns(ctx, n)
	ok(err)
	report, err := c.DryRun(ctx, n, dry)
	ok(err)
	if len(runs) != 1 || report.Summary.Todo != 1 {
		t.Errorf("DryRuns = %+v, DryRun = %+v", runs, report)
	}

	compile, err := c.RequestCompile(ctx, api.CompileRequest{Message: "please"})
	ok(err)
	queue, err := c.CompileQueue(ctx)
	ok(err)
	if len(queue) != 1 || queue[0].ID != compile.ID {
		t.Errorf("CompileQueue = %+v", queue)
	}
	var seen atomic.Int32
	waited := make(chan error, 1)
	go func() {
		done, err := c.WaitCompile(ctx, compile.ID, func(api.CompileAnalysis) { seen.Add(1) })
		if err == nil && done.Status != "cancelled" {
			err = fmt.Errorf("the compile is %s", done.Status)
		}
		waited <- err
	}()
	ok(c.CancelCompile(ctx, compile.ID))
	ok(<-waited)
	if seen.Load() == 0 {
		t.Error("no progress was seen")
	}
	journey, err := c.WaitJourney(ctx, compile.ID, nil)
	ok(err)
	if journey.Phase != "failed" {
		t.Errorf("WaitJourney = %+v", journey)
	}
	reports, err := c.Compiles(ctx, api.ListOptions{})
	ok(err)
	if len(reports) != 1 {
		t.Errorf("Compiles = %+v", reports)
	}
	steps, err := c.TraceSteps(ctx, compile.Trace)
	ok(err)
	if len(steps) == 0 {
		t.Error("the trace has no steps")
	}

	_, err = c.SetParameter(ctx, "size", "3", false)
	ok(err)
	parameter, err := c.Parameter(ctx, "size", "")
	ok(err)
	if parameter.Value != "3" {
		t.Errorf("Parameter = %+v", parameter)
	}
	parameters, err := c.Parameters(ctx, api.ListOptions{})
	ok(err)
	facts, err := c.Facts(ctx, api.ListOptions{})
	ok(err)
	if len(parameters) != 1 || len(facts) != 0 {
		t.Errorf("%d parameters, %d facts", len(parameters), len(facts))
	}
	ok(c.DeleteParameter(ctx, "size"))
	_, err = c.Notifications(ctx, api.ListOptions{})
	ok(err)

	agents, err := c.Agents(ctx, api.ListOptions{})
	ok(err)
	if len(agents) != 1 {
		t.Errorf("Agents = %+v", agents)
	}
	ok(c.AgentAction(ctx, "web", "pause"))
	ok(c.AgentAction(ctx, "", "unpause"))
	_, err = c.AgentProcesses(ctx)
	ok(err)
	token, err := c.IssueAgentToken(ctx, "node", true)
	ok(err)
	tokens, err := c.AgentTokens(ctx)
	ok(err)
	if token.Token == "" || len(tokens) != 1 {
		t.Errorf("IssueAgentToken = %+v, AgentTokens = %+v", token, tokens)
	}
	ok(c.RevokeAgentToken(ctx, tokens[0].ID))

	other := "https://git.example.com/other"
	_, err = c.CreateRepository(ctx, "other", api.RepositoryWrite{URL: &other})
	ok(err)
	poll := "30"
	_, err = c.UpdateRepository(ctx, "other", api.RepositoryWrite{Poll: &poll})
	ok(err)
	repositories, err := c.Repositories(ctx)
	ok(err)
	repository, err := c.Repository(ctx, "other")
	ok(err)
	if len(repositories) != 2 || repository.Poll != "30" {
		t.Errorf("Repositories = %+v, Repository = %+v", repositories, repository)
	}
	ok(c.SyncRepository(ctx, "other"))
	ok(c.DeleteRepository(ctx, "other"))
	deliveries, err := c.Deliveries(ctx, api.ListOptions{})
	ok(err)
	if len(deliveries) != 0 {
		t.Errorf("Deliveries = %+v", deliveries)
	}
	ok(c.Halt(ctx))
	ok(c.Resume(ctx))
	ok(c.ClearEnvironment(ctx, e.ID))
	ok(c.DeleteEnvironment(ctx, e.ID))
	ok(c.DeleteProject(ctx, p.ID))
}

func TestMergedCompilesShowTheWorkOfTheOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inEnvironment()
	ctx, c := t.Context(), b.client()
	first, err := c.RequestCompile(ctx, api.CompileRequest{Message: "one"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.RequestCompile(ctx, api.CompileRequest{Message: "two"})
	if err != nil {
		t.Fatal(err)
	}
	now := storetest.Now().Add(3 * time.Hour)
	job, err := b.store.ClaimCompileJob(ctx, "worker", now, time.Hour)
	if err != nil || job == nil {
		t.Fatalf("ClaimCompileJob = %v, %v", job, err)
	}
	code := 0
	_, err = b.store.FinishCompileJob(ctx, "worker", model.CompileOutcome{Report: model.CompileReport{
		Job: *job, Status: model.CompileSucceeded, FinishedAt: now.Add(time.Second),
		Stages: []model.CompileStage{{Name: "compile", StartedAt: now, FinishedAt: now, ExitCode: &code}},
	}}, now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []api.CompileReport{first, second} {
		got, err := c.Compile(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Success == nil || !*got.Success || len(got.Reports) != 1 || got.Reason != r.Reason || got.ID != r.ID {
			t.Errorf("the compile %q = %+v, want the stage and the outcome of the work done", r.Reason, got)
		}
		if merged := got.SubstituteID != nil; merged != (r.ID != job.ID.String()) {
			t.Errorf("the compile %q: substitute %v", r.Reason, got.SubstituteID)
		}
	}
	var v1 struct{ Reports []api.CompileRecordV1 }
	if err := c.Do(ctx, http.MethodGet, "/api/v1/compilereport?start=2026-05-04T12:00:00&end=2026-05-04T23:00:00&limit=10", nil, nil, &v1); err != nil || len(v1.Reports) == 0 {
		t.Errorf("the reports of the first version = %+v, %v", v1, err)
	}
}

func TestTheClientWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deployed(t, b)
	ctx, c := t.Context(), b.client()
	diff, err := c.DiffVersions(ctx, 1, 2)
	if err != nil || len(diff) != 5 {
		t.Errorf("DiffVersions = %+v, %v; want 5 differences", diff, err)
	}
	dry, err := c.RequestDryRun(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	finish := make(chan struct{})
	var once atomic.Bool
	lease := storetest.Lease(t, b.store, model.EnvironmentID{UUID: uuid.MustParse(b.env)})
	go func() {
		<-finish
		id := model.DryRunID{UUID: uuid.MustParse(dry)}
		var results []model.DryRunResult
		for _, r := range []model.ResourceID{storetest.ID("web", "/a"), storetest.ID("web", "/b"), storetest.ID("db", "/c"), storetest.ID("web", "/u"), storetest.ID("web", "/v")} {
			results = append(results, model.DryRunResult{DryRun: id, Resource: r, Status: model.DiffUnmodified})
		}
		if err := b.store.SaveDryRunResults(ctx, lease, id, results); err != nil {
			t.Error(err)
		}
	}()
	report, err := c.WaitDryRun(ctx, 2, dry, func(d api.DryRun) {
		if once.CompareAndSwap(false, true) {
			close(finish)
		}
	})
	if err != nil || report.Summary.Todo != 0 || len(report.Diff) != 5 {
		t.Errorf("WaitDryRun = %+v, %v", report, err)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if d, err := c.WaitSettled(waiting, func(api.DeploySummary) { cancel() }); !errors.Is(err, context.Canceled) || d.ByState["available"] != 1 {
		t.Errorf("WaitSettled = %+v, %v; want that one resource still waits", d, err)
	}
}
