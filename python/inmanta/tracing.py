"""Tracing hooks that modules may import; they record nothing: traces of handlers begin at the server."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Callable, ContextManager, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

enabled = False
"""Whether anything is recorded: never."""


def configure_logfire(service: str) -> None:
    """Takes no notice."""


def enable() -> None:
    """Takes no notice."""


class NoopSpan:
    """A span that records nothing; every attribute of it is a method that does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None

    def __enter__(self) -> NoopSpan:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def is_recording(self) -> bool:
        """Always False."""
        return False


def span(*args: Any, **kwargs: Any) -> NoopSpan:
    """A span around a with statement."""
    return NoopSpan()


def instrument(*args: Any, **kwargs: Any) -> Callable[[F], F]:
    """A decorator that returns the function as it is."""
    return lambda function: function


def get_context() -> Mapping[str, Any]:
    """What attach_context takes elsewhere: nothing."""
    return {}


def attach_context(carrier: Mapping[str, Any]) -> ContextManager[None]:
    """A context manager that does nothing."""
    return contextlib.nullcontext()
