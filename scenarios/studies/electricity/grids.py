"""The sites of the study, their jobs, and their synthetic electricity."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, Final, TypeVar

import numpy as np

from grms.federation.federation import Federation, Site
from lrms_sim.electricity.power import Power, Supply
from lrms_sim.electricity.synthetic import CARBON, PRICE
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.jobs import SECONDS_PER_DAY, JobTable, window_by_days
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.swf import read_swf
from scenarios.spec.traces import TRACES, require_trace
from scenarios.util.errors import WorkloadError

_Made = TypeVar("_Made")

LOAD: Final = 0.7
"""Of the models, whose own is no machine's."""

DRAIN_DAYS: Final = 60
"""Series are so many days longer than a part; jobs of its end run meanwhile."""


@dataclass(frozen=True, slots=True)
class Place:
    """A site of a grid."""

    name: str
    processors: int
    time_zone: str


GRIDS: Final = {
    "logs": (
        Place("kth", 100, "Europe/Stockholm"),
        Place("ctc", 430, "America/New_York"),
        Place("sdsc05", 1664, "America/Los_Angeles"),
    ),
    "models": (
        Place("lublin-128", 128, "Europe/Stockholm"),
        Place("lublin-256", 256, "America/New_York"),
        Place("lublin-512", 512, "America/Los_Angeles"),
    ),
}
"""Logs with the places where they were recorded; models with the same."""


def supplies(grid: str, spread: float, seed: int, days: int) -> list[Supply]:
    """Returns the electricity of each site of a grid.

    Mean prices of the sites are (1 − spread), 1 and (1 + spread) times that of the model, and so are carbon
    intensities; `seed` says which site has which, and no site is cheapest and cleanest.
    """
    places = GRIDS[grid]
    found = []
    for number, place in enumerate(places):
        dear = 1 + spread * ((number + seed) % len(places) - 1)
        dirty = 1 + spread * ((number + seed + 1) % len(places) - 1)
        price = replace(PRICE, mean=PRICE.mean * dear)
        carbon = replace(CARBON, mean=CARBON.mean * dirty)
        over = days + DRAIN_DAYS
        found.append(
            Supply(
                price.series(days=over, time_zone=place.time_zone, seed=(seed, number, 0)),
                carbon.series(days=over, time_zone=place.time_zone, seed=(seed, number, 1)),
                Power(),
            )
        )
    return found


class Workloads:
    """The jobs of every part of the grids, and their electricity, each read or drawn when first asked for.

    Raises:
        TraceMissingError: a log is not on this machine.
        WorkloadError: a part has a site without jobs.
    """

    def __init__(self, days: int) -> None:
        self._days = days
        self._made: dict[object, Any] = {}
        self._making = RLock()

    def kept(self, key: object, make: Callable[[], _Made]) -> _Made:
        """Returns what was made under a key, or makes it."""
        with self._making:
            if key not in self._made:
                self._made[key] = make()
            found: _Made = self._made[key]
            return found

    def supplies(self, grid: str, spread: float, seed: int) -> list[Supply]:
        """Returns the electricity of each site; see `supplies`."""
        return self.kept(
            ("supplies", grid, spread, seed), lambda: supplies(grid, spread, seed, self._days)
        )

    def jobs(self, grid: str, part: int) -> list[JobTable]:
        """Returns the jobs of each site in a part, counted from 1; it begins at 0 s."""
        return self.kept(
            ("jobs", grid, part), lambda: [self._of(grid, place, part) for place in GRIDS[grid]]
        )

    def alone(self, grid: str, part: int) -> Schedule:
        """Returns the schedule of a part without exchange, under EASY."""
        several = zip(GRIDS[grid], self.jobs(grid, part), strict=True)
        sites = [Site(place.name, place.processors, jobs, Easy()) for place, jobs in several]
        return self.kept(("alone", grid, part), lambda: Federation(sites).replay_alone())

    def _of(self, grid: str, place: Place, part: int) -> JobTable:
        span = self._days * SECONDS_PER_DAY
        if grid == "models":
            rng = np.random.default_rng((part, place.processors))
            return generate(place.processors, seed=rng, duration=span, load=LOAD)
        first = (part - 1) * self._days
        log = self.kept(("log", place.name), lambda: _read(place.name))
        jobs = window_by_days(log, first, first + self._days, shift="window")
        if not len(jobs):
            raise WorkloadError(
                f"{place.name} has no job from day {first} to {first + self._days}; ask for fewer --parts or --days"
            )
        return jobs


def _read(name: str) -> JobTable:
    return prepare(read_swf(require_trace(name)), TRACES[name].processors).jobs
