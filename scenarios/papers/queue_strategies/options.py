"""What a user can ask of the studies."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from scenarios.papers.options import FOLDER, WORKERS, Option, Seeds
from scenarios.papers.queue_strategies.reference import LOGS

if TYPE_CHECKING:
    from grms.learning.local_strategies.problem import Start


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        paper: which study.
        start: every criterion can be a constant order of groups, so no search that begins with one ends below it.
        scaled: the whole logs are scaled to 1024 processors and learned on; no job is unseen then.
    """

    paper: str
    folder: Annotated[
        Path,
        Option(
            "Folder for strategies, figures and page.  [default: out/ and the study's name]", FOLDER
        ),
    ]
    seeds: Annotated[tuple[int, ...], Option("[default: 1-3]", kind=Seeds())] = (1, 2, 3)
    generations: Annotated[
        int, Option("Of each search of criteria; of rules a third of them.", least=1, most=100_000)
    ] = 6
    start: Annotated[
        "Start",
        Option(
            "Whether criteria begin with a constant order of groups among them; random: the papers'.",
            choices=("constant", "random"),
        ),
    ] = "constant"
    scaled: Annotated[
        bool,
        Option(
            "The papers' effort: whole logs on 1,024 processors, 100 generations; many hours.",
            "--complete",
        ),
    ] = False
    logs: Annotated[
        tuple[str, ...],
        Option("Only these; may be given several times.", choices=("ctc", "kth", "sdsc00")),
    ] = tuple(log.key for log in LOGS)
    front: Annotated[
        int,
        Option(
            "Generations of NSGA-II on a key for each user; 0 leaves it out.", least=0, most=100_000
        ),
    ] = 10
    workers: Annotated[int | None, Option(WORKERS, least=1, most=10_000)] = None
