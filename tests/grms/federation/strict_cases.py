"""Federations of strict exchange as plain values, drawn by seed, and what the kernel makes of them."""

import random
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from grms.federation.federation import Federation, Site
from grms.federation.sites import Checkpoints
from grms.policy.constraints import (
    FAIR_EXCHANGE,
    STRICT_EXCHANGE,
    AccountRules,
    ExchangeConstraints,
)
from grms.policy.transfer import Constrained
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable

POLICIES: Final[Mapping[str, Constrained]] = {
    "G": Constrained(STRICT_EXCHANGE),
    "C1": Constrained(ExchangeConstraints(account=AccountRules(guests="run"))),
    "R4": Constrained(FAIR_EXCHANGE),
}
"""Guests that may be sent home, guests that run to their end, and fair exchange."""


def drawn_case(seed: int, *, whole: bool = True) -> dict[str, Any]:
    """Returns a federation by chance; times are whole seconds, or any."""
    rng = random.Random(seed)  # noqa: S311  # federations by chance, no secrets
    sites = [
        {
            "processors": rng.choice((4, 8, 16, 24, 64)),
            "discipline": rng.choice(("fcfs", "easy")),
            "rule": rng.choice(("G", "G", "G", "C1", "R4")),
            "checkpoints_every": rng.randint(0, 3),
            "checkpoint": rng.choice((600, 3600, 7200)),
        }
        for _ in range(rng.randint(2, 4))
    ]
    load = rng.uniform(0.6, 1.3)
    jobs = []
    for home, site in enumerate(sites):
        now = 0.0
        size = int(site["processors"])
        for _ in range(rng.randint(15, 70)):
            width = min(size, 1 << rng.randint(0, 6))
            run = round(rng.lognormvariate(8.0, 1.6)) + 1
            now += rng.expovariate(load * size / (run * width))
            request = run * rng.choice((1, 1, 2, 5)) + rng.choice((0, 60, 3600))
            submit = float(int(now)) if whole else now
            if rng.random() < 0.1:
                submit = now = 900.0 * int(now / 900)
            jobs.append([submit, float(run), float(request), width, home])
    # In order of submission, then by site, then as they came there.
    jobs.sort(key=lambda job: (job[0], job[4]))
    return {"name": f"drawn-{seed}", "sites": sites, "jobs": jobs}


def sites_of(case: Mapping[str, Any]) -> list[Site]:
    """Returns the sites of a case."""
    names = [f"s{number}" for number in range(len(case["sites"]))]
    sites = []
    for number, site in enumerate(case["sites"]):
        own = [job for job in case["jobs"] if job[4] == number]
        table = JobTable.from_columns(
            job_id=list(range(1, len(own) + 1)),
            submit_time=[float(job[0]) for job in own],
            run_time=[float(job[1]) for job in own],
            requested_time=[float(job[2]) for job in own],
            processors=np.array([job[3] for job in own], np.int32),
        )
        checkpoint = None
        if site["checkpoints_every"]:
            checkpoint = Checkpoints(float(site["checkpoint"]), site["checkpoints_every"])
        policy = POLICIES[site["rule"]]
        sites.append(
            Site(
                names[number],
                site["processors"],
                table,
                discipline_by_name(site["discipline"]),
                {name: policy for name in names if name != names[number]},
                reoffer=900.0,
                checkpoint=checkpoint,
            )
        )
    return sites


def outcome(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the kernel makes of a case, in the words of the plain program."""
    exchange = Federation(sites_of(case)).exchange()
    return {
        "end": exchange.schedule.end_time.tolist(),
        "site": exchange.schedule.executed_on.tolist(),
        "offers": sum(exchange.offers),
        "preempted": sum(exchange.preempted),
        "lost": sum(exchange.lost),
    }
