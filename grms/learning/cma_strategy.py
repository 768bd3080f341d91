"""CMA-ES through the package `cma` (Hansen 2016, "The CMA Evolution Strategy: A Tutorial").

The search space has one real coordinate for each gene. Real genes are divided by the width of
their initial range, so that both features have the same scale. A recommendation is the sign of
its coordinate, which is confined to [-1, 1]; its standard deviation never falls below a margin at
which a recommendation that lies at the very end of the range still flips once in a generation of
all recommendations. Without the margin a recommendation would freeze as soon as selection has
agreed on it (Hamano et al. 2022, "CMA-ES with Margin"). The package's own option for integer
variables is not used: it draws from numpy's global generator, and a saved run could not go on
bit for bit.

The state of a strategy is its conversation: settings, seed and every value that it was told. The
package's objects have no form that JSON could keep, and a pickle in a checkpoint would run whatever
code somebody put there. Going through the conversation again takes a second or two for a whole
training run, and leads to the very same state with the very same versions of the package and of
numpy, which are therefore noted and compared.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import NormalDist
from typing import Any, Self

import cma  # type: ignore[import-untyped]  # the package has no types
import numpy as np
import numpy.typing as npt

from grms.learning.encoding import REALS_PER_RULE, Genome, feature_values
from grms.learning.randomness import generator
from grms.learning.strategies import Individual, StrategySettings, check_values

SIGMA_START = 0.3
"""First standard deviation, as a part of a gene's initial range."""


def versions() -> dict[str, str]:
    """Returns the versions that a conversation has to be continued with."""
    return {"cma": cma.__version__, "numpy": np.__version__}


class CmaStrategy:
    """CMA-ES over rule bases.

    Args:
        settings: rules, λ (`offspring`) and the initial ranges; μ and the steps are CMA-ES's own,
            and recommendations flip as described above.
        seed: of the strategy's own random stream.

    Raises:
        ValueError: λ is less than 2, or the seed is negative.
    """

    name = "cma"
    """The word for this strategy in files and on the command line."""

    def __init__(self, settings: StrategySettings, seed: int) -> None:
        if settings.offspring < 2:
            raise ValueError(f"offspring is {settings.offspring}; CMA-ES needs at least 2")
        self.settings = settings
        self._seed = seed
        self._told: list[list[float]] = []
        self._asked: list[npt.NDArray[np.float64]] = []
        self._best: Individual | None = None
        rules = settings.rules
        self._scale = feature_values(rules, settings.nwp_max, settings.njp_max)
        self._es = _new(rules, settings.offspring, generator(seed))

    @property
    def generation(self) -> int:
        """Generations told so far; CMA-ES has no founders."""
        return len(self._told)

    @property
    def best(self) -> Individual | None:
        """The best individual told so far; None before the first generation."""
        return self._best

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until they are told."""
        if not self._asked:
            self._asked = [np.asarray(point, np.float64) for point in self._es.ask()]
        return [self._genome(point) for point in self._asked]

    def tell(self, values: Sequence[float]) -> None:
        """Learns the values of what was asked, in that order; smaller is better.

        Raises:
            ValueError: nothing was asked, there are more or fewer values than genomes, or one is
                not a finite number.
        """
        check_values(values, len(self._asked))
        told = [float(value) for value in values]
        first = min(range(len(told)), key=told.__getitem__)
        if self._best is None or told[first] < self._best.value:
            self._best = Individual(self._genome(self._asked[first]), told[first])
        with warnings.catch_warnings():
            # Values that are all equal make the package warn; termination is somebody else's task.
            warnings.simplefilter("ignore")
            self._es.tell(self._asked, told)
        self._told.append(told)
        self._asked = []

    def _genome(self, point: npt.NDArray[np.float64]) -> Genome:
        reals = REALS_PER_RULE * self.settings.rules
        return Genome(point[:reals] * self._scale, point[reals:] > 0)

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""
        return {
            "strategy": self.name,
            "settings": asdict(self.settings),
            "seed": self._seed,
            "versions": versions(),
            "told": list(self._told),
            "asked": bool(self._asked),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the strategy that `to_state` described; it goes on bit for bit.

        Raises:
            ValueError: the state comes of other versions of `cma` or numpy.
        """
        for package, version in versions().items():
            if state["versions"].get(package) != version:
                raise ValueError(
                    f"it was made with {package} {state['versions'].get(package)}, and here is "
                    f"{package} {version}; CMA-ES goes on with the same version only"
                )
        strategy = cls(StrategySettings(**state["settings"]), state["seed"])
        for values in state["told"]:
            strategy.ask()
            strategy.tell(values)
        if state["asked"]:
            strategy.ask()
        return strategy


def flip_margin(rules: int, offspring: int) -> float:
    """Returns the least standard deviation of a recommendation's coordinate.

    From the end of the range, 1 away from the threshold, it crosses it with probability
    1/(λ·N): about one recommendation in each generation, as Hamano et al. (2022, section 3)
    choose it.

    Args:
        rules: N.
        offspring: λ.
    """
    return 1.0 / NormalDist().inv_cdf(1.0 - 1.0 / max(4.0, float(offspring * rules)))


def _new(rules: int, offspring: int, rng: np.random.Generator) -> Any:
    reals = REALS_PER_RULE * rules
    start = np.concatenate([np.full(reals, 0.5), np.zeros(rules)])
    margin = flip_margin(rules, offspring)
    options = {
        "popsize": offspring,
        "randn": lambda *shape: rng.standard_normal(shape),
        "seed": np.nan,  # leaves numpy's global generator alone
        "bounds": [[-np.inf] * reals + [-1.0] * rules, [np.inf] * reals + [1.0] * rules],
        # Recommendations start twice as wide: their range is twice as wide.
        "CMA_stds": np.concatenate([np.ones(reals), np.full(rules, 2.0)]).tolist(),
        "minstd": [0.0] * reals + [margin] * rules,
        "verbose": -9,
        "verb_log": 0,
        "verb_disp": 0,
        "signals_filename": "",
    }
    return cma.CMAEvolutionStrategy(start, SIGMA_START, options)
