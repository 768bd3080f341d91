"""Which jobs the parts of a machine take: a batch system's partitions or queues, as a look has shown them. Pure.

A part that is shut for new jobs may still start those that wait there (Slurm's DRAIN), and one that takes jobs may
start none of them (DOWN). A job that several parts could run is taken where any takes it.
"""

from typing import Final

from grms.values import dataclass


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of a machine that jobs are handed to.

    Attributes:
        name: of it.
        state: in the batch system's word.
        takes: new jobs can be handed to it.
        starts: what waits there starts when there is room.
        longest_s: the longest job that it runs, seconds; None for any.
        widest: the widest, processors; None for any.
    """

    name: str
    state: str
    takes: bool = True
    starts: bool = True
    longest_s: float | None = None
    widest: int | None = None

    def too_much(self, processors: int, requested_time: float) -> str:
        """Returns why no such job ever runs here, for a person; empty where one can.

        Args:
            processors: of the job.
            requested_time: of it, seconds.
        """
        if self.longest_s is not None and requested_time > self.longest_s:
            return f"the longest job in {self.name} may run {self.longest_s / 60:g} min"
        if self.widest is not None and processors > self.widest:
            return f"the widest job in {self.name} may have {self.widest} processors"
        return ""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The parts to which a site's jobs are handed.

    Attributes:
        each: of them; nothing where the batch system has none, or says nothing of them: then any job is taken.
    """

    each: tuple[Partition, ...] = ()

    def never(self, processors: int, requested_time: float) -> str:
        """Returns why no part runs such a job, whatever its state; empty where one does.

        Args:
            processors: of the job.
            requested_time: of it, seconds.
        """
        reasons = [one.too_much(processors, requested_time) for one in self.each]
        return "" if not reasons or not all(reasons) else "; ".join(reasons)

    def shut(self, processors: int, requested_time: float) -> str:
        """Returns why no part that runs such a job can be handed one now; empty where one can.

        Args:
            processors: of the job.
            requested_time: of it, seconds.
        """
        fit = self._fit(processors, requested_time)
        return "" if any(one.takes for one in fit) else _states(fit)

    def why_not(self, processors: int, requested_time: float) -> str:
        """Returns why such a job, handed in now, would not start however much room there is; empty where it would.

        Args:
            processors: of the job.
            requested_time: of it, seconds.
        """
        fit = self._fit(processors, requested_time)
        blocked = "" if any(one.takes and one.starts for one in fit) else _states(fit)
        return self.never(processors, requested_time) or blocked

    def stays(self, processors: int, requested_time: float) -> str:
        """Returns why such a job, which waits there, does not start however much room there is; empty where it does.

        Args:
            processors: of the job.
            requested_time: of it, seconds.
        """
        fit = self._fit(processors, requested_time)
        blocked = "" if any(one.starts for one in fit) else _states(fit)
        return self.never(processors, requested_time) or blocked

    def _fit(self, processors: int, requested_time: float) -> list[Partition]:
        return [one for one in self.each if not one.too_much(processors, requested_time)]

    @property
    def still(self) -> str:
        """Why nothing that waits starts, in whatever part; empty where something does."""
        return "" if any(one.starts for one in self.each) else _states(self.each)


def _states(parts: "list[Partition] | tuple[Partition, ...]") -> str:
    return ", ".join(f"{one.name} is {one.state}" for one in parts)


NO_PARTITIONS: Final = Partitions()
"""Any job is taken."""
