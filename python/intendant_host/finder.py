"""Finds what stands for the Python code of the module std where that is part of the program."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from typing import Optional

PACKAGE = "inmanta_plugins"

STD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "std")
"""The directory of the stand-in."""


class StdFinder(importlib.abc.MetaPathFinder):
    """Finds the stand-in. It is asked last, so that an installed std is preferred."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname == PACKAGE:  # nothing is installed
            return importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        if fullname != PACKAGE + ".std":
            return None
        return importlib.util.spec_from_file_location(fullname, os.path.join(STD, "__init__.py"), submodule_search_locations=[STD])


def install() -> None:
    """Makes ``inmanta_plugins.std`` importable also where no std is installed. Its plugins can be called during a compile only."""
    if not any(isinstance(f, StdFinder) for f in sys.meta_path):
        sys.meta_path.append(StdFinder())
