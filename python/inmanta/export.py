"""What modules see of the exporter."""

from __future__ import annotations

import argparse
import hashlib
import uuid
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Optional, TypeVar, Union

from inmanta.agent.config import environment as cfg_env
from inmanta.ast import CompilerException
from inmanta.execute import proxy, runtime
from inmanta.execute.proxy import DynamicProxy, UnknownException  # noqa: F401 - modules import them from here as well
from inmanta.resources import Id, Resource

if TYPE_CHECKING:
    from inmanta.ast.entity import Entity

ModelDict = dict[str, "Entity"]
ResourceDict = dict[Id, Resource]
ProxiedType = dict[str, list[proxy.DynamicProxy]]

unknown_parameters: list[dict[str, Any]] = []
"""What the compile awaits: dicts with resource, parameter and source. Modules append to it."""

F = TypeVar("F", bound=Callable[..., Any])


class DependencyCycleException(Exception):
    """Resources require each other in a circle."""

    def __init__(self, start: Resource) -> None:
        super().__init__()
        self.start = start
        self.cycle = [start]

    def add_to_cycle(self, node: Resource) -> None:
        """Notes a resource of the circle."""
        if node is not self.start:
            self.cycle.insert(0, node)

    def __str__(self) -> str:
        return f"Cycle in dependencies: {self.cycle}"


def hash_file(content: bytes) -> str:
    """The address of a content in the file storage."""
    return hashlib.sha1(content).hexdigest()


class Exporter:
    """The export of a compile."""

    __export_functions: ClassVar[dict[str, tuple[list[str], Callable[..., Any]]]] = {}
    __dep_manager: ClassVar[list[Callable[..., Any]]] = []

    @classmethod
    def clear(cls) -> None:
        """Forgets export functions and dependency managers."""
        cls.__export_functions = {}
        cls.__dep_manager = []

    @classmethod
    def add(cls, name: str, types: list[str], function: Callable[..., Any]) -> None:
        """Registers an export function."""
        cls.__export_functions[name] = (types, function)

    @classmethod
    def add_dependency_manager(cls, function: Callable[..., Any]) -> None:
        """Registers a dependency manager."""
        if not any(f is function for f in cls.__dep_manager):
            cls.__dep_manager.append(function)

    @classmethod
    def get_dependency_managers(cls) -> list[Callable[..., Any]]:
        """The registered dependency managers, in order."""
        return list(cls.__dep_manager)

    @classmethod
    def get_export_functions(cls) -> dict[str, tuple[list[str], Callable[..., Any]]]:
        """The registered export functions by name."""
        return dict(cls.__export_functions)

    def __init__(self, options: Optional[argparse.Namespace] = None) -> None:
        self.options = options if options is not None else argparse.Namespace()
        self._resources: ResourceDict = {}
        self._resource_sets: dict[str, Optional[str]] = {}
        self._version = 0
        self._scope: Any = None
        self.scopes: Any = None
        self.types: Optional[dict[str, Entity]] = None
        self.failed = False
        self._file_store: dict[str, bytes] = {}
        self._client: Any = None

    @property
    def client(self) -> Any:
        """A client of the server's API that waits for answers."""
        if self._client is None:
            from inmanta.protocol import SyncClient

            self._client = SyncClient("compiler")
        return self._client

    def upload_file(self, content: Union[str, bytes]) -> str:
        """Adds a content to the files of the version and returns its address."""
        data = content.encode("utf-8") if isinstance(content, str) else content
        address = hash_file(data)
        if address not in self._file_store:
            upload = getattr(runtime.bridge, "add_file", None)
            if upload is not None:
                upload(data)
            self._file_store[address] = data
        return address

    def get_environment_id(self) -> str:
        """The id of the environment that is compiled for."""
        return str(cfg_env.get())

    def _get_env_id(self) -> uuid.UUID:
        return uuid.UUID(self.get_environment_id())

    def add_resource(self, resource: Resource) -> None:
        """Adds a resource that no instance stands for. Raises CompilerException when there is one with its id."""
        if resource.id in self._resources:
            raise CompilerException(f"Resource {resource.id} exists more than once in the configuration model")
        self._resources[resource.id] = resource

    def get_version(self, no_commit: bool = False, partial_compile: bool = False) -> int:
        """The number of the version; 0, since the server decides on it when it has all of it."""
        return self._version


class dependency_manager:
    """Registers a function that adds to what resources require: ``f(entities, resources)``."""

    def __init__(self, function: Callable[[ModelDict, ResourceDict], None]) -> None:
        Exporter.add_dependency_manager(function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class code_manager:
    """Does nothing any more; modules may still use it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


class export:
    """Registers an export function: ``@export("name", "m::Type", ...)``."""

    def __init__(self, name: str, *args: str) -> None:
        self.name = name
        self.types = list(args)

    def __call__(self, function: F) -> F:
        Exporter.add(self.name, self.types, function)
        return function
