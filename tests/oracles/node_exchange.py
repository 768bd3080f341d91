"""Sites with nodes that exchange jobs, as plainly as it can be written: a second reading of docs/nodes.md.

Sites make one pass for an instant and offer a job when it comes; partners are asked in site order. Whether a
job would start is found out by letting it join a copy of the queue.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lrms_sim.machine.node_kinds import NodeMachine
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Request
from tests.oracles.nodes import PASSES, Job, PlainNodes


@dataclass(frozen=True, slots=True)
class PlainNodeSite:
    """A site with what its jobs ask for.

    With "awf" it runs what has room now; with "start-now" it keeps what would start at once, offers the rest, and
    takes what would start. One that tells processors alone offers nothing that asks for more.
    """

    machine: NodeMachine
    discipline: str
    jobs: JobTable
    requests: Sequence[Request]
    policy: Literal["awf", "start-now"]
    tells: Literal["requests", "processors"] = "requests"


def make_pass(site: PlainNodeSite, machine: PlainNodes, now: float) -> None:
    """Makes the pass of an instant."""
    PASSES[site.discipline](machine, now, False)


def advance(site: PlainNodeSite, machine: PlainNodes, until: float) -> None:
    """Handles all ends and reserved starts up to a moment, instant by instant."""
    while True:
        times = [job.end_time for job in machine.running]
        times += [start for start, _ in machine.reserved.values()]
        now = min(times, default=math.inf)
        if now > until or now == math.inf:
            return
        ended = [job for job in machine.running if job.end_time <= now]
        machine.ended_early |= any(job.estimated_end > now for job in ended)
        machine.running = [job for job in machine.running if job not in ended]
        make_pass(site, machine, now)


def wants(site: PlainNodeSite, machine: PlainNodes, job: Job, now: float) -> bool:
    """Returns whether a site would run a job now, by its policy."""
    if site.policy == "awf":
        return machine.fit(machine.running, job.request) is not None
    tried = copy.deepcopy(machine)
    tried.waiting.append(copy.copy(job))
    make_pass(site, tried, now)
    return any(other.row == job.row for other in tried.running)


def could_run(machine: PlainNodes, request: Request) -> bool:
    """Returns whether an empty machine has room."""
    return machine.fit([], request) is not None


def exchange_plainly(sites: Sequence[PlainNodeSite]) -> list[tuple[int, float]]:
    """Returns where and when each job starts, in order of arrival: by time, site, row."""
    machines = [PlainNodes(site.machine) for site in sites]
    arrivals = sorted(
        (float(submit), number, row)
        for number, site in enumerate(sites)
        for row, submit in enumerate(site.jobs.submit_time)
    )
    jobs, places = [], []
    for place, (now, home, row) in enumerate(arrivals):
        table = sites[home].jobs
        times = (now, float(table.requested_time[row]), float(table.run_time[row]))
        job = Job(place, *times, int(table.user[row]), sites[home].requests[row])
        for site, machine in zip(sites, machines, strict=True):
            advance(site, machine, now)
        target = home
        alone = sites[home].tells == "processors" and not job.request.processors_alone
        for other in range(len(sites)):
            if alone or other == home or not could_run(machines[other], job.request):
                continue
            if wants(sites[home], machines[home], job, now):
                break
            if wants(sites[other], machines[other], job, now):
                target = other
                break
        machines[target].waiting.append(job)
        make_pass(sites[target], machines[target], now)
        jobs.append(job)
        places.append(target)
    for site, machine in zip(sites, machines, strict=True):
        advance(site, machine, math.inf)
    return [(place, job.start_time) for place, job in zip(places, jobs, strict=True)]
