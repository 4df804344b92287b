"""Warnings that are shown to the user of a model."""

from __future__ import annotations

import warnings
from typing import Optional


class InmantaWarning(Warning):
    """Base class of the warnings that the compiler reports as diagnostics."""


def warn(warning: InmantaWarning, *, stacklevel: int = 2, source: Optional[object] = None) -> None:
    """Reports a warning."""
    warnings.warn(warning, stacklevel=stacklevel, source=source)
