"""Pairs dataclasses of the model with those of Python: entities that extend std::Dataclass with frozen classes of the same name."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from typing import Any, Optional

from inmanta import ast, plugins, references, util

PACKAGE = "inmanta_plugins"
_PRIMITIVE = {"string", "int", "float", "number", "bool", "list", "dict"}


def class_of_entity(name: str) -> Any:
    """What a Python module has under the name of an entity; None when there is nothing."""
    *space, last = name.split("::")
    return getattr(sys.modules.get(".".join([PACKAGE, *space])), last, None)


def dataclass_of_entity(name: str) -> type:
    """The dataclass that is paired with an entity by its name; raises an exception for the model when there is none."""
    found = class_of_entity(name)
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        where = ".".join([PACKAGE, *name.split("::")])
        raise ast.RuntimeException(None, f"The dataclass {name} defined in the model has no corresponding Python dataclass {where}")
    return found


def pair(name: str, attributes: list[list[str]]) -> dict[str, Any]:
    """Compares an entity, with its attributes and their types, with the class of its name."""
    found = class_of_entity(name)
    if found is None:
        return {"paired": False, "at": None, "faults": []}
    where = ".".join([PACKAGE, *name.split("::")])
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        return {"paired": False, "at": _place(found), "faults": [f"the Python object {where} is not a dataclass"]}
    return {"paired": True, "at": _place(found), "faults": _compare(found, dict(attributes))}


def _place(found: Any) -> Optional[list[Any]]:
    try:
        return [inspect.getsourcefile(found), inspect.getsourcelines(found)[1]]
    except (OSError, TypeError):
        return None


def _compare(cls: Any, attributes: dict[str, str]) -> list[str]:
    if not cls.__dataclass_params__.frozen:
        return ["the Python dataclass is not frozen: decorate it with @dataclass(frozen=True)"]
    hints = hints_of(cls)
    fields = {f.name for f in dataclasses.fields(cls)}
    faults = []
    for name, kind in attributes.items():
        if not _is_primitive(kind):
            faults.append(f"the attribute {name} is of type {kind}, which is not primitive")
        elif name not in fields:
            faults.append(f"the attribute {name} has no counterpart in Python: there is no field of that name")
        else:
            hint = hints.get(name, Any)
            given = None if isinstance(hint, str) else _text(hint)
            # A name that is not defined while it runs, as those that only type checkers import, says nothing.
            if not isinstance(hint, str) and (given is None or not corresponds(kind, given)):
                faults.append(f"the attribute {name} is of type {kind}, the field in Python of another: {hints.get(name)}")
    return faults + [f"the field {name} does not exist in the model" for name in sorted(fields - set(attributes))]


def _is_primitive(kind: str) -> bool:
    return kind.removesuffix("?").removesuffix("[]") in _PRIMITIVE


def _text(hint: Any) -> Optional[str]:
    try:
        return plugins.text_of(hint)
    except ast.RuntimeException:
        return None


def corresponds(model: str, given: str) -> bool:
    """Reports whether a field may have a type, in the notation of the compiler, given the type of the attribute in the model.

    They are the same type; a field may be any, and may allow references to the type besides.
    """
    if given == "any":
        return True
    if model.endswith("?"):
        return given.endswith("?") and corresponds(model[:-1], given[:-1])
    plain = _without_reference(given)
    if plain is None:
        return False
    if plain == "any" or model == plain:
        return model != "list" or plain == "any"  # a list of Python has to say of what
    if model == "number":
        return plain in ("int", "float")
    if model == "list":
        return plain.endswith("[]")
    if model == "dict":
        return plain.startswith("dict[") and plain.endswith("]")
    return model.endswith("[]") and plain.endswith("[]") and corresponds(model[:-2], _bare(plain[:-2]))


def _alternatives(text: str) -> list[str]:
    """The members of a union, which may be unions in brackets themselves."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "|" and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _without_reference(given: str) -> Optional[str]:
    """A type without the reference to it that it allows; None when it allows another."""
    parts = _alternatives(given)
    if len(parts) == 1:
        return None if given.startswith("Reference[") else given
    inner = [p[len("Reference[") : -1] for p in parts if p.startswith("Reference[") and p.endswith("]")]
    plain = [p for p in parts if not p.startswith("Reference[")]
    return plain[0] if len(parts) == 2 and len(inner) == 1 and inner == plain else None


def hints_of(cls: type) -> dict[str, Any]:
    """The types of a class's fields as far as they can be read."""
    try:
        return typing.get_type_hints(cls)
    except Exception:
        return {name: hint for base in reversed(cls.__mro__) for name, hint in util._annotations_of(base).items()}


def without_references(hint: Any) -> Any:
    """A type without the references that it allows besides."""
    args = typing.get_args(hint)
    if args and typing.get_origin(hint) in plugins._UNION_ORIGINS:
        rest = [
            a
            for a in args
            if not (isinstance(typing.get_origin(a) or a, type) and issubclass(typing.get_origin(a) or a, references.Reference))
        ]
        if len(rest) == 1:
            return rest[0]
        return typing.Union[tuple(rest)]
    return hint
