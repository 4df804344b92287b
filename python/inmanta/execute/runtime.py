"""Instances of the model as Python sees them.

An instance is a handle: its attributes are read from the compiler when they are asked for and kept, since what has a value in the
language never gets another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Protocol

from inmanta.ast import DoubleSetException, Location, NotFoundException, OptionalValueException, UnsetException
from inmanta.execute.util import NoneValue

if TYPE_CHECKING:
    from inmanta.ast.entity import Entity


class Bridge(Protocol):
    """What the host of a compile provides to the package."""

    def read(self, instance: Instance, name: str) -> Any:
        """Reads an attribute that is not known yet, keeps it in instance.values, and returns it."""

    def type_of(self, index: int) -> Entity:
        """The entity with a number."""

    def places(self, instance: Instance) -> list[Location]:
        """Where an instance is constructed."""


bridge: Optional[Bridge] = None
"""Set while this process serves a compile."""


marked: dict[str, str] = {}
"""Texts that plugins returned as objects of a class that says more, such as the name of the file that a text stands for."""


def need_bridge() -> Bridge:
    """The connection to the compile; raises RuntimeError outside one."""
    if bridge is None:
        raise RuntimeError("the model can only be read while it is compiled")
    return bridge


NULL = NoneValue()
"""The value null, where values are in the form of the language."""


class NoValue:
    """Marks an optional relation that was closed without a value."""


NO_VALUE = NoValue()


class Instance:
    """An entity instance."""

    __slots__ = ("_index", "_python", "_reference", "serial", "values")

    def __init__(self, serial: int, index: int) -> None:
        self.serial = serial
        self._index = index
        self.values: dict[str, Any] = {}
        self._python: Any = None  # the object of a dataclass that stands for the instance
        self._reference: Any = None  # the reference that the instance was made of

    @property
    def type(self) -> Entity:
        """The entity."""
        return need_bridge().type_of(self._index)

    def get_type(self) -> Entity:
        """The entity."""
        return self.type

    def read(self, name: str) -> Any:
        """The value of an attribute. Raises as a plugin expects when there is none."""
        try:
            value = self.values[name]
        except KeyError:
            if name not in self.type.all_names:
                if name == "self":
                    return self
                raise self._missing(name) from None
            value = need_bridge().read(self, name)
        if marked and isinstance(value, str):
            return marked.get(value, value)
        if value is NO_VALUE:
            raise OptionalValueException(self, f"{self.type.get_full_name()}.{name}")
        return value

    def _missing(self, name: str) -> NotFoundException:
        return NotFoundException(None, name, f"could not find attribute with name: {name} in type {self.type.get_full_name()}")

    def get_attribute(self, name: str) -> Variable:
        """The variable of an attribute."""
        if name not in self.type.all_names and name != "self":
            raise self._missing(name)
        return Variable(self, name)

    def get(self, name: str) -> Variable:
        """The variable of an attribute."""
        return self.get_attribute(name)

    def get_location(self) -> Optional[Location]:
        """The place at which the instance is constructed."""
        places = self.get_locations()
        return places[0] if places else None

    def get_locations(self) -> list[Location]:
        """All places at which the instance is constructed."""
        return need_bridge().places(self)

    @property
    def location(self) -> Optional[Location]:
        """The place at which the instance is constructed."""
        return self.get_location()

    def unwrap_reference(self) -> Any:
        """The reference to a dataclass that the instance was made of, or None."""
        return self._reference

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Instance):
            return NotImplemented
        return self.serial < other.serial

    def __repr__(self) -> str:
        return f"{self.type.get_full_name()} {self.serial:x}"

    def __str__(self) -> str:
        where = self.get_location()
        return f"{self.type.get_full_name()} (instantiated at {where})"


class Variable:
    """An attribute of an instance, to be read."""

    __slots__ = ("instance", "name")

    def __init__(self, instance: Instance, name: str) -> None:
        self.instance = instance
        self.name = name

    def get_value(self) -> Any:
        """The value in the form of the language; raises UnsetException when it is not there yet."""
        value = self.instance.read(self.name)
        return NULL if value is None else value

    def is_ready(self) -> bool:
        """Reports whether there is a value, or never will be one."""
        try:
            self.get_value()
        except UnsetException:
            return False
        except OptionalValueException:
            return True
        return True

    def __repr__(self) -> str:
        return f"{self.instance!r}.{self.name}"


class ResultVariable:
    """Takes the result of a call."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        self.has_value = value is not None
        self.location: Optional[Location] = None

    def set_value(self, value: Any, location: Optional[Location] = None, recur: bool = True) -> None:
        """Sets the value. Raises DoubleSetException when there is another one."""
        if self.has_value and self.value != value:
            raise DoubleSetException(self, None, value, location)
        self.value = value
        self.has_value = True
        self.location = location

    def get_value(self) -> Any:
        """The value."""
        if not self.has_value:
            raise UnsetException("Value not available")
        return self.value

    def is_ready(self) -> bool:
        """Reports whether there is a value."""
        return self.has_value
