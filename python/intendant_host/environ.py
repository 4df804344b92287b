"""Notes which environment variables the code of modules reads: they are inputs of the compile."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

_read: set[str] = set()
_pending: list[str] = []
_walked: list[str] = []  # the names of a walk through all of it, and how many of them were read after it in their order
_followed = 0
_PASSED_ON = ("os", "_collections_abc", "collections.abc", __name__)


class _Environ(os._Environ):  # type: ignore[type-arg]
    """The environment, which tells what is read of it."""

    def __getitem__(self, key: Any) -> Any:
        _note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        _note(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[Any]:
        # Who copies all of it hands it on to another program, or shows it: that is no reading of one variable. A copy asks for the
        # names, then for the value of each.
        global _followed
        _settle()
        _walked[:], _followed = list(super().__iter__()), 0
        return iter(_walked[:])


def _note(name: object) -> None:
    """Notes a variable if it is the code of a module that asks, not a library that serves it."""
    global _followed
    if not isinstance(name, str):
        return
    if _followed < len(_walked) and _walked[_followed] == name:
        _followed += 1
        return
    _settle()
    if name in _read:
        return
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in _PASSED_ON and frame.f_back is not None:
        frame = frame.f_back
    if str(frame.f_globals.get("__name__", "")).startswith("inmanta_plugins"):
        _add(name)


def _add(name: str) -> None:
    if name not in _read:
        _read.add(name)
        _pending.append(name)


def _settle() -> None:
    """Notes what was read behind a walk after all, if that did not go to its end."""
    global _followed
    if _followed < len(_walked):
        for name in _walked[:_followed]:
            _add(name)
    _walked.clear()
    _followed = 0


def watch() -> None:
    """Begins to note what is read, anew for each compile in this process."""
    _walked.clear()
    _read.clear()
    _pending.clear()
    os.environ.__class__ = _Environ


def taken() -> list[str]:
    """The variables that were read since this was asked last."""
    _settle()
    names = _pending[:]
    del _pending[: len(names)]
    return names
