"""Output of `sacct --json`, Slurm's accounting.

The format differs between versions of Slurm's data parser (v0.0.37 to v0.0.43): a number is plain,
or an object `{"set": true, "infinite": false, "number": 4}`; a state is a word, or a list of state
and flags. Timestamps are always Unix times, limits minutes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lrms_sim.workload.accounting.json_text import objects_in
from lrms_sim.workload.accounting.records import Reading, Record, Unreadable
from lrms_sim.workload.accounting.tres import Asked, Tres, request_of_tres
from lrms_sim.workload.requests import Memory, Request

STATES: Final = {"COMPLETED": 1, "CANCELLED": 5}
"""Status of the standard by job state; any other is a failure."""

OPEN: Final = frozenset(
    {
        *("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING", "CONFIGURING"),
        *("REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SIGNALING", "STAGE_OUT", "STOPPED"),
    }
)
"""States of jobs that have not ended."""

_PER_CORE: Final = 1 << 63

_UNSET: Final = frozenset({0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF})
"""Numbers that Slurm uses for "unset" and "infinite"."""


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs; those that have not ended are counted and left out. Steps are part of their jobs.

    Raises:
        AccountingError: something cannot be read, and that is an error.
    """
    return reading.records(objects_in("\n".join(lines), reading, "jobs"), _record)


def _record(job: object, reading: Reading) -> Record | None:
    if not isinstance(job, Mapping):
        raise Unreadable(f"{job!r:.40} is no job")
    times = _inner(job, "time")
    state = _inner(job, "state").get("current", job.get("state"))
    words = state if isinstance(state, list) else [state]
    word = str(words[0]).upper() if words and words[0] else "PENDING"
    submit, start, end = (_number(times.get(key)) for key in ("submission", "start", "end"))
    if word in OPEN or not end:
        reading.counts["open"] += 1
        return None
    if not submit:
        raise Unreadable(
            f"time.submission of job {job.get('job_id')!r:.40} is {times.get('submission')!r:.40}; a "
            "Unix time is expected",
            "moment",
        )
    if not start or (word == "CANCELLED" and start >= end):
        start = None  # Slurm notes the cancel as the start of what never ran
    limit = _number(times.get("limit"))
    processors = _processors(job)
    if processors is None:
        if start is None:
            reading.counts["cancelled"] += 1
            return None
        raise Unreadable(
            f"nothing says how many processors job {job.get('job_id')!r:.40} had", "width"
        )
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=processors,
        requested_time=60.0 * limit if limit else None,
        status=STATES.get(word, 0),
        user=str(job.get("user") or _inner(job, "association").get("user") or ""),
        group=str(job.get("group") or ""),
        queue=str(job.get("partition") or ""),
        job=_name(job),
        request=_request(job, processors, reading),
    )


def _inner(job: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = job.get(key)
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    """Returns a number, plain or wrapped; `None` if unset or infinite."""
    if isinstance(value, Mapping):
        if value.get("set") is False or value.get("infinite") is True:
            return None
        value = value.get("number")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1 << 62 and value not in _UNSET else None


def _processors(job: Mapping[str, Any]) -> int | None:
    tres = _inner(job, "tres")
    ways = [
        _tres(tres.get("allocated")).cpus,
        _number(_inner(job, "required").get("CPUs")),
        _tres(tres.get("requested")).cpus,
    ]
    return next((int(way) for way in ways if way and way >= 1), None)


def _request(job: Mapping[str, Any], processors: int, reading: Reading) -> Request | None:
    tres, required = _inner(job, "tres"), _inner(job, "required")
    nodes = _number(job.get("allocation_nodes"))
    asked = Asked(_memory(required), int(nodes or 0), constraint=str(job.get("constraints") or ""))
    held = _tres(tres.get("allocated")).or_else(_tres(tres.get("requested")))
    return request_of_tres(processors, held, asked, reading)


def _memory(required: Mapping[str, Any]) -> Memory | None:
    core, node = (_number(required.get(f"memory_per_{unit}")) for unit in ("cpu", "node"))
    before = required.get("memory")
    if isinstance(before, int) and not isinstance(before, bool) and before > 0:
        # Of both in one number: the highest of 64 bits says that it is for each core.
        if before >= _PER_CORE:
            core = core or _number(before - _PER_CORE)
        else:
            node = node or _number(before)
    if core:
        return Memory(int(core), "core")
    return Memory(int(node), "node") if node else None


def _tres(entries: object) -> Tres:
    found = Tres()
    for entry in entries if isinstance(entries, list) else []:
        count = _number(entry.get("count")) if isinstance(entry, Mapping) else None
        if count is not None:
            found.add(str(entry.get("type") or ""), str(entry.get("name") or ""), int(count))
    return found


def _name(job: Mapping[str, Any]) -> str:
    array = _inner(job, "array")
    task = _number(array.get("task_id"))
    whole = _number(array.get("job_id"))
    if whole and task is not None:
        return f"{whole:.0f}_{task:.0f}"
    return str(job.get("job_id") or "")
