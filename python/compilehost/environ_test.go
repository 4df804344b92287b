package compilehost_test

import (
	"slices"
	"testing"

	"github.com/intendant/intendant/lang"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/python/compilehost"
)

// Environment variables that the code of modules reads are inputs of the compile, wherever it reads them: while it is imported, in
// plugins, while resources are made. What libraries read for themselves, and what is handed on as a whole, is not.
func TestEnvironmentIsAnInput(t *testing.T) {
	t.Parallel()
	env := map[string]string{"AT_IMPORT": "1", "IN_PLUGIN": "2", "IN_RESOURCE": "3", "HANDED_ON": "4", "TMPDIR": t.TempDir()}
	o := compile(t, project(`
std::print(m::f())
m::R(name="r")
`, `
entity R extends std::Resource:
    string name
end
implement R using std::none
`, `
import os, subprocess, tempfile
from inmanta.plugins import plugin
from inmanta.resources import Resource, resource

at_import = os.environ["AT_IMPORT"]

@plugin
def f() -> "string":
    tempfile.gettempdir()
    out = subprocess.run(["sh", "-c", "echo $HANDED_ON"], env=dict(os.environ), capture_output=True, text=True).stdout
    assert "NOT_THERE" not in os.environ
    return at_import + os.getenv("IN_PLUGIN") + out.strip()

@resource("m::R", agent="name", id_attribute="name")
class R(Resource):
    fields = ("name", "value")

    @staticmethod
    def get_value(exporter, entity):
        return os.environ.get("IN_RESOURCE")
`), func(c *compilehost.Config, o *lang.Options) {
		for name, v := range env {
			c.Env = append(c.Env, name+"="+v)
		}
		o.Inputs.Env = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	})
	o.printed(t, "124")
	want := []lang.InputUse{
		{Kind: value.InputEnv, Name: "AT_IMPORT", Value: "1", Found: true},
		{Kind: value.InputEnv, Name: "IN_PLUGIN", Value: "2", Found: true},
		{Kind: value.InputEnv, Name: "IN_RESOURCE", Value: "3", Found: true},
		{Kind: value.InputEnv, Name: "NOT_THERE"},
	}
	if !slices.Equal(o.Inputs, want) {
		t.Errorf("inputs %+v", o.Inputs)
	}
}
