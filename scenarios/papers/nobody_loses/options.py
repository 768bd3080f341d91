"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import click

from scenarios.papers.options import folder_option, option, workers_option

PARTS: Final = ("grids", "rogues", "jitter", "adoption", "headroom")


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for."""

    folder: Annotated[Path, folder_option("Folder for replays, figures and page.")] = Path(
        "out", "nobody-loses"
    )
    parts: Annotated[
        tuple[str, ...],
        option(
            "Only this; may be given several times.  [default: all]",
            "--part",
            type=click.Choice(PARTS),
            multiple=True,
        ),
    ] = PARTS
    draws: Annotated[
        int,
        option("Random shifts of arrivals for each federation.", type=click.IntRange(1, 1000)),
    ] = 1
    complete: Annotated[
        bool,
        option("Rogues under every policy, and four random shifts in both windows.", is_flag=True),
    ] = False
    workers: Annotated[int | None, workers_option(256)] = None
