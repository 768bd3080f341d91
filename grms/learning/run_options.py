"""What commands that evaluate much have in common: when it is enough, who evaluates, and how to go on after Ctrl-C.

It imports nothing that is slow, so that `--help` answers at once.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from lrms_sim.commandline.running import EXIT_INTERRUPTED, SEED_MAX

if TYPE_CHECKING:
    from grms.learning.session import Limits, TrainingInterrupted, Workers

_Command = TypeVar("_Command", bound=Callable[..., Any])

EXECUTORS: Final = ("threads", "processes", "dask")


def _all_of(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    def given(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return given


def limit_options(*, generations: str, target: str) -> Callable[[_Command], _Command]:
    """Gives a command the seed, and options that say when it is enough.

    Args:
        generations: after how many it stops where nobody says, in words.
        target: what it can stop at.
    """
    return _all_of(
        click.option("--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True),
        click.option(
            "--generations", type=int, help=f"Stop after so many.  [default: {generations}]"
        ),
        click.option("--evaluations", type=int, help="Stop after so many."),
        click.option(
            "--time-limit", type=float, metavar="SECONDS", help="Stop after so much time."
        ),
        click.option("--stagnation", type=int, help="Stop after so many generations without gain."),
        click.option("--target", type=float, help=f"Stop at this {target}."),
    )


def limits_of(chosen: Mapping[str, Any]) -> "Limits":
    """Returns what was said by `limit_options`.

    Raises:
        ValueError: a limit is out of its bounds.
    """
    from grms.learning.session import Limits  # noqa: PLC0415  # slow

    names = ("generations", "evaluations", "time_limit", "stagnation", "target")
    return Limits(*(chosen[name] for name in names))


def worker_options(
    *, executor: str = EXECUTORS[0], does: str = "evaluates"
) -> Callable[[_Command], _Command]:
    """Gives a command options that say who does its work.

    Args:
        executor: the default.
        does: what they do, for the help.
    """
    return _all_of(
        click.option(
            "--executor",
            type=click.Choice(EXECUTORS),
            default=executor,
            show_default=True,
            help=f"Who {does}; the result is the same.",
        ),
        click.option("--workers", type=int, help="How many.  [default: one for each processor]"),
        click.option(
            "--scheduler", metavar="ADDRESS", help="Of a dask scheduler, tcp://HOST:PORT."
        ),
    )


def workers_of(chosen: Mapping[str, Any]) -> "Workers":
    """Returns what was said by `worker_options`.

    Raises:
        click.UsageError: there is a scheduler for another executor, or a number is out of its bounds.
    """
    from grms.learning.session import Workers  # noqa: PLC0415  # slow

    if chosen["scheduler"] is not None and chosen["executor"] != "dask":
        raise click.UsageError("--scheduler goes with --executor dask")
    try:
        return Workers(chosen["executor"], chosen["workers"], chosen["scheduler"])
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def end_interrupted(interruption: "TrainingInterrupted") -> NoReturn:
    """Ends the command that Ctrl-C has ended, and says how to go on."""
    from grms.learning.session import command_to_resume  # noqa: PLC0415  # slow

    context = click.get_current_context()
    click.echo(f"\n{interruption}", err=True)
    if interruption.resumable:
        again = shlex.join(["grms", *command_to_resume(context.obj or ())])
        click.echo(f"go on with: {again}", err=True)
    context.exit(EXIT_INTERRUPTED)
