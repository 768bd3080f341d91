"""The studies from logs to figures: what is learned, what is judged, in which order."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console

from grms.learning.evolution.termination import Limits
from grms.learning.queueing.command import STRATEGY, run_tuning
from grms.learning.queueing.front import run_front
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.outcome import LEARNED, group_order, judge
from grms.learning.queueing.problem import TuneOptions, Workload, read_workload
from grms.learning.training import CHECKPOINT
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import load_strategy
from lrms_sim.util.executors import Workers
from lrms_sim.util.provenance import source_commit
from lrms_sim.util.version import __version__
from scenarios.spec.traces import require_trace
from scenarios.studies.common.frame import RESULT_FORMAT, plain_options
from scenarios.studies.common.samples import Spread, machine_words
from scenarios.studies.queue_strategies.cloud import cloud
from scenarios.studies.queue_strategies.options import StudyOptions
from scenarios.studies.queue_strategies.reference import GREEDY, LOGS, METHODS, SCALED, StudyLog

MANY: Final = "multiple"
"""Learns one criterion on all logs at once."""

SYMBIOTIC_SHARE: Final = 3
"""A generation of rules takes so many times longer than one of criteria."""


@dataclass(frozen=True, slots=True)
class Study:
    """Everything a study has found.

    Attributes:
        runs: one for each log, method and seed: `log`, `method`, `seed`, and what `tuning.json`
            says.
        transfers: gains of what was learned on the first log on the training jobs of the others.
        clouds: by log the points of `cloud`, as plain values.
        machine: processor and number of them, for people.
        commit: of the program's source, where that is known.
    """

    options: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]
    transfers: Sequence[Mapping[str, Any]]
    clouds: Mapping[str, Sequence[Mapping[str, Any]]]
    machine: str
    commit: str | None
    version: str = __version__

    def of(self, log: str, method: str) -> list[Mapping[str, Any]]:
        """Returns the runs of a method on a log, in the order of seeds."""
        return [run for run in self.runs if (run["log"], run["method"]) == (log, method)]

    def to_json(self) -> str:
        """Returns every figure as JSON."""
        return json.dumps({"format": RESULT_FORMAT} | asdict(self), indent=1) + "\n"


def gains_of(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[float, ...]:
    """Returns the gain of f and of the five AWRT of a policy, percent; nan if it was given up."""
    row = next(one for one in rows if one["name"] == name)
    numbers = (row["gain_percent"], *(row["gains_percent"][f"awrt_{g}"] for g in range(1, 6)))
    return tuple(float("nan") if number is None else float(number) for number in numbers)


def learned_gain(runs: Sequence[Mapping[str, Any]], part: str, row: int = 0) -> Spread | None:
    """Returns the spread of learned gains over seeds; `None` if the part has no jobs.

    `runs` are of one method on one log, `part` is `training` or `unseen`, `row` one of
    `reference.ROWS`.
    """
    found = [gains_of(run["parts"][part], LEARNED)[row] for run in runs if part in run["parts"]]
    return Spread.of(found) if found else None


def best_constant(run: Mapping[str, Any], part: str) -> tuple[str, tuple[float, ...]] | None:
    """Returns the constant with the largest gain on a part, and its gains; None without jobs."""
    rows = [one for one in run["parts"].get(part, ()) if one["name"] != LEARNED]
    rows = [one for one in rows if one["gain_percent"] is not None]
    if not rows:
        return None
    best = max(rows, key=lambda one: float(one["gain_percent"]))
    return best["name"], gains_of(rows, best["name"])


def run_study(options: StudyOptions, console: Console) -> Study:
    """Learns what is not there yet, and judges it.

    Every run has a folder of its own in the study's; one that is there is read, not done again.

    Raises:
        ScenarioError: a log is missing.
        WorkloadError: a log cannot be used.
        CheckpointError: the folder has runs of other settings.
        TrainingInterrupted: Ctrl-C.
    """
    logs = [log for log in LOGS if log.key in options.logs]
    paths = {log.key: require_trace(log.key) for log in logs}
    workloads = {}
    for log in logs:
        console.print(f"reading {log.key}", highlight=False)
        workloads[log.key] = read_workload(paths[log.key], _workload_options(options, log))
    runs: list[dict[str, Any]] = []
    judged: list[Sequence[float]] = []
    first = logs[0].key
    for log in logs:
        for method in METHODS[options.paper]:
            for seed in options.seeds[:1] if method.startswith("iterative") else options.seeds:
                console.print(f"{log.key}: {method}, seed {seed}", highlight=False)
                chosen = _tune_options(options, method, seed, log.key, (paths[log.key],))
                chosen = replace(chosen, remember=log.key == first)
                found, seen = _run(chosen, {log.key: workloads[log.key]}, method, console)
                runs += found
                judged += seen
    if options.paper == GREEDY and len(logs) > 1:
        for seed in options.seeds[:1]:
            console.print(f"all logs at once: f2, seed {seed}", highlight=False)
            chosen = _tune_options(options, "f2", seed, MANY, tuple(paths.values()))
            runs += _run(chosen, workloads, MANY, console)[0]
    users = _users(options, first, workloads[first], console)
    console.print("judging elsewhere, and all orders of groups", highlight=False)
    return Study(
        {
            **plain_options(options),
            "jobs": {key: len(one.training.trial.jobs) for key, one in workloads.items()},
            "processors": {key: one.training.trial.processors for key, one in workloads.items()},
        },
        runs,
        _transfers(options, first, workloads),
        {
            first: _cloud(
                workloads[first], [run for run in runs if run["log"] == first], judged, users
            )
        },
        machine_words(),
        source_commit(),
    )


def _users(
    options: StudyOptions, log: str, workload: Workload, console: Console
) -> Sequence[Sequence[float]]:
    if not options.front:
        return ()
    console.print(f"{log}: NSGA-II on a key for each user", highlight=False)
    seed = options.seeds[0]
    folder = run_folder(options, "users", seed, log)
    workers = Workers(count=options.workers)
    return run_front(workload, folder, options.front, console, seed=seed, workers=workers)


def _cloud(
    workload: Workload,
    runs: Sequence[Mapping[str, Any]],
    judged: Sequence[Sequence[float]],
    users: Sequence[Sequence[float]],
) -> list[dict[str, Any]]:
    found = [run["parts"]["training"][-1]["objectives"] for run in runs]
    learned = [
        # A group without jobs has no AWRT.
        [math.nan if number is None else float(number) for number in one.values()]
        for one in found
        if one["awrt"] is not None
    ]
    return [asdict(one) for one in cloud(workload.training.trial, learned, judged, users)]


def _workload_options(options: StudyOptions, log: StudyLog) -> WorkloadOptions:
    if options.scaled:
        return WorkloadOptions(
            processors=log.processors, scale_to=SCALED, scale_factor=log.factor, scale_seed=1
        )
    return WorkloadOptions(processors=log.processors, first_jobs=log.first_jobs)


def run_folder(options: StudyOptions, method: str, seed: int, where: str) -> Path:
    """Returns the folder of one run."""
    kind = ("scaled" if options.scaled else "first") + f"-{options.start}"
    return options.folder / "runs" / kind / f"{where}-{method}-seed-{seed}"


def _tune_options(
    options: StudyOptions, method: str, seed: int, where: str, paths: tuple[Path, ...]
) -> TuneOptions:
    folder = run_folder(options, method, seed, where)
    plain = TuneOptions(
        paths,
        seed=seed,
        start=options.start,
        workers=Workers(count=options.workers),
        output=folder,
        resume=(folder / CHECKPOINT).exists(),
    )
    if method.startswith("iterative"):
        standard = "fcfs-group" if method.endswith("group") else "fcfs-arrival"
        return replace(plain, method="iterative", standard=standard)
    if method == "symbiotic":
        limits = Limits(generations=max(1, options.generations // SYMBIOTIC_SHARE))
        return replace(plain, method=method, limits=limits)
    limits = Limits(generations=options.generations)
    algorithm: Any = "easy" if method.startswith("easy-") else "fcfs"
    return replace(plain, method=method[-2:], algorithm=algorithm, limits=limits)


def _run(
    chosen: TuneOptions, workloads: Mapping[str, Workload], method: str, console: Console
) -> tuple[list[dict[str, Any]], Sequence[Sequence[float]]]:
    tuning = run_tuning(chosen, console, list(workloads.values()))
    document = tuning.to_document()
    found = [
        {
            "log": key,
            "method": method,
            "seed": chosen.seed,
            "evaluations": document["evaluations"],
            "elapsed_s": document["elapsed_s"],
            "parts": {part: one[part] for part in ("training", "unseen") if part in one},
        }
        for key, one in zip(workloads, document["workloads"], strict=True)
    ]
    return found, tuning.judged


def _transfers(
    options: StudyOptions, first: str, workloads: Mapping[str, Workload]
) -> list[dict[str, Any]]:
    """Returns what learned on the first log comes to on the others (Figures 2 and 7)."""
    found = []
    for method in METHODS[options.paper]:
        seeds = options.seeds[:1] if method.startswith("iterative") else options.seeds
        for seed in seeds:
            policy = load_strategy(run_folder(options, method, seed, first) / STRATEGY).policy
            for key, workload in workloads.items():
                if key != first:
                    case = workload.training
                    constant = Strategy("fcfs", group_order(case))
                    judged = judge(case, [(LEARNED, policy), ("constant", constant)])
                    found.append(
                        {
                            "log": key,
                            "method": method,
                            "seed": seed,
                            "gain": None if judged[0].objectives is None else judged[0].gain,
                            "constant": judged[1].gain,
                        }
                    )
    return found


def transfer_gain(study: Study, log: str, method: str) -> float | None:
    """Returns the median gain of a method learned on the first log; `None` if it was given up."""
    found = [one["gain"] for one in study.transfers if (one["log"], one["method"]) == (log, method)]
    known = [gain for gain in found if gain is not None]
    return median(known) if known and len(known) == len(found) else None
