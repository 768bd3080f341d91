"""Sites of a replay that exchange jobs, their validation, and dishonest ones.

Replays with dishonest sites measure what honest ones lose. Honest sites do not know them: a Byzantine partner has
other policies than it shows, defers its guests, or misreports them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from grms.policy.constraints import AccountRules
from grms.policy.location import AwrtLocation, LocationPolicy, location_of
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysAgree,
    AlwaysKeep,
    TransferPolicy,
    compiled_transfer,
    rails_of,
)
from lrms_sim.electricity.power import DeferralRule
from lrms_sim.electricity.series import Series
from lrms_sim.machine.machine import check_machine
from lrms_sim.machine.node_kinds import NodeMachine
from lrms_sim.machine.nodes import Demands, check_demands
from lrms_sim.scheduling.disciplines import Discipline, Fcfs, scheduler_of
from lrms_sim.scheduling.user_defined import name_of_user_defined
from lrms_sim.workload.groups import Int8Array, check_groups, known_user_groups
from lrms_sim.workload.jobs import FloatArray, JobTable

Share = Literal["rules", "fit", "everything", "nothing"]
"""By the site's own policies, by accept when fit, everything, nothing."""


@dataclass(frozen=True, slots=True)
class ByzantinePartner:
    """A kind of dishonest partner.

    Attributes:
        gives: own jobs it offers.
        takes: offers it accepts, of jobs that fit its machine.
        holds: it starts no guest before the last arrival of the whole replay.
        lies: it reports that a guest has run since it came, or for its whole request if that is less, whatever
            its wait.
        returns: it sends guests home after 99.9 % of their run time, with nothing kept, as if an own job needed
            their processors.
        hides: partners are not told that its jobs keep their state.
    """

    name: str
    text: str
    gives: Share = "rules"
    takes: Share = "rules"
    holds: bool = False
    lies: bool = False
    returns: bool = False
    hides: bool = False

    def giving(self, policy: TransferPolicy) -> TransferPolicy:
        """Returns the policy that selects own jobs to offer; `policy` is an honest site's."""
        return _POLICIES.get(self.gives, policy)

    def taking(self, policy: TransferPolicy) -> TransferPolicy:
        """Returns the policy that selects a partner's jobs to accept; `policy` is an honest site's."""
        return _POLICIES.get(self.takes, policy)


_POLICIES: Final[Mapping[Share, TransferPolicy]] = MappingProxyType(
    {"fit": AcceptWhenFit(), "everything": AlwaysAgree(), "nothing": AlwaysKeep()}
)

_BYZANTINE: Final = (
    ByzantinePartner(
        "black-hole",
        "takes every job into its queue, and offers what does not fit",
        gives="fit",
        takes="everything",
    ),
    ByzantinePartner(
        "starts-nothing",
        "takes every job and starts no guest before the last arrival of all",
        takes="everything",
        holds=True,
    ),
    ByzantinePartner(
        "takes-all", "takes every job and gives none", gives="nothing", takes="everything"
    ),
    ByzantinePartner("free-rider", "offers by its rules and takes nothing", takes="nothing"),
    ByzantinePartner(
        "free-rider-all", "offers every job and takes nothing", gives="everything", takes="nothing"
    ),
    ByzantinePartner(
        "liar",
        "takes every job, and reports that it has run since it came",
        takes="everything",
        lies=True,
    ),
    ByzantinePartner("awf-taker", "offers by its rules and takes what fits", takes="fit"),
    ByzantinePartner("awf", "offers and takes by accept when fit", gives="fit", takes="fit"),
)

BYZANTINE_PARTNERS: Final[Mapping[str, ByzantinePartner]] = MappingProxyType(
    {rogue.name: rogue for rogue in _BYZANTINE}
)

_BYZANTINE_PREEMPTING: Final = (
    ByzantinePartner(
        "returns-all",
        "takes by its rules and sends every guest home just before its end, with its work lost",
        returns=True,
    ),
    ByzantinePartner(
        "hides-checkpoints", "does not say that its jobs keep their state", hides=True
    ),
)

BYZANTINE_PREEMPTING: Final[Mapping[str, ByzantinePartner]] = MappingProxyType(
    {rogue.name: rogue for rogue in _BYZANTINE_PREEMPTING}
)
"""Those that only differ where guests may be sent home: at a site with strict exchange."""


SITES_MAX = 2**15 - 1
"""The kernel numbers sites with 16 bits."""

EXCHANGING_ON_NODES = ("fcfs", "list", "easy", "conservative")
"""Disciplines of sites with nodes, by name."""

PREEMPTING = ("fcfs", "list", "easy", "easy-per-event")
"""Disciplines that can send guests home, and have jobs come back, by name."""

NAMES_LISTED_MAX = 20
"""Most names of sites in an error."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Which jobs of a site's users keep their state, so that they go on elsewhere.

    Attributes:
        every: seconds between two checkpoints, more than 0; a checkpoint takes no time.
        jobs: every so many-th of the site's jobs does, counted from 1; at least 1.
    """

    every: float
    jobs: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.every) and self.every > 0):
            raise ValueError(
                f"checkpoints every {self.every} s; a finite time of more than 0 is needed"
            )
        if self.jobs < 1:
            raise ValueError(f"checkpoints of every {self.jobs}th job; at least 1 is needed")

    def column(self, count: int) -> FloatArray:
        """Returns how often each of `count` jobs keeps its state, seconds, 0 for never, shape (n,)."""
        column = np.zeros(count)
        column[self.jobs - 1 :: self.jobs] = self.every
        return column


@dataclass(frozen=True, slots=True)
class CheaperPartners:
    """Partners are asked in ascending order of what a job would cost there, if it started now.

    Those where it costs less than at home, by `rule.saving` at least, are asked whatever the transfer policy
    would like to keep; they answer by their own policies. At home the cost is that of the start which
    `rule` plans, `rule.delay_max` 0 being now.

    Attributes:
        rule: how long own jobs wait for cheap hours at home, and which saving counts.
        only: other partners are not asked at all.
    """

    rule: DeferralRule = field(default_factory=lambda: DeferralRule(0.0))
    only: bool = False


@dataclass(frozen=True)
class Site:
    """One institution: its machine, its users' workload, and how it deals with partners.

    Attributes:
        jobs: its own users' workload; no job is wider than the machine.
        transfer_policies: by partner's name. Partners without one exchange no jobs.
        location_policy: the order in which partners are asked.
        reoffer: own waiting jobs are offered again at the multiples of this many seconds, at least 1, all
            to all partners, or as `Rebalancing` says; `None`: jobs are offered only on arrival.
        partners_asked: most partners asked about a job in one decision, the first in the order of the location
            policy; `None`: all.
        groups: the user group 1 to 5 of each job, wherever it runs; if not given but needed by some site's
            discipline, those of `lrms_sim.workload.groups.user_groups`.
        rogue: how the site differs from an honest partner, if it does.
        nodes: those of the machine, where more than processors is to decide; `processors` is the sum of
            their cores. Passes per event and strategies are for machines of processors.
        demands: what the jobs ask of nodes; processors alone where left out.
        tells: what it tells partners of a job: its whole request, or `processors` alone. Then only jobs that
            ask for no more are offered.
        checkpoint: which of its jobs go on where they were when they are sent home; `None`: none.
        restart: seconds that its jobs run, and request, more after each time they were sent home; at least 0.
        tariff: what it costs there to have a processor busy rather than not, a second; known to all, in the
            same unit at all sites.
        cheaper: puts partners in order by their tariffs, in place of the location policy.
    """

    name: str
    processors: int
    jobs: JobTable
    discipline: Discipline = field(default_factory=Fcfs)
    transfer_policies: Mapping[str, TransferPolicy] = field(default_factory=dict)
    location_policy: LocationPolicy = field(default_factory=AwrtLocation)
    reoffer: float | Rebalancing | None = None
    partners_asked: int | None = None
    groups: Int8Array | None = None
    rogue: ByzantinePartner | None = None
    nodes: NodeMachine | None = None
    demands: Demands | None = None
    tells: Literal["requests", "processors"] = "requests"
    checkpoint: Checkpoints | None = None
    restart: float = 0.0
    tariff: Series | None = None
    cheaper: CheaperPartners | None = None

    def demanded(self) -> Demands:
        """Returns what its jobs ask of nodes."""
        return Demands.of_processors(self.jobs) if self.demands is None else self.demands


def groups_of(site: Site) -> Int8Array:
    """Returns the user group of each of a site's jobs, shape (n,).

    Raises:
        ValueError: they are unknown or invalid.
    """
    try:
        if site.groups is not None:
            return check_groups(site.groups, len(site.jobs))
        return known_user_groups(site.jobs)
    except ValueError as error:
        raise ValueError(f"site {site.name!r}: {error}") from error


def check_sites(sites: Sequence[Site]) -> None:
    """Checks that these sites can exchange jobs.

    Raises:
        ValueError: a name comes twice, a policy names a missing site, a job is wider than its site, or a
            discipline does not support guests that arrive out of order.
    """
    if not 1 <= len(sites) <= SITES_MAX:
        raise ValueError(f"{len(sites)} sites; between 1 and {SITES_MAX} are possible")
    names = {site.name: None for site in sites}
    seen: set[str] = set()
    for site in sites:
        if site.name in seen:
            raise ValueError(f"two sites are called {site.name!r}; names must be unique")
        seen.add(site.name)
        check_machine(site.jobs, site.processors, site.name)
        _check_nodes(site)
        _check_numbers(site)
        location = location_of(site.location_policy)
        for what, partners in (
            ("a transfer policy for", site.transfer_policies),
            ("a place in its location order for", location.order or ()),
        ):
            for partner in partners:
                if partner == site.name:
                    raise ValueError(f"site {site.name!r} has {what} itself")
                if partner not in names:
                    raise ValueError(
                        f"site {site.name!r} has {what} {partner!r}; the sites are "
                        f"{_listed(list(names))}"
                    )
    _check_order(sites)
    _check_accounts(sites)


def _accounts(site: Site) -> set[AccountRules]:
    """Returns how a site's policies want the account of itself to be kept."""
    found = set()
    for policy in {id(one): one for one in site.transfer_policies.values()}.values():
        rails = rails_of(policy)
        if rails is not None and rails.account is not None:
            found.add(rails.account)
    return found


def preempts_guests(site: Site) -> bool:
    """Returns whether a site may send all guests home: of every partner, by its policies for their offers."""
    return bool(_accounts(site)) and all(
        (rails := rails_of(policy)) is not None
        and rails.account is not None
        and rails.account.guests == "preempt"
        for partner in site.transfer_policies
        if (policy := taking(site, partner)) is not None
    )


def _check_accounts(sites: Sequence[Site]) -> None:
    for site in sites:
        if site.rogue is not None and site.rogue.returns and not preempts_guests(site):
            raise ValueError(
                f"site {site.name!r} sends all guests home ({site.rogue.name}), which its batch system can "
                "under strict-exchange alone, with guests that may be preempted"
            )
        if len(_accounts(site)) > 1:
            raise ValueError(
                f"site {site.name!r} has one account: its rules are the same for all partners"
            )
    for name, problem in cannot_lose_jobs(sites):
        raise ValueError(f"site {name!r} {problem}")


def cannot_lose_jobs(sites: Sequence[Site]) -> Iterator[tuple[str, str]]:
    """Yields sites whose discipline cannot have jobs sent home and come back where one may, and why."""
    if not any(_accounts(site) for site in sites):
        return
    for site in sites:
        if site.transfer_policies and not scheduler_of(site.discipline).preempts:
            discipline = name_of_user_defined(site.discipline)
            yield (
                site.name,
                (
                    f"cannot exchange jobs where a site has strict-exchange: its discipline {discipline!r} "
                    "can neither have jobs taken away nor have them back in their old places; those that "
                    f"can are {', '.join(PREEMPTING)}"
                ),
            )


def _check_numbers(site: Site) -> None:
    if isinstance(site.reoffer, float | int) and not 1 <= site.reoffer < math.inf:
        raise ValueError(
            f"site {site.name!r} offers again every {site.reoffer} s; at least 1 s is needed"
        )
    if not 0 <= site.restart < math.inf:
        raise ValueError(
            f"jobs of site {site.name!r} need {site.restart} s more after a return; at least 0 is needed"
        )
    if site.cheaper is not None and site.tariff is None:
        raise ValueError(
            f"site {site.name!r} prefers partners where a job costs less, and has no tariff itself"
        )
    if site.partners_asked is not None and not site.partners_asked >= 1:
        raise ValueError(
            f"site {site.name!r} asks {site.partners_asked} partners about a job; at least 1 is needed"
        )


def _check_nodes(site: Site) -> None:
    if site.nodes is None:
        if site.demands is not None:
            raise ValueError(f"site {site.name!r} has demands and no nodes")
        return
    if site.nodes.processors != site.processors:
        raise ValueError(
            f"site {site.name!r} has {site.processors} processors, its nodes have {site.nodes.processors}"
        )
    discipline = name_of_user_defined(site.discipline)
    if discipline not in EXCHANGING_ON_NODES:
        raise ValueError(
            f"site {site.name!r}: discipline {discipline!r} knows no nodes in an exchange; there are "
            f"{', '.join(EXCHANGING_ON_NODES)}"
        )
    try:
        check_demands(site.jobs, site.nodes, site.demanded())
    except ValueError as error:
        raise ValueError(f"site {site.name!r}: {error}") from error


def taking(site: Site, partner: str) -> TransferPolicy | None:
    """Returns the policy for a partner's offers; `None` for no exchange."""
    policy = site.transfer_policies.get(partner)
    if policy is None or site.rogue is None:
        return policy
    return site.rogue.taking(policy)


def _check_order(sites: Sequence[Site]) -> None:
    for name, problem in out_of_order(sites):
        raise ValueError(f"site {name!r} {problem}")


def out_of_order(sites: Sequence[Site]) -> Iterator[tuple[str, str]]:
    """Yields sites that would get guests their discipline does not support, and why.

    A job that is offered again arrives out of order, and so may one that starts at once.
    """
    homes = [site for site in sites if site.reoffer is not None]
    for site in sites:
        if scheduler_of(site.discipline).any_order:
            continue
        discipline = name_of_user_defined(site.discipline)
        cannot = f"its discipline {discipline!r} cannot have guests that come out of order"
        if site.rogue and site.rogue.holds:
            yield site.name, f"puts guests aside ({site.rogue.name}); {cannot}"
            continue
        for home in homes:
            if site.name not in home.transfer_policies:
                continue
            policy = taking(site, home.name)
            rails = None if policy is None else compiled_transfer(policy).rails
            if policy is not None and (rails is None or not rails.start_now):
                yield (
                    site.name,
                    f"takes what would wait there, and {home.name!r} offers waiting jobs again; {cannot}",
                )
                break


def _listed(names: Sequence[str]) -> str:
    more = f" … ({len(names)} in all)" if len(names) > NAMES_LISTED_MAX else ""
    return ", ".join(names[:NAMES_LISTED_MAX]) + more
