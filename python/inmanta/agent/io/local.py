"""Commands and files of this machine."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shlex
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Optional, Tuple

from inmanta.util import hash_file_streaming

Output = Tuple[str, str, int]

_NOT_HANDED_ON = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "__PYVENV_LAUNCHER__")


class IOBase(ABC):
    """Commands and files of a machine."""

    def __init__(self, uri: str = "", config: Optional[Dict[str, Any]] = None) -> None:
        self.uri = uri
        self.config = config or {}

    @abstractmethod
    def is_remote(self) -> bool:
        """Tell whether the machine is another one."""

    @abstractmethod
    def run(
        self,
        command: str,
        arguments: List[str] = [],  # noqa: B006 - part of the interface, never changed
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Output:
        """Run a program, without a shell, and return what it printed to its two outputs, stripped, and its exit status."""

    @abstractmethod
    def read_binary(self, path: str) -> bytes:
        """Return a file's content. FileNotFoundError: there is no such file."""

    def read(self, path: str) -> str:
        """Return a file's content as text."""
        return self.read_binary(path).decode("utf-8")

    @abstractmethod
    def put(self, path: str, content: bytes) -> None:
        """Write a file; one that is there is replaced."""

    @abstractmethod
    def file_exists(self, path: str) -> bool:
        """Tell whether there is something under a path."""

    @abstractmethod
    def is_symlink(self, path: str) -> bool:
        """Tell whether a path is a symbolic link."""

    @abstractmethod
    def readlink(self, path: str) -> str:
        """Return where a symbolic link points."""

    @abstractmethod
    def symlink(self, source: str, target: str) -> None:
        """Make target a symbolic link to source."""

    @abstractmethod
    def file_stat(self, path: str) -> Dict[str, Any]:
        """Return owner, group and permissions of a file; the latter as the number that its octal digits make, such as 644."""

    @abstractmethod
    def hash_file(self, path: str) -> str:
        """Return the SHA-1 of a file's content in hex."""

    @abstractmethod
    def chown(self, path: str, user: Optional[str] = None, group: Optional[str] = None) -> None:
        """Change owner and group; None leaves them."""

    @abstractmethod
    def chmod(self, path: str, permissions: str) -> None:
        """Change the permissions, octal digits such as "644"."""

    @abstractmethod
    def mkdir(self, path: str) -> None:
        """Make a directory."""

    @abstractmethod
    def rmdir(self, path: str) -> None:
        """Remove a directory with everything in it."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file."""

    def close(self) -> None:
        """End the access."""

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class LocalIO(IOBase):
    """Commands and files of this machine, as the user of the agent."""

    def is_remote(self) -> bool:
        return False

    def run(
        self,
        command: str,
        arguments: List[str] = [],  # noqa: B006
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Output:
        return execute([command, *arguments], b"", env, cwd, timeout)

    def read_binary(self, path: str) -> bytes:
        with open(path, "rb") as f:
            return f.read()

    def put(self, path: str, content: bytes) -> None:
        with open(path, "wb") as f:
            f.write(content)

    def file_exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_symlink(self, path: str) -> bool:
        return os.path.islink(path)

    def readlink(self, path: str) -> str:
        return os.readlink(path)

    def symlink(self, source: str, target: str) -> None:
        os.symlink(source, target)

    def file_stat(self, path: str) -> Dict[str, Any]:
        stat = os.stat(path)
        return {"owner": _user(stat.st_uid), "group": _group(stat.st_gid), "permissions": int(oct(stat.st_mode & 0o7777)[2:])}

    def hash_file(self, path: str) -> str:
        with open(path, "rb") as f:
            return hash_file_streaming(f)

    def chown(self, path: str, user: Optional[str] = None, group: Optional[str] = None) -> None:
        uid = -1 if user is None else (int(user) if str(user).isdigit() else pwd.getpwnam(user).pw_uid)
        gid = -1 if group is None else (int(group) if str(group).isdigit() else grp.getgrnam(group).gr_gid)
        os.chown(path, uid, gid)

    def chmod(self, path: str, permissions: str) -> None:
        os.chmod(path, int(str(permissions), 8))

    def mkdir(self, path: str) -> None:
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        shutil.rmtree(path)

    def remove(self, path: str) -> None:
        os.remove(path)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def execute(
    argv: List[str], stdin: bytes, env: Optional[Dict[str, str]], cwd: Optional[str], timeout: Optional[float]
) -> Output:
    """Run a program in a process group of its own, which ends with it when it takes too long."""
    out, err, code = execute_binary(argv, stdin, env, cwd, timeout)
    return text(out), text(err), code


def text(output: bytes) -> str:
    """Return an output as text without white space at its ends."""
    return output.decode("utf-8", "backslashreplace").strip()


def execute_binary(
    argv: List[str], stdin: bytes, env: Optional[Dict[str, str]], cwd: Optional[str], timeout: Optional[float]
) -> Tuple[bytes, bytes, int]:
    """Do what execute does, and return what was printed as it is."""
    merged = {key: value for key, value in os.environ.items() if key not in _NOT_HANDED_ON}
    merged.update(env or {})
    process = subprocess.Popen(  # noqa: S603 - it is what handlers do
        argv,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=merged,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin or None, timeout)
    except BaseException:  # also the end of the operation
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return out, err, process.returncode


class ShellIO(IOBase):
    """Commands and files of a machine by way of its POSIX shell."""

    @abstractmethod
    def shell(self, script: str, stdin: bytes = b"", timeout: Optional[float] = None) -> Tuple[bytes, bytes, int]:
        """Run a script with sh and return what it printed to its two outputs, and its exit status."""

    def _do(self, *argv: str, stdin: bytes = b"") -> bytes:
        out, err, code = self.shell(shlex.join(argv), stdin)
        if code != 0:
            raise _os_error(argv[-1], text(err) or f"{argv[0]} ended with status {code}")
        return out

    def _test(self, flag: str, path: str) -> bool:
        return self.shell(f"test {flag} {shlex.quote(path)}")[2] == 0

    def run(
        self,
        command: str,
        arguments: List[str] = [],  # noqa: B006
        env: Optional[Dict[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Output:
        argv = [command, *arguments]
        if env:
            argv = ["env", *(f"{key}={value}" for key, value in env.items()), *argv]
        script = "exec " + shlex.join(argv)
        if cwd:
            script = f"cd {shlex.quote(cwd)} && {script}"
        out, err, code = self.shell(script, timeout=timeout)
        return text(out), text(err), code

    def read_binary(self, path: str) -> bytes:
        return self._do("cat", "--", path)

    def put(self, path: str, content: bytes) -> None:
        _, err, code = self.shell("cat > " + shlex.quote(path), content)
        if code != 0:
            raise _os_error(path, text(err))

    def file_exists(self, path: str) -> bool:
        return self._test("-e", path)

    def is_symlink(self, path: str) -> bool:
        return self._test("-L", path)

    def readlink(self, path: str) -> str:
        return text(self._do("readlink", "--", path))

    def symlink(self, source: str, target: str) -> None:
        self._do("ln", "-s", "--", source, target)

    def file_stat(self, path: str) -> Dict[str, Any]:
        owner, group, permissions = text(self._do("stat", "-L", "-c", "%U %G %a", "--", path)).split(" ")
        return {"owner": owner, "group": group, "permissions": int(permissions)}

    def hash_file(self, path: str) -> str:
        return text(self._do("sha1sum", "--", path)).lstrip("\\").split(" ")[0]

    def chown(self, path: str, user: Optional[str] = None, group: Optional[str] = None) -> None:
        if user is not None or group is not None:
            self._do("chown", (user or "") + ("" if group is None else f":{group}"), "--", path)

    def chmod(self, path: str, permissions: str) -> None:
        self._do("chmod", str(permissions), "--", path)

    def mkdir(self, path: str) -> None:
        self._do("mkdir", "--", path)

    def rmdir(self, path: str) -> None:
        self._do("rm", "-rf", "--", path)

    def remove(self, path: str) -> None:
        self._do("rm", "--", path)


def _os_error(path: str, message: str) -> OSError:
    known = {
        "No such file": FileNotFoundError,
        "File exists": FileExistsError,
        "Permission denied": PermissionError,
        "Is a directory": IsADirectoryError,
    }
    for words, kind in known.items():
        if words in message:
            return kind(f"{path}: {message}")
    return OSError(f"{path}: {message}")


class BashIO(ShellIO):
    """Commands and files of this machine as another user, by way of sudo."""

    def __init__(self, uri: str = "", config: Optional[Dict[str, Any]] = None, run_as: Optional[str] = None) -> None:
        super().__init__(uri, config)
        self.run_as = run_as

    def is_remote(self) -> bool:
        return False

    def shell(self, script: str, stdin: bytes = b"", timeout: Optional[float] = None) -> Tuple[bytes, bytes, int]:
        sudo = ["sudo", "-n", "-u", self.run_as, "--"] if self.run_as else []
        return execute_binary([*sudo, "sh", "-c", script], stdin, None, None, timeout)
