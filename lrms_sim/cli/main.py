"""The command `lrms-sim`.

Heavy imports happen in the command that needs them, so that small runs, help and errors are fast.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lrms_sim.cli.compare_command import compare
from lrms_sim.cli.generate_command import generate
from lrms_sim.cli.import_command import export_log, import_log
from lrms_sim.cli.log_options import (
    EXIT_NOTHING,
    LOG,
    PROCESSORS,
    located_log,
    preparation_options,
    processors_of,
    read_log,
    user_errors,
)
from lrms_sim.cli.malleable_command import utility
from lrms_sim.cli.run_command import run
from lrms_sim.cli.running import run_group
from lrms_sim.cli.strategy_command import strategy_group
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import printable
from lrms_sim.util.version import __version__

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
    Compare disciplines, with intervals, tables and figures:
      lrms-sim compare KTH-SP2-1996-2.swf.gz --disciplines easy,conservative,sjf

    \b
    Without a log, generate one:
      lrms-sim generate --processors 256 --jobs 20000 --seed 7 -o synthetic.swf
      lrms-sim run synthetic.swf --discipline conservative
    """  # noqa: D301  # \b keeps the lines of the examples as they are


@cli.command()
@json_option("lrms-sim-disciplines", "lrms_sim.cli.output_models:DisciplinesOutput")
def disciplines(*, as_json: bool) -> None:
    """List the queue disciplines."""
    if as_json:
        named = [{"name": name, "description": words} for name, words in SENTENCES.items()]
        print_json("lrms-sim-disciplines", {"disciplines": named})
        return
    for name, sentence in SENTENCES.items():
        click.echo(f"{name:<20}{sentence}")


@cli.command()
@click.argument("trace", type=LOG, callback=located_log)
@click.option(
    "--processors",
    type=PROCESSORS,
    metavar="N",
    help="Size of the machine.  [default: MaxProcs of the log's header]",
)
@json_option("lrms-sim-info", "lrms_sim.cli.output_models:LogOutput")
@preparation_options
def info(trace: Path, *, processors: int | None, as_json: bool, **preparation: Any) -> int:
    """Show what a log holds.

    Prints its machine, span, users, jobs and load, and which records cannot run as they stand. Jobs without a
    requested time are described with their run time, unless --requested-time-missing says otherwise.

    \b
    Example:
      lrms-sim info CTC-SP2-1996-3.1-cln.swf.gz --processors 430
    """  # noqa: D301  # as above
    from lrms_sim.report.run_report import describe_log, no_job_left, print_log, what_was_lost  # noqa: PLC0415  # same
    from lrms_sim.workload.preparation import PreparationOptions, prepare  # noqa: PLC0415  # see the module's docstring

    missing = "requested_time_missing"
    source = click.get_current_context().get_parameter_source(missing)
    as_it_is = source == click.core.ParameterSource.DEFAULT
    if as_it_is:
        preparation[missing] = "run_time"
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
    if as_it_is and (count := prepared.report.count("requested-time-missing")):
        click.echo(
            f"warning: {count:,} jobs have no requested time; `lrms-sim run` drops them "
            "(--requested-time-missing run_time keeps them)",
            err=True,
        )
    return 0


cli.add_command(run)
cli.add_command(compare)
cli.add_command(generate)
cli.add_command(strategy_group)
cli.add_command(import_log)
cli.add_command(export_log)
cli.add_command(utility)


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line.

    Returns:
        The status for the process: 0, or one of the `EXIT_…` values.
    """
    return run_group(
        cli,
        "lrms-sim",
        arguments,
        no_memory="replay fewer jobs at a time",
        show=_show,
    )


def _show(error: click.ClickException) -> None:
    click.echo(f"Error: {printable(' '.join(error.format_message().split()))}", err=True)
