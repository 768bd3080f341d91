"""Calls of a site's services with one answer each over its Unix socket, without gRPC's library, which takes longer to load than a site to answer.

As much of HTTP/2 (RFC 9113) as one request at a time and its answer need, in gRPC's form (PROTOCOL-HTTP2.md of its
sources). A refusal that another attempt would not change is raised; whatever else is no plain answer is left to
the library.
"""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Self, TypeVar

from grms.client.errors import SiteError

if TYPE_CHECKING:
    # Protobuf is for those that have found a site.
    from google.protobuf.descriptor import ServiceDescriptor
    from google.protobuf.message import Message

    from grms.client.calls import Calls
    from grms.daemon.pacing import Backoff


M = TypeVar("M", bound="Message")

SOCKET_LOOKED_FOR_S: Final = 0.1
"""Interval of checks for a socket, seconds."""

REQUEST_BYTES_MAX: Final = 32 << 10
"""A request is within the window that a site has to begin with."""

_FRAME_BYTES_MAX: Final = 16_384
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_SETTINGS_HERE: Final = {
    1: 0,  # HEADER_TABLE_SIZE: fields are spelled out, whatever was said before
    4: 2**31 - 1,  # INITIAL_WINDOW_SIZE: an answer may be of any length without a word from here
    0xFE03: 1,  # gRPC's own: values of bytes come as they are
}
_WINDOW_AT_FIRST: Final = 2**16 - 1
_RECEIVED_MAX: Final = 2**30
# Of a connection, whose window is twice as large and is not opened again.
_ACKNOWLEDGED = _END_STREAM = 0x1
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_REFUSALS: Final = {
    b"3": "INVALID_ARGUMENT",
    b"5": "NOT_FOUND",
    b"6": "ALREADY_EXISTS",
    b"7": "PERMISSION_DENIED",
    b"9": "FAILED_PRECONDITION",
}
_DETAILS: Final = b"grpc-status-details-bin"


def await_socket(path: Path, timeout_s: float) -> bool:
    """Waits for a socket at most `timeout_s` seconds, without importing gRPC; returns whether it exists."""
    deadline = time.monotonic() + timeout_s
    while not os.path.exists(path):  # noqa: PTH110  # False of a path that is too long, too
        if not time.monotonic() < deadline:  # of no number either
            return False
        time.sleep(SOCKET_LOOKED_FOR_S)
    return True


def ask(path: Path, method: str, request: bytes, timeout_s: float) -> bytes | None:
    """Returns the message that a method answers; None where gRPC's library has to ask again.

    Args:
        path: of the socket.
        method: as `/grms.v1.JobService/Submit`.
        request: the message; it may have been taken where None is returned.
        timeout_s: how long the other side may say nothing, and take in all, seconds.

    Raises:
        SiteError: the site has refused, and would again.
    """
    with Connection(path) as connection:
        return connection.ask(method, request, timeout_s)


class Connection:
    """A connection to a socket for one call after another; a context. It is made with the first call."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._socket: socket.socket | None = None
        self._calls = 0
        self._room = _WINDOW_AT_FIRST
        self._received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up."""
        if self._socket is not None:
            self._answers.close()
            self._socket.close()

    @property
    def is_used(self) -> bool:
        """Whether a call has been answered, so that the next may find that the other side has gone."""
        return self._calls > 0

    @property
    def is_worn(self) -> bool:
        """Whether the next call should have another connection."""
        needed = REQUEST_BYTES_MAX + _FRAME_BYTES_MAX
        return self._room < needed or self._received > _RECEIVED_MAX

    def ask(self, method: str, request: bytes, timeout_s: float) -> bytes | None:
        """Returns what `ask` does; after None or an error the connection is of no use."""
        if len(request) > REQUEST_BYTES_MAX:
            return None
        stream = 2 * self._calls + 1
        message = b"\0" + len(request).to_bytes(4) + request
        pieces = [
            message[at : at + _FRAME_BYTES_MAX] for at in range(0, len(message), _FRAME_BYTES_MAX)
        ]
        frames = [_frame(_HEADERS, _END_HEADERS, stream, _headers(method))]
        frames += [_frame(_DATA, 0, stream, piece) for piece in pieces[:-1]]
        frames.append(_frame(_DATA, _END_STREAM, stream, pieces[-1]))
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX)
                self._answers = self._socket.makefile("rb")
                self._socket.settimeout(timeout_s)
                self._socket.connect(self._path)
                frames.insert(0, _PREFACE + _windows())
            self._socket.settimeout(timeout_s)
            self._socket.sendall(b"".join(frames))
            answer = self._answer(self._socket, stream, time.monotonic() + timeout_s)
        except OSError:
            return None
        self._calls += 1
        self._room -= len(message)
        return answer

    def _answer(self, site: socket.socket, stream: int, until_s: float) -> bytes | None:
        found = b""
        while time.monotonic() < until_s and len(head := self._answers.read(9)) == 9:
            kind, flags, at = head[3], head[4], int.from_bytes(head[5:])
            body = self._answers.read(int.from_bytes(head[:3]))
            if kind in {_SETTINGS, _PING} and not flags & _ACKNOWLEDGED:
                said = body if kind == _PING else b""
                site.sendall(_frame(kind, _ACKNOWLEDGED, 0, said))
            elif kind in {_RST_STREAM, _GOAWAY} or (kind <= _HEADERS and flags & _PADDED):
                return None
            elif kind == _WINDOW_UPDATE and not at:
                self._room += int.from_bytes(body)
            elif kind == _DATA and at == stream:
                found += body
                self._received += len(body)
            elif kind == _HEADERS and at == stream:
                if flags & _PRIORITY or not flags & _END_HEADERS:
                    return None
                if flags & _END_STREAM:
                    return _message(found, _fields(body))
        return None


class Connections:
    """Connections to a socket for calls from any thread: each is used again when its call is over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process = os.getpid()
        self._idle: list[Connection] = []

    def close(self) -> None:
        """Hangs up."""
        while self._idle:
            self._idle.pop().close()

    def ask(self, method: str, request: bytes, timeout_s: float) -> bytes | None:
        """Returns what `ask` does; a call to a site that has hung up since the last one is made again."""
        if self._process != os.getpid():
            # A fork has the sockets of its parent: each would read what the other one is answered.
            self._process, before, self._idle = os.getpid(), self._idle, []
            for each in before:
                each.close()
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = Connection(self._path)
            is_used, said = connection.is_used, None
            try:
                said = connection.ask(method, request, left_s)
            finally:
                if said is None or connection.is_worn:
                    connection.close()
                else:
                    self._idle.append(connection)
            if said is not None or not is_used:
                return said
        return None


def _message(found: bytes, said: dict[bytes, bytes]) -> bytes | None:
    status = said.get(b"grpc-status", b"")
    if status in _REFUSALS:
        field = ""
        if _DETAILS in said:
            if said[_DETAILS][:1] != b"\0":
                return None  # packed in a way that the library knows
            from grms.daemon.status_details import read_details  # noqa: PLC0415  # few are refused

            field, _ = read_details(said[_DETAILS][1:])
        from urllib.parse import unquote  # noqa: PLC0415  # same

        text = unquote(said.get(b"grpc-message", b"").decode("ascii", "replace"))
        raise SiteError(_REFUSALS[status], text, field)
    # A message begins with whether it is packed, and its length.
    is_whole = (
        status == b"0" and found[:1] == b"\0" and len(found) == 5 + int.from_bytes(found[1:5])
    )
    return found[5:] if is_whole else None


def _fields(block: bytes) -> dict[bytes, bytes]:
    # Fields whose names are spelled out, as gRPC's own are (RFC 7541, 6.2); none where a block is cut off.
    found: dict[bytes, bytes] = {}
    at = 0

    def number(bits: int) -> int:
        nonlocal at
        most = (1 << bits) - 1
        value, shift = block[at] & most, 0
        at += 1
        while value >= most and (not shift or block[at - 1] & 0x80):
            value += (block[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        return value

    def word() -> bytes:
        nonlocal at
        is_packed = block[at] & 0x80
        size = number(7)
        at += size
        return b"" if is_packed else block[at - size : at]

    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                number(7)  # a field of the table, such as `:status: 200`
            elif first & 0xE0 == 0x20:
                number(5)  # the size of the table, which is none
            else:
                name = b"" if number(6 if first & 0x40 else 4) else word()
                found[name] = word()
    except IndexError:
        return {}
    return found


def _windows() -> bytes:
    settings = b"".join(
        name.to_bytes(2) + value.to_bytes(4) for name, value in _SETTINGS_HERE.items()
    )
    more = (2**31 - 1 - _WINDOW_AT_FIRST).to_bytes(4)
    return _frame(_SETTINGS, 0, 0, settings) + _frame(_WINDOW_UPDATE, 0, 0, more)


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + body


def _headers(method: str) -> bytes:
    # POST and http as entries of HPACK's table (RFC 7541, appendix A); the rest as it is, not to be kept.
    found = b"\x83\x86"
    for name, value in (
        (":path", method),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ):
        for word in (name, value):
            found += (b"\0" if word is name else b"") + bytes([len(word)]) + word.encode()
    return found


QUICK_S: Final = 2.0
"""So long an answer is waited for without gRPC's library, seconds; with it a call is tried until its time is over."""


class Method(NamedTuple, Generic[M]):
    """A method of a service: its name and that of the stub that has it with gRPC's library, and its answer."""

    stub: str
    name: str
    path: str
    answer: "type[M]"


class Stub:
    """The methods of a service, as attributes."""

    def __init__(self, name: str, service: "ServiceDescriptor") -> None:
        self._name = name
        self._service = service

    def __getattr__(self, name: str) -> Method[Any]:
        # Only after the messages, which say how protobuf is loaded.
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415  # see above

        method = self._service.methods_by_name[name]
        path = f"/{self._service.full_name}/{name}"
        return Method(self._name, name, path, GetMessageClass(method.output_type))


class UnaryCalls:
    """Calls to a site's socket that may be made once more, from any thread.

    Args:
        socket: of the site.
        timeout_s: the timeout of a call with its retries, seconds.
        by_library: makes a call with gRPC's library, where it had no plain answer, and returns the answer; it is told
            how many seconds are left for that. By default it has an event loop of its own, so the caller may be in none.
    """

    def __init__(
        self,
        socket: Path,
        timeout_s: float,
        by_library: "Callable[[Method[Any], Message, float], Any] | None" = None,
    ) -> None:
        from grms.v1 import job_pb2, operator_pb2  # noqa: PLC0415  # see above

        self.timeout_s = timeout_s
        self.socket = socket
        self.jobs: Any = Stub("jobs", job_pb2.DESCRIPTOR.services_by_name["JobService"])
        operators = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]
        self.operator: Any = Stub("operator", operators)
        self._by_library = by_library or self._with_own_loop
        self._connections = Connections(socket)

    def close(self) -> None:
        """Hangs up."""
        self._connections.close()

    def attempts(self) -> "tuple[float, Backoff]":
        """Returns until when a call is tried (`time.monotonic`), and the pauses between attempts."""
        from grms.daemon.pacing import attempts  # noqa: PLC0415  # few need it

        return attempts(self.timeout_s)

    async def pause(self, pause_s: float) -> None:
        """Waits before another attempt; there is no event loop that would have something else to do."""
        time.sleep(pause_s)  # noqa: ASYNC251  # as it says

    async def call(self, method: Method[M], request: "Message") -> M:
        """The same as `ask` for what may have an event loop as well; it never waits for one."""
        return self.ask(method, request)

    def ask(self, method: Method[M], request: "Message") -> M:
        """Returns the answer of a method.

        Raises:
            SiteError: it was refused, or what listens there is no site.
            SiteUnavailable: the site cannot be reached in time.
        """
        deadline = time.monotonic() + self.timeout_s
        quick_s = min(QUICK_S, self.timeout_s)
        said = self._connections.ask(method.path, request.SerializeToString(), quick_s)
        if said is None:
            found: M = self._by_library(method, request, max(0.0, deadline - time.monotonic()))
            return found
        from google.protobuf.message import DecodeError  # noqa: PLC0415  # see above

        try:
            return method.answer.FromString(said)
        except DecodeError as error:
            raise SiteError("INTERNAL", f"what answers on {self.socket} is no site") from error

    def _with_own_loop(self, method: Method[Any], request: "Message", left_s: float) -> Any:
        import asyncio  # noqa: PLC0415  # slow, and seldom needed

        from grms.client.calls import Calls  # noqa: PLC0415  # same

        async def call() -> Any:
            calls = Calls(self.socket, self.timeout_s)
            calls.open()
            try:
                return await by_library(calls, method, request, left_s)
            finally:
                await calls.close()

        return asyncio.run(call())


async def by_library(calls: "Calls", method: Method[Any], request: "Message", left_s: float) -> Any:
    """Returns the answer of a method, by calls that are open and have gRPC's library, within so many seconds."""
    return await calls.call(getattr(getattr(calls, method.stub), method.name), request, left_s)
