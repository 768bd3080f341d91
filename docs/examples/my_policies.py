"""Queue disciplines and policies of one's own, as docs/own-policies.md describes them."""

import math
from collections.abc import Sequence

from grms.policy.location import PartnerRecord
from grms.policy.transfer import TransferQuestion
from lrms_sim.scheduling.user_defined import MachineView, QueuedJob


class Sjf:
    """The shortest requested time first; a job that does not fit blocks all others."""

    name = "my-sjf"

    def decide(self, view: MachineView) -> None:
        """Starts what is to start now."""
        for job in sorted(view.waiting, key=lambda job: job.requested_time):
            if job.processors > view.processors_free:
                break
            view.start(job)


class QueueLengths(Sjf):
    """The same, and how long the queue was when each job came."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def submitted(self, view: MachineView, _job: QueuedJob) -> None:
        """Notes the length of the queue, with the new job."""
        self.lengths.append(len(view.waiting))

    def notes(self) -> dict[str, int]:
        """Returns what comes back from the machine's own copy."""
        return {"longest_queue": max(self.lengths, default=0)}


class Threshold:
    """Wants a job while no more waits than twice the machine."""

    name = "my-threshold"

    def accept(self, question: TransferQuestion) -> bool:
        """Says whether the site wants to run the job itself."""
        return question.processors_waiting <= 2 * question.processors


def slowest_last(partners: list[PartnerRecord]) -> list[str]:
    """Asks first those where one's own jobs came back soonest, as `awrt` does."""
    return [partner.name for partner in sorted(partners, key=lambda partner: partner.awrt)]


def fcfs(view: MachineView) -> None:
    """Starts the head of the queue as long as it fits."""
    while (job := view.head) is not None and job.processors <= view.processors_free:
        view.start(job)


def end_of(job: QueuedJob) -> float:
    """Returns when a running job ends at the latest."""
    return math.inf if job.estimated_end is None else job.estimated_end


class MyEasy:
    """EASY backfilling, as `easy` does it."""

    name = "my-easy"

    def decide(self, view: MachineView) -> None:
        """Starts heads, then those that do not delay the one that is blocked."""
        fcfs(view)
        if view.head is None or view.processors_free == 0:
            return
        shadow_time, extra = self.shadow(view, view.head)
        for job in view.waiting[1:]:
            ends_in_time = view.now + job.requested_time <= shadow_time
            if job.processors <= view.processors_free and (ends_in_time or job.processors <= extra):
                view.start(job)
                if not ends_in_time:
                    extra -= job.processors

    def shadow(self, view: MachineView, head: QueuedJob) -> tuple[float, int]:
        """Returns when the head fits, by estimates, and how many processors are left then."""
        free, shadow_time = view.processors_free, math.inf
        for job in sorted(view.running, key=end_of):
            if end_of(job) > shadow_time:
                break
            free += job.processors
            if free >= head.processors:
                shadow_time = end_of(job)
        return shadow_time, free - head.processors


class MyRuleBase:
    """A rule base, as `RuleBase` decides.

    Args:
        rules: (γ and σ of NWP, γ and σ of NJP, +1 or -1) each.
    """

    name = "my-rule-base"

    def __init__(self, rules: Sequence[tuple[float, float, float, float, float]]) -> None:
        self.rules = rules

    def accept(self, question: TransferQuestion) -> bool:
        """Says whether the site wants to run the job itself."""
        nwp = question.processors_waiting / question.processors
        njp = 100.0 * question.job_processors / question.processors
        total = 0.0
        for nwp_gamma, nwp_sigma, njp_gamma, njp_sigma, output in self.rules:
            x, y = (nwp - nwp_gamma) / nwp_sigma, (njp - njp_gamma) / njp_sigma
            total += (math.exp(-(x * x)) * math.exp(-(y * y))) * output
        return total > 0.0
