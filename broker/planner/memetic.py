"""Local search in GLEAM: the adaptive simple memetic algorithm (paper 004, section 3.4).

The best child of a mating is always improved. With best-improvement that is all; with adaptive
all-improvement its siblings are improved too, with an adaptive probability: of a few levels three
neighbouring ones are active, and levels that gain more fitness per schedule built by local search
are drawn more often.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Probabilities of improving a child that is not the best of its mating."""

ACTIVE = 3
"""Neighbouring levels that can be drawn."""

USES_EACH = 3
"""Probabilities are adapted after this many uses of every active level …"""

USES_IN_ALL = 12
"""… or after this many uses of all levels together."""

PROBABILITY_MIN = 0.1
"""Least probability of an active level, so that none is lost."""

EDGE = 0.5
"""The window moves if an edge level is drawn more often than this."""

ENTERING = 0.2
"""Share of each of the other two that goes to a level entering the window."""


class Searcher(enum.IntFlag):
    """Local searchers."""

    STRATEGY = 1
    """The paper's: other resource allocation strategies, where the schedule says they may help."""

    SHIFT = 2
    """Moves forward in the sequence the tasks that a bad workflow waits for."""

    BLOCKS = 4
    """Tabu search on critical blocks: shortens the makespan if every task has one exclusive
    resource, and does nothing otherwise.
    """

    JUSTIFY = 8
    """Justifies every schedule, forward and backward, when it is built: if every task has one
    alternative, on resources that are always there. It does nothing otherwise.
    """


@dataclass(frozen=True, slots=True)
class Memetic:
    """Settings of local search.

    Attributes:
        searchers: applied one after another.
        best_only: best-improvement; else adaptive all-improvement.
        trials: most schedules that `Searcher.SHIFT` tries for one child.
        iterations: of `Searcher.BLOCKS` for one child; a fifth in flexible job shops.
    """

    searchers: Searcher = Searcher.STRATEGY
    best_only: bool = False
    trials: int = 5
    iterations: int = 5000

    def __post_init__(self) -> None:
        if not self.searchers:
            raise ValueError("local search needs at least one searcher")
        if self.trials < 1:
            raise ValueError(f"{self.trials} trials; at least 1")
        if self.iterations < 1:
            raise ValueError(f"{self.iterations} iterations; at least 1")


@dataclass
class LevelAdaptation:
    """The active levels, the probability of each, and their gains since the last adaptation.

    Attributes:
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
        """Records one mating.

        `level` is the number of the active level it drew, `gain` the relative fitness gain of its best
        child, `cost` the schedules built by local search.
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
            # The highest level goes, its share to the middle one; a lower one enters.
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
