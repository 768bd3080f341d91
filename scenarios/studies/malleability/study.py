"""The study: which runs it has, and what is kept of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from rich.console import Console

from lrms_sim.analysis.metrics import BOUNDED_SLOWDOWN_THRESHOLD_S
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.log import KINDS
from lrms_sim.malleable.machine import Learning, Outcome, simulate
from lrms_sim.malleable.options import MachineOptions, speedup_of
from lrms_sim.malleable.policies import Policy, policy_by_name
from lrms_sim.malleable.rules import LENIENT, Malleability, utilities
from lrms_sim.malleable.training import Training, learn, scales_for
from lrms_sim.malleable.value import ValueFunction
from lrms_sim.workload.jobs import FloatArray
from lrms_sim.workload.swf import read_swf
from scenarios.spec.traces import TRACES, file_sha256, require_trace
from scenarios.studies.common.frame import CaseStudy, plain_options, run_cases, threads
from scenarios.studies.malleability.options import StudyOptions
from scenarios.util.errors import WorkloadError

SHARES: Final = (0, 20, 40, 60, 80, 100)
"""Of malleable jobs, percent."""

EASY: Final = "easy"
PERFECT: Final = "easy, perfect run times"
CONSTANTS: Final = (EASY, PERFECT)
"""They take every job as rigid."""

SQUEEZING: Final = ("over-aggressive", "over-value")
SUSPENDING: Final = ("both-aggressive", "both-value", "replan")
"""The paper's policies: those that squeeze jobs alone, and those that may suspend others as well."""

POLICIES: Final = SQUEEZING + SUSPENDING

_START, _SQUEEZE, _SUSPEND, _END = (
    KINDS.index(kind) for kind in ("start", "squeeze", "suspend", "end")
)


@dataclass(frozen=True, slots=True)
class Case:
    """One run.

    Attributes:
        part: of the log, from 1.
        seed: that draws which jobs are malleable; 0 where that is none or all of them.
        policy: one of `POLICIES` or `CONSTANTS`.
        share: of malleable jobs, percent.
        speedup: a law as `lrms_sim.malleable.options.speedup_of` reads it.
        least: fewest processors of a malleable job, as a share of its width.
    """

    log: str
    part: int
    seed: int
    policy: str
    share: int
    speedup: str
    least: float

    @property
    def key(self) -> str:
        """A name of its own."""
        return f"{self.part} {self.seed} {self.policy} {self.share} {self.speedup} {self.least:g}"


Study = CaseStudy[Case]


def variants(options: StudyOptions) -> list[tuple[str, float]]:
    """Returns speed-up and least width: first those of every share, then the others, one changed at a time."""
    law, least = options.speedup[0], options.least[0]
    every = [(law, least)]
    every += [(other, least) for other in options.speedup[1:]]
    every += [(law, other) for other in options.least[1:]]
    return list(dict.fromkeys(every))


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every run of the study once."""
    (law, least), *others = variants(options)
    for log in dict.fromkeys(options.logs):
        for part in range(1, options.parts + 1):
            for constant in CONSTANTS:
                yield Case(log, part, 0, constant, 0, law, least)
            for policy in POLICIES:
                for share in SHARES:
                    for seed in options.seeds if 0 < share < 100 else (0,):
                        yield Case(log, part, seed, policy, share, law, least)
                for other in others:
                    yield Case(log, part, 0, policy, 100, *other)


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        TraceMissingError: a log is not on this machine.
        WorkloadError: a log cannot be used.
        OutputError: the file of runs cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    logs = Logs(options.logs, options.parts)
    every = {f"{logs.mark(case.log)} {case.key}": case for case in cases(options)}

    def run(case: Case) -> dict[str, Any]:
        return run_case(case, logs)

    known = run_cases(options.folder, every, threads(run, options.workers), console, what="runs")
    return Study(plain_options(options), tuple((case, known[key]) for key, case in every.items()))


class Logs:
    """Logs by key or path, cut into parts of equal time.

    Raises:
        TraceMissingError: a log is not on this machine.
        WorkloadError: a log cannot be read.
    """

    def __init__(self, names: tuple[str, ...], parts: int) -> None:
        self._parts = parts
        self._paths = {name: _path(name) for name in names}
        self._marks = {name: _mark(name, path) for name, path in self._paths.items()}
        self._read: dict[str, tuple[int, list[UtilityJobs]]] = {}
        self._reading = Lock()

    def mark(self, name: str) -> str:
        """Returns what a log's runs are kept under: of another file nothing is known yet."""
        return f"{self._marks[name]} /{self._parts}"

    def processors(self, name: str) -> int:
        """Returns the size of a log's machine."""
        return self._of(name)[0]

    def part(self, name: str, number: int) -> UtilityJobs:
        """Returns a part's jobs, all rigid, with submission times of the log; from 1, and cyclic."""
        return self._of(name)[1][(number - 1) % self._parts]

    def _of(self, name: str) -> tuple[int, list[UtilityJobs]]:
        with self._reading:
            if name not in self._read:
                self._read[name] = _cut(name, self._paths[name], self._parts)
            return self._read[name]


def _path(name: str) -> Path:
    return require_trace(name) if name in TRACES else Path(name)


def _mark(name: str, path: Path) -> str:
    if name in TRACES:
        return name
    try:
        return f"{path.name} {file_sha256(path)[:16]}"
    except OSError as error:
        raise WorkloadError(
            f"{name} is no log of the archive ({', '.join(TRACES)}), and no file that can be read: "
            f"{error.strerror or error}"
        ) from error


def _cut(name: str, path: Path, parts: int) -> tuple[int, list[UtilityJobs]]:
    log = read_swf(path)
    size = TRACES[name].processors if name in TRACES else log.header.size
    if size is None or size < 1:
        raise WorkloadError(f"{path}: the header says no {log.header.size_key}")
    workload, _ = utilities(log, size, LENIENT)
    submit = workload.jobs.submit_time
    edges = np.linspace(submit[0], submit[-1], parts + 1) if len(workload) else np.zeros(parts + 1)
    edges[-1] = np.inf
    found = [
        workload.select((submit >= first) & (submit < last)).rigid()
        for first, last in pairwise(edges.tolist())
    ]
    for number, part in enumerate(found, 1):
        if not len(part):
            raise WorkloadError(f"{path}: part {number} of {parts} has no job")
    return size, found


def perfect(workload: UtilityJobs) -> UtilityJobs:
    """Returns the same jobs, rigid, whose requests are their run times; each is worth the same at the same time."""
    jobs = workload.jobs
    ratio = jobs.requested_time / jobs.run_time
    known = replace(jobs, requested_time=jobs.run_time)
    return replace(
        workload, jobs=known, plateau=workload.plateau * ratio, zero=workload.zero * ratio
    ).rigid()


def malleable(workload: UtilityJobs, case: Case) -> UtilityJobs:
    """Returns the same jobs, of which the case's share is malleable."""
    drawn = Malleability(case.share / 100.0, case.least, case.seed)
    return replace(workload, processors_min=drawn.processors_min(workload.jobs))


def run_case(case: Case, logs: Logs) -> dict[str, Any]:
    """Runs a case; returns plain values.

    Policies by value learn on the part that follows, the last one's on the first.
    """
    outcome = outcome_of(case, logs)
    return figures(outcome, logs.processors(case.log))


def outcome_of(case: Case, logs: Logs) -> Outcome:
    """Runs a case."""
    size, part = logs.processors(case.log), logs.part(case.log, case.part)
    # Every job is run to its end, so that all policies are judged by the same jobs.
    options = MachineOptions(leave="never", speedup=speedup_of(case.speedup))
    if case.policy in CONSTANTS:
        workload = perfect(part) if case.policy == PERFECT else part
        return simulate(workload, size, policy_by_name(EASY), options=options, log=True)
    policy = policy_by_name(case.policy)
    value = None
    if policy.by_value:
        taught = malleable(logs.part(case.log, case.part + 1), case)
        value = _learned(taught, size, policy, options)
    return simulate(malleable(part, case), size, policy, options=options, value=value, log=True)


def _learned(
    workload: UtilityJobs, size: int, policy: Policy, options: MachineOptions
) -> ValueFunction:
    blank = Training(ValueFunction(scales=scales_for(workload, size)), Learning())
    return learn(blank, workload, size, policy, options).value


def held(outcome: Outcome) -> FloatArray:
    """Returns for how long each job held processors, seconds; of a run with its log."""
    assert outcome.log is not None
    entries = outcome.log.entries
    begun = np.isin(entries["kind"], (_START, _SQUEEZE))
    ended = np.isin(entries["kind"], (_SUSPEND, _END))
    signed = np.where(ended, 1.0, np.where(begun, -1.0, 0.0)) * entries["time"]
    total: FloatArray = np.zeros(len(outcome.workload))
    np.add.at(total, entries["job"], signed)
    return total


def figures(outcome: Outcome, processors: int) -> dict[str, Any]:
    """Returns the figures of a run in which every job has ended.

    `wait` is the mean time in which a job held no processors, suspensions included, and
    `longest_wait` the greatest; `response` the mean time from submission to end; all in seconds.
    `slowdown` is the mean bounded slowdown against the ideal run time; `utilization` the share of the
    machine that was held from the first submission to the last end, which are `makespan` seconds
    apart; `utility` the share of the possible one.
    """
    jobs = outcome.workload.jobs
    response = outcome.end - jobs.submit_time
    wait = np.maximum(response - held(outcome), 0.0)
    slowdown = np.maximum(1.0, response / np.maximum(BOUNDED_SLOWDOWN_THRESHOLD_S, jobs.run_time))
    makespan = float(outcome.end.max() - jobs.submit_time[0])
    assert outcome.log is not None
    squeezed = outcome.log.entries["job"][outcome.log.entries["kind"] == _SQUEEZE]
    return {
        "jobs": len(jobs),
        "wait": float(wait.mean()),
        "longest_wait": float(wait.max()),
        "response": float(response.mean()),
        "slowdown": float(slowdown.mean()),
        "utilization": float(outcome.busy.sum()) / (processors * makespan),
        "makespan": makespan,
        "utility": outcome.share,
        "squeezed": len(np.unique(squeezed)),
        "suspensions": int(outcome.suspensions.sum()),
    }
