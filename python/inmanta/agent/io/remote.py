"""Commands and files of another machine, over SSH."""

from __future__ import annotations

import base64
from typing import Any, Dict, Optional, Tuple

from inmanta.agent.io.local import ShellIO
from inmanta.resources import HostNotFoundException


class RemoteException(Exception):
    """Something went wrong on the other machine."""


class CannotLoginException(RemoteException):
    """The other machine does not let the agent in."""


class SshIO(ShellIO):
    """Commands and files of another machine.

    The agent keeps the connection and has the keys. A user other than root works through sudo, where that asks for no password.
    """

    def __init__(self, uri: str, config: Dict[str, Any], host: Optional[Any] = None) -> None:
        super().__init__(uri, config)
        if host is None:
            raise HostNotFoundException(config.get("host", uri), config.get("user", "root"), "there is no agent to connect through")
        self._host = host
        self._connect()

    def _connect(self) -> None:
        answer = self._host.ssh({**self._target(), "script": "", "probe": True})
        self._refused(answer)

    def _target(self) -> Dict[str, Any]:
        return {key: self.config[key] for key in ("user", "host", "port", "retries", "retry_wait")}

    def _refused(self, answer: Dict[str, Any]) -> None:
        problem = answer.get("problem")
        if problem == "login":
            raise CannotLoginException(answer.get("message", ""))
        if problem == "connect":
            raise HostNotFoundException(self.config["host"], self.config["user"], answer.get("message", ""))
        if problem == "timeout":
            raise TimeoutError(answer.get("message", ""))
        if problem:
            raise RemoteException(answer.get("message", ""))

    def is_remote(self) -> bool:
        return True

    def shell(self, script: str, stdin: bytes = b"", timeout: Optional[float] = None) -> Tuple[bytes, bytes, int]:
        answer = self._host.ssh(
            {
                **self._target(),
                "script": script,
                "stdin": base64.b64encode(stdin).decode("ascii"),
                "timeout": timeout or 0,
                "sudo": self.config["user"] != "root",
            }
        )
        self._refused(answer)
        return base64.b64decode(answer["stdout"]), base64.b64decode(answer["stderr"]), int(answer["code"])


__all__ = ["CannotLoginException", "HostNotFoundException", "RemoteException", "SshIO"]
