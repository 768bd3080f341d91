"""What the account that a site keeps of itself has been in the last 30 days.

A point is made of the looks of two hours, so that there are few of them. They go with the account into the
journal, and so survive restarts. While nobody looked there are none.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Final

HISTORY_S: Final = 30 * 86_400.0
"""How far it goes back, seconds."""

POINT_S: Final = 7200.0
"""The looks of so many seconds are one point."""

POINTS_MAX: Final = int(HISTORY_S / POINT_S)


@dataclass(frozen=True, slots=True)
class RunningGuests:
    """Partners' jobs that run here.

    Attributes:
        protected: may be ended for own jobs, but are not while the site is in credit, which it is.
        preemptible: are ended for own jobs now.
        staying: run to their ends.
    """

    protected: int = 0
    preemptible: int = 0
    staying: int = 0


@dataclass(frozen=True, slots=True)
class AccountPoint:
    """The account at the looks of one time span.

    Attributes:
        time: of the last of them, seconds.
        looks: their number.
        in_credit: of these, those after which the site was in credit.
        late: of these, those at which an own job waited that had begun in the shadow.
        balance: after the last one, by so much more the site's own jobs might have to wait until it is out of credit; hours of
            waiting of a job of mean work, nan while none was compared.
        protected, preemptible, staying: guests at the last one, as in `RunningGuests`.
    """

    time: float
    looks: int
    in_credit: int
    late: int
    balance: float
    protected: int
    preemptible: int
    staying: int


class AccountHistory:
    """The points of the last 30 days, oldest first."""

    def __init__(self, points: Iterable[AccountPoint] = ()) -> None:
        self._points = deque(points, maxlen=POINTS_MAX)

    @property
    def points(self) -> Sequence[AccountPoint]:
        """Those that there are now."""
        return tuple(self._points)

    def note(
        self, time: float, *, in_credit: bool, late: bool, balance: float, guests: RunningGuests
    ) -> None:
        """Notes a look; the arguments are as in `AccountPoint`. After a clock that was set back it begins anew."""
        if self._points and time < self._points[-1].time:
            self._points.clear()
        looks, credits_, lates = 1, int(in_credit), int(late)
        if self._points and self._points[-1].time // POINT_S == time // POINT_S:
            last = self._points.pop()
            looks, credits_, lates = (
                last.looks + 1,
                last.in_credit + credits_,
                last.late + lates,
            )
        while self._points and self._points[0].time <= time - HISTORY_S:
            self._points.popleft()
        self._points.append(
            AccountPoint(
                time,
                looks,
                credits_,
                lates,
                balance,
                guests.protected,
                guests.preemptible,
                guests.staying,
            )
        )

    def record(self) -> list[list[float | None]]:
        """Returns plain values for a journal."""
        return [
            [None if math.isnan(value) else value for value in astuple(point)]
            for point in self._points
        ]

    @classmethod
    def of_record(cls, record: Iterable[Sequence[float | None]]) -> "AccountHistory":
        """Returns the history of a record."""
        points = []
        for values in record:
            time, looks, in_credit, late, balance, *guests = (
                math.nan if value is None else value for value in values
            )
            points.append(
                AccountPoint(
                    time, int(looks), int(in_credit), int(late), balance, *map(int, guests)
                )
            )
        return cls(points)
