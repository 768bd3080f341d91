import math

import pytest

from grms.simulation.clock import ManualClock


def test_calls_are_made_in_order_of_time_then_of_asking() -> None:
    """At one moment, first asked is first made; a call may ask for another at once."""
    clock = ManualClock()
    made: list[tuple[float, str]] = []

    def call(word: str) -> None:
        made.append((clock.now, word))
        if word == "b":
            clock.after(0.0, call, "c")

    clock.after(2.0, call, "d")
    clock.after(1.0, call, "a")
    clock.after(1.0, call, "b")
    clock.advance(1.5)
    assert made == [(1.0, "a"), (1.0, "b"), (1.0, "c")]
    assert clock.now == 1.5
    assert clock.step()
    assert made[-1] == (2.0, "d")
    assert not clock.step()
    assert clock.made == 4


def test_the_clock_does_not_go_back() -> None:
    """Neither by hand nor by a call in the past, or never."""
    clock = ManualClock()
    clock.advance(3.0)
    with pytest.raises(ValueError, match=r"cannot go back to 2\.0"):
        clock.advance(2.0)
    for delay in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="delay is"):
            clock.after(delay, clock.step)
