"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from scenarios.papers.options import FOLDER, WORKERS, Option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for."""

    folder: Annotated[Path, Option("Folder for runs, figures and page.", FOLDER)] = Path(
        "out", "utility-scheduling"
    )
    experiments: Annotated[
        int, Option("Of Figures 2, 3 and 5; the paper's are 50.", least=2, most=10_000)
    ] = 50
    sweep: Annotated[int, Option("Experiments at each rate of Figure 4.", least=2, most=10_000)] = (
        30
    )
    reachable: Annotated[
        int,
        Option(
            "Experiments at each rate for the table of other policies; 0 leaves it out.",
            least=0,
            most=10_000,
        ),
    ] = 10
    logs: Annotated[bool, Option("Leave recorded logs out.", "--no-logs")] = True
    workers: Annotated[int | None, Option(WORKERS, least=1, most=256)] = None
