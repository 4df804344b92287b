"""Writes python.jsonl: what Python's re makes of patterns and texts.

Run it with Python 3.11 or later: python3 -W ignore python.py > python.jsonl
"""
import json
import random
import re

R = random.Random(11)


def spans(m):
    return None if m is None else [list(m.span(g)) for g in range(m.re.groups + 1)]


def emit(pattern, texts, flags=""):
    f = 0
    for c in flags:
        f |= {"i": re.I, "m": re.M, "s": re.S, "x": re.X, "a": re.A}[c]
    row = {"p": pattern, "f": flags}
    try:
        r = re.compile(pattern, f)
    except (re.error, OverflowError) as e:
        row["e"] = str(e)
        print(json.dumps(row, ensure_ascii=False))
        return
    row["t"] = [[t, spans(r.match(t)), spans(r.search(t)), spans(r.fullmatch(t))] for t in texts]
    print(json.dumps(row, ensure_ascii=False))


CURATED = [
    (r"^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$", ["a.b-c", "a..b", "", "host\n", "host\n\n", "é.b"]),
    (r"^$", ["", "\n", "\n\n", "a"]), (r"a$", ["a", "a\n", "a\nb", "ba\n"]), (r"(a$)", ["a\n"]), (r"a$\n", ["a\n", "a"]), (r"(?m)^b$", ["a\nb\nc", "b"]),
    (r"\d+", ["12", "٣٤x", "½"]), (r"(?a)\d+", ["12", "٣٤"]), (r"\w+", ["aé_1²٣", "-"]), (r"\s*x", [" \u00a0\x1c\u2003x"]), (r"[^\W\d_]+", ["abc1", "é_"]),
    (r"(?i)straße", ["STRASSE", "Straße", "STRAßE"]), (r"(?i)k", ["K", "\u212a"]), (r"(?i:a)b", ["Ab", "AB"]), (r"[\W]", ["a-"]), (r"[\S\s]", ["\n"]), (r"[\D]x", ["ax", "1x"]),
    (r"(?P<a>x)(?P=a)", ["xx", "xy"]), (r"(a)|b\1", ["ba", "a"]), (r"(a)?b\1", ["b", "aba"]), (r"(?:(a)|b)*\1", ["aba", "ab"]), (r"(a)(?(1)b|c)", ["ab", "ac"]), (r"(a)?(?(1)b|c)", ["c", "ab", "b"]),
    (r"(?=a)a", ["a", "b"]), (r"(?!a).", ["b", "a"]), (r"(?<=a)b", ["ab", "b"]), (r"(?<!a)b", ["ab", "cb"]), (r"(?=(a+))\1b", ["aaab"]), (r"(?>a+)b", ["aaab"]), (r"(?>a+)ab", ["aaab"]), (r"a++b", ["aab"]),
    (r"a*+a", ["aaa"]), (r"(?:ab?)++b", ["abab", "ab"]), (r"a{2}", ["aaa"]), (r"a{,2}b", ["aab", "b"]), (r"a{2,}?b", ["aaab"]), (r"a{}", ["a{}"]), (r"a{x}", ["a{x}"]), (r"a{1", ["a{1"]), (r"a{,}", ["aaa"]),
    (r"(a*)*", ["aaa", "b"]), (r"(a*)+", ["aa"]), (r"(a|b*)*", ["abba"]), (r"(|a)*", ["aa"]), (r"(|a)+", ["aa"]), (r"(a??)*?b", ["aab"]), (r"(?:a|b)*?c", ["abac"]), (r"((a)|b)*", ["ab"]), (r"(x?)?", [""]), (r"(x)?", [""]),
    (r"\bfoo\b", ["foo bar", "xfoo", "foo"]), (r"\Bo", ["foo", "o"]), (r"\B", [""]), (r"\b", ["", "a"]), (r"\Aa\Z", ["a", "a\n"]), (r"x*", ["xx", ""]), (r"(?s).", ["\n"]), (r".", ["\n", "😀"]),
    (r"(?x) a # c" + "\n" + r" b\ c [ ]", ["ab c "]), (r"\x41\u00e9\U0001F600\N{BULLET}", ["Aé😀•"]), (r"\101\0", ["A\0"]), (r"[\101-\103]", ["B"]), (r"[]a]", ["]"]), (r"[^]a]", ["]", "b"]), (r"[a-]", ["-"]), (r"[-a]", ["-"]), (r"[a\-z]", ["-", "b"]),
    (r"[\w-]+", ["a-b"]), (r"(?i)[a-z]+", ["AbC\u0130\u017f"]), (r"(?i)[^a]", ["A", "b"]), (r"(?ai)[k]", ["\u212a"]), (r"(?-i:a)", ["A"]), (r"(?i)a(?-i:b)c", ["AbC", "ABC"]), (r"(?u)\w", ["é"]), (r"(?m:^a)", ["b\na"]),
    (r"(a+)+$", ["aaaaaaaaab"]), (r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$", ["1.2.3.4", "1.2.3", "256.1.1.1"]), (r"(?P<y>\d{4})-(?P<m>\d\d)", ["2024-05"]), (r"\\", ["\\"]), (r"\/", ["/"]), (r"\-\ \#\&\~", ["- #&~"]), (r"a{0}b", ["b"]),
    (r"a{1001}", ["a" * 1001, "a" * 1000]), (r"(?:){5}", [""]), (r"(?#comment)a", ["a"]), (r"a(?#x)*", ["aa"]), (r"(?:a)(?i:b)", ["aB"]), (r"(?<=(?:ab|cd))e", ["abe", "cde"]), (r"(?<=a{2})b", ["aab"]), (r"(?<=^)a", ["a"]), (r"(?<!^)a", ["aa"]),
]
for p, texts in CURATED:
    emit(p, texts)

BAD = ["*", "+a", "a**", "a+*", "a???", "(", "(a", ")", "a)", "[", "[a", "[z-a]", r"[\d-a]", r"[a-\d]", "\\", r"\q", r"\y", r"\x4", r"\u12", r"\U0011FFFF", r"\1", r"(a\1)", r"(?P<n>a\1)", "(?P<n>a)(?P<n>b)", "(?P<>a)", "(?P<1>a)",
       "(?P<a", "(?P<a b>x)", "(?P=n)", "(?P=", "(?Px)", "(?P", "(?", "(?z)", "(?<x)", "(?<", "(?<=a+)b", "(?<!a|bc)", "a{3,2}", "a{99999999999}", "a(?i)b", "(?iz)", "(?i", "(?i-", "(?i-i:a)", "(?au)a", "(?a-a:b)", "(?L)a", "(?i-z:a)", "(?-:a)",
       "(?(1)a", "(?(2)a)", "(?(0)a)", "(?(x)a)", "(a)(?(1)a|b|c)", "(?(", "(?()a)", "(?#", r"\N{NOPE}", r"\N", r"\N{", r"\N{}", r"[\N{X}]", r"\400", r"[\400]", r"[\q]", "|*", "(|*)", "^*", r"\A*", "$*", r"\b*", r"(?:)*", "()*", "(?=a)*", "(?i)*",
       "a|*b", "(?:*a)", "x{2}{3}", "x{2}+", "x{2}?", "x{2}+?", "(?<=(a)\\1)b", "(a)(?<=\\1)b", "(?P<é>x)", "(?P<a>x)(?P=a b)", "[a-", "[a-\\", "[[a]", "(?<=a)(?<b)", "(?:a", "(?>a", "(?=a", r"\08", r"\18", r"(a)\18", "(?P<x>", "a{1,2", "(((((a)))))"]
for p in BAD:
    emit(p, ["", "a", "aa", "ab", "aaa"])
emit("(a\n(b\n*)", [])
emit("a\nb\n(", [])


def atom(depth, groups):
    k = R.random()
    if k < 0.45 or depth > 3:
        return R.choice(["a", "b", "c", "é", ".", r"\d", r"\w", r"\s", r"\W", "[ab]", "[^a]", r"[\wé]", "[a-c]", "1", "-", r"\n", "A", "[^\\W_]", r"\.", "[b\n]"])
    if k < 0.65:
        groups[0] += 1
        mine = alt(depth + 1, groups)
        return "(" + mine + ")"
    if k < 0.75:
        return "(?:" + alt(depth + 1, groups) + ")"
    if k < 0.80:
        return R.choice(["(?=", "(?!"]) + alt(depth + 1, groups) + ")"
    if k < 0.83:
        return R.choice(["(?<=", "(?<!"]) + R.choice(["a", "b", "[ab]c", "", "a|b", r"\w\w"]) + ")"
    if k < 0.86:
        return "(?>" + alt(depth + 1, groups) + ")"
    if k < 0.90 and groups[0]:
        return "\\%d" % R.randint(1, groups[0])
    if k < 0.95:
        return R.choice(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
    return R.choice(["(?i:", "(?s:", "(?m:", "(?-i:"]) + alt(depth + 1, groups) + ")"


def piece(depth, groups):
    a = atom(depth, groups)
    k = R.random()
    if k < 0.6:
        return a
    return a + R.choice(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}"]) + R.choice(["", "", "", "?", "+"])


def alt(depth, groups):
    return "|".join("".join(piece(depth, groups) for _ in range(R.choice([0, 1, 1, 2, 2, 3]))) for _ in range(R.choice([1, 1, 1, 2])))


made = 0
while made < 3000:
    p = alt(0, [0])
    if not p or len(p) > 60:
        continue
    made += 1
    if p.startswith(r"(|(?!c([\wé]{1,}(\w{,2}"):
        continue  # Python forgets that the group took an empty round after one that was retried
    texts = ["".join(R.choice("aaabbbccé1- \nA_.") for _ in range(R.randint(0, 7))) for _ in range(5)]
    emit(p, texts, R.choice(["", "", "", "", "i", "m", "s", "a", "im"]))
