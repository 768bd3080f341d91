"""Symbiotic evolution of rules (paper 000, sections 4.2 and 4.3): an individual is a rule, not a rule base.

A rule is good if its rule bases are. Each generation composes rule bases of dissimilar rules, every
rule in equally many; the value of a rule is the mean value of its rule bases. Rules are clustered
by where they apply, and a cluster with better rules sends more parents, so that rules for rare
states survive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from grms.learning.evolution.genes import FloatArray, Genome
from grms.learning.evolution.randomness import generator_from_state, generator_state
from grms.learning.evolution.rule_genes import (
    LEVELS,
    RuleSpace,
    clustered,
    compose,
    confined_rules,
    random_rules,
    selected,
    similarity,
)
from grms.learning.evolution.strategies import Figures, Individual, Strategy, check_values

STEP_FACTOR = 1.224
"""Factor of the common step after a generation (paper 000, section 4.3.3)."""

SUCCESS_TARGET = 1.0 / 8.0
"""The step grows where more children than this are better than one of their parents."""


@dataclass(frozen=True, slots=True)
class SymbioticSettings:
    """Settings of symbiotic evolution, by default those of paper 000, section 4.3, if it has them.

    It gives neither the number of generations, the first step, the distribution of the first rules
    nor the mutation of recommendations; these are ours. Its Algorithm 4 selects among the children
    alone, while section 4.3 has a (μ + λ) strategy: `plus` is the second. Its second population, of
    default values (section 4.3.4), is left out: the paper reports all results without it.

    Attributes:
        parents: μ, rules.
        offspring: λ, rules.
        base_rules: rules of a rule base, N_r.
        bases_per_rule: rule bases of each rule, N_s.
        recombined: ρ, parents of a child.
        similar: how many of them are those most similar to the first.
        clusters: of rules, for selection.
        cluster_best: number of rules in the mean of a cluster.
        plus: parents may survive with the value they had. Otherwise a rule lives for one
            generation, so that a lucky composition is not remembered for ever.
        step: initial standard deviation of mutation, in units of a feature's range.
    """

    parents: int = 50
    offspring: int = 350
    base_rules: int = 50
    bases_per_rule: int = 10
    recombined: int = 12
    similar: int = 5
    clusters: int = 10
    cluster_best: int = 5
    plus: bool = True
    step: float = 0.1

    def __post_init__(self) -> None:
        least = {"similar": 0}
        for name in (
            *("parents", "offspring", "base_rules", "bases_per_rule"),
            *("recombined", "similar", "clusters", "cluster_best"),
        ):
            if not least.get(name, 1) <= getattr(self, name) <= 100_000:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 1 to 100000")
        if not 0 < self.step < np.inf:
            raise ValueError(f"step is {self.step}; it must be a finite number above 0")
        if not self.similar < self.recombined <= self.parents <= self.offspring:
            raise ValueError(
                f"{self.similar} similar of {self.recombined} recombined of {self.parents} parents "
                f"of {self.offspring} offspring; each must not be more than the next"
            )
        if (
            self.base_rules > self.offspring
            or self.offspring * self.bases_per_rule % self.base_rules
        ):
            raise ValueError(
                f"{self.offspring} rules in {self.bases_per_rule} rule bases each do not fill rule "
                f"bases of {self.base_rules}"
            )

    @property
    def bases(self) -> int:
        """Rule bases of a generation, N_f."""
        return self.offspring * self.bases_per_rule // self.base_rules


class SymbioticEvolution(Strategy):
    """Evolves rules; it asks for rule bases, and the best of them ever is its result.

    Args:
        space: features and alternatives.
        settings: numbers of rules, bases and parents, and the rest.
        rng: the only source of randomness.
        founders: rule bases evaluated first, so that the result is not worse than any of them. Half
            of the first rules take their recommendations from the best of them, at places of their
            own. Not in the paper.
    """

    name = "symbiotic"

    def __init__(
        self,
        space: RuleSpace,
        settings: SymbioticSettings,
        rng: np.random.Generator,
        founders: Sequence[Genome] = (),
    ) -> None:
        self.rules = space
        self._founders = tuple(founders)
        self.settings = settings
        self._rng = rng
        self._step = settings.step
        self._parents = np.zeros((0, space.genes))
        self._parent_values = np.zeros(0)
        self._children = np.zeros((0, space.genes))
        self._rivals = np.zeros(0)
        self._bases: list[list[int]] = []
        self._founded = not self._founders

    @property
    def step(self) -> float:
        """The common step of mutation, in units of a feature's range."""
        return self._step

    def ask(self) -> list[Genome]:
        """Returns the founders, then the rule bases of the next generation; the same until `tell`."""
        if not self._founded:
            return list(self._founders)
        if not self._bases:
            settings = self.settings
            if len(self._parents):
                self._breed()
            else:
                self._children = self._first_rules()
                self._rivals = np.full(settings.offspring, np.nan)
            alike = similarity(self._children, len(self.rules.low))
            self._bases = compose(self._rng, alike, settings.bases, settings.base_rules)
        return [self.rules.rule_base(self._children[base]) for base in self._bases]

    def _first_rules(self) -> FloatArray:
        rules = random_rules(self._rng, self.rules, self.settings.offspring)
        if self._founders and self._best is not None:
            founder = self._best.genome.integer.reshape(-1, self.rules.alternatives)
            half = len(rules) // 2
            rules[:half, 2 * len(self.rules.low) :] = np.resize(founder, (half, founder.shape[1]))
        return rules

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of the rule bases, in that order; smaller is better.

        Raises:
            ValueError: nothing was asked, there are more or fewer values than rule bases, or one is
                not a finite number above 0.
        """
        del figures
        asked = self.ask() if self._bases or not self._founded else []
        check_values(values, len(asked))
        if min(values) <= 0:
            raise ValueError(f"a value is {min(values)}; it must be more than 0")
        self._keep_best(asked, values)
        if not self._founded:
            self._founded = True
            return
        worth = np.zeros(len(self._children))
        for base, value in zip(self._bases, values, strict=True):
            worth[base] += value / self.settings.bases_per_rule
        if len(self._parents):
            rate = float((worth < self._rivals).mean())
            self._step *= STEP_FACTOR if rate > SUCCESS_TARGET else 1.0 / STEP_FACTOR
        self._select(worth)
        self._bases = []
        self._told += 1

    def _breed(self) -> None:
        settings, rng, features = self.settings, self._rng, len(self.rules.low)
        alike = similarity(self._parents, features)
        scale = np.ones(self.rules.genes)
        scale[2 * features :] = len(LEVELS)
        children, rivals = [], []
        for _ in range(settings.offspring):
            first = int(rng.integers(len(self._parents)))
            near = np.argsort(-alike[first], kind="stable")
            family = [first, *near[near != first][: settings.similar].tolist()]
            others = np.setdiff1d(np.arange(len(self._parents)), family)
            more = settings.recombined - len(family)
            family += rng.permutation(others)[:more].tolist()
            genes = np.array(family)[rng.integers(len(family), size=self.rules.genes)]
            child = self._parents[genes, np.arange(self.rules.genes)]
            children.append(child + rng.standard_normal(self.rules.genes) * self._step * scale)
            rivals.append(self._parent_values[family[rng.integers(len(family))]])
        self._children = confined_rules(np.array(children), features)
        self._rivals = np.array(rivals)

    def _select(self, worth: FloatArray) -> None:
        settings = self.settings
        rules, values = self._children, worth
        if settings.plus and len(self._parents):
            rules = np.concatenate([self._parents, rules])
            values = np.concatenate([self._parent_values, values])
        member = clustered(self._rng, rules[:, : len(self.rules.low)], settings.clusters)
        chosen = selected(values, member, settings.parents, settings.cluster_best)
        self._parents, self._parent_values = rules[chosen], values[chosen]

    def to_state(self) -> dict[str, Any]:
        """Returns all that is known as plain values that JSON keeps exactly."""
        best = self._best
        return {
            "strategy": self.name,
            "space": self.rules.to_state(),
            "founders": [one.to_state() for one in self._founders],
            "settings": asdict(self.settings),
            "rng": generator_state(self._rng),
            "step": self._step,
            "parents": self._parents.tolist(),
            "parent_values": self._parent_values.tolist(),
            "children": self._children.tolist() if self._bases else [],
            "rivals": self._rivals.tolist() if self._bases else [],
            "bases": [list(base) for base in self._bases],
            "best": None if best is None else best.to_state(),
            "founded": self._founded,
            "told": self._told,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the evolution that `to_state` described; it goes on bit for bit."""
        space = RuleSpace.from_state(state["space"])
        evolution = cls(
            space,
            SymbioticSettings(**state["settings"]),
            generator_from_state(state["rng"]),
            [Genome.from_state(one) for one in state["founders"]],
        )

        def rules(key: str) -> FloatArray:
            return np.array(state[key], np.float64).reshape(-1, space.genes)

        evolution._step = state["step"]
        evolution._parents = rules("parents")
        evolution._parent_values = np.array(state["parent_values"], np.float64)
        evolution._children = rules("children")
        evolution._rivals = np.array(state["rivals"], np.float64)
        evolution._bases = [list(base) for base in state["bases"]]
        if state["best"] is not None:
            evolution._best = Individual.from_state(state["best"])
        evolution._founded = state["founded"]
        evolution._told = state["told"]
        return evolution
