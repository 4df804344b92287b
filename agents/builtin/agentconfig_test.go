package builtin_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/intendant/intendant/agents/builtin"
	"github.com/intendant/intendant/model"
)

// agentMap is the server's setting.
type agentMap struct {
	mu     sync.Mutex
	m      map[model.AgentName]string
	writes int
	err    error
}

func (a *agentMap) edit(_ context.Context, edit func(map[model.AgentName]string) bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	next := maps.Clone(a.m)
	if edit(next) {
		a.m = next
		a.writes++
	}
	return nil
}

func TestAgentConfig(t *testing.T) {
	t.Parallel()
	setting := &agentMap{m: map[model.AgentName]string{"internal": "local:", "here": "localhost"}}
	s := host(t, builtin.Config{EditAgentMap: setting.edit})
	for _, tc := range []struct {
		agent, uri string
		purged     bool
		outcome    model.Outcome
		change     model.Change
		entry      string
		text       string
	}{
		{"web1", "ssh://root@web1:22", false, model.OutcomeDeployed, model.ChangeCreated, "ssh://root@web1:22", ""},
		{"web1", "ssh://root@web1:22", false, model.OutcomeDeployed, model.ChangeNone, "ssh://root@web1:22", ""},
		{"web1", "web1.example.com", false, model.OutcomeDeployed, model.ChangeUpdated, "web1.example.com", ""},
		{"web1", "", false, model.OutcomeDeployed, model.ChangeUpdated, "local:", ""},
		{"here", "local:", false, model.OutcomeDeployed, model.ChangeNone, "localhost", ""},
		{"web1", "local:", true, model.OutcomeDeployed, model.ChangePurged, "", ""},
		{"web1", "local:", true, model.OutcomeDeployed, model.ChangeNone, "", ""},
		{"internal", "ssh://root@web1:22", false, model.OutcomeFailed, model.ChangeNone, "local:", "always there"},
		{"bad", "http://web1", false, model.OutcomeFailed, model.ChangeNone, "", "use local: or ssh://"},
		{"bad", "ssh://root:hunter22@web1", false, model.OutcomeFailed, model.ChangeNone, "", "set up a key"},
	} {
		r := deploy(t, s, id("std::AgentConfig", "agentname", tc.agent), map[string]any{
			"agentname": tc.agent, "uri": tc.uri, "autostart": true, "purged": tc.purged,
		})
		change := r.Change
		if change == "" {
			change = model.ChangeNone
		}
		if r.Outcome != tc.outcome || change != tc.change || !strings.Contains(messages(r), tc.text) || strings.Contains(messages(r), "hunter22") {
			t.Errorf("%s at %q, purged %t: %s, %s; want %s, %s; %s", tc.agent, tc.uri, tc.purged, r.Outcome, change, tc.outcome, tc.change, messages(r))
		}
		if got := setting.m[model.AgentName(tc.agent)]; got != tc.entry {
			t.Errorf("%s at %q, purged %t: the entry is %q, want %q", tc.agent, tc.uri, tc.purged, got, tc.entry)
		}
	}
	if setting.writes != 4 {
		t.Errorf("the setting was written %d times, want 4", setting.writes)
	}
	setting.err = errors.New("the server answers 403 it is protected")
	r := deploy(t, s, id("std::AgentConfig", "agentname", "web2"), map[string]any{"agentname": "web2", "uri": "web2"})
	if r.Outcome != model.OutcomeFailed || !strings.Contains(messages(r), "it is protected") {
		t.Errorf("a setting that can not be read: %s; %s", r.Outcome, messages(r))
	}
}

// An agent that works on another machine must not touch its own.
func TestBuiltInHandlersStayOnTheirMachine(t *testing.T) {
	t.Parallel()
	away := "ssh://root@elsewhere"
	s := host(t, builtin.Config{Address: func(name model.AgentName) string {
		if name != "host" {
			t.Errorf("asked for agent %s", name)
		}
		return away
	}})
	file := t.TempDir() + "/motd"
	content := s.AddFile([]byte("hello\n"))
	attributes := map[string]any{"path": file, "hash": content}
	r := deploy(t, s, id("std::File", "path", file), attributes)
	if r.Outcome != model.OutcomeUnavailable || !strings.Contains(messages(r), "works on ssh://root@elsewhere") || !strings.Contains(messages(r), "run an agent process on that machine") {
		t.Errorf("a file of an agent elsewhere: %s; %s", r.Outcome, messages(r))
	}
	if r := deploy(t, s, id("std::testing::NullResource", "name", "a"), map[string]any{"name": "a"}); r.Outcome != model.OutcomeDeployed {
		t.Errorf("a resource without a machine: %s; %s", r.Outcome, messages(r))
	}
	away = "local:"
	if r := deploy(t, s, id("std::File", "path", file), attributes); r.Outcome != model.OutcomeDeployed || read(t, file) != "hello\n" {
		t.Errorf("a file of a local agent: %s; %s", r.Outcome, messages(r))
	}
}
