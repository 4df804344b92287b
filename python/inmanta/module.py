"""The project and its modules."""

from __future__ import annotations

import configparser
import enum
import os
import re
from typing import Any, ClassVar, Optional

from inmanta.ast import CompilerException

PACKAGE = "inmanta_plugins"


class ProjectNotFoundException(CompilerException):
    """There is no project."""


class InvalidModuleException(CompilerException):
    """A module is not what it should be."""


class InvalidMetadata(CompilerException):
    """What a module says of itself can not be read."""


class ModuleGeneration(enum.Enum):
    """The layout of a module: a directory with a module.yml, or a Python package."""

    V1 = 1
    V2 = 2


class _Metadata:
    def __init__(self, name: str, version: str, data: Optional[dict[str, Any]] = None) -> None:
        self.name = name
        self.version = version
        self.description: Optional[str] = None
        self.license = ""
        for key, value in (data or {}).items():
            setattr(self, key, value)


class Module:
    """A module. path is its directory."""

    GENERATION: ClassVar[ModuleGeneration]

    def __init__(self, name: str, path: str, version: str = "", model_dir: str = "", plugin_dir: str = "", editable: bool = True):
        self.name = name
        self._path = path
        self.version = version
        self.model_dir = model_dir or os.path.join(path, "model")
        self._plugin_dir = plugin_dir
        self._is_editable_install = editable
        self.metadata = _Metadata(name, version)

    @classmethod
    def from_path(cls, path: str) -> Optional[Module]:
        """The module in a directory, None without one. Raises InvalidMetadata when it can not be read."""
        for layout in (ModuleV1, ModuleV2):
            found = layout.from_path(path)
            if found is not None:
                return found
        return None

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
        return self._is_editable_install

    def get_version(self) -> str:
        """The version."""
        return self.version

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} {self._path}"


class ModuleV1(Module):
    """A module that is a directory with a module.yml."""

    GENERATION = ModuleGeneration.V1
    MODULE_FILE = "module.yml"

    @classmethod
    def from_path(cls, path: str) -> Optional[ModuleV1]:
        """The module in a directory, None when there is no module.yml."""
        file = os.path.join(path, cls.MODULE_FILE)
        if not os.path.exists(file):
            return None
        data = _scalars(file)
        if "name" not in data:
            raise InvalidMetadata(f"Metadata file {file} does not say the name of the module")
        plugins = os.path.join(path, "plugins")
        made = cls(data["name"], path, data.get("version", ""), plugin_dir=plugins if os.path.isdir(plugins) else "")
        made.metadata = _Metadata(made.name, made.version, data)
        return made


class ModuleV2(Module):
    """A module that is a Python package."""

    GENERATION = ModuleGeneration.V2
    MODULE_FILE = "setup.cfg"
    PKG_NAME_PREFIX = "inmanta-module-"

    @classmethod
    def from_path(cls, path: str) -> Optional[ModuleV2]:
        """The module in a directory, None when there is no setup.cfg.

        It does not count as editable: set _is_editable_install for a checkout whose code is below inmanta_plugins.
        """
        file = os.path.join(path, cls.MODULE_FILE)
        if not os.path.exists(file):
            return None
        parser = configparser.ConfigParser(interpolation=None)
        try:
            with open(file, encoding="utf-8") as f:
                parser.read_file(f)
        except (configparser.Error, UnicodeDecodeError) as e:
            raise InvalidMetadata(f"Metadata file {file} is invalid: {e}") from e
        if not parser.has_section("metadata"):
            raise InvalidMetadata(f"Metadata file {file} doesn't have a metadata section.")
        data: dict[str, Any] = dict(parser.items("metadata"))
        package = data.get("name", "")
        if not package.startswith(cls.PKG_NAME_PREFIX):
            raise InvalidMetadata(f'The name field should follow the format "{cls.PKG_NAME_PREFIX}<module-name>": {file} has {package!r}')
        tag = parser.get("egg_info", "tag_build", fallback="")
        data["version_tag"] = tag
        requires = parser.get("options", "install_requires", fallback="")
        data["install_requires"] = [r.strip() for r in requires.splitlines() if r.strip() and not r.strip().startswith("#")]
        version = data.get("version", "")
        made = cls(ModuleV2Source.get_inmanta_module_name(package), path, f"{version}.{tag}" if tag else version, editable=False)
        made.metadata = _Metadata(package, version, data)
        return made

    def get_plugin_dir(self) -> str:
        """The directory of its Python code: for an installed module its own."""
        if self._plugin_dir:
            return self._plugin_dir
        return os.path.join(self._path, PACKAGE, self.name) if self._is_editable_install else self._path


def _scalars(file: str) -> dict[str, str]:
    """The values of a YAML mapping that fit on a line."""
    with open(file, encoding="utf-8") as f:
        found = re.findall(r"""^([A-Za-z_]+)\s*:[ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#][^#\n]*))""", f.read(), re.MULTILINE)
    return {key: double or single or plain.strip() for key, double, single, plain in found}


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
    def from_path(cls, project: Optional[Project], module_name: str, path: str) -> Optional[ModuleV2]:
        """The module in the directory of a checkout or of an installed module."""
        found = ModuleV2.from_path(path)
        if found is not None:
            found._is_editable_install = os.path.exists(os.path.join(path, PACKAGE))
        return found

    @classmethod
    def get_inmanta_module_name(cls, python_package_name: str) -> str:
        """The module that is published under a name."""
        if not python_package_name.startswith(ModuleV2.PKG_NAME_PREFIX):
            raise ValueError(f"Invalid python package name: should start with {ModuleV2.PKG_NAME_PREFIX}")
        return python_package_name[len(ModuleV2.PKG_NAME_PREFIX) :].replace("-", "_")

    @classmethod
    def get_namespace_package_name(cls, module_name: str) -> str:
        """The Python package of a module."""
        return f"{PACKAGE}.{module_name}"

    @classmethod
    def get_package_name_for(cls, module_name: str) -> str:
        """The name under which a module is published."""
        return ModuleV2.PKG_NAME_PREFIX + module_name.replace("_", "-")


class Project:
    """A project: that which is compiled, otherwise that of the current directory."""

    PROJECT_FILE = "project.yml"

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
        """The project. Raises ProjectNotFoundException when none is being compiled and the current directory is in none.

        One that is not being compiled does not know its modules.
        """
        if cls._project is None:
            path = cls.get_project_dir(os.curdir)
            cls._project = cls(path, _scalars(os.path.join(path, cls.PROJECT_FILE)).get("name", ""))
            cls._project.main_file = main_file
            cls._project.loaded = False
        return cls._project

    @classmethod
    def get_project_dir(cls, cur_dir: str) -> str:
        """The project that a directory belongs to. Raises ProjectNotFoundException when it belongs to none."""
        here = os.path.abspath(cur_dir)
        while not os.path.exists(os.path.join(here, cls.PROJECT_FILE)):
            parent = os.path.dirname(here)
            if parent == here:
                raise ProjectNotFoundException("Unable to find an inmanta project (project.yml expected)")
            here = parent
        return here

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
