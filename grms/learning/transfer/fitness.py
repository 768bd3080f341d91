"""Fitness of policies: the AWRT they bring on training workloads.

Evaluating a genome replays whole workloads in compiled code without the GIL; the workloads are
merged once, before. A genome is one site's policy for fixed partners, or a match of rule bases, one of each
site, all within the same constraints. The baseline of a match is the constraints alone, a policy that always
agrees within them: it needs no learning, so an AWRT counts as a part of the AWRT that it brings.

Scenario files belong to a higher layer, whose reader is a plugin: an installed package names a
function in the entry point group `hanse.scenario_loaders`, and `grms train` looks it up.
"""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from grms.federation.federation import Federation, ReplayWorkspace, Site
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.self_play import parted
from grms.learning.evolution.strategies import Evaluation
from grms.learning.transfer.encoding import RuleBaseSettings, compile_genome, rule_count
from grms.learning.transfer.options import Objective
from grms.policy._decisions import CompiledTransfer, MembershipTable
from grms.policy.constraints import CONSTRAINTS, STRICT_REOFFER, ExchangeConstraints
from grms.policy.files import rule_base_to_document
from grms.policy.location import location_of
from grms.policy.transfer import AcceptWhenFit, AlwaysAgree, Constrained, RuleBase, TransferPolicy
from lrms_sim.scheduling.criteria import CriterionOrder
from lrms_sim.scheduling.disciplines import DISCIPLINES, Discipline
from lrms_sim.scheduling.selection import Policy
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile, strategy_to_document
from lrms_sim.util.errors import HanseError
from lrms_sim.util.plugins import SCENARIO_GROUP, load_plugin, plugin_names
from lrms_sim.workload.jobs import jobs_sha256


class Workspace:
    """Membership tables and memory of replays, of each thread its own; a copy in another process begins with none."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __reduce__(self) -> tuple[type["Workspace"], tuple[()]]:
        return Workspace, ()

    def table(self, processors: int, rules: int) -> MembershipTable:
        """Returns a table for machines of a size and rule bases of so many rules."""
        tables: dict[tuple[int, int], MembershipTable] = vars(self._local).setdefault("tables", {})
        key = processors, rules
        if key not in tables:
            tables[key] = MembershipTable(processors, rules)
        return tables[key]

    def replay(self, case: int, federation: Federation) -> ReplayWorkspace:
        """Returns the memory for replays of a case."""
        memory: dict[int, ReplayWorkspace] = vars(self._local).setdefault("memory", {})
        if case not in memory:
            memory[case] = ReplayWorkspace(len(federation.jobs))
        return memory[case]


OBJECTIVES: tuple[Objective, ...] = ("egoistic", "no_loser")
PENALTY = 10.0
"""Weight of a partner's loss in the objective `no_loser`: one per cent that a partner loses costs
the site ten per cent of its own, far more than any exchange of work could bring it.
"""


@dataclass(frozen=True)
class TrainingCase:
    """One replay that evaluates a policy.

    Attributes:
        federation: sites and workloads; the policies of all but the evolved site are kept.
        site: name of the site whose policy evolves.
        partners: those to use the policy with.

    Raises:
        ValueError: a name is not in the federation, or no partner is named.
    """

    federation: Federation
    site: str
    partners: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [site.name for site in self.federation.sites]
        for name in (self.site, *self.partners):
            if name not in names:
                raise ValueError(f"there is no site {name!r}; the sites are {', '.join(names)}")
        if not self.partners or self.site in self.partners:
            raise ValueError(f"site {self.site!r} needs a partner other than itself")


class SourceError(HanseError, ValueError):
    """A scenario that cannot be learned from; the text says what, where, and a remedy."""


@dataclass(frozen=True)
class TrainingSource:
    """A scenario for training.

    Attributes:
        sites: with workloads and policies, in the order that breaks ties.
        provenance: of each site's workload, plain values: the log, its checksum, the window.
        warnings: caveats for the user.
    """

    name: str
    sites: tuple[Site, ...]
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


ScenarioLoader = Callable[[str], TrainingSource]
"""Reads the scenario that a user named; raises SourceError if it cannot."""


def load_source(reference: str) -> TrainingSource:
    """Reads a scenario with the installed loader.

    Raises:
        SourceError: no loader is installed, or the scenario cannot be read.
        PluginError: the loader cannot be used.
    """
    # Of several the first by name, so that the choice does not depend on the installation.
    names = plugin_names(SCENARIO_GROUP)
    if not names:
        raise SourceError(
            f"nothing that reads scenarios is installed (entry point group {SCENARIO_GROUP}); "
            f"install Hanse itself, such as with: make setup"
        )
    loader: ScenarioLoader = load_plugin(
        SCENARIO_GROUP, names[0], "scenario loader", callable, "a function"
    )
    return loader(reference)


def training_cases(
    source: TrainingSource, site: str, partners: Sequence[str], *, together: bool = False
) -> list[TrainingCase]:
    """Returns the replays that evaluate a site's policy for its partners, at least one.

    Other sites are left out of the replays, with everything about them. With `together` there is
    one replay with all partners, else one with each.

    Raises:
        SourceError: there is no such site, a partner comes twice or is the site itself, or the
            site has no jobs.
    """
    names = [one.name for one in source.sites]
    for name in (site, *partners):
        if name not in names:
            raise SourceError(
                f"scenario {source.name} has no site {name!r}; its sites are {', '.join(names)}"
            )
    if not partners:
        raise SourceError(f"site {site} needs a partner to learn with; name one with --partner")
    if len({site, *partners}) != 1 + len(partners):
        raise SourceError(f"{', '.join((site, *partners))}: a site is named twice")
    groups = [tuple(partners)] if together else [(partner,) for partner in partners]
    return [
        TrainingCase(Federation(_only(source.sites, {site, *group})), site, group)
        for group in groups
    ]


def _only(sites: Sequence[Site], names: set[str]) -> list[Site]:
    """Returns some of the sites, without references to the others."""
    return [
        replace(
            site,
            transfer_policies={
                partner: policy
                for partner, policy in site.transfer_policies.items()
                if partner in names
            },
            location_policy=location_of(site.location_policy).among(names),
        )
        for site in sites
        if site.name in names
    ]


class Fitness:
    """Evaluates genomes by replay.

    The objective `egoistic` is the paper's: the AWRT of the evolved site, in seconds, averaged
    over the cases. `no_loser` is, averaged over the cases, the evolved site's AWRT relative to
    its AWRT without cooperation, plus `PENALTY` times the excess of each partner's AWRT over its
    own without cooperation, relative to it: a policy by which a partner loses is worse than any by
    which none does, or nearly so.

    Attributes:
        cases: at least one, all with an evolved site of one size and the same number of rules.
        objective: which of the two.
        rails: constraints of the evolved policy, if any.
        further: the features of its rules in addition to NWP and NJP, in their order.
        alone: AWRT of each site without cooperation, seconds, for each case in order; nan for a
            site without jobs.

    Raises:
        ValueError: there is no case, the evolved site's size differs between cases, or the
            evolved site has no jobs.
    """

    def __init__(
        self,
        cases: Sequence[TrainingCase],
        objective: Objective = "egoistic",
        *,
        rails: ExchangeConstraints | None = None,
        further: tuple[str, ...] = (),
    ) -> None:
        if not cases:
            raise ValueError("a fitness needs at least one training case")
        self.cases = tuple(cases)
        if objective not in OBJECTIVES:
            raise ValueError(f"the objective is {objective!r}; there are: {', '.join(OBJECTIVES)}")
        self.objective = objective
        self.rails, self.further = rails, further
        self._indices = [
            [site.name for site in case.federation.sites].index(case.site) for case in cases
        ]
        sizes = {
            case.federation.sites[index].processors
            for case, index in zip(cases, self._indices, strict=True)
        }
        if len(sizes) > 1:
            raise ValueError(f"the evolved site has {sorted(sizes)} processors; one size is needed")
        self._processors = sizes.pop()
        self.alone = tuple(awrt_alone(case.federation) for case in cases)
        for case, alone, index in zip(self.cases, self.alone, self._indices, strict=True):
            if math.isnan(alone[index]):
                raise ValueError(f"site {case.site!r} has no jobs, so there is nothing to learn")
        self._workspace = Workspace()

    def __call__(self, genome: Genome, bound: float = math.inf) -> Evaluation:
        """Replays every case with the genome's policy; the bound is ignored.

        Returns:
            The value, and as figures the AWRT of each site in seconds: a row for each case, sites
            in site order.
        """
        del bound
        table = self._workspace.table(self._processors, rule_count(genome, self.further))
        awrt = self._awrt(compile_genome(genome, table, self.further))
        values = [
            self._value(result, alone, index)
            for result, alone, index in zip(awrt, self.alone, self._indices, strict=True)
        ]
        return Evaluation(sum(values) / len(values), awrt)

    def constant(self) -> tuple[tuple[float, ...], ...]:
        """Returns the AWRT of each site with the constant policy, in seconds, a row for each case.

        Within constraints that is the constraints alone, else accept when fit.
        """
        return self._awrt((AcceptWhenFit() if self.rails is None else AlwaysAgree()).compiled)

    def _awrt(self, policy: CompiledTransfer) -> tuple[tuple[float, ...], ...]:
        if self.rails is not None:
            policy = policy.constrained(self.rails.compiled)
        return tuple(
            tuple(
                case.federation.awrt(
                    dict.fromkeys(((case.site, partner) for partner in case.partners), policy),
                    self._workspace.replay(number, case.federation),
                )
            )
            for number, case in enumerate(self.cases)
        )

    def _value(self, awrt: Sequence[float], alone: Sequence[float], evolved: int) -> float:
        if self.objective == "egoistic":
            return awrt[evolved]
        losses = (
            max(0.0, awrt[site] / alone[site] - 1.0)
            for site in range(len(awrt))
            if site != evolved and not math.isnan(alone[site])
        )
        return awrt[evolved] / alone[evolved] + PENALTY * sum(losses)


def awrt_alone(federation: Federation) -> tuple[float, ...]:
    """Returns the AWRT of each site without cooperation, seconds; nan for a site without jobs."""
    schedule = federation.replay_alone()
    consumption = schedule.jobs.resource_consumption
    weighted = consumption * schedule.response_time
    sites = len(federation.sites)
    sums = np.bincount(schedule.submitted_to, consumption, sites)
    awrt = np.full(sites, np.nan)
    np.divide(np.bincount(schedule.submitted_to, weighted, sites), sums, out=awrt, where=sums > 0)
    return tuple(awrt.tolist())


def within_constraints_alone(sites: Sequence[Site], rails: ExchangeConstraints) -> list[Site]:
    """Returns the sites, each exchanging jobs by constraints alone with those it exchanges with.

    With an account they offer waiting jobs again, as everywhere, unless they do so otherwise.
    """
    policy = Constrained(rails)
    rounds = None if rails.account is None else STRICT_REOFFER
    return [
        replace(
            site,
            transfer_policies=dict.fromkeys(site.transfer_policies, policy),
            reoffer=rounds if site.reoffer is None else site.reoffer,
        )
        for site in sites
    ]


class MatchFitness:
    """Evaluates matches of rule bases by replay.

    The cost to a site is its AWRT as a part of its AWRT with the constraints alone, averaged over the
    cases; with the objective `no_loser` also `PENALTY` times the excess of each other site's AWRT
    over that of the constraints alone. The value of the match is the mean of all parts, and `PENALTY`
    times any excess over 1, under both objectives: a set of rule bases is useful if it leaves no
    site worse off.

    Args:
        cases: sites with workloads, the same names and sizes in all.
        rails: constraints of all sites.
        settings: of the rule bases.
        objective: of each site.

    Attributes:
        federations: the cases, within constraints alone.
        names: of the sites, in order: the players.
        alone: AWRT of each site without cooperation, seconds, for each case.
        constant: the same within constraints alone.

    Raises:
        ValueError: there is no case, sites differ between them, or a site has no jobs.
    """

    def __init__(
        self,
        cases: Sequence[Sequence[Site]],
        rails: ExchangeConstraints,
        settings: RuleBaseSettings,
        objective: Objective = "egoistic",
    ) -> None:
        if not cases:
            raise ValueError("a fitness needs at least one training case")
        if objective not in OBJECTIVES:
            raise ValueError(f"the objective is {objective!r}; there are: {', '.join(OBJECTIVES)}")
        sizes = [[(site.name, site.processors) for site in sites] for sites in cases]
        if any(one != sizes[0] for one in sizes):
            raise ValueError(f"the cases have different sites: {sizes}; names and sizes must agree")
        self.rails, self.settings, self.objective = rails, settings, objective
        self.names = tuple(name for name, _ in sizes[0])
        self._processors = [processors for _, processors in sizes[0]]
        self.federations = tuple(
            Federation(within_constraints_alone(sites, rails)) for sites in cases
        )
        self.alone = tuple(awrt_alone(federation) for federation in self.federations)
        self.constant = tuple(tuple(federation.awrt()) for federation in self.federations)
        for name, figures in zip(self.names, zip(*self.alone, strict=True), strict=True):
            if any(math.isnan(figure) for figure in figures):
                raise ValueError(f"site {name!r} has no jobs, so there is nothing to learn")
        self._workspace = Workspace()

    def __call__(self, genome: Genome, bound: float = math.inf) -> Evaluation:
        """Replays every case with the rule bases of a match; the bound is ignored.

        Returns:
            The value, and as figures first the cost to each site, then the AWRT of each, seconds, a
            row for each case.
        """
        del bound
        awrt = self.awrt(genome)
        parts = [
            [after / before for after, before in zip(found, constant, strict=True)]
            for found, constant in zip(awrt, self.constant, strict=True)
        ]
        cases, sites = len(parts), len(self.names)
        costs = []
        for place in range(sites):
            cost = sum(row[place] for row in parts)
            if self.objective == "no_loser":
                others = (x for row in parts for at, x in enumerate(row) if at != place)
                cost += PENALTY * sum(max(0.0, x - 1.0) for x in others)
            costs.append(cost / cases)
        every = [x for row in parts for x in row]
        losses = sum(max(0.0, x - 1.0) for x in every)
        value = sum(every) / len(every) + PENALTY * losses / cases
        return Evaluation(value, (tuple(costs), *awrt))

    def awrt(self, genome: Genome) -> tuple[tuple[float, ...], ...]:
        """Returns the AWRT of each site in each case, seconds, with the rule bases of a match."""
        policies = self._compiled(genome)
        found = []
        for number, federation in enumerate(self.federations):
            instead = {
                (site.name, partner): policy
                for site, policy in zip(federation.sites, policies, strict=True)
                for partner in site.transfer_policies
            }
            found.append(
                tuple(federation.awrt(instead, self._workspace.replay(number, federation)))
            )
        return tuple(found)

    def _compiled(self, genome: Genome) -> list[CompiledTransfer]:
        rules, further = self.settings.rules, self.settings.further
        return [
            compile_genome(one, self._workspace.table(processors, rules), further).constrained(
                self.rails.compiled
            )
            for one, processors in zip(
                parted(genome, len(self.names)), self._processors, strict=True
            )
        ]


def policy_words(policy: TransferPolicy) -> str:
    """Returns a policy's name, of a rule base with a checksum of its rules."""
    if isinstance(policy, Constrained):
        return f"{policy_words(policy.policy)} within {policy.rails}"
    if not isinstance(policy, RuleBase):
        return policy.name
    rules = json.dumps(rule_base_to_document(policy)["rules"])
    return f"{policy.name} (SHA-256 of its rules: {hashlib.sha256(rules.encode()).hexdigest()})"


def discipline_words(discipline: Discipline) -> str:
    """Returns a discipline's name, of a strategy that a file or a program made with a checksum of it."""
    name = discipline.name
    if not isinstance(discipline, Policy):
        return name
    known = DISCIPLINES.get(name)
    if known is not None and known() == discipline:
        return name
    digest = hashlib.sha256()
    document = strategy_to_document(StrategyFile(discipline))
    digest.update(json.dumps(document, sort_keys=True).encode())
    strategies = (discipline,) if isinstance(discipline, Strategy) else discipline.strategies
    for order in (one.order for one in strategies):
        # A file does not say when which situation holds: that is the site's.
        if isinstance(order, CriterionOrder) and order.calendar is not None:
            digest.update(order.calendar.switch_time.tobytes())
            digest.update(order.calendar.situation.tobytes())
    return f"{name} (SHA-256 of what it does: {digest.hexdigest()})"


def describe_fitness(fitness: Fitness) -> dict[str, Any]:
    """Returns everything that the values of a fitness depend on.

    Returns:
        `objective`, and `cases`: for each the evolved site, its partners and the sites with
        size, discipline, location policy, policies and workload. The policies of the evolved site
        for these partners are left out, as they are being learned. `rails` and `features` are there
        if the
        policy evolves within constraints.
    """
    return {
        "objective": fitness.objective,
        **_within(fitness.rails, fitness.further),
        "cases": [
            {
                "site": case.site,
                "partners": list(case.partners),
                "sites": [
                    _describe_site(site, case.partners if site.name == case.site else ())
                    for site in case.federation.sites
                ],
            }
            for case in fitness.cases
        ],
    }


def describe_matches(fitness: MatchFitness) -> dict[str, Any]:
    """Returns all that the values of matches depend on; see `describe_fitness`."""
    return {
        "objective": fitness.objective,
        **_within(fitness.rails, fitness.settings.further),
        "self_play": list(fitness.names),
        "cases": [
            {
                "sites": [
                    _describe_site(site, tuple(site.transfer_policies)) for site in federation.sites
                ]
            }
            for federation in fitness.federations
        ],
    }


def _within(rails: ExchangeConstraints | None, further: tuple[str, ...]) -> dict[str, Any]:
    """Returns constraints and further features of rule bases; empty as in the paper."""
    if rails is None:
        return {}
    word = next((word for word, known in CONSTRAINTS.items() if known == rails), "own")
    return {"rails": {"rules": word, **asdict(rails)}, "features": ["nwp", "njp", *further]}


def _describe_site(site: Site, evolving: tuple[str, ...]) -> dict[str, Any]:
    location = location_of(site.location_policy)
    return {
        "name": site.name,
        "processors": site.processors,
        "discipline": discipline_words(site.discipline),
        "location": location.name if location.order is None else list(location.order),
        "policies": {
            partner: policy_words(policy)
            for partner, policy in sorted(site.transfer_policies.items())
            if partner not in evolving
        },
        "jobs": len(site.jobs),
        "jobs_sha256": jobs_sha256(site.jobs),
        **_describe_nodes(site),
    }


def _describe_nodes(site: Site) -> dict[str, Any]:
    if site.nodes is None:
        return {}
    digest = hashlib.sha256()
    demands = site.demanded()
    requests = [repr(request).encode() for request in demands.requests]
    for number in demands.shape.tolist():
        digest.update(requests[number])
    kinds = [asdict(kind) | {"features": sorted(kind.features)} for kind in site.nodes.kinds]
    return {
        "nodes": kinds,
        "placement": site.nodes.placement,
        "licences": dict(site.nodes.licences),
        "tells": site.tells,
        "requests_sha256": digest.hexdigest(),
    }
