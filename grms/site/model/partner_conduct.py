"""How a partner has behaved: its promises, jobs that it has sent back, and acceptances that it has not used.

A partner promises to start accepted jobs at once; docs/disciplines.md has the rules ("ExchangeConstraints"). Here is
their data: the jobs at the partner that have not been reviewed yet, and the results of those before.

A partner that accepts a job and then does not begin it, as its batch system refuses it or the program has not
arrived, sends it back. Home does not know the reason, and need not: it does not offer such jobs there for a while,
each time for longer. Such are jobs of the same user that are at least as wide and as long, both by powers of two: a
refusal of one user's account or script says nothing of another's, and a partner whose partition takes only short
jobs continues to get these.

An offer that is accepted and withdrawn before its job has begun costs its maker nothing, and reveals something of
this site: enough of them, of chosen widths, measure its free processors. So acceptances that lead to no run are
budgeted for each partner: so many an hour, and one more for each of its jobs that has begun within a day, as an
honest partner sometimes no longer needs a place.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from grms.daemon.pacing import pause_after
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome

AS_PROMISED: Final = frozenset({Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.NOT_RUN})
"""Outcomes for which a partner gets credit: it has run the job for as long as it ran at all.

A job that fails may be its user's fault, so that it is no breach; but a partner where every job fails
at once is not to be entrusted with more for it."""

PromiseRow = tuple[int, float, float, int, float | None, float | None, bool, bool]
"""A promise as a journal has it: number of the offer, then the attributes of `Promised` in order."""


@dataclass(slots=True)
class Promised:
    """A job that a partner has accepted, until it is reviewed after its end.

    Attributes:
        since: of acceptance, seconds.
        requested_time: seconds.
        lasted: how long it held its processors, seconds; `None` before its end.
        ended: seconds; infinity if it was lost there, or given up; `None` before its end.
        done: its end counts for the partner's credit.
        counted: its promise was found to be broken.
    """

    since: float
    requested_time: float
    processors: int
    lasted: float | None = None
    ended: float | None = None
    done: bool = False
    counted: bool = False

    @property
    def work(self) -> float:
        """Its greatest resource consumption, processor seconds."""
        return self.requested_time * self.processors


@dataclass(slots=True)
class PromiseBook:
    """The record of a partner's promises.

    Attributes:
        credit: Σ requested time·m of jobs that were done as promised since the last breach.
        breaches: promises broken, at most one for each suspension.
        suspended_until: no offers before, seconds.
        debt: work that was lost with jobs sent home since the last breach, processor seconds.
        promised: jobs that are there, or were at the last review, by number of their offers, in order of acceptance.
        work: Σ requested time·m of these.
        stale: one of them has ended since the last review.
        due: earliest moment at which one that was not counted should be over by its request, seconds; infinity for
            none. It is early rather than late.
    """

    credit: float = 0.0
    breaches: int = 0
    suspended_until: float = 0.0
    debt: float = 0.0
    promised: dict[int, Promised] = field(default_factory=dict)
    work: float = 0.0
    stale: bool = field(default=False, compare=False)
    due: float = field(default=math.inf, compare=False)

    def promise(self, number: int, since: float, requested_time: float, processors: int) -> None:
        """Notes that the partner has accepted a job under an offer's number; times are in seconds."""
        self._add(number, Promised(since, requested_time, processors))

    def end(self, number: int, ended: float, lasted: float, outcome: Outcome) -> None:
        """Notes the end of a job; an unknown one changes nothing."""
        one = self.promised.get(number)
        if one is not None:
            one.ended, one.lasted, one.done = ended, lasted, outcome in AS_PROMISED
            self.stale = True

    def lose(self, number: int) -> None:
        """Notes that a job was lost at the partner, or given up: it will not be done."""
        self.end(number, math.inf, 0.0, Outcome.LOST)

    def drop(self, number: int) -> None:
        """Forgets a job that the site itself has withdrawn."""
        one = self.promised.pop(number, None)
        if one is not None:
            self._take_off(one)

    def look(
        self,
        closed: tuple[int, ...],
        overdue: tuple[int, ...],
        credit: float,
        breaches: int,
        suspended_until: float,
    ) -> None:
        """Notes the findings of a review of all jobs.

        `closed` are the numbers of offers whose jobs have ended, `overdue` of those that have not, but should have.
        `credit` (processor seconds), `breaches` and `suspended_until` (seconds) are the new values.
        """
        for number in closed:
            self.drop(number)
        for number in overdue:
            self.promised[number].counted = True
        self.credit, self.breaches, self.suspended_until = credit, breaches, suspended_until
        self.recount()

    def owe(self, debt: float, credit: float, breaches: int, suspended_until: float) -> None:
        """Notes what has come of work lost at the partner: new values, in the units of the attributes."""
        self.debt, self.credit = debt, credit
        self.breaches, self.suspended_until = breaches, suspended_until

    @property
    def overdue(self) -> int:
        """Number of jobs that were found to be overdue."""
        return sum(one.counted and one.ended is None for one in self.promised.values())

    def pardon(self) -> None:
        """Forgets breaches and suspension; a job that was counted is not counted again."""
        self.breaches, self.suspended_until = 0, 0.0

    def restore(self, rows: tuple[PromiseRow, ...], work: float) -> None:
        """Replaces all jobs; `work` may differ from the sum over the rows by rounding."""
        self.promised = {}
        for number, since, requested_time, processors, lasted, ended, done, counted in rows:
            self._add(
                number, Promised(since, requested_time, processors, lasted, ended, done, counted)
            )
        self.work = work
        self.recount()

    def rows(self) -> tuple[PromiseRow, ...]:
        """Returns all jobs as in a journal."""
        return tuple(
            (
                number,
                one.since,
                one.requested_time,
                one.processors,
                one.lasted,
                one.ended,
                one.done,
                one.counted,
            )
            for number, one in self.promised.items()
        )

    def recount(self) -> None:
        """Recomputes `stale` and `due`."""
        still = self.promised.values()
        self.stale = any(one.ended is not None for one in still)
        self.due = min(
            (
                one.since + one.requested_time
                for one in still
                if one.ended is None and not one.counted
            ),
            default=math.inf,
        )

    def _add(self, number: int, one: Promised) -> None:
        self.promised[number] = one
        self.work += one.work
        self.due = min(self.due, one.since + one.requested_time)

    def _take_off(self, one: Promised) -> None:
        self.work -= one.work
        if not self.promised:
            # Rounding does not pile up over the years.
            self.work = 0.0


KINDS_MAX: Final = 256
"""So many kinds of jobs are remembered of one partner; the one that came back longest ago is forgotten for another."""


@dataclass(slots=True)
class _Kind:
    # Of jobs that came back: how often in a row, and until when none is offered.
    times: int
    until: float


@dataclass(slots=True)
class ReturnBook:
    """Jobs that one partner has sent back undone; `count` is their number.

    Not durable: after a restart such a job is offered once more.
    """

    count: int = 0
    _kinds: dict[tuple[str, int, int], _Kind] = field(default_factory=dict)

    def came_back(
        self, user: str, request: Request, now: float, *, first_s: float, most_s: float
    ) -> None:
        """Notes that a job came back undone: such jobs are not offered until a pause is over.

        The pause doubles with each return after it; of many concurrent jobs the first counts. The first pause is
        `first_s`, the longest `most_s`; after that long without a return it starts over. All times are in seconds.
        """
        self.count += 1
        key = (user, *_kind(request))
        kind = self._kinds.pop(key, None)
        if kind is None or now > kind.until + most_s:
            kind = _Kind(0, -math.inf)
        if now >= kind.until:
            kind.times += 1
            kind.until = now + pause_after(kind.times, first_s, most_s)
        self._kinds[key] = kind
        if len(self._kinds) > KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]

    def ran(self, user: str, request: Request) -> None:
        """Notes that the partner has run a job: such jobs are offered again."""
        width, length = _kind(request)
        self._kinds = {
            key: kind
            for key, kind in self._kinds.items()
            if key[0] != user or key[1] > width or key[2] > length
        }

    def rests(self, user: str, request: Request, now: float) -> bool:
        """Returns whether a job is not to be offered now (seconds), as such jobs came back."""
        if not self._kinds:
            return False
        width, length = _kind(request)
        return any(
            key[0] == user and key[1] <= width and key[2] <= length and now < kind.until
            for key, kind in self._kinds.items()
        )

    def until(self, now: float) -> float | None:
        """Returns until when some jobs are not offered, seconds; `None` if all are."""
        return max((kind.until for kind in self._kinds.values() if now < kind.until), default=None)


def _kind(request: Request) -> tuple[int, int]:
    # The powers of two up to which it is wide and long.
    return request.processors.bit_length(), math.frexp(request.requested_time)[1]


UNUSED_WINDOW_S: Final = 3600.0
"""An acceptance that led to no run is held against a partner for so long, seconds."""

RUNS_WINDOW_H: Final = 24
"""A job that has begun speaks for its partner for so many hours."""

UNUSED_MAX: Final = 100_000
"""The most unused acceptances that are remembered of one partner; the oldest are forgotten first."""

_HOUR_S: Final = 3600.0


@dataclass(slots=True)
class AcceptanceBudget:
    """A partner's remaining unused acceptances.

    Attributes:
        unused: when acceptances were found to lead to no run, seconds, ascending.
        runs: number of the partner's jobs that have begun, by hour since the clock's zero.
        declined: number of offers declined as the budget was used up.
    """

    unused: deque[float] = field(default_factory=lambda: deque(maxlen=UNUSED_MAX))
    runs: dict[int, int] = field(default_factory=dict)
    declined: int = 0

    def note_unused(self, now: float) -> None:
        """Notes that a job was withdrawn before it began."""
        self.unused.append(now)

    def note_run(self, now: float) -> None:
        """Notes that a job has begun."""
        hour = _hour(now)
        self.runs[hour] = self.runs.get(hour, 0) + 1
        for old in [each for each in self.runs if each <= hour - RUNS_WINDOW_H]:
            del self.runs[old]

    def unused_lately(self, now: float) -> int:
        """Returns the number of acceptances within the last hour that have led to no run."""
        while self.unused and self.unused[0] <= now - UNUSED_WINDOW_S:
            self.unused.popleft()
        return len(self.unused)

    def left(self, now: float, per_hour: int) -> int:
        """Returns how many more acceptances may lead to no run before offers are declined; at least 0.

        A partner that runs nothing has `per_hour` of them. `now` is in seconds.
        """
        hour = _hour(now)
        ran = sum(count for each, count in self.runs.items() if each > hour - RUNS_WINDOW_H)
        return max(0, per_hour + ran - self.unused_lately(now))


def _hour(now: float) -> int:
    return int(min(now, 2.0**53) // _HOUR_S)  # the last moment of a replay is infinity
