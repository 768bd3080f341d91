"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path

import click

from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option, seeds_option, workers_option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for; without seeds the shipped rule bases are looked at."""

    folder: Path = folder_option("Folder for rule bases, figures and page.", "decentralized-grid")
    seeds: tuple[int, ...] = seeds_option("[default: 1-5]", 1, 2, 3, 4, 5)
    generations: int = option(
        "Of each training run; the paper's are 150.", default=150, type=click.IntRange(1, 100_000)
    )
    more_seeds: tuple[int, ...] = seeds_option(
        "Of the training runs that the paper does not have.  [default: 1-3]", 1, 2, 3
    )
    more_generations: int = option(
        "Of each of those; 0 leaves them out.", default=40, type=click.IntRange(0, 100_000)
    )
    workers: int | None = workers_option(10_000)
