"""The study: which replays are made, what is kept of them, and all of it together."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from rich.console import Console

from lrms_sim.util.executors import ExecutorError, Workers
from scenarios.studies.common.frame import CaseStudy, run_cases
from scenarios.studies.questions_and_delays.options import StudyOptions
from scenarios.studies.questions_and_delays.replays import (
    ALL,
    BLOCKS,
    FIRST_BLOCKS,
    HALF_YEAR,
    LOGS,
    PERIOD,
    POLICY,
    TEN_DAYS,
    Case,
    Replays,
    read_logs,
)
from scenarios.util.errors import ScenarioError

ASKED: Final = {TEN_DAYS: (1, 2, 3, 4, 6, ALL), HALF_YEAR: (1, 2, 3, 4, ALL)}
SOME: Final = 4
"""Partners asked if not all are: the study's question."""

DELAYS: Final = {TEN_DAYS: (5.0, 20.0, 60.0), HALF_YEAR: (20.0, 60.0)}
CLOCKS: Final = {TEN_DAYS: (60.0, 1800.0, 7200.0), HALF_YEAR: (7200.0,)}
USUAL_DELAY: Final = 5.0
"""Delay of messages if answers are late or clocks differ, seconds."""

LATE: Final = (0.1, 300.0)
"""Share of late answers, and by how much, seconds."""

DISCIPLINES: Final = ("easy", "fcfs")
CASES_PER_WORKER: Final = 4
"""Cases handed out at a time, and saved when they have ended."""


Study = CaseStudy[Case]


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every replay of the study once; those that take long come last."""
    windows = {TEN_DAYS: options.draws, HALF_YEAR: options.half_year_draws}
    for window, draws in windows.items():
        if draws:
            yield from _questions(window, max(draws, options.more_draws))
    for window, draws in windows.items():
        for draw in range(1, draws + 1):
            yield from _late(window, draw)


def _questions(window: str, draws: int) -> Iterator[Case]:
    for draw in range(1, draws + 1):
        for discipline in DISCIPLINES:
            for rounds in (False, True):
                for asked in ASKED[window]:
                    yield Case(window, discipline, rounds, asked, draw)


def _late(window: str, draw: int) -> Iterator[Case]:
    for discipline in DISCIPLINES:
        some = Case(window, discipline, rounds=False, asked=SOME, draw=draw)
        every, again = replace(some, asked=ALL), replace(some, rounds=True)
        for delay in DELAYS[window]:
            for one in (some, every, again):
                yield replace(one, delay=delay)
        usual = replace(every, delay=USUAL_DELAY)
        if USUAL_DELAY not in DELAYS[window]:
            yield usual
        yield replace(usual, late=LATE[0], extra=LATE[1])
        for apart in CLOCKS[window]:
            yield replace(usual, apart=apart)


class WorkersError(ScenarioError):
    """Workers of a study that cannot be reached, or that died."""


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        TraceMissingError: a log is not on this machine.
        OutputError: the file of replays cannot be read or written.
        WorkersError: workers cannot be reached, or died.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    replays = Replays(read_logs())
    every = {case.key: case for case in cases(options)}

    def evaluate(todo: Iterable[Case]) -> Iterator[tuple[Case, Any]]:
        return _replayed(list(todo), replays, options.workers)

    try:
        known = run_cases(options.folder, every, evaluate, console, what="replays")
    except ExecutorError as error:
        raise WorkersError(str(error)) from error
    plain: dict[str, Any] = {
        name: getattr(options, name) for name in ("draws", "more_draws", "half_year_draws")
    }
    plain |= {"logs": list(LOGS), "policy": POLICY, "period": PERIOD}
    plain |= {"blocks": BLOCKS, "first_blocks": list(FIRST_BLOCKS)}
    return Study(plain, tuple((case, known[key]) for key, case in every.items()))


def _replayed(
    todo: list[Case], replays: Replays, workers: Workers
) -> Iterator[tuple[Case, dict[str, Any]]]:
    if not todo:
        return
    size = CASES_PER_WORKER * workers.number
    with workers.started() as executor:
        for begin in range(0, len(todo), size):
            some = todo[begin : begin + size]
            yield from zip(some, executor.evaluate(replays, some), strict=True)
