"""Fitness of a policy: the AWRT it brings on training workloads.

Evaluating a genome replays whole workloads in compiled code without the GIL; the workloads are
merged once, before.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grms.federation.federation import Federation, ReplayWorkspace
from grms.learning.evolution.evaluation import Evaluation
from grms.learning.evolution.genes import Genome
from grms.learning.transfer.encoding import compile_genome, rule_count
from grms.learning.transfer.options import Objective
from grms.policy._decisions import CompiledTransfer, MembershipTable
from grms.policy.constraints import ExchangeConstraints
from grms.policy.transfer import AcceptWhenFit, AlwaysAgree


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
