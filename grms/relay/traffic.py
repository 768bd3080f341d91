"""What a relay says of what it has carried: a line of each call where two sites call seldom, and sums where they call often.

A site that is allowed to meet others may call them as often as it wants; the log must not grow with that.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from grms.daemon.pacing import Rate

Log = structlog.typing.FilteringBoundLogger

LINE_S: Final = 60.0
"""A pair of sites has one line in that time at most, seconds."""


@dataclass(slots=True)
class _Sum:
    calls: int = 0
    there: int = 0
    back: int = 0


class TrafficLog:
    """Logs calls that are over; `clock` is in real seconds."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._rate = Rate(1.0 / LINE_S, clock)
        self._sums: dict[tuple[str, str], _Sum] = {}

    def ended(self, caller: str, site: str, there: int, back: int) -> None:
        """Notes a call, and how many bytes went there and back."""
        one = self._sums.setdefault((caller, site), _Sum())
        one.calls += 1
        one.there += there
        one.back += back
        self._tell_due(caller, site)

    def flush(self) -> None:
        """Logs all that is not logged yet."""
        for pair in tuple(self._sums):
            self._tell(*pair)

    async def run(self) -> None:
        """Logs what is due, now and then, until it is cancelled."""
        while True:
            await asyncio.sleep(LINE_S)
            for pair in tuple(self._sums):
                self._tell_due(*pair)

    def _tell_due(self, caller: str, site: str) -> None:
        if self._rate.wait_s(f"{caller} {site}") <= 0:
            self._tell(caller, site)

    def _tell(self, caller: str, site: str) -> None:
        one = self._sums.pop((caller, site))
        self._log.info(
            "carried",
            caller=caller,
            to=site,
            calls=one.calls,
            bytes_there=one.there,
            bytes_back=one.back,
        )
