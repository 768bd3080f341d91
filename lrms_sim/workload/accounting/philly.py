"""Job logs of Microsoft's Philly clusters (Jeon et al. 2019), `cluster_job_log`: a list of jobs as JSON.

A job has attempts, each with its beginning, end, and the GPUs that it had on each machine. It counts from its submission, the
beginning of its first attempt and the end of its last one, and a processor is a GPU.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from lrms_sim.workload.accounting.json_text import objects_in
from lrms_sim.workload.accounting.records import Reading, Record, Unreadable, moment_of
from lrms_sim.workload.requests import Gpus, Request, RequestError

_STATUS: Final = {"Pass": 1, "Failed": 0, "Killed": 5}
_MISSING: Final = frozenset({"", "None", "null"})


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended; times are of the zone of the site.

    Raises:
        AccountingError: a job cannot be read, and that is an error.
    """
    yield from reading.records(objects_in("\n".join(lines), reading), _job)


def _job(job: Any, reading: Reading) -> Record | None:
    if not isinstance(job, dict):
        raise Unreadable(f"{type(job).__name__} where a job is expected")
    submit = _moment(job, "submitted_time", reading)
    if submit is None:
        raise Unreadable("nothing says when the job was submitted", "moment")
    attempts = [one for one in job.get("attempts") or [] if isinstance(one, dict)]
    begun = [one for one in attempts if _moment(one, "start_time", reading) is not None]
    start = _moment(begun[0], "start_time", reading) if begun else None
    end = _moment(begun[-1], "end_time", reading) if begun else submit
    status = _STATUS.get(str(job.get("status")), -1)
    if end is None or (start is None and status == -1):
        reading.counts["open"] += 1
        return None
    gpus = [_gpus(one) for one in attempts if _gpus(one)]
    if not gpus:
        reading.counts["width"] += 1
        return None
    held = gpus[0]
    width = sum(held)
    try:
        request = Request(width, nodes_min=len(held), nodes_max=len(held), gpus=Gpus(width))
    except RequestError:
        reading.counts["contradiction"] += 1
        request = None
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=width,
        requested_time=None,
        status=status if start is not None else 5,
        user=_name(job, "user"),
        group="",
        queue=_name(job, "vc"),
        job=_name(job, "jobid"),
        request=request,
    )


def _gpus(attempt: dict[str, Any]) -> list[int]:
    """Returns how many GPUs an attempt had on each machine, those without left out."""
    machines = [one for one in attempt.get("detail") or [] if isinstance(one, dict)]
    counts = [len(one["gpus"]) for one in machines if isinstance(one.get("gpus"), list)]
    return [count for count in counts if count]


def _moment(said: dict[str, Any], key: str, reading: Reading) -> float | None:
    text = said.get(key)
    if text is None or str(text) in _MISSING:
        return None
    moment = moment_of(str(text), reading.zone)
    if moment is None:
        raise Unreadable(f"{key} is {text!r:.40}; a moment is expected", "moment")
    return moment


def _name(job: dict[str, Any], key: str) -> str:
    text = str(job.get(key) or "")
    return "" if text in _MISSING else text
