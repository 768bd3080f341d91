"""Whether a job would start on nodes: group by group of nodes, and with every other job placed anew for each question."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from grms.lrms.node_groups import NodeGroup
from grms.lrms.nodes import BEFORE_MAX, MARGIN_S, Licence, NodeTable
from grms.lrms.partitions import Partition, states_of
from lrms_sim.workload.requests import Gpus, Memory, Request, counted, size_text


@dataclass(frozen=True, slots=True)
class PlainNeed:
    """What a job takes of a node in one partition.

    Attributes:
        whole: it takes all of each node.
        all_memory: it takes all memory of each node.
        gpu_cores: at least so many for each of its GPUs.
    """

    request: Request
    memory: Memory | None
    gpus: Gpus | None
    whole: bool
    all_memory: bool
    nodes_min: int
    nodes_max: int
    cores_max: int | None
    memory_max: int | None
    core_memory_max: int | None
    gpu_cores: int

    @classmethod
    def of(cls, request: Request, partition: Partition) -> "PlainNeed":
        """Returns what a job takes in a partition."""
        memory = request.memory or (None if request.exclusive else partition.default_memory)
        if request.memory is None and request.gpus is not None and partition.default_gpu_memory:
            memory = Memory(partition.default_gpu_memory, "gpu")
        most = request.tasks
        if request.on_one_node:
            most = 1
        elif request.nodes_max is not None:
            most = min(most, request.nodes_max)
        if partition.nodes_max is not None and partition.nodes_max < most:
            # A batch system does not take a lower number for one that it was given.
            given = request.nodes_max is not None or request.nodes_min > 1
            most = 0 if given else partition.nodes_max
        return cls(
            request,
            memory,
            request.node_gpus(),
            request.exclusive or partition.whole_nodes,
            memory is None and (request.exclusive or partition.all_memory),
            max(request.nodes_min, partition.nodes_min),
            most,
            partition.cores_max,
            partition.memory_max,
            partition.core_memory_max,
            partition.default_gpu_cores if request.cores_per_task == 1 else 0,
        )

    def held(self, tasks: int, node: NodeGroup) -> tuple[int, int, int]:
        """Returns cores, memory (MiB) and GPUs that so many tasks hold on a node."""
        gpus = 0 if self.gpus is None else self.gpus.count
        if self.gpus is not None and self.gpus.per == "task":
            gpus *= tasks
        each = -(-self.request.cores_per_task // node.task_step) * node.task_step
        cores = -(-max(tasks * each, gpus * self.gpu_cores) // node.step) * node.step
        if self.whole:
            cores = max(cores, node.cores)
        if self.memory is None:
            return cores, node.memory if self.all_memory else 0, gpus
        times = {"node": 1, "core": cores, "gpu": gpus}[self.memory.per]
        return cores, self.memory.mib * times, gpus

    def most(self, node: NodeGroup) -> int:
        """Returns how many tasks a node has room for, as it is."""
        request = self.request
        if request.cores_per_task > node.free_cores or (self.whole and not node.idle):
            return 0
        if not node.features.issuperset(request.features):
            return 0
        cores, memory, _ = self.held(1, node)
        if self.core_memory_max is not None and memory > self.core_memory_max * cores:
            return 0  # the batch system would give it more cores for it
        whole = request.tasks - (self.nodes_min - 1)
        each = request.tasks_per_node
        if each is not None and each < request.tasks:
            # Batch systems give every node room for as many, whether or not there are so many tasks.
            return min(each, whole) if self._fits(node, each) else 0
        if whole < 1 or not self._fits(node, 1):
            return 0
        room = min(whole, node.free_cores // request.cores_per_task)
        of_task = 0 if self.gpus is None or self.gpus.per == "node" else self.gpus.count
        if of_task:
            room = min(room, self._gpus_of(node) // of_task)
        if self.memory is not None and node.memory and not self.whole:
            times = {"node": 0, "core": request.cores_per_task, "gpu": of_task}[self.memory.per]
            room = min(room, node.free_memory // (self.memory.mib * times)) if times else room
        while not self._fits(node, room):
            room -= 1  # what is given out in multiples; one task fits
        return room

    def _fits(self, node: NodeGroup, tasks: int) -> bool:
        cores, memory, gpus = self.held(tasks, node)
        if cores > node.free_cores:
            return False
        if self.cores_max is not None and tasks * self.request.cores_per_task > self.cores_max:
            return False
        if self.memory_max is not None and memory > self.memory_max:
            return False
        return (not node.memory or memory <= node.free_memory) and gpus <= self._gpus_of(node)

    def _gpus_of(self, node: NodeGroup) -> int:
        kind = "" if self.gpus is None else self.gpus.type
        return sum(count for name, count in node.free_gpus if kind in {"", name})

    def dealt(self, groups: Sequence[NodeGroup]) -> list[tuple[NodeGroup, int, int]] | None:
        """Returns where the tasks would go: nodes of a group, and tasks on each; `None` if they do not fit.

        Groups are taken in their order, unless the job then has too many nodes.
        """
        rooms: list[tuple[NodeGroup, int]] = []
        in_order = self._deal(self._rooms(groups, rooms))
        if in_order is None and len(rooms) > 1:
            return self._deal(sorted(rooms, key=lambda pair: -pair[1]))
        return in_order

    def _rooms(
        self, groups: Iterable[NodeGroup], kept: list[tuple[NodeGroup, int]]
    ) -> Iterator[tuple[NodeGroup, int]]:
        # Groups with room, as far as they are asked for.
        for group in groups:
            if room := self.most(group):
                kept.append((group, room))
                yield kept[-1]

    def _deal(
        self, rooms: Iterable[tuple[NodeGroup, int]]
    ) -> list[tuple[NodeGroup, int, int]] | None:
        left, nodes = self.request.tasks, 0
        found: list[tuple[NodeGroup, int, int]] = []
        for group, room in rooms:
            if left == 0:
                break
            for _ in group.names:
                if left == 0 or nodes == self.nodes_max:
                    break
                others = max(0, self.nodes_min - nodes - 1)
                tasks = min(room, max(left - others, 1))
                found.append((group, 1, tasks))
                left, nodes = left - tasks, nodes + 1
        return found if left == 0 and nodes >= self.nodes_min else None


@dataclass(frozen=True, slots=True)
class PlainNodes:
    """Answers about the nodes of a table."""

    table: NodeTable

    def never(self, request: Request) -> str:
        """Returns why nothing here ever runs such a job; empty if something does."""
        return self._nowhere(request, self.table.chosen(request))

    def lacks(self, request: Request) -> str:
        """Returns why no node here could run such a job, whatever limits partitions have; empty if some could.

        Limits change, and may not be a user's own (QOS); a batch system lets jobs wait for them, or gives a job more
        cores for its memory. So they keep no job of the site's own users from it.
        """
        parts = self.table.chosen(request)
        return self._nowhere(request, [Partition(part.name, part.state) for part in parts])

    def _nowhere(self, request: Request, parts: Sequence[Partition]) -> str:
        for name, count in request.licences:
            total = self.table.licences.get(name, Licence(0, 0)).total
            if total < count:
                return f"there are {counted(total, 'licence')} of {name}; it asks for {count}"
        if not parts:
            return f"there is no partition {request.partition or ','.join(self.table.usual)}"
        reasons = [self._never_in(part, request) for part in parts]
        return "; ".join(reasons) if all(reasons) else ""

    def why_not(self, request: Request) -> str:
        """Returns why such a job, submitted now, would not start even with room; empty if it would."""
        return self._blocked(request, new=True)

    def stays(self, request: Request) -> str:
        """Returns why such a job, already waiting, does not start even with room; empty if it does."""
        return self._blocked(request, new=False)

    def starts_now(self, request: Request, now: float, before: Sequence[Request] = ()) -> bool:
        """Returns whether such a job would start at once, behind all others and those of `before`."""
        groups: Sequence[NodeGroup] = self.table.groups
        before = (*self.table.before, *before)
        if len(before) > BEFORE_MAX:
            return False  # each is placed anew at every question
        for other in before:
            found = self.placed(other, groups, now)
            if found is None:
                return False  # it waits, and nobody knows where it is to run
            groups = with_job(groups, *found)
        if any(self._free_licences(name, before) < count for name, count in request.licences):
            return False
        return self.placed(request, groups, now) is not None

    # --- how ---------------------------------------------------------------------------------------

    def _free_licences(self, name: str, before: Sequence[Request]) -> int:
        taken = sum(count for other in before for word, count in other.licences if word == name)
        return self.table.licences.get(name, Licence(0, 0)).free - taken

    def _nodes(self, part: Partition, *, working: bool) -> list[NodeGroup]:
        # As they are when nobody uses them.
        there = (group for group in self.table.groups if part.name in group.partitions)
        return [each.as_empty() for each in there if not (working and each.away)]

    def _never_in(self, part: Partition, request: Request) -> str:
        why = part.refuses(request)
        if why:
            return why
        need = PlainNeed.of(request, part)
        empty = self._nodes(part, working=False)
        return "" if need.dealt(empty) is not None else _lacking(need, part, empty)

    def _blocked(self, request: Request, *, new: bool) -> str:
        why = self.never(request)
        if why:
            return why
        reasons = []
        for part in self.table.chosen(request):
            if self._never_in(part, request):
                continue
            need = PlainNeed.of(request, part)
            if (new and not part.takes) or not part.starts:
                reasons.append(states_of([part]))
            elif need.dealt(self._nodes(part, working=True)) is None:
                there = [each for each in self.table.groups if part.name in each.partitions]
                states = sorted({group.away for group in there if group.away})
                reasons.append(f"nodes of {part.name} that it needs are {', '.join(states)}")
            else:
                return ""
        return "; ".join(reasons)

    def placed(
        self, request: Request, groups: Sequence[NodeGroup], now: float
    ) -> tuple[PlainNeed, list[tuple[NodeGroup, int, int]]] | None:
        """Returns what a job takes, and where; `None` if it does not start."""
        until = now + (request.wall_time or 0.0) + MARGIN_S
        taken = frozenset[str]().union(
            *(each.nodes for each in self.table.promised if each.begin < until and each.end > now)
        )
        for part in self.table.chosen(request):
            if not (part.takes and part.starts) or part.name in self.table.unplanned:
                continue
            if part.refuses(request):
                continue
            there = in_order(group for group in groups if part.name in group.partitions)
            need = PlainNeed.of(request, part)
            place = need.dealt([group for each in there for group in _without(each, taken)])
            if place is not None:
                return need, place
        return None


def in_order(groups: Iterable[NodeGroup]) -> list[NodeGroup]:
    """Returns those that work, in the order in which they are taken."""
    return sorted(
        (group for group in groups if not group.away),
        key=lambda group: (group.weight, group.free_cores),
    )


def _without(group: NodeGroup, taken: frozenset[str]) -> Iterator[NodeGroup]:
    # A group but for nodes that are taken.
    if taken.isdisjoint(group.names):
        yield group
    elif names := tuple(name for name in group.names if name not in taken):
        yield replace(group, names=names)


def with_job(
    groups: Sequence[NodeGroup], need: PlainNeed, place: Iterable[tuple[NodeGroup, int, int]]
) -> Sequence[NodeGroup]:
    """Returns the groups with one job's tasks on nodes of theirs."""
    used: dict[str, NodeGroup] = {}
    given: dict[tuple[str, ...], int] = {}
    for group, _, tasks in place:
        at = given.get(group.names, 0)
        given[group.names] = at + 1
        used[group.names[at]] = _less(group, need, tasks)
    gone = frozenset(used)
    rest = [left for group in groups for left in _without(group, gone)]
    return [*rest, *(replace(group, names=(name,)) for name, group in used.items())]


def _less(group: NodeGroup, need: PlainNeed, tasks: int) -> NodeGroup:
    cores, memory, gpus = need.held(tasks, group)
    kind = "" if need.gpus is None or need.whole else need.gpus.type
    if need.whole:
        gpus = sum(count for _, count in group.free_gpus)
    left = []
    for name, count in group.free_gpus:
        here = min(count, gpus) if kind in {"", name} else 0
        gpus -= here
        left.append((name, count - here))
    return replace(
        group,
        free_cores=group.free_cores - cores,
        free_memory=0 if need.whole else max(0, group.free_memory - memory),
        free_gpus=tuple(left),
        idle=False,
    )


# --- what is missing -----------------------------------------------------------------------------


def _lacking(need: PlainNeed, part: Partition, empty: Sequence[NodeGroup]) -> str:
    # Why a job does not go on the nodes of a partition although all of them are idle: what is missing first.
    if not empty:
        return f"{part.name} has no nodes"
    features = need.request.features
    for name in features:
        if not any(name in group.features for group in empty):
            return f"no node of {part.name} has the feature {name}"
    there = [group for group in empty if set(features) <= group.features]
    if not there:
        return f"no node of {part.name} has all of {', '.join(features)}"
    checks = (_few_gpus, _few_cores, _little_memory, _little_room)
    return next(why for check in checks if (why := check(need, part, there)))


def _few_gpus(need: PlainNeed, part: Partition, there: Sequence[NodeGroup]) -> str:
    if need.gpus is None:
        return ""
    kind, asked = need.gpus.type, need.gpus.count
    most = max(sum(n for name, n in group.gpus if kind in {"", name}) for group in there)
    what = f"{kind} GPU" if kind else "GPU"
    if most == 0:
        return f"no node of {part.name} has {what}s"
    return f"no node of {part.name} has more than {counted(most, what)}" if most < asked else ""


def _few_cores(need: PlainNeed, part: Partition, there: Sequence[NodeGroup]) -> str:
    most = max(group.cores for group in there)
    most = most if need.cores_max is None else min(most, need.cores_max)
    if most >= need.request.cores_per_task:
        return ""
    return f"no node of {part.name} gives a task more than {counted(most, 'core')}"


def _little_memory(need: PlainNeed, part: Partition, there: Sequence[NodeGroup]) -> str:
    # Of the job's least share of a node.
    sizes = [group.memory for group in there]
    most = max(sizes) if all(sizes) else need.memory_max
    if most is None:
        return ""
    most = most if need.memory_max is None else min(most, need.memory_max)
    if any(need.held(1, group)[1] <= most for group in there):
        return ""
    return f"no node of {part.name} gives a job more than {size_text(most)}"


def _little_room(need: PlainNeed, part: Partition, there: Sequence[NodeGroup]) -> str:
    rooms = [room for group in there for room in [need.most(group)] * len(group.names) if room]
    if need.nodes_max < need.nodes_min:
        return (
            f"a job in {part.name} has at most {counted(part.nodes_max or need.nodes_max, 'node')}"
        )
    if len(rooms) < need.nodes_min:
        return f"{part.name} has {counted(len(rooms), 'node')} that will do"
    room = sum(sorted(rooms, reverse=True)[: need.nodes_max])
    return f"{part.name} has room for {room} of {counted(need.request.tasks, 'task')}"
