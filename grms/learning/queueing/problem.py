"""What a user wants tuned: workloads, unseen ones to be judged on, an encoding, and a strategy that searches it."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from grms.learning.evolution.catalog import new_strategy
from grms.learning.evolution.class_search import ClassSearch
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import Strategy as Search
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.evolution.symbiotic import SymbioticEvolution, SymbioticSettings
from grms.learning.evolution.termination import Limits
from grms.learning.queueing.encoding import (
    CriterionEncoding,
    Encoding,
    RulesEncoding,
    TableEncoding,
)
from grms.learning.queueing.fitness import COMBINATIONS, TuningCase, tuning_case
from grms.learning.queueing.options import (
    BEST,
    SEARCHES,
    Choices,
    SearchOptions,
    Start,
    WorkloadOptions,
)
from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.criteria import (
    CRITERION_KINDS,
    GREEDY_DEFAULT,
    Criterion,
    CriterionKind,
    CriterionOrder,
    GroupOrder,
    aging_smith_order,
    smith_order,
)
from lrms_sim.scheduling.selection import CLASSES
from lrms_sim.scheduling.situations import KINDS, Calendar, make_calendar, zone_of_header
from lrms_sim.scheduling.strategies import Strategy, paper_strategies
from lrms_sim.util.errors import HanseError
from lrms_sim.util.executors import Workers
from lrms_sim.util.messages import unknown
from lrms_sim.workload.groups import GROUPS, known_user_groups
from lrms_sim.workload.jobs import JobTable, jobs_sha256, scale_to, window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import read_swf


class WorkloadError(HanseError, ValueError):
    """A workload that cannot be tuned on; the text names it and says what is wrong."""


@dataclass(frozen=True)
class Workload:
    """A log prepared for tuning.

    Attributes:
        training: case to tune on.
        unseen: case to test on; `None` if no job is left for it.
        provenance: of the jobs, plain values.
        warnings: caveats for the user.
    """

    name: str
    training: TuningCase
    unseen: TuningCase | None
    provenance: dict[str, Any]
    warnings: tuple[str, ...] = ()


def read_workload(path: Path, options: WorkloadOptions) -> Workload:
    """Reads a log and makes the workloads of it.

    Preparation comes first, then scaling, then windows, and then user groups: those of the training
    jobs for the training, those of the unseen jobs for the unseen.

    Raises:
        WorkloadError: the log cannot be used.
        OSError: it cannot be read.
    """
    name = path.name.split(".")[0]
    try:
        log = read_swf(path)
        size = options.processors or log.header.size
        if size is None:
            raise WorkloadError(
                f"{path}: its header does not say how large the machine is; say it with "
                f"--processors"
            )
        prepared = prepare(log, size, options.preparation)
        jobs = prepared.jobs
        if options.scale_to is not None:
            rng = np.random.default_rng(options.scale_seed)
            jobs = scale_to(
                jobs,
                processors_from=size,
                processors_to=options.scale_to,
                rng=rng,
                factor=options.scale_factor,
            )
            size = options.scale_to
        training, unseen = split(jobs, options)
        if not len(training):
            raise WorkloadError(f"{path}: no job is left to tune on")
        warnings, calendar = _calendar(log.header.fields, jobs, options.calendar)
        if not len(unseen):
            warnings.append("no unseen jobs: how the strategy does on them nobody knows")
        cases = [
            tuning_case(
                f"{name}{suffix}",
                Trial(part, size, groups=known_user_groups(part), theta=options.theta),
                calendar,
            )
            for part, suffix in ((training, ""), (unseen, ", unseen"))
            if len(part)
        ]
    except ValueError as error:
        if isinstance(error, WorkloadError):
            raise
        raise WorkloadError(f"{path}: {error}") from error
    provenance = {
        "log": path.name,
        "processors": size,
        "records_read": prepared.report.records_read,
        "jobs_prepared": prepared.report.jobs_prepared,
        "scale_to": options.scale_to,
        "scale_factor": options.scale_factor,
        "scale_seed": options.scale_seed if options.scale_to else None,
        "jobs": len(training),
        "jobs_sha256": jobs_sha256(training),
        "jobs_unseen": len(unseen),
    }
    return Workload(
        name,
        cases[0],
        cases[1] if len(cases) > 1 else None,
        provenance,
        tuple(f"{name}: {text}" for text in warnings),
    )


def split(jobs: JobTable, options: WorkloadOptions) -> tuple[JobTable, JobTable]:
    """Returns the training and the test jobs, which are disjoint.

    Raises:
        ValueError: both spans share a day.
    """
    first, last = options.training
    training = window_by_days(jobs, first, last, first_jobs=options.first_jobs)
    if options.unseen is None:
        after = np.searchsorted(jobs.submit_time, training.submit_time[-1]) if len(training) else 0
        rows = np.arange(after, len(jobs))
        seen = np.isin(jobs.job_id[rows], training.job_id)
        return training, jobs.select(rows[~seen])
    unseen = window_by_days(jobs, *options.unseen)
    if np.isin(unseen.job_id, training.job_id).any():
        raise ValueError(
            "the days to judge by share jobs with those to tune on; then they are not unseen"
        )
    return training, unseen


def _calendar(
    fields: dict[str, str], jobs: JobTable, kind: str
) -> tuple[list[str], Calendar | None]:
    # Only criteria that differ from situation to situation need one.
    try:
        zone, unix_start = zone_of_header(fields)
    except ValueError as error:
        return [str(error)], None
    first, last = float(jobs.submit_time[0]), float(jobs.submit_time[-1])
    calendar = make_calendar(kind, zone=zone, unix_start=unix_start, first=first, last=last)
    return [], calendar


def read_workloads(paths: Sequence[Path], options: WorkloadOptions) -> list[Workload]:
    """Returns `read_workload` of each log.

    Raises:
        WorkloadError: there is none, or one cannot be used.
        OSError: one cannot be read.
    """
    if not paths:
        raise WorkloadError("name at least one log")
    return [read_workload(path, options) for path in paths]


GENERATIONS: Final = {"criterion": 100, "iterative": CLASSES, "symbiotic": 30}
"""Default limits. Paper 001 has 100; paper 000 gives no number."""

AGING_S: Final = 86400.0
"""Waiting of this many seconds makes up for the whole range of group ratios, in the choice `orders`."""


@dataclass(frozen=True, slots=True)
class TuneOptions(SearchOptions):
    """Options of a tuning run.

    Attributes:
        remember: record the figures of every individual, on the first log, without changing
            results.

    Raises:
        ValueError: an option is out of its bounds.
    """

    workloads: WorkloadOptions = field(default_factory=WorkloadOptions)
    settings: StrategySettings = field(default_factory=lambda: StrategySettings(15, 105))
    symbiotic: SymbioticSettings = field(default_factory=SymbioticSettings)
    limits: Limits = field(default_factory=Limits)
    workers: Workers = field(default_factory=Workers)
    remember: bool = False

    def __post_init__(self) -> None:
        for what, value, known in (
            ("strategy", self.search, SEARCHES),
            ("start", self.start, get_args(Start)),
            ("set of choices", self.choices, get_args(Choices)),
            ("combination", self.combination, COMBINATIONS),
        ):
            if value not in known:
                raise ValueError(unknown(what, value, known))
        self.limits_in_force.termination()
        problem(self, GroupOrder())

    @property
    def kinds(self) -> tuple[CriterionKind, ...]:
        """The formula of each situation; none for tables and rules.

        Raises:
            ValueError: there is no such method, or it does not name one for each situation.
        """
        if self.method in {"iterative", "symbiotic"}:
            return ()
        kinds: list[CriterionKind] = []
        for word in self.method.split(","):
            kind = next((one for one in CRITERION_KINDS if one == word), None)
            if kind is None:
                known = (*CRITERION_KINDS, "iterative", "symbiotic")
                raise ValueError(unknown("method", word, known))
            kinds.append(kind)
        situations = KINDS[self.workloads.calendar]
        if len(kinds) == 1:
            kinds *= situations
        if len(kinds) != situations:
            raise ValueError(
                f"the method names {len(kinds)} criteria; one is needed, or one for each of the "
                f"{situations} situations of the calendar {self.workloads.calendar!r}"
            )
        return tuple(kinds)

    @property
    def limits_in_force(self) -> Limits:
        """The limits, with a default number of generations if none is set."""
        if self.limits != Limits():
            return self.limits
        word = self.method if self.method in GENERATIONS else "criterion"
        return replace(self.limits, generations=GENERATIONS[word])

    @property
    def folder(self) -> Path:
        """The folder for all files."""
        if self.output is not None:
            return self.output
        logs = "-".join(path.name.split(".")[0] for path in self.logs)
        words = f"tune-{logs}-{self.algorithm}-{self.method}".lower()
        return Path("out", re.sub(r"[^a-z0-9_-]", "-", words)[:100])

    @property
    def words(self) -> dict[str, Any]:
        """The search as plain values, for provenance and comparison."""
        common: dict[str, Any] = {"method": self.method, "seed": self.seed}
        if self.method == "iterative":
            return {"method": self.method, "standard": self.standard, "choices": self.choices}
        if self.method == "symbiotic":
            words = {"choices": self.choices, "start": self.start}
            return common | words | {"settings": asdict(self.symbiotic)}
        return common | {
            "algorithm": self.algorithm,
            "calendar": self.workloads.calendar,
            "strategy": self.search,
            "start": self.start,
            "settings": asdict(self.settings),
        }


def problem(options: TuneOptions, order: GroupOrder) -> tuple[Encoding, Search]:
    """Returns the encoding, and a strategy that has not begun.

    `order` are the groups by weight over work on the training jobs.

    Raises:
        ValueError: an option does not go with the others.
    """
    if options.method == "iterative":
        table = TableEncoding(_alternatives(options.choices, order))
        names = [one.name for one in table.strategies]
        if options.standard == BEST:
            first, *others = (table.standard(name).integer for name in names)
            return table, ClassSearch(table.space.choices, first, others)
        standard = options.standard
        if standard not in names:
            # The order of groups is part of a strategy's name where it is not 1 to 5.
            standard = next((name for name in names if name.startswith(f"{standard}-")), standard)
        return table, ClassSearch(table.space.choices, table.standard(standard).integer)
    if options.method == "symbiotic":
        rules = RulesEncoding(_alternatives(options.choices, order))
        return rules, SymbioticEvolution(
            rules.space,
            options.symbiotic,
            generator(options.seed),
            constant_rule_bases(rules, options.symbiotic) if options.start == "constant" else (),
        )
    criterion = CriterionEncoding(options.kinds, options.algorithm, options.workloads.calendar)
    founders = [constant_genome(criterion, order)] if options.start == "constant" else []
    search = new_strategy(options.search, criterion.space, options.settings, options.seed, founders)
    return criterion, search


def constant_genome(encoding: CriterionEncoding, order: GroupOrder) -> Genome:
    """Returns the parameters by which a criterion is a constant order of groups.

    With all weights 1 and a = b = 0 the value of a job is its group's constant: 5 for the first
    group down to 1 for the last; within a group the order of arrival stays.
    """
    first, second, third, fourth, fifth = (
        float(len(GROUPS) - order.groups.index(group)) for group in GROUPS
    )
    ones = (1.0, 1.0, 1.0, 1.0, 1.0)
    constants = (first, second, third, fourth, fifth)
    criteria = tuple(Criterion(kind, ones, constants, 0.0) for kind in encoding.kinds)
    return encoding.encode(CriterionOrder(criteria, encoding.calendar))


def constant_rule_bases(encoding: RulesEncoding, settings: SymbioticSettings) -> list[Genome]:
    """Returns a rule base for each strategy, which chooses it whatever the state is."""
    space = encoding.space
    return [space.constant(number, settings.base_rules) for number in range(space.alternatives)]


def shared_order(cases: Sequence[TuningCase]) -> GroupOrder:
    """Returns the groups by falling weight over work, work being the mean of their shares."""
    shares = np.mean(
        [np.array(one.trial.consumption) / sum(one.trial.consumption) for one in cases], axis=0
    )
    return smith_order(cases[0].trial.theta, shares.tolist())


def _alternatives(choices: Choices, order: GroupOrder) -> tuple[Strategy, ...]:
    if choices == "paper":
        return paper_strategies()
    if choices == "smith":
        return paper_strategies(groups=order)
    rank = [float(len(GROUPS) - order.groups.index(group)) for group in GROUPS]
    aging = aging_smith_order(rank, (1.0,) * len(GROUPS), equal_after=AGING_S)
    return (
        Strategy("easy"),
        Strategy("easy", "requested_time"),
        Strategy("easy", order, "easy-group"),
        Strategy("fcfs", order, "fcfs-group"),
        Strategy("easy", aging, "easy-aging"),
        Strategy("easy", GREEDY_DEFAULT, "easy-waiting"),
    )
