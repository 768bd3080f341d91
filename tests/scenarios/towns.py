"""Results to report on: one worked out by hand, and random ones of any size.

Schedules are built directly, without a simulator: a report must be right for every schedule,
also for one that no queue discipline here would make.
"""

from collections.abc import Sequence

import numpy as np

from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo, Schedule
from scenarios.run.results import ScenarioResult, evaluate

HOSTILE = ("<b>Bremen</b> & Köln", "$x_1$", "[red]Riga[/red]", "A" * 60, "但泽", "\"Visby'")
"""Names that are markup, formulas, too long, or in a script the figures' font lacks."""


def schedule_of(
    machines: Sequence[tuple[str, int]],
    jobs: JobTable,
    start_time: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]],
    submitted_to: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]],
    executed_on: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Schedule:
    """Returns a schedule of jobs with these starts and places."""
    start = np.asarray(start_time, np.float64)
    return Schedule(
        jobs=jobs,
        start_time=start,
        end_time=start + jobs.run_time,
        machines=tuple(MachineInfo(name, processors) for name, processors in machines),
        submitted_to=np.asarray(submitted_to, np.int16),
        executed_on=np.asarray(executed_on, np.int16),
        log_job_id=np.asarray(jobs.job_id),
    )


def two_towns_schedules() -> tuple[Schedule, Schedule]:
    """Returns a federated schedule and the one without exchange, of four jobs.

    Lübeck has 10 processors, Wismar 20. Alone, each serves its two jobs one after the other.
    Federated, Lübeck gives its second job to Wismar, and Wismar its second one to Lübeck.
    """
    machines = [("Lübeck", 10), ("Wismar", 20)]
    jobs = JobTable.from_columns(
        submit_time=[0, 0, 10, 20], processors=[10, 10, 20, 5], run_time=[100, 100, 50, 40]
    )
    home = [0, 0, 1, 1]
    alone = schedule_of(machines, jobs, [0, 100, 10, 60], home, home)
    federated = schedule_of(machines, jobs, [0, 0, 100, 100], home, [0, 1, 1, 0])
    return federated, alone


def two_towns(elapsed_s: float = 0.25) -> ScenarioResult:
    """Returns the result of `two_towns_schedules`."""
    federated, alone = two_towns_schedules()
    return evaluate(
        name="two-towns",
        title="Two towns",
        description="Four jobs, worked out by hand.",
        seed=3,
        disciplines=["fcfs", "easy"],
        schedule=federated,
        schedule_alone=alone,
        workload_notes=[[("run time 0 s", 7, "dropped")], []],
        elapsed_s=elapsed_s,
        acknowledgements=["With thanks to the towns."],
    )


def random_towns(
    names: Sequence[str],
    jobs: int,
    *,
    seed: int = 0,
    away: float = 0.2,
    span_s: float = 90 * 86400.0,
    title: str = "Random towns",
    description: str = "",
) -> ScenarioResult:
    """Returns a result in which jobs start at random moments at random places.

    Args:
        names: of the sites.
        jobs: number of jobs of all sites.
        seed: of the random stream.
        away: share of the jobs that run at a random site.
        span_s: seconds over which jobs are submitted.
        title: of the scenario.
        description: of the scenario.
    """
    rng = np.random.default_rng(seed)
    machines = [(name, 64 * (index + 1)) for index, name in enumerate(names)]
    table = JobTable.from_columns(
        submit_time=np.sort(rng.uniform(0, span_s, jobs)).round(),
        processors=rng.integers(1, 65, jobs),
        run_time=np.exp(rng.normal(7, 2, jobs)).clip(1, 2e5),
    )
    home = rng.integers(0, len(names), jobs)
    place = np.where(rng.random(jobs) < away, rng.integers(0, len(names), jobs), home)
    waits = rng.exponential(20000, jobs) * (rng.random(jobs) < 0.6)
    alone = schedule_of(machines, table, table.submit_time + waits, home, home)
    sooner = waits * rng.uniform(0, 1.3, jobs)
    federated = schedule_of(machines, table, table.submit_time + sooner, home, place)
    return evaluate(
        name="random-towns",
        title=title,
        description=description,
        seed=seed,
        disciplines=["easy"] * len(names),
        schedule=federated,
        schedule_alone=alone,
        elapsed_s=1.5,
    )
