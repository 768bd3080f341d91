"""What the plain utility machine consists of: jobs, a value function that learns, a policy."""

import math
from dataclasses import dataclass, field


@dataclass
class PlainJob:
    """A job and all that becomes of it."""

    number: int
    arrival: float
    width: int
    least: int
    request: float
    run: float
    weight: float = 1.0
    plateau: float = 1.0
    zero: float = 2.0
    floor: float = 0.0
    shape: str = "linear"
    state: str = "unknown"
    left: float = 0.0
    run_left: float = 0.0
    held: int = 0
    stored: int = 0
    since: float = 0.0
    resumed: float = 0.0
    expected: float = 0.0
    ends: float = 0.0
    machine: int | None = None
    suspensions: int = 0
    resizes: int = 0
    busy: float = 0.0
    extra: float = 0.0
    start: float | None = None
    end: float | None = None
    utility: float = 0.0

    def unit(self, completion: float) -> float:
        """Returns the unit utility of a completion."""
        z = (completion - self.arrival) / self.request
        if z <= self.plateau:
            return self.weight
        f = 0.0 if z >= self.zero else (self.zero - z) / (self.zero - self.plateau)
        f = {"linear": f, "convex": f * f, "concave": math.sqrt(f)}[self.shape]
        return self.weight * max(f, self.floor)

    def final(self, completion: float) -> float:
        """Returns the final utility that is expected of a completion."""
        return self.unit(completion) * self.width * self.request


@dataclass
class PlainLearner:
    """A value function and what it learns."""

    p: list[float]
    scales: tuple[float, float, int]
    rate: float = 0.0
    delay: float | None = None
    per_step: bool = True
    unit: float = 1.0
    learning: bool = False
    rho: float = 0.0
    updates: int = 0
    pending: bool = False
    reward: float = 0.0
    stored: tuple[list[float], float] | None = None

    def phi(self, state: tuple[float, float, float]) -> list[float]:
        """Returns the weights of the rules."""
        large = [min(1.0, max(0.0, x / s)) for x, s in zip(state, self.scales, strict=True)]
        weights = []
        for rule in range(8):
            weight = 1.0
            for place, degree in zip((4, 2, 1), large, strict=True):
                weight *= degree if rule & place else 1.0 - degree
            weights.append(weight)
        return weights

    def value(self, state: tuple[float, float, float]) -> float:
        """Returns the value of a state."""
        return sum(p * w for p, w in zip(self.p, self.phi(state), strict=True))

    def update(self, state: tuple[float, float, float], now: float) -> None:
        """Learns from the step to this state."""
        phi = self.phi(state)
        if self.stored is not None:
            before, then = self.stored
            self.updates += 1
            alpha = self.rate if self.delay is None else self.rate / (self.delay + self.updates)
            alpha = min(1.0, alpha)
            expected = self.rho * ((now - then) / self.unit) if self.per_step else self.rho
            v1 = sum(p * w for p, w in zip(self.p, phi, strict=True))
            v0 = sum(p * w for p, w in zip(self.p, before, strict=True))
            delta = self.reward - expected + v1 - v0
            if self.per_step:
                self.rho += alpha * (self.reward - expected)
            else:
                self.rho = (1 - alpha) * self.rho + alpha * self.reward
            self.p = [p + alpha * delta * w for p, w in zip(self.p, before, strict=True)]
        self.stored = (phi, now)
        self.reward = 0.0


@dataclass
class PlainMachine:
    """One machine."""

    number: int
    size: int
    learner: PlainLearner
    running: list[PlainJob] = field(default_factory=list)
    ended: bool = False
    did: dict[str, bool] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """Returns the processors that nobody holds."""
        return self.size - sum(job.held for job in self.running)


@dataclass
class PlainPolicy:
    """What is done in a pass."""

    preemption: str = "never"
    oversubscription: str = "never"
    job_fixed: bool = False
    mechanism: str | None = None
    order: str = "arrival"
    squeezes: bool = False
    weights: tuple[float, ...] = (0.0,) * 8
