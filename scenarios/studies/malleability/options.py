"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path

import click

from lrms_sim.malleable.options import speedup_of
from lrms_sim.util.option_fields import FloatRange, ParamType, option
from scenarios.studies.common.options import (
    folder_option,
    seeds_option,
    workers_option,
)


class SpeedupText(ParamType[str]):
    """A speed-up as people write it: `linear`, `amdahl:0.1`, `downey:1:0.5`."""

    name = "speed-up"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Returns the text; fails with how to write it."""
        text = str(value).strip()
        try:
            speedup_of(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return text


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        logs: keys of the archive's logs, or files in the Standard Workload Format.
        parts: of equal time into which each log is cut.
        seeds: that draw which jobs are malleable.
        speedup: laws; the first for every share, the others where all jobs are malleable.
        least: fewest processors of a malleable job, as a share of its width; as above.
    """

    folder: Path = folder_option("Folder for runs, figures and page.", "malleability")
    logs: tuple[str, ...] = option(
        "kth, ctc, sdsc05, sdsc00, or an SWF file whose header says MaxProcs; may be repeated.  [default: these four]",
        default=("kth", "ctc", "sdsc05", "sdsc00"),
        flag="--workload",
        type=str,
        multiple=True,
        metavar="LOG",
    )
    parts: int = option(
        "Parts of equal time into which each log is cut.", default=5, type=click.IntRange(2, 100)
    )
    seeds: tuple[int, ...] = seeds_option("Draw which jobs are malleable.  [default: 1-3]", 1, 2, 3)
    speedup: tuple[str, ...] = option(
        "linear, amdahl:SERIAL or downey:PARALLELISM:VARIANCE; may be repeated: the first for every share.  [default: linear, downey:1:1]",
        default=("linear", "downey:1:1"),
        type=SpeedupText(),
        multiple=True,
        metavar="LAW",
    )
    least: tuple[float, ...] = option(
        "Fewest processors of a malleable job, as a share of its own; may be repeated: the first for every share.  [default: 0.5, 0]",
        default=(0.5, 0.0),
        type=FloatRange(0, 1),
        multiple=True,
        metavar="X",
    )
    workers: int | None = workers_option()
