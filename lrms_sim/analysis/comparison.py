"""Queue disciplines compared in pairs: the same jobs, with the same random shifts of arrivals, under each.

One replay of one log says little of the difference of two disciplines: arrivals that are moved by
some seconds can change a mean wait by percents (Tsafrir, Feitelson 2006). So each log is replayed
with its arrivals shifted at random, many times and under every discipline ("input shaking":
Tsafrir, Ouaknine, Feitelson, "Reducing Performance Evaluation Sensitivity and Variability by Input
Shaking", MASCOTS 2007). With one shift all disciplines have the same jobs, so figures are compared
shift by shift, and the mean of these differences has an interval after Student.

The intervals are of this log shaken so, each by itself. They say nothing of other logs.
"""

import hashlib
import inspect
import json
import math
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from lrms_sim.analysis import metrics
from lrms_sim.analysis.counted import Counted, counted_jobs
from lrms_sim.analysis.electricity import machine_consumption, span_of
from lrms_sim.analysis.metrics import BOUNDED_SLOWDOWN_THRESHOLD_S, check_threshold, user_fairness
from lrms_sim.analysis.samples import (
    REPEATS_MAX,
    MeanInterval,
    mean_interval,
    shift_generator,
    shifted_arrivals,
)
from lrms_sim.electricity.power import Consumption, Supply, consumption
from lrms_sim.machine.machine import check_machine, simulate
from lrms_sim.scheduling.disciplines import Discipline, as_discipline, discipline_by_name
from lrms_sim.scheduling.user_defined import Decides, MachineView, UserDefinedDiscipline
from lrms_sim.util.executors import Workers
from lrms_sim.util.messages import unknown
from lrms_sim.util.run_log import RunLog
from lrms_sim.workload.frames import pandas_frame, polars_frame
from lrms_sim.workload.jobs import BoolArray, JobTable
from lrms_sim.workload.schedule import Schedule

SHIFTS: Final = 10
"""Random shifts by default."""

SECONDS: Final = 60.0
"""Largest shift of an arrival by default."""

CASES_PER_WORKER: Final = 4
"""Replays that are handed out at a time, and kept when they have ended."""

VERDICTS: Final = ("better", "worse", "equal", "open")

AnyDiscipline = str | Discipline | Decides | Callable[[MachineView], object]
"""A discipline by its name, compiled, or written in Python."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that disciplines are compared by.

    Attributes:
        words: what it is called in tables and figures.
        unit: "s" for seconds, empty for a number.
        digits: of its values in tables.
        measure: of a schedule, with the jobs that count and τ of bounded slowdowns, seconds; `None` of
            electricity, which needs more.
        greater_is_better: whether more is better.
    """

    words: str
    unit: str
    digits: int
    measure: Callable[[Schedule, Counted, float], float] | None
    greater_is_better: bool = False

    @property
    def label(self) -> str:
        """Its words with the unit."""
        return f"{self.words}, {self.unit}" if self.unit else self.words


def _of_jobs(measure: Callable[..., float]) -> Callable[[Schedule, Counted, float], float]:
    return lambda schedule, counted, _: measure(schedule, where=counted.of(schedule.jobs))


def _bounded_slowdown(schedule: Schedule, counted: Counted, tau: float) -> float:
    where = counted.of(schedule.jobs)
    return metrics.mean_bounded_slowdown(schedule, where=where, threshold=tau)


def _fairness(schedule: Schedule, counted: Counted, tau: float) -> float:
    return user_fairness(counted.part(schedule), threshold=tau).jain


METRICS: Final[Mapping[str, Metric]] = {
    "awrt": Metric("AWRT", "s", 1, _of_jobs(metrics.awrt)),
    "mean-wait-time": Metric("mean wait time", "s", 1, _of_jobs(metrics.mean_wait_time)),
    "median-wait-time": Metric("median wait time", "s", 1, _of_jobs(metrics.median_wait_time)),
    "mean-response-time": Metric(
        "mean response time", "s", 1, _of_jobs(metrics.mean_response_time)
    ),
    "mean-slowdown": Metric("mean slowdown", "", 3, _of_jobs(metrics.mean_slowdown)),
    "mean-bounded-slowdown": Metric("mean bounded slowdown", "", 3, _bounded_slowdown),
    "utilization": Metric(
        "utilization", "", 4, lambda schedule, counted, _: counted.utilization(schedule), True
    ),
    "makespan": Metric("makespan", "s", 1, lambda schedule, *_: metrics.makespan(schedule)),
    "user-fairness": Metric("Jain's index of users", "", 4, _fairness, True),
}
"""The figures by name, as `lrms_sim.analysis.metrics` and `lrms_sim.analysis.metrics` define them.

The makespan is of all jobs, whatever is cut off.
"""

ELECTRICITY_METRICS: Final[Mapping[str, Metric]] = {
    "energy": Metric("energy", "kWh", 1, None),
    "electricity-cost": Metric("electricity cost", "", 2, None),
    "carbon": Metric("carbon dioxide", "kg", 2, None),
}
"""Of the whole machine, idle or not, from the first submission to the last end; or for as long as jobs count.

The cost is in the currency of the price.
"""


def metric_named(name: str) -> Metric:
    """Returns a metric by its name."""
    return METRICS[name] if name in METRICS else ELECTRICITY_METRICS[name]


ROUNDING: Final = 1e-12
"""Figures are the same if they differ by no more than this share.

Sums of the same terms in another order differ in their last digits: a bill that two disciplines share would
be won by one of them.
"""

DEFAULT_METRICS: Final = ("awrt", "mean-wait-time", "mean-bounded-slowdown", "utilization")


@dataclass(frozen=True, slots=True)
class Replay:
    """What one replay came to.

    Attributes:
        shift: number of the random shift, from 1.
        figures: all `METRICS`.
        notes: of a discipline written in Python, as JSON has them; else `None`.
    """

    log: str
    discipline: str
    shift: int
    figures: Mapping[str, float]
    notes: Any = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A discipline held against the baseline by one metric, over the shifts of one log.

    Attributes:
        metric: its name in `METRICS`.
        baseline: the baseline's mean.
        mean: the discipline's.
        difference: mean of the paired differences, discipline minus baseline.
        low: lower end of its 95 % interval; nan with one shift, or if a figure has no meaning.
        high: upper end; same.
        wins: shifts with which the discipline is better.
        ties: shifts with which both are the same, up to rounding.
        losses: shifts with which it is worse.
    """

    log: str
    discipline: str
    metric: str
    unit: str
    baseline: float
    mean: float
    difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int

    @property
    def change(self) -> MeanInterval:
        """The difference and its interval as shares of the baseline's mean; nan if that is 0."""
        whole = abs(self.baseline)
        parts = (self.difference, self.low, self.high)
        return MeanInterval(*(part / whole if whole > 0 else math.nan for part in parts))

    @property
    def verdict(self) -> str:
        """`better` or `worse` if the interval excludes 0; `equal` without any difference; else `open`."""
        if self.low == self.high == 0.0:
            return "equal"
        greater = metric_named(self.metric).greater_is_better
        if self.high < 0.0:
            return "worse" if greater else "better"
        if self.low > 0.0:
            return "better" if greater else "worse"
        return "open"


@dataclass(frozen=True)
class Comparison:
    """Disciplines compared on some logs.

    Attributes:
        baseline: the discipline that all others are held against.
        disciplines: all names, in order.
        metrics: names in `METRICS`, in order.
        shifts: how many random shifts each log has.
        seconds: the largest shift of an arrival.
        warm_up_days: jobs of so many days at the beginning of a log do not count.
        cool_down_days: nor do those of so many at the end.
        sizes: jobs, jobs that count, and processors of each log.
        replays: all of them, by log, shift and discipline.
        tau: shorter run times count as this in bounded slowdowns, seconds.
    """

    baseline: str
    disciplines: tuple[str, ...]
    metrics: tuple[str, ...]
    shifts: int
    seconds: float
    seed: int
    warm_up_days: float
    cool_down_days: float
    sizes: Mapping[str, tuple[int, int, int]]
    replays: tuple[Replay, ...]
    tau: float = BOUNDED_SLOWDOWN_THRESHOLD_S

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every discipline but the baseline against it, by log, metric and discipline."""
        values: dict[tuple[str, str], list[Mapping[str, float]]] = {}
        for replay in self.replays:
            values.setdefault((replay.log, replay.discipline), []).append(replay.figures)
        return tuple(
            _difference(
                log,
                name,
                metric,
                [figures[metric] for figures in values[log, self.baseline]],
                [figures[metric] for figures in values[log, name]],
            )
            for log in self.sizes
            for metric in self.metrics
            for name in self.disciplines
            if name != self.baseline
        )

    def columns(self) -> dict[str, list[Any]]:
        """Returns the differences as columns: those of `Difference`, the change and the verdict."""
        names = [each.name for each in fields(Difference)]
        found: dict[str, list[Any]] = {
            name: [getattr(each, name) for each in self.differences] for name in names
        }
        for place, name in enumerate(("change", "change_low", "change_high")):
            found[name] = [each.change[place] for each in self.differences]
        found["verdict"] = [each.verdict for each in self.differences]
        return found

    def replay_columns(self) -> dict[str, list[Any]]:
        """Returns the replays as columns: log, discipline, shift, and the metrics compared."""
        found: dict[str, list[Any]] = {
            name: [getattr(replay, name) for replay in self.replays]
            for name in ("log", "discipline", "shift")
        }
        for name in self.metrics:
            found[name] = [replay.figures[name] for replay in self.replays]
        return found

    def to_pandas(self) -> Any:
        """Returns the differences as a `pandas.DataFrame`; needs pandas."""
        return pandas_frame(self.columns())

    def to_polars(self) -> Any:
        """Returns the differences as a `polars.DataFrame`; needs polars."""
        return polars_frame(self.columns())


def compare(
    logs: Mapping[str, tuple[JobTable, int]],
    disciplines: Sequence[AnyDiscipline] | Mapping[str, AnyDiscipline],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    shifts: int = SHIFTS,
    seconds: float = SECONDS,
    seed: int = 0,
    warm_up_days: float = 0.0,
    cool_down_days: float = 0.0,
    tau: float = BOUNDED_SLOWDOWN_THRESHOLD_S,
    supply: Supply | None = None,
    runs: Path | None = None,
    workers: Workers | None = None,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Replays every log with every shift under every discipline.

    Shift number i of a seed has the same arrivals under every discipline, and those of repetition i
    of `lrms_sim.analysis.samples.repetitions`. The arrivals as recorded are not among them.

    Args:
        logs: jobs and processors of each machine, by the log's name.
        disciplines: at least two; names as `discipline_by_name` takes them, or disciplines by any
            name, or disciplines with names of their own.
        baseline: name of the one that others are held against; default the first.
        metrics: names in `METRICS`, with a supply in `ELECTRICITY_METRICS` too; `_` will do for `-`.
        shifts: 1 to `REPEATS_MAX`; one has no interval.
        seconds: largest shift of an arrival either way, whole seconds.
        seed: of the shifts.
        warm_up_days: jobs submitted in the first days of a log do not count.
        cool_down_days: nor do those of the last days.
        tau: shorter run times count as this in bounded slowdowns, also in those of which
            `user-fairness` is made, seconds.
        supply: electricity of every machine, which the metrics of electricity need.
        runs: a file of replays that are done, which are not repeated; new ones are added as they
            end. Disciplines written in Python are recognized by their module's file and the state
            of the object; those that cannot be pickled are replayed each time.
        workers: who replays; default threads, one for each processor. Disciplines written in
            Python hold the interpreter, so only processes run several of these at once.
        progress: called with the number of replays done.

    Raises:
        ValueError: one of these cannot be used, a log has no job that counts, or the file cannot be
            read or written; the text says which and why.
        TypeError: a discipline is none that a machine can run.
        ExecutorError: workers cannot be reached, or died.
    """
    named = _named(disciplines)
    first = next(iter(named)) if baseline is None else baseline
    if first not in named:
        raise ValueError(f"baseline: {unknown('discipline compared here', first, named)}")
    chosen = _metrics(metrics, supply)
    if not 1 <= shifts <= REPEATS_MAX:
        raise ValueError(f"{shifts} shifts; from 1 to {REPEATS_MAX} are possible")
    check_threshold(tau)
    if not logs:
        raise ValueError("no log; at least one is needed")
    counted = {}
    for name, (jobs, processors) in logs.items():
        counted[name] = counted_jobs(name, jobs, warm_up_days, cool_down_days)
        check_machine(jobs, processors, name, overruns=True)
    task = _Task(dict(logs), counted, named, seconds, seed, supply, tau=tau)
    cases = [
        _Case(log, name, shift) for log in logs for shift in range(1, shifts + 1) for name in named
    ]
    done = _run(task, cases, runs, workers or Workers(), progress)
    if supply is not None:
        done = _idle_until_the_last(task, supply, cases, done)
    return Comparison(
        baseline=first,
        disciplines=tuple(named),
        metrics=chosen,
        shifts=shifts,
        seconds=seconds,
        seed=seed,
        warm_up_days=warm_up_days,
        cool_down_days=cool_down_days,
        sizes={
            name: (len(jobs), _number(counted[name].of(jobs), len(jobs)), processors)
            for name, (jobs, processors) in logs.items()
        },
        replays=tuple(
            Replay(case.log, case.discipline, case.shift, found["figures"], found["notes"])
            for case, found in zip(cases, done, strict=True)
        ),
        tau=tau,
    )


@dataclass(frozen=True, slots=True)
class _Case:
    log: str
    discipline: str
    shift: int


@dataclass(frozen=True)
class _Task:
    """Replays one case; can be sent to another process."""

    logs: dict[str, tuple[JobTable, int]]
    counted: dict[str, Counted]
    disciplines: dict[str, Discipline]
    seconds: float
    seed: int
    supply: Supply | None = None
    prints: dict[str, str | None] = field(default_factory=dict)
    tau: float = BOUNDED_SLOWDOWN_THRESHOLD_S

    def __call__(self, case: _Case, _bound: float) -> dict[str, Any]:
        recorded, processors = self.logs[case.log]
        jobs = shifted_arrivals(recorded, self.seconds, shift_generator(self.seed, case.shift - 1))
        schedule = simulate(jobs, processors, self.disciplines[case.discipline], name=case.log)
        counted = self.counted[case.log]
        figures = {
            name: metric.measure(schedule, counted, self.tau)
            for name, metric in METRICS.items()
            if metric.measure is not None
        }
        found: dict[str, Any] = {
            "figures": figures,
            "notes": _plain(case.discipline, schedule.notes),
        }
        if self.supply is not None:
            figures |= _used(schedule, counted, self.supply)
            if counted == Counted():
                found["end"] = span_of(schedule)[1]
        return found

    def key(self, case: _Case) -> str | None:
        """Returns what a finished replay is recognized by; `None` if that cannot be said."""
        discipline = self._print(case.discipline, lambda: _of_discipline(self.disciplines, case))
        if discipline is None:
            return None
        log = self._print(f"log {case.log}", lambda: _of_jobs_table(*self.logs[case.log]))
        counted = self.counted[case.log]
        parts = [log, discipline, self.seconds, self.seed, case.shift, counted.begin, counted.end]
        if self.tau != BOUNDED_SLOWDOWN_THRESHOLD_S:
            parts += ["tau", self.tau]
        if self.supply is not None:
            supply = self.supply
            parts += ["end", self._print("supply", lambda: _digest(pickle.dumps(supply)))]
        return _digest(json.dumps(parts).encode())

    def _print(self, name: str, make: Callable[[], str | None]) -> str | None:
        if name not in self.prints:
            self.prints[name] = make()
        return self.prints[name]


def _run(
    task: _Task,
    cases: Sequence[_Case],
    runs: Path | None,
    workers: Workers,
    progress: Callable[[int], None] | None,
) -> list[dict[str, Any]]:
    """Runs the cases that are not done, and returns what all came to, in order."""
    log = None if runs is None else RunLog(runs, ValueError)
    keys = {case: None if log is None else task.key(case) for case in cases}
    found = {
        case: log.known[key]
        for case, key in keys.items()
        if log is not None and key is not None and key in log.known
    }
    todo = [case for case in cases if case not in found]
    for case, result in _replayed(task, todo, workers):
        found[case] = result
        key = keys[case]
        if log is not None and key is not None:
            log.add(key, result)
        if progress is not None:
            progress(len(found))
    return [found[case] for case in cases]


def _replayed(
    task: _Task, todo: Sequence[_Case], workers: Workers
) -> Iterator[tuple[_Case, dict[str, Any]]]:
    if not todo:
        return
    size = CASES_PER_WORKER * workers.number
    with workers.started() as executor:
        for begin in range(0, len(todo), size):
            some = todo[begin : begin + size]
            yield from zip(some, executor.evaluate(task, some), strict=True)


def _difference(
    log: str, name: str, metric: str, baseline: Sequence[float], values: Sequence[float]
) -> Difference:
    pairs = [_apart(one, other) for one, other in zip(values, baseline, strict=True)]
    interval = MeanInterval(math.nan, math.nan, math.nan)
    if all(map(math.isfinite, pairs)):
        interval = mean_interval(pairs)
    sign = -1.0 if metric_named(metric).greater_is_better else 1.0
    return Difference(
        log=log,
        discipline=name,
        metric=metric,
        unit=metric_named(metric).unit,
        baseline=math.fsum(baseline) / len(baseline),
        mean=math.fsum(values) / len(values),
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        wins=sum(sign * pair < 0 for pair in pairs),
        ties=sum(pair == 0 for pair in pairs),
        losses=sum(sign * pair > 0 for pair in pairs),
    )


def _apart(one: float, other: float) -> float:
    """Returns by how much a figure is more than another; rounding is no difference."""
    apart = one - other
    return 0.0 if abs(apart) <= ROUNDING * max(abs(one), abs(other)) else apart


def _named(
    disciplines: Sequence[AnyDiscipline] | Mapping[str, AnyDiscipline],
) -> dict[str, Discipline]:
    given = (
        list(disciplines.items())
        if isinstance(disciplines, Mapping)
        else [(None, each) for each in disciplines]
    )
    found: dict[str, Discipline] = {}
    for name, each in given:
        discipline = discipline_by_name(each) if isinstance(each, str) else as_discipline(each)
        # What a user has called it is what the tables say.
        word = name or (each if isinstance(each, str) else discipline.name)
        if word in found:
            raise ValueError(f"the discipline {word!r} comes twice")
        found[word] = discipline
    if len(found) < 2:
        raise ValueError(
            f"{len(found)} discipline{'' if found else 's'}; at least two are needed to compare"
        )
    return found


def _used(schedule: Schedule, counted: Counted, supply: Supply) -> dict[str, float]:
    span = span_of(schedule) if counted == Counted() else (counted.begin, counted.end)
    return _by_metric(machine_consumption(schedule, supply, span=span))


def _idle_until_the_last(
    task: _Task, supply: Supply, cases: Sequence[_Case], done: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    # Disciplines are compared over the same time: a machine that is done sooner pays until the last one is.
    last: dict[tuple[str, int], float] = {}
    for case, found in zip(cases, done, strict=True):
        end = found.get("end", -math.inf)
        last[case.log, case.shift] = max(last.get((case.log, case.shift), -math.inf), end)
    nothing = np.zeros(0), np.zeros(0, np.int64)
    whole = []
    for case, found in zip(cases, done, strict=True):
        figures = dict(found["figures"])
        if "end" in found:
            span = found["end"], last[case.log, case.shift]
            idle = consumption(supply, task.logs[case.log][1], nothing, span)
            for name, value in _by_metric(idle).items():
                figures[name] += value
        whole.append({**found, "figures": figures})
    return whole


def _by_metric(found: Consumption) -> dict[str, float]:
    values = found.energy_kwh, found.cost, found.carbon_kg
    return dict(zip(ELECTRICITY_METRICS, values, strict=True))


def _metrics(names: Sequence[str], supply: Supply | None) -> tuple[str, ...]:
    found = [name.replace("_", "-") for name in names]
    for name in found:
        if name in ELECTRICITY_METRICS:
            if supply is None or (name == "carbon" and supply.carbon is None):
                what = "a carbon intensity" if name == "carbon" else "a price of electricity"
                raise ValueError(f"metric {name!r} needs {what}")
        elif name not in METRICS:
            raise ValueError(unknown("metric", name, METRICS))
    if not found:
        raise ValueError(f"no metric; there are: {', '.join(METRICS)}")
    return tuple(dict.fromkeys(found))


def _number(chosen: BoolArray | None, count: int) -> int:
    return count if chosen is None else int(np.count_nonzero(chosen))


def _plain(discipline: str, notes: object) -> Any:
    """Returns notes as JSON gives them back, so that kept ones and new ones are the same."""
    try:
        return json.loads(json.dumps(notes))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the notes of discipline {discipline!r} cannot be kept: {error}; `notes` returns "
            "numbers, texts, lists and dictionaries"
        ) from error


def _of_discipline(disciplines: Mapping[str, Discipline], case: _Case) -> str | None:
    discipline = disciplines[case.discipline]
    try:
        content = pickle.dumps(discipline)
    # Whatever an object of a user raises here means that it cannot be sent.
    except Exception:  # noqa: BLE001  # as it says above
        return None
    if isinstance(discipline, UserDefinedDiscipline):
        written = discipline.written
        try:
            path = inspect.getsourcefile(written if callable(written) else type(written))
            content += Path(path or "").read_bytes()
        except (OSError, TypeError):
            return None
    return _digest(content)


def _of_jobs_table(jobs: JobTable, processors: int) -> str:
    columns = [np.ascontiguousarray(column).tobytes() for column in jobs.columns().values()]
    return _digest(*columns, str(processors).encode())


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
