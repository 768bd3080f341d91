"""The constraints around a transfer policy, as plainly as they can be written.

A second, independent reading of docs/disciplines.md ("ExchangeConstraints"): everything is counted anew from the
list of what was delegated and what has ended.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracles.machine import PlainJob


@dataclass(frozen=True, slots=True)
class PlainConstraints:
    """The four rules; `math.inf` and None stand for a rule that is not in force."""

    start_now: bool = True
    guest_length: float = math.inf
    balance: float = math.inf
    balance_weight: float = 2.0
    promise: tuple[float, float, float, int] | None = None


@dataclass(slots=True)
class Delegation:
    """A job that runs elsewhere; `counted` once its promise was found to be broken or kept.

    `told` is the run time that the partner has reported, of one that has ended.
    """

    home: int
    partner: int
    job: PlainJob
    since: float
    ended: float | None = None
    told: float | None = None
    counted: bool = False
    gone: bool = False

    @property
    def requested(self) -> float:
        """Requested work."""
        return self.job.requested_time * self.job.processors

    @property
    def work(self) -> float:
        """Work that it has turned out to be."""
        return self.job.run_time * self.job.processors


@dataclass(slots=True)
class Opinion:
    """What a site thinks of a partner's promise."""

    credit: float = 0.0
    breaches: int = 0
    suspended_until: float = 0.0


@dataclass(slots=True)
class PlainBooks:
    """What all sites have noted; each looks at its own entries alone.

    Attributes:
        sizes: processors, by site.
        delegations: in the order in which they were made.
        completed: (home, job) of every job that has ended, wherever it ran.
        opinions: of (home, partner).
        offers: questions that reached a partner, by home.
    """

    sizes: Sequence[int] = ()
    delegations: list[Delegation] = field(default_factory=list)
    completed: list[tuple[int, PlainJob]] = field(default_factory=list)
    opinions: dict[tuple[int, int], Opinion] = field(default_factory=dict)
    offers: dict[int, int] = field(default_factory=dict)

    def between(self, home: int, partner: int) -> list[Delegation]:
        """Returns what one site has given to another, in order."""
        return [d for d in self.delegations if (d.home, d.partner) == (home, partner)]

    def guest_is_short(self, rails: PlainConstraints, site: int, job: PlainJob) -> bool:
        """Whether a guest requests no more than own users' completed jobs did, times a factor."""
        own = [other for home, other in self.completed if home == site]
        work = sum(other.run_time * other.processors for other in own)
        if work == 0:
            return True
        weighted = sum(o.run_time * o.processors * o.requested_time for o in own)
        return not job.requested_time > rails.guest_length * (weighted / work)

    def in_balance(self, rails: PlainConstraints, site: int, home: int, job: PlainJob) -> bool:
        """Whether a partner has not taken much more from `home` than `home` has done for it."""
        taken = sum(d.requested if d.ended is None else d.work for d in self.between(home, site))
        given = sum(
            d.told * d.job.processors for d in self.between(site, home) if d.told is not None
        )
        more = taken + job.requested_time * job.processors - rails.balance_weight * given
        return not more > rails.balance * self.sizes[site]

    def trusts(
        self, rails: PlainConstraints, home: int, partner: int, job: PlainJob, now: float
    ) -> bool:
        """Looks at every open job there, then says whether a further one may go."""
        if rails.promise is None:
            return True
        tolerance, trust, suspension, doublings = rails.promise
        opinion = self.opinions.setdefault((home, partner), Opinion())
        open_jobs = [d for d in self.between(home, partner) if not d.gone]
        for one in open_jobs:
            if one.ended is not None:
                assert one.told is not None
                broken = one.ended - one.since - one.told > tolerance
                one.gone = True
                if not broken and not one.counted:
                    opinion.credit += one.requested
            else:
                broken = now > one.since + one.job.requested_time + tolerance
            if broken and not one.counted:
                one.counted = True
                opinion.credit = 0.0
                if not now < opinion.suspended_until:
                    opinion.breaches += 1
                pause = suspension * 2 ** min(opinion.breaches - 1, doublings)
                opinion.suspended_until = max(opinion.suspended_until, now + pause)
        if now < opinion.suspended_until:
            return False
        held = [d.requested for d in open_jobs if not d.gone]
        this_one = job.requested_time * job.processors
        return not held or sum(held) + this_one <= trust * self.sizes[home] + opinion.credit
