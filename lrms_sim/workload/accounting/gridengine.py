"""The accounting file of Grid Engine (Sun, Son of, Univa, Open Cluster Scheduler): colons or lines of JSON.

A line is a job or an array task (accounting(5)). Times are seconds since 1970, milliseconds in
files of Univa, microseconds in JSON. Tasks of a tightly integrated parallel job have their own
lines in addition to the job's, which counts all of its slots.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from lrms_sim.workload.accounting.records import (
    Reading,
    Record,
    Unreadable,
    filled,
    number_of,
    peeked,
    seconds_of,
    whole_of,
)

_FIELDS: Final = {
    "qname": 0, "group": 2, "owner": 3, "job_number": 5, "submission_time": 8, "start_time": 9,
    "end_time": 10, "failed": 11, "exit_status": 12, "slots": 34, "task_number": 35,
}  # fmt: skip
"""Place of what is read among the fields that colons part."""

_CATEGORY: Final = 39
_LEAST: Final = 36
"""Fields of the shortest line that has slots and task."""

_RECORD_LEAST: Final = 2
"""Characters of the shortest record: qacct passes over what has one."""

_NOT_OVER: Final = frozenset({24, 25, 99})
"""Codes of `failed`: the job runs again: migrated, rescheduled, or by its own wish."""

_PART: Final = re.compile(r"NONE|\d+\.[^\s\d]\S*")
_LIMIT: Final = re.compile(r"\b[hs]_rt=(\d+(?::\d\d){0,2})")
_MILLISECONDS: Final = 1e11
_MICROSECONDS: Final = 1e14


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs and tasks of arrays that have ended.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    first, lines = peeked(lines, _RECORD_LEAST)
    is_json = first.lstrip().startswith("{")
    jobs = (
        (number, line)
        for number, line in filled(lines)
        if len(line.strip()) >= _RECORD_LEAST and not line.startswith("#")
    )
    return reading.records(jobs, partial(_job, _row_of_json if is_json else _row))


def _row(line: str) -> Mapping[str, Any]:
    fields = line.rstrip("\r\n").split(":")
    if len(fields) < _LEAST:
        raise Unreadable(
            f"{len(fields)} fields; a record of Grid Engine's accounting file has 45, apart by colons",
            "columns",
        )
    row = {name: fields[place] for name, place in _FIELDS.items()}
    # What a job has asked for may have colons, as 12:00:00; behind it a number, the part, a number.
    rest = fields[_CATEGORY:]
    parts = (
        place
        for place in range(2, len(rest) - 1)
        if _PART.fullmatch(rest[place])
        and number_of(rest[place - 1]) is not None
        and number_of(rest[place + 1]) is not None
    )
    part = next(parts, None)
    row["pe_task_id"] = "NONE" if part is None else rest[part]
    return row | {"category": ":".join(rest if part is None else rest[: part - 1])}


def _row_of_json(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}") from error
    if not isinstance(row, dict):
        raise Unreadable(f"{row!r:.40} is no job")
    return row


def _job(row_of: Callable[[str], Mapping[str, Any]], line: str, reading: Reading) -> Record | None:
    row = row_of(line)
    if str(row.get("pe_task_id") or "NONE") != "NONE":
        reading.counts["step"] += 1
        return None
    submit, start, end = (_moment(row, f"{key}_time") for key in ("submission", "start", "end"))
    failed = _text(row, "failed").split()
    code = whole_of(failed[0]) if failed else None
    if code in _NOT_OVER:
        reading.counts["restart"] += 1
        return None
    if not submit:
        raise Unreadable("submission_time is 0; a Unix time is expected", "moment")
    if not end and start:
        reading.counts["open"] += 1
        return None
    slots = whole_of(_text(row, "slots"))
    if not slots:
        raise Unreadable(f"slots is {_text(row, 'slots')!r:.40}; at least 1 is expected", "width")
    ended_well = code == 0 and whole_of(_text(row, "exit_status")) == 0
    task = whole_of(_text(row, "task_number"))
    number = _text(row, "job_number")
    return Record(
        submit=submit,
        start=start or None,
        end=end or submit,
        processors=slots,
        requested_time=_limit(_text(row, "category")),
        status=5 if not start else int(ended_well),
        user=_text(row, "owner"),
        group=_text(row, "group"),
        queue=_text(row, "qname"),
        job=f"{number}.{task}" if task else number,
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return "" if value is None else str(value)


def _moment(row: Mapping[str, Any], key: str) -> float:
    text = _text(row, key)
    value = number_of(text)
    if value is None:
        raise Unreadable(f"{key} is {text!r:.40}; a Unix time is expected", "moment")
    if value >= _MICROSECONDS:
        return value / 1e6
    return value / 1e3 if value >= _MILLISECONDS else value


def _limit(category: str) -> float | None:
    found = _LIMIT.search(category)
    if found is None:
        return None
    seconds = number_of(found[1])
    return (seconds_of(found[1]) if seconds is None else seconds) or None
