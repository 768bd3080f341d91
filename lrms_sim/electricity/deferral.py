"""A queue discipline that lets jobs wait for cheap hours, by a bounded time."""

import math
from dataclasses import dataclass
from typing import Final

from lrms_sim.electricity.series import Series
from lrms_sim.kernel._deferred import DeferredScheduler
from lrms_sim.scheduling.disciplines import Batched

NAME: Final = "easy-deferred"
DELAY_MAX_S: Final = 12 * 3600.0
SAVING: Final = 0.05
LOOK_AHEAD_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class DeferralRule:
    """When a delay is worth it.

    Attributes:
        delay_max: a job is held back for so many seconds after its submission at most; 0 or more.
        saving: part of what the job would cost at once that a delay has to save, 0 to 1.
        look_ahead: of a longer request only so many seconds count, as prices are known that far; more than 0.

    Raises:
        ValueError: a number is out of its bounds.
    """

    delay_max: float = DELAY_MAX_S
    saving: float = SAVING
    look_ahead: float = LOOK_AHEAD_S

    def __post_init__(self) -> None:
        if not 0 <= self.delay_max < math.inf:
            raise ValueError(f"delay_max is {self.delay_max} s; it must be 0 or more")
        if not 0 <= self.saving <= 1:
            raise ValueError(f"saving is {self.saving}; it must be from 0 to 1")
        if not 0 < self.look_ahead < math.inf:
            raise ValueError(f"look_ahead is {self.look_ahead} s; it must be more than 0")


@dataclass(frozen=True)
class EasyDeferred(Batched):
    """EASY in which a job takes part from its planned start on.

    That is the moment within `rule.delay_max` seconds of its submission, the earliest of equal ones, at which
    its request costs least; the submission itself where a delay would not save `rule.saving` of the cost.
    Afterwards it waits in its place by order of arrival.

    Attributes:
        rate: what a processor costs over time, on the clock of the jobs, in any unit.
    """

    rate: Series
    rule: DeferralRule = DeferralRule()

    @property
    def name(self) -> str:
        """The word for it in reports."""
        return NAME

    def scheduler(self) -> DeferredScheduler:
        """Returns a new compiled scheduler."""
        rate, rule = self.rate, self.rule
        return DeferredScheduler(
            rate.offset,
            rate.value,
            rate.before,
            rate.first,
            rate.period,
            rate.scale,
            delay_max=rule.delay_max,
            saving=rule.saving,
            look_ahead=rule.look_ahead,
        )
