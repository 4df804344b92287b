"""Writes python.jsonl: what Python makes of arithmetic, comparison, formatting, conversion and notation.

Run it with Python 3.11 or later: python3 python.py > python.jsonl
"""
import itertools
import json
import random
import sys

R = random.Random(7)
sys.set_int_max_str_digits(0)


def enc(v):
    if v is None or isinstance(v, (bool, str)):
        return v
    if isinstance(v, int):
        return {"int": str(v)}
    if isinstance(v, float):
        return {"float": repr(v)}
    if isinstance(v, (list, tuple)):
        return [enc(x) for x in v]
    return {"dict": [[k, enc(x)] for k, x in v.items()]}


def emit(kind, args, f):
    row = {"k": kind, "a": [enc(a) for a in args]}
    try:
        v = f()
        if isinstance(v, complex):
            return
        row["r"] = enc(v)
    except Exception as e:
        row["e"] = type(e).__name__
        row["m"] = str(e)
    print(json.dumps(row, ensure_ascii=False))


NUMS = [0, 1, -1, 2, 3, -3, 7, 10, 255, -255, 65, 2**31, 2**53 + 1, 2**63 - 1, -2**63, 2**64, 10**25, -10**30, True, False,
        0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, 3.7, -3.7, 1e16, 1e15, 123456789012345680.0, 1e22, 1e-5, 1e-4, 0.0001234,
        1e300, -1e300, 5e-324, 0.1, 1/3, float("inf"), float("-inf"), float("nan"), 2.675, 1234567.891, 99999.5, 0.00001234]
SMALL = [0, 1, -1, 2, 3, 5, -2, 0.5, -0.5, 1.5, 10, 0.1, 3.3, True]
OPS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "%": lambda a, b: a % b}
for a, b in itertools.product(NUMS, NUMS):
    for op, f in OPS.items():
        if R.random() < 0.5:
            emit("arith", [op, a, b], lambda: f(a, b))
    for op, f in {"==": lambda: a == b, "<": lambda: a < b, ">=": lambda: a >= b}.items():
        if R.random() < 0.5:
            emit("compare", [op, a, b], f)
for a, b in itertools.product(NUMS + [1.1, 9.99, 1.0000001, 100.25], SMALL + [40, 100, -7, 20.25, 1/3]):
    emit("arith", ["**", a, b], lambda: a ** b)
for _ in range(300):
    a, b = round(R.uniform(0, 50), R.randint(0, 6)), round(R.uniform(-9, 9), R.randint(0, 6))
    emit("arith", ["**", a, b], lambda: a ** b)

STRINGS = ["", "a", "it's", 'say "x"', "both ' and \"", "tab\tnl\nret\rback\\", "\x00\x1f\x7f\x80\xa0\xad", "é€😀", "\u200b\u2028\ue000", "日本",
           "\u0378", "x" * 30, "a{b}c%", "ÿ"]
for v in NUMS + STRINGS:
    emit("repr", [v], lambda: repr(v))
    emit("str", [v], lambda: str(v))
for _ in range(400):
    v = R.choice([R.uniform(-1, 1) * 10 ** R.randint(-320, 308), R.uniform(-1e5, 1e5), float(R.randint(-10**18, 10**18)), round(R.uniform(0, 100), 2)])
    emit("repr", [v], lambda: repr(v))
for v in [[1, "a", True, 2.0, [], {}], {"a": [1.5, "it's"], "b'": {"c": False}}, [[["x"]]], {"é": "\n"}]:
    emit("repr", [v], lambda: repr(v))

FILL = ["", "", "", "*", "é", "0", "x", "{"]
for _ in range(6000):
    align = R.choice(["", "", "<", ">", "^", "="])
    spec = ((R.choice(FILL) if align else "") + align + R.choice(["", "", "", "+", "-", " "]) + R.choice(["", "", "", "", "z"]) +
            R.choice(["", "", "", "#"]) + R.choice(["", "", "0"]) + R.choice(["", "", "1", "5", "8", "12", "20", "25"]) +
            R.choice(["", "", "", ",", "_"]) + R.choice(["", "", ".0", ".1", ".2", ".3", ".10", "."]) +
            R.choice(["", "", "b", "c", "d", "o", "x", "X", "e", "E", "f", "F", "g", "G", "%", "s", "q", "n", "dd", "é"]))
    v = R.choice(NUMS + STRINGS) if R.random() < 0.8 else R.choice([R.uniform(-1e6, 1e6), R.randint(-10**12, 10**12), R.uniform(-1, 1) * 10 ** R.randint(-12, 20)])
    emit("format", [v, "", spec], lambda: format(v, spec))
for v in STRINGS + [1, 2.5, True, [1, "é"], {"é": 1}]:
    for conv in "rsa":
        for spec in ["", ">12", "^20.5", "<3"]:
            emit("format", [v, conv, spec], lambda: ("{!%s:%s}" % (conv, spec)).format(v))
for spec in ["5", "s", ""]:
    for v in [[1], {"a": 1}]:
        emit("format", [v, "", spec], lambda: format(v, spec))

CASTS = ["0", "5", " 42 ", "+7", "-8", "1_000", "1__0", "_1", "1_", "0x10", "007", "", " ", "1.5", "1e5", "-0", "٣٤", "١", "12\n", "\u00a05\u2003", "5a", "--5", "+-5", "- 5",
         "99999999999999999999999", "1.", ".5", ".", "1e", "1e+", "1_0.5_0", "1_.5", "1._5", "1e1_0", "inf", "-inf", "Infinity", "+iNf", "nan", "-nan", "infinit", "0b1", "1e400", "-1e400",
         "1e-400", "0x1p3", "½", "²", "1 2", "\x1c3\x1f", "+", "-", "e5", "1.5.5", "NaN()", "inf_", "9" * 4300, "9" * 4301]
sys.set_int_max_str_digits(4300)
for v in NUMS + CASTS + [[], [1], {}, {"a": 1}]:
    emit("cast", ["int", v], lambda: int(v))
    emit("cast", ["float", v], lambda: float(v))
    emit("cast", ["bool", v], lambda: bool(v))

for _ in range(3000):
    code = R.choice("diouxXeEfFgGcrsa%q")
    flags = "".join(R.sample("-+ #0", R.randint(0, 2)))
    fmt = "<%" + flags + R.choice(["", "", "1", "5", "10", "*"]) + R.choice(["", "", ".0", ".3", ".", ".*"]) + R.choice(["", "", "", "l"]) + code + ">"
    stars = fmt.count("*")
    v = R.choice(NUMS + STRINGS + [[1, 2]])
    args = tuple([R.choice([0, 3, 7, -6])] * stars + [v])
    if R.random() < 0.04:
        args += (1,)
    if R.random() < 0.04:
        args = args[:-1]
    emit("percent", [fmt, list(args)], lambda: fmt % args)
for fmt, args in [("%s", 1), ("%d%%", 5), ("%(a)s-%(b)05d", {"a": 1, "b": 2}), ("%(x)s", {}), ("%s", [1, 2]), ("%s %s", [1, 2]), ("none", 1), ("none", []), ("none", {}), ("%", 1),
                  ("%(a", {"a": 1}), ("%(a)s", 5), ("%(a)s %s", {"a": 1}), ("é%y", 1), ("%s", "x"), ("%(a(b))s", {"a(b)": 3})]:
    emit("percent1", [fmt, args], lambda: fmt % args)

for s in ["plain", r"a\nb", r"\x41\u00e9\U0001F600", r"\N{BULLET}\N{latin small letter a with acute}\N{CJK UNIFIED IDEOGRAPH-4E00}\N{HANGUL SYLLABLE GAG}\N{LINE FEED}",
          r"\101\0\7\777\18", r"\.\d\q", "a\\\nb", r"\x4", r"\u12", r"\U1234", r"\UFFFFFFFF", r"\N{NOPE NOPE}", r"\N{", r"\N", r"\Nx", "\\", r"\\\'\"\a\b\f\v\r\t", r"\xzz", r"\N{}",
          r"\N{HANGUL SYLLABLE HIH}", r"\N{HANGUL SYLLABLE A}", r"\N{DIGIT ONE}", r"\N{NBSP}", r"\N{ZWJ}"]:
    emit("unescape", [s], lambda: s.encode("latin-1").decode("unicode_escape"))

for s in ['1', '-0', '1.50', '1e3', '1E-2', '"a\\u00e9\\ud83d\\ude00\\n"', '[1, 2,  3]', '{"b": 1, "a": [true, false, null], "b": 2}', '', ' ', '[1,]', '[1 2]', '{"a" 1}', '{"a": }', "{'a': 1}", '{"a": 1,}',
          '"abc', '"a\nb"', '"\\q"', '"\\u12"', '1 2', 'nul', '[', '{', '01', '-', '+1', '.5', '1.', 'NaN', '-Infinity', '[1,\n x]', '99999999999999999999', '{"a": {"b": {}}}', '"\\/\\b\\f"', '[[[]]]', '"é', '{"a":1', '1.5e+']:
    emit("loads", [s], lambda: json.loads(s))
for v in [1, 1.0, 1e16, 1e-7, "é\n\"\\/\x7f\x01😀", [1, [2, {}], []], {"b": 1, "a": [None, True]}, None, float("inf"), float("nan"), 10**30]:
    emit("dumps", [v], lambda: json.dumps(v))
    emit("dumps4", [v], lambda: json.dumps(v, indent=4, sort_keys=True, ensure_ascii=False))

NAMES = ["", "0", "1", "2", "a", "d[k]", "d[x]", "l[0]", "l[9]", "l[-1]", "d[k][0]", "0.x", "9", "d[", "d]", "d[]", ".", "a.", "[0]", "l[0", "d[k]x", " a", "0[0]"]
FKW = {"a": "it's", "d": {"k": [1.5, "v"], "x": 2}, "l": [7, "z"], "w": 9}
for _ in range(2500):
    fmt = ""
    for _ in range(R.randint(1, 3)):
        field = R.choice(NAMES) + R.choice(["", "", "", "!r", "!s", "!a", "!x"]) + R.choice(["", "", "", ":", ":>8", ":{w}", ":>{w}", ":{}", ":{a}", ":d", ":05.1f", ":{{", ":{w!r}", ":{l[0]}"])
        fmt += R.choice(["", "x", "{{", "}}", "é", "{", "}"][: R.choice([5, 5, 5, 5, 7])]) + "{" + field + "}"
    emit("strformat", [fmt, [3, "pos", 2.5], FKW], lambda: fmt.format(3, "pos", 2.5, **FKW))
