"""Judges how long jobs of honest sites wait on a Byzantine partner, and how long places are held for nobody.

A plain second opinion, from records and clocks alone: since when a Byzantine partner has a job, and how long it may,
is what was written down and what docs/protocol.md says of it. In the trial an operator looks every few
seconds and acts on what he is shown, so no job may be with a Byzantine partner for much longer than

- its deadline, however silent the Byzantine partner is: then the job is resubmitted;
- its promise and the tolerance, where the Byzantine partner answers: then the job is taken back.

And no place may be held for much longer than `confirm_time_max`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from grms.site.model.jobs import GuestRef
from grms.site.model.records import (
    GuestConfirmed,
    GuestReserved,
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobLeft,
    JobOffered,
    JobPromised,
    JobReceived,
    JobReoffered,
    JobReofferEnded,
    JobReturned,
    JobSentHome,
    Record,
)
from grms.site.model.settings import SiteSettings

_OVER = JobDeclined | JobReofferEnded | JobReturned | JobSentHome | JobAbandoned | JobEnded


@dataclass(slots=True)
class _Wait:
    # A job that a partner was offered. One that waits in the own queue meanwhile waits on nobody.
    partner: str
    offered: float
    deadline: float
    in_queue: bool
    promised: float = math.inf


@dataclass(slots=True)
class WaitChecker:
    """Follows one honest site while it lives.

    Attributes:
        settings: of the site, as it has started.
        tolerance: of promises, seconds; infinity if nobody is held to one.
        since: when this life of it has begun, seconds on its clock.
    """

    settings: SiteSettings
    tolerance: float
    since: float
    _requested: dict[int, float] = field(default_factory=dict)
    _waits: dict[int, _Wait] = field(default_factory=dict)
    _places: dict[GuestRef, float] = field(default_factory=dict)

    def follow(self, records: Iterable[Record]) -> None:
        """Notes records, in order."""
        for record in records:
            self._follow(record)

    def _follow(self, record: Record) -> None:
        now = record.time
        if isinstance(record, JobReceived):
            self._requested[record.job] = record.request.requested_time
        elif isinstance(record, JobOffered | JobReoffered):
            deadline = now + self.settings.undecided_time_max
            in_queue = isinstance(record, JobReoffered)
            self._waits[record.job] = _Wait(record.partner, now, deadline, in_queue)
        elif isinstance(record, JobLeft):
            if record.job in self._waits:
                self._waits[record.job].in_queue = False
        elif isinstance(record, JobDelegated):
            wait, requested = self._waits[record.job], self._requested[record.job]
            wait.deadline = now + requested + self.settings.delegated_time_max
        elif isinstance(record, JobPromised):
            wait, requested = self._waits[record.job], self._requested[record.job]
            wait.promised = now + requested + self.tolerance
        elif isinstance(record, GuestReserved):
            self._places[record.job] = now
        elif isinstance(record, GuestConfirmed | _OVER):
            if isinstance(record.job, GuestRef):
                self._places.pop(record.job, None)
            else:
                self._waits.pop(record.job, None)

    def beyond_deadline(self, partner: str, now: float) -> list[tuple[int, float]]:
        """Returns the jobs that are too long with a partner, and by how much, seconds.

        The time during which the site was down does not count. `now` is in seconds on the site's
        clock.
        """
        return [
            (job, late)
            for job, wait in self._waits.items()
            if wait.partner == partner
            and not wait.in_queue
            and (late := now - max(wait.deadline, self.since)) > 0
        ]

    def beyond_promise(self, partner: str, now: float) -> list[tuple[int, float]]:
        """Returns jobs that a partner has started later than promised or not yet, and their delays.

        Delays are in seconds.
        """
        return [
            (job, now - wait.promised)
            for job, wait in self._waits.items()
            if wait.partner == partner and now > wait.promised
        ]

    def places_too_long(self, now: float, slack: float) -> list[str]:
        """Returns the slots held for too long, in words; times are in seconds.

        `slack` is the interval between two looks.
        """
        most = self.settings.confirm_time_max
        return [
            f"a place for {guest.offer} of {guest.partner} is held for {now - begin:.0f} s, not {most:.0f}"
            for guest, begin in self._places.items()
            if now - max(begin + most, self.since) > slack
        ]
