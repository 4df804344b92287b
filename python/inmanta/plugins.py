"""Plugins: Python functions that models call."""

from __future__ import annotations

import asyncio
import collections.abc
import dataclasses
import inspect
import numbers
import os
import re
import shutil
import types
import typing
import warnings
from typing import TYPE_CHECKING, Annotated, Any, Callable, ClassVar, Literal, Optional, TypeVar, Union

from inmanta import references, util
from inmanta.ast import (
    InvalidTypeAnnotation,
    LocatableString,
    Namespace,
    PluginException,
    RuntimeException,
    TypeNotFoundException,
    TypingException,
)
from inmanta.ast.type import Null
from inmanta.execute import proxy
from inmanta.stable_api import stable_api
from inmanta.warnings import InmantaWarning

if TYPE_CHECKING:
    from inmanta.ast.type import Type

__all__ = [
    "Context",
    "ModelType",
    "Null",
    "Plugin",
    "PluginDeprecationWarning",
    "PluginException",
    "PluginMeta",
    "allow_reference_values",
    "deprecated",
    "plugin",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

PLUGINS_PACKAGE = "inmanta_plugins"


class PluginDeprecationWarning(InmantaWarning):
    """A plugin is used that should not be used any more."""


class _Owner:
    """The statement that calls."""

    def __init__(self, namespace: Namespace, location: Any) -> None:
        self.namespace = namespace
        self.location = location

    def get_location(self) -> Any:
        """The place of the call."""
        return self.location

    def get_namespace(self) -> Namespace:
        """The namespace in which the call is written."""
        return self.namespace


@stable_api
class Context:
    """What a plugin can find out about its call. It is of use during the call only.

    bridge is the host's side of the call; see ``intendant_host.compile``.
    """

    def __init__(self, bridge: Any, plugin: Plugin, result: Any) -> None:
        self._bridge = bridge
        self.plugin = plugin
        self.result = result
        self.resolver = bridge.resolver()
        self.queue = bridge.scheduler()
        self.compiler = bridge.compiler()
        self._owner: Optional[_Owner] = None

    @property
    def owner(self) -> _Owner:
        """The statement that calls."""
        if self._owner is None:
            self._owner = _Owner(*self._bridge.here())
        return self._owner

    def get_resolver(self) -> Any:
        """The variables that the call sees."""
        return self.resolver

    def get_type(self, name: Union[str, LocatableString]) -> Type:
        """A type by its name, in the namespace of the call if that is not qualified; raises TypeNotFoundException."""
        from inmanta.ast.type import resolve_type

        text = str(name)
        return resolve_type(text, None if "::" in text else self.owner.namespace)

    def get_queue_scheduler(self) -> Any:
        """The scheduler, which knows the types."""
        return self.queue

    def get_environment_id(self) -> str:
        """The id of the environment that is compiled for; the text None without one, which modules and their tests count on."""
        from inmanta.config import Config

        return str(Config.get("config", "environment", None))

    def get_compiler(self) -> Any:
        """The compiler, which knows the plugins."""
        return self.compiler

    def get_data_dir(self) -> str:
        """A directory of the project for the data of the plugin's module; it is made if it is missing."""
        path = os.path.join("data", self.plugin.namespace.get_full_name())
        os.makedirs(path, exist_ok=True)
        return path

    def get_client(self) -> Any:
        """A client of the server's API whose methods return awaitables."""
        from inmanta.protocol import Client

        return Client("compiler")

    def get_sync_client(self) -> Any:
        """A client of the server's API that waits for answers."""
        from inmanta.protocol import SyncClient

        return SyncClient("compiler")

    def run_sync(self, function: Callable[[], collections.abc.Awaitable[T]], timeout: int = 5) -> T:
        """Runs a coroutine and returns its result. timeout is in seconds; past it ConnectionRefusedError is raised."""

        async def bounded() -> T:
            return await asyncio.wait_for(function(), timeout)

        try:
            return asyncio.run(bounded())
        except (TimeoutError, asyncio.TimeoutError):
            raise ConnectionRefusedError() from None


@dataclasses.dataclass(frozen=True)
class ModelType:
    """Says in an annotation which type of the language is meant: ``Annotated[Any, ModelType["m::E"]]``."""

    model_type: str

    def __class_getitem__(cls, key: str) -> ModelType:
        return cls(key)


# -- annotations

_PLAIN_TYPES: dict[object, str] = {
    str: "string",
    int: "int",
    float: "float",
    bool: "bool",
    numbers.Number: "number",
    dict: "dict",
    collections.abc.Mapping: "dict",
    typing.Mapping: "dict",
    list: "list",
    collections.abc.Sequence: "list",
    typing.Sequence: "list",
    object: "any",
    Any: "any",
}
_UNION_ORIGINS: tuple[object, ...] = (Union, getattr(types, "UnionType", Union))
_ALIAS: tuple[type, ...] = (typing.TypeAliasType,) if hasattr(typing, "TypeAliasType") else ()


def entity_of_dataclass(cls: type) -> Optional[str]:
    """The name of the entity that a dataclass is paired with by its name and module; None outside modules."""
    parts = cls.__module__.split(".")
    if parts[0] != PLUGINS_PACKAGE or len(parts) < 2:
        return None
    return "::".join([*parts[1:], cls.__qualname__])


@dataclasses.dataclass
class Signature:
    """A type in the notation of the compiler, with what has to be converted for Python.

    convert is None when proxies will do; otherwise it takes a value of the language and the context of proxies. converts says
    whether values of the type reach Python as something else than proxies, which makes the lists and dicts of it plain ones; it is
    known once the model's types are.
    """

    text: str
    convert: Optional[Callable[[Any, proxy.ProxyContext], Any]] = None
    converts: Callable[[], bool] = lambda: False


def _wrap(value: Any, context: proxy.ProxyContext) -> Any:
    return proxy.DynamicProxy.return_value(value, context=context)


def _leaf(name: str, dataclass: Optional[type] = None) -> Signature:
    """A named type: entities that are dataclasses reach Python as such."""

    def converts() -> bool:
        from inmanta.execute import runtime

        # A name may be relative to the plugin's module or to one of its imports: the last part tells enough.
        return dataclass is not None or name.rpartition("::")[2] in getattr(runtime.need_bridge(), "dataclass_names")  # noqa: B009

    def convert(value: Any, context: proxy.ProxyContext) -> Any:
        from inmanta.execute import runtime

        if isinstance(value, runtime.Instance) and value.type.is_dataclass and converts():
            found: Any = getattr(runtime.need_bridge(), "to_dataclass")(value, dataclass)  # noqa: B009
            return found
        return _wrap(value, context)

    return Signature(name, convert, converts)


def _list_of(inner: Signature) -> Signature:
    text = inner.text if " " not in inner.text else f"({inner.text})"
    convert = inner.convert
    if convert is None:
        return Signature(text + "[]")
    element = convert

    def convert_all(value: Any, context: proxy.ProxyContext) -> Any:
        if not isinstance(value, list) or not inner.converts():
            return _wrap(value, context)
        return [element(v, context.nested(relative_path=f"[{i}]")) for i, v in enumerate(value)]

    return Signature(text + "[]", convert_all, inner.converts)


def _dict_of(inner: Signature) -> Signature:
    text = f"dict[string, {inner.text}]"
    convert = inner.convert
    if convert is None:
        return Signature(text)
    element = convert

    def convert_all(value: Any, context: proxy.ProxyContext) -> Any:
        if not isinstance(value, dict) or not inner.converts():
            return _wrap(value, context)
        return {k: element(v, context.nested(relative_path=f"[{k!r}]")) for k, v in value.items()}

    return Signature(text, convert_all, inner.converts)


def _union_of(parts: list[Signature]) -> Signature:
    texts: list[str] = []
    converting = [p for p in parts if p.convert is not None]
    for p in parts:
        if p.text not in texts:
            texts.append(p.text)
    text = " | ".join(texts)
    if not converting:
        return Signature(text)

    def convert(value: Any, context: proxy.ProxyContext) -> Any:
        for p in converting:
            if p.convert is not None:
                out = p.convert(value, context)
                if not isinstance(out, proxy.DynamicProxy):
                    return out
        return _wrap(value, context)

    return Signature(text, convert, lambda: any(p.converts() for p in converting))


_TYPE_TEXT = re.compile(r"(?P<name>[^\W\d][\w-]*(?:::[^\W\d][\w-]*)*)(?P<list>\[\])?(?P<nullable>\?)?")
_ALWAYS: dict[str, str] = {"any": "any", "expression": "any", "null": "null"}


def signature_of_text(text: str) -> Signature:
    """A type in the syntax of models, as annotations that are strings have it: a name, a list of it, either of them nullable.

    Raises TypeNotFoundException for what can not be a type of a model. Whether a named type exists is for the compiler to say.
    """
    if text in _ALWAYS:
        return Signature(_ALWAYS[text])
    found = _TYPE_TEXT.fullmatch(text)
    if found is None or found["name"] in _ALWAYS:
        raise TypeNotFoundException(text, msg=f"could not find type {text}")
    name = found["name"]
    out = Signature(name) if name in ("string", "int", "float", "number", "bool", "list", "dict") else _leaf(name)
    if found["list"]:
        out = _list_of(out)
    return Signature(out.text + "?", out.convert, out.converts) if found["nullable"] else out


def signature_of(hint: Any) -> Signature:
    """The type that the annotation of a plugin stands for.

    Raises InvalidTypeAnnotation for what is no type at all, TypingException for a type that can not cross to a model.
    """
    if isinstance(hint, str):
        return signature_of_text(hint)
    if isinstance(hint, typing.ForwardRef):
        return signature_of_text(hint.__forward_arg__)
    if hint in _UNION_ORIGINS:
        raise InvalidTypeAnnotation(None, f"Union type must be subscripted, got {hint}")
    if hint is None or hint is Any or isinstance(hint, (type, _ALIAS)) or typing.get_origin(hint) is not None:
        return _signature(hint)
    raise InvalidTypeAnnotation(
        None, f"Bad annotation, expected str or python type but got {type(hint).__name__} ({hint})"
    )


def text_of(hint: Any) -> str:
    """The type that a type of Python stands for, in the notation of the compiler; any when there is none."""
    return _signature(hint).text


def _signature(hint: Any) -> Signature:
    """The type that a part of an annotation stands for."""
    if hint is None or hint is type(None):
        return Signature("null")
    if isinstance(hint, _ALIAS):
        return _signature(getattr(hint, "__value__"))  # noqa: B009
    if isinstance(hint, collections.abc.Hashable) and hint in _PLAIN_TYPES:
        return Signature(_PLAIN_TYPES[hint])
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _annotated_signature(hint)
    if origin in _UNION_ORIGINS and origin is not None:
        return _union_signature(args)
    if origin is Literal:
        return _union_of([_signature(type(v)) for v in args])
    if isinstance(origin, type):
        return _generic_signature(hint, origin, args)
    if isinstance(hint, type):
        return _class_signature(hint)
    return _any_instead_of(hint)


def _annotated_signature(hint: Any) -> Signature:
    models = [m for m in hint.__metadata__ if isinstance(m, ModelType)]
    if not models:
        return _signature(hint.__origin__)
    named = signature_of_text(models[-1].model_type)
    if hint.__origin__ is proxy.DynamicProxy:  # not the dataclass of an entity, if it has one
        return Signature(named.text)
    return named


def _union_signature(args: tuple[Any, ...]) -> Signature:
    parts = [_signature(a) for a in args]
    nullable = any(p.text == "null" for p in parts)
    rest = [p for p in parts if p.text != "null"]
    if not rest:
        return Signature("null")
    # What may be null already is listed once.
    flat = _union_of(rest)
    if nullable:
        text = flat.text + ("?" if len({p.text for p in rest}) == 1 and not flat.text.endswith("?") and "|" not in flat.text else " | null")
        return Signature(text, flat.convert, flat.converts)
    return flat


def _generic_signature(hint: Any, origin: type, args: tuple[Any, ...]) -> Signature:
    if issubclass(origin, references.Reference):
        return _reference_signature(args[0] if args else None)
    if issubclass(origin, collections.abc.Mapping):
        if origin not in (dict, collections.abc.Mapping):
            raise TypingException(None, f"invalid type {hint}, dictionary types should be Mapping or dict")
        if not args:
            return Signature("dict")
        if not isinstance(args[0], type) or not issubclass(args[0], str):
            raise TypingException(None, f"invalid type {hint}, the keys of any dict should be 'str', got {args[0]} instead")
        return _dict_of(_signature(args[1])) if len(args) > 1 else Signature("dict")
    if issubclass(origin, collections.abc.Sequence) and origin is not tuple:
        if origin not in (list, collections.abc.Sequence):
            raise TypingException(None, f"invalid type {hint}, list types should be Sequence or list")
        return _list_of(_signature(args[0])) if args else Signature("list")
    if issubclass(origin, collections.abc.Set):
        raise TypingException(None, f"invalid type {hint}, set is not supported on the plugin boundary")
    return _any_instead_of(hint)


def _reference_signature(kind: Any) -> Signature:
    known = kind is not None and not isinstance(kind, TypeVar)
    return Signature(f"Reference[{_signature(kind).text if known else 'any'}]")


def _referred(cls: type) -> Any:
    """What a class of references refers to: the argument of the nearest of its bases that has one, or None."""
    for base in getattr(cls, "__orig_bases__", ()):
        origin, args = typing.get_origin(base), typing.get_args(base)
        if isinstance(origin, type) and issubclass(origin, references.Reference) and args and not isinstance(args[0], TypeVar):
            return args[0]
    for parent in cls.__bases__:
        if issubclass(parent, references.Reference):
            found = _referred(parent)
            if found is not None:
                return found
    return None


def _class_signature(hint: type) -> Signature:
    if issubclass(hint, references.Reference):
        return _reference_signature(_referred(hint))
    if dataclasses.is_dataclass(hint):
        name = entity_of_dataclass(hint)
        if name is None:
            raise TypingException(None, f"invalid type {hint}, this dataclass has no associated inmanta entity")
        return _leaf(name, hint)
    return _any_instead_of(hint)


def _any_instead_of(hint: Any) -> Signature:
    """The type of what the language has no type for; says so."""
    warnings.warn(
        InmantaWarning(
            f"Encountered Python type '{_python_name(hint)}' in a plugin's signature, for which there is no equivalent in the modelling"
            " language. It is read as 'any'. Annotate with `typing.Annotated[<type>, ModelType['<model type>']]` to say which type is"
            " meant."
        ),
        stacklevel=2,
    )
    return Signature("any")


def _python_name(hint: Any) -> str:
    return f"{hint.__module__}.{hint.__qualname__}" if type(hint) is type else str(hint)


# -- plugins


@dataclasses.dataclass
class PluginArgument:
    """A parameter of a plugin. kind is that of inspect.Parameter."""

    name: str
    hint: Any
    kind: Any
    default: Any = inspect.Parameter.empty
    signature: Optional[Signature] = None

    @property
    def has_default(self) -> bool:
        """Reports whether an argument may be left out."""
        return self.default is not inspect.Parameter.empty


@dataclasses.dataclass
class CheckedArgs:
    """Arguments in the form in which the function gets them. unknowns says that there is an unknown one among them."""

    args: list[Any]
    kwargs: dict[str, Any]
    unknowns: bool = False


class PluginMeta(type):
    """Keeps the registered plugins."""

    __functions: ClassVar[dict[str, type[Plugin]]] = {}

    def __new__(mcs, name: str, bases: tuple[type, ...], dct: dict[str, Any]) -> Any:
        cls = super().__new__(mcs, name, bases, dct)
        if dct.get("__fq_plugin_name__"):
            mcs.add_function(cls)
        return cls

    @classmethod
    def add_function(mcs, plugin_class: Any) -> None:
        """Registers a plugin."""
        mcs.__functions[plugin_class.__fq_plugin_name__] = plugin_class

    @classmethod
    def get_functions(mcs) -> dict[str, type[Plugin]]:
        """The registered plugins by qualified name."""
        return dict(mcs.__functions)

    @classmethod
    def clear(mcs, inmanta_module: Optional[str] = None) -> None:
        """Forgets the plugins of a module, or all."""
        if inmanta_module is None:
            mcs.__functions.clear()
            return
        top = f"{PLUGINS_PACKAGE}.{inmanta_module}"
        for name, cls in list(mcs.__functions.items()):
            if cls.__module__ == top or cls.__module__.startswith(top + "."):
                del mcs.__functions[name]


class Plugin(metaclass=PluginMeta):
    """A plugin. An instance of it can be called from Python with values that are converted already."""

    __fq_plugin_name__: ClassVar[str] = ""
    __plugin_name__: ClassVar[str] = ""
    __function__: ClassVar[Any] = None
    deprecated: ClassVar[bool] = False
    replaced_by: ClassVar[Optional[str]] = None
    opts: ClassVar[dict[str, Any]] = {}

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.location = None
        self.arguments: list[PluginArgument] = []
        # The place and the name of the parameter that takes the context; None when there is none, -1 when it is given by name.
        self._context = -1
        self._context_name: Optional[str] = None
        self._load()

    def _load(self) -> None:
        function = self.__function__
        hints = util._annotations_of(function)
        # With postponed evaluation every annotation is a string of Python. One that names nothing in Python is a type of the
        # language, as it would be without.
        if _postponed(function):
            hints = {name: _evaluate(hint, function) for name, hint in hints.items()}
        self.return_hint = hints.get("return", "any")
        for position, p in enumerate(util._parameters_of(function)):
            hint = hints.get(p.name, inspect.Parameter.empty)
            if hint is Context or (isinstance(hint, str) and hint in ("Context", "plugins.Context")):
                self._context_name = p.name
                if p.kind is not inspect.Parameter.KEYWORD_ONLY:
                    self._context = position
                continue
            if hint is inspect.Parameter.empty:
                raise RuntimeException(
                    None,
                    f"All arguments of plugin {self.get_full_name()!r} should be annotated: {p.name!r} has no annotation",
                )
            self.arguments.append(PluginArgument(p.name, hint, p.kind, p.default))

    def normalize(self) -> None:
        """Finds out what the annotations mean; raises TypingException or TypeNotFoundException for one without a meaning."""
        for a in self.arguments:
            a.signature = self._resolve(a.hint, f"argument {a.name}")
        self.return_signature = self._resolve(self.return_hint, "return value")

    def _resolve(self, hint: Any, what: str) -> Signature:
        try:
            return signature_of(hint)
        except TypeNotFoundException as e:
            e.msg = f"could not find type {e.type} in namespace {self.namespace} ({what} of plugin {self.get_full_name()})"
            raise
        except TypingException as e:
            e.msg = f"{e.msg} ({what} of plugin {self.get_full_name()})"
            raise

    def check_requirements(self) -> None:
        """Raises Exception when a command that the plugin needs is missing."""
        for command in self.opts.get("bin") or ():
            if shutil.which(command) is None:
                raise Exception(f"{self.__function__.__name__} requires {command} to be available in $PATH")

    @classmethod
    def deprecate_function(cls, replaced_by: Optional[str] = None) -> None:
        """Marks the plugin as one that should not be used any more."""
        cls.deprecated = True
        cls.replaced_by = replaced_by

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.check_requirements()

        def wrap(value: Any) -> Any:
            return value if isinstance(value, Context) else proxy.DynamicProxy.return_value(value)

        positional = list(map(wrap, args))
        self._add_context(positional, kwargs, None)
        return self.call(*positional, **{k: wrap(v) for k, v in kwargs.items()})

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function. Modules put wrappers of their own in the place of this method."""
        return self.__function__(*args, **kwargs)

    def _add_context(self, args: list[Any], kwargs: dict[str, Any], result: Any) -> None:
        """Adds the context to arguments that lack it, in its place if that is among the positional ones."""
        name = self._context_name
        if name is None or name in kwargs or any(isinstance(a, Context) for a in args):
            return
        from inmanta.execute import runtime

        context = Context(runtime.need_bridge(), self, result)
        if 0 <= self._context <= len(args):
            args.insert(self._context, context)
        else:
            kwargs[name] = context

    def call_in_context(self, processed_args: CheckedArgs, resolver: Any = None, queue: Any = None, location: Any = None) -> Any:
        """Calls the function with values of Python and returns a value of the language."""
        from inmanta.execute import runtime

        self.check_requirements()
        args, kwargs = list(processed_args.args), dict(processed_args.kwargs)
        self._add_context(args, kwargs, runtime.ResultVariable())
        return proxy.DynamicProxy.unwrap(self.call(*args, **kwargs))

    def is_accept_unknowns(self) -> bool:
        """Reports whether unknown arguments reach the plugin."""
        return bool(self.opts.get("allow_unknown"))

    def emit_statement(self) -> bool:
        """Reports whether the plugin sets the result itself."""
        return bool(self.opts.get("emits_statements"))

    def get_full_name(self) -> str:
        """The qualified name."""
        return self.__fq_plugin_name__

    def type_string(self) -> str:
        """The qualified name."""
        return self.__fq_plugin_name__

    def get_signature(self) -> str:
        """The signature for people."""
        parts = [f"{a.name}: {a.hint}" for a in self.arguments]
        return f"{self.__plugin_name__}({', '.join(parts)}) -> {self.return_hint}"


def _postponed(function: Any) -> bool:
    """Reports whether a function was compiled with ``from __future__ import annotations``."""
    import __future__

    return bool(function.__code__.co_flags & __future__.annotations.compiler_flag)


def _evaluate(hint: Any, function: Any) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, function.__globals__)
    except Exception:
        return hint


def _register(fnc: F, name: Optional[str], opts: dict[str, Any]) -> F:
    if name is None:
        name = fnc.__name__
    parts = fnc.__module__.split(".")
    if parts[0] != PLUGINS_PACKAGE or len(parts) < 2:
        raise Exception(f"All plugin modules should be loaded in the {PLUGINS_PACKAGE} package, not in {fnc.__module__}")
    full = "::".join([*parts[1:], name])
    cls = PluginMeta(
        name,
        (Plugin,),
        {
            "__module__": fnc.__module__,
            "__fq_plugin_name__": full,
            "__plugin_name__": name,
            "__function__": staticmethod(fnc),
            "__doc__": fnc.__doc__,
            "opts": opts,
        },
    )
    fnc.__plugin__ = cls  # type: ignore[attr-defined]
    return fnc


@typing.overload
def plugin(function: F) -> F: ...


@typing.overload
def plugin(
    function: Optional[str] = None,
    commands: Optional[list[str]] = None,
    emits_statements: bool = False,
    allow_unknown: bool = False,
) -> Callable[[F], F]: ...


@stable_api
def plugin(
    function: Any = None,
    commands: Optional[list[str]] = None,
    emits_statements: bool = False,
    allow_unknown: bool = False,
) -> Any:
    """Registers a function as a plugin: ``@plugin``, ``@plugin()`` or ``@plugin("name", ...)``."""
    opts = {"bin": commands, "emits_statements": emits_statements, "allow_unknown": allow_unknown}
    if function is None or isinstance(function, str):
        return lambda fnc: _register(fnc, function, opts)
    return _register(function, None, opts)


@typing.overload
def deprecated(function: F, *, replaced_by: Optional[str] = None, **kwargs: Any) -> F: ...


@typing.overload
def deprecated(function: None = None, *, replaced_by: Optional[str] = None, **kwargs: Any) -> Callable[[F], F]: ...


@stable_api
def deprecated(function: Optional[Callable[..., Any]] = None, *, replaced_by: Optional[str] = None, **kwargs: Any) -> Any:
    """Marks a plugin as one that should not be used any more. It stands above ``@plugin``."""

    def mark(fnc: Any) -> Any:
        cls = getattr(fnc, "__plugin__", None)
        if cls is None:
            raise Exception(
                f"Can not deprecate '{fnc.__name__}': The '@deprecated' decorator should be used in combination with the '@plugin' "
                "decorator and should be placed at the top."
            )
        cls.deprecate_function(replaced_by)
        return fnc

    return mark if function is None else mark(function)


@stable_api
def allow_reference_values(instance: T) -> T:
    """A copy of a proxy whose attributes or elements may be references; anything else as it is."""
    if isinstance(instance, proxy.DynamicProxy):
        return instance._allow_references()
    return instance
