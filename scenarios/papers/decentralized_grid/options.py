"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from scenarios.papers.options import Seeds, folder_option, option, workers_option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for; without seeds the shipped rule bases are looked at."""

    folder: Annotated[Path, folder_option("Folder for rule bases, figures and page.")] = Path(
        "out", "decentralized-grid"
    )
    seeds: Annotated[tuple[int, ...], option("[default: 1-5]", type=Seeds())] = (1, 2, 3, 4, 5)
    generations: Annotated[
        int,
        option("Of each training run; the paper's are 150.", type=click.IntRange(1, 100_000)),
    ] = 150
    more_seeds: Annotated[
        tuple[int, ...],
        option("Of the training runs that the paper does not have.  [default: 1-3]", type=Seeds()),
    ] = (1, 2, 3)
    more_generations: Annotated[
        int, option("Of each of those; 0 leaves them out.", type=click.IntRange(0, 100_000))
    ] = 40
    workers: Annotated[int | None, workers_option(10_000)] = None
