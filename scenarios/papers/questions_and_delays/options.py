"""What a user can ask of the study."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from scenarios.papers.options import FOLDER, Option

if TYPE_CHECKING:
    from grms.learning.session import Workers


def _processes() -> "Workers":
    from grms.learning.session import Workers  # noqa: PLC0415  # slow to import

    return Workers("processes")


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        more_draws: without delays, where a replay takes milliseconds.
        half_year_draws: with delays, of half a year; 0 for none of it.
        workers: who replays.
    """

    folder: Annotated[Path, Option("Folder for replays, figures and page.", FOLDER)] = Path(
        "out", "questions-and-delays"
    )
    draws: Annotated[
        int,
        Option("With delays: of the days, the clocks and the late answers.", least=1, most=1000),
    ] = 3
    more_draws: int = 20
    half_year_draws: int = 0
    workers: "Workers" = field(default_factory=_processes)
