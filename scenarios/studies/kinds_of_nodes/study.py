"""The study: which exchanges are replayed, and what is kept of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from rich.console import Console

from grms.federation.federation import Federation
from grms.federation.sites import Site
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.transfer import AcceptWhenFit, Constrained, TransferPolicy
from lrms_sim.analysis.node_metrics import dominant_shares
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import BoolArray, FloatArray
from lrms_sim.workload.requests import Request
from lrms_sim.workload.schedule import Schedule
from scenarios.spec.traces import file_sha256
from scenarios.studies.common.frame import CaseStudy, plain_options, run_cases, threads
from scenarios.studies.kinds_of_nodes.options import StudyOptions
from scenarios.studies.kinds_of_nodes.sites import (
    GIB,
    LOGS_DRAWN,
    PODS,
    Logs,
    Pods,
    Workload,
    read_logs,
)

DISCIPLINES: Final = ("easy", "fcfs")
POLICIES: Final[dict[str, TransferPolicy]] = {
    "accept when fit": AcceptWhenFit(),
    "fair exchange": Constrained(FAIR_EXCHANGE),
}
REQUESTS: Final = "requests"
PROCESSORS: Final = "processors"
TOLD: Final = (REQUESTS, PROCESSORS)
"""What a site tells its partners of a job: all that it asks for, or processors alone."""

MUCH: Final = 4 * GIB
"""From so many MiB for each core on a job is one of much memory: more than a thin node has."""

CLASSES: Final = ("GPUs", "much memory", "others")


@dataclass(frozen=True, slots=True)
class Case:
    """One replay with exchange."""

    workload: str
    discipline: str
    policy: str
    told: str
    draw: int

    @property
    def key(self) -> str:
        """A name of its own."""
        return f"{self.workload} {self.discipline} {self.policy} {self.told} {self.draw}"


Study = CaseStudy[Case]


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every replay of the study once."""
    for workload in (LOGS_DRAWN, *([PODS] if options.pods is not None else [])):
        for draw in range(1, options.draws + 1):
            for discipline in DISCIPLINES:
                for policy in POLICIES:
                    for told in TOLD:
                        yield Case(workload, discipline, policy, told, draw)


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        TraceMissingError: a log is not on this machine.
        PodsError: the table of pods cannot be used.
        OutputError: the file of replays cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    sources: dict[str, Callable[[int], list[Workload]]] = {LOGS_DRAWN: Logs(read_logs()).sites}
    tables = {LOGS_DRAWN: ""}
    if options.pods is not None:
        sources[PODS] = Pods(options.pods).sites
        # Of another table nothing is known yet.
        tables[PODS] = f" {file_sha256(options.pods)[:16]}"
    every = {f"{case.key}{tables[case.workload]}": case for case in cases(options)}

    def run(case: Case) -> dict[str, Any]:
        return run_case(case, sources[case.workload](case.draw))

    known = run_cases(options.folder, every, threads(run, options.workers), console, what="replays")
    plain = {name: value for name, value in plain_options(options).items() if name != "pods"}
    return Study(plain, tuple((case, known[key]) for key, case in every.items()))


def federation_of(case: Case, workloads: list[Workload]) -> Federation:
    """Returns the sites of a case, ready to be replayed."""
    names = [each.name for each in workloads]
    told: Any = case.told
    return Federation(
        [
            Site(
                each.name,
                each.machine.processors,
                each.jobs,
                discipline_by_name(case.discipline),
                {other: POLICIES[case.policy] for other in names if other != each.name},
                nodes=each.machine,
                demands=each.demands,
                tells=told,
            )
            for each in workloads
        ]
    )


def run_case(case: Case, workloads: list[Workload]) -> dict[str, Any]:
    """Replays a case; returns plain values.

    `gain` and `gain_by_share` are the change of each site's response times in percent of alone, positive where
    shorter, weighted by processors and by dominant share times run time; `classes` has for each of
    `CLASSES` its jobs, how many ran elsewhere, and the mean waits alone and with exchange, seconds.
    """
    federation = federation_of(case, workloads)
    found = federation.exchange()
    schedule, alone = found.schedule, federation.replay_alone()
    weights, classes = _by_row(federation, workloads)
    masks = [schedule.submitted_to == number for number in range(len(workloads))]
    widths = schedule.jobs.processors.astype(np.float64)
    return {
        "gain": [gain(schedule, alone, widths, mask) for mask in masks],
        "gain_by_share": [gain(schedule, alone, weights, mask) for mask in masks],
        "classes": [
            _class_figures(schedule, alone, classes == number) for number in range(len(CLASSES))
        ],
        "offers": sum(found.offers),
    }


def class_of(request: Request) -> int:
    """Returns the number of a request's class in `CLASSES`."""
    if request.gpus is not None:
        return 0
    return 1 if request.memory_least > MUCH * request.processors else 2


def _by_row(federation: Federation, workloads: list[Workload]) -> tuple[FloatArray, Any]:
    """Returns of each job of the federation the dominant share of its home, and the number of its class."""
    weights = np.concatenate([dominant_shares(each.demands, each.machine) for each in workloads])
    classes = np.concatenate(
        [
            np.array([class_of(request) for request in each.demands.requests], np.int64)[
                each.demands.shape
            ]
            for each in workloads
        ]
    )
    return weights[federation.rows], classes[federation.rows]


def gain(schedule: Schedule, alone: Schedule, weights: FloatArray, mask: BoolArray) -> float:
    """Returns the change of the weighted response time of some jobs, percent of alone; positive if shorter."""
    work = (schedule.jobs.run_time * weights)[mask]
    submit = schedule.jobs.submit_time[mask]
    together = float((work * (schedule.end_time[mask] - submit)).sum())
    return 100.0 * (1.0 - together / float((work * (alone.end_time[mask] - submit)).sum()))


def _class_figures(schedule: Schedule, alone: Schedule, mask: BoolArray) -> dict[str, float]:
    submit = schedule.jobs.submit_time[mask]
    count = int(np.count_nonzero(mask))
    moved = np.count_nonzero((schedule.submitted_to != schedule.executed_on)[mask])

    def wait(of: Schedule) -> float:
        return float((of.start_time[mask] - submit).mean()) if count else 0.0

    return {"jobs": count, "moved": int(moved), "alone": wait(alone), "together": wait(schedule)}
