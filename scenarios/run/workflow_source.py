"""What a scenario's broker has to do: the resources it may reserve, and the workflows it is given.

Everything is drawn from streams of the scenario's seed that nothing else uses, so that a further
workflow or a breakdown changes no job of any site.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from broker.model.instances import paper_workflows
from broker.model.limits import Limits, with_limits
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.records import Supply
from scenarios.spec.spec import ScenarioSpec

_WORKFLOW_STREAM: Final = 1
_ARRIVAL_STREAM: Final = 2
_WIDTH_STREAM: Final = 3
HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A workflow that is handed in.

    Attributes:
        time: when, seconds.
        cancel_time: when its user gives it up; `None` for never.
    """

    time: float
    workflow: Workflow
    cancel_time: float | None = None


def supplies_of(spec: ScenarioSpec) -> tuple[Supply, ...]:
    """Returns what a scenario's broker may reserve, in the order of sites and resources.

    The scenario must have a broker.
    """
    return tuple(
        Supply(
            Resource(
                f"{site.name}-{each.resource_id}",
                performance=each.speed,
                price=each.cost_per_hour / HOUR,
                capacity=each.processors,
            ),
            site.name,
            each.resource_id,
        )
        for site in spec.sites
        for each in site.reservable or ()
    )


def submissions_of(spec: ScenarioSpec) -> tuple[Submission, ...]:
    """Returns the workflows of a scenario in the order in which they are handed in.

    The scenario must be resolved and have a broker.
    """
    assert spec.broker is not None
    wanted = spec.broker.workflows
    resources = [supply.resource for supply in supplies_of(spec)]
    drawn = paper_workflows(
        wanted.benchmark,
        wanted.tasks,
        resources,
        _stream(spec, _WORKFLOW_STREAM),
        time_unit=wanted.time_unit_s,
        prefix="workflow-",
    )
    arrivals = _stream(spec, _ARRIVAL_STREAM)
    later = arrivals.uniform(wanted.first_s, wanted.last_s, len(drawn) - 1)
    # Whole seconds, so that a person can follow a log; the first comes when it is said.
    times = [wanted.first_s, *np.sort(np.floor(later)).clip(wanted.first_s).tolist()]
    widths = _stream(spec, _WIDTH_STREAM)
    capacity = {resource.name: resource.capacity for resource in resources}
    cancels = {each.workflow: each.after_s for each in spec.broker.cancels}
    found = []
    for number, (time, workflow) in enumerate(zip(times, drawn, strict=True), 1):
        wide = tuple(
            _widened(task, wanted.processors_most, capacity, widths) for task in workflow.tasks
        )
        named = replace(workflow, name=f"workflow-{number}", tasks=wide, earliest_start=float(time))
        limited = with_limits(
            Problem((named,), tuple(resources), float(time)),
            Limits(due_factor=wanted.due_factor, budget_factor=wanted.budget_factor),
        )
        cancel = time + cancels[number] if number in cancels else None
        found.append(Submission(float(time), limited.workflows[0], cancel))
    return tuple(found)


def _stream(spec: ScenarioSpec, number: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(spec.seed, spawn_key=(number,)))


def _widened(task: Task, most: int, capacity: dict[str, int], rng: np.random.Generator) -> Task:
    """Returns a task that takes several processors, as many as each resource has at the most."""
    units = int(rng.integers(1, most + 1))
    alternatives: Sequence[Alternative] = [
        Alternative(tuple(Demand(name, min(units, capacity[name])) for name in each.resources))
        for each in task.alternatives
    ]
    return replace(task, alternatives=tuple(alternatives))
