"""Rules as genes (paper 000, section 4.2): where they apply, which go together, and which survive.

Genes of a rule, in units of each feature's range: the centres and the widths of its Gaussians, and
for each alternative the index of its recommendation among five levels, real and rounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from grms.learning.evolution.genes import FloatArray, Genome, IntegerArray

LEVELS = (-5, -1, 0, 1, 5)
"""Recommendations for an alternative (paper 000, figure 2)."""

CENTRE_RANGE = (0.0, 1.0)
"""Where centres begin, in units of the feature's range."""

WIDTH_RANGE = (0.02, 0.52)
"""Where widths begin, in units of the feature's range."""

WIDTH_MIN = 0.005
"""Least width: a narrower rule would apply to a single state of the recorded replay."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleSpace:
    """Features and alternatives of rules.

    Attributes:
        low: shape (f,), lower end of each feature's range.
        high: shape (f,), upper end; the unit of a rule's genes is the difference.
        alternatives: number of alternatives.
    """

    low: FloatArray
    high: FloatArray
    alternatives: int

    def __post_init__(self) -> None:
        span = self.high - self.low
        if not (len(span) and (np.isfinite(span) & (span > 0)).all() and self.alternatives >= 1):
            raise ValueError("rules need features with ranges that are not empty, and alternatives")

    @property
    def genes(self) -> int:
        """Genes of a rule."""
        return 2 * len(self.low) + self.alternatives

    def to_state(self) -> dict[str, Any]:
        """Returns the space as plain values."""
        return {
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "alternatives": self.alternatives,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the space that `to_state` described."""
        return cls(
            np.array(state["low"], np.float64),
            np.array(state["high"], np.float64),
            state["alternatives"],
        )

    def rule_base(self, rules: FloatArray) -> Genome:
        """Returns rules, shape (n, genes), as the genome of a rule base.

        Returns:
            Real genes rule by rule: centres, then widths, in the features' own units. Integer genes
            rule by rule: for each alternative the index of its recommendation in `LEVELS`.
        """
        features, span = len(self.low), self.high - self.low
        centres = self.low + rules[:, :features] * span
        widths = rules[:, features : 2 * features] * span
        places = np.rint(rules[:, 2 * features :]).astype(np.int64)
        real = np.concatenate([centres, widths], axis=1).ravel()
        return Genome(real, np.zeros(0, np.bool_), places.ravel())

    def constant(self, alternative: int, rules: int) -> Genome:
        """Returns a rule base of equal rules that recommend one alternative everywhere."""
        features = len(self.low)
        rule = np.zeros(self.genes)
        rule[:features] = 0.5
        rule[features : 2 * features] = 1.0
        rule[2 * features + alternative] = len(LEVELS) - 1.0
        return self.rule_base(np.tile(rule, (rules, 1)))


def random_rules(rng: np.random.Generator, space: RuleSpace, count: int) -> FloatArray:
    """Returns rules drawn uniformly, shape (count, genes)."""
    features = len(space.low)
    low, high = CENTRE_RANGE
    centres = low + rng.random((count, features)) * (high - low)
    low, high = WIDTH_RANGE
    widths = low + rng.random((count, features)) * (high - low)
    places = rng.integers(len(LEVELS), size=(count, space.alternatives)).astype(np.float64)
    return np.concatenate([centres, widths, places], axis=1)


def confined_rules(rules: FloatArray, features: int) -> FloatArray:
    """Returns rules whose widths are wide enough and whose recommendations are among the levels."""
    widths = np.maximum(np.abs(rules[:, features : 2 * features]), WIDTH_MIN)
    places = np.clip(rules[:, 2 * features :], 0.0, len(LEVELS) - 1.0)
    return np.concatenate([rules[:, :features], widths, places], axis=1)


def similarity(rules: FloatArray, features: int) -> FloatArray:
    """Returns how alike the areas of rules are (paper 000, equation 11), shape (n, n).

    The mean over the features of the overlap of two normalised Gaussians,
    exp(-(μ₁-μ₂)² / 2(σ₁²+σ₂²)) / √(2π(σ₁²+σ₂²)), in units of each feature's range: in the features'
    own units the first one alone would decide.
    """
    total = np.zeros((len(rules), len(rules)))
    for feature in range(features):
        centre, variance = rules[:, feature], rules[:, features + feature] ** 2
        both = variance[:, None] + variance[None, :]
        apart = centre[:, None] - centre[None, :]
        total += np.exp(-(apart**2) / (2.0 * both)) / np.sqrt(2.0 * np.pi * both)
    mean: FloatArray = total / features
    return mean


def compose(
    rng: np.random.Generator, alike: FloatArray, bases: int, base_rules: int
) -> list[list[int]]:
    """Returns which rules make up each rule base (paper 000, Algorithm 3).

    The first rule of a base is random, each further one the least similar to the one before. Every
    rule is in equally many bases: one with as many places left as bases left is forced in, which
    always works out. `alike` is the `similarity`; `bases · base_rules` is a multiple of n.
    """
    count = len(alike)
    quota = np.full(count, bases * base_rules // count)
    composed = []
    for left in range(bases, 0, -1):
        chosen: list[int] = []
        open_ = quota > 0
        forced = quota == left
        for places in range(base_rules, 0, -1):
            candidates = np.flatnonzero(forced if np.count_nonzero(forced) >= places else open_)
            if chosen:
                # argmin takes the first of equals: rules are in a fixed order.
                rule = int(candidates[np.argmin(alike[chosen[-1], candidates])])
            else:
                rule = int(candidates[rng.integers(len(candidates))])
            chosen.append(rule)
            open_[rule] = forced[rule] = False
        quota[chosen] -= 1
        composed.append(chosen)
    return composed


def clustered(rng: np.random.Generator, points: FloatArray, clusters: int) -> IntegerArray:
    """Returns the cluster of each point, shape (n,): k-means from random points, until nothing changes.

    Points have shape (n, f). There are at most n clusters, and some may be empty.
    """
    centres = points[rng.permutation(len(points))[:clusters]]
    member = np.full(len(points), -1, np.int64)
    for _ in range(100):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distance.argmin(axis=1).astype(np.int64)
        if (nearest == member).all():
            break
        member = nearest
        for cluster in np.unique(member):
            centres[cluster] = points[member == cluster].mean(axis=0)
    return member


def selected(
    values: FloatArray, member: IntegerArray, count: int, cluster_best: int
) -> IntegerArray:
    """Returns the next parents (paper 000, Algorithm 4), by their index, best first.

    A cluster with mean value f̄ of its best sends ⌊count·(1/f̄)/Σ(1/f̄) + ½⌋ of its best rules;
    missing ones are the best of the rest, and surplus ones are dropped from the worst.

    Args:
        values: shape (n,), of each rule; above 0, smaller is better.
        member: shape (n,), cluster of each rule.
        count: number of parents.
        cluster_best: number of rules in the mean of a cluster.
    """
    by_value = np.argsort(values, kind="stable")
    clusters = np.unique(member)
    ranked = [by_value[member[by_value] == cluster] for cluster in clusters]
    worth = np.array([1.0 / values[one[:cluster_best]].mean() for one in ranked])
    shares = np.floor(count * worth / worth.sum() + 0.5).astype(int)
    taken = np.zeros(len(values), np.bool_)
    for one, share in zip(ranked, shares, strict=True):
        taken[one[:share]] = True
    chosen = by_value[taken[by_value]][:count]
    rest = by_value[~taken[by_value]][: count - len(chosen)]
    both = np.concatenate([chosen, rest])
    return both[np.argsort(values[both], kind="stable")].astype(np.int64)
