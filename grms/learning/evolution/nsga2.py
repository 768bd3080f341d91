"""NSGA-II: a population that spreads over the trade-offs between several objectives, all minimized.

After Deb, Pratap, Agarwal, Meyarivan: "A Fast and Elitist Multiobjective Genetic Algorithm:
NSGA-II" (2002); ranks and crowding distances are those of sections III-A and III-B. Objectives are told in
addition to the value. Values have shape (n, m) and no nan.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from grms.learning.evolution.genes import (
    BoolArray,
    FloatArray,
    GeneSpace,
    Genome,
    IntegerArray,
    polynomial_mutation,
    simulated_binary_crossover,
    uniform_genome,
)
from grms.learning.evolution.randomness import generator_from_state, generator_state
from grms.learning.evolution.strategies import (
    INDIVIDUALS_MAX,
    Figures,
    Individual,
    Strategy,
    check_values,
)


@dataclass(frozen=True, slots=True)
class Nsga2Settings:
    """The settings of NSGA-II; the defaults are those of its paper (section IV-A).

    Attributes:
        population: survivors, and offspring in each generation; even.
        crossover_probability: of two parents.
        crossover_index: η_c; the larger, the nearer are children to their parents.
        mutation_index: η_m; the larger, the smaller are mutations. Each gene is mutated with
            probability 1/n.
    """

    population: int = 100
    crossover_probability: float = 0.9
    crossover_index: float = 20.0
    mutation_index: float = 20.0

    def __post_init__(self) -> None:
        if not 2 <= self.population <= INDIVIDUALS_MAX or self.population % 2:
            raise ValueError(
                f"population is {self.population}; it must be even, from 2 to {INDIVIDUALS_MAX}"
            )
        if not 0 <= self.crossover_probability <= 1:
            raise ValueError(
                f"crossover_probability is {self.crossover_probability}; it is a probability"
            )
        for name in ("crossover_index", "mutation_index"):
            if not 0 <= getattr(self, name) <= 1e6:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to 1e6")


class Nsga2(Strategy):
    """NSGA-II on real genes within bounds.

    The objectives of an individual are the first row of its figures. One without figures, whose
    evaluation was stopped, ranks behind all others.

    Args:
        space: bounded real genes only.
        settings: population and operators.
        rng: the only source of randomness.
        signs: for each objective 1 to minimize it, -1 to maximize it.
        founders: genomes of the first generation, before those drawn.

    Raises:
        ValueError: the space has other genes, or there is no objective.
    """

    name: ClassVar[str] = "nsga2"

    def __init__(
        self,
        space: GeneSpace,
        settings: Nsga2Settings,
        rng: np.random.Generator,
        *,
        signs: Sequence[float],
        founders: Sequence[Genome] = (),
    ) -> None:
        if not space.bounded or len(space.choices) or space.binaries:
            raise ValueError("NSGA-II works on real genes within bounds, and on no others")
        if not signs or any(abs(sign) != 1 for sign in signs):
            raise ValueError(f"signs are {tuple(signs)}; 1 or -1 is needed for each objective")
        self.space = space
        self.settings = settings
        self._rng = rng
        self._signs = tuple(float(sign) for sign in signs)
        self._founders = tuple(founders)
        self._parents: list[Genome] = []
        self._values: list[float] = []
        self._objectives = np.zeros((0, len(self._signs)))
        self._asked: list[Genome] = []

    @property
    def parents(self) -> tuple[Genome, ...]:
        """The present population, the best first by front and crowding."""
        return tuple(self._parents)

    @property
    def objectives(self) -> FloatArray:
        """The minimized objectives by parent, shape (population, m)."""
        return self._objectives.copy()

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until `tell`."""
        if not self._asked:
            count = self.settings.population
            if self._parents:
                while len(self._asked) < count:
                    self._asked += self._children()
            else:
                given = list(self._founders[:count])
                drawn = [uniform_genome(self._rng, self.space) for _ in range(count - len(given))]
                self._asked = [*given, *drawn]
        return list(self._asked)

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values and objectives of the genomes, in that order.

        Raises:
            ValueError: nothing was asked, there are more or fewer values or figures than genomes, a
                value is not a finite number, or there are more or fewer objectives than signs.
        """
        check_values(values, len(self._asked))
        if len(figures) != len(self._asked):
            raise ValueError(f"{len(figures)} rows of objectives for {len(self._asked)} genomes")
        told = np.array([self._signed(row) for row in figures])
        self._keep_best(self._asked, values)
        everybody = [*self._parents, *self._asked]
        everything = np.concatenate([self._objectives, told])
        kept = crowded_order(everything)[: self.settings.population]
        all_values = [*self._values, *map(float, values)]
        self._parents = [everybody[row] for row in kept]
        self._values = [all_values[row] for row in kept]
        self._objectives = everything[kept]
        self._asked = []
        self._told += 1

    def _signed(self, figures: Figures) -> list[float]:
        if not figures or not figures[0]:
            return [math.inf] * len(self._signs)
        if len(figures[0]) != len(self._signs):
            raise ValueError(f"{len(figures[0])} objectives; there are {len(self._signs)} signs")
        # A group without jobs has no response time: nothing is lost or won by it.
        signed = zip(figures[0], self._signs, strict=True)
        return [0.0 if math.isnan(one) else one * sign for one, sign in signed]

    def _children(self) -> tuple[Genome, Genome]:
        settings = self.settings
        one, other = self._chosen().real, self._chosen().real
        if self._rng.random() < settings.crossover_probability:
            one, other = simulated_binary_crossover(self._rng, one, other, settings.crossover_index)
        first, second = (self._mutant(real) for real in (one, other))
        return first, second

    def _mutant(self, real: FloatArray) -> Genome:
        # Crossing may leave the bounds; mutation counts from within them.
        within = self.space.confined(Genome(real, np.zeros(0, np.bool_)))
        changed = polynomial_mutation(
            self._rng, within, self.space, self.settings.mutation_index, 1 / len(real)
        )
        return self.space.confined(changed)

    def _chosen(self) -> Genome:
        # Parents stand best first, so of two drawn the one in front wins the tournament.
        return self._parents[int(self._rng.integers(len(self._parents), size=2).min())]

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""
        best = self._best
        return {
            "strategy": self.name,
            "space": self.space.to_state(),
            "settings": asdict(self.settings),
            "signs": list(self._signs),
            "rng": generator_state(self._rng),
            "told": self._told,
            "parents": [
                one.to_state()
                | {
                    "value": value,
                    # Infinity is none of JSON's numbers.
                    "objectives": None if math.isinf(row[0]) else row.tolist(),
                }
                for one, value, row in zip(
                    self._parents, self._values, self._objectives, strict=True
                )
            ],
            "best": None if best is None else best.to_state(),
            "asked": [one.to_state() for one in self._asked],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the strategy that `to_state` described; it goes on bit for bit."""
        signs = state["signs"]
        strategy = cls(
            GeneSpace.from_state(state["space"]),
            Nsga2Settings(**state["settings"]),
            generator_from_state(state["rng"]),
            signs=signs,
        )
        strategy._told = state["told"]
        strategy._parents = [Genome.from_state(one) for one in state["parents"]]
        strategy._values = [one["value"] for one in state["parents"]]
        rows = [one["objectives"] or [math.inf] * len(signs) for one in state["parents"]]
        strategy._objectives = np.array(rows, np.float64).reshape(-1, len(signs))
        best = state["best"]
        strategy._best = None if best is None else Individual.from_state(best)
        strategy._asked = [Genome.from_state(one) for one in state["asked"]]
        return strategy


def not_dominated(values: FloatArray) -> BoolArray:
    """Returns which rows no other row dominates; equal rows do not dominate each other."""
    found = np.zeros(len(values), np.bool_)
    for row, one in enumerate(values):
        no_worse = (values <= one).all(axis=1)
        found[row] = not (values[no_worse] < one).any()
    return found


def front_ranks(values: FloatArray) -> IntegerArray:
    """Returns the front of each row: 0 if not dominated, then ignoring the fronts before, and so on."""
    ranks = np.full(len(values), -1, np.int64)
    rank = 0
    while (left := np.flatnonzero(ranks < 0)).size:
        ranks[left[not_dominated(values[left])]] = rank
        rank += 1
    return ranks


def crowding_distances(values: FloatArray) -> FloatArray:
    """Returns how isolated each row of one front is, shape (n,): larger is lonelier.

    For each objective the distance between the next smaller and the next larger row, relative to
    the whole range, summed over the objectives; infinite for the first and the last of an
    objective. Equal rows keep their order. An objective that is constant, or infinite somewhere,
    counts for nothing.
    """
    distances = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        sorted_column = column[order]
        if not len(order) or not np.isfinite(sorted_column[[0, -1]]).all():
            continue
        span = sorted_column[-1] - sorted_column[0]
        if span <= 0:
            continue
        distances[order[[0, -1]]] = np.inf
        distances[order[1:-1]] += (sorted_column[2:] - sorted_column[:-2]) / span
    return distances


def crowded_order(values: FloatArray) -> IntegerArray:
    """Returns the rows, the best first: by front, then the lonelier, then the earlier."""
    ranks = front_ranks(values)
    lonely = np.zeros(len(values))
    for rank in range(int(ranks.max(initial=-1)) + 1):
        front = np.flatnonzero(ranks == rank)
        lonely[front] = crowding_distances(values[front])
    return np.lexsort((np.arange(len(values)), -lonely, ranks))
