"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from scenarios.papers.options import FOLDER, WORKERS, Option

PARTS: Final = ("grids", "rogues", "jitter", "adoption", "headroom")


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for."""

    folder: Annotated[Path, Option("Folder for replays, figures and page.", FOLDER)] = Path(
        "out", "nobody-loses"
    )
    parts: Annotated[
        tuple[str, ...],
        Option("Only this; may be given several times.  [default: all]", "--part", choices=PARTS),
    ] = PARTS
    draws: Annotated[
        int, Option("Random shifts of arrivals for each federation.", least=1, most=1000)
    ] = 1
    complete: Annotated[
        bool, Option("Rogues under every policy, and four random shifts in both windows.")
    ] = False
    workers: Annotated[int | None, Option(WORKERS, least=1, most=256)] = None
