"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path

import click

from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option, workers_option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for."""

    folder: Path = folder_option("Folder for runs, figures and page.", "utility-scheduling")
    experiments: int = option(
        "Of Figures 2, 3 and 5; the paper's are 50.", default=50, type=click.IntRange(2, 10_000)
    )
    sweep: int = option(
        "Experiments at each rate of Figure 4.", default=30, type=click.IntRange(2, 10_000)
    )
    reachable: int = option(
        "Experiments at each rate for the table of other policies; 0 leaves it out.",
        default=10,
        type=click.IntRange(0, 10_000),
    )
    logs: bool = option("Leave recorded logs out.", default=True, flag="--no-logs")
    workers: int | None = workers_option()
