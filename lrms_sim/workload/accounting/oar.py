"""Jobs of OAR: output of `oarstat -J`, answers of its REST interface, and its job table as CSV.

Names are those of oarstat (`submissionTime`) or of the database (`submission_time`; OAR
documentation, "Database scheme"). A job holds resources, which are cores at most sites.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lrms_sim.workload.accounting.records import (
    AccountingError,
    Reading,
    Record,
    Unreadable,
    moment_of,
    number_of,
    peeked,
    seconds_of,
    whole_of,
)
from lrms_sim.workload.accounting.table import csv_rows

_ENDED: Final = {"terminated": 1, "error": 0, "finishing": 0}
_MESSAGE: Final = re.compile(r"\bR=(\d{1,9})(?:,W=(\d{1,6}:\d{1,2}(?::\d{1,2})?))?")
_WANTED: Final = re.compile(r"\bwalltime=(\d{1,6}:\d{1,2}(?::\d{1,2})?)")


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended.

    Raises:
        AccountingError: it is no JSON or holds no jobs, or a job cannot be read, and that is an
            error.
    """
    first, lines = peeked(lines)
    if first.lstrip()[:1] in {"{", "["}:
        rows: Iterable[tuple[int | None, Any]] = _of_json("\n".join(lines), reading)
    else:
        rows = csv_rows(lines, (), None, reading)
    return reading.records(rows, _job)


def _of_json(text: str, reading: Reading) -> Iterator[tuple[None, Any]]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise AccountingError(f"{reading.name}:{error.lineno}: no JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise AccountingError(f"{reading.name}: no JSON: {error}") from error
    if isinstance(document, dict):
        document = document.get("items", document.get("jobs", document))
    if isinstance(document, dict):
        # By the number of the job, which it need not say again.
        document = [
            {"Job_Id": key} | job if isinstance(job, dict) else job for key, job in document.items()
        ]
    if not isinstance(document, list):
        raise AccountingError(f"{reading.name}: {document!r:.40} in place of a list of jobs")
    for job in document:
        yield None, job


def _job(row: object, reading: Reading) -> Record | None:
    if not isinstance(row, Mapping):
        raise Unreadable(f"{row!r:.40} is no job")
    job = _text(row, "Job_Id", "job_id", "id")
    state = _text(row, "state").lower()
    if state not in _ENDED:
        reading.counts["open"] += 1
        return None
    submit = _moment(row, reading, job, "submissionTime", "submission_time")
    start = _moment(row, reading, job, "startTime", "start_time")
    end = _moment(row, reading, job, "stopTime", "stop_time")
    if not submit or not end:
        lacking = "submissionTime" if not submit else "stopTime"
        raise Unreadable(f"job {job} has no {lacking}, a Unix time or a date", "moment")
    message = _MESSAGE.search(_text(row, "message"))
    processors = _resources(row) or (whole_of(message[1]) if message else None)
    if not processors:
        if not start:
            reading.counts["cancelled"] += 1
            return None
        raise Unreadable(f"nothing says how many resources job {job} had", "width")
    code = _text(row, "exit_code")
    ended_well = _ENDED[state] == 1 and code in {"", "0"}
    return Record(
        submit=submit,
        start=start or None,
        end=end,
        processors=processors,
        requested_time=_limit(row, message),
        status=5 if not start else int(ended_well),
        user=_text(row, "owner", "job_user", "user"),
        group=_text(row, "project"),
        queue=_text(row, "queue", "queue_name"),
        job=job,
    )


def _text(row: Mapping[str, Any], *keys: str) -> str:
    found = (row.get(key) for key in keys)
    return next((str(value) for value in found if value is not None and value != ""), "")


def _moment(row: Mapping[str, Any], reading: Reading, job: str, *keys: str) -> float | None:
    text = _text(row, *keys)
    if text in {"", "NULL"}:
        return None
    moment = moment_of(text, reading.zone)
    if moment is None:
        raise Unreadable(f"{keys[0]} of job {job} is {text!r:.40}; a moment is expected", "moment")
    return moment


def _resources(row: Mapping[str, Any]) -> int | None:
    for key in ("assigned_resources", "resources", "nb_resources", "resource_count"):
        value = row.get(key)
        if isinstance(value, list | Mapping) and value:
            return len(value)
        if isinstance(value, str | int) and (count := whole_of(str(value))):
            return count
    return None


def _limit(row: Mapping[str, Any], message: re.Match[str] | None) -> float | None:
    text = _text(row, "walltime", "moldable_walltime")
    wanted = _WANTED.search(_text(row, "wanted_resources", "initial_request"))
    said = (text, message[2] if message else None, wanted[1] if wanted else None)
    for one in filter(None, said):
        seconds = number_of(one)
        # OAR leaves zeros out: 12:0:0.
        spelled = ":".join(part.zfill(2) for part in one.split(":"))
        seconds = seconds_of(spelled) if seconds is None else seconds
        if seconds:
            return seconds
    return None
