"""A strategy that records the measurements of all individuals.

Besides the best, the others show the trade-offs, as plotted in papers on several objectives.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Figures, Individual, Strategy

SEEN_MAX: Final = 100_000
"""So many individuals are remembered; what comes after them is not."""


class Recorded(Strategy):
    """A strategy that records the first row of figures of each individual.

    Individuals without figures, whose evaluation was stopped, are not recorded. `seen` are the rows
    of an earlier session.
    """

    name: ClassVar[str] = "recorded"

    def __init__(self, inner: Strategy, seen: Iterable[Sequence[float]] = ()) -> None:
        self.inner = inner
        self._seen = [tuple(float(number) for number in row) for row in seen]

    @property
    def seen(self) -> tuple[tuple[float, ...], ...]:
        """The first row of figures of each individual, in the order of `tell`."""
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
        """Returns the genomes of the next generation; the same until `tell`."""
        return self.inner.ask()

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of the genomes, in that order, and records the figures."""
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
