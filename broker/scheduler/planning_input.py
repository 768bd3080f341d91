"""What is to be planned at a moment, and the planner's problem.

Resources that are broken, at a site that does not answer, or taken by others are left out of the
problem, as are the alternatives that need them. A task that then can run nowhere is left out too,
with all its successors: it keeps its state, with the reason, until a resource is back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from broker.model.network import Copy, Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem
from broker.model.reach import Reach
from broker.model.resources import Resource
from broker.model.workflow import Task, Workflow


@dataclass(frozen=True, slots=True)
class Taken:
    """Time of a resource that others hold, from `begin` to `end`, in seconds."""

    resource: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class PlanningInput:
    """Everything that planning depends on, at one moment.

    Attributes:
        now: end of the planning slot, seconds; nothing is planned to start before.
        workflows: those that have not ended.
        resources: those that can be used.
        fixed: placements that stay.
        left_out: workflow and task of those that are neither fixed nor to be planned.
        old: the plan so far of what is to be planned.
        taken: time of resources that cannot be used.
        margin: seconds by which a reservation is longer than its run.
        network: what files take between sites; `None` if they do not count.
        copies: of files that are, or will be, at sites.
        under_way: transfers that stay, where links carry one at a time.
    """

    now: float
    workflows: tuple[Workflow, ...]
    resources: tuple[Resource, ...]
    fixed: tuple[Placement, ...] = ()
    left_out: frozenset[tuple[str, str]] = frozenset()
    old: Plan = field(default_factory=lambda: Plan(()))
    taken: tuple[Taken, ...] = ()
    margin: float = 0.0
    network: Network | None = None
    copies: tuple[Copy, ...] = ()
    under_way: tuple[Transfer, ...] = ()


@dataclass(frozen=True, slots=True)
class Posed:
    """A planner's input; `problem` is `None` if nothing can be planned.

    `unplanned` are workflow, task and reason of those left out.
    """

    problem: Problem | None
    unplanned: tuple[tuple[str, str, str], ...]


def pose(planning_input: PlanningInput) -> Posed:
    """Returns the problem of a situation, which is always a valid one."""
    resources = _with_closures(planning_input)
    fixed = {placement.key for placement in planning_input.fixed}
    if not resources:
        return Posed(
            None, tuple(_nothing(planning_input.workflows, fixed | planning_input.left_out))
        )
    by_name = {each.name: each for each in resources}
    reach = Reach(by_name, planning_input.now)
    workflows = []
    unplanned: list[tuple[str, str, str]] = []
    for workflow in planning_input.workflows:
        reduced, missing = _reduced(workflow, reach, fixed, planning_input)
        unplanned += missing
        if reduced is not None:
            workflows.append(reduced)
    named = {workflow.name for workflow in workflows}
    kept = tuple(each for each in planning_input.fixed if each.workflow in named)
    if not any((w.name, t.name) not in fixed for w in workflows for t in w.tasks):
        return Posed(None, tuple(unplanned))
    everything = (*resources, *_stand_ins(kept, by_name, planning_input.now))
    problem = Problem(
        tuple(workflows),
        everything,
        planning_input.now,
        kept,
        planning_input.network,
        planning_input.copies,
        planning_input.under_way,
    )
    return Posed(problem, tuple(unplanned))


def _stand_ins(
    fixed: Sequence[Placement], there: Mapping[str, Resource], now: float
) -> list[Resource]:
    # What runs at a site that does not answer still takes its time: successors wait for it. Its
    # resource is in the problem for that alone; no alternative names it.
    units: dict[str, int] = {}
    for placement in fixed:
        for demand in placement.demands:
            if placement.end > now and demand.resource not in there:
                units[demand.resource] = units.get(demand.resource, 0) + demand.units
    return [Resource(name, capacity=held) for name, held in units.items()]


def _nothing(
    workflows: Sequence[Workflow], done: Iterable[tuple[str, str]]
) -> Iterable[tuple[str, str, str]]:
    settled = set(done)
    for workflow in workflows:
        for task in workflow.tasks:
            if (workflow.name, task.name) not in settled:
                yield workflow.name, task.name, "there is no resource that can be used"


def _with_closures(planning_input: PlanningInput) -> tuple[Resource, ...]:
    taken: dict[str, list[tuple[float, float]]] = {}
    for each in planning_input.taken:
        taken.setdefault(each.resource, []).append((each.begin, each.end))
    return tuple(
        _closed(resource, taken[resource.name]) if resource.name in taken else resource
        for resource in planning_input.resources
    )


def _closed(resource: Resource, spans: Sequence[tuple[float, float]]) -> Resource:
    closures = (*resource.calendar.closures, *spans)
    return replace(resource, calendar=replace(resource.calendar, closures=closures))


def _reduced(
    workflow: Workflow, reach: Reach, fixed: set[tuple[str, str]], planning_input: PlanningInput
) -> tuple[Workflow | None, list[tuple[str, str, str]]]:
    # The workflow without the tasks that cannot be planned, and these with the reasons.
    missing: dict[str, str] = {}
    kept: dict[str, Task] = {}
    for task in _in_order(workflow):
        key = workflow.name, task.name
        if key in fixed:
            kept[task.name] = task
            continue
        before = next((name for name in task.predecessors if name not in kept), None)
        if key in planning_input.left_out:
            continue
        if before is not None:
            missing[task.name] = f"waits for {before!r}, which has no place"
            continue
        able = _able(task, reach, planning_input.margin)
        if able is None:
            missing[task.name] = "can run on none of the resources that can be used now"
        else:
            kept[task.name] = able
    unplanned = [(workflow.name, name, reason) for name, reason in missing.items()]
    tasks = tuple(kept[task.name] for task in workflow.tasks if task.name in kept)
    return (workflow.only(tasks) if tasks else None), unplanned


def _able(task: Task, reach: Reach, margin: float) -> Task | None:
    # The task on what there is, its work longer so that every reservation has the margin.
    work = task.work + margin * reach.fastest(task.alternatives)
    able = reach.kept(task.alternatives, work)
    return replace(task, work=work, alternatives=able) if able else None


def _in_order(workflow: Workflow) -> list[Task]:
    # Each task after its predecessors.
    by_name = {task.name: task for task in workflow.tasks}
    done: dict[str, Task] = {}
    for root in workflow.tasks:
        stack = [root]
        while stack:
            task = stack[-1]
            waiting = [by_name[name] for name in task.predecessors if name not in done]
            if waiting:
                stack += waiting
            else:
                done[task.name] = task
                stack.pop()
    return list(done.values())
