"""A format of `lrms-sim import`: a job a line, as `submit start end limit processors user`, times in Unix seconds."""

from collections.abc import Iterable, Iterator

from lrms_sim.workload.accounting.records import (
    Reading,
    Record,
    Unreadable,
    filled,
    number_of,
    whole_of,
)


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs; lines that cannot be read are counted, or are errors with `--unreadable error`."""
    return reading.records(filled(lines), _job)


def _job(line: str, _: Reading) -> Record:
    words = line.split()
    if len(words) != 6:
        raise Unreadable(f"{len(words)} words; there are to be 6", "columns")
    submit, start, end, limit = (number_of(word) for word in words[:4])
    processors = whole_of(words[4])
    if submit is None or start is None or end is None:
        raise Unreadable(f"{' '.join(words[:3])!r} are no three times", "moment")
    if not processors:
        raise Unreadable(f"{words[4]!r} is no number of processors", "width")
    return Record(
        submit,
        start,
        end,
        processors,
        requested_time=limit,
        status=1,
        user=words[5],
        group="",
        queue="",
    )
