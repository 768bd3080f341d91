"""What the journal says of a site's rounds of offers: how far the one under way has come.

A daemon that dies within a round goes on with it after its start, where it was: with the job whose turn it
was and the partner whose answer had not come. Everything follows from the round's beginning (`RoundHeld`)
and the steps of its jobs (`JobReoffered`, `JobReofferEnded`, `JobLeft`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from grms.policy.round_notes import Pauses, Waiting, lengthen, ordered
from grms.policy.rounds import Rounds
from grms.site.facts.jobs import GuestJob, HomeJob
from grms.site.facts.lifecycle import JobState
from grms.site.facts.records import RoundHeld


def may_wait(at_lrms: Iterable[HomeJob | GuestJob]) -> Iterator[HomeJob]:
    """Yields own users' jobs that wait in the batch system, as far as the journal says.

    Args:
        at_lrms: what the batch system has.
    """
    for job in at_lrms:
        if isinstance(job, HomeJob) and job.state is not JobState.RUNNING:
            yield job


def as_waiting(job: HomeJob) -> Waiting:
    """Returns what a round looks at of a job."""
    return Waiting(job.job, job.request.processors, job.request.requested_time)


class RoundBook:
    """The rounds of a site.

    Attributes:
        begun: when the last round began in which a partner was asked, seconds; minus infinity for none.
        open: it is not over.
        order: its jobs, in the order in which they have their turns.
        job: whose turn it is; 0 before the first question.
        asked: the partners that have been asked about that job and have answered, or are to, in order.
        again: the partner whose answer to the last question has not come; empty for none.
        put: how often each partner was asked about that job.
        questions: that were answered in the round, or are to be.
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
        rounds: float | Rounds | None,
    ) -> None:
        """Begins or ends a round.

        Args:
            record: which of both.
            at_lrms: what the batch system has.
            rounds: how rounds are held.
        """
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

    def decline(self, rounds: float | Rounds | None, job: HomeJob, now: float) -> None:
        """Notes a no, or that the question was never sent.

        Args:
            rounds: how rounds are held.
            job: it has still the partner that was asked.
            now: seconds.
        """
        if isinstance(rounds, Rounds):
            lengthen(self.pauses, rounds, job.job, job.partner, now)
        if self.open:
            self.declined.append((as_waiting(job), job.partner))

    def give_up(self, job: int, partner: str) -> None:
        """Notes that a question has had no answer."""
        if self.open and job == self.job and self.asked[-1:] == [partner]:
            self.again = self.asked.pop()
            self.questions -= 1

    def leave(self, job: int) -> None:
        """Notes that a job has left the queue."""
        if self.open:
            self.moved.append(job)
