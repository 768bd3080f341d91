"""What `lrms-sim` prints: tables for people, JSON for programs."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lrms_sim.analysis.counted import ALL, Counted
from lrms_sim.analysis.metrics import (
    BOUNDED_SLOWDOWN_THRESHOLD_S,
    MachineMetrics,
    UserFairness,
    awrt_by_group,
    machine_metrics,
    user_fairness,
)
from lrms_sim.analysis.node_metrics import (
    RequestClass,
    dominant_shares,
    fragmentation,
    gpu_class,
    memory_class,
    utilization,
    waits_by,
    weighted_response_time,
)
from lrms_sim.analysis.samples import MeanInterval
from lrms_sim.machine.nodes import NodeSchedule
from lrms_sim.util.json_output import print_json
from lrms_sim.util.messages import printable
from lrms_sim.util.version import __version__
from lrms_sim.workload.groups import GROUPS, user_groups
from lrms_sim.workload.preparation import Prepared
from lrms_sim.workload.preparation_report import LogDescription, PreparationReport
from lrms_sim.workload.requests import Request, counted, size_text
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.swf_log import SwfLog

if TYPE_CHECKING:
    from rich.console import RenderableType

SECONDS_PER_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Mean and 95 % confidence interval of each figure, over runs with shifted arrivals."""

    repeat: int
    seconds: float
    figures: Mapping[str, MeanInterval]


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run on one machine and its origin.

    Attributes:
        preparation: how the log's records were prepared.
        origin: time from which the makespan counts, seconds.
        processors_from_header: whether the machine's size is the log's own.
        repetitions: runs with shifted arrivals, if any.
        size_key: the header's key for that size.
        on_nodes: what jobs held, on a machine of nodes.
        counted: which jobs the figures of users and the utilization are of.
        cut_days: days of warm-up and of cool-down.
        tau: shorter run times count as this in bounded slowdowns, seconds.
    """

    schedule: Schedule
    discipline: str
    preparation: PreparationReport
    origin: float
    processors_from_header: bool
    repetitions: Repetitions | None = None
    size_key: str = "MaxProcs"
    on_nodes: NodeSchedule | None = None
    counted: Counted = ALL
    cut_days: tuple[float, float] = (0.0, 0.0)
    tau: float = BOUNDED_SLOWDOWN_THRESHOLD_S

    @property
    def metrics(self) -> MachineMetrics:
        """The metrics of the machine."""
        where = self.counted.of(self.schedule.jobs)
        found = machine_metrics(self.schedule, origin=self.origin, where=where, threshold=self.tau)
        return replace(found, utilization=self.counted.utilization(self.schedule))

    @property
    def fairness(self) -> UserFairness:
        """How alike its users are served."""
        return user_fairness(self.counted.part(self.schedule), threshold=self.tau)

    @property
    def groups(self) -> list[tuple[int, int, float]]:
        """Number, jobs and AWRT in seconds of each user group; groups are made of all jobs."""
        group = user_groups(self.schedule.jobs)
        part = self.schedule
        where = self.counted.of(part.jobs)
        if where is not None:
            group, part = group[where], self.counted.part(part)
        awrt = awrt_by_group(part, group)
        return [(g, int(np.count_nonzero(group == g)), float(awrt[g - 1])) for g in GROUPS]


def describe_log(log: SwfLog, prepared: Prepared, processors: int) -> LogDescription:
    """Returns what a log holds."""
    jobs = prepared.jobs
    span = float(jobs.submit_time[-1] - jobs.submit_time[0]) if len(jobs) else 0.0
    capacity = processors * span
    return LogDescription(
        trace=log.path,
        installation=log.header.installation,
        computer=log.header.computer,
        start=_utc(log.header.unix_start_time),
        processors=processors,
        records=len(log),
        jobs=len(jobs),
        users=len(np.unique(jobs.user[jobs.user >= 0])),
        span_days=span / SECONDS_PER_DAY,
        processors_max=int(jobs.processors.max()) if len(jobs) else 0,
        run_time_median_s=float(np.median(jobs.run_time)) if len(jobs) else math.nan,
        load=float(jobs.resource_consumption.sum()) / capacity if capacity else math.nan,
    )


def what_was_lost(report: PreparationReport) -> str:
    """Returns a sentence on the records that were dropped, and what keeps them; "" for few."""
    return report.losses(_as_option) if report.is_lossy else ""


def _as_option(name: str, choice: str) -> str:
    return f"--{name.replace('_', '-')} {choice}"


def no_job_left(prepared: Prepared) -> str:
    """Returns a sentence on why no job is left to replay, and what keeps some."""
    report, jobs = prepared.report, prepared.jobs
    if report.records_read == 0:
        return f"{report.path}: holds no job"
    if len(jobs) == 0:
        return f"{report.path}: no job is left: {report.losses(_as_option)}"
    first, last = (jobs.submit_time[at] / SECONDS_PER_DAY for at in (0, -1))
    return (
        f"{report.path}: none of {len(jobs):,} jobs is within --window-days and --first-jobs; "
        f"they are submitted from day {first:.1f} to day {last:.1f}"
    )


def _utc(seconds: int | None) -> str | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def print_run_json(report: RunReport) -> None:
    """Prints a run as one JSON object; what has no value is null."""
    values: dict[str, Any] = {"lrms_sim": __version__, "discipline": report.discipline}
    values |= asdict(report.metrics)
    values["makespan_origin_s"] = report.origin
    values["warm_up_days"], values["cool_down_days"] = report.cut_days
    values["tau_s"] = report.tau
    values["user_groups"] = [
        {"group": group, "jobs": jobs, "awrt_s": awrt} for group, jobs, awrt in report.groups
    ]
    values["user_fairness"] = asdict(report.fairness)
    values["preparation"] = asdict(report.preparation)
    if report.repetitions is not None:
        figures = report.repetitions.figures.items()
        values["repetitions"] = {name: interval._asdict() for name, interval in figures}
    if report.on_nodes is not None:
        values["nodes"] = node_figures(report.on_nodes)
    print_json("lrms-sim-run", values)


def print_repetitions(repetitions: Repetitions) -> None:
    """Prints means and their confidence intervals."""
    count, seconds = repetitions.repeat, repetitions.seconds
    sys.stdout.write(f"\n{count} repetitions, arrivals shifted by up to {seconds:g} s\n")
    for name, (mean, low, high) in repetitions.figures.items():
        sys.stdout.write(f"  {name:<24}{mean:>16,.4f}   95 %: {low:,.4f} to {high:,.4f}\n")


def figure_rows(report: RunReport) -> list[tuple[str, str, str]]:
    """Returns name, value and remark of every figure of a run."""
    metrics, fair = report.metrics, report.fairness
    prepared = report.preparation.jobs_prepared
    part = f"of {prepared:,} prepared" if metrics.jobs_executed < prepared else ""
    origin = "the first submission" if report.origin else "time 0"
    warm_up, cool_down = report.cut_days
    least = f"at least {report.tau:g} s"
    cut = (f"{metrics.jobs_submitted:,}", f"without {warm_up:g} and {cool_down:g} days")
    whole = ", of all jobs" if warm_up or cool_down else ""
    return [
        ("queue discipline", report.discipline, ""),
        ("jobs", f"{metrics.jobs_executed:,}", part),
        *([("jobs that count", *cut)] if warm_up or cool_down else []),
        ("AWRT", *seconds_and_words(metrics.awrt_s)),
        *_by_dominant_share(report.on_nodes),
        ("mean response time", *seconds_and_words(metrics.mean_response_time_s)),
        ("mean wait time", *seconds_and_words(metrics.mean_wait_time_s)),
        ("median wait time", *seconds_and_words(metrics.median_wait_time_s)),
        ("mean slowdown", _number(metrics.mean_slowdown, 4), ""),
        ("mean bounded slowdown", _number(metrics.mean_bounded_slowdown, 4), least),
        ("fairness over users", _number(fair.jain, 4), f"1 is alike; {fair.users:,} users"),
        ("utilization", _number(100 * metrics.utilization, 3, " %"), ""),
        ("squashed area", _number(metrics.squashed_area, 0, " s"), f"processor-seconds{whole}"),
        ("makespan", _number(metrics.makespan_s, 0, " s"), f"from {origin}{whole}"),
    ]


def _by_dominant_share(found: NodeSchedule | None) -> list[tuple[str, str, str]]:
    if found is None:
        return []
    return [("AWRT by dominant share", *seconds_and_words(awrt_by_dominant_share(found)))]


def group_rows(report: RunReport) -> list[tuple[str, str, str]]:
    """Returns name, AWRT and number of jobs of every user group."""
    return [
        (f"{group}  {words} of the work", _number(awrt, 4, " s"), f"{jobs:,}")
        for (group, jobs, awrt), words in zip(report.groups, _SHARES, strict=True)
    ]


def node_figures(found: NodeSchedule) -> dict[str, Any]:
    """Returns the figures of a schedule on a machine of nodes, as JSON has them."""
    machine = found.machine
    return {
        "kinds": [{**asdict(kind), "features": sorted(kind.features)} for kind in machine.kinds],
        "placement": machine.placement,
        "licences": dict(machine.licences),
        "utilization": asdict(utilization(found)),
        "fragmentation": fragmentation(found),
        "awrt_by_dominant_share_s": awrt_by_dominant_share(found),
        **{
            key: [asdict(each) for each in waits_by(found, class_of)]
            for key, _, class_of in REQUEST_CLASSES
        },
    }


REQUEST_CLASSES: Final[tuple[tuple[str, str, Callable[[Request], RequestClass]], ...]] = (
    ("waits_by_gpus", "jobs by GPUs", gpu_class),
    ("waits_by_memory", "jobs by memory", memory_class),
)
"""Key in JSON, words for people, and the classes."""


def resource_rows(found: NodeSchedule) -> list[tuple[str, str, str]]:
    """Returns the share of each resource that was held, and what there is of it."""
    machine, shares = found.machine, utilization(found)
    rows: list[tuple[str, float | None, str]] = [
        ("cores", shares.cores, f"of {machine.processors:,}"),
        ("memory", shares.memory, f"of {size_text(machine.memory)}"),
        ("GPUs", shares.gpus, f"of {machine.gpus:,}"),
    ]
    rows += [
        (f"licence {name}", share, f"of {dict(machine.licences)[name]:,}")
        for name, share in shares.licences.items()
    ]
    rows.append(
        ("fragmentation", fragmentation(found), "of the cores: idle, and the head asks for no more")
    )
    return [
        (name, _number(100 * share, 3, " %"), words)
        for name, share, words in rows
        if share is not None
    ]


def awrt_by_dominant_share(found: NodeSchedule) -> float:
    """Returns the response time weighted by run time and dominant share, seconds."""
    return weighted_response_time(found.schedule, dominant_shares(found.demands, found.machine))


def wait_rows(
    found: NodeSchedule, class_of: Callable[[Request], RequestClass]
) -> list[tuple[str, str, str]]:
    """Returns name, mean wait and the rest of each class of jobs."""
    return [
        (
            each.name,
            _number(each.mean, 1, " s"),
            f"{counted(each.jobs, 'job')}, median {each.median:,.0f} s",
        )
        for each in waits_by(found, class_of)
    ]


def kind_words(found: NodeSchedule) -> str:
    """Returns the nodes of a machine in a sentence."""
    return ", ".join(
        f"{kind.nodes:,} {kind.name} ({counted(kind.cores, 'core')}"
        + (f", {size_text(kind.memory)}" if kind.memory else "")
        + (f", {counted(kind.gpus, 'GPU')}" if kind.gpus else "")
        + ")"
        for kind in found.machine.kinds
    )


def _on_nodes(found: NodeSchedule | None) -> Iterator["RenderableType"]:
    if found is None:
        return
    yield f"Nodes: {kind_words(found)}; {found.machine.placement}"
    yield _table(("resource", "held", ""), resource_rows(found))
    for _, words, class_of in REQUEST_CLASSES:
        yield _table((words, "mean wait", ""), wait_rows(found, class_of))


def print_tables(report: RunReport, *, written: Iterable[object] = ()) -> None:
    """Prints a run as tables that fit 80 columns."""
    metrics = report.metrics
    size = f"{metrics.processors:,} {'processor' if metrics.processors == 1 else 'processors'}"
    source = f" ({report.size_key} of the log)" if report.processors_from_header else ""
    _show(
        _title(f"{metrics.machine}, {size}{source}"),
        _table(("", "value", ""), figure_rows(report)),
        _table(("user group", "AWRT", "jobs"), group_rows(report)),
        *_on_nodes(report.on_nodes),
        *_preparation(report.preparation),
    )
    # In one piece however long, so that it can be copied.
    sys.stdout.write("".join(f"Written to {printable(str(path))}\n" for path in written))
    if report.repetitions is not None:
        print_repetitions(report.repetitions)


_SHARES: Final = ("above 8 %", "2 to 8 %", "1 to 2 %", "0.1 to 1 %", "below 0.1 %")


def _preparation(report: PreparationReport) -> Iterator["RenderableType"]:
    yield _title(
        f"{report.records_read:,} records read, {report.records_dropped:,} dropped, "
        f"{report.jobs_prepared:,} jobs prepared"
    )
    if report.entries:
        rows = [(words, f"{count:,}", treatment) for words, count, treatment in report.rows()]
        yield _table(("rule", "records", "treatment"), rows)


def print_log(log: LogDescription, report: PreparationReport, *, as_json: bool) -> None:
    """Prints what a log holds and what its preparation does."""
    if as_json:
        print_json("lrms-sim-info", asdict(log) | {"preparation": asdict(report)})
        return
    machine = ", ".join(text for text in (log.computer, log.installation) if text)
    rows = [
        ("processors", f"{log.processors:,}", ""),
        ("jobs", f"{log.jobs:,}", f"of {log.records:,} records"),
        ("users", f"{log.users:,}", ""),
        ("span", f"{log.span_days:.1f} days", "first to last submission"),
        ("widest job", f"{log.processors_max:,}", "processors"),
        ("median run time", *seconds_and_words(log.run_time_median_s)),
        ("load", _number(100 * log.load, 2, " %"), "of the machine over the span"),
    ]
    _show(
        _title(log.trace),
        machine or "The header does not say whose log this is.",
        f"Time 0 is {log.start}." if log.start else "The header does not say when time 0 is.",
        _table(("", "value", ""), rows),
        *_preparation(report),
    )


def _number(value: float, digits: int, unit: str = "") -> str:
    return f"{value:,.{digits}f}{unit}" if math.isfinite(value) else "-"


def seconds_and_words(value: float) -> tuple[str, str]:
    """Returns seconds with 4 decimals, and in words where they are many."""
    if not math.isfinite(value):
        return "-", ""
    whole = round(value)
    days, hours, minutes = whole // 86400, whole % 86400 // 3600, whole % 3600 // 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (whole % 60, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    # Two units tell enough.
    words = " ".join(f"{count} {unit}" for count, unit in parts[:2])
    return _number(value, 4, " s"), words if whole >= 60 else ""


def _title(text: str) -> "RenderableType":
    from rich.text import Text  # noqa: PLC0415  # JSON needs none of it

    return Text(f"\n{printable(text)}", style="bold")


def _table(heads: tuple[str, str, str], rows: Iterable[tuple[str, str, str]]) -> "RenderableType":
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  # as in _title
    from rich.table import Table  # noqa: PLC0415  # same
    from rich.text import Text  # noqa: PLC0415  # same

    table = Table(box=SIMPLE_HEAD, show_header=any(heads[:1]), pad_edge=False)
    table.add_column(heads[0])
    table.add_column(heads[1], justify="right")
    table.add_column(heads[2], style="dim")
    for row in rows:
        # Names come from the user's files; what looks like markup in them is text.
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _show(*parts: "RenderableType") -> None:
    from rich.console import Console  # noqa: PLC0415  # as in _title
    from rich.text import Text  # noqa: PLC0415  # same

    console = Console()
    with console.capture() as captured:
        for part in parts:
            console.print(Text(printable(part)) if isinstance(part, str) else part)
    # One write, here: rich would end the process by itself where nobody reads on.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
