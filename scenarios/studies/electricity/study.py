"""The study: which policies are replayed, and what is kept of each replay."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from rich.console import Console

from grms.federation.federation import Federation, Site
from grms.federation.sites import CheaperPartners
from grms.policy.constraints import FAIR_EXCHANGE, START_NOW
from grms.policy.transfer import Constrained, TransferPolicy
from lrms_sim.analysis.occupancy import busy_processors
from lrms_sim.electricity.power import (
    Consumption,
    DeferralRule,
    EasyDeferred,
    Power,
    Supply,
    consumption,
)
from lrms_sim.scheduling.disciplines import Discipline, Easy
from lrms_sim.workload.jobs import SECONDS_PER_DAY
from lrms_sim.workload.schedule import Schedule
from scenarios.studies.common.frame import CaseStudy, plain_options, run_cases, threads
from scenarios.studies.electricity.grids import GRIDS, Workloads
from scenarios.studies.electricity.options import StudyOptions

SPREADS: Final = (0.0, 0.25, 0.5)
"""Of mean prices between the sites, shares of the middle one."""

SPREAD: Final = 0.25
"""That of all figures but those by spread."""

IDLE_SHARES: Final = (0.0, 0.25, 0.5, 0.75)
"""Idle over busy power."""

IDLE: Final = 0.5
BUSY_WATTS: Final = 200.0


@dataclass(frozen=True, slots=True)
class Policy:
    """What all sites of a replay do.

    Attributes:
        words: what it does, for people.
        exchange: within which constraints jobs are exchanged; `None` for no exchange.
        compares: by what partners are put in order: `cost`, `carbon`, or nothing.
        only: whether other than cheaper partners are left out.
        delay_hours: how long jobs wait for cheap hours at most.
    """

    words: str
    exchange: TransferPolicy | None = None
    compares: str = ""
    only: bool = False
    delay_hours: float = 0.0


_FAIR: Final = Constrained(FAIR_EXCHANGE)

ALONE: Final = "alone"
FAIR: Final = "fair exchange"
CHEAPER: Final = "cheaper first"
ONLY: Final = "cheaper only"
FREELY: Final = "cheaper first, no balance"
UNBOUND: Final = "cheaper only, no balance"
GREENER: Final = "greener first"
DEFERRED: Final = "deferred 12 h"
BOTH: Final = "cheaper only, deferred 12 h"

POLICIES: Final = {
    ALONE: Policy("EASY at every site, no exchange"),
    "deferred 4 h": Policy("no exchange; jobs wait up to 4 h for cheap hours", delay_hours=4),
    DEFERRED: Policy("the same, up to 12 h", delay_hours=12),
    "deferred 24 h": Policy("the same, up to 24 h", delay_hours=24),
    FAIR: Policy("what would wait is offered; guests must start at once, be short, and be in balance", _FAIR),
    CHEAPER: Policy(
        "fair exchange, and a job that costs 5 % less at a partner is offered there first, also if it would start at home",
        _FAIR,
        "cost",
    ),
    ONLY: Policy("the same; partners that are not cheaper are not asked", _FAIR, "cost", only=True),
    FREELY: Policy(
        "cheaper first, where guests must start at once and nothing else", Constrained(START_NOW), "cost"
    ),
    UNBOUND: Policy("the same; partners that are not cheaper are not asked", Constrained(START_NOW), "cost", only=True),
    GREENER: Policy("cheaper first within fair exchange, by grams of carbon dioxide in place of cost", _FAIR, "carbon"),
    BOTH: Policy(
        "cheaper only within fair exchange, and jobs wait up to 12 h for cheap hours where they are", _FAIR, "cost", only=True, delay_hours=12
    ),
}  # fmt: skip
"""By their names, in the order of tables."""

BY_SPREAD: Final = (ALONE, DEFERRED, FAIR, CHEAPER, FREELY, UNBOUND)
"""Those that are replayed with every spread of prices."""


@dataclass(frozen=True, slots=True)
class Case:
    """One replay.

    Attributes:
        part: from 1.
        seed: of prices and carbon intensities.
    """

    grid: str
    part: int
    seed: int
    policy: str
    spread: float

    @property
    def key(self) -> str:
        """A name of its own."""
        return f"{self.grid} {self.part} {self.seed} {self.policy} {self.spread:g}"


Study = CaseStudy[Case]


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every replay of the study once."""
    for grid in dict.fromkeys(options.grids):
        for part in range(1, options.parts + 1):
            for seed in options.seeds:
                for policy in POLICIES:
                    for spread in SPREADS if policy in BY_SPREAD else (SPREAD,):
                        yield Case(grid, part, seed, policy, spread)


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        TraceMissingError: a log is not on this machine.
        WorkloadError: a part has a site without jobs.
        OutputError: the file of runs cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    workloads = Workloads(options.days)
    every = {f"{options.days} {case.key}": case for case in cases(options)}

    def run(case: Case) -> dict[str, Any]:
        return run_case(case, workloads)

    known = run_cases(options.folder, every, threads(run, options.workers), console, what="replays")
    return Study(plain_options(options), tuple((case, known[key]) for key, case in every.items()))


def federation_of(case: Case, workloads: Workloads, electricity: list[Supply]) -> Federation:
    """Returns the sites of a case, ready to be replayed."""
    policy = POLICIES[case.policy]
    places = GRIDS[case.grid]
    rule = DeferralRule(3600.0 * policy.delay_hours)
    sites = []
    for place, jobs, supply in zip(
        places, workloads.jobs(case.grid, case.part), electricity, strict=True
    ):
        others = [other.name for other in places if other is not place]
        discipline: Discipline = EasyDeferred(supply.tariff, rule) if policy.delay_hours else Easy()
        sites.append(
            Site(
                place.name,
                place.processors,
                jobs,
                discipline,
                {} if policy.exchange is None else dict.fromkeys(others, policy.exchange),
                tariff=supply.emission if policy.compares == "carbon" else supply.tariff,
                cheaper=CheaperPartners(rule, policy.only) if policy.compares else None,
            )
        )
    return Federation(sites)


def run_case(case: Case, workloads: Workloads) -> dict[str, Any]:
    """Replays a case; returns plain values.

    `cost` and `carbon` (kg) are of all sites together with idle nodes on, for each of `IDLE_SHARES`; `cost_off` and
    `carbon_off` with idle nodes off. `energy` (kWh) is at `IDLE` with idle nodes on, `bills` the cost of each site
    then, and `bills_off` with idle nodes off. `wait`
    and `response` are means of each site's own jobs, seconds; `delay` by how much their mean wait is longer
    than without exchange, and `longer` their mean response. `moved` is the share of work that ran away from home.
    """
    electricity = workloads.supplies(case.grid, case.spread, case.seed)
    schedule = _schedule(case, workloads, electricity)
    alone = workloads.alone(case.grid, case.part)
    # All policies of a part pay for the same time, in which its jobs end.
    end = max(float(alone.end_time.max()) + SECONDS_PER_DAY, float(schedule.end_time.max()))
    work = schedule.jobs.resource_consumption
    away = schedule.executed_on != schedule.submitted_to
    waits, responses = _means(schedule), _means(schedule, response=True)
    found: dict[str, Any] = {
        "jobs": len(schedule),
        "moved": float(work[away].sum() / work.sum()),
        "wait": waits,
        "response": responses,
        "delay": _minus(waits, _means(alone)),
        "longer": _minus(responses, _means(alone, response=True)),
        "cost": [],
        "carbon": [],
    }
    steps = [busy_processors(schedule, number) for number in range(len(electricity))]

    def bills(power: Power) -> list[Consumption]:
        return [
            consumption(replace(supply, power=power), machine.processors, busy, (0.0, end))
            for supply, machine, busy in zip(electricity, schedule.machines, steps, strict=True)
        ]

    for idle in IDLE_SHARES:
        several = bills(Power(idle * BUSY_WATTS, BUSY_WATTS))
        found["cost"].append(sum(bill.cost for bill in several))
        found["carbon"].append(sum(bill.carbon_kg for bill in several))
        if idle == IDLE:
            found["energy"] = sum(bill.energy_kwh for bill in several)
            found["bills"] = [bill.cost for bill in several]
    several = bills(Power(IDLE * BUSY_WATTS, BUSY_WATTS, power_off=True))
    found["cost_off"] = sum(bill.cost for bill in several)
    found["carbon_off"] = sum(bill.carbon_kg for bill in several)
    found["bills_off"] = [bill.cost for bill in several]
    return found


def _schedule(case: Case, workloads: Workloads, electricity: list[Supply]) -> Schedule:
    federation = federation_of(case, workloads, electricity)
    if case.policy in {ALONE, FAIR}:
        # They do not look at prices: one replay serves all of them.
        return workloads.kept((case.grid, case.part, case.policy), federation.replay)
    return federation.replay()


def _means(schedule: Schedule, *, response: bool = False) -> list[float]:
    values = schedule.response_time if response else schedule.wait_time
    own = schedule.submitted_to
    return [float(np.mean(values[own == number])) for number in range(len(schedule.machines))]


def _minus(left: list[float], right: list[float]) -> list[float]:
    return [one - other for one, other in zip(left, right, strict=True)]
