"""Output of the commands of `gorba` as models, which define `--json` and its schemas.

Moments are seconds on the broker's clock. Plans are files of their own (docs/workflows.md).
"""

from collections.abc import Sequence
from typing import Any

from pydantic import AliasPath, Field, RootModel

from broker.v1 import plan_pb2
from grms.daemon.messages import of_message
from lrms_sim.cli.output_models import OutputModel


class DemandOutput(OutputModel):
    """A resource, and how many units of it."""

    resource: str
    units: int


class TaskFileOutput(OutputModel):
    """A file that a program has left."""

    name: str
    size_bytes: int
    sha256: str


class TaskOutput(OutputModel):
    """A task; moments are real once there are any, planned ones before."""

    name: str
    state: str
    demands: Sequence[DemandOutput]
    start_time_s: float | None
    end_time_s: float | None
    cost: float
    runs: int
    reason: str
    has_program: bool
    outcome: str | None = Field(description="How its last run came to its end.")
    exit_code: int | None
    signal: int | None
    job: str = Field(description="What its site calls the run.")
    outputs: Sequence[TaskFileOutput]
    estimate_s: float = Field(
        description="Work that runs of its program say it takes; 0 without a program."
    )
    estimate_runs: int = Field(description="From how many runs; 0 for its user's word.")


class WorkflowOutput(OutputModel):
    """A workflow as the broker shows it; in lists it has no tasks."""

    workflow_id: str
    name: str
    state: str
    submit_time_s: float
    end_time_s: float | None
    due_date_s: float | None
    budget: float | None
    completion_s: float | None = Field(description="End of its last task, by the plan if ahead.")
    cost: float
    tasks_total: int
    tasks_completed: int
    tasks_simulated: int
    tasks: Sequence[TaskOutput]
    reason: str
    revision: int
    open: bool = Field(description="Tasks can be added, and it does not end before it is closed.")


class WorkflowsOutput(OutputModel):
    """`gorba list`: workflows in the order in which they were received."""

    workflows: Sequence[WorkflowOutput]


class SearchOutput(OutputModel):
    """How far a search for a plan is."""

    plan: int = Field(validation_alias="number")
    reason: str
    generation: int
    evaluations: int
    seconds: float
    fitness: float
    islands: int = Field(
        default=1, description="Populations side by side; all have reached the generation."
    )


class PlanEndOutput(OutputModel):
    """What came of a search; `problem` says why there is no plan."""

    plan: int = Field(validation_alias="number")
    planned: int
    unplanned: int
    fitness: float | None
    problem: str


class WatchedOutput(RootModel[WorkflowOutput | SearchOutput | PlanEndOutput]):
    """`gorba watch`: a workflow where one is named, else news of the searches for plans."""


class FactorOutput(OutputModel):
    """A resource on which a program takes longer or shorter than its performance says."""

    resource: str
    factor: float


class ProgramEstimateOutput(OutputModel):
    """How long the runs of a program have taken, of which the last ones are known."""

    program: str = Field(description="What it calls, without arguments.")
    runs: int
    form: str = Field(description="How the next run follows: ratio, constant or size.")
    ratio: float = Field(description="Median of what runs took to what was estimated.")
    low: float = Field(description="Four of five ratios are between this and `high`.")
    high: float
    work_s: float = Field(description="Median of the work of a run.")
    factors: Sequence[FactorOutput]


class EstimatesOutput(OutputModel):
    """`gorba estimates`: what has been learned, and whether plans go by it."""

    used: bool
    programs: Sequence[ProgramEstimateOutput]


class ResourceOutput(OutputModel):
    """A resource; its price is for a second of one unit."""

    name: str
    kind: str = Field(validation_alias=AliasPath("resource", "kind"))
    performance: float = Field(
        validation_alias=AliasPath("resource", "performance"), description="Work done in a second."
    )
    capacity: int = Field(validation_alias=AliasPath("resource", "capacity"))
    price: float = Field(validation_alias=AliasPath("resource", "price"))
    site: str = Field(description="Empty for the simulation.")
    site_resource: str
    broken: bool
    requires: list[DemandOutput] = Field(description="What tasks hold together with it.")


class ResourcesOutput(OutputModel):
    """`gorba resources list`: what the broker may plan with."""

    resources: Sequence[ResourceOutput]


class StatusOutput(OutputModel):
    """`gorba status`: how a broker is."""

    now_s: float
    workflows: dict[str, int] = Field(description="How many, by state.")
    resources: int
    broken: Sequence[str] = Field(description="Resources that are out of order.")
    silent_sites: Sequence[str] = Field(description="Sites that do not answer now.")
    plan: int = Field(description="The number of the plan; 0 before the first.")
    adopted_s: float | None
    fitness: float | None
    next_planning_s: float | None = Field(description="When planning begins anew by itself.")
    planned: int = Field(description="Tasks that have a place.")
    unplanned: int = Field(description="Tasks without one.")


class StatusOrWorkflowOutput(RootModel[StatusOutput | WorkflowOutput]):
    """`gorba status`: how a broker is, or a workflow where one is named."""


class CheckedOutput(OutputModel):
    """`gorba validate`: what valid files hold; tasks are null where no resources were given too."""

    workflows: int
    tasks: int | None
    resources: int
    added: int = Field(description="Tasks and arrays that `gorba add` takes, of no workflow here.")


class PlanFiguresOutput(OutputModel):
    """What a plan is worth."""

    makespan: float
    mean_completion: float
    cost: float
    utilization: float
    late: int
    tardiness: float
    over_budget: int
    overspent: float
    keeping: int
    unplanned: int


class MethodOutput(PlanFiguresOutput):
    """What one method has found."""

    method: str
    detail: str
    fitness: float
    seconds: float
    evaluations: int | None


class PlannedWorkflowOutput(OutputModel):
    """A workflow in a plan file; null is no moment or no limit."""

    name: str
    tasks: int
    start: float | None
    completion: float | None
    due_date: float | None
    tardiness: float | None
    cost: float
    budget: float | None
    over_budget: float


class LinkOutput(OutputModel):
    """A task of the critical path, and why it does not start sooner."""

    workflow: str
    task: str
    reason: str


class PlacementOutput(OutputModel):
    """A task that has a place."""

    workflow: str
    task: str
    resources: Sequence[DemandOutput]
    start: float
    end: float
    cost: float


class UnplannedOutput(OutputModel):
    """A task without a place."""

    workflow: str
    task: str


class TransferOutput(OutputModel):
    """Files that go together from one site to another for a task."""

    workflow: str
    task: str
    files: Sequence[str]
    source: str
    target: str
    begin: float
    end: float
    size: float = Field(description="Bytes.")
    cost: float


class PlanFileOutput(OutputModel):
    """`gorba plan`, `gorba jobshop`, `gorba plan show`: a plan file (docs/workflows.md)."""

    format: str
    now: float
    made: dict[str, Any] = Field(description="How it was made; of a broker also what it knows.")
    figures: PlanFiguresOutput
    methods: Sequence[MethodOutput]
    workflows: Sequence[PlannedWorkflowOutput]
    critical_path: Sequence[LinkOutput]
    placements: Sequence[PlacementOutput]
    unplanned: Sequence[UnplannedOutput]
    transfers: Sequence[TransferOutput] = Field(
        default=(), description="Missing where there is no network."
    )


def news(message: plan_pb2.PlanNews) -> dict[str, Any]:
    """Returns what happened to a search as `SearchOutput` or `PlanEndOutput` reads it."""
    return of_message(message.progress if message.HasField("progress") else message.end)
