"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path

import click

from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option, seeds_option, workers_option

GRIDS = ("logs", "models")


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        grids: `logs` for the recorded logs kth, ctc and sdsc05, `models` for three Lublin models.
        parts: spans of time, or draws of the models.
        days: of each part.
        seeds: that draw prices and carbon intensities, and say which site is the cheap one.
    """

    folder: Path = folder_option("Folder for runs, figures and page.", "electricity")
    grids: tuple[str, ...] = option(
        "logs (kth, ctc and sdsc05) or models (three of Lublin's, without a log); may be repeated.  [default: both]",
        default=GRIDS,
        flag="--grid",
        type=click.Choice(GRIDS),
        multiple=True,
    )
    parts: int = option(
        "Parts of the logs, and draws of the models.", default=5, type=click.IntRange(2, 100)
    )
    days: int = option("Days of each part.", default=60, type=click.IntRange(2, 1000))
    seeds: tuple[int, ...] = seeds_option(
        "Draw prices and carbon intensities, and which site is cheap.  [default: 1-3]", 1, 2, 3
    )
    workers: int | None = workers_option()
