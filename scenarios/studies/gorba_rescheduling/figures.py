"""The numbers behind every figure and table, computed of the runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.studies.gorba_rescheduling.records import Record
from scenarios.studies.gorba_rescheduling.reference import COLUMNS, HARD, TABLE_4_1, TASKS
from scenarios.studies.gorba_rescheduling.spread import Spread
from scenarios.studies.gorba_rescheduling.study import GLEAM, HEURISTICS, Study

PERCENT = 1000.0
"""Fitness of one percent: 100,000 is the most."""


@dataclass(frozen=True, slots=True)
class SettingFigures:
    """One of the 32 settings of Figure 4.1.

    Attributes:
        tasks: of the first planning.
        finished: share of finished tasks.
        new: share of new tasks.
        basic: fitness of the best planning heuristic, percent.
        replanning: fitness of the best replanning heuristic, percent.
        gleam: fitness of GLEAM's plans, percent.
        violations: workflows that miss a limit in GLEAM's plans, on average.
    """

    benchmark: str
    tasks: int
    finished: float
    new: float
    basic: float
    replanning: float
    gleam: Spread
    violations: float

    @property
    def best_heuristic(self) -> float:
        """Fitness of the best of all heuristics, percent."""
        return max(self.basic, self.replanning)

    @property
    def is_improved(self) -> bool:
        """Whether the best heuristic is below the confidence interval of GLEAM."""
        return self.gleam.count > 1 and self.gleam.low > self.best_heuristic

    @property
    def is_worse(self) -> bool:
        """Whether the best heuristic is above the confidence interval of GLEAM, or as good in every run."""
        return self.gleam.count > 1 and self.gleam.high <= self.best_heuristic


def settings_of(study: Study) -> list[SettingFigures]:
    """Returns the figures of every setting that was run, in the paper's order."""
    found = []
    for benchmark in HARD:
        for tasks in TASKS:
            for finished, new in COLUMNS:
                wanted = {"benchmark": benchmark, "tasks": tasks, "finished": finished, "new": new}
                heuristics = study.of("settings", HEURISTICS, **wanted)
                runs = study.of("settings", GLEAM, **wanted)
                if not (heuristics and runs):
                    continue
                basic, replanning = _best_of_each_kind(heuristics[0].each)
                violations = [each.late + each.over_budget for each in runs]
                found.append(
                    SettingFigures(
                        benchmark,
                        tasks,
                        finished,
                        new,
                        basic / PERCENT,
                        replanning / PERCENT,
                        Spread.of([each.fitness / PERCENT for each in runs]),
                        sum(violations) / len(violations),
                    )
                )
    return found


def _best_of_each_kind(each: Mapping[str, float]) -> tuple[float, float]:
    basic = [value for name, value in each.items() if not name.startswith("replanning: ")]
    replanning = [value for name, value in each.items() if name.startswith("replanning: ")]
    return max(basic, default=0.0), max(replanning, default=0.0)


def table_4_1(study: Study) -> dict[str, tuple[float, ...]]:
    """Returns Table 4.1 as measured: by heuristic, columns as in `reference.TABLE_4_1`.

    Empty if the settings were not run.
    """
    columns: list[dict[str, float]] = []
    for finished, new in COLUMNS:
        runs = study.of("settings", HEURISTICS, finished=finished, new=new)
        if not runs:
            return {}
        columns.append(
            {name: sum(_share(run, name) for run in runs) / len(runs) for name in TABLE_4_1}
        )
    return {
        name: (
            *(column[name] for column in columns),
            sum(column[name] for column in columns) / len(columns),
        )
        for name in TABLE_4_1
    }


def heuristic_shares(study: Study) -> list[dict[str, float]]:
    """Returns, of each event of Figure 4.1 that was run, the fitness of each heuristic relative to the best one."""
    return [
        {name: _share(run, name) for name in TABLE_4_1} for run in study.of("settings", HEURISTICS)
    ]


def _share(run: Record, name: str) -> float:
    """Returns the fitness of a heuristic relative to the best one of its setting."""
    best = max(run.each.values(), default=0.0)
    return run.each.get(name, 0.0) / best if best > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """One method at one load of the sweep.

    Attributes:
        tasks: of the first planning.
        success: share of runs that violate no limit.
        factor: fitness over that of the best heuristic.
        fitness: percent.
        rate: schedules built in a second of processor time; no number where that was not measured.
        violations: workflows that miss a limit, on average.
    """

    benchmark: str
    tasks: int
    method: str
    success: float
    factor: Spread
    fitness: Spread
    evaluations: float
    rate: float
    violations: float


def load_of(study: Study, benchmark: str, tasks: int, method: str) -> LoadFigures | None:
    """Returns the figures of one method at one load; `None` if it was not run."""
    runs = study.of("sweep", method, benchmark=benchmark, tasks=tasks)
    if not runs:
        return None
    return LoadFigures(
        benchmark,
        tasks,
        method,
        _mean([float(each.keeps_all_limits) for each in runs]),
        Spread.of([each.factor for each in runs]),
        Spread.of([each.fitness / PERCENT for each in runs]),
        _mean([float(each.evaluations) for each in runs]),
        _mean([each.rate for each in runs]),
        _mean([float(each.late + each.over_budget) for each in runs]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def largest_solved(study: Study, benchmark: str, method: str) -> int:
    """Returns the largest load up to which a method violated no limit in any run; 0 for none."""
    largest = 0
    for tasks in study.sizes:
        found = load_of(study, benchmark, tasks, method)
        if found is None or found.success < 1:
            break
        largest = tasks
    return largest
