"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option, workers_option

PARTS: Final = (
    "grids",
    "rogues",
    "jitter",
    "adoption",
    "headroom",
    "strict",
    "random",
    "short",
    "restarts",
    "strict-rogues",
    "strict-adoption",
    "strict-jitter",
)


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for."""

    folder: Path = folder_option("Folder for replays, figures and page.", "nobody-loses")
    parts: tuple[str, ...] = option(
        "Only this; may be given several times.  [default: all]",
        default=PARTS,
        flag="--part",
        type=click.Choice(PARTS),
    )
    draws: int = option(
        "Random shifts of arrivals for each federation.", default=1, type=click.IntRange(1, 1000)
    )
    federations: int = option(
        "Federations by chance, half a year long and, for the part `short`, a month.",
        default=80,
        type=click.IntRange(1, 10_000),
    )
    seed: int = option("Seed of these.", default=0, type=click.IntRange(0, 2**63 - 1))
    complete: bool = option(
        "Byzantine partners under every policy, and four random shifts in both windows.",
        default=False,
    )
    workers: int | None = workers_option()
