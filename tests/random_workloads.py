"""Random workloads and federations from a generator: many of them in little time.

Hypothesis shrinks what it finds to a few jobs, but takes milliseconds for each example. What is
drawn here costs next to nothing, so that thousands of somewhat larger cases can be compared; a
failure names the seed that made it.
"""

import numpy as np

from lrms_sim.jobs import JobTable
from tests.oracles.federation import PlainPolicy, PlainRule, PlainSite
from tests.strategies import DISCIPLINES, UNITS

NAMES = ("a", "b", "c", "d")
"""Names of sites, in site order."""


def random_jobs(rng: np.random.Generator, jobs_max: int, processors: int) -> JobTable:
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
    unit = float(rng.choice(UNITS))
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
