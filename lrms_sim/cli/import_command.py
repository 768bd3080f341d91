"""The commands `lrms-sim import` and `export`: logs of other programs' files, and the other way."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from lrms_sim.cli.log_options import (
    EXIT_NOTHING,
    FILE,
    LOG,
    PROCESSORS,
    check_outputs,
    located_log,
    preparation_options,
    processors_of,
    read_log,
    user_errors,
    writing,
)
from lrms_sim.util.messages import listed, printable, share, unknown
from lrms_sim.util.option_fields import FloatRange
from lrms_sim.util.plugins import IMPORTER_GROUP, plugin_names
from lrms_sim.workload.preparation_report import LOSSY_SHARE

if TYPE_CHECKING:
    from lrms_sim.workload.accounting.records import Import
    from lrms_sim.workload.accounting.table import Layout
    from lrms_sim.workload.requests import Request
    from lrms_sim.workload.swf_log import SwfLog

PUBLISHED: Final = (
    *("f-data", "pm100", "eagle", "helios"),
    *("alibaba-2018", "alibaba-2020", "alibaba-2023", "alibaba-2025"),
)
"""Tables whose columns are known; the same as those of `lrms_sim.workload.accounting.published`."""

KINDS = (
    *("sacct", "pbs", "gridengine", "lsf", "htcondor", "oar", "cobalt", "gwf", "batsim", "table"),
    *PUBLISHED,
    *("philly", "frontier"),
)
_SITES_SHOWN = 20

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # click 8.1 has no parameter of its type


class _Kind(_Choice):
    """A format that is read here, or one of a plugin."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the format; fails with all that there are."""
        if value in self.choices:
            return str(value)
        plugins = plugin_names(IMPORTER_GROUP)
        if value not in plugins:
            self.fail(unknown("format", value, [*self.choices, *plugins]), param, ctx)
        return str(value)


@click.command("import")
@click.argument("kind", type=_Kind(KINDS), metavar="FORMAT")
@click.argument("file", type=LOG)
@click.option(
    "-o", "--output", type=FILE, required=True, metavar="FILE", help="The log: .swf, .swf.gz."
)
@click.option(
    "--requests",
    type=FILE,
    metavar="CSV",
    help="Write what jobs ask for that a log cannot say: nodes, GPUs, features, licences.",
)
@click.option(
    "--time-zone",
    metavar="NAME",
    default="UTC",
    show_default=True,
    help="Of the site, for times without one: as Europe/Stockholm, +01:00 or 3600.",
)
@click.option(
    "--unreadable",
    type=click.Choice(["drop", "error"]),
    default="drop",
    show_default=True,
    help="Lines that cannot be read: leave out and count, or stop at the first.",
)
@click.option(
    "--format",
    "columns",
    metavar="NAMES",
    help="Columns of a file of sacct, or of a table, without the line of names: A,B,C.",
)
@click.option(
    "--column",
    "named",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Of a table: the column of a field, a number, or a product of such; once for each field. Of a published trace: another one than that of its name.",
)
@click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="[FIELD=]UNIT",
    help="Of times in a table that are numbers: ns, us, ms, s, min, h, d.  [default: s]",
)
@click.option(
    "--time-format",
    metavar="FORMAT",
    help="Of dates in a table, as %m/%d/%Y %H:%M.  [default: ISO 8601]",
)
@click.option(
    "--delimiter", metavar="C", help="Of a table as CSV.  [default: as in its first line]"
)
@click.option(
    "--site", metavar="NAME", help="Only jobs that ran there, of a gwf or a table of several."
)
@click.option(
    "--flops",
    type=FloatRange(0, min_open=True),
    metavar="N",
    help="Operations a second of a processor, for jobs of batsim that say their work and no time.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Number users in a random order, and do not say when the log began.",
)
def import_log(
    kind: str,
    file: Path,
    *,
    output: Path,
    requests: Path | None,
    site: str | None,
    **options: Any,
) -> None:
    """Convert accounting data or another workload to a log.

    FORMAT is sacct, pbs, gridengine, lsf, htcondor, oar, cobalt, gwf, batsim or table, or the name of a published trace: f-data,
    pm100, eagle, helios, philly, frontier, alibaba-2018, alibaba-2020, alibaba-2023 or alibaba-2025 (docs/how-to/published-tables.md says what
    their columns are taken for). Plugins may add formats.

    FILE is what sacct --parsable2 or --json prints, an accounting file of PBS or Grid Engine, lsb.acct of LSF, what
    condor_history -long, -json or -xml prints, an event log of HTCondor as text, JSON or XML, what oarstat -J
    prints, records or tables of Cobalt, a log of the Grid Workloads Archive, a workload of Batsim, the file of a published trace, or any table as CSV or Parquet; plain or packed (gzip, bzip2, xz, zip), or - for standard input.
    Names of users, groups and queues become numbers. Every rule that was used is counted, and so is every
    line that cannot be read.

    \b
    Examples:
      sacct -P -a -S 2024-01-01 -o JobID,User,Group,Partition,Submit,Start,End,Timelimit,AllocCPUS,ReqCPUS,State > jobs.txt
      lrms-sim import sacct jobs.txt -o jobs.swf.gz --time-zone Europe/Stockholm
      lrms-sim import gwf anon_jobs.gwf -o fs0.swf.gz --site fs0
      lrms-sim import pm100 job_table.parquet -o pm100.swf.gz --requests pm100.csv
      lrms-sim import table jobs.csv -o jobs.swf --column submit_time=submitted --column run_time=elapsed --column processors=cores
      lrms-sim run jobs.swf.gz --processors 512 --discipline easy
    \b
    For a machine of nodes (add AllocTRES,ReqTRES,ReqMem,NNodes,Constraints to the columns of sacct):
      lrms-sim import sacct jobs.txt -o jobs.swf.gz --requests jobs.csv
      lrms-sim import table pods.csv -o pods.swf --requests pods.requests.csv --column processors=cpu_milli/1000 --column memory_mib=memory --column memory_per=node --column nodes_max=1 --column gpus=num_gpu --column submit_time=created --column start_time=started --column end_time=ended
      lrms-sim run jobs.swf.gz --nodes machine.toml --requests jobs.csv --discipline easy
    """  # noqa: D301  # click's mark for a block that is not wrapped
    for option, kinds in _ONLY.items():
        if {**options, "site": site}[option] and kind not in kinds:
            name = _SPELLED.get(option, f"--{option.replace('_', '-')}")
            raise click.UsageError(f"{name} is for {listed(kinds)} alone, not for {kind}")
    from lrms_sim.util.log_files import shown_name  # noqa: PLC0415  # same
    from lrms_sim.workload.request_files import write_requests  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.workload.swf import write_swf  # noqa: PLC0415  # same

    check_outputs([output, requests], [file])
    name = shown_name(file)
    try:
        found = _found(kind, file, name, site, options)
        if not len(found.log):
            raise click.ClickException(f"{name} has no job {_nothing(found, site)}")
        write_swf(output, found.log)
        rows = 0
        if requests is not None:
            asked = zip(found.log.job_id.tolist(), found.requests, strict=True)
            rows = write_requests(requests, asked)
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or name}: {error.strerror or error}"
        ) from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    users = len(set(found.log.user.tolist()) - {-1})
    click.echo(f"{len(found.log):,} jobs of {users:,} users written to {output}")
    _show_requests(found, requests, rows)
    _show_rules(found)
    if site is None and len(found.sites) > 1:
        click.echo(f"They ran at {len(found.sites):,} sites; --site takes those of one:")
        for place, count in list(found.sites.items())[:_SITES_SHOWN]:
            click.echo(f"{count:>12,}  {printable(place)}")


_ONLY: Final = {
    "site": ("gwf", "table"),
    "flops": ("batsim",),
    "columns": ("sacct", "table"),
    **dict.fromkeys(("named", "units"), ("table", *PUBLISHED)),
    **dict.fromkeys(("time_format", "delimiter"), ("table",)),
}
"""Kinds of files that an option is for."""

_SPELLED: Final = {"columns": "--format", "named": "--column", "units": "--unit"}


def _found(
    kind: str, file: Path, name: str, site: str | None, options: Mapping[str, Any]
) -> "Import":
    import numpy as np  # noqa: PLC0415  # help and errors come at once

    from lrms_sim.scheduling.situations import zone_named  # noqa: PLC0415  # same
    from lrms_sim.util.log_files import lines_of  # noqa: PLC0415  # same
    from lrms_sim.workload.accounting.batsim import read_workload  # noqa: PLC0415  # same
    from lrms_sim.workload.accounting.importing import import_lines, import_table  # noqa: PLC0415  # same
    from lrms_sim.workload.accounting.records import AccountingError  # noqa: PLC0415  # same

    how: dict[str, Any] = {
        "name": name,
        "unreadable": options["unreadable"],
        "rng": np.random.default_rng() if options["anonymous"] else None,
    }
    zone = zone_named(options["time_zone"])
    if kind in ("table", *PUBLISHED):
        return import_table(file, _layout(kind, options), zone=zone, site=site, **how)
    lines = lines_of(file, lambda text: AccountingError(f"{name}: {text}"))
    if kind == "batsim":
        return read_workload("\n".join(lines), speed=options["flops"], **how)
    columns = (options["columns"] or "").split(",") if options["columns"] else ()
    return import_lines(kind, lines, zone=zone, site=site, columns=columns, **how)


def _layout(kind: str, options: Mapping[str, Any]) -> "Layout":
    from lrms_sim.workload.accounting.published import layout_of  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.workload.accounting.table import MOMENTS, SPANS, Layout  # noqa: PLC0415  # same

    columns: dict[str, str] = {}
    for text in options["named"]:
        field, sign, column = text.partition("=")
        if not sign or not column:
            raise click.BadParameter(f"{text!r} is not FIELD=COLUMN", param_hint="--column")
        columns[field.strip()] = column.strip()
    units: dict[str, str] = {}
    for text in options["units"]:
        field, _, unit = text.rpartition("=")
        units |= dict.fromkeys((field,) if field else (*MOMENTS, *SPANS), unit)
    if kind != "table":
        return layout_of(kind, columns, units)
    names = tuple(options["columns"].split(",")) if options["columns"] else ()
    delimiter = options["delimiter"]
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if delimiter is not None and len(delimiter) != 1:
        raise click.BadParameter(f"{delimiter!r} is not one character", param_hint="--delimiter")
    return Layout(columns, names, delimiter, units, options["time_format"])


def _nothing(found: "Import", site: str | None) -> str:
    """Returns why there is no job."""
    from lrms_sim.workload.accounting.records import RULES  # noqa: PLC0415  # help and errors come at once

    if site is not None and site not in found.sites:
        names = [printable(name) for name in list(found.sites)[:_SITES_SHOWN]]
        return f"of site {site}; it names {', '.join(names) or 'no site'}"
    left = "; ".join(
        f"{count:,} {RULES[rule]}{_example(found, rule)}" for rule, count in found.counts.items()
    )
    return "that has ended" + (left and f": {left}")


def _example(found: "Import", rule: str) -> str:
    """Returns the first line that a rule left out, and why, for rules on unreadable lines."""
    example = found.examples.get(rule)
    if example is None:
        return ""
    place = "first" if example.line is None else f"first in line {example.line}"
    return f" ({place}: {example.problem})"


def _show_requests(found: "Import", requests: Path | None, rows: int) -> None:
    if requests is not None:
        click.echo(f"{rows:,} requests for more than processors written to {requests}")
        return
    lost = sum(request is not None and not _in_log(request) for request in found.requests)
    if lost:
        click.echo(
            f"{lost:>12,}  jobs ask for nodes, GPUs, features or licences, which a log cannot say: "
            "not written; --requests FILE.csv writes them"
        )


def _in_log(request: "Request") -> bool:
    """Returns whether a log says all of a request: processors, and memory for each."""
    from dataclasses import replace  # noqa: PLC0415  # help and errors come at once

    memory = request.memory
    return (memory is None or memory.per == "core") and replace(
        request, memory=None
    ).processors_alone


def _show_rules(found: "Import") -> None:
    from lrms_sim.workload.accounting.records import LOST, RULES  # noqa: PLC0415  # help and errors come at once

    for rule, count in found.counts.items():
        click.echo(printable(f"{count:>12,}  {RULES[rule]}{_example(found, rule)}"))
    lost = sum(found.counts.get(rule, 0) for rule in LOST)
    read = len(found.log) + lost
    if lost >= LOSSY_SHARE * read:
        click.echo(
            f"warning: {lost:,} of {read:,} jobs and lines ({share(lost / read)}) could not be used",
            err=True,
        )


@click.command("export")
@click.argument("kind", type=click.Choice(["batsim"]))
@click.argument("trace", type=LOG, callback=located_log)
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The workload: .json, .json.gz.",
)
@click.option(
    "--processors",
    type=PROCESSORS,
    metavar="N",
    help="Size of the machine.  [default: MaxProcs of the log's header]",
)
@click.option(
    "--requests",
    type=LOG,
    metavar="CSV",
    help="What jobs ask for besides processors, as `lrms-sim import` writes it; goes into extra_data.",
)
@preparation_options
def export_log(
    kind: str,
    trace: Path,
    *,
    output: Path,
    processors: int | None,
    requests: Path | None,
    **preparation: Any,
) -> int:
    """Convert a log to the workload of another simulator.

    Writes the jobs that `lrms-sim run` would replay with the same options as a JSON workload of
    Batsim, with a profile of the type delay for each run time. What of the log has no place in it is
    counted.

    \b
    Example:
      lrms-sim export batsim KTH-SP2-1996-2.swf.gz -o kth.json
    """  # noqa: D301  # as above
    from lrms_sim.report.run_report import no_job_left  # noqa: PLC0415  # same
    from lrms_sim.util.files import replacing  # noqa: PLC0415  # same
    from lrms_sim.workload.accounting.batsim import write_workload  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.workload.preparation import PreparationOptions, prepare  # noqa: PLC0415  # same
    from lrms_sim.workload.request_files import read_requests  # noqa: PLC0415  # same

    del kind  # there is one
    check_outputs([output], [trace, requests])
    with user_errors():
        log = read_log(trace)
        size = processors or processors_of(log)
        prepared = prepare(log, size, PreparationOptions(**preparation))
        asked = {} if requests is None else read_requests(requests)
    if len(prepared.jobs) == 0:
        click.echo(f"Error: {printable(no_job_left(prepared))}", err=True)
        return EXIT_NOTHING
    with writing(output), user_errors(), replacing(output) as temporary, _text(temporary) as file:
        write_workload(file, prepared.jobs, size, asked)
    click.echo(f"{len(prepared.jobs):,} of {len(log):,} jobs written to {output}")
    for words, count, treatment in prepared.report.rows():
        click.echo(f"{count:>12,}  {printable(words)}: {treatment}")
    _show_not_carried(log)
    return 0


@contextmanager
def _text(path: Path) -> Iterator[IO[str]]:
    """Opens a file for text, compressed if its name ends in .gz; the bytes depend on the text alone."""
    import gzip  # noqa: PLC0415  # help and errors come at once

    with ExitStack() as stack:
        file: Any = stack.enter_context(path.open("wb"))
        if path.suffix == ".gz":
            # Neither name nor time of writing.
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            file = stack.enter_context(packed)
        yield stack.enter_context(TextIOWrapper(file, encoding="utf-8", newline="\n"))


def _show_not_carried(log: "SwfLog") -> None:
    from lrms_sim.workload.accounting.batsim import NOT_CARRIED  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.workload.swf_log import FIELDS  # noqa: PLC0415  # same

    for name, words, _ in FIELDS:
        count = int((getattr(log, name) > 0).sum()) if name in NOT_CARRIED else 0
        if count:
            click.echo(f"{count:>12,}  records whose {words} has no place there: not written")
