"""Exceptions as the compiler is told of them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import traceback
from typing import Any, Optional

from inmanta import ast
from intendant_host import wire
from intendant_host.bridge import Waiter, host


def describe(exc: BaseException) -> dict[str, Any]:
    """An exception with what the compiler needs to know about it."""
    waiters = _waiters(exc)
    if waiters:  # no fault: nobody reads a text about it, and there are many
        return {"class": type(exc).__name__, "message": "", "traceback": "", "data": {"kind": "unset", "waiters": waiters}}
    out = wire.describe(exc)
    data: dict[str, Any] = {"kind": "other"}
    if isinstance(exc, ast.UnknownException):
        data = {"kind": "unknown"}
        with contextlib.suppress(Exception):
            data["value"] = host().encode(exc.unknown)
    elif isinstance(exc, ast.PluginException):
        data = {"kind": "plugin"}
        out["message"] = wire.shorten(str(exc.message))
    elif isinstance(exc, ast.OptionalValueException):
        data = {"kind": "optional"}
        out["message"] = exc.get_message()
    elif isinstance(exc, wire.RemoteError):
        out["class"] = exc.error_class or out["class"]
        data = {"kind": "plugin" if exc.error_class == "PluginException" else "other"}
    elif isinstance(exc, ast.CompilerException):
        data = {"kind": "type" if isinstance(exc, ast.PluginTypeException) else "compiler"}
        text = exc.format_trace()
        out["message"] = wire.shorten(text)
        cause = exc.__cause__
        if isinstance(exc, ast.ExplicitPluginException) and isinstance(cause, ast.PluginException):
            out["message"] = f"{exc.msg}\n{cause.message}"
    data["at"] = _at(exc)
    out["data"] = data
    module_name = type(exc).__module__
    data["class"] = type(exc).__qualname__ if module_name == "builtins" else f"{module_name}.{type(exc).__qualname__}"
    out["traceback"] = _author_trace(exc)
    return out


def _waiters(exc: BaseException) -> list[int]:
    """The numbers of what an exception says to wait for."""
    if isinstance(exc, ast.UnsetException):
        return [exc.instance.number] if isinstance(exc.instance, Waiter) else []
    if isinstance(exc, ast.MultiUnsetException):
        return [v.number for v in exc.result_variables if isinstance(v, Waiter)]
    return []


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _author_trace(exc: BaseException) -> str:
    """The traceback without the frames of this package and of Python's own importing."""
    try:
        trace = traceback.TracebackException(type(exc), exc, exc.__traceback__)
        part: Optional[traceback.TracebackException] = trace
        while part is not None:
            kept = [f for f in part.stack if not f.filename.startswith((_OWN, "<frozen importlib")) and f.filename != importlib.__file__]
            part.stack[:] = kept
            part = part.__cause__ or part.__context__
        text = "".join(trace.format())
    except Exception:
        return ""
    return text if len(text) < 1 << 15 else text[: 1 << 14] + "\n[...]\n" + text[-(1 << 14) :]


def _at(exc: BaseException) -> Optional[list[Any]]:
    """The innermost place in an author's file: [file, line]."""
    if isinstance(exc, SyntaxError) and exc.filename:
        return [exc.filename, exc.lineno or 1]
    found, in_module = None, False
    tb = exc.__traceback__
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if not file.startswith(_OWN) and not file.startswith("<frozen"):
            # The code of a module says more to its author than a library that it calls.
            module_code = str(tb.tb_frame.f_globals.get("__name__", "")).startswith("inmanta_plugins")
            if module_code or not in_module:
                found, in_module = [file, tb.tb_lineno], in_module or module_code
        tb = tb.tb_next
    return found
