"""What the resources of the module unittest stand for: the state of each by its name."""

from __future__ import annotations

from typing import Union

DATA: dict[str, dict[str, Union[str, bool, float, int]]] = {}
