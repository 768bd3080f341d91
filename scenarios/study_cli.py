"""The commands `scenario study …`."""

from dataclasses import replace
from typing import Any

import click

from grms.learning.run_options import worker_options, workers_of
from scenarios.papers.nobody_loses.options import PARTS
from scenarios.papers.nobody_loses.options import StudyOptions as ExchangeOptions
from scenarios.papers.options import run_and_tell, takes
from scenarios.papers.questions_and_delays.options import StudyOptions as DelayOptions


@click.group()
def study() -> None:
    """Run experiments of our own, and show them beside what others have measured."""


@study.command("nobody-loses")
@takes(ExchangeOptions, "folder", "parts", "draws", "complete", "workers")
def nobody_loses(*, parts: tuple[str, ...], **chosen: Any) -> None:
    """Whether exchange hurts a site: policies, grids, disciplines, months, rogues, chance.

    Replays the logs kth, ctc, sdsc05 and sdsc00, which it needs, in all grids of two to four
    sites, and puts what comes of it beside the figures of an independent program. It takes some ten minutes
    on two cores; after Ctrl-C the same command goes on.
    """
    from scenarios.papers.nobody_loses.command import run_command  # noqa: PLC0415  # slow

    options = ExchangeOptions(**chosen, parts=tuple(part for part in PARTS if part in parts))
    if options.complete:
        options = replace(options, draws=max(options.draws, 4))
    run_and_tell(run_command, options)


@study.command("questions-and-delays")
@takes(
    DelayOptions,
    "folder",
    "draws",
    click.option(
        "--complete",
        is_flag=True,
        help="Five draws at least, and two of half a year for each site.",
    ),
    worker_options(executor="processes", does="replays"),
)
def questions_and_delays(*, complete: bool, **chosen: Any) -> None:
    """What it does to the gain how many partners are asked, how long messages take, and clocks apart.

    Replays spans of the logs kth, ctc and sdsc05, which it needs, with EASY and FCFS, with rounds and
    without, and holds statements against what comes of it. It takes some five minutes on two
    cores, --complete an hour; after Ctrl-C the same command goes on.
    """
    from scenarios.papers.questions_and_delays.command import run_command  # noqa: PLC0415  # slow

    options = DelayOptions(chosen["folder"], chosen["draws"], workers=workers_of(chosen))
    if complete:
        options = replace(options, draws=max(options.draws, 5), half_year_draws=2)
    run_and_tell(run_command, options)
