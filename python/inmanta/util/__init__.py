"""Small things that modules import: hashes, JSON encoders, requirements, waiting for what is asynchronous."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import hashlib
import inspect
import os
import re
import sys
import threading
import uuid
from abc import ABC, abstractmethod
from collections import abc
from typing import Any, Awaitable, BinaryIO, Callable, Coroutine, Optional, TypeVar
from urllib.parse import ParseResult, SplitResult

from inmanta import const

T = TypeVar("T")

_CHUNK = 1 << 16


def _annotations_of(o: Any) -> dict[str, Any]:
    """Return the annotations of a class, without those of its bases, or of a function.

    Since Python 3.14 they are evaluated when they are asked for (PEP 649). A name that is not defined then stays a text, as it
    would be with ``from __future__ import annotations``.
    """
    if sys.version_info >= (3, 14):
        import annotationlib

        found = annotationlib.get_annotations(o, format=annotationlib.Format.FORWARDREF)
        return {n: a.__forward_arg__ if isinstance(a, annotationlib.ForwardRef) else a for n, a in found.items()}
    return dict(o.__dict__.get("__annotations__", {}) if isinstance(o, type) else getattr(o, "__annotations__", {}))


def _parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function; their annotations may name what is not defined."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return list(inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF).parameters.values())
    return list(inspect.signature(function).parameters.values())


def hash_file(content: bytes) -> str:
    """Return the SHA-1 of a content in hex: the name under which the server keeps it."""
    return hashlib.sha1(content).hexdigest()  # noqa: S324 - an address, not a seal


def hash_file_streaming(file_handle: BinaryIO) -> str:
    """Return the SHA-1 of what is left to read of a file, without having it in memory at once."""
    sum_ = hashlib.sha1()  # noqa: S324
    for chunk in iter(lambda: file_handle.read(_CHUNK), b""):
        sum_.update(chunk)
    return sum_.hexdigest()


def ensure_directory_exist(directory: str, *subdirs: str) -> str:
    """Make a directory, and directories in it, where they are missing; return the path of the innermost."""
    path = os.path.join(directory, *subdirs)
    os.makedirs(path, exist_ok=True)
    return path


class JSONSerializable(ABC):
    """A base for values that have their own JSON form."""

    @abstractmethod
    def json_serialization_step(self) -> Any:
        """Return the value in terms that JSON has."""


def _encode_datetime(value: datetime.datetime, naive_is_utc: bool, tz_aware: bool = True) -> str:
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc) if naive_is_utc else value.astimezone()
    if not tz_aware:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value.isoformat(timespec="microseconds")


def _encode(o: object, naive_is_utc: bool, tz_aware: bool = True) -> Any:
    """Return what JSON has for a value that the module json does not know; TypeError when there is nothing."""
    step = getattr(o, "json_serialization_step", None)
    if callable(step):
        return step()
    if isinstance(o, datetime.datetime):
        return _encode_datetime(o, naive_is_utc, tz_aware)
    if isinstance(o, (uuid.UUID, ParseResult, SplitResult)):
        return o.geturl() if not isinstance(o, uuid.UUID) else str(o)
    to_dict = getattr(o, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    if isinstance(o, enum.Enum):
        return o.name
    if isinstance(o, Exception):
        return str(o)
    dump = getattr(o, "model_dump", None)
    if callable(dump):
        return dump(by_alias=True)
    if type(o).__module__.startswith(("pydantic.", "pydantic_core.")):
        return str(o)  # its URLs, and its secrets, which hide themselves
    if dataclasses.is_dataclass(o) and not isinstance(o, type):
        return {f.name: getattr(o, f.name) for f in dataclasses.fields(o)}
    if type(o).__name__ == "Unknown" and type(o).__module__.startswith("inmanta."):
        return const.UNKNOWN_STRING
    if isinstance(o, abc.Mapping):
        return {key: o[key] for key in o}
    if isinstance(o, abc.Sequence) and not isinstance(o, (str, bytes, bytearray)):
        return list(o)
    raise TypeError(f"{o!r} is not JSON serializable")


def internal_json_encoder(o: object) -> Any:
    """Encode for our own use: a time without a zone is local."""
    return _encode(o, naive_is_utc=False)


def api_boundary_json_encoder(o: object, tz_aware: bool = True) -> Any:
    """Encode for the API: a time without a zone is UTC. With tz_aware=False times are written in UTC without their zone."""
    return _encode(o, naive_is_utc=True, tz_aware=tz_aware)


_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?\s*(.*?)\s*$", re.DOTALL)


class Requirement:
    """A requirement of PEP 508, where the package packaging is not at hand: name, extras, specifier, url and marker."""

    def __init__(self, requirement: str) -> None:
        text, _, marker = requirement.partition(";")
        m = _REQUIREMENT.match(text)
        if m is None:
            raise ValueError(f"Invalid requirement: {requirement!r}")
        rest = m.group(3).strip()
        self.name = m.group(1)
        self.extras = {e.strip() for e in (m.group(2) or "").split(",") if e.strip()}
        self.url: Optional[str] = rest[1:].strip() if rest.startswith("@") else None
        self.specifier = "" if self.url else rest.strip("() ")
        self.marker: Optional[str] = marker.strip() or None

    def __str__(self) -> str:
        text = self.name
        if self.extras:
            text += "[" + ",".join(sorted(self.extras)) + "]"
        if self.url:
            text += " @ " + self.url
        text += self.specifier
        if self.marker:
            text += ("; " if not self.url else " ; ") + self.marker
        return text

    def __repr__(self) -> str:
        return f"<Requirement({str(self)!r})>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirement) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_requirement(requirement: str) -> Any:
    """Parse a requirement: by the package packaging if it is installed, else by our own few lines."""
    try:
        from packaging.requirements import Requirement as Packaged
    except ImportError:
        return Requirement(requirement)
    return Packaged(requirement)


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


def coroutine_of(awaitable: Awaitable[T]) -> Coroutine[Any, Any, T]:
    """Make a coroutine of anything that can be awaited."""
    return _await(awaitable)


def run_in_thread(func: Callable[[], T], timeout: Optional[float] = None) -> T:
    """Run a function in a thread of its own and wait for it; its exception is raised here. TimeoutError when it takes too long."""
    outcome: list[Any] = []

    def body() -> None:
        try:
            outcome.append((True, func()))
        except BaseException as e:  # noqa: BLE001 - it is raised again by the caller's thread
            outcome.append((False, e))

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(timeout)
    if not outcome:
        raise TimeoutError(f"no answer within {timeout} seconds")
    ok, value = outcome[0]
    if not ok:
        raise value
    return value  # type: ignore[no-any-return]


def wait_sync(
    awaitable: Awaitable[T], *, timeout: Optional[float] = 120, ioloop: Optional[asyncio.AbstractEventLoop] = None
) -> T:
    """Wait for something asynchronous from code that is not, also from within a running event loop.

    It runs in ioloop, which another thread runs, or in a loop of its own. TimeoutError: it takes more than timeout seconds.
    """

    async def bounded() -> T:
        return await asyncio.wait_for(awaitable, timeout)

    if ioloop is not None:
        return asyncio.run_coroutine_threadsafe(bounded(), ioloop).result()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(bounded())
    return run_in_thread(lambda: asyncio.run(bounded()))
