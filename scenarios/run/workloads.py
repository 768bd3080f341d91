"""From what a scenario says of a workload to the jobs themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import environ as process_environment
from pathlib import Path

import numpy as np

from lrms_sim.workload.jobs import SECONDS_PER_DAY, JobTable, Shift, concatenate, window_by_days
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import read_swf
from scenarios.spec.spec import OVERLOADED, LublinWorkload, SiteSpec, SwfWorkload, TraceWorkload
from scenarios.spec.traces import TRACES, file_sha256, require_trace
from scenarios.util.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class Workload:
    """The jobs of one site's own users, and how they came about.

    Attributes:
        jobs: sorted, none wider than the site's machine.
        notes: (what was found, number of records, what was done to them), for the report.
        warnings: what a user should know before believing the figures.
        acknowledgement: a sentence that thanks those who gave the log; empty for none.
        header: the fields of the log's header, which tell its local time; `None` for a synthetic
            one.
        origin: the moment of the log that is second 0 of the jobs' clock, seconds.
    """

    jobs: JobTable
    notes: tuple[tuple[str, int, str], ...]
    source: str
    warnings: tuple[str, ...] = ()
    acknowledgement: str = ""
    header: Mapping[str, str] | None = None
    origin: float = 0.0


def load_workload(
    site: SiteSpec, shift: Shift = "none", environment: Mapping[str, str] = process_environment
) -> Workload:
    """Reads or generates the workload of a site.

    `shift` is what falls on second 0 of the clock; see `ClockSpec`.

    Raises:
        TraceMissingError: a log is not on this machine.
        WorkloadError: the log cannot be read, or its preparation found what the scenario has it
            stop for; the text begins with the site's key.
    """
    try:
        loaded = _loaded(site, shift, environment)
        return _twice(loaded) if site.rogue == OVERLOADED else loaded
    except (OSError, ValueError) as error:
        raise WorkloadError(f"sites.{site.name}.workload: {error}") from error


def _loaded(site: SiteSpec, shift: Shift, environment: Mapping[str, str]) -> Workload:
    workload = site.workload
    if isinstance(workload, LublinWorkload):
        return _generated(site, workload, shift)
    if isinstance(workload, TraceWorkload):
        path = require_trace(workload.trace, environment)
        warnings = _version_warnings(workload.trace, path)
        return _recorded(site, workload, path, shift, warnings)
    return _recorded(site, workload, Path(workload.swf), shift, ())


def _twice(workload: Workload) -> Workload:
    """Returns a workload whose every job is submitted twice: that of an overloaded site."""
    note = (f"every job of a site that is {OVERLOADED}", len(workload.jobs), "submitted twice")
    return replace(workload, jobs=doubled(workload.jobs), notes=(*workload.notes, note))


def doubled(jobs: JobTable) -> JobTable:
    """Returns a workload in which each job is followed at once by another like it, 2n jobs."""
    if not len(jobs):
        return jobs
    columns = {name: np.repeat(values, 2) for name, values in jobs.columns().items()}
    columns["job_id"][1::2] += jobs.job_id.max() + 1
    return JobTable.from_columns(**columns)


def first_arrivals(workloads: Sequence[Workload], count: int | None) -> list[Workload]:
    """Returns the workloads reduced to the first `count` jobs of all together; `None` keeps all.

    Ties between jobs of one instant are broken by the order of the sites.

    Raises:
        ValueError: the count is less than 1.
    """
    if count is None:
        return list(workloads)
    if count < 1:
        raise ValueError(f"count is {count}; it must be at least 1")
    _, origin, _ = concatenate([workload.jobs for workload in workloads])
    kept = np.bincount(origin[:count], minlength=len(workloads))
    return [
        _beginning(workload, rows, count)
        for workload, rows in zip(workloads, kept.tolist(), strict=True)
    ]


def _beginning(workload: Workload, rows: int, count: int) -> Workload:
    left_out = len(workload.jobs) - rows
    if not left_out:
        return workload
    note = (f"after the first {count:,} arrivals at all sites", left_out, "left out")
    return replace(
        workload,
        jobs=workload.jobs.select(np.arange(rows)),
        notes=(*workload.notes, note),
    )


def _generated(site: SiteSpec, workload: LublinWorkload, shift: Shift) -> Workload:
    if workload.seed is None:
        raise ValueError("has no seed; ScenarioSpec.resolved() gives it one")
    jobs = generate(
        site.processors,
        seed=workload.seed,
        jobs=workload.jobs,
        duration=None if workload.days is None else workload.days * SECONDS_PER_DAY,
        load=workload.load,
    )
    source = f"Lublin-Feitelson model, seed {workload.seed}"
    # The model's own time 0 is the beginning of its window.
    jobs = window_by_days(jobs, shift="first_job" if shift == "first_job" else "none")
    return Workload(jobs, (), source)


def _recorded(
    site: SiteSpec,
    workload: TraceWorkload | SwfWorkload,
    path: Path,
    shift: Shift,
    warnings: tuple[str, ...],
) -> Workload:
    log = read_swf(path)
    prepared = prepare(log, site.processors, workload.preparation.options)
    window = workload.window
    jobs = window_by_days(
        prepared.jobs,
        window.first_day,
        window.last_day,
        first_jobs=window.first_jobs,
        shift=shift,
    )
    notes: list[tuple[str, int, str]] = list(prepared.report.rows())
    outside = len(prepared.jobs) - len(jobs)
    if outside:
        notes.append((f"outside the window ({window.words})", outside, "left out"))
    if len(jobs) == 0:
        problem = f"{path} has no job in the window ({window.words})"
        lost = prepared.report.losses(_as_key)
        nothing = f"{path} has no job" + (f": {lost}" if prepared.report.records_dropped else "")
        warnings = (*warnings, problem if outside else nothing)
    elif prepared.report.is_lossy:
        lost = prepared.report.losses(_as_key)
        warnings = (*warnings, f"{path}: {lost}")
    thanks = _acknowledgement(log.header.fields)
    origin = 0.0
    if len(jobs):
        row = int((prepared.jobs.job_id == jobs.job_id[0]).argmax())
        origin = float(prepared.jobs.submit_time[row] - jobs.submit_time[0])
    return Workload(jobs, tuple(notes), str(path), warnings, thanks, log.header.fields, origin)


def _as_key(name: str, choice: str) -> str:
    return f'preparation.{name} = "{choice}"'


def _version_warnings(key: str, path: Path) -> tuple[str, ...]:
    found = file_sha256(path)
    if found == TRACES[key].sha256:
        return ()
    text = f"{path} is another version of the log {key!r} (SHA-256 {found})"
    return (f"{text}; figures will differ from the published ones",)


def _acknowledgement(fields: Mapping[str, str]) -> str:
    givers = fields.get("Acknowledge", "")
    if not givers:
        return ""
    origin = fields.get("Installation") or fields.get("Computer") or "a site"
    return f"The log of {origin} was given by {givers} through the Parallel Workloads Archive."
