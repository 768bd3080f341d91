"""What a machine draws from the grid by its load, what it pays for that, and jobs that wait for cheap hours."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from lrms_sim.electricity.series import Series
from lrms_sim.kernel._deferred import DeferredScheduler
from lrms_sim.scheduling.disciplines import Batched
from lrms_sim.workload.jobs import FloatArray

J_PER_KWH: Final = 3.6e6
J_PER_MWH: Final = 3.6e9


@dataclass(frozen=True, slots=True)
class Power:
    """What nodes of one kind draw.

    Where jobs are on nodes is not known here: busy processors fill as few nodes as can hold them.

    Attributes:
        idle_watts: of a node that is on and has nothing to do.
        busy_watts: of a node all of whose processors are busy; in between in proportion.
        processors_per_node: 1 where watts are meant per processor.
        power_off: whether nodes without a job are off. They are at once, and on again at once.
        off_watts: of a node that is off.

    Raises:
        ValueError: a number is out of its bounds.
    """

    idle_watts: float = 100.0
    busy_watts: float = 200.0
    processors_per_node: int = 1
    power_off: bool = False
    off_watts: float = 0.0

    def __post_init__(self) -> None:
        watts = (0.0, self.off_watts, self.idle_watts, self.busy_watts)
        if not all(low <= high < math.inf for low, high in pairwise(watts)):
            raise ValueError(
                f"a node draws {self.off_watts} W off, {self.idle_watts} W idle and {self.busy_watts} W busy; 0 or "
                "more are needed, in ascending order"
            )
        if self.processors_per_node < 1:
            raise ValueError(
                f"{self.processors_per_node} processors per node; at least 1 is needed"
            )

    @property
    def added_watts(self) -> float:
        """What a busy processor draws beyond an idle one on a node that is on."""
        return (self.busy_watts - self.idle_watts) / self.processors_per_node

    @property
    def moved_watts(self) -> float:
        """What a site saves for each processor whose work it gives away: with nodes off, all that it draws."""
        least = self.off_watts if self.power_off else self.idle_watts
        return (self.busy_watts - least) / self.processors_per_node

    def watts(self, busy: npt.ArrayLike, processors: int) -> FloatArray:
        """Returns what a machine draws, by its number of busy processors, watts."""
        count = np.asarray(busy, np.float64)
        nodes = math.ceil(processors / self.processors_per_node)
        on = np.ceil(count / self.processors_per_node) if self.power_off else np.float64(nodes)
        drawn: FloatArray = (
            self.added_watts * count + self.idle_watts * on + self.off_watts * (nodes - on)
        )
        return drawn


@dataclass(frozen=True, eq=False)
class Supply:
    """The electricity of a site.

    Attributes:
        price: per MWh, on the clock of the replay.
        carbon: grams of carbon dioxide per kWh; `None` where not known.
        power: what its machine draws.
    """

    price: Series
    carbon: Series | None = None
    power: Power = Power()

    @property
    def tariff(self) -> Series:
        """What it costs to have one processor busy rather than not, a second."""
        return self.price.scaled(self.power.moved_watts / J_PER_MWH)

    @property
    def emission(self) -> Series | None:
        """The grams of carbon dioxide that come with one busy processor, a second."""
        if self.carbon is None:
            return None
        return self.carbon.scaled(self.power.moved_watts / J_PER_KWH)


@dataclass(frozen=True, slots=True)
class Consumption:
    """What a machine has used over an interval.

    Attributes:
        energy_kwh: electricity.
        cost: of it, in the currency of the price.
        carbon_kg: carbon dioxide; nan where the carbon intensity is not known.
    """

    energy_kwh: float
    cost: float
    carbon_kg: float


def consumption(
    supply: Supply,
    processors: int,
    steps: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    span: tuple[float, float],
) -> Consumption:
    """Returns what a machine uses from one moment to another.

    Args:
        supply: of the machine.
        processors: of the machine.
        steps: moments, and the processors that are busy from each on; none before the first.
        span: begin and end, seconds.

    Raises:
        ValueError: the end is before the beginning, or a machine is busier than it can be.
    """
    begin, end = span
    if end < begin:
        raise ValueError(f"the interval ends at {end} s, before it begins at {begin} s")
    moments, busy = steps
    if len(busy) and int(busy.max()) > processors:
        raise ValueError(f"{int(busy.max())} processors are busy on a machine of {processors}")
    edges = np.clip(np.concatenate([[begin], moments, [end]]), begin, end)
    watts = supply.power.watts(np.concatenate([[0], busy]), processors)

    def total(series: Series, unit: float) -> float:
        return float(np.sum(watts * series.integral(edges[:-1], edges[1:]))) / unit

    return Consumption(
        energy_kwh=float(np.sum(watts * np.diff(edges))) / J_PER_KWH,
        cost=total(supply.price, J_PER_MWH),
        carbon_kg=math.nan if supply.carbon is None else total(supply.carbon, 1e3 * J_PER_KWH),
    )


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
