"""A network in memory that loses, doubles, delays and reorders messages, and falls apart."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations

from grms.simulation.clock import ManualClock
from grms.simulation.fault_injection import Faults
from grms.simulation.random_source import RandomSource
from grms.site.model.commands import Command


class Network:
    """Carries messages between named places; `faults` may be changed at any time.

    `blocked` counts what was stopped in one direction while the other was open.
    """

    def __init__(self, clock: ManualClock, draws: RandomSource, faults: Faults) -> None:
        self.faults = faults
        self.blocked = 0
        self._clock = clock
        self._draws = draws
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._barred: Counter[tuple[str, str]] = Counter()

    def send(
        self,
        source: str,
        target: str,
        arrive: Callable[[], None],
        message: Command | None = None,  # noqa: ARG002  # none is safer than another
        *,
        answer: bool = False,
    ) -> None:
        """Sends a message, a call or the answer to one; `arrive` is called once for each copy that gets through."""
        draws, faults = self._draws, self.faults
        copies = 2 if draws.chance(faults.duplication) else 1
        for _ in range(copies):
            if draws.chance(faults.loss):
                continue
            mean = faults.late_mean if draws.chance(faults.late) else faults.delay_mean
            self._clock.after(draws.exponential(mean), self._arrive, source, target, answer, arrive)

    def _arrive(self, source: str, target: str, answer: bool, arrive: Callable[[], None]) -> None:
        if self._cuts[source, target]:
            self.blocked += not self._cuts[target, source]
        elif answer or not self._barred[source, target]:
            arrive()
        else:
            self.blocked += 1

    def cut(self, one: str, other: str, duration: float) -> None:
        """Lets nothing through between two places for a time, seconds."""
        self.cut_one_way(one, other, duration)
        self.cut_one_way(other, one, duration)

    def cut_one_way(self, source: str, target: str, duration: float) -> None:
        """Lets nothing through from one place to another for a time, seconds: neither calls nor answers."""
        self._lift_later(self._cuts, source, target, duration)

    def bar(self, caller: str, called: str, duration: float) -> None:
        """Lets no calls through from one place to another for a time, seconds.

        Answers to calls of the other do pass: so it is with a site that only calls out, while it has no tunnel open.
        """
        self._lift_later(self._barred, caller, called, duration)

    def isolate(self, place: str, places: list[str], duration: float) -> None:
        """Cuts one place off from all others for a time, seconds."""
        for one, other in combinations(places, 2):
            if place in {one, other}:
                self.cut(one, other, duration)

    def _lift_later(
        self, counts: Counter[tuple[str, str]], source: str, target: str, duration: float
    ) -> None:
        counts[source, target] += 1
        self._clock.after(duration, counts.subtract, {(source, target): 1})
