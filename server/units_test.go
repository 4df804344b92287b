package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/api"
	"github.com/intendant/intendant/model"
)

type allKinds struct {
	Text     string                     `arg:"text,optional"`
	Kind     string                     `arg:"kind,optional" enum:"Red,green"`
	Number   int                        `arg:"number" default:"7"`
	Flag     bool                       `arg:"flag" default:"true"`
	Maybe    *int                       `arg:"maybe"`
	ID       *model.EnvironmentID       `arg:"id"`
	When     *time.Time                 `arg:"when"`
	List     []string                   `arg:"list,optional"`
	Names    []model.AgentName          `arg:"names,optional"`
	Filter   map[string][]string        `arg:"filter,optional"`
	Raw      json.RawMessage            `arg:"raw,optional"`
	Metadata map[string]json.RawMessage `arg:"metadata,optional"`
	Inner    *struct {
		A int `json:"a"`
	} `arg:"inner"`
	Rest map[string]json.RawMessage `arg:"*"`
}

func TestArgumentsAreConverted(t *testing.T) {
	t.Parallel()
	arguments := argumentsOf(reflect.TypeFor[allKinds](), "")
	e := &endpoint{args: arguments}
	one := 1
	id := model.EnvironmentID{UUID: uuid.MustParse("11111111-2222-3333-4444-555555555555")}
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	base := func(change func(*allKinds)) allKinds {
		a := allKinds{Number: 7, Flag: true}
		change(&a)
		return a
	}
	for _, c := range []struct {
		name, body, query string
		want              allKinds
		fault             string
	}{
		{"nothing", "", "", base(func(*allKinds) {}), ""},
		{"null is absent", `{"text": null, "maybe": null, "flag": null}`, "", base(func(*allKinds) {}), ""},
		{
			"body", `{"text": "x", "kind": "RED", "number": 3, "flag": false, "maybe": "1", "id": "11111111-2222-3333-4444-555555555555", "when": "2026-01-02T03:04:05"}`, "",
			base(func(a *allKinds) {
				a.Text, a.Kind, a.Number, a.Flag, a.Maybe, a.ID, a.When = "x", "Red", 3, false, &one, &id, &when
			}), "",
		},
		{
			"query", "", "text=x&kind=green&number=3&flag=off&maybe=1&list=a&names=a&names=b&raw=5&when=2026-01-02T04:04:05%2B01:00",
			base(func(a *allKinds) {
				a.Text, a.Kind, a.Number, a.Flag, a.Maybe, a.When = "x", "green", 3, false, &one, &when
				a.List, a.Names, a.Raw = []string{"a"}, []model.AgentName{"a", "b"}, json.RawMessage(`"5"`)
			}), "",
		},
		{
			"keys in the query", "", "filter.a=1&filter.a=2&filter.b=3&metadata.k=v",
			base(func(a *allKinds) {
				a.Filter = map[string][]string{"a": {"1", "2"}, "b": {"3"}}
				a.Metadata = map[string]json.RawMessage{"k": json.RawMessage(`"v"`)}
			}), "",
		},
		{
			"filter in the body", `{"filter": {"a": ["1", 2, true], "b": "c"}}`, "",
			base(func(a *allKinds) { a.Filter = map[string][]string{"a": {"1", "2", "true"}, "b": {"c"}} }), "",
		},
		{
			"the rest", `{"more": [1]}`, "other=x&other=y",
			base(func(a *allKinds) {
				a.Rest = map[string]json.RawMessage{"more": json.RawMessage(`[1]`), "other": json.RawMessage(`["x","y"]`)}
			}), "",
		},
		{
			"an object", `{"inner": {"a": 4}, "raw": {"n": 12345678901234567890}}`, "",
			base(func(a *allKinds) {
				a.Inner = &struct {
					A int `json:"a"`
				}{4}
				a.Raw = json.RawMessage(`{"n": 12345678901234567890}`)
			}), "",
		},
		{"text of another type", `{"text": 1}`, "", allKinds{}, "a text is expected"},
		{"value that is none of the enum", `{"kind": "blue"}`, "", allKinds{}, "not one of Red, green"},
		{"number that is none", `{"number": 1.5}`, "", allKinds{}, "not a whole number"},
		{"number that is a list", `{"number": [1]}`, "", allKinds{}, "single value"},
		{"flag that is none", "", "flag=perhaps", allKinds{}, "neither true nor false"},
		{"id that is none", "", "id=me", allKinds{}, "not valid"},
		{"time that is none", "", "when=soon", allKinds{}, "ISO 8601"},
		{"list that is none", `{"list": 1}`, "", allKinds{}, "cannot unmarshal"},
		{"filter that is none", `{"filter": 1}`, "", allKinds{}, "object of lists"},
		{"filter of objects", `{"filter": {"a": {"b": 1}}}`, "", allKinds{}, "single value"},
		{"object that is none", `{"inner": "x"}`, "", allKinds{}, "cannot unmarshal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			values, err := collect(e, []byte(c.body), nil, query)
			if err != nil {
				t.Fatal(err)
			}
			var got allKinds
			err = bind(reflect.ValueOf(&got).Elem(), arguments, values)
			if c.fault != "" {
				var invalid *invalidArgumentsError
				if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.fault) || len(invalid.details) != 1 {
					t.Errorf("bind = %v, want a fault with %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatalf("bind = %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the arguments differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllFaultsAreReported(t *testing.T) {
	t.Parallel()
	type args struct {
		A int    `arg:"a"`
		B string `arg:"b"`
	}
	arguments := argumentsOf(reflect.TypeFor[args](), "")
	var a args
	err := bind(reflect.ValueOf(&a).Elem(), arguments, map[string]argValue{"a": {texts: []string{"x"}}, "c": {texts: []string{"y"}}})
	var invalid *invalidArgumentsError
	if !errors.As(err, &invalid) || len(invalid.details) != 3 {
		t.Fatalf("bind = %#v, want three faults", err)
	}
}

func TestSlowStreamsStartAnew(t *testing.T) {
	t.Parallel()
	b := newBroker(nil, 2)
	s, err := b.open(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range eventsQueued + 10 {
		b.publish(api.Event{Kind: api.EventResource, ID: fmt.Sprint(i)})
	}
	select {
	case <-s.lost:
	default:
		t.Error("the stream was not told that it has missed events")
	}
	s.drain()
	if len(s.events) != 0 {
		t.Errorf("%d events wait after the drain", len(s.events))
	}
	if _, err := b.open(nil, ""); err != nil {
		t.Errorf("a second stream: %v", err)
	}
	if _, err := b.open(nil, ""); !errors.Is(err, model.ErrUnavailable) {
		t.Errorf("a third stream: %v, want that there are too many", err)
	}
	b.drop(s)
	if b.count() != 1 {
		t.Errorf("%d streams are open, want 1", b.count())
	}
}

func TestStreamsReplayWhatIsKept(t *testing.T) {
	t.Parallel()
	b := newBroker(nil, 100)
	for i := range eventsKept + 1 {
		b.publish(api.Event{Kind: api.EventResource, Environment: testEnvironment.String(), ID: fmt.Sprint(i)})
	}
	other := model.EnvironmentID{UUID: uuid.New()}
	for _, c := range []struct {
		name, after string
		only        *model.EnvironmentID
		events      int
		lost        bool
	}{
		{"nothing missed", fmt.Sprintf("%s-%d", b.boot, b.newest()), nil, 0, false},
		{"five missed", fmt.Sprintf("%s-%d", b.boot, b.newest()-5), nil, 5, false},
		{"five of others missed", fmt.Sprintf("%s-%d", b.boot, b.newest()-5), &other, 0, false},
		{"five of its own missed", fmt.Sprintf("%s-%d", b.boot, b.newest()-5), &testEnvironment, 5, false},
		{"more missed than waits", fmt.Sprintf("%s-%d", b.boot, b.newest()-eventsQueued-1), nil, eventsQueued, true},
		{"more missed than is kept", b.boot + "-1", nil, 0, true},
		{"of another process", "0123456789ab-5", nil, 0, true},
		{"of the future", fmt.Sprintf("%s-%d", b.boot, b.newest()+5), nil, 0, true},
		{"nonsense", "nonsense", nil, 0, true},
	} {
		s, err := b.open(c.only, c.after)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.events) != c.events || (len(s.lost) == 1) != c.lost {
			t.Errorf("%s: %d events wait and lost = %v, want %d and %v", c.name, len(s.events), len(s.lost) == 1, c.events, c.lost)
		}
	}
}

func TestRepositoriesAreNamedAfterTheirAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://git.example.com/Shop/Model.git":              "shop-model",
		"https://git.example.com/group/sub/model/":            "sub-model",
		"git@git.example.com:shop/model.git":                  "shop-model",
		"ssh://git@git.example.com:22/model":                  "model",
		"/srv/git/model.git":                                  "git-model",
		"file:///srv/git/Größe.git":                           "git-gr-e",
		"https://git.example.com/":                            "git.example.com",
		"https://git.example.com/" + strings.Repeat("x", 200): strings.Repeat("x", 80),
		"/": "repository",
	} {
		got := nameOfRepository(address)
		if string(got) != want {
			t.Errorf("nameOfRepository(%q) = %q, want %q", address, got, want)
		}
		if !repositoryID().MatchString(string(got)) {
			t.Errorf("%q is not a name that can be given", got)
		}
	}
}

func TestWhatEnvironmentsAreMadeOfIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what  string
		check func(string) (string, error)
		good  map[string]string
		bad   []string
	}{
		{
			"repository", repositoryURL,
			map[string]string{
				"": "", " https://x/y ": "https://x/y", "git@x:y": "git@x:y", "ssh://git@x/y": "ssh://git@x/y", "/srv/x": "/srv/x", "file:///srv/x": "file:///srv/x", //nolint:gocritic // the blanks are the case
				"https://user@x/y": "https://user@x/y",
			},
			[]string{"-x", "x", "../x", "ext::sh", "https:///x", "https://u:p@x/y", "a b", "http://x/\ny", "javascript:alert(1)"},
		},
		{
			"branch", checkBranch,
			map[string]string{"": "", "main": "main", "feature/a.b-c": "feature/a.b-c", "ü": "ü"},
			[]string{"-x", "a b", "a..b", "a^", "a:b", "a//b", "/a", "a/", "a.lock", "a.", "a@{1}", "a\\b", "a*"},
		},
		{
			"path", checkPath,
			map[string]string{"": "", ".": "", "./a//b/": "a/b", "a/../b": "b"},
			[]string{"..", "../a", "/a", "a/../../b", ".git/hooks", "a\x00b", "a/.git"},
		},
	} {
		for given, want := range c.good {
			if got, err := c.check(given); err != nil || got != want {
				t.Errorf("%s %q = %q, %v; want %q", c.what, given, got, err, want)
			}
		}
		for _, given := range c.bad {
			if got, err := c.check(given); err == nil {
				t.Errorf("%s %q is taken as %q", c.what, given, got)
			}
		}
	}
	image := "image/png;base64," + base64.StdEncoding.EncodeToString([]byte("x"))
	for icon, good := range map[string]bool{
		"": true, image: true, "data:" + image: true, "image/png;base64,?": false, "text/html;base64,AAAA": false, "image/png,x": false,
		"image/png;base64," + strings.Repeat("A", maxIcon): false,
	} {
		if err := checkIcon(icon); (err == nil) != good {
			t.Errorf("the icon %.40q: %v", icon, err)
		}
	}
	if err := checkDescription(strings.Repeat("ü", 255)); err != nil {
		t.Error(err)
	}
	if err := checkDescription(strings.Repeat("x", 256)); err == nil {
		t.Error("a long description is taken")
	}
	for _, name := range []string{"", " ", "a\nb", strings.Repeat("x", 256)} {
		if _, err := checkName("x", name); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
}

func TestExplanationsFromState(t *testing.T) {
	t.Parallel()
	required := model.ResourceID("fs::File[web,path=/r]")
	up := &model.AgentStatus{Name: "web", Up: true}
	state := func(change func(*model.ResourceState)) model.ResourceState {
		s := model.ResourceState{Resource: "fs::File[web,path=/a]", IntentHash: "1", DeployedHash: "1", LastOutcome: model.OutcomeDeployed, Blocked: model.NotBlocked}
		change(&s)
		return s
	}
	for _, c := range []struct {
		name    string
		halted  bool
		state   model.ResourceState
		require model.Status
		agent   *model.AgentStatus
		codes   string
		summary string
	}{
		{"deployed", true, state(func(*model.ResourceState) {}), "", nil, "", "as it should be"},
		{"deploying", false, state(func(s *model.ResourceState) { s.Deploying = true }), "", up, "", "now"},
		{"orphaned", false, state(func(s *model.ResourceState) { s.OrphanedAfter = 4 }), "", up, "", "version 4"},
		{"undefined", false, state(func(s *model.ResourceState) { s.Compliance = model.Undefined }), "", up, "undefined", "not known yet"},
		{"blocked", false, state(func(s *model.ResourceState) { s.Blocked = model.IsBlocked }), model.StatusUndefined, up, "blocked", string(required)},
		{"failed", false, state(func(s *model.ResourceState) { s.LastOutcome, s.Failures = model.OutcomeFailed, 2 }), "", up, "failed", "2 in a row"},
		{"report only", false, state(func(s *model.ResourceState) { s.LastOutcome = model.OutcomeNonCompliant }), "", up, "report-only", "only reported"},
		{"halted and alone", true, state(func(s *model.ResourceState) { s.DeployedHash = "" }), "", nil, "halted agent-unknown", "halted"},
		{"paused", false, state(func(s *model.ResourceState) { s.DeployedHash = "" }), "", &model.AgentStatus{Paused: true}, "agent-paused", "paused"},
		{"down", false, state(func(s *model.ResourceState) { s.DeployedHash = "" }), "", &model.AgentStatus{}, "agent-down", "not connected"},
		{"waiting", false, state(func(s *model.ResourceState) { s.DeployedHash = "" }), model.StatusFailed, up, "waiting-for-requirement", "which is failed"},
		{"next in line", false, state(func(s *model.ResourceState) { s.DeployedHash = "" }), "", up, "", "Nothing holds"},
	} {
		r := model.ResourceDetails{ResourceRow: model.ResourceRow{State: c.state}, RequiresStatus: map[model.ResourceID]model.Status{}}
		if c.require != "" {
			r.RequiresStatus[required] = c.require
		}
		x := explainFromState(model.Environment{Halted: c.halted}, r, c.agent)
		var codes []string
		for _, reason := range x.Reasons {
			codes = append(codes, reason.Code)
		}
		if got := strings.Join(codes, " "); got != c.codes || !strings.Contains(x.Summary, c.summary) {
			t.Errorf("%s: %q because of %q, want %q because of %q", c.name, x.Summary, got, c.summary, c.codes)
		}
	}
}

func TestDryRunDifferencesAreShown(t *testing.T) {
	t.Parallel()
	changes := func(name, from, to string) model.Diff {
		return model.Diff{name: {Current: json.RawMessage(from), Desired: json.RawMessage(to)}}
	}
	for _, c := range []struct {
		result model.DryRunResult
		status string
		count  int
	}{
		{model.DryRunResult{Status: model.DiffModified, Changes: changes("mode", "1", "2")}, "modified", 1},
		{model.DryRunResult{Status: model.DiffModified, Changes: changes("requires", "[]", `["x"]`)}, "unmodified", 0},
		{model.DryRunResult{Status: model.DiffUnmodified}, "unmodified", 0},
		{model.DryRunResult{Changes: changes("purged", "true", "false")}, "added", 1},
		{model.DryRunResult{Changes: changes("purged", "false", "true")}, "deleted", 1},
		{model.DryRunResult{Status: model.DiffAgentDown, Message: "agent web is paused"}, "agent_down", 1},
	} {
		got := dryRunDiffOf(c.result)
		if got.Status != c.status || len(got.Attributes) != c.count {
			t.Errorf("dryRunDiffOf(%+v) = %+v, want %s with %d attributes", c.result, got, c.status, c.count)
		}
	}
}

func TestValuesAreComparedAsText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"": "", "null": "", "true": "True", "false": "False", "12345678901234567890": "12345678901234567890", `"a\nb"`: "a\nb",
		`{"b":[1],"a":{}}`: "{\n    \"a\": {},\n    \"b\": [\n        1\n    ]\n}",
	} {
		if got := compareText(json.RawMessage(raw)); got != want {
			t.Errorf("compareText(%s) = %q, want %q", raw, got, want)
		}
	}
}

func TestFiltersOfResources(t *testing.T) {
	t.Parallel()
	row := model.ResourceRow{State: model.ResourceState{
		Resource: "fs::File[web,path=/etc/hosts]", Compliance: model.Compliant, LastRun: model.RunSuccessful, Blocked: model.NotBlocked,
	}}
	for filter, want := range map[string]bool{
		`{}`:                               true,
		`{"agent": {"eq": ["db", "web"]}}`: true,
		`{"agent": {"neq": ["web"]}}`:      false,
		`{"resourceType": {"contains": ["File"], "notContains": ["Link"]}}`: true,
		`{"resourceIdValue": {"notContains": ["hosts"]}}`:                   false,
		`{"compliance": {"eq": ["COMPLIANT"]}}`:                             true,
		`{"compliance": {"neq": ["compliant"]}}`:                            false,
		`{"lastHandlerRun": {"eq": ["failed"]}}`:                            false,
		`{"blocked": {"eq": ["not_blocked"]}}`:                              true,
		`{"isDeploying": true}`:                                             false,
		`{"purged": true}`:                                                  true,
		`{"purged": false}`:                                                 false,
	} {
		var f resourceFilter
		if err := json.Unmarshal([]byte(filter), &f); err != nil {
			t.Fatal(err)
		}
		if got := f.passes(row, map[model.ResourceID]bool{row.State.Resource: true}); got != want {
			t.Errorf("%s = %v, want %v", filter, got, want)
		}
	}
}
