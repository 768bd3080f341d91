"""The commands `scenario paper …`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

SEEDS_MAX = 100
"""Most seeds of one study."""


class _Seeds(click.ParamType[tuple[int, ...]]):
    """Seeds as people write them: `3`, `1-5`, `1,4,7`."""

    name = "seeds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        seeds: list[int] = []
        for part in str(value).split(","):
            match = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part)
            if match is None:
                self.fail(f"{value!r} are no seeds; write them as 1-5 or 1,4,7", param, ctx)
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first or last - first >= SEEDS_MAX:
                self.fail(f"{part.strip()!r}: at most {SEEDS_MAX} seeds, upward", param, ctx)
            seeds += range(first, last + 1)
        if len(set(seeds)) != len(seeds) or len(seeds) > SEEDS_MAX:
            self.fail(f"{value!r}: each seed once, at most {SEEDS_MAX}", param, ctx)
        return tuple(seeds)


@click.group()
def paper() -> None:
    """Run the experiments of a paper, and show them beside what it prints."""


@paper.command("decentralized-grid")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out", "decentralized-grid"),
    show_default=True,
    help="Folder for rule bases, figures and page.",
)
@click.option("--seeds", type=_Seeds(), default=(1, 2, 3, 4, 5), help="[default: 1-5]")
@click.option(
    "--generations",
    type=click.IntRange(1, 100_000),
    default=150,
    show_default=True,
    help="Of each training run; the paper's are 150.",
)
@click.option(
    "--easy-generations",
    type=click.IntRange(0, 100_000),
    default=50,
    show_default=True,
    help="Of each training run with EASY queues, which the paper does not have; 0 leaves them out.",
)
@click.option("--no-loser/--without-no-loser", default=True, help="Study that objective too.")
@click.option("--shipped", is_flag=True, help="Train nothing; use the rule bases that come along.")
@click.option("--workers", type=click.IntRange(1, 10_000), help="[default: one a processor]")
def decentralized_grid(
    *,
    output: Path,
    seeds: tuple[int, ...],
    generations: int,
    easy_generations: int,
    no_loser: bool,
    shipped: bool,
    workers: int | None,
) -> None:
    """Tables 1 and 2, Figures 4 and 5 of "Decentralized Grid Scheduling with Evolutionary Fuzzy
    Systems" (JSSPP 2009), and what the paper leaves open: nobody loses; EASY queues.

    Needs the logs kth, ctc, sdsc05 and sdsc00. With five seeds it trains 120 policies, which takes
    about an hour and a half on two cores; after Ctrl-C the same command goes on. --shipped is done
    in half a minute.
    """  # noqa: D205  # click takes the first paragraph as the summary
    from grms.learning.command import TrainingInterrupted  # noqa: PLC0415  # slow to import
    from scenarios.papers.decentralized_grid.command import run_command  # noqa: PLC0415  # slow
    from scenarios.papers.decentralized_grid.study import StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        folder=output,
        seeds=() if shipped else seeds,
        generations=generations,
        easy_generations=easy_generations,
        no_loser=no_loser,
        workers=workers,
    )
    try:
        page = run_command(options, _console(), _console(stderr=True))
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}; the same command goes on from there", err=True)
        raise click.Abort from interruption
    click.echo(f"\nWritten to {page}")


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console  # noqa: PLC0415  # slow to import

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)
