"""The part of a report that is about a broker: what workflows got, and what batch users paid."""

from collections.abc import Iterator
from html import escape

import numpy as np

from broker.pictures.words import money
from lrms_sim.pages.markup import cells, column_heads, figure, heading, scrolling, site_cell
from scenarios.report import words
from scenarios.report.machine_chart import Band, Bar, machine_chart
from scenarios.run.broker_result import BatchFigures, BrokerResult, WorkflowFigures
from scenarios.run.results import ScenarioResult

COLORS = 8
"""Number of colours; further workflows begin again with the first."""


def sentence(broker: BrokerResult) -> str:
    """Returns what became of the workflows, in a sentence."""
    total, done = len(broker.workflows), broker.completed
    late = sum(each.tardiness > 0 for each in broker.workflows)
    dear = sum(each.over_budget > 0 for each in broker.workflows)
    limits = [
        f"{number} {word}" for number, word in ((late, "late"), (dear, "over budget")) if number
    ]
    kept = words.listed(limits) if limits else "all in time and within their budgets"
    gone = total - done
    others = f"; {gone} given up or failed" if gone else ""
    return (
        f"The broker completed {done} of {total} workflows, {kept}{others}: "
        f"{len(broker.tasks)} tasks by {broker.plans} plans."
    )


def price_sentence(broker: BrokerResult) -> str:
    """Returns what the batch users pay, in a sentence."""
    parts = [
        f"{words.change(each.improvement)} at {each.name}"
        for each in broker.batch
        if each.jobs and each.reservable
    ]
    if not parts:
        return "No batch job has to wait for a workflow."
    return (
        "Improvement of average weighted response time of batch jobs (positive is better), against "
        "machines with all processors: "
        f"{words.listed(parts)}."
    )


def section(result: ScenarioResult) -> str:
    """Returns the section of a report; empty without a broker."""
    broker = result.broker
    if broker is None:
        return ""
    return (
        f"<section>\n{heading('Batch jobs and workflows side by side')}\n"
        f"<p>{escape(sentence(broker))}</p>\n<p>{escape(price_sentence(broker))}</p>\n"
        f"{scrolling(_batch(broker), 'Batch jobs beside the broker')}"
        f"{_charts(result, broker)}"
        f"{scrolling(_workflows(broker), 'Workflows')}</section>"
    )


def _batch(broker: BrokerResult) -> str:
    heads = column_heads(
        (
            "Batch machine",
            "Reservable",
            "of that in use",
            "Own jobs",
            "AWRT without<br>the broker, s",
            "with it, s",
            "Improvement",
        )
    )
    rows = "\n".join(
        f"<tr>{site_cell(site.name, index)}{_batch_cells(site)}</tr>"
        for index, site in enumerate(broker.batch)
    )
    return (
        "<table><caption><b>Batch users.</b> Without the broker, the batch machine has the "
        "processors that are set apart for reservations, too.</caption>"
        f'<thead><tr><th class="left" scope="col">Site</th>{heads}</tr></thead><tbody>\n{rows}\n'
        "</tbody></table>"
    )


def _batch_cells(site: BatchFigures) -> str:
    def seconds(value: float | None) -> str:
        return words.NOTHING if value is None else words.seconds(value)

    tone = "loss" if site.improvement <= -words.UNCHANGED else ""
    tone = "gain" if site.improvement >= words.UNCHANGED else tone
    return cells(
        (
            words.count(site.processors),
            words.count(site.reservable),
            words.NOTHING if site.reserved_share is None else words.share(site.reserved_share),
            words.count(site.jobs),
            seconds(site.awrt_without),
            seconds(site.awrt_with),
            f'<strong class="{tone}">{words.change(site.improvement)}</strong>',
        )
    )


def _workflows(broker: BrokerResult) -> str:
    heads = column_heads(
        ("Tasks", "Handed in", "Begins", "Ends", "Due", "Spare", "Cost", "Budget", "Left")
    )
    rows = "\n".join(
        f"<tr>{_name_cell(number, each)}{_workflow_cells(each)}</tr>"
        for number, each in enumerate(broker.workflows)
    )
    return (
        '<table class="compact"><caption><b>Workflows.</b> Times count from the beginning of the '
        "scenario.</caption>"
        f'<thead><tr><th class="left" scope="col">Workflow</th>{heads}</tr></thead><tbody>\n{rows}'
        "\n</tbody></table>"
    )


def _name_cell(number: int, each: WorkflowFigures) -> str:
    note = "" if each.state == "completed" else f" ({each.state})"
    return site_cell(each.name + note, number % COLORS)


def _workflow_cells(each: WorkflowFigures) -> str:
    done = each.state == "completed"
    spare = None if each.due_date is None or not done else each.due_date - each.end_time
    left = None if each.budget is None or not done else each.budget - each.cost
    return cells(
        (
            words.count(each.tasks),
            words.duration(each.submit_time),
            words.NOTHING if each.start_time is None else words.duration(each.start_time),
            words.duration(each.end_time),
            words.NOTHING if each.due_date is None else words.duration(each.due_date),
            _signed(spare, each.tardiness, words.duration),
            money(each.cost),
            words.NOTHING if each.budget is None else money(each.budget),
            _signed(left, each.over_budget, money),
        )
    )


def _signed(value: float | None, beyond: float, spell: object) -> str:
    assert callable(spell)
    if value is None:
        return words.NOTHING
    text = spell(value)
    return f'<strong class="loss">{text}</strong>' if beyond > 0 else str(text)


def _charts(result: ScenarioResult, broker: BrokerResult) -> str:
    about = (
        "<p>Each site over time, as high as it has processors: above, the resources that can be "
        "reserved with the workflows' tasks in the colours of the table below; under them the "
        "batch machine with its jobs in grey. While it is broken, a resource is framed.</p>\n"
    )
    parts = [about]
    begin, end = broker.span
    span = (min(0.0, begin), end + 0.02 * (end - begin))
    for index, site in enumerate(result.sites):
        bands = (*_reserved(broker, site.name), _batch_band(result, index))
        chart = machine_chart(
            bands,
            span,
            key=f"site-{index}-machines",
            title=f"What runs at {site.name}, batch jobs and tasks of workflows",
        )
        total = sum(band.processors for band in bands)
        parts.append(
            f'<div class="site"><h3>{escape(site.name)} <small>{words.count(total)} processors'
            f"</small></h3>\n{figure(chart, '', 'wide')}</div>\n"
        )
    return "".join(parts)


def _reserved(broker: BrokerResult, site: str) -> Iterator[Band]:
    number = {each.name: index for index, each in enumerate(broker.workflows)}
    for resource in broker.resources:
        if resource.site != site:
            continue
        bars = [
            Bar(
                each.start_time,
                each.end_time,
                each.processors,
                number[each.workflow] % COLORS,
                f"{each.workflow} / {each.task}: {words.duration(each.start_time)} to "
                f"{words.duration(each.end_time)}, {each.processors} processors, costs "
                f"{money(each.cost)}",
                str(number[each.workflow] + 1),
            )
            for each in broker.tasks
            if each.resource == resource.name
        ]
        label = resource.name.removeprefix(f"{site}-")
        yield Band(label, resource.processors, bars, resource.broken)


def _batch_band(result: ScenarioResult, index: int) -> Band:
    schedule = result.schedule
    here = np.flatnonzero(schedule.executed_on == index)
    order = here[np.lexsort((here, schedule.start_time[here]))]
    bars = [
        Bar(
            float(schedule.start_time[row]),
            float(schedule.end_time[row]),
            int(schedule.jobs.processors[row]),
            None,
            f"batch job {schedule.jobs.job_id[row]} of "
            f"{result.sites[int(schedule.submitted_to[row])].name}: "
            f"{schedule.jobs.processors[row]} processors for "
            f"{words.duration(float(schedule.jobs.run_time[row]))}",
        )
        for row in order.tolist()
    ]
    return Band("batch", result.sites[index].processors, bars)
