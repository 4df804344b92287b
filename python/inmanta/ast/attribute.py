"""Attributes and relations of entities as Python sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

from inmanta.ast import Locatable
from inmanta.ast.type import Type

if TYPE_CHECKING:
    from inmanta.ast.entity import Entity
    from inmanta.execute.runtime import Instance, Variable


class RelationAnnotation:
    """An annotation of a relation."""

    def __init__(self, value: object) -> None:
        self._value = value

    def get_value(self) -> object:
        """The value of the annotation."""
        return self._value


class Attribute(Locatable):
    """An attribute of an entity."""

    def __init__(self, entity: Entity, type: Type, name: str, multi: bool = False, nullable: bool = False) -> None:
        self.entity = entity
        self.type = type
        self.name = name
        self.comment: Optional[str] = None
        self.__multi = multi
        self.__nullable = nullable

    def get_type(self) -> Type:
        """The type of values."""
        return self.type

    def get_name(self) -> str:
        """The name."""
        return self.name

    def get_entity(self) -> Entity:
        """The entity that declares it."""
        return self.entity

    def is_optional(self) -> bool:
        """Reports whether it may be null."""
        return self.__nullable

    def is_multi(self) -> bool:
        """Reports whether it is a list."""
        return self.__multi

    def get_new_result_variable(self) -> Any:
        """A place for a value."""
        from inmanta.execute.runtime import ResultVariable

        return ResultVariable()

    def get_value(self, instance: Instance) -> Variable:
        """The variable of an instance."""
        return instance.get_attribute(self.name)

    def __repr__(self) -> str:
        return f"{self.entity.get_full_name()}.{self.name}"


class RelationAttribute(Attribute):
    """A relation of an entity. low and high bound how many instances it has; high is None for no bound."""

    def __init__(self, entity: Entity, value: Type, name: str, low: int = 0, high: Optional[int] = None) -> None:
        super().__init__(entity, value, name, multi=high != 1)
        self.low = low
        self.high = high
        self._find_end: Optional[Callable[[], RelationAttribute]] = None
        self.freeze_dependents = False
        self.source_annotations: list[RelationAnnotation] = []
        self.target_annotations: list[RelationAnnotation] = []

    @property
    def end(self) -> Optional[RelationAttribute]:
        """The other end of the relation; None when that has no name."""
        return None if self._find_end is None else self._find_end()

    def is_optional(self) -> bool:
        return self.low == 0

    def is_multi(self) -> bool:
        return self.high != 1
