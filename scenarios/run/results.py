"""What a scenario's run amounts to: the figures of every site, alone and federated.

Everything a report shows is computed here once, from two schedules of the same jobs: one in
which every site works alone, one in which the sites exchange jobs. The terminal, the HTML page
and the JSON file only put these figures into words and pictures.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lrms_sim.analysis import metrics
from lrms_sim.util.version import __version__
from lrms_sim.workload.groups import Int8Array
from lrms_sim.workload.jobs import FloatArray, Int64Array
from lrms_sim.workload.schedule import Int16Array, Schedule
from scenarios.run.broker_result import BrokerResult
from scenarios.run.electricity import SiteElectricity
from scenarios.run.user_groups import GroupResult, group_results

RESULT_FORMAT = 1
"""Version of the JSON document; raised when a field changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class WorkloadNote:
    """What the preparation of a workload did to some of its records.

    Attributes:
        reason: what was found in the records, for instance "wider than the machine".
        count: how many records.
        treatment: what was done to them, for instance "dropped".
    """

    reason: str
    count: int
    treatment: str


@dataclass(frozen=True, slots=True)
class SiteResult:
    """One site alone and in the federation.

    A figure is NaN where it has no meaning: mean values of a site without own jobs, utilization
    and makespan of a machine that ran nothing.

    Attributes:
        jobs: number of jobs its own users submitted.
        awrt_alone: average weighted response time of its own users' jobs without exchange, in
            seconds (paper 003, equation 11).
        awrt: the same in the federation, wherever the jobs ran.
        awrt_improvement: `1 - awrt / awrt_alone`, the paper's ΔAWRT; positive is better.
        utilization_alone: share of the machine in use without exchange, 0 … 1 (equation 13).
        utilization: the same in the federation. Comparable with `utilization_alone` only where the
            makespans are about equal (section 5.2).
        squashed_area_change: processor-seconds run here over processor-seconds of the own users'
            jobs, minus 1: ΔSA as the paper's tables print it (equation 14).
        makespan_alone: last completion on this machine without exchange, in seconds.
        makespan: the same in the federation.
        jobs_kept: own jobs that ran at home.
        jobs_given: own jobs that ran at a partner.
        jobs_taken: partners' jobs that ran here.
        mean_wait_time_alone: mean wait of the own jobs without exchange, in seconds.
        mean_wait_time: the same in the federation.
        mean_slowdown_alone: mean response time over run time of the own jobs without exchange.
        mean_slowdown: the same in the federation.
        mean_bounded_slowdown_alone: mean slowdown that counts run times below the bound as the
            bound, without exchange.
        mean_bounded_slowdown: the same in the federation.
    """

    name: str
    processors: int
    discipline: str
    jobs: int
    awrt_alone: float
    awrt: float
    awrt_improvement: float
    utilization_alone: float
    utilization: float
    squashed_area_change: float
    makespan_alone: float
    makespan: float
    jobs_kept: int
    jobs_given: int
    jobs_taken: int
    mean_wait_time_alone: float
    mean_wait_time: float
    mean_slowdown_alone: float
    mean_slowdown: float
    mean_bounded_slowdown_alone: float
    mean_bounded_slowdown: float


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioResult:
    """The result of a scenario's run.

    Attributes:
        name: the scenario's name, as on the command line.
        description: a paragraph for people; may be empty.
        seed: what every random stream of the run was spawned from.
        sites: one entry for each site, in site order.
        flow_jobs: shape (K, K), number of jobs that the row's users submitted and the column's
            machine ran; jobs kept are on the diagonal.
        flow_area: shape (K, K), the same in processor-seconds.
        schedule_alone: the same jobs, every site alone.
        workload_notes: for each site, what the preparation of its workload dropped or altered.
        elapsed_s: wall-clock seconds both runs took.
        acknowledgements: sentences that thank those who gave the recorded workloads.
        broker: what a broker has done beside the batch jobs; `None` if there is none.
        user_groups: the user groups of each site; empty if no queue looks at them.
        electricity: what each site with a price has used; empty if there is none.
    """

    name: str
    title: str
    description: str
    seed: int
    sites: tuple[SiteResult, ...]
    flow_jobs: Int64Array
    flow_area: FloatArray
    schedule: Schedule
    schedule_alone: Schedule
    workload_notes: tuple[tuple[WorkloadNote, ...], ...]
    elapsed_s: float
    version: str
    acknowledgements: tuple[str, ...]
    broker: BrokerResult | None = None
    user_groups: tuple[GroupResult, ...] = ()
    electricity: tuple[SiteElectricity, ...] = ()

    @property
    def jobs(self) -> int:
        """Number of jobs of all sites."""
        return len(self.schedule)

    @property
    def jobs_exchanged(self) -> int:
        """Number of jobs that ran at another site than their own."""
        return int(self.flow_jobs.sum() - np.trace(self.flow_jobs))

    def to_dict(self) -> dict[str, Any]:
        """Returns every figure as plain values that JSON knows; the schedules are left out.

        Figures without a meaning (NaN) become None.
        """
        names = [site.name for site in self.sites]
        return {
            "format": RESULT_FORMAT,
            "version": self.version,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "seed": self.seed,
            "elapsed_s": self.elapsed_s,
            "jobs": self.jobs,
            "jobs_exchanged": self.jobs_exchanged,
            "sites": [
                {key: _none_if_nan(value) for key, value in asdict(site).items()}
                for site in self.sites
            ],
            "flow": {
                "sites": names,
                "jobs": self.flow_jobs.tolist(),
                "area_processor_s": self.flow_area.tolist(),
            },
            "workload_notes": [
                {"site": name, "records": [asdict(note) for note in notes]}
                for name, notes in zip(names, self.workload_notes, strict=True)
            ],
            "acknowledgements": list(self.acknowledgements),
            **({} if self.broker is None else {"broker": asdict(self.broker)}),
            **(
                {"user_groups": [asdict(one) for one in self.user_groups]}
                if self.user_groups
                else {}
            ),
            **(
                {
                    "electricity": [
                        {key: _none_if_nan(value) for key, value in asdict(one).items()}
                        for one in self.electricity
                    ]
                }
                if self.electricity
                else {}
            ),
        }

    def to_json(self) -> str:
        """Returns `to_dict` as JSON text that ends in a newline; a site's flows are one line."""
        document = self.to_dict()
        # One number a line would make a million lines of a thousand sites.
        matrices = {}
        for key in ("jobs", "area_processor_s"):
            matrices[f'"{key}": "@{key}"'] = f'"{key}": {_matrix_text(document["flow"][key])}'
            document["flow"][key] = f"@{key}"
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        for place, matrix in matrices.items():
            # Within a text of the user's the quotes would be escaped.
            text = text.replace(place, matrix, 1)
        return text + "\n"


def _matrix_text(rows: Sequence[Sequence[float]]) -> str:
    lines = ",\n".join(f"      {json.dumps(row, allow_nan=False)}" for row in rows)
    return f"[\n{lines}\n    ]"


def _none_if_nan(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def evaluate(
    *,
    name: str,
    title: str,
    description: str,
    seed: int,
    disciplines: Sequence[str],
    schedule: Schedule,
    schedule_alone: Schedule,
    workload_notes: Sequence[Sequence[tuple[str, int, str]]] = (),
    elapsed_s: float = 0.0,
    acknowledgements: Sequence[str] = (),
    broker: BrokerResult | None = None,
    groups: Int8Array | None = None,
    electricity: Sequence[SiteElectricity] = (),
) -> ScenarioResult:
    """Computes the figures of a run from its two schedules.

    Args:
        name: the scenario's name.
        title: a line for people.
        description: a paragraph for people.
        seed: the run's seed.
        disciplines: name of the queue discipline of each site.
        schedule: the federated run.
        schedule_alone: the same jobs in the same rows, every site alone.
        workload_notes: for each site, rows of (reason, count, treatment); empty if nothing is known
            of the workloads' preparation.
        elapsed_s: wall-clock seconds both runs took.
        acknowledgements: sentences that thank those who gave the recorded workloads.
        broker: what a broker has done beside the batch jobs.
        groups: user group of each job at home; `None` if no queue looks at them.
        electricity: what each site with a price has used.

    Raises:
        ValueError: the two schedules do not belong together, a job of `schedule_alone` ran away
            from home, or an argument has not one entry for each site.
    """
    _check(schedule, schedule_alone)
    machines = schedule.machines
    notes = list(workload_notes) or [()] * len(machines)
    for what, given in (("disciplines", disciplines), ("workload_notes", notes)):
        if len(given) != len(machines):
            raise ValueError(f"{what} has {len(given)} entries for {len(machines)} sites")
    flow_jobs, flow_area = flows(schedule)
    own = _rows_by_machine(schedule.submitted_to, len(machines))
    ran = _rows_by_machine(schedule.executed_on, len(machines))
    # Every metric looks at all jobs of a schedule, so each site gets one of what concerns it.
    sites = tuple(
        _site_result(
            k,
            disciplines[k],
            schedule.select(np.union1d(own[k], ran[k])),
            schedule_alone.select(own[k]),
            flow_jobs,
        )
        for k in range(len(machines))
    )
    return ScenarioResult(
        name=name,
        title=title,
        description=description,
        seed=seed,
        sites=sites,
        flow_jobs=flow_jobs,
        flow_area=flow_area,
        schedule=schedule,
        schedule_alone=schedule_alone,
        workload_notes=tuple(tuple(WorkloadNote(*row) for row in rows) for rows in notes),
        elapsed_s=elapsed_s,
        version=__version__,
        acknowledgements=tuple(acknowledgements),
        broker=broker,
        user_groups=() if groups is None else group_results(schedule, schedule_alone, groups),
        electricity=tuple(electricity),
    )


def flows(schedule: Schedule) -> tuple[Int64Array, FloatArray]:
    """Counts the jobs, shape (K, K), and processor-seconds, shape (K, K), between sites.

    Rows are the sites whose users submitted them, columns the machines that ran them.
    """
    size = len(schedule.machines)
    pair = schedule.submitted_to.astype(np.int64) * size + schedule.executed_on
    jobs = np.bincount(pair, minlength=size * size).reshape(size, size)
    area = np.bincount(pair, weights=schedule.jobs.resource_consumption, minlength=size * size)
    return jobs.astype(np.int64), area.reshape(size, size).astype(np.float64)


def _rows_by_machine(column: Int16Array, size: int) -> list[Int64Array]:
    """Returns for each machine the rows, increasing, in which the column names it."""
    order = np.argsort(column, kind="stable").astype(np.int64)
    bounds = np.searchsorted(column[order], np.arange(size + 1))
    return [order[bounds[k] : bounds[k + 1]] for k in range(size)]


def _check(schedule: Schedule, schedule_alone: Schedule) -> None:
    if schedule.machines != schedule_alone.machines:
        raise ValueError(
            f"the federated schedule is of machines {_names(schedule)}, the one without "
            f"exchange of {_names(schedule_alone)}"
        )
    if len(schedule) != len(schedule_alone):
        raise ValueError(
            f"the federated schedule has {len(schedule)} jobs, the one without exchange "
            f"{len(schedule_alone)}"
        )
    same = (
        (schedule.jobs.submit_time == schedule_alone.jobs.submit_time)
        & (schedule.jobs.processors == schedule_alone.jobs.processors)
        & (schedule.jobs.run_time == schedule_alone.jobs.run_time)
        & (schedule.submitted_to == schedule_alone.submitted_to)
    )
    if not same.all():
        row = int(np.argmin(same))
        raise ValueError(f"row {row} is not the same job in the two schedules")
    home = schedule_alone.submitted_to == schedule_alone.executed_on
    if not home.all():
        row = int(np.argmin(home))
        raise ValueError(
            f"row {row} of the schedule without exchange ran on machine "
            f"{schedule_alone.executed_on[row]}, its home is {schedule_alone.submitted_to[row]}"
        )


def _names(schedule: Schedule) -> str:
    return ", ".join(f"{machine.name} ({machine.processors})" for machine in schedule.machines)


def _site_result(
    k: int, discipline: str, schedule: Schedule, alone: Schedule, flow_jobs: Int64Array
) -> SiteResult:
    machine = schedule.machines[k]
    awrt_alone = metrics.awrt(alone, submitted_to=k)
    awrt = metrics.awrt(schedule, submitted_to=k)
    own = int(flow_jobs[k].sum())
    kept = int(flow_jobs[k, k])
    return SiteResult(
        name=machine.name,
        processors=machine.processors,
        discipline=discipline,
        jobs=own,
        awrt_alone=awrt_alone,
        awrt=awrt,
        awrt_improvement=1.0 - awrt / awrt_alone,
        utilization_alone=metrics.utilization(alone, k),
        utilization=metrics.utilization(schedule, k),
        squashed_area_change=metrics.squashed_area_change(schedule, k),
        makespan_alone=metrics.makespan(alone, executed_on=k),
        makespan=metrics.makespan(schedule, executed_on=k),
        jobs_kept=kept,
        jobs_given=own - kept,
        jobs_taken=int(flow_jobs[:, k].sum()) - kept,
        mean_wait_time_alone=metrics.mean_wait_time(alone, submitted_to=k),
        mean_wait_time=metrics.mean_wait_time(schedule, submitted_to=k),
        mean_slowdown_alone=metrics.mean_slowdown(alone, submitted_to=k),
        mean_slowdown=metrics.mean_slowdown(schedule, submitted_to=k),
        mean_bounded_slowdown_alone=metrics.mean_bounded_slowdown(alone, submitted_to=k),
        mean_bounded_slowdown=metrics.mean_bounded_slowdown(schedule, submitted_to=k),
    )
