"""Plans: which task runs where and when, its cost, and the outcome for each workflow."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from broker.model.workflow import Demand, Workflow

TIME_TOLERANCE = 1e-6
"""Seconds after a due date that do not count as late: rounding."""

COST_TOLERANCE = 1e-9
"""Share of a budget by which it may be exceeded: rounding."""


@dataclass(frozen=True, slots=True)
class Placement:
    """One task with its resources and its time.

    Attributes:
        demands: what it holds, the primary resource first.
        start: seconds.
        end: seconds; the resources are free from this moment on.
        cost: of all resources from start to end, and of the transfers that are made for it.
    """

    workflow: str
    task: str
    demands: tuple[Demand, ...]
    start: float
    end: float
    cost: float

    @property
    def key(self) -> tuple[str, str]:
        """The names of workflow and task."""
        return self.workflow, self.task

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the resources, the primary one first."""
        return tuple(demand.resource for demand in self.demands)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Files that go together from one site to another for a task.

    Attributes:
        files: their names.
        begin, end: seconds.
        size: bytes of all of them.
    """

    workflow: str
    task: str
    files: tuple[str, ...]
    source: str
    target: str
    begin: float
    end: float
    size: float
    cost: float


@dataclass(frozen=True, slots=True)
class WorkflowOutcome:
    """What a plan means for one workflow.

    Attributes:
        start: of its first task; seconds.
        completion: end of its last task; seconds.
        cost: of all its tasks.
        tardiness: seconds after the due date; 0 in time.
        over_budget: cost beyond the budget; 0 within it.
    """

    workflow: str
    start: float
    completion: float
    cost: float
    tardiness: float
    over_budget: float

    @property
    def keeps_its_limits(self) -> bool:
        """Whether both due date and budget are kept."""
        return self.tardiness == 0 and self.over_budget == 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Placements in order of (start, workflow, task).

    Attributes:
        placements: including fixed ones.
        unplanned: workflow and task of those without a place: every alternative is closed for good
            before the task can end.
        transfers: of files between sites, in order of time; none without a network.
    """

    placements: tuple[Placement, ...]
    unplanned: tuple[tuple[str, str], ...] = ()
    transfers: tuple[Transfer, ...] = ()
    _by_key: Mapping[tuple[str, str], Placement] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        ordered = sorted(self.placements, key=lambda each: (each.start, *each.key))
        by_key = {each.key: each for each in ordered}
        if len(by_key) < len(ordered):
            keys = [each.key for each in ordered]
            twice = sorted({"/".join(key) for key in keys if keys.count(key) > 1})
            raise ValueError(f"placed twice: {', '.join(twice)}")
        object.__setattr__(self, "placements", tuple(ordered))
        object.__setattr__(self, "_by_key", by_key)

    def __len__(self) -> int:
        return len(self.placements)

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.placements)

    def placement(self, workflow: str, task: str) -> Placement | None:
        """Returns the placement of a task, or `None` if it has none."""
        return self._by_key.get((workflow, task))

    @property
    def makespan_end(self) -> float:
        """When the last task ends; seconds. Minus infinity if there is none."""
        return max((each.end for each in self.placements), default=-math.inf)

    def outcomes(self, workflows: Iterable[Workflow]) -> list[WorkflowOutcome]:
        """Returns the outcome for each workflow, in their order.

        Tasks without a place make completion and tardiness infinite.
        """
        found = []
        for workflow in workflows:
            places = [self._by_key.get((workflow.name, task.name)) for task in workflow.tasks]
            placed = [each for each in places if each is not None]
            completion = (
                max(each.end for each in placed) if len(placed) == len(places) else math.inf
            )
            cost = math.fsum(each.cost for each in placed)
            found.append(
                WorkflowOutcome(
                    workflow=workflow.name,
                    start=min((each.start for each in placed), default=math.inf),
                    completion=completion,
                    cost=cost,
                    tardiness=_beyond(completion, workflow.due_date, TIME_TOLERANCE),
                    over_budget=_beyond(cost, workflow.budget, workflow.budget * COST_TOLERANCE),
                )
            )
        return found


def _beyond(value: float, limit: float, tolerance: float) -> float:
    # How far a value is beyond its limit; 0 within.
    return value - limit if value > limit + tolerance else 0.0
