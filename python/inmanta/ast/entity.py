"""Entities as Python sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

from inmanta.ast import Location, Namespace, NotFoundException, RuntimeException
from inmanta.ast.type import NamedType
from inmanta.execute import runtime

if TYPE_CHECKING:
    from inmanta.ast.attribute import Attribute
    from inmanta.execute.runtime import Instance


class Implementation:
    """An implementation, by its name."""

    def __init__(self, full_name: str) -> None:
        self.name = full_name.rpartition("::")[2]
        self.namespace = Namespace(full_name.rpartition("::")[0])
        self.__full_name = full_name

    def get_full_name(self) -> str:
        """The qualified name."""
        return self.__full_name

    def __str__(self) -> str:
        return self.__full_name


class Implement:
    """A statement that selects implementations for the instances of an entity. conditional says that it has a condition."""

    def __init__(self, entity: Entity, implementations: list[str], conditional: bool, file: str, line: int) -> None:
        self.entity = entity
        self.implementations = [Implementation(name) for name in implementations]
        self.conditional = conditional
        self.location = Location(file, line)

    def get_location(self) -> Location:
        """Where the statement stands."""
        return self.location


class Entity(NamedType):
    """An entity. What it is made of is asked from the compiler when it is needed."""

    def __init__(
        self,
        full_name: str,
        all_names: list[str],
        all_parents: list[str],
        is_dataclass: bool,
        describe: Callable[[Entity], dict[str, Any]],
        find: Callable[[str], Any],
    ) -> None:
        self.__full_name = full_name
        self.name = full_name.rpartition("::")[2]
        self.namespace = Namespace(full_name.rpartition("::")[0])
        self.all_names = frozenset(all_names)
        self.__ordered = list(all_names)
        self.__all_parents = list(all_parents)
        self.is_dataclass = is_dataclass
        self.__describe = describe
        self.__find = find
        self.__details: Optional[dict[str, Any]] = None

    @property
    def _details(self) -> dict[str, Any]:
        if self.__details is None:
            self.__details = self.__describe(self)
        return self.__details

    @property
    def comment(self) -> Optional[str]:
        """The documentation of the entity."""
        return self._details.get("comment")

    def get_full_name(self) -> str:
        return self.__full_name

    def get_name(self) -> str:
        """The name without its namespace."""
        return self.name

    def get_namespace(self) -> Namespace:
        """The namespace."""
        return self.namespace

    def type_string(self) -> str:
        return self.__full_name

    def is_entity(self) -> bool:
        return True

    def get_all_parent_names(self) -> list[str]:
        """The names of all ancestors, near ones first."""
        return list(self.__all_parents)

    @property
    def parent_entities(self) -> list[Entity]:
        """The direct parents."""
        return [self.__find(name) for name in self._details["parents"]]

    @property
    def child_entities(self) -> list[Entity]:
        """The direct children."""
        return [self.__find(name) for name in self._details["children"]]

    def get_all_parent_entities(self) -> set[Entity]:
        """All ancestors."""
        return {self.__find(name) for name in self.__all_parents}

    def get_all_child_entities(self) -> set[Entity]:
        """All descendants."""
        out: set[Entity] = set()
        todo = list(self.child_entities)
        while todo:
            child = todo.pop()
            if child not in out:
                out.add(child)
                todo.extend(child.child_entities)
        return out

    def is_parent(self, parent_candidate: Entity) -> bool:
        """Reports whether another entity is an ancestor of this one. An entity is not its own ancestor."""
        return parent_candidate.get_full_name() in self.__all_parents

    def is_subclass(self, superclass_candidate: Entity, *, strict: bool = True) -> bool:
        """Reports whether this entity descends from another one. With strict=False each entity descends from itself."""
        if not strict and superclass_candidate.get_full_name() == self.__full_name:
            return True
        return self.is_parent(superclass_candidate)

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes and relations that the entity itself declares."""
        out: dict[str, Attribute] = self._details["attributes"]
        return {k: v for k, v in out.items() if v.entity.get_full_name() == self.__full_name}

    def get_attributes(self) -> dict[str, Attribute]:
        """The attributes and relations that the entity itself declares."""
        return self.attributes

    def get_all_attributes(self) -> dict[str, Attribute]:
        """All attributes and relations, inherited ones too."""
        return dict(self._details["attributes"])

    def get_attribute(self, name: str) -> Optional[Attribute]:
        """An attribute or relation, None if there is none of that name."""
        found: Optional[Attribute] = self._details["attributes"].get(name)
        return found

    def has_attribute(self, attribute: str) -> bool:
        """Reports whether there is an attribute or relation of a name, inherited ones included."""
        return attribute in self.__ordered

    def get_indices(self) -> list[list[str]]:
        """The sorted names of the attributes of each index, those of ancestors included."""
        return [list(names) for names in self._details["indexes"]]

    def get_all_attribute_names(self) -> list[str]:
        """The names of all attributes and relations."""
        return list(self.__ordered)

    def get_all_instances(self) -> list[Instance]:
        """All instances of the entity and its descendants."""
        found: list[Instance] = getattr(runtime.need_bridge(), "instances")(self.__full_name)  # noqa: B009
        return found

    def get_implements(self) -> list[Implement]:
        """The implement statements that apply to instances: the entity's own, then those that it inherits."""
        return list(self._details["implements"])

    def validate(self, value: Optional[object]) -> bool:
        if not isinstance(value, runtime.Instance):
            raise RuntimeException(None, f"Invalid type for value '{value}', should be type {self}")
        kind = value.type
        if kind is not self and self.__full_name != kind.get_full_name() and not kind.is_subclass(self):
            raise RuntimeException(None, f"Invalid class type for {value}, should be {self}")
        return True

    @property
    def location(self) -> Optional[Location]:
        """Where the entity is declared."""
        where = self._details.get("location")
        return None if where is None else Location(where[0], where[1])

    def get_location(self) -> Optional[Location]:
        """Where the entity is declared."""
        return self.location

    def find_attribute(self, name: str) -> Attribute:
        """An attribute or relation; raises NotFoundException."""
        found = self.get_attribute(name)
        if found is None:
            raise NotFoundException(None, name, f"could not find attribute with name: {name} in type {self}")
        return found

    def __repr__(self) -> str:
        return f"Entity({self.__full_name})"

    def __str__(self) -> str:
        return self.__full_name
