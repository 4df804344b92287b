"""The fixtures ``server``, ``client`` and ``environment``: a server of its own for tests that need one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator

import pytest

from inmanta.config import Config
from inmanta.protocol.endpoints import Client, SyncClient, Transport, UrllibTransport
from inmanta.server.protocol import Server
from intendant_host.session import program

ADDRESS = "127.0.0.1"

START_TIMEOUT = 120.0
"""How many seconds a server has to come up, its database included."""

STOP_TIMEOUT = 60.0
"""How many seconds it has to stop."""

_TRANSPORTS = ("client", "compiler", "agent", "cmdline", "api")


class StartError(RuntimeError):
    """The server did not come up."""


def _free_port() -> int:
    with socket.socket() as s:
        s.bind((ADDRESS, 0))
        port: int = s.getsockname()[1]
        return port


def _tail(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as f:
        return "".join(f.readlines()[-20:])


def _await(process: subprocess.Popen[bytes], server: Server, log: str) -> None:
    """Waits until the server can work. Raises StartError with the end of its log when it does not come to that."""
    end = time.monotonic() + START_TIMEOUT
    while True:
        if process.poll() is not None:
            raise StartError(f"intendant server ended with status {process.returncode}:\n{_tail(log)}")
        try:
            with urllib.request.urlopen(server.url + "/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError) as e:
            if time.monotonic() > end:
                raise StartError(f"intendant server is not ready after {START_TIMEOUT:.0f} s ({e}):\n{_tail(log)}") from e
        time.sleep(0.05)  # between two looks


def run_server(state_dir: str) -> Iterator[Server]:
    """Runs a server and its agents in a directory. Raises StartError when it does not come up."""
    server = Server(ADDRESS, _free_port(), state_dir)
    log = os.path.join(state_dir, "server.log")
    command = [program(), "server", "--address", ADDRESS, "--port", str(server.port), "--state-dir", os.path.join(state_dir, "state")]
    with open(log, "wb") as out:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        except OSError as e:
            raise StartError(f"{command[0]} can not be run: {e}") from e
    try:
        _await(process, server, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def server_shared() -> Iterator[Server]:
    """A server for all tests. Its database runs under an account of its own, which must be able to reach it: not below pytest's."""
    top = tempfile.mkdtemp(prefix="intendant-test-")
    os.chmod(top, 0o755)
    try:
        yield from run_server(top)
    finally:
        shutil.rmtree(top, ignore_errors=True)


@pytest.fixture
def server(server_shared: Server) -> Iterator[Server]:
    """A running server, the one that clients talk to during the test. It is started once and shared by all tests that use it."""
    before = {name: (Config.get(name, "host"), Config.get(name, "port")) for name in map("{}_rest_transport".format, _TRANSPORTS)}
    for section in before:
        Config.set(section, "host", server_shared.address)
        Config.set(section, "port", str(server_shared.port))
    yield server_shared
    parser = Config.get_instance()
    for section, values in before.items():
        for name, value in zip(("host", "port"), values):
            if value is None:
                parser.remove_option(section, name)
            else:
                Config.set(section, name, value)


class _Direct:
    """Talks to the server also while a model is being compiled, when other clients see the inputs of the compile."""

    @property
    def _transport_instance(self) -> Transport:
        return UrllibTransport("client")


class _Client(_Direct, Client):
    pass


class _SyncClient(_Direct, SyncClient):
    pass


@pytest.fixture
def client(server: Server) -> Client:
    """A client of the server whose methods are to be awaited."""
    return _Client("client")


@pytest.fixture
def sync_client(server: Server) -> SyncClient:
    """A client of the server whose methods wait."""
    return _SyncClient("client")


@pytest.fixture
def environment(sync_client: SyncClient) -> str:
    """The id of a new environment on the server."""
    project = sync_client.project_create(name=f"tests-{uuid.uuid4()}")
    assert project.code == 200, project.result
    assert project.result is not None
    made = sync_client.environment_create(project_id=project.result["data"]["id"], name="tests")
    assert made.code == 200, made.result
    assert made.result is not None
    return str(made.result["data"]["id"])
