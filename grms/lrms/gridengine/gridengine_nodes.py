"""Parses what Grid Engine shows of its queues on each host, and answers whether a job would start there. Pure.

A queue on a host is a node here, and a cluster queue a partition. Grid Engine shows how much of a resource is left, and
not how much there is: that is known of a host on which nobody has any, and kept.
"""

import math
import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from grms.lrms.gridengine.gridengine_request import ONE_HOST, Cell, resource_options
from grms.lrms.node_groups import NodeGroup, grouped
from grms.lrms.node_rows import NodeIndex
from grms.lrms.nodes import Licence, NodeTable
from grms.lrms.partitions import Partition
from lrms_sim.workload.requests import COUNT_MAX, MEMORY_MAX, Request, RequestError, mib_of

_QUEUE: Final = re.compile(r"<Queue-List>(.*?)(?:<job_list|</Queue-List>)", re.DOTALL)
_FIELD: Final = re.compile(r"<(\w+)>([^<\n]*)</\1>")
_RESOURCE: Final = re.compile(r'<resource name="([^"\n]*)" type="(\w+)">([^<\n]*)</resource>')
_SHUT: Final = frozenset("auAdDsSEoCc")
"""Letters of a queue's state with which it starts no job on a host (qstat(1), "state")."""


def shown_resources(cell: Cell) -> list[str]:
    """Returns the resources whose amounts a request may be about."""
    found = {"slots", cell.memory, cell.gpus, cell.gpu_type} - {""}
    for name, each in cell.resources.items():
        if each.type == "BOOL" or each.counted != "NO":
            found.add(name)
    return sorted(found & cell.resources.keys())


@dataclass(frozen=True, slots=True)
class GridTable(NodeTable):
    """A table of nodes whose jobs are submitted in the words of a cell."""

    cell: Cell = field(default_factory=lambda: Cell({}))

    @property
    def guarded_features(self) -> frozenset[str]:
        """Resources that a job has to ask for to come where they are."""
        resources = self.cell.resources.items()
        return frozenset(name for name, each in resources if each.requestable == "FORCED")

    def never(self, request: Request) -> str:
        """Returns why nothing here ever runs such a job; empty if something does, as far as Grid Engine tells."""
        return self._unsaid(request) or NodeTable.never(self, self._dealt(request))

    def lacks(self, request: Request) -> str:
        """Returns why no host here could run such a job, whatever limits queues have; empty if some could."""
        return self._unsaid(request) or NodeTable.lacks(self, self._dealt(request))

    def _unsaid(self, request: Request) -> str:
        try:
            resource_options(request, self.cell)
        except RequestError as error:
            return str(error)
        return ""

    def shut(self, request: Request) -> str:
        """Returns why no queue that runs such a job accepts one now; empty if one does."""
        return NodeTable.shut(self, self._dealt(request))

    def stays(self, request: Request) -> str:
        """Returns why such a job, already waiting, does not start even with room; empty if it does."""
        return NodeTable.stays(self, self._dealt(request))

    def why_not(self, request: Request) -> str:
        """Returns why such a job, submitted now, would not start even with room; empty if it would."""
        return NodeTable.why_not(self, self._dealt(request))

    def starts_now(self, request: Request, now: float, before: Sequence[Request] = ()) -> bool:
        """Returns whether such a job would start at once, behind all others and those of `before`."""
        if self.never(request):
            return False
        return NodeTable.starts_now(self, self._dealt(request), now, before)

    def _as_submitted(self, request: Request) -> Request:
        return self._dealt(request)

    def _dealt(self, request: Request) -> Request:
        # With its slots on hosts as the parallel environment deals them out.
        rule = self.cell.rule
        if rule == ONE_HOST and not request.on_one_node and request.nodes_min == 1:
            return replace(request, nodes_max=1, tasks_per_node=None)
        if rule.isdecimal() and request.processors > 1:
            tasks = max(1, int(rule) // request.cores_per_task)
            hosts = -(-request.tasks // tasks)
            return replace(request, tasks_per_node=tasks, nodes_min=hosts, nodes_max=hosts)
        return request


def read_grid_table(
    text: str,
    parts: Iterable[Partition],
    cell: Cell,
    most: MutableMapping[tuple[str, str], float],
    *,
    waiting: bool,
    own: Sequence[str] = (),
    guests: str = "",
    guests_wait: bool = False,
) -> GridTable:
    """Returns the nodes of what `qstat -f -F -xml` has printed, with `shown_resources`.

    `parts` are the cluster queues in use, with their limits; `most` has the greatest amounts seen of each host's
    resources, and is added to; with `waiting` somebody waits who could start. `guests` is a queue of guests beside the
    queues `own`, on whose hosts they have what own jobs leave; with `guests_wait` some of them wait.

    Raises:
        ValueError: it is something else.
    """
    if "<job_info" not in text or "</job_info>" not in text:
        raise ValueError(f"qstat says {text.strip()[:80]!r}, not a table of queues")
    queues, licences = [], {}
    for found in _QUEUE.finditer(text):
        fields = dict(_FIELD.findall(found[1]))
        resources = {name: (kind, value) for name, kind, value in _RESOURCE.findall(found[1])}
        queues.append((fields, resources))
        for name, (kind, value) in resources.items():
            if kind == "gc":
                licences[name] = Licence(COUNT_MAX, int(float(value)))
    used: dict[str, int] = {}
    for fields, _ in queues:
        host = fields["name"].partition("@")[2]
        used[host] = used.get(host, 0) + int(fields["slots_used"])
    left = _left_to_guests([fields for fields, _ in queues], own, used) if guests else {}
    nodes = []
    for fields, there in queues:
        queue, _, host = fields["name"].partition("@")
        node = _node(fields, there, cell, most, used)
        if guests and queue == guests:
            node = replace(node, free_cores=min(node.free_cores, left.get(host, 0)))
        nodes.append(node)
    parts = tuple(parts)
    names = tuple(part.name for part in parts if part.name != guests)
    unplanned = {*(names if waiting else ()), *([guests] if guests_wait else ())}
    groups = grouped(nodes)
    return GridTable(
        groups,
        parts,
        names,
        unplanned=frozenset(unplanned),
        licences=licences,
        indexed=NodeIndex.of(groups),
        cell=cell,
    )


def _left_to_guests(
    queues: Iterable[Mapping[str, str]], own: Sequence[str], used: Mapping[str, int]
) -> dict[str, int]:
    # The slots of each host that nobody uses, by the widest of the site's own queues there.
    slots: dict[str, int] = {}
    for fields in queues:
        queue, _, host = fields["name"].partition("@")
        if queue in own:
            slots[host] = max(slots.get(host, 0), int(fields["slots_total"]))
    return {host: max(0, count - used[host]) for host, count in slots.items()}


def read_instances(text: str) -> dict[str, dict[str, int]]:
    """Returns the slots of each queue by host, as `qstat -f -xml` has printed."""
    found: dict[str, dict[str, int]] = {}
    for each in _QUEUE.finditer(text):
        fields = dict(_FIELD.findall(each[1]))
        queue, _, host = fields["name"].partition("@")
        found.setdefault(queue, {})[host] = int(fields["slots_total"])
    return found


def _node(
    fields: Mapping[str, str],
    resources: Mapping[str, tuple[str, str]],
    cell: Cell,
    most: MutableMapping[tuple[str, str], float],
    used: Mapping[str, int],
) -> NodeGroup:
    queue, _, host = fields["name"].partition("@")
    idle, total = used[host] == 0, int(fields["slots_total"])
    letters = "".join(letter for letter in fields.get("state", "") if letter in _SHUT)
    alone = next((name for name, each in cell.resources.items() if each.relation == "EXCL"), "")
    if alone and float(resources.get(alone, ("", "1"))[1]) < 1:
        letters += " (held by an exclusive job)"
    kind = resources.get(cell.gpu_type, ("", ""))[1]
    memory, memory_most = _left(resources, host, cell.memory, most, idle=idle)
    if cell.memory and not memory_most and _amount(resources, cell.memory) != math.inf:
        memory_most = 1  # the host has none, for which no job that asks for some fits
    gpus, gpus_most = _left(resources, host, cell.gpus, most, idle=idle)
    has = {
        name
        for name, (_, value) in resources.items()
        if name in cell.resources and cell.resources[name].type == "BOOL"
        if value not in {"0", "0.000000", "FALSE"}
    }
    return NodeGroup(
        (fields["name"],),
        frozenset([queue]),
        total,
        memory_most,
        ((kind, gpus_most),) if gpus_most else (),
        frozenset(has),
        max(0, int(float(resources.get("slots", ("", fields["slots_total"]))[1]))),
        memory,
        ((kind, gpus),) if gpus_most else (),
        idle=idle,
        away=letters.strip(),
    )


def _left(
    resources: Mapping[str, tuple[str, str]],
    host: str,
    name: str,
    most: MutableMapping[tuple[str, str], float],
    *,
    idle: bool,
) -> tuple[int, int]:
    # What is left of a resource, and how much there is; MiB of memory. Nothing where it is without end, or not there.
    left = _amount(resources, name)
    if left is None or math.isinf(left):
        return 0, 0
    if idle:
        most[host, name] = max(left, most.get((host, name), 0))
    return int(left), int(most.get((host, name), MEMORY_MAX))


def _amount(resources: Mapping[str, tuple[str, str]], name: str) -> float | None:
    if name not in resources:
        return None
    text = resources[name][1]
    if text.upper() in {"INFINITY", "NONE", "UNDEFINED"}:
        return math.inf
    if text[-1:] not in set("KMGTP"):
        return float(text)
    amount = mib_of(text)
    if amount is None:
        raise ValueError(f"qstat says {text[:40]!r} of {name}, which is no amount")
    return amount
