"""Access to the machine that an agent works on, for handlers that do their work with commands and files.

The machine is this one, or another one over SSH. The connection is kept by the agent, so that the keys are the agent's business and
handlers of one agent share it.
"""

from __future__ import annotations

from typing import Any, Optional
from urllib.parse import parse_qsl, urlsplit

from inmanta.agent.io.local import IOBase, LocalIO


def get_io(cache: Any, uri: str, version: int = 0, agent: Optional[Any] = None) -> IOBase:
    """Return the access to a machine: "" or local: is this one, ssh://[user@]host[:port] and a bare host name are others.

    ValueError: the address is none of these.
    """
    scheme, target = split_uri(uri)
    if scheme == "local":
        return LocalIO(uri)
    from inmanta.agent.io.remote import SshIO

    host = getattr(agent, "host", None)

    def connect() -> IOBase:
        return SshIO(uri, target, host)

    if cache is None:
        return connect()
    found: IOBase = cache.get_or_else("|remote_io|" + uri, lambda **_: connect(), evict_after_last_access=600)
    return found


def split_uri(uri: str) -> "tuple[str, dict[str, Any]]":
    """Split an agent's address into local or ssh, and the parts of the latter: user, host, port, retries, retry_wait, python."""
    uri = (uri or "").strip()
    if uri in ("", "local:", "local", "localhost", "local://"):
        return "local", {}
    if "://" not in uri and not uri.startswith("ssh:"):
        uri = "ssh://" + uri
    parts = urlsplit(uri)
    if parts.scheme == "local":
        return "local", {}
    if parts.scheme != "ssh" or not parts.hostname:
        raise ValueError(f"the agent's address {uri!r} is neither local: nor ssh://[user@]host[:port]")
    options = dict(parse_qsl(parts.query))
    return "ssh", {
        "user": parts.username or "root",
        "host": parts.hostname,
        "port": parts.port or 22,
        "python": options.get("python", "python"),
        "retries": int(options.get("retries", 10)),
        "retry_wait": float(options.get("retry_wait", 30)),
    }


__all__ = ["IOBase", "LocalIO", "get_io", "split_uri"]
