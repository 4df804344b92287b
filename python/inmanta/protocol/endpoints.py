"""Clients of the server's API: Client, whose methods are to be awaited, and SyncClient, whose methods wait."""

from __future__ import annotations

import asyncio
import inspect
import json
import ssl
import urllib.error
import urllib.request
import uuid
from typing import Any, Awaitable, Callable, Dict, List, NamedTuple, Optional, Protocol
from urllib.parse import quote, urlencode

from inmanta import const, util
from inmanta.protocol.common import Result, json_encode


class Method(NamedTuple):
    """One method of the API."""

    verb: str
    path: str
    """The path below the server's URL; parameters of it stand in braces."""
    parameters: List[str]
    """The parameters in the order in which they may be given without a name."""
    environment: bool = True
    """Whether the first parameter, tid, is the environment."""


# The methods that modules call, as they are in the API.
METHODS: Dict[str, Method] = {
    "get_param": Method("GET", "/api/v1/parameter/{id}", ["id", "resource_id"]),
    "set_param": Method(
        "PUT", "/api/v1/parameter/{id}", ["id", "source", "value", "resource_id", "metadata", "recompile", "expires"]
    ),
    "delete_param": Method("DELETE", "/api/v1/parameter/{id}", ["id", "resource_id"]),
    "list_params": Method("POST", "/api/v1/parameter", ["query"]),
    "set_parameters": Method("PUT", "/api/v1/parameters", ["parameters"]),
    "get_facts": Method("GET", "/api/v2/resource/{rid}/facts", ["rid"]),
    "project_create": Method("PUT", "/api/v2/project", ["name", "project_id"], environment=False),
    "project_list": Method("GET", "/api/v2/project", ["environment_details"], environment=False),
    "project_delete": Method("DELETE", "/api/v2/project/{id}", ["id"], environment=False),
    "environment_create": Method(
        "PUT", "/api/v2/environment", ["project_id", "name", "repository", "branch", "environment_id"], environment=False
    ),
    "environment_delete": Method("DELETE", "/api/v2/environment/{id}", ["id"], environment=False),
    "environment_get": Method("GET", "/api/v2/environment/{id}", ["id", "details"], environment=False),
    "environment_list": Method("GET", "/api/v2/environment", ["details"], environment=False),
    "get_environment": Method("GET", "/api/v1/environment/{id}", ["id", "versions", "resources"], environment=False),
    "list_settings": Method("GET", "/api/v1/environment_settings", []),
    "get_setting": Method("GET", "/api/v1/environment_settings/{id}", ["id"]),
    "set_setting": Method("POST", "/api/v1/environment_settings/{id}", ["id", "value"]),
    "delete_setting": Method("DELETE", "/api/v1/environment_settings/{id}", ["id"]),
    "get_file": Method("GET", "/api/v1/file/{id}", ["id"], environment=False),
    "stat_file": Method("HEAD", "/api/v1/file/{id}", ["id"], environment=False),
    "stat_files": Method("POST", "/api/v1/file", ["files"], environment=False),
    "upload_file": Method("PUT", "/api/v1/file/{id}", ["id", "content"], environment=False),
    "resource_did_dependency_change": Method("GET", "/api/v2/resource/{rvid}/did_dependency_change", ["rvid"]),
    "discovered_resource_create": Method(
        "POST", "/api/v2/discovered/{discovered_resource_id}", ["discovered_resource_id", "discovery_resource_id", "values"]
    ),
    "discovered_resource_create_batch": Method("POST", "/api/v2/discovered/", ["discovered_resources"]),
    "discovered_resources_get": Method("GET", "/api/v2/discovered/{discovered_resource_id}", ["discovered_resource_id"]),
    "discovered_resources_get_batch": Method("GET", "/api/v2/discovered", ["limit", "start", "end", "sort", "filter"]),
    "resource_details": Method("GET", "/api/v2/resource/{rid}", ["rid"]),
    "resource_list": Method("GET", "/api/v2/resource", ["limit", "first_id", "last_id", "start", "end", "filter", "sort"]),
    "notify_change": Method("GET", "/api/v1/notify/{id}", ["id", "update", "metadata"], environment=False),
    "notify_change_get": Method("GET", "/api/v1/notify/{id}", ["id", "update"], environment=False),
    "create_token": Method("POST", "/api/v1/environment_auth", ["client_types", "idempotent"]),
    "release_version": Method("POST", "/api/v1/version/{id}", ["id", "push", "agent_trigger_method"]),
    "deploy": Method("POST", "/api/v1/deploy", ["agent_trigger_method", "agents"]),
    "get_version": Method("GET", "/api/v1/version/{id}", ["id", "include_logs", "log_filter", "limit"]),
    "list_versions": Method("GET", "/api/v1/version", ["start", "limit"]),
}

METHODS["get_parameter"] = METHODS["get_param"]


class Transport(Protocol):
    """Carries calls to the server."""

    def __call__(self, verb: str, path: str, headers: Dict[str, str], body: Optional[str], timeout: float) -> Result:
        """Make a call; path has the query. Errors of the network are a Result of code 0 or 503 with a message."""


_transport: Optional[Transport] = None


def set_transport(transport: Optional[Transport]) -> None:
    """Have all clients of this process call through a transport: that of the agent, which holds the credentials."""
    global _transport  # noqa: PLW0603 - one process, one agent
    _transport = transport


class UrllibTransport:
    """Calls the server that the section <name>_rest_transport of the configuration names."""

    def __init__(self, name: str) -> None:
        from inmanta.config import Config

        section = f"{name}_rest_transport"
        host = Config.get(section, "host", "localhost")
        port = Config.get(section, "port", "8888")
        secure = str(Config.get(section, "ssl", "false")).lower() in ("1", "true", "yes", "on")
        self._url = f"{'https' if secure else 'http'}://{host}:{port}"
        self._token = Config.get(section, "token", None)
        ca_file = Config.get(section, "ssl-ca-cert-file", None)
        self._context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None) if secure else None

    def __call__(self, verb: str, path: str, headers: Dict[str, str], body: Optional[str], timeout: float) -> Result:
        request = urllib.request.Request(  # noqa: S310 - the URL begins with http(s)
            self._url + path, data=None if body is None else body.encode(), headers=headers, method=verb
        )
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self._context) as answer:  # noqa: S310
                return decode(answer.status, answer.read())
        except urllib.error.HTTPError as e:
            with e:
                return decode(e.code, e.read())
        except OSError as e:
            return Result(503, {"message": str(e)})


def decode(code: int, body: bytes) -> Result:
    """Make the result of an answer. A body that is not a JSON object is left out."""
    if not body:
        return Result(code, None)
    try:
        content = json.loads(body)
    except ValueError:
        return Result(code, None)
    return Result(code, content if isinstance(content, dict) else {"data": content})


def call(transport: Transport, name: str, args: "tuple[object, ...]", kwargs: Dict[str, Any], timeout: float) -> Result:
    """Call a method of the API."""
    method = METHODS[name]
    names = ["tid", *method.parameters] if method.environment else method.parameters
    if len(args) > len(names):
        raise TypeError(f"{name}() takes {len(names)} arguments but {len(args)} were given")
    values = dict(zip(names, args))
    for key, value in kwargs.items():
        if key in values:
            raise TypeError(f"{name}() got multiple values for argument {key!r}")
        if key not in names:
            raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
        values[key] = value
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if method.environment:
        if values.get("tid") is None:
            raise TypeError(f"{name}() needs the environment: argument 'tid'")
        headers[const.INMANTA_MT_HEADER] = str(values.pop("tid"))
    path = method.path
    for key in method.parameters:
        if "{" + key + "}" in path:
            if key not in values:
                raise TypeError(f"{name}() needs the argument {key!r}")
            path = path.replace("{" + key + "}", quote(str(values.pop(key)), safe=""))
    values = {key: value for key, value in values.items() if value is not None}
    if method.verb in ("GET", "HEAD", "DELETE"):
        query = urlencode([(key, _text(v)) for key, value in values.items() for v in _several(value)])
        return transport(method.verb, path + ("?" + query if query else ""), headers, None, timeout)
    return transport(method.verb, path, headers, json_encode(values), timeout)


def _several(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float, uuid.UUID)):
        return str(getattr(value, "value", value))
    return json_encode(value)


class _Base:
    def __init__(self, name: Optional[str], timeout: float) -> None:
        self.name = name or "compiler"
        self._timeout = timeout
        self._own: Optional[Transport] = None

    @property
    def _transport_instance(self) -> Transport:
        if _transport is not None:
            return _transport
        if self._own is None:
            self._own = UrllibTransport(self.name)
        return self._own

    def _call(self, name: str, args: "tuple[object, ...]", kwargs: Dict[str, Any]) -> Result:
        return call(self._transport_instance, name, args, kwargs, self._timeout)


class Client(_Base):
    """A client whose methods, named like those of the API, return awaitables of Result."""

    def __init__(self, name: str = "api", timeout: float = 120) -> None:
        super().__init__(name, timeout)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Result]]:
        if name not in METHODS:
            raise AttributeError(f"the API has no method {name} that modules may call")

        async def method(*args: object, **kwargs: Any) -> Result:
            return await asyncio.get_running_loop().run_in_executor(None, lambda: self._call(name, args, kwargs))

        return method


class SyncClient(_Base):
    """A client whose methods, named like those of the API, return Result."""

    def __init__(
        self,
        name: Optional[str] = None,
        timeout: float = 120,
        client: Optional[Client] = None,
        ioloop: Optional[asyncio.AbstractEventLoop] = None,
    ) -> None:
        if (name is None) == (client is None):
            raise Exception("Either name or client needs to be provided.")
        super().__init__(name if client is None else client.name, timeout)
        self._client = client
        self._loop = ioloop

    def __getattr__(self, name: str) -> Callable[..., Result]:
        if name not in METHODS:
            raise AttributeError(f"the API has no method {name} that modules may call")

        def method(*args: object, **kwargs: Any) -> Result:
            if inspect.iscoroutinefunction(getattr(self._client, name, None)) and self._loop is not None:
                awaitable = getattr(self._client, name)(*args, **kwargs)
                result: Result = asyncio.run_coroutine_threadsafe(util.coroutine_of(awaitable), self._loop).result(self._timeout)
                return result
            return self._call(name, args, kwargs)

        return method


__all__ = ["Client", "METHODS", "Method", "SyncClient", "Transport", "UrllibTransport", "call", "set_transport"]
