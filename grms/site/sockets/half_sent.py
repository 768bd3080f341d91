"""Which requests of an HTTP/2 connection have begun and are not finished; pure.

Whoever begins requests and never ends them holds a place in the server for each. gRPC has no limit
of time for that, so the frames that a client sends are followed (RFC 9113, sections 4.1 and 6), their
heads alone. At a port where every call has one request, a stream whose client has not ended its side
is a request that is half sent. A stream of many requests is one until it ends, such as reflection's.
"""

from typing import Final

LOOK_S: Final = 1.0
"""How often is looked for requests that are not finished, seconds."""

PREFACE_BYTES: Final = 24
"""What a client says first (RFC 9113, section 3.4)."""

_HEAD_BYTES = 9
_DATA, _HEADERS, _RST_STREAM, _CONTINUATION = 0, 1, 3, 9
_END_STREAM, _END_HEADERS = 0x1, 0x4


class HalfSent:
    """Follows what a client sends on one connection."""

    def __init__(self) -> None:
        self._preface = PREFACE_BYTES
        self._head = b""
        self._left = 0
        self._frame_since = 0.0
        self._open: dict[int, float] = {}
        self._ending = 0

    @property
    def count(self) -> int:
        """Requests that are half sent."""
        return len(self._open)

    def since(self, begin: float) -> float:
        """Returns since when something is half sent; infinity where nothing is.

        Args:
            begin: when the connection began, seconds: since then the preface is awaited.
        """
        if self._preface:
            return begin
        oldest = next(iter(self._open.values()), float("inf"))
        return min(oldest, self._frame_since) if self._left or self._head else oldest

    def feed(self, data: bytes, now: float) -> None:
        """Takes the next bytes.

        Args:
            data: as the client has sent them.
            now: seconds, on the clock of `since`.
        """
        at, end = 0, len(data)
        if self._preface:
            at = min(self._preface, end)
            self._preface -= at
        while at < end:
            if self._left:
                step = min(self._left, end - at)
                self._left -= step
                at += step
                continue
            if not self._head:
                self._frame_since = now
            missing = _HEAD_BYTES - len(self._head)
            self._head += data[at : at + missing]
            at = min(end, at + missing)
            if len(self._head) == _HEAD_BYTES:
                self._frame(now)

    def _frame(self, now: float) -> None:
        head, self._head = self._head, b""
        self._left = int.from_bytes(head[:3])
        kind, flags = head[3], head[4]
        stream = int.from_bytes(head[5:]) & 0x7FFF_FFFF
        if kind == _HEADERS:
            # Trailers come on a stream that is there already: its time goes on.
            self._open.setdefault(stream, now)
            self._ending = stream if flags & _END_STREAM else 0
            if flags & _END_HEADERS:
                self._end_headers()
        elif kind == _CONTINUATION and flags & _END_HEADERS:
            self._end_headers()
        elif kind == _RST_STREAM or (kind == _DATA and flags & _END_STREAM):
            self._open.pop(stream, None)

    def _end_headers(self) -> None:
        if self._ending:
            self._open.pop(self._ending, None)
            self._ending = 0
