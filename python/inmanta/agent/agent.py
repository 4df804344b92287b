"""The agent that a handler works for."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, Optional


class _Process:
    """What older modules find at AgentInstance.process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._io_loop = loop


class AgentInstance:
    """One agent: its name, its environment, the machine it works on, and the event loop that runs beside its handlers."""

    def __init__(
        self,
        name: str,
        environment: uuid.UUID,
        uri: str,
        eventloop: asyncio.AbstractEventLoop,
        host: Optional[Any] = None,
    ) -> None:
        self._name = name
        self._environment = environment
        self._uri = uri
        self.eventloop = eventloop
        self.host = host
        self.process = _Process(eventloop)
        self._stopped = False

    @property
    def name(self) -> str:
        """The agent's name, as it stands in resource ids."""
        return self._name

    @property
    def environment(self) -> uuid.UUID:
        """The environment's id."""
        return self._environment

    @property
    def uri(self) -> str:
        """The machine to work on: local:, or ssh://[user@]host[:port]."""
        return self._uri

    @property
    def sessionid(self) -> uuid.UUID:
        """An id of this process, for calls that older modules make."""
        return uuid.uuid5(self._environment, self._name)

    def get_env(self) -> uuid.UUID:
        """Return the environment's id."""
        return self._environment

    def is_stopped(self) -> bool:
        """Tell whether the agent is being stopped: a handler that waits should give up."""
        return self._stopped

    def stop(self) -> None:
        """Note that the agent is being stopped."""
        self._stopped = True
