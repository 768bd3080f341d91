"""Generates heterogeneous pools of resources for planning and trials.

Prices per second grow faster than performance, as with rented machines; some resources are cheaper at
night, some available only outside office hours.
"""

import math

import numpy as np

from broker.model.resources import DAY, Calendar, PriceRule, Resource, WeeklyWindow

RESOURCES_MAX = 100_000
TOWNS = (
    "luebeck",
    "hamburg",
    "bremen",
    "rostock",
    "stralsund",
    "wismar",
    "danzig",
    "riga",
    "reval",
    "visby",
    "bergen",
    "novgorod",
    "london",
    "bruges",
    "cologne",
    "dortmund",
    "brunswick",
    "magdeburg",
    "stettin",
    "thorn",
)
"""Names of resources; from the twenty-first on with a number."""

_CAPACITIES = (1, 1, 2, 4, 8, 16)
_OFFSETS = (0.0, 3600.0, 7200.0)
_EVENING, _MORNING = 19 * 3600.0, 7 * 3600.0
_WORKING_DAYS = (0, 1, 2, 3, 4)
_WEEKEND = (5, 6)


def generate_pool(count: int, rng: np.random.Generator) -> tuple[Resource, ...]:
    """Returns `count` (1 to 100,000) resources that differ in speed, price, size and hours.

    Performance is from 0.5 to 4, capacity from 1 to 16, the price about 0.04 to 2 per hour and unit.
    Every third resource is cheaper at night and on weekends; every fifth is open only then. The first is
    always open, so that every task has a place.

    Raises:
        ValueError: the count is out of bounds.
    """
    if not 1 <= count <= RESOURCES_MAX:
        raise ValueError(f"a pool of {count} resources; from 1 to {RESOURCES_MAX}")
    return tuple(_resource(index, rng) for index in range(count))


def _resource(index: int, rng: np.random.Generator) -> Resource:
    performance = round(float(2 ** rng.uniform(-1.0, 2.0)), 2)
    by_hour = round(0.12 * performance**1.4 * float(rng.uniform(0.75, 1.35)), 2)
    capacity = int(_CAPACITIES[rng.integers(len(_CAPACITIES))])
    offset = float(_OFFSETS[rng.integers(len(_OFFSETS))])
    round_, town = divmod(index, len(TOWNS))
    nights = (
        WeeklyWindow(0.0, _MORNING, _WORKING_DAYS),
        WeeklyWindow(_EVENING, DAY, _WORKING_DAYS),
        WeeklyWindow(0.0, DAY, _WEEKEND),
    )
    cheap = math.floor(60 * by_hour) / 100
    return Resource(
        name=f"{TOWNS[town]}-{round_ + 1}" if round_ else TOWNS[town],
        performance=performance,
        price=by_hour / 3600,
        price_rules=tuple(PriceRule(cheap / 3600, each) for each in nights)
        if index % 3 == 1
        else (),
        calendar=Calendar(nights) if index % 5 == 4 else Calendar(),
        capacity=capacity,
        utc_offset=offset,
    )
