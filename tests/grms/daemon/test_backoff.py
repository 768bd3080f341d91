import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.pacing import Backoff, BackoffSettings, pause_after


@given(
    st.integers(0, 2**32),
    st.floats(0.001, 10),
    st.floats(1, 1000),
    st.floats(1.1, 10),
)
def test_pauses_grow_to_a_limit(seed: int, first_s: float, times: float, factor: float) -> None:
    """Each pause is between half and all of a length that grows and ends at the longest."""
    settings = BackoffSettings(first_s, first_s * times, factor)
    backoff = Backoff(settings, np.random.default_rng(seed))
    length_s = first_s
    for _ in range(40):
        assert length_s / 2 <= backoff.next_s() <= length_s <= settings.most_s
        length_s = min(settings.most_s, length_s * factor)
    backoff.reset()
    assert backoff.next_s() <= first_s


def test_the_same_generator_gives_the_same_pauses() -> None:
    """Chance comes from the generator alone, and two of them do not agree."""
    drawn = [
        [Backoff(BackoffSettings(), np.random.default_rng(seed)).next_s() for _ in range(3)]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("first_s", "most_s", "factor"),
    [(0, 1, 2), (-1, 1, 2), (2, 1, 2), (1, math.inf, 2), (math.nan, 1, 2), (1, 2, 1), (1, 2, 0.5)],
)
def test_bounds(first_s: float, most_s: float, factor: float) -> None:
    """Pauses that do not grow, or never end, are refused."""
    with pytest.raises(ValueError, match="must be"):
        BackoffSettings(first_s, most_s, factor)


def test_pauses_after_a_number_of_failures() -> None:
    """None before the first; then doubled up to the longest, however many there were."""
    assert [pause_after(failures, 1.0, 5.0) for failures in range(6)] == [0, 1, 2, 4, 5, 5]
    assert pause_after(10**9, 0.5, 60.0) == 60.0
    assert pause_after(3, 1.0, 50.0, 3.0) == 9.0
    assert pause_after(1, 7.0, 5.0) == 5.0


def test_without_chance_pauses_have_their_whole_length() -> None:
    """A client by itself has nobody to come back at the same moment with."""
    backoff = Backoff(BackoffSettings(0.1, 0.5))
    assert [backoff.next_s() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    backoff.reset()
    assert backoff.next_s() == 0.1
