"""One replay of the study: nine sites or six, what is late between them, and what came of it."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from grms.federation.federation import Federation, Site
from grms.policy.rebalancing import Rebalancing
from grms.policy.registry import TRANSFER_POLICIES
from grms.simulation.delayed import Delays
from grms.simulation.replay import LockStepReplay
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import SECONDS_PER_DAY, JobTable, window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.swf import read_swf
from scenarios.spec.traces import TRACES, require_trace
from scenarios.studies.nobody_loses.federations import gain

LOGS: Final = ("kth", "ctc", "sdsc05")
POLICY: Final = "fair-exchange"
PERIOD: Final = 900.0
"""Of rounds, if any, seconds."""

TEN_DAYS: Final = "ten-days"
HALF_YEAR: Final = "half-year"
WINDOWS: Final = {TEN_DAYS: "Nine sites, ten days", HALF_YEAR: "Six sites, half a year"}

FIRST_DAY: Final = 20
"""From this day on all logs have jobs."""

SPAN_DAYS: Final = {TEN_DAYS: 10, HALF_YEAR: 159}
BLOCKS: Final = 31
"""Spans of ten days in each log."""

FIRST_BLOCKS: Final = (0, 4, 8)
"""Those of the first draw: the days from 20, 60 and 100 on."""

SHIFT_DAYS_MAX: Final = 13
"""Most days by which a half year is shifted in every draw but the first."""

ALL: Final = 0
"""As `asked`: every partner."""


@dataclass(frozen=True, slots=True)
class Case:
    """A replay.

    Attributes:
        window: a key of `WINDOWS`.
        discipline: of all sites, `easy` or `fcfs`.
        rounds: whether waiting jobs are offered again, every quarter of an hour.
        asked: how many partners are asked about a job; `ALL`.
        draw: number of the draw, from 1: which days, whose clock is how far ahead, which answers are late.
        delay: each message takes so long, seconds.
        late: so many of the answers to offers are later, a part.
        extra: by so much, seconds.
        apart: a site's clock is up to so far ahead or behind, seconds.
    """

    window: str
    discipline: str
    rounds: bool
    asked: int
    draw: int
    delay: float = 0.0
    late: float = 0.0
    extra: float = 0.0
    apart: float = 0.0

    @property
    def key(self) -> str:
        """What it is kept under."""
        return json.dumps(asdict(self))

    @property
    def at_once(self) -> bool:
        """Whether messages arrive at once and clocks are equal, as in the kernel's replay."""
        return self.delay == self.late * self.extra == self.apart == 0.0


def blocks(log: str, draw: int) -> tuple[int, ...]:
    """Returns which three spans of ten days of a log a draw has.

    Draws count from 1; the first has `FIRST_BLOCKS`.
    """
    if draw == 1:
        return FIRST_BLOCKS
    chosen = _rng(draw, log).permutation(BLOCKS)[: len(FIRST_BLOCKS)]
    return tuple(sorted(int(block) for block in chosen))


def _rng(draw: int, what: str) -> np.random.Generator:
    return np.random.default_rng((draw, zlib.crc32(what.encode())))


def read_logs() -> dict[str, JobTable]:
    """Returns all usable jobs of the logs; `TraceMissingError` if one is not on this machine."""
    paths = {log: require_trace(log) for log in LOGS}
    return {
        log: prepare(read_swf(path), TRACES[log].processors).jobs for log, path in paths.items()
    }


class Replays:
    """Runs cases. It has all it needs, so that another process can have it."""

    def __init__(self, logs: Mapping[str, JobTable]) -> None:
        self._logs = dict(logs)
        self._alone: dict[tuple[str, str, int], Schedule] = {}

    def __call__(self, case: Case, _bound: float = 0.0) -> dict[str, Any]:
        """Replays a case; returns plain values.

        `gain` is the change of each site's AWRT in percent of alone, positive if shorter; `moved`,
        `offers` and `jobs` are counts.
        """
        sites = self.sites(case)
        schedule, offers = _replayed(sites, case)
        alone = self._alone_of(case, sites)
        return {
            "gain": [
                gain(schedule, alone, schedule.submitted_to == number)
                for number in range(len(sites))
            ],
            "jobs": len(schedule.jobs),
            "moved": int(np.count_nonzero(schedule.submitted_to != schedule.executed_on)),
            "offers": offers,
        }

    def sites(self, case: Case) -> list[Site]:
        """Returns the sites of a case; the time of each begins with its span."""
        workloads = dict(self._workloads(case))
        policy = TRANSFER_POLICIES[POLICY]
        return [
            Site(
                name,
                TRACES[log].processors,
                jobs,
                discipline_by_name(case.discipline),
                {other: policy for other in workloads if other != name},
                partners_asked=case.asked if case.asked != ALL else None,
                reoffer=Rebalancing(PERIOD, "queue") if case.rounds else None,
            )
            for name, (log, jobs) in workloads.items()
        ]

    def _workloads(self, case: Case) -> list[tuple[str, tuple[str, JobTable]]]:
        found = []
        span = SPAN_DAYS[case.window]
        for log in LOGS:
            numbers = blocks(log, case.draw) if case.window == TEN_DAYS else (0, 1)
            for number in numbers:
                first = FIRST_DAY + number * span
                name = f"{log}-{first}"
                jobs = window_by_days(self._logs[log], first, first + span, shift="window")
                if case.window == HALF_YEAR and case.draw > 1:
                    jobs = _shifted(jobs, name, case.draw)
                found.append((name, (log, jobs)))
        return found

    def _alone_of(self, case: Case, sites: list[Site]) -> Schedule:
        key = (case.window, case.discipline, case.draw)
        if key not in self._alone:
            self._alone[key] = Federation(sites).replay_alone()
        return self._alone[key]


def _shifted(jobs: JobTable, name: str, draw: int) -> JobTable:
    # By whole days: the hours at which users work stay.
    columns = jobs.columns()
    days = int(_rng(draw, name).integers(0, SHIFT_DAYS_MAX + 1))
    columns["submit_time"] = columns["submit_time"] + days * SECONDS_PER_DAY
    return JobTable.from_columns(**columns)


def _replayed(sites: list[Site], case: Case) -> tuple[Schedule, int]:
    if case.at_once:
        found = Federation(sites).exchange()
        return found.schedule, sum(found.offers)
    clocks: tuple[float, ...] = ()
    if case.apart:
        drawn = _rng(case.draw, "clocks").uniform(-case.apart, case.apart, len(sites))
        clocks = tuple(drawn.tolist())
    delays = Delays(case.delay, case.late, case.extra, clocks)
    replay = LockStepReplay(sites, delays=delays, rng=_rng(case.draw, "late answers"))
    return replay.run(), replay.network.offers
