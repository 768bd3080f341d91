"""How many tasks of a job each node has room for, and where they go: all nodes at once. Pure.

A machine may have ten thousand nodes, and hundreds of jobs may be asked about between two polls, in a daemon that must answer
others meanwhile. So nodes are rows of arrays, and alike ones are counted. Amounts are whole numbers; memory is in MiB.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from grms.lrms.node_groups import NodeGroup, NodeNeed, Promised

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rooms = tuple[Ints, Ints]
"""Rows, and for how many tasks each node of such a row has room: at least one."""

_MANY: Final = 2**62
"""More than there is of anything; amounts that are greater count as so much."""

_PLACE_BITS: Final = 32
"""Bits of a node's place that tell its free cores."""


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Nodes as rows: one row for each node, or for several that are alike.

    Attributes:
        count: how many nodes a row stands for.
        profile: number of its partitions and features.
        cores, memory, gpus: what there is; GPUs by type, a row of this array for each type.
        step, task_step: as in `NodeGroup`.
        rank: by the weight of a node, as its place has it.
        free_cores, free_memory, free_gpus, idle: what no job holds.
    """

    count: Ints
    profile: Ints
    cores: Ints
    memory: Ints
    gpus: Ints
    step: Ints
    task_step: Ints
    rank: Ints
    free_cores: Ints
    free_memory: Ints
    free_gpus: Ints
    idle: Flags

    @classmethod
    def of(
        cls, groups: Sequence[NodeGroup], profiles: Sequence[int], types: Sequence[str]
    ) -> "NodeRows":
        """Returns a row for each group; `profiles` are the groups' numbers, `types` those of GPUs."""
        columns = np.array(
            [
                (
                    *(len(group.names), profile, group.cores, group.memory),
                    *(group.step, group.task_step, group.weight),
                    *(group.free_cores, group.free_memory, group.idle),
                )
                for group, profile in zip(groups, profiles, strict=True)
            ],
            np.int64,
        ).reshape(-1, 10)
        count, profile, cores, memory, step, task_step, weight = columns[:, :7].T.copy()
        free_cores, free_memory, idle = columns[:, 7:].T.copy()
        _, ranks = np.unique(weight, return_inverse=True)
        return cls(
            *(count, profile, cores, memory, _gpu_columns((each.gpus for each in groups), types)),
            *(step, task_step, ranks.astype(np.int64) << _PLACE_BITS, free_cores, free_memory),
            _gpu_columns((each.free_gpus for each in groups), types),
            idle.astype(np.bool_),
        )

    def one_by_one(self) -> "NodeRows":
        """Returns a row for each node."""
        alone = {
            name: np.repeat(getattr(self, name), self.count, axis=-1)
            for name in self.__slots__
            if name != "count"
        }
        return NodeRows(np.ones(len(alone["cores"]), np.int64), **alone)

    @property
    def places(self) -> Ints:
        """Places in the order in which nodes are taken: by weight, and then those with the fewest free cores."""
        return self.rank | self.free_cores

    def copied(self) -> "NodeRows":
        """Returns rows of which what is free can be changed."""
        return replace(
            self,
            free_cores=self.free_cores.copy(),
            free_memory=self.free_memory.copy(),
            free_gpus=self.free_gpus.copy(),
            idle=self.idle.copy(),
        )

    def free_of(self, types: Flags, at: Ints) -> Ints:
        """Returns how many GPUs of some types are free in rows."""
        found: Ints = self.free_gpus[types][:, at].sum(axis=0)
        return found

    # --- one job's tasks -------------------------------------------------------------------------

    def rooms(self, need: NodeNeed, types: Flags, at: Ints) -> Rooms:
        """Returns which of some rows have room for tasks of a job, in their order; `types` are its GPUs'."""
        request = need.request
        fits = self.free_cores[at] >= request.cores_per_task
        if need.whole:
            fits &= self.idle[at] & (self.cores[at] <= self.free_cores[at])
        at = at[fits]
        memory = np.where(self.memory[at] == 0, _MANY, self.free_memory[at])
        if need.memory_max is not None:
            memory = np.minimum(memory, need.memory_max)
        most = np.minimum(self._by_cores(need, at, memory), self._by_memory(need, at, memory))
        if need.gpus is not None:
            free = self.free_of(types, at)
            most = np.minimum(most, _shared(free, need.gpus.count, each=bool(need.gpus_of_task)))
        if need.core_memory_max is not None:
            # The batch system would give it more cores for its memory.
            least = -(-self.held_memory(need, 1, at) // need.core_memory_max)
            most = np.where(self._held_cores(need, 1, at) >= least, most, 0)
        whole, pack = request.tasks - (need.nodes_min - 1), request.tasks_per_node
        if pack is not None and pack < request.tasks:
            # Batch systems give every node room for as many, whether or not there are so many tasks.
            most = np.where(most >= pack, pack, 0)
        most = np.minimum(most, whole)
        there = most >= 1
        return at[there], most[there]

    def _by_cores(self, need: NodeNeed, at: Ints, memory: Ints) -> Ints:
        # For how many tasks the cores do, and the memory of each.
        cores = self.free_cores[at]
        if need.memory is not None and need.memory.per == "core":
            cores = np.minimum(cores, memory // need.memory.mib)
        cores = cores // self.step[at] * self.step[at]
        most: Ints = cores.copy()
        if need.whole:
            most = np.where(self.cores[at] <= cores, most, 0)
        most //= self._of_tasks(1, need.request.cores_per_task, at)
        if need.cores_max is not None:
            most = np.minimum(most, need.cores_max // need.request.cores_per_task)
        if need.gpus is None or not need.gpu_cores:
            return most
        of_gpus = min(need.gpus.count * need.gpu_cores, _MANY)
        return np.minimum(most, _shared(cores, of_gpus, each=bool(need.gpus_of_task)))

    def _by_memory(self, need: NodeNeed, at: Ints, memory: Ints) -> Ints:
        # For how many tasks the memory does that is not for each core.
        if need.memory is None:
            return np.where(self.held_memory(need, 1, at) <= memory, _MANY, 0)
        if need.memory.per == "core":
            return np.full(len(at), _MANY)
        gpus = 1 if need.memory.per == "node" or need.gpus is None else need.gpus.count
        each = need.memory.per == "gpu" and bool(need.gpus_of_task)
        return _shared(memory, min(need.memory.mib * gpus, _MANY), each=each)

    def _of_tasks(self, tasks: int | Ints, cores: int, at: Ints) -> Ints:
        steps = self.task_step[at]
        found: Ints = -(-cores // steps) * steps * tasks
        return found

    def _held_cores(self, need: NodeNeed, tasks: int | Ints, at: Ints) -> Ints:
        asked = self._of_tasks(tasks, need.request.cores_per_task, at)
        asked = np.maximum(asked, _times(need.gpus_of(tasks), need.gpu_cores))
        held: Ints = -(-asked // self.step[at]) * self.step[at]
        return np.maximum(held, self.cores[at]) if need.whole else held

    def held_memory(self, need: NodeNeed, tasks: int | Ints, at: Ints) -> Ints:
        """Returns how much memory tasks hold on nodes, MiB."""
        return self._memory(need, tasks, at) + np.zeros(len(at), np.int64)

    def _memory(self, need: NodeNeed, tasks: int | Ints, at: Ints) -> int | Ints:
        if need.memory is None:
            return self.memory[at] if need.all_memory else 0
        if need.memory.per == "node":
            return need.memory.mib
        cores = need.memory.per == "core"
        each = self._held_cores(need, tasks, at) if cores else need.gpus_of(tasks)
        return _times(each, need.memory.mib)

    def take(self, need: NodeNeed, types: Flags, at: Ints, tasks: Ints) -> None:
        """Has a job hold what its tasks take of nodes: `tasks` on each of the rows `at`."""
        cores, memory = self._held_cores(need, tasks, at), self.held_memory(need, tasks, at)
        gpus = need.gpus_of(tasks)
        self.free_cores[at] -= cores
        self.free_memory[at] = 0 if need.whole else np.maximum(0, self.free_memory[at] - memory)
        for number in np.flatnonzero(types | need.whole):
            there = self.free_gpus[number, at]
            here = there if need.whole else np.minimum(there, gpus)
            self.free_gpus[number, at] = there - here
            gpus = gpus - here
        self.idle[at] = False


def _shared(there: Ints, amount: int, *, each: bool) -> Ints:
    # For how many tasks there is enough of something of which each task, or all together hold an amount.
    return there // amount if each else np.where(there >= amount, _MANY, 0)


def _times(many: int | Ints, each: int) -> int | Ints:
    # What may be more than there can be: where nobody counts it.
    if isinstance(many, int):
        return min(many * each, _MANY)
    wide = many * float(each)
    return np.where(wide < _MANY, many * np.int64(each), _MANY)


def _gpu_columns(each: Iterable[tuple[tuple[str, int], ...]], types: Sequence[str]) -> Ints:
    number = {name: at for at, name in enumerate(types)}
    listed = list(each)
    found = np.zeros((len(types), len(listed)), np.int64)
    for at, gpus in enumerate(listed):
        for name, count in gpus:
            found[number[name], at] = count
    return found


def has_room(need: NodeNeed, rooms: Ints, count: Ints | None = None) -> bool:
    """Returns whether the tasks of a job go on nodes with such rooms, of each of which there are so many, or one.

    Nodes with the most room take as many as they can. Should one of them have to leave tasks to others, as the job has a least
    number of nodes, these have room for them: every node has room for one.
    """
    nodes = len(rooms) if count is None else int(count.sum())
    if not need.nodes_min <= min(nodes, need.nodes_max, need.request.tasks):
        return False
    return most_tasks(need, rooms, count) >= need.request.tasks


def most_tasks(need: NodeNeed, rooms: Ints, count: Ints | None = None) -> int:
    """Returns how many tasks go on as many nodes as a job may have; `rooms` and `count` are as in `has_room`."""
    most = need.nodes_max
    if count is None:
        return int((np.sort(rooms)[-most:] if most < len(rooms) else rooms).sum()) if most else 0
    if int(count.sum()) > most:
        order = np.argsort(-rooms, kind="stable")
        rooms, count = rooms[order], count[order]
        count = np.clip(most - (np.cumsum(count) - count), 0, count)
    return int((rooms * count).sum())


def dealt(need: NodeNeed, rooms: Rooms) -> Rooms | None:
    """Returns where the tasks of a job go, of rows for one node each, in their order; `None` if they do not fit.

    Rows are taken in their order, unless the job then has too many nodes; then those with the most room are first.
    """
    at, most = rooms
    if not has_room(need, most):
        return None
    tasks, least = need.request.tasks, need.nodes_min
    if int(most[: need.nodes_max].sum()) < tasks:
        order = np.argsort(-most, kind="stable")
        at, most = at[order], most[order]
    at, most = at[: need.nodes_max], most[: need.nodes_max]
    # Nodes are filled as long as enough tasks are left for the least number of nodes, one for each.
    left = tasks - np.cumsum(most)
    full = int(np.count_nonzero(left >= np.maximum(0, least - 1 - np.arange(len(most)))))
    given = most[:full]
    rest = tasks - int(given.sum())
    if rest:
        others = max(0, least - full - 1)
        given = np.concatenate([given, [rest - others], np.ones(others, np.int64)])
    return at[: len(given)], given


@dataclass(frozen=True, slots=True)
class NodeIndex:
    """The nodes of groups as rows, by what jobs may ask of them.

    Attributes:
        groups: of which it is.
        profiles: the partitions and features of each profile.
        types: of GPUs, in order.
        kinds: all nodes as they are when nobody uses them, alike ones together.
        working: how many of each kind work.
        nodes: those that work, one by one, in order of their groups.
        names: of these.
        order: rows of these in the order in which they are taken.
    """

    groups: tuple[NodeGroup, ...]
    profiles: tuple[tuple[frozenset[str], frozenset[str]], ...]
    types: tuple[str, ...]
    kinds: NodeRows
    working: Ints
    nodes: NodeRows
    names: tuple[str, ...]
    order: Ints

    @classmethod
    def of(cls, groups: tuple[NodeGroup, ...]) -> "NodeIndex":
        """Returns the index of groups."""
        types = tuple(sorted({name for group in groups for name, _ in group.gpus}))
        numbers: dict[tuple[frozenset[str], frozenset[str]], int] = {}
        found: dict[tuple[object, ...], tuple[NodeGroup, int, list[int]]] = {}
        working: list[NodeGroup] = []
        profiles = []
        for group in groups:
            profile = numbers.setdefault((group.partitions, group.features), len(numbers))
            key = (profile, group.cores, group.memory, group.gpus, group.step, group.task_step)
            _, _, count = found.setdefault(key, (group, profile, [0, 0]))
            count[0] += len(group.names)
            if not group.away:
                count[1] += len(group.names)
                working.append(group)
                profiles.append(profile)
        empty = [group.as_empty() for group, _, _ in found.values()]
        kinds = NodeRows.of(empty, [profile for _, profile, _ in found.values()], types)
        counts = np.array([each for _, _, each in found.values()], np.int64).reshape(-1, 2)
        nodes = NodeRows.of(working, profiles, types).one_by_one()
        return cls(
            groups,
            tuple(numbers),
            types,
            replace(kinds, count=counts[:, 0].copy()),
            counts[:, 1].copy(),
            nodes,
            tuple(name for group in working for name in group.names),
            np.argsort(nodes.places, kind="stable"),
        )

    def wanted_types(self, need: NodeNeed) -> Flags:
        """Returns which types of GPUs do for a job."""
        kind = need.gpu_type
        return np.array([not kind or name == kind for name in self.types], np.bool_)

    def fitting(self, partition: str, features: Iterable[str] = ()) -> Flags:
        """Returns which profiles are in a partition and have all of some features."""
        wanted = frozenset(features)
        return np.array(
            [partition in parts and wanted <= has for parts, has in self.profiles], np.bool_
        )

    def never_room(self, need: NodeNeed, partition: str, *, working: bool) -> bool:
        """Returns whether a job has no room in a partition while nobody uses it: on all nodes, or those that work."""
        at, rooms, count = self.empty_rooms(need, partition)
        count = self.working[at] if working else count
        there = count > 0
        return not has_room(need, rooms[there], count[there])

    def empty_rooms(self, need: NodeNeed, partition: str) -> tuple[Ints, Ints, Ints]:
        """Returns kinds of nodes in a partition that a job has room on while nobody uses them, rooms, and how many nodes."""
        there = self.fitting(partition, need.request.features)
        at = np.flatnonzero(there[self.kinds.profile])
        at, rooms = self.kinds.rooms(need, self.wanted_types(need), at)
        return at, rooms, self.kinds.count[at]


class FreeNodes:
    """What is free on the nodes that work, once some jobs have started there.

    Attributes:
        index: with what is free without them.
        rows: a row for each node.
        order: rows in the order in which nodes are taken.
    """

    def __init__(self, index: NodeIndex) -> None:
        self.index = index
        self.rows = index.nodes
        self.order = index.order
        self._places: Ints | None = None  # of the rows, once one of them has changed

    def room(self, need: NodeNeed, partition: str, kept: Flags | None) -> Rooms:
        """Returns the nodes of a partition with room for a job; `kept` are nodes that others are not to have."""
        index, rows = self.index, self.rows
        there = index.fitting(partition, need.request.features)[rows.profile]
        there &= rows.free_cores >= need.request.cores_per_task
        if kept is not None:
            there &= kept
        return rows.rooms(need, index.wanted_types(need), np.flatnonzero(there))

    def start(self, need: NodeNeed, rooms: Rooms) -> None:
        """Starts a job on nodes of which it has room on enough."""
        at, most = rooms
        if self._places is None:
            self.rows, self._places = self.rows.copied(), self.rows.places
        room = np.zeros(len(self.rows.cores), np.int64)
        room[at] = most
        there = self.order[room[self.order] > 0]
        place = dealt(need, (there, room[there]))
        assert place is not None
        at, tasks = place
        self.rows.take(need, self.index.wanted_types(need), at, tasks)
        self._move(at)

    def _move(self, at: Ints) -> None:
        # Each has a new place in the order: behind all that have the same amount free.
        assert self._places is not None
        moved = np.zeros(len(self._places), np.bool_)
        moved[at] = True
        order = self.order[~moved[self.order]]
        self._places[at] = self.rows.places[at]
        at = at[np.argsort(self._places[at], kind="stable")]
        behind = np.searchsorted(self._places[order], self._places[at], "right")
        self.order = np.insert(order, behind, at)


class Promises:
    """Which nodes others are to have, and from when on, at moments until one of their times is over.

    `since` and `before` are the first of these moments and the one behind the last, seconds.
    """

    def __init__(self, index: NodeIndex, promised: Sequence[Promised], now: float) -> None:
        ends = [each.end for each in promised]
        self.since = max((end for end in ends if end <= now), default=-math.inf)
        self.before = min((end for end in ends if end > now), default=math.inf)
        there = [each for each in promised if each.end > now]
        self._begins = np.array(sorted({each.begin for each in there}), np.float64)
        self._first = np.full(len(index.names), np.inf)
        rows = {name: at for at, name in enumerate(index.names)} if there else {}
        for each in sorted(there, key=lambda one: one.begin, reverse=True):
            self._first[[rows[name] for name in each.nodes if name in rows]] = each.begin

    def kept(self, until: float) -> Flags | None:
        """Returns which nodes nobody is to have before a moment, seconds; `None` for all."""
        return self._first >= until if len(self._begins) else None

    def around(self, until: float) -> tuple[float, float]:
        """Returns the last beginning before a moment, and the next one: behind the one and up to the other `kept` is the same."""
        at = int(np.searchsorted(self._begins, until))
        before = float(self._begins[at - 1]) if at else -math.inf
        return before, float(self._begins[at]) if at < len(self._begins) else math.inf
