package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/store"
)

// Now is a moment for tests that need no other.
func Now() time.Time { return time.Date(2026, time.May, 4, 10, 0, 0, 0, time.UTC) }

// Project stores a project with a name of its own.
func Project(t testing.TB, s *store.Store) model.Project {
	t.Helper()
	id := uuid.New()
	p := model.Project{ID: model.ProjectID{UUID: id}, Name: "project-" + id.String()[:8]}
	if err := s.CreateProject(t.Context(), p); err != nil {
		t.Fatalf("storetest: %v", err)
	}
	return p
}

// Environment stores an environment in a new project. Changes are applied before it is stored.
func Environment(t testing.TB, s *store.Store, changes ...func(*model.Environment)) model.Environment {
	t.Helper()
	id := uuid.New()
	e := model.Environment{ID: model.EnvironmentID{UUID: id}, Name: "env-" + id.String()[:8]}
	for _, c := range changes {
		c(&e)
	}
	if e.Project.UUID == uuid.Nil {
		e.Project = Project(t, s).ID
	}
	if err := s.CreateEnvironment(t.Context(), e); err != nil {
		t.Fatalf("storetest: %v", err)
	}
	out, err := s.Environment(t.Context(), e.ID)
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	return out
}

// Watching makes an environment that deploys from a repository.
func Watching(url string, name model.RepositoryName) func(*model.Environment) {
	return func(e *model.Environment) { e.RepoURL, e.Repository = url, name }
}

// Setting gives an environment a setting.
func Setting(name, value string) func(*model.Environment) {
	return func(e *model.Environment) {
		if e.Settings == nil {
			e.Settings = map[string]json.RawMessage{}
		}
		e.Settings[name] = json.RawMessage(value)
	}
}

// ID is the id of a file resource: ID("web", "/etc/hosts") is fs::File[web,path=/etc/hosts].
func ID(agent, path string) model.ResourceID {
	return model.ResourceID("fs::File[" + agent + ",path=" + path + "]")
}

// Intent makes an intent with one attribute, content.
func Intent(t testing.TB, id model.ResourceID, content string, requires ...model.ResourceID) model.Intent {
	t.Helper()
	attributes, err := json.Marshal(map[string]string{"content": content})
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	in, err := model.NewIntent(id, attributes, requires, "", false)
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	return in
}

// Undefined makes an intent that can not be deployed.
func Undefined(t testing.TB, id model.ResourceID, requires ...model.ResourceID) model.Intent {
	t.Helper()
	in, err := model.NewIntent(id, json.RawMessage(`{"content":"<<undefined>>"}`), requires, "", true)
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	return in
}

// State makes a desired state of intents.
func State(env model.EnvironmentID, intents ...model.Intent) model.DesiredState {
	return model.DesiredState{Environment: env, Intents: intents, Digest: model.StateDigest(intents)}
}

// Version stores the next version of an environment, and releases it if asked.
func Version(t testing.TB, s *store.Store, env model.EnvironmentID, release bool, intents ...model.Intent) int {
	t.Helper()
	n, err := s.StoreVersion(t.Context(), State(env, intents...), release, Now())
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	return n
}

// Intents parses a model from lines such as "a", "a=2" or "b=1 > a, c": the resource /a with a content, and what it requires.
// A content of ? makes the resource undefined. All belong to the agent web, unless the name begins with another and a slash.
func Intents(t testing.TB, lines ...string) []model.Intent {
	t.Helper()
	id := func(name string) model.ResourceID {
		if agent, path, ok := strings.Cut(name, "/"); ok {
			return ID(agent, "/"+path)
		}
		return ID("web", "/"+name)
	}
	out := make([]model.Intent, 0, len(lines))
	for _, line := range lines {
		head, tail, _ := strings.Cut(line, ">")
		name, content, _ := strings.Cut(strings.TrimSpace(head), "=")
		var requires []model.ResourceID
		for r := range strings.SplitSeq(tail, ",") {
			if r = strings.TrimSpace(r); r != "" {
				requires = append(requires, id(r))
			}
		}
		if content == "?" {
			out = append(out, Undefined(t, id(name), requires...))
		} else {
			out = append(out, Intent(t, id(name), content, requires...))
		}
	}
	return out
}

// Many makes n intents on ten agents, sorted as an export is, each requiring the one before it on its agent; those whose index is changed have
// another content.
func Many(t testing.TB, n int, changed func(i int) bool) []model.Intent {
	t.Helper()
	const agents = 10
	id := func(i int) model.ResourceID {
		return ID(fmt.Sprintf("host%d.example.org", i%agents), fmt.Sprintf("/srv/data/file-%06d", i))
	}
	out := make([]model.Intent, n)
	for i := range out {
		content := fmt.Sprintf("content of file %d", i)
		if changed != nil && changed(i) {
			content += ", changed"
		}
		attributes, err := json.Marshal(map[string]any{
			"path": fmt.Sprintf("/srv/data/file-%06d", i), "content": content, "owner": "root", "group": "root", "mode": 644,
			"purged": false, "purge_on_delete": false, "reload": true, "send_event": true, "receive_events": true, "managed": true,
		})
		if err != nil {
			t.Fatalf("storetest: %v", err)
		}
		var requires []model.ResourceID
		if i >= agents {
			requires = append(requires, id(i-agents))
		}
		if out[i], err = model.NewIntent(id(i), attributes, requires, "", false); err != nil {
			t.Fatalf("storetest: %v", err)
		}
	}
	slices.SortFunc(out, func(a, b model.Intent) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	return out
}

// Lease takes the ownership of an environment for an hour from [Now].
func Lease(t testing.TB, s *store.Store, env model.EnvironmentID) model.Lease {
	t.Helper()
	leases, err := s.AcquireLeases(t.Context(), []model.EnvironmentID{env}, "storetest", Now(), time.Hour)
	if err != nil || len(leases) != 1 {
		t.Fatalf("storetest: the lease of environment %s: %v, %v", env, leases, err)
	}
	return leases[0]
}
