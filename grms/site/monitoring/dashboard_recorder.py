"""Notes what a daemon does, on its event loop, for a dashboard in another thread.

An event costs some microseconds. Notes wait in a bounded queue: a dashboard that falls behind loses
the oldest, and says so. Nothing here raises into the daemon.
"""

import math
import statistics
from collections import deque
from functools import partial
from typing import Final

import msgspec
import structlog

from grms.daemon.loop import EngineFailedError
from grms.site.accounting.own_account import figures_of
from grms.site.model.jobs import HomeJob
from grms.site.model.partners import PartnerBook
from grms.site.model.records import (
    KINDS,
    ArrayReceived,
    GuestAccepted,
    JobKept,
    JobOffered,
    JobPromised,
    JobReceived,
    PromisesReviewed,
    Record,
    StateCame,
)
from grms.site.monitoring.dashboard_events import (
    AccountSeen,
    CertificateOutput,
    Decided,
    Note,
    Noted,
    PartnerFigures,
    Sampled,
)
from grms.site.monitoring.subscriber import Guarded, Handled, OfferTimed, Subscriber
from grms.site.peers.peers import PeerClients
from grms.site.runtime.event_loop import Engine

NOTES_MAX: Final = 20_000
LATENCIES: Final = 100
"""Latencies remembered per partner."""

PASSED_OVER_MAX: Final = 20
"""Most partners for which the reason why they were not asked is given."""

_QUIET: Final = frozenset({JobPromised, PromisesReviewed})
"""Records that change nothing the dashboard shows of a job."""


class Feed:
    """Notes on their way to the dashboard; one thread puts, another takes.

    Beyond `bound` waiting notes the oldest are lost.
    """

    def __init__(self, bound: int = NOTES_MAX) -> None:
        self._notes: deque[Note] = deque(maxlen=bound)
        self._put = 0
        self._taken = 0

    def put(self, *notes: Note) -> None:
        """Adds notes; never waits."""
        self._notes.extend(notes)
        self._put += len(notes)

    def take(self, most: int) -> tuple[list[Note], int]:
        """Returns the oldest notes, and how many were lost since it was last called."""
        found: list[Note] = []
        while len(found) < most:
            try:
                found.append(self._notes.popleft())
            except IndexError:
                break
        self._taken += len(found)
        # The order keeps a note that is put meanwhile from counting as lost.
        lost = self._put - self._taken - len(self._notes)
        self._taken += max(0, lost)
        return found, max(0, lost)


class Recorder:
    """Notes what happens at a site."""

    def __init__(
        self,
        feed: Feed,
        subscriber: Subscriber,
        engine: Engine,
        links: PeerClients,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._feed = feed
        self._engine = engine
        self._links = links
        self._log = log
        self._latencies: dict[str, deque[float]] = {}
        self._failed = False
        outputs = Guarded(subscriber, self._tell)
        outputs.on(OfferTimed, self._timed)
        for kind in set(KINDS) - _QUIET:
            outputs.on(kind, self._noted)

    def _noted(self, record: Record, _: Handled) -> None:
        # What is told is durable; what a decision rested on is looked at now.
        self._engine.after(partial(self._feed.put, self._note(record)))

    def sample(self) -> None:
        """Notes how the site is now."""
        engine = self._engine
        try:
            engine.catch_up()
            state, load = engine.state, engine.load()
            now = engine.clock.now()
            count_open = state.settings.location.count_open
            sampled = Sampled(
                time=now,
                load=load,
                at_lrms=len(state.memory.at_lrms),
                jobs_open=state.memory.jobs_open,
                draining=state.draining,
                partners=tuple(
                    self._figures(book, book.awrt(now, count_open=count_open))
                    for book in state.partners.values()
                ),
            )
            self._feed.put(sampled)
            account = figures_of(state.memory)
            if account is not None:
                self._feed.put(AccountSeen(account))
        except EngineFailedError:
            raise
        except Exception as error:  # noqa: BLE001  # the daemon goes on without a dashboard
            self._tell(error)

    def certificate_shown(self, partner: str, pem: bytes) -> None:
        """Notes the certificate that a partner has shown."""
        self._feed.put(CertificateOutput(partner, pem))

    def _tell(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            self._log.error("dashboard_recorder_failed", exc_info=error)

    # --- decisions -----------------------------------------------------------------------------

    def _note(self, record: Record) -> Noted:
        if isinstance(record, JobReceived | ArrayReceived | GuestAccepted):
            return Noted(msgspec.structs.replace(record, payload=b""))
        if isinstance(record, StateCame):
            return Noted(msgspec.structs.replace(record, restored=b""))
        if isinstance(record, JobOffered | JobKept):
            return Noted(record, self._decided(record))
        return Noted(record)

    def _decided(self, record: JobOffered | JobKept) -> Decided:
        state = self._engine.state
        job = state.memory.jobs.get(record.job)
        weighed = None if job is None else job.weighed
        name = record.partner if isinstance(record, JobOffered) else ""
        if weighed is not None and isinstance(record, JobKept):
            name = weighed.kept_for
        policy = state.settings.transfer.get(name) if name else None
        if job is None or name:
            return Decided(weighed, policy)
        return Decided(weighed, None, self._passed_over(job))

    def _passed_over(self, job: HomeJob) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for book in self._engine.state.partners.values():
            if book.listed and book.name not in job.asked and len(found) < PASSED_OVER_MAX:
                found.append((book.name, why_not_asked(book, job, self._engine.clock.now())))
        return tuple(found)

    # --- partners ------------------------------------------------------------------------------

    def _timed(self, timed: OfferTimed, _: Handled) -> None:
        if timed.answer != "unknown":
            known = self._latencies.setdefault(timed.partner, deque(maxlen=LATENCIES))
            known.append(timed.latency_s)

    def _figures(self, book: PartnerBook, awrt: float) -> PartnerFigures:
        link = self._links.links.get(book.name)
        latencies = self._latencies.get(book.name)
        heard = float("nan") if link is None else link.last_heard
        problem = "" if link is None else link.problem or link.duplicated
        until = book.trust.suspended_until
        return PartnerFigures(
            name=book.name,
            processors=book.processors,
            state=standing(book, up=link is not None and link.up),
            problem=f"faulty: {book.faulty}" if book.faulty else problem,
            asked=book.offered,
            accepted=book.accepted,
            declined=max(0, book.offered - book.accepted - len(book.undecided)),
            undecided=len(book.undecided),
            open=len(book.open),
            ended=book.ended,
            awrt_s=awrt,
            guests_offered=book.guest_offered,
            guests_accepted=book.guest_accepted,
            guests_declined=book.guest_offered - book.guest_accepted,
            guests_open=len(book.guests),
            latency_s=statistics.median(latencies) if latencies else None,
            latency_max_s=max(latencies) if latencies else None,
            last_heard_s=None if math.isnan(heard) else heard,
            breaches=book.trust.breaches,
            suspended_until_s=until if until > self._engine.clock.now() else None,
        )


def standing(book: PartnerBook, *, up: bool) -> str:
    """Returns a partner's state in a word: the worst that holds."""
    if not book.listed:
        return "not listed"
    if book.faulty:
        return "faulty"
    if up:
        return "reachable"
    return "lost" if book.lost else "unreachable"


def _why_unwell(book: PartnerBook) -> str:
    if not book.reachable:
        return "it did not answer"
    if book.faulty:
        return "it counts as faulty"
    if book.duplicated:
        return "two daemons use its name"
    other = book.incompatible
    return f"it speaks version {other} of the protocol" if other else ""


def why_not_asked(book: PartnerBook, job: HomeJob, now: float) -> str:
    """Returns why a partner is not offered a job, as far as the site itself knows.

    `now` is in seconds.
    """
    if unwell := _why_unwell(book):
        return unwell
    if job.sites and book.name not in job.sites:
        return "its user wants it elsewhere"
    if book.returns.rests(job.user, job.request, now):
        return "it has sent such jobs back undone of late"
    if job.request.processors > book.processors:
        return f"it has {book.processors} processors, fewer than the job needs"
    if not book.could_run(job.request):
        return "it has no nodes for such a job"
    return "there is no policy for it, or its turn did not come"
