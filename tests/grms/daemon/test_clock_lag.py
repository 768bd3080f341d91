"""Clocks that are behind a journal."""

import math

import pytest

from grms.daemon.clock import AHEAD_S, going_on, too_far_ahead


@pytest.mark.parametrize(
    ("shown", "begin", "found"),
    [
        (100.0, -math.inf, 100.0),
        (100.0, 130.0, 130.0),
        (120.0, 130.0, 140.0),
        (170.0, 130.0, 170.0),
    ],
)
def test_time_goes_on_at_half_its_speed_until_the_true_one_has_caught_up(
    shown: float, begin: float, found: float
) -> None:
    """And never back."""
    assert going_on(shown, begin, 100.0) == found


def test_a_day_ahead_takes_a_question_in_real_time() -> None:
    """A fast clock is as far behind by a longer time of its own."""
    latest, ahead = 1e9, 2 * AHEAD_S
    assert too_far_ahead(latest, ahead, 2.0, "the site's") == ""
    text = too_far_ahead(latest, ahead, 1.0, "the site's")
    assert (
        "of 1000000000.000 s, and the site's clock shows 999827200.000 s, 172800 s before it"
        in text
    )
    assert "start once with --behind" in text
