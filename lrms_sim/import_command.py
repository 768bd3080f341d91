"""The command `lrms-sim import`: accounting files of batch systems as logs."""

from pathlib import Path

import click

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("import")
@click.argument("kind", type=click.Choice(["sacct", "pbs"]))
@click.argument("file", type=_FILE)
@click.option(
    "-o", "--output", type=_FILE, required=True, metavar="FILE", help="The log: .swf, .swf.gz."
)
@click.option(
    "--time-zone",
    metavar="NAME",
    default="UTC",
    show_default=True,
    help="Of the site, for times that sacct prints without one: as Europe/Stockholm.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Number users in a random order, and do not say when the log began.",
)
def import_log(kind: str, file: Path, *, output: Path, time_zone: str, anonymous: bool) -> None:
    """Make a log of a batch system's accounting.

    FILE, plain or gzip-compressed, is what sacct --parsable2 prints, or an accounting file of PBS.
    Names of users, groups and queues become numbers. Every rule that was used is counted.

    \b
    Examples:
      sacct -P -a -S 2024-01-01 -o JobID,User,Group,Partition,Submit,Start,End,Timelimit,AllocCPUS,ReqCPUS,State > jobs.txt
      lrms-sim import sacct jobs.txt -o jobs.swf.gz --time-zone Europe/Stockholm
      lrms-sim run jobs.swf.gz --processors 512 --discipline easy
    """  # noqa: D301  # click's mark for a block that is not wrapped
    import gzip  # noqa: PLC0415  # help and errors come at once

    import numpy as np  # noqa: PLC0415  # same

    from lrms_sim.accounting import RULES, import_lines  # noqa: PLC0415  # same
    from lrms_sim.situations import zone_named  # noqa: PLC0415  # same
    from lrms_sim.swf import write_swf  # noqa: PLC0415  # same
    from lrms_sim.text_files import replacing  # noqa: PLC0415  # same

    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8", errors="replace") as lines:
            found = import_lines(
                kind,
                lines,
                name=str(file),
                zone=zone_named(time_zone),
                rng=np.random.default_rng() if anonymous else None,
            )
        if not len(found.log):
            left = "; ".join(f"{count:,} {RULES[rule]}" for rule, count in found.counts.items())
            raise click.ClickException(f"{file} has no job that has ended" + (left and f": {left}"))
        with replacing(output) as temporary:
            write_swf(temporary, found.log)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    users = len(set(found.log.user.tolist()) - {-1})
    click.echo(f"{len(found.log):,} jobs of {users:,} users written to {output}")
    for rule, count in found.counts.items():
        click.echo(f"{count:>12,}  {RULES[rule]}")
