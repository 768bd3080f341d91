"""Judges from a site's records alone whether it holds partners to their promises.

An independent implementation of docs/disciplines.md ("Promise"): for each job that a partner has
accepted every time is recorded, and everything is counted anew when the site says that it has
looked, and when it makes an offer.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from grms.policy.constraints import AccountRules, ExchangeConstraints, Promise
from grms.simulation.random_source import RandomSource
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    JobAbandoned,
    JobDelegated,
    JobEnded,
    JobOffered,
    JobPromised,
    JobReceived,
    JobReoffered,
    JobReofferEnded,
    JobReturned,
    JobSentHome,
    PartnerBooks,
    PartnerPardoned,
    PromisesReviewed,
    Record,
)

_RUN = frozenset({Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.NOT_RUN})


@dataclass(slots=True)
class _Given:
    # A job that a partner has accepted, and that was not taken off the list.
    since: float
    requested: float
    work: float
    ended: float = math.nan
    late: bool = False
    done: bool = False
    counted: bool = False


@dataclass(slots=True)
class _Opinion:
    credit: float = 0.0
    breaches: int = 0
    until: float = 0.0
    given: dict[int, _Given] = field(default_factory=dict)


@dataclass(slots=True)
class PromiseChecker:
    """Follows one site while it lives; `breaches` counts broken promises."""

    promise: Promise
    processors: int
    breaches: int = 0
    _jobs: dict[int, tuple[int, float]] = field(default_factory=dict)
    _at: dict[int, tuple[str, int, float]] = field(default_factory=dict)
    _opinions: dict[str, _Opinion] = field(default_factory=dict)

    def follow(self, record: Record) -> str:
        """Notes a record; returns what is wrong with it, or an empty text."""
        if isinstance(record, JobReceived):
            self._jobs[record.job] = (record.request.processors, record.request.requested_time)
        elif isinstance(record, JobOffered | JobReoffered):
            self._at[record.job] = (record.partner, record.number, math.nan)
        elif isinstance(record, JobReofferEnded):
            del self._at[record.job]
        elif isinstance(record, JobDelegated):
            partner, number, _ = self._at[record.job]
            self._at[record.job] = (partner, number, record.time)
        elif isinstance(record, JobPromised):
            partner, number, since = self._at[record.job]
            width, requested = self._jobs[record.job]
            given = _Given(since, requested, requested * width)
            self._of(partner).given[number] = given
        elif isinstance(record, JobEnded | JobAbandoned | JobReturned | JobSentHome):
            self._over(record)
        elif isinstance(record, PromisesReviewed):
            return self._reviewed(record)
        elif isinstance(record, PartnerPardoned):
            opinion = self._of(record.partner)
            opinion.breaches, opinion.until = 0, 0.0
        elif isinstance(record, PartnerBooks):
            self._take_over(record)
        return ""

    def _of(self, partner: str) -> _Opinion:
        return self._opinions.setdefault(partner, _Opinion())

    def _over(self, record: JobEnded | JobAbandoned | JobReturned | JobSentHome) -> None:
        if not isinstance(record.job, int):
            return
        partner, number, _ = self._at.pop(record.job, ("", 0, math.nan))
        given = self._of(partner).given.get(number)
        if given is None:
            return
        if isinstance(record, JobReturned | JobSentHome):
            del self._of(partner).given[number]
        elif isinstance(record, JobAbandoned):
            given.ended, given.late = record.time, True
        else:
            waited = record.end_time - given.since - record.run_time
            given.ended, given.late = record.end_time, waited > self.promise.tolerance
            given.done = record.outcome in _RUN

    def _take_over(self, record: PartnerBooks) -> None:
        # The journal was compacted: what stood for this is gone.
        opinion = self._opinions[record.partner] = _Opinion(
            record.credit, record.breaches, record.suspended_until
        )
        for number, since, requested, width, lasted, ended, done, counted in record.promised:
            given = _Given(since, requested, requested * width, done=done, counted=counted)
            if ended is not None and lasted is not None:
                given.ended = ended
                given.late = ended - since - lasted > self.promise.tolerance
            opinion.given[number] = given

    def _look(self, partner: str, now: float) -> tuple[list[int], list[int]]:
        opinion, promise = self._of(partner), self.promise
        closed, overdue = [], []
        for number, given in list(opinion.given.items()):
            broken = False
            if not math.isnan(given.ended):
                closed.append(number)
                del opinion.given[number]
                broken = given.late and not given.counted
                if given.done and not given.late and not given.counted:
                    opinion.credit += given.work
            elif not given.counted and now > given.since + given.requested + promise.tolerance:
                overdue.append(number)
                broken = given.counted = True
            if broken:
                self.breaches += 1
                opinion.credit = 0.0
                if now >= opinion.until:
                    opinion.breaches += 1
                pause = promise.suspension * 2 ** min(opinion.breaches - 1, promise.doublings)
                opinion.until = max(opinion.until, now + pause)
        return closed, overdue

    def _reviewed(self, record: PromisesReviewed) -> str:
        closed, overdue = self._look(record.partner, record.time)
        opinion = self._of(record.partner)
        same = (closed, overdue, opinion.breaches) == (
            list(record.closed),
            list(record.overdue),
            record.breaches,
        )
        close = math.isclose(opinion.credit, record.credit, abs_tol=1e-6) and math.isclose(
            opinion.until, record.suspended_until
        )
        return "" if same and close else f"{record} where {opinion} was to be found"

    def trusts(self, partner: str, job: int, now: float) -> bool:
        """Returns whether a partner may be offered a job, by what was found so far."""
        opinion = self._of(partner)
        if now < opinion.until:
            return False
        width, requested = self._jobs[job]
        there = [given.work for given in opinion.given.values() if math.isnan(given.ended)]
        most = self.promise.trust * self.processors + opinion.credit
        return not there or sum(there) + requested * width <= most * (1 + 1e-9)

    def judge(self, record: JobOffered | JobReoffered) -> str:
        """Returns what is wrong with an offer, or an empty text."""
        missed = self._look(record.partner, record.time)
        if any(missed):
            return f"{record.partner} is asked, and nobody has looked at its jobs {missed}"
        if not self.trusts(record.partner, record.job, record.time):
            return f"{record.partner} is asked, and is not to be trusted so far"
        return ""


@dataclass(slots=True)
class PromiseCheckers:
    """A judge for each honest site of a run; `rails` are `None` if sites have no constraints."""

    rails: ExchangeConstraints | None = None
    _judges: dict[str, PromiseChecker] = field(default_factory=dict)
    _breaches: int = 0

    def begin(self, site: str, processors: int, journal: Iterable[Record]) -> None:
        """Begins anew with a site that has just started with this journal."""
        if self.rails is None or self.rails.promise is None:
            return
        before = self._judges.pop(site, None)
        self._breaches += 0 if before is None else before.breaches
        judge = PromiseChecker(self.rails.promise, processors)
        for record in journal:
            judge.follow(record)
        judge.breaches = 0
        self._judges[site] = judge

    def of(self, site: str) -> PromiseChecker | None:
        """Returns the judge of a site; `None` if it demands nothing."""
        return self._judges.get(site)

    @property
    def breaches(self) -> int:
        """How many promises were found to be broken."""
        return self._breaches + sum(judge.breaches for judge in self._judges.values())


def with_account(draws: RandomSource, rails: ExchangeConstraints | None) -> ExchangeConstraints:
    """Returns constraints by which sites keep an account of themselves; work lost is no breach, as the judge counts none."""
    account = AccountRules(
        guests="preempt" if draws.chance(0.7) else "run",
        allowance=0.5 if draws.chance(0.5) else None,
        memory=draws.between(10.0, 100.0),
        every=float(draws.integer(1, 8)),
        lost_work=1e12,
    )
    given = ExchangeConstraints(guest_length=None, balance=None, promise=None)
    return replace(rails or given, start_now=True, account=account)


def drawn_constraints(draws: RandomSource) -> ExchangeConstraints:
    """Returns constraints so tight that honest partners break promises, too."""
    return ExchangeConstraints(
        start_now=draws.chance(0.5),
        guest_length=3.0 if draws.chance(0.3) else None,
        balance=20.0 if draws.chance(0.3) else None,
        promise=Promise(
            tolerance=draws.between(0.0, 10.0),
            trust=draws.between(0.0, 20.0),
            suspension=draws.between(1.0, 20.0),
            doublings=2,
        ),
    )
