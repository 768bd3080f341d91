"""LSF's job log, `lsb.acct`: fields separated by blanks, texts in quotes.

A record begins with its kind; that of an ended job or array task is JOB_FINISH (IBM Spectrum LSF,
"lsb.acct"). Fields are located from the start, since lists of hosts and pairs are preceded by their
lengths. Newer versions append fields, among them the time limit and the slots.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lrms_sim.workload.accounting.records import Reading, Record, Unreadable, number_of, whole_of

_FIELD: Final = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
_KIND: Final = re.compile(r'"?[A-Z][A-Z_]+"? ')
_HOSTS: Final = re.compile(r"(\d{1,9})\*")
_LINES_MAX: Final = 200
"""Most lines of one record: a command may have line ends."""

_DONE: Final = 64
_RUSAGE: Final = 19


def read(lines: Iterable[str], reading: Reading) -> Iterator[Record]:
    """Yields the jobs that have ended; records of other kinds are counted.

    Raises:
        AccountingError: a record cannot be read, and that is an error.
    """
    return reading.records(_records(lines, reading), _job)


def _records(lines: Iterable[str], reading: Reading) -> Iterator[tuple[int, str]]:
    """Yields records with the number of their first line; an open quote continues a record."""
    begun, first = "", 0
    count = 0
    for number, line in enumerate(lines, start=1):
        if begun and not _KIND.match(line) and count < _LINES_MAX:
            begun += f"\n{line}"
            count += 1
        else:
            if begun:
                reading.leave_out(first, Unreadable("a quote is open at the end of the record"))
            begun, first, count = line, number, 1
        if begun.count('"') % 2 == 0:
            if begun.strip() and not begun.startswith("#"):
                yield first, begun
            begun = ""
    if begun:
        reading.leave_out(first, Unreadable("a quote is open at the end of the record"))


def _job(text: str, reading: Reading) -> Record | None:
    fields = [
        found[1].replace('""', '"') if found[1] is not None else found[2]
        for found in _FIELD.finditer(text)
    ]
    if not fields or not re.fullmatch(r"[A-Z_]{3,}", fields[0]):
        raise Unreadable('no record of lsb.acct, as "JOB_FINISH" "10.1" 1704067200 7 …')
    if fields[0] != "JOB_FINISH":
        reading.counts["other"] += 1
        return None
    walk = _Walk(fields)
    walk.skip(2)  # kind and version
    end = walk.moment("eventTime")
    job = walk.next()
    walk.skip(2)
    asked = whole_of(walk.next())
    submit = walk.moment("submitTime")
    walk.skip(2)
    start = walk.moment("startTime")
    user, queue = walk.next(), walk.next()
    walk.skip(9)
    walk.skip(walk.length("numAskedHosts"))
    hosts = walk.take(walk.length("numExHosts"))
    status = whole_of(walk.next())
    walk.skip(3 + _RUSAGE + 1)
    project = walk.next() if walk.has(1) else ""
    index, limit, slots = _rest(walk)
    held = slots or sum(int(found[1]) if (found := _HOSTS.match(host)) else 1 for host in hosts)
    processors = held or asked
    if not processors:
        if not start:
            reading.counts["cancelled"] += 1
            return None
        raise Unreadable("nothing says how many processors the job had", "width")
    return Record(
        submit=submit,
        start=start or None,
        end=end,
        processors=processors,
        requested_time=limit,
        status=5 if not start else int(status == _DONE),
        user=user,
        group=project,
        queue=queue,
        job=f"{job}[{index}]" if index else job,
    )


def _rest(walk: "_Walk") -> tuple[int | None, float | None, int | None]:
    """Returns index, time limit and slots; `None` for those that older versions lack."""
    index = limit = slots = None
    try:
        walk.skip(4)
        index = whole_of(walk.next())
        # Up to the job's description, then pairs and hosts' usage with their counts before them.
        walk.skip(23)
        walk.skip(2 * walk.length("submitEXT"))
        walk.skip(5 * walk.length("numHostRusage"))
        walk.skip(1)
        limit = number_of(walk.next())
        walk.skip(13)
        walk.skip(2 * walk.length("num_network"))
        walk.skip(6)
        slots = whole_of(walk.next())
    except Unreadable:
        pass
    return index, limit or None, slots


class _Walk:
    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._at = 0

    def has(self, count: int) -> bool:
        return self._at + count <= len(self._fields)

    def take(self, count: int) -> Sequence[str]:
        if not self.has(count):
            raise Unreadable(f"{len(self._fields)} fields; a record JOB_FINISH has more", "columns")
        self._at += count
        return self._fields[self._at - count : self._at]

    def skip(self, count: int) -> None:
        self.take(count)

    def next(self) -> str:
        return self.take(1)[0]

    def length(self, name: str) -> int:
        text = self.next()
        count = whole_of(text)
        if count is None:
            raise Unreadable(f"{name} is {text!r:.40}; a number of fields is expected", "columns")
        return count

    def moment(self, name: str) -> float:
        text = self.next()
        moment = number_of(text)
        if moment is None:
            raise Unreadable(f"{name} is {text!r:.40}; a Unix time is expected", "moment")
        return moment
