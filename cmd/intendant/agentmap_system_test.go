package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/api"
)

// whereFiles is a module whose handler writes down the machine that its agent works on.
var whereFiles = map[string]string{
	"module.yml": "name: where\nversion: 1.0\nlicense: Apache-2.0\n",
	"model/_init.cf": `
entity Am extends std::PurgeableResource:
    string agent
    string name
    string path
    int round
end
implement Am using std::none
index Am(agent, name)
`,
	"plugins/__init__.py": `
from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import PurgeableResource, resource


@resource("where::Am", agent="agent", id_attribute="name")
class Am(PurgeableResource):
    fields = ("name", "path", "round")


@provider("where::Am", name="note")
class AmHandler(CRUDHandler[Am]):
    def read_resource(self, ctx, resource):
        resource.round = 0

    def update_resource(self, ctx, changes, resource):
        with open(resource.path, "w") as f:
            f.write(f"{resource.round} {self._agent.uri}")
        ctx.set_updated()
`,
}

// std::AgentConfig says in the model which machine an agent works on.
func TestAgentConfigIsDeployed(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(python(t))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	s := newSystem(t)
	s.watch()
	for name, text := range whereFiles {
		s.write("libs/where/"+name, text)
	}
	if err := os.Mkdir(s.target(""), 0o700); err != nil {
		t.Fatal(err)
	}
	note, link := s.target("note"), s.target("link")
	// The link is of an agent elsewhere: the built-in handler must not make it here.
	main := func(round int, config string) string {
		return fmt.Sprintf("import where\nimport std\nconfig = std::AgentConfig(autostart=true, agentname=\"web1\", %s)\nweb1 = std::Host(name=\"web1\", os=std::linux)\n"+
			"where::Am(agent=\"web1\", name=\"a\", path=%q, round=%d, requires=config)\n"+
			"std::Symlink(host=web1, source=\"/etc/motd\", target=%q, requires=config)\n", config, note, round, link)
	}
	setting := func() string {
		return s.intendant("environment", "setting", "get", "-e", "prod", "--key", "autostart_agent_map")
	}
	s.push("ssh", main(1, `uri="ssh://root@web1:2222"`))
	s.action("where::Am[web1,name=a]", "the note", func(a api.ResourceAction) bool { return a.Status != nil && *a.Status == "deployed" })
	if got := s.read("note"); got != "1 ssh://root@web1:2222" {
		t.Errorf("the first run of the handler worked with %q: it must know the address that it requires", got)
	}
	a := s.action("std::Symlink[web1,target="+link+"]", "the link", func(a api.ResourceAction) bool { return a.Status != nil && *a.Status != "deploying" })
	if log := fmt.Sprint(a.Messages); *a.Status != "unavailable" || !strings.Contains(log, "works on ssh://root@web1:2222") {
		t.Errorf("the link of another machine is %s: %s", *a.Status, log)
	}
	if out := setting(); !strings.Contains(out, "ssh://root@web1:2222") || !strings.Contains(out, "internal") {
		t.Errorf("the setting is\n%s", out)
	}

	s.push("local", main(2, `uri="local:"`))
	s.action("where::Am[web1,name=a]", "the second note", func(a api.ResourceAction) bool {
		return a.Status != nil && *a.Status == "deployed" && s.read("note")[0] == '2'
	})
	if got := s.read("note"); got != "2 " {
		t.Errorf("the handler of a local agent worked with %q", got)
	}
	s.converged("local")
	if got, err := os.Readlink(link); err != nil || got != "/etc/motd" {
		t.Errorf("the link goes to %q, %v", got, err)
	}

	s.push("purged", main(3, `purged=true`))
	s.converged("purged")
	if out := setting(); strings.Contains(out, "web1") {
		t.Errorf("after purging the setting is\n%s", out)
	}

	// By hand, and refused when it does not fit.
	s.intendant("environment", "setting", "set", "-e", "prod", "--key", "autostart_agent_map", "-o", `{"internal": "local:", "web2": "web2"}`)
	if out := setting(); !strings.Contains(out, "web2") {
		t.Errorf("the setting is\n%s", out)
	}
	out, err := s.try("environment", "setting", "set", "-e", "prod", "--key", "autostart_agent_map", "-o", `{"web2": "web2"}`)
	if err == nil || !strings.Contains(out, "must be there") {
		t.Errorf("a map without internal: %v\n%s", err, out)
	}
}
