"""Planning and replanning heuristics (paper 004, sections 3.1 and 3.2).

A rule puts the tasks in a sequence that respects precedence; each sequence is planned with each
resource allocation strategy. Planning heuristics apply the rule to all tasks; replanning heuristics
take the sequence of the old plan and append the new tasks as the rule says.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broker.plan import Plan
from broker.planner.compilation import Compilation

Genes = npt.NDArray[np.int32]

RULES = ("shortest due time", "shortest task", "shortest workflow")
"""In the paper's words: shortest due time, and shortest working time of grid or application job."""

STRATEGIES = ("RAS-1", "RAS-2", "RAS-3")
"""Resource allocation: the fastest, the cheapest, or by the workflow's preference."""


@dataclass(frozen=True)
class Heuristic:
    """A sequence of tasks with a strategy: what the builder makes a schedule of.

    Attributes:
        name: rule and strategy; those that use the old plan begin with "replanning: ".
        genes: the tasks in the order in which they are planned.
        strategy: 0, 1 or 2 for RAS-1 to RAS-3.
    """

    name: str
    genes: Genes
    strategy: int


def planning_heuristics(compilation: Compilation) -> list[Heuristic]:
    """Returns the nine heuristics that know no old plan."""
    everything = range(len(compilation.tasks))
    return [
        Heuristic(f"{rule} & {strategy}", sequence(compilation, rule, everything), number)
        for rule in RULES
        for number, strategy in enumerate(STRATEGIES)
    ]


def replanning_heuristics(compilation: Compilation, old: Plan) -> list[Heuristic]:
    """Returns the nine heuristics that start from an old plan.

    Args:
        compilation: the problem as it is now.
        old: a plan in which some of its tasks have a place.
    """
    kept, new = split_by_plan(compilation, old)
    return [
        Heuristic(
            f"replanning: {rule} & {strategy}",
            np.concatenate([kept, sequence(compilation, rule, new)]).astype(np.int32),
            number,
        )
        for rule in RULES
        for number, strategy in enumerate(STRATEGIES)
    ]


def split_by_plan(compilation: Compilation, old: Plan) -> tuple[Genes, list[int]]:
    """Returns the tasks that have a place in a plan, in its order, and the others."""
    starts = []
    new = []
    for row, (workflow, task) in enumerate(compilation.tasks):
        placement = old.placement(workflow.name, task.name)
        if placement is None:
            new.append(row)
        else:
            starts.append((placement.start, placement.end, row))
    return np.array([row for _, _, row in sorted(starts)], np.int32), new


def sequence(compilation: Compilation, rule: str, tasks: Iterable[int]) -> Genes:
    """Returns tasks in the order of a rule, each after those of its predecessors that are given.

    Args:
        compilation: the problem.
        rule: one of `RULES`.
        tasks: rows.

    Raises:
        ValueError: there is no such rule.
    """
    if rule not in RULES:
        raise ValueError(f"there is no rule {rule!r}; one of {', '.join(RULES)}")
    compiled = compilation.compiled
    members = list(tasks)
    inside = set(members)
    workflow = compiled.column("workflow")
    if rule == "shortest task":
        keys = compiled.column("work")
    elif rule == "shortest due time":
        keys = compiled.column("due_date")[workflow]
    else:
        # What is left of a workflow: the fixed part takes no time any more.
        count = len(compilation.tasks)
        left = np.zeros(len(compilation.problem.workflows))
        np.add.at(left, workflow[:count], compiled.column("work")[:count])
        keys = left[workflow]
    begin, predecessor = compiled.column("predecessor_begin"), compiled.column("predecessor")
    after, successor = compiled.column("successor_begin"), compiled.column("successor")
    missing = {
        task: sum(int(p) in inside for p in predecessor[begin[task] : begin[task + 1]])
        for task in members
    }
    ready = [
        (float(keys[task]), int(workflow[task]), task) for task in members if missing[task] == 0
    ]
    heapq.heapify(ready)
    order = []
    while ready:
        _, _, task = heapq.heappop(ready)
        order.append(task)
        for other in map(int, successor[after[task] : after[task + 1]]):
            if other in inside:
                missing[other] -= 1
                if missing[other] == 0:
                    heapq.heappush(ready, (float(keys[other]), int(workflow[other]), other))
    return np.array(order, np.int32)
