package main

import (
	"fmt"
	"strings"
)

// combinations are parts of a model in which several features meet that the other scenarios have apart.
var combinations = []func(*generator){
	(*generator).keyed, (*generator).diamonds, (*generator).narrowed, (*generator).templates, (*generator).settings,
	(*generator).annotated, (*generator).formatted, (*generator).plugins, (*generator).pieces,
}

// unset is an environment variable that is not set: its value is unknown.
const unset = `std::get_env("MODELGEN_NOT_SET_ANYWHERE")`

// keyed makes indexes over nullable, inherited, preset and related attributes, constructors with and without **, and lookups.
func (g *generator) keyed() {
	m, base, leaf, home := g.main, g.title(), g.title(), g.title()
	key := pick(g, "int", "string", "string?", "int?", "bool", "float", "float?", "dict", "number")
	values := map[string][]string{
		"int": {"1", "2", "true"}, "string": {`"a"`, `"1"`, `'a'`}, "string?": {"null", `"null"`, `"a"`}, "int?": {"null", "0", "false"},
		"bool": {"true", "false"}, "float": {"1.0", "2.5", "1.0"}, "float?": {"null", "1.0"}, "dict": {`{"a": 1}`, `{"a": 1.0}`, "{}"},
		"number": {"1", "1.0", "2"},
	}[key]
	value := func() string {
		if g.chance(12) {
			return pick(g, unset, "null", "1", `"a"`)
		}
		return pick(g, values...)
	}
	preset := pick(g, "", " = "+values[0])
	if key == "dict" && preset != "" {
		preset = " = {}"
	}
	m.addf("entity %s:\n    string n\nend\nimplement %s using std::none", home, home)
	m.addf("entity %s:\n    %s k%s\n    int v = 0\nend\nimplement %s using std::none", base, key, preset, base)
	m.addf("entity %s extends %s:\n%send\nimplement %s using std::none", leaf, base, pick(g, "", "    int w = 1\n"), leaf)
	related := g.chance(2)
	keys := "k"
	if related {
		m.addf("%s.all [0:] -- %s.home [1]", home, base)
		keys = pick(g, "home, k", "k, home")
	}
	m.addf("index %s(%s)", pick(g, base, base, leaf), keys)
	h := g.name()
	m.addf("%s = %s(n=\"h\")", h, home)
	args := func() string {
		a := []string{"k=" + value()}
		if preset != "" && g.chance(3) {
			a = nil
		} else if g.chance(4) {
			a = []string{`**{"k": ` + value() + "}"}
		}
		if g.chance(4) {
			a = append(a, fmt.Sprintf("v=%d", g.r.IntN(2)))
		}
		return strings.Join(a, ", ")
	}
	with := func(a string) string {
		if !related {
			return a
		}
		return strings.TrimPrefix(a+", home="+h, ", ")
	}
	for range 1 + g.r.IntN(4) {
		switch x := g.name(); {
		case related && g.chance(2):
			m.addf("%s.all += %s", h, pick(g, pick(g, base, leaf)+"("+args()+")", "["+base+"("+args()+"), "+leaf+"("+args()+")]"))
		default:
			m.addf("%s = %s(%s)", x, pick(g, base, base, leaf), with(args()))
			m.addf("std::print(%s.v)", x)
		}
	}
	for range g.r.IntN(3) {
		x := g.name()
		if related && g.chance(2) {
			m.addf("%s = %s.all[k=%s]", x, h, value())
		} else {
			m.addf("%s = %s[%s]", x, pick(g, base, leaf), with("k="+value()))
		}
		m.addf("std::print([%s.v, %s.k is defined])", x, x)
	}
}

// diamonds are entities that inherit from one another over several ways, with defaults and implementations on all of them.
func (g *generator) diamonds() {
	m, names := g.main, []string{g.title()}
	preset := func() string {
		return pick(g, "", "", fmt.Sprintf("    int n = %d\n", g.r.IntN(3)), "    int n\n", "    int n = undef\n")
	}
	m.addf("entity %s:\n    int n%s\n    string[] tags = [\"t\"]\nend", names[0], pick(g, "", " = 7"))
	for range 2 + g.r.IntN(3) {
		x := g.title()
		parents := []string{pick(g, names...)}
		if o := pick(g, names...); o != parents[0] && g.chance(2) {
			parents = append(parents, o)
		}
		m.addf("entity %s extends %s:\n%send", x, strings.Join(parents, ", "), preset())
		names = append(names, x)
	}
	for _, x := range names {
		i := g.name()
		m.addf("implementation %s for %s:\n    std::print(\"%s {{n}} {{self.n}}\")\nend", i, x, i)
		m.addf("implement %s using %s%s", x, pick(g, i, "parents", i+", parents", "parents, "+i), "")
		if g.chance(3) {
			m.addf("implement %s using %s when %s", x, i, pick(g, "n > 0", "self.n == 1 or n == 2", `"t" in tags`, "n in [0, 1]", "tags is defined"))
		}
	}
	for range 1 + g.r.IntN(3) {
		m.addf("%s(%s)", pick(g, names...), pick(g, "", "n=1", "n=2", "n=0, tags=[]"))
	}
}

// narrowed stacks typedefs on each other, over modules, and checks values of all kinds against them.
func (g *generator) narrowed() {
	m := g.main
	base := pick(g, "string", "int", "number", "float", "bool", "list")
	constraints := map[string][]string{
		"string": {"/^[a-z]+$/", `self != "b"`, "std::length(self) < 4", `self in ["a", "ab", "c"]`, `not (self == "c") and true`, `/(?i)a(?=b|$)/`, "int(self) > 1"},
		"int":    {"self > 0", "self % 2 == 1", "self in [1, 3, 5]", "self ** 2 < 20", "std::get_env_int(\"NO\", 2) < self", "[i for i in [self] if i > 1]", "self"},
		"number": {"self > 0", "self != 1.5", "self * 2 == 3 or self == 1"}, "float": {"self > 0", "self / 2.0 < 3"},
		"bool": {"self", "not self", "self or true", "self == true"}, "list": {"1 in self", "std::count(self) > 0", "std::count([x for x in self if x != null]) == 1"},
	}[base]
	values := map[string][]string{
		"string": {`"a"`, `"b"`, `"abc"`, `"a\n"`, `""`, `"12"`, `"AB"`}, "int": {"1", "2", "3", "0", "true", "-1"}, "number": {"1", "1.5", "0", "true"},
		"float": {"1.0", "0.0", "-1.5", "9.5"}, "bool": {"true", "false"}, "list": {"[1]", "[]", "[null]", `["a", 1]`},
	}[base]
	f := m
	if g.chance(2) {
		mod := g.name()
		f = &file{namespace: mod, path: "libs/" + mod + "/model/_init.cf", imports: map[string]string{}}
		g.files = append(g.files, f)
	}
	type def struct {
		in   *file
		name string
	}
	defs := []def{}
	for range 1 + g.r.IntN(3) {
		d := def{m, g.name()}
		on := base
		if len(defs) == 0 {
			d.in = f
		} else {
			o := pick(g, defs...)
			on = g.qualified(d.in, o.in, o.name)
		}
		d.in.addf("typedef %s as %s matching %s", d.name, on, pick(g, constraints...))
		defs = append(defs, d)
	}
	a, d := g.title(), pick(g, defs...)
	one := g.qualified(m, d.in, d.name)
	m.addf("entity %s:\n    %s one\n    %s? maybe%s\n    %s[] many%s\nend\nimplement %s using std::none", a, one, one, pick(g, " = null", "", " = "+pick(g, values...)),
		one, pick(g, " = []", " = ["+pick(g, values...)+"]"), a)
	for range 1 + g.r.IntN(3) {
		m.addf("%s(one=%s, maybe=%s%s)", a, pick(g, values...), pick(g, "null", pick(g, values...)), pick(g, "", ", many=["+pick(g, values...)+", "+pick(g, values...)+"]"))
	}
}

// templates renders files of a module.
func (g *generator) templates() {
	mod, a := g.name(), g.title()
	f := &file{namespace: mod, path: "libs/" + mod + "/model/_init.cf", imports: map[string]string{}}
	pieces := []string{
		"{{ n }}", "{{ s|upper }}", "{% for i in l %}{{ loop.index }}:{{ i }} {% endfor %}", "{{ l|join(', ') }}", "{{ e.n }} {{ e.sub|length }}",
		"{% for x in e.sub %}{{ x.n }}{% if not loop.last %},{% endif %}{% endfor %}", "{% if n > 1 %}big{% else %}small{% endif %}", "{{ d.a }}", "{{ d['b'] }}",
		"{% for k in d|sort %}{{ k }}={{ d[k] }};{% endfor %}", "{{ e.sub|map(attribute='n')|sort|list }}", "{{ nope }}", "{{ nope|default('x') }}", "{{ u }}",
		"{% if u is defined %}u{% endif %}", "{% set x = n + 1 %}{{ x }}", "{% macro q(a) %}<{{ a }}>{% endmacro %}{{ q(s) }}", "{# note #}", "{%- if true -%} y {%- endif %}",
		"{{ '%05.1f' % n }}", "{{ e.opt }}", "{{ e.opt.n }}", "{{ (n, s)|string }}", "{{ null }}", "{{ s[0] }}{{ s[-1:] }}", "{{ l[0] }}", "{{ n / 2 }} {{ n // 2 }}",
		"{{ s ~ n }}", "{{ e.n == s }}", "{{ b }}", "{{ z is none }}", "{{ z }}", "{{ fl }}", "{{ kw }}",
	}
	var t strings.Builder
	for range 1 + g.r.IntN(3) {
		t.WriteString(pick(g, pieces...) + pick(g, "", " ", "\n", "-"))
	}
	f.addf("entity %s:\n    string n\nend\nimplement %s using std::none\n%s.sub [0:] -- %s\n%s.opt [0:1] -- %s", a, a, a, a, a, a)
	f.addf("n = %s\ns = \"text\"\nl = %s\nd = {\"a\": 1, \"b\": [null, 2.0]}\nu = %s\nb = true\nz = null\nfl = 2.0", pick(g, "1", "2", "1.5"), pick(g, `["b", "a"]`, "[]", "[1]"), unset)
	f.addf("e = %s(n=\"e\"%s)\ne.sub += [%s(n=i) for i in [\"y\", \"x\"]]", a, pick(g, "", ", opt="+a+"(n=\"o\")"), a)
	f.addf("std::print(std::template(\"%s/page.j2\"%s))", mod, pick(g, "", "", ", kw=1", ", n=3, s=s, l=[1], d=d, e=e"))
	g.files = append(g.files, f)
	g.extra["libs/"+mod+"/templates/page.j2"] = t.String()
}

// settings exports resources whose settings, sets and requirements come from all over.
func (g *generator) settings() {
	m, sub := g.main, g.title()
	m.imports["std::testing"] = "std::testing"
	m.addf("entity %s extends std::testing::NullResource:\n%send\nimplement %s using parents", sub, pick(g, "", "    string name = \"preset\"\n", "    bool managed = false\n"), sub)
	var all []string
	for i := range 2 + g.r.IntN(3) {
		x := g.name()
		args := []string{fmt.Sprintf("name=\"r%d\"", i)}
		if g.chance(10) {
			args = nil
		}
		for range g.r.IntN(3) {
			args = append(args, pick(g, "managed=false", "managed=true", "purged=true", "send_event=false", "receive_events="+unset, "report_only=true", "fail="+unset,
				"value="+unset, "value=null", "agentname="+unset, "agentname=\"a b\"", "int_value=-1", "purge_on_delete=true", "managed="+unset, "value=std::create_environment_reference(\"X\")"))
		}
		m.addf("%s = %s(%s)", x, pick(g, "std::testing::NullResource", sub), strings.Join(args, ", "))
		all = append(all, x)
	}
	for range g.r.IntN(4) {
		m.addf(pick(g, "%s.requires += %s", "%s.provides += %s", "%s.requires = [%s]"), pick(g, all...), pick(g, pick(g, all...), "["+strings.Join(all[:1], ", ")+"]"))
	}
	for range g.r.IntN(3) {
		m.addf("std::ResourceSet(name=%q, resources=%s)", pick(g, "one", "two"), pick(g, pick(g, all...), "["+strings.Join(all[1:], ", ")+"]", "[]"))
	}
	if g.chance(3) {
		m.addf("std::AgentConfig(agentname=%q, autostart=%s%s)", pick(g, "x", "y"), pick(g, "true", "false", unset), pick(g, "", ", uri=\"ssh://u@h\"", ", agent=\"z\""))
	}
	if g.chance(3) {
		m.addf("std::Host(name=\"h\", os=std::%s, ip=%s, remote_agent=%s)", pick(g, "linux", "windows", "unix"), pick(g, "null", `"10.0.0.1"`, `"::1"`, unset), pick(g, "true", "false", unset))
	}
}

// annotated has relations with annotations, which are evaluated like other expressions.
func (g *generator) annotated() {
	m, a, b := g.main, g.title(), g.title()
	m.addf("entity %s:\nend\nimplement %s using std::none\nentity %s:\n    int n = 1\nend\nimplement %s using std::none", a, a, b, b)
	v := g.name()
	m.addf("%s = %s", v, pick(g, "1", `"x"`, "[1, 2]", `{"a": 1}`, b+"()", "null"))
	ann := pick(g, v, v+", 1", "1 + 1", `"{{`+v+`}}"`, "["+v+"]", `{"k": `+v+"}", "std::count([1])", unset, "nope", v+".n", "true ? "+v+" : 2", "[i for i in [1]]")
	m.addf("%s.r %s %s %s%s", a, pick(g, "[0:]", "[1]", "[0:1]"), ann, b, pick(g, "", ".q [0:]", ".q [1]"))
	x := g.name()
	m.addf("%s = %s(r=%s)\nstd::print(%s.r is defined)", x, a, pick(g, b+"()", "["+b+"()]", "null"), x)
}

// formatted writes values with random specifications of the format language.
func (g *generator) formatted() {
	m := g.main
	x, w := g.name(), g.name()
	m.addf("%s = %s\n%s = %s", x, pick(g, "5", "-12345", "1.5", "0.1", "1234567.891", "true", `"ab"`, "100000000000000000000", "-0.0", "[1]", "null", "1.0"), w, pick(g, "3", "8", `">"`, "2.0"))
	spec := pick(g, "", "", "*", "0", "x") + pick(g, "", "<", ">", "^", "=") + pick(g, "", "", "+", "-", " ") + pick(g, "", "", "#") + pick(g, "", "", "0") +
		pick(g, "", "5", "12", "{"+w+"}") + pick(g, "", "", ",", "_") + pick(g, "", ".2", ".0", ".{"+w+"}") + pick(g, "", "d", "f", "g", "e", "s", "x", "b", "%", "n", "G", "q")
	conversion := pick(g, "", "", "!r", "!s", "!a")
	if g.chance(2) {
		m.addf("std::print(f\"[{%s%s:%s}]\")", x, conversion, spec)
		return
	}
	m.addf("std::print(std::format(\"[{0%s:%s}]\", %s, %s))", conversion, strings.ReplaceAll(spec, w, "1"), x, w)
}

// plugins calls plugins of std with fitting and unfitting values, by position, by name and by **.
func (g *generator) plugins() {
	m, a := g.main, g.title()
	m.addf("entity %s:\n    string n = \"a\"\n    string? z = null\n    int[] l = [3, 1]\nend\nimplement %s using std::none\n%s.sub [0:] -- %s\n%s.opt [0:1] -- %s", a, a, a, a, a, a)
	e := g.name()
	m.addf("%s = %s()\n%s.sub += [%s(n=\"b\"), %s(n=\"c\", l=[])]", e, a, e, a, a)
	value := func() string {
		return pick(g, "1", "-1", "0", `"a"`, `"a,b"`, `""`, "true", "null", "[1, 2]", "[]", `["b", "a"]`, `{"a": 1}`, e, e+".sub", e+".l", e+".n", e+".z", e+".opt", unset,
			"["+unset+"]", "1.5", "std::linux", `"10.0.0.1/24"`, `"n"`, "["+e+"]", `"YQ=="`)
	}
	for range 1 + g.r.IntN(3) {
		p := pick(g, signatures...)
		name, params, _ := strings.Cut(p, " ")
		var args []string
		for i, param := range strings.Fields(params) {
			switch {
			case strings.HasPrefix(param, "?") && g.chance(2):
			case g.chance(8):
				args = append(args, fmt.Sprintf(`**{"%s": %s}`, strings.TrimPrefix(param, "?"), value()))
			case i > 0 && g.chance(4):
				args = append(args, strings.TrimPrefix(param, "?")+"="+value())
			default:
				args = append(args, value())
			}
		}
		x := g.name()
		m.addf("%s = std::%s(%s)", x, name, strings.Join(args, ", "))
		m.addf("std::print(std::is_unknown(%s) ? \"unknown\" : std::is_unknown([1, %s]) ? 0 : %s == %s)", x, x, x, x)
		if name != "attr" && name != "filter" && name != "item" && name != "at" && name != "inlineif" && name != "getattr" {
			m.addf("std::print(%s)", x)
		}
	}
}

// signatures are plugins of std with their parameters; those with a question mark have defaults.
var signatures = []string{
	"replace string old new", "upper string", "lower string", "capitalize string", "limit string length", "split string_list delim", "length value", "hostname fqdn",
	"is_base64_encoded s", "json_loads s", "json_dumps obj", "select objects attr", "item objects index", "key_sort items key", "sequence i ?start", "at objects index",
	"attr obj attr", "count item_list", "len item_list", "unique item_list", "flatten item_list", "filter values not_item", "dict_get dct key", "dict_keys dct",
	"contains dct key", "inlineif conditional a b", "invert value", "isset value", "is_unknown value", "is_instance obj cls", "getattr entity attribute_name ?default_value ?no_unknown",
	"equals arg1 arg2 ?desc", "assert expression ?message", "familyof member family", "validate_type fq_type_name value ?validation_parameters", "get_env_int name ?default_value",
	"prefixlength_to_netmask prefixlen", "prefixlen addr", "network_address addr", "netmask addr", "ipindex addr position ?keep_prefix", "add_to_ip addr n",
	"ip_address_from_interface ip_interface", "unique_file prefix seed suffix ?length",
}

// pieces puts constructs into each other that are seldom nested: lookups in comprehensions in arguments, conditions in keys, calls in constraints of loops.
func (g *generator) pieces() {
	m, a := g.main, g.title()
	m.addf("entity %s:\n    string k\n    int v = 1\nend\nimplement %s using std::none\nindex %s(k)\n%s.to [0:] -- %s.of [0:]", a, a, a, a, a)
	list, u := g.name(), g.name()
	m.addf("%s = [%s(k=i) for i in [\"x\", \"y\", \"z\"]%s]\n%s = %s", list, a, pick(g, "", ` if i != "z"`), u, unset)
	key := func() string { return pick(g, `"x"`, `"y"`, `"z"`, `"nope"`, u, `"{{"x"}}"`) }
	var expr func(depth int) string
	expr = func(depth int) string {
		if depth == 0 {
			return pick(g, a+"[k="+key()+"]", list, u, "null", "1", "[]", `"x"`, `{"x": `+list+"}")
		}
		e := func() string { return expr(depth - 1) }
		return pick(g, "["+e()+", "+e()+"]", "[q for q in "+e()+"]", "[q.v for q in "+e()+" if q.k == "+key()+"]", "true ? "+e()+" : "+e(), u+" == 1 ? "+e()+" : "+e(),
			"std::count("+e()+")", "(not ("+e()+" == "+e()+"))", e()+" in "+e(), "std::inlineif("+pick(g, "true", "false")+", "+e()+", "+e()+")", "["+a+"[k=q] for q in ["+key()+", "+key()+"]]",
			`{"a": `+e()+`, "b": `+e()+"}", "[[q, r] for q in "+e()+" for r in "+e()+"]", "std::flatten(["+e()+"])", a+`(k="new", to=`+e()+")")
	}
	for range 1 + g.r.IntN(3) {
		x := g.name()
		m.addf("%s = %s", x, expr(1+g.r.IntN(3)))
		m.addf(pick(g, "std::print(std::is_unknown(%[1]s))", "std::print(%[1]s is defined)", "for q in %[1]s:\n    std::print(1)\nend", "if std::is_unknown(%[1]s):\n    std::print(2)\nelse:\n    std::print(%[1]s == [])\nend",
			"%[2]s(k=\"end\", to=%[1]s)", "w = %[2]s[k=\"x\"]\nw.to += %[1]s"), x, a)
	}
}
