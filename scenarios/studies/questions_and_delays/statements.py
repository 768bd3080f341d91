"""Measurements as lines over draws, and statements checked against them.

Comparisons are within a draw: the same days, with more partners asked or with longer delays. So
differences between days do not hide the effect.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import Margin, counted
from scenarios.studies.questions_and_delays.replays import ALL, HALF_YEAR, TEN_DAYS, Case
from scenarios.studies.questions_and_delays.study import (
    ASKED,
    CLOCKS,
    DELAYS,
    DISCIPLINES,
    LATE,
    SOME,
    USUAL_DELAY,
    Study,
)

ENOUGH: Final = 1.0
"""Enough partners: at most so many points of the mean gain are missing."""

TOO_FEW: Final = 3.0
"""Too few: at least so many are missing."""

DELAY_COSTS: Final = 1.5
"""Most points of the mean gain that delays up to a minute may cost."""

WORST_FALLS: Final = 3.0
"""Most additional points that the worst site may lose."""

LATE_COSTS: Final = 1.0
CLOCKS_COST: Final = 2.0

WORDS: Final = {"easy": "EASY", "fcfs": "FCFS"}


@dataclass(frozen=True, slots=True)
class Line:
    """What a way to ask came to, over its draws.

    Attributes:
        case: of its first draw.
        mean: of all sites, percent of AWRT alone, positive where shorter.
        worst: of all sites.
        moved: jobs that ran elsewhere, percent of all.
        offers: questions for every hundred jobs.
    """

    case: Case
    mean: Spread
    worst: Spread
    moved: Spread
    offers: Spread


class Figures:
    """The figures of a study by case."""

    def __init__(self, study: Study) -> None:
        self._found = dict(study.runs)

    def line(self, case: Case) -> Line | None:
        """Returns the line of a case, whichever its draw; `None` if it was not replayed."""
        found = [each for _, each in self._draws(case)]
        if not found:
            return None
        return Line(
            replace(case, draw=1),
            Spread.of(map(_mean, found)),
            Spread.of(map(_worst, found)),
            Spread.of(100.0 * each["moved"] / each["jobs"] for each in found),
            Spread.of(100.0 * each["offers"] / each["jobs"] for each in found),
        )

    def _draws(self, case: Case) -> list[tuple[int, dict[str, Any]]]:
        return [
            (draw, self._found[one])
            for draw in range(1, 1 + max((each.draw for each in self._found), default=0))
            if (one := replace(case, draw=draw)) in self._found
        ]

    def apart(
        self, better: Case, other: Case, value: Callable[[dict[str, Any]], float]
    ) -> list[float]:
        """Returns by how much a case is better than another in each draw that both have."""
        others = dict(self._draws(other))
        return [
            value(found) - value(others[draw])
            for draw, found in self._draws(better)
            if draw in others
        ]


def _mean(found: dict[str, Any]) -> float:
    gains: list[float] = found["gain"]
    return sum(gains) / len(gains)


def _worst(found: dict[str, Any]) -> float:
    return float(min(found["gain"]))


# --- lines -----------------------------------------------------------------------------------------


def families(window: str) -> Iterator[Case]:
    """Yields the four ways to exchange: EASY and FCFS, without rounds and with them; all are asked."""
    for discipline in DISCIPLINES:
        for rounds in (False, True):
            yield Case(window, discipline, rounds, ALL, draw=1)


def family_words(case: Case) -> str:
    """Returns what a way to exchange is called."""
    return WORDS[case.discipline] + (" + rounds" if case.rounds else "")


def question_lines(study: Study, window: str) -> list[list[Line]]:
    """Returns the lines by how many partners are asked, for each way to exchange."""
    figures = Figures(study)
    found = [
        [
            each
            for asked in ASKED[window]
            if (each := figures.line(replace(family, asked=asked))) is not None
        ]
        for family in families(window)
    ]
    return [lines for lines in found if lines]


def delay_lines(study: Study, window: str) -> list[list[Line]]:
    """Returns the lines by delay, for each discipline and way to ask; those of no delay have the same draws."""
    figures = Figures(_with_delays(study))
    found = []
    for some in _asking(window):
        lines = [
            each
            for delay in (0.0, *DELAYS[window])
            if (each := figures.line(replace(some, delay=delay))) is not None
        ]
        if len(lines) > 1:
            found.append(lines)
    return found


def _asking(window: str) -> Iterator[Case]:
    for discipline in DISCIPLINES:
        some = Case(window, discipline, rounds=False, asked=SOME, draw=1)
        yield from (some, replace(some, asked=ALL), replace(some, rounds=True))


def asking_words(case: Case) -> str:
    """Returns what a discipline with a way to ask is called."""
    return f"{family_words(case)}, {'all' if case.asked == ALL else case.asked} asked"


def clock_lines(study: Study, window: str) -> list[Line]:
    """Returns the lines of late answers and of clocks that are apart, after what both are compared with."""
    figures = Figures(_with_delays(study))
    found = []
    for discipline in DISCIPLINES:
        usual = _usual(window, discipline)
        cases = (usual, _with_late(usual), *(replace(usual, apart=far) for far in CLOCKS[window]))
        found += [each for case in cases if (each := figures.line(case)) is not None]
    return found


def lateness_words(case: Case) -> str:
    """Returns words for delays in a case in addition to the messages'."""
    if case.late:
        return f"{100 * case.late:g} % {case.extra / 60:g} min late"
    if case.apart:
        far = case.apart
        return f"clocks ±{far / 3600:g} h" if far >= 3600 else f"clocks ±{far / 60:g} min"
    return "neither"


def _usual(window: str, discipline: str) -> Case:
    return Case(window, discipline, rounds=False, asked=ALL, draw=1, delay=USUAL_DELAY)


def _with_late(case: Case) -> Case:
    return replace(case, late=LATE[0], extra=LATE[1])


def _with_delays(study: Study) -> Study:
    # Of replays without delay only those whose draw was replayed with delays.
    draws = {(case.window, case.draw) for case, _ in study.runs if not case.at_once}
    return replace(
        study, runs=tuple(run for run in study.runs if (run[0].window, run[0].draw) in draws)
    )


# --- statements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, held against the mean over draws and its interval.

    Attributes:
        window: a key of `replays.WINDOWS`.
        about: which statement, in words with its bound.
        missing: points, in each draw.
        bound: points.
        at_least: whether as many must be missing at least; else at most.
    """

    window: str
    about: str
    of: str
    missing: Sequence[float]
    bound: float
    at_least: bool = False

    @property
    def points(self) -> Spread:
        """Missing points, over draws."""
        return Spread.of(self.missing)

    @property
    def holds(self) -> bool | None:
        """Whether the interval of the mean is on the side of the bound that the statement says; None: on both."""
        margin = Margin.of(self.missing)
        return margin.at_least(self.bound) if self.at_least else margin.at_most(self.bound)


def statements(study: Study) -> list[Statement]:
    """Returns all statements of which the study has figures."""
    figures = Figures(study)
    found: list[Statement] = []
    for window in (TEN_DAYS, HALF_YEAR):
        found += _about_questions(figures, window)
        found += _about_delay(figures, window)
        found += _about_lateness(figures, window)
    return found


def _about_questions(figures: Figures, window: str) -> Iterator[Statement]:
    enough = f"{SOME} partners are enough: at most {ENOUGH:g} point less than with all"
    few = f"one is too few: at least {TOO_FEW:g} points less than with all"
    for asked, about, bound in ((SOME, enough, ENOUGH), (1, few, TOO_FEW)):
        for family in families(window):
            points = figures.apart(family, replace(family, asked=asked), _mean)
            if points:
                yield Statement(
                    window, about, family_words(family), points, bound, at_least=asked == 1
                )


def _about_delay(figures: Figures, window: str) -> Iterator[Statement]:
    longest = DELAYS[window][-1]
    mean = f"a delay of {longest:g} s costs at most {DELAY_COSTS:g} points"
    worst = f"the worst site loses at most {WORST_FALLS:g} points by a delay of {longest:g} s"
    for value, about, bound in ((_mean, mean, DELAY_COSTS), (_worst, worst, WORST_FALLS)):
        for some in _asking(window):
            points = figures.apart(some, replace(some, delay=longest), value)
            if points:
                yield Statement(window, about, asking_words(some), points, bound)


def _about_lateness(figures: Figures, window: str) -> Iterator[Statement]:
    far = CLOCKS[window][-1]
    for bound, late in ((LATE_COSTS, True), (CLOCKS_COST, False)):
        for discipline in DISCIPLINES:
            usual = _usual(window, discipline)
            case = _with_late(usual) if late else replace(usual, apart=far)
            points = figures.apart(usual, case, _mean)
            if points:
                what = lateness_words(case)
                if late:
                    what = f"answers ({what})"
                about = f"{what} cost at most {bound:g} point" + "s" * (bound != 1)
                yield Statement(window, about, asking_words(usual), points, bound)


def verdict(study: Study) -> str:
    """Returns the outcome in a few sentences."""
    every = statements(study)
    if not every:
        return "Nothing was measured that a statement is about."
    said = f"{counted([each.holds for each in every])} by the mean over draws."
    for holds, words in ((False, "These do not"), (None, "Open are")):
        where: dict[str, list[str]] = {}
        for each in every:
            if each.holds is holds:
                where.setdefault(each.about.partition(":")[0], []).append(each.of)
        listed = [f"{about} ({' and '.join(dict.fromkeys(of))})" for about, of in where.items()]
        if listed:
            said += f" {words}: {'; '.join(listed)}."
    return said
