"""The allocation log of a utility machine: which job held how many processors from when to when."""

from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

from lrms_sim.malleable.jobs import UtilityJobs

KINDS: Final = ("arrive", "start", "squeeze", "suspend", "resize", "end", "drop")
"""Kinds of entries, by number; a `squeeze` is a start on fewer processors than requested."""

_ARRIVE, _START, _SQUEEZE, _SUSPEND, _RESIZE, _END, _DROP = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class Allocation:
    """A stretch in which a job held the same processors.

    Attributes:
        job: row of the workload.
        start: seconds.
        end: seconds; the log's end if the job still ran.
        processors: held.
        ending: "end", "suspend", "resize", or "" at the log's end.
    """

    job: int
    machine: int
    start: float
    end: float
    processors: int
    ending: str


@dataclass(frozen=True, slots=True, eq=False)
class AllocationLog:
    """The events of a run, in order.

    Attributes:
        entries: structured array with `time`, `job` (row of the workload), `processors`,
            `machine`, `kind` (index into `KINDS`).
        processors: the size of each machine.
    """

    entries: npt.NDArray[Any]
    processors: tuple[int, ...]
    workload: UtilityJobs

    def __len__(self) -> int:
        return len(self.entries)

    def allocations(self, until: float | None = None) -> list[Allocation]:
        """Returns the stretches in order of their begin.

        Those of running jobs end at `until`, in seconds, by default at the last entry.
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
