"""A whole rule base as one genome (the Pittsburgh approach; paper 003, section 4.2, figure 3).

A genome of N rules has 2·F·N real genes, rule by rule (γ and σ of each of F features), and N
binary genes, the recommendations (True for +1): equation 6. The paper's features are two, NWP and
NJP; within constraints there can be up to two further ones (`grms.policy.transfer`).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from grms.learning.evolution.genes import FloatArray, GeneSpace, Genome
from grms.policy._decisions import CompiledTransfer, MembershipTable
from grms.policy.transfer import FURTHER_FEATURES, STARTS_NOW, Gaussian, Rule, RuleBase, in_order

REALS_PER_RULE = 4
"""Real genes of a rule of the paper: γ and σ for each of two features."""

AGREEING_SIGMA = 0.25
"""Width of the membership of `starts_now` for rules that initially always agree: rules of the other
kind count 1e-7 times there.
"""

SIGMA_MIN = 1e-9
"""Least |σ| of a decoded rule: a mutation may hit 0 exactly, which no file may hold."""


RULES_MAX = 1000
"""Most rules of an individual: as many as a rule base file may hold."""

WIDTH_MAX: Final = 1e6
"""Widest start and step of genes: far beyond any feature, and rules stay finite."""


@dataclass(frozen=True, slots=True)
class RuleBaseSettings:
    """Number of rules, and how their genes begin and move; the defaults are the paper's.

    Attributes:
        rules: rules in a rule base, N.
        nwp_max: genes of NWP start in [0, nwp_max].
        njp_max: genes of NJP start in [0, njp_max], percent.
        nwp_step: standard deviation of the mutation of genes of NWP.
        njp_step: of genes of NJP, percent.
        further: additional features, names of `grms.policy.transfer` in their order.
    """

    rules: int = 10
    nwp_max: float = 10.0
    njp_max: float = 100.0
    nwp_step: float = 0.01
    njp_step: float = 0.1
    further: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.rules <= RULES_MAX:
            raise ValueError(f"rules is {self.rules}; it must be from 1 to {RULES_MAX}")
        for name in ("nwp_max", "njp_max", "nwp_step", "njp_step"):
            if not 0 < getattr(self, name) <= WIDTH_MAX:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it must be above 0 and at most {WIDTH_MAX:g}"
                )
        object.__setattr__(self, "further", in_order(self.further))

    @property
    def plain(self) -> dict[str, Any]:
        """The same as plain values; without further features, as programs of before noted it."""
        settings = asdict(self)
        further = settings.pop("further")
        return settings | ({"further": list(further)} if further else {})

    @property
    def space(self) -> GeneSpace:
        """The genes of such a rule base: 2·F·N real ones, unbounded, and N binary ones."""
        features = [FURTHER_FEATURES[name] for name in self.further]
        high = feature_values(
            self.rules, self.nwp_max, self.njp_max, *(one.start for one in features)
        )
        step = feature_values(
            self.rules, self.nwp_step, self.njp_step, *(one.step for one in features)
        )
        return GeneSpace(np.zeros_like(high), high, step, binaries=self.rules)

    @property
    def agreeing(self) -> Genome:
        """The rule base that always agrees: it offers every own job and takes every other.

        Within constraints that equals the constraints alone, so evolution begins there. Rules can express it
        only with the feature of starting now: the constraints ask rules about own jobs that would not,
        and about guests that would. They come in pairs that differ in this alone, so that the sign
        is the same everywhere.

        Raises:
            ValueError: rules lack that feature, or there is only one.
        """
        if STARTS_NOW.name not in self.further or self.rules < 2:
            raise ValueError(
                "only at least two rules that look at starts_now can say that a site always agrees"
            )
        pairs = self.rules // 2
        rules = []
        for number in range(self.rules):
            place = (min(number // 2, pairs - 1) + 0.5) / pairs
            guests = number % 2 == 0
            others = [FURTHER_FEATURES[name].start for name in self.further[:-1]]
            rules.append(
                [
                    *(x for high in (self.nwp_max, self.njp_max) for x in (place * high, high)),
                    *(x for high in others for x in (place * high, high)),
                    *(1.0 if guests else 0.0, AGREEING_SIGMA),
                ]
            )
        accept = [number % 2 == 0 for number in range(self.rules)]
        return Genome(np.array(rules, np.float64).ravel(), np.array(accept, np.bool_))


def rule_count(genome: Genome, further: tuple[str, ...] = ()) -> int:
    """Returns the number of rules of a genome.

    Raises:
        ValueError: there is no rule, or the number of real genes is not two a feature and rule.
    """
    rules = len(genome.binary)
    reals = REALS_PER_RULE + 2 * len(further)
    if rules < 1 or genome.real.shape != (reals * rules,):
        raise ValueError(
            f"a genome of {rules} recommendations and {genome.real.shape} real genes; {reals} "
            f"real genes for each of at least one rule are needed"
        )
    return rules


def feature_values(rules: int, *values: float) -> FloatArray:
    """Returns an array like a genome's real part, shape (2·F·N,), with one value for each feature."""
    return np.tile(np.repeat(np.array(values, np.float64), 2), rules)


def encode(rule_base: RuleBase) -> Genome:
    """Returns the genome of a rule base."""
    real = [rule.numbers for rule in rule_base.rules]
    accept = [rule.accept for rule in rule_base.rules]
    return Genome(np.array(real, np.float64).ravel(), np.array(accept, np.bool_))


def decode(
    genome: Genome, *, name: str = "rule base", further: tuple[str, ...] = (), **provenance: Any
) -> RuleBase:
    """Returns the rule base of a genome."""
    rules = []
    for numbers, accept in _rules(genome, further):
        gaussians = [Gaussian(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
        more = dict(zip(further, gaussians[2:], strict=True))
        rules.append(Rule(gaussians[0], gaussians[1], accept=accept, **more))
    return RuleBase(tuple(rules), name=name, provenance=provenance)


def compile_genome(
    genome: Genome, table: MembershipTable | None = None, further: tuple[str, ...] = ()
) -> CompiledTransfer:
    """Returns the genome's policy ready to execute, equal to `decode(genome).compiled`.

    `table` caches memberships, for one site and thread.
    """
    return CompiledTransfer.rule_base(
        [(*numbers, 1.0 if accept else -1.0) for numbers, accept in _rules(genome, further)],
        table,
        **dict.fromkeys(further, True),
    )


def _rules(genome: Genome, further: tuple[str, ...]) -> Iterator[tuple[list[float], bool]]:
    """Returns γ and σ of each feature, and the recommendation, of each rule."""
    rows = genome.real.reshape(rule_count(genome, further), -1).tolist()
    for numbers, accept in zip(rows, genome.binary, strict=True):
        numbers[1::2] = [_sigma(sigma) for sigma in numbers[1::2]]
        yield numbers, bool(accept)


def _sigma(sigma: float) -> float:
    return sigma if abs(sigma) >= SIGMA_MIN else SIGMA_MIN
