"""When a daemon holds its rounds."""

import asyncio
import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from grms.site.model.events import Event, PartnerUp, PoliciesChanged, RoundDue
from grms.site.model.partners import PartnerBook
from grms.site.model.state_tables import StateTables
from grms.site.runtime.event_loop import RebalanceTimer, next_round
from tests.grms.site.conversation import settings
from tests.waiting import run, until


@pytest.mark.parametrize(
    ("now", "last", "expected"),
    [
        (0.0, -math.inf, 900.0),
        (899.9, -math.inf, 900.0),
        (900.0, -math.inf, 1800.0),
        (900.0, 900.0, 1800.0),
        (899.999, 900.0, 1800.0),  # a timer that was early
        (2750.0, 900.0, 3600.0),  # rounds that were missed are not made up for
        (-100.0, 900.0, 0.0),  # a clock that was set back
        (1e9 + 0.5, 1e9, 1_000_000_800.0),
    ],
)
def test_the_next_round(now: float, last: float, expected: float) -> None:
    """It is at a multiple of the period, later than now and than the last."""
    assert next_round(now, last, 900.0) == expected
    assert next_round(now, last, math.inf) == math.inf


def test_a_period_that_is_no_sum_of_powers_of_two() -> None:
    """The next multiple is later than this one, however it was rounded."""
    for number in range(1, 2000):
        moment = 1.1 * number
        assert moment < next_round(moment, -math.inf, 1.1) < moment + 2.3


class Hand:
    """A clock and an engine that a test moves."""

    def __init__(self) -> None:
        memory, partners = (
            StateTables(settings()),
            {name: PartnerBook(name, listed=True) for name in ("b", "c")},
        )
        given = {"settings": settings(), "memory": memory, "partners": partners}
        self.state: Any = type("State", (), given)()
        self.clock = self
        self.moment = 0.0
        self.told: list[tuple[float, type[Event]]] = []
        self.sleeps: list[float] = []
        self._listener: Any = None
        self._moved = asyncio.Condition()

    def on_event(self, tell: Any) -> None:
        """Takes who listens."""
        self._listener = tell

    def now(self) -> float:
        """Returns the time."""
        return self.moment

    async def sleep_until(self, moment: float) -> None:
        """Returns when the test has come so far."""
        self.sleeps.append(moment)
        async with self._moved:
            await self._moved.wait_for(lambda: self.moment >= moment)

    async def move(self, moment: float) -> None:
        """Brings the clock to a moment."""
        async with self._moved:
            self.moment = moment
            self._moved.notify_all()

    def stamp(self) -> tuple[int, None]:
        """As the engine's."""
        return 1, None

    def tell(self, event: Event) -> None:
        """Takes an event."""
        self.told.append((self.moment, type(event)))

    def up(self, partner: str) -> None:
        """Lets a partner come up."""
        self.state.partners[partner].reachable = True
        self._listener(PartnerUp(1, None, partner, 8), [])

    def configure(self, reoffer: float | None) -> None:
        """Changes the period."""
        given = self.state.settings = replace(self.state.settings, reoffer=reoffer)
        changed = PoliciesChanged(1, given.transfer, given.location, reoffer=reoffer)
        self._listener(changed, [])


async def test_rounds_follow_the_configuration() -> None:
    """None without a period, one at each multiple with one, and a new period counts at once."""
    hand = Hand()
    timer = asyncio.create_task(RebalanceTimer(hand).run())  # type: ignore[arg-type]  # what it needs of an engine
    await asyncio.sleep(0)
    assert hand.sleeps == []
    hand.configure(60.0)
    await until(lambda: hand.sleeps == [60.0])
    await hand.move(60.0)
    await until(lambda: hand.sleeps == [60.0, 120.0])
    assert hand.told == [(60.0, RoundDue)]
    hand.configure(15.0)
    await until(lambda: hand.sleeps[2:] == [75.0])
    await hand.move(100.0)
    await until(lambda: hand.sleeps[3:] == [105.0])
    hand.configure(None)
    await asyncio.sleep(0)
    await hand.move(1000.0)
    await asyncio.sleep(0.01)
    assert hand.told == [(60.0, RoundDue), (100.0, RoundDue)]
    timer.cancel()
    await asyncio.gather(timer, return_exceptions=True)


def test_a_round_that_was_under_way_goes_on() -> None:
    """As soon as all partners are there, and when the next one is due at the latest."""

    async def scene(*, comes_up: bool) -> None:
        hand = Hand()
        hand.state.settings = replace(hand.state.settings, reoffer=60.0)
        hand.state.memory.rounds.open = True
        timer = asyncio.create_task(RebalanceTimer(hand).run())  # type: ignore[arg-type]  # as above
        await until(lambda: hand.sleeps == [60.0])
        hand.up("b")
        await asyncio.sleep(0)
        assert hand.told == []
        if comes_up:
            hand.up("c")
            await until(lambda: hand.told == [(0.0, RoundDue)])
            await until(lambda: hand.sleeps == [60.0, 60.0])
        else:
            await hand.move(60.0)
            await until(lambda: hand.told == [(60.0, RoundDue)])
            await until(lambda: hand.sleeps == [60.0, 120.0])
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)

    for comes_up in (True, False):
        run(partial(scene, comes_up=comes_up))
