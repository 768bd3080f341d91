"""A whole rule base as one genome (the Pittsburgh approach; paper 003, section 4.2, figure 3).

A genome of N rules has 4·N real genes, rule by rule (γ and σ of NWP, γ and σ of NJP), and N
binary genes, the recommendations (True for +1): equation 6 with two features.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from grms.learning.evolution.genes import FloatArray, GeneSpace, Genome
from grms.policy._decisions import CompiledTransfer, MembershipTable
from grms.policy.transfer import Gaussian, Rule, RuleBase

REALS_PER_RULE = 4
"""Real genes of a rule: γ and σ for each of two features."""

SIGMA_MIN = 1e-9
"""Least |σ| of a decoded rule: a mutation may hit 0 exactly, which no file may hold."""


RULES_MAX = 1000
"""Most rules of an individual: as many as a rule base file may hold."""


@dataclass(frozen=True, slots=True)
class RuleBaseSettings:
    """How many rules evolve, and how their genes begin and move; the defaults are the paper's.

    Attributes:
        rules: rules in a rule base, N.
        nwp_max: genes of NWP start in [0, nwp_max].
        njp_max: genes of NJP start in [0, njp_max], percent.
        nwp_step: standard deviation of the mutation of genes of NWP.
        njp_step: of genes of NJP, percent.
    """

    rules: int = 10
    nwp_max: float = 10.0
    njp_max: float = 100.0
    nwp_step: float = 0.01
    njp_step: float = 0.1

    def __post_init__(self) -> None:
        """Checks the bounds.

        Raises:
            ValueError: a setting is out of its bounds.
        """
        if not 1 <= self.rules <= RULES_MAX:
            raise ValueError(f"rules is {self.rules}; it must be from 1 to {RULES_MAX}")
        for name in ("nwp_max", "njp_max", "nwp_step", "njp_step"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be a finite number above 0"
                )

    @property
    def space(self) -> GeneSpace:
        """The genes of such a rule base: 4·N real ones, unbounded, and N binary ones."""
        high = feature_values(self.rules, self.nwp_max, self.njp_max)
        step = feature_values(self.rules, self.nwp_step, self.njp_step)
        return GeneSpace(np.zeros_like(high), high, step, binaries=self.rules)


def rule_count(genome: Genome) -> int:
    """Returns the number of rules of a genome.

    Raises:
        ValueError: there is no rule, or the number of real genes is not four a rule.
    """
    rules = len(genome.binary)
    if rules < 1 or genome.real.shape != (REALS_PER_RULE * rules,):
        raise ValueError(
            f"a genome of {rules} recommendations and {genome.real.shape} real genes; four "
            f"real genes for each of at least one rule are needed"
        )
    return rules


def feature_values(rules: int, nwp: float, njp: float) -> FloatArray:
    """Returns an array like a genome's real part with one value for each feature.

    Args:
        rules: N.
        nwp: the value of genes that belong to NWP.
        njp: the value of genes that belong to NJP.

    Returns:
        Shape (4·N,).
    """
    return np.tile(np.array([nwp, nwp, njp, njp], np.float64), rules)


def encode(rule_base: RuleBase) -> Genome:
    """Returns the genome of a rule base."""
    real = [
        (rule.nwp.gamma, rule.nwp.sigma, rule.njp.gamma, rule.njp.sigma) for rule in rule_base.rules
    ]
    accept = [rule.accept for rule in rule_base.rules]
    return Genome(np.array(real, np.float64).ravel(), np.array(accept, np.bool_))


def decode(genome: Genome, *, name: str = "rule base", **provenance: Any) -> RuleBase:
    """Returns the rule base of a genome.

    Args:
        genome: the individual.
        name: the rule base's name.
        provenance: what to note about where it comes from.
    """
    return RuleBase(
        tuple(
            Rule(
                Gaussian(nwp_gamma, _sigma(nwp_sigma)),
                Gaussian(njp_gamma, _sigma(njp_sigma)),
                accept=bool(accept),
            )
            for (nwp_gamma, nwp_sigma, njp_gamma, njp_sigma), accept in zip(
                genome.real.reshape(-1, REALS_PER_RULE).tolist(), genome.binary, strict=True
            )
        ),
        name=name,
        provenance=provenance,
    )


def compile_genome(genome: Genome, table: MembershipTable | None = None) -> CompiledTransfer:
    """Returns the genome's policy ready to execute, equal to `decode(genome).compiled`.

    Args:
        genome: the individual.
        table: memberships computed once each, for the site and the thread that will use it.
    """
    return CompiledTransfer.rule_base(
        [
            (nwp_gamma, _sigma(nwp_sigma), njp_gamma, _sigma(njp_sigma), 1.0 if accept else -1.0)
            for (nwp_gamma, nwp_sigma, njp_gamma, njp_sigma), accept in zip(
                genome.real.reshape(-1, REALS_PER_RULE).tolist(), genome.binary, strict=True
            )
        ],
        table,
    )


def _sigma(sigma: float) -> float:
    return sigma if abs(sigma) >= SIGMA_MIN else SIGMA_MIN
