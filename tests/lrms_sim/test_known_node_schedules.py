"""Small schedules on machines of nodes that were made by hand; the files say why every job starts when it does."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lrms_sim.machine.node_files import machine_of
from lrms_sim.machine.nodes import NODE_DISCIPLINES, Demands, NodeMachine, simulate_on_nodes
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.request_text import FIELDS, request_of
from lrms_sim.workload.requests import Request
from tests.oracles.nodes import simulate_plainly

FILES = sorted((Path(__file__).parent / "known_node_schedules").glob("*.toml"))
MACHINE_KEYS = {"placement", "licences", "nodes"}
TIMES = ("submit_time", "requested_time", "run_time")


def known(path: Path) -> tuple[NodeMachine, JobTable, list[Request], dict[str, Any]]:
    """Returns the machine, the jobs and what they ask for, and all that a file says."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = document["jobs"]
    assert [row["id"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(row.keys() <= {"id", *TIMES, *FIELDS} for row in rows)
    asked = [request_of(row) for row in rows]
    jobs = JobTable.from_columns(
        submit_time=[row["submit_time"] for row in rows],
        requested_time=[row["requested_time"] for row in rows],
        run_time=[row["run_time"] for row in rows],
        processors=[request.processors for request in asked],
    )
    assert jobs.submit_time.tolist() == [row["submit_time"] for row in rows]
    machine = machine_of({key: document[key] for key in MACHINE_KEYS & document.keys()}, path.stem)
    return machine, jobs, asked, document


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("discipline", NODE_DISCIPLINES)
def test_known_schedule(path: Path, discipline: str) -> None:
    """Kernel and oracle make the schedule that was made by hand."""
    machine, jobs, asked, document = known(path)
    expected = document["start_times"][discipline]
    found = simulate_on_nodes(jobs, machine, discipline, demands=Demands.of(asked))
    assert found.schedule.start_time.tolist() == expected
    oracle = simulate_plainly(jobs, asked, machine, discipline)
    assert [job.start_time for job in oracle] == expected


def test_known_schedules_are_complete() -> None:
    """There are files, each of them explains itself and covers every discipline."""
    assert len(FILES) >= 11
    for path in FILES:
        document = known(path)[-1]
        assert document["title"]
        assert document["explanation"].strip()
        assert tuple(document["start_times"]) == NODE_DISCIPLINES
        assert document.keys() <= {"title", "explanation", "jobs", "start_times", *MACHINE_KEYS}
