"""Clients of the server's API."""

from __future__ import annotations

from inmanta.protocol.common import Result, json_encode
from inmanta.protocol.endpoints import Client, SyncClient

__all__ = ["Client", "Result", "SyncClient", "json_encode"]
