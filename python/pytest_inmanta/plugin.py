"""The fixtures ``project``, ``project_no_plugins`` and ``inmanta_plugins``.

The directory in which pytest runs is that of the module under test, or below it. Models are compiled by the program named in the
environment variable INTENDANT; plugins, resources and handlers run in the process of the tests.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import importlib
import inspect
import json
import logging
import os
import re
import shutil
import sys
import textwrap
import types
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional, Union

import pytest

from inmanta import const, resources
from inmanta.agent import agent as agents
from inmanta.agent import cache as caching
from inmanta.agent import handler as handlers
from inmanta.config import Config
from inmanta.execute import proxy
from inmanta.plugins import PluginMeta
from inmanta.protocol.common import Result as Answer
from inmanta.protocol.common import json_encode
from inmanta.resources import Id, Resource
from intendant_host import session as sessions
from intendant_host.placing import placement
from pytest_inmanta import unittest_module
from pytest_inmanta.handler import DATA
from pytest_inmanta.server import client, environment, server, server_shared, sync_client

__all__ = ["client", "environment", "server", "server_shared", "sync_client"]  # fixtures that are defined elsewhere

LOGGER = logging.getLogger(__name__)

PACKAGE = "inmanta_plugins"

FETCHED = "INTENDANT_TEST_MODULES"
"""The environment variable that names a file with the modules that were fetched for the tests, and where they are."""

# What the options of the usual plugin did for fetching modules is done by "intendant module test" before pytest starts; they are
# taken so that scripts which give them go on working.
_IGNORED = (
    ("--venv", True),
    ("--module-repo", True),
    ("--module_repo", True),
    ("--install-mode", True),
    ("--install_mode", True),
    ("--pip-index-url", True),
    ("--pip-use-system-config", False),
    ("--pip-pre", False),
    ("--no-pip-pre", False),
    ("--use-module-in-place", False),
    ("--no-load-plugins", False),
    ("--no_load-plugins", False),
    ("--no_load_plugins", False),
    ("--no-strict-deps-check", False),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the options."""
    group = parser.getgroup("intendant")
    for name, takes_value in _IGNORED:
        dest = "intendant_ignored_" + name.strip("-").replace("-", "_")
        if takes_value:
            group.addoption(name, dest=dest, action="append", default=[], help="taken for compatibility; has no effect")
        else:
            group.addoption(name, dest=dest, action="store_true", default=False, help="taken for compatibility; has no effect")


@dataclasses.dataclass(frozen=True)
class ModuleUnderTest:
    """The module whose tests run."""

    name: str
    path: str
    layout: str


def module_under_test(start: str) -> ModuleUnderTest:
    """Finds the module that a directory belongs to. Raises an exception for the user when it belongs to none."""
    here = os.path.abspath(start)
    while True:
        v1 = os.path.join(here, "module.yml")
        if os.path.isfile(v1):
            with open(v1, encoding="utf-8") as f:
                found = re.search(r"^name\s*:\s*[\"']?([A-Za-z0-9_-]+)", f.read(), re.MULTILINE)
            return ModuleUnderTest(found.group(1) if found else os.path.basename(here), here, "v1")
        for v2 in ("setup.cfg", "pyproject.toml"):
            if os.path.isfile(os.path.join(here, v2)) and os.path.isdir(os.path.join(here, PACKAGE)):
                top = os.path.join(here, PACKAGE)
                names = [d for d in sorted(os.listdir(top)) if os.path.isdir(os.path.join(top, d)) and d[0] not in "._"]
                if len(names) == 1:
                    return ModuleUnderTest(names[0], here, "v2")
        parent = os.path.dirname(here)
        if parent == here:
            raise pytest.UsageError(f"{start} is not in a module: there is neither a module.yml nor a setup.cfg beside inmanta_plugins")
        here = parent


def get_resources_matching(
    resources: Iterable[Resource], resource_type: str, should_filter_model_type: bool = False, **filter_args: Any
) -> Iterator[Resource]:
    """The resources of a type whose attributes have given values. With should_filter_model_type subtypes do not count."""
    for r in resources:
        fits = r.id.entity_type == resource_type if should_filter_model_type else r.is_type(resource_type)
        if fits and all(hasattr(r, name) and getattr(r, name) == value for name, value in filter_args.items()):
            yield r


def check_serialization(resource: Resource) -> Resource:
    """Writes a resource as JSON and reads it again, as it happens on its way to an agent."""
    return Resource.deserialize(json.loads(json_encode(resource.serialize())))


def get_resource(
    resources: Iterable[Resource], resource_type: str, should_filter_model_type: bool = False, **filter_args: Any
) -> Optional[Resource]:
    """A copy of the first resource that fits, None without one."""
    found = next(get_resources_matching(resources, resource_type, should_filter_model_type, **filter_args), None)
    return None if found is None else check_serialization(found)


def get_one_resource(resources: Iterable[Resource], resource_type: str, **filter_args: Any) -> Optional[Resource]:
    """A copy of the one resource of exactly that type that fits, None without one. It is an error if several do."""
    found = list(get_resources_matching(resources, resource_type, True, **filter_args))
    assert len(found) <= 1, f"The filter should only match one resource, but it matches: [{','.join(str(r.id) for r in found)}]"
    return check_serialization(found[0]) if found else None


class Result:
    """The contexts of the handlers of several resources."""

    def __init__(self, results: dict[Resource, handlers.HandlerContext]) -> None:
        self.results = results

    def assert_all(self, status: const.ResourceState = const.ResourceState.deployed) -> None:
        """Asserts that all have a status."""
        for r, ctx in self.results.items():
            assert ctx.status == status, (
                f"Resource {r.id} has status {ctx.status and ctx.status.value}, expected {status.value}\n{_log(ctx)}"
            )

    def assert_has_no_changes(self) -> None:
        """Asserts that no handler saw a difference."""
        for r, ctx in self.results.items():
            assert not ctx.changes, f"Resource {r.id} has changes {ctx.changes}, expected no changes"

    def assert_resources_have_purged(self) -> None:
        """Asserts that all are to be created or to be deleted."""
        for r, ctx in self.results.items():
            assert ctx.changes, f"Resource {r.id} has no changes, expected some changes"
            assert "purged" in ctx.changes, f"Resource {r.id} is changed in {sorted(ctx.changes)}, and neither created nor deleted"

    def get_contexts_for(self, resource_type: str, **filter_args: Any) -> set[handlers.HandlerContext]:
        """The contexts of the resources that fit."""
        return {self.results[r] for r in get_resources_matching(self.results, resource_type, **filter_args)}

    def get_context_for(self, resource_type: str, **filter_args: Any) -> Optional[handlers.HandlerContext]:
        """The context of the one resource that fits, None without one; LookupError when several do."""
        found = list(get_resources_matching(self.results, resource_type, **filter_args))
        if len(found) > 1:
            raise LookupError("Multiple resources match this filter, if this is intentional, use get_contexts_for")
        return self.results[found[0]] if found else None

    def get_resource(self, resource_type: str, strict_mode: bool = False, **filter_args: Any) -> Optional[Resource]:
        """The first resource that fits; with strict_mode the one of exactly that type."""
        if strict_mode:
            return self.get_one_resource(resource_type, **filter_args)
        return get_resource(self.results, resource_type, **filter_args)

    def get_one_resource(self, resource_type: str, **filter_args: Any) -> Optional[Resource]:
        """The one resource of exactly that type that fits, None without one."""
        return get_one_resource(self.results, resource_type, **filter_args)


DeployResult = Result


@dataclasses.dataclass
class DeployResultCollection:
    """A dry run, a deployment, and a dry run after it."""

    first_dryrun: Result
    deploy: Result
    last_dryrun: Result


def _log(ctx: handlers.HandlerContext) -> str:
    lines = [f"Requested changes: {ctx.changes}"]
    for line in ctx.logs:
        lines.append(f"Log: {line.msg}")
        kwargs = dict(getattr(line, "kwargs", None) or {})
        trace = kwargs.pop("traceback", None)
        if kwargs:
            lines.append("\tKwargs: " + ", ".join(f"{k}: {v}" for k, v in kwargs.items()))
        if trace:
            lines.append(f"\tTraceback: {trace}")
    return "\n".join(lines)


@dataclasses.dataclass
class DeployResultV2:
    """What a handler did with a resource."""

    ctx: handlers.HandlerContext
    handler: Any
    resource: Resource

    def assert_status(self, status: const.ResourceState = const.ResourceState.deployed, change: Optional[const.Change] = None) -> None:
        """Asserts the status, and what was done if a change is given."""
        assert self.ctx.status == status, f"The status is {self.ctx.status}, not {status}\n{_log(self.ctx)}"
        if change is not None:
            assert self.ctx.change == change
        self.assert_consistent_status()

    @property
    def discovered_resources(self) -> list[object]:
        """What a discovery handler found."""
        found: list[object] = self.handler._client.discovered_resources
        return found

    @property
    def logs(self) -> list[Any]:
        """The lines of the log."""
        return self.ctx.logs

    def assert_has_logline(self, matches: str) -> Any:
        """Asserts that a line of the log matches a pattern, and returns it."""
        for line in self.logs:
            if re.search(matches, line.msg):
                return line
        raise AssertionError(f"No line found matching {matches!r}\n{_log(self.ctx)}")

    @property
    def changes(self) -> dict[str, Any]:
        """The differences that the handler saw."""
        return self.ctx.changes

    def assert_no_changes(self) -> None:
        """Asserts that there was no difference."""
        assert not self.changes, f"changes: {self.changes}"

    def assert_consistent_status(self) -> None:
        """Asserts that a handler which saw a difference says that it did something about it, and one that saw none does not."""
        if self.ctx.status != const.ResourceState.deployed:
            return
        if self.ctx.changes:
            assert self.ctx.change != const.Change.nochange, (
                f"the handler deployed the resource with {len(self.ctx.changes)} differences and says that it changed nothing: "
                "is a call of ctx.set_created(), ctx.set_updated() or ctx.set_purged() missing?"
            )
        else:
            assert self.ctx.change == const.Change.nochange, f"the handler saw no difference and says that it has {self.ctx.change.value}"


class MockClient:
    """Stands in for the client of the server's API that handlers use."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.discovered_resources: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if name == "discovered_resource_create_batch":
                self.discovered_resources.extend(kwargs.get("discovered_resources") or (args[1] if len(args) > 1 else []))
                return Answer(200, {})
            if name == "resource_did_dependency_change":
                return Answer(200, {"data": False})
            if name == "get_file":
                key = args[0] if args else kwargs.get("id")
                if not self._project.stat_blob(str(key)):
                    return Answer(404, {"message": f"there is no file {key}"})
                return Answer(200, {"content": base64.b64encode(self._project.get_blob(str(key))).decode()})
            return Answer(404, {"message": f"{name} needs a server, and tests have none"})

        return call


class Project:
    """A project to compile models in, with the module under test on its path."""

    def __init__(
        self, project_dir: str, env_path: str = "", load_plugins: Optional[bool] = True, module: Optional[ModuleUnderTest] = None
    ) -> None:
        self._test_project_dir = project_dir
        self._env_path = env_path
        self._should_load_plugins = load_plugins
        self._module = module
        self._session: Optional[sessions.Session] = None
        self._capsys: Any = None
        self._cwd = os.getcwd()
        self._dynamic: set[str] = set()
        self._reset()

    def _reset(self) -> None:
        self._stdout: Optional[str] = None
        self._stderr: Optional[str] = None
        self.version: Optional[int] = None
        self.resources: dict[Id, Resource] = {}
        self._root_scope: Any = None
        self._exporter: Any = None
        self._blobs: dict[str, bytes] = {}
        self._facts: dict[str, dict[str, Any]] = defaultdict(dict)
        self._plugins: Optional[dict[str, Any]] = None
        self._handlers: set[Any] = set()
        self.ctx: Optional[handlers.HandlerContext] = None
        self.types: Any = None

    def init(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Prepares for a test."""
        self._reset()
        self._capsys = capsys
        self._cwd = os.getcwd()
        if not os.path.isdir(os.path.join(self._test_project_dir, "libs", "unittest")):
            self.create_module("unittest", initcf=unittest_module.MODEL, initpy=unittest_module.CODE)
        if self._should_load_plugins:
            self._compile(f"import {self._module.name}" if self._module else "")
            self._plugins = self._load_plugins()

    # -- compiling

    def compile(self, main: str, export: bool = False, no_dedent: bool = True, export_env_var_settings: bool = False) -> None:
        """Compiles a model and makes its resources. Faults of the model are raised as the exceptions of ``inmanta.ast``.

        :param no_dedent: False takes away the indentation that all lines of the model share.
        """
        __tracebackhide__ = True  # a fault of the model is no fault of the fixture
        self._compile(main if no_dedent else textwrap.dedent(main.strip("\n")))

    def _compile(self, model: str) -> None:
        __tracebackhide__ = True
        self._close()
        for function in _functions("inmanta_reset_state"):
            function()
        with open(os.path.join(self._test_project_dir, "main.cf"), "w", encoding="utf-8") as f:
            f.write(model)
        if self._capsys is not None:
            self._capsys.readouterr()
        self._session = sessions.Session(self._test_project_dir, ["--modules", self._placement(), "--inputs", self._inputs()], self._facts)
        self._session.run()
        captured = self._capsys.readouterr() if self._capsys is not None else None
        self._stdout = self._session.stdout + (captured.out if captured else "")
        self._stderr = (captured.err if captured else "") + self._session.stderr
        fault = self._session.fault()
        if fault is not None:
            raise fault
        self.version = 0
        self.resources = self._deserialize(self._session.result["resources"])
        host = self._session.host
        assert host is not None
        self.types = host.scheduler().get_types()
        self._root_scope = RootScope(host)
        self._exporter = host.exporter
        files = getattr(host.exporter, "_file_store", {}) if host.exporter is not None else {}
        self._blobs.update({k: v if isinstance(v, bytes) else str(v).encode() for k, v in files.items()})
        if self._should_load_plugins:
            self._plugins = self._load_plugins()

    def _placement(self) -> str:
        """Writes where modules are: that under test, and what this environment has installed."""
        placed = []
        if self._module is not None:
            placed.append({"name": self._module.name, "version": "", "layout": self._module.layout, "dir": self._module.path})
        fetched = os.environ.get(FETCHED)
        if fetched:
            with open(fetched, encoding="utf-8") as f:
                placed += json.load(f)
        path = os.path.join(self._test_project_dir, "modules.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(placement(placed), f)
        return path

    def _inputs(self) -> str:
        facts = {f"{rid}/{name}": str(value) for rid, values in self._facts.items() for name, value in values.items()}
        path = os.path.join(self._test_project_dir, "inputs.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"facts": facts}, f)
        return path

    def _deserialize(self, made: list[dict[str, Any]]) -> dict[Id, Resource]:
        models: dict[str, Any] = {}
        host = self._session.host if self._session else None
        for several in (host.made if host else {}).values():
            for one in several:
                models[one.id.resource_str()] = one.model
        out: dict[Id, Resource] = {}
        for r in made:
            rid = Id.parse_id(r["id"])
            fields: dict[str, Any] = {**r["attributes"], "id": r["id"], "requires": r["requires"]}
            if resources.resource.get_class(rid.entity_type)[0] is None:
                _declare(rid.entity_type, rid.attribute, list(r["attributes"]))
            new = Resource.deserialize(fields)
            vars(new)["model"] = models.get(rid.resource_str())
            out[new.id] = new
        return out

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    # -- looking at the result

    def get_stdout(self) -> Optional[str]:
        """What the last compile printed."""
        return self._stdout

    def get_stderr(self) -> Optional[str]:
        """What the last compile wrote to its standard error."""
        return self._stderr

    def get_root_scope(self) -> Any:
        """The variables of the model."""
        return self._root_scope

    def get_instances(self, fortype: str = "std::Entity") -> list[proxy.DynamicProxy]:
        """All instances of an entity."""
        if self.types is None:
            raise Exception("No compile has been done")
        if fortype not in self.types:
            raise Exception(f"No entities of type {fortype} found in the model")
        return [proxy.DynamicProxy.return_value(i) for i in self.types[fortype].get_all_instances()]

    def get_resource(self, resource_type: str, strict_mode: bool = False, **filter_args: Any) -> Optional[Resource]:
        """The first resource of a type whose attributes have given values; with strict_mode the one of exactly that type."""
        if strict_mode:
            return self.get_one_resource(resource_type, **filter_args)
        return get_resource(self.resources.values(), resource_type, **filter_args)

    def get_one_resource(self, resource_type: str, **filter_args: Any) -> Optional[Resource]:
        """The one resource of exactly that type that fits, None without one."""
        return get_one_resource(self.resources.values(), resource_type, **filter_args)

    def check_serialization(self, resource: Resource) -> Resource:
        """Writes a resource as JSON and reads it again."""
        return check_serialization(resource)

    # -- files and facts

    def add_blob(self, key: str, content: Union[bytes, str], allow_overwrite: bool = True) -> None:
        """Adds a content to the file storage that handlers see."""
        if key in self._blobs and not allow_overwrite:
            raise Exception(f"Key {key} already stored in blobs")
        self._blobs[key] = content.encode("utf-8") if isinstance(content, str) else content

    def stat_blob(self, key: str) -> bool:
        """Reports whether the file storage has a content."""
        return key in self._blobs

    def get_blob(self, key: str) -> bytes:
        """A content of the file storage."""
        return self._blobs[key]

    def add_fact(self, resource_id: Any, name: str, value: object) -> None:
        """Pretends a fact for the next compile."""
        self._facts[str(resource_id)][name] = value

    def add_mock_file(self, subdir: str, name: str, content: str) -> None:
        """Adds a file to the module ``unittest``; subdir is templates or files."""
        directory = os.path.join(self._test_project_dir, "libs", "unittest", subdir)
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
            f.write(content)

    def create_module(self, name: str, initcf: str = "", initpy: str = "") -> None:
        """Makes a module in the project, for the rest of the test."""
        top = os.path.join(self._test_project_dir, "libs", name)
        for directory in ("model", "files", "templates", "plugins"):
            os.makedirs(os.path.join(top, directory))
        for path, text in (
            ("model/_init.cf", initcf),
            ("plugins/__init__.py", initpy),
            ("module.yml", f"name: {name}\nversion: 0.1\nlicense: Test License\n"),
        ):
            with open(os.path.join(top, path), "w", encoding="utf-8") as f:
                f.write(text)
        _forget(name)
        self._dynamic.add(name)

    # -- plugins

    def _load_plugins(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if self._module is None:
            return out
        top = f"{PACKAGE}.{self._module.name}"
        for name, loaded in sorted(sys.modules.items()):
            if name == top or name.startswith(top + "."):
                out.update({k: v for k, v in vars(loaded).items() if isinstance(v, types.FunctionType)})
        return out

    def get_plugins(self) -> dict[str, Any]:
        """All functions of the module under test by name."""
        if self._plugins is None:
            raise Exception(
                "Plugins not loaded, perhaps you should use the `project` fixture or initialize the Project with load_plugins == True"
            )
        return dict(self._plugins)

    def get_plugin_function(self, function_name: str) -> Any:
        """A function of the module under test."""
        found = self.get_plugins()
        if function_name not in found:
            raise Exception(f"Plugin function with name {function_name} not found")
        return found[function_name]

    # -- handlers

    def get_handler(self, resource: Resource, run_as_root: bool = False) -> Any:
        """The handler of a resource, ready to work on this machine."""
        agent = agents.AgentInstance(resource.id.agent_name, _environment(), "local:", asyncio.new_event_loop())
        made = handlers.Commander.get_provider(agent, resource, caching.AgentCache())
        made._client = MockClient(self)
        made.get_file = lambda hash_id: self.get_blob(hash_id) if self.stat_blob(hash_id) else None
        made.stat_file = self.stat_blob
        made.upload_file = lambda hash_id, content: self.add_blob(hash_id, content)

        def run_sync(function: Callable[[], Any]) -> Any:
            loop = asyncio.new_event_loop()
            try:
                return loop.run_until_complete(function())
            finally:
                loop.close()

        made.run_sync = run_sync
        self._handlers.add(made)
        return made

    def finalize_context(self, ctx: handlers.HandlerContext) -> None:
        """Asserts that what a handler logged can be sent to the server."""
        json_encode([getattr(line, "kwargs", {}) for line in ctx.logs])

    def finalize_handler(self, handler: Any) -> None:
        """Closes a handler's cache."""
        handler.cache.close()

    def finalize_all_handlers(self) -> None:
        """Closes the caches of all handlers."""
        for made in self._handlers:
            self.finalize_handler(made)

    def resolve_references(self, resource: Resource, ctx: Optional[handlers.LoggerABC] = None) -> None:
        """Puts the values of references in their places."""
        resource.resolve_all_references(ctx if ctx is not None else handlers.PythonLogger(LOGGER))

    def _execute(self, resource: Resource, handler: Any, ctx: handlers.HandlerContext, dry_run: bool) -> None:
        try:
            self.resolve_references(resource, ctx)
        except handlers.SkipResource as e:
            ctx.set_resource_state(const.HandlerResourceState.skipped)
            ctx.warning("Resource %(resource_id)s was skipped: %(exception)s", resource_id=str(resource.id), exception=repr(e))
        except Exception as e:
            ctx.set_resource_state(const.HandlerResourceState.failed)
            ctx.exception(
                "An error occurred during deployment of %(resource_id)s (exception: %(exception)s",
                resource_id=str(resource.id),
                exception=repr(e),
            )
        else:
            handler.execute(ctx, resource, dry_run)
        self.finalize_context(ctx)
        self.finalize_handler(handler)

    def deploy(self, resource: Optional[Resource], dry_run: bool = False, run_as_root: bool = False) -> handlers.HandlerContext:
        """Runs the handler of a resource and returns its context."""
        assert resource is not None
        handler = self.get_handler(resource, run_as_root)
        ctx = handlers.HandlerContext(resource, dry_run=dry_run)
        self._execute(resource, handler, ctx, dry_run)
        self.ctx = ctx
        return ctx

    def dryrun(self, resource: Optional[Resource], run_as_root: bool = False) -> handlers.HandlerContext:
        """Runs the handler of a resource without changing anything."""
        return self.deploy(resource, True, run_as_root)

    def deploy_resource(
        self,
        resource_type: str,
        status: const.ResourceState = const.ResourceState.deployed,
        run_as_root: bool = False,
        change: Optional[const.Change] = None,
        **filter_args: Any,
    ) -> Resource:
        """Deploys the first resource that fits, asserts the status and returns the resource."""
        found = self.get_resource(resource_type, **filter_args)
        assert found is not None, "No resource found of given type and filter args"
        ctx = self.deploy(found, False, run_as_root)
        assert ctx.status == status, f"The status is {ctx.status}, not {status}\n{_log(ctx)}"
        if change is not None:
            assert ctx.change == change
        return found

    def dryrun_resource(
        self, resource_type: str, status: const.ResourceState = const.ResourceState.dry, run_as_root: bool = False, **filter_args: Any
    ) -> dict[str, Any]:
        """Dry-runs the first resource that fits, asserts the status and returns the differences."""
        found = self.get_resource(resource_type, **filter_args)
        assert found is not None, "No resource found of given type and filter args"
        ctx = self.dryrun(found, run_as_root)
        assert ctx.status == status, f"The status is {ctx.status}, not {status}\n{_log(ctx)}"
        return ctx.changes

    def deploy_resource_v2(
        self,
        resource_type: str,
        run_as_root: bool = False,
        dry_run: bool = False,
        expected_status: Union[const.ResourceState, str, None] = "default",
        **filter_args: Any,
    ) -> DeployResultV2:
        """Deploys the first resource that fits. expected_status is deployed, or dry in a dry run; None asserts nothing."""
        found = self.get_resource(resource_type, **filter_args)
        assert found is not None, "No resource found of given type and filter args"
        handler = self.get_handler(found, run_as_root)
        ctx = handlers.HandlerContext(found, dry_run=dry_run)
        self._execute(found, handler, ctx, dry_run)
        out = DeployResultV2(ctx=ctx, handler=handler, resource=found)
        if expected_status == "default":
            expected_status = const.ResourceState.dry if dry_run else const.ResourceState.deployed
        if expected_status is not None:
            out.assert_status(const.ResourceState(expected_status))
        return out

    def dryrun_resource_v2(
        self,
        resource_type: str,
        run_as_root: bool = False,
        expected_status: Union[const.ResourceState, str, None] = "default",
        **filter_args: Any,
    ) -> DeployResultV2:
        """Dry-runs the first resource that fits."""
        return self.deploy_resource_v2(resource_type, run_as_root, True, expected_status, **filter_args)

    def deploy_all(self, run_as_root: bool = False, exclude_all: Iterable[str] = ("std::AgentConfig",)) -> Result:
        """Deploys all resources, what is required first; what requires a resource that is not deployed is skipped."""
        self.ctx = None
        todo = {str(rid): r for rid, r in self.resources.items() if not any(r.is_type(t) for t in exclude_all)}
        results: dict[Resource, handlers.HandlerContext] = {}
        contexts: dict[str, handlers.HandlerContext] = {}
        for rid in _ordered(todo):
            r = todo[rid]
            handler, ctx = self.get_handler(r, run_as_root), handlers.HandlerContext(r)
            contexts[rid] = results[r] = ctx
            if any(contexts[str(d)].status != const.ResourceState.deployed for d in r.requires if str(d) in contexts):
                ctx.set_status(const.ResourceState.skipped)
                self.finalize_handler(handler)
            else:
                self._execute(r, handler, ctx, False)
        return Result(results)

    def dryrun_all(self, run_as_root: bool = False) -> Result:
        """Dry-runs all resources."""
        return Result({r: self.dryrun(r, run_as_root) for r in self.resources.values()})

    def dryrun_and_deploy_all(self, run_as_root: bool = False, assert_create_or_delete: bool = False) -> DeployResultCollection:
        """Dry-runs and deploys all, and asserts that a second dry run sees nothing more to do."""
        first = self.dryrun_all(run_as_root)
        first.assert_all(const.ResourceState.dry)
        if assert_create_or_delete:
            first.assert_resources_have_purged()
        deployed = self.deploy_all(run_as_root)
        deployed.assert_all(const.ResourceState.deployed)
        last = self.dryrun_all(run_as_root)
        last.assert_all(const.ResourceState.dry)
        last.assert_has_no_changes()
        return DeployResultCollection(first_dryrun=first, deploy=deployed, last_dryrun=last)

    def get_last_context(self) -> Optional[handlers.HandlerContext]:
        """The context of the last single run of a handler."""
        return self.ctx

    def get_last_logs(self) -> Optional[list[Any]]:
        """The log of the last single run of a handler."""
        return self.ctx.logs if self.ctx is not None else None

    # -- the module unittest

    def unittest_resource_exists(self, name: str) -> bool:
        """Reports whether a unittest::Resource exists."""
        return name in DATA

    def unittest_resource_get(self, name: str) -> dict[str, Union[str, bool, float, int]]:
        """The state of a unittest::Resource."""
        return DATA[name]

    def unittest_resource_set(self, name: str, **kwargs: Union[str, bool, float, int]) -> None:
        """Changes the state of a unittest::Resource."""
        DATA[name].update(kwargs)

    def clean(self) -> None:
        """Takes away what a test left behind."""
        self._close()
        self.finalize_all_handlers()
        self._handlers.clear()
        DATA.clear()
        for name in self._dynamic:
            shutil.rmtree(os.path.join(self._test_project_dir, "libs", name), ignore_errors=True)
            _forget(name)
        self._dynamic.clear()
        os.chdir(self._cwd)


class RootScope:
    """The variables of a model's files."""

    def __init__(self, host: Any, name: str = "__config__") -> None:
        self._host, self._name = host, name

    def get_child(self, name: str) -> RootScope:
        """The variables of a file by its namespace."""
        return RootScope(self._host, name)

    def lookup(self, name: str) -> Any:
        """A variable."""
        qualified = name if self._name == "__config__" or "::" in name else f"{self._name}::{name}"
        return self._host.resolver().lookup(qualified)

    @property
    def scope(self) -> RootScope:
        """The variables themselves."""
        return self

    def get_variable(self, name: str) -> Any:
        """A variable."""
        return self.lookup(name)


def _environment() -> uuid.UUID:
    """The id of the environment that handlers see: the one that is configured, or any."""
    known = Config.get("config", "environment")
    return uuid.UUID(str(known)) if known else uuid.uuid5(uuid.NAMESPACE_OID, "tests")


def _ordered(todo: dict[str, Resource]) -> list[str]:
    """The ids of resources, each after what it requires. Raises an exception when there is a circle."""
    order: list[str] = []
    state: dict[str, str] = {}

    def visit(rid: str, path: list[str]) -> None:
        if state.get(rid) == "done" or rid not in todo:
            return
        if state.get(rid) == "open":
            raise Exception(f"Cycle detected: {[*path, rid]}")
        state[rid] = "open"
        for required in sorted(str(r) for r in todo[rid].requires):
            visit(required, [*path, rid])
        state[rid] = "done"
        order.append(rid)

    for rid in sorted(todo):
        visit(rid, [])
    return order


def _declare(name: str, attribute: str, fields: list[str]) -> None:
    """Makes a class for resources of a type that the program handles itself."""
    cls = type(name.rpartition("::")[2], (Resource,), {"fields": tuple(fields)})
    resources.resource(name, id_attribute=attribute, agent="agent")(cls)


def _forget(name: str) -> None:
    """Makes the Python code of a module be imported anew."""
    top = f"{PACKAGE}.{name}"
    for loaded in [m for m in sys.modules if m == top or m.startswith(top + ".")]:
        del sys.modules[loaded]
    PluginMeta.clear(name)
    importlib.invalidate_caches()


def _functions(prefix: str) -> list[Callable[[], None]]:
    """The functions of all modules whose names begin so."""
    out: list[Callable[[], None]] = []
    for name, loaded in list(sys.modules.items()):
        if name.startswith(PACKAGE + "."):
            out.extend(f for n, f in vars(loaded).items() if n.startswith(prefix) and inspect.isfunction(f))
    return out


class PluginsLoader:
    """Gives the Python code of modules as attributes."""

    def __getattr__(self, name: str) -> types.ModuleType:
        try:
            return importlib.import_module(f"{PACKAGE}.{name}")
        except ModuleNotFoundError as e:
            raise AttributeError(f"there is no Python code of a module {name}: {e}") from e


@pytest.fixture(scope="session")
def project_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The directory of the project that models are compiled in."""
    top = tmp_path_factory.mktemp("project")
    (top / "libs").mkdir()
    (top / "project.yml").write_text(
        "name: testcase\ndescription: Project for testcase\nmodulepath: libs\ndownloadpath: libs\n", encoding="utf-8"
    )
    return str(top)


@pytest.fixture(scope="session")
def project_shared(project_dir: str, request: pytest.FixtureRequest) -> Iterator[Project]:
    """The project of all tests; each test prepares it by ``init``."""
    made = Project(project_dir, module=module_under_test(str(request.config.invocation_params.dir)))
    yield made
    made.clean()


@pytest.fixture(scope="session")
def project_shared_no_plugins(project_dir: str, request: pytest.FixtureRequest) -> Iterator[Project]:
    """The project of all tests that load no plugins by themselves."""
    made = Project(project_dir, load_plugins=None, module=module_under_test(str(request.config.invocation_params.dir)))
    yield made
    made.clean()


@pytest.fixture
def project(project_shared: Project, capsys: pytest.CaptureFixture[str]) -> Iterator[Project]:
    """A project to compile models in."""
    DATA.clear()
    project_shared.init(capsys)
    yield project_shared
    project_shared.clean()


@pytest.fixture
def project_no_plugins(project_shared_no_plugins: Project, capsys: pytest.CaptureFixture[str]) -> Iterator[Project]:
    """A project whose plugins are loaded by the first compile."""
    DATA.clear()
    project_shared_no_plugins.init(capsys)
    yield project_shared_no_plugins
    project_shared_no_plugins.clean()


@pytest.fixture
def inmanta_plugins(project: Project) -> PluginsLoader:
    """The Python code of modules: ``inmanta_plugins.mymodule.function``."""
    return PluginsLoader()


@pytest.fixture
def inmanta_state_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A directory for the state of a server or an agent."""
    made = tmp_path_factory.mktemp("inmanta_state_dir")
    yield str(made)
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def set_inmanta_state_dir(inmanta_state_dir: str) -> None:
    """Sets the directory for state."""
    Config.set("config", "state-dir", inmanta_state_dir)
