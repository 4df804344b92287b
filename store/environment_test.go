package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
	"github.com/intendant/intendant/store/storetest"
)

func TestProjects(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a, b := storetest.Project(t, s), storetest.Project(t, s)
	unknown := model.ProjectID{UUID: uuid.New()}
	if err := s.CreateProject(t.Context(), model.Project{ID: unknown, Name: a.Name}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a name twice: %v, want a conflict", err)
	}
	if err := s.RenameProject(t.Context(), a.ID, b.Name); !errors.Is(err, model.ErrConflict) {
		t.Errorf("renamed to a taken name: %v, want a conflict", err)
	}
	if err := s.RenameProject(t.Context(), a.ID, "renamed"); err != nil {
		t.Error(err)
	}
	if p, err := s.Project(t.Context(), a.ID); err != nil || p.Name != "renamed" {
		t.Errorf("Project = %+v, %v", p, err)
	}
	storetest.Environment(t, s, func(e *model.Environment) { e.Project = a.ID })
	if err := s.DeleteProject(t.Context(), a.ID); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleted with an environment: %v, want a conflict", err)
	}
	if err := s.DeleteProject(t.Context(), b.ID); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"delete": s.DeleteProject(t.Context(), unknown), "rename": s.RenameProject(t.Context(), unknown, "x"),
	} {
		if !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s an unknown project: %v, want not found", name, err)
		}
	}
	if _, err := s.Project(t.Context(), unknown); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("an unknown project: %v, want not found", err)
	}
	if ps, err := s.Projects(t.Context()); err != nil || len(ps) != 1 {
		t.Errorf("Projects = %v, %v, want one", ps, err)
	}
}

func TestEnvironmentsLinkRepositories(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	one := storetest.Environment(t, s, storetest.Watching("https://git.example.org/one", "code"))
	same := storetest.Environment(t, s, storetest.Watching("https://git.example.org/one", "other"))
	two := storetest.Environment(t, s, storetest.Watching("https://git.example.org/two", "code"))
	if one.Repository != "code" || same.Repository != "code" || two.Repository != "code-2" {
		t.Errorf("repositories %s, %s, %s, want code, code, code-2", one.Repository, same.Repository, two.Repository)
	}
	r, err := s.Repository(t.Context(), "code-2")
	if err != nil || r.URL != two.RepoURL || r.Poll != "60" || r.Provider != model.ProviderUnconfigured {
		t.Errorf("Repository = %+v, %v", r, err)
	}
	if _, _, err := s.RecordRevision(t.Context(), one.ID, model.Revision{Ref: "refs/heads/main", Commit: "c"}, "r", "", false); err != nil {
		t.Fatal(err)
	}
	moved, err := s.UpdateEnvironment(t.Context(), one.ID, model.EnvironmentPatch{RepoURL: new("https://git.example.org/two"), Description: new("d")})
	if err != nil || moved.Repository != "code-2" || moved.Revision.Commit != "" || moved.Description != "d" || moved.Name != one.Name {
		t.Errorf("moved = %+v, %v", moved, err)
	}
	if stored, err := s.Environment(t.Context(), one.ID); err != nil || !cmp.Equal(stored, moved) {
		t.Errorf("stored: %s, %v", cmp.Diff(moved, stored), err)
	}
	unlinked, err := s.UpdateEnvironment(t.Context(), one.ID, model.EnvironmentPatch{RepoURL: new("")})
	if err != nil || unlinked.Repository != "" || unlinked.RepoURL != "" {
		t.Errorf("unlinked = %+v, %v", unlinked, err)
	}
	watching, err := s.WatchingEnvironments(t.Context(), "code-2")
	if err != nil || len(watching) != 1 || watching[0].ID != two.ID {
		t.Errorf("WatchingEnvironments = %v, %v", watching, err)
	}
	if err := s.DeleteRepository(t.Context(), "code-2"); !errors.Is(err, model.ErrConflict) {
		t.Errorf("deleted while used: %v, want a conflict", err)
	}
	if _, err := s.UpdateRepository(t.Context(), "code-2", model.RepositoryPatch{URL: new("https://git.example.org/one")}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a URL twice: %v, want a conflict", err)
	}
	if _, err := s.UpdateRepository(t.Context(), "code-2", model.RepositoryPatch{URL: new("https://git.example.org/three")}); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Environment(t.Context(), two.ID); err != nil || e.RepoURL != "https://git.example.org/three" {
		t.Errorf("the environment watches %s, %v, want the new URL", e.RepoURL, err)
	}
}

func TestEnvironmentConflicts(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a := storetest.Environment(t, s)
	b := storetest.Environment(t, s, func(e *model.Environment) { e.Project = a.Project })
	unknown := model.EnvironmentID{UUID: uuid.New()}
	if err := s.CreateEnvironment(t.Context(), model.Environment{ID: unknown, Project: a.Project, Name: a.Name}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("a name twice: %v, want a conflict", err)
	}
	if err := s.CreateEnvironment(t.Context(), model.Environment{ID: unknown, Project: model.ProjectID{UUID: uuid.New()}, Name: "x"}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("an unknown project: %v, want not found", err)
	}
	if _, err := s.UpdateEnvironment(t.Context(), b.ID, model.EnvironmentPatch{Name: &a.Name}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("renamed to a taken name: %v, want a conflict", err)
	}
	if _, err := s.UpdateEnvironment(t.Context(), b.ID, model.EnvironmentPatch{Project: &model.ProjectID{UUID: uuid.New()}}); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("moved to an unknown project: %v, want not found", err)
	}
	if es, err := s.Environments(t.Context(), &a.Project); err != nil || len(es) != 2 {
		t.Errorf("Environments = %v, %v, want two", es, err)
	}
	now := storetest.Now()
	for name, err := range map[string]error{
		"delete":  s.DeleteEnvironment(t.Context(), unknown),
		"clear":   s.ClearEnvironment(t.Context(), unknown),
		"halt":    s.SetHalted(t.Context(), unknown, true, "", now),
		"setting": s.SetSetting(t.Context(), unknown, "x", nil),
		"command": s.EnqueueCommand(t.Context(), model.Command{ID: model.CommandID{UUID: uuid.New()}, Environment: unknown, Kind: model.CommandDeploy, CreatedAt: now}),
		"release": s.ReleaseVersion(t.Context(), unknown, 1, now),
		"pause":   s.SetAgentsPaused(t.Context(), unknown, nil, true, "", now),
		"session": s.SaveSession(t.Context(), model.AgentSession{ID: "x", Environment: unknown, ConnectedAt: now}),
		"agents":  s.SaveAgents(t.Context(), []model.AgentStatus{{Environment: unknown, Name: "a"}}),
		"dry run": func() error { _, err := s.CreateDryRun(t.Context(), model.Command{Environment: unknown}); return err }(),
		"token":   func() error { _, err := s.IssueAgentToken(t.Context(), unknown, "", false); return err }(),
		"reserve": func() error { _, err := s.ReserveVersion(t.Context(), unknown); return err }(),
		"update": func() error {
			_, err := s.UpdateEnvironment(t.Context(), unknown, model.EnvironmentPatch{})
			return err
		}(),
		"paused": func() error { _, err := s.PausedAgents(t.Context(), unknown); return err }(),
	} {
		if !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s of an unknown environment: %v, want not found", name, err)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	env := storetest.Environment(t, s).ID
	set := func(name, value string) {
		t.Helper()
		var raw json.RawMessage
		if value != "" {
			raw = json.RawMessage(value)
		}
		if err := s.SetSetting(t.Context(), env, name, raw); err != nil {
			t.Fatal(err)
		}
	}
	set("auto_deploy", "false")
	set("autostart_agent_repair_interval", "300")
	set("recompile_backoff", `"2.5"`)
	set("available_versions_to_keep", `"nonsense"`)
	set("server_compile", "false")
	set("server_compile", "")
	e, err := s.Environment(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	got := model.ParseSettings(e.Settings)
	want := model.ParseSettings(nil)
	want.AutoDeploy, want.RepairInterval, want.RecompileBackoff = false, "300", 2.5
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, ok := e.Settings["server_compile"]; ok {
		t.Error("a setting that was taken back is still stored")
	}
	if err := s.SetSetting(t.Context(), env, "x", json.RawMessage(`"\u0000"`)); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a value that can not be stored: %v, want invalid", err)
	}
	pending, err := s.PendingCommands(t.Context(), env)
	if err != nil || len(pending) != 6 || pending[0].Kind != model.CommandRefresh {
		t.Errorf("pending = %d, %v, want a refresh for each change", len(pending), err)
	}
}

func TestHaltAndResume(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	env := storetest.Environment(t, s).ID
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=1", "db/b=1", "x/c=1")...)
	pause := func(paused bool, names ...model.AgentName) error {
		return s.SetAgentsPaused(t.Context(), env, names, paused, "me", now)
	}
	paused := func() map[model.AgentName]bool {
		t.Helper()
		p, err := s.PausedAgents(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	check := func(want ...model.AgentName) {
		t.Helper()
		w := map[model.AgentName]bool{}
		for _, n := range want {
			w[n] = true
		}
		if d := cmp.Diff(w, paused()); d != "" {
			t.Errorf("paused: %s", d)
		}
	}
	if err := pause(true, "db"); err != nil {
		t.Fatal(err)
	}
	check("db")
	if err := s.SetUnpauseOnResume(t.Context(), env, nil, true); !errors.Is(err, model.ErrForbidden) {
		t.Errorf("SetUnpauseOnResume while running: %v, want forbidden", err)
	}
	for range 2 { // the second time nothing happens
		if err := s.SetHalted(t.Context(), env, true, "me", now); err != nil {
			t.Fatal(err)
		}
	}
	check("db", "web", "x")
	if err := pause(false); !errors.Is(err, model.ErrForbidden) {
		t.Errorf("unpausing while halted: %v, want forbidden", err)
	}
	if err := s.SetUnpauseOnResume(t.Context(), env, []model.AgentName{"x"}, false); err != nil {
		t.Fatal(err)
	}
	// An agent that appears while the environment is halted does nothing either.
	storetest.Version(t, s, env, true, storetest.Intents(t, "a=1", "db/b=1", "x/c=1", "new/d=1")...)
	check("db", "web", "x", "new")
	if ids, err := s.SchedulableEnvironments(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("schedulable %v, %v, want none", ids, err)
	}
	if err := s.SetHalted(t.Context(), env, false, "me", now); err != nil {
		t.Fatal(err)
	}
	check("db", "x")
	if err := pause(false); err != nil {
		t.Fatal(err)
	}
	check()
}

func TestClearAndDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, env, now := w.s, w.env, w.now
	id := request(t, s, env, now)
	mustClaim(t, s, "w", now.Add(time.Hour))
	token, err := s.IssueAgentToken(t.Context(), env, "", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetSetting(t.Context(), env, "auto_deploy", json.RawMessage("false")); err != nil {
		t.Fatal(err)
	}
	before, err := s.Environment(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ClearEnvironment(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	after, err := s.Environment(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("clearing changes the environment itself: %s", d)
	}
	if err := s.SaveProgress(t.Context(), w.lease, model.Progress{Processed: 2, Now: now}); !errors.Is(err, model.ErrFenced) {
		t.Errorf("the old scheduler saves: %v, want fenced", err)
	}
	if _, err := s.FinishCompileJob(t.Context(), "w", outcome(id, nil), now); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("the old compile ends: %v, want not found", err)
	}
	if err := s.AuthenticateAgent(t.Context(), env, token); err != nil {
		t.Errorf("tokens are kept: %v", err)
	}
	if n := storetest.Version(t, s, env, true, storetest.Intents(t, "a=9")...); n != before.LastVersion+1 {
		t.Errorf("the next version is %d, want %d: numbers are not used again", n, before.LastVersion+1)
	}
	if v, err := s.Version(t.Context(), env, before.LastVersion+1); err != nil || v.Added != 1 {
		t.Errorf("version = %+v, %v, want one resource added", v, err)
	}
	if err := s.DeleteEnvironment(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Environment(t.Context(), env); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("the deleted environment: %v, want not found", err)
	}
}

func TestRepositorySecretsAreSealed(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	want := model.Repository{
		Name: "r", URL: "ssh://git@example.org/r", Provider: model.ProviderGitHub, WebhookSecrets: []model.Secret{"hook one", "hook two"},
		Username: "u", Password: "p4ss", SSHKey: "PEM", SSHKeyPassphrase: "phrase", KnownHosts: "hosts", Poll: "0",
	}
	if err := s.CreateRepository(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	same := func(r model.Repository) bool {
		return r.Password == want.Password && r.SSHKey == want.SSHKey && r.SSHKeyPassphrase == want.SSHKeyPassphrase && cmp.Equal(r.WebhookSecrets, want.WebhookSecrets)
	}
	if got, err := s.Repository(t.Context(), "r"); err != nil || !same(got) || got.Username != "u" {
		t.Errorf("Repository = %+v, %v", got, err)
	}
	conn := connect(t, url)
	var row string
	if err := conn.QueryRow(t.Context(), "SELECT encode(convert_to(r::text, 'UTF8'), 'escape') || encode(password, 'escape') || encode(webhook_secrets[1], 'escape') FROM repository r").Scan(&row); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []model.Secret{want.Password, want.SSHKey, want.SSHKeyPassphrase, want.WebhookSecrets[0]} {
		if strings.Contains(row, secret.Reveal()) {
			t.Errorf("the database has a secret in the clear")
		}
	}
	want.Password = "new"
	if got, err := s.UpdateRepository(t.Context(), "r", model.RepositoryPatch{Password: &want.Password}); err != nil || !same(got) {
		t.Errorf("UpdateRepository = %+v, %v: the other secrets must stay", got, err)
	}

	t.Run("another key", func(t *testing.T) {
		other := storetest.Open(t, url, func(c *store.Config) { c.MasterKey = []byte("another master key of a server") })
		if _, err := other.Repository(t.Context(), "r"); !errors.Is(err, model.ErrUnavailable) {
			t.Errorf("read with another key: %v, want unavailable", err)
		}
		l, err := other.Repositories(t.Context())
		if err != nil || len(l) != 1 || l[0].Password != "" || !strings.Contains(l[0].LastError, "another master key") {
			t.Errorf("listed with another key: %+v, %v, want it without secrets and with the reason", l, err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		none := storetest.Open(t, url, func(c *store.Config) { c.MasterKey = nil })
		if _, err := none.Repository(t.Context(), "r"); !errors.Is(err, model.ErrUnavailable) {
			t.Errorf("read without a key: %v, want unavailable", err)
		}
		if err := none.CreateRepository(t.Context(), model.Repository{Name: "x", URL: "u", Password: "p"}); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("written without a key: %v, want invalid", err)
		}
		if err := none.CreateRepository(t.Context(), model.Repository{Name: "x", URL: "u"}); err != nil {
			t.Errorf("nothing secret needs no key: %v", err)
		}
	})
	t.Run("a short key", func(t *testing.T) {
		if _, err := store.Open(t.Context(), store.Config{URL: url, MasterKey: []byte("short")}); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("Open: %v, want invalid", err)
		}
	})
	t.Run("moved", func(t *testing.T) {
		if _, err := conn.Exec(t.Context(), "UPDATE repository SET ssh_key = password WHERE name = 'r'"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Repository(t.Context(), "r"); err == nil {
			t.Errorf("a secret that was moved to another column opens: %+v", got)
		}
	})
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	storetest.Environment(t, s, storetest.Watching("https://git.example.org/r", "r"))
	d := model.Delivery{
		Key: "k", Repository: "r", Provider: model.ProviderGitLab, Event: "push", Ref: "refs/heads/main", Before: "b", After: "a", Trace: "t", ReceivedAt: now,
		Status: model.DeliveryReceived, Headers: map[string]string{"X-Event": "push"}, Body: []byte("{\x00}"),
	}
	for i, want := range []bool{true, false} {
		if fresh, err := s.RecordDelivery(t.Context(), d); err != nil || fresh != want {
			t.Fatalf("RecordDelivery %d = %t, %v, want %t", i, fresh, err, want)
		}
	}
	got, err := s.Delivery(t.Context(), "r", "k")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Error(diff)
	}
	open, err := s.UnfinishedDeliveries(t.Context(), 10)
	if err != nil || len(open) != 1 {
		t.Errorf("UnfinishedDeliveries = %v, %v, want one", open, err)
	}
	if err := s.ReplayDelivery(t.Context(), "r", "k", now); !errors.Is(err, model.ErrConflict) {
		t.Errorf("replayed while open: %v, want a conflict", err)
	}
	if err := s.FinishDelivery(t.Context(), "r", "k", model.DeliveryFailed, "why", now); err != nil {
		t.Fatal(err)
	}
	if open, err := s.UnfinishedDeliveries(t.Context(), 10); err != nil || len(open) != 0 {
		t.Errorf("UnfinishedDeliveries = %v, %v, want none", open, err)
	}
	if err := s.ReplayDelivery(t.Context(), "r", "k", now); err != nil {
		t.Fatal(err)
	}
	if open, err := s.UnfinishedDeliveries(t.Context(), 10); err != nil || len(open) != 1 || !open[0].FinishedAt.IsZero() {
		t.Errorf("after a replay UnfinishedDeliveries = %v, %v, want it again", open, err)
	}
	for name, err := range map[string]error{
		"finish": s.FinishDelivery(t.Context(), "r", "x", model.DeliveryFailed, "", now),
		"replay": s.ReplayDelivery(t.Context(), "r", "x", now),
		"sync":   s.RequestSync(t.Context(), "x", now),
		"synced": s.RecordSync(t.Context(), "x", now, ""),
		"delete": s.DeleteRepository(t.Context(), "x"),
		"update": func() error { _, err := s.UpdateRepository(t.Context(), "x", model.RepositoryPatch{}); return err }(),
		"record": func() error {
			_, err := s.RecordDelivery(t.Context(), model.Delivery{Repository: "x", Key: "k", ReceivedAt: now})
			return err
		}(),
	} {
		if !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	if err := s.FinishDelivery(t.Context(), "r", "k", model.DeliveryReceived, "", now); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("finished as received: %v, want invalid", err)
	}
}

func TestRecordSync(t *testing.T) {
	t.Parallel()
	s, now := storetest.New(t), storetest.Now()
	storetest.Environment(t, s, storetest.Watching("https://git.example.org/r", "r"))
	if err := s.RequestSync(t.Context(), "r", now); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordSync(t.Context(), "r", now, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordSync(t.Context(), "r", now.Add(time.Hour), "no route to host"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Repository(t.Context(), "r")
	if err != nil || !r.LastSynced.Equal(now) || r.LastError != "no route to host" {
		t.Errorf("Repository = %+v, %v, want the last success and the last error", r, err)
	}
}
