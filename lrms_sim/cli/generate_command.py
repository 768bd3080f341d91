"""The command `lrms-sim generate`. What is slow to import is imported where it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrms_sim.cli.log_options import FILE, PROCESSORS, check_outputs, user_errors, writing
from lrms_sim.cli.running import SEED_MAX
from lrms_sim.util.option_fields import FloatRange
from lrms_sim.util.version import __version__

if TYPE_CHECKING:
    from lrms_sim.workload.jobs import JobTable

JOBS_MAX = 2**31 - 2


@click.command()
@click.option("--processors", type=PROCESSORS, required=True, metavar="N", help="Machine size.")
@click.option("--jobs", type=click.IntRange(0, JOBS_MAX), metavar="N", help="Number of jobs.")
@click.option(
    "--days",
    type=FloatRange(0, min_open=True),
    metavar="D",
    help="Days in which jobs are submitted, instead of --jobs.",
)
@click.option(
    "--load",
    type=FloatRange(0, min_open=True),
    metavar="L",
    help="Work per processor and second until the last submission, such as 0.8.  "
    "[default: what the model gives]",
)
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=0, show_default=True)
@click.option(
    "-o", "--output", type=FILE, required=True, metavar="FILE", help="The log: .swf, .swf.gz."
)
def generate(
    *,
    processors: int,
    jobs: int | None,
    days: float | None,
    load: float | None,
    seed: int,
    output: Path,
) -> None:
    """Generate a log.

    Jobs are drawn from the model of Lublin and Feitelson (2003), with requested times and users
    added. The same options always give the same file.

    \b
    Examples:
      lrms-sim generate --processors 256 --jobs 20000 --seed 7 -o synthetic.swf
      lrms-sim generate --processors 1024 --days 150 --load 0.7 -o synthetic.swf.gz
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    if (jobs is None) == (days is None):
        raise click.UsageError("one of --jobs and --days is needed, and not both")
    check_outputs([output])
    from lrms_sim.workload import lublin  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.workload.swf import SwfHeader, write_swf  # noqa: PLC0415  # same

    with user_errors():
        table = lublin.generate(
            processors,
            seed=seed,
            jobs=jobs,
            duration=None if days is None else days * 86400.0,
            load=load,
        )
    header = SwfHeader.from_fields(
        {
            "Version": 2.2,
            "Computer": "none; generated with the model of Lublin and Feitelson",
            "MaxJobs": len(table),
            "MaxRecords": len(table),
            "MaxProcs": processors,
            "Note": f"lrms-sim {__version__} generate --seed {seed}"
            + ("" if load is None else f" --load {load:g}"),
        }
    )
    with writing(output):
        write_swf(output, table, header)
    click.echo(f"{len(table):,} jobs over {_span_days(table):.1f} days written to {output}")


def _span_days(jobs: "JobTable") -> float:
    return float(jobs.submit_time[-1] - jobs.submit_time[0]) / 86400.0 if len(jobs) else 0.0
