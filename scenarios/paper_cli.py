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
    "--more-seeds",
    type=_Seeds(),
    default=(1, 2, 3),
    help="Of the training runs that the paper does not have.  [default: 1-3]",
)
@click.option(
    "--more-generations",
    type=click.IntRange(0, 100_000),
    default=40,
    show_default=True,
    help="Of each of those; 0 leaves them out.",
)
@click.option("--shipped", is_flag=True, help="Train nothing; use the rule bases that come along.")
@click.option("--workers", type=click.IntRange(1, 10_000), help="[default: one a processor]")
def decentralized_grid(
    *,
    output: Path,
    seeds: tuple[int, ...],
    generations: int,
    more_seeds: tuple[int, ...],
    more_generations: int,
    shipped: bool,
    workers: int | None,
) -> None:
    """Tables 1 and 2, Figures 4 and 5 of "Decentralized Grid Scheduling with Evolutionary Fuzzy
    Systems" (JSSPP 2009), and what the paper leaves open: learning by which no partner loses, and
    EASY queues at every site.

    Needs the logs kth, ctc, sdsc05 and sdsc00. It trains 30 policies as the paper does and 54
    more, which takes three quarters of an hour on two cores; after Ctrl-C the same command goes
    on. --shipped is done in half a minute.
    """  # noqa: D205  # click takes the first paragraph as the summary
    from grms.learning.command import TrainingInterrupted  # noqa: PLC0415  # slow to import
    from scenarios.papers.decentralized_grid.command import run_command  # noqa: PLC0415  # slow
    from scenarios.papers.decentralized_grid.study import StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        folder=output,
        seeds=() if shipped else seeds,
        generations=generations,
        more_seeds=more_seeds,
        more_generations=more_generations,
        workers=workers,
    )
    try:
        page = run_command(options, _console(), _console(stderr=True))
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}; the same command goes on from there", err=True)
        raise click.Abort from interruption
    click.echo(f"\nWritten to {page}")


class _Sizes(click.ParamType[tuple[int, ...]]):
    """Loads as people write them: `200,400`, or `all`."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        from scenarios.papers.gorba_rescheduling.reference import SIZES  # noqa: PLC0415  # for this option only

        if isinstance(value, tuple):
            return value
        if value == "all":
            return SIZES
        words = str(value).split(",")
        if not all(re.fullmatch(r" *\d{1,6} *", word) and int(word) >= 10 for word in words):
            self.fail(f"{value!r} are no sizes; write 200,400 or all; from 10 tasks", param, ctx)
        return tuple(sorted({int(word) for word in words}))


@paper.command("gorba-rescheduling")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out", "gorba-rescheduling"),
    show_default=True,
    help="Folder for runs, figures and page.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Of each search on each event; the paper's are 50.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=2.0,
    show_default=True,
    help="Of each run; the paper's are 180.",
)
@click.option(
    "--evaluations",
    type=click.IntRange(1),
    help="Schedules of each run, instead of seconds: the same on every machine.",
)
@click.option(
    "--sizes",
    type=_Sizes(),
    default=(200, 400, 1000, 3200),
    help="Tasks of the load sweep, as 200,400; or all of the paper's.  [default: 200,400,1000,3200]",
)
@click.option(
    "--part",
    type=click.Choice(["all", "settings", "sweep"]),
    default="all",
    show_default=True,
    help="settings: Figure 4.1 and Table 4.1; sweep: Figures 4.2 to 4.5.",
)
@click.option(
    "--reduction",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.08,
    show_default=True,
    help="How much tighter limits are than the best heuristic can just keep.",
)
@click.option("--complete", is_flag=True, help="50 runs of 180 s on all sizes: over three weeks.")
@click.option("--workers", type=click.IntRange(1, 256), help="[default: one a processor]")
def gorba_rescheduling(
    *,
    output: Path,
    runs: int,
    seconds: float,
    evaluations: int | None,
    sizes: tuple[int, ...],
    part: str,
    reduction: float,
    complete: bool,
    workers: int | None,
) -> None:
    """Table 4.1 and Figures 4.1 to 4.5 of "Fast Multi-Objective Rescheduling of Workflows to
    Constrained Resources Using Heuristics and Memetic Evolution" (2010).

    32 rescheduling events, and a sweep over loads in four classes, with both memetic variants and
    our own, beside what the paper says. As it stands it takes a quarter of an hour; after Ctrl-C the
    same command goes on.
    """  # noqa: D205  # click takes the first paragraph as the summary
    from scenarios.papers.gorba_rescheduling.command import run_command  # noqa: PLC0415  # slow
    from scenarios.papers.gorba_rescheduling.reference import SIZES  # noqa: PLC0415  # same
    from scenarios.papers.gorba_rescheduling.study import PARTS, StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        folder=output,
        runs=50 if complete else runs,
        seconds=180.0 if complete else seconds,
        sizes=SIZES if complete else sizes,
        parts=PARTS if part == "all" else (part,),
        reduction=reduction,
        evaluations=evaluations,
        workers=workers,
    )
    page = run_command(options, _console(), _console(stderr=True))
    click.echo(f"\nWritten to {page}")


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console  # noqa: PLC0415  # slow to import

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)
