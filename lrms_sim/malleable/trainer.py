"""A training run as `lrms-sim utility train` does it: passes, checkpoints, and the file at the end."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Learning
from lrms_sim.malleable.model import TRAINING_STEPS
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import policy_by_name
from lrms_sim.malleable.source import Source
from lrms_sim.malleable.training import (
    Training,
    checkpoint,
    learn,
    reordered,
    resumed,
    scales_for,
)
from lrms_sim.malleable.value import ValueFunction, save_value_function
from lrms_sim.util.files import write_text
from lrms_sim.util.provenance import source_commit
from lrms_sim.util.version import __version__


@dataclass(frozen=True, slots=True)
class Lessons:
    """How to learn.

    Attributes:
        delay: as in `Learning`.
        per_step: whether the average reward is one of time.
        time_scale: seconds; default the longest request.
        horizon: seconds; default the last end, and the paper's for its model.
        seed: of a log's order of weeks.
        window: days.
    """

    policy: str = "both-value"
    passes: int = 1
    alpha: float = 0.003
    delay: float | None = None
    per_step: bool = True
    time_scale: float | None = None
    horizon: float | None = None
    seed: int = 0
    window: tuple[float | None, float | None] = (None, None)


def fingerprint(workload: UtilityJobs) -> str:
    """Returns what a workload is recognized by."""
    digest = hashlib.sha256()
    for name, column in workload.columns().items():
        if name not in {"job_id", "user"}:
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def teach(
    source: Source,
    lessons: Lessons,
    options: MachineOptions,
    output: Path,
    *,
    resume: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Training:
    """Learns, keeping a checkpoint next to the output after each pass, and writes the output.

    Raises:
        ValueError: the policy is not by value, or the checkpoint is of another run.
    """
    policy = policy_by_name(lessons.policy)
    if not policy.by_value:
        raise ValueError(f"{lessons.policy} has nothing to learn; policies by value do")
    workload = source.window(*lessons.window)
    if source.seconds:
        workload = reordered(workload, lessons.seed)
    scales = scales_for(workload, source.processors, lessons.time_scale or source.time_scale)
    run = {
        "workload": fingerprint(workload),
        "processors": source.processors,
        "lessons": {**asdict(lessons), "window": list(lessons.window), "passes": 0},
        "options": json.loads(json.dumps(asdict(options))),
    }
    value = ValueFunction(
        scales=scales,
        name=f"{lessons.policy} of {source.name}",
        provenance={
            "program": f"lrms-sim {__version__}",
            "commit": source_commit(),
            "source": source.name,
            "workload_sha256": run["workload"],
            "jobs": len(workload),
            "lessons": {**asdict(lessons), "window": list(lessons.window)},
            "options": _sayable(asdict(options)),
        },
    )
    rules = Learning(lessons.alpha, lessons.delay, lessons.per_step)
    training = Training(value, rules)
    draft = output.with_name(output.name + ".checkpoint")
    if resume:
        training = _resumed(training, draft, run)
    for number in range(len(training.lessons), lessons.passes):
        horizon = lessons.horizon or source.end(TRAINING_STEPS)
        training = learn(training, workload, source.processors, policy, options, horizon=horizon)
        write_text(draft, json.dumps({"run": run, "training": checkpoint(training)}))
        if progress is not None:
            progress(number + 1)
    updates = training.learning.updates
    said = {**training.value.provenance, "updates": updates, "rho": training.learning.rho}
    training = replace(training, value=replace(training.value, provenance=said))
    save_value_function(training.value, output)
    draft.unlink(missing_ok=True)
    return training


def _sayable(options: dict[str, object]) -> dict[str, object]:
    # JSON has no infinity.
    return {name: None if value == float("inf") else value for name, value in options.items()}


def _resumed(training: Training, path: Path, run: dict[str, object]) -> Training:
    if not path.exists():
        return training
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        saved = document["run"]
        if saved != json.loads(json.dumps(run)):
            changed = [name for name in run if saved.get(name) != json.loads(json.dumps(run[name]))]
            raise ValueError(
                f"{path}: is of another run ({', '.join(changed)} differ); give the same "
                "options, or leave --resume out to begin anew"
            )
        return resumed(training, document["training"])
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: is no checkpoint: {error}") from error
