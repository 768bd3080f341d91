"""The command `grms deputy`.

Everything heavy is imported by what needs it, so that help and errors come at once.
"""

import os
from pathlib import Path

import click

from grms.cli.site_connection import site_option
from lrms_sim.util.messages import printable
from lrms_sim.util.option_fields import FloatRange


@click.command(short_help="Submit one's jobs to the batch system as oneself, as the site says.")
@site_option
@click.option(
    "--programs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of sbatch, scontrol and scancel.  [default: the system's folders of programs]",
)
@click.option(
    "--idle",
    "idle_s",
    type=FloatRange(0, min_open=True),
    help="End after so many seconds without an order, if no job of yours is unfinished.  [default: never]",
)
def deputy(socket: Path, *, programs: Path | None, idle_s: float | None) -> None:
    """Submit, release and cancel your jobs as you, as the site says.

    At a site whose file has lrms.own_jobs = "by-client" the daemon has no right to act as its users. This process, which
    runs as you, does it: it runs sbatch, scontrol and scancel about your jobs, and nothing else. Without it your jobs
    wait, and `grms jobs` says so; once it is there they go on. Jobs that have begun do not need it.

    `grms submit` and `grms cancel` start one by themselves, which ends ten minutes after your last job. Have one for
    good with systemd (grms examples hanse-deputy.service). A later one takes the place of an earlier one.
    """
    import asyncio  # noqa: PLC0415  # see the module's docstring

    from grms.client.deputy import Deputy, programs_here  # noqa: PLC0415  # same

    def tell(text: str) -> None:
        click.echo(printable(text))

    runner = programs_here(os.environ, None if programs is None else str(programs))
    asyncio.run(Deputy(socket, runner, tell=tell, idle_s=idle_s).run())
