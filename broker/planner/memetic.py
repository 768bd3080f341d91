"""What local search does in GLEAM: the adaptive simple memetic algorithm (paper 004, section 3.4).

The best child of a mating is improved always. With best-improvement that is all; with adaptive
all-improvement its siblings are improved too, with a probability that adapts: it takes a few levels,
three neighbouring ones of which are active, and levels that gain more fitness for each schedule
that local search builds are drawn more often.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Probabilities to improve a child that is not the best of its mating."""

ACTIVE = 3
"""Neighbouring levels that can be drawn."""

USES_EACH = 3
"""After so many uses of every active level, probabilities are adapted."""

USES_IN_ALL = 12
"""Or after so many uses of all levels together."""

PROBABILITY_MIN = 0.1
"""Least probability of an active level, so that none is forgotten."""

EDGE = 0.5
"""An edge level that is drawn more often than this makes the window move."""

ENTERING = 0.2
"""Share of each of the other two that a level which enters the window is given."""


class Searcher(enum.IntFlag):
    """Local searchers."""

    STRATEGY = 1
    """The paper's: other resource allocation strategies, where the schedule says they may help."""

    SHIFT = 2
    """Tasks that a bad workflow waits for go forward in the sequence."""

    BLOCKS = 4
    """Tabu search on critical blocks: shortens the makespan where every task has one exclusive
    resource, and does nothing elsewhere."""


@dataclass(frozen=True, slots=True)
class Memetic:
    """Settings of local search.

    Attributes:
        searchers: which, one after another.
        best_only: best-improvement; else adaptive all-improvement.
        trials: schedules that `Searcher.SHIFT` tries at most for one child.
        iterations: of `Searcher.BLOCKS` for one child.

    Raises:
        ValueError: there is no searcher, or trials or iterations are not positive.
    """

    searchers: Searcher = Searcher.STRATEGY
    best_only: bool = False
    trials: int = 5
    iterations: int = 5000

    def __post_init__(self) -> None:
        """Checks the settings."""
        if not self.searchers:
            raise ValueError("local search needs at least one searcher")
        if self.trials < 1:
            raise ValueError(f"{self.trials} trials; at least 1")
        if self.iterations < 1:
            raise ValueError(f"{self.iterations} iterations; at least 1")


@dataclass
class LevelAdaptation:
    """Which levels are active, how likely each is, and what they have gained since the last time.

    Attributes:
        lowest: number of the lowest active level.
        probability: of each active level; they sum to 1.
        uses: matings since the last adaptation, by active level.
        gain: relative fitness gain, summed.
        cost: schedules built by local search, summed.
    """

    lowest: int = 0
    probability: list[float] = field(default_factory=lambda: [1 / ACTIVE] * ACTIVE)
    uses: list[int] = field(default_factory=lambda: [0] * ACTIVE)
    gain: list[float] = field(default_factory=lambda: [0.0] * ACTIVE)
    cost: list[int] = field(default_factory=lambda: [0] * ACTIVE)

    @property
    def levels(self) -> tuple[float, ...]:
        """The active levels."""
        return LEVELS[self.lowest : self.lowest + ACTIVE]

    def note(self, level: int, gain: float, cost: int) -> None:
        """Notes one mating.

        Args:
            level: number of the active level it drew, from 0.
            gain: relative fitness gain of its best child.
            cost: schedules that local search built.
        """
        self.uses[level] += 1
        self.gain[level] += gain
        self.cost[level] += cost

    def adapt(self) -> bool:
        """Sets new probabilities if levels were used often enough; returns whether they were."""
        if min(self.uses) < USES_EACH and sum(self.uses) < USES_IN_ALL:
            return False
        merit = [
            gain / cost if cost else 0.0 for gain, cost in zip(self.gain, self.cost, strict=True)
        ]
        total = sum(merit)
        if total > 0:
            self.probability = [each / total for each in merit]
            self._move_window()
            self.probability = raised(self.probability)
        self.uses, self.gain, self.cost = [0] * ACTIVE, [0.0] * ACTIVE, [0] * ACTIVE
        return True

    def _move_window(self) -> None:
        low, middle, high = self.probability
        if low > EDGE and self.lowest > 0:
            # The highest level goes, its share to the middle; a lower one enters.
            self.lowest -= 1
            middle += high
            entering = ENTERING * (low + middle)
            self.probability = [entering, low * (1 - ENTERING), middle * (1 - ENTERING)]
        elif high > EDGE and self.lowest + ACTIVE < len(LEVELS):
            self.lowest += 1
            middle += low
            entering = ENTERING * (middle + high)
            self.probability = [middle * (1 - ENTERING), high * (1 - ENTERING), entering]

    def state(self) -> dict[str, Any]:
        """Returns everything there is to save."""
        return {
            "lowest": self.lowest,
            "probability": list(self.probability),
            "uses": list(self.uses),
            "gain": list(self.gain),
            "cost": list(self.cost),
        }


def raised(probability: Iterable[float]) -> list[float]:
    """Returns probabilities that sum to 1, none below the least; those above it pay in proportion."""
    given = list(probability)
    low = [each < PROBABILITY_MIN for each in given]
    while True:
        missing = 1.0 - PROBABILITY_MIN * sum(low)
        above = sum(each for each, is_low in zip(given, low, strict=True) if not is_low)
        result = [
            PROBABILITY_MIN if is_low else each * missing / above
            for each, is_low in zip(given, low, strict=True)
        ]
        lower = [is_low or each < PROBABILITY_MIN for each, is_low in zip(result, low, strict=True)]
        if lower == low:
            return result
        low = lower
