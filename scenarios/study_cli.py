"""The commands `scenario study …`."""

from pathlib import Path

import click

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
