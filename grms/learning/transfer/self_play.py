"""Fitness of a match of rule bases, one of each site, all within the same constraints.

The baseline is the constraints alone, a policy that always agrees within them. It needs no learning, so
an AWRT counts as a part of the AWRT that it brings.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from grms.federation.federation import Federation, Site
from grms.learning.evolution.evaluation import Evaluation
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.self_play import parted
from grms.learning.transfer.encoding import RuleBaseSettings, compile_genome
from grms.learning.transfer.fitness import OBJECTIVES, PENALTY, Workspace, awrt_alone
from grms.learning.transfer.options import Objective
from grms.policy._decisions import CompiledTransfer
from grms.policy.constraints import STRICT_REOFFER, ExchangeConstraints
from grms.policy.transfer import Constrained


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
