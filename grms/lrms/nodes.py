"""Nodes of a machine at one poll, and whether a job would start on them. Pure.

A job starts at once if its nodes have what it asks for now, nobody else is to have them before it is over, and nobody
waits of whom it is unknown what he is to have. That is less than what a batch system would start: it may find room that
it has promised to nobody. It is never more, as far as the batch system tells what it goes by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from grms.lrms.node_groups import NodeGroup, NodeNeed, Promised
from grms.lrms.node_rows import FreeNodes, Ints, NodeIndex, Promises, Rooms, has_room, most_tasks
from grms.lrms.partitions import EVERY, UNNAMED, Charged, Partition, states_of
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.workload.requests import MEMORY_MAX, Request, counted, size_text

BEFORE_MAX: Final = 100
"""Behind how many jobs that the batch system has not planned it is looked whether one more starts; behind more of them it
does not."""

MARGIN_S: Final = 60.0
"""How long before others are to have its nodes a job must be over, seconds: batch systems plan in steps."""


@dataclass(frozen=True, slots=True)
class Licence:
    """What is counted for all nodes together."""

    total: int
    free: int


def _until(request: Request, now: float) -> float:
    # Until when its nodes must be nobody else's.
    return now + (request.wall_time or 0.0) + MARGIN_S


class _Answers:
    # What the answers about one table have in common.
    def __init__(self) -> None:
        self.index: NodeIndex | None = None
        self.promises: Promises | None = None
        self.started: _Started | None = None


class _Started:
    # The jobs that are to start before others, and what they leave free.
    def __init__(self, promises: Promises, free: FreeNodes) -> None:
        self.promises = promises
        self.free = free
        self.jobs: list[Request] = []
        self.waits = False
        self._times: list[tuple[float, float]] = []

    def add(self, request: Request, after: float, up_to: float, *, waits: bool) -> None:
        """Adds a job whose place is the same as long as it would be over in between two moments, or which waits."""
        self.jobs.append(request)
        self.waits = waits
        self._times.append((after, up_to))

    def hold(self, before: Sequence[Request], promises: Promises, now: float) -> bool:
        """Returns whether jobs begin with these, and each of these still has its place."""
        if promises is not self.promises or len(before) < len(self.jobs):
            return False
        return all(
            (mine is theirs or mine == theirs) and after < _until(mine, now) <= up_to
            for mine, theirs, (after, up_to) in zip(self.jobs, before, self._times, strict=False)
        )


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Nodes and partitions at one poll; see `NodeView`.

    Attributes:
        groups: nodes by what they have; all of the machine.
        partitions: all of the machine.
        usual: names of those that take a job that names none.
        promised: nodes that others are to have.
        unplanned: partitions in which somebody waits of whom no plan is known.
        licences: by name.
        before: jobs that are to start, and that the batch system has not planned.
        own, guests: for whom jobs of the site's users and those of partners are submitted.
        no_images: why no job runs in a container image; empty if jobs do.
        enforced: a job is refused at once if `any` of its partitions has to take its account and QOS, or `all` of them; if
            empty, it waits until one does.
        indexed: the groups by what jobs may ask of them, made when it is first needed.
    """

    groups: tuple[NodeGroup, ...]
    partitions: tuple[Partition, ...]
    usual: tuple[str, ...]
    promised: tuple[Promised, ...] = ()
    unplanned: frozenset[str] = frozenset()
    licences: Mapping[str, Licence] = field(default_factory=dict)
    before: tuple[Request, ...] = ()
    own: Charged = UNNAMED
    guests: Charged = UNNAMED
    no_images: str = ""
    enforced: Literal["", "any", "all"] = ""
    indexed: NodeIndex | None = field(default=None, compare=False, repr=False)
    _answers: "_Answers" = field(default_factory=_Answers, init=False, compare=False, repr=False)

    @property
    def index(self) -> NodeIndex:
        """The groups by what jobs may ask of them."""
        if self.indexed is not None and self.indexed.groups is self.groups:
            return self.indexed
        if self._answers.index is None:
            self._answers.index = NodeIndex.of(self.groups)
        return self._answers.index

    @property
    def guarded_features(self) -> frozenset[str]:
        """See `NodeView`; none here."""
        return frozenset()

    def behind(self, requests: Sequence[Request]) -> "NodeTable":
        """Returns the table with more jobs that are to start before others."""
        return replace(self, before=(*self.before, *requests)) if requests else self

    # --- what is there -----------------------------------------------------------------------------

    def kinds(self) -> tuple[NodeKind, ...]:
        """Returns the kinds of nodes in the usual partitions, each by the name of its first node.

        An amount that is not known (`MEMORY_MAX`) is left out.
        """
        found: dict[tuple[object, ...], list[NodeGroup]] = {}
        for group in self.groups:
            if group.cores and group.partitions & set(self.usual):
                key = (group.cores, group.memory, group.gpus, group.features)
                found.setdefault(key, []).append(group)
        return tuple(
            NodeKind(
                groups[0].names[0],
                sum(len(group.names) for group in groups),
                groups[0].cores,
                groups[0].memory % MEMORY_MAX,
                sum(count % MEMORY_MAX for _, count in groups[0].gpus),
                groups[0].gpus[0][0] if groups[0].gpus else "",
                groups[0].features,
            )
            for groups in found.values()
        )

    def chosen(self, request: Request) -> tuple[Partition, ...]:
        """Returns the partitions of which one would run such a job."""
        names = request.partition.split(",") if request.partition else self.usual
        return tuple(part for part in self.partitions if part.name in names)

    def named(self, request: Request, *, guest: bool) -> Request:
        """Returns a job with the account and QOS under which it is submitted, where partitions tell these apart."""
        usual = self.guests if guest else self.own
        account = qos = ""
        if not request.account and any(part.accounts != EVERY for part in self.partitions):
            account = usual.account
        if not request.qos and any(part.qos != EVERY for part in self.partitions):
            qos = usual.qos
        if not (account or qos):
            return request
        return replace(request, account=request.account or account, qos=request.qos or qos)

    # --- the view ----------------------------------------------------------------------------------

    def never(self, request: Request) -> str:
        """Returns why nothing here ever runs such a job; empty if something does."""
        return self._nowhere(request, self.chosen(request))

    def lacks(self, request: Request) -> str:
        """Returns why no node here could run such a job, whatever limits partitions have; empty if some could.

        Limits change, and may not be a user's own (QOS); a batch system lets jobs wait for them, or gives a job more
        cores for its memory. So they keep no job of the site's own users from it, unless it would refuse the account or
        QOS at once.
        """
        parts = self.chosen(request)
        if self.enforced and (why := self._barred(request, parts)):
            return why
        return self._nowhere(request, [Partition(part.name, part.state) for part in parts])

    def _nowhere(self, request: Request, parts: Sequence[Partition]) -> str:
        if request.image and self.no_images:
            return f"{self.no_images}; it asks for {request.image}"
        for name, count in request.licences:
            total = self.licences.get(name, Licence(0, 0)).total
            if total < count:
                return f"there are {counted(total, 'licence')} of {name}; it asks for {count}"
        if why := self._barred(request, parts):
            return why
        if not parts:
            return f"there is no partition {request.partition or ','.join(self.usual)}"
        reasons = [self._never_in(part, request) for part in parts]
        return "; ".join(reasons) if all(reasons) else ""

    def _barred(self, request: Request, parts: Sequence[Partition]) -> str:
        # Why no partition takes the account and QOS of a job, or, where all have to, one does not.
        reasons = [part.bars(request) for part in parts]
        barred = any(reasons) if self.enforced == "all" else bool(reasons) and all(reasons)
        return "; ".join(filter(None, reasons)) if barred else ""

    def shut(self, request: Request) -> str:
        """Returns why no partition that runs such a job accepts one now; empty if one does."""
        fit = [part for part in self.chosen(request) if not self._never_in(part, request)]
        return "" if any(part.takes for part in fit) else states_of(fit)

    def why_not(self, request: Request) -> str:
        """Returns why such a job, submitted now, would not start even with room; empty if it would."""
        return self._blocked(request, new=True)

    def stays(self, request: Request) -> str:
        """Returns why such a job, already waiting, does not start even with room; empty if it does."""
        return self._blocked(request, new=False)

    def starts_now(self, request: Request, now: float, before: Sequence[Request] = ()) -> bool:
        """Returns whether such a job would start at once, behind all others and those of `before`."""
        before = (*self.before, *before)
        if len(before) > BEFORE_MAX:
            return False  # each of them is placed at every poll
        if any(self._free_licences(name, before) < count for name, count in request.licences):
            return False
        if (request.image and self.no_images) or self._barred(request, self.chosen(request)):
            return False
        promises = self._promises(now)
        free = self._behind(before, promises, now)
        return free is not None and self._place(request, free, promises, now) is not None

    # --- how ---------------------------------------------------------------------------------------

    def _free_licences(self, name: str, before: Sequence[Request]) -> int:
        taken = sum(count for other in before for word, count in other.licences if word == name)
        return self.licences.get(name, Licence(0, 0)).free - taken

    def _as_submitted(self, request: Request) -> Request:
        # In the words that count where it is submitted.
        return request

    def _never_in(self, part: Partition, request: Request) -> str:
        why = part.refuses(request)
        if why:
            return why
        need = NodeNeed.of(request, part)
        if not self.index.never_room(need, part.name, working=False):
            return ""
        return _lacking(need, part, self.index)

    def _blocked(self, request: Request, *, new: bool) -> str:
        why = self.never(request)
        if why:
            return why
        reasons = []
        for part in self.chosen(request):
            if self._never_in(part, request):
                continue
            if (new and not part.takes) or not part.starts:
                reasons.append(states_of([part]))
            elif self.index.never_room(NodeNeed.of(request, part), part.name, working=True):
                there = (group for group in self.groups if part.name in group.partitions)
                states = sorted({group.away for group in there} - {""})
                reasons.append(f"nodes of {part.name} that it needs are {', '.join(states)}")
            else:
                return ""
        return "; ".join(reasons)

    def _promises(self, now: float) -> Promises:
        found = self._answers.promises
        if found is None or not found.since <= now < found.before:
            found = self._answers.promises = Promises(self.index, self.promised, now)
        return found

    def _behind(
        self, before: Sequence[Request], promises: Promises, now: float
    ) -> FreeNodes | None:
        # What is free once some jobs have started; `None` if one of them waits, and nobody knows where it is to run.
        if not before:
            return FreeNodes(self.index)
        last = self._answers.started
        if last is None or not last.hold(before, promises, now):
            last = self._answers.started = _Started(promises, FreeNodes(self.index))
        for request in before[len(last.jobs) :]:
            if last.waits:
                break
            place = self._place(self._as_submitted(request), last.free, promises, now)
            if place is not None:
                last.free.start(*place)
            until = _until(request, now)
            last.add(request, *promises.around(until), waits=place is None)
        return None if last.waits else last.free

    def _place(
        self, request: Request, free: FreeNodes, promises: Promises, now: float
    ) -> tuple[NodeNeed, Rooms] | None:
        # What a job takes, and nodes with room for it; `None` if it does not start.
        kept = promises.kept(_until(request, now))
        for part in self.chosen(request):
            if not (part.takes and part.starts) or part.name in self.unplanned:
                continue
            if part.refuses(request):
                continue
            need = NodeNeed.of(request, part)
            at, rooms = free.room(need, part.name, kept)
            if has_room(need, rooms):
                return need, (at, rooms)
        return None


# --- what is missing -----------------------------------------------------------------------------


def _lacking(need: NodeNeed, part: Partition, index: NodeIndex) -> str:
    # Why a job does not go on the nodes of a partition although all of them are idle: what is missing first.
    if not index.fitting(part.name).any():
        return f"{part.name} has no nodes"
    features = need.request.features
    for name in features:
        if not index.fitting(part.name, [name]).any():
            return f"no node of {part.name} has the feature {name}"
    there = index.fitting(part.name, features)
    if not there.any():
        return f"no node of {part.name} has all of {', '.join(features)}"
    at = np.flatnonzero(there[index.kinds.profile])
    return (
        _few_gpus(need, part, index, at)
        or _few_cores(need, part, index, at)
        or _little_memory(need, part, index, at)
        or _little_room(need, part, index)
    )


def _few_gpus(need: NodeNeed, part: Partition, index: NodeIndex, at: Ints) -> str:
    if need.gpus is None:
        return ""
    kind, asked = need.gpus.type, need.gpus.count
    most = int(index.kinds.free_of(index.wanted_types(need), at).max())
    what = f"{kind} GPU" if kind else "GPU"
    if most == 0:
        return f"no node of {part.name} has {what}s"
    return f"no node of {part.name} has more than {counted(most, what)}" if most < asked else ""


def _few_cores(need: NodeNeed, part: Partition, index: NodeIndex, at: Ints) -> str:
    most = int(index.kinds.cores[at].max())
    most = most if need.cores_max is None else min(most, need.cores_max)
    if most >= need.request.cores_per_task:
        return ""
    return f"no node of {part.name} gives a task more than {counted(most, 'core')}"


def _little_memory(need: NodeNeed, part: Partition, index: NodeIndex, at: Ints) -> str:
    # Of the job's least share of a node.
    sizes = index.kinds.memory[at]
    most = int(sizes.max()) if sizes.all() else need.memory_max
    if most is None:
        return ""
    most = most if need.memory_max is None else min(most, need.memory_max)
    if (index.kinds.held_memory(need, 1, at) <= most).any():
        return ""
    return f"no node of {part.name} gives a job more than {size_text(most)}"


def _little_room(need: NodeNeed, part: Partition, index: NodeIndex) -> str:
    _, rooms, count = index.empty_rooms(need, part.name)
    if need.nodes_max < need.nodes_min:
        return (
            f"a job in {part.name} has at most {counted(part.nodes_max or need.nodes_max, 'node')}"
        )
    nodes = int(count.sum())
    if nodes < need.nodes_min:
        return f"{part.name} has {counted(nodes, 'node')} that will do"
    room = most_tasks(need, rooms, count)
    return f"{part.name} has room for {room} of {counted(need.request.tasks, 'task')}"
