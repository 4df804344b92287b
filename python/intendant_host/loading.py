"""Imports the Python code of modules and tells what it registered."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import os
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any, Optional

from inmanta import ast, compiler, export, module, plugins, references, resources
from inmanta.config import Config
from intendant_host import environ, standard
from intendant_host.bridge import PACKAGE, Host, host
from intendant_host.faults import describe
from intendant_host.finder import STD


def package_directories() -> list[str]:
    """The directories in which this interpreter looks for the Python code of modules, those of editable installations included."""
    found = importlib.machinery.PathFinder.find_spec(PACKAGE)  # knows the hooks of editable installations
    locations = found.submodule_search_locations if found is not None else None
    return list(dict.fromkeys(os.path.abspath(p) for p in locations or () if os.path.isdir(p)))


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a file and keeps no bytecode of it."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Writes nothing."""


class ModuleFinder(importlib.abc.MetaPathFinder):
    """Finds the Python code of modules in the directories that the compiler names.

    An installed module is found by Python itself; the finder comes first, so that what the compiler reads and what Python imports
    is the same. Nothing is written next to sources, be they the project's or fetched ones, whose content has a digest: only what is
    installed keeps its bytecode.
    """

    def __init__(self, dirs: dict[str, str], own: set[str]) -> None:
        self.dirs = dirs
        self.own = own  # the modules that are sources, and not installed

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        parts = fullname.split(".")
        if parts[0] != PACKAGE:
            return None
        if len(parts) == 1:
            # A namespace package whose parts are found one by one; installed ones that the model does not import as well.
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = package_directories()
            return spec
        base = self.dirs.get(parts[1])
        own = parts[1] in self.own
        if base is None:  # only Python code imports it
            places = (os.path.join(p, PACKAGE, parts[1]) for p in sys.path if "site-packages" not in p)
            base = next((p for p in places if os.path.isdir(p)), None)
            own = True
        if base is None:
            return None
        top = os.path.join(base, *parts[2:])
        if own:
            for file, locations in ((os.path.join(top, "__init__.py"), [top]), (top + ".py", None)):
                if os.path.isfile(file):
                    loader = SourceLoader(fullname, file)
                    return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=locations)
        if len(parts) != 2:
            return None
        init = os.path.join(top, "__init__.py")
        if not os.path.isfile(init):
            init = os.path.join(top, "__init__.pyc")
        if not os.path.isfile(init):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [top]
            return spec
        return importlib.util.spec_from_file_location(fullname, init, submodule_search_locations=[top])


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


def load(args: dict[str, Any]) -> dict[str, Any]:
    """Imports the code of all modules and tells what it registered."""
    h = host()
    environ.watch()
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
        dirs.setdefault("std", STD)
    own = {m["name"] for m in args["modules"] if m["layout"] != "v2" or "site-packages" not in m["dir"]}
    sys.meta_path.insert(0, ModuleFinder(dirs, own))
    importlib.invalidate_caches()
    faults = []
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
        signatures = [] if faults else _signatures(h, faults, caught)
    if not faults:
        for kind in {c for _, c in resources.resource.get_resources()}:
            try:
                resources.resource.validate_class(kind)
            except Exception as e:
                fault = describe(e)
                fault["data"]["at"] = _place(kind)
                # A fault of the model is shown as it is.
                name = kind.__name__ if isinstance(e, ast.CompilerException) else kind.__module__
                faults.append({"module": kind.__module__.split(".")[1], "name": name, **fault})
    h.exporter = export.Exporter()
    return {
        "faults": faults,
        "warnings": [_warning(w) for w in caught if issubclass(w.category, Warning)],
        "plugins": signatures,
        "resources": [
            [name, options["agent"], options["name"], list(cls.fields), cls.__module__]
            for name, (cls, options) in resources.resource._resources.items()
        ],
        "references": [
            [n, c.__module__]
            for n, c in references.reference.get_references()
            if not n.startswith("core::") and c.__module__ != standard.__name__  # those every agent knows
        ],
        "mutators": [[n, c.__module__] for n, c in references.mutator.get_mutators() if not n.startswith("core::")],
        "handlers": _handlers(),
        "managers": len(export.Exporter.get_dependency_managers()),
        "exports": sorted(export.Exporter.get_export_functions()),
        "finalizers": len(compiler.Finalizers.get_functions()),
        "siblings": _siblings(args["modules"]),
        "besides": _besides({m["name"] for m in args["modules"]} | ({"std"} if args.get("std") else set())),
    }


def _besides(known: set[str]) -> list[dict[str, Any]]:
    """The modules that only Python code imports: agents need them all the same."""
    out = []
    for full, found in sorted(sys.modules.items()):
        parts = full.split(".")
        if parts[0] != PACKAGE or len(parts) != 2 or parts[1] in known or not getattr(found, "__path__", None):
            continue
        try:
            requires = importlib.metadata.requires("inmanta-module-" + parts[1].replace("_", "-")) or []
        except importlib.metadata.PackageNotFoundError:
            requires = []
        requires = [r for r in requires if "extra ==" not in r]
        out.append({"name": parts[1], "dir": next(iter(found.__path__)), "requires": requires})
    return out


def _siblings(modules: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The packages besides its plugins that a module brings and that were imported: agents need them as well."""
    out = []
    for m in modules:
        if m["layout"] != "v2" or not m["plugins"]:
            continue
        try:
            listed = importlib.metadata.distribution("inmanta-module-" + m["name"].replace("_", "-")).read_text("top_level.txt")
        except importlib.metadata.PackageNotFoundError:
            listed = None
        if listed is not None:
            names = set(listed.split())
        else:  # a checkout: what lies beside inmanta_plugins
            top = os.path.dirname(os.path.dirname(m["plugins"]))
            names = set(os.listdir(top)) if os.path.samefile(top, m["dir"]) else set()
        for name in sorted(names - {PACKAGE}):
            path = list(getattr(sys.modules.get(name), "__path__", ()))
            if path and os.path.isfile(os.path.join(path[0], "__init__.py")):
                out.append({"module": m["name"], "name": name, "dir": path[0]})
    return out


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


def _place(kind: type) -> Optional[list[Any]]:
    """The file and line at which a class is defined, None when they are not known."""
    try:
        return [inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1]]
    except (OSError, TypeError):
        return None


def _signatures(h: Host, faults: list[dict[str, Any]], caught: list[warnings.WarningMessage]) -> list[dict[str, Any]]:
    out = []
    for full, cls in plugins.PluginMeta.get_functions().items():
        function = cls.__function__
        code = getattr(inspect.unwrap(function), "__code__", None)
        # A function begins with its first decorator; the line after that is, as a rule, the one with its name.
        at = [code.co_filename, code.co_firstlineno + 1] if code is not None else None
        try:
            p = cls(ast.Namespace("::".join(cls.__module__.split(".")[1:])))
            before = len(caught)
            p.normalize()
            for w in caught[before:]:  # they are about the signature, whoever raised them
                w.filename, w.lineno = at or (w.filename, w.lineno)
        except Exception as e:
            fault = describe(e)
            fault["data"]["at"] = at
            faults.append({"module": full.partition("::")[0], "name": full, **fault})
            continue
        params = []
        for a in p.arguments:
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
