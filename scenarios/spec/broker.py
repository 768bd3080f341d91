"""The part of a scenario file that is about a broker: resources, workflows, what goes wrong.

Moments are seconds on the scenario's clock. docs/scenarios.md describes the format.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from grms.daemon.config_base import Model

RESERVABLE_MAX: Final = 1000
WORKFLOWS_MAX: Final = 10_000

SLOT_S: Final = 180.0
"""Default planning slot: the paper's three minutes."""

TAKES_S: Final = 60.0
"""Default duration of a search."""

Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
ResourceId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class ReservableSpec(Model):
    """A resource of a site that can be reserved; a partition beside its batch machine.

    Attributes:
        resource_id: unique at the site.
        processors: that it has; the batch machine has them if there is no broker.
        speed: run time on the reference resource over run time on this one.
        cost_per_hour: for one processor.
    """

    resource_id: ResourceId
    processors: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    speed: Factor = 1.0
    cost_per_hour: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0


class CycleSpec(Model):
    """When the broker plans; as `[cycle]` of its configuration, seconds of the scenario's clock.

    Attributes:
        every_s: between the beginnings of two plannings.
        slot_s: tasks that start within this time stay as they are.
        pause_s: least time between a plan and one that is wanted at once.
        margin_s: by which a reservation is longer than its run.
    """

    every_s: Seconds = 180.0
    slot_s: Seconds = SLOT_S
    pause_s: Seconds = 5.0
    margin_s: Seconds = 2.0


class PlanningSpec(Model):
    """How the broker plans.

    Attributes:
        evaluations: schedules that one search builds at most.
        takes_s: after so much time of the scenario's clock a search has ended.
        population: individuals of GLEAM.
    """

    evaluations: Annotated[int, Field(ge=1, le=10**9)] = 2_000
    takes_s: Seconds = TAKES_S
    population: Annotated[int, Field(ge=3, le=10_000)] = 30


class WorkflowsSpec(Model):
    """Synthetic workflows of one of the paper's classes (004, section 3.5).

    Attributes:
        benchmark: the class: small or large freedom of choosing resources, few or many
            dependencies.
        tasks: of all workflows together; each has three to seven.
        time_unit_s: a task takes three to seven of these on a resource of speed 1.
        processors_most: a task takes from one to so many processors, or what its resource has.
        first_s: the first workflow comes then.
        last_s: the last workflow comes before; the others at random in between.
        due_factor: due dates, as multiples of the shortest time a workflow can take.
        budget_factor: budgets, as multiples of the least that it can cost.
    """

    benchmark: Literal["sRsD", "sRlD", "lRsD", "lRlD"] = "lRlD"
    tasks: Annotated[int, Field(ge=1, le=WORKFLOWS_MAX)]
    time_unit_s: Seconds = 300.0
    processors_most: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    first_s: Moment = 0.0
    last_s: Moment
    due_factor: Factor = 4.0
    budget_factor: Factor = 1.6


class BreakdownSpec(Model):
    """A resource that breaks.

    Attributes:
        site: whose it is.
        resource_id: which.
        at_s: from then on nothing runs on it.
        until_s: in order again.
    """

    site: str
    resource_id: str
    at_s: Moment
    until_s: Moment


class CancelSpec(Model):
    """A workflow that its user gives up.

    Attributes:
        workflow: its number in order of arrival, from 1.
        after_s: so long after it was handed in.
    """

    workflow: Annotated[int, Field(ge=1, le=WORKFLOWS_MAX)]
    after_s: Moment


class BrokerSpec(Model):
    """A broker that plans workflows onto the sites' reservable resources.

    Attributes:
        cycle: when it plans.
        planning: how it plans.
        workflows: what is handed in.
        breakdowns: resources that break.
        cancels: workflows that are given up.
    """

    cycle: CycleSpec = CycleSpec()
    planning: PlanningSpec = PlanningSpec()
    workflows: WorkflowsSpec
    breakdowns: Annotated[list[BreakdownSpec], Field(default_factory=list, max_length=1000)]
    cancels: Annotated[list[CancelSpec], Field(default_factory=list, max_length=1000)]
