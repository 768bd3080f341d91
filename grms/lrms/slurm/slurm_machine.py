"""Parses Slurm's words for its machine: lists of nodes, and why a job waits. Pure."""

import itertools
import math
import re
import sys
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from grms.lrms.partitions import Partitions
from lrms_sim.workload.requests import Request

# --- nodes ---------------------------------------------------------------------------------------

NODES_MAX: Final = 1_000_000
"""Longest list of nodes that is read."""


@lru_cache(maxsize=512)
def node_names(text: str) -> tuple[str, ...]:
    """Returns the nodes of a list as Slurm prints it, such as `n[1-3,7],rack[1-2]n[01-10]`.

    Raises:
        ValueError: it is no list, or has too many.
    """
    names: list[str] = []
    for word in re.split(r",(?![^\[]*\])", text):
        parts = re.split(r"\[([^\]]*)\]", word)
        # Between the brackets of a word is every second part.
        choices = [_numbers(part) if at % 2 else [part] for at, part in enumerate(parts)]
        if len(names) + math.prod(map(len, choices)) > NODES_MAX:
            raise ValueError(f"{text[:40]!r} are more than {NODES_MAX} nodes")
        # One text for each node, however many of the lists that are kept have it.
        names += [sys.intern("".join(choice)) for choice in itertools.product(*choices)]
    return tuple(names)


def _numbers(text: str) -> list[str]:
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise ValueError(f"{text[:40]!r} are no numbers of nodes")
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) >= NODES_MAX:
            raise ValueError(f"{text[:40]!r} are more than {NODES_MAX} nodes")
        found += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return found


# --- partitions ----------------------------------------------------------------------------------

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

_BARRED: Final = re.compile(r"Job's (account|QOS) not (permitted|known)")
"""How reasons begin with which a partition does not take an account or QOS; another may."""


DEFERRED: Final = MappingProxyType(
    {
        "BeginTime": "its start was put off in the batch system",
        "Dependency": "it was told in the batch system to wait for another job",
        "DependencyNeverSatisfied": "it was told in the batch system to wait for another job, which did not end as it should",
    }
)
"""Reasons of jobs that wait as somebody has told Slurm, in words; a site itself lets none of its jobs wait so."""

NOT_PREPARED: Final = "launch failed requeued held"
"""Reason of a job whose node could not be prepared for it, as where a prolog fails; Slurm holds it until somebody releases it."""

REQUEUED_HELD: Final = "job requeued in held state"
"""Reason of a job that somebody has requeued in order to hold it."""


def hindrance(reason: str, partitions: Partitions, request: Request | None) -> str:
    """Returns what a waiting job waits for other than room; empty if it is, or may be, room.

    One partition's reason counts if no other could run the job. `reason` is Slurm's word, `partitions` are those
    that the job was submitted to, and `request` is what it asks for, if known.
    """
    if _BARRED.match(reason) is not None:
        return f"Slurm says: {reason}" if len(partitions.each) == 1 else ""
    word = reason.partition(",")[0].strip("()")
    if word in DEFERRED:
        return f"{DEFERRED[word]} (Slurm says {word})"
    if word == NOT_PREPARED:
        return f"its node could not be prepared for it, and it is held (Slurm says {word})"
    if _NEVER.fullmatch(word) is not None:
        return f"Slurm says {word}"
    if word not in _BY_PARTITION:
        return ""
    why = partitions.still
    if not why and request is not None:
        why = partitions.stays(request.processors, request.wall_time or 0.0)
    elif not why and word in _LIMITS and len(partitions.each) == 1:
        why = f"{partitions.each[0].name} runs no such job"
    return f"{why} (Slurm says {word})" if why else ""
