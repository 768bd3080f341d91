"""What `lrms-sim run` knows of repetitions with shifted arrivals: its options, and the replays."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from lrms_sim.disciplines import Discipline
    from lrms_sim.jobs import JobTable
    from lrms_sim.run_report import Repetitions

_Command = TypeVar("_Command", bound=Callable[..., object])

SHIFT_DEFAULT = 60.0
"""Largest shift where none is said, seconds."""


def repeat_options(command: _Command) -> _Command:
    """Adds the options of a command that replays with shifted arrivals."""
    for option in reversed(
        (
            click.option(
                "--repeat",
                type=click.IntRange(2, 10_000),
                metavar="N",
                help="Replay N times with shifted arrivals too; print means with 95 % confidence.",
            ),
            click.option(
                "--shift-arrivals",
                type=click.FloatRange(0, 1e9),
                metavar="S",
                help="Largest shift of an arrival for --repeat, seconds.  [default: 60]",
            ),
            click.option(
                "--seed",
                type=click.IntRange(0, 2**63 - 1),
                metavar="N",
                help="Of the shifts.  [default: 0]",
            ),
        )
    ):
        command = option(command)
    return command


def repeated(  # noqa: PLR0917  # as the options are
    jobs: "JobTable",
    processors: int,
    queue: "Discipline",
    repeat: int | None,
    seconds: float | None,
    seed: int | None,
) -> "Repetitions | None":
    """Returns what the options ask for; None where they ask for nothing.

    Args:
        jobs: the workload.
        processors: size of the machine.
        queue: its discipline.
        repeat: how often, or None.
        seconds: largest shift, or None.
        seed: of the shifts, or None.

    Raises:
        click.UsageError: the options contradict each other.
        ValueError: as for `lrms_sim.robustness.figures`.
    """
    if repeat is None:
        if seconds is not None or seed is not None:
            raise click.UsageError("--shift-arrivals and --seed go with --repeat")
        return None
    from lrms_sim.robustness import figures  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.run_report import Repetitions  # noqa: PLC0415  # same

    most = SHIFT_DEFAULT if seconds is None else seconds
    found = figures(jobs, processors, queue, repeat=repeat, seconds=most, seed=seed or 0)
    return Repetitions(repeat, most, found)
