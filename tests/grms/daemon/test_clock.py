"""Wall, scaled and virtual time."""

import asyncio
import math
import time
from types import SimpleNamespace

import pytest

from grms.daemon import clock as module
from grms.daemon.clock import (
    SLEEP_MAX_S,
    BehindClock,
    ScaledClock,
    VirtualClock,
    WallClock,
    ahead_of,
    going_on_from,
)


def test_a_wall_clock_tells_seconds_since_1970() -> None:
    """It agrees with the system, and never goes back."""
    before, clock = time.time(), WallClock()
    assert before - 1.0 < clock.now() < time.time() + 1.0
    readings = [clock.now() for _ in range(1000)]
    assert readings == sorted(readings)


def test_a_scaled_clock_runs_faster() -> None:
    """A thousand seconds of it pass in one."""
    origin = time.time()
    clock = ScaledClock(1000.0, origin)
    before = time.monotonic()
    begin = clock.now()
    asyncio.run(clock.sleep_until(begin + 50.0))
    elapsed = time.monotonic() - before
    assert elapsed >= 0.05
    assert clock.now() - begin >= 50.0


def test_clocks_of_one_origin_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a process is held up while it sets its own."""
    real, held_up = 100.0, iter([0.5, 0.25, 0.0, 3.0, 1.0] * 2)

    def monotonic() -> float:
        return real

    def wall() -> float:
        nonlocal real
        shown = 1e9 + real
        real += next(held_up, 0.0)
        return shown

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic, time=wall))
    clock = ScaledClock(1000.0, 1e9)
    assert clock.now() == 1000.0 * real
    other = ScaledClock(1000.0, 1e9)
    assert clock.now() == other.now() == 1000.0 * real


def test_rests_are_bounded() -> None:
    """Past moments are now, far ones an hour, and never is never."""
    clock = ScaledClock(1.0, 0.0)
    assert clock.rest_s(0) == 0
    assert clock.rest_s(1e12) == SLEEP_MAX_S
    assert clock.rest_s(math.inf) is None
    fast = ScaledClock(100, time.time() - 5)
    before, moment = time.time(), fast.now() + 1000
    rest = fast.rest_s(moment)
    assert rest is not None
    assert 9.5 - (time.time() - before) < rest <= 10


def test_a_clock_that_is_behind_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on from where it was, at half the speed, until both show the same; then as ever."""
    real = 100.0
    clocks = SimpleNamespace(monotonic=lambda: real, time=lambda: 1e9 + real)
    monkeypatch.setattr(module, "time", clocks)
    for clock in (WallClock(), ScaledClock(10.0, 1e9)):
        begin = clock.now()
        found = BehindClock(clock, begin + 60.0 * clock.speed)
        for passed, shown in (
            (0.0, 60.0),
            (10.0, 65.0),
            (100.0, 110.0),
            (120.0, 120.0),
            (140.0, 140.0),
        ):
            real = 100.0 + passed
            assert (found.now() - begin) / clock.speed == shown
            assert found.ahead / clock.speed == shown - passed
            assert going_on_from(clock, clock.now() - 1.0) is clock
            assert ahead_of(clock) == 0.0
        real = 100.0


def test_who_sleeps_by_a_clock_that_is_behind_wakes() -> None:
    """After twice the real time, and not before."""
    clock = BehindClock(ScaledClock(1000.0, time.time()), 1e6)
    begin, before = clock.now(), time.monotonic()
    asyncio.run(clock.sleep_until(begin + 50.0))
    assert time.monotonic() - before >= 0.1
    assert clock.now() >= begin + 50.0


@pytest.mark.parametrize(("speed", "origin"), [(0, 0), (-1, 0), (math.nan, 0), (1, math.inf)])
def test_a_scaled_clock_needs_a_speed(speed: float, origin: float) -> None:
    """A speed or origin that makes no clock is refused with its value."""
    with pytest.raises(ValueError, match=f"is {speed if origin == 0 else origin}; it must be"):
        ScaledClock(speed, origin)


def test_a_virtual_clock_stands_still() -> None:
    """It moves when it is advanced, never back."""
    clock = VirtualClock()
    assert clock.now() == -math.inf
    clock.advance(5.0)
    clock.advance(5.0)
    assert clock.now() == 5.0
    for past in (4.0, math.nan):
        with pytest.raises(ValueError, match=f"cannot advance to {past}"):
            clock.advance(past)


def test_a_virtual_clock_wakes_sleepers_in_order() -> None:
    """Sleepers wake by moment, then in the order in which they lay down; the rest sleep on."""

    async def scene() -> list[str]:
        clock = VirtualClock(0.0)
        woken = []

        async def sleep(name: str, moment: float) -> None:
            await clock.sleep_until(moment)
            woken.append(name)

        async with asyncio.TaskGroup() as group:
            moments = {"late": 9.0, "first": 2.0, "second": 2.0, "now": 0.0}
            tasks = {name: group.create_task(sleep(name, at)) for name, at in moments.items()}
            await asyncio.sleep(0)
            clock.advance(5.0)
            await asyncio.wait([tasks["first"], tasks["second"], tasks["now"]])
            assert not tasks["late"].done()
            tasks["late"].cancel()
        clock.advance(10.0)
        return woken

    assert asyncio.run(scene()) == ["now", "first", "second"]
