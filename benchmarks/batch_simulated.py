"""What a simulation says of the part of a day that `batch_trace` runs, also with processors that stand idle between jobs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.batch_starts import Day, gains
from grms.federation.federation import Site, replay, replay_alone
from grms.policy.files import load_rule_base
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import TransferPolicy
from lrms_sim.scheduling.disciplines import Easy, Fcfs
from lrms_sim.workload.jobs import JobTable, window_by_days
from scenarios.run.workloads import load_workload
from scenarios.spec.files import load_spec

LIBRARY: Final = Path(__file__).parents[1] / "scenarios/library"
ALONE: Final = "alone"
POLICIES: Final[Mapping[str, Mapping[str, str]]] = {
    ALONE: {},
    "awf": dict.fromkeys(("KTH", "CTC"), "awf"),
    "start-now": dict.fromkeys(("KTH", "CTC"), "start-now"),
    "fair-exchange": dict.fromkeys(("KTH", "CTC"), "fair-exchange"),
    "learned": {
        "KTH": str(LIBRARY / "rule-bases/fcfs-egoistic/kth-for-ctc.json"),
        "CTC": str(LIBRARY / "rule-bases/fcfs-egoistic/ctc-for-kth.json"),
    },
}
"""Policies of each site for the other."""

SLACK_S: Final = 40.0
"""Extra time before a job is ended: recorded jobs ended at their limit, and Slurm's limits are inexact."""

HELD_LONGER_S: Final = 10.0
"""Upper bound of the idle time of processors between two jobs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run.

    Attributes:
        factor: divisor of all times.
        first_day: start of the window of submissions, days of both logs. Chosen by simulation: both sites
            have a queue, at most 51 jobs run at once, and arrivals a second later change no gain by more than a
            few points.
        scheduler: `builtin` or `backfill`.
    """

    factor: float = 240.0
    first_day: float = 255.0
    days: float = 0.5
    scheduler: str = "builtin"


def pressed(jobs: JobTable, factor: float, *, whole_minutes: bool) -> JobTable:
    """Returns a workload with all times divided by `factor`; limits in whole minutes are rounded up, as Slurm does."""
    requested = np.maximum(jobs.requested_time / factor, jobs.run_time / factor + SLACK_S)
    if whole_minutes:
        requested = np.maximum(1.0, np.ceil(requested / 60.0)) * 60.0
    return JobTable.from_columns(
        submit_time=jobs.submit_time / factor,
        processors=jobs.processors,
        run_time=jobs.run_time / factor,
        requested_time=requested,
    )


def sites_of(plan: Plan, traces: Path) -> list[Site]:
    """Returns both sites with the day's jobs, as a scenario of the library has them."""
    spec = load_spec(LIBRARY / "kth-ctc-6.toml").resolved()
    place = {**os.environ, "HANSE_TRACES": str(traces)}
    backfills = plan.scheduler == "backfill"
    found = []
    for site in spec.sites:
        jobs = load_workload(site, spec.clock.shift, place).jobs
        day = window_by_days(jobs, plan.first_day, plan.first_day + plan.days, shift="window")
        own = pressed(day, plan.factor, whole_minutes=backfills)
        found.append(Site(site.name, site.processors, own, Easy() if backfills else Fcfs()))
    return found


def policy_of(word: str) -> TransferPolicy:
    """Returns a policy by its word or its file."""
    return load_rule_base(word) if word.endswith(".json") else TRANSFER_POLICIES[word]


def simulated(policy: str, sites: Sequence[Site]) -> Day:
    """Returns what the simulation makes of the day with a policy."""
    words = POLICIES[policy]
    if not words:
        return Day.of_schedule(replay_alone(sites))
    first, second = sites
    return Day.of_schedule(
        replay(
            [
                replace(one, transfer_policies={other.name: policy_of(words[one.name])})
                for one, other in ((first, second), (second, first))
            ]
        )
    )


def held_longer(sites: Sequence[Site], seconds: float) -> list[Site]:
    """Returns sites whose jobs hold their processors so much longer: until the next job has them."""
    return [
        replace(
            site,
            jobs=JobTable.from_columns(
                submit_time=site.jobs.submit_time,
                processors=site.jobs.processors,
                run_time=site.jobs.run_time + seconds,
                requested_time=site.jobs.requested_time + seconds,
            ),
        )
        for site in sites
    ]


def simulated_idling(policy: str, sites: Sequence[Site], seconds: float) -> Day:
    """Returns what the simulation makes of the day where processors stand idle so long between two jobs."""
    weight = simulated(ALONE, sites).weight
    return replace(simulated(policy, held_longer(sites, seconds)), weight=weight)


def idle_s(sites: Sequence[Site], awrt_s: float) -> float:
    """Returns how long processors are idle between two jobs, from a run without exchange with AWRT `awrt_s`."""
    low, high = 0.0, HELD_LONGER_S
    while high - low > 0.005:
        middle_s = (low + high) / 2
        if simulated_idling(ALONE, sites, middle_s).awrt()["all"] < awrt_s:
            low = middle_s
        else:
            high = middle_s
    return round(low, 2)


def add_idling(figures: dict[str, Any], sites: Sequence[Site]) -> None:
    """Adds what a simulation says in which processors stand idle between two jobs, as long as in each run alone."""
    policies = figures["policies"]
    alone = [run["awrt_s"]["all"] / figures["factor"] for run in policies[ALONE]["runs"]]
    figures["idle_s"] = seconds = [idle_s(sites, awrt_s) for awrt_s in alone]
    for policy, entry in policies.items():
        if policy == ALONE:
            continue
        days = [simulated_idling(policy, sites, each) for each in seconds]
        bases = [simulated_idling(ALONE, sites, each) for each in seconds]
        found = [gains(day, base) for day, base in zip(days, bases, strict=True)]
        entry["delegated_simulated_idling"] = [int(np.sum(day.place != day.home)) for day in days]
        entry["gain_simulated_idling_percent"] = [
            {name: round(value, 2) for name, value in one.items()} for one in found
        ]
        pairs = list(zip(entry["gain_percent"], found, strict=True))
        entry["most_points_apart_idling"] = {
            name: round(max(abs(real[name] - one[name]) for real, one in pairs), 2)
            for name in found[0]
        }
