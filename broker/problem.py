"""What is to be planned: workflows, resources, the moment from which on, and what stays put."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from broker.plan import Placement
from broker.resources import WEEK, Resource, join, join_weekly
from broker.workflow import Alternative, Task, Workflow

TASKS_MAX = 1_000_000
"""Most tasks in one problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A planning problem that has been checked.

    Attributes:
        workflows: at least one; their order breaks ties.
        resources: at least one; their order breaks ties.
        now: seconds; no task that is not fixed starts before. A broker that plans for three
            minutes gives the end of these minutes.
        fixed: placements that stay as they are: of tasks that have ended, have started, or start
            before `now`. Those that have ended by `now` occupy nothing, but count for cost,
            completion and precedence. Predecessors of a fixed task are fixed.
        resource: by name.

    Raises:
        ValueError: a name comes twice, a resource is unknown, a task can run nowhere, or a fixed
            placement does not fit. The text has the names.
    """

    workflows: tuple[Workflow, ...]
    resources: tuple[Resource, ...]
    now: float = 0.0
    fixed: tuple[Placement, ...] = ()
    resource: Mapping[str, Resource] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Checks everything that a plan relies on."""
        if not math.isfinite(self.now):
            raise ValueError(f"now is {self.now}; it must be a finite number")
        if not self.workflows:
            raise ValueError("there is no workflow to plan")
        if not self.resources:
            raise ValueError("there is no resource to plan for")
        count = sum(len(workflow.tasks) for workflow in self.workflows)
        if count > TASKS_MAX:
            raise ValueError(f"{count} tasks; at most {TASKS_MAX}")
        _check_names("workflows", [workflow.name for workflow in self.workflows])
        _check_names("resources", [resource.name for resource in self.resources])
        object.__setattr__(self, "resource", {each.name: each for each in self.resources})
        self._check_fixed()
        self._check_tasks()

    def _check_fixed(self) -> None:
        tasks = {
            (workflow.name, task.name): task
            for workflow in self.workflows
            for task in workflow.tasks
        }
        ends: dict[tuple[str, str], float] = {}
        for placement in self.fixed:
            name = "/".join(placement.key)
            if placement.key not in tasks:
                raise ValueError(f"the fixed task {name} is not there")
            if placement.key in ends:
                raise ValueError(f"the task {name} is fixed twice")
            if not (math.isfinite(placement.end) and placement.start <= placement.end):
                raise ValueError(
                    f"the fixed task {name} runs from {placement.start} to {placement.end}"
                )
            ends[placement.key] = placement.end
            for demand in placement.demands:
                if demand.resource not in self.resource and placement.end > self.now:
                    raise ValueError(
                        f"the fixed task {name} runs on {demand.resource!r}, which is not there"
                    )
        for placement in self.fixed:
            for predecessor in tasks[placement.key].predecessors:
                if (placement.workflow, predecessor) not in ends:
                    raise ValueError(
                        f"the task {'/'.join(placement.key)} is fixed, and its predecessor "
                        f"{predecessor!r} is not"
                    )

    def _check_tasks(self) -> None:
        fixed = {placement.key for placement in self.fixed}
        impossible = []
        for workflow in self.workflows:
            for task in workflow.tasks:
                if (workflow.name, task.name) in fixed:
                    continue
                self._check_known(workflow, task)
                if not any(self.is_possible(task, each) for each in task.alternatives):
                    impossible.append(f"{workflow.name}/{task.name}")
        if impossible:
            shown = ", ".join(impossible[:10]) + (" …" if len(impossible) > 10 else "")
            raise ValueError(
                f"{len(impossible)} tasks can run nowhere, as every alternative is too small, is "
                f"never open long enough, or is closed for good: {shown}"
            )

    def _check_known(self, workflow: Workflow, task: Task) -> None:
        for alternative in task.alternatives:
            for demand in alternative.demands:
                if demand.resource not in self.resource:
                    raise ValueError(
                        f"workflow {workflow.name!r}, task {task.name!r}: there is no resource "
                        f"{demand.resource!r}"
                    )

    def is_possible(self, task: Task, alternative: Alternative) -> bool:
        """Returns whether a task could run on an alternative if nothing else did."""
        resources = [self.resource[name] for name in alternative.resources]
        if any(
            demand.units > resource.capacity
            for demand, resource in zip(alternative.demands, resources, strict=True)
        ):
            return False
        duration = resources[0].duration(task.work)
        for begin, end in join([span for each in resources for span in each.closure_spans()]):
            if end == math.inf and begin < self.now + duration:
                return False
        weekly = [spans for each in resources if (spans := _weekly_in_utc(each))]
        if not weekly:
            return True
        common = join_weekly(_unrolled(reduce(_intersection, weekly)))
        return not common or any(end - begin >= duration for begin, end in common)


def _check_names(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{what} of the same name: {', '.join(twice)}")


def _weekly_in_utc(resource: Resource) -> list[tuple[float, float]]:
    # Opening hours as spans of the week in UTC, none over its turn.
    shifted = [
        ((begin - resource.utc_offset) % WEEK, end - begin)
        for begin, end in resource.opening_spans()
    ]
    return _unrolled([(begin, begin + length) for begin, length in shifted])


def _unrolled(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    # What goes over the turn of the week becomes two.
    cut = [(begin, min(end, WEEK)) for begin, end in spans]
    return join(cut + [(0.0, end - WEEK) for _, end in spans if end > WEEK])


def _intersection(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    # An empty result would read as "always"; a span without length stands for "never".
    common = [(max(a, c), min(b, d)) for a, b in first for c, d in second if max(a, c) < min(b, d)]
    return common or [(0.0, 0.0)]
