"""Guests that may be ended and have waited too long for room beside own jobs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from grms.lrms.base import LrmsPhase
from grms.lrms.batch.queue_snapshot import JobRow

NO_ROOM: Final = "there has been no room for it beside own jobs since it was accepted"
"""What a preemptible guest waits for that has waited too long."""


class GuestsWithoutRoom:
    """The waits of preemptible guests.

    Such a guest is accepted where it starts at once. If it does not, all own jobs go before it, those that come later too:
    another site may have room. A wall clock that is set anew makes no wait longer or shorter.

    `names` are the partitions of such guests, `most_s` is how long they may wait there, seconds, 0 for any time; `is_own`
    says of a row whether it is a job of the site's users, whose own choice such a partition is: it waits on.
    """

    def __init__(
        self, names: Sequence[str], most_s: float, is_own: Callable[[JobRow], bool]
    ) -> None:
        self._names = names
        self._most_s = most_s
        self._is_own = is_own
        self._since: dict[str, float] = {}

    def told(self, rows: Sequence[JobRow]) -> tuple[JobRow, ...]:
        """Returns the rows of a poll; those of guests that have waited too long say so."""
        if not (self._names and self._most_s):
            return tuple(rows)
        now = time.monotonic()
        waiting = [
            row.number
            for row in rows
            if row.phase is LrmsPhase.WAITING
            and row.partition in self._names
            and not self._is_own(row)
        ]
        self._since = since = {number: self._since.get(number, now) for number in waiting}
        return tuple(
            replace(row, hindered=row.hindered or NO_ROOM)
            if now - since.get(row.number, now) >= self._most_s
            else row
            for row in rows
        )
