"""The command `lrms-sim run`. What is slow to import is imported where it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrms_sim.cli.log_options import (
    EXIT_NOTHING,
    FILE,
    LOG,
    PROCESSORS,
    check_outputs,
    counting_options,
    located_log,
    preparation_options,
    processors_of,
    read_log,
    user_errors,
    writing,
)
from lrms_sim.cli.node_options import (
    NodeOptions,
    chosen_machine,
    prepared_on_nodes,
    replayed_on_nodes,
)
from lrms_sim.cli.repeat_command import RepeatOptions, repeated
from lrms_sim.cli.running import bar
from lrms_sim.cli.strategy_command import StrategyOptions, at_local_time, chosen_discipline
from lrms_sim.machine.demand_options import DemandOptions
from lrms_sim.util.json_output import json_option
from lrms_sim.util.messages import printable
from lrms_sim.util.option_fields import field_options, taken, two_days
from lrms_sim.util.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lrms_sim.machine.closed_loop import Wait
    from lrms_sim.machine.nodes import NodeSchedule
    from lrms_sim.report.run_report import RunReport
    from lrms_sim.scheduling.disciplines import Discipline
    from lrms_sim.workload.jobs import JobTable
    from lrms_sim.workload.preparation import Prepared
    from lrms_sim.workload.schedule import Schedule
    from lrms_sim.workload.swf_log import SwfLog

LONG_JOBS = 500_000
"""Working on so many jobs shows how far it is."""


@click.command()
@click.argument("trace", type=LOG, callback=located_log)
@click.option(
    "--processors",
    type=PROCESSORS,
    metavar="N",
    help="Size of the machine.  [default: MaxProcs of the log's header]",
)
@field_options(NodeOptions)
@field_options(DemandOptions)
@field_options(StrategyOptions)
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
@counting_options
@click.option(
    "--schedule", type=FILE, metavar="FILE", help="Write the schedule: .csv, .csv.gz, .parquet."
)
@click.option("--swf", type=FILE, metavar="FILE", help="Write it as a log: .swf, .swf.gz.")
@click.option("--html", type=FILE, metavar="PAGE", help="Write charts and figures as a page.")
@click.option(
    "--dependencies",
    is_flag=True,
    help="Submit jobs that name a job before them (field 17) once it has ended, by their think time "
    "(field 18), and not when the log says.",
)
@click.option(
    "--name", metavar="NAME", help="The machine's name.  [default: the log's, or that in --nodes]"
)
@json_option("lrms-sim-run", "lrms_sim.cli.output_models:RunOutput")
@field_options(RepeatOptions)
@preparation_options
def run(
    trace: Path,
    *,
    processors: int | None,
    window_days: str | None,
    first_jobs: int | None,
    shift: Any,
    warm_up: float,
    cool_down: float,
    tau: float,
    schedule: Path | None,
    swf: Path | None,
    html: Path | None,
    dependencies: bool,
    name: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Replay a log on one machine.

    Prints how the machine's users and its operator fare: response times, slowdowns, utilization.
    TRACE is a log in the Standard Workload Format, plain or packed, - for standard input, or the key of one that
    `scenario fetch` has got: kth, ctc, sdsc05, sdsc00. Records that cannot
    run are dropped or altered by rules that have an option each; the table counts every one.

    With --nodes the machine is one of nodes: jobs need room on them for their cores, memory and GPUs,
    and tables tell what of each was used, what lay idle in pieces, and who waited for it.

    \b
    Examples:
      lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz --discipline easy
      lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz --processors 430 --window-days 0:150
      lrms-sim run jobs.swf --discipline easy-group --group-order 2,1,3,4,5
      lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz --processors 430 --strategy f3.json
      lrms-sim run jobs.swf --schedule schedule.csv --swf schedule.swf.gz --json
      lrms-sim run jobs.swf --discipline easy --html run.html
      lrms-sim run jobs.swf --nodes machine.toml --requests jobs.csv --discipline easy
    \b
    machine.toml, for --nodes (kinds are filled in this order):
      licences = { matlab = 10 }
      [[nodes]]
      kind = "thin"
      count = 64
      cores = 32
      memory = "128 GiB"
      [[nodes]]
      kind = "gpu"
      count = 8
      cores = 64
      memory = "512 GiB"
      gpus = 4
      gpu_type = "a100"
      features = ["nvlink"]
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    from lrms_sim.analysis.counted import counted_jobs  # noqa: PLC0415  # same
    from lrms_sim.report.run_report import RunReport, no_job_left  # noqa: PLC0415  # same
    from lrms_sim.workload.jobs import window_by_days  # noqa: PLC0415  # same
    from lrms_sim.workload.preparation import PreparationOptions, prepare  # noqa: PLC0415  # see the module's docstring

    strategy = StrategyOptions(**taken(StrategyOptions, given))
    repeat = RepeatOptions(**taken(RepeatOptions, given))
    nodes = NodeOptions(**taken(NodeOptions, given))
    check_outputs([schedule, swf, html], [trace, strategy.strategy, nodes.nodes, nodes.requests])
    _check_kinds(schedule, swf, html)
    demand_rules = DemandOptions(**taken(DemandOptions, given))
    if dependencies and repeat.repeat is not None:
        raise click.UsageError("--dependencies says when jobs come, which --repeat would shift")
    if nodes.nodes is not None and (warm_up or cool_down):
        raise click.UsageError(
            "--warm-up and --cool-down do not go with --nodes, which counts all jobs"
        )
    with user_errors():
        queue = chosen_discipline(strategy)
        first_day, last_day = two_days(window_days)
        machine = chosen_machine(
            nodes,
            name,
            processors=processors,
            dependencies=dependencies,
            strategy=strategy.strategy,
            repeat=repeat.repeat,
        )
        log = read_log(trace)
        size = machine.processors if machine else processors or processors_of(log)
        rules = PreparationOptions(**given)
        prepared = prepare(log, size, rules, dependencies=dependencies)
        if machine is not None:
            asked = prepared_on_nodes(
                log, prepared, machine, nodes, demand_rules, too_wide=rules.too_wide
            )
            prepared = asked.prepared
        jobs = window_by_days(
            prepared.jobs, first_day, last_day, first_jobs=first_jobs, shift=shift
        )
    if len(jobs) == 0:
        click.echo(f"Error: {printable(no_job_left(prepared))}", err=True)
        return EXIT_NOTHING
    with user_errors():
        counted = counted_jobs(_stem(trace), jobs, warm_up, cool_down)
        row = int((prepared.jobs.job_id == jobs.job_id[0]).argmax())
        origin = float(prepared.jobs.submit_time[row] - jobs.submit_time[0])
        queue = at_local_time(queue, log.header.fields, strategy.time_zone, jobs, origin)
    with bar("replaying", len(jobs), least=LONG_JOBS) as progress, user_errors():
        on_nodes: NodeSchedule | None = None
        if machine is not None:
            on_nodes = replayed_on_nodes(
                jobs,
                machine,
                queue,
                asked,
                progress,
                places=html is not None and _are_drawn(jobs),
            )
            result = on_nodes.schedule
        else:
            waits = _waits(log, prepared, followed=dependencies)
            result = _replayed(jobs, size, queue, waits, name or _stem(trace), progress)
        repetitions = repeated(jobs, size, queue, repeat, counted=counted, tau=tau)
    # Where a window leaves the clock as it was, most of the time to its end is not its own. A
    # window from day 0 is one from time 0, as is one without a first day.
    report = RunReport(
        schedule=result,
        discipline=queue.name,
        preparation=prepared.report,
        origin=float(jobs.submit_time[0]) if first_day and shift == "none" else 0.0,
        processors_from_header=processors is None and machine is None,
        repetitions=repetitions,
        size_key=log.header.size_key,
        on_nodes=on_nodes,
        counted=counted,
        cut_days=(warm_up, cool_down),
        tau=tau,
    )
    _write(report, log, schedule, swf, html)
    _show(report, as_json=as_json, written=(schedule, swf, html))
    return 0


def _show(report: "RunReport", *, as_json: bool, written: "Sequence[Path | None]") -> None:
    from lrms_sim.report.run_report import print_run_json, print_tables, what_was_lost  # noqa: PLC0415  # see the module's docstring

    if as_json:
        print_run_json(report)
    else:
        print_tables(report, written=filter(None, written))
    if lost := what_was_lost(report.preparation):
        click.echo(f"warning: {lost}", err=True)


def _waits(log: "SwfLog", prepared: "Prepared", *, followed: bool) -> "Mapping[int, Wait] | None":
    if not followed:
        return None
    from lrms_sim.machine.closed_loop import waits_of  # noqa: PLC0415  # see the module's docstring

    return waits_of(log, prepared)


def _replayed(  # noqa: PLR0917  # two functions' arguments
    jobs: "JobTable",
    size: int,
    queue: "Discipline",
    waits: "Mapping[int, Wait] | None",
    name: str,
    progress: "Callable[[int], None] | None",
) -> "Schedule":
    if waits is None:
        from lrms_sim.machine.machine import simulate  # noqa: PLC0415  # see the module's docstring

        return simulate(jobs, size, queue, name=name, progress=progress)
    from lrms_sim.machine.closed_loop import simulate_closed  # noqa: PLC0415  # same

    return simulate_closed(jobs, size, queue, waits=waits, name=name, progress=progress)


def _are_drawn(jobs: "JobTable") -> bool:
    """Returns whether the page draws jobs one by one; else nobody asks for their nodes."""
    from lrms_sim.report.run_charts import GANTT_JOBS_MAX  # noqa: PLC0415  # see the module's docstring

    return len(jobs) <= GANTT_JOBS_MAX


def _check_kinds(schedule: Path | None, swf: Path | None, html: Path | None) -> None:
    """Warns of endings, and refuses before the work what lacks a package."""
    _warn_of_ending(schedule, (".csv", ".csv.gz", ".parquet"))
    _warn_of_ending(swf, (".swf", ".swf.gz"))
    if schedule is not None and schedule.suffix == ".parquet":
        from lrms_sim.workload.frames import need_parquet  # noqa: PLC0415  # see the module's docstring

        need_parquet()
    if html is not None:
        import lrms_sim.report.run_page  # noqa: F401, PLC0415  # matplotlib may be missing


def _warn_of_ending(path: Path | None, known: tuple[str, ...]) -> None:
    # A name without an ending is that of a pipe or device, or meant so.
    if path is None or not path.suffix or path.suffix == ".gz" or path.suffix in known:
        return
    text = (
        f"{path.name} is written as {known[0]}, unpacked: its ending is none of {', '.join(known)}"
    )
    click.echo(f"warning: {printable(text)}", err=True)


def _write(
    report: "RunReport", log: "SwfLog", schedule: Path | None, swf: Path | None, html: Path | None
) -> None:
    from lrms_sim.workload.schedule_files import schedule_log, write_csv  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.workload.swf import write_swf  # noqa: PLC0415  # same

    result = report.schedule
    if schedule is not None and schedule.suffix == ".parquet":
        with writing(schedule):
            result.to_parquet(schedule)
    elif schedule is not None:
        with (
            bar(f"writing {schedule.name}", len(result), least=LONG_JOBS) as progress,
            writing(schedule),
        ):
            write_csv(result, schedule, progress=progress)
    if swf is not None:
        # What stays true of the log when its jobs run at other times.
        keys = ("UnixStartTime", "TimeZone", "TimeZoneString", "Computer", "Installation")
        header = {key: log.header.fields[key] for key in keys if key in log.header.fields}
        header["Note"] = f"Schedule simulated with lrms-sim {__version__}"
        with writing(swf):
            write_swf(swf, schedule_log(result, header=header))
    if html is not None:
        from lrms_sim.report.run_page import render_run  # noqa: PLC0415  # same
        from lrms_sim.util.files import replacing  # noqa: PLC0415  # same

        with writing(html), replacing(html) as temporary:
            temporary.write_text(render_run(report), encoding="utf-8")


def _stem(trace: Path) -> str:
    name = trace.name.removesuffix("-")
    for suffix in (".gz", ".bz2", ".xz", ".zip", ".swf"):
        name = name.removesuffix(suffix)
    return name or "machine"
