"""Comparison of learned policies with constants, on training and test workloads."""

from collections.abc import Sequence

from grms.federation.federation import Site
from grms.learning.evolution.evaluation import Evaluation
from grms.learning.evolution.genes import Genome
from grms.learning.transfer.comparison import ComparedRow
from grms.learning.transfer.fitness import Fitness
from grms.learning.transfer.self_play import MatchFitness
from grms.learning.transfer.source import SourceError


def compared(
    fitness: Fitness, case_names: Sequence[str], found: Evaluation, *, unseen: bool = False
) -> list[ComparedRow]:
    """Returns a row for each site of each case of a fitness, with the policy of one genome."""
    return [
        ComparedRow(name, site.name, alone, constant, learned, site.name == case.site, unseen)
        for name, case, alones, constants, afters in zip(
            case_names,
            fitness.cases,
            fitness.alone,
            fitness.constant(),
            found.figures,
            strict=True,
        )
        for site, alone, constant, learned in zip(
            case.federation.sites, alones, constants, afters, strict=True
        )
    ]


def compared_match(
    fitness: MatchFitness, case_names: Sequence[str], genome: Genome, *, unseen: bool = False
) -> list[ComparedRow]:
    """Returns a row for each site of each case of a fitness, with the rule bases of a match."""
    return [
        ComparedRow(name, site, alone, constant, learned, True, unseen)
        for name, alones, constants, afters in zip(
            case_names, fitness.alone, fitness.constant, fitness.awrt(genome), strict=True
        )
        for site, alone, constant, learned in zip(
            fitness.names, alones, constants, afters, strict=True
        )
    ]


def check_same_sites(learned: Sequence[Site], others: Sequence[Site], scenario: str) -> None:
    """Refuses test workloads whose machines differ from the training ones.

    Raises:
        SourceError: sizes differ.
    """
    sizes = {site.name: site.processors for site in learned}
    for site in others:
        if sizes.get(site.name) != site.processors:
            raise SourceError(
                f"scenario {scenario}, which --unseen names: site {site.name} has {site.processors} "
                f"processors; it has learned with {sizes.get(site.name)}. Name one of the same machines"
            )
