"""Synthetic prices and carbon intensities by a stated model: nothing here is measured.

Hour by hour of a local clock, a value is

    mean · (1 + swing · day(h) − weekend · [Saturday or Sunday]) + noise

where day(h) is a fixed shape of mean 0 with a peak in the morning, a greater one in the evening and a dip
around noon, as solar power makes it, and noise is autoregressive of order 1 with mean 0. A price may be
negative, a carbon intensity is at least 0. The numbers are round ones, chosen to be plausible; they are
fitted to no market.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from lrms_sim.electricity.series import Series
from lrms_sim.scheduling.situations import zone_named

HOUR_S: Final = 3600.0
FIRST_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""A Monday, second 0 of synthetic series unless told otherwise."""

_SHAPE = np.array(
    [
        *(-0.35, -0.45, -0.5, -0.5, -0.4, -0.15),  # 0 to 5 h
        *(0.25, 0.6, 0.65, 0.35, 0.05, -0.2),  # 6 to 11 h
        *(-0.35, -0.4, -0.3, -0.1, 0.2, 0.6),  # 12 to 17 h
        *(0.9, 0.95, 0.65, 0.3, 0.0, -0.2),  # 18 to 23 h
    ]
)
DAY_SHAPE: Final = _SHAPE - _SHAPE.mean()
"""Shape (24,), by local hour; mean 0."""


@dataclass(frozen=True, slots=True)
class SeriesModel:
    """A model of a price or a carbon intensity.

    Attributes:
        mean: long-term mean of weekdays, in the unit of the series.
        swing: of the day, as a share of the mean.
        weekend: by which share of the mean weekends are lower.
        noise: standard deviation of the noise, as a share of the mean.
        memory: share of the noise that is left after an hour, 0 to less than 1.
        least: lower bound of values.

    Raises:
        ValueError: one of these is not possible.
    """

    mean: float = 60.0
    swing: float = 0.35
    weekend: float = 0.15
    noise: float = 0.35
    memory: float = 0.93
    least: float = -math.inf

    def __post_init__(self) -> None:
        for name in ("swing", "weekend", "noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if not 0 <= self.memory < 1:
            raise ValueError(f"memory is {self.memory}; it must be 0 or more and less than 1")
        if not 0 < self.mean < math.inf:
            raise ValueError(f"mean is {self.mean}; it must be more than 0")

    def series(
        self,
        days: int,
        *,
        seed: int | tuple[int, ...],
        time_zone: str | float = "UTC",
        begin: datetime = FIRST_DAY,
    ) -> Series:
        """Returns so many days of hourly values, second 0 being `begin`.

        Args:
            days: at least 1.
            seed: of the noise.
            time_zone: of the local clock that day and weekend follow, with daylight saving.
            begin: a moment with a time zone, on the hour.
        """
        if days < 1:
            raise ValueError(f"{days} days; at least 1 is needed")
        zone = zone_named(time_zone)
        hours = 24 * days
        local = [(begin + timedelta(hours=hour)).astimezone(zone) for hour in range(hours)]
        day = DAY_SHAPE[[moment.hour for moment in local]]
        weekend = np.array([moment.weekday() >= 5 for moment in local])
        values = self.mean * (
            1 + self.swing * day - self.weekend * weekend + self._noise(hours, seed)
        )
        time = HOUR_S * np.arange(hours, dtype=np.float64)
        return Series(time, np.maximum(values, self.least), HOUR_S * hours)

    def _noise(self, hours: int, seed: int | tuple[int, ...]) -> np.ndarray:
        drawn = np.random.default_rng(seed).standard_normal(hours)
        # The first value has the spread of all others.
        drawn[1:] *= math.sqrt(1 - self.memory**2)
        level = 0.0
        found = np.empty(hours)
        for hour, each in enumerate(drawn.tolist()):
            level = self.memory * level + each
            found[hour] = level
        return self.noise * found


PRICE: Final = SeriesModel()
"""Per MWh, as of a day-ahead market."""

CARBON: Final = SeriesModel(mean=250.0, swing=0.2, weekend=0.08, noise=0.2, memory=0.96, least=0.0)
"""Grams of carbon dioxide per kWh."""
