"""What a user can ask of the study."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from lrms_sim.util.option_fields import FloatRange, ParamType, option
from scenarios.studies.common.options import folder_option, workers_option
from scenarios.studies.gorba_rescheduling.reference import SIZES

PARTS: Final = ("settings", "sweep")


class Sizes(ParamType[tuple[int, ...]]):
    """Loads as people write them: `200,400`, or `all`."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Returns the loads, upward and each once; fails with how to write them."""
        if isinstance(value, tuple):
            return value
        if value == "all":
            return SIZES
        words = str(value).split(",")
        if not all(re.fullmatch(r" *\d{1,6} *", word) and int(word) >= 10 for word in words):
            self.fail(f"{value!r} are no sizes; write 200,400 or all; from 10 tasks", param, ctx)
        return tuple(sorted({int(word) for word in words}))


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for; evaluations have no meaning with seconds.

    Attributes:
        parts: which of `PARTS`.
        first_evaluations: schedules that GLEAM builds for the plan from before.
    """

    folder: Path = folder_option("Folder for runs, figures and page.", "gorba-rescheduling")
    runs: int = option(
        "Of each search on each event; the paper's are 50.", default=3, type=click.IntRange(1, 1000)
    )
    seconds: float | None = option(
        "Of each run, instead of schedules; the paper's are 180. The result depends on who else "
        "works on the machine.",
        default=None,
        type=FloatRange(0, min_open=True),
    )
    sizes: tuple[int, ...] = option(
        "Tasks of the load sweep, as 200,400; or all of the paper's.  [default: 200,400,1000,3200]",
        default=(200, 400, 1000, 3200),
        type=Sizes(),
        multiple=False,
    )
    parts: tuple[str, ...] = PARTS
    reduction: float = option(
        "How much tighter limits are than the best heuristic can just keep.",
        default=0.08,
        type=FloatRange(0, 1, max_open=True),
    )
    first_evaluations: int = 2000
    # Half a second of a processor at 100 tasks.
    evaluations: int = option(
        "Schedules of each run: the same on every machine.", default=5000, type=click.IntRange(1)
    )
    workers: int | None = workers_option()
