"""Options shared by `gorba plan` and `gorba jobshop`, as a dataclass."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import click

from broker.cli.command_types import duration
from lrms_sim.cli.running import SEED_MAX
from lrms_sim.util.option_fields import option

METHODS: Final = ("gleam", "asma-best", "asma", "asma-shift")
"""Searches that users can choose, from `broker.planner.methods`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to plan, and what to write.

    Attributes:
        search_time: seconds for all searches together; `None` for the default.
        methods: at least one.
        goal: "balanced" or "makespan".
        evaluations: most schedules per search.
        workers: threads; `None` for all processors.
        population: individuals of GLEAM; `None` for the default.
        islands: of each search; `None` for one run.
        dask: scheduler of the workers that islands are on; `None` for threads.
        stability: share of a plan's worth lost by moving every task placed by the earlier plan.
        baselines: whether HEFT and the best heuristic are shown beside the searches.
        bounded: whether a search ends with a plan that is known to be best.
        json: file for the plan; `STANDARD_OUTPUT` prints it instead of the tables.
        title: of the page; names of the workflows if empty.
    """

    search_time: float | None = option(
        "Time for planning, as 10s or 3min; searches share it equally.  [default: 30s]",
        default=None,
        type=duration,
        metavar="TIME",
    )
    methods: tuple[str, ...] = option(
        "Search to try; several are compared.  [default: gleam and asma-shift]",
        default=(),
        flag="--method",
        type=click.Choice(METHODS),
    )
    goal: Literal["balanced", "makespan"] = option(
        "balanced: dates, costs, makespan and utilization; makespan: nothing else.",
        default="balanced",
    )
    evaluations: int | None = option(
        "Schedules that each search builds. Without --search-time time does not matter then, "
        "and the same input and seed give the same plan everywhere.",
        default=None,
        type=click.IntRange(1),
    )
    seed: int = option(default=1, type=click.IntRange(0, SEED_MAX))
    workers: int | None = option(
        "Threads.  [default: all processors]", default=None, type=click.IntRange(1, 256)
    )
    population: int | None = option(
        "Individuals of GLEAM.", default=None, type=click.IntRange(3, 10_000)
    )
    islands: int | None = option(
        "Searches that go on side by side and exchange their best, of --evaluations schedules each, "
        "one a thread.",
        default=None,
        type=click.IntRange(1, 1000),
    )
    dask: str | None = option(
        "Islands on the workers of a dask scheduler, tcp://HOST:PORT, in place of threads.",
        default=None,
        metavar="ADDRESS",
    )
    stability: float = 0.0
    baselines: bool = True
    bounded: bool = False
    html: Path | None = option("Write the plan as a page with Gantt charts.", default=None)
    json: Path | None = None
    title: str = option(
        "Headline of the page.  [default: names of the files]", default="", show_default=False
    )
