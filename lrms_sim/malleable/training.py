"""Learning a value function on a workload, window by window, with a state that can be resumed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Learning, simulate
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import Policy
from lrms_sim.malleable.value import Scales, ValueFunction

BLOCK: Final = 7 * 86400.0
"""Seconds of a recorded workload that stay together when its order is drawn anew."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Result of one pass over a training workload.

    Attributes:
        number: from 1.
        share: of the possible utility, while learning.
        updates: of the value function so far.
        p: the outputs of the rules.
    """

    number: int
    share: float
    updates: int
    rho: float
    p: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Training:
    """A training run so far, complete for resuming; `learning` has average reward and updates so far."""

    value: ValueFunction
    learning: Learning
    lessons: tuple[Lesson, ...] = field(default=())


def scales_for(workload: UtilityJobs, processors: int, time: float | None = None) -> Scales:
    """Returns scales that fit a workload: its largest weight and its longest request.

    `time`, in seconds, replaces the longest request.
    """
    if not len(workload):
        return Scales(1.0, time or 10.0, processors)
    most = float(workload.weight.max())
    return Scales(
        most if most > 0 else 1.0,
        time or float(workload.jobs.requested_time.max()),
        processors,
    )


def reordered(workload: UtilityJobs, seed: int) -> UtilityJobs:
    """Returns a recorded workload with its weeks in an order drawn by the seed; 0 keeps it."""
    if seed == 0 or not len(workload):
        return workload
    submit = workload.jobs.submit_time
    begin = float(submit[0])
    block = np.floor((submit - begin) / BLOCK).astype(np.int64)
    count = int(block[-1]) + 1
    order = np.random.Generator(np.random.PCG64(seed)).permutation(count)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    moved = submit + (place[block] - block) * BLOCK
    rows = np.lexsort((workload.jobs.job_id, moved))
    columns = {name: column[rows] for name, column in workload.columns().items()}
    own = {"job_id": np.arange(1, len(rows) + 1), "submit_time": moved[rows]}
    return UtilityJobs.from_columns(columns | own)


def learn(
    training: Training,
    workload: UtilityJobs,
    processors: int,
    policy: Policy,
    options: MachineOptions,
    *,
    horizon: float = float("inf"),
    progress: Callable[[int], None] | None = None,
) -> Training:
    """Runs a workload once while learning; returns the training run, one lesson longer.

    Events after `horizon`, in seconds, are ignored. `progress` is called with the number of
    arrivals done.

    Raises:
        ValueError: the policy is not by value.
    """
    if not policy.by_value:
        raise ValueError("only policies by value learn")
    outcome = simulate(
        workload,
        processors,
        policy,
        options=options,
        value=training.value,
        learning=training.learning,
        horizon=horizon,
        progress=progress,
    )
    (machine,) = outcome.machines
    assert machine.value is not None
    value = replace(training.value, p=machine.value.p)
    learning = replace(training.learning, rho=machine.rho, updates=machine.updates)
    lesson = Lesson(len(training.lessons) + 1, outcome.share, machine.updates, machine.rho, value.p)
    return Training(value, learning, (*training.lessons, lesson))


def checkpoint(training: Training) -> dict[str, Any]:
    """Returns a training run as what JSON can say, to the last bit."""
    return {
        "p": list(training.value.p),
        "rho": training.learning.rho,
        "updates": training.learning.updates,
        "lessons": [
            [each.number, each.share, each.updates, each.rho, list(each.p)]
            for each in training.lessons
        ],
    }


def resumed(training: Training, saved: dict[str, Any]) -> Training:
    """Returns a training run as it was saved."""
    lessons = tuple(
        Lesson(number, share, updates, rho, tuple(p))
        for number, share, updates, rho, p in saved["lessons"]
    )
    return Training(
        replace(training.value, p=tuple(saved["p"])),
        replace(training.learning, rho=saved["rho"], updates=saved["updates"]),
        lessons,
    )
