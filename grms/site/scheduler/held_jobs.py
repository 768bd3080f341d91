"""Held jobs: released when nothing is waited for any more, and ended when that cannot be.

Both follow from what is in the journal, and are looked for after every event: whatever ends a job, here, at a
partner, by its user or an operator, its dependents follow in the same turn, and so do theirs. A daemon that dies in
between finds them after its restart.
"""

from typing import Final

from grms.site.model.commands import TellLoad
from grms.site.model.events import Event, LoadedEvent
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import JobReleased
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.outgoing_offers import OfferHandler
from grms.site.scheduler.transaction import Transaction
from grms.util.dependencies import Dependency

RELEASED_AT_ONCE: Final = 1000
"""Most jobs released in one turn; the others follow behind the events that have come meanwhile, by the load of then."""


class HeldJobHandler:
    """Releases held jobs, and ends those whose dependencies cannot be met."""

    def __init__(self, memory: StateTables, offers: OfferHandler) -> None:
        self.memory = memory
        self.offers = offers
        self._asked = False

    def carry_on(self, event: Event, transaction: Transaction) -> None:
        """Continues after an event; called after every one."""
        held, jobs = self.memory.held, self.memory.jobs
        loaded = event if isinstance(event, LoadedEvent) else None
        may_release = RELEASED_AT_ONCE
        if loaded is not None:
            self._asked = False
        while True:
            hopeless = held.next_hopeless()
            if hopeless is not None:
                self._end(*hopeless, transaction)
                continue
            number = held.next_ready()
            if not number or self._offers_are_out():
                return
            if loaded is None or not may_release:
                # Where a job runs is decided by the load, and the batch system's news come without.
                if not self._asked:
                    self._asked = True
                    transaction.do(TellLoad(transaction.cause))
                return
            may_release -= 1
            transaction.note(JobReleased(transaction.now, number))
            transaction.publish(jobs[number])
            self.offers.decide(jobs[number], loaded.load, transaction)

    def _offers_are_out(self) -> bool:
        # A partner cannot be asked about more before it has answered. It does soon, and what came meanwhile would stay at
        # home for no other reason.
        memory = self.memory
        most = memory.settings.limits.offers_undecided
        return any(
            len(book.undecided) >= most
            and book.reachable
            and any(job.state is JobState.OFFERING for job in book.undecided.values())
            for book in memory.books.values()
        )

    def _end(self, number: int, dependency: Dependency, transaction: Transaction) -> None:
        transaction.end(
            self.memory.jobs[number],
            outcome=Outcome.CANCELLED,
            end_time=transaction.now,
            run_time=0.0,
            reason=f"its dependency {dependency} cannot be met{self._because(dependency.job_id)}",
        )

    def _because(self, job_id: str) -> str:
        array = self.memory.find_array(job_id)
        if array is not None:
            return f": of that array {array.not_ok} have not completed"
        job = self.memory.find_job(job_id)
        return "" if job is None or job.outcome is None else f": that job is {job.outcome.value}"
