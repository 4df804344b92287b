"""What modules see of the compiler."""

from __future__ import annotations

import logging
from typing import Any, Callable, ClassVar, TypeVar

LOGGER = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


class Finalizers:
    """The functions that run when a compile ends."""

    __finalizers: ClassVar[list[Callable[[], Any]]] = []

    @classmethod
    def add_function(cls, fnc: Callable[[], Any]) -> None:
        """Registers a function."""
        cls.__finalizers.append(fnc)

    @classmethod
    def get_functions(cls) -> list[Callable[[], Any]]:
        """The registered functions, in order."""
        return list(cls.__finalizers)

    @classmethod
    def reset_finalizers(cls) -> None:
        """Forgets all functions."""
        cls.__finalizers = []

    @classmethod
    def call_finalizers(cls, should_log: bool = False) -> None:
        """Runs the functions; all of them, also when one fails. Raises the first exception, or logs each with should_log."""
        first = None
        for fnc in cls.__finalizers:
            try:
                fnc()
            except Exception as e:
                if should_log:
                    LOGGER.exception("Finalizer function %s failed", fnc)
                else:
                    first = first or e
        if first is not None:
            raise first


def finalizer(fnc: F) -> F:
    """Registers a function without arguments that runs when a compile ends, also when that failed."""
    Finalizers.add_function(fnc)
    return fnc
