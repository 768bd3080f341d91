"""The two Gantt charts of a plan: who does what when, by resource and by workflow.

Every workflow has a colour in both charts; where there is one workflow only, every kind of task
has one. The critical path is drawn in ink.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from broker.model.plan import Placement, WorkflowOutcome
from broker.model.resources import EPOCH_IN_WEEK, WEEK, Resource, gaps, join
from broker.model.workflow import Workflow
from broker.pictures.drawing import Chart, Picture
from broker.pictures.words import count_of, money
from lrms_sim.spelling import duration

COLORS: Final = 8
"""Number of colours; further workflows begin again with the first."""

CLOSED_MAX: Final = 400
"""Most spans of one resource that are drawn as closed."""

ROWS_MAX: Final = 100
"""Most rows of a chart; what is beyond is drawn together, the most urgent having rows."""

CROWDS_MAX: Final = 6
"""Most kinds of resources that have a row each where resources are drawn together."""

_Row = TypeVar("_Row")
_GROUP = re.compile(r"^(.*?[^\W\d_])[\W\d_]*(?:ID\d+)?$")


def colors(workflows: Sequence[Workflow]) -> tuple[dict[tuple[str, str], int], list[str]]:
    """Returns the colour of each task, and the names of colours.

    Workflows have colours, in order. A single workflow's tasks have them by kind: their names
    without numbers, the commonest first.
    """
    if len(workflows) > 1:
        found = {
            (workflow.name, task.name): number % COLORS
            for number, workflow in enumerate(workflows)
            for task in workflow.tasks
        }
        return found, [workflow.name for workflow in workflows[:COLORS]]
    (workflow,) = workflows
    kinds = {task.name: _kind(task.name) for task in workflow.tasks}
    sizes: dict[str, int] = {}
    for kind in kinds.values():
        sizes[kind] = sizes.get(kind, 0) + 1
    ranked = sorted(sizes, key=lambda kind: -sizes[kind])
    names = ranked if len(ranked) <= COLORS else [*ranked[: COLORS - 1], "others"]
    number = {kind: min(place, COLORS - 1) for place, kind in enumerate(ranked)}
    return {(workflow.name, name): number[kind] for name, kind in kinds.items()}, names


def _kind(name: str) -> str:
    match = _GROUP.match(re.sub(r"_?ID\d+$", "", name))
    return match.group(1) if match else name


def by_resource(picture: Picture) -> str:
    """Returns the chart with a row for each resource that does something."""
    placed: dict[str, list[Placement]] = {each.name: [] for each in picture.problem.resources}
    for each in picture.plan:
        for name in each.resources:
            placed.setdefault(name, []).append(each)
    chart = Chart(picture)
    used = [each for each in picture.problem.resources if placed[each.name]]
    shown, others = first_rows(used, lambda each: _importance(picture, placed[each.name]))
    for resource in shown:
        placements = placed[resource.name]
        units = f"×{resource.capacity} " if resource.capacity > 1 else ""
        busy = math.fsum(each.end - each.start for each in placements)
        chart.row(
            resource.name,
            f"{units}{resource.kind}, speed {resource.performance:g}",
            placements,
            (count_of(len(placements), "task"), f"{duration(busy)} in use"),
            closed=closed_spans(resource, *picture.span),
        )
    for kind, members in _by_kind(others):
        together = [each for resource in members for each in placed[resource.name]]
        chart.crowd(count_of(len(members), "more resource"), kind, together)
    return chart.render("by-resource", "Plan by resource")


def by_workflow(picture: Picture) -> str:
    """Returns the chart with a row for each workflow, with its due date and cost."""
    chart = Chart(picture)
    placed: dict[str, list[Placement]] = {}
    for each in picture.plan:
        placed.setdefault(each.workflow, []).append(each)
    outcomes = picture.plan.outcomes(picture.problem.workflows)
    both = list(zip(picture.problem.workflows, outcomes, strict=True))
    shown, others = first_rows(both, lambda each: urgency(*each))
    for workflow, outcome in shown:
        chart.row(
            workflow.name,
            count_of(len(workflow.tasks), "task"),
            placed.get(workflow.name, []),
            (_due_text(workflow, outcome), _cost_text(workflow, outcome)),
            due=workflow.due_date,
            good=(outcome.tardiness == 0, outcome.over_budget == 0),
        )
    if others:
        late = sum(outcome.tardiness > 0 for _, outcome in others)
        together = [each for workflow, _ in others for each in placed.get(workflow.name, [])]
        chart.crowd(
            count_of(len(others), "more workflow"), f"{late} of them late" if late else "", together
        )
    return chart.render("by-workflow", "Plan by workflow")


def urgency(workflow: Workflow, outcome: WorkflowOutcome) -> tuple[float, ...]:
    """Returns what workflows are sorted by where not all can be shown; the least comes first.

    Late ones, the latest first; then those over their budget; then by the time to spare.
    """
    spare = workflow.due_date - outcome.completion
    if math.isnan(spare):
        # Without a due date, and not all planned.
        spare = -math.inf
    over = outcome.over_budget > 0
    return (0.0 if spare < 0 and outcome.tardiness > 0 else 1.0 if over else 2.0), spare


def first_rows(
    rows: Sequence[_Row], key: Callable[[_Row], tuple[float, ...]]
) -> tuple[Sequence[_Row], Sequence[_Row]]:
    """Returns what has a row, and what is drawn together: where all have rows, in their order."""
    if len(rows) <= ROWS_MAX:
        return rows, []
    order = sorted(range(len(rows)), key=lambda number: (key(rows[number]), number))
    ordered = [rows[number] for number in order]
    return ordered[:ROWS_MAX], ordered[ROWS_MAX:]


def _importance(picture: Picture, placements: Sequence[Placement]) -> tuple[float, ...]:
    # Resources of the critical path come first, then those that are longest in use.
    critical = sum(each.key in picture.critical for each in placements)
    return -float(critical > 0), -math.fsum(each.end - each.start for each in placements)


def _by_kind(resources: Sequence[Resource]) -> Iterator[tuple[str, list[Resource]]]:
    # The commonest kinds by themselves, the rest together.
    kinds = Counter(each.kind for each in resources)
    own = [kind for kind, _ in kinds.most_common(CROWDS_MAX if len(kinds) <= CROWDS_MAX else 5)]
    for kind in own:
        yield kind, [each for each in resources if each.kind == kind]
    rest = [each for each in resources if each.kind not in own]
    if rest:
        yield "of other kinds", rest


def _due_text(workflow: Workflow, outcome: WorkflowOutcome) -> str:
    if math.isinf(outcome.completion):
        return "not all planned"
    if math.isinf(workflow.due_date):
        return "no due date"
    if outcome.tardiness > 0:
        return f"{duration(outcome.tardiness)} late"
    return f"{duration(workflow.due_date - outcome.completion)} to spare"


def _cost_text(workflow: Workflow, outcome: WorkflowOutcome) -> str:
    if math.isinf(workflow.budget):
        return f"costs {money(outcome.cost)}"
    return f"{money(outcome.cost)} of {money(workflow.budget)}"


def closed_spans(resource: Resource, begin: float, end: float) -> list[tuple[float, float]]:
    """Returns when a resource is closed between two moments; none where that would be a blur."""
    spans = [
        (max(a, begin), min(b, end)) for a, b in resource.closure_spans() if a < end and b > begin
    ]
    opening = resource.opening_spans()
    if opening and (end - begin) / WEEK * len(opening) <= CLOSED_MAX:
        shift = EPOCH_IN_WEEK + resource.utc_offset
        first = math.floor((begin + shift) / WEEK) - 1
        last = math.floor((end + shift) / WEEK) + 1
        weeks = [week * WEEK - shift for week in range(first, last + 1)]
        hours = join([(monday + a, monday + b) for monday in weeks for a, b in opening])
        spans += gaps(hours, begin, end)
    return join(spans)[:CLOSED_MAX]
