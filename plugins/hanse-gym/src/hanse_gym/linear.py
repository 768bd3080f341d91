"""The smallest agent that learns: a weighted sum of eight numbers of a job, the largest picked.

An example, and a check that the bench can tell learned from constant. The weights are found by CMA-ES (Hansen,
Ostermeier 2001; the library `cma`) on sequences of the training part, chosen on those of the validation part.
"""

from dataclasses import dataclass
from typing import Final

import cma  # type: ignore[import-untyped]  # the package has no types
import numpy as np
import numpy.typing as npt

from hanse_gym.agents import Array, objectives
from hanse_gym.options import PickOptions
from hanse_gym.sequences import Sequences

INPUTS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class LinearAgent:
    """Picks the filled place with the largest sum.

    Attributes:
        weights: shape (8,), of wait, requested time, processors and whether the job fits, as observed, of the
            first three's products in pairs, and of the logarithm of the processors.
    """

    weights: Array

    def __call__(self, seen: Array) -> int:
        """Returns the place to pick of one observation."""
        return int(self.places(seen[None])[0])

    def places(self, seen: Array) -> npt.NDArray[np.int64]:
        """Returns the places to pick of many observations, shape (machines, window, 6)."""
        _, wait, request, width, fits, _ = np.moveaxis(seen, 2, 0)
        inputs = (
            wait, request, width, fits, wait * request, wait * width, request * width,
            np.log(width + 1e-3),
        )  # fmt: skip
        score = sum(
            weight * each for weight, each in zip(self.weights.tolist(), inputs, strict=True)
        )
        found: npt.NDArray[np.int64] = np.argmax(np.where(seen[:, :, 0] > 0, score, -np.inf), 1)
        return found


def train(
    sequences: Sequences,
    validation: Sequences,
    *,
    seed: int,
    generations: int = 40,
    per_generation: int = 16,
    options: PickOptions | None = None,
) -> LinearAgent:
    """Returns the best agent of a search: of each generation's mean, that with the least objective on 32 of validation.

    Every child of a generation is given the same sequences of training, others than the generation before; what is
    made small is the mean logarithm of the objective, as few sequences have most of its sum.
    """
    rules = options or PickOptions()
    random = np.random.default_rng(seed)
    search = cma.CMAEvolutionStrategy(
        np.zeros(INPUTS), 0.5, {"seed": seed + 1, "verbose": -9, "maxiter": generations}
    )
    held = validation.fixed(32, seed)
    best, least = LinearAgent(np.zeros(INPUTS)), np.inf
    while not search.stop():
        firsts = np.array([sequences.draw(random) for _ in range(per_generation)], np.int64)
        children = search.ask()
        search.tell(
            children,
            [
                float(np.log1p(objectives(LinearAgent(child), sequences, firsts, rules)).mean())
                for child in children
            ],
        )
        mean = LinearAgent(np.array(search.mean))
        reached = float(objectives(mean, validation, held, rules).mean())
        if reached < least:
            best, least = mean, reached
    return best
