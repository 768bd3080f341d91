"""The part of a report that is about a broker: what workflows got, and what batch users paid."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from broker.gantt.wording import money
from lrms_sim.report.gantt import Bar, Gantt, Row, Shade, packed
from lrms_sim.report.parts import WIDE, Figure, Group, Html, Named, Section, Strong, Table, Words
from lrms_sim.report.time_axis import Axis
from scenarios.report import wording
from scenarios.report.tables import changed
from scenarios.run.broker_result import (
    DONE,
    BatchFigures,
    BrokerResult,
    ResourceFigures,
    WorkflowFigures,
)
from scenarios.run.results import ScenarioResult

BARS_MAX = 3000
"""Most jobs of one chart; beyond, those with the least work are left out."""

_HEIGHT = 230.0
_HEIGHT_MIN = 9.0


def sentence(broker: BrokerResult) -> str:
    """Returns what became of the workflows, in a sentence."""
    total, done = len(broker.workflows), broker.completed
    late = sum(each.tardiness > 0 for each in broker.workflows)
    dear = sum(each.over_budget > 0 for each in broker.workflows)
    limits = [
        f"{number} {word}" for number, word in ((late, "late"), (dear, "over budget")) if number
    ]
    kept = wording.listed(limits) if limits else "all in time and within their budgets"
    gone = total - done
    others = f"; {gone} given up or failed" if gone else ""
    return (
        f"The broker completed {done} of {total} workflows, {kept}{others}: "
        f"{len(broker.tasks)} tasks by {broker.plans} plans."
    )


def price_sentence(broker: BrokerResult) -> str:
    """Returns what the batch users pay, in a sentence."""
    parts = [
        f"{wording.change(each.improvement)} at {each.name}"
        for each in broker.batch
        if each.jobs and each.reservable
    ]
    if not parts:
        return "No batch job has to wait for a workflow."
    return (
        "Improvement of average weighted response time of batch jobs (positive is better), against "
        "machines with all processors: "
        f"{wording.listed(parts)}."
    )


def section(result: ScenarioResult) -> Words:
    """Returns the section of a report; nothing without a broker."""
    broker = result.broker
    if broker is None:
        return ""
    return Section(
        "Batch jobs and workflows side by side",
        [
            sentence(broker),
            price_sentence(broker),
            _batch(broker),
            (
                "Each site over time, as high as it has processors: above, the resources that can be "
                "reserved with the workflows' tasks in the colours of the table below; under them the "
                "batch machine with its jobs in grey. While it is broken, a resource is framed."
            ),
            *_charts(result, broker),
            _workflows(broker),
        ],
    )


def _batch(broker: BrokerResult) -> Table:
    heads = (
        *("Batch machine", "Reservable", "of that in use", "Own jobs"),
        *(Html("AWRT without<br>the broker, s"), "with it, s", "Improvement"),
    )
    return Table(
        ("Site", *heads),
        [(Named(site.name, index), *_batch_cells(site)) for index, site in enumerate(broker.batch)],
        "Without the broker, the batch machine has the processors that are set apart for reservations, too.",
        title="Batch users.",
        name="Batch jobs beside the broker",
    )


def _batch_cells(site: BatchFigures) -> tuple[Words, ...]:
    def seconds(value: float | None) -> str:
        return wording.NOTHING if value is None else wording.seconds(value)

    return (
        wording.count(site.processors),
        wording.count(site.reservable),
        wording.NOTHING if site.reserved_share is None else wording.share(site.reserved_share),
        wording.count(site.jobs),
        seconds(site.awrt_without),
        seconds(site.awrt_with),
        changed(site.improvement),
    )


def _workflows(broker: BrokerResult) -> Table:
    heads = ("Tasks", "Handed in", "Begins", "Ends", "Due", "Spare", "Cost", "Budget", "Left")
    return Table(
        ("Workflow", *heads),
        [_workflow(number, each) for number, each in enumerate(broker.workflows)],
        "Times count from the beginning of the scenario.",
        title="Workflows.",
        name="Workflows",
        kind="compact",
    )


def _workflow(number: int, each: WorkflowFigures) -> tuple[Words, ...]:
    done = each.state == DONE
    spare = None if each.due_date is None or not done else each.due_date - each.end_time
    left = None if each.budget is None or not done else each.budget - each.cost
    return (
        Named(each.name + ("" if done else f" ({each.state})"), number),
        wording.count(each.tasks),
        wording.duration(each.submit_time),
        wording.NOTHING if each.start_time is None else wording.duration(each.start_time),
        wording.duration(each.end_time),
        wording.NOTHING if each.due_date is None else wording.duration(each.due_date),
        _signed(spare, each.tardiness, wording.duration),
        money(each.cost),
        wording.NOTHING if each.budget is None else money(each.budget),
        _signed(left, each.over_budget, money),
    )


def _signed(value: float | None, beyond: float, spell: Callable[[float], str]) -> Words:
    if value is None:
        return wording.NOTHING
    return Strong(spell(value), "loss") if beyond > 0 else spell(value)


def _charts(result: ScenarioResult, broker: BrokerResult) -> Iterator[Group]:
    begin, end = broker.span
    axis = Axis(min(0.0, begin), end + 0.02 * (end - begin), 96.0, WIDE, 0.0)
    for index, site in enumerate(result.sites):
        resources = [each for each in broker.resources if each.site == site.name]
        total = site.processors + sum(each.processors for each in resources)
        unit = _HEIGHT / max(total, 1)
        rows = [_reserved(broker, each, unit) for each in resources]
        chart = Gantt(
            f"site-{index}-machines",
            f"What runs at {site.name}, batch jobs and tasks of workflows",
            axis,
            [*rows, _batch_row(result, index, axis, unit)],
            WIDE,
            piece=math.inf,
            gap=5.0,
        )
        yield Group(site.name, [Figure(str(chart))], f"{wording.count(total)} processors")


def _reserved(broker: BrokerResult, resource: ResourceFigures, unit: float) -> Row:
    number = {each.name: index for index, each in enumerate(broker.workflows)}
    tasks = [each for each in broker.tasks if each.resource == resource.name]
    bars = [
        Bar(
            each.start_time,
            each.end_time,
            title=f"{each.workflow} / {each.task}: {wording.duration(each.start_time)} to "
            f"{wording.duration(each.end_time)}, {each.processors} processors, costs "
            f"{money(each.cost)}",
            label=str(number[each.workflow] + 1),
            color=number[each.workflow],
            kind="deep",
        )
        for each in tasks
    ]
    label = resource.name.removeprefix(f"{resource.site}-")
    row = _row(label, resource.processors, bars, [each.processors for each in tasks], unit)
    broken = [
        Shade(begin, end, "broken", f"{label} is broken for {wording.duration(end - begin)}")
        for begin, end in resource.broken
    ]
    return replace(row, shades=broken)


def _batch_row(result: ScenarioResult, index: int, axis: Axis, unit: float) -> Row:
    schedule = result.schedule
    shown = (schedule.end_time > axis.begin) & (schedule.start_time < axis.end)
    here = np.flatnonzero((schedule.executed_on == index) & shown)
    work = schedule.jobs.resource_consumption[here]
    here = np.sort(here[np.argsort(-work, kind="stable")[:BARS_MAX]])
    bars = [
        Bar(
            float(schedule.start_time[row]),
            float(schedule.end_time[row]),
            title=f"batch job {schedule.jobs.job_id[row]} of "
            f"{result.sites[int(schedule.submitted_to[row])].name}: "
            f"{schedule.jobs.processors[row]} processors for "
            f"{wording.duration(float(schedule.jobs.run_time[row]))}",
        )
        for row in here.tolist()
    ]
    counts = schedule.jobs.processors[here].tolist()
    return _row("batch", result.sites[index].processors, bars, counts, unit)


def _row(
    name: str, processors: int, bars: Sequence[Bar], counts: Sequence[int], unit: float
) -> Row:
    placed = [bar for pieces in packed(bars, counts, processors) for bar in pieces]
    return Row(name, max(_HEIGHT_MIN, processors * unit), placed, processors)
