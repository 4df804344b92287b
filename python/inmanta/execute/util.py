"""Values of the language that Python has no type for."""

from __future__ import annotations

from collections.abc import Iterator


class AnyType:
    """Base of values that every type accepts."""


class Unknown(AnyType):
    """A value that is not known yet.

    source is what will determine it: the proxy of a resource, the name of a parameter.
    """

    def __init__(self, source: object) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Unknown]:
        return iter([])

    def __repr__(self) -> str:
        return f"Unknown({self.source!r})"


class NoneValue:
    """The value null."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoneValue)

    def __hash__(self) -> int:
        return hash(None)

    def __str__(self) -> str:
        return "null"

    def __repr__(self) -> str:
        return "null"
