"""CMA-ES through the package `cma` (Hansen 2016, "The CMA Evolution Strategy: A Tutorial").

The search space has one real coordinate for each gene. Real genes are divided by the width of
their initial range, so that all have the same scale. A binary gene is the sign of its coordinate,
which is confined to [-1, 1]; its standard deviation never falls below a margin at which a gene at
the very end of the range still flips once in a generation of all binary genes. Without the margin a
gene would freeze as soon as selection has agreed on it (Hamano et al. 2022, "CMA-ES with Margin").
An integer gene of k choices is the cell of [0, 1], cut into k equal ones, that its coordinate lies
in; the standard deviation stays above half a cell. The package's own option for integer variables
draws from numpy's global generator, so a resumed run would differ.

The state of a strategy is its dialogue: settings, seed and every value told. The package's objects
have no JSON form, and a pickle in a checkpoint could run arbitrary code. Replaying the dialogue
takes a second or two for a whole training run, and leads to the same state with the same versions
of the package and of numpy, which are therefore recorded and compared.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import NormalDist
from typing import Any, Self

import cma  # type: ignore[import-untyped]  # the package has no types
import numpy as np

from grms.learning.evolution.genes import FloatArray, GeneSpace, Genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import Figures, Strategy, StrategySettings, check_values

SIGMA_START = 0.3
"""First standard deviation, as a part of a gene's initial range."""


def versions() -> dict[str, str]:
    """Returns the versions of libraries that a saved search needs to go on."""
    return {"cma": cma.__version__, "numpy": np.__version__}


class CmaStrategy(Strategy):
    """CMA-ES over a space of genes.

    Args:
        space: the genes; steps are CMA-ES's own.
        settings: λ (`offspring`); μ is CMA-ES's own, and binary and integer genes change as
            described above.
        seed: of the strategy's own random stream.
        founders: genomes evaluated with the first generation, so that the result is not worse than
            any of them; CMA-ES itself begins in the middle and ignores them.

    Raises:
        ValueError: λ is less than 2, or the seed is negative.
    """

    name = "cma"

    def __init__(
        self,
        space: GeneSpace,
        settings: StrategySettings,
        seed: int,
        founders: Sequence[Genome] = (),
    ) -> None:
        if settings.offspring < 2:
            raise ValueError(f"offspring is {settings.offspring}; CMA-ES needs at least 2")
        self.space = space
        self.settings = settings
        self._seed = seed
        self._founders = tuple(founders)
        self._values: list[list[float]] = []
        self._asked: list[FloatArray] = []
        self._es = _new(space, settings.offspring, generator(seed))

    @property
    def generation(self) -> int:
        """Generations told so far."""
        return len(self._values)

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until `tell`."""
        if not self._asked:
            self._asked = [np.asarray(point, np.float64) for point in self._es.ask()]
        points = [self._genome(point) for point in self._asked]
        return points if self._values else [*points, *self._founders]

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of what was asked, in that order; smaller is better."""
        del figures
        genomes = self.ask() if self._asked else []
        check_values(values, len(genomes))
        told = [float(value) for value in values]
        self._keep_best(genomes, told)
        with warnings.catch_warnings():
            # Values that are all equal make the package warn; termination is somebody else's task.
            warnings.simplefilter("ignore")
            self._es.tell(self._asked, told[: len(self._asked)])
        self._values.append(told)
        self._asked = []

    def _genome(self, point: FloatArray) -> Genome:
        space = self.space
        reals, binaries = len(space.low), space.binaries
        real = space.low + point[:reals] * space.span
        cell = np.floor(point[reals + binaries :] * space.choices).astype(np.int64)
        integer = np.clip(cell, 0, space.choices - 1)
        return space.confined(Genome(real, point[reals : reals + binaries] > 0, integer))

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""
        return {
            "strategy": self.name,
            "space": self.space.to_state(),
            "settings": asdict(self.settings),
            "seed": self._seed,
            "founders": [one.to_state() for one in self._founders],
            "versions": versions(),
            "told": list(self._values),
            "asked": bool(self._asked),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the strategy that `to_state` described; it continues bit for bit.

        Raises:
            ValueError: the state is of other versions of `cma` or numpy.
        """
        for package, version in versions().items():
            if state["versions"].get(package) != version:
                raise ValueError(
                    f"it was made with {package} {state['versions'].get(package)}, and here is "
                    f"{package} {version}; CMA-ES goes on with the same version only"
                )
        strategy = cls(
            GeneSpace.from_state(state["space"]),
            StrategySettings(**state["settings"]),
            state["seed"],
            [Genome.from_state(one) for one in state["founders"]],
        )
        for values in state["told"]:
            strategy.ask()
            strategy.tell(values)
        if state["asked"]:
            strategy.ask()
        return strategy


def flip_margin(binaries: int, offspring: int) -> float:
    """Returns the least standard deviation of a binary gene's coordinate.

    From the end of the range, 1 away from the threshold, it crosses it with probability 1/(λ·b):
    about one binary gene in each generation, as Hamano et al. (2022, section 3) choose it.
    """
    return 1.0 / NormalDist().inv_cdf(1.0 - 1.0 / max(4.0, float(offspring * binaries)))


def _new(space: GeneSpace, offspring: int, rng: np.random.Generator) -> Any:
    reals, binaries, integers = len(space.low), space.binaries, len(space.choices)
    start = np.concatenate([np.full(reals, 0.5), np.zeros(binaries), np.full(integers, 0.5)])
    low, high = (0.0, 1.0) if space.bounded else (-np.inf, np.inf)
    options = {
        "popsize": offspring,
        "randn": lambda *shape: rng.standard_normal(shape),
        "seed": np.nan,  # leaves numpy's global generator alone
        "bounds": [
            [low] * reals + [-1.0] * binaries + [0.0] * integers,
            [high] * reals + [1.0] * (binaries + integers),
        ],
        # Binary genes start twice as wide: their range is twice as wide.
        "CMA_stds": [1.0] * reals + [2.0] * binaries + [1.0] * integers,
        "minstd": [0.0] * reals
        + [flip_margin(binaries, offspring)] * binaries
        + (0.5 / space.choices).tolist(),
        "verbose": -9,
        "verb_log": 0,
        "verb_disp": 0,
        "signals_filename": "",
    }
    return cma.CMAEvolutionStrategy(start, SIGMA_START, options)
