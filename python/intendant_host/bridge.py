"""The compile that is being served: what the package inmanta asks it for, and the values that cross.

Values cross as JSON. Plain values and lists are themselves; everything else is an object with one key that begins with ``$``::

    {"$d": [key, value, ...]}                 a dict
    {"$i": [serial, type]}                    an instance; type is the number of its entity
    {"$u": n}                                 an unknown value by its number; from here also {"$u": [source]} for a new one
    {"$r": [number, type, args, model]}       a reference; the number is 0 when it was not made here
    {"$f": "nan"}                             a float that JSON has no form for
    {"$p": n}                                 an object of Python by its number; from here {"$p": [n, class, str, repr]}
    {"$z": 0}                                 null inside a list or dict
    {"$t": "str"}                             a type of Python, as an argument of a reference
    {"$n": [entity, name, value, ...]}        a new instance, made of a dataclass
    {"$def": 1}                               an argument that was left out
    {"$o": 1}                                 an optional relation without a value

A message may have, besides its values, ``t``: entities that it is the first to mention, each [number, name, attributes, ancestors,
is a dataclass], and ``a``: attributes that are known, as [serial, type, name, value, ...] per instance.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import inspect
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

from inmanta import ast, plugins, references, resources
from inmanta.ast import attribute, entity
from inmanta.ast import type as asttype
from inmanta.execute import proxy, runtime
from inmanta.execute.util import NoneValue, Unknown
from inmanta.protocol import endpoints
from inmanta.protocol.common import Result
from intendant_host import environ, wire
from intendant_host.pairing import dataclass_of_entity, hints_of, without_references

PACKAGE = "inmanta_plugins"


class Host:
    """The state of a compile in this process, and what the package asks it for."""

    def __init__(self, peer: wire.Peer) -> None:
        self.peer = peer
        self.instances_by_serial: dict[int, runtime.Instance] = {}
        self.entities: dict[int, entity.Entity] = {}
        self.entity_by_name: dict[str, Any] = {}
        self.unknowns: dict[int, Unknown] = {}
        self.unknown_numbers: dict[int, int] = {}  # by identity
        self.refs: dict[int, references.Reference[Any]] = {}
        self.ref_numbers: dict[int, int] = {}
        # What models pass on but can not look into, by number, and the numbers: by value where that can be hashed, so that equal
        # objects are equal in the model, by identity otherwise.
        self.objects: list[Any] = []
        self.object_numbers: dict[Any, int] = {}
        self.dataclass_names: set[str] = set()  # the last parts of the names of entities that are dataclasses
        self.plugins: list[plugins.Plugin] = []
        self.exporter: Any = None
        self.known: set[resources.Id] = set()  # the resources that the compiler knows of
        self.made: dict[runtime.Instance, list[resources.Resource]] = {}
        self.context_stack: list[plugins.Context] = []
        self.refs_for_facts: dict[str, Any] = {}  # facts that a test pretends: {"facts": {resource: {name: value}}}

    # -- values from the compiler

    def hook(self, d: dict[str, Any]) -> Any:
        """Turns the objects of messages into values."""
        if len(d) != 1:
            return d
        ((key, v),) = d.items()
        if key == "$i":
            serial, index = v[0], v[1]
            found = self.instances_by_serial.get(serial)
            if found is None:
                found = self.instances_by_serial[serial] = runtime.Instance(serial, index)
            if len(v) > 2:
                found._reference = self.refs.get(v[2])
            return found
        if key == "$d":
            return dict(zip(v[::2], v[1::2]))
        if key == "$u":
            number, source = v
            unknown = self.unknowns.get(number)
            if unknown is None:
                unknown = self.unknowns[number] = Unknown(source)
                self.unknown_numbers[id(unknown)] = number
            return unknown
        if key == "$r":
            return self._reference(*v)
        if key == "$f":
            return float(v)
        if key == "$p":
            return self.objects[v]
        if key == "$z":
            return runtime.NULL
        if key == "$t":
            return _TYPES[v]
        if key == "$o":
            return runtime.NO_VALUE
        if key == "$def":
            return inspect.Parameter.empty
        return d

    def _reference(self, number: int, kind: str, args: dict[str, Any], model: str) -> Any:
        known = self.refs.get(number)
        if known is not None:
            return known
        made = references.reference.get_class(kind)(**args)
        made._model_type = model
        return made

    def take(self, args: dict[str, Any]) -> None:
        """Takes the entities and attributes that came along with a message."""
        for number, name, names, parents, is_dataclass in args.get("t", ()):
            found = entity.Entity(name, names, parents, is_dataclass, self._describe, self.find_type)
            self.entities[number] = found
            self.entity_by_name[name] = found
        for serial, index, *pairs in args.get("a", ()):
            instance = self.instances_by_serial.get(serial)
            if instance is None:
                instance = self.instances_by_serial[serial] = runtime.Instance(serial, index)
            instance.values.update(zip(pairs[::2], pairs[1::2]))

    # -- values for the compiler

    def encode(self, v: Any) -> Any:
        """A value in the form of messages."""
        kind = type(v)
        if v is None or kind is str or kind is bool or kind is int:
            return v
        if isinstance(v, str):
            return self._encode_text(v)
        if isinstance(v, int):
            return int.__int__(v)
        if isinstance(v, float):
            if v != v or v in (float("inf"), float("-inf")):
                return {"$f": repr(v)}
            return float.__float__(v)
        if isinstance(v, proxy.DynamicProxy):
            v = v._get_instance()
        if isinstance(v, runtime.Instance):
            return {"$i": [v.serial, v._index]}
        if isinstance(v, list):
            return [self.encode(x) for x in v]
        if isinstance(v, dict):
            out = []
            for key, x in v.items():
                if not isinstance(key, str):
                    raise ast.RuntimeException(None, f"dict keys should be strings, got {key!r} of type {type(key)} with dict value {x!r}")
                out.append(str(key))
                out.append(self.encode(x))
            return {"$d": out}
        if isinstance(v, NoneValue):
            return None
        if isinstance(v, Unknown):
            number = self.unknown_numbers.get(id(v))
            if number is not None:
                return {"$u": number}
            return {"$u": [self._source(v)]}
        if isinstance(v, references.Reference):
            return self._encode_reference(v)
        if proxy.get_inmanta_type_for_dataclass(kind) is not None:
            return self._encode_dataclass(v, kind)
        return self._encode_object(v)

    def _encode_text(self, v: str) -> str:
        text = str.__str__(v)  # that of an enumeration shows its name when it is asked by str()
        if not isinstance(v, enum.Enum) and getattr(v, "__dict__", None):
            runtime.marked[text] = v
        return text

    def _encode_object(self, v: Any) -> Any:
        try:
            key: Any = (type(v), v)
            hash(key)
        except Exception:
            key = id(v)  # the object is kept: nothing else gets its identity
        number = self.object_numbers.get(key)
        if number is None:
            number = self.object_numbers[key] = len(self.objects)
            self.objects.append(v)
        return {"$p": [number, type(v).__name__, *(_shown(form, v) for form in (str, repr))]}

    def _source(self, u: Unknown) -> str:
        source = u.source
        if isinstance(source, proxy.DynamicProxy) and isinstance(source._get_instance(), runtime.Instance):
            try:
                found = resources.to_id(source)
            except Exception:
                found = None
            return found or repr(source)
        return str(source)

    def _encode_reference(self, ref: references.Reference[Any]) -> Any:
        kind = ref.get_reference_type()
        if dataclasses.is_dataclass(kind):
            return self._encode_dataclass(ref, kind)  # type: ignore[arg-type]
        number = self.ref_numbers.get(id(ref))
        if number is None:
            number = self.ref_numbers[id(ref)] = len(self.ref_numbers) + 1
            self.refs[number] = ref
        ref.serialize()  # finds circles and arguments that can not be stored, here, where the author is at fault
        if ref._model_type is None:
            if kind is None:
                raise ast.RuntimeException(
                    None,
                    f"Could not determine the reference type of {ref}, "
                    "make sure the reference extends Reference[concrete_type] or override `get_reference_type`",
                )
            ref._model_type = plugins.text_of(kind)
        args = {k: self._argument(v) for k, v in ref.arguments.items()}
        return {"$r": [number, ref.type, args, str(ref._model_type)]}

    def _argument(self, v: Any) -> Any:
        if isinstance(v, references.Reference) and dataclasses.is_dataclass(v.get_reference_type()):
            # As an argument it stays a reference; only as a value of the model it is an instance.
            number = self.ref_numbers.setdefault(id(v), len(self.ref_numbers) + 1)
            self.refs[number] = v
            args = {k: self._argument(x) for k, x in v.arguments.items()}
            return {"$r": [number, v.type, args, plugins.text_of(v.get_reference_type())]}
        if isinstance(v, type) and v in (str, int, float, bool):
            return {"$t": v.__name__}
        if isinstance(v, list):
            return [self._argument(x) for x in v]
        if isinstance(v, dict):
            return {"$d": [y for k, x in v.items() for y in (k, self._argument(x))]}
        return self.encode(v)

    def _encode_dataclass(self, v: Any, kind: type) -> Any:
        name = plugins.entity_of_dataclass(kind)
        if name is None or self.find_type(name) is None:
            raise ast.RuntimeException(None, f"the dataclass {kind} has no associated inmanta entity")
        out: list[Any] = [name]
        hints = hints_of(kind)
        for field in dataclasses.fields(kind):
            out.append(field.name)
            if isinstance(v, references.Reference):
                part: references.Reference[Any] = references.AttributeReference(reference=v, attribute_name=field.name)
                part._model_type = plugins.text_of(without_references(hints.get(field.name, Any)))
                out.append(self._encode_reference(part))
            else:
                out.append(self.encode(getattr(v, field.name)))
        if isinstance(v, references.Reference):
            number = self.ref_numbers.setdefault(id(v), len(self.ref_numbers) + 1)
            self.refs[number] = v
            return {"$n": out, "ref": number}
        return {"$n": out}

    def to_dataclass(self, instance: runtime.Instance, cls: Optional[type]) -> Any:
        """The object of a paired dataclass that stands for an instance; raises MultiUnsetException until all of it is there."""
        if instance._python is not None:
            return instance._python
        kind = instance.type
        if cls is None or plugins.entity_of_dataclass(cls) != kind.get_full_name():
            cls = dataclass_of_entity(kind.get_full_name())
        values, unset = {}, []
        for field in dataclasses.fields(cls):
            try:
                values[field.name] = instance.read(field.name)
            except ast.UnsetException as e:
                unset.append(e.get_result_variable())
        if unset:
            raise ast.MultiUnsetException("Unset values when converting instance to dataclass", unset)
        if instance._reference is not None:
            return instance._reference
        hints = hints_of(cls)
        for name, value in values.items():
            _check_field(name, value, hints.get(name, Any))
            values[name] = plain(value)
        instance._python = cls(**values)
        return instance._python

    # -- what the package asks for (see inmanta.execute.runtime.Bridge)

    def ask(self, method: str, args: Any) -> Any:
        """Asks the compiler and takes what comes along."""
        answer = self.peer.call(method, args)
        if isinstance(answer, dict):
            self.take(answer)
        return answer

    def _value(self, answer: dict[str, Any], instance: Any, name: str) -> Any:
        if "unset" in answer:
            raise ast.UnsetException(f"Value {name} not available", Waiter(answer["unset"], instance, name), name)
        if "optional" in answer:
            return runtime.NO_VALUE
        if "missing" in answer:
            raise ast.NotFoundException(None, name, f"variable {name} not found")
        return answer.get("v")

    def read(self, instance: runtime.Instance, name: str) -> Any:
        answer = self.ask("attr", [instance.serial, name])
        value = self._value(answer, instance, name)
        instance.values[name] = value
        return value

    def type_of(self, index: int) -> entity.Entity:
        return self.entities[index]

    def places(self, instance: runtime.Instance) -> list[ast.Location]:
        return [_location(p) for p in self.ask("places", instance.serial)["v"]]

    def instances(self, name: str) -> list[runtime.Instance]:
        """All instances of an entity."""
        found: list[runtime.Instance] = self.ask("instances", name)["v"]
        return found

    def find_type(self, name: str) -> Any:
        """The type of a name, or None."""
        if name not in self.entity_by_name:
            answer = self.ask("type", name)
            if name not in self.entity_by_name:
                made: Any = None
                if answer.get("kind") == "typedef":
                    space, _, last = name.rpartition("::")
                    made = asttype.ConstraintType(ast.Namespace(space), last, asttype.TYPES.get(answer.get("base", "")))
                self.entity_by_name[name] = made
        return self.entity_by_name[name]

    def _describe(self, kind: entity.Entity) -> dict[str, Any]:
        d = self.ask("describe", kind.get_full_name())
        attributes: dict[str, Any] = {}
        for a in d["attributes"]:
            owner = self.find_type(a["entity"])
            if owner is not kind:  # what is inherited is the ancestor's own
                attributes[a["name"]] = owner.get_attribute(a["name"])
                continue
            if a.get("relation"):
                made: Any = attribute.RelationAttribute(owner, self.find_type(a["type"]), a["name"], a["low"], a.get("high"))
                for side in ("source", "target"):
                    found = [Annotation(self, kind, a["name"], side, i) for i in range(len(a.get(side) or ()))]
                    setattr(made, side + "_annotations", found)
            else:
                nullable = a["type"].endswith("?")
                made = attribute.Attribute(owner, asttype.resolve_type(a["type"]), a["name"], "[]" in a["type"], nullable)
            made.comment = a.get("comment")
            if a.get("end"):
                made._find_end = functools.partial(self._attribute, *a["end"])
            attributes[a["name"]] = made
        return {
            "parents": d["parents"],
            "children": d["children"],
            "attributes": attributes,
            "indexes": d["indexes"] or [],
            "implements": [entity.Implement(kind, *i) for i in d["implements"]],
            "comment": d.get("comment"),
            "location": (d["file"], d["line"]) if d.get("file") else None,
        }

    def _attribute(self, kind: str, name: str) -> Any:
        return self.find_type(kind).get_attribute(name)

    def validate(self, type_name: str, value: Any) -> Optional[str]:
        """Checks a value against a typedef; the text of the fault, or None."""
        fault: Optional[str] = self.ask("validate", [type_name, self.encode(value)]).get("fault")
        return fault

    def resource_id(self, instance: runtime.Instance) -> Optional[str]:
        """The id of the resource that the compiler itself makes of an instance."""
        found: Optional[str] = self.ask("resource", self.encode(instance)).get("v")
        return found

    def tell_environment(self) -> None:
        """Tells the compiler which environment variables were read: they are inputs of the compile."""
        for name in environ.taken():
            self.ask("input", ["env", name])

    def add_file(self, data: bytes) -> str:
        """Adds a content to the files of the version."""
        return str(self.ask("file", base64.b64encode(data).decode("ascii"))["v"])

    def built_in(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a plugin that is part of the compiler, with values of Python."""
        answer = self.ask("call", {"n": name, "a": [self.encode(a) for a in args], "k": {k: self.encode(v) for k, v in kwargs.items()}})
        return proxy.DynamicProxy.return_value(self._value(answer, None, name))

    # for plugins.Context

    def resolver(self) -> Any:
        """The variables that the call sees."""
        return Resolver(self)

    def scheduler(self) -> Any:
        """The scheduler of the compile."""
        return Scheduler(self)

    def compiler(self) -> Any:
        """The compiler."""
        return Compiler(self)

    def here(self) -> tuple[ast.Namespace, ast.Location]:
        """The namespace and place of the call."""
        answer = self.ask("here", None)
        return ast.Namespace(answer["namespace"]), _location(answer["location"])


class Waiter:
    """What an unset value waits for."""

    def __init__(self, number: int, instance: Any, name: str) -> None:
        self.number = number
        self.instance = instance
        self.name = name

    def get_value(self) -> Any:
        """The value; raises UnsetException when it is not there yet."""
        if self.instance is None:
            raise ast.UnsetException(f"Value {self.name} not available", self, self.name)
        return self.instance.read(self.name)

    def is_ready(self) -> bool:
        """Reports whether there is a value."""
        try:
            self.get_value()
        except ast.UnsetException:
            return False
        return True

    def __repr__(self) -> str:
        return f"{self.instance!r}.{self.name}"


class Annotation(attribute.RelationAnnotation):
    """An annotation of a relation, read when it is asked for: it is evaluated while the model runs."""

    def __init__(self, host: Host, kind: entity.Entity, name: str, side: str, index: int) -> None:
        super().__init__(None)
        self._host, self._kind, self._name, self._side, self._index = host, kind, name, side, index

    def get_value(self) -> Any:
        """The value; raises UnsetException when it is not there yet."""
        answer = self._host.ask("describe", self._kind.get_full_name())
        found = next(a for a in answer["attributes"] if a["name"] == self._name)[self._side][self._index]
        return self._host._value(found, None, self._name)


class Resolver:
    """Looks up variables as the statement of the call does."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def lookup(self, name: str, root: Any = None) -> Any:
        """The variable of a name."""
        return ScopeVariable(self._host, name)


class ScopeVariable:
    """A variable of the scope of the call."""

    def __init__(self, host: Host, name: str) -> None:
        self._host, self.name = host, name
        # A name that does not exist is reported when it is looked up.
        self._answer = host.ask("lookup", name)
        if "missing" in self._answer:
            raise ast.NotFoundException(None, name, f"variable {name} not found")

    def get_value(self) -> Any:
        """The value; raises UnsetException, or OptionalValueException when there will be none."""
        value = self._host._value(self._answer, None, self.name)
        if value is runtime.NO_VALUE:
            raise ast.OptionalValueException(None, self.name)
        return value

    @property
    def value(self) -> Any:
        """The value; see get_value."""
        return self.get_value()

    def is_ready(self) -> bool:
        """Reports whether there is a value."""
        return "unset" not in self._answer


class Scheduler:
    """The types of the compile."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get_types(self) -> dict[str, Any]:
        """All types by qualified name."""
        return TypeTable(self._host)


class TypeTable(dict):  # type: ignore[type-arg]
    """The types of the compile by qualified name, looked up when they are asked for."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._names: list[str] = host.ask("types", None)["v"]

    def __missing__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        found = self._host.find_type(name)
        self[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def get(self, name: str, default: Any = None) -> Any:
        """A type, or default."""
        return self[name] if name in self._names else default

    def keys(self) -> Any:
        """The names."""
        return list(self._names)

    def values(self) -> Any:
        """The types."""
        return [self[n] for n in self._names]

    def items(self) -> Any:
        """Names and types."""
        return [(n, self[n]) for n in self._names]


class BuiltIn:
    """A plugin that is part of the compiler, as a function of Python's values."""

    _context = -1

    def __init__(self, host: Host, name: str) -> None:
        self._host, self._name = host, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._host.built_in(self._name, args, kwargs)

    def call_in_context(self, processed_args: plugins.CheckedArgs, **_: Any) -> Any:
        """Calls the plugin and returns a value of the language."""
        return proxy.DynamicProxy.unwrap(self(*processed_args.args, **processed_args.kwargs))

    def get_full_name(self) -> str:
        """The qualified name."""
        return self._name


class Compiler:
    """The plugins of the compile."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.refs: dict[str, Any] = host.refs_for_facts

    def get_plugins(self) -> dict[str, Any]:
        """All plugins by qualified name, as functions of Python's values."""
        out: dict[str, Any] = {}
        for name in self._host.ask("plugins", None)["v"]:
            out[name] = BuiltIn(self._host, name)
        for p in self._host.plugins:
            out[p.get_full_name()] = p
        return out


def plain(value: Any) -> Any:
    """A value with None for each null in it."""
    if isinstance(value, NoneValue):
        return None
    if isinstance(value, list):
        return [plain(x) for x in value]
    if isinstance(value, dict):
        return {k: plain(x) for k, x in value.items()}
    return value


def _check_field(name: str, value: Any, hint: Any) -> None:
    """Raises an exception for a value of the model that the field of a dataclass can not have."""
    for part in value if isinstance(value, list) else (value,):
        if isinstance(part, Unknown):
            raise ast.TypingException(
                None,
                f"Encountered unknown in field {name!r}. Unknowns are not currently supported in dataclass instances in the Python domain.",
            )
        if isinstance(part, references.Reference) and "Reference[" not in (text := plugins.text_of(hint)):
            message = (
                f"References are not allowed for values of type `{text}`."
                " To work with references, explicitly declare support with a `... | Reference[...]` annotation."
            )
            raise ast.UnexpectedReference(reference=part, message=message)


_TYPES = {t.__name__: t for t in (str, int, float, bool)}

_MAX_SHOWN = 1 << 16
"""How much of the text of an object is shown, in characters."""


def _shown(form: Callable[[Any], str], v: Any) -> str:
    try:
        text = form(v)
    except Exception:
        text = object.__repr__(v)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def _location(text: str) -> ast.Location:
    file, _, line = text.rpartition(":")
    return ast.Location(file, int(line)) if line.isdigit() else ast.Location(text, 1)


class Transport:
    """Answers what modules ask the server's API for and the compiler knows: facts, parameters, the environment.

    What was asked for is an input of the compile. Everything else goes to the server that is configured.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, verb: str, path: str, headers: dict[str, str], body: Optional[str], timeout: float) -> Result:
        """Makes a call; path has the query."""
        parts = urllib.parse.urlsplit(path)
        words = [urllib.parse.unquote(w) for w in parts.path.strip("/").split("/")]
        query = urllib.parse.parse_qs(parts.query)
        if words[1:] == ["v1", "parameter"] and verb == "POST":
            return Result(200, {"parameters": [], "expire": 0, "now": ""})  # each one is asked for by its name
        if words[1:3] == ["v1", "parameter"] and len(words) == 4 and verb == "GET":
            rid = query.get("resource_id", [""])[0]
            kind, name = ("fact", f"{rid}/{words[3]}") if rid else ("parameter", words[3])
            value = self._host.ask("input", [kind, name])["v"]
            if value is None:
                return Result(404, {"message": f"there is no {kind} {name}"})
            return Result(200, {"parameter": {"name": words[3], "value": value, "resource_id": rid, "source": kind}})
        if words[1:3] in (["v1", "environment"], ["v2", "environment"]) and len(words) == 4 and verb == "GET":
            name = self._host.ask("input", ["setting", "environment-name"])["v"]
            if name is not None:
                found = {"id": words[3], "name": name}
                return Result(200, {"environment": found} if words[1] == "v1" else {"data": found})
        return endpoints.UrllibTransport("compiler")(verb, path, headers, body, timeout)


_current: Optional[Host] = None


def host() -> Host:
    """The compile that is being served."""
    if _current is None:
        raise RuntimeError("no compile is being served")
    return _current


def serve(peer: wire.Peer) -> None:
    """Makes a connection the one through which the package asks."""
    global _current
    _current = Host(peer)
    runtime.marked.clear()
    runtime.bridge = _current
    endpoints.set_transport(Transport(_current))
