"""The progress of a site's rounds of offers, from the journal.

A daemon that dies within a round resumes it after its start at the same point: the job whose turn it was and the
partner whose answer had not arrived. Everything follows from the round's beginning (`RoundHeld`) and the steps of
its jobs (`JobReoffered`, `JobReofferEnded`, `JobLeft`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from grms.policy.rebalancing import Pauses, Rebalancing, Waiting, lengthen, ordered
from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import JobState
from grms.site.model.records import RoundHeld


def may_wait(at_lrms: Iterable[HomeJob | GuestJob]) -> Iterator[HomeJob]:
    """Yields local users' jobs that wait in the batch system, as far as the journal knows."""
    for job in at_lrms:
        if isinstance(job, HomeJob) and job.state is not JobState.RUNNING:
            yield job


def as_waiting(job: HomeJob) -> Waiting:
    """Returns a job as rounds see it."""
    return Waiting(job.job, job.request.processors, job.request.requested_time)


class RebalanceBook:
    """The rounds of a site.

    Attributes:
        begun: when the last round with a question began, seconds; minus infinity for none.
        open: it is not over.
        order: its jobs, in the order of their turns.
        job: whose turn it is; 0 before the first question.
        asked: partners asked about that job that have answered, or are to, in order.
        again: the partner whose answer to the last question has not arrived; empty for none.
        put: number of questions to each partner about that job.
        questions: number of those in the round that were answered, or are to be.
        declined: the jobs that were declined in it, and by whom.
        moved: numbers of the jobs that have left the queue in it.
        pauses: until when a job is not to be offered to a partner, and how long the pause is; of all rounds.
    """

    def __init__(self) -> None:
        self.begun = -math.inf
        self.open = False
        self.order: list[Waiting] = []
        self.job = 0
        self.asked: list[str] = []
        self.again = ""
        self.put: Counter[str] = Counter()
        self.questions = 0
        self.declined: list[tuple[Waiting, str]] = []
        self.moved: list[int] = []
        self.pauses: Pauses = {}

    def held(
        self,
        record: RoundHeld,
        at_lrms: Iterable[HomeJob | GuestJob],
        rounds: float | Rebalancing | None,
    ) -> None:
        """Begins or ends a round, as the record says; `at_lrms` is what the batch system has."""
        self.open = not record.over
        if record.over:
            return
        out = set(record.left_out)
        self.begun = record.time
        self.order = ordered((as_waiting(j) for j in may_wait(at_lrms) if j.job not in out), rounds)
        self.job, self.questions = 0, 0
        self.asked, self.again, self.declined, self.moved = [], "", [], []
        self.pauses = {
            one.job: self.pauses[one.job] for one in self.order if one.job in self.pauses
        }

    def ask(self, job: int, partner: str) -> None:
        """Notes a question."""
        if not self.open:
            return
        if job != self.job:
            self.job, self.asked = job, []
            self.put.clear()
        self.asked.append(partner)
        self.put[partner] += 1
        self.again = ""
        self.questions += 1

    def decline(self, rounds: float | Rebalancing | None, job: HomeJob, now: float) -> None:
        """Notes a decline, or that the question was never sent.

        The job still has the partner that was asked. `now` is in seconds.
        """
        if isinstance(rounds, Rebalancing):
            lengthen(self.pauses, rounds, job.job, job.partner, now)
        if self.open:
            self.declined.append((as_waiting(job), job.partner))

    def give_up(self, job: int, partner: str) -> None:
        """Notes that a question went unanswered."""
        if self.open and job == self.job and self.asked[-1:] == [partner]:
            self.again = self.asked.pop()
            self.questions -= 1

    def leave(self, job: int) -> None:
        """Notes that a job has left the queue."""
        if self.open:
            self.moved.append(job)
