"""The critical path of a plan: the chain of tasks that sets when it ends.

From the last task to end, walk back each time to what the task waited for: a predecessor or, if none
ended at its start, files that came to its site then, or a task that freed one of its resources at that
moment. Otherwise the task waited for a resource to open, or for files that another task had sent there; the
walk continues at its last predecessor.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from broker.model.plan import Placement, Plan
from broker.model.workflow import Workflow

Reason = Literal["begins", "predecessor", "files", "resource", "opening"]


@dataclass(frozen=True, slots=True)
class Link:
    """One task of a critical path.

    Attributes:
        reason: what it waited for: nothing, as it begins the path; a predecessor; its files;
            a resource held by another task; or a closed resource.
    """

    placement: Placement
    reason: Reason


def critical_path(
    plan: Plan, workflows: Sequence[Workflow], *, of: str | None = None
) -> tuple[Link, ...]:
    """Returns the chain of tasks that sets when a plan ends, in order of time.

    `of` names a workflow whose last task is the end, instead of the plan's.
    """
    return CriticalPaths(plan, workflows).ending_with(of)


class CriticalPaths:
    """Finds critical paths of one plan; faster than one by one where many are wanted."""

    def __init__(self, plan: Plan, workflows: Sequence[Workflow]) -> None:
        self._plan = plan
        self._predecessors: Mapping[tuple[str, str], tuple[str, ...]] = {
            (workflow.name, task.name): task.predecessors
            for workflow in workflows
            for task in workflow.tasks
        }
        reads = {
            (workflow.name, name, file.name)
            for workflow in workflows
            for file in (workflow.files if plan.transfers else ())
            for name in file.readers
        }
        # By task when files come that are sent for it, and those whose files others have sent.
        self._arrivals: dict[tuple[str, str], list[float]] = {}
        sent: dict[tuple[str, str], None] = {}
        for each in plan.transfers:
            self._arrivals.setdefault((each.workflow, each.task), []).append(each.end)
            sent |= dict.fromkeys((each.workflow, file) for file in each.files)
        self._given = {(w, task) for w, task, file in reads if (w, file) in sent}
        self._last: dict[str | None, Placement] = {}
        ends: dict[str, list[Placement]] = {}
        for placement in plan:
            for scope in (None, placement.workflow):
                self._last[scope] = max(self._last.get(scope, placement), placement, key=_by_end)
            for name in placement.resources:
                ends.setdefault(name, []).append(placement)
        self._by_end = {name: sorted(each, key=_by_end) for name, each in ends.items()}

    def ending_with(self, workflow: str | None = None) -> tuple[Link, ...]:
        """Returns the chain that ends with the last task, of the plan or of a workflow."""
        last = self._last.get(workflow)
        chain: list[Link] = []
        seen: set[tuple[str, str]] = set()
        while last is not None and last.key not in seen:
            seen.add(last.key)
            reason, before = self._waited_for(last)
            chain.append(Link(last, reason))
            last = before
        return tuple(reversed(chain))

    def _waited_for(self, placement: Placement) -> tuple[Reason, Placement | None]:
        names = self._predecessors.get(placement.key, ())
        places = [self._plan.placement(placement.workflow, name) for name in names]
        before = max((each for each in places if each is not None), key=_by_end, default=None)
        if before is not None and _touches(before.end, placement.start):
            return "predecessor", before
        if any(_touches(each, placement.start) for each in self._arrivals.get(placement.key, ())):
            return "files", before
        holder = self._holder(placement)
        if holder is not None:
            return "resource", holder
        if placement.key in self._given:
            return "files", before
        return ("begins", None) if before is None else ("opening", before)

    def _holder(self, placement: Placement) -> Placement | None:
        """Returns the longest task that freed one of the resources just before the start."""
        slack = _slack(placement.start)
        found: list[Placement] = []
        for name in placement.resources:
            ended = self._by_end[name]
            first = bisect_left(ended, placement.start - slack, key=lambda each: each.end)
            last = bisect_right(ended, placement.start + slack, key=lambda each: each.end)
            found += [each for each in ended[first:last] if each.start < placement.start]
        return min(found, key=lambda each: (each.start, *each.key), default=None)


def _by_end(placement: Placement) -> tuple[float, str, str]:
    return placement.end, *placement.key


def _slack(moment: float) -> float:
    # Rounding error of a few additions in another order.
    return 4 * math.ulp(moment)


def _touches(end: float, start: float) -> bool:
    return abs(start - end) <= _slack(start)
