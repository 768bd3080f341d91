"""Which jobs a partner has sent back undone, and until when it is offered no such jobs.

A partner that accepts a job and then does not begin it, as its batch system refuses it or the program has not
arrived, sends it back. Home does not know the reason, and need not: it does not offer such jobs there for a while,
each time for longer. Such are jobs of the same user that are at least as wide and as long, both by powers of two: a
refusal of one user's account or script says nothing of another's, and a partner whose partition takes only short
jobs continues to get these.
"""

import math
from dataclasses import dataclass, field
from typing import Final

from grms.daemon.pacing import pause_after
from grms.site.model.jobs import Request

KINDS_MAX: Final = 256
"""So many kinds of jobs are remembered of one partner; the one that came back longest ago is forgotten for another."""


@dataclass(slots=True)
class _Kind:
    # Of jobs that came back: how often in a row, and until when none is offered.
    times: int
    until: float


@dataclass(slots=True)
class ReturnBook:
    """Jobs that one partner has sent back undone; `count` is their number.

    Not durable: after a restart such a job is offered once more.
    """

    count: int = 0
    _kinds: dict[tuple[str, int, int], _Kind] = field(default_factory=dict)

    def came_back(
        self, user: str, request: Request, now: float, *, first_s: float, most_s: float
    ) -> None:
        """Notes that a job came back undone: such jobs are not offered until a pause is over.

        The pause doubles with each return after it; of many concurrent jobs the first counts. The first pause is
        `first_s`, the longest `most_s`; after that long without a return it starts over. All times are in seconds.
        """
        self.count += 1
        key = (user, *_kind(request))
        kind = self._kinds.pop(key, None)
        if kind is None or now > kind.until + most_s:
            kind = _Kind(0, -math.inf)
        if now >= kind.until:
            kind.times += 1
            kind.until = now + pause_after(kind.times, first_s, most_s)
        self._kinds[key] = kind
        if len(self._kinds) > KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]

    def ran(self, user: str, request: Request) -> None:
        """Notes that the partner has run a job: such jobs are offered again."""
        width, length = _kind(request)
        self._kinds = {
            key: kind
            for key, kind in self._kinds.items()
            if key[0] != user or key[1] > width or key[2] > length
        }

    def rests(self, user: str, request: Request, now: float) -> bool:
        """Returns whether a job is not to be offered now (seconds), as such jobs came back."""
        if not self._kinds:
            return False
        width, length = _kind(request)
        return any(
            key[0] == user and key[1] <= width and key[2] <= length and now < kind.until
            for key, kind in self._kinds.items()
        )

    def until(self, now: float) -> float | None:
        """Returns until when some jobs are not offered, seconds; `None` if all are."""
        return max((kind.until for kind in self._kinds.values() if now < kind.until), default=None)


def _kind(request: Request) -> tuple[int, int]:
    # The powers of two up to which it is wide and long.
    return request.processors.bit_length(), math.frexp(request.requested_time)[1]
