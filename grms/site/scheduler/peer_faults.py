"""Partners that violate the protocol, and whether a partner's report on a job can be true.

A partner that violates the protocol gets no offers until a probe succeeds. A probe is a question about an offer that was
never made. The pauses between probes double.

For an end, the home site knows the request, the time of the offer and the current time. A report that contradicts these is
not believed: it is counted, its numbers are clipped to what is possible, and the partner is asked last until it has made up
for it. A lie within these bounds is undetectable here; docs/protocol.md lists what remains.
"""

import math
from dataclasses import replace

from grms.daemon.pacing import pause_after
from grms.site.model.commands import SendProbe
from grms.site.model.events import StatusAnswered
from grms.site.model.jobs import Completion, HomeJob, OfferId
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.partners import PartnerBook
from grms.site.model.records import PartnerFaulted
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.transaction import Transaction


class PeerFaultHandler:
    """Records protocol errors of partners, and probes them."""

    def __init__(self, memory: StateTables) -> None:
        self.memory = memory

    def fault(
        self, book: PartnerBook, reason: str, transaction: Transaction, *, probed: bool = False
    ) -> None:
        """Stops offers to a partner until a probe succeeds; `probed`: this was the answer to one."""
        was_well, book.faulty = not book.faulty, reason
        if was_well:
            transaction.note(PartnerFaulted(transaction.now, book.name, reason))
        if was_well or probed:
            book.faults_in_row += 1
            self.probe(book, transaction)

    def probe(self, book: PartnerBook, transaction: Transaction) -> None:
        """Asks a faulty partner, after a pause, about an offer that was never made."""
        if not book.listed:
            book.faulty = ""
            return
        settings = self.memory.settings
        delay = pause_after(book.faults_in_row, settings.probe_first_s, settings.probe_most_s)
        offer = OfferId(self.memory.epoch, book.next_number)
        transaction.do(SendProbe(transaction.cause, book.name, offer, delay))


def violation(job: HomeJob, completion: Completion, now: float, settings: SiteSettings) -> str:
    """Returns what makes a reported end impossible, for a person; empty if it is possible.

    `now` is the time of receipt on the home site's clock, seconds.
    """
    run_time, requested = completion.run_time, job.request.requested_time
    ended = completion.end_time
    grace, skew = settings.run_time_grace, settings.clock_grace
    elapsed = max(0.0, now - job.offer_time)
    clocks = math.isfinite(skew)
    for wrong, text in (
        (run_time > requested + grace, f"a run time of {run_time:g} s, {requested:g} s requested"),
        (
            completion.outcome is Outcome.TIMEOUT and run_time < requested - grace,
            f"cut at its limit after {run_time:g} s, {requested:g} s requested",
        ),
        (
            clocks and run_time > elapsed * (1.0 + settings.clock_drift) + settings.elapsed_grace,
            f"a run time of {run_time:g} s, {elapsed:g} s after the offer",
        ),
        (
            completion.kept > run_time,
            f"{completion.kept:g} s kept of a run time of {run_time:g} s",
        ),
        (clocks and ended > now + skew, f"an end {ended - now:g} s in the future"),
        (
            clocks and ended - run_time < job.offer_time - skew,
            f"a start {job.offer_time - (ended - run_time):g} s before the offer",
        ),
    ):
        if wrong:
            return text
    return ""


def believable(job: HomeJob, completion: Completion, now: float) -> Completion:
    """Returns an impossible report with its times clipped to what is possible.

    `now` is the time of receipt on the home site's clock, seconds.
    """
    run_time = min(completion.run_time, job.request.requested_time, max(0.0, now - job.offer_time))
    return replace(completion, run_time=run_time, end_time=now, kept=min(completion.kept, run_time))


def senseless(job: HomeJob, event: StatusAnswered) -> bool:
    """Returns whether an answer about an offer is outside the protocol.

    That is the end of another offer, or of none; or "never heard of" in reply to a withdrawal.
    """
    if event.completion is not None:
        return event.completion.offer != event.offer or event.status is not GuestState.ENDED
    if event.status is GuestState.ENDED:
        return True
    withdrawn = job.cancel_told or job.state is JobState.WITHDRAWING
    return event.status is None and withdrawn
