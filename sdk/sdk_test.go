package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
)

const rid = model.ResourceID("test::Thing[host,name=a]")

var began = time.Unix(100, 0)

func intent(t testing.TB, attributes string) model.Intent {
	t.Helper()
	i, err := model.NewIntent(rid, json.RawMessage(attributes), nil, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// run calls an executor as the agent does.
func run(t testing.TB, e sdk.Executor, attributes string, change func(*model.Task)) model.Result {
	t.Helper()
	task := model.Task{ID: model.TaskID{UUID: uuid.New()}, Kind: model.TaskDeploy, Agent: "host", Intent: intent(t, attributes)}
	if change != nil {
		change(&task)
	}
	r, err := sdk.NewResource(task.Intent, 1)
	if err != nil {
		t.Fatalf("NewResource() = %v", err)
	}
	c := sdk.NewContext(t.Context(), sdk.ContextConfig{Task: task, ReportOnly: r.ReportOnly(), Now: func() time.Time { return began }})
	return c.Result(e.Execute(c, r), began, began)
}

// script is a handler that notes what is called.
type script struct {
	calls    []string
	observed sdk.Observed
	read     error
	change   error
	reload   error
	facts    error
}

func (s *script) Read(*sdk.Context, *sdk.Resource) (sdk.Observed, error) {
	s.calls = append(s.calls, "read")
	return s.observed, s.read
}

func (s *script) Change(_ *sdk.Context, _ *sdk.Resource, action model.Change, _ sdk.Observed, d model.Diff) error {
	s.calls = append(s.calls, fmt.Sprintf("%s %d", action, len(d)))
	return s.change
}

func (s *script) Reload(*sdk.Context, *sdk.Resource) error {
	s.calls = append(s.calls, "reload")
	return s.reload
}

func (s *script) Facts(*sdk.Context, *sdk.Resource) ([]model.Fact, error) {
	s.calls = append(s.calls, "facts")
	return []model.Fact{{Name: "f", Value: "v"}}, s.facts
}

func TestOrderOfARun(t *testing.T) {
	t.Parallel()
	same := sdk.Observed{Exists: true, Attributes: map[string]any{"size": 1, "unknown": "x"}}
	other := sdk.Observed{Exists: true, Attributes: map[string]any{"size": 2}}
	dry := func(task *model.Task) { task.Kind = model.TaskDryRun }
	reload := func(task *model.Task) { task.Reload = true }
	tests := map[string]struct {
		handler    script
		attributes string
		change     func(*model.Task)
		calls      string
		outcome    model.Outcome
		did        model.Change
		diff       int
	}{
		"nothing to do":        {handler: script{observed: same}, calls: "read facts", outcome: "deployed", did: "nochange"},
		"create":               {calls: "read created 1 facts", outcome: "deployed", did: "created", diff: 1},
		"update":               {handler: script{observed: other}, calls: "read updated 1 facts", outcome: "deployed", did: "updated", diff: 1},
		"purge":                {handler: script{observed: same}, attributes: `{"size":1,"purged":true}`, calls: "read purged 1 facts", outcome: "deployed", did: "purged", diff: 1},
		"purged already":       {attributes: `{"purged":true}`, calls: "read facts", outcome: "deployed", did: "nochange"},
		"dry run":              {handler: script{observed: other}, change: dry, calls: "read", outcome: "dry", did: "nochange", diff: 1},
		"dry run, the same":    {handler: script{observed: same}, change: dry, calls: "read", outcome: "dry", did: "nochange"},
		"report only":          {handler: script{observed: other}, attributes: `{"size":1,"report_only":true}`, calls: "read", outcome: "non_compliant", did: "nochange", diff: 1},
		"report only, same":    {handler: script{observed: same}, attributes: `{"size":1,"report_only":true}`, calls: "read", outcome: "deployed", did: "nochange"},
		"reload":               {handler: script{observed: same}, change: reload, calls: "read reload facts", outcome: "deployed", did: "nochange"},
		"read fails":           {handler: script{read: errors.New("x")}, calls: "read", outcome: "failed", did: "nochange"},
		"change fails":         {handler: script{observed: other, change: errors.New("x")}, calls: "read updated 1", outcome: "failed", did: "nochange", diff: 1},
		"reload fails":         {handler: script{observed: other, reload: errors.New("x")}, change: reload, calls: "read updated 1 reload", outcome: "failed", did: "updated", diff: 1},
		"facts fail":           {handler: script{observed: same, facts: errors.New("x")}, calls: "read facts", outcome: "failed", did: "nochange"},
		"facts alone":          {handler: script{observed: other}, change: func(task *model.Task) { task.Kind = model.TaskFacts }, calls: "facts", outcome: "deployed", did: "nochange"},
		"skipped by the read":  {handler: script{read: sdk.Skip("x")}, calls: "read", outcome: "skipped", did: "nochange"},
		"unavailable":          {handler: script{read: sdk.Unavailable("x")}, calls: "read", outcome: "unavailable", did: "nochange"},
		"wrapped instruction":  {handler: script{read: fmt.Errorf("y: %w", sdk.Skip("x"))}, calls: "read", outcome: "skipped", did: "nochange"},
		"requirement failed":   {change: func(task *model.Task) { task.Requires = map[model.ResourceID]model.Status{"a::B[c,d=e]": "failed"} }, calls: "", outcome: "skipped_for_dependency", did: "nochange"},
		"requirement deployed": {handler: script{observed: same}, change: func(task *model.Task) { task.Requires = map[model.ResourceID]model.Status{"a::B[c,d=e]": "deployed"} }, calls: "read facts", outcome: "deployed", did: "nochange"},
		"requirement in a dry run": {handler: script{observed: same}, change: func(task *model.Task) {
			task.Kind = model.TaskDryRun
			task.Requires = map[model.ResourceID]model.Status{"a::B[c,d=e]": "failed"}
		}, calls: "read", outcome: "dry", did: "nochange"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := test.attributes
			if attributes == "" {
				attributes = `{"size":1}`
			}
			h := test.handler
			r := run(t, sdk.HandlerExecutor{Handler: &h}, attributes, test.change)
			if got := strings.Join(h.calls, " "); got != test.calls {
				t.Errorf("calls are %q, want %q", got, test.calls)
			}
			if r.Outcome != test.outcome || r.Change != test.did || len(r.Changes) != test.diff {
				t.Errorf("result is %s, %s, %v, want %s, %s, %d changes", r.Outcome, r.Change, r.Changes, test.outcome, test.did, test.diff)
			}
			if strings.HasSuffix(test.calls, "facts") && test.handler.facts == nil && len(r.Facts) != 1 {
				t.Errorf("facts are %v", r.Facts)
			}
		})
	}
}

func TestInstructions(t *testing.T) {
	t.Parallel()
	fault := errors.New("the fault")
	tests := map[string]struct {
		err     error
		outcome model.Outcome
		code    string
		retry   model.RetryHint
		level   model.LogLevel
	}{
		"skip":       {sdk.Skip("the fault"), model.OutcomeSkipped, sdk.CodeSkipped, "", model.LevelWarning},
		"dependency": {sdk.SkipForDependency([]model.ResourceID{"the fault"}), model.OutcomeSkippedForDependency, sdk.CodeRequirement, "", model.LevelInfo},
		"no way":     {sdk.Unavailable("the fault"), model.OutcomeUnavailable, sdk.CodeUnavailable, model.RetryPerson, model.LevelError},
		"permanent":  {sdk.Permanent(fault), model.OutcomeFailed, sdk.CodeHandlerError, model.RetryPerson, model.LevelError},
		"coded":      {sdk.Coded("mine", fault), model.OutcomeFailed, "mine", "", model.LevelError},
		"plain":      {fault, model.OutcomeFailed, sdk.CodeHandlerError, "", model.LevelError},
		"invalid":    {fmt.Errorf("the fault: %w", model.ErrInvalid), model.OutcomeFailed, sdk.CodeInvalid, model.RetryPerson, model.LevelError},
	}
	for name, test := range tests {
		r := run(t, sdk.HandlerExecutor{Handler: &script{read: test.err}}, `{}`, nil)
		if r.Outcome != test.outcome || r.Code != test.code || r.Retry != test.retry {
			t.Errorf("%s: %s, %s, %q", name, r.Outcome, r.Code, r.Retry)
		}
		if len(r.Log) != 1 || r.Log[0].Level != test.level || !strings.Contains(r.Log[0].Message, "the fault") {
			t.Errorf("%s: log is %v", name, r.Log)
		}
	}
	if err := sdk.Coded("mine", fault); !errors.Is(err, fault) {
		t.Errorf("the cause is lost in %v", err)
	}
}

func TestResource(t *testing.T) {
	t.Parallel()
	r, err := sdk.NewResource(intent(t, `{"name":"a","n":12345678901234567890,"b":true,"purged":false,"report_only":true}`), 3)
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != rid || r.Parts.Agent != "host" || r.Version != 3 || r.Purged() || !r.ReportOnly() || !r.Bool("b") || r.Bool("none") {
		t.Errorf("resource is %+v", r)
	}
	if r.String("name") != "a" || r.String("b") != "" || r.String("none") != "" {
		t.Errorf("texts are %q, %q, %q", r.String("name"), r.String("b"), r.String("none"))
	}
	var fields struct {
		N any `json:"n"`
	}
	if err := r.Decode(&fields); err != nil || fmt.Sprint(fields.N) != "12345678901234567890" {
		t.Errorf("Decode() = %v, %v: large numbers must keep their text", fields.N, err)
	}
	var wrong struct {
		Name int `json:"name"`
	}
	if err := r.Decode(&wrong); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("Decode() into a wrong type = %v, want ErrInvalid", err)
	}
	for _, bad := range []model.Intent{{Resource: "nonsense", Attributes: []byte("{}")}, {Resource: rid, Attributes: []byte("[]")}, {Resource: rid}} {
		if _, err := sdk.NewResource(bad, 1); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("NewResource(%+v) = %v, want ErrInvalid", bad, err)
		}
	}
}

func TestCompareIgnoresFormAndOrder(t *testing.T) {
	t.Parallel()
	r, err := sdk.NewResource(intent(t, `{"list":[1,2],"map":{"b":1,"a":2},"text":"x","none":null}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	diff, err := sdk.Compare(r, map[string]any{
		"list": []int{1, 2}, "map": map[string]int{"a": 2, "b": 1}, "text": "y", "none": nil, "more": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Diff{"text": {Current: json.RawMessage(`"y"`), Desired: json.RawMessage(`"x"`)}}
	if d := cmp.Diff(want, diff); d != "" {
		t.Errorf("Compare() differs:\n%s", d)
	}
	if _, err := sdk.Compare(r, map[string]any{"text": func() {}}); err == nil {
		t.Errorf("Compare() of a function succeeded")
	}
}

func TestContextLog(t *testing.T) {
	t.Parallel()
	var live []string
	c := sdk.NewContext(t.Context(), sdk.ContextConfig{
		Now: func() time.Time { return began }, Live: func(l model.LogLine) { live = append(live, l.Message) },
	})
	log := c.Logger().With("a", 1).WithGroup("g").With("b", errors.New("cause"))
	log.Info("hello", "c", "x", slog.Group("h", "d", true))
	log.Debug("debug")
	log.Warn("warn")
	log.Error("error")
	c.Debugf("%d", 1)
	c.Infof("%d", 2)
	c.Warnf("%d", 3)
	c.Errorf("%d", 4)
	c.Log(model.LevelInfo, "not JSON", map[string]any{"f": func() {}, "ok": 1})
	c.Log(model.LevelInfo, "bad \xff text", nil)
	r := c.Result(nil, began, began)
	var levels, messages []string
	for _, l := range r.Log {
		levels = append(levels, string(l.Level))
		messages = append(messages, l.Message)
	}
	if d := cmp.Diff("INFO DEBUG WARNING ERROR DEBUG INFO WARNING ERROR INFO INFO", strings.Join(levels, " ")); d != "" {
		t.Errorf("levels differ:\n%s", d)
	}
	if d := cmp.Diff(messages, live); d != "" {
		t.Errorf("what was streamed differs from what was reported:\n%s", d)
	}
	if d := cmp.Diff(`{"a":1,"g.b":"cause","g.c":"x","g.h.d":true}`, string(r.Log[0].Kwargs)); d != "" {
		t.Errorf("arguments differ:\n%s", d)
	}
	if !json.Valid(r.Log[8].Kwargs) || messages[9] != "bad \uFFFD text" {
		t.Errorf("arguments are %q, message is %q", r.Log[8].Kwargs, messages[9])
	}
}

func TestContextLimits(t *testing.T) {
	t.Parallel()
	c := sdk.NewContext(t.Context(), sdk.ContextConfig{})
	for i := range sdk.MaxLogLines + 10 {
		c.Infof("%d", i)
	}
	for range sdk.MaxFacts + 10 {
		c.AddFact(model.Fact{Name: "f"})
	}
	c.AddChange("large", strings.Repeat("x", sdk.MaxChangeBytes+1), 1)
	r := c.Result(nil, began, began)
	if len(r.Log) != sdk.MaxLogLines+1 || !strings.Contains(r.Log[sdk.MaxLogLines].Message, "too long") || len(r.Facts) != sdk.MaxFacts {
		t.Errorf("%d lines and %d facts", len(r.Log), len(r.Facts))
	}
	if got := string(r.Changes["large"].Current); !strings.Contains(got, "too long") {
		t.Errorf("a large value is %q", got)
	}
	c = sdk.NewContext(t.Context(), sdk.ContextConfig{})
	for range 100 {
		c.Infof("%s", strings.Repeat("x", 2*sdk.MaxMessageBytes))
	}
	size := 0
	for _, l := range c.Result(nil, began, began).Log {
		size += len(l.Message)
	}
	if size > sdk.MaxLogBytes+1000 {
		t.Errorf("the log has %d bytes", size)
	}
}

func TestDeadlineIsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	<-ctx.Done()
	c := sdk.NewContext(ctx, sdk.ContextConfig{})
	if r := c.Result(ctx.Err(), began, began); r.Code != sdk.CodeDeadline || r.Retry != model.RetryLater {
		t.Errorf("result is %s, %q", r.Code, r.Retry)
	}
}

func TestScratchAndFiles(t *testing.T) {
	t.Parallel()
	c := sdk.NewContext(t.Context(), sdk.ContextConfig{})
	if _, ok := c.Get("k"); ok {
		t.Errorf("Get() of nothing")
	}
	c.Set("k", 1)
	if v, ok := c.Get("k"); !ok || v != 1 {
		t.Errorf("Get() = %v, %v", v, ok)
	}
	if _, _, err := c.OpenFile("x"); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("OpenFile() without files = %v, want ErrUnavailable", err)
	}
	c = sdk.NewContext(t.Context(), sdk.ContextConfig{Files: files{}})
	f, size, err := c.OpenFile("x")
	if err != nil || size != 4 {
		t.Fatalf("OpenFile() = %d, %v", size, err)
	}
	_ = f.Close()
}

type files struct{}

func (files) Open(context.Context, string) (io.ReadCloser, int64, error) {
	return io.NopCloser(bytes.NewReader([]byte("text"))), 4, nil
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := sdk.NewRegistry()
	for _, typ := range []string{"b::B", "a::A"} {
		if err := r.Handle(typ, &script{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Handle("a::A", &script{}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("Handle() again = %v, want ErrConflict", err)
	}
	if d := cmp.Diff([]string{"a::A", "b::B"}, r.Types()); d != "" {
		t.Errorf("Types() differs:\n%s", d)
	}
	task := func(typ string) model.Task {
		return model.Task{Intent: model.Intent{Resource: model.ResourceID(typ + "[host,name=a]")}}
	}
	found := sdk.HandlerExecutor{Handler: &script{}}
	r.Fallback(func(_ context.Context, task model.Task) (sdk.Executor, error) {
		switch task.Intent.Resource.Parts().Type {
		case "c::C":
			return found, nil
		case "d::D":
			return nil, errors.New("syntax error")
		}
		return nil, fmt.Errorf("nothing: %w", model.ErrNotFound)
	})
	r.Fallback(func(_ context.Context, task model.Task) (sdk.Executor, error) {
		if task.Intent.Resource.Parts().Type == "e::E" {
			return found, nil
		}
		return nil, model.ErrNotFound
	})
	for typ, want := range map[string]string{
		"a::A": "", "c::C": "", "e::E": "", "d::D": "syntax error", "f::F": "no handler for f::F",
	} {
		e, err := r.Find(t.Context(), task(typ))
		if want == "" {
			if err != nil || e == nil {
				t.Errorf("Find(%s) = %v, %v", typ, e, err)
			}
			continue
		}
		var instruction *sdk.Instruction
		if !errors.As(err, &instruction) || instruction.Outcome != model.OutcomeUnavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%s) = %v, want unavailable with %q", typ, err, want)
		}
	}
}

func TestPreferredComesFirst(t *testing.T) {
	t.Parallel()
	r := sdk.NewRegistry()
	own, shipped, other := nothing{}, nothing{}, nothing{}
	if err := r.Execute("test::A", &own); err != nil {
		t.Fatal(err)
	}
	task := func(typ string) model.Task {
		return model.Task{Intent: model.Intent{Resource: model.ResourceID(typ + "[a,b=c]")}}
	}
	notFound := fmt.Errorf("not mine: %w", model.ErrNotFound)
	r.Prefer(func(_ context.Context, t model.Task) (sdk.Executor, error) {
		if t.Code == "" {
			return nil, notFound
		}
		if t.Code == "broken" {
			return nil, errors.New("the code can not be had")
		}
		return &shipped, nil
	})
	r.Fallback(func(_ context.Context, t model.Task) (sdk.Executor, error) {
		if t.Intent.Resource.Parts().Type != "test::B" {
			return nil, notFound
		}
		return &other, nil
	})
	with := task("test::A")
	with.Code = "some"
	broken := task("test::A")
	broken.Code = "broken"
	for name, tc := range map[string]struct {
		task model.Task
		want sdk.Executor
	}{"own": {task("test::A"), &own}, "shipped": {with, &shipped}, "fallback": {task("test::B"), &other}} {
		if got, err := r.Find(t.Context(), tc.task); err != nil || got != tc.want {
			t.Errorf("%s: Find = %p, %v; want %p", name, got, err, tc.want)
		}
	}
	for name, task := range map[string]model.Task{"nobody": task("test::C"), "broken": broken} {
		_, err := r.Find(t.Context(), task)
		if i, ok := errors.AsType[*sdk.Instruction](err); !ok || i.Outcome != model.OutcomeUnavailable {
			t.Errorf("%s: Find = %v, want an instruction of outcome unavailable", name, err)
		}
	}
}

// nothing is an executor that is told from others by its address.
type nothing struct{ _ byte }

// Execute implements [sdk.Executor].
func (*nothing) Execute(*sdk.Context, *sdk.Resource) error { return nil }

func TestHide(t *testing.T) {
	t.Parallel()
	c := sdk.NewContext(t.Context(), sdk.ContextConfig{})
	c.Hide("password", "s3cr3t!", "ab")
	c.AddChange("password", "old", "s3cr3t!")
	c.AddChange("name", "x", "ab")
	c.Infof("the password is s3cr3t!, the name ab")
	c.SetOutcome(model.OutcomeFailed)
	r := c.Result(nil, time.Now(), time.Now())
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cr3t!") || strings.Contains(string(text), `"old"`) {
		t.Errorf("the secret is reported: %s", text)
	}
	// Short texts are everywhere: hiding them would hide everything.
	if string(r.Changes["name"].Desired) != `"ab"` || r.Code != sdk.CodeHandlerError {
		t.Errorf("the change of the name is %s, the code %q", r.Changes["name"].Desired, r.Code)
	}
}

// A handler found by a preference may leave a resource to the registered one; without one that is a fault with a code.
func TestOwn(t *testing.T) {
	t.Parallel()
	r := sdk.NewRegistry()
	res, err := sdk.NewResource(intent(t, `{"name":"a"}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	c := sdk.NewContext(t.Context(), sdk.ContextConfig{Task: model.Task{Intent: intent(t, `{"name":"a"}`)}})
	err = r.Own(c, res)
	if i, ok := errors.AsType[*sdk.Instruction](err); !ok || i.Code != sdk.CodeNoHandler || r.HasOwn("test::Thing") {
		t.Errorf("Own() = %v, want the code %s", err, sdk.CodeNoHandler)
	}
	s := &script{observed: sdk.Observed{Exists: true}}
	if err := r.Handle("test::Thing", s); err != nil {
		t.Fatal(err)
	}
	if err := r.Own(c, res); err != nil || !r.HasOwn("test::Thing") || len(s.calls) == 0 {
		t.Errorf("Own() = %v, calls %v", err, s.calls)
	}
}
