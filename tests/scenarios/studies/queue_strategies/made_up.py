"""A study that nobody ran, with figures that are easy to follow."""

from collections.abc import Mapping
from typing import Any

from scenarios.studies.queue_strategies.reference import METHODS
from scenarios.studies.queue_strategies.study import Study


def row(name: str, gain: float | None) -> dict[str, Any]:
    """Returns a policy as `tuning.json` has it; its AWRT gain less and less by group."""
    groups = {f"awrt_{g}": None if gain is None else gain - g for g in range(1, 6)}
    objectives = {f"awrt_{g}": None if gain is None else 1000.0 * g - gain for g in range(1, 6)}
    return {
        "name": name,
        "value": None if gain is None else 100.0 - gain,
        "gain_percent": gain,
        "gains_percent": groups,
        "objectives": objectives,
    }


def run(log: str, method: str, seed: int, learned: float, unseen: float | None) -> dict[str, Any]:
    """Returns a run with EASY at 0, the constant at 10 and at 12 on unseen jobs."""
    parts = {
        "training": [row("easy-arrival", 0.0), row("fcfs-group", 10.0), row("learned", learned)]
    }
    if unseen is not None:
        rows = [row("easy-arrival", 0.0), row("fcfs-group", 12.0), row("learned", unseen)]
        parts["unseen"] = rows
    return {
        "log": log,
        "method": method,
        "seed": seed,
        "evaluations": 42,
        "elapsed_s": 1.0,
        "parts": parts,
    }


def made_up(
    paper: str,
    gains: Mapping[str, float],
    *,
    unseen: float | None = 8.0,
    moved: float | None = -5.0,
    many: float | None = None,
) -> Study:
    """Returns a study of three logs in which a method gains the same on each.

    Args:
        paper: which study.
        gains: on training jobs by method, seed 2; a point less with seed 1, a point more with seed 3.
        unseen: gain on unseen jobs; no such jobs where None.
        moved: gain on other logs than the first; given up where None.
        many: gain of what was learned on all logs at once; not run where None.
    """
    logs = ("ctc", "kth", "sdsc00")
    runs = [
        run(log, method, seed, gains[method] + seed - 2, unseen)
        for log in logs
        for method in METHODS[paper]
        if method in gains
        for seed in (1, 2, 3)
    ]
    if many is not None:
        runs += [run(log, "multiple", 1, many, unseen) for log in logs]
    transfers = [
        {"log": log, "method": method, "seed": 1, "gain": moved, "constant": 16.0}
        for log in logs[1:]
        for method in gains
    ]
    order, seven = [1, 2, 3, 4, 5], [0.7, 5.0, 10.0, 20.0, 1.0, 1.0, 1.0]
    kinds = {
        "fcfs": order,
        "easy": order,
        "clairvoyant": order,
        "learned": [],
        "judged": [],
        "users": [],
    }
    cloud = [
        {"kind": kind, "groups": groups, "seven": seven, "front": front}
        for kind, groups in kinds.items()
        for front in (True, False)
    ]
    options = {
        "paper": paper,
        "seeds": [1, 2, 3],
        "generations": 6,
        "start": "constant",
        "scaled": unseen is None,
        "front": 10,
        "logs": list(logs),
        "jobs": dict.fromkeys(logs, 1000),
        "processors": dict.fromkeys(logs, 64),
    }
    return Study(options, runs, transfers, {"ctc": cloud}, "a machine", "abc")
