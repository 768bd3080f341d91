"""A whole rule base as one genome (the Pittsburgh approach; paper 003, section 4.2, figure 3).

A genome of N rules has 4·N real genes, rule by rule (γ and σ of NWP, γ and σ of NJP), and N
binary genes, the recommendations: equation 6 with two features.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from grms.policy._decisions import CompiledTransfer, MembershipTable
from grms.policy.transfer import Gaussian, Rule, RuleBase

REALS_PER_RULE = 4
"""Real genes of a rule: γ and σ for each of two features."""

SIGMA_MIN = 1e-9
"""Least |σ| of a decoded rule: a mutation may hit 0 exactly, which no file may hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Genome:
    """One individual.

    Attributes:
        real: shape (4·N,), float64.
        accept: shape (N,), bool; True for the recommendation +1.
    """

    real: npt.NDArray[np.float64]
    accept: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Checks that the two parts belong together.

        Raises:
            ValueError: there is no rule, or the number of real genes is not four a rule.
        """
        rules = len(self.accept)
        if rules < 1 or self.real.shape != (REALS_PER_RULE * rules,):
            raise ValueError(
                f"a genome of {rules} recommendations and {self.real.shape} real genes; four "
                f"real genes for each of at least one rule are needed"
            )

    @property
    def rules(self) -> int:
        """Number of rules."""
        return len(self.accept)

    def to_state(self) -> dict[str, Any]:
        """Returns the genome as plain lists, exact to the last bit."""
        return {"real": self.real.tolist(), "accept": self.accept.astype(int).tolist()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the genome that `to_state` described."""
        return cls(np.array(state["real"], np.float64), np.array(state["accept"], np.bool_))


def feature_values(rules: int, nwp: float, njp: float) -> npt.NDArray[np.float64]:
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
                genome.real.reshape(-1, REALS_PER_RULE).tolist(), genome.accept, strict=True
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
                genome.real.reshape(-1, REALS_PER_RULE).tolist(), genome.accept, strict=True
            )
        ],
        table,
    )


def _sigma(sigma: float) -> float:
    return sigma if abs(sigma) >= SIGMA_MIN else SIGMA_MIN
