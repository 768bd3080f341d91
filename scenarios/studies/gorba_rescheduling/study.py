"""The study: which events are planned by which methods, and what comes of it."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Final

from rich.console import Console

from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.methods import SEARCHES
from broker.planner.search import Budget, Found, Search
from lrms_sim.util.version import __version__
from scenarios.studies.common.frame import as_json, plain_options, run_cases
from scenarios.studies.gorba_rescheduling.events import Event, Setting, first_planning, reschedule
from scenarios.studies.gorba_rescheduling.options import StudyOptions
from scenarios.studies.gorba_rescheduling.records import Record
from scenarios.studies.gorba_rescheduling.reference import (
    CLASSES,
    COLUMNS,
    HARD,
    RESOURCES,
    SWEEP_FINISHED,
    SWEEP_NEW,
    TASKS,
)

HEURISTICS: Final = "heuristics"
"""Method of the records with the fitness of every heuristic."""

GLEAM: Final = "gleam"
OWN: Final = "asma-shift"
"""Our own search: all strategies and heuristics, and a local searcher that moves tasks."""

MEMETIC: Final = ("asma-best", "asma")
"""The paper's memetic variants."""

SEARCHED: Final = (GLEAM, *MEMETIC, OWN)
"""All searches of the load sweep; the paper had its memetic variants in the hard classes only."""

LARGE: Final = 1000
"""With more tasks the population is small."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run to be done.

    Attributes:
        method: "heuristics" or a search.
    """

    part: str
    setting: Setting
    method: str
    seed: int

    def key(self, options: StudyOptions) -> str:
        """Returns what the run is kept under: everything that its result depends on."""
        setting = self.setting
        budget = options.evaluations if options.seconds is None else f"{options.seconds:g}s"
        return (
            f"{self.part} {setting.name} {setting.reduction:g} {setting.first_evaluations} "
            f"{setting.seed} {self.method} {self.seed} {budget}"
        )


@dataclass(frozen=True)
class Study:
    """What was measured.

    Attributes:
        options: that it was measured with, as plain values.
        records: one for each run, in order.
    """

    options: dict[str, Any]
    records: tuple[Record, ...]
    version: str = __version__

    def of(self, part: str, method: str, **wanted: object) -> list[Record]:
        """Returns the runs of a method, those whose attributes are as wanted."""
        return [
            each
            for each in self.records
            if (each.part, each.method) == (part, method)
            and all(getattr(each, name) == value for name, value in wanted.items())
        ]

    @property
    def sizes(self) -> list[int]:
        """The loads of the sweep, in order."""
        return sorted({each.tasks for each in self.records if each.part == "sweep"})

    def to_json(self) -> str:
        """Returns the study as a JSON document."""
        return as_json(self.version, self.options, runs=[asdict(each) for each in self.records])


def budget_of(options: StudyOptions) -> Budget:
    """Returns the budget of a run."""
    if options.seconds is not None:
        return Budget(options.seconds)
    return Budget(math.inf, options.evaluations)


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every run of the study, those of one event after each other."""
    if "settings" in options.parts:
        for benchmark in HARD:
            for tasks in TASKS:
                for shares in COLUMNS:
                    setting = _setting(options, benchmark, tasks, RESOURCES, shares)
                    yield from _of_event(options, "settings", setting, (GLEAM,))
    if "sweep" in options.parts:
        for tasks in options.sizes:
            for benchmark in CLASSES:
                shares = (SWEEP_FINISHED, SWEEP_NEW)
                setting = _setting(options, benchmark, tasks, max(1, tasks // 10), shares)
                yield from _of_event(options, "sweep", setting, SEARCHED)


def _setting(
    options: StudyOptions, benchmark: str, tasks: int, resources: int, shares: tuple[float, float]
) -> Setting:
    return Setting(
        benchmark, tasks, resources, *shares, options.reduction, options.first_evaluations
    )


def _of_event(
    options: StudyOptions, part: str, setting: Setting, methods: Sequence[str]
) -> Iterator[Case]:
    yield Case(part, setting, HEURISTICS, 0)
    for seed in range(1, options.runs + 1):
        for method in methods:
            yield Case(part, setting, method, seed)


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        OutputError: the file of runs cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    every = {case.key(options): case for case in cases(options)}
    known = run_cases(
        options.folder,
        every,
        lambda todo: ((case, asdict(run_case(case, options))) for case in todo),
        console,
        what="runs",
        describe=lambda case: f"{case.setting.name} {case.method}",
    )
    return Study(plain_options(options), tuple(Record(**known[key]) for key in every))


@lru_cache(maxsize=4)
def _first(setting: Setting) -> tuple[Problem, Plan]:
    return first_planning(setting)


@lru_cache(maxsize=1)
def _event(setting: Setting) -> Event:
    # Events of the same first planning follow each other.
    first = replace(setting, finished=0.0, new=0.0)
    return reschedule(setting, *_first(first))


def run_case(case: Case, options: StudyOptions) -> Record:
    """Returns what came of a run, which is done now."""
    event = _event(case.setting)
    searches = case.method != HEURISTICS
    search = Search(
        event.problem,
        budget=budget_of(options) if searches else Budget(0.0),
        settings=replace(
            SEARCHES[case.method if searches else GLEAM],
            population=60 if case.setting.tasks <= LARGE else 30,
        ),
        seed=case.seed,
        workers=options.workers,
        old=event.old,
    )
    began = time.process_time()
    found = search.run()
    return _record(case, found, time.process_time() - began, searches=searches)


def _record(case: Case, found: Found, taken: float, *, searches: bool) -> Record:
    best = found.heuristics[0]
    worth = found.worth if searches else best.worth
    assert worth is not None, "an event has something to plan"
    return Record(
        part=case.part,
        event=case.setting.name,
        benchmark=case.setting.benchmark,
        tasks=case.setting.tasks,
        finished=case.setting.finished,
        new=case.setting.new,
        method=case.method,
        seed=case.seed,
        fitness=worth.fitness,
        heuristic=best.worth.fitness,
        late=worth.late,
        over_budget=worth.over_budget,
        unplanned=worth.unplanned,
        evaluations=found.progress.evaluations if searches else len(found.heuristics),
        generations=found.progress.generation,
        seconds=found.progress.seconds,
        each={} if searches else {e.heuristic.name: e.worth.fitness for e in found.heuristics},
        processor_seconds=taken,
    )
