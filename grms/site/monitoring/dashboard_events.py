"""What a daemon hands to its dashboard, immutable.

Notes are made on the daemon's event loop and read in the dashboard's thread. A note holds no
payload: a script can be a mebibyte, and notes wait for a dashboard that may be slow.
"""

from dataclasses import dataclass

from grms.policy.transfer import TransferPolicy
from grms.site.accounting.own_account import AccountFigures
from grms.site.model.jobs import Load, Weighed
from grms.site.model.records import Record


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decision about an own user's job rested on.

    Attributes:
        weighed: the load, and for whom the job was kept; `None` if unknown any more.
        policy: that decided; `None` if none was asked.
        passed_over: partners that were not asked at its end, each with the reason; a few at most.
    """

    weighed: Weighed | None
    policy: TransferPolicy | None
    passed_over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """A journal record without its payload, with what a decision rested on."""

    record: Record
    decided: Decided | None = None


@dataclass(frozen=True, slots=True)
class PartnerFigures:
    """What the site knows of one partner, from its own dealings with it; pages are told of it by these names.

    Attributes:
        name: of the partner.
        processors: its size; 0 while unknown.
        state: the worst that holds: "not listed", "faulty", "lost", "unreachable" or "reachable".
        problem: what is in the way, for a person.
        asked: offers made to it.
        accepted: of these, those it took.
        declined: of these, those it did not take.
        undecided: of these, those without an outcome yet.
        open: own jobs there.
        ended: own jobs that ended there.
        awrt_s: of these, seconds.
        guests_offered: offers received from it.
        guests_accepted: of these, those taken.
        guests_declined: of these, those not taken.
        guests_open: its jobs here.
        latency_s: from an offer to its answer, median of the last ones, real seconds; `None` before
            the first.
        latency_max_s: the longest of them.
        last_heard_s: when it last said something, on the site's clock; `None` for never.
        breaches: promises to start a job at once that it has broken.
        suspended_until_s: it is offered nothing before, on the site's clock; `None` if it is
            offered.
    """

    name: str
    processors: int
    state: str
    problem: str
    asked: int
    accepted: int
    declined: int
    undecided: int
    open: int
    ended: int
    awrt_s: float
    guests_offered: int
    guests_accepted: int
    guests_declined: int
    guests_open: int
    latency_s: float | None
    latency_max_s: float | None
    last_heard_s: float | None
    breaches: int = 0
    suspended_until_s: float | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """How the site is at one moment.

    Attributes:
        time: on the site's clock, seconds.
        load: of the batch system; `None` if it does not answer.
        at_lrms: jobs that the batch system has or is to get.
        jobs_open: own users' jobs that have not ended.
        draining: no work is taken.
        partners: the listed ones in their order, then others.
    """

    time: float
    load: Load | None
    at_lrms: int
    jobs_open: int
    draining: bool
    partners: tuple[PartnerFigures, ...]


@dataclass(frozen=True, slots=True)
class CertificateOutput:
    """A partner has shown its certificate (PEM), which names it."""

    partner: str
    pem: bytes


@dataclass(frozen=True, slots=True)
class AccountSeen:
    """The account that the site keeps of itself, with its last 30 days."""

    figures: AccountFigures


Note = Noted | Sampled | AccountSeen | CertificateOutput
