package std_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang"
)

// compile compiles a project whose main file is text and gives what it printed and the ids of its resources.
func compile(t *testing.T, files map[string]string) (printed string, ids []string, result *lang.Result) {
	t.Helper()
	project := fstest.MapFS{"project.yml": {Data: []byte("name: test\nmodulepath: libs\n")}}
	for name, text := range files {
		project[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var out bytes.Buffer
	res, diags, err := lang.Compile(t.Context(), lang.Project{FS: project}, lang.Options{Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diags {
		t.Errorf("%v", d)
	}
	for _, i := range res.State.Intents {
		ids = append(ids, string(i.Resource))
	}
	slices.Sort(ids)
	return out.String(), ids, res
}

func TestClassicResources(t *testing.T) {
	t.Parallel()
	_, ids, res := compile(t, map[string]string{
		"main.cf": `
import web
host = std::Host(name="h1", os=std::linux, ip="192.0.2.1", remote_agent=true)
web::Server(host=host, name="shop")
`,
		"libs/web/module.yml": "name: web\nversion: 1.0\nlicense: MIT\n",
		"libs/web/model/_init.cf": `
import exec
entity Server:
    string name
end
Server.host [1] -- std::Host
implement Server using server
implementation server for Server:
    conf = std::ConfigFile(host=host, path="/etc/{{name}}.conf", content=std::template("./conf.j2"), reload=true)
    conf.suffix_content += std::Content(value="# end")
    std::DefaultDirectory(host=host, path="/etc")
    std::Service(host=host, name=name, state="running", onboot=true, requires=conf)
    std::Packages(host=host, name=["a", "b"], provides=conf)
    std::Symlink(host=host, source="/a", target="/b", purged=true)
    exec::Run(host=host, command=exec::in_shell("echo {{name}}"))
end
`,
		"libs/web/templates/conf.j2": "server {{ name }} on {{ host.name }}{% for p in host.packages|sort(attribute='name') %} {{ p.name }}{% endfor %}",
	})
	want := []string{
		"exec::Run[h1,command=sh -c \"echo shop\"]", "std::AgentConfig[internal,agentname=h1]", "std::Directory[h1,path=/etc]",
		"std::File[h1,path=/etc/shop.conf]", "std::Package[h1,name=a]", "std::Package[h1,name=b]", "std::Service[h1,name=shop]",
		"std::Symlink[h1,target=/b]",
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("resources differ (-want +got):\n%s", diff)
	}
	stored := false
	for _, f := range res.State.Files {
		stored = stored || string(f.Content) == "server shop on h1 a b\n# end\n"
	}
	if !stored {
		t.Errorf("the content of the file is not stored: %v", res.State.Files)
	}
}

func TestModuleFS(t *testing.T) {
	t.Parallel()
	_, ids, _ := compile(t, map[string]string{"main.cf": `
import fs
host = std::Host(name="h1", os=std::linux)
fs::ConfigFile(host=host, path="/etc/a", content="x")
fs::DefaultDirectory(host=host, path="/etc")
fs::Symlink(host=host, source="/a", target="/b")
`})
	if want := []string{"fs::Directory[h1,path=/etc]", "fs::File[h1,path=/etc/a]", "fs::Symlink[h1,target=/b]"}; !slices.Equal(ids, want) {
		t.Errorf("resources %v, want %v", ids, want)
	}
}

func TestTypesOfStd(t *testing.T) {
	t.Parallel()
	printed, _, _ := compile(t, map[string]string{"main.cf": `
entity T:
    std::date a = "2024-02-29"
    std::ipv4_network b = "10.0.0.0/8"
    std::ipv_any_address c = "2001:db8::1"
    std::email_str d = "a@example.com"
    std::http_url e = "https://example.com/x"
    std::uuid f = "550e8400-e29b-41d4-a716-446655440000"
    std::positive_int g = 1
    std::alfanum h = "a1"
    std::base64 i = "aGk="
    std::printable_ascii j = "a b"
    std::ascii_word k = "a-b"
    std::non_empty_string l = "x"
    std::port m = 65535
    std::negative_float n = -0.5
    std::datetime o = "2024-01-01T00:00:00Z"
    std::time p = "12:00"
    std::name_email q = "Ada <ada@example.com>"
    std::any_url r = "ftp://x"
end
implement T using std::none
T()
std::print("done")
`})
	if printed != "done\n" {
		t.Errorf("printed %q", printed)
	}
}
