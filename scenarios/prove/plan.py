"""Which faults come when, drawn from a seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final, Literal

SITES: Final = ("north", "south")

FaultKind = Literal[
    "hang",
    "kill",
    "state loss",
    "link cut",
    "link one way",
    "link silent",
    "link slow",
    "site kill",
]
LINK_KINDS: Final[tuple[FaultKind, ...]] = (
    "link cut",
    "link one way",
    "link silent",
    "link slow",
)
WORDS: Final[dict[str, str]] = {
    "hang": "a controller hangs (SIGSTOP)",
    "kill": "a controller dies (SIGKILL)",
    "state loss": "a controller loses its last five seconds",
    "link cut": "the link between the sites is cut",
    "link one way": "the link lets no answers through",
    "link silent": "the link lets nothing through, and breaks no connection",
    "link slow": "the link is slow",
    "site kill": "a site's daemon dies (SIGKILL)",
}
"""What each kind of fault is, for people."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is broken for a while.

    Attributes:
        place: site whose controller or daemon it is; empty for the link.
        pause_s: seconds that all is well before it.
        broken_s: seconds that it lasts; of a state loss, that are lost.
        jobs: seconds after its begin at which a user at `place` submits a job.
    """

    kind: FaultKind
    place: str
    pause_s: float
    broken_s: float
    jobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is broken, and what users do.

    Attributes:
        hangs: of controllers; all other faults are so many that they fit.
        state_losses: how many times a controller loses its last seconds; None for a sixth of `hangs`, at least one.
        kills: of controllers, and as many of daemons; None for likewise.
        links: how often the link breaks; None for a third of `hangs`, at least twice.
        hang_s: shortest and longest hang, seconds.
        pause_s: shortest and longest pause between two faults of one thing, seconds.
        lost_s: what a controller loses, seconds.
        patience_s: after so many seconds without an answer a user's command gives up, and is repeated.
        run_s: shortest and longest run of a job, seconds.
        poll_s: how often sites look at their batch systems, seconds.
        settle_s: how old a submission must be that no crash of a controller can undo, seconds.
        nodes: of each batch system.
        cpus: of each node: many, as Slurm takes for busy what jobs have that ended in the time that it lost.
        away_every: of so many jobs of `grms submit` one is for the other site alone.
        reoffer: how often sites offer jobs again that wait.
    """

    hangs: int = 12
    seed: int = 1
    state_losses: int | None = None
    kills: int | None = None
    links: int | None = None
    hang_s: tuple[float, float] = (4.0, 10.0)
    pause_s: tuple[float, float] = (2.0, 6.0)
    lost_s: float = 5.0
    patience_s: int = 3
    run_s: tuple[float, float] = (0.5, 3.0)
    poll_s: float = 1.0
    settle_s: float = 6.0
    nodes: int = 2
    cpus: int = 16
    away_every: int = 3
    reoffer: str = "5s"

    def lanes(self) -> dict[str, list[Fault]]:
        """Returns the faults of each thing that breaks, in their order: two controllers, two daemons, and the link."""
        rng = random.Random(f"faults {self.seed}")  # noqa: S311  # faults, no secrets
        some = max(1, self.hangs // 6)
        kills = some if self.kills is None else self.kills
        losses = some if self.state_losses is None else self.state_losses
        counts: dict[FaultKind, int] = {"hang": self.hangs, "kill": kills, "state loss": losses}
        kinds = [kind for kind, count in counts.items() for _ in range(count)]
        rng.shuffle(kinds)
        lanes: dict[str, list[Fault]] = {"link": []}
        for number, name in enumerate(SITES):
            own = kinds[number :: len(SITES)]
            lanes[name] = [self._of_controller(rng, kind, name) for kind in own]
            daemons = range(number, kills, len(SITES))
            lanes[f"{name}'s daemon"] = [self._of_daemon(rng, name) for _ in daemons]
        links = max(2, self.hangs // 3) if self.links is None else self.links
        for kind in islice(cycle(LINK_KINDS), links):
            lanes["link"].append(Fault(kind, "", self._pause(rng), rng.uniform(*self.hang_s)))
        return lanes

    def _pause(self, rng: random.Random) -> float:
        return rng.uniform(*self.pause_s)

    def _of_controller(self, rng: random.Random, kind: FaultKind, place: str) -> Fault:
        pause_s = self._pause(rng)
        if kind == "hang":
            length = rng.uniform(*self.hang_s)
            return Fault(kind, place, pause_s, length, self._moments(rng, 3, length / 2))
        if kind == "state loss":
            # So late that they are acknowledged, and run, in the time that is lost.
            moments = self._moments(rng, 2, self.lost_s / 2)
            late = tuple(moment + self.lost_s * 0.4 for moment in moments)
            return Fault(kind, place, pause_s, self.lost_s, late)
        return Fault(kind, place, pause_s, rng.uniform(0.1, 3.0), self._moments(rng, 2, 0.2))

    def _of_daemon(self, rng: random.Random, place: str) -> Fault:
        # Rare, so that it may be away for as long as a hang.
        length = rng.uniform(*self.hang_s)
        return Fault("site kill", place, 3 * self._pause(rng), length, self._moments(rng, 2, 1.0))

    @staticmethod
    def _moments(rng: random.Random, count: int, until: float) -> tuple[float, ...]:
        return tuple(sorted(rng.uniform(0.0, until) for _ in range(count)))


def jobs_of(lanes: dict[str, list[Fault]]) -> int:
    """Returns how many jobs users submit, each by either command."""
    return sum(len(fault.jobs) for faults in lanes.values() for fault in faults)


def faults_of(lanes: dict[str, list[Fault]]) -> Sequence[Fault]:
    """Returns all faults."""
    return [fault for faults in lanes.values() for fault in faults]
