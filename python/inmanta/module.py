"""The project and its modules."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Optional


class CompilerException(Exception):
    """The project or a module can not be used."""


class ProjectNotFoundException(Exception):
    """There is no project."""


class InvalidModuleException(Exception):
    """A module is not what it should be."""


class _Metadata:
    def __init__(self, name: str, version: str, data: Optional[dict[str, Any]] = None) -> None:
        self.name = name
        self.version = version
        for key, value in (data or {}).items():
            setattr(self, key, value)


class Module:
    """A module of the project. path is its directory."""

    GENERATION = 0

    def __init__(self, name: str, path: str, version: str = "", model_dir: str = "", plugin_dir: str = "", editable: bool = True):
        self.name = name
        self._path = path
        self.version = version
        self.model_dir = model_dir or os.path.join(path, "model")
        self._plugin_dir = plugin_dir
        self._editable = editable
        self.metadata = _Metadata(name, version)

    @property
    def path(self) -> str:
        """The directory."""
        return self._path

    def get_path(self) -> str:
        """The directory."""
        return self._path

    def get_plugin_dir(self) -> Optional[str]:
        """The directory of its Python code, if it has any."""
        return self._plugin_dir or None

    def is_editable(self) -> bool:
        """Reports whether changes of the directory take effect by themselves."""
        return self._editable

    def get_version(self) -> str:
        """The version."""
        return self.version

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} {self._path}"


class ModuleV1(Module):
    """A module that is a directory with a module.yml."""

    GENERATION = 1


class ModuleV2(Module):
    """A module that is an installed Python package."""

    GENERATION = 2


class ModuleV2Source:
    """Finds installed modules among those of the project."""

    def __init__(self, urls: Any = None) -> None:
        self.urls = urls

    @classmethod
    def get_installed_module(cls, project: Optional[Project], module_name: str) -> Optional[ModuleV2]:
        """An installed module by its name."""
        found = (project or Project.get()).modules.get(module_name)
        return found if isinstance(found, ModuleV2) else None

    @classmethod
    def path_for(cls, name: str) -> Optional[str]:
        """The directory of an installed module."""
        found = Project.get().modules.get(name)
        return found.path if isinstance(found, ModuleV2) else None

    @classmethod
    def get_namespace_package_name(cls, module_name: str) -> str:
        """The Python package of a module."""
        return f"inmanta_plugins.{module_name}"

    @classmethod
    def get_package_name_for(cls, module_name: str) -> str:
        """The name under which a module is published."""
        return "inmanta-module-" + module_name.replace("_", "-")


class Project:
    """The project that is compiled."""

    _project: ClassVar[Optional[Project]] = None

    def __init__(self, path: str, name: str = "", modules: Optional[dict[str, Module]] = None) -> None:
        self._path = path
        self.name = name
        self.modules: dict[str, Module] = modules or {}
        self.metadata = _Metadata(name, "")
        self.root_ns: Any = None
        self.main_file = "main.cf"
        self.loaded = True

    @classmethod
    def get(cls, main_file: str = "main.cf", strict_deps_check: Optional[bool] = None) -> Project:
        """The project; raises ProjectNotFoundException when none is being compiled."""
        if cls._project is None:
            raise ProjectNotFoundException("no project is being compiled")
        return cls._project

    @classmethod
    def set(cls, project: Optional[Project], *, clean: bool = True) -> None:
        """Makes a project the one that is compiled."""
        cls._project = project

    @property
    def project_path(self) -> str:
        """The directory of the project."""
        return self._path

    @property
    def path(self) -> str:
        """The directory of the project."""
        return self._path

    def get_path(self) -> str:
        """The directory of the project."""
        return self._path

    def get_modules(self) -> dict[str, Module]:
        """The modules by name."""
        return self.modules

    def module_v2_source_configured(self) -> bool:
        """Reports whether modules may come from a package index."""
        return True
