"""How calls are shared out among those who call, and how much each may have sent of them."""

from collections import Counter
from dataclasses import dataclass, replace

from grms.site.gateway.open_calls import OpenCalls


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
