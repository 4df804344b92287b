"""Paths into dicts: what they mean, how they are written, how they fail."""

from inmanta.util.dict_path import (
    ContainerStructureException,
    InDict,
    InvalidPathException,
    KeyedList,
    NormalValue,
    NullValue,
    WildCardValue,
    WildKeyedList,
    to_path,
    to_wild_path,
)


def fails(kind, f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except kind:
        return
    raise AssertionError(f"{f} did not raise {kind}")


# Writing.
for text, shown in {
    "a": "a", "a.b": "a.b", ".": ".", ".a": "a", "a[k=v]": "a[k=v]", "a[k=v][l=w].c": "a[k=v][l=w].c", r"a[k=\0]": r"a[k=\0]",
    r"a\.b.c": r"a\.b.c", r"a\*b": r"a\*b", "a b-c_d": "a b-c_d", "a[k=1.2].b": r"a[k=1\.2].b", "a[k=].b": "a[k=].b",
}.items():  # fmt: skip
    assert str(to_path(text)) == shown, (text, str(to_path(text)))
for text in ("", "a[k]", "[k=v]", "a[k=v]x", "a]", "a=b", "a.*", "a[0]"):
    fails(InvalidPathException, to_path, text)
assert InDict("a.b").to_str() == r"a\.b" and KeyedList("a", [("k", "a]b")]).to_str() == r"a[k=a\]b]"
assert KeyedList("a", "k", "v") == KeyedList("a", [("k", "v")]) and WildKeyedList("a", [("k", "*")]).to_str() == "a[k=*]"
assert KeyedList("a", [("k", r"\0")]).get_key_value_pairs() == [("k", None)]
fails(ValueError, InDict, "*")
assert InDict.parse("a.b") is None and str(InDict.parse("a")) == "a" and str(KeyedList.parse("a[k=v]")) == "a[k=v]"
assert str(to_path("a") + to_path("b[c=d]")) == "a.b[c=d]" and str(to_path(".") + to_path("b")) == "b"
fails(TypeError, lambda: to_path("a") + to_wild_path("*"))
assert [s.get_key() for s in to_path("a.b[c=d]").get_path_sections()] == ["a", "b"]

# Reading.
read = lambda path, container, **k: to_path(path).get_element(container, **k)  # noqa: E731
assert read("a.b", {"a": {"b": 1}}) == 1 and read(".", {"x": 1}) == {"x": 1}
for path, container in (("a.b", {"a": {}}), ("a.b", {}), ("a.b", {"a": 3}), ("a[k=v]", {"a": [{"k": "w"}]}), ("a[k=true]", {"a": [{"k": True}]})):
    fails(KeyError, read, path, container)
fails(KeyError, read, "a[k=v]", {"a": [{"k": "v"}, {"k": "v"}]})
fails(ContainerStructureException, InDict("x").get_element, 3)
assert read("a[k=v]", {"a": [{"k": "v", "x": 1}, 3]}) == {"k": "v", "x": 1}
assert read("a[k=1]", {"a": [{"k": 1.0}]}) == {"k": 1.0} and read(r"a[k=\0]", {"a": [{"k": None}]}) == {"k": None}
made = {}
assert read("a.b", made, construct=True) == {} and made == {"a": {"b": {}}}
assert to_path("a.b").get_elements({"a": {"b": None}}) == [None] and to_path("a.b").get_elements({}) == []

# Writing into containers.
for path, container, value, after in (
    ("a.b", {}, 1, {"a": {"b": 1}}),
    ("a[k=v]", {"a": [{"k": "v", "o": 1}]}, {"k": "v", "x": 2}, {"a": [{"k": "v", "x": 2}]}),
    ("a[k=v].x", {}, 5, {"a": [{"k": "v", "x": 5}]}),
    (r"a[k=\0].x", {}, 5, {"a": [{"k": None, "x": 5}]}),
    (".", {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
):
    to_path(path).set_element(container, value)
    assert container == after, (path, container)
fails(KeyError, to_path("a.b").set_element, {}, 1, construct=False)
fails(ContainerStructureException, to_path("a.b").set_element, {"a": 3}, 1)
fails(ContainerStructureException, to_path(".").set_element, {"a": 3}, 1)
for path, container, after in (
    ("a.b", {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
    ("a.b", {}, {}),
    ("a[k=v]", {"a": [{"k": "v"}, {"k": "w"}, {"k": "v"}]}, {"a": [{"k": "w"}]}),
    ("a[k=v].x", {"a": [{"k": "v", "x": 1}]}, {"a": [{"k": "v"}]}),
):
    to_path(path).remove(container)
    assert container == after, (path, container)
fails(NotImplementedError, to_path(".").remove, {})

# Wildcards.
assert to_wild_path("a.*.b").get_elements({"a": {"x": {"b": 1}, "y": {}}}) == [1]
assert to_wild_path("a[*=1]").get_elements({"a": [{"k": 1}, {"j": 1}, {"z": 2}]}) == [{"k": 1}, {"j": 1}]
fails(ContainerStructureException, to_wild_path("a.*").get_elements, {"a": 3})
resolved = to_wild_path("a[k=*].c").resolve_wild_cards({"a": [{"k": 1, "c": 2}, {"k": "q", "c": 2}, {"j": 2}]})
assert [str(p) for p in resolved] == ["a[k=1].c", "a[k=q].c"]
assert [str(p) for p in to_wild_path("*").resolve_wild_cards({"a.b": 1})] == [r"a\.b"]
fails(NotImplementedError, to_wild_path("a[*=*]").resolve_wild_cards, {"a": [{"k": 1}]})
assert NormalValue("1.0").matches(1) and not NormalValue("1").matches("1.0") and not NormalValue("x").matches(None)
assert NullValue().matches(None) and WildCardValue().matches(None) and NormalValue("a.b").escape() == r"a\.b"
