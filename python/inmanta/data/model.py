"""The data of the API that modules use.

BaseModel is pydantic's where the module's environment has it. Elsewhere it is a small stand-in: fields by annotation, defaults,
model_dump and equality, without validation.
"""

from __future__ import annotations

import json
import typing
from typing import Any, Dict, List, Mapping, Optional

from inmanta import util

ResourceIdStr = str
ResourceVersionIdStr = str

_MISSING = object()

if typing.TYPE_CHECKING:

    class BaseModel:
        """See the module's text."""

        def __init__(self, **values: Any) -> None: ...

        def model_dump(self, *, mode: str = "python", by_alias: bool = False, **_: Any) -> Dict[str, Any]: ...

else:
    try:
        from pydantic import BaseModel as _Pydantic
        from pydantic import ConfigDict as _ConfigDict

        class BaseModel(_Pydantic):
            """See the module's text."""

            model_config = _ConfigDict(arbitrary_types_allowed=True)

    except ImportError:

        class BaseModel:
            """See the module's text."""

            def __init__(self, **values: Any) -> None:
                fields = self._fields()
                unknown = sorted(set(values) - set(fields))
                missing = [name for name, default in fields.items() if default is _MISSING and name not in values]
                if missing:
                    raise ValueError(f"{type(self).__name__}: missing {', '.join(missing)}")
                for name, default in fields.items():
                    setattr(self, name, values[name] if name in values else default)
                self.__dict__["_extra"] = unknown

            @classmethod
            def _fields(cls) -> Dict[str, Any]:
                fields: Dict[str, Any] = {}
                for base in reversed(cls.__mro__):
                    for name in util._annotations_of(base):
                        if not name.startswith("_") and name != "model_config":
                            fields[name] = base.__dict__.get(name, _MISSING)
                return fields

            def model_dump(self, *, mode: str = "python", by_alias: bool = False, **_: Any) -> Dict[str, Any]:
                """Return the fields."""
                return {name: _plain(getattr(self, name)) for name in self._fields()}

            def dict(self, **_: Any) -> Dict[str, Any]:
                """Return the fields."""
                return self.model_dump()

            def model_dump_json(self, **_: Any) -> str:
                """Return the fields as JSON."""
                return json.dumps(self.model_dump(), default=str)

            def __eq__(self, other: object) -> bool:
                return type(other) is type(self) and self.model_dump() == other.model_dump()

            def __repr__(self) -> str:
                return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.model_dump().items())})"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


class AttributeStateChange:
    """The value of an attribute before and after."""

    def __init__(self, current: Any = None, desired: Any = None) -> None:
        self.current = current
        self.desired = desired

    def model_dump(self, **_: Any) -> Dict[str, Any]:
        """Return both values by name."""
        return {"current": self.current, "desired": self.desired}

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dict):  # what older tests compare with
            return self.model_dump() == other
        return isinstance(other, AttributeStateChange) and (self.current, self.desired) == (other.current, other.desired)

    def __repr__(self) -> str:
        return f"AttributeStateChange(current={self.current!r}, desired={self.desired!r})"


class DiscoveredResourceInput(BaseModel):
    """A resource that a discovery found."""

    discovered_resource_id: str
    values: Dict[str, Any]
    managed_resource_uri: Optional[str] = None
    discovery_resource_id: str


class PipConfig(BaseModel):
    """Where packages come from."""

    index_url: Optional[str] = None
    extra_index_url: List[str] = []
    pre: Optional[bool] = None
    use_system_config: bool = False
