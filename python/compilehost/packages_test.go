package compilehost_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/model"
)

// shipped is a project whose one resource has code.
const shipped = `
-- main.cf --
import one
one::E(name="a")
-- libs/one/model/_init.cf --
import std
entity E extends std::Resource:
    string name
end
implement E using std::none
-- libs/one/plugins/__init__.py --
from inmanta.resources import Resource, resource
@resource("one::E", agent="name", id_attribute="name")
class E(Resource):
    fields = ("name",)
`

// What a project says about packages goes with its code to the agents.
func TestPackagesOfAProject(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files string
		want  *model.PipConfig
	}{
		"nothing": {"", nil},
		"an index": {
			"-- project.yml --\nname: test\nmodulepath: libs\npip:\n  index_url: https://pypi.example.org/simple\n  extra_index_url: [https://more.example.org]\n  pre: true\n  use_system_config: true\n",
			&model.PipConfig{IndexURL: "https://pypi.example.org/simple", ExtraIndexURL: []string{"https://more.example.org"}, Pre: true, UseSystemConfig: true},
		},
		"versions": {
			"-- requirements.txt --\nrequests[socks] >=2,<3  # why\nattrs==1.0; python_version > '3'\nunbounded\nat @ https://example.org/a.whl\n",
			&model.PipConfig{Constraints: []string{"requests>=2,<3", "attrs==1.0; python_version > '3'"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := compile(t, shipped+tc.files, nil).succeed(t)
			if d := cmp.Diff(tc.want, o.State.Pip); d != "" {
				t.Error(d)
			}
		})
	}
}
