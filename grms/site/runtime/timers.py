"""What a daemon tells its engine by the clock: that time has passed, and that a round of offers is due.

Rounds are held at multiples of the period, on the site's clock.

A reload may change the period, or end the rounds. A round that was under way when the daemon ended resumes as
soon as partners are there, and at the next multiple at the latest. In a replay the coordinator schedules rounds
instead.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from grms.policy.rebalancing import period_of
from grms.site.model.commands import Command
from grms.site.model.events import Event, PartnerUp, PoliciesChanged, RoundDue, TimePassed
from grms.site.runtime.event_loop import Engine

DEADLINES_LOOKED_AT_S: Final = 2.0
"""Interval of checks for overdue jobs."""


async def follow_deadlines(engine: Engine) -> None:
    """Tells a site's engine again and again that time has passed, until cancelled."""
    while True:  # waits for time, not for an event
        await asyncio.sleep(DEADLINES_LOOKED_AT_S)
        engine.tell(TimePassed(*engine.stamp()))


def next_round(now: float, last: float, period: float) -> float:
    """Returns the moment of the next round, seconds; infinity if there is none.

    `last` is that of the last round, minus infinity before the first. The clock (`now`) may be slightly behind it
    when a timer is early, and far behind when it was set back. An infinite period means no rounds.
    """
    if period == math.inf:
        return math.inf
    begin = max(now, last) if last - now < period else now
    moment = period * (1.0 + math.floor(begin / period))
    return moment if moment > begin else moment + period


class RebalanceTimer:
    """Tells a site's engine when a round is due."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = asyncio.Event()
        self._there = asyncio.Event()
        if self._all_there():
            self._there.set()
        engine.on_event(self._look)

    def _look(self, event: Event, _commands: Sequence[Command]) -> None:
        if isinstance(event, PoliciesChanged):
            self._changed.set()
        elif isinstance(event, PartnerUp) and self._all_there():
            self._there.set()

    def _all_there(self) -> bool:
        return all(book.reachable for book in self._engine.state.partners.values() if book.listed)

    async def run(self) -> None:
        """Announces rounds until cancelled."""
        engine, last = self._engine, -math.inf
        if engine.state.memory.rounds.open:
            moment = next_round(engine.clock.now(), last, period_of(engine.state.settings.reoffer))
            if await self._reached(moment, self._there):
                last = moment
            engine.tell(RoundDue(*engine.stamp()))
        while True:
            self._changed.clear()
            moment = next_round(engine.clock.now(), last, period_of(engine.state.settings.reoffer))
            if await self._reached(moment, self._changed):
                last = moment
                engine.tell(RoundDue(*engine.stamp()))

    async def _reached(self, moment: float, before: asyncio.Event) -> bool:
        # Waits for the moment; False where something has happened before.
        async with asyncio.TaskGroup() as group:
            changed = group.create_task(before.wait(), name="before a round")
            waits: list[asyncio.Task[object]] = [changed]
            due = None
            if moment < math.inf:
                sleep = self._engine.clock.sleep_until(moment)
                due = group.create_task(sleep, name="round due")
                waits.append(due)
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        return due in done and changed not in done
