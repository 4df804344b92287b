package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/intendant/intendant/model"
	"github.com/intendant/intendant/sdk"
	"github.com/intendant/intendant/sdk/sdktest"
)

// fileModule keeps a text in a file: a handler as modules have them.
const fileModule = `
from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.resources import PurgeableResource, resource

@resource("keep::Text", agent="agent", id_attribute="name")
class Text(PurgeableResource):
    fields = ("name", "path", "text")

@provider("keep::Text", name="file")
class TextHandler(CRUDHandler):
    def read_resource(self, ctx, resource):
        try:
            with open(resource.path) as f:
                resource.text = f.read()
        except FileNotFoundError:
            raise ResourcePurged()

    def _write(self, resource):
        with open(resource.path, "w") as f:
            f.write(resource.text)

    def create_resource(self, ctx, resource):
        self._write(resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._write(resource)
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        import os
        os.unlink(resource.path)
        ctx.set_purged()

    def can_reload(self):
        return True

    def do_reload(self, ctx, resource):
        with open(resource.path + ".reloads", "a") as f:
            f.write(".")
`

// The suite that handlers in Go pass, over a handler in Python.
func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Conformance(t, func(t testing.TB, s *sdktest.Server) sdktest.Fixture {
		registry := sdk.NewRegistry()
		path := filepath.Join(t.TempDir(), "text")
		attributes := func(text string) map[string]any {
			return map[string]any{"name": "a", "path": path, "text": text, "purged": false, "purge_on_delete": false, "send_event": true, "receive_events": true}
		}
		return sdktest.Fixture{
			Registry: registry, Resource: model.ResourceID("keep::Text[" + string(agentName) + ",name=a]"),
			Create: attributes("one"), Update: attributes("two"), Purgeable: true,
			State: func() string {
				text, err := os.ReadFile(path)
				if err != nil {
					return "absent"
				}
				return string(text)
			},
			Reloads: func() int {
				dots, _ := os.ReadFile(path + ".reloads")
				return strings.Count(string(dots), ".")
			},
			Code:    codeOf(t, s, nil, module{name: "keep", files: map[string]string{"": fileModule}, types: []string{"keep::Text"}}),
			Started: func(t testing.TB, a *sdktest.Agent) { manage(t, s, a, registry, t.TempDir()) },
		}
	})
}
