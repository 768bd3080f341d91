"""The two Gantt charts of a plan, by resource and by workflow.

Every workflow has a colour in both charts; with one workflow only, every kind of task has one. The
critical path is drawn in ink.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

from broker.gantt.layout import axis_of, lane_height
from broker.gantt.wording import count_of, money, size
from broker.model.plan import Placement, Plan, Transfer, WorkflowOutcome
from broker.model.problem import Problem
from broker.model.resources import EPOCH_IN_WEEK, WEEK, Resource, gaps, join
from broker.model.workflow import Workflow
from lrms_sim.machine.places import held
from lrms_sim.report.gantt import Bar, Drawn, Gantt, Row, Shade
from lrms_sim.report.time_axis import Axis, bend_of
from lrms_sim.util.messages import duration

COLORS: Final = 8
"""Number of colours; further workflows start over."""

CLOSED_MAX: Final = 400
"""Most spans of one resource that are drawn as closed."""

ROWS_MAX: Final = 100
"""Most rows of a chart; the rest is drawn together, the most urgent having rows."""

CROWDS_MAX: Final = 6
"""Most kinds of resources that have a row each if resources are drawn together."""

TITLES_MAX: Final = 10_000
"""Most bars with tooltips; beyond, a page would be too large."""

FILES_MAX: Final = 5
"""Most files that the tooltip of a transfer names."""

WIDTH: Final = 1180.0
"""In its own units."""

LEFT: Final = 138.0
RIGHT: Final = 1036.0

_Row = TypeVar("_Row")
_GROUP = re.compile(r"^(.*?[^\W\d_])[\W\d_]*(?:ID\d+)?$")


@dataclass(frozen=True)
class Picture:
    """What both charts draw.

    Attributes:
        critical: keys of the tasks on the critical path of the plan.
        holding: keys of the tasks on the critical path of each workflow.
        legend: names of the colours that need one.
    """

    problem: Problem
    plan: Plan
    critical: Collection[tuple[str, str]]
    holding: Collection[tuple[str, str]]
    color: Mapping[tuple[str, str], int]
    legend: Sequence[str]

    @cached_property
    def span(self) -> tuple[float, float]:
        """Begin and end of the charts: all tasks, and due dates that are not much later."""
        begin = min([self.problem.now, *(each.start for each in self.plan)])
        end = max([begin, *(each.end for each in self.plan)])
        room = end + 0.25 * (end - begin)
        due = [each.due_date for each in self.problem.workflows if each.due_date <= room]
        return begin, max([end, *due])

    @cached_property
    def axis(self) -> Axis:
        """The time axis of the charts."""
        begin, end = self.span
        bend = bend_of(begin, [each.end for each in self.plan])
        return axis_of(begin, end, left=LEFT, right=RIGHT, now=self.problem.now, bend=bend)

    def drawn(self, key: str, title: str, rows: Sequence[Row]) -> str:
        """Returns a chart of rows as one or more `<svg>` elements."""
        return str(Gantt(key, title, self.axis, rows, WIDTH, 18, now=self.problem.now))


def colors(workflows: Sequence[Workflow]) -> tuple[dict[tuple[str, str], int], list[str]]:
    """Returns the colour of each task, and the names of colours.

    Workflows have colours, in order. A single workflow's tasks have them by kind: their names
    without numbers, the most common first.
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
    used = [each for each in picture.problem.resources if placed[each.name]]
    shown, others = first_rows(used, lambda each: _importance(picture, placed[each.name]))
    rows = []
    for resource in shown:
        placements = placed[resource.name]
        units = f"×{resource.capacity} " if resource.capacity > 1 else ""
        busy = math.fsum(each.end - each.start for each in placements)
        row = _row(
            picture,
            resource.name,
            f"{units}{resource.kind}, speed {resource.performance:g}",
            placements,
            ((count_of(len(placements), "task"), True), (f"{duration(busy)} in use", True)),
        )
        closed = closed_spans(resource, *picture.span)
        rows.append(replace(row, shades=[Shade(*span, "closed") for span in closed]))
    for kind, members in _by_kind(others):
        together = [each for resource in members for each in placed[resource.name]]
        rows.append(_crowd(picture, count_of(len(members), "more resource"), kind, together))
    return picture.drawn("by-resource", "Plan by resource", rows)


def by_workflow(picture: Picture) -> str:
    """Returns the chart with a row for each workflow, with its due date and cost."""
    placed: dict[str, list[Placement]] = {}
    for each in picture.plan:
        placed.setdefault(each.workflow, []).append(each)
    outcomes = picture.plan.outcomes(picture.problem.workflows)
    both = list(zip(picture.problem.workflows, outcomes, strict=True))
    shown, others = first_rows(both, lambda each: urgency(*each))
    rows = []
    for workflow, outcome in shown:
        row = _row(
            picture,
            workflow.name,
            count_of(len(workflow.tasks), "task"),
            placed.get(workflow.name, []),
            (
                (_due_text(workflow, outcome), outcome.tardiness == 0),
                (_cost_text(workflow, outcome), outcome.over_budget == 0),
            ),
        )
        due = workflow.due_date if workflow.due_date < math.inf else None
        rows.append(replace(row, due=due, late=outcome.tardiness > 0))
    if others:
        late = sum(outcome.tardiness > 0 for _, outcome in others)
        name = count_of(len(others), "more workflow")
        together = [each for workflow, _ in others for each in placed.get(workflow.name, [])]
        rows.append(_crowd(picture, name, f"{late} of them late" if late else "", together))
    return picture.drawn("by-workflow", "Plan by workflow", rows)


def by_link(picture: Picture) -> str:
    """Returns the chart of transfers with a row for each pair of sites, those with most bytes first."""
    sent: dict[tuple[str, str], list[Transfer]] = {}
    for each in picture.plan.transfers:
        sent.setdefault((each.source, each.target), []).append(each)
    bytes_of = {pair: math.fsum(each.size for each in mine) for pair, mine in sent.items()}
    shown, others = first_rows(list(sent), lambda pair: (-bytes_of[pair],))
    rows = []
    for pair in shown:
        places = [
            # A bar of its own for each: without contention they do not wait for each other.
            Placement(each.workflow, each.task, (), each.begin, each.end, each.cost)
            for each in sent[pair]
        ]
        figures = ((count_of(len(places), "transfer"), True), (size(bytes_of[pair]), True))
        row = _row(picture, pair[1], f"from {pair[0]}", places, figures)
        bars = [
            replace(bar, title=_transfer_title(picture.axis, each), kind="")
            for bar, each in zip(row.bars, sent[pair], strict=True)
        ]
        rows.append(replace(row, bars=bars))
    if others:
        together = [
            Placement(each.workflow, each.task, (), each.begin, each.end, each.cost)
            for pair in others
            for each in sent[pair]
        ]
        rows.append(_crowd(picture, count_of(len(others), "more pair"), "", together))
    return picture.drawn("by-link", "Transfers", rows)


def _transfer_title(axis: Axis, transfer: Transfer) -> str:
    more = len(transfer.files) - FILES_MAX
    files = ", ".join(transfer.files[:FILES_MAX]) + (f" and {more} more" if more > 0 else "")
    return (
        f"{transfer.workflow} / {transfer.task}\n{files}\n{size(transfer.size)} from "
        f"{transfer.source} to {transfer.target}\n{axis.when(transfer.begin)} to "
        f"{axis.when(transfer.end)} ({duration(transfer.end - transfer.begin)})"
    )


def _row(
    picture: Picture,
    name: str,
    below: str,
    placements: Sequence[Placement],
    figures: Sequence[tuple[str, bool]],
) -> Row:
    spans = [(each.start, each.end) for each in placements]
    lanes = [lane for ((lane, _),) in held(spans, [1] * len(spans), len(spans))]
    number = max(lanes, default=0) + 1
    step = lane_height(number)
    height = max(28.0, number * step + 5)
    return Row(
        name,
        height,
        [_bar(picture, each, lane) for each, lane in zip(placements, lanes, strict=True)],
        number,
        (height - number * step) / 2,
        1.5 if step > 6 else 0.5,
        below,
        figures,
    )


def _bar(picture: Picture, each: Placement, lane: int) -> Bar:
    critical = each.key in picture.critical
    kind = "deep critical" if critical else "deep" if each.key in picture.holding else ""
    title = _title(picture.axis, each) if len(picture.plan) <= TITLES_MAX else ""
    color = picture.color.get(each.key, 0)
    return Bar(each.start, each.end, lane, 1, title, each.task, color, kind)


def _title(axis: Axis, placement: Placement) -> str:
    resources = " + ".join(
        each.resource if each.units == 1 else f"{each.units} × {each.resource}"
        for each in placement.demands
    )
    return (
        f"{placement.workflow} / {placement.task}\n{resources}\n"
        f"{axis.when(placement.start)} to {axis.when(placement.end)} "
        f"({duration(placement.end - placement.start)}), costs {money(placement.cost)}"
    )


def _crowd(picture: Picture, name: str, below: str, placements: Sequence[Placement]) -> Row:
    """Returns many rows as one: how many of their tasks run at a time."""
    spans = [(each.start, each.end) for each in placements]
    row = Row(name, 44.0, below=below, crowd=spans)
    most = max(Drawn(row, picture.axis).running, default=0)
    figures = ((count_of(len(placements), "task"), True), (f"{most:,} at once", True))
    return replace(row, figures=figures)


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
    """Returns what has a row, and what is drawn together: if all have rows, in their order."""
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
    """Returns when a resource is closed between two moments; none if that would be a blur."""
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
