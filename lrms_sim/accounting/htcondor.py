"""The history of HTCondor: what `condor_history -long`, `-json` or `-jsonl` prints, and its history files.

A job is a ClassAd, attributes with values; names of attributes are the same in upper and lower case
(HTCondor manual, "Job ClassAd Attributes"). Values that are expressions are not worked out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from itertools import chain
from typing import Any, Final

from lrms_sim.accounting.records import AccountingError, Record
from lrms_sim.preparation import TIME_MAX

_REMOVED: Final = 3
_COMPLETED: Final = 4
_AT_HOME: Final = frozenset({7, 12})
"""Universes whose jobs run on the machine of submission: scheduler (DAGMan is one) and local."""
_PARALLEL: Final = 11

Ad = dict[str, Any]


def read(lines: Iterable[str], name: str, zone: tzinfo, counts: Counter[str]) -> Iterator[Record]:
    """Yields the jobs that have ended; others, and those that run where they are submitted, are counted.

    Args:
        lines: of the file.
        name: what errors call it.
        zone: not used.
        counts: of rules that are used; they are added to.

    Raises:
        AccountingError: a line cannot be read.
    """
    del zone  # HTCondor writes Unix times
    for number, ad in _ads(lines, name):
        if _whole(ad, "JobUniverse") in _AT_HOME:
            counts["other"] += 1
        elif _whole(ad, "JobStatus") not in {_COMPLETED, _REMOVED}:
            counts["open"] += 1
        elif (processors := _processors(ad)) is None:
            counts["width"] += 1
        else:
            if (_whole(ad, "NumJobStarts") or 0) > 1:
                counts["restart"] += 1
            yield _job(ad, processors, f"{name}:{number}")


def _job(ad: Ad, processors: int, place: str) -> Record:
    is_completed = _whole(ad, "JobStatus") == _COMPLETED
    submit = _first(ad, "QDate")
    # A job that was removed has no date of completion, or 0.
    end = _first(ad, "CompletionDate", "EnteredCurrentStatus")
    if submit is None or end is None:
        lacking = "QDate" if submit is None else "CompletionDate"
        raise AccountingError(f"{place}: the job that ends here has no {lacking}, a Unix time")
    start = _first(ad, "JobCurrentStartDate", "JobStartDate")
    if start is not None and not is_completed:
        # What was held before it was removed did not run until then.
        ran = _first(ad, "LastRemoteWallClockTime")
        if ran is None and (_whole(ad, "NumJobStarts") or 1) <= 1:
            ran = _first(ad, "RemoteWallClockTime")
        end = end if ran is None else min(end, start + ran)
    failed = bool(_whole(ad, "ExitCode")) or ad.get("exitbysignal") is True
    limits = ("AllowedExecuteDuration", "AllowedJobDuration", "MaxRuntime")
    return Record(
        submit=submit,
        start=start,
        end=end,
        processors=processors,
        requested_time=_first(ad, *limits),
        status=(0 if failed else 1) if is_completed else 5,
        user=_text(ad, "Owner", "User"),
        group=_text(ad, "AcctGroup", "AccountingGroup"),
        queue="",
    )


def _processors(ad: Ad) -> int | None:
    """Returns what the job had or asked for; None where an expression says it, 1 where nothing does."""
    asked = ("CpusProvisioned", "RequestCpus")
    each = next((found for key in asked if (found := _whole(ad, key)) is not None), None)
    if each is None and any(key.lower() in ad for key in asked):
        return None
    hosts = _whole(ad, "MaxHosts") if _whole(ad, "JobUniverse") == _PARALLEL else 1
    count = (1 if each is None else each) * (hosts or 1)
    return count if count > 0 else None


def _number(ad: Ad, key: str) -> float | None:
    value = ad.get(key.lower())
    return float(value) if isinstance(value, (int, float)) and abs(value) <= TIME_MAX else None


def _whole(ad: Ad, key: str) -> int | None:
    value = _number(ad, key)
    return None if value is None else int(value)


def _first(ad: Ad, *keys: str) -> float | None:
    """Returns the first of some attributes that is a number of more than 0."""
    values = (_number(ad, key) for key in keys)
    return next((value for value in values if value is not None and value > 0), None)


def _text(ad: Ad, *keys: str) -> str:
    values = (ad.get(key.lower()) for key in keys)
    return next((value for value in values if isinstance(value, str)), "")


def _ads(lines: Iterable[str], name: str) -> Iterator[tuple[int, Ad]]:
    """Yields the ClassAds of a file, whichever way it is written, each with the line of its end."""
    rest = iter(lines)
    first: list[str] = []
    for line in rest:
        first.append(line)
        if line.strip():
            break
    if first and first[-1].lstrip()[:1] in {"[", "{"}:
        yield from _of_json("".join(chain(first, rest)), name)
    else:
        yield from _of_lines(chain(first, rest), name)


def _of_lines(lines: Iterable[str], name: str) -> Iterator[tuple[int, Ad]]:
    ad: Ad = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        # A history file ends each job with a line of stars, -long with an empty one.
        if not text or text.startswith("***"):
            if ad:
                yield number, ad
            ad = {}
        elif not text.startswith("--"):  # the heading of condor_q
            key, found, value = text.partition("=")
            if not found or not key.strip().isidentifier():
                raise AccountingError(
                    f"{name}:{number}: no line Name = value, as condor_history -long writes"
                )
            ad[key.strip().lower()] = _value(value.strip())
    if ad:
        yield number, ad


def _value(text: str) -> Any:
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        return text[1:-1].replace('\\"', '"')
    lower = text.lower()
    if lower in {"true", "false"}:
        return lower == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None  # undefined, or an expression


def _of_json(text: str, name: str) -> Iterator[tuple[int, Ad]]:
    decoder = json.JSONDecoder()
    place = line = 0
    while True:
        begin = place
        while place < len(text) and text[place] in "[], \t\r\n":
            place += 1
        if place == len(text):
            return
        line += text.count("\n", begin, place)
        try:
            found, end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError) as error:
            at = text.count("\n", 0, getattr(error, "pos", place)) + 1
            raise AccountingError(
                f"{name}:{at}: no JSON: {getattr(error, 'msg', 'too deep')}"
            ) from error
        if not isinstance(found, dict):
            raise AccountingError(f"{name}:{line + 1}: {found!r:.40} is no job")
        line += text.count("\n", place, end)
        place = end
        yield line + 1, {key.lower(): value for key, value in found.items()}
