"""A planning problem: workflows, resources, when the plan begins, and fixed placements."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.model.network import Copy, Network
from broker.model.plan import Placement, Transfer
from broker.model.reach import Reach
from broker.model.resources import Resource
from broker.model.workflow import MOMENT_MAX, Alternative, Task, Workflow

TASKS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """A validated planning problem.

    Attributes:
        workflows: at least one; their order breaks ties.
        resources: at least one; their order breaks ties.
        now: seconds; tasks that are not fixed start no earlier. A broker that plans for three minutes
            passes the end of these minutes.
        fixed: placements that stay: of tasks that have ended, have started, or start before `now`.
            Those that have ended by `now` occupy nothing, but count for cost, completion and
            precedence. Predecessors of a fixed task are fixed.
        network: what files take between sites; `None` if they are everywhere at once.
        copies: of files that are at sites where nothing that is fixed shows it.
        under_way: transfers that stay, of files that have copies or are for fixed tasks. Where links carry one transfer at a
            time, nothing else is sent over theirs from their begin to their end.
        reach: which alternatives tasks can use at all.

    Raises:
        ValueError: a name is not unique, a resource is unknown, a task can run nowhere, or a fixed
            placement does not fit; the text names them.
    """

    workflows: tuple[Workflow, ...]
    resources: tuple[Resource, ...]
    now: float = 0.0
    fixed: tuple[Placement, ...] = ()
    network: Network | None = None
    copies: tuple[Copy, ...] = ()
    under_way: tuple[Transfer, ...] = ()
    resource: Mapping[str, Resource] = field(init=False, repr=False, compare=False)
    reach: Reach = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.now):
            raise ValueError(f"now is {self.now}; it must be a finite number")
        if abs(self.now) > MOMENT_MAX:
            raise ValueError(f"now is {self.now:g}; at most {MOMENT_MAX:g} s from 1970")
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
        object.__setattr__(self, "reach", Reach(self.resource, self.now))
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
        known: dict[int, tuple[Alternative, ...]] = {}
        for workflow in self.workflows:
            for task in workflow.tasks:
                if (workflow.name, task.name) in fixed:
                    continue
                if id(task.alternatives) not in known:
                    self._check_known(workflow, task)
                    known[id(task.alternatives)] = task.alternatives
                possible = self.reach.mask(task.alternatives, task.work)
                if possible is not None and not possible.any():
                    impossible.append(f"{workflow.name}/{task.name}")
        if impossible:
            shown = ", ".join(impossible[:10]) + (" …" if len(impossible) > 10 else "")
            tasks = "1 task" if len(impossible) == 1 else f"{len(impossible)} tasks"
            raise ValueError(
                f"{tasks} can run nowhere, as every alternative is too small, is "
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
        duration = alternative.duration(task.work, self.resource[alternative.primary].performance)
        return duration <= self.reach.longest(alternative)


def _check_names(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{what} of the same name: {', '.join(twice)}")
