"""Where this interpreter has modules, for the compiler."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from intendant_host.loading import package_directories


def placement(modules: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """What ``intendant compile --modules`` reads: given modules, and those that are installed, editable ones as checkouts."""
    placed = {m["name"]: m for m in modules}
    sites = []
    for packages in package_directories():
        top = os.path.dirname(packages)
        names = [d for d in sorted(os.listdir(packages)) if os.path.isdir(os.path.join(packages, d)) and d[0] not in "._"]
        if os.path.isdir(os.path.join(top, "model")) and len(names) == 1:
            placed.setdefault(names[0], {"name": names[0], "version": "", "layout": "v2", "dir": top})
        else:
            sites.append(top)
    return {"modules": list(placed.values()), "sites": sites}
