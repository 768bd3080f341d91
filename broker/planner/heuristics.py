"""Planning and replanning heuristics (paper 004, sections 3.1 and 3.2).

A rule puts the tasks in a sequence that respects precedence; each sequence is planned with each
resource allocation strategy. Planning heuristics apply the rule to all tasks; replanning heuristics
take the sequence of the old plan and append the new tasks as the rule says.

Our own heuristics are kept apart: two more rules, and two more strategies for all rules.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broker.model.plan import Plan
from broker.planner.compilation import Compilation
from broker.planner.staging import mean_transfers

Genes = npt.NDArray[np.int32]
Dates = npt.NDArray[np.float64]
Priorities = npt.NDArray[np.float64]
"""By task, from 0 for the first to 1 for the last."""

RULES = ("shortest due time", "shortest task", "shortest workflow")
"""In the paper's words: shortest due time, and shortest working time of grid or application job."""

LATEST_START = "latest start"
"""Tasks by when they have to start for their workflow to keep its due date."""

UPWARD_RANK = "upward rank"
"""The longest chains of tasks first, as HEFT does (see broker/model/heft.py)."""

OWN_RULES = (LATEST_START, UPWARD_RANK)
STRATEGIES = ("RAS-1", "RAS-2", "RAS-3", "RAS-4", "RAS-5", "RAS-6")
"""Resource allocation: of the resources that are free first the fastest, the cheapest, or by the
workflow's preference; where the task ends first, at any cost or within its share of the budget; and
where an old plan has it, as long as it ends no later there."""

PAPER_STRATEGIES = 3
"""The first three are the paper's."""

PLANNING_STRATEGIES = 5
"""The first five need no old plan."""


@dataclass(frozen=True)
class Heuristic:
    """A sequence of tasks with a strategy: what the builder makes a schedule of.

    Attributes:
        name: rule and strategy; begins with "replanning: " if the old plan is used.
        genes: the tasks in planning order.
        strategy: 0 to 5 for RAS-1 to RAS-6.
    """

    name: str
    genes: Genes
    strategy: int


def planning_heuristics(compilation: Compilation) -> list[Heuristic]:
    """Returns the nine heuristics that know no old plan."""
    everything = range(len(compilation.tasks))
    sequences = {rule: sequence(compilation, rule, everything) for rule in RULES}
    return [
        Heuristic(f"{rule} & {strategy}", genes, number)
        for rule, genes in sequences.items()
        for number, strategy in enumerate(STRATEGIES[:PAPER_STRATEGIES])
    ]


def replanning_heuristics(compilation: Compilation, old: Plan) -> list[Heuristic]:
    """Returns the nine heuristics that start from an old plan."""
    kept, new = split_by_plan(compilation, old)
    sequences = {
        rule: np.concatenate([kept, sequence(compilation, rule, new)]).astype(np.int32)
        for rule in RULES
    }
    return [
        Heuristic(f"replanning: {rule} & {strategy}", genes, number)
        for rule, genes in sequences.items()
        for number, strategy in enumerate(STRATEGIES[:PAPER_STRATEGIES])
    ]


def own_heuristics(
    compilation: Compilation, old: Plan | None = None, due: Dates | None = None
) -> list[Heuristic]:
    """Returns our own heuristics, which are not part of the paper's comparison.

    Latest start uses the due dates `due`, by workflow, infinite for none; by default all due dates.
    Workflows that cannot be in time any more would make others late.
    """
    everything = range(len(compilation.tasks))
    strategies = len(STRATEGIES) if compilation.keeps else PLANNING_STRATEGIES
    sequences = {
        rule: sequence(compilation, rule, everything, due) for rule in (*OWN_RULES, RULES[0])
    }
    if old is not None:
        kept, new = split_by_plan(compilation, old)
        appended = sequence(compilation, LATEST_START, new, due)
        sequences[f"replanning: {LATEST_START}"] = np.concatenate([kept, appended]).astype(np.int32)
    return [
        Heuristic(f"{rule} & {STRATEGIES[number]}", genes, number)
        for rule, genes in sequences.items()
        for number in range(PAPER_STRATEGIES if rule in RULES else 0, strategies)
    ]


def planned_heuristic(compilation: Compilation, plan: Plan) -> Heuristic:
    """Returns the order of a plan with the strategy that keeps its resources; what it leaves out comes last."""
    planned, others = split_by_plan(compilation, plan)
    genes = np.concatenate([planned, others]).astype(np.int32)
    return Heuristic("planned without contention", genes, len(STRATEGIES) - 1)


def project_priorities(compilation: Compilation) -> dict[str, Priorities]:
    """Returns rules of project scheduling: latest start and finish, successors, their durations.

    The first two are by the longest chain of tasks that follows; with most successors, or most time of
    all of them and its own (rank positional weight), a task goes first.
    """
    compiled = compilation.compiled
    count = len(compilation.tasks)
    duration = compiled.column("mean_duration")[:count]
    ranks = upward_ranks(compilation)
    begin, successor = compiled.column("successor_begin"), compiled.column("successor")
    behind: list[int] = [0] * count  # a set of bits
    for task in map(int, np.argsort(ranks, kind="stable")):
        for other in map(int, successor[begin[task] : begin[task + 1]]):
            behind[task] |= behind[other] | 1 << other
    weights = np.zeros(count)
    for task, members in enumerate(behind):
        bits = np.frombuffer(members.to_bytes(count // 8 + 1, "little"), np.uint8)
        weights[task] = (
            duration[task] + duration[np.flatnonzero(np.unpackbits(bits, bitorder="little"))].sum()
        )
    keys = {
        "latest finish": duration - ranks,
        "latest start": -ranks,
        "most successors": -np.array([each.bit_count() for each in behind], np.float64),
        "rank weight": -weights,
    }
    return {name: _from_0_to_1(each) for name, each in keys.items()}


def _from_0_to_1(keys: npt.NDArray[np.float64]) -> Priorities:
    low, high = keys.min(), keys.max()
    return (keys - low) / (high - low) if high > low else keys * 0.0


def project_heuristics(priorities: Mapping[str, Priorities]) -> list[Heuristic]:
    """Returns a heuristic for each rule; the builder puts tasks behind what they wait for."""
    return [
        Heuristic(rule, np.argsort(keys, kind="stable").astype(np.int32), 0)
        for rule, keys in priorities.items()
    ]


def staying_ends(compilation: Compilation, due: Dates) -> Dates:
    """Returns by task until when RAS-6 lets it end at its place in the old plan.

    This is the old end; or later, as long as the workflow can still keep its due date or, if it has
    none to keep, by at most the duration of the task. Being sooner elsewhere then gains little.
    """
    compiled = compilation.compiled
    count = len(compilation.tasks)
    mean = compiled.column("mean_duration")[:count]
    ends = compiled.column("kept_end")[:count]
    date = due[compiled.column("workflow")[:count]]
    latest = np.where(np.isfinite(date), date, 0.0) - (upward_ranks(compilation) - mean)
    return np.asarray(np.where(np.isfinite(date), np.maximum(ends, latest), ends + mean))


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


def sequence(
    compilation: Compilation, rule: str, tasks: Iterable[int], due: Dates | None = None
) -> Genes:
    """Returns the tasks (rows) in the order of a rule, each after its predecessors among them."""
    compiled = compilation.compiled
    members = list(tasks)
    inside = set(members)
    # Lists: single elements of arrays are slow to take.
    workflow: list[int] = compiled.column("workflow").tolist()
    keys: list[float] = _keys(compilation, rule, due).tolist()
    before, predecessor = _edges(compilation, "predecessor")
    after, successor = _edges(compilation, "successor")
    missing = {
        task: sum(p in inside for p in predecessor[before[task] : before[task + 1]])
        for task in members
    }
    ready = [(keys[task], workflow[task], task) for task in members if missing[task] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, _, task = heapq.heappop(ready)
        order.append(task)
        for other in successor[after[task] : after[task + 1]]:
            if other in inside:
                missing[other] -= 1
                if missing[other] == 0:
                    heapq.heappush(ready, (keys[other], workflow[other], other))
    return np.array(order, np.int32)


def _keys(compilation: Compilation, rule: str, due: Dates | None) -> npt.NDArray[np.float64]:
    # By task; the least goes first.
    compiled = compilation.compiled
    workflow = compiled.column("workflow")
    if rule == "shortest task":
        return np.asarray(compiled.column("work"), np.float64)
    if rule == "shortest due time":
        return np.asarray(compiled.column("due_date")[workflow])
    if rule == UPWARD_RANK:
        return -upward_ranks(compilation)
    if rule == LATEST_START:
        ranks = upward_ranks(compilation)
        due_date = (compiled.column("due_date") if due is None else due)[workflow[: len(ranks)]]
        # Tasks without a due date come last, the longest chains first.
        finite = np.isfinite(due_date)
        end = max(due_date[finite].max(initial=compilation.problem.now), 0.0) + ranks.max(
            initial=0.0
        )
        return np.asarray(np.where(finite, due_date, end) - ranks)
    if rule not in RULES:
        raise ValueError(f"there is no rule {rule!r}; one of {', '.join((*RULES, *OWN_RULES))}")
    # What is left of a workflow: its fixed part takes no more time.
    count = len(compilation.tasks)
    left = np.zeros(len(compilation.problem.workflows))
    np.add.at(left, workflow[:count], compiled.column("work")[:count])
    return np.asarray(left[workflow])


def upward_ranks(compilation: Compilation) -> npt.NDArray[np.float64]:
    """Returns by task the mean duration of the longest chain of tasks that begins with it, files included."""
    between = mean_transfers(compilation.problem, compilation.tasks)
    compiled = compilation.compiled
    count = len(compilation.tasks)
    ranks: list[float] = compiled.column("mean_duration")[:count].tolist()
    before, predecessor = _edges(compilation, "predecessor")
    missing: list[int] = np.diff(compiled.column("successor_begin"))[:count].tolist()
    longest = [0.0] * count
    going = [task for task in range(count) if missing[task] == 0]
    while going:
        task = going.pop()
        ranks[task] += longest[task]
        for other in predecessor[before[task] : before[task + 1]]:
            longest[other] = max(longest[other], between.get((other, task), 0.0) + ranks[task])
            missing[other] -= 1
            if missing[other] == 0:
                going.append(other)
    return np.array(ranks)


def _edges(compilation: Compilation, which: str) -> tuple[list[int], list[int]]:
    # Where those of a task begin in the list of all of them, and the list.
    column = compilation.compiled.column
    return column(f"{which}_begin").tolist(), column(which).tolist()
