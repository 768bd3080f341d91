"""The broker's clock."""

import math
import time
from types import SimpleNamespace

import pytest

from broker.engine import clock as module
from broker.engine.clock import REST_MAX_S, Clock


def test_real_time_is_seconds_since_1970() -> None:
    """And it does not go back."""
    before, clock = time.time(), Clock()
    assert before - 1 < clock.now() < time.time() + 1
    assert clock.now() <= clock.now()


def test_scaled_time_begins_at_its_origin() -> None:
    """A hundred seconds for a real one."""
    origin = time.time() - 5
    clock = Clock(100, origin)
    assert 500 <= clock.now() < 100 * (time.time() - origin + 1)
    before, moment = time.time(), clock.now() + 1000
    rest = clock.rest_s(moment)
    assert rest is not None
    assert 9.5 - (time.time() - before) < rest <= 10


def test_rests_are_bounded() -> None:
    """Past moments are now, far ones an hour, and never is never."""
    clock = Clock()
    assert clock.rest_s(0) == 0
    assert clock.rest_s(1e12) == REST_MAX_S
    assert clock.rest_s(math.inf) is None


def test_a_clock_that_is_behind_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on from where it was, at half the speed, until both show the same; then as ever."""
    real = 100.0
    clocks = SimpleNamespace(monotonic=lambda: real, time=lambda: 1e9 + real)
    monkeypatch.setattr(module, "time", clocks)
    clock = Clock(10.0, 1e9)
    assert clock.go_on_from(clock.now() - 1.0) == 0.0
    assert clock.go_on_from(-math.inf) == 0.0
    assert clock.go_on_from(1600.0) == 600.0
    for passed, shown in (
        (0.0, 1600.0),
        (10.0, 1650.0),
        (100.0, 2100.0),
        (120.0, 2200.0),
        (140.0, 2400.0),
    ):
        real = 100.0 + passed
        assert clock.now() == shown


@pytest.mark.parametrize(("speed", "origin"), [(0, 0), (-1, 0), (math.nan, 0), (1, math.inf)])
def test_numbers_out_of_bounds_are_refused(speed: float, origin: float) -> None:
    """The error has the value."""
    with pytest.raises(ValueError, match="must be finite"):
        Clock(speed, origin)
