"""HEFT, the baseline for the makespan of plans.

Topcuoglu, Hariri, Wu: "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
Computing" (IEEE Transactions on Parallel and Distributed Systems 13(3), 2002). Tasks are taken in
order of descending upward rank: the mean time of the task on its alternatives plus the largest
rank among its successors. Each goes where it ends first, also into a gap between tasks that were
placed before (the insertion policy). Where the problem has a network, the rank counts the mean time of
communication as well, over all pairs of resources, and a task ends first where its files are in time. Where
links carry one transfer at a time, those of a task are placed on them with it (`broker.model.transfers`); ranks do not
count that they may have to wait.

Beyond the paper, resources have opening hours, closures and capacities, alternatives may take
several resources at once, and some tasks are fixed. It shares no code with the planner.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence

from broker.model.network import BANDWIDTH_MIN, Link, Network
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import EPOCH_IN_WEEK, WEEK, Resource
from broker.model.transfers import Staging
from broker.model.workflow import Alternative, Task, Workflow


def heft(problem: Problem) -> Plan:
    """Returns the plan of HEFT: short makespan, ignoring due dates, budgets and prices.

    Fixed tasks keep their places.
    """
    shortest = _shortest(problem)
    timelines = {each.name: _Timeline(each, shortest) for each in problem.resources}
    placements = {each.key: each for each in problem.fixed}
    for each in problem.fixed:
        if each.end > problem.now:
            for demand in each.demands:
                timelines[demand.resource].add(each.start, each.end, demand.units)
    unplanned: list[tuple[str, str]] = []
    staging = Staging(problem)
    sent = staging.schedule()
    for workflow, task in _by_rank(problem):
        ends = [placements.get((workflow.name, name)) for name in task.predecessors]
        best = None
        if None not in ends:
            ready = max([problem.now, workflow.earliest_start, *(e.end for e in ends if e)])
            key = workflow.name, task.name
            when = {
                each.primary: max(ready, sent.ready(key, each.primary, placements))
                for each in (task.alternatives if staging.sources(key) else ())
            }
            best = _earliest_finish(problem, task, ready, timelines, when)
        if best is None:
            unplanned.append((workflow.name, task.name))
            continue
        start, end, alternative = best
        duration = _duration(problem, task, alternative)
        cost = 0.0
        for demand in alternative.demands:
            timelines[demand.resource].add(start, end, demand.units)
            cost += problem.resource[demand.resource].cost_for(start, duration, demand.units)
        placements[workflow.name, task.name] = Placement(
            workflow.name, task.name, alternative.demands, start, end, cost
        )
        sent.place((workflow.name, task.name), alternative.primary, placements)
    return sent.completed(Plan(tuple(placements.values()), tuple(sorted(unplanned))))


def upward_ranks(problem: Problem, workflow: Workflow) -> dict[str, float]:
    """Returns the upward rank of each task, in seconds (equations 5 and 6 of the paper)."""
    successors: dict[str, list[str]] = {task.name: [] for task in workflow.tasks}
    for task in workflow.tasks:
        for name in task.predecessors:
            successors[name].append(task.name)
    between = _between(problem, workflow)
    ranks: dict[str, float] = {}
    for task in reversed(in_order(workflow)):
        after = max(
            (between.get((task.name, name), 0.0) + ranks[name] for name in successors[task.name]),
            default=0.0,
        )
        ranks[task.name] = _mean_duration(problem, task) + after
    return ranks


def mean_link(network: Network, resources: Sequence[Resource]) -> Link:
    """Returns the mean of the links between all pairs of different resources, those of one site included.

    Times are averaged, not bandwidths. Without such a pair nothing takes any time.
    """
    count: dict[str, int] = {}
    for each in resources:
        site = network.site(each.name)
        count[site] = count.get(site, 0) + 1
    pairs = len(resources) * (len(resources) - 1)
    latency = slowness = 0.0
    for source, of_source in count.items():
        for target, of_target in count.items():
            if source != target:
                share = of_source * of_target / pairs
                link = network.link(source, target)
                latency += share * link.latency
                slowness += share / link.bandwidth
    # No mean is beyond all of its links but for rounding.
    bandwidth = max(BANDWIDTH_MIN, 1 / slowness) if slowness > 0 else math.inf
    return Link(bandwidth, latency)


def _between(problem: Problem, workflow: Workflow) -> dict[tuple[str, str], float]:
    # The mean seconds from task to task; those of inputs delay nothing that comes before them.
    if problem.network is None or not workflow.files:
        return {}
    mean = mean_link(problem.network, problem.resources)
    sizes: dict[tuple[str, str], float] = {}
    for file in workflow.files:
        for reader in file.readers if file.maker else ():
            sizes[file.maker, reader] = sizes.get((file.maker, reader), 0.0) + file.size
    return {edge: mean.seconds(size) for edge, size in sizes.items()}


def in_order(workflow: Workflow) -> list[Task]:
    """Returns the tasks so that each comes after its predecessors; ties in the workflow's order."""
    tasks = {task.name: task for task in workflow.tasks}
    waiting = {name: len(task.predecessors) for name, task in tasks.items()}
    successors: dict[str, list[str]] = {name: [] for name in tasks}
    for task in workflow.tasks:
        for name in task.predecessors:
            successors[name].append(task.name)
    ready = [name for name, count in waiting.items() if count == 0]
    ordered = []
    while ready:
        following = []
        for name in ready:
            ordered.append(tasks[name])
            for successor in successors[name]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    following.append(successor)
        ready = following
    return ordered


def _duration(problem: Problem, task: Task, alternative: Alternative) -> float:
    return alternative.duration(task.work, problem.resource[alternative.primary].performance)


def _mean_duration(problem: Problem, task: Task) -> float:
    """Returns the seconds that a task takes, averaged over its alternatives."""
    if task.timed:
        durations = [_duration(problem, task, each) for each in task.alternatives]
        return math.fsum(durations) / len(durations)
    return task.work * _mean_slowness(problem, task.alternatives)


def _mean_slowness(problem: Problem, alternatives: Sequence[Alternative]) -> float:
    """Returns the seconds per second of work, averaged over the alternatives."""
    return math.fsum(1 / problem.resource[each.primary].performance for each in alternatives) / len(
        alternatives
    )


def _shortest(problem: Problem) -> float:
    """Returns seconds that no task is shorter than."""
    fastest = max(each.performance for each in problem.resources)
    times = []
    for task in (task for workflow in problem.workflows for task in workflow.tasks):
        said = (
            [each.seconds for each in task.alternatives if each.seconds is not None]
            if task.timed
            else []
        )
        times.append(min([task.work / fastest, *said]))
    return min(times)


def _by_rank(problem: Problem) -> Iterator[tuple[Workflow, Task]]:
    fixed = {each.key for each in problem.fixed}
    ranked = []
    for number, workflow in enumerate(problem.workflows):
        ranks = upward_ranks(problem, workflow)
        # If rounding makes ranks equal, the order within the workflow keeps precedence.
        ranked += [
            (-ranks[task.name], number, place, workflow, task)
            for place, task in enumerate(in_order(workflow))
            if (workflow.name, task.name) not in fixed
        ]
    ranked.sort(key=lambda each: each[:3])
    for _, _, _, workflow, task in ranked:
        yield workflow, task


def _earliest_finish(
    problem: Problem,
    task: Task,
    ready: float,
    timelines: dict[str, "_Timeline"],
    when: Mapping[str, float],
) -> tuple[float, float, Alternative] | None:
    """Returns start, end and alternative that end first; the first alternative among equals.

    `when` has by primary resource from when on the task has its files there, if it is not `ready`.
    """
    best: tuple[float, float, Alternative] | None = None
    for alternative in task.alternatives:
        duration = _duration(problem, task, alternative)
        latest = math.inf if best is None else best[1] - duration
        # A search on resources that are never open together would not terminate.
        since = when.get(alternative.primary, ready)
        if since >= latest or not _meets(problem, task, alternative, timelines):
            continue
        parts = [(timelines[each.resource], each.units) for each in alternative.demands]
        start = _common_start(parts, since, duration, latest)
        if start < latest:
            best = start, start + duration, alternative
    return best


def _meets(
    problem: Problem, task: Task, alternative: Alternative, timelines: dict[str, "_Timeline"]
) -> bool:
    """Returns whether the search for a common start terminates."""
    hours = sum(bool(timelines[each.resource].opening) for each in alternative.demands)
    return hours <= 1 or problem.is_possible(task, alternative)


def _common_start(
    parts: Sequence[tuple["_Timeline", int]], ready: float, duration: float, latest: float
) -> float:
    """Returns the earliest start at which all resources are free; `latest` or more is too late."""
    if len(parts) == 1:
        timeline, units = parts[0]
        return timeline.earliest(ready, duration, units)
    start = ready
    while start < latest:
        moved = start
        for timeline, units in parts:
            moved = timeline.earliest(moved, duration, units)
        if moved == start:
            break
        start = moved
    return start


class _Timeline:
    """The occupied times and opening hours of one resource.

    Neighbouring steps with as many units used are one, and gaps in which no task fits count as used: what is
    left to look at are gaps, not tasks.
    """

    def __init__(self, resource: Resource, shortest: float) -> None:
        self.capacity = resource.capacity
        self.shortest = shortest
        # used[k] units from times[k] on.
        self.times = [-math.inf]
        self.used = [0]
        self.closures = resource.closure_spans()
        self.opening = resource.opening_spans()
        self.shift = EPOCH_IN_WEEK + resource.utc_offset

    def add(self, start: float, end: float, units: int) -> None:
        if start == end and units == self.capacity:
            # Nothing may run across an instant, as across a closure.
            insort(self.closures, (start, end))
        first, last = self._edge(start), self._edge(end)
        for index in range(first, last):
            self.used[index] += units
        self._fill(first - 1)
        self._fill(last)
        for index in range(min(last + 1, len(self.used) - 1), max(first - 1, 1) - 1, -1):
            if self.used[index] == self.used[index - 1]:
                del self.used[index], self.times[index]

    def _fill(self, index: int) -> None:
        # A free step between full ones, too short for any task.
        if 0 < index < len(self.used) - 1 and self.used[index] < self.capacity:
            around = self.used[index - 1], self.used[index + 1]
            too_short = self.times[index + 1] < self.times[index] + self.shortest
            if too_short and min(around) >= self.capacity:
                self.used[index] = self.capacity

    def _edge(self, moment: float) -> int:
        """Returns the index of the step that begins at a moment, inserting it if needed."""
        index = bisect_right(self.times, moment) - 1
        if self.times[index] != moment:
            index += 1
            self.times.insert(index, moment)
            self.used.insert(index, self.used[index - 1])
        return index

    def earliest(self, start: float, duration: float, units: int) -> float:
        """Returns the earliest start from a moment on; infinity if there is none."""
        if not self.opening and not self.closures:
            return self._free(start, duration, units) if start < math.inf else start
        while start < math.inf:
            moved = self._free(
                self._outside_closures(self._open(start, duration), duration), duration, units
            )
            if moved == start:
                break
            start = moved
        return start

    def _open(self, start: float, duration: float) -> float:
        if not self.opening or start == math.inf:
            return start
        # The opening that holds the moment may have begun the week before; one long enough comes within a
        # week after it.
        week = math.floor((start + self.shift) / WEEK) - 1
        for number in range(week, week + 4):
            for begin, end in self.opening:
                opens, closes = (number * WEEK + edge - self.shift for edge in (begin, end))
                if closes - max(start, opens) >= duration:
                    return max(start, opens)
        return math.inf

    def _outside_closures(self, start: float, duration: float) -> float:
        for begin, end in self.closures:
            if begin < start + duration and start < end:
                start = end
        return start

    def _free(self, start: float, duration: float, units: int) -> float:
        index = bisect_right(self.times, start) - 1
        while index < len(self.times) and self.times[index] < start + duration:
            if self.used[index] + units > self.capacity:
                if index + 1 == len(self.times):
                    return math.inf
                start = self.times[index + 1]
            index += 1
        return start
