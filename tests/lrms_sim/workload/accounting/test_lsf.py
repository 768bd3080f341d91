"""LSF's job log: records of several versions, with texts in quotes and lists within."""

from typing import Any

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import


def finish(*, tail: bool = True, **changed: Any) -> str:
    """Returns a record of a job's end, in the order of IBM's page on lsb.acct."""
    row: dict[str, Any] = {
        "end": 1704070810, "job": 7, "asked": 1, "submit": 1704067200, "start": 1704067210, "user": "zoe",
        "queue": "normal", "asked_hosts": [], "hosts": ["n1", "n1", "n2", "n2"], "status": 64, "name": "job",
        "command": "echo hello", "project": "phys", "index": 0, "limit": 7200, "slots": [],
    } | changed  # fmt: skip

    def texts(*words: str) -> list[str]:
        return ['"' + word.replace('"', '""') + '"' for word in words]

    def many(words: list[str]) -> list[str]:
        return [str(len(words)), *texts(*words)]

    fields = [
        *texts("JOB_FINISH", "10.1"), row["end"], row["job"], 1001, 33554434, row["asked"], row["submit"], 0, 0,
        row["start"], *texts(row["user"], row["queue"], "", "", "", "login", "dir with blanks", "", "out", "", "7.1"),
        *many(row["asked_hosts"]), *many(row["hosts"]), row["status"], "1.00",
        *texts(row["name"], row["command"]), *(["1.5"] * 19), *texts("", row["project"]), 0, 4,
        *texts("", ""), row["index"], 1024, 2048, *texts("", "", "", ""), 0, '""', 0, '""', -1,
        *texts("", "", "", ""), 0, *texts("", ""), 0, '""', 0, *texts("", ""), 1, *texts("key", "value"),
    ]  # fmt: skip
    if tail:
        fields += [
            1, '"n1"', 1, 1, 1, 1, 0, row["limit"], 100, *texts("span[hosts=1]", ""), 0, '""', 0, 0, 0, 0, 0,
            '""', 3600, '""', 0, '""', *(["0.0"] * 5), *many(row["slots"]), 0, 0,
        ]  # fmt: skip
    return " ".join(map(str, fields))


def read(*lines: str, **options: Any) -> Import:
    """Returns what a file says."""
    return import_lines(
        "lsf", [part for line in lines for part in line.split("\n")], name="lsb.acct", **options
    )


def test_ends_of_jobs() -> None:
    """Held slots before asked ones, limits, tasks of arrays, and other records."""
    found = read(
        finish(),
        finish(job=8, index=3, slots=["n1"] * 6, asked_hosts=["n1", "n2"], status=32, user="ann"),
        finish(job=9, hosts=["4*n1", "2*n2"], limit=-1, tail=True),
        finish(job=10, tail=False, hosts=["n1"]),
        finish(job=11, start=0, hosts=[], asked=16, status=32),
        '"JOB_RESIZE" "10.1" 1704067200 7 0',
        '"EVENT_ADRSV_FINISH" "10.1" 1704067200',
        unreadable="error",
    )
    log = found.log
    assert found.counts == {"other": 2, "never": 1, "request": 2}
    columns = (log.processors_requested, log.requested_time, log.status, log.run_time)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == [
        (1, -1, 1, 3600),
        (4, 7200, 1, 3600),
        (6, -1, 1, 3600),
        (6, 7200, 0, 3600),
        (16, 7200, 5, -1),
    ]
    assert set(log.queue.tolist()) == {1}


def test_quotes_and_line_ends() -> None:
    """A command may have both; a record that never ends takes none of the next with it."""
    odd = finish(command='for i in "a b"\ndo echo; done', name='x "y" z')
    found = read(odd, finish(job=8), unreadable="error")
    assert found.log.processors_allocated.tolist() == [4, 4]
    cut = finish(job=9)[:150]
    assert cut.count('"') % 2 == 1
    found = read(cut, finish(job=8), cut)
    assert (len(found.log), found.counts) == (1, {"unreadable": 2})


def test_who_asks_for_nothing() -> None:
    """One that never started and says no width is left out; one that comes again counts once."""
    found = read(finish(start=0, hosts=[], asked=0, status=32), finish(job=8), finish(job=8))
    assert found.counts == {"repeated": 1, "cancelled": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "lsb.acct:2: no record of lsb.acct"),
        ('"JOB_FINISH" "10.1" 1704067200 7', "4 fields; a record JOB_FINISH has more"),
        (finish(submit="soon"), "submitTime is 'soon'"),
        (finish(hosts=[], asked=0), "nothing says how many processors"),
        (finish().replace(' 4 "n1" "n1"', ' x "n1" "n1"'), "numExHosts is 'x'"),
    ],
)
def test_what_cannot_be_read(text: str, words: str) -> None:
    """It is left out and counted, or an error with file, line and what is expected."""
    assert len(read(finish(job=1), text).log) == 1
    with pytest.raises(AccountingError, match=words):
        read(finish(job=1), text, unreadable="error")
