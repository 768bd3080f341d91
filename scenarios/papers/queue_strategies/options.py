"""What a user can ask of the studies."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from scenarios.papers.options import Seeds, folder_option, option, workers_option
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
        folder_option(
            "Folder for strategies, figures and page.  [default: out/ and the study's name]"
        ),
    ]
    seeds: Annotated[tuple[int, ...], option("[default: 1-3]", type=Seeds())] = (1, 2, 3)
    generations: Annotated[
        int,
        option(
            "Of each search of criteria; of rules a third of them.",
            type=click.IntRange(1, 100_000),
        ),
    ] = 6
    start: Annotated[
        "Start",
        option(
            "Whether criteria begin with a constant order of groups among them; random: the papers'.",
            type=click.Choice(["constant", "random"]),
        ),
    ] = "constant"
    scaled: Annotated[
        bool,
        option(
            "The papers' effort: whole logs on 1,024 processors, 100 generations; many hours.",
            "--complete",
            is_flag=True,
        ),
    ] = False
    logs: Annotated[
        tuple[str, ...],
        option(
            "Only these; may be given several times.",
            type=click.Choice(["ctc", "kth", "sdsc00"]),
            multiple=True,
        ),
    ] = tuple(log.key for log in LOGS)
    front: Annotated[
        int,
        option(
            "Generations of NSGA-II on a key for each user; 0 leaves it out.",
            type=click.IntRange(0, 100_000),
        ),
    ] = 10
    workers: Annotated[int | None, workers_option(10_000)] = None
