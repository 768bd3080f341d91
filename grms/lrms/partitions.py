"""Which jobs a batch system's partitions or queues accept, by a poll. Pure.

A partition closed to new jobs may still start its waiting ones (Slurm's DRAIN), and one that accepts jobs may start
none (DOWN). A job that several partitions could run is accepted if any accepts it.
"""

from collections.abc import Iterable
from typing import Final

from grms.util.values import dataclass
from lrms_sim.workload.requests import Memory, Request


@dataclass(frozen=True, slots=True)
class Admitted:
    """Accounts or QOS whose jobs a partition takes: those of `names`, or, if `barred`, all others."""

    names: frozenset[str] = frozenset()
    barred: bool = True

    def has(self, name: str) -> bool:
        """Returns whether jobs of this one are taken; the empty name is one that the batch system chooses."""
        return not name or (name.lower() in self.names) != self.barred


EVERY: Final = Admitted()
"""All are."""


@dataclass(frozen=True, slots=True)
class Charged:
    """Account and QOS under which jobs are submitted that name none; empty for those that the batch system chooses."""

    account: str = ""
    qos: str = ""


UNNAMED: Final = Charged()
"""The batch system chooses both."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition or queue of the machine.

    Attributes:
        state: in the batch system's words.
        takes: accepts new jobs.
        starts: starts waiting jobs when there is room.
        longest_s: longest job, seconds; `None` for any.
        widest: in processors; `None` for any.
        nodes_min, nodes_max: of a job; `None` for any.
        cores_max: of a job on one node; `None` for any.
        memory_max: of a job on one node, MiB; `None` for any.
        core_memory_max: of a job for each of its cores on a node, MiB; `None` for any.
        default_memory: of a job that asks for none.
        default_gpu_memory: of a job that asks for none, and for GPUs: for each of these, MiB.
        default_gpu_cores: of a job whose tasks have one core, and that asks for GPUs: at least so many for each.
        all_memory: a job that asks for none, and has no default, takes all memory of its nodes.
        whole_nodes: every job has its nodes for itself.
        accounts, qos: whose jobs it takes.
    """

    name: str
    state: str
    takes: bool = True
    starts: bool = True
    longest_s: float | None = None
    widest: int | None = None
    nodes_min: int = 1
    nodes_max: int | None = None
    cores_max: int | None = None
    memory_max: int | None = None
    core_memory_max: int | None = None
    default_memory: Memory | None = None
    default_gpu_memory: int | None = None
    default_gpu_cores: int = 0
    all_memory: bool = False
    whole_nodes: bool = False
    accounts: Admitted = EVERY
    qos: Admitted = EVERY

    def refuses(self, request: Request) -> str:
        """Returns why no such job ever runs here, for people; empty if one can, as far as its nodes go."""
        return self.bars(request) or self.too_much(request.processors, request.wall_time or 0.0)

    def bars(self, request: Request) -> str:
        """Returns why no job of such an account or QOS runs here, for people; empty if one can."""
        if not self.accounts.has(request.account):
            return f"{self.name} takes no jobs of account {request.account}"
        if not self.qos.has(request.qos):
            return f"{self.name} takes no jobs of QOS {request.qos}"
        return ""

    def too_much(self, processors: int, requested_time: float) -> str:
        """Returns why no such job (requested time in seconds) ever runs here, for people; empty if one can."""
        if self.longest_s is not None and requested_time > self.longest_s:
            return f"the longest job in {self.name} may run {self.longest_s / 60:g} min"
        if self.widest is not None and processors > self.widest:
            return f"the widest job in {self.name} may have {self.widest} processors"
        return ""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions to which a site's jobs are submitted; if empty, any job is accepted."""

    each: tuple[Partition, ...] = ()

    def never(self, processors: int, requested_time: float) -> str:
        """Returns why no partition runs such a job, whatever its state; empty if one does."""
        reasons = [one.too_much(processors, requested_time) for one in self.each]
        return "" if not reasons or not all(reasons) else "; ".join(reasons)

    def shut(self, processors: int, requested_time: float) -> str:
        """Returns why no partition that runs such a job accepts one now; empty if one does."""
        fit = self._fit(processors, requested_time)
        return "" if any(one.takes for one in fit) else states_of(fit)

    def why_not(self, processors: int, requested_time: float) -> str:
        """Returns why such a job, submitted now, would not start even with room; empty if it would."""
        fit = self._fit(processors, requested_time)
        blocked = "" if any(one.takes and one.starts for one in fit) else states_of(fit)
        return self.never(processors, requested_time) or blocked

    def stays(self, processors: int, requested_time: float) -> str:
        """Returns why such a job, already waiting, does not start even with room; empty if it does."""
        fit = self._fit(processors, requested_time)
        blocked = "" if any(one.starts for one in fit) else states_of(fit)
        return self.never(processors, requested_time) or blocked

    def _fit(self, processors: int, requested_time: float) -> list[Partition]:
        return [one for one in self.each if not one.too_much(processors, requested_time)]

    @property
    def still(self) -> str:
        """Why no partition starts waiting jobs; empty if one does."""
        return "" if any(one.starts for one in self.each) else states_of(self.each)


def states_of(parts: Iterable[Partition]) -> str:
    """Returns what state each of some partitions is in, for people."""
    return ", ".join(f"{one.name} is {one.state}" for one in parts)


NO_PARTITIONS: Final = Partitions()
"""Any job is accepted."""
