"""The command `lrms-sim`.

Everything heavy is imported by the command that needs it, so that a run on a small log takes no
longer than it must, and help and errors come at once.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrms_sim.accounting.command import export_log, import_log
from lrms_sim.commandline.running import EXIT_ERROR, SEED_MAX, run_group
from lrms_sim.log_options import (
    EXIT_NOTHING,
    FILE,
    PROCESSORS,
    check_output,
    located_log,
    preparation_options,
    processors_of,
    read_log,
    user_errors,
    writing,
)
from lrms_sim.repeat_command import repeat_options, repeated
from lrms_sim.shown.option import json_option, print_json
from lrms_sim.spelling import printable
from lrms_sim.strategy_command import (
    at_local_time,
    chosen_discipline,
    strategy_group,
    strategy_options,
)
from lrms_sim.utility.command import utility
from lrms_sim.version import __version__

if TYPE_CHECKING:
    from lrms_sim.jobs import JobTable
    from lrms_sim.run_report import RunReport
    from lrms_sim.swf_log import SwfLog

COMPLETION = "_LRMS_SIM_COMPLETE"
"""Variable by which a shell asks for completions."""

JOBS_MAX = 2**31 - 2
LONG_JOBS = 500_000
"""Working on so many jobs shows how far it is."""

SENTENCES = {
    "fcfs": "First come, first served: the head starts once it fits.",
    "list": "The first job in queue order that fits starts now.",
    "easy": "FCFS, but later jobs may pass if they do not delay the head.",
    "easy-per-event": "EASY, deciding after every single event of an instant.",
    "conservative": "Every waiting job holds a reservation; later jobs fill gaps.",
    "fcfs-group": "FCFS, but group after group of users, the heaviest first.",
    "easy-group": "EASY, but group after group of users.",
    "conservative-group": "Plans anew at every pass, group after group of users.",
    "sjf": "FCFS, but the shortest request first.",
    "saf": "FCFS, but the smallest area first: request times processors.",
    "ljf": "FCFS, but the longest request first.",
    "wfp3": "FCFS, but by (wait / request) cubed times width.",
    "f1": "FCFS, but by F1 of Carastan-Santos and de Camargo.",
    "f2": "FCFS, but by their F2.",
    "f3": "FCFS, but by their F3.",
    "f4": "FCFS, but by their F4.",
    "easy-sjbf": "EASY that lets the shortest job pass first.",
    "easy-saf": "EASY that lets the smallest area pass first.",
    "easy-sjbf-per-event": "The same, deciding after every single event.",
    "easy-plus-plus": "EASY on run times predicted from the user's last jobs.",
}
"""What each queue discipline does; docs/disciplines.md has all of it."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96})
@click.version_option(__version__, prog_name="lrms-sim")
def cli() -> None:
    """Simulate one batch machine on recorded or generated workloads.

    \b
    Look at a log, then replay it under EASY backfilling:
      lrms-sim info KTH-SP2-1996-2.swf.gz
      lrms-sim run KTH-SP2-1996-2.swf.gz --discipline easy --schedule kth.csv

    \b
    Without a log, generate one:
      lrms-sim generate --processors 256 --jobs 20000 --seed 7 -o synthetic.swf
      lrms-sim run synthetic.swf --discipline conservative
    """  # noqa: D301  # \b keeps the lines of the examples as they are


@cli.command()
@click.argument("trace", type=FILE, callback=located_log)
@click.option(
    "--processors",
    type=PROCESSORS,
    metavar="N",
    help="Size of the machine.  [default: MaxProcs of the log's header]",
)
@click.option(
    "--discipline",
    metavar="NAME",
    help="Queue discipline; `lrms-sim disciplines` lists them.  [default: fcfs]",
)
@strategy_options
@click.option(
    "--window-days",
    metavar="A:B",
    help="Only jobs submitted from day A until day B; either may be left out, as in 150:.",
)
@click.option(
    "--first-jobs", type=click.IntRange(0), metavar="N", help="Only the first N jobs of those."
)
@click.option(
    "--shift",
    type=click.Choice(["none", "window", "first_job"]),
    default="none",
    show_default=True,
    help="What becomes time 0: nothing new, day A, or the first submission.",
)
@click.option(
    "--schedule", type=FILE, metavar="FILE", help="Write the schedule: .csv, .csv.gz, .parquet."
)
@click.option("--swf", type=FILE, metavar="FILE", help="Write it as a log: .swf, .swf.gz.")
@click.option("--html", type=FILE, metavar="PAGE", help="Write charts and figures as a page.")
@click.option("--name", metavar="NAME", help="The machine's name.  [default: the log's]")
@json_option("lrms-sim-run", "lrms_sim.shown.models:RunShown")
@repeat_options
@preparation_options
def run(
    trace: Path,
    *,
    processors: int | None,
    discipline: str | None,
    strategy: Path | None,
    group_order: str | None,
    time_zone: str | None,
    window_days: str | None,
    first_jobs: int | None,
    shift: Any,
    schedule: Path | None,
    swf: Path | None,
    html: Path | None,
    name: str | None,
    as_json: bool,
    repeat: int | None,
    shift_arrivals: float | None,
    seed: int | None,
    **preparation: Any,
) -> int:
    """Replay a log on one machine.

    Prints how the machine's users and its operator fare: response times, slowdowns, utilization.
    TRACE is a log in the Standard Workload Format, plain or gzip-compressed, or the key of one that
    `scenario fetch` has got: kth, ctc, sdsc05, sdsc00. Records that cannot
    run are dropped or altered by rules that have an option each; the table counts every one.

    \b
    Examples:
      lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz --discipline easy
      lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz --processors 430 --window-days 0:150
      lrms-sim run jobs.swf --discipline easy-group --group-order 2,1,3,4,5
      lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz --processors 430 --strategy f3.json
      lrms-sim run jobs.swf --schedule schedule.csv --swf schedule.swf.gz --json
      lrms-sim run jobs.swf --discipline easy --html run.html
    """  # noqa: D301  # as above
    from lrms_sim.machine import simulate  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.preparation import PreparationOptions, prepare  # noqa: PLC0415  # same
    from lrms_sim.run_report import (  # noqa: PLC0415  # same
        RunReport,
        no_job_left,
        print_run_json,
        print_tables,
        what_was_lost,
    )
    from lrms_sim.windows import window_by_days  # noqa: PLC0415  # same

    _check_outputs(trace, schedule, swf, html)
    with user_errors():
        queue = chosen_discipline(discipline, strategy, group_order)
        first_day, last_day = _days(window_days)
        log = read_log(trace)
        size = processors or processors_of(log)
        prepared = prepare(log, size, PreparationOptions(**preparation))
        jobs = window_by_days(
            prepared.jobs, first_day, last_day, first_jobs=first_jobs, shift=shift
        )
    if len(jobs) == 0:
        click.echo(f"Error: {printable(no_job_left(prepared))}", err=True)
        return EXIT_NOTHING
    with user_errors():
        row = int((prepared.jobs.job_id == jobs.job_id[0]).argmax())
        origin = float(prepared.jobs.submit_time[row] - jobs.submit_time[0])
        queue = at_local_time(queue, log.header.fields, time_zone, jobs, origin)
    with _bar("replaying", len(jobs)) as progress, user_errors():
        result = simulate(jobs, size, queue, name=name or _stem(trace), progress=progress)
        repetitions = repeated(jobs, size, queue, repeat, shift_arrivals, seed)
    # Where a window leaves the clock as it was, most of the time to its end is not its own. A
    # window from day 0 is one from time 0, as is one without a first day.
    report = RunReport(
        schedule=result,
        discipline=queue.name,
        preparation=prepared.report,
        origin=float(jobs.submit_time[0]) if first_day and shift == "none" else 0.0,
        processors_from_header=processors is None,
        repetitions=repetitions,
    )
    _write(report, log, schedule, swf, html)
    if as_json:
        print_run_json(report)
    else:
        print_tables(report, written=filter(None, (schedule, swf, html)))
    if lost := what_was_lost(prepared.report):
        click.echo(f"warning: {lost}", err=True)
    return 0


def _check_outputs(trace: Path, schedule: Path | None, swf: Path | None, html: Path | None) -> None:
    """Refuses before the work what could not be written after it."""
    for path in (schedule, swf, html):
        check_output(path, trace)
    if schedule is not None and schedule.suffix == ".parquet":
        from lrms_sim.frames import need_parquet  # noqa: PLC0415  # see the module's docstring

        need_parquet()
    if html is not None:
        import lrms_sim.pages.run_page  # noqa: F401, PLC0415  # matplotlib may be missing


def _write(
    report: "RunReport", log: "SwfLog", schedule: Path | None, swf: Path | None, html: Path | None
) -> None:
    from lrms_sim.schedule_files import write_csv, write_swf  # noqa: PLC0415  # see the module's docstring

    result = report.schedule
    if schedule is not None and schedule.suffix == ".parquet":
        with writing(schedule):
            result.to_parquet(schedule)
    elif schedule is not None:
        with _bar(f"writing {schedule.name}", len(result)) as progress, writing(schedule):
            write_csv(result, schedule, progress=progress)
    if swf is not None:
        # What stays true of the log when its jobs run at other times.
        keys = ("UnixStartTime", "TimeZone", "TimeZoneString", "Computer", "Installation")
        header = {key: log.header.fields[key] for key in keys if key in log.header.fields}
        header["Note"] = f"Schedule simulated with lrms-sim {__version__}"
        with writing(swf):
            write_swf(result, swf, header=header)
    if html is not None:
        from lrms_sim.pages.run_page import render_run  # noqa: PLC0415  # same
        from lrms_sim.text_files import replacing  # noqa: PLC0415  # same

        with writing(html), replacing(html) as temporary:
            temporary.write_text(render_run(report), encoding="utf-8")


@cli.command()
@click.option("--processors", type=PROCESSORS, required=True, metavar="N", help="Machine size.")
@click.option("--jobs", type=click.IntRange(0, JOBS_MAX), metavar="N", help="Number of jobs.")
@click.option(
    "--days",
    type=click.FloatRange(0, min_open=True),
    metavar="D",
    help="Days in which jobs are submitted, instead of --jobs.",
)
@click.option(
    "--load",
    type=click.FloatRange(0, min_open=True),
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
    """  # noqa: D301  # as above
    if (jobs is None) == (days is None):
        raise click.UsageError("one of --jobs and --days is needed, and not both")
    check_output(output, None)
    from lrms_sim import lublin  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.swf import SwfHeader, write_swf  # noqa: PLC0415  # same
    from lrms_sim.text_files import replacing  # noqa: PLC0415  # same

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
    with writing(output), replacing(output) as temporary:
        write_swf(temporary, table, header)
    click.echo(f"{len(table):,} jobs over {_span_days(table):.1f} days written to {output}")


def _span_days(jobs: "JobTable") -> float:
    return float(jobs.submit_time[-1] - jobs.submit_time[0]) / 86400.0 if len(jobs) else 0.0


@cli.command()
@json_option("lrms-sim-disciplines", "lrms_sim.shown.models:DisciplinesShown")
def disciplines(*, as_json: bool) -> None:
    """List the queue disciplines."""
    if as_json:
        named = [{"name": name, "description": words} for name, words in SENTENCES.items()]
        print_json("lrms-sim-disciplines", {"disciplines": named})
        return
    for name, sentence in SENTENCES.items():
        click.echo(f"{name:<20}{sentence}")


@cli.command()
@click.argument("trace", type=FILE, callback=located_log)
@click.option(
    "--processors",
    type=PROCESSORS,
    metavar="N",
    help="Size of the machine.  [default: MaxProcs of the log's header]",
)
@json_option("lrms-sim-info", "lrms_sim.shown.models:LogShown")
@preparation_options
def info(trace: Path, *, processors: int | None, as_json: bool, **preparation: Any) -> int:
    """Tell what a log holds.

    Prints its machine, span, users, jobs and load, and which records cannot run as they stand.

    \b
    Example:
      lrms-sim info CTC-SP2-1996-3.1-cln.swf.gz --processors 430
    """  # noqa: D301  # as above
    from lrms_sim.preparation import PreparationOptions, prepare  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.run_report import (  # noqa: PLC0415  # same
        describe_log,
        no_job_left,
        print_log,
        what_was_lost,
    )

    with user_errors():
        log = read_log(trace)
        size = processors or processors_of(log)
        prepared = prepare(log, size, PreparationOptions(**preparation))
    print_log(describe_log(log, prepared, size), prepared.report, as_json=as_json)
    if len(prepared.jobs) == 0:
        click.echo(f"Error: {printable(no_job_left(prepared))}", err=True)
        return EXIT_NOTHING
    if lost := what_was_lost(prepared.report):
        click.echo(f"warning: {lost}", err=True)
    return 0


cli.add_command(strategy_group)
cli.add_command(import_log)
cli.add_command(export_log)
cli.add_command(utility)


@contextmanager
def _bar(words: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Yields what is to be told how many jobs are done, if that takes long and someone sees it."""
    if total < LONG_JOBS or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # see the module's docstring
    from rich.progress import Progress  # noqa: PLC0415  # same

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(words, total=total)
        yield lambda done: progress.update(task, completed=done)


def _days(text: str | None) -> tuple[float | None, float | None]:
    """Returns the two days of `A:B`; a side that is left out is None."""
    if text is None:
        return None, None
    first, _, last = text.partition(":")
    # Without a colon a part is left over that is no number.
    parts = (first, last) if ":" in text else (":", "")
    try:
        first_day, last_day = (float(part) if part else None for part in parts)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not two days A:B, such as 0:150, 150: or :150",
            param_hint="--window-days",
        ) from None
    if first_day is not None and last_day is not None and last_day <= first_day:
        raise click.BadParameter(
            f"{text!r} ends on day {last_day:g}, which is not after day {first_day:g}, where it "
            "begins; say the earlier day first, such as 0:150",
            param_hint="--window-days",
        )
    return first_day, last_day


def _stem(trace: Path) -> str:
    return trace.name.removesuffix(".gz").removesuffix(".swf") or "machine"


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line.

    Args:
        arguments: what follows the command's name.

    Returns:
        The status for the process: 0, or one of the `EXIT_…` values.
    """
    # A shell that completes words gives them in variables.
    if not arguments and COMPLETION not in os.environ:
        with click.Context(cli, info_name="lrms-sim") as context:
            click.echo(context.get_help(), err=True)
        return EXIT_ERROR
    return run_group(
        cli,
        "lrms-sim",
        arguments,
        user_errors=lambda: (OSError,),
        no_memory="replay fewer jobs at a time",
        show=_show,
    )


def _show(error: click.ClickException) -> None:
    click.echo(f"Error: {printable(' '.join(error.format_message().split()))}", err=True)
