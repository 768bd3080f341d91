"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from scenarios.papers.options import FOLDER, WORKERS, Option, Seeds


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for; without seeds the shipped rule bases are looked at."""

    folder: Annotated[Path, Option("Folder for rule bases, figures and page.", FOLDER)] = Path(
        "out", "decentralized-grid"
    )
    seeds: Annotated[tuple[int, ...], Option("[default: 1-5]", kind=Seeds())] = (1, 2, 3, 4, 5)
    generations: Annotated[
        int, Option("Of each training run; the paper's are 150.", least=1, most=100_000)
    ] = 150
    more_seeds: Annotated[
        tuple[int, ...],
        Option("Of the training runs that the paper does not have.  [default: 1-3]", kind=Seeds()),
    ] = (1, 2, 3)
    more_generations: Annotated[
        int, Option("Of each of those; 0 leaves them out.", least=0, most=100_000)
    ] = 40
    workers: Annotated[int | None, Option(WORKERS, least=1, most=10_000)] = None
