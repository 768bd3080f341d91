"""Parses Slurm's description of its nodes, partitions, reservations, licences and rules. Pure.

Partition states (scontrol(1), "State"): new jobs are accepted in UP or DOWN, and refused by `sbatch` in DRAIN or
INACTIVE; waiting jobs start in UP or DRAIN.

All of it is what `scontrol --all --oneliner` shows, a line each; moments are seconds since 1970. An operator's free text
(`Reason`, `Comment`) comes behind everything that counts, and the first occurrence of a field is read.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeVar

from grms.lrms.node_groups import NodeGroup, Promised, grouped
from grms.lrms.node_rows import NodeIndex
from grms.lrms.nodes import Licence, NodeTable
from grms.lrms.partitions import EVERY, Admitted, Partition, Partitions
from grms.lrms.slurm.slurm_limits import read_limit
from grms.lrms.slurm.slurm_machine import node_names
from grms.lrms.slurm.slurm_preemption import PreemptionRules, read_preemption_rules
from grms.lrms.slurm.slurm_request import read_memory
from grms.lrms.slurm.slurm_text import read_job
from lrms_sim.workload.requests import Memory

T = TypeVar("T")

_UNLIMITED: Final = frozenset(("UNLIMITED", "infinite", "NONE", "N/A", "(null)", ""))

_AWAY: Final = frozenset(
    (
        *("DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILING", "FUTURE", "INVAL"),
        *("INVALID_REG", "MAINT", "NOT_RESPONDING", "POWERING_DOWN", "REBOOT_ISSUED", "RESERVED"),
        *("REBOOT_REQUESTED", "UNKNOWN", "BLOCKED"),
    )
)
"""Words of a node's state with which it starts no job (scontrol(1), "State")."""

_TAKES: Final = {"DRAIN": False, "INACTIVE": False}
_STARTS: Final = {"DOWN": False, "INACTIVE": False}

_ENFORCED: Final[Mapping[str, Literal["any", "all"]]] = {"ANY": "any", "ALL": "all"}

_GPU: Final = re.compile(r"gpu(?::(?P<type>[A-Za-z_][\w.-]*))?:(?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class SlurmRules:
    """What `scontrol show config` says of how jobs are placed.

    Attributes:
        scheduler: kind of scheduler, `backfill` or `builtin`; may be empty.
        whole_nodes: a job has its nodes for itself, whatever it asks for.
        memory: jobs share the memory of a node; else each may have all of it.
        granule: what of a node no two jobs share: a `core`, a `socket`, or a `cpu`.
        one_task_a_core: further threads of a task's core stay idle.
        limits: settings that a partition may have instead, by name.
        has_licences: some are counted.
        accounting: it is known whose account a job is of.
        requeue: whether a job may be run again that does not say it.
        enforced: whether a job is refused that a partition does not take: `any` of its partitions has to, or `all`; else
            it waits.
        preemption: how jobs are ended for others.
        keeps_places: a job whose start was put off, and then is now, stands where it stood.
        array_size: indices of arrays are below it; 0: it is not said, or there are no arrays.
        configuration: path of slurm.conf at its controller; empty if it is not said.
    """

    scheduler: str = ""
    whole_nodes: bool = False
    memory: bool = True
    granule: str = "core"
    one_task_a_core: bool = False
    limits: Mapping[str, str] = field(default_factory=dict)
    has_licences: bool = False
    accounting: bool = True
    requeue: bool = True
    enforced: Literal["", "any", "all"] = ""
    preemption: PreemptionRules = field(default_factory=PreemptionRules)
    keeps_places: bool = False
    array_size: int = 0
    configuration: str = ""


def read_rules(text: str) -> SlurmRules | None:
    """Returns the rules of what `scontrol show config` has printed; `None` if it does not say how nodes are chosen."""
    found = dict(re.findall(r"^(\w+)[^\S\n]*=[^\S\n]*(.*?)[^\S\n]*$", text, re.MULTILINE))
    select = found.get("SelectType", "").removeprefix("select/")
    if not select:
        return None
    words = found.get("SelectTypeParameters", "").upper().split(",")
    parts = {part for word in words for part in word.split("_")}
    granule = next((one for one in ("SOCKET", "CORE", "CPU") if one in parts), "CORE")
    return SlurmRules(
        found.get("SchedulerType", "").removeprefix("sched/"),
        whole_nodes=select == "linear",
        memory="MEMORY" in parts,
        granule=granule.lower(),
        one_task_a_core="CR_ONE_TASK_PER_CORE" in words,
        limits={name: text for name, text in found.items() if name in _LIMITS},
        has_licences=found.get("Licenses", "(null)") not in _UNLIMITED,
        accounting=found.get("AccountingStorageType") != "accounting_storage/none",
        requeue=found.get("JobRequeue", "1") != "0",
        enforced=_ENFORCED.get(found.get("EnforcePartLimits", "NO"), ""),
        preemption=read_preemption_rules(found),
        keeps_places=keeps_places(found),
        array_size=int(size) if (size := found.get("MaxArraySize", "")).isdecimal() else 0,
        configuration=found.get("SLURM_CONF", ""),
    )


def keeps_places(found: Mapping[str, str]) -> bool:
    """Returns whether a job whose start was put off, and then is now, stands where it stood; by `scontrol show config`."""
    # priority/multifactor without an accounting database gives no age, and its jobs stand by their numbers.
    if found.get("PriorityType") != "priority/multifactor":
        return found.get("PriorityType") == "priority/basic"
    accounting = found.get("AccountingStorageType") != "accounting_storage/none"
    return not accounting or "ACCRUE_ALWAYS" in found.get("PriorityFlags", "").split(",")


# --- nodes ---------------------------------------------------------------------------------------


_NODE_FIELDS: Final = (
    *("NodeName", "CPUTot", "CPUAlloc", "State", "RealMemory", "AllocMem"),
    *("CPUEfctv", "MemSpecLimit", "Gres", "GresUsed", "ThreadsPerCore", "CoresPerSocket"),
    *("ActiveFeatures", "Partitions", "Weight"),
)
_NODE_NEEDED: Final = _NODE_FIELDS[:6]

LINES_MAX: Final = 16_384
"""Lines about nodes that are kept from look to look: most of a large machine's are the same in the next one."""


def read_nodes(text: str, rules: SlurmRules) -> tuple[NodeGroup, ...]:
    """Returns the nodes that `scontrol show node --detail` shows.

    Raises:
        ValueError: it is something else.
    """
    alike: dict[tuple[str | None, ...], list[str]] = {}
    for line in text.splitlines():
        if line.strip():
            name, said = _node_fields(line)
            alike.setdefault(said, []).append(name)
    return grouped(_nodes(names, said, rules) for said, names in alike.items())


@lru_cache(maxsize=LINES_MAX)
def _node_fields(line: str) -> tuple[str, tuple[str | None, ...]]:
    # A node's name, and what is shown of it: words without blanks, of which the first of each name counts.
    if not line.startswith("NodeName="):
        raise ValueError(f"scontrol says {line.strip()[:80]!r}, where NodeName should be")
    found: list[str | None] = []
    shown = f" {line} "
    for field_name in _NODE_FIELDS:
        at = shown.find(f" {field_name}=")
        begin = at + len(field_name) + 2
        found.append(None if at < 0 else shown[begin : shown.index(" ", begin)])
    name, *said = found
    assert name is not None  # the line begins with it
    for needed, value in zip(_NODE_NEEDED[1:], said, strict=False):
        if value is None:
            raise ValueError(f"scontrol shows no {needed!r} of {name[:80]}")
    return name, tuple(said)


def _nodes(names: Sequence[str], said: Sequence[str | None], rules: SlurmRules) -> NodeGroup:
    # Nodes of which the same is shown.
    shown = zip(_NODE_FIELDS[1:], said, strict=True)
    fields = {name: value for name, value in shown if value is not None}
    cores = int(fields.get("CPUEfctv") or fields["CPUTot"])
    held = int(fields["CPUAlloc"])
    words = re.split(r"[+*]", fields["State"].replace("*", "+NOT_RESPONDING"))
    away = "+".join(word for word in words if word in _AWAY)
    memory = int(fields["RealMemory"]) - int(fields.get("MemSpecLimit", "0"))
    gpus = _gpus(fields.get("Gres", ""))
    used = _gpus(fields.get("GresUsed", ""))
    threads = max(1, int(fields.get("ThreadsPerCore", "1")))
    step = {"cpu": 1, "core": threads}.get(
        rules.granule, threads * max(1, int(fields.get("CoresPerSocket", "1")))
    )
    features = fields.get("ActiveFeatures", "(null)")
    partitions = fields.get("Partitions", "")
    return NodeGroup(
        tuple(names),
        frozenset(partitions.split(",") if partitions else ()),
        cores,
        memory,
        tuple(sorted(gpus.items())),
        frozenset(() if features in _UNLIMITED else features.split(",")),
        max(0, cores - held),
        memory - (int(fields["AllocMem"]) if rules.memory else 0),
        tuple((name, max(0, count - used.get(name, 0))) for name, count in sorted(gpus.items())),
        idle=held == 0 and "COMPLETING" not in words and not any(used.values()),
        away=away,
        step=step,
        task_step=threads if rules.one_task_a_core else 1,
        weight=int(fields.get("Weight", "1")),
    )


def _gpus(text: str) -> dict[str, int]:
    # gpu:a100:4(S:0-1), in use gpu:a100:2(IDX:0-1,3); other generic resources beside them.
    found: dict[str, int] = {}
    for word in re.sub(r"\([^)]*\)", "", text).split(","):
        if (match := _GPU.fullmatch(word)) is not None:
            name = match["type"] or ""
            found[name] = found.get(name, 0) + int(match["count"])
    return found


# --- partitions ----------------------------------------------------------------------------------

_LIMITS: Final = (
    *("DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode", "JobDefaults"),
)


def read_partitions(
    text: str, nodes: Iterable[NodeGroup], rules: SlurmRules
) -> tuple[tuple[Partition, ...], str]:
    """Returns the partitions that `scontrol show partition` shows, by name, and the default one's name, if any.

    Raises:
        ValueError: it is something else.
    """
    sizes: dict[str, list[int]] = {}
    for group in nodes:
        for name in group.partitions:
            sizes.setdefault(name, []).extend([group.cores] * len(group.names))

    def made(fields: Mapping[str, str]) -> tuple[Partition, bool]:
        part = _partition(fields, sizes.get(fields["PartitionName"], []), rules)
        return part, fields.get("Default") == "YES"

    found = _records(text, "PartitionName", made)
    default = next((part.name for part, is_default in found if is_default), "")
    return tuple(sorted((part for part, _ in found), key=lambda part: part.name)), default


def _partition(fields: Mapping[str, str], sizes: list[int], rules: SlurmRules) -> Partition:
    state, nodes_max = fields["State"], _count(fields["MaxNodes"])
    used = sorted(sizes, reverse=True)
    accounts, qos = _admitted(fields, "Accounts"), _admitted(fields, "Qos")
    shut = "only for operators or reservations"
    if "YES" not in {fields.get("RootOnly"), fields.get("ReqResv")}:
        unknown = not (accounts.barred or rules.accounting)
        shut = "only for accounts, which this cluster does not know" if unknown else ""
    if not rules.accounting:
        accounts = qos = EVERY  # Slurm looks at neither whom it denies, nor at QOS
    memory = default_memory(fields, rules)
    return Partition(
        fields["PartitionName"],
        shut or state,
        takes=_TAKES.get(state, not shut),
        starts=_STARTS.get(state, True),
        longest_s=read_limit(fields["MaxTime"]),
        widest=sum(used if nodes_max is None else used[:nodes_max]),
        nodes_min=max(1, _count(fields["MinNodes"]) or 1),
        nodes_max=nodes_max,
        cores_max=_count(fields.get("MaxCPUsPerNode", "UNLIMITED")),
        memory_max=_limit("MaxMemPerNode", fields, rules),
        core_memory_max=_limit("MaxMemPerCPU", fields, rules),
        default_memory=memory,
        default_gpu_memory=_gpu_memory(fields, rules),
        default_gpu_cores=int(_gpu_default("DefCpuPerGPU", fields, rules) or 0),
        all_memory=rules.memory and memory is None,
        whole_nodes=rules.whole_nodes
        or fields.get("OverSubscribe", "").startswith("EXCLUSIVE")
        or fields.get("ExclusiveUser") == "YES",
        accounts=accounts,
        qos=qos,
    )


def _admitted(fields: Mapping[str, str], what: str) -> Admitted:
    # Slurm shows either whom a partition allows, or whom it denies.
    denied = fields.get(f"Deny{what}", "")
    listed = denied or fields.get(f"Allow{what}", "ALL")
    if listed == "ALL" or listed in _UNLIMITED:
        return EVERY
    return Admitted(frozenset(listed.lower().split(",")), barred=bool(denied))


def default_memory(
    fields: Mapping[str, str], rules: SlurmRules, *, gpus: bool = False
) -> Memory | None:
    """Returns what a job has that asks for no memory, by a partition's fields; `None` if nothing says it.

    `gpus` says whether it asks for some: for each of these there may be an amount that takes precedence.
    """
    if gpus and (each := _gpu_memory(fields, rules)):
        return Memory(each, "gpu")
    core, node = (_limit(name, fields, rules) for name in ("DefMemPerCPU", "DefMemPerNode"))
    if not rules.memory:
        return None
    if core:
        return Memory(core)
    return Memory(node, "node") if node else None


def _gpu_memory(fields: Mapping[str, str], rules: SlurmRules) -> int | None:
    text = _gpu_default("DefMemPerGPU", fields, rules) if rules.memory else ""
    return read_memory(text) or None if text else None


def _gpu_default(name: str, fields: Mapping[str, str], rules: SlurmRules) -> str:
    # What a partition, or else the cluster, gives a job for each GPU; empty for nothing.
    for said in (fields, rules.limits):
        defaults = dict(word.partition("=")[::2] for word in said.get("JobDefaults", "").split(","))
        if (text := defaults.get(name, "")) not in _UNLIMITED:
            return text
    return ""


def _limit(name: str, fields: Mapping[str, str], rules: SlurmRules) -> int | None:
    # A partition has either of a pair, per CPU or per node, and says so by which of them it prints.
    kind = name[:6]
    said = (
        fields
        if any(key.startswith(kind) and fields[key] not in _UNLIMITED for key in fields)
        else rules.limits
    )
    text = said.get(name, "UNLIMITED")
    return None if text in _UNLIMITED else read_memory(text) or None


def _count(text: str) -> int | None:
    return None if text in _UNLIMITED else int(text)


@dataclass(frozen=True, slots=True)
class SlurmMachine:
    """A machine as scontrol shows it.

    Attributes:
        working: processors that work, in partitions that accept and start jobs.
        everything: all in the partitions in use.
        free: working ones that no job holds.
        partitions: those in use.
        nodes: all nodes and partitions.
    """

    working: int
    everything: int
    free: int
    partitions: Partitions
    nodes: NodeTable


def read_slurm_machine(
    nodes: str, partitions: str, names: Sequence[str], rules: SlurmRules
) -> SlurmMachine:
    """Returns the machine; without `names` of partitions in use, jobs go to the default one, and all processors count.

    Raises:
        ValueError: something else was shown, or there is none of these partitions.
    """
    groups = read_nodes(nodes, rules)
    each, default = read_partitions(partitions, groups, rules)
    used = {part.name for part in each if part.name in names or not names}
    if not used:
        raise ValueError(f"scontrol shows none of the partitions {', '.join(names) or '(any)'}")
    up = {part.name for part in each if part.name in used and part.takes and part.starts}
    working = everything = free = 0
    for group in groups:
        if group.partitions & used:
            everything += group.cores * len(group.names)
        if group.partitions & up:
            held = (group.cores - group.free_cores) * len(group.names)
            there = 0 if group.away else group.free_cores * len(group.names)
            working += held + there
            free += there
    if not everything:
        raise ValueError("scontrol shows no nodes of the partitions in use")
    usual = tuple(names) or ((default,) if default else ())
    chosen = Partitions(tuple(part for part in each if part.name in usual))
    table = NodeTable(groups, each, usual, enforced=rules.enforced, indexed=NodeIndex.of(groups))
    return SlurmMachine(working, everything, free, chosen, table)


# --- what is promised ----------------------------------------------------------------------------


def read_reservations(text: str) -> tuple[Promised, ...]:
    """Returns the nodes of the reservations that `scontrol show reservation` shows, with their moments.

    Raises:
        ValueError: it is something else.
    """
    if text.startswith("No reservations"):
        return ()
    found = _records(text, "ReservationName", _reservation)
    return tuple(each for each in found if each.nodes)


def _reservation(fields: Mapping[str, str]) -> Promised:
    nodes = fields["Nodes"]
    names = frozenset(() if nodes in _UNLIMITED else node_names(nodes))
    return Promised(_moment(fields["StartTime"]), _moment(fields["EndTime"]), names)


def _moment(text: str) -> float:
    return float(text) if text.isdecimal() else math.inf


def read_licences(text: str) -> dict[str, Licence]:
    """Returns the licences that `scontrol show license` shows.

    Raises:
        ValueError: it is something else.
    """
    if text.startswith("No licenses"):
        return {}
    return dict(_records(text, "LicenseName", _licence))


def _licence(fields: Mapping[str, str]) -> tuple[str, Licence]:
    return fields["LicenseName"], Licence(int(fields["Total"]), int(fields["Free"]))


def _records(text: str, first: str, make: Callable[[Mapping[str, str]], T]) -> list[T]:
    # Of lines that begin with the field `first`.
    found = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = read_job(line)
        if not line.startswith(f"{first}="):
            raise ValueError(f"scontrol says {line.strip()[:80]!r}, where {first} should be")
        try:
            found.append(make(fields))
        except KeyError as error:
            raise ValueError(f"scontrol shows no {error} of {fields[first][:80]}") from error
    return found
