"""The allocation log of a utility machine: which job held how many processors from when to when."""

from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

from lrms_sim.utility.jobs import UtilityJobs

KINDS: Final = ("arrive", "start", "squeeze", "suspend", "resize", "end", "drop")
"""What an entry says, by number; a `squeeze` is a start on fewer processors than asked for."""

_ARRIVE, _START, _SQUEEZE, _SUSPEND, _RESIZE, _END, _DROP = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class Allocation:
    """A stretch in which a job held the same processors.

    Attributes:
        job: row of the workload.
        machine: its number.
        start: seconds.
        end: seconds; where the log ends if the job still ran.
        processors: held.
        ending: what ended it: "end", "suspend", "resize", or "" where the log did.
    """

    job: int
    machine: int
    start: float
    end: float
    processors: int
    ending: str


@dataclass(frozen=True, slots=True, eq=False)
class AllocationLog:
    """What has happened to whom, in order.

    Attributes:
        entries: structured array with `time`, `job` (row of the workload), `processors`,
            `machine`, `kind` (index into `KINDS`).
        processors: the size of each machine.
        workload: the jobs.
    """

    entries: npt.NDArray[Any]
    processors: tuple[int, ...]
    workload: UtilityJobs

    def __len__(self) -> int:
        return len(self.entries)

    def allocations(self, until: float | None = None) -> list[Allocation]:
        """Returns who held what when, in the order in which the stretches began.

        Args:
            until: where the stretches of running jobs end, in seconds; at the last entry where
                left out.
        """
        end = (
            until
            if until is not None
            else (float(self.entries["time"][-1]) if len(self.entries) else 0.0)
        )
        open_at: dict[int, int] = {}
        found: list[Allocation] = []
        for entry in self.entries:
            kind, job, time = int(entry["kind"]), int(entry["job"]), float(entry["time"])
            if kind in {_SUSPEND, _RESIZE, _END}:
                place = open_at.pop(job)
                begun = found[place]
                found[place] = Allocation(
                    job, begun.machine, begun.start, time, begun.processors, KINDS[kind]
                )
            if kind in {_START, _SQUEEZE, _RESIZE}:
                open_at[job] = len(found)
                machine, width = int(entry["machine"]), int(entry["processors"])
                found.append(Allocation(job, machine, time, end, width, ""))
        return [each for each in found if each.end > each.start or each.ending != "resize"]
