"""The process in which an agent runs the handlers of modules.

One process has one agent and one set of code. All code of modules runs in one thread, one operation after the other; an event loop
for what is asynchronous runs in another. The other side calls:

``load``
    Gives the process its agent and its code, and has the code imported. What can not be imported is reported, module by module.
``run``
    One operation on a resource: deploy, repair, dryrun or getfact. Lines of the log are events while it runs.
``resolve``
    The value of one reference.
``stop``
    The end is near: what handlers have cached is given up.
``interrupt``
    Has the present operation end, if its code lets it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import queue
import sys
import tempfile
import threading
import traceback
import types
import uuid
from collections import abc
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from intendant_host.wire import Peer, RemoteError

LOGGER = logging.getLogger("inmanta.executor")

MAX_TEXT = 60_000
"""How much of one text of a log line goes over; the other side cuts lines as well."""

MAX_LINES = 1_500
"""How many lines of one operation go over: somewhat more than the other side keeps, so that it can say that it left some out."""

TICK = 5.0
"""How often, in seconds, an idle process looks for values in its cache that are over their time."""


class TaskInterrupted(BaseException):
    """Raised in the code of an operation that must end."""


class SourceFinder(importlib.abc.MetaPathFinder):
    """Finds the modules that were shipped, before anything that is installed."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = dict(sources)
        self._packages = {name.rpartition(".")[0] for name in sources}
        self._packages |= {name for name, file in sources.items() if os.path.basename(file) == "__init__.py"}

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """See importlib.abc.MetaPathFinder."""
        file = self._sources.get(fullname)
        if file is None:
            if fullname in self._packages and fullname != "inmanta_plugins":
                return importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            return None
        loader = importlib.machinery.SourceFileLoader(fullname, file)
        locations = [os.path.dirname(file)] if fullname in self._packages else None
        return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=locations)


class Host:
    """What handlers get from the agent's side of the process."""

    def __init__(self, peer: Peer, work_dir: str) -> None:
        self._peer = peer
        self._dir = work_dir
        self.reload = False

    def dependency_changed(self, resource_id: str) -> bool:
        """Tell whether something changed that the resource of the present operation requires."""
        return self.reload

    def get_file(self, hash_id: str) -> Optional[bytes]:
        """Return a content of the file storage, or None."""
        path = self._peer.call("file_get", {"hash": hash_id})
        if path is None:
            return None
        try:
            with open(path, "rb") as f:
                return f.read()
        finally:
            os.unlink(path)

    def stat_file(self, hash_id: str) -> bool:
        """Tell whether the file storage has a content."""
        return bool(self._peer.call("file_stat", {"hash": hash_id}))

    def upload_file(self, hash_id: str, content: bytes) -> None:
        """Put a content in the file storage."""
        actual = hashlib.sha1(content).hexdigest()  # noqa: S324 - an address
        if actual != hash_id:
            raise ValueError(f"the content's SHA-1 is {actual}, not {hash_id}")
        fd, path = tempfile.mkstemp(dir=self._dir)
        try:
            with open(fd, "wb") as f:
                f.write(content)
            self._peer.call("file_put", {"hash": hash_id, "name": os.path.basename(path)})
        finally:
            os.unlink(path)

    def ssh(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Run a script on another machine."""
        answer: Dict[str, Any] = self._peer.call("ssh", request)
        return answer

    def rest(self, verb: str, path: str, headers: Dict[str, str], body: Optional[str], timeout: float) -> Any:
        """Call the server's API as the agent."""
        from inmanta.protocol.common import Result
        from inmanta.protocol.endpoints import decode

        if path.endswith("/did_dependency_change"):  # the agent was told with the task
            return Result(200, {"data": self.reload})
        try:
            answer = self._peer.call("rest", {"verb": verb, "path": path, "headers": headers, "body": body, "timeout": timeout})
        except RemoteError as e:
            return Result(503, {"message": str(e)})
        return decode(int(answer["code"]), (answer.get("body") or "").encode())


class Executor:
    """The agent's code and the thread that runs it."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._jobs: "queue.Queue[Optional[Callable[[], None]]]" = queue.Queue()
        self._loop = asyncio.new_event_loop()
        self._worker: Optional[int] = None
        # guards _task, so that an interrupt never hits the operation after the one it is meant for
        self._lock = threading.Lock()
        self._task: Optional[str] = None
        # Where output goes, whatever code of modules makes of descriptors 1 and 2: a file may have their numbers later on.
        self._output = (os.dup(1), os.dup(2))
        self._failures: Dict[str, str] = {}
        self._exhausted = False
        self._agent: Any = None
        self._cache: Any = None
        self._host: Optional[Host] = None

    def submit(self, method: str, args: Any, serve: Callable[[], None]) -> None:
        """Decide on the thread for a call: all but interrupt run one after the other."""
        if method == "interrupt":
            threading.Thread(target=serve, daemon=True).start()
        else:
            self._jobs.put(serve)

    def work(self) -> None:
        """Run what is submitted, in this thread, for ever."""
        self._worker = threading.get_ident()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="loop").start()
        while True:
            try:
                job = self._jobs.get(timeout=TICK)
            except queue.Empty:
                self._clean()
                continue
            except TaskInterrupted:  # it came when the operation was just over
                continue
            if job is None:
                return
            try:
                job()
            except TaskInterrupted:
                LOGGER.debug("an interrupt came after the end of its operation")

    def _clean(self) -> None:
        with contextlib.suppress(TaskInterrupted):
            if self._cache is not None:
                self._cache.clean_stale_entries()

    def stop(self, _: Any = None) -> None:
        """Give up what is cached; no operation follows."""
        if self._agent is not None:
            self._agent.stop()
        if self._cache is not None:
            self._cache.close()

    # load

    def load(self, args: Dict[str, Any]) -> Dict[str, Any]:
        """Take the agent and the code, and import it."""
        from inmanta.agent.agent import AgentInstance
        from inmanta.agent.cache import AgentCache
        from inmanta.agent.handler import Commander
        from inmanta.protocol.endpoints import set_transport

        self._host = Host(self._peer, args["work_dir"])
        set_transport(self._host.rest)
        self._configure(args)
        self._agent = AgentInstance(args["agent"], uuid.UUID(args["environment"]), args.get("uri", ""), self._loop, self._host)
        self._cache = AgentCache(self._agent)
        self._namespace(args["sources"])
        for name in args["imports"]:
            self._import(name)
        return {"failures": self._failures, "types": sorted(Commander.get_handlers())}

    def _configure(self, args: Dict[str, Any]) -> None:
        from inmanta.config import Config

        Config.set("config", "environment", args["environment"])
        Config.set("config", "state-dir", args["work_dir"])

    def _namespace(self, sources: Mapping[str, str]) -> None:
        importlib.import_module("intendant_host.standard")  # registers what std brings
        package = sys.modules.get("inmanta_plugins")
        if package is None:
            try:
                package = importlib.import_module("inmanta_plugins")  # other modules of it may be installed
            except ImportError:
                package = types.ModuleType("inmanta_plugins")
                package.__path__ = []
                sys.modules["inmanta_plugins"] = package
        sys.meta_path.insert(0, SourceFinder(sources))

    def _import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except BaseException as e:  # noqa: BLE001 - a module may end in any way, SystemExit included
            if isinstance(e, TaskInterrupted):
                self._failures[name] = "importing it took too long"
                return
            self._failures[name] = _failure(e)
            LOGGER.warning("importing %s failed", name, exc_info=True)

    # run

    def run(self, args: Dict[str, Any]) -> Dict[str, Any]:
        """Carry out one operation."""
        with self._lock:
            self._task = args["task"]
        try:
            return self._run(args)
        except TaskInterrupted:
            return {"outcome": "failed", "code": "deadline", "message": "The handler was ended at its deadline."}
        finally:
            with self._lock:
                self._task = None
            self._end_output(args["task"])

    def _end_output(self, task: str) -> None:
        """Mark in both streams where the output of an operation ends: the other side reads them apart from the answer."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        for fd in self._output:
            os.write(fd, f"\0end {task}\n".encode())

    def interrupt(self, args: Dict[str, Any]) -> bool:
        """Raise TaskInterrupted in the operation, if it is the present one."""
        with self._lock:
            if self._task != args["task"] or self._worker is None:
                return False
            return bool(
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._worker), ctypes.py_object(TaskInterrupted)) == 1
            )

    def _run(self, args: Dict[str, Any]) -> Dict[str, Any]:
        from inmanta.agent.handler import HandlerContext
        from inmanta.resources import Resource

        wanted = f"{args['resource']},v={args['version']}"
        if self._broken(args["resource"].partition("[")[0]):
            return self._unavailable(args, f"The code for {wanted} is not complete", "")
        self._declare(wanted, args["attributes"])
        try:
            resource = Resource.deserialize({**args["attributes"], "id": wanted, "requires": args["requirements"]})
        except TaskInterrupted:
            raise
        except BaseException as e:  # noqa: BLE001 - what deserializes is code of modules
            return self._unavailable(args, f"Unable to deserialize {wanted}: {_short(e)}", traceback.format_exc())
        ctx = HandlerContext(resource, dry_run=args["kind"] == "dryrun", action_id=uuid.UUID(args["task"]))
        lines = 0
        self._exhausted = False

        def listen(line: Any) -> None:
            nonlocal lines
            lines += 1
            # What is logged while an exception is handled tells of it; the operation may have given up for it.
            self._exhausted = self._exhausted or isinstance(sys.exc_info()[1], MemoryError)
            if lines <= MAX_LINES:
                self._log(args["task"], line)

        ctx._listener = listen
        assert self._host is not None
        self._host.reload = bool(args.get("reload"))
        if args.get("reason"):
            ctx.debug("Start run because %(reason)s", reason=args["reason"])
        try:
            with self._cache:
                return self._operate(args, resource, ctx)
        except TaskInterrupted:
            raise
        except BaseException as e:  # noqa: BLE001 - SystemExit ends the operation, not the process
            doing = {"dryrun": "during the dry run of", "getfact": "while getting facts about"}.get(args["kind"], "during deployment of")
            ctx.exception(
                f"An error occurred {doing} %(resource_id)s (exception: %(exception)s)",
                resource_id=resource.id.resource_str(),
                exception=f"{type(e).__name__}({str(e)!r})",
            )
            return self._result(args, ctx, "failed")

    def _declare(self, wanted: str, attributes: Dict[str, Any]) -> None:
        """Make a class for a resource that has a handler and no class: its type is one of those that the compiler itself knows."""
        from inmanta.agent.handler import Commander
        from inmanta.resources import Id, PurgeableResource, Resource, resource

        ident = Id.parse_id(wanted)
        if resource.get_class(ident.entity_type)[0] is not None or Commander.get_provider_class(ident.entity_type) is None:
            return
        base = PurgeableResource if "purged" in attributes else Resource
        fields = tuple(name for name in attributes if name not in ("id", "requires", "version", "references", "mutators"))
        made = type(ident.entity_type.rpartition("::")[2], (base,), {"fields": fields})
        resource(ident.entity_type, id_attribute=ident.attribute, agent="agent")(made)

    def _broken(self, resource_type: str) -> bool:
        """Tell whether some part could not be imported of a module that has the resource or its handler."""
        from inmanta.agent.handler import Commander
        from inmanta.resources import resource

        for cls in (resource.get_class(resource_type)[0], Commander.get_provider_class(resource_type)):
            root = ".".join(cls.__module__.split(".")[:2]) if cls is not None else ""
            if root and any(name == root or name.startswith(root + ".") for name in self._failures):
                return True
        return False

    def _operate(self, args: Dict[str, Any], resource: Any, ctx: Any) -> Dict[str, Any]:
        from inmanta import const
        from inmanta.agent.handler import Commander, SkipResource, SkipResourceForDependencies
        from inmanta.references import MutatorMissingError, ReferenceMissingError

        if args.get("own") and Commander.get_provider_class(resource.id.entity_type) is None:
            # The code has the class of the resource alone: the agent has a handler in Go.
            return {"outcome": "unavailable", "code": "no-provider", "message": "", "traceback": ""}
        try:
            handler = Commander.get_provider(self._agent, resource, self._cache)
        except Exception as e:  # whatever the handler's constructor raises
            return self._unavailable(
                args, f"Unable to find a handler for {resource.id}: {_short(e)}", traceback.format_exc(), log=ctx.error
            )
        try:
            self._resolve(args, resource, ctx)
            if args["kind"] == "getfact":
                found = handler.check_facts(ctx, resource)
                for name, value in (found or {}).items():
                    ctx.set_fact(name, value)
                return self._result(args, ctx, "deployed")
            if args["kind"] == "dryrun":
                handler.execute(ctx, resource, dry_run=True)
                return self._result(args, ctx, self._dry_outcome(ctx))
            requires = {name: _state(const.ResourceState, state) for name, state in args["requires"].items()}
            handler.deploy(ctx, resource, requires)
            return self._result(args, ctx, self._outcome(ctx))
        except (MutatorMissingError, ReferenceMissingError) as e:
            return self._unavailable(args, str(e), traceback.format_exc(), log=ctx.error)
        except SkipResource as e:
            # A handler's own execute, its reload, or a reference may raise it as well.
            if args["kind"] in ("dryrun", "getfact"):
                raise
            waits = isinstance(e, SkipResourceForDependencies)
            ctx.warning(
                "Resource %(resource_id)s was skipped: %(reason)s",
                resource_id=resource.id.resource_str(),
                reason=", ".join(map(str, e.args)),
            )
            return self._result(args, ctx, "skipped_for_dependency" if waits else "skipped")
        finally:
            try:
                handler.close()
            except Exception:
                ctx.exception("The handler could not be closed")

    def _outcome(self, ctx: Any) -> str:
        state = ctx.resource_state
        if state is None:
            return "deployed"
        if state.value == "dry":
            ctx.error("The handler set the status to dry although this is not a dry run")
            return "failed"
        return str(state.value)

    def _dry_outcome(self, ctx: Any) -> str:
        state = ctx.resource_state
        return "dry" if state is None or state.value == "deployed" else str(state.value)

    def _resolve(self, args: Dict[str, Any], resource: Any, ctx: Any) -> None:
        if not args["attributes"].get("mutators"):
            return
        before: Set[str] = set()
        for field in type(resource).fields:
            before.update(_texts(getattr(resource, field, None)))
        old = {field: _encoded(getattr(resource, field, None)) for field in type(resource).fields}
        resource.resolve_all_references(ctx)
        hidden = {}
        for field in type(resource).fields:
            value = getattr(resource, field, None)
            if field not in ("references", "mutators") and _encoded(value) != old[field]:
                hidden[field] = sorted(_texts(value) - before)
        # They are known on the other side before any line that could have them.
        self._peer.call("hide", {"task": args["task"], "hidden": hidden})

    def _log(self, task: str, line: Any) -> None:
        kwargs = {name: _cut(value) for name, value in line.kwargs.items()}
        self._peer.emit(
            "log",
            {
                "task": task,
                "level": line.level.name,
                "message": _cut(line.msg),
                "kwargs": kwargs,
                "time": line.timestamp.isoformat(timespec="microseconds"),
            },
        )

    def _unavailable(
        self, args: Dict[str, Any], message: str, trace: str, log: Optional[Callable[..., None]] = None
    ) -> Dict[str, Any]:
        detail = ""
        for name, reason in sorted(self._failures.items()):
            detail += f"\n{name} could not be imported: {reason}"
        return {"outcome": "unavailable", "code": "no-handler", "message": _cut(message + detail), "traceback": _cut(trace)}

    def _result(self, args: Dict[str, Any], ctx: Any, outcome: str) -> Dict[str, Any]:
        from inmanta.agent.handler import _json_safe

        changes = {}
        for name, change in ctx.changes.items():
            changes[str(name)] = {"current": _bounded(_json_safe(change.current)), "desired": _bounded(_json_safe(change.desired))}
        return {
            "outcome": outcome,
            "exhausted": self._exhausted and outcome == "failed",
            "change": ctx.change.value,
            "changes": changes,
            "facts": [
                {"name": str(f["id"]), "value": f["value"] if isinstance(f["value"], str) else str(f["value"]), "expires": f["expires"]}
                for f in ctx.facts
            ],
        }

    # resolve

    def resolve(self, args: Dict[str, Any]) -> Any:
        """Return the value of a reference whose arguments are values."""
        from inmanta import references
        from inmanta.agent.handler import PythonLogger

        with self._lock:
            self._task = args["task"]
        try:
            cls = references.reference.get_class(args["type"])
            kinds = {"str": str, "float": float, "int": int, "bool": bool}
            values = {
                a["name"]: kinds.get(a["value"], a["value"]) if a["type"] == "python_type" else a["value"] for a in args["args"]
            }
            value = cls(**values).resolve(PythonLogger(LOGGER))
            json.dumps(value)
            return value
        finally:
            with self._lock:
                self._task = None


def _state(kind: Any, name: str) -> Any:
    try:
        return kind(name)
    except ValueError:
        return kind.failed


def _short(e: BaseException) -> str:
    return f"{type(e).__name__}: {e}"


def _failure(e: BaseException) -> str:
    """Say why a module could not be imported: the exception and where in the module it happened."""
    where = ""
    for frame in traceback.extract_tb(e.__traceback__):
        if "importlib" not in frame.filename and "intendant_host" not in frame.filename:
            where = f" ({_shipped(frame.filename)}, line {frame.lineno})"
    if isinstance(e, SyntaxError):
        where = f" ({_shipped(e.filename or '')}, line {e.lineno})"
        version = "{}.{}.{}".format(*sys.version_info[:3])
        return f"{type(e).__name__}: {e.msg}{where}; it was read by Python {version}, which the setting python in [agent] chooses"
    hint = ""
    if isinstance(e, ModuleNotFoundError) and e.name:
        root, _, rest = e.name.partition(".")
        if root == "inmanta_plugins" and rest:
            hint = f"; the model has to import the module {rest.partition('.')[0]}, for its code to be shipped"
        elif root not in ("inmanta", "intendant_host"):
            hint = f"; a package that has {root} must be among the module's requirements: requirements.txt or install_requires in setup.cfg"
    text: str = _cut(f"{_short(e)}{where}{hint}")
    return text


def _shipped(file: str) -> str:
    """Return the part of a path that its author knows."""
    _, found, rest = file.rpartition("/inmanta_plugins/")
    return found[1:] + rest if found else file


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return value[:MAX_TEXT] + " … (cut)"
    return value


def _encoded(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _bounded(value: Any) -> Any:
    """Return a value that JSON has and that is not larger than anybody wants to see."""
    text = _encoded(value)
    if len(text) > MAX_TEXT:
        return f"({len(text)} characters, too long to be shown)"
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=str))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _texts(value: Any) -> Set[str]:
    """Return all texts in a value."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, abc.Mapping):
        return {t for v in value.values() for t in _texts(v)}
    if isinstance(value, (list, tuple)):
        return {t for v in value for t in _texts(v)}
    return set()


class _Forward(logging.Handler):
    """Hands what modules log on to the other side; what is about a resource goes there with the operation."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(logging.INFO)
        self._peer = peer

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        if record.name.startswith("inmanta.resource_action"):
            return
        with contextlib.suppress(Exception):
            self._peer.emit("module_log", {"level": record.levelname, "logger": record.name, "message": _cut(self.format(record))})


def main() -> None:
    """Serve until the other side ends the connection."""
    peer = Peer()
    executor = Executor(peer)
    root = logging.getLogger()
    root.addHandler(_Forward(peer))
    root.setLevel(logging.INFO)
    actions = logging.getLogger("inmanta.resource_action")  # its lines go over with their operation
    actions.propagate = False
    actions.addHandler(logging.NullHandler())
    handlers: List[Tuple[str, Callable[[Any], Any]]] = [
        ("load", executor.load),
        ("run", executor.run),
        ("resolve", executor.resolve),
        ("interrupt", executor.interrupt),
        ("stop", executor.stop),
    ]
    for name, handler in handlers:
        peer.handle(name, handler)
    peer.handshake()

    def read() -> None:
        try:
            peer.serve_threaded(executor.submit)
        finally:
            executor._jobs.put(None)

    threading.Thread(target=read, daemon=True, name="reader").start()
    # Code of modules runs in the main thread, where signals and libraries that insist on it work.
    executor.work()
    executor.stop()
