"""Workloads of the simulator Batsim, in and out: JSON with jobs and profiles.

A job says what a user asks for, its profile what happens when it runs. The run time comes from the
profile: the delay, the operations over the processor speed if that is given, else the time limit if
there is one. Profile names are those of Batsim 1 to 5. Output has `delay` profiles only and reads
back bit for bit. Of resources Batsim has `res` alone; what else a job asks for stands in `extra_data`,
which Batsim ignores, as `request` with the fields of `lrms_sim.workload.request_text`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final, Literal

import numpy as np

from lrms_sim.workload.accounting.records import (
    AccountingError,
    Import,
    Reading,
    Unreadable,
    counted,
    memory_column,
)
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.request_text import fields_of, request_of
from lrms_sim.workload.requests import Request, RequestError
from lrms_sim.workload.swf_log import SwfHeader, SwfLog

NOT_CARRIED: Final = (
    *("wait_time", "cpu_time", "memory_used", "memory_requested", "group", "executable"),
    *("queue", "partition", "preceding_job", "think_time"),
)
"""Columns of a log for which Batsim's workloads have no place."""

_DELAY: Final = frozenset({"delay", "DelayProfile"})
_EACH: Final = frozenset({"parallel_homogeneous", "msg_par_hg", "ParallelTaskHomogeneousProfile"})
_TOTAL: Final = frozenset({"parallel_homogeneous_total", "msg_par_hg_tot"})
_MATRIX: Final = frozenset({"parallel", "msg_par", "ParallelTaskProfile"})
_SEQUENCE: Final = frozenset({"composed", "SequentialCompositionProfile"})
_SPREAD: Final = "DefinedAmountsSpreadUniformly"
_DEPTH_MAX: Final = 20
"""Sequences of sequences go no deeper."""

_Job = tuple[float, int, Mapping[str, Any], float, float | None, bool]


def read_workload(
    text: str,
    *,
    name: str,
    speed: float | None = None,
    rng: np.random.Generator | None = None,
    unreadable: Literal["drop", "error"] = "drop",
) -> Import:
    """Reads a workload.

    Job numbers are kept (`7` and `w0!7` are 7) if they are unique. Times are those of the file,
    since its time 0 is that of the simulation.

    Args:
        text: of the file.
        name: of the file in errors.
        speed: operations a second of a processor, for profiles in operations.
        rng: draws new numbers for the users; `None` keeps theirs.
        unreadable: `drop` and count jobs that cannot be read, or stop with an `error`.

    Raises:
        AccountingError: it is no JSON or no workload, or a job cannot be read and that is an error;
            the text names line or job.
    """
    jobs, profiles, size = _document(text, name)
    reading = Reading(name, strict=unreadable == "error")
    counts = reading.counts
    reader = _Reader(profiles, speed, counts)
    kept: list[_Job] = []
    for place, job in enumerate(jobs):
        try:
            found = reader.job(job)
        except Unreadable as fault:
            called = job.get("id") if isinstance(job, dict) else None
            where = f"jobs[{place}], {called!r:.40}"
            reading.leave_out(None, Unreadable(f"{where}: {fault}", fault.rule))
            continue
        if found is not None:
            kept.append((found[0], place, *found[1:]))
    kept.sort(key=lambda one: (one[0], one[1]))
    numbers = [_number_of(one[2].get("id")) for one in kept]
    if None in numbers or len(set(numbers)) < len(numbers):
        counts["name"] += len(kept)
        numbers = list(range(1, len(kept) + 1))
    counts["request"] += sum(one[4] is None for one in kept)
    header: dict[str, object] = {"Version": 2.2, "MaxJobs": len(kept)}
    header |= {} if size is None else {"MaxProcs": size}
    header["Note"] = "imported from a workload of Batsim by lrms-sim"
    width = [one[2]["res"] for one in kept]
    users = np.array([_user(one[2]) for one in kept], np.int64)
    requests = [_request(one[2], counts) for one in kept]
    if rng is not None:
        known, which = np.unique(users[users >= 0], return_inverse=True)
        users[users >= 0] = 1 + rng.permutation(len(known))[which]
    log = SwfLog.from_columns(
        {
            "job_id": np.array(numbers, np.int64),
            "submit_time": [one[0] for one in kept],
            "run_time": [one[3] for one in kept],
            "processors_allocated": width,
            "processors_requested": width,
            "requested_time": [-1.0 if one[4] is None else one[4] for one in kept],
            "memory_requested": [memory_column(request) for request in requests],
            "status": [int(one[5]) for one in kept],
            "user": users,
        },
        SwfHeader.from_fields(header),
        name,
    )
    return Import(log, counted(counts), {}, dict(reading.examples), tuple(requests))


def _document(
    text: str, name: str
) -> tuple[list[Any], Mapping[str, Mapping[str, Any]], int | None]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise AccountingError(f"{name}:{error.lineno}: no JSON: {error.msg}") from error
    except RecursionError as error:
        raise AccountingError(f"{name}: no JSON: too deep") from error
    document = document if isinstance(document, dict) else {}
    jobs, profiles = document.get("jobs"), document.get("profiles")
    if not isinstance(jobs, list) or not isinstance(profiles, dict):
        raise AccountingError(
            f"{name}: no workload of Batsim: an object with `jobs`, a list, and `profiles`, an "
            "object, is expected"
        )
    for key, profile in profiles.items():
        if not isinstance(profile, dict) or not isinstance(profile.get("type"), str):
            raise AccountingError(f"{name}: profile {key!r:.40} has no type")
    (size,) = _values(document, "nb_res")
    return jobs, profiles, size if _is_whole(size) and size >= 1 else None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parameters and counts of one import."""

    profiles: Mapping[str, Mapping[str, Any]]
    speed: float | None
    counts: Counter[str]

    def job(self, job: object) -> tuple[float, Mapping[str, Any], float, float | None, bool] | None:
        """Returns submission, the job, run time, limit and success; `None` if the job is left out.

        Raises:
            Unreadable: it is no job.
        """
        if not isinstance(job, dict):
            raise Unreadable(f"is {job!r:.40}, no object")
        submit, limit, width = _values(job, "subtime", "walltime", "res")
        for key, value, good, words, rule in (
            ("subtime", submit, _is_number(submit) and submit >= 0, "seconds from 0", "moment"),
            ("res", width, _is_whole(width) and width >= 1, "a whole number from 1", "width"),
            ("walltime", limit, limit is None or _is_number(limit), "seconds", "moment"),
        ):
            if not good:
                raise Unreadable(f"{key} is {value!r:.40}; expected {words}", rule)
        key = str(job.get("profile"))
        if key not in self.profiles:
            raise Unreadable(f"there is no profile {key!r:.40}")
        profile = self.profiles[key]
        rules: set[str] = set()
        try:
            run = self.run_time(profile, width, rules)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise Unreadable(
                f"profile {key!r:.40} is not what one of type {profile['type']!r:.40} has to be"
            ) from error
        limit = float(limit) if limit is not None and limit > 0 else None
        if run is None:
            rules = {"endless" if limit is None else "limit"}
        self.counts.update(rules)
        lasts = limit if run is None else run
        if lasts is None:
            return None
        return float(submit), job, lasts, limit, not profile.get("ret")

    def run_time(
        self, profile: Mapping[str, Any], width: int, rules: set[str], depth: int = 0
    ) -> float | None:
        """Returns seconds and adds the rules used; `None` if the time is unknown."""
        kind = profile["type"]
        if kind in _DELAY:
            return _seconds(profile["delay"])
        if kind in _SEQUENCE and depth < _DEPTH_MAX:
            parts = [
                self.run_time(self.profiles[each], width, rules, depth + 1)
                for each in profile["seq"]
            ]
            known = [part for part in parts if part is not None]
            repeat = int(profile.get("repeat", 1))
            return _seconds(repeat * math.fsum(known)) if len(known) == len(parts) else None
        if kind not in _EACH | _TOTAL | _MATRIX or self.speed is None:
            return None
        moves_data = bool(np.any(np.asarray(profile.get("com", 0), np.float64)))
        is_spread = kind in _TOTAL or profile.get("generation_strategy") == _SPREAD
        cpu = profile.get("cpu", 0)
        # The parts of a parallel task progress alike: that with most operations says how long it takes.
        most = max(cpu, default=0) if isinstance(cpu, list) else cpu
        if moves_data and not most:
            return None  # only the network says how long it takes
        rules |= {"work", "transfer"} if moves_data else {"work"}
        return _seconds(most) / self.speed / (width if is_spread else 1)


def _values(entry: Mapping[str, Any], *keys: str) -> Iterator[Any]:
    return (entry.get(key) for key in keys)


def _seconds(value: Any) -> float:
    if not _is_number(value) or value < 0:
        raise ValueError
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value < 1 << 31


def _number_of(name: object) -> int | None:
    text = str(name).rpartition("!")[2]
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _user(job: Mapping[str, Any]) -> int:
    user = job.get("user")
    if user is None:
        user = _extra(job).get("user")
    number = _number_of(user)
    return number if number is not None and 0 <= number < 1 << 31 else -1


def _extra(job: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = job.get("extra_data")
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except (json.JSONDecodeError, RecursionError):
            return {}
    return extra if isinstance(extra, dict) else {}


def _request(job: Mapping[str, Any], counts: Counter[str]) -> Request | None:
    fields = _extra(job).get("request")
    if not isinstance(fields, dict):
        return None
    try:
        request = request_of(fields, job["res"])
    except RequestError:
        request = None
    if request is None or request.processors != job["res"]:
        counts["contradiction"] += 1
        return None
    return None if request.processors_alone else request


def write_workload(
    file: IO[str],
    jobs: JobTable,
    processors: int,
    requests: Mapping[int, Request] | None = None,
) -> None:
    """Writes jobs as a workload; the same jobs always give the same text.

    A job's user, and its request if `requests` has one of its number, go into `extra_data`, which Batsim
    ignores; `processors` becomes `nb_res`.

    Raises:
        ValueError: a job is submitted before time 0, which Batsim does not have.
    """
    if len(jobs) and jobs.submit_time[0] < 0:
        raise ValueError(
            f"job {jobs.job_id[0]} is submitted at {jobs.submit_time[0]:g} s; Batsim begins at 0"
        )
    file.write(f'{{\n"description": "written by lrms-sim",\n"nb_res": {processors},\n"jobs": [\n')
    _lines(file, (json.dumps(each) for each in _jobs(jobs, requests or {})))
    file.write('],\n"profiles": {\n')
    times = np.unique(jobs.run_time).tolist()
    _lines(file, (f'"{time!r}": {{"type": "delay", "delay": {time!r}}}' for time in times))
    file.write("}\n}\n")


def _lines(file: IO[str], entries: Iterator[str]) -> None:
    separator = ""
    for entry in entries:
        file.write(separator + entry)
        separator = ",\n"
    file.write("\n")


def _jobs(jobs: JobTable, requests: Mapping[int, Request]) -> Iterator[dict[str, object]]:
    columns = (column.tolist() for column in jobs.columns().values())
    for job_id, submit, processors, limit, run, user in zip(*columns, strict=True):
        job: dict[str, object] = {"id": str(job_id), "subtime": submit, "res": processors}
        job |= {"profile": repr(run), "walltime": limit}
        extra: dict[str, object] = {} if user < 0 else {"user": user}
        if job_id in requests:
            extra["request"] = fields_of(requests[job_id])
        yield job | {"extra_data": json.dumps(extra)} if extra else job
