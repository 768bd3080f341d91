"""A partner's promise to start accepted jobs at once.

docs/disciplines.md has the rules ("ExchangeConstraints"). Here is their data: the jobs at the partner that have not been reviewed
yet, and the results of those before.
"""

import math
from dataclasses import dataclass, field
from typing import Final

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
