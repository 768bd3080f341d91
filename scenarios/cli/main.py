"""The command `scenario`.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lrms_sim.cli.running import SEED_MAX, open_console, run_group
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.option_fields import FloatRange
from lrms_sim.util.process_guard import has
from lrms_sim.util.version import __version__
from scenarios.cli.live_cli import SPEED_MAX, down, live_folder, run_live, up
from scenarios.cli.prove_cli import prove
from scenarios.library import bundled_names, scenario_path
from scenarios.spec.traces import ARCHIVE_URL, FOLDER_VARIABLE, TRACES, cache_folder, find_trace
from scenarios.studies.cli.paper_cli import paper
from scenarios.studies.cli.study_cli import study
from scenarios.util.errors import FetchError, LiveError

if TYPE_CHECKING:
    from scenarios.run.results import ScenarioResult
    from scenarios.spec.spec import ScenarioSpec

ARRIVALS_MAX = 2**31 - 2
SPEED = 10_000.0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scenario")
def cli() -> None:
    """Replay the workloads of several sites, alone and federated, and report who gained what.

    A scenario is a TOML file, or the name of one that comes with the program.
    """


for _command in (paper, prove, study, up, down):
    cli.add_command(_command)


@cli.command("list")
@json_option("scenario-list", "scenarios.cli.output_models:ListOutput")
def list_command(*, as_json: bool) -> None:
    """List the scenarios that come with the program."""
    from scenarios.cli.listing import print_list  # noqa: PLC0415  # see the module's docstring
    from scenarios.spec.files import load_spec  # noqa: PLC0415  # same

    specs = [load_spec(scenario_path(name)) for name in bundled_names()]
    if as_json:
        from scenarios.cli.output_models import listed  # noqa: PLC0415  # see the module's docstring

        print_json("scenario-list", listed(specs, os.environ))
        return
    print_list(open_console(), specs, os.environ)


@cli.command()
@click.argument("scenario")
@click.option("--toml", is_flag=True, help="Print the file itself, to begin one's own with.")
@json_option("scenario-show", "scenarios.cli.output_models:ScenarioOutput")
def show(scenario: str, *, toml: bool, as_json: bool) -> None:
    """Show what a scenario is about."""
    path, spec = _load(scenario)
    if toml:
        click.echo(path.read_text(encoding="utf-8"), nl=False)
        return
    if as_json:
        from scenarios.cli.output_models import described  # noqa: PLC0415  # see the module's docstring

        print_json("scenario-show", described(spec, path, os.environ))
        return
    from scenarios.cli.listing import print_scenario  # noqa: PLC0415  # see the module's docstring

    print_scenario(open_console(), spec, path, os.environ)


@cli.command(short_help="Check a scenario file without running it.")
@click.argument("scenario")
@json_option("scenario-validate", "scenarios.cli.output_models:ValidOutput")
def validate(scenario: str, *, as_json: bool) -> None:
    """Check a scenario file and the files that it names, without running it."""
    from scenarios.run.replay import check_files  # noqa: PLC0415  # see the module's docstring

    path, spec = _load(scenario)
    check_files(spec, shown=str(path))
    missing = [key for key in spec.traces if find_trace(key) is None]
    if as_json:
        found = {"file": str(path), "sites": len(spec.sites), "logs_missing": missing}
        print_json("scenario-validate", found)
        return
    lack = f"; to run it, get its logs with: scenario fetch {' '.join(missing)}"
    sites = "1 site" if len(spec.sites) == 1 else f"{len(spec.sites)} sites"
    click.echo(f"{path}: valid, {sites}{lack if missing else ''}")


@cli.command()
@click.argument("scenario")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for schedules, figures and report.  [default: out/NAME]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    help="Replaces the scenario's seed; a workload with a seed of its own keeps that.",
)
@click.option(
    "--transfer",
    metavar="POLICY",
    help="Replaces every transfer policy: awf, keep, none, start-now, short-guests, fair-exchange, strict-exchange, or a rule base file.",
)
@click.option(
    "--first",
    type=click.IntRange(1, ARRIVALS_MAX),
    metavar="N",
    help="Replay the first N arrivals only, of all sites together.",
)
@json_option("scenario-run", "scenarios.cli.output_models:ResultOutput")
@click.option("--no-html", is_flag=True, help="Leave the HTML report out.")
@click.option("-v", "--verbose", is_flag=True, help="Log events to standard error.")
@click.option(
    "--log-format",
    type=click.Choice(["console", "json"]),
    default="console",
    show_default=True,
    help="How -v writes events.",
)
@click.option("--live", is_flag=True, help="Replay through daemons too, and compare.")
@click.option(
    "--clock",
    type=click.Choice(["virtual", "scaled"]),
    help="Of the daemons: conducted in step, or so much faster than real time.  [default: virtual]",
)
@click.option(
    "--speed",
    type=FloatRange(0, SPEED_MAX, min_open=True),
    help=f"Seconds of a scaled clock for a real one.  [default: {SPEED:,.0f}]",
)
def run(
    scenario: str,
    *,
    live: bool,
    clock: Literal["virtual", "scaled"] | None,
    speed: float | None,
    output: Path | None,
    seed: int | None,
    transfer: str | None,
    first: int | None,
    as_json: bool,
    no_html: bool,
    verbose: bool,
    log_format: Literal["console", "json"],
) -> None:
    """Replay a scenario: each site alone, then federated."""
    from scenarios.cli.progress import bars, event_log  # noqa: PLC0415  # same
    from scenarios.report.output import check_folder, save_run  # noqa: PLC0415  # see the module's docstring
    from scenarios.run.replay import run_scenario  # noqa: PLC0415  # same

    no_html = no_html or _cannot_draw()
    if clock is not None and not live:
        raise click.UsageError("--clock is of the daemons: it goes with --live")
    if speed is not None and clock != "scaled":
        raise click.UsageError("--speed is of a scaled clock: it goes with --live --clock scaled")
    path, spec = _load(scenario)
    if transfer is not None:
        spec = _with_transfer(spec, transfer)
    if first is not None:
        spec = spec.model_copy(update={"first_arrivals": first})
    folder = Path("out", spec.name) if output is None else output
    check_folder(folder)
    place = live_folder(folder) if live else None
    notify = event_log(verbose=verbose, log_format=log_format)
    if seed is not None and not spec.is_random:
        notify("warning", text="the seed changes nothing: no workload is drawn from it")
    with bars(wanted=not verbose) as shown:
        done = run_scenario(
            spec.resolved(seed), shown=str(path), notify=notify, progress=shown.update
        )
        saved = save_run(
            folder,
            done.spec,
            done.result,
            html=not no_html,
            step=lambda name: shown.step(f"writing {name}"),
        )
        words, problem = "", ""
        if place is not None:
            fast = (speed or SPEED) if clock == "scaled" else None
            words, problem = run_live(done, place, fast, shown, html=not no_html)
    notify("saved", folder=str(saved.folder))
    _print_result(done.result, as_json=as_json)
    if not as_json:
        click.echo(f"\nWritten to {saved.report or saved.folder}")
    if live:
        click.echo(words, err=as_json)
        if problem:
            raise LiveError(problem)


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path))
@json_option("scenario-run", "scenarios.cli.output_models:ResultOutput")
@click.option("--no-html", is_flag=True, help="Leave the HTML report as it is.")
def report(folder: Path, *, as_json: bool, no_html: bool) -> None:
    """Report again on a run that `scenario run` has saved to FOLDER."""
    from scenarios.cli.progress import bars  # noqa: PLC0415  # see the module's docstring
    from scenarios.report.output import REPORT, load_run, save_report  # noqa: PLC0415  # see above

    no_html = no_html or _cannot_draw()
    with bars() as shown:
        shown.step("reading the run")
        result = load_run(folder)
        if not no_html:
            save_report(folder, result, step=lambda name: shown.step(f"writing {name}"))
    _print_result(result, as_json=as_json)
    if not as_json and not no_html:
        click.echo(f"\nWritten to {folder / REPORT}")


@cli.command()
@click.argument("logs", nargs=-1, required=True, type=click.Choice([*TRACES, "all"]))
@click.option(
    "--from",
    "base_url",
    default=ARCHIVE_URL,
    show_default=True,
    metavar="URL",
    help="The archive, or a mirror with the same folders.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Where to put the logs.  [default: the download cache]",
)
def fetch(logs: Sequence[str], *, base_url: str, folder: Path | None) -> None:
    """Download recorded logs from the Parallel Workloads Archive.

    A download that was interrupted is continued. What arrives is checked against the checksum of
    the file that published figures come from. Logs in the folder named by HANSE_TRACES are used
    as they are.
    """
    from scenarios.cli.progress import bars  # noqa: PLC0415  # same
    from scenarios.spec.fetch import fetch as fetch_log  # noqa: PLC0415  # see the module's docstring

    keys = list(TRACES) if "all" in logs else list(dict.fromkeys(logs))
    named = os.environ.get(FOLDER_VARIABLE, "")
    errors = []
    lines = []
    with bars(download=True) as shown:
        for key in keys:
            trace = TRACES[key]
            if folder is None and named and (Path(named) / trace.file).is_file():
                # The user's own folder is read, never written to.
                target = Path(named)
            else:
                target = folder or cache_folder()
            try:
                fetched = fetch_log(
                    trace, target, base_url=base_url, progress=_under(key, shown.update)
                )
            except FetchError as error:
                errors.append(str(error))
                continue
            what = "downloaded, checksum right" if fetched.downloaded else "already there"
            lines.append(f"{key}: {fetched.path} ({what})")
    for line in lines:
        click.echo(line)
    if errors:
        raise FetchError("\n".join(errors))


def _under(
    stage: str, update: Callable[[str, int, int | None], None]
) -> Callable[[int, int | None], None]:
    return lambda done, total: update(stage, done, total)


def _load(scenario: str) -> tuple[Path, "ScenarioSpec"]:
    from scenarios.spec.files import load_spec  # noqa: PLC0415  # see the module's docstring

    path = scenario_path(scenario)
    return path, load_spec(path)


def _with_transfer(spec: "ScenarioSpec", policy: str) -> "ScenarioSpec":
    from pydantic import ValidationError  # noqa: PLC0415  # see the module's docstring

    try:
        return spec.with_transfer(policy)
    except ValidationError as error:
        raise click.UsageError(f"--transfer: {error.errors()[0]['msg']}") from error


def _cannot_draw() -> bool:
    if has("matplotlib"):
        return False
    click.echo("note: no report.html: its figures need pip install 'hanse[report]'", err=True)
    return True


def _print_result(result: "ScenarioResult", *, as_json: bool) -> None:
    if as_json:
        click.echo(result.to_json(), nl=False)
        return
    from scenarios.report.terminal import print_result  # noqa: PLC0415  # see the module's docstring

    print_result(open_console(), result)


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line and returns the exit status: 0, or one of the `EXIT_…` values."""
    return run_group(
        cli,
        "scenario",
        arguments,
        no_memory="replay less of this scenario at a time",
    )
