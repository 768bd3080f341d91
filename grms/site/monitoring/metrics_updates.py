"""What a site's figures make of what happens, and which jobs are shown otherwise than before."""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from grms.daemon.mqtt.payloads import JobStateName
from grms.lrms import base
from grms.site.accounting.own_account import figures_of
from grms.site.config.schema import SiteConfig
from grms.site.model.commands import AnswerOffer, Publish, PublishRound
from grms.site.model.events import (
    Drain,
    LrmsAppeared,
    LrmsNews,
    OfferReceived,
    PartnerDown,
    PartnerDuplicated,
    PartnerUp,
    Restarted,
    Resume,
)
from grms.site.model.jobs import GuestRef, HomeJob
from grms.site.model.lifecycle import WAITING, JobState, Outcome
from grms.site.model.records import (
    AccountLooked,
    GuestAccepted,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
    JobReoffered,
    JobReturned,
    JobSentHome,
    JobStarted,
    StateMissed,
)
from grms.site.monitoring.metrics import SiteMetrics
from grms.site.monitoring.subscriber import Away, Guarded, Handled, OfferTimed, is_surprise
from grms.site.monitoring.telemetry import JobChange
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.journal import Journal
from grms.site.scheduler.state import SiteState

_SURPRISES: Final[dict[type[LrmsNews], str]] = {
    base.Lost: "lost",
    base.Requeued: "requeued",
    LrmsAppeared: "appeared",
}
"""Events that a batch system causes by itself."""


class MetricsUpdates:
    """Keeps a site's figures: what changes which of them."""

    def __init__(self, outputs: Guarded, metrics: SiteMetrics, state: SiteState) -> None:
        self._metrics = metrics
        self._state = state
        self._guests: Counter[str] = Counter()
        outputs.on(Restarted, self._take_up)
        outputs.on(PartnerUp, lambda event, _: metrics.partners.set(event.partner, reachable=True))
        outputs.on(
            PartnerDown, lambda event, _: metrics.partners.set(event.partner, reachable=False)
        )
        outputs.on(
            PartnerDuplicated,
            lambda event, _: metrics.partners.set(event.partner, duplicated=event.duplicated),
        )
        outputs.on(AccountLooked, lambda _, __: self._account())
        outputs.on(Drain, lambda _, __: metrics.draining.set(1))
        outputs.on(Resume, lambda _, __: metrics.draining.set(0))
        for kind, what in _SURPRISES.items():
            outputs.on(kind, partial(self._surprised, what))
        outputs.on(OfferTimed, self._offer_timed)
        outputs.on(AnswerOffer, self._offer_answered)
        outputs.on(PublishRound, lambda _, __: metrics.rounds.inc())
        outputs.on(JobChange, self._job_changed)
        outputs.on(JobKept, partial(self._decided, "keep"))
        outputs.on(JobOffered, partial(self._decided, "offer"))
        outputs.on(JobReoffered, lambda _, __: metrics.round_questions.inc())
        outputs.on(
            JobDelegated, lambda record, handled: self._confirmed(handled.away.get(record.job))
        )
        outputs.on(JobStarted, self._job_started)
        outputs.on(JobEnded, self._job_ended)
        outputs.on(JobReturned, self._job_returned)
        outputs.on(JobSentHome, self._job_sent_home)
        outputs.on(StateMissed, self._state_missed)
        outputs.on(GuestAccepted, lambda record, _: self._guest_counted(record.job.partner, 1))

    def _take_up(self, _: Restarted, __: Handled) -> None:
        counts = {state_name(key): number for key, number in self._state.job_counts().items()}
        self._metrics.set_jobs(counts)
        self._account()
        for name, book in self._state.partners.items():
            here = sum(guest.outcome is None for guest in book.guests.values())
            self._guests[name] = 0
            self._guest_counted(name, here)

    def _surprised(self, what: str, news: LrmsNews, handled: Handled) -> None:
        if is_surprise(news, handled):
            self._metrics.lrms_surprises.labels(what).inc()

    # --- offers --------------------------------------------------------------------------------

    def _offer_timed(self, timed: OfferTimed, _: Handled) -> None:
        label = self._metrics.partners.label(timed.partner)
        self._metrics.offers_sent.labels(label, timed.answer).inc()
        self._metrics.offer_latency.labels(label).observe(timed.latency_s)

    def _offer_answered(self, command: AnswerOffer, handled: Handled) -> None:
        if isinstance(handled.event, OfferReceived):
            label = self._metrics.partners.label(handled.event.partner)
            answer = "accept" if command.accepted else "decline"
            self._metrics.offers_received.labels(label, answer).inc()

    # --- own users' jobs -----------------------------------------------------------------------

    def _job_changed(self, change: JobChange, _: Handled) -> None:
        jobs, memory = self._metrics.jobs, self._state.memory
        if change.before is not None:
            jobs.labels(change.before).dec()
        if change.state != "ended":
            jobs.labels(change.state).inc()
        jobs.labels("ended").set(len(memory.jobs) - memory.jobs_open)

    def _decided(self, decision: str, record: JobKept | JobOffered, _: Handled) -> None:
        # What the policy wanted is its first answer; those after a refusal are no choice.
        job = self._state.memory.jobs.get(record.job)
        if job is not None and len(job.asked) == int(decision == "offer"):
            self._metrics.own_decisions.labels(decision).inc()

    def _job_started(self, record: JobStarted, _: Handled) -> None:
        job = self._state.memory.job(record.job)
        whose = "home" if isinstance(job, HomeJob) else "guest"
        self._metrics.job_wait.labels(whose).observe(max(0.0, record.start_time - job.came))

    def _job_ended(self, record: JobEnded, handled: Handled) -> None:
        if isinstance(record.job, GuestRef):
            self._guest_ended(record.job, record)
            return
        self._metrics.jobs_ended.labels(record.outcome.value).inc()
        job = self._state.memory.jobs.get(record.job)
        if job is None or record.run_time <= 0:
            return  # it never ran
        # Its end may be reported before the confirmation is answered.
        away = handled.away.get(record.job)
        self._confirmed(away)
        response = max(0.0, record.end_time - job.eligible_time)
        kind = "home" if away is None else "delegated"
        self._metrics.job_response.labels(kind).observe(response)

    def _job_returned(self, record: JobReturned, handled: Handled) -> None:
        away = handled.away.get(record.job)
        if away is not None and not away.take_back:
            self._undone(away.partner, "own")

    def _job_sent_home(self, record: JobSentHome, _: Handled) -> None:
        job = self._state.memory.jobs.get(record.job)
        processors = 0 if job is None else job.request.processors
        kept = 0.0 if record.state is None else record.state.kept
        self._sent_home(record.partner, "own", (record.lost - kept) * processors)

    def _state_missed(self, record: StateMissed, _: Handled) -> None:
        # It was to be kept, and is lost as well.
        job = self._state.memory.jobs.get(record.job)
        if job is not None:
            label = self._metrics.partners.label(record.partner)
            lost = record.kept * job.request.processors
            self._metrics.work_lost.labels(label, "own").inc(lost)

    def _confirmed(self, away: Away | None) -> None:
        # By the record: a round may be over before its last job is confirmed.
        if away is not None and away.confirms:
            self._metrics.round_jobs_moved.inc()

    def _undone(self, partner: str, whose: str) -> None:
        self._metrics.jobs_undone.labels(self._metrics.partners.label(partner), whose).inc()

    def _sent_home(self, partner: str, whose: str, lost: float) -> None:
        label = self._metrics.partners.label(partner)
        self._metrics.jobs_sent_home.labels(label, whose).inc()
        self._metrics.work_lost.labels(label, whose).inc(lost)

    def _account(self) -> None:
        account = self._state.memory.account
        if account is not None:
            self._metrics.in_credit.set(account.in_credit)
            if account.base > 0:
                self._metrics.account_gain.set(account.gain / account.base)
            figures = figures_of(self._state.memory)
            assert figures is not None
            metrics = self._metrics
            metrics.account_wait.labels("saved").set(3600.0 * figures.saved)
            metrics.account_wait.labels("owed").set(3600.0 * figures.owed)
            for kind in ("protected", "preemptible", "staying"):
                metrics.account_guests.labels(kind).set(getattr(figures, kind))
            for what in ("lent", "lent_lost", "given", "given_lost"):
                metrics.account_work.labels(what).set(getattr(figures, what))

    # --- partners' jobs ------------------------------------------------------------------------

    def _guest_counted(self, partner: str, count: int) -> None:
        self._guests[partner] += count
        self._metrics.partners.set_guests(partner, self._guests[partner])

    def _guest_ended(self, ref: GuestRef, record: JobEnded) -> None:
        partner = ref.partner
        if record.outcome is Outcome.LOST:
            self._undone(partner, "guest")
        elif record.outcome is Outcome.PREEMPTED:
            guest = self._state.memory.books[partner].guests.get(ref.offer)
            processors = 0 if guest is None else guest.request.processors
            kept = 0.0 if guest is None else guest.kept
            self._sent_home(partner, "guest", (record.run_time - kept) * processors)
        self._guest_counted(partner, -1)


class JobChanges:
    """Reports own users' jobs whose shown state changes; `now` is the site's clock, in seconds."""

    def __init__(self, outputs: Guarded, state: SiteState, now: Callable[[], float]) -> None:
        self._tell = outputs.tell
        self._state = state
        self._now = now
        self._open: dict[int, tuple[JobState, str]] = {}
        outputs.on(Restarted, self._take_up)
        outputs.on(Publish, self._published)

    def _take_up(self, _: Restarted, __: Handled) -> None:
        for job in self._state.jobs():
            if job.state is not JobState.ENDED:
                self._open[job.job] = (job.shown, job.partner)

    def _published(self, command: Publish, handled: Handled) -> None:
        for number in (command.job, *command.also):
            job = self._state.memory.jobs.get(number)
            change = None if job is None else self._change(job)
            if change is not None:
                self._tell(change, handled)

    def _change(self, job: HomeJob) -> JobChange | None:
        after = (job.shown, job.partner)
        before = self._open.pop(job.job, None)
        if job.state is not JobState.ENDED:
            self._open[job.job] = after
        if before == after:
            return None
        return JobChange(
            self._now(),
            job.job_id,
            state_name(job.shown),
            job.partner or None,
            job.outcome,
            before=None if before is None else state_name(before[0]),
        )


def state_name(state: JobState) -> JobStateName:
    """Returns the name of a state that is shown."""
    return cast("JobStateName", state.value)


def sample(metrics: SiteMetrics, engine: Engine, journal: Journal, config: SiteConfig) -> None:
    """Reads the figures that change without an event of their own."""
    state, now = engine.state, engine.clock.now()
    if config.clock.kind != "virtual":  # there only the coordinator moves the machine
        at_lrms = state.memory.at_lrms.values()
        waiting = sum(job.state in WAITING for job in at_lrms)
        engine.catch_up()
        _sample_lrms(metrics, engine, waiting)
    count_open = state.settings.location.count_open
    for partner in state.settings.partners:
        book = state.partners[partner.name]
        metrics.partners.set(
            partner.name,
            awrt=book.awrt(now, count_open=count_open),
            open_jobs=len(book.open),
            suspended=now < book.trust.suspended_until,
            breaches=book.trust.breaches,
            credit=book.trust.credit,
        )
    metrics.journal_bytes.set(journal.size_bytes)
    metrics.journal_records.set(journal.count)


def _sample_lrms(metrics: SiteMetrics, engine: Engine, waiting: int) -> None:
    load, driver, memory = engine.load(), engine.driver, engine.state.memory
    if load is not None:
        metrics.processors.labels("free").set(load.processors_free)
        metrics.processors.labels("busy").set(load.processors - load.processors_free)
        metrics.queue_jobs.set(waiting)
        metrics.queue_processors.set(load.processors_waiting)
    metrics.lrms_reachable.set(load is not None and not memory.lrms_away)
    age = driver.load_age
    metrics.lrms_load_age.set(math.nan if age is None else age)
    metrics.lrms_commands_open.set(driver.commands_open)
    metrics.lrms_jobs_unseen.set(len(memory.unseen))
    metrics.set_anomalies(driver.anomalies)
