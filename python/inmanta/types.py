"""Names for the shapes of data."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Callable, NewType, Optional, Union
from uuid import UUID

ResourceIdStr = NewType("ResourceIdStr", str)
ResourceVersionIdStr = NewType("ResourceVersionIdStr", str)
ResourceType = NewType("ResourceType", str)

StrictNonIntBool = bool
PrimitiveTypes = Optional[Union[UUID, bool, int, float, datetime.datetime, str]]
SimpleTypes = Union["BaseModel", PrimitiveTypes, enum.Enum]
JsonType = dict[str, Any]
StrictJson = Union[dict[str, Any], list[Any], str, int, float, bool, None]
ReturnTupple = tuple[int, Optional[JsonType]]
ReturnTypes = Any
ReturnValueType = Any
ArgumentTypes = Any
MethodReturn = Any
MethodType = Callable[..., MethodReturn]
Apireturn = Any
Warnings = Optional[list[str]]
AsyncioGenerator = Coroutine[Any, Any, Any]
AsyncioCoroutine = Coroutine[Any, Any, Any]
PythonRegex = str


class BaseModel:
    """Stands for a model class in annotations when no pydantic is at hand."""


def issubclass_(sub: object, super_: Union[type, tuple[type, ...]]) -> bool:
    """issubclass for anything: what is not a class is no subclass."""
    return isinstance(sub, type) and issubclass(sub, super_)


def strict_json(value: object) -> bool:
    """Reports whether a value is made of what JSON knows."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and strict_json(v) for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return all(map(strict_json, value))
    return value is None or isinstance(value, (str, int, float, bool))
