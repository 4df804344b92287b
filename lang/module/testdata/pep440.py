"""Writes pep440.txt: what the package "packaging" that pip carries makes of versions and constraints.

Run it with a Python that has pip: python3 pep440.py > pep440.txt
"""

import random

from pip._vendor.packaging.markers import InvalidMarker, Marker, UndefinedComparison
from pip._vendor.packaging.specifiers import InvalidSpecifier, SpecifierSet
from pip._vendor.packaging.version import InvalidVersion, Version

rng = random.Random(440)
PRE = ["", "a1", "b2", "rc1", ".dev3", "a1.dev2", "-alpha", "_beta.4", "c7", "preview", "PRE2"]
POST = ["", "", "", ".post1", "-2", "rev3", ".POST"]
LOCAL = ["", "", "", "+ubuntu.1", "+1.10", "+1.9", "+abc-5"]
RELEASES = ["1", "1.0", "1.0.0", "1.1", "1.2", "1.2.0", "1.2.3", "1.10", "2", "2.0.1", "2!0.5", "0.0", "8.7.5", "2024.11.21"]


def version():
    while True:
        text = rng.choice(["", "", "", "v"]) + rng.choice(RELEASES) + rng.choice(PRE) + rng.choice(POST)
        if "dev" not in text and rng.random() < 0.1:
            text += ".dev9"
        text += rng.choice(LOCAL)
        try:
            Version(text)
            return text
        except InvalidVersion:
            continue


def clause():
    op = rng.choice(["==", "==", "!=", "<", "<=", ">", ">=", "~=", "~=", "==="])
    base = rng.choice(RELEASES)
    shape = rng.random()
    if op in ("==", "!=") and shape < 0.4:
        return op + base + rng.choice(["", "", "a1", ".post1"]) + ".*"
    if shape < 0.8:
        return op + base
    # The package takes ~= apart as text, so that other spellings than the normal one get another meaning there.
    return op + (str(Version(version())) if op == "~=" else version())


versions = sorted({version() for _ in range(110)}, key=lambda v: (Version(v), v))
print("# versions in ascending order, in their normal form; = before one that equals the one above")
last = None
for v in versions:
    mark = "=" if last is not None and Version(v) == Version(last) else " "
    print("V%s\t%s\t%s" % (mark, v, Version(v)))
    last = v
print("# no versions")
for v in ["", "one", "1.", "1..2", "1.0+", "1.0+a_", "1.0a1b2", "1 .0", "1.0.x", "==1.0", "1.0-dev-post", "v", "1.0+-a", "1.0--1"]:
    try:
        Version(v)
        raise AssertionError(v)
    except InvalidVersion:
        print("N\t" + v)
print("# constraints: for each version above whether it matches, pre-releases left out and let in")
for _ in range(260):
    text = ",".join(clause() for _ in range(rng.choice([1, 1, 1, 2, 3])))
    try:
        spec = SpecifierSet(text)
        row = "".join("01"[spec.contains(v)] for v in versions) + "\t" + "".join("01"[spec.contains(v, prereleases=True)] for v in versions)
    except (InvalidSpecifier, InvalidVersion):
        print("X\t" + text)
        continue
    print("C\t%s\t%s" % (text, row))
print("# markers under two Pythons")
ENVS = [
    {"python_version": "3.9", "python_full_version": "3.9.18", "sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64",
     "implementation_name": "cpython", "platform_system": "Linux", "platform_python_implementation": "CPython", "extra": ""},
    {"python_version": "3.12", "python_full_version": "3.12.1", "sys_platform": "linux", "os_name": "posix", "platform_machine": "aarch64",
     "implementation_name": "cpython", "platform_system": "Linux", "platform_python_implementation": "CPython", "extra": "test"},
]
for text in [
    "python_version < '3.10'", "python_version >= \"3.10\"", "python_full_version == '3.12.*'", "sys_platform == 'win32'",
    "sys_platform != 'win32' and python_version>='3'", "os_name=='nt' or os_name=='posix'", "extra == 'test'", "extra == 'Test'",
    "python_version in '3.8 3.9'", "python_version not in '3.8 3.9'", "(python_version < '3.10' or extra == 'test') and platform_machine == 'aarch64'",
    "'linux' in sys_platform", "platform_machine > 'a'", "implementation_name == 'cpython' and (extra == 'docs')", "python_version ~= '3.9'",
    "python_version", "python_version <", "python_version < 3", "nothing == 'x'", "(python_version < '3'", "python_version < '3' or", "os_name ~= 'posix'",
    "os_name == 'posix' xor", "",
]:
    try:
        marker = Marker(text)
        print("M\t%s\t%s" % (text, "".join("01"[marker.evaluate(e)] for e in ENVS)))
    except (InvalidMarker, UndefinedComparison) as e:
        print(("U" if isinstance(e, UndefinedComparison) else "Y") + "\t" + text)
