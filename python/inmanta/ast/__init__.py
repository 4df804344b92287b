"""Places in models and the exceptions that modules raise and catch."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any, Optional, Union


class Location:
    """A line of a file."""

    __slots__ = ("file", "lnr")

    def __init__(self, file: str, lnr: int) -> None:
        self.file = file
        self.lnr = lnr

    def merge(self, other: Location) -> Location:
        """The place that covers both."""
        return self

    def __str__(self) -> str:
        return f"{self.file}:{self.lnr}"

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and (self.file, self.lnr) == (other.file, other.lnr)

    def __hash__(self) -> int:
        return hash((self.file, self.lnr))


class Range(Location):
    """A stretch of a file."""

    __slots__ = ("end_char", "end_lnr", "start_char")

    def __init__(self, file: str, start_lnr: int, start_char: int, end_lnr: int, end_char: int) -> None:
        super().__init__(file, start_lnr)
        self.start_char = start_char
        self.end_lnr = end_lnr
        self.end_char = end_char

    def __str__(self) -> str:
        return f"{self.file}:{self.lnr}:{self.start_char}"

    def merge(self, other: Location) -> Location:
        """The place that covers both, when they are in one file."""
        if not isinstance(other, Range) or other.file != self.file:
            return self
        start = min((self.lnr, self.start_char), (other.lnr, other.start_char))
        end = max((self.end_lnr, self.end_char), (other.end_lnr, other.end_char))
        return Range(self.file, start[0], start[1], end[0], end[1])


class Locatable:
    """Something with a place in a model."""

    _location: Optional[Location] = None

    def get_location(self) -> Optional[Location]:
        """The place."""
        return self._location

    def set_location(self, location: Location) -> None:
        """Sets the place."""
        self._location = location

    @property
    def location(self) -> Optional[Location]:
        """The place."""
        return self._location

    @location.setter
    def location(self, location: Location) -> None:
        self._location = location


class LocatableString:
    """A text with its place."""

    __slots__ = ("lexpos", "location", "namespace", "value")

    def __init__(self, value: str, location: Optional[Location], lexpos: int = 0, namespace: Optional[Namespace] = None) -> None:
        self.value = value
        self.location = location
        self.lexpos = lexpos
        self.namespace = namespace

    def get_value(self) -> str:
        """The text."""
        return self.value

    def get_location(self) -> Optional[Location]:
        """The place."""
        return self.location

    def __str__(self) -> str:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, LocatableString) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __len__(self) -> int:
        return len(self.value)


class Namespace(Locatable):
    """A namespace by its full name."""

    def __init__(self, name: str, parent: Optional[Namespace] = None) -> None:
        self.__name = name
        self.__parent = parent

    def get_name(self) -> str:
        """The last part of the name."""
        return self.__name.rpartition("::")[2]

    def get_full_name(self) -> str:
        """The whole name."""
        if self.__parent is not None and self.__parent.get_full_name() not in ("", "__root__"):
            return f"{self.__parent.get_full_name()}::{self.__name}"
        return self.__name

    def get_parent(self) -> Optional[Namespace]:
        """The namespace around this one."""
        if self.__parent is None and "::" in self.__name:
            return Namespace(self.__name.rpartition("::")[0])
        return self.__parent

    def to_path(self) -> list[str]:
        """The parts of the name."""
        return self.get_full_name().split("::")

    def __str__(self) -> str:
        return self.get_full_name()

    def __repr__(self) -> str:
        return self.get_full_name()


class CompilerException(Exception):
    """Base of the faults of a model."""

    def __init__(self, msg: str) -> None:
        Exception.__init__(self, msg)
        self.location: Optional[Location] = None
        self.msg = msg

    def set_location(self, location: Optional[Location]) -> None:
        """Sets the place unless there is one."""
        if self.location is None:
            self.location = location

    def get_message(self) -> str:
        """The text."""
        return self.msg

    def get_location(self) -> Optional[Location]:
        """The place."""
        return self.location

    def get_causes(self) -> list[CompilerException]:
        """The faults behind this one."""
        return []

    def format(self) -> str:
        """The text with the place."""
        where = self.get_location()
        if where is not None:
            return f"{self.get_message()} ({where})"
        return self.get_message()

    def format_trace(self, indent: str = "", indent_level: int = 0) -> str:
        """The text with all causes."""
        out = indent * indent_level + self.format()
        for cause in self.get_causes():
            part = cause.format_trace(indent=indent, indent_level=indent_level + 1)
            out += f"\n{indent * indent_level}caused by:\n{part}"
        return out

    def importantance(self) -> int:
        """How much a fault says by itself."""
        return 10

    def __str__(self) -> str:
        return self.format()


class RuntimeException(CompilerException):
    """A fault while the model runs. stmt is the statement at fault, if one is known."""

    def __init__(self, stmt: Optional[Any], msg: str) -> None:
        CompilerException.__init__(self, msg)
        self.stmt: Any = None
        if stmt is not None:
            self.set_statement(stmt)

    def set_statement(self, stmt: Any, replace: bool = True) -> None:
        """Names the statement at fault; replace=False keeps one that is there."""
        if not replace and self.stmt is not None:
            return
        self.stmt = stmt
        self.location = getattr(stmt, "location", None)

    def get_statement(self) -> Any:
        """The statement at fault."""
        return self.stmt

    def format(self) -> str:
        """The text with the statement and its place."""
        where = self.get_location()
        if where is None:
            return self.get_message()
        if self.stmt is not None:
            return f"{self.get_message()} (reported in {self.stmt} ({where}))"
        return f"{self.get_message()} ({where})"


class TypingException(RuntimeException):
    """A value or a name is not of the type that is needed."""


class InvalidTypeAnnotation(TypingException):
    """A Python annotation has no meaning as a type of the language."""


class NotFoundException(RuntimeException):
    """A name does not exist."""

    def __init__(self, stmt: Optional[Any], name: str, msg: Optional[str] = None) -> None:
        RuntimeException.__init__(self, stmt, f"could not find {name}" if msg is None else msg)
        self.name = name


class TypeNotFoundException(RuntimeException):
    """A type does not exist."""

    def __init__(self, type: Any, ns: Optional[Namespace] = None, msg: Optional[str] = None) -> None:
        RuntimeException.__init__(self, None, f"could not find type {type} in namespace {ns}" if msg is None else msg)
        self.type = type
        self.ns = ns


class MissingImportException(TypeNotFoundException):
    """A type of another module is used in a file that does not import it."""


class AmbiguousTypeException(TypeNotFoundException):
    """Several types could be meant."""


class DirectExecuteException(TypingException):
    """An expression that must have its value at once can not have it."""


class DataClassException(TypingException):
    """An entity and its Python dataclass do not fit."""


class DataClassMismatchException(DataClassException):
    """An entity and its Python dataclass have different attributes."""


class CycleException(TypingException):
    """An entity is its own ancestor."""


class HyphenException(RuntimeException):
    """A name that is being defined has a hyphen."""


class DuplicateException(TypingException):
    """Something is defined twice."""

    def __init__(self, stmt: Any, other: Any, msg: str) -> None:
        TypingException.__init__(self, stmt, msg)
        self.other = other


class OptionalValueException(RuntimeException):
    """An optional relation was read that has no value."""

    def __init__(self, instance: Any, attribute: Any) -> None:
        RuntimeException.__init__(self, None, f"Optional variable accessed that has no value (attribute `{attribute}` of `{instance}`)")
        self.instance = instance
        self.attribute = attribute


class UnsetException(RuntimeException):
    """A value was read that is not there yet. The compiler calls the plugin again once it is."""

    def __init__(self, msg: str, instance: Any = None, attribute: Any = None) -> None:
        RuntimeException.__init__(self, None, msg)
        self.instance = instance
        self.attribute = attribute
        self.msg = msg

    def get_result_variable(self) -> Any:
        """What will have the value: what MultiUnsetException takes."""
        return self.instance


class MultiUnsetException(RuntimeException):
    """Several values were read that are not there yet."""

    def __init__(self, msg: str, result_variables: Sequence[Any]) -> None:
        RuntimeException.__init__(self, None, msg)
        self.result_variables = list(result_variables)


class UnexpectedReference(RuntimeException):
    """A reference was read where only a value will do."""

    def __init__(self, *, stmt: Optional[Any] = None, reference: Any, message: Optional[str] = None) -> None:
        RuntimeException.__init__(self, stmt, message or f"Encountered unexpected reference {reference!r}")
        self.reference = reference


class DoubleSetException(RuntimeException):
    """A variable was given two values."""

    def __init__(self, variable: Any, stmt: Optional[Any], newvalue: object, newlocation: Optional[Location]) -> None:
        old = f"\n\told value: {variable.value}" if hasattr(variable, "value") else ""
        RuntimeException.__init__(self, stmt, f"value set twice:{old}\n\tnew value: {newvalue}")
        self.variable = variable
        self.newvalue = newvalue
        self.newlocation = newlocation


class ModifiedAfterFreezeException(RuntimeException):
    """A list was added to after it was read."""


class IndexException(RuntimeException):
    """An index is wrong."""


class KeyException(RuntimeException):
    """A key is wrong."""


class WrappingRuntimeException(RuntimeException):
    """A fault with the one behind it."""

    def __init__(self, stmt: Optional[Any], msg: str, cause: CompilerException) -> None:
        if stmt is None and isinstance(cause, RuntimeException):
            stmt = cause.stmt
        RuntimeException.__init__(self, stmt, msg)
        self.__cause__ = cause

    def get_causes(self) -> list[CompilerException]:
        """The fault behind this one."""
        return [self.__cause__] if isinstance(self.__cause__, CompilerException) else []


class AttributeException(WrappingRuntimeException):
    """An attribute can not be set; the fault behind it says why."""

    def __init__(self, stmt: Optional[Any], instance: Any, attribute: str, cause: CompilerException) -> None:
        WrappingRuntimeException.__init__(self, stmt, f"Could not set attribute `{attribute}` on instance `{instance}`", cause)
        self.attribute = attribute
        self.instance = instance


class ExternalException(RuntimeException):
    """An exception that is no fault of the model, with what was done when it came."""

    def __init__(self, stmt: Optional[Any], msg: str, cause: BaseException) -> None:
        RuntimeException.__init__(self, stmt, msg)
        self.__cause__ = cause

    def format_trace(self, indent: str = "", indent_level: int = 0) -> str:
        """The text with Python's traceback."""
        # type is the module inmanta.ast.type here, as soon as somebody has imported that.
        cause = self.__cause__
        part = "" if cause is None else "".join(traceback.format_exception_only(cause.__class__, cause)).strip()
        return f"{indent * indent_level}{self.format()}\n{indent * indent_level}caused by: {part}"


class PluginException(Exception):
    """A fault that the author of a plugin foresaw; the message is shown to the user."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class ExplicitPluginException(ExternalException):
    """A :class:`PluginException` with what was done when it came."""

    __cause__: PluginException

    def __init__(self, stmt: Optional[Any], msg: str, cause: PluginException) -> None:
        ExternalException.__init__(self, stmt, msg, cause)


class PluginTypeException(WrappingRuntimeException):
    """An argument or a result of a plugin is not of the declared type."""


class UnknownException(Exception):
    """A value was needed that is not known yet: the plugin's result is unknown."""

    def __init__(self, unknown: Any) -> None:
        super().__init__()
        self.unknown = unknown


class MultiException(CompilerException):
    """Several faults."""

    def __init__(self, others: list[CompilerException]) -> None:
        CompilerException.__init__(self, "")
        self.others = others

    def get_causes(self) -> list[CompilerException]:
        """The faults: the most telling first, then by their places."""

        def rank(fault: CompilerException) -> tuple[int, str, int]:
            where = fault.get_location()
            return (fault.importantance(), "", 0) if where is None else (fault.importantance(), where.file, where.lnr)

        return sorted(self.others, key=rank)

    def format(self) -> str:
        """How many there are."""
        return f"Reported {len(self.others)} errors"

    def format_trace(self, indent: str = "", indent_level: int = 0) -> str:
        """All faults with their causes."""
        out = indent * indent_level + self.format()
        for number, fault in enumerate(self.get_causes()):
            out += f"\n{indent * indent_level}error {number}:\n{fault.format_trace(indent, indent_level + 1)}"
        return out

    def __str__(self) -> str:
        return "\n\t".join([self.format() + ":", *map(str, self.others)])


LocatableText = Union[str, LocatableString]
