"""The commands `scenario paper …`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrms_sim.commandline.running import open_console
from lrms_sim.commandline.values import ParamType

if TYPE_CHECKING:
    pass

SEEDS_MAX = 100
"""Most seeds of one study."""


class _Seeds(ParamType[tuple[int, ...]]):
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
    Systems" (JSSPP 2009), and what the paper leaves open: learning with a penalty for what
    partners lose, and EASY queues at every site.

    Needs the logs kth, ctc, sdsc05 and sdsc00. It trains 30 policies as the paper does and 54
    more, which takes three quarters of an hour on two cores; after Ctrl-C the same command goes
    on. --shipped is done in half a minute.
    """  # noqa: D205  # click takes the first paragraph as the summary
    from grms.learning.session import TrainingInterrupted  # noqa: PLC0415  # slow to import
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
        page = run_command(options, open_console(), open_console(stderr=True))
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}; the same command goes on from there", err=True)
        raise click.Abort from interruption
    click.echo(f"\nWritten to {page}")


class _Sizes(ParamType[tuple[int, ...]]):
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
    "--evaluations",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    help="Schedules of each run: the same on every machine.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    help="Of each run, instead of schedules; the paper's are 180. What comes of it depends on who else works "
    "on the machine.",
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
    seconds: float | None,
    evaluations: int,
    sizes: tuple[int, ...],
    part: str,
    reduction: float,
    complete: bool,
    workers: int | None,
) -> None:
    """Table 4.1 and Figures 4.1 to 4.5 of "Fast Multi-Objective Rescheduling of Workflows to
    Constrained Resources Using Heuristics and Memetic Evolution" (2010).

    32 rescheduling events, and a sweep over loads in four classes, with both memetic variants and
    our own, beside what the paper says. As it stands it takes some minutes; after Ctrl-C the same
    command goes on.
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
    page = run_command(options, open_console(), open_console(stderr=True))
    click.echo(f"\nWritten to {page}")


@paper.command("utility-scheduling")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out", "utility-scheduling"),
    show_default=True,
    help="Folder for runs, figures and page.",
)
@click.option(
    "--experiments",
    type=click.IntRange(2, 10_000),
    default=50,
    show_default=True,
    help="Of Figures 2, 3 and 5; the paper's are 50.",
)
@click.option(
    "--sweep",
    type=click.IntRange(2, 10_000),
    default=30,
    show_default=True,
    help="Experiments at each rate of Figure 4.",
)
@click.option(
    "--reachable",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    help="Experiments at each rate for the table of other policies; 0 leaves it out.",
)
@click.option("--no-logs", is_flag=True, help="Leave recorded logs out.")
@click.option("--workers", type=click.IntRange(1, 256), help="[default: one a processor]")
def utility_scheduling(
    *,
    output: Path,
    experiments: int,
    sweep: int,
    reachable: int,
    no_logs: bool,
    workers: int | None,
) -> None:
    """Figures 2 to 5 of "A Reinforcement Learning Framework for Utility-Based Scheduling in
    Resource-Constrained Systems", under three readings of its text.

    Beside them every statement of the paper with what was measured, other policies on the same
    jobs, and all of them on the logs kth, ctc and sdsc05, where these are there, alone and in
    exchange. It takes less than a minute on two cores; after Ctrl-C the same command goes on.
    """  # noqa: D205  # click takes the first paragraph as the summary
    from scenarios.papers.utility_scheduling.command import run_command  # noqa: PLC0415  # slow
    from scenarios.papers.utility_scheduling.study import StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        folder=output,
        experiments=experiments,
        sweep=sweep,
        reachable=reachable,
        logs=not no_logs,
        workers=workers,
    )
    page = run_command(options, open_console(), open_console(stderr=True))
    click.echo(f"\nWritten to {page}")


def _strategy_study(command: Callable[..., None]) -> Callable[..., None]:
    """Adds what both studies on strategies of one machine take."""
    for option in reversed(
        (
            click.option(
                "--output",
                type=click.Path(path_type=Path),
                help="Folder for strategies, figures and page.  [default: out/ and the study's name]",
            ),
            click.option("--seeds", type=_Seeds(), default=(1, 2, 3), help="[default: 1-3]"),
            click.option(
                "--generations",
                type=click.IntRange(1, 100_000),
                default=6,
                show_default=True,
                help="Of each search of criteria; of rules a third of them.",
            ),
            click.option(
                "--start",
                type=click.Choice(["constant", "random"]),
                default="constant",
                show_default=True,
                help="Whether criteria begin with a constant order of groups among them; random: the papers'.",
            ),
            click.option(
                "--logs",
                type=click.Choice(["ctc", "kth", "sdsc00"]),
                multiple=True,
                help="Only these; may be given several times.",
            ),
            click.option(
                "--front",
                type=click.IntRange(0, 100_000),
                default=10,
                show_default=True,
                help="Generations of NSGA-II on a key for each user; 0 leaves it out.",
            ),
            click.option(
                "--complete",
                is_flag=True,
                help="The papers' effort: whole logs on 1,024 processors, 100 generations; many hours.",
            ),
            click.option(
                "--workers", type=click.IntRange(1, 10_000), help="[default: one a processor]"
            ),
        )
    ):
        command = option(command)
    return command


@paper.command("greedy-criteria")
@_strategy_study
def greedy_criteria(**chosen: Any) -> None:
    """Table III and Figures 1 to 5 of "Greedy Scheduling with Custom-made Objectives" (2007).

    Learns the criteria f1 to f4 on the first jobs of the logs ctc, kth and sdsc00, and judges
    them on all later jobs, beside constant orders of user groups. After Ctrl-C the same command
    goes on.
    """
    _run_strategy_study("greedy-criteria", chosen)


@paper.command("genetic-fuzzy")
@_strategy_study
def genetic_fuzzy(**chosen: Any) -> None:
    """Tables 3 and 4, Figures 4 to 7 of "Genetic Fuzzy Systems applied to Online Job Scheduling"
    (2007).

    Searches tables by the iterative method, evolves rules by symbiotic evolution, and judges
    both on all later jobs, beside constant orders of user groups. After Ctrl-C the same command
    goes on.
    """  # noqa: D205  # click takes the first paragraph as the summary
    _run_strategy_study("genetic-fuzzy", chosen)


def _run_strategy_study(name: str, chosen: dict[str, Any]) -> None:
    from grms.learning.session import TrainingInterrupted  # noqa: PLC0415  # slow to import
    from scenarios.papers.queue_strategies.command import run_command  # noqa: PLC0415  # same
    from scenarios.papers.queue_strategies.reference import LOGS  # noqa: PLC0415  # same
    from scenarios.papers.queue_strategies.study import StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        paper=name,
        folder=chosen["output"] or Path("out", name),
        seeds=chosen["seeds"],
        generations=100 if chosen["complete"] else chosen["generations"],
        start=chosen["start"],
        scaled=chosen["complete"],
        logs=chosen["logs"] or tuple(log.key for log in LOGS),
        front=chosen["front"],
        workers=chosen["workers"],
    )
    try:
        page = run_command(options, open_console(), open_console(stderr=True))
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}; the same command goes on from there", err=True)
        raise click.Abort from interruption
    click.echo(f"\nWritten to {page}")
