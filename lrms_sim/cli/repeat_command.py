"""What `lrms-sim run` knows of repetitions with shifted arrivals: its options, and the replays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lrms_sim.util.option_fields import option
from lrms_sim.util.values import FloatRange

if TYPE_CHECKING:
    from lrms_sim.analysis.counted import Counted
    from lrms_sim.report.run_report import Repetitions
    from lrms_sim.scheduling.disciplines import Discipline
    from lrms_sim.workload.jobs import JobTable

SHIFT_DEFAULT = 60.0
"""Largest shift by default, seconds."""


@dataclass(frozen=True, slots=True)
class RepeatOptions:
    """How a replay is repeated with shifted arrivals.

    Attributes:
        repeat: how often; `None` for not at all.
        shift_arrivals: largest shift, seconds; `None` for `SHIFT_DEFAULT`.
        seed: of the shifts; `None` for 0.
    """

    repeat: int | None = option(
        "Replay N times with shifted arrivals too; print means with 95 % confidence.",
        default=None,
        type=click.IntRange(2, 10_000),
        metavar="N",
    )
    shift_arrivals: float | None = option(
        "Largest shift of an arrival for --repeat, seconds.  [default: 60]",
        default=None,
        type=FloatRange(0, 1e9),
        metavar="S",
    )
    seed: int | None = option(
        "Of the shifts.  [default: 0]", default=None, type=click.IntRange(0, 2**63 - 1), metavar="N"
    )


def repeated(
    jobs: "JobTable",
    processors: int,
    queue: "Discipline",
    options: RepeatOptions,
    *,
    counted: "Counted",
    tau: float,
) -> "Repetitions | None":
    """Runs the repetitions that the options ask for; `None` if they ask for none.

    Raises:
        click.UsageError: the options contradict each other.
        ValueError: as for `lrms_sim.analysis.samples.figures`.
    """
    repeat, seconds, seed = options.repeat, options.shift_arrivals, options.seed
    if repeat is None:
        if seconds is not None or seed is not None:
            raise click.UsageError("--shift-arrivals and --seed go with --repeat")
        return None
    from lrms_sim.analysis.samples import figures  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.report.run_report import Repetitions  # noqa: PLC0415  # same

    most = SHIFT_DEFAULT if seconds is None else seconds
    found = figures(
        jobs,
        processors,
        queue,
        repeat=repeat,
        seconds=most,
        seed=seed or 0,
        counted=counted,
        tau=tau,
    )
    return Repetitions(repeat, most, found)
