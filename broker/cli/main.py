"""The command `gorba`.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from broker.cli.command_types import duration, moment, preference
from broker.cli.daemon_cli import COMMANDS, show_plan
from broker.cli.files_cli import COMMANDS as FILE_COMMANDS
from broker.cli.generate_cli import generate
from broker.cli.open_cli import COMMANDS as OPEN_COMMANDS
from broker.cli.search_options import Wanted
from broker.cli.status_cli import estimates, status
from broker.io.import_options import ImportOptions
from lrms_sim.cli.running import SectionedGroup, file_or_second_word, open_console, run_group
from lrms_sim.util.files import check_written
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.option_fields import FloatRange, field_options, taken
from lrms_sim.util.version import __version__

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gorba")
def cli() -> None:
    """Plan workflows onto resources that can be reserved: what runs where, when, at what cost.

    \b
    A recorded workflow, planned for ten seconds on a pool of 20 resources:
      gorba generate pool --output pool.toml
      gorba plan montage.json.gz -r pool.toml --search-time 10s --html plan.html

    \b
    A broker that plans, launches, and plans anew (docs/broker.md):
      gorba serve broker.toml &
      export GORBA_SOCKET=gorba.sock
      gorba submit montage.json.gz
      gorba plan show

    \b
    File formats are described in docs/workflows.md; to check files of one's own:
      gorba validate workflows.toml pool.toml
    """  # noqa: D301  # \b keeps the lines of the examples as they are


@cli.command(short_help="Plan workflows onto resources, by several methods.")
@click.argument("files", nargs=-1, required=True, type=_FILE, shell_complete=file_or_second_word)
@click.option(
    "-r",
    "--resources",
    type=_FILE,
    multiple=True,
    help="File of resources; a file of workflows may have them, too.",
)
@click.option(
    "--network",
    type=_FILE,
    help="File with what files take between sites: bandwidths, latencies, prices. Without one, files do "
    "not count.",
)
@field_options(Wanted)
@click.option(
    "--now",
    type=moment,
    metavar="MOMENT",
    help="Moment at which the plan begins, as 2026-03-02T08:00Z or seconds.  [default: what a file "
    "says, else the present]",
)
@click.option(
    "--old",
    type=_FILE,
    help="Plan from before, as --json wrote it: what starts before --now stays, the rest is "
    "planned anew, and the search begins from it.",
)
@click.option(
    "--stability",
    type=FloatRange(0, 1, max_open=True),
    help="With --old: share of a plan's worth that it costs to move all tasks to other resources than "
    "they have there; each costs its part. gorba serve has 0.2.  [default: 0, they move freely]",
)
@click.option(
    "--due-in",
    type=duration,
    metavar="TIME",
    help="Due date of workflows without one, from now on.",
)
@click.option(
    "--due-factor",
    type=FloatRange(0),
    help="The same, as a multiple of the shortest time a workflow can take.",
)
@click.option(
    "--budget", type=FloatRange(0), metavar="SUM", help="Budget of workflows without one."
)
@click.option(
    "--cost-factor",
    type=FloatRange(0),
    help="The same, as a multiple of the least that a workflow can cost.",
)
@click.option(
    "--preference",
    "preferred",
    type=preference,
    metavar="PREFERENCE",
    help="fast, cheap, or a number from 0, fast, to 1, cheap; for all workflows.",
)
@field_options(ImportOptions)
@json_option("gorba-plan", "broker.cli.output_models:PlanFileOutput", file="the plan")
def plan(
    files: tuple[Path, ...],
    *,
    resources: tuple[Path, ...],
    network: Path | None,
    now: float | None,
    old: Path | None,
    stability: float | None,
    due_in: float | None,
    due_factor: float | None,
    budget: float | None,
    cost_factor: float | None,
    preferred: float | None,
    json: Path | None,
    methods: tuple[str, ...],
    **given: Any,
) -> None:
    """Plan workflows onto resources, by several methods, and compare them.

    FILES hold workflows in WfFormat (.json, .json.gz), or workflows and resources in Hanse's own
    format (.toml, .json). Ctrl-C ends the search with the best plan so far, and status 130.

    \b
      gorba plan montage.json.gz -r pool.toml --search-time 10s --html plan.html
      gorba plan mine.toml -r pool.toml --due-factor 1.5 --method asma

    `gorba plan show` shows what a broker has planned; a file of that name is ./show.
    """  # noqa: D301  # see `cli`
    from broker.cli.plan_command import Request, prepared, run_plan  # noqa: PLC0415  # same
    from broker.model.limits import Limits  # noqa: PLC0415  # see the module's docstring

    if stability is not None and old is None:
        raise click.UsageError("--stability is of --old: without a plan from before no task moves")
    if given["dask"] is not None and given["islands"] is None:
        raise click.UsageError("--dask is of --islands: say how many searches go on there")
    if given["islands"] is not None and (
        given["evaluations"] is None or given["search_time"] is not None
    ):
        raise click.UsageError("--islands go with --evaluations, and without --search-time")
    importing = ImportOptions(**taken(ImportOptions, given))
    wanted = Wanted(
        methods=tuple(dict.fromkeys(methods)) or ("gleam", "asma-shift"),
        stability=stability or 0.0,
        json=json,
        **given,
    )
    request = Request(
        files=(*files, *resources),
        options=importing,
        limits=Limits(due_in, due_factor, budget, cost_factor, preferred),
        now=now,
        old=old,
        network=network,
    )
    check_written((wanted.html, json), (*request.files, network), click.ClickException)
    problem, before = prepared(request)
    planned = run_plan(
        wanted, problem, open_console(), open_console(stderr=True), old=before, files=request.files
    )
    planned.end()


@cli.command(short_help="Plan a job shop.")
@click.argument("file", type=_FILE)
@field_options(
    Wanted,
    ("search_time", "evaluations", "seed", "workers", "html"),
    search_time={"help": "Time for the search.  [default: 30s]"},
)
@json_option("gorba-plan", "broker.cli.output_models:PlanFileOutput", file="the plan")
def jobshop(
    file: Path,
    *,
    json: Path | None,
    **given: Any,
) -> None:
    """Plan a job shop: the special case in which nothing counts but the makespan.

    FILE is in the standard format: a line with the numbers of jobs and machines, then for each
    job a line of pairs, machine (from 0) and time of each operation. Times count as seconds.

    A file .fjs is a flexible job shop, in Brandimarte's format: the line of a job has the number of its
    operations, and for each the number of machines that can do it, with as many pairs of machine and time.

    \b
      gorba jobshop docs/examples/ft06.txt --search-time 10s --html plan.html
      gorba jobshop mk01.fjs --evaluations 100000 --json plan.json
    """  # noqa: D301  # see `cli`
    from broker.cli.plan_command import makespan_words, run_plan  # noqa: PLC0415  # same
    from broker.io.jobshop import read_job_shop  # noqa: PLC0415  # see the module's docstring

    wanted = Wanted(
        methods=("blocks",),
        goal="makespan",
        json=json,
        title=file.name,
        **given,
    )
    check_written((wanted.html, json), (file,), click.ClickException)
    planned = run_plan(
        wanted, read_job_shop(file), open_console(), open_console(stderr=True), files=(file,)
    )
    if json is None or str(json) != "-":
        click.echo(makespan_words(planned))
    planned.end()


@cli.command(short_help="Plan a project with scarce resources.")
@click.argument("file", type=_FILE)
@field_options(
    Wanted,
    ("search_time", "evaluations", "seed", "workers", "html"),
    search_time={"help": "Time for the search.  [default: 30s]"},
    evaluations={
        "help": "Schedules to build at most; each pass of a justification is one. Without --search-time "
        "time does not matter then, and the same input and seed give the same plan everywhere."
    },
)
@json_option("gorba-plan", "broker.cli.output_models:PlanFileOutput", file="the plan")
def rcpsp(
    file: Path,
    *,
    json: Path | None,
    **given: Any,
) -> None:
    """Plan a project: jobs that wait for each other and share scarce resources, to end early.

    FILE is in the format of PSPLIB, single mode (.sm): how long each job takes, how much of each renewable
    resource it holds meanwhile, and which jobs wait for it. Durations count as seconds. The search ends
    when the plan is as short as the longest chain of jobs, as none can be shorter.

    \b
      gorba rcpsp docs/examples/bridge.sm --evaluations 5000 --html plan.html
      gorba rcpsp j1201_1.sm --search-time 30s --json plan.json
    """  # noqa: D301  # see `cli`
    from broker.cli.plan_command import project_words, run_plan  # noqa: PLC0415  # same
    from broker.io.psplib import read_project  # noqa: PLC0415  # see the module's docstring

    wanted = Wanted(
        methods=("project",),
        goal="makespan",
        baselines=False,
        bounded=True,
        json=json,
        title=file.name,
        **given,
    )
    check_written((wanted.html, json), (file,), click.ClickException)
    problem = read_project(file)
    planned = run_plan(wanted, problem, open_console(), open_console(stderr=True), files=(file,))
    if json is None or str(json) != "-":
        click.echo(project_words(problem, planned))
    planned.end()


@cli.command(short_help="Check files of workflows and resources.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@field_options(ImportOptions)
@json_option("gorba-validate", "broker.cli.output_models:CheckedOutput")
def validate(
    files: tuple[Path, ...],
    *,
    as_json: bool,
    **importing: Any,
) -> None:
    """Check files of workflows and resources, each by itself and all together.

    Nothing is planned. Tasks, programs and their files are checked, also of tasks that `gorba add` takes; where there are resources as well, also
    that every task can run somewhere.
    """
    from broker.gantt.wording import count_of  # noqa: PLC0415  # same
    from broker.io.loading import make_problem, read_inputs  # noqa: PLC0415  # see the module's docstring

    inputs = read_inputs(files)
    options = ImportOptions(**importing)
    count = sum(each.workflow_count for each in inputs.documents) + len(inputs.recorded)
    # Where there are none, a pool is refused.
    given = any(each.pool.resources for each in inputs.documents)
    resources = len(inputs.pool.resources) if given else 0
    tasks, added = None, sum(each.tasks_count for each in inputs.documents)
    if given:
        for document in inputs.documents:
            document.check_added(inputs.pool)
    if count and given:
        # As `gorba plan` begins: a resource may be closed for good by now.
        now = time.time() if inputs.now is None else inputs.now
        problem = make_problem(inputs, now=now, options=options)
        tasks = sum(len(workflow.tasks) for workflow in problem.workflows)
    else:
        for document in inputs.documents:
            document.check()
    if as_json:
        found = {"workflows": count, "tasks": tasks, "resources": resources, "added": added}
        print_json("gorba-validate", found)
        return
    there = count_of(resources, "resource")
    more = count_of(added, "added task") if added else ""
    if tasks is not None:
        said = f"{count_of(tasks, 'task')} of {count_of(count, 'workflow')}"
        click.echo(f"valid: {' and '.join(filter(None, (said, more)))} on {there}")
    elif resources:
        click.echo(f"valid: {f'{more} on {there}' if more else there}")
    else:
        said = count_of(count, "workflow") if count or not more else ""
        said = " and ".join(filter(None, (said, more)))
        click.echo(f"valid: {said}; without resources that is all to check")


for _command in (*COMMANDS, *OPEN_COMMANDS, *FILE_COMMANDS, generate, status, estimates):
    cli.add_command(_command)
cli.add_two_words("plan", show_plan)
cli.set_sections(
    {
        "Planning, without a broker": ("plan", "jobshop", "rcpsp", "generate", "validate"),
        "A broker": (
            "serve",
            "status",
            "submit",
            "open",
            "add",
            "close",
            "wait",
            "list",
            "watch",
            "logs",
            "fetch",
            "record",
            "cancel",
            "plan show",
            "replan",
            "estimates",
            "resources",
            "dashboard",
            "journal",
        ),
    }
)


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line and returns the exit status: 0, or one of the `EXIT_…` values."""
    return run_group(
        cli,
        "gorba",
        arguments,
        no_memory="plan less at a time",
    )
