"""What others mean by the same words: disciplines as simulators of learned schedulers have them.

docs/known-schedules/README.md says in what they differ from those of Hanse.
"""

import math

from lrms_sim.scheduling.user_defined import MachineView, QueuedJob


class CommittedSjf:
    """The shortest requested time first; a pick that does not fit is kept until it starts, whoever comes meanwhile."""

    name = "committed-sjf"

    def __init__(self) -> None:
        self.picked: int | None = None

    def decide(self, view: MachineView) -> None:
        """Starts the picked job if it fits, and picks the next."""
        if self.picked is None:
            # Nobody waited before: the pick was made when the first came, at which no pass need have been.
            first = view.waiting[0].submit_time
            came = [job for job in view.waiting if job.submit_time == first]
            self.picked = min(came, key=lambda job: job.requested_time).number
        while waiting := view.waiting:
            kept = [job for job in waiting if job.number == self.picked]
            job = kept[0] if kept else min(waiting, key=lambda each: each.requested_time)
            self.picked = job.number
            if job.processors > view.processors_free:
                return
            view.start(job)
            self.picked = None


class Unicep:
    """UNICEP: descending wait / (log2(processors) · requested time); one that does not fit blocks all others.

    With one processor the logarithm is 0: such jobs come first, by wait / requested time.
    """

    name = "unicep"

    def decide(self, view: MachineView) -> None:
        """Starts what is to start now."""

        def key(job: QueuedJob) -> tuple[bool, float]:
            ratio = (view.now - job.submit_time) / job.requested_time
            wide = job.processors > 1
            return wide, -ratio / (math.log2(job.processors) if wide else 1.0)

        for job in sorted(view.waiting, key=key):
            if job.processors > view.processors_free:
                break
            view.start(job)
