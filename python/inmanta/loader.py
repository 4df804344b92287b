"""Imports of the Python code of modules."""

from __future__ import annotations

import importlib
import sys
from typing import Optional

from inmanta import const


def unload_inmanta_plugins(inmanta_module: Optional[str] = None) -> None:
    """Makes the Python code of a module, or of all modules, be imported anew."""
    top = const.PLUGINS_PACKAGE if inmanta_module is None else f"{const.PLUGINS_PACKAGE}.{inmanta_module}"
    for name in [m for m in sys.modules if m == top or m.startswith(top + ".")]:
        del sys.modules[name]
    importlib.invalidate_caches()
