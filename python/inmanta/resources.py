"""Resources: what the exporter makes of instances, and what handlers get."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Optional, TypeVar

import inmanta.ast
from inmanta import references
from inmanta.execute import proxy, util
from inmanta.stable_api import stable_api

if TYPE_CHECKING:
    from inmanta.agent.handler import LoggerABC
    from inmanta.execute.runtime import Instance
    from inmanta.export import Exporter

LOGGER = logging.getLogger(__name__)

R = TypeVar("R", bound="Resource")


class ResourceException(Exception):
    """A resource is declared or used wrongly."""


@stable_api
class HostNotFoundException(Exception):
    """The host of a resource can not be reached."""

    def __init__(self, hostname: str, user: str, error: object) -> None:
        super().__init__(f"Failed to access host {hostname} as user {user} over ssh: {error}")
        self.hostname = hostname
        self.user = user
        self.error = error

    def to_dict(self) -> dict[str, object]:
        """The parts by name."""
        return {"hostname": self.hostname, "user": self.user, "error": self.error}


class ResourceNotFoundExcpetion(Exception):
    """A resource does not exist."""


@stable_api
class IgnoreResourceException(Exception):
    """Raised while fields are mapped: no resource is made of the instance."""


@stable_api
class resource:
    """Registers a class for the resources of an entity.

    agent is the path from an instance to the name of its agent, such as ``host.name``; id_attribute the field that tells resources
    of one agent apart.
    """

    _resources: ClassVar[dict[str, tuple[type[Resource], dict[str, str]]]] = {}

    def __init__(self, name: str, id_attribute: str, agent: str) -> None:
        if not isinstance(agent, str):
            raise ResourceException(f"The agent parameter has to be a string, got {agent} of type {type(agent)}")
        self._cls_name = name
        self._options = {"agent": agent, "name": id_attribute}

    def __call__(self, cls: type[R]) -> type[R]:
        if resource._resources.pop(self._cls_name, None) is not None:
            LOGGER.info("Reloading module %s", self._cls_name)
        resource._resources[self._cls_name] = (cls, self._options)
        return cls

    @classmethod
    def add_resource(cls, cls_name: str, resource_type: type[Resource], options: dict[str, str]) -> None:
        """Registers a class."""
        cls._resources[cls_name] = (resource_type, options)

    @classmethod
    def validate(cls) -> None:
        """Checks the declarations of all registered classes; raises ResourceException or RuntimeException."""
        for kind, _ in cls._resources.values():
            cls.validate_class(kind)

    @classmethod
    def validate_class(cls, kind: type[Any]) -> None:
        """Checks the declaration of one class; raises ResourceException or RuntimeException."""
        if issubclass(kind, cls):
            raise inmanta.ast.RuntimeException(
                None,
                f"Resource {kind.__module__}.{kind.__name__} is inheriting from the {cls.__module__}.{cls.__name__} decorator."
                f" Did you intend to inherit from {Resource.__module__}.{Resource.__name__} instead?",
            )
        kind.validate()

    @classmethod
    def get_entity_resources(cls) -> Iterable[str]:
        """The names of the entities with a class."""
        return cls._resources.keys()

    @classmethod
    def get_class(cls, name: str) -> tuple[Optional[type[Resource]], Optional[dict[str, str]]]:
        """The class and the options (agent, name) of an entity; (None, None) when there are none."""
        return cls._resources.get(name, (None, None))

    @classmethod
    def get_resources(cls) -> Iterator[tuple[str, type[Resource]]]:
        """The entities with their classes."""
        return ((name, kind) for name, (kind, _) in cls._resources.items())

    @classmethod
    def reset(cls) -> None:
        """Forgets all classes."""
        cls._resources = {}


def to_id(entity: proxy.DynamicProxy) -> Optional[str]:
    """The id of the resource that is made of an instance; None when no class is registered for its type."""
    kind = entity._type()
    for name in [str(kind), *kind.get_all_parent_names()]:
        cls, options = resource.get_class(name)
        if cls is not None and options is not None:
            return str(cls.object_to_id(entity, name, options["name"], options["agent"]))
    from inmanta.execute import runtime

    lookup = getattr(runtime.bridge, "resource_id", None)
    if lookup is None:
        return None
    found: Optional[str] = lookup(entity._get_instance())  # a class that is not written in Python
    return found


class ResourceMeta(type):
    """Merges the fields of a class with those of its bases, which come first."""

    @classmethod
    def _inherited(mcs, bases: tuple[type, ...]) -> list[str]:
        fields: list[str] = []
        for base in bases:
            own = base.__dict__.get("fields", ())
            if not isinstance(own, (tuple, list)):
                raise Exception(f"fields attribute of {base} should be a tuple or list")
            fields.extend(own)
            fields.extend(mcs._inherited(base.__bases__))
        return fields

    def __new__(mcs, class_name: str, bases: tuple[type, ...], dct: dict[str, Any]) -> Any:
        fields = mcs._inherited(bases)
        own = dct.get("fields", ())
        if not isinstance(own, (tuple, list)):
            raise Exception(f"fields attribute of {class_name} should be a tuple or list")
        dct["fields"] = tuple(dict.fromkeys([*fields, *own]))
        return super().__new__(mcs, class_name, bases, dct)


RESERVED_FOR_RESOURCE = {"id", "version", "model", "requires", "unknowns", "set_version", "clone", "is_type", "serialize"}


class ReferenceSubCollector:
    """Finds the references in a value and where they are."""

    def __init__(self) -> None:
        self.references: dict[uuid.UUID, references.ReferenceModel] = {}
        self.replacements: dict[str, references.ReferenceModel] = {}

    def get_references_sorted(self) -> list[references.ReferenceModel]:
        """The references in the order of their identities."""
        return [self.references[k] for k in sorted(self.references)]

    def collect_reference(self, value: object) -> None:
        """Adds a reference, and those among its arguments."""
        if isinstance(value, list):
            for v in value:
                self.collect_reference(v)
        elif isinstance(value, dict):
            for v in value.values():
                self.collect_reference(v)
        elif isinstance(value, references.Reference):
            model = value.serialize()
            if model.id in self.references:
                return
            self.references[model.id] = model
            for arg in value.arguments.values():
                self.collect_reference(arg)

    def add_reference(self, path: str, reference: references.Reference[Any]) -> None:
        """Adds a reference that was found at a path."""
        self.collect_reference(reference)
        self.replacements[path] = reference.serialize()

    def collect_references(self, value: object, path: str) -> Any:
        """The value with plain lists and dicts and None for references. Raises TypeError for what can not be stored."""
        if value is None or type(value) in _PLAIN:  # most values are
            return value
        if isinstance(value, (list, proxy.SequenceProxy)):
            items = value._allow_references() if isinstance(value, proxy.SequenceProxy) else value
            return [self.collect_references(v, f"{path}[{i}]") for i, v in enumerate(items)]
        if isinstance(value, (dict, proxy.DictProxy)):
            entries = value._allow_references() if isinstance(value, proxy.DictProxy) else value
            out = {}
            for key, v in entries.items():
                if not isinstance(key, str):
                    raise TypeError(f"the keys of a dict in a resource have to be strings, {key!r} at path {path} is none")
                quoted = key.replace("'", "\\'")
                out[key] = self.collect_references(v, f"{path}.'{quoted}'")
            return out
        if isinstance(value, references.Reference):
            self.add_reference(path, value)
            return None
        if isinstance(value, (proxy.DynamicProxy, util.Unknown)):
            raise TypeError(f"{value!r} in resource is not JSON serializable at path {path}")
        return value


_PLAIN = (str, int, bool, float)


class ReferenceCollector(ReferenceSubCollector):
    """Finds the references in the fields of a resource, with a mutator for each that puts its value there."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self.mutators: dict[uuid.UUID, references.MutatorModel] = {}
        self.resource = resource

    def get_mutators_sorted(self) -> list[references.MutatorModel]:
        """The mutators in the order of their identities."""
        return [self.mutators[k] for k in sorted(self.mutators)]

    def add_reference(self, path: str, reference: references.Reference[Any]) -> None:
        super().add_reference(path, reference)
        model = references.ReplaceValue(resource=self.resource, value=reference, destination=path).serialize()
        self.mutators[model.get_id()] = model


@stable_api
class Resource(metaclass=ResourceMeta):
    """Base of all resources.

    ``fields`` names what a resource consists of. A field is the attribute of that name unless the class has a static or class
    method ``get_<field>(exporter, entity)``, or an entry of that name in ``map``.
    """

    fields: Sequence[str] = ("send_event", "receive_events", "references", "mutators", "report_only")
    send_event: bool
    report_only: bool
    model: proxy.DynamicProxy
    map: dict[str, Callable[[Optional[Exporter], proxy.DynamicProxy], Any]]
    if TYPE_CHECKING:
        # The declared fields of subclasses.
        def __getattr__(self, name: str) -> Any: ...

    @staticmethod
    def get_send_event(_exporter: Any, obj: Any) -> bool:
        """The attribute, False if there is none."""
        try:
            return bool(obj.send_event)
        except Exception:
            return False

    @staticmethod
    def get_references(_exporter: Any, instance: Any) -> Sequence[Any]:
        """Filled when all fields are known."""
        return []

    @staticmethod
    def get_mutators(_exporter: Any, instance: Any) -> Sequence[Any]:
        """Filled when all fields are known."""
        return []

    @staticmethod
    def get_receive_events(_exporter: Any, obj: Any) -> bool:
        """The attribute, True if there is none."""
        try:
            return bool(obj.receive_events)
        except Exception:
            return True

    @staticmethod
    def get_report_only(_exporter: Any, obj: Any) -> bool:
        """The attribute, False if there is none."""
        try:
            return bool(obj.report_only)
        except Exception:
            return False

    @classmethod
    def convert_requires(cls, resources: dict[Instance, Resource], ignored_resources: set[Instance]) -> None:
        """Fills what resources require from the relations of their instances."""
        for res in resources.values():
            wanted = [x._get_instance() if isinstance(x, proxy.DynamicProxy) else x for x in res.model.requires]
            res.resource_requires = {resources[x] for x in wanted if x in resources}
            res.requires = {x.id for x in res.resource_requires}

    @classmethod
    def object_to_id(cls, model_object: Any, entity_name: str, attribute_name: str, agent_attribute: str) -> Id:
        """The id of the resource that is made of an instance. Raises UnknownException when it depends on an unknown value."""
        agent: Any = model_object
        steps = agent_attribute.split(".")
        for i, step in enumerate(steps):
            try:
                if isinstance(agent, list):
                    agent = agent[0]
                agent = getattr(agent, step)
            except inmanta.ast.UnexpectedReference:
                raise ResourceException(
                    "Encountered reference in resource's agent attribute. Agent attribute values can not be references."
                    f" Encountered at attribute {'.'.join(steps[: i + 1])!r} of resource instance {model_object}"
                ) from None
            except (ResourceException, inmanta.ast.UnsetException, inmanta.ast.UnknownException):
                raise
            except Exception as e:
                raise Exception(
                    f"Unable to get the name of agent {model_object} belongs to. In path {agent_attribute}, '{step}' does not exist"
                ) from e
        try:
            value = cls.map_field(None, entity_name, attribute_name, model_object)
        except inmanta.ast.UnexpectedReference:
            raise ResourceException(
                "Encountered reference in resource's id attribute. Id attribute values can not be references."
                f" Encountered at attribute {attribute_name!r} of resource instance {model_object}"
            ) from None
        if isinstance(value, util.Unknown):
            raise inmanta.ast.UnknownException(value)
        if not isinstance(agent, str):
            raise ResourceException(f"The agent attribute should lead to a string, got {agent} of type {type(agent)}")
        return Id(entity_name, agent, attribute_name, str(value))

    @classmethod
    def map_field(
        cls,
        exporter: Optional[Exporter],
        entity_name: str,
        field_name: str,
        model_object: Any,
        reference_collector: Optional[ReferenceCollector] = None,
    ) -> Any:
        """The value of a field. Without a collector it may be or have references."""
        try:
            mapper = getattr(cls, "get_" + field_name, None)
            if mapper is None and hasattr(cls, "map"):
                mapper = cls.map.get(field_name)
            value = getattr(model_object, field_name) if mapper is None else mapper(exporter, model_object)
            if reference_collector is not None:
                value = reference_collector.collect_references(value, field_name)
            return value
        except IgnoreResourceException:
            raise
        except inmanta.ast.UnknownException as e:
            return e.unknown
        except inmanta.ast.PluginException as e:
            raise inmanta.ast.ExplicitPluginException(
                None, f"Failed to get attribute '{field_name}' for export on '{entity_name}'", e
            ) from e
        except inmanta.ast.CompilerException:
            raise
        except Exception as e:
            raise inmanta.ast.ExternalException(None, f"Failed to get attribute '{field_name}' for export on '{entity_name}'", e) from e

    @classmethod
    def create_from_model(cls, exporter: Exporter, entity_name: str, model_object: Any) -> Resource:
        """Makes the resource of an instance."""
        kind, options = resource.get_class(entity_name)
        if kind is None or options is None:
            raise TypeError(f"No resource class registered for entity {entity_name}")
        made = kind(kind.object_to_id(model_object, entity_name, options["name"], options["agent"]))
        collector = ReferenceCollector(made)
        with proxy.exportcontext:
            values = {f: kind.map_field(exporter, entity_name, f, model_object, collector) for f in kind.fields}
        values["references"] = collector.get_references_sorted()
        values["mutators"] = collector.get_mutators_sorted()
        made.populate(values)
        made.model = model_object
        return made

    @classmethod
    def deserialize(cls, obj_map: Mapping[str, Any]) -> Resource:
        """Makes a resource of its stored form. Raises TypeError when no class is registered for its type."""
        ident = Id.parse_id(obj_map["id"])
        kind, _ = resource.get_class(ident.entity_type)
        if kind is None:
            raise TypeError(f"No resource class registered for entity {ident.entity_type}")
        values = {"receive_events": True, "report_only": False, **obj_map}
        if values.get("mutators") is None or values.get("references") is None:
            values["mutators"], values["references"] = [], []
        values.pop("version", None)
        made = kind(ident)
        made.populate(values)
        return made

    @classmethod
    def validate(cls) -> None:
        """Checks the names of the fields."""
        for field in cls.fields:
            if field.startswith("_"):
                raise ResourceException(f"Resource field names can not start with _, reported in {cls.__name__}")
            if field in RESERVED_FOR_RESOURCE:
                raise ResourceException(f"Resource {field} is a reserved keyword and not a valid field name, reported in {cls.__name__}")

    def __init__(self, _id: Id) -> None:
        self.id = _id
        self.requires: set[Id] = set()
        self.resource_requires: set[Resource] = set()
        self.unknowns: set[str] = set()
        for field in self.__class__.fields:
            setattr(self, field, None)
        self._references_model: dict[uuid.UUID, references.ReferenceModel] = {}
        self._references: dict[uuid.UUID, references.Reference[Any]] = {}
        self._resolved = False

    def get(self, key: str, default: Any = None) -> Any:
        """A field, or default if there is none of that name."""
        return getattr(self, key) if key in self.fields else default

    def __getitem__(self, key: str) -> Any:
        if key not in self.fields:
            raise KeyError(key)
        return getattr(self, key)

    def __contains__(self, item: str) -> bool:
        return item in self.fields

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self.fields:
            raise KeyError(key)
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        raise Exception("Deleting fields is not allowed on a resource")

    def clear(self) -> None:
        """Always fails: fields stay."""
        raise Exception("Deleting fields is not allowed on a resource")

    def items(self) -> Iterator[tuple[str, Any]]:
        """The fields with their values."""
        return ((key, getattr(self, key)) for key in self.fields)

    def get_reference_value(self, id: uuid.UUID, logger: LoggerABC) -> Any:
        """The value of a reference of this resource."""
        if id not in self._references:
            if id not in self._references_model:
                raise KeyError(f"The reference with id {id} is not defined in resource {self.id}")
            model = self._references_model[id]
            self._references[id] = references.reference.get_class(model.type).deserialize(model, self, logger)
        return self._references[id].get(logger)

    def resolve_all_references(self, logger: LoggerABC) -> None:
        """Puts the values of all references into the fields; once."""
        if self._resolved:
            return
        for ref in self.references or ():
            model = ref if isinstance(ref, references.ReferenceModel) else references.ReferenceModel(**ref)
            self._references_model.setdefault(model.id, model)
        for mut in self.mutators or ():
            stored = mut if isinstance(mut, references.MutatorModel) else references.MutatorModel(**mut)
            references.mutator.get_class(stored.type).deserialize(stored, self, logger).run(logger)
        self._resolved = True

    def populate(self, fields: Mapping[str, Any], force_fields: bool = False) -> None:
        """Sets all fields; raises Exception when one is missing."""
        for field in self.__class__.fields:
            if field not in fields and not force_fields:
                raise Exception(f"Resource with id {fields.get('id', self.id)} does not have field {field}")
            setattr(self, field, fields[field])
        for required in fields.get("requires", ()):
            self.requires.add(Id.parse_id(required))

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, util.Unknown):
            self.unknowns.add(name)
        self.__dict__[name] = value

    def __str__(self) -> str:
        return str(self.id)

    def __repr__(self) -> str:
        return str(self)

    def clone(self: R, **kwargs: Any) -> R:
        """A copy with some attributes set. References are resolved once for all copies."""
        made: Any = Resource.deserialize(self.serialize())
        for name, value in kwargs.items():
            setattr(made, name, value)
        made._resolved = self._resolved
        made._references = self._references
        made._references_model = self._references_model
        return made  # type: ignore[no-any-return]

    def serialize(self) -> dict[str, Any]:
        """The stored form."""
        out: dict[str, Any] = {field: getattr(self, field) for field in self.__class__.fields}
        out["requires"] = [str(x) for x in self.requires]
        out["id"] = self.id.resource_version_str()
        return out

    def is_type(self, type_name: str) -> bool:
        """Reports whether the instance is of exactly that type."""
        model = getattr(self, "model", None)
        if model is None:  # made by the compiler itself, or read again by an agent
            return str(self.id.entity_type) == type_name
        return str(model._type()) == type_name


@stable_api
class PurgeableResource(Resource):
    """A resource that can be there or not."""

    fields: Sequence[str] = ("purged", "purge_on_delete")
    purged: bool
    purge_on_delete: bool


@stable_api
class DiscoveryResource(Resource):
    """A resource that finds others."""

    fields: Sequence[str] = ()


@stable_api
class ManagedResource(Resource):
    """A resource that is left out when ``managed`` is false."""

    fields: Sequence[str] = ("managed",)
    managed: bool

    @staticmethod
    def get_managed(exporter: Any, obj: Any) -> bool:
        """The attribute; no resource is made when it is false."""
        if not obj.managed:
            raise IgnoreResourceException()
        return bool(obj.managed)


_ID = r"(?P<id>(?P<type>(?P<ns>[\w-]+(::[\w-]+)*)::(?P<class>[\w-]+))\[(?P<hostname>[^,]+),(?P<attr>[^=]+)=(?P<value>[^\]]+)\])"
PARSE_ID_REGEX = re.compile("^" + _ID + r"(,v=(?P<version>[0-9]+))?$")
PARSE_RVID_REGEX = re.compile("^" + _ID + r",v=(?P<version>[0-9]+)$")


@stable_api
class Id:
    """The id of a resource: ``type[agent,attribute=value]``, with ``,v=version`` behind it for one version."""

    def __init__(self, entity_type: str, agent_name: str, attribute: str, attribute_value: str, version: int = 0) -> None:
        for value, label, forbidden in (
            (agent_name, "agent name", ","),
            (attribute, "attribute name", ",="),
            (attribute_value, "attribute value", "]"),
        ):
            for char in forbidden:
                if char in value:
                    raise ValueError(f"Invalid {label} '{value}': cannot contain '{char}'.")
        self._entity_type = entity_type
        self._agent_name = agent_name
        self._attribute = attribute
        self._attribute_value = attribute_value
        self._version = version

    def to_dict(self) -> dict[str, Any]:
        """The parts by name."""
        return {
            "entity_type": self._entity_type,
            "agent_name": self._agent_name,
            "attribute": self._attribute,
            "attribute_value": self._attribute_value,
            "version": self._version,
        }

    def get_entity_type(self) -> str:
        """The qualified name of the type."""
        return self._entity_type

    def get_agent_name(self) -> str:
        """The name of the agent."""
        return self._agent_name

    def get_attribute(self) -> str:
        """The name of the attribute that tells resources of one agent apart."""
        return self._attribute

    def get_attribute_value(self) -> str:
        """The value of that attribute."""
        return self._attribute_value

    def get_version(self) -> int:
        """The version, 0 for none."""
        return self._version

    def set_version(self, version: int) -> None:
        """Sets the version; raises AttributeError when there is another one."""
        if self._version > 0 and version != self._version:
            raise AttributeError("can't set attribute version")
        self._version = version

    entity_type = property(get_entity_type)
    agent_name = property(get_agent_name)
    attribute = property(get_attribute)
    attribute_value = property(get_attribute_value)
    version = property(get_version, set_version)

    def get_inmanta_module(self) -> str:
        """The module of the type."""
        return self._entity_type.partition("::")[0]

    def copy(self, *, version: int) -> Id:
        """The id of the same resource in another version."""
        return Id(self._entity_type, self._agent_name, self._attribute, self._attribute_value, version)

    def resource_str(self) -> str:
        """The id without a version."""
        return f"{self._entity_type}[{self._agent_name},{self._attribute}={self._attribute_value}]"

    def resource_version_str(self) -> str:
        """The id with its version."""
        return f"{self.resource_str()},v={self._version}"

    def __str__(self) -> str:
        return self.resource_version_str() if self._version > 0 else self.resource_str()

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def get_instance(self) -> Optional[Resource]:
        """An empty resource with this id; None when no class is registered for the type."""
        cls, _ = resource.get_class(self._entity_type)
        if cls is None:
            return None
        made = cls(self)
        setattr(made, self._attribute, self._attribute_value)
        return made

    @classmethod
    def parse_resource_version_id(cls, resource_id: str) -> Id:
        """Reads an id that must have a version; raises ValueError."""
        parsed = cls.parse_id(resource_id)
        if parsed.get_version() == 0:
            raise ValueError(f"Version is missing from resource id: {resource_id}")
        return parsed

    @classmethod
    def parse_id(cls, resource_id: str, version: Optional[int] = None) -> Id:
        """Reads an id; raises ValueError. version replaces the one in the text."""
        m = PARSE_ID_REGEX.search(resource_id)
        if m is None:
            raise ValueError(f"Invalid id for resource {resource_id}")
        if version is None:
            version = int(m.group("version") or 0)
        return Id(m.group("type"), m.group("hostname"), m.group("attr"), m.group("value"), version)

    @classmethod
    def is_resource_version_id(cls, value: str) -> bool:
        """Reports whether a text is an id with a version."""
        return PARSE_RVID_REGEX.search(value) is not None

    @classmethod
    def is_resource_id(cls, value: str) -> bool:
        """Reports whether a text is an id."""
        return PARSE_ID_REGEX.search(value) is not None

    def is_resource_version_id_obj(self) -> bool:
        """Reports whether this id has a version."""
        return self._version != 0

    @classmethod
    def set_version_in_id(cls, id_str: str, new_version: int) -> str:
        """The text of an id with another version."""
        return cls.parse_id(id_str).copy(version=new_version).resource_version_str()
