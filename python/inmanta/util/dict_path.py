r"""Paths into nested dicts and lists, written as text.

    path    = "." | ["."] section *("." section)
    section = key *("[" key "=" value "]")

A key alone selects in a dict. With brackets it selects, in the list found under the key, the one element that has these values.
``\0`` as a value stands for None, a backslash takes the meaning from ``\ [ ] . * =``. In wild paths a ``*`` stands for any key
of a dict, or for any key or value in brackets. The path ``.`` is the container itself.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import abc
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Type, TypeVar, Union

_SPECIAL = re.compile(r"([\\\[\].*=])")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = r"(?:[^\\\[\].*=]|\\.)+"
_VALUE = r"(?:[^\\\[\]*=]|\\.)*"
_KEY = re.compile(rf"^(?:{_PLAIN}|\*|)$", re.DOTALL)
_PAIR = rf"\[(?:(?:{_PLAIN})|\*)=(?:\*|{_VALUE})\]"
_KEYED = re.compile(rf"^(?P<relation>{_PLAIN})(?P<pairs>(?:{_PAIR})+)$", re.DOTALL)
_ONE_PAIR = re.compile(rf"\[(?P<key>{_PLAIN}|\*)=(?P<value>\*|{_VALUE})\]", re.DOTALL)
_NULL = "\\0"

_NO_WILDCARD = "The Wildcard ('*') can not be used in DictPath's"


class InvalidPathException(Exception):
    """A text is not a path."""


class ContainerStructureException(LookupError):
    """A container does not have the shape that the path needs."""


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


class DictPathValue(ABC):
    """A key or a value in a path."""

    @abstractmethod
    def escape(self) -> str:
        """Return the text that stands for it in a path."""

    @abstractmethod
    def matches(self, value: Optional[object]) -> bool:
        """Tell whether a value in a container is meant."""

    @classmethod
    def create(cls, value: str) -> DictPathValue:
        """Read what stands in a path."""
        if value == "*":
            return WildCardValue()
        if value == _NULL:
            return NullValue()
        return NormalValue(_unescape(value))

    @classmethod
    def from_object(cls, value: object) -> DictPathValue:
        """Make the value that matches an object."""
        return NullValue() if value is None else NormalValue(str(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DictPathValue) and type(other) is type(self) and self.escape() == other.escape()

    def __hash__(self) -> int:
        return hash(self.escape())


class NormalValue(DictPathValue):
    """A text. It means whatever has it as its text; numbers are compared as numbers."""

    def __init__(self, value: str) -> None:
        self.value = value

    def escape(self) -> str:
        return _SPECIAL.sub(r"\\\1", self.value)

    def matches(self, value: Optional[object]) -> bool:
        if value is None:
            return False
        if str(value) == self.value:
            return True
        if not isinstance(value, (int, float)):
            return False
        try:
            return float(self.value) == value
        except ValueError:
            return False


class NullValue(DictPathValue):
    """None."""

    def escape(self) -> str:
        return _NULL

    def matches(self, value: Optional[object]) -> bool:
        return value is None


class WildCardValue(DictPathValue):
    """Anything."""

    def escape(self) -> str:
        return "*"

    def matches(self, value: Optional[object]) -> bool:
        return True


TWDP = TypeVar("TWDP", bound="WildDictPath")
Pairs = Union[str, Sequence[Tuple[str, str]]]


def _mapping(container: object) -> Any:
    if not isinstance(container, abc.Mapping):
        raise ContainerStructureException(f"{container} is not a Mapping")
    return container


def _mutable_mapping(container: object) -> Any:
    if not isinstance(container, abc.MutableMapping):
        raise ContainerStructureException(f"{container} is not a MutableMapping")
    return container


def _elements(container: object) -> Any:
    if isinstance(container, (list, tuple, set, frozenset)):
        return container
    raise ContainerStructureException(f"{container} is not a List or Set")


class WildDictPath(ABC):
    """A path that may mean several places."""

    @abstractmethod
    def get_elements(self, container: object) -> List[object]:
        """Return what is at the places the path means; places that are not there are left out."""

    @abstractmethod
    def resolve_wild_cards(self, container: object) -> Sequence[Any]:
        """Return a path without wildcards for each place that is there."""

    @abstractmethod
    def to_str(self) -> str:
        """Return the path as text."""

    @abstractmethod
    def get_path_sections(self) -> Sequence[Any]:
        """Return the steps of the path."""

    @classmethod
    def parse(cls: Type[TWDP], inp: str) -> Optional[TWDP]:
        """Read a path of this kind; None when the text is another kind of path."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.to_str()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_str()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WildDictPath) and self.to_str() == other.to_str()

    def __hash__(self) -> int:
        return hash(self.to_str())

    def __add__(self, other: object) -> Any:
        if not isinstance(other, WildDictPath):
            return NotImplemented
        return WildComposedPath(path=[*self.get_path_sections(), *other.get_path_sections()])


class DictPath(WildDictPath):
    """A path that means one place."""

    @abstractmethod
    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        """Put a value in the place. With construct, what is missing on the way is made."""

    @abstractmethod
    def remove(self, container: object) -> None:
        """Remove the place; nothing happens when it is not there."""

    @abstractmethod
    def _make(self, container: object) -> object:
        """Make the place, as an empty dict, and return what is there."""

    @abstractmethod
    def get_key(self) -> str:
        """Return the key that a path of one step begins with."""

    def get_element(self, container: object, construct: bool = False) -> object:
        """Return what is in the place. KeyError: nothing, or more than one element. With construct it is made if missing."""
        found = self.get_elements(container)
        if len(found) == 1:
            return found[0]
        if construct and not found:
            return self._make(container)
        raise KeyError(f"Found no or multiple items matching {self.to_str()} in {container}: {found}")

    def __add__(self, other: object) -> Any:
        if not isinstance(other, DictPath):
            return NotImplemented
        return ComposedPath(path=[*self.get_path_sections(), *other.get_path_sections()])


class WildInDict(WildDictPath):
    """A key of a dict, or any key."""

    def __init__(self, key: str) -> None:
        self.key = WildCardValue() if key == "*" else NormalValue(key)

    @classmethod
    def parse(cls: Type[Any], inp: str) -> Optional[Any]:
        if not _KEY.match(inp):
            return None
        return cls("*" if inp == "*" else _unescape(inp))

    def to_str(self) -> str:
        return self.key.escape()

    def _keys(self, container: object) -> List[Any]:
        mapping = _mapping(container)
        if isinstance(self.key, NormalValue):
            return [self.key.value] if self.key.value in mapping else []
        return list(mapping)

    def get_elements(self, container: object) -> List[object]:
        mapping = _mapping(container)
        return [mapping[key] for key in self._keys(container)]

    def resolve_wild_cards(self, container: object) -> Sequence[Any]:
        return [InDict(str(key)) for key in self._keys(container) if key != "*"]

    def get_path_sections(self) -> Sequence[Any]:
        return [self]


class InDict(WildInDict, DictPath):
    """A key of a dict."""

    def __init__(self, key: str) -> None:
        if key == "*":
            raise ValueError(_NO_WILDCARD)
        super().__init__(key)

    def get_key(self) -> str:
        return self.key.value if isinstance(self.key, NormalValue) else ""

    def _make(self, container: object) -> object:
        made: dict[str, object] = {}
        _mutable_mapping(container)[self.get_key()] = made
        return made

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        _mutable_mapping(container)[self.get_key()] = value

    def remove(self, container: object) -> None:
        _mutable_mapping(container).pop(self.get_key(), None)


class WildKeyedList(WildDictPath):
    """The elements of a list, under a key of a dict, that have some values."""

    def __init__(self, relation: str, key_value_pairs: Pairs, key_value: Optional[str] = None) -> None:
        if isinstance(key_value_pairs, str):
            if key_value is None:
                raise ValueError("a key needs a value")
            key_value_pairs = [(key_value_pairs, key_value)]
        if not key_value_pairs:
            raise ValueError("at least one pair of a key and a value is needed")
        self.relation = NormalValue(relation)
        self.pairs = [(self._parse_key(k), self._parse_value(v)) for k, v in key_value_pairs]

    @classmethod
    def _parse_key(cls, key: str) -> DictPathValue:
        return WildCardValue() if key == "*" else NormalValue(key)

    @classmethod
    def _parse_value(cls, value: str) -> DictPathValue:
        if value == "*":
            return WildCardValue()
        return NullValue() if value == _NULL else NormalValue(value)

    @classmethod
    def parse(cls: Type[Any], inp: str) -> Optional[Any]:
        m = _KEYED.match(inp)
        if m is None:
            return None

        def plain(text: str) -> str:
            return text if text in ("*", _NULL) else _unescape(text)

        pairs = [(plain(p.group("key")), plain(p.group("value"))) for p in _ONE_PAIR.finditer(m.group("pairs"))]
        return cls(_unescape(m.group("relation")), pairs)

    def get_key_value_pairs(self) -> Sequence[Tuple[str, Optional[str]]]:
        """Return the keys and values; None stands for None."""
        return [(k.escape() if isinstance(k, WildCardValue) else _text(k) or "", _text(v)) for k, v in self.pairs]

    def to_str(self) -> str:
        return self.relation.escape() + "".join(f"[{k.escape()}={v.escape()}]" for k, v in self.pairs)

    def _matches(self, element: object) -> bool:
        if not isinstance(element, abc.Mapping):
            return False
        for key, value in self.pairs:
            if isinstance(key, NormalValue):
                if key.value not in element or not value.matches(element[key.value]):
                    return False
            elif not any(value.matches(v) for v in element.values()):
                return False
        return True

    def get_elements(self, container: object) -> List[object]:
        mapping = _mapping(container)
        if self.relation.value not in mapping:
            return []
        return [element for element in _elements(mapping[self.relation.value]) if self._matches(element)]

    def resolve_wild_cards(self, container: object) -> Sequence[Any]:
        if any(isinstance(k, WildCardValue) for k, _ in self.pairs):
            raise NotImplementedError(f"a path with a wildcard for a key in brackets can not be resolved: {self.to_str()}")
        paths = []
        for element in self.get_elements(container):
            values = [(_text(k) or "", DictPathValue.from_object(_mapping(element)[_text(k)])) for k, _ in self.pairs]
            path = KeyedList(self.relation.value, [(k, _NULL if isinstance(v, NullValue) else _text(v) or "") for k, v in values])
            if path not in paths:
                paths.append(path)
        return paths

    def get_path_sections(self) -> Sequence[Any]:
        return [self]


def _text(value: DictPathValue) -> Optional[str]:
    if isinstance(value, NormalValue):
        return value.value
    return None if isinstance(value, NullValue) else "*"


class KeyedList(WildKeyedList, DictPath):
    """The one element of a list, under a key of a dict, that has some values."""

    def __init__(self, relation: str, key_value_pairs: Pairs, key_value: Optional[str] = None) -> None:
        super().__init__(relation, key_value_pairs, key_value)
        if any(isinstance(part, WildCardValue) for pair in self.pairs for part in pair):
            raise ValueError(_NO_WILDCARD)

    def get_key(self) -> str:
        return self.relation.value

    def _list(self, container: object, construct: bool) -> Any:
        mapping = _mutable_mapping(container)
        if construct and self.relation.value not in mapping:
            mapping[self.relation.value] = []
        return _elements(mapping[self.relation.value])

    def _make(self, container: object) -> object:
        made: dict[str, object] = {_text(k) or "": _text(v) for k, v in self.pairs}
        self._list(container, True).append(made)
        return made

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        elements = self._list(container, construct)
        places = [i for i, element in enumerate(elements) if self._matches(element)]
        if len(places) > 1:
            raise KeyError(f"Found multiple items matching {self.to_str()} in {container}")
        if places:
            elements[places[0]] = value
        else:
            elements.append(value)

    def remove(self, container: object) -> None:
        mapping = _mutable_mapping(container)
        if self.relation.value not in mapping:
            return
        elements = _elements(mapping[self.relation.value])
        for element in [e for e in elements if self._matches(e)]:
            elements.remove(element)


class WildNullPath(WildDictPath):
    """The container itself."""

    @classmethod
    def parse(cls: Type[Any], inp: str) -> Optional[Any]:
        return cls() if inp == "." else None

    def to_str(self) -> str:
        return "."

    def get_elements(self, container: object) -> List[object]:
        return [container]

    def resolve_wild_cards(self, container: object) -> Sequence[Any]:
        return [NullPath()]

    def get_path_sections(self) -> Sequence[Any]:
        return []


class NullPath(WildNullPath, DictPath):
    """The container itself."""

    def get_key(self) -> str:
        raise NotImplementedError("Method get_key() is not supported on a NullPath")

    def _make(self, container: object) -> object:
        return container

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        if not isinstance(value, abc.Mapping):
            raise ContainerStructureException(f"Argument value is not a Mapping: {value}")
        _mutable_mapping(container).update(value)

    def remove(self, container: object) -> None:
        raise NotImplementedError("Method remove() is not supported on a NullPath")


class WildComposedPath(WildDictPath):
    """Steps one after the other."""

    _keyed: Type[Any] = WildKeyedList
    _in_dict: Type[Any] = WildInDict

    def __init__(self, path_str: Optional[str] = None, path: Optional[Sequence[WildDictPath]] = None) -> None:
        if path is None:
            if path_str is None:
                raise ValueError("a path, as text or in sections, is needed")
            path = self.do_parse(path_str)
        self.expanded_path: Sequence[Any] = list(path)

    @classmethod
    def split_on_dots(cls, path_str: str) -> List[str]:
        """Split at dots that are neither escaped nor in brackets."""
        parts, start, depth, i = [], 0, 0, 0
        while i < len(path_str):
            c = path_str[i]
            if c == "\\":
                i += 1
            elif c == "[":
                depth += 1
            elif c == "]":
                depth -= 1
            elif c == "." and depth <= 0:
                parts.append(path_str[start:i])
                start = i + 1
            i += 1
        return [*parts, path_str[start:]]

    @classmethod
    def do_parse(cls, path_str: str) -> Sequence[Any]:
        """Read the sections of a path."""
        parts = [p for p in cls.split_on_dots(path_str) if p]  # dots too many are passed over
        if not parts:
            raise InvalidPathException(f"Could not parse path {path_str}")
        sections: List[Any] = []
        for part in parts:
            try:
                section = cls._keyed.parse(part) or cls._in_dict.parse(part)
            except ValueError as e:
                raise InvalidPathException(str(e)) from e
            if section is None:
                raise InvalidPathException(f"Could not parse path segment {part}")
            sections.append(section)
        return sections

    @classmethod
    def parse(cls: Type[Any], inp: str) -> Optional[Any]:
        return cls(path=cls.do_parse(inp))

    def un_parse(self) -> str:
        """Return the path as text."""
        return ".".join(section.to_str() for section in self.expanded_path) or "."

    def to_str(self) -> str:
        return self.un_parse()

    def get_elements(self, container: object) -> List[object]:
        found: List[object] = [container]
        for n, section in enumerate(self.expanded_path):
            found = [element for c in found for element in self._step(section, c, n)]
        return found

    def _step(self, section: Any, container: object, n: int) -> List[object]:
        return list(section.get_elements(container))

    def resolve_wild_cards(self, container: object) -> Sequence[Any]:
        return [ComposedPath(path=path) for path in self._resolve(container, list(self.expanded_path))]

    def _resolve(self, container: object, sections: List[Any]) -> Iterator[List[Any]]:
        if not sections:
            yield []
            return
        for resolved in sections[0].resolve_wild_cards(container):
            for element in resolved.get_elements(container):
                for rest in self._resolve(element, sections[1:]):
                    yield [resolved, *rest]

    def get_path_sections(self) -> Sequence[Any]:
        return self.expanded_path


class ComposedPath(WildComposedPath, DictPath):
    """Steps one after the other, each of which means one place."""

    _keyed = KeyedList
    _in_dict = InDict

    def _step(self, section: Any, container: object, n: int) -> List[object]:
        try:
            found = section.get_elements(container)
        except ContainerStructureException:
            return []
        return list(found) if len(found) == 1 else []

    def _parent(self, container: object, construct: bool) -> object:
        for section in self.expanded_path[:-1]:
            container = section.get_element(container, construct)
        return container

    def _make(self, container: object) -> object:
        return self.expanded_path[-1].get_element(self._parent(container, True), True)

    def set_element(self, container: object, value: object, construct: bool = True) -> None:
        self.expanded_path[-1].set_element(self._parent(container, construct), value, construct)

    def remove(self, container: object) -> None:
        try:
            parent = self._parent(container, False)
        except KeyError:
            return
        self.expanded_path[-1].remove(parent)

    def get_key(self) -> str:
        raise NotImplementedError("Method get_key() not supported on a ComposedPath")


def _without_first_dot(inp: str) -> str:
    return inp[1:] if inp.startswith(".") else inp


def to_path(inp: str) -> DictPath:
    """Read a path. InvalidPathException when the text is none, or has wildcards."""
    if inp == ".":
        return NullPath()
    return ComposedPath(_without_first_dot(inp))


def to_wild_path(inp: str) -> WildDictPath:
    """Read a path that may have wildcards. InvalidPathException when the text is none."""
    if inp == ".":
        return WildNullPath()
    return WildComposedPath(_without_first_dot(inp))
