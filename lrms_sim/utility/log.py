"""The allocation log of a utility machine: which job held how many processors from when to when."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
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

    def rows(self) -> Iterator[tuple[float, str, int, int]]:
        """Yields time, kind, job and processors of each entry."""
        for entry in self.entries:
            yield (
                float(entry["time"]),
                KINDS[entry["kind"]],
                int(entry["job"]),
                int(entry["processors"]),
            )

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

    def check(self) -> None:
        """Checks that processors were conserved at every event.

        No job runs twice, is suspended or resized without running, or holds more than it asked
        for or less than it can run on; no machine gives more processors than it has; nobody
        runs before he has arrived or after he has gone; time does not run backward.

        Raises:
            AssertionError: the log breaks a rule; the text names the entry.
        """
        held: dict[int, tuple[int, int]] = {}
        free = list(self.processors)
        seen: set[int] = set()
        gone: set[int] = set()
        before = -np.inf
        for number, entry in enumerate(self.entries):
            kind, job = int(entry["kind"]), int(entry["job"])
            machine, count = int(entry["machine"]), int(entry["processors"])
            place = f"entry {number} ({KINDS[kind]} of job {job} at {entry['time']})"
            assert entry["time"] >= before, f"{place} is before the one above"
            assert job not in gone, f"{place}: the job is gone"
            before = entry["time"]
            if kind == _ARRIVE:
                assert job not in seen, f"{place}: it has arrived before"
                seen.add(job)
                continue
            assert job in seen, f"{place}: it has not arrived"
            if kind in {_SUSPEND, _RESIZE, _END}:
                assert job in held, f"{place}: it does not run"
                where, width = held.pop(job)
                assert where == machine, f"{place}: it runs on machine {where}"
                assert kind != _SUSPEND or width == count, f"{place}: it held {width}"
                free[machine] += width
            else:
                assert job not in held, f"{place}: it runs"
            if kind in {_START, _SQUEEZE, _RESIZE}:
                most = int(self.workload.jobs.processors[job])
                least = int(self.workload.processors_min[job])
                assert least <= count <= most, f"{place}: {count} of {least} to {most} processors"
                assert (kind != _START) or count == most, f"{place}: {count} of {most}"
                held[job] = (machine, count)
                free[machine] -= count
                assert free[machine] >= 0, f"{place}: {-free[machine]} processors too many"
            if kind in {_END, _DROP}:
                gone.add(job)
