"""Options of commands that evaluate much: workers, and resuming after Ctrl-C.

Nothing here is slow to import, so that `--help` is fast.
"""

import shlex
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lrms_sim.cli.running import EXIT_INTERRUPTED
from lrms_sim.util.option_fields import taken
from lrms_sim.util.workers import Workers

if TYPE_CHECKING:
    from grms.learning.training import TrainingInterrupted


def workers_of(chosen: dict[str, Any]) -> Workers:
    """Removes the workers' options from `chosen`, and returns the workers.

    Raises:
        click.UsageError: there is a scheduler for another executor, or a number is out of its
            bounds.
    """
    if chosen["scheduler"] is not None and chosen["executor"] != "dask":
        raise click.UsageError("--scheduler goes with --executor dask")
    try:
        return Workers(**taken(Workers, chosen))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def end_interrupted(interruption: "TrainingInterrupted") -> NoReturn:
    """Ends a command after Ctrl-C, and says how to resume."""
    from grms.learning.training import command_to_resume  # noqa: PLC0415  # slow

    context = click.get_current_context()
    click.echo(f"\n{interruption}", err=True)
    if interruption.resumable:
        again = shlex.join(["grms", *command_to_resume(context.obj or ())])
        click.echo(f"go on with: {again}", err=True)
    context.exit(EXIT_INTERRUPTED)
