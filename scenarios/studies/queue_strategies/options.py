"""What a user can ask of the studies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import click

from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option, seeds_option, workers_option
from scenarios.studies.queue_strategies.reference import LOGS

_LOGS: Final = tuple(log.key for log in LOGS)


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        start: every criterion can be a constant order of groups, so no search that begins with one
            ends below it.
        scaled: the whole logs are scaled to 1024 processors and learned on; no job is unseen then.
    """

    paper: str
    folder: Path = folder_option(
        "Folder for strategies, figures and page.  [default: out/ and the study's name]"
    )
    seeds: tuple[int, ...] = seeds_option("[default: 1-3]", 1, 2, 3)
    generations: int = option(
        "Of each search of criteria; of rules a third of them.",
        default=6,
        type=click.IntRange(1, 100_000),
    )
    start: Literal["constant", "random"] = option(
        "Whether criteria begin with a constant order of groups among them; random: the papers'.",
        default="constant",
    )
    scaled: bool = option(
        "The papers' effort: whole logs on 1,024 processors, 100 generations; many hours.",
        default=False,
        flag="--complete",
    )
    logs: tuple[str, ...] = option(
        "Only these; may be given several times.",
        default=_LOGS,
        type=click.Choice(["ctc", "kth", "sdsc00"]),
    )
    front: int = option(
        "Generations of NSGA-II on a key for each user; 0 leaves it out.",
        default=10,
        type=click.IntRange(0, 100_000),
    )
    workers: int | None = workers_option(10_000)
