"""HTCondor's records of jobs: what `condor_history` prints, its history files, and its event logs.

A job is a ClassAd, attributes with values (HTCondor manual, "Job ClassAd Attributes"); an event log has
ClassAds of events instead, or text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from itertools import chain, islice
from typing import Final

from lrms_sim.accounting.class_ads import Ad, first_positive, read_ads, text, whole
from lrms_sim.accounting.htcondor_events import HEADING, LIMITS, events_of_text, read_events
from lrms_sim.accounting.records import AccountingError, Record

_REMOVED: Final = 3
_COMPLETED: Final = 4
_AT_HOME: Final = frozenset({7, 12})
"""Universes whose jobs run on the machine of submission: scheduler (DAGMan is one) and local."""
_PARALLEL: Final = 11


def read(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    """Yields the jobs that have ended; others, and those that run where they are submitted, are counted.

    Args:
        lines: of the file.
        name: what errors call it.
        zone: of the access point, for the moments of an event log; a history has Unix times.
        counts: of rules that are used; they are added to.

    Raises:
        AccountingError: a line cannot be read.
    """
    rest = iter(lines)
    first: list[str] = []
    for line in rest:
        first.append(line)
        if line.strip():
            break
    everything = chain(first, rest)
    if first and HEADING.match(first[-1]):
        yield from read_events(events_of_text(everything, name, counts), name, zone, counts)
        return
    ads = read_ads(everything, name)
    begin = list(islice(ads, 1))
    if begin and "eventtypenumber" in begin[0][1]:
        yield from read_events(chain(begin, ads), name, zone, counts)
    else:
        yield from _history(chain(begin, ads), name, counts)


def _history(ads: Iterable[tuple[int, Ad]], name: str, counts: Counter[str]) -> Iterator[Record]:
    for number, ad in ads:
        if whole(ad, "JobUniverse") in _AT_HOME:
            counts["other"] += 1
        elif whole(ad, "JobStatus") not in {_COMPLETED, _REMOVED}:
            counts["open"] += 1
        elif (processors := _processors(ad)) is None:
            counts["width"] += 1
        else:
            if (whole(ad, "NumJobStarts") or 0) > 1:
                counts["restart"] += 1
            yield _job(ad, processors, f"{name}:{number}")


def _job(ad: Ad, processors: int, place: str) -> Record:
    is_completed = whole(ad, "JobStatus") == _COMPLETED
    submit = first_positive(ad, "QDate")
    # A job that was removed has no date of completion, or 0.
    end = first_positive(ad, "CompletionDate", "EnteredCurrentStatus")
    if submit is None or end is None:
        lacking = "QDate" if submit is None else "CompletionDate"
        raise AccountingError(f"{place}: the job that ends here has no {lacking}, a Unix time")
    start = first_positive(ad, "JobCurrentStartDate", "JobStartDate")
    if start is not None and not is_completed:
        # What was held before it was removed did not run until then.
        ran = first_positive(ad, "LastRemoteWallClockTime")
        if ran is None and (whole(ad, "NumJobStarts") or 1) <= 1:
            ran = first_positive(ad, "RemoteWallClockTime")
        end = end if ran is None else min(end, start + ran)
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
    )


def _processors(ad: Ad) -> int | None:
    """Returns what the job had or asked for; None where an expression says it, 1 where nothing does."""
    asked = ("CpusProvisioned", "RequestCpus")
    each = next((found for key in asked if (found := whole(ad, key)) is not None), None)
    if each is None and any(key.lower() in ad for key in asked):
        return None
    hosts = whole(ad, "MaxHosts") if whole(ad, "JobUniverse") == _PARALLEL else 1
    count = (1 if each is None else each) * (hosts or 1)
    return count if count > 0 else None
