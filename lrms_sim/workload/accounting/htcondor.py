"""HTCondor's job records: output of `condor_history`, history files, and event logs.

A job is a ClassAd (HTCondor manual, "Job ClassAd Attributes"); an event log has ClassAds of events,
or text.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from lrms_sim.workload.accounting.class_ads import Ad, first_positive, read_ads, text, whole
from lrms_sim.workload.accounting.htcondor_events import (
    HEADING,
    LIMITS,
    events_of_text,
    read_events,
)
from lrms_sim.workload.accounting.records import Reading, Record, Unreadable

_REMOVED: Final = 3
_COMPLETED: Final = 4
_AT_HOME: Final = frozenset({7, 12})
"""Universes whose jobs run on the machine of submission: scheduler (DAGMan is one) and local."""
_PARALLEL: Final = 11
_HEAD_LINES: Final = 40


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended; others, and those that run on the access point, are counted.

    The zone of `reading` is the access point's, for event logs; a history has Unix times.

    Raises:
        AccountingError: a line cannot be read, and that is an error.
    """
    rest = iter(lines)
    # Some line may be odd; one of the first tells an event log all the same.
    first = list(islice(rest, _HEAD_LINES))
    everything = chain(first, rest)
    if any(map(HEADING.match, first)):
        yield from read_events(events_of_text(everything, reading), reading)
        return
    ads = read_ads(everything, reading)
    begin = list(islice(ads, 1))
    if begin and "eventtypenumber" in begin[0][1]:
        yield from read_events(chain(begin, ads), reading)
    else:
        yield from reading.records(chain(begin, ads), _job)


def _job(ad: Ad, reading: Reading) -> Record | None:
    status = whole(ad, "JobStatus")
    if whole(ad, "JobUniverse") in _AT_HOME:
        reading.counts["other"] += 1
        return None
    if status not in {_COMPLETED, _REMOVED}:
        reading.counts["open"] += 1
        return None
    processors = _processors(ad)
    if processors is None:
        reading.counts["width"] += 1
        return None
    is_completed = status == _COMPLETED
    submit = first_positive(ad, "QDate")
    # A job that was removed has no date of completion, or 0.
    end = first_positive(ad, "CompletionDate", "EnteredCurrentStatus")
    if submit is None or end is None:
        lacking = "QDate" if submit is None else "CompletionDate"
        raise Unreadable(f"the job that ends here has no {lacking}, a Unix time", "moment")
    start = first_positive(ad, "JobCurrentStartDate", "JobStartDate")
    if start is not None and not is_completed:
        # What was held before it was removed did not run until then.
        ran = first_positive(ad, "LastRemoteWallClockTime")
        if ran is None and (whole(ad, "NumJobStarts") or 1) <= 1:
            ran = first_positive(ad, "RemoteWallClockTime")
        end = end if ran is None else min(end, start + ran)
    reading.counts["restart"] += (whole(ad, "NumJobStarts") or 0) > 1
    failed = bool(whole(ad, "ExitCode")) or ad.get("exitbysignal") is True
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=processors,
        requested_time=first_positive(ad, *LIMITS),
        status=(0 if failed else 1) if is_completed else 5,
        user=text(ad, "Owner", "User"),
        group=text(ad, "AcctGroup", "AccountingGroup"),
        queue="",
        job=_name(ad),
    )


def _name(ad: Ad) -> str:
    cluster, process = whole(ad, "ClusterId"), whole(ad, "ProcId")
    named = "" if cluster is None else f"{cluster}.{process or 0}"
    return text(ad, "GlobalJobId") or named


def _processors(ad: Ad) -> int | None:
    """Returns the processors held or requested; `None` for an expression, 1 if missing."""
    asked = ("CpusProvisioned", "MachineAttrCpus0", "RequestCpus")
    each = next((found for key in asked if (found := whole(ad, key)) is not None), None)
    if each is None and any(key.lower() in ad for key in asked):
        return None
    hosts = whole(ad, "MaxHosts") if whole(ad, "JobUniverse") == _PARALLEL else 1
    count = (1 if each is None else each) * (hosts or 1)
    return count if count > 0 else None
