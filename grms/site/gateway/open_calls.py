"""Which calls of an HTTP/2 connection are open, fully sent, and read; pure.

A client that begins requests and never ends them holds a place in the server for each, and so does
one that does not read the answers: HTTP/2 lets it say that it can take nothing now (RFC 9113,
section 5.2), and gRPC waits for ever. So the frame headers of both sides are followed here
(sections 4.1 and 6), and a client's window updates.

A call is open from its first frame until one of the sides ends it. It is half sent until its client
ends its side: every call has one request, except some, such as reflection's, that are half sent
until they end. It is unread while its window, or that of the whole connection, is used up and the
client does not enlarge it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

PREFACE_BYTES: Final = 24
"""What a client sends first (RFC 9113, section 3.4)."""

WINDOW_BYTES: Final = 65_535
"""Initial window."""

_HEAD_BYTES = 9
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 8, 9
_END_STREAM = _ACKNOWLEDGED = 0x1
_END_HEADERS = 0x4
_INITIAL_WINDOW = 4
_NUMBER = 0x7FFF_FFFF

Taken = Callable[[int, int, int, int], None]
"""Takes a frame's kind, flags, stream and length, bytes."""


class _Follower:
    # Goes through the frames of one side, after a preface of so many bytes.

    def __init__(self, preface: int, head: Taken, body: Callable[[int, int, bytes], None]) -> None:
        self.preface = preface
        self.since = 0.0
        self._take_head = head
        self._take_body = body
        self._head = b""
        self._left = 0
        self._kept: bytearray | None = None
        self._kind = self._stream = 0

    @property
    def unfinished(self) -> bool:
        return bool(self._left or self._head)

    def feed(self, data: bytes, now: float) -> None:
        at, end = min(self.preface, len(data)), len(data)
        self.preface -= at
        while at < end:
            if self._left:
                step = min(self._left, end - at)
                if self._kept is not None:
                    self._kept += data[at : at + step]
                self._left -= step
                at += step
                self._end_body()
                continue
            if not self._head:
                self.since = now  # when the frame begins
            missing = _HEAD_BYTES - len(self._head)
            self._head += data[at : at + missing]
            at = min(end, at + missing)
            if len(self._head) == _HEAD_BYTES:
                self._frame()

    def _frame(self) -> None:
        head, self._head = self._head, b""
        self._left = int.from_bytes(head[:3])
        kind, flags = head[3], head[4]
        stream = int.from_bytes(head[5:]) & _NUMBER
        self._take_head(kind, flags, stream, self._left)
        says = kind == _WINDOW_UPDATE or (kind == _SETTINGS and not flags & _ACKNOWLEDGED)
        self._kept = bytearray() if says else None
        self._kind, self._stream = kind, stream
        self._end_body()

    def _end_body(self) -> None:
        if not self._left and self._kept is not None:
            body, self._kept = bytes(self._kept), None
            self._take_body(self._kind, self._stream, body)


class _Window:
    # How much more may be sent, and since when that has not grown.
    __slots__ = ("left", "since")

    def __init__(self, left: int, since: float) -> None:
        self.left = left
        self.since = since


class OpenCalls:
    """Follows both sides of one connection.

    `asked_bytes` is what the client has sent of each open call, by its number, the oldest first.
    """

    def __init__(self) -> None:
        self.asked_bytes: dict[int, int] = {}
        self.total_bytes = 0
        self._windows: dict[int, _Window] = {}
        self._connection = _Window(WINDOW_BYTES, 0.0)
        self._initial = WINDOW_BYTES
        self._last = 0
        self._now = 0.0
        self._half_sent: dict[int, float] = {}
        self._ending = 0
        self._client = _Follower(PREFACE_BYTES, self._client_frame, self._client_says)
        self._server = _Follower(0, self._server_frame, lambda *_: None)

    @property
    def count(self) -> int:
        """Calls that are open."""
        return len(self._windows)

    @property
    def half_sent(self) -> int:
        """Calls that are half sent, also those that the server has answered already."""
        return len(self._half_sent)

    def asked(self, data: bytes, now: float) -> None:
        """Takes the next bytes of the client; `now` is in seconds, on any clock."""
        self._now = now
        self._client.feed(data, now)

    def answered(self, data: bytes, now: float) -> None:
        """Takes the next bytes of the server; see `asked`."""
        self._now = now
        self._server.feed(data, now)

    def half_sent_since(self, begin: float) -> float:
        """Returns since when something is half sent, by the clock of `asked`; infinity if nothing is.

        `begin` is when the connection began, in seconds: from then on the preface is awaited.
        """
        if self._client.preface:
            return begin
        oldest = next(iter(self._half_sent.values()), float("inf"))
        return min(oldest, self._client.since) if self._client.unfinished else oldest

    def unread_since(self) -> float:
        """Returns since when an answer is not read, by the clock of `asked`; infinity if all are."""
        if not self._windows:
            return float("inf")
        moments = [window.since for window in self._windows.values() if window.left <= 0]
        if self._connection.left <= 0:
            moments.append(self._connection.since)
        return min(moments, default=float("inf"))

    def _client_frame(self, kind: int, flags: int, stream: int, length: int) -> None:
        self._follow_request(kind, flags, stream)
        if kind == _HEADERS and stream > self._last:
            self._last = stream
            self._windows[stream] = _Window(self._initial, self._now)
            self.asked_bytes[stream] = length
            self.total_bytes += length
        elif kind == _DATA and stream in self.asked_bytes:
            self.asked_bytes[stream] += length
            self.total_bytes += length
        elif kind == _RST_STREAM:
            self._end(stream)

    def _follow_request(self, kind: int, flags: int, stream: int) -> None:
        if kind == _HEADERS:
            # Trailers come on a stream that is there already: its time goes on.
            self._half_sent.setdefault(stream, self._now)
            self._ending = stream if flags & _END_STREAM else 0
        if kind in {_HEADERS, _CONTINUATION} and flags & _END_HEADERS and self._ending:
            self._half_sent.pop(self._ending, None)
            self._ending = 0
        elif kind == _RST_STREAM or (kind == _DATA and flags & _END_STREAM):
            self._half_sent.pop(stream, None)

    def _client_says(self, kind: int, stream: int, body: bytes) -> None:
        if kind == _WINDOW_UPDATE:
            window = self._windows.get(stream) if stream else self._connection
            if window is not None:
                window.left += int.from_bytes(body) & _NUMBER
                window.since = self._now
            return
        for at in range(0, len(body) - 5, 6):
            if int.from_bytes(body[at : at + 2]) == _INITIAL_WINDOW:
                initial = int.from_bytes(body[at + 2 : at + 6])
                for window in self._windows.values():
                    window.left += initial - self._initial
                    window.since = self._now
                self._initial = initial

    def _server_frame(self, kind: int, flags: int, stream: int, length: int) -> None:
        if kind == _DATA:
            for window in (self._connection, self._windows.get(stream)):
                if window is not None:
                    window.left -= length
                    window.since = self._now
        if kind == _RST_STREAM or (kind in {_DATA, _HEADERS} and flags & _END_STREAM):
            self._end(stream)

    def _end(self, stream: int) -> None:
        self._windows.pop(stream, None)
        self.total_bytes -= self.asked_bytes.pop(stream, 0)


@dataclass(frozen=True, slots=True)
class CallShares:
    """What callers may have open.

    Attributes:
        total: calls of all callers together; beyond, nobody has more than are kept for him.
        per_caller: of these, for one.
        kept: for each caller, however many calls others have.
        bytes_per_caller: what one may have sent of calls that are open; beyond, he is read no further.
    """

    total: int
    per_caller: int
    kept: int
    bytes_per_caller: int

    @classmethod
    def of(cls, calls: int, message_bytes: int) -> "CallShares":
        """Returns the shares of so many calls: half for one caller at most, and some kept for each."""
        most = max(1, calls // 2)
        return cls(calls, most, min(most, 16), max(32 * message_bytes, 1 << 25))

    def per_connection(self, callers: int) -> int:
        """Returns how many calls one connection may have open; more wait at the other side.

        With a connection each, all callers together have no more than the total, or than is kept for each.
        """
        even = max(self.kept, self.total // max(1, callers))
        return max(1, min(even, self.total // 8))


class CallBudget:
    """Which callers have how many calls open, over all their connections."""

    def __init__(self, shares: CallShares) -> None:
        self.shares = shares
        self.calls: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._total = 0

    def promise(self, callers: int) -> int:
        """Returns how many calls each connection is to be told that it may have open.

        As many are kept for its caller from then on, also where more callers come than the total is enough for.
        """
        each = self.shares.per_connection(callers)
        self.shares = replace(self.shares, kept=max(self.shares.kept, each))
        return each

    def note(self, who: str, calls: int, size: int) -> None:
        """Records that a caller has so many more calls open, with so many more bytes."""
        self._total += calls
        for counts, change in ((self.calls, calls), (self.bytes, size)):
            counts[who] += change
            if not counts[who]:
                del counts[who]

    def problem(self, who: str) -> str:
        """Returns why a caller has too many calls open, in words about him; empty if he has not."""
        has, shares = self.calls[who], self.shares
        if has > shares.per_caller:
            return f"has {has} calls open; one caller may have {shares.per_caller}"
        if self._total > shares.total and has > shares.kept:
            return f"has {has} of {self._total} calls that are open; in all {shares.total} may be"
        return ""

    def is_full(self, who: str) -> bool:
        """Returns whether a caller has sent so much of his open calls that he is read no further."""
        return self.bytes[who] > self.shares.bytes_per_caller


class CallWatch:
    """Checks the calls of one connection against its caller's limits.

    `who` is empty for a caller without limits, such as an operator.
    """

    def __init__(self, budget: CallBudget, who: str) -> None:
        self._budget = budget
        self._who = who
        self.calls = OpenCalls()
        self._noted = (0, 0)
        self._closed = False
        self._delivered = self._passed = 0
        self._passed_at = float("-inf")

    def asked(self, data: bytes, now: float) -> str:
        """Takes what the caller has sent; returns what exceeds a limit, in words, or nothing.

        `now` is in seconds, on any clock.
        """
        self.calls.asked(data, now)
        self._note()
        return self._budget.problem(self._who) if self._who else ""

    def answered(self, data: bytes, now: float) -> None:
        """Takes what he was answered; see `asked`."""
        self.calls.answered(data, now)
        self._note()

    @property
    def full(self) -> bool:
        """Whether the caller has sent so much of open calls that it is read no further."""
        return bool(self._who) and self._budget.is_full(self._who)

    def wrote(self, size: int) -> None:
        """Notes that so many more bytes were handed to the connection."""
        self._delivered += size

    def unread_since(self, waiting: int, now: float) -> float:
        """Returns since when the caller has not read its answers; infinity if it does.

        `waiting` are bytes not sent yet; `now` is in seconds, on the clock of `asked`.
        """
        passed = self._delivered - waiting
        if not waiting or passed != self._passed or self._passed_at == float("-inf"):
            self._passed, self._passed_at = passed, now
        stalled = self._passed_at if waiting else float("inf")
        return min(stalled, self.calls.unread_since())

    def close(self) -> None:
        """Notes that the connection is over."""
        self._closed = True
        self._budget.note(self._who, -self._noted[0], -self._noted[1])
        self._noted = (0, 0)

    def _note(self) -> None:
        if self._closed:
            return  # gRPC may answer still
        calls, size = self.calls.count, self.calls.total_bytes
        before, self._noted = self._noted, (calls, size)
        if before != self._noted:
            self._budget.note(self._who, calls - before[0], size - before[1])
