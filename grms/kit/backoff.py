"""When another attempt is worth it, and the pauses between: longer each time, and not the same for everybody."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # It takes long to import, and what the commands of users need is none of it.
    import numpy as np


def pause_after(failures: int, first_s: float, most_s: float, factor: float = 2.0) -> float:
    """Returns the pause after so many failures in a row, in seconds: 0 after none.

    Args:
        failures: how many.
        first_s: the pause after the first, seconds.
        most_s: the longest, seconds.
        factor: by how much each is longer than the one before.
    """
    if failures < 1:
        return 0.0
    length_s = first_s
    for _ in range(failures - 1):
        if length_s >= most_s:
            break
        length_s *= factor
    return min(length_s, most_s)


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """How long to pause between attempts.

    Attributes:
        first_s: the first pause, seconds, more than 0.
        most_s: the longest, seconds; not less than the first.
        factor: by how much each is longer than the one before, more than 1.

    Raises:
        ValueError: a bound is violated.
    """

    first_s: float = 0.5
    most_s: float = 60.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not 0 < self.first_s <= self.most_s < math.inf:
            raise ValueError(
                f"first_s is {self.first_s} and most_s {self.most_s}; the first must be more than "
                "0 and not more than the other, which must be finite"
            )
        if not 1 < self.factor < math.inf:
            raise ValueError(f"factor is {self.factor}; it must be finite and more than 1")


class Backoff:
    """The pauses of one thing that is tried again and again.

    With chance each pause is drawn between half of its length and all of it, so that many who have
    lost the same server do not come back at the same moment.

    Args:
        settings: how long they are.
        rng: where chance comes from; None for pauses of their whole lengths.
    """

    def __init__(self, settings: BackoffSettings, rng: "np.random.Generator | None" = None) -> None:
        self._settings = settings
        self._rng = rng
        self._failures = 0

    def next_s(self) -> float:
        """Returns the pause after one more failure, in seconds."""
        settings = self._settings
        self._failures += 1
        length_s = pause_after(self._failures, settings.first_s, settings.most_s, settings.factor)
        return length_s if self._rng is None else length_s * float(self._rng.uniform(0.5, 1.0))

    def reset(self) -> None:
        """Begins anew with the first pause, after a success."""
        self._failures = 0


_GONE: Final = frozenset({"UNAVAILABLE", "CANCELLED"})

_BROKEN: Final = "Internal error from Core"


def is_absent(error: Any) -> bool:
    """Returns whether a call has failed as its daemon is away, being stopped, or has ended it by its own end.

    Another attempt may be answered then, when the daemon is back. CANCELLED is what the end of a server makes of calls
    that are on their way; of a connection that broke before a call had begun gRPC says INTERNAL, in words that no
    daemon has.

    Args:
        error: that gRPC has raised; who cancels a call of his own gets no such error.
    """
    code = error.code().name
    return code in _GONE or (code == "INTERNAL" and (error.details() or "").startswith(_BROKEN))
