"""The command `lrms-sim compare`. What is slow to import is imported where it is needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lrms_sim.cli.log_options import (
    EXIT_NOTHING,
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
from lrms_sim.cli.repeat_command import SHIFT_DEFAULT
from lrms_sim.cli.running import SEED_MAX, bar, open_console
from lrms_sim.electricity.options import ElectricityOptions
from lrms_sim.util.executors import Workers
from lrms_sim.util.files import check_written
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import printable
from lrms_sim.util.option_fields import FloatRange, field_options, taken, two_days
from lrms_sim.util.process_guard import require

if TYPE_CHECKING:
    from lrms_sim.analysis.comparison import AnyDiscipline, Comparison
    from lrms_sim.electricity.power import Supply
    from lrms_sim.workload.jobs import JobTable
    from lrms_sim.workload.preparation import PreparationOptions

RUNS = "runs.jsonl"
"""Replays that are done, in the folder."""

_FILES: Final = (
    "differences.csv",
    "differences.md",
    "differences.tex",
    "differences.pdf",
    "differences.svg",
    "replays.csv",
    "notes.jsonl",
)
"""Of the folder, besides finished replays; the last only where there are notes."""


def _located_logs(
    context: click.Context, parameter: click.Parameter, value: tuple[Path, ...]
) -> tuple[Path, ...]:
    return tuple(located_log(context, parameter, each) for each in value)


@click.command()
@click.argument("logs", metavar="LOG…", type=LOG, nargs=-1, required=True, callback=_located_logs)
@click.option(
    "--disciplines",
    required=True,
    metavar="A,B,…",
    help="At least two, separated by commas: names as `lrms-sim disciplines` lists them, of plugins, "
    "package.module:name, or strategy files (*.json).",
)
@click.option(
    "--baseline",
    metavar="NAME",
    help="The one of them that all others are held against.  [default: the first]",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="May be given several times: awrt, mean-wait-time, median-wait-time, mean-response-time, "
    "mean-slowdown, mean-bounded-slowdown, utilization, makespan, user-fairness.  "
    "With --price also energy, electricity-cost, and with --carbon carbon.  "
    "[default: awrt, mean-wait-time, mean-bounded-slowdown, utilization]",
)
@click.option(
    "--shifts",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    metavar="N",
    help="Random shifts of the arrivals, each replayed under every discipline.",
)
@click.option(
    "--shift-arrivals",
    type=FloatRange(0, 1e9),
    default=SHIFT_DEFAULT,
    show_default=True,
    metavar="S",
    help="Largest shift of an arrival, either way, seconds.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    default=0,
    show_default=True,
    metavar="N",
    help="Of the shifts.",
)
@click.option(
    "--processors",
    type=PROCESSORS,
    multiple=True,
    metavar="N",
    help="Size of the machine: once for all logs, or once for each in their order.  [default: MaxProcs "
    "of each log's header]",
)
@click.option("--window-days", metavar="A:B", help="Only jobs submitted from day A until day B.")
@counting_options
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out", "compare"),
    show_default=True,
    metavar="FOLDER",
    help="For tables, figures and finished replays.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PAGE",
    help="Write figures and tables as a page, too.",
)
@json_option("lrms-sim-compare", "lrms_sim.cli.comparison_models:ComparisonOutput")
@field_options(
    Workers,
    executor={
        "default": None,
        "show_default": False,
        "help": "Who replays; the result is the same.  [default: threads; processes with "
        "disciplines in Python]",
    },
)
@field_options(ElectricityOptions)
@click.option(
    "--delay",
    type=FloatRange(0, 1e4),
    default=12.0,
    show_default=True,
    metavar="HOURS",
    help="How long jobs wait for cheap hours at most, under easy-deferred.",
)
@preparation_options
def compare(
    logs: tuple[Path, ...],
    *,
    disciplines: str,
    baseline: str | None,
    metrics: tuple[str, ...],
    shifts: int,
    shift_arrivals: float,
    seed: int,
    processors: tuple[int, ...],
    window_days: str | None,
    warm_up: float,
    cool_down: float,
    tau: float,
    delay: float,
    output: Path,
    html: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Compare queue disciplines on logs: paired, with intervals, tables and figures.

    One replay of a log says little of a difference: arrivals that are moved by some seconds can change a mean
    wait by percents. So each LOG is replayed with its arrivals shifted at random, --shifts times, under every
    discipline. With one shift all have the same jobs, so figures are compared shift by shift, and the mean
    difference to the --baseline has a 95 % interval. Where it excludes 0, the difference is not due to chance in
    the arrivals; it says nothing of other logs.

    The folder gets differences.csv, .md, .tex (booktabs), .pdf and .svg, replays.csv with every replay, and
    runs.jsonl: after Ctrl-C, or with more --shifts or another --metric, the same command runs only what is
    missing. What disciplines in Python give back with `notes()` is in notes.jsonl.

    LOG is a file in the Standard Workload Format, plain or packed, or the key of one that `scenario fetch` has
    got: kth, ctc, sdsc05, sdsc00.

    \b
    Examples:
      lrms-sim compare kth --disciplines easy,conservative,sjf,easy-plus-plus
      lrms-sim compare kth ctc --disciplines easy,conservative --metric awrt --shifts 30
      lrms-sim compare ctc --processors 430 --disciplines sjf,easy --baseline easy \\
        --warm-up 14 --cool-down 14 --output out/sjf --html out/sjf.html
      lrms-sim compare jobs.swf --disciplines easy,my_module:MyDiscipline,learned.json
      lrms-sim compare kth --disciplines easy,easy-deferred --price prices.csv \\
        --metric electricity-cost,mean-wait-time --delay 6
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    from lrms_sim.analysis import comparison as comparing  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.workload.preparation import PreparationOptions  # noqa: PLC0415  # same

    require("matplotlib")  # for the figures at the end
    if html is not None and html.parent not in {output, *output.parents}:  # which are made
        check_outputs([html])
    first_day, last_day = two_days(window_days)
    who = taken(Workers, given)
    electricity = ElectricityOptions(**taken(ElectricityOptions, given))
    named = (*disciplines.split(","), electricity.price, electricity.carbon)
    check_written(
        [html, *(output / name for name in (RUNS, *_FILES))],
        [*logs, *(Path(each.strip()) for each in named if each)],
        click.ClickException,
    )
    with user_errors():
        supply = electricity.supply()
        chosen = _disciplines(disciplines, supply, 3600.0 * delay)
        in_python = any(_is_in_python(each) for each in chosen.values())
        who["executor"] = who["executor"] or ("processes" if in_python else "threads")
        workers = Workers(**who)
        sizes = _sizes(processors, len(logs))
        rules = PreparationOptions(**given)
        tables: dict[str, tuple[JobTable, int]] = {}
        for path, size in zip(logs, sizes, strict=True):
            name = _name(path)
            if name in tables:
                raise ValueError(f"two logs are called {name!r}; give one of them another name")
            found = _prepared(path, size, rules, (first_day, last_day))
            if found is None:
                return EXIT_NOTHING
            tables[name] = found
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"{output}: cannot be made: {error.strerror}") from error
        names = [part.strip() for each in metrics for part in each.split(",")]
        total = len(tables) * len(chosen) * shifts
        try:
            with bar("replaying", total) as progress:
                outcome = comparing.compare(
                    tables,
                    chosen,
                    baseline=baseline,
                    metrics=names or comparing.DEFAULT_METRICS,
                    shifts=shifts,
                    seconds=shift_arrivals,
                    seed=seed,
                    warm_up_days=warm_up,
                    cool_down_days=cool_down,
                    tau=tau,
                    supply=supply,
                    runs=output / RUNS,
                    workers=workers,
                    progress=progress,
                )
        except KeyboardInterrupt:
            click.echo(
                f"finished replays are in {output / RUNS}; the same command goes on from there",
                err=True,
            )
            raise
    written = _write(outcome, output, html)
    if as_json:
        columns = outcome.columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        print_json("lrms-sim-compare", {**_options(outcome), "differences": rows})
    else:
        _show(outcome, written)
    _warn_of_repeated_prices(tables, supply)
    if shifts == 1:
        click.echo("warning: one shift has no interval; --shifts 10 has", err=True)
    return 0


def _warn_of_repeated_prices(
    tables: "Mapping[str, tuple[JobTable, int]]", supply: "Supply | None"
) -> None:
    for name, (jobs, _) in tables.items():
        span = float(jobs.submit_time[0]), float(jobs.submit_time[-1])
        if supply is not None and not supply.price.covers(*span):
            text = f"warning: prices are not known for all of {printable(name)}: they were repeated"
            click.echo(text, err=True)


def _disciplines(
    names: str, supply: "Supply | None", delay: float
) -> "Mapping[str, AnyDiscipline]":
    """Returns disciplines by name; `ValueError` if one cannot be used."""
    from lrms_sim.electricity.power import NAME, DeferralRule, EasyDeferred  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.scheduling.disciplines import discipline_by_name  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.scheduling.strategy_files import load_strategy  # noqa: PLC0415  # same

    found: dict[str, AnyDiscipline] = {}
    word: str
    made: AnyDiscipline
    for name in (part.strip() for part in names.split(",")):
        if name.endswith(".json"):
            policy = load_strategy(Path(name)).policy
            word, made = Path(name).stem, policy
            if policy.needs_calendar:
                raise ValueError(
                    f"{name} asks what time it is, which is not compared; `lrms-sim run --strategy` runs it"
                )
        elif name == NAME:
            if supply is None:
                raise ValueError(f"{NAME} lets jobs wait for cheap hours, which need --price")
            word, made = name, EasyDeferred(supply.tariff, DeferralRule(delay))
        else:
            word, made = name, discipline_by_name(name)
        if word in found:
            raise ValueError(f"--disciplines: {word!r} comes twice")
        found[word] = made
    return found


def _is_in_python(discipline: "AnyDiscipline") -> bool:
    from lrms_sim.scheduling.user_defined import UserDefinedDiscipline  # noqa: PLC0415  # see the module's docstring

    return isinstance(discipline, UserDefinedDiscipline)


def _sizes(processors: Sequence[int], count: int) -> Sequence[int | None]:
    if len(processors) not in {0, 1, count}:
        raise ValueError(
            f"--processors is given {len(processors)} times for {count} logs; give it once, or once for each"
        )
    if not processors:
        return [None] * count
    return list(processors) if len(processors) == count else [processors[0]] * count


def _prepared(
    path: Path,
    size: int | None,
    rules: "PreparationOptions",
    days: tuple[float | None, float | None],
) -> "tuple[JobTable, int] | None":
    """Returns jobs and processors of a log; `None`, with a message, if no job is left."""
    from lrms_sim.report.run_report import no_job_left, what_was_lost  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.workload.jobs import window_by_days  # noqa: PLC0415  # same
    from lrms_sim.workload.preparation import prepare  # noqa: PLC0415  # same

    log = read_log(path)
    processors = size or processors_of(log)
    prepared = prepare(log, processors, rules)
    jobs = window_by_days(prepared.jobs, *days)
    if not len(jobs):
        click.echo(f"Error: {printable(no_job_left(prepared))}", err=True)
        return None
    if lost := what_was_lost(prepared.report):
        click.echo(f"warning: {lost}", err=True)
    return jobs, processors


def _name(path: Path) -> str:
    name = path.name.removesuffix("-")
    for suffix in (".gz", ".bz2", ".xz", ".zip", ".swf"):
        name = name.removesuffix(suffix)
    return name or "log"


def _write(outcome: "Comparison", folder: Path, html: Path | None) -> list[Path]:
    """Writes all files, and returns their paths."""
    from lrms_sim.report import comparison_tables as tables  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.report.comparison_figure import figure_file  # noqa: PLC0415  # same
    from lrms_sim.report.comparison_page import page_of  # noqa: PLC0415  # same
    from lrms_sim.util.files import replacing  # noqa: PLC0415  # same

    files: dict[Path, bytes] = {
        folder / "differences.csv": tables.differences_csv(outcome).encode(),
        folder / "differences.md": tables.to_markdown(outcome).encode(),
        folder / "differences.tex": tables.to_latex(outcome).encode(),
        folder / "differences.pdf": figure_file(outcome, "pdf"),
        folder / "differences.svg": figure_file(outcome, "svg"),
        folder / "replays.csv": tables.replays_csv(outcome).encode(),
    }
    if notes := tables.notes_lines(outcome):
        files[folder / "notes.jsonl"] = notes.encode()
    else:
        # Those of an earlier comparison are not of this one.
        (folder / "notes.jsonl").unlink(missing_ok=True)
    if html is not None:
        files[html] = str(page_of(outcome)).encode()
    for path, content in files.items():
        with writing(path), replacing(path) as draft:
            draft.write_bytes(content)
    return list(files)


def _options(outcome: "Comparison") -> dict[str, object]:
    names = ("baseline", "disciplines", "metrics", "shifts", "seconds", "seed")
    cut = ("warm_up_days", "cool_down_days", "tau")
    return {name: getattr(outcome, name) for name in (*names, *cut)}


def _show(outcome: "Comparison", written: Sequence[Path]) -> None:
    from lrms_sim.report.comparison_page import page_of  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.report.comparison_tables import caption  # noqa: PLC0415  # same
    from lrms_sim.report.terminal import print_page, text  # noqa: PLC0415  # same

    console = open_console(pipe_width=80)
    print_page(console, page_of(outcome, pictures=False))
    console.print(text(console, caption(outcome), "dim"))
    console.print()
    for path in written:
        click.echo(f"Written to {path}")
