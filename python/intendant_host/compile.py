"""Serves one compile: loads the Python code of modules, runs plugins, and makes resources of instances.

Values cross as JSON. Plain values and lists are themselves; everything else is an object with one key that begins with ``$``::

    {"$d": [key, value, ...]}                 a dict
    {"$i": [serial, type]}                    an instance; type is the number of its entity
    {"$u": n}                                 an unknown value by its number; from here also {"$u": [source]} for a new one
    {"$r": [number, type, args, model]}       a reference; the number is 0 when it was not made here
    {"$f": "nan"}                             a float that JSON has no form for
    {"$n": [entity, name, value, ...]}        a new instance, made of a dataclass
    {"$def": 1}                               an argument that was left out
    {"$o": 1}                                 an optional relation without a value

A message may have, besides its values, ``t``: entities that it is the first to mention, each [number, name, attributes, ancestors,
is a dataclass], and ``a``: attributes that are known, as [serial, type, name, value, ...] per instance.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime
import enum
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import logging
import os
import sys
import traceback
import types
import uuid
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from inmanta import ast, compiler, export, module, plugins, references, resources
from inmanta.ast import attribute, entity
from inmanta.ast import type as asttype
from inmanta.config import Config
from inmanta.execute import proxy, runtime
from inmanta.execute.util import NoneValue, Unknown
from intendant_host import wire

PACKAGE = "inmanta_plugins"


# -- importing


class ModuleFinder(importlib.abc.MetaPathFinder):
    """Finds the Python code of modules in the directories that the compiler names.

    An installed module is found by Python itself; the finder comes first, so that what the compiler reads and what Python imports
    is the same.
    """

    def __init__(self, dirs: dict[str, str]) -> None:
        self.dirs = dirs

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        parts = fullname.split(".")
        if parts[0] != PACKAGE:
            return None
        if len(parts) == 1:
            # A namespace package whose parts are found one by one; installed ones that the model does not import as well.
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [os.path.join(p, PACKAGE) for p in sys.path if os.path.isdir(os.path.join(p, PACKAGE))]
            return spec
        if len(parts) != 2 or parts[1] not in self.dirs:
            return None
        top = self.dirs[parts[1]]
        init = os.path.join(top, "__init__.py")
        if not os.path.isfile(init):
            init = os.path.join(top, "__init__.pyc")
        if not os.path.isfile(init):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [top]
            return spec
        return importlib.util.spec_from_file_location(fullname, init, submodule_search_locations=[top])


# -- the bridge


class _Wait(Exception):
    """Carries out what an unset value waits for; never seen by authors."""


class Host:
    """The state of a compile in this process, and what the package asks it for."""

    def __init__(self, peer: wire.Peer) -> None:
        self.peer = peer
        self.instances_by_serial: dict[int, runtime.Instance] = {}
        self.entities: dict[int, entity.Entity] = {}
        self.entity_by_name: dict[str, Any] = {}
        self.unknowns: dict[int, Unknown] = {}
        self.refs: dict[int, references.Reference[Any]] = {}
        self.ref_numbers: dict[int, int] = {}
        self.plugins: list[plugins.Plugin] = []
        self.exporter: Any = None
        self.made: dict[runtime.Instance, list[resources.Resource]] = {}
        self.context_stack: list[plugins.Context] = []

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
            return unknown
        if key == "$r":
            return self._reference(*v)
        if key == "$f":
            return float(v)
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
        if v is None or isinstance(v, (str, bool)):
            return str(v) if type(v) is not str and isinstance(v, str) else v
        if isinstance(v, enum.Enum) and isinstance(v.value, (int, float)):
            return self.encode(v.value)
        if isinstance(v, int):
            return int(v)
        if isinstance(v, float):
            if v != v or v in (float("inf"), float("-inf")):
                return {"$f": repr(v)}
            return float(v)
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
                    raise ast.RuntimeException(
                        None, f"dict keys should be strings, got {key!r} of type {type(key)} with dict value {x!r}"
                    )
                out.append(str(key))
                out.append(self.encode(x))
            return {"$d": out}
        if isinstance(v, NoneValue):
            return None
        if isinstance(v, Unknown):
            for number, known in self.unknowns.items():
                if known is v:
                    return {"$u": number}
            return {"$u": [self._source(v)]}
        if isinstance(v, references.Reference):
            return self._encode_reference(v)
        if dataclasses.is_dataclass(v) and not isinstance(v, type):
            return self._encode_dataclass(v, type(v))
        if isinstance(v, type) and v in (str, int, float, bool):
            return {"$d": ["$python_type", v.__name__]}
        raise ast.RuntimeException(
            None, f"a value of the Python type {type(v).__module__}.{type(v).__qualname__} has no equivalent in the model: {v!r:.200}"
        )

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
            ref._model_type = plugins.signature_of(kind).text
        args = {k: self._argument(v) for k, v in ref.arguments.items()}
        return {"$r": [number, ref.type, args, str(ref._model_type)]}

    def _argument(self, v: Any) -> Any:
        if isinstance(v, references.Reference) and dataclasses.is_dataclass(v.get_reference_type()):
            # As an argument it stays a reference; only as a value of the model it is an instance.
            number = self.ref_numbers.setdefault(id(v), len(self.ref_numbers) + 1)
            self.refs[number] = v
            args = {k: self._argument(x) for k, x in v.arguments.items()}
            return {"$r": [number, v.type, args, plugins.signature_of(v.get_reference_type()).text]}
        if isinstance(v, list):
            return [self._argument(x) for x in v]
        if isinstance(v, dict):
            return {"$d": [y for k, x in v.items() for y in (k, self._argument(x))]}
        return self.encode(v)

    def _encode_dataclass(self, v: Any, kind: type) -> Any:
        name = plugins.entity_of_dataclass(kind)
        if name is None or self.find_type(name) is None:
            raise ast.RuntimeException(None, f"the dataclass {kind.__module__}.{kind.__qualname__} has no associated inmanta entity")
        pair_dataclass(kind, self.find_type(name))
        out: list[Any] = [name]
        hints = _hints(kind)
        for field in dataclasses.fields(kind):
            out.append(field.name)
            if isinstance(v, references.Reference):
                part: references.Reference[Any] = references.AttributeReference(reference=v, attribute_name=field.name)
                part._model_type = plugins.signature_of(_plain_hint(hints.get(field.name, Any))).text
                out.append(self._encode_reference(part))
            else:
                out.append(self.encode(getattr(v, field.name)))
        if isinstance(v, references.Reference):
            number = self.ref_numbers.setdefault(id(v), len(self.ref_numbers) + 1)
            self.refs[number] = v
            return {"$n": out, "ref": number}
        return {"$n": out}

    def to_dataclass(self, instance: runtime.Instance, cls: Optional[type]) -> Any:
        """The object of a paired dataclass that stands for an instance; raises UnsetException until all of it is there."""
        if instance._python is not None:
            return instance._python
        kind = instance.type
        if cls is None or plugins.entity_of_dataclass(cls) != kind.get_full_name():
            cls = dataclass_of_entity(kind.get_full_name())
        pair_dataclass(cls, kind)
        values = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            value = instance.read(field.name)
            if isinstance(value, Unknown):
                raise ast.UnknownException(value)
            values[field.name] = value
        if instance._reference is not None:
            return instance._reference
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
            raise ast.UnsetException(f"Value {name} not available", instance, Waiter(answer["unset"], instance, name))
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
            if a.get("relation"):
                made: Any = attribute.RelationAttribute(owner, self.find_type(a["type"]), a["name"], a["low"], a.get("high"))
                made.source_annotations = [attribute.RelationAnnotation(self._annotation(x)) for x in a.get("annotations") or ()]
            else:
                nullable = a["type"].endswith("?")
                made = attribute.Attribute(owner, asttype.resolve_type(a["type"]), a["name"], "[]" in a["type"], nullable)
            made.comment = a.get("comment")
            attributes[a["name"]] = made
        for a in d["attributes"]:
            if a.get("end"):
                other, end = a["end"]
                made = attributes[a["name"]]
                if other == kind.get_full_name() and end in attributes:
                    made.end = attributes[end]
                else:
                    made.end = _LazyEnd(self, other, end)
        return {
            "parents": d["parents"],
            "children": d["children"],
            "attributes": attributes,
            "comment": d.get("comment"),
            "location": (d["file"], d["line"]) if d.get("file") else None,
        }

    def _annotation(self, v: Any) -> Any:
        with contextlib.suppress(ast.UnknownException):
            return proxy.DynamicProxy.return_value(v)
        return v

    def validate(self, type_name: str, value: Any) -> Optional[str]:
        """Checks a value against a typedef; the text of the fault, or None."""
        fault: Optional[str] = self.ask("validate", [type_name, self.encode(value)]).get("fault")
        return fault

    def resource_id(self, instance: runtime.Instance) -> Optional[str]:
        """The id of the resource that the compiler itself makes of an instance."""
        found: Optional[str] = self.ask("resource", self.encode(instance)).get("v")
        return found

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
            raise ast.UnsetException(f"Value {self.name} not available", None, self)
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


class _LazyEnd:
    """The other end of a relation, looked up when something of it is asked for."""

    def __init__(self, host: Host, kind: str, name: str) -> None:
        self.__host, self.__kind, self.name = host, kind, name

    def __getattr__(self, key: str) -> Any:
        return getattr(self.__host.find_type(self.__kind).get_attribute(self.name), key)


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
        self.refs: dict[str, Any] = {"facts": {}}

    def get_plugins(self) -> dict[str, Any]:
        """All plugins by qualified name, as functions of Python's values."""
        out: dict[str, Any] = {}
        for name in self._host.ask("plugins", None)["v"]:
            out[name] = BuiltIn(self._host, name)
        for p in self._host.plugins:
            out[p.get_full_name()] = p
        return out


def _location(text: str) -> ast.Location:
    file, _, line = text.rpartition(":")
    return ast.Location(file, int(line)) if line.isdigit() else ast.Location(text, 1)


def pair_dataclass(cls: Any, kind: Any) -> None:
    """Notes at a dataclass which entity it stands for."""
    if cls.__dict__.get("_paired_inmanta_entity") is not kind:
        cls._paired_inmanta_entity = kind


def dataclass_of_entity(name: str) -> type:
    """The dataclass that is paired with an entity by its name; raises an exception for the model when there is none."""
    *space, last = name.split("::")
    found = getattr(sys.modules.get(".".join([PACKAGE, *space])), last, None)
    if not isinstance(found, type) or not dataclasses.is_dataclass(found):
        raise ast.RuntimeException(
            None, f"The dataclass {name} defined in the model has no corresponding Python dataclass {'.'.join([PACKAGE, *space])}.{last}"
        )
    return found


def _hints(cls: type) -> dict[str, Any]:
    import typing

    try:
        return typing.get_type_hints(cls)
    except Exception:
        return dict(getattr(cls, "__annotations__", {}))


def _plain_hint(hint: Any) -> Any:
    """A type without the references that it allows besides."""
    import typing

    args = typing.get_args(hint)
    if args and typing.get_origin(hint) in plugins._UNION_ORIGINS:
        rest = [a for a in args if not (isinstance(typing.get_origin(a) or a, type) and issubclass(typing.get_origin(a) or a, references.Reference))]
        if len(rest) == 1:
            return rest[0]
        return typing.Union[tuple(rest)]
    return hint


# -- faults


def describe(exc: BaseException) -> dict[str, Any]:
    """An exception with what the compiler needs to know about it."""
    out = wire.describe(exc)
    data: dict[str, Any] = {"kind": "other"}
    if isinstance(exc, ast.UnsetException) and isinstance(exc.attribute, Waiter):
        data = {"kind": "unset", "waiters": [exc.attribute.number]}
    elif isinstance(exc, ast.MultiUnsetException) and any(isinstance(v, Waiter) for v in exc.result_variables):
        data = {"kind": "unset", "waiters": [v.number for v in exc.result_variables if isinstance(v, Waiter)]}
    elif isinstance(exc, ast.UnknownException):
        data = {"kind": "unknown"}
        with contextlib.suppress(Exception):
            data["value"] = host().encode(exc.unknown)
    elif isinstance(exc, ast.PluginException):
        data = {"kind": "plugin"}
        out["message"] = str(exc.message)
    elif isinstance(exc, ast.OptionalValueException):
        data = {"kind": "optional"}
        out["message"] = exc.get_message()
    elif isinstance(exc, wire.RemoteError):
        out["class"] = exc.error_class or out["class"]
        data = {"kind": "plugin" if exc.error_class == "PluginException" else "other"}
    elif isinstance(exc, ast.CompilerException):
        data = {"kind": "compiler"}
        text = exc.format_trace()
        out["message"] = text if len(text) < 1 << 16 else text[: 1 << 16]
        cause = exc.__cause__
        if isinstance(exc, ast.ExplicitPluginException) and isinstance(cause, ast.PluginException):
            out["message"] = f"{exc.msg}\n{cause.message}"
    data["at"] = _at(exc)
    out["data"] = data
    module_name = type(exc).__module__
    data["class"] = type(exc).__qualname__ if module_name == "builtins" else f"{module_name}.{type(exc).__qualname__}"
    out["traceback"] = _author_trace(exc)
    return out


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _author_trace(exc: BaseException) -> str:
    """The traceback without the frames of this package and of Python's own importing."""
    try:
        trace = traceback.TracebackException(type(exc), exc, exc.__traceback__)
        part: Optional[traceback.TracebackException] = trace
        while part is not None:
            kept = [f for f in part.stack if not f.filename.startswith((_OWN, "<frozen importlib")) and f.filename != importlib.__file__]
            part.stack[:] = kept
            part = part.__cause__ or part.__context__
        text = "".join(trace.format())
    except Exception:
        return ""
    return text if len(text) < 1 << 15 else text[: 1 << 14] + "\n[...]\n" + text[-(1 << 14) :]


def _at(exc: BaseException) -> Optional[list[Any]]:
    """The innermost place in an author's file: [file, line]."""
    if isinstance(exc, SyntaxError) and exc.filename:
        return [exc.filename, exc.lineno or 1]
    found = None
    tb = exc.__traceback__
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        if not file.startswith(_OWN) and not file.startswith("<frozen"):
            found = [file, tb.tb_lineno]
        tb = tb.tb_next
    return found


# -- loading


def jsonable_default(p: plugins.PluginArgument) -> bool:
    """Reports whether an argument may be left out."""
    return p.has_default


_KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}

_host: Optional[Host] = None


def host() -> Host:
    """The state of the compile."""
    if _host is None:
        raise RuntimeError("no compile is being served")
    return _host


def load(args: dict[str, Any]) -> dict[str, Any]:
    """Imports the code of all modules and tells what it registered."""
    h = host()
    os.chdir(args["project"])
    for site in args["sites"]:
        if site not in sys.path:
            sys.path.append(site)
    if args.get("environment"):
        Config.set("config", "environment", args["environment"])
    for section, name, value in args.get("settings", ()):
        Config.set(section, name, value)
    known: dict[str, module.Module] = {}
    dirs: dict[str, str] = {}
    for m in args["modules"]:
        cls = module.ModuleV2 if m["layout"] == "v2" else module.ModuleV1
        known[m["name"]] = cls(m["name"], m["dir"], m["version"], m["model"], m["plugins"])
        if m["plugins"]:
            dirs[m["name"]] = m["plugins"]
    module.Project.set(module.Project(args["project"], args.get("name", ""), known))
    if args.get("std"):
        # Modules may import functions of std although that one is not written in Python here.
        dirs.setdefault("std", os.path.join(os.path.dirname(os.path.abspath(__file__)), "std"))
    sys.meta_path.insert(0, ModuleFinder(dirs))
    importlib.invalidate_caches()
    faults = []
    caught: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for m in args["modules"]:
            for name in m["files"]:
                try:
                    importlib.import_module(name)
                except BaseException as e:
                    fault = describe(e)
                    faults.append({"module": m["name"], "name": name, **fault})
                    break  # what else the module has would fail for the same reason
            if faults:
                break
        signatures = [] if faults else _signatures(h, faults)
    if not faults:
        try:
            resources.resource.validate()
        except Exception as e:
            faults.append({"module": "", "name": "", **describe(e)})
    h.exporter = export.Exporter()
    return {
        "faults": faults,
        "warnings": [_warning(w) for w in caught if issubclass(w.category, Warning)],
        "plugins": signatures,
        "resources": [
            [name, options["agent"], options["name"], list(cls.fields), cls.__module__]
            for name, (cls, options) in resources.resource._resources.items()
        ],
        "references": [[n, c.__module__] for n, c in references.reference.get_references() if not n.startswith("core::")],
        "mutators": [[n, c.__module__] for n, c in references.mutator.get_mutators() if not n.startswith("core::")],
        "handlers": _handlers(),
        "managers": len(export.Exporter.get_dependency_managers()),
        "exports": sorted(export.Exporter.get_export_functions()),
        "finalizers": len(compiler.Finalizers.get_functions()),
        "imported": sorted({n.split(".")[1] for n in sys.modules if n.startswith(PACKAGE + ".")}),
    }


def _handlers() -> list[list[str]]:
    handler = sys.modules.get("inmanta.agent.handler")
    if handler is None:
        return []
    out = []
    for item in handler.Commander.get_providers():
        name, cls = (item[0], item[-1]) if isinstance(item, tuple) else (item, None)
        if cls is not None:
            out.append([str(name), cls.__module__])
    return out


def _warning(w: warnings.WarningMessage) -> dict[str, Any]:
    return {"class": w.category.__name__, "message": str(w.message), "file": w.filename, "line": w.lineno}


def _signatures(h: Host, faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
    out = []
    for full, cls in plugins.PluginMeta.get_functions().items():
        function = cls.__function__
        code = getattr(inspect.unwrap(function), "__code__", None)
        at = [code.co_filename, code.co_firstlineno] if code is not None else None
        try:
            p = cls(ast.Namespace("::".join(cls.__module__.split(".")[1:])))
            p.normalize()
        except Exception as e:
            fault = describe(e)
            fault["data"]["at"] = at
            faults.append({"module": full.partition("::")[0], "name": full, **fault})
            continue
        params = []
        for a in p.arguments:
            if a.kind not in _KINDS:
                faults.append(
                    {
                        "module": full.partition("::")[0],
                        "name": full,
                        "class": "RuntimeException",
                        "message": f"positional-only parameters are not supported in plugins: {a.name} of {full}",
                        "traceback": "",
                        "data": {"kind": "compiler", "at": at},
                    }
                )
                continue
            signature = a.signature
            params.append([a.name, signature.text if signature else "any", _KINDS[a.kind], a.has_default])
        deprecated = ""
        if cls.deprecated:
            deprecated = cls.replaced_by or "-"
        out.append(
            {
                "name": full,
                "params": params,
                "returns": p.return_signature.text if not p.emit_statement() else "any",
                "allow_unknown": p.is_accept_unknowns(),
                "deprecated": deprecated,
                "at": at,
            }
        )
        h.plugins.append(p)
    return out


# -- plugins


def call_plugin(args: dict[str, Any]) -> Any:
    """Runs a plugin once."""
    h = host()
    h.take(args)
    p = h.plugins[args["p"]]
    p.check_requirements()
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    # With *args the others have to take their places; without, what is left out leaves no hole when all go by name.
    any_args = any(a.kind is inspect.Parameter.VAR_POSITIONAL for a in p.arguments)
    result = None
    if p._context_name is not None:
        result = runtime.ResultVariable()
        context = plugins.Context(h, p, result)
        if not any_args:
            keywords[p._context_name] = context
    for a, v in zip(p.arguments, args["v"]):
        if any_args and p._context == len(positional):
            positional.append(context)
        convert = a.signature.convert if a.signature is not None else None
        if v is inspect.Parameter.empty:
            if any_args and a.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                positional.append(a.default)
            continue
        if a.kind is inspect.Parameter.VAR_POSITIONAL:
            positional.extend(_argument(x, convert, f"{a.name}[{i}]") for i, x in enumerate(v))
        elif a.kind is inspect.Parameter.VAR_KEYWORD:
            keywords.update({k: _argument(x, convert, k) for k, x in v.items()})
        elif a.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and any_args:
            positional.append(_argument(v, convert, a.name))
        else:
            keywords[a.name] = _argument(v, convert, a.name)
    returned = p.__function__(*positional, **keywords)
    if p.emit_statement():
        if result is None or not result.has_value:
            raise ast.RuntimeException(None, f"plugin {p.get_full_name()} has emits_statements but did not set context.result")
        returned = result.value
    if inspect.isgenerator(returned):
        returned.close()
        raise ast.RuntimeException(None, f"plugin {p.get_full_name()} returned a generator; return a list instead")
    return h.encode(returned)


def _argument(value: Any, convert: Any, path: str) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Unknown):
        return value  # only plugins that allow unknowns get one
    context = proxy.ProxyContext(path=path)
    if convert is not None:
        return convert(value, context)
    return proxy.DynamicProxy.return_value(value, context=context)


# -- resources


def _encode_json(value: Any) -> Any:
    if isinstance(value, (proxy.SequenceProxy, proxy.DictProxy)):
        return value.json_serialization_step()
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        return value.isoformat(timespec="microseconds")
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Exception):
        return str(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if type(value).__name__ in ("AnyUrl", "Url", "HttpUrl"):
        return str(value)
    raise TypeError(f"{value!r} is not JSON serializable")


def export_resources(args: dict[str, Any]) -> Any:
    """Makes the resources of the instances of one type."""
    h = host()
    h.take(args)
    out = []
    for instance in args["i"]:
        out.append(_export(h, args["n"], instance))
    return out


def _export(h: Host, name: str, instance: runtime.Instance) -> dict[str, Any]:
    view = proxy.DynamicProxy.return_value(instance, context=proxy.ProxyContext(path=f"<{instance!r}>"))
    try:
        made = resources.Resource.create_from_model(h.exporter, name, view)
    except ast.UnknownException:
        return {"s": "unknown"}
    except resources.IgnoreResourceException:
        return {"s": "ignored"}
    except ast.OptionalValueException as e:
        return {"s": "fault", "e": describe(e)}
    except Exception as e:
        return {"s": "fault", "e": describe(e)}
    unknown = []
    fields: dict[str, Any] = {}
    for field in type(made).fields:
        value = getattr(made, field)
        if isinstance(value, Unknown):
            unknown.append(field)
            value = "<<undefined>>"
        elif field in ("references", "mutators") and not value:
            continue
        fields[field] = value
    try:
        text = json.dumps(fields, default=_encode_json, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        return {"s": "fault", "e": {"class": "ValueError", "message": "a field contains itself", "traceback": "", "data": {"kind": "other"}}}
    except (TypeError, ValueError) as e:
        return {"s": "fault", "e": describe(e)}
    h.exporter.add_resource(made)
    h.made.setdefault(instance, []).append(made)
    return {"s": "made", "id": made.id.resource_str(), "u": unknown, "j": text}


def to_id(args: dict[str, Any]) -> Any:
    """The id of the resource of one type that is made of an instance."""
    h = host()
    h.take(args)
    cls, options = resources.resource.get_class(args["n"])
    if cls is None or options is None:
        return None
    view = proxy.DynamicProxy.return_value(args["i"], context=proxy.ProxyContext(path=f"<{args['i']!r}>"))
    try:
        return str(cls.object_to_id(view, args["n"], options["name"], options["agent"]))
    except (ast.UnknownException, resources.IgnoreResourceException):
        return None


def run_managers(args: dict[str, Any]) -> Any:
    """Runs the dependency managers. Resources are [id, instance, requires, fields]; fields is null for those made here."""
    h = host()
    h.take(args)
    for rid, instance, requires, fields in args["r"]:
        ident = resources.Id.parse_id(rid)
        found = h.exporter._resources.get(ident)
        if found is None:
            found = foreign_resource(ident, fields or {})
            h.exporter._resources[ident] = found
        if instance is not None:
            found.model = proxy.DynamicProxy.return_value(instance, context=proxy.ProxyContext(path=f"<{instance!r}>"))
        found.requires = {resources.Id.parse_id(r) for r in requires}
    table = h.exporter._resources
    for r in table.values():
        r.resource_requires = {table[x] for x in r.requires if x in table}
    before = {str(k): {str(x) for x in r.requires} for k, r in table.items()}
    kinds = TypeTable(h)
    h.exporter.types = kinds
    faults = []
    for manager in export.Exporter.get_dependency_managers():
        try:
            manager(kinds, table)
        except ast.UnknownException:
            continue
        except Exception as e:
            faults.append(describe(e))
    changed = {}
    for ident, r in table.items():
        try:
            after = {_required(x) for x in r.requires}
        except Exception as e:
            faults.append(describe(e))
            continue
        if after != before[str(ident)]:
            changed[ident.resource_str()] = sorted(after)
    return {"changed": changed, "faults": faults}


def _required(r: Any) -> str:
    if isinstance(r, str):
        return resources.Id.parse_id(r).resource_str()
    if isinstance(r, resources.Resource):
        return r.id.resource_str()
    if isinstance(r, resources.Id):
        return r.resource_str()
    raise Exception(
        f"A dependency manager inserted the object {r!r} of type {type(r)} into a requires relation. "
        "However, only string, Resource or Id are allowable types"
    )


def foreign_resource(ident: resources.Id, fields: dict[str, Any]) -> resources.Resource:
    """Stands for a resource that the compiler made itself."""
    base = dict.fromkeys([*resources.Resource.fields, *fields])
    cls: Any = resources.ResourceMeta(ident.entity_type.rpartition("::")[2], (resources.Resource,), {"fields": tuple(base)})
    made: resources.Resource = cls(ident)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def run_export(args: dict[str, Any]) -> Any:
    """Runs an export function."""
    h = host()
    name = args["n"]
    functions = export.Exporter.get_export_functions()
    if name not in functions:
        raise Exception(f"Export function {name} does not exist.")
    kinds, function = functions[name]
    table = TypeTable(h)
    h.exporter.types = table
    with proxy.exportcontext:
        if kinds:
            found = {
                k: [
                    proxy.DynamicProxy.return_value(i, context=proxy.ProxyContext(path=f"<{i!r}>"))
                    for i in (table[k].get_all_instances() if k in table else [])
                ]
                for k in kinds
            }
            function(h.exporter, types=found)
        else:
            function(h.exporter)
    return None


def finalize(args: Any) -> Any:
    """Runs the finalizers."""
    faults = []
    for fnc in compiler.Finalizers.get_functions():
        try:
            fnc()
        except BaseException as e:
            faults.append(describe(e))
    compiler.Finalizers.reset_finalizers()
    return {"faults": faults, "unknowns": _unknown_parameters()}


def _unknown_parameters() -> list[list[str]]:
    return [[str(u.get("resource", "")), str(u.get("parameter", "")), str(u.get("source", "fact"))] for u in export.unknown_parameters]


def main() -> None:
    """Serves until the compiler closes the connection."""
    global _host
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    decoder = json.JSONDecoder(object_hook=lambda d: host().hook(d))
    peer = wire.Peer(decoder=decoder, describe=describe)
    _host = Host(peer)
    runtime.bridge = _host
    peer.handshake()
    peer.handle("load", load)
    peer.handle("plugin", call_plugin)
    peer.handle("export", export_resources)
    peer.handle("to_id", to_id)
    peer.handle("managers", run_managers)
    peer.handle("export_function", run_export)
    peer.handle("finalize", finalize)
    peer.serve()
