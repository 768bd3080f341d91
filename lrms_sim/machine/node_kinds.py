"""Kinds of nodes, and machines made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lrms_sim.util.columns import is_whole
from lrms_sim.workload.requests import COUNT_MAX, MEMORY_MAX

Placement = Literal["best-fit", "first-fit"]
KINDS_MAX = 64
"""Kinds of nodes in one machine: a job's kinds are a set of 64 bits."""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are all alike.

    Attributes:
        name: unique within the machine.
        nodes: how many there are.
        cores: of each node.
        memory: of each node, MiB; 0 where nobody counts it: then every job's memory fits.
        gpus: of each node.
        gpu_type: their type.
        features: names that jobs may ask for.
    """

    name: str
    nodes: int
    cores: int
    memory: int = 0
    gpus: int = 0
    gpu_type: str = ""
    features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: one is out of range.
        """
        for what, number, least, most in (
            ("nodes", self.nodes, 1, COUNT_MAX),
            ("cores", self.cores, 1, 2**15),
            ("memory", self.memory, 0, MEMORY_MAX),
            ("GPUs", self.gpus, 0, 2**15),
        ):
            if not is_whole(number, least, most):
                raise ValueError(
                    f"node kind {self.name!r}: {what} is {number!r}; it must be a whole number from "
                    f"{least} to {most}"
                )


@dataclass(frozen=True, slots=True)
class NodeMachine:
    """A machine of nodes.

    Attributes:
        kinds: in the order in which they are filled: put first what is asked for least by jobs that
            need something special, as Slurm's `Weight` does.
        placement: which of a kind's nodes is taken first: the one with the fewest free cores
            (`best-fit`) or the one with the lowest number (`first-fit`).
        name: in schedules.
        licences: how many there are of each for all nodes together, by name.
    """

    kinds: tuple[NodeKind, ...]
    placement: Placement = "best-fit"
    name: str = "machine"
    licences: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        """Checks the kinds and licences.

        Raises:
            ValueError: there is no kind, there are more than 64, two have one name, or a number is out of
                range.
        """
        if not 1 <= len(self.kinds) <= KINDS_MAX:
            raise ValueError(
                f"{len(self.kinds)} kinds of nodes; from 1 to {KINDS_MAX} are possible"
            )
        names = [kind.name for kind in self.kinds]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two kinds of nodes are called {twice!r}")
        if self.placement not in ("best-fit", "first-fit"):
            raise ValueError(f"placement {self.placement!r}; there are best-fit and first-fit")
        if self.processors > COUNT_MAX:
            raise ValueError(f"{self.processors} cores in all; at most {COUNT_MAX} are possible")
        names = [name for name, _ in self.licences]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"licence {twice!r} is there twice")
        for name, count in self.licences:
            if not 0 <= count <= COUNT_MAX:
                raise ValueError(f"licence {name!r}: {count} is not from 0 to {COUNT_MAX}")

    @property
    def processors(self) -> int:
        """Cores of all nodes."""
        return sum(kind.nodes * kind.cores for kind in self.kinds)

    @property
    def memory(self) -> int:
        """Memory of all nodes, MiB."""
        return sum(kind.nodes * kind.memory for kind in self.kinds)

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return sum(kind.nodes * kind.gpus for kind in self.kinds)

    def kinds_for(self, gpu_type: str, features: Sequence[str]) -> int:
        """Returns the kinds with these features, and with that type of GPU where one is named.

        Returns:
            The set as bits; bit k for the k-th kind.
        """
        wanted = frozenset(features)
        return sum(
            1 << number
            for number, kind in enumerate(self.kinds)
            if wanted <= kind.features and (not gpu_type or gpu_type == kind.gpu_type)
        )
