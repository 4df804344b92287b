package template

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/intendant/intendant/lang/value"
)

// host is a context for tests.
type host struct {
	templates map[string]string
	vars      map[string]value.Value
	unset     error
	broken    error
}

func (h *host) Stdout() io.Writer { return io.Discard }
func (h *host) Namespace() string { return "web" }
func (h *host) Location() string  { return "main.cf:1" }
func (h *host) ReadFile(dir, path string) ([]byte, error) {
	if h.broken != nil {
		return nil, h.broken
	}
	s, ok := h.templates[strings.Replace(path, "./", "web/", 1)]
	if !ok || dir != "templates" {
		return nil, fmt.Errorf("%s does not exist: %w", path, fs.ErrNotExist)
	}
	return []byte(s), nil
}
func (h *host) ListFiles(string, string) ([]string, error) { return nil, nil }
func (h *host) Lookup(name string) (value.Value, bool, error) {
	if name == "late" {
		return nil, true, h.unset
	}
	v, ok := h.vars[name]
	return v, ok, nil
}

func (h *host) Plugin(name string) (*value.Plugin, bool) {
	switch name {
	case "web::join":
		return &value.Plugin{
			Name:   name,
			Params: []value.Param{{Name: "items", Type: "list"}, {Name: "sep", Type: "string", Default: value.String("+")}, {Name: "rest", Kind: value.VarPositional}, {Name: "more", Kind: value.VarKeyword}},
			Call: func(_ value.Context, a []value.Value) (value.Value, error) {
				var parts []string
				for _, v := range a[0].(*value.List).Items {
					parts = append(parts, value.Str(v))
				}
				return value.String(strings.Join(parts, value.Str(a[1])) + value.Str(a[2]) + value.Str(a[3])), nil
			},
		}, true
	case "web::fails":
		return &value.Plugin{Name: name, Params: []value.Param{{Name: "v", Type: "any"}}, Call: func(value.Context, []value.Value) (value.Value, error) {
			return nil, &value.PluginError{Message: "no such luck"}
		}}, true
	case "web::nothing":
		return &value.Plugin{Name: name, Params: []value.Param{{Name: "v", Type: "any"}}, Call: func(value.Context, []value.Value) (value.Value, error) { return nil, nil }}, true
	}
	return nil, false
}
func (h *host) Validate(string, value.Value) (bool, error)           { return false, nil }
func (h *host) Resource(value.Instance) (string, bool, error)        { return "", false, nil }
func (h *host) Input(value.InputKind, string) (string, bool)         { return "", false }
func (h *host) Await(value.InputKind, string, string) *value.Unknown { return &value.Unknown{} }
func (h *host) AddFile([]byte) string                                { return "" }
func (h *host) Random(purpose string, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(len(purpose) + i*31)
	}
	return b
}

// thing is an instance for tests.
type thing struct {
	value.IsInstance
	attrs  map[string]value.Value
	errs   map[string]error
	serial int
}

func (t *thing) TypeName() string     { return "web::Server" }
func (t *thing) IsA(name string) bool { return name == "web::Server" }
func (t *thing) Attribute(name string) (value.Value, bool, error) {
	if err := t.errs[name]; err != nil {
		return nil, true, err
	}
	v, ok := t.attrs[name]
	return v, ok, nil
}
func (t *thing) AttributeNames() []string { return nil }
func (t *thing) Serial() int              { return t.serial }
func (t *thing) Places() []string         { return []string{"main.cf:2"} }

// world is a context with some variables of a model.
func world() (*host, *thing) {
	server := &thing{serial: 10}
	server.attrs = map[string]value.Value{
		"name": value.String("s1"), "port": value.Int(80), "note": value.Null{}, "u": &value.Unknown{},
		"ref":  &value.Reference{Type: "std::Environment", Model: "string"},
		"list": &value.List{Items: []value.Value{value.Int(3), value.Int(1), value.Null{}}},
	}
	server.errs = map[string]error{
		"backup": &value.OptionalError{Instance: server, Attribute: "backup"},
		"later":  &value.UnsetError{Instance: server, Attribute: "later"},
	}
	conf := value.NewDict(2)
	conf.Set("k", value.Int(1))
	conf.Set("items", value.String("x"))
	h := &host{templates: map[string]string{"web/inc.j2": "[{{ s.name }}{{ local }}]", "web/mac.j2": "{% macro m(x) %}<{{ x }}{{ s is defined }}>{% endmacro %}"}, vars: map[string]value.Value{
		"s": server, "self": server, "n": value.Int(5), "conf": conf, "range": value.String("mine"), "u": &value.Unknown{},
		"servers": &value.List{Items: []value.Value{server, server}}, "mixed": &value.List{Items: []value.Value{value.Int(1), &value.Unknown{}}},
	}}
	h.unset = &value.UnsetError{Instance: server, Attribute: "late"}
	return h, server
}

func TestModelValues(t *testing.T) {
	t.Parallel()
	cases := []struct{ template, want string }{
		{"{{ s.name }}:{{ s.port + 1 }}", "s1:81"},
		{"{{ s }}", "@web::Server a"},
		{"{{ s.list }} {{ conf }} {{ s.note }}", "@[3, 1, null] @{'k': 1, 'items': 'x'} None"},
		{"{{ [s.list, s.note] }}", "[@[3, 1, null], None]"},
		{"{{ s.nope }}|{{ s.nope is defined }}|{{ s.backup is defined }}|{{ s.backup|default('-') }}", "|False|False|-"},
		{"{% if s.backup %}a{% else %}b{% endif %}", "b"},
		{"{{ s.list[0] }}{{ s.list[-2] }}{{ s.list|length }}{{ s.list|first }}{{ s.list[:2]|sort|list }}", "3133[1, 3]"},
		{"{{ conf.k }}{{ conf['k'] }}{{ conf.items() | list }}{{ conf['items'] }}", "11[('k', 1), ('items', 'x')]x"},
		{"{% for k, v in conf.items() %}{{ k }}={{ v }};{% endfor %}{% for k in conf %}{{ k }}{% endfor %}", "k=1;items=x;kitems"},
		{"{{ servers|map(attribute='name')|join(',') }} {{ servers|groupby('port')|length }}", "s1,s1 1"},
		{"{{ servers[0] == s }} {{ s in servers }} {{ servers|unique|list|length }} {{ {s: 1}[s] }}", "True True 1 1"},
		{"{{ range }}{% set range = 1 %}{{ range }}", "mine1"},
		{"{% block b %}{{ range }}{% set x = 1 %}{% endblock %}", "mine"},
		{"{{ self.name() }}{% block name %}!{% endblock %}", "!" + "!"},
		{"{{ self.port is defined }}", "False"},
		{"{% set local = 1 %}{% include 'web/inc.j2' %}{% include './inc.j2' without context ignore missing %}", "!UndefinedError"},
		{"{% set local = 1 %}{% include './inc.j2' %}", "[s11]"},
		{"{% from 'web/mac.j2' import m %}{{ m(n) }}{% import 'web/mac.j2' as q with context %}{{ q.m(n) }}", "<5False><5True>"},
		{"{{ [1, 2]|web.join }} {{ [1, 2]|web.join('-') }} {{ [1]|web.join('-', 3, z=4) }} {{ [1]|web.join(sep='*') }}", "1+2[]{} 1-2[]{} 1[3]{'z': 4} 1[]{}"},
		{"{{ web.join([1, 2], sep='/') }} {{ [['a'], [1, 2]]|map('web.join')|list }}", "1/2[]{} ['a[]{}', '1+2[]{}']"},
		{"{{ n|web.nothing }} {{ 'web.join' is filter }} {{ 'web.nope' is filter }}", "None True False"},
		{"{{ conf|tojson }} {{ s.list|tojson }}", `{"items": "x", "k": 1} [3, 1, null]`},
		{"{{ '%s %s'|format(s.name, s.list) }} {{ '{} {}'.format(s.name, conf) }}", "s1 @[3, 1, null] s1 @{'k': 1, 'items': 'x'}"},
		{"{{ s.list + [1] }}", "[3, 1, None, 1]"},
		{"{{ [9, 8, 7]|random }}{{ lipsum(1, false, 3, 4)|wordcount > 2 }}", "8True"},
		{"{{ conf is mapping }}{{ s.list is sequence }}{{ s.list is iterable }}{{ s is mapping }}{{ s is string }}", "FalseTrueTrueFalseFalse"},
		{"{{ mixed|length }}{{ mixed[0] }}", "21"},
		{"{% for i in [] %}{{ late }}{{ u }}{% endfor %}ok", "ok"},
		{"{% macro m() %}{{ late }}{{ u }}{% endmacro %}ok", "ok"},
		{"{% if false %}{{ s.later }}{{ s.u }}{% endif %}ok", "ok"},
		{"{% set u = 1 %}{{ u }}", "1"},
		{"{% if n %}{% set u = 1 %}{% else %}{% set u = 2 %}{% endif %}{{ u }}", "1"},
		{"{% for u in [1] %}{{ u }}{% endfor %}", "1"},
	}
	for _, c := range cases {
		h, _ := world()
		h.templates["web/main.j2"] = c.template
		got, err := New().Render(h, "web/main.j2", nil)
		if c.want == "!UndefinedError" {
			if err == nil {
				t.Errorf("%s gives %q, want a fault", c.template, got)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s gives %q, %v, want %q", c.template, got, err, c.want)
		}
	}
}

func TestVariablesOnly(t *testing.T) {
	t.Parallel()
	h, _ := world()
	h.templates["web/main.j2"] = "{{ a }} {{ n is defined }} {{ l }} {% for i in [] %}{{ u }}{% endfor %}"
	vars := value.NewDict(3)
	vars.Set("a", value.Int(1))
	vars.Set("l", &value.List{Items: []value.Value{value.String("x")}})
	vars.Set("u", &value.Unknown{})
	got, err := New().Render(h, "./main.j2", vars)
	if want := "1 False @['x'] "; err != nil || got != want {
		t.Errorf("Render = %q, %v, want %q", got, err, want)
	}
}

// Instances that a template is given as variables have attributes like those in the model: nothing stands for what is not there.
func TestGivenInstances(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"{{ s.nope }}": "has no attribute 'nope'", "{{ s['nope'] }}": "has no attribute 'nope'", "{{ s.nope is defined }}": "",
		"{{ s.backup }}": "Optional variable accessed", "{{ s.backup is defined }}": "Optional variable accessed",
	} {
		h, server := world()
		h.templates["web/main.j2"] = template
		vars := value.NewDict(1)
		vars.Set("s", server)
		got, err := New().Render(h, "./main.j2", vars)
		if want == "" && (err != nil || got != "False") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s gives %q, %v, want %q", template, got, err, want)
		}
		if got, err := New().Render(h, "./main.j2", nil); err != nil || got != "" && got != "False" {
			t.Errorf("%s without variables gives %q, %v, want nothing", template, got, err)
		}
	}
}

func TestPropagation(t *testing.T) {
	t.Parallel()
	unset := func(err error) bool { _, ok := errors.AsType[*value.UnsetError](err); return ok }
	unknown := func(err error) bool { _, ok := errors.AsType[*value.UnknownError](err); return ok }
	reference := func(err error) bool { _, ok := errors.AsType[*value.ReferenceError](err); return ok }
	plugin := func(err error) bool { _, ok := errors.AsType[*value.PluginError](err); return ok }
	cases := []struct {
		template string
		is       func(error) bool
	}{
		{"{{ s.later }}", unset},
		{"{{ late }}", unset},
		{"{{ s.later is defined }}", unset},
		{"{% for x in servers %}{{ x.later }}{% endfor %}", unset},
		{"{{ servers|map(attribute='later')|list }}", unset},
		{"{{ s.u }}", unknown},
		{"{{ u }}", unknown},
		{"{{ u|default('x') }}", unknown},
		// Variables are looked up before the statements that name them run, as in Jinja2.
		{"{% if false %}{{ u }}{% endif %}ok", unknown},
		{"{% if false %}{{ late }}{% endif %}ok", unset},
		{"{% if false %}{% set u = 2 %}{% endif %}ok", unknown},
		{"{{ 1 if true else u }}", unknown},
		{"{{ nope }}{{ u }}", unknown},
		{"{{ 1 / 0 }}{{ [1, {'a': -u}][0:u] is odd(u) }}", unknown},
		{"{% for i in [1] %}{{ nope }}{{ u }}{% endfor %}", unknown},
		{"{% for i in [] %}{% else %}{{ nope }}{{ u }}{% endfor %}", unknown},
		{"{% macro m() %}{{ nope }}{{ u }}{% endmacro %}{{ m() }}", unknown},
		{"{% block b %}{{ nope }}{{ u }}{% endblock %}", unknown},
		{"{% with %}{{ nope }}{{ u }}{% endwith %}", unknown},
		{"{% for x in mixed %}{{ x }}{% endfor %}", unknown},
		{"{{ mixed[1] }}", unknown},
		{"{{ mixed|tojson }}", unknown},
		{"{% include 'web/deep.j2' ignore missing %}", unknown},
		{"{{ s.ref }}", reference},
		{"{{ n|web.fails }}", plugin},
	}
	for _, c := range cases {
		h, _ := world()
		h.templates["web/main.j2"] = c.template
		h.templates["web/deep.j2"] = "{{ u }}"
		if got, err := New().Render(h, "web/main.j2", nil); err == nil || !c.is(err) {
			t.Errorf("%s gives %q, %v", c.template, got, err)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	cases := []struct{ template, want string }{
		{"a\n{{ nope }}", "template web/main.j2, line 2, in `nope`: 'nope' is undefined"},
		{"\n\n{{ s.name + 1 }}", "template web/main.j2, line 3, in `s.name + 1`: can only concatenate str (not \"int\") to str"},
		{"{% for x in n %}{% endfor %}", "template web/main.j2, line 1, in `n`: 'int' object is not iterable"},
		{"{{ n\n|nope }}", "template web/main.j2, line 1: No filter named 'nope'."},
		{"{% if n %}\n{{ n|nope }}{% endif %}", "template web/main.j2, line 2, in `n|nope`: No filter named 'nope' found."},
		{"x\n{% if %}", "template web/main.j2, line 2: Expected an expression, got 'end of statement block'"},
		{"{% for a in [1] %}\n", "template web/main.j2, line 1: Unexpected end of template."},
		{"{{ s.nope.deeper }}", "template web/main.j2, line 1, in `s.nope.deeper`: variable nope not set on @web::Server a"},
		{"{% include 'web/bad.j2' %}", "template web/bad.j2, line 2, in `1 / 0`: division by zero"},
		{"{% from 'web/badmac.j2' import m %}\n{{ m() }}", "template web/badmac.j2, line 2, in `x.y`: 'x' is undefined"},
		{"{% include 'web/none.j2' %}", "template web/main.j2, line 1, in `include 'web/none.j2'`: web/none.j2"},
		{"{{ n|web.join }}", "template web/main.j2, line 1, in `n|web.join`: Value 5 for argument items of plugin web::join has incompatible type. Expected type: list"},
		{"{{ 'a' is nope }}", "template web/main.j2, line 1: No test named 'nope'."},
		{"{{ n|web.nothing(1) }}", "template web/main.j2, line 1, in `n|web.nothing(1)`: web::nothing() takes 1 positional arguments but 2 were given"},
		{"{{ n|web.nothing(z=1) }}", "template web/main.j2, line 1, in `n|web.nothing(z=1)`: web::nothing() got an unexpected keyword argument: 'z'"},
		{"{{ web.nothing() }}", "template web/main.j2, line 1, in `web.nothing()`: web::nothing() missing 1 required positional argument: 'v'"},
		{"{{ nope|web.nothing }}", "template web/main.j2, line 1, in `nope|web.nothing`: 'nope' is undefined"},
	}
	for _, c := range cases {
		h, _ := world()
		h.templates["web/main.j2"] = c.template
		h.templates["web/bad.j2"] = "x\n{{ 1 / 0 }}"
		h.templates["web/badmac.j2"] = "{% macro m() %}\n{{ x.y }}{% endmacro %}"
		_, err := New().Render(h, "web/main.j2", nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s gives %v, want %s", c.template, err, c.want)
		}
	}
	h, _ := world()
	if _, err := New().Render(h, "web/none.j2", nil); err == nil {
		t.Error("a template that does not exist should be a fault")
	}
	h.broken = errors.New("disk on fire")
	if _, err := New().Render(h, "web/inc.j2", nil); !errors.Is(err, h.broken) {
		t.Errorf("Render with a broken disk = %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	cases := []string{
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% include 'main' %}",
		"{% extends 'main' %}",
		"{{ 'x' * 100000000000 }}",
		"{{ [1] * 100000000000 }}",
		"{{ 'x'|center(100000000000) }}",
		"{{ 2 ** 100000000 }}",
		"{{ '%100000000s'|format(1) }}",
		"{{ '{:1000000000}'.format(1) }}",
		"{{ range(10 ** 12)|list }}",
		"{% for a in range(100000000) %}{% for b in range(100000000) %}{% endfor %}{% endfor %}",
		"{% for a in range(100000000) %}" + strings.Repeat("x", 2000) + "{% endfor %}",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
		"{% set d = {} %}{% set _ = d.update({'d': d}) %}{{ d }}",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l == [l] }}",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l|pprint }}",
		"{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
		strings.Repeat("{% if 1 %}", 1000),
		"{{ " + strings.Repeat("(", 1000),
		"{{ " + strings.Repeat("not ", 5000) + "1 }}",
		"{{ " + strings.Repeat("-", 5000) + "1 }}",
		"{{ 1" + strings.Repeat(" + 1", 5000) + " }}",
		"{{ 1" + strings.Repeat("|string", 5000) + " }}",
		"{{ x" + strings.Repeat(".x", 100000) + " }}",
	}
	for _, template := range cases {
		_, err := New().RenderText("main", Options{MaxSteps: 100_000, Load: func(string) (string, bool, error) { return template, true, nil }})
		if err == nil {
			t.Errorf("%.80s should meet a limit", template)
		}
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	e := New()
	for range 2 {
		if _, err := e.parse("a", "{{ 1 }}"); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.cached) != 1 {
		t.Errorf("%d templates are remembered, want 1", len(e.cached))
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"{{ n|default(1) }}", "{% for x in l if x is odd recursive %}{{ loop.index }}{{ loop([]) }}{% endfor %}", "{% macro m(a, b=2) %}{{ caller() }}{{ varargs }}{% endmacro %}{% call m(1) %}x{% endcall %}",
		"{% set a, b = l %}{{ d.items()|list|tojson }}", "{%- raw -%}{{ x {%- endraw -%}", "{{ '%5.2f'|format(1.5) }}{{ l[::-1]|batch(2)|list }}", "{% block a %}{{ super() }}{% endblock %}{{ self.a() }}",
		"{% filter indent(2)|upper %}a{% endfilter %}{% with a=1 %}{{ a }}{% endwith %}", "{% autoescape true %}{{ '<'|e ~ 'x' }}{% endautoescape %}", "{{ users|groupby('a')|map('first')|pprint }}",
	} {
		f.Add(s)
	}
	vars := value.NewDict(0)
	vars.Set("l", &value.List{Items: []value.Value{value.Int(1), value.Int(2)}})
	vars.Set("s", value.String("text"))
	f.Fuzz(func(_ *testing.T, source string) {
		_, _ = New().RenderText("main", Options{Variables: vars, MaxSteps: 20_000, Load: func(name string) (string, bool, error) { return source, name == "main", nil }})
	})
}

func BenchmarkRender(b *testing.B) {
	h, _ := world()
	h.templates["web/main.j2"] = "{% for s in servers %}server {{ s.name }}:{{ s.port }} {{ n + loop.index }}{% if not loop.last %},{% endif %}\n{% endfor %}"
	e := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Render(h, "web/main.j2", nil); err != nil {
			b.Fatal(err)
		}
	}
}
