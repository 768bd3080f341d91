"""Monitors one site: its reservations and offers, and whether it is silent."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from broker.executor.base import Reservation, ReservationRefused, Site, SiteUnavailable
from broker.scheduler.events import Event, Offered, SiteDown, SiteLost, SiteUp
from grms.daemon.clock import RealClock
from grms.daemon.pacing import Backoff, BackoffSettings

PAUSES: Final = BackoffSettings(first_s=0.1, most_s=5.0)
"""Between attempts to reach a silent site."""

OFFERS_EVERY_S: Final = 30.0
"""Interval at which a site is asked for its offers, real seconds."""

CLOSED_EVERY_S: Final = 5.0
"""The same while one of its resources is closed: a pilot may be there at any moment, real seconds."""

OFFERS_SPAN_S: Final = 7 * 86400.0
"""Window of an offer, seconds of the broker's clock."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a silent site is tolerated, real seconds.

    After `down_s` its bookings are planned again, after `lost_s` it counts as lost.
    """

    down_s: float = 10.0
    lost_s: float = math.inf


class SiteMonitor:
    """Watches one site: passes on its reservations and tells the state when it is down or lost.

    `heard` is called with the name and each reservation that the site reports, `again` with the name when the site answers
    after it had lost contact; its reservations follow.
    """

    def __init__(
        self,
        name: str,
        site: Site,
        tell: Callable[[Event], None],
        heard: Callable[[str, Reservation], None],
        again: Callable[[str], None],
        *,
        clock: RealClock,
        log: structlog.typing.FilteringBoundLogger,
        patience: Patience,
    ) -> None:
        self._name = name
        self._site = site
        self._tell = tell
        self._heard = heard
        self._again = again
        self._clock = clock
        self._log = log
        self._patience = patience
        self._monitor = asyncio.Event()

    async def follow(self) -> None:
        """Watches until it is cancelled."""
        loop = asyncio.get_running_loop()
        silent, told, before = loop.time(), 0, False
        most_s = min(PAUSES.most_s, self._patience.down_s / 2)
        backoff = Backoff(BackoffSettings(min(PAUSES.first_s, most_s), most_s))
        while True:
            try:
                async for known in self._words(silent, told):
                    if known is None:
                        if told:
                            self._log.info("site_is_back", site=self._name)
                            self._tell(SiteUp(0, self._name))
                        if before:
                            self._again(self._name)
                        silent, told, before = math.inf, 0, True
                        backoff.reset()
                        self._monitor.set()
                    else:
                        self._heard(self._name, known)
            except (SiteUnavailable, TimeoutError) as error:
                reason = str(error) or "no answer in time"
            else:
                reason = "the site has ended the conversation"
            if silent == math.inf:
                silent = loop.time()
                self._log.warning("site_lost_contact", site=self._name, reason=reason)
            told = self._silence(loop.time() - silent, told, reason)
            await asyncio.sleep(backoff.next_s())

    async def learn(self) -> None:
        """Asks what the site has to reserve, at each contact and now and then: it tells no changes."""
        wanted = self._monitor
        await wanted.wait()
        while True:
            wanted.clear()
            pause_s = OFFERS_EVERY_S
            begin = self._clock.now()
            end = begin + OFFERS_SPAN_S
            try:
                offers = await self._site.offer(begin, end)
            except SiteUnavailable as error:
                self._log.debug("site_does_not_offer", site=self._name, reason=str(error))
            except ReservationRefused as error:
                self._log.warning("offer_cannot_be_used", site=self._name, reason=str(error))
            else:
                if offers is not None and not all(offer.free for offer in offers):
                    pause_s = CLOSED_EVERY_S
                if offers is not None:
                    self._tell(Offered(0, self._name, offers, begin, end))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await wanted.wait()

    async def _words(self, silent: float, told: int) -> AsyncIterator[Reservation | None]:
        # The site's messages; the first must come before the site counts as down or lost.
        loop = asyncio.get_running_loop()
        stream = self._site.watch()
        limit = self._patience.down_s if told == 0 else PAUSES.most_s
        try:
            async with asyncio.timeout(max(limit - (loop.time() - silent), PAUSES.first_s)):
                first = await anext(stream)
            yield first
            async for known in stream:
                yield known
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def _silence(self, seconds: float, told: int, reason: str) -> int:
        # Reports once that a site is down, and once that it is lost.
        if told == 0 and seconds >= self._patience.down_s:
            self._log.warning(
                "site_down", site=self._name, seconds=round(seconds, 1), reason=reason
            )
            self._tell(SiteDown(0, self._name))
            told = 1
        if told == 1 and seconds >= self._patience.lost_s:
            self._log.error("site_lost", site=self._name, seconds=round(seconds, 1))
            self._tell(SiteLost(0, self._name))
            told = 2
        return told
