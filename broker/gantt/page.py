"""Puts the page of a plan together: figures, methods beside each other, charts, critical path."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from broker.gantt.chart import (
    ROWS_MAX,
    Picture,
    by_link,
    by_resource,
    by_workflow,
    colors,
    first_rows,
    urgency,
)
from broker.gantt.wording import count_of, fitness, headline, money, size, transfers_words
from broker.model.critical import CriticalPaths, Link
from broker.model.estimates import ProgramEstimate
from broker.model.measures import Measures, measure
from broker.model.plan import Plan, WorkflowOutcome
from broker.model.problem import Problem
from broker.model.workflow import Workflow
from lrms_sim.report.parts import (
    Card,
    Facts,
    Figure,
    Folded,
    Legend,
    Named,
    Page,
    Section,
    Strong,
    Table,
    Words,
)
from lrms_sim.util.messages import NOTHING, count, duration, share

LINKS_MAX: Final = 60
"""Most tasks of the critical path that are listed."""

_REASONS = {
    "begins": "begins",
    "predecessor": "waits for the task before it",
    "files": "waits for its files",
    "resource": "waits for a resource that the task before it holds",
    "opening": "waits for a resource to open",
}


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One way of planning, as a row of the comparison.

    Attributes:
        fitness: of its plan, from 0 to 100,000; `None` if it has not been assessed.
        evaluations: schedules that it built; `None` if it does not count them.
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
    estimates: Sequence[ProgramEstimate] = (),
    learned: bool = False,
) -> str:
    """Returns a plan as a self-contained HTML document; equal plans give equal documents.

    `methods` are compared in a table, `made` are names and values that say how the plan was made. `estimates` are
    what is known of programs; with `learned` the plan goes by them.
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
    facts = [(name, value) for name, value in made]
    page = Page(
        title,
        "plan",
        [
            _methods(problem, methods),
            *_charts(picture),
            *_transfers(picture),
            _workflows(picture),
            _chain(picture, chain),
            _estimates(estimates, learned=learned),
            Section("How it was made", [Facts(facts)] if facts else []),
        ],
        headline=headline(problem, plan),
        cards=list(_cards(problem, plan)),
        cards_of="Key figures",
        broad=True,
    )
    return str(page)


def _estimates(estimates: Sequence[ProgramEstimate], *, learned: bool) -> Section:
    heads = ("Program", "Runs", "Work of a run", "Of the estimate", "Four of five", "Elsewhere")
    rows = [
        (
            each.program,
            count(each.runs),
            duration(each.work),
            f"{each.ratio:.2f}",
            f"{each.low:.2f} to {each.high:.2f}",
            ", ".join(f"{factor:.2f} on {name}" for name, factor in each.factors) or NOTHING,
        )
        for each in estimates
    ]
    used = "Plans go by it." if learned else "Plans go by what users say."
    return Section(
        "Run times learned",
        [Table(heads, rows, name="Run times learned")] if rows else [],
        about=f"What the last runs of programs took, medians. {used}",
    )


def _cards(problem: Problem, plan: Plan) -> Iterator[Card]:
    found = measure(problem, plan)
    if any(min(w.due_date, w.budget) < math.inf for w in problem.workflows):
        tone = "gain" if found.keeping == len(problem.workflows) else "loss"
        keeping = f"{found.keeping} of {len(problem.workflows)}"
        yield Card(keeping, "workflows that keep their limits", tone=tone)
    yield Card(duration(found.makespan), "makespan")
    yield Card(duration(found.completion), "mean completion")
    yield Card(money(found.cost), "cost")
    yield Card(share(found.utilization), "utilization")
    if plan.transfers:
        yield Card(size(math.fsum(each.size for each in plan.transfers)), "between sites")


def _methods(problem: Problem, methods: Sequence[MethodRow]) -> Section:
    heads = (
        *("Method", "Fitness", "Makespan", "Mean completion", "Cost", "Utilization"),
        *("Late", "Over budget", "Schedules built", "Took"),
    )
    table = Table(
        heads,
        [_method(row) for row in methods],
        name="Methods beside each other",
        chosen=next((number for number, row in enumerate(methods) if row.chosen), None),
    )
    total = count_of(len(problem.workflows), "workflow")
    return Section(
        "Methods beside each other",
        [table] if methods else [],
        about=f"The plan shown below is the marked one. Late and over budget count workflows, of {total}. "
        "Fitness weighs all objectives, with penalties for broken limits; 100,000 is the most.",
    )


def _method(row: MethodRow) -> tuple[Words, ...]:
    found = row.measures
    return (
        row.name,
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


def _bad_if_any(number: int) -> Words:
    return Strong(count(number), "loss") if number else "0"


def _charts(picture: Picture) -> Iterator[Section]:
    workflows = picture.problem.workflows
    marks: list[tuple[int | str, str]] = [("mark", "critical path of the plan")]
    if len(workflows) > 1:
        marks.append(("", "deep colour: what sets the end of its workflow"))
    if any(w.due_date < math.inf for w in workflows):
        marks.append(("flag", "due date"))
    names: list[tuple[int | str, str]] = list(enumerate(picture.legend))
    more = len(workflows) - len(picture.legend)
    if len(workflows) > 1 and more > 0:
        names.append(("", f"and {count_of(more, 'more workflow')}, in the same colours again"))
    used = {name for each in picture.plan for name in each.resources}
    idle = sum(each.name not in used for each in picture.problem.resources)
    unused = f" {count_of(idle, 'resource')} without a task left out." if idle else ""
    crowded = (
        f" The {ROWS_MAX} that the critical path needs or that are longest in use have rows."
        if len(picture.problem.resources) - idle > ROWS_MAX
        else ""
    )
    yield Section(
        "By workflow",
        [
            Legend([*names, *marks] if len(workflows) == 1 else marks),
            Figure(by_workflow(picture), label="Chart by workflow"),
        ],
        about=f"{_times(picture)} Tasks that overlap stand below each other.{_cut(picture)}",
    )
    yield Section(
        "By resource",
        [
            Legend([*names, ("shut", "closed")]),
            Figure(by_resource(picture), label="Chart by resource"),
        ],
        about=f"Each task on every resource that it takes.{unused}{crowded}",
    )


def _transfers(picture: Picture) -> Iterator[Section]:
    if picture.plan.transfers:
        yield Section(
            "Transfers",
            [Figure(by_link(picture), label="Chart of transfers")],
            about=f"{transfers_words(picture.plan, picture.problem.network)} Each bar is the files that a task is sent from one "
            "place, in a row for each pair of sites.",
        )


def _times(picture: Picture) -> str:
    axis = picture.axis
    if axis.origin is not None:
        return "Times count from the moment of planning."
    return f"Times are UTC; planned for {axis.when(picture.problem.now)}."


def _cut(picture: Picture) -> str:
    axis = picture.axis
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


def _workflows(picture: Picture) -> Section:
    outcomes = picture.plan.outcomes(picture.problem.workflows)
    both = list(zip(picture.problem.workflows, outcomes, strict=True))
    first, others = first_rows(list(enumerate(both)), lambda each: urgency(*each[1]))
    several = len(outcomes) > 1

    def table(chosen: Sequence[tuple[int, tuple[Workflow, WorkflowOutcome]]], which: str) -> Table:
        heads = ("Workflow", "Tasks", "Begins", "Ends", "Due", "Spare", "Cost", "Budget", "Left")
        rows = [
            (Named(each[0].name, number) if several else each[0].name, *_limits(picture, *each))
            for number, each in chosen
        ]
        return Table(heads, rows, name=f"Due dates and budgets of {which}")

    parts: list[Words] = [table(first, "workflows")]
    if others:
        parts.insert(
            0, "The latest first, then those over their budget, then by the time to spare."
        )
        more = count_of(len(others), "more workflow")
        parts.append(Folded(more, table(others, "more workflows")))
    return Section("Due dates and budgets", parts)


def _limits(picture: Picture, workflow: Workflow, outcome: WorkflowOutcome) -> tuple[Words, ...]:
    axis = picture.axis
    spare = workflow.due_date - outcome.completion
    left = workflow.budget - outcome.cost
    return (
        count(len(workflow.tasks)),
        axis.when(outcome.start),
        axis.when(outcome.completion),
        axis.when(workflow.due_date) if workflow.due_date < math.inf else NOTHING,
        _signed(duration(spare), spare),
        money(outcome.cost),
        money(workflow.budget) if workflow.budget < math.inf else NOTHING,
        _signed(money(left), left),
    )


def _signed(text: str, value: float) -> Words:
    if not math.isfinite(value):
        return NOTHING
    # A sum that came out as nothing but rounding is no overrun.
    return Strong(text, "loss") if value < 0 else text


def _chain(picture: Picture, chain: Sequence[Link]) -> Words:
    if not chain:
        return ""
    axis = picture.axis
    shown = chain if len(chain) <= LINKS_MAX else chain[-LINKS_MAX:]
    rows = [
        (
            link.placement.workflow,
            link.placement.task,
            ", ".join(link.placement.resources),
            axis.when(link.placement.start),
            duration(link.placement.end - link.placement.start),
            _REASONS[link.reason],
        )
        for link in shown
    ]
    heads = ("Workflow", "Task", "Resource", "Starts", "Takes", "Why then")
    cut = f" The last {len(shown)} of {len(chain)} tasks." if len(shown) < len(chain) else ""
    return Section(
        "Critical path",
        [Table(heads, rows, name="Critical path", words={1, 2, 5})],
        about=f"What sets the end of the plan: were one of these shorter, it might end sooner.{cut}",
    )
