"""Read-only views of the model for plugins and resources."""

from __future__ import annotations

import contextvars
import dataclasses
import enum
from collections.abc import Iterator, Mapping
from copy import copy
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar, Union

from inmanta import references
from inmanta.ast import NotFoundException, RuntimeException, UnexpectedReference, UnknownException, UnsetException
from inmanta.execute import runtime
from inmanta.execute.util import NoneValue, Unknown
from inmanta.stable_api import stable_api
from inmanta.util import JSONSerializable

__all__ = [
    "CallProxy",
    "DictProxy",
    "DynamicProxy",
    "DynamicUnwrapContext",
    "IteratorProxy",
    "NotFoundException",
    "ProxyContext",
    "ProxyMode",
    "SequenceProxy",
    "UnknownException",
    "UnsetException",
    "exportcontext",
    "get_inmanta_type_for_dataclass",
]

Self = TypeVar("Self", bound="DynamicProxy")


class ProxyMode(enum.Enum):
    """What proxies are read for. An export may meet references anywhere, a plugin only where it said so."""

    PLUGIN = enum.auto()
    EXPORT = enum.auto()


global_proxy_mode: contextvars.ContextVar[ProxyMode] = contextvars.ContextVar("global_proxy_mode", default=ProxyMode.PLUGIN)


class ExportContext:
    """Switches to reading for an export."""

    def __enter__(self) -> None:
        global_proxy_mode.set(ProxyMode.EXPORT)

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        global_proxy_mode.set(ProxyMode.PLUGIN)


exportcontext = ExportContext()


class ProxyContext:
    """Where a proxied value was found, and whether references may be read from it.

    path is text that can be continued, such as ``arg[0].attr``. validated says that the value passed the check of a declared
    type. allow_reference_values overrides, for this value alone, what follows from validated.
    """

    __slots__ = ("_parent", "_path", "allow_reference_values", "validated")

    def __init__(self, *, path: str, validated: bool = True, allow_reference_values: Optional[bool] = None) -> None:
        self._parent: Optional[ProxyContext] = None
        self._path = path
        self.validated = validated
        self.allow_reference_values = allow_reference_values

    @property
    def path(self) -> str:
        """The place; put together when it is asked for, since most values are never complained about."""
        parts = [self._path]
        up = self._parent
        while up is not None:
            parts.append(up._path)
            up = up._parent
        return "".join(reversed(parts))

    def nested(self, *, relative_path: str) -> ProxyContext:
        """The context of a value within this one."""
        inner = ProxyContext(path=relative_path, validated=self.validated)
        inner._parent = self
        return inner

    def allow_references(self) -> ProxyContext:
        """The same place with leave to read references."""
        return ProxyContext(path=self.path, validated=self.validated, allow_reference_values=True)

    def should_allow_references(self) -> bool:
        """Reports whether references may be read here."""
        if global_proxy_mode.get() is ProxyMode.EXPORT:
            return True
        return self.validated if self.allow_reference_values is None else self.allow_reference_values


def get_inmanta_type_for_dataclass(for_type: type[object]) -> Any:
    """The entity that a dataclass is paired with, or None."""
    return getattr(for_type, "_paired_inmanta_entity", None)


class DynamicUnwrapContext:
    """Turns dataclasses into instances. make gets the object or reference and its dataclass."""

    def __init__(self, make: Callable[[object, type], object]) -> None:
        self.make = make


_PLAIN = (str, tuple, int, float, bool)


@stable_api
class DynamicProxy:
    """A view of an instance. Attributes read as plain values or further proxies; nothing can be changed."""

    def __init__(self, instance: Any, *, context: Optional[ProxyContext] = None) -> None:
        if context is None:
            context = ProxyContext(path=object.__repr__(instance))
        object.__setattr__(self, "__instance", instance)
        object.__setattr__(self, "__context", context)

    def _get_instance(self) -> Any:
        return object.__getattribute__(self, "__instance")

    def _get_context(self) -> ProxyContext:
        context: ProxyContext = object.__getattribute__(self, "__context")
        return context

    def _allow_references(self: Self) -> Self:
        new = copy(self)
        object.__setattr__(new, "__context", self._get_context().allow_references())
        return new

    @classmethod
    def unwrap(cls, item: object, *, dynamic_context: Optional[DynamicUnwrapContext] = None) -> Any:
        """The value of the language that Python's value stands for. Dataclasses need a dynamic_context."""
        if item is None:
            return NoneValue()
        if isinstance(item, DynamicProxy):
            return item._get_instance()
        if isinstance(item, list):
            return [cls.unwrap(x, dynamic_context=dynamic_context) for x in item]
        if isinstance(item, dict):
            out = {}
            for key, value in item.items():
                if not isinstance(key, str):
                    raise RuntimeException(None, f"dict keys should be strings, got {key!r} of type {type(key)} with dict value {value!r}")
                out[key] = cls.unwrap(value, dynamic_context=dynamic_context)
            return out
        if isinstance(item, references.Reference):
            kind = item.get_reference_type()
            if kind is None:
                raise RuntimeException(
                    None,
                    f"Could not determine the reference type of {item}, "
                    "make sure the reference extends Reference[concrete_type] or override `get_reference_type`",
                )
            if not dataclasses.is_dataclass(kind):
                return item
            if dynamic_context is None:
                raise RuntimeException(
                    None,
                    f"{item} is a dataclass of type {kind}. It can only be converted to an inmanta entity at the plugin boundary",
                )
            return dynamic_context.make(item, kind)  # type: ignore[arg-type]
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            entity = get_inmanta_type_for_dataclass(type(item))
            if entity is not None:
                if dynamic_context is None:
                    raise RuntimeException(
                        None,
                        f"{item} is a dataclass of type {entity.get_full_name()}. "
                        "It can only be converted to an inmanta entity at the plugin boundary",
                    )
                return dynamic_context.make(item, type(item))
        return item

    @classmethod
    def return_value(cls, value: object, *, context: Optional[ProxyContext] = None) -> Any:
        """Python's value for a value of the language. Raises UnknownException for one that is not known."""
        if value is None or isinstance(value, NoneValue):
            return None
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, Unknown):
            raise UnknownException(value)
        if isinstance(value, (references.Reference, DynamicProxy)):
            return value
        if context is None:
            context = ProxyContext(path=object.__repr__(value))
        if isinstance(value, dict):
            return DictProxy(value, context=context)
        if hasattr(value, "__len__"):
            return SequenceProxy(value, context=context)
        if callable(value):
            return CallProxy(value, context=context)
        if context.validated:  # what is behind an instance has not passed any check
            inner = ProxyContext(path="", validated=False)
            inner._parent = context
            context = inner
        return DynamicProxy(value, context=context)

    def _return_value(self, value: object, *, relative_path: str) -> Any:
        if isinstance(value, _PLAIN):
            return value
        context = self._get_context()
        inner = context.nested(relative_path=relative_path)
        if isinstance(value, references.Reference) and not context.should_allow_references():
            raise UnexpectedReference(
                reference=value,
                message=(
                    "Encountered unexpected reference value during plugin execution. Plugins are only allowed to access"
                    " reference values when declared explicitly. Either use a dataclass entity that supports references (e.g."
                    " `int | Reference[int]` attribute annotation), or explicitly allow references on attribute access with the"
                    f" `inmanta.plugins.allow_reference_values()` wrapper. Encountered at {inner.path} (= `{value!r}`)."
                ),
            )
        return DynamicProxy.return_value(value, context=inner)

    def __getattr__(self, attribute: str) -> Any:
        instance = self._get_instance()
        try:
            # Asking for the variable of an instance of the model is the same, and slower.
            read = isinstance(instance, runtime.Instance)
            value = instance.read(attribute) if read else instance.get_attribute(attribute).get_value()
        except NotFoundException as e:
            raise AttributeError(e.stmt, e.name) from None  # so that hasattr says no
        return self._return_value(value, relative_path="." + attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        raise Exception("Readonly object")

    def _type(self) -> Any:
        return self._get_instance().type

    def is_unknown(self) -> bool:
        """Reports whether the value is not known yet."""
        return isinstance(self._get_instance(), Unknown)

    def __hash__(self) -> int:
        return hash(self._get_instance())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DynamicProxy):
            other = other._get_instance()
        return bool(self._get_instance() == other)

    def __lt__(self, other: object) -> bool:
        if isinstance(other, DynamicProxy):
            other = other._get_instance()
        return bool(self._get_instance() < other)

    def __repr__(self) -> str:
        return "@" + repr(self._get_instance())


class SequenceProxy(DynamicProxy, JSONSerializable):
    """A view of a list. It can be read by index and iterated over, and is no list otherwise."""

    def __init__(self, iterator: Any, *, context: Optional[ProxyContext] = None) -> None:
        DynamicProxy.__init__(self, iterator, context=context)

    def __getitem__(self, key: int) -> Any:
        items = self._get_instance()
        if isinstance(key, str):
            raise RuntimeException(None, f"can not get a attribute {key}, {items} is a list")
        return self._return_value(items[key], relative_path=f"[{key!r}]")

    def __iter__(self) -> Iterator[Any]:
        return IteratorProxy(iter(self._get_instance()), context=self._get_context(), sequence=True)

    def __len__(self) -> int:
        return len(self._get_instance())

    def json_serialization_step(self) -> list[Any]:
        """The content for an encoder of JSON."""
        return list(self)


class DictProxy(DynamicProxy, Mapping[str, Any], JSONSerializable):
    """A view of a dict. It is a Mapping and no dict."""

    def __init__(self, mydict: Any, *, context: Optional[ProxyContext] = None) -> None:
        DynamicProxy.__init__(self, mydict, context=context)

    def __getitem__(self, key: str) -> Any:
        items = self._get_instance()
        if not isinstance(key, str):
            raise RuntimeException(None, f"Expected string key, but got {key}, {items} is a dict")
        return self._return_value(items[key], relative_path=f"[{key!r}]")

    def __iter__(self) -> Iterator[Any]:
        return IteratorProxy(iter(self._get_instance()), context=self._get_context(), sequence=False)

    def __len__(self) -> int:
        return len(self._get_instance())

    def __eq__(self, other: object) -> bool:
        return DynamicProxy.__eq__(self, other)

    __hash__ = DynamicProxy.__hash__

    def json_serialization_step(self) -> dict[str, Any]:
        """The content for an encoder of JSON."""
        return dict(self.items())


class IteratorProxy(DynamicProxy, Iterator[Any]):
    """An iteration. It goes on after an exception: who catches UnknownException has skipped one element."""

    def __init__(self, iterator: Iterator[Any], *, context: Optional[ProxyContext] = None, sequence: bool = False) -> None:
        DynamicProxy.__init__(self, enumerate(iterator), context=context)
        object.__setattr__(self, "__sequence", sequence)

    def _is_sequence(self) -> bool:
        return bool(object.__getattribute__(self, "__sequence"))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        index, value = next(self._get_instance())
        if isinstance(value, _PLAIN):
            return value
        return self._return_value(value, relative_path=f"[{index}]" if self._is_sequence() else "")


class CallProxy(DynamicProxy):
    """A view of something that can be called. What it returns is not converted."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._get_instance()(*args, **kwargs)


ProxiedValue = Union[None, str, int, float, bool, DynamicProxy, "references.Reference[Any]"]
