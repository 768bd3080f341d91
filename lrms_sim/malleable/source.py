"""Where the command `lrms-sim utility` takes its jobs from: a log, a CSV file, the paper's model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.model import PROCESSORS, TEST_STEPS, TRAINING_STEPS, PaperModel
from lrms_sim.malleable.rules import PRESETS, UtilityRules, load_rules, utilities
from lrms_sim.malleable.workload_files import read_workload
from lrms_sim.workload.preparation import PreparationOptions
from lrms_sim.workload.swf import read_swf

MODEL = "model"

DAY = 86400.0

TRAINING_SEED = 1_000_003
"""Added to a seed where jobs of the model are drawn to learn on: they are never those of a test."""


@dataclass(frozen=True, slots=True)
class Source:
    """A workload to learn and test on.

    Attributes:
        workload: all jobs.
        processors: of the machine.
        seconds: whether times are seconds, or steps of the paper's model.
        model: of its jobs, if they are drawn.
    """

    name: str
    workload: UtilityJobs
    processors: int
    seconds: bool
    model: PaperModel | None = None

    @property
    def unit(self) -> float:
        """What days of a window are multiplied by: seconds, or steps of the model, which count themselves."""
        return DAY if self.seconds else 1.0

    @property
    def time_scale(self) -> float | None:
        """What counts as a long time: the longest job of the model; None for the longest request."""
        return None if self.seconds else 10.0

    def end(self, steps: int) -> float:
        """Returns when a run stops: never, or after so many steps of the model."""
        return float("inf") if self.seconds else float(steps)

    def drawn(self, steps: int, seed: int) -> UtilityJobs:
        """Returns other jobs of the same model."""
        assert self.model is not None, "jobs of a file cannot be drawn"
        return self.model.draw(steps, seed)

    def window(self, first: float | None, last: float | None) -> UtilityJobs:
        """Returns the jobs submitted from one day until another, excluded; the default is all.

        Raises:
            ValueError: the window ends before it begins, or holds no job.
        """
        if first is not None and last is not None and not last > first:
            raise ValueError(f"the window {first:g}:{last:g} ends before it begins")
        submit = self.workload.jobs.submit_time
        mask = np.ones(len(submit), np.bool_)
        if first is not None:
            mask &= submit >= first * self.unit
        if last is not None:
            mask &= submit < last * self.unit
        if not mask.any():
            raise ValueError(f"{self.name}: no job is submitted in the window")
        return self.workload.select(mask)


def rules_for(text: str) -> UtilityRules:
    """Returns the rules of a preset or a file; `ValueError` if the file cannot be used."""
    return PRESETS[text] if text in PRESETS else load_rules(text)


def open_source(
    path: str,
    *,
    processors: int | None,
    rules: str,
    rate: float = 0.1,
    seed: int = 0,
    training: bool = False,
    preparation: dict[str, Any] | None = None,
) -> Source:
    """Reads or draws a workload.

    Args:
        path: a log (.swf, .swf.gz), a CSV file, or `MODEL`.
        processors: of the machine; default from a log's header, or 24 for the model.
        rules: preset or file, for a log.
        rate: of the model.
        seed: of the model.
        training: whether the model is drawn as long as the paper's training.
        preparation: options for a log.

    Raises:
        ValueError: the source cannot be used.
    """
    if path == MODEL:
        steps = TRAINING_STEPS if training else TEST_STEPS
        model = PaperModel(rate)
        name = f"the paper's model, rate {rate:g}"
        drawn = model.draw(steps, seed + TRAINING_SEED if training else seed)
        return Source(name, drawn, processors or PROCESSORS, False, model)
    if ".csv" in Path(path).suffixes[-2:]:
        workload = read_workload(path)
        widest = int(workload.jobs.processors.max()) if len(workload) else 1
        if processors is None:
            raise ValueError(
                f"{path}: give the machine's size with --processors; the widest job has {widest}"
            )
        return Source(Path(path).name, workload, processors, True)
    log = read_swf(path)
    size = processors or log.header.size
    if size is None or size < 1:
        raise ValueError(f"{path}: the header says no {log.header.size_key}; give --processors")
    workload, _ = utilities(log, size, rules_for(rules), PreparationOptions(**(preparation or {})))
    return Source(Path(path).name, workload, size, True)
