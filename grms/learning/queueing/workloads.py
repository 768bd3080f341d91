"""Workloads that local strategies are tuned on, and the unseen ones that they are then judged on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grms.learning.fingerprint import jobs_sha256
from grms.learning.queueing.fitness import TuningCase, tuning_case
from grms.learning.queueing.options import WorkloadOptions
from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.situations import Calendar, make_calendar, zone_of_header
from lrms_sim.util.errors import HanseError
from lrms_sim.workload.groups import known_user_groups
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.scaling import scale_to
from lrms_sim.workload.swf import read_swf
from lrms_sim.workload.windows import window_by_days


class WorkloadError(HanseError, ValueError):
    """A workload that cannot be tuned on; the text names it and says what is wrong."""


@dataclass(frozen=True)
class Workload:
    """A log prepared for tuning.

    Attributes:
        training: case to tune on.
        unseen: case to test on; `None` if no job is left for it.
        provenance: of the jobs, plain values.
        warnings: caveats for the user.
    """

    name: str
    training: TuningCase
    unseen: TuningCase | None
    provenance: dict[str, Any]
    warnings: tuple[str, ...] = ()


def read_workload(path: Path, options: WorkloadOptions) -> Workload:
    """Reads a log and makes the workloads of it.

    Preparation comes first, then scaling, then windows, and then user groups: those of the training
    jobs for the training, those of the unseen jobs for the unseen.

    Raises:
        WorkloadError: the log cannot be used.
        OSError: it cannot be read.
    """
    name = path.name.split(".")[0]
    try:
        log = read_swf(path)
        size = options.processors or log.header.size
        if size is None:
            raise WorkloadError(
                f"{path}: its header does not say how large the machine is; say it with "
                f"--processors"
            )
        prepared = prepare(log, size, options.preparation)
        jobs = prepared.jobs
        if options.scale_to is not None:
            rng = np.random.default_rng(options.scale_seed)
            jobs = scale_to(
                jobs,
                processors_from=size,
                processors_to=options.scale_to,
                rng=rng,
                factor=options.scale_factor,
            )
            size = options.scale_to
        training, unseen = split(jobs, options)
        if not len(training):
            raise WorkloadError(f"{path}: no job is left to tune on")
        warnings, calendar = _calendar(log.header.fields, jobs, options.calendar)
        if not len(unseen):
            warnings.append("no unseen jobs: how the strategy does on them nobody knows")
        cases = [
            tuning_case(
                f"{name}{suffix}",
                Trial(part, size, groups=known_user_groups(part), theta=options.theta),
                calendar,
            )
            for part, suffix in ((training, ""), (unseen, ", unseen"))
            if len(part)
        ]
    except ValueError as error:
        if isinstance(error, WorkloadError):
            raise
        raise WorkloadError(f"{path}: {error}") from error
    provenance = {
        "log": path.name,
        "processors": size,
        "records_read": prepared.report.records_read,
        "jobs_prepared": prepared.report.jobs_prepared,
        "scale_to": options.scale_to,
        "scale_factor": options.scale_factor,
        "scale_seed": options.scale_seed if options.scale_to else None,
        "jobs": len(training),
        "jobs_sha256": jobs_sha256(training),
        "jobs_unseen": len(unseen),
    }
    return Workload(
        name,
        cases[0],
        cases[1] if len(cases) > 1 else None,
        provenance,
        tuple(f"{name}: {text}" for text in warnings),
    )


def split(jobs: JobTable, options: WorkloadOptions) -> tuple[JobTable, JobTable]:
    """Returns the training and the test jobs, which are disjoint.

    Raises:
        ValueError: both spans share a day.
    """
    first, last = options.training
    training = window_by_days(jobs, first, last, first_jobs=options.first_jobs)
    if options.unseen is None:
        after = np.searchsorted(jobs.submit_time, training.submit_time[-1]) if len(training) else 0
        rows = np.arange(after, len(jobs))
        seen = np.isin(jobs.job_id[rows], training.job_id)
        return training, jobs.select(rows[~seen])
    unseen = window_by_days(jobs, *options.unseen)
    if np.isin(unseen.job_id, training.job_id).any():
        raise ValueError(
            "the days to judge by share jobs with those to tune on; then they are not unseen"
        )
    return training, unseen


def _calendar(
    fields: dict[str, str], jobs: JobTable, kind: str
) -> tuple[list[str], Calendar | None]:
    # Only criteria that differ from situation to situation need one.
    try:
        zone, unix_start = zone_of_header(fields)
    except ValueError as error:
        return [str(error)], None
    first, last = float(jobs.submit_time[0]), float(jobs.submit_time[-1])
    calendar = make_calendar(kind, zone=zone, unix_start=unix_start, first=first, last=last)
    return [], calendar


def read_workloads(paths: Sequence[Path], options: WorkloadOptions) -> list[Workload]:
    """Returns `read_workload` of each log.

    Raises:
        WorkloadError: there is none, or one cannot be used.
        OSError: one cannot be read.
    """
    if not paths:
        raise WorkloadError("name at least one log")
    return [read_workload(path, options) for path in paths]
