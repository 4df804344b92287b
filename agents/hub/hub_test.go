package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/intendant/intendant/agents/hub"
	"github.com/intendant/intendant/agents/wire"
	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk/sdktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// client is an agent process that the test plays.
type client struct {
	t    testing.TB
	conn *websocket.Conn
	// seen are frames that were read while waiting for others.
	seen []wire.Frame
}

func header(env, token string) http.Header {
	h := http.Header{}
	if env != "" {
		h.Set(wire.EnvironmentHeader, env)
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

func authorized(s *sdktest.Server) http.Header {
	return header(s.Environment.String(), s.Token.Reveal())
}

func dial(t testing.TB, s *sdktest.Server) *client {
	t.Helper()
	conn, resp, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http")+wire.SessionPath, &websocket.DialOptions{
		HTTPHeader: authorized(s),
	})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		t.Fatalf("Dial() = %v", err)
	}
	conn.SetReadLimit(wire.MaxFrame)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: t, conn: conn}
}

func (c *client) send(b wire.Body) {
	c.t.Helper()
	raw, err := wire.Encode(1, b)
	if err != nil {
		c.t.Fatalf("Encode() = %v", err)
	}
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, raw); err != nil {
		c.t.Fatalf("Write() = %v", err)
	}
}

// read reads the next frame; false at the end of the connection.
func (c *client) read() (wire.Frame, bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), sdktest.Timeout)
	defer cancel()
	_, raw, err := c.conn.Read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			c.t.Fatalf("waited too long for a frame")
		}
		return wire.Frame{}, false
	}
	f, err := wire.Decode(raw)
	if err != nil {
		c.t.Fatalf("Decode() = %v", err)
	}
	return f, true
}

// await returns the next frame of a kind, and leaves others for later.
func await[T wire.Body](c *client) T {
	c.t.Helper()
	for i, f := range c.seen {
		if b, ok := f.Body.(T); ok {
			c.seen = append(c.seen[:i], c.seen[i+1:]...)
			return b
		}
	}
	for {
		f, ok := c.read()
		if !ok {
			var none T
			c.t.Fatalf("the connection ended before a %T", none)
		}
		if b, ok := f.Body.(T); ok {
			return b
		}
		c.seen = append(c.seen, f)
	}
}

// awaitEnd reads to the end of the connection and returns the error frame, if there was one.
func (c *client) awaitEnd() *wire.Error {
	c.t.Helper()
	var last *wire.Error
	for {
		f, ok := c.read()
		if !ok {
			return last
		}
		if e, ok := f.Body.(*wire.Error); ok {
			last = e
		}
	}
}

func hello(process string, names ...model.AgentName) *wire.Hello {
	return &wire.Hello{Protocol: wire.Version, Process: process, Hostname: "test", Agents: names}
}

// join opens a session and returns the epochs of the names.
func join(t testing.TB, s *sdktest.Server, h *wire.Hello) (*client, *wire.Welcome, map[model.AgentName]wire.PrimaryAgent) {
	t.Helper()
	c := dial(t, s)
	c.send(h)
	welcome := await[*wire.Welcome](c)
	standing := map[model.AgentName]wire.PrimaryAgent{}
	for _, p := range await[*wire.Primary](c).Agents {
		standing[p.Agent] = p
	}
	return c, welcome, standing
}

func resource(agent, name string) model.ResourceID {
	return model.ResourceIDParts{Type: "test::Thing", Agent: model.AgentName(agent), Attribute: "name", Value: name}.ID()
}

func task(t testing.TB, s *sdktest.Server, agent, name string) model.Task {
	t.Helper()
	return s.NewTask(model.TaskDeploy, sdktest.NewIntent(t, resource(agent, name), map[string]any{"name": name}))
}

func result(w wire.Task) wire.Result {
	now := time.Now().UTC()
	return wire.Result{
		Task: w.ID, Agent: w.Agent, Epoch: w.Epoch, Resource: w.Intent.Resource, Version: w.Version, Kind: w.Kind,
		AttributeHash: w.Intent.AttributeHash, Outcome: model.OutcomeDeployed, Change: model.ChangeNone, StartedAt: now, FinishedAt: now,
	}
}

func report(results ...wire.Result) *wire.Report { return &wire.Report{Results: results} }

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	hash := s.AddFile([]byte("content"))
	env, token := s.Environment.String(), s.Token.Reveal()
	s.AddOneTimeToken("once")
	missing := strings.Repeat("0", 40)
	tests := []struct {
		name, method, path string
		header             http.Header
		body               string
		status             int
		answer             string
	}{
		{"no environment", "GET", wire.FilePath + hash, header("", token), "", 400, wire.EnvironmentHeader},
		{"no token", "GET", wire.FilePath + hash, header(env, ""), "", 401, "Bearer"},
		{"wrong token", "GET", wire.FilePath + hash, header(env, "wrong"), "", 403, "not valid"},
		{"other environment", "GET", wire.FilePath + hash, header(uuid.NewString(), token), "", 403, "not valid"},
		{"file", "GET", wire.FilePath + hash, header(env, token), "", 200, "content"},
		{"file that is not there", "GET", wire.FilePath + missing, header(env, token), "", 404, missing},
		{"file by another name", "GET", wire.FilePath + "..%2f..%2fetc%2fpasswd", header(env, token), "", 400, "SHA-1"},
		{"session without token", "GET", wire.SessionPath, header(env, ""), "", 401, "Bearer"},
		{"session without upgrade", "GET", wire.SessionPath, header(env, token), "", 426, ""},
		{"enrol without a body", "POST", wire.EnrollPath, header(env, token), "", 400, "JSON"},
		{"enrol with a long name", "POST", wire.EnrollPath, header(env, token), `{"hostname":"` + strings.Repeat("x", 300) + `"}`, 400, "too long"},
		{"enrol", "POST", wire.EnrollPath, header(env, "once"), `{"hostname":"h"}`, 200, `"token"`},
		{"enrol again", "POST", wire.EnrollPath, header(env, "once"), `{"hostname":"h"}`, 403, "not valid"},
		{"wrong method", "POST", wire.FilePath + hash, header(env, token), "", 405, ""},
	}
	for _, test := range tests {
		req, err := http.NewRequestWithContext(t.Context(), test.method, s.URL+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = test.header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != test.status || !strings.Contains(string(body), test.answer) {
			t.Errorf("%s: %d %s, want %d with %q", test.name, resp.StatusCode, body, test.status, test.answer)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestEnrolledTokenWorks(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	s.AddOneTimeToken("once")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+wire.EnrollPath, strings.NewReader(`{"hostname":"h"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header(s.Environment.String(), "once")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	s.Token = model.Secret(answer.Token)
	join(t, s, hello("p", "one"))
}

func TestBrokenProtocolEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	tests := map[string]struct {
		send func(c *client)
		code wire.Code
	}{
		"not a hello first": {func(c *client) { c.send(&wire.Bye{}) }, wire.CodeInvalid},
		"old protocol":      {func(c *client) { c.send(&wire.Hello{Process: "p", Protocol: 0}) }, wire.CodeInvalid},
		"forged autostart": {func(c *client) {
			h := hello("p", "one")
			h.Autostarted, h.Key = true, "guess"
			c.send(h)
		}, wire.CodeForbidden},
		"garbage": {func(c *client) { _ = c.conn.Write(c.t.Context(), websocket.MessageText, []byte("{]")) }, wire.CodeInvalid},
		"binary":  {func(c *client) { _ = c.conn.Write(c.t.Context(), websocket.MessageBinary, []byte("{}")) }, wire.CodeInvalid},
		"garbage later": {func(c *client) {
			c.send(hello("later", "late"))
			await[*wire.Welcome](c)
			_ = c.conn.Write(c.t.Context(), websocket.MessageText, []byte(`{"kind":"report","body":{"results":[{}]}}`))
		}, ""},
		"too large": {func(c *client) {
			c.send(hello("large", "large"))
			await[*wire.Welcome](c)
			_ = c.conn.Write(c.t.Context(), websocket.MessageText, bytes.Repeat([]byte(" "), wire.MaxFrame+2))
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, s)
			test.send(c)
			last := c.awaitEnd()
			if test.code != "" && (last == nil || last.Code != test.code) {
				t.Errorf("the error is %+v, want %s", last, test.code)
			}
		})
	}
}

func TestLyingAgentIsRefused(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	join(t, s, hello("honest", "honest"))
	c, _, standing := join(t, s, hello("liar", "liar"))
	honest, mine := task(t, s, "honest", "a"), task(t, s, "liar", "b")
	s.Dispatch(t, honest, mine)
	assigned := await[*wire.Assign](c).Tasks[0]
	if assigned.Epoch != standing["liar"].Epoch || assigned.ID != mine.ID {
		t.Fatalf("assigned %+v, want the task under epoch %d", assigned, standing["liar"].Epoch)
	}
	lie := func(change func(*wire.Result)) wire.Result {
		r := result(assigned)
		change(&r)
		return r
	}
	fresh := func(r *wire.Result) { r.Task = model.TaskID{UUID: uuid.New()} }
	tests := map[string]struct {
		result wire.Result
		code   wire.Code
	}{
		"another resource than assigned": {lie(func(r *wire.Result) { r.Resource = resource("liar", "other") }), wire.CodeInvalid},
		"another version":                {lie(func(r *wire.Result) { r.Version = 7 }), wire.CodeInvalid},
		"another intent":                 {lie(func(r *wire.Result) { r.AttributeHash = "x" }), wire.CodeInvalid},
		"another kind":                   {lie(func(r *wire.Result) { r.Kind = model.TaskDryRun }), wire.CodeInvalid},
		"an outcome of its own":          {lie(func(r *wire.Result) { r.Outcome = "splendid" }), wire.CodeInvalid},
		"a change of its own":            {lie(func(r *wire.Result) { r.Change = "some" }), wire.CodeInvalid},
		"another epoch":                  {lie(func(r *wire.Result) { r.Epoch++ }), wire.CodeFenced},
		"another agent":                  {lie(func(r *wire.Result) { r.Agent = "honest" }), wire.CodeFenced},
		"the task of another process": {lie(func(r *wire.Result) {
			r.Task, r.Resource, r.Agent, r.AttributeHash = honest.ID, honest.Intent.Resource, "honest", honest.Intent.AttributeHash
		}), wire.CodeFenced},
		"the resource of another agent": {lie(func(r *wire.Result) {
			fresh(r)
			r.Resource = resource("honest", "a")
		}), wire.CodeForbidden},
		"an agent that it does not offer": {lie(func(r *wire.Result) {
			fresh(r)
			r.Agent, r.Resource = "honest", resource("honest", "a")
		}), wire.CodeForbidden},
		"an epoch of the future": {lie(func(r *wire.Result) {
			fresh(r)
			r.Epoch += 1000
		}), wire.CodeInvalid},
	}
	for name, test := range tests {
		c.send(report(test.result))
		ack := await[*wire.Ack](c)
		if len(ack.Refused) != 1 || ack.Refused[0].Code != test.code || ack.Refused[0].Task != test.result.Task {
			t.Errorf("%s: answer is %+v, want a refusal with %s", name, ack, test.code)
		}
	}
	if got := s.Reports(); got != 0 {
		t.Errorf("%d lies were handed to the sink", got)
	}
	c.send(report(result(assigned)))
	if ack := await[*wire.Ack](c); len(ack.Stored) != 1 || ack.Stored[0] != mine.ID {
		t.Errorf("the truth is answered by %+v", ack)
	}
}

func TestReportsAreAcknowledgedWhenStored(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	c, _, _ := join(t, s, hello("p", "one"))
	s.Dispatch(t, task(t, s, "one", "a"))
	r := result(await[*wire.Assign](c).Tasks[0])

	s.FailReports(func(model.Result) error { return fmt.Errorf("the database is away: %w", model.ErrUnavailable) })
	c.send(report(r))
	if ack := await[*wire.Ack](c); len(ack.Later) != 1 || ack.Later[0].Code != wire.CodeUnavailable {
		t.Errorf("answer is %+v, want it to be sent again later", ack)
	}
	s.FailReports(func(model.Result) error { return errors.New("bug") })
	c.send(report(r))
	if ack := await[*wire.Ack](c); len(ack.Later) != 1 || ack.Later[0].Code != wire.CodeInternal {
		t.Errorf("answer is %+v, want it to be sent again later", ack)
	}
	s.FailReports(nil)
	for range 2 { // a repetition is acknowledged too
		c.send(report(r))
		if ack := await[*wire.Ack](c); len(ack.Stored) != 1 || ack.Stored[0] != r.Task {
			t.Errorf("answer is %+v, want it to be stored", ack)
		}
	}
	s.FailReports(func(model.Result) error { return fmt.Errorf("no such task: %w", model.ErrNotFound) })
	c.send(report(r))
	if ack := await[*wire.Ack](c); len(ack.Refused) != 1 || ack.Refused[0].Code != wire.CodeNotFound {
		t.Errorf("answer is %+v, want a refusal", ack)
	}
}

func TestResultsOfAResourceKeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	c, _, standing := join(t, s, hello("p", "one"))
	var order []string
	s.FailReports(func(r model.Result) error {
		order = append(order, r.Code)
		return nil
	})
	var results []wire.Result
	for i := range 100 {
		results = append(results, wire.Result{
			Task: model.TaskID{UUID: uuid.New()}, Agent: "one", Epoch: standing["one"].Epoch, Resource: resource("one", "a"),
			Outcome: model.OutcomeDeployed, Change: model.ChangeNone, Code: fmt.Sprintf("%03d", i),
		})
	}
	c.send(report(results...))
	s.AwaitResults(t, 100)
	for i, code := range order {
		if code != fmt.Sprintf("%03d", i) {
			t.Fatalf("result %d was stored as number %d", i, i)
		}
	}
}

func TestFloodOfResultsEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	c, _, standing := join(t, s, hello("p", "one"))
	goOn := make(chan struct{})
	t.Cleanup(func() { close(goOn) }) // before the server stops, which waits for what is being stored
	s.FailReports(func(model.Result) error {
		<-goOn
		return nil
	})
	results := make([]wire.Result, wire.MaxBatch)
	for range 20 {
		for i := range results {
			results[i] = wire.Result{
				Task: model.TaskID{UUID: uuid.New()}, Agent: "one", Epoch: standing["one"].Epoch, Resource: resource("one", "a"),
				Outcome: model.OutcomeDeployed, Change: model.ChangeNone,
			}
		}
		raw, err := wire.Encode(1, report(results...))
		if err != nil {
			t.Fatal(err)
		}
		if c.conn.Write(t.Context(), websocket.MessageText, raw) != nil {
			break
		}
	}
	c.awaitEnd()
}

func TestTasksWaitForRoomAndCanBeWithdrawn(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t)
	c, _, _ := join(t, s, hello("p", "one"))
	tasks := make([]model.Task, wire.MaxAssigned+10)
	for i := range tasks {
		tasks[i] = task(t, s, "one", fmt.Sprint(i))
	}
	s.Dispatch(t, tasks...)
	s.Dispatch(t, tasks[0]) // again: it is in flight
	var got []wire.Task
	for len(got) < wire.MaxAssigned {
		got = append(got, await[*wire.Assign](c).Tasks...)
	}
	if len(got) != wire.MaxAssigned {
		t.Fatalf("%d tasks were assigned, want %d", len(got), wire.MaxAssigned)
	}
	// Those that wait at the hub are withdrawn there; the agent is asked about the others.
	last := []model.TaskID{tasks[len(tasks)-1].ID, tasks[0].ID}
	if err := s.Hub.Cancel(t.Context(), s.Environment, last); err != nil {
		t.Fatalf("Cancel() = %v", err)
	}
	if r := s.AwaitResult(t, last[0]); r.Outcome != model.OutcomeCancelled {
		t.Errorf("outcome is %s, want cancelled", r.Outcome)
	}
	if diff := cmp.Diff([]model.TaskID{tasks[0].ID}, await[*wire.Cancel](c).Tasks); diff != "" {
		t.Errorf("the agent is asked to cancel:\n%s", diff)
	}
	// A result makes room for the next.
	c.send(report(result(got[0])))
	if next := await[*wire.Assign](c).Tasks; len(next) != 1 || next[0].ID != tasks[wire.MaxAssigned].ID {
		t.Errorf("next is %v", next)
	}
}

func TestResumeNeedsTheToken(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t, func(cfg *hub.Config) { cfg.ResumeWindow = time.Minute })
	c, welcome, first := join(t, s, hello("p", "one"))
	assigned := task(t, s, "one", "a")
	s.Dispatch(t, assigned)
	await[*wire.Assign](c)
	_ = c.conn.CloseNow()

	h := hello("p", "one")
	h.Session, h.Resume = welcome.Session, welcome.Resume
	c, again, second := join(t, s, h)
	if !again.Resumed || again.Session != welcome.Session || second["one"].Epoch != first["one"].Epoch {
		t.Errorf("the session is not resumed: %+v, %+v", again, second)
	}
	// The task is not among those that the agent holds: it is sent again.
	if got := await[*wire.Assign](c).Tasks; len(got) != 1 || got[0].ID != assigned.ID {
		t.Errorf("assigned again: %v", got)
	}
	_ = c.conn.CloseNow()

	h.Resume = "guess"
	_, other, third := join(t, s, h)
	if other.Resumed || third["one"].Epoch <= first["one"].Epoch {
		t.Errorf("a wrong token resumed the session: %+v, %+v", other, third)
	}
	if lost := s.AwaitDown(t, "one", 1); len(lost) != 1 || lost[0] != assigned.ID {
		t.Errorf("lost = %v, want the task", lost)
	}
}

func TestLogsAreStreamed(t *testing.T) {
	t.Parallel()
	type live struct {
		Task  model.TaskID
		Lines []model.LogLine
	}
	got := make(chan live, 10)
	s := sdktest.NewServer(t, func(cfg *hub.Config) {
		cfg.Live = func(_ model.EnvironmentID, id model.TaskID, _ model.ResourceID, lines []model.LogLine) {
			got <- live{id, lines}
		}
	})
	c, welcome, _ := join(t, s, hello("p", "one"))
	if !welcome.StreamLogs {
		t.Errorf("the agent is not asked for logs")
	}
	mine := task(t, s, "one", "a")
	s.Dispatch(t, mine)
	await[*wire.Assign](c)
	line := wire.LogLine{Level: model.LevelInfo, Message: "hello", Time: time.Unix(1, 0).UTC()}
	c.send(&wire.Log{Task: model.TaskID{UUID: uuid.New()}, Resource: mine.Intent.Resource, Lines: []wire.LogLine{line}})
	c.send(&wire.Log{Task: mine.ID, Resource: mine.Intent.Resource, Lines: []wire.LogLine{line}})
	if diff := cmp.Diff(live{mine.ID, []model.LogLine{model.LogLine(line)}}, <-got); diff != "" {
		t.Errorf("the first log of a task in flight differs:\n%s", diff)
	}
}

func TestStateIsStored(t *testing.T) {
	t.Parallel()
	s := sdktest.NewServer(t, func(cfg *hub.Config) { cfg.ResumeWindow = time.Millisecond })
	c, welcome, _ := join(t, s, hello("p", "one"))
	s.Await(t, "the agent stored as up", func() bool { return s.StatusLocked("one").Up })
	c.send(&wire.Bye{Reason: "test"})
	s.Await(t, "the agent stored as down", func() bool { return !s.StatusLocked("one").Up })
	if got := s.Status("one"); got.SessionID != welcome.Session || got.Process != "p" {
		t.Errorf("the stored state is %+v, want the session that was lost", got)
	}
	s.Await(t, "the session stored as lost", func() bool { return !s.SessionLocked(welcome.Session).LostAt.IsZero() })
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := sdktest.NewServer(t, func(cfg *hub.Config) { cfg.Registerer = registry })
	c, _, _ := join(t, s, hello("p", "one", "two"))
	s.Dispatch(t, task(t, s, "one", "a"), task(t, s, "one", "b"))
	var assigned []wire.Task
	for len(assigned) < 2 {
		assigned = append(assigned, await[*wire.Assign](c).Tasks...)
	}
	c.send(report(result(assigned[0])))
	await[*wire.Ack](c)
	lie := result(assigned[1])
	lie.Version++
	c.send(report(lie))
	await[*wire.Ack](c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"intendant_agent_sessions": 1, "intendant_agent_agents_up": 2, "intendant_agent_tasks_in_flight": 1,
		"intendant_agent_tasks_waiting": 0, "intendant_agent_results_unstored": 0, "intendant_agent_results_total": 1,
		"intendant_agent_results_refused_total": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics differ:\n%s", diff)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := hub.New(hub.Config{}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("New() without a registry = %v, want ErrInvalid", err)
	}
	s := sdktest.NewServer(t)
	if _, err := hub.New(hub.Config{Registry: s, Autostart: &hub.Autostart{}}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("New() with an empty autostart = %v, want ErrInvalid", err)
	}
	h, err := hub.New(hub.Config{Registry: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("Run() without a sink = %v, want ErrInvalid", err)
	}
	big := task(t, s, "one", "a")
	big.Intent.Attributes = make([]byte, wire.MaxFrame)
	if err := s.Hub.Dispatch(t.Context(), big); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("Dispatch() of a large task = %v, want ErrInvalid", err)
	}
}
