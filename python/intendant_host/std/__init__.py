"""Stands for the Python code of the module std where that is part of the compiler: every plugin of it can be called as a function."""

from __future__ import annotations

from typing import Any, Callable

from inmanta.execute import runtime
from inmanta.plugins import Context


def _built_in(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [a for a in args if not isinstance(a, Context)]
        named = {k: v for k, v in kwargs.items() if not isinstance(v, Context)}
        return getattr(runtime.need_bridge(), "built_in")("std::" + name, given, named)  # noqa: B009

    call.__name__ = name
    return call


# Functions whose name in Python differs from that in models.
_NAMES = {"printf": "print", "assert_function": "assert", "list_len": "len", "getattribute": "getattr"}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return _built_in(_NAMES.get(name, name))
