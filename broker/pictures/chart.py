"""The two Gantt charts as inline SVG: who does what when, by resource and by workflow.

Every workflow has a colour in both charts; where there is one workflow only, every kind of task
has one. The critical path is drawn in ink. Text is cut to what fits; the whole of it comes up over
a bar. Colours are variables of the page, so that paper and dark windows both are served.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Final, TypeVar

from broker.model.plan import Placement, Plan, WorkflowOutcome
from broker.model.problem import Problem
from broker.model.resources import EPOCH_IN_WEEK, WEEK, Resource, gaps, join
from broker.model.workflow import Workflow
from broker.pictures.layout import Axis, axis_of, bend_of, lane_height, lanes
from broker.pictures.words import count_of, money
from lrms_sim.spelling import duration, shorten

WIDTH: Final = 1180.0
"""Width of a chart in its own units."""

LEFT: Final = 138.0
RIGHT: Final = 1036.0
COLORS: Final = 8
"""Number of colours; further workflows begin again with the first."""

TITLES_MAX: Final = 10_000
"""Most bars that say what they are when pointed at; beyond, a page would be too large."""

CLOSED_MAX: Final = 400
"""Most spans of one resource that are drawn as closed."""

ROWS_MAX: Final = 100
"""Most rows of a chart; what is beyond is drawn together, the most urgent having rows."""

CROWDS_MAX: Final = 6
"""Most kinds of resources that have a row each where resources are drawn together."""

CROWD_STEPS: Final = 240
"""Slices of time in which is counted what runs."""

_Row = TypeVar("_Row")
_CHARACTER = 5.9
_NAME_LENGTH = 18
_GROUP = re.compile(r"^(.*?[^\W\d_])[\W\d_]*(?:ID\d+)?$")


@dataclass(frozen=True, slots=True)
class Picture:
    """What both charts draw.

    Attributes:
        problem: that was planned.
        plan: for it.
        critical: keys of the tasks on the critical path of the plan.
        holding: keys of the tasks on the critical path of each workflow.
        color: number of the colour of each task.
        legend: names of the colours that need one.
    """

    problem: Problem
    plan: Plan
    critical: Collection[tuple[str, str]]
    holding: Collection[tuple[str, str]]
    color: Mapping[tuple[str, str], int]
    legend: Sequence[str]

    @property
    def span(self) -> tuple[float, float]:
        """Begin and end of the charts: all tasks, and due dates that are not much later."""
        begin = min([self.problem.now, *(each.start for each in self.plan)])
        end = max([begin, *(each.end for each in self.plan)])
        room = end + 0.25 * (end - begin)
        due = [each.due_date for each in self.problem.workflows if each.due_date <= room]
        return begin, max([end, *due])

    def axis(self) -> Axis:
        """Returns the time axis of the charts."""
        begin, end = self.span
        bend = bend_of(begin, [each.end for each in self.plan])
        return axis_of(begin, end, left=LEFT, right=RIGHT, now=self.problem.now, bend=bend)


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
    chart = _Chart(picture)
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
    chart = _Chart(picture)
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


class _Chart:
    """Draws rows of bars below each other on one time axis, in pieces that a printed page holds."""

    HEAD = 24.0
    FOOT = 8.0
    PIECE = 560.0

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.axis = picture.axis()
        self.pieces: list[tuple[list[str], float]] = []
        self.parts: list[str] = []
        self.top = self.HEAD
        self.titled = len(picture.plan) <= TITLES_MAX

    def row(
        self,
        name: str,
        below: str,
        placements: Sequence[Placement],
        figures: tuple[str, str],
        *,
        closed: Iterable[tuple[float, float]] = (),
        due: float = math.inf,
        good: tuple[bool, bool] = (True, True),
    ) -> None:
        """Draws a row.

        Args:
            name: at the left.
            below: in small print below the name.
            placements: the bars, in order of their starts.
            figures: at the right, below each other.
            closed: spans that are shaded.
            due: where a due date is marked; nowhere where infinite.
            good: whether each of the figures is good news.
        """
        lane = lanes(placements)
        number = max(lane, default=0) + 1
        step = lane_height(number)
        height = max(28.0, number * step + 5)
        if self.top > self.HEAD and self.top + height > self.PIECE:
            self._cut()
        top = self.top
        say = self.parts.append
        say(f'<path class="line" d="M0 {top:.1f}H{WIDTH:.0f}"/>')
        for begin, end in closed:
            left, right = self.axis.at(begin), self.axis.at(end)
            say(
                f'<rect class="closed" x="{left:.1f}" y="{top:.1f}" '
                f'width="{right - left:.1f}" height="{height:.1f}"/>'
            )
        self._words(name, below, figures, good, top + height / 2)
        self.parts += self._bars(placements, lane, top + (height - number * step) / 2, step)
        if due < math.inf:
            say(self._due(due, top, height, late=not good[0]))
        self.top += height

    def crowd(self, name: str, below: str, placements: Sequence[Placement]) -> None:
        """Draws many rows as one: how many of their tasks run at a time.

        Args:
            name: at the left.
            below: in small print below the name.
            placements: of all of them.
        """
        height = 44.0
        if self.top > self.HEAD and self.top + height > self.PIECE:
            self._cut()
        top = self.top
        running = self._running(placements)
        most = max(running, default=0) or 1
        self.parts.append(f'<path class="line" d="M0 {top:.1f}H{WIDTH:.0f}"/>')
        figures = (count_of(len(placements), "task"), f"{most:,} at once")
        self._words(name, below, figures, (True, True), top + height / 2)
        width = (RIGHT - LEFT) / CROWD_STEPS
        floor = top + height - 2
        steps = "".join(
            f"V{floor - (height - 6) * number / most:.1f}h{width:.3f}" for number in running
        )
        self.parts.append(
            f'<path class="crowd" d="M{LEFT:.1f} {floor:.1f}{steps}V{floor:.1f}z">'
            f"<title>{escape(name)}: how many tasks run, {most:,} at most</title></path>"
        )
        self.top += height

    def _running(self, placements: Sequence[Placement]) -> list[int]:
        # By slice of the width how many run in it.
        change = [0] * (CROWD_STEPS + 1)
        for each in placements:
            first, last = (
                (self.axis.at(moment) - LEFT) / (RIGHT - LEFT) * CROWD_STEPS
                for moment in (each.start, each.end)
            )
            begin = min(int(first), CROWD_STEPS - 1)
            change[begin] += 1
            change[max(begin + 1, min(math.ceil(last), CROWD_STEPS))] -= 1
        return list(accumulate(change[:CROWD_STEPS]))

    def _words(
        self, name: str, below: str, figures: tuple[str, str], good: tuple[bool, bool], y: float
    ) -> None:
        shown = escape(shorten(name, _NAME_LENGTH))
        self.parts.append(
            f'<text class="name" x="0" y="{y - 2:.1f}">{shown}'
            f"<title>{escape(name)}</title></text>"
            f'<text class="small" x="0" y="{y + 10:.1f}">{escape(shorten(below, 26))}</text>'
        )
        for place, (text, well) in enumerate(zip(figures, good, strict=True)):
            tone = "small" if well else "small bad"
            line = y - 2 + 12 * place
            self.parts.append(
                f'<text class="{tone}" x="{RIGHT + 12:.0f}" y="{line:.1f}">{escape(text)}</text>'
            )

    def _bars(
        self, placements: Sequence[Placement], lane: Sequence[int], top: float, step: float
    ) -> Iterator[str]:
        gap = 1.5 if step > 6 else 0.5
        for placement, number in zip(placements, lane, strict=True):
            left = self.axis.at(placement.start)
            width = self.axis.at(placement.end) - left
            # Neighbours stay apart where there is room for that, and the shortest are seen.
            shown = width - 0.7 if width > 3 else max(width, 0.7)
            y = top + number * step + gap / 2
            key = placement.key
            deep = key in self.picture.critical or key in self.picture.holding
            kind = f"bar c{self.picture.color.get(key, 0)}"
            kind += " critical" if key in self.picture.critical else " holding" if deep else ""
            title = f"<title>{escape(self.title(placement))}</title>" if self.titled else ""
            yield (
                f'<rect class="{kind}" x="{left:.2f}" y="{y:.1f}" width="{shown:.2f}" '
                f'height="{step - gap:.1f}">{title}</rect>'
            )
            room = int((width - 6) / _CHARACTER)
            if step >= 11 and room >= 3:
                tone = "task on" if deep else "task"
                text = escape(shorten(placement.task, room))
                base = y + (step - gap) / 2 + 3.2
                yield f'<text class="{tone}" x="{left + 3:.1f}" y="{base:.1f}">{text}</text>'

    def title(self, placement: Placement) -> str:
        """Returns what is said of a bar when it is pointed at."""
        resources = " + ".join(
            each.resource if each.units == 1 else f"{each.units} × {each.resource}"
            for each in placement.demands
        )
        return (
            f"{placement.workflow} / {placement.task}\n{resources}\n"
            f"{self.axis.when(placement.start)} to {self.axis.when(placement.end)} "
            f"({duration(placement.end - placement.start)}), costs {money(placement.cost)}"
        )

    def _due(self, due: float, top: float, height: float, *, late: bool) -> str:
        x = self.axis.at(due)
        tone = "due late" if late else "due"
        if due > self.axis.end:
            middle = top + height / 2
            return f'<path class="{tone}" d="M{x - 5:.1f} {middle - 4:.1f}l5 4l-5 4"/>'
        return (
            f'<path class="{tone}" d="M{x:.1f} {top + 1:.1f}v{height - 2:.1f}m-4 0h8"/>'
            f'<path class="{tone} flag" d="M{x:.1f} {top + 1:.1f}h6l-2 3l2 3h-6z"/>'
        )

    def _cut(self) -> None:
        self.pieces.append((self.parts, self.top))
        self.parts, self.top = [], self.HEAD

    def render(self, key: str, title: str) -> str:
        """Returns the chart as one or more `<svg>` elements, each with the time axis."""
        if self.parts:
            self._cut()
        total = len(self.pieces)
        return "\n".join(
            self._piece(
                parts,
                bottom,
                f"{key}-{number}",
                title if total == 1 else f"{title}, part {number} of {total}",
            )
            for number, (parts, bottom) in enumerate(self.pieces, 1)
        )

    def _piece(self, parts: Sequence[str], bottom: float, key: str, title: str) -> str:
        grid = []
        for moment, label in self.axis.ticks(9):
            x = self.axis.at(moment)
            grid.append(
                f'<path class="grid" d="M{x:.1f} {self.HEAD - 4:.0f}V{bottom:.1f}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.HEAD - 8:.0f}">{escape(label)}</text>'
            )
        if self.axis.bend < math.inf:
            x = self.axis.at(self.axis.bend)
            grid.append(
                f'<path class="bend" d="M{x:.1f} {self.HEAD - 4:.0f}V{bottom:.1f}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.HEAD - 8:.0f}">⋯</text>'
            )
        now = self.picture.problem.now
        if self.axis.begin < now:
            x = self.axis.at(now)
            grid.append(f'<path class="now" d="M{x:.1f} {self.HEAD - 4:.0f}V{bottom:.1f}"/>')
        head = (
            f'<svg class="gantt" viewBox="0 0 {WIDTH:.0f} {bottom + self.FOOT:.0f}" role="img" '
            f'aria-labelledby="{key}"><title id="{key}">{escape(title)}</title>'
        )
        foot = f'<path class="line" d="M0 {bottom:.1f}H{WIDTH:.0f}"/></svg>'
        return "\n".join([head, *grid, *parts, foot])
