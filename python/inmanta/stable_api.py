"""Marks what modules may rely on."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def stable_api(api_element: T) -> T:
    """Returns what it is given: the mark is for readers."""
    return api_element
