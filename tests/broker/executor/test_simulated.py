"""The site that pretends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.executor.base import Order, Reservation, ReservationRefused, ReservationState, Wish
from broker.executor.simulated import Chance, SimulatedSite
from grms.daemon.clock import ScaledClock
from grms.util.outcomes import Outcome
from tests.waiting import meanwhile

BOOKED, RUNNING = ReservationState.BOOKED, ReservationState.RUNNING


def wish(key: str, begin: float, end: float, units: int = 1) -> Wish:
    """Returns a wish for the resource."""
    return Wish(key, "alpha", units, begin, end)


def order(run_time: float, started: float | None = None) -> Order:
    """Returns a run."""
    return Order("launch", 1, run_time, run_time, "flow/t", started=started)


@asynccontextmanager
async def running(
    chance: Chance | None = None, capacity: int = 1
) -> AsyncIterator[tuple[SimulatedSite, ScaledClock]]:
    """Yields a site at work, and its clock."""
    clock = ScaledClock(1.0, 0.0)
    site = SimulatedSite(clock, lambda _name: capacity, chance)
    async with meanwhile(site.run()):
        yield site, clock


async def over(site: SimulatedSite, key: str) -> Reservation:
    """Returns a reservation once nothing more happens to it."""
    async for each in site.watch():
        if each and each.reservation_id == key and each.state not in {BOOKED, RUNNING}:
            return each
    raise AssertionError


async def test_capacity_is_kept_and_free_again_after_a_run() -> None:
    """Overlapping wishes fit as far as there are units; touching ones always do."""
    async with running(capacity=2) as (site, clock):
        now = clock.now()
        await site.book(wish("a", now, now + 100))
        await site.book(wish("b", now + 50, now + 150))
        with pytest.raises(ReservationRefused, match="not free") as refused:
            await site.book(wish("c", now + 60, now + 70))
        assert refused.value.taken
        await site.book(wish("d", now + 100, now + 110))
        assert (await site.book(wish("a", now, now + 100))).reservation_id == "a"
        await site.release("b")
        await site.book(wish("c", now + 60, now + 70))


async def test_a_run_takes_its_time_and_ends() -> None:
    """The moments are exact, whenever somebody looks."""
    async with running() as (site, clock):
        begin = clock.now()
        await site.book(wish("a", begin, begin + 10))
        started = await site.launch("a", order(0.1))
        assert started.start_time is not None
        ended = await over(site, "a")
        assert (ended.state, ended.outcome) == (ReservationState.ENDED, Outcome.NOT_RUN)
        assert ended.end_time == started.start_time + 0.1
        assert await site.launch("a", order(0.1)) == ended


async def test_a_run_that_does_not_fit_is_refused_and_an_idle_reservation_expires() -> None:
    """As sites do."""
    async with running() as (site, clock):
        now = clock.now()
        await site.book(wish("a", now, now + 0.2))
        with pytest.raises(ReservationRefused, match="left"):
            await site.launch("a", order(5.0))
        assert (await over(site, "a")).state is ReservationState.EXPIRED
        with pytest.raises(ReservationRefused, match="no reservation"):
            await site.launch("z", order(5.0))
        assert await site.release("z") is None


async def test_a_run_goes_on_over_a_restart() -> None:
    """What had begun before ends when it would have, also where that is past."""
    async with running() as (site, clock):
        begin = clock.now() - 50
        await site.restore("a", wish("a", begin, begin + 20))
        await site.launch("a", order(10, begin + 1))
        ended = await over(site, "a")
        assert ended.end_time == begin + 11


async def test_chance_depends_on_name_and_seed_alone() -> None:
    """The same names have the same luck in another process."""

    async def luck(seed: int) -> list[bool]:
        found = []
        async with running(Chance(seed, refusing=0.5), capacity=100) as (site, clock):
            for number in range(20):
                try:
                    await site.book(wish(f"k{number}", clock.now(), clock.now() + 9))
                    found.append(True)
                except ReservationRefused:
                    found.append(False)
        return found

    first = await luck(1)
    assert first == await luck(1) != await luck(2)
    assert 0 < sum(first) < 20


async def test_a_run_that_takes_longer_is_cut_off_where_nobody_gives_it_more_time() -> None:
    """At the end of its reservation; it counts as failed."""
    async with running(Chance(shortest=2.0, longest=2.0)) as (site, clock):
        now = clock.now()
        await site.book(wish("a", now, now + 0.15))
        await site.launch("a", order(0.1))
        ended = await over(site, "a")
        assert (ended.outcome, ended.end_time) == (Outcome.FAILED, now + 0.15)
        with pytest.raises(ReservationRefused, match="it is over"):
            await site.move("a", (now, now + 0.15), (now, now + 1))


async def test_a_reservation_is_moved_where_its_new_window_is_free() -> None:
    """The run goes on to its own end, and keeps its beginning; repeating changes nothing."""
    async with running(Chance(shortest=2.0, longest=2.0)) as (site, clock):
        now = clock.now()
        await site.book(wish("a", now, now + 0.15))
        await site.book(wish("b", now + 30, now + 60))
        launched = await site.launch("a", order(0.1))
        assert launched.start_time is not None
        old, new = (now, now + 0.15), (now, now + 30)
        with pytest.raises(ReservationRefused, match="not free") as refused:
            await site.move("a", old, (now, now + 31))
        assert refused.value.taken
        with pytest.raises(ReservationRefused, match="only the end can be moved"):
            await site.move("a", old, (now + 0.01, now + 30))
        for _ in range(2):
            await site.move("a", old, new)
        with pytest.raises(ReservationRefused, match="by now"):
            await site.move("a", old, (now, now + 20))
        await site.move("b", (now + 30, now + 60), (now + 40, now + 70))
        await site.book(wish("d", now + 30, now + 40))
        with pytest.raises(ReservationRefused, match="not free"):
            await site.book(wish("c", now + 10, now + 20))
        ended = await over(site, "a")
        assert ended.outcome is Outcome.NOT_RUN
        assert ended.end_time == pytest.approx(launched.start_time + 0.2)
        with pytest.raises(ReservationRefused, match="there is no reservation"):
            await site.move("nobody", old, new)
