package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/python/executor"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

const agentName = model.AgentName("host")

// module is one module of a test: its Python files by the dotted name below inmanta_plugins.<name>, empty for the root, with a
// slash at its end for a package without other files; those of packages besides it with a slash at the beginning.
type module struct {
	name         string
	files        map[string]string
	requirements []string
	types        []string
}

// codeOf puts modules into the file storage and returns the hash of their manifest.
func codeOf(t testing.TB, s *sdktest.Server, pip *model.PipConfig, modules ...module) string {
	t.Helper()
	manifest := model.CodeManifest{Pip: pip}
	for _, m := range modules {
		c := model.ModuleCode{Module: m.name, Requirements: m.requirements, Types: m.types}
		for name, text := range m.files {
			full := "inmanta_plugins." + m.name
			if name != "" {
				full += "." + name
			}
			if besides, ok := strings.CutPrefix(name, "/"); ok {
				full = besides
			}
			f := model.CodeFile{Name: strings.TrimSuffix(full, "/"), Hash: s.AddFile([]byte(text))}
			f.Package = f.Name != full
			c.Files = append(c.Files, f)
		}
		c = c.Canonical()
		if len(c.Types) == 0 {
			manifest.Others = append(manifest.Others, c)
		} else {
			manifest.Modules = append(manifest.Modules, c)
		}
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return s.AddFile(raw)
}

// bench is an agent with a manager.
type bench struct {
	*sdktest.Server

	agent   *sdktest.Agent
	manager *executor.Manager
	code    string
	dir     string
}

// start starts a server, an agent and a manager that end with the test.
func start(t testing.TB, configure ...func(*executor.Config)) *bench {
	t.Helper()
	b := &bench{Server: sdktest.NewServer(t), dir: t.TempDir()}
	registry := sdk.NewRegistry()
	b.agent = b.StartAgent(t, registry, []model.AgentName{agentName})
	b.manager = manage(t, b.Server, b.agent, registry, b.dir, configure...)
	b.AwaitUp(t, agentName, 1)
	return b
}

func manage(t testing.TB, s *sdktest.Server, a *sdktest.Agent, registry *sdk.Registry, dir string, configure ...func(*executor.Config)) *executor.Manager {
	t.Helper()
	cfg := executor.Config{
		Environment: s.Environment, Dir: dir, Files: a.Process.Files(), Upload: a.Process.Upload, Current: a.Process.Code,
		Call: func(ctx context.Context, r executor.Request) (executor.Response, error) {
			status, body, err := a.Process.Call(ctx, r.Method, r.Path, r.Header, r.Body)
			return executor.Response{Status: status, Body: body}, err
		},
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, f := range configure {
		f(&cfg)
	}
	m, err := executor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.Register(registry)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Manager.Run() = %v", err)
		}
	})
	return m
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// task makes a task of a resource of a type, with attributes; name is the id attribute.
func (b *bench) task(t testing.TB, kind model.TaskKind, typ, name string, attributes map[string]any) model.Task {
	t.Helper()
	all := map[string]any{"name": name, "send_event": true, "receive_events": true, "purged": false, "purge_on_delete": false, "report_only": false}
	maps.Copy(all, attributes)
	id := model.ResourceID(fmt.Sprintf("%s[%s,name=%s]", typ, agentName, name))
	task := b.NewTask(kind, sdktest.NewIntent(t, id, all))
	task.Code = b.code
	return task
}

func (b *bench) deploy(t testing.TB, typ, name string, attributes map[string]any) model.Result {
	t.Helper()
	return b.Run(t, b.task(t, model.TaskDeploy, typ, name, attributes))
}

// want checks an outcome, and that some line of the log has a text.
func want(t testing.TB, r model.Result, outcome model.Outcome, texts ...string) {
	t.Helper()
	if r.Outcome != outcome {
		t.Errorf("the outcome is %s (%s), want %s; log:\n%s", r.Outcome, r.Code, outcome, logOf(r))
	}
	for _, text := range texts {
		if !strings.Contains(logOf(r), text) {
			t.Errorf("the log does not have %q:\n%s", text, logOf(r))
		}
	}
}

func logOf(r model.Result) string {
	var b strings.Builder
	for _, l := range r.Log {
		fmt.Fprintf(&b, "%s %s %s\n", l.Level, l.Message, l.Kwargs)
	}
	return b.String()
}

// source is a module with one resource type t::Thing and whatever else the text says.
func source(name, text string) module {
	return module{name: name, files: map[string]string{"": prelude(name) + text}, types: []string{name + "::Thing"}}
}

// prelude defines the resource <name>::Thing with the fields name, value and purged.
func prelude(name string) string {
	return `
import os, sys, time
from inmanta.agent.handler import CRUDHandler, HandlerContext, ResourceHandler, ResourcePurged, SkipResource, cache, provider
from inmanta.agent import handler
from inmanta import const
from inmanta.resources import PurgeableResource, Resource, resource

@resource("` + name + `::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("name", "value")
`
}

// indented makes the body of a handler's method.
func handlerOf(name, body string) string {
	return "\n@provider(\"" + name + "::Thing\", name=\"any\")\nclass ThingHandler(CRUDHandler):\n" + body + "\n"
}

const short = 20 * time.Second
