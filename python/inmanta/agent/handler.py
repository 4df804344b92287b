"""What handlers of resources are made of.

A handler is registered for a type of resource with :class:`provider`. For each operation on a resource one instance is made, used
and closed; all handlers of one agent run in one thread.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import json
import logging
import traceback
import typing
import uuid
from abc import ABC, abstractmethod
from typing import Any, Awaitable, Callable, Dict, Generic, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from inmanta import const, data, resources, util
from inmanta.agent.cache import AgentCache, eviction
from inmanta.data.model import AttributeStateChange

if typing.TYPE_CHECKING:
    from inmanta.agent.agent import AgentInstance

LOGGER = logging.getLogger(__name__)

T = TypeVar("T")
T_FUNC = TypeVar("T_FUNC", bound=Callable[..., Any])
TResource = TypeVar("TResource", bound=resources.Resource)
TPurgeableResource = TypeVar("TPurgeableResource", bound=resources.PurgeableResource)
TDiscovery = TypeVar("TDiscovery", bound=resources.DiscoveryResource)
TDiscovered = TypeVar("TDiscovered")

Changes = Dict[str, Dict[str, Any]]


class SkipResource(Exception):
    """Raised by a handler that can not do anything about the resource now: the resource is skipped, which is not a failure."""


class SkipResourceForDependencies(SkipResource):
    """Raised by a handler that must wait for what the resource requires: it runs again once that has recovered."""


class ResourcePurged(Exception):
    """Raised by read_resource when the resource does not exist."""


class HandlerNotAvailableException(Exception):
    """Raised when there is no handler for a resource."""


class InvalidOperation(Exception):
    """Raised when a handler contradicts itself, such as by saying twice what it did."""


@typing.overload
def cache(func: T_FUNC) -> T_FUNC: ...


@typing.overload
def cache(
    func: None = None,
    ignore: List[str] = [],  # noqa: B006
    timeout: Optional[int] = None,
    for_version: Optional[bool] = None,
    cache_none: bool = True,
    cacheNone: Optional[bool] = None,  # noqa: N803
    call_on_delete: Optional[Callable[[Any], None]] = None,
    evict_after_creation: float = 0.0,
    evict_after_last_access: float = 0.0,
) -> Callable[[T_FUNC], T_FUNC]: ...


def cache(
    func: Optional[T_FUNC] = None,
    ignore: List[str] = [],  # noqa: B006 - part of the interface, never changed
    timeout: Optional[int] = None,
    for_version: Optional[bool] = None,
    cache_none: bool = True,
    cacheNone: Optional[bool] = None,  # noqa: N803 - the name that older modules use
    call_on_delete: Optional[Callable[[Any], None]] = None,
    evict_after_creation: float = 0.0,
    evict_after_last_access: float = 0.0,
) -> Any:
    """Keep what a handler's method returns for later calls with equal arguments, also those of other operations of the agent.

    :param ignore: names of arguments that do not tell calls apart.
    :param timeout: the older name of evict_after_creation.
    :param for_version: older; True keeps values for a while after their last use, False after their making.
    :param cache_none: whether None is kept too; cacheNone, if given, overrides it.
    :param call_on_delete: called once with the value when it is dropped.
    :param evict_after_creation: seconds after which a value is dropped however often it is used.
    :param evict_after_last_access: seconds after which a value is dropped that is not used. With neither it is 60.
    """
    keep_none = cache_none if cacheNone is None else cacheNone
    after_access, after_creation = eviction(for_version, timeout, evict_after_last_access, evict_after_creation)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = [p.name for p in util._parameters_of(function)][1:]

        @functools.wraps(function)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(names):
                raise TypeError(f"{function.__name__}() takes {len(names)} arguments but {len(args)} were given")
            arguments = {**dict(zip(names, args)), **kwargs}
            return self.cache.call(
                function.__name__,
                functools.partial(function, self),
                arguments,
                ignore,
                after_access,
                after_creation,
                keep_none,
                call_on_delete,
            )

        return wrapper

    return decorate if func is None else decorate(func)


class provider:  # noqa: N801 - a decorator
    """Register a handler for a type of resource: @provider("module::Type", name="any").

    Of several handlers of a type the one counts whose method available accepts the resource, and of those that do not have
    such a method the last.
    """

    def __init__(self, resource_type: str, name: Optional[str] = None) -> None:
        self._resource_type = resource_type
        self._name = name

    def __call__(self, function: Any) -> Any:
        Commander.add_provider(self._resource_type, function, self._name)
        return function


def _json_safe(value: Any) -> Any:
    """Return a value in terms that JSON has; what can not be encoded becomes its text."""
    try:
        return json.loads(json.dumps(value, default=util.internal_json_encoder))
    except Exception:  # an object may fail in any way when it is looked at
        try:
            return str(value)
        except Exception:
            return f"<{type(value).__name__}>"


def _reported(value: Any) -> Any:
    """Return a value as it is if it can be encoded when it is sent, else its text."""
    try:
        json.dumps(value, default=util.internal_json_encoder)
    except Exception:  # an object may fail in any way when it is looked at
        return _json_safe(value)
    return value


class LoggerABC(ABC):
    """A log that takes the values of a message by name: logger.info("%(count)d left", count=3)."""

    def critical(self, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a message of level CRITICAL."""
        self._log_msg(logging.CRITICAL, msg, *args, exc_info=exc_info, **kwargs)

    def error(self, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a message of level ERROR."""
        self._log_msg(logging.ERROR, msg, *args, exc_info=exc_info, **kwargs)

    def warning(self, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a message of level WARNING."""
        self._log_msg(logging.WARNING, msg, *args, exc_info=exc_info, **kwargs)

    def info(self, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a message of level INFO."""
        self._log_msg(logging.INFO, msg, *args, exc_info=exc_info, **kwargs)

    def debug(self, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a message of level DEBUG."""
        self._log_msg(logging.DEBUG, msg, *args, exc_info=exc_info, **kwargs)

    def exception(self, msg: str, *args: object, exc_info: bool = True, **kwargs: object) -> None:
        """Log a message of level ERROR with the traceback of the exception that is being handled."""
        self._log_msg(logging.ERROR, msg, *args, exc_info=exc_info, **kwargs)

    @abstractmethod
    def _log_msg(self, level: int, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        """Log a message."""


class PythonLogger(LoggerABC):
    """A log that writes to a logger of the module logging."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def _log_msg(self, level: int, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        if args:
            raise Exception("Args not supported")
        self.logger.log(level, "%s", data.format_message(msg, kwargs), exc_info=exc_info)


class HandlerContext(LoggerABC):
    """One operation on a resource: what a handler reports to, and where it keeps what its methods share."""

    def __init__(
        self,
        resource: resources.Resource,
        dry_run: bool = False,
        action_id: Optional[uuid.UUID] = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        self._resource = resource
        self._dry_run = dry_run
        self._cache: Dict[str, Any] = {}
        self._purged = self._updated = self._created = False
        self._change = const.Change.nochange
        self._changes: Dict[str, AttributeStateChange] = {}
        self._status: Optional[const.ResourceState] = None
        self._resource_state: Optional[const.HandlerResourceState] = None
        self._logs: List[data.LogLine] = []
        self._facts: List[Dict[str, Any]] = []
        self._action_id = action_id or uuid.uuid4()
        self.logger = logger or logging.getLogger(const.NAME_RESOURCE_ACTION_LOGGER).getChild(_agent_of(resource))
        self._listener: Optional[Callable[[data.LogLine], None]] = None

    @property
    def action_id(self) -> uuid.UUID:
        """The id of the operation."""
        return self._action_id

    @property
    def status(self) -> Optional[const.ResourceState]:
        """The status as the server knows it, None before it was set."""
        return self._status

    @property
    def resource_state(self) -> Optional[const.HandlerResourceState]:
        """What the handler made of the resource, None before it was set."""
        return self._resource_state

    @property
    def logs(self) -> List[data.LogLine]:
        """What was logged."""
        return self._logs

    @property
    def facts(self) -> List[Dict[str, Any]]:
        """The facts that were set."""
        return self._facts

    @property
    def changes(self) -> Dict[str, AttributeStateChange]:
        """The differences that were reported, by attribute."""
        return self._changes

    @property
    def change(self) -> const.Change:
        """What was done to the resource."""
        return self._change

    @property
    def changed(self) -> bool:
        """Tell whether anything was done to the resource."""
        return self._created or self._updated or self._purged

    def is_dry_run(self) -> bool:
        """Tell whether only the difference is asked for."""
        return self._dry_run

    def set_fact(self, fact_id: str, value: str, expires: bool = True) -> None:
        """Report a fact of the resource; one that expires is read again after a while."""
        self._facts.append(
            {
                "id": fact_id,
                "source": const.ParameterSource.fact.value,
                "value": value,
                "resource_id": self._resource.id.resource_str(),
                "expires": expires,
            }
        )

    def set_status(self, status: const.ResourceState) -> None:
        """Set the status; the older form of set_resource_state."""
        self._status = status
        try:
            self._resource_state = const.HandlerResourceState(const.ResourceState(status).value)
        except ValueError:
            self.warning(
                "Called set_status with status %(status)s, which a handler can not set; the resource counts as failed.",
                status=getattr(status, "value", str(status)),
            )
            self._resource_state = const.HandlerResourceState.failed

    def set_resource_state(self, new_state: const.HandlerResourceState) -> None:
        """Set what the handler made of the resource."""
        new_state = const.HandlerResourceState(new_state)
        if new_state is const.HandlerResourceState.non_compliant and not self._changes:
            raise InvalidOperation("Unable to set the state to non_compliant: no changes were reported.")
        self._resource_state = new_state
        waits = new_state is const.HandlerResourceState.skipped_for_dependency  # the one that the server does not know
        self._status = const.ResourceState.skipped if waits else const.ResourceState(new_state.value)

    def get(self, name: str) -> Any:
        """Return a value that was kept with set. KeyError: there is none."""
        return self._cache[name]

    def contains(self, key: str) -> bool:
        """Tell whether a value was kept with set."""
        return key in self._cache

    def set(self, name: str, value: Any) -> None:
        """Keep a value for later methods of the operation."""
        self._cache[name] = value

    def _done(self, what: const.Change) -> None:
        if self.changed:
            raise InvalidOperation(f"Unable to set {what.value} operation, {self._change.value} already set.")
        self._change = what

    def set_created(self) -> None:
        """Report that the resource was made."""
        self._done(const.Change.created)
        self._created = True

    def set_purged(self) -> None:
        """Report that the resource was removed."""
        self._done(const.Change.purged)
        self._purged = True

    def set_updated(self) -> None:
        """Report that the resource was changed."""
        self._done(const.Change.updated)
        self._updated = True

    def add_change(self, name: str, desired: object, current: object = None) -> None:
        """Report the difference of one attribute."""
        self._changes[name] = AttributeStateChange(current=_reported(current), desired=_reported(desired))

    def add_changes(self, **kwargs: Any) -> None:
        """Report what attributes were set to."""
        for field, value in kwargs.items():
            self.add_change(field, desired=value)

    def fields_updated(self, fields: Any) -> None:
        """Report names of attributes that differ, without their values; older."""
        for field in [fields] if isinstance(fields, str) else fields:
            if str(field) not in self._changes:
                self._changes[str(field)] = AttributeStateChange()

    def update_changes(self, changes: Mapping[str, Any]) -> None:
        """Report differences: of each attribute a pair (current, desired), a dict with these keys, or an AttributeStateChange."""
        for attribute, change in changes.items():
            if isinstance(change, AttributeStateChange):
                self.add_change(attribute, change.desired, change.current)
            elif isinstance(change, Mapping):
                self.add_change(attribute, change.get("desired"), change.get("current"))
            elif isinstance(change, tuple):
                if len(change) != 2:
                    raise InvalidOperation(f"Reported changes for {attribute} not in a valid format.")
                self.add_change(attribute, change[1], change[0])
            else:
                raise InvalidOperation(f"Reported changes for {attribute} not in a type that is recognized.")

    def _log_msg(self, level: int, msg: str, *args: object, exc_info: bool = False, **kwargs: object) -> None:
        if args:
            raise Exception("Args not supported")
        if exc_info:
            kwargs["traceback"] = traceback.format_exc()
        clean = {name: _json_safe(value) for name, value in kwargs.items()}
        # The text has the values in the form in which they are kept, so that both say the same; ids alone are easier to read.
        text = data.format_message(msg, {**clean, **{n: str(v) for n, v in kwargs.items() if isinstance(v, resources.Id)}})
        line = data.LogLine(data.level_of(level), text, clean)
        self._logs.append(line)
        if self._listener is not None:
            self._listener(line)
        self.logger.log(level, "resource %s: %s", self._resource.id.resource_version_str(), text)


def _agent_of(resource: Any) -> str:
    return str(getattr(getattr(resource, "id", None), "agent_name", "") or "agent")


class HandlerAPI(ABC, Generic[TResource]):
    """What every handler has."""

    def __init__(self, agent: AgentInstance, io: Optional[Any] = None) -> None:
        self._agent = agent
        self._ioloop: asyncio.AbstractEventLoop = agent.eventloop
        self._client: Optional[Any] = None
        self._cache: Optional[AgentCache] = None
        self._given_io = io
        self._own_io: Optional[Any] = None

    # The machine that the agent works on. Handlers of older modules use it; it is opened when it is first needed.
    @property
    def _io(self) -> Any:
        if self._given_io is not None:
            return self._given_io
        if self._own_io is None:
            from inmanta.agent.io import get_io

            self._own_io = get_io(self._cache, self._agent.uri, 0, agent=self._agent)
        return self._own_io

    @_io.setter
    def _io(self, io: Any) -> None:
        self._given_io = io

    @property
    def cache(self) -> AgentCache:
        """The agent's cache."""
        if self._cache is None:
            self._cache = AgentCache()
        return self._cache

    @cache.setter
    def cache(self, cache: AgentCache) -> None:
        self._cache = cache

    def set_cache(self, cache: AgentCache) -> None:
        """Hand over the agent's cache."""
        self._cache = cache

    def available(self, resource: TResource) -> bool:
        """Tell whether this handler, of several for the type, is the one for a resource; older."""
        return True

    def close(self) -> None:
        """Clean up; called at the end of each operation."""

    def pre(self, ctx: HandlerContext, resource: TResource) -> None:
        """Prepare; called at the beginning of each operation. What it raises is a failure of the operation."""

    def post(self, ctx: HandlerContext, resource: TResource) -> None:
        """Clean up; always called at the end of each operation. What it raises is logged."""

    @abstractmethod
    def execute(self, ctx: HandlerContext, resource: TResource, dry_run: bool = False) -> None:
        """Bring the resource to its desired state, or report the difference in a dry run."""

    def can_reload(self) -> bool:
        """Tell whether the handler can react to a change of what the resource requires."""
        return False

    def do_reload(self, ctx: HandlerContext, resource: TResource) -> None:
        """React to a change of what the resource requires."""

    def facts(self, ctx: HandlerContext, resource: TResource) -> Dict[str, str]:
        """Read the facts of the resource."""
        return {}

    def check_facts(self, ctx: HandlerContext, resource: TResource) -> Dict[str, str]:
        """Read the facts of the resource, with pre before and post after."""
        found: Dict[str, str] = {}
        try:
            self.pre(ctx, resource)
            found = self.facts(ctx, resource) or {}
        finally:
            self._post(ctx, resource, "getting facts about")
        return found

    def _post(self, ctx: HandlerContext, resource: TResource, what: str = "deployment of") -> None:
        try:
            self.post(ctx, resource)
        except Exception as e:
            ctx.exception(
                f"An error occurred after {what} %(resource_id)s (exception: %(exception)s)",
                resource_id=resource.id.resource_str(),
                exception=_named(e),
            )

    def deploy(self, ctx: HandlerContext, resource: TResource, requires: Mapping[str, const.ResourceState]) -> None:
        """Execute if what the resource requires is deployed, and reload if that has changed."""
        if not getattr(resource, "report_only", False) and self._blocked(ctx, resource, requires):
            ctx.set_resource_state(const.HandlerResourceState.skipped_for_dependency)
            return
        self.execute(ctx, resource)
        if self.can_reload() and self._dependency_changed(resource):
            self.do_reload(ctx, resource)

    def _blocked(self, ctx: HandlerContext, resource: TResource, requires: Mapping[str, const.ResourceState]) -> bool:
        unexpected = (const.ResourceState.dry, const.ResourceState.undefined, const.ResourceState.skipped_for_undefined)
        by_state = {name: state for name, state in sorted(requires.items()) if state is not const.ResourceState.deployed}
        shown = "[" + ", ".join(f"{name}: {state.value}" for name, state in by_state.items()) + "]"
        if any(state in unexpected for state in by_state.values()):
            ctx.warning(
                "Resource %(resource)s skipped because a dependency is in an unexpected state: %(unexpected_states)s",
                resource=resource.id.resource_version_str(),
                unexpected_states=shown,
            )
        elif any(state in const.TRANSIENT_STATES for state in by_state.values()):
            ctx.info(
                "Resource %(resource)s skipped because a dependency got a new desired state while we were preparing to deploy: "
                "%(reason)s",
                resource=resource.id.resource_version_str(),
                reason=shown,
            )
        elif by_state:
            ctx.info(
                "Resource %(resource)s skipped due to failed dependencies: %(failed)s",
                resource=resource.id.resource_version_str(),
                failed=shown,
            )
        return bool(by_state)

    def _dependency_changed(self, resource: TResource) -> bool:
        host = self._agent.host
        return bool(host is not None and host.dependency_changed(resource.id.resource_str()))

    def run_sync(self, func: Callable[[], Awaitable[T]]) -> T:
        """Run something asynchronous in the agent's event loop and wait for its result."""

        async def call() -> T:
            return await func()

        return asyncio.run_coroutine_threadsafe(call(), self._agent.eventloop).result()

    def get_client(self) -> Any:
        """Return a client of the server's API whose methods are to be awaited; see run_sync."""
        if self._client is None:
            from inmanta.protocol.endpoints import Client

            self._client = Client("agent")
        return self._client

    def get_file(self, hash_id: str) -> Optional[bytes]:
        """Return a content of the server's file storage by its SHA-1, or None when there is no such content."""
        host = self._agent.host
        content: Optional[bytes]
        if host is not None:
            content = host.get_file(hash_id)
        else:
            answer = self.run_sync(lambda: self.get_client().get_file(hash_id))
            if answer.code != 404 and answer.code != 200:
                raise Exception(f"An error occurred while retrieving file {hash_id}: {answer.code}")
            content = base64.b64decode(answer.result["content"]) if answer.code == 200 else None
        if content is not None and hashlib.sha1(content).hexdigest() != hash_id:  # noqa: S324 - an address
            raise Exception(f"File hash verification failed, expected: {hash_id}")
        return content

    def stat_file(self, hash_id: str) -> bool:
        """Tell whether the server's file storage has a content."""
        host = self._agent.host
        if host is not None:
            return bool(host.stat_file(hash_id))
        return bool(self.run_sync(lambda: self.get_client().stat_file(hash_id)).code == 200)

    def upload_file(self, hash_id: str, content: bytes) -> None:
        """Put a content in the server's file storage. hash_id is its SHA-1."""
        host = self._agent.host
        if host is not None:
            host.upload_file(hash_id, content)
            return
        text = base64.b64encode(content).decode("ascii")
        answer = self.run_sync(lambda: self.get_client().upload_file(id=hash_id, content=text))
        if answer.code != 200:
            raise Exception(f"Unable to upload file {hash_id}: the server answers {answer.code}")


def _named(e: BaseException) -> str:
    return f"{type(e).__name__}({str(e)!r})"


class ResourceHandler(HandlerAPI[TResource]):
    """A handler of resources of which the present state can be read as a whole, and changed by its differences."""

    def _diff(self, current: TResource, desired: TResource) -> Changes:
        """Return the attributes that differ; one that is desired to be None does not count."""
        changes: Changes = {}
        for field in type(current).fields:
            now, want = getattr(current, field), getattr(desired, field)
            if now != want and want is not None:
                changes[field] = {"current": now, "desired": want}
        return changes

    def check_resource(self, ctx: HandlerContext, resource: TResource) -> TResource:
        """Return the resource as it is at present."""
        raise NotImplementedError

    def list_changes(self, ctx: HandlerContext, resource: TResource) -> Changes:
        """Return the differences between the present and the desired state."""
        return self._diff(self.check_resource(ctx, resource), resource)

    def do_changes(self, ctx: HandlerContext, resource: TResource, changes: Mapping[str, Mapping[str, object]]) -> None:
        """Make the changes that are listed; it is called also when there are none."""
        raise NotImplementedError

    def execute(self, ctx: HandlerContext, resource: TResource, dry_run: bool = False) -> None:
        """See HandlerAPI.execute."""
        try:
            self.pre(ctx, resource)
            changes = self.list_changes(ctx, resource)
            ctx.update_changes(changes)
            if _observe(ctx, resource, dry_run):
                return
            self.do_changes(ctx, resource, changes)
            ctx.set_resource_state(const.HandlerResourceState.deployed)
        except Exception as e:
            _failed(ctx, resource, e)
        finally:
            self._post(ctx, resource)


def _observe(ctx: HandlerContext, resource: Any, dry_run: bool) -> bool:
    """Set the state of an operation that must not change anything; False when it may."""
    if getattr(resource, "report_only", False):
        state = const.HandlerResourceState
        ctx.set_resource_state(state.non_compliant if ctx.changes else state.deployed)
        if ctx.changes:
            ctx.info(
                "Resource %(resource_id)s was marked as non-compliant.",
                resource_id=resource.id.resource_str(),
                changes={name: change.model_dump() for name, change in ctx.changes.items()},
            )
        return True
    if dry_run:
        ctx.set_resource_state(const.HandlerResourceState.dry)
    return dry_run


def _failed(ctx: HandlerContext, resource: Any, e: Exception) -> None:
    """Set the state that an exception stands for."""
    if isinstance(e, SkipResource):
        for_dependencies = isinstance(e, SkipResourceForDependencies)
        state = const.HandlerResourceState
        ctx.set_resource_state(state.skipped_for_dependency if for_dependencies else state.skipped)
        ctx.warning("Resource %(resource_id)s was skipped: %(reason)s", resource_id=resource.id.resource_str(), reason=_reason(e))
        return
    ctx.set_resource_state(const.HandlerResourceState.failed)
    ctx.exception(
        "An error occurred during deployment of %(resource_id)s (exception: %(exception)s)",
        resource_id=resource.id.resource_str(),
        exception=_named(e),
    )


def _reason(e: Exception) -> str:
    return ", ".join(map(str, e.args))


class CRUDHandler(ResourceHandler[TPurgeableResource]):
    """A handler of things that are created, read, updated and deleted."""

    def read_resource(self, ctx: HandlerContext, resource: TPurgeableResource) -> None:
        """Change resource, a copy of the desired state, to the present one. ResourcePurged: it does not exist."""

    def create_resource(self, ctx: HandlerContext, resource: TPurgeableResource) -> None:
        """Make the resource."""

    def update_resource(self, ctx: HandlerContext, changes: Changes, resource: TPurgeableResource) -> None:
        """Change the resource. changes has, per attribute, the values under "current" and "desired"."""

    def delete_resource(self, ctx: HandlerContext, resource: TPurgeableResource) -> None:
        """Remove the resource."""

    def calculate_diff(self, ctx: HandlerContext, current: TPurgeableResource, desired: TPurgeableResource) -> Changes:
        """Return the attributes that differ."""
        return self._diff(current, desired)

    def execute(self, ctx: HandlerContext, resource: TPurgeableResource, dry_run: bool = False) -> None:
        """See HandlerAPI.execute."""
        try:
            self.pre(ctx, resource)
            desired = resource
            current = desired.clone(purged=False)
            changes: Changes = {}
            try:
                ctx.debug("Calling read_resource")
                self.read_resource(ctx, current)
                changes = self.calculate_diff(ctx, current=current, desired=desired)
            except ResourcePurged:
                if not desired.purged:
                    changes["purged"] = {"desired": desired.purged, "current": True}
            for field, values in changes.items():
                ctx.add_change(field, desired=values["desired"], current=values["current"])
            if _observe(ctx, desired, dry_run):
                return
            if "purged" in changes:
                if not changes["purged"]["desired"]:
                    ctx.debug("Calling create_resource")
                    self.create_resource(ctx, desired)
                else:
                    ctx.debug("Calling delete_resource")
                    self.delete_resource(ctx, desired)
            elif not desired.purged and changes:
                ctx.debug("Calling update_resource", changes=changes)
                self.update_resource(ctx, dict(changes), desired)
            ctx.set_resource_state(const.HandlerResourceState.deployed)
        except Exception as e:
            _failed(ctx, resource, e)
        finally:
            self._post(ctx, resource)


CRUDHandlerGeneric = CRUDHandler


class DiscoveryHandler(HandlerAPI[TDiscovery], Generic[TDiscovery, TDiscovered]):
    """A handler that looks for resources that exist and reports them to the server."""

    def check_facts(self, ctx: HandlerContext, resource: TDiscovery) -> Dict[str, str]:
        """Return nothing: a discovery has no facts."""
        return {}

    @abstractmethod
    def discover_resources(self, ctx: HandlerContext, discovery_resource: TDiscovery) -> Mapping[str, TDiscovered]:
        """Return what exists: the values of each resource by its id."""

    def execute(self, ctx: HandlerContext, resource: TDiscovery, dry_run: bool = False) -> None:
        """Look and report; do nothing in a dry run."""
        if dry_run:
            ctx.set_resource_state(const.HandlerResourceState.dry)
            return
        try:
            self.pre(ctx, resource)
            found = self.discover_resources(ctx, resource)
            batch = [
                {
                    "discovered_resource_id": str(name),
                    "values": _values(values),
                    "discovery_resource_id": resource.id.resource_str(),
                }
                for name, values in found.items()
            ]
            answer = self.run_sync(
                lambda: self.get_client().discovered_resource_create_batch(
                    tid=self._agent.environment, discovered_resources=batch
                )
            )
            if answer.code != 200:
                detail = (answer.result or {}).get("message", "")
                ctx.set_resource_state(const.HandlerResourceState.failed)
                ctx.error("The server did not take the discovered resources: %(code)s %(detail)s", code=answer.code, detail=detail)
                return
            ctx.set_resource_state(const.HandlerResourceState.deployed)
        except Exception as e:
            _failed(ctx, resource, e)
        finally:
            self._post(ctx, resource)


def _values(found: Any) -> Any:
    dump = getattr(found, "model_dump", None)
    return dump(mode="json") if callable(dump) else _json_safe(found)


Handler = Type[HandlerAPI[Any]]


class Commander:
    """The table of handlers."""

    _handlers: Dict[str, Dict[str, Handler]] = {}

    @classmethod
    def get_handlers(cls) -> Dict[str, Handler]:
        """Return the handler of each type; of several the last."""
        return {t: list(by_name.values())[-1] for t, by_name in cls._handlers.items()}

    @classmethod
    def reset(cls) -> None:
        """Forget all handlers."""
        cls._handlers = {}

    @classmethod
    def close(cls) -> None:
        """Do nothing; older."""

    @classmethod
    def add_provider(cls, resource: str, provider: Handler, name: Optional[str] = None) -> None:
        """Register a handler."""
        by_name = cls._handlers.setdefault(resource, {})
        by_name.pop(name or "", None)
        by_name[name or ""] = provider

    @classmethod
    def get_providers(cls) -> Iterator[Tuple[str, Handler]]:
        """Return types and handlers."""
        yield from cls.get_handlers().items()

    @classmethod
    def get_provider_class(cls, resource_type: str, name: Optional[str] = None) -> Optional[Handler]:
        """Return the handler of a type, of that name if there is one, or None."""
        by_name = cls._handlers.get(resource_type)
        if not by_name:
            return None
        return by_name.get(name or "", list(by_name.values())[-1])

    @classmethod
    def get_provider(cls, agent: AgentInstance, resource: resources.Resource, cache: Optional[AgentCache] = None) -> Any:
        """Make the handler of a resource. HandlerNotAvailableException: there is none, or several claim the resource."""
        by_name = cls._handlers.get(resource.id.entity_type, {})
        choosing = [h for h in by_name.values() if h.available is not HandlerAPI.available]
        if not by_name:
            raise HandlerNotAvailableException(f"No resource handler registered for resource of type {resource.id.entity_type}")
        if not choosing:
            return _make(list(by_name.values())[-1], agent, cache)
        made: List[Any] = []
        for candidate in by_name.values():
            handler = _make(candidate, agent, cache)
            if handler.available(resource):
                made.append(handler)
            else:
                handler.close()
        if len(made) == 1:
            return made[0]
        for handler in made:
            handler.close()
        if made:
            raise HandlerNotAvailableException(f"More than one handler selected for resource {resource.id}")
        raise HandlerNotAvailableException(f"No handler is available for resource {resource.id}")


def _make(handler: Handler, agent: AgentInstance, cache: Optional[AgentCache]) -> Any:
    made = handler(agent)
    if cache is not None:
        made.set_cache(cache)
    return made


__all__ = [
    "AgentCache",
    "CRUDHandler",
    "CRUDHandlerGeneric",
    "Commander",
    "DiscoveryHandler",
    "HandlerAPI",
    "HandlerContext",
    "HandlerNotAvailableException",
    "InvalidOperation",
    "LoggerABC",
    "PythonLogger",
    "ResourceHandler",
    "ResourcePurged",
    "SkipResource",
    "SkipResourceForDependencies",
    "Union",
    "cache",
    "provider",
]
