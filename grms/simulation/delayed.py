"""A network in memory whose messages take their time, and clocks that go apart.

Nothing is lost, no question and no place is given up:

- a message from site to site (an offer, its answer, the report of an end, what acknowledges it) takes `message`
  seconds, and answers may be later still. An offer is decided by what the partner is when it arrives, and
  the job neither waits at home nor runs anywhere meanwhile;
- a site's clock may be ahead or behind. It stamps what a site notes and what it reports; machines and
  the network run by the true time, and results are in it.

In a round a site puts each question when the one before has its answer, so that a round takes time. A place that
is held for a waiting job is nothing that the partner's batch system knows of: its own jobs may take the
processors before the job is there, which then waits. A site holds its rounds by its own clock.

docs/experiments.md has what it was made for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grms.simulation.clock import ManualClock
from grms.site.model.commands import AnswerOffer, Command, SendOffer


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays of messages and clock offsets.

    Attributes:
        message: delay of each message, seconds, at least 0.
        late: share of the answers to offers that are later, 0 to 1.
        extra: their additional delay, seconds, at least 0.
        clocks: by how much each site's clock is ahead, seconds, in site order; empty: by nothing.

    Raises:
        ValueError: a number is out of its bounds.
    """

    message: float = 0.0
    late: float = 0.0
    extra: float = 0.0
    clocks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("message", "extra"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be finite, at least 0")
        if not 0 <= self.late <= 1:
            raise ValueError(f"late is {self.late}; it must be in 0..1")


AT_ONCE = Delays()
"""Messages arrive at once, and all clocks are equal."""


class PatientNetwork:
    """Carries messages between sites, each once; see the module.

    `delivered` counts messages that took time, `offers` the questions; `rng` draws late answers.

    Raises:
        ValueError: late answers are wanted, and there is no `rng`.
    """

    def __init__(
        self, clock: ManualClock, delays: Delays = AT_ONCE, rng: np.random.Generator | None = None
    ) -> None:
        if delays.late and rng is None:
            raise ValueError("some answers are to be later than others; an rng is needed")
        self.offers = 0
        self.delivered = 0
        self._clock = clock
        self._delays = delays
        self._rng = rng

    def send(
        self,
        source: str,  # noqa: ARG002  # it is the same everywhere
        target: str,  # noqa: ARG002  # same
        arrive: Callable[[], None],
        message: Command | None = None,
        *,
        answer: bool = False,  # noqa: ARG002  # same
    ) -> None:
        """Sends a message; `arrive` is called once."""
        delays, takes = self._delays, self._delays.message
        if isinstance(message, SendOffer):
            self.offers += 1
        elif isinstance(message, AnswerOffer) and self._rng is not None:
            takes += delays.extra if self._rng.random() < delays.late else 0.0
        if takes == 0.0:
            arrive()
        else:
            self._clock.after(takes, self._deliver, arrive)

    def _deliver(self, arrive: Callable[[], None]) -> None:
        self.delivered += 1
        arrive()
