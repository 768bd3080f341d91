"""Settings of workloads and search, each an option of `grms tune` too; nothing is slow to import."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import click

from lrms_sim.cli.log_options import PROCESSORS
from lrms_sim.cli.running import SEED_MAX
from lrms_sim.util.option_fields import ParamType, option, two_days
from lrms_sim.workload.preparation_report import PreparationOptions

Days = tuple[float | None, float | None]
"""First day, included, and last day, not included; None for no limit."""

Start = Literal["constant", "random"]
"""Whether constants are among the first individuals: an order of groups for criteria, each of the
alternatives for symbiotic evolution.
"""

Choices = Literal["paper", "smith", "orders"]
"""Alternatives of tables and rules: the paper's 13 strategies; the same with the groups in the order
of weight over work; EASY on several orders, so that an order is chosen instead of a strategy.
"""

SEARCHES: Final = ("two-parents", "self-adaptive", "cma")
"""Evolution strategies for the parameters of criteria."""

BEST: Final = "best"
"""The standard that stands for the best of all that a table chooses among."""


class _Days(ParamType[Days]):
    """Days as `0:150`, `150:`, `:150`."""

    name = "A:B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Days:
        if isinstance(value, tuple):
            return value
        try:
            return two_days(str(value))
        except click.BadParameter as error:
            self.fail(error.message, param, ctx)


class _Theta(ParamType[tuple[float, ...]]):
    """Five weights as `10,4,0,0,0`."""

    name = "weights"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        from lrms_sim.analysis.objectives import check_theta  # noqa: PLC0415  # slow to import

        if isinstance(value, tuple):
            return value
        try:
            return check_theta([float(part) for part in str(value).split(",")])
        except ValueError as error:
            return self.fail(f"{value!r}: {error}; write five, as 10,4,0,0,0", param, ctx)


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """How the jobs of a log become workloads.

    Attributes:
        calendar: the kind of situations, `week` or `hours`.
        theta: weight of each user group's AWRT in the objective; the papers' 10·AWRT₁ + 4·AWRT₂.
        processors: size of the machine; default from the log's header.
        scale_to: size of the machine that the workload is scaled to; default no scaling.
        scale_factor: f of `lrms_sim.workload.jobs.scale_to`; default the ratio of the sizes.
        scale_seed: of the random numbers of scaling.
        training: days of the training jobs.
        first_jobs: maximum number of training jobs.
        unseen: days of the test jobs; default all after the training.
    """

    calendar: str = option(
        "Situations: weekend, day and night; or the 24 hours of a day.",
        default="week",
        type=click.Choice(["week", "hours"]),
    )
    theta: tuple[float, float, float, float, float] = option(
        "Weight of each user group's AWRT in what is made small.  [default: 10,4,0,0,0]",
        default=(10.0, 4.0, 0.0, 0.0, 0.0),
        type=_Theta(),
        multiple=False,
    )
    processors: int | None = option(
        "[default: MaxProcs of the log's header]", default=None, type=PROCESSORS
    )
    preparation: PreparationOptions = field(default_factory=PreparationOptions)
    scale_to: int | None = option(
        "Scale the workload to N.", default=None, type=PROCESSORS, metavar="N"
    )
    scale_factor: float | None = option("[default: the ratio of sizes]", default=None, metavar="F")
    scale_seed: int = option(default=1, type=click.IntRange(0, SEED_MAX))
    training: Days = option(
        "Tune on jobs of these days.  [default: all]",
        default=(None, None),
        flag="--train-days",
        type=_Days(),
        multiple=False,
    )
    first_jobs: int | None = option(
        "The first N of those.", default=None, type=click.IntRange(1), metavar="N"
    )
    unseen: Days | None = option(
        "Judge by these.  [default: all later jobs]",
        default=None,
        flag="--unseen-days",
        type=_Days(),
        multiple=False,
    )


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What is searched, and how.

    Attributes:
        logs: workloads to tune on, at least one.
        method: one of f1 to f4; one of them for each situation, joined by commas; `iterative` or
            `symbiotic`.
        algorithm: on the queue in the order of a criterion.
        combination: of several logs.
        search: the evolution strategy for the parameters of criteria.
        start: whether constants are among the first individuals.
        standard: the initial strategy of `iterative`; `best` for the best on the training jobs.
        choices: alternatives of `iterative` and `symbiotic`.
        output: folder for all files; default named after log and method.
    """

    logs: tuple[Path, ...]
    method: str = option(
        "f1 to f4, or one for each situation as f1,f2,f3; iterative; symbiotic.",
        default="f2",
        metavar="NAME",
    )
    algorithm: Literal["fcfs", "easy"] = option(
        "What is done with the queue in a criterion's order; fcfs is the paper's Greedy.",
        default="fcfs",
    )
    combination: Literal["sum", "relative"] = option(
        "Several logs: the sum of f, or the mean of f over EASY's.", default="sum"
    )
    search: str = option(
        "What searches the parameters of a criterion; two-parents is the paper's.",
        default="two-parents",
        flag="--strategy",
        type=click.Choice(SEARCHES),
    )
    start: Start = option(
        "With constants among the first individuals, or not (the paper); of symbiotic, half of the first "
        "rules recommend what the best constant does.",
        default="constant",
    )
    standard: str = option(
        "Strategy that iterative begins with, and that states it never met keep; best: that with the "
        "least value of all it chooses among. The paper's is fcfs-arrival.",
        default=BEST,
        metavar="NAME",
    )
    choices: Choices = option(
        "Of tables and rules: 13 strategies; with groups by weight over work; orders for EASY.",
        default="paper",
    )
    seed: int = option(default=1, type=click.IntRange(0, SEED_MAX))
    output: Path | None = option(
        "Folder for strategy, figures and page.  [default: out/tune-LOG-ALGORITHM-METHOD]",
        default=None,
        type=click.Path(path_type=Path),
    )
    resume: bool = option("Go on from the checkpoint in that folder.", default=False)
