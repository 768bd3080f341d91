"""The settings of a site, its partners and its limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from grms.policy.circuit_breaker import CircuitBreaker
from grms.policy.constraints import AccountRules
from grms.policy.location import AwrtLocation, LocationPolicy, location_of
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import TransferPolicy, rails_of, transfer_of
from grms.site.model.reservations import Resource
from grms.site.model.translation import NO_TRANSLATION, Translation
from grms.site.model.usage import NO_LIMITS, PROCESSORS, UsageLimits, Weights
from grms.util.names import check_site_name
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.scheduling.disciplines import Discipline, Easy

Requeue = Literal["never", "ask", "allow"]
"""Which local users' jobs may be run again from their start, when a partner has ended them for other jobs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a site, and what happens at each.

    Attributes:
        jobs_open: local users' unfinished jobs; a further submission is refused.
        jobs_open_per_user: the same of one user.
        jobs_kept: local users' ended jobs still remembered, with their idempotency keys; the one that ended first is
            forgotten for a further one, but for its key.
        keys_kept: idempotency keys of forgotten jobs; the oldest is dropped for a further one.
        keys_kept_s: seconds for which such a key is kept at least, while they are no more than that.
        offers_undecided: own offers to one partner whose outcome is open; it is not asked meanwhile, and so cannot
            be made to remember more.
        guests_open: a partner's jobs here whose end is not acknowledged; its further offers are declined.
        answers_kept: a partner's declined and withdrawn offers that it has not settled; its further offers are
            refused, which tells it to try a withdrawal later.
        unused_acceptances: offers of one partner that are accepted and withdrawn within an hour before their jobs
            have begun, and one more for each of its jobs that has begun within a day; beyond, its offers are
            declined.
        payload_bytes: size of the program; a larger job is refused.
        text_characters: length of users' names, keys and jobs' names.
        report_completions: ends in one report of a partner; a larger report is refused.
        reservations_open: unfinished reservations of one owner; a further one is refused.
        reservations_kept: finished reservations still remembered; the one that was over first is forgotten for a further
            one, but for its key.
        reservation_keys_kept: idempotency keys of forgotten reservations; the oldest is dropped for a further one once it
            is `reservation_keys_kept_s` old. While none is, what would need more of them with the open reservations is
            refused: a group whose answer is lost would run twice were its keys dropped before it is asked for again.
        reservation_keys_kept_s: seconds for which such a key is kept at least.
    """

    jobs_open: int = 100_000
    jobs_open_per_user: int = 20_000
    jobs_kept: int = 50_000
    keys_kept: int = 1_000_000
    keys_kept_s: float = 2_592_000.0
    offers_undecided: int = 1_000
    guests_open: int = 50_000
    answers_kept: int = 10_000
    unused_acceptances: int = 2**62
    payload_bytes: int = 1_000_000
    text_characters: int = 128
    report_completions: int = 10_000
    reservations_open: int = 10_000
    reservations_kept: int = 10_000
    reservation_keys_kept: int = 500_000
    reservation_keys_kept_s: float = 3600.0

    def __post_init__(self) -> None:
        """Checks that every limit leaves room for something."""
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class PartnerSettings:
    """A site to exchange jobs with; `processors` is its size, 0 if unknown until it describes itself.

    `limits` are of a month.
    """

    name: str
    processors: int = 0
    limits: UsageLimits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The settings of a site.

    Attributes:
        name: unique in the federation; prefix of its jobs' names.
        processors: size of its machine.
        epoch: of its journal, 1 and more; a journal that replaces a lost one has a greater one.
        partners: the allow-list; its order breaks ties.
        transfer: by partner's name. A missing partner is neither asked nor answered.
        partners_asked: most partners asked about one job in one decision; `None`: all.
        reoffer: local jobs that still wait are offered again at multiples of so many seconds, all of them to all
            partners, or as `Rebalancing` says; `None`: each is offered only on its arrival.
        circuit_breaker: when to stop exchange because of its cost to local users; `None`: never.
        confirm_time_max: how long a place is held for a partner's job that its home site still has, seconds.
        resources: reservable ones.
        runs_nothing: whether the batch system is simulated: a program launched in a reservation is accepted and not
            run. A site with a real one refuses it.
        run_time_grace: by which a reported run time may exceed the requested time, seconds: batch systems end jobs
            slightly late.
        clock_grace: by which clocks of two sites may differ, seconds; infinity: partners' times are not checked, as
            where one virtual clock is moved for all.
        elapsed_grace: by which a reported run time may exceed the time since the offer, seconds, in addition to
            `clock_drift`.
        clock_drift: share by which the time since the offer may be longer than on this site's clock: two clocks
            drift apart slightly, and one that lets another catch up goes slower.
        undecided_time_max: an offer whose outcome is open for so long is overdue, seconds.
        delegated_time_max: a delegated job is overdue when it has not ended so long after it could have been over,
            had it started when it was accepted; seconds.
        probe_first_s: pause before a faulty partner is probed, wall seconds; it doubles with each fault until an
            offer is answered properly.
        probe_most_s: the longest such pause.
        on_lost: what happens to jobs at a lost partner. "wait": they stay SUSPECT until it is back, for good if it
            never is. "resubmit": they are decided again; if the partner was only unreachable, such a job can run
            twice, and be cancelled there later.
        decision_time_max: seconds from the submission during which partners are asked; after that the job stays at
            home.
        retry_first_s: pause before an unanswered question is repeated, wall seconds; it doubles each time.
        retry_most_s: the longest such pause.
        translation: of the names in partners' jobs.
        nodes: of the machine, as disclosed to partners; empty for not.
        weights: what counts how much in costs and limits.
        given_user: what jobs of one local user may use at all partners in a month, weighted processor seconds; infinity
            for no limit.
        requeue: which local users' jobs a partner may end for other jobs, so that they are run again from their start.
            "never": none. "ask": those whose user has said so. "allow": all but those whose user has said that they
            must not run again.
        preempt_guests: whether the batch system may end partners' jobs that may be run again for other jobs.
        empty_returns: a job that partners have sent home so often in all is not offered any more; with an account its rules say it.
        keeps_places: whether the batch system keeps the place in its queue of a local user's job that its partner may send home.
        discipline: of the machine, for the account that the site keeps of itself.
        account: how the site keeps an account of itself, by its first policy within such constraints; `None` if by none.
        sends_guests_home: whether guests are taken as ones that may be sent home, and the account says which stay.
        questions: how many partners a decision may ask, fewer than there are; -1 if it may ask all.

    Policies that are written in Python are wrapped, and all are compiled, so that no decision has to.

    Raises:
        ValueError: a name is duplicate or missing, or a bound is violated.
        TypeError: what is given as a policy is none.
    """

    name: str
    processors: int
    epoch: int = 1
    partners: tuple[PartnerSettings, ...] = ()
    transfer: Mapping[str, TransferPolicy] = field(default_factory=dict)
    location: LocationPolicy = field(default_factory=AwrtLocation)
    partners_asked: int | None = None
    reoffer: float | Rebalancing | None = None
    circuit_breaker: CircuitBreaker | None = None
    confirm_time_max: float = 300.0
    resources: tuple[Resource, ...] = ()
    runs_nothing: bool = True
    on_lost: Literal["wait", "resubmit"] = "wait"
    decision_time_max: float = math.inf
    run_time_grace: float = 60.0
    clock_grace: float = 300.0
    elapsed_grace: float = 1.0
    clock_drift: float = 1e-3
    undecided_time_max: float = math.inf
    delegated_time_max: float = math.inf
    probe_first_s: float = 10.0
    probe_most_s: float = 900.0
    retry_first_s: float = 0.2
    retry_most_s: float = 60.0
    limits: Limits = field(default_factory=Limits)
    translation: Translation = NO_TRANSLATION
    nodes: tuple[NodeKind, ...] = ()
    weights: Weights = PROCESSORS
    given_user: float = math.inf
    requeue: Requeue = "never"
    preempt_guests: bool = False
    empty_returns: int = 2
    keeps_places: bool = False
    discipline: Discipline = field(default_factory=Easy)
    account: AccountRules | None = field(init=False, compare=False)
    sends_guests_home: bool = field(init=False, compare=False)
    questions: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Checks names and bounds."""
        transfer = {name: transfer_of(policy) for name, policy in self.transfer.items()}
        rules = (each.account for each in map(rails_of, transfer.values()) if each is not None)
        account = next((each for each in rules if each is not None), None)
        bound = self.partners_asked
        for name, found in (
            ("transfer", transfer),
            ("location", location_of(self.location)),
            ("account", account),
            ("sends_guests_home", account is not None and account.guests == "preempt"),
            ("questions", -1 if bound is None or bound >= len(transfer) else bound),
        ):
            object.__setattr__(self, name, found)
        check_site_name(self.name)
        for what, number, most in (
            ("processors", self.processors, 2**31),
            ("epoch", self.epoch, 2**63),
            ("empty_returns", self.empty_returns, 2**31),
        ):
            if not 1 <= number < most:
                raise ValueError(f"{what} is {number}; it must be at least 1 and below {most}")
        if self.partners_asked is not None and self.partners_asked < 1:
            raise ValueError(f"partners_asked is {self.partners_asked}; it must be at least 1")
        self._check_partners()
        for key in (
            "decision_time_max",
            "run_time_grace",
            "clock_grace",
            "elapsed_grace",
            "clock_drift",
            "undecided_time_max",
            "delegated_time_max",
            "confirm_time_max",
            "given_user",
        ):
            if not getattr(self, key) >= 0:
                raise ValueError(f"{key} is {getattr(self, key)}; it must be at least 0")
        for pause, first_s, most_s in (
            ("retry", self.retry_first_s, self.retry_most_s),
            ("probe", self.probe_first_s, self.probe_most_s),
        ):
            if not 0 <= first_s <= most_s < math.inf:
                raise ValueError(
                    f"{pause}_first_s is {first_s} and {pause}_most_s {most_s}; both must be finite, "
                    f"and the first not more than the second"
                )

    def _check_partners(self) -> None:
        names = [partner.name for partner in self.partners]
        for position, partner in enumerate(self.partners):
            check_site_name(partner.name)
            if partner.name == self.name:
                raise ValueError(f"site {self.name!r} is listed as its own partner")
            if partner.name in names[:position]:
                raise ValueError(f"partner {partner.name!r} is listed twice")
            if not 0 <= partner.processors < 2**31:
                raise ValueError(
                    f"partner {partner.name!r} has {partner.processors} processors; at least 1, "
                    f"or 0 for unknown"
                )
        for partner_name in self.transfer:
            if partner_name not in names:
                raise ValueError(
                    f"there is a transfer policy for {partner_name!r}, which is no partner; the "
                    f"partners are {', '.join(names) or 'none'}"
                )
