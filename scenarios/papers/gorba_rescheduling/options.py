"""What a user can ask of the study."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import click

from lrms_sim.commandline.values import ParamType
from scenarios.papers.gorba_rescheduling.reference import SIZES
from scenarios.papers.options import FOLDER, WORKERS, Option

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

    folder: Annotated[Path, Option("Folder for runs, figures and page.", FOLDER)] = Path(
        "out", "gorba-rescheduling"
    )
    runs: Annotated[
        int, Option("Of each search on each event; the paper's are 50.", least=1, most=1000)
    ] = 3
    seconds: Annotated[
        float | None,
        Option(
            "Of each run, instead of schedules; the paper's are 180. The result depends on who else "
            "works on the machine.",
            kind=click.FloatRange(0, min_open=True),
        ),
    ] = None
    sizes: Annotated[
        tuple[int, ...],
        Option(
            "Tasks of the load sweep, as 200,400; or all of the paper's.  [default: 200,400,1000,3200]",
            kind=Sizes(),
        ),
    ] = (200, 400, 1000, 3200)
    parts: tuple[str, ...] = PARTS
    reduction: Annotated[
        float,
        Option(
            "How much tighter limits are than the best heuristic can just keep.",
            kind=click.FloatRange(0, 1, max_open=True),
        ),
    ] = 0.08
    first_evaluations: int = 2000
    # Half a second of a processor at 100 tasks.
    evaluations: Annotated[
        int, Option("Schedules of each run: the same on every machine.", least=1)
    ] = 5000
    workers: Annotated[int | None, Option(WORKERS, least=1, most=256)] = None
