"""Options shared by `gorba plan` and `gorba jobshop`, as a dataclass."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import click

from lrms_sim.commandline.running import SEED_MAX

METHODS: Final = ("gleam", "asma-best", "asma", "asma-shift")
"""Searches that users can choose, from `broker.planner.methods`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to plan, and what to write.

    Attributes:
        methods: at least one.
        goal: "balanced" or "makespan".
        budget: seconds for all searches together; `None` for the default.
        evaluations: most schedules per search.
        workers: threads; `None` for all processors.
        population: individuals of GLEAM; `None` for the default.
        stability: share of a plan's worth lost by moving every task placed by the earlier plan.
        json: file for the plan; `STANDARD_OUTPUT` prints it instead of the tables.
        title: of the page; names of the workflows if empty.
    """

    methods: tuple[str, ...] = field(
        default=(),
        metadata={
            "option": "--method",
            "type": click.Choice(METHODS),
            "help": "Search to try; several are compared.  [default: gleam and asma-shift]",
        },
    )
    goal: Literal["balanced", "makespan"] = field(
        default="balanced",
        metadata={
            "help": "balanced: dates, costs, makespan and utilization; makespan: nothing else."
        },
    )
    budget: float | None = None
    evaluations: int | None = field(
        default=None,
        metadata={
            "type": click.IntRange(1),
            "help": "Schedules that each search builds. Without --search-time time does not matter then, "
            "and the same input and seed give the same plan everywhere.",
        },
    )
    seed: int = field(default=1, metadata={"type": click.IntRange(0, SEED_MAX)})
    workers: int | None = field(
        default=None,
        metadata={"type": click.IntRange(1, 256), "help": "Threads.  [default: all processors]"},
    )
    population: int | None = field(
        default=None,
        metadata={"type": click.IntRange(3, 10_000), "help": "Individuals of GLEAM."},
    )
    stability: float = 0.0
    html: Path | None = field(
        default=None, metadata={"help": "Write the plan as a page with Gantt charts."}
    )
    json: Path | None = None
    title: str = field(
        default="",
        metadata={
            "show_default": False,
            "help": "Headline of the page.  [default: names of the files]",
        },
    )
