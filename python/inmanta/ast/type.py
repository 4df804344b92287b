"""Types of the language as Python sees them."""

from __future__ import annotations

from collections.abc import Sequence as _Sequence
from typing import Any as _AnyValue
from typing import Callable, Optional

from inmanta.ast import Locatable, Namespace, RuntimeException, TypeNotFoundException
from inmanta.execute.util import NoneValue, Unknown


class Type(Locatable):
    """Base of all types."""

    def validate(self, value: Optional[object]) -> bool:
        """Returns True for a value of the type; raises RuntimeException for any other."""
        return True

    def type_string(self) -> Optional[str]:
        """The type as models write it, None for one that they can not write."""
        return None

    def type_string_internal(self) -> str:
        """The type as messages name it."""
        return self.type_string() or type(self).__name__

    def is_primitive(self) -> bool:
        """Reports whether values can be cast to the type."""
        return False

    def is_entity(self) -> bool:
        """Reports whether values are instances."""
        return False

    def get_base_type(self) -> Type:
        """The type without null."""
        return self

    def with_base_type(self, base_type: Type) -> Type:
        """The same wrapping around another type."""
        return base_type

    def _invalid(self, value: object) -> RuntimeException:
        return RuntimeException(None, f"Invalid value '{value}', expected {self.type_string_internal()}")

    def __str__(self) -> str:
        return self.type_string() or self.type_string_internal()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and type(self) is type(other) and self.type_string_internal() == other.type_string_internal()

    def __hash__(self) -> int:
        return hash(self.type_string_internal())


class NamedType(Type):
    """A type with a name in a namespace."""

    def get_full_name(self) -> str:
        """The qualified name."""
        raise NotImplementedError


class Any(Type):
    """Every value."""

    def type_string_internal(self) -> str:
        return "any"


class Null(Type):
    """Only null."""

    def validate(self, value: Optional[object]) -> bool:
        if value is None or isinstance(value, (NoneValue, Unknown)):
            return True
        raise self._invalid(value)

    def type_string(self) -> str:
        return "null"


class Primitive(Type):
    """Base of the plain types."""

    _name = ""
    _cast: Callable[[_AnyValue], object] = str

    def is_primitive(self) -> bool:
        return True

    def type_string(self) -> str:
        return self._name

    def try_cast(self, value: Optional[object]) -> object:
        """Converts a value; raises ValueError or TypeError."""
        return type(self)._cast(value)

    def cast(self, value: Optional[object]) -> object:
        """Converts a value; raises RuntimeException."""
        if isinstance(value, Unknown):
            return value
        try:
            return self.try_cast(value)
        except (ValueError, TypeError, OverflowError):
            raise RuntimeException(None, f"Failed to cast '{value}' to {self}") from None


class Number(Primitive):
    """Integers and floats."""

    _name = "number"

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, (int, float, Unknown)):
            return True
        raise self._invalid(value)

    def try_cast(self, value: Optional[object]) -> object:
        if isinstance(value, bool):
            return int(value)
        return value if isinstance(value, (int, float)) else float(value)  # type: ignore[arg-type]


class Integer(Primitive):
    """Integers."""

    _name = "int"

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, (int, Unknown)):
            return True
        raise self._invalid(value)

    def try_cast(self, value: Optional[object]) -> object:
        return int(value)  # type: ignore[call-overload]


class Float(Primitive):
    """Floats."""

    _name = "float"

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, (float, Unknown)):
            return True
        raise self._invalid(value)

    def try_cast(self, value: Optional[object]) -> object:
        return float(value)  # type: ignore[arg-type]


class Bool(Primitive):
    """Booleans."""

    _name = "bool"

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, (bool, Unknown)):
            return True
        raise self._invalid(value)

    def try_cast(self, value: Optional[object]) -> object:
        return not isinstance(value, NoneValue) and bool(value)


class String(Primitive):
    """Texts."""

    _name = "string"

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, (str, Unknown)):
            return True
        raise self._invalid(value)

    def try_cast(self, value: Optional[object]) -> object:
        if isinstance(value, bool):
            return str(value).lower()
        return str(value)


class List(Type):
    """Lists of anything."""

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, (list, Unknown)):
            return True
        raise self._invalid(value)

    def type_string(self) -> Optional[str]:
        return "list"


class TypedList(List):
    """Lists of a type."""

    def __init__(self, element_type: Type) -> None:
        self.element_type = element_type

    def validate(self, value: Optional[object]) -> bool:
        List.validate(self, value)
        if isinstance(value, list):
            for element in value:
                self.element_type.validate(element)
        return True

    def type_string(self) -> Optional[str]:
        inner = self.element_type.type_string()
        return None if inner is None else f"{inner}[]"

    def type_string_internal(self) -> str:
        return f"{self.element_type.type_string_internal()}[]"

    def get_base_type(self) -> Type:
        return self.element_type

    def with_base_type(self, base_type: Type) -> Type:
        return TypedList(base_type)


class LiteralList(TypedList):
    """Lists of plain values."""

    def __init__(self) -> None:
        super().__init__(Literal())

    def get_base_type(self) -> Type:
        return self

    def with_base_type(self, base_type: Type) -> Type:
        return base_type

    def type_string(self) -> Optional[str]:
        return "list"


class Dict(Type):
    """Dicts of anything."""

    def validate(self, value: Optional[object]) -> bool:
        if isinstance(value, Unknown):
            return True
        if isinstance(value, dict) and all(isinstance(k, str) for k in value):
            return True
        raise self._invalid(value)

    def type_string(self) -> Optional[str]:
        return "dict"


class TypedDict(Dict):
    """Dicts with values of a type."""

    def __init__(self, element_type: Type) -> None:
        self.element_type = element_type

    def validate(self, value: Optional[object]) -> bool:
        Dict.validate(self, value)
        if isinstance(value, dict):
            for element in value.values():
                self.element_type.validate(element)
        return True

    def type_string_internal(self) -> str:
        return f"dict[string, {self.element_type.type_string_internal()}]"


class LiteralDict(TypedDict):
    """Dicts of plain values."""

    def __init__(self) -> None:
        super().__init__(Literal())

    def type_string(self) -> Optional[str]:
        return "dict"


class Union(Type):
    """Values of any of several types."""

    def __init__(self, types: _Sequence[Type]) -> None:
        self.types = list(types)

    def validate(self, value: Optional[object]) -> bool:
        for t in self.types:
            try:
                if t.validate(value):
                    return True
            except RuntimeException:
                continue
        raise self._invalid(value)

    def type_string_internal(self) -> str:
        return " | ".join(t.type_string_internal() for t in self.types)


class Literal(Union):
    """Plain values, and lists and dicts of them."""

    def __init__(self) -> None:
        super().__init__([NullableType(Float()), Number(), Bool(), String(), List(), Dict()])

    def type_string_internal(self) -> str:
        return "Literal"


class NullableType(Type):
    """A type or null."""

    def __init__(self, element_type: Type) -> None:
        self.element_type = element_type

    def validate(self, value: Optional[object]) -> bool:
        if value is None or isinstance(value, NoneValue):
            return True
        return self.element_type.validate(value)

    def type_string(self) -> Optional[str]:
        inner = self.element_type.type_string()
        return None if inner is None else f"{inner}?"

    def type_string_internal(self) -> str:
        return f"{self.element_type.type_string_internal()}?"

    def is_primitive(self) -> bool:
        return self.element_type.is_primitive()

    def get_base_type(self) -> Type:
        return self.element_type.get_base_type()

    def with_base_type(self, base_type: Type) -> Type:
        return NullableType(base_type)


class ConstraintType(NamedType):
    """A typedef. The compiler checks values against it."""

    def __init__(self, namespace: Optional[Namespace], name: str, basetype: Optional[Type] = None) -> None:
        self.namespace = namespace
        self.name = name
        self.basetype = basetype
        self.comment: Optional[str] = None

    def validate(self, value: Optional[object]) -> bool:
        from inmanta.execute import runtime

        fault = getattr(runtime.need_bridge(), "validate")(self.get_full_name(), value)  # noqa: B009
        if fault is not None:
            raise RuntimeException(None, fault)
        return True

    def type_string(self) -> str:
        return self.get_full_name()

    def get_full_name(self) -> str:
        return self.name if self.namespace is None else f"{self.namespace.get_full_name()}::{self.name}"

    def is_primitive(self) -> bool:
        return self.basetype is not None and self.basetype.is_primitive()


TYPES: dict[str, Type] = {
    "string": String(),
    "float": Float(),
    "number": Number(),
    "int": Integer(),
    "bool": Bool(),
    "list": LiteralList(),
    "dict": LiteralDict(),
}


def resolve_type(locatable_type: object, resolver: Optional[Namespace] = None) -> Type:
    """The type of a name such as ``m::E[]?``; raises TypeNotFoundException."""
    from inmanta.execute import runtime

    text = str(locatable_type).strip()
    if text.endswith("?"):
        return NullableType(resolve_type(text[:-1], resolver))
    if text.endswith("[]"):
        return TypedList(resolve_type(text[:-2], resolver))
    if text in TYPES:
        return TYPES[text]
    if text == "any":
        return Any()
    find = getattr(runtime.need_bridge(), "find_type")  # noqa: B009
    names = [text]
    if "::" not in text and resolver is not None:
        parts = resolver.get_full_name().split("::")
        names = ["::".join([*parts[:n], text]) for n in range(len(parts), 0, -1)] + ["std::" + text]
    for name in names:
        found: Optional[Type] = find(name)
        if found is not None:
            return found
    raise TypeNotFoundException(text, resolver)
