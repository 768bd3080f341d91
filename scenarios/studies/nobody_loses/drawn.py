"""Federations by chance: windows of logs and synthetic workloads, sizes and disciplines, all by a seed.

A site's name says what it is: `kth@120+165` are the 165 days of a log from day 120 on, `lublin64x80s7+165` is a
workload after Lublin and Feitelson for 64 processors with a load of 80 % and seed 7.
"""

import re
from typing import Final

import numpy as np

from lrms_sim.workload.jobs import SECONDS_PER_DAY, JobTable, window_by_days
from lrms_sim.workload.lublin import generate
from scenarios.spec.traces import TRACES

HALF_YEAR: Final = 165
"""Days of a federation."""

MONTH: Final = 30
"""Days of a short one."""

DAYS: Final = {"kth": 339, "ctc": 339, "sdsc05": 390, "sdsc00": 730}
"""Days that a log has at least."""

SITES: Final = (2, 6)
SIZES: Final = (32, 64, 128, 256, 512)
LOADS: Final = (50, 95)
"""Of synthetic workloads, percent: at least and at most."""

SYNTHETIC: Final = 1 / 3
"""Share of sites that have one."""

_WINDOW: Final = re.compile(r"(\w+)@(\d+)\+(\d+)")
_LUBLIN: Final = re.compile(r"lublin(\d+)x(\d+)s(\d+)\+(\d+)")


def is_drawn(name: str) -> bool:
    """Returns whether a site of that name has been drawn."""
    return "+" in name


def drawn_federation(seed: int, number: int, days: int = HALF_YEAR) -> tuple[tuple[str, ...], str]:
    """Returns the sites of a federation by their names, and their disciplines with commas between."""
    rng = np.random.default_rng((seed, number) if days == HALF_YEAR else (seed, number, days))
    sites: dict[str, str] = {}
    logs = list(rng.permutation(list(DAYS)))
    for _ in range(int(rng.integers(SITES[0], SITES[1] + 1))):
        synthetic = not logs or rng.random() < SYNTHETIC
        if synthetic:
            size, load = int(rng.choice(SIZES)), int(rng.integers(LOADS[0], LOADS[1] + 1))
            name = f"lublin{size}x{load}s{int(rng.integers(10**6))}+{days}"
        else:
            log = str(logs.pop())
            name = f"{log}@{int(rng.integers(DAYS[log] - days))}+{days}"
        sites[name] = str(rng.choice(("fcfs", "easy")))
    return tuple(sites), ",".join(sites.values())


def processors_of(name: str) -> int:
    """Returns the size of a site of a case."""
    if found := _LUBLIN.fullmatch(name):
        return int(found[1])
    return TRACES[re.split("[-@]", name)[0]].processors


def log_of(name: str) -> str:
    """Returns the key of the log that a site's jobs are from; empty for a synthetic workload."""
    return "" if _LUBLIN.fullmatch(name) else re.split("[-@]", name)[0]


def drawn_jobs(name: str, log: JobTable | None) -> JobTable:
    """Returns the jobs of a site that was drawn, on a clock that begins with its window.

    `log` has all jobs of `log_of(name)`; `None` for a synthetic workload.
    """
    if found := _LUBLIN.fullmatch(name):
        size, load, seed, days = map(int, found.groups())
        return generate(size, seed=seed, duration=days * SECONDS_PER_DAY, load=load / 100)
    window = _WINDOW.fullmatch(name)
    assert window is not None, "only a drawn site is asked for"
    assert log is not None, "a window is one of a log"
    first, length = int(window[2]), int(window[3])
    return window_by_days(log, first, first + length, shift="window")
