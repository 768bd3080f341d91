"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from scenarios.papers.options import folder_option, option, workers_option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for."""

    folder: Annotated[Path, folder_option("Folder for runs, figures and page.")] = Path(
        "out", "utility-scheduling"
    )
    experiments: Annotated[
        int, option("Of Figures 2, 3 and 5; the paper's are 50.", type=click.IntRange(2, 10_000))
    ] = 50
    sweep: Annotated[
        int, option("Experiments at each rate of Figure 4.", type=click.IntRange(2, 10_000))
    ] = 30
    reachable: Annotated[
        int,
        option(
            "Experiments at each rate for the table of other policies; 0 leaves it out.",
            type=click.IntRange(0, 10_000),
        ),
    ] = 10
    logs: Annotated[
        bool, option("Leave recorded logs out.", "--no-logs", is_flag=True, flag_value=False)
    ] = True
    workers: Annotated[int | None, workers_option(256)] = None
