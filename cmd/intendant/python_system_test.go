package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/intendant/intendant/api"
)

// moduleFiles is a module with a resource, its handler, a discovery and a fact, as authors write them.
var moduleFiles = map[string]string{
	"module.yml": "name: keep\nversion: 1.0\nlicense: Apache-2.0\n",
	"model/_init.cf": `
entity Text extends std::PurgeableResource:
    string agent
    string name
    string path
    string text
end
implement Text using std::none
index Text(agent, name)

entity Scan extends std::DiscoveryResource:
    string agent
    string name
    string directory
end
implement Scan using std::none
index Scan(agent, name)
`,
	"plugins/__init__.py": `
from inmanta.plugins import plugin

from .handlers import TextHandler  # noqa: F401


@plugin
def shout(text: "string") -> "string":
    return text.upper()
`,
	"plugins/handlers.py": `
import os

from inmanta.agent.handler import CRUDHandler, DiscoveryHandler, HandlerContext, ResourcePurged, provider
from inmanta.resources import DiscoveryResource, PurgeableResource, resource


@resource("keep::Text", agent="agent", id_attribute="name")
class Text(PurgeableResource):
    fields = ("name", "path", "text")


@provider("keep::Text", name="file")
class TextHandler(CRUDHandler[Text]):
    def read_resource(self, ctx: HandlerContext, resource: Text) -> None:
        if not os.path.exists(resource.path):
            raise ResourcePurged()
        with open(resource.path) as f:
            resource.text = f.read()

    def create_resource(self, ctx, resource):
        os.makedirs(os.path.dirname(resource.path), exist_ok=True)
        self._write(resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._write(resource)
        ctx.set_updated()

    def _write(self, resource):
        with open(resource.path, "w") as f:
            f.write(resource.text)

    def delete_resource(self, ctx, resource):
        os.unlink(resource.path)
        ctx.set_purged()

    def facts(self, ctx, resource):
        with open(resource.path) as f:
            return {"length": str(len(f.read()))}


@resource("keep::Scan", agent="agent", id_attribute="name")
class Scan(DiscoveryResource):
    fields = ("name", "directory")


@provider("keep::Scan", name="directory")
class ScanHandler(DiscoveryHandler):
    def discover_resources(self, ctx, discovery_resource):
        agent = discovery_resource.id.agent_name
        return {
            f"keep::Text[{agent},name={name}]": {"path": os.path.join(discovery_resource.directory, name)}
            for name in os.listdir(discovery_resource.directory)
        }
`,
}

// python returns the real interpreter: what is on the PATH may be a wrapper that needs the user's own home directory.
func python(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatalf("the test needs Python 3.9 or later: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// A module with Python is pushed, deployed, repaired, dry-run and purged; its facts come back into the model.
func TestModuleWithPythonIsDeployed(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(python(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := newSystem(t)
	s.watch()
	for name, text := range moduleFiles {
		path := filepath.Join(s.dir, "work", "libs", "keep", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	target := s.target("one.txt")
	model := func(text, more string) string {
		return fmt.Sprintf("import keep\none = keep::Text(agent=\"here\", name=\"one.txt\", path=%q, text=keep::shout(%q))\n%s", target, text, more)
	}
	id := "keep::Text[here,name=one.txt]"

	s.push("first", model("hello", ""))
	s.converged("first")
	if got := s.read("one.txt"); got != "HELLO" {
		t.Errorf("the handler wrote %q", got)
	}

	// A repair mends what was changed by hand.
	if err := os.WriteFile(target, []byte("by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.intendant("agent", "repair", "-e", "prod")
	s.action(id, "the repair", func(a api.ResourceAction) bool { return a.Change != nil && *a.Change == "updated" })
	if got := s.read("one.txt"); got != "HELLO" {
		t.Errorf("after the repair the file has %q", got)
	}

	// A fact that the model asks for is read by the handler; then the model is compiled again.
	length := s.target("length.txt")
	s.push("second", model("good morning", fmt.Sprintf(
		"keep::Text(agent=\"here\", name=\"length.txt\", path=%q, text=std::getfact(one, \"length\"), requires=one)\nkeep::Scan(agent=\"here\", name=\"all\", directory=%q, requires=one)\n",
		length, filepath.Dir(target))))
	s.eventually("the fact in a file", func() (bool, error) {
		text, err := os.ReadFile(length)
		return err == nil && string(text) == fmt.Sprint(len("good morning")), nil
	})

	// The discovery reports what it found.
	s.eventually("the discovery", func() (bool, error) {
		found, err := api.Data[[]api.DiscoveredResource](t.Context(), s.api, "GET", "/api/v2/discovered", nil, nil)
		for _, d := range found {
			if d.DiscoveredResourceID == id && d.ManagedResourceURI != nil && d.DiscoveryResourceID == "keep::Scan[here,name=all]" {
				return true, err
			}
		}
		return false, err
	})

	// A dry run changes nothing and shows the difference.
	out := s.intendant("dryrun", "start", "1", "-e", "prod")
	if !strings.Contains(out, "modified "+id) {
		t.Errorf("the dry run says\n%s", out)
	}
	if got := s.read("one.txt"); got != "GOOD MORNING" {
		t.Errorf("after the dry run the file has %q", got)
	}

	s.push("third", fmt.Sprintf("import keep\nkeep::Text(agent=\"here\", name=\"one.txt\", path=%q, text=\"\", purged=true)\n", target))
	s.converged("third")
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("the purged file is still there: %v", err)
	}

	// Code that is broken is told in the resource's log.
	handlers := filepath.Join(s.dir, "work", "libs", "keep", "plugins", "handlers.py")
	text, err := os.ReadFile(handlers)
	if err != nil {
		t.Fatal(err)
	}
	broken := string(text) + "\nimport sys\nif 'intendant_host.executor' in sys.modules:\n    raise ImportError('not at the agent')\n"
	if err := os.WriteFile(handlers, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	s.push("broken code", model("again", ""))
	a := s.action(id, "the failure", func(a api.ResourceAction) bool { return a.Status != nil && *a.Status == "unavailable" })
	if log := fmt.Sprint(a.Messages); !strings.Contains(log, "not at the agent") {
		t.Errorf("the log does not say why: %s", log)
	}

	// Mended code is enough: the model need not change.
	if err := os.WriteFile(handlers, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.push("mended code", model("again", ""))
	s.converged("mended code")
	if got := s.read("one.txt"); got != "AGAIN" {
		t.Errorf("with mended code the file has %q", got)
	}

	// The same from a workstation, for an environment that no repository feeds.
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	s.intendant("environment", "create", "-n", "manual", "-p", "shop")
	s.intendant("export", "-d", "-e", "manual", filepath.Join(s.dir, "work"))
	all, err := s.api.Environments(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Name == "manual" {
			s.api = s.api.In(e.ID)
		}
	}
	s.eventually("the exported file", func() (bool, error) {
		text, err := os.ReadFile(target)
		return err == nil && string(text) == "AGAIN", nil
	})
	sources, err := api.Data[[]api.CodeSource](t.Context(), s.api, "GET", "/api/v2/code/1?resource_type=keep::Text", nil, nil)
	if err != nil || len(sources) != 2 || sources[0].ModuleName != "inmanta_plugins.keep" {
		t.Errorf("the code of the exported version is %+v, %v", sources, err)
	}
}

// action waits until the newest action on a resource is as wanted.
func (s *system) action(id, what string, ok func(api.ResourceAction) bool) api.ResourceAction {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var last []api.ResourceAction
	a, err := api.Await(ctx, s.api, []string{api.EventResource}, func(ctx context.Context) (api.ResourceAction, bool, error) {
		actions, err := s.api.ResourceActions(ctx, id, 1)
		if err != nil || len(actions) == 0 || actions[0].Finished == nil {
			return api.ResourceAction{}, false, err
		}
		last = actions
		return actions[0], ok(actions[0]), nil
	})
	if err != nil {
		s.t.Fatalf("waiting for %s: %v; the last action is %+v", what, err, last)
	}
	return a
}

// eventually looks again whenever something has happened to a resource or a compile.
func (s *system) eventually(what string, ok func() (bool, error)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, err := api.Await(ctx, s.api, []string{api.EventCompile, api.EventVersion, api.EventResource}, func(context.Context) (bool, bool, error) {
		done, err := ok()
		return done, done, err
	})
	if err != nil {
		s.t.Fatalf("waiting for %s: %v\n%s", what, err, s.intendant("resource", "list", "-e", "prod"))
	}
}
