"""One call of gRPC over a Unix socket without gRPC's library, which takes longer to load than a site to answer.

As much of HTTP/2 (RFC 9113) as one request and its answer need, in gRPC's form (PROTOCOL-HTTP2.md of its
sources). A refusal that another attempt would not change is raised; whatever else is no plain answer is left to
the library.
"""

import socket
import time
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote

from grms.client.errors import SiteError

REQUEST_BYTES_MAX: Final = 32 << 10
"""A request is within the window that a site has to begin with."""

_FRAME_BYTES_MAX: Final = 16_384
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
_INITIAL_WINDOW_SIZE: Final = 4
_WINDOW: Final = 2**31 - 1
_WINDOW_AT_FIRST: Final = 2**16 - 1
# An answer may be of any length without a word from here: of a stream, and of the connection.
_ACKNOWLEDGED = _END_STREAM = 0x1
_END_HEADERS, _PADDED = 0x4, 0x8
_REFUSALS: Final = {
    b"3": "INVALID_ARGUMENT",
    b"5": "NOT_FOUND",
    b"6": "ALREADY_EXISTS",
    b"7": "PERMISSION_DENIED",
    b"9": "FAILED_PRECONDITION",
}


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
    if len(request) > REQUEST_BYTES_MAX:
        return None
    message = b"\0" + len(request).to_bytes(4) + request
    pieces = [
        message[at : at + _FRAME_BYTES_MAX] for at in range(0, len(message), _FRAME_BYTES_MAX)
    ]
    frames = [_frame(_DATA, 0, 1, piece) for piece in pieces[:-1]]
    frames.append(_frame(_DATA, _END_STREAM, 1, pieces[-1]))
    head = _frame(_HEADERS, _END_HEADERS, 1, _headers(method))
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(_PREFACE + _windows() + head + b"".join(frames))
            with connection.makefile("rb") as answers:
                return _answer(answers, connection, time.monotonic() + timeout_s)
    except OSError:
        return None


def _answer(answers: BinaryIO, connection: socket.socket, until_s: float) -> bytes | None:
    found = b""
    while time.monotonic() < until_s and len(head := answers.read(9)) == 9:
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
        body = answers.read(int.from_bytes(head[:3]))
        if kind == _SETTINGS and not flags & _ACKNOWLEDGED:
            connection.sendall(_frame(_SETTINGS, _ACKNOWLEDGED, 0, b""))
        elif kind in {_RST_STREAM, _GOAWAY} or flags & _PADDED:
            return None
        elif kind == _DATA and stream == 1:
            found += body
        elif kind == _HEADERS and flags & _END_STREAM:
            said = _words(body)
            status = said.get(b"grpc-status", b"")
            if status in _REFUSALS:
                text = unquote(said.get(b"grpc-message", b"").decode("ascii", "replace"))
                raise SiteError(_REFUSALS[status], text)
            # A message begins with whether it is packed, and its length.
            is_whole = (
                status == b"0"
                and found[:1] == b"\0"
                and len(found) == 5 + int.from_bytes(found[1:5])
            )
            return found[5:] if is_whole else None
    return None


def _words(block: bytes) -> dict[bytes, bytes]:
    # Fields whose names are spelled out, as gRPC's own are when they come first (RFC 7541, 6.2).
    found: dict[bytes, bytes] = {}
    at = 0

    def word() -> bytes:
        nonlocal at
        packed, size, shift = block[at] & 0x80, block[at] & 0x7F, 0
        at += 1
        while size >= 0x7F and (not shift or block[at - 1] & 0x80):
            size += (block[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        at += size
        return b"" if packed else block[at - size : at]

    try:
        while at < len(block):
            at += 1
            if block[at - 1] & 0x80:
                continue  # one of the table, such as `:status: 200`
            if block[at - 1] not in {0x00, 0x10, 0x40}:
                return {}
            name = word()
            found[name] = word()
    except IndexError:
        return {}
    return found


def _windows() -> bytes:
    settings = _INITIAL_WINDOW_SIZE.to_bytes(2) + _WINDOW.to_bytes(4)
    more = (_WINDOW - _WINDOW_AT_FIRST).to_bytes(4)
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
