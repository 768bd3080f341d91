"""Parses Slurm's description of its machine: size, partitions, limits, scheduler. Pure.

Partition states (scontrol(1), "State"): new jobs are accepted in UP or DOWN, and refused by `sbatch` in DRAIN or
INACTIVE; waiting jobs start in UP or DRAIN.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from grms.lrms.partitions import Partition, Partitions


def read_scheduler(text: str) -> str:
    """Returns the kind of scheduler (`backfill`, `builtin`) of what `scontrol show config` has printed; may be empty."""
    found = re.search(r"^SchedulerType\s*=\s*sched/(\w+)\s*$", text, re.MULTILINE)
    return "" if found is None else found.group(1)


def read_machine(text: str) -> tuple[int, int, int]:
    """Returns the working, all, and free processors.

    `text` is printed by sinfo for `%C`: allocated/idle/other/total; `other` are on nodes that are down or drained.

    Raises:
        ValueError: it is something else.
    """
    found = re.fullmatch(r"(\d+)/(\d+)/(\d+)/(\d+)\s*", text.strip())
    if found is None:
        raise ValueError(f"sinfo says {text.strip()[:80]!r}, not allocated/idle/other/total")
    allocated, idle, _, everything = (int(number) for number in found.groups())
    return allocated + idle, everything, idle


def whole_minutes(requested_time: float) -> int:
    """Returns a limit in seconds in whole minutes, rounded up as Slurm does."""
    return max(1, -int(-requested_time // 60))


def read_limit(text: str) -> float | None:
    """Returns a limit printed by Slurm, in seconds; `None` for none (`UNLIMITED`, `infinite`).

    Raises:
        ValueError: it is no limit.
    """
    if text in {"UNLIMITED", "infinite", "NOT_SET", "N/A", "NONE"}:
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no time limit as Slurm writes them")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()


# --- partitions ----------------------------------------------------------------------------------

PARTS_FORMAT: Final = "%P|%a|%l|%s|%c|%D"
"""Format for `sinfo -e`: partition, state, longest job, widest in nodes, processors per node, nodes of that size."""

SIZES_FORMAT: Final = "%a|%C"
"""Second format: by state the processors allocated, idle, other, all; a node once in each."""

_TAKES: Final = {"drain": False, "inact": False, "inactive": False}
_STARTS: Final = {"down": False, "inact": False, "inactive": False}

_BY_PARTITION: Final = frozenset(
    (
        "PartitionDown",
        "PartitionInactive",
        "PartitionTimeLimit",
        "PartitionNodeLimit",
        "PartitionConfig",
    )
)
"""Reasons given by one of a job's partitions; another may run it all the same (squeue(1), "Job reason codes")."""

_LIMITS: Final = _BY_PARTITION - {"PartitionDown", "PartitionInactive"}

_NEVER: Final = re.compile(
    r"BadConstraints|AccountNotAllowed|QOSNotAllowed|InvalidAccount|InvalidQOS|MaxMemPerLimit"
    r"|(Assoc|QOS)Max\w*(PerJob|PerNode)Limit"
)
"""Reasons for which a job never starts anywhere: limits of one job, and its owner."""


@dataclass(frozen=True, slots=True)
class SlurmMachine:
    """A machine as sinfo shows it.

    Attributes:
        working: processors that work, in partitions that accept and start jobs.
        everything: all in the partitions in use.
        free: working ones that no job holds.
    """

    working: int
    everything: int
    free: int
    partitions: Partitions


def read_slurm_machine(parts: str, sizes: str, names: Iterable[str]) -> SlurmMachine:
    """Parses output of sinfo in `PARTS_FORMAT` and `SIZES_FORMAT`; without `names`, the default partition.

    Raises:
        ValueError: it is something else, or has none of these partitions.
    """
    working = free = everything = 0
    for line in _lines(sizes):
        state, _, counts = line.partition("|")
        working_there, all_there, free_there = read_machine(counts)
        everything = max(everything, all_there)
        if state == "up":
            working, free = working_there, free_there
    if not everything:
        raise ValueError(f"sinfo says {sizes.strip()[:80]!r}, not states with their processors")
    return SlurmMachine(working, everything, free, read_partitions(parts, names))


def read_partitions(text: str, names: Iterable[str]) -> Partitions:
    """Returns the partitions in use from output in `PARTS_FORMAT`; without `names`, the default one (with a star).

    Raises:
        ValueError: it is something else, or has none of these.
    """
    wanted = set(names)
    found: dict[str, tuple[str, str, str, list[int]]] = {}
    for line in _lines(text):
        fields = line.split("|")
        if len(fields) != 6:
            raise ValueError(f"sinfo says {line[:80]!r}, not a partition")
        name, state, longest, nodes, size, count = fields
        if (name.rstrip("*") in wanted) if wanted else name.endswith("*"):
            row = found.setdefault(name.rstrip("*"), (state, longest, nodes, []))
            row[3].extend([_number(size)] * _number(count))
    if wanted and not found:
        raise ValueError(f"sinfo shows none of the partitions {', '.join(sorted(wanted))}")
    each = (_partition(name, *values) for name, values in sorted(found.items()))
    return Partitions(tuple(each))


def _partition(name: str, state: str, longest: str, nodes: str, sizes: list[int]) -> Partition:
    most = nodes.rpartition("-")[2]
    used = sorted(sizes, reverse=True)
    if most != "infinite":
        used = used[: _number(most)]
    return Partition(
        name,
        state.upper(),
        takes=_TAKES.get(state, True),
        starts=_STARTS.get(state, True),
        longest_s=read_limit(longest),
        widest=sum(used),
    )


def _number(text: str) -> int:
    found = re.match(r"\d+", text)
    if found is None:
        raise ValueError(f"sinfo says {text[:80]!r} for a number")
    return int(found.group())


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def hindrance(reason: str, partitions: Partitions, wanted: tuple[int, float] | None) -> str:
    """Returns what a waiting job waits for other than room; empty if it is, or may be, room.

    One partition's reason counts if no other could run the job. `reason` is Slurm's word, `wanted` the job's
    processors and requested seconds, if known.
    """
    word = reason.partition(",")[0].strip("()")
    if _NEVER.fullmatch(word) is not None:
        return f"Slurm says {word}"
    if word not in _BY_PARTITION:
        return ""
    why = partitions.still
    if not why and wanted is not None:
        why = partitions.stays(*wanted)
    elif not why and word in _LIMITS and len(partitions.each) == 1:
        why = f"{partitions.each[0].name} runs no such job"
    return f"{why} (Slurm says {word})" if why else ""
