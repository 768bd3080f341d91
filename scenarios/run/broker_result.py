"""The figures of a scenario's broker: what workflows got, and what that cost the batch users.

The processors that can be reserved are a partition beside the batch machine. What they cost the
batch users is found by replaying the same jobs once more on machines that have these processors
too, as they would where there were no broker.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lrms_sim.analysis import metrics
from lrms_sim.workload.schedule import Schedule

if TYPE_CHECKING:
    # They bring the broker, which most scenarios, and `grms train`, have no use for.
    from scenarios.run.brokered import BrokeredRun, WorkflowResult


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """What the batch users of a site get.

    Attributes:
        name: the site.
        processors: of its batch machine beside the broker.
        reservable: processors of its resources that can be reserved.
        jobs: that its users submitted.
        awrt_without: average weighted response time where the batch machine has all processors,
            seconds; None without jobs.
        awrt_with: the same beside the broker.
        reserved_share: share of the reservable processors that ran tasks, from the first arrival
            of a workflow to the end of the last.
    """

    name: str
    processors: int
    reservable: int
    jobs: int
    awrt_without: float | None
    awrt_with: float | None
    reserved_share: float | None

    @property
    def improvement(self) -> float:
        """Share by which the response time is shorter with the broker; NaN without jobs."""
        if not self.awrt_without or self.awrt_with is None:
            return math.nan
        return 1.0 - self.awrt_with / self.awrt_without


@dataclass(frozen=True, slots=True)
class ResourceFigures:
    """A resource that could be reserved.

    Attributes:
        name: unique in the scenario.
        site: whose it is.
        processors: that it has.
        speed: run time on the reference resource over run time on this one.
        cost_per_hour: for one processor.
        broken: begin and end of its breakdowns, seconds.
    """

    name: str
    site: str
    processors: int
    speed: float
    cost_per_hour: float
    broken: tuple[tuple[float, float], ...]


DONE: Final = "simulated"
"""The state of a workflow whose tasks have all had their time: in a scenario nothing is run."""


@dataclass(frozen=True, slots=True)
class WorkflowFigures:
    """What became of a workflow.

    Attributes:
        name: unique in the scenario.
        tasks: that it has.
        state: "simulated", "cancelled" or "failed".
        submit_time: seconds.
        start_time: of its first task, seconds; None where none ran to its end.
        end_time: of its last task, or when it was given up; seconds.
        due_date: seconds; None where it has none.
        tardiness: seconds after the due date.
        cost: of all its tasks.
        budget: None where it has none.
        over_budget: cost beyond the budget.
        runs: launches of its tasks.
    """

    name: str
    tasks: int
    state: str
    submit_time: float
    start_time: float | None
    end_time: float
    due_date: float | None
    tardiness: float
    cost: float
    budget: float | None
    over_budget: float
    runs: int

    @property
    def keeps_its_limits(self) -> bool:
        """Whether it was done in time and within its budget."""
        return self.state == DONE and self.tardiness == 0 and self.over_budget == 0


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """A run of a task that completed it.

    Attributes:
        workflow: its name.
        task: its name.
        resource: the name of the one that it ran on.
        processors: of it.
        start_time: seconds.
        end_time: seconds.
        cost: of the run.
    """

    workflow: str
    task: str
    resource: str
    processors: int
    start_time: float
    end_time: float
    cost: float


@dataclass(frozen=True, slots=True)
class BrokerResult:
    """What a scenario's broker has done, beside the batch jobs.

    Attributes:
        batch: one entry for each site.
        resources: that could be reserved.
        workflows: in the order in which they were handed in.
        tasks: runs in order of their starts.
        plans: plans that were adopted.
        refusals: bookings that sites refused.
    """

    batch: tuple[BatchFigures, ...]
    resources: tuple[ResourceFigures, ...]
    workflows: tuple[WorkflowFigures, ...]
    tasks: tuple[TaskFigures, ...]
    plans: int
    refusals: int

    @property
    def completed(self) -> int:
        """Number of workflows that were done."""
        return sum(each.state == DONE for each in self.workflows)

    @property
    def keeping(self) -> int:
        """Number of workflows that were completed in time and within their budgets."""
        return sum(each.keeps_its_limits for each in self.workflows)

    @property
    def span(self) -> tuple[float, float]:
        """From the first arrival of a workflow to the end of the last; seconds."""
        begin = min((each.submit_time for each in self.workflows), default=0.0)
        return begin, max((each.end_time for each in self.workflows), default=begin)


def evaluate_broker(
    run: "BrokeredRun", schedule: Schedule, schedule_whole: Schedule, sites: Sequence[str]
) -> BrokerResult:
    """Computes the figures.

    `schedule` has the batch jobs with the broker, `schedule_whole` the same jobs on machines that
    have all processors; `sites` are in the order of the schedules' machines.
    """
    broken: dict[str, list[tuple[float, float]]] = {}
    for name, begin, end in run.broken:
        broken.setdefault(name, []).append((begin, end))
    resources = tuple(
        ResourceFigures(
            each.name,
            each.site,
            each.resource.capacity,
            each.resource.performance,
            each.resource.price * 3600.0,
            tuple(broken.get(each.name, ())),
        )
        for each in run.supplies
    )
    tasks = tuple(
        TaskFigures(
            each.workflow,
            each.task,
            demand.resource,
            demand.units,
            each.start,
            each.end,
            each.cost,
        )
        for each in run.plan
        for demand in each.demands[:1]
    )
    workflows = tuple(_workflow(each) for each in run.workflows)
    draft = BrokerResult((), resources, workflows, tasks, run.plans, run.refusals)
    batch = tuple(
        _batch(draft, site, index, schedule, schedule_whole) for index, site in enumerate(sites)
    )
    return BrokerResult(batch, resources, workflows, tasks, run.plans, run.refusals)


def _workflow(found: "WorkflowResult") -> WorkflowFigures:
    workflow = found.workflow
    return WorkflowFigures(
        workflow.name,
        len(workflow.tasks),
        found.state.value,
        found.submit_time,
        found.start_time,
        found.end_time,
        workflow.due_date if workflow.due_date < math.inf else None,
        found.tardiness,
        found.cost,
        workflow.budget if workflow.budget < math.inf else None,
        found.over_budget,
        found.runs,
    )


def _batch(
    result: BrokerResult, site: str, index: int, schedule: Schedule, whole: Schedule
) -> BatchFigures:
    own = {each.name: each for each in result.resources if each.site == site}
    reservable = sum(each.processors for each in own.values())
    begin, end = result.span
    busy = math.fsum(
        each.processors * (each.end_time - each.start_time)
        for each in result.tasks
        if each.resource in own
    )
    room = reservable * (end - begin)
    jobs = int((schedule.submitted_to == index).sum())
    return BatchFigures(
        site,
        schedule.machines[index].processors,
        reservable,
        jobs,
        metrics.awrt(whole, submitted_to=index) if jobs else None,
        metrics.awrt(schedule, submitted_to=index) if jobs else None,
        busy / room if room else None,
    )
