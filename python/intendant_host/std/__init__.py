"""Stands for the Python code of the module std where that is part of the compiler.

Every plugin of it can be called as a function, with values of Python. The helpers that other modules use are here as well.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable

from inmanta.execute import runtime
from inmanta.module import Project
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


def determine_path(ctx: Context, module_dir: str, path: str) -> str:
    """The path on disk of a file in a directory of a module: ``module/file``, or ``./file`` for the calling module."""
    module, _, rest = path.partition("/")
    if module == ".":
        module = ctx.owner.namespace.get_full_name().partition("::")[0]
    project = Project.get()
    if module == "":
        return os.path.join(project.project_path, module_dir, rest)
    if module not in project.modules:
        raise Exception(f"Module {module} does not exist for path {path}")
    return os.path.join(project.modules[module].path, module_dir, rest)


def get_file_content(ctx: Context, module_dir: str, path: str) -> str:
    """The text of a file in a directory of a module."""
    return str(getattr(runtime.need_bridge(), "ask")("read", [module_dir, path])["v"])  # noqa: B009


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    if name.startswith("Jinja") or name in ("ResolverContext", "EmptyResolver"):
        return getattr(importlib.import_module(__name__ + ".jinja"), name)
    if name.endswith("Reference"):
        return getattr(importlib.import_module("intendant_host.standard"), name)
    return _built_in(_NAMES.get(name, name))
