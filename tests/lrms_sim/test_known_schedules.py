"""Small schedules that were made by hand; the files say why every job starts when it does.

They are there for authors of other simulators too. docs/disciplines.md describes the files.
"""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.oracles.disciplines import PASSES, simulate_plainly
from tests.strategies import DISCIPLINES, ORDERED

FILES = sorted((Path(__file__).parent / "known_schedules").glob("*.toml"))


def known(path: Path) -> tuple[JobTable, dict[str, Any]]:
    """Returns the jobs of a file and all it says."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = document["jobs"]
    assert [row["id"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(("group" in row) == ("group" in rows[0]) for row in rows)
    columns = ("submit_time", "processors", "requested_time", "run_time")
    jobs = JobTable.from_columns(
        **{name: [row[name] for row in rows] for name in columns},
        user=[row.get("user", -1) for row in rows],
    )
    assert jobs.submit_time.tolist() == [row["submit_time"] for row in rows]
    return jobs, document


CASES = [
    pytest.param(path, discipline, id=f"{path.stem}-{discipline}")
    for path in FILES
    for discipline in known(path)[1]["start_times"]
]


@pytest.mark.parametrize(("path", "discipline"), CASES)
def test_known_schedule(path: Path, discipline: str) -> None:
    """Kernel and oracle make the schedule that was made by hand."""
    jobs, document = known(path)
    expected = document["start_times"][discipline]
    processors = document["processors"]
    groups = [row.get("group", 5) for row in document["jobs"]]
    schedule = simulate(jobs, processors, discipline_by_name(discipline), groups=np.array(groups))
    oracle = simulate_plainly(jobs, processors, discipline, groups)
    assert schedule.start_time.tolist() == expected
    assert [oracle.start_time[row] for row in range(len(jobs))] == expected


def test_known_schedules_are_complete() -> None:
    """There are files, each of them explains itself and covers every discipline it can."""
    assert len(FILES) >= 12
    for path in FILES:
        jobs, document = known(path)
        assert document["title"]
        assert document["explanation"].strip()
        names = set(document["start_times"])
        if names & set(ORDERED):
            assert names == set(PASSES)
        elif "group" in document["jobs"][0]:
            assert names == set(PASSES) - set(ORDERED)
        else:
            assert names == set(DISCIPLINES)
        assert len(jobs) == len(document["jobs"])


def test_known_schedules_tell_the_disciplines_apart() -> None:
    """For any two disciplines there is a file in which they differ."""
    names = tuple(PASSES)
    starts = [known(path)[1]["start_times"] for path in FILES]
    for position, one in enumerate(names):
        for other in names[:position]:
            both = [start for start in starts if one in start and other in start]
            assert any(start[one] != start[other] for start in both), (one, other)
