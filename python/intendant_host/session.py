"""Compiles a project from within a running Python process, such as that of a module's tests.

The program compiles in a process of its own and is attached to this one: plugins, resources and references run here, where tests can
replace parts of them, and the model can be read here until the session is closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Optional

from inmanta import ast, compiler, export
from intendant_host import bridge, exporting, wire
from intendant_host import compile as serving
from intendant_host.faults import describe
from intendant_host.loading import ModuleFinder, load

BINARY = "INTENDANT"
"""The environment variable that names the program."""


class StartError(RuntimeError):
    """The program could not be run, or ended before it had a result."""


class Session:
    """One compile."""

    def __init__(self, project: str, arguments: Sequence[str] = (), facts: Optional[dict[str, Any]] = None) -> None:
        self.project = project
        self.arguments = list(arguments)
        self.facts = facts or {}
        self.stdout = ""
        self.stderr = ""
        self.result: dict[str, Any] = {}
        self.host: Optional[bridge.Host] = None
        self.raised: Optional[BaseException] = None
        self._peer: Optional[wire.Peer] = None
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._files: list[Any] = []
        self._fds: list[int] = []

    def run(self) -> dict[str, Any]:
        """Compiles and returns the result, as ``intendant compile --result`` writes it. Faults of the model are in it."""
        export.unknown_parameters.clear()
        to_us, from_program = os.pipe()
        to_program, from_us = os.pipe()
        self._fds = [to_us, from_us]
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed by close
        out, err = self._files
        command = [program(), "compile", self.project, "--instances", "--attach-python", f"{from_program},{to_program}", *self.arguments]
        try:
            self._process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, pass_fds=(to_program, from_program))
        except OSError as e:
            self.close()
            raise StartError(f"{command[0]} can not be run: {e}") from e
        finally:
            os.close(to_program)
            os.close(from_program)
        decoder = json.JSONDecoder(object_hook=self._hook)
        self._peer = peer = wire.Peer(decoder=decoder, describe=self._describe, read_fd=to_us, write_fd=from_us)
        bridge.serve(peer)
        self.host = bridge.host()
        self.host.refs_for_facts = {"facts": self.facts}
        peer.handle("load", self._load)
        peer.handle("pair", serving.pair_dataclasses)
        peer.handle("plugin", serving.call_plugin)
        peer.handle("export", exporting.export_resources)
        peer.handle("to_id", exporting.to_id)
        peer.handle("managers", exporting.run_managers)
        peer.handle("added", exporting.added)
        peer.handle("export_function", exporting.run_export)
        peer.handle("finalize", self._finalize)
        try:
            peer.handshake()
            self.result = peer.serve_until("hold")
        except wire.ClosedError as e:
            status = self._process.wait()
            self._collect()
            self._peer = None
            self.close()
            raise StartError(f"intendant compile ended with status {status} and without a result: {self.stderr.strip() or e}") from e
        self._collect()
        return self.result

    def _describe(self, exc: BaseException) -> dict[str, Any]:
        # What a plugin raised is the cause of the fault that the compile may end with.
        if not isinstance(exc, (ast.UnsetException, ast.MultiUnsetException, ast.UnknownException)):
            self.raised = exc
        return describe(exc)

    def _hook(self, d: dict[str, Any]) -> Any:
        return self.host.hook(d) if self.host is not None else d

    def _load(self, args: dict[str, Any]) -> dict[str, Any]:
        # The finder of an earlier compile knows where modules were then.
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, ModuleFinder)]
        return load(args)

    def _finalize(self, args: Any) -> Any:
        # Modules stay imported: what they registered is for the next compile as well.
        registered = compiler.Finalizers.get_functions()
        try:
            return serving.finalize(args)
        finally:
            for function in registered:
                compiler.Finalizers.add_function(function)

    def _collect(self) -> None:
        for name, file in zip(("stdout", "stderr"), self._files):
            file.seek(0)
            setattr(self, name, file.read().decode("utf-8", "replace"))

    def close(self) -> None:
        """Lets the program end. What was read of the model stays; nothing more can be read."""
        if self._peer is not None:
            try:
                self._peer.release()
            except (wire.ClosedError, OSError):
                pass  # it has gone
            self._peer = None
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        if self._process is not None:
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        for file in self._files:
            file.close()
        self._files = []
        if self.host is not None:
            for instance in self.host.instances_by_serial.values():
                instance.serial = 0  # numbers mean something else in the next compile
            self.host = None

    def fault(self) -> Optional[ast.CompilerException]:
        """The first error of the compile as an exception, None without one."""
        errors = [d for d in self.result.get("diagnostics", ()) if d.get("severity") == "error"]
        if not errors:
            return None
        made = exception(errors[0])
        if self.raised is not None and isinstance(made, (ast.WrappingRuntimeException, ast.ExternalException)):
            made.__cause__ = self.raised
        return made


def program() -> str:
    """The path of the program."""
    return os.environ.get(BINARY) or "intendant"


def exception(diagnostic: dict[str, Any]) -> ast.CompilerException:
    """A diagnostic as the exception that its code names."""
    found = getattr(ast, str(diagnostic.get("code") or ""), None)
    cls = found if isinstance(found, type) and issubclass(found, ast.CompilerException) else ast.RuntimeException
    made: ast.CompilerException = cls.__new__(cls)
    text = str(diagnostic.get("message", ""))
    # Its own constructor wants what only the compiler has.
    if isinstance(made, ast.RuntimeException):
        ast.RuntimeException.__init__(made, None, text)
    else:
        ast.CompilerException.__init__(made, text)
    if diagnostic.get("file"):
        made.set_location(ast.Location(str(diagnostic["file"]), int(diagnostic.get("line") or 1)))
    return made
