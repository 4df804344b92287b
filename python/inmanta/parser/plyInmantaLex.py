"""What names look like, for generators of models."""

from __future__ import annotations

_KEYWORDS = (
    "typedef as entity extends end in implementation for matching index implement using when and or not true false import is defined dict "
    "null undef parents if else elif"
)

keyworldlist: list[str] = _KEYWORDS.split()
"""The words that can not be names."""

reserved: dict[str, str] = {word: word.upper() for word in keyworldlist}
"""The same with the tokens that they are."""


def t_ID(t: object) -> object:  # noqa: N802 - the name that generators ask for
    return t


t_ID.__doc__ = r"[a-zA-Z_][a-zA-Z_0-9-]*"  # the pattern of a name is what they read
