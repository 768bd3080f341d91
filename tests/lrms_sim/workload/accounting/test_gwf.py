"""Logs of the Grid Workloads Archive: names, unknowns, sites, and what is no such log."""

from typing import Any

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import
from lrms_sim.workload.preparation import prepare

REST = "-1\t" * 10 + "-1"

GWF = f"""# JobID SubmitTime WaitTime RunTime NProcs …
2\t1136070690\t-1\t11\t4\t4\t35848\t4\t3600\t-1\t1\tU2\tG1\tX1\tQ1\t-1\tfs0\tfs1\t{REST}
1\t1136070024\t60\t100\t1\t99\t98652\t1\t259200\t-1\t1\tU1\tG1\tX1\tQ1\t-1\tfs0\tfs0\t{REST}
3\t1136070700\t-1\t-1\t-1\t-1\t-1\t8\t-1\t-1\t5\tU1\tG2\tX 3\tQ2\t-1\tfs1\tfs1\t{REST}
4\t1136070701\t0\t5\t-1\t-1\t-1\t-1\t-1\t-1\t0\tU1\tG2\tX1\tQ2\t-1\tfs1\tfs1\t{REST}
5\t1136070702\t0\t5\t2\t-1\t-1\t-1\t-1\t-1\t-1\tU1\tG2\tX1\tQ2\t-1\tfs1\t-1\t{REST}
""".splitlines(keepends=True)


def read(lines: list[str], **options: Any) -> Import:
    """Returns what a log says."""
    return import_lines("gwf", lines, name="das2.gwf", **options)


def test_columns() -> None:
    """Jobs are sorted by submission; -1 stays unknown; names and sites become numbers."""
    found = read(GWF)
    log = found.log
    assert found.counts == {"width": 1, "never": 1, "wait": 1, "request": 2}
    assert found.sites == {"fs1": 2, "fs0": 1}
    assert log.submit_time.tolist() == [0, 666, 676, 678]
    assert log.wait_time.tolist() == [60, -1, -1, 0]
    assert log.run_time.tolist() == [100, 11, -1, 5]
    assert log.processors_allocated.tolist() == [1, 4, -1, 2]
    assert log.processors_requested.tolist() == [1, 4, 8, 2]
    assert log.requested_time.tolist() == [259200, 3600, -1, -1]
    assert log.status.tolist() == [1, 1, 5, -1]
    assert log.user.tolist() == [1, 2, 1, 1]
    assert log.partition.tolist() == [1, 2, 2, -1]
    assert log.header.fields["UnixStartTime"] == "1136070024"
    assert len(prepare(log, 64).jobs) == 2


def test_one_site() -> None:
    """Jobs that ran elsewhere are counted; columns may be parted by spaces."""
    found = read([line.replace("X 3", "X3").replace("\t", "  ") for line in GWF], site="fs1")
    assert found.counts == {"elsewhere": 2, "width": 1, "never": 1, "wait": 1, "request": 1}
    assert found.log.processors_requested.tolist() == [4, 8]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1 2 3", "das2.gwf:2: 3 columns; the Grid Workload Format has 29"),
        (GWF[2].replace("1136070024", "soon"), "das2.gwf:2: SubmitTime is 'soon'"),
        (GWF[2].replace("1136070024", "-1"), "das2.gwf:2: SubmitTime is '-1'; seconds"),
        (GWF[2].replace("\t100\t", "\tnan\t"), "das2.gwf:2: RunTime is 'nan'; a number or -1"),
    ],
)
def test_what_cannot_be_read(line: str, text: str) -> None:
    """The error has file, line and what is expected."""
    with pytest.raises(AccountingError, match=text):
        read(["# a comment\n", line], unreadable="error")
