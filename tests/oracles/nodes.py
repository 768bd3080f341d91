"""A machine of nodes with its queue, as plainly as it can be written: a second reading of docs/nodes.md.

Lists and loops, nothing kept that can be counted again. Where the job table and the requests of its
jobs come from is of no account here.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lrms_sim.machine.node_kinds import NodeMachine
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Request
from tests.oracles.overruns import CORRECTIONS, longer


@dataclass(slots=True)
class Node:
    """A node and what nobody holds on it."""

    number: int
    kind: int
    cores: int
    memory: float
    gpus: int
    jobs: int = 0

    def copy(self) -> "Node":
        """Returns a node as this one is now."""
        return Node(self.number, self.kind, self.cores, self.memory, self.gpus, self.jobs)


@dataclass(slots=True, eq=False)
class Job:
    """A job, and once it runs since when and where: tasks by node."""

    row: int
    submit_time: float
    requested_time: float
    run_time: float
    user: int
    request: Request
    start_time: float = math.nan
    place: dict[int, int] = field(default_factory=dict)
    outlived: float | None = None

    @property
    def end_time(self) -> float:
        """When it really ends."""
        return self.start_time + self.run_time

    @property
    def estimate(self) -> float:
        """How long it runs, as far as is known."""
        return self.requested_time if self.outlived is None else self.outlived

    @property
    def estimated_end(self) -> float:
        """When it ends at the latest, as far as is known."""
        return self.start_time + self.estimate


class PlainNodes:
    """The machine: its nodes, who runs, who waits."""

    def __init__(self, machine: NodeMachine) -> None:
        self.machine = machine
        self.nodes: list[Node] = []
        for number, kind in enumerate(machine.kinds):
            for _ in range(kind.nodes):
                memory = kind.memory or math.inf
                self.nodes.append(Node(len(self.nodes), number, kind.cores, memory, kind.gpus))
        self.whole = [node.copy() for node in self.nodes]
        self.running: list[Job] = []
        self.waiting: list[Job] = []
        self.reserved: dict[int, tuple[float, dict[int, int]]] = {}
        self.ended_early = False
        self.guesses: dict[int, list[float]] = {}
        self.past: dict[int, list[float]] = {}

    def will_do(self, node: Node, request: Request) -> bool:
        """Returns whether a node is of a kind that the job may use."""
        kind = self.machine.kinds[node.kind]
        gpu_type = request.gpus.type if request.gpus else ""
        return set(request.features) <= kind.features and gpu_type in ("", kind.gpu_type)

    def holds(self, request: Request, tasks: int) -> tuple[int, float, int]:
        """Returns cores, memory and GPUs that some tasks of a job hold on one node."""
        gpus = request.node_gpus()
        of_gpus = 0
        if gpus is not None:
            of_gpus = gpus.count * (tasks if gpus.per == "task" else 1)
        memory = 0
        if request.memory is not None:
            times = {"node": 1, "core": tasks * request.cores_per_task, "gpu": of_gpus}
            memory = request.memory.mib * times[request.memory.per]
        return tasks * request.cores_per_task, memory, of_gpus

    def room(self, node: Node, request: Request) -> int:
        """Returns how many tasks of a job a node has room for, as far as the job may use it."""
        if not self.will_do(node, request) or (request.exclusive and node.jobs):
            return 0
        most = request.tasks - (request.nodes_min - 1)
        if request.tasks_per_node is not None:
            most = min(most, request.tasks_per_node)
        for tasks in range(most, 0, -1):
            cores, memory, gpus = self.holds(request, tasks)
            if cores <= node.cores and memory <= node.memory and gpus <= node.gpus:
                return tasks
        return 0

    def licences_left(self, running: Sequence[Job]) -> dict[str, int]:
        """Returns how many licences are free while exactly these jobs run; less than 0 for too few."""
        left = dict(self.machine.licences)
        for job in running:
            for name, count in job.request.licences:
                left[name] -= count
        return left

    def fit(self, running: Sequence[Job], request: Request) -> dict[int, int] | None:
        """Returns where a job would go while exactly these run; None where it does not fit."""
        return self.place(self.left(running), self.licences_left(running), request)

    def place(
        self, nodes: Sequence[Node], licences: Mapping[str, int], request: Request
    ) -> dict[int, int] | None:
        """Returns where a job would go, tasks by node; None where it does not fit."""
        wanted: dict[str, int] = {}
        for name, count in request.licences:
            wanted[name] = wanted.get(name, 0) + count
        if any(count > licences.get(name, 0) for name, count in wanted.items()):
            return None

        def order(node: Node) -> tuple[int, ...]:
            if self.machine.placement == "best-fit":
                return node.kind, node.cores, node.number
            return node.kind, node.number

        rooms = [(node, self.room(node, request)) for node in sorted(nodes, key=order)]
        rooms = [(node, room) for node, room in rooms if room]
        most_nodes = request.nodes_max or len(nodes)
        if request.on_one_node:
            most_nodes = 1
            rooms = [(node, room) for node, room in rooms if room == request.tasks]
        in_order = self.deal(rooms, request, most_nodes)
        if in_order is None:
            rooms.sort(key=lambda pair: -pair[1])
            return self.deal(rooms, request, most_nodes)
        return in_order

    def deal(
        self, rooms: Sequence[tuple[Node, int]], request: Request, most_nodes: int
    ) -> dict[int, int] | None:
        """Deals out the tasks over nodes in their order."""
        dealt: dict[int, int] = {}
        left = request.tasks
        for node, room in rooms[:most_nodes]:
            others = max(0, request.nodes_min - len(dealt) - 1)
            dealt[node.number] = min(room, left - others)
            left -= dealt[node.number]
            if left == 0:
                return dealt
        return None

    def take(self, nodes: Sequence[Node], request: Request, place: dict[int, int]) -> None:
        """Takes from nodes what a job holds in its place."""
        for number, tasks in place.items():
            node = nodes[number]
            if request.exclusive:
                node.cores, node.memory, node.gpus = 0, 0, 0
            else:
                cores, memory, gpus = self.holds(request, tasks)
                node.cores -= cores
                node.memory -= memory
                node.gpus -= gpus
            node.jobs += 1

    def left(self, running: Sequence[Job]) -> list[Node]:
        """Returns the nodes as they are while exactly these jobs run."""
        nodes = [node.copy() for node in self.whole]
        for job in running:
            self.take(nodes, job.request, job.place)
        return nodes

    def start(self, job: Job, now: float, place: dict[int, int]) -> None:
        """Starts a waiting job."""
        self.waiting.remove(job)
        job.start_time = now
        job.place = place
        self.running.append(job)

    def holding(self, now: float, per_event: bool) -> list[Job]:
        """Returns the running jobs that hold their nodes."""
        if per_event:
            return [job for job in self.running if job.estimated_end > now]
        return list(self.running)


def heads(machine: PlainNodes, now: float, per_event: bool) -> None:
    """Starts the head of the queue as long as it fits."""
    while machine.waiting:
        place = machine.fit(machine.holding(now, per_event), machine.waiting[0].request)
        if place is None:
            return
        machine.start(machine.waiting[0], now, place)


def everybody(machine: PlainNodes, now: float, per_event: bool) -> None:
    """Goes through the queue once and starts whatever fits at its turn."""
    for job in list(machine.waiting):
        place = machine.fit(machine.holding(now, per_event), job.request)
        if place is not None:
            machine.start(job, now, place)


def easy(machine: PlainNodes, now: float, per_event: bool) -> None:
    """Starts heads, then others after which the blocked head still fits at its shadow time."""
    heads(machine, now, per_event)
    if not machine.waiting:
        return
    head, *others = machine.waiting
    holding = machine.holding(now, per_event)

    def fits_then(moment: float, guests: Sequence[Job]) -> bool:
        left = [job for job in [*holding, *guests] if job.estimated_end > moment]
        return machine.fit(left, head.request) is not None

    ends = sorted(job.estimated_end for job in holding)
    shadow_time = next(t for t in ends if fits_then(t, []))
    started: list[Job] = []
    for job in others:
        place = machine.fit([*holding, *started], job.request)
        if place is None:
            continue
        guest = replace(job, start_time=now, place=place)
        if guest.estimated_end <= shadow_time or fits_then(shadow_time, [*started, guest]):
            machine.start(job, now, place)
            if not (per_event and job.estimated_end <= now):
                started.append(job)


def planned(machine: PlainNodes) -> list[Job]:
    """Returns what is in the plan, each with its start and its place: who runs, and reservations."""
    plan = list(machine.running)
    for job in machine.waiting:
        if job.row in machine.reserved:
            start, place = machine.reserved[job.row]
            plan.append(replace(job, start_time=start, place=place))
    return plan


def earliest_fit(
    machine: PlainNodes, job: Job, now: float, before: float
) -> tuple[float, dict[int, int]] | None:
    """Returns when a job fits first, before another moment, on the same nodes to its end; and where."""
    plan = planned(machine)
    for start in sorted({now, *(other.estimated_end for other in plan)}):
        if not now <= start < before:
            continue
        end = start + job.requested_time
        moments = [start, *(o.start_time for o in plan if start < o.start_time < end)]
        least = [node.copy() for node in machine.whole]
        fewest = dict(machine.machine.licences)
        for moment in moments:
            there = [o for o in plan if o.start_time <= moment < o.estimated_end]
            left = machine.left(there)
            for name, count in machine.licences_left(there).items():
                fewest[name] = min(fewest[name], count)
            for node, other in zip(least, left, strict=True):
                node.cores = min(node.cores, other.cores)
                node.memory = min(node.memory, other.memory)
                node.gpus = min(node.gpus, other.gpus)
                node.jobs = max(node.jobs, other.jobs)
        place = machine.place(least, fewest, job.request)
        if place is not None:
            return start, place
    return None


def conservative(machine: PlainNodes, now: float, per_event: bool) -> None:
    """Improves old reservations if a job ended early, reserves for new jobs, starts what is due."""
    assert not per_event
    if machine.ended_early:
        machine.ended_early = False
        for job in machine.waiting:
            if job.row in machine.reserved:
                before = machine.reserved.pop(job.row)
                machine.reserved[job.row] = earliest_fit(machine, job, now, before[0]) or before
    for job in machine.waiting:
        if job.row not in machine.reserved:
            found = earliest_fit(machine, job, now, math.inf)
            assert found is not None
            machine.reserved[job.row] = found
    for job in list(machine.waiting):
        start, place = machine.reserved[job.row]
        if start <= now:
            machine.start(job, now, place)
            del machine.reserved[job.row]


def guessed_end(machine: PlainNodes, job: Job) -> float:
    """Returns when a running job ends, as far as is known."""
    return job.start_time + machine.guesses[job.row][-1]


def correct(machine: PlainNodes, job: Job, now: float) -> None:
    """Gives a job that has outlived its prediction further ones until one is still to come."""
    guesses = machine.guesses[job.row]
    while guessed_end(machine, job) <= now and guesses[-1] < job.estimate:
        done = len(guesses) - 1
        later = guesses[0] + CORRECTIONS[done] if done < len(CORRECTIONS) else math.inf
        guesses.append(min(later, job.estimate))


def is_over(machine: PlainNodes, job: Job, now: float) -> bool:
    """Returns whether a job ends now and was predicted to."""
    return job.end_time <= now and guessed_end(machine, job) <= now


def still_there(machine: PlainNodes, now: float, moment: float) -> list[Job]:
    """Returns who will run at a moment by what is known now."""
    return [
        job
        for job in machine.running
        if not is_over(machine, job, now) and guessed_end(machine, job) > moment
    ]


def where_now(machine: PlainNodes, job: Job, now: float) -> dict[int, int] | None:
    """Returns where a job would go now; None where it does not fit."""
    holding = [other for other in machine.running if not is_over(machine, other, now)]
    return machine.fit(holding, job.request)


def predicted_heads(machine: PlainNodes, now: float) -> None:
    """Starts the head of the queue as long as it fits."""
    while machine.waiting:
        head = machine.waiting[0]
        place = where_now(machine, head, now)
        if place is None:
            return
        machine.start(head, now, place)
        correct(machine, head, now)


def easy_plus_plus(machine: PlainNodes, now: float, per_event: bool) -> None:
    """Starts heads, then those with the shortest predictions after which the head still fits."""
    assert per_event
    predicted_heads(machine, now)
    if not machine.waiting:
        return
    head, *others = machine.waiting

    def fits_then(moment: float, guests: Sequence[Job]) -> bool:
        there = [*still_there(machine, now, moment), *guests]
        return machine.fit(there, head.request) is not None

    ends = sorted(guessed_end(machine, job) for job in machine.running)
    shadow_time = next(t for t in ends if t >= now and fits_then(t, []))
    for job in sorted(others, key=lambda job: (machine.guesses[job.row][0], job.row)):
        place = where_now(machine, job, now)
        if place is None:
            continue
        late = now + machine.guesses[job.row][0] > shadow_time
        if not late or fits_then(shadow_time, [replace(job, place=place)]):
            machine.start(job, now, place)
            correct(machine, job, now)


PER_EVENT = {"easy-per-event", "easy-sjbf-per-event", "easy-plus-plus"}

PASSES = {
    "easy-sjbf-per-event": easy_plus_plus,
    "easy-plus-plus": easy_plus_plus,
    "fcfs": heads,
    "list": everybody,
    "easy": easy,
    "easy-per-event": easy,
    "conservative": conservative,
}


def outlive(machine: PlainNodes, now: float) -> None:
    """Has those run for longer whose estimate is over and who have not ended; all promises are off then."""
    for job in machine.running:
        if job.estimated_end <= now < job.end_time:
            job.outlived = longer(job.requested_time, job.start_time, now)
            machine.reserved.clear()


def events(jobs: Sequence[Job], machine: PlainNodes, discipline: str) -> Iterator[float]:
    """Yields the moments at which a pass is made, after their events."""
    arrivals = list(jobs)
    per_event = discipline in PER_EVENT
    guesses = "sjbf" in discipline or "plus" in discipline
    while arrivals or machine.running or machine.waiting:
        now = min(
            [min(job.end_time, job.estimated_end) for job in machine.running]
            + [arrival.submit_time for arrival in arrivals[:1]]
            + [start for start, _ in machine.reserved.values()]
            + [guessed_end(machine, job) for job in machine.running if guesses]
        )
        outlive(machine, now)
        if guesses:
            for job in machine.running:
                if not is_over(machine, job, now):
                    correct(machine, job, now)
        if not per_event:
            ended = [job for job in machine.running if job.end_time <= now]
            machine.ended_early |= any(job.estimated_end > now for job in ended)
            machine.running = [job for job in machine.running if job not in ended]
            while arrivals and arrivals[0].submit_time == now:
                machine.waiting.append(arrivals.pop(0))
        elif arrivals and arrivals[0].submit_time == now:
            job = arrivals.pop(0)
            machine.waiting.append(job)
            past = machine.past.get(job.user, []) if discipline == "easy-plus-plus" else []
            mean = math.inf
            if job.user >= 0 and len(past) >= 2:
                mean = max(1.0, math.floor((past[-1] + past[-2]) / 2))
            machine.guesses[job.row] = [min(job.requested_time, mean)]
        else:
            job = min(machine.running, key=lambda job: job.end_time)
            if job.end_time > now:
                continue  # nothing but a prediction is over
            machine.running.remove(job)
            machine.past.setdefault(job.user, []).append(job.end_time - job.start_time)
        yield now


def simulate_plainly(
    table: JobTable, requests: Sequence[Request], machine: NodeMachine, discipline: str
) -> list[Job]:
    """Returns the jobs of a workload with their starts and places, in order of arrival."""
    rows: Iterable[tuple[float, float, float, int]] = zip(
        table.submit_time.tolist(),
        table.requested_time.tolist(),
        table.run_time.tolist(),
        table.user.tolist(),
        strict=True,
    )
    jobs = [
        Job(row, *values, request)
        for row, (values, request) in enumerate(zip(rows, requests, strict=True))
    ]
    plain = PlainNodes(machine)
    for now in events(jobs, plain, discipline):
        PASSES[discipline](plain, now, discipline in PER_EVENT)
    return jobs
