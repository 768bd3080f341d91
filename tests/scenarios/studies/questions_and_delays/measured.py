"""A study whose figures are made up: plain numbers for every replay, none of them run."""

from collections.abc import Callable
from pathlib import Path

from scenarios.studies.questions_and_delays.options import StudyOptions
from scenarios.studies.questions_and_delays.replays import ALL, Case
from scenarios.studies.questions_and_delays.study import Study, cases

OPTIONS = StudyOptions(Path("nowhere"), draws=2, more_draws=3, half_year_draws=2)


def as_stated(case: Case) -> float:
    """Returns a mean gain of which all statements hold: days differ, and one partner is too few."""
    return 20.0 + 5.0 * case.draw - (4.0 if case.asked == 1 else 0.0) + 0.1 * (case.asked == ALL)


def small_study(mean: Callable[[Case], float] = as_stated, worst: float = 3.0) -> Study:
    """Returns a study of three sites.

    Args:
        mean: of all sites of a case.
        worst: by so much the worst site is below it; the best is as far above.
    """
    runs = []
    for case in cases(OPTIONS):
        middle = mean(case)
        gains = [middle - worst, middle, middle + worst]
        runs.append((case, {"gain": gains, "jobs": 200, "moved": 20, "offers": 50}))
    options = {"draws": 2, "more_draws": 3, "half_year_draws": 2}
    return Study(options, tuple(runs), "1.0")
