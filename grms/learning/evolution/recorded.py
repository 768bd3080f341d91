"""A strategy that remembers what was measured of everybody it has asked for.

The best individual is what a search is for; all the others show what else can be had, and a picture of them
is what papers on several objectives print.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Figures, Individual, Strategy

SEEN_MAX: Final = 100_000
"""So many individuals are remembered; what comes after them is not."""


class Recorded(Strategy):
    """A strategy with the first row of figures of each individual told so far.

    Individuals without figures, whose evaluation was given up, are not remembered.

    Args:
        inner: the strategy, which does not know that anybody writes down.
        seen: what was remembered before, a row for each individual.
    """

    name: ClassVar[str] = "recorded"

    def __init__(self, inner: Strategy, seen: Iterable[Sequence[float]] = ()) -> None:
        self.inner = inner
        self._seen = [tuple(float(number) for number in row) for row in seen]

    @property
    def seen(self) -> tuple[tuple[float, ...], ...]:
        """The first row of figures of each individual, in the order in which they were told."""
        return tuple(self._seen)

    @property
    def generation(self) -> int:
        """Generations bred and told so far."""
        return self.inner.generation

    @property
    def best(self) -> Individual | None:
        """The best individual told so far; None before the first generation."""
        return self.inner.best

    @property
    def bound(self) -> float:
        """The value above which it does not matter how bad a genome of this generation is."""
        return self.inner.bound

    @property
    def exhausted(self) -> str:
        """Why there is nothing more to ask, for people; empty while there is."""
        return self.inner.exhausted

    def ask(self) -> list[Genome]:
        """Returns the genomes of the next generation; the same until they are told."""
        return self.inner.ask()

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of what was asked, in that order, and remembers the figures.

        Raises:
            ValueError: the inner strategy refuses them.
        """
        self.inner.tell(values, figures)
        rows = [tuple(one[0]) for one in figures if one and one[0]]
        self._seen += rows[: SEEN_MAX - len(self._seen)]

    def to_state(self) -> dict[str, Any]:
        """Returns all that is known as plain values that JSON keeps exactly."""
        return {
            "strategy": self.name,
            "inner": self.inner.to_state(),
            "seen": [list(row) for row in self._seen],
        }
