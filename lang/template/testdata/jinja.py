"""Writes jinja.jsonl: what Jinja2 3.1 makes of several thousand templates.

Run it in an environment with jinja2: python jinja.py > jinja.jsonl
"""
import json
import random
import sys
import warnings

import jinja2

warnings.simplefilter("ignore")
R = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

VARS = {
    "n": 42, "neg": -7, "zero": 0, "f": 3.75, "g": 1e20, "t": True, "no": False, "nil": None, "big": 10**25,
    "s": "Hello World", "e": "", "html": "<a href='x'>\"T\" & co</a>", "uni": "Grüße 日本 😀", "lines": "one\ntwo\n\nthree\n", "spaced": "  pad me\t\n",
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "el": [], "mixed": [1, "x", None, True, 2.5], "nest": [[1, 2], [3, 4], [5]],
    "d": {"b": 1, "a": 2, "C": 3}, "ed": {}, "deep": {"x": {"y": {"z": [1, {"k": "v"}]}}},
    "users": [{"name": "bob", "age": 30, "city": "Rome"}, {"name": "Ann", "age": 25, "city": "oslo"}, {"name": "cid", "age": 30, "city": "rome"}],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}, {"v": 5, "kids": []}],
}


def enc(v):
    if isinstance(v, float):
        return {"$float": repr(v)}
    if isinstance(v, int) and not isinstance(v, bool) and abs(v) > 2**62:
        return {"$int": str(v)}
    if isinstance(v, list):
        return [enc(x) for x in v]
    if isinstance(v, dict):
        return {"$dict": [[k, enc(x)] for k, x in v.items()]}
    return v


print(json.dumps({"vars": enc(VARS)}, ensure_ascii=False))


def emit(main, others=None, strict=False, autoescape=False):
    templates = {"main": main, **(others or {})}
    env = jinja2.Environment(loader=jinja2.DictLoader(templates), undefined=jinja2.StrictUndefined if strict else jinja2.Undefined, autoescape=autoescape)
    row = {"t": templates}
    if strict:
        row["strict"] = True
    if autoescape:
        row["escape"] = True
    try:
        row["out"] = env.get_template("main").render(json.loads(json.dumps(VARS)))
    except jinja2.TemplateSyntaxError as e:
        row["error"] = type(e).__name__
        row["line"] = e.lineno
    except Exception as e:
        row["error"] = type(e).__name__
        row["message"] = str(e)
    if " at 0x" not in row.get("out", ""):
        print(json.dumps(row, ensure_ascii=False))


# ---------------------------------------------------------------- white space
for t in ["a\n{% if t %}\nb\n{% endif %}\nc\n", "a\n{%- if t -%}\nb\n{%- endif -%}\nc\n\n", "  {%+ if t %}x{% endif +%}  \n", "{{- n -}}", " {{- n }} \n {{ n -}} \n", "a {# c #} b", "a {#- c -#} b", "a\n{#- multi\nline -#}\nb", "{# {{ x }} {% y %} #}z",
          "{% raw %}{{ x }} {% if %} {# c #}{% endraw %}", " {%- raw -%}  {{ x }}  {%- endraw -%} y", "{% raw %}a{% endraw %}b{% raw %}c{% endraw %}", "\n", "\n\n", "x\r\ny\r\n", "x\ry", "", " ", "{{ 'a\r\nb' }}", "{{ 'a\nb'|length }}", "{% for x in l %}\n  {{ x }}\n{% endfor %}", "{% for x in l -%}\n  {{ x }}\n{%- endfor %}",
          "{{n}}{{f}}", "{{ '{{' }}", "{{ '%}' }}", "{% set x = '}}' %}{{ x }}", "a{%if t%}b{%endif%}c", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': 1}}}", "{ { n } }", "{{ n }", "{%", "{{", "{#", "{% raw %}", "{{ 'x }}", "}}", "%}", "#}", "{ {", "{{ n }}}}", "a{{ n }}\n\n\n", "\t{{ n }}\t", "{%- set x = 1 -%}  {{- x -}}  ", "{{-n}}", "{{+n}}", "{{ -n }}", "{{- -n }}", "{%+ set q=1 +%}{{q}}",
          "{% if t %}\n    x\n{% else %}\n    y\n{% endif %}\n"]:
    emit(t)

# ---------------------------------------------------------------- expressions
EXPR = """n + 1|n - 1|n * 2|n / 4|n // 4|n % 5|neg // 2|neg % 3|neg / 2|n ** 2|2 ** -1|2 ** 3 ** 2|-2 ** 2|- n|+ n|-n|abs|-3|abs|(-3)|abs|f // 1|f % 2|-f // 2|-f % 2|1 / 3|7 // -2|7 % -2|7.0 // -2|0.1 + 0.2|g|g * g|big + 1|big * big|big / 3|big // 7|big % 7|1e3|1.5e-7|1_000|0x1F|0b101|0o17|1e16|123456789.123456789|100000000000000000000.0|10 / 5|10 // 5|n / zero|n // zero|n % zero|f / 0|f // 0|f % 0
'a' + 'b'|'a' * 3|3 * 'ab'|'a' * -1|'ab' * 0|[1] * 2|[1] + [2]|(1,) + (2,)|l + ls|'a' + 1|1 + 'a'|[1] + (2,)|l + 1|'%s-%03d' % ('x', 7)|'%s' % n|'%5.2f|' % f|'%d%%' % n|'%s' % l|'%(a)s' % {'a': 1}|'%s %s' % ('a',)|'%d' % 'x'|'%x' % 255|'%r' % 'q'|'a' ~ 1 ~ 2.0 ~ nil ~ t|n ~ s|1 ~ [1]|~1|t + 1|t + t|nil + 1|missing + 1|1 + missing|missing ~ 'x'|-missing|not missing
1 < 2 < 3|3 > 2 > 1|1 < 2 > 1|1 == 1.0|1 == true|'a' == 'a'|'a' != 'b'|1 == '1'|nil == none|[1, 2] == [1, 2]|(1, 2) == (1, 2)|[1] == (1,)|{'a': 1} == {'a': 1.0}|'a' < 'b'|[1, 2] < [1, 3]|(1,) < (1, 2)|1 < 'a'|'a' < 1|nil < 1|1 <= nil|'a' >= 1|1 > 'a'|missing < 1|missing == missing|missing == 1|missing != 1|missing > 1|{} < {}|1 in l|9 in l|'x' in d|'a' in d|'ell' in s|'' in e|1 in s|1 not in l|'q' not in s|not 1 in l|1 in missing|missing in l|1 in n|nil in mixed|true in [1]|l in nest|[1, 2] in nest
t and no|t or no|no or 'x'|e or 'dflt'|s and 5|not t|not e|not not s|not t or t|t and not no|nil or zero or 'last'|1 and 2 and 3|n if t else f|n if no else f|n if no|n if no else f if no else s|(n if t) + 1|'a' if e else 'b' if s else 'c'|1 if true else 2 if false else 3|t is true and t
s[0]|s[-1]|s[100]|s[1:4]|s[::-1]|s[::2]|s[-3:]|s[:-3]|s[5:2]|s[5:2:-1]|l[0]|l[-1]|l[9]|l[1:]|l[:2]|l[::-1]|l[::0]|l[1.0]|l['a']|(1, 2, 3)[1:]|nest[1][0]|nest[-1]|d['a']|d['q']|d.a|d.q|d['a', 'b']|deep.x.y.z[1].k|deep['x']['y'].z.0|l.0|l.5|users.0.name|users[0]['name']|users[-1].city|missing.x|missing['x']|missing.x.y|d.q.r|nil.x|n.x|nil['a']|n[0]|s.x|s['x']|d.items|range(5)[2]|range(5)[1:3]|mixed[true]|{1: 'a', 2.5: 'b', none: 'c', (1, 2): 'd'}|{1: 'a'}[1]|{1: 'a'}[1.0]|{(1, 2): 'd'}[(1, 2)]|{[1]: 2}|{'a': 1, 'a': 2}|{1: 'x', true: 'y'}
[]|[1,]|()|(1,)|(1)|(1, 2)|[1, [2, (3,)]]|{}|{'a': 1,}|'a' 'b' "c"|'a\\nb'|"q\\"q"|'\\x41\\u00e9\\t|'|'\\d'|'é'|"it's"|['it\\'s', "q\\"", 'n\\n']|true|false|none|True|False|None|TRUE|nil|[nil, t, 1.0]|mixed|d|ed|el|nest|uni|[uni]|['\\x00\\x7f\\u200b']|1.0|1.50|-0.0|[1e20, 1e-5]|range(3)|range(1, 10, 3)|range(5, 0, -2)|range(0)|[range(3)]|range(3)|list|dict(a=1, b='x')|dict([('a', 1), ('b', 2)])|dict(d, z=9)|range('a')|range()|range(1, 2, 0)|range(200000)|[missing]|[missing, 1]
s.upper()|s.lower()|s.title()|s.swapcase()|s.split()|s.split('o')|s.split('o', 1)|s.rsplit('o', 1)|s.split(none, 1)|'a,b,,c'.split(',')|' a  b '.split()|' a  b c '.split(none, 1)|' a  b c '.rsplit(none, 1)|''.split()|''.split(',')|lines.splitlines()|lines.splitlines(true)|spaced.strip()|spaced.lstrip()|spaced.rstrip()|'xxaxx'.strip('x')|s.replace('o', '0')|s.replace('o', '0', 1)|s.replace('', '-')|s.startswith('He')|s.endswith('ld')|s.startswith(('x', 'H'))|s.find('o')|s.rfind('o')|s.find('zz')|s.index('W')|s.index('zz')|s.count('l')|s.count('')|'-'.join(['a', 'b'])|'-'.join(l)|','.join('abc')|'{}-{}'.format(1, 'x')|'{0}{1}{0}'.format('a', 'b')|'{a}:{b:>5}'.format(a=1, b='x')|'{:05.1f}'.format(f)|'{!r}'.format('x')|'{[a]}'.format(d)|'{.x}'.format(1)|'{'.format()|'{} {}'.format(1)|'7'.zfill(3)|'-7'.zfill(4)|'x'.ljust(4) ~ '|'|'x'.rjust(4)|'x'.center(4) ~ '|'|'x'.center(5, '*')|'12'.isdigit()|'a1'.isalnum()|'ab'.isalpha()|' '.isspace()|'AB'.isupper()|'ab'.islower()|'Ab Cd'.istitle()|'a'.isidentifier()|s.partition(' ')|s.rpartition('o')|s.partition('zz')|'a\\tb'.expandtabs(4)|s.casefold()|s.capitalize()|s.removeprefix('Hello ')|s.removesuffix('World')|''.isdigit()|s.nope()|s.upper|s.encode|s.find('o', 5)|s.count('o', 5)|'aXbX'.replace('X', '')
d.keys()|d.values()|d.items()|d.keys()|list|d.values()|sum|d.get('a')|d.get('q')|d.get('q', 7)|d.items()|list|d.pop('a')|d.pop('zz', 0)|d.pop('zz')|d.update({'x': 1})|d.setdefault('n', 5)|d.copy()|l.append(5)|l.index(1)|l.index(99)|l.count(1)|l.pop()|l.pop(0)|l.sort()|l.reverse()|l.insert(0, 9)|l.extend([7, 8])|l.remove(1)|l.remove(99)|el.pop()|l.copy()|(1, 2, 1).count(1)|(1, 2).index(2)|n.bit_length()|f.is_integer()|n.real|d.nope()|l.nope|n()|s()|missing()|missing.x()|nil()|range(3)|length|range(3)|sum|range(3)|join(',')
n|string|n|string + 'x'|s|length|s|upper|s|lower|s|title|"it's a dog-day (yes) [no] {x} <y>"|title|s|capitalize|uni|upper|'straße'|upper|'ßx'|capitalize|'éa b'|title|spaced|trim|'xxaxx'|trim('x')|s|center(20) ~ '|'|s|center(21) ~ '|'|s|reverse|l|reverse|l|reverse|list|l|first|l|last|el|first|el|last|s|first|s|last|d|first|d|last|l|length|d|count|n|length|missing|length|l|sum|l|sum(start=10)|users|sum(attribute='age')|users|sum('age', 100)|el|sum|ls|sum|nest|sum(start=[])|l|min|l|max|ls|min|ls|max|ls|max(case_sensitive=true)|el|max|users|max(attribute='age')|users|min(attribute='name')|mixed|max
l|sort|l|sort(reverse=true)|ls|sort|ls|sort(case_sensitive=true)|ls|sort(true)|users|sort(attribute='name')|users|sort(attribute='age,name')|users|sort(attribute='age', reverse=true)|users|map(attribute='name')|list|users|map(attribute='nope')|list|users|map(attribute='nope', default='?')|list|ls|map('upper')|list|l|map('string')|join('-')|['a', 'b']|map('center', 3)|list|l|map('nope')|list|l|map|users|map(attribute='city')|unique|list|ls|unique|list|ls|unique(case_sensitive=true)|list|[1, 1.0, true, 2]|unique|list|users|unique(attribute='age')|map(attribute='name')|list|l|select|list|mixed|select|list|l|select('odd')|list|l|reject('odd')|list|l|select('>', 1)|list|l|select('nope')|list|users|selectattr('age', 'gt', 26)|map(attribute='name')|list|users|selectattr('name')|list|length|users|rejectattr('age', 'equalto', 30)|list|users|rejectattr('nope')|list|length|mixed|select('string')|list|l|select('in', [1, 2])|list|l|map('abs')|sum|nest|map('sum')|list|nest|map('first')|list|nest|map(attribute=0)|list|users|map(attribute='name')|map('upper')|join(', ')
users|groupby('age')|list|users|groupby('city')|map(attribute='grouper')|list|users|groupby('city', case_sensitive=true)|map('first')|list|users|groupby('nope')|list|length|users|groupby('nope', default='x')|map(attribute='grouper')|list|users|groupby('age')|map(attribute='list')|map('length')|list|d|dictsort|d|dictsort(true)|d|dictsort(false, 'value')|d|dictsort(by='value', reverse=true)|d|dictsort(by='x')|l|dictsort|d|items|list|missing|items|list|l|items|list|l|batch(2)|list|l|batch(2, 0)|list|range(7)|batch(3)|list|range(7)|batch(3, 'x')|list|range(7)|slice(3)|list|range(7)|slice(3, 'x')|list|range(6)|slice(3, 'x')|list|el|batch(2)|list|el|slice(2)|list|range(4)|slice(0)|list|l|join|l|join(', ')|users|join(', ', attribute='name')|mixed|join('/')|s|join('.')|d|join|missing|join|n|join|l|list|s|list|d|list|missing|list|n|list|'abc'|list|(1, 2)|list
missing|default('x')|missing|d('x')|e|default('x')|e|default('x', true)|nil|default('x')|nil|default('x', true)|nil|d('x', boolean=true)|n|default(1)|missing|default|d.q|default('q')|missing.x|default('q')|zero|default(5, true)|missing is defined|n is defined|missing is undefined|nil is none|n is none|n is number|t is number|'1' is number|f is float|n is float|n is integer|t is integer|t is boolean|n is boolean|t is true|n is true|no is false|zero is false|s is string|n is string|d is mapping|l is mapping|l is sequence|s is sequence|d is sequence|n is sequence|l is iterable|n is iterable|s is iterable|range is callable|s is callable|n is odd|n is even|7 is odd|neg is odd|f is odd|'a' is odd|n is divisibleby 7|n is divisibleby(5)|n is divisibleby 0|'abc' is lower|'ABC' is upper|'a1' is lower|'' is lower|n is sameas 42|l is sameas l|[] is sameas []|1 in [1] is true|n is eq 42|n is ne 42|n is gt 41|n is ge 42|n is lt 43|n is le 41|n is equalto 42|n is greaterthan 5|n is lessthan 5|n is not defined|n is not none|not n is none|n is in [42]|n is in l|n is nope|'upper' is filter|'nope' is filter|'odd' is test|n is defined and t|n is number and n > 5|n is divisibleby 2 and t|s is escaped|(s|safe) is escaped|missing is none|l is not mapping|n is even is odd|n == 42 is true|range(3) is sequence|d.items() is sequence|d.items() is iterable
'3'|int|'3.7'|int|'x'|int|'x'|int(5)|'0x1f'|int(base=16)|'1f'|int(0, 16)|'z'|int(base=36)|nil|int|f|int|-f|int|t|int|'1_000'|int|' 7 '|int|'1e3'|int|l|int|missing|int|big|int|'9' * 30|int|'3.5'|float|'x'|float|'x'|float(1)|n|float|nil|float|'inf'|float|'nan'|float|'1e3'|float|t|float|n|abs|neg|abs|'x'|abs|f|round|2.5|round|3.5|round|-2.5|round|f|round(1)|2.675|round(2)|1234.5678|round(-2)|f|round(1, 'floor')|f|round(1, 'ceil')|f|round(method='floor')|f|round(0, 'x')|n|round|n|round(-1)|25|round(-1)|35|round(-1)|n|round(2)|n|round(1, 'ceil')|1e300|round(2)|0.5|round|1.5|round|'x'|round|1e22|round|n|filesizeformat|1|filesizeformat|0|filesizeformat|999|filesizeformat|1000|filesizeformat|1500|filesizeformat|1048576|filesizeformat|1048576|filesizeformat(true)|1e15|filesizeformat|1e30|filesizeformat|'123456'|filesizeformat|'x'|filesizeformat|123456789|filesizeformat(binary=true)
html|e|html|escape|html|forceescape|html|e|e|html|e|forceescape|html|safe|html|striptags|'<!-- c --><p>a  <b>b</b>\\n c</p>'|striptags|'&lt;x&gt;'|striptags|(html|e) ~ '<'|(html|e) + '<'|'<' + (html|e)|('<b>'|safe) + '<i>'|'%s'|safe|format('<')|('<%s>'|safe) % '<x>'|('a'|safe) * 2|['<'|safe, '<']|'<'|safe|upper|('<b>'|safe).replace('b', '<')|('<b>'|safe).join(['<', 'x'])|('{}'|safe).format('<')|'%s %s'|format('a', 'b')|'%(x)s'|format(x=1)|'%s'|format(1, x=2)|'%d'|format('x')|s|replace('o', '0')|s|replace('o', '0', 1)|n|replace('4', 'x')|s|replace('l', '')|n|e|nil|e|html|urlencode|'a b&c/d?é=~-_.'|urlencode|{'a b': 'c&d', 'x': 1}|urlencode|[('a', 1), ('b', 'ü')]|urlencode|n|urlencode|d|xmlattr|{'a': none, 'b': missing, 'c': '<x>'}|xmlattr|{'a': 1}|xmlattr(false)|{'a b': 1}|xmlattr|ed|xmlattr|l|xmlattr
s|truncate(8)|s|truncate(8, true)|s|truncate(8, true, '!')|s|truncate(8, end='', leeway=0)|s|truncate(11)|s|truncate(9)|s|truncate(5, leeway=0)|s|truncate(2)|('word ' * 80)|truncate|('word ' * 80)|truncate(20)|('x' * 300)|truncate|s|wordcount|uni|wordcount|"it's a b_c-d"|wordcount|('lorem ipsum dolor ' * 8)|wordwrap(30)|('lorem ipsum dolor ' * 8)|wordwrap(30, true, '|')|('x' * 50)|wordwrap(20)|('x' * 50)|wordwrap(20, false)|'a well-known self-explanatory word-break'|wordwrap(12)|'a well-known word'|wordwrap(10, break_on_hyphens=false)|lines|wordwrap(3)|'aaa bbb  ccc'|wordwrap(3)|'a--b c--d eee'|wordwrap(4)|''|wordwrap|lines|indent|lines|indent(2)|lines|indent(2, true)|lines|indent(2, true, true)|lines|indent('> ')|lines|indent(2, blank=true)|s|indent|''|indent(first=true)|n|indent|s|wordwrap(0)
d|tojson|l|tojson|html|tojson|uni|tojson|nil|tojson|t|tojson|f|tojson|deep|tojson|deep|tojson(indent=2)|el|tojson(2)|(1, 2)|tojson|'</script>'|tojson|missing|tojson|{1: 2}|tojson|"it's"|tojson|g|tojson|big|tojson|[nil, {'b': 1, 'a': [{}]}]|tojson(indent=1)|range|tojson|l|pprint|d|pprint|s|pprint|users|pprint|(users * 2)|pprint|('word ' * 30)|pprint|{'k': 'word ' * 30, 'a': range(50)|list}|pprint|nest|pprint|n|pprint|d|attr('items')|d|attr('a')|s|attr('upper')|s|attr('nope')|s|string|l|string|l|random|length|[7]|random|el|random|s|nope|s|upper|lower|title|s|upper()|s|upper(1)|s|center|length|s|default|upper|l|first|string|length
cycler('a', 'b').next()|cycler()|joiner()|joiner('|')()|namespace(a=1).a|namespace(a=1).b|namespace({'x': 2}, y=3).y|namespace(a=1)|dict|'http://example.com and www.x.org, (https://a.b/c?d=e&f) me@x.com mailto:a@b.co x.com <b>'|urlize|'see http://example.com/a/long/path'|urlize(15)|'http://x.com'|urlize(none, true, '_blank')|'http://x.com'|urlize(rel='a b')|'tel:123 x'|urlize(extra_schemes=['tel:'])|'http://x.com.'|urlize|'plain text'|urlize|'ftp://x.com http://1.2.3.4:80/'|urlize
n if n > 5 else 0|(l|length) > 2|l|length > 2|l|length == 3 and t|n + l|first|n ~ l|join|-n|string|(n)|string ~ 'x'|not l|first|n|float|round|int|l|map('string')|list == ['3', '1', '2']|s[0]|upper|s.split()|last|s.split()[0]|lower|d.keys()|sort|d|length + 1|[n, s]|first|{'a': n}.a|(n, s)[1]|'a' in 'abc' and 'z' not in 'abc'|n in [42] and true|1 + 1 in [2]|1 + 2 * 3 - 4 / 2|(1 + 2) * 3|10 - 2 - 3|2 * 3 % 4|7 // 2 * 2|1 < 2 and 2 < 3|1 == 1 == 1|1 < 2 == true|'a' ~ 'b' * 2|1 ~ 2 + 3|1 + 2 ~ 3|caller|loop|self|super|varargs|kwargs|loop.index|n,|n, s|*l|**d|n s|n.|n[|n(|(|[1, 2|{'a' 1}|n +|+|1.|.5|1..2|a.b.c|'a' is 'b'|@|$x|n ! 1|n && t|n = 1|x := 1|lambda: 1|n ? 1 : 2|l[1, 2]|d[l]|s['upper']|s['upper']()|d['items']()|nil|upper|nil|length|nil|list|nil|join|t|upper|l|upper|n|capitalize|missing|upper|missing|sort|missing|sum|missing|first|missing|e|missing|int|missing|round|missing|tojson|missing|replace('a', 'b')|missing|trim|missing|string|missing|truncate|missing|map('upper')|list|missing|select|list|missing|dictsort|missing|groupby('a')|missing|reverse|missing|batch(2)|list|missing|abs|missing|attr('x')|missing|urlencode|missing|xmlattr|missing|wordcount|missing|unique|list|missing|min|missing|items|list|missing|indent|missing|center|missing|format|missing|filesizeformat|missing|pprint|missing|safe|missing|striptags|missing|title|missing|wordwrap"""
seen = set()
for line in EXPR.split("\n"):
    # A bar separates expressions, except where it is a filter: split on bars that no filter name follows is not possible,
    # so both readings are tried: the pieces, and each piece with the ones after it.
    parts = line.split("|")
    for i in range(len(parts)):
        for j in range(i + 1, min(i + 4, len(parts)) + 1):
            x = "|".join(parts[i:j])
            if x not in seen and "random" not in x and "lipsum" not in x:
                seen.add(x)
                emit("{{ " + x + " }}")
                if "missing" in x and j == i + 1:
                    emit("{{ " + x + " }}", strict=True)

# ---------------------------------------------------------------- statements
STATEMENTS = [
    "{% for x in l %}{{ loop.index }}/{{ loop.length }}:{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in l %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in el %}x{% else %}empty{% endfor %}", "{% for x in missing %}x{% else %}none{% endfor %}", "{% for x in n %}{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for a, b in nest %}{{ a }}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}no{% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}no{% endfor %}", "{% for x in l if loop.index %}{% endfor %}",
    "{% for x in 'abc' %}{{ loop.cycle('odd', 'even') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for i in tree recursive %}{{ i.v }}{% if i.kids %}({{ loop(i.kids) }}){% endif %}{{ loop.depth }}{% endfor %}", "{% for i in l %}{{ loop(i) }}{% endfor %}", "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in l %}{{ loop }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% for i in l %}{{ x }}{% set x = i %}{% endfor %}", "{% set x = 0 %}{% for i in l %}{{ x }}{% set x = x + i %}{% endfor %}{{ x }}", "{% set ns = namespace(c=0) %}{% for i in l %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}", "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = l %}", "{% set a, b = 'x' %}", "{% set a = 1, 2 %}{{ a }}", "{% set a %}x{{ n }}y{% endset %}{{ a }}", "{% set a | upper %}x{% endset %}{{ a }}", "{% set a | replace('x', 'z') | upper %}xy{% endset %}{{ a }}", "{% set x = n if t else f %}{{ x }}", "{% if t %}{% set x = 5 %}{% endif %}{{ x }}", "{% if no %}{% set n = 5 %}{% endif %}{{ n }}", "{% set n = n + 1 %}{{ n }}", "{{ q }}{% set q = 1 %}{{ q }}",
    "{% if n > 50 %}a{% elif n > 40 %}b{% elif t %}c{% else %}d{% endif %}", "{% if e %}a{% else %}b{% endif %}", "{% if missing %}a{% else %}b{% endif %}", "{% if not missing %}a{% endif %}", "{% if l and d %}a{% endif %}", "{% if n == 42: %}x{% endif %}", "{% if %}{% endif %}", "{% if t %}", "{% endif %}", "{% if t %}{% endfor %}", "{% else %}",
    "{% macro m(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=1, a=2) }}{{ m() }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, z=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(4) }}", "{% macro m(a=n) %}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(a, b='x', c) %}{% endmacro %}",
    "{% macro m(x) %}{{ x }}{{ n }}{% endmacro %}{% set n = 1 %}{{ m(2) }}", "{% macro f(k) %}{{ k }}{% if k > 0 %}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro m(a, b) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}body{% endcall %}", "{% macro m() %}<{{ caller('x', 1) }}>{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{{ n }}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(1) }}", "{% macro m() %}{{ caller is defined }}{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ m() }}{% call m() %}z{% endcall %}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{% set z = 1 %}{{ z }}{% endmacro %}{{ m() }}{{ z }}", "{% macro m(a, *b) %}{% endmacro %}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m(a) %}{{ a is defined }}{{ a|default('d') }}{% endmacro %}{{ m() }}", "{% macro m() %}  a  {% endmacro %}[{{ m() }}][{{ m()|trim }}]", "{% call n() %}x{% endcall %}", "{% call n %}x{% endcall %}", "{{ m }}{% macro m() %}{% endmacro %}{{ m }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(1, *[2]) }}{{ m(*[1], **{'b': 2}) }}{{ m(b=1, *[2]) }}", "{% macro m(a) %}{% macro k() %}{{ a }}{% endmacro %}{{ k() }}{% endmacro %}{{ m(3) }}",
    "{% filter upper %}abc{{ n }}{% endfilter %}", "{% filter upper|replace('A', 'z') %}abc{% endfilter %}", "{% filter replace('a', 'b') %}aaa{% endfilter %}", "{% filter nope %}x{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% for x in l %}{% filter center(5) %}{{ x }}{% endfilter %}{% endfor %}",
    "{% with %}{% set x = 1 %}{{ x }}{% endwith %}{{ x }}", "{% with a=1, b=2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with a=n %}{% with a=a+1 %}{{ a }}{% endwith %}{{ a }}{% endwith %}", "{% with a=1, b=a %}{{ b }}{% endwith %}", "{% with a = {'b': 1} %}{{ a.b }}{% endwith %}",
    "{% autoescape true %}{{ html }}{{ html|safe }}{{ html ~ 'x' }}{{ 'a' ~ ('<'|safe) }}{% endautoescape %}{{ html }}", "{% autoescape false %}{{ html }}{% endautoescape %}", "{% autoescape true %}{% set x %}<b>{{ html }}{% endset %}{{ x }}{% endautoescape %}", "{% autoescape true %}{% macro m() %}<i>{{ html }}{% endmacro %}{{ m() }}{% endautoescape %}", "{% autoescape true %}{{ ['<', '>'|safe]|join(',') }}{{ html|replace('a', '<') }}{{ html|upper }}{% filter lower %}<B>{{ html }}{% endfilter %}{% endautoescape %}",
    "{% do l.append(1) %}", "{% break %}", "{% continue %}", "{% trans %}x{% endtrans %}", "{% debug %}", "{% nope %}", "{% %}", "{% 1 %}", "{% print n %}{% print n, s %}", "{% block a %}x{% endblock %}{{ self.a() }}", "{% block a %}x{% endblock b %}", "{% block a %}{% block a %}{% endblock %}{% endblock %}", "{% block a-b %}{% endblock %}", "{% block a required %} {% endblock %}", "{% block a required %}x{% endblock %}", "{% for i in l %}{% block b scoped %}{{ i }}{% endblock %}{% endfor %}", "{% for i in l %}{% block b %}{{ i }}{% endblock %}{% endfor %}", "{% set x = 1 %}{% block b %}{{ x }}{% set x = 2 %}{{ x }}{% endblock %}{{ x }}", "{{ self.nope() }}", "{{ self.nope }}", "{{ super() }}", "{% block a %}{{ super() }}{% endblock %}", "{% include 'nope' %}", "{% include 'nope' ignore missing %}x", "{% include ['nope', 'also'] %}", "{% include ['nope', 'also'] ignore missing %}y", "{% extends 'nope' %}", "{% import 'nope' as x %}", "{% from 'nope' import x %}", "{% include missing %}", "{% include n %}", "{% include [] %}",
    "{% set q=1 %}{% macro m(q=q) %}[{{ q }}]{% endmacro %}{{ m() }}{{ m(2) }}", "{% set x=1 %}{% macro m(x, q=x) %}[{{ q }}]{% endmacro %}{{ m() }}{{ m(2) }}", "{% set r=1 %}{% macro m(q=r, r=5) %}[{{ q }}{{ r }}]{% endmacro %}{{ m() }}{{ m(2) }}{{ m(r=9) }}", "{% macro m2(x) %}{{ loop is defined }}{% endmacro %}{% for i in l %}{{ m2(i) }}{% endfor %}", "{% for i in l %}{% macro m2(x) %}{{ loop.index|default('n') }}{% endmacro %}{{ m2(i) }}{% endfor %}{{ m2 is defined }}", "{{ missing is sequence }}{{ missing is iterable }}{{ missing is mapping }}",
    "{% set _ = l.append(9) %}{{ l }}", "{% for x in l %}{% if loop.index < 3 %}{% set _ = l.append(x * 10) %}{% endif %}{{ x }} {% endfor %}", "{% set it = l|map('string') %}{{ it|list }}{{ it|list }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% for c, items in users|groupby('age') %}{{ c }}:{% for u in items %}{{ u.name }},{% endfor %};{% endfor %}", "{% for g in users|groupby('age') %}{{ g.grouper }}={{ g.list|length }};{% endfor %}", "{% for row in range(5)|batch(2, '-') %}{{ row|join(' ') }}\n{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in d.values() if x is odd %}{{ x }}{% endfor %}", "{% for i in range(3) %}{{ loop.index }}{{ loop.nextitem|default('end') }}{% endfor %}",
    "{% for x in l %}{% set outer = loop %}{% for y in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for u in users|sort(attribute='name') %}{{ u.name|upper }} {% endfor %}", "{% set x = {'a': [1, 2, {'b': 3}]} %}{{ x.a[2].b }}", "line1\n{% for i in l %}\n{{ i }}\n{% endfor %}\n{{ missing.x }}", "a\nb\n{{ 1 / 0 }}", "\n\n{% if t %}\n{{ n | nope }}\n{% endif %}", "{{ n }}\n{% for x in l %}\n{% if x == 2 %}{{ x.y.z }}{% endif %}\n{% endfor %}", "{% set x %}{% for i in l %}{{ i }}{% endfor %}{% endset %}{{ x|length }}", "{{ ('a', 'b')|join }}{{ ['x']|first }}", "{% for x in [] %}{% else %}{{ loop is defined }}{% endfor %}", "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% if true %}{% macro a() %}A{% endmacro %}{% endif %}{{ a() }}", "{% for true in l %}{% endfor %}", "{% set none = 1 %}", "{% set 1 = 2 %}", "{% set x.y.z = 1 %}", "{% for x.y in l %}{% endfor %}", "{% for x in l recursive %}{{ x }}{% endfor %}", "{% for x in l if x recursive %}{{ x }}{% endfor %}", "{% for x, in [(1,)] %}{{ x }}{% endfor %}", "{% for (x, y) in [(1, 2)] %}{{ x }}{{ y }}{% endfor %}", "{% set (a, b) = (1, 2) %}{{ a }}", "{% set a, = [1] %}{{ a }}", "{% for x in l %}{{ x }}{% endfor -%}  y", "{% set f = 'x'.upper %}{{ f() }}", "{% set x = range(3) %}{{ x|list }}{{ x|list }}{{ x|length }}", "{% for a in nest %}{{ a|sum }}{% if not loop.last %}+{% endif %}{% endfor %}", "{% for k, v in d.items() | sort(attribute='1', reverse=true) %}{{ k }}{% endfor %}", "{% if 'a' in d and d['a'] == 2 %}yes{% endif %}", "{% if d.a is defined and d.q is not defined %}yes{% endif %}", "{% set d2 = dict(d, **{'z': 1}) %}{{ d2 }}", "{% set t = namespace(x=[]) %}{% for i in l %}{% set t.x = t.x + [i] %}{% endfor %}{{ t.x }}",
]
for t in STATEMENTS:
    emit(t)
    emit(t, strict=True)

# ---------------------------------------------------------------- several templates
INC = {"inc": "<{{ n }}{{ x }}>", "lib": "{% set v = 7 %}{% set _h = 1 %}{% macro m(a) %}({{ a }}{{ n }}){% endmacro %}body{{ n }}", "base": "[{% block a %}A{% endblock %}|{% block b %}B{{ n }}{% endblock %}]", "mid": "{% extends 'base' %}{% block a %}mid{{ super() }}{% endblock %}", "nested": "{% block o %}o{% block i %}i{% endblock %}o{% endblock %}",
       "scoped": "{% for i in l %}{% block item scoped %}{{ i }}{% endblock %}{% endfor %}", "req": "{% block r required %}{% endblock %}", "bad": "a\n{% if %}", "runtime": "x\n{{ 1 / 0 }}", "self": "{% block t %}T{% endblock %}-{{ self.t() }}", "loopinc": "{{ loop.index }}{{ i }}", "setter": "{% set y = 5 %}{{ y }}", "uses": "{% import 'lib' as q %}{{ q.m(1) }}"}
for t in ["{% include 'inc' %}", "{% set x = 1 %}{% include 'inc' %}", "{% set x = 1 %}{% include 'inc' without context %}", "{% set x = 1 %}{% include 'inc' with context %}", "{% include ['nope', 'inc'] %}", "{% include 'inc' ignore missing with context %}", "{% for i in l %}{% include 'loopinc' %}{% endfor %}", "{% for x in l %}{% include 'inc' %}{% endfor %}", "{% include 'setter' %}{{ y }}", "{% include 'bad' %}", "{% include 'bad' ignore missing %}", "{% include 'runtime' %}", "{% set name = 'inc' %}{% include name %}", "{% macro m(x) %}{% include 'inc' %}{% endmacro %}{{ m(3) }}",
          "{% import 'lib' as k %}{{ k.v }}{{ k.m(1) }}{{ k.n }}{{ k._h }}", "{% import 'lib' as k with context %}{{ k.m(1) }}", "{% from 'lib' import m, v %}{{ m(1) }}{{ v }}", "{% from 'lib' import m as z with context %}{{ z(2) }}", "{% from 'lib' import nope %}{{ nope }}", "{% from 'lib' import nope %}{{ nope() }}", "{% from 'lib' import _h %}", "{% import 'lib' as k %}{{ k }}", "{% from 'lib' import m, %}{{ m(1) }}", "{% from 'lib' import m v %}", "{% import 'bad' as b %}", "{% for i in l %}{% import 'lib' as k %}{{ k.m(i) }}{% endfor %}", "{% import 'uses' as u %}{{ u.q }}", "{% include 'uses' %}", "{% macro o() %}{% from 'lib' import m %}{{ m(9) }}{% endmacro %}{{ o() }}",
          "{% extends 'base' %}", "{% extends 'base' %}{% block a %}X{% endblock %}ignored{{ n }}", "{% extends 'base' %}{% block a %}X{{ super() }}{% endblock %}{% block b %}{{ super() }}{{ super() }}{% endblock %}", "{% extends 'mid' %}{% block a %}top{{ super() }}{{ super.super() }}{% endblock %}", "{% extends 'mid' %}", "{% set n = 1 %}{% extends 'base' %}", "{% extends 'base' %}{% set n = 1 %}", "{% extends 'base' %}{% block a %}{{ self.b() }}{% endblock %}", "{% if t %}{% extends 'base' %}{% else %}{% extends 'mid' %}{% endif %}{% block a %}Z{% endblock %}", "{% if no %}{% extends 'base' %}{% endif %}{% block a %}Z{% endblock %}", "text{% extends 'base' %}more", "{% extends ['nope', 'base'] %}", "{% extends 'nested' %}{% block i %}I{% endblock %}", "{% extends 'nested' %}{% block o %}O{{ super() }}{% endblock %}", "{% extends 'scoped' %}{% block item %}<{{ i }}>{% endblock %}", "{% extends 'req' %}", "{% extends 'req' %}{% block r %}R{% endblock %}", "{% extends 'self' %}{% block t %}U{% endblock %}", "{% extends 'base' %}{% macro m() %}M{% endmacro %}{% block a %}{{ m() }}{% endblock %}", "{% extends 'base' %}{% from 'lib' import m %}{% block a %}{{ m(1) }}{% endblock %}", "{% extends 'base' %}{% import 'lib' as k %}{% block b %}{{ k.v }}{% endblock %}", "{% extends 'base' %}{% extends 'mid' %}", "{% extends 'base' %}{% for i in l %}{{ i }}{% endfor %}", "{% extends 'base' %}{% block a %}{% set q = 1 %}{{ q }}{% endblock %}{% block b %}{{ q }}{% endblock %}", "{% extends 'base' %}{% block a %}{% include 'inc' %}{% endblock %}", "{% extends 'base' %}{% block zz %}unused{% endblock %}", "{% extends 'base' %}{% block a %}{{ super.super() }}{% endblock %}", "{% extends 'bad' %}", "{% extends missing %}", "{% extends 'base' %}{% if t %}{% block a %}C{% endblock %}{% endif %}", "{% extends 'base' %}{% call foo() %}{% endcall %}", "{% extends 'base' %}{% set x %}{{ n }}{% endset %}{% block a %}{{ x }}{% endblock %}", "{% block a %}1{% endblock %}{% include 'base' %}", "{% extends 'base' %}{% filter upper %}x{% endfilter %}", "{% extends 'base' %}{% with z = 1 %}{% block a %}{{ z }}{% endblock %}{% endwith %}"]:
    emit(t, INC)
    emit(t, INC, strict=True)
    emit(t, INC, autoescape=True)
for t in STATEMENTS[:60]:
    emit(t, autoescape=True)

# ---------------------------------------------------------------- random expressions
NAMES = ["n", "neg", "zero", "f", "t", "nil", "s", "e", "l", "ls", "el", "d", "nest", "missing", "users", "uni"]
CONSTS = ["1", "2", "-3", "0", "2.5", "'a'", "'Bc d'", "true", "none", "[1, 'x']", "(1, 2)", "{'a': 1}", "''", "[]", "3.0"]
FILTERS = ["abs", "upper", "lower", "title", "first", "last", "length", "list", "sort", "reverse|list", "join(',')", "string", "int", "float", "default('D')", "default('D', true)", "round", "round(1)", "sum", "min", "max", "unique|list", "trim", "e", "tojson", "map('string')|list", "select|list", "replace('a', 'Z')", "center(9)", "capitalize", "wordcount", "batch(2)|list", "slice(2)|list", "indent", "truncate(4, true, '', 0)", "pprint", "urlencode", "striptags", "map('upper')|list", "reject|list", "sum(start=1)", "dictsort", "items|list", "filesizeformat", "wordwrap(4)"]
TESTS = ["defined", "none", "number", "string", "sequence", "mapping", "iterable", "odd", "even", "true", "false", "integer", "float", "lower", "upper", "eq 1", "gt 1", "in [1, 2]", "divisibleby 2", "sameas none", "boolean", "callable", "undefined"]


def folded(x, strict, autoescape):
    """Whether Jinja2 works out part of x while it compiles, and is then more lenient than at run time."""
    results = []
    for optimized, t in [(True, "{{ %s }}" % x), (False, "{%% set zz = %s %%}{{ zz }}" % x)]:
        env = jinja2.Environment(undefined=jinja2.StrictUndefined if strict else jinja2.Undefined, autoescape=autoescape, optimized=optimized)
        try:
            results.append(env.from_string(t).render(json.loads(json.dumps(VARS))))
        except Exception as e:
            results.append(type(e))
    return results[0] != results[1]


def expr(depth):
    k = R.random()
    if depth <= 0 or k < 0.15:
        return R.choice(NAMES + CONSTS)
    if k < 0.45:
        return "(%s %s %s)" % (expr(depth - 1), R.choice(["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or"]), expr(depth - 1))
    if k < 0.72:
        return "(%s|%s)" % (expr(depth - 1), R.choice(FILTERS))
    if k < 0.80:
        return "(%s is %s%s)" % (expr(depth - 1), R.choice(["", "not "]), R.choice(TESTS))
    if k < 0.86:
        return "(%s if %s else %s)" % (expr(depth - 1), expr(depth - 1), expr(depth - 1))
    if k < 0.92:
        return "%s[%s]" % (expr(depth - 1), R.choice(["0", "-1", "'a'", "1:", ":2", "::-1", "5", "::2"]))
    if k < 0.95:
        return "(not %s)" % expr(depth - 1)
    return "[%s, %s]" % (expr(depth - 1), expr(depth - 1))


for _ in range(4000):
    x, strict, autoescape = expr(R.randint(1, 4)), R.random() < 0.1, R.random() < 0.1
    if not folded(x, strict, autoescape):
        emit("{{ " + x + " }}", strict=strict, autoescape=autoescape)

# ---------------------------------------------------------------- random templates
def tag(text):
    return "{%" + R.choice(["", "", "", "-", "+"]) + " " + text + " " + R.choice(["", "", "", "-", "+"]) + "%}"


def body(depth, names):
    out = ""
    for _ in range(R.randint(1, 4)):
        out += R.choice(["a", " b ", "\n", "  \n  ", "c\n", ""])
        k = R.random()
        name = R.choice(names)
        if k < 0.30 or depth <= 0:
            out += "{{" + R.choice(["", "", "-"]) + " " + R.choice([name, name + "|default('?')", "loop.index|default(0)", "x ~ y", name + "|string|length", "l|join(',')"]) + " " + R.choice(["", "", "-"]) + "}}"
        elif k < 0.40:
            out += tag("if " + R.choice([name, "not " + name, "n > 5", name + " is defined", "loop is defined and loop.first"])) + body(depth - 1, names)
            if R.random() < 0.4:
                out += tag("elif " + R.choice(names)) + body(depth - 1, names)
            if R.random() < 0.5:
                out += tag("else") + body(depth - 1, names)
            out += tag("endif")
        elif k < 0.55:
            var = R.choice(["x", "y", "z"])
            out += tag("for %s in %s%s" % (var, R.choice(["l", "ls", "range(2)", "el", "d", "'ab'", "nest", "missing"]), R.choice(["", "", " if %s" % var, " if loop is not defined"]))) + body(depth - 1, names + [var, "loop.last", "loop.revindex"])
            if R.random() < 0.3:
                out += tag("else") + body(depth - 1, names)
            out += tag("endfor")
        elif k < 0.68:
            out += tag("set %s = %s" % (R.choice(["x", "y", "z"]), R.choice([name, "n + 1", "[x, y]", "x|default(0)", "'v'", "x ~ 'q'"])))
        elif k < 0.74:
            out += tag("set " + R.choice(["x", "y"]) + R.choice(["", " | upper"])) + body(depth - 1, names) + tag("endset")
        elif k < 0.80:
            out += tag("with x = %s, w = x" % name) + body(depth - 1, names + ["w"]) + tag("endwith")
        elif k < 0.88:
            m = R.choice(["m1", "m2"])
            out += tag("macro %s(x, q=%s)" % (m, R.choice(names))) + body(depth - 1, names + ["q"]) + R.choice(["", "{{ caller() if caller }}", "{{ varargs }}"]) + tag("endmacro") + "{{ %s(%s) }}" % (m, R.choice(["1", name, "q=2", "1, 2", ""]))
        elif k < 0.92:
            out += tag("filter " + R.choice(["upper", "trim", "replace('a', 'A')", "indent(1)", "e"])) + body(depth - 1, names) + tag("endfilter")
        elif k < 0.95:
            out += R.choice(["{# c #}", "{#- c -#}", "{% raw %}{{ r }}{% endraw %}", "{%- raw -%} {% r %} {%- endraw -%}"])
        else:
            out += tag("macro m3()") + "[{{ caller(%s) }}]" % R.choice(names) + tag("endmacro") + tag("call(z) m3()") + body(depth - 1, names + ["z"]) + tag("endcall")
    return out


for _ in range(1500):
    emit(body(R.randint(1, 3), ["n", "s", "x", "y", "missing", "l", "d", "t", "no"]), autoescape=R.random() < 0.15)
