"""Frames and calls between Intendant and a Python process.

A frame is a length of four bytes, most significant first, and that many bytes of JSON in UTF-8. Frames arrive on descriptor 3 and
leave on descriptor 4, so that nothing written to the standard streams can break them. Both sides may call::

    {"id": n, "call": method, "args": {...}}            and, for a call made while one of the other side is served, "in": its id
    {"id": n, "result": ...}  or  {"id": n, "error": {"class", "message", "traceback", "data"}}
    {"event": name, "args": {...}}

Ids are per sender. The first frame of each side is the event ``hello`` with the protocol's version.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import traceback
from typing import Any, Callable, Optional

PROTOCOL = 1
IN, OUT = 3, 4
DEFAULT_MAX_FRAME = 256 << 20

Handler = Callable[[Any], Any]


class ClosedError(ConnectionError):
    """The other side is gone, or this process may not speak to it (any more)."""


class RemoteError(Exception):
    """The other side answered a call with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error_class = str(error.get("class", ""))
        self.data: Any = error.get("data")
        self.traceback = str(error.get("traceback", ""))


class FrameTooLargeError(ValueError):
    """A frame is larger than the limit that the two sides agreed on."""


def describe(exc: BaseException) -> dict[str, Any]:
    """An exception as the data of an error frame."""
    try:
        message = str(exc)
    except Exception as e:  # an author's __str__ may fail as well
        message = f"(the exception has no text: {type(e).__name__})"
    try:
        trace = "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))
    except Exception:
        trace = ""
    return {"class": type(exc).__name__, "message": shorten(message), "traceback": shorten(trace)}


_MAX_TEXT = 1 << 16
"""How much of a text about an exception is passed on, in characters."""


def shorten(text: str) -> str:
    """A text for people without its middle if it is very long: endless recursion has long traces, and both ends are of use."""
    if len(text) <= _MAX_TEXT:
        return text
    return text[: _MAX_TEXT // 2] + "\n[...]\n" + text[-_MAX_TEXT // 2 :]


class _Waiter:
    """A thread that waits for the answer to its call."""

    __slots__ = ("done", "frame")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.frame: Optional[dict[str, Any]] = None


class Peer:
    """One end of the connection.

    With :meth:`serve` calls are strictly nested: the thread that calls reads frames until its answer is there, and serves what
    comes in between. With :meth:`serve_threaded` one thread reads, and each call of the other side goes to ``submit``, which
    decides on a thread for it.
    """

    def __init__(
        self,
        *,
        decoder: Optional[json.JSONDecoder] = None,
        encoder: Optional[json.JSONEncoder] = None,
        describe: Callable[[BaseException], dict[str, Any]] = describe,
        read_fd: int = IN,
        write_fd: int = OUT,
    ) -> None:
        self._decode = (decoder or json.JSONDecoder()).decode
        self._encode = (encoder or json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))).encode
        self._describe = describe
        self._read_fd, self._write_fd = read_fd, write_fd
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)
        self._reader = open(read_fd, "rb", buffering=1 << 16, closefd=False)  # noqa: SIM115
        self._handlers: dict[str, Handler] = {}
        self._events: dict[str, Handler] = {}
        self.max_frame = DEFAULT_MAX_FRAME
        self._pid = os.getpid()
        self._next = 0
        self._numbers = threading.Lock()
        self._writing = threading.Lock()
        # Guards reading in nested mode. Recursive: what is served while a call waits may call again.
        self._turn = threading.RLock()
        self._serving: list[int] = []  # ids of the other side's calls that are being served, in nested mode
        self._local = threading.local()
        self._threaded = False
        self._waiters: dict[int, _Waiter] = {}
        self._closed = False

    # -- setting up

    def handle(self, method: str, fn: Handler) -> None:
        """Answers calls of a method with what fn returns; what it raises is sent as an error."""
        self._handlers[method] = fn

    def on(self, event: str, fn: Handler) -> None:
        """Calls fn for each event of that name. What it raises ends the connection."""
        self._events[event] = fn

    def handshake(self) -> dict[str, Any]:
        """Exchanges greetings and returns the other side's. Raises ClosedError if the two can not work together."""
        self._write({"event": "hello", "args": {"protocol": PROTOCOL, "python": platform.python_version(), "prefix": sys.prefix}})
        frame = self._read()
        hello = (frame or {}).get("args") or {}
        if (frame or {}).get("event") != "hello" or hello.get("protocol") != PROTOCOL:
            raise ClosedError(f"the other side speaks protocol {hello.get('protocol')}, not {PROTOCOL}")
        self.max_frame = int(hello.get("max_frame", DEFAULT_MAX_FRAME))
        return dict(hello)

    # -- frames

    def _read_exactly(self, n: int) -> bytes:
        data = self._reader.read(n)
        if len(data) != n:
            return b""
        return data

    def _read(self) -> Optional[dict[str, Any]]:
        head = self._read_exactly(4)
        if not head:
            return None
        size = int.from_bytes(head, "big")
        if size > self.max_frame:
            raise FrameTooLargeError(f"a frame of {size} bytes arrived; the limit is {self.max_frame}")
        body = self._read_exactly(size)
        if not body:
            return None
        frame = self._decode(body.decode("utf-8"))
        if not isinstance(frame, dict):
            raise ClosedError("a frame is not an object")
        return frame

    def _write(self, frame: dict[str, Any]) -> None:
        # Text that is not Unicode (lone surrogates) can not go over in UTF-8; the other side gets the replacement character.
        body = self._encode(frame).encode("utf-8", "replace")
        if len(body) > self.max_frame:
            raise FrameTooLargeError(f"a message of {len(body)} bytes is larger than the limit of {self.max_frame}")
        if self._closed or os.getpid() != self._pid:
            raise ClosedError("this process has no connection to Intendant")
        view = memoryview(len(body).to_bytes(4, "big") + body)
        with self._writing:
            while view:
                view = view[os.write(self._write_fd, view) :]

    def emit(self, event: str, args: Any = None) -> None:
        """Tells the other side something without an answer."""
        self._write({"event": event, "args": args})

    # -- calling

    def _number(self) -> int:
        with self._numbers:
            self._next += 1
            return self._next

    def call(self, method: str, args: Any = None) -> Any:
        """Calls a method of the other side. Raises RemoteError for its error, ClosedError when there is nobody to ask."""
        if os.getpid() != self._pid:
            raise ClosedError("a forked process has no connection to Intendant")
        if self._threaded:
            return self._call_threaded(method, args)
        if not self._serving:
            raise ClosedError("this can only be used while Intendant waits for Python code, not after it returned")
        with self._turn:
            number = self._number()
            self._write({"id": number, "call": method, "args": args, "in": self._serving[-1]})
            while True:
                frame = self._read()
                if frame is None:
                    raise ClosedError("Intendant has gone")
                if frame.get("id") == number and "call" not in frame:
                    return _result(frame)
                self._dispatch(frame)

    def _call_threaded(self, method: str, args: Any) -> Any:
        waiter, number = _Waiter(), self._number()
        self._waiters[number] = waiter
        frame = {"id": number, "call": method, "args": args}
        parent = getattr(self._local, "serving", None)
        if parent is not None:
            frame["in"] = parent
        try:
            self._write(frame)
            if self._closed:
                raise ClosedError("Intendant has gone")
            waiter.done.wait()
        finally:
            self._waiters.pop(number, None)
        if waiter.frame is None:
            raise ClosedError("Intendant has gone")
        return _result(waiter.frame)

    # -- serving

    def serve(self) -> None:
        """Serves calls in this thread until the other side closes the connection."""
        os.register_at_fork(after_in_child=self._forked)
        while os.getpid() == self._pid:
            with self._turn:
                frame = self._read()
            if frame is None:
                return
            self._dispatch(frame)
        os._exit(1)  # a child that an author forked and did not end must not go on in the parent's place

    def serve_until(self, method: str) -> Any:
        """Serves calls in this thread until one of a certain method comes, and returns its arguments.

        That call stays open, so that this side may go on calling, until :meth:`release`. Raises ClosedError when the other side
        ends before.
        """
        while True:
            frame = self._read()
            if frame is None:
                raise ClosedError("Intendant has gone")
            if frame.get("call") == method:
                self._serving.append(frame["id"])
                return frame.get("args")
            self._dispatch(frame)

    def release(self) -> None:
        """Answers the call at which :meth:`serve_until` stopped."""
        self._write({"id": self._serving.pop(), "result": None})

    def serve_threaded(self, submit: Callable[[str, Any, Callable[[], None]], None]) -> None:
        """Reads frames in this thread until the other side closes the connection.

        For each call, submit gets the method, the arguments, and a function that serves the call and must be run exactly once, on
        another thread.
        """
        os.register_at_fork(after_in_child=self._forked)
        self._threaded = True
        try:
            while os.getpid() == self._pid:
                frame = self._read()
                if frame is None:
                    return
                if "call" in frame:
                    submit(frame["call"], frame.get("args"), lambda f=frame: self._serve_on_thread(f))
                elif "event" in frame:
                    self._event(frame)
                else:
                    waiter = self._waiters.get(frame.get("id", 0))
                    if waiter is not None:
                        waiter.frame = frame
                        waiter.done.set()
        finally:
            self._closed = True
            for waiter in list(self._waiters.values()):
                waiter.done.set()

    def _serve_on_thread(self, frame: dict[str, Any]) -> None:
        self._local.serving = frame["id"]
        try:
            self._answer(frame)
        finally:
            self._local.serving = None

    def _dispatch(self, frame: dict[str, Any]) -> None:
        if "call" in frame:
            self._serving.append(frame["id"])
            try:
                self._answer(frame)
            finally:
                self._serving.pop()
        elif "event" in frame:
            self._event(frame)

    def _event(self, frame: dict[str, Any]) -> None:
        fn = self._events.get(frame["event"])
        if fn is not None:
            fn(frame.get("args"))

    def _answer(self, frame: dict[str, Any]) -> None:
        number, method = frame["id"], frame["call"]
        try:
            fn = self._handlers.get(method)
            if fn is None:
                raise LookupError(f"there is no method {method}")
            answer = {"id": number, "result": fn(frame.get("args"))}
        except BaseException as e:  # SystemExit and KeyboardInterrupt of authors' code as well
            answer = {"id": number, "error": self._describe(e)}
        if os.getpid() != self._pid:
            os._exit(1)  # see serve
        try:
            self._write(answer)
        except ClosedError:
            raise
        except Exception as e:  # what was returned can not be written
            self._write({"id": number, "error": self._describe(e)})

    def _forked(self) -> None:
        self._closed = True
        for fd in (self._read_fd, self._write_fd):
            try:
                os.close(fd)
            except OSError:
                pass


def _result(frame: dict[str, Any]) -> Any:
    error = frame.get("error")
    if error is not None:
        raise RemoteError(error)
    return frame.get("result")
