"""What authors' tools use besides a compile: modules on disk, the stand-in for std, its references."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

from inmanta import app, ast, loader, module, references
from inmanta.parser import plyInmantaLex
from inmanta.protocol.common import Result
from intendant_host import finder, loading, placing, standard

CFG = """
[metadata]
name = inmanta-module-my-notes
version = 1.2.3
license = Apache-2.0

[options]
install_requires =
    inmanta-module-std
    # not this
    requests

[egg_info]
tag_build = dev0
"""


def write(top: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


class OnDisk(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = os.path.realpath(scratch.name)
        here = os.getcwd()
        self.addCleanup(os.chdir, here)

    def test_v1(self) -> None:
        text = "name: 'shelf'\nversion: 0.3 # the next\ndescription: \"Of: wood\"\nrequires:\n  - std\n"
        write(self.top, {"module.yml": text, "plugins/__init__.py": ""})
        m = module.Module.from_path(self.top)
        assert isinstance(m, module.ModuleV1)
        self.assertEqual((m.name, m.version, m.metadata.description), ("shelf", "0.3", "Of: wood"))
        self.assertEqual(m.get_plugin_dir(), os.path.join(self.top, "plugins"))
        self.assertIs(m.GENERATION, module.ModuleGeneration.V1)

    def test_v2(self) -> None:
        write(self.top, {"setup.cfg": CFG, "inmanta_plugins/my_notes/__init__.py": ""})
        m = module.Module.from_path(self.top)
        assert isinstance(m, module.ModuleV2)
        self.assertEqual((m.name, m.version, m.metadata.license), ("my_notes", "1.2.3.dev0", "Apache-2.0"))
        self.assertEqual(getattr(m.metadata, "install_requires"), ["inmanta-module-std", "requests"])  # noqa: B009
        self.assertEqual((m.is_editable(), m.get_plugin_dir()), (False, self.top))
        checkout = module.ModuleV2Source.from_path(None, "my_notes", self.top)
        assert checkout is not None
        self.assertEqual(checkout.get_plugin_dir(), os.path.join(self.top, "inmanta_plugins", "my_notes"))

    def test_no_module(self) -> None:
        self.assertIsNone(module.Module.from_path(self.top))
        self.assertIsNone(module.ModuleV2Source.from_path(None, "x", self.top))
        for text, why in (("[options]\n", "metadata section"), ("[metadata]\nname = x\n", "inmanta-module-"), ("x", "is invalid")):
            write(self.top, {"setup.cfg": text})
            with self.assertRaisesRegex(module.InvalidMetadata, why):
                module.Module.from_path(self.top)
        write(self.top, {"module.yml": "version: 1\n"})
        with self.assertRaisesRegex(module.InvalidMetadata, "name of the module"):
            module.Module.from_path(self.top)

    def test_project(self) -> None:
        write(self.top, {"project.yml": "name: house\n", "a/b/c": ""})
        self.addCleanup(module.Project.set, module.Project._project)
        module.Project.set(None)
        os.chdir(os.path.join(self.top, "a", "b"))
        p = module.Project.get()
        self.assertEqual((p.name, p.project_path, p.loaded, p.get_modules()), ("house", self.top, False, {}))
        self.assertIs(module.Project.get(), p)

    def test_no_project(self) -> None:
        with mock.patch("os.path.exists", return_value=False), self.assertRaises(module.ProjectNotFoundException):
            module.Project.get_project_dir(self.top)

    def test_placement(self) -> None:
        write(self.top, {"site/inmanta_plugins/dns/model/_init.cf": ""})
        write(self.top, {"repo/inmanta_plugins/web/__init__.py": "", "repo/model/_init.cf": ""})
        site, repo = (os.path.join(self.top, d) for d in ("site", "repo"))
        with mock.patch.object(sys, "path", [site, repo]):
            found = placing.placement([{"name": "own", "version": "", "layout": "v1", "dir": "/own"}])
        self.assertEqual(found["sites"], [site])
        self.assertEqual([(m["name"], m["layout"], m["dir"]) for m in found["modules"]], [("own", "v1", "/own"), ("web", "v2", repo)])

    def test_installed_std_first(self) -> None:
        write(self.top, {"inmanta_plugins/std/__init__.py": "OTHER = 1\n", "inmanta_plugins/dns/__init__.py": "A = 1\n"})
        loader.unload_inmanta_plugins()
        self.addCleanup(loader.unload_inmanta_plugins)
        with mock.patch.object(sys, "path", [self.top, *sys.path]):
            self.assertEqual(importlib.import_module("inmanta_plugins.std").OTHER, 1)
            dns = importlib.import_module("inmanta_plugins.dns")
            loader.unload_inmanta_plugins("std")
            self.assertIs(importlib.import_module("inmanta_plugins.dns"), dns)
            loader.unload_inmanta_plugins()
            self.assertIsNot(importlib.import_module("inmanta_plugins.dns"), dns)


class Std(unittest.TestCase):
    def test_stand_in(self) -> None:
        loader.unload_inmanta_plugins()
        self.addCleanup(loader.unload_inmanta_plugins)
        std = importlib.import_module("inmanta_plugins.std")
        self.assertEqual(os.path.dirname(std.__file__ or ""), finder.STD)
        self.assertIs(std.FactReference, standard.FactReference)
        self.assertIs(references.reference.get_class("std::Environment"), standard.EnvironmentReference)
        self.assertNotIn(finder.STD, loading.package_directories())

    def test_environment(self) -> None:
        ref = standard.EnvironmentReference("INTENDANT_TEST_VALUE")
        self.assertEqual(ref, standard.EnvironmentReference("INTENDANT_TEST_VALUE"))
        self.assertNotEqual(ref, standard.EnvironmentReference("OTHER"))
        with mock.patch.dict(os.environ, {"INTENDANT_TEST_VALUE": "17"}):
            self.assertEqual(ref.resolve(None), "17")
            self.assertEqual(standard.IntReference(ref).resolve(Logger()), 17)
        with self.assertRaisesRegex(LookupError, "INTENDANT_TEST_VALUE is not set"):
            ref.resolve(None)

    def test_facts(self) -> None:
        ref = standard.FactReference("env", "m::R[a,n=b]", "size", {"m::R[a,n=b]": {"size": "3"}})
        self.assertEqual((ref.resolve(None), str(ref)), ("3", "FactReference[resource_id=m::R[a,n=b],fact_name=size]"))
        with mock.patch.object(standard, "SyncClient") as client:
            client.return_value.get_facts.return_value = Result(200, {"data": [{"name": "size", "value": "4"}]})
            self.assertEqual(standard.FactReference("env", "r", "size").resolve(None), "4")
            client.return_value.get_facts.assert_called_with(tid="env", rid="r")
            with self.assertRaisesRegex(LookupError, "`other` for resource `r`"):
                standard.FactReference("env", "r", "other").resolve(None)
            client.return_value.get_facts.return_value = Result(404, {"message": "there is no such resource"})
            with self.assertRaisesRegex(Exception, "no such resource"):
                standard.FactReference("env", "r", "size").resolve(None)


class Logger:
    def debug(self, msg: str, **kwargs: object) -> None:
        """Takes no notice."""


class App(unittest.TestCase):
    def test_arguments(self) -> None:
        with tempfile.TemporaryDirectory() as top, mock.patch("subprocess.run") as run:
            write(top, {"project.yml": "name: x\n"})
            here = os.getcwd()
            os.chdir(top)
            try:
                run.return_value.returncode = 1
                self.assertEqual(app.main(["-v", "compile", "-v", "-e", "env", "-f", "other.cf", "-X", "--no-cache"]), 1)
                command: list[Any] = run.call_args.args[0]
                self.assertEqual(command[1:3], ["compile", os.path.realpath(top)])
                self.assertEqual(command[-8:], ["--python", sys.executable, "-f", "other.cf", "-e", "env", "-v", "-v"])
                run.side_effect = FileNotFoundError("no such program")
                with mock.patch("sys.stderr"):
                    self.assertEqual(app.main(["compile"]), 2)
            finally:
                os.chdir(here)

    def test_unknown_verb(self) -> None:
        with mock.patch("sys.stderr"), self.assertRaises(SystemExit):
            app.arguments(["server"])


class Names(unittest.TestCase):
    def test_parser(self) -> None:
        self.assertEqual(plyInmantaLex.t_ID.__doc__, "[a-zA-Z_][a-zA-Z_0-9-]*")
        self.assertEqual(plyInmantaLex.reserved["entity"], "ENTITY")
        self.assertNotIn("string", plyInmantaLex.reserved)

    def test_faults(self) -> None:
        self.assertTrue(issubclass(ast.MissingImportException, ast.TypeNotFoundException))
        self.assertTrue(issubclass(ast.DataClassMismatchException, ast.TypingException))
