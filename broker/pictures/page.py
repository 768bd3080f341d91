"""Puts the page of a plan together: figures, methods beside each other, charts, critical path."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Final

from broker.model.critical import CriticalPaths, Link
from broker.model.measures import Measures, measure
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.pictures.chart import ROWS_MAX, by_resource, by_workflow, colors, first_rows, urgency
from broker.pictures.drawing import Picture
from broker.pictures.words import count_of, fitness, headline, money
from lrms_sim.pages.markup import scrolling
from lrms_sim.spelling import NOTHING, count, duration, share

LINKS_MAX: Final = 60
"""Most tasks of the critical path that are listed."""

_MARK = (
    '<svg viewBox="0 0 22 22" aria-hidden="true"><path d="M3 2h16v9H3z" fill="#fff"/>'
    '<path d="M3 11h16c0 5-4 8-8 9-4-1-8-4-8-9z" fill="var(--brand)"/>'
    '<path d="M3 2h16v9c0 5-4 8-8 9-4-1-8-4-8-9z" fill="none" stroke="var(--brand)" '
    'stroke-width="1.4"/></svg>'
)
_REASONS = {
    "begins": "begins",
    "predecessor": "waits for the task before it",
    "resource": "waits for a resource that the task before it holds",
    "opening": "waits for a resource to open",
}


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One way of planning, as a row of the comparison.

    Attributes:
        name: of the method.
        measures: of its plan.
        fitness: of its plan, from 0 to 100,000; None where it has not been assessed.
        seconds: that it took.
        evaluations: schedules that it built; None where it does not count them.
        chosen: whether its plan is the one shown.
    """

    name: str
    measures: Measures
    fitness: float | None = None
    seconds: float | None = None
    evaluations: int | None = None
    chosen: bool = False


def render_page(
    problem: Problem,
    plan: Plan,
    *,
    title: str,
    methods: Sequence[MethodRow] = (),
    made: Iterable[tuple[str, str]] = (),
) -> str:
    """Returns a plan as an HTML document that opens offline; equal plans give equal documents.

    Args:
        problem: what was planned.
        plan: for it.
        title: of the page.
        methods: ways of planning to compare; no table where there are none.
        made: names and values for the part that says how the plan was made.
    """
    paths = CriticalPaths(plan, problem.workflows)
    chain = paths.ending_with()
    color, legend = colors(problem.workflows)
    picture = Picture(
        problem,
        plan,
        frozenset(link.placement.key for link in chain),
        frozenset(
            link.placement.key
            for workflow in problem.workflows
            for link in paths.ending_with(workflow.name)
            if link.placement.workflow == workflow.name
        ),
        color,
        legend,
    )
    parts = [
        _head(problem, plan, title),
        _methods(problem, methods),
        _charts(picture),
        _workflows(picture),
        _chain(picture, chain),
        _made(made),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} · Hanse</title>\n<style>\n{_css()}</style>\n</head>\n<body>\n"
        f'<main class="page">\n{body}\n</main>\n</body>\n</html>\n'
    )


def _css() -> str:
    return resources.files("broker.pictures").joinpath("page.css").read_text(encoding="utf-8")


def _head(problem: Problem, plan: Plan, title: str) -> str:
    found = measure(problem, plan)
    limited = any(min(w.due_date, w.budget) < math.inf for w in problem.workflows)
    keeping = f"{found.keeping} of {len(problem.workflows)}"
    tone = "good" if found.keeping == len(problem.workflows) else "bad"
    figures = [
        ("makespan", duration(found.makespan), ""),
        ("mean completion", duration(found.completion), ""),
        ("cost", money(found.cost), ""),
        ("utilization", share(found.utilization), ""),
    ]
    if limited:
        figures.insert(0, ("workflows that keep their limits", keeping, tone))
    cells = "".join(
        f'<div><dt>{name}</dt><dd class="{tone}">{value}</dd></div>'
        for name, value, tone in figures
    )
    return (
        f'<header>\n<div class="brand">{_MARK}<span><b>Hanse</b> · plan</span></div>\n'
        f'<h1>{escape(title)}</h1>\n<p class="headline">{escape(headline(problem, plan))}</p>\n'
        f'<dl class="figures">{cells}</dl>\n</header>'
    )


def _methods(problem: Problem, methods: Sequence[MethodRow]) -> str:
    if not methods:
        return ""
    heads = "".join(
        f'<th scope="col">{name}</th>'
        for name in (
            "Method",
            "Fitness",
            "Makespan",
            "Mean completion",
            "Cost",
            "Utilization",
            "Late",
            "Over budget",
            "Schedules built",
            "Took",
        )
    )
    rows = "\n".join(_method(row) for row in methods)
    total = count_of(len(problem.workflows), "workflow")
    return (
        "<section>\n<h2>Methods beside each other</h2>\n"
        f"<p>The plan shown below is the marked one. Late and over budget count workflows, of {total}. "
        "Fitness weighs all objectives, with penalties for broken limits; 100,000 is the most.</p>\n"
        + scrolling(
            f"<table><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>",
            "Methods beside each other",
        )
        + "</section>"
    )


def _method(row: MethodRow) -> str:
    found = row.measures
    cells = (
        fitness(row.fitness),
        duration(found.makespan),
        duration(found.completion),
        money(found.cost),
        share(found.utilization),
        _bad_if_any(found.late),
        _bad_if_any(found.over_budget),
        NOTHING if row.evaluations is None else count(row.evaluations),
        NOTHING if row.seconds is None else duration(row.seconds),
    )
    mark = ' class="chosen"' if row.chosen else ""
    return (
        f'<tr{mark}><th scope="row">{escape(row.name)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _bad_if_any(number: int) -> str:
    return f'<span class="bad">{count(number)}</span>' if number else "0"


def _charts(picture: Picture) -> str:
    marks = '<li><span class="dot mark"></span>critical path of the plan</li>'
    if len(picture.problem.workflows) > 1:
        marks += "<li>deep colour: what sets the end of its workflow</li>"
    if any(w.due_date < math.inf for w in picture.problem.workflows):
        marks += '<li><span class="dot flag"></span>due date</li>'
    shut = '<li><span class="dot shut"></span>closed</li>'
    names = "".join(
        f'<li><span class="dot c{number}"></span>{escape(name)}</li>'
        for number, name in enumerate(picture.legend)
    )
    more = len(picture.problem.workflows) - len(picture.legend)
    if len(picture.problem.workflows) > 1 and more > 0:
        names += f"<li>and {count_of(more, 'more workflow')}, in the same colours again</li>"
    used = {name for each in picture.plan for name in each.resources}
    idle = sum(each.name not in used for each in picture.problem.resources)
    unused = f" {count_of(idle, 'resource')} without a task left out." if idle else ""
    crowded = (
        f" The {ROWS_MAX} that the critical path needs or that are longest in use have rows."
        if len(picture.problem.resources) - idle > ROWS_MAX
        else ""
    )
    return (
        "<section>\n<h2>By workflow</h2>\n"
        f"<p>{_times(picture)} Tasks that overlap stand below each other.{_cut(picture)}</p>\n"
        f'<ul class="legend">{names if len(picture.problem.workflows) == 1 else ""}{marks}</ul>\n'
        f'<div class="chart" role="group" tabindex="0" aria-label="Chart by workflow">{by_workflow(picture)}</div>\n</section>\n'
        "<section>\n<h2>By resource</h2>\n"
        f"<p>Each task on every resource that it takes.{unused}{crowded}</p>\n"
        f'<ul class="legend">{names}{shut}</ul>\n'
        f'<div class="chart" role="group" tabindex="0" aria-label="Chart by resource">{by_resource(picture)}</div>\n</section>'
    )


def _times(picture: Picture) -> str:
    axis = picture.axis()
    if axis.origin is not None:
        return "Times count from the moment of planning."
    return f"Times are UTC; planned for {axis.when(picture.problem.now)}."


def _cut(picture: Picture) -> str:
    """Returns what a reader has to know of charts that do not draw everything alike."""
    axis = picture.axis()
    said = ""
    if axis.bend < math.inf:
        said = (
            f" Nearly all tasks end before {axis.when(axis.bend)}; behind the dotted line there, "
            f"time is drawn {axis.narrowing:,.0f} times narrower."
        )
    if len(picture.problem.workflows) > ROWS_MAX:
        said += (
            f" Of the workflows the {ROWS_MAX} that are latest, over their budget or nearest to "
            "their due dates have rows; of the others it is drawn how many tasks run."
        )
    return said


def _workflows(picture: Picture) -> str:
    axis = picture.axis()
    rows = []
    outcomes = picture.plan.outcomes(picture.problem.workflows)
    numbered = [
        (number, workflow, outcome)
        for number, (workflow, outcome) in enumerate(
            zip(picture.problem.workflows, outcomes, strict=True)
        )
    ]
    first, others = first_rows(numbered, lambda each: urgency(each[1], each[2]))
    for number, workflow, each in (*first, *others):
        spare = workflow.due_date - each.completion
        left = workflow.budget - each.cost
        dot = f'<span class="dot c{number % 8}"></span>' if len(outcomes) > 1 else ""
        cells = (
            count(len(workflow.tasks)),
            axis.when(each.start),
            axis.when(each.completion),
            axis.when(workflow.due_date) if workflow.due_date < math.inf else NOTHING,
            _signed(duration(spare), spare),
            money(each.cost),
            money(workflow.budget) if workflow.budget < math.inf else NOTHING,
            _signed(money(left), left),
        )
        rows.append(
            f'<tr><th scope="row">{dot}{escape(workflow.name)}</th>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    heads = "".join(
        f'<th scope="col">{name}</th>'
        for name in (
            "Workflow",
            "Tasks",
            "Begins",
            "Ends",
            "Due",
            "Spare",
            "Cost",
            "Budget",
            "Left",
        )
    )
    begin = f"<table><thead><tr>{heads}</tr></thead><tbody>\n"
    end = "\n</tbody></table>"
    section = "<section>\n<h2>Due dates and budgets</h2>\n"
    if others:
        section += (
            "<p>The latest first, then those over their budget, then by the time to spare.</p>\n"
        )
    section += scrolling(
        begin + "\n".join(rows[: len(first)]) + end, "Due dates and budgets of workflows"
    )
    if others:
        section += (
            f"<details><summary>{count_of(len(others), 'more workflow')}</summary>\n"
            + scrolling(
                begin + "\n".join(rows[len(first) :]) + end,
                "Due dates and budgets of more workflows",
            )
            + "</details>\n"
        )
    return section + "</section>"


def _signed(text: str, value: float) -> str:
    if not math.isfinite(value):
        return NOTHING
    # A sum that came out as nothing but rounding is no overrun.
    return f'<span class="bad">{text}</span>' if value < 0 else text


def _chain(picture: Picture, chain: Sequence[Link]) -> str:
    if not chain:
        return ""
    axis = picture.axis()
    shown = chain if len(chain) <= LINKS_MAX else chain[-LINKS_MAX:]
    rows = "\n".join(
        f'<tr><th scope="row">{escape(link.placement.workflow)}</th>'
        f'<td class="words">{escape(link.placement.task)}</td>'
        f'<td class="words">{escape(", ".join(link.placement.resources))}</td>'
        f"<td>{axis.when(link.placement.start)}</td>"
        f"<td>{duration(link.placement.end - link.placement.start)}</td>"
        f'<td class="words">{_REASONS[link.reason]}</td></tr>'
        for link in shown
    )
    cut = f" The last {len(shown)} of {len(chain)} tasks." if len(shown) < len(chain) else ""
    return (
        "<section>\n<h2>Critical path</h2>\n"
        f"<p>What sets the end of the plan: were one of these shorter, it might end sooner.{cut}</p>\n"
        + scrolling(
            '<table><thead><tr><th scope="col">Workflow</th>'
            '<th class="words" scope="col">Task</th><th class="words" scope="col">Resource</th>'
            '<th scope="col">Starts</th><th scope="col">Takes</th>'
            f'<th class="words" scope="col">Why then</th></tr></thead><tbody>\n{rows}\n'
            "</tbody></table>",
            "Critical path",
        )
        + "</section>"
    )


def _made(made: Iterable[tuple[str, str]]) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in made)
    if not facts:
        return ""
    return f'<section>\n<h2>How it was made</h2>\n<dl class="made">{facts}</dl>\n</section>'
