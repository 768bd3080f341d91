"""The schedule builder in plain Python: every alternative of every task is tried at every moment.

Follows section 3.3 of the paper word by word, keeps lists of what is taken, and knows neither
buckets nor sets. It shares with the kernel only the order in which ties are broken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from broker.model.network import DataFile
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import WEEK, Resource
from broker.model.workflow import Alternative, Task, Workflow
from tests.oracles.plan_checker import is_open, plain_duration, price_between

Key = tuple[str, str]
Taken = dict[str, list[tuple[float, float, int]]]
FileAt = tuple[str, str, str]
"""Workflow, file and site."""


@dataclass
class Sent:
    """What has been sent, and since when it is there; by source and target when links are taken."""

    at: dict[FileAt, float]
    busy: dict[tuple[str, str], list[tuple[float, float]]]


def plain_site(problem: Problem, resource: str) -> str:
    """Returns the site of a resource."""
    assert problem.network is not None
    return problem.network.sites.get(resource, resource)


def plain_needs(problem: Problem, going: tuple[Workflow, Task], resource: str) -> set[FileAt]:
    """Returns what has to be where for a task that goes to a resource."""
    workflow, task = going
    if problem.network is None:
        return set()
    site = plain_site(problem, resource)
    return {
        (workflow.name, file.name, site) for file in workflow.files if task.name in file.readers
    }


def plain_there(problem: Problem, workflow: Workflow, file: DataFile, site: str) -> float:
    """Returns since when a file is at a site whatever is planned; infinite if it is not."""
    copies = (c for c in problem.copies if (c.workflow, c.file) == (workflow.name, file.name))
    known = [copy.since for copy in copies if copy.site == site]
    for placement in problem.fixed:
        mine = placement.workflow == workflow.name and placement.task in file.readers
        if mine and plain_site(problem, placement.demands[0].resource) == site:
            known.append(placement.start)
    return min(known, default=math.inf)


def plain_data(
    problem: Problem,
    going: tuple[Workflow, Task],
    placed: dict[Key, Placement],
    resource: str,
    sent: Sent,
) -> tuple[float, float]:
    """Returns when the files of a task are at the site of a resource, and what sending them costs."""
    workflow, task = going
    network = problem.network
    if network is None:
        return -math.inf, 0.0
    if network.contention == "link":
        ready, cost, _ = plain_contended(problem, going, placed, resource, sent)
        return ready, cost
    target = plain_site(problem, resource)
    ready, cost = -math.inf, 0.0
    coming: dict[str, float] = {}
    since: dict[str, tuple[str, float]] = {}
    for file in (file for file in workflow.files if task.name in file.readers):
        there = plain_there(problem, workflow, file, target)
        if there < math.inf:
            ready = max(ready, there)
            continue
        if file.maker:
            before = placed[workflow.name, file.maker]
            origin = plain_site(problem, before.demands[0].resource)
            source, begin = file.maker, max(before.end, problem.now)
        else:
            origin = file.site or network.inputs
            source, begin = f"{origin}, of the workflow", problem.now
        if origin == target:
            continue
        coming[source] = coming.get(source, 0.0) + file.size
        since[source] = origin, begin
        if (workflow.name, file.name, target) not in sent.at:
            cost += file.size * network.link(origin, target).price
    for source, (origin, begin) in since.items():
        link = network.link(origin, target)
        ready = max(ready, begin + (link.latency + coming[source] / link.bandwidth))
    return ready, cost


def plain_contended(
    problem: Problem,
    going: tuple[Workflow, Task],
    placed: dict[Key, Placement],
    resource: str,
    sent: Sent,
) -> tuple[float, float, Sent]:
    """Returns the same where a link carries one transfer at a time, and what is sent if the task goes there."""
    workflow, task = going
    network = problem.network
    assert network is not None
    target = plain_site(problem, resource)
    ready = -math.inf
    # By source: from when on there is something to send, the place in the file, from where, and what.
    coming: dict[str, tuple[float, int, str, list[DataFile]]] = {}
    for file in (file for file in workflow.files if task.name in file.readers):
        there = plain_there(problem, workflow, file, target)
        there = sent.at.get((workflow.name, file.name, target), there)
        if file.maker:
            before = placed[workflow.name, file.maker]
            origin = plain_site(problem, before.demands[0].resource)
            source, begin = file.maker, max(before.end, problem.now)
        else:
            origin = file.site or network.inputs
            source, begin = f"{origin}, of the workflow", problem.now
        mine = coming.setdefault(source, (begin, len(coming), origin, []))
        if there < math.inf:
            ready = max(ready, there)
        elif origin != target:
            mine[3].append(file)
    cost = 0.0
    found = Sent({}, {})
    for begin, _, origin, files in sorted(coming.values(), key=lambda each: each[:2]):
        if not files:
            continue
        link = network.link(origin, target)
        size = 0.0
        for file in files:
            size += file.size
        seconds = link.latency + size / link.bandwidth
        cost += size * link.price
        start = begin
        if seconds > 0:
            own = found.busy.setdefault((origin, target), [])
            # Behind the task's own, then at the first moment at which nothing is in the way.
            since = max([begin, *(end for _, end in own)])
            taken = sent.busy.get((origin, target), [])
            moments = sorted({since, *(end for _, end in taken if end > since)})
            start = next(
                moment
                for moment in moments
                if all(moment + seconds <= a or b <= moment for a, b in taken)
            )
            own.append((start, start + seconds))
        ready = max(ready, start + seconds)
        found.at |= {(workflow.name, file.name, target): start + seconds for file in files}
    return ready, cost, found


def plain_send(
    problem: Problem,
    going: tuple[Workflow, Task],
    placed: dict[Key, Placement],
    resource: str,
    sent: Sent,
) -> None:
    """Has the files of a task sent where it goes."""
    if problem.network is not None and problem.network.contention == "link":
        _, _, found = plain_contended(problem, going, placed, resource, sent)
        sent.at |= found.at
        for link, spans in found.busy.items():
            sent.busy.setdefault(link, []).extend(spans)
    else:
        sent.at |= dict.fromkeys(plain_needs(problem, going, resource), 0.0)


def plain_build(
    problem: Problem,
    sequence: Sequence[Key],
    strategy: int,
    old: Plan | None = None,
) -> tuple[dict[Key, Placement], list[Key]]:
    """Returns the placements of all tasks and the order in which they were planned.

    Args:
        problem: what to plan.
        sequence: workflow and task of every task that is not fixed, once.
        strategy: from 1 to 6.
        old: whose places RAS-6 keeps.
    """
    taken: Taken = {resource.name: [] for resource in problem.resources}
    placed = {placement.key: placement for placement in problem.fixed}
    for placement in problem.fixed:
        if placement.end > problem.now:
            hold(taken, placement)
    tasks = {(w.name, t.name): (w, t) for w in problem.workflows for t in w.tasks}
    order: list[Key] = []
    waiting: list[Key] = []
    sent = Sent({}, {})
    for each in problem.under_way:
        if each.begin < each.end:
            sent.busy.setdefault((each.source, each.target), []).append((each.begin, each.end))
    for key in sequence:
        waiting.append(key)
        while True:
            going = next((k for k in waiting if predecessors_placed(placed, *tasks[k])), None)
            if going is None:
                break
            waiting.remove(going)
            found = plain_place(problem, tasks[going], placed, taken, strategy, old=old, sent=sent)
            if found is not None:
                placed[going] = found
                hold(taken, found)
                order.append(going)
                plain_send(problem, tasks[going], placed, found.demands[0].resource, sent)
    return placed, order


def predecessors_placed(placed: dict[Key, Placement], workflow: Workflow, task: Task) -> bool:
    """Returns whether a task may be planned."""
    return all((workflow.name, name) in placed for name in task.predecessors)


def hold(taken: Taken, placement: Placement) -> None:
    """Takes the resources of a placement."""
    for demand in placement.demands:
        taken.setdefault(demand.resource, []).append((placement.start, placement.end, demand.units))


def plain_place(
    problem: Problem,
    going: tuple[Workflow, Task],
    placed: dict[Key, Placement],
    taken: Taken,
    strategy: int,
    *,
    sent: Sent,
    old: Plan | None = None,
) -> Placement | None:
    """Returns where the strategy puts a task, or None where nothing is ever free."""
    if strategy > 3:
        share = plain_share(problem, going, placed) if strategy >= 5 else math.inf
        found = plain_end(problem, going, placed, taken, share, sent=sent)
        found = found or plain_end(problem, going, placed, taken, math.inf, sent=sent)
        before = old.placement(going[0].name, going[1].name) if strategy == 6 and old else None
        kept = plain_kept(problem, going, placed, taken, before, sent=sent)
        if kept is None or before is None or found is None:
            return found
        return kept if kept.end <= max(found.end, before.end) else found
    workflow, task = going
    ends = [placed[workflow.name, name].end for name in task.predecessors]
    earliest = max([problem.now, workflow.earliest_start, *ends])
    cheapest = strategy == 2 or (strategy == 3 and workflow.preference >= 0.5)
    varies = cheapest and any(len(each.price_steps()) > 1 for each in used_resources(problem))
    varies |= cheapest and transfers_cost(problem, *going)
    best: tuple[tuple[object, ...], Placement] | None = None
    for alternative in dict.fromkeys(task.alternatives):
        if not problem.is_possible(task, alternative):
            continue
        resources = [problem.resource[name] for name in alternative.resources]
        duration = plain_duration(task, alternative, resources[0])
        ready, sending = plain_data(problem, going, placed, resources[0].name, sent)
        start = plain_fit(resources, alternative, taken, max(earliest, ready), duration)
        if start is None:
            continue
        end = start + duration
        cost = sum(
            demand.units * price_between(resource, start, end)
            for demand, resource in zip(alternative.demands, resources, strict=True)
        )
        cost += sending
        rank = preference_rank(problem, task, alternative, cheapest=cheapest)
        asked = float(Fraction(cost).limit_denominator(10**6)) if varies else 0.0
        placement = Placement(workflow.name, task.name, alternative.demands, start, end, cost)
        if best is None or (start, asked, *rank) < best[0]:
            best = ((start, asked, *rank), placement)
    return best[1] if best else None


def transfers_cost(problem: Problem, workflow: Workflow, task: Task) -> bool:
    """Returns whether a task has files, and any of the links between sites has a price."""
    network = problem.network
    if network is None or not any(task.name in file.readers for file in workflow.files):
        return False
    return network.default.price > 0 or any(link.price > 0 for link in network.links.values())


def plain_kept(
    problem: Problem,
    going: tuple[Workflow, Task],
    placed: dict[Key, Placement],
    taken: Taken,
    before: Placement | None,
    *,
    sent: Sent,
) -> Placement | None:
    """Returns when a task can be where an old plan has it; None where it cannot be there now."""
    workflow, task = going
    mine = [a for a in task.alternatives if before is not None and a.demands == before.demands]
    only = (workflow, replace(task, alternatives=tuple(mine[:1]))) if mine else None
    return plain_end(problem, only, placed, taken, math.inf, sent=sent) if only else None


def plain_end(
    problem: Problem,
    going: tuple[Workflow, Task],
    placed: dict[Key, Placement],
    taken: Taken,
    share: float,
    *,
    sent: Sent,
) -> Placement | None:
    """Returns where a task ends first, of the alternatives that cost no more than a share."""
    workflow, task = going
    ends = [placed[workflow.name, name].end for name in task.predecessors]
    earliest = max([problem.now, workflow.earliest_start, *ends])
    best: tuple[tuple[object, ...], Placement] | None = None
    for alternative in dict.fromkeys(task.alternatives):
        resources = [problem.resource[name] for name in alternative.resources]
        duration = plain_duration(task, alternative, resources[0])
        if not problem.is_possible(task, alternative):
            continue
        ready, sending = plain_data(problem, going, placed, resources[0].name, sent)
        start = plain_fit(resources, alternative, taken, max(earliest, ready), duration)
        if start is None:
            continue
        cost = sum(
            demand.units * price_between(resource, start, start + duration)
            for demand, resource in zip(alternative.demands, resources, strict=True)
        )
        cost += sending
        if cost > share:
            continue
        key = (start + duration, *preference_rank(problem, task, alternative, cheapest=False))
        if best is None or key < best[0]:
            end = start + duration
            best = key, Placement(workflow.name, task.name, alternative.demands, start, end, cost)
    return best[1] if best else None


def plain_share(
    problem: Problem, going: tuple[Workflow, Task], placed: dict[Key, Placement]
) -> float:
    """Returns what RAS-5 lets a task cost: its part of what is left of the workflow's budget."""
    workflow, task = going
    spent = sum(each.cost for key, each in placed.items() if key[0] == workflow.name)
    left = workflow.budget - spent
    waiting = [each for each in workflow.tasks if (workflow.name, each.name) not in placed]
    least = sum(least_cost(problem, each) for each in waiting)
    fixed = {placement.key for placement in problem.fixed}
    others = [each for each in workflow.tasks if (workflow.name, each.name) not in fixed]
    rounding = 1e-8 * sum(least_cost(problem, each) for each in others)
    if left == math.inf or least <= rounding or left < least - rounding:
        return math.inf
    return least_cost(problem, task) * max(1.0, left / least) * (1 + 1e-8)


def least_cost(problem: Problem, task: Task) -> float:
    """Returns what a task costs where that is least, at mean prices; nothing if it can nowhere."""
    costs = []
    for alternative in task.alternatives:
        if problem.is_possible(task, alternative):
            resources = [problem.resource[name] for name in alternative.resources]
            price = sum(
                demand.units * resource.mean_price()
                for demand, resource in zip(alternative.demands, resources, strict=True)
            )
            costs.append(price * plain_duration(task, alternative, resources[0]))
    return min(costs, default=0.0)


def used_resources(problem: Problem) -> list[Resource]:
    """Returns the resources that some task that is not fixed can use."""
    fixed = {placement.key for placement in problem.fixed}
    names = {
        demand.resource
        for workflow in problem.workflows
        for task in workflow.tasks
        if (workflow.name, task.name) not in fixed
        for alternative in task.alternatives
        for demand in alternative.demands
    }
    return [resource for resource in problem.resources if resource.name in names]


def preference_rank(
    problem: Problem, task: Task, alternative: Alternative, *, cheapest: bool
) -> tuple[object, ...]:
    """Returns the place of an alternative in the list of a strategy, as a sort key."""
    resources = [problem.resource[name] for name in alternative.resources]
    price = math.fsum(
        demand.units * resource.mean_price()
        for demand, resource in zip(alternative.demands, resources, strict=True)
    )
    of_work = price / resources[0].performance
    names = [resource.name for resource in problem.resources]
    rows = [(names.index(demand.resource), demand.units) for demand in alternative.demands]
    speed = -resources[0].performance
    if any(each.seconds is not None or each.setup for each in task.alternatives):
        speed = plain_duration(task, alternative, resources[0])
        of_work = price * speed
    return (of_work, speed, rows) if cheapest else (speed, of_work, rows)


def plain_fit(
    resources: Sequence[Resource],
    alternative: Alternative,
    taken: Taken,
    earliest: float,
    duration: float,
) -> float | None:
    """Returns the earliest start at which all resources of an alternative are free."""
    moments = {earliest}
    for resource in resources:
        moments |= {end for _, end, _ in taken[resource.name]}
        moments |= {end for _, end in resource.calendar.closures}
    last = max(moment for moment in moments if math.isfinite(moment))
    for resource in resources:
        for window in resource.calendar.opening:
            for begin, _ in window.spans():
                first = math.floor((earliest + resource.utc_offset) / WEEK) - 1
                final = math.floor((last + resource.utc_offset) / WEEK) + 2
                moments |= {
                    week * WEEK + begin - 3 * 86_400 - resource.utc_offset
                    for week in range(first, final + 1)
                }
    for start in sorted(moment for moment in moments if earliest <= moment < math.inf):
        end = start + duration
        if all(
            is_open(resource, start, end)
            and most_used(taken[resource.name], start, end) + demand.units <= resource.capacity
            for resource, demand in zip(resources, alternative.demands, strict=True)
        ):
            return start
    return None


def most_used(spans: Sequence[tuple[float, float, int]], start: float, end: float) -> int:
    """Returns the most units in use at one moment between start and end."""
    over = [each for each in spans if each[0] < end and start < each[1]]
    moments = [start, *(begin for begin, _, _ in over if begin > start)]
    return max(sum(u for begin, until, u in over if begin <= at < until) for at in moments)
