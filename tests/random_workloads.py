"""Random workloads and federations from a generator: many of them in little time.

Hypothesis shrinks what it finds to a few jobs, but takes milliseconds for each example. What is
drawn here costs next to nothing, so that thousands of somewhat larger cases can be compared; a
failure names the seed that made it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lrms_sim.workload.jobs import JobTable
from tests.oracles.constraints import PlainConstraints
from tests.oracles.federation import PlainConstrained, PlainPolicy, PlainRule, PlainSite
from tests.strategies import DISCIPLINES, UNITS

NAMES = ("a", "b", "c", "d")
"""Names of sites, in site order."""


def random_jobs(
    rng: np.random.Generator, jobs_max: int, processors: int, units: Sequence[float] = UNITS
) -> JobTable:
    """Returns jobs that load a machine from lightly to far beyond its capacity.

    Submissions, run times and surpluses of requests are small whole numbers of a unit, so that
    many of them coincide.
    """
    count = int(rng.integers(1, jobs_max + 1))
    widths = rng.integers(1, processors + 1, count)
    round_ones = rng.random(count) < 0.4
    widths[round_ones] = np.minimum(2 ** rng.integers(0, 7, count), processors)[round_ones]
    run = rng.integers(1, int(rng.choice((4, 20, 60))), count).astype(float)
    surplus = rng.choice((0, 0, 1, 5, 50), count) * (rng.random(count) < rng.random())
    span = float(np.sum(widths * run)) / processors * rng.uniform(0.1, 1.5)
    unit = float(rng.choice(units))
    return JobTable.from_columns(
        submit_time=np.floor(rng.random(count) * span) * unit,
        processors=widths,
        run_time=run * unit,
        requested_time=(run + surplus) * unit,
    )


def backlog(rng: np.random.Generator, count: int, processors: int) -> JobTable:
    """Returns jobs that come nearly at once, long stretches of which are too wide to pass.

    A queue that is searched by blocks has whole blocks to skip, and now and then a job to find
    behind them.
    """
    widths = rng.integers(processors // 3, processors + 1, count)
    narrow = rng.random(count) < 0.02
    widths[narrow] = rng.integers(1, 4, count)[narrow]
    run = rng.integers(1, 20, count).astype(float)
    return JobTable.from_columns(
        submit_time=rng.integers(0, 30, count),
        processors=widths,
        run_time=run,
        requested_time=run + rng.choice((0, 1, 5, 50), count),
    )


def random_policy(rng: np.random.Generator) -> PlainPolicy:
    """Returns AWF or a rule base about as often, now and then a site that keeps to itself."""
    draw = rng.random()
    if draw < 0.1:
        return "keep"
    if draw < 0.5:
        return "awf"
    return tuple(
        PlainRule(
            nwp_gamma=float(rng.uniform(0, 4)),
            nwp_sigma=float(rng.uniform(0.1, 4)),
            njp_gamma=float(rng.uniform(0, 100)),
            njp_sigma=float(rng.uniform(1, 100)),
            accept=int(rng.choice((-1, 1))),
        )
        for _ in range(int(rng.integers(1, 8)))
    )


def random_sites(rng: np.random.Generator, jobs_max: int) -> list[PlainSite]:
    """Returns two to four sites of different sizes, loads and disciplines that ask by AWRT."""
    names = NAMES[: int(rng.integers(2, len(NAMES) + 1))]
    sites = []
    for name in names:
        processors = int(rng.integers(1, 40))
        sites.append(
            PlainSite(
                name=name,
                processors=processors,
                discipline=str(rng.choice(DISCIPLINES)),
                jobs=random_jobs(rng, jobs_max, processors),
                policies={other: random_policy(rng) for other in names if other != name},
            )
        )
    return sites


def random_constraints(rng: np.random.Generator, unit: float) -> PlainConstraints:
    """Returns constraints so tight that every rule is felt, each of them in force now and then."""

    def perhaps(value: float) -> float:
        return float(value) if rng.random() < 0.5 else math.inf

    return PlainConstraints(
        start_now=bool(rng.random() < 0.8),
        guest_length=perhaps(rng.choice((0.5, 1, 2))),
        balance=perhaps(unit * rng.choice((0, 3, 20))),
        balance_weight=float(rng.choice((0, 1, 2))),
        promise=(
            float(unit * rng.choice((0, 2, 10))),
            float(unit * rng.choice((0, 5, 50))),
            float(unit * rng.choice((1, 10))),
            int(rng.integers(0, 3)),
        )
        if rng.random() < 0.7
        else None,
    )


def constrained_sites(rng: np.random.Generator, jobs_max: int, *, rounds: bool) -> list[PlainSite]:
    """Returns sites of which most keep to constraints, beside some that accept and do not start.

    All times are whole seconds: what sites sum up for their constraints is exact in any order.
    """
    unit = float(rng.choice((1.0, 60.0)))

    def policy(discipline: str) -> PlainPolicy:
        # Guests that come out of order and wait are not for every discipline.
        in_order = rounds and discipline == "conservative"
        draw = rng.random()
        if draw < 0.2 and not in_order:
            return random_policy(rng)
        inner = "agree" if draw < 0.7 else random_policy(rng)
        assert not isinstance(inner, PlainConstrained)
        rails = random_constraints(rng, unit)
        return PlainConstrained(replace(rails, start_now=rails.start_now or in_order), inner)

    return [
        replace(
            site,
            jobs=random_jobs(rng, jobs_max, site.processors, (unit,)),
            policies={other: policy(site.discipline) for other in site.policies},
            reoffer=unit * int(rng.integers(1, 12)) if rounds and rng.random() < 0.8 else None,
        )
        for site in random_sites(rng, 1)
    ]
