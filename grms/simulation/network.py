"""A network in memory that loses, doubles, delays and reorders messages, and falls apart."""

from collections.abc import Callable
from itertools import combinations

from grms.simulation.clock import ManualClock
from grms.simulation.fault_injection import Faults
from grms.simulation.random_source import RandomSource
from grms.site.model.commands import Command


class Network:
    """Carries messages between named places; `faults` may be changed at any time."""

    def __init__(self, clock: ManualClock, draws: RandomSource, faults: Faults) -> None:
        self.faults = faults
        self._clock = clock
        self._draws = draws
        self._cuts: dict[tuple[str, str], int] = {}

    def send(
        self,
        source: str,
        target: str,
        arrive: Callable[[], None],
        message: Command | None = None,  # noqa: ARG002  # none is safer than another
    ) -> None:
        """Sends a message; `arrive` is called once for each copy that gets through."""
        draws, faults = self._draws, self.faults
        copies = 2 if draws.chance(faults.duplication) else 1
        for _ in range(copies):
            if draws.chance(faults.loss):
                continue
            mean = faults.late_mean if draws.chance(faults.late) else faults.delay_mean
            self._clock.after(draws.exponential(mean), self._arrive, source, target, arrive)

    def _arrive(self, source: str, target: str, arrive: Callable[[], None]) -> None:
        if not self._cuts.get((source, target)):
            arrive()

    def cut(self, one: str, other: str, duration: float) -> None:
        """Lets nothing through between two places for a time, seconds."""
        for pair in ((one, other), (other, one)):
            self._cuts[pair] = self._cuts.get(pair, 0) + 1
        self._clock.after(duration, self._mend, one, other)

    def isolate(self, place: str, places: list[str], duration: float) -> None:
        """Cuts one place off from all others for a time, seconds."""
        for one, other in combinations(places, 2):
            if place in {one, other}:
                self.cut(one, other, duration)

    def _mend(self, one: str, other: str) -> None:
        for pair in ((one, other), (other, one)):
            self._cuts[pair] -= 1
