"""Counts what happens at a site, event by event, and tells which jobs have changed."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, cast

from grms.site.core.state import SiteState
from grms.site.facts.commands import (
    AnswerOffer,
    Append,
    Command,
    Publish,
    PublishRound,
    SendOffer,
)
from grms.site.facts.events import (
    Drain,
    Event,
    LrmsAppeared,
    LrmsLost,
    LrmsRequeued,
    OfferAnswered,
    OfferFailed,
    OfferReceived,
    PartnerDown,
    PartnerUp,
    Restarted,
    Resume,
)
from grms.site.facts.jobs import HomeJob, OfferId
from grms.site.facts.lifecycle import GuestState, JobState, Outcome
from grms.site.facts.records import (
    GuestAccepted,
    GuestEnded,
    GuestStarted,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
    JobReoffered,
    JobReturned,
    JobStarted,
    Record,
)
from grms.site.watching.lrms_figures import Surprise
from grms.site.watching.metrics import Answer, JobKind, SiteMetrics
from grms.site.watching.telemetry import JobChange
from grms.telemetry.payloads import JobStateName

_SURPRISES: Final[dict[type[Event], Surprise]] = {
    LrmsLost: "lost",
    LrmsRequeued: "requeued",
    LrmsAppeared: "appeared",
}
"""Events of what a batch system does by itself."""

_GUEST_OPEN = {GuestState.ACCEPTED, GuestState.SUBMITTED, GuestState.RUNNING}


class Counting:
    """What events and commands change of a site's figures.

    Args:
        metrics: the figures.
        state: of the site.
        now: the site's clock, seconds.
        job_changed: is told of each job that is shown otherwise than before.
    """

    def __init__(
        self,
        metrics: SiteMetrics,
        state: SiteState,
        *,
        now: Callable[[], float],
        job_changed: Callable[[JobChange], None],
    ) -> None:
        self._metrics = metrics
        self._state = state
        self._now = now
        self._job_changed = job_changed
        self._open: dict[int, tuple[JobState, str]] = {}
        self._guests: Counter[str] = Counter()
        self._offered: dict[tuple[str, OfferId], float] = {}

    def see(self, event: Event, commands: Sequence[Command]) -> None:
        """Counts an event and the commands that it led to."""
        self._note_event(event)
        for command in commands:
            self._note_command(command, event)

    def _note_event(self, event: Event) -> None:
        metrics = self._metrics
        if isinstance(event, OfferAnswered):
            self._answered(event, "accept" if event.accepted else "decline")
        elif isinstance(event, OfferFailed):
            self._answered(event, "unknown")
        elif isinstance(event, PartnerUp | PartnerDown):
            metrics.partners.set_reachable(event.partner, reachable=isinstance(event, PartnerUp))
        elif isinstance(event, Drain | Resume):
            metrics.set_draining(draining=isinstance(event, Drain))
        elif isinstance(event, Restarted):
            self._take_up()
        elif type(event) in _SURPRISES:
            metrics.lrms.surprised(_SURPRISES[type(event)])

    def _note_command(self, command: Command, event: Event) -> None:
        if isinstance(command, Append):
            for record in command.records:
                self._note_record(record, command)
        elif isinstance(command, Publish):
            for number in (command.job, *command.also):
                self._changed(number)
        elif isinstance(command, PublishRound):
            self._metrics.rounds.held()
        elif isinstance(command, SendOffer):
            self._offered[command.partner, command.offer] = time.perf_counter()
        elif isinstance(command, AnswerOffer) and isinstance(event, OfferReceived):
            self._metrics.offer_received(event.partner, "accept" if command.accepted else "decline")

    def _note_record(self, record: Record, append: Append) -> None:
        if isinstance(record, JobKept | JobOffered):
            # What the policy wanted is its first answer; those after a refusal are no choice.
            job = self._state.memory.jobs.get(record.job)
            offer = isinstance(record, JobOffered)
            if job is not None and len(job.asked) == int(offer):
                self._metrics.own_decision("offer" if offer else "keep")
        elif isinstance(record, JobReoffered):
            self._metrics.rounds.asked()
        elif isinstance(record, JobDelegated):
            self._confirmed(append.before.get(record.job))
        elif isinstance(record, JobStarted):
            job = self._state.memory.jobs[record.job]
            self._metrics.job_started("home", max(0.0, record.start_time - job.submit_time))
        elif isinstance(record, JobEnded):
            self._job_ended(record, append.before.get(record.job))
        elif isinstance(record, JobReturned):
            before = append.before.get(record.job)
            if before is not None and not before.take_back:
                self._metrics.undone(before.partner, "own")
        else:
            self._note_guest(record)

    def _note_guest(self, record: Record) -> None:
        if isinstance(record, GuestStarted):
            guest = self._state.partners[record.partner].guests.get(record.offer)
            if guest is not None:
                self._metrics.job_started("guest", max(0.0, record.start_time - guest.accept_time))
        elif isinstance(record, GuestAccepted | GuestEnded):
            if isinstance(record, GuestEnded) and record.outcome is Outcome.LOST:
                self._metrics.undone(record.partner, "guest")
            self._guests[record.partner] += 1 if isinstance(record, GuestAccepted) else -1
            self._metrics.partners.set_guests(record.partner, self._guests[record.partner])

    def _confirmed(self, before: HomeJob | None) -> None:
        # By the record: a round may be over before its last job is confirmed.
        if before is not None and before.confirms:
            self._metrics.rounds.moved()

    def _job_ended(self, record: JobEnded, before: HomeJob | None) -> None:
        self._metrics.own_job_ended(record.outcome.value)
        if before is None or record.run_time <= 0:
            return  # it never ran
        # Its end may be reported before the confirmation is answered.
        self._confirmed(before)
        kind: JobKind = "delegated" if before.partner else "home"
        self._metrics.job_ended(kind, max(0.0, record.end_time - before.submit_time))

    def _answered(self, event: OfferAnswered | OfferFailed, answer: Answer) -> None:
        began = self._offered.pop((event.partner, event.offer), None)
        if began is None or (isinstance(event, OfferFailed) and not event.sent):
            return
        self._metrics.offer_sent(event.partner, answer, time.perf_counter() - began)

    def _take_up(self) -> None:
        """Counts what the journal has left open."""
        state = self._state
        for job in state.jobs():
            if job.state is not JobState.ENDED:
                self._open[job.job] = (job.shown, job.partner)
        counts = {_name(key): number for key, number in state.job_counts().items()}
        self._metrics.set_jobs(counts)
        for name, book in state.partners.items():
            self._guests[name] = sum(guest.state in _GUEST_OPEN for guest in book.guests.values())
            self._metrics.partners.set_guests(name, self._guests[name])

    def _changed(self, number: int) -> None:
        job = self._state.memory.jobs.get(number)
        if job is None:
            return
        after = (job.shown, job.partner)
        before = self._open.pop(number, None)
        if job.state is not JobState.ENDED:
            self._open[number] = after
        if before == after:
            return
        jobs = self._state.memory.jobs
        self._metrics.job_moved(
            None if before is None else _name(before[0]),
            None if job.state is JobState.ENDED else _name(job.shown),
        )
        self._metrics.set_jobs_ended(len(jobs) - len(self._open))
        self._job_changed(job_change(job, self._now()))


def _name(state: JobState) -> JobStateName:
    # Of the states that are shown.
    return cast("JobStateName", state.value)


def job_change(job: HomeJob, now: float) -> JobChange:
    """Returns what is published of a job.

    Args:
        job: as it is.
        now: on the site's clock, seconds.
    """
    return JobChange(now, job.job_id, _name(job.shown), job.partner or None, job.outcome)
