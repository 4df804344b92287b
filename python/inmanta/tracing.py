"""Tracing hooks that modules may import; they do nothing."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def configure_logfire(service: str) -> None:
    """Takes no notice: traces begin at the server."""


class span:
    """A span that records nothing: a context manager and a decorator."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> span:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, fn: T) -> T:
        return fn


def no_method_instrumentation(fn: T) -> T:
    """Returns what it is given."""
    return fn
