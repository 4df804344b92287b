package store_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store/storetest"
)

func TestAgentTokens(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, now := storetest.Open(t, url), storetest.Now()
	env, other := storetest.Environment(t, s).ID, storetest.Environment(t, s).ID
	token, err := s.IssueAgentToken(t.Context(), env, "ci", false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.AuthenticateAgent(t.Context(), env, token); err != nil {
			t.Errorf("AuthenticateAgent: %v", err)
		}
	}
	for name, err := range map[string]error{
		"another environment": s.AuthenticateAgent(t.Context(), other, token),
		"another token":       s.AuthenticateAgent(t.Context(), env, token+"x"),
		"no token":            s.AuthenticateAgent(t.Context(), env, ""),
	} {
		if !errors.Is(err, model.ErrForbidden) {
			t.Errorf("%s: %v, want forbidden", name, err)
		}
	}
	tokens, err := s.AgentTokens(t.Context(), env)
	if err != nil || len(tokens) != 1 || tokens[0].Description != "ci" || tokens[0].UsedAt.IsZero() {
		t.Fatalf("AgentTokens = %+v, %v", tokens, err)
	}
	var stored string
	if err := connect(t, url).QueryRow(t.Context(), "SELECT t::text || encode(digest, 'escape') FROM agent_token t").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored, token.Reveal()) {
		t.Error("the database has the token's text")
	}
	for range 2 {
		if err := s.RevokeAgentToken(t.Context(), env, tokens[0].ID, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AuthenticateAgent(t.Context(), env, token); !errors.Is(err, model.ErrForbidden) {
		t.Errorf("revoked: %v, want forbidden", err)
	}
	if err := s.RevokeAgentToken(t.Context(), other, tokens[0].ID, now); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("revoking in another environment: %v, want not found", err)
	}
}

// Of many agents that come with the same one-time token at once, one gets in.
func TestOneTimeToken(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	token, err := s.IssueAgentToken(t.Context(), env, "", true)
	if err != nil {
		t.Fatal(err)
	}
	var (
		wait sync.WaitGroup
		in   atomic.Int32
	)
	for range 8 {
		wait.Go(func() {
			switch err := s.AuthenticateAgent(t.Context(), env, token); {
			case err == nil:
				in.Add(1)
			case !errors.Is(err, model.ErrForbidden):
				t.Errorf("AuthenticateAgent: %v", err)
			}
		})
	}
	wait.Wait()
	if n := in.Load(); n != 1 {
		t.Errorf("%d got in, want one", n)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	if err := s.ExpireSessions(t.Context(), "server-1"); err != nil {
		t.Fatal(err)
	}
	session := func(id string, at time.Time) model.AgentSession {
		return model.AgentSession{ID: id, Environment: env, Hostname: "h", Process: "p", Agents: []model.AgentName{"web"}, Version: "1", Autostarted: true, ConnectedAt: at}
	}
	one, two := session("s1", now), session("s2", now.Add(time.Second))
	status := func(session string, up bool) []model.AgentStatus {
		return []model.AgentStatus{{Environment: env, Name: "web", Up: up, Process: "p", Hostname: "h", SessionID: session, Since: now}}
	}
	agent := func() model.AgentStatus {
		t.Helper()
		l, err := s.Agents(t.Context(), env, model.AgentFilter{}, model.Page{})
		if err != nil || len(l.Items) != 1 {
			t.Fatalf("Agents = %v, %v", l.Items, err)
		}
		return l.Items[0]
	}
	for _, err := range []error{s.SaveSession(t.Context(), one), s.SaveAgents(t.Context(), status("s1", true)), s.SaveSession(t.Context(), two)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetAgentsPaused(t.Context(), env, nil, true, "me", now); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveAgents(t.Context(), status("s2", true)); err != nil {
		t.Fatal(err)
	}
	// The end of the first session is heard after the second has taken over.
	if err := s.SaveAgents(t.Context(), status("s1", false)); err != nil {
		t.Fatal(err)
	}
	if a := agent(); !a.Up || a.SessionID != "s2" || !a.Paused {
		t.Errorf("agent = %+v, want up with s2, and paused still", a)
	}
	one.LostAt = now.Add(time.Minute)
	if err := s.SaveSession(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	live, err := s.AgentSessions(t.Context(), env, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]model.AgentSession{two}, live); d != "" {
		t.Errorf("live sessions: %s", d)
	}
	all, err := s.AgentSessions(t.Context(), model.EnvironmentID{}, true, 10)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]model.AgentSession{two, one}, all); d != "" {
		t.Errorf("all sessions: %s", d)
	}
	// Another server starts: nothing of this one is touched. Then this one starts again.
	if err := s.ExpireSessions(t.Context(), "server-2"); err != nil {
		t.Fatal(err)
	}
	if a := agent(); !a.Up {
		t.Error("another server's start takes the agent down")
	}
	if err := s.ExpireSessions(t.Context(), "server-1"); err != nil {
		t.Fatal(err)
	}
	if a := agent(); a.Up {
		t.Error("the agent is up with a session of a server that has just started")
	}
	got, err := s.AgentSession(t.Context(), "s2")
	if err != nil || got.LostAt.IsZero() {
		t.Errorf("AgentSession = %+v, %v, want it lost", got, err)
	}
	if _, err := s.AgentSession(t.Context(), "none"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("an unknown session: %v, want not found", err)
	}
}

func TestAgentIntents(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	if v, in, err := s.AgentIntents(t.Context(), env, []model.AgentName{"web"}); err != nil || v != 0 || len(in) != 0 {
		t.Errorf("AgentIntents = %d, %v, %v, want nothing before a release", v, in, err)
	}
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=1", "db/b=1", "x/c=1")...)
	storetest.Version(t, s, env, false, storetest.Intents(t, "a=2")...)
	v, in, err := s.AgentIntents(t.Context(), env, []model.AgentName{"web", "x"})
	if err != nil || v != 1 {
		t.Fatalf("AgentIntents = %d, %v, want version 1", v, err)
	}
	if d := cmp.Diff([]string{`a{"content":"1"}`, `c{"content":"1"}`}, summary(in)); d != "" {
		t.Error(d)
	}
	names, err := s.AgentsOfVersion(t.Context(), env, 1)
	if err != nil || !cmp.Equal(names, []model.AgentName{"db", "web", "x"}) {
		t.Errorf("AgentsOfVersion = %v, %v", names, err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	f := model.File{Hash: "0a4d55a8d778e5022fab701977c5d840bbc486d0", Content: []byte("Hello World\x00")}
	for range 2 {
		if err := s.SaveFile(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.File(t.Context(), f.Hash); err != nil || !cmp.Equal(got, f.Content) {
		t.Errorf("File = %q, %v", got, err)
	}
	other := "da39a3ee5e6b4b0d3255bfef95601890afd80709"
	if missing, err := s.MissingFiles(t.Context(), []string{other, f.Hash}); err != nil || !cmp.Equal(missing, []string{other}) {
		t.Errorf("MissingFiles = %v, %v", missing, err)
	}
	if _, err := s.File(t.Context(), other); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("an unknown file: %v, want not found", err)
	}
	if err := s.SaveFile(t.Context(), model.File{Hash: "nonsense"}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a hash that is none: %v, want invalid", err)
	}
}
