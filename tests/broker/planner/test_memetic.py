from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.planner.memetic import (
    ACTIVE,
    LEVELS,
    PROBABILITY_MIN,
    LevelAdaptation,
    Memetic,
    Searcher,
    raised,
)


def used(adaptation: LevelAdaptation, gains: tuple[float, float, float]) -> bool:
    """Notes three matings at each level, with that gain for each schedule, and adapts."""
    for level, gain in enumerate(gains):
        for _ in range(3):
            adaptation.note(level, gain, 1)
    return adaptation.adapt()


def test_it_begins_with_the_three_lowest_levels() -> None:
    """Each with a third."""
    adaptation = LevelAdaptation()
    assert adaptation.levels == (0.0, 0.2, 0.4)
    assert adaptation.probability == [1 / 3] * 3


def test_levels_are_drawn_as_they_gain() -> None:
    """New probabilities are in proportion to the gain for each schedule built."""
    adaptation = LevelAdaptation()
    assert used(adaptation, (0.3, 0.4, 0.3))
    assert adaptation.probability == pytest.approx([0.3, 0.4, 0.3])
    assert adaptation.uses == [0, 0, 0]


def test_it_waits_until_levels_were_used() -> None:
    """Three uses of each, or twelve in all."""
    adaptation = LevelAdaptation()
    for _ in range(11):
        adaptation.note(0, 0.1, 1)
        assert not adaptation.adapt()
    adaptation.note(0, 0.1, 1)
    assert adaptation.adapt()


def test_a_strong_edge_moves_the_window() -> None:
    """The dropped level's share goes to the middle; what enters gets a fifth of the others."""
    adaptation = LevelAdaptation()
    used(adaptation, (0.1, 0.3, 0.6))
    assert adaptation.levels == (0.2, 0.4, 0.6000000000000001) or adaptation.levels == LEVELS[1:4]
    assert adaptation.probability == pytest.approx([0.4 * 0.8, 0.6 * 0.8, 0.2])
    used(adaptation, (0.7, 0.2, 0.1))
    assert adaptation.levels == LEVELS[:3]
    assert adaptation.probability == pytest.approx([0.2, 0.7 * 0.8, 0.3 * 0.8])


def test_the_window_stays_within_the_levels() -> None:
    """At the lowest and the highest level there is nowhere to go."""
    adaptation = LevelAdaptation()
    used(adaptation, (0.8, 0.1, 0.1))
    assert adaptation.lowest == 0
    for _ in range(10):
        used(adaptation, (0.1, 0.1, 0.8))
    assert adaptation.levels == LEVELS[-ACTIVE:]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1), st.integers(0, 50)), max_size=15),
        max_size=8,
    )
)
def test_probabilities_always_are_some(rounds: list[list[tuple[int, float, int]]]) -> None:
    """They sum to 1 and none is below a tenth, whatever was noted."""
    adaptation = LevelAdaptation()
    for notes in rounds:
        for level, gain, cost in notes:
            adaptation.note(level, gain, cost)
        adaptation.adapt()
        assert sum(adaptation.probability) == pytest.approx(1)
        assert min(adaptation.probability) >= PROBABILITY_MIN - 1e-12
        assert 0 <= adaptation.lowest <= len(LEVELS) - ACTIVE


def test_raising_takes_from_those_that_have() -> None:
    """Two that are too low are raised, the third one pays; and none falls below on the way."""
    assert raised([0.0, 0.0, 1.0]) == pytest.approx([0.1, 0.1, 0.8])
    assert raised([0.02, 0.108, 0.872]) == pytest.approx([0.1, 0.1, 0.8], abs=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"searchers": Searcher(0)}, "at least one searcher"),
        ({"trials": 0}, "0 trials"),
        ({"iterations": 0}, "0 iterations"),
    ],
)
def test_settings_have_bounds(settings: dict[str, Any], message: str) -> None:
    """The error has the value."""
    with pytest.raises(ValueError, match=message):
        Memetic(**settings)
