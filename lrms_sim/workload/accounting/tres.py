"""Trackable resources of Slurm (TRES), and the request that a job with them has made.

As text they are `cpu=8,mem=32G,node=2,gres/gpu=2,gres/gpu:a100=2,license/matlab=1`. The rules are in
docs/nodes.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lrms_sim.workload.accounting.records import Reading, whole_of
from lrms_sim.workload.requests import COUNT_MAX, Gpus, Memory, Request, RequestError, mib_of


@dataclass(slots=True)
class Tres:
    """Resources of a job as a whole; 0 and nothing where they are not told.

    Attributes:
        memory: MiB.
        gpus: by type; the empty one for all together.
        licences: by name.
        others: whether there are generic resources of other kinds.
    """

    cpus: int = 0
    nodes: int = 0
    memory: int = 0
    gpus: dict[str, int] = field(default_factory=dict)
    licences: dict[str, int] = field(default_factory=dict)
    others: bool = False

    def add(self, kind: str, name: str, count: int) -> None:
        """Takes in one of them, memory in MiB."""
        if kind == "cpu":
            self.cpus = count
        elif kind == "node":
            self.nodes = count
        elif kind == "mem":
            self.memory = count
        elif kind == "license" and name and count:
            self.licences[name] = count
        elif kind == "gres":
            base, _, gpu_type = name.partition(":")
            if base == "gpu":
                self.gpus[gpu_type] = self.gpus.get(gpu_type, 0) + count
            else:
                self.others = self.others or count > 0

    def or_else(self, other: "Tres") -> "Tres":
        """Returns these, and what they do not tell as the others do."""
        return Tres(
            self.cpus or other.cpus,
            self.nodes or other.nodes,
            self.memory or other.memory,
            self.gpus or other.gpus,
            self.licences or other.licences,
            self.others or other.others,
        )


def tres_of_text(text: str) -> Tres:
    """Returns what a column `AllocTRES` or `ReqTRES` says; what is no resource is passed over."""
    found = Tres()
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        kind, _, name = key.partition("/")
        count = memory_of(value)[0] if kind == "mem" else whole_of(value)
        if count is not None:
            found.add(kind.lower(), name, count)
    return found


def gres_of_text(text: str) -> dict[str, int]:
    """Returns the GPUs of each node, by type, of a column `AllocGRES` or `ReqGRES`: `gpu:a100:2`."""
    found: dict[str, int] = {}
    for part in re.split(r",(?![^(]*\))", text):
        words = part.strip().removeprefix("gres:").removeprefix("gres/").partition("(")[0]
        name, *rest = re.split(r"[:=]", words)
        if name != "gpu":
            continue
        count = whole_of(rest.pop()) if rest and whole_of(rest[-1]) is not None else 1
        gpu_type = rest[0] if rest else ""
        found[gpu_type] = found.get(gpu_type, 0) + (count or 0)
    return found


def memory_of(text: str) -> tuple[int | None, str]:
    """Returns MiB, rounded up, and what has that much: `c` each core, `n` each node, nothing the job."""
    amount = text.strip()
    per = amount[-1:].lower()
    return (mib_of(amount[:-1]), per) if per and per in "cn" else (mib_of(amount), "")


@dataclass(frozen=True, slots=True)
class Asked:
    """What else accounting tells of a request.

    Attributes:
        memory: where it says for what it is.
        nodes: number of nodes; 0 where it is not told.
        node_gpus: of each node, by type.
        constraint: as `--constraint` has it.
    """

    memory: Memory | None = None
    nodes: int = 0
    node_gpus: Mapping[str, int] = field(default_factory=dict)
    constraint: str = ""


def request_of_tres(processors: int, tres: Tres, asked: Asked, reading: Reading) -> Request | None:
    """Returns the request of a job with these resources; None where it is processors alone.

    Args:
        processors: of the job.
        tres: of the job as a whole.
        asked: what else there is.
        reading: counts the rules that are used.
    """
    if processors > COUNT_MAX:
        return None  # the record is left out
    nodes = tres.nodes or asked.nodes
    if nodes > processors:
        nodes = 0
    reading.counts["resource"] += tres.others
    try:
        request = Request(
            tasks=processors,
            nodes_min=nodes or 1,
            nodes_max=nodes or None,
            memory=asked.memory or _memory(tres.memory, nodes, processors),
            gpus=_gpus(tres, asked, nodes, reading),
            features=_features(asked.constraint, reading),
            licences=tuple(sorted(tres.licences.items())),
        )
    except RequestError:
        reading.counts["contradiction"] += 1
        return None
    return None if request.processors_alone else request


def _memory(mib: int, nodes: int, processors: int) -> Memory | None:
    if mib == 0:
        return None
    return Memory(mib, "node") if nodes == 1 else Memory(-(-mib // processors), "core")


def _gpus(tres: Tres, asked: Asked, nodes: int, reading: Reading) -> Gpus | None:
    if any(tres.gpus.values()):
        count, gpu_type = _of_types(tres.gpus, reading)
        if not nodes:
            return Gpus(count, "job", gpu_type)
        reading.counts["uneven"] += count % nodes > 0
        return Gpus(-(-count // nodes), "node", gpu_type)
    if any(asked.node_gpus.values()):
        count, gpu_type = _of_types(asked.node_gpus, reading)
        return Gpus(count, "node", gpu_type)
    return None


def _of_types(gpus: Mapping[str, int], reading: Reading) -> tuple[int, str]:
    """Returns how many GPUs there are, and of which type where it is one."""
    types = [name for name, count in gpus.items() if name and count]
    count = gpus.get("") or sum(gpus.values())
    reading.counts["types"] += len(types) > 1
    return count, types[0] if len(types) == 1 and gpus[types[0]] == count else ""


def _features(constraint: str, reading: Reading) -> tuple[str, ...]:
    words = [word for word in re.split(r"[&,]", constraint.strip()) if word]
    if not all(re.fullmatch(r"[\w.+-]+", word) for word in words):
        reading.counts["constraint"] += 1
        return ()
    return tuple(dict.fromkeys(words))
