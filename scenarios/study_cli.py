"""The commands `scenario study …`."""

from pathlib import Path
from typing import Any

import click

from grms.learning.run_options import worker_options, workers_of
from lrms_sim.commandline.running import open_console

_PARTS = ("grids", "rogues", "jitter", "adoption", "headroom")


@click.group()
def study() -> None:
    """Run experiments of our own, and show them beside what others have measured."""


@study.command("nobody-loses")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out", "nobody-loses"),
    show_default=True,
    help="Folder for replays, figures and page.",
)
@click.option(
    "--part",
    "parts",
    type=click.Choice(_PARTS),
    multiple=True,
    help="Only this; may be given several times.  [default: all]",
)
@click.option(
    "--draws",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Random shifts of arrivals for each federation.",
)
@click.option(
    "--complete",
    is_flag=True,
    help="Rogues under every policy, and four random shifts in both windows.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="[default: one a processor]")
def nobody_loses(
    *, output: Path, parts: tuple[str, ...], draws: int, complete: bool, workers: int | None
) -> None:
    """Whether exchange hurts a site: policies, grids, disciplines, months, rogues, chance.

    Replays the logs kth, ctc, sdsc05 and sdsc00, which it needs, in all grids of two to four
    sites, and puts what comes of it beside the figures of an independent program. It takes some ten minutes
    on two cores; after Ctrl-C the same command goes on.
    """
    from scenarios.papers.nobody_loses.command import run_command  # noqa: PLC0415  # slow
    from scenarios.papers.nobody_loses.study import PARTS, StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        folder=output,
        parts=tuple(part for part in PARTS if part in parts or not parts),
        draws=max(draws, 4) if complete else draws,
        complete=complete,
        workers=workers,
    )
    page = run_command(options, open_console(), open_console(stderr=True))
    click.echo(f"\nWritten to {page}")


@study.command("questions-and-delays")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out", "questions-and-delays"),
    show_default=True,
    help="Folder for replays, figures and page.",
)
@click.option(
    "--draws",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="With delays: of the days, the clocks and the late answers.",
)
@click.option(
    "--complete", is_flag=True, help="Five draws at least, and two of half a year for each site."
)
@worker_options(executor="processes", does="replays")
def questions_and_delays(*, output: Path, draws: int, complete: bool, **chosen: Any) -> None:
    """What it does to the gain how many partners are asked, how long messages take, and clocks apart.

    Replays spans of the logs kth, ctc and sdsc05, which it needs, with EASY and FCFS, with rounds and
    without, and holds statements against what comes of it. It takes some five minutes on two
    cores, --complete an hour; after Ctrl-C the same command goes on.
    """
    from scenarios.papers.questions_and_delays.command import run_command  # noqa: PLC0415  # slow
    from scenarios.papers.questions_and_delays.study import StudyOptions  # noqa: PLC0415  # same

    options = StudyOptions(
        folder=output,
        draws=max(draws, 5) if complete else draws,
        half_year_draws=2 if complete else 0,
        workers=workers_of(chosen),
    )
    page = run_command(options, open_console(), open_console(stderr=True))
    click.echo(f"\nWritten to {page}")
