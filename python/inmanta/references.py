"""References: values that are resolved only when a resource is deployed, so that they are never stored."""

from __future__ import annotations

import builtins
import dataclasses
import hashlib
import json
import re
import typing
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Optional, TypeVar, Union

if TYPE_CHECKING:
    from inmanta.agent.handler import LoggerABC
    from inmanta.resources import Resource

PrimitiveTypes = Union[str, float, int, bool, None]
RefValue = Any
ReferenceType = str
DataclassProtocol = object

T = TypeVar("T")
S = TypeVar("S")


class ReferenceCycleException(Exception):
    """A reference refers to itself."""

    def __init__(self, first_ref: Reference[Any]) -> None:
        self.references: list[Reference[Any]] = [first_ref]
        self.complete = False

    def add(self, element: Reference[Any]) -> None:
        """Notes a reference on the way back; what comes after the circle is closed does not belong to it."""
        if self.complete:
            return
        if any(r is element for r in self.references):
            self.complete = True
        self.references.append(element)

    def get_message(self) -> str:
        """The text with the circle."""
        return "Reference cycle detected: " + " -> ".join(object.__repr__(r) for r in self.references)

    def __str__(self) -> str:
        return self.get_message()


class MutatorMissingError(TypeError):
    """No mutator is registered under a name."""


class ReferenceMissingError(TypeError):
    """No reference is registered under a name."""


def _jsonable(value: object) -> Any:
    """What a model object or a UUID is in JSON."""
    if isinstance(value, uuid.UUID):
        return str(value)
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _encodable(value: object, seen: tuple[int, ...] = ()) -> bool:
    """Reports whether a value is made of what JSON knows."""
    if id(value) in seen:
        return False
    if isinstance(value, dict):
        return all(isinstance(k, str) and _encodable(v, (*seen, id(value))) for k, v in value.items())
    if isinstance(value, list):
        return all(_encodable(v, (*seen, id(value))) for v in value)
    return value is None or isinstance(value, (str, int, float, bool))


# -- paths

_STEP = re.compile(r"""\.?(?: '((?:[^'\\]|\\.)*)' | "((?:[^"\\]|\\.)*)" | \[(-?\d+)\] | \['((?:[^'\\]|\\.)*)'\] | ([^.\[\]'"$]+) )""", re.X)


def _steps(path: str) -> list[Union[str, int]]:
    """The steps of a path such as ``$.members[0].'a key'``."""
    rest = path[1:] if path.startswith("$") else path
    out: list[Union[str, int]] = []
    pos = 0
    while pos < len(rest):
        m = _STEP.match(rest, pos)
        if m is None:
            raise ValueError(f"{path!r} is not a path: it can not be read from {rest[pos:]!r} on")
        single, double, index, bracket, name = m.groups()
        if index is not None:
            out.append(int(index))
        elif name is not None:
            out.append(name.strip())
        else:
            quoted = single if single is not None else double if double is not None else bracket
            out.append(re.sub(r"\\(.)", r"\1", quoted))
        pos = m.end()
    return out


def update_path(target: Any, path: str, value: object) -> Any:
    """Puts a value at a path below target and returns target, or the value itself when the path is ``$``."""
    steps = _steps(path)
    if not steps:
        return value
    at = target
    for step in steps[:-1]:
        at = at[step]
    at[steps[-1]] = value
    return target


# -- arguments


@dataclasses.dataclass
class Argument:
    """An argument of a reference or mutator in its stored form."""

    name: str
    type: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The form in JSON."""
        out: dict[str, Any] = {"type": self.type}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, uuid.UUID):
                value = str(value)
            out[field.name] = value
        return out

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        """The value with which the reference is made again."""
        raise NotImplementedError


@dataclasses.dataclass
class LiteralArgument(Argument):
    """A plain value."""

    value: PrimitiveTypes
    type: ClassVar[str] = "literal"

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        return self.value


@dataclasses.dataclass
class JsonArgument(Argument):
    """A list or dict."""

    value: Any
    type: ClassVar[str] = "json"

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        return self.value


@dataclasses.dataclass
class ReferenceArgument(Argument):
    """The value of another reference of the same resource."""

    id: uuid.UUID
    type: ClassVar[str] = "reference"

    def __post_init__(self) -> None:
        if isinstance(self.id, str):
            self.id = uuid.UUID(self.id)

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        return resource.get_reference_value(self.id, logger)


@dataclasses.dataclass
class MutatedJsonArgument(Argument):
    """A list or dict with null in the places of references, and the references by their paths."""

    value: Any
    references: dict[str, ReferenceArgument]
    type: ClassVar[str] = "mjson"

    def __post_init__(self) -> None:
        self.references = {
            path: ReferenceArgument(name=r["name"], id=r["id"]) if isinstance(r, dict) else r for path, r in self.references.items()
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "name": self.name,
            "value": self.value,
            "references": {path: r.to_dict() for path, r in self.references.items()},
        }

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        value = self.value
        for path, ref in self.references.items():
            value = update_path(value, path, ref.get_arg_value(resource, logger))
        return value


@dataclasses.dataclass
class GetArgument(Argument):
    """A value of the resource itself; kept for stored resources, it has always been None."""

    dict_path_expression: str
    type: ClassVar[str] = "get"

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        return None


@dataclasses.dataclass
class PythonTypeArgument(Argument):
    """One of Python's plain types."""

    value: str
    type: ClassVar[str] = "python_type"

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        if self.value not in ("str", "float", "int", "bool"):
            raise TypeError(f"{self.value} is not one of the types that a reference can have as an argument")
        return getattr(builtins, self.value)


@dataclasses.dataclass
class ResourceArgument(Argument):
    """The resource itself."""

    id: str
    type: ClassVar[str] = "resource"

    def get_arg_value(self, resource: Resource, logger: LoggerABC) -> object:
        if resource.id.resource_str() != self.id:
            raise Exception(f"This resource refers to another resource {self.id} instead of itself {resource.id.resource_str()}")
        return resource


ArgumentTypes = Argument

_ARGUMENTS: dict[str, type[Argument]] = {
    cls.type: cls
    for cls in (
        LiteralArgument,
        JsonArgument,
        ReferenceArgument,
        MutatedJsonArgument,
        GetArgument,
        PythonTypeArgument,
        ResourceArgument,
    )
}


def _argument(data: Union[Argument, Mapping[str, Any]]) -> Argument:
    if isinstance(data, Argument):
        return data
    cls = _ARGUMENTS.get(data.get("type", ""))
    if cls is None:
        raise ValueError(f"there is no kind of argument named {data.get('type')!r}")
    names = {field.name for field in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in data.items() if k in names})


def compute_reference_or_mutator_id(reference_type: str, args: list[Argument]) -> uuid.UUID:
    """The identity of a reference or mutator: equal ones have the same."""
    data = json.dumps({"type": reference_type, "args": args}, default=_jsonable, sort_keys=True)
    # uuid.uuid3 takes bytes from Python 3.12 on only.
    digest = hashlib.md5(uuid.NAMESPACE_OID.bytes + hashlib.md5(data.encode()).digest()).digest()
    return uuid.UUID(bytes=digest[:16], version=3)


class SerializedReferenceLike:
    """A reference or mutator in its stored form."""

    def __init__(self, *, type: str, args: list[Any], id: Union[uuid.UUID, str, None] = None) -> None:
        self.type = type
        self.args = [_argument(a) for a in args]
        self.id = uuid.UUID(id) if isinstance(id, str) else id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SerializedReferenceLike) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.type, self.id))

    def to_dict(self) -> dict[str, Any]:
        """The form in JSON."""
        return {"type": self.type, "args": [a.to_dict() for a in self.args]}

    model_dump = to_dict


class ReferenceModel(SerializedReferenceLike):
    """A reference in its stored form."""

    id: uuid.UUID

    def to_dict(self) -> dict[str, Any]:
        return {"id": str(self.id), **super().to_dict()}

    model_dump = to_dict


class MutatorModel(SerializedReferenceLike):
    """A mutator in its stored form. Its identity is not part of it."""

    def get_id(self) -> uuid.UUID:
        """The identity."""
        if self.id is None:
            self.id = compute_reference_or_mutator_id(self.type, self.args)
        return self.id


# -- references and mutators


class ReferenceLike:
    """What references and mutators have in common: their arguments are their public attributes."""

    type: ClassVar[str]

    def __init__(self) -> None:
        self._model: Optional[SerializedReferenceLike] = None
        self._model_type: Any = None

    def resolve_other(self, value: Union[Reference[S], S], logger: LoggerABC) -> S:
        """The value itself, or what the reference resolves to."""
        if isinstance(value, Reference):
            return typing.cast("S", value.get(logger))
        return value

    @classmethod
    def deserialize(cls, ref: SerializedReferenceLike, resource: Resource, logger: LoggerABC) -> Any:
        """Makes a reference or mutator of a resource from its stored form."""
        return cls(**{arg.name: arg.get_arg_value(resource, logger) for arg in ref.args})

    def serialize(self) -> SerializedReferenceLike:
        """The stored form."""
        raise NotImplementedError

    def serialize_arguments(self) -> tuple[uuid.UUID, list[Argument]]:
        """The arguments in their stored form, with the identity that follows from them."""
        from inmanta import resources

        args: list[Argument] = []
        for name, value in self.arguments.items():
            if value is None or isinstance(value, (str, int, float, bool)):
                args.append(LiteralArgument(name=name, value=value))
            elif isinstance(value, (dict, list)):
                collector = resources.ReferenceSubCollector()
                cleaned = collector.collect_references(value, "$")
                if not _encodable(cleaned):
                    raise ValueError(f"The {name} attribute of {self!r} is not json serializable: {value}")
                if collector.references:
                    inner = {path: ReferenceArgument(name=path, id=model.id) for path, model in collector.replacements.items()}
                    args.append(MutatedJsonArgument(name=name, value=cleaned, references=inner))
                else:
                    args.append(JsonArgument(name=name, value=cleaned))
            elif isinstance(value, Reference):
                args.append(ReferenceArgument(name=name, id=value.serialize().id))
            elif isinstance(value, resources.Resource):
                args.append(ResourceArgument(name=name, id=value.id.resource_str()))
            elif isinstance(value, type) and value in (str, float, int, bool):
                args.append(PythonTypeArgument(name=name, value=value.__name__))
            else:
                raise TypeError(f"Unable to serialize argument `{name}` of `{self!r}` with value {value}")
        return compute_reference_or_mutator_id(self.type, args), args

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by name."""
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, ReferenceLike) and self.arguments == other.arguments

    __hash__ = None  # type: ignore[assignment]


class Mutator(ReferenceLike):
    """Changes a resource before it is deployed."""

    def run(self, logger: LoggerABC) -> None:
        """Makes the change."""
        raise NotImplementedError

    def serialize(self) -> MutatorModel:
        if not isinstance(self._model, MutatorModel):
            ident, args = self.serialize_arguments()
            self._model = MutatorModel(type=self.type, args=args, id=ident)
        return self._model


class Reference(ReferenceLike, Generic[T]):
    """A value that is known only when :meth:`resolve` is called, at the agent."""

    def __init__(self) -> None:
        super().__init__()
        self._reference_value: Any = None
        self._reference_value_cached = False
        self._serializing = False

    @classmethod
    def get_reference_type(cls) -> Any:
        """The Python type of the value: T of Reference[T], or None if the class does not say."""
        for base in getattr(cls, "__orig_bases__", ()):
            if typing.get_origin(base) is Reference:
                return typing.get_args(base)[0]
        return None

    @classmethod
    def is_dataclass_reference(cls) -> bool:
        """Reports whether the value is a dataclass."""
        return dataclasses.is_dataclass(cls.get_reference_type())

    def resolve(self, logger: LoggerABC) -> T:
        """Finds the value. To be implemented; called at the agent, once per resource."""
        raise NotImplementedError

    def get(self, logger: LoggerABC) -> T:
        """The value, resolved the first time."""
        if not self._reference_value_cached:
            self._reference_value = self.resolve(logger)
            self._reference_value_cached = True
        else:
            logger.debug("Using cached value for reference %(reference)s", reference=repr(self))
        return typing.cast("T", self._reference_value)

    def serialize(self) -> ReferenceModel:
        if isinstance(self._model, ReferenceModel):
            return self._model
        if self._serializing:
            raise ReferenceCycleException(self)
        self._serializing = True
        try:
            ident, args = self.serialize_arguments()
        except ReferenceCycleException as e:
            e.add(self)
            raise
        finally:
            self._serializing = False
        self._model = ReferenceModel(id=ident, type=self.type, args=args)
        return self._model

    def __bool__(self) -> bool:
        raise NotImplementedError(f"{self!r} is an inmanta reference, not a boolean.")


RC = TypeVar("RC", bound="type[Reference[Any]]")
MC = TypeVar("MC", bound="type[Mutator]")


class reference:
    """Registers a class of references under a name: ``@reference("m::Name")``."""

    _reference_classes: ClassVar[dict[str, type[Reference[Any]]]] = {}

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def add_reference(cls, name: str, reference_type: type[Reference[Any]]) -> None:
        """Registers a class."""
        cls._reference_classes[name] = reference_type

    def __call__(self, cls: RC) -> RC:
        type(self)._reference_classes.pop(self.name, None)
        type(self)._reference_classes[self.name] = cls
        cls.type = self.name
        return cls

    @classmethod
    def get_class(cls, name: str) -> type[Reference[Any]]:
        """The class of a name; raises ReferenceMissingError."""
        if name not in cls._reference_classes:
            raise ReferenceMissingError(f"There is no reference class registered with name {name}")
        return cls._reference_classes[name]

    @classmethod
    def reset(cls) -> None:
        """Forgets all but the classes of this package."""
        cls._reference_classes = {k: v for k, v in cls._reference_classes.items() if k.startswith("core::")}

    @classmethod
    def get_references(cls) -> Iterator[tuple[str, type[Reference[Any]]]]:
        """All names with their classes."""
        return iter(cls._reference_classes.items())


class mutator:
    """Registers a class of mutators under a name: ``@mutator("m::Name")``."""

    _mutator_classes: ClassVar[dict[str, type[Mutator]]] = {}

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def add_mutator(cls, name: str, mutator_type: type[Mutator]) -> None:
        """Registers a class."""
        cls._mutator_classes[name] = mutator_type

    def __call__(self, cls: MC) -> MC:
        type(self)._mutator_classes.pop(self.name, None)
        type(self)._mutator_classes[self.name] = cls
        cls.type = self.name
        return cls

    @classmethod
    def get_class(cls, name: str) -> type[Mutator]:
        """The class of a name; raises MutatorMissingError."""
        if name not in cls._mutator_classes:
            raise MutatorMissingError(f"There is no mutator class registered with name {name}")
        return cls._mutator_classes[name]

    @classmethod
    def reset(cls) -> None:
        """Forgets all but the classes of this package."""
        cls._mutator_classes = {k: v for k, v in cls._mutator_classes.items() if k.startswith("core::")}

    @classmethod
    def get_mutators(cls) -> Iterator[tuple[str, type[Mutator]]]:
        """All names with their classes."""
        return iter(cls._mutator_classes.items())


@reference("core::AttributeReference")
class AttributeReference(Reference[T]):
    """The value of one attribute of a dataclass, which may be a reference itself."""

    def __init__(self, reference: Any, attribute_name: str) -> None:
        super().__init__()
        self.attribute_name = attribute_name
        self.reference = reference

    def resolve(self, logger: LoggerABC) -> T:
        return typing.cast("T", getattr(self.resolve_other(self.reference, logger), self.attribute_name))


@mutator("core::Replace")
class ReplaceValue(Mutator):
    """Puts the value of a reference into a resource. destination is the path within it."""

    def __init__(self, resource: Resource, value: Reference[Any], destination: str) -> None:
        super().__init__()
        self.resource = resource
        self.value = value
        self.destination = destination

    def run(self, logger: LoggerABC) -> None:
        update_path(self.resource, self.destination, self.resolve_other(self.value, logger))


def maybe_reference(value: object) -> bool:
    """Reports whether a value can say which reference it stands for."""
    return hasattr(value, "unwrap_reference")


def unwrap_reference(value: object) -> Optional[Reference[Any]]:
    """The reference that a value is or stands for, or None."""
    if isinstance(value, Reference):
        return value
    unwrap = getattr(value, "unwrap_reference", None)
    return unwrap() if callable(unwrap) else None


def is_reference_of(instance: Optional[object], type_class: type[object]) -> bool:
    """Reports whether something is a reference to a value of a type."""
    return isinstance(instance, Reference) and instance.get_reference_type() == type_class
