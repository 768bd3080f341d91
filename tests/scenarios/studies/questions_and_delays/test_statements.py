"""Statements hold or fail by the figures, each by its own."""

from collections.abc import Callable

import pytest

from scenarios.studies.questions_and_delays.replays import ALL, HALF_YEAR, TEN_DAYS, Case
from scenarios.studies.questions_and_delays.statements import (
    Figures,
    clock_lines,
    delay_lines,
    lateness_words,
    question_lines,
    statements,
    verdict,
)
from scenarios.studies.questions_and_delays.study import ASKED, DELAYS, SOME, Study
from tests.scenarios.studies.questions_and_delays.measured import as_stated, small_study


def failing(mean: Callable[[Case], float], worst: float = 3.0) -> set[str]:
    """Returns the first words of the statements that do not hold."""
    return {each.about for each in statements(small_study(mean, worst)) if each.holds is False}


def test_all_hold_where_nothing_is_missing() -> None:
    """Of both windows, each discipline and each way to ask."""
    every = statements(small_study())
    assert all(each.holds for each in every)
    # Two on questions for each of 4 exchanges, two on delay for each of 6, two on lateness for each of 2.
    assert len(every) == 2 * (8 + 12 + 4)
    assert verdict(small_study()) == (
        "48 of 48 statements hold, 0 do not, 0 are open by the mean over draws."
    )


@pytest.mark.parametrize(
    ("costs", "about"),
    [
        (lambda case: 1.2 * (case.asked == SOME and case.at_once), "4 partners are enough"),
        (lambda case: -2.0 * (case.asked == 1), "one is too few"),
        (lambda case: 1.6 * (case.delay == 60), "a delay of 60 s costs at most 1.5"),
        (lambda case: 1.2 * (case.late > 0), "answers (10 % 5 min late) cost"),
        (lambda case: 2.2 * (case.apart == 7200), "clocks ±2 h cost"),
    ],
)
def test_each_fails_by_its_own_figure(costs: Callable[[Case], float], about: str) -> None:
    """A little more than the bound is too much, whatever the days are like."""
    found = failing(lambda case: as_stated(case) - costs(case))
    assert len({each.partition(":")[0] for each in found}) == 1
    assert all(each.startswith(about) for each in found)
    almost = failing(lambda case: as_stated(case) - 0.5 * costs(case))
    assert almost == set()


def test_draws_that_disagree_leave_a_statement_open() -> None:
    """A delay that costs 4 points in one draw and brings 4 in the other is not said to cost nothing."""
    study = small_study(
        lambda case: as_stated(case) + 4.0 * (case.delay == 60) * (1 if case.draw == 1 else -1)
    )
    found = [each for each in statements(study) if each.about.startswith("a delay of")]
    assert {each.holds for each in found if each.window == TEN_DAYS} == {None}
    assert "Open are: a delay of 60 s" in verdict(study)


def test_the_worst_site_has_a_statement_of_its_own() -> None:
    """Which fails where it falls and the others gain as much."""
    runs = []
    for case, found in small_study().runs:
        low, middle, high = found["gain"]
        falls = 3.5 * (case.delay == 60)
        runs.append((case, found | {"gain": [low - falls, middle, high + falls]}))
    study = Study(small_study().options, tuple(runs))
    failed = [each for each in statements(study) if each.holds is False]
    assert {each.about.partition(" loses")[0] for each in failed} == {"the worst site"}
    assert len(failed) == 12
    assert "36 of 48" in verdict(study)
    assert (
        "the worst site loses at most 3 points by a delay of 60 s (EASY, 4 asked and "
        in verdict(study)
    )


def test_points_are_missing_within_a_draw() -> None:
    """Days that differ by 5 points hide nothing."""
    figures = Figures(small_study(lambda case: as_stated(case) - 0.01 * case.delay))
    some = Case(TEN_DAYS, "easy", rounds=False, asked=SOME, draw=1)
    late = Case(TEN_DAYS, "easy", rounds=False, asked=SOME, draw=1, delay=60.0)

    def mean(found: dict[str, list[float]]) -> float:
        return sum(found["gain"]) / 3

    assert figures.apart(some, late, mean) == pytest.approx([0.6, 0.6])
    assert figures.apart(some, Case(TEN_DAYS, "lifo", rounds=False, asked=1, draw=1), mean) == []


def test_lines_have_the_draws_that_they_can_have() -> None:
    """By questions all, by delay those that were replayed with delays, also where there is none."""
    study = small_study()
    asked = question_lines(study, TEN_DAYS)
    assert [len(lines) for lines in asked] == [len(ASKED[TEN_DAYS])] * 4
    assert {line.mean.count for lines in asked for line in lines} == {3}
    assert asked[0][0].mean.median == pytest.approx(26.0)
    assert asked[0][0].worst.low == pytest.approx(18.0)
    assert (asked[0][0].moved.median, asked[0][0].offers.median) == (10.0, 25.0)
    delays = delay_lines(study, HALF_YEAR)
    assert [len(lines) for lines in delays] == [1 + len(DELAYS[HALF_YEAR])] * 6
    assert {line.mean.count for lines in delays for line in lines} == {2}
    words = [lateness_words(line.case) for line in clock_lines(study, TEN_DAYS)]
    assert words[:3] == ["neither", "10 % 5 min late", "clocks ±1 min"]
    assert words[-1] == "clocks ±2 h"
    assert all(line.case.asked == ALL for line in clock_lines(study, TEN_DAYS))


def test_nothing_measured_is_said() -> None:
    """No statement, and no line."""
    study = Study(small_study().options, ())
    assert statements(study) == []
    assert question_lines(study, TEN_DAYS) == delay_lines(study, TEN_DAYS) == []
    assert verdict(study) == "Nothing was measured that a statement is about."
