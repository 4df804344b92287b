package std

import (
	"bytes"
	"crypto/sha1" // the address of a file
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/intendant/intendant/lang/value"
)

// host is a context for tests.
type host struct {
	out     bytes.Buffer
	inputs  map[string]string
	files   map[string]string
	awaited []string
	stored  map[string]string
	vars    map[string]value.Value
}

func newHost() *host {
	return &host{inputs: map[string]string{}, files: map[string]string{}, stored: map[string]string{}, vars: map[string]value.Value{}}
}

func (h *host) Stdout() io.Writer { return &h.out }
func (h *host) Namespace() string { return "web::server" }
func (h *host) Location() string  { return "main.cf:1" }

func (h *host) ReadFile(dir, path string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path, "./"); ok {
		path = "web/" + rest
	}
	s, ok := h.files[dir+":"+path]
	if !ok {
		return nil, &value.PluginError{Message: path + " does not exist"}
	}
	return []byte(s), nil
}

func (h *host) ListFiles(_, path string) ([]string, error) {
	return []string{path + "/a", path + "/b"}, nil
}

func (h *host) Lookup(name string) (value.Value, bool, error) {
	v, ok := h.vars[name]
	return v, ok, nil
}

func (h *host) Plugin(name string) (*value.Plugin, bool) {
	for _, p := range Plugins() {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

func (h *host) Validate(name string, v value.Value) (bool, error) {
	i, ok := v.(value.Instance)
	if name != "web::Server" {
		return false, nil
	}
	if !ok || !i.IsA(name) {
		return true, errors.New("not one")
	}
	return true, nil
}

func (h *host) Resource(i value.Instance) (string, bool, error) {
	return "web::Server[internal,name=a]", i.TypeName() == "web::Server", nil
}

func (h *host) Input(kind value.InputKind, name string) (string, bool) {
	s, ok := h.inputs[string(kind)+":"+name]
	return s, ok
}

func (h *host) Await(kind value.InputKind, name, resource string) *value.Unknown {
	h.awaited = append(h.awaited, string(kind)+":"+resource+":"+name)
	return &value.Unknown{Source: name}
}

func (h *host) AddFile(content []byte) string {
	sum := sha1.Sum(content) // the address of a file
	h.stored[hex.EncodeToString(sum[:])] = string(content)
	return hex.EncodeToString(sum[:])
}

func (h *host) Random(purpose string, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(len(purpose)*7 + i*13)
	}
	return b
}

// thing is an instance for tests.
type thing struct {
	value.IsInstance
	name  string
	is    []string
	attrs map[string]value.Value
	unset map[string]error
}

func (t *thing) TypeName() string     { return t.name }
func (t *thing) IsA(name string) bool { return name == t.name || slices.Contains(t.is, name) }
func (t *thing) Attribute(name string) (value.Value, bool, error) {
	if err := t.unset[name]; err != nil {
		return nil, true, err
	}
	v, ok := t.attrs[name]
	return v, ok, nil
}
func (t *thing) AttributeNames() []string { return nil }
func (t *thing) Serial() int              { return 7 }
func (t *thing) Places() []string         { return []string{"main.cf:5"} }

// js makes a value from JSON; other values are taken as they are.
func js(t *testing.T, v any) value.Value {
	t.Helper()
	s, ok := v.(string)
	if !ok {
		return v.(value.Value)
	}
	parsed, err := value.ParseJSON(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return parsed
}

// callPlugin completes the arguments with defaults, as the evaluator does.
func callPlugin(t *testing.T, c value.Context, name string, args ...any) (value.Value, error) {
	t.Helper()
	for _, p := range Plugins() {
		if p.Name != name {
			continue
		}
		var full []value.Value
		rest := args
		for _, param := range p.Params {
			switch {
			case param.Kind == value.VarPositional:
				list := &value.List{}
				for _, a := range rest {
					if _, ok := a.(*value.Dict); !ok {
						list.Items = append(list.Items, js(t, a))
					}
				}
				full = append(full, list)
				rest = slices.DeleteFunc(slices.Clone(rest), func(a any) bool { _, ok := a.(*value.Dict); return !ok })
			case param.Kind == value.VarKeyword:
				if len(rest) > 0 {
					full = append(full, rest[0].(value.Value))
				} else {
					full = append(full, value.NewDict(0))
				}
			case len(rest) > 0:
				full = append(full, js(t, rest[0]))
				rest = rest[1:]
			case param.Default != nil:
				full = append(full, param.Default)
			default:
				t.Fatalf("%s: argument %s is missing", name, param.Name)
			}
		}
		return p.Call(c, full)
	}
	t.Fatalf("no plugin %s", name)
	return nil, nil
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	kwargs := value.NewDict(1)
	kwargs.Set("n", value.Int(5))
	server := &thing{name: "web::Server", attrs: map[string]value.Value{"name": value.String("a"), "port": value.Int(80)}}
	other := &thing{name: "web::Server", attrs: map[string]value.Value{"name": value.String("b"), "port": value.Int(79)}}
	both := &value.List{Items: []value.Value{server, other}}
	unix := &thing{name: "std::OS", attrs: map[string]value.Value{"name": value.String("unix")}}
	unix.unset = map[string]error{"family": &value.OptionalError{Instance: unix, Attribute: "family"}}
	linux := &thing{name: "std::OS", attrs: map[string]value.Value{"name": value.String("linux"), "family": unix}}
	debian := &thing{name: "std::OS", attrs: map[string]value.Value{"name": value.String("debian"), "family": linux}}
	cases := []struct {
		name string
		args []any
		want string
	}{
		{"capitalize", []any{`"hELLO wORLD"`}, `'Hello world'`},
		{"capitalize", []any{`"ßX"`}, `'Ssx'`},
		{"upper", []any{`"straße"`}, `'STRASSE'`},
		{"lower", []any{`"ÀΣ"`}, `'àς'`},
		{"replace", []any{`"aXbX"`, `"X"`, `"--"`}, `'a--b--'`},
		{"limit", []any{`"héllo"`, `2`}, `'hé'`},
		{"limit", []any{`"héllo"`, `-2`}, `'hél'`},
		{"limit", []any{`"a"`, `5`}, `'a'`},
		{"split", []any{`"a,b,,c"`, `","`}, `['a', 'b', '', 'c']`},
		{"length", []any{`"é😀"`}, `2`},
		{"hostname", []any{`"web.example.org"`}, `'web'`},
		{"is_base64_encoded", []any{`"aGk="`}, `True`},
		{"is_base64_encoded", []any{`"%%"`}, `False`},
		{"is_base64_encoded", []any{`"a"`}, `False`},
		{"json_loads", []any{`"{\"a\": [1, 2.5, null]}"`}, `{'a': [1, 2.5, null]}`},
		{"json_dumps", []any{`{"b": [1, true], "a": "é"}`}, `'{"b": [1, true], "a": "\\u00e9"}'`},
		{"format", []any{`"{} {:>4} {0}"`}, "!"},
		{"format", []any{`"{} {:>4}|{n:03d}"`, `"x"`, `7`, kwargs}, `'x    7|005'`},
		{"format", []any{`"{0[a]} {1[1]} {2.name}"`, `{"a": 1}`, `[1, 2]`, server}, `'1 2 a'`},
		{"format", []any{`"{{}} {0!r} {1}"`, `"x"`, `[1]`}, `"{} 'x' @[1]"`},
		{"format", []any{`"{0:{1}}"`, `5`, `3`}, `'  5'`},
		{"item", []any{`[[1, 2], [3, 4]]`, `1`}, `[2, 4]`},
		{"select", []any{both, `"port"`}, `[80, 79]`},
		{"key_sort", []any{both, `"port"`}, `[web::Server 7, web::Server 7]`},
		{"sequence", []any{`3`}, `[0, 1, 2]`},
		{"sequence", []any{`2`, `5`}, `[5, 6]`},
		{"sequence", []any{`-2`}, `[]`},
		{"at", []any{`[1, 2, 3]`, `-1`}, `3`},
		{"attr", []any{server, `"port"`}, `80`},
		{"count", []any{`[1, 2]`}, `2`},
		{"len", []any{`[1, 2]`}, `2`},
		{"unique", []any{`[1, 2]`}, `True`},
		{"unique", []any{`[1, 1.0]`}, `False`},
		{"flatten", []any{`[[1], [2, 3], "ab"]`}, `[1, 2, 3, 'a', 'b']`},
		{"filter", []any{both, other}, `[web::Server 7]`},
		{"dict_get", []any{`{"a": 1}`, `"a"`}, `1`},
		{"dict_keys", []any{`{"b": 1, "a": 2}`}, `['b', 'a']`},
		{"contains", []any{`{"a": 1}`, `"b"`}, `False`},
		{"inlineif", []any{`true`, `1`, `2`}, `1`},
		{"inlineif", []any{`false`, `1`, `2`}, `2`},
		{"invert", []any{`true`}, `False`},
		{"type", []any{server}, `'web::Server'`},
		{"type", []any{`"x"`}, `'string'`},
		{"validate_type", []any{`"std::port"`, `80`}, `False`},
		{"validate_type", []any{`"pydantic"`, `80`}, `False`},
		{"get_env_int", []any{`"NOT_SET_ANYWHERE"`, `true`}, `1`},
		{"isset", []any{`null`}, `False`},
		{"isset", []any{`0`}, `True`},
		{"is_unknown", []any{&value.Unknown{}}, `True`},
		{"is_instance", []any{server, `"web::Server"`}, `True`},
		{"is_instance", []any{linux, `"web::Server"`}, `False`},
		{"objid", []any{server}, `"(web::Server 7, '7', web::Server)"`},
		{"objid", []any{`[1, "a"]`}, `"([1, 'a'], '1912458452553595329', list)"`},
		{"objid", []any{`{"a": 1}`}, `"({'a': 1}, '6153261820304539547', dict)"`},
		{"getattr", []any{server, `"port"`}, `80`},
		{"getattr", []any{server, `"nope"`, `"d"`}, `'d'`},
		{"getattr", []any{&thing{name: "x::Y", attrs: map[string]value.Value{"u": &value.Unknown{}}}, `"u"`, `3`}, `3`},
		{"equals", []any{`1`, `1.0`}, `null`},
		{"assert", []any{`true`}, `null`},
		{"familyof", []any{linux, `"unix"`}, `False`},
		{"familyof", []any{debian, `"linux"`}, `True`},
		{"familyof", []any{linux, `"linux"`}, `True`},
		{"familyof", []any{linux, `"windows"`}, `False`},
		{"validate_type", []any{`"pydantic.conint"`, `5`, `{"ge": 0, "le": 9}`}, `True`},
		{"validate_type", []any{`"ipaddress.IPv4Address"`, `"1.2.3"`}, `False`},
		{"prefixlength_to_netmask", []any{`20`}, `'255.255.240.0'`},
		{"prefixlen", []any{`"192.168.1.100/24"`}, `24`},
		{"prefixlen", []any{`"2001:db8::1"`}, `128`},
		{"network_address", []any{`"192.168.1.100/24"`}, `'192.168.1.0'`},
		{"netmask", []any{`"192.168.1.100/255.255.255.0"`}, `'255.255.255.0'`},
		{"netmask", []any{`"2001:db8::1/33"`}, `'ffff:ffff:8000::'`},
		{"ip_address_from_interface", []any{`"192.168.1.100/24"`}, `'192.168.1.100'`},
		{"ipindex", []any{`"192.168.1.0/24"`, `5`}, `'192.168.1.5'`},
		{"ipindex", []any{`"192.168.1.0/24"`, `-1`, `true`}, `'192.168.1.255/24'`},
		{"ipindex", []any{`"2001:db8::/32"`, `99999999999999999999`}, `'2001:db8:0:5:6bc7:5e2d:630f:ffff'`},
		{"add_to_ip", []any{`"10.0.0.255"`, `2`}, `'10.0.1.1'`},
		{"add_to_ip", []any{`"::1"`, `-1`}, `'::'`},
		{"unique_file", []any{`"p-"`, `"seed"`, `".txt"`}, `'p-fe4c0f30aa359c41d9f9a5f69c8c4192.txt'`},
		{"list_files", []any{`"web/d"`}, `['web/d/a', 'web/d/b']`},
		{"source", []any{`"./f"`}, "'x\\ny'"},
		{"file", []any{`"./f"`}, `'imp-module-source:file://web/f'`},
		{"environment", nil, `'1234'`},
		{"environment_name", nil, `<unknown>`},
		{"server_port", nil, `8888`},
		{"server_ssl", nil, `True`},
		{"server_ca", nil, `''`},
		{"server_token", nil, `'tok'`},
		{"timestamp", nil, `1700000000`},
		{"get_env", []any{`"HOME"`}, `'/root'`},
		{"get_env", []any{`"NOPE"`}, `<unknown>`},
		{"get_env", []any{`"NOPE"`, `"d"`}, `'d'`},
		{"get_env_int", []any{`"N"`}, `17`},
		{"get_env_int", []any{`"NOPE"`, `4`}, `4`},
		{"getfact", []any{server, `"ip"`}, `'10.0.0.1'`},
		{"getfact", []any{server, `"mac"`}, `<unknown>`},
		{"getfact", []any{server, `"mac"`, `"d"`}, `'d'`},
		{"create_environment_reference", []any{`"HOME"`}, `std::Environment(name='HOME')`},
		{"create_int_reference", []any{`"5"`}, `std::IntReference(value='5')`},
		{"create_fact_reference", []any{server, `"ip"`}, `std::FactReference(environment='1234', resource_id='web::Server[internal,name=a]', fact_name='ip', mocked_facts=null)`},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s%v", c.name, c.args), func(t *testing.T) {
			t.Parallel()
			h := newHost()
			h.files["files:web/f"] = "x\r\ny"
			h.inputs = map[string]string{
				"setting:environment-id": "1234", "setting:server-ssl": "true", "setting:server-token:agent": "tok", "setting:now": "2023-11-14T22:13:20Z",
				"env:HOME": "/root", "env:N": " 17 ", "fact:web::Server[internal,name=a]/ip": "10.0.0.1",
			}
			got, err := callPlugin(t, h, "std::"+c.name, c.args...)
			if c.want == "!" {
				if err == nil {
					t.Errorf("%s = %s, want an error", c.name, value.Repr(got))
				}
				return
			}
			if err != nil || value.Repr(got) != c.want {
				t.Errorf("%s = %v, %v, want %s", c.name, got, err, c.want)
			}
		})
	}
}

func TestPluginFaults(t *testing.T) {
	t.Parallel()
	thing := &thing{name: "a::B", attrs: map[string]value.Value{}}
	unknown := &value.List{Items: []value.Value{&value.Unknown{}}}
	cases := []struct {
		name string
		args []any
		want string
	}{
		{"split", []any{`"a"`, `""`}, "empty separator"},
		{"at", []any{`[1]`, `1`}, "list index out of range"},
		{"item", []any{`[5]`, `0`}, "'int' object is not subscriptable"},
		{"select", []any{`["a"]`, `"x"`}, "'str' object has no attribute 'x'"},
		{"key_sort", []any{&value.List{Items: []value.Value{thing}}, `"x"`}, "has no attribute x"},
		{"unique", []any{`[[1]]`}, "unhashable type: 'list'"},
		{"flatten", []any{`[1]`}, "'int' object is not iterable"},
		{"dict_get", []any{`{}`, `"a"`}, "'a'"},
		{"assert", []any{`false`, `"so"`}, "Assertion error: so"},
		{"equals", []any{`1`, `2`, `"why"`}, "1 != 2: why"},
		{"is_instance", []any{thing, `"no::T"`}, "could not find type no::T in namespace web::server"},
		{"is_instance", []any{`"x"`, `"web::Server"`}, "is_instance works on"},
		{"validate_type", []any{`"pydantic.Nope"`, `1`}, "does not know the type pydantic.Nope"},
		{"prefixlength_to_netmask", []any{`33`}, "not a valid netmask"},
		{"ipindex", []any{`"10.0.0.1/24"`, `0`}, "has host bits set"},
		{"ipindex", []any{`"10.0.0.0/24"`, `256`}, "address out of range"},
		{"add_to_ip", []any{`"255.255.255.255"`, `1`}, "is not an address"},
		{"json_loads", []any{`"{"`}, "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
		{"json_dumps", []any{thing}, "not JSON serializable"},
		{"sequence", []any{`100000000`}, "too long"},
		{"environment", nil, "environment of this model"},
		{"timestamp", nil, "time of this compile"},
		{"getfact", []any{thing, `"x"`}, "from resources"},
		{"getfact", []any{`1`, `"x"`}, "from resources"},
		{"generate_password", []any{`"a=b"`}, "cannot contain ="},
		{"file", []any{`"web/none"`}, "does not exist"},
		{"source", []any{`"web/none"`}, "does not exist"},
		{"format", []any{`"{"`}, "Single '{' encountered in format string"},
		{"format", []any{`"}"`}, "Single '}' encountered in format string"},
		{"format", []any{`"{x"`}, "expected '}' before end of string"},
		{"format", []any{`"{0} {}"`, `1`}, "cannot switch from manual"},
		{"format", []any{`"{} {0}"`, `1`}, "cannot switch from automatic"},
		{"format", []any{`"{1}"`, `1`}, "out of range"},
		{"format", []any{`"{x}"`}, "'x'"},
		{"format", []any{`"{0:d}"`, `"a"`}, "Unknown format code 'd' for object of type 'str'"},
		{"format", []any{`"{0[1]}"`, `[1]`}, "list index out of range"},
		{"format", []any{`"{0[x]}"`, `[1]`}, "list indices must be integers"},
		{"count", nil, ""},
	}
	for _, c := range cases {
		if c.want == "" {
			continue
		}
		t.Run(fmt.Sprintf("%s%v", c.name, c.args), func(t *testing.T) {
			t.Parallel()
			got, err := callPlugin(t, newHost(), "std::"+c.name, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s = %v, %v, want %s", c.name, got, err, c.want)
			}
		})
	}
	for _, name := range []string{"len", "unique", "flatten", "select", "item", "key_sort"} {
		args := []any{unknown}
		switch name {
		case "select", "key_sort":
			args = append(args, `"x"`)
		case "item":
			args = append(args, `0`)
		}
		var unknownErr *value.UnknownError
		if _, err := callPlugin(t, newHost(), "std::"+name, args...); !errors.As(err, &unknownErr) {
			t.Errorf("%s of a list with an unknown value gives %v", name, err)
		}
	}
	if n, err := callPlugin(t, newHost(), "std::count", unknown); err != nil || n != value.Int(1) {
		t.Errorf("count of a list with an unknown value = %v, %v", n, err)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	h := newHost()
	for _, v := range []any{`null`, `true`, `"x"`, `[1, "x", null]`, `{"a": true}`, `1.0`} {
		if _, err := callPlugin(t, h, "std::print", v); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := h.out.String(), "None\nTrue\nx\n@[1, 'x', null]\n@{'a': True}\n1.0\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	h := newHost()
	long, err := callPlugin(t, h, "std::generate_password", `"db"`, `30`)
	if err != nil {
		t.Fatal(err)
	}
	short, err := callPlugin(t, h, "std::password", `"db"`)
	if err != nil {
		t.Fatal(err)
	}
	if len(text(long)) != 30 || len(text(short)) != 20 || !strings.HasPrefix(text(long), text(short)) {
		t.Errorf("passwords %q and %q", long, short)
	}
	if strings.Trim(text(long), alphabet) != "" {
		t.Errorf("%q has other characters", long)
	}
}

func TestInShell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`echo "hi there" | cat`: `sh -c "echo \"hi there\" | cat"`,
		`true`:                  `sh -c true`,
		``:                      `sh -c ""`,
		`a\ b\`:                 `sh -c "a\ b\\"`,
	} {
		got, err := inShell(nil, []value.Value{value.String(in)})
		if err != nil || text(got) != want {
			t.Errorf("in_shell(%q) = %s, want %s", in, text(got), want)
		}
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	read := func(m map[string]fs.FS) string {
		b, err := fs.ReadFile(m["std"], "model/_init.cf")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if !strings.Contains(read(Modules()), "entity File extends") {
		t.Error("without sources the classic resources should be there")
	}
	if strings.Contains(read(Modules([]byte("import std\nx = std::Host"))), "entity File extends") {
		t.Error("a model that names no classic resource should not get any")
	}
	whole := Modules([]byte("a"), []byte(`std::File(host=h)`))
	f, err := whole["std"].Open("model/_init.cf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil || string(content) != read(whole) {
		t.Errorf("Open and ReadFile differ: %v", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(content)) || info.IsDir() {
		t.Errorf("Stat = %v, %v", info, err)
	}
	for _, name := range []string{"std", "exec", "fs"} {
		for _, file := range []string{"module.yml", "model/_init.cf"} {
			if _, err := fs.Stat(whole[name], file); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPluginsAreSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range Plugins() {
		if seen[p.Name] || p.Call == nil || p.Returns == "" {
			t.Errorf("plugin %s is doubled or incomplete", p.Name)
		}
		seen[p.Name] = true
		for _, param := range p.Params {
			if param.Name == "" || param.Type == "" {
				t.Errorf("plugin %s has an incomplete parameter", p.Name)
			}
		}
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	byName := map[string]Resource{}
	for _, r := range Resources() {
		byName[r.Entity] = r
	}
	h := newHost()
	h.files["files:web/motd"] = "from a file"
	piece := func(text string, key value.Value) value.Value {
		return &thing{name: "std::Content", attrs: map[string]value.Value{"value": value.String(text), "sorting_key": key}}
	}
	file := func(content value.Value, prefix, suffix []value.Value) *thing {
		return &thing{name: "std::File", attrs: map[string]value.Value{
			"content": content, "content_seperator": value.String("\n"), "mode": value.Int(644),
			"prefix_content": &value.List{Items: prefix}, "suffix_content": &value.List{Items: suffix},
		}}
	}
	hash := byName["std::File"].Computed["hash"]
	cases := []struct {
		name string
		file *thing
		want string
	}{
		{"plain", file(value.String("text"), nil, nil), "text"},
		{"of a module", file(value.String("imp-module-source:file://web/motd"), nil, nil), "from a file"},
		{"with pieces", file(value.String("text"), []value.Value{piece("z", value.Null{}), piece("b", value.String("zz")), piece("a", value.Null{})}, []value.Value{piece("end", value.Null{})}), "a\nz\nb\n\ntext\nend\n"},
	}
	for _, c := range cases {
		v, err := hash(h, c.file)
		if err != nil || h.stored[text(v)] != c.want {
			t.Errorf("%s: hash = %v, %v for %q, want %q", c.name, v, err, h.stored[text(v)], c.want)
		}
	}
	u := &value.Unknown{}
	if v, err := hash(h, file(u, nil, nil)); v != u || err != nil {
		t.Errorf("hash of unknown content = %v, %v", v, err)
	}
	if v, err := hash(h, file(value.String(""), []value.Value{piece("a", u)}, nil)); v != u || err != nil {
		t.Errorf("hash with an unknown piece = %v, %v", v, err)
	}
	if v, err := byName["std::File"].Computed["permissions"](h, cases[0].file); v != value.Int(644) || err != nil {
		t.Errorf("permissions = %v, %v", v, err)
	}
	for _, c := range []struct {
		entity, attribute string
		given             value.Value
		want              bool
	}{
		{"std::AgentConfig", "autostart", value.Bool(true), false},
		{"std::AgentConfig", "autostart", value.Bool(false), true},
		{"std::AgentConfig", "autostart", u, true},
		{"std::testing::NullResource", "managed", value.Bool(true), false},
		{"std::testing::NullResource", "managed", value.Bool(false), true},
		{"std::testing::NullResource", "managed", u, false},
	} {
		got, err := byName[c.entity].Ignored(&thing{name: c.entity, attrs: map[string]value.Value{c.attribute: c.given}})
		if got != c.want || err != nil {
			t.Errorf("%s with %s=%v: ignored = %v, %v; want %v", c.entity, c.attribute, value.Str(c.given), got, err, c.want)
		}
	}
}

func TestImpliedRequires(t *testing.T) {
	t.Parallel()
	h1, h2 := &thing{name: "std::Host"}, &thing{name: "std::Host"}
	at := func(id, typ string, host *thing, path string) Exported {
		return Exported{ID: id, Instance: &thing{name: typ, attrs: map[string]value.Value{"host": host, "path": value.String(path)}}}
	}
	got := ImpliedRequires([]Exported{
		at("etc", "std::Directory", h1, "/etc"), at("web", "std::Directory", h1, "/etc/web/"), at("conf", "std::File", h1, "/etc/web/a/b.conf"),
		at("etc2", "std::File", h1, "/etc2"), at("other", "std::File", h2, "/etc/x"), at("svc", "std::Service", h1, "/etc/y"),
	})
	if want := map[string][]string{"web": {"etc"}, "conf": {"web", "etc"}}; !cmp.Equal(got, want) {
		t.Errorf("ImpliedRequires = %v, want %v", got, want)
	}
}

func TestUsesClassic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                             false,
		"std::":                        false,
		"f = std::File(host=h)":        true,
		"x = std::Host() std::reload":  true,
		"std::std::Package":            true,
		"import std::testing\nstd::Fi": false,
		"std::Files, mystd::File":      false,
		"std::service_state_of":        false,
	} {
		if got := UsesClassic([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
