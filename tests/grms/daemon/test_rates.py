"""Rates of callers, and what is told only now and then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon import pacing
from grms.daemon.pacing import BURST_S, Rate, Seldom
from tests.grms.hand_clock import Clock


@given(
    per_s=st.floats(0.1, 100),
    pauses=st.lists(st.floats(0, 30), min_size=1, max_size=200),
)
def test_never_more_than_the_rate_and_a_burst(per_s: float, pauses: list[float]) -> None:
    """However calls are spread, so many pass as the rate allows, after a burst."""
    clock = Clock()
    rate = Rate(per_s, clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        passed += rate.wait_s("a") == 0
        assert passed <= max(1.0, per_s * BURST_S) + clock.now * per_s + 1e-6


def test_who_waits_as_told_comes_in() -> None:
    """The wait that a refusal names is enough, and callers do not share a rate."""
    clock = Clock()
    rate = Rate(0.5, clock)
    while (wait := rate.wait_s("a")) == 0:
        pass
    assert rate.wait_s("b") == 0
    clock.now += wait
    assert rate.wait_s("a") == 0
    assert rate.wait_s("a") > 0


def test_callers_are_forgotten(monkeypatch: object) -> None:
    """Rates of many callers do not take memory without end."""
    monkeypatch.setattr(pacing, "BUCKETS_MAX", 10)  # type: ignore[attr-defined]  # pytest's
    rate = Rate(1.0, Clock())
    for number in range(100):
        rate.wait_s(str(number))
    assert len(rate._buckets) == 10


def test_what_comes_again_and_again_is_told_now_and_then_with_its_count() -> None:
    """The first of a kind is told at once, others of it are counted, and the next one says how many."""
    clock = Clock()
    seldom = Seldom(0.1, clock)
    assert seldom.to_tell("a") == {}
    assert [seldom.to_tell("a") for _ in range(7)] == [None] * 7
    assert seldom.to_tell("b") == {}
    clock.now += 10.0
    assert seldom.to_tell("a") == {"left_out": 7}
    clock.now += 10.0
    assert seldom.to_tell("a") == {}


def test_what_was_left_out_long_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many kinds that never come again none keeps a new one from being counted, and few are kept."""
    monkeypatch.setattr(pacing, "BUCKETS_MAX", 10)
    clock = Clock()
    seldom = Seldom(0.1, clock)
    for number in range(100):
        assert seldom.to_tell(str(number)) == {}
        assert seldom.to_tell(str(number)) is None
    clock.now += 10.0
    assert len(seldom._left_out) == 10
    assert seldom.to_tell("99") == {"left_out": 1}
    assert seldom.to_tell("0") == {}
