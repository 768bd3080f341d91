"""Nodes of a machine that are alike, and what is promised of them. Pure data."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike, and of which as much is free.

    Attributes:
        names: of the nodes.
        partitions: which have them.
        cores: that jobs may have, of each.
        memory: MiB of each; 0 where nobody counts it: then every job's memory fits.
        gpus: how many of each type.
        features: names that jobs may ask for.
        free_cores, free_memory, free_gpus: what no job holds.
        idle: no job is on it.
        away: why it starts no job, in the batch system's words; empty if it works.
        step: cores are given out in multiples of so many.
        task_step: likewise to each task of a job.
        weight: nodes of the least weight are taken first.
    """

    names: tuple[str, ...]
    partitions: frozenset[str]
    cores: int
    memory: int = 0
    gpus: tuple[tuple[str, int], ...] = ()
    features: frozenset[str] = frozenset()
    free_cores: int = 0
    free_memory: int = 0
    free_gpus: tuple[tuple[str, int], ...] = ()
    idle: bool = True
    away: str = ""
    step: int = 1
    task_step: int = 1
    weight: int = 1

    def as_empty(self) -> "NodeGroup":
        """Returns the nodes as they are when everything works and nobody uses them."""
        return replace(
            self,
            free_cores=self.cores,
            free_memory=self.memory,
            free_gpus=self.gpus,
            idle=True,
            away="",
        )


def grouped(nodes: Iterable[NodeGroup]) -> tuple[NodeGroup, ...]:
    """Returns the groups of nodes, given one by one, in order of their first nodes."""
    found: dict[NodeGroup, list[str]] = {}
    for node in nodes:
        found.setdefault(replace(node, names=()), []).extend(node.names)
    return tuple(replace(group, names=tuple(names)) for group, names in found.items())


@dataclass(frozen=True, slots=True)
class Promised:
    """Nodes that somebody else is to have: a waiting job by its plan, or a reservation.

    Attributes:
        begin, end: seconds.
        nodes: their names.
    """

    begin: float
    end: float
    nodes: frozenset[str]
