"""Rounds of offers: when a site offers its waiting jobs again, with few questions.

A period alone asks every partner about every waiting job in every round (docs/disciplines.md). Most of
these answers are known: during a round only placements happen, so that a partner which has declined one job
declines every other that is no narrower and no shorter. The kernel of a federation's replay keeps the same
notes (`grms/federation/_rebalancing.pxd`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

PERIOD_MIN: Final = 1.0
QUESTIONS_MAX: Final = 2**62
"""No bound."""

RoundOrder = Literal["queue", "widest"]
ROUND_ORDERS: Final[tuple[RoundOrder, ...]] = get_args(RoundOrder)


@dataclass(frozen=True, slots=True)
class Rebalancing:
    """When waiting jobs are offered again, with fewer questions.

    In a round a partner that has declined a job is not asked about jobs at least as wide and with at least
    its request. If partners take what starts at once and use constraints but no other policy, jobs go where they
    would go if every question were asked.

    Attributes:
        period: rounds are held at its multiples, seconds, at least 1.
        order: of offers: that of the queue; or the widest first, after the narrowest (of these the shortest),
            as a partner that declines that one is hardly asked further.
        questions: most questions of a site in a round; `None`: any number.
        pause: longest pause between two questions about one job to one partner, seconds, at least the
            period. The first refusal is followed by one period, each further one by twice the last;
            `None`: no pauses.
    """

    period: float
    order: RoundOrder = "queue"
    questions: int | None = None
    pause: float | None = None

    def __post_init__(self) -> None:
        if not PERIOD_MIN <= self.period < math.inf:
            raise ValueError(f"the period is {self.period} s; at least {PERIOD_MIN:g} s is needed")
        if self.order not in ROUND_ORDERS:
            raise ValueError(f"order is {self.order!r}; there are: {', '.join(ROUND_ORDERS)}")
        if self.questions is not None and not 1 <= self.questions <= QUESTIONS_MAX:
            raise ValueError(f"questions is {self.questions}; it must be at least 1")
        if self.pause is not None and not self.period <= self.pause < math.inf:
            raise ValueError(
                f"pause is {self.pause} s; it must be at least the period, {self.period:g} s"
            )

    @property
    def bounds(self) -> tuple[int, float, bool]:
        """Questions, longest pause and whether the widest come first, as the kernel takes them."""
        return self.questions or QUESTIONS_MAX, self.pause or 0.0, self.order == "widest"


def period_of(reoffer: float | Rebalancing | None) -> float:
    """Returns the period of rounds in seconds; infinity without rounds."""
    if reoffer is None:
        return math.inf
    return reoffer.period if isinstance(reoffer, Rebalancing) else reoffer


REFUSALS_MAX: Final = 16
"""Most refusals remembered per partner and round."""

Pauses = dict[int, dict[str, tuple[float, float]]]
"""By job and partner: when it is asked again, and the length of the pause, seconds."""


class Waiting(NamedTuple):
    """A waiting job; `requested_time` is in seconds."""

    job: int
    processors: int
    requested_time: float


def ordered(waiting: Iterable[Waiting], rounds: float | Rebalancing | None) -> list[Waiting]:
    """Returns waiting jobs, given in queue order, in the order in which a round offers them."""
    order = list(waiting)
    if not isinstance(rounds, Rebalancing) or rounds.order == "queue" or len(order) < 2:
        return order
    # Sorting is stable. A partner that declines the easiest job is hardly asked further.
    widest = sorted(order, key=lambda one: -one.processors)
    easiest = min(widest, key=lambda one: (one.processors, one.requested_time))
    widest.remove(easiest)
    return [easiest, *widest]


def lengthen(pauses: Pauses, rounds: Rebalancing, job: int, partner: str, now: float) -> None:
    """Records a refusal: the partner is not asked about the job for a while, longer each time."""
    if rounds.pause is None:
        return
    of_job = pauses.setdefault(job, {})
    _, last = of_job.get(partner, (0.0, 0.0))
    length = min(2.0 * last if last > 0.0 else rounds.period, rounds.pause)
    of_job[partner] = (now + length, length)


class RebalancingNotes:
    """Notes of one site's rounds; `left` is the number of questions left in this round."""

    def __init__(self, rounds: float | Rebalancing, pauses: Pauses | None = None) -> None:
        self._rounds = rounds if isinstance(rounds, Rebalancing) else None
        self.left: float = math.inf
        self._refusals: dict[str, list[tuple[int, float]]] = {}
        self._pauses: Pauses = {job: dict(of_job) for job, of_job in (pauses or {}).items()}

    def begin(self, waiting: Iterable[Waiting]) -> list[Waiting]:
        """Begins a round; returns the jobs, given in queue order, in the order in which they are offered."""
        rounds = self._rounds
        order = ordered(waiting, rounds)
        if rounds is None:
            return order
        self.left = math.inf if rounds.questions is None else rounds.questions
        self._refusals = {}
        self._pauses = {one.job: self._pauses[one.job] for one in order if one.job in self._pauses}
        return order

    def go_on(self, questions: int, declined: Iterable[tuple[Waiting, str]]) -> None:
        """Takes over the progress of a round that was begun here just now, and elsewhere before.

        `questions` have been asked in it; pauses already include `declined`.
        """
        self.left -= questions
        if self._rounds is not None:
            for one, partner in declined:
                self._refused(one, partner)

    def spares(self, one: Waiting, partner: str, now: float) -> bool:
        """Returns whether a partner need not be asked about a job, as its answer is known or was no."""
        if self._rounds is None:
            return False
        until, _ = self._pauses.get(one.job, {}).get(partner, (-math.inf, 0.0))
        return (
            self.left == 0
            or now < until
            or any(
                width <= one.processors and requested_time <= one.requested_time
                for width, requested_time in self._refusals.get(partner, ())
            )
        )

    def declined(self, one: Waiting, partner: str, now: float) -> None:
        """Records that a partner has declined a job."""
        rounds = self._rounds
        if rounds is None:
            return
        lengthen(self._pauses, rounds, one.job, partner, now)
        self._refused(one, partner)

    def _refused(self, one: Waiting, partner: str) -> None:
        # Drop refusals that this one makes redundant.
        kept = [
            (width, requested_time)
            for width, requested_time in self._refusals.get(partner, ())
            if width < one.processors or requested_time < one.requested_time
        ]
        if len(kept) < REFUSALS_MAX:
            kept.append((one.processors, one.requested_time))
        self._refusals[partner] = kept
